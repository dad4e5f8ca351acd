"""``spkver-eval linkability-batch``: linkability of all attackers against all anonymisers, from one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import click

from evaluation.commands.linkability import linkability
from evaluation.commands.linkability_compare import linkability_compare
from evaluation.commands.options import FILE
from spkbase.console import Command
from spkbase.errors import DataError, Problems
from spkbase.files import load_yaml, read_yaml_text

_LISTS = ("attackers", "anonymisers")
_SOURCES = ("enroll", "trial", "scores", "key", "ranks", "model_speakers", "segment_speakers")
_OURS = {"output", "json", "help", *_SOURCES}


@dataclass(frozen=True)
class Batch:
    """What a file asks for.

    Attributes
    ----------
    attackers, anonymisers : tuple of str
        Each attacker meets each anonymiser.
    sources : dict of str to str
        Paths by the command's options, in which {attacker} and {anonymiser} stand for their names; relative to the
        file.
    originals : tuple of str
        Anonymisers that are original speech: in the curves, not in the comparisons.
    options, compare : dict
        Options of the commands ``linkability`` and ``linkability-compare`` by their names, such as ``utterances``.
    """

    attackers: tuple[str, ...]
    anonymisers: tuple[str, ...]
    sources: dict[str, str]
    originals: tuple[str, ...]
    options: dict[str, Any]
    compare: dict[str, Any]


@click.command("linkability-batch", cls=Command)
@click.argument("config", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="Folder; each run gets ATTACKER/ANONYMISER in it.")
def linkability_batch(config: Path, output: Path) -> None:
    """Compute linkability for each attacker and anonymiser that the YAML file CONFIG names, then compare them.

    \b
    attackers: [ECAPA, ResNet]
    anonymisers: [orig, B3, B5]
    originals: [orig]
    enroll: vectors/{attacker}/{anonymiser}/enroll.npz
    trial: vectors/{attacker}/{anonymiser}/trial.npz
    options: {utterances: [1, 3, 5], sizes: log, bootstrap: 1000, seed: 0}
    compare: {permutations: 1000}
    """
    batch = read_batch(config)
    runs = []
    for attacker, anonymiser in product(batch.attackers, batch.anonymisers):
        folder = output / attacker / anonymiser
        names = {"{attacker}": attacker, "{anonymiser}": anonymiser}
        paths = {name: config.parent / _filled(path, names) for name, path in batch.sources.items()}
        click.echo(f"{attacker}/{anonymiser}:")
        _run(linkability, "linkability", [], {**paths, **batch.options, "output": folder})
        runs.append(f"{attacker}/{anonymiser}={folder}")
        click.echo("")
    n_utterances = max(1, len(_listed(batch.options.get("utterances"))))
    if len(batch.attackers) * (len(batch.anonymisers) - len(batch.originals)) * n_utterances > 1:
        options = {"original": list(batch.originals), **batch.compare, "output": output}
        _run(linkability_compare, "linkability-compare", runs, options)


def read_batch(path: Path) -> Batch:
    """Read and check what a file asks for.

    Raises
    ------
    DataError
        With all that is missing, unknown or of the wrong kind.
    """
    content, _ = load_yaml(read_yaml_text(path), file=path)
    if not isinstance(content, dict):
        raise DataError(f"expected attackers, anonymisers and paths, got {type(content).__name__}", file=path)
    problems = Problems(path)
    known = (*_LISTS, *_SOURCES, "originals", "options", "compare")
    for name in content:
        if name not in known:
            problems.add(f"unknown key {name!r}", remedy=f"use {', '.join(known)}")
    lists = {name: _names(content.get(name), name, problems) for name in (*_LISTS, "originals")}
    for name in _LISTS:
        if not lists[name]:
            problems.add(f"expected {name}: a list of one or more names")
    for name in sorted(set(lists["originals"]) - set(lists["anonymisers"])):
        problems.add(f"the original {name!r} is none of the anonymisers")
    sources = {name: content[name] for name in _SOURCES if name in content}
    for name, text in sources.items():
        if not isinstance(text, str):
            problems.add(f"expected {name}: a path, got {text!r}")
    if not {"enroll", "scores", "ranks"} & set(sources):
        problems.add("expected paths: enroll and trial, scores and key, or ranks")
    blocks = {name: content.get(name) or {} for name in ("options", "compare")}
    for name, command in (("options", linkability), ("compare", linkability_compare)):
        _check_options(blocks[name], name, command, problems)
    problems.raise_if_any()
    return Batch(
        tuple(lists["attackers"]), tuple(lists["anonymisers"]), sources, tuple(lists["originals"]), **blocks
    )  # fmt: skip


def _names(value: Any, name: str, problems: Problems) -> list[str]:
    """Names that may be folders: texts without slashes, each once."""
    names = [str(entry) for entry in _listed(value)]
    for text in names:
        if not text.strip() or "/" in text or "\\" in text or "=" in text or text in (".", ".."):
            problems.add(f"{name}: expected names that can be folders, got {text!r}")
    for text in sorted({text for text in names if names.count(text) > 1}):
        problems.add(f"{name}: {text!r} stands there twice")
    return names


def _check_options(block: Any, name: str, command: click.Command, problems: Problems) -> None:
    if not isinstance(block, Mapping):
        problems.add(f"expected {name}: options by name, got {block!r}")
        return
    known = {
        option.removeprefix("--")
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    } - {other.replace("_", "-") for other in _OURS}
    for option in block:
        if str(option).replace("_", "-") not in known:
            problems.add(f"{name}: unknown option {option!r}", remedy=f"use {', '.join(sorted(known))}")


def _run(command: click.Command, name: str, arguments: list[str], options: Mapping[str, Any]) -> None:
    """Run a command as its user would: options from their names and values."""
    words = list(arguments)
    for option, value in options.items():
        flag = f"--{str(option).replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag] if value else []
        else:
            words += [word for entry in _listed(value) for word in (flag, str(entry))]
    with command.make_context(f"spkver-eval {name}", words) as ctx:
        click.Command.invoke(command, ctx)  # an error ends the whole batch, or is told with others


def _filled(path: str, names: Mapping[str, str]) -> str:
    for mark, name in names.items():
        path = path.replace(mark, name)
    return path


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
