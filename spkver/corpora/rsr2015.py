"""RSR2015, parts 1 to 3: from the corpus folder to the lists of the verification protocol.

Conventions
-----------
The folder holds ``sph/{male,female}/m001/m001_01_001.sph`` (speaker, session, sentence; ``.wav`` and ``.flac`` are read
too), ``key/part1/trn/3sesspwd_eval_m.trn`` and ``key/part1/ndx/3sess-pwd_eval_m.ndx``. A recording's id is
``m001/m001_01_001``. A model is a speaker with a sentence, ``m101_001``. Trials have one of four types: target or
impostor speaker (T, I) with the correct or a wrong text (C, W).

Part 1 has thirty sentences (001 to 030), part 2 thirty short commands (031 to 060), with lists of the same form. In
part 3 each session has different digits, the same for all speakers: three sequences of ten (061 to 063) and ten of five
(064 to 073). Its models are speakers with the number of an enrolment, ``m101_1`` or ``m101_01``, and each trial has the
digits that should be spoken, the prompt: ``4-8-0-7-3,m101_01,m101/m101_02_064.sph,Y,N,N,N``. If trials with wrong texts
are chosen, a pair of model and recording occurs with several prompts, so the model of a trial is then named with the
prompt, ``m101_01:4-8-0-7-3``. The words of each session are in ``key/part3/prompts.txt``, if that file exists, in lines
"session,sentence,words".

Lists with other names than these are found if exactly one file ends in the partition and the sex,
``key/part2/trn/*eval_m.trn``; otherwise they must be given.

Fields of the key files (trn: which recordings enrol a model; ndx: the trials) are separated by commas, blanks or both.
A trial list has millions of lines of which a few per cent are used, so pandas reads it block by block. Everything is
checked before anything is returned, and all problems are reported at once, with their lines.

Lists may also come as files: the folder ``task`` of SIDEKIT's tutorial, or one that a recipe wrote. Files are named as
SIDEKIT's ``rsr2015_init`` names them, ``3sesspwd_eval_m_trn.h5`` and so on, or the same with ``.txt``; ``ubm_list.txt``
has one recording per line. A list without a file is made from the corpus. Ids of recordings may be preceded by the
folder of the sex and followed by an extension, as SIDEKIT's script leaves them with newer versions of pandas. SIDEKIT's
key has only target and nontarget trials; their types follow from the ids: ``m101_001`` is a speaker with a sentence,
``m101/m101_02_001`` a speaker, a session and a sentence.

References
----------
A. Larcher, K. A. Lee, B. Ma, H. Li, "Text-dependent speaker verification: Classifiers, databases and RSR2015",
Speech Communication 60, 2014.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.formats import read_key, write_key, write_trials
from evaluation.trials import Key
from spkbase.errors import ConfigError, DataError, Problems, counted, few
from spkbase.files import read_id_list, write_text
from spkbase.showing import one_line
from spkver.datadir import DataDir, write_datadir
from spkver.idmap import IdMap
from spkver.sidekit import read_idmap, write_idmap

logger = logging.getLogger(__name__)

TRIAL_TYPES = ("TC", "TW", "IC", "IW")
_BLOCK_BYTES = 1 << 24
_MAX_BAD_LINES = 100  # reported of one block; enough to see the cause
_BOM = b"\xef\xbb\xbf"
_TO_BLANK = bytes.maketrans(b",\t\r", b"   ")
_AUDIO_NAME = re.compile(
    r"^(?:(?:.*/)?(?:male/|female/))?(.+?)(?:\.(?:sph|wav|flac))?$", re.IGNORECASE
)
_ENROLMENT_NUMBER = re.compile(r"^([mf]\d{3}_)(\d)(?=:|$)")

TrialList = tuple[Key, NDArray[np.int64]]
"""Trials and the line of each; 0 where it is not known."""

Mentions = dict[str, tuple[Path, int | None]]
"""File and line that first mention a recording."""

_EXTENSIONS = (".sph", ".wav", ".flac")
_RECORDING = re.compile(r"^([mf])(\d{3})/\1\2_(\d{2})_(\d{3})$")

UBM_LIST = "ubm_list.txt"
_LISTS_READ = ("enrolment", "background", "nap", "key")  # lists read besides the UBM list
_SPOKEN = re.compile(r"^([mf]\d{3})(?:/\1_\d{2})?_(\d{3})$")

_FOLDERS = {"m": "male", "f": "female"}

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PART_SENTENCES = {1: (1, 30), 2: (31, 60), 3: (61, 73)}
"""First and last sentence of each part."""

_PASSWORDS = ("3sesspwd_{}.trn", "3sess-pwd_{}.ndx")
_KEY_NAMES = {1: _PASSWORDS, 2: _PASSWORDS, 3: ("3seq10_{}.trn", "seq5_test{}.ndx")}


class Enrolment(NamedTuple):
    """A model, its recordings and its line in the list."""

    model: str
    segments: tuple[str, ...]
    line: int


def segment_id(name: str) -> str:
    """Return the id of a recording from its name in a key file: without the sex's folder and the extension.

    Examples
    --------
    >>> segment_id("male/m101/m101_01_001.sph")
    'm101/m101_01_001'
    """
    match = _AUDIO_NAME.match(name)
    return match.group(1) if match else name


def model_id(name: str) -> str:
    """Return the id of a model from its name in a key file; in part 3 the number of the enrolment has two digits.

    Examples
    --------
    >>> [model_id(name) for name in ("m101_001", "m101_1", "m101_1:4-8-0-7-3")]
    ['m101_001', 'm101_01', 'm101_01:4-8-0-7-3']
    """
    return _ENROLMENT_NUMBER.sub(r"\g<1>0\2", name)


def words_of(prompt: str) -> tuple[str, ...]:
    """Return the words of a prompt of part 3: digits or their names, separated by blanks or hyphens; none for other
    texts.

    Examples
    --------
    >>> words_of("4-8-0"), words_of("Four eight zero"), words_of("four candles")
    (('four', 'eight', 'zero'), ('four', 'eight', 'zero'), ())
    """
    names = dict(zip("0123456789", DIGITS, strict=True)) | {name: name for name in DIGITS}
    words = prompt.lower().replace("-", " ").split()
    if not names.keys() >= set(words):
        return ()
    return tuple(names[word] for word in words)


def read_enrolment(path: Path, problems: Problems) -> list[Enrolment]:
    """Read the lines "model file1,file2,..." of an enrolment list."""
    rows: list[Enrolment] = []
    seen: dict[str, int] = {}
    for first_line, block in _blocks(path, problems):
        for line, content in enumerate(block.decode().split("\n"), first_line):
            model, *names = content.split() or [""]
            if not model:
                continue
            model = model_id(model)
            segments = tuple(map(segment_id, names))
            twice = sorted({segment for segment in segments if segments.count(segment) > 1})
            text = ""
            remedy = None
            if not segments:
                text = f"model {model!r} without files, expected 'model file1,file2,...'"
            elif model in seen:
                text = f"model {model!r} for the second time, first in line {seen[model]}"
                remedy = "put all files of a model into one line"
            elif twice:
                text = f"model {model!r} has the same file twice: {', '.join(twice)}"
                remedy = "remove one of the two"
            if text:
                problems.add(text, file=path, line=line, remedy=remedy)
            else:
                rows.append(Enrolment(model, segments, line))
            seen.setdefault(model, line)
    if not seen:
        problems.add("holds no models", file=path, remedy="copy the key files again")
    return rows


def read_prompts(path: Path, problems: Problems) -> dict[tuple[int, int], tuple[str, ...]]:
    """Read the words of each session and sentence from lines of "session,sentence,words"; see `words_of`."""
    prompts: dict[tuple[int, int], tuple[str, ...]] = {}
    for first_line, block in _blocks(path, problems):
        for line, content in enumerate(block.decode().split("\n"), first_line):
            session, sentence, text = [*content.split(maxsplit=2), "", "", ""][:3]
            words = words_of(text)
            is_place = session.isdecimal() and sentence.isdecimal()
            if is_place and words and (int(session), int(sentence)) not in prompts:
                prompts[int(session), int(sentence)] = words
            elif session:
                expected = "'session,sentence,words' with digits or their names, each session and sentence once"
                message = f"expected {expected}, found {content.strip()!r:.100}"
                problems.add(message, file=path, line=line, remedy="correct the line")
    return prompts


def read_trials(
    path: Path,
    target: Sequence[str],
    nontarget: Sequence[str],
    problems: Problems,
    *,
    has_prompts: bool = False,
) -> TrialList:
    """Read the trials of the chosen types from lines of "model,segment,TC,TW,IC,IW", where the last four are Y or N.

    Parameters
    ----------
    path : path
        The list; several million lines are fine.
    target, nontarget : sequence of str
        Trial types to keep, out of `TRIAL_TYPES`. Lines of other types are checked and dropped.
    problems : Problems
        Collects malformed lines, lines with no or several types, and trials that occur twice.
    has_prompts : bool
        Whether the prompt comes first, as in part 3. If wrong texts are chosen, the models are "model:prompt".

    Returns
    -------
    key : Key
        Trials in the order of the file.
    lines : ndarray of int64 of shape (N,)
        Line of each trial, from 1.
    """
    import pandas as pd

    chosen = np.isin(TRIAL_TYPES, [*target, *nontarget])
    models: list[str] = []
    segments: list[str] = []
    parts = [np.empty((2, 0), np.int64)]  # rows: type, line
    model, segment = (1, 2) if has_prompts else (0, 1)  # numbers of the columns
    flags = range(segment + 1, segment + 1 + len(TRIAL_TYPES))
    dtypes: dict[int, Any] = dict.fromkeys([*flags, flags.stop], "category")
    dtypes |= dict.fromkeys(range(flags.start), str)  # ids may look like numbers
    options: dict[str, Any] = {
        "sep": r"\s+",
        "header": None,
        "names": range(flags.stop + 1),
        "dtype": dtypes,
        "quoting": csv.QUOTE_NONE,
        "skip_blank_lines": False,
        "keep_default_na": False,
        "na_values": [""],
    }
    for first_line, block in _blocks(path, problems):
        try:
            table = pd.read_csv(io.BytesIO(block), **options)
        except pd.errors.ParserError:  # a line has even more fields
            _note_bad_lines(path, block, first_line, problems, has_prompts=has_prompts)
            continue
        is_yes = np.stack([table[column] == "Y" for column in flags], axis=1)
        is_no = np.stack([table[column] == "N" for column in flags], axis=1)
        good = (is_yes.sum(axis=1) == 1) & (is_no.sum(axis=1) == len(flags) - 1)
        good &= table[flags.stop].isna().to_numpy()
        if not (good | table[0].isna().to_numpy()).all():
            _note_bad_lines(path, block, first_line, problems, has_prompts=has_prompts)
        kinds = is_yes.argmax(axis=1)
        rows = np.flatnonzero(good & chosen[kinds])
        named = table[model].to_numpy()[rows]
        if has_prompts and not {"TW", "IW"}.isdisjoint([*target, *nontarget]):
            named = named + ":" + table[0].to_numpy()[rows]
        models.extend(named.tolist())
        segments.extend(table[segment].to_numpy()[rows].tolist())
        parts.append(np.stack([kinds[rows], first_line + rows]))
    kinds, lines = np.concatenate(parts, axis=1)
    return _trial_list(path, models, segments, kinds, lines, target, nontarget, problems)


def scan_recordings(folder: Path, problems: Problems) -> dict[str, list[str]]:
    """Return the paths of each recording id; several if it exists in several containers."""
    paths: dict[str, list[str]] = {}
    try:
        speakers = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        for speaker in speakers:
            name = os.path.basename(speaker)  # noqa: PTH119  # 100,000 files: strings, not Path objects
            for entry in os.scandir(speaker):
                stem, dot, extension = entry.name.rpartition(".")
                if dot and f".{extension.lower()}" in _EXTENSIONS and not stem.startswith("."):
                    paths.setdefault(f"{name}/{stem}", []).append(entry.path)
    except OSError as error:
        problems.add(
            f"cannot be read: {error.strerror or error}",
            file=folder,
            remedy="check the corpus folder",
        )
        return {}
    if not paths:
        problems.add(
            "no recordings (.sph, .wav or .flac)", file=folder, remedy="check the corpus folder"
        )
    return paths


def speaker_number(segment: str) -> int:
    """Return the number of the speaker of a recording, or -1 if its id has none."""
    recording = _RECORDING.match(segment)
    return int(recording.group(2)) if recording else -1


def ubm_list(segments: Iterable[str], background: range, sentences: tuple[int, int]) -> list[str]:
    """Return the recordings of the background speakers with these sentences, sorted."""
    first, last = sentences
    chosen = []
    for segment in sorted(segments):
        if speaker_number(segment) in background and first <= int(segment[-3:]) <= last:
            chosen.append(segment)
    return chosen


def used_recordings(
    enrolment_file: Path, enrolled: list[Enrolment], trials_file: Path, trials: TrialList | None
) -> Mentions:
    """Return the recordings that the key files name, with the file and line of the first mention."""
    used: Mentions = {}
    for row in enrolled:
        for segment in row.segments:
            used.setdefault(segment, (enrolment_file, row.line or None))
    if trials is not None:
        key, lines = trials
        codes, first = np.unique(key.segments, return_index=True)
        for code, line in zip(codes.tolist(), lines[first].tolist(), strict=True):
            used.setdefault(key.segment_ids[code], (trials_file, line or None))
    return used


def find_recordings(
    scanned: dict[str, list[str]], ubm: list[str], used: Mentions, problems: Problems
) -> dict[str, Path]:
    """Return the file of each recording that is needed."""
    recordings: dict[str, Path] = {}
    for segment in sorted({*ubm, *used}):
        paths = scanned.get(segment, [])
        if len(paths) > 1:
            names = " and ".join(sorted(paths))
            problems.add(f"recording {segment!r} exists twice: {names}", remedy="keep one of them")
        elif paths:
            recordings[segment] = Path(paths[0])
        elif scanned:  # if there are no recordings at all, that was already reported
            file, line = used[segment]
            remedy = "copy its .sph, .wav or .flac into the corpus"
            problems.add(f"no recording {segment!r}", file=file, line=line, remedy=remedy)
    return recordings


@dataclass(frozen=True)
class ListFiles:
    """The lists of a folder; None for a list without a file.

    Attributes
    ----------
    enrolment : (path, list of Enrolment), optional
    trials : (path, (Key, lines)), optional
    background, nap : IdMap, optional
        (speaker, recording).
    ubm : tuple of str, optional
    mentions : dict of str to (path, line)
        First mention of each recording of the background, the NAP and the UBM list.
    names : tuple of str
        Names of the files.
    """

    enrolment: tuple[Path, list[Enrolment]] | None = None
    trials: tuple[Path, TrialList] | None = None
    background: IdMap | None = None
    nap: IdMap | None = None
    ubm: tuple[str, ...] | None = None
    mentions: Mentions = field(default_factory=dict)
    names: tuple[str, ...] = ()


def list_stems(partition: str, gender: str) -> dict[str, str]:
    """Return the name of the file of each list, without its extension.

    Examples
    --------
    >>> list_stems("eval", "m")["enrolment"], list_stems("dev", "f")["key"]
    ('3sesspwd_eval_m_trn', '3sess-pwd_dev_f_key')
    """
    name = f"{partition}_{gender}"
    return {
        "enrolment": f"3sesspwd_{name}_trn",
        "test": f"3sess-pwd_{name}_test",
        "background": f"3sess-pwd_{name}_back",
        "nap": f"3sess-pwd_{name}_nap",
        "key": f"3sess-pwd_{name}_key",
        "trials": f"3sess-pwd_{name}_ndx",
    }


def read_list_files(
    folder: str | Path,
    partition: str,
    gender: str,
    types: tuple[Sequence[str], Sequence[str]],
    problems: Problems,
) -> ListFiles:
    """Read the lists of a folder; the test list follows from the key.

    Parameters
    ----------
    folder : path
    partition : {"eval", "dev"}
    gender : {"m", "f"}
    types : (sequence of str, sequence of str)
        Types of the trials that count as target and as nontarget.
    problems : Problems
        Collects broken files, ids of the other sex, models of several speakers, labels that contradict the types of the
        trials, and a folder without lists.

    Returns
    -------
    ListFiles
    """
    folder = Path(folder)
    stems = list_stems(partition, gender)
    paths = _list_paths(folder, stems)
    if not paths:
        expected = ", ".join([*(f"{stems[kind]}.h5" for kind in _LISTS_READ), UBM_LIST])
        state = "holds none of the lists" if folder.is_dir() else "no such folder"
        remedy = "check lists.folder, partition and gender"
        problems.add(f"{state}: expected {expected}", file=folder, remedy=remedy)
    read: dict[str, Any] = {}
    mentions: Mentions = {}
    for kind, path in paths.items():
        try:
            if kind == "key":
                trials = _typed_trials(path, read_key(path), types, problems)
                if trials is not None:
                    read["trials"] = (path, trials)
            elif kind == "enrolment":
                read[kind] = (path, _enrolled(path, _read_map(path), problems))
            elif kind == "ubm":
                read[kind] = tuple(map(segment_id, read_id_list(path, "recording", n_columns=1)))
                mentions |= dict.fromkeys(read[kind], (path, None))
            else:
                read[kind] = _read_map(path)
                mentions |= dict.fromkeys(read[kind].segments, (path, None))
        except DataError as error:
            if error.file is None:
                problems.note(DataError(error.text, file=path, remedy=error.remedy))
            else:
                problems.note(error)
    names = tuple(path.name for path in paths.values())
    lists = ListFiles(**read, mentions=mentions, names=names)
    _check_sex(lists, gender, problems)
    return lists


def trial_types(
    model_ids: NDArray[Any], segment_ids: NDArray[Any], models: NDArray[Any], segments: NDArray[Any]
) -> NDArray[np.int8]:
    """Return the type of each trial by its ids, as an index into `TRIAL_TYPES`; -1 for ids of another form.

    Examples
    --------
    >>> models, segments = np.array(["m101_001"], object), np.array(["m101/m101_02_003", "m102/m102_02_001"], object)
    >>> [TRIAL_TYPES[kind] for kind in trial_types(models, segments, np.array([0, 0]), np.array([0, 1]))]
    ['TW', 'IC']
    """
    target_speakers, target_sentences = _speakers_and_sentences(model_ids)
    test_speakers, test_sentences = _speakers_and_sentences(segment_ids)
    is_impostor = target_speakers[models] != test_speakers[segments]
    is_wrong = target_sentences[models] != test_sentences[segments]
    unknown = (target_speakers[models] == "") | (test_speakers[segments] == "")
    return np.where(unknown, -1, 2 * is_impostor + is_wrong).astype(np.int8)


@one_line
@dataclass(frozen=True)
class SpeakerRanges:
    """First and last number of the speakers of each part, for either sex (m and f)."""

    background_m: tuple[int, int] = (1, 50)
    background_f: tuple[int, int] = (1, 47)
    dev_m: tuple[int, int] = (51, 100)
    dev_f: tuple[int, int] = (48, 94)
    eval_m: tuple[int, int] = (101, 157)
    eval_f: tuple[int, int] = (95, 143)

    def of(self, part: str, gender: str) -> range:
        """Return the numbers of the speakers of "background", "dev" or "eval"."""
        first, last = getattr(self, f"{part}_{gender}")
        return range(first, last + 1)


@one_line
@dataclass(frozen=True, eq=False)
class Rsr2015:
    """The lists of one experiment.

    Attributes
    ----------
    gender, partition : str
        Sex and partition of the experiment.
    recordings : dict of str -> path
        All recordings of the lists.
    ubm : tuple of str
        All recordings of the background speakers with the part's sentences, sorted.
    background : IdMap
        (speaker, recording) drawn from `ubm`, in its order: the negative examples of the SVMs.
    nap : IdMap
        (speaker, recording): every `nap_step`-th recording of `ubm`.
    enrolment : IdMap
        (model, recording), in the order of the enrolment list.
    test : IdMap
        (recording, recording): the tested recordings, sorted.
    key : Key
        The trials, in the order of the trial list, with their types.
    texts : dict of str to tuple of str
        In part 3, the words of each recording, if its prompts are known, and of each "model:prompt" of the key.
    """

    gender: str
    partition: str
    recordings: dict[str, Path] = field(repr=False)
    ubm: tuple[str, ...] = field(repr=False)
    background: IdMap = field(repr=False)
    nap: IdMap = field(repr=False)
    enrolment: IdMap = field(repr=False)
    test: IdMap = field(repr=False)
    key: Key
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def speakers(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the speaker of each model, by its first enrolment recording, and of each recording, by its folder."""
        of_recording = {segment: segment.split("/")[0] for segment in self.recordings}
        first = dict(zip(self.enrolment.models[::-1], self.enrolment.segments[::-1], strict=True))
        of_model = {model: of_recording[first[model]] for model in self.enrolment.unique_models()}
        for name in self.key.model_ids:
            of_model[name] = of_model[name.partition(":")[0]]
        return of_model, of_recording

    def _maps(self) -> dict[str, IdMap]:
        return {
            "enrolment": self.enrolment,
            "test": self.test,
            "background": self.background,
            "nap": self.nap,
        }


@one_line
@dataclass(frozen=True)
class ListOptions:
    """Options of RSR2015's lists and of the draws from them.

    Attributes
    ----------
    gender : {"m", "f"}
        The sexes have separate protocols.
    partition : {"eval", "dev"}
        Partition of the enrolled and tested speakers.
    part : {1, 2, 3}
        Part of the corpus: sentences, commands or digits.
    target, nontarget : sequence of {"TC", "TW", "IC", "IW"}
        Trial types that count as target and as nontarget; trials of other types are left out.
    speakers : SpeakerRanges
        Division of speakers into background, dev and eval; by default that of the corpus.
    background_size : int
        Number of background recordings to draw, without replacement.
    nap_step : int
        NAP takes every `nap_step`-th recording of the UBM list, from the first.
    nap_size : int or None
        Number of these recordings to use, evenly spread; all by default.
    sentences : (int, int), optional
        First and last sentence of the background recordings; those of the part by default.
    seed : int
        Seed of the draw; nothing else is random.
    folder : path, optional
        Lists as files, see `spkver.corpora.rsr2015`; lists without a file are made from the corpus.
    enrolment, trials, prompts : path, optional
        Key files to use instead of those found in the corpus.
    """

    gender: str = "m"
    partition: str = "eval"
    part: int = 1
    target: Sequence[str] = ("TC",)
    nontarget: Sequence[str] = ("IC",)
    speakers: SpeakerRanges = field(default_factory=SpeakerRanges)
    background_size: int = 200
    nap_step: int = 7
    nap_size: int | None = None
    sentences: tuple[int, int] | None = None
    seed: int = 0
    folder: str | Path | None = None
    enrolment: str | Path | None = None
    trials: str | Path | None = None
    prompts: str | Path | None = None


def read_rsr2015(root: str | Path, options: ListOptions | None = None) -> Rsr2015:
    """Read and check the lists of a part of RSR2015.

    Parameters
    ----------
    root : path
        Folder that holds ``sph`` and ``key``.
    options : ListOptions, optional

    Returns
    -------
    Rsr2015

    Raises
    ------
    ConfigError
        If an option is out of its range.
    DataError
        With all problems of the folder and its lists: missing files, malformed lines, duplicates, models without
        enrolment, ids without a recording, too few background recordings, no trials of a kind.
    """
    root = Path(root)
    options = options or ListOptions()
    _check_options(options)
    problems = Problems(root)
    if not root.is_dir():
        raise DataError(
            "no such folder", file=root, remedy="name the folder that holds sph and key"
        )
    files = ListFiles()
    if options.folder is not None:
        types = (options.target, options.nontarget)
        files = read_list_files(options.folder, options.partition, options.gender, types, problems)
        rest = "" if len(files.names) > len(_LISTS_READ) else "; the others from the corpus"
        logger.info("lists of %s: %s%s", options.folder, ", ".join(files.names) or "none", rest)
    enrolment_file, enrolled, trials_file, trials = _enrolment_and_trials(
        root, files, options, problems
    )
    folder = root / "sph" / _FOLDERS[options.gender]
    scanned = scan_recordings(folder, problems)
    ubm = _ubm_recordings(files, folder, scanned, options, problems)
    if trials is not None:
        _check_trials(trials_file, trials, enrolled, options, problems)
    used = used_recordings(enrolment_file, enrolled, trials_file, trials)
    _check_background(used, files, options, problems)
    mentions = {**files.mentions, **used}
    recordings = find_recordings(scanned, [*ubm, *files.mentions], mentions, problems)
    texts = {}
    if options.part == 3:
        texts = _texts(root, recordings, options, problems)
        if trials is not None:
            for name in trials[0].model_ids:
                if ":" in name:
                    texts[name] = words_of(name.partition(":")[2])
            _check_prompts(trials_file, trials, texts, problems)
    problems.raise_if_any()
    assert trials is not None  # a missing list was reported earlier
    enrolment: list[tuple[str, str]] = []
    for row in enrolled:
        enrolment += product([row.model], row.segments)
    key = trials[0]
    return Rsr2015(
        gender=options.gender,
        partition=options.partition,
        recordings=recordings,
        ubm=tuple(ubm),
        background=files.background or _drawn_background(ubm, options),
        nap=files.nap or _spread_nap(ubm, options),
        enrolment=IdMap.from_pairs(enrolment),
        test=IdMap.from_pairs(zip(key.segment_ids, key.segment_ids, strict=True)),
        key=key,
        texts=texts,
    )


def key_files(root: str | Path, gender: str, partition: str, part: int = 1) -> tuple[Path, Path]:
    """Return the paths of the enrolment list and of the trial list of a part.

    A list with another name is used if it is the only one that ends in the partition and the sex.
    """
    name = f"{partition}_{gender}"
    paths = []
    for form in _KEY_NAMES[part]:
        kind = form[-3:]
        folder = Path(root) / "key" / f"part{part}" / kind
        alike = sorted(folder.glob(f"*{name}.{kind}"))
        if len(alike) != 1:
            alike = [folder / form.format(name)]
        paths += alike
    return paths[0], paths[1]


def prompts_file(root: str | Path) -> Path:
    """Return the path of the list of prompts of part 3."""
    return Path(root) / "key" / "part3" / "prompts.txt"


def write_lists(lists: Rsr2015, folder: str | Path) -> list[Path]:
    """Write the lists as SIDEKIT's tutorial names them, in its HDF5 layouts (``.h5``) and as text (``.txt``).

    The speakers of recordings and of models are written too, ``utt2spk`` and ``model2spk``, for `spkver-eval`, and
    ``data``, a Kaldi directory of all recordings under the last part of their ids, for `spkver embed`.

    Returns
    -------
    list of path
        The files, ``3sesspwd_eval_m_trn.h5`` first.
    """
    folder = Path(folder)
    stems = list_stems(lists.partition, lists.gender)
    written = []
    for extension in (".h5", ".txt"):
        for kind, idmap in lists._maps().items():
            written.append(folder / f"{stems[kind]}{extension}")
            write_idmap(written[-1], idmap)
        written.append(folder / f"{stems['key']}{extension}")
        write_key(written[-1], lists.key)
        written.append(folder / f"{stems['trials']}{extension}")
        write_trials(written[-1], lists.key.trials())
    written.append(folder / UBM_LIST)
    # no final line break: SIDEKIT's tutorial splits at line breaks and would read an empty id as a recording
    write_text(written[-1], "\n".join(lists.ubm))
    of_model, of_recording = lists.speakers()
    for file, speakers in (("utt2spk", of_recording), ("model2spk", of_model)):
        written.append(folder / file)
        rows = [f"{identifier} {speaker}" for identifier, speaker in sorted(speakers.items())]
        write_text(written[-1], _lines(rows))
    recordings = {}
    speakers = {}
    for segment, path in lists.recordings.items():
        name = segment.rpartition("/")[2]
        recordings[name] = path
        speakers[name] = of_recording[segment]
    if len(recordings) == len(lists.recordings):  # ids of data directories hold no slash
        write_datadir(DataDir(folder / "data", recordings, speakers))
        written += [folder / "data" / name for name in ("wav.scp", "utt2spk", "spk2utt")]
    return written


def list_hashes(lists: Rsr2015) -> dict[str, str]:
    """Return the SHA-256 of the text of each list, which identifies the lists of an experiment.

    The text is one line for each row, "model recording" (UBM: "recording"), in order; the key's lines are
    "model segment target|nontarget type", sorted.
    """
    texts = {"ubm": _lines(lists.ubm)}
    for name, idmap in lists._maps().items():
        texts[name] = _lines(map(" ".join, zip(idmap.models, idmap.segments, strict=True)))
    key = lists.key
    labels = np.array(["nontarget", "target"], dtype=object)[key.is_target.astype(np.int64)]
    type_codes = -1 if key.types is None else key.types
    types = np.array([*key.type_names, ""], dtype=object)[type_codes]
    models = key.model_ids[key.models]
    segments = key.segment_ids[key.segments]
    texts["key"] = _lines(sorted((models + " " + segments + " " + labels + " " + types).tolist()))
    hashes = {}
    for name, text in sorted(texts.items()):
        hashes[name] = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return hashes


def _list_paths(folder: Path, stems: dict[str, str]) -> dict[str, Path]:
    """Return the file of each list that a folder has."""
    paths = {}
    for kind, extension in product(_LISTS_READ, (".txt", ".h5")):
        path = folder / f"{stems[kind]}{extension}"
        if path.is_file():
            paths[kind] = path
    if (folder / UBM_LIST).is_file():
        paths["ubm"] = folder / UBM_LIST
    return paths


def _enrolment_and_trials(
    root: Path, files: ListFiles, options: ListOptions, problems: Problems
) -> tuple[Path, list[Enrolment], Path, TrialList | None]:
    """Return the enrolment with its file, and the trials with theirs.

    Given lists take precedence over the corpus's own.
    """
    of_corpus = key_files(root, options.gender, options.partition, options.part)
    enrolment_file = Path(options.enrolment or of_corpus[0])
    trials_file = Path(options.trials or of_corpus[1])
    enrolled: list[Enrolment] = []
    if files.enrolment is not None and options.enrolment is None:
        enrolment_file, enrolled = files.enrolment
    elif _is_there(enrolment_file, "lists.enrolment", problems):
        enrolled = read_enrolment(enrolment_file, problems)
    trials = None
    if files.trials is not None and options.trials is None:
        trials_file, trials = files.trials
    elif _is_there(trials_file, "lists.trials", problems):
        has_prompts = options.part == 3
        trials = read_trials(
            trials_file, options.target, options.nontarget, problems, has_prompts=has_prompts
        )
    logger.info("enrolment by %s, trials of %s", enrolment_file, trials_file)
    return enrolment_file, enrolled, trials_file, trials


def _ubm_recordings(
    files: ListFiles,
    folder: Path,
    scanned: dict[str, list[str]],
    options: ListOptions,
    problems: Problems,
) -> list[str]:
    background = options.speakers.of("background", options.gender)
    sentences = options.sentences or PART_SENTENCES[options.part]
    if files.ubm is None:
        ubm = ubm_list(scanned, background, sentences)
    else:
        ubm = list(files.ubm)
    if scanned and not ubm:
        first = f"{options.gender}{background[0]:03d}"
        last = f"{options.gender}{background[-1]:03d}"
        text = f"no recordings of background speakers {first} to {last}, "
        text += "sentences {:03d} to {:03d}".format(*sentences)
        problems.add(text, file=folder, remedy="check the folder, or the ranges of speakers")
    if ubm and files.background is None:
        _check_size("background", options.background_size, len(ubm), problems)
    if ubm and files.nap is None:
        _check_size("nap", options.nap_size, len(ubm[:: options.nap_step]), problems)
    return ubm


def _drawn_background(ubm: Sequence[str], options: ListOptions) -> IdMap:
    random = np.random.default_rng(options.seed)
    rows = random.choice(len(ubm), size=options.background_size, replace=False)
    return _by_speaker(ubm[row] for row in np.sort(rows))


def _spread_nap(ubm: Sequence[str], options: ListOptions) -> IdMap:
    candidates = ubm[:: options.nap_step]
    n_nap = options.nap_size or len(candidates)
    return _by_speaker(candidates[i * len(candidates) // n_nap] for i in range(n_nap))


def _check_background(
    used: Mentions, files: ListFiles, options: ListOptions, problems: Problems
) -> None:
    """Report background speakers who are enrolled or tested: error rates would be too low."""
    background = options.speakers.of("background", options.gender)
    listed = {segment.split("/")[0] for segment in files.mentions}
    for segment, (file, line) in used.items():
        if files.ubm is None and speaker_number(segment) in background:
            remedy = "check the ranges of speakers"
        elif segment.split("/")[0] in listed:
            remedy = "check the lists of background recordings"
        else:
            continue
        text = f"recording {segment!r} is of a background speaker"
        problems.add(text, file=file, line=line, remedy=remedy)


def _speakers_and_sentences(ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the speaker and the sentence of each id; empty for ids of another form."""
    rows = []
    for match in map(_SPOKEN.match, ids):
        speaker_and_sentence = match.groups() if match else ("", "")
        rows.append(speaker_and_sentence)
    speakers, sentences = np.array(rows, object).reshape(-1, 2).T
    return speakers, sentences


def _blocks(path: Path, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, whole lines of UTF-8 with blanks between fields) up to the first error."""
    line = 1
    try:
        with path.open("rb") as handle:
            for lines in iter(partial(handle.readlines, _BLOCK_BYTES), []):
                block = b"".join(lines)
                if line == 1:
                    block = block.removeprefix(_BOM)
                block.decode("utf-8")
                yield line, block.translate(_TO_BLANK)
                line += len(lines)
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, error.start)
        problems.add("is not UTF-8 text", file=path, line=line, remedy="save it as UTF-8")
    except OSError as error:
        problems.add(
            f"cannot be read: {error.strerror or error}",
            file=path,
            remedy="check the corpus folder",
        )


def _note_bad_lines(
    path: Path, block: bytes, first_line: int, problems: Problems, *, has_prompts: bool = False
) -> None:
    n_bad = 0
    columns = ["prompt"] * has_prompts + ["model", "segment"]
    for line, content in enumerate(block.decode().split("\n"), first_line):
        fields = content.split()
        flags = fields[len(columns) :]
        kinds = []
        if len(flags) == len(TRIAL_TYPES) and set(flags) <= {"Y", "N"}:
            kinds = [kind for kind, flag in zip(TRIAL_TYPES, flags, strict=True) if flag == "Y"]
            if kinds:
                message = f"a trial of types {' and '.join(kinds)}, expected exactly one Y"
            else:
                message = "a trial of no type, expected exactly one Y"
        else:
            form = ",".join([*columns, *TRIAL_TYPES])
            message = f"expected '{form}' with Y or N for each of the four types"
        if fields and len(kinds) != 1 and n_bad < _MAX_BAD_LINES:
            n_bad += 1
            text = f"{message}, found {' '.join(fields)[:100]!r}"
            problems.add(text, file=path, line=line, remedy="copy the key files again")


def _trial_list(
    path: Path,
    models: Sequence[str],
    segments: Sequence[str],
    kinds: NDArray[Any],
    lines: NDArray[np.int64],
    target: Sequence[str],
    nontarget: Sequence[str],
    problems: Problems,
) -> TrialList:
    """Return trials by names of model and segment and indices into `TRIAL_TYPES`; a repeated trial is a problem."""
    model_ids, model_codes = _coded(models, model_id)
    segment_ids, segment_codes = _coded(segments, segment_id)
    pairs = model_codes.astype(np.int64) * max(len(segment_ids), 1) + segment_codes
    order = np.argsort(pairs, kind="stable")
    repeats = np.flatnonzero(np.diff(pairs[order]) == 0)
    for first, second in zip(order[repeats][:_MAX_BAD_LINES], order[repeats + 1], strict=False):
        trial = f"{model_ids[model_codes[second]]} {segment_ids[segment_codes[second]]}"
        text = f"trial {trial} for the second time, first in line {lines[first]}"
        problems.add(text, file=path, line=int(lines[second]), remedy="remove one of the two lines")
    kept = np.delete(np.arange(len(pairs)), order[repeats + 1])
    types = (*target, *nontarget)
    codes = [types.index(kind) if kind in types else -1 for kind in TRIAL_TYPES]
    of_kind = np.array(codes)[kinds[kept]]
    key = Key(
        model_ids,
        segment_ids,
        model_codes[kept],
        segment_codes[kept],
        of_kind < len(target),
        types=of_kind,
        type_names=types,
    )
    return key, lines[kept]


def _coded(
    names: Sequence[str], identify: Callable[[str], str]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the distinct ids, sorted, and the index of the id of each name; several names may have the same id."""
    import pandas as pd

    numbers, distinct = pd.factorize(np.array(names, object))
    ids, codes = np.unique(list(map(identify, distinct)), return_inverse=True)
    return np.array(ids.tolist(), object), codes.astype(np.int32)[numbers]


def _read_map(path: Path) -> IdMap:
    """Read a map with the plain ids of recordings."""
    idmap = read_idmap(path)
    if not len(idmap):
        raise DataError("holds no rows", file=path, remedy="write the list again")
    parts = np.flatnonzero((idmap.start != -1) | (idmap.stop != -1))
    if len(parts):
        row = int(parts[0])
        text = f"row {row} is a part of recording {idmap.segments[row]!r}, frames {idmap.start[row]} to"
        text += f" {idmap.stop[row]}: expected whole recordings"
        raise DataError(text, file=path, remedy="leave start and stop out, or cut the recordings")
    return replace(idmap, segments=np.array([segment_id(name) for name in idmap.segments], object))


def _enrolled(path: Path, idmap: IdMap, problems: Problems) -> list[Enrolment]:
    """Return the models of an enrolment list in the order of their first rows; each must belong to one speaker."""
    rows = []
    for model, of_model in idmap.rows_of_models().items():
        segments = tuple(idmap.segments[of_model])
        speakers = sorted({segment.split("/")[0] for segment in segments})
        if len(speakers) > 1:
            text = f"model {model!r} is enrolled by recordings of several speakers: {few(speakers)}"
            problems.add(text, file=path, remedy="enrol each model by one speaker")
        rows.append(Enrolment(model, segments, 0))
    return rows


def _typed_trials(
    path: Path, key: Key, types: tuple[Sequence[str], Sequence[str]], problems: Problems
) -> TrialList | None:
    """Return the trials of the chosen types, derived from the ids; labels that contradict them are problems."""
    target, nontarget = types
    segment_ids = np.array([segment_id(name) for name in key.segment_ids], object)
    kinds = trial_types(key.model_ids, segment_ids, key.models, key.segments)
    if (kinds < 0).any():
        if len(target) > 1 or len(nontarget) > 1:
            row = int(np.argmax(kinds < 0))
            trial = f"{key.model_ids[key.models[row]]} {segment_ids[key.segments[row]]}"
            text = f"the type of trial {trial} does not follow"
            text += " from its ids, and a key has only target and nontarget trials"
            remedy = "name one type each in trials.target and trials.nontarget"
            problems.add(text, file=path, remedy=remedy)
            return None
        codes = [TRIAL_TYPES.index(nontarget[0]), TRIAL_TYPES.index(target[0])]
        kinds = np.array(codes, np.int8)[key.is_target.astype(np.int64)]
    for label, others in (("target", nontarget), ("nontarget", target)):
        of_others = np.isin(kinds, list(map(TRIAL_TYPES.index, others)))
        wrong = np.flatnonzero((key.is_target == (label == "target")) & of_others)
        if len(wrong):
            row = int(wrong[0])
            text = f"{counted(len(wrong), f'{label} trial')} of the key of type"
            text += f" {TRIAL_TYPES[kinds[row]]} by their ids: {key.model_ids[key.models[row]]}"
            text += f" {segment_ids[key.segments[row]]} first"
            remedy = "check the key, or trials.target and trials.nontarget"
            problems.add(text, file=path, remedy=remedy)
    chosen = np.isin(kinds, list(map(TRIAL_TYPES.index, (*target, *nontarget))))
    models = key.model_ids[key.models[chosen]]
    segments = segment_ids[key.segments[chosen]]
    lines = np.zeros(np.count_nonzero(chosen), np.int64)
    return _trial_list(path, models, segments, kinds[chosen], lines, target, nontarget, problems)


def _check_sex(files: ListFiles, gender: str, problems: Problems) -> None:
    """Report recordings of the other sex, only the first of each file."""
    mentions = dict(files.mentions)
    if files.enrolment is not None:
        path, rows = files.enrolment
        for row in rows:
            mentions.update(dict.fromkeys(row.segments, (path, row.line or None)))
    if files.trials is not None:
        path, (key, _) = files.trials
        mentions.update(dict.fromkeys(key.segment_ids, (path, None)))
    others: dict[Path, list[str]] = {}
    for segment, (path, _) in mentions.items():
        match = re.match(r"([mf])\d{3}/", segment)
        if match and match.group(1) != gender:
            others.setdefault(path, []).append(segment)
    for path, segments in others.items():
        text = f"{counted(len(segments), 'recording')} of the other sex than gender {gender!r}: {few(segments)}"
        line = mentions[segments[0]][1]
        problems.add(text, file=path, line=line, remedy="check the setting gender, or the list")


def _check_options(options: ListOptions) -> None:
    problems = Problems()

    def expect(good: bool, name: str, expected: str, value: object) -> None:
        if not good:
            problems.note(ConfigError(f"{name} should be {expected}, not {value!r}"))

    expect(options.gender in _FOLDERS, "gender", "'m' or 'f'", options.gender)
    expect(options.partition in ("eval", "dev"), "partition", "'eval' or 'dev'", options.partition)
    expect(options.part in PART_SENTENCES, "part", "1, 2 or 3", options.part)
    for name, types in (("trials.target", options.target), ("trials.nontarget", options.nontarget)):
        good = not isinstance(types, str) and len(types) > 0 and set(types) <= set(TRIAL_TYPES)
        expect(good, name, f"a list of types out of {', '.join(TRIAL_TYPES)}", types)
    both = sorted(set(options.target) & set(options.nontarget))
    expect(not both, "trials.nontarget", "types that are not among trials.target", both)
    expect(options.background_size >= 1, "background.size", "1 or more", options.background_size)
    expect(options.nap_step >= 1, "nap.step", "1 or more", options.nap_step)
    expect(
        options.nap_size is None or options.nap_size >= 1, "nap.size", "1 or more", options.nap_size
    )
    expect(options.seed >= 0, "seed", "0 or more", options.seed)
    for name, (first, last) in vars(options.speakers).items():
        expect(0 < first <= last, f"speakers.{name}", "first and last number", (first, last))
    problems.raise_if_any()


def _is_there(path: Path, key: str, problems: Problems) -> bool:
    if path.is_file():
        return True
    remedy = "check the corpus folder, the part, the partition and the gender"
    others = [other.name for other in sorted(path.parent.glob("*.*"))]
    if others:
        remedy += f", or set {key} to one of the lists that are there: {few(others, most=12)}"
    problems.add("no such file", file=path, remedy=remedy)
    return False


def _texts(
    root: Path, recordings: Iterable[str], options: ListOptions, problems: Problems
) -> dict[str, tuple[str, ...]]:
    """Return the words of each recording of part 3; empty if its prompts are unknown."""
    path = Path(options.prompts or prompts_file(root))
    if options.prompts is None and not path.is_file():
        return {}
    prompts = read_prompts(path, problems)
    texts: dict[str, tuple[str, ...]] = {}
    absent = set()
    for segment in recordings:
        match = _RECORDING.match(segment)
        if match:
            texts[segment] = prompts.get((int(match[3]), int(match[4])), ())
        if not texts.get(segment):
            absent.add(segment[-6:])
    if absent:
        text = f"no words of session and sentence {few(absent)}"
        problems.add(text, file=path, remedy="add their lines")
    return texts


def _check_size(name: str, size: int | None, available: int, problems: Problems) -> None:
    if size is not None and size > available:
        text = f"{name}.size is {size}, but there are only {available} recordings to take from"
        problems.note(ConfigError(text, remedy=f"set {name}.size to {available} or less"))


def _check_trials(
    path: Path,
    trials: TrialList,
    enrolled: list[Enrolment],
    options: ListOptions,
    problems: Problems,
) -> None:
    key, lines = trials
    present = set()
    if key.types is not None:
        present = {key.type_names[code] for code in np.unique(key.types)}
    for name, types in (("target", options.target), ("nontarget", options.nontarget)):
        absent = [kind for kind in types if kind not in present]
        if absent:
            text = f"no {name} trials of type {', '.join(absent)}"
            problems.add(text, file=path, remedy=f"choose other types in trials.{name}")
    models = {row.model for row in enrolled}
    codes, first = np.unique(key.models, return_index=True)
    for code, row in zip(codes.tolist(), first.tolist(), strict=True):
        if enrolled and key.model_ids[code].partition(":")[0] not in models:
            text = f"model {key.model_ids[code]!r} has trials but no enrolment"
            line = int(lines[row]) or None
            problems.add(text, file=path, line=line, remedy="add it to the enrolment list")


def _check_prompts(
    path: Path, trials: TrialList, texts: dict[str, tuple[str, ...]], problems: Problems
) -> None:
    """Report prompts that are not digits, and types that contradict the words of the recordings."""
    key, lines = trials
    strange = [name for name in key.model_ids if not texts.get(name, name)]
    if strange:
        text = f"{counted(len(strange), 'prompt')} not made of digits: {few(strange)}"
        problems.add(text, file=path, remedy="write them as 4-8-0-7-3")
    code_of_words = {words: code for code, words in enumerate(sorted({*texts.values()}))}

    def codes(ids: Iterable[str]) -> NDArray[np.int64]:
        """Return a number for the words of each id; -1 if they are unknown."""
        return np.array([code_of_words.get(texts.get(name, ()), -1) for name in ids], np.int64)

    prompted = codes(key.model_ids)[key.models]
    spoken = codes(key.segment_ids)[key.segments]
    assert key.types is not None  # all trials of key files have a type
    are_known = (prompted >= 0) & (spoken >= 0)
    words_differ = prompted != spoken
    type_says_differ = np.char.endswith(key.type_names, "W")[key.types]
    contradicts = are_known & (words_differ != type_says_differ)
    for row in np.flatnonzero(contradicts)[:_MAX_BAD_LINES].tolist():
        segment = key.segment_ids[key.segments[row]]
        kind = key.type_names[key.types[row]]
        words = " ".join(texts[segment])
        trial = key.named([row])
        problems.add(
            f"trial {trial} is of type {kind}, but the words of {segment!r} are {words}",
            file=path,
            line=int(lines[row]) or None,
            remedy="copy the key files again, or check the list of prompts",
        )


def _by_speaker(segments: Iterable[str]) -> IdMap:
    return IdMap.from_pairs((segment.split("/")[0], segment) for segment in segments)


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
