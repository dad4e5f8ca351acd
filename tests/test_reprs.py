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
    """Dataclasses among the public names of all packages, without configurations, which are shown whole."""
    types = {}
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")):
        held = importlib.import_module(".".join(path.relative_to(ROOT).parts[:-1]))
        for kind in vars(held).values():
            if isinstance(kind, type) and is_dataclass(kind) and not kind.__name__.endswith("Config"):
                types[f"{kind.__module__}.{kind.__name__}"] = kind
    return types


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


TYPES = {name: kind for name, kind in public_types().items() if kind.__dataclass_params__.repr}


@pytest.mark.parametrize("name", TYPES)
def test_records_are_shown_in_one_line(name):
    kind = TYPES[name]
    filled = object.__new__(kind)
    for part in fields(kind):
        object.__setattr__(filled, part.name, large(str(part.type)))
    text = repr(filled)
    remedy = "decorate it: @one_line, of spkbase.showing"
    assert "\n" not in text, remedy
    assert len(text) <= LONGEST, remedy
