"""Gaussian mixtures: densities, the E-step and the M-step.

`natural_parameters` holds the densities, `PosteriorKernel` and `sufficient_statistics` are the E-step of a block and of
a chunk of frames, `e_step` spreads the chunks over workers, and `m_step` returns the new mixture.

Products run in the dtype of the frames, sums over chunks in float64.

With full covariances the log-density of a Gaussian is linear in the products x_i x_j, i <= j, in x and in 1. So it is
one matrix product for all Gaussians, as with diagonal covariances, of D (D + 1) / 2 + D + 1 columns instead of 2 D + 1;
that takes half as many operations as one product for each Gaussian.

`whiten` maps to the space in which every Gaussian of a mixture has the covariance I, and `unwhiten` maps back.

References
----------
D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
Signal Processing 10, 2000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import vectors_of
from spkbase.arrays import Floats, Rows, part
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.sidekit import inverse_matrices

# Least number of frames in a task: fixed, so that sums are the same for any number of workers.
CHUNK = 8192
# Components times frames of a block, whose posteriors should stay in the second-level cache.
_CACHED_POSTERIORS = 1 << 18
# Frames of a block under full covariances, which needs many more columns, for products.
_BLOCK_OF_PRODUCTS = 512
LEAST_LOG_SHARE = -69.0
"""Logarithm of 1e-30, the least share of a component in a frame. Smaller shares would make products with denormal
numbers, which take up to a hundred times as long: on Intel's processors, most of the E-step."""


def unpack_symmetric(packed: Floats, dimension: int) -> Floats:
    """Return the symmetric matrices (..., D, D) of packed triangles (..., D (D + 1) / 2).

    Examples
    --------
    >>> unpack_symmetric(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    rows, columns = np.triu_indices(dimension)
    matrices = np.empty((*packed.shape[:-1], dimension, dimension))
    matrices[..., rows, columns] = packed
    matrices[..., columns, rows] = packed
    return matrices


@one_blas_thread()
def quadratic_parameters(log_weights: Floats, means: Floats, covariances: Floats) -> Floats:
    """Return the rows b_c for which the weighted log-density of c is a product with z = [x_i x_j (i <= j), x, 1].

        log(w_c N(x; m_c, S_c)) = b_c . z,   b_c = [-P_ij / (1 + (i = j)),  P_c m_c,  k_c],   P_c = S_c^-1
        k_c = log w_c - 1/2 (D log(2 pi) + log |S_c| + m_c' P_c m_c)

    Parameters
    ----------
    log_weights : ndarray of shape (C,)
    means : ndarray of shape (C, D)
    covariances : ndarray of shape (C, D, D)

    Returns
    -------
    ndarray of shape (C, D (D + 1) / 2 + D + 1)
    """
    dimension = means.shape[1]
    factors = np.linalg.cholesky(covariances)
    half_log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    precisions = inverse_variances(covariances)
    linear = of_each_gaussian(precisions, means)
    constants = log_weights - 0.5 * (dimension * np.log(2 * np.pi) + (means * linear).sum(axis=1))
    share = np.where(np.eye(dimension) > 0, 0.5, 1.0)
    packed = (-share * precisions)[:, *np.triu_indices(dimension)]
    return np.column_stack([packed, linear, constants - half_log_determinants])


def inverse_variances(variances: Floats) -> Floats:
    """Return 1 / variances (C, D), or the inverses of covariances (C, D, D)."""
    if variances.ndim == 2:
        return 1.0 / variances
    return inverse_matrices(variances)


def of_each_gaussian(factors: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return the values (..., C, D) times each Gaussian's factors (C, D), or multiplied by its matrix (C, D, D).

    Examples
    --------
    >>> of_each_gaussian(np.array([[[2.0, 0.0], [1.0, 3.0]]]), np.array([[1.0, 2.0]]))
    array([[2., 7.]])
    """
    if len(factors.shape) == 2:
        products: NDArray[Any] = values * factors
    else:
        products = np.matmul(factors, values[..., None])[..., 0]
    return products


def squares_or_products(frames: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
    """Fill `out` with second-order features: squares (diagonal covariances) or products x_i x_j, i <= j (full).

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    out : ndarray of shape (T, D), for squares, or (T, D (D + 1) / 2), for products

    Returns
    -------
    ndarray
        `out`.
    """
    dimension = frames.shape[1]
    if out.shape[1] == dimension:
        np.multiply(frames, frames, out=out)
        return out
    start = 0
    for first in range(dimension):
        stop = start + dimension - first
        np.multiply(frames[:, first : first + 1], frames[:, first:], out=out[:, start:stop])
        start = stop
    return out


@one_blas_thread()
def check_positive_definite(covariances: Floats) -> None:
    """Raise a DataError unless all matrices are symmetric, to the precision of float32, and have a Cholesky factor."""
    scales = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    least = 1e-6 * scales[:, :, None] * scales[:, None, :]
    if not (np.abs(covariances - covariances.swapaxes(1, 2)) <= least).all():
        raise DataError(
            "the covariances of a mixture are not symmetric", remedy="train the mixture again"
        )
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        text = "the covariances of a mixture are not positive definite"
        raise DataError(text, remedy="train the mixture again") from None


@one_line
@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of Gaussians with diagonal or full covariances.

    Attributes
    ----------
    weights : ndarray of shape (C,)
    means : ndarray of shape (C, D)
    variances : ndarray of shape (C, D) or (C, D, D)
        Diagonals of the covariances, or the whole matrices.
    """

    weights: Floats
    means: Floats
    variances: Floats

    def __post_init__(self) -> None:
        shape = self.means.shape
        fits = len(shape) == 2 and self.variances.shape in (shape, (*shape, shape[1]))
        if not fits or self.weights.shape != (self.n_components,):
            needs = "weights (C,), means (C, D) and variances (C, D) or covariances (C, D, D)"
            got = f"{self.weights.shape}, {self.means.shape}, {self.variances.shape}"
            raise DataError(f"a mixture needs {needs}; got {got}")
        is_finite = np.isfinite(self.means).all() and np.isfinite(self.variances).all()
        if not is_finite or not (self.diagonal_variances > 0).all():
            raise DataError("a mixture needs finite means and finite variances above 0")
        if self.has_full_covariances:
            check_positive_definite(self.variances)
        if not (self.weights >= 0).all() or not math.isclose(self.weights.sum(), 1.0, rel_tol=1e-6):
            text = "the weights of a mixture must be at least 0 and sum to 1; the sum is"
            raise DataError(f"{text} {self.weights.sum()}")

    @property
    def n_components(self) -> int:
        """Number of Gaussians, C."""
        return len(self.means)

    @property
    def dimension(self) -> int:
        """Length of a frame, D."""
        return int(self.means.shape[1])

    @property
    def has_full_covariances(self) -> bool:
        """Whether `variances` are matrices."""
        return self.variances.ndim == 3

    @property
    def diagonal_variances(self) -> Floats:
        """Variances of the dimensions, shape (C, D): the diagonals of full covariances."""
        if self.has_full_covariances:
            return np.diagonal(self.variances, axis1=1, axis2=2)
        return self.variances


@dataclass(frozen=True)
class Accumulator:
    """Sufficient statistics of frames under a mixture, which can be added.

    Attributes
    ----------
    zeroth : ndarray of shape (C,)
        Sums over frames of the posteriors.
    first : ndarray of shape (C, D)
        Sums of posterior times frame.
    second : ndarray of shape (C, D) or (C, D (D + 1) / 2)
        Sums of posterior times squared frame; with full covariances times the products x_i x_j, i <= j.
    log_likelihood : float
        Sum over frames, in nat.
    n_frames : int
    """

    zeroth: Floats
    first: Floats
    second: Floats
    log_likelihood: float
    n_frames: int

    def __add__(self, other: Accumulator) -> Accumulator:
        return Accumulator(*map(add, vars(self).values(), vars(other).values()))

    @property
    def mean_log_likelihood(self) -> float:
        """Log-likelihood per frame, in nat."""
        return self.log_likelihood / self.n_frames


def natural_parameters(mixture: GaussianMixture) -> Floats:
    """Return the rows b_c for which the weighted log-density of component c is a product with z = [x^2, x, 1].

        log(w_c N(x; m_c, v_c)) = b_c . z,   b_c = [-1 / (2 v_c),  m_c / v_c,  k_c],
        k_c = log w_c - 1/2 sum_d (log(2 pi v_cd) + m_cd^2 / v_cd)

    With full covariances z has the products x_i x_j in place of x^2: see `quadratic_parameters`.

    Parameters
    ----------
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (C, 2 D + 1) or (C, D (D + 1) / 2 + D + 1)
    """
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
    if mixture.has_full_covariances:
        return quadratic_parameters(
            np.maximum(log_weights, -1e30), mixture.means, mixture.variances
        )
    precisions = 1.0 / mixture.variances
    constants = log_weights - 0.5 * (
        np.log(2 * np.pi * mixture.variances).sum(axis=1)
        + (mixture.means**2 * precisions).sum(axis=1)
    )
    # a weight of 0 must not become 0 * inf in the product
    constants = np.maximum(constants, -1e30)
    return np.column_stack([-0.5 * precisions, mixture.means * precisions, constants])


class PosteriorKernel:
    """The E-step of a block of frames: posteriors of all components, in buffers that are used again.

    With z = [x^2, x, 1] the weighted log-density of component c is b_c . z (`natural_parameters`), and all sufficient
    statistics are P Z for the posteriors P. So the E-step is two matrix products around one pass over the posteriors:
    maximum, subtraction, `exp`, and the sum over components, which is a matrix-vector product. Instead of the
    posteriors, Z, which is smaller, is divided by that sum. Densities leave the log domain only after the largest one
    of each frame is subtracted, so no dimension is too high for them.

    Blocks are so long that their posteriors stay in the second-level cache, and the buffers are written in place.

    Use one instance per task: the arrays that it returns are overwritten by the next block.

    Parameters
    ----------
    parameters : ndarray of shape (C, 2 D + 1), or (C, D (D + 1) / 2 + D + 1) for full covariances
        See `natural_parameters`.
    dtype : dtype
        Type of the frames and of the products.
    dimension : int, optional
        D; needed for full covariances.

    Attributes
    ----------
    size : int
        Largest number of frames in a block.
    """

    def __init__(self, parameters: Floats, dtype: np.dtype, dimension: int | None = None) -> None:
        n_components, width = parameters.shape
        self.size = block_size(n_components)
        if dimension is not None and width > 2 * dimension + 1:
            self.size = min(self.size, _BLOCK_OF_PRODUCTS)
        self._parameters = parameters.astype(dtype)
        self._augmented = np.empty((self.size, width), dtype)
        self._posteriors = np.empty((n_components, self.size), dtype)
        self._ones = np.ones(n_components, dtype)

    def __call__(self, frames: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the posteriors of at most `size` frames, not yet divided by their totals.

        Parameters
        ----------
        frames : ndarray of shape (T, D)

        Returns
        -------
        joint : ndarray of shape (C, T)
            Posteriors times `total`.
        augmented : ndarray of shape (T, 2 D + 1) or (T, D (D + 1) / 2 + D + 1)
            Rows [x^2, x, 1] / total, so that joint @ augmented are the statistics.
        log_likelihood : ndarray of shape (T,)
            Log-likelihood of each frame, in nat.
        """
        n_frames, dimension = frames.shape
        n_products = self._augmented.shape[1] - dimension - 1
        augmented = self._augmented[:n_frames]
        joint = self._posteriors
        if n_frames < self.size:
            # a product into a slice would need another copy
            joint = np.empty((len(self._ones), n_frames), frames.dtype)
        squares_or_products(frames, augmented[:, :n_products])
        augmented[:, n_products:-1] = frames
        augmented[:, -1] = 1
        np.matmul(self._parameters, augmented.T, out=joint)
        largest = joint.max(axis=0)
        joint -= largest
        np.maximum(joint, LEAST_LOG_SHARE, out=joint)
        np.exp(joint, out=joint)
        total = self._ones @ joint
        augmented /= total[:, None]
        return joint, augmented, (largest + np.log(total)).astype(np.float64)


def sufficient_statistics(frames: Rows, parameters: Floats) -> Accumulator:
    """Return the sufficient statistics of frames: sums of the posteriors times 1, x and x^2.

        n_c = sum_t P(c | x_t),   f_c = sum_t P(c | x_t) x_t,   s_c = sum_t P(c | x_t) x_t^2

    Parameters
    ----------
    frames : ndarray or StoredArray of shape (T, D)
        Frames, float32 or float64, which is also the type of the products; sums over blocks are float64.
    parameters : ndarray of shape (C, 2 D + 1) or (C, D (D + 1) / 2 + D + 1)
        `natural_parameters` of the mixture.

    Returns
    -------
    Accumulator

    References
    ----------
    Reynolds, Quatieri and Dunn, equations 7 to 10.
    """
    frames = np.asarray(frames)
    dimension = frames.shape[1]
    kernel = PosteriorKernel(parameters, frames.dtype, dimension)
    zeroth = np.zeros(len(parameters))
    sums = np.zeros((len(parameters), parameters.shape[1] - 1))
    block_sums = np.empty(sums.shape, frames.dtype)
    log_likelihood = 0.0
    for start, stop in chunk_bounds(len(frames), kernel.size):
        joint, augmented, of_frames = kernel(frames[start:stop])
        # without the counts, the number of columns is even and the product is faster
        np.matmul(joint, augmented[:, :-1], out=block_sums)
        sums += block_sums
        zeroth += joint @ augmented[:, -1]
        log_likelihood += float(of_frames.sum())
    empty = zeroth < 2 * np.exp(LEAST_LOG_SHARE) * len(frames)
    zeroth[empty] = 0
    sums[empty] = 0
    first = sums[:, -dimension:]
    second = sums[:, :-dimension]
    return Accumulator(zeroth, first, second, log_likelihood, len(frames))


def m_step(
    accumulator: Accumulator, *, lowest: NDArray[Any], highest: NDArray[Any]
) -> GaussianMixture:
    """Return the maximum-likelihood parameters, with diagonal variances between `lowest` and `highest`.

        w_c = n_c / sum n,   m_c = f_c / n_c,   v_c = s_c / n_c - m_c^2

    Parameters
    ----------
    accumulator : Accumulator
        Every component must carry frames.
    lowest, highest : ndarray of shape (D,)

    Returns
    -------
    GaussianMixture
    """
    count = accumulator.zeroth[:, None]
    means = accumulator.first / count
    variances = np.clip(accumulator.second / count - means**2, lowest, highest)
    return GaussianMixture(accumulator.zeroth / accumulator.zeroth.sum(), means, variances)


def e_step(frames: Rows, mixture: GaussianMixture, *, work: Work = ALL_CORES) -> Accumulator:
    """Return the `sufficient_statistics` of all frames under a mixture; workers take chunks of frames.

    Parameters
    ----------
    frames : ndarray or StoredArray of shape (T, D)
        Float32 or float64, in memory or in a file.
    mixture : GaussianMixture
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    Accumulator

    Raises
    ------
    DataError
        If there are no frames, or they do not have the mixture's dimension.
    """
    frames = check_frames(frames, mixture)
    parameters = natural_parameters(mixture)
    bounds = chunk_bounds(len(frames), chunk_frames(len(frames)))
    pieces = [part(frames, start, stop) for start, stop in bounds]
    return reduce(add, work.map(partial(sufficient_statistics, parameters=parameters), pieces))


def log_likelihood(frames: NDArray[Any], mixture: GaussianMixture) -> Floats:
    """Return the log-density of each frame under the mixture, in nat.

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (T,)

    Raises
    ------
    DataError
        As for `e_step`.

    Examples
    --------
    >>> standard = GaussianMixture(np.ones(1), np.zeros((1, 2)), np.ones((1, 2)))
    >>> log_likelihood(np.zeros((1, 2)), standard).round(6)
    array([-1.837877])
    """
    frames = check_frames(frames, mixture)
    parameters = natural_parameters(mixture)
    with one_blas_thread():
        return frame_log_likelihoods(frames, parameters)


def frame_log_likelihoods(frames: NDArray[Any], parameters: Floats) -> Floats:
    """Return the log-density (T,) of frames (T, D), in nat, from the `natural_parameters` of a mixture."""
    kernel = PosteriorKernel(parameters, frames.dtype, frames.shape[1])
    blocks = []
    for start, stop in chunk_bounds(len(frames), kernel.size):
        blocks.append(kernel(frames[start:stop])[2])
    return np.concatenate(blocks)


def block_size(n_components: int) -> int:
    """Return the number of frames whose posteriors are computed together."""
    return max(128, min(4096, _CACHED_POSTERIORS // n_components))


def chunk_frames(n_frames: int) -> int:
    """Return the frames of one task of the E-step, fixed by the data: `CHUNK`, up to 32 times as many beyond 512 tasks.

    The results of tasks have the same size whatever their length, and a scheduler starts only some hundred tasks a
    second.

    Examples
    --------
    >>> chunk_frames(1000), chunk_frames(4_194_304), chunk_frames(4_194_305), chunk_frames(10**10)
    (8192, 8192, 16384, 262144)
    """
    return CHUNK * min(32, max(1, -(-n_frames // (512 * CHUNK))))


def check_frames(frames: Rows, mixture: GaussianMixture) -> Any:
    """Return frames as floats; raise DataError unless they are (T > 0, D) for the mixture's D."""
    frames = vectors_of(frames, "frames")
    if frames.shape[1] != mixture.dimension:
        text = f"frames have shape {frames.shape}, the mixture expects (T, {mixture.dimension})"
        raise DataError(text, remedy="use the features that the mixture was trained on")
    if not len(frames):
        raise DataError("no frames: expected at least one")
    return frames


@one_blas_thread()
def whitening_factors(mixture: GaussianMixture) -> Floats:
    """Return the factors for `whiten` and `unwhiten`: standard deviations, or lower Cholesky factors of covariances.

        sigma_cd = sqrt(v_cd),   or   S_c = L_c L_c' with L_c lower triangular

    Parameters
    ----------
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (C, D) or (C, D, D)
    """
    if mixture.has_full_covariances:
        return np.asarray(np.linalg.cholesky(mixture.variances), np.float64)
    return np.asarray(np.sqrt(mixture.variances), np.float64)


def whiten(values: Floats, factors: Floats) -> Floats:
    """Return centred sums in the space in which all covariances are I: x_c / sigma_c, or L_c^-1 x_c.

    Parameters
    ----------
    values : ndarray of shape (..., C, D)
        Sums, such as first-order statistics minus n_c m_c.
    factors : ndarray of shape (C, D) or (C, D, D)
        See `whitening_factors`.

    Returns
    -------
    ndarray of shape (..., C, D)

    Examples
    --------
    >>> values, deviations = np.array([[2.0, 9.0]]), np.array([[2.0, 3.0]])
    >>> whiten(values, deviations)
    array([[1., 3.]])
    >>> whiten(values, np.array([np.diag([2.0, 3.0])]))
    array([[1., 3.]])
    """
    if factors.ndim == 2:
        return values / factors
    from scipy.linalg import solve_triangular

    whitened = np.empty(values.shape)
    width = values.shape[-1]
    for component, factor in enumerate(factors):
        rows = values[..., component, :].reshape(-1, width)
        solved = solve_triangular(factor, rows.T, lower=True).T
        whitened[..., component, :] = solved.reshape(values[..., component, :].shape)
    return whitened


def unwhiten(values: Floats, factors: Floats) -> Floats:
    """Return the inverse of `whiten`, sigma_c x_c or L_c x_c; same parameters.

    Examples
    --------
    >>> factors = np.array([[[2.0, 0.0], [1.0, 3.0]]])
    >>> unwhiten(whiten(np.array([[4.0, 9.0]]), factors), factors)
    array([[4., 9.]])
    """
    return of_each_gaussian(factors, values)
