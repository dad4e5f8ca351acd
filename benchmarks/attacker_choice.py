"""Which attackers the default list should have: who is the strongest, and what it costs to choose among many.

    python -m benchmarks.attacker_choice strongest exp/piper exp/espeak exp/mcadams
    python -m benchmarks.attacker_choice selection exp/piper

`strongest` counts, for each run, in how many scenarios an attacker has the lowest EER of all and of its level (sexes
pooled; original speech once, from the first run), and by how many points the lowest EER rises at most without it.

`selection` asks by how much the lowest EER of N attackers lies below 50 % if nothing is left of the voices. The people
who are tested are exchanged at random within each sex, so that no score says who speaks. The attackers that a list
gains make its minimum lower even then; that is what they cost.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metrics import eer, sort_scores
from spkbase.files import format_table, load_json, read_id_list

CONDITION = ["run", "dataset", "scenario"]
CHEAP = ("gmm-svm-cms", "prosody")
REPETITIONS = 300


def read_conditions(runs: list[Path]) -> pd.DataFrame:
    """Return the EER of every attacker in every condition; original speech is taken from the first run."""
    rows = []
    for number, run in enumerate(runs):
        for row in load_json(run / "results.json")["conditions"]:
            is_repeated = row["scenario"] == "original" and number > 0
            if row["gender"] == "all" and not is_repeated:
                rows.append({**row, "run": run.name, "rate": 100 * row["eer"]["rocch"]})
    return pd.DataFrame(rows)[[*CONDITION, "attacker", "level", "rate"]]


def count_strongest(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return a row for each attacker: how often it is the strongest, and what the lowest EER gains without it."""
    rows = []
    for attacker in table.attacker.unique():
        row: dict[str, object] = {"attacker": attacker}
        own = table[table.attacker == attacker]
        others = table[table.attacker != attacker]
        for name, keys in (("level", [*CONDITION, "level"]), ("all", CONDITION)):
            lowest = table.groupby(keys).rate.min()
            rates = own.set_index(keys).rate
            is_lowest = rates <= lowest[rates.index]
            if name == "all":
                for run in table.run.unique():
                    of_run = is_lowest[is_lowest.index.get_level_values("run") == run]
                    row[run] = f"{of_run.sum()} of {len(of_run)}"
            row[f"lowest of {name}"] = int(is_lowest.sum())
            rise = others.groupby(keys).rate.min() - lowest
            row[f"rise of {name}"] = round(rise[rates.index].max(), 1)
        rows.append(row)
    return rows


def read_lists(run: Path, scenario: str) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the scores of the lists of a scenario: list, attacker, and a table of models by segments.

    Columns are named by the speakers of the segments.
    """
    lists: dict[str, dict[str, pd.DataFrame]] = {}
    for row in load_json(run / "results.json")["conditions"]:
        if row["gender"] == "all" or row["scenario"] != scenario:
            continue
        scores = pd.read_csv(
            run / row["scores"],
            sep=r"\s+",
            names=["model", "segment", "score"],
            dtype={0: str, 1: str},
        )
        speakers = read_id_list(run / row["segment_speakers"], "utterance speaker")
        matrix = scores.pivot(index="model", columns="segment", values="score")
        lists.setdefault(row["key"], {})[row["attacker"]] = matrix.rename(columns=speakers)
    return lists


def exchange(
    lists: dict[str, dict[str, pd.DataFrame]], rng: np.random.Generator
) -> dict[str, float]:
    """Exchange the tested people of each list at random; return the EER [%] of each attacker, lists pooled."""
    targets: dict[str, list[NDArray]] = {}
    others: dict[str, list[NDArray]] = {}
    for attackers in lists.values():
        models = next(iter(attackers.values())).index
        renamed = dict(zip(models, rng.permutation(models), strict=True))
        for attacker, matrix in attackers.items():
            is_target = np.array(models)[:, None] == np.array(
                [renamed[name] for name in matrix.columns]
            )
            targets.setdefault(attacker, []).append(matrix.to_numpy()[is_target])
            others.setdefault(attacker, []).append(matrix.to_numpy()[~is_target])
    rates = dict[str, float]()
    for attacker in targets:
        rates[attacker] = 100 * eer(
            sort_scores(np.concatenate(targets[attacker]), np.concatenate(others[attacker]))
        )
    return rates


def main() -> None:
    """Read the command line and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["strongest", "selection"])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--scenario", default="semi-informed")
    options = parser.parse_args()
    if options.part == "strongest":
        rows = count_strongest(read_conditions(options.runs))
        print(format_table(rows, dict.fromkeys(rows[0], ""), markdown=True))
        return
    for run in options.runs:
        lists = read_lists(run, options.scenario)
        rng = np.random.default_rng(0)
        rates = pd.DataFrame([exchange(lists, rng) for _ in range(REPETITIONS)])
        without = rates.drop(columns=list(CHEAP), errors="ignore")
        print(f"{run.name}, {options.scenario}: one attacker has {rates.mean().mean():.1f} %")
        for shown in (without, rates):
            lowest = shown.min(axis="columns")
            spread = np.quantile(lowest, [0.025, 0.975])
            print(
                f"lowest of {shown.shape[1]}: {lowest.mean():.1f} % [{spread[0]:.1f}, {spread[1]:.1f}]"
            )


if __name__ == "__main__":
    main()
