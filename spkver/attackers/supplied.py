"""User-supplied attackers: a Python function, or a shell command; see docs/own_attackers.md.

A function learns, and returns a function that scores::

    def attack(training, seed):
        ...
        def score(enrolment, tested, trials):
            ...
            return scores
        return score

========== =====================================================================================
training   dict of speaker to list of paths of recordings; versions of an utterance are separate recordings
seed       int; all random numbers should depend on it
enrolment  dict of model to list of paths of its enrolment; several if anonymised in several versions
tested     dict of segment to path; their speakers are not disclosed to the attacker
trials     list of (model, segment) in random order; names of models, segments and files reveal nothing
scores     one number per trial, in their order, higher for more similar voices
========== =====================================================================================

Paths point to WAV, FLAC or SPHERE files, which `spkver.audio.read_audio` reads.

A function runs in a separate process, so that it can be ended, and its crash does not end the run.

`FunctionProcess` starts the process, where `spkver.function_server` serves the function.
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
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from evaluation.formats import read_scores, write_trials
from evaluation.trials import ONE_MODEL, Scores, Trials, align
from spkbase import plugins
from spkbase.errors import DataError
from spkbase.files import file_digest, make_folder
from spkbase.seeding import stream
from spkver.attackers import lists
from spkver.attackers.protocol import Attack, Learnt, LostModelError, TrainingSet, WithoutSource
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

Json = dict[str, Any]

# numbers of characters of a function's output shown in an error and in the log
_SHOWN = 500
_REMEMBERED = 1 << 14

PLACES = ("training", "enrolment", "tested", "trials", "scores", "work", "seed")
_NEEDED = ("enrolment", "tested", "trials", "scores")
_REMEDY = "correct the attacker, or leave it out of 'attackers'"


class FunctionProcess:
    """A process that serves one user-supplied function; it ends with this process, or when it is no longer referenced.

    Parameters
    ----------
    name : str
        Name of the attacker, for the log.
    spec : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.
    """

    def __init__(self, name: str, spec: str) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        code = f"import sys; sys.path[:] = {sys.path!r}; from spkver.function_server import serve; serve()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = plugins.start_process(
            [sys.executable, "-c", code, spec], text=True, encoding="utf-8", **pipes
        )
        self._finalizer = weakref.finalize(self, plugins.end_process, self._process)

    @property
    def is_alive(self) -> bool:
        """Whether the process can be called."""
        return self._finalizer.alive and self._process.poll() is None

    def close(self) -> None:
        """End the process and all that it has started."""
        self._finalizer()

    def ask(self, request: Mapping[str, Any], seconds: float | None) -> list[float]:
        """Send a request to the function, and return the numbers of its reply.

        Raises
        ------
        DataError
            If the function raises, if its process ends, or after the time limit, which ends the process.
        """
        requests = self._process.stdin
        replies = self._process.stdout
        assert requests is not None
        assert replies is not None
        with suppress(BrokenPipeError):
            requests.write(json.dumps(request) + "\n")
            requests.flush()
        if not select.select([replies], [], [], seconds)[0]:
            self.close()
            raise plugins.TimeLimitError(f"it was ended after {seconds:g} s, the time limit")
        reply = replies.readline()
        printed = self._printed()
        if printed:
            logger.debug("attacker %s prints: %s", self.name, printed)
        if not reply:
            status = self._process.wait()
            text = f"its process ended with status {status}"
            if status < 0:
                text = f"its process was ended by {signal.Signals(-status).name}"
            if printed:
                text += f": {printed[-_SHOWN:]}"
            raise DataError(text)
        answer = json.loads(reply)
        if "error" in answer:
            logger.debug("attacker %s\n%s", self.name, answer["traceback"])
            raise DataError(answer["error"])
        return list(answer["values"])

    def _printed(self) -> str:
        """Return the end of its output since the last call; both processes share a file position."""
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(end - _REMEMBERED, 0))
        printed = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.seek(0)
        self._errors.truncate()
        return printed


@dataclass(frozen=True)
class OwnCode(WithoutSource, ABC):
    """User-supplied code; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    spec : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``, or a shell command.
    seed : int
    time_limit : float or None [s]
        Time limit of training, and of each list of trials; None: `usual_limit`.
    level : str
        Its level of knowledge as stated by the user, see `evaluation.trials.LEVELS`.
    file : Path or None
        File of a function's module.
    """

    utterances: ClassVar[int | None] = None

    name: str
    spec: str
    seed: int
    time_limit: float | None = None
    level: str = ONE_MODEL
    file: Path | None = None

    @property
    @abstractmethod
    def code(self) -> dict[str, Any]:
        """The code, with the checksums of files on whose changes its scores must be computed again."""

    def record(self, attack: Attack) -> Any:
        """Return its code."""
        return self.code


@dataclass(frozen=True)
class OwnFunction(OwnCode):
    """A user-supplied Python function."""

    @cached_property
    def code(self) -> dict[str, Any]:
        """Its name, with the checksums of its module and of the modules imported from the same folder."""
        if self.file is None:
            return {"function": self.spec, "module": None}
        code: dict[str, Any] = {"function": self.spec, "module": file_digest(self.file)}
        imports = plugins.files_behind(self.spec, self.file)
        if imports:
            code["imports"] = imports
        return code

    def fit(self, training: TrainingSet, vectors: None, *, seed: int, jobs: int | None) -> Learnt:
        """Train it in a separate process, with one BLAS thread, so that products do not depend on the machine."""
        versions = training.versions
        speech = lists.merge_versions(versions)
        files = {}
        for speaker, utterances in speech.by_speaker().items():
            files[speaker] = [str(speech.recordings[name]) for name in utterances]
        process = FunctionProcess(self.name, self.spec)
        self._ask(process, versions[0], {"training": files, "seed": self.seed}, versions)
        return Learnt(process)

    def score(self, model: FunctionProcess, attack: Attack, vectors: None) -> Scores:
        """Have the process score the trials.

        Raises
        ------
        LostModelError
            If the process ends. A process that exceeds the time limit ends too, with a `TimeLimitError`.
        """
        tested = attack.tested
        with tempfile.TemporaryDirectory() as folder:
            disguised = _disguised(attack, Path(folder), self.seed)
            request = {
                "enrolment": {
                    name: list(map(str, paths)) for name, paths in disguised.enrolment.items()
                },
                "tested": {name: str(path) for name, path in disguised.tested.items()},
                "trials": disguised.trials,
            }
            values = np.array(
                self._ask(model, tested, request, (*attack.training.versions, tested))
            )
        try:
            return lists.as_scores(attack.trials, values[np.argsort(disguised.order)])
        except DataError as error:
            _refuse(self.name, tested, error)

    def _ask(
        self, process: FunctionProcess, directory: DataDir, request: Json, speech: Iterable[DataDir]
    ) -> list[float]:
        try:
            return process.ask(request, self.time_limit or usual_limit(speech))
        except DataError as error:
            if process.is_alive or isinstance(error, plugins.TimeLimitError):
                _refuse(self.name, directory, error)
            process.close()
            _refuse(self.name, directory, LostModelError(error.text))


@dataclass(frozen=True)
class OwnCommand(OwnCode):
    """A user-supplied shell command.

    Its placeholders are replaced by folders and files, quoted for the shell: {training} with wav.scp and utt2spk;
    {enrolment} with wav.scp and spk2utt, the utterances of each model; {tested} with wav.scp; the list {trials}, lines
    ``model segment``; {scores}, which it writes, lines ``model segment score``; {work}, a folder that all lists of
    trials with the same training share while the evaluation runs; {seed}.
    """

    def __post_init__(self) -> None:
        plugins.check_places(self.spec, PLACES, _NEEDED)

    @cached_property
    def code(self) -> dict[str, Any]:
        """The command, with the checksums of files that it names, such as a script or weights."""
        code: dict[str, Any] = {"command": self.spec}
        files = plugins.files_behind(self.spec)
        if files:
            code["files"] = files
        return code

    def fit(self, training: TrainingSet, vectors: None, *, seed: int, jobs: int | None) -> Learnt:
        """Write the lists of the training set; the command may learn from them whenever it runs."""
        holder = tempfile.TemporaryDirectory()  # the folder is removed with the model
        learnt = Path(holder.name) / "training"
        make_folder(Path(holder.name) / "work")
        speech = lists.merge_versions(training.versions)
        # ids of merged versions contain a blank
        ids = {name: name.replace(" ", "-", 1) for name in speech.recordings}
        _write_table(
            learnt / "wav.scp",
            {ids[name]: path.resolve() for name, path in speech.recordings.items()},
        )
        _write_table(
            learnt / "utt2spk", {ids[name]: speaker for name, speaker in speech.speakers.items()}
        )
        return Learnt(holder)

    def score(
        self, model: tempfile.TemporaryDirectory[str], attack: Attack, vectors: None
    ) -> Scores:
        """Run the command on the lists of an attack."""
        tested = attack.tested
        shared = Path(model.name)
        with tempfile.TemporaryDirectory(dir=shared) as folder:
            disguised = _disguised(attack, make_folder(Path(folder) / "wav"), self.seed)
            places = _write_lists(Path(folder), disguised)
            values = {
                "training": shared / "training",
                "work": shared / "work",
                "seed": self.seed,
                **places,
            }
            seconds = self.time_limit or usual_limit((*attack.training.versions, tested))
            try:
                plugins.run_command(plugins.fill_places(self.spec, values), seconds=seconds)
                if not places["scores"].is_file():
                    raise DataError("the command wrote no {scores}")
                scored = align(read_scores(places["scores"]), disguised.as_trials())
                return lists.as_scores(attack.trials, scored[np.argsort(disguised.order)])
            except DataError as error:
                _refuse(self.name, tested, error)


def usual_limit(speech: Iterable[DataDir]) -> float:
    """Return how many seconds a user-supplied attacker may take with some speech, see `usual_seconds`."""
    paths: list[Path] = []
    for directory in speech:
        paths += directory.recordings.values()
    return plugins.usual_seconds(paths)


class _Disguised(NamedTuple):
    """An attack under meaningless names: the paths of each model and segment, and the trials in random order."""

    enrolment: dict[str, list[Path]]
    tested: dict[str, Path]
    trials: list[tuple[str, str]]
    order: NDArray[np.intp]

    def as_trials(self) -> Trials:
        """Return the trials."""
        models, segments = zip(*self.trials, strict=True)
        return Trials.from_ids(models, segments)


def _disguised(attack: Attack, folder: Path, seed: int) -> _Disguised:
    """Return an attack whose recordings are links in a folder: no name, path or order reveals who speaks."""
    enrolled = lists.enrolled_speech(attack.enrolment)
    models, segments = lists.match_trials(enrolled, attack.tested, attack.trials)
    sessions = lists.sessions_of(models)
    draw = stream(seed, "names of an attack")
    model_names = _random_names(sessions, "model", draw)
    segment_names = _random_names(segments, "segment", draw)
    order = draw.permutation(len(attack.trials))
    enrolment: dict[str, list[Path]] = {}
    for model, name in sorted(model_names.items(), key=itemgetter(1)):
        enrolment[name] = []
        for number, utterance in enumerate(sessions[model], 1):
            enrolment[name].append(
                _link(folder, f"{name}-{number}", enrolled.recordings[utterance])
            )
    tested = {}
    for segment, name in sorted(segment_names.items(), key=itemgetter(1)):
        tested[name] = _link(folder, name, segments[segment])
    trials = [
        (model_names[model], segment_names[segment]) for model, segment in attack.trials.pairs()
    ]
    return _Disguised(enrolment, tested, [trials[row] for row in order], order)


def _random_names(ids: Iterable[str], kind: str, draw: np.random.Generator) -> dict[str, str]:
    """Return a meaningless random name for each id."""
    known = sorted(ids)
    names = {}
    for number, row in enumerate(draw.permutation(len(known)), 1):
        names[known[row]] = f"{kind}{number}"
    return names


def _link(folder: Path, name: str, path: Path) -> Path:
    """Link to a recording under another name."""
    link = folder / f"{name}{path.suffix}"
    link.symlink_to(path.resolve())
    return link


def _write_lists(folder: Path, disguised: _Disguised) -> dict[str, Path]:
    """Write the lists of an attack; return the values of their placeholders."""
    places = {name: folder / name for name in ("enrolment", "tested", "trials", "scores")}
    recordings: dict[str, Path] = {}
    sessions = {}
    for model, paths in disguised.enrolment.items():
        links = {path.stem: path.absolute() for path in paths}
        recordings |= links
        sessions[model] = " ".join(links)
    _write_table(places["enrolment"] / "wav.scp", recordings)
    _write_table(places["enrolment"] / "spk2utt", sessions)
    _write_table(
        places["tested"] / "wav.scp",
        {name: path.absolute() for name, path in disguised.tested.items()},
    )
    write_trials(places["trials"], disguised.as_trials())
    return places


def _write_table(path: Path, table: Mapping[str, Path | str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "".join(f"{name} {value}\n" for name, value in sorted(table.items())), encoding="utf-8"
    )


def _refuse(name: str, directory: DataDir, error: DataError) -> NoReturn:
    refused: type[DataError] = DataError
    remedy = _REMEDY
    if isinstance(error, plugins.TimeLimitError):
        refused = plugins.TimeLimitError
        remedy = f"set attackers_time_limit, in seconds; else {_REMEDY}"
    elif isinstance(error, LostModelError):
        refused = LostModelError
    raise refused(error.text, file=directory.path, remedy=remedy).attributed(
        "attacker", name
    ) from error
