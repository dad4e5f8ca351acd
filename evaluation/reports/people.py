"""What an attacker learns of single speakers: who is found, and the tenth with the least privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from evaluation.linkage import found_speakers, lowest_tenth, lowest_tenth_by_chance
from evaluation.reports.conditions import EnrolledSpeaker
from evaluation.reports.outcomes import Outcome

ALMOST_ALWAYS = 0.9
"""Mean linkability above which a speaker who is found is almost always found."""

_FEWEST = 10  # least number of speakers for a tenth


@dataclass(frozen=True)
class Found:
    """How many speakers are found, see `evaluation.linkage.found_speakers`.

    Attributes
    ----------
    speakers : int
        Number of speakers.
    count, almost_always : int
        Speakers who are found, and those of them who are almost always found.
    by_chance : float
        Number of speakers who would be found by chance.
    """

    speakers: int
    count: int
    almost_always: int
    by_chance: float

    @property
    def constancy(self) -> str:
        """How many of them are almost always found, in words."""
        if self.almost_always < self.count:
            return f"{self.almost_always} of them almost always"
        if self.count == 1:
            return "almost always"
        return "all of them almost always"


@dataclass(frozen=True)
class LowestTenth:
    """The tenth of the speakers with the least privacy.

    Attributes
    ----------
    speakers : int
        Their number.
    eer : float
        Mean equal error rate of the trials against each of them.
    by_chance : float
        The rate expected for uninformative scores.
    """

    speakers: int
    eer: float
    by_chance: float


def found_in(speakers: Sequence[EnrolledSpeaker]) -> Found | None:
    """Return how many speakers are found; None if results do not say who ranks first."""
    known = [
        speaker for speaker in speakers if not math.isnan(speaker.first + speaker.others_first)
    ]
    if not known:
        return None
    columns = [
        list(map(attrgetter(name), known))
        for name in ("first", "n_target", "others_first", "n_nontarget")
    ]
    first, n_target, others_first, n_nontarget = columns
    is_found, by_chance = found_speakers(
        first, np.rint(n_target), others_first, np.rint(n_nontarget)
    )
    is_always = [speaker.linkability_mean > ALMOST_ALWAYS for speaker in known]
    return Found(
        len(known), int(is_found.sum()), int((is_found & is_always).sum()), float(by_chance.sum())
    )


def lowest_in(speakers: Sequence[EnrolledSpeaker]) -> LowestTenth | None:
    """Return the tenth of the speakers with the least privacy; None with fewer than ten, or in older results."""
    known = [speaker for speaker in speakers if not math.isnan(speaker.eer + speaker.n_nontarget)]
    if len(known) < _FEWEST:
        return None
    rates = [speaker.eer for speaker in known]
    n_target = [round(speaker.n_target) for speaker in known]
    n_nontarget = [round(speaker.n_nontarget) for speaker in known]
    by_chance = lowest_tenth_by_chance(n_target, n_nontarget)
    return LowestTenth(-(-len(known) // 10), lowest_tenth(rates), by_chance)


def rank_one_by_chance(outcome: Outcome) -> float:
    """Return how often the speaker of an utterance would rank first by chance; NaN if unknown."""
    for condition in outcome.conditions:
        if condition.closed_set is not None:
            return condition.closed_set.chance
    return math.nan
