"""The results of a condition: metrics with intervals, linkability, closed sets, ranks, and figures of each speaker.

If enrolment and trials are anonymised several times, a result is the mean over the draws, and its interval covers
speakers and draws (`evaluation.uncertainty.intervals`); the value of each draw is given, too. The strongest evidence in
any trial is the maximum over the draws.

In a closed set the attacker knows that the speaker is enrolled. Its equal error rate is computed from scores centred
over the enrolled speakers (`evaluation.calibration.closed_set_scores`); identification is the share of utterances whose
speaker ranks first among all enrolled. Both need a trial list that is a full cross.

An attacker who has the trial list can also centre the scores of each model over its trials. That error rate is given if
it is clearly lower: then the scores have an offset for each model, as raw log-likelihoods do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation import linkage
from evaluation.calibration import closed_set_scores
from evaluation.formats import read_conversations, read_key, read_scores
from evaluation.metrics import Evidence, Metrics, WorstCase, eer, sort_scores, tag, worst_case
from evaluation.reports import (
    ClosedSet,
    Condition,
    Draw,
    EnrolledSpeaker,
    Linkability,
    draw_samples,
    ends_and_notes,
)
from evaluation.trials import (
    Key,
    Scores,
    align,
    count_conversations,
    find_rows,
    read_speakers,
    split_scores,
)
from evaluation.uncertainty import (
    AT_ONCE,
    Interval,
    Resampling,
    Sample,
    confidence_intervals,
    minima_over_attackers,
)
from spkbase.errors import DataError
from spkver.voiceprivacy.scores import Scored
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]

# for the interval of the EER in a closed set; enough to know its standard error within about 4 %
_MOST_RESAMPLES = 300
_CLEARLY = 0.02  # smaller gains may be due to chance and are not reported
_TOPS = (2, 5, 10)  # ranks up to which a target speaker counts as found
_ALL_SIZES = 500  # with more enrolled speakers, only some gallery sizes are computed
_OF_A_DRAW = ("eer", "cllr", "min_cllr", "zebra")  # metrics that are given for each draw
_BESIDE = ("notes", "intervals")
_NO_CROSS = "not given: the trial list is not a full cross of models and segments"


class _Ranked(NamedTuple):
    """Scores of a draw, with the ranks of the speakers who spoke, or notes on why there are none."""

    scores: Scores
    ranks: linkage.Ranks | None
    notes: dict[str, str]

    @property
    def evidence(self) -> Evidence:
        """The strongest evidence by ranks; NaN without ranks."""
        if self.ranks is None:
            return Evidence(float("nan"), self.notes.get("linkability", ""))
        return linkage.rank_evidence_of(self.ranks)


def assess_condition(
    condition: Scored, *, output: Path, config: EvaluationConfig, seed: int
) -> Condition:
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
    ranked = []
    for path in condition.scores.values():
        scores = read_scores(output / path)
        ranked.append(_Ranked(scores, *rank_owners(scores, key, sexes)))
    draws = [draw.scores for draw in ranked]
    tables = [draw.ranks for draw in ranked if draw.ranks is not None]
    is_ranked = len(tables) == len(draws)
    resampling = Resampling(config.resamples, seed, config.level)
    numbers = list(condition.scores)
    of_draws, metrics, intervals, notes = _metrics(
        draws, numbers, key, speakers, config.priors, resampling
    )
    apart = impostors_apart(draws, key, speakers)
    if apart:
        metrics["impostors"] = apart
    linkability = None
    complete = None
    if is_ranked:
        linkability = _link(tables, config.sizes, resampling)
        complete = tables
    closed, closed_of_draws, closed_notes = closed_set_of(
        draws, key, speakers, complete, resampling
    )
    evidence = []
    of_speakers = []
    for draw in ranked:
        if is_ranked or draw.ranks is None:
            notes |= draw.notes
        evidence.append(worst_case(*split_scores(draw.scores, key), ranks=draw.evidence))
        ranks = draw.ranks if is_ranked else None
        of_speakers.append(figures_of_speakers(draw.scores, key, sexes, ranks))
    notes |= closed_notes
    if condition.utterances > 1:
        notes["conversations"] = _told(output / condition.lists, condition.utterances)
    if condition.lacking:
        missing = " and ".join(map(str, condition.lacking))
        notes["draws"] = f"no scores of draw {missing}: means over the other {len(draws)}"
    return Condition(
        dataset=condition.dataset,
        gender=condition.gender,
        scenario=condition.scenario,
        attacker=condition.attacker,
        n_enrolled=len(np.unique(key.models)),
        n_trial_speakers=len(
            {speakers[segment] for segment in key.segment_ids[np.unique(key.segments)]}
        ),
        scores=condition.scores[1],
        key=f"{condition.lists}/trials",
        segment_speakers=f"{condition.lists}/utt2spk",
        n_target=metrics.pop("n_target"),
        n_nontarget=metrics.pop("n_nontarget"),
        metrics=metrics,
        notes=notes,
        intervals=intervals,
        linkability=linkability,
        speakers=mean_of(of_speakers),
        level=condition.level,
        content=condition.content,
        tested=condition.tested,
        closed_set=closed,
        centred=centred_by_model(draws, key, speakers, resampling, metrics["eer"]["rocch"]),
        draws=_draws(condition.scores, of_draws, closed_of_draws),
        worst_case=worst_of(evidence),
        cmc=match_by_rank(tables) if tables else None,
        utterances=condition.utterances,
    )


def _told(lists: Path, utterances: int) -> str:
    """Describe how many conversations a list has."""
    return count_conversations(read_conversations(lists), utterances)


def mean_of(values: Sequence[Any]) -> Any:
    """Average nested values element by element.

    Parameters
    ----------
    values : sequence
        The value of each draw: a number, or a mapping, tuple or record of numbers. Values that are equal in all draws
        are kept.

    Returns
    -------
    object
        Value of the same form. A value that is NaN in one draw is NaN; booleans are combined by "and"; of different
        texts, the first is kept.

    Examples
    --------
    >>> mean_of([{"eer": 0.1, "tag": "A", "n": 3}, {"eer": 0.3, "tag": "B", "n": 3}])
    {'eer': 0.2, 'tag': 'A', 'n': 3}
    """
    first = values[0]
    if isinstance(first, Mapping):
        return {name: mean_of(list(map(itemgetter(name), values))) for name in first}
    if isinstance(first, tuple):
        return tuple(mean_of(items) for items in zip(*values, strict=True))
    if isinstance(first, EnrolledSpeaker):
        return EnrolledSpeaker(**mean_of(list(map(vars, values))))
    if all(value == first for value in values[1:]):
        return first
    if isinstance(first, bool):
        return all(values)
    if isinstance(first, str):
        return first
    return sum(values) / len(values)


def shared_notes(notes: Mapping[int, Mapping[str, str]]) -> dict[str, str]:
    """Merge the notes of all draws; a note that does not hold for all draws names those for which it does.

    Examples
    --------
    >>> shared_notes({1: {"d_sys": "few bins"}, 2: {"d_sys": "few bins", "cllr": "infinite"}})
    {'d_sys': 'few bins', 'cllr': 'in draw 2: infinite'}
    """
    texts: dict[str, dict[str, list[int]]] = {}
    for number, of_draw in notes.items():
        for name, text in of_draw.items():
            texts.setdefault(name, {}).setdefault(text, []).append(number)
    merged: dict[str, list[str]] = {}
    for name, draws in texts.items():
        for text, numbers in draws.items():
            if len(numbers) < len(notes):
                text = f"in draw {' and '.join(map(str, numbers))}: {text}"
            merged.setdefault(name, []).append(text)
    return {name: "; ".join(parts) for name, parts in merged.items()}


def rank_owners(
    scores: Scores, key: Key, genders: Mapping[str, str]
) -> tuple[linkage.Ranks | None, dict[str, str]]:
    """Rank the true speaker of each trial utterance among the enrolled speakers, if the trial list allows it.

    The list must be a full cross of models and segments, or one for each sex: every utterance is then compared with all
    enrolled speakers (of its sex).
    """
    notes = {}
    if not _is_cross(key):
        blocks: dict[str, list[int]] = {}
        for row, model in enumerate(key.models.tolist()):
            blocks.setdefault(genders.get(key.model_ids[model], "?"), []).append(row)
        for rows in blocks.values():
            if not _is_cross(key.subset(np.array(rows))):
                return None, {"linkability": _NO_CROSS}
        notes["linkability"] = (
            "among enrolled speakers of the same sex: there are no cross-sex trials"
        )
    try:
        ranks = linkage.ranks_from_scores(scores, key)
    except DataError as error:
        return None, {"linkability": f"not given: {error.text}"}
    for number, note in enumerate(ranks.notes, 1):
        notes[f"linkability.{number}"] = note
    return ranks, notes


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
        (`evaluation.uncertainty.confidence`). None if the list is not a full cross.
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
    sizes = np.array([largest + 1])
    at_once = replace(resampling, level=1 - (1 - resampling.level) / AT_ONCE)
    named = linkage.linkability_over_draws(whole, sizes, resampling=resampling)
    wide = linkage.linkability_over_draws(whole, sizes, resampling=at_once)
    closed = ClosedSet(
        rate,
        Interval(float(named.values[0]), float(wide.low[0]), float(named.high[0])),
        (int(candidates.min()), int(candidates.max())),
        float(np.mean(1 / candidates)),
    )
    of_draws: list[dict[str, float] | None] = []
    for eer_of_draw, ranks in zip(rates, whole, strict=True):
        share = float(linkage.linkability_at_sizes(ranks, [largest + 1])[0])
        of_draws.append({"eer": eer_of_draw, "identification": share})
    return closed, of_draws, {}


def centred_by_model(
    draws: Sequence[Scores],
    key: Key,
    speakers: Mapping[str, str],
    resampling: Resampling,
    raw: float,
) -> Interval | None:
    """Return the equal error rate of scores centred over the trials of each model, averaged over draws.

    None if it is not clearly below the rate of the scores as they are (`raw`), or if scores are infinite.
    """
    centred = []
    for draw in draws:
        scores = draw.subset(find_rows(key, draw))
        if not np.isfinite(scores.values).all():
            return None
        means = np.bincount(scores.models, scores.values) / np.maximum(
            np.bincount(scores.models), 1
        )
        centred.append(replace(scores, values=scores.values - means[scores.models]))
    value = float(np.mean(_rates(centred, key)))
    if raw <= value + _CLEARLY:
        return None
    return _with_ends(value, centred, key, speakers, resampling)


def impostors_apart(
    draws: Sequence[Scores], key: Key, speakers: Mapping[str, str]
) -> dict[str, float]:
    """Return the equal error rates with impostors who are enrolled and with strangers, averaged over draws.

    Attackers that learn from the enrolled know the voices of the former. Empty if a list has only one kind.

    Returns
    -------
    dict of str to float
        The rates, with keys ``enrolled`` and ``strangers``.
    """
    enrolled = set(key.model_ids[np.unique(key.models)].tolist())
    known = np.array([speakers.get(name) in enrolled for name in key.segment_ids.tolist()])[
        key.segments
    ]
    kinds = {"enrolled": known & ~key.is_target, "strangers": ~known & ~key.is_target}
    aligned = [align(scores, key) for scores in draws]
    means = {}
    for kind, rows in kinds.items():
        if not rows.any():
            return {}
        rates = [eer(values[key.is_target], values[rows]) for values in aligned]
        means[kind] = float(np.mean(rates))
    return means


def _rates(draws: Sequence[Scores], key: Key) -> list[float]:
    return [eer(*split_scores(scores, key)) for scores in draws]


def _with_ends(
    value: float,
    draws: Sequence[Scores],
    key: Key,
    speakers: Mapping[str, str],
    resampling: Resampling,
) -> Interval:
    """Return the mean rate over draws and its interval, whose upper end allows for a choice of the worst attacker."""
    if resampling.resamples:
        fewer = replace(resampling, resamples=min(resampling.resamples, _MOST_RESAMPLES))
        with suppress(DataError):  # fewer than two speakers
            drawn = draw_samples(draws, key, speakers)
            least = minima_over_attackers(
                {"": drawn}, {"": [""]}, resampling=fewer, permutations=0
            )[""].interval
            return Interval(value, least.low, least.high)
    return Interval(value)


def worst_of(draws: Sequence[WorstCase]) -> WorstCase:
    """Return the strongest evidence over draws by each method; draws without evidence are ignored."""
    strongest = {}
    for name in ("pav", "gaussian", "student", "ranks"):
        strongest[name] = max(map(attrgetter(name), draws), key=_strength)
    return WorstCase(**strongest)


def _strength(evidence: Evidence) -> float:
    if np.isnan(evidence.llr):
        return -np.inf
    return evidence.llr


def match_by_rank(tables: Sequence[linkage.Ranks]) -> tuple[float, ...]:
    """Return the share of utterances whose speaker is among the first r, r = 1, 2, ..., over the ranks of all draws.

    For r beyond the size of its gallery, an utterance counts as found: galleries of women and men may differ in size.
    """
    largest = max(int(ranks.impostors.max()) + 1 for ranks in tables)
    total = np.zeros(largest)
    count = 0
    for ranks in tables:
        for size in np.unique(ranks.impostors).tolist():
            rows = ranks.impostors == size
            shares = linkage.rank_shares(ranks.subset(rows))
            total += rows.sum() * np.pad(
                np.cumsum(shares), (0, largest - len(shares)), constant_values=1.0
            )
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
    statistic = Metrics(tuple(priors))
    samples: list[Sample] = []
    intervals: dict[str, Interval] = {}
    about: dict[str, str] = {}
    try:
        samples = draw_samples(draws, key, speakers)
        if resampling.resamples:
            intervals, about = ends_and_notes(confidence_intervals(samples, statistic, resampling))
            drawn = f"{samples[0].n_effective} speakers"
            if len(samples) > 1:
                drawn += f" and {len(samples)} draws"
            about = {"intervals": resampling.text(drawn), **about}
    except DataError as error:  # fewer than two speakers: metrics without intervals
        about["intervals"] = f"none: {error.text}"
    of_draws = []
    notes = {}
    figures = []
    for position, number in enumerate(numbered):
        runs = samples[position].runs() if samples else sort_scores(draws[position], key)
        draw = statistic.evaluate(runs).to_dict()
        of_draws.append(draw)
        notes[number] = draw["notes"]
        figures.append({name: part for name, part in draw.items() if name not in _BESIDE})
    metrics = mean_of(figures)
    if len(draws) > 1:  # the category follows from the mean
        metrics["zebra"]["tag"] = tag(metrics["zebra"]["individual"])
    return of_draws, metrics, intervals, shared_notes(notes) | about


def _draws(
    files: Mapping[int, str], metrics: Sequence[Json], closed: Sequence[dict[str, float] | None]
) -> tuple[Draw, ...]:
    """Return the results of each draw from its file, its metrics and its rates in a closed set."""
    draws = []
    for (number, path), figures, rates in zip(files.items(), metrics, closed, strict=True):
        draws.append(Draw(number, path, {name: figures[name] for name in _OF_A_DRAW}, rates))
    return tuple(draws)


def _is_cross(key: Key) -> bool:
    return len(key) >= len(np.unique(key.models)) * len(np.unique(key.segments))


def _link(
    tables: Sequence[linkage.Ranks], asked: Sequence[int], resampling: Resampling
) -> Linkability:
    """Return the linkability as a function of the number of enrolled speakers, with intervals over speakers."""
    ranks = linkage.all_draws(tables)
    largest = ranks.largest_size
    sizes = [size for size in asked if size <= largest]
    if not sizes and largest <= _ALL_SIZES:
        sizes = list(range(2, largest + 1))
    elif not sizes:
        sizes = list(linkage.log_spaced_sizes(largest))
    curve = linkage.linkability_over_draws(tables, sizes, resampling=resampling)
    top_shares = {}
    for top in _TOPS:
        if top < largest:
            shares = linkage.linkability_at_sizes(ranks, sizes, top=top)
            top_shares[str(top)] = tuple(shares.tolist())
    return replace(Linkability.from_curve(curve), top=top_shares)


def figures_of_speakers(
    scores: Scores, key: Key, genders: Mapping[str, str], ranks: linkage.Ranks | None
) -> tuple[EnrolledSpeaker, ...]:
    """Return the linkability (mean over log-spaced sizes), ranks and equal error rate of each enrolled speaker."""
    values = align(scores, key)
    first = np.full(len(values), np.nan)
    linked: dict[str, float] = {}
    mean_ranks: dict[str, float] = {}
    if ranks is not None:
        linked = linkage.by_speaker(ranks.speakers, linkage.linkability_over_sizes(ranks))
        mean_ranks = linkage.by_speaker(ranks.speakers, ranks.places())
        first = linkage.first_places(values, key.models, key.segments)
    speakers = []
    for name, code in sorted(
        (key.model_ids[code], code) for code in np.unique(key.models).tolist()
    ):
        is_own = (key.models == code) & key.is_target
        is_others = (key.models == code) & ~key.is_target
        target = values[is_own]
        nontarget = values[is_others]
        rate = np.nan
        if len(target) and len(nontarget):
            rate = eer(target, nontarget)
        speaker = EnrolledSpeaker(
            name,
            gender=genders.get(name, ""),
            linkability_mean=linked.get(name, np.nan),
            rank=mean_ranks.get(name, np.nan),
            n_target=len(target),
            eer=rate,
            n_nontarget=len(nontarget),
            first=_mean(first[is_own]),
            others_first=_mean(first[is_others]),
        )
        speakers.append(speaker)
    return tuple(speakers)


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean of values; NaN if there are none."""
    if not len(values):
        return np.nan
    return float(values.mean())
