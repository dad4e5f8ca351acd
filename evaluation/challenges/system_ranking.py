"""Rank systems from their files, as ``spkver-eval rank`` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evaluation.challenges.baselines import (
    OFFICIAL,
    baseline_figures,
    baseline_systems,
    check_label,
    official_name,
)
from evaluation.challenges.ranking import (
    NOT_STATED,
    RULES,
    Assignment,
    ComparedSystem,
    OrderingRule,
    SystemOrder,
    order_systems,
    orders_to_dict,
)
from evaluation.challenges.systems import (
    ChallengeFigure,
    measured_utilities,
    measured_utility,
    read_figures,
    read_system,
)
from spkbase.errors import DataError
from spkbase.showing import one_line

MIXED = "the EERs are of different attackers or definitions ('EER of'), so ranks compare these too"


@one_line
@dataclass(frozen=True, eq=False)
class SystemRanking:
    """Systems in order, by each utility within each minimum EER.

    Attributes
    ----------
    systems : tuple of ComparedSystem
        In the order of their files; their names differ.
    orders : tuple of SystemOrder
        One for each minimum EER and utility.
    rule : OrderingRule
        How the systems were ordered.
    figures : dict of str to sequence of ChallengeFigure
        All figures of the file of each system.
    """

    systems: tuple[ComparedSystem, ...]
    orders: tuple[SystemOrder, ...]
    rule: OrderingRule
    figures: Mapping[str, Sequence[ChallengeFigure]]

    @property
    def is_mixed(self) -> bool:
        """Whether the EERs come from different attackers or definitions.

        Files that name no attacker are a toolkit's.
        """
        attackers = {system.attacker for system in self.systems}
        return len(attackers) > 1 and attackers != {OFFICIAL, NOT_STATED}

    @property
    def warnings(self) -> list[str]:
        """Why the systems cannot be compared, or only with care."""
        warnings = []
        sets = {system.sets for system in self.systems if system.sets}
        if len(sets) > 1:
            warnings.append(
                "the EERs were measured on different sets, so the systems cannot be compared"
            )
        if self.is_mixed:
            warnings.append(MIXED)
        for system in self.systems:
            if system.broken:
                warnings.append(f"{system.name}: its {system.broken}; it reaches no target")
        return warnings

    @property
    def measured_orders(self) -> list[SystemOrder]:
        """The orders by utilities that at least one system has."""
        measured = measured_utilities(self.systems)
        return [order for order in self.orders if order.utility in measured]

    def to_dict(self) -> dict[str, Any]:
        """Return the report of ``spkver-eval rank --json``."""
        report = orders_to_dict(self.orders, self.systems, self.rule)
        report["figures"] = {}
        for name, figures in self.figures.items():
            report["figures"][name] = [figure.to_dict() for figure in figures]
        return report


def rank_systems(
    files: Sequence[str | Path],
    *,
    names: Sequence[str] = (),
    rule: str | OrderingRule = "vpc2024",
    targets: Sequence[float] = (),
    utilities: Sequence[str] = (),
    assignment: Assignment | None = None,
    split: str = "test",
    average: Literal["mean", "least"] = "mean",
    datasets: Sequence[str] = (),
    baselines: str = "",
    utility_from: Mapping[str, str | Path] | None = None,
) -> SystemRanking:
    """Rank systems by utility at each minimum EER that they reach.

    Parameters
    ----------
    files : sequence of path
        ``results.json`` (or folders that hold it), rank files, or summaries of 2022; see `read_system`.
    names : sequence of str
        Names of the systems; by default those in their files, or the baselines' for files of the toolkits. Equal ones
        get the name of their folder too.
    rule : {"vpc2024", "vpc2022"} or OrderingRule
        Rule of a challenge.
    targets : sequence of float
        Minimum EERs in ascending order, as fractions of 1; by default those of the rule.
    utilities : sequence of str
        Rank by ``wer``, ``uar``, ``cer`` or ``f0``; by default as the rule says.
    assignment : {"reached", "highest"}, optional
        Rank at each target reached, or at the highest only; by default as the rule says.
    split, average, datasets
        Which EERs and utilities count; see `read_system`.
    baselines : str
        Also rank the baselines of this challenge, see `evaluation.challenges.BASELINES`; their figures are built in.
    utility_from : dict of str to path, optional
        For the name of a system, or "" for the only one, a file whose utilities replace its own, such as the
        ``result_for_rank`` that the challenge's toolkit wrote for the same speech.

    Returns
    -------
    SystemRanking
        `SystemRanking.to_dict` gives the report of ``spkver-eval rank --json``.

    Raises
    ------
    DataError
        If names and files differ in number, the rule is unknown or inconsistent, a file is malformed, two systems have
        the same name, or a label names another baseline than the file does.
    """
    if not files and not baselines:
        raise DataError("no system to rank")
    if isinstance(rule, str):
        if rule not in RULES:
            raise DataError(f"expected one of the rules {', '.join(RULES)}, got {rule!r}")
        rule = RULES[rule]
    names = names or [""] * len(files)
    if len(names) != len(files):
        raise DataError(f"expected a label for each of {len(files)} files, got {len(names)}")
    rule = replace(
        rule,
        targets=tuple(targets) or rule.targets,
        utilities=tuple(utilities) or rule.utilities,
        assignment=assignment or rule.assignment,
    )
    selection: dict[str, Any] = {"split": split, "average": average, "datasets": datasets}
    systems = []
    for path, name in zip(files, names, strict=True):
        check_label(path, name)
        system = read_system(path, name, **selection)
        if not name and system.attacker == NOT_STATED:
            system = replace(system, name=official_name(path) or system.name)
        systems.append(system)
    others = []
    if baselines:
        others = baseline_systems(baselines, **selection)
    systems = _with_distinct_names(systems, files, others)
    figures = {system.name: read_figures(path) for system, path in zip(systems, files, strict=True)}
    for name, source in (utility_from or {}).items():
        _give_utility(systems, name, source, selection)
    if baselines:
        systems += others
        figures |= baseline_figures(baselines)
    orders = order_systems(systems, rule)
    return SystemRanking(tuple(systems), tuple(orders), rule, figures)


def _give_utility(
    systems: list[ComparedSystem], name: str, source: str | Path, selection: Mapping[str, Any]
) -> None:
    """Replace the utilities of the system of this name by those of a file."""
    names = [system.name for system in systems]
    if not name and len(names) == 1:
        name = names[0]
    if name not in names:
        text = f"utility for the system {name!r}: expected one of {', '.join(names)}"
        raise DataError(text, file=source, remedy="name its system: SYSTEM=FILE")
    measured = measured_utility(source, split=selection["split"], datasets=selection["datasets"])
    place = names.index(name)
    system = systems[place]
    titles = ", ".join(measure.upper() for measure in measured)
    systems[place] = replace(
        system,
        utilities={**system.utilities, **measured},
        notes=(*system.notes, f"{titles} from {source}"),
    )


def _with_distinct_names(
    systems: Sequence[ComparedSystem],
    files: Sequence[str | Path],
    others: Sequence[ComparedSystem],
) -> list[ComparedSystem]:
    """Add the folder of the file to names that are repeated or equal the name of another system."""
    counts = Counter(system.name for system in (*systems, *others))
    renamed = []
    for system, path in zip(systems, files, strict=True):
        if counts[system.name] > 1:
            system = replace(system, name=f"{system.name} ({Path(path).resolve().parent.name})")
        renamed.append(system)
    return renamed
