"""Kaldi's lists about utterances (`text`, `utt2emo`, `wav.scp`), and intervals of measures over utterances.

All problems of a list are in one error.

For measures that are sums or means over utterances there is a bootstrap. Utterances of a speaker are alike, so speakers
are drawn: out of P speakers P with replacement, each with all of its utterances. A measure is computed anew from the
weights of the speakers; systems that are compared share the resamples. Intervals are made as
`evaluation.uncertainty.intervals` says, with Student's t on the scale of the measure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Method
from evaluation.uncertainty import Interval, Resampling, interval
from spkbase.errors import DataError, Problems, counted, few
from spkbase.files import inner_suffix, is_file, read_id_list, read_text

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]

DEFAULT = Resampling()
"""1000 resamples, seed 0, 95 %."""

OR_DROP = ", or missing='drop' leaves them out"
"""End of a remedy for missing utterances."""

# scale on which the error of each measure is nearly normal
METHODS = {
    "error_rate": Method("log", lower=0),
    "uar": Method("logit", lower=0, upper=1),
    "correlation": Method("identity", lower=-1, upper=1),
    "difference": Method("identity"),
}

_TRN = re.compile(r"(?P<words>.*)\((?P<id>[^()\s]*[-_0-9][^()\s]*)\)")
_ALTERNATIVES = re.compile(r"\{.*\s/\s.*\}")


def read_transcripts(path: str | Path) -> dict[str, str]:
    """Read the words of utterances: Kaldi's `text`, lines ``id words``, or sclite's trn, lines ``words (id)``.

    Parameters
    ----------
    path : path
        UTF-8; blank lines, Windows line ends, gzip and a byte order mark are accepted. An utterance may have no words.
        A file is a trn if every line ends with a unique id that has a digit, a hyphen or an underscore. A single line
        counts as a trn only by its extension, since a text may end in brackets.

    Returns
    -------
    dict of str to str
        The words of each utterance, unchanged, in the order of the file.

    Raises
    ------
    DataError
        With file and line, all at once: a repeated utterance, an empty file, text that is not UTF-8; or if most but not
        all lines end with an id, or a trn holds alternatives.
    """
    lines = [
        line.strip()
        for line in read_text(path).split("\n")
        if line.strip() and not line.startswith(";;")
    ]
    endings = [match for match in map(_TRN.fullmatch, lines) if match]
    words = {match["id"]: match["words"].strip() for match in endings}
    is_trn = len(lines) > 1 or inner_suffix(path) == ".trn"
    if is_trn and 2 * len(words) > len(lines):
        if len(words) < len(lines):
            text = f"{len(words)} of {len(lines)} lines end with an id of their own, as in sclite's trn"
            raise DataError(
                text,
                file=path,
                remedy="expected ids in all lines or in none: lines 'utterance words'",
            )
        if any(map(_ALTERNATIVES.search, words.values())):
            text = "holds alternatives, { one / other }, which are not read"
            raise DataError(text, file=path, remedy="choose one of each")
        return words
    return read_id_list(path, "utterance words", n_columns=1, rest=True)


def read_labels(path: str | Path, column: str = "emotion") -> dict[str, str]:
    """Read lines ``id label``, such as Kaldi's `utt2emo` or `spk2fold`.

    Parameters
    ----------
    path : path
        As for `read_transcripts`.
    column : str
        Name of the second column, for errors.

    Raises
    ------
    DataError
        As `read_transcripts`, or if a line does not have two columns.
    """
    return read_id_list(path, f"id {column}")


def read_recordings(path: str | Path) -> dict[str, Path]:
    """Read the audio file of each utterance from a data directory or a `wav.scp`.

    Parameters
    ----------
    path : path
        A data directory or the list itself. Files are named absolutely, or relative to the data directory, the current
        folder, the folder above the data directory or the one above that, in this order; ``data/SET/wav/x.wav`` also
        stands for the directory's own ``wav/x.wav``, in case it was moved.

    Raises
    ------
    DataError
        As `read_labels`; if a file is missing, or the list holds a shell command, which is never run.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "wav.scp"
    names = read_id_list(path, "utterance file", rest=True)
    home = path.absolute().parent
    problems = Problems(path)
    recordings = {}
    for utterance, name in names.items():
        if name.endswith("|") or name.startswith("|"):
            remedy = "write the audio into files first"
            problems.add(
                f"{utterance!r} is a shell command, which is not run here: {name[:60]!r}",
                remedy=remedy,
            )
            continue
        candidates = [folder / name for folder in (home, Path(), home.parent, home.parent.parent)]
        if Path(name).parent.name == "wav":
            moved = home / "wav" / Path(name).name
            candidates = [*candidates, moved] if Path(name).is_absolute() else [moved, *candidates]
        there = list(filter(is_file, candidates))
        if there:
            recordings[utterance] = there[0]
        else:
            remedy = f"tried {', '.join(dict.fromkeys(map(str, candidates)))}"
            problems.add(f"the audio of {utterance!r} is missing", remedy=remedy)
    problems.raise_if_any()
    return recordings


def check_same(
    expected: Collection[str],
    got: Collection[str],
    *,
    file: str | Path | None,
    whose: str = "",
    allow_extra: bool = False,
    otherwise: str = "",
) -> None:
    """Check that two sets of utterances are equal; errors name them with `whose`, and `otherwise` ends the remedy.

    Raises
    ------
    DataError
        If ids are missing or unknown; both are named.
    """
    texts = []
    missing = [name for name in expected if name not in got]
    if missing:
        texts.append(f"{counted(len(missing), 'utterance')}{whose} missing: {named(missing)}")
    unknown = [name for name in got if name not in expected]
    if unknown and not allow_extra:
        texts.append(f"{counted(len(unknown), 'utterance')}{whose} unknown: {named(unknown)}")
    if texts:
        remedy = f"expected the same {len(expected)} as in the reference{otherwise}"
        raise DataError("; ".join(texts), file=file, remedy=remedy)


def named(ids: Collection[str]) -> str:
    """Quote the first few ids."""
    return few(sorted(ids), repr)


def speakers_of(
    utterances: Collection[str], speakers: Mapping[str, str], file: str | Path | None = None
) -> list[str]:
    """Look up the speaker of each utterance.

    Raises
    ------
    DataError
        If some utterances have no speaker.
    """
    absent = [utterance for utterance in utterances if utterance not in speakers]
    if absent:
        text = f"{len(absent)} of {len(utterances)} utterances without a speaker: {named(absent)}"
        raise DataError(text, file=file, remedy="add them to utt2spk")
    return [speakers[utterance] for utterance in utterances]


def interval_by_speaker(
    statistic: Statistic,
    n_speakers: int,
    measure: str,
    resampling: Resampling,
    *,
    minus: Statistic | None = None,
    n_units: int | None = None,
    n_trials: int = 0,
) -> Interval:
    """Return a measure of utility with its interval by a bootstrap of speakers.

    Parameters
    ----------
    statistic : callable
        Values of the measure, shape (B,), from weights of the speakers, (B, n_speakers).
    n_speakers : int
        Number of speakers, from whom resamples are drawn.
    measure : str
        Name in `METHODS`, which gives the scale of the interval.
    resampling : Resampling
        Level of the interval; without resamples there is none.
    minus : callable, optional
        The same for another system; the result is then the difference from it, in shared resamples.
    n_units, n_trials : int
        See `evaluation.uncertainty.interval`; all speakers count by default.

    Returns
    -------
    Interval
        The measure; without ends, but with a note, if fewer than two speakers count or there are no resamples.
    """
    method = METHODS[measure]
    if n_units is None:
        n_units = n_speakers
    weights = np.concatenate([np.ones((1, n_speakers)), resampling.weights(n_speakers)])
    if minus is None:
        values = statistic(weights)
    else:
        values = statistic(weights) - minus(weights)
    value = float(values[0])
    if n_units < 2 or not resampling.resamples:
        if n_units > 1:
            note = "no resamples were drawn"
        else:
            note = "one speaker: the spread cannot be seen"
        return Interval(value, method=method.name, note=note)
    return interval(
        value, values[1:], method=method, n_units=n_units, n_trials=n_trials, level=resampling.level
    )


def sum_by_speaker(
    values: NDArray[Any], speakers: Sequence[str]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the sorted speakers, and the values of utterances, (n, ...), summed by speaker, (n_speakers, ...)."""
    names, codes = np.unique(np.asarray(speakers, np.str_), return_inverse=True)
    sums = np.zeros((len(names), *values.shape[1:]))
    np.add.at(sums, codes, values)
    return names.tolist(), sums


def pooled_ratio(sums: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratio of two sums, (P, 2), under weights of the speakers, (B, P); NaN if the second is 0."""
    totals = weights @ sums
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(totals[:, 1] > 0, totals[:, 0] / totals[:, 1], np.nan)
