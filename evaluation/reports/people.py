"""Figures of single speakers: who is found, and the tenth of the speakers with the least privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.linkage import (
    FirstShares,
    found_speakers,
    lowest_tenth,
    lowest_tenth_by_chance,
    mostly_found,
)
from evaluation.reports.conditions import EnrolledSpeaker
from evaluation.reports.outcomes import Outcome
from evaluation.uncertainty import Interval, largest_rate

_FEWEST = 10  # least number of speakers for a tenth


@dataclass(frozen=True)
class Found:
    """How many speakers are found, see `evaluation.linkage.found_speakers`.

    Attributes
    ----------
    speakers : int
        Number of speakers.
    count, mostly : int
        Speakers who are found, and those among them who rank first in more than half of their recordings, relative to
        other people's recordings; see `evaluation.linkage.mostly_found`.
    by_chance : float
        Number of speakers who would be found by chance.
    largest : Interval
        Largest difference between the shares of own and of other people's recordings that rank a speaker first.
    """

    speakers: int
    count: int
    mostly: int
    by_chance: float
    largest: Interval

    @property
    def constancy(self) -> str:
        """How many of them are found in most of their recordings, in words."""
        if self.mostly < self.count:
            return f"{self.mostly} of them in most recordings"
        if self.count == 1:
            return "in most recordings"
        return "all of them in most recordings"


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
    """Return how many speakers are found; None if the results lack the ranks."""
    known = [
        speaker
        for speaker in speakers
        if speaker.n_target > 0 and not math.isnan(speaker.first + speaker.others_first)
    ]
    if not known:
        return None
    shares = FirstShares(
        np.array([speaker.speaker for speaker in known], object),
        np.array([speaker.first for speaker in known]),
        np.array([speaker.others_first for speaker in known]),
        np.array([round(speaker.n_target) for speaker in known]),
        np.array([round(speaker.n_nontarget) for speaker in known]),
    )
    is_found, by_chance = found_speakers(shares.own, shares.n_own, shares.others, shares.n_others)
    _, largest = largest_rate(shares.own * shares.n_own, shares.n_own, beyond=shares.others)
    return Found(
        len(known),
        int(is_found.sum()),
        int(mostly_found(shares).sum()),
        float(by_chance.sum()),
        largest,
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
