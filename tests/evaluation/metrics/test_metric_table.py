"""The table of metrics, and a metric of one's own: in values, tables, intervals, groups and JSON without our files."""

import json
import pickle
import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.metrics import METRICS, Metric, Metrics
from evaluation.metrics.metric import RESERVED, Unit
from evaluation.metrics.sorted_scores import sort_scores
from evaluation.uncertainty import evaluate
from spkbase.errors import DataError
from spkbase.files import to_json

DOCS = Path(__file__).resolve().parents[3] / "docs"


def accepted(scores):
    """Return the share of target trials at 0 and above."""
    return 1 - float(scores.misses[np.searchsorted(scores.thresholds, 0.0)]) / scores.n_target


def quantile(scores, share):
    """Return the score above which a share of the target trials lies."""
    return float(
        np.repeat(scores.thresholds, scores.target.astype(int))[int(float(share) * scores.n_target)]
    )


def warning(value, scores, convention, point):
    return f"below a half under {convention}" if value < 0.5 else None


MINE = Metric(
    "accepted", accepted, "accepted at 0", Unit("hertz", ".2f"), worse="low", caveat=warning
)


def table_of(*rows):
    return (*METRICS, *rows)


# a user's own metric


def test_a_user_defined_metric_appears_in_values_json_and_tables():
    plain = evaluate([-1.0, 1.0, 2.0, 3.0], [-2.0, -1.0])
    found = evaluate([-1.0, 1.0, 2.0, 3.0], [-2.0, -1.0], metrics=table_of(MINE))
    assert found.accepted == 0.75
    assert found.values() == plain.values() | {"accepted": 0.75}
    report = json.loads(to_json(found.to_dict()))
    assert report.pop("accepted") == 0.75
    assert report == json.loads(to_json(plain.to_dict()))
    assert ["accepted", "at", "0", "0.75"] in [line.split() for line in str(found).splitlines()]
    assert "accepted" not in found.notes
    low = evaluate([-1.0, 1.0, -2.0], [0.0], metrics=table_of(MINE), convention="zebra-2020")
    assert low.notes["accepted"] == "below a half under zebra-2020"


def test_metrics_may_have_points_or_depend_on_others():
    shares = Metric("quantile", quantile, "score at {}", points=("0.25", "0.5"))
    ratio = Metric("ratio", lambda eer, cost: eer / cost, inputs=("eer.rocch", "min_dcf.0.5"))
    powers = Metric(
        "power", lambda eer, point: eer ** float(point), inputs=("eer.rocch",), points=("1", "2")
    )
    priors = Metric(
        "odds", lambda scores, prior: float(prior) / (1 - float(prior)), points=(), over_priors=True
    )
    found = evaluate(
        [1.0, 2.0, 3.0, 4.0],
        [0.0, 2.5],
        metrics=table_of(shares, ratio, powers, priors),
        priors=("0.5", 0.8),
    )
    values = found.values()
    assert found.quantile == {"0.25": 2.0, "0.5": 3.0}
    assert values["quantile.0.5"] == 3.0
    assert values["ratio"] == values["eer.rocch"] / values["min_dcf.0.5"]
    assert found.power == {"1": values["eer.rocch"], "2": values["eer.rocch"] ** 2}
    assert found.odds == {"0.5": 1.0, "0.8": pytest.approx(4.0)}
    lines = str(found).splitlines()
    assert any(line.split() == ["score", "at", "0.25", "2"] for line in lines)
    # without a title, its name is shown
    assert any(line.split()[0] == "ratio" for line in lines)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (table_of(Metric("cllr", accepted)), "got 'cllr'"),
        (table_of(MINE, MINE), "got 'accepted'"),
        (table_of(Metric("", accepted)), "expected unique names"),
        *(
            (table_of(Metric(name, accepted)), f"not keys of the report, got '{name}'")
            for name in RESERVED
        ),
        (table_of(Metric("notes.mine", accepted)), "got 'notes.mine'"),
        (table_of(Metric("zebra", accepted)), "got 'zebra'"),
        (table_of(Metric("cllr.mine", accepted)), "got 'cllr'"),
        (
            (Metric("twice", lambda value: 2 * value, inputs=("cllr",)), *METRICS),
            "expected cllr above 'twice'",
        ),
        (
            table_of(Metric("nothing", lambda scores: None)),
            "a metric to give a number, or a record with a value",
        ),
    ],
)
def test_an_inconsistent_table_is_refused(rows, words):
    with pytest.raises(DataError, match=re.escape(words)):
        evaluate([1.0, 2.0], [0.0], metrics=rows).values()


def test_a_result_can_be_copied_and_stored():
    found = evaluate([1.0, 2.0], [0.0, 1.5])
    for twin in (deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert twin.values() == found.values()
        assert twin.eer == found.eer
    scores = sort_scores([1.0, 2.0], [0.0, 1.5])
    assert pickle.loads(pickle.dumps(Metrics()))(scores) == Metrics()(scores) == found.values()


# the page


def line_of(metric):
    """Return the line of the page's table that a row makes."""
    points = (
        ".PRIOR"
        if metric.over_priors
        else f".{{{', '.join(metric.points)}}}"
        if metric.points
        else ""
    )
    method = metric.method_at(metric.points[0] if metric.points else "")
    return f"| `{metric.name}{points}` | {metric.about} | {metric.unit.name} | {metric.worse} | {method.name} |"


def test_the_page_contains_the_table():
    text = (DOCS / "metrics.md").read_text()
    _, table = text.split(
        "| name | what it is | unit | worse | interval |\n|---|---|---|---|---|\n"
    )
    assert table.partition("\n\n")[0].splitlines() == [line_of(metric) for metric in METRICS]


def test_the_example_of_the_page_runs(capsys):
    page = DOCS / "own_metric.md"
    example = re.search(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", page.read_text(), re.S)
    assert len([line for line in example[1].splitlines() if line]) <= 10
    exec(compile(example[1], str(page), "exec"), {})
    assert capsys.readouterr().out == example[2]


def test_the_command_loads_a_metric_from_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from evaluation.metrics import FRACTION, Metric\n"
        "def share(scores):\n"
        "    return scores.n_target / (scores.n_target + scores.n_nontarget)\n"
        "mine = Metric('target_share', share, 'share of targets', FRACTION, worse='low')\n"
        "other = 3\n"
    )
    (tmp_path / "scores.txt").write_text("a x 1.0\na y 0.0\nb x -1.0\nb y 2.0\n")
    (tmp_path / "key.txt").write_text("a x target\na y nontarget\nb x nontarget\nb y nontarget\n")
    command = ["metrics", "-s", tmp_path / "scores.txt", "-k", tmp_path / "key.txt", "--json", "-"]
    assert (
        json.loads(passes(*command, "--metric", f"{tmp_path / 'mine.py'}:mine").stdout)[
            "target_share"
        ]
        == 0.25
    )
    wrong = refused(*command, "--metric", f"{tmp_path / 'mine.py'}:other")
    assert "is a int, expected an evaluation.metrics.Metric" in wrong
