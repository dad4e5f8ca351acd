"""Official figures of the baselines of VoicePrivacy 2022, 2024 and 2026, and the names of their files.

The challenges publish the results of each baseline in a file named after its anonymiser, ``result_for_rank_nac`` for
B4. Their names do not follow the order of the baselines' numbers and are easily confused, so a label that contradicts
the name of such a file is refused.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from evaluation.challenges.ranking import ComparedSystem
from evaluation.challenges.systems import ChallengeFigure, system_of_figures
from evaluation.challenges.team_scores import WEIGHTS
from evaluation.uncertainty import Interval
from spkbase.errors import DataError

BASELINES = ("2022", "2024", "2026", "2026-track2")
"""Challenges whose baselines are known."""
OFFICIAL = "the challenge's"
"""Whose EERs the baselines have."""

_FILE = Path(__file__).with_name("baselines.csv")
_STARTS = ("result_for_rank", "RESULTS_summary")


@cache
def _rows() -> list[dict[str, str]]:
    lines = [line for line in _FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def baseline_figures(challenge: str) -> dict[str, tuple[ChallengeFigure, ...]]:
    """Return the official figures of each baseline of a challenge.

    Parameters
    ----------
    challenge : str
        One of `BASELINES`.

    Returns
    -------
    dict of str to tuple of ChallengeFigure
        Figures by name of the baseline, as fractions of 1: EER of each list, WER, UAR, and for 2022 the correlation of
        pitch (``F0``), for dev and test.

    Raises
    ------
    DataError
        If the challenge is not known.

    Examples
    --------
    >>> list(baseline_figures("2024"))
    ['B1', 'B2', 'B3', 'B4', 'B5', 'B6']
    """
    if challenge not in BASELINES:
        raise DataError(f"expected baselines of {', '.join(BASELINES)}, got those of {challenge!r}")
    figures: dict[str, list[ChallengeFigure]] = {}
    for row in _rows():
        if row["challenge"] != challenge:
            continue
        rate = float(row["percent"]) / 100
        figure = ChallengeFigure(
            row["measure"],
            row["dataset"],
            row["split"],
            row["speakers"],
            row["condition"],
            Interval(rate),
            crossing=rate,
        )
        figures.setdefault(row["system"], []).append(figure)
    return {name: tuple(of_system) for name, of_system in figures.items()}


def baseline_systems(
    challenge: str,
    *,
    split: str = "test",
    average: Literal["mean", "least"] = "mean",
    datasets: Sequence[str] = (),
) -> list[ComparedSystem]:
    """Return the baselines of a challenge, to be ranked with other systems.

    Parameters
    ----------
    challenge : str
        One of `BASELINES`.
    split, average, datasets
        Which EERs and utilities count; see `read_system`.

    Raises
    ------
    DataError
        If the challenge is not known, or has no such sets.

    Examples
    --------
    >>> [f"{system.name} {system.eer.in_percent.text('.2f')}" for system in baseline_systems("2024")]
    ['B1 6.07', 'B2 4.52', 'B3 27.32', 'B4 30.27', 'B5 34.34', 'B6 21.14']
    """
    weights = None
    if challenge == "2022":
        weights = WEIGHTS
    systems = []
    for name, figures in baseline_figures(challenge).items():
        system = system_of_figures(
            figures,
            name,
            source=f"baselines of {challenge}",
            attacker=OFFICIAL,
            weights=weights,
            split=split,
            average=average,
            datasets=datasets,
        )
        systems.append(system)
    return systems


def official_name(path: str | Path) -> str:
    """Return the baseline that a challenge's toolkit gives a file of this name; "" if it gives none.

    Examples
    --------
    >>> official_name("results/result_for_rank_nac"), official_name("result_for_rank_mine")
    ('B4', '')
    """
    name = Path(path).name
    for start in _STARTS:
        if name.startswith(f"{start}_"):
            suffix = name.removeprefix(f"{start}_")
            for row in _rows():
                if row["file"] == suffix:
                    return row["system"]
    return ""


def check_label(path: str | Path, label: str) -> None:
    """Check that the label of a file does not name another baseline than the file's name does.

    Raises
    ------
    DataError
        If it does.
    """
    official = official_name(path)
    baselines = {row["system"] for row in _rows()}
    if official and label != official and label in baselines:
        text = f"the label is {label}, but the toolkit gives this name to the results of {official}"
        raise DataError(text, file=path, remedy="name the files in the order of their labels")
