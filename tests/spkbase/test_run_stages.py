"""Stages that are skipped when nothing has changed, limits of a run, its log, and what `status` says of it."""

import json
import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from command_lines import passes, refused

from spkbase.errors import ConfigError, DataError
from spkbase.files import append_line, write_text
from spkbase.locks import sole_use
from spkbase.runs import REPORT, Ended, Run, start_run
from spkbase.status import format_status, read_status
from spkbase.version import versions


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1 2 3")
    return path


@pytest.fixture
def output(tmp_path, source):
    """A finished run."""
    assert work(tmp_path / "out", source) == ["read", "double", "sum"]
    return tmp_path / "out"


def work(output, source, *, factor=2, offset=0, **options):
    """Read numbers, multiply them, add them up; returns what was made."""
    output.mkdir(exist_ok=True)
    run, made = Run(output, **options), []

    def stage(name, text, **origin):
        def make(path):
            made.append(name)
            write_text(path, text())

        return run.stage(name, f"{name}.txt", make=make, read=Path.read_text, **origin)

    try:
        read = stage(
            "read", source.read_text, sources={"numbers": source}, libraries=["numpy", "soundfile"]
        )
        between = run.stamp("between", inputs=[factor, read.fingerprint])
        numbers = [str(factor * int(one)) for one in read.value.split()]
        double = stage(
            "double", lambda: " ".join(numbers), after=[read, between], libraries=["scipy"]
        )
        total = offset + sum(map(int, double.value.split()))
        last = stage("sum", lambda: str(total), after=[double], inputs=offset)
        assert last.value == str(offset + factor * sum(map(int, source.read_text().split())))
        run.finish()
    except Ended:
        pass
    return made


def test_a_second_run_does_no_work(output, source):
    assert work(output, source) == []
    assert work(output, source, force=True) == ["read", "double", "sum"]


def test_records_that_another_process_wrote_in_between_are_kept(output, source):
    records = output / "stages.json"
    assert work(output, source, factor=3) == ["double", "sum"]
    other = output.with_name("other")
    shutil.copytree(output, other)
    assert work(other, source, factor=5) == ["double", "sum"]
    shutil.copy2(other / "stages.json", records)
    for name in ("double.txt", "sum.txt"):
        shutil.copy2(other / name, output / name)
    assert work(output, source, factor=5) == []
    records.unlink()
    assert work(output, source, factor=5) == ["read", "double", "sum"]


@pytest.mark.parametrize(
    ("change", "made"),
    [({"factor": 3}, ["double", "sum"]), ({"offset": 1}, ["sum"]), ({"factor": 2}, [])],
)
def test_a_change_redoes_only_its_dependents(output, source, change, made):
    assert work(output, source, **change) == made
    assert work(output, source) == made, "back again"


@pytest.mark.parametrize("change", ["size", "time", "path"])
def test_a_changed_source_redoes_everything(output, source, change):
    if change == "size":
        source.write_text("1 2 3 4")
    elif change == "time":
        os.utime(source, ns=(1, 1))
    else:
        source = source.rename(source.with_name("others.txt"))
    assert work(output, source) == ["read", "double", "sum"]


@pytest.mark.parametrize(
    ("library", "made"),
    [("soundfile", ["read", "double", "sum"]), ("scipy", ["double", "sum"]), ("h5py", [])],
)
def test_another_library_version_redoes_its_dependents(output, source, monkeypatch, library, made):
    known = versions()
    for module in ("runs", "status"):
        monkeypatch.setattr(
            f"spkbase.{module}.library_version",
            lambda name: "99" if name == library else known[name],
        )
    status = {
        one["stage"]: one["why"]
        for one in read_status(output)[0]["stages"]
        if one["state"] == "stale"
    }
    assert list(status) == made
    assert all(library in why for why in status.values())
    assert work(output, source) == made


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_text(""), lambda path: path.write_text("9 9")]
)
def test_a_damaged_artefact_is_made_again(output, source, damage):
    damage(output / "double.txt")
    assert read_status(output)[0]["stages"][1]["state"] in ("missing", "damaged")
    assert work(output, source) == ["double"]


def test_verify_detects_changes_that_keep_size_and_time(output):
    path = output / "double.txt"
    status = path.stat()
    path.write_text("9 9 9")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read_status(output)[0]["stages"][1]["state"] == "done"
    assert read_status(output, verify=True)[0]["stages"][1]["state"] == "damaged"


@pytest.mark.parametrize("text", ["{", "[]"])
def test_damaged_records_redo_everything(output, source, text):
    (output / "stages.json").write_text(text, encoding="latin-1")
    assert work(output, source) == ["read", "double", "sum"]
    assert work(output, source) == []


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        ({"until": "double"}, ["double"]),
        ({"until": "sum"}, ["double"]),
        ({"only": "double"}, ["double"]),
        ({"only": "double", "force": True}, ["double"]),
        ({"only": REPORT}, DataError),
        ({"only": "sum"}, DataError),
    ],
)
def test_limits_need_the_results_of_earlier_stages(output, source, limits, made):
    (output / "double.txt").unlink()
    if isinstance(made, list):
        assert work(output, source, **limits) == made
        return
    with pytest.raises(made, match=r"'double'.* is missing"):
        work(output, source, **limits)


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        ({}, ["read", "scores of a", "sum", "scores of b", "report"]),
        ({"until": "scores"}, ["read", "scores of a", "sum", "scores of b"]),
        ({"until": "scores of a"}, ["read", "scores of a"]),
        ({"until": "s"}, ["read", "scores of a", "sum", "scores of b"]),
        ({"until": "report"}, ["read", "scores of a", "sum", "scores of b", "report"]),
        ({"only": "re"}, None),
        ({"only": "rea"}, ["read"]),
        ({"only": "scores"}, None),
        ({"until": "score of"}, None),
    ],
)
def test_limits_match_beginnings_of_names_or_are_refused_before_the_first_stage(
    tmp_path, limits, made
):
    """A beginning stands for all stages that have it; `only` takes one."""
    done = []

    def recipe(run):
        how = {"make": lambda path: (done.append(path.stem), path.touch()), "read": Path.read_text}
        for name in ("read", "scores of a", "sum", "scores of b"):
            run.stage(name, f"{name}.txt", **how)
        run.stage(REPORT, "report.txt", **how)
        run.finish()

    run = Run(tmp_path, **limits)
    if made is None:
        with pytest.raises(
            ConfigError,
            match="is not a stage: expected one of read, scores of a, sum, scores of b, report",
        ):
            run.limited(recipe)
        assert not list(tmp_path.iterdir())
        return
    with suppress(Ended):
        recipe(run.limited(recipe))
    assert done == made


def test_a_run_writes_its_log_and_configuration(tmp_path, caplog):
    output, root = tmp_path / "new" / "out", logging.getLogger()
    before = (root.level, list(root.handlers))
    for _ in range(2):
        with start_run(output, {"a": 1}, jobs=3) as run:
            logging.getLogger("spkver.test").info("hello")
            logging.getLogger("urllib3").info("not ours")
            assert run.work.jobs == 3
    assert (root.level, list(root.handlers)) == before
    text = (output / "run.log").read_text()
    assert (text.count("hello"), text.count("finished"), text.count("not ours")) == (2, 2, 0)
    assert (output / "config.yaml").read_text() == "a: 1\n"
    with pytest.raises(DataError), start_run(output, {}):
        raise DataError("wrong")
    assert "stopped: wrong" in (output / "run.log").read_text()


def test_the_status_of_a_finished_run_is_done(output, source):
    work(output, source, factor=3, until="double")
    told = format_status(read_status(output))
    assert told.startswith("2 of 3 stages done, 1 stale; next: sum")
    assert "depends on 'double', which was made again" in told
    (status,) = read_status(output)
    assert [(one["stage"], one["state"]) for one in status["stages"]] == [
        ("read", "done"),
        ("double", "done"),
        ("sum", "stale"),
    ]
    source.write_text("7")
    assert read_status(output)[0]["stages"][0]["why"] == f"{source} changed"
    assert read_status(output)[0]["stages"][2]["why"] == f"depends on 'double': {source} changed"


def test_status_has_one_line_for_each_step(tmp_path):
    """Steps are done, running or due; a stage that no timed step holds names its own."""
    run = Run(tmp_path / "out", quiet=True)

    def made(name, folder, make=lambda path: write_text(path, "")):
        run.below(folder).stage(name, f"{name}.txt", make=make, read=Path.read_text)

    def shown():
        lines = format_status(
            read_status(run.output), steps=["checks", "training", "utility", "report"]
        ).splitlines()
        return [" ".join(line.split()[:5]) for line in lines[3:]]

    with run.timed("checks"), run.timed("audio"):
        made("audio", "checked")
    with run.timed("training"):
        made("ubm", "first")
        made("ubm", "second")

        def watched(path):
            with sole_use(run.output / "third"):
                lines = shown()
            assert lines == [
                "checks done 1 of 1",
                "training running 2 of 3",
                "utility due",
                "report due",
            ]
            write_text(path, "")

        made("ubm", "third", watched)
    assert shown() == ["checks done 1 of 1", "training done 3 of 3", "utility due", "report due"]
    assert len(format_status(read_status(run.output), every=True).splitlines()) == 1 + 4 * 3
    alone = Run(tmp_path / "alone", quiet=True)
    for name, step in (("models of a", "models"), ("models of b", "models"), ("end of file", "")):
        alone.stage(
            name,
            f"{name}.txt",
            step=step,
            make=lambda path: write_text(path, ""),
            read=Path.read_text,
        )
    steps = [(stage["stage"], stage["step"]) for stage in read_status(alone.output)[0]["stages"]]
    assert steps == [
        ("models of a", "models"),
        ("models of b", "models"),
        ("end of file", "end of file"),
    ]
    assert [
        line.split()[:3] for line in format_status(read_status(alone.output)).splitlines()[3:]
    ] == [
        ["models", "done", "2"],
        ["end", "of", "file"],
    ]


def test_the_status_command_changes_nothing(output, tmp_path):
    before = {path: path.read_bytes() for path in output.iterdir()}
    found = json.loads(passes("status", output, "--json").stdout)
    assert [one["state"] for one in found[0]["stages"]] == ["done"] * 3
    assert passes("status", output, "--verify").stdout.startswith("3 of 3 stages done")
    assert {path: path.read_bytes() for path in output.iterdir()} == before
    assert "3 of 3 stages done" in passes("status", tmp_path).stdout, "runs below a folder are told"
    (tmp_path / "empty").mkdir()
    for name, said in (("none", "no such folder"), ("empty", "no run in this folder")):
        assert said in refused("status", tmp_path / name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_names_the_file_of_finished_results():
    with pytest.raises(DataError, match=r"/dev/full: cannot be written: No space left on device"):
        append_line(Path("/dev/full"), [1, 2])
