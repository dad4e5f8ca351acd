"""Simulated corpora: trees of synthetic speech in the form of RSR2015 and of the VoicePrivacy Challenge.

RSR2015 (`simulate_rsr2015`), one part per tree:

    OUTPUT/sph/male/m001/m001_01_001.wav       speaker, session 01 to 09, sentence 001 to 030
    OUTPUT/key/part1/trn/3sesspwd_eval_m.trn   models: one for each evaluation speaker and sentence
    OUTPUT/key/part1/ndx/3sess-pwd_eval_m.ndx  trials

Part 2 has commands, 031 to 060, and the same lists in key/part2. In part 3 (061 to 073, key/part3) digits are spoken
one by one, and every session has different sequences, the same for all speakers, which prompts.txt lists. The three
sequences of ten are for enrolment, with a model for each enrolment session; those of five are for tests:

    OUTPUT/key/part3/trn/3seq10_eval_m.trn
    OUTPUT/key/part3/ndx/seq5_testeval_m.ndx
    OUTPUT/key/part3/prompts.txt

The first third of the speakers of a sex, rounded up, is background (from m001 and f001 on, at most as many as RSR2015
has), the others are evaluation (from m101 and f095 on). With 157 or more there are development speakers too, as in
RSR2015: 157 men are split as there, 50 + 50 + 57, and 157 women 47 + 47 + 63. If there are more speakers than in
RSR2015, the evaluation ids continue after its last (m157, f143). The number of background speakers may be given
instead: 107 men, 50 of them background, correspond to RSR2015 without its development part.

VoicePrivacy (`simulate_voiceprivacy`):

    OUTPUT/simulated_train/                     training speakers, as train-clean-360 in the challenge
    OUTPUT/simulated_test_enrolls/              enrolled speakers of both sexes, as libri_test_enrolls
    OUTPUT/simulated_test_trials_{f,m}/         trial speakers of one sex, as libri_test_trials_f and _m
        wav.scp utt2spk spk2utt spk2gender text; enrolls for enrolment, trials for trials; wav/*.wav

Each trial list is a full cross of the enrolled speakers of a sex with all trial utterances of that sex. Some trial
speakers are not enrolled, as in the challenge. An utterance is a few Harvard sentences; each utterance of a speaker
belongs to a different session (another day, microphone and room), so no two share a channel.

Both are made from a table of recordings, and contain `simulation.json` and `README.txt`, which record how the tree was
made. The tree appears in its place when it is complete, and a tree with other settings is never overwritten, to protect
the user's data. In a recipe, a stage of the run decides whether the tree is up to date. A recording depends only on the
seed, the speaker, the session and the text, so equal sizes give equal bytes for any number of workers.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import version
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile

from spkbase.errors import ConfigError, DataError
from spkbase.files import load_json
from spkbase.locks import sole_use
from spkbase.showing import one_line
from spkbase.work import Work
from spkver.corpora import voices
from spkver.corpora.rsr2015 import DIGITS, PART_SENTENCES, key_files, prompts_file

logger = logging.getLogger(__name__)

SIMULATION_RECORD = "simulation.json"
CONTAINERS = {"wav": "WAV", "sph": "NIST", "flac": "FLAC"}
_VERSION = 1  # version of the samples and the tree; a tree of another version is not reused

# --- RSR2015 ---------------------------------------------------------------------------------------------------------

ENROLMENT_SESSIONS = (1, 4, 7)
SEQUENCES_OF_TEN = 3  # they come first in part 3
# RSR2015 lists every wrong sentence, some ten million trials that the recipe does not score.
WRONG_SENTENCES_OF_SPEAKER = 3
WRONG_SENTENCES_OF_OTHERS = 1
MAX_SESSIONS = 9
MAX_SPEAKERS = 999  # speakers of a sex; ids have three digits
FULL_SIZE = 157  # speakers of a sex in RSR2015; with at least as many, there is a development part

_FOLDERS = {"m": "male", "f": "female"}
_N_BACKGROUND = {"m": 50, "f": 47}  # there are equally many development speakers
_FIRST_EVALUATION = {"m": 101, "f": 95}
_Claim = tuple[str, tuple[int, int]]  # beginning of a trial line, then session and sentence

# --- VoicePrivacy ----------------------------------------------------------------------------------------------------

DATASET = "simulated_test"
TRAINING_SET = "simulated_train"
SEXES = ("f", "m")
# number of the first training speaker; those before it are enrolled or tested
_FIRST_TRAINING = 501
_MOST_SPEAKERS = 499  # speakers of a sex and a part


class Recording(NamedTuple):
    """A row of the table that a simulated corpus is made from: a file below its folder, its speaker and its text."""

    file: str
    sex: str
    number: int
    session: int
    text: str
    take: int = 0

    @property
    def speaker(self) -> str:
        """Id of the speaker."""
        return f"{self.sex}{self.number:03d}"


@one_line
@dataclass(frozen=True)
class Simulated:
    """A simulated corpus.

    Attributes
    ----------
    folder : Path
    counts : dict
        Number of recordings (``n_files``), their total ``seconds``, and the sizes of the lists.
    created : bool
        False if the tree already existed.
    contents : str
        The counts in words.
    """

    folder: Path
    counts: dict[str, Any]
    created: bool
    contents: str

    def __str__(self) -> str:
        if self.created:
            return f"{self.folder}: {self.contents}"
        return f"{self.folder}: exists already: {self.contents}"


def is_simulated(folder: str | Path) -> bool:
    """Return whether a tree was made by ``spkver simulate``, which leaves a record at its root."""
    return (Path(folder) / SIMULATION_RECORD).is_file()


def enrolment_lines(
    speakers: Sequence[str], *, folder: str, n_sentences: int, n_sessions: int, part: int = 1
) -> Iterator[str]:
    """Yield the lines of a .trn file: a model for each speaker and sentence, and the recordings that enrol it.

    In part 3 there is a model for each speaker and session of enrolment.

    Examples
    --------
    >>> for line in enrolment_lines(["m101"], folder="male", n_sentences=1, n_sessions=5):
    ...     print(line, end="")
    m101_001 male/m101/m101_01_001.sph,male/m101/m101_04_001.sph
    """
    sessions = [session for session in ENROLMENT_SESSIONS if session <= n_sessions]
    first = PART_SENTENCES[part][0]
    models = {}
    if part == 3:
        tens = range(first, first + SEQUENCES_OF_TEN)
        for number, session in enumerate(sessions, 1):
            models[f"{number:02d}"] = list(product([session], tens))
    else:
        for sentence in range(first, first + n_sentences):
            models[f"{sentence:03d}"] = list(product(sessions, [sentence]))
    for speaker in speakers:
        for model, utterances in models.items():
            files = [f"{folder}/{_segment(speaker, *utterance)}" for utterance in utterances]
            yield f"{speaker}_{model} {','.join(files)}\n"


def trial_lines(
    speakers: Sequence[str],
    *,
    n_sentences: int,
    n_sessions: int,
    part: int = 1,
    prompts: Mapping[tuple[int, int], Sequence[str]] | None = None,
) -> Iterator[list[str]]:
    """Yield the lines of a .ndx file, a list for each model: model, segment, and four letters.

    The letters say, each Y or N: right speaker and sentence, right speaker and wrong sentence, wrong speaker and right
    sentence, both wrong. All trials of the model's sentence are listed, and those of the `WRONG_SENTENCES_OF_SPEAKER`
    or `WRONG_SENTENCES_OF_OTHERS` sentences that come next, wrapping around from the last to the first. In part 3 a
    line begins with the prompt, and each recording is tested with its own prompt and with as many others; `prompts` has
    the words of each session and sentence.

    Examples
    --------
    >>> for lines in trial_lines(["m101", "m102"], n_sentences=1, n_sessions=2):
    ...     print("".join(lines), end="")
    m101_001,m101/m101_02_001.sph,Y,N,N,N
    m101_001,m102/m102_02_001.sph,N,N,Y,N
    m102_001,m101/m101_02_001.sph,N,N,Y,N
    m102_001,m102/m102_02_001.sph,Y,N,N,N
    """
    sessions = sorted(set(range(1, n_sessions + 1)) - set(ENROLMENT_SESSIONS))
    first = PART_SENTENCES[part][0]
    sentences = range(first, first + n_sentences)
    if part == 3:
        assert prompts is not None
        tests = list(product(sessions, sentences[SEQUENCES_OF_TEN:]))
        digits = [_digits(prompts[test]) for test in tests]
        claims = partial(_claims_of_digits, digits=digits, tests=tests)
        n_texts = len(tests)
        numbers = range(1, n_sessions - len(sessions) + 1)
    else:
        claims = partial(_claims_of_sentence, sessions=sessions, sentences=sentences)
        n_texts = n_sentences
        numbers = sentences
    for target, number in product(speakers, numbers):
        lines = []
        for speaker in speakers:
            is_impostor = speaker != target
            n_wrong = WRONG_SENTENCES_OF_OTHERS if is_impostor else WRONG_SENTENCES_OF_SPEAKER
            for step in range(min(n_wrong + 1, n_texts)):
                letters = ["N"] * 4
                letters[2 * is_impostor + (step > 0)] = "Y"
                for claim, test in claims(target, number, step):
                    lines.append(f"{claim},{_segment(speaker, *test)},{','.join(letters)}\n")
        yield lines


def draw_prompts(seed: int) -> dict[tuple[int, int], tuple[str, ...]]:
    """Draw the digits of each session and sentence of part 3; sequences differ, and digits do not recur within one."""
    random = np.random.default_rng(seed)
    first, last = PART_SENTENCES[3]
    prompts: dict[tuple[int, int], tuple[str, ...]] = {}
    for session, sentence in product(range(1, MAX_SESSIONS + 1), range(first, last + 1)):
        n_digits = 10 if sentence < first + SEQUENCES_OF_TEN else 5
        words: tuple[str, ...] = ()
        while not words or words in prompts.values():
            words = tuple(DIGITS[digit] for digit in random.permutation(10)[:n_digits])
        prompts[session, sentence] = words
    return prompts


class SpeakerSplit(NamedTuple):
    """Speaker ids of one sex."""

    background: tuple[str, ...]
    development: tuple[str, ...]
    evaluation: tuple[str, ...]


@one_line
@dataclass(frozen=True)
class CorpusSize:
    """Size of a simulated RSR2015.

    Attributes
    ----------
    n_speakers : int
        Number of speakers of each sex, 3 to 999: at least a background speaker and two speakers for trials.
    n_sentences : int
        Number of sentences, 1 to 30; in part 3, 4 to 13 sequences of digits, the first three of which are for
        enrolment.
    n_sessions : int
        Number of sessions, 2 to 9. Sessions 1, 4 and 7 are for enrolment, the others for tests.
    n_background : int or None
        Background speakers of each sex, at most as many as RSR2015 has (50 men, 47 women); the others are then
        evaluation speakers. By default a third, and with 157 speakers or more there are development speakers.
    seed : int
        Seed of all draws, from 0.
    gender : {'m', 'f', 'both'}
    audio_format : {'wav', 'sph', 'flac'}
        16-bit samples at 16 kHz. Key files always name '.sph' files, as RSR2015's do.
    part : {1, 2, 3}
        Sentences, commands or digits.

    Raises
    ------
    DataError
        If a size is out of its range.
    """

    n_speakers: int
    n_sentences: int
    n_sessions: int
    n_background: int | None = None
    seed: int = 0
    gender: str = "m"
    audio_format: str = "wav"
    part: int = 1

    def __post_init__(self) -> None:
        if self.part not in PART_SENTENCES:
            raise DataError(f"part is {self.part!r}: expected 1, 2 or 3")
        first, last = PART_SENTENCES[self.part]
        most = last - first + 1
        fewest = 1
        remedy = f"part {self.part} has {most} sentences"
        if self.part == 3:
            fewest = SEQUENCES_OF_TEN + 1
            remedy = "the first three enrol, and at least one is tested"
        speakers_remedy = "at least one background speaker and two evaluation speakers"
        sessions_remedy = "session 1 is for enrolment, session 2 is the first for tests"
        ranges = {
            "n_speakers": (3, MAX_SPEAKERS, speakers_remedy),
            "n_sentences": (fewest, most, remedy),
            "n_sessions": (2, MAX_SESSIONS, sessions_remedy),
            "seed": (0, 2**63 - 1, "each seed gives another corpus"),
        }
        for name, (lowest, highest, remedy) in ranges.items():
            value = getattr(self, name)
            if not lowest <= value <= highest:
                raise DataError(f"{name} is {value}: expected {lowest} to {highest}", remedy=remedy)
        if self.gender not in (*_FOLDERS, "both"):
            raise DataError(f"gender is {self.gender!r}: expected 'm', 'f' or 'both'")
        most = min(self.n_speakers - 2, *(_N_BACKGROUND[sex] for sex in self.sexes))
        if self.n_background is not None and not 1 <= self.n_background <= most:
            remedy = (
                "at least two evaluation speakers, and no more background speakers than RSR2015 has"
            )
            raise DataError(
                f"n_background is {self.n_background}: expected 1 to {most}", remedy=remedy
            )
        if self.audio_format not in CONTAINERS:
            formats = ", ".join(CONTAINERS)
            raise DataError(f"audio_format is {self.audio_format!r}: expected one of {formats}")

    @property
    def sexes(self) -> str:
        """The letters of the sexes."""
        return "mf" if self.gender == "both" else self.gender


def simulate_rsr2015(output: str | Path, size: CorpusSize, *, jobs: int | None = None) -> Simulated:
    """Write a tree of synthetic speech in the layout of a part of RSR2015.

    A larger corpus contains the recordings of a smaller one under the same ids.

    Parameters
    ----------
    output : path
        Folder to make. The tree appears there when it is complete; a finished tree of the same size is kept.
    size : CorpusSize
    jobs : int, optional
        Worker processes; all cores by default.

    Raises
    ------
    DataError
        If `output` holds something else or cannot be written, or the package espeakng-loader (extra `demo`) is
        missing.
    """
    output = Path(output).resolve()
    splits = {sex: split_speakers(sex, size.n_speakers, size.n_background) for sex in size.sexes}
    first, _ = PART_SENTENCES[size.part]
    sessions = range(1, size.n_sessions + 1)
    sentences = range(first, first + size.n_sentences)
    source = "Texts are the project's own."
    if size.part == 1:
        source = "Sentences: Harvard sentences, IEEE 1969, public domain."
    texts = voices.SENTENCES if size.part == 1 else voices.COMMANDS
    prompts = draw_prompts(size.seed)
    table = []
    for sex, split in splits.items():
        for speaker, session, sentence in product(sum(split, ()), sessions, sentences):
            file = f"sph/{_FOLDERS[sex]}/{speaker}/{speaker}_{session:02d}_{sentence:03d}.{size.audio_format}"
            if size.part == 3:
                text = ", ".join(prompts[session, sentence]) + "."
            else:
                text = texts[sentence - first]
            table.append(Recording(file, sex, int(speaker[1:]), session, text, sentence))
    background = ""
    if size.n_background is not None:
        background = f" --background {size.n_background}"
    command = (
        f"spkver simulate rsr2015 OUTPUT --part {size.part} --speakers {size.n_speakers}{background}"
        f" --sentences {size.n_sentences} --sessions {size.n_sessions} --seed {size.seed} --gender {size.gender}"
        f" --format {size.audio_format}"
    )
    readme = f"""\
This is synthetic speech, not RSR2015. It has the folders, names and key files of RSR2015 part {size.part}, so that
programs for that corpus run on it. No real person speaks here, and error rates on it say nothing about
real speech.

Made by
    {command}
with ENGINE (eSpeak NG) and the signal processing of spkver; simulation.json holds every setting.
{source}

Key files list, for each model, all trials of the correct text, three wrong texts of its own speaker and one
of every other speaker; RSR2015 lists all wrong sentences.
"""
    about = f"synthetic speech in the shape of RSR2015 part {size.part}, made by spkver"
    more = {"speakers": {sex: split._asdict() for sex, split in splits.items()}}
    lists = partial(_write_keys, splits=splits, size=size)
    counts, created = simulate(
        output, table, asdict(size), about, lists, readme, more=more, jobs=jobs
    )
    speakers = [sum(map(len, part)) for part in zip(*splits.values(), strict=True)]
    text = (
        "synthetic speech of {} background, {} development and {} evaluation speakers, {n_files} recordings"
        " ({hours:.1f} h), {n_models} models, {n_targets} target and {n_impostors} impostor trials"
    )
    return Simulated(
        output, counts, created, text.format(*speakers, hours=counts["seconds"] / 3600, **counts)
    )


def split_speakers(gender: str, n_speakers: int, n_background: int | None = None) -> SpeakerSplit:
    """Return the ids of one sex's background, development and evaluation speakers; for the rule see the module.

    Examples
    --------
    >>> split_speakers("f", 4)
    SpeakerSplit(background=('f001', 'f002'), development=(), evaluation=('f095', 'f096'))
    >>> split_speakers("f", 4, n_background=1)
    SpeakerSplit(background=('f001',), development=(), evaluation=('f095', 'f096', 'f097'))
    """
    most = _N_BACKGROUND[gender]
    n_development = 0
    if n_background is None:
        n_background = min(-(-n_speakers // 3), most)
        if n_speakers >= FULL_SIZE:
            n_development = most
    first = _FIRST_EVALUATION[gender]
    n_evaluation = n_speakers - n_background - n_development
    return SpeakerSplit(
        background=_ids(gender, 1, n_background),
        development=_ids(gender, most + 1, n_development),
        evaluation=_ids(gender, first, n_evaluation),
    )


@dataclass(frozen=True)
class Sizes:
    """Numbers of speakers (of each sex) and utterances.

    Attributes
    ----------
    enrolled_f, enrolled_m : int
        Enrolled speakers, 29 together by default as in libri_test.
    strangers : int
        Trial speakers of each sex who are not enrolled.
    training : int
        Training speakers of each sex.
    enrolment_utterances, trial_utterances, training_utterances : int
        Numbers of utterances of each speaker.
    sentences : int
        Number of sentences in an utterance.
    seed : int
        Seed of all draws.
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
        enrolled = _MOST_SPEAKERS - self.strangers
        highest = {
            "enrolled_f": enrolled,
            "enrolled_m": enrolled,
            "sentences": len(voices.SENTENCES),
            "seed": 2**63 - 1,
        }
        for name, value in asdict(self).items():
            least = lowest.get(name, 1)
            most = highest.get(name, _MOST_SPEAKERS)
            if not least <= value <= most:
                raise ConfigError(f"{name} is {value}: expected {least} to {most}")


def simulate_voiceprivacy(
    output: str | Path, sizes: Sizes | None = None, *, jobs: int | None = None
) -> Simulated:
    """Write SIMULATED sets in the challenge's layout.

    Parameters
    ----------
    output : path
        Folder to make. It appears when it is complete; a finished set of the same sizes is kept.
    sizes : Sizes, optional
    jobs : int, optional
        Worker processes; all cores by default.

    Raises
    ------
    DataError
        If `output` holds something else or cannot be written, or the package espeakng-loader (extra `demo`) is
        missing.
    """
    output = Path(output).resolve()
    sizes = sizes or Sizes()
    # a speaker's sessions are numbered across the directories
    n_enrol = sizes.enrolment_utterances
    enrolment_sessions = range(1, n_enrol + 1)
    trial_sessions = range(n_enrol + 1, n_enrol + sizes.trial_utterances + 1)
    training_sessions = range(1, sizes.training_utterances + 1)
    trained = range(_FIRST_TRAINING, _FIRST_TRAINING + sizes.training)
    table = []
    for sex, enrolled in (("f", sizes.enrolled_f), ("m", sizes.enrolled_m)):
        tried = range(1, enrolled + sizes.strangers + 1)
        for directory, numbers, sessions in (
            (f"{DATASET}_enrolls", range(1, enrolled + 1), enrolment_sessions),
            (f"{DATASET}_trials_{sex}", tried, trial_sessions),
            (TRAINING_SET, trained, training_sessions),
        ):
            for number, session in product(numbers, sessions):
                file = f"{directory}/wav/{sex}{number:03d}-{session:02d}.wav"
                text = utterance_text(number, session, sizes.sentences)
                table.append(Recording(file, sex, number, session, text))
    options = " ".join(
        f"--{field.name.replace('_', '-')} {getattr(sizes, field.name)}" for field in fields(Sizes)
    )
    readme = f"""\
SIMULATED speech, not a set of the VoicePrivacy Challenge: it has the challenge's data directories, so
that programs for them run on it. No real person speaks here, and error rates on it say nothing about real speech.

Made by
    spkver simulate voiceprivacy OUTPUT {options}
with ENGINE (eSpeak NG) and the signal processing of spkver; simulation.json holds every setting.
Sentences: Harvard sentences, IEEE 1969, public domain. Paths in wav.scp are relative to this folder.
"""
    about = (
        "SIMULATED: synthetic speech in the layout of the VoicePrivacy Challenge, made by spkver"
    )
    lists = partial(write_challenge_lists, table=table)
    counts, created = simulate(output, table, asdict(sizes), about, lists, readme, jobs=jobs)
    text = (
        "SIMULATED speech of {n_enrolled} enrolled, {n_trial_speakers} trial and {n_training} training speakers,"
        " {n_files} recordings ({minutes:.0f} min), {n_targets} target and {n_nontargets} nontarget trials"
    )
    return Simulated(output, counts, created, text.format(minutes=counts["seconds"] / 60, **counts))


def utterance_text(number: int, session: int, n_sentences: int) -> str:
    """Return the sentences of an utterance; those of neighbours in number and session differ.

    Examples
    --------
    >>> utterance_text(1, 1, 1)
    'A large size in stockings is hard to sell.'
    """
    # over the numbers 0 to 29, 7 * number visits all sentences: text tells nothing about the speaker
    first = 7 * number + 2 * session
    n_all = len(voices.SENTENCES)
    return " ".join(voices.SENTENCES[(first + 11 * i) % n_all] for i in range(n_sentences))


def write_recording(path: Path, samples: np.ndarray, audio_format: str) -> int:
    """Write samples of 16 bits; return their number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    container = CONTAINERS[audio_format]
    soundfile.write(path, samples, voices.SAMPLE_RATE, format=container, subtype="PCM_16")
    return len(samples)


def simulate(
    output: Path,
    table: Sequence[Recording],
    parameters: dict[str, Any],
    about: str,
    write_lists: Callable[[Path], dict[str, int]],
    readme: str,
    *,
    record: Callable[..., int] | None = None,
    more: dict[str, Any] | None = None,
    jobs: int | None = None,
) -> tuple[dict[str, Any], bool]:
    """Make a tree unless it exists; return its counts and whether it was made.

    `record` writes the recordings of a speaker and returns their samples; by default each is synthesised by itself.

    Raises
    ------
    DataError
        If `output` holds something else or cannot be written, or the package espeakng-loader (extra `demo`) is
        missing.
    """
    identity: dict[str, Any] = {
        "version": _VERSION,
        "variability": json.loads(json.dumps(asdict(voices.VARIABILITY))),
    }
    if _is_finished(output, {**identity, **parameters}, [row.file for row in table]):
        logger.info("%s exists already", output)
        return load_json(output / SIMULATION_RECORD)["counts"], False
    voices.loader()
    engine = f"espeakng-loader {version('espeakng-loader')}"
    draft = output.with_name(f"{output.name[:80]}.draft")
    speakers = [list(rows) for _, rows in groupby(table, lambda row: (row.sex, row.number))]
    audio_format = parameters.get("audio_format", "wav")
    with sole_use(draft):
        tree = draft / "tree"
        try:
            shutil.rmtree(tree, ignore_errors=True)  # left by a process that was killed
            tree.mkdir()
            work = partial(
                record or _record_speaker,
                tree=tree,
                seed=parameters["seed"],
                audio_format=audio_format,
            )
            with closing(
                Work(jobs).map(work, speakers, processes=True, description="simulated speakers")
            ) as lengths:  # type: ignore[type-var]
                seconds = sum(lengths) / voices.SAMPLE_RATE
            counts = {"n_files": len(table), "seconds": round(seconds, 3), **write_lists(tree)}
            facts = {
                "about": about,
                **identity,
                "engine": engine,
                "parameters": parameters,
                **(more or {}),
                "counts": counts,
            }
            record_text = json.dumps(facts, indent=1) + "\n"
            (tree / SIMULATION_RECORD).write_text(record_text, encoding="utf-8")
            (tree / "README.txt").write_text(readme.replace("ENGINE", engine), encoding="utf-8")
            tree.replace(output)
        except (OSError, soundfile.LibsndfileError) as error:
            text = f"cannot be written: {getattr(error, 'strerror', None) or error}"
            raise DataError(text, file=output, remedy="check the folder and the disk") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return counts, True


def _is_finished(output: Path, wanted: dict[str, Any], files: Sequence[str]) -> bool:
    """Return whether the requested tree exists.

    Anything else in its place is an error, so that nothing is overwritten.
    """
    if output.exists() and not output.is_dir():
        raise DataError("is a file", file=output, remedy="name a folder that does not exist yet")
    if not output.exists() or not any(output.iterdir()):
        return False
    remedy = "choose another folder or remove this one"
    try:
        record = load_json(output / SIMULATION_RECORD)
        older = {"part": 1, "version": record["version"], "variability": record["variability"]}
        recorded = {**older, **record["parameters"]}
    except (ValueError, KeyError, TypeError):
        raise DataError(
            "is not empty and not a simulated corpus", file=output, remedy=remedy
        ) from None
    different = [
        f"{name} {recorded.get(name)}, not {value}"
        for name, value in wanted.items()
        if recorded.get(name) != value
    ]
    if different:
        raise DataError(
            f"holds a simulated corpus with {'; '.join(different)}", file=output, remedy=remedy
        )
    missing = [file for file in files if not (output / file).is_file()]
    if missing:
        text = (
            f"lacks {len(missing)} of the corpus's {len(files)} recordings, the first {missing[0]}"
        )
        raise DataError(text, file=output, remedy=remedy)
    return True


def _record_speaker(table: Sequence[Recording], *, tree: Path, seed: int, audio_format: str) -> int:
    """Write the recordings of a speaker; return their total number of samples."""
    voice = voices.make_voice(table[0].sex, table[0].number, seed)
    n_samples = 0
    for row in table:
        session = voices.make_session(row.sex, row.number, row.session, seed)
        speech = voices.synthesise_utterance(voice, row.text, session, take=row.take)
        samples = np.round(speech * 32767).astype(np.int16)
        n_samples += write_recording(tree / row.file, samples, audio_format)
    return n_samples


def _segment(speaker: str, session: int, sentence: int) -> str:
    return f"{speaker}/{speaker}_{session:02d}_{sentence:03d}.sph"


def _claims_of_sentence(
    target: str, number: int, step: int, *, sessions: Sequence[int], sentences: range
) -> Iterator[_Claim]:
    """Yield the beginning of a trial line, and the session and sentence that are tested."""
    sentence = sentences[(number - sentences[0] + step) % len(sentences)]
    for session in sessions:
        yield f"{target}_{number:03d}", (session, sentence)


def _claims_of_digits(
    target: str, number: int, step: int, *, digits: list[str], tests: list[tuple[int, int]]
) -> Iterator[_Claim]:
    """Yield the same for part 3, where each recording is claimed to hold the digits of the one `step` places later."""
    for text, test in zip(digits[step:] + digits[:step], tests, strict=True):
        yield f"{text},{target}_{number:02d}", test


def _digits(words: Sequence[str]) -> str:
    return "-".join(str(DIGITS.index(word)) for word in words)


def _ids(gender: str, first: int, count: int) -> tuple[str, ...]:
    return tuple(f"{gender}{number:03d}" for number in range(first, first + count))


def _write_keys(tree: Path, splits: dict[str, SpeakerSplit], size: CorpusSize) -> dict[str, int]:
    counts = {"n_models": 0, "n_targets": 0, "n_impostors": 0}
    sizes = {"n_sentences": size.n_sentences, "n_sessions": size.n_sessions, "part": size.part}
    prompts = draw_prompts(size.seed)
    for sex, split in splits.items():
        for partition, speakers in (("dev", split.development), ("eval", split.evaluation)):
            if not speakers:
                continue
            enrolment, trials = key_files(tree, sex, partition, size.part)
            enrolment.parent.mkdir(parents=True, exist_ok=True)
            trials.parent.mkdir(exist_ok=True)
            models = list(enrolment_lines(speakers, folder=_FOLDERS[sex], **sizes))
            enrolment.write_text("".join(models), encoding="ascii")
            n_lines: Counter[str] = Counter()
            with trials.open("w", encoding="ascii") as handle:
                for lines in trial_lines(speakers, prompts=prompts, **sizes):
                    handle.writelines(lines)
                    n_lines.update(line[-8:-1] for line in lines)
            if partition == "eval":
                counts["n_models"] += len(models)
                counts["n_targets"] += n_lines["Y,N,N,N"]
                counts["n_impostors"] += n_lines["N,N,Y,N"]
    if size.part == 3:
        with prompts_file(tree).open("w", encoding="ascii") as handle:
            for (session, sentence), words in prompts.items():
                handle.write(f"{session:02d},{sentence:03d},{' '.join(words)}\n")
    return counts


def write_challenge_lists(tree: Path, table: Sequence[Recording]) -> dict[str, int]:
    """Write the lists of all data directories of a challenge; return how many speakers and trials they hold."""
    directories: dict[str, dict[str, Recording]] = {}
    sexes: dict[str, dict[str, str]] = {}
    for row in table:
        directory = row.file.split("/")[0]
        directories.setdefault(directory, {})[Path(row.file).stem] = row
        sexes.setdefault(directory, {})[row.speaker] = row.sex
    counts = dict.fromkeys(
        ("n_enrolled", "n_training", "n_trial_speakers", "n_targets", "n_nontargets"), 0
    )
    for directory, rows in directories.items():
        lists = _directory_lists(rows)
        if directory.endswith("_enrolls"):
            lists["enrolls"] = sorted(rows)
            kind = "n_enrolled"
        elif "_trials_" in directory:
            kind = "n_trial_speakers"
            enrolled = sexes[f"{directory.partition('_trials_')[0]}_enrolls"]
            models = sorted(name for name, sex in enrolled.items() if sex == directory[-1])
            lists["trials"] = []
            for model, key in product(models, sorted(rows)):
                label = "target" if model == rows[key].speaker else "nontarget"
                lists["trials"].append(f"{model} {key} {label}")
                counts[f"n_{label}s"] += 1
        else:
            kind = "n_training"
        counts[kind] += len(sexes[directory])
        for name, lines in lists.items():
            text = "".join(f"{line}\n" for line in lines)
            (tree / directory / name).write_text(text, encoding="ascii")
    return counts


def _directory_lists(rows: Mapping[str, Recording]) -> dict[str, list[str]]:
    """Return the lines of the lists common to all data directories."""
    lists: dict[str, list[str]] = {"wav.scp": [], "utt2spk": [], "text": []}
    utterances: dict[str, list[str]] = {}
    for key, row in rows.items():
        utterances.setdefault(row.speaker, []).append(key)
    for key, row in sorted(rows.items()):
        # in the usual form of speech corpora: capitals, no punctuation but apostrophes
        words = re.sub("[^A-Z ']", "", row.text.upper())
        lists["wav.scp"].append(f"{key} {row.file}")
        lists["utt2spk"].append(f"{key} {row.speaker}")
        lists["text"].append(f"{key} {words}")
    speakers = sorted(utterances)
    lists["spk2utt"] = [" ".join([speaker, *utterances[speaker]]) for speaker in speakers]
    lists["spk2gender"] = [f"{speaker} {speaker[0]}" for speaker in speakers]
    return lists
