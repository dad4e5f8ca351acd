"""Which attackers the default list should have: who is the strongest, and what it costs to choose among many.

    python -m benchmarks.attacker_choice strongest exp/piper exp/espeak exp/mcadams
    python -m benchmarks.attacker_choice transfer docs/attackers.md
    python -m benchmarks.attacker_choice selection exp/piper

`strongest` counts, for each run, in how many scenarios an attacker has the lowest EER of all and of its level (sexes
pooled; original speech once, from the first run), and by how many points the lowest EER rises at most without it.

`transfer` chooses a list on each set and shows it on the others: attackers are added, each time the one that lowers
the lowest EER most, until none lowers its mean over the conditions by `LEAST_GAIN`. A gap is the lowest EER of the list
minus the lowest EER of all that ran, of each level or of all levels. Where a list has no attacker of a level, its EER
is 50 %. The default list stands beside them. In place of runs it takes a page with a table of attackers and conditions.

`selection` asks by how much the lowest EER of N attackers lies below 50 % if nothing is left of the voices. The people
who are tested are exchanged at random within each sex, so that no score says who speaks. The attackers that a list
gains make its minimum lower even then; that is what they cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.metrics import eer, sort_scores
from spkbase.files import format_table, load_json, read_id_list
from spkver.attackers import DEFAULT

CONDITION = ["run", "dataset", "scenario"]
CHEAP = ("gmm-svm-cms", "prosody")
REPETITIONS = 300
LEAST_GAIN = 0.05  # points
NOTHING = 50.0  # EER [%] without an attacker
TIE = 1e-9  # sums of equal rates may differ in the last bits


def read_conditions(runs: list[Path]) -> pd.DataFrame:
    """Return the EER of every attacker in every condition; original speech is taken from the first run."""
    rows = []
    for number, run in enumerate(runs):
        if run.suffix == ".md":
            rows += read_page(run)
            continue
        for row in load_json(run / "results.json")["conditions"]:
            is_repeated = row["scenario"] == "original" and number > 0
            if row["gender"] == "all" and not is_repeated:
                rows.append({**row, "run": run.name, "rate": 100 * row["eer"]["rocch"]})
    return pd.DataFrame(rows)[[*CONDITION, "attacker", "level", "rate"]]


def read_page(page: Path) -> list[dict[str, object]]:
    """Return the EER of every attacker in every condition, from the table of a page whose columns are conditions.

    A column without a set is of the set of the column before; an empty cell is of an attacker that was not tried.
    """
    lines = iter(page.read_text(encoding="utf-8").splitlines())
    header = next(line for line in lines if line.startswith("| attacker | level |"))
    conditions = []
    dataset = ""
    for cell in header.strip("|").split("|")[2:]:
        before, _, scenario = cell.strip().rpartition(": ")
        dataset = before.strip("`") or dataset
        conditions.append((dataset, scenario))
    next(lines)
    rows: list[dict[str, object]] = []
    for line in lines:
        if not line.startswith("|"):
            break
        attacker, level, *rates = (cell.strip() for cell in line.removesuffix("|")[1:].split("|"))
        for (dataset, scenario), rate in zip(conditions, rates, strict=True):
            if rate:
                row = {"run": page.stem, "dataset": dataset, "scenario": scenario}
                rows.append({**row, "attacker": attacker, "level": level, "rate": float(rate)})
    return rows


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


def gaps(table: pd.DataFrame, attackers: Collection[str], keys: list[str]) -> pd.Series:
    """Return the lowest EER of some attackers minus the lowest of all, for each value of some columns."""
    lowest = table.groupby(keys).rate.min()
    own = table[table.attacker.isin(list(attackers))].groupby(keys).rate.min()
    return own.reindex(lowest.index).fillna(NOTHING) - lowest


def choose_list(table: pd.DataFrame, keys: list[str]) -> list[str]:
    """Return the attackers that lower the mean of the lowest EERs, in the order in which they are added.

    Of attackers that lower it equally, the one that stands first in the table is added.
    """
    chosen: list[str] = []
    gap = float(gaps(table, chosen, keys).mean())
    while True:
        best = ""
        lowest = gap - LEAST_GAIN
        for attacker in table.attacker.unique():
            mean = float(gaps(table, [*chosen, attacker], keys).mean())
            if mean < lowest - TIE:
                best = attacker
                lowest = mean
        if not best:
            return chosen
        chosen.append(best)
        gap = lowest


def transfer(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return a row for each list, of the default or chosen on a set, and each other set that it is shown on."""
    datasets = table.dataset.unique()
    rows = []
    for name, keys in (("level", [*CONDITION, "level"]), ("all", CONDITION)):
        for chosen_on in ("default", *datasets):
            own = table[table.dataset == chosen_on]
            chosen = [attacker for attacker in DEFAULT if attacker in set(table.attacker)]
            if len(own):
                chosen = choose_list(own, keys)
            for shown_on in datasets:
                if shown_on != chosen_on:
                    gap = gaps(table[table.dataset == shown_on], chosen, keys)
                    row = {"lowest": name, "chosen on": chosen_on, "shown on": shown_on}
                    row |= {"mean gap": round(float(gap.mean()), 2), "largest": largest(gap)}
                    rows.append({**row, "attackers": ", ".join(chosen)})
    return rows


def largest(gap: pd.Series) -> str:
    """Return the largest gap and its condition; 0.0 alone if there is none."""
    if gap.max() < LEAST_GAIN:
        return "0.0"
    return f"{gap.max():.1f} ({', '.join(map(str, gap.idxmax()[2:]))})"


def read_lists(run: Path, scenario: str, dataset: str) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the scores of the lists of a set in a scenario: list, attacker, and a table of models by segments.

    Columns are named by the speakers of the segments.
    """
    lists: dict[str, dict[str, pd.DataFrame]] = {}
    for row in load_json(run / "results.json")["conditions"]:
        is_asked = row["scenario"] == scenario and row["dataset"] == dataset
        if row["gender"] == "all" or not is_asked:
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


def print_selection(run: Path, scenario: str, dataset: str) -> None:
    """Print the lowest EER where the tested people of a set are exchanged, of all attackers and of fewer."""
    lists = read_lists(run, scenario, dataset)
    rng = np.random.default_rng(0)
    rates = pd.DataFrame([exchange(lists, rng) for _ in range(REPETITIONS)])
    print(f"{run.name}, {dataset}, {scenario}: one attacker has {rates.mean().mean():.1f} %")
    without = {
        "without networks that are trained": [name for name in rates if "tuned" in name],
        "without those that cost little": [name for name in CHEAP if name in rates],
        "of all": [],
    }
    for title, dropped in without.items():
        lowest = rates.drop(columns=dropped).min(axis="columns")
        low, high = np.quantile(lowest, [0.025, 0.975])
        count = rates.shape[1] - len(dropped)
        print(f"lowest of {count}, {title}: {lowest.mean():.1f} % [{low:.1f}, {high:.1f}]")


def main() -> None:
    """Read the command line and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["strongest", "transfer", "selection"])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--scenario", default="semi-informed")
    options = parser.parse_args()
    if options.part == "strongest":
        rows = count_strongest(read_conditions(options.runs))
        print(format_table(rows, dict.fromkeys(rows[0], ""), markdown=True))
        return
    if options.part == "transfer":
        print(format_table(transfer(read_conditions(options.runs)), markdown=True))
        return
    for run in options.runs:
        for dataset in read_conditions([run]).dataset.unique():
            print_selection(run, options.scenario, dataset)


if __name__ == "__main__":
    main()
