"""Measures of each speaker: who is hard to recognise, who is easily imitated, and who imitates others.

The *animals* of Doddington et al. [1]_ are taken by quartiles, as in the biometric menagerie [2]_, so that a quarter of
the speakers are of each kind even if all are alike; a speaker may be of several kinds:

=====  ======================================================================================
kind   mean scores
=====  ======================================================================================
goat   of the speaker's own trials, below the lower quartile: recognised with difficulty
lamb   of other people's trials against the speaker, above the upper quartile: easily imitated
wolf   of the speaker's trials against others, above the upper quartile: imitates easily
sheep  none of these
=====  ======================================================================================

References
----------
.. [1] G. Doddington et al., "Sheep, goats, lambs and wolves", ICSLP 1998.
.. [2] N. Yager and T. Dunstone, "The biometric menagerie", IEEE Transactions on Pattern Analysis and Machine
   Intelligence 32, 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.ranks import GalleryTrials, gallery_trials
from evaluation.linkage.speakers import first_shares
from evaluation.metrics import cllr, equal_error, sort_scores, sort_with_warning
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Speakers,
    find_speakers,
    join_scores,
)
from evaluation.uncertainty import check_speakers
from spkbase.errors import counted
from spkbase.progress import progress, verbosely
from spkbase.showing import Tabular, one_line


@one_line
@dataclass(frozen=True, eq=False)
class PerSpeaker(Tabular):
    """A row for each of P speakers.

    Attributes
    ----------
    speaker : ndarray of str of shape (P,)
        Names, sorted.
    n_target, n_nontarget, n_impostor : ndarray of int64 of shape (P,)
        Numbers of target trials, of nontarget trials against the speaker's models, and of nontarget trials in which
        the speaker is tested.
    target_mean, nontarget_mean, impostor_mean : ndarray of float64 of shape (P,)
        Mean scores of these; NaN without trials.
    eer, cllr : ndarray of float64 of shape (P,)
        Metrics of the target trials and the nontarget trials against the speaker's models; NaN if a class is empty.
    false_alarms, impostor_false_alarms : ndarray of float64 of shape (P,)
        Shares of all false alarms: those against the speaker's models, and those in which the speaker is tested.
    rank1 : ndarray of float64 of shape (P,)
        Share of the speaker's own recordings in which the speaker scores highest among all who are compared; NaN if
        recordings are compared with one speaker only.
    kind : ndarray of str of shape (P,)
        The animals, such as ``goat, lamb``.
    threshold : float
        Threshold of the equal error rate of all trials; nontarget trials at or above it are false alarms.
    notes : tuple of str
        Notes on missing values.
    """

    speaker: NDArray[np.object_]
    n_target: NDArray[np.int64]
    n_nontarget: NDArray[np.int64]
    n_impostor: NDArray[np.int64]
    target_mean: NDArray[np.float64]
    nontarget_mean: NDArray[np.float64]
    impostor_mean: NDArray[np.float64]
    eer: NDArray[np.float64]
    cllr: NDArray[np.float64]
    false_alarms: NDArray[np.float64]
    impostor_false_alarms: NDArray[np.float64]
    rank1: NDArray[np.float64]
    kind: NDArray[np.object_]
    threshold: float
    notes: tuple[str, ...] = ()

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each speaker."""
        return {name: part for name, part in vars(self).items() if isinstance(part, np.ndarray)}

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for each speaker by name, for a report."""
        columns = self.to_columns()
        names = columns.pop("speaker").tolist()
        cells = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in cells]
        speakers = dict(zip(names, rows, strict=True))
        return {"threshold": self.threshold, "notes": list(self.notes), "speakers": speakers}

    def headline(self) -> str:
        """Return how many speakers there are, and the highest EER."""
        head = counted(len(self.speaker), "speaker")
        if np.isfinite(self.eer).any():
            worst = int(np.nanargmax(self.eer))
            head += f", highest EER {100 * self.eer[worst]:.1f} % ({self.speaker[worst]})"
        return "; ".join([head, *self.notes])


@verbosely
def per_speaker(
    scores: Scores,
    key: Key,
    *,
    speakers: Speakers | None = None,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    missing: Missing = "error",
    verbose: bool = True,
) -> PerSpeaker:
    """Return the measures of each speaker: mean scores, error rates, shares of the false alarms, first ranks.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair.
    speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment: a map, a function of the id, or a separator such as ``"/"``; by default ids

        are speakers if they look like it.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speakers of one side, in place of `speakers`; see `evaluation.trials.find_speakers`.
    missing : {"error", "drop"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`.
    verbose : bool
        Whether to show progress.

    Raises
    ------
    DataError
        If scores and key do not fit together, or the speakers are unknown.

    Examples
    --------
    >>> ids = ["a", "a", "b", "b"], ["a/1", "b/1", "a/1", "b/1"]
    >>> key = Key.from_ids(*ids, [True, False, False, True])
    >>> people = per_speaker(Scores.from_ids(*ids, [2.0, 1.0, -1.0, 0.0]), key, speakers="/")
    >>> people.target_mean.tolist(), people.eer.tolist(), people.rank1.tolist()
    ([2.0, 0.0], [0.0, 0.0], [1.0, 0.0])
    """
    maps = {}
    for side, own in (("model_speakers", model_speakers), ("segment_speakers", segment_speakers)):
        maps[side] = speakers if own is None else own
    values, joined = join_scores(scores, key, missing=missing)
    if all(own is None for own in maps.values()):
        check_speakers(joined, None)
    owners = find_speakers(joined, **maps)
    gallery = gallery_trials(joined.scored(values), joined, speakers=owners)
    n_people = len(owners.names)
    is_target = joined.is_target
    sides = {
        "target": owners.models[is_target],
        "nontarget": owners.models[~is_target],
        "impostor": owners.segments[~is_target],
    }
    columns: dict[str, NDArray[Any]] = {}
    for name, codes in sides.items():
        own_values = values[is_target == (name == "target")]
        columns[f"n_{name}"] = np.bincount(codes, minlength=n_people)
        sums = np.bincount(codes, own_values, n_people)
        columns[f"{name}_mean"] = _shares(sums, columns[f"n_{name}"])
    threshold = equal_error(sort_with_warning(values[is_target], values[~is_target])).threshold
    alarms = ~is_target & (values >= threshold)
    total = np.full(n_people, alarms.sum())
    for name, codes in (("", owners.models), ("impostor_", owners.segments)):
        own_alarms = np.bincount(codes[alarms], minlength=n_people)
        columns[f"{name}false_alarms"] = _shares(own_alarms, total)
    eers, costs = _rates_of_each(values, is_target, owners.models, n_people)
    notes = []
    for kind, text in (("target", "target trial"), ("nontarget", "nontarget trial against them")):
        n_without = int((columns[f"n_{kind}"] == 0).sum())
        if n_without:
            notes.append(f"{n_without} of {n_people} speakers have no {text}: no EER and Cllr")
    return PerSpeaker(
        speaker=owners.names,
        **columns,
        eer=eers,
        cllr=costs,
        rank1=_first_ranks(gallery, owners.names),
        kind=animals(*(columns[f"{name}_mean"] for name in sides)),
        threshold=threshold,
        notes=tuple(notes),
    )


def animals(target: ArrayLike, nontarget: ArrayLike, impostor: ArrayLike) -> NDArray[np.object_]:
    """Return the kinds of speakers by the quartiles of their mean scores; see the module.

    Parameters
    ----------
    target, nontarget, impostor : array_like of float of shape (P,)
        Mean scores of the speaker's own trials, of others against the speaker, and of the speaker against others; NaN
        without trials.

    Returns
    -------
    ndarray of str of shape (P,)
        The kinds; empty if no mean is known.

    Examples
    --------
    >>> animals([0.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 2.0], [2.0, 0.0, 0.0, 2.5]).tolist()
    ['goat', 'sheep', 'sheep', 'lamb, wolf']
    """
    means = {"goat": -np.asarray(target, np.float64)}
    means["lamb"] = np.asarray(nontarget, np.float64)
    means["wolf"] = np.asarray(impostor, np.float64)
    kinds: list[list[str]] = [[] for _ in means["goat"]]
    known = np.zeros(len(kinds), bool)
    for kind, column in means.items():
        is_known = ~np.isnan(column)
        known |= is_known
        if is_known.any():
            for person in np.flatnonzero(column > np.quantile(column[is_known], 0.75)):
                kinds[person].append(kind)
    names = []
    for own_kinds, is_known in zip(kinds, known.tolist(), strict=True):
        name = ", ".join(own_kinds)
        if is_known and not name:
            name = "sheep"
        names.append(name)
    return np.array(names, object)


def _shares(sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return quotients; NaN if nothing was counted."""
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _rates_of_each(
    values: NDArray[np.float64], is_target: NDArray[np.bool_], codes: NDArray[Any], n_people: int
) -> NDArray[np.float64]:
    """Return the EER and the Cllr of each speaker's models, shape (2, P)."""
    rates = np.full((2, n_people), np.nan)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(n_people + 1))
    for person in progress(range(n_people), description="speakers", total=n_people):
        rows = order[ends[person] : ends[person + 1]]
        own = values[rows[is_target[rows]]]
        others = values[rows[~is_target[rows]]]
        if len(own) and len(others):
            trials = sort_scores(own, others)
            rates[:, person] = (equal_error(trials).rate, cllr(trials))
    return rates


def _first_ranks(gallery: GalleryTrials, names: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return how often each speaker ranks first in own recordings, counting those compared with several speakers."""
    compared = np.bincount(gallery.rows)[gallery.rows] > 1
    ranks = np.full(len(names), np.nan)
    if compared.any():
        columns = {}
        for name in ("rows", "models", "values", "is_target"):
            columns[name] = getattr(gallery, name)[compared]
        shares = first_shares(gallery._replace(**columns))
        ranks[np.searchsorted(names.astype(str), shares.speakers.astype(str))] = shares.own
    return ranks
