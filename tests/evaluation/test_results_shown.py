"""Every result has columns, a data frame and a table in HTML, and the numbers in them are its own."""

import json
import pydoc
from dataclasses import replace

import numpy as np
import pytest

import evaluation as ev
from evaluation.linkage import ranks_from_embeddings
from evaluation.metrics import METRICS, Metrics
from evaluation.reports import measure_linkage, parse_results
from evaluation.uncertainty import Differences, Intervals, PairedComparison, Resampling, sample_of
from spkbase.files import to_json
from spkbase.showing import LONGEST

RNG = np.random.default_rng(0)
NAMES = [f"s{number:02d}" for number in range(30)]


def embeddings(noise):
    voices = np.random.default_rng(1).standard_normal((30, 8))
    return ev.Embeddings(NAMES, NAMES, voices + noise * RNG.standard_normal(voices.shape))


def results():
    key = ev.Key.from_ids(
        ["a", "a", "b", "b"], ["s", "t", "s", "t"], [1, 0, 0, 1], types=["TC", "IC", "IC", "TC"]
    )
    scores = ev.Scores.from_ids(
        ["a", "a", "b", "b"], ["s", "t", "s", "t"], [1.0, -np.inf, -2.0, 0.5]
    )
    values = RNG.standard_normal(400)
    sample = sample_of(values + 2 * (np.arange(400) % 4 == 0), np.arange(400) % 4 == 0, None)
    other = sample_of(values + (np.arange(400) % 4 == 0), np.arange(400) % 4 == 0, None)
    metrics = Metrics(metrics=METRICS[:3])
    once = Intervals({"cllr": ev.Interval(0.5, 0.25, 0.75)})
    ranks = ranks_from_embeddings(embeddings(0.0), embeddings(1.0), utterances=1)
    condition = {
        "dataset": "<b>",
        "gender": "f",
        "scenario": "original",
        "attacker": "x",
        "eer": {"rocch": 0.1},
    }
    return {
        "trials": key.trials(),
        "key": key,
        "scores": scores,
        "evaluation": ev.evaluate(scores, labels=key),
        "intervals": ev.confidence_intervals(sample, metrics, Resampling(20)),
        "differences": ev.paired_differences({"a": sample, "b": other}, metrics, Resampling(20)),
        "comparison": PairedComparison({"<b>": once}, Differences({"b": once})),
        "groups": ev.evaluate_groups(
            sample, np.arange(400) // 4 % 2, ["f", "m"], metrics, column="sex"
        ),
        "interval": ev.Interval(0.5, 0.25, 0.75, "made up"),
        "curve": ev.linkability(embeddings(0.0), embeddings(1.0), resampling=Resampling(20)),
        "ranks": ranks,
        "linkage": measure_linkage({1: ranks, 0: ranks}),
        "extrapolation": ev.extrapolate(ranks, resampling=Resampling(4)),
        "report": parse_results({"format": 1, "conditions": [condition]}),
    }


RESULTS = results()


@pytest.mark.parametrize("name", RESULTS)
def test_results_convert_to_columns_and_html(name):
    result = RESULTS[name]
    columns = result.to_columns()
    assert len({len(column) for column in columns.values()}) == 1
    table = result._repr_html_()
    assert "<table" in table
    assert "<b>" not in table
    text = repr(result)
    assert "\n" not in text
    assert len(text) <= LONGEST


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_convert_to_data_frames(name, library):
    frames = pytest.importorskip(library)
    result = RESULTS[name]
    columns = result.to_columns()
    frame = result.to_dataframe() if library == "pandas" else frames.DataFrame(columns)
    assert list(frame.columns) == list(columns)
    assert len(frame) == len(next(iter(columns.values())))


@pytest.mark.parametrize("kind", [ev.Trials, ev.Key, ev.Scores])
def test_lists_survive_conversion_to_frames(kind):
    original = RESULTS[kind.__name__.lower()]
    again = kind.from_frame(original.to_columns())
    assert list(again.pairs()) == list(original.pairs())
    for name in ("is_target", "types", "type_names", "values"):
        if hasattr(original, name):
            assert np.array_equal(getattr(again, name), getattr(original, name))


def test_frames_contain_the_numbers_of_the_result():
    result = RESULTS["evaluation"]
    columns = result.to_columns()
    assert dict(zip(columns["metric"], columns["value"], strict=True)) == pytest.approx(
        result.values(), nan_ok=True
    )
    units = dict(zip(columns["metric"], columns["unit"], strict=True))
    assert (units["eer.rocch"], units["zebra.population"]) == ("fraction", "bit")
    with_ends = replace(result, intervals={"eer.rocch": (0.1, 0.2)}).to_columns()
    row = with_ends["metric"].index("eer.rocch")
    assert (with_ends["low"][row], with_ends["high"][row]) == (0.1, 0.2)
    assert np.isnan(with_ends["low"]).sum() == len(with_ends["low"]) - 1
    assert np.isnan(columns["low"]).all()
    curve = RESULTS["curve"].to_columns()
    assert curve["size"].tolist() == list(range(2, 31))
    assert curve["chance"] == pytest.approx(1 / curve["size"])
    groups = RESULTS["groups"].to_columns()
    assert sorted(set(groups["sex"])) == ["f", "m"]
    assert RESULTS["linkage"].to_columns()["utterances"][0] == "1"
    assert set(RESULTS["linkage"].to_columns()["utterances"]) == {"1", "all"}
    assert RESULTS["report"].to_columns()["eer"] == [0.1]


def test_intervals_behave_as_dicts():
    """What took a dict takes them: JSON, equality, methods."""
    intervals, differences = RESULTS["intervals"], RESULTS["differences"]
    assert isinstance(intervals, Intervals)
    assert isinstance(intervals, dict)
    assert intervals == dict(intervals)
    assert isinstance(differences, Differences)
    assert isinstance(differences["b"], Intervals)
    assert json.loads(to_json({"x": {name: part.to_dict() for name, part in intervals.items()}}))
    assert differences.to_columns()["system"] == ["b"] * len(differences["b"])
    assert differences.to_columns()["value"] == [part.value for part in differences["b"].values()]


def test_the_html_of_an_evaluation_equals_its_table():
    table = RESULTS["evaluation"]._repr_html_()
    assert "target trials" in table
    assert "<td>..." not in table, "all metrics are there"
    mine = ev.Metric("<i>mine</i>", lambda scores: 1.0, title="<u>mine</u>")
    table = ev.evaluate([1.0], [0.0], metrics=(mine,))._repr_html_()
    assert "<u>" not in table
    assert "&lt;u&gt;mine" in table


@pytest.mark.parametrize("name", RESULTS)
def test_print_shows_the_table(name):
    lines = str(RESULTS[name]).splitlines()
    if name in ("curve", "ranks"):
        assert lines.pop(0) == RESULTS[name].headline()
    assert len(lines) > 2
    assert set(lines[1]) <= {"-", " "}


def test_help_shows_functions_and_metrics_without_memory_addresses():
    for name, public in vars(ev).items():
        if name.startswith("_") or not callable(public):
            continue
        text = pydoc.plain(pydoc.render_doc(public))
        assert "functools.partial" not in text, name
        assert "<function" not in text, name
        assert " at 0x" not in text, name


def test_long_lists_show_their_first_trials():
    names = [f"<u>{number}" for number in range(1000)]
    table = ev.Scores.from_ids(names, ["s"] * 1000, np.arange(1000.0))._repr_html_()
    assert table.count("<tr>") == 10
    assert "... and 990 trials more" in table
    assert "<u>" not in table


class Tensor:
    """What a tensor that needs a gradient does."""

    def __init__(self, values, detached=False):
        self.values, self.detached = values, detached

    dtype = "torch.float32"

    def detach(self):
        return Tensor(self.values, True)

    def cpu(self):
        return self

    double = cpu

    def __array__(self, dtype=None, copy=None):
        if not self.detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return np.array(self.values, dtype)


def test_tensors_are_accepted():
    assert ev.evaluate(Tensor([1.0, 0.0]), labels=Tensor([1, 0])).eer["rocch"] == 0
