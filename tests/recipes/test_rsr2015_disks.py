"""A disk that is full and one that is read-only: real ones, file systems of their own in memory."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recipe_runs import COMMANDS, Outcome, datasets, leftovers, options

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "rsr2015" / "svm_gmm.py"
MOUNT = ["unshare", "--mount", "--map-root-user", "sh", "-ec"]


def can_mount() -> bool:
    """Whether this user may mount a file system that only its own processes see."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run([*MOUNT, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False)
    return done.returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="may not mount file systems")


@pytest.fixture(scope="module")
def undisturbed(tiny, tmp_path_factory) -> Path:
    """Output of the SVM-GMM recipe; read only."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    with pytest.raises(SystemExit) as end:
        COMMANDS["svm_gmm"].main(options(tiny, output, "--jobs", "2"))
    assert not end.value.code
    return output


def run_on(tmp_path: Path, tiny: Path, *steps: str) -> list[Outcome]:
    """Run the recipe once after each step of a shell, with `$OUT` for its folder; a copy is in `tmp_path/kept`."""
    output, kept = tmp_path / "disk", tmp_path / "kept"
    output.mkdir()
    recipe = shlex.join([sys.executable, str(RECIPE), *options(tiny, output, "--jobs", "2")])
    script = [f"OUT={shlex.quote(str(output))}"]
    for number, step in enumerate(steps):
        place = f"{shlex.quote(str(tmp_path))}/{number}"
        script += [step, f"{recipe} >{place}.out 2>{place}.err && echo 0 >{place}.status || echo $? >{place}.status"]
        script.append(
            f"find $OUT -name '.*' >{place}.left; umask 022; rm -rf {kept}; cp -r $OUT {shlex.quote(str(kept))}"
        )
    done = subprocess.run([*MOUNT, "\n".join(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = []
    for number in range(len(steps)):
        parts = {kind: (tmp_path / f"{number}.{kind}").read_text() for kind in ("status", "out", "err", "left")}
        assert parts["left"] == "", "files in the making"
        outcomes.append(Outcome(int(parts["status"]), parts["out"], parts["err"]))
    return outcomes


@pytest.mark.parametrize(
    "share", [pytest.param(0.2, marks=pytest.mark.slow), pytest.param(0.5, marks=pytest.mark.slow), 0.8, 0.97]
)
def test_full_disk_is_one_error_and_with_space_it_goes_on(tiny, undisturbed, tmp_path, share):
    # folders take no room there
    pages = sum(-(-path.stat().st_size // 4096) for path in undisturbed.rglob("*") if path.is_file())
    size = f"{round(share * pages) * 4}k"
    outcomes = run_on(tmp_path, tiny, f"mount -t tmpfs -o size={size} tmpfs $OUT", "mount -o remount,size=64m $OUT")
    assert outcomes[0].status == 2, outcomes[0].err
    assert "No space left on device" in outcomes[0].error
    assert "free space or choose another output folder" in outcomes[0].error
    assert "Traceback" not in outcomes[0].err
    assert outcomes[1].status == 0, outcomes[1].err
    assert datasets(tmp_path / "kept") == datasets(undisturbed)
    assert not leftovers(tmp_path / "kept")


def test_read_only_disk_is_one_error(tiny, undisturbed, tmp_path):
    """Also where everything is there already: it cannot be noted that a run was here."""
    first = f"mount -t tmpfs tmpfs $OUT; cp -r {shlex.quote(str(undisturbed))}/. $OUT; mount -o remount,ro $OUT"
    for step in ("mount -t tmpfs -o ro tmpfs $OUT", first):
        folder = tmp_path / str(len(step))
        folder.mkdir()
        (outcome,) = run_on(folder, tiny, step)
        assert outcome.status == 2
        assert "output folder cannot be written: Read-only file system (choose another --output)" in outcome.error
        assert len(outcome.err.splitlines()) == 1, outcome.err
