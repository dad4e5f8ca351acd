"""Word and character error rates from transcripts, pooled over utterances, with intervals by speaker.

Conventions
-----------
The error rate is (substitutions + deletions + insertions) / units of the reference, counts pooled over all utterances
(not a mean of rates), so it may exceed 1. Alignments with the fewest edits come from RapidFuzz (Levenshtein's distance,
all costs 1); the total is unique, its split into kinds is that of one best alignment. Units are words, or characters:
with the blanks between words, as jiwer counts them, or without (``characters without blanks``, for scripts that write
none). An utterance without words in the reference adds its insertions.

Transcripts are normalised before they are compared; the name of the normaliser is part of every result:

none
    No normalisation: white space separates words, as in VoicePrivacy 2022 and 2024, whose transcripts are upper case.
basic
    Unicode NFKC, lower case, typographic apostrophes to ', punctuation and symbols to blanks. An apostrophe inside a
    word stays, a hyphen splits it. VoicePrivacy 2026 removes punctuation from its multilingual sets in such a way.

No normaliser here spells numbers out or unifies spellings; where the recogniser writes digits, normalise beforehand.

References
----------
.. [1] V. Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals", 1966.
.. [2] M. Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import warn_of_alike
from evaluation.uncertainty import Interval, Resampling
from evaluation.utility import lists
from spkbase.errors import DataError
from spkbase.packages import imported
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

Unit = Literal["words", "characters", "characters without blanks"]
UNITS: tuple[Unit, ...] = ("words", "characters", "characters without blanks")
Missing = Literal["error", "empty", "drop"]

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u0060\u00b4\uff07", "'"))
_OUTER_APOSTROPHE = re.compile(r"(?<!\w)'|'(?!\w)")
_KINDS = ("hits", "substitutions", "deletions", "insertions")


@one_line
@dataclass(frozen=True, eq=False)
class ErrorCounts:
    """Edits of each utterance.

    Attributes
    ----------
    utterances : list of str, length n
        Sorted ids.
    counts : ndarray of int64 of shape (n, 4)
        Hits, substitutions, deletions, insertions.
    unit : str
        Counted units, see `UNITS`.
    normaliser : str
        Name of the normalisation of the transcripts.
    """

    utterances: list[str]
    counts: NDArray[np.int64]
    unit: Unit
    normaliser: str

    @property
    def errors(self) -> NDArray[np.int64]:
        """Edits of each utterance, shape (n,)."""
        errors: NDArray[np.int64] = self.counts[:, 1:].sum(axis=1)
        return errors

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Units of each reference, shape (n,)."""
        lengths: NDArray[np.int64] = self.counts[:, :3].sum(axis=1)
        return lengths

    @property
    def rate(self) -> float:
        """Pooled error rate."""
        return float(self.errors.sum() / self.lengths.sum())


@one_line
@dataclass(frozen=True)
class ErrorRate(Tabular):
    """A pooled error rate.

    Attributes
    ----------
    interval : Interval
        The rate and its ends.
    counts : dict of str to int
        Hits, substitutions, deletions and insertions, pooled.
    speakers : dict of str to float
        Rate of each speaker; NaN if its references are blank.
    n_utterances : int
    unit, normaliser : str
        See `ErrorCounts`.
    """

    interval: Interval
    counts: dict[str, int]
    speakers: dict[str, float]
    n_utterances: int
    unit: str
    normaliser: str

    def to_columns(self) -> dict[str, list[Any]]:
        """Return one row: the unit, and the rate with its interval."""
        counted: dict[str, list[Any]] = {"unit": [self.unit], "utterances": [self.n_utterances]}
        return counted | self.interval.to_columns()

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, for a report."""
        fields = {
            "unit": self.unit,
            "normaliser": self.normaliser,
            "n_utterances": self.n_utterances,
        }
        lengths = {"n_reference": sum(self.counts[kind] for kind in _KINDS[:3])}
        return (
            self.interval.to_dict() | fields | lengths | self.counts | {"speakers": self.speakers}
        )


def count_errors(
    reference: Mapping[str, str],
    hypothesis: Mapping[str, str],
    *,
    unit: Unit = "words",
    normaliser: str = "none",
    missing: Missing = "error",
    file: str | Path | None = None,
) -> ErrorCounts:
    """Align transcripts and return the edits of each utterance.

    Parameters
    ----------
    reference, hypothesis : mapping of str to str
        Transcript of each utterance.
    unit : {"words", "characters", "characters without blanks"}
    normaliser : {"none", "basic"}
        See `evaluation.utility.error_rates`.
    missing : {"error", "empty", "drop"}
        Treatment of utterances without a hypothesis: stop, count all their words as deleted, or leave them out.
        An utterance without a reference is an error unless `missing` is ``drop``.
    file : path, optional
        File of the hypothesis, for errors.

    Raises
    ------
    DataError
        If ids do not fit, nothing is left to compare, or the references hold no word at all.

    Examples
    --------
    >>> counts = count_errors({"a": "one two three"}, {"a": "one too three four"})
    >>> counts.counts.tolist(), round(counts.rate, 3)
    ([[2, 1, 0, 1]], 0.667)
    """
    if unit not in UNITS or normaliser not in NORMALISERS:
        raise DataError(
            f"expected one of {UNITS} and of {tuple(NORMALISERS)}, got {unit!r} and {normaliser!r}"
        )
    if missing == "error":
        lists.check_same(reference, hypothesis, file=file, otherwise=lists.OR_DROP)
    elif missing == "empty":
        lists.check_same(
            hypothesis, reference, file=file, whose=" of the hypothesis", allow_extra=True
        )
    utterances = sorted(name for name in reference if name in hypothesis or missing == "empty")
    if not utterances:
        raise DataError(
            "no utterance has both a reference and a hypothesis",
            file=file,
            remedy="compare the ids",
        )
    normalise = NORMALISERS[normaliser]
    pairs = [
        (normalise(reference[name]), normalise(hypothesis.get(name, ""))) for name in utterances
    ]
    words = " ".join(map(" ".join, pairs)).split()
    warn_of_alike(
        words, "words", "a word (--normaliser basic)", partial(unicodedata.normalize, "NFKC")
    )
    counts = _align(pairs, unit)
    if not counts[:, :3].sum():
        raise DataError(
            "the references hold no word, so there is no error rate",
            remedy="check the reference file",
        )
    return ErrorCounts(utterances, counts, unit, normaliser)


@one_blas_thread()
def error_rate(
    counts: ErrorCounts,
    speakers: Mapping[str, str],
    resampling: Resampling = lists.DEFAULT,
    file: str | Path | None = None,
) -> ErrorRate:
    """Return the pooled rate, with an interval by a bootstrap of speakers.

    Parameters
    ----------
    counts : ErrorCounts
    speakers : mapping of str to str
        Speaker of each utterance.
    resampling : Resampling
    file : path, optional
        File of the map of speakers, for errors.

    Raises
    ------
    DataError
        If an utterance has no speaker.
    """
    if not isinstance(counts, ErrorCounts):
        raise DataError(f"expected ErrorCounts, as from count_errors, got {type(counts).__name__}")
    names, sums = _sums(counts, speakers, file)
    statistic = partial(lists.pooled_ratio, sums)
    total = int(sums[:, 1].sum())
    interval = lists.interval_by_speaker(
        statistic, len(names), "error_rate", resampling, n_trials=total
    )
    totals = dict(zip(_KINDS, counts.counts.sum(axis=0).tolist(), strict=True))
    by_speaker = dict(zip(names, statistic(np.eye(len(names))).tolist(), strict=True))
    return ErrorRate(
        interval, totals, by_speaker, len(counts.utterances), counts.unit, counts.normaliser
    )


@one_blas_thread()
def error_rate_differences(
    systems: Sequence[ErrorCounts],
    speakers: Mapping[str, str],
    resampling: Resampling = lists.DEFAULT,
) -> list[Interval]:
    """Return the rates of systems on the same utterances minus the first one's, in shared resamples.

    Raises
    ------
    DataError
        If the utterances or the conventions differ.
    """
    first = systems[0]
    names, sums = _sums(first, speakers)
    differences = []
    for other in systems[1:]:
        if (other.utterances, other.unit, other.normaliser) != (
            first.utterances,
            first.unit,
            first.normaliser,
        ):
            raise DataError("all compared systems must share utterances, unit and normaliser")
        rate = partial(lists.pooled_ratio, _sums(other, speakers)[1])
        minus = partial(lists.pooled_ratio, sums)
        differences.append(
            lists.interval_by_speaker(rate, len(names), "difference", resampling, minus=minus)
        )
    return differences


def _basic(text: str) -> str:
    # replaced before NFKC, which would decompose some apostrophes into blank and accent
    text = (
        unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).translate(_APOSTROPHES).lower()
    )
    letters = []
    for letter in text:
        is_kept = letter == "'" or unicodedata.category(letter)[0] not in "PSC"
        letters.append(letter if is_kept else " ")
    return " ".join(_OUTER_APOSTROPHE.sub(" ", "".join(letters)).split())


NORMALISERS: Mapping[str, Callable[[str], str]] = {
    "none": lambda text: " ".join(text.split()),
    "basic": _basic,
}
"""Functions from a transcript to its words, with single blanks between them, by name."""


def _sums(
    counts: ErrorCounts, speakers: Mapping[str, str], file: str | Path | None = None
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the speakers, with their errors and lengths, shape (n_speakers, 2)."""
    values = np.stack([counts.errors, counts.lengths], axis=1)
    return lists.sum_by_speaker(values, lists.speakers_of(counts.utterances, speakers, file))


def _align(pairs: Sequence[tuple[str, str]], unit: Unit) -> NDArray[np.int64]:
    """Count hits, substitutions, deletions and insertions of each pair, shape (n, 4)."""
    levenshtein = imported("rapidfuzz.distance", "rapidfuzz", "an error rate").Levenshtein
    counts = np.zeros((len(pairs), len(_KINDS)), np.int64)
    for row, (spoken, written) in enumerate(pairs):
        expected = _units(spoken, unit)
        edits = Counter(edit.tag for edit in levenshtein.editops(expected, _units(written, unit)))
        n_edited = edits["replace"] + edits["delete"]
        counts[row] = len(expected) - n_edited, edits["replace"], edits["delete"], edits["insert"]
    return counts


def _units(text: str, unit: Unit) -> Sequence[str]:
    """Return the units of a text to be counted."""
    if unit == "words":
        return text.split()
    if unit == "characters":
        return text
    return text.replace(" ", "")
