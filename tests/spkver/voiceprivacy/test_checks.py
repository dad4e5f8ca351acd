"""Checks of a run, the verdict and the averages, on rows of a table of results and on recordings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from evaluation.reports import (
    Condition,
    Failure,
    Minima,
    Results,
    UtilityFigure,
    UtilityRate,
    comparison,
    in_order,
    parse_results,
    summarise,
    typed_results,
)
from evaluation.reports.verdict import AGAINST, FORBIDDEN_BY
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import Interval, Minimum, Resampling, sample_of
from spkbase.configuration import load_config
from spkbase.errors import ConfigError, DataError
from spkver.attackers import (
    PRESETS,
    absent_attackers,
    attacker_name,
    default_attackers,
    parse_spec,
)
from spkver.datadir import DataDir
from spkver.voiceprivacy import checks
from spkver.voiceprivacy.assessment import AttackerOrder, Table, compare_scenarios
from spkver.voiceprivacy.challenge_files import averages, challenge_rows
from spkver.voiceprivacy.checks import FEW_TRAINING_SPEAKERS, Evaluated
from spkver.voiceprivacy.choosing import (
    attackers_run,
    chosen_attackers,
    describe_absent,
    describe_unwatched,
)
from spkver.voiceprivacy.recording_checks import (
    broken_recordings,
    changed_durations,
    file_tags,
    hidden_speech,
    short_recordings,
    without_speech,
)
from spkver.voiceprivacy.reporting import verdict
from spkver.voiceprivacy.sets import Dataset, OneVersion, Sets, find_datasets
from spkver.voiceprivacy.settings import ChallengeConfig, Config, TwinConfig

CONFIGS = Path(__file__).resolve().parents[3] / "recipes" / "voiceprivacy" / "config"
SCENARIOS = {"o": "original", "i": "ignorant", "l": "lazy-informed", "s": "semi-informed"}
GOOD = {"o": 0.01, "i": 0.2, "l": 0.15, "s": 0.1}


def rows(
    attackers: tuple[str, ...] = ("a", "b"), behind: float = 0.01, **rates: float
) -> list[dict[str, Any]]:
    """Rows of one set, scenarios by their first letter; each attacker is `behind` the one before it."""
    return [
        {
            "dataset": "x_test",
            "gender": "all",
            "scenario": SCENARIOS[letter],
            "attacker": attacker,
            "level": "one-model",
            "eer": dict.fromkeys(("rocch", "interpolated", "speechbrain"), rate + number * behind),
            "zebra": {"population": 0.3, "individual": 1.0, "tag": "A"},
            "intervals": {
                "eer.rocch": {
                    "low": rate + number * behind - 0.02,
                    "high": rate + number * behind + 0.02,
                }
            },
            "notes": {},
            "linkability": {"sizes": [2, 30], "linkability": [0.9, 0.5]},
            "n_enrolled": 30,
            "n_trial_speakers": 30,
            "n_target": 200,
            "n_nontarget": 2000,
            "draws": [{}],
        }
        for letter, rate in rates.items()
        for number, attacker in enumerate(attackers)
    ]


def evaluated(
    rows: list[dict[str, Any]],
    given: Any,
    config: Config,
    minima: Minima | None = None,
    resamples: int = 0,
    failures: tuple[Failure, ...] = (),
    utility: tuple[UtilityFigure, ...] = (),
    **more: Any,
) -> Evaluated:
    conditions = [Condition.from_dict(row) for row in rows]
    order = map(
        AttackerOrder.from_dict, compare_scenarios(conditions, Path(), Resampling(resamples, 0))
    )
    results = Results(
        conditions=tuple(conditions),
        outcomes=in_order(summarise(conditions, minima)),
        failures=failures,
        utility=utility,
    )
    return Evaluated(results, given, config, [*order], **more)


def sets(speakers: int = FEW_TRAINING_SPEAKERS, draws: int = 3) -> Any:
    directory = SimpleNamespace(speakers={f"u{number}": f"s{number}" for number in range(speakers)})
    return SimpleNamespace(
        training_sets=["train"],
        datasets=(),
        original={"train": directory},
        versions={"train": (directory,) * (1 + draws)},
        is_fixed=lambda name: False,
        rates="",
    )


def test_sessions_shared_by_enrolment_and_tests_are_noted(
    tmp_path: Path,
) -> None:
    def directory(speakers: dict[str, str], **lists: Any) -> DataDir:
        return DataDir(tmp_path, {name: tmp_path / name for name in speakers}, speakers, **lists)

    enrolled = {"a-1-0": "a", "b-1-0": "b"}
    tested = {"a-1-1": "a", "a-2-1": "a", "b-2-1": "b", "b-3-1": "b"}
    given = sets()
    given.datasets = (Dataset("x", "x_enrolls", {"f": "x_trials_f"}, "train"),)
    given.original |= {"x_enrolls": directory(enrolled), "x_trials_f": directory(tested)}
    (found,) = checks.shared_sessions(evaluated(rows(s=0.1), given, Config()))
    assert (found.level, found.check) == ("note", "sessions")
    assert (
        "by the names of the recordings, 25 % of the tests are from a session in which their speaker was also recorded"
        in found.text
    )
    given.original["x_trials_f"] = directory({"a-1": "a"})  # the id is only a speaker and a number
    assert not list(checks.shared_sessions(evaluated(rows(s=0.1), given, Config())))


# --- rows of the table ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "rates", "expected", "words"),
    [
        ("attacker_strength", {"o": 0.05}, ["ok"], "5.0 %"),
        ("attacker_strength", {"o": 0.051}, ["warning"], "5.1 %"),
        ("attacker_order", {"s": 0.1}, ["ok", "ok"], "lazy-informed one, 10.0 % against 20.0 %"),
        (
            "attacker_order",
            {"s": 0.25},
            ["note", "ok"],
            "25.0 % against 20.0 %; without intervals it is not known",
        ),
        ("attacker_order", {"s": 0.35}, ["note", "note"], "ignorant one, 35.0 % against 30.0 %"),
        ("other_notes", {}, ["warning"], "noise"),
    ],
)
def test_misleading_error_rates_are_noted(
    check: str, rates: dict[str, float], expected: list[str], words: str
) -> None:
    table = rows(**{"o": 0.01, "i": 0.3, "l": 0.2, "s": 0.1} | rates)
    found = list(getattr(checks, check)(evaluated(table, sets(), Config())))
    assert [one.level for one in found] == expected
    assert words in " ".join(one.text for one in found)


def test_attacker_strength_uses_the_interval_of_the_tables() -> None:
    """It had that of the attacker alone: 0.0 to 11.3 % beside 0.0 to 21.2 %."""
    table = rows(o=0.01)
    minima = {("x_test", "all", "original"): {"minimum": Minimum("a", Interval(0.01, 0.0, 0.212))}}
    (found,) = checks.attacker_strength(evaluated(table, sets(), Config(), minima))
    assert "(interval to 21.2 %)" in found.text


@pytest.mark.parametrize(("loss", "level"), [(0.02, "note"), (1.0, "warning")])
def test_paired_resamples_decide_whether_the_informed_attacker_is_weaker_by_chance(
    monkeypatch: pytest.MonkeyPatch, loss: float, level: str
) -> None:
    models, segments = np.divmod(np.arange(1200), 60)  # 20 speakers with 3 segments each
    is_target, rng = models == segments // 3, np.random.default_rng(0)
    speakers = TrialSpeakers(
        np.array([f"s{number:02d}" for number in range(20)], object), models, segments // 3
    )
    lazy = 2 * is_target + rng.standard_normal(1200)
    semi = lazy - loss * is_target + 0.1 * rng.standard_normal(1200)
    of_scenario = {"lazy-informed": lazy, "ignorant": lazy, "semi-informed": semi}
    monkeypatch.setattr(
        comparison,
        "samples_of",
        lambda row, _: [sample_of(of_scenario[row.scenario], is_target, speakers)],
    )
    run = evaluated(rows(**GOOD | {"s": 0.21}), sets(), Config(), resamples=500)
    found = list(checks.attacker_order(run))
    assert [one.level for one in found] == [level, level], found
    assert all("(difference" in one.text for one in found)
    weak = (
        "semi-informed attackers are weaker than lazy-informed ones (x_test: 21.0 % against 15.0 %)"
    )
    assert (weak in list(checks.reasons(run))) == (level == "warning")


@pytest.mark.parametrize(("draws", "level"), [(0, "warning"), (3, "ok")])
def test_a_single_anonymised_training_version_raises_a_warning(draws: int, level: str) -> None:
    given = sets(draws=draws)
    given.once = {} if draws else {"train": OneVersion("since nothing says how it was made")}
    (found,) = checks.draws(evaluated(rows(s=0.1), given, Config()))
    assert found.level == level
    assert (
        f"learnt from {draws + 1} anonymised version{'s' if draws else ''} of train" in found.text
    )


def test_measured_utility_and_original_speech_raise_no_warning() -> None:
    measured = UtilityFigure("wer", ("x_test", "anonymised"), UtilityRate(Interval(0.1)))
    for rates, utility in ((GOOD, (measured,)), ({"o": 0.1}, ())):
        assert not list(
            checks.other_notes(evaluated(rows(**rates), sets(), Config(), utility=utility))
        )


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({"n_enrolled": 19}, "warning", "fewer than 20"),
        ({"n_enrolled": 20}, "ok", "0.5 points"),  # 0.5 points are one of 200 target trials
        ({"intervals": {}, "notes": {"intervals": "none: too few"}}, "warning", "too few"),
    ],
)
def test_few_speakers_and_missing_intervals_are_noted(
    changes: dict[str, Any], level: str, words: str
) -> None:
    (found,) = checks.few_speakers(
        evaluated([{**row, **changes} for row in rows(o=0.1)], sets(), Config())
    )
    assert (found.level, words in found.text) == (level, True)


@pytest.mark.parametrize(
    ("rate", "seed", "expected"), [(0.02, 0, ["ok"]), (0.03, 0, ["warning"]), (0.03, 1, [])]
)
def test_original_results_do_not_change_with_the_anonymiser(
    rate: float, seed: int, expected: list[str]
) -> None:
    config = Config()
    told = {
        "seed": seed,
        "attackers": list(config.attackers),
        "attacker_settings": {},
        "training_sets": {},
    }
    earlier = {"results_b.json": typed_results({"config": told, "conditions": rows(o=rate, i=0.4)})}
    run = evaluated(rows(o=0.02, i=0.3), sets(), config, earlier=earlier)
    assert [one.level for one in checks.independence(run)] == expected


def test_attackers_with_equal_or_inverted_scores_are_ignored() -> None:
    """Constant scores look like perfect privacy, and so do inverted ones."""
    table = [one | {"min_cllr": 0.5} for one in rows(o=0.02, i=0.5, l=0.5, s=0.5)]
    assert not list(checks.uninformative(evaluated(table, sets(), Config())))
    for place in (2, 4, 5):
        table[place]["min_cllr"] = 1.0
    table[6]["eer"] = {"rocch": 0.5, "interpolated": 0.9}
    found = list(checks.uninformative(evaluated(table, sets(), Config())))
    assert [(one.level, one.text[one.text.index("(") : one.text.index(")")]) for one in found] == [
        ("warning", "(x_test all ignorant, x_test all semi-informed"),
        ("error", "(x_test all lazy-informed"),
    ]


def test_equal_file_properties_do_not_count_as_a_broken_attacker_nor_hide_one() -> None:
    config = Config(attackers=("a", "properties"), attacker_settings={"a": {"preset": "gmm-svm"}})
    table = [one | {"min_cllr": 0.5} for one in rows(("a", "properties"), o=0.02, l=0.5)]
    for row in table:
        if row["attacker"] == "properties":
            row["min_cllr"] = 1.0
    assert not list(checks.uninformative(evaluated(table, sets(), config)))
    table[2]["min_cllr"] = 1.0  # the only other attacker
    (found,) = checks.uninformative(evaluated(table, sets(), config))
    assert (found.level, "Scores of a are" in found.text) == ("error", True)


@pytest.mark.parametrize(("pooled", "told"), [(0.1, False), (0.165, True)])
def test_lists_with_pooled_rates_far_above_both_sexes_are_named(pooled: float, told: bool) -> None:
    rates = {"f": 0.01, "m": 0.09, "all": pooled}
    table = [one | {"gender": sex} for sex, rate in rates.items() for one in rows(("a",), o=rate)]
    found = list(checks.pooled_trials(evaluated(table, sets(), Config())))
    assert ["f 1.0 %, m 9.0 %" in one.text for one in found] == [True] * told


# --- length of speech -------------------------------------------------------------------------------------------------


def spoken(
    folder: Path, speech: float, silence: float, utterances: int, rate: int = 16000
) -> DataDir:
    """Two speakers; noise as speech, then silence."""
    folder.mkdir()
    recordings, speakers, random = {}, {}, np.random.default_rng(0)
    for number in range(2 * utterances):
        name = f"{folder.name}-{number}"
        samples = np.concatenate(
            [0.1 * random.standard_normal(int(speech * rate)), np.zeros(int(silence * rate))]
        )
        recordings[name], speakers[name] = folder / f"{number}.wav", f"s{number % 2}"
        soundfile.write(
            recordings[name], samples + 1e-4 * random.standard_normal(len(samples)), rate
        )
    return DataDir(folder, recordings, speakers)


@pytest.mark.parametrize(
    ("test", "silence", "enrolled", "utterances", "is_short"),
    [
        (0.7, 0.0, 0.7, 3, True),  # both sides are short
        (0.7, 3.0, 0.7, 3, True),  # silence does not count as speech
        (0.7, 20.0, 0.7, 3, True),
        (0.7, 0.0, 2.2, 3, False),  # one word, but long enrolment
        (0.7, 1.3, 0.7, 30, False),
        (0.3, 2.0, 2.2, 10, True),  # too short for any enrolment
        (6.0, 0.0, 0.3, 1, True),  # long tests, short enrolment
        (1.5, 0.0, 1.5, 3, False),
        (6.0, 0.0, 6.0, 3, False),
    ],
)
def test_short_recordings_are_given_as_a_reason_with_both_lengths(
    tmp_path: Path, test: float, silence: float, enrolled: float, utterances: int, is_short: bool
) -> None:
    original = {
        "e": spoken(tmp_path / "e", enrolled, silence, utterances),
        "t": spoken(tmp_path / "t", test, silence, 5),
    }
    given = SimpleNamespace(
        datasets=(SimpleNamespace(name="x_test", enrolls="e", trials={"f": "t"}),),
        original=original,
    )
    findings = list(short_recordings(given, 1))  # type: ignore[arg-type]
    assert bool(findings) == is_short
    run = evaluated(
        rows(VOICES, 0.005, **GOOD), sets(), CONFIG, recordings={"short_recordings": findings}
    )
    told = "".join(finding.text for finding in checks.overestimated(run))
    assert (
        "because recordings are short (x_test: half of the test recordings hold less than" in told
    ) == is_short
    if is_short:
        lengths = [float(number) for number in re.findall(r"(\d+\.\d) s", told)]
        assert lengths == pytest.approx([test, enrolled * utterances], abs=0.3)


# --- privacy that is probably overestimated ---------------------------------------------------------------------------

VOICES = ("campplus-adapted", "onnx-net", "gmm-svm")
NAMED = ("campplus-adapted", "campplus", "gmm-svm", "gmm-ubm", "onnx:net.onnx")
CONFIG = Config(attackers=tuple(dict.fromkeys((*default_attackers(), *NAMED))))


def alarm(
    table: list[dict[str, Any]], given: Any, failed: tuple[str, ...] = (), config: Config = CONFIG
) -> str:
    run = evaluated(
        table, given, config, failures=tuple(Failure(name, "", "", "", "", "") for name in failed)
    )
    return "".join(finding.text for finding in checks.overestimated(run))


@pytest.mark.parametrize(
    ("rates", "attackers", "behind", "text"),
    [
        (GOOD, VOICES, 0.005, ""),
        (GOOD | {"o": 0.06}, VOICES, 0.005, "weak on original speech (x_test: 6.0 %)"),
        (GOOD | {"s": 0.16}, VOICES, 0.005, ""),  # without intervals, this may be chance
        (
            GOOD,
            VOICES,
            0.05,
            "ahead of all others, beyond both intervals: x_test ignorant: campplus-adapted",
        ),
        (GOOD, ("gmm-svm", "gmm-ubm"), 0.005, "no attacker uses a neural network"),
        (GOOD, ("campplus", "gmm-svm"), 0.005, "no attacker adapts to the trials"),
        (
            GOOD,
            ("campplus-adapted", "gmm-svm"),
            0.005,
            "because no attacker's network has seen anonymised speech.",
        ),
    ],
)
def test_unusual_rates_are_given_as_reasons(
    rates: dict[str, float], attackers: tuple[str, ...], behind: float, text: str
) -> None:
    told = alarm(rows(attackers, behind, **rates), sets())
    assert told.startswith("This privacy is probably overestimated, because " if text else "")
    assert text in told
    assert bool(told) == bool(text)


def test_weak_training_and_failures_are_given_as_reasons() -> None:
    table = rows(VOICES, 0.005, **GOOD)
    assert "few speakers (train: 99)" in alarm(table, sets(FEW_TRAINING_SPEAKERS - 1))
    for name in ("", "none"):
        config = replace(CONFIG, anonymizer=TwinConfig(name=name))
        assert "one anonymised version alone (train)" in alarm(table, sets(draws=0), config=config)
    told = alarm(table, sets(1, 0), failed=("ge2e", "ge2e"))
    assert told.endswith("; and attackers failed (ge2e).")
    assert told.count("; ") == 2
    assert alarm(rows(VOICES, o=0.4), sets(1, 0)) == ""  # only original speech


def test_omitted_default_attackers_are_given_as_a_reason() -> None:
    usual = default_attackers()
    left = usual[-2:]
    config = replace(CONFIG, attackers=tuple(name for name in CONFIG.attackers if name not in left))
    told = alarm(rows(VOICES[:2], 0.005, **GOOD), sets(), config=config)
    assert told.endswith(
        f"because 2 of the {len(usual)} default attackers were not run ({', '.join(left)})."
    )


def test_omitted_inverting_attackers_are_a_reason_only_if_the_anonymiser_has_an_inverse() -> None:
    kept = tuple(name for name in default_attackers() if not parse_spec(name).inverts)
    config = replace(CONFIG, attackers=kept)
    assert "attackers were not run" in alarm(rows(VOICES[:2], 0.005, **GOOD), sets(), config=config)
    config = replace(config, anonymizer=TwinConfig(name="mine.py:anonymise"))
    text = alarm(rows(VOICES[:2], 0.005, **GOOD), sets(), config=config)
    assert "attackers were not run" not in text


def test_omitting_only_the_property_attacker_is_not_a_reason() -> None:
    config = replace(
        CONFIG, attackers=tuple(name for name in default_attackers() if name != "properties")
    )
    assert "default attackers" not in alarm(rows(VOICES[:2], 0.005, **GOOD), sets(), config=config)


@pytest.mark.parametrize("other", ["properties", "session", "content", "fusion-words"])
def test_attackers_that_ignore_voices_do_not_hide_weak_voice_attackers(other: str) -> None:
    config = replace(CONFIG, attackers=("gmm-svm", "gmm-ubm", "session", "content", "fusion"))
    table = rows(("gmm-svm", "gmm-ubm", other), 0.005, o=0.2, i=0.3, l=0.3, s=0.3)
    for row in table:
        if (row["attacker"], row["scenario"]) == (other, "original"):
            row["eer"] = row["eer"] | {"rocch": 0.01}
    if other == "properties":
        config = CONFIG
    assert "weak on original speech (x_test: 20.0 %)" in alarm(table, sets(), config=config)
    strength = next(checks.attacker_strength(evaluated(table, sets(), config)))
    assert (strength.level, "(gmm-svm) has an EER of 20.0 %" in strength.text) == ("warning", True)


@pytest.mark.parametrize(
    ("kind", "is_warned"),
    [("properties", True), ("session", True), ("content", False), ("gmm-svm", False)],
)
def test_a_verdict_without_voice_attackers_names_their_rate(kind: str, is_warned: bool) -> None:
    """By the kind of the attacker, not by its name: "propertiesnet" is a plug-in."""
    settings = {"mine": {"preset": kind}}
    config = Config(
        attackers=("campplus", "mine", "propertiesnet.py:attack"), attacker_settings=settings
    )
    table = rows(("campplus", "mine", "propertiesnet-attack"), 0.01, o=0.02, i=0.4, l=0.35, s=0.3)
    for row in table:
        if row["attacker"] == "mine":
            row["eer"] = row["eer"] | {"rocch": 0.0}
    findings = list(checks.recognised_without_a_voice(evaluated(table, sets(), config)))
    assert len(findings) == is_warned
    if is_warned:
        (finding,) = findings
        assert finding.check in AGAINST
        assert finding.text.startswith("The strongest attacker (mine) hears no voice: ")
        assert finding.text.endswith("on voices (campplus) has an equal error rate of 30.0 %.")
    original = [row for row in table if row["scenario"] == "original"]
    assert not list(checks.recognised_without_a_voice(evaluated(original, sets(), config)))


def test_attackers_that_adapt_by_settings_are_recognised() -> None:
    entry, name = "onnx:net.onnx", "onnx-net"
    assert attacker_name(entry) == name
    for adapted in ("", "adapted_cosine"):
        settings = {entry: {"adapted": adapted}} if adapted else {}
        config = replace(CONFIG, attackers=(entry,), attacker_settings=settings)
        found = "".join(
            one.text
            for one in checks.overestimated(evaluated(rows((name,), **GOOD), sets(), config))
        )
        assert ("adapts to the trials" in found) != bool(adapted)


@pytest.mark.parametrize("other", ["prosody", "inverting"])
def test_better_or_inverting_attackers_are_not_reported_as_disagreement(other: str) -> None:
    table = rows(("campplus", other), 0.05, **GOOD)
    for row in table:
        row["level"] = (
            "inverting" if other == "inverting" and row["attacker"] == "campplus" else "one-model"
        )
    assert "disagree" not in alarm(table, sets())


# --- recordings -------------------------------------------------------------------------------------------------------


def speech(seed: int, rate: int = 8000) -> np.ndarray:
    """Syllables of random lengths and levels, with random formants."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(scale=rng.choice([0.001, 0.1, 0.3]), size=int(rng.uniform(0.05, 0.3) * rate))
        for _ in range(16)
    ]
    return np.convolve(np.concatenate(parts)[: 2 * rate], rng.normal(size=8), mode="same") / 10


def test_clipped_quiet_and_short_recordings_are_named(tmp_path: Path) -> None:
    signals = {
        "good": speech(0),
        "loud": np.clip(20 * speech(1), -1, 1),
        "faint": speech(2) / 1e4,
        "cut": speech(0)[4000:6000],
    }
    for name, samples in signals.items():
        soundfile.write(tmp_path / f"{name}.wav", samples, 8000)
    twin = DataDir(
        tmp_path, {name: tmp_path / f"{name}.wav" for name in signals}, dict.fromkeys(signals, "s")
    )
    found = [one.text for one in broken_recordings(Sets((), {"x": twin}, {"x": (twin,)}), 1)]
    for word, name in (("clipped", "loud"), ("quiet", "faint"), ("shorter", "cut")):
        assert any(word in text and repr(name) in text for text in found)
    assert not any("'good'" in text for text in found)


def test_noise_silence_and_tones_are_reported(tmp_path: Path) -> None:
    """Whatever else noise is, it does not resemble the original: only a check of speech can tell."""
    rng = np.random.default_rng(0)
    signals = {
        "noise": rng.normal(scale=0.1, size=16000),
        "silence": np.zeros(16000),
        "tone": 0.5 * np.sin(np.arange(16000)),
        "speech": speech(9),
        "faint": speech(8) / 100,
    }
    sides: dict[str, dict[str, Path]] = {"o": {}, "a": {}}
    for number, (name, samples) in enumerate(signals.items()):
        for side, content in {"o": speech(number), "a": samples}.items():
            sides[side][name] = tmp_path / f"{side}-{name}.wav"
            soundfile.write(sides[side][name], content, 8000)
    original, twin = (
        DataDir(tmp_path / side, paths, dict.fromkeys(paths, "s")) for side, paths in sides.items()
    )
    (finding,) = without_speech(Sets((), {"x": original}, {"x": (twin,)}), 1)
    assert (finding.level, finding.check) == ("error", "no speech")
    assert finding.check in FORBIDDEN_BY
    lively = replace(original, recordings=dict.fromkeys("123456", sides["o"]["speech"]))
    mostly = replace(
        twin, recordings=lively.recordings | {"7": sides["a"]["noise"], "8": sides["a"]["tone"]}
    )
    lively.recordings.update({"7": sides["o"]["noise"], "8": sides["o"]["tone"]})
    (of_some,) = without_speech(Sets((), {"x": lively}, {"x": (mostly,)}), 1)
    assert of_some.level == "warning"
    assert finding.check in AGAINST
    assert finding.text.startswith(
        "No speech in 3 recordings of a, as levels hardly vary: noise, silence"
    )
    assert not list(without_speech(Sets((), {"x": original}, {"x": (original,)}), 1))
    # the originals are equally bad
    assert not list(without_speech(Sets((), {"x": twin}, {"x": (twin,)}), 1))


def test_tags_that_name_the_speaker_raise_a_warning(tmp_path: Path) -> None:
    for name, artist in (("a", "anna"), ("b", "nobody")):
        with soundfile.SoundFile(tmp_path / f"{name}.wav", "w", 8000, 1) as file:
            file.artist = artist
            file.write(np.zeros(80))
    twin = DataDir(
        tmp_path, {name: tmp_path / f"{name}.wav" for name in "ab"}, {"a": "anna", "b": "berta"}
    )
    (found,) = file_tags(Sets((), {"x": twin}, {"x": (twin,)}), 1)
    assert f"{tmp_path.name}/a, artist" in found.text
    assert "/b" not in found.text


def test_files_large_enough_to_hide_original_speech_are_noted(tmp_path: Path) -> None:
    sides = dict[str, dict[str, Path]](o={}, a={})
    kinds = {"same": ("PCM_16", 8000), "bits": ("PCM_24", 8000), "rate": ("PCM_16", 16000)}
    for name, (subtype, rate) in kinds.items():
        for side, (kind, at) in {"o": ("PCM_16", 8000), "a": (subtype, rate)}.items():
            path = sides[side][name] = tmp_path / f"{side}-{name}.wav"
            soundfile.write(path, np.zeros(80), at, subtype=kind)
    original, twin = (
        DataDir(tmp_path / side, paths, dict.fromkeys(paths, "s")) for side, paths in sides.items()
    )
    (found,) = hidden_speech(Sets((), {"x": original}, {"x": (twin,)}), 1)
    assert found.level == "note"
    assert "(a/bits, PCM_24 at 8000 Hz, a/rate, PCM_16 at 16000 Hz)" in found.text
    assert not list(hidden_speech(Sets((), {"x": original}, {"x": (original,)}), 1))


def test_changed_durations_are_noted_with_median_and_range(tmp_path: Path) -> None:
    sides = dict[str, dict[str, Path]](o={}, a={})
    for name, change in {"a": 0.5, "b": 1.2, "c": 1.4}.items():
        for side, n_samples in {"o": 8000, "a": round(8000 * change)}.items():
            path = sides[side][name] = tmp_path / f"{side}-{name}.wav"
            soundfile.write(path, np.zeros(n_samples), 8000)
    original, twin = (
        DataDir(tmp_path / side, paths, dict.fromkeys(paths, "s")) for side, paths in sides.items()
    )
    (found,) = changed_durations(Sets((), {"x": original}, {"x": (twin,)}), 1)
    assert found.level == "note"
    assert "in the median by +20 % in a (-50 to +40 %)" in found.text
    assert not list(changed_durations(Sets((), {"x": original}, {"x": (original,)}), 1))


# --- summary and averages ---------------------------------------------------------------------------------------------


def verdict_on(table: list[dict[str, Any]], **more: Any) -> tuple[str, str]:
    config = {"evaluation": {"level": 0.9}, "anonymizer": {"name": ""}}
    found = {
        "format": 1,
        "conditions": table,
        "config": config,
        "anonymiser": {"training_draws": 4},
    }
    return verdict(parse_results(found | more))


def test_the_verdict_begins_with_the_worst_scenario_in_plain_words() -> None:
    """The manager's sentence, the figure with its interval, and in the details whose it is."""
    average = {"dataset": "x", "split": "test", "scenario": "semi-informed", "eer_percent": 10.0}
    said, details = verdict_on(rows(o=0.02, i=0.3, l=0.09, s=0.1), averages=[average])
    assert said.startswith(
        "Asked whether two anonymised recordings are of the same person, the strongest attacker is wrong"
    )
    assert (
        "1 of 11 decisions; a coin toss is wrong in 1 of 2. That is an equal error rate of 9.0 % (90 % interval"
        in said
    )
    assert (
        "7.0 % to 11.0 %) on x_test, 30 enrolled speakers; without anonymisation it is 2.0 %; chance"
        in said
    )
    assert details.startswith(
        "The strongest attacker is a (lazy-informed, which anonymises its enrolment speech)"
    )
    assert "10.0" not in details  # the details give one figure: the page has the others
    doubt = {"directory": "x_trials", "dataset": "x_test", "reason": "words repeat"}
    said = verdict_on(rows(o=0.02, s=0.35), pairings=[doubt])[0]
    assert said.endswith(
        "This holds if each file belongs to its original, which could not be confirmed: words repeat."
    )
    exchanged = doubt | {"state": "confirmed", "share": 0.0, "low": 0.0, "high": 0.1}
    said = verdict_on(rows(o=0.02, s=0.35), pairings=[exchanged])[0]
    assert said.endswith("the verdict allows for this. The lower end may then be 29.2 %.")
    assert verdict_on(rows(o=0.02, s=0.1), simulated=True)[0].startswith("SIMULATED speech")
    assert "trained on 4 versions of it" in verdict_on(rows(o=0.02, s=0.1))[1]
    assert "nothing can be said of its privacy" in verdict_on(rows(o=0.02))[0]
    offsets = [
        row | {"centred": {"value": 0.01, "low": 0.0, "high": 0.02}} for row in rows(o=0.02, s=0.4)
    ]
    said = verdict_on(offsets)[0]
    assert "is wrong in 1 of 100 decisions" in said
    assert (
        "0.0 % to 2.0 %), where it subtracts from the scores of each model their mean (whole-list), on x_test"
        in said
    )
    # one side is original; without errors in 200 target trials, 1 in 1,000 cannot be established
    said = verdict_on(rows(o=0.02, i=0.001, s=0.2))[0]
    assert said.startswith(
        "Asked whether an original and an anonymised recording are of the same person, the strongest"
    )
    # the upper end is 2.1 %
    assert (
        "makes hardly any errors on these trials (the interval allows 1 of 47); a coin toss" in said
    )


def test_averages_weight_corpora_and_report_reached_targets() -> None:
    sets_of = {"libri": "libri_test", "vctk": "vctk_test", "vctk_common": "vctk_test_common"}
    highest = {"libri": 0.04, "vctk": np.nan, "vctk_common": 0.04}
    conditions = [
        Condition(
            dataset=sets_of[corpus],
            gender=sex,
            scenario=scenario,
            attacker="a",
            metrics={"eer": {"rocch": eer / 100}},
            intervals={"eer.rocch": Interval(low=eer / 100 - 0.02, high=eer / 100 + highest[corpus])},
        )
        for scenario in SCENARIOS.values()
        for corpus, sex, eer in (("libri", "f", 10.0), ("libri", "m", 20.0), ("vctk", "f", 30.0), ("vctk", "m", 40.0),
                                 ("vctk_common", "f", 50.0), ("vctk_common", "m", 50.0))
    ]  # fmt: skip
    table = challenge_rows(Table(conditions, summarise(conditions)), Config())
    plain = averages(table, load_config(Config, settings=["challenge.targets=[10, 30, 40]"]))
    assert [(row.dataset, row.scenario, row.eer_percent, row.targets_reached) for row in plain] == [
        (corpus, scenario, mean, reached)
        for scenario in SCENARIOS.values()
        for corpus, mean, reached in (("libri", 15.0, (10.0,)), ("vctk", 35.0, (10.0, 30.0)),
                                      ("vctk_common", 50.0, (10.0, 30.0, 40.0)))
    ]  # fmt: skip
    ends = [end for row in plain[:3] for end in (row.low_percent, row.high_percent)]
    assert ends == pytest.approx([13, 19, 33, np.nan, 48, 54], nan_ok=True)
    weighted = averages(table, load_config(Config, file=CONFIGS / "vpc2022.yaml"))
    by_hand = 0.25 * 10 + 0.25 * 20 + 0.2 * 30 + 0.2 * 40 + 0.05 * 50 + 0.05 * 50
    assert [(row.eer_percent, row.targets_reached) for row in weighted] == [
        (by_hand, (15.0, 20.0))
    ] * 4
    assert averages(table[:1], load_config(Config, file=CONFIGS / "vpc2022.yaml")) == []


def test_averages_of_a_named_attacker_follow_the_challenge() -> None:
    found = rows(o=0.02, i=0.3, l=0.2, s=0.1)
    for one in found:
        one["eer"]["kaldi"] = one["eer"]["rocch"] + 0.015
    one_draw = [f"anonymizer.{name}_draws=1" for name in ("training", "enrolment", "trial")]
    names = ["attackers=[a,b]", "challenge.attacker=b", "challenge.eer=kaldi", *one_draw]
    config = load_config(Config, settings=names)
    conditions = [Condition.from_dict(row) for row in found]
    table = averages(challenge_rows(Table(conditions, summarise(conditions)), config), config)
    expected = {
        one["scenario"]: round(100 * one["eer"]["kaldi"], 3)
        for one in found
        if one["attacker"] == "b"
    }
    assert {row.scenario: row.eer_percent for row in table} == expected
    assert {(row.attacker, row.reading) for row in table} == {("b", "kaldi")}
    # that interval belongs to another definition of the rate
    assert all("low_percent" not in row.to_dict() for row in table)
    strongest = challenge_rows(Table(conditions, summarise(conditions)), Config())
    sides = [("original", "original"), ("original", "anon"), ("anon", "anon"), ("anon", "anon")]
    assert [(row.cells["enrollment"], row.cells["trial"]) for row in strongest] == sides
    assert [row.cells["EER"] for row in strongest] == [2.0, 30.0, 20.0, 10.0]


# --- attackers, sets and anonymisers of a configuration ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("attackers", "served", "expected", "words"),
    [
        (
            "gmm-svm campplus",
            "",
            {"networks": ["campplus"]},
            "Attackers run: 2, 1 of them with a neural",
        ),
        (
            "gmm-svm campplus",
            "gmm-svm",
            {"names": ["gmm-svm"]},
            "Attackers not run, or failed: campplus. ",
        ),
        ("gmm-svm", "", {"networks": []}, "no neural network"),
        (
            "gmm-svm scores:elsewhere",
            "",
            {"of_others": ["scores-elsewhere"]},
            "upper bound of the privacy",
        ),
        # the second fusion is added with the first
        (
            "gmm-svm fusion",
            "gmm-svm fusion fusion-inverted",
            {"undoing": ["fusion-inverted"]},
            "Attackers run: 3, ",
        ),
    ],
)
def test_the_attackers_are_named(
    attackers: str, served: str, expected: dict[str, list[str]], words: str
) -> None:
    config = Config(attackers=tuple(attackers.split()))
    told = attackers_run(config, [Condition(attacker=name) for name in served.split()])
    assert {name: list(getattr(told, name)) for name in expected} == expected
    assert words in told.text
    assert told.explained.keys() == set(told.names)


def test_unavailable_attackers_are_named_unless_attackers_were_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPKVER_WEIGHTS", str(tmp_path))
    monkeypatch.setattr("spkver.extractors.weights.DEFAULT_FOLDER", tmp_path)
    (line,) = describe_absent(Config().with_default_attackers())
    assert "campplus-adapted, campplus-enrolled-plda, campplus-single-test, campplus," in line
    assert line.endswith("get them by: spkver weights campplus")
    assert describe_absent(Config(attackers=("gmm-svm",))) == []


def test_settings_with_hidden_effects_are_logged_at_the_start() -> None:
    named = (
        "mine.py:attack",
        "command:python x.py {scores}",
        "extractor:mine.py:embed",
        "scores:exp",
        "campplus:wheels",
    )
    text = describe_unwatched(load_config(Config, settings=["anonymizer.name=my.py:anonymise"]))
    assert text.startswith("user-supplied code (anonymiser): installed modules")
    text = describe_unwatched(Config(attackers=named))
    assert text.startswith(
        "user-supplied code (attacker mine-attack, attacker command-x, attacker extractor-mine"
    )
    assert "exp" not in text
    assert (
        describe_unwatched(Config(attackers=("gmm-svm", "extractor:campplus", "campplus:wheels")))
        == ""
    )


@pytest.mark.parametrize("name", ["vpc2022", "vpc2024", "vpc2026", "vpc2026_track2", "simulated"])
def test_configurations_of_the_challenges_are_valid(name: str) -> None:
    """What they name is what may be quoted: one attacker of the list, each recording anonymised once."""
    config = load_config(Config, file=CONFIGS / f"{name}.yaml").with_default_attackers()
    expected = {"simulated": tuple(PRESETS), "vpc2022": default_attackers()}.get(
        name, ("campplus", "gmm-svm-cms")
    )
    here = tuple(entry for entry in config.attackers if entry not in absent_attackers())
    assert config.attackers == expected
    chosen = chosen_attackers(replace(config, attackers=here, challenge=ChallengeConfig()))
    assert [spec.name for spec, _ in chosen] == [*here]
    assert set(config.training_sets) <= set(config.datasets)
    if name == "vpc2022":
        assert (config.challenge.attacker, config.anonymizer.level) == ("", "speaker")
    elif name != "simulated":
        assert config.challenge.attacker in config.attackers
        assert config.anonymizer.seeding == ("vpc2024" if name == "vpc2024" else "utterance")


CHALLENGE = (
    *(
        "libri_test_enrolls",
        "libri_test_trials_f",
        "libri_test_trials_m",
        "libri_test_trials_mixed",
        "train-clean-360",
    ),
    *("dsp_test_enrolls", "dsp_test_trials_f", "dsp_train"),
    *("vctk_dev_enrolls", "vctk_dev_trials_m", "vctk_dev_trials_m_common"),
    *("libri_test_trials_f_mcadams", "libri_test_enrolls_mcadams", "IEMOCAP_test"),
)


def test_sets_are_found_by_their_names_with_their_training_sets(tmp_path: Path) -> None:
    data = tmp_path
    for name in CHALLENGE:
        (data / name).mkdir()
    found = {one.name: one for one in find_datasets(data, Config())}
    assert {name: one.training for name, one in found.items()} == {
        "dsp_test": "dsp_train",
        "libri_test": "train-clean-360",
        "vctk_dev": "train-clean-360",
        "vctk_dev_common": "train-clean-360",
    }
    assert found["libri_test"].trials == {"f": "libri_test_trials_f", "m": "libri_test_trials_m"}
    assert found["vctk_dev_common"].enrolls == "vctk_dev_enrolls"
    assert found["vctk_dev_common"].trials == {"m": "vctk_dev_trials_m_common"}
    config = load_config(
        Config, settings=["datasets=[libri_test]", "training_sets.libri_test=dsp_train"]
    )
    assert [(one.name, one.training) for one in find_datasets(data, config)] == [
        ("libri_test", "dsp_train")
    ]
    (one,) = find_datasets(data, load_config(Config, settings=["lists=[mixed]"]))
    assert one.trials == {"all": "libri_test_trials_mixed"}


@pytest.mark.parametrize(
    ("suffix", "settings", "expected"),
    [
        ("_mcadams", [], ("mcadams", "utterance", "utterance")),
        ("_x", [], None),
        (
            "_x",
            ["anonymizer.name=vtln", "anonymizer.level=speaker"],
            ("vtln", "speaker", "utterance"),
        ),
        (
            "_mcadams",
            ["anonymizer.name=none", "anonymizer.training_level=speaker"],
            ("none", "utterance", "speaker"),
        ),
        ("_x", ["anonymizer.command=cp {input} {output}"], ConfigError),
    ],
)
def test_the_anonymiser_is_configured_or_named_by_the_suffix(
    suffix: str, settings: list[str], expected: Any
) -> None:
    config = load_config(Config, settings=settings).anonymizer
    if expected is ConfigError:
        with pytest.raises(ConfigError, match=r"anonymizer\.command"):
            config.named_by(suffix)
    else:
        found = config.named_by(suffix)
        assert (
            found and (found.name, found.of("trials").level, found.of("training").level)
        ) == expected


@pytest.mark.parametrize(
    "name", ["mine/mlp.py:attack", "mlp-attack", "mlp", "mlp.py", "mine/mlp.py", "attack"]
)
def test_settings_accept_the_entry_or_the_short_name_of_an_attacker(name: str) -> None:
    once = {f"{side}_draws": 1 for side in ("training", "enrolment", "trial")}
    config = Config(
        attackers=("gmm-svm", "mine/mlp.py:attack", "onnx:models/ecapa.onnx"),
        attacker_settings={name: {"level": "whole-list"}, "ecapa": {"chains": ["cosine"]}},
        challenge=ChallengeConfig(attacker=name),
        anonymizer=TwinConfig(**once),  # type: ignore[arg-type]
    )
    assert config.challenge.attacker == "mine/mlp.py:attack"
    assert list(config.attacker_settings) == ["mine/mlp.py:attack", "onnx:models/ecapa.onnx"]


@pytest.mark.parametrize(
    ("attackers", "settings", "words"),
    [
        (
            ("a.py:attack", "b.py:attack"),
            {"attack": {}},
            "no such attacker, expected one of all, a.py:attack (a-attack)",
        ),
        # the name of another attacker
        (("campplus-adapted",), {"campplus": {}}, "no such attacker"),
        (("a.py:attack",), {"a": {}, "a-attack": {}}, "another key has its settings"),
    ],
)
def test_ambiguous_and_unknown_attacker_names_are_refused(
    attackers: tuple[str, ...], settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        Config(attackers=attackers, attacker_settings=settings)


@pytest.mark.parametrize("form", ["train_{}", "{}_train"])
def test_track_2_finds_training_sets_named_by_toolkit_or_language(
    form: str, tmp_path: Path
) -> None:
    names = {"en": "english", "de": "german", "es": "spanish", "fr": "french"}
    for short, language in names.items():
        for part in ("dev_enrolls", "dev_trials_mixed", "test_enrolls", "test_trials_mixed"):
            (tmp_path / f"{short}_{part}").mkdir()
        (tmp_path / form.format(language if form.startswith("train") else short)).mkdir()
    config = load_config(Config, file=CONFIGS / "vpc2026_track2.yaml")
    found = {one.name: one.training for one in find_datasets(tmp_path, config)}
    for short, language in names.items():
        expected = form.format(language if form.startswith("train") else short)
        assert found[f"{short}_dev"] == found[f"{short}_test"] == expected


def test_a_missing_training_set_of_a_language_is_named_in_both_forms(tmp_path: Path) -> None:
    for part in ("en_dev_enrolls", "en_dev_trials_mixed"):
        (tmp_path / part).mkdir()
    with pytest.raises(
        DataError, match="looked for en_train and train_english and train-clean-360"
    ):
        find_datasets(tmp_path, Config(datasets=("en_dev",), lists=("mixed",)))
