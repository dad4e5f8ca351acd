"""The choice of a list of attackers: by hand on tables of few rows."""

import pandas as pd
import pytest

from benchmarks.attacker_choice import CONDITION, choose_list, gaps, read_conditions, transfer

RATES = {
    ("small", "ignorant"): {"cosine": 9.0, "plda": 12.0, "list": 4.0},
    ("small", "semi-informed"): {"cosine": 5.0, "plda": 1.0, "list": 1.0},
    ("large", "ignorant"): {"cosine": 10.0, "plda": 3.0, "list": 6.0},
    ("large", "semi-informed"): {"cosine": 4.0, "plda": 2.0, "list": 3.0},
}
LEVELS = {"cosine": "one-model", "plda": "all-enrolled", "list": "whole-list"}


@pytest.fixture
def table():
    rows = []
    for (dataset, scenario), rates in RATES.items():
        for attacker, rate in rates.items():
            row = {"run": "mcadams", "dataset": dataset, "scenario": scenario}
            rows.append({**row, "attacker": attacker, "level": LEVELS[attacker], "rate": rate})
    return pd.DataFrame(rows)


def test_gaps_are_zero_for_all_attackers_and_assume_50_percent_without_any(table):
    assert gaps(table, LEVELS, CONDITION).tolist() == [0.0] * 4
    own = gaps(table, ["cosine"], CONDITION)
    assert own["mcadams", "small", "ignorant"] == 5.0
    assert own["mcadams", "large", "semi-informed"] == 2.0
    assert gaps(table, [], CONDITION)["mcadams", "large", "ignorant"] == 47.0


def test_only_attackers_that_lower_the_mean_are_chosen(table):
    small = table[table.dataset == "small"]
    large = table[table.dataset == "large"]
    assert choose_list(small, CONDITION) == ["list"]
    assert choose_list(large, CONDITION) == ["plda"]
    assert set(choose_list(small, [*CONDITION, "level"])) == set(LEVELS)


def test_a_list_chosen_on_one_set_is_evaluated_on_the_other(table):
    rows = [row for row in transfer(table) if row["lowest"] == "all"]
    chosen = [row for row in rows if row["chosen on"] != "default"]
    assert [row["chosen on"] for row in chosen] == ["small", "large"]
    assert [row["shown on"] for row in chosen] == ["large", "small"]
    assert [row["mean gap"] for row in chosen] == [2.0, 4.0]
    assert chosen[1]["largest"] == "8.0 (ignorant)"


def test_a_table_of_a_page_is_read_by_its_columns(tmp_path):
    page = tmp_path / "page.md"
    lines = [
        "Rates",
        "",
        "| attacker | level | `a`: original | ignorant | `b`: original |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        "| cosine | one-model | 0.5 | 7.0 | 1.5 |",
        "| inverse | inverting |  | 2.0 |  |",
        "",
        "| x | y | 1 |",
    ]
    page.write_text("\n".join(lines))
    table = read_conditions([page])
    read = [tuple(row) for row in table[["dataset", "scenario", "attacker", "rate"]].to_numpy()]
    assert read == [
        ("a", "original", "cosine", 0.5),
        ("a", "ignorant", "cosine", 7.0),
        ("b", "original", "cosine", 1.5),
        ("a", "ignorant", "inverse", 2.0),
    ]
    assert table.level.tolist() == ["one-model"] * 3 + ["inverting"]
