"""Probabilistic linear discriminant analysis: the parts of a vector due to the speaker and to the recording.

    x = m + F y + G z + e        y ~ N(0, I) a speaker, z ~ N(0, I) a session, e ~ N(0, S)

Without G, and with a full S, this is the "simplified" model. EM needs only the sums of the vectors by speaker and their
total scatter, so a round costs the same for a thousand vectors and for a million.

Every scorer takes `Sessions`, the enrolment vectors by model. In a `LatentBasis` the posterior of a speaker is
diagonal; `residual_prior` keeps the covariance within speakers regular. Scores are log-likelihood ratios of several
enrolled vectors and a tested one. In the two-covariance model, speakers and their sessions are Gaussian, each with a
full covariance. `plda_from_sidekit` and `plda_to_sidekit` convert SIDEKIT's PLDAs.

References
----------
S. J. D. Prince and J. H. Elder, "Probabilistic linear discriminant analysis for inferences about identity", ICCV 2007.
P. Kenny, "Bayesian speaker verification with heavy-tailed priors", Odyssey 2010.
N. Brummer and E. de Villiers, "The speaker partitioning problem", Odyssey 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import check_index, factorise, vectors_of
from spkbase.arrays import Floats
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError, few
from spkbase.progress import progress
from spkbase.rounding import is_constant
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.backend.scoring import pair_products
from spkver.backend.transforms import warn_of_few
from spkver.sidekit import FactorAnalyser

# a covariance counts as determined if its correlation matrix has no smaller eigenvalue
_SINGULAR = 1e-8
_CONSTANT = 1e-12  # a smaller share of the variance, within or between speakers, counts as none
# a standard deviation that is a smaller fraction of the largest of any dimension counts as none
_SMALL = 1e-10
_LARGEST = 1e100  # with larger numbers, fourth powers exceed the range of float64

SESSIONS_AS = ("all", "mean")

_ROUNDING = 1e-14  # eigenvalues below this fraction of the largest are rounding errors


@dataclass(frozen=True, eq=False, repr=False)
class Sessions:
    """Vectors and the model, or the speaker, that each belongs to.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (N, R)
        Finite vectors.
    models : ndarray of int64 of shape (N,)
        Codes 0 to M - 1, in any order; each has a vector.

    Raises
    ------
    DataError
        If shapes disagree, a vector is not finite, there are no vectors, or a code is out of range or has no vector.

    Examples
    --------
    >>> sessions = Sessions([[1.0, 0.0], [3.0, 2.0], [0.0, 1.0]], [1, 1, 0])
    >>> sessions
    Sessions(3 vectors of 2 models, 2 dimensions)
    >>> sessions.counts, sessions.sums.tolist(), sessions.means.tolist()
    (array([1, 2]), [[0.0, 1.0], [4.0, 2.0]], [[0.0, 1.0], [2.0, 1.0]])
    """

    vectors: Floats
    models: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_index(vectors=self.vectors, models=self.models)
        object.__setattr__(self, "vectors", checked_vectors(self.vectors, "enrolled vectors"))
        codes = np.asarray(self.models)
        if codes.shape != (len(self.vectors),) or codes.dtype.kind not in "iu":
            text = f"expected a whole number for each of {len(self.vectors)} vectors, the code of its model, got "
            raise DataError(f"{text}{codes.dtype} of shape {codes.shape}")
        object.__setattr__(self, "models", codes.astype(np.int64))
        if codes.min() < 0 or codes.max() >= len(codes) or not self.counts.all():
            text = "expected codes of models from 0 without gaps, got"
            raise DataError(f"{text} {codes.min()} to {codes.max()} for {len(codes)} vectors")

    @classmethod
    def named(
        cls, vectors: NDArray[Any], names: Sequence[str] | Sequence[int] | NDArray[Any]
    ) -> tuple[Sessions, NDArray[Any]]:
        """Return the sessions of named models, and the sorted names: the model of code m is names[m]."""
        check_index(vectors=vectors, names=names)
        column = np.asarray(names)
        if column.ndim != 1 or len(column) != len(vectors):
            raise DataError(
                f"expected a name for each of {len(vectors)} vectors, got shape {column.shape}"
            )
        if column.dtype.kind in "iu":
            distinct, codes = np.unique(column, return_inverse=True)
        else:
            distinct, codes = factorise(np.asarray(names, object))
        return cls(vectors, codes), distinct

    def __repr__(self) -> str:
        return f"Sessions({len(self.vectors)} vectors of {len(self.counts)} models, {self.dimension} dimensions)"

    @property
    def dimension(self) -> int:
        """R."""
        return int(self.vectors.shape[1])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of vectors of each model, shape (M,)."""
        return np.bincount(self.models)

    @cached_property
    def sums(self) -> Floats:
        """Sum of the vectors of each model, in the order of the rows, shape (M, R)."""
        order = np.argsort(self.models, kind="stable")
        starts = np.cumsum(self.counts) - self.counts
        return np.add.reduceat(self.vectors[order], starts, axis=0)

    @cached_property
    def means(self) -> Floats:
        """Mean of the vectors of each model, shape (M, R)."""
        return self.sums / self.counts[:, None]


def checked_vectors(
    vectors: NDArray[np.floating], name: str, dimension: int | None = None
) -> Floats:
    """Return vectors in float64; `name` is their name in errors.

    Raises
    ------
    DataError
        If there are none, they are not rows of numbers, do not have `dimension` columns, or one is not finite.
    """
    array = vectors_of(vectors, name)
    if not array.size:
        raise DataError(
            f"expected {name} as rows of numbers, got {array.dtype} of shape {array.shape}"
        )
    if dimension is not None and array.shape[1] != dimension:
        text = f"expected {name} of {dimension} dimensions, got {array.shape[1]}"
        raise DataError(text, remedy="use vectors from the same extractor and chain throughout")
    checked: Floats = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if bad.size:
        text = f"{bad.size} of {len(array)} {name} hold NaN or infinity: rows {few(bad.tolist())}"
        raise DataError(text, remedy="extract them again, or leave them out")
    return checked


@one_line
@dataclass(frozen=True, eq=False)
class LatentBasis:
    """The model x = F y + e, e ~ N(0, W), with P = F' W^-1 F = V diag(p) V'.

    Attributes
    ----------
    projection : ndarray of shape (R, K)
        W^-1 F V: for a vector x minus the mean, x @ projection holds all its information about y.
    precisions : ndarray of shape (K,)
        p, at least 0: given n vectors, y has the posterior variances 1 / (1 + n p).
    rotation : ndarray of shape (K, K)
        V, orthonormal.
    factor : ndarray of shape (R, R)
        The lower Cholesky factor of W.
    """

    projection: Floats
    precisions: Floats
    rotation: NDArray[np.floating]
    factor: NDArray[np.floating]


def lower_factor(
    covariance: Floats, name: str = "the covariance within speakers"
) -> NDArray[np.floating]:
    """Return the lower Cholesky factor.

    Raises
    ------
    DataError
        If the matrix is not symmetric and positive definite.
    """
    if np.abs(covariance - covariance.T).max() > 1e-6 * np.abs(covariance).max():
        raise DataError(f"expected {name} as a symmetric matrix", remedy="train the model again")
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        factor = np.full(1, np.nan)
    if not np.isfinite(factor).all():
        raise DataError(
            f"expected {name} to be positive definite, it is not",
            remedy="train the model on more vectors",
        )
    return factor


@dataclass(frozen=True, eq=False)
class ResidualPrior:
    """An inverse Wishart prior of a covariance S, p(S) ~ |S|^(-nu/2) exp(-nu/2 tr(S0 S^-1)), with a diagonal mode S0.

    Attributes
    ----------
    weight : float
        nu: the prior counts as this many vectors.
    variances : ndarray of shape (R,)
        Diagonal of S0, above 0.
    """

    weight: float
    variances: Floats

    def log_density(self, covariance: Floats) -> float:
        """Return log p(S) without its constant."""
        if self.weight == 0:
            return 0.0
        whitening = np.linalg.inv(lower_factor(covariance))
        trace = float((self.variances * (whitening**2).sum(axis=0)).sum())
        return -0.5 * self.weight * (trace - 2 * float(np.log(np.diag(whitening)).sum()))

    def posterior(self, scatter: Floats, count: float) -> Floats:
        """Return the likeliest covariance given the scatter of `count` vectors: (C + nu S0) / (N + nu)."""
        return (scatter + self.weight * np.diag(self.variances)) / (count + self.weight)


def residual_prior(
    sessions: Sessions, weight: float | None = None, *, diagonal: bool = False
) -> ResidualPrior:
    """Return the prior of the covariance within speakers.

    Where the vectors determine the covariance within speakers (its correlation matrix has no eigenvalue below 1e-8, or,
    if it is diagonal, no dimension without variance) the weight is 0, and the results are those without a prior. Else
    (few vectors, constant or repeated dimensions) it is R, the number of dimensions. S0 is the variance of each
    dimension times the mean, over the dimensions, of the share of variance within speakers; a constant dimension (or
    one that varies less than 1e-10 times as much as the most variable) gets the mean of the others.

    Parameters
    ----------
    sessions : Sessions
        Vectors of speakers.
    weight : float, optional
        The weight to use instead.
    diagonal : bool
        Whether the covariance will be diagonal.

    Returns
    -------
    ResidualPrior

    Raises
    ------
    DataError
        If there are fewer than two speakers, no speaker has two vectors that differ, speakers do not differ, or the
        weight is 0 and the covariance is not determined.
    """
    vectors = sessions.vectors
    speakers = sessions.means
    if len(speakers) < 2:
        text = f"expected vectors of at least two speakers, got {len(vectors)} of one"
        raise DataError(text, remedy="name the speaker of each vector")
    largest = np.abs(vectors).max(axis=0)
    if largest.max() > _LARGEST:
        raise DataError(
            f"a number of {largest.max():.3g} is far too large", remedy="scale the vectors"
        )
    inside = vectors - speakers[sessions.models]
    within: Floats = inside.T @ inside / len(vectors)
    total = vectors.var(axis=0)
    deviations = np.sqrt(total)
    varies = ~is_constant(vectors) & (deviations > _SMALL * deviations.max())
    if not varies.any():
        raise DataError(
            "the vectors are all the same: nothing can be learnt from them",
            remedy="extract them again",
        )
    # share of variance within speakers, by dimension
    parts = np.diag(within)[varies] / total[varies]
    if not parts.max() > _CONSTANT:
        same = "the vectors of each speaker are all the same"
        reason = "each speaker has only one" if len(speakers) == len(vectors) else same
        text = f"expected speakers with vectors that differ, but {reason}"
        raise DataError(text, remedy="add sessions, or check the names of the speakers")
    if not parts.min() < 1 - _CONSTANT:
        raise DataError(
            "the means of all speakers are the same", remedy="check the names of the speakers"
        )
    variances = np.where(varies, total * parts.mean(), 0)
    variances[~varies] = variances[varies].mean()
    singular = not varies.all() or parts.min() < _SINGULAR
    if not singular and not diagonal:
        scale = 1 / np.sqrt(np.diag(within))
        singular = bool(np.linalg.eigvalsh(within * scale[:, None] * scale)[0] < _SINGULAR)
    if weight == 0 and singular:
        text = f"{len(sessions.vectors)} vectors of {len(sessions.counts)} speakers do not determine the covariance "
        text += f"within speakers in {sessions.dimension} dimensions"
        raise DataError(text, remedy="reduce the dimensions (lda), or leave plda.prior out")
    if weight is None and not singular and not diagonal:
        n_free = len(sessions.vectors) - len(sessions.counts)
        remedy = f"plda.prior, such as {sessions.dimension}, or lda before it"
        warn_of_few(n_free, sessions.dimension, "covariance within speakers", remedy=remedy)
    if weight is None:
        weight = sessions.dimension * singular
    return ResidualPrior(float(weight), variances)


def check_finite(holder: Any, **shapes: tuple[int | None, ...]) -> None:
    """Convert a model's arrays to float64.

    Raise a DataError unless they are finite and have these shapes (None: any length).
    """
    for name, shape in shapes.items():
        array = np.asarray(getattr(holder, name), np.float64)
        fits = array.ndim == len(shape) and all(
            want in (None, got) for want, got in zip(shape, array.shape, strict=False)
        )
        if not fits or not len(array):
            sizes = ", ".join(str(size or "any") for size in shape)
            raise DataError(
                f"expected {name} of shape ({sizes}), got {array.shape}: the parts do not fit together"
            )
        if not np.isfinite(array).all():
            raise DataError(f"{name} holds NaN or infinity", remedy="train it again")
        object.__setattr__(holder, name, array)


@one_line
@dataclass(frozen=True, eq=False)
class Plda:
    """Parameters of the model x = m + F y + G z + e.

    Attributes
    ----------
    mean : ndarray of shape (R,)
    loadings : ndarray of shape (R, K)
        F: directions in which speakers differ.
    residual : ndarray of shape (R, R)
        S, symmetric and positive definite.
    channel : ndarray of shape (R, L) or None
        G: directions in which sessions of a speaker differ.

    Raises
    ------
    DataError
        If shapes disagree, a number is not finite, or S is not symmetric and positive definite.
    """

    mean: Floats
    loadings: Floats
    residual: Floats
    channel: Floats | None = None

    def __post_init__(self) -> None:
        dimension = np.size(self.mean)
        shapes: dict[str, tuple[int | None, ...]] = {
            "mean": (dimension,),
            "loadings": (dimension, None),
            "residual": (dimension, dimension),
        }
        if self.channel is not None:
            shapes["channel"] = (dimension, None)
        check_finite(self, **shapes)
        _ = self.basis  # raises an error if S is not positive definite

    @property
    def dimension(self) -> int:
        """R."""
        return len(self.mean)

    @property
    def within(self) -> Floats:
        """Covariance of the vectors of one speaker, G G' + S, of shape (R, R)."""
        if self.channel is None:
            return self.residual
        return self.residual + self.channel @ self.channel.T

    @cached_property
    def basis(self) -> LatentBasis:
        """The quantities derived from F, G and S that scoring and the E-step use."""
        with one_blas_thread():
            factor = lower_factor(self.within)
            weighted = np.linalg.solve(self.within, self.loadings)
            product = self.loadings.T @ weighted
            precisions, rotation = np.linalg.eigh((product + product.T) / 2)
            return LatentBasis(weighted @ rotation, np.maximum(precisions, 0), rotation, factor)

    @property
    def between(self) -> Floats:
        """Covariance of speakers, F F', of shape (R, R)."""
        return self.loadings @ self.loadings.T


@dataclass(frozen=True)
class PldaConfig:
    """Settings for training a PLDA.

    Attributes
    ----------
    rank : int or None
        K, the number of columns of F; None: the dimension of the vectors.
    channel_rank : int
        L, the number of columns of G; 0 leaves eigenchannels out.
    residual : str
        "full" or "diagonal", as in Kenny's model with eigenchannels: with a full S, G adds nothing.
    iterations : int
        Rounds of EM.
    minimum_divergence : str
        F <- F C after each round, where C C' is the second moment of the speakers' y: "lower" takes the lower Cholesky
        factor, which leaves the prior N(0, I); "sidekit" the upper one, as SIDEKIT does; "none".
    session_weight : float
        Weight of each vector, as a number of vectors; SIDEKIT's `scaling_factor` in training.
    prior : float or None
        Weight of the prior of S, as a number of vectors, see `residual_prior`. None: 0 if the vectors determine S, else
        R.
    """

    rank: int | None = None
    channel_rank: int = 0
    residual: str = "full"
    iterations: int = 10
    minimum_divergence: str = "lower"
    session_weight: float = 1.0
    prior: float | None = None

    def __post_init__(self) -> None:
        least = {"rank": 1, "channel_rank": 0, "iterations": 0, "prior": 0.0}
        choices = {
            "residual": ("full", "diagonal"),
            "minimum_divergence": ("lower", "sidekit", "none"),
        }
        check_values("plda", self, least=least, choices=choices)
        if not 0 < self.session_weight < np.inf:
            raise ConfigError(
                f"plda.session_weight is {self.session_weight}: expected a number above 0"
            )


def expectation(
    model: Plda, counts: Floats, sums: Floats, scatter: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Return the posterior moments of all speakers and sessions, and the exact log-likelihood.

    With W = G G' + S, P = F' W^-1 F and the sum f of the n vectors of a speaker,

        y | n vectors ~ N(h, (I + n P)^-1),  h = (I + n P)^-1 F' W^-1 f
        log p = -N/2 log|2 pi W| - tr(W^-1 C) / 2 + sum over speakers of (h' F' W^-1 f - log|I + n P|) / 2

    In the basis V of the eigenvectors of P (`Plda.basis`) the posterior is diagonal, whatever n. The hidden variables
    of a session are v = [V' y; z].

    Parameters
    ----------
    model : Plda
    counts : ndarray of shape (M,)
        n: number of vectors of each speaker, times `session_weight`.
    sums : ndarray of shape (M, R)
        f, for vectors minus the mean of the model.
    scatter : ndarray of shape (R, R)
        C, the sum of x x'.

    Returns
    -------
    cross : ndarray of shape (R, K + L)
        Sum over sessions of x E[v]'.
    second : ndarray of shape (K + L, K + L)
        Sum over sessions of E[v v'].
    speakers : ndarray of shape (K, K)
        Mean over speakers of V' E[y y'] V.
    log_likelihood : float
    """
    basis = model.basis
    spreads = 1 / (1 + np.outer(counts, basis.precisions))  # (M, K), variances of the posterior
    projected = sums @ basis.projection
    means = projected * spreads
    total = counts.sum()
    whitening = np.linalg.inv(basis.factor)
    log_likelihood = -0.5 * (
        total
        * (model.dimension * np.log(2 * np.pi) + float(2 * np.log(np.diag(basis.factor)).sum()))
        + float(((whitening @ scatter) * whitening).sum())
        - (means * projected).sum()
        - np.log(spreads).sum()
    )
    cross = sums.T @ means
    second = (means * counts[:, None]).T @ means + np.diag(counts @ spreads)
    speakers = (means.T @ means + np.diag(spreads.sum(axis=0))) / len(means)
    if model.channel is None:
        return cross, second, speakers, float(log_likelihood)
    # given y, z of a session follows from x - F y: a linear map, with the same covariance for all sessions
    weighted = np.linalg.solve(model.residual, model.channel)
    spread = np.linalg.inv(np.eye(model.channel.shape[1]) + model.channel.T @ weighted)
    gain = spread @ weighted.T  # (L, R)
    loadings = model.loadings @ basis.rotation
    rest = scatter - loadings @ cross.T  # sum of E[x - F y] x'
    beside = gain @ (cross - loadings @ second)  # sum of E[z y']
    alone = total * spread + gain @ (rest - (cross - loadings @ second) @ loadings.T) @ gain.T
    both = np.block([[second, beside.T], [beside, alone]])
    return np.hstack([cross, (gain @ rest).T]), both, speakers, float(log_likelihood)


def maximisation(
    cross: Floats,
    second: Floats,
    speakers: Floats,
    *,
    scatter: Floats,
    total: float,
    rotation: NDArray[np.floating],
    config: PldaConfig,
    prior: ResidualPrior,
) -> tuple[Floats, Floats]:
    """Return the loadings [F G] and S that fit the moments best.

        [F G] = (sum x E[v]') (sum E[v v'])^-1,  S = (C - [F G] (sum E[v] x') + nu S0) / (N + nu)

    and, for minimum divergence, F <- F C with C C' = mean E[y y'], and G likewise by the sessions' z.

    Parameters
    ----------
    cross, second, speakers
        See `expectation`.
    scatter : ndarray of shape (R, R)
        C.
    total : float
        N.
    rotation : ndarray of shape (K, K)
        V.
    config : PldaConfig
    prior : ResidualPrior
        nu and S0.

    Returns
    -------
    loadings : ndarray of shape (R, K + L)
    residual : ndarray of shape (R, R)
    """
    from scipy.linalg import cho_solve

    # with Cholesky factors, rounding follows the scale of each factor
    loadings: Floats = cho_solve((np.linalg.cholesky(second), True), cross.T).T.copy()
    residual = prior.posterior(scatter - loadings @ cross.T, total)
    residual = (residual + residual.T) / 2
    if config.residual == "diagonal":
        residual = np.diag(np.diag(residual))
    rank = len(speakers)
    sessions = second[rank:, rank:] / total
    # the upper factor depends on the basis, so the basis of F itself is used
    if config.minimum_divergence == "sidekit":
        upper = np.linalg.cholesky(rotation @ speakers @ rotation.T).T
        loadings[:, :rank] = loadings[:, :rank] @ rotation.T @ upper
        loadings[:, rank:] = loadings[:, rank:] @ np.linalg.cholesky(sessions).T
    elif config.minimum_divergence == "lower":
        loadings[:, :rank] = loadings[:, :rank] @ np.linalg.cholesky(speakers)
        loadings[:, rank:] = loadings[:, rank:] @ np.linalg.cholesky(sessions)
    return loadings, residual


def fit_plda(
    vectors: NDArray[Any], speakers: Sequence[str] | NDArray[Any], config: PldaConfig | None = None
) -> tuple[Plda, Floats]:
    """Train a PLDA by EM, from a fixed start: m is the mean, F the leading eigenvectors of the total covariance.

    The eigenvectors have length 1 and S starts at the total covariance, as in SIDEKIT. If the standard deviation along
    an eigenvector is above 1, it is used as the length: otherwise EM would not converge on vectors with large numbers
    (SIDEKIT's convention leaves the length at 1). G starts at the eigenvectors that follow, whose lengths are the
    deviations. m remains the mean of the vectors.

    Parameters
    ----------
    vectors : ndarray of shape (N, R)
    speakers : sequence of str or int, of length N
    config : PldaConfig, optional

    Returns
    -------
    plda : Plda
    objective : ndarray of shape (iterations + 1,)
        Log-likelihood of the vectors before each round and at the end, in nat, plus the log-density of the prior, if
        there is one. It never falls, except with SIDEKIT's minimum divergence.

    Raises
    ------
    DataError
        If vectors are not finite, there are fewer than two speakers, no speaker has two vectors that differ, or
        speakers do not differ.
    ConfigError
        If a rank is higher than the vectors' dimension.
    """
    config = config or PldaConfig()
    check_index(vectors=vectors, speakers=speakers)
    sessions = Sessions.named(checked_vectors(vectors, "training vectors"), speakers)[0]
    rank = config.rank or sessions.dimension
    channels = config.channel_rank
    for name, size in (("rank", rank), ("channel_rank", channels)):
        if size > sessions.dimension:
            raise ConfigError(
                f"plda.{name} is {size}: the vectors have {sessions.dimension} dimensions"
            )
    with one_blas_thread():
        prior = residual_prior(sessions, config.prior, diagonal=config.residual == "diagonal")
        mean: Floats = sessions.vectors.mean(axis=0)
        centred: Floats = sessions.vectors - mean
        weight = config.session_weight
        counts = weight * sessions.counts.astype(np.float64)
        sums = weight * (sessions.sums - sessions.counts[:, None] * mean)
        scatter = weight * (centred.T @ centred)
        total = counts.sum()
        values, axes = np.linalg.eigh(scatter / total)
        lengths = np.sqrt(np.maximum(values[::-1], 0))
        columns = np.arange(rank + channels) % len(values)
        directions: Floats = axes[:, ::-1][:, columns]  # the first [F G]
        directions[:, rank:] *= lengths[columns[rank:]]
        if config.minimum_divergence != "sidekit":
            directions[:, :rank] *= np.maximum(lengths[:rank], 1)
        residual = prior.posterior(scatter, total)
        if config.residual == "diagonal":
            residual = np.diag(np.diag(residual))
        objective = []
        rounds = range(config.iterations + 1)
        for number in progress(rounds, description="PLDA", total=len(rounds)):
            channel = directions[:, rank:] if channels else None
            model = Plda(mean, directions[:, :rank], residual, channel)
            *moments, log_likelihood = expectation(model, counts, sums, scatter)
            objective.append(log_likelihood + prior.log_density(residual))
            if number == config.iterations:
                break
            try:
                directions, residual = maximisation(
                    *moments,
                    scatter=scatter,
                    total=total,
                    rotation=model.basis.rotation,
                    config=config,
                    prior=prior,
                )
            except np.linalg.LinAlgError:
                text = f"training broke down in round {number + 1}: some dimensions vary too little"
                raise DataError(
                    text, remedy="whiten the vectors first, or leave such dimensions out"
                ) from None
    return model, np.array(objective)


def ratio_rows(
    precisions: Floats, sums: Floats, counts: NDArray[Any], tests: Floats
) -> tuple[Floats, Floats]:
    """Return rows of models and of segments whose inner products are log-likelihood ratios.

    Where P = diag(p), f is the sum of n enrolled vectors and t a tested vector, as `LatentBasis` projects them,

        s = log p(x, X | one speaker) / (p(x | one) p(X | another)) = sum over k of
            f t / (1 + (n+1) p)  -  f^2 p / (2 (1 + n p) (1 + (n+1) p))  -  t^2 n p / (2 (1 + p) (1 + (n+1) p))
            + (log(1 + n p) + log(1 + p) - log(1 + (n+1) p)) / 2

    The factor of t^2 depends only on n: there is one such column for each distinct number of enrolled vectors.

    Parameters
    ----------
    precisions : ndarray of shape (K,)
        p.
    sums : ndarray of shape (M, K)
        f of each model.
    counts : ndarray of shape (M,)
        n of each model.
    tests : ndarray of shape (T, K)
        t of each segment.

    Returns
    -------
    models : ndarray of shape (M, Q)
    segments : ndarray of shape (T, Q)

    References
    ----------
    S. J. D. Prince and J. H. Elder, ICCV 2007; D. Garcia-Romero and C. Y. Espy-Wilson, "Analysis of i-vector length
    normalization in speaker recognition systems", Interspeech 2011.
    """
    numbers, group = np.unique(counts, return_inverse=True)
    alone = 1 + numbers[:, None] * precisions  # (numbers, K)
    joint = alone + precisions
    squares = -0.5 * numbers[:, None] * precisions / ((1 + precisions) * joint)
    constants = 0.5 * (np.log(alone) + np.log1p(precisions) - np.log(joint)).sum(axis=1)
    weights = sums / joint[group]
    offsets = constants[group] - 0.5 * (weights * sums * (precisions / alone)[group]).sum(axis=1)
    models = np.hstack([weights, offsets[:, None], np.eye(len(numbers))[group]])
    return models, np.hstack([tests, np.ones((len(tests), 1)), tests**2 @ squares.T])


def plda_scores(
    plda: Plda,
    sessions: Sessions,
    tests: NDArray[Any],
    models: NDArray[Any],
    segments: NDArray[Any],
    *,
    sessions_as: str = "all",
) -> Floats:
    """Return the log-likelihood ratio of each trial: the same speaker against two different ones.

    Parameters
    ----------
    plda : Plda
    sessions : Sessions
        Enrolled vectors of the models.
    tests : ndarray of shape (T, R)
        Tested vectors.
    models, segments : ndarray of int of shape (n,)
        The code of each trial's model, and the row of its tested vector.
    sessions_as : str
        "all": the exact ratio of all vectors of a model; "mean": their mean counts as one vector, as in SIDEKIT's fast
        scoring.

    Returns
    -------
    ndarray of float64 of shape (n,)
        Log-likelihood ratios in nat.

    Raises
    ------
    DataError
        If dimensions differ from those of the model, a vector is not finite, or a code is out of its range.
    """
    vectors, counts = enrolled(sessions, plda.dimension, sessions_as)
    tests = checked_vectors(tests, "tested vectors", plda.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        basis = plda.basis
        offset = plda.mean @ basis.projection
        sums = (vectors @ basis.projection - offset) * counts[:, None]
        rows = ratio_rows(basis.precisions, sums, counts, tests @ basis.projection - offset)
        return pair_products(*rows, models, segments)


def enrolled(sessions: Sessions, dimension: int, sessions_as: str) -> tuple[Floats, NDArray[Any]]:
    """Return the mean of each model's vectors, and the number of vectors that it counts as.

    Raises
    ------
    DataError
        If the vectors do not have `dimension` dimensions.
    ConfigError
        If `sessions_as` is neither "all" nor "mean".
    """
    if sessions_as not in SESSIONS_AS:
        raise ConfigError(
            f"sessions_as is {sessions_as!r}: expected one of {', '.join(SESSIONS_AS)}"
        )
    means = checked_vectors(sessions.means, "enrolled vectors", dimension)
    if sessions_as == "mean":
        return means, np.ones_like(sessions.counts)
    return means, sessions.counts


@one_line
@dataclass(frozen=True, eq=False)
class TwoCovariance:
    """Speakers ~ N(m, B), vectors of a speaker ~ N(mean of the speaker, W).

    Attributes
    ----------
    mean : ndarray of shape (R,)
    between : ndarray of shape (R, R)
        B, without negative eigenvalues.
    within : ndarray of shape (R, R)
        W, positive definite.
    """

    mean: Floats
    between: Floats
    within: Floats

    @cached_property
    def plda(self) -> Plda:
        """The same model as a PLDA: F F' = B without directions that are only rounding errors, and S = W.

        Raises
        ------
        DataError
            If shapes disagree, a number is not finite, or W is not positive definite.
        """
        between = np.asarray(self.between, np.float64)
        shapes = {between.shape, np.shape(self.within), 2 * np.shape(self.mean)}
        if len(shapes) > 1 or not between.size or not np.isfinite(between).all():
            raise DataError(
                f"expected the mean (R,) and finite matrices B and W (R, R), got shapes {sorted(shapes)}"
            )
        with one_blas_thread():
            values, directions = np.linalg.eigh(between)
        used = values > _ROUNDING * values[-1]
        return Plda(self.mean, directions[:, used] * np.sqrt(values[used]), self.within)


def fit_two_covariance(
    vectors: NDArray[Any], speakers: Sequence[str] | NDArray[Any], *, convention: str = "book"
) -> TwoCovariance:
    """Return the moments of labelled vectors: their mean, and the covariances between and within speakers.

    With x_s the mean of the n_s vectors of speaker s, N vectors and K speakers, m the mean of all vectors,

        S_w = sum over sessions of (x - x_s)(x - x_s)'      S_b = sum over speakers of n_s (x_s - m)(x_s - m)'
        W = S_w / (N - K)      B = (S_b / (K - 1) - W) / n      n = (N - sum over speakers of n_s^2 / N) / (K - 1)

    The means of speakers spread by B + W / n_s, so W / n is subtracted: both are unbiased [1]_, and B is then projected
    to the nearest positive semi-definite matrix. SIDEKIT takes S_w / N and S_b / N, which are right for many sessions
    per speaker; with two sessions W is half as large as it should be. W has a prior if the vectors do not determine it
    (`residual_prior`).

    Parameters
    ----------
    vectors : ndarray of shape (N, R)
    speakers : sequence of str or int, of length N
    convention : {"book", "sidekit"}

    Returns
    -------
    TwoCovariance

    Raises
    ------
    DataError
        As `fit_plda`, or if the means of speakers differ no more than sessions of the same speaker would.

    References
    ----------
    .. [1] S. R. Searle, G. Casella and C. E. McCulloch, "Variance Components", 1992, section 3.6 (the analysis of
       variance of unbalanced data).
    """
    check_index(vectors=vectors, speakers=speakers)
    sessions, _ = Sessions.named(checked_vectors(vectors, "training vectors"), speakers)
    with one_blas_thread():
        prior = residual_prior(sessions)
        mean = sessions.vectors.mean(axis=0)
        inside = sessions.vectors - sessions.means[sessions.models]
        outside = (sessions.means - mean) * np.sqrt(sessions.counts)[:, None]
        within = inside.T @ inside
        between = outside.T @ outside
        count = len(sessions.vectors)
        if convention == "sidekit":
            return TwoCovariance(mean, between / count, prior.posterior(within, count))
        n_others = len(sessions.counts) - 1
        n_free = count - len(sessions.counts)
        size = (count - (sessions.counts**2).sum() / count) / n_others
        values, directions = np.linalg.eigh((between / n_others - within / n_free) / size)
        if not values[-1] > 0:
            text = "the means of the speakers differ no more than those of the same speaker's sessions would"
            raise DataError(text, remedy="check the names of the speakers")
        between = directions * np.maximum(values, 0) @ directions.T
        return TwoCovariance(mean, between, prior.posterior(within, n_free))


def plda_from_sidekit(analyser: FactorAnalyser) -> Plda:
    """Return the PLDA that a FactorAnalyser of SIDEKIT holds (`spkver.sidekit.read_factor_analyser`).

    Raises
    ------
    DataError
        If the mean, F or a full Sigma is missing, or if there is an H, which a PLDA lacks.
    """
    mean = analyser.mean
    loadings = analyser.loadings
    residual = analyser.residual
    is_plda = analyser.diagonal is None and residual is not None and residual.ndim == 2
    if mean is None or loadings is None or residual is None or not is_plda:
        there = ", ".join(name for name, value in vars(analyser).items() if value is not None)
        text = f"expected the mean, the loadings F and the full covariance Sigma of a PLDA, got {there}"
        raise DataError(
            text, remedy="a total variability model or a joint factor analysis is not a PLDA"
        )
    return Plda(mean, loadings, residual, analyser.channel)


def plda_to_sidekit(plda: Plda) -> FactorAnalyser:
    """Return a PLDA as a FactorAnalyser, for `spkver.sidekit.write_factor_analyser`."""
    return FactorAnalyser(plda.mean, plda.loadings, plda.channel, None, plda.residual)
