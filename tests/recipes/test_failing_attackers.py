"""A zoo of attackers that go wrong: all others finish, the report says what is missing, and the status is not 0."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recipe_runs import Outcome
from test_interrupts import wait_for
from voiceprivacy_runs import SUFFIX, lines_of, recipe_options, run_recipe, write

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "run.py"
LIMIT = 4.0  # seconds; whoever hangs, hangs for long
PLACES = "{training} {enrolment} {tested} {trials} {scores} {work}"

HEAD = """
import os, signal, subprocess, sys, time
import numpy as np
"""
LEARNS = "def attack(training, seed):\n    return score\n"
FUNCTIONS = {
    "raises": ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
    "nan": ("return [float('nan')] * len(trials)", "not a number"),
    "few": ("return [0.0]", r"expected \d+ scores, one a trial, got shape \(1,\)"),
    "many": ("return np.zeros(len(trials) + 1)", r"expected \d+ scores, one a trial"),
    "nothing": ("return None", "expected"),
    "hangs": ("time.sleep(3600)", "the time limit"),
    "dies": ("os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
    "leaves": ("sys.exit(3)", "SystemExit: 3"),
    "exits": ("os._exit(7)", "ended with status 7"),
    "forks": ("subprocess.Popen(['sleep', '3600']); time.sleep(3600)", "the time limit"),
    "deaf": ("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)", "the time limit"),
}
COMMANDS = {
    "com-fails": ("echo no luck >&2; exit 3", "ended with status 3: no luck"),
    "com-hangs": ("sleep 3600", "the time limit"),
    "com-dies": ("kill -SEGV $$", "ended with status 139"),
    "com-others": ("echo somebody else 1 > $5", r"(\d+) trials of \1 without a score"),
    "com-nan": ("sed 's/$/ nan/' $4 > $5", "(?i)nan"),
    "com-nothing": ("true", "wrote no {scores}"),
}
QUICK = ("raises", "dies", "com-others", "com-hangs")
BEFORE = ("original", "ignorant", "lazy-informed", "semi-informed")


def zoo(folder: Path, *names: str) -> dict[str, object]:
    """Settings of a run with these attackers and two sane ones."""
    settings: dict[str, object] = {"attackers": json.dumps(["gmm-ubm", *names, "own"])}
    (folder / "own.py").write_text(
        "def attack(training, seed):\n"
        "    return lambda enrolment, tested, trials: [float(number) for number, _ in enumerate(trials)]\n"
    )
    settings["attacker_settings.own.preset"] = f"{folder}/own.py:attack"
    for name in names:
        if name in FUNCTIONS:
            body = f"def score(enrolment, tested, trials):\n    {FUNCTIONS[name][0]}\n"
            (folder / f"{name}.py").write_text(HEAD + body + LEARNS)
            settings[f"attacker_settings.{name}.preset"] = f"{folder}/{name}.py:attack"
        else:
            (folder / f"{name}.sh").write_text(COMMANDS[name][0] + "\n")
            settings[f"attacker_settings.{name}.preset"] = f"command:sh {folder}/{name}.sh {PLACES}"
    return settings


def run(layout: Path, output: Path, settings: dict[str, object], *arguments: str, page: bool = False) -> Outcome:
    chosen = {"evaluation__replicates": 0, "attackers_time_limit": LIMIT, **settings}
    return run_recipe(layout, output, *arguments, page=page, **chosen)


def check_told(output: Path, outcome: Outcome, names: tuple[str, ...]) -> None:
    """The sane ones have everything, the others are named with their reasons, in every place where one looks."""
    assert outcome.status == 2, outcome.err
    assert "Traceback" not in outcome.err
    results = json.loads((output / "results.json").read_text())
    served = {(one["attacker"], one["scenario"], one["gender"]) for one in results["conditions"]}
    assert served == {
        (name, scenario, sex) for name in ("gmm-ubm", "own") for scenario in BEFORE for sex in ("f", "m", "all")
    }
    for name in names:
        reason = (FUNCTIONS | COMMANDS)[name][1]
        told = [failure for failure in results["failures"] if failure["attacker"] == name]
        assert {(failure["scenario"], failure["gender"]) for failure in told} == {
            (scenario, sex) for scenario in BEFORE for sex in "fm"
        }
        for failure in told:
            assert re.search(reason, failure["reason"]), failure["reason"]
            assert not (output / failure["scores"]).exists()
        (line,) = [line for line in outcome.error.splitlines() if line.startswith(f"  {name}: 8 trial lists: ")]
        assert re.search(reason, line)
        warned = [one["text"] for one in results["sanity"] if one["check"] == "attackers that failed"]
        assert any(text.startswith(f"{name} has no scores for ") for text in warned)
        assert name not in {one["strongest"] for one in results["summary"]}
    assert f"{len(names)} attackers failed, all others finished" in outcome.error


def test_who_fails_is_left_out_and_all_others_finish(layout, tmp_path):
    outcome = run(layout, tmp_path / "out", zoo(tmp_path, *QUICK), page=True)
    check_told(tmp_path / "out", outcome, QUICK)
    for name in ("report.html", f"tables{SUFFIX}.md", f"results{SUFFIX}.csv"):
        assert "gmm-ubm" in (tmp_path / "out" / name).read_text(), name
    assert "dies has no scores for" in (tmp_path / "out/report.html").read_text()
    assert "failed, all others finished" not in outcome.out
    assert f"Report:  {tmp_path}/out/report.html" in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FUNCTIONS, *COMMANDS])
def test_each_of_the_zoo(layout, tmp_path, name):
    began = time.monotonic()
    outcome = run(layout, tmp_path / "out", zoo(tmp_path, name, "raises" if name != "raises" else "dies"))
    check_told(tmp_path / "out", outcome, (name, "raises" if name != "raises" else "dies"))
    assert time.monotonic() - began < 60  # who has hung once is not asked again
    assert not still_at_work(tmp_path)


def still_at_work(folder: Path) -> list[str]:
    """Command lines of processes that have to do with a folder, or that sleep for an hour."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text().split("\0")
        except OSError:
            continue
        if any(str(folder) in word for word in words[:3]) and words[0] != sys.executable:
            found.append(" ".join(words))
    return found


@pytest.mark.slow
def test_what_failed_is_tried_again_and_what_is_done_is_kept(layout, tmp_path):
    settings = zoo(tmp_path, "raises", "few")
    output = tmp_path / "out"
    assert run(layout, output, settings).status == 2
    before = {path: path.stat().st_mtime_ns for path in output.rglob("exp/*/*/*/scores")}
    assert len(before) == 24
    (tmp_path / "raises.py").write_text((tmp_path / "own.py").read_text())
    outcome = run(layout, output, settings)
    assert outcome.status == 2
    assert "1 attacker failed" in outcome.error
    (tmp_path / "few.py").write_text((tmp_path / "own.py").read_text())
    outcome = run(layout, output, settings)
    assert outcome.status == 0, outcome.err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    results = json.loads((output / "results.json").read_text())
    assert results["failures"] == []
    assert {one["attacker"] for one in results["conditions"]} == {"gmm-ubm", "own", "raises", "few"}
    assert not (output / "failures.json").exists()


def test_an_attacker_that_fails_at_one_list_is_kept_for_the_others(layout, tmp_path):
    body = "def score(enrolment, tested, trials):\n    if 'm001-3' in tested: 1 / 0\n    return [1.0] * len(trials)\n"
    settings = zoo(tmp_path, "raises")
    (tmp_path / "raises.py").write_text(body + LEARNS)
    outcome = run(layout, tmp_path / "out", settings)
    assert outcome.status == 2
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert {(one["gender"]) for one in results["conditions"] if one["attacker"] == "raises"} == {"f"}
    assert {failure["gender"] for failure in results["failures"]} == {"m"}


def test_what_is_wrong_with_the_data_ends_the_run_at_once(layout, tmp_path):
    """A recording whose end is missing: every built-in attacker needs it."""
    data = tmp_path / "data"
    shutil.copytree(layout, data)
    path = data / "tiny_test_trials_f/wav/f001-3.wav"
    path.write_bytes(b"RIFF" + path.read_bytes()[4:60] + b"\0" * 4000)
    write(data / "tiny_test_trials_f/wav.scp", lines_of(data / "tiny_test_trials_f/wav.scp"))
    outcome = run(data, tmp_path / "out", zoo(tmp_path, "raises"))
    assert outcome.status == 2
    assert "f001-3" in outcome.error
    assert not (tmp_path / "out/results.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_function_and_its_children_end_with_the_run(layout, tmp_path, number):
    settings = zoo(tmp_path, "hangs")
    started = tmp_path / "started"
    body = (
        "def score(enrolment, tested, trials):\n"
        "    child = subprocess.Popen(['sleep', '3600'])\n"
        f"    open({str(started)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}\\n')\n"
        "    time.sleep(3600)\n"
    )
    (tmp_path / "hangs.py").write_text(HEAD + body + LEARNS)
    arguments = recipe_options(layout, tmp_path / "out", **{**settings, "attackers_time_limit": 3600})
    with subprocess.Popen(
        [sys.executable, str(RECIPE), *arguments], stderr=subprocess.DEVNULL, preexec_fn=hear
    ) as process:
        wait_for(lambda: started.exists() and started.read_text().endswith("\n"), seconds=120)
        process.send_signal(number)
        process.wait(60)
    wait_for(lambda: not any(is_alive(int(child)) for child in started.read_text().split()))


def hear() -> None:
    """Let Ctrl-C be heard, which jobs in the background ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
