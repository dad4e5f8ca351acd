"""Where tools disagree: each one's way by name, so that its published numbers can be reproduced.

``default``
    Equal scores are pooled, nothing is added. The only one that is right for tied scores.
``bosaris``
    BOSARIS, PyBOSARIS and SIDEKIT: pools ties as well; its numbers are those of the default (to 1e-9).
``zebra-2020``
    The ZEBRA toolkit: adds up to 1e-6 to LLRs in the order of the scores and takes LLRs up to 1e-6 for 0; for
    the individual metric and the EER of the hull it puts targets above nontargets of equal score and adds Laplace's
    trials; Cllr is infinite where a posterior underflows.
``vpc2022``
    The VoicePrivacy Challenge 2022: the EER is Kaldi's on float32 scores, ZEBRA is that of 2020, and minCllr and the
    EER of the hull put targets above nontargets of equal score.
``vpc2024``
    The VoicePrivacy Challenge 2024 (and 2026): as 2022, but the EER is SpeechBrain's on float32 scores.

Not reproduced: the actual DCF of ZEBRA where a score equals the threshold, which depends on an unstable sort there.
These conventions walk through single trials, so that weights of trials must be whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evaluation.metrics.calibration import cllr_of, min_cllr_of
from evaluation.metrics.detection import hull_eer, hull_of
from evaluation.metrics.equal_error import METHODS, EqualError, equal_error_of
from evaluation.metrics.sorted_scores import Blocks, Runs, pav
from evaluation.metrics.zebra_profile import individual_of, population_of
from spkbase.errors import DataError
from spkbase.work import one_blas_thread

_RISE = 1e-6
_TAKEN_FOR_ZERO = 1e-6


@dataclass(frozen=True)
class Convention:
    """Choices of a tool.

    Parameters
    ----------
    name : str
        Stands in every output.
    eer : str
        Which equal error rate it reports.
    single : bool
        Kaldi's and SpeechBrain's rates are those of scores rounded to float32.
    untied_hull : bool
        The hull's EER puts targets above nontargets of equal score.
    laplace_hull : bool
        The hull's EER is read from blocks under Laplace's rule.
    rise : bool
        LLRs get a small rise in the order of the scores (in minCllr and ZEBRA).
    untied_cllr : bool
        minCllr puts targets above nontargets of equal score.
    underflow : bool
        Cllr is infinite where a posterior underflows.
    """

    name: str
    eer: str = "rocch"
    single: bool = False
    untied_hull: bool = False
    laplace_hull: bool = False
    rise: bool = False
    untied_cllr: bool = False
    underflow: bool = False


_VPC = Convention("", single=True, untied_hull=True, rise=True, untied_cllr=True, underflow=True)
CONVENTIONS = {
    one.name: one
    for one in (
        Convention("default"),
        Convention("zebra-2020", untied_hull=True, laplace_hull=True, rise=True, underflow=True),
        replace(_VPC, name="vpc2022", eer="kaldi"),
        Convention(
            "vpc2024", "speechbrain", single=True, untied_hull=True, rise=True, untied_cllr=True, underflow=True
        ),
        Convention("bosaris"),
    )
}


def convention(name: str) -> Convention:
    """Find a convention by its name.

    Raises
    ------
    DataError
        If there is none of that name.
    """
    if name not in CONVENTIONS:
        raise DataError(f"expected a convention among {', '.join(CONVENTIONS)}, got {name!r}")
    return CONVENTIONS[name]


def equal_errors_by(way: Convention, runs: Runs, blocks: Blocks) -> dict[str, EqualError]:
    """Give the five equal error rates under a convention; `blocks` are those of `runs`."""
    found = {method: equal_error_of(runs, method=method, blocks=blocks) for method in METHODS}
    if way.untied_hull:
        rate = hull_eer(hull_of(pav(untied(runs), laplace=way.laplace_hull)))
        found["rocch"] = EqualError(rate, found["rocch"].threshold, rate, rate)
    if way.single:
        rounded = _single(runs)
        found.update({method: equal_error_of(rounded, method=method) for method in ("kaldi", "speechbrain")})
    return found


@one_blas_thread()
def cllr_by(way: Convention, runs: Runs) -> float:
    """Cllr under a convention."""
    if not way.underflow:
        return cllr_of(runs)
    with np.errstate(over="ignore", divide="ignore"):
        costs = [
            weights[weights > 0] @ np.log2(1 + np.exp(-sign * runs.thresholds[weights > 0])) / weights.sum()
            for sign, weights in ((1, runs.target), (-1, runs.nontarget))
        ]
    return float(sum(costs) / 2)


def min_cllr_by(way: Convention, runs: Runs, blocks: Blocks) -> float:
    """Least Cllr under a convention; `blocks` are those of `runs`."""
    if not way.rise:
        return min_cllr_of(blocks)
    return cllr_of(_risen(untied(runs)) if way.untied_cllr else _risen(runs))


def population_by(way: Convention, runs: Runs, blocks: Blocks) -> float:
    """ZEBRA's population metric under a convention; `blocks` are those of `runs`."""
    if not way.rise:
        return population_of(blocks)
    llr, is_target = _trials(runs, blocks)
    told = [_disclosure(llr[is_target]).mean(), _disclosure(-llr[~is_target]).mean()]
    return float(sum(told) / np.log(2))


def individual_by(way: Convention, runs: Runs, blocks: Blocks) -> float:
    """ZEBRA's individual metric under a convention; `blocks` are those of `runs`."""
    if not way.rise:
        return individual_of(runs, blocks=blocks)
    separate = untied(runs)
    llr, _ = _trials(separate, pav(separate, laplace=True))
    return float(np.abs(llr).max() / np.log(10))


def untied(runs: Runs) -> Runs:
    """Put the nontarget trials of each run below its target trials, as if their scores were not equal."""
    both = (runs.target > 0) & (runs.nontarget > 0)
    repeats = 1 + both
    target, nontarget = (np.repeat(one, repeats) for one in (runs.target, runs.nontarget))
    first = np.cumsum(repeats)[both] - 2
    target[first], nontarget[first + 1] = 0, 0
    return Runs(np.repeat(runs.thresholds, repeats), target, nontarget)


def _single(runs: Runs) -> Runs:
    """Round the scores to float32 and merge those that became equal."""
    with np.errstate(over="ignore"):
        rounded = runs.thresholds.astype(np.float32).astype(np.float64)
    starts = np.flatnonzero(np.concatenate([[True], rounded[1:] != rounded[:-1]]))
    return Runs(rounded[starts], *(np.add.reduceat(one, starts) for one in (runs.target, runs.nontarget)))


def _trials(runs: Runs, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Give LLR and class of every single trial in the order of the scores, with a rise of up to 1e-6 along it."""
    counts = np.stack([runs.target, runs.nontarget], axis=1).ravel()
    if not (counts == np.rint(counts)).all():
        raise DataError("this convention needs whole numbers as weights", remedy="use the default convention")
    counts = counts.astype(np.int64)
    llr = np.repeat(np.repeat(blocks.per_run(), 2), counts)
    return llr + np.arange(len(llr)) * (_RISE / len(llr)), np.repeat(np.tile([True, False], len(runs)), counts)


def _risen(runs: Runs) -> Runs:
    llr, is_target = _trials(runs, pav(runs))
    return Runs(llr, is_target.astype(float), (~is_target).astype(float))


def _disclosure(llr: np.ndarray) -> np.ndarray:
    """The reference's closed form, which takes small LLRs for 0; see `evaluation.metrics.disclosure`."""
    grown = np.exp(np.minimum(llr, 700.0)) - 1
    grown = np.where(np.abs(llr) <= _TAKEN_FOR_ZERO, 1.0, grown)
    told = 0.25 + (np.minimum(llr, 700.0) / grown - 1) / (2 * grown)
    return np.where(np.abs(llr) <= _TAKEN_FOR_ZERO, 0.0, told)
