"""Code of users: commands that neither outlive this process nor see what is its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spkbase.errors import DataError
from spkbase.own_code import Limits, TimeLimitError, run_command, run_filled, usual_seconds

PATIENCE = 20.0  # seconds; the commands below run longer


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and waits for init to notice does not."""
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def wait_for(condition, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_output_place_and_status(tmp_path):
    with (tmp_path / "out").open("wb") as output:
        run_command("pwd; cat; echo said >&2", output=output, place=tmp_path)  # nothing comes on standard input
    assert (tmp_path / "out").read_text() == f"{tmp_path}\n"
    with pytest.raises(DataError, match="the command ended with status 7: wrong"):
        run_filled("echo {text} >&2; exit 7", {"text": "wrong"})
    with pytest.raises(DataError, match="the command ended with status 137"):
        run_command("kill -KILL $$")


def test_a_command_that_reads_on_is_not_held_up_by_the_guard():
    before = time.monotonic()
    run_command("true | cat")
    assert time.monotonic() - before < PATIENCE


@pytest.mark.parametrize("threads", [True, False], ids=["threads", "processes"])
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_child_of_a_command_outlives_us(tmp_path, ending, threads):
    command = f"echo $$ >> {tmp_path}/shells; sh -c 'echo $$ >> {tmp_path}/children; sleep 600' | cat"
    code = (
        "from functools import partial\nimport click\nfrom spkbase.console.commands import Command\n"
        "from spkbase.own_code import run_command\nfrom spkbase.work import ordered_map\n"
        "@click.command(cls=Command)\ndef main():\n"
        f"    list(ordered_map(run_command, [{command!r}] * 2, jobs=2, threads={threads}))\nmain()"
    )
    run = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=subprocess.PIPE)

    def started() -> list[int]:
        files = [tmp_path / "shells", tmp_path / "children"]
        return [int(line) for file in files if file.exists() for line in file.read_text().split()]

    wait_for(lambda: len(started()) == 4, "two commands, each with a child, should have begun")
    assert all(map(is_alive, started()))
    run.send_signal(ending)
    run.communicate(timeout=PATIENCE)
    assert run.returncode in {signal.SIGINT: (130,), signal.SIGTERM: (143,), signal.SIGKILL: (-9,)}[ending]
    wait_for(lambda: not any(map(is_alive, started())), "the commands should have ended with us")


def test_workers_run_nothing_of_the_folder_that_they_start_in(tmp_path):
    """A file named as a module of Python's own, in the folder of somebody's scores."""
    for module in ("pickle", "random", "struct", "argparse", "multiprocessing", "loky", "cloudpickle"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'it ran')!r}, 'w')\n")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import os\nfrom spkbase.own_code import run_command\nfrom spkbase.work import ordered_map, use_engine\n"
        "with use_engine('loky'):\n    print(*ordered_map(abs, [-1, -2], jobs=2))\n"
        "    print(*ordered_map(run_command, ['exec test -z \"$PYTHONSAFEPATH\"'] * 2, jobs=2))\n"
        "print(os.environ.get('PYTHONSAFEPATH'))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.stderr) == ("1 2\nNone None\nNone\n", "")
    assert not (tmp_path / "it ran").exists()


def test_a_command_is_ended_at_its_limits_with_its_children(tmp_path):
    began = time.monotonic()
    children = tmp_path / "children"
    with pytest.raises(TimeLimitError, match=r"ended after 0.5 s, the time limit"):
        run_command(f"sh -c 'echo $$ >> {children}; sleep 600' & sleep 600", limits=Limits(0.5))
    with pytest.raises(DataError, match="ended after 1 MiB on standard error"):
        run_command(f"yes somebody >&2 & echo $! >> {children}; wait", limits=Limits(said=1 << 20))
    with pytest.raises(DataError, match=r"it wrote more than 1000 bytes to \{scores\}, and was ended"):
        run_command(f"yes > {tmp_path}/scores", limits=Limits(file=tmp_path / "scores", file_bytes=1000))
    # what was written too much before anybody looked is told too
    with pytest.raises(DataError, match="wrote more than"):
        run_command(f"echo much > {tmp_path}/scores", limits=Limits(file=tmp_path / "scores", file_bytes=2))
    assert time.monotonic() - began < PATIENCE
    wait_for(lambda: not any(map(is_alive, map(int, children.read_text().split()))), "the children should have ended")


def test_a_child_that_is_left_behind_does_not_hold_up_a_command_with_limits(tmp_path, monkeypatch):
    monkeypatch.setattr("spkbase.own_code._SECONDS_FOR_CHILDREN", 0.3)
    began = time.monotonic()
    run_command(f"sleep 600 & echo $! > {tmp_path}/child", limits=Limits(600))
    assert time.monotonic() - began < PATIENCE
    wait_for(lambda: not is_alive(int((tmp_path / "child").read_text())), "the child should have ended")


def test_what_a_command_says_is_kept_to_its_end_alone():
    with pytest.raises(DataError) as caught:
        run_command("yes somebody | head -c 30000000 >&2; echo the end >&2; exit 3")
    assert str(caught.value).endswith("the end")
    assert len(str(caught.value)) < 300


def test_the_usual_time_grows_with_the_recordings(tmp_path):
    (tmp_path / "a.wav").write_bytes(bytes(64000))
    assert usual_seconds([tmp_path / "a.wav", tmp_path / "a.wav", tmp_path / "none.wav"]) == 1802
