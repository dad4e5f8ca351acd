"""``spkver-eval metrics`` with intervals and groups: options, names of methods, the same numbers as in Python."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.formats.reading import read_key, read_scores
from evaluation.metrics import Metrics
from evaluation.trials.speakers import read_speakers
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from

N_SPEAKERS, N_SEGMENTS = 16, 3


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    own, scores, key = rng.standard_normal(N_SPEAKERS), [], []
    for model in range(N_SPEAKERS):
        for speaker in range(N_SPEAKERS):
            for number in range(N_SEGMENTS):
                pair = f"m{model} u{speaker}-{number}"
                score = (2.5 if model == speaker else 0) - 1.2 + rng.standard_normal() + own[model]
                scores.append(f"{pair} {score:.3f}\n")
                key.append(f"{pair} {'target' if model == speaker else 'nontarget'}\n")
    (tmp_path / "scores").write_text("".join(scores))
    (tmp_path / "key").write_text("".join(key))
    segments = [
        (f"u{speaker}-{number}", speaker)
        for speaker in range(N_SPEAKERS)
        for number in range(N_SEGMENTS)
    ]
    (tmp_path / "utt2spk").write_text("".join(f"{one} m{speaker}\n" for one, speaker in segments))
    rows = [f"m{speaker},{'fm'[speaker % 2]}\n" for speaker in range(N_SPEAKERS)]
    (tmp_path / "meta.csv").write_text("id,sex\n" + "".join(rows))
    return tmp_path


def command(files, *options):
    return [
        "metrics",
        "-s",
        files / "scores",
        "-k",
        files / "key",
        "--jobs",
        1,
        *options,
        "--json",
        "-",
    ]


def run(files, *options):
    return json.loads(passes(*command(files, *options)).stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--bootstrap 10 --segment-speakers few", "47 of 48 segments without a speaker"),
        ("--by age --metadata meta.csv", "no column 'age' besides the ids; the columns are: sex"),
        ("--by sex", "--metadata"),
    ],
)
def test_misuse_gives_one_message(files, monkeypatch, options, message):
    monkeypatch.chdir(files)
    Path("few").write_text("u0-0 m0\n")
    assert message in refused(*command(files, *options.split()))


def test_intervals_equal_those_of_python(files):
    found = run(
        files, "--bootstrap", "40", "--seed", "3", "--segment-speakers", str(files / "utt2spk")
    )
    sample, _ = sample_from(
        read_scores(files / "scores"),
        read_key(files / "key"),
        segment_speakers=read_speakers(files / "utt2spk"),
    )
    expected = confidence_intervals(sample, Metrics(), Resampling(40, 3))
    assert list(found["intervals"]) == list(expected)
    for name, (low, high) in found["intervals"].items():
        if np.isfinite(expected[name].low):
            assert (low, high) == (expected[name].low, expected[name].high), name
        else:
            assert low is None
            assert found["notes"][f"intervals.{name}"] == expected[name].note
    assert (
        found["interval_methods"]["eer.rocch"]
        == "t on the logit scale, 1.70 times the bias removed"
    )
    assert "resamples of 16 speakers" in found["notes"]["intervals"]
    # here the key alone gives the same speakers
    assert run(files, "--bootstrap", "40", "--seed", "3") == found
    assert run(files, "--bootstrap", "40", "--seed", "4")["intervals"] != found["intervals"]


@pytest.mark.parametrize("resamples", ["0", "30"])
def test_groups_have_metrics_and_counts(files, resamples):
    options = ("--by", "sex", "--metadata", str(files / "meta.csv"), "--bootstrap", resamples)
    found = run(files, *options, "--segment-speakers", str(files / "utt2spk"))["groups"]
    assert list(found["groups"]) == ["f", "m"]
    assert found["groups"]["f"]["n_target"] == N_SPEAKERS // 2 * N_SEGMENTS
    assert found["n_across_groups"] == N_SPEAKERS**2 * N_SEGMENTS // 2
    gap = found["extremes"]["cllr"]["gap"]
    values = [group["metrics"]["cllr"] for group in found["groups"].values()]
    assert gap["value"] == pytest.approx(max(values) - min(values))
    if resamples == "0":
        assert gap["interval"] == [None, None]
    else:
        assert 0 <= gap["interval"][0] < gap["interval"][1]
