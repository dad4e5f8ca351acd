"""Scores of exactly the trials that are asked for: the cost follows their number.

Trials that form a block (all models of a sentence against all its segments) are one matrix product of the rows that
take part. Trials that do not are put together, and the rows of either side multiplied pair by pair.

References
----------
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores, Trials
from spkbase.arrays import Rows, SelectedRows, StoredArray, part
from spkbase.errors import DataError
from spkbase.files import TemporaryRows
from spkbase.files import fingerprint as digest_of
from spkbase.runs import SUFFIX, DestinationLike, as_destination, resumed_map
from spkbase.work import ALL_CORES, Work, at_once, chunk_bounds, chunks
from spkver.backend.likelihood_ratio import log_likelihood_ratios
from spkver.backend.nap import DeviceProjection, Projection
from spkver.backend.scoring_device import MeanRatios, block_scores, pair_scores
from spkver.backend.svm import SvmModels
from spkver.backend.trial_pieces import put_together, trial_pieces
from spkver.features import Frames, row_index
from spkver.mixture import GaussianMixture, Table, check_frames, natural_parameters
from spkver.vectors import Supervectors, vectors_of

_SEGMENTS = 8  # in one task, where scores come from frames
_PAIRED = 16e6  # bytes of rows that are multiplied pair by pair at once
_COLUMNS = 2048  # dimensions of pairs that are summed in the dtype of the vectors
_ROWS = 256  # vectors that are projected in one task
_OFTEN = 2  # readings of each vector above which it is projected before
_MODELS = 64  # models that are read together, where scores come from frames


def linear_scores(weights: NDArray, biases: NDArray, vectors: NDArray) -> NDArray:
    """Return the scores of all of some models with all of some segments: s = w . x + b.

    Parameters
    ----------
    weights : ndarray of shape (m, D)
    biases : ndarray of shape (m,)
    vectors : ndarray of shape (n, D)

    Returns
    -------
    ndarray of shape (m, n)
    """
    return weights @ vectors.T + biases[:, None]


def paired_scores(weights: NDArray, biases: NDArray, vectors: NDArray, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the scores of each model with one segment: s_i = w_i . x_pairs[i] + b_i.

    Parameters
    ----------
    weights : ndarray of shape (n, D)
    biases : ndarray of float64 of shape (n,)
    vectors : ndarray of shape (s, D)
    pairs : ndarray of int64 of shape (n,)
        Row of `vectors` of each model.

    Returns
    -------
    ndarray of shape (n,)
        Products of some thousand dimensions are summed in the dtype of the vectors, and those in float64.
    """
    scores = biases.copy()
    for start, stop in chunk_bounds(vectors.shape[1], _COLUMNS):
        scores += np.einsum("ij,ij->i", weights[:, start:stop], vectors[pairs, start:stop])
    return scores


def score_trials(
    machines: SvmModels,
    tests: Supervectors,
    trials: Trials,
    *,
    projection: Projection | None = None,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Scores:
    """Score trials with linear machines.

    Parameters
    ----------
    machines : SvmModels
        Weights in a file (`spkver.backend.open_svms`) are read where they are needed.
    tests : Supervectors
        Of the tested segments, in any order.
    trials : evaluation.trials.Trials
        Models that share their segments (all models of one sentence, say) are scored as one matrix product; the cost
        follows the number of trials.
    projection : Projection, optional
        Applied to the vectors when they are read.
    work : spkbase.work.Work
        Scores do not depend on the number of workers; those of a device are equal to the rounding of the dtype.
    destination : Destination, optional
        Its folder keeps finished chunks; the scores are handed back. The fingerprint is that of machines, vectors and
        projection.

    Returns
    -------
    evaluation.trials.Scores
        In the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is not there.
    """
    vectors, destination = vectors_of(tests, ids="segments"), as_destination(destination, writer="write_scores")
    model_rows = _rows(trials.model_ids, trials.models, machines.models, "model")
    segment_rows = _rows(trials.segment_ids, trials.segments, tests.segments, "segment")
    row_bytes = max(1, vectors.shape[1] * vectors.dtype.itemsize)
    pieces = trial_pieces(trials, paired=max(1, int(_PAIRED // row_bytes)))
    tasks = put_together(pieces, row_bytes)
    folder = destination.folder
    with ExitStack() as stack:
        used = np.unique(trials.segments)
        if work.device is None and projection is not None and _n_read(pieces, trials) > _OFTEN * len(used):
            # segments that stand in many pieces are projected once, not every time that they are read
            vectors = stack.enter_context(_projected(vectors, segment_rows[used], projection, folder, work))
            segment_rows[used], projection = np.arange(len(used)), None

        def factors(piece: NDArray[np.int64]) -> Factors:
            if piece.ndim == 1:
                models, (segments, pairs) = trials.models[piece], np.unique(trials.segments[piece], return_inverse=True)
            else:
                models, segments, pairs = trials.models[piece[:, 0]], trials.segments[piece[0]], None
            rows = model_rows[models]
            weights, tested = SelectedRows(machines.weights, rows), SelectedRows(vectors, segment_rows[segments])
            return Factors(weights, machines.biases[rows], tested, pairs)

        score: Callable[[list[Factors]], NDArray[np.float64]] = partial(_score_factors, projection=projection)
        if work.device is not None:
            score = partial(
                _score_on_device,
                weights=Table(machines.weights, work.device),
                vectors=Table(vectors, work.device),
                projection=None if projection is None else DeviceProjection(projection, work.device),
            )
        items = [[factors(piece) for piece in task] for task in tasks]
        trial_rows = [np.concatenate([piece.ravel() for piece in task]) for task in tasks]
        return _scores_in_order(score, items, trial_rows, trials, work, destination)


def _n_read(pieces: list[NDArray[np.int64]], trials: Trials) -> int:
    """Return how many vectors the pieces read, all together."""
    return sum(len(np.unique(trials.segments[rows])) if rows.ndim == 1 else rows.shape[1] for rows in pieces)


@contextmanager
def _projected(
    vectors: Rows, rows: NDArray[np.int64], projection: Projection, folder: str | Path | None, work: Work
) -> Iterator[Rows]:
    """Yield projected rows: in a file where vectors are in one and there is a folder, else in memory."""
    bounds = chunk_bounds(len(rows), _ROWS)
    blocks = work.map(
        projection.of_rows, (SelectedRows(vectors, rows[start:stop]) for start, stop in bounds), total=len(bounds)
    )
    if folder is None or not isinstance(vectors, StoredArray):
        yield np.concatenate([*blocks])
        return
    kept = TemporaryRows(folder, (len(rows), vectors.shape[1]), vectors.dtype, what="projected vectors", named=True)
    try:
        for block in blocks:
            kept.append(block)
        yield kept.stored()
    finally:
        kept.remove()


def _scores_in_order(
    score: Callable[[Any], NDArray],
    items: Sequence[Any],
    trial_rows: Sequence[NDArray[np.int64]],
    trials: Trials,
    work: Work,
    destination: DestinationLike,
) -> Scores:
    """Score the tasks that are not in the journal and put the scores of all where their trials stand."""
    columns = trials.model_ids, trials.segment_ids, trials.models, trials.segments
    journal, fingerprint = None, ""
    destination = as_destination(destination, writer="write_scores")
    if destination.folder is not None:
        journal = Path(destination.folder) / f"scores{SUFFIX}"
        fingerprint = digest_of(destination.fingerprint, columns)
    values = np.empty(len(trials))
    with nullcontext() if work.device is None else at_once():  # one device, one stream of tasks
        scores_of_tasks = resumed_map(
            score,
            items,
            journal=journal,
            fingerprint=fingerprint,
            pack=lambda scores: ({"scores": scores}, None),
            unpack=lambda arrays, _: arrays["scores"],
            jobs=work.jobs,
            threads=True,
            description="scoring",
            sizes=[*map(len, trial_rows)],
        )
        for rows, scores in zip(trial_rows, scores_of_tasks, strict=True):
            values[rows] = scores
    return Scores(*columns, values)


def _rows(ids: NDArray, used: NDArray, available: Sequence[str] | NDArray, what: str) -> NDArray[np.int64]:
    """Return the row of each id of a table among those available; -1 for ids without a trial that are not there."""
    index = row_index(list(available))
    rows = np.array([index.get(name, -1) for name in ids], np.int64)
    missing = np.unique(used[rows[used] < 0]) if len(used) else used
    if len(missing):
        names = ", ".join(repr(ids[code]) for code in missing[:5])
        raise DataError(
            f"{len(missing)} {what}s of the trials are not there: {names}{' ...' if len(missing) > 5 else ''}",
            remedy=f"enrol every model and extract every segment of the trial list ({what} ids must be equal)",
        )
    return rows


@dataclass(frozen=True)
class Factors:
    """What is multiplied at once: all weights with all vectors, or each weight vector with the one that `pairs` names.

    Attributes
    ----------
    weights : SelectedRows of shape (m, D)
    biases : ndarray of shape (m,)
    vectors : SelectedRows of shape (s, D)
    pairs : ndarray of int64 of shape (m,), or None
    """

    weights: SelectedRows
    biases: NDArray[np.float64]
    vectors: SelectedRows
    pairs: NDArray[np.int64] | None


def _score_factors(pieces: list[Factors], projection: Projection | None) -> NDArray[np.float64]:
    scores = []
    for piece in pieces:
        weights = np.asarray(piece.weights)
        vectors = np.asarray(piece.vectors) if projection is None else projection.of_rows(piece.vectors)
        if piece.pairs is None:
            scores.append(linear_scores(weights, piece.biases, vectors).ravel())
        else:
            scores.append(paired_scores(weights, piece.biases, vectors, piece.pairs))
    return np.concatenate(scores)


def _score_on_device(
    pieces: list[Factors], weights: Table, vectors: Table, projection: DeviceProjection | None
) -> NDArray[np.float64]:
    """Score pieces on a device, where the rows of both sides are, if there is room for them."""
    scores = []
    for piece in pieces:
        models, segments = piece.weights.rows, piece.vectors.rows
        if piece.pairs is None:
            scores.append(block_scores(weights, vectors, models, segments, projection).ravel())
            scores[-1] += np.repeat(piece.biases, len(segments))
        else:
            scores.append(pair_scores(weights, vectors, models, segments[piece.pairs], projection))
            scores[-1] += piece.biases
    return np.concatenate(scores)


def score_gmm_ubm(
    mixture: GaussianMixture,
    models: Supervectors,
    frames: Frames,
    trials: Trials,
    *,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Scores:
    """Score trials by the log-likelihood ratio of adapted models and the UBM, see `log_likelihood_ratios`.

    Parameters
    ----------
    mixture : GaussianMixture
        The UBM; models share its weights and variances.
    models : Supervectors
        Adapted means (M, C * D) of each model, not normalised.
    frames : Frames
        Frames of the tested segments.
    trials : evaluation.trials.Trials
    work, destination
        As for `score_trials`.

    Returns
    -------
    evaluation.trials.Scores
        In nat per frame, in the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is not there, or a segment has no frames.
    """
    check_frames(frames.values, mixture)
    means = vectors_of(models, ids="models")
    model_rows = _rows(trials.model_ids, trials.models, models.models, "model")
    segment_rows = _rows(trials.segment_ids, trials.segments, frames.ids, "segment")
    order = np.argsort(trials.segments, kind="stable")
    ends = np.flatnonzero(np.diff(trials.segments[order])) + 1
    of_segments = [rows for rows in np.split(order, ends) if len(rows)]  # trials of each segment
    for rows in of_segments:
        segment = segment_rows[trials.segments[rows[0]]]
        if frames.offsets[segment] == frames.offsets[segment + 1]:
            raise DataError(f"recording {frames.ids[segment]!r} has no frames", remedy="remove it from the lists")

    def frames_and_means(rows: NDArray[np.int64]) -> tuple[Rows, SelectedRows]:
        segment = segment_rows[trials.segments[rows[0]]]
        tested = part(frames.values, *frames.offsets[segment : segment + 2].tolist())
        return tested, SelectedRows(means, model_rows[trials.models[rows]])

    tasks = chunks(of_segments, _SEGMENTS)
    items = [[frames_and_means(rows) for rows in task] for task in tasks]
    trial_rows = [np.concatenate(task) for task in tasks]
    score: Callable[[Any], NDArray[np.float64]] = partial(_segment_ratios, mixture=mixture)
    if work.device is not None:
        ratios = MeanRatios(natural_parameters(mixture), Table(means, work.device), frames.values.dtype)
        score = partial(_segment_ratios_on_device, ratios=ratios)
    return _scores_in_order(score, items, trial_rows, trials, work, destination)


def _segment_ratios(segments: list[tuple[Rows, SelectedRows]], mixture: GaussianMixture) -> NDArray[np.float64]:
    """Score segments against the models whose means are given with them, some of which are read at a time."""
    scores = []
    for frames, means in segments:
        some = (np.asarray(means.part(start, stop)) for start, stop in chunk_bounds(len(means), _MODELS))
        adapted = (row.reshape(mixture.means.shape) for rows in some for row in rows)
        scores.append(log_likelihood_ratios(np.asarray(frames), adapted, mixture))
    return np.concatenate(scores)


def _segment_ratios_on_device(segments: list[tuple[Rows, SelectedRows]], ratios: MeanRatios) -> NDArray[np.float64]:
    """Score segments on a device, which has the means."""
    return np.concatenate([ratios(np.asarray(frames), means.rows) for frames, means in segments])
