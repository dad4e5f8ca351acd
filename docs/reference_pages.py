"""The reference: a page for each room, with all names of its face, made from the faces and the docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "evaluation": "Scores and embeddings in, evidence out; usable alone",
    "spkver": "Speech in, scores out",
    "spkbase": "What both stand on: files, workers, runs, configurations",
}


LONGEST_VALUE = 90  # characters of a constant that is shown as it is


class Name(NamedTuple):
    """A public name: where it is entered, the module that holds it, and what it is called there."""

    name: str
    module: str
    original: str


def rooms() -> dict[str, list[Name]]:
    """Return the public names of each room, and of the modules beside the rooms, in the order of their faces."""
    found = {}
    for package in PACKAGES:
        for face in sorted((ROOT / package).rglob("__init__.py")):
            room = ".".join(face.parent.relative_to(ROOT).parts)
            if names := names_of_face(face, room):
                found[room] = names
        for path in sorted((ROOT / package).glob("*.py")):
            if path.stem not in ("__init__", "__main__", "cli"):
                module = f"{package}.{path.stem}"
                found[module] = [Name(name, module, name) for name in names_of_module(path)]
    return found


def names_of_face(face: Path, room: str) -> list[Name]:
    """Return the names that a package hands out, a line `from ROOM.module import name` of its `__init__.py` each."""
    return [
        Name(alias.asname or alias.name, line.module or room, alias.name)
        for line in ast.parse(face.read_text(encoding="utf-8")).body
        if isinstance(line, ast.ImportFrom) and (line.module or "").startswith(f"{room}.")
        for alias in line.names
    ]


def names_of_module(path: Path) -> list[str]:
    """Return the functions and classes that a module makes and does not hide."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [line.name for line in body if isinstance(line, kinds) and not line.name.startswith("_")]


def comment_of(name: Name) -> str:
    """Return the comment that stands above a constant or behind it, with its bars as signs."""
    path = inspect.getsourcefile(importlib.import_module(name.module))
    assert path is not None
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.startswith((f"{name.original} =", f"{name.original}:")):
            behind = line.partition("  # ")[2]
            if behind:
                return behind.strip().replace("|", "\\|")
            above = []
            while number and lines[number - 1].startswith("# "):
                number -= 1
                above.insert(0, lines[number][2:])
            return " ".join(above).replace("|", "\\|")
    return ""


def constant(thing: object, name: Name) -> str:
    """Return what is said of a constant, and its value where that is short."""
    value = repr(thing).replace("typing.", "")
    plain = len(value) <= LONGEST_VALUE and not any(sign in value for sign in ("`", "|", "\\n", " at 0x"))
    shown = f"``{value}``" if plain else ""
    return ": ".join(filter(None, [comment_of(name), shown]))


def first_line(thing: object) -> str:
    """Return the first line of a docstring as Markdown that a table can hold."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return text.replace("``", "`").replace("*", "\\*").replace("|", "\\|")


def page(room: str, names: list[Name]) -> str:
    """Return the page of a room: its docstring, a table of its names, and each of them."""
    face = importlib.import_module(room)
    table, entries = [], []
    for name in names:
        thing = getattr(face, name.name)
        target = f"{room}.{name.name}"
        if inspect.isclass(thing):
            entries.append(f".. autoclass:: {target}\n   :members:\n")
        elif inspect.isroutine(thing):
            entries.append(f".. autofunction:: {target}\n")
        else:
            entries.append(
                f".. py:data:: {name.name}\n   :type: {type(thing).__name__}\n\n   {constant(thing, name)}\n"
            )
        described = inspect.isclass(thing) or inspect.isroutine(thing)
        sentence = first_line(thing) if described else constant(thing, name)
        # a package's own face leads to what its rooms explain
        held = ".".join(name.module.split(".")[:2]) + "." + name.original if room in PACKAGES else target
        table.append(f"| [`{name.name}`](#{held}) | {sentence} |")
    text = f"# {room}\n\n```{{eval-rst}}\n.. automodule:: {room}\n   :no-members:\n```\n"
    if table:
        text += "\n| name | what it is |\n|---|---|\n" + "\n".join(table) + "\n"
    if entries and room not in PACKAGES:
        text += "\n```{eval-rst}\n" + "\n".join(entries) + "```\n"
    return text


def write(folder: Path) -> None:
    """Write a page for each room and their index; what has not changed keeps its date, and is not built again."""
    folder.mkdir(exist_ok=True)
    found = rooms()
    wanted = {f"{room}.md": page(room, names) for room, names in found.items()} | {"index.md": index(found)}
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for file, text in wanted.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def index(found: dict[str, list[Name]]) -> str:
    """Return the page that leads to the rooms."""
    text = (
        "# Reference\n\nEvery public name, room by room. Names come from rooms: `from evaluation.metrics import eer`.\n"
    )
    for package, sentence in PACKAGES.items():
        inside = [room for room in found if room.partition(".")[0] == package]
        text += f"\n## {package}\n\n{sentence}.\n\n| room | what it holds |\n|---|---|\n"
        text += "".join(f"| [`{room}`]({room}.md) | {first_line(importlib.import_module(room))} |\n" for room in inside)
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(inside) + "\n```\n"
    return text
