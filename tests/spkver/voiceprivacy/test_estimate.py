"""The estimate of an evaluation, from counts and durations alone: no recording exists here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from silent_sets import sets_of

from spkbase.errors import DataError
from spkver.attackers import parse_spec
from spkver.voiceprivacy.estimate import Estimate, check_disk, estimate, extraction_rate
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config, EvaluationConfig, TwinConfig

RATE = 16_000
BYTES = 2 * RATE  # bytes of one second in a WAV file
# Seconds of speech in each data directory
DURATIONS = {"train": 3600.0, "set_enrolls": 600.0, "set_trials_f": 300.0, "set_trials_m": 300.0}
NO_INTERVALS = EvaluationConfig(resamples=0)


def headers_of(sets: Sets, factor: float = 1.0) -> dict[str, list[tuple[int, int, float]]]:
    headers = {}
    for name, directory in sets.original.items():
        headers[name] = [(RATE, len(directory.recordings), factor * DURATIONS[name])]
    return headers


def estimated(
    folder: Path,
    *attackers: str,
    anonymizer: TwinConfig | None = None,
    factor: float = 1.0,
    n_workers: int = 1,
    takes: int = 2,
    **options: Any,
) -> Estimate:
    # only the features of the attackers are used
    sets = sets_of(folder, *(name for name in attackers if name.startswith("gmm")), takes=takes)
    config = Config(attackers=attackers, evaluation=NO_INTERVALS)
    parts = {"train": len(sets.original["train"].recordings)}
    headers = headers_of(sets, factor)
    return estimate(config, sets, headers, anonymizer, parts, n_workers, **options)


def test_more_speech_takes_proportionally_longer(tmp_path: Path) -> None:
    first, second, third = (
        estimated(tmp_path, "properties", factor=factor).seconds for factor in (1.0, 2.0, 3.0)
    )
    assert second > first
    assert third - second == pytest.approx(second - first)


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ("gmm-svm", "campplus"),
        ("prosody", "campplus-adapted"),
        ("campplus-adapted", "campplus-adapted-inverted"),
        ("supervector-adapted", "supervector-adapted-inverted"),
        ("own.py:Attacker", "campplus"),
    ],
)
def test_progress_of_the_extraction_knows_which_speech_takes_longer(
    shorter: str, longer: str
) -> None:
    assert 0 < extraction_rate(parse_spec(shorter)) < extraction_rate(parse_spec(longer))


def test_more_workers_share_the_time_but_not_the_memory(tmp_path: Path) -> None:
    one = estimated(tmp_path, "properties")
    four = estimated(tmp_path, "properties", n_workers=4)
    assert four.seconds == pytest.approx(one.seconds / 4)
    assert four.memory > one.memory
    assert four.disk == one.disk


def test_missing_versions_take_disk(tmp_path: Path) -> None:
    """One version of each directory is there; the anonymiser makes 2, 4 and 3 in all."""
    twins = TwinConfig(name="mcadams")
    expected = 1 * DURATIONS["train"] + 3 * DURATIONS["set_enrolls"]
    expected += 2 * (DURATIONS["set_trials_f"] + DURATIONS["set_trials_m"])
    assert estimated(tmp_path, "properties").disk == 0
    assert estimated(tmp_path, "properties", anonymizer=twins).disk == BYTES * expected


def test_features_of_attackers_take_disk(tmp_path: Path) -> None:
    """100 frames a second of 24 cepstra, the log-energy and the decision of the detector, in 4 bytes each."""
    seconds = 2 * sum(DURATIONS.values())  # original speech and one anonymised version
    assert estimated(tmp_path, "gmm-ubm").disk == 4 * 100 * 26 * seconds
    assert estimated(tmp_path, "gmm-ubm", "gmm-svm").disk == 4 * 100 * 26 * seconds


def test_inverted_speech_and_pieces_take_disk(tmp_path: Path) -> None:
    """Enrolment and trials are inverted; training sets with one recording for each speaker are cut in two."""
    plain = estimated(tmp_path, "gmm-ubm").disk
    tested = DURATIONS["set_enrolls"] + DURATIONS["set_trials_f"] + DURATIONS["set_trials_m"]
    inverting = estimated(tmp_path, "gmm-ubm", "gmm-ubm-inverted").disk
    assert inverting - plain == BYTES * tested
    cut = estimated(tmp_path, "gmm-ubm", takes=1).disk
    assert cut - plain == BYTES * 2 * DURATIONS["train"]


def test_attackers_that_share_vectors_pay_for_them_once(tmp_path: Path) -> None:
    alone = estimated(tmp_path, "ge2e").seconds
    both = estimated(tmp_path, "ge2e", "ge2e-adapted").seconds
    other = estimated(tmp_path, "ge2e", "campplus").seconds
    assert alone < both < other


def test_networks_need_more_memory(tmp_path: Path) -> None:
    assert estimated(tmp_path, "ge2e").memory > estimated(tmp_path, "properties").memory + 5e8


def test_recognition_takes_time(tmp_path: Path) -> None:
    silent = estimated(tmp_path, "properties")
    heard = estimated(tmp_path, "properties", n_heard=100)
    assert heard.seconds - silent.seconds == pytest.approx(60)


def test_user_code_is_named_but_not_estimated(tmp_path: Path) -> None:
    scores = tmp_path / "asv_orig/set_enrolls-set_trials_f/scores"
    scores.parent.mkdir(parents=True)
    scores.touch()
    name = f"scores-{tmp_path.name}"
    twins = TwinConfig(name="command", command="true {input} {output}")
    whole = estimated(tmp_path, "properties", f"scores:{tmp_path}", anonymizer=twins)
    assert whole.unknown == [name, "anonymiser command"]
    assert str(whole).endswith(f"; not known: {name}, anonymiser command")


@pytest.mark.parametrize(
    ("seconds", "memory", "disk", "n_workers", "expected"),
    [
        (0.2, 1e6, 0, 1, "about 1 s on 1 core, 1 MB of memory and 0 MB of disk if all is new"),
        (99, 1e9, 2.5e9, 2, "about 99 s on 2 cores, 1.0 GB of memory and 2.5 GB of disk if all"),
        (125, 5e8, 9e8, 2, "about 2 min on 2 cores, 500 MB of memory and 900 MB of disk if all"),
        (7200, 5e8, 9e8, 2, "about 2.0 h on 2 cores, 500 MB of memory and 900 MB of disk if all"),
    ],
)
def test_an_estimate_is_one_line_with_suitable_units(
    seconds: float, memory: float, disk: float, n_workers: int, expected: str
) -> None:
    assert str(Estimate(seconds, memory, disk, n_workers, [])).startswith(expected)


def test_a_full_disk_is_an_error_unless_earlier_runs_have_written_the_files(tmp_path: Path) -> None:
    needed = Estimate(1, 1, shutil.disk_usage(tmp_path).free + 1e12, 1, [])
    with pytest.raises(DataError, match=r"of disk, .* are free") as error:
        check_disk(needed, tmp_path, ("data", "features"))
    assert error.value.file == tmp_path
    assert "--output" in str(error.value)
    (tmp_path / "data").mkdir()
    with (tmp_path / "data/large.wav").open("wb") as file:
        file.truncate(2 * 10**12)  # a sparse file, which takes no space
    check_disk(needed, tmp_path, ("data", "features"))
