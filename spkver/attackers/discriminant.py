"""Linear discriminant analysis of vectors that are far longer than there are of them.

References
----------
R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7(2), 1936.
P. N. Belhumeur, J. P. Hespanha and D. J. Kriegman, "Eigenfaces vs. Fisherfaces: recognition using class specific linear
projection", IEEE Trans. PAMI 19(7), 1997 (principal components first).
A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker recognition",
Interspeech 2006 (whitening within speakers, with smoothing).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spkbase.work import Work, chunk_bounds, one_blas_thread
from spkver.backend import gram_matrix

_COLUMNS = 4096  # dimensions of the vectors that are in float64 at a time
_SPANNED = 1e-9  # principal directions of less than this share of the largest variance are rounding


def fit_lda(
    vectors: NDArray,
    speakers: NDArray,
    *,
    n_dimensions: int,
    pca: int,
    shrinkage: float,
    jobs: int | None = None,
) -> NDArray[np.float64]:
    """Find the dimensions in which speakers differ most and sessions of a speaker least.

    The vectors are expressed in their largest principal directions, whitened by the covariance within speakers, shrunk
    towards a multiple of the identity, and turned to the largest directions of the speakers' means.

    Parameters
    ----------
    vectors : ndarray of shape (S, D)
        Of mean 0.
    speakers : ndarray of str of shape (S,)
        Some speaker must have several vectors.
    n_dimensions : int
        At most so many; there are no more than speakers less one, nor than principal directions.
    pca : int
        Principal directions, at most.
    shrinkage : float
        Share of the identity, 0 to 1.
    jobs : int, optional
        Worker threads; the result does not depend on it.

    Returns
    -------
    ndarray of shape (k, D)
        Maps a vector x to its k dimensions by matrix @ x.
    """
    from scipy.linalg import eigh

    names, owner = np.unique(speakers.astype(str), return_inverse=True)
    n_sessions = len(vectors)
    gram = gram_matrix(vectors, work=Work(jobs))
    with one_blas_thread():  # one BLAS thread everywhere: results must not depend on the machine's cores
        values, rotation = eigh(gram, subset_by_index=[max(n_sessions - pca, 0), n_sessions - 1])
        kept = values > _SPANNED * values[-1]
        values, rotation = values[kept][::-1], rotation[:, kept][:, ::-1]
        coordinates = rotation * np.sqrt(values)
        n_dimensions = min(n_dimensions, len(names) - 1, len(values))
        weights = (rotation / np.sqrt(values)) @ discriminants(coordinates, owner, shrinkage, n_dimensions)
        matrix = np.empty((n_dimensions, vectors.shape[1]))
        for start, stop in chunk_bounds(vectors.shape[1], _COLUMNS):
            matrix[:, start:stop] = weights.T @ vectors[:, start:stop].astype(np.float64)
    return matrix


def discriminants(coordinates: NDArray, owner: NDArray, shrinkage: float, n_dimensions: int) -> NDArray[np.float64]:
    """Return the directions w in which w' B w / w' W w is largest, as columns, the largest first.

        W = (1 - s) W_speakers + s tr(W_speakers)/K I,    w' W w = 1

    W_speakers is the covariance of the sessions about their speakers' means, B that of these means.

    Parameters
    ----------
    coordinates : ndarray of shape (S, K)
        Vectors of mean 0.
    owner : ndarray of int of shape (S,)
        Speaker of each, from 0.
    shrinkage : float
        s, 0 to 1.
    n_dimensions : int
    """
    counts = np.bincount(owner)
    means = np.stack([coordinates[owner == speaker].mean(axis=0) for speaker in range(len(counts))])
    within = coordinates - means[owner]
    covariance = within.T @ within / (len(coordinates) - len(counts))
    level = np.trace(covariance) / len(covariance)
    covariance = (1 - shrinkage) * covariance + shrinkage * level * np.eye(len(covariance))
    spread, axes = np.linalg.eigh(covariance)
    # what is left without any spread would be blown up without limit
    whitening = axes / np.sqrt(np.maximum(spread, _SPANNED * spread[-1]))
    between = np.sqrt(counts / len(coordinates))[:, None] * (means @ whitening)
    _, turned = np.linalg.eigh(between.T @ between)
    reduced: NDArray[np.float64] = whitening @ turned[:, ::-1][:, :n_dimensions]
    return reduced
