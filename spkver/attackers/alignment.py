"""Vector attackers that first map vectors of anonymised speech into the space of original speech.

    OUTPUT/attackers/<anonymised background>/<name>/alignment.h5      the map
    OUTPUT/attackers/<anonymised background>/<name>/alignment.json    the maps that were tried, and how well they link

The map is trained on pairs: recordings of the background and their anonymised versions. A vector attacker trained on
original speech scores the mapped vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Alignment, Embeddings, MapKind, fit_alignment, owner_ranks, speaker_folds
from evaluation.trials import INVERTING, Scores, Trials
from spkbase.files import make_folder, write_json
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.attackers import lists
from spkver.attackers.pieces import with_pieces
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet
from spkver.attackers.undoing import FOLDS, unfit_background
from spkver.attackers.vector_attacker import VectorAttacker, VectorSource
from spkver.datadir import DataDir

MAPS: dict[str, tuple[MapKind, float]] = {
    "centred": ("centred", 0.0),
    "orthogonal": ("orthogonal", 0.0),
    "orthogonal, prior 0.3": ("orthogonal", 0.3),
    "orthogonal, prior 1": ("orthogonal", 1.0),
    "ridge 0.1": ("ridge", 0.1),
    "ridge 0.3": ("ridge", 0.3),
    "ridge 1": ("ridge", 1.0),
}
"""The maps to try, simplest first: kind of map, and its prior or ridge."""

_VERSION = 2
_MOST_PAIRS = 3000  # pairs that a map is trained on, about
_ALIGNMENT = ("source_mean", "target_mean", "matrix")


def choose_map(
    anonymised: NDArray[np.floating], original: NDArray[np.floating], speakers: NDArray[np.object_], *, seed: int = 0
) -> tuple[str, dict[str, float]]:
    """Choose how a map is fitted, by cross-validation: how well it links speakers that it was not trained on.

    Parameters
    ----------
    anonymised, original : ndarray of a floating type of shape (n, D)
        A pair in each row.
    speakers : ndarray of str of shape (n,), dtype object
    seed : int
        Seed of the folds.

    Returns
    -------
    chosen : str
        A key of `MAPS`.
    scores : dict of str to float
        Mean reciprocal rank of the right speaker for each map; the original speakers of a fold are ranked by the cosine
        of their nearest vector. The first map within 0.001 of the best is chosen.
    """
    folds = speaker_folds(speakers.tolist(), FOLDS, seed=seed)
    scores = {}
    for name in MAPS:
        ranks = np.empty(len(folds))
        for fold in range(folds.max() + 1):
            tested = folds == fold
            alignment = _fitted(name, anonymised[~tested], original[~tested])
            moved = alignment.apply(anonymised[tested]) - alignment.target_mean
            gallery = original[tested] - alignment.target_mean
            ranks[tested] = owner_ranks(moved, speakers[tested], gallery, speakers[tested])
        scores[name] = float(np.mean(1 / ranks))
    best = max(scores.values())
    return next(name for name, score in scores.items() if score > best - 1e-3), scores


@one_line
@dataclass(frozen=True, eq=False)
class AlignedSource:
    """A `VectorSource` that maps the vectors of anonymised directories."""

    source: VectorSource
    alignment: Alignment
    anonymised: set[DataDir]

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""
        found = self.source.vectors(directory, utterances)
        return replace(found, vectors=self.alignment.apply(found.vectors)) if directory in self.anonymised else found


@one_line
@dataclass(frozen=True, eq=False)
class AlignedAttacker:
    """A vector attacker on mapped vectors of anonymised speech; see `spkver.attackers.Attacker`."""

    level: ClassVar[str] = INVERTING
    scenarios: ClassVar[tuple[str, ...]] = ("lazy-informed",)  # a backend of original speech, and anonymised sides

    name: str
    base: VectorAttacker
    place: Place = field(default=NOWHERE, repr=False)

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return both sides, and the speech that the map is trained on."""
        return *attack.sides, attack.training.original, *attack.training.anonymised

    def record(self, attack: Attack) -> Any:
        """Return what it depends on besides the speech."""
        return {"alignment": [_VERSION, list(MAPS)], "base": self.base.record(attack)}

    def lacks(self, attack: Attack) -> str:
        """Return why no map can be trained, or what the base attacker lacks."""
        return unfit_background(attack) or self.base.lacks(attack)

    def fit(self, training: TrainingSet) -> Scorer:
        """Train the map, and train the base attacker on original speech."""
        alignment, anonymised = self.alignment(training), set[DataDir]()

        def aligned(place: Place, versions: tuple[DataDir, ...]) -> VectorSource:
            return AlignedSource(self.base.source(versions), alignment, anonymised)

        score_aligned = replace(self.base, make_source=aligned).fit(replace(training, on_anonymised=False))

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            anonymised.update((lists.enrolled_speech(enrolment), tested))
            return score_aligned(enrolment, tested, trials)

        return score

    def alignment(self, training: TrainingSet) -> Alignment:
        """Choose and train the map, or reuse the one from an earlier run."""
        folder = make_folder(self.place.output / "attackers" / training.anonymised[0].name / self.name)
        run = Run(folder, self.place.jobs, self.place.force, quiet=True)
        # the same pieces as other vector attackers use: so each goes through a network only once
        sides = with_pieces((training.original, *training.anonymised), self.place)
        shared = sorted(set(sides[0].recordings).intersection(*(side.recordings for side in sides)))
        names = shared[:: -(-len(shared) * (len(sides) - 1) // _MOST_PAIRS)]

        def make(path: Path) -> None:
            source = self.base.source((training.original,))
            speakers = {name: sides[0].speakers[name] for name in names}
            found = [source.vectors(side, speakers) for side in sides]
            for side in found:
                side.norms()
            original, *versions = (np.asarray(side.vectors, np.float64) for side in found)
            anonymised, goal = np.concatenate(versions), np.concatenate([original] * len(versions))
            owners = np.concatenate([found[0].speakers] * len(versions))
            best, scores = choose_map(anonymised, goal, owners, seed=self.place.seed)
            fitted = _fitted(best, anonymised, goal)
            write_arrays(path, {name: getattr(fitted, name) for name in _ALIGNMENT})
            facts = {"attacker": self.name, "pairs": len(goal), "speakers": len(set(owners)), "folds": FOLDS}
            write_json(run.path("alignment.json"), {**facts, "chosen": best, "mean_reciprocal_rank": scores})

        return run.stage(
            f"alignment of {self.name}",
            "alignment.h5",
            make=make,
            read=lambda path: Alignment(**read_arrays(path, *_ALIGNMENT)),
            inputs=[_VERSION, list(MAPS), self.base.depends, sorted(sides[0].speakers.items()), self.place.seed],
            sources=lists.recordings_of([lists.select(side, set(names)) for side in sides]),
            libraries=("numpy", "scipy", "soundfile"),
            also=("alignment.json",),
        ).value


def _fitted(name: str, anonymised: NDArray[np.floating], original: NDArray[np.floating]) -> Alignment:
    kind, value = MAPS[name]
    options: dict[str, Any] = {"ridge": value} if kind == "ridge" else {"prior": value}
    return fit_alignment(anonymised, original, kind, **options)
