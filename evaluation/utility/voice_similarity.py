"""Voice similarity matrices, de-identification (DeID) and the gain of voice distinctiveness (G_VD).

How alike the voices of speakers i and j are is the sigmoid of the mean log-likelihood ratio over trials between them,
of two different recordings where i = j:

    M(i, j) = sigmoid(mean of LLR over the trials of a recording of i and one of j)

The voices of a set are as distinct as the diagonal stands out: D(M) = |mean of the diagonal - mean of the rest|, from 0
(all voices alike, or none like itself) to 1 (each like itself alone). Of three matrices, original against original
(oo), original against anonymised (oa) and anonymised against anonymised (aa):

    DeID = 1 - D(M_oa) / D(M_oo)              1 where nobody is known again, 0 where nothing was hidden
    G_VD = 10 log10(D(M_aa) / D(M_oo)) dB     0 where voices stay as distinct, below 0 where they grow alike

VoicePrivacy 2020 had both, 2022 printed G_VD for each set. LLRs must be calibrated: M takes 0 for no evidence.

References
----------
.. [1] P.-G. Noé et al., "Speech pseudonymisation assessment using voice similarity matrices", Interspeech 2020.
.. [2] N. Tomashenko et al., "The VoicePrivacy 2020 Challenge: results and findings", Computer Speech and Language 74,
   2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spkbase.errors import DataError, few
from spkbase.showing import one_line


def similarity_matrix(llr: ArrayLike, first: ArrayLike, second: ArrayLike, n_speakers: int) -> NDArray[np.float64]:
    """Return how alike the voices of speakers are: M(i, j) = sigmoid of the mean LLR of the trials of i and j.

    Parameters
    ----------
    llr : array_like of float of shape (N,)
        Natural log-likelihood ratios, calibrated.
    first, second : array_like of int of shape (N,)
        Speaker on each side of each trial, from 0.
    n_speakers : int
        Number P of speakers.

    Returns
    -------
    ndarray of float64 of shape (P, P)
        From 0 to 1; NaN where there is no trial.

    Raises
    ------
    DataError
        If shapes or codes do not fit, an LLR is NaN, or infinite ones of a pair contradict each other.

    Examples
    --------
    >>> similarity_matrix([np.log(3), -np.log(3), 0.0, 0.0], [0, 0, 1, 1], [0, 1, 0, 1], 2)
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    values, rows, columns = np.asarray(llr, np.float64), np.asarray(first), np.asarray(second)
    if values.ndim != 1 or rows.shape != values.shape or columns.shape != values.shape:
        raise DataError(f"expected two speakers for each of {values.size} trials, got {rows.shape} and {columns.shape}")
    if values.size and not (min(rows.min(), columns.min()) >= 0 and max(rows.max(), columns.max()) < n_speakers):
        raise DataError(f"expected speakers from 0 to {n_speakers - 1}")
    if np.isnan(values).any():
        raise DataError(f"expected log-likelihood ratios, got {int(np.isnan(values).sum())} NaN")
    cells = rows.astype(np.int64) * n_speakers + columns
    counts = np.bincount(cells, minlength=n_speakers**2)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        means = np.bincount(cells, values, minlength=n_speakers**2) / counts
        if np.isnan(means[counts > 0]).any():
            raise DataError("infinite ratios of both signs cannot be averaged", remedy="calibrate the scores")
        matrix = 1 / (1 + np.exp(-means))
    return np.asarray(matrix.reshape(n_speakers, n_speakers))


def distinctiveness(matrix: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return how distinct voices are: D(M) = |mean of the diagonal - mean of the other cells|.

    Parameters
    ----------
    matrix : array_like of float of shape (P, P)
        See `similarity_matrix`; cells that are NaN off the diagonal do not count.
    weights : array_like of float of shape (P,), optional
        How often each speaker counts, once by default; a pair of two counts as often as the product.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    DataError
        If there are fewer than two speakers, a speaker has no trial with itself, or there is no pair of two.

    Examples
    --------
    >>> distinctiveness(np.eye(3)), distinctiveness(np.full((3, 3), 0.4))
    (1.0, 0.0)
    """
    cells = np.asarray(matrix, np.float64)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or len(cells) < 2:
        raise DataError(f"expected a square matrix of two speakers or more, got shape {cells.shape}")
    diagonal = np.diagonal(cells)
    if np.isnan(diagonal).any():
        raise DataError(f"{int(np.isnan(diagonal).sum())} of {len(cells)} speakers have no trial with themselves")
    weight = np.ones(len(cells)) if weights is None else np.asarray(weights, np.float64)
    pairs = np.outer(weight, weight)
    np.fill_diagonal(pairs, 0.0)
    pairs[np.isnan(cells)] = 0.0
    if not pairs.sum() > 0:
        raise DataError("expected trials between two speakers, got none", remedy="the rest needs nontarget trials")
    rest = float((pairs * np.nan_to_num(cells)).sum() / pairs.sum())
    return abs(float((weight * diagonal).sum() / weight.sum()) - rest)


def de_identification(original: float, crossed: float) -> float:
    """Return DeID = 1 - D(M_oa) / D(M_oo), of two numbers of `distinctiveness`; NaN where D(M_oo) is 0.

    Examples
    --------
    >>> de_identification(0.8, 0.2)
    0.75
    """
    return 1 - crossed / original if original > 0 else float("nan")


def gain_of_distinctiveness(original: float, anonymised: float) -> float:
    """Return G_VD = 10 log10(D(M_aa) / D(M_oo)) dB; -inf where D(M_aa) is 0, NaN where D(M_oo) is 0.

    Examples
    --------
    >>> round(gain_of_distinctiveness(0.8, 0.4), 4)
    -3.0103
    """
    if not original > 0:
        return float("nan")
    return float(10 * np.log10(anonymised / original)) if anonymised > 0 else -float("inf")


@one_line
@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """How alike the voices of a set of speakers are.

    Attributes
    ----------
    speakers : tuple of str, length P
        In the order of rows and columns.
    values : ndarray of float64 of shape (P, P)
        See `similarity_matrix`.
    n_trials : int
        What they are means over.
    """

    speakers: tuple[str, ...]
    values: NDArray[np.float64]
    n_trials: int = 0

    def of(self, speakers: tuple[str, ...]) -> SimilarityMatrix:
        """Return the matrix of some of the speakers, in their order.

        Raises
        ------
        DataError
            If one is unknown.
        """
        places = {name: place for place, name in enumerate(self.speakers)}
        unknown = [name for name in speakers if name not in places]
        if unknown:
            raise DataError(f"the matrix has no speaker {few(unknown, repr)}")
        chosen = np.array([places[name] for name in speakers], np.intp)
        return SimilarityMatrix(speakers, self.values[np.ix_(chosen, chosen)], self.n_trials)

    @property
    def whole(self) -> list[str]:
        """The speakers that have a trial with themselves."""
        kept = ~np.isnan(np.diagonal(self.values))
        return [name for name, is_there in zip(self.speakers, kept.tolist(), strict=True) if is_there]

    def to_dict(self) -> dict[str, Any]:
        """Return it for a report, rounded to a millionth; null where there is no trial."""
        rows = [[None if np.isnan(cell) else round(cell, 6) for cell in row] for row in self.values.tolist()]
        return {"speakers": list(self.speakers), "n_trials": self.n_trials, "values": rows}
