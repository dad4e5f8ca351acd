"""How attackers by vectors chose their backends, folded away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import count, decimal, percent
from evaluation.reports.page.tables import Cell, Row, table
from evaluation.reports.privacy_results import Results, as_number

_LEAD = (
    "Attackers that compare vectors choose their backend, a chain of steps, on speakers of the training set, who are "
    "neither enrolled nor tested: they are dealt into folds, and those of a fold try each chain after it has learnt "
    "from the others. Of the chains that cannot be told from the best, within one standard error over the folds or "
    "within one error, the simplest, which stands first, is taken."
)


def choices(results: Results) -> Html | None:
    """Build the section of the backends that were chosen; None where the results hold none."""
    found = _mappings(results.raw.get("choices"))
    if not found:
        return None
    return element(
        "section",
        element("h2", "Choice of backends"),
        element("p", _LEAD, class_="lead"),
        [_folded(choice) for choice in found],
        id="choices",
    )


def _folded(choice: Mapping[str, Any]) -> Html:
    folds, chains = _mappings(choice.get("folds")), _mappings(choice.get("chains"))
    size = f"{count(as_number(choice.get('vectors')))} vectors of {count(as_number(choice.get('speakers')))} speakers"
    title = f"{choice.get('attacker')} on {choice.get('training')}: {choice.get('chosen')}"
    facts = f"Trained on {size}; chosen because {choice.get('why')}."
    trials = ", ".join(
        f"{len(_items(fold.get('speakers')))} speakers and {count(as_number(fold.get('targets')))} target trials"
        for fold in folds
    )
    columns = ("Chain", "Mean EER", "above the best", "Mean Cllr", "EER of each fold")
    made = table(
        columns,
        [(None, [_row(chain, chain.get("chain") == choice.get("chosen")) for chain in chains])],
        caption="Chains, from the simplest on; Cllr in bits, calibrated on the other folds",
        numbers=(1, 2, 3, 4),
        kind="grid small",
    )
    told = element("p", f"Folds: {trials}.") if trials else None
    return element("details", element("summary", title), element("p", facts), told, made)


def _row(chain: Mapping[str, Any], is_chosen: bool) -> Row:
    name = str(chain.get("chain"))
    header = element("strong", name) if is_chosen else name
    if not _items(chain.get("eer")):
        return header, [Cell(f"not trained: {chain.get('why')}" if chain.get("why") else "not tried"), "", "", ""]
    errors = [as_number(value) for value in _items(chain.get("eer"))]
    cllr = [as_number(value) for value in _items(chain.get("cllr"))]
    above, spread = (as_number(chain.get(key)) for key in ("above_best", "standard_error"))
    mean = sum(cllr) / len(cllr) if cllr else math.nan
    return header, [
        percent(as_number(chain.get("mean_eer")), 2),
        f"{decimal(100 * above)} \N{PLUS-MINUS SIGN} {decimal(100 * spread)}",
        decimal(mean, 3),
        " ".join(decimal(100 * error, 1) for error in errors),
    ]


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _items(value) if isinstance(item, Mapping)]


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
