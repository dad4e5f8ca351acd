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
enrolment  dict of model to list of paths, what the model is enrolled with
tested     dict of segment to path; whose speech it is the attacker is not told
trials     list of (model, segment)
scores     one number a trial in their order, the higher the more alike
========== =====================================================================================

Paths are those of WAV, FLAC or SPHERE files, which `spkver.audio.read_audio` reads.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from threadpoolctl import threadpool_limits

from evaluation.formats import read_scores, write_trials
from evaluation.trials import Scores, Trials, align
from spkbase.errors import DataError
from spkbase.files import file_digest
from spkbase.own_code import check_places, import_function, run_filled
from spkver.attackers.attack import match_trials
from spkver.attackers.kept import Kept
from spkver.attackers.protocol import Attack, Scorer
from spkver.attackers.training import merge_versions
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

PLACES = ("training", "enrolment", "tested", "trials", "scores", "work", "seed")
_NEEDED = ("enrolment", "tested", "trials", "scores")
_REMEDY = "correct the attacker, or leave it out of 'attackers'"


@dataclass(frozen=True)
class OwnFunction:
    """A user-supplied Python function; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    name : str
    spec : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.
    function : callable
    file : Path or None
        Of its module; scores are made anew when it changes.
    seed : int
    """

    name: str
    spec: str
    function: Callable[..., Any]
    file: Path | None
    seed: int

    def record(self, attack: Attack) -> Any:
        """Return its name with the checksum of its module."""
        return {"function": self.spec, "module": None if self.file is None else file_digest(self.file)}

    def lacks(self, attack: Attack) -> str:
        """Return nothing: it serves all trials."""
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Have it learn; BLAS has one thread, so that its products do not depend on the machine."""
        speech = merge_versions(training)
        files = {
            speaker: [Path(speech.recordings[utterance]) for utterance in utterances]
            for speaker, utterances in speech.by_speaker().items()
        }
        scorer = self._call(training[0], self.function, files, self.seed)
        if not callable(scorer):
            got = f"gave {type(scorer).__name__}, expected a function score(enrolment, tested, trials)"
            _refuse(self.name, training[0], f"{self.spec}(training, seed) {got}")

        def score(attack: Attack, kept: Kept) -> Scores:
            models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
            enrolled: dict[str, list[Path]] = {}
            for model, utterance in zip(models.models, models.segments, strict=True):
                enrolled.setdefault(model, []).append(Path(attack.enrolment.recordings[utterance]))
            values = self._call(attack.tested, scorer, enrolled, dict(tested), list(attack.trials.pairs()))
            return _as_scores(self.name, attack, values)

        return score

    def _call(self, directory: DataDir, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            with threadpool_limits(1, user_api="blas"):
                return function(*arguments)
        except Exception as error:  # whatever it raises, it is the attacker's
            logger.info("attacker %s", self.name, exc_info=True, extra={"file_only": True})
            _refuse(self.name, directory, f"{type(error).__name__}: {error}", error)


@dataclass(frozen=True)
class OwnCommand:
    """A user-supplied shell command; see `spkver.attackers.Attacker`.

    Its places are filled in with folders and files, quoted for the shell: {training} with wav.scp and utt2spk;
    {enrolment} with wav.scp and spk2utt, the utterances of each model; {tested} with wav.scp; the list {trials}, lines
    ``model segment``; {scores}, which it writes, lines ``model segment score``; {work}, a folder that stays from one
    list of trials to the next of the same training, while the evaluation runs; {seed}.
    """

    name: str
    template: str
    seed: int

    def __post_init__(self) -> None:
        check_places(self.template, PLACES, _NEEDED)

    def record(self, attack: Attack) -> Any:
        """Return the command."""
        return {"command": self.template}

    def lacks(self, attack: Attack) -> str:
        """Return nothing: it serves all trials."""
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Write the lists of the training set; the command learns from them when it likes."""
        holder = tempfile.TemporaryDirectory()  # goes with the scorer that holds it
        work, learnt = Path(holder.name) / "work", Path(holder.name) / "training"
        work.mkdir()
        recordings: dict[str, Path] = {}
        speakers: dict[str, str] = {}
        for number, directory in enumerate(training, 1):
            for utterance, path in directory.recordings.items():
                version = f"{number}-{utterance}" if len(training) > 1 else utterance
                recordings[version], speakers[version] = Path(path), directory.speakers[utterance]
        _write_table(learnt / "wav.scp", recordings)
        _write_table(learnt / "utt2spk", speakers)

        def score(attack: Attack, kept: Kept) -> Scores:
            with tempfile.TemporaryDirectory(dir=holder.name) as folder:
                places = _write_attack(Path(folder), attack)
                try:
                    run_filled(self.template, {"training": learnt, "work": work, "seed": self.seed, **places})
                    if not places["scores"].is_file():
                        raise DataError("the command wrote no {scores}")
                    scores = read_scores(places["scores"])
                except DataError as error:
                    _refuse(self.name, attack.tested, error.text, error)
                return joined(self.name, attack, scores, attack.tested.path, _REMEDY)

        return score


def joined(name: str, attack: Attack, found: Scores, file: Path, remedy: str) -> Scores:
    """Return the scores of the trials of an attack, in their order, out of some that may be more.

    Raises
    ------
    DataError
        If a trial has none, which names the attacker and `file`.
    """
    try:
        values = align(found, attack.trials)
    except DataError as error:
        raise DataError(f"attacker {name!r}, {attack.name}: {error.text}", file=file, remedy=remedy) from error
    trials = attack.trials
    return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)


def _write_attack(folder: Path, attack: Attack) -> dict[str, Path]:
    """Write the lists of an attack; returns the places that stand for them."""
    models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
    places = {name: folder / name for name in ("enrolment", "tested", "trials", "scores")}
    used: dict[str, list[str]] = {}
    for model, utterance in zip(models.models, models.segments, strict=True):
        used.setdefault(model, []).append(utterance)
    recordings = {utterance: Path(attack.enrolment.recordings[utterance]) for utterance in models.segments}
    _write_table(places["enrolment"] / "wav.scp", recordings)
    _write_table(places["enrolment"] / "spk2utt", {model: " ".join(utterances) for model, utterances in used.items()})
    _write_table(places["tested"] / "wav.scp", tested)
    write_trials(places["trials"], Trials.from_ids(*map(list, zip(*attack.trials.pairs(), strict=True))))
    return places


def _write_table(path: Path, table: Mapping[str, Path | str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = (
        f"{name} {value.resolve() if isinstance(value, Path) else value}\n" for name, value in sorted(table.items())
    )
    path.write_text("".join(lines), encoding="utf-8")


def _as_scores(name: str, attack: Attack, values: Iterable[Any]) -> Scores:
    """Take what a function gave as scores, or say what is wrong with it."""
    trials = attack.trials
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        _refuse(name, attack.tested, f"expected {len(trials)} numbers, got {type(values).__name__}: {error}", error)
    if numbers.shape != (len(trials),):
        _refuse(name, attack.tested, f"expected {len(trials)} scores, one a trial, got shape {numbers.shape}")
    try:
        return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=numbers)
    except DataError as error:
        _refuse(name, attack.tested, error.text, error)


def _refuse(name: str, directory: DataDir, text: str, cause: Exception | None = None) -> NoReturn:
    raise DataError(f"attacker {name!r}: {text}", file=directory.path, remedy=_REMEDY) from cause


def own_function(name: str, spec: str, seed: int) -> OwnFunction:
    """Import a user-supplied function; ConfigError if there is none."""
    function, file = import_function(spec, "attacker")
    return OwnFunction(name, spec, function, file, seed)
