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
from spkbase.own_code import run_command, run_filled

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
        "from spkbase.own_code import run_command\nfrom spkbase.work.maps import ordered_map\n"
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
        "import os\nfrom spkbase.own_code import run_command\nfrom spkbase.work.maps import ordered_map, use_engine\n"
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
