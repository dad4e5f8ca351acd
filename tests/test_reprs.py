"""Public types show themselves in one line, whatever they hold."""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spkbase.showing import LONGEST

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("spkbase", "evaluation", "spkver")


def public_types() -> dict[str, type]:
    """The records of all faces, and those that functions of `evaluation` give."""
    types = {}
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        is_face = parts[-1] == "__init__"
        if not is_face and (not module.startswith("evaluation.") or module.startswith("evaluation.commands")):
            continue
        held = importlib.import_module(module)
        for name in vars(held):
            kind = getattr(held, name)
            if isinstance(kind, type) and is_dataclass(kind) and (is_face or kind.__module__ == module):
                types[f"{kind.__module__}.{kind.__name__}"] = kind
    shown = {name: kind for name, kind in types.items() if not kind.__name__.startswith("_")}
    return {name: kind for name, kind in shown.items() if not name.endswith("Config")}  # which is shown whole


def large(annotation: str) -> Any:
    """A value as large as a field of this annotation may be in practice."""
    for words, value in (
        (("ndarray", "NDArray", "Array"), np.linspace(0, 1, 4000).reshape(40, 100)),
        (("dict", "Mapping"), {f"name {number}": np.arange(50.0) for number in range(100)}),
        (("list", "tuple", "Sequence"), tuple(f"name {number}\n" for number in range(100))),
        (("str", "Path"), "/home/somebody/" + "folder/" * 10),
        (("float",), 0.1234567890123456),
    ):
        if any(word in annotation for word in words):
            return value
    return None


TYPES = public_types()
OWN = [name for name, kind in TYPES.items() if not kind.__dataclass_params__.repr]


@pytest.mark.parametrize("name", sorted(set(TYPES) - set(OWN)))
def test_records_are_shown_in_one_line(name):
    kind = TYPES[name]
    filled = object.__new__(kind)
    for part in fields(kind):
        object.__setattr__(filled, part.name, large(str(part.type)))
    text = repr(filled)
    remedy = "decorate it: @one_line, of spkbase.showing"
    assert "\n" not in text, remedy
    assert len(text) <= LONGEST, remedy
