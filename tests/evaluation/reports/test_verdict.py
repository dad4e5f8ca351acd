"""The verdict: words and level by the interval, what forbids it, and what speaks against it."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from evaluation.reports import headlines, parse_results
from evaluation.reports.verdict import AGAINST, WORDS, Verdict, judge, word_of
from evaluation.uncertainty import Interval


def condition(
    scenario: str, eer: float, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    names = {"dataset": "d", "gender": "all", "scenario": scenario, "attacker": "a"}
    return names | {"eer": {"rocch": eer}, "intervals": {"eer.rocch": {"low": low, "high": high}}}


def verdict(*rows: dict[str, Any], **more: Any) -> Verdict:
    return judge(parse_results({"format": 1, "conditions": rows, **more}))


@pytest.mark.parametrize(
    ("eer", "low", "high", "words", "reach"),
    [
        (0.05, 0.01, 0.09, "Very weak protection", "very weak to very weak"),
        (0.099, 0.05, 0.15, "Very weak to weak protection", "very weak to weak"),
        (0.1, 0.1, 0.19, "Weak protection", "weak to weak"),
        (0.25, 0.15, 0.35, "Moderate protection, between weak and good", "weak to good"),
        (0.25, 0.15, 0.41, "Moderate protection, at least weak", "weak to strong"),
        (0.46, 0.29, 0.5, "Strong protection, at least moderate", "moderate to strong"),
        (0.07, 0.05, 0.25, "Very weak protection, at most moderate", "very weak to moderate"),
        (0.25, 0.08, 0.41, "Too few speakers or draws to say", "very weak to strong"),
        (0.39, 0.3, 0.5, "Good to strong protection", "good to strong"),
        (0.5, 0.45, 0.5, "Strong protection", "strong to strong"),
        (0.3, None, None, "Good protection by the point estimate", ""),
    ],
)
def test_the_wording_follows_the_targets_of_the_challenge(
    eer: float, low: float | None, high: float | None, words: str, reach: str
) -> None:
    judged = verdict(condition("semi-informed", eer, low, high))
    assert judged.words == words
    assert judged.overall is not None
    if reach:
        assert " to ".join(judged.overall.reach) == reach
    else:
        assert judged.advice.startswith("Without an interval over speakers")


MIDDLES = (0.05, 0.15, 0.25, 0.35, 0.45)
"""A rate of each level."""


def claimed(words: str) -> tuple[int, int]:
    """The lowest and the highest level that the words allow."""
    levels = [
        level
        for level, word in enumerate(WORDS)
        if re.search(rf"(?<!very ){word.lower()}\b", words.lower())
    ]
    if "too few" in words.lower():
        return 0, 4
    if "at most" in words.lower():
        return 0, max(levels)
    if "at least" in words.lower():
        return min(levels), 4
    return min(levels), max(levels)


def all_words() -> dict[tuple[int, int, int], tuple[str, int | None]]:
    """Words and level of every value in an interval, by the levels of the value and of both ends."""
    known = {}
    for value, low, high in itertools.product(range(5), repeat=3):
        if low <= value <= high:
            known[value, low, high] = word_of(Interval(MIDDLES[value], MIDDLES[low], MIDDLES[high]))
    return known


def test_the_wording_claims_no_more_than_the_interval_and_rises_with_either_end() -> None:
    known = all_words()
    for (value, low, high), (words, level) in known.items():
        least, most = claimed(words)
        assert least <= low <= high <= most, words
        assert level in (None, value)
        assert (level is None) == ("Too few" in words)
        for raised in ((value, low + 1, high), (value, low, high + 1)):
            if raised in known:
                above = known[raised][0]
                assert claimed(above)[0] >= least, (words, above)
                assert claimed(above)[1] >= most, (words, above)


def test_a_value_outside_its_interval_gets_the_wording_of_the_nearest_level() -> None:
    assert (
        word_of(Interval(0.45, 0.15, 0.25))
        == word_of(Interval(0.25, 0.15, 0.25))
        == ("Weak to moderate protection", 2)
    )
    assert (
        word_of(Interval(0.05, 0.15, 0.35))
        == word_of(Interval(0.15, 0.15, 0.35))
        == ("At least weak protection", 1)
    )


def test_mirrored_intervals_have_mirrored_wordings() -> None:
    known = all_words()
    for (value, low, high), (words, level) in known.items():
        mirrored, its_level = known[4 - value, 4 - high, 4 - low]
        least, most = claimed(words)
        assert claimed(mirrored) == (4 - most, 4 - least), (words, mirrored)
        # speakers who were recognised; others may not be strong
        if "of these" not in words + mirrored:
            assert its_level == (None if level is None else 4 - level)
        assert ("too few" in words.lower()) == ("too few" in mirrored.lower())


def test_the_colour_never_contradicts_the_wording() -> None:
    for (_, low, high), (words, level) in all_words().items():
        if level is not None and high - low > 1:
            named = [word for word in ("good", "strong") if word in words.lower()]
            assert not named or level >= 2, words
            assert "weak" not in words.lower() or level <= 2, words


def test_checks_forbid_a_verdict_and_objections_are_ordered_by_weight() -> None:
    levels = {
        "fusion": "note",
        "utility": "warning",
        "new": "warning",
        "pairs": "error",
        "pooled trials": "ok",
    }
    levels["short recordings"] = "note"
    checks = [{"level": level, "check": check, "text": "x"} for check, level in levels.items()]
    judged = verdict(condition("lazy-informed", 0.45, 0.4, 0.5), sanity=checks, simulated=True)
    assert (judged.text, judged.level) == (
        "No verdict: it is not certain that the files match",
        None,
    )
    assert judged.advice == ""  # no number of speakers would help
    expected = [
        AGAINST[check] for check in ("SIMULATED speech", "pairs", "short recordings", "utility")
    ]
    assert judged.objections == [*expected, "A check warns: new."]


@pytest.mark.parametrize(
    ("eer", "low", "high", "words", "level"),
    [
        (0.02, 0.0, 0.06, "At most very weak protection, otherwise no verdict", 0),
        (0.08, 0.05, 0.25, "At most moderate protection, otherwise no verdict", 0),
        (0.08, 0.05, 0.35, "No verdict", None),
    ],
)
def test_a_forbidden_verdict_still_reports_a_low_upper_end(
    eer: float, low: float, high: float, words: str, level: int | None
) -> None:
    check = {"level": "error", "check": "pairs", "text": "x"}
    judged = verdict(condition("semi-informed", eer, low, high), sanity=[check])
    assert (judged.words, judged.because, judged.level) == (
        words,
        "it is not certain that the files match",
        level,
    )


def pairings(**changes: Any) -> dict[str, Any]:
    """Rows of the enrolment and of the trials of the data set d."""
    rows = [
        {"directory": f"d_{part}_x", "dataset": "d", "part": part, **changes}
        for part in ("enrolment", "trials")
    ]
    return {"pairings": rows}


STRONG = (0.46, 0.41, 0.5)


@pytest.mark.parametrize(
    ("rate", "changes", "text", "level"),
    [
        (STRONG, {"state": "certain"}, "Strong protection", 4),
        # 1 - 0.96^2 = 7.8 % of the trials may be exchanged: (0.41 * 1.078 - 0.078) / 0.922 = 0.394
        (
            STRONG,
            {"state": "confirmed", "share": 0, "low": 0, "high": 0.04},
            "Good to strong protection",
            4,
        ),
        (
            STRONG,
            {"state": "doubtful", "share": 0.1, "high": 0.3},
            "Strong protection, at least moderate",
            4,
        ),
        (
            STRONG,
            {"state": "not confirmed", "reason": "words repeat"},
            "Strong protection, if each file belongs to its original, which could not be confirmed: words repeat",
            4,
        ),
        # exchanged files can only make speech seem more private
        ((0.04, 0.02, 0.08), {"state": "not confirmed"}, "Very weak protection", 0),
        ((0.15, 0.12, 0.18), {"state": "not confirmed"}, "Very weak to weak protection", 1),
        (
            (0.5, 0.5, 0.5),
            {"state": "identical"},
            "Strong protection, provable: recordings of different speakers are identical",
            4,
        ),
    ],
)
def test_the_badge_uses_the_lower_bound_under_the_possible_share_of_exchanged_files(
    rate: tuple[float, float, float], changes: dict[str, Any], text: str, level: int
) -> None:
    judged = verdict(condition("lazy-informed", *rate), **pairings(**changes))
    assert (judged.text, judged.level) == (text, level)
    assert bool(judged.because) == ("if each" in text)
    assert judged.overall is not None
    eer = judged.overall.eer
    assert (eer.value, eer.low, eer.high) == rate  # the figure is the measured rate
    other = {"directory": "e_trials_x", "dataset": "e", "state": "not confirmed"}
    beside = verdict(
        condition("lazy-informed", *rate), pairings=[*pairings(**changes)["pairings"], other]
    )
    assert beside.text == text  # an unconfirmed directory of another data set changes nothing


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        ((0.08, 0.05, 0.25), "Very weak protection, at most moderate"),
        (STRONG, "No verdict: most recordings hold no speech, or levels that hardly vary"),
    ],
)
def test_recordings_without_speech_forbid_only_a_verdict_of_protection(
    rate: tuple[float, float, float], text: str
) -> None:
    check = {"level": "error", "check": "no speech", "text": "x"}
    judged = verdict(condition("semi-informed", *rate), sanity=[check])
    assert judged.text == text
    assert judged.forbidden == text.startswith("No verdict")


def test_exchanged_files_forbid_a_verdict_and_their_share_is_given() -> None:
    check = {"level": "error", "check": "pairs", "text": "x"}
    rows = pairings(state="exchanged", share=0.48, low=0.31, high=0.66)
    judged = verdict(condition("lazy-informed", 0.46, 0.41, 0.5), sanity=[check], **rows)
    assert judged.text == (
        "No verdict: about 48 % (31 to 66) of d_enrolment_x are other speakers' recordings, and some of d_trials_x"
    )


def test_the_least_certain_data_set_determines_the_verdict() -> None:
    rows = [
        condition("ignorant", 0.46, 0.41, 0.5),
        condition("ignorant", 0.48, 0.42, 0.5) | {"dataset": "e"},
    ]
    sure = {"directory": "d_trials_x", "dataset": "d", "state": "certain"}
    judged = verdict(
        *rows,
        pairings=[sure, {"directory": "e_trials_x", "dataset": "e", "reason": "words repeat"}],
    )
    assert judged.text.startswith("Strong protection, if each file")
    assert "anonymizer.command" in judged.advice


def test_original_speech_has_no_headline_of_anonymised_speech() -> None:
    rows = [condition("original", 0.01), condition("ignorant", 0.2) | {"dataset": "e"}]
    results = parse_results({"format": 1, "conditions": rows})
    assert [headline.worst.dataset for headline in headlines(results)] == ["e", "d"]
    assert [headline.worst.dataset for headline in headlines(results, anonymised=True)] == ["e"]
    assert verdict(rows[0]).words == "Not anonymised"
    assert verdict(rows[0] | {"eer": {"rocch": None}}).words == "No result"
