"""Standard streams that the caller closed, as some schedulers do, are no reason for a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import click
from spkbase.console.commands import Command
from spkbase.work import ordered_map, use_engine

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


@pytest.mark.parametrize(("encoding", "expected"), [("latin-1", b"\xfc \\u2192\n"), ("utf-8", "ü →\n".encode())])
def test_letters_that_a_terminal_lacks(encoding, expected):
    code = (
        "import click\nfrom spkbase.console.commands import Command\n"
        "@click.command(cls=Command)\ndef main():\n    click.echo('\\u00fc \\u2192')\nmain()"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60)
    assert (run.stdout, run.returncode) == (expected, 0)
