"""Every parser under damaged and invented input: what it reads, or one error of ours; nothing else happens.

The daily run takes some inputs of each parser, `make test-all` at least 10,000 and 60 seconds. See `tests.fuzz`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.campaign import Tally
from tests.fuzz.parsers import all_parsers

PARSERS = all_parsers()
NEEDED = {"shorten": "av"}


def told(tallies: list[Tally]) -> str:
    """Faults in words, with the command that tries each again."""
    texts = []
    for tally in tallies:
        for fault in tally.faults:
            command = f"python -m tests.fuzz {tally.parser} --only {fault['number']}"
            texts.append(f"{command}\n{fault['fault']}\n{str(fault['why'])[-1500:]}")
    return "\n\n".join(texts)


@pytest.mark.parametrize("name", PARSERS)
def test_some_inputs_of_each_parser(name: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDED.get(name, "numpy"))
    (tally,) = campaign.run([name], inputs=150, seconds=0, keep=tmp_path)
    assert not tally.faults, told([tally])
    assert tally.inputs >= 150
    assert tally.accepted >= 2  # not only refusals
    assert tally.refused >= 2 or name in ("journal", "anonymisation-record", "run-ledgers")  # which begin anew


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("half", [0, 1])
def test_each_parser_at_length(half: int, tmp_path: Path) -> None:
    names = [name for number, name in enumerate(PARSERS) if number % 2 == half]
    found = campaign.run(names, inputs=10_000, seconds=60, jobs=min(2, os.cpu_count() or 1), keep=tmp_path)
    assert not [tally for tally in found if tally.faults], told(found)
    assert min(tally.inputs for tally in found) >= 10_000
    assert min(tally.seconds for tally in found) >= 60


# --- the watch itself: it must see what it is there for --------------------------------------------------------------

TRAPS: dict[str, tuple[str, str]] = {
    "another error": ("raise KeyError('x')", "error KeyError"),
    "exit": ("raise SystemExit(0)", "error SystemExit"),
    "program": ("import subprocess; subprocess.run(['true'])", "side effect"),
    "shell": ("import os; os.system('true')", "side effect"),
    "file elsewhere": ("open('/dev/shm/../../tmp/spkver-fuzz-stray', 'w').close()", "side effect"),
    "removal elsewhere": ("from pathlib import Path; Path('/nowhere/x').unlink(missing_ok=True)", "side effect"),
    "pickle": ("import pickle; pickle.loads(pickle.dumps(print))", "side effect"),
    "loop": ("while True: pass", "hang"),
    "memory": ("bytearray(1 << 40)", "memory"),
    "hidden memory": (
        "from spkbase.errors import DataError\n"
        "    try: bytearray(1 << 40)\n    except MemoryError as error: raise DataError('x') from error",
        "memory",
    ),
    "filled memory": ("x = b'x' * (700 << 20)", "memory"),
    "crash": ("import ctypes; ctypes.string_at(0)", "crash, status -11"),
}


TRAP = """
from pathlib import Path
from tests.fuzz.parsers import Parser

def spring(path):
    if (path.parent / "number").read_text().strip() != "3":
        return
    {}

PARSER = Parser("trap", "input.txt", lambda folder: [b"a", b"b"], spring)
"""


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Tally]:
    """Makes a parser in which input 3 springs a trap, and tries five inputs."""

    def run(body: str) -> Tally:
        (tmp_path / "trap.py").write_text(TRAP.format(body))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        (tally,) = campaign.run(["trap:PARSER"], inputs=5, seconds=0, keep=tmp_path / "keep")
        return tally

    return run


@pytest.mark.parametrize("kind", TRAPS)
def test_the_watch_sees_it(trapped: Callable[[str], Tally], kind: str, tmp_path: Path) -> None:
    body, fault = TRAPS[kind]
    tally = trapped(body)
    assert [(one["fault"], one["number"]) for one in tally.faults] == [(fault, 3)], told([tally])
    assert tally.inputs >= 5  # it goes on behind it
    kept = list((tmp_path / "keep" / "trap:PARSER-3").iterdir())
    assert {path.name for path in kept} & {"input.txt", "fault-3"}


def test_an_input_depends_on_its_number_alone(tmp_path: Path) -> None:
    from tests.fuzz.worker import input_of

    parser = dataclasses.replace(PARSERS["lists-text"])
    seeds = parser.seeds(tmp_path)
    several = [input_of(parser, "0", number, seeds) for number in range(40)]
    assert input_of(parser, "0", 39, seeds) == several[39]
    assert input_of(parser, "1", 39, seeds) != several[39]
    assert len(set(several)) > 35
