"""Standard streams that the caller closed, as some schedulers do, are no reason for a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import click
from spkbase.console.commands import Command
from spkbase.work.maps import ordered_map, use_engine

@click.command(cls=Command)
@click.argument("path")
def main(path):
    with use_engine("loky"):
        found = list(ordered_map(abs, [-1, -2], jobs=2))
    with open(path, "w") as file:  # gets no number of a standard stream
        click.echo("said")
        click.echo("warned", err=True)
        file.write(f"{found} {file.fileno() > 2}")

main()
"""


@pytest.mark.parametrize("closed", ["0", "1", "2", "012"])
def test_commands_work_without(tmp_path, closed):
    closing = " ".join(f"{number}>&-" for number in closed)
    command = ["sh", "-c", f'"$@" {closing}', "sh", sys.executable, "-c", CODE, tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out").read_text() == "[1, 2] True"
    assert (run.stdout, run.stderr) == ("" if "1" in closed else "said\n", "" if "2" in closed else "warned\n")
