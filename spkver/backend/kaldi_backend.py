"""Kaldi's models as a trained chain: its files score like any other backend.

T (x - mean), scaled to the length sqrt(K); PLDA           recipes of Kaldi: mean.vec, transform.mat, plda
(x - mean1, length 1) lda - mean2, length 1; PLDA          VBx: transform.h5, plda
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import fingerprint
from spkver.backend.chain import Backend, parse_chain, plain_chain
from spkver.backend.kaldi_plda import KaldiPlda, VbxTransform, plda_from_kaldi
from spkver.backend.transforms import AffineMap, LengthNorm, Map, dimension_after


def backend_from_kaldi(
    plda: KaldiPlda,
    *,
    mean: NDArray | None = None,
    transform: NDArray | VbxTransform | None = None,
    length: str = "kaldi",
) -> Backend:
    """Return a backend that scores as Kaldi does with these models.

    Parameters
    ----------
    plda : KaldiPlda
    mean : ndarray of shape (R,), optional
        Subtracted first, as `ivector-subtract-global-mean` does.
    transform : ndarray of shape (K, R) or (K, R + 1), or VbxTransform, optional
        LDA; the last column is an offset where there is one more than `mean` has. What comes out is scaled to the
        length sqrt(K), as `ivector-normalize-length` does. A transform of VBx has its own means and length norms.
    length : {"kaldi", "simple", "none"}
        How vectors are scaled within the PLDA, see `spkver.backend.kaldi_plda_scores`.

    Returns
    -------
    Backend

    Raises
    ------
    DataError
        If dimensions do not fit, or a number is not finite.
    """
    steps: list[Any] = [] if mean is None else ["centre"]
    maps: list[Map] = [] if mean is None else [_shift(mean)]
    if isinstance(transform, VbxTransform):
        if mean is not None:
            raise DataError("a transform of VBx has means of its own", remedy="leave the other mean out")
        steps = ["centre", "length", {"lda": len(transform.mean2)}, "centre", "length"]
        maps = [_shift(transform.mean1), LengthNorm(), _product(transform.lda), _shift(transform.mean2), LengthNorm()]
    elif transform is not None:
        matrix = np.asarray(transform, np.float64)
        if matrix.ndim != 2 or not matrix.size:
            raise DataError(f"expected a transform (K, R) or (K, R + 1), got shape {matrix.shape}")
        columns = matrix.shape[1] if mean is None or matrix.shape[1] != len(mean) + 1 else len(mean)
        steps += [{"lda": len(matrix)}, "length"]
        maps += [_product(matrix[:, :columns].T)]
        maps += [_shift(-column) for column in matrix.T[columns:]]
        maps += [LengthNorm(), AffineMap(np.zeros(len(matrix)), np.full(len(matrix), np.sqrt(len(matrix))))]
    dimension = next((len(step.offset) for step in maps if isinstance(step, AffineMap)), plda.dimension)
    if dimension_after(maps, dimension) != plda.dimension:
        text = f"expected a PLDA of {dimension_after(maps, dimension)} dimensions, got one of {plda.dimension}"
        raise DataError(text, remedy="give the transform that belongs to it")
    chain = parse_chain([*steps, {"plda": {"length": length}}])
    digest = fingerprint(plain_chain(chain), [vars(step) for step in maps], vars(plda))
    facts = {"dimension": dimension, "vectors": 0, "speakers": 0, "made_from": digest}
    return Backend(chain, tuple(maps), plda_from_kaldi(plda), None, None, facts)


def _shift(offset: NDArray) -> AffineMap:
    return AffineMap(np.asarray(offset, np.float64), np.ones(len(offset)))


def _product(matrix: NDArray[np.float64]) -> AffineMap:
    return AffineMap(np.zeros(len(matrix)), matrix)
