"""Scores of exactly the trials that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evaluation.parallel import chunk_bounds, chunks, ordered_map
from evaluation.trials import Scores, Trials
from spkver.errors import DataError
from spkver.features.frames import Frames, row_index
from spkver.gmm import GaussianMixture, block_size, check_frames, log_likelihood, natural_parameters
from spkver.svm import SvmModels

_CHUNK = 8  # blocks of trials in one task
_GATHERED = 512  # segments that are copied together where trials do not form blocks


def score_trials(
    machines: SvmModels, segments: Sequence[str] | NDArray, vectors: NDArray, trials: Trials, *, jobs: int | None = None
) -> Scores:
    """Score trials with linear machines.

    Parameters
    ----------
    machines : SvmModels
    segments : sequence of str, length S
        Ids of the rows of `vectors`, in any order.
    vectors : ndarray [shape=(S, D)]
    trials : evaluation.trials.Trials
        Models that share their segments (all models of one sentence, say) are scored as one matrix product; the cost
        follows the number of trials.
    jobs : int, optional
        Worker threads; the scores do not depend on it.

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
    blocks = trial_blocks(trials)
    values = np.empty(len(trials))
    work = partial(
        _score_blocks, machines=machines, vectors=vectors, rows=(model_rows, segment_rows), trials=trials, out=values
    )
    for _ in ordered_map(work, chunks(blocks, _CHUNK), jobs=jobs, threads=True, description="scoring"):
        pass
    return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values)


def trial_blocks(trials: Trials) -> list[NDArray[np.int64]]:
    """Group trials into full blocks of models times segments.

    Returns
    -------
    list of ndarray [shape=(models, segments), dtype=int64]
        Row numbers of trials: every row of a block is one model, every column one segment. Models are put together
        where their sets of segments are the same; each trial stands in one block.
    """
    order = np.lexsort((trials.segments, trials.models))
    bounds = np.flatnonzero(np.diff(trials.models[order], prepend=-1, append=-1))
    groups: dict[bytes, list[NDArray[np.int64]]] = {}
    for start, stop in pairwise(bounds):
        rows = order[start:stop]
        groups.setdefault(trials.segments[rows].tobytes(), []).append(rows)
    return [np.stack(rows) for rows in groups.values()]


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


def _score_blocks(
    blocks: list[NDArray], machines: SvmModels, vectors: NDArray, rows: tuple[NDArray, NDArray], trials: Trials,
    out: NDArray,
) -> None:  # fmt: skip
    for block in blocks:
        models = rows[0][trials.models[block[:, 0]]]
        weights, biases = machines.weights[models], machines.biases[models, None]
        for start, stop in chunk_bounds(block.shape[1], _GATHERED):
            part = block[:, start:stop]
            segments = rows[1][trials.segments[part[0]]]
            out[part] = weights @ vectors[segments].T + biases


def score_gmm_ubm(
    mixture: GaussianMixture,
    models: Sequence[str] | NDArray,
    means: NDArray,
    frames: Frames,
    trials: Trials,
    *,
    jobs: int | None = None,
) -> Scores:
    """Score trials by the log-likelihood ratio of adapted models and the UBM, per frame.

    Parameters
    ----------
    mixture : GaussianMixture
        The UBM; models share its weights and variances.
    models : sequence of str, length M
    means : ndarray [shape=(M, C * D)]
        Adapted means of each model, not normalised.
    frames : Frames
        Frames of the tested segments.
    trials : evaluation.trials.Trials
    jobs : int, optional
        Worker threads; the scores do not depend on it.

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
    values = np.empty(len(trials))
    work = partial(
        _score_segments, mixture=mixture, means=means, frames=frames, rows=(model_rows, segment_rows), trials=trials,
        out=values,
    )  # fmt: skip
    for _ in ordered_map(work, chunks(groups, _CHUNK), jobs=jobs, threads=True, description="scoring"):
        pass
    return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values)


def _score_segments(
    groups: list[NDArray],
    mixture: GaussianMixture,
    means: NDArray,
    frames: Frames,
    rows: tuple[NDArray, NDArray],
    trials: Trials,
    out: NDArray,
) -> None:
    dtype = frames.values.dtype
    parameters = natural_parameters(mixture).astype(dtype)
    precisions = 1.0 / mixture.variances
    log_weights = parameters[:, -1:] + 0.5 * (mixture.means**2 * precisions).sum(axis=1, keepdims=True)
    for group in groups:
        row = rows[1][trials.segments[group[0]]]
        own = frames.values[frames.offsets[row] : frames.offsets[row + 1]]
        if not len(own):
            raise DataError(f"recording {frames.ids[row]!r} has no frames", remedy="remove it from the lists")
        # what depends on x^2 is the same for all models: they share weights and variances
        shared = parameters[:, : mixture.dimension] @ (own * own).T
        background = log_likelihood(own, mixture).mean()
        for trial in group:
            adapted = means[rows[0][trials.models[trial]]].reshape(mixture.means.shape)
            linear = (adapted * precisions).astype(dtype)
            constant = (log_weights - 0.5 * (adapted * adapted * precisions).sum(axis=1, keepdims=True)).astype(dtype)
            out[trial] = _mean_log_likelihood(shared, linear, constant, own) - background


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
