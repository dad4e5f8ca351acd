"""What the documents say exists: links, files, commands and configuration keys."""

import ast
import importlib
import importlib.util
import itertools
import re
import shlex
import subprocess
import textwrap
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
import pytest

from spkbase.configuration import load_config
from spkbase.version import __version__
from spkver.cli import main as spkver_main
from spkver.evaluation_cli import main as evaluation_main
from spkver.rsr2015.lists import RecipeConfig
from spkver.voiceprivacy.settings import Config as VoicePrivacyConfig

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/studies/*.md"),
    *ROOT.glob("recipes/*/README.md"),
]
INDEX = ROOT / "docs/index.md"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.M | re.S)
FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.M | re.S
)
OURS = ("spkbase", "evaluation", "spkver")
SCRIPTS = {
    "recipes/rsr2015/svm_gmm.py": ("rsr2015", "svm-gmm"),
    "recipes/rsr2015/gmm_ubm.py": ("rsr2015", "gmm-ubm"),
    "recipes/rsr2015/ivector.py": ("rsr2015", "ivector"),
    "recipes/rsr2015/jfa.py": ("rsr2015", "jfa"),
    "recipes/rsr2015/hilam.py": ("rsr2015", "hilam"),
    "recipes/rsr2015/ivector_hmm.py": ("rsr2015", "ivector-hmm"),
    "recipes/rsr2015/prepare.py": ("rsr2015", "prepare"),
    "recipes/voiceprivacy/run.py": ("voiceprivacy",),
}
CALL = re.compile(
    r"(?:[A-Z_]+=\S+ +)*(?:time +)?(?:(?:\.venv/bin/)?python3? +)?(?:\.venv/bin/)?"
    rf"(?P<name>spkver-eval|spkver|{'|'.join(SCRIPTS)})(?: +(?P<rest>.+))$"
)
CONFIGS = {"rsr2015": RecipeConfig, "voiceprivacy": VoicePrivacyConfig}


def headings(path):
    """The anchors of a page, as Markdown makes them of its headings; code blocks have none."""
    text = re.sub(r"^(```+|~~~+).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {
        re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")
        for line in re.findall(r"^#+ (.*)$", text, re.M)
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(path):
    for target, anchor in re.findall(
        r"\]\(([^)#]*)(?:#([^)]+))?\)", path.read_text(encoding="utf-8")
    ):
        if not target.startswith(("http:", "https:")):
            page = path.parent / target if target else path
            assert page.exists(), f"{path}: {target}"
            assert not anchor or anchor in headings(page), f"{path}: {target}#{anchor}"


def test_every_page_is_in_the_navigation():
    listed = re.findall(
        r"^(?:.*<)?([\w./]+)>?$",
        "\n".join(TOCTREE.findall(INDEX.read_text(encoding="utf-8"))),
        re.M,
    )
    pages = {(INDEX.parent / name).resolve() for name in listed}
    wanted = {
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/studies/*.md"),
        *ROOT.glob("docs/notebooks/*.ipynb"),
        *ROOT.glob("recipes/*/README.md"),
    } - {INDEX}
    assert {path.with_suffix("") for path in wanted} <= pages
    assert len(listed) == len(set(listed))


def test_the_readme_is_short_and_begins_with_the_output():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    beginning = "\n".join(text.splitlines()[:25])
    assert all(
        word in beginning for word in ("verdict", "interval", "make demo", "docs/report.png")
    )
    prose = re.sub(r"^(```.*?^```|\|.*?$|!\[.*?$)|\]\([^)]*\)", " ", text, flags=re.M | re.S)
    assert len(re.findall(r"\w[\w.%'-]*", prose)) <= 350
    assert all(path.stat().st_size < 160_000 for path in ROOT.glob("docs/*.png"))


def blocks(path):
    """The code of a page: what stands between fences, with its language, and what is indented below a paragraph."""
    text = path.read_text(encoding="utf-8")
    for found in FENCED.finditer(text):
        yield found["language"], textwrap.dedent(found["code"])
    for block in re.findall(r"(?:\n\n|\A)((?: {4,}.*\n|\n(?= {4}))+)", FENCED.sub("\n\n", text)):
        code = textwrap.dedent(block)
        yield "python" if re.match(r"\s*(from [\w.]+ )?import \w", code) else "", code


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_in_documents_compiles_and_its_imports_exist(path):
    for language, code in blocks(path):
        if language != "python" or ">>>" in code:
            continue
        for node in ast.walk(ast.parse(code, str(path))):
            if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] in OURS:
                for alias in node.names:
                    assert hasattr(importlib.import_module(node.module), alias.name), (
                        f"{path}: {node.module}.{alias.name}"
                    )


def commands_in(path):
    """The lines of a page that call our commands: words of each, whether in a block or between backticks."""
    for _, code in blocks(path):
        for line in re.sub(r"\\\n\s*", " ", code).splitlines():
            if found := CALL.match(line.strip().removeprefix("$ ")):
                yield found
    for inline in re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", FENCED.sub("", path.read_text(encoding="utf-8"))
    ):
        if found := CALL.match(inline):
            yield found


def words_of(text):
    """The words of a line of shell up to where its command ends; places such as `[--config FILE]` are words."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words = list(itertools.takewhile(lambda word: not set(word) <= set("|;&<>"), lexer))
    # a comma ends the first of several commands in a list
    first = next((number for number, word in enumerate(words) if word.endswith(",")), None)
    return words if first is None else [*words[:first], words[first].rstrip(",")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_options_in_documents_exist(path):
    for found in commands_in(path):
        command = {"spkver-eval": evaluation_main}.get(found["name"], spkver_main)
        words = [*SCRIPTS.get(found["name"], ()), *words_of(found["rest"])]
        context = click.Context(command)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            if words[0] in ("COMMAND", "..."):
                words = []
                break
            inner = command.get_command(context, words[0])
            assert inner is not None, f"{path}: {found[0]}: no command {words[0]}"
            command = inner
            del words[0]
        known = {
            name
            for option in command.params
            if not getattr(option, "hidden", False)
            for name in option.opts
        }
        known |= {name for option in command.params for name in option.secondary_opts} | {
            "-h",
            "--help",
        }
        for word in words:
            if option := re.match(r"\[?(--?[a-z][\w-]*)", word):
                assert option[1] in known, f"{path}: {found[0]}: no option {option[1]}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_and_settings_in_commands_exist(path):
    text = path.read_text(encoding="utf-8")
    for script in re.findall(r"(?:recipes|benchmarks|tests)/[\w/]+\.py", text):
        assert (ROOT / script).is_file(), f"{path}: {script}"
    for module in re.findall(r"python -m (benchmarks\.\w+)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), f"{path}: {module}"
    recipe = path.parent.name  # the recipe whose README this is; elsewhere the one named last
    for line in text.splitlines():
        recipe = next(
            iter(re.findall(r"(?:recipes/|spkver )(voiceprivacy|rsr2015)(?:/\w+\.py| )", line)),
            recipe,
        )
        for setting in re.findall(r"--set '?([\w.]+=[^\s'`)]+)", line):
            if setting != "KEY=VALUE]..." and "$" not in setting:
                load_config(CONFIGS.get(recipe, RecipeConfig), settings=[setting])


def test_make_targets_exist():
    text = "".join(
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/install.md")
    )
    targets = set(re.findall(r"`?make ([a-z-]+)`?", text)) - {"only"}
    assert {"demo", "check", "test", "test-all", "kernels", "docs", "venv"} <= targets
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_tests_named_in_documents_exist():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"^ *def (test_\w+)", tests, re.M))
    for path in DOCUMENTS:
        named = set(re.findall(r"`(test_\w+)`", path.read_text()))
        assert named <= existing, (path.name, named - existing)


def test_keys_of_the_recipe_table_exist():
    keys = asdict(RecipeConfig(systems={"NAME": ["cosine"]}))  # also keys that were added later
    rows = re.findall(
        r"^\| ((?:`[^`]+`(?:, )?)+)(?:, \.\.\.)? \|",
        (ROOT / "recipes/rsr2015/README.md").read_text(),
        re.M,
    )
    names = [
        name
        for row in rows
        for name in re.findall(r"`([^`]+)`", row)
        if "/" not in name and ".py" not in name
    ]
    section = ""
    checked = 0
    for name in names:
        parts = name.split(".")
        if parts[-1] in (
            "json",
            "yaml",
            "log",
            "png",
            "h5",
            "txt",
            "svg",
            "pdf",
        ) or name.startswith("."):
            continue
        section = parts[0] if len(parts) > 1 else section
        holder = keys if parts[0] in keys else keys[section]
        for part in parts:
            assert part in holder, name
            holder = holder[part]
        checked += 1
    assert checked > 15


def test_versions_agree():
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location(
        "reference_pages", ROOT / "docs/reference_pages.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_begins_with_common_names_and_explains_every_name(reference):
    packages = reference.packages()
    for package, names in packages.items():
        text = reference.page(package, names)
        assert not re.findall(r"^\| \[.*\| *\|$", text, re.M), package
        for name, place in (
            (first, reference.FIRST[package].index(first))
            for first in reference.FIRST.get(package, ())
        ):
            assert names[place].name == name, f"{package}.{name}"
    plots = reference.page("evaluation.plots", packages["evaluation.plots"])
    public, _, inner = plots.partition("## For plots and tables of your own")
    assert "`plot_det`" in public
    assert "escape" not in public
    assert "`escape`" in inner
    assert reference.index(packages).index("import evaluation as ev") < 40


def test_the_first_lines_of_the_reference_run(reference, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    pairs = [
        (f"m{model}", f"s{speaker}-{take}")
        for model in range(8)
        for speaker in range(8)
        for take in range(3)
    ]
    for name in ("scores", "other"):
        lines = [
            f"{model} {segment} {2 * (model[1] == segment[1]) + draw.normal()}"
            for model, segment in pairs
        ]
        Path(f"{name}.txt").write_text("\n".join(lines))
    target = {True: "target", False: "nontarget"}
    Path("key.txt").write_text("\n".join(f"{m} {s} {target[m[1] == s[1]]}" for m, s in pairs))
    exec(re.search(r"```python\n(.*)```", reference.OPENING, re.S)[1], {})
    assert "EER (ROCCH) [%]" in capsys.readouterr().out
    assert (tmp_path / "det.png").is_file()
