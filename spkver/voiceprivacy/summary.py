"""The result of each scenario: the strongest attacker, who leaves the least privacy; and that in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.reports import SCENARIO_ORDER, WHOLE_LIST, secondary_results, strongest

Json = dict[str, Any]

# who the attacker is, as a sentence has it
_KNOWS = {
    "ignorant": "which does not know of the anonymisation",
    "lazy-informed": "which anonymises its enrolment speech",
    "semi-informed": "which anonymises its enrolment and its training speech",
}


def number(value: Any) -> float:
    """Return a number of the results; those that JSON has as text or not at all too."""
    return float("nan") if value is None else float(value)


def places(conditions: Sequence[Json]) -> Iterator[tuple[tuple[str, str, str], list[Json]]]:
    """Yield (set, sex, scenario) with its conditions, one for each attacker, in the order of the conditions."""
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for condition in conditions:
        groups.setdefault((condition["dataset"], condition["gender"], condition["scenario"]), []).append(condition)
    yield from groups.items()


def summarise(conditions: Sequence[Json]) -> list[Json]:
    """Return the strongest attacker of each set, sex and scenario: the least privacy over attackers is the result."""
    rows = []
    for (dataset, gender, scenario), part in places(conditions):
        best = strongest(part)
        ends = best["intervals"].get("eer.rocch", {})
        beside = secondary_results(part)
        identification = beside.identification.to_dict("share")
        row = {
            "dataset": dataset,
            "gender": gender,
            "scenario": scenario,
            "strongest": best["attacker"],
            "eer": best["eer"]["rocch"],
            "low": ends.get("low"),
            "high": ends.get("high"),
            **_worst(part),
            "n_enrolled": best["n_enrolled"],
            "n_target": best["n_target"],
            "n_nontarget": best["n_nontarget"],
            "attackers": {condition["attacker"]: condition["eer"]["rocch"] for condition in part},
            "draws": list(beside.draws),
            "tested": list(beside.tested),
            "levels": {level: figure.to_dict("eer") for level, figure in beside.levels.items()},
            "without_content": beside.without_content.to_dict("eer"),
            "closed_set": beside.closed_set.to_dict("eer"),
            "identification": identification and {**identification, "candidates": list(beside.candidates)},
        }
        rows.append({**row, "verdict": _sentence(row)})
    return sorted(rows, key=lambda row: (row["dataset"], SCENARIO_ORDER.index(row["scenario"])))


def _worst(part: Sequence[Json]) -> Json:
    """ZEBRA and linkability where they are worst over attackers, with whose they are."""
    found = {
        one["attacker"]: {
            **{name: one["zebra"][name] for name in ("population", "individual")},
            "linkability_all": one["linkability"]["linkability"][-1] if one["linkability"] else None,
        }
        for one in part
    }
    by = {
        name: max(found, key=lambda who, name=name: _or_nothing(found[who][name]))  # type: ignore[misc]
        for name in ("population", "individual", "linkability_all")
    }
    tags = {one["attacker"]: one["zebra"]["tag"] for one in part}
    return {**{name: found[who][name] for name, who in by.items()}, "tag": tags[by["individual"]], "worst_by": by}


def _or_nothing(value: Any) -> float:
    return -math.inf if math.isnan(number(value)) else number(value)


def verdict(summary: Sequence[Json], *, level: float, simulated: bool, draws: int = 0) -> str:
    """Return one or two sentences for the top of the page: the least privacy left, and where speech started from.

    `draws` is the number of anonymised versions of the training set that semi-informed attackers learnt from, where it
    is to be told.
    """
    start = "SIMULATED speech, which says nothing about real speech: on" if simulated else "On"
    anonymised = [row for row in summary if row["scenario"] != "original"]
    if not anonymised:  # attackers of others may serve original speech alone
        return f"{start} anonymised speech no attacker has scores: nothing can be said of its privacy."
    worst = min(anonymised, key=lambda row: row["eer"])
    same = [row for row in summary if all(row[name] == worst[name] for name in ("dataset", "gender"))]
    before = [row for row in same if row["scenario"] == "original"]
    without = "".join(f"; without anonymisation it is {_percent(row['eer'])} ({row['strongest']})" for row in before)
    knows = _KNOWS[worst["scenario"]]
    if draws and worst["scenario"] == "semi-informed":
        knows += f", having learnt from {draws} version{'s' if draws > 1 else ''} of it"
    return (
        f"{start} {_where(worst)} ({worst['n_enrolled']} enrolled speakers) the strongest {worst['scenario']} attacker"
        f" ({worst['strongest']}), {knows}, has an equal error rate of {_rate(worst, level)}{_of_draws(worst)}"
        f"{_of_levels(worst)}{without}. A guess would have 50 %.{_of_closed_set(worst)}"
    )


def _of_draws(row: Mapping[str, Any]) -> str:
    """The EER in each draw, where there are several."""
    if len(row["draws"]) < 2:
        return ""
    each = ", ".join(f"{100 * rate:.1f}" for rate in row["draws"])
    return f", the mean of {len(row['draws'])} draws of the anonymiser ({each})"


def _of_levels(row: Mapping[str, Any]) -> str:
    """What attackers of the other levels of knowledge reach, and those that do not read what is said."""
    figures = {**row["levels"], "without reading what is said": row["without_content"]}
    others = [(name, figure) for name, figure in figures.items() if figure and figure["attacker"] != row["strongest"]]
    lists = f" of {' and '.join(map(str, row['tested']))} recordings" if row["tested"] else ""
    return "".join(
        f"; {name}{lists if name == WHOLE_LIST else ''} {_percent(figure['eer'])} ({figure['attacker']})"
        for name, figure in others
    )


def _of_closed_set(row: Mapping[str, Any]) -> str:
    """What an attacker reaches who knows the enrolled, where the lists tell."""
    closed, named = row["closed_set"], row["identification"]
    if closed is None or named is None:
        return ""
    names = [named["attacker"], closed["attacker"]]
    by_name, by_rate = ("" if name == row["strongest"] else f" ({name})" for name in names)
    return (
        f" One who knows that the speaker is among the enrolled errs in {_percent(closed['eer'])}{by_rate}, and names"
        f" the speaker of {100 * named['share']:.0f} % of the utterances, first of {_candidates(named)}{by_name}."
    )


def _candidates(named: Mapping[str, Any]) -> str:
    least, most = named["candidates"]
    return f"{most}" if least == most else f"{least} to {most}"


def _sentence(row: Mapping[str, Any]) -> str:
    linked = ""
    if row["linkability_all"] is not None:
        by = row["worst_by"]["linkability_all"]
        finds = "and finds" if by == row["strongest"] else f"and {by} finds"
        share = 100 * row["linkability_all"]
        linked = f", {finds} the speaker of an utterance among all enrolled ones in {share:.0f} % of the cases"
    return (
        f"{_where(row)}, {row['scenario']}: the strongest attacker ({row['strongest']}) has an equal error rate of"
        f" {_percent(row['eer'])}{linked}."
    )


def _where(row: Mapping[str, Any]) -> str:
    sex = {"f": " (women)", "m": " (men)"}.get(row["gender"], "")
    return f"{row['dataset']}{sex}"


def _rate(row: Mapping[str, Any], level: float) -> str:
    smallest = row.get("minimum_over_scenarios") or row.get("minimum")
    ends = smallest or row
    low, high = number(ends["low"]), number(ends["high"])
    if low != low or high != high:
        return _percent(row["eer"])
    of = " of the smallest over attackers and scenarios:" if smallest else ""
    return f"{_percent(row['eer'])} ({100 * level:g} % interval{of} {_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
