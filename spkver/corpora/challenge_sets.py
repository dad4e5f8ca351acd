"""The sets of the VoicePrivacy Challenges, made from unpacked corpora; all problems are reported at once.

LibriSpeech, for speaker verification, is laid out as

    LIBRISPEECH/SPEAKERS.TXT                                  ``id | F or M | subset | minutes | name``
    LIBRISPEECH/<subset>/<speaker>/<chapter>/<id>.flac        id: ``<speaker>-<chapter>-<number>``
    LIBRISPEECH/<subset>/<speaker>/<chapter>/<speaker>-<chapter>.trans.txt      lines ``id WORDS``

Its sets follow the challenge's lists, or are drawn by these rules and a seed:

    libri_dev_enrolls, libri_dev_trials_f, libri_dev_trials_m       of dev-clean; since 2026 libri_dev_trials_mixed
    libri_test_enrolls, libri_test_trials_f, ...                    of test-clean
    train-clean-360                                                 and any other subset, whole

Rules without lists:

1. Three of four speakers of each sex of a subset are drawn and enrolled (the challenge has 13 to 16 of 20). The other
   speakers occur only in trials.
2. A third of an enrolled speaker's utterances, at least one, is drawn for enrolment. The others are trial
   utterances, and so are all utterances of speakers who are not enrolled.
3. Every enrolled speaker is compared with every trial utterance of the same sex, in 2026 of both.

As in `spkver split`, a draw depends only on the seed and the id of a speaker or utterance.

IEMOCAP, for the recognition of emotions, is laid out as

    IEMOCAP/Session<n>/dialog/EmoEvaluation/Ses0<n>F_impro01.txt      lines ``[6.29 - 8.23]  id  label  [valence, ...]``
    IEMOCAP/Session<n>/dialog/transcriptions/Ses0<n>F_impro01.txt     lines ``id [6.2901-8.2357]: words``
    IEMOCAP/Session<n>/sentences/wav/Ses0<n>F_impro01/<id>.wav        id: ``Ses0<n>F_impro01_M003``

Four emotions are kept: neutral, sad, angry and happy; excited counts as happy. The speaker of
``Ses01F_impro01_M003`` is the man of session 1, ``Ses01M``; a session is a fold.

Each session has a woman and a man: `IEMOCAP_dev` and `IEMOCAP_test` have one of them each, so that they share no
speaker. Without the challenge's lists, the woman of the sessions 1, 3 and 5 and the man of 2 and 4 are in the
development set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.formats import Choice, read_key
from evaluation.trials import Key
from spkbase.errors import DataError, Problems, counted, few
from spkbase.files import read_id_list, read_text, read_text_bytes, write_json, write_text
from spkbase.showing import one_line
from spkver.audio import audio_header
from spkver.datadir import DataDir, draw_order, full_cross, part_of, unfit_id, write_datadir

SPEAKERS = "SPEAKERS.TXT"
_ID = re.compile(r"(?P<speaker>[0-9]+)-(?P<chapter>[0-9]+)-[0-9]+", re.ASCII)
_SEXES = ("f", "m")

TESTED = {"dev-clean": "libri_dev", "test-clean": "libri_test"}
LISTS = {"2022": ("f", "m"), "2024": ("f", "m"), "2026": ("mixed",)}

EMOTIONS = {"neu": "neu", "sad": "sad", "ang": "ang", "hap": "hap", "exc": "hap"}
"""Labels of the corpus that are kept, and the emotion of each."""
OTHER_LABELS = ("fru", "sur", "fea", "dis", "oth", "xxx")
PARTS = ("IEMOCAP_dev", "IEMOCAP_test")
_LINE = re.compile(r"\[[0-9.]+ - [0-9.]+\]\s+(?P<id>\S+)\s+(?P<label>\S+)\s+\[.*\]\s*$")
_WORDS = re.compile(r"(\S+) \[[0-9.]+ ?- ?[0-9.]+\]:(.*)")
_IEMOCAP_ID = re.compile(
    r"Ses0(?P<session>[1-5])(?P<first>[FM])_[A-Za-z0-9_]+_(?P<sex>[FM])[0-9]+", re.ASCII
)


@one_line
@dataclass(frozen=True)
class LibriSpeech:
    """Contents of the corpus.

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
        Names of subsets, such as ``test-clean``.

    Raises
    ------
    DataError
        With all problems: missing folders, malformed names, recordings that cannot be read, exist twice, are in
        another speaker's folder or have no transcript; transcripts without recording, malformed or repeated;
        speakers of unknown sex.
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
        unfit = unfit_id(subset)
        if unfit:
            problems.add(f"subset {subset!r} {unfit}", remedy="name one such as test-clean")
            continue
        if not folder.is_dir():
            problems.add(f"no subset {subset}", remedy="unpack it here, or choose other subsets")
            continue
        recordings[subset] = _find_recordings(folder, seen, problems)
        if not recordings[subset]:
            problems.add("no .flac file below it", file=folder, remedy="unpack the subset again")
        words = _read_transcripts(folder, problems)
        transcripts |= words
        again = "unpack the subset again"
        spoken = recordings[subset].keys()
        _report(spoken - words, "recording", "without a transcript", folder, again, problems)
        _report(words.keys() - spoken, "transcript", "without a recording", folder, again, problems)
        if sexes:
            unknown = {speaker_of(utterance) for utterance in spoken} - sexes.keys()
            text = f"of {subset} not in it"
            _report(
                unknown, "speaker", text, root / SPEAKERS, "use the list of the corpus", problems
            )
    problems.raise_if_any()
    return LibriSpeech(recordings, transcripts, sexes)


@dataclass(frozen=True)
class Tested:
    """Enrolment and trials.

    Attributes
    ----------
    enrolls : tuple of str
        Utterances for enrolment.
    trials : dict of str to Key
        Trials by list: f, m or mixed.
    """

    enrolls: tuple[str, ...]
    trials: dict[str, Key]


def make_librispeech_sets(
    corpus: LibriSpeech,
    output: str | Path,
    *,
    year: str = "2024",
    lists: str | Path | None = None,
    seed: int = 0,
) -> list[DataDir]:
    """Return the data directories of a challenge; nothing is written.

    Parameters
    ----------
    corpus : LibriSpeech
    output : path
        Folder of the data directories.
    year : {"2022", "2024", "2026"}
        Year of the challenge, whose lists are by sex or across the sexes.
    lists : path, optional
        Folder with the challenge's ``libri_*_enrolls/enrolls`` and ``libri_*_trials_*/trials``. Missing lists across
        the sexes are made from those by sex: every enrolled speaker against every trial utterance.
    seed : int
        Seed of the draws without lists.

    Raises
    ------
    DataError
        With all problems: lists that are missing or malformed, name unknown utterances or speakers, or contradict the
        ids; too few speakers or utterances to draw from.
    """
    output = Path(output)
    problems = Problems(lists)
    made = []
    for subset, recordings in corpus.recordings.items():
        speakers = {utterance: speaker_of(utterance) for utterance in sorted(recordings)}
        sexes = {speaker: corpus.sexes[speaker] for speaker in sorted(set(speakers.values()))}
        everything = DataDir(output / subset, dict(sorted(recordings.items())), speakers, sexes)
        stem = TESTED.get(subset)
        if stem is None:
            made.append(everything)
            continue
        with problems.noted():
            if lists is None:
                tested = draw_tested(everything, LISTS[year], seed)
            else:
                tested = read_tested(Path(lists), stem, LISTS[year])
                _check_tested(tested, everything, Path(lists) / f"{stem}_enrolls")
            enrolls = part_of(everything, output / f"{stem}_enrolls", tested.enrolls)
            made.append(replace(enrolls, enrolls=tuple(sorted(tested.enrolls))))
            for name, key in tested.trials.items():
                folder = output / f"{stem}_trials_{name}"
                part = part_of(everything, folder, key.segment_ids.tolist())
                made.append(replace(part, trials=key))
    problems.raise_if_any()
    return made


def draw_tested(datadir: DataDir, lists: Iterable[str], seed: int) -> Tested:
    """Draw enrolment and trials from all utterances of a subset; see the module.

    Raises
    ------
    DataError
        If a sex has fewer than two speakers, or an enrolled speaker has only one utterance.
    """
    enrolls: list[str] = []
    enrolled: dict[str, list[str]] = {}
    by_speaker = datadir.by_speaker()
    problems = Problems(datadir.path)
    for sex in _SEXES:
        people = [name for name in by_speaker if datadir.sexes[name] == sex]
        if len(people) < 2:
            text = f"{len(people)} speakers of sex {sex!r}: expected at least two"
            problems.add(text, remedy="unpack all of it")
        n_enrolled = max(2, round(0.75 * len(people)))
        enrolled[sex] = sorted(draw_order(people, seed, "speaker")[:n_enrolled])
        for speaker in enrolled[sex]:
            utterances = by_speaker[speaker]
            if len(utterances) < 2:
                text = f"speaker {speaker!r} has one utterance, expected two: for enrolment and for a trial"
                problems.add(text)
            n_enrolls = max(1, round(len(utterances) / 3))
            enrolls += draw_order(utterances, seed, "utterance")[:n_enrolls]
    problems.raise_if_any()
    tried = sorted(set(datadir.speakers) - set(enrolls))
    trials = {}
    for name in lists:
        sexes = _SEXES if name == "mixed" else (name,)
        models: list[str] = []
        for sex in sexes:
            models += enrolled[sex]
        tested = {}
        for utterance in tried:
            speaker = datadir.speakers[utterance]
            if datadir.sexes[speaker] in sexes:
                tested[utterance] = speaker
        trials[name] = full_cross(sorted(models), DataDir(datadir.path, {}, tested))
    return Tested(tuple(sorted(enrolls)), trials)


def read_tested(folder: Path, stem: str, lists: Iterable[str]) -> Tested:
    """Read the challenge's lists of a set.

    Raises
    ------
    DataError
        With all problems: a list is missing or malformed.
    """
    problems = Problems(folder)
    enrolls: tuple[str, ...] = ()
    with problems.noted():
        enrolls = tuple(read_id_list(folder / f"{stem}_enrolls/enrolls", "utterance", n_columns=1))
    trials = {}
    for name in lists:
        files = [folder / f"{stem}_trials_{name}/trials"]
        parts = [folder / f"{stem}_trials_{sex}/trials" for sex in _SEXES]
        if name == "mixed" and not files[0].exists() and all(part.is_file() for part in parts):
            files = parts
        keys = []
        for file in files:
            with problems.noted():
                keys.append(read_key(file, Choice(layout="model,segment,label")))
        if len(keys) == len(files):
            trials[name] = keys[0] if len(keys) == 1 else _crossed(keys)
    problems.raise_if_any()
    return Tested(enrolls, trials)


def _crossed(keys: Sequence[Key]) -> Key:
    """Return the trials of every model of some keys with every segment of these keys."""
    models: set[str] = set()
    segments: set[str] = set()
    for key in keys:
        models.update(key.model_ids.tolist())
        segments.update(key.segment_ids.tolist())
    speakers = {segment: speaker_of(segment) for segment in sorted(segments)}
    return full_cross(sorted(models), DataDir(Path(), {}, speakers))


@one_line
@dataclass(frozen=True)
class Iemocap:
    """Contents of the corpus.

    Attributes
    ----------
    recordings : dict of str to Path
        Utterance of one of the emotions to its WAV file.
    emotions : dict of str to str
        Utterance to emotion.
    left_out : dict of str to int
        Number of utterances with each of the other labels.
    transcripts : dict of str to str
        Utterance to its words in capitals, without punctuation and marks such as ``[LAUGHTER]``, as in LibriSpeech, if
        it is transcribed.
    """

    recordings: dict[str, Path] = field(repr=False)
    emotions: dict[str, str] = field(repr=False)
    left_out: dict[str, int]
    transcripts: dict[str, str] = field(default_factory=dict, repr=False)


def speaker_and_fold(utterance: str) -> tuple[str, str]:
    """Return the speaker of an utterance and the fold, which is the session.

    Examples
    --------
    >>> speaker_and_fold("Ses03F_script01_1_M022")
    ('Ses03M', '3')
    """
    match = _IEMOCAP_ID.fullmatch(utterance)
    if match is None:
        raise DataError(
            f"{utterance!r} is not an id of IEMOCAP",
            remedy="expected an id such as Ses01F_impro01_F000",
        )
    return f"Ses0{match['session']}{match['sex']}", match["session"]


def read_iemocap(root: str | Path) -> Iemocap:
    """Read labels and check that each utterance that is kept has a readable recording.

    Parameters
    ----------
    root : path
        The folder of Session1 to Session5 (``IEMOCAP_full_release``).

    Raises
    ------
    DataError
        With all problems: a session is missing or has no labels, a malformed line, an unknown label, an utterance that
        is labelled twice or in another session's folder, a recording that is missing or cannot be read.
    """
    root = Path(root)
    if not (root / "Session1").is_dir() and (root / "IEMOCAP_full_release/Session1").is_dir():
        root = root / "IEMOCAP_full_release"
    problems = Problems(root)
    recordings: dict[str, Path] = {}
    labels: dict[str, str] = {}
    for session in ("1", "2", "3", "4", "5"):
        folder = root / f"Session{session}"
        files = sorted((folder / "dialog/EmoEvaluation").glob("Ses*.txt"))
        if not files:
            remedy = "give the folder that holds Session1 to Session5, unpacked"
            problems.add(
                "no labels: looked for Ses*.txt",
                file=folder / "dialog/EmoEvaluation",
                remedy=remedy,
            )
        for file in files:
            for utterance, label in _read_labels(file, session, labels, problems).items():
                labels[utterance] = label
                if label in EMOTIONS:
                    dialog = utterance.rpartition("_")[0]
                    path = folder / "sentences/wav" / dialog / f"{utterance}.wav"
                    with problems.noted():
                        audio_header(path)
                    recordings[utterance] = path
    problems.raise_if_any()
    emotions = {utterance: EMOTIONS[labels[utterance]] for utterance in recordings}
    others = Counter(label for label in labels.values() if label not in EMOTIONS)
    words = _read_words(root, recordings)
    return Iemocap(recordings, emotions, dict(sorted(others.items())), words)


def _read_words(root: Path, utterances: Container[str]) -> dict[str, str]:
    """Return the words of utterances in capitals, without punctuation and marks such as [LAUGHTER]."""
    words = {}
    for file in sorted(root.glob("Session[1-5]/dialog/transcriptions/Ses*.txt")):
        for line in read_text_bytes(file).decode("latin-1").splitlines():
            match = _WORDS.match(line)
            if match is not None and match[1] in utterances:
                spoken = re.sub(r"\[.*?\]", " ", match[2].upper())
                words[match[1]] = " ".join(re.findall(r"[A-Z0-9']+", spoken))
    return words


def make_iemocap_sets(
    corpus: Iemocap, output: str | Path, *, lists: str | Path | None = None
) -> list[DataDir]:
    """Return the data directories `IEMOCAP_dev` and `IEMOCAP_test`; nothing is written.

    Parameters
    ----------
    corpus : Iemocap
    output : path
        Folder of the data directories.
    lists : path, optional
        Folder with the challenge's ``IEMOCAP_dev/utt2spk`` and ``IEMOCAP_test/utt2spk``; by default see the module.

    Raises
    ------
    DataError
        With all problems: a list is missing, or names utterances that do not exist or have another emotion.
    """
    problems = Problems()
    parts = {}
    for name in PARTS:
        if lists is None:
            parts[name] = [key for key in corpus.recordings if _drawn_part(key) == name]
        else:
            parts[name] = _listed_part(corpus, Path(lists) / name / "utt2spk", problems)
    problems.raise_if_any()
    made = []
    for name, utterances in parts.items():
        speakers = {utterance: speaker_and_fold(utterance)[0] for utterance in sorted(utterances)}
        sexes = {speaker: speaker[-1].lower() for speaker in sorted(set(speakers.values()))}
        recordings = {utterance: corpus.recordings[utterance] for utterance in speakers}
        made.append(DataDir(Path(output) / name, recordings, speakers, sexes))
    return made


def _drawn_part(utterance: str) -> str:
    speaker, fold = speaker_and_fold(utterance)
    in_test = (speaker[-1] == "F") != (int(fold) % 2 == 1)
    return PARTS[in_test]


def _listed_part(corpus: Iemocap, path: Path, problems: Problems) -> list[str]:
    utterances: list[str] = []
    with problems.noted():
        utterances = sorted(read_id_list(path, "utterance speaker"))
    unknown = [utterance for utterance in utterances if utterance not in corpus.recordings]
    if unknown:
        text = counted(len(unknown), "utterance")
        text += f" without one of the four emotions in the corpus, such as {unknown[0]!r}"
        remedy = "use the challenge's list unchanged, and the whole corpus"
        problems.add(text, file=path, remedy=remedy)
    return utterances


def write_prepared(
    parts: Sequence[DataDir],
    more: Mapping[str, Mapping[str, str]],
    record: tuple[str, Mapping[str, Any]],
) -> None:
    """Write data directories with further lists, and a record of how they were made.

    Parameters
    ----------
    parts : sequence of DataDir
        Data directories, all in the same folder.
    more : mapping of str to mapping of str to str
        Further lists by name, such as ``text``, each a map from ids to values; each directory gets the lines of its
        utterances and speakers.
    record : (str, mapping)
        Name and content of the record, a file in that folder.

    Raises
    ------
    DataError
        With all problems: a directory exists; an id or a path that a list cannot hold; the folder cannot be
        written.
    """
    output = parts[0].path.parent
    problems = Problems(output)
    for part in parts:
        if part.path.exists() or part.path.is_symlink():
            problems.add(
                "already exists", file=part.path, remedy="remove it, or choose another folder"
            )
    problems.raise_if_any()
    for part in parts:
        write_datadir(part)
        known = {*part.speakers, *part.speakers.values()}
        for name, values in more.items():
            lines = [f"{key} {values[key]}".rstrip() for key in sorted(known & values.keys())]
            if lines:
                write_text(part.path / name, "\n".join(lines) + "\n")
    write_json(output / record[0], record[1])


def _read_sexes(path: Path, problems: Problems) -> dict[str, str]:
    """Return the sex of each speaker; names may contain bars too."""
    lines: list[str] = []
    with problems.noted():
        lines = read_text_bytes(path).decode("utf-8", "replace").splitlines()
    sexes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(";"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        speaker, sex = (*cells, "")[:2]
        if not re.fullmatch(r"[0-9]+", speaker, re.ASCII) or sex.lower() not in _SEXES:
            problems.add(
                f"expected 'id | F or M | ...', got {line.strip()[:60]!r}", file=path, line=number
            )
        elif sexes.setdefault(speaker, sex.lower()) != sex.lower():
            problems.add(
                f"speaker {speaker!r} is repeated, with another sex", file=path, line=number
            )
    return sexes


def _find_recordings(folder: Path, seen: dict[str, Path], problems: Problems) -> dict[str, Path]:
    """Return the recordings of a subset by id, and check their headers; other and hidden files are ignored."""
    recordings = {}
    for path in sorted(folder.glob("*/*/*")):
        if path.suffix.lower() != ".flac" or path.name.startswith("."):
            continue
        match = _ID.fullmatch(path.stem)
        if match is None or match.group("speaker", "chapter") != path.parts[-3:-1]:
            text = "its name does not match the folders of the speaker and chapter"
            remedy = "a recording is SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac"
            problems.add(text, file=path, remedy=remedy)
        elif path.stem in seen:
            problems.add(
                f"recording {path.stem!r} exists twice: {seen[path.stem]}",
                file=path,
                remedy="remove one",
            )
        else:
            seen[path.stem] = recordings[path.stem] = path
            with problems.noted():
                audio_header(path)
    return recordings


def _read_transcripts(folder: Path, problems: Problems) -> dict[str, str]:
    """Return the words of each utterance of a subset; an utterance may have none."""
    transcripts: dict[str, str] = {}
    for path in sorted(folder.glob("*/*/*.trans.txt")):
        if path.name.startswith("."):
            continue
        text = ""
        with problems.noted():
            text = read_text(path)
        for number, line in enumerate(text.split("\n"), 1):
            utterance, _, words = line.strip().partition(" ")
            if not utterance:
                continue
            if not _ID.fullmatch(utterance):
                problems.add(
                    f"expected 'id WORDS', got {line.strip()[:60]!r}", file=path, line=number
                )
            elif utterance in transcripts:
                problems.add(f"utterance {utterance!r} is repeated", file=path, line=number)
            else:
                transcripts[utterance] = " ".join(words.split())
    return transcripts


def _check_tested(tested: Tested, datadir: DataDir, enrolls: Path) -> None:
    """Refuse lists with unknown ids, trial utterances that are enrolled, or labels that contradict the speaker ids."""
    problems = Problems()
    whole = "unpack the whole corpus"
    known = datadir.speakers.keys()
    unknown = set(tested.enrolls) - known
    _report(unknown, "utterance", "missing", enrolls / "enrolls", whole, problems)
    enrolled = {speaker_of(utterance) for utterance in tested.enrolls}
    stem = enrolls.name.removesuffix("_enrolls")
    for name, key in tested.trials.items():
        file = enrolls.with_name(f"{stem}_trials_{name}") / "trials"
        segments = set(key.segment_ids.tolist())
        _report(segments - known, "utterance", "missing", file, whole, problems)
        strangers = set(key.model_ids.tolist()) - enrolled
        _report(strangers, "enrolled speaker", "missing", file, whole, problems)
        both = sorted(segments & set(tested.enrolls))
        if both:
            text = f"{counted(len(both), 'utterance')} in both enrolment and trials, such as {both[0]!r}"
            problems.add(text, file=file, remedy="use the challenge's lists unchanged")
        for (model, segment), is_target in zip(key.pairs(), key.is_target.tolist(), strict=True):
            if (speaker_of(segment) == model) != is_target:
                label = "target" if is_target else "nontarget"
                problems.add(
                    f"trial '{model} {segment}' is marked {label}, against the speaker's id",
                    file=file,
                )
                break
    problems.raise_if_any()


def _report(
    names: Set[str], kind: str, text: str, file: Path, remedy: str, problems: Problems
) -> None:
    """Report a problem of ids of a kind, if there are any."""
    if names:
        found = f"{counted(len(names), kind)} {text}: {few(names, repr)}"
        problems.add(found, file=file, remedy=remedy)


def _read_labels(
    file: Path, session: str, before: dict[str, str], problems: Problems
) -> dict[str, str]:
    """Return the labels of one dialogue, from lines that begin with a time; other lines belong to single annotators."""
    lines: list[str] = []
    with problems.noted():
        lines = read_text_bytes(file).decode("latin-1").splitlines()
    labels: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.startswith("["):
            continue
        match = _LINE.match(line)
        spoken = None if match is None else _IEMOCAP_ID.fullmatch(match["id"])
        if match is None or spoken is None:
            problems.add(
                f"expected '[begin - end] id label [...]', got {line[:60]!r}",
                file=file,
                line=number,
            )
        elif spoken["session"] != session:
            problems.add(f"{match['id']!r} belongs to another session", file=file, line=number)
        elif match["label"] not in (*EMOTIONS, *OTHER_LABELS):
            known = ", ".join((*EMOTIONS, *OTHER_LABELS))
            problems.add(
                f"label {match['label']!r}: expected one of {known}", file=file, line=number
            )
        elif match["id"] in labels or match["id"] in before:
            problems.add(f"{match['id']!r} is labelled twice", file=file, line=number)
        else:
            labels[match["id"]] = match["label"]
    if not labels:
        problems.add(
            "no line '[begin - end] id label [...]'", file=file, remedy="unpack the corpus again"
        )
    return labels
