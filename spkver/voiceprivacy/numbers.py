"""The results of a condition: metrics with intervals, linkability, closed sets, ranks, and figures of each speaker.

If enrolment and trials are anonymised several times, a result is the mean over the draws, and its interval covers
speakers and draws (`evaluation.uncertainty.intervals`); the value of each draw is given, too. The strongest evidence in
any trial is the maximum over the draws.

In a closed set the attacker knows that the speaker is enrolled. Its equal error rate is computed from scores centred
over the enrolled speakers (`evaluation.calibration.closed_set_scores`); identification is the share of utterances whose
speaker ranks first among all enrolled. Both need a trial list that is a full cross.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import linkage
from evaluation.calibration import closed_set_scores
from evaluation.formats import read_key, read_scores
from evaluation.metrics import Evidence, Metrics, WorstCase, eer, evaluate, tag, worst_case
from evaluation.trials import Key, Scores, align, find_rows, read_speakers, split_scores
from evaluation.uncertainty import AT_ONCE, Resampling, confidence_intervals, minima_over_attackers, sample_from
from spkbase.errors import DataError
from spkver.voiceprivacy.scores import Scored
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]

_MOST_RESAMPLES = 300  # for the interval of a closed set's EER: its standard error is then known within some 4 %
_TOPS = (2, 5, 10)  # ranks up to which a target speaker counts as found
_ALL_SIZES = 500  # with more enrolled speakers the curve has fewer points
_OF_A_DRAW = ("eer", "cllr", "min_cllr", "zebra")  # metrics that are given for each draw
_NO_CROSS = "not given: the trial list is not a full cross of models and segments"


def assess_condition(condition: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> Json:
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

    Returns
    -------
    dict
        The entry of ``results.json``.
    """
    key = read_key(output / condition.lists / "trials")
    speakers = read_speakers(output / condition.lists / "utt2spk")
    sexes = read_speakers(output / condition.lists / "spk2gender")
    draws = [read_scores(output / path) for path in condition.scores.values()]
    ranked = [rank_owners(scores, key, sexes) for scores in draws]
    tables = [ranks for ranks, _ in ranked if ranks is not None]
    is_ranked = len(tables) == len(draws)
    resampling = Resampling(config.resamples, seed, config.level)
    of_draws, numbers = _metrics(draws, list(condition.scores), key, speakers, config.priors, resampling)
    closed, notes = closed_set_of(draws, key, speakers, tables if is_ranked else None, resampling)
    closed_of_draws = [None] * len(draws) if closed is None else closed.pop("draws")
    if condition.lacking:
        missing = " and ".join(map(str, condition.lacking))
        notes["draws"] = f"no scores of draw {missing}: means over the other {len(draws)}"
    of_speakers, worst = [], []
    for scores, (ranks, why) in zip(draws, ranked, strict=True):
        numbers["notes"] |= why if is_ranked or ranks is None else {}
        of_speakers.append(_speakers(scores, key, sexes, ranks if is_ranked else None))
        by_ranks = Evidence(float("nan"), why["linkability"]) if ranks is None else linkage.rank_evidence_of(ranks)
        worst.append(worst_case(*split_scores(scores, key), ranks=by_ranks))
    numbers["notes"] |= notes
    return {
        **{name: getattr(condition, name) for name in ("dataset", "gender", "scenario", "attacker")},
        "n_enrolled": len(np.unique(key.models)),
        "n_trial_speakers": len({speakers[segment] for segment in key.segment_ids[np.unique(key.segments)]}),
        "scores": condition.scores[1],
        "key": f"{condition.lists}/trials",
        "segment_speakers": f"{condition.lists}/utt2spk",
        **numbers,
        "linkability": _link(tables, config.sizes, resampling) if is_ranked else None,
        "speakers": mean_of(of_speakers),
        "level": condition.level,
        "content": condition.content,
        "tested": list(condition.tested),
        "closed_set": closed,
        "draws": [
            {"draw": number, "scores": path, **{name: found[name] for name in _OF_A_DRAW}, "closed_set": rates}
            for (number, path), found, rates in zip(condition.scores.items(), of_draws, closed_of_draws, strict=True)
        ],
        "worst_case": worst_of(worst).to_dict(),
        "cmc": match_by_rank(tables) if tables else None,
    }


def mean_of(values: Sequence[Any]) -> Any:
    """Average nested values, number by number.

    Parameters
    ----------
    values : sequence
        Numbers, or mappings and lists of numbers, one for each draw; values that are equal in all draws stay.

    Returns
    -------
    object
        Value of the same form. A value that is missing in one draw is missing; booleans are combined by "and"; where
        texts differ, the first is kept.

    Examples
    --------
    >>> mean_of([{"eer": 0.1, "tag": "A", "n": 3}, {"eer": 0.3, "tag": "B", "n": 3}])
    {'eer': 0.2, 'tag': 'A', 'n': 3}
    """
    first = values[0]
    if isinstance(first, Mapping):
        return {name: mean_of([value[name] for value in values]) for name in first}
    if isinstance(first, list):
        return [mean_of(list(items)) for items in zip(*values, strict=True)]
    if all(value == first for value in values[1:]):
        return first
    if any(value is None for value in values):
        return None
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
) -> tuple[Json | None, dict[str, str]]:
    """Return the results of a closed set, averaged over draws, and notes.

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
    numbers : dict or None
        ``eer`` and ``identification``, each with value, low and high; ``candidates`` (fewest and most); ``chance``; and
        both values of each draw. The high end of ``eer`` and the low end of ``identification`` hold for the worst of
        several attackers (`evaluation.uncertainty.confidence`). None if the list is no full cross.
    notes : dict of str to str
    """
    if tables is None:
        return None, {"closed_set": _NO_CROSS}
    try:
        centred = [closed_set_scores(scores.subset(find_rows(key, scores))) for scores in draws]
    except DataError as error:
        return None, {"closed_set": f"not given: {error.text}"}
    samples = [sample_from(scores, key, segment_speakers=speakers, bootstrap_by="trial")[0] for scores in centred]
    rates = [eer(sample.runs()) for sample in samples]
    ends: Json = {}
    if resampling.resamples:
        fewer = replace(resampling, resamples=min(resampling.resamples, _MOST_RESAMPLES))
        try:
            drawn = [sample_from(one, key, segment_speakers=speakers, bootstrap_by="id")[0] for one in centred]
            least = minima_over_attackers({"": drawn}, {"": [""]}, resampling=fewer, permutations=0)[""].interval
            ends = {"low": least.low, "high": least.high}
        except DataError:  # fewer than two speakers
            pass
    # only the first rank matters here, so galleries of all sizes may be treated as the largest
    largest = int(linkage.all_draws(tables).impostors.max())
    candidates = tables[0].impostors + 1
    whole = [replace(ranks, impostors=np.full(len(ranks), largest)) for ranks in tables]
    at_once = replace(resampling, level=1 - (1 - resampling.level) / AT_ONCE)
    named, wide = (
        linkage.linkability_over_draws(whole, np.array([largest + 1]), resampling=one) for one in (resampling, at_once)
    )
    shares = [float(np.mean(first_among_all(ranks))) for ranks in tables]
    return {
        "eer": {"value": sum(rates) / len(rates), **ends},
        "identification": {"value": float(named.values[0]), "low": float(wide.low[0]), "high": float(named.high[0])},
        "candidates": [int(candidates.min()), int(candidates.max())],
        "chance": float(np.mean(1 / candidates)),
        "draws": [{"eer": rate, "identification": share} for rate, share in zip(rates, shares, strict=True)],
    }, {}


def first_among_all(ranks: linkage.Ranks) -> np.ndarray:
    """Return the probability that the target speaker of each row ranks first among all candidates; ties are shared.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Examples
    --------
    >>> first_among_all(linkage.Ranks([0, 2, 0], [0, 0, 1], 9)).tolist()
    [1.0, 0.0, 0.5]
    """
    return np.where(ranks.beaters == 0, 1 / (1 + ranks.ties), 0.0)


def worst_of(draws: Sequence[WorstCase]) -> WorstCase:
    """Return the strongest evidence over draws by each method; draws without evidence are ignored."""

    def strongest(name: str) -> Evidence:
        found: list[Evidence] = [getattr(draw, name) for draw in draws]
        return max(found, key=lambda evidence: -np.inf if np.isnan(evidence.llr) else evidence.llr)

    return WorstCase(*(strongest(name) for name in ("pav", "gaussian", "student", "ranks")))


def match_by_rank(tables: Sequence[linkage.Ranks]) -> list[float]:
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
    return np.minimum(total / count, 1.0).tolist()


def _metrics(
    draws: Sequence[Scores],
    numbered: Sequence[int],
    key: Key,
    speakers: Mapping[str, str],
    priors: Sequence[str],
    resampling: Resampling,
) -> tuple[list[Json], Json]:
    """Return the metrics of each draw, and their means with intervals and notes, as in ``spkver-eval metrics``."""
    statistic, samples = Metrics(tuple(priors)), []
    intervals: Json = {}
    about: dict[str, str] = {}
    try:
        samples = [sample_from(scores, key, segment_speakers=speakers, bootstrap_by="id")[0] for scores in draws]
        found = confidence_intervals(samples, statistic, resampling) if resampling.resamples else {}
    except DataError as error:  # fewer than two speakers: metrics without intervals
        found, about = {}, {"intervals": f"none: {error.text}"}
    if samples:
        results = [statistic.evaluate(sample.runs()) for sample in samples]
    else:
        results = [evaluate(*split_scores(scores, key), priors=statistic.priors) for scores in draws]
    if found:
        share = f"{100 * resampling.level:g} % confidence intervals by {resampling.resamples} resamples of"
        over = f" and {len(draws)} draws" if len(draws) > 1 else ""
        about = {"intervals": f"{share} {samples[0].n_effective} speakers{over}, seed {resampling.seed}"}
        about |= {f"intervals.{name}": interval.note for name, interval in found.items() if interval.note}
        intervals = {name: {"low": interval.low, "high": interval.high} for name, interval in found.items()}
    of_draws = [result.to_dict() for result in results]
    notes = shared_notes({number: found["notes"] for number, found in zip(numbered, of_draws, strict=True)})
    beside = ("notes", "intervals")
    numbers = mean_of([{name: found[name] for name in found if name not in beside} for found in of_draws])
    if len(draws) > 1:  # the category follows from the mean
        numbers["zebra"]["tag"] = tag(numbers["zebra"]["individual"])
    return of_draws, {**numbers, "notes": {**notes, **about}, "intervals": intervals}


def _is_cross(key: Key) -> bool:
    return len(key) >= len(np.unique(key.models)) * len(np.unique(key.segments))


def _link(tables: Sequence[linkage.Ranks], asked: Sequence[int], resampling: Resampling) -> Json:
    """Return linkability as a function of the number of enrolled speakers, with intervals over speakers."""
    ranks = linkage.all_draws(tables)
    largest = ranks.largest_size
    every = range(2, largest + 1) if largest <= _ALL_SIZES else linkage.log_spaced_sizes(largest)
    sizes = [size for size in asked if size <= largest] or list(every)
    curve = linkage.linkability_over_draws(tables, sizes, resampling=resampling)
    tops = {str(top): linkage.linkability_at_sizes(ranks, sizes, top=top) for top in _TOPS if top < largest}
    numbers = {"sizes": curve.sizes, "linkability": curve.values, "low": curve.low, "high": curve.high}
    return {
        **{name: values.tolist() for name, values in {**numbers, "chance": curve.chance}.items()},
        "top": {top: values.tolist() for top, values in tops.items()},
    }


def _speakers(scores: Scores, key: Key, genders: Mapping[str, str], ranks: linkage.Ranks | None) -> list[Json]:
    """Return the linkability (mean over log-spaced sizes), mean rank and equal error rate of each enrolled speaker."""
    values = align(scores, key)
    linked, places = dict[str, float](), dict[str, float]()
    if ranks is not None:
        linked = linkage.by_speaker(ranks.speakers, linkage.linkability_over_sizes(ranks))
        places = linkage.by_speaker(ranks.speakers, ranks.places())
    entries = []
    for name, code in sorted((key.model_ids[code], code) for code in np.unique(key.models).tolist()):
        target, nontarget = (values[(key.models == code) & (key.is_target == same)] for same in (True, False))
        entries.append(
            {
                "speaker": name,
                "gender": genders.get(name, ""),
                "linkability_mean": linked.get(name),
                "rank": places.get(name),
                "n_target": len(target),
                "eer": eer(target, nontarget) if len(target) and len(nontarget) else None,
            }
        )
    return entries
