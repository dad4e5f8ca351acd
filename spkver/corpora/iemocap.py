"""IEMOCAP for the recognition of emotions, as VoicePrivacy 2024 and 2026 use it.

    IEMOCAP/Session<n>/dialog/EmoEvaluation/Ses0<n>F_impro01.txt      lines ``[6.29 - 8.23]  id  label  [valence, ...]``
    IEMOCAP/Session<n>/dialog/transcriptions/Ses0<n>F_impro01.txt     lines ``id [6.2901-8.2357]: words``
    IEMOCAP/Session<n>/sentences/wav/Ses0<n>F_impro01/<id>.wav        id: ``Ses0<n>F_impro01_M003``

Of the labels four emotions stay: neutral, sad, angry and happy, which excited counts as too. The speaker of
``Ses01F_impro01_M003`` is the man of session 1, ``Ses01M``; a session is a fold.

Each session has a woman and a man: `IEMOCAP_dev` and `IEMOCAP_test` have one of them each, so that neither hears a
speaker of the other. Here the woman of the sessions 1, 3 and 5 and the man of 2 and 4 are in the development set, where
the challenge's own lists are not given.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from spkbase.errors import DataError, Problems
from spkbase.files import read_id_list, read_text_bytes
from spkbase.showing import one_line
from spkver.audio import audio_header
from spkver.datadir import DataDir

EMOTIONS = {"neu": "neu", "sad": "sad", "ang": "ang", "hap": "hap", "exc": "hap"}
"""Labels of the corpus that are kept, and what they count as."""
OTHER_LABELS = ("fru", "sur", "fea", "dis", "oth", "xxx")
PARTS = ("IEMOCAP_dev", "IEMOCAP_test")
_SESSION = re.compile(r"Session([1-5])")
_LINE = re.compile(r"\[[0-9.]+ - [0-9.]+\]\s+(?P<id>\S+)\s+(?P<label>\S+)\s+\[.*\]\s*$")
_WORDS = re.compile(r"(\S+) \[[0-9.]+ ?- ?[0-9.]+\]:(.*)")
_ID = re.compile(r"Ses0(?P<session>[1-5])(?P<first>[FM])_[A-Za-z0-9_]+_(?P<sex>[FM])[0-9]+", re.ASCII)


@one_line
@dataclass(frozen=True)
class Iemocap:
    """What was found of a corpus.

    Attributes
    ----------
    recordings : dict of str to Path
        Utterance of one of the emotions to its WAV file.
    emotions : dict of str to str
        Utterance to emotion.
    left_out : dict of str to int
        How many utterances have each of the other labels.
    transcripts : dict of str to str
        Utterance to its words in capitals, without punctuation and marks such as ``[LAUGHTER]``, as LibriSpeech has
        them; those of the transcriptions that are there.
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
    match = _ID.fullmatch(utterance)
    if match is None:
        raise DataError(f"{utterance!r} is no id of IEMOCAP", remedy="expected one such as Ses01F_impro01_F000")
    return f"Ses0{match['session']}{match['sex']}", match["session"]


def read_iemocap(root: str | Path) -> Iemocap:
    """Read labels and check that there is a readable recording of each that is kept.

    Parameters
    ----------
    root : path
        The folder of Session1 to Session5 (``IEMOCAP_full_release``).

    Raises
    ------
    DataError
        With all problems: a session is missing or has no labels, a line of another form, a label that the corpus does
        not have, an utterance that is labelled twice or in another session's folder, a recording that is missing or
        cannot be read.
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
            problems.add("no labels: looked for Ses*.txt", file=folder / "dialog/EmoEvaluation", remedy=remedy)
        for file in files:
            for utterance, label in _read_labels(file, session, labels, problems).items():
                labels[utterance] = label
                if label in EMOTIONS:
                    dialog = utterance.rpartition("_")[0]
                    path = folder / "sentences/wav" / dialog / f"{utterance}.wav"
                    try:
                        audio_header(path)
                    except DataError as error:
                        problems.note(error)
                    recordings[utterance] = path
    problems.raise_if_any()
    emotions = {utterance: EMOTIONS[labels[utterance]] for utterance in recordings}
    others = Counter(label for label in labels.values() if label not in EMOTIONS)
    words = {
        match[1]: " ".join(re.findall(r"[A-Z0-9']+", re.sub(r"\[.*?\]", " ", match[2].upper())))
        for file in sorted(root.glob("Session[1-5]/dialog/transcriptions/Ses*.txt"))
        for line in read_text_bytes(file).decode("latin-1").splitlines()
        if (match := _WORDS.match(line)) is not None and match[1] in recordings
    }
    return Iemocap(recordings, emotions, dict(sorted(others.items())), words)


def make_iemocap_sets(corpus: Iemocap, output: str | Path, *, lists: str | Path | None = None) -> list[DataDir]:
    """Return the data directories `IEMOCAP_dev` and `IEMOCAP_test`; nothing is written.

    Parameters
    ----------
    corpus : Iemocap
    output : path
        Folder of the data directories.
    lists : path, optional
        Folder with the challenge's ``IEMOCAP_dev/utt2spk`` and ``IEMOCAP_test/utt2spk``; without it see the module.

    Raises
    ------
    DataError
        With all problems: a list is missing, or names utterances that are not there or of which no emotion is kept.
    """
    parts: dict[str, list[str]] = {name: [] for name in PARTS}
    problems = Problems()
    for name in PARTS if lists is not None else ():
        path = Path(str(lists)) / name / "utt2spk"
        try:
            parts[name] = sorted(read_id_list(path, "utterance speaker"))
        except DataError as error:
            problems.note(error)
            continue
        if unknown := [utterance for utterance in parts[name] if utterance not in corpus.recordings]:
            text = f"{len(unknown)} utterances without one of the four emotions in the corpus, such as {unknown[0]!r}"
            problems.add(text, file=path, remedy="take the challenge's list as it is, and all of the corpus")
    problems.raise_if_any()
    for utterance in corpus.recordings if lists is None else ():
        speaker, fold = speaker_and_fold(utterance)
        in_dev = (speaker[-1] == "F") == (int(fold) % 2 == 1)
        parts[PARTS[0] if in_dev else PARTS[1]].append(utterance)
    made = []
    for name, utterances in parts.items():
        speakers = {utterance: speaker_and_fold(utterance)[0] for utterance in sorted(utterances)}
        sexes = {speaker: speaker[-1].lower() for speaker in sorted(set(speakers.values()))}
        recordings = {utterance: corpus.recordings[utterance] for utterance in speakers}
        made.append(DataDir(Path(output) / name, recordings, speakers, sexes))
    return made


def _read_labels(file: Path, session: str, before: dict[str, str], problems: Problems) -> dict[str, str]:
    """Labels of one dialogue: the lines that begin with a time; those of single annotators do not."""
    try:
        lines = read_text_bytes(file).decode("latin-1").splitlines()
    except DataError as error:
        problems.note(error)
        return {}
    labels: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.startswith("["):
            continue
        match = _LINE.match(line)
        spoken = None if match is None else _ID.fullmatch(match["id"])
        if match is None or spoken is None:
            problems.add(f"expected '[begin - end] id label [...]', got {line[:60]!r}", file=file, line=number)
        elif spoken["session"] != session:
            problems.add(f"{match['id']!r} is of another session", file=file, line=number)
        elif match["label"] not in (*EMOTIONS, *OTHER_LABELS):
            known = ", ".join((*EMOTIONS, *OTHER_LABELS))
            problems.add(f"label {match['label']!r}: expected one of {known}", file=file, line=number)
        elif match["id"] in labels or match["id"] in before:
            problems.add(f"{match['id']!r} is labelled already", file=file, line=number)
        else:
            labels[match["id"]] = match["label"]
    if not labels:
        problems.add("no line '[begin - end] id label [...]'", file=file, remedy="unpack the corpus again")
    return labels
