"""The wheel and the installed commands."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

import evaluation
import spkver
from spkbase.version import __version__

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent
INSTALL = (ROOT / "docs/install.md").read_text()


@pytest.mark.parametrize("command", ["spkver", "spkver-eval"])
def test_commands_work_next_to_another_evaluation_package(command, tmp_path):
    """The VoicePrivacy toolkits have a top-level package `evaluation` too; the working directory must not matter."""
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    run = subprocess.run(
        [SCRIPTS / command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert __version__ in run.stdout
    run = subprocess.run(
        [SCRIPTS / command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "Usage:" in run.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("module", ["spkver", "spkver.cli", "spkver.evaluation_cli"])
def test_commands_run_as_modules(module):
    run = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )
    assert __version__ in run.stdout


def test_tab_completion_works_in_bash_and_exists_for_zsh():
    """By the lines of docs/install.md."""
    environment = {**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    lines = re.findall(r'^(eval "\$\((.*) spkver\)") +# a line for (\S+)$', INSTALL, re.MULTILINE)
    assert [file for *_, file in lines] == ["~/.bashrc", "~/.zshrc"]
    code = f"{lines[0][0]}\nCOMP_WORDS=(spkver rsr2015 g) COMP_CWORD=2\n_spkver_completion spkver\necho $COMPREPLY\n"
    for script, said in (
        (code, "gmm-ubm\n"),
        (f"{lines[1][1]} spkver | head -1", "#compdef spkver\n"),
    ):
        run = subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert (run.stdout, run.stderr) == (said, "")


def test_an_evaluation_package_already_imported_is_named(tmp_path):
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "__init__.py").write_text("")
    code = "import evaluation, spkver"
    environment = {**os.environ, "PYTHONPATH": "."}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert f"the package 'evaluation' that is imported here is {tmp_path}" in run.stderr
    assert "import spkver first" in run.stderr


def test_both_packages_have_the_same_version():
    assert evaluation.__version__ == spkver.__version__ == __version__


# modules of packages with another name
MODULES = {"scikit-learn": "sklearn", "PyYAML": "yaml", "Jinja2": "jinja2"}


def small_installs():
    """All packages of an installation, and the lists that docs/install.md installs in their place, the longer first."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    every = {line.split()[0] for line in parser["options"]["install_requires"].strip().splitlines()}
    return every, [
        set(line.split()) for line in re.findall(r"--no-deps \.\npip install (.*)", INSTALL)
    ]


def without(packages, code, folder):
    """Run code as if these packages were not installed."""
    names = sorted(MODULES.get(name, name) for name in packages)
    code = f"import sys\nsys.modules |= dict.fromkeys({names!r})\n{code}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_small_installs_omit_librosa_and_packages_that_metrics_do_not_need(tmp_path):
    every, (core, metrics) = small_installs()
    assert core == every - {"librosa"}
    assert metrics < core
    for name, ends in (
        ("s", ("1.5", "-0.3", "-2", "0.7")),
        ("k", ("target", "nontarget", "nontarget", "target")),
    ):
        rows = zip(("a x", "a y", "b x", "b y"), ends, strict=True)
        (tmp_path / name).write_text("".join(f"{pair} {end}\n" for pair, end in rows))
    code = "from spkver.evaluation_cli import main; main(['metrics', '-s', 's', '-k', 'k'])"
    done = without(every - metrics, code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "EER" in done.stdout
    # librosa is named by the one preset that needs it
    code = (
        "import numpy as np\nfrom spkver.features import PRESETS, FeatureConfig\n"
        "from spkver.features.extraction import features_of_signals\n"
        "from spkbase.errors import SpkverError\nsignal = np.random.default_rng(0).normal(size=16000) / 10\n"
        "for name in PRESETS:\n    config = FeatureConfig(**PRESETS[name])\n    try:\n"
        "        features_of_signals([signal], [np.random.default_rng(1)], config)\n"
        "    except SpkverError as error:\n        print(name, error)\n"
    )
    done = without({"librosa", "numba", "llvmlite"}, code, tmp_path)
    assert done.stdout.startswith("librosa the preset librosa needs librosa"), done.stderr
    assert done.stdout.endswith("(pip install librosa)\n")
    assert done.stdout.count("\n") == 1


@pytest.mark.slow
def test_a_recipe_and_a_report_run_without_librosa(tmp_path):
    pytest.importorskip("espeakng_loader")
    code = "from spkver.cli import main; main(['demo', '--output', 'demo'])"
    done = without({"librosa", "numba", "llvmlite"}, code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "demo/voiceprivacy/report.html").is_file()


def extras():
    """Each extra with what it installs."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return {name: text.split("\n")[1:] for name, text in parser["options.extras_require"].items()}


# Extra to the module that it brings, and code that needs it.
NEEDS = {
    "sphere": ("av", "from spkver.audio import _shorten_shape; _shorten_shape('a.sph', {})"),
    "demo": ("espeakng_loader", "from spkver.corpora import loader; loader()"),
    "world": (
        "pyworld",
        "from spkver.anonymization.anonymizers import import_world; import_world()",
    ),
    "wer": ("rapidfuzz", "import evaluation.utility as u; u.count_errors({'a': 'b'}, {'a': 'b'})"),
    "asr": (
        "pocketsphinx",
        "from spkver.recognition import open_recogniser; open_recogniser('pocketsphinx')",
    ),
    "whisper": (
        "faster_whisper",
        "from spkver.recognition import open_recogniser; open_recogniser('whisper')",
    ),
    "networks": (
        "onnxruntime",
        "from spkver.extractors.networks import read_network; read_network('a.onnx')",
    ),
    "training": (
        "torch",
        "from spkver.training.campplus import campplus_vectors; campplus_vectors({}, None)",
    ),
    "dask": (
        "distributed",
        "from spkbase.work import use_engine; use_engine('tcp://h:1').__enter__()",
    ),
}


def test_every_extra_is_tested_or_contains_others():
    assert set(extras()) == {*NEEDS, "all", "docs", "dev"}
    (held,) = extras()["all"]
    # a compiler and gigabytes of torch are no part of it
    wheels = set(NEEDS) - {"world", "training"}
    assert set(held.removeprefix("spkver[").removesuffix("]").split(",")) == wheels


@pytest.mark.parametrize("extra", NEEDS)
def test_a_missing_extra_gives_one_clear_line(extra):
    module, use = NEEDS[extra]
    code = f"""
import sys
sys.modules[{module!r}] = None  # as if it were not installed
from spkbase.errors import SpkverError
try:
    {use}
except SpkverError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    # by itself: an extra needs spkver in an index, or a checkout
    packages = [requirement.partition(" >=")[0].replace(" ", "") for requirement in extras()[extra]]
    command = " ".join(f"'{name}'" if "[" in name else name for name in packages)
    assert f"pip install {command}" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.slow
def test_the_wheel_contains_the_packages_and_their_documents(tmp_path):
    # a copy: a build in place would leave its folders in the checkout
    source = tmp_path / "source"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    for name in filter(None, files):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    # the wheel is built from the source distribution, so that this is seen to be whole
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path / "dist", source],
        check=True,
        capture_output=True,
    )
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    expected = {
        name for name in filter(None, files) if name not in (".gitignore", "spkver/recipes")
    }
    assert expected <= held
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.name.startswith(f"spkver-{__version__}-py3-none-any")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    # the documents that the README links to go to share/doc, in the same folders
    documents = f"spkver-{__version__}.data/data/share/doc/spkver"
    assert tops == {
        "spkbase",
        "spkver",
        "evaluation",
        documents.split("/")[0],
        f"spkver-{__version__}.dist-info",
    }
    for name in filter(None, files):
        if name.endswith(".md") and not name.startswith("tests/"):
            assert f"{documents}/{name}" in names
    assert f"{documents}/CITATION.cff" in names
    for needed in (
        "spkbase/py.typed",
        "spkver/py.typed",
        "evaluation/py.typed",
        "spkver/sidekit/__init__.py",
        "evaluation/formats/text.py",
        "evaluation/reports/results.schema.json",
        "evaluation/metrics/__init__.py",
        *(f"spkver/{path.relative_to(ROOT)}" for path in ROOT.glob("recipes/*/*.py")),
        *(f"spkver/{path.relative_to(ROOT)}" for path in ROOT.glob("recipes/*/config/*.yaml")),
    ):
        assert needed in names
    assert any(name.endswith("LICENSE") for name in names)


# --- the container ----------------------------------------------------------------------------------------------------


def test_the_container_installs_as_documented():
    lines = [
        line.split(maxsplit=1)
        for line in (ROOT / "Containerfile").read_text("utf-8").splitlines()
        if line[:1].isupper()
    ]
    steps = {name: [text for kind, text in lines if kind == name] for name, _ in lines}
    copied = {name for text in steps["COPY"] for name in text.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    # what setup.cfg installs, with the documents, and nothing that only tests use
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    data = {
        line.partition("/")[0]
        for text in parser["options.data_files"].values()
        for line in text.split()
    }
    assert copied >= {"setup.cfg", "pyproject.toml", "spkbase", "evaluation", "spkver"} | data
    (pip,) = [text for text in steps["RUN"] if "pip" in text]
    assert f"\n{pip}\n" in (ROOT / "docs/install.md").read_text("utf-8")
    assert steps["USER"] == ["spkver"]
    assert steps["ENTRYPOINT"] == ['["spkver"]']


@pytest.mark.slow
def test_the_container_runs(tmp_path):
    builder = next((name for name in ("podman", "buildah", "docker") if works(name)), None)
    if builder is None:
        pytest.skip("no podman, buildah or docker that works")
    build = ["bud", "--layers"] if builder == "buildah" else ["build"]
    subprocess.run(
        [builder, *build, "-f", "Containerfile", "-t", "spkver-test", "."], cwd=ROOT, check=True
    )
    if builder != "buildah":
        done = subprocess.run(
            [builder, "run", "--rm", "spkver-test", "--version"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert __version__ in done.stdout


def works(builder):
    """Whether the tool is installed and its engine, if it needs one, runs."""
    return (
        shutil.which(builder)
        and not subprocess.run([builder, "info"], capture_output=True, check=False).returncode
    )


# --- a release --------------------------------------------------------------------------------------------------------


def test_equal_sources_give_equal_source_distributions(tmp_path):
    """Another time, order, owner and umask leave no trace."""
    packed = []
    for number, names in enumerate((["b", "a"], ["a", "b"])):
        folder = tmp_path / str(number) / "spkver-1"
        folder.mkdir(parents=True)
        archive = folder.parent / "spkver-1.tar.gz"
        with tarfile.open(archive, "w:gz") as target:
            for name in names:
                path = folder / name
                path.write_text(f"contents of {name}")
                path.chmod(0o640 if number else 0o600)
                os.utime(path, (10**9 + number, 10**9 + number))
                target.add(path, f"spkver-1/{name}")
        packed.append(archive)
    before = [archive.read_bytes() for archive in packed]
    assert before[0] != before[1]
    subprocess.run(
        [sys.executable, ROOT / ".ci/reproducible.py", *packed],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        check=True,
    )
    first, second = (archive.read_bytes() for archive in packed)
    assert first == second
    with tarfile.open(packed[0]) as archive:
        members = archive.getmembers()
        assert [(member.name, member.mode, member.mtime) for member in members] == [
            ("spkver-1/a", 0o644, 1_700_000_000),
            ("spkver-1/b", 0o644, 1_700_000_000),
        ]
        assert archive.extractfile("spkver-1/a").read() == b"contents of a"


def test_metadata_describe_the_project():
    """Questions of public forums: PLDA of Kaldi in Python, text-dependent verification, singling out."""
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    text = (ROOT / "README.md").read_text() + parser["metadata"]["description"]
    for words in ("PLDA", "Kaldi", "text-dependent", "RSR2015", "singling out", "VoicePrivacy"):
        assert words in text
    assert "url" not in parser["metadata"]  # no address is invented
    assert "\n" not in parser["metadata"]["description"]


@pytest.mark.slow
def test_the_steps_of_the_container_install_commands_that_run(tmp_path):
    """Without a builder: what COPY names is copied, and installed as RUN does, but for the packages of others."""
    context = tmp_path / "context"
    context.mkdir()
    for line in (ROOT / "Containerfile").read_text("utf-8").splitlines():
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            for name in sources:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, context / target)
                else:
                    shutil.copy(ROOT / name, context / target)
    installed = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--target", installed, context],
        check=True,
        capture_output=True,
    )
    code = "from spkver.cli import main; main(['voiceprivacy', '--help'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage:" in done.stdout
    assert (installed / "evaluation/challenges/baselines.csv").is_file()
    assert (installed / "spkver/recipes/voiceprivacy/config/vpc2024.yaml").is_file()
    assert list((installed / "share/doc/spkver/docs").glob("challenge.md"))
