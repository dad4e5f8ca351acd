"""Stages are lazy, are redone exactly where something changed, and keep finished chunks through a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from stage_chains import Chain, complete

from spkbase.errors import ConfigError, DataError
from spkbase.files.atomic import write_text
from spkbase.runs import Depends, Draft, Given, Run, ledger, partial_folder

ALL = ["read", "double", "sum"]


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "numbers.txt"
    path.write_text("1 2 3")
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    return tmp_path / "out"


def test_declaring_runs_nothing(tmp_path, source):
    chain = Chain(Run(tmp_path), source)
    assert chain.made == []
    assert not (tmp_path / "stages.json").exists()
    assert chain.last.value == "12"
    assert chain.made == ["sum", "double", "read"], "a stage asks for those before it"


def test_values_are_read_once(tmp_path, source):
    chain = Chain(Run(tmp_path), source)
    assert chain.last.value == "12"
    chain.last.path.write_text("13")
    assert chain.last.value == "12"


def test_completed_in_order_and_then_nothing(output, source):
    assert complete(output, source) == ALL
    assert complete(output, source) == []


def test_what_is_not_there_is_made_alone(output, source):
    complete(output, source)
    (output / "double.txt").unlink()
    assert complete(output, source) == ["double"]


@pytest.mark.parametrize(
    ("library", "expected"),
    [("soundfile", ALL), ("numpy", ALL), ("scipy", ["double", "sum"]), ("scikit-learn", [])],
)
def test_another_library_makes_what_depends_on_it(output, source, monkeypatch, library, expected):
    complete(output, source)
    real = ledger.library_version
    monkeypatch.setattr("spkbase.runs.run.library_version", lambda name: "99" if name == library else real(name))
    assert complete(output, source) == expected
    assert complete(output, source) == []


def test_changed_configuration_of_a_step_without_artefact(output, source):
    complete(output, source)
    assert complete(output, source, factor=3) == ["double", "sum"]


@pytest.mark.parametrize("change", ["size", "time", "path"])
def test_changed_source_makes_all(output, source, change):
    complete(output, source)
    if change == "size":
        source.write_text("1 2 30")
    elif change == "time":
        os.utime(source, ns=(1, 1))
    else:
        source = source.rename(source.with_name("others.txt"))
    assert complete(output, source) == ALL


def test_device_counts_where_it_is_used(tmp_path):
    from array_api_compat import numpy

    from spkbase.devices import Device

    def stamps(device: Device | None) -> list[str]:
        run = Run(tmp_path, device=device)
        return [
            run.stage(name, name, make=print, read=Path.read_text, depends=Depends(on_device=used)).fingerprint
            for name, used in (("a", False), ("b", True))
        ]

    plain, other = stamps(None), stamps(Device("torch", numpy))
    assert plain[0] == other[0]
    assert plain[1] != other[1]


def test_given_values_stand_for_stages(tmp_path):
    run = Run(tmp_path)
    stages = [
        run.stage("a", "a", make=print, read=Path.read_text, depends=Depends(after=[Given("model", digest, 3)]))
        for digest in "xyx"
    ]
    assert stages[0].fingerprint == stages[2].fingerprint != stages[1].fingerprint


def test_what_is_held_is_let_go_when_nobody_needs_it(output, source):
    output.mkdir()
    chain, at = Chain(Run(output), source), []
    chain.run.hold("between", lambda: at.append(list(chain.made)))
    assert chain.run.complete()
    assert at == [["read", "double"]]


def test_force_makes_each_stage_once(output, source):
    complete(output, source)
    assert complete(output, source, force=True) == ALL


# --- some stages alone -----------------------------------------------------------------------------------------------


def test_until_stops_after_a_stage(output, source):
    assert complete(output, source, until="double") == ["read", "double"]
    assert not (output / "sum.txt").exists()
    assert complete(output, source, until="report") == ["sum"]


def test_only_does_a_stage_alone(output, source):
    complete(output, source, until="double")
    assert complete(output, source, only="sum") == ["sum"]
    assert complete(output, source, only="sum") == []
    assert complete(output, source, only="report") == []


def test_force_and_only_redo_one(output, source):
    complete(output, source)
    assert complete(output, source, only="double", force=True) == ["double"]
    assert complete(output, source, until="double", force=True) == ["read", "double"]


@pytest.mark.parametrize(
    ("spoil", "first", "state"),
    [
        (lambda output, source: (output / "read.txt").unlink(), "read", "missing"),
        (lambda output, source: (output / "double.txt").write_text("7"), "double", "damaged"),
        (lambda output, source: source.write_text("4"), "read", "stale"),
    ],
)
def test_only_wants_what_comes_before(output, source, spoil, first, state):
    complete(output, source)
    spoil(output, source)
    for only in ("sum", "report"):
        with pytest.raises(DataError, match=f"'{only}' needs stage '{first}', which is {state}") as error:
            complete(output, source, only=only)
        assert f"--until '{first}'" in str(error.value)
    assert complete(output, source, only="read") == (["read"] if first == "read" else []), "it needs nothing"


@pytest.mark.parametrize("limit", ["only", "until"])
def test_unknown_stage_lists_the_names(output, source, limit):
    with pytest.raises(ConfigError, match=f"--{limit} 'som' is no stage: expected one of read, double, sum, report"):
        complete(output, source, **{limit: "som"})


# --- finished chunks -------------------------------------------------------------------------------------------------


def counting(run: Run, *, until: int, inputs: object = 1, name: str = "count"):
    """A stage that appends to a file of chunks up to a number, and fails before the tenth."""
    taken = []

    def make(draft: Draft) -> None:
        chunks = draft.folder / "chunks.txt"
        done = chunks.read_text().split() if chunks.exists() else []
        taken.append(len(done))
        for number in range(len(done), 10):
            if number == until:
                raise KeyboardInterrupt
            with chunks.open("a") as file:
                file.write(f"{number} ")
        write_text(draft.path, chunks.read_text())

    return run.stage(name, f"deep/{name}.txt", make=make, read=Path.read_text, depends=Depends(inputs=inputs)), taken


def test_finished_chunks_outlive_a_crash_and_then_go(tmp_path):
    for until in (3, 6):
        stage, _ = counting(Run(tmp_path), until=until)
        with pytest.raises(KeyboardInterrupt):
            _ = stage.value
        assert partial_folder(tmp_path, "deep/count.txt").is_dir()
    stage, taken = counting(Run(tmp_path), until=99)
    assert stage.value.split() == [str(number) for number in range(10)]
    assert taken == [6]
    assert not (tmp_path / "partial").exists()


@pytest.mark.parametrize("change", [{"inputs": 2}, {"force": True}])
def test_chunks_of_something_else_are_not_taken_up(tmp_path, change):
    stage, _ = counting(Run(tmp_path), until=3)
    with pytest.raises(KeyboardInterrupt):
        _ = stage.value
    stage, taken = counting(Run(tmp_path, force="force" in change), until=99, inputs=change.get("inputs", 1))
    assert len(stage.value.split()) == 10
    assert taken == [0]


def test_chunks_that_no_stage_wants_go_at_the_end(tmp_path):
    stage, _ = counting(Run(tmp_path), until=3, name="old")
    with pytest.raises(KeyboardInterrupt):
        _ = stage.value
    foreign = tmp_path / "partial" / "mine"
    foreign.mkdir()
    run = Run(tmp_path)
    counting(run, until=99)
    assert run.complete()
    assert [path.name for path in (tmp_path / "partial").iterdir()] == ["mine"], "what is not ours stays"


def test_what_a_link_in_the_place_of_the_chunks_leads_to_stays(tmp_path):
    """It is somebody else's."""
    (tmp_path / "partial").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "note.txt").write_text("keep")
    partial_folder(tmp_path, "deep/count.txt").symlink_to(tmp_path / "theirs")
    stage, _ = counting(Run(tmp_path), until=99)
    assert len(stage.value.split()) == 10
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["note.txt"]
    assert not (tmp_path / "partial").exists()


def test_killed_before_the_checksum_was_written(tmp_path, monkeypatch):
    """The artefact is whole then: it is taken up, unless somebody has touched it."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for touch, made in ((False, []), (True, [10])):
        folder = tmp_path / str(touch)
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr("spkbase.runs.stages.file_digest", die)
            stage, _ = counting(Run(folder), until=99)
            with pytest.raises(KeyboardInterrupt):
                _ = stage.value
        if touch:
            (folder / "deep/count.txt").write_text("0")
        stage, taken = counting(Run(folder), until=99)
        assert len(stage.value.split()) == 10
        assert taken == made
        assert counting(Run(folder), until=99)[0].state() == "done"


def test_two_runs_do_not_share_the_chunks(tmp_path):
    def make(draft: Draft) -> None:
        _ = draft.folder
        _ = counting(Run(tmp_path), until=99)[0].value

    stage, _ = counting(Run(tmp_path), until=99)
    stage._make = make
    with pytest.raises(DataError, match="another run is at work in it"):
        _ = stage.value


def test_ledger_is_whole_or_absent(output, source):
    """Killed while it writes: the old ledger stands."""
    complete(output, source)
    before = (output / "stages.json").read_text()
    code = (
        "import os, pathlib, sys; from spkbase.runs import Ledger\n"
        "pathlib.Path.replace = lambda *_: os._exit(9)\n"
        "Ledger(pathlib.Path(sys.argv[1])).note('x', {}, [])"
    )
    assert subprocess.run([sys.executable, "-c", code, str(output)], check=False).returncode == 9
    assert (output / "stages.json").read_text() == before
    assert complete(output, source) == []


@pytest.mark.parametrize("place", range(0, 4000, 61))
def test_a_flipped_byte_in_the_ledger_is_never_believed(output, source, place):
    complete(output, source)
    data = bytearray((output / "stages.json").read_bytes())
    data[place % len(data)] ^= 1
    (output / "stages.json").write_bytes(data)
    complete(output, source)  # it checks the value
    assert complete(output, source) == []


def test_the_ledger_says_what_was_done(output, source):
    complete(output, source)
    record = json.loads((output / "stages.json").read_text())
    entry = record["artefacts"]["double.txt"]
    assert entry["stage"] == "double"
    assert len(entry["fingerprint"]) == len(entry["sha256"]["double.txt"]) == 64
    assert entry["seconds"] >= 0
    assert set(entry["origin"]["libraries"]) == {"scipy"}
    assert [step["stage"] for step in record["plan"]] == ["read", "between", "double", "sum"]
    assert json.loads((output / "sources.json").read_text())["read"][0][:2] == [str(source), 5]
