"""ZEBRA profiles of systems: what scores disclose on average, about one person at worst, and in any one trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.linkage.disclosure import worst_case_from
from evaluation.metrics import SCALE, Evaluation, WorstCase, Zebra, metrics_with
from evaluation.trials import Key, Missing, Scores, split_scores
from evaluation.uncertainty import evaluate
from spkbase.errors import DataError
from spkbase.showing import one_line

PROFILE = "ZEBRA profile"
"""Name of the only system, as the reference's command calls it."""

_REPORTED = ("n_target", "n_nontarget", "convention", "zebra")
_NOTED = ("scores", "zebra.individual")


@one_line
@dataclass(frozen=True, eq=False)
class ZebraProfile:
    """The ZEBRA profile of one system.

    Attributes
    ----------
    result : Evaluation
        Result with both numbers of ZEBRA and the category.
    target, nontarget : ndarray of float64 of shapes (n_target,) and (n_nontarget,)
        The scores, for plots.
    worst_case : WorstCase or None
        The strongest evidence of any trial, if requested.
    """

    result: Evaluation
    target: NDArray[np.float64]
    nontarget: NDArray[np.float64]
    worst_case: WorstCase | None = None

    @property
    def zebra(self) -> Zebra:
        """What the scores disclose about the population and about an individual."""
        return self.result.zebra

    @property
    def notes(self) -> dict[str, str]:
        """Reasons to read the profile with care."""
        return {name: text for name, text in self.result.notes.items() if name in _NOTED}

    def to_dict(self) -> dict[str, Any]:
        """Return the profile for a report."""
        numbers = self.result.to_dict()
        report = {name: numbers[name] for name in _REPORTED}
        if self.notes:
            report["notes"] = self.notes
        if self.worst_case is not None:
            report["worst_case"] = self.worst_case.to_dict()
        return report


@one_line
@dataclass(frozen=True, eq=False)
class ZebraProfiles:
    """The ZEBRA profiles of systems by name."""

    systems: dict[str, ZebraProfile]

    def to_dict(self) -> dict[str, Any]:
        """Return the report of ``spkver-eval zebra --json``, which nests systems if there are several."""
        reports = {name: profile.to_dict() for name, profile in self.systems.items()}
        if len(reports) > 1:
            return {"systems": reports}
        name, report = next(iter(reports.items()))
        return {"label": name, **report}


def zebra_profiles(
    systems: Scores | Mapping[str, Scores],
    key: Key | Mapping[str, Key],
    *,
    convention: str = "default",
    scale: Sequence[tuple[str, float]] = SCALE,
    worst_case: bool = False,
    missing: Missing = "error",
) -> ZebraProfiles:
    """Compute the ZEBRA profile of scores: what they disclose about a population, and at worst about one person.

    Parameters
    ----------
    systems : Scores, or mapping of str to Scores
        Scores of a system, or of several by their names.
    key : Key, or mapping of str to Key
        Trials with their truth, for all systems or for each.
    convention : {"default", "bosaris", "zebra-2020", "vpc2022", "vpc2024"}
        Which convention to follow; see `evaluation.metrics.conventions`.
    scale : sequence of (str, float)
        ZEBRA's categories; see `evaluation.metrics.read_scale`.
    worst_case : bool
        Add the strongest evidence of any trial, by four estimates; only for a single system.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score; see `evaluation.trials.split_scores`.

    Returns
    -------
    ZebraProfiles
        `ZebraProfiles.to_dict` gives the report of ``spkver-eval zebra --json``.

    Raises
    ------
    DataError
        If there is no system, the worst case is requested for several, or scores and key do not match.

    Examples
    --------
    >>> key = Key.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [True, False, False, True])
    >>> scores = Scores.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [2.0, -1.0, 0.5, 1.0])
    >>> zebra_profiles(scores, key).to_dict()["zebra"]["tag"]
    'A'
    """
    if isinstance(systems, Scores):
        systems = {PROFILE: systems}
    if not isinstance(systems, Mapping) or not systems:
        raise DataError(f"expected Scores, or Scores by the names of systems, got {systems!r:.60}")
    if worst_case and len(systems) > 1:
        raise DataError(f"expected one system for the worst case, got {len(systems)}")
    metrics = metrics_with(scale=scale)
    profiles = {}
    for name, scores in systems.items():
        truth = key[name] if isinstance(key, Mapping) else key
        target, nontarget = split_scores(scores, truth, missing=missing)
        result = evaluate(target, nontarget, convention=convention, priors=(), metrics=metrics)
        worst = None
        if worst_case:
            worst = worst_case_from(scores, truth, missing=missing)
        profiles[name] = ZebraProfile(result, target, nontarget, worst)
    return ZebraProfiles(profiles)
