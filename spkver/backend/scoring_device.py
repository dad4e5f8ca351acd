"""Scores of trials on a device: linear machines, and log-likelihood ratios of adapted mixtures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Array, chunk_bounds, on_device
from spkver.mixture import Table, of_each_gaussian, squares_or_products, unpack_symmetric

Project = Callable[[Array], Array]


@on_device
def block_scores(
    weights: Table,
    vectors: Table,
    models: NDArray[np.int64],
    segments: NDArray[np.int64],
    projection: Project | None = None,
) -> NDArray[np.float64]:
    """Return the products of a block: all of some models with all of some segments.

    Parameters
    ----------
    weights : Table of shape (M, D)
    vectors : Table of shape (S, D)
    models, segments : ndarray of int64 of shapes (m,) and (s,)
        Rows of the tables.
    projection : callable, optional
        Applied to vectors of the device first.

    Returns
    -------
    ndarray of shape (m, s)
    """
    device, xp = weights.device, weights.device.xp
    scores = np.empty((len(models), len(segments)))
    size = device.rows_of(4 * weights.dtype.itemsize * weights.shape[1])
    for rows in chunk_bounds(len(models), size):
        of_models = weights.take(models[slice(*rows)])
        for columns in chunk_bounds(len(segments), size):
            products = of_models @ xp.matrix_transpose(_taken(vectors, segments[slice(*columns)], projection))
            scores[slice(*rows), slice(*columns)] = device.to_numpy(products)
    return scores


@on_device
def pair_scores(
    weights: Table,
    vectors: Table,
    models: NDArray[np.int64],
    segments: NDArray[np.int64],
    projection: Project | None = None,
) -> NDArray[np.float64]:
    """Return the products (n,) of single pairs, for trials that make no blocks; parameters as for `block_scores`."""
    device, xp = weights.device, weights.device.xp
    scores = np.empty(len(models))
    size = device.rows_of(4 * weights.dtype.itemsize * weights.shape[1])
    for start, stop in chunk_bounds(len(models), size):
        products = weights.take(models[start:stop]) * _taken(vectors, segments[start:stop], projection)
        scores[start:stop] = device.to_numpy(xp.sum(products, axis=1, dtype=xp.float64))
    return scores


def _taken(vectors: Table, rows: NDArray[np.int64], projection: Project | None) -> Array:
    taken = vectors.take(rows)
    return taken if projection is None else projection(taken)


class MeanRatios:
    """Log-likelihood ratios of models adapted from a mixture and the mixture itself, means over frames.

    Models share the mixture's weights and variances, so what depends on x^2 is computed once for a segment.

    Parameters
    ----------
    parameters : ndarray of shape (C, 2 D + 1), or (C, D (D + 1) / 2 + D + 1) for full covariances
        Natural parameters of the mixture: rows [-precision / 2, mean * precision, constant].
    means : Table of shape (M, C * D)
        Adapted means of each model; the device's.
    dtype : dtype
        Of the frames.
    """

    def __init__(self, parameters: NDArray[np.float64], means: Table, dtype: np.dtype) -> None:
        dimension = means.shape[1] // len(parameters)
        self.device, self._means, self._dtype = means.device, means, dtype
        squares, linear, constant = np.split(parameters, [-1 - dimension, -1], axis=1)
        self._squares = self._own(squares)
        # the constant of a model: that of the mixture, its own means instead of the mixture's
        if squares.shape == linear.shape:
            precisions = -2 * squares
            own_means = linear / precisions
        else:
            precisions = -unpack_symmetric(squares, dimension) * (1 + np.eye(dimension))
            own_means = np.asarray(np.linalg.solve(precisions, linear[:, :, None]))[:, :, 0]
        self._precisions = self._own(precisions)
        self._log_weights = self._own(constant + 0.5 * (own_means * linear).sum(axis=1, keepdims=True))
        self._background = self._own(linear)[None, :, :], self._own(constant)[None, :, :]

    @on_device
    def __call__(self, frames: NDArray, models: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the ratios (m,) of some models, rows of the table, on frames (T, D); in nat per frame."""
        sums = np.zeros(len(models))
        n_components = self._squares.shape[0]
        # models together as long as a batch of them on all frames fits, frames in blocks where one model does not
        frames_bytes = 3 * n_components * frames.dtype.itemsize
        n_frames = self.device.rows_of(frames_bytes, most=max(1, len(frames)))
        n_models = self.device.rows_of(frames_bytes * n_frames)
        background = 0.0
        for start, stop in chunk_bounds(len(frames), n_frames):
            block = self._own(frames[start:stop])
            products = squares_or_products(block, self._squares.shape[1], self.device.xp)
            shared = self._squares @ self.device.xp.matrix_transpose(products)
            background += float(self._sums(*self._background, shared, block)[0])
            for first, last in chunk_bounds(len(models), n_models):
                sums[first:last] += self._sums(*self._model(models[first:last]), shared, block)
        return (sums - background) / len(frames)

    def _model(self, models: NDArray[np.int64]) -> tuple[Array, Array]:
        """Linear (m, C, D) and constant (m, C, 1) parts of models."""
        xp = self.device.xp
        means = xp.reshape(self._means.take(models), (-1, self._precisions.shape[0], self._precisions.shape[1]))
        means = xp.astype(means, self._precisions.dtype)
        linear = of_each_gaussian(self._precisions, means, xp)
        return linear, self._log_weights - 0.5 * xp.sum(means * linear, axis=2, keepdims=True)

    def _sums(self, linear: Array, constant: Array, shared: Array, frames: Array) -> NDArray[np.float64]:
        """Sums of log-likelihoods over frames, shape (m,)."""
        xp = self.device.xp
        joint = linear @ xp.matrix_transpose(frames) + shared + constant
        largest = xp.max(joint, axis=1, keepdims=True)
        total = xp.sum(xp.exp(joint - largest), axis=1, keepdims=True)
        return self.device.to_numpy(xp.sum(largest + xp.log(total), axis=(1, 2), dtype=xp.float64))

    def _own(self, array: NDArray) -> Array:
        return self.device.asarray(array, self._dtype)
