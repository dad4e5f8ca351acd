"""An embedded SIMULATED set in the layout of the VoicePrivacy Challenge: synthetic speech, no real person speaks.

    OUTPUT/simulated_train/                     training speakers, as train-clean-360 in the challenge
    OUTPUT/simulated_test_enrolls/              enrolled speakers of both sexes, as libri_test_enrolls
    OUTPUT/simulated_test_trials_{f,m}/         trial speakers of one sex, as libri_test_trials_f and _m
        wav.scp utt2spk spk2utt spk2gender text; enrolls beside the enrolment, trials beside the trials; wav/*.wav
    OUTPUT/simulation.json, OUTPUT/README.txt   what the set is and how it was made

Each trial list is a full cross of the enrolled speakers of a sex with all trial utterances of that sex. Some trial
speakers are not enrolled, as in the challenge. An utterance is some Harvard sentences; every utterance of a speaker is
of a session of its own (another day, another microphone, another room), so no two share a channel.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError
from spkbase.work import ordered_map
from spkver.corpora import espeak, trees
from spkver.corpora.voices import SAMPLE_RATE, SENTENCES, make_session, make_voice, synthesise_utterance

DATASET = "simulated_test"
TRAINING_SET = "simulated_train"
SEXES = ("f", "m")

_VERSION = 1  # of the samples and the tree; a tree of another version is not taken for a finished one
_FIRST_TRAINING = 501  # number of the first training speaker; those before it are enrolled or tried
_MOST_SPEAKERS = 499  # of a sex and a part

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sizes:
    """How many speakers and utterances; the speakers are those of each sex.

    Attributes
    ----------
    enrolled_f, enrolled_m : int
        Enrolled speakers, 29 in all by default as in libri_test.
    strangers : int
        Trial speakers of each sex that are not enrolled.
    training : int
        Training speakers of each sex.
    enrolment_utterances, trial_utterances, training_utterances : int
        Of each speaker.
    sentences : int
        In an utterance.
    seed : int
        Everything drawn depends on it.
    """

    enrolled_f: int = 16
    enrolled_m: int = 13
    strangers: int = 2
    training: int = 24
    enrolment_utterances: int = 3
    trial_utterances: int = 5
    training_utterances: int = 5
    sentences: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        lowest = {"enrolled_f": 2, "enrolled_m": 2, "strangers": 0, "training": 2, "seed": 0}
        highest = {"seed": 2**63 - 1, "sentences": len(SENTENCES)}
        for name, value in asdict(self).items():
            least = lowest.get(name, 1)
            most = highest.get(name, _MOST_SPEAKERS - self.strangers if name.startswith("enrolled") else _MOST_SPEAKERS)
            if not least <= value <= most:
                raise ConfigError(f"{name} is {least} to {most}, not {value}")


@dataclass(frozen=True)
class SimulatedSet:
    """What a simulated set holds.

    Attributes
    ----------
    folder : Path
        Root of the data directories.
    n_enrolled, n_trial_speakers, n_training : int
        Speakers.
    n_files : int
    seconds : float
        Length of all recordings together.
    n_targets, n_nontargets : int
        Trials of both sexes.
    created : bool
        False if the set was there already.
    """

    folder: Path
    n_enrolled: int
    n_trial_speakers: int
    n_training: int
    n_files: int
    seconds: float
    n_targets: int
    n_nontargets: int
    created: bool

    def __str__(self) -> str:
        return (
            f"{self.folder}: {'' if self.created else 'there already: '}SIMULATED speech of {self.n_enrolled} enrolled,"
            f" {self.n_trial_speakers} trial and {self.n_training} training speakers, {self.n_files} recordings"
            f" ({self.seconds / 60:.0f} min), {self.n_targets} target and {self.n_nontargets} nontarget trials"
        )


@dataclass(frozen=True)
class _Speaker:
    """A speaker's part in one data directory: `sessions` are the numbers of the utterances."""

    directory: str
    sex: str
    number: int
    sessions: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.sex}{self.number:03d}"

    def utterances(self) -> list[str]:
        return [f"{self.name}-{session:02d}" for session in self.sessions]


def simulate_voiceprivacy(output: str | Path, sizes: Sizes | None = None, *, jobs: int | None = None) -> SimulatedSet:
    """Write a SIMULATED set in the challenge's layout.

    The same sizes give the same bytes, whatever `jobs` is. A recording depends on the seed, the number of sentences,
    the speaker and the session only.

    Parameters
    ----------
    output : path
        Folder to make. It appears when it is whole; a finished set of the same sizes is left as it is.
    sizes : Sizes, optional
    jobs : int, optional
        Worker processes; all cores by default.

    Raises
    ------
    DataError
        If `output` holds something else, the disk is too small, or the package espeakng-loader (extra `demo`) is
        missing.
    """
    output, sizes = Path(output).resolve(), sizes or Sizes()
    parameters = asdict(sizes)
    parts = list(_parts(sizes))
    files = [_file(part, utterance) for part in parts for utterance in part.utterances()]
    if trees.is_finished(output, {**trees.identity(_VERSION), **parameters}, files):
        logger.info("%s is there already", output)
        return _summary(output, trees.read_record(output), created=False)
    espeak.loader()
    trees.check_space(output, len(files))
    with trees.new_tree(output, {**trees.identity(_VERSION), **parameters}) as tree:
        for directory in dict.fromkeys(part.directory for part in parts):
            (tree / directory / "wav").mkdir(parents=True, exist_ok=True)
        work = partial(_record_speaker, tree=tree, sizes=sizes)
        with closing(ordered_map(work, parts, jobs=jobs, description="SIMULATED speakers")) as lengths:  # type: ignore[type-var]
            seconds = sum(lengths)
        counts = _write_lists(tree, parts, sizes)
        record = _record(parameters, {"n_files": len(files), "seconds": round(seconds, 3), **counts})
        trees.write_record(tree, record, _readme(record))
    return _summary(output, record, created=True)


def _parts(sizes: Sizes) -> Iterator[_Speaker]:
    """Every speaker of every data directory; sessions of a speaker are numbered over its directories."""
    n_enrol, n_trial = sizes.enrolment_utterances, sizes.trial_utterances
    enrolment, trials = tuple(range(1, n_enrol + 1)), tuple(range(n_enrol + 1, n_enrol + n_trial + 1))
    for sex, enrolled in (("f", sizes.enrolled_f), ("m", sizes.enrolled_m)):
        for number in range(1, enrolled + 1):
            yield _Speaker(f"{DATASET}_enrolls", sex, number, enrolment)
        for number in range(1, enrolled + sizes.strangers + 1):
            yield _Speaker(f"{DATASET}_trials_{sex}", sex, number, trials)
        for number in range(_FIRST_TRAINING, _FIRST_TRAINING + sizes.training):
            yield _Speaker(TRAINING_SET, sex, number, tuple(range(1, sizes.training_utterances + 1)))


def _file(part: _Speaker, utterance: str) -> str:
    return f"{part.directory}/wav/{utterance}.wav"


def utterance_text(number: int, session: int, n_sentences: int) -> str:
    """Return the sentences of an utterance; neighbours in number and session say different ones.

    Examples
    --------
    >>> utterance_text(1, 1, 1)
    'A large size in stockings is hard to sell.'
    """
    first = 7 * number + 2 * session  # from 0 to 29 it visits all sentences, so text tells nothing about the speaker
    return " ".join(SENTENCES[(first + 11 * position) % len(SENTENCES)] for position in range(n_sentences))


def _record_speaker(part: _Speaker, *, tree: Path, sizes: Sizes) -> float:
    """Write the recordings of a speaker in a directory; return their length in seconds."""
    voice = make_voice(part.sex, part.number, sizes.seed)
    n_samples = 0
    for number, utterance in zip(part.sessions, part.utterances(), strict=True):
        file = tree / _file(part, utterance)
        length = trees.n_recorded(file)
        if length is None:
            session = make_session(part.sex, part.number, number, sizes.seed)
            text = utterance_text(part.number, number, sizes.sentences)
            length = trees.write_recording(file, synthesise_utterance(voice, text, session), "wav")
        n_samples += length
    return n_samples / SAMPLE_RATE


def _write_lists(tree: Path, parts: Sequence[_Speaker], sizes: Sizes) -> dict[str, int]:
    by_directory: dict[str, list[_Speaker]] = {}
    for part in parts:
        by_directory.setdefault(part.directory, []).append(part)
    for directory, members in by_directory.items():
        pairs = sorted((utterance, part) for part in members for utterance in part.utterances())
        files = {
            "wav.scp": [f"{utterance} {_file(part, utterance)}" for utterance, part in pairs],
            "utt2spk": [f"{utterance} {part.name}" for utterance, part in pairs],
            "spk2utt": [
                " ".join([part.name, *part.utterances()]) for part in sorted(members, key=lambda speaker: speaker.name)
            ],
            "spk2gender": sorted(f"{part.name} {part.sex}" for part in members),
            "text": [f"{utterance} {_transcript(utterance, part, sizes)}" for utterance, part in pairs],
        }
        if directory.endswith("_enrolls"):
            files["enrolls"] = [utterance for utterance, _ in pairs]
        for name, lines in files.items():
            _write(tree / directory / name, lines)
    return _write_trials(tree, by_directory)


def _write_trials(tree: Path, by_directory: dict[str, list[_Speaker]]) -> dict[str, int]:
    counts = {"n_enrolled": len(by_directory[f"{DATASET}_enrolls"]), "n_training": len(by_directory[TRAINING_SET])}
    counts |= {"n_trial_speakers": 0, "n_targets": 0, "n_nontargets": 0}
    for sex in SEXES:
        directory = f"{DATASET}_trials_{sex}"
        models = sorted(part.name for part in by_directory[f"{DATASET}_enrolls"] if part.sex == sex)
        spoken = sorted((utterance, part.name) for part in by_directory[directory] for utterance in part.utterances())
        kinds = [(model, utterance, model == speaker) for model in models for utterance, speaker in spoken]
        _write(
            tree / directory / "trials",
            [f"{model} {utterance} {'target' if same else 'nontarget'}" for model, utterance, same in kinds],
        )
        counts["n_trial_speakers"] += len(by_directory[directory])
        counts["n_targets"] += sum(same for *_, same in kinds)
        counts["n_nontargets"] += sum(not same for *_, same in kinds)
    return counts


def _transcript(utterance: str, part: _Speaker, sizes: Sizes) -> str:
    """The text as speech corpora write it: capitals, no punctuation but apostrophes."""
    session = part.sessions[part.utterances().index(utterance)]
    text = utterance_text(part.number, session, sizes.sentences).upper()
    return "".join(letter for letter in text if letter.isalpha() or letter in " '")


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _record(parameters: dict[str, Any], counts: dict[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "about": "SIMULATED: synthetic speech in the layout of the VoicePrivacy Challenge, made by spkver",
        **trees.identity(_VERSION),
        "engine": f"espeakng-loader {version('espeakng-loader')}",
        "parameters": parameters,
        "counts": counts,
    }


def _readme(record: dict[str, Any]) -> str:
    parameters = record["parameters"]
    options = " ".join(f"--{field.name.replace('_', '-')} {parameters[field.name]}" for field in fields(Sizes))
    return f"""SIMULATED speech, not a set of the VoicePrivacy Challenge: it has the challenge's data directories, so
that programs for them run on it. No real person speaks here, and error rates on it say nothing about real speech.

Made by
    spkver simulate voiceprivacy OUTPUT {options}
with {record["engine"]} (eSpeak NG) and the signal processing of spkver; simulation.json holds every setting.
Sentences: Harvard sentences, IEEE 1969, public domain. Paths in wav.scp are relative to this folder.
"""


def _summary(output: Path, record: dict[str, Any], *, created: bool) -> SimulatedSet:
    return SimulatedSet(folder=output, created=created, **record["counts"])
