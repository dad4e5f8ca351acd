"""The verdict of the page: how much protection each data set has, as a level and an error rate."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evaluation.plots import TARGETS
from evaluation.reports.belonging import Belonging, belonging, exchanged_in_words, least_certain
from evaluation.reports.outcomes import Outcome
from evaluation.reports.results import Results
from evaluation.trials import REVERSAL
from evaluation.uncertainty import Interval, minimum_of, over_lists

_CLOSED = "knows that the speaker is one of the enrolled (closed set)"
_CENTRED = "subtracts from the scores of each model their mean (whole-list)"
# fewer errors than one count as hardly any, unless the list is so short that one error is a large share
_HARDLY_ANY = 0.05

WORDS = ("Very weak", "Weak", "Moderate", "Good", "Strong")
_MODERATE = WORDS.index("Moderate")
_STRONG = WORDS.index("Strong")
AGAINST = {
    "SIMULATED speech": "SIMULATED speech: synthetic voices say nothing about human ones.",
    "pairs": "Some anonymised recordings resemble other speakers' originals more than their own.",
    "no speech": "Some anonymised recordings hold no speech: there is nothing in them to recognise.",
    "speech of others": "The anonymiser may return the speech of other people.",
    "broken attackers": "Scores of some attackers are useless.",
    "recognised without a voice": "Files or noise, not voices, give speakers away: let the anonymiser change them too.",
    "attackers that failed": "Some attackers failed: the others may be weaker.",
    "attacker strength": "Attackers recognise even original speech poorly: others would find more.",
    "overestimated privacy": "The protection is probably lower: a stronger attacker would find more.",
    "number of speakers": "With so few speakers the interval itself is uncertain: test more.",
    "short recordings": "Recordings are short: longer ones would tell attackers more.",
    "utility": "Nobody measured whether the words can still be understood: listen before you use the speech.",
    "training draws": "The attackers learnt from one version of the anonymised speech: several make them stronger.",
    "attacker order": "Attackers that know more are weaker: they were not trained well.",
    "shared draws": "Speakers have the same voice in enrolment and trials, which identifies them.",
    "original audio": "Some anonymised files hold original speech.",
    "duplicate audio": "Some recordings occur twice, under different names: remove the copies and evaluate again.",
    "utterance overlap": "Some recordings are in enrolment and in trials.",
    "speaker overlap": "Some speakers are in the training set too: attackers learnt without them.",
    "tags of files": "Tags of anonymised files name the speaker.",
    "broken recordings": "Some anonymised recordings are clipped, silent, very quiet or very short: listen.",
    "recordings without vectors": "Attackers failed on some recordings: scores of their trials are guesses.",
    "pooled trials": "Scores of women and men have different offsets: pooled rates are too high.",
    "user-supplied attackers": "User-supplied attackers did not score all trials.",
    "independence of the anonymiser": "Results on original speech differ between runs: the data changed.",
    "unknown sexes": "The sexes of the speakers are unknown: trials between the sexes are easy for attackers.",
    "missing lists": "There are results for one sex only.",
}
"""What warnings and errors mean for a reader of the verdict, by the name of the check; the first ones weigh most."""
FORBIDDEN_BY = {
    "no speech": "most recordings hold no speech, or levels that hardly vary",
    "pairs": "it is not certain that the files match",
    "broken attackers": "the scores of all attackers are useless",
}
"""Why there is no verdict, by the name of the check that forbids it."""
NOTED = ("short recordings",)
"""Checks of which notes count among the objections too."""

_NO_SPEECH = "no speech"  # name of a check that forbids only a verdict of protection
# name of a check, whose warning would contradict the next text
_FEW_SPEAKERS = "number of speakers"
_ENOUGH = "Enough speakers were tested for this verdict: the interval covers at most two of the five levels."

# names of attackers that compare properties of files or noise
_WITHOUT_SPEECH = ("properties", "session")
_HARDLY = 0.4  # at this rate or above, recordings are hardly distinguishable without their speech


@dataclass(frozen=True)
class Headline:
    """The result of one data set.

    Attributes
    ----------
    worst : Outcome
        List and scenario with the least privacy of anonymised speech.
    attacker : str
        The attacker with this rate, which need not be the strongest in an open set.
    eer : Interval
        The smallest EER over lists (each sex and pooled trials), scenarios, open and closed sets of speakers, and
        scores before and after subtraction of each model's mean, with the interval of that minimum.
    original : Interval
        EER of the same list without anonymisation.
    besides : str
        Additional step by which the attacker reaches this rate; empty if there is none.
    lists : int
        Number of lists with different speakers (each sex of each data set) for which the interval holds simultaneously.
    files : Belonging
        Whether the files belong to the originals of their names.
    """

    worst: Outcome
    attacker: str
    eer: Interval
    original: Interval = field(default_factory=Interval)
    besides: str = ""
    lists: int = 1
    files: Belonging = field(default_factory=Belonging)

    def over(self, n_lists: int) -> Headline:
        """Return the headline with an interval that holds for this number of lists simultaneously."""
        speakers = min(self.worst.n_enrolled, self.worst.condition.n_trial_speakers)
        eer = over_lists(
            self.eer, n_lists, before=self.lists, n_units=speakers, n_trials=self.worst.n_target
        )
        return replace(self, eer=eer, lists=n_lists)

    @property
    def anonymised(self) -> bool:
        """Whether there is anonymised speech."""
        return self.worst.anonymised

    @property
    def judged(self) -> Interval:
        """The rate that the words describe, with the lower end that it may have if files are exchanged.

        If the share of exchanged files is unknown, a weak rate still holds, since exchanged files only raise it.
        """
        if not self.files.is_known and not self.condition:
            return replace(self.eer, low=0.0)
        return self.files.bounded(self.eer)

    @property
    def condition(self) -> str:
        """The condition under which there is this much protection; empty without one."""
        if level_of(self.eer.value) < _MODERATE and self.eer.has_interval:
            return ""
        return self.files.condition

    @property
    def word(self) -> str:
        """Amount of protection in words, with its condition; see `word_of`."""
        words = word_of(self.judged, self.worst.n_enrolled)[0]
        return ", ".join(filter(None, (words, self.condition)))

    @property
    def level(self) -> int | None:
        """Index of the word in `WORDS`; None if there is none."""
        return word_of(self.judged)[1] if self.anonymised else None

    @property
    def perfect(self) -> float:
        """The rate that a perfect anonymiser would show on the list of `worst`; NaN if unknown."""
        minimum = self.worst.minimum_over_scenarios
        if minimum is None:
            return math.nan
        return minimum.perfect

    @property
    def asked(self) -> str:
        """A sentence on the attacker's task and how often it errs."""
        both = "two recordings"
        if self.worst.scenario in ("ignorant", REVERSAL):
            both = "an original and an anonymised recording"
        elif self.anonymised:
            both = "two anonymised recordings"
        errors = errs(self.eer, self.worst.n_target)
        question = f"Asked whether {both} are of the same person"
        return f"{question}, the strongest attacker {errors}; a coin toss is wrong in 1 of 2."

    @property
    def reach(self) -> tuple[str, str]:
        """The lowest and the highest level that the interval reaches."""
        lowest = WORDS[level_of(self.judged.low)]
        highest = WORDS[level_of(self.judged.high)]
        return lowest.lower(), highest.lower()


@dataclass(frozen=True)
class Verdict:
    """The contents of the first screen of the page.

    Attributes
    ----------
    headlines : list of Headline
        One for each data set; see `headlines`.
    overall : Headline or None
        The headline over all data sets; None without an error rate.
    words : str
        The verdict in a few words.
    because : str
        The condition of the verdict, or why there is none; empty if it needs none.
    level : int or None
        Index of the amount of protection in `WORDS`; None if there is none.
    objections : list of str
        Objections to the verdict; see `objections`.
    about : list of str
        Facts about the recordings and their names; see `about_recordings`.
    advice : str
        About how many speakers would make the verdict certain; empty if speech is not anonymised or a check forbids a
        verdict.
    forbidden : bool
        Whether a check forbids a verdict.
    """

    headlines: list[Headline]
    overall: Headline | None
    words: str
    because: str
    level: int | None
    objections: list[str]
    about: list[str]
    advice: str = ""
    forbidden: bool = False

    @property
    def text(self) -> str:
        """The words with their condition or reason."""
        if not self.because:
            return self.words
        return f"{self.words}{': ' if self.forbidden else ', '}{self.because}"

    @property
    def claims_protection(self) -> bool:
        """Whether the verdict claims protection or has no level, either of which a reversible change could cause."""
        if self.overall is None or not self.overall.anonymised or self.forbidden:
            return False
        if (
            self.overall.files.state == "identical"
        ):  # recordings of different speakers are identical
            return False
        return self.level is None or self.level >= _MODERATE


def judge(results: Results) -> Verdict:
    """Return the verdict on all data sets, from the interval of the smallest rate over them.

    If a check forbids a verdict, the upper end of this interval still holds: an attacker recognised people.
    """
    of_datasets = headlines(results)
    smallest = overall(of_datasets) if of_datasets else None
    words, because, level = _badge(results, smallest)
    forbidden = bool(refusals(results, smallest))
    needed = ""
    if smallest is not None and smallest.anonymised and not forbidden:
        needed = _advice_on(smallest)
    if needed == _ENOUGH and _FEW_SPEAKERS in _checks(results, "warning"):
        needed = ""
    against = objections(results)
    about = about_recordings(results, smallest)
    return Verdict(of_datasets, smallest, words, because, level, against, about, needed, forbidden)


def headlines(results: Results, *, anonymised: bool = False) -> list[Headline]:
    """Return a headline for each data set, from its least private list; the least private data set first.

    With `anonymised`, only data sets with results on anonymised speech are given.
    """
    known: dict[str, list[Outcome]] = {}
    for outcome in results.outcomes:
        if outcome.eer.known:
            known.setdefault(outcome.dataset, []).append(outcome)
    of_datasets = []
    for dataset, outcomes in known.items():
        files = belonging(row for row in results.pairings if row.dataset == dataset)
        headline = replace(_headline(outcomes), files=files)
        if headline.anonymised or not anonymised:
            of_datasets.append(headline)
    return sorted(of_datasets, key=lambda headline: (not headline.anonymised, headline.eer.value))


def overall(of_datasets: Sequence[Headline]) -> Headline:
    """Return the headline over all data sets: the least private one, with the smallest rate over all of them."""
    anonymised = [headline for headline in of_datasets if headline.anonymised]
    if not anonymised:
        return of_datasets[0]
    lists = sum(headline.lists for headline in anonymised)
    eer = _smallest([headline.over(lists).eer for headline in anonymised])
    files = least_certain([headline.files for headline in anonymised])
    return replace(of_datasets[0], eer=eer, lists=lists, files=files)


def objections(results: Results) -> list[str]:
    """Return objections to the verdict, a sentence for each check with a warning or an error."""
    checks = ["SIMULATED speech"] if results.simulated else []
    checks += [*_checks(results, "error"), *_checks(results, "warning")]
    checks += [check for check in _checks(results, "note") if check in NOTED]
    order = [*AGAINST, *checks]
    return [
        AGAINST.get(check, f"A check warns: {check}.")
        for check in sorted(set(checks), key=order.index)
    ]


def about_recordings(results: Results, headline: Headline | None) -> list[str]:
    """Return what is known about names of files, sessions, channels and languages, one sentence each."""
    sentences = []
    if headline is not None and headline.anonymised and headline.files.sentence:
        sentences.append(headline.files.sentence)
    for finding in results.checks:
        if finding.check == "sessions":
            sentences.append(finding.text)
    sentences.append(_on_sessions(results))
    sentences.append(
        "The networks of attackers may be weaker in languages on which they were not trained."
    )
    return sentences


def level_of(eer: float, targets: Sequence[float] = TARGETS) -> int:
    """Return the level of an EER: the number of minimum targets that it reaches.

    Examples
    --------
    >>> [WORDS[level_of(eer)] for eer in (0.05, 0.1, 0.39, 0.5)]
    ['Very weak', 'Weak', 'Good', 'Strong']
    """
    return bisect_right(targets, eer + 1e-12)


def word_of(eer: Interval, speakers: float = math.nan) -> tuple[str, int | None]:
    """Return the protection that an EER shows in words, and its level: by its value, bounded by its interval.

    The level is that of the value, or the nearest one that the interval reaches. The words follow from the levels of
    the two ends:

    ==================== =================== =============================================
    lower end            upper end           words
    ==================== =================== =============================================
    any                  the same            "Good protection"
    any                  the next one        "Good to strong protection"
    very weak            moderate or good    "Weak protection, at most moderate"
    weak or moderate     strong              "Strong protection, at least moderate"
    weak                 good                "Moderate protection, between weak and good"
    very weak            strong              "Too few speakers or draws to say", without level
    ==================== =================== =============================================

    If value and end lie on different sides of moderate, the end is not named, so that "good" never stands beside a weak
    value. If neither end is named, a weak value is stated for these speakers only, who were recognised, and a strong
    value is not stated: that a few speakers were not recognised shows nothing.

    Parameters
    ----------
    eer : Interval
        The rate; the words mention a missing interval.
    speakers : float, optional
        Number of speakers, mentioned if it is too small.

    Examples
    --------
    >>> word_of(Interval(0.12, 0.05, 0.25)), word_of(Interval(0.38, 0.25, 0.45))
    (('Weak protection, at most moderate', 1), ('Good protection, at least moderate', 3))
    >>> word_of(Interval(0.25, 0.22, 0.28))[0], word_of(Interval(0.38, 0.31, 0.43))[0]
    ('Moderate protection', 'Good to strong protection')
    >>> word_of(Interval(0.069, 0.005, 0.398), 5)
    ('Very weak protection of these 5 speakers, too few to generalise', 0)
    >>> word_of(Interval(0.25, 0.08, 0.41)), word_of(Interval(0.46, 0.11, 0.5))
    (('Too few speakers or draws to say', None), ('Too few speakers or draws to say', None))
    >>> word_of(Interval(0.0, 0.0, 0.41))  # no error seen: certain for these speakers only
    ('No protection of these speakers, too few to generalise', 0)
    """
    level = level_of(eer.value)
    if not eer.has_interval:
        return f"{WORDS[level]} protection by the point estimate", level
    low = level_of(eer.low)
    high = level_of(eer.high)
    level = min(max(level, low), high)
    if high - low > 1 and round(eer.value, 3) == 0:
        return "No protection of these speakers, too few to generalise", level
    is_unbounded = not (_is_named(low, level) or _is_named(high, level))
    if high - low == len(TARGETS) or (high - low > 1 and is_unbounded and level > _MODERATE):
        return "Too few speakers or draws to say", None
    if high - low == 1:
        return f"{WORDS[low]} to {WORDS[high].lower()} protection", level
    if high == low:
        return f"{WORDS[level]} protection", level
    return _bounded(level, low, high, speakers), level


def advice(eer: Interval, speakers: float) -> str:
    """Estimate how many speakers would narrow the interval of an EER to two levels.

    Both ends are assumed to approach the value as the square root of the number of speakers grows.

    Examples
    --------
    >>> advice(Interval(0.045, 0.008, 0.254), 16)[:62]
    'About 30 speakers in place of 16 would narrow the interval to '
    >>> advice(Interval(0.045, 0.008, 0.154), 16)
    'Enough speakers were tested for this verdict: the interval covers at most two of the five levels.'
    """
    if not (eer.has_interval and speakers > 0):
        return "Without an interval over speakers nobody knows how certain this is."

    enough = int(speakers)
    while _levels_spanned(eer, math.sqrt(speakers / enough)) > 1:
        enough += 1
    if enough == speakers:
        return _ENOUGH
    text = f"About {10 * math.ceil(enough / 10)} speakers in place of {speakers:.0f} would narrow the interval to two"
    return f"{text} of the five levels: its width shrinks with the square root of their number."


def errs(eer: Interval, n_target: float = math.nan) -> str:
    """Describe how often an attacker errs, with the upper end if errors are too few to be counted.

    Examples
    --------
    >>> errs(Interval(0.006, 0.0, 0.13), 32), errs(Interval(0.006, 0.0, 0.13), 320)
    ('makes hardly any errors on these trials (the interval allows 1 of 7)', 'is wrong in 1 of 167 decisions')
    >>> errs(Interval(0.095, 0.0, 0.5), 2)
    'is wrong in 1 of 11 decisions'
    >>> errs(Interval(0.0), 32)
    'makes no error on these trials'
    """
    if eer.value <= 0:
        return "makes no error on these trials"
    if eer.has_interval and eer.value < _HARDLY_ANY and eer.value * n_target < 1:
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
    if share <= 0:
        return "none"
    if share > 0.42:
        return "almost 1 of 2" if share < 0.495 else "1 of 2"
    if share > 0.22:
        tenths = math.ceil(10 * share) if at_most else round(10 * share)
        return "2 of 5" if tenths == 4 else f"{tenths} of 10"
    number = math.floor(1 / share) if at_most else round(1 / share)
    return f"1 of {number:,}"


def _bounded(level: int, low: int, high: int, speakers: float) -> str:
    """Return the words for the level of a value whose interval spans three or four levels."""
    low_named = _is_named(low, level)
    high_named = _is_named(high, level)
    if low_named and high_named:
        return f"{WORDS[level]} protection, between {WORDS[low].lower()} and {WORDS[high].lower()}"
    if low_named:
        return _with_bound(level, "at least", low)
    if high_named:
        return _with_bound(level, "at most", high)
    people = "speakers"
    if speakers > 0:
        people = f"{speakers:.0f} speakers"
    return f"{WORDS[level]} protection of these {people}, too few to generalise"


def _is_named(end: int, level: int) -> bool:
    """Whether the level of an end is informative and on the same side of moderate as that of the value."""
    return 0 < end < len(TARGETS) and (level - _MODERATE) * (end - _MODERATE) >= 0


def _with_bound(level: int, direction: str, bound: int) -> str:
    """Return the words for the level of a value and a bound on one side, which may be the same level."""
    if level == bound:
        return f"{direction.capitalize()} {WORDS[bound].lower()} protection"
    return f"{WORDS[level]} protection, {direction} {WORDS[bound].lower()}"


def _levels_spanned(eer: Interval, scale: float) -> int:
    """Return how many levels an interval spans after its ends' distances from the value are scaled by a factor."""
    low = level_of(eer.value + scale * (eer.low - eer.value))
    high = level_of(eer.value + scale * (eer.high - eer.value))
    return high - low


def _headline(outcomes: Sequence[Outcome]) -> Headline:
    """Return the headline of a data set from its outcomes with known rates."""
    anonymised = [outcome for outcome in outcomes if outcome.anonymised]
    pooled_first = sorted(anonymised or outcomes, key=lambda outcome: outcome.gender != "all")
    candidates = [Headline(outcome, outcome.strongest, outcome.rate) for outcome in pooled_first]
    minima = []
    for outcome in anonymised:
        closed = outcome.closed_set
        if closed is not None:
            candidates.append(Headline(outcome, closed.attacker, closed.eer, besides=_CLOSED))
        centred = outcome.centred
        if centred is not None:
            candidates.append(Headline(outcome, centred.attacker, centred.eer, besides=_CENTRED))
        minimum = outcome.minimum_over_scenarios
        if minimum is not None and minimum.interval.has_interval:
            minima.append(minimum.interval)
    headline = min(candidates, key=lambda candidate: candidate.eer.value)
    if anonymised:
        headline = replace(
            headline, eer=_smallest([*minima, *(candidate.eer for candidate in candidates)])
        )
    for outcome in outcomes:
        if outcome.gender == headline.worst.gender and not outcome.anonymised:
            headline = replace(headline, original=outcome.rate)
    genders = {outcome.gender for outcome in anonymised} - {"all"}
    return headline.over(max(len(genders), 1))


def refusals(results: Results, headline: Headline | None) -> list[str]:
    """Return why there is no verdict, in words; empty if no check forbids one.

    If people are recognised although there is hardly any speech, the verdict of weak protection stands.
    """
    level = None if headline is None else headline.level
    is_weak = level is not None and level < _MODERATE
    reasons = []
    for check in _checks(results, "error"):
        if check == _NO_SPEECH and is_weak:
            continue
        reason = exchanged_in_words(results.pairings) if check == "pairs" else ""
        reasons.append(reason or FORBIDDEN_BY.get(check, f"a check forbids it ({check})"))
    return reasons


def _badge(results: Results, headline: Headline | None) -> tuple[str, str, int | None]:
    """Return the verdict in a few words, its condition or the reason why there is none, and its level."""
    reasons = refusals(results, headline)
    if reasons:
        return _without_verdict("; ".join(reasons), headline)
    if headline is None:
        return "No result", "", None
    if not headline.anonymised:
        return "Not anonymised", "", None
    words = word_of(headline.judged, headline.worst.n_enrolled)[0]
    if headline.files.state == "identical" and not level_of(headline.judged.low) < _STRONG:
        words += ", provable: recordings of different speakers are identical"
    if results.attackers_run is not None and results.attackers_run.networks == ():
        words += " (no neural attacker was run)"
    return words, headline.condition, headline.level


def _on_sessions(results: Results) -> str:
    """Say how well original recordings are recognised only by noise or files, which sessions and channels explain."""
    without_speech = []
    for row in results.conditions:
        if row.scenario == "original" and row.attacker in _WITHOUT_SPEECH and row.eer.known:
            without_speech.append(row.eer.value)
    if not without_speech:
        text = "Nobody measured what sessions and channels tell: a room or microphone that all recordings of a speaker"
        return f"{text} share helps attackers."
    least = min(without_speech)
    amount = "Noise and properties of files tell little about speakers here"
    if least < _HARDLY:
        amount = "Noise and properties of files give speakers away here"
    text = f"{amount}: an attacker without their speech has an equal error rate of"
    return f"{text} {100 * least:.0f} % on the original recordings."


def _advice_on(headline: Headline) -> str:
    """Say what would narrow the interval of a verdict: more speakers, or files that certainly match."""
    is_lowered = headline.files.is_known and level_of(headline.judged.low) < level_of(
        headline.eer.low
    )
    if is_lowered or headline.condition:
        text = (
            "It would be more certain if the evaluation called the anonymiser (anonymizer.name or"
        )
        return f"{text} anonymizer.command), so that files cannot be exchanged."
    return advice(headline.eer, headline.worst.n_enrolled)


def _checks(results: Results, level: str) -> dict[str, None]:
    """Return the names of the checks with findings of a level."""
    return dict.fromkeys(finding.check for finding in results.checks if finding.level == level)


def _without_verdict(reasons: str, headline: Headline | None) -> tuple[str, str, int | None]:
    """Return words, reasons and level if checks forbid a verdict.

    Only a low upper end of the interval may then be stated.
    """
    if headline is not None and headline.anonymised and headline.eer.has_interval:
        most = level_of(headline.eer.high)
        if most <= _MODERATE:
            words = f"At most {WORDS[most].lower()} protection, otherwise no verdict"
            return words, reasons, min(level_of(headline.eer.value), most)
    return "No verdict", reasons, None


def _smallest(eers: Sequence[Interval]) -> Interval:
    """Return the minimum of rates with its interval, or without one if any rate has none."""
    smallest = minimum_of(eers)
    if all(eer.has_interval for eer in eers):
        return smallest
    return Interval(smallest.value)
