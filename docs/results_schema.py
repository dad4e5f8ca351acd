"""The JSON Schema of ``results.json``, made from the types of its rows and from their docstrings.

python docs/results_schema.py
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from evaluation.metrics import METRICS
from evaluation.reports.results import Results
from evaluation.reports.rows import FLAT, NOT_IN_JSON, hints_of, key_of
from evaluation.uncertainty import Interval
from spkbase.files import write_json

Json = dict[str, Any]

PATH = Path(__file__).parents[1] / "evaluation/reports/results.schema.json"

_TYPES: Mapping[Any, Json] = {
    float: {"$ref": "#/$defs/number"},
    int: {"type": "integer"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    Any: {},
}
_NUMBER = {
    "description": "Null if unknown.",
    "anyOf": [{"type": ["number", "null"]}, {"enum": ["inf", "-inf"]}],
}
_ENDS = {
    "low": {**_TYPES[float], "description": "Lower end of its interval."},
    "high": {**_TYPES[float], "description": "Upper end of its interval."},
}
_MINIMUM = {  # as `evaluation.uncertainty.Minimum` writes it
    "type": "object",
    "description": "The smallest rate of several attackers with the interval of that minimum.",
    "properties": dict.fromkeys(("attacker", "method", "note"), _TYPES[str])
    | _ENDS
    | {
        "value": _TYPES[float],
        "perfect": {
            "type": "object",
            "description": "What a perfect anonymiser would show: mean and 5 % quantile.",
            "properties": dict.fromkeys(("mean", "low"), _TYPES[float]),
        },
    },
}
_ABOUT = (
    "How much identity an anonymiser leaves. Rates are fractions unless a key ends with percent. Unknown numbers are"
    " null, infinite ones the texts inf and -inf. Further keys may be added within format 1."
)


def results_schema() -> Json:
    """Return the schema of the contents of ``results.json``."""
    definitions: Json = {"number": _NUMBER, "Minimum": _MINIMUM}
    schema = _record(Results, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "results.json of spkver voiceprivacy",
        **schema,
        "description": _ABOUT,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema_of(hint: Any, definitions: Json) -> Json:
    """Return the schema of a type; those of records are added to the definitions."""
    parts = get_args(hint)
    kind = get_origin(hint)
    if hint in _TYPES:
        return dict(_TYPES[hint])
    if kind is UnionType:
        return {"anyOf": [_schema_of(parts[0], definitions), {"type": "null"}]}
    if kind is tuple:
        return {"type": "array", "items": _schema_of(parts[0], definitions)}
    if is_dataclass(hint):
        name = getattr(hint, "__name__", "")
        if name not in definitions:
            definitions[name] = {}  # it may hold itself
            definitions[name] = _record(hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": "object", "additionalProperties": _schema_of(parts[1], definitions)}


def _record(cls: Any, definitions: Json) -> Json:
    """Return the schema of a dataclass."""
    texts = descriptions(cls)
    properties: Json = {}
    required = []
    for part in fields(cls):
        hint = part.metadata.get("type", hints_of(cls)[part.name])
        if part.name == "metrics":
            properties |= _metrics()
        if part.metadata == NOT_IN_JSON or (part.metadata == FLAT and hint is not Interval):
            continue
        key = key_of(part)
        if part.metadata == FLAT:  # an interval
            hint = float
            properties |= _ENDS
        properties[key] = _schema_of(hint, definitions) | part.metadata.get("schema", {})
        if part.name in texts:
            properties[key]["description"] = texts[part.name]
        if part.default is MISSING and part.default_factory is MISSING:
            required.append(key)
    required = list(getattr(cls, "required", required))
    summary = (inspect.getdoc(cls) or "").partition("\n")[0]
    schema = {"type": "object", "description": summary.replace("`", ""), "properties": properties}
    return schema | ({"required": required} if required else {})


def descriptions(cls: type) -> dict[str, str]:
    """Return what the section ``Attributes`` of a docstring says of each attribute."""
    lines = (inspect.getdoc(cls) or "").partition("Attributes\n----------\n")[2].splitlines()
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        if not line.startswith(" "):
            names = line.partition(" : ")[0].split(", ")
            continue
        for name in names:
            texts[name] = f"{texts.get(name, '')} {line.strip()}".strip().replace("`", "")
    return texts


def _metrics() -> Json:
    """Return the schemas of metrics by key; the numbers of a metric with a dot in its name stand in a group."""
    number = dict(_TYPES[float])
    properties: Json = {
        "convention": {"type": "string", "description": "Which definitions the metrics follow."}
    }
    for metric in METRICS:
        group, _, rest = metric.name.partition(".")
        about = {"description": metric.about or metric.title}
        if rest:
            members = properties.setdefault(
                group,
                {"type": "object", "description": f"Metrics of {group.upper()}.", "properties": {}},
            )
            members["properties"][rest] = number | about
        elif metric.points is None:
            properties[group] = number | about
        else:
            measure = {"anyOf": [number, {"type": "object"}]}  # a number, or a record that holds it
            properties[group] = {"type": "object", "additionalProperties": measure, **about}
    impostors = "Equal error rates with impostors who are enrolled and with strangers, if the list has both."
    properties["impostors"] = {
        "type": "object",
        "description": impostors,
        "additionalProperties": number,
    }
    return properties


if __name__ == "__main__":
    write_json(PATH, results_schema())
