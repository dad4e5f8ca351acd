"""PLDAs of SIDEKIT: its files, and eigenchannels as its `factor_analysis` estimates them, for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.work import one_blas_thread
from spkver.backend.latent_basis import latent_basis
from spkver.backend.plda import Plda
from spkver.backend.sessions import Sessions, checked_vectors
from spkver.sidekit import FactorAnalyser


def plda_from_sidekit(analyser: FactorAnalyser) -> Plda:
    """Return the PLDA that a FactorAnalyser of SIDEKIT holds (`spkver.sidekit.read_factor_analyser`).

    Raises
    ------
    DataError
        If the mean, F or a full Sigma is missing, or it has an H, which no PLDA has.
    """
    mean, loadings, residual = analyser.mean, analyser.loadings, analyser.residual
    if mean is None or loadings is None or residual is None or residual.ndim != 2 or analyser.diagonal is not None:
        there = [name for name in ("mean", "loadings", "channel", "diagonal", "residual") if _has(analyser, name)]
        raise DataError(
            f"expected the mean, the loadings F and the full covariance Sigma of a PLDA, got {', '.join(there)}",
            remedy="a total variability model or a joint factor analysis is no PLDA",
        )
    return Plda(mean, loadings, residual, analyser.channel)


def _has(analyser: FactorAnalyser, name: str) -> bool:
    return getattr(analyser, name) is not None


def plda_to_sidekit(plda: Plda) -> FactorAnalyser:
    """Return a PLDA as a FactorAnalyser, for `spkver.sidekit.write_factor_analyser`."""
    return FactorAnalyser(plda.mean, plda.loadings, plda.channel, None, plda.residual)


def add_sidekit_channels(
    plda: Plda, vectors: NDArray, speakers: Sequence[str] | NDArray, start: NDArray, *, iterations: int = 10
) -> Plda:
    """Return a PLDA with the G that SIDEKIT's convention gives it: after F, with the total covariance as the residual.

    Both the speakers' y and the G of what is left of the vectors, x - m - F y, are estimated as if the residual were
    the covariance of all vectors, and S stays what it was; so F F' + G G' + S counts the channel twice. By the book, G
    is part of the same EM: `PldaConfig.channel_rank`.

    Parameters
    ----------
    plda : Plda
        Without G, trained on the same vectors.
    vectors : ndarray of shape (N, R)
    speakers : sequence of str or int, of length N
    start : ndarray of shape (R, L)
        The first G.
    iterations : int
        Rounds of EM, each with SIDEKIT's minimum divergence.

    Returns
    -------
    Plda

    Raises
    ------
    DataError
        If shapes disagree, or the total covariance is singular.
    """
    sessions, _ = Sessions.named(checked_vectors(vectors, "training vectors", plda.dimension), speakers)
    channel = np.array(start, np.float64)
    if channel.ndim != 2 or len(channel) != plda.dimension:
        raise DataError(f"expected a first G of shape ({plda.dimension}, any), got {channel.shape}")
    with one_blas_thread():
        centred = sessions.vectors - plda.mean
        total = centred.T @ centred / len(centred)
        basis = latent_basis(plda.loadings, total)
        sums = (sessions.sums - sessions.counts[:, None] * plda.mean) @ basis.projection
        factors = sums / (1 + np.outer(sessions.counts, basis.precisions))
        left = centred - (factors @ (plda.loadings @ basis.rotation).T)[sessions.models]
        for _ in range(iterations):
            weighted = np.linalg.solve(total, channel)
            spread = np.linalg.inv(np.eye(channel.shape[1]) + channel.T @ weighted)
            means = left @ weighted @ spread
            second = len(left) * spread + means.T @ means
            upper = np.linalg.cholesky(second / len(left)).T
            channel = np.linalg.solve(second, means.T @ left).T @ upper
    return replace(plda, channel=channel)
