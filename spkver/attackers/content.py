"""An attacker that reads: who speaks is told by what is said, not by the voice.

It takes transcripts, the file ``text`` of the data directories or what a recogniser heard. Anonymisation does not
change words, so it serves all scenarios alike. A reader of the true transcripts hears no worse after anonymisation;
give what a recogniser made of the anonymised speech (setting `text`) for an attacker that must listen.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.trials import Scores
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import file_digest, make_folder, read_id_list, write_text
from spkbase.showing import one_line
from spkver.attackers.attack import match_trials
from spkver.attackers.content_choice import METHODS, Method, Reader, choose_method
from spkver.attackers.context import Context
from spkver.attackers.kept import Kept
from spkver.attackers.protocol import Attack, Attacker, Place, Scorer
from spkver.attackers.term_weights import words
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

AUTO = "auto"


@dataclass(frozen=True)
class ContentConfig:
    """How the attacker by words is made.

    Attributes
    ----------
    name : str
    text : str
        File of the transcripts in each data directory: lines ``utterance words``.
    units : str
        Terms that are counted: words, characters (sequences of three), or auto, what is better on the background.
    scoring : str
        cosine, classifier (a linear machine for each model, its utterances against those of the background), or auto.
    """

    name: str = "content"
    text: str = "text"
    units: str = AUTO
    scoring: str = AUTO

    def __post_init__(self) -> None:
        if not self.text or Path(self.text).name != self.text:
            raise ConfigError(f"text is {self.text!r}: expected the name of a file in the data directories")
        if not self.methods():
            units, scorings = (sorted({getattr(method, key) for method in METHODS}) for key in ("units", "scoring"))
            text = f"units {self.units!r} and scoring {self.scoring!r}: expected {AUTO} or one of {', '.join(units)};"
            raise ConfigError(f"{text} {AUTO} or one of {', '.join(scorings)}")

    def methods(self) -> tuple[Method, ...]:
        """Return the methods that are to choose from."""
        return tuple(
            method
            for method in METHODS
            if self.units in (AUTO, method.units) and self.scoring in (AUTO, method.scoring)
        )


@one_line
@dataclass(frozen=True)
class ContentAttacker:
    """The attacker by words; see `spkver.attackers.Attacker`.

    How it chose stands in ``OUTPUT/attackers/<training set>/<name>/choice.json``, where it has a place.
    """

    config: ContentConfig
    seed: int = 0
    place: Place | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    @property
    def content(self) -> str:
        """Whether the transcripts come with the data, an oracle of what is said, or from a recogniser."""
        return "oracle" if self.config.text == "text" else "recognised"

    def record(self, attack: Attack) -> Any:
        """Return its settings and the checksums of the transcripts."""
        files = [self._file(directory) for directory in (attack.enrolment, attack.tested, attack.training[0])]
        settings = {"text": self.config.text, "methods": [str(method) for method in self.config.methods()]}
        return {**settings, "transcripts": [file_digest(file) for file in files]}

    def lacks(self, attack: Attack) -> str:
        """Return which side has no transcripts, or nothing."""
        try:
            models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
            for directory, needed in ((attack.enrolment, set(models.segments)), (attack.tested, set(tested))):
                if not self._file(directory).is_file():
                    return f"no transcripts: there is no {self._file(directory)}"
                found = self._read(directory)
                missing = sorted(needed - set(found))
                if missing:
                    text = f"{len(missing)} of {len(needed)} utterances without a transcript: {few(missing)}"
                    return f"{self._file(directory)}: {text}"
                if not any(words(found[name]) for name in needed):
                    return f"{self._file(directory)}: no transcript holds a word"
        except DataError as error:  # others score what it cannot read
            return str(error)
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Count the words of the background, and choose on it how texts are compared; versions of it say the same."""
        background = self._background(training[0])
        method, why = choose_method(background, self.config.methods(), self.seed)
        logger.info("%s: %s, %s", self.name, method, why)
        if self.place is not None:
            told = {"attacker": self.name, "training": training[0].name, "chosen": str(method), "why": why}
            folder = make_folder(self.place.output / "attackers" / training[0].name / self.name)
            write_text(folder / "choice.json", json.dumps(told, indent=1) + "\n")
        reader = Reader(method, [text for texts in background.values() for text in texts])

        def score(attack: Attack, kept: Kept) -> Scores:
            models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
            texts = self._read(attack.enrolment)
            said: dict[str, list[str]] = {}
            for model, utterance in zip(models.models, models.segments, strict=True):
                said.setdefault(model, []).append(texts[utterance])
            heard, trials = self._read(attack.tested), attack.trials
            names, segments = sorted(said), sorted(tested)
            rows = _places(trials.model_ids, names)[trials.models]
            columns = _places(trials.segment_ids, segments)[trials.segments]
            values = reader.score([said[name] for name in names], [heard[name] for name in segments], rows, columns)
            return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)

        return score

    def _background(self, training: DataDir) -> dict[str, list[str]]:
        """Texts of each training speaker; nothing where there are none."""
        if not self._file(training).is_file():
            logger.info(
                "%s: %s has no transcripts: those that enrol say which words are common", self.name, training.path
            )
            return {}
        texts = self._read(training)
        return {
            speaker: [texts[name] for name in sorted(names) if name in texts]
            for speaker, names in sorted(training.by_speaker().items())
        }

    def _file(self, directory: DataDir) -> Path:
        return directory.path / self.config.text

    def _read(self, directory: DataDir) -> dict[str, str]:
        return read_id_list(self._file(directory), "utterance words", n_columns=1, rest=True)


@one_line
@dataclass(frozen=True)
class WantedContent:
    """The attacker by words, before it is at work; see `spkver.attackers.Wanted`.

    It is asked what it lacks when the twins and their lists are there: where nobody has transcripts it is left out.
    """

    config: ContentConfig
    seed: int = 0

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work."""
        return ContentAttacker(self.config, self.seed, place)


def wanted_content(name: str, settings: Mapping[str, Any], context: Context) -> WantedContent:
    """Make the attacker of its settings; it reads what a recogniser heard where the configuration names that."""
    text = {"text": context.hypotheses} if context.hypotheses else {}
    try:
        return WantedContent(load_config(ContentConfig, defaults=merged(text, settings, {"name": name})), context.seed)
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error


def _places(ids: np.ndarray, names: list[str]) -> np.ndarray:
    """Place of each id among sorted names; 0 of those that no trial has."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, 0) for name in ids.tolist()], np.intp)
