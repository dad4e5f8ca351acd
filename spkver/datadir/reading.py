"""Reading a data directory: in any order, with any line ends; all problems are reported at once.

A folder of recordings is converted to a data directory according to the names of its folders and files. Entries of
wav.scp that are shell commands are run only where the caller allows it; each writes a file, which is complete or
absent.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from evaluation.formats import Choice, read_key
from evaluation.trials import Key, read_columns, read_metadata, warn_of_alike
from spkbase.errors import DataError, Problems, caught, counted, few
from spkbase.files import atomic_path, is_file, load_json, read_id_list, read_text_bytes, write_text
from spkbase.plugins import run_command
from spkbase.work import Work
from spkver.audio import EXTENSIONS, audio_header
from spkver.datadir.directory import SEXES, DataDir, check_ids, file_stem, id_of_stem, no_folder
from spkver.datadir.segments import Segment, cut_segments, parse_segments

logger = logging.getLogger(__name__)

_RECORD = "commands.json"
_IN_ARCHIVE = re.compile(r".+\.ark:\d+$")


def run_pipes(
    commands: Mapping[str, str], folder: Path, *, jobs: int | None = None
) -> dict[str, Path]:
    """Run the commands and return the file of each utterance.

    Parameters
    ----------
    commands : mapping
        Utterance to shell command, which ends in "|" and writes audio to its standard output.
    folder : path
        Folder of ``UTTERANCE.wav`` and the record of the commands. A file is made again only if its command has changed
        or it was removed.
    jobs : int, optional
        Number of commands that run at once.

    Raises
    ------
    DataError
        With all commands that failed or wrote no audio; the other files are kept.
    """
    check_ids(commands)
    paths = {utterance: folder / f"{file_stem(utterance)}.wav" for utterance in commands}
    record: dict[str, str] = {}
    with suppress(DataError):
        record = load_json(folder / _RECORD)
    due = {}
    for utterance, command in commands.items():
        if record.get(utterance) != command or not paths[utterance].is_file():
            due[utterance] = command
    if due:
        logger.info("running %d of the %d shell commands of wav.scp", len(due), len(commands))
    problems = Problems()
    made = {}
    run = partial(_run, folder=folder, current=Path.cwd())
    try:
        results = Work(jobs).map(run, due.items(), description="commands", total=len(due))
        for utterance, error in results:
            if error is None:
                made[utterance] = due[utterance]
            else:
                problems.note(error)
    finally:
        if made:
            kept = {**record, **made}
            write_text(folder / _RECORD, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    problems.raise_if_any()
    return paths


def read_datadir(
    path: str | Path,
    *,
    allow_pipes: bool = False,
    pipes_to: Path | None = None,
    jobs: int | None = None,
    original: DataDir | None = None,
) -> DataDir:
    """Read a Kaldi data directory and check that its lists are consistent.

    Lists may be in any order and have Windows line ends. ``utt2spk`` or ``spk2utt`` may be missing, but not both.
    Relative paths in ``wav.scp`` begin at the data directory, the current folder, the folder above the data directory
    or the one above that, in this order; ``data/SET/wav/...``, as in the challenges, also stands for the directory's
    ``wav/...``, in case it was moved.

    Parameters
    ----------
    path : path
        The folder.
    allow_pipes : bool
        Run entries of ``wav.scp`` that are shell commands (``sph2pipe ... |``). They can do anything: only for trusted
        lists.
    pipes_to : path, optional
        Folder for the output of these commands, one WAV file per utterance; required with `allow_pipes`. A file made by
        the same command is reused. Recordings in archives, ``wav.ark:1234``, and utterances that are parts of
        recordings (``segments``) are written there as well.
    jobs : int, optional
        Number of commands that run at once.
    original : DataDir, optional
        The original of this anonymised twin. A twin without ``wav.scp`` has the lists of the original, and its
        recordings are ``wav/<utterance>.wav`` (or another of `spkver.audio.EXTENSIONS`), as in the VoicePrivacy
        Challenge.

    Raises
    ------
    DataError
        With all problems: a missing or empty list, files that are not text, ids that are repeated, unknown or unfit
        for names of files, missing audio, lists that contradict each other, a sex other than f or m, shell commands
        that are not allowed, or that fail.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise no_folder(folder)
    if original is not None and not (folder / "wav.scp").exists():
        files = _own_recordings(folder)
        if files:
            speakers = {name: original.speakers.get(name, name) for name in files}
            return DataDir(
                folder, files, speakers, original.sexes, original.enrolls, original.trials
            )
    problems = Problems(folder)
    entries = _table(folder / "wav.scp", "utterance path ...", problems, needed=True)
    speakers = _speakers(folder, problems)
    lines = _table(folder / "segments", "utterance recording ...", problems)
    name = "wav.scp"
    utterances: Collection[str] = entries.keys()
    segments: dict[str, Segment] = {}
    if lines:
        name = "segments"
        with problems.noted():
            segments = parse_segments(lines, entries, folder / name)
        utterances = segments.keys()
    if utterances and speakers:  # a missing list is reported separately
        _note_alone(set(utterances) - speakers.keys(), name, problems)
        _note_alone(speakers.keys() - set(utterances), "the list of speakers", problems)
    sexes: dict[str, str] = {}
    table = _table(folder / "spk2gender", "speaker f|m", problems)
    if table:
        with problems.noted():
            sexes = match_sexes(table, set(speakers.values()), folder / "spk2gender")
    enrolls = None
    if (folder / "enrolls").exists():  # in VoicePrivacy 2022 the list has a second column
        enrolls = tuple(_table(folder / "enrolls", "utterance", problems))
        _check_known(enrolls, speakers, folder / "enrolls", problems)
    trials = _trials(folder / "trials", speakers, problems)
    if segments and pipes_to is None:
        text = "utterances that are parts of recordings are not read here"
        remedy = "cut the recordings into one file per utterance, such as by spkver.datadir.read_datadir with pipes_to"
        problems.add(text, file=folder / "segments", remedy=remedy)
    audio = _sorted_entries(entries)
    _check_entries(audio, folder / "wav.scp", allow_pipes, pipes_to, problems)
    recordings = _find_audio(folder, audio.files, problems)
    problems.raise_if_any()
    if audio.offsets and pipes_to is not None:
        parts = {name: (recordings[name], offset) for name, offset in audio.offsets.items()}
        recordings.update(_cut_archives(parts, pipes_to, jobs=jobs))
    warn_of_alike(speakers.values())
    if audio.pipes and pipes_to is not None:
        recordings.update(run_pipes(audio.pipes, pipes_to, jobs=jobs))
        recordings = {utterance: recordings[utterance] for utterance in entries}
    if segments and pipes_to is not None:
        recordings = cut_segments(recordings, segments, pipes_to, jobs=jobs)
    return DataDir(folder, recordings, speakers, sexes, enrolls, trials)


def datadir_of_folder(folder: str | Path, target: str | Path, *, separator: str = "-") -> DataDir:
    """Return the data directory of a folder of recordings, without sexes.

    Where the folder has sub-folders, the first names the speaker: ``anna/monday/01.wav`` is the utterance
    ``anna-monday-01`` of ``anna``; a name that begins with that of its folder, as in ``anna/anna-01.wav``, does not
    repeat it. If it has none, the speaker is the part before the first separator: ``anna-01.wav`` is the utterance
    ``anna-01`` of ``anna``. In ids white space becomes ``_``, and Unicode is composed (NFC).

    Parameters
    ----------
    folder : path
        Folder that holds recordings (`spkver.audio.EXTENSIONS`) at any depth. Hidden files are ignored; there is a
        warning of other files, and of names that may stand for the same speaker, such as Anna and anna.
    target : path
        Folder of the data directory; it is not written here.
    separator : str
        Text that ends the speaker's name in file names.

    Returns
    -------
    DataDir

    Raises
    ------
    DataError
        With all problems: no folder, no recordings, recordings both inside and outside of sub-folders, names without
        a speaker, two files or two speakers with the same id.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise no_folder(folder)
    if not separator:
        raise DataError(
            "the separator is empty", remedy="give the end of the speaker's name, such as - or _"
        )
    files, others = _audio_below(folder)
    is_flat = _is_flat(files, folder)
    problems = Problems(folder)
    recordings: dict[str, Path] = {}
    speakers: dict[str, str] = {}
    names: dict[str, str] = {}  # spelling of each speaker's name
    for path in files:
        if is_flat:
            name, end, _ = path.stem.partition(separator)
            utterance = _as_id(path.stem)
        else:
            name = path.parts[0]
            end = separator
            utterance = _as_id(_joined(path.with_suffix("").parts))
        speaker = _as_id(name)
        if not (end and name):
            remedy = "give another separator, or one sub-folder per speaker"
            problems.add(
                f"{path}: expected a name like SPEAKER{separator}1{path.suffix}", remedy=remedy
            )
        elif names.setdefault(speaker, name) != name:
            problems.add(
                f"{names[speaker]!a} and {name!a} are both speaker {speaker!r}", remedy="rename one"
            )
        elif utterance in recordings:
            first = recordings[utterance].relative_to(folder)
            problems.add(
                f"{path} and {first} are both utterance {utterance!r}", remedy="rename one"
            )
        else:
            recordings[utterance] = folder / path
            speakers[utterance] = speaker
    problems.raise_if_any()
    if others:
        logger.warning(
            "%s: %s (convert recordings of other formats to .wav or .flac)", folder, others
        )
    warn_of_alike(names.values())
    return DataDir(Path(target), recordings, speakers)


def _is_flat(files: Sequence[Path], folder: Path) -> bool:
    """Return whether recordings are not in sub-folders; refuse them inside and outside of these."""
    flat = [path for path in files if len(path.parts) == 1]
    if 0 < len(flat) < len(files):
        names = few(sorted(map(str, flat)), repr)
        text = f"{counted(len(flat), 'recording')} outside of the folders of speakers: {names}"
        remedy = "move them into the folders of their speakers, or elsewhere"
        raise DataError(text, file=folder, remedy=remedy)
    return bool(flat)


def datadir_of_table(
    table: str | Path,
    target: str | Path,
    *,
    folder: str | Path,
    speaker: str,
    path: str,
    sex: str | None = None,
    header: Sequence[str] = (),
) -> DataDir:
    """Return the data directory of the recordings that a table lists, such as ``validated.tsv`` of Common Voice.

    The path ``en/clip 1.mp3`` is the utterance ``en-clip_1``. It is not checked that the recordings exist.

    Parameters
    ----------
    table : path
        A table with a header and a line for each recording; see `evaluation.trials.read_columns`.
    target : path
        Folder of the data directory; it is not written here.
    folder : path
        Folder to which relative paths are relative.
    speaker, path, sex : str
        Names of columns. Without the last one there are no sexes; the words for sexes are those of `SEXES`.
    header : sequence of str
        Names of all columns of a table without a header.

    Raises
    ------
    DataError
        With all lines: a blank cell, two recordings with the same id, an unknown word for a sex, a speaker with two
        sexes.
    """
    recordings: dict[str, Path] = {}
    speakers: dict[str, str] = {}
    sexes: dict[str, str] = {}
    problems = Problems(table)
    columns = [speaker, path]
    if sex:
        columns.append(sex)
    for line, (name, file, *words) in read_columns(table, columns, header=header):
        utterance = _id_of_path(file)
        person = _as_id(name)
        if not (name and file) or utterance in recordings:
            text = f"expected a speaker and a recording that no other line lists, got {name[:20]!r} and {file!r}"
            problems.add(text, line=line, remedy="leave the line out")
        recordings[utterance] = Path(folder) / file
        speakers[utterance] = person
        for word in words:
            known = SEXES.get(word.lower())
            if known is None or sexes.setdefault(person, known) != known:
                text = f"speaker {name!r}: expected female or male, as in other lines, got {word!r}"
                problems.add(
                    text,
                    line=line,
                    remedy="leave such speakers out, or do without the column of sexes",
                )
    problems.raise_if_any()
    warn_of_alike(speakers.values())
    return DataDir(Path(target), recordings, speakers, sexes)


def texts_of_table(
    table: str | Path, *, path: str, text: str, header: Sequence[str] = ()
) -> dict[str, str]:
    """Return the transcripts that a table lists, by utterance, see `datadir_of_table`; blank ones are left out.

    Parameters
    ----------
    table : path
    path, text : str
        Names of the columns with recordings and with their words.
    header : sequence of str
        Names of all columns of a table without a header.
    """
    texts = {}
    for _, (file, words) in read_columns(table, [path, text], header=header):
        if words:
            texts[_id_of_path(file)] = " ".join(words.split())
    return texts


def _id_of_path(file: str) -> str:
    return _as_id(_joined(Path(file.lstrip("/") or "-").with_suffix("").parts))


def read_sexes(path: str | Path) -> Mapping[str, str]:
    """Return a word for the sex of each speaker, from lines 'speaker f' or the column sex or gender of a table."""
    header = read_text_bytes(path).partition(b"\n")[0].decode("utf-8-sig", "replace")
    columns = [word for word in re.split(r"[\s,;]+", header) if word.lower() in ("sex", "gender")]
    if columns:
        return read_metadata(path, columns[0])
    return read_id_list(path, "speaker f|m")


def match_sexes(table: Mapping[str, str], speakers: set[str], file: str | Path) -> dict[str, str]:
    """Return the sex of each speaker, from a table with words such as f, M, female.

    Raises
    ------
    DataError
        With all problems: speakers missing from the table, unknown words for a sex.
    """
    problems = Problems(file)
    lacking = speakers - table.keys()
    if lacking:
        problems.add(
            f"{counted(len(lacking), 'speaker')} of unknown sex: {few(lacking, repr)}",
            remedy="add them, with f or m",
        )
    sexes = {}
    for speaker in sorted(speakers & table.keys()):
        word = table[speaker].strip().lower()
        if word in SEXES:
            sexes[speaker] = SEXES[word]
        else:
            problems.add(
                f"speaker {speaker!r}: expected f or m, got {table[speaker]!r}",
                remedy="write f or m",
            )
    problems.raise_if_any()
    return sexes


class _Entries(NamedTuple):
    """Entries of ``wav.scp`` by utterance: files, shell commands, and offsets of recordings in archives, in bytes."""

    files: dict[str, str]
    pipes: dict[str, str]
    offsets: dict[str, int]


def _sorted_entries(entries: Mapping[str, str]) -> _Entries:
    """Return the entries of ``wav.scp`` by their kind; an archive is among the files."""
    audio = _Entries({}, {}, {})
    for utterance, entry in entries.items():
        if entry.endswith("|"):
            audio.pipes[utterance] = entry
        elif _IN_ARCHIVE.fullmatch(entry):
            audio.files[utterance], _, offset = entry.rpartition(":")
            audio.offsets[utterance] = int(offset)
        else:
            audio.files[utterance] = entry
    return audio


def _note_alone(utterances: Collection[str], name: str, problems: Problems) -> None:
    """Report utterances that are only in one of two lists."""
    if utterances:
        text = f"{counted(len(utterances), 'utterance')} of {name} not in the other list: {few(utterances, repr)}"
        problems.add(text, remedy="add them to the other list, or remove them from this one")


def _check_entries(
    audio: _Entries, path: Path, allow_pipes: bool, pipes_to: Path | None, problems: Problems
) -> None:
    """Report entries of ``wav.scp`` that may not be run, or whose recordings have no folder to be written to."""
    if audio.pipes and not (allow_pipes and pipes_to is not None):
        text = f"{len(audio.pipes)} entries are shell commands, such as {next(iter(audio.pipes.values()))!r}"
        remedy = "they are run only with allow_pipes=True, for lists that you trust; or write the audio to files"
        problems.add(text, file=path, remedy=remedy)
    if audio.offsets and pipes_to is None:
        text = f"{len(audio.offsets)} entries are parts of archives, which are not read here"
        remedy = "write each recording to a WAV or FLAC file, such as by kaldiio.load_scp and soundfile.write"
        problems.add(text, file=path, remedy=remedy)


def _audio_below(folder: Path) -> tuple[list[Path], str]:
    """Return the recordings in a folder, by relative path, and a text that names other files, or ""."""
    files = []
    ignored = []
    for path in files_below(folder):
        if path.suffix.lower() in EXTENSIONS:
            files.append(path)
        else:
            ignored.append(str(path))
    others = ""
    if ignored:
        others = f"{len(ignored)} other files are left out: {few(ignored, repr)}"
    if not files:
        text = f"no recordings: found no {', '.join(EXTENSIONS)} file"
        remedy = "give the folder above the recordings: one sub-folder per speaker, or names like SPEAKER-1.wav"
        if others:
            text += f"; {others}"
            remedy = "convert recordings of other formats to .wav or .flac"
        raise DataError(text, file=folder, remedy=remedy)
    return files, others


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder at any depth, by relative path, sorted and without hidden ones."""
    files = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if not path.is_dir() and not any(part.startswith(".") for part in inside.parts):
            files.append(inside)
    return files


def _run(item: tuple[str, str], folder: Path, current: Path) -> tuple[str, DataError | None]:
    utterance, command = item
    path = folder / f"{file_stem(utterance)}.wav"
    try:
        with atomic_path(path) as temporary:
            with temporary.open("wb") as output:
                # the caller allowed these commands; a worker may run in another folder
                run_command(command.rstrip().removesuffix("|"), output=output, folder=current)
            try:
                audio_header(temporary)
            except DataError as error:
                raise DataError(f"the command wrote no audio: {error.text}") from error
    except DataError as error:
        text = f"utterance {utterance!r}: {error.text}: {command}"
        return utterance, DataError(
            text, file=error.file, remedy=error.remedy or "run it in a shell to see why"
        )
    return utterance, None


def _cut_archives(
    parts: Mapping[str, tuple[Path, int]], folder: Path, *, jobs: int | None
) -> dict[str, Path]:
    """Write the recordings at byte offsets of archives to separate files; equal files are not touched."""
    problems = Problems()
    cut = partial(caught, function=partial(_cut, folder=folder))
    results = Work(jobs).map(cut, parts.items(), description="archives of audio", total=len(parts))
    files = problems.sift(zip(parts, results, strict=True))
    problems.raise_if_any()
    return files


def _cut(item: tuple[str, tuple[Path, int]], folder: Path) -> Path:
    utterance, (archive, start) = item
    with archive.open("rb") as file:
        file.seek(start)
        head = file.read(8)
        if head.startswith(b"RIFF"):
            size = 8 + int.from_bytes(head[4:], "little")
        elif head.startswith(b"AUDIO"):
            # kaldiio's form for formats other than WAV: bytes that the size takes, size, file
            start += 6
            file.seek(start)
            size = int.from_bytes(file.read(head[5]), "little")
            start += head[5]
        else:
            text = f"utterance {utterance!r}: no recording begins at byte {start} of the archive, but {head!r}"
            raise DataError(text, file=archive, remedy="write the archive and wav.scp again")
        if start + size > archive.stat().st_size:
            text = f"utterance {utterance!r}: the archive ends before the recording at byte {start}"
            raise DataError(text, file=archive, remedy="copy the archive again from its source")
        file.seek(start)
        content = file.read(size)
    path = folder / f"{file_stem(utterance)}-{start}.wav"
    if not path.is_file() or path.read_bytes() != content:
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    return path


def _own_recordings(folder: Path) -> dict[str, Path]:
    """Return the recordings of a folder without lists, by the names of their files."""
    files: dict[str, Path] = {}
    twice: list[str] = []
    for path in sorted(folder.glob("wav/[!.]*")):
        if path.suffix.lower() in EXTENSIONS:
            utterance = id_of_stem(path.stem)
            if utterance in files and utterance not in twice:
                twice.append(utterance)
            files[utterance] = path
    if twice:
        text = f"{counted(len(twice), 'utterance')} in several formats: {few(twice, repr)}"
        raise DataError(text, file=folder / "wav", remedy="keep one of each")
    return files


def _table(path: Path, form: str, problems: Problems, *, needed: bool = False) -> dict[str, str]:
    """Return the rest of the line of each id; empty if the list is wrong, or missing and not required."""
    if not needed and not path.exists():
        return {}
    try:
        table = read_id_list(
            path, form, n_columns=min(2, len(form.split())), rest=form.endswith("...")
        )
        check_ids(table, path)
    except DataError as error:
        problems.note(error)
        return {}
    return table


def _speakers(folder: Path, problems: Problems) -> dict[str, str]:
    """Return the speaker of each utterance, from `utt2spk` and `spk2utt`, which must agree if both exist."""
    first = folder / "utt2spk"
    second = folder / "spk2utt"
    speakers = _table(first, "utterance speaker", problems, needed=not second.exists())
    inverse: dict[str, str] = {}
    for speaker, utterances in _table(second, "speaker utterance ...", problems).items():
        for utterance in utterances.split():
            if inverse.setdefault(utterance, speaker) != speaker:
                text = f"utterance {utterance!r} has two speakers, {inverse[utterance]!r} and {speaker!r}"
                problems.add(text, file=second, remedy="keep the right one")
    for path, ids in ((first, set(speakers.values())), (second, inverse)):
        with problems.noted():
            check_ids(ids, path)
    if not (speakers and inverse):
        return speakers or inverse
    for utterance in sorted(speakers.keys() | inverse.keys()):
        speaker = speakers.get(utterance, "none")
        other = inverse.get(utterance, "none")
        if speakers.get(utterance) != inverse.get(utterance):
            text = f"speaker of {utterance!r}: {speaker} in utt2spk, {other} in spk2utt"
            problems.add(text, remedy="remove spk2utt, which is made from utt2spk, or correct it")
    return speakers


def _trials(path: Path, speakers: Mapping[str, str], problems: Problems) -> Key | None:
    if not path.exists():
        return None
    try:
        key = read_key(path, Choice(layout="model,segment,label"))
        check_ids(key.model_ids, path)
    except DataError as error:
        problems.note(error)
        return None
    _check_known(key.segment_ids, speakers, path, problems)
    known = set(speakers.values())
    for (model, segment), is_target in zip(key.pairs(), key.is_target, strict=True):
        if model in known and segment in speakers and (model == speakers[segment]) != is_target:
            label = "target" if is_target else "nontarget"
            text = f"trial '{model} {segment}' is marked {label}, but {segment!r} is spoken by {speakers[segment]!r}"
            problems.add(text, file=path, remedy="correct the trials or the list of speakers")
    return key


def _check_known(
    utterances: Iterable[str], speakers: Mapping[str, str], path: Path, problems: Problems
) -> None:
    unknown = set(utterances) - speakers.keys()
    if unknown and speakers:
        remedy = "they have no line in utt2spk: add them there, or remove them here"
        problems.add(
            f"{len(unknown)} unknown utterances: {few(unknown, repr)}", file=path, remedy=remedy
        )


def _find_audio(folder: Path, entries: Mapping[str, str], problems: Problems) -> dict[str, Path]:
    """Return the paths of the audio files that exist, and report the others."""
    file = folder / "wav.scp"
    folder = folder.resolve()
    bases = list(dict.fromkeys((folder, Path.cwd(), folder.parent, folder.parent.parent)))
    paths = {}
    for utterance, entry in entries.items():
        path = Path(entry)
        tried = [base / path for base in bases]
        if path.is_absolute():
            tried = [path]
        # the directory's own file, moved or not, takes precedence over files elsewhere
        if path.parent.name == "wav":
            tried.insert(int(path.is_absolute()), folder / "wav" / path.name)
        there = next((candidate for candidate in tried if is_file(candidate)), None)
        if there is None:
            text = f"utterance {utterance!r}: no such file, tried {', '.join(map(str, tried))}"
            problems.add(
                text,
                file=file,
                remedy="correct the path, or give relative paths from the current folder",
            )
        else:
            paths[utterance] = there
    return paths


def _as_id(name: str) -> str:
    return re.sub(r"\s+", "_", unicodedata.normalize("NFC", name).strip())


def _joined(parts: tuple[str, ...]) -> str:
    """Join the names of folders and of a file by hyphens; a name that begins with the previous one replaces it."""
    name = parts[0]
    for part in parts[1:]:
        name = part if part.startswith(name) else f"{name}-{part}"
    return name
