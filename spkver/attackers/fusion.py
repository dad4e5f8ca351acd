"""Fusion of attackers: a weighted sum of their scores, with weights trained on trials of background speakers.

Each attacker is trained on two thirds of the background speakers and scores trials of the others. From these scores, of
people who are neither enrolled nor tested, `evaluation.calibration.choose_fusion` learns a weight for each attacker. So
a fused score is a log-likelihood ratio that is calibrated on background speech.

    OUTPUT/attackers/<training set>/folds-<kind>/<fold>/<attacker>/scores    scores that weights are trained on
    OUTPUT/attackers/<training set>/<fusion>/weights-<key>.json              weights, folds, and attackers left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Affine, apply_affine, choose_fusion, cllr_of_trials
from evaluation.metrics import eer, sort_scores
from evaluation.trials import INVERTING, LEVELS, WHOLE_LIST, Scores, align
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkver.attackers import lists
from spkver.attackers.folds import Fold, background_folds, fewer_trials
from spkver.attackers.protocol import Attack, TrainingSet

FOLDS = 3
LEAST_SPEAKERS = 4
"""Fewest background speakers that weights can be trained on."""

METHOD = 2
"""Version of the method of training weights."""

ORIGINAL = "original"
"""Kind of background trials with original speech throughout; the other kinds are scenarios."""

_LEVELS = list(LEVELS)
_FORMAT = "spkver fusion of attackers"


@one_line
@dataclass(frozen=True)
class Fusion:
    """A fusion of all attackers up to a level of knowledge.

    Attributes
    ----------
    name : str
    highest : str
        Highest level of knowledge allowed for its members, see `evaluation.trials.LEVELS`.
    words : bool
        Whether attackers that read the words are members too.
    """

    source: ClassVar[None] = None
    hears_voices: ClassVar[bool] = True
    learns_from_pieces: ClassVar[bool] = True
    utterances: ClassVar[int | None] = 0  # the limits of its members apply

    name: str
    highest: str = WHOLE_LIST
    words: bool = False

    @property
    def inverts(self) -> bool:
        """Whether members may invert the anonymisation: then both sides of all trials must be anonymised."""
        return self.highest == INVERTING

    def takes(self, level: str, content: str = "") -> bool:
        """Return whether an attacker of this level of knowledge may be a member, given the source of its words."""
        return _LEVELS.index(level) <= _LEVELS.index(self.highest) and (self.words or not content)

    def kind(self, training: TrainingSet) -> str:
        """Return the kind of background trials that its weights are trained on.

        A fusion whose members may invert is trained on the trials of its scenario. Other fusions know only original
        trials in all scenarios whose attackers learn from original speech.
        """
        if training.on_anonymised:
            return "semi-informed"
        if self.inverts:
            return "lazy-informed"
        return ORIGINAL

    @property
    def with_words(self) -> Fusion:
        """The fusion with the attackers that read the words, which is made if there are any."""
        return Fusion(f"{self.name}-words", self.highest, words=True)

    @property
    def inverting(self) -> Fusion:
        """The fusion with the attackers that invert, which is made if there are any."""
        return Fusion(f"{self.name}-inverted", INVERTING)


def fold_attacks(background: TrainingSet, kind: str, *, seed: int) -> list[tuple[Fold, Attack]]:
    """Return folds of the background speakers, each with an attack on them.

    Parameters
    ----------
    background : TrainingSet
        In pieces if its speakers have one recording, see `spkver.attackers.pieces`.
    kind : str
        "original": original speech throughout; "lazy-informed": anonymised trials, for attackers that learn from
        original speech; "semi-informed": anonymised speech throughout.
    seed : int

    Returns
    -------
    list of (Fold, Attack)
        Empty if there are too few speakers.
    """
    original = background_folds((background.original,), seed=seed, folds=FOLDS)
    anonymised = []
    if background.anonymised:
        anonymised = background_folds(background.anonymised, seed=seed, folds=FOLDS)
    trials = original
    if kind != ORIGINAL:
        trials = anonymised
    if len(trials) < 2:
        return []
    directory = background.original
    if kind != ORIGINAL:
        directory = background.anonymised[0]
    made = []
    for number, fold in enumerate(trials):
        fold = fewer_trials(fold, seed=seed)
        training = TrainingSet(
            original[number].training[0],
            anonymised[number].training if anonymised else (),
            on_anonymised=kind == "semi-informed",
            name=f"folds/{background.versions[0].name}-{fold.number}-{kind}",
            is_fold=True,
            anonymizer=background.anonymizer,
        )
        # keep the name of the set: embeddings computed elsewhere are found by it
        enrolment = replace(fold.enrolment, path=directory.path)
        tested = replace(fold.tested, path=directory.path)
        made.append((fold, Attack(training, (enrolment,), tested, fold.key.trials(), kind)))
    return made


def fuse(weights: Mapping[str, Any], scores: Mapping[str, Scores]) -> Scores:
    """Return the weighted sum of scores of the same trials, see `learn_weights`."""
    trials = next(iter(scores.values()))
    used = {name: weight for name, weight in weights["weights"].items() if weight}
    affine = Affine(tuple(used.values()), weights["offset"], weights["prior"], tuple(used))
    columns = [align(scores[name], trials) for name in used]
    return lists.as_scores(trials, apply_affine(affine, np.column_stack(columns)))


def learn_weights(
    folds: Sequence[Fold], by_attacker: Mapping[str, Sequence[Scores]], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Train the weights of attackers on their scores in the folds.

    Parameters
    ----------
    folds : sequence of Fold
    by_attacker : mapping of str to sequence of Scores
        Scores by attacker, one for each fold.
    about : mapping
        Further entries of the file.

    Returns
    -------
    dict
        Weights, how they were chosen, and Cllr and EER of each attacker and of the cross-validated fusion.
    """
    keys = [fold.key for fold in folds]
    columns = {}
    left_out = {}
    for name, scores_of_folds in by_attacker.items():
        column = np.concatenate(list(map(align, scores_of_folds, keys)))
        if np.isfinite(column).all():
            columns[name] = column
        else:
            left_out[name] = "it gives infinite scores"
    if not columns:
        raise DataError(f"no attacker can be fused: {', '.join(left_out)} give infinite scores")
    names = list(columns)
    scores = np.column_stack(list(columns.values()))
    truth = []
    fold_numbers = []
    models = []
    for fold in folds:
        truth.append(fold.key.is_target)
        fold_numbers.append(np.full(len(fold.key), fold.number))
        models.append(fold.key.model_ids[fold.key.models])
    is_target = np.concatenate(truth)
    numbers = np.concatenate(fold_numbers)
    chosen = choose_fusion(scores, is_target, numbers, np.concatenate(models), names)
    affine = chosen.affine
    weights = {
        "weights": dict(zip(names, affine.weights, strict=True)),
        "offset": affine.offset,
        "prior": affine.prior,
    }
    alone = {}
    for name, column in columns.items():
        alone[name] = {"cllr": chosen.alone[name], "eer": _error_rate(column, is_target)}
    return {
        "format": _FORMAT,
        **about,
        "left_out": {**about.get("left_out", {}), **left_out},
        "weights": {**weights, "ridge": chosen.ridge},
        "cross_validated": {"cllr": chosen.cllr, "eer": _error_rate(chosen.llr, is_target)},
        "alone": alone,
        "ridges": [{"ridge": ridge, "cllr": cllr} for ridge, cllr in chosen.tried.items()],
        "folds": [_described(fold, chosen.llr[numbers == fold.number]) for fold in folds],
    }


def _error_rate(values: NDArray[Any], is_target: NDArray[Any]) -> float:
    return float(eer(sort_scores(values[is_target], values[~is_target]), method="interpolated"))


def _described(fold: Fold, llr: NDArray[Any]) -> dict[str, Any]:
    is_target = fold.key.is_target
    counts = {"targets": int(is_target.sum()), "nontargets": int((~is_target).sum())}
    rates = {
        "cllr": float(cllr_of_trials(llr, is_target).sum()),
        "eer": _error_rate(llr, is_target),
    }
    return {"fold": fold.number, "speakers": len(fold.speakers), **counts, **rates}
