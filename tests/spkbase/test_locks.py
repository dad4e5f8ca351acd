"""One run at a time in a folder, and what a killed run leaves there."""

import subprocess
import sys

import pytest

from spkbase.errors import DataError
from spkbase.files import atomic_path
from spkbase.locks import is_in_use, remove_temporaries, sole_use
from spkbase.runs import start_run

pytest.importorskip("fcntl")

HOLD = """
import pathlib, sys
from spkbase.locks import sole_use
with sole_use(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that is at work in `tmp_path/out`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused(tmp_path, holder):
    out = tmp_path / "out"
    assert is_in_use(out)
    assert not is_in_use(tmp_path)
    for attempt in (lambda: sole_use(out), lambda: start_run(out, {})):
        with pytest.raises(DataError, match="another run is using it"), attempt():
            pass
    assert not list(out.iterdir()), "the second run has touched nothing"


def leave_temporary(path):
    """As SIGKILL does: the name is that of `atomic_path`."""
    with atomic_path(path) as temporary:
        kept = temporary.with_name(temporary.name)
    path.rename(kept)


def test_unfinished_files_are_removed(tmp_path, holder):
    strays = [tmp_path / "a.h5", tmp_path / "deep/er/b", tmp_path / "scores" / f"{'c' * 60}.txt"]
    for path in strays:
        leave_temporary(path)
    (tmp_path / ".features.abcdefgh.spkver-tmp").mkdir()
    (tmp_path / ".features.abcdefgh.spkver-tmp" / "spool").touch()
    leave_temporary(tmp_path / "out" / "of another run")
    names = [
        ".tmp",
        ".bashrc",
        "x.tmp",
        ".x.tmp",
        "thesis/.report.ab12cd_9.tmp.docx",
        ".cache.abcdefgh.tmp/entry",
    ]
    names += [
        ".git/.x.abcdefgh.spkver-tmp",
        ".x.spkver-tmp",
        "x.abcdefgh.spkver-tmp.wav",
        "results.json",
    ]
    theirs = [tmp_path / name for name in names]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert remove_temporaries(tmp_path) == 4
    assert all(path.exists() for path in theirs)
    left = [path for path in tmp_path.rglob(".*-tmp*") if path not in theirs]
    assert [path.parent.name for path in left] == ["out"]
