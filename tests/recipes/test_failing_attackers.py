"""A zoo of attackers that go wrong: all others finish, the report says what is missing, and the status is not 0."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import voiceprivacy_runs as vp
from recipe_runs import refused, results_of
from test_interrupts import hear, processes, wait_for

pytestmark = pytest.mark.whole

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "run.py"
LIMIT = 10.0  # seconds; an attacker that hangs does so for longer
PLACES = "{training} {enrolment} {tested} {trials} {scores} {work}"
HEAD = """
import os, signal, subprocess, sys, time
import numpy as np

def attack(training, seed):
    return score

def score(enrolment, tested, trials):
    """
OWN = (
    "def attack(training, seed):\n"
    "    return lambda enrolment, tested, trials: [float(number) for number, _ in enumerate(trials)]\n"
)
FUNCTIONS = {
    "raises": ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
    "nan": ("return [float('nan')] * len(trials)", "not a number"),
    "few": ("return [0.0]", r"expected \d+ scores, one per trial, got shape \(1,\)"),
    "many": ("return np.zeros(len(trials) + 1)", r"expected \d+ scores, one per trial"),
    "nothing": ("return None", "expected"),
    "hangs": ("time.sleep(3600)", "the time limit"),
    "dies": ("os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
    "leaves": ("sys.exit(3)", "SystemExit: 3"),
    "exits": ("os._exit(7)", "ended with status 7"),
    "forks": ("subprocess.Popen(['sleep', '3600']); time.sleep(3600)", "the time limit"),
    "deaf": ("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)", "the time limit"),
    "half": (
        "if 'm001-3' in str([path.resolve() for path in tested.values()]): 1 / 0\n    return [1.0] * len(trials)",
        "ZeroDivisionError",
    ),
    "ends": (
        "if 'm001-3' in str([path.resolve() for path in tested.values()]): os._exit(7)\n    return [1.0] * len(trials)",
        "ended with status 7",
    ),
}
OF_MEN = ("half", "ends")  # they fail at the lists of men alone
COMMANDS = {
    "com-fails": ("echo no luck >&2; exit 3", "ended with status 3: no luck"),
    "com-hangs": ("echo >> $0.asked; sleep 3600", "the time limit"),
    "com-dies": ("kill -SEGV $$", "ended with status 139"),
    "com-others": ("echo somebody else 1 > $5", r"(\d+) trials of \1 without a score"),
    "com-nan": ("sed 's/$/ nan/' $4 > $5", "(?i)nan"),
    "com-nothing": ("true", "wrote no {scores}"),
}
QUICK = ("raises", "dies", "com-others", "com-hangs")


def zoo(folder, *names):
    """Settings of a run with these attackers and two sane ones."""
    settings = {"attackers": json.dumps(["gmm-ubm", *names, "own"])}
    settings["attacker_settings.own.preset"] = f"{folder}/own.py:attack"
    (folder / "own.py").write_text(OWN)
    for name in names:
        if name in FUNCTIONS:
            (folder / f"{name}.py").write_text(f"{HEAD}{FUNCTIONS[name][0]}\n")
            settings[f"attacker_settings.{name}.preset"] = f"{folder}/{name}.py:attack"
        else:
            (folder / f"{name}.sh").write_text(COMMANDS[name][0] + "\n")
            settings[f"attacker_settings.{name}.preset"] = f"command:sh {folder}/{name}.sh {PLACES}"
    return settings


def run(layout, output, settings, *, page=False):
    return vp.run_recipe(
        layout, output, page=page, evaluation__resamples=0, attackers_time_limit=LIMIT, **settings
    )


def check_told(output, outcome, names):
    """The sane ones have everything, the others are named with their reasons, in every place where one looks."""
    refused(outcome)
    results = results_of(output)
    for name in ("gmm-ubm", "own"):
        served = [
            (row["scenario"], row["gender"])
            for row in vp.rows(results["conditions"], attacker=name)
        ]
        assert sorted(served) == sorted(
            (scenario, sex) for scenario in vp.SCENARIOS for sex in ("f", "m", "all")
        )
    for name in names:
        reason = (FUNCTIONS | COMMANDS)[name][1]
        sexes = "m" if name in OF_MEN else "fm"
        told = vp.rows(results["failures"], attacker=name)
        assert {(one["scenario"], one["gender"]) for one in told} == {
            (one, sex) for one in vp.SCENARIOS for sex in sexes
        }
        assert {row["gender"] for row in vp.rows(results["conditions"], attacker=name)} == (
            {"f"} - set(sexes)
        )
        for failure in told:
            assert re.search(reason, failure["reason"]), failure["reason"]
            assert not (output / failure["scores"]).exists()
        count = f"{4 * len(sexes)} trial lists: "
        (line,) = [
            line for line in outcome.error.splitlines() if line.startswith(f"  {name}: {count}")
        ]
        assert re.search(reason, line)
        assert any(
            one["text"].startswith(f"{name} has no scores for ")
            for one in vp.findings(results, "attackers that failed")
        )
        if name not in OF_MEN:
            assert name not in {one["strongest"] for one in results["summary"]}
    assert f"{len(names)} attackers failed, all others finished" in outcome.error


def test_failing_attackers_are_omitted_and_all_others_finish(layout, tmp_path):
    """Some fail at the lists of men alone, and are kept for the others: one raises, one ends its process."""
    names = (*QUICK, *OF_MEN)
    outcome = run(layout, tmp_path / "out", zoo(tmp_path, *names), page=True)
    check_told(tmp_path / "out", outcome, names)
    # an attacker that has hung once is not called again
    assert len((tmp_path / "com-hangs.sh.asked").read_text()) == 1
    assert (
        "ends learns again: its process ended while it scored"
        in (tmp_path / "out/run.log").read_text()
    )
    for name in ("report.html", f"tables{vp.SUFFIX}.md", f"results{vp.SUFFIX}.csv"):
        assert "gmm-ubm" in (tmp_path / "out" / name).read_text(), name
    assert "dies has no scores for" in (tmp_path / "out/report.html").read_text()
    assert "failed, all others finished" not in outcome.out
    assert f"Report:  {tmp_path}/out/report.html" in outcome.out


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FUNCTIONS, *COMMANDS])
def test_every_kind_of_failure_is_reported(layout, tmp_path, name):
    names = (name, "raises" if name != "raises" else "dies")
    check_told(tmp_path / "out", run(layout, tmp_path / "out", zoo(tmp_path, *names)), names)
    assert not [
        command
        for command in processes().values()
        if str(tmp_path) in command and "pytest" not in command
    ]


@pytest.mark.slow
def test_failed_attackers_are_retried_and_finished_work_is_kept(layout, tmp_path):
    settings, output = zoo(tmp_path, "raises", "few"), tmp_path / "out"
    assert run(layout, output, settings).status == 2
    before = vp.stamps(output.rglob("exp/*/*/*/scores"))
    assert len(before) == 24
    (tmp_path / "raises.py").write_text(OWN)
    refused(run(layout, output, settings), "1 attacker failed")
    (tmp_path / "few.py").write_text(OWN)
    outcome = run(layout, output, settings)
    assert outcome.status == 0, outcome.err
    assert vp.stamps(before) == before
    results = results_of(output)
    assert results["failures"] == []
    assert {one["attacker"] for one in results["conditions"]} == {"gmm-ubm", "own", "raises", "few"}
    assert not (output / "failures.json").exists()


def test_errors_of_the_data_end_the_run_immediately(own, tmp_path):
    """A recording whose end is missing: every built-in attacker needs it."""
    path = own / "tiny_test_trials_f/wav/f001-3.wav"
    path.write_bytes(b"RIFF" + path.read_bytes()[4:60] + b"\0" * 4000)
    refused(run(own, tmp_path / "out", zoo(tmp_path, "raises")), "f001-3")
    assert not (tmp_path / "out/results.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_function_and_its_children_end_with_the_run(layout, tmp_path, number):
    settings, started = zoo(tmp_path, "hangs"), tmp_path / "started"
    (tmp_path / "hangs.py").write_text(
        f"{HEAD}child = subprocess.Popen(['sleep', '3600'])\n"
        f"    open({str(started)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}\\n')\n"
        "    time.sleep(3600)\n"
    )
    arguments = vp.recipe_options(
        layout, tmp_path / "out", **{**settings, "attackers_time_limit": 3600}
    )
    command = [sys.executable, str(RECIPE), *arguments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=hear) as process:
        wait_for(lambda: started.exists() and started.read_text().endswith("\n"), seconds=120)
        process.send_signal(number)
        process.wait(60)
    wait_for(lambda: not {*map(int, started.read_text().split())} & processes().keys())


def test_a_defect_of_a_built_in_attacker_ends_the_run_and_its_traceback_is_logged(
    layout, tmp_path, monkeypatch
):
    def broken(*arguments, **options):
        raise ZeroDivisionError("a defect of ours")

    monkeypatch.setattr("spkver.attackers.chain_choice.train_chain", broken)
    settings = {**zoo(tmp_path), "attackers": '["supervector-cosine", "own"]'}
    with pytest.raises(ZeroDivisionError, match="a defect of ours"):
        run(layout, tmp_path / "out", settings)
    log = (tmp_path / "out/run.log").read_text()
    assert "stopped: a defect of ours\nTraceback" in log
    assert ", in broken" in log
    assert not (tmp_path / "out/results.json").exists()
