"""An unpacked LibriSpeech: recordings, transcripts and sexes, with everything that is wrong told at once.

LIBRISPEECH/SPEAKERS.TXT                                  ``id | F or M | subset | minutes | name``
LIBRISPEECH/<subset>/<speaker>/<chapter>/<id>.flac        id: ``<speaker>-<chapter>-<number>``
LIBRISPEECH/<subset>/<speaker>/<chapter>/<speaker>-<chapter>.trans.txt      lines ``id WORDS``

**The VoicePrivacy sets of LibriSpeech, from the challenge's own lists or by stated rules and a seed.**

    libri_dev_enrolls, libri_dev_trials_f, libri_dev_trials_m       of dev-clean; since 2026 libri_dev_trials_mixed
    libri_test_enrolls, libri_test_trials_f, ...                    of test-clean
    train-clean-360                                                 and any other subset, whole

Rules without lists
-------------------
1. Of the speakers of each sex of a subset three of four, drawn, are enrolled (the challenge has 13 to 16 of 20). The
   others are strangers, who are only tried.
2. Of an enrolled speaker's utterances a third, drawn, enrols, at least one; all others, and strangers', are tried.
3. Every enrolled speaker is tried against every trial utterance of the same sex, in 2026 of both.

Draws hang on the seed and the id of a speaker or utterance alone, as those of `spkver split`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.formats import Choice, read_text_key
from evaluation.trials import Key
from spkbase.errors import DataError, Problems
from spkbase.files import read_id_list, read_text_bytes
from spkbase.showing import one_line
from spkver.audio import audio_header
from spkver.datadir import DataDir, draw_order, full_cross, unfit_id

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


TESTED = {"dev-clean": "libri_dev", "test-clean": "libri_test"}
LISTS = {"2022": ("f", "m"), "2024": ("f", "m"), "2026": ("mixed",)}
_SEXES_OF_LIBRISPEECH_SETS = ("f", "m")


@dataclass(frozen=True)
class Tested:
    """Who is enrolled with what, and what is tried against whom.

    Attributes
    ----------
    enrolls : tuple of str
        Utterances.
    trials : dict of str to Key
        By list: f, m or mixed.
    """

    enrolls: tuple[str, ...]
    trials: dict[str, Key]


def make_librispeech_sets(
    corpus: LibriSpeech, output: str | Path, *, year: str = "2024", lists: str | Path | None = None, seed: int = 0
) -> list[DataDir]:
    """Return the data directories of a challenge; nothing is written.

    Parameters
    ----------
    corpus : LibriSpeech
    output : path
        Folder of the data directories.
    year : {"2022", "2024", "2026"}
        Of the challenge, which has lists by sex or across the sexes.
    lists : path, optional
        Folder with the challenge's own ``libri_*_enrolls/enrolls`` and ``libri_*_trials_*/trials``. Lists across the
        sexes that are not there are made of those by sex: every enrolled speaker against every trial utterance.
    seed : int
        Of the draws without lists.

    Raises
    ------
    DataError
        With all problems: lists that are missing or malformed, name utterances or speakers that are not there, or
        contradict the names; too few speakers or utterances to draw from.
    """
    output, problems = Path(output), Problems(lists)
    made = []
    for subset, recordings in corpus.recordings.items():
        everything = _directory(corpus, subset, output / subset, recordings)
        stem = TESTED.get(subset)
        if stem is None:
            made.append(everything)
            continue
        try:
            if lists is None:
                tested = draw_tested(everything, LISTS[year], seed)
            else:
                tested = read_tested(Path(lists), stem, LISTS[year])
                _check_tested(tested, everything, Path(lists) / f"{stem}_enrolls")
        except DataError as error:
            problems.note(error)
            continue
        enrolls = _directory(corpus, subset, output / f"{stem}_enrolls", tested.enrolls)
        made.append(replace(enrolls, enrolls=tuple(sorted(tested.enrolls))))
        for name, key in tested.trials.items():
            part = _directory(corpus, subset, output / f"{stem}_trials_{name}", key.segment_ids.tolist())
            made.append(replace(part, trials=key))
    problems.raise_if_any()
    return made


def draw_tested(datadir: DataDir, lists: Iterable[str], seed: int) -> Tested:
    """Draw enrolment and trials from all utterances of a subset; see the module.

    Raises
    ------
    DataError
        If a sex has fewer than two speakers, or an enrolled speaker one utterance.
    """
    enrolls: list[str] = []
    by_speaker, enrolled = datadir.by_speaker(), dict[str, list[str]]()
    problems = Problems(datadir.path)
    for sex in _SEXES_OF_LIBRISPEECH_SETS:
        people = draw_order((name for name in by_speaker if datadir.genders[name] == sex), seed, "speaker")
        if len(people) < 2:
            problems.add(f"{len(people)} speakers of sex {sex!r}: expected two at least", remedy="unpack all of it")
        enrolled[sex] = sorted(people[: max(2, round(0.75 * len(people)))])
        for speaker in enrolled[sex]:
            utterances = by_speaker[speaker]
            if len(utterances) < 2:
                problems.add(f"speaker {speaker!r} has one utterance, to enrol and to be tried two are needed")
            enrolls += draw_order(utterances, seed, "utterance")[: max(1, round(len(utterances) / 3))]
    problems.raise_if_any()
    tried = sorted(set(datadir.speakers) - set(enrolls))
    trials = {}
    for name in lists:
        sexes = _SEXES_OF_LIBRISPEECH_SETS if name == "mixed" else (name,)
        chosen = {utt: datadir.speakers[utt] for utt in tried if datadir.genders[datadir.speakers[utt]] in sexes}
        part = DataDir(datadir.path, {}, chosen)
        trials[name] = full_cross(sorted(speaker for sex in sexes for speaker in enrolled[sex]), part)
    return Tested(tuple(sorted(enrolls)), trials)


def read_tested(folder: Path, stem: str, lists: Iterable[str]) -> Tested:
    """Read the challenge's own lists of a set.

    Raises
    ------
    DataError
        With all problems: a list is missing or malformed.
    """
    problems = Problems(folder)
    enrolls: tuple[str, ...] = ()
    try:
        enrolls = tuple(read_id_list(folder / f"{stem}_enrolls/enrolls", "utterance", n_columns=1))
    except DataError as error:
        problems.note(error)
    trials = {}
    for name in lists:
        path = folder / f"{stem}_trials_{name}/trials"
        parts = [folder / f"{stem}_trials_{sex}/trials" for sex in _SEXES_OF_LIBRISPEECH_SETS]
        crossed = name == "mixed" and not path.exists() and all(part.is_file() for part in parts)
        keys = []
        for file in parts if crossed else [path]:
            try:
                keys.append(read_text_key(file, Choice(layout="model,segment,label")))
            except DataError as error:
                problems.note(error)
        if crossed and len(keys) == len(parts):
            trials[name] = _crossed(keys)
        elif keys:
            trials[name] = keys[0]
    problems.raise_if_any()
    return Tested(enrolls, trials)


def _crossed(keys: Iterable[Key]) -> Key:
    """Every model of some lists against every segment of them."""
    models = sorted({str(model) for key in keys for model in key.model_ids})
    segments = sorted({str(segment) for key in keys for segment in key.segment_ids})
    return full_cross(models, DataDir(Path(), {}, {segment: speaker_of(segment) for segment in segments}))


def _check_tested(tested: Tested, datadir: DataDir, enrolls: Path) -> None:
    """Refuse lists that name what is not there, enrol what is tried, or call a speaker's own utterance a nontarget."""
    problems = Problems()
    _check_known(tested.enrolls, datadir.speakers, "utterances", enrolls / "enrolls", problems)
    enrolled = {speaker_of(utterance) for utterance in tested.enrolls}
    for name, key in tested.trials.items():
        file = enrolls.with_name(f"{enrolls.name.removesuffix('_enrolls')}_trials_{name}") / "trials"
        _check_known(key.segment_ids.tolist(), datadir.speakers, "utterances", file, problems)
        _check_known(key.model_ids.tolist(), dict.fromkeys(enrolled), "enrolled speakers", file, problems)
        if both := sorted(set(key.segment_ids.tolist()) & set(tested.enrolls)):
            text = f"{len(both)} utterances are enrolled with and tried, such as {both[0]!r}"
            problems.add(text, file=file, remedy="take the challenge's lists as they are")
        for (model, segment), is_target in zip(key.pairs(), key.is_target.tolist(), strict=True):
            if (speaker_of(segment) == model) != is_target:
                label = "target" if is_target else "nontarget"
                problems.add(f"trial '{model} {segment}' is marked {label}, against the speaker's id", file=file)
                break
    problems.raise_if_any()


def _check_known(names: Iterable[str], known: Mapping[str, object], what: str, file: Path, problems: Problems) -> None:
    if unknown := sorted(set(names) - known.keys()):
        some = ", ".join(map(repr, unknown[:3])) + (", ..." if len(unknown) > 3 else "")
        problems.add(f"{len(unknown)} {what} are not there: {some}", file=file, remedy="unpack all of the corpus")


def _directory(corpus: LibriSpeech, subset: str, path: Path, utterances: Iterable[str]) -> DataDir:
    recordings = corpus.recordings[subset]
    ids = sorted(set(utterances))
    speakers = {utterance: speaker_of(utterance) for utterance in ids}
    sexes = {speaker: corpus.sexes[speaker] for speaker in sorted(set(speakers.values()))}
    return DataDir(path, {utterance: recordings[utterance] for utterance in ids}, speakers, sexes)
