"""Kaldi's form of a PLDA, in which both covariances are diagonal: its scores, its adaptation, and the way from ours.

    u = A (x - m)        within speakers N(0, I), between them N(0, diag(psi))

References
----------
S. Ioffe, "Probabilistic linear discriminant analysis", ECCV 2006.
D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.backend.latent_basis import lower_factor
from spkver.backend.plda import Plda
from spkver.backend.plda_scoring import enrolled, ratio_rows
from spkver.backend.products import pair_products
from spkver.backend.sessions import Sessions, checked_vectors

LENGTHS = ("kaldi", "simple", "none")
_SINGULAR = 1e-12  # ratio of the least singular value of a transform to its largest


@one_line
@dataclass(frozen=True, eq=False)
class KaldiPlda:
    """A PLDA as Kaldi keeps it.

    Attributes
    ----------
    mean : ndarray of shape (R,)
        m.
    transform : ndarray of shape (R, R)
        A, regular.
    psi : ndarray of shape (R,)
        Variances between speakers, 0 or more.

    Raises
    ------
    DataError
        If shapes disagree, a number is not finite, A is singular, or a variance is negative.
    """

    mean: NDArray[np.float64]
    transform: NDArray[np.float64]
    psi: NDArray[np.float64]

    def __post_init__(self) -> None:
        parts = {name: np.asarray(getattr(self, name), np.float64) for name in ("mean", "transform", "psi")}
        shapes = [part.shape for part in parts.values()]
        dimension = parts["mean"].size
        if not dimension or shapes != [(dimension,), (dimension, dimension), (dimension,)]:
            raise DataError(f"expected mean (R,), transform (R, R) and psi (R,), got {', '.join(map(str, shapes))}")
        for name, part in parts.items():
            if not np.isfinite(part).all():
                raise DataError(f"{name} of a PLDA holds NaN or infinity", remedy="train it again")
            object.__setattr__(self, name, part)
        with one_blas_thread():
            values = np.linalg.svd(parts["transform"], compute_uv=False)
        if not values[-1] > _SINGULAR * values[0]:
            raise DataError("the transform of a PLDA is singular", remedy="train it again, on more vectors")
        if parts["psi"].min() < 0:
            raise DataError(f"psi of a PLDA should be 0 or more, not {parts['psi'].min():.6g}", remedy="train it again")

    @property
    def dimension(self) -> int:
        """R."""
        return len(self.mean)


@dataclass(frozen=True)
class PldaAdaptation:
    """How far a PLDA follows the vectors of another domain; the defaults are Kaldi's.

    Attributes
    ----------
    mean_scale : float
        How much of the square of the difference of means counts as variance.
    within_scale, between_scale : float
        How much of the variance that the model does not explain goes within and between speakers.
    """

    mean_scale: float = 1.0
    within_scale: float = 0.3
    between_scale: float = 0.7

    def __post_init__(self) -> None:
        for name in ("mean_scale", "within_scale", "between_scale"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise ConfigError(f"adaptation.{name} is {value}: expected a number of at least 0")


def diagonalised(mean: NDArray[np.float64], within: NDArray[np.float64], between: NDArray[np.float64]) -> KaldiPlda:
    """Return the transform that makes W the identity and B diagonal, the largest variance between speakers first.

        A = U' L^-1,  L L' = W,  L^-1 B L^-T = U diag(psi) U'

    Parameters
    ----------
    mean : ndarray of shape (R,)
    within : ndarray of shape (R, R)
        W, positive definite.
    between : ndarray of shape (R, R)
        B.
    """
    whitening = np.linalg.inv(lower_factor(within))
    projected = whitening @ between @ whitening.T
    psi, directions = np.linalg.eigh((projected + projected.T) / 2)
    return KaldiPlda(mean, directions[:, ::-1].T @ whitening, np.maximum(psi[::-1], 0))


def plda_to_kaldi(plda: Plda) -> KaldiPlda:
    """Return the same model in Kaldi's form: all scores are equal. Of eigenchannels the covariance remains."""
    with one_blas_thread():
        return diagonalised(plda.mean, plda.within, plda.between)


def plda_from_kaldi(plda: KaldiPlda) -> Plda:
    """Return the same model as x = m + F y + e: F = A^-1 diag(psi)^(1/2), S = A^-1 A^-T."""
    with one_blas_thread():
        inverse = np.asarray(np.linalg.inv(plda.transform), np.float64)
        used = plda.psi > 0
        loadings: NDArray[np.float64] = inverse[:, used] * np.sqrt(plda.psi[used])
        return Plda(plda.mean, loadings, inverse @ inverse.T)


def length_normalised(transformed: NDArray[np.float64], psi: NDArray[np.float64], counts: NDArray) -> NDArray:
    """Return u sqrt(R / sum_r u_r^2 / (psi_r + 1/n)): the length that a mean of n vectors has on average.

    Parameters
    ----------
    transformed : ndarray of shape (N, R)
        u.
    psi : ndarray of shape (R,)
    counts : ndarray of shape (N,)
        n.
    """
    squares = (transformed**2 / (psi + 1 / counts[:, None])).sum(axis=1)
    return transformed * np.sqrt(len(psi) / squares)[:, None]


def kaldi_plda_scores(
    plda: KaldiPlda,
    sessions: Sessions,
    tests: NDArray,
    models: NDArray,
    segments: NDArray,
    *,
    sessions_as: str = "all",
    length: str = "kaldi",
) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of each trial as Kaldi computes it.

    A model is the mean of its n vectors; it is transformed, scaled to length, and counts as n vectors.

    Parameters
    ----------
    plda : KaldiPlda
    sessions : Sessions
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
    sessions_as : str
        "all", or "mean": the mean counts as one vector.
    length : str
        Of a transformed vector: "kaldi", see `length_normalised`; "simple", sqrt(R) for all; "none", as it is: the
        ratio by the book, that of `plda_scores`.

    Returns
    -------
    ndarray of float64 of shape (n,)
        In nat.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite or has no length, or a code is out of its range.
    """
    if length not in LENGTHS:
        raise ConfigError(f"length is {length!r}: expected one of {', '.join(LENGTHS)}")
    vectors, counts = enrolled(sessions, plda.dimension, sessions_as)
    tests = checked_vectors(tests, "tested vectors", plda.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sides = []
        for rows, numbers in ((vectors, counts), (tests, np.ones(len(tests)))):
            transformed = (rows - plda.mean) @ plda.transform.T
            if length != "none":
                flat = int((~transformed.any(axis=1)).sum())
                if flat:
                    raise DataError(
                        f"{flat} vectors are the mean of the PLDA: they have no length", remedy="leave them out"
                    )
                prior = plda.psi if length == "kaldi" else np.zeros(plda.dimension)
                scaled = numbers if length == "kaldi" else np.ones(len(rows))
                transformed = length_normalised(transformed, prior, scaled)
            sides.append(transformed * np.sqrt(plda.psi))
        return pair_products(*ratio_rows(plda.psi, sides[0] * counts[:, None], counts, sides[1]), models, segments)


def adapt_plda_unsupervised(plda: KaldiPlda, vectors: NDArray, config: PldaAdaptation | None = None) -> KaldiPlda:
    """Return a PLDA that explains the variance of unlabelled vectors of another domain, as Kaldi adapts it.

    The mean becomes that of the vectors. In the space where the model's total covariance is the identity, each
    principal direction of the vectors with a variance s above 1 gives (s - 1) times `within_scale` to the variance
    within speakers and (s - 1) times `between_scale` to that between them; directions with less stay as they are.

    Parameters
    ----------
    plda : KaldiPlda
    vectors : ndarray of shape (N, R)
        Of any speakers.
    config : PldaAdaptation, optional

    Returns
    -------
    KaldiPlda

    Raises
    ------
    DataError
        If dimensions differ, or a vector is not finite.
    """
    config = config or PldaAdaptation()
    vectors = checked_vectors(vectors, "vectors of the other domain", plda.dimension)
    with one_blas_thread():
        mean = vectors.mean(axis=0)
        centred = vectors - mean
        shift = mean - plda.mean
        variance = centred.T @ centred / len(vectors) + config.mean_scale * np.outer(shift, shift)
        total = plda.transform / np.sqrt(1 + plda.psi)[:, None]
        values, directions = np.linalg.eigh(total @ variance @ total.T)
        excess = np.maximum(values - 1, 0)
        back = np.linalg.inv(total) @ directions
        within, between = (
            back @ ((directions.T * own) @ directions + np.diag(scale * excess)) @ back.T
            for scale, own in (
                (config.within_scale, 1 / (1 + plda.psi)),
                (config.between_scale, plda.psi / (1 + plda.psi)),
            )
        )
        return diagonalised(mean, within, between)
