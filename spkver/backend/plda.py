"""Probabilistic linear discriminant analysis: what a vector says of its speaker, and what of the recording.

    x = m + F y + G z + e        y ~ N(0, I) a speaker, z ~ N(0, I) a session, e ~ N(0, S)

Without G, and with a full S, this is the "simplified" model. All that EM needs of the vectors are their sums by speaker
and their total scatter, so a round costs the same for a thousand vectors and for a million.

References
----------
S. J. D. Prince and J. H. Elder, "Probabilistic linear discriminant analysis for inferences about identity", ICCV 2007.
P. Kenny, "Bayesian speaker verification with heavy-tailed priors", Odyssey 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkbase.work import one_blas_thread
from spkver.backend.latent_basis import LatentBasis, latent_basis
from spkver.backend.residual_prior import ResidualPrior, residual_prior
from spkver.backend.sessions import Sessions, checked_vectors

_FACTORS = ("lower", "sidekit", "none")


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

    mean: NDArray[np.float64]
    loadings: NDArray[np.float64]
    residual: NDArray[np.float64]
    channel: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        mean = np.asarray(self.mean, np.float64)
        dimension = mean.size
        shapes = {"loadings": (dimension, None), "residual": (dimension, dimension), "channel": (dimension, None)}
        for name, shape in {"mean": (dimension,), **shapes}.items():
            value = getattr(self, name)
            if value is None and name == "channel":
                continue
            array = np.asarray(value, np.float64)
            fits = len(array.shape) == len(shape) and all(
                want in (None, got) for want, got in zip(shape, array.shape, strict=True)
            )
            if not fits or not dimension:
                raise DataError(f"expected {name} of a PLDA in {dimension} dimensions, got shape {array.shape}")
            if not np.isfinite(array).all():
                raise DataError(f"{name} of a PLDA holds NaN or infinity", remedy="train it again")
            object.__setattr__(self, name, array)
        _ = self.basis  # which S must allow

    @property
    def dimension(self) -> int:
        """R."""
        return len(self.mean)

    @property
    def within(self) -> NDArray[np.float64]:
        """Covariance of the vectors of one speaker, G G' + S, of shape (R, R)."""
        return self.residual if self.channel is None else self.residual + self.channel @ self.channel.T

    @cached_property
    def basis(self) -> LatentBasis:
        """What scores and the E-step need of F, G and S."""
        with one_blas_thread():
            return latent_basis(self.loadings, self.within)

    @property
    def between(self) -> NDArray[np.float64]:
        """Covariance of speakers, F F', of shape (R, R)."""
        return self.loadings @ self.loadings.T


@dataclass(frozen=True)
class PldaConfig:
    """How a PLDA is trained.

    Attributes
    ----------
    rank : int or None
        K, of F; None: as many as the vectors have dimensions.
    channel_rank : int
        L, of G; 0 leaves eigenchannels out.
    residual : str
        "full" or "diagonal", as in Kenny's model with eigenchannels: beside a full S, a G can add nothing.
    iterations : int
        Rounds of EM.
    minimum_divergence : str
        F <- F C after each round, where C C' is the second moment of the speakers' y: "lower" takes the lower Cholesky
        factor, which leaves the prior N(0, I); "sidekit" the upper one, as SIDEKIT does; "none".
    session_weight : float
        As how many vectors each one counts; SIDEKIT's `scaling_factor` in training.
    prior : float or None
        As how many vectors the prior of S counts, see `residual_prior`. None: 0 where the vectors determine S, else R.
    """

    rank: int | None = None
    channel_rank: int = 0
    residual: str = "full"
    iterations: int = 10
    minimum_divergence: str = "lower"
    session_weight: float = 1.0
    prior: float | None = None

    def __post_init__(self) -> None:
        least = {"rank": 1, "channel_rank": 0, "iterations": 0}
        for name, minimum in least.items():
            value = getattr(self, name)
            if value is not None and value < minimum:
                raise ConfigError(f"plda.{name} is {value}: expected a whole number of at least {minimum}")
        for name, allowed in {"residual": ("full", "diagonal"), "minimum_divergence": _FACTORS}.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"plda.{name} is {getattr(self, name)!r}: expected one of {', '.join(allowed)}")
        if not 0 < self.session_weight < np.inf:
            raise ConfigError(f"plda.session_weight is {self.session_weight}: expected a number above 0")
        if self.prior is not None and not 0 <= self.prior < np.inf:
            raise ConfigError(f"plda.prior is {self.prior}: expected a number of at least 0, or null")


@dataclass(frozen=True, eq=False)
class SpeakerSums:
    """What EM knows of the vectors, less their mean.

    Attributes
    ----------
    counts : ndarray of shape (M,)
        Vectors of each speaker, each taken `session_weight` times.
    sums : ndarray of shape (M, R)
    scatter : ndarray of shape (R, R)
        Sum of x x'.
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    scatter: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """What the E-step hands to the M-step; v = [V' y; z] of a session, with the V of the model's `LatentBasis`.

    Attributes
    ----------
    cross : ndarray of shape (R, K + L)
        Sum over sessions of x E[v]'.
    second : ndarray of shape (K + L, K + L)
        Sum over sessions of E[v v'].
    speakers : ndarray of shape (K, K)
        Mean over speakers of V' E[y y'] V.
    rotation : ndarray of shape (K, K)
        V.
    log_likelihood : float
        Of the vectors, by the parameters before the M-step.
    """

    cross: NDArray[np.float64]
    second: NDArray[np.float64]
    speakers: NDArray[np.float64]
    rotation: NDArray[np.floating]
    log_likelihood: float


def expectation(model: Plda, of: SpeakerSums) -> Moments:
    """Return the posterior moments of all speakers and sessions, and the exact log-likelihood.

    With W = G G' + S, P = F' W^-1 F and the sum f of the n vectors of a speaker,

        y | n vectors ~ N(h, (I + n P)^-1),  h = (I + n P)^-1 F' W^-1 f
        log p = -N/2 log|2 pi W| - tr(W^-1 C) / 2 + sum over speakers of (h' F' W^-1 f - log|I + n P|) / 2

    In the basis of the eigenvectors of P the posterior is diagonal, whatever n.

    Parameters
    ----------
    model : Plda
    of : SpeakerSums
        Of vectors less the mean of the model.

    Returns
    -------
    Moments
    """
    basis = model.basis
    spreads = 1 / (1 + np.outer(of.counts, basis.precisions))  # (M, K), variances of the posterior
    projected = of.sums @ basis.projection
    means = projected * spreads
    total = of.counts.sum()
    log_likelihood = -0.5 * (
        total * (model.dimension * np.log(2 * np.pi) + basis.log_determinant)
        + basis.trace_ratio(of.scatter)
        - (means * projected).sum()
        - np.log(spreads).sum()
    )
    sums = of.sums.T @ means
    second = (means * of.counts[:, None]).T @ means + np.diag(of.counts @ spreads)
    speakers = (means.T @ means + np.diag(spreads.sum(axis=0))) / len(means)
    if model.channel is None:
        return Moments(sums, second, speakers, basis.rotation, float(log_likelihood))
    # z of a session, given its y, is that of x - F y: a linear map of it with the same covariance for all
    weighted = np.linalg.solve(model.residual, model.channel)
    spread = np.linalg.inv(np.eye(model.channel.shape[1]) + model.channel.T @ weighted)
    gain = spread @ weighted.T  # (L, R)
    loadings = model.loadings @ basis.rotation
    left = of.scatter - loadings @ sums.T  # sum of E[x - F y] x'
    beside = gain @ (sums - loadings @ second)  # sum of E[z y']
    alone = total * spread + gain @ (left - (sums - loadings @ second) @ loadings.T) @ gain.T
    return Moments(
        np.hstack([sums, (gain @ left).T]),
        np.block([[second, beside.T], [beside, alone]]),
        speakers,
        basis.rotation,
        float(log_likelihood),
    )


def maximisation(
    moments: Moments, of: SpeakerSums, config: PldaConfig, prior: ResidualPrior
) -> tuple[NDArray, NDArray]:
    """Return the loadings [F G] and S that fit the moments best.

        [F G] = (sum x E[v]') (sum E[v v'])^-1,  S = (C - [F G] (sum E[v] x') + nu S0) / (N + nu)

    and, for minimum divergence, F <- F C with C C' = mean E[y y'], and G likewise by the sessions' z.

    Parameters
    ----------
    moments : Moments
    of : SpeakerSums
    config : PldaConfig
    prior : ResidualPrior
        nu and S0.

    Returns
    -------
    loadings : ndarray of shape (R, K + L)
    residual : ndarray of shape (R, R)
    """
    from scipy.linalg import cho_solve

    # by Cholesky: rounding then follows each factor's own scale
    loadings: NDArray[np.float64] = cho_solve((np.linalg.cholesky(moments.second), True), moments.cross.T).T.copy()
    total = of.counts.sum()
    residual = prior.posterior(of.scatter - loadings @ moments.cross.T, total)
    residual = (residual + residual.T) / 2
    if config.residual == "diagonal":
        residual = np.diag(np.diag(residual))
    rank = len(moments.speakers)
    speakers, sessions = moments.speakers, moments.second[rank:, rank:] / total
    if config.minimum_divergence == "sidekit":  # the upper factor depends on the basis, which is that of F itself
        speakers = moments.rotation @ speakers @ moments.rotation.T
        loadings[:, :rank] = loadings[:, :rank] @ moments.rotation.T @ np.linalg.cholesky(speakers).T
        loadings[:, rank:] = loadings[:, rank:] @ np.linalg.cholesky(sessions).T
    elif config.minimum_divergence == "lower":
        loadings[:, :rank] = loadings[:, :rank] @ np.linalg.cholesky(speakers)
        loadings[:, rank:] = loadings[:, rank:] @ np.linalg.cholesky(sessions)
    return loadings, residual


def _start(of: SpeakerSums, rank: int, channels: int, *, unscaled: bool) -> NDArray[np.float64]:
    """Return the first [F G]."""
    values, vectors = np.linalg.eigh(of.scatter / of.counts.sum())
    lengths = np.sqrt(np.maximum(values[::-1], 0))
    columns = np.arange(rank + channels) % len(values)
    directions: NDArray[np.float64] = vectors[:, ::-1][:, columns]
    directions[:, rank:] *= lengths[columns[rank:]]
    if not unscaled:
        directions[:, :rank] *= np.maximum(lengths[:rank], 1)
    return directions


def fit_plda(
    vectors: NDArray, speakers: Sequence[str] | NDArray, config: PldaConfig | None = None
) -> tuple[Plda, NDArray[np.float64]]:
    """Train a PLDA by EM, from a start without chance: m the mean, F the leading eigenvectors of the total covariance.

    The eigenvectors have length 1 and S starts at the total covariance, as in SIDEKIT; but where the standard deviation
    along one is above 1 that is its length, or else EM would not come to vectors of large numbers in any number of
    rounds (SIDEKIT's convention does without). G starts at the eigenvectors that follow, as long as the deviations. m
    stays the mean of the vectors.

    Parameters
    ----------
    vectors : ndarray of shape (N, R)
    speakers : sequence of str or int, of length N
    config : PldaConfig, optional

    Returns
    -------
    plda : Plda
    objective : ndarray of shape (iterations + 1,)
        Log-likelihood of the vectors before each round and at the end, in nat, with the prior's part where there is
        one. It never falls, but with SIDEKIT's minimum divergence.

    Raises
    ------
    DataError
        If vectors are not finite, fewer than two speakers, no speaker has two vectors that differ, or speakers do not
        differ.
    ConfigError
        If a rank is higher than the vectors' dimension.
    """
    config = config or PldaConfig()
    sessions = Sessions.named(checked_vectors(vectors, "training vectors"), speakers)[0]
    rank, channels = config.rank or sessions.dimension, config.channel_rank
    if max(rank, channels) > sessions.dimension or rank + channels > 2 * sessions.dimension:
        name = "rank" if rank > sessions.dimension else "channel_rank"
        raise ConfigError(f"plda.{name} is {max(rank, channels)}: the vectors have {sessions.dimension} dimensions")
    with one_blas_thread():
        prior = residual_prior(sessions, config.prior, diagonal=config.residual == "diagonal")
        mean: NDArray[np.float64] = sessions.vectors.mean(axis=0)
        centred: NDArray[np.float64] = sessions.vectors - mean
        weight = config.session_weight
        counts, sums = sessions.counts, sessions.sums - sessions.counts[:, None] * mean
        of = SpeakerSums(weight * counts.astype(np.float64), weight * sums, weight * (centred.T @ centred))
        directions = _start(of, rank, channels, unscaled=config.minimum_divergence == "sidekit")
        residual = prior.posterior(of.scatter, of.counts.sum())
        residual = np.diag(np.diag(residual)) if config.residual == "diagonal" else residual
        objective = []
        for number in range(config.iterations + 1):
            model = Plda(mean, directions[:, :rank], residual, directions[:, rank:] if channels else None)
            moments = expectation(model, of)
            objective.append(moments.log_likelihood + prior.log_density(residual))
            if number < config.iterations:
                try:
                    directions, residual = maximisation(moments, of, config, prior)
                except np.linalg.LinAlgError:
                    raise DataError(
                        f"training broke down in round {number + 1}: some dimensions vary too little beside others",
                        remedy="whiten the vectors first, or leave such dimensions out",
                    ) from None
    return model, np.array(objective)
