"""Share of anonymised segments and speakers linked to the right speaker after alignment of the spaces.

Conventions
-----------
Vectors are scaled to length 1 first, and compared by cosine after subtracting the mean of the original space; "none"
and ``uncentred`` compare them as they are. Each anonymised vector is aligned by a map that was not trained on its
speaker, unless given training pairs contain the speaker. The means are those of the training vectors, or with
``own_means`` those of the linked vectors: then an attacker adapts to all unlabelled anonymised segments ("whole
list"). The links are


* *anonymised to original*: an anonymised segment to the speaker of the nearest original segment (which may be its
  own original), as an attacker does,
* *original to anonymised*: an original segment to the speaker of the nearest mapped anonymised segment, which is the
  accuracy of Champion et al. (ASRU 2021) for "orthogonal" with ``uncentred``; where folds have a map each, the original
  segments are centred by the mean of their target means,
* *segments to speakers*: an anonymised segment to the nearest mean of a speaker's original segments,
* *speakers to speakers*: the mean of a speaker's anonymised segments to the nearest mean of original ones.

Top k: the right speaker is among the k nearest, where a speaker is as near as its nearest vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    Alignment,
    Embeddings,
    fit_alignment,
    fit_alignment_without_pairs,
    owner_ranks,
    speaker_folds,
    to_unit,
)
from evaluation.linkage.curve import linkability_curve
from evaluation.linkage.ranks import Ranks
from evaluation.uncertainty import Resampling
from spkbase.errors import ConfigError, DataError, counted, few

Vectors = NDArray[np.float64]

LINKED = (
    "anonymised to original",
    "original to anonymised",
    "segments to speakers",
    "speakers to speakers",
)
WITH_PAIRS = ("centred", "orthogonal", "ridge")
ALIGNMENTS = ("none", *WITH_PAIRS, "wasserstein")
"""Treatment of vectors before they are compared: none; the mean, an orthogonal or any linear map, trained on pairs;
an orthogonal map that is trained without pairs."""


@dataclass(frozen=True)
class AlignmentSettings:
    """How maps are fitted; see `evaluation.embeddings.fit_alignment` and `fit_alignment_without_pairs`.

    Attributes
    ----------
    folds : int
        Folds of speakers, where no training vectors are given.
    seed, restarts : int
        Seed of the folds; seed and number of starts of the map without pairs.
    ridge, prior : float
        Penalties of the maps that are trained on pairs.
    one_extractor : bool
        Both sides come from the same extractor.
    own_means : bool
        Every map subtracts and adds the means of the linked vectors.
    uncentred : bool
        No map subtracts or adds a mean.

    Raises
    ------
    ConfigError
        If both ``uncentred`` and ``own_means`` are set.
    """

    folds: int = 5
    seed: int = 0
    ridge: float = 0.1
    prior: float = 0.0
    restarts: int = 5
    one_extractor: bool = True
    own_means: bool = False
    uncentred: bool = False

    def __post_init__(self) -> None:
        if self.uncentred and self.own_means:
            raise _means_of_uncentred("own_means=True")


def linked_vectors(embeddings: Embeddings, *, unit: bool = True) -> Embeddings:
    """Return vectors in float64, with `unit` scaled to length 1; raise DataError for zero or non-finite vectors."""
    norms = embeddings.norms()
    if unit:
        vectors = to_unit(embeddings.vectors, norms)
    else:
        vectors = np.asarray(embeddings.vectors, np.float64)
    return replace(embeddings, vectors=vectors)


def paired(
    original: Embeddings, anonymised: Embeddings
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of both sides with equal ids.

    Raises
    ------
    DataError
        If fewer than two ids are on both sides, or one of them has two speakers.
    """
    row_of = {name: row for row, name in enumerate(original.ids.tolist())}
    columns = np.array(
        [column for column, name in enumerate(anonymised.ids.tolist()) if name in row_of], np.int64
    )
    rows = np.array([row_of[anonymised.ids[column]] for column in columns], np.int64)
    if len(rows) < 2:
        text = f"{len(rows)} of {len(anonymised)} anonymised utterances have an original of the same id"
        raise DataError(text, remedy="pairs are found by id; alignment='wasserstein' needs none")
    strange = anonymised.ids[columns][
        original.speakers[rows] != anonymised.speakers[columns]
    ].tolist()
    if strange:
        text = counted(len(strange), "utterance")
        text += " with one speaker on the original and another on the anonymised side"
        raise DataError(
            f"{text}: {few(strange)}", remedy="give the speakers of both sides, as in utt2spk"
        )
    return rows, columns


def learnt_maps(
    sides: tuple[Embeddings, Embeddings],
    training: tuple[Embeddings, Embeddings] | None,
    kind: str,
    settings: AlignmentSettings,
) -> Iterator[tuple[NDArray[np.bool_], Alignment | None]]:
    """Yield anonymised vectors and their map, which was not trained on their speakers.

    Parameters
    ----------
    sides : (original, anonymised)
        The embeddings to be linked.
    training : (original, anonymised) or None
        Training vectors. By default folds of the linked speakers; a map without pairs then learns from all of them,
        since it does not use the speakers.
    kind : str
        One of `ALIGNMENTS`.
    settings : AlignmentSettings
        How maps are learnt.
    """
    anonymised = sides[1]
    everybody = np.ones(len(anonymised), bool)
    if kind == "none":
        yield everybody, None
        return
    if kind == "wasserstein":
        source, target = reversed(training or sides)
        alignment = fit_alignment_without_pairs(
            source.vectors,
            target.vectors,
            one_extractor=settings.one_extractor,
            seed=settings.seed,
            restarts=settings.restarts,
            uncentred=settings.uncentred,
        )
        yield everybody, alignment
        return
    originals, copies = training or sides
    rows, columns = paired(originals, copies)
    folds = np.zeros(len(anonymised), np.int64)
    if training is None:
        folds = speaker_folds(anonymised.speakers.tolist(), settings.folds, seed=settings.seed)
    for fold in range(folds.max() + 1):
        if training:
            learnt = np.ones(len(rows), bool)
        else:
            learnt = folds[columns] != fold
        alignment = fit_alignment(
            copies.vectors[columns[learnt]],
            originals.vectors[rows[learnt]],
            kind,  # type: ignore[arg-type]
            ridge=settings.ridge,
            prior=settings.prior,
            uncentred=settings.uncentred,
        )
        yield folds == fold, alignment


def link_aligned(
    sides: tuple[Embeddings, Embeddings],
    training: tuple[Embeddings, Embeddings] | None,
    kind: str,
    settings: AlignmentSettings,
) -> tuple[Vectors, dict[str, Ranks]]:
    """Align anonymised vectors and rank the target speaker of each among the original speakers; see `learnt_maps`.

    Returns
    -------
    vectors : ndarray of float64 of shape (n, D)
        Anonymised vectors in the space of original ones.
    ranks : dict of str to Ranks
        Ranks of the target speakers, by `LINKED`.

    Raises
    ------
    ConfigError
        If ``uncentred`` is combined with the kind "centred".
    """
    if settings.uncentred and kind == "centred":
        raise _means_of_uncentred("alignment='centred'")
    original, anonymised = sides
    own_means = anonymised.vectors.mean(axis=0), original.vectors.mean(axis=0)
    parts: dict[str, list[tuple[NDArray[Any], NDArray[np.int64]]]] = {name: [] for name in LINKED}
    vectors = np.empty((len(anonymised), original.vectors.shape[1]))
    centres = np.zeros_like(vectors)
    for rows, alignment in learnt_maps(sides, training, kind, settings):
        vectors[rows] = anonymised.vectors[rows]
        if alignment is not None:
            if settings.own_means:
                alignment = Alignment(*own_means, alignment.matrix)
            vectors[rows] = alignment.apply(anonymised.vectors[rows])
            centres[rows] = alignment.target_mean
        tested = (vectors - centres)[rows]
        gallery = original.vectors - centres[rows][0]
        of_rows = anonymised.speakers[rows]
        owners, people = _means(gallery, original.speakers)
        speakers, voices = _means(tested, of_rows)
        parts[LINKED[0]].append((of_rows, owner_ranks(tested, of_rows, gallery, original.speakers)))
        parts[LINKED[2]].append((of_rows, owner_ranks(tested, of_rows, people, owners)))
        parts[LINKED[3]].append((speakers, owner_ranks(voices, speakers, people, owners)))
    linked = np.isin(original.speakers.astype(str), anonymised.speakers.astype(str))
    tested = original.vectors[linked] - centres.mean(axis=0)
    owners = original.speakers[linked]
    parts[LINKED[1]].append(
        (owners, owner_ranks(tested, owners, vectors - centres, anonymised.speakers))
    )
    ranks = {}
    for name, of_kind in parts.items():
        gallery_speakers = anonymised.speakers if name == LINKED[1] else original.speakers
        speakers, places = (np.concatenate(columns) for columns in zip(*of_kind, strict=True))
        ranks[name] = Ranks(places - 1, 0, len(set(gallery_speakers.tolist())) - 1, speakers)
    return vectors, ranks


def linked_shares(
    aligned: Mapping[str, Ranks], top: Sequence[int], resampling: Resampling
) -> list[dict[str, Any]]:
    """Return the linked share for each kind of link and each k, with its interval over speakers."""
    rows = []
    for name, ranks in aligned.items():
        size = ranks.largest_size
        for first in top:
            share: dict[str, Any] = {"share": 1.0, "low": None, "high": None}
            if first < size:
                curve = linkability_curve(
                    ranks, [size], ties="strict", top=first, resampling=resampling
                )
                share["share"] = float(curve.values[0])
                for side, end in (("low", curve.low[0]), ("high", curve.high[0])):
                    if not np.isnan(end):
                        share[side] = float(end)
            rows.append(
                {
                    "linked": name,
                    "top": first,
                    "n": len(ranks),
                    "chance": min(1.0, first / size),
                    **share,
                }
            )
    return rows


def _means_of_uncentred(got: str) -> ConfigError:
    remedy = "leave out one of the two, such as by alignment='orthogonal'"
    return ConfigError(
        f"expected no mean to subtract with uncentred=True, got {got}", remedy=remedy
    )


def _means(vectors: Vectors, speakers: NDArray[np.object_]) -> tuple[NDArray[np.object_], Vectors]:
    names, codes = np.unique(speakers.astype(str), return_inverse=True)
    sums = np.zeros((len(names), vectors.shape[1]))
    np.add.at(sums, codes, vectors)
    return names.astype(object), sums / np.bincount(codes)[:, None]
