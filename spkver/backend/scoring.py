"""Scores of exactly the given trials: the cost follows their number.

A linear score (SVM, joint factor analysis) is the inner product of the model's row and the segment's row. Trials that
form a block (all models of a sentence against all its segments) are one matrix product; other trials are taken from the
products of all pairs if they make up a good part of them; otherwise they are multiplied pair by pair. GMM-UBM models
are scored by their log-likelihood ratio to the UBM.

References
----------
W. M. Campbell, D. E. Sturim and D. A. Reynolds, "Support vector machines using GMM supervectors for speaker
verification", IEEE Signal Processing Letters 13(5), 2006.
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores, Trials
from spkbase.arrays import Floats, Rows, SelectedRows
from spkbase.errors import DataError, counted, few
from spkbase.progress import verbosely
from spkbase.work import ALL_CORES, Work, chunk_bounds, chunks, one_blas_thread
from spkver import mixture as gmm
from spkver.backend.nap import Projection, projected
from spkver.backend.svm import SvmModels
from spkver.features import Frames, row_index
from spkver.vectors import JointFactors, Supervectors, session_vectors, speaker_vectors

# rows of the models and of the segments of some trials
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

_SIDE = 256  # number of models, and of segments, in one matrix product
_FEW = 16  # blocks with fewer trials are scored pair by pair
_TASK = 32e6  # approximate number of bytes of rows in a task

_THIN = 8  # a piece with fewer models is thin
_FEWER = 4  # tiles must replace more thin pieces than this, on average
_DENSE = 8  # a list with at least one in this many of all pairs is taken from the full product
_CELLS = 1 << 22  # number of cells of the full product held at a time
_PAIRED_NUMBERS = 1 << 21  # largest number of values of either side multiplied pair by pair at once

_SEGMENTS = 8  # number of segments in a task, if scores come from frames
_PAIRED = 16e6  # number of bytes of rows multiplied pair by pair at once
_COLUMNS = 2048  # number of dimensions summed in the dtype of the vectors
_MODELS = 64  # number of models read together, if scores come from frames


def trial_pieces(
    models: NDArray[Any], segments: NDArray[Any], *, paired: int
) -> list[NDArray[np.int64]]:
    """Cut a list into pieces that are scored at once.

    Parameters
    ----------
    models, segments : ndarray of int of shape (n,)
        Codes of each trial's model and segment.
    paired : int
        Number of trials in a piece that is not a block.

    Returns
    -------
    list of ndarray of int64
        Row numbers of trials, each in one piece. Pieces of shape (models, segments) are blocks; pieces of shape (n,)
        are trials of blocks that are too small, sorted by segment. Each row of a block is one
        model, each column one segment: models with the same set of segments are put together.
    """
    order = np.lexsort((segments, models))
    bounds = np.flatnonzero(np.diff(models[order], prepend=-1, append=-1))
    groups: dict[bytes, list[NDArray[np.int64]]] = {}
    for start, stop in pairwise(bounds):
        rows = order[start:stop]
        groups.setdefault(segments[rows].tobytes(), []).append(rows)
    pieces = []
    scattered = [np.empty(0, np.int64)]
    for block in map(np.stack, groups.values()):
        if block.size < _FEW:
            scattered.append(block.ravel())
            continue
        for first, last in chunk_bounds(block.shape[0], _SIDE):
            pieces += [
                block[first:last, start:stop] for start, stop in chunk_bounds(block.shape[1], _SIDE)
            ]
    rest = np.concatenate(scattered)
    rest = rest[np.lexsort((models[rest], segments[rest]))]
    return pieces + [rest[start:stop] for start, stop in chunk_bounds(len(rest), paired)]


def pair_products(
    enrolled: Floats, tested: Floats, models: NDArray[Any], segments: NDArray[Any]
) -> Floats:
    """Return enrolled[models[i]] . tested[segments[i]] for each pair i.

    Parameters
    ----------
    enrolled : ndarray of shape (M, Q)
        A row for each model.
    tested : ndarray of shape (T, Q)
        A row for each segment.
    models, segments : ndarray of int of shape (n,)
        Rows of each pair. A list that holds a good part of all pairs costs the product of all; one that holds few,
        the products of its blocks (the same segments for several models) and of the remaining pairs.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    DataError
        If a code is out of its range, or a product is not finite.
    """
    models = check_codes(models, len(enrolled), "models")
    segments = check_codes(segments, len(tested), "segments")
    if len(models) != len(segments):
        raise DataError(
            f"expected a model and a segment for each trial, got {len(models)} and {len(segments)}"
        )
    product = _of_blocks
    if len(models) * _DENSE >= len(enrolled) * len(tested):
        product = _of_all_pairs
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        scores = product(enrolled, tested, models, segments)
        is_finite = np.isfinite(scores.sum())
    if not is_finite:  # the sum of finite scores may overflow
        n_bad = int(scores.size - np.isfinite(scores).sum())
        if n_bad:
            raise DataError(
                f"{n_bad} of {scores.size} scores are not finite: vectors or parameters are far too large",
                remedy="scale the vectors, to length 1 for example, before the model is trained",
            )
    return scores


def check_codes(codes: NDArray[Any], n_rows: int, kind: str) -> NDArray[np.int64]:
    """Return codes as int64; raise a DataError unless they are whole numbers from 0 to `n_rows` - 1."""
    column = np.asarray(codes)
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise DataError(
            f"expected the codes of {kind} as whole numbers, got {column.dtype} of shape {column.shape}"
        )
    if column.size and (column.min() < 0 or column.max() >= n_rows):
        raise DataError(
            f"expected codes of {kind} from 0 to {n_rows - 1}, got {column.min()} to {column.max()}"
        )
    return column.astype(np.int64, copy=False)


def numbered_ids(size: int) -> NDArray[Any]:
    """Return the ids "0", "1", ... for unnamed rows."""
    return np.arange(size).astype(str).astype(object)


def scored(trials: Trials, values: Floats) -> Scores:
    """Return the trials with these scores."""
    return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values)


def log_likelihood_ratios(
    frames: NDArray[Any], means: Iterable[NDArray[Any]], mixture: gmm.GaussianMixture
) -> Floats:
    """Return the log-likelihood ratios of adapted models to the mixture that they were adapted from, per frame.

        s_m = 1/T sum_t [log p(x_t | means m) - log p(x_t | mixture)]

    Models share the weights and the variances of the mixture, diagonal or full, so what depends on products of two
    dimensions of x is computed once for all.

    Parameters
    ----------
    frames : ndarray of shape (T, D)
        Frames of one segment.
    means : iterable of ndarray of shape (C, D)
        Means of each model.
    mixture : GaussianMixture

    Returns
    -------
    ndarray of shape (m,)
        In nat per frame.

    References
    ----------
    D. A. Reynolds, T. F. Quatieri and R. B. Dunn, "Speaker verification using adapted Gaussian mixture models", Digital
    Signal Processing 10, 2000, section 3.5.
    """
    natural = gmm.natural_parameters(mixture)
    parameters = natural.astype(frames.dtype)
    n_products = parameters.shape[1] - mixture.dimension - 1
    precisions = gmm.inverse_variances(mixture.variances)
    log_weights = parameters[:, -1:] + 0.5 * weighted_lengths(mixture.means, precisions)
    products = gmm.squares_or_products(frames, np.empty((len(frames), n_products), frames.dtype))
    shared = parameters[:, :n_products] @ products.T
    background = gmm.frame_log_likelihoods(frames, natural).mean()
    ratios = []
    for adapted in means:
        linear = gmm.of_each_gaussian(precisions, adapted).astype(frames.dtype)
        constant = log_weights - 0.5 * weighted_lengths(adapted, precisions)
        constant = constant.astype(frames.dtype)
        ratios.append(_mean_log_likelihood(shared, linear, constant, frames) - background)
    return np.array(ratios)


def weighted_lengths(means: NDArray[Any], precisions: NDArray[Any]) -> NDArray[Any]:
    """Return m_c' P_c m_c of means (C, D) and precisions (C, D) or (C, D, D), shape (C, 1)."""
    if precisions.ndim == 2:
        products = means**2 * precisions
    else:
        products = means * gmm.of_each_gaussian(precisions, means)
    sums: NDArray[Any] = products.sum(axis=1, keepdims=True)
    return sums


@verbosely
def score_trials(
    machines: SvmModels,
    tests: Supervectors,
    trials: Trials,
    *,
    projection: Projection | None = None,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> Scores:
    """Score trials with linear machines.

    Parameters
    ----------
    machines : SvmModels
        Weights in a file (`spkver.backend.open_svms`) are read where they are needed.
    tests : Supervectors
        Vectors of the tested segments, in any order.
    trials : evaluation.trials.Trials
        Models that share their segments (such as all models of one sentence) are scored as one matrix product; the cost
        follows the number of trials.
    projection : Projection, optional
        Applied to the vectors when they are read.
    work : spkbase.work.Work
        Scores do not depend on the number of workers.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    evaluation.trials.Scores
        In the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is missing.
    """
    vectors = tests.vectors
    model_rows = _rows(trials.model_ids, trials.models, machines.models, "model")
    segment_rows = _rows(trials.segment_ids, trials.segments, tests.segments, "segment")
    row_bytes = max(1, vectors.shape[1] * vectors.dtype.itemsize)
    pieces = trial_pieces(trials.models, trials.segments, paired=max(1, int(_PAIRED // row_bytes)))
    pieces = _tiles_of_dense(pieces, trials)

    def rows_of(
        piece: NDArray[np.int64],
    ) -> tuple[SelectedRows, NDArray[Any], SelectedRows, Pairs | None]:
        pairs = None
        if piece.ndim == 2:
            models = trials.models[piece[:, 0]]
            segments = trials.segments[piece[0]]
        else:
            models, first = np.unique(trials.models[piece], return_inverse=True)
            segments, second = np.unique(trials.segments[piece], return_inverse=True)
            if len(piece) * _DENSE < len(models) * len(
                segments
            ):  # read a row of weights for each trial
                models = trials.models[piece]
                first = np.arange(len(piece))
            pairs = first, second
        rows = model_rows[models]
        tested = SelectedRows(vectors, segment_rows[segments])
        return SelectedRows(machines.weights, rows), machines.biases[rows], tested, pairs

    tasks: list[list[NDArray[np.int64]]] = []
    size = _TASK
    for piece in pieces:  # small pieces are put together
        if size >= _TASK:
            tasks.append([])
            size = 0
        tasks[-1].append(piece)
        n_rows = 2 * len(piece) if piece.ndim == 1 else sum(piece.shape)
        size += row_bytes * n_rows
    items = [[*map(rows_of, task)] for task in tasks]
    score = partial(_linear_scores, projection=projection)
    return _scores_in_order(score, items, tasks, trials, work)


@verbosely
def score_gmm_ubm(
    mixture: gmm.GaussianMixture,
    models: Supervectors,
    frames: Frames,
    trials: Trials,
    *,
    work: Work = ALL_CORES,
    verbose: bool = True,
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
    work
        As for `score_trials`.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    evaluation.trials.Scores
        In nat per frame, in the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is missing, or a segment has no frames.
    """
    gmm.check_frames(frames.values, mixture)
    means = models.vectors
    model_rows = _rows(trials.model_ids, trials.models, models.models, "model")
    _rows(trials.segment_ids, trials.segments, frames.ids, "segment")
    order = np.argsort(trials.segments, kind="stable")
    ends = np.flatnonzero(np.diff(trials.segments[order])) + 1
    of_segments = [rows for rows in np.split(order, ends) if len(rows)]  # trials of each segment
    names = [trials.segment_ids[trials.segments[rows[0]]] for rows in of_segments]
    tested = [frames.of(name) for name in names]
    for name, some in zip(names, tested, strict=True):
        if not len(some):
            raise DataError(f"recording {name!r} has no frames", remedy="remove it from the lists")
    adapted = (SelectedRows(means, model_rows[trials.models[rows]]) for rows in of_segments)
    items = chunks([*zip(tested, adapted, strict=True)], _SEGMENTS)
    score = partial(_segment_ratios, mixture=mixture)
    return _scores_in_order(score, items, chunks(of_segments, _SEGMENTS), trials, work)


def score_joint_factors(
    model: JointFactors,
    enrolment: gmm.Statistics,
    tests: gmm.Statistics,
    trials: Trials,
    *,
    work: Work = ALL_CORES,
) -> Scores:
    """Score trials by joint factor analysis, all sessions of a model together.

        s = (V y + D z)' S^-1 (f - n (m + U x)) / sum_c n_c

    y and z are the hidden variables of the model's summed sessions (`hidden_variables`); x, f and n belong to the
    tested segment. The score is the first-order part of the log-likelihood ratio, in nat per frame.

    Parameters
    ----------
    model : spkver.vectors.JointFactors
    enrolment, tests : Statistics
        Statistics of sessions by model, and of segments.
    trials : evaluation.trials.Trials
    work : spkbase.work.Work
        Scores do not depend on the number of workers.

    Returns
    -------
    evaluation.trials.Scores
        In the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is missing, a segment has no frames, or statistics do not fit the
        mixture.

    References
    ----------
    Glembek et al., section 3.4.
    """
    speakers = speaker_vectors(model, enrolment, work=work)
    machines = SvmModels(speakers.models, speakers.vectors, np.zeros(len(speakers)))
    return score_trials(machines, session_vectors(model, tests, work=work), trials, work=work)


def _of_all_pairs(
    enrolled: Floats, tested: Floats, models: NDArray[Any], segments: NDArray[Any]
) -> Floats:
    n_models = len(enrolled)
    n_segments = len(tested)
    if len(models) == n_models * n_segments:
        shape = n_models, n_segments
        is_each_segment = (segments.reshape(shape) == np.arange(n_segments)).all()
        if is_each_segment and (models.reshape(shape) == np.arange(n_models)[:, None]).all():
            return (enrolled @ tested.T).ravel()  # all pairs, sorted by model
    bounds = chunk_bounds(n_models, max(1, _CELLS // n_segments))
    scores = np.empty(len(models))
    order = None
    if len(bounds) > 1:
        order = np.argsort(models, kind="stable")
    for start, stop in bounds:
        rows: Any = slice(None)
        if order is not None:
            rows = order[slice(*np.searchsorted(models, [start, stop], sorter=order))]
        cells = (models[rows] - start) * n_segments
        cells += segments[rows]
        # the codes were checked before; "wrap" avoids checking them again
        scores[rows] = (enrolled[start:stop] @ tested.T).take(cells, mode="wrap")
    return scores


def _of_blocks(
    enrolled: NDArray[Any], tested: NDArray[Any], models: NDArray[Any], segments: NDArray[Any]
) -> Floats:
    scores = np.empty(len(models))
    n_paired = max(1, _PAIRED_NUMBERS // enrolled.shape[1])
    for piece in trial_pieces(models, segments, paired=n_paired):
        if piece.ndim == 2:
            scores[piece] = enrolled[models[piece[:, 0]]] @ tested[segments[piece[0]]].T
        else:
            scores[piece] = np.einsum("ij,ij->i", enrolled[models[piece]], tested[segments[piece]])
    return scores


def _mean_log_likelihood(
    shared: NDArray[Any], linear: NDArray[Any], constant: NDArray[Any], frames: NDArray[Any]
) -> float:
    """Return the mean log-likelihood of frames under one model, given the part that all models share."""
    total = 0.0
    size = gmm.block_size(len(linear))
    for start in range(0, len(frames), size):
        joint = linear @ frames[start : start + size].T
        joint += shared[:, start : start + size]
        joint += constant
        largest = joint.max(axis=0)
        joint -= largest
        np.maximum(joint, gmm.LEAST_LOG_SHARE, out=joint)
        np.exp(joint, out=joint)
        total += float((largest + np.log(joint.sum(axis=0))).sum(dtype=np.float64))
    return total / len(frames)


def _tiles_of_dense(pieces: list[NDArray[np.int64]], trials: Trials) -> list[NDArray[np.int64]]:
    """Replace thin pieces by fewer tiles of models by segments, if these are filled well enough.

    A thin piece has few models for each segment, so that reading the rows takes longer than multiplying them.
    """
    thin = []
    thick = []
    for piece in pieces:
        if piece.ndim == 1 or len(piece) < _THIN:
            thin.append(piece)
        else:
            thick.append(piece)
    rest = np.concatenate([np.empty(0, np.int64), *map(np.ravel, thin)])
    models, first = np.unique(trials.models[rest], return_inverse=True)
    segments, second = np.unique(trials.segments[rest], return_inverse=True)
    tiles = first // _SIDE * len(segments) + second // _SIDE
    n_tiles = len(np.unique(tiles))
    if len(rest) * _DENSE < len(models) * len(segments) or len(thin) <= _FEWER * n_tiles:
        return pieces
    order = np.argsort(tiles, kind="stable")
    return thick + np.split(rest[order], 1 + np.flatnonzero(np.diff(tiles[order])))


def _linear_scores(
    pieces: list[tuple[SelectedRows, NDArray[Any], SelectedRows, Pairs | None]],
    projection: Projection | None,
) -> Floats:
    """Score pieces: all weights with all vectors, or the rows of both that `pairs` names."""
    scores = []
    for rows, biases, tested, pairs in pieces:
        weights = np.asarray(rows)
        vectors = projected(tested, projection)
        if pairs is None:
            scores.append((weights @ vectors.T + biases[:, None]).ravel())
        elif len(weights) < len(pairs[0]):  # if most pairs are needed
            scores.append((weights @ vectors.T)[pairs] + biases[pairs[0]])
        else:
            sums = biases.copy()
            for start, stop in chunk_bounds(vectors.shape[1], _COLUMNS):
                block = vectors[pairs[1], start:stop]
                sums += np.einsum("ij,ij->i", weights[:, start:stop], block)
            scores.append(sums)
    return np.concatenate(scores)


def _scores_in_order(
    score: Callable[[Any], NDArray[Any]],
    items: Sequence[Any],
    tasks: Sequence[Sequence[NDArray[Any]]],
    trials: Trials,
    work: Work,
) -> Scores:
    """Score the items, and put the scores of each into the rows of its task's trials."""
    rows_of_tasks = [np.concatenate([*map(np.ravel, task)]) for task in tasks]
    values = np.empty(len(trials))
    results = work.map(score, items, description="scoring", sizes=[*map(len, rows_of_tasks)])
    for rows, scores in zip(rows_of_tasks, results, strict=True):
        values[rows] = scores
    return scored(trials, values)


def _rows(
    ids: NDArray[Any], used: NDArray[Any], available: Sequence[str] | NDArray[Any], kind: str
) -> NDArray[np.int64]:
    """Return the row of each id of a table among those available; -1 for missing ids that no trial uses."""
    index = row_index(list(available))
    rows = np.array([index.get(name, -1) for name in ids], np.int64)
    missing = np.unique(used[rows[used] < 0])
    if len(missing):
        remedy = f"enrol every model and extract every segment of the trial list ({kind} ids must be equal)"
        names = few([ids[code] for code in missing], repr)
        text = f"{counted(len(missing), kind)} of the trials not there: {names}"
        raise DataError(text, remedy=remedy)
    return rows


def _segment_ratios(
    segments: list[tuple[Rows, SelectedRows]], mixture: gmm.GaussianMixture
) -> Floats:
    """Score segments against the models whose means are given with them and read by blocks."""
    scores = []
    for frames, means in segments:
        adapted = _means_by_blocks(means, mixture.means.shape)
        scores.append(log_likelihood_ratios(np.asarray(frames), adapted, mixture))
    return np.concatenate(scores)


def _means_by_blocks(means: SelectedRows, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    for start, stop in chunk_bounds(len(means), _MODELS):
        for row in np.asarray(means.part(start, stop)):
            yield row.reshape(shape)
