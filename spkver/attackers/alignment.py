"""Vector attackers that first map vectors of anonymised speech into the space of original speech.

    OUTPUT/attackers/<anonymised background>/<name>/alignment.h5      the map
    OUTPUT/attackers/<anonymised background>/<name>/alignment.json    the maps that were tried, and how well they link

The map is trained on pairs: recordings of the background and their anonymised versions. A vector attacker trained on
original speech scores the mapped vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Alignment, MapKind, fit_alignment, owner_ranks, speaker_folds
from spkbase.files import make_folder, write_json
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Run
from spkver.attackers import lists
from spkver.attackers.pieces import whole_name
from spkver.attackers.protocol import Extracted, TrainingSet
from spkver.attackers.sources import Vectors

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

FOLDS = 5
"""Folds of background speakers."""

_VERSION = 3
_MOST_PAIRS = 3000  # pairs that a map is trained on, about
_ALIGNMENT = ("source_mean", "target_mean", "matrix")


def choose_map(
    anonymised: NDArray[np.floating], original: NDArray[np.floating], speakers: NDArray[np.object_], *, seed: int = 0
) -> tuple[str, dict[str, float]]:
    """Choose the kind of map that links unseen speakers best, by cross-validation over speakers.

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


def train_alignment(extracted: Extracted, name: str, vectors: Vectors, record: Any, training: TrainingSet) -> Alignment:
    """Choose and train the map from vectors of anonymised speech to original ones, or reuse it.

    Parameters
    ----------
    extracted : Extracted
    name : str
        Of the attacker.
    vectors : callable
        Returns the vectors of a data directory.
    record : object
        What the vectors depend on besides the recordings.
    training : TrainingSet
    """
    folder = make_folder(extracted.run.path(f"attackers/{whole_name(training.anonymised[0])}/{name}"))
    run = Run(folder, extracted.run.jobs, extracted.run.force, quiet=True)
    sides = training.original, *training.anonymised
    shared = sorted(set(sides[0].recordings).intersection(*(side.recordings for side in sides)))
    names = set(shared[:: -(-len(shared) * (len(sides) - 1) // _MOST_PAIRS)])
    chosen = [lists.select(side, names) for side in sides]

    def make(path: Path) -> None:
        found = [vectors(side) for side in chosen]
        for side in found:
            side.norms()
        original, *versions = (np.asarray(side.vectors, np.float64) for side in found)
        anonymised, goal = np.concatenate(versions), np.concatenate([original] * len(versions))
        owners = np.concatenate([found[0].speakers] * len(versions))
        best, scores = choose_map(anonymised, goal, owners, seed=extracted.seed)
        fitted = _fitted(best, anonymised, goal)
        write_arrays(path, {part: getattr(fitted, part) for part in _ALIGNMENT})
        facts = {"attacker": name, "pairs": len(goal), "speakers": len(set(owners)), "folds": FOLDS}
        write_json(run.path("alignment.json"), {**facts, "chosen": best, "mean_reciprocal_rank": scores})

    alignment: Alignment = run.stage(
        f"alignment of {name}",
        "alignment.h5",
        make=make,
        read=lambda path: Alignment(**read_arrays(path, *_ALIGNMENT)),
        inputs=[_VERSION, list(MAPS), record, sorted(sides[0].speakers.items()), extracted.seed],
        sources=lists.recordings_of(chosen),
        libraries=("numpy", "scipy", "soundfile"),
        also=("alignment.json",),
    ).value
    return alignment


def _fitted(name: str, anonymised: NDArray[np.floating], original: NDArray[np.floating]) -> Alignment:
    kind, value = MAPS[name]
    options: dict[str, Any] = {"ridge": value} if kind == "ridge" else {"prior": value}
    return fit_alignment(anonymised, original, kind, **options)
