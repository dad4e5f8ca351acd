"""Scores of exactly the trials that are asked for: the cost follows their number.

Trials that form a block (all models of a sentence against all its segments) are one matrix product of the rows that
take part. Trials that do not are put together, and the rows of either side multiplied pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from spkbase.runs import SUFFIX, resumed_map
from spkbase.work import Device, at_once, chunk_bounds, chunks, ordered_map
from spkver.backend.nap import Projection
from spkver.backend.scoring_device import MeanRatios, block_scores, pair_scores
from spkver.backend.svm import SvmModels
from spkver.backend.trial_pieces import put_together, trial_pieces
from spkver.features import Frames, row_index
from spkver.mixture import GaussianMixture, Table, block_size, check_frames, log_likelihood, natural_parameters
from spkver.vectors import Projector

_CHUNK = 8  # segments in one task, where scores come from frames
_PAIRED = 16e6  # bytes of rows that are multiplied pair by pair at once
_COLUMNS = 2048  # dimensions of pairs that are summed in the dtype of the vectors
_ROWS = 256  # vectors that are projected in one task
_OFTEN = 2  # readings of each vector above which it is projected before
_MODELS = 64  # models that are read together, where scores come from frames


def score_trials(
    machines: SvmModels,
    segments: Sequence[str] | NDArray,
    vectors: Rows,
    trials: Trials,
    *,
    projection: Projection | None = None,
    folder: str | Path | None = None,
    fingerprint: str = "",
    jobs: int | None = None,
    device: Device | None = None,
) -> Scores:
    """Score trials with linear machines.

    Parameters
    ----------
    machines : SvmModels
        Weights in a file (`spkver.backend.open_svms`) are read where they are needed.
    segments : sequence of str, length S
        Ids of the rows of `vectors`, in any order.
    vectors : ndarray or StoredArray [shape=(S, D)]
    trials : evaluation.trials.Trials
        Models that share their segments (all models of one sentence, say) are scored as one matrix product; the cost
        follows the number of trials.
    projection : Projection, optional
        Applied to vectors when they are read.
    folder : path, optional
        Keeps what is done if the process is killed; called again with it, only the rest is worked out.
    fingerprint : str
        Of machines, vectors and projection: what is in the folder is used again if it has the same.
    jobs : int, optional
        Workers; the scores do not depend on it.
    device : spkbase.work.Device, optional
        Computes there instead, equal to the rounding of the vectors' dtype.

    Returns
    -------
    evaluation.trials.Scores
        In the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is not there.
    """
    model_rows = _rows(trials.model_ids, trials.models, machines.models, "model")
    segment_rows = _rows(trials.segment_ids, trials.segments, segments, "segment")
    row_bytes = max(1, vectors.shape[1] * vectors.dtype.itemsize)
    pieces = trial_pieces(trials, paired=max(1, int(_PAIRED // row_bytes)))
    tasks = put_together(pieces, row_bytes)
    with ExitStack() as stack:
        used = np.unique(trials.segments)
        if device is None and projection is not None and _n_read(pieces, trials) > _OFTEN * len(used):
            # segments that stand in many pieces are projected once, not every time that they are read
            vectors = stack.enter_context(_projected(vectors, segment_rows[used], projection, folder, jobs))
            segment_rows[used], projection = np.arange(len(used)), None
        items = [
            [_piece(place, trials, machines, vectors, model_rows, segment_rows) for place in task] for task in tasks
        ]
        work: Callable[[list[_Piece]], NDArray[np.float64]] = partial(_score_pieces, projection=projection)
        if device is not None:
            projector = None if projection is None else Projector(projection.directions, device)
            weights, tested = Table(machines.weights, device), Table(vectors, device)
            work = partial(_score_there, weights=weights, vectors=tested, projector=projector)
            stack.enter_context(at_once())  # one device, one stream of blocks
        places = [np.concatenate([place.ravel() for place in task]) for task in tasks]
        return _collect(work, items, places, trials, folder, fingerprint, 1 if device is not None else jobs)


def _n_read(pieces: list[NDArray[np.int64]], trials: Trials) -> int:
    """Vectors that pieces read, all together."""
    return sum(len(np.unique(trials.segments[one])) if one.ndim == 1 else one.shape[1] for one in pieces)


@contextmanager
def _projected(
    vectors: Rows, rows: NDArray[np.int64], projection: Projection, folder: str | Path | None, jobs: int | None
) -> Iterator[Rows]:
    """Projected rows: in a file where vectors are in one and there is a folder, else in memory."""
    bounds = chunk_bounds(len(rows), _ROWS)
    items = (SelectedRows(vectors, rows[start:stop]) for start, stop in bounds)
    blocks = ordered_map(projection.of_rows, items, jobs=jobs, threads=True, total=len(bounds))
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


def _collect(
    work: Callable[[Any], NDArray],
    items: Sequence[Any],
    places: Sequence[NDArray[np.int64]],
    trials: Trials,
    folder: str | Path | None,
    fingerprint: str,
    jobs: int | None,
) -> Scores:
    """Run the tasks that are not in the journal and put the scores of all where they belong."""
    columns = trials.model_ids, trials.segment_ids, trials.models, trials.segments
    values = np.empty(len(trials))
    results = resumed_map(
        work,
        items,
        journal=None if folder is None else Path(folder) / f"scores{SUFFIX}",
        fingerprint="" if folder is None else digest_of(fingerprint, columns),
        pack=_pack,
        unpack=_unpack,
        jobs=jobs,
        threads=True,
        description="scoring",
    )
    for place, scores in zip(places, results, strict=True):
        values[place] = scores
    return Scores(*columns, values)


def _pack(scores: NDArray[np.float64]) -> tuple[dict[str, NDArray], None]:
    return {"scores": scores}, None


def _unpack(arrays: dict[str, NDArray], note: object) -> NDArray[np.float64]:
    return arrays["scores"]


def _rows(ids: NDArray, used: NDArray, available: Sequence[str] | NDArray, what: str) -> NDArray[np.int64]:
    """Row of each id of a table among those available; -1 for ids that no trial uses and that are not there."""
    index = row_index(list(available))
    rows = np.array([index.get(one, -1) for one in ids], np.int64)
    missing = np.unique(used[rows[used] < 0]) if len(used) else used
    if len(missing):
        names = ", ".join(repr(ids[code]) for code in missing[:5])
        raise DataError(
            f"{len(missing)} {what}s of the trials are not there: {names}{' ...' if len(missing) > 5 else ''}",
            remedy=f"enrol every model and extract every segment of the trial list ({what} ids must be equal)",
        )
    return rows


@dataclass(frozen=True)
class _Piece:
    """Weights (m, D) and vectors (s, D): all against all, or each model with the vector that `pairs` names."""

    weights: SelectedRows
    biases: NDArray[np.float64]
    vectors: SelectedRows
    pairs: NDArray[np.int64] | None


def _piece(
    place: NDArray[np.int64],
    trials: Trials,
    machines: SvmModels,
    vectors: Rows,
    model_rows: NDArray[np.int64],
    segment_rows: NDArray[np.int64],
) -> _Piece:
    if place.ndim == 1:
        models, (own, pairs) = trials.models[place], np.unique(trials.segments[place], return_inverse=True)
    else:
        models, own, pairs = trials.models[place[:, 0]], trials.segments[place[0]], None
    rows = model_rows[models]
    tested = SelectedRows(vectors, segment_rows[own])
    return _Piece(SelectedRows(machines.weights, rows), machines.biases[rows], tested, pairs)


def _score_pieces(pieces: list[_Piece], projection: Projection | None) -> NDArray[np.float64]:
    scores = []
    for piece in pieces:
        weights, vectors = np.asarray(piece.weights), np.asarray(piece.vectors)
        if projection is not None:
            vectors = projection.of_rows(vectors)
        if piece.pairs is None:
            scores.append((weights @ vectors.T + piece.biases[:, None]).ravel())
            continue
        total = piece.biases.copy()
        for start, stop in chunk_bounds(vectors.shape[1], _COLUMNS):
            total += np.einsum("ij,ij->i", weights[:, start:stop], vectors[piece.pairs, start:stop])
        scores.append(total)
    return np.concatenate(scores)


def _score_there(
    pieces: list[_Piece], weights: Table, vectors: Table, projector: Projector | None
) -> NDArray[np.float64]:
    """Scores of pieces on a device, where the rows of both sides are, if there is room for them."""
    scores = []
    for piece in pieces:
        models, segments = piece.weights.rows, piece.vectors.rows
        if piece.pairs is None:
            scores.append(block_scores(weights, vectors, models, segments, projector).ravel())
            scores[-1] += np.repeat(piece.biases, len(segments))
        else:
            scores.append(pair_scores(weights, vectors, models, segments[piece.pairs], projector))
            scores[-1] += piece.biases
    return np.concatenate(scores)


def score_gmm_ubm(
    mixture: GaussianMixture,
    models: Sequence[str] | NDArray,
    means: Rows,
    frames: Frames,
    trials: Trials,
    *,
    folder: str | Path | None = None,
    fingerprint: str = "",
    jobs: int | None = None,
    device: Device | None = None,
) -> Scores:
    """Score trials by the log-likelihood ratio of adapted models and the UBM, per frame.

    Parameters
    ----------
    mixture : GaussianMixture
        The UBM; models share its weights and variances.
    models : sequence of str, length M
    means : ndarray or StoredArray [shape=(M, C * D)]
        Adapted means of each model, not normalised.
    frames : Frames
        Frames of the tested segments.
    trials : evaluation.trials.Trials
    folder, fingerprint, jobs, device
        See `score_trials`.

    Returns
    -------
    evaluation.trials.Scores
        In nat per frame, in the order of the trials.

    References
    ----------
    D. A. Reynolds, T. F. Quatieri and R. B. Dunn, Digital Signal Processing 10, 2000, equation 11.
    """
    check_frames(frames.values, mixture)
    model_rows = _rows(trials.model_ids, trials.models, models, "model")
    segment_rows = _rows(trials.segment_ids, trials.segments, frames.ids, "segment")
    order = np.argsort(trials.segments, kind="stable")
    groups = [group for group in np.split(order, np.flatnonzero(np.diff(trials.segments[order])) + 1) if len(group)]
    for group in groups:
        row = segment_rows[trials.segments[group[0]]]
        if frames.offsets[row] == frames.offsets[row + 1]:
            raise DataError(f"recording {frames.ids[row]!r} has no frames", remedy="remove it from the lists")

    def of_segment(group: NDArray[np.int64]) -> tuple[Rows, SelectedRows]:
        row = segment_rows[trials.segments[group[0]]]
        own = part(frames.values, *frames.offsets[row : row + 2].tolist())
        return own, SelectedRows(means, model_rows[trials.models[group]])

    tasks = chunks(groups, _CHUNK)
    items = [[of_segment(group) for group in task] for task in tasks]
    places = [np.concatenate(task) for task in tasks]
    if device is not None:
        ratios = MeanRatios(natural_parameters(mixture), Table(means, device), frames.values.dtype)
        with at_once():
            return _collect(partial(_ratios, ratios=ratios), items, places, trials, folder, fingerprint, 1)
    work = partial(_score_segments, mixture=mixture)
    return _collect(work, items, places, trials, folder, fingerprint, jobs)


def _ratios(segments: list[tuple[Rows, SelectedRows]], ratios: MeanRatios) -> NDArray[np.float64]:
    """Scores of segments on a device, which has the means."""
    return np.concatenate([ratios(np.asarray(frames), means.rows) for frames, means in segments])


def _score_segments(segments: list[tuple[Rows, SelectedRows]], mixture: GaussianMixture) -> NDArray[np.float64]:
    """Scores of segments, given with the means of the models that they are tested against."""
    scores = []
    parameters = natural_parameters(mixture).astype(segments[0][0].dtype)
    precisions = 1.0 / mixture.variances
    log_weights = parameters[:, -1:] + 0.5 * (mixture.means**2 * precisions).sum(axis=1, keepdims=True)
    for frames, means in segments:
        own = np.asarray(frames)
        # what depends on x^2 is the same for all models: they share weights and variances
        shared = parameters[:, : mixture.dimension] @ (own * own).T
        background = log_likelihood(own, mixture).mean()
        for adapted in _means(means, mixture):
            linear = (adapted * precisions).astype(own.dtype)
            constant = log_weights - 0.5 * (adapted * adapted * precisions).sum(axis=1, keepdims=True)
            scores.append(_mean_log_likelihood(shared, linear, constant.astype(own.dtype), own) - background)
    return np.array(scores)


def _means(rows: SelectedRows, mixture: GaussianMixture) -> Iterator[NDArray]:
    for start, stop in chunk_bounds(len(rows), _MODELS):
        yield from np.asarray(rows.part(start, stop)).reshape(-1, *mixture.means.shape)


def _mean_log_likelihood(shared: NDArray, linear: NDArray, constant: NDArray, frames: NDArray) -> float:
    """Mean log-likelihood of frames under one model, from the part that all models share."""
    total = 0.0
    size = block_size(len(linear))
    for start in range(0, len(frames), size):
        joint = linear @ frames[start : start + size].T
        joint += shared[:, start : start + size]
        joint += constant
        largest = joint.max(axis=0)
        joint -= largest
        np.exp(joint, out=joint)
        total += float((largest + np.log(joint.sum(axis=0))).sum(dtype=np.float64))
    return total / len(frames)
