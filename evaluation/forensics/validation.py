"""Validation of a system that gives likelihood ratios, by the measures of the consensus of 2021 [1]_.

The cost Cllr and the Tippett plot say how good the ratios of trials under the conditions of a case are, intervals over
speakers how sure that is. They are accompanied by what calibration could save, how often and how strongly evidence is
misleading, and which ratios so many trials can support.

References
----------
.. [1] G. Morrison et al., "Consensus on validation of forensic voice comparison", Science and Justice 61, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from evaluation.forensics.bounds import Bounds, elub, invariance_bounds
from evaluation.forensics.deviation import LN10, dev_pav
from evaluation.metrics import (
    FRACTION,
    METRICS,
    Evaluation,
    Method,
    Metric,
    Metrics,
    SortedScores,
    Unit,
    sort_ratios,
)
from evaluation.trials import Key, Missing, Scores, Speakers
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from, with_intervals
from spkbase.errors import DataError

_LOG10 = Unit("log10 LR", ".2f")
_COSTS = tuple(row for row in METRICS if row.name in ("cllr", "min_cllr", "calibration_loss"))
_RATE = Method("logit", lower=0, upper=1, of_errors=True)
_SIDES = ("target", "nontarget")
_ENDS = ("lower", "upper")


def misleading(scores: SortedScores, side: str) -> float:
    """Return the share of misleading log-likelihood ratios: of target trials below 0, or of nontarget trials above 0.

    Parameters
    ----------
    scores : SortedScores
    side : {"target", "nontarget"}

    Examples
    --------
    >>> from evaluation.metrics import sort_scores
    >>> misleading(sort_scores([1.0, -1.0], [0.0, -2.0]), "target")
    0.5
    """
    if side == "target":
        return scores.error_rates(int(np.searchsorted(scores.thresholds, 0.0)))[0]
    return scores.error_rates(int(np.searchsorted(scores.thresholds, 0.0, side="right")))[1]


def logarithms_of(base: float) -> str:
    """Return the name of logarithms of a base.

    Examples
    --------
    >>> logarithms_of(10.0)
    'logarithms of base 10'
    """
    if base == math.e:
        return "natural logarithms"
    return f"logarithms of base {base:g}"


def _bound(bounds: Callable[[SortedScores], Bounds], scores: SortedScores, side: str) -> float:
    return float(getattr(bounds(scores), side) / LN10)


RESAMPLED = (
    *_COSTS,
    replace(METRICS[0], points=("rocch",), title="EER ({})"),
    Metric(
        "misleading", misleading, "misleading, {} trials", FRACTION, method=_RATE, points=_SIDES
    ),
)
"""Measures that have an interval."""

OTHERS = (
    Metric("dev_pav", dev_pav, "devPAV (log10)", Unit("log10 LR", ".3f")),
    Metric("elub", partial(_bound, elub), "ELUB, {} log10 LR", _LOG10, points=_ENDS),
    Metric(
        "invariance",
        partial(_bound, invariance_bounds),
        "invariance, {} log10 LR",
        _LOG10,
        points=_ENDS,
    ),
)
"""Measures without one: of a sample's extremes, or biased in resamples."""


def validate(
    scores: Scores,
    key: Key,
    *,
    speakers: Speakers | None = None,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    bootstrap_by: Literal["speaker", "id"] = "speaker",
    resampling: Resampling | None = None,
    missing: Missing = "error",
    llr_base: float = math.e,
) -> Evaluation:
    """Return the validation of log-likelihood ratios, with intervals over speakers.

    Parameters
    ----------
    scores, key : Scores, Key
        LLRs, joined by id pair.
    speakers, model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `evaluation.linkage.per_speaker`.
    bootstrap_by : {"speaker", "id"}
        With "id", each id without a speaker counts as a speaker, whatever it looks like.
    resampling : Resampling, optional
        Resampling of the speakers; `Resampling()` by default, and ``Resampling(0)`` for no intervals.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score.
    llr_base : float
        Base of the LLRs, such as 10; natural ones by default.

    Returns
    -------
    Evaluation
        Cllr, its minimum and the loss in bits; ``misleading``, the shares of target trials below 0 and of nontarget
        trials above 0; and ``dev_pav``, ``elub`` and ``invariance`` in units of log10.

    Raises
    ------
    DataError
        If scores and key do not fit together, ids may not be speakers, or the base is not above 1.
    """
    resampling = resampling or Resampling()
    sample, _ = sample_from(
        scores,
        key,
        model_speakers=speakers if model_speakers is None else model_speakers,
        segment_speakers=speakers if segment_speakers is None else segment_speakers,
        bootstrap_by=bootstrap_by,
        missing=missing,
    )
    if not llr_base > 1:
        raise DataError(f"expected a base of log-likelihood ratios above 1, got {llr_base}")
    sample = replace(sample, scores=sample.scores * math.log(llr_base))
    sort_ratios(sample.scores, labels=sample.is_target)  # warns of scores that cannot be ratios
    result = Metrics(metrics=(*RESAMPLED, *OTHERS)).evaluate(sample.runs())
    result.notes["base"] = f"read as {logarithms_of(llr_base)}"
    if not resampling.resamples:
        return result
    intervals = confidence_intervals(sample, Metrics(metrics=RESAMPLED), resampling)
    return with_intervals(result, intervals, resampling.text(f"{sample.n_units} speakers"))
