"""Attackers by vectors that first map the space of anonymised speech to that of original speech.

    OUTPUT/attackers/<anonymised background>/<name>/alignment.h5      the map
    OUTPUT/attackers/<anonymised background>/<name>/alignment.json    the maps that were tried, and how well they link

The map is learnt on pairs: recordings of the background and their anonymised versions, with ``own_pairs`` those of the
enrolment too (then the files lie below the anonymised enrolment). What comes after it is the attacker by vectors that
learnt from original speech.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    Alignment,
    Embeddings,
    MapKind,
    fit_alignment,
    owner_ranks,
    speaker_folds,
)
from evaluation.reports import INVERTING
from evaluation.trials import Scores, Trials
from spkbase.files import make_folder, write_json
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.attackers.folds import with_pieces
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet, enrolled_speech
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
"""The maps that are tried, from the simplest on: what is fitted, and its prior or ridge."""

OPTIONS = ("own_means", "own_pairs")
"""Further settings: the mean of each anonymised side is subtracted, which needs all unlabelled recordings of a list;
the map learns from original and anonymised enrolment too, which who enrols and has the anonymiser can make."""

Pairs = tuple[tuple[DataDir, ...], ...]
"""Of the background, and perhaps of the enrolment: original speech, then its anonymised versions."""

_VERSION = 2
_FOLDS, _LEAST = 5, 10
_MOST = 3000  # recordings that a map is learnt from


def choose_map(
    anonymised: NDArray[np.floating], original: NDArray[np.floating], speakers: NDArray[np.object_], *, seed: int = 0
) -> tuple[str, dict[str, float]]:
    """Choose how a map is fitted, by folds of speakers: by how well it links those that it did not learn from.

    Parameters
    ----------
    anonymised, original : ndarray of a floating type of shape (n, D)
        A pair in each row.
    speakers : ndarray of str of shape (n,), dtype object
    seed : int
        Of the folds.

    Returns
    -------
    chosen : str
        A key of `MAPS`.
    scores : dict of str to float
        For each the mean of 1 / rank of the right speaker, in the order of the original speakers of the fold by the
        cosine of their nearest vector. Of those that are as good to 0.001 the first is chosen.
    """
    folds = speaker_folds(speakers.tolist(), _FOLDS, seed=seed)
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


def _fitted(name: str, anonymised: NDArray[np.floating], original: NDArray[np.floating]) -> Alignment:
    kind, value = MAPS[name]
    options = {"ridge": value} if kind == "ridge" else {"prior": value}
    return fit_alignment(anonymised, original, kind, **options)


@one_line
@dataclass(frozen=True, eq=False)
class AlignedSource:
    """Vectors of a source, those of anonymised directories mapped; see `spkver.attackers.vector_attacker.VectorSource`.

    With `own_means` their mean over all requested vectors is subtracted in place of that of the pairs.
    """

    source: VectorSource
    alignment: Alignment
    anonymised: set[DataDir]
    own_means: bool = False

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""
        found = self.source.vectors(directory, utterances)
        if directory not in self.anonymised:
            return found
        source_mean = np.mean(found.vectors, axis=0) if self.own_means else self.alignment.source_mean
        return replace(found, vectors=replace(self.alignment, source_mean=source_mean).apply(found.vectors))


@one_line
@dataclass(frozen=True, eq=False)
class AlignedAttacker:
    """An attacker by vectors, after a map of what is anonymised; see `spkver.attackers.Attacker`.

    `options` are those of `OPTIONS` that are on.
    """

    level: ClassVar[str] = INVERTING
    scenarios: ClassVar[tuple[str, ...]] = ("lazy-informed",)  # the backend is of original speech, the sides are not

    name: str
    base: VectorAttacker
    options: frozenset[str] = frozenset()
    place: Place = field(default=NOWHERE, repr=False)

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return both sides, and all that the map is learnt from."""
        return *attack.sides, *chain.from_iterable(self._pairs(attack.training))

    def _pairs(self, training: TrainingSet) -> Pairs:
        pairs = (training.original, *training.anonymised)
        return (pairs, training.own) if "own_pairs" in self.options and training.own else (pairs,)

    def record(self, attack: Attack) -> Any:
        """Return what it depends on besides the speech."""
        return {"alignment": [_VERSION, list(MAPS), *sorted(self.options)], "base": self.base.record(attack)}

    def lacks(self, attack: Attack) -> str:
        """Return why there is nothing to learn a map from, or what the base attacker lacks."""
        background = attack.training
        if not background.anonymised:
            return "there is no anonymised background"
        n_pairs = len(background.original.recordings.keys() & background.anonymised[0].recordings.keys())
        people = set(background.original.speakers.values())
        if n_pairs < _LEAST or len(people) < 2:
            return f"a background of {n_pairs} pairs of {len(people)} speakers is too small: at least {_LEAST} of 2"
        if shared := people & set(attack.enrolment[0].speakers.values()):
            return f"{len(shared)} speakers of the background are among those that are enrolled"
        if "own_pairs" in self.options and not background.own:
            return "the original enrolment is not available"
        return self.base.lacks(attack)

    def fit(self, training: TrainingSet) -> Scorer:
        """Learn the map, and have the base attacker learn from original speech."""
        alignment, anonymised = self.alignment(self._pairs(training)), set[DataDir]()

        def aligned(place: Place, versions: tuple[DataDir, ...]) -> VectorSource:
            return AlignedSource(self.base.source(versions), alignment, anonymised, "own_means" in self.options)

        score_aligned = replace(self.base, make_source=aligned).fit(replace(training, on_anonymised=False))

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            anonymised.update((enrolled_speech(enrolment), tested))
            return score_aligned(enrolment, tested, trials)

        return score

    def alignment(self, pairs: Pairs) -> Alignment:
        """Choose and learn the map, or take the one that an earlier run has."""
        folder = make_folder(self.place.output / "attackers" / pairs[-1][1].name / self.name)
        run = Run(folder, self.place.jobs, self.place.force, quiet=True)
        # pieces where attackers by vectors use pieces: so each recording goes through a network once
        chosen = []
        for sides in (with_pieces(pairs[0], self.place), *pairs[1:]):
            # of an enrolment what it lists: other recordings of its folder may be tested
            listed = set(sides[0].enrolls or sides[0].recordings)
            shared = sorted(listed.intersection(*(side.recordings for side in sides)))
            chosen.append((sides, shared[:: -(-len(shared) * (len(sides) - 1) // _MOST)]))

        def make(path: Path) -> None:
            source = self.base.source((pairs[0][0],))
            originals, found = [], []
            for sides, names in chosen:
                speakers = {name: sides[0].speakers[name] for name in names}
                original, *versions = (source.vectors(side, speakers) for side in sides)
                originals += [original] * len(versions)
                found += versions
            for side in (*originals, *found):
                side.norms()
            anonymised, goal = (
                np.concatenate([np.asarray(part.vectors, np.float64) for part in parts]) for parts in (found, originals)
            )
            owners = np.concatenate([part.speakers for part in originals])
            best, scores = choose_map(anonymised, goal, owners, seed=self.place.seed)
            fitted = _fitted(best, anonymised, goal)
            write_arrays(path, {name: getattr(fitted, name) for name in _ARRAYS})
            facts = {"attacker": self.name, "pairs": len(goal), "speakers": len(set(owners)), "folds": _FOLDS}
            write_json(run.path("alignment.json"), {**facts, "chosen": best, "mean_reciprocal_rank": scores})

        each = enumerate((side, names) for sides, names in chosen for side in sides)
        speakers = sorted(chain.from_iterable(sides[0].speakers.items() for sides, _ in chosen))
        return run.stage(
            f"alignment of {self.name}",
            "alignment.h5",
            make=make,
            read=lambda path: Alignment(**read_arrays(path, *_ARRAYS)),
            inputs=[_VERSION, list(MAPS), self.base.depends, speakers, self.place.seed],
            sources={
                f"{number} {name}": Path(side.recordings[name]) for number, (side, names) in each for name in names
            },
            libraries=("numpy", "scipy", "soundfile"),
            also=("alignment.json",),
        ).value


_ARRAYS = ("source_mean", "target_mean", "matrix")
