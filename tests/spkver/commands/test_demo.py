"""The command ``spkver demo``."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.whole


def demo(folder, code=""):
    call = f"{code}\nfrom spkver.cli import main\nmain(['demo', '--output', {str(folder / 'out')!r}], 'spkver')"
    return subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, check=False, cwd=folder
    )


def test_without_voices_the_demo_gives_one_line_that_names_the_package(tmp_path):
    done = demo(tmp_path, "import sys; sys.modules['espeakng_loader'] = None")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "Error: simulated speech needs espeakng_loader, which cannot be imported: "
    )
    assert done.stderr.endswith(" (pip install espeakng-loader==0.2.4)\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_both_recipes_run_and_name_their_reports(tmp_path):
    pytest.importorskip("espeakng_loader")
    done = demo(tmp_path)
    assert done.returncode == 0, done.stderr
    output = tmp_path / "out"
    end = done.stdout.rpartition("Attackers:")[2]
    assert (
        "gmm-ubm, gmm-svm, gmm-svm-cms, supervector-cosine.\nLeft out, for a run on your data"
        in end
    )
    left_out = end.partition("your data: ")[2].partition(".\n")[0].split(", ")
    assert {"campplus-adapted", "campplus-adapted-reversed"} <= set(left_out)
    for file in ("voiceprivacy/report.html", "det.png"):
        assert str(output / file) in end
        assert (output / file).stat().st_size > 10_000
    stamps = {
        path: path.stat().st_mtime_ns
        for form in ("png", "html")
        for path in output.rglob(f"*.{form}")
    }
    again = demo(tmp_path)  # the second run draws nothing
    assert again.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert again.stdout.splitlines()[-4:] == done.stdout.splitlines()[-4:]
