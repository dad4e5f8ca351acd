"""An unpacked LibriSpeech: recordings, transcripts and sexes, with everything that is wrong told at once.

LIBRISPEECH/SPEAKERS.TXT                                  ``id | F or M | subset | minutes | name``
LIBRISPEECH/<subset>/<speaker>/<chapter>/<id>.flac        id: ``<speaker>-<chapter>-<number>``
LIBRISPEECH/<subset>/<speaker>/<chapter>/<speaker>-<chapter>.trans.txt      lines ``id WORDS``
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spkbase.errors import DataError, Problems
from spkbase.files import read_text_bytes
from spkbase.showing import one_line
from spkver.audio import audio_header
from spkver.datadir import unfit_id

SPEAKERS = "SPEAKERS.TXT"
_ID = re.compile(r"(?P<speaker>[0-9]+)-(?P<chapter>[0-9]+)-[0-9]+", re.ASCII)
_SEXES = {"f": "f", "m": "m"}


@one_line
@dataclass(frozen=True)
class LibriSpeech:
    """What was found of a corpus.

    Attributes
    ----------
    recordings : dict of str to dict of str to Path
        Subset to utterance to FLAC file; utterances in order.
    transcripts : dict of str to str
        Utterance to its words.
    sexes : dict of str to str
        Speaker to "f" or "m".
    """

    recordings: dict[str, dict[str, Path]] = field(repr=False)
    transcripts: dict[str, str] = field(repr=False)
    sexes: dict[str, str] = field(repr=False)


def speaker_of(utterance: str) -> str:
    """Return the speaker of an utterance.

    Examples
    --------
    >>> speaker_of("1272-128104-0000")
    '1272'
    """
    return utterance.partition("-")[0]


def read_librispeech(root: str | Path, subsets: Sequence[str]) -> LibriSpeech:
    """Read subsets of a corpus and check every recording's header.

    Parameters
    ----------
    root : path
        The folder ``LibriSpeech``, or the one above it.
    subsets : sequence of str
        Such as ``test-clean``.

    Raises
    ------
    DataError
        With all problems: no such folders, names of another form, recordings that cannot be read, are there twice, lie
        in another speaker's folder, have no transcript; transcripts without recording, of another form or there twice;
        speakers whose sex is not told.
    """
    root = Path(root)
    if not (root / SPEAKERS).is_file() and (root / "LibriSpeech" / SPEAKERS).is_file():
        root = root / "LibriSpeech"
    problems = Problems(root)
    sexes = _read_sexes(root / SPEAKERS, problems)
    recordings: dict[str, dict[str, Path]] = {}
    transcripts: dict[str, str] = {}
    seen: dict[str, Path] = {}
    for subset in subsets:
        folder = root / subset
        if unfit := unfit_id(subset):
            problems.add(f"--subset {subset!r} {unfit}", remedy="name one such as test-clean")
            continue
        if not folder.is_dir():
            problems.add(f"no subset {subset}", remedy="unpack it here, or choose others by --subset")
            continue
        recordings[subset] = _find_recordings(folder, seen, problems)
        if not recordings[subset]:
            problems.add("no .flac file below it", file=folder, remedy="unpack the subset again")
        words = _read_transcripts(folder, problems)
        for names, others, what in (
            (recordings[subset], words, "recordings without a transcript"),
            (words, recordings[subset], "transcripts without a recording"),
        ):
            if alone := sorted(set(names) - set(others)):
                problems.add(f"{len(alone)} {what}: {_few(alone)}", file=folder, remedy="unpack the subset again")
        transcripts |= words
        if sexes:
            speakers = {speaker_of(utterance) for utterance in recordings[subset]}
            if unknown := sorted(speakers - sexes.keys()):
                text = f"{len(unknown)} speakers of {subset} are not in it: {_few(unknown)}"
                problems.add(text, file=root / SPEAKERS, remedy="take the list of the corpus itself")
    problems.raise_if_any()
    return LibriSpeech(recordings, transcripts, sexes)


def _read_sexes(path: Path, problems: Problems) -> dict[str, str]:
    """Sex of each speaker; names may hold further bars."""
    try:
        lines = read_text_bytes(path).decode("utf-8", "replace").splitlines()
    except DataError as error:
        problems.note(error)
        return {}
    sexes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(";"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        speaker, sex = (*cells, "")[:2]
        if not re.fullmatch(r"[0-9]+", speaker, re.ASCII) or sex.lower() not in _SEXES:
            problems.add(f"expected 'id | F or M | ...', got {line.strip()[:60]!r}", file=path, line=number)
        elif sexes.setdefault(speaker, sex.lower()) != sex.lower():
            problems.add(f"speaker {speaker!r} is there already, with another sex", file=path, line=number)
    return sexes


def _find_recordings(folder: Path, seen: dict[str, Path], problems: Problems) -> dict[str, Path]:
    """Recordings of a subset by id, whose headers are read; files of other kinds and hidden ones are left alone."""
    recordings = {}
    for path in sorted(folder.glob("*/*/*")):
        if path.suffix.lower() != ".flac" or path.name.startswith("."):
            continue
        match = _ID.fullmatch(path.stem)
        if match is None or (match["speaker"], match["chapter"]) != (path.parts[-3], path.parts[-2]):
            remedy = "a recording is SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac"
            problems.add("is no recording of this speaker and chapter by its name", file=path, remedy=remedy)
        elif path.stem in seen:
            problems.add(f"recording {path.stem!r} is there already: {seen[path.stem]}", file=path, remedy="remove one")
        else:
            seen[path.stem] = recordings[path.stem] = path
            try:
                audio_header(path)
            except DataError as error:
                problems.note(error)
    return recordings


def _read_transcripts(folder: Path, problems: Problems) -> dict[str, str]:
    """Words of each utterance of a subset; an utterance may have none."""
    transcripts: dict[str, str] = {}
    for path in sorted(folder.glob("*/*/*.trans.txt")):
        if path.name.startswith("."):
            continue
        try:
            text = read_text_bytes(path).decode("utf-8")
        except (DataError, UnicodeDecodeError) as error:
            note = error if isinstance(error, DataError) else DataError("expected text in UTF-8", file=path)
            problems.note(note)
            continue
        for number, line in enumerate(text.split("\n"), 1):
            utterance, _, words = line.strip().partition(" ")
            if not utterance:
                continue
            if not _ID.fullmatch(utterance):
                problems.add(f"expected 'id WORDS', got {line.strip()[:60]!r}", file=path, line=number)
            elif utterance in transcripts:
                problems.add(f"utterance {utterance!r} is there already", file=path, line=number)
            else:
                transcripts[utterance] = " ".join(words.split())
    return transcripts


def _few(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")
