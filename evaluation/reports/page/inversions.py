"""What attackers learnt of the anonymiser from the background: how well it is undone, how its vectors are aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.reports.page.markup import Html, element
from evaluation.reports.page.numbers import count, decimal
from evaluation.reports.page.tables import table
from evaluation.reports.privacy_results import Results, as_number

_LEAD = (
    "Attackers whose names end in -undone guess, for each recording, the number that the anonymiser turned it by, and "
    "turn it back; those in -aligned map anonymised vectors to original ones. Both learn from the background, and "
    "maps with own_pairs from the enrolment before and after anonymisation too; what is said here was measured on "
    "speakers whom the estimator, or the map, had not learnt from."
)
_UNDOING = ("Background", "anonymiser", "number", "recordings", "speakers", "cues, kernel", "error", "spread")
_MAPS = ("Attacker", "background", "pairs", "map", "mean of 1 / rank")


def inversions(results: Results) -> Html | None:
    """Build the section of what was undone and aligned; None where the results hold none."""
    undone, aligned = (_mappings(results.raw.get(name)) for name in ("undoing", "alignments"))
    if not undone and not aligned:
        return None
    parts = []
    if undone:
        rows = [(None, [(str(facts.get("background")), _of_undoing(facts)) for facts in undone])]
        caption = "Numbers that are guessed: root mean square error over folds of speakers, and their deviation"
        parts.append(table(_UNDOING, rows, caption=caption, numbers=(3, 4, 6, 7), kind="grid small"))
    if aligned:
        rows = [(None, [(str(facts.get("attacker")), _of_map(facts)) for facts in aligned])]
        caption = "Maps of vectors: how high the right speaker ranks, over folds of speakers"
        parts.append(table(_MAPS, rows, caption=caption, numbers=(2, 4), kind="grid small"))
    return element(
        "section",
        element("h2", "Undoing and alignment"),
        element("p", _LEAD, class_="lead"),
        parts,
        id="inversions",
    )


def _of_undoing(facts: Mapping[str, Any]) -> list[Any]:
    said = f"{facts.get('anonymizer')} (from {'its record' if facts.get('known_by') == 'record' else 'pairs'})"
    sizes = [count(as_number(facts.get(name))) for name in ("recordings", "speakers")]
    errors = [decimal(as_number(facts.get(name)), 4) for name in ("rmse", "spread")]
    return [said, str(facts.get("parameter")), *sizes, f"{facts.get('cues')}, {facts.get('kernel')}", *errors]


def _of_map(facts: Mapping[str, Any]) -> list[Any]:
    scores, chosen = facts.get("mean_reciprocal_rank"), str(facts.get("chosen"))
    score = as_number(scores.get(chosen)) if isinstance(scores, Mapping) else float("nan")
    return [str(facts.get("background")), count(as_number(facts.get("pairs"))), chosen, decimal(score, 3)]


def _mappings(value: Any) -> Sequence[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
