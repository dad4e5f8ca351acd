"""Joint factor analysis: factors that the sessions of a speaker share (V, D), and factors that vary (U).

The linear score of a session under a speaker is the inner product of their vectors (`speaker_vectors`,
`session_vectors`); `spkver.backend.score_joint_factors` scores trials by it.

The means of a session are m + V y + U x + D z: y and z belong to the speaker, x to the session, and all are N(0, I).
V and U are matrices of low rank, D is diagonal. They are trained one after another: V on the sums of each speaker, U
on the sessions minus V y, D on the rest.

V and U are total variability matrices of these statistics, trained by the EM of `spkver.vectors.total_variability`; the
formulas of D are here. Everything is in the space in which every Gaussian of the mixture has the covariance I, whether
its covariance is diagonal or full; D is diagonal there.

References
----------
P. Kenny, P. Ouellet, N. Dehak, V. Gupta and P. Dumouchel, "A study of interspeaker variability in speaker
verification", IEEE Trans. Audio, Speech and Language Processing 16(5), 2008.
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
P. Kenny, "Joint factor analysis of speaker and session variability: theory and algorithms", CRIM-06/08-13, 2005.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Floats
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError, errors_of
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.progress import progress, verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.mixture import GaussianMixture, Statistics, unwhiten, whiten
from spkver.vectors.ivectors import extract_ivectors
from spkver.vectors.supervectors import Supervectors, sum_by_model, without_factors
from spkver.vectors.total_variability import (
    RELEVANCE,
    MinimumDivergence,
    TotalVariability,
    TotalVariabilityConfig,
    start_loadings,
    train_total_variability,
)

logger = logging.getLogger(__name__)

MODELS = 32  # number of models in a task

JointStart = tuple[Floats, Floats, Floats]
"""V, U and D, whitened as in `JointFactors`."""

_NAMES = ("speaker", "channel", "residual", "means", "factors", "weights", "log_likelihoods")


def residual_posterior(counts: Floats, sums: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mean and precision of z for each entry of a supervector.

        l = 1 + n_c d_ci^2,   z_ci = d_ci f_ci / l

    Parameters
    ----------
    counts : ndarray of shape (..., C)
        n_c of all sessions of a speaker.
    sums : ndarray of shape (..., C, D)
        f_ci: their first-order sums, whitened, minus n_c times the means, V y and U x.
    scales : ndarray of shape (C, D)
        The diagonal of D, whitened.

    Returns
    -------
    means, precisions : ndarray of shape (..., C, D)

    References
    ----------
    Kenny 2005, section III; the residual of one entry does not depend on others.

    Examples
    --------
    >>> means, precisions = residual_posterior(np.array([3.0]), np.array([[8.0]]), np.array([[1.0]]))
    >>> means.tolist(), precisions.tolist()
    ([[2.0]], [[4.0]])
    """
    precisions = 1 + counts[..., None] * scales**2
    return scales * sums / precisions, precisions


def residual_sums(counts: Floats, sums: Floats, scales: Floats) -> tuple[Floats, Floats, float]:
    """Return the sums of the E-step of D over speakers (S, C), (S, C, D); parameters as for `residual_posterior`.

    Returns
    -------
    second, cross : ndarray of shape (C, D)
        sum n_c (1 / l + z^2), and sum f z.
    log_likelihood : float
        The part of the log-likelihood that depends on D, in nat: sum (d f z - log l) / 2.
    """
    means, precisions = residual_posterior(counts, sums, scales)
    second = (counts[:, :, None] * (1 / precisions + means**2)).sum(axis=0)
    likelihood = 0.5 * (scales * sums * means - np.log(precisions)).sum()
    return second, (sums * means).sum(axis=0), float(likelihood)


def residual_m_step(second: Floats, cross: Floats, before: Floats) -> Floats:
    """Return the maximum-likelihood diagonal of D, d = cross / second; components without frames keep their value."""
    return np.where(second > 0, cross / np.where(second > 0, second, 1.0), before)


@dataclass(frozen=True)
class JointFactorConfig:
    """Settings for training joint factors.

    Attributes
    ----------
    speaker_rank, channel_rank : int
        Numbers of columns of V and of U.
    rounds : int
        Rounds of EM for each of V, U and D.
    residual : bool
        Whether to train D; otherwise D is 0.
    seed : int
        Seed of the initial matrices.
    minimum_divergence : {"right", "sidekit", "none"}
        Minimum divergence after each round of V and U, see `spkver.vectors.minimum_divergence`.
    """

    speaker_rank: int = 300
    channel_rank: int = 100
    rounds: int = 10
    residual: bool = True
    seed: int = 0
    minimum_divergence: MinimumDivergence = "right"

    def __post_init__(self) -> None:
        least = {"speaker_rank": 1, "channel_rank": 1, "rounds": 0, "seed": 0}
        check_values(
            "joint_factors",
            self,
            least=least,
            choices={"minimum_divergence": get_args(MinimumDivergence)},
        )


@one_line
@dataclass(frozen=True)
class JointFactors:
    """V, U and D, the means and the whitening of their mixture, and the history of their training.

    Attributes
    ----------
    speaker : ndarray of shape (C, D, R)
        V in the whitened space.
    channel : ndarray of shape (C, D, Q)
        U in the whitened space.
    residual : ndarray of shape (C, D)
        The diagonal of D in the whitened space.
    means, factors, weights
        As in `spkver.vectors.TotalVariability`.
    log_likelihoods : ndarray of shape (3, I)
        For V, U and D, in each round: the part of the mean log-likelihood (of a speaker, a session and a speaker) that
        depends on the matrix, in nat, under the parameters before the update.
    """

    speaker: Floats
    channel: Floats
    residual: Floats
    means: Floats
    factors: Floats
    weights: Floats
    log_likelihoods: Floats = field(default_factory=lambda: np.empty((3, 0)))

    def __post_init__(self) -> None:
        self.matrix("speaker")
        self.matrix("channel")
        shape = self.means.shape
        if self.residual.shape != shape or not np.isfinite(self.residual).all():
            text = f"expected a finite residual of shape {shape}, got {self.residual.shape}"
            raise DataError(text, remedy="train the joint factors again")

    def matrix(self, which: str) -> TotalVariability:
        """Return V ("speaker"), U ("channel") or [V U] ("both") as a matrix whose factors have posteriors."""
        if which == "both":
            loadings = np.concatenate([self.speaker, self.channel], axis=2)
        else:
            loadings = getattr(self, which)
        return TotalVariability(loadings, self.means, self.factors, self.weights)


def drawn_start(shape: tuple[int, int], config: JointFactorConfig) -> JointStart:
    """Return random matrices for C Gaussians in D dimensions, with the scatter that MAP adaptation assumes."""
    speaker = start_loadings(shape, config.speaker_rank, config.seed, "speaker factors")
    channel = start_loadings(shape, config.channel_rank, config.seed, "channel factors")
    return speaker, channel, np.full(shape, 1 / np.sqrt(RELEVANCE))


@verbosely
def train_joint_factors(
    mixture: GaussianMixture,
    statistics: Statistics,
    config: JointFactorConfig | None = None,
    *,
    start: JointStart | None = None,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> JointFactors:
    """Train V, U and D, one after another, on the statistics of sessions.

    Parameters
    ----------
    mixture : GaussianMixture
        With diagonal or full covariances.
    statistics : Statistics
        Statistics under that mixture; `models` are the speakers. Files are read in blocks.
    config : JointFactorConfig
    start : tuple of ndarray, optional
        V, U and D to start from, whitened as in `JointFactors`; by default drawn with the seed.
    work : spkbase.work.Work
        The result does not depend on the number of workers.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    JointFactors

    Raises
    ------
    DataError
        If the statistics do not fit this mixture, a number is not finite, or there are none.
    ConfigError
        If a rank is higher than the speakers, the sessions or the mixture allow.
    """
    config = config or JointFactorConfig()
    check_joint_ranks(config, statistics.models, width=mixture.means.size)
    start = start or drawn_start(mixture.means.shape, config)
    if start[2].size != mixture.means.size:
        raise DataError(
            f"the residual to start from has shape {start[2].shape}, expected {mixture.means.shape}"
        )
    sums = sum_by_model(statistics)
    of_speakers = TotalVariabilityConfig(
        rank=config.speaker_rank, rounds=config.rounds, minimum_divergence=config.minimum_divergence
    )
    speaker = train_total_variability(mixture, sums, of_speakers, start=start[0], work=work)
    owners = np.unique(statistics.models, return_inverse=True)[1]
    sessions = _less_factors(speaker, statistics, sources=sums, owners=owners, work=work)[0]
    of_sessions = replace(of_speakers, rank=config.channel_rank)
    channel = train_total_variability(mixture, sessions, of_sessions, start=start[1], work=work)
    scales = np.zeros(mixture.means.shape)
    likelihoods = np.full(config.rounds, np.nan)
    if config.residual:
        scales = start[2].reshape(mixture.means.shape).astype(np.float64)
        rest = sum_by_model(_less_factors(channel, sessions, work=work)[0])
        for number in progress(range(config.rounds), description="residual", total=config.rounds):
            of_blocks = [residual_sums(*block, scales) for block in model_blocks(channel, rest)]
            second, cross, likelihood = (sum(parts) for parts in zip(*of_blocks, strict=True))
            likelihoods[number] = likelihood / len(rest)
            logger.debug("residual round %d: %.6f nat per speaker", number + 1, likelihoods[number])
            scales = residual_m_step(second, cross, scales)
    matrices = speaker.loadings, channel.loadings, scales
    history = np.stack([speaker.log_likelihoods, channel.log_likelihoods, likelihoods])
    return JointFactors(*matrices, mixture.means, speaker.factors, mixture.weights, history)


def check_joint_ranks(
    config: JointFactorConfig, speakers: Sequence[str] | NDArray[Any], *, width: int
) -> None:
    """Raise an error if there are no sessions, given the speaker of each, or too few for matrices of these ranks."""
    n_speakers = len(set(speakers))
    n_sessions = len(speakers)
    if not n_sessions:
        raise DataError("no statistics: expected at least one session")
    for name, most, reason in (
        ("speaker_rank", n_speakers, f"there are only {n_speakers} speakers"),
        ("channel_rank", n_sessions, f"there are only {n_sessions} sessions"),
        ("speaker_rank", width, f"a supervector has only {width} dimensions"),
        ("channel_rank", width, f"a supervector has only {width} dimensions"),
    ):
        rank = getattr(config, name)
        if rank > most:
            raise ConfigError(f"joint_factors.{name} is {rank}, but {reason}", remedy="lower it")


def unwhitened(loadings: Floats, factors: Floats) -> Floats:
    """Return a matrix (C, D, R) of the whitened space in the space of the frames."""
    return np.ascontiguousarray(np.moveaxis(unwhiten(np.moveaxis(loadings, 2, 0), factors), 0, 2))


def model_blocks(
    model: TotalVariability, statistics: Statistics
) -> Iterator[tuple[Floats, Floats]]:
    """Yield counts (n, C) and whitened centred sums (n, C, D), block by block."""
    for start, stop in chunk_bounds(len(statistics), MODELS):
        counts = np.asarray(statistics.zeroth[start:stop]).astype(np.float64)
        first = np.asarray(statistics.first[start:stop]).astype(np.float64)
        first = first.reshape(-1, *model.means.shape)
        with one_blas_thread():
            whitened = whiten(first - counts[:, :, None] * model.means, model.factors)
        yield counts, whitened


def hidden_variables(
    model: JointFactors, statistics: Statistics, *, work: Work = ALL_CORES
) -> tuple[NDArray[Any], Floats, Floats, Floats]:
    """Return y, x and z of each speaker, from the statistics of all its sessions summed.

    [y x] is the posterior mean of the factors of [V U] without D, z the posterior mean of the residual of what remains.

    Parameters
    ----------
    model : JointFactors
    statistics : Statistics
        Statistics of sessions; `models` are the speakers.
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    models : ndarray of str of shape (M,)
        Sorted by id.
    speaker : ndarray of shape (M, R)
        y.
    channel : ndarray of shape (M, Q)
        x, common to all sessions.
    residual : ndarray of shape (M, C, D)
        z.

    Raises
    ------
    DataError
        If the statistics do not fit the mixture, or are not finite.
    """
    both = model.matrix("both")
    both.check(statistics)
    sums = sum_by_model(statistics)
    rest, factors = _less_factors(both, sums, work=work)
    residual = [residual_posterior(*block, model.residual)[0] for block in model_blocks(both, rest)]
    rank = model.speaker.shape[2]
    return sums.models, factors[:, :rank], factors[:, rank:], np.concatenate(residual)


def speaker_vectors(
    model: JointFactors, statistics: Statistics, *, work: Work = ALL_CORES
) -> Supervectors:
    """Return V y + D z of each speaker, whitened, from all its sessions.

    Parameters
    ----------
    model, statistics, work
        As for `hidden_variables`.

    Returns
    -------
    Supervectors
        One row for each speaker, sorted by id; in the dtype of the statistics.

    Raises
    ------
    DataError
        As for `hidden_variables`.
    """
    both = model.matrix("both")
    both.check(statistics)
    sums = sum_by_model(statistics)
    rest, factors = _less_factors(both, sums, work=work)
    rank = model.speaker.shape[2]
    vectors = np.empty((len(sums), model.means.size), statistics.first.dtype)
    matrix = model.speaker.reshape(-1, rank).T
    for start, block in zip(range(0, len(sums), MODELS), model_blocks(both, rest), strict=True):
        rows = slice(start, start + MODELS)
        residual = residual_posterior(*block, model.residual)[0]
        with one_blas_thread():
            offsets = factors[rows, :rank] @ matrix
        vectors[rows] = offsets + (model.residual * residual).reshape(offsets.shape)
    return Supervectors(sums.models, sums.segments, vectors)


def session_vectors(
    model: JointFactors, statistics: Statistics, *, work: Work = ALL_CORES
) -> Supervectors:
    """Return the evidence of each session about its speaker: centred first-order sums minus U x, per frame, whitened.

        g_c = (f_c - n_c (m_c + U_c x)) / sum_c n_c

    x is the posterior mean under only U, as in the reference.

    Parameters
    ----------
    model, statistics, work
        As for `speaker_vectors`.

    Returns
    -------
    Supervectors
        One row for each session, in the order of the statistics.

    Raises
    ------
    DataError
        As for `speaker_vectors`, and if a session has no frames.

    References
    ----------
    Glembek et al., section 3.4.
    """
    totals = np.asarray(statistics.zeroth).sum(axis=1, dtype=np.float64)
    if not (totals > 0).all():
        session = statistics.segments[int(np.argmin(totals > 0))]
        raise DataError(f"segment {session!r} has no frames", remedy="remove it from the lists")
    channel = model.matrix("channel")
    rest = _less_factors(channel, statistics, work=work)[0]
    vectors = np.empty(rest.first.shape, statistics.first.dtype)
    start = 0
    for counts, sums in model_blocks(channel, rest):
        stop = start + len(sums)
        vectors[start:stop] = sums.reshape(len(sums), -1) / counts.sum(axis=1, keepdims=True)
        start = stop
    return Supervectors(rest.models, rest.segments, vectors)


def write_joint_factors(path: str | Path, model: JointFactors) -> None:
    """Write V, U and D with their mixture's means and whitening to an HDF5 file, whole or not at all."""
    arrays = {name: getattr(model, name) for name in _NAMES}
    write_arrays(path, arrays)


def read_joint_factors(path: str | Path) -> JointFactors:
    """Read the joint factors that `write_joint_factors` wrote.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, or does not hold joint factors.
    """
    with errors_of(path, remedy="give a file of write_joint_factors"):
        return JointFactors(**read_arrays(path, *_NAMES))


def _less_factors(
    model: TotalVariability,
    statistics: Statistics,
    *,
    sources: Statistics | None = None,
    owners: NDArray[np.int64] | None = None,
    work: Work,
) -> tuple[Statistics, Floats]:
    """Return statistics without the effect of their factors, or of the factors of their owners; and the factors."""
    if sources is None:
        sources = statistics
    factors = np.asarray(extract_ivectors(model, sources, work=work).vectors)
    loadings = unwhitened(model.loadings, model.factors)
    return without_factors(statistics, loadings, factors, owners), factors
