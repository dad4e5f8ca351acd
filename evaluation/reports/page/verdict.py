"""What the page says first: how much protection is left, in a word, a sentence and a number for each data set."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluation.reports.page.markup import printable
from evaluation.reports.page.numbers import one_in, percent, spelled_interval
from evaluation.reports.privacy_results import GENDERS, Outcome, Results, as_number, find
from evaluation.uncertainty import Interval, minimum_of

# minimum target EERs of the VoicePrivacy Challenge 2024
TARGETS = (0.1, 0.2, 0.3, 0.4)
LEVELS = ("Very weak", "Weak", "Moderate", "Good", "Strong")
CHANCE = 0.5


@dataclass(frozen=True)
class Headline:
    """The result of one data set.

    Parameters
    ----------
    worst : Outcome
        List, scenario and attacker that leave the least privacy to anonymised speech; its interval is that of the
        smallest rate over scenarios.
    original : Interval
        EER without anonymisation.
    judged : Interval
        What the word goes by: the smallest rate over lists (each sex and pooled trials), scenarios, and open and closed
        sets.
    """

    worst: Outcome
    original: Interval
    judged: Interval

    @property
    def anonymised(self) -> bool:
        """Whether there is anonymised speech at all."""
        return self.worst.scenario != "original"

    @property
    def word(self) -> tuple[str, int | None]:
        """How much protection there is; see `word_of`."""
        return word_of(self.judged)

    @property
    def who(self) -> str:
        """Data set, with the sex where it is one."""
        return place_of(self.worst.dataset, self.worst.gender)


def short(name: str, most: int = 60) -> str:
    """Cut a name that would burst a plot or a heading."""
    name = printable(name)
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def place_of(dataset: str, gender: str) -> str:
    """Name a data set, with the sex where it is one."""
    dataset = short(dataset)
    return dataset if gender == "all" else f"{dataset}, {short(GENDERS.get(gender, gender))}"


def level_of(eer: float, targets: Sequence[float] = TARGETS) -> int:
    """Place of an EER among the minimum targets.

    Examples
    --------
    >>> [LEVELS[level_of(eer)] for eer in (0.05, 0.1, 0.39, 0.5)]
    ['Very weak', 'Weak', 'Good', 'Strong']
    """
    return bisect_right(targets, eer + 1e-12)


def word_of(eer: Interval) -> tuple[str, int | None]:
    """Say how much protection an EER with this interval shows; and its level, None where it spans more than two.

    Examples
    --------
    >>> [word_of(Interval(0.12, *ends))[0] for ends in ((0.11, 0.19), (0.08, 0.19), (0.08, 0.21))]
    ['Weak protection', 'Between very weak and weak protection', 'Too few speakers or draws to say']
    """
    if not eer.has_interval:
        return f"{LEVELS[level_of(eer.value)]} protection by the point estimate", level_of(eer.value)
    low, high = level_of(eer.low), level_of(eer.high)
    if high - low > 1:
        return "Too few speakers or draws to say", None
    word = f"Between {LEVELS[low].lower()} and {LEVELS[high].lower()}" if high > low else LEVELS[low]
    return f"{word} protection", low


def headlines(results: Results) -> list[Headline]:
    """One for each data set, of the list that leaves the least privacy; the least privacy first."""
    found = []
    for dataset in results.datasets():
        every = [outcome for outcome in results.outcomes if outcome.dataset == dataset and outcome.eer.known]
        anonymised = [outcome for outcome in every if outcome.scenario != "original"]
        if not every:
            continue
        worst = min(anonymised or every, key=lambda outcome: (outcome.eer.value, outcome.gender != "all"))
        same = [outcome for outcome in every if outcome.gender == worst.gender]
        original = next((outcome.eer for outcome in same if outcome.scenario == "original"), Interval())
        judged = worst.eer
        if anonymised:
            worst = replace(worst, eer=_joined([outcome.eer for outcome in same if outcome in anonymised]))
            closed = [outcome.beside.closed_set.rate for outcome in anonymised if outcome.beside.closed_set.attacker]
            judged = _joined([*(outcome.eer for outcome in anonymised), *closed])
        found.append(Headline(worst, original, judged))
    return sorted(found, key=lambda headline: (not headline.anonymised, headline.judged.value))


def _joined(eers: Sequence[Interval]) -> Interval:
    """The smallest rate with the interval of the smallest; with none where one has none."""
    found = minimum_of(eers)
    return found if all(eer.has_interval for eer in eers) else Interval(found.value)


def badge(results: Results, found: Sequence[Headline]) -> tuple[str, int | None]:
    """The verdict in a few words and its level: by the interval of the smallest rate over all that is judged."""
    if refused := [name for level, name, _ in results.sanity if level == "error"]:
        return f"No verdict: {', '.join(dict.fromkeys(refused))}", None
    if not found:
        return "No result", None
    if not found[0].anonymised:
        return "Not anonymised", None
    word, level = word_of(_joined([headline.judged for headline in found if headline.anonymised]))
    no_network = results.block("attackers_run").get("networks") == []
    return f"{word}{', no neural attacker was run' if no_network else ''}", level


def perfect(results: Results, headline: Headline) -> str:
    """Return what a perfect anonymiser would show in place of the smallest rate, where the results say it."""
    summary = results.raw.get("summary")
    for row in summary if isinstance(summary, list) else []:
        if (find(row, "dataset"), find(row, "gender")) == (headline.worst.dataset, headline.worst.gender):
            mean, low = (as_number(find(row, f"minimum_over_scenarios.perfect.{name}")) for name in ("mean", "low"))
            if mean == mean:
                return (
                    f"Of a perfect anonymiser the strongest of as many attackers would show {percent(mean)} on these "
                    f"trials by chance, and less than {percent(low)} in 1 of 20 cases."
                )
    return ""


def judged_by(headline: Headline) -> str:
    """Return what the word goes by, where that is another rate or interval than that of the headline."""
    judged, shown = headline.judged, headline.worst.eer
    if not headline.anonymised or (judged.low, judged.high, judged.value) == (shown.low, shown.high, shown.value):
        return ""
    ends = f" ({spelled_interval(judged)})" if judged.has_interval else ""
    closed = "; there the attacker knows that the speaker is one of the enrolled (closed set)"
    return (
        f"The word goes by the smallest rate over lists, scenarios, open and closed sets: {percent(judged.value)}{ends}"
        f"{closed if judged.value < shown.value else ''}."
    )


def reach(headline: Headline) -> str:
    """Return which levels the interval reaches, where it reaches more than one."""
    eer = headline.judged
    if not eer.has_interval:
        return "No interval is given: how certain this is remains open."
    low, high = LEVELS[level_of(eer.low)].lower(), LEVELS[level_of(eer.high)].lower()
    if low == high:
        return ""
    return f"With the data at hand the true level may lie anywhere from {low} to {high}."


def sentence(results: Results, found: Sequence[Headline]) -> str:
    """Return the result in one or two sentences, where the results do not say it themselves."""
    if results.verdict:
        return results.verdict
    if not found:
        return "The results hold no equal error rate from which privacy could be judged."
    worst = found[0].worst
    span = f" (interval {spelled_interval(worst.eer)})" if worst.eer.has_interval else ""
    rate = f"an equal error rate of {percent(worst.eer.value)}{span}"
    if not found[0].anonymised:
        return f"The speech of {found[0].who} is not anonymised: the attacker {worst.attacker} reaches {rate}."
    start = (
        f"On {found[0].who} the strongest attacker ({worst.attacker}, {worst.scenario}) still tells speakers apart with"
    )
    end = f"; without anonymisation it is {percent(found[0].original.value)}" if found[0].original.known else ""
    return f"{start} {rate}{end}. Guessing would give {percent(CHANCE, 0)}."


def plainly(headline: Headline) -> str:
    """Return the equal error rate in everyday words."""
    share = headline.worst.eer.value
    how_often = "no decision" if share <= 0 else f"{one_in(share)} decisions"
    return f"The attacker errs in {how_often}; a guess errs in 1 in 2."
