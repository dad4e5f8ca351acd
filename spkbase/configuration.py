"""Configurations: YAML files and command-line settings become frozen dataclasses, with the same names everywhere.

The error for an unknown key lists similar keys; the error for a value of the wrong type says what was expected. Both
name the line of the key in the file.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, Union

import yaml

from spkbase.errors import ConfigError
from spkbase.files import as_plain, load_yaml, read_yaml_text, write_text

Config = TypeVar("Config")


def load_config(
    kind: type[Config],
    *,
    file: str | Path | None = None,
    settings: Iterable[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Config:
    """Build a configuration from defaults, a YAML file and settings; later sources override earlier ones.

    Parameters
    ----------
    kind : dataclass
        Its fields are the keys; fields that are dataclasses are sections. A class method ``implied(values)`` may return
        values that follow from others, such as the values of a preset; values that are set override them.
    file : path, optional
        YAML mapping.
    settings : iterable of str
        ``key=value`` with dotted keys and YAML values, such as ``ubm.components=64`` or ``trials.nontarget=[IC, TW]``.
    defaults : mapping, optional
        Nested values, which the file overrides.

    Raises
    ------
    ConfigError
        With all problems at once.
    """
    values = dict(defaults or {})
    lines: dict[str, int] = {}
    if file is not None:
        written, lines = _read(file)
        values = merged(values, written)
    problems: list[ConfigError] = []
    for setting in settings:
        try:
            given = _parse_setting(setting)
        except ConfigError as error:
            problems.append(error)
            continue
        values = merged(values, given)
        # an error in a value that a setting overrides must not name a line of the file
        lines = {key: line for key, line in lines.items() if key not in _dotted(given)}

    def refuse(error: ConfigError, name: str) -> None:
        if name in lines:
            problems.append(
                ConfigError(error.text, file=file, line=lines[name], remedy=error.remedy)
            )
        else:
            problems.append(ConfigError(error.text, remedy=error.remedy))

    config = _build(kind, values, "", refuse)
    if problems:
        raise ConfigError("\n".join(map(str, problems)))
    return typing.cast(Config, config)


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested mappings; later mappings override earlier ones, and none is changed.

    Examples
    --------
    >>> merged({"svm": {"C": 1}, "seed": 0}, {"svm": {"kernel": "linear"}})
    {'svm': {'C': 1, 'kernel': 'linear'}, 'seed': 0}
    """
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            before = result.get(key)
            if isinstance(value, Mapping) and isinstance(before, Mapping):
                value = merged(before, value)
            elif isinstance(value, Mapping):
                value = merged(value)
            result[key] = value
    return result


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML mapping; no tags, no repeated keys.

    Raises
    ------
    ConfigError
        If the file is missing, not YAML, or not a mapping.
    """
    return _read(path)[0]


def to_dict(config: Any) -> dict[str, Any]:
    """Return a configuration as a plain mapping, for YAML and JSON."""
    plain = as_plain(config, lambda value: str(value) if isinstance(value, Path) else value)
    assert isinstance(plain, dict)
    return plain


def write_yaml(path: str | Path, config: Any) -> None:
    """Write a resolved configuration as YAML, completely or not at all."""
    write_text(path, yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True))


def check_values(
    section: str,
    config: Any,
    *,
    least: Mapping[str, Any] | None = None,
    choices: Mapping[str, Any] | None = None,
) -> None:
    """Raise ConfigError for the first field of a configuration that is too small or not one of its choices.

    Parameters
    ----------
    section : str
        Name of the configuration, before the dot of a key.
    config : object
    least : mapping, optional
        Smallest value of each field; fields that are None pass.
    choices : mapping, optional
        Possible values of each field.
    """
    for name, low in (least or {}).items():
        value = getattr(config, name)
        kind = "whole number" if isinstance(low, int) else "number"
        if value is not None and not low <= value < math.inf:
            raise ConfigError(f"{section}.{name} is {value}: expected a {kind} of at least {low:g}")
    for name, allowed in (choices or {}).items():
        if getattr(config, name) not in allowed:
            expected = ", ".join(map(str, allowed))
            raise ConfigError(
                f"{section}.{name} is {getattr(config, name)!r}: expected one of {expected}"
            )


def convert(value: Any, hint: Any, name: str) -> Any:
    """Convert a value to the type that a field declares; values of YAML's own types are unchanged."""
    if hint is Any:
        return value
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return convert(value, next(kind for kind in arguments if kind is not type(None)), name)
    if origin is tuple:
        return _tuple(value, arguments, name)
    if origin is typing.Literal:
        if value not in arguments:
            allowed = ", ".join(map(str, arguments))
            raise ConfigError(f"{name} must be one of {allowed}, got {value!r:.80}")
        return value
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"expected {name} to map names to values, got {value!r:.80}")
        return {key: convert(item, arguments[1], f"{name}.{key}") for key, item in value.items()}
    return _scalar(value, hint, name)


def _tuple(value: Any, kinds: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """Convert a sequence, or a single value, to a tuple of some types."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        value = [value]
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(value) != len(kinds):
        raise ConfigError(f"{name} must hold {len(kinds)} values, got {value!r}")
    return tuple(convert(item, kind, name) for item, kind in zip(value, kinds, strict=True))


def _scalar(value: Any, hint: Any, name: str) -> Any:
    """Convert a number, a text or a truth value."""
    if hint is float and isinstance(value, str | int) and not isinstance(value, bool):
        # YAML 1.1 reads 1e-3 as a string
        with suppress(ValueError, OverflowError):
            value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name} must be a finite number, got {value!r}")
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if hint is str and isinstance(value, Path):
        return str(value)
    if isinstance(value, hint) and not (hint in (int, float) and isinstance(value, bool)):
        return value
    expected = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(
        hint, hint
    )
    raise ConfigError(f"{name} must be {expected}, got {value!r}")


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values of a file, and the line of each dotted key."""
    values, node = load_yaml(read_yaml_text(path), file=path)
    lines = _lines(node, path)
    if not isinstance(values, dict | None):
        raise ConfigError(f"expected keys and values, 'key: value', got {values!r:.80}", file=path)
    return values or {}, lines


def _lines(node: Any, path: str | Path | None, prefix: str = "") -> dict[str, int]:
    """Return the line of each dotted key; refuse repeated keys, which YAML's reader accepts."""
    lines: dict[str, int] = {}
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            _lines(part, path)
    if not isinstance(node, yaml.MappingNode):
        return lines
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.tag != "tag:yaml.org,2002:str":
            raise ConfigError(f"not YAML: key {key.value} is not a string", file=path, line=line)
        if prefix + key.value in lines:
            raise ConfigError(f"not YAML: key {key.value!r} is repeated", file=path, line=line)
        lines[prefix + key.value] = line
        lines.update(_lines(value, path, f"{prefix}{key.value}."))
    return lines


def _dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Return the dotted names of all keys of nested values."""
    for key, value in values.items():
        yield prefix + key
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{key}.")


def _parse_setting(setting: str) -> dict[str, Any]:
    key, separator, text = setting.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"setting {setting!r}: expected KEY=VALUE")
    try:
        value, node = load_yaml(text)
        _lines(node, None)
    except ConfigError as error:
        raise ConfigError(f"the value of {setting!r:.200} is {error.text}") from error
    values: dict[str, Any] = value
    for part in reversed(key.strip().split(".")):
        values = {part: values}
    return values


def _build(kind: Any, values: Any, prefix: str, refuse: Callable[[ConfigError, str], None]) -> Any:
    """Build a dataclass from a mapping; None if there are errors, which are collected."""
    wrong: list[str] = []

    def note(error: ConfigError, name: str) -> None:
        wrong.append(name)
        refuse(error, name)

    if not isinstance(values, Mapping):
        name = prefix.rstrip(".")
        return refuse(ConfigError(f"{name} is a section with keys, got {values!r}"), name)
    hints = typing.get_type_hints(kind)
    hints = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    arguments = {}
    values = _with_implied(kind, values, note)
    # build unmentioned sections too: they have presets and checks
    sections = [key for key, hint in hints.items() if dataclasses.is_dataclass(hint)]
    for key in dict.fromkeys([*values, *sections]):
        name = prefix + key
        value = values.get(key)
        if key not in hints:
            note(_unknown(name, kind, prefix), name)
        elif key in sections:
            if value is None:
                value = {}
            arguments[key] = _build(hints[key], value, name + ".", note)
        else:
            try:
                arguments[key] = convert(value, hints[key], name)
            except ConfigError as error:
                note(error, name)
    if not wrong:
        try:
            return kind(**arguments)
        except ConfigError as error:
            refuse(error, error.text.split()[0])
    return None


def _with_implied(
    kind: Any, values: Mapping[str, Any], note: Callable[[ConfigError, str], None]
) -> Mapping[str, Any]:
    """Return the values of a section and those that they imply."""
    if not hasattr(kind, "implied"):
        return values
    try:
        return {**kind.implied(values), **values}
    except ConfigError as error:
        # the error of a dataclass begins with the key that it refuses
        note(error, error.text.split()[0])
        return values


def _unknown(name: str, kind: Any, prefix: str) -> ConfigError:
    here = [field.name for field in dataclasses.fields(kind)]
    last = name.removeprefix(prefix)
    near = [key for key in _keys(kind, prefix) if key.rpartition(".")[2] == last]
    near = near or [prefix + key for key in difflib.get_close_matches(last, here, n=3, cutoff=0.6)]
    if near:
        return ConfigError(f"unknown configuration key {name!r}: did you mean {' or '.join(near)}?")
    return ConfigError(
        f"unknown configuration key {name!r}: {prefix.rstrip('.') or 'there'} has {', '.join(here)}"
    )


def _keys(kind: Any, prefix: str) -> list[str]:
    """Return the dotted names of all keys of a dataclass and its sections."""
    keys = []
    for key, hint in typing.get_type_hints(kind).items():
        keys.append(prefix + key)
        if dataclasses.is_dataclass(hint):
            keys.extend(_keys(hint, f"{prefix}{key}."))
    return keys
