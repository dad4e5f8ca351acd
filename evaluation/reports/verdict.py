"""The verdict of the page: how much protection each data set has, as a level and an error rate."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluation.plots import TARGETS
from evaluation.reports.results import Outcome, Results
from evaluation.trials import REVERSAL
from evaluation.uncertainty import Interval, minimum_of

_CLOSED = "knows that the speaker is one of the enrolled (closed set)"
_CENTRED = "subtracts from the scores of each model their mean (whole-list)"

WORDS = ("Very weak", "Weak", "Moderate", "Good", "Strong")


@dataclass(frozen=True)
class Headline:
    """The result of one data set.

    Attributes
    ----------
    worst : Outcome
        List, scenario and attacker with the least privacy of anonymised speech.
    eer : Interval
        The smallest EER of this list over the scenarios, with the interval of that minimum.
    original : Interval
        EER without anonymisation.
    judged : Interval
        Basis of the verdict: the smallest rate over lists (each sex and pooled trials), scenarios, open and closed
        sets of speakers, and scores without the mean of each model. If its level is below that of `eer`, both are this
        rate, and `worst` is its outcome, with its attacker.
    how : str
        What the attacker does besides for this rate; empty if nothing.
    """

    worst: Outcome
    eer: Interval
    original: Interval
    judged: Interval
    how: str = ""

    @property
    def anonymised(self) -> bool:
        """Whether there is anonymised speech."""
        return self.worst.anonymised

    @property
    def word(self) -> str:
        """Amount of protection in words; see `word_of`."""
        return word_of(self.judged, self.worst.n_enrolled)[0]

    @property
    def level(self) -> int | None:
        """Index of the word in `WORDS`; None if there is none."""
        return word_of(self.judged)[1] if self.anonymised else None

    @property
    def asked(self) -> str:
        """What the attacker was asked, and how often it errs, in a sentence."""
        both = "two anonymised recordings" if self.anonymised else "two recordings"
        both = "an original and an anonymised recording" if self.worst.scenario in ("ignorant", REVERSAL) else both
        text = (
            f"Asked whether {both} are of the same person, the strongest attacker {errs(self.eer, self.worst.n_target)}"
        )
        return f"{text}; by chance it would err 1 in 2 times."

    @property
    def reach(self) -> tuple[str, str]:
        """The lowest and the highest level that the interval reaches."""
        low, high = (WORDS[level_of(end)].lower() for end in (self.judged.low, self.judged.high))
        return low, high


def level_of(eer: float, targets: Sequence[float] = TARGETS) -> int:
    """Return the level of an EER: the number of minimum targets that it reaches.

    Examples
    --------
    >>> [WORDS[level_of(eer)] for eer in (0.05, 0.1, 0.39, 0.5)]
    ['Very weak', 'Weak', 'Good', 'Strong']
    """
    return bisect_right(targets, eer + 1e-12)


def word_of(eer: Interval, speakers: float = math.nan) -> tuple[str, int | None]:
    """Return the protection that an EER of so many speakers shows in words, and its level.

    If the interval spans more than two levels, the word is of its upper end and the level is of the value; both say
    nothing (the level is None) if the upper end is at the highest level.

    Examples
    --------
    >>> [word_of(Interval(0.12, *ends))[0] for ends in ((0.11, 0.19), (0.08, 0.19), (0.08, 0.41))]
    ['Weak protection', 'Between very weak and weak protection', 'Too few speakers or draws to say']
    >>> word_of(Interval(0.045, 0.008, 0.254), 16)
    ('At best moderate protection (16 speakers: too few to say how little)', 0)
    >>> word_of(Interval(0.0, 0.0, 0.36))  # no error seen: certain for these speakers only
    ('No protection of these speakers, too few to say of others', 0)
    """
    if not eer.has_interval:
        return f"{WORDS[level_of(eer.value)]} protection by the point estimate", level_of(eer.value)
    low, high = level_of(eer.low), level_of(eer.high)
    if high - low > 1 and round(eer.value, 3) == 0:
        return "No protection of these speakers, too few to say of others", 0
    if high - low > 1 and high == len(TARGETS):
        return "Too few speakers or draws to say", None
    if high - low > 1:
        of = f"{speakers:.0f} speakers: too few" if speakers > 0 else "too few speakers or draws"
        return f"At best {WORDS[high].lower()} protection ({of} to say how little)", min(level_of(eer.value), high)
    word = f"Between {WORDS[low].lower()} and {WORDS[high].lower()}" if high > low else WORDS[low]
    return f"{word} protection", low


def headlines(results: Results) -> list[Headline]:
    """Return a headline for each data set, for the list with the least privacy; least privacy first."""
    found = []
    for dataset in results.datasets():
        every = [outcome for outcome in results.outcomes if outcome.dataset == dataset and outcome.eer.known]
        anonymised = [outcome for outcome in every if outcome.anonymised]
        if not every:
            continue
        worst = min(anonymised or every, key=lambda outcome: (outcome.eer.value, outcome.gender != "all"))
        same = [outcome for outcome in every if outcome.gender == worst.gender]
        original = next((outcome.rate for outcome in same if not outcome.anonymised), Interval())
        eer, how = (judged := worst.rate), ""
        if anonymised:
            eer = _smallest([outcome.rate for outcome in same if outcome.anonymised])
            over = worst.minimum_over_scenarios
            if over and over.interval.has_interval and eer.has_interval:
                eer = replace(eer, low=over.interval.low, high=over.interval.high)
            others = [
                (one.eer, how, replace(outcome, strongest=one.attacker, draws=()))
                for outcome in anonymised
                for how, one in ((_CLOSED, outcome.closed_set), (_CENTRED, outcome.centred))
                if one
            ]
            judged = _smallest([*(outcome.rate for outcome in anonymised), *(rate for rate, *_ in others)])
            how = next((how for rate, how, _ in others if rate.value == judged.value < worst.eer.value), "")
            if how and level_of(judged.value) < level_of(eer.value):
                eer, worst = judged, next(outcome for rate, _, outcome in others if rate.value == judged.value)
                originals = (one for one in every if one.gender == worst.gender and not one.anonymised)
                original = next((outcome.rate for outcome in originals), Interval())
        found.append(Headline(worst, eer, original, judged, how))
    return sorted(found, key=lambda headline: (not headline.anonymised, headline.judged.value))


def badge(results: Results, found: Sequence[Headline]) -> tuple[str, int | None]:
    """Return the verdict in a few words and its level, from the interval of the smallest rate over all data sets.

    If a check forbids a verdict, the upper end of this interval still holds: an attacker recognised people.
    """
    judged = _smallest([headline.judged for headline in found if headline.anonymised] or [Interval()])
    if refused := [check["check"] for check in results.sanity if check["level"] == "error"]:
        forbidden = ", ".join(dict.fromkeys(refused))
        if judged.has_interval and (high := level_of(judged.high)) < len(TARGETS):
            return f"No verdict of protection ({forbidden}); at most {WORDS[high].lower()}", high
        return f"No verdict: {forbidden}", None
    if not found:
        return "No result", None
    if not found[0].anonymised:
        return "Not anonymised", None
    word, level = word_of(judged, found[0].worst.n_enrolled)
    no_network = (results.raw.get("attackers_run") or {}).get("networks") == []
    return f"{word}{', no neural attacker was run' if no_network else ''}", level


def errs(eer: Interval, n_target: float = math.nan) -> str:
    """Return how often an attacker errs in words, by the upper end if the rate is below one of the target trials.

    Examples
    --------
    >>> errs(Interval(0.006, 0.0, 0.13), 32), errs(Interval(0.006, 0.0, 0.13), 320), errs(Interval(0.0), 32)
    ('errs at most 1 in 8 times', 'errs 1 in 167 times', 'does not err on these trials')
    """
    if eer.value <= 0:
        return "does not err on these trials"
    if eer.has_interval and eer.value * n_target < 1:
        return f"errs at most {one_in(eer.high)} times"
    return f"errs {one_in(eer.value)} times"


def one_in(share: float) -> str:
    """Return a share in words, such as "1 in 8".

    Examples
    --------
    >>> [one_in(share) for share in (0.01, 0.13, 0.3, 0.45, 0.0)]
    ['1 in 100', '1 in 8', '3 in 10', 'almost 1 in 2', 'none']
    """
    if share <= 0:
        return "none"
    if share > 0.42:
        return "almost 1 in 2" if share < 0.495 else "1 in 2"
    if share > 0.22:
        return f"{round(10 * share)} in 10" if round(10 * share) != 4 else "2 in 5"
    return f"1 in {round(1 / share):,}"


def _smallest(eers: Sequence[Interval]) -> Interval:
    """Return the minimum of rates with its interval, or without one if any rate has none."""
    found = minimum_of(eers)
    return found if all(eer.has_interval for eer in eers) else Interval(found.value)
