"""Joint factors at work: the hidden variables of speakers, vectors of speakers and of sessions, files.

The linear score of a session under a speaker is the inner product of their vectors (`speaker_vectors`,
`session_vectors`); `spkver.backend.score_joint_factors` scores trials by it.

References
----------
P. Kenny, P. Ouellet, N. Dehak, V. Gupta and P. Dumouchel, "A study of interspeaker variability in speaker
verification", IEEE Trans. Audio, Speech and Language Processing 16(5), 2008.
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import fill_rows
from spkbase.errors import DataError
from spkbase.files import check_forms, open_file, read_arrays, write_arrays
from spkbase.runs import DestinationLike, as_destination
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunk_bounds, one_blas_thread
from spkver.mixture import Statistics, write_stat_blocks
from spkver.vectors.ivectors import extract_ivectors
from spkver.vectors.joint_factor_analysis import MODELS, JointFactors, model_blocks, residual_posterior, unwhitened
from spkver.vectors.session_sums import summed_by_model, without_factors
from spkver.vectors.supervectors import Supervectors

_NAMES = ("speaker", "channel", "residual", "means", "factors", "weights", "log_likelihoods")
_Block = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # counts, sums, factors


@one_line
@dataclass(frozen=True)
class HiddenVariables:
    """Posterior means of what joint factor analysis takes a speaker's sessions to be made of.

    Attributes
    ----------
    models : ndarray of str of shape (M,)
    speaker : ndarray of shape (M, R)
        y.
    channel : ndarray of shape (M, Q)
        x, that of all sessions together.
    residual : ndarray of shape (M, C, D)
        z.
    """

    models: NDArray
    speaker: NDArray[np.float64]
    channel: NDArray[np.float64]
    residual: NDArray[np.float64]


def hidden_variables(model: JointFactors, statistics: Statistics, *, work: Work = ALL_CORES) -> HiddenVariables:
    """Return y, x and z of each speaker, from the statistics of all its sessions summed.

    [y x] is the posterior mean of the factors of [V U] without D, and z that of the residual of what they leave.

    Parameters
    ----------
    model : JointFactors
    statistics : Statistics
        Of sessions; `models` are the speakers.
    work : spkbase.work.Work
        The result does not depend on the number of workers; a device computes y and x, equal to rounding.

    Returns
    -------
    HiddenVariables
        Models sorted by id.

    Raises
    ------
    DataError
        If the statistics are not those of the mixture, or not finite.
    """
    sums, factors, blocks = _enrolled(model, statistics, work)
    found = work.on_cores().map(partial(_residual_of_block, scales=model.residual), blocks(0))
    residual = np.concatenate(list(found))
    rank = model.speaker.shape[2]
    return HiddenVariables(sums.models, factors[:, :rank], factors[:, rank:], residual)


def speaker_vectors(
    model: JointFactors,
    statistics: Statistics,
    *,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Supervectors:
    """Return V y + D z of each speaker, whitened, from all its sessions.

    Parameters
    ----------
    model, statistics, work
        As for `hidden_variables`.
    destination : Destination or path, optional
        With a path, rows go straight into a file in the layout of SIDEKIT's StatServer, float32, and are read from it
        when they are asked for. The fingerprint is that of the joint factors and the statistics.

    Returns
    -------
    Supervectors
        One row for each speaker, sorted by id; in memory in the dtype of the statistics.

    Raises
    ------
    DataError
        As for `hidden_variables`, and if the file cannot be written.
    """
    sums, _, blocks = _enrolled(model, statistics, work)
    of_block = partial(_speaker_block, speaker=model.speaker, scales=model.residual)
    dtype = statistics.first.dtype
    return _vectors(sums, dtype, lambda done: work.on_cores().map(of_block, blocks(done)), destination)


def session_vectors(
    model: JointFactors,
    statistics: Statistics,
    *,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Supervectors:
    """Return what each session says about its speaker: its centred first-order sums less U x, per frame, whitened.

        g_c = (f_c - n_c (m_c + U_c x)) / sum_c n_c

    x is the posterior mean under U alone, as in the reference.

    Parameters
    ----------
    model, statistics, work, destination
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
    factors = np.asarray(extract_ivectors(channel, statistics, work=work).vectors)
    left = without_factors(statistics, unwhitened(channel.loadings, channel.factors), factors)

    def rows(done: int) -> Iterator[NDArray[np.float64]]:
        return work.on_cores().map(_per_frame, model_blocks(channel, left, done=done))

    return _vectors(left, statistics.first.dtype, rows, destination)


def _enrolled(
    model: JointFactors, statistics: Statistics, work: Work
) -> tuple[Statistics, NDArray[np.float64], Callable[[int], Iterator[_Block]]]:
    """Sums of each speaker, their factors [y x], and what makes blocks of counts, sums less V y + U x, and factors."""
    both = model.matrix("both")
    both.check(statistics)
    sums = summed_by_model(statistics)
    factors = np.asarray(extract_ivectors(both, sums, work=work).vectors)
    left = without_factors(sums, unwhitened(both.loadings, both.factors), factors)

    def blocks(done: int) -> Iterator[_Block]:
        bounds = chunk_bounds(len(sums), MODELS)[done:]
        for (start, stop), (counts, whitened) in zip(bounds, model_blocks(both, left, done=done), strict=True):
            yield counts, whitened, factors[start:stop]

    return sums, factors, blocks


def _residual_of_block(block: _Block, scales: NDArray[np.float64]) -> NDArray[np.float64]:
    return residual_posterior(block[0], block[1], scales)[0]


def _speaker_block(block: _Block, speaker: NDArray[np.float64], scales: NDArray[np.float64]) -> NDArray[np.float64]:
    counts, sums, factors = block
    rank = speaker.shape[2]
    with one_blas_thread():
        offsets = factors[:, :rank] @ speaker.reshape(-1, rank).T
    return offsets + (scales * residual_posterior(counts, sums, scales)[0]).reshape(offsets.shape)


def _per_frame(block: tuple[NDArray[np.float64], NDArray[np.float64]]) -> NDArray[np.float64]:
    counts, sums = block
    return sums.reshape(len(sums), -1) / counts.sum(axis=1, keepdims=True)


def _vectors(
    statistics: Statistics,
    dtype: np.dtype,
    rows: Callable[[int], Iterator[NDArray[np.float64]]],
    destination: DestinationLike,
) -> Supervectors:
    """Vectors of the rows of statistics, in memory or in a file; `rows` makes those of the blocks after some."""
    names, width = (statistics.models, statistics.segments), statistics.first.shape[1]
    destination = as_destination(destination)
    if destination.path is None:
        vectors = np.empty((len(statistics), width), dtype)
        fill_rows((vectors,), ((block,) for block in rows(0)))
        return Supervectors(*names, vectors)
    n_blocks = len(chunk_bounds(len(statistics), MODELS))
    _, stored = write_stat_blocks(
        destination,
        *names,
        (1, width),
        lambda draft: ((np.ones((len(block), 1), np.float32), block) for block in rows(draft.n_done)),
        n_blocks,
    )
    return Supervectors(*names, stored)


def write_joint_factors(path: str | Path, model: JointFactors, *, attributes: Mapping[str, Any] | None = None) -> None:
    """Write V, U and D with their mixture's means and whitening to an HDF5 file, whole or not at all."""
    arrays = {name: getattr(model, name) for name in _NAMES}
    write_arrays(path, arrays, attributes=attributes)


def read_joint_factors(path: str | Path) -> JointFactors:
    """Read what `write_joint_factors` has written.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, or what it holds are no joint factors.
    """
    with open_file(path) as file:
        # not by an attribute of text: in a damaged file the library may come to no end when it reads one
        missing = [name for name in _NAMES if name not in file]
    if missing:
        text = f"expected joint factors, got another kind of file: it has no {', '.join(missing)}"
        raise DataError(text, file=path, remedy="give a file of write_joint_factors")
    arrays = read_arrays(path, *_NAMES)
    whitening = "f3" if getattr(arrays.get("factors"), "ndim", 2) == 3 else "f2"
    forms = dict.fromkeys(("speaker", "channel"), "f3") | dict.fromkeys(("residual", "means", "log_likelihoods"), "f2")
    check_forms(path, arrays, **forms, factors=whitening, weights="f1")
    try:
        return JointFactors(*(arrays[name].astype(np.float64, copy=False) for name in _NAMES))
    except DataError as error:
        raise DataError(error.text, file=path, remedy=error.remedy) from error
