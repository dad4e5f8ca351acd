"""Fusion of attackers, itself an attacker: its weights are trained on trials of background speakers.

Each attacker is trained on two thirds of the background speakers and scores trials of the others. From these scores, of
people who are neither enrolled nor tested, `evaluation.calibration.choose_fusion` learns a weight for each attacker. So
a fused score is a log-likelihood ratio, calibrated on background speech.

    OUTPUT/attackers/<training set>/<fusion>/weights-<key>.json    weights, folds, and attackers left out

    OUTPUT/attackers/<training set>/folds-<kind>/<fold>/<attacker>/scores    scores that it is trained on
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import Affine, apply_affine, choose_fusion, cllr_of_trials
from evaluation.formats import read_scores, write_scores
from evaluation.metrics import eer, sort_scores
from evaluation.trials import INVERTING, LEVELS, TRIAL_BY_TRIAL, WHOLE_LIST, Scores, Trials, align
from spkbase.errors import ConfigError, DataError, SpkverError
from spkbase.files import fingerprint, load_json, make_folder, write_json
from spkbase.runs import Run, Stage, Stamp
from spkbase.showing import one_line
from spkver.attackers import lists
from spkver.attackers.folds import Fold, background_folds
from spkver.attackers.pieces import needs_pieces
from spkver.attackers.protocol import ENDING, NOWHERE, Attack, Attacker, Place, Scorer, TrainingSet, level_of, speech_of
from spkver.attackers.vector_attacker import Context, Settings
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

FOLDS = 3
MOST_SPEAKERS = 60
"""Background speakers of a fold in trials, at most."""

MOST_TESTED = 6
"""Tested recordings of each speaker, at most."""

OF_THE_RECORDING = ("session",)
"""Presets that recognise a recording, not a voice: with one recording per speaker, the background cannot tell them
apart."""

INVERTED = "-inverted"
_LEVELS = list(LEVELS)
_FORMAT = "spkver fusion of attackers"
_METHOD = 1  # version of the method of training weights
_LEAST_SPEAKERS = 4
_KEY = 8  # digits


def kind_of(training: TrainingSet, *, inverting: bool) -> str:
    """Return the kind of background trials that a fusion with this training set is trained on.

    A fusion whose members may use both sides of the background (`inverting`) is trained on the trials of its scenario.
    Other fusions know only original trials in all scenarios whose attackers learn from original speech.
    """
    if training.on_anonymised:
        return "semi-informed"
    return "lazy-informed" if inverting else "original"


def fold_attacks(background: TrainingSet, kind: str, place: Place) -> list[Fold]:
    """Return folds of the background speakers, each with trials of a kind and with a training set.

    Parameters
    ----------
    background : TrainingSet
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
    differ = anonymised and [fold.speakers for fold in original] != [fold.speakers for fold in anonymised]
    if len(trials) < 2 or differ:
        text = "fusion needs four background speakers with two recordings, or with one that can be cut in two"
        raise DataError(text, file=background.original.path, remedy="leave it out of 'attackers'")
    made = []
    for number, fold in enumerate(trials):
        training = TrainingSet(
            original[number].attack.training.versions[0],
            anonymised[number].attack.training.versions if anonymised else (),
            on_anonymised=kind == "semi-informed",
            name=f"folds/{background.versions[0].name}-{fold.number}-{kind}",
            whole=background,
        )
        # under the name of the set, since embeddings computed elsewhere are found by it
        path = (background.original if kind == "original" else background.anonymised[0]).path
        enrolment, tested = (replace(side, path=path) for side in fold.attack.sides)
        attack = Attack(training, (enrolment,), tested, fold.attack.trials, kind)
        made.append(_fewer(replace(fold, attack=attack), place.seed))
    return made


def fold_scores(
    members: Mapping[str, Attacker], place: Place, background: TrainingSet, kind: str
) -> tuple[list[Fold], dict[str, list[Stage[Scores]] | str]]:
    """Return the folds of a background, see `fold_attacks`, and the scores of attackers on them.

    Returns
    -------
    folds : list of Fold
    made : dict of str to list of Stage, or str
        For each attacker, its cached scores in each fold, or the reason there are none.
    """
    key = "folds", background.original, *background.anonymised, kind
    if key not in place.shared:
        place.shared[key] = fold_attacks(background, kind, place), {}
    folds, made = place.shared[key]
    due: dict[str, list[Stage[Scores]]] = {name: [] for name in members if name not in made}
    training = background.anonymised[0] if kind == "semi-informed" else background.original
    for fold in folds:  # attackers share the features and vectors of a fold
        for name in [name for name in due if name not in made]:
            try:
                if why := members[name].lacks(fold.attack):
                    raise DataError(why)
                folder = f"attackers/{training.name}/folds-{kind}"
                due[name].append(_score_fold(members[name], fold, place, folder))
            except ENDING:
                raise
            except Exception as error:  # whatever it is, the others are fused
                made[name] = why = error.text if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
                logger.warning("fusion leaves out %s: %s", name, why)
                if not isinstance(error, SpkverError):
                    logger.info("%s", name, exc_info=error, extra={"file_only": True})
    made.update({name: stages for name, stages in due.items() if name not in made})
    return folds, made


@one_line
@dataclass(frozen=True)
class Fusion:
    """A fusion of attackers; the caller gives the scores to fuse, see `fuse`.

    Attributes
    ----------
    name : str
    members : mapping of str to Attacker
        Attackers that may be fused.
    of_recording : tuple of str
        Attackers that recognise recordings.
    highest : str
        Highest level of knowledge allowed for its members, see `evaluation.trials.LEVELS`.
    """

    name: str
    members: Mapping[str, Attacker] = field(default_factory=dict, repr=False)
    of_recording: tuple[str, ...] = ()
    highest: str = WHOLE_LIST
    place: Place = field(default=NOWHERE, repr=False)

    def further(self) -> list[Fusion]:
        """Return further fusions: of only the trial-by-trial members, and of all members if some invert."""
        levels = {level_of(member) for member in self.members.values()}
        found: list[Fusion] = []
        if levels >= {TRIAL_BY_TRIAL, WHOLE_LIST}:
            found.append(replace(self, name=f"{self.name}-{TRIAL_BY_TRIAL}", highest=TRIAL_BY_TRIAL))
        if INVERTING in levels:
            found.append(replace(self, name=self.name + INVERTED, highest=INVERTING))
        return found

    @property
    def level(self) -> str:
        """The highest level of knowledge of its members."""
        levels = [level_of(member) for name, member in self.members.items() if self.takes(name)]
        return max(levels, key=_LEVELS.index, default=TRIAL_BY_TRIAL)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that it is made for; empty, for all, if no member inverts."""
        return ("lazy-informed", "semi-informed") if self.highest == INVERTING else ()

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return all data directories that its scores depend on."""
        training = attack.training
        both = (training.original, *training.anonymised) if self.highest == INVERTING else training.versions
        return tuple(dict.fromkeys((*attack.sides, *both)))

    def takes(self, name: str) -> bool:
        """Return whether an attacker may be a member."""
        member = self.members.get(name)
        return member is not None and _LEVELS.index(level_of(member)) <= _LEVELS.index(self.highest)

    def record(self, attack: Attack) -> Any:
        """Return what its weights depend on besides the scores."""
        return {"fusion": _METHOD, "folds": [FOLDS, MOST_SPEAKERS, MOST_TESTED], "of_recording": self.of_recording}

    def lacks(self, attack: Attack) -> str:
        """Return that there are too few background speakers, or an empty string."""
        count = len(set(attack.training.versions[0].speakers.values()))
        return "" if count >= _LEAST_SPEAKERS else f"{count} background speakers: a fusion needs {_LEAST_SPEAKERS}"

    def fit(self, training: TrainingSet) -> Scorer:
        """Return a scorer that fuses the scores of all members."""
        scorers = {name: member.fit(training) for name, member in self.members.items() if self.takes(name)}

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            return self.fuse(training, {name: one(enrolment, tested, trials) for name, one in scorers.items()})

        return score

    def file(self, training: TrainingSet, names: Sequence[str]) -> Path:
        """Return the path of the weights of some attackers with a training set."""
        folder = self.place.output / "attackers" / training.versions[0].name / self.name
        kind = kind_of(training, inverting=self.highest == INVERTING)
        return folder / f"weights-{fingerprint(kind, list(names))[:_KEY]}.json"

    def fuse(self, training: TrainingSet, found: Mapping[str, Scores]) -> Scores:
        """Fuse scores of the same trials.

        Parameters
        ----------
        training : TrainingSet
        found : mapping of str to Scores
            Scores by attacker; weights are trained unless they are there.

        Raises
        ------
        DataError
            If no attacker can be fused.
        """
        weights, trials = self.weights(training, list(found)).value["weights"], next(iter(found.values()))
        used = {name: weight for name, weight in weights["weights"].items() if weight}
        affine = Affine(tuple(used.values()), weights["offset"], weights["prior"], tuple(used))
        columns = np.column_stack([align(found[name], trials) for name in used])
        return lists.as_scores(trials, apply_affine(affine, columns))

    def weights(self, training: TrainingSet, names: Sequence[str]) -> Stage[dict[str, Any]]:
        """Train the weights of some attackers with a training set, on their scores of the background.

        Raises
        ------
        DataError
            If none of them can be fused.
        """
        kind = kind_of(training, inverting=self.highest == INVERTING)
        left_out: dict[str, str] = {}
        stages: dict[str, list[Stage[Scores]]] = {}
        if needs_pieces(training.original):
            why = "it recognises recordings, and background speakers have one recording each"
            left_out = {name: why for name in names if name in self.of_recording}
        asked = {name: self.members[name] for name in names if name not in left_out}
        folds, made = fold_scores(asked, self.place, training, kind)
        for name in asked:
            scored = made[name]
            if isinstance(scored, str):
                left_out[name] = scored
            else:
                stages[name] = scored
        if not stages:
            reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
            raise DataError(f"attacker {self.name!r} has no attacker to fuse ({reasons})")
        file = self.file(training, names)
        run = Run(make_folder(file.parent), quiet=True, force=self.place.force)
        about = {"attacker": self.name, "training": training.versions[0].name, "kind": kind, "left_out": left_out}

        def make(path: Path) -> None:
            found = {name: [stage.value for stage in of_folds] for name, of_folds in stages.items()}
            write_json(path, learn_weights(folds, found, about))

        return run.stage(
            f"weights of {self.name}",
            file.name,
            make=make,
            read=load_json,
            inputs=[_METHOD, about, list(stages), [fold.key for fold in folds]],
            after=[Stamp(f"{name} {stage.name}", stage.fingerprint) for name in stages for stage in stages[name]],
            libraries=("numpy", "scipy"),
        )


def learn_weights(
    folds: Sequence[Fold], found: Mapping[str, Sequence[Scores]], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Train the weights of attackers on their scores in the folds.

    Parameters
    ----------
    folds : sequence of Fold
    found : mapping of str to sequence of Scores
        Scores by attacker, one for each fold.
    about : mapping
        Further entries of the file.

    Returns
    -------
    dict
        Weights, how they were chosen, and Cllr and EER of each attacker and of the cross-validated fusion.
    """
    names = [name for name, of_folds in found.items() if all(np.isfinite(scores.values).all() for scores in of_folds)]
    left_out = {name: "it gives infinite scores" for name in found if name not in names}
    if not names:
        raise DataError(f"no attacker can be fused: {', '.join(left_out)} give infinite scores")
    keys = [fold.key for fold in folds]
    scores = np.column_stack([np.concatenate([*map(align, found[name], keys)]) for name in names])
    is_target = np.concatenate([key.is_target for key in keys])
    numbers = np.concatenate([np.full(len(fold.key), fold.number) for fold in folds])
    speakers = np.concatenate([fold.key.model_ids[fold.key.models] for fold in folds])
    chosen = choose_fusion(scores, is_target, numbers, speakers, names)
    affine = chosen.affine
    weights = {"weights": dict(zip(names, affine.weights, strict=True)), "offset": affine.offset, "prior": affine.prior}
    rates = [_error_rate(column, is_target) for column in scores.T]
    alone = {name: {"cllr": chosen.alone[name], "eer": rate} for name, rate in zip(names, rates, strict=True)}
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


def fusion_attacker(name: str, settings: Settings, context: Context) -> Fusion:
    """Create the fusion of all other attackers except the content attacker: anonymisation must keep the words."""
    if settings:
        raise ConfigError(f"attacker_settings of {name}: {', '.join(settings)}: a fusion has none")
    presets = {other: of_it["preset"] for other, of_it in context.settings.items() if "preset" in of_it}
    others = (*OF_THE_RECORDING, *presets)
    return Fusion(name, of_recording=tuple(one for one in others if presets.get(one, one) in OF_THE_RECORDING))


def put_to_work(attackers: Sequence[Attacker], place: Place) -> list[Attacker]:
    """Return attackers set up at a place, the fusions last, each followed by its further fusions."""

    def at_work(attacker: Any) -> Any:
        base = getattr(attacker, "base", None)
        attacker = attacker if base is None else replace(attacker, base=at_work(base))
        return replace(attacker, place=place) if hasattr(attacker, "place") else attacker

    made = [at_work(attacker) for attacker in attackers]
    members = {one.name: one for one in made if not isinstance(one, Fusion) and not getattr(one, "content", "")}
    fusions = [replace(one, members=members) for one in made if isinstance(one, Fusion)]
    alone = [one for one in made if not isinstance(one, Fusion)]
    return [*alone, *(each for fusion in fusions for each in (fusion, *fusion.further()))]


def _fewer(fold: Fold, seed: int) -> Fold:
    """Reduce the speakers and tests of a large fold: the time is better spent on training."""
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
    (enrolment,) = fold.attack.enrolment
    enrolment = lists.select(enrolment, {name for name, speaker in enrolment.speakers.items() if speaker in chosen})
    tests = lists.select(fold.attack.tested, tested)
    attack = replace(fold.attack, enrolment=(enrolment,), tested=tests, trials=key.trials())
    return replace(fold, speakers=speakers, attack=attack, key=key)


def _score_fold(attacker: Attacker, fold: Fold, place: Place, folder: str) -> Stage[Scores]:
    """Train an attacker on a fold and score it, or reuse the scores."""
    attack, speech = fold.attack, speech_of(attacker, fold.attack)
    known = [sorted(directory.speakers.items()) for directory in speech]
    run = Run(make_folder(place.output / folder), place.jobs, place.force, quiet=True)
    return run.stage(
        f"fold {fold.number} by {attacker.name}",
        f"{fold.number}/{attacker.name}/scores",
        make=lambda path: write_scores(path, attack.scored_by(attacker.fit(attack.training))),
        read=read_scores,
        inputs=[attacker.record(attack), place.seed, attack.trials, known],
        sources=lists.recordings_of(speech),
        libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
    )


def _error_rate(values: NDArray, is_target: NDArray) -> float:
    return float(eer(sort_scores(values[is_target], values[~is_target]), method="interpolated"))


def _described(fold: Fold, llr: NDArray) -> dict[str, Any]:
    is_target = fold.key.is_target
    counts = {"targets": int(is_target.sum()), "nontargets": int((~is_target).sum())}
    rates = {"cllr": float(cllr_of_trials(llr, is_target).sum()), "eer": _error_rate(llr, is_target)}
    return {"fold": fold.number, "speakers": len(fold.speakers), **counts, **rates}
