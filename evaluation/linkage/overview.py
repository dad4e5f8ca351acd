"""Disclosure overview: every measure of what scores disclose about people, with its interval over speakers.

The measures answer different questions and can disagree: an equal error rate near 50 % does not exclude that a search
among all enrolled speakers succeeds, see `docs/what_is_lost.md`. Each is a function of its own; here they are computed
from the same trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.curve import linkability_curve, mean_interval
from evaluation.linkage.disclosure import (
    rank_evidence_of,
    rank_spread,
    similarity_rank_disclosure,
)
from evaluation.linkage.galleries import matching_report
from evaluation.linkage.information import (
    LocalDisclosure,
    disclosed_information,
    summarise_disclosure,
)
from evaluation.linkage.ranks import GalleryTrials, Ranks, gallery_trials, rank_scores
from evaluation.linkage.speakers import first_shares, mostly_found
from evaluation.metrics import (
    METRICS,
    Metrics,
    WorstCase,
    empirical_epsilon,
    find_metric,
    worst_case,
)
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Speakers,
    UnknownSpeakersError,
    find_speakers,
    group_trials,
)
from evaluation.uncertainty import (
    Fairness,
    Interval,
    Resampling,
    Sample,
    closed_search_note,
    confidence_intervals,
    group_fairness,
    largest_rate,
    sample_from,
    to_report,
)
from spkbase.progress import verbosely
from spkbase.showing import one_line

SIZES = (10, 100, 1000)
"""Sizes of the gallery at which linkability is reported, beside the whole one."""

RATES = ("0.01", "0.001")
"""False-accept rates at which the true-accept rate and epsilon are reported."""


@one_line
@dataclass(frozen=True, eq=False)
class Matching:
    """Results of an attacker with side information, among the speakers who match it.

    Attributes
    ----------
    search : dict
        How often the target speaker ranks first among the enrolled speakers who match, and how many match; see
        `evaluation.linkage.matching_report`.
    side_bits : Interval
        Mean of log2(N / N_match): disclosure by the side information alone, in bits.
    lid : LocalDisclosure
        Information disclosed by the voice among those who match.
    alid_total : Interval
        ALID of both: the mean of log2(N p_target), in bits.
    """

    search: dict[str, Any]
    side_bits: Interval
    lid: LocalDisclosure
    alid_total: Interval


@one_line
@dataclass(frozen=True, eq=False)
class DisclosureOverview:
    """All measures of disclosure of a list of scores.

    Attributes
    ----------
    n_enrolled, n_recordings, n_speakers, n_trials : int
        Enrolled speakers, tested recordings with their speakers, and trials.
    eer : Interval
        Equal error rate.
    linkability : dict of int to Interval
        By number of enrolled speakers, N; the largest is the whole gallery. By chance it is 1 / N.
    lid : LocalDisclosure
        Local information disclosure.
    rank_disclosure : dict of str to float
        Similarity rank disclosure with the rank spread; empty where galleries differ in size.
    worst_case : WorstCase
        The strongest evidence of any trial.
    tpr_at_fpr : dict of str to dict
        By the bound on the false-accept rate: `true_accept`, and `epsilon` with its lower bound.
    worst_speaker : dict
        The speaker who ranks first most often, after subtraction of how often other people's recordings rank that model
        first, with the interval of the largest true value.
    mostly_found : dict
        Share of speakers who rank first in more than half of their recordings after that subtraction.
    resampling : Resampling
        Resampling for the intervals.
    side : Matching, optional
        Results with side information, if it is given.
    fairness : Fairness, optional
        Comparison of groups, if they are given.
    notes : list of str
        Remarks that a reader should know.
    """

    n_enrolled: int
    n_recordings: int
    n_speakers: int
    n_trials: int
    eer: Interval
    linkability: dict[int, Interval]
    lid: LocalDisclosure
    rank_disclosure: dict[str, float]
    worst_case: WorstCase
    tpr_at_fpr: dict[str, dict[str, Any]]
    worst_speaker: dict[str, Any]
    mostly_found: dict[str, Any]
    resampling: Resampling
    side: Matching | None = None
    fairness: Fairness | None = None
    notes: list[str] = field(default_factory=list, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the report of ``spkver-eval disclosure --json``."""
        return to_report(self)


@verbosely
def disclosure_overview(
    scores: Scores,
    key: Key,
    *,
    background: tuple[Scores, Key] | None = None,
    side: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    column: str = "group",
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    bootstrap_by: Literal["speaker", "id"] = "speaker",
    sizes: Sequence[int] = SIZES,
    resampling: Resampling | None = None,
    missing: Missing = "error",
    jobs: int | None = 1,
    verbose: bool = True,
) -> DisclosureOverview:
    """Compute what scores disclose about the people who speak.

    Parameters
    ----------
    scores, key : Scores, Key
        Recordings against enrolled speakers, joined by id pair.
    background : (Scores, Key), optional
        Trials of other speakers, to calibrate local information disclosure; by default each group of speakers is
        calibrated on the others.
    side : mapping of str to str, optional
        What the attacker knows about each id or speaker; see `evaluation.trials.match_sides`.
    metadata : mapping of str to str, optional
        Group of each id or speaker, such as their sex, for a comparison of groups.
    column : str
        Name of the grouping.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `evaluation.trials.find_speakers`.
    bootstrap_by : {"speaker", "id"}
        What intervals resample; see `evaluation.uncertainty.sample_from`. There are no intervals if ids may not be
        speakers.
    sizes : sequence of int
        Sizes of the gallery for linkability; those beyond the gallery are left out, with a note.
    resampling : Resampling, optional
        Resampling of the speakers for the intervals; `Resampling()` by default.
    missing : {"error", "drop"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`.
    jobs : int, optional
        Number of workers; all cores if None.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    DisclosureOverview
        `DisclosureOverview.to_dict` gives the report of ``spkver-eval disclosure --json``.

    Raises
    ------
    DataError
        If scores and key do not fit together, a recording has several target trials, no recording has one, or a score
        is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> models, segments = np.divmod(np.arange(400), 20)
    >>> names = [f"s{number:02d}" for number in range(20)]
    >>> ids = [names[model] for model in models], [f"{names[segment]}/1" for segment in segments]
    >>> key = Key.from_ids(*ids, models == segments)
    >>> scores = Scores.from_ids(*ids, rng.normal(size=400) + 2 * (models == segments))
    >>> overview = disclosure_overview(scores, key, resampling=Resampling(100))
    >>> overview.linkability[10].value > 0.5, overview.lid.mean.low > 0
    (True, True)
    """
    resampling = resampling or Resampling()
    maps = {"model_speakers": model_speakers, "segment_speakers": segment_speakers}
    notes: list[str] = []
    try:
        sample, joined = sample_from(
            scores, key, bootstrap_by=bootstrap_by, missing=missing, **maps
        )
    except UnknownSpeakersError as error:
        notes.append(f"no intervals: {error.text}")
        resampling = replace(resampling, resamples=0)
        sample, joined = sample_from(scores, key, bootstrap_by="id", missing=missing, **maps)
    speakers = None
    if model_speakers is not None or segment_speakers is not None:
        speakers = find_speakers(key, **maps)
    trials = gallery_trials(scores, key, missing=missing, speakers=speakers)
    ((ranks, _),) = rank_scores(scores, key, [None], missing=missing, speakers=speakers)
    known = None
    if background is not None:
        known = gallery_trials(*background, missing=missing)
    information = disclosed_information(trials, background=known, resampling=resampling)
    values = np.empty(len(sample))
    values[sample.order] = sample.scores
    notes += [*trials.notes, *closed_search_note(values, joined, sample.runs()).values()]
    matching = None
    if side is not None:
        searched = gallery_trials(scores, key, missing=missing, speakers=speakers, side=side)
        ((matched, _),) = rank_scores(
            scores, key, [None], missing=missing, speakers=speakers, side=side
        )
        matching = _matching(searched, matched, information.sizes, known, resampling)
    fairness = None
    if metadata is not None:
        groups, names = group_trials(joined, metadata, speakers=find_speakers(joined, **maps))
        fairness = group_fairness(
            sample, groups, names, resampling=resampling, column=column, jobs=jobs
        )
    rates, accepted = _rates(sample, resampling, jobs)
    largest = ranks.largest_size
    if max(sizes, default=0) > largest:
        notes.append(f"no linkability among more than the {largest:,} speakers of the gallery")
    worst_speaker, mostly = _people(trials, resampling)
    return DisclosureOverview(
        n_enrolled=largest,
        n_recordings=len(ranks),
        n_speakers=len(np.unique(ranks.speakers)),
        n_trials=len(sample),
        eer=rates["eer.rocch"],
        linkability=_linkability(ranks, sizes, resampling),
        lid=information,
        rank_disclosure=_rank_disclosure(ranks),
        worst_case=worst_case(sample.runs(), ranks=rank_evidence_of(ranks)),
        tpr_at_fpr=accepted,
        worst_speaker=worst_speaker,
        mostly_found=mostly,
        resampling=resampling,
        side=matching,
        fairness=fairness,
        notes=notes,
    )


def _linkability(ranks: Ranks, sizes: Sequence[int], resampling: Resampling) -> dict[int, Interval]:
    """Return linkability among the requested numbers of speakers, and among all."""
    largest = ranks.largest_size
    fitting = sorted({size for size in sizes if size <= largest} | {largest})
    curve = linkability_curve(ranks, fitting, resampling=resampling)
    linkability = {}
    for row, size in enumerate(fitting):
        low = float(curve.low[row])
        high = float(curve.high[row])
        linkability[size] = Interval(float(curve.values[row]), low, high)
    return linkability


def _rank_disclosure(ranks: Ranks) -> dict[str, Any]:
    """Return the rank disclosure with its spread; empty if galleries differ in size."""
    if ranks.impostors.min() < ranks.impostors.max():
        return {}
    disclosed = similarity_rank_disclosure(ranks)
    spread = rank_spread(disclosed["alpha"], disclosed["beta"], ranks.largest_size - 1)
    return {**disclosed, "rank_spread": spread}


def _rates(
    sample: Sample, resampling: Resampling, jobs: int | None
) -> tuple[dict[str, Interval], dict[str, dict[str, Any]]]:
    """Return the equal error rate, and true-accept rates with their epsilon."""
    rows = []
    for name, points in (("eer", ("rocch",)), ("tpr_at_fpr", RATES)):
        row, _ = find_metric(name, METRICS)
        assert row is not None
        rows.append(replace(row, points=points))
    statistic = Metrics(metrics=tuple(rows))
    scores = sample.runs()
    rates = {name: Interval(value) for name, value in statistic(scores).items()}
    if resampling.resamples:
        rates = confidence_intervals(sample, statistic, resampling, jobs=jobs)
    accepted = {}
    for rate in RATES:
        epsilon = empirical_epsilon(scores, fpr=float(rate), level=resampling.level)
        accepted[rate] = {
            "true_accept": rates[f"tpr_at_fpr.{rate}"],
            "epsilon": Interval(epsilon.value, epsilon.low, np.inf),
            "false_accept_rate": epsilon.accepted.false_accept_rate,
            "resolved": epsilon.accepted.resolved,
        }
    return rates, accepted


def _people(trials: GalleryTrials, resampling: Resampling) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the speaker found most often, and the number of speakers found in most of their recordings."""
    shares = first_shares(trials)
    index, largest = largest_rate(
        shares.own * shares.n_own, shares.n_own, beyond=shares.others, level=resampling.level
    )
    worst = {
        "speaker": shares.speakers[index],
        "beyond_everybody": largest,
        "own_first": float(shares.own[index]),
        "others_first": float(shares.others[index]),
        "n_recordings": int(shares.n_own[index]),
    }
    is_found = mostly_found(shares)
    share = mean_interval(is_found.astype(float), resampling)
    return worst, {"n_found": int(is_found.sum()), "share": share}


def _matching(
    trials: GalleryTrials,
    ranks: Ranks,
    sizes: NDArray[np.int64],
    background: GalleryTrials | None,
    resampling: Resampling,
) -> Matching:
    """Return the results among the speakers who match; sizes are those of the whole galleries, in the same order."""
    information = disclosed_information(trials, background=background, resampling=resampling)
    side_bits = np.log2(sizes / information.sizes)
    replicates = information.replicates + side_bits
    total = summarise_disclosure(information.bits + side_bits, replicates, resampling)
    known = np.where(np.isnan(replicates), np.nan, side_bits)
    by_side = summarise_disclosure(side_bits, known, resampling)
    return Matching(
        matching_report(ranks, resampling),
        by_side["mean"],
        information,
        total["mean"],
    )
