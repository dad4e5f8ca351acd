"""The commands of a forensic laboratory and of open-set identification."""

import csv
import json

import numpy as np
import pytest
from command_lines import passes, refused, run

import evaluation as ev
from evaluation.forensics import LN10
from evaluation.metrics import sort_scores
from evaluation.reports import STATEMENTS


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """Scores of eight enrolled and eight unknown speakers against the enrolled, their key, and a development list."""
    rng = np.random.default_rng(2)
    monkeypatch.chdir(tmp_path)
    for name, signs in (("", "ab"), ("dev_", "cd")):
        models = [f"{signs[0]}{number}" for number in range(8)]
        people = models + [f"{signs[1]}{number}" for number in range(8)]
        pairs = [(m, f"{person}/{take}") for m in models for person in people for take in range(4)]
        truth = np.array([segment.startswith(f"{model}/") for model, segment in pairs])
        values = np.where(truth, 2.0, -2.0) + 2 * rng.normal(size=len(pairs))
        ids = tuple(zip(*pairs, strict=True))
        ev.write_key(tmp_path / f"{name}key.txt", ev.Key.from_ids(*ids, truth))
        ev.write_scores(tmp_path / f"{name}scores.txt", ev.Scores.from_ids(*ids, values))
        ev.write_scores(tmp_path / f"{name}log10.txt", ev.Scores.from_ids(*ids, values / LN10))
    return tmp_path


def trials():
    return ev.split_scores(ev.read_scores("scores.txt"), ev.read_key("key.txt"))


LISTS = ("-s", "scores.txt", "-k", "key.txt", "--speakers-by", "/")


def test_the_base_of_ratios_is_read_and_printed(lists):
    natural = json.loads(passes("validate", *LISTS, "--bootstrap", 0, "--json", "-").stdout)
    base10 = ("validate", "-s", "log10.txt", *LISTS[2:], "--bootstrap", 0, "--json", "-")
    same = json.loads(passes(*base10, "--llr-base", 10).stdout)
    wrong = json.loads(passes(*base10).stdout)
    assert natural["cllr"] == pytest.approx(same["cllr"], abs=1e-12)
    assert natural["elub"] == pytest.approx(same["elub"], abs=1e-9)
    assert natural["cllr"] == pytest.approx(ev.cllr(*trials()))
    assert wrong["cllr"] != pytest.approx(natural["cllr"], abs=1e-3)
    assert (
        natural["notes"]["base"]
        == wrong["notes"]["base"]
        == "read as natural logarithms (--llr-base)"
    )
    assert same["notes"]["base"] == "read as logarithms of base 10 (--llr-base)"


@pytest.mark.whole
def test_the_page_of_a_validation_holds_figures_plots_and_statements(lists):
    words = ("--bootstrap", 20, "-o", "page.html", "--state", "population", "sixteen <voices>")
    printed = passes("validate", *LISTS, *words).stdout
    page = (lists / "page.html").read_text()
    assert "16 speakers" in printed
    assert page.count("<svg") == 2
    assert "sixteen &lt;voices&gt;" in page
    assert page.count("not stated") == len(STATEMENTS) - 1
    assert f"Cllr {ev.cllr(*trials()):.3f} bit" in page
    assert "Read as natural logarithms" in page
    lines = (lists / "scores.txt").read_text().splitlines()[1:]
    (lists / "fewer.txt").write_text("\n".join(lines) + "\n")
    fewer = ("-s", "fewer.txt", *LISTS[2:], "--missing", "drop", "--bootstrap", 0)
    passes("validate", *fewer, "-o", "fewer.html")
    assert (lists / "fewer.html").read_text().count("<svg") == 2
    assert "population" in refused("validate", *LISTS, "--state", "weather", "rain")


@pytest.mark.parametrize("bounds", ["elub", "invariance", "none"])
@pytest.mark.parametrize("method", ["kernel", "logistic"])
def test_ratios_are_those_of_python_and_within_bounds(lists, method, bounds):
    training = ("--train-scores", "dev_scores.txt", "--train-key", "dev_key.txt")
    words = ("ratios", "-s", "scores.txt", *training, "--method", method, "--bounds", bounds)
    printed = passes(*words, "-o", "natural.txt").output
    assert "natural logarithms" in printed
    classes = ev.split_scores(ev.read_scores("dev_scores.txt"), ev.read_key("dev_key.txt"))
    train = {"kernel": ev.train_kernel, "logistic": ev.train_affine}[method]
    calibration = train(*classes)
    expected = calibration(ev.read_scores("scores.txt").values)
    if bounds != "none":
        limits = {"elub": ev.elub, "invariance": ev.invariance_bounds}[bounds]
        expected = limits(*map(calibration, classes))(expected)
    written = ev.read_scores("natural.txt").values
    np.testing.assert_allclose(written, expected, atol=1e-9)
    printed = passes(*words, "-o", "base10.txt", "--llr-base", 10).output
    assert "logarithms of base 10" in printed
    np.testing.assert_allclose(ev.read_scores("base10.txt").values, expected / LN10, atol=1e-9)
    assert ev.min_cllr(*trials()) < 0.5


def test_ratios_of_training_scores_raise_a_warning(lists):
    training = ("--train-scores", "scores.txt", "--train-key", "key.txt")
    assert "optimistic" in passes("ratios", "-s", "scores.txt", *training, "-o", "o.txt").stderr


def test_identification_equals_a_plain_computation_in_python(lists):
    report = json.loads(passes("identify", *LISTS, "--bootstrap", 50, "--json", "-").stdout)
    expected = ev.identification(
        ev.read_scores("scores.txt"),
        ev.read_key("key.txt"),
        speakers="/",
        resampling=ev.Resampling(50),
    )
    for rate in ("0.1", "0.01"):
        assert report["fnir"][rate]["value"] == expected.fnir[rate].value
        assert report["intervals"][f"fnir.{rate}"] == list(expected.intervals[f"fnir.{rate}"])
    printed = passes("identify", *LISTS, "--bootstrap", 50).stdout
    assert "FNIR (FPIR 0.1 asked)" in printed
    assert "32 searches of enrolled and 32 of unknown speakers, among 8 models" in printed
    assert "not resolved: at least 100 searches" in printed


def test_answers_need_no_key_and_keep_the_units_of_the_file(lists):
    words = ("identify", "-s", "log10.txt", "--threshold", 0.5, "--llr-base", 10)
    printed = passes(*words, "-o", "answers.csv").stdout
    with (lists / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    unknown = [row for row in rows if row["answer"] == "unknown"]
    assert f"{len(unknown)} of 64 segments are unknown" in printed
    assert all(float(row["score"]) < 0.5 for row in unknown)
    report = passes(*words, "-k", "key.txt", "--speakers-by", "/", "--json", "-", "--bootstrap", 0)
    rates = json.loads(report.stdout)
    assert rates["fpir"]["given"]["threshold"] == 0.5
    taken = [row for row in rows if row["segment"][0] == "b" and row["answer"] != "unknown"]
    assert rates["fpir"]["given"]["value"] == len(taken) / 32


REFUSALS = {
    "answers without a threshold": (
        ("-s", "scores.txt", "-o", "a.csv"),
        "need --threshold",
    ),
    "no key": (("-s", "scores.txt"), "-k FILE"),
    "unknown speakers are not told": (
        ("-s", "scores.txt", "-k", "key.txt"),
        "--segment-speakers",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_careless_calls_of_identify_are_refused(lists, name):
    words, message = REFUSALS[name]
    assert message in refused("identify", *words)


def test_reversed_scores_raise_a_warning(lists):
    for command in ("validate", "identify"):
        result = run(command, *LISTS, "--distances", "--bootstrap", 0)
        assert result.exit_code == 0
        assert "REVERSED" in result.stderr


def test_the_tippett_plot_has_exact_steps():
    target, nontarget = np.array([1.0, 3.0, -1.0]), np.array([-2.0, 0.5])
    figure = ev.plot_tippett([("few", target * LN10, nontarget * LN10)])
    zero, rising, falling = (line.get_xydata() for line in figure.axes[0].lines)
    assert set(zero[:, 0]) == {0.0}
    for x in (-3.0, -1.5, 0.0, 0.7, 2.0, 3.1):
        below = rising[rising[:, 0] <= x][-1, 1] if x >= rising[0, 0] else 0.0
        assert below == pytest.approx(100 * np.mean(target <= x))
        above = falling[falling[:, 0] <= x][-1, 1] if x >= falling[0, 0] else 100.0
        assert above == pytest.approx(100 * np.mean(nontarget >= x))
    label = figure.legends[0].get_texts()[0].get_text().replace("\N{NO-BREAK SPACE}", " ")
    assert f"Cllr {ev.cllr(sort_scores(target * LN10, nontarget * LN10)):.3f}" in label
    assert "33.3" in label
    assert "50.0" in label
