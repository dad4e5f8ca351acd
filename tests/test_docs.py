"""What the documents say exists: links, files, commands and configuration keys."""

from __future__ import annotations

import re
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from spkbase.configuration import load_config
from spkbase.version import __version__
from spkver.rsr2015.lists import Config
from spkver.voiceprivacy.settings import Config as VoicePrivacyConfig

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md"), *ROOT.glob("recipes/*/README.md")]
CONFIGS = {"rsr2015": Config, "voiceprivacy": VoicePrivacyConfig}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (path.parent / target).exists(), f"{path}: {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_and_settings_in_commands_exist(path):
    text = path.read_text(encoding="utf-8")
    for script in re.findall(r"(?:recipes|benchmarks|tests)/[\w/]+\.py", text):
        assert (ROOT / script).is_file(), f"{path}: {script}"
    for module in re.findall(r"python -m (benchmarks\.\w+)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), f"{path}: {module}"
    recipe = path.parent.name  # of a recipe's README; elsewhere the recipe that was named last
    for line in text.splitlines():
        recipe = next(iter(re.findall(r"(?:recipes/|spkver )(voiceprivacy|rsr2015)(?:/\w+\.py| )", line)), recipe)
        for setting in re.findall(r"--set '?([\w.]+=[^\s'`)]+)", line):
            if setting != "KEY=VALUE]..." and "$" not in setting:
                load_config(CONFIGS.get(recipe, Config), settings=[setting])


def test_make_targets_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"`?make ([a-z-]+)`?", text)) - {"only"}
    assert {"demo", "check", "test", "test-all", "kernels", "bench", "venv"} <= targets
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_keys_of_the_recipe_table_exist():
    keys = asdict(Config(systems={"NAME": ["cosine"]}))  # keys that came later too
    rows = re.findall(
        r"^\| ((?:`[^`]+`(?:, )?)+)(?:, \.\.\.)? \|", (ROOT / "recipes/rsr2015/README.md").read_text(), re.M
    )
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row) if "/" not in name and ".py" not in name]
    section = ""
    checked = 0
    for name in names:
        parts = name.split(".")
        if parts[-1] in ("json", "yaml", "log", "png", "h5", "txt", "svg", "pdf") or name.startswith("."):
            continue
        section = parts[0] if len(parts) > 1 else section
        holder = keys if parts[0] in keys else keys[section]
        for part in parts:
            assert part in holder, name
            holder = holder[part]
        checked += 1
    assert checked > 15


@pytest.mark.parametrize("path", sorted(ROOT.glob("recipes/rsr2015/config/*.yaml")), ids=lambda path: path.name)
def test_configuration_files_load(path):
    values = yaml.safe_load(path.read_text())
    settings = [f"{key}={value}" for key, value in values.items() if "." in key]
    assert load_config(Config, file=None if settings else path, settings=settings) is not None


def test_ci_runs_make_test():
    assert "make test" in (ROOT / ".ci/run").read_text()


def test_versions_agree():
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
