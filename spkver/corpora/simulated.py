"""The embedded simulated corpus: a tree of synthetic speech in the shape of RSR2015 part 1.

    OUTPUT/sph/male/m001/m001_01_001.wav       speaker, session 01 to 09, sentence 001 to 030
    OUTPUT/key/part1/trn/3sesspwd_eval_m.trn   models: one for each evaluation speaker and sentence
    OUTPUT/key/part1/ndx/3sess-pwd_eval_m.ndx  trials
    OUTPUT/simulation.json, OUTPUT/README.txt  what the tree is and how it was made

The first third of the speakers of a sex, rounded up, is background (from m001 and f001 on, at most as many as RSR2015
has), the others are evaluation (from m101 and f095 on). With 157 or more there are development speakers too, as in
RSR2015: 157 men are its own split, 50 + 50 + 57, and 157 women 47 + 47 + 63. Where that is more than RSR2015 has, the
evaluation ids go on past its last (m157, f143). A number of background speakers may be given instead: 107 men with 50
of them background are RSR2015's own, without those of the development part.

**Key files of the simulated corpus, in the form of those of RSR2015 part 1.**
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import ordered_map
from spkver.corpora import espeak, trees
from spkver.corpora.voices import SAMPLE_RATE, SENTENCES, make_session, make_voice, synthesise_utterance

logger = logging.getLogger(__name__)

ENROLMENT_SESSIONS = (1, 4, 7)
# RSR2015 lists every wrong sentence, some ten million trials that the recipe does not score.
WRONG_SENTENCES_OF_SPEAKER = 3
WRONG_SENTENCES_OF_OTHERS = 1


def enrolment_lines(speakers: Sequence[str], *, folder: str, n_sentences: int, n_sessions: int) -> Iterator[str]:
    """Yield the lines of a .trn file: a model for each speaker and sentence, and the recordings that enrol it.

    Examples
    --------
    >>> for line in enrolment_lines(["m101"], folder="male", n_sentences=1, n_sessions=5):
    ...     print(line, end="")
    m101_001 male/m101/m101_01_001.sph,male/m101/m101_04_001.sph
    """
    sessions = [session for session in ENROLMENT_SESSIONS if session <= n_sessions]
    for speaker in speakers:
        for sentence in range(1, n_sentences + 1):
            files = ",".join(f"{folder}/{_segment(speaker, session, sentence)}" for session in sessions)
            yield f"{speaker}_{sentence:03d} {files}\n"


def trial_lines(speakers: Sequence[str], *, n_sentences: int, n_sessions: int) -> Iterator[list[str]]:
    """Yield the lines of a .ndx file, a list for each model: model, segment, and four letters.

    The letters say, each Y or N: right speaker and sentence, right speaker and wrong sentence, wrong speaker and right
    sentence, both wrong. All trials of the model's sentence are listed, and those of the `WRONG_SENTENCES_OF_SPEAKER`
    or `WRONG_SENTENCES_OF_OTHERS` sentences that come next, round the end to the first.

    Examples
    --------
    >>> for lines in trial_lines(["m101", "m102"], n_sentences=1, n_sessions=2):
    ...     print("".join(lines), end="")
    m101_001,m101/m101_02_001.sph,Y,N,N,N
    m101_001,m102/m102_02_001.sph,N,N,Y,N
    m102_001,m101/m101_02_001.sph,N,N,Y,N
    m102_001,m102/m102_02_001.sph,Y,N,N,N
    """
    sessions = [session for session in range(1, n_sessions + 1) if session not in ENROLMENT_SESSIONS]
    for target in speakers:
        for sentence in range(1, n_sentences + 1):
            model = f"{target}_{sentence:03d}"
            lines = []
            for speaker in speakers:
                n_wrong = WRONG_SENTENCES_OF_SPEAKER if speaker == target else WRONG_SENTENCES_OF_OTHERS
                for step in range(min(n_wrong + 1, n_sentences)):
                    said = (sentence - 1 + step) % n_sentences + 1
                    letters = _letters(right_speaker=speaker == target, right_sentence=step == 0)
                    lines += [f"{model},{_segment(speaker, session, said)},{letters}\n" for session in sessions]
            yield lines


def _segment(speaker: str, session: int, sentence: int) -> str:
    return f"{speaker}/{speaker}_{session:02d}_{sentence:03d}.sph"


def _letters(*, right_speaker: bool, right_sentence: bool) -> str:
    kind = (not right_speaker) * 2 + (not right_sentence)
    return ",".join("Y" if number == kind else "N" for number in range(4))


MAX_SESSIONS = 9
MAX_SPEAKERS = 999  # of a sex; ids have three digits
FULL_SIZE = 157  # speakers of a sex in RSR2015, from which on there is a development part

_FOLDERS = {"m": "male", "f": "female"}
_N_BACKGROUND = {"m": 50, "f": 47}  # and as many development speakers
_FIRST_EVALUATION = {"m": 101, "f": 95}
_VERSION = 1  # of the samples and the tree; a tree of another version is not taken for a finished one


@dataclass(frozen=True)
class SimulatedCorpus:
    """What a simulated corpus holds; the counts are sums over its sexes.

    Attributes
    ----------
    folder : Path
    genders : str
        'm', 'f' or 'mf'.
    n_background, n_development, n_evaluation : int
        Speakers.
    n_files : int
    seconds : float
        Length of all recordings together.
    n_models, n_targets, n_impostors : int
        Of the evaluation part: models, trials of the right speaker and sentence, and of the right sentence by others.
    created : bool
        False if the tree was there already.
    """

    folder: Path
    genders: str
    n_background: int
    n_development: int
    n_evaluation: int
    n_files: int
    seconds: float
    n_models: int
    n_targets: int
    n_impostors: int
    created: bool

    def __str__(self) -> str:
        return (
            f"{self.folder}: {'' if self.created else 'there already: '}synthetic speech of"
            f" {self.n_background} background, {self.n_development} development and {self.n_evaluation} evaluation"
            f" speakers, {self.n_files} recordings ({self.seconds / 3600:.1f} h), {self.n_models} models,"
            f" {self.n_targets} target and {self.n_impostors} impostor trials"
        )


@dataclass(frozen=True)
class Split:
    """Speaker ids of one sex."""

    background: tuple[str, ...]
    development: tuple[str, ...]
    evaluation: tuple[str, ...]

    @property
    def speakers(self) -> tuple[str, ...]:
        """All of them."""
        return self.background + self.development + self.evaluation


@one_line
@dataclass(frozen=True)
class CorpusSize:
    """What is simulated, and how much of it.

    Attributes
    ----------
    n_speakers : int
        Of each sex asked for, 3 to 999: a background speaker and two whom the trials compare.
    n_sentences : int
        1 to 30.
    n_sessions : int
        2 to 9. Sessions 1, 4 and 7 enrol, the others test.
    n_background : int or None
        Background speakers of each sex, at most as many as RSR2015 has (50 men, 47 women); the others are evaluation
        speakers then. By default a third, and there are development speakers where there is room for them.
    seed : int
        From 0.
    gender : {'m', 'f', 'both'}
    audio_format : {'wav', 'sph', 'flac'}
        16-bit samples at 16 kHz. Key files name '.sph' files whatever it is, as RSR2015's do.
    """

    n_speakers: int
    n_sentences: int
    n_sessions: int
    n_background: int | None = None
    seed: int = 0
    gender: str = "m"
    audio_format: str = "wav"


def simulate_rsr2015(output: str | Path, size: CorpusSize, *, jobs: int | None = None) -> SimulatedCorpus:
    """Write a tree of synthetic speech in the shape of RSR2015 part 1.

    The same size gives the same bytes, whatever `jobs` is. A recording depends on the seed, the speaker's id, the
    sentence and the session only, so a larger corpus holds the smaller one's recordings of the same ids.

    Parameters
    ----------
    output : path
        Folder to make. The tree appears there when it is whole; a finished tree of the same size is left as it is.
    size : CorpusSize
    jobs : int, optional
        Worker processes; all cores by default.

    Returns
    -------
    SimulatedCorpus

    Raises
    ------
    DataError
        If a size is out of its range, `output` holds something else, the disk is too small, or the package
        espeakng-loader (extra `demo`) is missing.
    """
    output = Path(output).resolve()
    parameters = asdict(size)
    _check_parameters(parameters)
    splits = {sex: split_speakers(sex, size.n_speakers, size.n_background) for sex in _sexes(size.gender)}
    files = list(_audio_files(splits, parameters))
    if trees.is_finished(output, {**trees.identity(_VERSION), **parameters}, files):
        logger.info("%s is there already", output)
        return _summary(output, trees.read_record(output), created=False)
    espeak.loader()
    trees.check_space(output, len(files))
    record = _write_tree(output, splits, parameters, jobs)
    return _summary(output, record, created=True)


def split_speakers(gender: str, n_speakers: int, n_background: int | None = None) -> Split:
    """Return the ids of one sex's background, development and evaluation speakers; the top of the module has the rule.

    Examples
    --------
    >>> split_speakers("f", 4)
    Split(background=('f001', 'f002'), development=(), evaluation=('f095', 'f096'))
    >>> split_speakers("f", 4, n_background=1)
    Split(background=('f001',), development=(), evaluation=('f095', 'f096', 'f097'))
    """
    most = _N_BACKGROUND[gender]
    n_development = most if n_speakers >= FULL_SIZE and n_background is None else 0
    if n_background is None:
        n_background = min(-(-n_speakers // 3), most)
    first = _FIRST_EVALUATION[gender]
    n_evaluation = n_speakers - n_background - n_development
    return Split(
        background=_ids(gender, 1, n_background),
        development=_ids(gender, most + 1, n_development),
        evaluation=_ids(gender, first, n_evaluation),
    )


def _sexes(gender: str) -> str:
    return "mf" if gender == "both" else gender


def _ids(gender: str, first: int, count: int) -> tuple[str, ...]:
    return tuple(f"{gender}{number:03d}" for number in range(first, first + count))


def _check_parameters(parameters: dict[str, Any]) -> None:
    ranges = {
        "n_speakers": (3, MAX_SPEAKERS, "one background speaker and two evaluation speakers at least"),
        "n_sentences": (1, len(SENTENCES), "the corpus has 30 sentences"),
        "n_sessions": (2, MAX_SESSIONS, "session 1 enrols, session 2 is the first that tests"),
        "seed": (0, 2**63 - 1, "any seed gives a corpus of its own"),
    }
    for name, (lowest, highest, remedy) in ranges.items():
        if not lowest <= parameters[name] <= highest:
            raise DataError(f"{name} is {lowest} to {highest}, not {parameters[name]}", remedy=remedy)
    if parameters["gender"] not in (*_FOLDERS, "both"):
        raise DataError(f"gender is 'm', 'f' or 'both', not {parameters['gender']!r}")
    most = min(parameters["n_speakers"] - 2, *(_N_BACKGROUND[sex] for sex in _sexes(parameters["gender"])))
    if parameters["n_background"] is not None and not 1 <= parameters["n_background"] <= most:
        raise DataError(
            f"n_background is 1 to {most}, not {parameters['n_background']}",
            remedy="two evaluation speakers at least, and no more background speakers than RSR2015 has",
        )
    if parameters["audio_format"] not in trees.CONTAINERS:
        raise DataError(f"audio_format is one of {', '.join(trees.CONTAINERS)}, not {parameters['audio_format']!r}")


def _audio_files(splits: dict[str, Split], parameters: dict[str, Any]) -> Iterator[str]:
    for sex, split in splits.items():
        for speaker in split.speakers:
            for session in range(1, parameters["n_sessions"] + 1):
                for sentence in range(1, parameters["n_sentences"] + 1):
                    yield _audio_file(sex, speaker, session, sentence, parameters["audio_format"])


def _audio_file(sex: str, speaker: str, session: int, sentence: int, audio_format: str) -> str:
    return f"sph/{_FOLDERS[sex]}/{speaker}/{speaker}_{session:02d}_{sentence:03d}.{audio_format}"


def _write_tree(output: Path, splits: dict[str, Split], parameters: dict[str, Any], jobs: int | None) -> dict[str, Any]:
    with trees.new_tree(output, {**trees.identity(_VERSION), **parameters}) as tree:
        seconds = _write_audio(tree, splits, parameters, jobs)
        counts = _write_keys(tree, splits, parameters)
        record = _record(splits, parameters, {"seconds": round(seconds, 3), **counts})
        trees.write_record(tree, record, _readme(record))
    return record


def _write_audio(tree: Path, splits: dict[str, Split], parameters: dict[str, Any], jobs: int | None) -> float:
    speakers = [(sex, speaker) for sex, split in splits.items() for speaker in split.speakers]
    work = partial(_record_speaker, tree=tree, parameters=parameters)
    with closing(ordered_map(work, speakers, jobs=jobs, description="simulated speakers")) as seconds:  # type: ignore[type-var]
        return sum(seconds)


def _record_speaker(speaker: tuple[str, str], *, tree: Path, parameters: dict[str, Any]) -> float:
    """Write all recordings of a speaker; return their length in seconds."""
    sex, name = speaker
    number, seed, audio_format = int(name[1:]), parameters["seed"], parameters["audio_format"]
    voice = make_voice(sex, number, seed)
    (tree / "sph" / _FOLDERS[sex] / name).mkdir(parents=True, exist_ok=True)
    n_samples = 0
    for session_number in range(1, parameters["n_sessions"] + 1):
        session = make_session(sex, number, session_number, seed)
        for sentence, text in enumerate(SENTENCES[: parameters["n_sentences"]], 1):
            file = tree / _audio_file(sex, name, session_number, sentence, audio_format)
            length = trees.n_recorded(file)
            if length is None:
                samples = synthesise_utterance(voice, text, session, take=sentence)
                length = trees.write_recording(file, samples, audio_format)
            n_samples += length
    return n_samples / SAMPLE_RATE


def _write_keys(tree: Path, splits: dict[str, Split], parameters: dict[str, Any]) -> dict[str, int]:
    counts = {"n_models": 0, "n_targets": 0, "n_impostors": 0}
    sizes = {name: parameters[name] for name in ("n_sentences", "n_sessions")}
    for folder in ("trn", "ndx"):
        (tree / "key/part1" / folder).mkdir(parents=True, exist_ok=True)
    for sex, split in splits.items():
        for part, speakers in (("dev", split.development), ("eval", split.evaluation)):
            if not speakers:
                continue
            models = list(enrolment_lines(speakers, folder=_FOLDERS[sex], **sizes))
            (tree / f"key/part1/trn/3sesspwd_{part}_{sex}.trn").write_text("".join(models), encoding="ascii")
            with (tree / f"key/part1/ndx/3sess-pwd_{part}_{sex}.ndx").open("w", encoding="ascii") as handle:
                for lines in trial_lines(speakers, **sizes):
                    handle.writelines(lines)
                    if part == "eval":
                        counts["n_targets"] += sum(line.endswith(",Y,N,N,N\n") for line in lines)
                        counts["n_impostors"] += sum(line.endswith(",N,N,Y,N\n") for line in lines)
            counts["n_models"] += len(models) if part == "eval" else 0
    return counts


def _record(splits: dict[str, Split], parameters: dict[str, Any], counts: dict[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "about": "synthetic speech in the shape of RSR2015 part 1, made by spkver",
        **trees.identity(_VERSION),
        "engine": f"espeakng-loader {version('espeakng-loader')}",
        "parameters": parameters,
        "speakers": {sex: asdict(split) for sex, split in splits.items()},
        "counts": {"n_files": sum(1 for _ in _audio_files(splits, parameters)), **counts},
    }


def _readme(record: dict[str, Any]) -> str:
    parameters = record["parameters"]
    background = f" --background {parameters['n_background']}" if parameters["n_background"] is not None else ""
    command = (
        f"spkver simulate rsr2015 OUTPUT --speakers {parameters['n_speakers']}{background}"
        f" --sentences {parameters['n_sentences']} --sessions {parameters['n_sessions']} --seed {parameters['seed']}"
        f" --gender {parameters['gender']} --format {parameters['audio_format']}"
    )
    return f"""This is synthetic speech, not RSR2015. It has the folders, names and key files of RSR2015 part 1, so that
programs for that corpus run on it. No real person speaks here, and error rates on it say nothing about
real speech.

Made by
    {command}
with {record["engine"]} (eSpeak NG) and the signal processing of spkver; simulation.json holds every setting.
Sentences: Harvard sentences, IEEE 1969, public domain.

Key files list, for each model, all trials of its sentence, three wrong sentences of its own speaker and one
of every other speaker; RSR2015 lists all wrong sentences.
"""


def _summary(output: Path, record: dict[str, Any], *, created: bool) -> SimulatedCorpus:
    splits = record["speakers"]
    sizes = {
        f"n_{part}": sum(len(split[part]) for split in splits.values())
        for part in ("background", "development", "evaluation")
    }
    return SimulatedCorpus(folder=output, genders="".join(splits), created=created, **sizes, **record["counts"])
