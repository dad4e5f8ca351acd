"""i-vectors: the posterior mean of each segment's factor, with its posterior variance on request.

References
----------
N. Dehak, P. Kenny, R. Dehak, P. Dumouchel and P. Ouellet, "Front-end factor analysis for speaker verification", IEEE
Trans. Audio, Speech and Language Processing 19(4), 2011.
O. Glembek, L. Burget, P. Matejka, M. Karafiat and P. Kenny, "Simplification and optimization of i-vector extraction",
ICASSP 2011 (the fast approximations).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Rows, fill_rows
from spkbase.errors import ConfigError, DataError, errors_of
from spkbase.hdf5 import new_file, open_file, read_arrays, stored_array, write_strings
from spkbase.progress import progress, verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, one_blas_thread, ships_items
from spkver.mixture import Statistics
from spkver.vectors import posteriors
from spkver.vectors.supervectors import Supervectors
from spkver.vectors.total_variability import TotalVariability

IVectorMethod = Literal["exact", "weights", "eigen"]


def fast_terms(
    model: TotalVariability, method: IVectorMethod
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the basis and the precisions of a fast approximation.

        W = sum_c w_c T_c' T_c = Q diag(l) Q'
        "weights": d_c = l,   "eigen": d_c = diag(Q' T_c' T_c Q)

    Parameters
    ----------
    model : TotalVariability
    method : {"weights", "eigen"}
        "weights" assumes that each component's share of the frames is its weight in the mixture, in every segment;
        "eigen" assumes that all matrices T_c' T_c are diagonal in one basis.

    Returns
    -------
    basis : ndarray of shape (R, R)
        Q, orthonormal, one vector per column.
    precisions : ndarray of shape (C, R)
        d_c: the precision along each of them that a frame of component c contributes.

    References
    ----------
    Glembek et al., sections 3.1 and 3.2.
    """
    scaled = (np.sqrt(model.weights)[:, None, None] * model.loadings).reshape(-1, model.rank)
    with one_blas_thread():
        values, basis = np.linalg.eigh(scaled.T @ scaled)
        if method == "weights":
            return basis, np.tile(values, (len(model.weights), 1))
        return basis, np.square(model.loadings @ basis).sum(axis=1)


def fast_posterior(
    zeroth: NDArray[Any], projected: NDArray[Any], basis: NDArray[Any], precisions: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return approximate posterior means and variances, both of shape (S, R).

        L = Q diag(1 + sum_c n_c d_c) Q',   h = L^-1 b

    Parameters
    ----------
    zeroth : ndarray of shape (S, C)
        Counts n_c; float64, like all arguments.
    projected : ndarray of shape (S, R)
        b, see `spkver.vectors.posteriors.likelihood_part`.
    basis, precisions : ndarray of shape (R, R) and (C, R)
        See `fast_terms`.

    References
    ----------
    Glembek et al., equations 13 and 17.
    """
    spread = 1 / (1 + zeroth @ precisions)
    return ((projected @ basis) * spread) @ basis.T, spread @ (basis.T * basis.T)


@one_line
@dataclass(frozen=True)
class IVectors(Supervectors):
    """One i-vector for each segment.

    Attributes
    ----------
    models, segments : ndarray of str of shape (N,)
    vectors : ndarray or StoredArray of shape (N, R)
    variances : ndarray or StoredArray of shape (N, R), optional
        Diagonals of the posterior covariances; SIDEKIT's uncertainty is their sum with the squared vectors.
    """

    variances: Rows | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variances is not None and self.variances.shape != self.vectors.shape:
            text = f"i-vectors of shape {self.vectors.shape} need variances of the same, got {self.variances.shape}"
            raise DataError(text)


@verbosely
def extract_ivectors(
    model: TotalVariability,
    statistics: Statistics,
    *,
    method: IVectorMethod = "exact",
    variances: bool = False,
    work: Work = ALL_CORES,
    destination: str | Path | None = None,
    verbose: bool = True,
) -> IVectors:
    """Return the i-vector of each row of statistics.

    Parameters
    ----------
    model : TotalVariability
    statistics : Statistics
        Statistics under the mixture of the matrix; those in a file are read by blocks. A segment without
        frames has the i-vector 0, and the variances 1.
    method : {"exact", "weights", "eigen"}
        The posterior, or one of the two approximations of `fast_terms`.
    variances : bool
        Whether to return the diagonals of the posterior covariances too.
    work : spkbase.work.Work
        The result does not depend on the number of workers.
    destination : path, optional
        HDF5 file for the rows, which `read_embeddings` reads; they are then read from it on access.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    IVectors
        Vectors in float64, in the order of the statistics.

    Raises
    ------
    DataError
        If the statistics do not fit the matrix's mixture or are not finite, or the file cannot be written.
    ConfigError
        If there is no such method.
    """
    if method not in get_args(IVectorMethod):
        raise ConfigError(
            f"expected one of the methods {', '.join(get_args(IVectorMethod))}, got {method!r}"
        )
    model.check(statistics)
    shape = len(statistics), model.rank
    names = ["vectors"]
    if variances:
        names.append("variances")
    fast = memory = None
    if method != "exact":
        fast = fast_terms(model, method)
    elif not ships_items():
        memory = posteriors.block_memory(statistics, model.rank)
    of_block = partial(
        _block_vectors,
        terms=model.terms(work=work, products=fast is None),
        fast=fast,
        variances=variances,
    )
    blocks = posteriors.blocks_of(statistics, model.rank)
    sizes = posteriors.block_sizes(statistics, model.rank)
    if ships_items():
        pairs = work.map(partial(of_block, work=Work(1), memory=None), blocks, total=len(sizes))
    else:
        pairs = (of_block(block, work=work, memory=memory) for block in blocks)
    pairs = progress(pairs, description="i-vectors", sizes=sizes)
    columns = (pair[: len(names)] for pair in pairs)
    if destination is None:
        arrays = [np.empty(shape) for _ in names]
        fill_rows(arrays, columns)
        return IVectors(statistics.models, statistics.segments, *arrays)
    with new_file(destination, attributes={"kind": "i-vectors", "method": method}) as file:
        write_strings(file, "ids", statistics.segments)
        write_strings(file, "speakers", statistics.models)
        fill_rows([file.create_dataset(name, shape, np.float64) for name in names], columns)
    return open_ivectors(destination)


def open_ivectors(path: str | Path) -> IVectors:
    """Open the i-vectors in a file of `extract_ivectors`; they are read by rows, on access.

    Raises
    ------
    DataError
        If the file is missing, cut short or of another kind, or shapes do not agree.
    """
    ids = read_arrays(path, "ids", "speakers")
    vectors = stored_array(path, "vectors")
    variances = None
    with open_file(path) as file:
        has_variances = "variances" in file
    if has_variances:
        variances = stored_array(path, "variances")
    with errors_of(path, remedy="extract them again"):
        return IVectors(ids["speakers"], ids["ids"], vectors, variances)


def _block_vectors(
    block: Statistics,
    terms: posteriors.PosteriorTerms,
    fast: tuple[NDArray[Any], NDArray[Any]] | None,
    variances: bool,
    work: Work,
    memory: NDArray[Any] | None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the vectors and the variances of a block; omitted variances may have the shape (n, 0)."""
    if fast is None:
        return posteriors.block_posteriors(
            block, terms, work=work, variances=variances, memory=memory
        )
    counts = posteriors.counts_of(block)
    projected = posteriors.project(block, counts, np.asarray(block.first), terms, work)
    with one_blas_thread():
        return fast_posterior(counts, projected, *fast)
