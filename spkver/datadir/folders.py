"""A data directory of a folder of recordings, by the names of its folders and files."""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from spkbase.errors import DataError, Problems, few
from spkver.datadir.directory import GENDERS, DataDir, named, no_folder

logger = logging.getLogger(__name__)

AUDIO = (".wav", ".flac", ".sph")
_NOT_READ = (".mp3", ".m4a", ".ogg", ".opus", ".aac", ".wma", ".amr", ".aif", ".aiff", ".caf", ".au", ".mp4", ".webm")


def datadir_of_folder(folder: str | Path, target: str | Path, *, separator: str = "-") -> DataDir:
    """Return the data directory of a folder of recordings, sexes not known.

    Where the folder has sub-folders, the first names the speaker: ``anna/monday/01.wav`` is the utterance
    ``anna-monday-01`` of ``anna``; names that begin with that of the folder above, as ``anna/anna-01.wav``, do not
    repeat it. Where it has none, the speaker is what stands before the first separator: ``anna-01.wav`` is the
    utterance ``anna-01`` of ``anna``.

    Parameters
    ----------
    folder : path
        Holds .wav, .flac or .sph files, at any depth; other files and hidden ones are left out, which a warning says of
        recordings in other formats. Another one names speakers who may be one: Anna and anna.
    target : path
        Folder of the data directory; it is not written here.
    separator : str
        What ends the name of the speaker in names of files.

    Returns
    -------
    DataDir

    Raises
    ------
    DataError
        With all problems: no folder, no recordings, recordings both beside and below sub-folders, names without a
        speaker, two files of one name.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise no_folder(folder)
    if not separator:
        raise DataError("the separator is empty", remedy="give what ends the speaker's name, such as - or _")
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if _is_recording(path, folder, AUDIO)]
    others = Counter(path.suffix.lower() for path in folder.rglob("*") if _is_recording(path, folder, _NOT_READ))
    left_out = ", ".join(f"{count} {suffix}" for suffix, count in sorted(others.items()))
    flat = [path for path in files if len(path.parts) == 1]
    if not files:
        remedy = "give the folder above the recordings: one sub-folder a speaker, or names like SPEAKER-1.wav"
        if others:
            remedy = "convert them to .wav or .flac"
        text = f"no recordings: found no {', '.join(AUDIO)} file" + (f", but {left_out}" if others else "")
        raise DataError(text, file=folder, remedy=remedy)
    if 0 < len(flat) < len(files):
        text = f"{len(flat)} recordings stand beside the folders of speakers: {named(map(str, flat))}"
        raise DataError(text, file=folder, remedy="move them into the folders of their speakers, or elsewhere")
    problems = Problems(folder)
    recordings: dict[str, Path] = {}
    speakers: dict[str, str] = {}
    for path in files:
        utterance = path.stem if flat else _joined(path.with_suffix("").parts)
        speaker, found, _ = path.stem.partition(separator) if flat else (path.parts[0], "-", "")
        if not (found and speaker):
            remedy = "give --separator, or one sub-folder a speaker"
            problems.add(f"{path}: expected a name like SPEAKER{separator}1{path.suffix}", remedy=remedy)
        elif utterance in recordings:
            first = recordings[utterance].relative_to(folder)
            problems.add(f"{path} and {first} are both utterance {utterance!r}", remedy="rename one")
        else:
            recordings[utterance], speakers[utterance] = folder / path, speaker
    problems.raise_if_any()
    if others:
        logger.warning("%s: left out: %s (convert them to .wav or .flac)", folder, left_out)
    alike: dict[str, set[str]] = {}
    for speaker in speakers.values():
        alike.setdefault(unicodedata.normalize("NFC", speaker.casefold()), set()).add(speaker)
    if twice := [" and ".join(map(ascii, sorted(names))) for names in alike.values() if len(names) > 1]:
        text = "%s: speakers whose names differ only by case or Unicode form: %s (rename them where they are one)"
        logger.warning(text, folder, few(twice))
    return DataDir(Path(target), recordings, speakers)


def match_genders(table: Mapping[str, str], speakers: set[str], file: str | Path) -> dict[str, str]:
    """Return the sex of each speaker, of a table with words such as f, M, female.

    Raises
    ------
    DataError
        With all problems: speakers that the table lacks, words that name no sex.
    """
    problems = Problems(file)
    if lacking := speakers - table.keys():
        problems.add(f"{len(lacking)} speakers of unknown sex: {named(lacking)}", remedy="add them, with f or m")
    genders = {}
    for speaker in sorted(speakers & table.keys()):
        word = table[speaker].strip().lower()
        if word in GENDERS:
            genders[speaker] = GENDERS[word]
        else:
            problems.add(f"speaker {speaker!r}: expected f or m, got {table[speaker]!r}", remedy="write f or m")
    problems.raise_if_any()
    return genders


def _is_recording(path: Path, folder: Path, suffixes: tuple[str, ...]) -> bool:
    is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix.lower() in suffixes and not is_hidden and path.is_file()


def _joined(parts: tuple[str, ...]) -> str:
    """Names of folders and of the file, joined by hyphens; one that begins with the name before stands for both."""
    name = parts[0]
    for part in parts[1:]:
        name = part if part.startswith(name) else f"{name}-{part}"
    return name
