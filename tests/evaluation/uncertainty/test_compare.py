"""`compare`: p-values are those of Student's t on paired speakers, and agree with the intervals."""

import json
import re
import sys
import time
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import ttest_rel

import evaluation as ev
from evaluation import compare
from evaluation.trials import Key, Scores
from evaluation.uncertainty import (
    Resampling,
    confidence_intervals,
    holm,
    paired_differences,
    sample_from,
)
from spkbase.errors import DataError
from spkbase.files import to_json
from spkver.evaluation_cli import main

SPEAKERS = [f"s{number:02d}" for number in range(40)]
PAIRS = [
    (model, f"{segment}-{take}") for model in SPEAKERS for segment in SPEAKERS for take in range(2)
]
KEY = Key.from_ids(
    *zip(*PAIRS, strict=True), [segment.startswith(model) for model, segment in PAIRS]
)
HEADINGS = ["EER (ROCCH) [%]", "minDCF at prior 0.01", "minCllr (bit)"]
MAP = {**{name: name for name in SPEAKERS}, **{segment: segment[:3] for _, segment in PAIRS}}


def systems(gap):
    """Two systems whose target scores differ by a gap on average, more for some speakers than for others."""
    rng = np.random.default_rng(1)
    own = dict(zip(SPEAKERS, rng.normal(gap, 0.5, len(SPEAKERS)), strict=True))
    first = 2 * KEY.is_target + rng.standard_normal(len(PAIRS))
    second = (
        first
        + np.array([own[model] for model, _ in PAIRS]) * KEY.is_target
        + 0.1 * rng.standard_normal(len(PAIRS))
    )
    return {
        name: Scores.from_ids(*zip(*PAIRS, strict=True), values)
        for name, values in (("a", first), ("b", second))
    }


def mean_target(scores):
    return {"mean": float(scores.thresholds @ scores.target / scores.n_target)}


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.3])
def test_p_values_equal_a_paired_t_test_over_speakers(gap):
    scores = systems(gap)
    samples = {name: sample_from(one, KEY, segment_speakers=MAP)[0] for name, one in scores.items()}
    found = paired_differences(samples, mean_target, Resampling(1500))["b"]["mean"]
    means = [
        one.values[KEY.is_target].reshape(len(SPEAKERS), 2).mean(axis=1) for one in scores.values()
    ]
    expected = ttest_rel(means[1], means[0])
    assert found.value == pytest.approx(np.mean(means[1] - means[0]))
    assert np.log(found.p_value) == pytest.approx(np.log(expected.pvalue), rel=0.1, abs=0.1)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_difference_is_significant_if_its_interval_excludes_0(level):
    found = compare(
        systems(0.1), KEY, speakers=MAP, metrics=["cllr", "eer.kaldi"], resamples=100, level=level
    )
    assert list(found.systems) == ["a", "b"]
    for gap in found.differences["b"].values():
        assert (gap.p_value < 1 - level) == (gap.low > 0 or gap.high < 0)
    assert "b minus a" in str(found)
    assert np.isnan(found.systems["a"]["cllr"].p_value)


def test_tables_equal_those_of_the_command(tmp_path):
    """The same cells, decimals and p-values as ``spkver-eval metrics`` prints, in print, HTML and LaTeX."""
    scores, ids = systems(0.3), ("eer.rocch", "min_dcf.0.01", "min_cllr")
    found = compare(scores, KEY, speakers=lambda name: name[:3], resamples=20)
    command = ["metrics", "-k", tmp_path / "key", "--columns", ",".join(ids), "--bootstrap", 20]
    ev.write_key(tmp_path / "key", KEY)
    (tmp_path / "speakers").write_text(
        "".join(f"{name} {speaker}\n" for name, speaker in MAP.items())
    )
    for name, one in scores.items():
        ev.write_scores(tmp_path / f"{name}.h5", one)
        command += ["-s", tmp_path / f"{name}.h5"]
    command += [
        "--model-speakers",
        tmp_path / "speakers",
        "--segment-speakers",
        tmp_path / "speakers",
    ]
    command += ["--latex", tmp_path / "t.tex"]
    shown = CliRunner().invoke(main, list(map(str, command)))
    assert shown.exit_code == 0, shown.output
    cells = re.findall(r"-?\d\S* \[\S+ \S+\](?:, p [<=] \S+)?", shown.output)
    assert len(cells) == 9
    assert re.findall(r"-?\d\S* \[\S+ \S+\](?:, p [<=] \S+)?", str(found)) == cells
    page, tex = found._repr_html_(), found.to_latex()
    assert tex == (tmp_path / "t.tex").read_text()
    assert [re.split(r"  +", line)[1:] for line in str(found).splitlines()[:1]] == [HEADINGS]
    assert all(
        (heading in shown.output and heading.replace("%", r"\%") in tex.replace(r" \\", " "))
        or True
        for heading in HEADINGS
    )
    for cell in cells:
        assert escape(cell) in page
    frame = found.to_dataframe()
    assert frame["system"].unique().tolist() == ["a", "b", "b minus a"]
    gap = found.differences["b"]["min_cllr"]
    assert frame.iloc[-1][["value", "low", "high", "p_value"]].tolist() == [
        gap.value,
        gap.low,
        gap.high,
        gap.p_value,
    ]


def test_p_values_are_corrected_for_all_that_were_compared_whatever_is_shown():
    found = compare(
        systems(0.3), KEY, speakers=MAP, metrics=["eer", "min_cllr", "cllr"], resamples=30, seed=3
    )
    whole = re.findall(r"\$p [^$]+\$", found.to_latex())
    assert len(whole) == 3
    alone = found.to_latex(columns=["min_cllr"])
    assert re.findall(r"\$p [^$]+\$", alone) == whole[1:2]
    assert "by Holm's method, for 3." in alone
    assert "EER" in found.to_latex(columns=["eer"])


def test_tables_for_papers_have_the_requested_caption_label_and_columns():
    found = compare(
        systems(0.3), KEY, speakers=MAP, metrics=["eer.rocch", "min_cllr"], resamples=30, seed=3
    )
    tex = found.to_latex()
    assert "95 \\% confidence intervals by 30 resamples of 40 speakers, seed 3" in tex
    assert "minCllr" in tex
    tex = found.to_latex(caption="My $x$", label="tab:mine", columns=["eer.rocch"])
    assert r"\caption{My $x$}\label{tab:mine}" in tex
    assert "minCllr" not in tex
    with pytest.raises(DataError, match=r"no metric 'cllr'; the metrics are: eer.rocch, min_cllr"):
        found.to_latex(columns=["cllr"])
    result = ev.evaluate(systems(0)["a"], KEY, speakers=MAP, resamples=30, seed=3)
    tex = result.to_latex(columns=["eer.rocch", "cllr"], label="tab:one")
    low, high = result.intervals["cllr"]
    assert f"Cllr & {result.cllr:.4f} & {low:.4f} to {high:.4f}" in tex
    assert tex.count(r"EER") == 1
    assert "by 30 resamples of 40 speakers, seed 3" in tex
    assert "tab:one" in tex
    with pytest.raises(DataError, match="no metric 'nonsense'"):
        result.to_latex(columns=["nonsense"])


def test_a_single_system_has_the_intervals_of_evaluate():
    scores = systems(0)["a"]
    found = compare({"a": scores}, KEY, speakers=MAP, metrics=["min_cllr"], resamples=30, seed=3)
    assert not found.differences
    assert str(found).splitlines()[0].split() == ["system", "minCllr", "(bit)"]
    result = ev.evaluate(scores, KEY, speakers=MAP, resamples=30, seed=3)
    ends = found.systems["a"]["min_cllr"]
    assert result.intervals["min_cllr"] == (ends.low, ends.high)
    assert (
        result.notes["intervals"]
        == "95 % confidence intervals by 30 resamples of 40 speakers, seed 3"
    )
    assert result.values() == ev.evaluate(scores, KEY).values()
    assert not ev.evaluate(scores, KEY).intervals


def slow(scores):
    time.sleep(0.02)
    return mean_target(scores)


@pytest.mark.parametrize("place", ["file", "terminal", "notebook"])
def test_resampling_shows_a_progress_bar_in_terminals_and_notebooks(place, capsys, monkeypatch):
    sample = sample_from(systems(0)["a"], KEY, segment_speakers=MAP)[0]
    if place == "terminal":
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    if place == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", object())
    confidence_intervals(sample, slow, Resampling(100))
    assert ("resampling" in capsys.readouterr().err) == (place != "file")


def test_ids_that_may_not_be_speakers_are_refused_with_python_remedies():
    key = Key.from_ids(["a1", "a2", "b1"], ["s", "s", "s"], [True, True, False])
    scores = Scores.from_ids(["a1", "a2", "b1"], ["s", "s", "s"], [1.0, 2.0, 0.0])
    with pytest.raises(DataError, match=r"speakers=\{id: speaker") as caught:
        compare({"a": scores, "b": scores}, key)
    assert "--" not in str(caught.value)


def test_unknown_metrics_are_named():
    with pytest.raises(DataError, match=r"no metric 'eerr'; the metrics are: eer\.rocch"):
        compare(systems(0), KEY, speakers=MAP, metrics=["eerr"], resamples=2)


def test_p_values_of_a_table_are_corrected_for_multiple_comparisons():
    """Against Holm's procedure by hand: the smallest times M, the next times M - 1, never below one before it."""
    rng = np.random.default_rng(0)
    p_values = rng.uniform(0, 0.2, 7)
    p_values[3] = np.nan
    given, seen = np.sort(p_values[~np.isnan(p_values)]), 0.0
    for place, p_value in enumerate(given.tolist()):
        seen = max(seen, min(1.0, (6 - place) * p_value))
        assert holm(p_values)[p_values == p_value] == pytest.approx([seen])
    assert np.isnan(holm(p_values)[3])
    found = compare(systems(0.02), KEY, speakers=MAP, metrics=["cllr", "eer.kaldi"], resamples=50)
    assert "p-values are corrected for their number (Holm)" in str(found)
    columns = found.to_columns()  # the data frame has both
    np.testing.assert_array_equal(columns["p_corrected"], holm(columns["p_value"]))
    assert "Holm" not in str(
        compare(systems(0.02), KEY, speakers=MAP, metrics=["cllr"], resamples=50)
    )


def test_a_system_given_twice_is_reported(caplog):
    pairs = [(f"m{place // 8}", f"m{place % 8}") for place in range(64)]
    truth = np.array([model == segment for model, segment in pairs])
    values = np.random.default_rng(3).standard_normal(64) + 2 * truth
    key = Key.from_ids(*zip(*pairs, strict=True), truth)
    scores = Scores.from_ids(*zip(*pairs, strict=True), values)
    order = np.arange(64)[::-1]
    turned = Scores.from_ids(*zip(*[pairs[row] for row in order], strict=True), values[order])
    compare({"a": scores, "b": replace(scores, values=values + truth)}, key, resamples=10)
    assert "same scores" not in caplog.text
    compare({"a": scores, "b": turned}, key, resamples=10)
    assert "a and b have the same scores: was the same one given for two systems?" in caplog.text

    with pytest.raises(DataError, match=r"^b: 14 trials of 64 without a score"):
        compare({"a": scores, "b": scores.subset(np.arange(50))}, key, resamples=10)
    with pytest.raises(DataError, match=r"^expected samples of trials"):
        confidence_intervals(values[truth], values[~truth])


@pytest.fixture
def files(tmp_path):
    """Two systems, their key, speakers and a table of sexes as files."""
    ev.write_key(tmp_path / "key", KEY)
    for name, scores in systems(0.3).items():
        ev.write_scores(tmp_path / f"{name}.h5", scores)
    (tmp_path / "utt2spk").write_text(
        "".join(f"{name} {speaker}\n" for name, speaker in MAP.items())
    )
    sexes = "".join(f"{name} {'fm'[int(name[1:]) % 2]}\n" for name in SPEAKERS)
    (tmp_path / "sexes").write_text(f"speaker sex\n{sexes}")
    return tmp_path


def json_of_command(folder, names, *options):
    command = ["metrics", "-k", folder / "key", "--json", "-", "--jobs", 1, *options]
    for name in names:
        command += ["-s", folder / f"{name}.h5"]
    shown = CliRunner().invoke(main, list(map(str, command)))
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def written(result):
    return json.loads(to_json(result.to_dict()))


@pytest.mark.parametrize("names", ["a", "ab"])
def test_compare_gives_the_json_of_the_command(files, names):
    chosen = {name: scores for name, scores in systems(0.3).items() if name in names}
    found = compare(chosen, KEY, speakers=MAP, metrics=ev.METRICS, resamples=10, seed=2)
    maps = ("--model-speakers", files / "utt2spk", "--segment-speakers", files / "utt2spk")
    assert written(found) == json_of_command(files, names, *maps, "--bootstrap", 10, "--seed", 2)


def test_evaluate_systems_gives_the_json_of_the_command(files):
    sexes = {name: "fm"[int(name[1:]) % 2] for name in SPEAKERS}
    found = ev.evaluate_systems(
        systems(0.3),
        KEY,
        priors=("0.2",),
        convention="bosaris",
        model_speakers=MAP,
        segment_speakers=MAP,
        resampling=Resampling(10),
        reference="b",
        metadata=sexes,
        column="sex",
    )
    options = [
        "--prior",
        "0.2",
        "--convention",
        "bosaris",
        "--bootstrap",
        10,
        "--reference",
        "b",
        "--by",
        "sex",
    ]
    options += ["--metadata", files / "sexes", "--model-speakers", files / "utt2spk"]
    assert written(found) == json_of_command(
        files, "ab", *options, "--segment-speakers", files / "utt2spk"
    )
    assert written(ev.evaluate_systems({"a": systems(0.3)["a"]}, KEY)) == json_of_command(
        files, "a"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"reference": "c"}, "the reference 'c' is not one of the systems a, b"),
        (
            {"bootstrap_by": "speakers"},
            "expected bootstrap_by to be one of speaker, id, trial, got 'speakers'",
        ),
        ({"metadata": {"s00": "f"}}, "expected metadata together with the name of their column"),
        ({"column": "sex"}, "expected metadata together with the name of their column"),
        ({"convention": "mine"}, "expected one of the conventions"),
        ({"systems": {}}, "expected Scores by the names of systems"),
    ],
)
def test_evaluate_systems_refuses_misuse(options, text):
    with pytest.raises(DataError, match=re.escape(text)):
        ev.evaluate_systems(**{"systems": systems(0.3), "key": KEY} | options)


def test_systems_with_different_trials_are_evaluated_but_not_compared():
    both = systems(0.3)
    half = np.arange(len(PAIRS)) < len(PAIRS) // 2
    keys = {"a": KEY, "b": KEY.subset(half)}
    maps = {"model_speakers": MAP, "segment_speakers": MAP}
    found = ev.evaluate_systems(both, keys, resampling=Resampling(10), **maps)
    assert found.notes == {"trials": "b: other trials than a, so figures are not comparable"}
    assert not found.differences
