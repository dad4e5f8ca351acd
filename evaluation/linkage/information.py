"""Local information disclosure (LID): how many bits a recording reveals about its speaker among all enrolled ones.

Definition
----------
A *row* is a recording with its scores s_j against N enrolled speakers, one of whom is its target speaker [1]_:

    z_j = (s_j - mean of s) / standard deviation of s        over the N enrolled
    p_j = exp(w z_j) / (exp(w z_1) + ... + exp(w z_N))
    LID = log2(N p_target)    bits

Somebody who knows nothing gives each of the enrolled 1 / N. LID is 0 if the recording changes nothing, log2(N) if it
names the target speaker with certainty, and negative if it points to somebody else. z is free of the level and of the
spread of a row, on which an equal error rate of all trials depends and a search for the speaker of one recording does
not. Equal scores of all enrolled say nothing: z is 0.

The slope w turns z into log-likelihood ratios w z + b, by logistic regression of target against nontarget trials; b
cancels. It is trained on background speakers, or else for each of 20 groups of speakers on the others' recordings. A
ridge of 1 over the number of trials keeps it finite where the scores make no error.

Summaries: ALID is the mean over rows; PDR and NDR are the shares of rows with LID > 0 and <= 0, LID+ and LID- their
means, LID_max the largest LID.

**One slope serves all rows.** Where few people are disclosed and the others are not, w is small and LID_max is far
below what is disclosed about these few: for the worst case see `evaluation.metrics.worst_case` by ranks.

Smaller galleries: `disclosure_curve` draws impostors at random, and calibrates at each size anew, since z depends on
the size.

Intervals are those of a delete-a-group jackknife [2]_: without each of the 20 groups of speakers (without each speaker
if they are fewer) the slope is trained and everything is computed again. So they include the uncertainty of the slope,
on which LID+ depends most. Student's t has as many degrees of freedom as there are groups, minus one; LID+ is taken on
a log scale, PDR on a logit scale.

References
----------
.. [1] Sterns, Drossos, Fernandes, Bäckström and Palamidessi, arXiv 2607.06259, 2026.
.. [2] P. Kott, "Delete-a-group jackknife", Journal of Official Statistics 17, 2001.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.calibration import Affine, fit_affine
from evaluation.embeddings import speaker_folds
from evaluation.linkage.ranks import GalleryTrials
from evaluation.metrics import Method
from evaluation.uncertainty import Interval, Resampling, jackknife_interval, to_report
from spkbase.errors import DataError, few
from spkbase.progress import progress
from spkbase.rounding import is_negligible
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

logger = logging.getLogger(__name__)

FOLDS = 20
"""Groups of speakers, each calibrated by the others where there are no background speakers."""

_SCALES = {
    "mean": Method("identity"),
    "share": Method("logit", lower=0, upper=1),
    "gain": Method("log", lower=0),
    "loss": Method("identity"),
}


def z_normalised(values: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
    """Return scores with mean 0 and standard deviation 1 in each row; 0 if all scores of a row are equal.

    Parameters
    ----------
    values : array_like of float of shape (n,)
        Finite scores.
    rows : array_like of int of shape (n,)
        Row of each, from 0.

    Examples
    --------
    >>> z_normalised([1.0, 3.0, 5.0, 5.0], [0, 0, 1, 1])
    array([-1.,  1.,  0.,  0.])
    """
    scores = np.asarray(values, np.float64)
    codes = np.asarray(rows)
    counts = np.bincount(codes)
    mean = np.bincount(codes, scores) / counts
    centred = scores - mean[codes]
    spread = np.sqrt(np.bincount(codes, centred * centred) / counts)
    says_nothing = is_negligible(spread, mean)
    spread[says_nothing] = 1.0
    z: NDArray[np.float64] = centred / spread[codes]
    z[says_nothing[codes]] = 0.0
    return z


@one_blas_thread()
def disclosure_slope(values: ArrayLike, rows: ArrayLike, is_target: ArrayLike) -> float:
    """Return the slope w of log-likelihood ratios w z + b, by logistic regression with a ridge of 1 / n.

    Parameters
    ----------
    values, rows : array_like of shape (n,)
        See `z_normalised`.
    is_target : array_like of bool of shape (n,)
        Whether each is the score of the target speaker.

    Returns
    -------
    float
        0 where scores say nothing; negative where target speakers score low.

    Raises
    ------
    DataError
        If a class has no trial.
    """
    codes = np.asarray(rows)
    searched = np.bincount(codes)[codes] > 1  # rows with one enrolled speaker compare nothing
    trained = _calibrated(
        z_normalised(values, codes)[searched], np.asarray(is_target, bool)[searched]
    )
    return trained.weights[0]


def _calibrated(
    z: NDArray[np.float64], truth: NDArray[np.bool_], start: Affine | None = None
) -> Affine:
    """Return the regression on normalised scores; a map to 0 where all are 0."""
    if not z.any():
        return Affine((0.0,), 0.0, 0.5)
    if not 0 < truth.sum() < len(truth):
        raise DataError("expected target and nontarget trials to calibrate with, got one class")
    prior = float(truth.mean())
    return fit_affine(z[truth], z[~truth], prior=prior, ridge=1 / len(z), start=start)


@one_blas_thread()
def crossed_slopes(
    values: ArrayLike, rows: ArrayLike, is_target: ArrayLike, folds: ArrayLike
) -> NDArray[np.float64]:
    """Return for each group of speakers the slope fitted to the rows of the other groups.

    Parameters
    ----------
    values, rows, is_target : array_like of shape (n,)
        See `disclosure_slope`.
    folds : array_like of int of shape (R,)
        Group of each row, from 0.

    Returns
    -------
    ndarray of float64 of shape (G,)
    """
    codes = np.asarray(rows)
    searched = np.bincount(codes)[codes] > 1
    z = z_normalised(values, codes)[searched]
    truth = np.asarray(is_target, bool)[searched]
    groups = np.asarray(folds)
    group_of_trial = groups[codes[searched]]
    everybody = None
    if 0 < truth.sum() < len(truth):
        everybody = _calibrated(z, truth)  # a start from which two or three steps suffice
    slopes = []
    for group in range(groups.max() + 1):
        others = group_of_trial != group
        slopes.append(_calibrated(z[others], truth[others], everybody).weights[0])
    return np.array(slopes)


def local_disclosure(
    values: ArrayLike, rows: ArrayLike, is_target: ArrayLike, slope: ArrayLike
) -> NDArray[np.float64]:
    """Return the local information disclosure of each row in bits; see the module.

    Parameters
    ----------
    values, rows, is_target : array_like of shape (n,)
        Finite scores, the row of each from 0, and whether it is that of the target speaker: one in each row.
    slope : float, or array_like of float of shape (R,)
        Slope of the log-likelihood ratios, for all rows or for each; see `disclosure_slope`.

    Returns
    -------
    ndarray of float64 of shape (R,)

    Raises
    ------
    DataError
        If a score is not finite, or a row does not have exactly one target speaker.

    Examples
    --------
    >>> local_disclosure([2.0, 1.0, 0.0, 1.0], [0, 0, 1, 1], [True, False, True, False], 50.0).round(2)
    array([   1.  , -143.27])
    """
    scores = np.asarray(values, np.float64)
    codes = np.asarray(rows)
    truth = np.asarray(is_target, bool)
    if not np.isfinite(scores).all():
        raise DataError("expected finite scores", remedy="leave out trials without a score")
    counts = np.bincount(codes)
    n_targets = np.bincount(codes[truth], minlength=len(counts))
    if (n_targets != 1).any():
        wrong = int(np.argmax(n_targets != 1))
        raise DataError(f"expected one target trial in each row, got {n_targets[wrong]} in {wrong}")
    return _bits_of(z_normalised(scores, codes), codes, truth, slope)


def _bits_of(
    z: NDArray[np.float64], codes: NDArray[Any], truth: NDArray[np.bool_], slope: ArrayLike
) -> NDArray[np.float64]:
    """Return the local information disclosure of each row from normalised scores."""
    counts = np.bincount(codes)
    ratios = np.broadcast_to(np.asarray(slope, np.float64), len(counts))[codes]
    ratios = ratios * z
    highest = np.full(len(counts), -np.inf)
    np.maximum.at(highest, codes, ratios)
    total = highest + np.log(np.bincount(codes, np.exp(ratios - highest[codes])))
    own = np.empty(len(counts))
    own[codes[truth]] = ratios[truth]
    bits: NDArray[np.float64] = np.log2(counts) + (own - total) / np.log(2)
    return bits


@one_line
@dataclass(frozen=True, eq=False)
class LocalDisclosure(Tabular):
    """Local information disclosure of recordings, with its summaries.

    Attributes
    ----------
    bits : ndarray of float64 of shape (R,)
        LID of each row.
    sizes : ndarray of int64 of shape (R,)
        Number N of enrolled speakers in each row.
    speakers, segments : ndarray of str of shape (R,)
        Target speaker and id of each row.
    replicates : ndarray of float64 of shape (G, R)
        LID with the slope trained without each group of speakers, whose own rows are NaN.
    slope : float
        Slope of the log-likelihood ratios, the mean over rows.
    mean : Interval
        ALID, in bits.
    share : Interval
        PDR, the share of rows with LID > 0.
    gain, loss : Interval
        LID+ and LID-, the means of rows with LID > 0 and <= 0, in bits; NaN without such rows.
    largest : float
        LID_max, in bits; it grows with the number of rows, so it has no interval.
    """

    bits: NDArray[np.float64]
    sizes: NDArray[np.int64]
    speakers: NDArray[np.object_] = field(repr=False)
    segments: NDArray[np.object_] = field(repr=False)
    replicates: NDArray[np.float64] = field(repr=False)
    slope: float
    mean: Interval
    share: Interval
    gain: Interval
    loss: Interval
    largest: float

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each recording."""
        columns = {"segment": self.segments, "speaker": self.speakers}
        return columns | {"bits": self.bits, "enrolled": self.sizes}

    def to_dict(self) -> dict[str, Any]:
        """Return the summaries by their published names, for a report."""
        return to_report(
            {
                "alid": self.mean,
                "pdr": self.share,
                "ndr": 1 - self.share.value,
                "lid_plus": self.gain,
                "lid_minus": self.loss,
                "lid_max": self.largest,
                "at_most": float(np.log2(self.sizes.max())),
                "slope": self.slope,
            }
        )


@one_blas_thread()
def disclosed_information(
    trials: GalleryTrials,
    *,
    background: GalleryTrials | None = None,
    resampling: Resampling | None = None,
) -> LocalDisclosure:
    """Return the local information disclosure of each row of trials, and its summaries.

    Parameters
    ----------
    trials : GalleryTrials
        Scores of recordings against all enrolled speakers; see `evaluation.linkage.gallery_trials`.
    background : GalleryTrials, optional
        Scores of other speakers to train the calibration; by default each group of speakers is calibrated on the
        others.
    resampling : Resampling, optional
        Resampling of the speakers for the intervals; `Resampling()` by default.

    Raises
    ------
    DataError
        If a score is not finite, or there is too little to calibrate with.
    """
    resampling = resampling or Resampling()
    arrays = (trials.values, trials.rows, trials.is_target)
    n_groups = min(FOLDS, len(set(trials.owners)))
    if n_groups < 2:
        raise DataError("expected at least 2 tested speakers, got 1")
    folds = speaker_folds(trials.owners, n_groups, seed=resampling.seed)
    if background is None:
        slopes = crossed_slopes(*arrays, folds)
    else:
        slope = disclosure_slope(background.values, background.rows, background.is_target)
        _warn_of_background(background, slope, trials)
        slopes = np.full(n_groups, slope)
    bits = local_disclosure(*arrays, slopes[folds])
    z = z_normalised(trials.values, trials.rows)
    replicates = np.array([_bits_of(z, trials.rows, trials.is_target, slope) for slope in slopes])
    replicates[folds, np.arange(len(folds))] = np.nan
    return LocalDisclosure(
        bits,
        np.bincount(trials.rows),
        np.array(trials.owners, object),
        np.array(trials.segments, object),
        replicates,
        float(slopes[folds].mean()),
        **summarise_disclosure(bits, replicates, resampling),
        largest=float(bits.max()),
    )


def _warn_of_background(background: GalleryTrials, slope: float, trials: GalleryTrials) -> None:
    """Warn of background speakers who are also tested, and of reversed background scores."""
    tested = sorted(set(background.owners) & set(trials.owners))
    if tested:
        text = "%d of %d speakers of the background are tested as well (%s): calibrate with others"
        logger.warning(text, len(tested), len(set(background.owners)), few(tested))
    if slope < 0:
        text = "REVERSED? target speakers of the background score low: expected higher to be more similar"
        logger.warning(text)


def summarise_disclosure(
    bits: ArrayLike, replicates: ArrayLike, resampling: Resampling | None = None
) -> dict[str, Interval]:
    """Return ALID, PDR, LID+ and LID- with intervals over speakers, as `mean`, `share`, `gain` and `loss`.

    Parameters
    ----------
    bits : array_like of float of shape (R,)
        LID of each row.
    replicates : array_like of float of shape (G, R)
        The same without each group of speakers, whose own rows are NaN.
    resampling : Resampling, optional
        Confidence level; with 0 resamples there are no intervals. By default that of `Resampling`.

    Examples
    --------
    >>> nan = float("nan")
    >>> found = summarise_disclosure([3.0, -1.0, 1.0], [[nan, -1.0, 1.0], [3.0, nan, 1.0], [3.0, -1.0, nan]])
    >>> found["mean"].value, round(found["mean"].low, 3), found["gain"].value, found["loss"].value
    (1.0, -3.968, 2.0, -1.0)
    """
    resampling = resampling or Resampling()
    values = _summaries(np.asarray(bits, np.float64))
    drawn: list[dict[str, float]] = []
    if resampling.resamples:
        drawn = [_summaries(row[~np.isnan(row)]) for row in np.asarray(replicates, np.float64)]
    intervals = {}
    for name, value in values.items():
        others = np.array([summary[name] for summary in drawn])
        intervals[name] = jackknife_interval(
            value, others, method=_SCALES[name], level=resampling.level
        )
    return intervals


def _summaries(bits: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean, the share above 0, and the means of values above 0 and of the others.

    NaN if there are no rows.
    """
    is_gain = bits > 0
    parts = {"gain": bits[is_gain], "loss": bits[~is_gain]}
    summaries = {"mean": float(bits.mean()), "share": float(is_gain.mean())}
    for name, part in parts.items():
        summaries[name] = float(part.mean()) if len(part) else float("nan")
    return summaries


def disclosure_curve(
    trials: GalleryTrials,
    sizes: Sequence[int],
    *,
    background: GalleryTrials | None = None,
    draws: int = 5,
    resampling: Resampling | None = None,
) -> dict[int, dict[str, Interval]]:
    """Return the summaries of local information disclosure in smaller galleries, by their sizes.

    Parameters
    ----------
    trials, background, resampling
        See `disclosed_information`; the seed of the resampling is also used to draw the galleries.
    sizes : sequence of int
        Numbers N of enrolled speakers, target speaker included, from 2 to the smallest gallery of all rows.
    draws : int
        Number of galleries drawn for each row and size; LID is averaged over them.

    Returns
    -------
    dict of int to dict of str to Interval
        See `summarise_disclosure`.

    Raises
    ------
    DataError
        If a size or the number of draws is out of range, or as in `disclosed_information`.
    """
    resampling = resampling or Resampling()
    largest = int(np.bincount(trials.rows).min())
    wrong = [size for size in sizes if not 2 <= size <= largest]
    if wrong:
        raise DataError(f"expected sizes from 2 to {largest}, the smallest gallery, got {wrong[0]}")
    if draws < 1:
        raise DataError(f"expected at least 1 draw of galleries, got {draws}")
    curve = {}
    for size in progress(sizes, description="disclosure", total=len(sizes)):
        parts = []
        for number in range(draws):
            rng = np.random.default_rng([resampling.seed, size, number])
            smaller = drawn_gallery(trials, size, rng)
            known = background
            if background is not None:
                known = drawn_gallery(background, size, rng)
            parts.append(disclosed_information(smaller, background=known, resampling=resampling))
        bits = np.mean([part.bits for part in parts], axis=0)
        replicates = np.mean([part.replicates for part in parts], axis=0)
        curve[size] = summarise_disclosure(bits, replicates, resampling)
    return curve


def drawn_gallery(trials: GalleryTrials, size: int, rng: np.random.Generator) -> GalleryTrials:
    """Return trials with a limited number of enrolled speakers per row: the target speaker and random others."""
    # order: the target trial of each row first, then the others at random
    order = np.lexsort((rng.random(len(trials.rows)), ~trials.is_target, trials.rows))
    counts = np.bincount(trials.rows)
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.sort(order[place < size])
    columns: Mapping[str, Any] = {
        name: getattr(trials, name)[kept] for name in ("rows", "models", "values", "is_target")
    }
    return trials._replace(**columns)
