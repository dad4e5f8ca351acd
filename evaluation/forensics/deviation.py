"""devPAV: how far likelihood ratios are from those that isotonic regression makes of them.

Isotonic regression (pool adjacent violators, PAV) gives each score the log-likelihood ratio that the trials support.
In the plane of ratios before and after it, calibrated ratios lie on the diagonal. devPAV is the area between the
diagonal and the line through the points of the trials, divided by the length of the line on the axis of the ratios
before: the mean distance from calibration, in units of log10 [1]_. Points where the ratio after is infinite, outside
the overlap of the classes, do not count.

It is above 0 for calibrated ratios too, since isotonic regression follows chance: the more, the fewer the trials.

References
----------
.. [1] P. Vergeer et al., "Measuring calibration of likelihood-ratio systems; a comparison of four metrics, including a
   new metric devPAV", Forensic Science International 321, 2021.
"""

from __future__ import annotations

import numpy as np

from evaluation.metrics import GivenScores, OtherScores, sort_ratios

LN10 = float(np.log(10.0))


def dev_pav(
    target: GivenScores, nontarget: OtherScores = None, labels: OtherScores = None
) -> float:
    """Return devPAV, the mean distance of log-likelihood ratios from calibration, in units of log10.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Natural LLRs.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.

    Returns
    -------
    float
        0 or more; infinite if an infinite LLR is misleading, or if all LLRs are infinite; NaN if the scores separate
        the classes, so that nothing overlaps.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> ratio = np.log(2)  # supported by twice as many target trials, and half as many
    >>> round(dev_pav([ratio, ratio, -ratio], [ratio, -ratio, -ratio]), 9)
    0.0
    >>> round(dev_pav([ratio + LN10, ratio + LN10, LN10 - ratio], [ratio + LN10, LN10 - ratio, LN10 - ratio]), 9)
    1.0
    """
    scores = sort_ratios(target, nontarget, labels)
    after = scores.blocks.per_score() / LN10
    overlap = np.isfinite(after)
    if not overlap.any():
        return float("nan")
    before = scores.thresholds[overlap] / LN10
    if not np.isfinite(before).all():
        return float("inf")
    gap = after[overlap] - before
    if len(gap) == 1:
        return float(abs(gap[0]))
    width = np.diff(before)
    low = gap[:-1]
    high = gap[1:]
    both = np.abs(low) + np.abs(high)
    area = width * both / 2
    crosses = low * high < 0  # two triangles, on either side of the diagonal
    area[crosses] = (width * (low**2 + high**2))[crosses] / (2 * both[crosses])
    return float(area.sum() / width.sum())
