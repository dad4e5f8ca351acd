"""Estimation of how far an anonymiser has warped a recording.

Anonymisers such as McAdams's warp a whole recording by one number. Spectrum and poles reveal it: no natural voice has
all its resonances so low, or so close together. The number is estimated from the recording alone, by a regression
trained on background speech that is anonymised again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.hdf5 import open_file, read_arrays, write_arrays
from spkbase.showing import one_line
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.anonymization import burg, quadratic_factors

BANDS = 48
ANGLES = 64
CUES = {"bands": slice(0, 2 * BANDS), "poles": slice(2 * BANDS, None), "both": slice(None)}
"""The values of `warp_cues` that an estimator may use."""
WIDTHS = (0.0, 0.1, 0.3)
"""Kernel widths to try; 0 is the inner product, hence ridge regression."""
RIDGES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.3, 3.0)

_WINDOW = 0.025  # seconds
_POLES_WINDOW = 0.020
_SHIFT = 0.010
_ORDER = 20
_QUIET = 10**-3.5  # share of the energy of loud frames; quieter frames are skipped
_LOWEST = 60.0  # Hz
_HIGHEST = 0.475  # share of the rate
_FRAMES = 4096  # number of frames processed at a time
_MOST = 100  # number of frames analysed, spread evenly over the recording, which has one number whatever its length

FACTS = ("cues", "width", "ridge", "rmse", "spread")
_ARRAYS = ("centre", "scale", "points", "weights", "means", "bounds")


def warp_cues(samples: NDArray[np.floating], rate: int) -> NDArray[np.float64]:
    """Return features that show how far a recording is warped.

    They describe the frames that are not quiet: the means of 48 logarithmic mel bands, minus the overall mean, and
    their standard deviations over time; and the square roots of two histograms of the angles of complex poles (linear
    prediction of order 20, 64 bins from 0 to pi, counts per frame), one with equal weights, one with the 8th power of
    the radius as weight.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    rate : int [Hz]

    Returns
    -------
    ndarray of float64 of shape (224,)
        Zeros for silence and for recordings shorter than a frame.
    """
    cues = np.zeros(2 * BANDS + 2 * ANGLES)
    loud = _loud_frames(samples, rate)
    if not len(loud):
        return cues
    bands = _log_bands(loud, rate)
    cues[:BANDS] = bands.mean(axis=0) - bands.mean()
    cues[BANDS : 2 * BANDS] = bands.std(axis=0)
    angles, radii = _complex_poles(loud[:, : round(_POLES_WINDOW * rate)])
    for start, weights in ((2 * BANDS, None), (2 * BANDS + ANGLES, radii**8)):
        counts = np.histogram(angles, ANGLES, (0, np.pi), weights=weights)[0] / len(loud)
        cues[start : start + ANGLES] = np.sqrt(counts)
    return cues


def mean_spectrum(samples: NDArray[np.floating], rate: int) -> NDArray[np.float64]:
    """Return only the first 48 values of `warp_cues`: the means of the bands, minus the overall mean."""
    loud = _loud_frames(samples, rate)
    if not len(loud):
        return np.zeros(BANDS)
    bands = _log_bands(loud, rate)
    return np.asarray(bands.mean(axis=0) - bands.mean())


@one_line
@dataclass(frozen=True, eq=False)
class WarpEstimator:
    """Kernel ridge regression of a number on `warp_cues`; see `fit_warp_estimator`.

    Attributes
    ----------
    cues : str
        A key of `CUES`.
    width, ridge : float
    centre, scale : ndarray of float64 of shape (D,)
        Mean and standard deviation of each cue, which standardise it.
    points : ndarray of float64 of shape (N, D)
        Standardised cues of the training recordings.
    weights : ndarray of float64 of shape (K + 1, N)
        Weights trained without the speakers of each of the K folds, then those trained on all.
    means : ndarray of float64 of shape (K + 1,)
        Means of the numbers.
    bounds : (low, high)
        Estimates are clipped to this range.
    rmse, spread : float
        Root mean square error over the folds, and standard deviation of the numbers.
    """

    cues: str
    width: float
    ridge: float
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    bounds: tuple[float, float]
    rmse: float
    spread: float

    def estimate(
        self, cues: NDArray[np.float64], folds: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Estimate the number of each recording.

        Parameters
        ----------
        cues : ndarray of float64 of shape (n, 224)
            See `warp_cues`.
        folds : ndarray of int of shape (n,), optional
            Fold of each recording's speaker, for recordings of the training set: weights trained without that speaker
            are used.
        """
        kernel = warp_kernel(
            (cues[:, CUES[self.cues]] - self.centre) / self.scale, self.points, self.width
        )
        rows = folds
        if rows is None:
            rows = np.full(len(cues), len(self.weights) - 1)
        with one_blas_thread():
            values = np.einsum("nm,nm->n", kernel, self.weights[rows]) + self.means[rows]
        estimates: NDArray[np.float64] = np.clip(values, *self.bounds)
        return estimates


def warp_kernel(
    some: NDArray[np.float64], others: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """Return the kernel between rows, (n, D) and (m, D): exp(-w |a - b|^2 / 2 D), or a . b / D if the width w is 0."""
    from sklearn.metrics.pairwise import rbf_kernel

    size = some.shape[1]
    with one_blas_thread():
        if width:
            kernel: NDArray[np.float64] = rbf_kernel(some, others, gamma=width / 2 / size)
        else:
            kernel = some @ others.T / size
    return kernel


@one_blas_thread()
def fit_warp_estimator(
    cues: NDArray[np.float64],
    values: NDArray[np.float64],
    folds: NDArray[np.int64],
    bounds: tuple[float, float],
) -> WarpEstimator:
    """Train kernel ridge regression from cues to a number; cross-validation over speakers chooses its settings.

    The estimate for cues x is m + k(x)' (K + l I)^-1 (y - m), where K is the kernel matrix of the training recordings,
    y are their numbers and m is the mean of y. The cues in `CUES`, the kernels in `WIDTHS` and l in `RIDGES` are tried
    in all combinations; the lowest root mean square error over the folds wins, each of which is estimated from the
    others.

    Parameters
    ----------
    cues : ndarray of float64 of shape (N, 224)
        See `warp_cues`.
    values : ndarray of float64 of shape (N,)
        The numbers.
    folds : ndarray of int of shape (N,)
        Fold of each recording, from 0, at least two; each speaker is in one fold only, see `speaker_folds`.
    bounds : (low, high)
        Lowest and highest possible number.

    Raises
    ------
    DataError
        If the cues are not finite.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk, Ridge regression learning algorithm in dual variables, ICML 1998.
    """
    if not np.isfinite(cues).all():
        raise DataError(
            "the cues of the recordings are not finite",
            remedy="check that the recordings hold speech",
        )
    errors: dict[tuple[str, float, float], float] = {}
    for name, columns in CUES.items():
        points = _standardised(cues[:, columns])[0]
        for width in WIDTHS:
            kernel = warp_kernel(points, points, width)
            for ridge in RIDGES:
                guesses = np.clip(_cross_validated(kernel, values, folds, ridge), *bounds)
                errors[name, width, ridge] = float(np.sqrt(np.mean((guesses - values) ** 2)))
    name, width, ridge = min(errors, key=lambda setting: errors[setting])
    points, centre, scale = _standardised(cues[:, CUES[name]])
    kernel = warp_kernel(points, points, width)
    weights = []
    means = []
    for rows in (*_other_folds(folds), np.ones(len(values), bool)):
        of_rows, mean = _dual_weights(kernel, values, rows, ridge)
        weights.append(of_rows)
        means.append(mean)
    return WarpEstimator(
        cues=name,
        width=width,
        ridge=ridge,
        centre=centre,
        scale=scale,
        points=points,
        weights=np.stack(weights),
        means=np.array(means),
        bounds=bounds,
        rmse=errors[name, width, ridge],
        spread=float(values.std()),
    )


def write_warp_estimator(path: Path, estimator: WarpEstimator) -> None:
    """Write an estimator, whole or not at all."""
    arrays = {name: np.asarray(getattr(estimator, name)) for name in _ARRAYS}
    write_arrays(path, arrays, attributes={name: getattr(estimator, name) for name in FACTS})


def read_warp_estimator(path: Path) -> WarpEstimator:
    """Read an estimator back."""
    values: dict[str, Any] = read_arrays(path, *_ARRAYS)
    with open_file(path) as file:
        values |= {name: float(file.attrs[name]) for name in FACTS[1:]}
        values["cues"] = str(file.attrs["cues"])
    low, high = values["bounds"].tolist()
    return WarpEstimator(**{**values, "bounds": (low, high)})


def _other_folds(folds: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """Return for each fold which recordings are not in it."""
    return [folds != fold for fold in range(folds.max() + 1)]


def _cross_validated(
    kernel: NDArray[np.float64], values: NDArray[np.float64], folds: NDArray[np.int64], ridge: float
) -> NDArray[np.float64]:
    """Return estimates of the number of each recording by a regression trained on the other folds."""
    guesses = np.empty(len(values))
    for others in _other_folds(folds):
        weights, mean = _dual_weights(kernel, values, others, ridge)
        guesses[~others] = kernel[~others] @ weights + mean
    return guesses


def _loud_frames(samples: NDArray[np.floating], rate: int) -> NDArray[np.float64]:
    """Return the frames of 25 ms every 10 ms that are not quiet, thinned out evenly if there are many."""
    length = round(_WINDOW * rate)
    if len(samples) < length:
        return np.zeros((0, length))
    frames = sliding_window_view(samples, length)[:: round(_SHIFT * rate)]
    energies = []
    for start, stop in chunk_bounds(len(frames), _FRAMES):
        energies.append(np.square(frames[start:stop], dtype=np.float64).sum(axis=1))
    energy = np.concatenate(energies)
    rows = np.flatnonzero(energy > _QUIET * np.quantile(energy, 0.95))
    return frames[rows[:: max(1, -(-len(rows) // _MOST))]].astype(np.float64)


def _log_bands(frames: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Return the log energies, (T, 48), of triangular filters on the scale ln(1 + f / 700)."""
    size = 1 << (frames.shape[1] - 1).bit_length()
    power = np.abs(np.fft.rfft(frames * np.hamming(frames.shape[1]), size)) ** 2
    low, high = np.log1p(np.array([_LOWEST, _HIGHEST * rate]) / 700).tolist()
    corners = 700 * np.expm1(np.linspace(low, high, BANDS + 2))
    bins = np.fft.rfftfreq(size, 1 / rate)[:, None]
    widths = np.diff(corners)
    rising = (bins - corners[:-2]) / widths[:-1]
    falling = (corners[2:] - bins) / widths[1:]
    filters = np.maximum(0, np.minimum(rising, falling))
    return np.asarray(np.log(power @ filters + 1e-10 * power.mean() + np.finfo(np.float64).tiny))


def _complex_poles(frames: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the angles and radii of all complex poles of all frames."""
    windowed = (frames * np.hanning(frames.shape[1])).T.copy()
    if windowed.shape[1] == 1:
        windowed = np.repeat(windowed, 2, axis=1)  # `burg` needs two frames
    windowed += np.finfo(np.float32).eps
    p, q = quadratic_factors(burg(windowed, min(_ORDER, len(windowed) // 2 * 2 - 2)))
    is_pair = q > p * p / 4
    p = p[is_pair]
    q = q[is_pair]
    return np.arctan2(np.sqrt(q - p * p / 4), -p / 2), np.sqrt(q)


def _standardised(cues: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    centre = cues.mean(axis=0)
    deviation = cues.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1.0)  # empty bins stay 0
    return (cues - centre) / scale, centre, scale


def _dual_weights(
    kernel: NDArray[np.float64], values: NDArray[np.float64], rows: NDArray[np.bool_], ridge: float
) -> tuple[NDArray[np.float64], float]:
    """Return the weights, (N,), and the mean trained on some rows; the other rows have weight 0."""
    from sklearn.kernel_ridge import KernelRidge

    mean = float(values[rows].mean())
    model = KernelRidge(alpha=ridge, kernel="precomputed")
    model.fit(kernel[np.ix_(rows, rows)], values[rows] - mean)
    weights = np.zeros(len(values))
    weights[rows] = model.dual_coef_
    return weights, mean
