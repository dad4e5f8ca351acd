"""The verdict of the page: how much protection each data set has, as a level and an error rate."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from evaluation.plots import TARGETS
from evaluation.reports.results import Outcome, Results
from evaluation.trials import REVERSAL
from evaluation.uncertainty import Interval, minimum_of, over_lists

_CLOSED = "knows that the speaker is one of the enrolled (closed set)"
_CENTRED = "subtracts from the scores of each model their mean (whole-list)"

WORDS = ("Very weak", "Weak", "Moderate", "Good", "Strong")
AGAINST = {
    "SIMULATED speech": "SIMULATED speech: synthetic voices say nothing about human ones.",
    "resemblance": "Some anonymised recordings seem not to belong to their originals.",
    "broken attackers": "Scores of some attackers are useless.",
    "recognised without a voice": "Files or noise, not voices, give speakers away: an anonymiser can change them.",
    "attackers that failed": "Some attackers failed: the others may be weaker.",
    "attacker strength": "Attackers recognise even original speech poorly: others would find more.",
    "overestimated privacy": "A stronger attacker would probably find more.",
    "number of speakers": "Intervals were not studied on so few speakers.",
    "utility": "Nobody measured whether the speech is still intelligible: noise would be as private.",
    "training draws": "The attackers learnt from one version of the anonymised speech: several make them stronger.",
}
"""What warnings and errors mean for a reader of the verdict, by the name of the check; the first ones weigh most."""


@dataclass(frozen=True)
class Headline:
    """The result of one data set.

    Attributes
    ----------
    worst : Outcome
        List and scenario with the least privacy of anonymised speech.
    attacker : str
        The attacker of this rate; in an open set, the strongest one may be another.
    eer : Interval
        The smallest EER over lists (each sex and pooled trials), scenarios, open and closed sets of speakers, and
        scores without the mean of each model, with the interval of that minimum.
    original : Interval
        EER of the same list without anonymisation.
    how : str
        What the attacker does besides for this rate; empty if nothing.
    lists : int
        Number of lists of other speakers (each sex of each data set), for which the interval holds at once.
    """

    worst: Outcome
    attacker: str
    eer: Interval
    original: Interval
    how: str = ""
    lists: int = 1

    def over(self, n_lists: int) -> Headline:
        """Return the same with an interval that holds for so many lists at once."""
        speakers = min(self.worst.n_enrolled, self.worst.condition.n_trial_speakers)
        eer = over_lists(self.eer, n_lists, before=self.lists, n_units=speakers, n_trials=self.worst.n_target)
        return replace(self, eer=eer, lists=n_lists)

    @property
    def anonymised(self) -> bool:
        """Whether there is anonymised speech."""
        return self.worst.anonymised

    @property
    def word(self) -> str:
        """Amount of protection in words; see `word_of`."""
        return word_of(self.eer, self.worst.n_enrolled)[0]

    @property
    def level(self) -> int | None:
        """Index of the word in `WORDS`; None if there is none."""
        return word_of(self.eer)[1] if self.anonymised else None

    @property
    def asked(self) -> str:
        """What the attacker was asked, and how often it errs, in a sentence."""
        both = "two anonymised recordings" if self.anonymised else "two recordings"
        both = "an original and an anonymised recording" if self.worst.scenario in ("ignorant", REVERSAL) else both
        text = (
            f"Asked whether {both} are of the same person, the strongest attacker {errs(self.eer, self.worst.n_target)}"
        )
        return f"{text}; a coin toss is wrong in 1 of 2."

    @property
    def reach(self) -> tuple[str, str]:
        """The lowest and the highest level that the interval reaches."""
        low, high = (WORDS[level_of(end)].lower() for end in (self.eer.low, self.eer.high))
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
        attacker, eer, how = worst.strongest, worst.rate, ""
        if anonymised:
            others = [
                (one.eer, outcome, one.attacker, how)
                for outcome in anonymised
                for how, one in ((_CLOSED, outcome.closed_set), (_CENTRED, outcome.centred))
                if one
            ]
            over = [one.minimum_over_scenarios.interval for one in anonymised if one.minimum_over_scenarios]
            over = [interval for interval in over if interval.has_interval]
            eer = _smallest([*(outcome.rate for outcome in anonymised), *over, *(rate for rate, *_ in others)])
            if eer.value < worst.eer.value:
                worst, attacker, how = next(other[1:] for other in others if other[0].value == eer.value)
        originals = (one.rate for one in every if one.gender == worst.gender and not one.anonymised)
        headline = Headline(worst, attacker, eer, next(originals, Interval()), how)
        lists = {outcome.gender for outcome in anonymised} - {"all"}
        found.append(headline.over(max(len(lists), 1)))
    return sorted(found, key=lambda headline: (not headline.anonymised, headline.eer.value))


def overall(found: Sequence[Headline]) -> Headline:
    """Return the headline over all data sets: of the least private one, with the smallest rate over all of them."""
    anonymised = [headline for headline in found if headline.anonymised]
    if not anonymised:
        return found[0]
    lists = sum(headline.lists for headline in anonymised)
    eer = _smallest([headline.over(lists).eer for headline in anonymised])
    return replace(found[0], eer=eer, lists=lists)


def badge(results: Results, found: Sequence[Headline]) -> tuple[str, int | None]:
    """Return the verdict in a few words and its level, from the interval of the smallest rate over all data sets.

    If a check forbids a verdict, the upper end of this interval still holds: an attacker recognised people.
    """
    judged = overall(found) if found else None
    if refused := [finding.check for finding in results.checks if finding.level == "error"]:
        forbidden = ", ".join(dict.fromkeys(refused))
        bounded = judged is not None and judged.anonymised and judged.eer.has_interval
        if judged and bounded and (high := level_of(judged.eer.high)) < len(TARGETS):
            return f"No verdict of protection ({forbidden}); at most {WORDS[high].lower()}", high
        return f"No verdict: {forbidden}", None
    if judged is None:
        return "No result", None
    if not judged.anonymised:
        return "Not anonymised", None
    no_network = results.attackers_run is not None and results.attackers_run.networks == ()
    return f"{judged.word}{', no neural attacker was run' if no_network else ''}", judged.level


def objections(results: Results) -> list[str]:
    """Return what speaks against the verdict, a sentence for each check with a warning or an error."""
    checks = ["SIMULATED speech"] if results.simulated else []
    checks += [one.check for one in results.sorted_checks if one.level in ("error", "warning")]
    order = [*AGAINST, *checks]
    return [AGAINST.get(check, f"A check warns: {check}.") for check in sorted({*checks}, key=order.index)]


def advice(eer: Interval, speakers: float) -> str:
    """Say about how many speakers would narrow the interval of an EER to two levels.

    Both ends are taken to approach the value with the square root of the number of speakers.

    Examples
    --------
    >>> advice(Interval(0.045, 0.008, 0.254), 16)[:62]
    'About 30 speakers in place of 16 would narrow the interval to '
    >>> advice(Interval(0.045, 0.008, 0.154), 16)
    'The speakers are enough for this verdict: the interval spans at most two of the five levels.'
    """
    if not (eer.has_interval and speakers > 0):
        return "Without an interval over speakers nobody knows how certain this is."

    def span(number: int) -> int:
        ends = (eer.value + math.sqrt(speakers / number) * (end - eer.value) for end in (eer.low, eer.high))
        low, high = map(level_of, ends)
        return high - low

    enough = next(number for number in count(int(speakers)) if span(number) <= 1)
    if enough == speakers:
        return "The speakers are enough for this verdict: the interval spans at most two of the five levels."
    text = f"About {10 * math.ceil(enough / 10)} speakers in place of {speakers:.0f} would narrow the interval to two"
    return f"{text} of the five levels: its width shrinks with the square root of their number."


def errs(eer: Interval, n_target: float = math.nan) -> str:
    """Return how often an attacker errs in words, with the upper end if the rate is below one of the target trials.

    Examples
    --------
    >>> errs(Interval(0.006, 0.0, 0.13), 32), errs(Interval(0.006, 0.0, 0.13), 320)
    ('makes hardly any errors on these trials (the interval allows 1 of 7)', 'is wrong in 1 of 167 decisions')
    >>> errs(Interval(0.0), 32)
    'makes no error on these trials'
    """
    if eer.value <= 0:
        return "makes no error on these trials"
    if eer.has_interval and eer.value * n_target < 1:
        return f"makes hardly any errors on these trials (the interval allows {one_of(eer.high, at_most=True)})"
    return f"is wrong in {one_of(eer.value)} decisions"


def one_of(share: float, *, at_most: bool = False) -> str:
    """Return a share in words, such as "1 of 8"; an upper bound is rounded up.

    Examples
    --------
    >>> [one_of(share) for share in (0.01, 0.13, 0.3, 0.45, 0.0)]
    ['1 of 100', '1 of 8', '3 of 10', 'almost 1 of 2', 'none']
    >>> one_of(0.24), one_of(0.24, at_most=True)
    ('2 of 10', '3 of 10')
    """
    number = math.ceil if at_most else round
    if share <= 0:
        return "none"
    if share > 0.42:
        return "almost 1 of 2" if share < 0.495 else "1 of 2"
    if share > 0.22:
        return f"{number(10 * share)} of 10" if number(10 * share) != 4 else "2 of 5"
    return f"1 of {math.floor(1 / share) if at_most else round(1 / share):,}"


def _smallest(eers: Sequence[Interval]) -> Interval:
    """Return the minimum of rates with its interval, or without one if any rate has none."""
    found = minimum_of(eers)
    return found if all(eer.has_interval for eer in eers) else Interval(found.value)
