"""Conventions of tools that disagree, by name, so that their published numbers can be reproduced.

``default``
    Equal scores are pooled, nothing is added. The only one that is right for tied scores.
``bosaris``
    BOSARIS, PyBOSARIS and SIDEKIT: pools ties as well; its numbers are those of the default (to 1e-9).
``zebra-2020``
    The ZEBRA toolkit: adds up to 1e-6 to LLRs in the order of the scores and treats LLRs up to 1e-6 as 0; for
    the individual metric and the EER of the hull it puts targets above nontargets of equal score and adds Laplace's
    trials; Cllr is infinite where a posterior underflows.
``vpc2022``
    The VoicePrivacy Challenge 2022: the EER is Kaldi's on float32 scores, ZEBRA is that of 2020, and minCllr and the
    EER of the hull put targets above nontargets of equal score.
``vpc2024``
    The VoicePrivacy Challenge 2024 (and 2026): as 2022, but the EER is SpeechBrain's on float32 scores.

Not reproduced: the actual DCF of ZEBRA where a score equals the threshold, which depends on an unstable sort there.
These conventions process trials one by one, so weights of trials must be whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from evaluation.metrics.calibration import cllr
from evaluation.metrics.detection import crossing_point, eer, equal_error
from evaluation.metrics.sorted_scores import Blocks, SortedScores, hull_of
from spkbase.errors import DataError
from spkbase.work import one_blas_thread

_RISE = 1e-6
_TAKEN_FOR_ZERO = 1e-6


def _eer_of_zebra(scores: SortedScores, reading: str) -> float:
    """Return ZEBRA's equal error rate: that of the hull without ties, under Laplace's rule."""
    if reading != "rocch":
        return eer(scores, method=reading)
    hull = hull_of(scores.untied.laplace_blocks)
    return crossing_point(hull.p_miss, hull.p_fa)


def _eer_of_voiceprivacy(scores: SortedScores, reading: str) -> float:
    """Return VoicePrivacy's equal error rates: of the hull without ties, of Kaldi, and of SpeechBrain in float32."""
    if reading == "rocch":
        return eer(scores.untied)
    if reading in ("kaldi", "speechbrain"):
        scores = scores.in_single_precision
    return eer(scores, method=reading)


def _threshold_of_voiceprivacy(scores: SortedScores, *, reading: str) -> float:
    return equal_error(scores.in_single_precision, method=reading).threshold


@one_blas_thread()
def _cllr_with_underflow(scores: SortedScores) -> float:
    """Return Cllr in bits, infinite where a posterior underflows."""
    with np.errstate(over="ignore", divide="ignore"):
        costs = [
            weights[weights > 0]
            @ np.log2(1 + np.exp(-sign * scores.thresholds[weights > 0]))
            / weights.sum()
            for sign, weights in ((1, scores.target), (-1, scores.nontarget))
        ]
    return float(sum(costs) / 2)


def _min_cllr_with_rise(scores: SortedScores) -> float:
    """Return the least Cllr in bits, of LLRs that rise slightly in the order of the trials."""
    llr, is_target = _trials(scores, scores.blocks)
    return cllr(SortedScores(llr, is_target.astype(float), (~is_target).astype(float)))


def _min_cllr_untied(scores: SortedScores) -> float:
    """Return the least Cllr in bits, with targets above nontargets of equal score."""
    return _min_cllr_with_rise(scores.untied)


def _population_with_rise(scores: SortedScores) -> float:
    """Return ZEBRA's population metric in bits, of LLRs that rise slightly in the order of the trials."""
    llr, is_target = _trials(scores, scores.blocks)
    disclosed = [_disclosure(llr[is_target]).mean(), _disclosure(-llr[~is_target]).mean()]
    return float(sum(disclosed) / np.log(2))


def _individual_untied(scores: SortedScores) -> float:
    """Return ZEBRA's individual metric, with targets above nontargets of equal score and slightly rising LLRs."""
    llr, _ = _trials(scores.untied, scores.untied.laplace_blocks)
    return float(np.abs(llr).max() / np.log(10))


def _trials(scores: SortedScores, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return the LLR of each trial, each slightly above the one before, and whether it is a target trial."""
    counts = np.stack([scores.target, scores.nontarget], axis=1).ravel()
    if not (counts == np.rint(counts)).all():
        raise DataError(
            "this convention needs whole numbers as weights", remedy="use the default convention"
        )
    counts = counts.astype(np.int64)
    llr = np.repeat(np.repeat(blocks.per_score(), 2), counts)
    return llr + np.arange(len(llr)) * (_RISE / len(llr)), np.repeat(
        np.tile([True, False], len(scores)), counts
    )


def _disclosure(llr: np.ndarray) -> np.ndarray:
    """Return the disclosure at each LLR in nats; exactly 0 if the LLR counts as 0."""
    grown = np.exp(np.minimum(llr, 700.0)) - 1
    grown = np.where(np.abs(llr) <= _TAKEN_FOR_ZERO, 1.0, grown)
    disclosed = 0.25 + (np.minimum(llr, 700.0) / grown - 1) / (2 * grown)
    return np.where(np.abs(llr) <= _TAKEN_FOR_ZERO, 0.0, disclosed)


_ZEBRA: dict[str, Callable[..., Any]] = {
    "eer": _eer_of_zebra,
    "cllr": _cllr_with_underflow,
    "min_cllr": _min_cllr_with_rise,
    "zebra.population": _population_with_rise,
    "zebra.individual": _individual_untied,
}
_VOICEPRIVACY = _ZEBRA | {"eer": _eer_of_voiceprivacy, "min_cllr": _min_cllr_untied}
CONVENTIONS = {
    "default": {},
    "zebra-2020": _ZEBRA,
    "vpc2022": _VOICEPRIVACY
    | {"threshold_at_eer": partial(_threshold_of_voiceprivacy, reading="kaldi")},
    "vpc2024": _VOICEPRIVACY
    | {"threshold_at_eer": partial(_threshold_of_voiceprivacy, reading="speechbrain")},
    "bosaris": {},
}
"""What each convention computes in another way than the table of metrics says, by the name of the metric."""
