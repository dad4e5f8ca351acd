"""The results of a condition: metrics with intervals, linkability, closed sets, ranks, and figures of each speaker.

If enrolment and trials are anonymised several times, a result is the mean over the draws, and its interval covers
speakers and draws (`evaluation.uncertainty.intervals`); the value of each draw is given, too. The strongest evidence in
any trial is the maximum over the draws.

In a closed set the attacker knows that the speaker is enrolled. Its equal error rate is computed from scores centred
over the enrolled speakers (`evaluation.calibration.closed_set_scores`); identification is the share of utterances whose
speaker ranks first among all enrolled. Both need a trial list that is a full cross.

Whoever has the list can also centre the scores of each model over its trials. That error rate is given where it is
clearly lower: then scores have an offset for each model, as raw log-likelihoods have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import linkage
from evaluation.calibration import closed_set_scores
from evaluation.formats import read_key, read_scores
from evaluation.metrics import Evidence, Metrics, WorstCase, eer, sort_scores, tag, worst_case
from evaluation.reports import ClosedSet, Condition, Draw, EnrolledSpeaker, Linkability
from evaluation.trials import Key, Scores, align, find_rows, read_speakers, split_scores
from evaluation.uncertainty import (
    AT_ONCE,
    Interval,
    Resampling,
    confidence_intervals,
    minima_over_attackers,
    sample_from,
)
from spkbase.errors import DataError
from spkver.voiceprivacy.scores import Scored
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]

_MOST_RESAMPLES = 300  # for the interval of a closed set's EER: its standard error is then known within some 4 %
_CLEARLY = 0.02  # smaller gains may be chance, and change no word
_TOPS = (2, 5, 10)  # ranks up to which a target speaker counts as found
_ALL_SIZES = 500  # with more enrolled speakers the curve has fewer points
_OF_A_DRAW = ("eer", "cllr", "min_cllr", "zebra")  # metrics that are given for each draw
_BESIDE = ("notes", "intervals")
_NO_CROSS = "not given: the trial list is not a full cross of models and segments"


def assess_condition(condition: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> Condition:
    """Assess one condition from its files.

    Parameters
    ----------
    condition : Scored
        The condition.
    output : Path
        Folder that the paths of the condition are relative to.
    config : EvaluationConfig
    seed : int
        Seed of the resamples.
    """
    key = read_key(output / condition.lists / "trials")
    speakers = read_speakers(output / condition.lists / "utt2spk")
    sexes = read_speakers(output / condition.lists / "spk2gender")
    draws = [read_scores(output / path) for path in condition.scores.values()]
    ranked = [rank_owners(scores, key, sexes) for scores in draws]
    tables = [ranks for ranks, _ in ranked if ranks is not None]
    is_ranked = len(tables) == len(draws)
    resampling = Resampling(config.resamples, seed, config.level)
    of_draws, metrics, intervals, notes = _metrics(
        draws, list(condition.scores), key, speakers, config.priors, resampling
    )
    closed, closed_of_draws, closed_notes = closed_set_of(
        draws, key, speakers, tables if is_ranked else None, resampling
    )
    if apart := impostors_apart(draws, key, speakers):
        metrics["impostors"] = apart
    centred = centred_by_model(draws, key, speakers, resampling, metrics["eer"]["rocch"])
    of_speakers, worst = [], []
    for scores, (ranks, why) in zip(draws, ranked, strict=True):
        notes |= why if is_ranked or ranks is None else {}
        of_speakers.append(_speakers(scores, key, sexes, ranks if is_ranked else None))
        by_ranks = Evidence(float("nan"), why["linkability"]) if ranks is None else linkage.rank_evidence_of(ranks)
        worst.append(worst_case(*split_scores(scores, key), ranks=by_ranks))
    notes |= closed_notes
    if condition.lacking:
        missing = " and ".join(map(str, condition.lacking))
        notes["draws"] = f"no scores of draw {missing}: means over the other {len(draws)}"
    return Condition(
        dataset=condition.dataset,
        gender=condition.gender,
        scenario=condition.scenario,
        attacker=condition.attacker,
        n_enrolled=len(np.unique(key.models)),
        n_trial_speakers=len({speakers[segment] for segment in key.segment_ids[np.unique(key.segments)]}),
        scores=condition.scores[1],
        key=f"{condition.lists}/trials",
        segment_speakers=f"{condition.lists}/utt2spk",
        n_target=metrics.pop("n_target"),
        n_nontarget=metrics.pop("n_nontarget"),
        metrics=metrics,
        notes=notes,
        intervals=intervals,
        linkability=_link(tables, config.sizes, resampling) if is_ranked else None,
        speakers=mean_of(of_speakers),
        level=condition.level,
        content=condition.content,
        tested=condition.tested,
        closed_set=closed,
        centred=centred,
        draws=tuple(
            Draw(number, path, {name: found[name] for name in _OF_A_DRAW}, rates)
            for (number, path), found, rates in zip(condition.scores.items(), of_draws, closed_of_draws, strict=True)
        ),
        worst_case=worst_of(worst),
        cmc=match_by_rank(tables) if tables else None,
    )


def mean_of(values: Sequence[Any]) -> Any:
    """Average nested values, number by number.

    Parameters
    ----------
    values : sequence
        Numbers, or mappings, tuples and speakers with numbers, one for each draw; values that are equal in all draws
        stay.

    Returns
    -------
    object
        Value of the same form. A value that is NaN in one draw is NaN; booleans are combined by "and"; where texts
        differ, the first is kept.

    Examples
    --------
    >>> mean_of([{"eer": 0.1, "tag": "A", "n": 3}, {"eer": 0.3, "tag": "B", "n": 3}])
    {'eer': 0.2, 'tag': 'A', 'n': 3}
    """
    first = values[0]
    if isinstance(first, Mapping):
        return {name: mean_of([value[name] for value in values]) for name in first}
    if isinstance(first, tuple):
        return tuple(mean_of(items) for items in zip(*values, strict=True))
    if isinstance(first, EnrolledSpeaker):
        return EnrolledSpeaker(**mean_of([vars(value) for value in values]))
    if all(value == first for value in values[1:]):
        return first
    if isinstance(first, bool):
        return all(values)
    return first if isinstance(first, str) else sum(values) / len(values)


def shared_notes(notes: Mapping[int, Mapping[str, str]]) -> dict[str, str]:
    """Merge the notes of all draws; a note that holds for some draws only names them.

    Examples
    --------
    >>> shared_notes({1: {"d_sys": "few bins"}, 2: {"d_sys": "few bins", "cllr": "infinite"}})
    {'d_sys': 'few bins', 'cllr': 'in draw 2: infinite'}
    """
    texts: dict[str, dict[str, list[int]]] = {}
    for number, of_draw in notes.items():
        for name, text in of_draw.items():
            texts.setdefault(name, {}).setdefault(text, []).append(number)
    return {
        name: "; ".join(
            text if len(numbers) == len(notes) else f"in draw {' and '.join(map(str, numbers))}: {text}"
            for text, numbers in found.items()
        )
        for name, found in texts.items()
    }


def rank_owners(scores: Scores, key: Key, genders: Mapping[str, str]) -> tuple[linkage.Ranks | None, dict[str, str]]:
    """Rank the true speaker of each trial utterance among the enrolled speakers, if the trial list allows it.

    The list must be a full cross of models and segments, or one for each sex: every utterance is then compared with all
    enrolled speakers (of its sex).
    """
    notes = {}
    if not _is_cross(key):
        blocks: dict[str, list[int]] = {}
        for row, model in enumerate(key.models.tolist()):
            blocks.setdefault(genders.get(key.model_ids[model], "?"), []).append(row)
        if not all(_is_cross(key.subset(np.array(rows))) for rows in blocks.values()):
            return None, {"linkability": _NO_CROSS}
        notes["linkability"] = "among enrolled speakers of the same sex: there are no cross-sex trials"
    try:
        ranks = linkage.ranks_from_scores(scores, key)
    except DataError as error:
        return None, {"linkability": f"not given: {error.text}"}
    return ranks, notes | {f"linkability.{number}": note for number, note in enumerate(ranks.notes, 1)}


def closed_set_of(
    draws: Sequence[Scores],
    key: Key,
    speakers: Mapping[str, str],
    tables: Sequence[linkage.Ranks] | None,
    resampling: Resampling,
) -> tuple[ClosedSet | None, list[dict[str, float] | None], dict[str, str]]:
    """Return the results of a closed set, averaged over draws, the values of each draw, and notes.

    Parameters
    ----------
    draws : sequence of Scores
        Scores of the same trials.
    key : Key
    speakers : mapping of str to str
        Segment to speaker.
    tables : sequence of Ranks, or None
        Ranks of the target speakers in each draw, if the trial list allows them.
    resampling : Resampling

    Returns
    -------
    closed_set : ClosedSet or None
        The high end of the error rate and the low end of the identification hold for the worst of several attackers
        (`evaluation.uncertainty.confidence`). None if the list is no full cross.
    of_draws : list of dict
        ``eer`` and ``identification`` of each draw, or None.
    notes : dict of str to str
    """
    none: list[dict[str, float] | None] = [None] * len(draws)
    if tables is None:
        return None, none, {"closed_set": _NO_CROSS}
    try:
        centred = [closed_set_scores(scores.subset(find_rows(key, scores))) for scores in draws]
    except DataError as error:
        return None, none, {"closed_set": f"not given: {error.text}"}
    rates = _rates(centred, key)
    rate = _with_ends(sum(rates) / len(rates), centred, key, speakers, resampling)
    # only the first rank matters here, so galleries of all sizes may be treated as the largest
    largest = int(linkage.all_draws(tables).impostors.max())
    candidates = tables[0].impostors + 1
    whole = [replace(ranks, impostors=np.full(len(ranks), largest)) for ranks in tables]
    at_once = replace(resampling, level=1 - (1 - resampling.level) / AT_ONCE)
    named, wide = (
        linkage.linkability_over_draws(whole, np.array([largest + 1]), resampling=one) for one in (resampling, at_once)
    )
    shares = [float(linkage.linkability_at_sizes(ranks, [largest + 1])[0]) for ranks in whole]
    closed = ClosedSet(
        rate,
        Interval(float(named.values[0]), float(wide.low[0]), float(named.high[0])),
        (int(candidates.min()), int(candidates.max())),
        float(np.mean(1 / candidates)),
    )
    return closed, [{"eer": rate, "identification": share} for rate, share in zip(rates, shares, strict=True)], {}


def centred_by_model(
    draws: Sequence[Scores], key: Key, speakers: Mapping[str, str], resampling: Resampling, raw: float
) -> Interval | None:
    """Return the equal error rate of scores centred over the trials of each model, averaged over draws.

    None if it is not clearly below the rate of the scores as they are (`raw`), or if scores are infinite.
    """
    centred = []
    for scores in (scores.subset(find_rows(key, scores)) for scores in draws):
        if not np.isfinite(scores.values).all():
            return None
        means = np.bincount(scores.models, scores.values) / np.maximum(np.bincount(scores.models), 1)
        centred.append(replace(scores, values=scores.values - means[scores.models]))
    value = float(np.mean(_rates(centred, key)))
    return _with_ends(value, centred, key, speakers, resampling) if raw > value + _CLEARLY else None


def impostors_apart(draws: Sequence[Scores], key: Key, speakers: Mapping[str, str]) -> dict[str, float]:
    """Return the equal error rates with impostors who are enrolled and with strangers, averaged over draws.

    Attackers that learn from the enrolled know the voices of the former. Empty if a list has only one kind.

    Returns
    -------
    dict of str to float
        ``enrolled`` and ``strangers``.
    """
    enrolled = set(key.model_ids[np.unique(key.models)].tolist())
    known = np.array([speakers.get(name) in enrolled for name in key.segment_ids.tolist()])[key.segments]
    kinds = {"enrolled": known & ~key.is_target, "strangers": ~known & ~key.is_target}
    if not all(rows.any() for rows in kinds.values()):
        return {}
    aligned = [align(scores, key) for scores in draws]
    return {
        kind: float(np.mean([eer(values[key.is_target], values[rows]) for values in aligned]))
        for kind, rows in kinds.items()
    }


def _rates(draws: Sequence[Scores], key: Key) -> list[float]:
    return [eer(*split_scores(scores, key)) for scores in draws]


def _with_ends(
    value: float, draws: Sequence[Scores], key: Key, speakers: Mapping[str, str], resampling: Resampling
) -> Interval:
    """Return the mean rate of draws with its interval, whose high end holds for the worst of several attackers."""
    if resampling.resamples:
        fewer = replace(resampling, resamples=min(resampling.resamples, _MOST_RESAMPLES))
        with suppress(DataError):  # fewer than two speakers
            drawn = [sample_from(one, key, segment_speakers=speakers, bootstrap_by="id")[0] for one in draws]
            least = minima_over_attackers({"": drawn}, {"": [""]}, resampling=fewer, permutations=0)[""].interval
            return Interval(value, least.low, least.high)
    return Interval(value)


def worst_of(draws: Sequence[WorstCase]) -> WorstCase:
    """Return the strongest evidence over draws by each method; draws without evidence are ignored."""

    def strongest(name: str) -> Evidence:
        found: list[Evidence] = [getattr(draw, name) for draw in draws]
        return max(found, key=lambda evidence: -np.inf if np.isnan(evidence.llr) else evidence.llr)

    return WorstCase(*(strongest(name) for name in ("pav", "gaussian", "student", "ranks")))


def match_by_rank(tables: Sequence[linkage.Ranks]) -> tuple[float, ...]:
    """Return the share of utterances whose speaker is among the first r, r = 1, 2, ..., over the ranks of all draws.

    Beyond the size of a gallery its share is 1: women and men may be enrolled in galleries of different sizes.
    """
    largest = max(int(ranks.impostors.max()) + 1 for ranks in tables)
    total, count = np.zeros(largest), 0
    for ranks in tables:
        for size in np.unique(ranks.impostors).tolist():
            rows = ranks.impostors == size
            shares = linkage.rank_shares(ranks.subset(rows))
            total += rows.sum() * np.pad(np.cumsum(shares), (0, largest - len(shares)), constant_values=1.0)
            count += int(rows.sum())
    return tuple(np.minimum(total / count, 1.0).tolist())


def _metrics(
    draws: Sequence[Scores],
    numbered: Sequence[int],
    key: Key,
    speakers: Mapping[str, str],
    priors: Sequence[str],
    resampling: Resampling,
) -> tuple[list[Json], Json, dict[str, Interval], dict[str, str]]:
    """Return the metrics of each draw, as in ``spkver-eval metrics``, their means, their intervals, and notes."""
    statistic, samples = Metrics(tuple(priors)), []
    about: dict[str, str] = {}
    try:
        samples = [sample_from(scores, key, segment_speakers=speakers, bootstrap_by="id")[0] for scores in draws]
        found = confidence_intervals(samples, statistic, resampling) if resampling.resamples else {}
    except DataError as error:  # fewer than two speakers: metrics without intervals
        found, about = {}, {"intervals": f"none: {error.text}"}
    if samples:
        results = [statistic.evaluate(sample.runs()) for sample in samples]
    else:
        results = [statistic.evaluate(sort_scores(scores, key)) for scores in draws]
    if found:
        over = f" and {len(draws)} draws" if len(draws) > 1 else ""
        about = {"intervals": resampling.text(f"{samples[0].n_effective} speakers{over}")}
        about |= {f"intervals.{name}": interval.note for name, interval in found.items() if interval.note}
    of_draws = [result.to_dict() for result in results]
    notes = shared_notes({number: one["notes"] for number, one in zip(numbered, of_draws, strict=True)})
    metrics = mean_of([{name: part for name, part in one.items() if name not in _BESIDE} for one in of_draws])
    if len(draws) > 1:  # the category follows from the mean
        metrics["zebra"]["tag"] = tag(metrics["zebra"]["individual"])
    ends = {name: Interval(low=interval.low, high=interval.high) for name, interval in found.items()}
    return of_draws, metrics, ends, notes | about


def _is_cross(key: Key) -> bool:
    return len(key) >= len(np.unique(key.models)) * len(np.unique(key.segments))


def _link(tables: Sequence[linkage.Ranks], asked: Sequence[int], resampling: Resampling) -> Linkability:
    """Return linkability as a function of the number of enrolled speakers, with intervals over speakers."""
    ranks = linkage.all_draws(tables)
    largest = ranks.largest_size
    every = range(2, largest + 1) if largest <= _ALL_SIZES else linkage.log_spaced_sizes(largest)
    sizes = [size for size in asked if size <= largest] or list(every)
    curve = linkage.linkability_over_draws(tables, sizes, resampling=resampling)
    tops = {str(top): linkage.linkability_at_sizes(ranks, sizes, top=top) for top in _TOPS if top < largest}
    return replace(Linkability.from_curve(curve), top={top: tuple(values.tolist()) for top, values in tops.items()})


def _speakers(
    scores: Scores, key: Key, genders: Mapping[str, str], ranks: linkage.Ranks | None
) -> tuple[EnrolledSpeaker, ...]:
    """Return the linkability (mean over log-spaced sizes), mean rank and equal error rate of each enrolled speaker."""
    values = align(scores, key)
    linked, places = dict[str, float](), dict[str, float]()
    if ranks is not None:
        linked = linkage.by_speaker(ranks.speakers, linkage.linkability_over_sizes(ranks))
        places = linkage.by_speaker(ranks.speakers, ranks.places())
    found = []
    for name, code in sorted((key.model_ids[code], code) for code in np.unique(key.models).tolist()):
        target, nontarget = (values[(key.models == code) & (key.is_target == same)] for same in (True, False))
        rate = eer(target, nontarget) if len(target) and len(nontarget) else np.nan
        mean, rank = (of_speakers.get(name, np.nan) for of_speakers in (linked, places))
        found.append(EnrolledSpeaker(name, genders.get(name, ""), mean, rank, len(target), rate))
    return tuple(found)
