"""The templates ``page.html.j2``, ``comparison.html.j2`` and ``parts.html.j2``, and the names that they may use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.metrics import SCALE, ceiling_note, meaning_of
from evaluation.plots import TARGETS
from evaluation.reports import formatting, people
from evaluation.reports.about import MEASURES
from evaluation.reports.conditions import GENDERS
from evaluation.reports.rows import number
from evaluation.reports.verdict import word_of
from evaluation.trials import SCENARIO_ORDER
from evaluation.uncertainty import Interval


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a page: a template filled with values, which are escaped.

    Raises
    ------
    LookupError
        If the template names a value that is not given.
    """
    import jinja2

    try:
        text: str = _environment().get_template(template).render(values)
    except jinja2.UndefinedError as error:
        raise LookupError(str(error)) from error
    return text.strip() + "\n"


@cache
def _environment() -> Any:
    """Return the environment of the templates: texts are escaped, and characters that HTML forbids are replaced."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalised,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters |= {
        "count": formatting.count_of,
        "counts": formatting.counts_of,
        "decimal": formatting.decimal,
        "decimal_ends": formatting.decimal_ends,
        "ends": formatting.ends,
        "leaves": formatting.leaves,
        "level": _level,
        "percent": _percent,
        "scenario": formatting.scenario_name,
        "seconds": formatting.seconds,
        "short": formatting.short,
        "unbroken": formatting.unbroken,
    }
    environment.globals |= {
        "categories": "; ".join(f"{name}: {meaning_of(name)}" for name, _ in SCALE),
        "ceiling_note": ceiling_note,
        "chance": 0.5,
        "found_in": people.found_in,
        "lowest_in": people.lowest_in,
        "rank_one_by_chance": people.rank_one_by_chance,
        "genders": GENDERS,
        "measures": MEASURES,
        "name_list": formatting.name_list,
        "scenario_order": SCENARIO_ORDER,
        "style": Markup(Path(__file__).with_name("style.css").read_text("utf-8")),
        "targets": TARGETS,
        "unknown": math.nan,
        "warning_sign": "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}",
    }
    return environment


def _finalised(value: Any) -> Any:
    """Replace characters that HTML forbids in a text that is not markup."""
    return formatting.printable(value) if type(value) is str else value


def _percent(share: Any, decimals: int = 1) -> str:
    return formatting.unbroken(formatting.percent(number(share), decimals))


def _level(eer: Interval) -> int | None:
    return word_of(eer)[1]
