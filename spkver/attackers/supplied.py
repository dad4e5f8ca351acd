"""User-supplied attackers: a Python function, or a shell command; see docs/own_attackers.md.

A function learns, and gives a function that scores::

    def attack(training, seed):
        ...
        def score(enrolment, tested, trials):
            ...
            return scores
        return score

========== =====================================================================================
training   dict of speaker to list of paths of recordings; several versions of an utterance count as several
seed       int; all that is drawn should depend on it
enrolment  dict of model to list of paths, what the model is enrolled with; anonymised in several versions
tested     dict of segment to path; their speakers are not disclosed to the attacker
trials     list of (model, segment)
scores     one number a trial in their order, the higher the more alike
========== =====================================================================================

Paths are those of WAV, FLAC or SPHERE files, which `spkver.audio.read_audio` reads.

A function runs in a separate process, so that it can be ended, and its crash does not end the run.

`FunctionProcess` starts the process and exchanges lines of JSON with it through pipes. Nothing that it returns is
unpickled.

Attackers by results made elsewhere: score files, or embeddings that are scored here by cosine.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, cosine_scores, holds_embeddings, read_embeddings
from evaluation.formats import read_scores, write_trials
from evaluation.trials import TRIAL_BY_TRIAL, WHOLE_LIST, Scores, Trials, align
from spkbase import plugins
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import file_digest, fingerprint
from spkbase.work import one_blas_thread
from spkver.attackers import lists
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet, folder_name, naming
from spkver.attackers.vector_attacker import ADAPTED_COSINE, BackendChoice, lacks_models, learn_backend, limited
from spkver.backend import train_chain
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_SHOWN, _REMEMBERED = 500, 1 << 14  # characters of what a function prints: in an error, in the log


class FunctionProcess:
    """A process that serves one user-supplied function; it ends with this process, and when no longer referenced.

    Parameters
    ----------
    name : str
        Of the attacker, for the log.
    spec : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.
    """

    def __init__(self, name: str, spec: str) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        code = f"import sys; sys.path[:] = {sys.path!r}; from spkver.attackers.supplied import serve; serve()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = plugins.start_process([sys.executable, "-c", code, spec], text=True, encoding="utf-8", **pipes)
        self._finalizer = weakref.finalize(self, plugins.end_process, self._process)

    @property
    def is_alive(self) -> bool:
        """Whether it can be called."""
        return self._finalizer.alive and self._process.poll() is None

    def close(self) -> None:
        """End it with all that it has started."""
        self._finalizer()

    def ask(self, request: Mapping[str, Any], seconds: float | None) -> list[float]:
        """Have the function do something, and return what it gave.

        Raises
        ------
        DataError
            With what it raised, how its process ended, or if it went beyond its time; then the process is over.
        """
        pipes = self._process.stdin, self._process.stdout
        assert pipes[0] is not None
        assert pipes[1] is not None
        with suppress(BrokenPipeError):
            pipes[0].write(json.dumps(request) + "\n")
            pipes[0].flush()
        if not select.select([pipes[1]], [], [], seconds)[0]:
            self.close()
            raise plugins.TimeLimitError(f"it was ended after {seconds:g} s, the time limit")
        reply = pipes[1].readline()
        said = self._said()
        if said:
            logger.info("attacker %s prints: %s", self.name, said, extra={"file_only": True})
        if not reply:
            status = self._process.wait()
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            raise DataError(f"its process {how}{': ' if said else ''}{said[-_SHOWN:]}")
        answer = json.loads(reply)
        if "error" in answer:
            logger.info("attacker %s\n%s", self.name, answer["traceback"], extra={"file_only": True})
            raise DataError(answer["error"])
        values: list[float] = answer["values"]
        return values

    def _said(self) -> str:
        """The end of what it has printed since the last time; both processes share the place in the file."""
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(end - _REMEMBERED, 0))
        said = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.seek(0)
        self._errors.truncate()
        return said


def serve() -> None:
    """Serve the function named by the command line: a reply for each request, until there are no more."""
    spec = sys.argv[1]
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the function prints goes to the log
    held: Json = {}
    for line in requests:
        asked = json.loads(line)
        try:
            if "training" in asked:
                _learn(held, spec, asked)
                answer: Json = {"values": []}
            else:
                answer = {"values": _score(held, asked).tolist()}
        except DataError as error:
            answer = {"error": error.text, "traceback": ""}
        except BaseException as error:  # whatever it raises, it is the attacker's
            answer = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        sys.stdout.flush()
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


def _learn(held: Json, spec: str, asked: Json) -> None:
    function, _ = plugins.load_plugin(spec, "attacker", kind="function")
    training = {speaker: [Path(path) for path in paths] for speaker, paths in asked["training"].items()}
    with one_blas_thread():
        held["score"] = function(training, asked["seed"])
    if not callable(held["score"]):
        got = f"gave {type(held['score']).__name__}, expected a function score(enrolment, tested, trials)"
        raise DataError(f"{spec}(training, seed) {got}")


def _score(held: Json, asked: Json) -> NDArray[np.float64]:
    enrolment = {model: [Path(path) for path in paths] for model, paths in asked["enrolment"].items()}
    tested = {segment: Path(path) for segment, path in asked["tested"].items()}
    trials = [(model, segment) for model, segment in asked["trials"]]
    with one_blas_thread():
        values = held["score"](enrolment, tested, trials)
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected {len(trials)} numbers, got {type(values).__name__}: {error}") from error
    if numbers.shape != (len(trials),):
        raise DataError(f"expected {len(trials)} scores, one a trial, got shape {numbers.shape}")
    return numbers


PLACES = ("training", "enrolment", "tested", "trials", "scores", "work", "seed")
_NEEDED = ("enrolment", "tested", "trials", "scores")
_REMEDY = "correct the attacker, or leave it out of 'attackers'"


@dataclass(frozen=True)
class OwnCode:
    """User-supplied code; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    spec : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``, or a shell command.
    seed : int
    time_limit : float or None [s]
        To learn, and for a list of trials; None: `usual_limit`.
    level : str
        What it looks at, as the user says, see `evaluation.trials.LEVELS`.
    file : Path or None
        Of a function's module.
    """

    name: str
    spec: str
    seed: int
    time_limit: float | None = None
    level: str = TRIAL_BY_TRIAL
    file: Path | None = None

    @cached_property
    def code(self) -> dict[str, Any]:
        """What it is, with the checksums of files that scores are made anew for when they change."""
        raise NotImplementedError

    def record(self, attack: Attack) -> Any:
        """Return its code."""
        return self.code

    def lacks(self, attack: Attack) -> str:
        """Return nothing: it serves all trials."""
        return ""


@dataclass(frozen=True)
class OwnFunction(OwnCode):
    """A user-supplied Python function."""

    @cached_property
    def code(self) -> dict[str, Any]:
        """Its name, with the checksums of its module and of what this imports from its folder."""
        found: dict[str, Any] = {"function": self.spec, "module": None}
        if self.file is None:
            return found
        behind = plugins.files_behind(self.spec, self.file)
        return found | {"module": file_digest(self.file)} | ({"imports": behind} if behind else {})

    def fit(self, training: TrainingSet) -> Scorer:
        """Have it learn, in a separate process; BLAS has one thread, so that its products do not depend on the
        machine."""
        versions = training.versions
        speech = lists.merge_versions(versions)
        files = {
            speaker: [str(speech.recordings[utterance]) for utterance in utterances]
            for speaker, utterances in speech.by_speaker().items()
        }

        def ask(process: FunctionProcess, directory: DataDir, request: Json, speech: Iterable[DataDir]) -> list[float]:
            try:
                return process.ask(request, self.time_limit or usual_limit(speech))
            except DataError as error:
                if not process.is_alive:
                    process.close()
                _refuse(self.name, directory, error)

        def begin() -> FunctionProcess:
            begun = FunctionProcess(self.name, self.spec)
            ask(begun, versions[0], {"training": files, "seed": self.seed}, versions)
            return begun

        process = begin()

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            nonlocal process
            if not process.is_alive:  # another list of trials was its end
                process = begin()
            enrolled = lists.enrolled_speech(enrolment)
            models, segments = lists.match_trials(enrolled, tested, trials)
            asked = {
                "enrolment": {
                    model: [str(enrolled.recordings[name]) for name in names]
                    for model, names in lists.sessions_of(models).items()
                },
                "tested": {segment: str(path) for segment, path in segments.items()},
                "trials": list(trials.pairs()),
            }
            values = ask(process, tested, asked, (*versions, tested))
            try:
                return lists.as_scores(trials, np.array(values))
            except DataError as error:
                _refuse(self.name, tested, error)

        return score


@dataclass(frozen=True)
class OwnCommand(OwnCode):
    """A user-supplied shell command.

    Its places are filled in with folders and files, quoted for the shell: {training} with wav.scp and utt2spk;
    {enrolment} with wav.scp and spk2utt, the utterances of each model; {tested} with wav.scp; the list {trials}, lines
    ``model segment``; {scores}, which it writes, lines ``model segment score``; {work}, a folder that stays from one
    list of trials to the next of the same training, while the evaluation runs; {seed}.
    """

    def __post_init__(self) -> None:
        plugins.check_places(self.spec, PLACES, _NEEDED)

    @cached_property
    def code(self) -> dict[str, Any]:
        """The command, with the checksums of files that it names, such as a script or weights."""
        behind = plugins.files_behind(self.spec)
        return {"command": self.spec} | ({"files": behind} if behind else {})

    def fit(self, training: TrainingSet) -> Scorer:
        """Write the lists of the training set; the command learns from them when it likes."""
        versions = training.versions
        holder = tempfile.TemporaryDirectory()  # goes with the scorer that holds it
        work, learnt = Path(holder.name) / "work", Path(holder.name) / "training"
        work.mkdir()
        speech = lists.merge_versions(versions)
        ids = {name: name.replace(" ", "-", 1) for name in speech.recordings}  # those of versions have a blank
        _write_table(learnt / "wav.scp", {ids[name]: path for name, path in speech.recordings.items()})
        _write_table(learnt / "utt2spk", {ids[name]: speaker for name, speaker in speech.speakers.items()})

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            with tempfile.TemporaryDirectory(dir=holder.name) as folder:
                places = _write_lists(Path(folder), lists.enrolled_speech(enrolment), tested, trials)
                values = {"training": learnt, "work": work, "seed": self.seed, **places}
                seconds = self.time_limit or usual_limit((*versions, tested))
                try:
                    plugins.run_command(plugins.fill_places(self.spec, values), seconds=seconds)
                    if not places["scores"].is_file():
                        raise DataError("the command wrote no {scores}")
                    return lists.as_scores(trials, align(read_scores(places["scores"]), trials))
                except DataError as error:
                    _refuse(self.name, tested, error)

        return score


def _write_lists(folder: Path, enrolled: DataDir, tested: DataDir, trials: Trials) -> dict[str, Path]:
    """Write the lists of an attack; returns the places that stand for them."""
    models, segments = lists.match_trials(enrolled, tested, trials)
    places = {name: folder / name for name in ("enrolment", "tested", "trials", "scores")}
    recordings = {utterance: Path(enrolled.recordings[utterance]) for utterance in models.segments}
    _write_table(places["enrolment"] / "wav.scp", recordings)
    sessions = {model: " ".join(utterances) for model, utterances in lists.sessions_of(models).items()}
    _write_table(places["enrolment"] / "spk2utt", sessions)
    _write_table(places["tested"] / "wav.scp", segments)
    write_trials(places["trials"], Trials.from_ids(*map(list, zip(*trials.pairs(), strict=True))))
    return places


def _write_table(path: Path, table: Mapping[str, Path | str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = (
        f"{name} {value.resolve() if isinstance(value, Path) else value}\n" for name, value in sorted(table.items())
    )
    path.write_text("".join(lines), encoding="utf-8")


def usual_limit(speech: Iterable[DataDir]) -> float:
    """Return how many seconds a user-supplied attacker may take with some speech, see `usual_seconds`."""
    return plugins.usual_seconds(path for directory in speech for path in directory.recordings.values())


def _refuse(name: str, directory: DataDir, error: DataError) -> NoReturn:
    late = isinstance(error, plugins.TimeLimitError)
    refused = plugins.TimeLimitError if late else DataError
    remedy = f"set attackers_time_limit, in seconds; else {_REMEDY}" if late else _REMEDY
    raise refused(f"attacker {name!r}: {error.text}", file=directory.path, remedy=remedy) from error


SUFFIXES = (".h5", ".hdf5", ".npz", ".scp", ".ark", ".pt", ".safetensors", ".csv", ".tsv")
CACHES = "emb_xvect"


@dataclass(frozen=True)
class ReadyScores:
    """Scores made elsewhere, laid out as below a run's ``exp``; see `spkver.attackers.Attacker`.

    FOLDER/asv_orig/<enrolment>-<trials>/scores            by an attacker that learnt from original speech
    FOLDER/asv_anon<suffix>/<enrolment>-<trials>/scores    from anonymised speech

    Where there is no such file, that of an attacker's folder is taken, ``<enrolment>-<trials>/<attacker>/scores``: of
    one that has this attacker's name, or of the only one.
    """

    name: str
    folder: Path
    level: str = TRIAL_BY_TRIAL

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)
        if not any(next(self.folder.glob(pattern), None) for pattern in ("asv_*/*/scores", "asv_*/*/*/scores")):
            inner = self.folder / "exp"
            remedy = f"give scores:{inner}" if inner.is_dir() else "lay it out as a run's folder exp"
            text = f"attacker {self.name!r}: expected files asv_orig/<enrolment>-<trials>/scores, found none"
            raise ConfigError(text, file=self.folder, remedy=remedy)

    def file(self, name: str) -> Path:
        """Return the file of scores for the trials of an attack, by its name, whether it is there or not."""
        place = self.folder / name
        if not (place / "scores").is_file():
            found = self._of_attackers(name)
            if self.name in found or len(found) == 1:
                return place / (self.name if self.name in found else found[0]) / "scores"
        return place / "scores"

    def _of_attackers(self, name: str) -> list[str]:
        return sorted(path.parent.name for path in (self.folder / name).glob("*/scores"))

    def record(self, attack: Attack) -> Any:
        """Return the checksum of the file."""
        return {"scores": file_digest(self.file(attack.name))}

    def lacks(self, attack: Attack) -> str:
        """Return that there is no file, or nothing; a file that is there is checked."""
        if not self.file(attack.name).is_file():
            several = ", ".join(self._of_attackers(attack.name))
            which = f", and of {several} none is called {self.name}" if several else ""
            return f"there is no {self.file(attack.name)}{which}"
        self._score(attack.name, attack.tested, attack.trials)
        return ""

    def fit(self, training: TrainingSet) -> Scorer:
        """Return what reads the scores; nothing is left to be learnt."""
        return lambda enrolment, tested, trials: self._score(folder_name(training, enrolment, tested), tested, trials)

    def _score(self, name: str, tested: DataDir, trials: Trials) -> Scores:
        file = self.file(name)
        remedy = f"score the trials of {tested.path / 'trials'}, or remove the file: then they are left out"
        with naming(self.name, file, remedy):
            return lists.as_scores(trials, align(read_scores(file), trials))


class ReadyChoice(BackendChoice):
    """How a backend of ready vectors is chosen: there are none of pieces of recordings."""

    cut: ClassVar[bool] = False


@dataclass(frozen=True)
class ReadyVectors:
    """Embeddings made elsewhere, a file or a folder for each data directory; see `spkver.attackers.Attacker`.

        FOLDER/<data directory>{.h5,.hdf5,.npz,.scp,.ark,.pt,.safetensors,.csv,.tsv,/}   of any extractor
        FOLDER/asv_anon<suffix>/<data directory>{the same}           of one that learnt from anonymised speech
        FOLDER/asv_{orig,anon<suffix>}/emb_xvect/<data directory>/   what VoicePrivacy's toolkits keep below ``exp``

    A folder is one of those that `read_embeddings` takes: Kaldi's archives, the cache of VoicePrivacy and others.
    A semi-informed attacker has the second where they are there, else the first: weaker knowledge serves too.

    They are compared by cosine; `adapted` ones by `spkver.backend.adapted_cosine_scores`. In a run, where there are
    embeddings of all versions of a training set too, a backend is chosen and trained on them, see
    `spkver.attackers.vector_attacker.learn_backend`.
    """

    name: str
    folder: Path
    adapted: bool = False
    place: Place = field(default=NOWHERE, repr=False)
    _read: dict[Path, Embeddings] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_folder(self.name, self.folder)

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.trials.LEVELS`."""
        return WHOLE_LIST if self.adapted else TRIAL_BY_TRIAL

    @property
    def choice(self) -> ReadyChoice:
        """How its backend is chosen."""
        return ReadyChoice(self.name, adapted=ADAPTED_COSINE if self.adapted else "")

    def file(self, training: TrainingSet, directory: DataDir) -> Path | None:
        """Return the file or folder with the embeddings of a data directory, or None."""
        name, of_attacker = directory.path.name, self.folder / training.name
        folders = (of_attacker, of_attacker / CACHES, self.folder, self.folder / CACHES)
        for folder in (*folders, self.folder / "asv_orig" / CACHES):
            for suffix in SUFFIXES:
                if (path := folder / f"{name}{suffix}").is_file():
                    return path
            if holds_embeddings(folder / name):
                return folder / name
        return None

    def record(self, attack: Attack) -> Any:
        """Return a checksum of the embeddings of both sides, and of the training set where it has a part."""
        both = [self._embeddings(attack.training, side) for side in (attack.enrolment[0], attack.tested)]
        found: dict[str, Any] = {
            "vectors": [fingerprint(embeddings.ids, np.asarray(embeddings.vectors)) for embeddings in both]
        }
        found |= {"adapted": ADAPTED_COSINE} if self.adapted else {}
        if (background := self.background(attack.training)) is not None:
            found |= {"background": background.digest, "choice": self.choice.record()}
        return found

    def lacks(self, attack: Attack) -> str:
        """Return which data directory has no embeddings, or nothing; those that are there are checked."""
        sides = (attack.enrolment[0], attack.tested)
        absent = [side.path.name for side in sides if self.file(attack.training, side) is None]
        if absent:
            files = " and no ".join(f"{self.folder / name}.h5" for name in absent)
            return f"there is no {files} (or .npz, .scp, .ark, .pt, a folder ...)"
        self._sides(attack.training, *sides, attack.trials)
        self.background(attack.training)
        return lacks_models(attack) if self.adapted else ""

    def fit(self, training: TrainingSet) -> Scorer:
        """Train a backend on the embeddings of the training set, where there are such."""
        background, backend = self.background(training), None
        if background is not None:
            with naming(self.name, self.folder):
                choice, depends = self.choice, {"background": background.digest}
                versions = limited(training.versions, choice.utterances, seed=self.place.seed)
                backend = learn_backend(choice, background, depends, versions, self.place)[0]

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            first, second = self._sides(training, enrolment[0], tested, trials)
            with naming(self.name, self.folder):
                if backend is None and not self.adapted:
                    return cosine_scores(first, second, trials)
                found = backend or train_chain(first, ADAPTED_COSINE)  # the second learns nothing
                return found.score(first, second, trials)

        return score

    def background(self, training: TrainingSet) -> ReadySource | None:
        """Return the embeddings of the training set; None where a version of it has no file, or there is no place.

        Raises
        ------
        DataError
            If there are files, and a recording has no embedding.
        """
        if self.place is NOWHERE or any(self.file(training, version) is None for version in training.versions):
            return None
        known: dict[Path, NDArray[np.floating]] = {}
        for version in training.versions:
            found = self._chosen(training, version, version.speakers, "then cosines are taken")
            known |= zip((Path(version.recordings[name]) for name in found.ids), found.vectors, strict=True)
        return ReadySource(known)

    def _sides(
        self, training: TrainingSet, enrolment: DataDir, tested: DataDir, trials: Trials
    ) -> tuple[Embeddings, ...]:
        """Embeddings of what enrols, by model, and of what is tested; all that are missing are reported."""
        models, segments = lists.match_trials(enrolment, tested, trials)
        problems, sides = Problems(), []
        for side, owners in ((enrolment, lists.owners_of(models)), (tested, dict.fromkeys(segments, "?"))):
            with problems.noted():
                sides.append(self._chosen(training, side, owners, "then its trials are left out"))
        problems.raise_if_any()
        return tuple(sides)

    def _chosen(
        self, training: TrainingSet, directory: DataDir, owners: Mapping[str, str], otherwise: str
    ) -> Embeddings:
        """Embeddings of some utterances of a directory, sorted, with their owners."""
        embeddings = self._embeddings(training, directory)
        row, ids = {name: number for number, name in enumerate(embeddings.ids.tolist())}, sorted(owners)
        if missing := [name for name in ids if name not in row]:
            text = f"attacker {self.name!r}: {len(missing)} of {len(ids)} utterances of {directory.path.name}"
            remedy = f"extract them, or remove the file: {otherwise}"
            text = f"{text} without an embedding: {few(list(map(repr, missing)))}"
            raise DataError(text, file=self.file(training, directory), remedy=remedy)
        vectors = np.asarray(embeddings.vectors)[[row[name] for name in ids]]
        return Embeddings(np.array(ids, object), np.array([owners[name] for name in ids], object), vectors)

    def _embeddings(self, training: TrainingSet, directory: DataDir) -> Embeddings:
        file = self.file(training, directory)
        assert file is not None  # `lacks` is asked first
        if file not in self._read:
            with naming(self.name, file):
                self._read[file] = read_embeddings(file)
        return self._read[file]


@dataclass(frozen=True)
class ReadySource:
    """Embeddings by recording, see `spkver.attackers.vector_attacker.VectorSource`."""

    known: Mapping[Path, NDArray[np.floating]]

    @property
    def digest(self) -> str:
        """Of all embeddings."""
        return fingerprint([np.asarray(self.known[path]) for path in sorted(self.known)])

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the embeddings of a data directory that is made of recordings of the training set."""
        known, paths = self.known, directory.recordings
        return lists.rows_as_embeddings(
            directory, utterances, lambda names: [known[Path(paths[name])] for name in names]
        )


KINDS = OwnFunction, OwnCommand, ReadyScores, ReadyVectors
"""Which can be asked what they lack before anything is made."""


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigError(f"attacker {name!r}: no such folder", file=folder, remedy="give the folder that holds them")
