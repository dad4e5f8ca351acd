"""What `spkver status` tells of an output folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from stage_chains import Chain, complete

from spkbase.errors import DataError
from spkbase.runs import Draft, Journal, Run, format_status, read_status, sole_use
from spkver.cli import main


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "numbers.txt"
    path.write_text("1 2 3")
    return path


@pytest.fixture
def output(tmp_path, source) -> Path:
    complete(tmp_path / "out", source)
    return tmp_path / "out"


def states(output: Path) -> list[str]:
    (found,) = read_status(output)
    return [stage.state for stage in found.stages]


def reasons(output: Path) -> list[str]:
    (found,) = read_status(output)
    return [stage.why for stage in found.stages]


def test_done(output):
    (found,) = read_status(output)
    assert [stage.stage for stage in found.stages] == ["read", "double", "sum"]
    assert states(output) == ["done"] * 3
    assert all(stage.seconds is not None for stage in found.stages)
    assert not found.in_use
    assert found.others == []


def test_missing_and_damaged(output):
    (output / "read.txt").unlink()
    (output / "double.txt").write_text("7")
    assert states(output) == ["missing", "damaged", "done"]
    assert reasons(output)[:2] == ["read.txt is gone", "double.txt is not as it was written"]


def test_planned_but_not_made(tmp_path, source):
    complete(tmp_path / "out", source, until="double")
    assert states(tmp_path / "out") == ["done", "done", "missing"]


def test_changed_configuration(output, source):
    complete(output, source, factor=3, until="read")
    assert states(output) == ["done", "stale", "stale"]
    assert reasons(output)[1:] == ["depends on 'between', which changed", "depends on 'double', which changed"]


def test_changed_audio_names_the_file(output, source):
    source.write_text("1 2 30")
    assert states(output) == ["stale"] * 3
    assert reasons(output)[0] == f"{source} changed"
    assert reasons(output)[2].startswith("depends on 'double': ")
    source.unlink()
    assert states(output) == ["stale"] * 3


def test_changed_library(output, monkeypatch):
    monkeypatch.setattr("spkbase.runs.status.library_version", lambda name: "99" if name == "scipy" else "1")
    (found,) = read_status(output)
    assert found.stages[0].why.startswith("numpy ")
    monkeypatch.undo()
    from spkbase.runs import library_version

    monkeypatch.setattr(
        "spkbase.runs.status.library_version", lambda name: "99" if name == "scipy" else library_version(name)
    )
    assert states(output) == ["done", "stale", "stale"]
    assert reasons(output)[1] == f"scipy {library_version('scipy')} -> 99"


def test_another_version_of_the_package(output, monkeypatch):
    monkeypatch.setattr("spkbase.runs.status.__version__", "99.0")
    assert states(output) == ["stale"] * 3
    assert reasons(output)[0].endswith(" -> 99.0")


def test_finished_chunks_are_counted(tmp_path):
    def make(draft: Draft) -> None:
        with Journal(draft.folder / "chunks.journal", draft.fingerprint, total=402) as journal:
            for number in range(37):
                journal.append({}, number)
        raise KeyboardInterrupt

    run = Run(tmp_path)
    run.stage("features", "features.h5", make=make, read=Path.read_text)
    with pytest.raises(KeyboardInterrupt):
        run.complete()
    assert states(tmp_path) == ["in progress"]
    assert reasons(tmp_path) == ["37 of 402 chunks"]
    (found,) = read_status(tmp_path)
    assert found.stages[0].chunks == (37, 402)


def test_artefacts_of_earlier_configurations(output, source):
    run = Run(output)
    run.stage("other", "other.txt", make=lambda draft: draft.path.write_text(""), read=Path.read_text)
    run.complete()
    (found,) = read_status(output)
    assert found.others == ["double.txt", "read.txt", "sum.txt"]


def test_folders_below_are_sections(output, source):
    below = output / "work" / "libri-0123"
    below.mkdir(parents=True)
    assert Chain(Run(below), source).last.value == "12"
    found = read_status(output)
    assert [one.folder for one in found] == [output, below]
    assert "libri-0123" in format_status(found)
    assert [stage.state for stage in found[1].stages] == ["done"] * 3


def test_a_run_at_work_is_told(output):
    with sole_use(output):
        (found,) = read_status(output)
        assert found.in_use
        assert "a run is at work in it" in format_status([found])


@pytest.mark.parametrize("text", ["", "[]", '{"plan": 3}', '{"plan": [3, {"stage": "x"}, {"origin": {"a": 1}}]}'])
def test_damaged_ledger(output, text):
    (output / "stages.json").write_text(text)
    (output / "sources.json").write_text(text)
    (found,) = read_status(output)
    assert found.stages == []


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("sha256", ["x"]), ("sha256", {"../double.txt": 3}), ("seconds", "long"), ("fingerprint", 5),
        ("stage", 5), ("libraries", [1]), ("libraries", {"": "1"}), ("after", {"read": 5}), ("device", ["cuda"]),
    ],
)  # fmt: skip
def test_records_of_another_form_are_no_crash(output, source, part, value):
    record = json.loads((output / "stages.json").read_text())
    for entry in [*record["artefacts"].values(), *record["plan"]]:
        (entry["origin"] if part in entry["origin"] else entry)[part] = value
    (output / "stages.json").write_text(json.dumps(record))
    assert CliRunner().invoke(main, ["status", str(output)]).exit_code == 0
    complete(output, source)
    assert states(output) == ["done"] * 3


def test_sources_that_no_file_can_be_named(output):
    (output / "sources.json").write_text(json.dumps({"read": [["a\0b", 1, 2]]}))
    assert states(output) == ["stale"] * 3


def test_the_command(output, source):
    result = CliRunner().invoke(main, ["status", str(output)])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[:3] == ["3 of 3 stages done", "", f"{output}: no run is at work in it"]
    assert [line.split()[:2] for line in lines[3:]] == [["read", "done"], ["double", "done"], ["sum", "done"]]
    source.write_text("4")
    result = CliRunner().invoke(main, ["status", "--json", str(output)])
    (record,) = json.loads(result.output)
    assert record["stages"][0]["state"] == "stale"
    assert record["folder"] == str(output)


def test_no_run_has_been_here(tmp_path):
    with pytest.raises(DataError, match="no run has been here"):
        read_status(tmp_path)
    result = CliRunner().invoke(main, ["status", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "no such folder" in result.output


def test_it_changes_nothing(output):
    def contents() -> dict[Path, tuple[int, bytes]]:
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in output.rglob("*") if path.is_file()}

    before = contents()
    read_status(output)
    assert contents() == before
