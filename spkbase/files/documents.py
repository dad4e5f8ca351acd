"""JSON and YAML from elsewhere: data of a bounded size and depth, or one error.

The parsers of both raise many kinds of errors on what people and accidents write, follow nesting until Python's stack
ends, and let a few lines of YAML stand for billions of values (aliases of aliases).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spkbase.errors import ConfigError, DataError
from spkbase.files.spooling import whole_file

if TYPE_CHECKING:
    import yaml

_DEEPEST = 64
_LONGEST_YAML = 1 << 18  # characters; its parser reads a hundred thousand a second
_MOST_VALUES = 50_000
_LARGEST = 10**100
# what constructors of PyYAML raise of `!!bool x`, `!!int ''`, 2001-99-99, `!!timestamp x`, numbers of 5000 digits
_BROKEN_YAML = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError, RecursionError)


_MOST_YAML_BYTES = 4 * (_LONGEST_YAML + 1)


def load_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    DataError
        With the line: it cannot be read, is no JSON in UTF-8, or its values lie deeper than 64 in each other.
    """
    path = Path(path)
    try:
        document = json.loads(whole_file(path).read_bytes().decode("utf-8"), parse_int=_integer)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except json.JSONDecodeError as error:
        raise DataError(f"expected JSON: {error.msg}", file=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected JSON: {error}", file=path) from error
    level: list[Any] = [[document]]
    for _ in range(_DEEPEST):
        values: Iterator[Any] = (
            value for holder in level for value in (holder.values() if isinstance(holder, dict) else holder)
        )
        level = [value for value in values if isinstance(value, dict | list)]
        if not level:
            return document
    raise DataError(f"expected JSON whose values lie at most {_DEEPEST} deep in each other", file=path)


def load_yaml(
    text: str, loader: type[yaml.SafeLoader] | None = None, *, file: str | Path | None = None
) -> tuple[Any, yaml.Node | None]:
    """Read a document of YAML safely: no tags of Python.

    Parameters
    ----------
    text : str
        Its text.
    loader : type of yaml.SafeLoader, optional
        One that is stricter.
    file : path, optional
        Where it comes from, for errors.

    Returns
    -------
    value : object
        None for an empty document.
    node : yaml.Node or None
        The same as it was written, with its lines.

    Raises
    ------
    ConfigError
        With the line: it is no YAML, is longer than 262,144 characters, holds itself, or stands for more than 50,000
        values or deeper than 64.
    """
    import yaml

    if len(text) > _LONGEST_YAML:
        raise ConfigError(f"expected YAML of at most {_LONGEST_YAML} characters, got {len(text)}", file=file)
    kind: Any = loader or yaml.SafeLoader
    try:
        reader = _bounded(kind)(text)
        try:
            node = reader.get_single_node()
            if node is None:
                return None, None
            _count(node, {}, 0)
            return reader.construct_document(node), node
        finally:
            reader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise ConfigError(f"not YAML: {getattr(error, 'problem', None) or error}", file=file, line=line) from error
    except ConfigError as error:
        raise ConfigError(error.text, file=file) from error
    except _BROKEN_YAML as error:
        raise ConfigError(f"not YAML: {type(error).__name__}: {error}"[:200], file=file) from error


def read_yaml_text(path: str | Path) -> str:
    """Read the text of a YAML file.

    Raises
    ------
    ConfigError
        If it cannot be read or is not in UTF-8.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_YAML_BYTES).decode("utf-8")  # of /dev/zero too
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"not a text in UTF-8: {error}", file=path, remedy="name a YAML file") from error


@cache
def _bounded(loader: Any) -> Any:
    """A loader that looks at the depth while it reads: its time grows with the square of the open brackets."""
    from yaml.scanner import ScannerError

    def open_bracket(self: Any, token: Any) -> None:
        if self.flow_level == _DEEPEST:
            text = f"values lie at most {_DEEPEST} deep in each other"
            raise ScannerError(None, None, text, self.get_mark())
        loader.fetch_flow_collection_start(self, token)

    def integer(self: Any, node: Any) -> int:
        return _integer(loader.construct_yaml_int(self, node))

    bounded: Any = type("BoundedLoader", (loader,), {"fetch_flow_collection_start": open_bracket})
    bounded.add_constructor("tag:yaml.org,2002:int", integer)
    return bounded


def _integer(text: str | int) -> int:
    """A whole number that others can be computed with: one of more digits than this is beyond floats."""
    number = int(text)
    if abs(number) > _LARGEST:
        raise ValueError("a number of more than 100 digits")
    return number


def _count(node: Any, counts: dict[int, int | None], depth: int) -> int:
    """Count the values that a node stands for, every alias in full."""
    if id(node) in counts:
        known = counts[id(node)]
        if known is None:
            raise ConfigError("not YAML that is read here: a value holds itself")
        return known
    if depth == _DEEPEST:
        raise ConfigError(f"expected YAML whose values lie at most {_DEEPEST} deep in each other")
    counts[id(node)] = None
    total = 1
    if isinstance(node.value, list):
        for item in node.value:
            for part in item if isinstance(item, tuple) else (item,):
                total += _count(part, counts, depth + 1)
                if total > _MOST_VALUES:
                    raise ConfigError(f"expected YAML of at most {_MOST_VALUES} values, aliases in full")
    counts[id(node)] = total
    return total
