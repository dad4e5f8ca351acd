"""What attackers score on trials of background speakers whom they have not learnt from: what a fusion is trained on.

OUTPUT/attackers/<training set>/folds-<kind>/<fold>/<attacker>/scores
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores
from spkbase.errors import DataError, SpkverError
from spkbase.files import make_folder
from spkbase.runs import Depends, Draft, Run, Stage
from spkbase.showing import one_line
from spkver.attackers.folds import Fold, background_folds
from spkver.attackers.kept import Kept
from spkver.attackers.protocol import Attack, Attacker, Background, BackgroundAttacker, Place
from spkver.attackers.training import ENDING
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

FOLDS = 3
MOST_SPEAKERS = 60
"""Background speakers of a fold who are tried, at most."""

MOST_TESTED = 6
"""Recordings of each that are tested, at most."""


def kind_of(attack: Attack, *, inverting: bool) -> str:
    """Return which trials of the background a fusion for an attack is trained on.

    Those whose members may look at both sides of the background (`inverting`) are trained on the trials of their
    scenario. Others know no more than original trials in all scenarios whose attackers learn from original speech.
    """
    learns_from_original = attack.background is None or attack.training[0] is attack.background.original
    return ("lazy-informed" if inverting else "original") if learns_from_original else "semi-informed"


def fold_attacks(background: Background, kind: str, place: Place) -> list[Fold]:
    """Return folds of the background speakers with trials of a kind, each with what attackers may learn from.

    Parameters
    ----------
    background : Background
    kind : str
        "original": original speech throughout; "lazy-informed": anonymised trials, for attackers that learn from
        original speech; "semi-informed": anonymised speech throughout.
    place : Place

    Raises
    ------
    DataError
        If there are too few speakers.
    """
    original = background_folds((background.original,), place, folds=FOLDS)
    anonymised = background_folds(background.anonymised, place, folds=FOLDS) if background.anonymised else []
    trials = original if kind == "original" else anonymised
    if len(trials) < 2 or (
        anonymised and [fold.speakers for fold in original] != [fold.speakers for fold in anonymised]
    ):
        text = "fusion needs four background speakers with two recordings, or with one that can be cut in two"
        raise DataError(text, file=background.original.path, remedy="leave it out of 'attackers'")
    made = []
    for number, fold in enumerate(trials):
        sides = Background(
            original[number].attack.training[0], anonymised[number].attack.training if anonymised else (), background
        )
        training = sides.anonymised if kind == "semi-informed" else (sides.original,)
        # under the name of the set, by which vectors that were made elsewhere are found
        path = (background.original if kind == "original" else background.anonymised[0]).path
        attack = replace(
            fold.attack,
            name=f"{fold.attack.name}-{kind}",
            training=training,
            enrolment=replace(fold.attack.enrolment, path=path),
            tested=replace(fold.attack.tested, path=path),
            scenario=kind,
            background=sides,
        )
        made.append(_fewer(replace(fold, attack=attack), place.seed))
    return made


def _fewer(fold: Fold, seed: int) -> Fold:
    """The same fold with fewer speakers and tests, where there are many: time is for learning."""
    order = np.random.default_rng([seed, fold.number]).permutation(len(fold.speakers))[:MOST_SPEAKERS]
    speakers = tuple(sorted(fold.speakers[place] for place in order))
    chosen = set(speakers)
    tested: set[str] = set()
    for speaker, names in fold.attack.tested.by_speaker().items():
        if speaker in chosen:
            places = np.linspace(0, len(names) - 1, min(MOST_TESTED, len(names))).round().astype(int)
            tested |= {names[place] for place in places}
    key = fold.key
    rows = [row for row, (model, segment) in enumerate(key.pairs()) if model in chosen and segment in tested]
    key = key.subset(np.array(rows, np.int64))
    attack = replace(
        fold.attack,
        enrolment=_subset(fold.attack.enrolment, chosen),
        tested=_subset(fold.attack.tested, chosen, tested),
        trials=key.trials(),
    )
    return replace(fold, speakers=speakers, attack=attack, key=key)


def _subset(directory: DataDir, speakers: set[str], utterances: set[str] | None = None) -> DataDir:
    names = [
        name
        for name in directory.recordings
        if directory.speakers[name] in speakers and (utterances is None or name in utterances)
    ]
    return replace(
        directory,
        recordings={name: directory.recordings[name] for name in names},
        speakers={name: directory.speakers[name] for name in names},
        enrolls=None if directory.enrolls is None else tuple(names),
    )


@one_line
@dataclass
class FoldScores:
    """The scores of attackers on the trials of background speakers; each is made once, and kept.

    Attributes
    ----------
    place : Place
    attackers : mapping of str to Attacker
    """

    place: Place
    attackers: Mapping[str, Attacker] = field(repr=False)
    _folds: dict[Any, list[Fold]] = field(default_factory=dict, repr=False)
    _made: dict[Any, dict[str, list[Stage[Scores]] | str]] = field(default_factory=dict, repr=False)

    def folds(self, background: Background, kind: str) -> list[Fold]:
        """Return the folds of a background, see `fold_attacks`."""
        known = _known(background, kind)
        if known not in self._folds:
            self._folds[known] = fold_attacks(background, kind, self.place)
        return self._folds[known]

    def of(self, names: Sequence[str], background: Background, kind: str) -> dict[str, list[Stage[Scores]] | str]:
        """Return, for each of some attackers, its scores in each fold, made by now; or why it has none."""
        folds, made = self.folds(background, kind), self._made.setdefault(_known(background, kind), {})
        due: dict[str, list[Stage[Scores]]] = {name: [] for name in names if name not in made}
        training = background.anonymised[0] if kind == "semi-informed" else background.original
        for fold in folds:  # attackers share what they make of a fold
            for name in [name for name in due if name not in made]:
                try:
                    if why := self.attackers[name].lacks(fold.attack):
                        raise DataError(why)
                    folder = f"attackers/{training.name}/folds-{kind}"
                    stage = _declare(self.attackers[name], fold, self.place, folder)
                    stage.bring_up_to_date()
                    due[name].append(stage)
                except Exception as error:
                    if isinstance(error, ENDING):
                        raise
                    made[name] = why = (
                        error.text if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
                    )
                    logger.warning("fusion goes without %s: %s", name, why)
                    if not isinstance(error, SpkverError):
                        logger.info("%s", name, exc_info=error, extra={"file_only": True})
        made.update({name: stages for name, stages in due.items() if name not in made})
        return {name: made[name] for name in names}


def _known(background: Background, kind: str) -> Any:
    return background.original, *background.anonymised, kind


def _declare(attacker: Attacker, fold: Fold, place: Place, folder: str) -> Stage[Scores]:
    attack = fold.attack

    def make(draft: Draft) -> None:
        score = attacker.learn(attack.training)
        write_scores(draft.path, score(attack, Kept(draft.folder, draft.fingerprint)))

    speech = (*attack.sides, *attack.training)
    if isinstance(attacker, BackgroundAttacker):
        speech = attacker.speech(attack)
    sources = {
        f"{number} {name}": path
        for number, directory in enumerate(speech)
        for name, path in sorted(directory.recordings.items())
    }
    lists = [sorted(directory.speakers.items()) for directory in speech]
    run = Run(make_folder(place.output / folder), place.jobs, place.force, quiet=True, device=place.device)
    return run.stage(
        f"fold {fold.number} by {attacker.name}",
        f"{fold.number}/{attacker.name}/scores",
        make=make,
        read=read_scores,
        depends=Depends(
            inputs=[attacker.record(attack), place.seed, attack.trials, lists],
            sources=sources,
            libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
            on_device=True,
        ),
    )
