"""Several systems in one table and in one chart: EER of the semi-informed attacker against each utility."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.challenges.figures import percent
from evaluation.challenges.ranking import LOWER_IS_BETTER, ComparedSystem
from evaluation.plots import TradeOff, plot_privacy_utility
from evaluation.uncertainty import Interval
from spkbase.errors import DataError

_MEASURES = {"wer": "Word error rate", "cer": "Character error rate", "uar": "Unweighted average recall"}


def system_rows(systems: Sequence[ComparedSystem], decimals: int = 2) -> list[dict[str, str]]:
    """Return a row for each system: EER and utilities in per cent, with their intervals in brackets, and whose EER.

    Utilities that no system has are left out. The EER is that of the semi-informed attacker.

    Examples
    --------
    >>> system_rows([ComparedSystem("B2", Interval(0.047, 0.035, 0.062), {"wer": Interval(0.0996)})])
    [{'system': 'B2', 'EER [%]': '4.70 [3.50, 6.20]', 'EER of': 'not told', 'WER [%]': '9.96'}]
    """
    known = [name for name in _MEASURES if any(name in system.utilities for system in systems)]
    return [
        {"system": system.name, "EER [%]": percent(system.eer, decimals), "EER of": system.attacker}
        | {f"{name.upper()} [%]": percent(system.utilities.get(name), decimals) for name in known}
        for system in systems
    ]


def plot_systems(
    systems: Sequence[ComparedSystem],
    path: str | Path,
    *,
    utilities: Sequence[str] = ("wer", "uar"),
    targets: Sequence[float] = (),
) -> list[Path]:
    """Plot the EER of each system over each utility, with intervals where there are any.

    Parameters
    ----------
    systems : sequence of ComparedSystem
        Those that have a utility are in its chart.
    path : path
        The file to write, ``.png``, ``.pdf``, ``.svg`` or ``.tex``; for several utilities each has its name before the
        extension, as in ``systems_wer.png``.
    utilities : sequence of str
        Rates among ``wer``, ``cer`` and ``uar``; others are no rates and are left out.
    targets : sequence of float
        Least EERs, as fractions; drawn as the edges of bands.

    Returns
    -------
    list of Path
        What was written. Where systems differ in whose EER they have, points are named with it.

    Raises
    ------
    DataError
        If no system has any of the utilities.
    """
    path = Path(path)
    drawn = [
        (name, [system for system in systems if name in system.utilities]) for name in utilities if name in _MEASURES
    ]
    drawn = [(name, members) for name, members in drawn if members]
    if not drawn:
        raise DataError(
            f"no system has a utility to plot over: {', '.join(utilities)}",
            remedy="measure WER or UAR, or leave --plot out",
        )
    written = []
    mixed = len({system.attacker for system in systems}) > 1
    for name, members in drawn:
        file = path if len(drawn) == 1 else path.with_name(f"{path.stem}_{name}{path.suffix}")
        points = [
            TradeOff(
                f"{system.name}, {system.attacker}" if mixed else system.name,
                100 * system.utilities[name].value, system.eer.value,
                _ends(system.eer), _ends(system.utilities[name], 100),
            )
            for system in members
        ]  # fmt: skip
        plot_privacy_utility(
            points,
            path=file,
            measure=_MEASURES[name],
            lower_is_better=LOWER_IS_BETTER[name],
            targets=[target for target in targets if 0 < target < 0.5],
        )
        written.append(file)
    return written


def _ends(interval: Interval, factor: float = 1) -> tuple[float, float] | None:
    return (factor * interval.low, factor * interval.high) if interval.has_interval else None
