"""Stages that are skipped when nothing has changed, and the log of a run."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import DataError
from spkbase.files.hdf5 import read_arrays, write_arrays
from spkbase.runs import Depends, Run, Stage, start_run, versions


@dataclass(frozen=True)
class Options:
    factor: float = 2.0


class Counted:
    """Two stages, the second on top of the first; counts how often each was made."""

    def __init__(self, output: Path, *, force: bool = False) -> None:
        self.run = Run(output, force=force)
        self.made: list[str] = []

    def stage(self, name: str, value: float, inputs: object, after: tuple[str, ...] = ()) -> float:
        return self.declare(name, value, inputs, after).value

    def declare(self, name: str, value: float, inputs: object, after: tuple[str, ...] = ()) -> Stage[float]:
        def make(draft):
            self.made.append(name)
            write_arrays(draft.path, {"x": np.array(value)}, attributes=draft.attributes)

        def read(path):
            return float(read_arrays(path, "x")["x"])

        return self.run.stage(name, f"{name}.h5", make=make, read=read, depends=Depends(inputs=inputs, after=after))

    def both(self, first: float = 3.0, options: Options = Options()) -> tuple[float, list[str]]:
        value = self.stage("first", first, first)
        value = self.stage("second", value * options.factor, options, after=("first",))
        return value, self.made


def test_second_run_makes_nothing(tmp_path):
    assert Counted(tmp_path).both() == (6.0, ["first", "second"])
    assert Counted(tmp_path).both() == (6.0, [])


@pytest.mark.parametrize(
    ("change", "value", "made"),
    [
        ({"first": 4.0}, 8.0, ["first", "second"]),
        ({"options": Options(3.0)}, 9.0, ["second"]),
    ],
)
def test_change_makes_what_depends_on_it(tmp_path, change, value, made):
    Counted(tmp_path).both()
    assert Counted(tmp_path).both(**change) == (value, made)
    assert Counted(tmp_path).both() == (6.0, made), "back again"


def test_force_makes_all(tmp_path):
    Counted(tmp_path).both()
    assert Counted(tmp_path, force=True).both() == (6.0, ["first", "second"])


def test_version_counts(tmp_path, monkeypatch):
    Counted(tmp_path).both()
    monkeypatch.setattr("spkbase.runs.run.__version__", "99.0")
    assert Counted(tmp_path).both()[1] == ["first", "second"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b" "),
        lambda path: (path.unlink(), path.mkdir(), path.rmdir()),
    ],
)
def test_damaged_artefact_is_made_again(tmp_path, damage):
    Counted(tmp_path).both()
    damage(tmp_path / "first.h5")
    assert Counted(tmp_path).both() == (6.0, ["first"])


def test_any_flipped_byte_is_noticed(tmp_path, caplog):
    Counted(tmp_path).both()
    data = (tmp_path / "second.h5").read_bytes()
    for place in range(0, len(data), 97):
        (tmp_path / "second.h5").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert Counted(tmp_path).both() == (6.0, ["second"])
    assert "second.h5 is not as it was written" in caplog.text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"first.h5": 3}', "\xff"])
def test_damaged_ledger_makes_all_again(tmp_path, text):
    Counted(tmp_path).both()
    (tmp_path / "stages.json").write_text(text, encoding="latin-1")
    assert Counted(tmp_path).both() == (6.0, ["first", "second"])
    assert Counted(tmp_path).both() == (6.0, [])


def test_artefact_that_cannot_be_read_is_made_again(tmp_path, caplog):
    run, reads = Run(tmp_path), []

    def read(path):
        reads.append(path)
        if len(reads) == 2:
            raise DataError("of an older kind")
        return len(reads)

    for expected in (1, 3):
        found = run.stage("a", "a.txt", make=lambda draft: draft.path.write_text("x"), read=read)
        assert found.value == expected
        run = Run(tmp_path)
    assert "cannot be used and is made again: of an older kind" in caplog.text


def test_failed_stage_leaves_no_entry(tmp_path):
    def fail(draft):
        raise DataError("no")

    with pytest.raises(DataError):
        _ = Run(tmp_path).stage("a", "a.h5", make=fail, read=Path.read_text).value
    assert not (tmp_path / "stages.json").exists()


def test_stage_without_an_artefact_counts_too(tmp_path):
    run = Run(tmp_path)
    stamps = [run.stamp("frames", Depends(inputs={"deltas": deltas}, after=())) for deltas in (1, 2, 1)]
    assert stamps[0] == stamps[2] != stamps[1]
    assert run.stamps["frames"] == stamps[2]


def test_log_and_configuration(tmp_path, caplog):
    output = tmp_path / "new" / "out"
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    for _ in range(2):
        with start_run(output, Options(), jobs=3) as run:
            logging.getLogger("spkver.test").info("hello")
            logging.getLogger("evaluation.test").info("results")
            logging.getLogger("fontTools.subset").info("glyphs")
            logging.getLogger("matplotlib").warning("no such font")
            with run.timed("step"):
                pass
    assert (root.level, root.handlers) == before
    log = (output / "run.log").read_text()
    assert log.count("hello") == 2, "a second run adds to the log"
    assert log.rstrip().endswith("finished")
    assert (log.count("INFO evaluation.test: results"), log.count("WARNING matplotlib: no such font")) == (2, 2)
    assert "glyphs" not in log, "of other libraries only what is wrong"
    assert (output / "config.yaml").read_text() == "factor: 2.0\n"
    assert run.jobs == 3
    assert run.timings["step"] >= 0


@pytest.mark.parametrize(("error", "word"), [(DataError("wrong"), "wrong"), (KeyboardInterrupt(), "KeyboardInterrupt")])
def test_log_says_why_a_run_stopped(tmp_path, error, word):
    with pytest.raises(type(error)), start_run(tmp_path, Options()):
        raise error
    assert f"stopped: {word}" in (tmp_path / "run.log").read_text()


def test_a_full_disk_does_not_flood_the_screen(tmp_path, capsys):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    (tmp_path / "run.log").symlink_to("/dev/full")
    with start_run(tmp_path, Options()):
        logging.getLogger("spkver.test").info("hello")
    assert capsys.readouterr().err == ""


def test_bad_output(tmp_path):
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(DataError, match="output folder cannot be written"), start_run(output, Options()):
            pass
    with pytest.raises(DataError, match="--jobs is 0"), start_run(tmp_path / "out", Options(), jobs=0):
        pass


def test_versions():
    found = versions()
    assert found["numpy"] == np.__version__
    assert json.dumps(found)


def test_stages_that_nothing_wanted_depends_on_are_forgotten(tmp_path):
    """What is given takes the place of what would make it."""
    counted = Counted(tmp_path)
    first = counted.declare("first", 1.0, 0)
    second = counted.declare("second", 2.0, 0, after=("first",))
    counted.declare("third", 3.0, 0, after=("first",))
    counted.run.stamp("frames", Depends(after=["third"]))
    counted.run.keep_only(["second"])
    assert [*counted.run.stages] == ["first", "second"]
    assert counted.run.complete()
    assert (first.value, second.value) == (1.0, 2.0)
    assert counted.made == ["first", "second"]
    plan = json.loads((tmp_path / "stages.json").read_text())
    assert "third" not in json.dumps(plan)
    assert "frames" not in json.dumps(plan)
