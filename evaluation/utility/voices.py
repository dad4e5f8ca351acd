"""Voice similarity matrices, de-identification (DeID) and the gain of voice distinctiveness (G_VD), with intervals.

The similarity of the voices of speakers i and j is the sigmoid of the mean log-likelihood ratio over the trials between
them, for i = j between two different recordings:

    M(i, j) = sigmoid(mean of LLR over the trials of a recording of i and one of j)

The distinctiveness of the voices of a set is D(M) = |mean of the diagonal - mean of the rest|, from 0 (all voices
alike, or none like itself) to 1 (each like only itself). From three matrices, original against original (oo), original
against anonymised (oa) and anonymised against anonymised (aa), follow

    DeID = 1 - D(M_oa) / D(M_oo)              1 where nobody is recognised, 0 where nothing was hidden
    G_VD = 10 log10(D(M_aa) / D(M_oo)) dB     0 where voices stay as distinct, below 0 where they become alike

VoicePrivacy 2020 reported both, 2022 printed G_VD for each set. LLRs must be calibrated: for M, 0 means no evidence.

References
----------
.. [1] P.-G. Noé et al., "Speech pseudonymisation assessment using voice similarity matrices", Interspeech 2020.
.. [2] N. Tomashenko et al., "The VoicePrivacy 2020 Challenge: results and findings", Computer Speech and Language 74,
   2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, compress
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.calibration import cross_validate_affine
from evaluation.metrics import Method, sort_ratios, sort_scores
from evaluation.trials import Key, Scores, TrialSpeakers, align, find_speakers
from evaluation.uncertainty import Interval, Resampling, interval
from spkbase.errors import DataError, few
from spkbase.rounding import is_constant, is_negligible
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

Calibration = Literal["folds", "pav", "none"]
CALIBRATIONS: dict[Calibration, str] = {
    "folds": "an affine map by logistic regression, trained on trials of other speakers only (folds)",
    "pav": "isotonic regression on the same trials, with Laplace's rule, as VoicePrivacy 2022 intends",
    "none": "none: the scores are taken as log-likelihood ratios",
}

RIDGE = 1e-3
"""Keeps the map finite where scores separate the classes without error; see `evaluation.calibration.train_affine`."""

_FOLDS = 5
# similarities (0 to 1) that differ by less count as equal: means are rounded
_ALIKE = 1e-9


def similarity_matrix(
    llr: ArrayLike, first: ArrayLike, second: ArrayLike, n_speakers: int
) -> NDArray[np.float64]:
    """Return the similarity of speakers' voices: M(i, j) = sigmoid of the mean LLR of the trials of i and j.

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
        Similarities from 0 to 1; NaN for pairs without a trial.

    Raises
    ------
    DataError
        If shapes or codes do not fit, an LLR is NaN, or infinite LLRs of a pair contradict each other.

    Examples
    --------
    >>> similarity_matrix([np.log(3), -np.log(3), 0.0, 0.0], [0, 0, 1, 1], [0, 1, 0, 1], 2)
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    values = np.asarray(llr, np.float64)
    rows = np.asarray(first)
    columns = np.asarray(second)
    if values.ndim != 1 or rows.shape != values.shape or columns.shape != values.shape:
        raise DataError(
            f"expected two speakers for each of {values.size} trials, got {rows.shape} and {columns.shape}"
        )
    if values.size and not (
        min(rows.min(), columns.min()) >= 0 and max(rows.max(), columns.max()) < n_speakers
    ):
        raise DataError(f"expected speakers from 0 to {n_speakers - 1}")
    if np.isnan(values).any():
        raise DataError(f"expected log-likelihood ratios, got {int(np.isnan(values).sum())} NaN")
    cells = rows.astype(np.int64) * n_speakers + columns
    counts = np.bincount(cells, minlength=n_speakers**2)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        means = np.bincount(cells, values, minlength=n_speakers**2) / counts
        if np.isnan(means[counts > 0]).any():
            raise DataError(
                "infinite ratios of both signs cannot be averaged", remedy="calibrate the scores"
            )
        matrix = 1 / (1 + np.exp(-means))
    return np.asarray(matrix.reshape(n_speakers, n_speakers))


def distinctiveness(matrix: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return how distinct voices are: D(M) = |mean of the diagonal - mean of the other cells|.

    Parameters
    ----------
    matrix : array_like of float of shape (P, P)
        See `similarity_matrix`; cells that are NaN off the diagonal do not count.
    weights : array_like of float of shape (P,), optional
        How often each speaker counts, once by default; a pair counts by the product of both.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    DataError
        If there are fewer than two speakers, a speaker has no trials with themselves, or there is no trial between
        speakers.

    Examples
    --------
    >>> distinctiveness(np.eye(3)), distinctiveness(np.full((3, 3), 0.4))
    (1.0, 0.0)
    """
    cells = np.asarray(matrix, np.float64)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or len(cells) < 2:
        raise DataError(
            f"expected a square matrix of two speakers or more, got shape {cells.shape}"
        )
    diagonal = np.diagonal(cells)
    if np.isnan(diagonal).any():
        raise DataError(
            f"{int(np.isnan(diagonal).sum())} of {len(cells)} speakers have no trial with themselves"
        )
    if weights is None:
        weight = np.ones(len(cells))
    else:
        weight = np.asarray(weights, np.float64)
    pairs = np.outer(weight, weight)
    np.fill_diagonal(pairs, 0.0)
    pairs[np.isnan(cells)] = 0.0
    if not pairs.sum() > 0:
        raise DataError(
            "expected trials between two speakers, got none",
            remedy="add nontarget trials, which give the mean off the diagonal",
        )
    rest = float((pairs * np.nan_to_num(cells)).sum() / pairs.sum())
    own = float((weight * diagonal).sum() / weight.sum())
    if is_negligible(own - rest, 1.0, share=_ALIKE):
        return 0.0
    return abs(own - rest)


def de_identification(original: float, crossed: float) -> float:
    """Return DeID = 1 - D(M_oa) / D(M_oo), from two results of `distinctiveness`; NaN if D(M_oo) is 0.

    Examples
    --------
    >>> de_identification(0.8, 0.2)
    0.75
    """
    if original > 0:
        return 1 - crossed / original
    return float("nan")


def gain_of_distinctiveness(original: float, anonymised: float) -> float:
    """Return G_VD = 10 log10(D(M_aa) / D(M_oo)) dB; -inf if D(M_aa) is 0, NaN if D(M_oo) is 0.

    Examples
    --------
    >>> round(gain_of_distinctiveness(0.8, 0.4), 4)
    -3.0103
    """
    if not original > 0:
        return float("nan")
    if anonymised > 0:
        return float(10 * np.log10(anonymised / original))
    return -float("inf")


@one_line
@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """Similarity of the voices of a set of speakers.

    Attributes
    ----------
    speakers : tuple of str, length P
        Names, in the order of rows and columns.
    values : ndarray of float64 of shape (P, P)
        See `similarity_matrix`.
    n_trials : int
        Number of trials in the means.
    """

    speakers: tuple[str, ...]
    values: NDArray[np.float64]
    n_trials: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix for a report, rounded to a millionth; null for pairs without a trial."""
        rows = []
        for row in self.values.tolist():
            rows.append([None if np.isnan(cell) else round(cell, 6) for cell in row])
        return {"speakers": list(self.speakers), "n_trials": self.n_trials, "values": rows}


@one_line
@dataclass(frozen=True, eq=False)
class VoiceSimilarity(Tabular):
    """Three similarity matrices with DeID and G_VD.

    Attributes
    ----------
    matrices : dict of str to SimilarityMatrix
        The given ones of "oo", "oa" and "aa", of the same speakers.
    distinctiveness : dict of str to Interval
        D of each matrix.
    deid, gain : Interval
        DeID, and G_VD in dB; NaN if their matrices are missing or for the reasons in `notes`.
    notes : tuple of str
        Notes on the numbers.
    """

    matrices: dict[str, SimilarityMatrix]
    distinctiveness: dict[str, Interval]
    deid: Interval
    gain: Interval
    notes: tuple[str, ...] = ()

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each number."""
        rows = {f"D({name})": number for name, number in self.distinctiveness.items()}
        rows |= {"DeID": self.deid, "G_VD [dB]": self.gain}
        columns: dict[str, list[Any]] = {"measure": list(rows)}
        for name in ("value", "low", "high", "note"):
            columns[name] = [getattr(number, name) for number in rows.values()]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything for a report."""
        return {
            "n_speakers": len(next(iter(self.matrices.values())).speakers),
            "distinctiveness": {
                name: number.numbers() for name, number in self.distinctiveness.items()
            },
            "deid": self.deid.numbers(),
            "gain_of_voice_distinctiveness": self.gain.numbers(),
            "notes": list(self.notes),
            "matrices": {name: matrix.to_dict() for name, matrix in self.matrices.items()},
        }


@one_blas_thread()
def matrix_of_voices(
    scores: Scores | Sequence[Scores],
    key: Key,
    *,
    calibration: Calibration = "folds",
    seed: int = 0,
    model_speakers: Mapping[str, str] | None = None,
    segment_speakers: Mapping[str, str] | None = None,
    symmetric: bool = False,
    tell: Callable[[int, int], None] | None = None,
) -> tuple[SimilarityMatrix, list[str]]:
    """Return the voice similarity matrix of scores, and notes.

    Parameters
    ----------
    scores : Scores or sequence of Scores
        Joined to the key by id pair; a trial of a recording with itself does not count. Several lists are draws of the
        anonymiser: each is calibrated separately, and the mean LLR of two speakers is taken over all draws.
    key : Key
    calibration : {"folds", "pav", "none"}
        How scores become LLRs, see `CALIBRATIONS`.
    seed : int
        Seed of the folds of speakers.
    model_speakers, segment_speakers : mapping of str to str, optional
        See `evaluation.trials.find_speakers`.
    symmetric : bool
        Count trials of i and j for j and i too, for lists that contain each pair of recordings once.
    tell : callable, optional
        See `evaluation.calibration.cross_validate_affine`.

    Raises
    ------
    DataError
        If scores are missing or infinite, there is only one speaker, no trial within or between speakers, or
        there are too few speakers for folds.
    """
    if isinstance(scores, Scores):
        scores = [scores]
    if not scores:
        raise DataError("expected scores of one draw or more, got none")
    if calibration not in CALIBRATIONS:
        raise DataError(
            f"expected one of the calibrations {', '.join(CALIBRATIONS)}, got {calibration!r}"
        )
    values = np.stack([align(draw, key) for draw in scores])
    speakers = find_speakers(key, model_speakers=model_speakers, segment_speakers=segment_speakers)
    is_same = speakers.models == speakers.segments
    itself = is_same & (key.model_ids[key.models] == key.segment_ids[key.segments])
    other = key.is_target != is_same  # for example another sentence of the same speaker
    notes = []
    if itself.any():
        notes.append(f"{int(itself.sum()):,} trials of a recording with itself were left out")
    if other.any():
        notes.append(
            f"{int(other.sum()):,} trials within a speaker that are not target trials were left out"
        )
    kept = ~itself & ~other
    values = values[:, kept]
    is_same = is_same[kept]
    speakers = speakers.subset(kept)
    _check_speakers(speakers, is_same, calibration)
    llrs = []
    for draw in values:
        if is_constant(draw):
            notes.append("all scores are equal: a broken system, not privacy")
        if calibration == "folds":
            draw = cross_validate_affine(
                draw, is_same, speakers, folds=_FOLDS, seed=seed, ridge=RIDGE, tell=tell
            )
        elif calibration == "pav":
            ranked = sort_scores(draw[is_same], draw[~is_same])
            draw = ranked.laplace_blocks.per_score()[np.searchsorted(ranked.thresholds, draw)]
        else:
            sort_ratios(draw[is_same], draw[~is_same])  # called only for its warning
        llrs.append(draw)
    llr = np.mean(llrs, axis=0)
    first = speakers.models
    second = speakers.segments
    if symmetric:
        apart = ~is_same
        llr = np.concatenate([llr, llr[apart]])
        first = np.concatenate([first, second[apart]])
        second = np.concatenate([second, speakers.models[apart]])
    matrix = similarity_matrix(llr, first, second, len(speakers.names))
    return SimilarityMatrix(tuple(speakers.names.tolist()), matrix, values.size), notes


def _check_speakers(
    speakers: TrialSpeakers, is_same: NDArray[np.bool_], calibration: Calibration
) -> None:
    """Refuse too few speakers, and trials only within or only between speakers."""
    if len(speakers.names) < 2:
        raise DataError(f"expected two speakers or more, got {len(speakers.names)}")
    if not 0 < int(is_same.sum()) < len(is_same):
        if is_same.any():
            which = "between two speakers"
        else:
            which = "within a speaker"
        raise DataError(f"expected trials within and between speakers, got none {which}")
    used = len(np.unique(np.concatenate([speakers.models, speakers.segments])))
    if calibration == "folds" and used < _FOLDS:
        text = f"expected {_FOLDS} speakers or more to train a calibration on others, got {used}"
        raise DataError(
            text,
            remedy="calibrate the scores on other data, or by isotonic regression on the same trials",
        )


def compare_voices(
    matrices: Mapping[str, SimilarityMatrix],
    *,
    resampling: Resampling | None = None,
    notes: tuple[str, ...] = (),
) -> VoiceSimilarity:
    """Return DeID and G_VD from matrices of the same speakers.

    Parameters
    ----------
    matrices : mapping of str to SimilarityMatrix
        "oo", and "oa" or "aa" or both. Speakers that are missing from one of them, or lack trials with themselves
        there, are left out of all, with a note.
    resampling : Resampling, optional
        Intervals by a bootstrap of speakers, shared by the matrices: Student's t on the linear scale (in dB for G_VD).
        The calibration is not repeated for each resample, and the coverage of these intervals was not studied.
    notes : tuple of str
        Further notes for the result.

    Raises
    ------
    DataError
        If "oo" is missing or the only matrix, or the matrices share fewer than two speakers.

    Examples
    --------
    >>> names = ("a", "b", "c")
    >>> three = {"oo": np.eye(3), "oa": np.full((3, 3), 0.5), "aa": 0.5 * np.eye(3)}
    >>> found = compare_voices({name: SimilarityMatrix(names, cells) for name, cells in three.items()})
    >>> found.deid.value, round(found.gain.value, 4)
    (1.0, -3.0103)
    """
    resampling = resampling or Resampling(0)
    if "oo" not in matrices or len(matrices) < 2 or not set(matrices) <= {"oo", "oa", "aa"}:
        raise DataError(
            f"expected the matrices oo and oa or aa, got {', '.join(matrices) or 'none'}"
        )
    shared = _shared_speakers(matrices.values())
    if len(shared) < 2:
        expected = (
            "expected two speakers or more that are in all matrices with trials within themselves"
        )
        remedy = "check that the same ids name the same speakers in all files"
        raise DataError(f"{expected}, got {len(shared)}", remedy=remedy)
    all_notes = list(notes)
    everyone = set[str]().union(*(matrix.speakers for matrix in matrices.values()))
    absent = everyone.difference(shared)
    if absent:
        names = f"{len(absent)} of {len(everyone)} speakers, or segments of unknown ones,"
        all_notes.append(f"{names} are not in all matrices: {few(absent)}")
    chosen = {name: _restricted(matrix, shared) for name, matrix in matrices.items()}
    values = _numbers({name: matrix.values for name, matrix in chosen.items()}, None)
    all_notes += _implausible(chosen, values)
    intervals = _intervals(chosen, values, resampling)
    return VoiceSimilarity(
        chosen,
        {name: intervals[name] for name in chosen},
        intervals.get("deid", Interval(note="no original against anonymised speech")),
        intervals.get("gain", Interval(note="no anonymised against anonymised speech")),
        tuple(all_notes),
    )


def _implausible(
    matrices: Mapping[str, SimilarityMatrix], values: Mapping[str, float]
) -> list[str]:
    """Return notes on numbers that suggest a broken system, or a repeated or exchanged file."""
    from scipy.special import logit

    notes = []
    if not values["oo"] > 0:
        notes.append(
            "original voices are all alike: D(M_oo) is 0, and neither DeID nor G_VD is defined"
        )
    elif values.get("aa") == 0:
        notes.append("anonymised voices are all alike: D(M_aa) is 0, so that G_VD is -inf")
    # trials of a speaker with themselves are never counted in both directions
    own = {name: logit(np.diagonal(matrix.values)) for name, matrix in matrices.items()}
    for first, second in combinations(own, 2):
        if np.isfinite(own[first]).all() and np.allclose(
            own[first], own[second], rtol=0.0, atol=1e-6
        ):
            notes.append(f"M_{first} and M_{second} are equal: was a file given twice?")
    if values.get("gain", 0.0) > 0:
        notes.append(
            "anonymised voices are more distinct than original ones: were the files swapped?"
        )
    if values.get("deid", 0.0) < 0:
        text = (
            "anonymised voices are more similar to the originals than the originals to themselves"
        )
        notes.append(f"{text}: were files swapped?")
    return notes


def _shared_speakers(matrices: Iterable[SimilarityMatrix]) -> list[str]:
    """Return the speakers that have trials with themselves in all matrices."""
    with_itself = []
    for matrix in matrices:
        has_trials = ~np.isnan(np.diagonal(matrix.values))
        with_itself.append(set(compress(matrix.speakers, has_trials)))
    return sorted(set.intersection(*with_itself))


def _restricted(matrix: SimilarityMatrix, speakers: Sequence[str]) -> SimilarityMatrix:
    """Return the rows and columns of some speakers."""
    rows = list(map(matrix.speakers.index, speakers))
    return SimilarityMatrix(tuple(speakers), matrix.values[np.ix_(rows, rows)], matrix.n_trials)


def _numbers(
    cells: Mapping[str, NDArray[np.float64]], weights: NDArray[np.float64] | None
) -> dict[str, float]:
    numbers = {name: distinctiveness(values, weights) for name, values in cells.items()}
    if "oa" in numbers:
        numbers["deid"] = de_identification(numbers["oo"], numbers["oa"])
    if "aa" in numbers:
        numbers["gain"] = gain_of_distinctiveness(numbers["oo"], numbers["aa"])
    return numbers


def _intervals(
    matrices: Mapping[str, SimilarityMatrix], values: Mapping[str, float], resampling: Resampling
) -> dict[str, Interval]:
    """Return intervals by a bootstrap of speakers; each draw must contain two speakers."""
    if not resampling.resamples:
        return {name: Interval(value) for name, value in values.items()}
    count = len(matrices["oo"].speakers)
    cells = {name: matrix.values for name, matrix in matrices.items()}
    rows = []
    for weights in resampling.weights(count):
        with suppress(DataError):  # only one speaker was drawn
            rows.append(_numbers(cells, weights))
    ranges = {"deid": (-np.inf, 1.0), "gain": (-np.inf, np.inf)}
    intervals = {}
    for name, value in values.items():
        low, high = ranges.get(name, (0.0, 1.0))
        method = Method("identity", lower=low, upper=high)
        resampled = np.array([row[name] for row in rows])
        intervals[name] = interval(
            value, resampled, method=method, n_units=count, level=resampling.level
        )
    return intervals
