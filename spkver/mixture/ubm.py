"""Training of the universal background model: EM by splitting.

The mixture starts as one Gaussian and doubles; after each doubling come a few rounds of EM. The schedule, the variance
control and the split along the dimension of largest variance are those of SIDEKIT's `EM_split`; ties are broken by
rule instead of by rounding noise (after CMVN all variances of the first Gaussian are 1, so its first split is a tie).

Gaussians with full covariances are trained from those with diagonal ones.

References
----------
Y. Linde, A. Buzo and R. M. Gray, "An algorithm for vector quantizer design", IEEE Trans. Communications 28(1), 1980
(splitting); A. P. Dempster, N. M. Laird and D. B. Rubin, "Maximum likelihood from incomplete data via the EM
algorithm", J. Royal Statistical Society B 39(1), 1977.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import vectors_of
from spkbase.arrays import Floats, Rows, part
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError, few
from spkbase.hdf5 import open_file
from spkbase.progress import progress, verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.mixture.gmm import CHUNK, Accumulator, GaussianMixture, e_step, m_step, unpack_symmetric
from spkver.sidekit import read_mixture, write_mixture

logger = logging.getLogger(__name__)

ALIVE = 1.0  # a component with fewer frames than this is dead

_SCHEDULE = (1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8)
# variances within this share of the largest count as equal: float32 sums of equal values differ by 1e-6 and more
_TIE = 1e-5


@one_blas_thread()
def full_m_step(
    accumulator: Accumulator,
    before: GaussianMixture,
    *,
    reference: Floats,
    limits: tuple[float, float],
) -> GaussianMixture:
    """Return the maximum-likelihood parameters with full covariances that are limited in every direction.

        w_c = n_c / sum n,   m_c = f_c / n_c,   S_c = R^(1/2) U diag(clip(l)) U' R^(1/2)
        where R^(-1/2) (s_c / n_c - m_c m_c') R^(-1/2) = U diag(l) U'  and R = diag(reference)

    The variance of c in each direction is then between the lower and the upper limit times the variance of R. Among all
    such covariances these are the most likely ones, so the likelihood never falls if the covariances before were within
    the limits. A component with less than one frame keeps its mean and covariance.

    Parameters
    ----------
    accumulator : Accumulator
        Statistics with full second moments, for the posteriors under `before`.
    before : GaussianMixture
        With full covariances.
    reference : ndarray of shape (D,)
        Variances to which the limits refer.
    limits : tuple of float
        Lower and upper limit, such as .01 and 10.

    Returns
    -------
    GaussianMixture
    """
    alive = accumulator.zeroth >= ALIVE
    if not alive.all():
        dead = np.flatnonzero(~alive).tolist()
        logger.warning("UBM: Gaussians %s have less than one frame; they are not updated", dead)
    count = accumulator.zeroth[alive]
    means = before.means.copy()
    covariances = before.variances.copy()
    means[alive] = accumulator.first[alive] / count[:, None]
    moments = unpack_symmetric(accumulator.second[alive] / count[:, None], before.dimension)
    scatter = moments - means[alive][:, :, None] * means[alive][:, None, :]
    covariances[alive] = clipped_covariances(scatter, reference, limits)
    return GaussianMixture(accumulator.zeroth / accumulator.zeroth.sum(), means, covariances)


def clipped_covariances(
    covariances: Floats, reference: Floats, limits: tuple[float, float]
) -> Floats:
    """Return covariances (C, D, D) whose variances are limited in every direction; see `full_m_step`.

    Examples
    --------
    >>> clipped_covariances(np.array([[[1.0, 1.0], [1.0, 1.0]]]), np.ones(2), (0.5, 10.0)).round(6)
    array([[[1.25, 0.75],
            [0.75, 1.25]]])
    """
    deviations = np.sqrt(reference)
    scale = np.outer(deviations, deviations)
    shares, axes = np.linalg.eigh(covariances / scale)
    kept = np.clip(shares, *limits)
    outside = (kept != shares).any(axis=1)
    limited = covariances.copy()
    rebuilt = (axes[outside] * kept[outside][:, None, :]) @ axes[outside].swapaxes(1, 2)
    limited[outside] = (rebuilt + rebuilt.swapaxes(1, 2)) / 2 * scale
    return limited


def with_full_covariances(mixture: GaussianMixture) -> GaussianMixture:
    """Return the same mixture with its covariances as matrices."""
    if mixture.has_full_covariances:
        return mixture
    return GaussianMixture(
        mixture.weights, mixture.means, mixture.variances[:, :, None] * np.eye(mixture.dimension)
    )


@dataclass(frozen=True)
class UbmConfig:
    """Settings for training the universal background model.

    Attributes
    ----------
    components : int
        Number of Gaussians, a power of two.
    file : str or None
        Use the mixture in this file instead of training one (ours or SIDEKIT's).
    first_split_dimension : int or None
        Dimension of the first split, for comparisons; by default the largest variance, the lowest of equal ones.
    iterations : sequence of int
        Rounds of EM after the first, second, ... doubling.
    variance_floor, variance_ceiling : float
        Limits of the variances as shares of the second moment of all frames; with full covariances in every direction.
    covariance : str
        "diagonal", or "full": training then continues from the diagonal mixture with full covariances.
    full_iterations : int
        Rounds of EM with full covariances.
    """

    components: int = 128
    file: str | None = None
    first_split_dimension: int | None = None
    iterations: tuple[int, ...] = _SCHEDULE
    variance_floor: float = 0.01
    variance_ceiling: float = 10.0
    covariance: str = "diagonal"
    full_iterations: int = 4

    def __post_init__(self) -> None:
        n_splits = self.components.bit_length() - 1
        if self.components < 1 or self.components != 1 << n_splits:
            near = f"the nearest are {1 << max(n_splits, 0)} and {2 << max(n_splits, 0)}"
            text = f"ubm.components is {self.components}: expected a power of two, since the mixture doubles ({near})"
            raise ConfigError(text)
        if n_splits > len(self.iterations):
            rounds = f"ubm.iterations has {len(self.iterations)}"
            raise ConfigError(
                f"ubm.components {self.components} needs {n_splits} doublings, {rounds}"
            )
        if any(count < 1 for count in self.iterations):
            raise ConfigError("ubm.iterations must be whole numbers of at least 1")
        if not 0 < self.variance_floor < self.variance_ceiling:
            raise ConfigError("ubm.variance_floor must be above 0 and below ubm.variance_ceiling")
        check_values(
            "ubm", self, least={"full_iterations": 1}, choices={"covariance": ("diagonal", "full")}
        )


@one_line
@dataclass(frozen=True)
class TrainedUbm(GaussianMixture):
    """A universal background model and its training history.

    Attributes
    ----------
    weights, means, variances
        As in `GaussianMixture`.
    variance_control : ndarray of shape (D,)
        Second moment of the frames, the reference of the variance limits.
    log_likelihoods : ndarray of shape (I,)
        Mean log-likelihood of a frame, in nat, in each round of EM, under the parameters before the update.
    sizes : ndarray of shape (I,)
        Number of Gaussians in that round.
    """

    variance_control: Floats
    log_likelihoods: Floats = field(default_factory=lambda: np.empty(0))
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def mixture(self) -> GaussianMixture:
        """The mixture without its history."""
        return GaussianMixture(self.weights, self.means, self.variances)


def split(mixture: GaussianMixture, *, dimension: int | None = None) -> GaussianMixture:
    """Replace each Gaussian by two, one standard deviation to either side along its widest dimension.

    Parameters
    ----------
    mixture : GaussianMixture
    dimension : int, optional
        Split all along this dimension instead.

    Returns
    -------
    GaussianMixture
        The lower halves first, then the upper halves.
    """
    rows = np.arange(mixture.n_components)
    widest = np.full(len(rows), dimension)
    if dimension is None:
        widest = widest_dimensions(mixture.variances)
    shift = np.zeros_like(mixture.means)
    shift[rows, widest] = np.sqrt(mixture.variances[rows, widest])
    return GaussianMixture(
        np.tile(mixture.weights / 2, 2),
        np.concatenate([mixture.means - shift, mixture.means + shift]),
        np.tile(mixture.variances, (2, 1)),
    )


def widest_dimensions(variances: NDArray[Any]) -> NDArray[np.int64]:
    """Return the dimension of the largest variance in each row; of those within 1e-5 of the largest, the lowest index
    wins.

    Examples
    --------
    >>> widest_dimensions(np.array([[1.0, 1.0 + 1e-9, 0.5], [1.0, 1.1, 1.2]]))
    array([0, 2])
    """
    dimensions: NDArray[np.int64] = np.argmax(
        variances >= variances.max(axis=1, keepdims=True) * (1 - _TIE), axis=1
    )
    return dimensions


@verbosely
def train_ubm(
    frames: Rows, config: UbmConfig | None = None, *, work: Work = ALL_CORES, verbose: bool = True
) -> TrainedUbm:
    """Train a mixture on frames by splitting.

    Parameters
    ----------
    frames : ndarray or StoredArray of shape (T, D)
        All frames, in memory or in a file; float32, or float64 to compute everything in float64. If their mean is so
        far from 0 that the variance floor, a share of their second moment, exceeds their variance, there is a warning.
    config : UbmConfig
    work : spkbase.work.Work
        The result does not depend on the number of workers.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    TrainedUbm

    Raises
    ------
    DataError
        If there are fewer frames than Gaussians, or frames that are not finite numbers.
    ConfigError
        If the first split dimension does not exist.
    """
    config = config or UbmConfig()
    frames = vectors_of(frames, "frames")
    _check(frames, config)
    dimension = frames.shape[1]
    # SIDEKIT's start: the mean and second moment of all frames
    start = GaussianMixture(np.ones(1), np.zeros((1, dimension)), np.ones((1, dimension)))
    accumulator = e_step(frames, start, work=work)
    moment = accumulator.second[0] / len(frames)
    if not (moment > 0).all():
        constant = np.flatnonzero(~(moment > 0)).tolist()
        raise DataError(
            f"dimensions {constant} of the frames are 0 everywhere: no Gaussian can be fitted to them"
        )
    mixture = GaussianMixture(np.ones(1), accumulator.first / len(frames), moment[None])
    _warn_of_floor(mixture.means[0], moment, config.variance_floor)
    likelihoods: list[float] = []
    sizes: list[int] = []
    limits = config.variance_floor, config.variance_ceiling
    rounds = _rounds(config)
    for n_components in progress(rounds, description="UBM training", total=len(rounds)):
        if n_components is None:
            mixture = with_full_covariances(mixture)
        elif mixture.n_components < n_components:
            first = config.first_split_dimension if mixture.n_components == 1 else None
            mixture = split(mixture, dimension=first)
        accumulator = e_step(frames, mixture, work=work)
        likelihoods.append(accumulator.mean_log_likelihood)
        sizes.append(mixture.n_components)
        text = "UBM, %d Gaussians: mean log-likelihood %.6f nat per frame"
        logger.debug(text, sizes[-1], likelihoods[-1])
        if n_components is None:
            mixture = full_m_step(accumulator, mixture, reference=moment, limits=limits)
        else:
            accumulator = _revive(accumulator)
            mixture = m_step(accumulator, lowest=limits[0] * moment, highest=limits[1] * moment)
    if rounds:
        text = "UBM, %d Gaussians, %d EM iterations: mean log-likelihood %.6f nat per frame, in the first %.6f"
        logger.debug(text, sizes[-1], len(sizes), likelihoods[-1], likelihoods[0])
    parameters = mixture.weights, mixture.means, mixture.variances
    return TrainedUbm(*parameters, moment, np.array(likelihoods), np.array(sizes, np.int64))


def check_ubm(config: UbmConfig, *, dimension: int, most_frames: float) -> None:
    """Check the options of the universal background model against the features, before these are extracted.

    Parameters
    ----------
    config : UbmConfig
    dimension : int
        Length of a frame.
    most_frames : float
        Number of frames if all of them are speech.

    Raises
    ------
    DataError
        If `ubm.file` cannot be read or has another dimension, the first split dimension does not exist, or there
        cannot be as many frames as Gaussians.
    """
    if config.file is not None:
        stored = read_ubm(config.file)
        if stored.dimension != dimension:
            text = f"ubm.file holds a mixture of {stored.dimension} dimensions, the features have {dimension}"
            raise ConfigError(
                text, file=config.file, remedy="choose the features that it was trained on"
            )
        if config.covariance == "full" and not stored.has_full_covariances:
            text = "ubm.covariance is full, but ubm.file, which is taken as it is, holds diagonal covariances"
            raise ConfigError(text, file=config.file, remedy="leave one of the two out")
        return
    _check_first_split(config, dimension)
    if config.components > most_frames:
        text = f"ubm.components is {config.components}, but the background speech has at most {most_frames:.0f} frames"
        raise ConfigError(text, remedy="lower it or give more background speech")


def read_ubm(path: str | Path) -> TrainedUbm:
    """Read a mixture of ours or of SIDEKIT's, with its training history if the file has one."""
    mixture = read_mixture(path)
    with open_file(path) as file:
        likelihoods = np.asarray(file.attrs.get("log_likelihoods", []))
        sizes = np.asarray(file.attrs.get("n_components", []))
    parameters = mixture.weights, mixture.means, mixture.variances()
    return TrainedUbm(*parameters, mixture.variance_control[0], likelihoods, sizes)


def write_ubm(path: str | Path, ubm: GaussianMixture) -> None:
    """Write a mixture in SIDEKIT's layout, with its training history, if it has one.

    If it is not a `TrainedUbm`, the variance control is its own second moment, sum_c w_c (v_c + m_c^2).
    """
    if not isinstance(ubm, TrainedUbm):
        moment = ubm.weights @ (ubm.diagonal_variances + ubm.means**2)
        ubm = TrainedUbm(ubm.weights, ubm.means, ubm.variances, moment)
    history = {}
    if len(ubm.log_likelihoods):
        history = {"log_likelihoods": ubm.log_likelihoods, "n_components": ubm.sizes}
    write_mixture(
        path,
        weights=ubm.weights,
        means=ubm.means,
        variances=ubm.variances,
        variance_control=np.tile(ubm.variance_control, (ubm.n_components, 1)),
        attributes=history,
    )


def schedule_marks(n_components: Sequence[int] | NDArray[Any]) -> list[tuple[int, int]]:
    """Return (round, number of Gaussians) at which the mixture doubled, for the plot of the log-likelihood."""
    sizes, rounds = np.unique(n_components, return_index=True)
    return list(zip(rounds.tolist(), sizes.tolist(), strict=True))


def _rounds(config: UbmConfig) -> list[int | None]:
    """Return the number of Gaussians in each round of EM; None for rounds with full covariances."""
    rounds: list[int | None] = []
    n_splits = config.components.bit_length() - 1
    for number, count in enumerate(config.iterations[:n_splits], 1):
        rounds += [1 << number] * count
    if config.covariance == "full":
        rounds += [None] * config.full_iterations
    return rounds


def _revive(accumulator: Accumulator) -> Accumulator:
    """Give each dead component half of the frames of the fullest one, one standard deviation away."""
    dead = np.flatnonzero(accumulator.zeroth < ALIVE)
    if not len(dead):
        return accumulator
    zeroth = accumulator.zeroth.copy()
    first = accumulator.first.copy()
    second = accumulator.second.copy()
    for component in dead:
        fullest = int(np.argmax(zeroth))
        text = "UBM: Gaussian %d carries %.3g frames; it takes half of Gaussian %d's"
        logger.warning(text, component, zeroth[component], fullest)
        count = zeroth[fullest] / 2
        mean = first[fullest] / zeroth[fullest]
        square = second[fullest] / zeroth[fullest]
        variance = np.maximum(square - mean**2, 0.0)
        widest = widest_dimensions(variance[None])[0]
        shift = np.zeros_like(mean)
        shift[widest] = np.sqrt(variance[widest])
        for half, centre in ((fullest, mean - shift), (component, mean + shift)):
            zeroth[half] = count
            first[half] = count * centre
            second[half] = count * (variance + centre**2)
    return Accumulator(zeroth, first, second, accumulator.log_likelihood, accumulator.n_frames)


def _warn_of_floor(mean: Floats, moment: Floats, floor: float) -> None:
    """Warn of dimensions whose mean is so large that the variance floor exceeds their variance."""
    floored = np.flatnonzero(floor * moment > moment - mean**2)
    if len(floored):
        logger.warning(
            "UBM: the variance floor exceeds the variance of the frames in dimensions %s, whose mean is far from 0,"
            " so that Gaussians are too wide (normalise the features, cmvn, or subtract their mean)",
            few(floored.tolist()),
        )


def _check(frames: Rows, config: UbmConfig) -> None:
    if len(frames) < config.components:
        text = f"{len(frames)} frames cannot train {config.components} Gaussians"
        raise DataError(text, remedy="lower ubm.components or give more background speech")
    chunks = (np.asarray(part(frames, *bounds)) for bounds in chunk_bounds(len(frames), CHUNK))
    if not all(np.isfinite(chunk).all() for chunk in chunks):
        text = "the frames of the universal background model are not all finite numbers"
        raise DataError(text, remedy="extract them again")
    _check_first_split(config, frames.shape[1])


def _check_first_split(config: UbmConfig, dimension: int) -> None:
    first = config.first_split_dimension
    if first is not None and not 0 <= first < dimension:
        raise ConfigError(f"ubm.first_split_dimension is {first}: expected 0 to {dimension - 1}")
