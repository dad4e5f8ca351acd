"""The reference: a page for each package with all its public names, made from `__init__.py` and the docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("evaluation", "spkver", "spkbase")
OPENING = """```python
import evaluation as ev

scores, key = ev.read_scores("scores.txt"), ev.read_key("key.txt")  # any format; joined by ids
target, nontarget = ev.split_scores(scores, key)
print(ev.evaluate(target, nontarget))  # every metric
print(ev.eer(target, nontarget), ev.min_dcf(target, nontarget, p_target=0.05))
ev.plot_det([("mine", scores, key)], path="det.png")
print(ev.compare({"mine": scores, "other": ev.read_scores("other.txt")}, key))  # intervals, p-values
```"""
"""The first lines of the Python API."""
FIRST = {
    "evaluation": (
        *(
            "evaluate",
            "read_scores",
            "read_key",
            "split_scores",
            "compare",
            "plot_det",
            "eer",
            "min_dcf",
            "cllr",
            "min_cllr",
        ),
        *(
            "act_dcf",
            "zebra",
            "d_sys",
            "tpr_at_fpr",
            "Scores",
            "Key",
            "Evaluation",
            "Interval",
            "linkability",
        ),
        *("read_embeddings", "cosine_scores", "write_scores", "write_key"),
    ),
    "evaluation.plots": (
        *(
            "plot_det",
            "plot_roc",
            "plot_histogram",
            "plot_reliability",
            "plot_ece",
            "plot_ape",
            "plot_zebra",
        ),
        *("plot_linkability", "plot_privacy_utility"),
    ),
    "evaluation.metrics": (
        "Evaluation",
        "eer",
        "min_dcf",
        "act_dcf",
        "cllr",
        "min_cllr",
        "zebra",
        "d_sys",
    ),
    "evaluation.calibration": ("calibrate", "fuse", "Calibration", "load_calibration"),
    "evaluation.uncertainty": (
        "evaluate",
        "compare",
        "PairedComparison",
        "Interval",
        "Resampling",
        "sample_from",
    ),
    "evaluation.formats": (
        "read_scores",
        "read_key",
        "read_trials",
        "write_scores",
        "write_key",
        "write_trials",
    ),
}
"""Names that most users want, which open the page of their package; the others follow in the order of the code."""
LAST = {"evaluation.plots": ("TARGETS", "VOICES", "WINDOWS", "house_style", "escape")}
"""Names for code that makes plots or tables of its own, in a table below the others."""
TASKS = {
    "Scores to metrics and intervals": (
        *(
            "evaluation.trials",
            "evaluation.formats",
            "evaluation.metrics",
            "evaluation.calibration",
            "evaluation.forensics",
        ),
        "evaluation.uncertainty",
    ),
    "Plots, tables and reports": (
        "evaluation.plots",
        "evaluation.reports",
        "evaluation.challenges",
    ),
    "Embeddings, linkability, utility": ("evaluation",),
    "Audio to features and models": (
        *(
            "spkver.audio",
            "spkver.datadir",
            "spkver.corpora",
            "spkver.features",
            "spkver.mixture",
            "spkver.vectors",
        ),
        *("spkver.sidekit", "spkver.idmap"),
    ),
    "Vectors to scores": ("spkver.extractors", "spkver.backend", "spkver.sklearn"),
    "Anonymise, attack, report": (
        *("spkver.anonymization", "spkver.attackers", "spkver.recognition", "spkver.voiceprivacy"),
    ),
    "Recipes and commands": ("spkver",),
    "Infrastructure: files, workers, runs, configurations": ("spkbase",),
}
"""Packages by what they are for; the first task whose names begin a package's has it."""
PICTURES = {
    "plot_det": "demo-det.png",
    "plot_roc": "plot-roc.png",
    "plot_ece": "plot-ece.png",
    "plot_zebra": "plot-zebra.png",
    "plot_histogram": "plot-histogram.png",
    "plot_reliability": "plot-reliability.png",
    "plot_tippett": "plot-tippett.png",
    "plot_linkability": "linkability.png",
    "plot_ape": "plot-ape.png",
    "plot_privacy_utility": "plot-privacy-utility.png",
    "plot_likelihood": "plot-likelihood.png",
    "plot_similarity": "plot-similarity.png",
    "plot_cmc": "plot-cmc.png",
    "plot_exposure": "plot-exposure.png",
    "plot_extrapolation": "plot-extrapolation.png",
    "plot_linkability_panels": "plot-linkability-panels.png",
    "plot_speaker_grid": "plot-speaker-grid.png",
    "plot_jaccard": "plot-jaccard.png",
    "plot_intersections": "plot-intersections.png",
}
"""Pictures beside plots; `docs/pictures.py` draws those that are not in the gallery."""


LONGEST_VALUE = 90  # characters of a constant that is shown as it is


class Name(NamedTuple):
    """A public name: where it is entered, the module that holds it, and what it is called there."""

    name: str
    module: str
    original: str


def packages() -> dict[str, list[Name]]:
    """Return the public names of each package, and of the modules beside packages, the most used ones first."""
    found = {}
    for top in PACKAGES:
        for init in sorted((ROOT / top).rglob("__init__.py")):
            package = ".".join(init.parent.relative_to(ROOT).parts)
            if names := names_of_package(init, package):
                first, last = FIRST.get(package, ()), LAST.get(package, ())
                order = [
                    *first,
                    *(name.name for name in names if name.name not in (*first, *last)),
                    *last,
                ]
                found[package] = sorted(names, key=lambda name: order.index(name.name))
        for path in sorted((ROOT / top).glob("*.py")):
            if path.stem not in ("__init__", "__main__", "cli"):
                module = f"{top}.{path.stem}"
                found[module] = [Name(name, module, name) for name in names_of_module(path)]
    return found


def names_of_package(init: Path, package: str) -> list[Name]:
    """Return the names that a package hands out: what its `__init__.py` imports from it, or lists in `__all__`."""
    body = ast.parse(init.read_text(encoding="utf-8")).body
    exported: list[str] = []
    for line in body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            exported = ast.literal_eval(line.value)
    names = []
    for line in body:
        if not isinstance(line, ast.ImportFrom):
            continue
        module = line.module or package
        for alias in line.names:
            name = alias.asname or alias.name
            is_public = not name.startswith("_")
            if is_public and (module.startswith(f"{package}.") or name in exported):
                names.append(Name(name, module, alias.name))
    return names


def names_of_module(path: Path) -> list[str]:
    """Return the functions and classes that a module makes and does not hide."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [line.name for line in body if isinstance(line, kinds) and not line.name.startswith("_")]


def comment_of(name: Name) -> str:
    """Return the docstring below a constant, or the comment behind it, with its bars as signs."""
    source = inspect.getsource(importlib.import_module(name.module))
    body = ast.parse(source).body
    for line, after in pairwise([*body, ast.Pass()]):
        set_here = (
            one.id
            for one in ast.walk(line)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        )
        if isinstance(line, ast.Assign | ast.AnnAssign) and name.original in set_here:
            behind = source.splitlines()[line.lineno - 1].partition("  # ")[2].strip()
            below = after.value if isinstance(after, ast.Expr) else None
            found = (
                below.value
                if isinstance(below, ast.Constant) and isinstance(below.value, str)
                else behind
            )
            return " ".join(found.split()).replace("|", "\\|")
    return ""


def constant(thing: object, name: Name) -> str:
    """Return what is said of a constant, and its value, the names of its entries, or what it is an instance of."""
    value = "" if thing is None else repr(thing).replace("typing.", "")
    names = (
        [getattr(entry, "name", entry) for entry in thing] if isinstance(thing, Collection) else []
    )
    if isinstance(thing, str) or (
        len(value) <= LONGEST_VALUE and not re.search(r"[`|]|\\n| at 0x|^$", value)
    ):
        shown = f"``{value}``"
    elif names and all(isinstance(entry, str) for entry in names):
        shown = ", ".join(f"``{entry}``" for entry in names if entry)
    else:
        shown = ""
    return ": ".join(filter(None, [comment_of(name).rstrip("."), shown])) or first_line(type(thing))


def first_line(thing: object) -> str:
    """Return the first line of a docstring as Markdown that a table can hold."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return text.replace("``", "`").replace("*", "\\*").replace("|", "\\|")


def page(package: str, names: list[Name]) -> str:
    """Return the page of a package: its docstring, a table of its names, and each of them."""
    module = importlib.import_module(package)
    table, entries = [], []
    for name in names:
        thing = getattr(module, name.name)
        target = f"{package}.{name.name}"
        if inspect.isclass(thing):
            entries.append(f".. autoclass:: {target}\n   :members:\n")
        elif inspect.isroutine(thing):
            entries.append(f".. autofunction:: {target}\n")
            if name.name in PICTURES:
                picture = PICTURES[name.name]
                entries.append(
                    f".. image:: /docs/{picture}\n   :width: 60%\n   :alt: Example of {name.name}\n"
                )
        else:
            entries.append(
                f".. py:data:: {name.name}\n   :type: {type(thing).__name__}\n\n   {constant(thing, name)}\n"
            )
        described = inspect.isclass(thing) or inspect.isroutine(thing)
        sentence = first_line(thing) if described else constant(thing, name)
        # a top-level package leads to what its subpackages explain
        held = (
            ".".join(name.module.split(".")[:2]) + "." + name.original
            if package in PACKAGES
            else target
        )
        table.append(f"| [`{name.name}`](#{held}) | {sentence} |")
    text = f"# {package}\n\n```{{eval-rst}}\n.. automodule:: {package}\n   :no-members:\n```\n"
    least = len(table) - len(LAST.get(package, ()))
    for heading, rows in (
        ("", table[:least]),
        ("\n## For plots and tables of your own\n", table[least:]),
    ):
        text += (
            f"{heading}\n| name | what it is |\n|---|---|\n" + "\n".join(rows) + "\n"
            if rows
            else ""
        )
    if entries and package not in PACKAGES:
        text += "\n```{eval-rst}\n" + "\n".join(entries) + "```\n"
    return text


def write(folder: Path) -> None:
    """Write a page for each package and their index; what has not changed keeps its date, and is not built again."""
    folder.mkdir(exist_ok=True)
    found = packages()
    wanted = {f"{package}.md": page(package, names) for package, names in found.items()} | {
        "index.md": index(found)
    }
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for file, text in wanted.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def index(found: dict[str, list[Name]]) -> str:
    """Return the page that leads to the packages, by what a user wants to do."""
    text = f"# Python API\n\n{OPENING}\n\n| package | what it holds |\n|---|---|\n"
    text += (
        f"| [`evaluation`](evaluation.md) | {first_line(importlib.import_module('evaluation'))} |\n"
    )
    text += "\n```{toctree}\n:hidden:\n\nevaluation\n```\n"
    text += "\nAll names are imported from their packages, as in `from evaluation.metrics import eer`. By task:\n"
    left = [name for name in found if name != "evaluation"]
    for task, beginnings in TASKS.items():
        inside = [name for name in left if name.startswith(beginnings) or name in beginnings]
        left = [name for name in left if name not in inside]
        text += f"\n## {task}\n\n| package | what it holds |\n|---|---|\n"
        text += "".join(
            f"| [`{name}`]({name}.md) | {first_line(importlib.import_module(name))} |\n"
            for name in inside
        )
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(inside) + "\n```\n"
    assert not left, left
    return text
