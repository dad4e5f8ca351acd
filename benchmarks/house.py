"""The house in numbers: rooms, arrows, floors and circles of each package, and what the house style counts.

    python -m benchmarks.house [ROOT] [--names]

========  ==========================================================================================================
word      what is counted
========  ==========================================================================================================
room      a folder with modules, or a single module, directly below a package
arrow     a pair of rooms of which the first imports from the second; in brackets those for type checkers alone
floors    rooms in the longest chain of imports, in which a circle is one
circle    rooms, or modules, each of which is reached from each; imports for type checkers alone do not count
pair      two modules that import each other
========  ==========================================================================================================

Imports are read from the source, also those within functions. Where a room has a face, an ``__init__.pyi`` that says
which module each name comes from, ``from evaluation.metrics import eer`` is an arrow to the room, and between modules
one to the module that `eer` comes from. ``--names`` lists what is behind the numbers.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, TypeVar

PACKAGES = ("spkbase", "evaluation", "spkver", "recipes")
MOST_PARAMETERS = 7

Kind = Literal["import", "inside", "typing"]
Node = TypeVar("Node", bound=str)
Graph = Mapping[Node, Iterable[Node]]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Import:
    """One imported name.

    Parameters
    ----------
    name : str
        In full, with the module: ``evaluation.metrics.eer``; without an attribute for ``import evaluation.metrics``.
    line : int
        Where the statement stands.
    kind : {"import", "inside", "typing"}
        Done when the module is loaded, within a function, or by type checkers alone.
    """

    name: str
    line: int
    kind: Kind


@dataclass(frozen=True)
class House:
    """The modules of some packages and who imports whom.

    Parameters
    ----------
    files : dict of str to Path
        Modules by their names.
    imports : dict of str to set of str
        For each module those that it imports from, at any place.
    checked : dict of str to set of str
        For each module those that it imports from for type checkers alone.
    """

    files: dict[str, Path]
    imports: dict[str, set[str]] = field(default_factory=dict)
    checked: dict[str, set[str]] = field(default_factory=dict)


def modules(root: Path, packages: Iterable[str] = PACKAGES) -> dict[str, Path]:
    """Return the files of all modules of the packages below `root`, by the module's name, in order."""
    paths = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imports_of(path: Path) -> list[Import]:
    """Return all that a module, or the ``.pyi`` of one, imports, in the order of its lines.

    Relative imports begin with their dots, as they are written.
    """
    return list(_imports_in(ast.parse(path.read_text(encoding="utf-8")), "import"))


def _imports_in(node: ast.AST, kind: Kind) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, kind) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            start = "." * child.level + (f"{child.module}." if child.module else "")
            yield from (Import(start + alias.name, child.lineno, kind) for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for statement in child.body:
                yield from _imports_in(ast.Module([statement], []), "typing")
            for statement in child.orelse:
                yield from _imports_in(ast.Module([statement], []), kind)
        elif isinstance(child, Function) and kind == "import":
            yield from _imports_in(child, "inside")
        else:
            yield from _imports_in(child, kind)


def absolute(name: str, module: str, files: Mapping[str, Path]) -> str:
    """Return the full name of what a module imports: dots, and modules beside a script, are resolved."""
    is_package = files[module].stem == "__init__"
    dots = len(name) - len(name.lstrip("."))
    if dots:
        above = module.split(".")[: len(module.split(".")) - dots + is_package]
        return ".".join([*above, name[dots:]])
    beside = f"{module.rpartition('.')[0]}.{name}"
    if name.split(".")[0] not in PACKAGES and module_of(beside, files) not in (None, module.rpartition(".")[0]):
        return beside
    return name


def module_of(name: str, files: Mapping[str, Path]) -> str | None:
    """Return the module that a full name is imported from: through the faces of rooms, to the one that defines it.

    None if it is none of `files`.
    """
    parts = name.split(".")
    known = next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in files), None)
    if known is None or known == name or files[known].stem != "__init__":
        return known
    face = files[known].with_suffix(".pyi")
    wanted = parts[known.count(".") + 1]
    if face.exists():
        for imported in imports_of(face):
            if imported.name.rpartition(".")[2] == wanted:
                return module_of(absolute(imported.name, known, files), files)
    return known


def read_house(files: Mapping[str, Path]) -> House:
    """Read who imports whom among modules."""
    house = House(dict(files))
    for module, path in files.items():
        at_work: set[str] = set()
        checked: set[str] = set()
        for imported in imports_of(path):
            target = module_of(absolute(imported.name, module, files), files)
            if target not in (None, module):
                (checked if imported.kind == "typing" else at_work).add(str(target))
        house.imports[module], house.checked[module] = at_work, checked - at_work
    return house


def rooms(names: Iterable[str], package: str) -> dict[str, str]:
    """Return the room of each module of a package, as ``evaluation.metrics``; the package's own face is in none."""
    depth = package.count(".") + 2
    inside = (name for name in names if name.startswith(f"{package}.") and not name.endswith(".__main__"))
    return {name: ".".join(name.split(".")[:depth]) for name in inside}


def arrows(imports: Graph[str], room_of: Mapping[str, str]) -> dict[str, set[str]]:
    """Return for each room those that its modules import from."""
    graph: dict[str, set[str]] = {room: set() for room in room_of.values()}
    for module, room in room_of.items():
        graph[room] |= {room_of[target] for target in imports.get(module, ()) if target in room_of} - {room}
    return graph


def components(graph: Graph[Node]) -> list[list[Node]]:
    """Return the strongly connected components of a graph; each comes behind all that it leads to.

    References
    ----------
    R. Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1(2), 1972.
    """
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    waiting: list[Node] = []
    components: list[list[Node]] = []
    for start in sorted(graph):
        path = [(start, iter(sorted(graph[start])))] if start not in order else []
        while path:
            node, targets = path[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                waiting.append(node)
            following = next((target for target in targets if target in graph and target not in order), None)
            if following is not None:
                path.append((following, iter(sorted(graph[following]))))
                continue
            path.pop()
            open_targets = [target for target in graph[node] if target in waiting]
            lowest[node] = min([lowest[node], *(lowest[target] for target in open_targets)])
            if lowest[node] == order[node]:
                place = waiting.index(node)
                components.append(sorted(waiting[place:]))
                del waiting[place:]
    return components


def circles(graph: Graph[Node]) -> list[list[Node]]:
    """Return the circles of a graph: sets of two nodes or more, each of which is reached from each."""
    return [component for component in components(graph) if len(component) > 1]


def floors(graph: Graph[Node]) -> int:
    """Return how many nodes the longest chain has, in which a circle counts as one."""
    depth: dict[Node, int] = {}
    for component in components(graph):
        below = [depth[target] for node in component for target in graph[node] if target in depth]
        depth |= dict.fromkeys(component, 1 + max(below, default=0))
    return max(depth.values(), default=0)


def mutual(graph: Graph[Node]) -> list[tuple[Node, Node]]:
    """Return the pairs of nodes that lead to each other."""
    return sorted((a, b) for a in graph for b in graph[a] if a < b and b in graph and a in graph[b])


def code_lines(path: Path) -> int:
    """Return how many lines of a module hold code: no blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    silent: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            silent |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(number not in silent and bool(line.strip()) and line.strip()[0] != "#" for number, line in lines)


def wide_functions(path: Path, most: int = MOST_PARAMETERS) -> list[str]:
    """Return the functions of a module with more parameters than `most`; self and commands of click do not count."""
    wide = []
    for name, node, is_method in _functions(ast.parse(path.read_text(encoding="utf-8"))):
        given = node.args
        parameters = [*given.posonlyargs, *given.args]
        if is_method and not _decorated(node, "staticmethod"):
            parameters = parameters[1:]
        count = len(parameters) + len(given.kwonlyargs) + (given.vararg is not None) + (given.kwarg is not None)
        if count > most and not _decorated(node, "command", "group"):
            wide.append(f"{name} ({count})")
    return wide


def undocumented(path: Path) -> list[str]:
    """Return the public names of a module that have no docstring: itself, functions, classes and their methods."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    public: list[tuple[str, Definition]] = []
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            public.append((node.name, node))
            if isinstance(node, ast.ClassDef):
                methods = [child for child in node.body if isinstance(child, Function)]
                public += [(f"{node.name}.{child.name}", child) for child in methods if child.name[0] != "_"]
    silent = [
        name for name, node in public if not ast.get_docstring(node) and not _decorated(node, "overload", "setter")
    ]
    return found + silent


def _functions(node: ast.AST, above: str = "") -> Iterator[tuple[str, Function, bool]]:
    """Yield all functions below a node, by their names in full, and whether they are methods."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            name = f"{above}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child, isinstance(node, ast.ClassDef)
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, above)


def _decorated(node: Definition, *names: str) -> bool:
    """Return whether the last word of a decorator is one of the names: ``@click.command(...)`` is "command"."""
    bare = (decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list)
    return any(ast.unparse(decorator).rpartition(".")[2] in names for decorator in bare)


def packages_of(files: Mapping[str, Path]) -> list[str]:
    """Return the packages that are there, and those folders of `recipes` that hold modules."""
    there = dict.fromkeys(name.split(".")[0] for name in files)
    inside = dict.fromkeys(".".join(name.split(".")[:2]) for name in files if name.count(".") > 1)
    return [*there, *(name for name in inside if name.startswith("recipes."))]


def account(house: House, package: str) -> tuple[dict[str, int | str], dict[str, list[str]]]:
    """Return the numbers of a package, and the names behind those that should be zero."""
    room_of = rooms(house.files, package)
    inside = {name: targets for name, targets in house.imports.items() if f"{name}.".startswith(f"{package}.")}
    paths = {name: house.files[name] for name in inside}
    graph = arrows(house.imports, room_of)
    for_checkers = arrows(house.checked, room_of)
    more = sum(len(targets - graph[room]) for room, targets in for_checkers.items())
    names = {
        "circles of rooms": [" - ".join(circle) for circle in circles(graph)],
        "circles of modules": [" - ".join(circle) for circle in circles(inside)],
        "pairs": [" - ".join(pair) for pair in mutual(inside)],
        f"functions over {MOST_PARAMETERS}": [
            f"{name}: {function}" for name in paths for function in wide_functions(paths[name])
        ],
        "no docstring": [f"{name}: {public}" for name in paths for public in undocumented(paths[name])],
    }
    numbers: dict[str, int | str] = {
        "rooms": len(graph),
        "arrows": f"{sum(map(len, graph.values()))} ({more})",
        "floors": floors(graph),
        "modules": len(paths),
        **{name: len(values) for name, values in names.items()},
        "lines": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths.values()),
        "code lines": sum(map(code_lines, paths.values())),
    }
    return numbers, names


def main() -> None:
    """Print the account of a tree, this one by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--names", action="store_true", help="list what is behind the numbers")
    arguments = parser.parse_args()
    house = read_house(modules(arguments.root))
    packages = packages_of(house.files)
    accounts = {package: account(house, package) for package in packages}
    whole = arrows(house.imports, {name: name.split(".")[0] for name in house.files})
    titles = list(accounts[packages[0]][0])
    print(" " * 19, *(f"{package:>10}" for package in packages))
    for title in titles:
        print(f"{title:19}", *(f"{accounts[package][0][title]:>{max(10, len(package))}}" for package in packages))
    print(f"\npackages: {len(whole)}, floors {floors(whole)}, circles {len(circles(whole))}")
    between = [" - ".join(circle) for circle in circles(house.imports)]
    print(f"circles of modules in the whole house: {len(between)}")
    benchmarks = modules(arguments.root, ["benchmarks"]).values()
    texts = [path.read_text(encoding="utf-8") for path in chain(house.files.values(), benchmarks)]
    print(f"lines without tests, with benchmarks: {sum(len(text.splitlines()) for text in texts)}")
    if arguments.names:
        of_packages = [" - ".join(circle) for circle in circles(whole)]
        print("".join(f"\npackages, circle: {circle}" for circle in of_packages), end="")
        print("".join(f"\nwhole house, circle of modules: {circle}" for circle in between), end="")
        for package in packages:
            for title, values in accounts[package][1].items():
                print("".join(f"\n{package}, {title}: {value}" for value in values), end="")
        print()


if __name__ == "__main__":
    main()
