"""The wheel and the installed commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spkbase.version import __version__

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent


@pytest.mark.parametrize("command", ["spkver", "spkver-eval"])
def test_commands_work_beside_another_evaluation_package(command, tmp_path):
    """The VoicePrivacy toolkits have a top-level package `evaluation` too; the working directory must not matter."""
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    run = subprocess.run([SCRIPTS / command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert __version__ in run.stdout
    run = subprocess.run([SCRIPTS / command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Usage:" in run.stdout


@pytest.mark.parametrize("command", [["spkver", "status", "--help"], ["spkver-eval", "metrics", "--help"]])
def test_commands_work_where_another_evaluation_package_comes_first(command, tmp_path):
    """As in a checkout of the VoicePrivacy toolkits with PYTHONPATH=. ."""
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    environment = {**os.environ, "PYTHONPATH": "."}
    run = subprocess.run(
        [SCRIPTS / command[0], *command[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "Usage:" in run.stdout


def test_another_evaluation_package_that_is_imported_already_is_named(tmp_path):
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "__init__.py").write_text("")
    code = "import evaluation, spkver"
    environment = {**os.environ, "PYTHONPATH": "."}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert f"the package 'evaluation' that is imported here is {tmp_path}" in run.stderr
    assert "import spkver first" in run.stderr


def test_unknown_command_is_a_usage_error(tmp_path):
    run = subprocess.run([SCRIPTS / "spkver", "sing"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "No such command" in run.stderr


@pytest.mark.slow
def test_wheel_holds_the_packages_and_nothing_else(tmp_path):
    # a copy: a build in place would leave its folders in the checkout
    source = tmp_path / "source"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name in filter(None, files):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", source],
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.name.startswith(f"spkver-{__version__}-py3-none-any")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"spkbase", "spkver", "evaluation", f"spkver-{__version__}.dist-info"}
    for needed in (
        "spkbase/py.typed",
        "spkver/py.typed",
        "evaluation/py.typed",
        "spkver/sidekit/__init__.py",
        "evaluation/formats/text.py",
        "evaluation/metrics/__init__.pyi",
        *(f"spkver/{path.relative_to(ROOT)}" for path in ROOT.glob("recipes/*/*.py")),
        *(f"spkver/{path.relative_to(ROOT)}" for path in ROOT.glob("recipes/*/config/*.yaml")),
    ):
        assert needed in names
    assert any(name.endswith("LICENSE") for name in names)
