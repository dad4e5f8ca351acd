"""Voice similarity matrices, DeID and G_VD: hand-made matrices, brute force, limits, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation import formats
from evaluation.calibration import cross_validate_affine
from evaluation.metrics import pav_llrs
from evaluation.trials import Key, Scores, find_speakers
from evaluation.uncertainty import Resampling
from evaluation.utility import (
    SimilarityMatrix,
    compare_voices,
    de_identification,
    distinctiveness,
    gain_of_distinctiveness,
    matrix_of_voices,
    similarity_matrix,
)
from spkbase.errors import DataError

NAMES = ("ann", "bob", "cat", "dan", "eve", "fay")


def voices(distance, *, seed=0, per_speaker=5):
    """Each of six speakers is enrolled once and tried with some recordings; LLRs of a distance, scaled and moved."""
    rng = np.random.default_rng(seed)
    models, segments, truth = [], [], []
    for model in NAMES:
        for owner in NAMES:
            for take in range(per_speaker):
                models.append(model)
                segments.append(f"{owner}-{take}")
                truth.append(model == owner)
    target = np.array(truth)
    llr = np.where(target, distance, -distance) * distance / 2 + distance * rng.standard_normal(
        len(target)
    )
    key = Key.from_ids(models, segments, target)
    return (
        Scores.from_ids(models, segments, 0.3 * llr + 2),
        key,
        {name: name.split("-")[0] for name in segments},
    )


def test_the_matrix_equals_brute_force():
    rng = np.random.default_rng(1)
    llr, first, second = rng.normal(size=60), rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    matrix = similarity_matrix(llr, first, second, 4)
    for i in range(4):
        for j in range(4):
            cell = [
                value for value, a, b in zip(llr, first, second, strict=True) if (a, b) == (i, j)
            ]
            expected = 1 / (1 + np.exp(-np.mean(cell))) if cell else np.nan
            assert matrix[i, j] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_distinctiveness_equals_hand_computed_values(count):
    assert distinctiveness(np.eye(count)) == 1
    assert distinctiveness(np.full((count, count), 0.7)) == pytest.approx(0)
    assert distinctiveness(1 - np.eye(count)) == 1, "it is an absolute value"
    cells = np.random.default_rng(count).random((count, count))
    diagonal = np.mean(np.diagonal(cells))
    rest = count / (count - 1) * (cells.mean() - diagonal / count)  # as Noé et al. write it
    assert distinctiveness(cells) == pytest.approx(abs(diagonal - rest))


def test_empty_cells_are_ignored_and_speakers_weighted():
    cells = np.array([[0.9, 0.1, np.nan], [0.2, 0.8, 0.4], [np.nan, 0.3, 0.7]])
    assert distinctiveness(cells) == pytest.approx(0.8 - np.mean([0.1, 0.2, 0.4, 0.3]))
    # a speaker that counts twice stands for two copies that are not compared with each other
    double = cells[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]
    double[0, 1] = double[1, 0] = np.nan
    assert distinctiveness(cells, [2, 1, 1]) == pytest.approx(distinctiveness(double))


def test_deid_and_gain_have_their_limits():
    assert de_identification(0.8, 0.8) == 0
    assert de_identification(0.8, 0.0) == 1
    assert gain_of_distinctiveness(0.8, 0.8) == 0
    assert gain_of_distinctiveness(0.8, 0.08) == pytest.approx(-10)
    assert gain_of_distinctiveness(0.4, 0.8) == pytest.approx(10 * np.log10(2))
    assert gain_of_distinctiveness(0.8, 0.0) == -np.inf
    assert np.isnan(gain_of_distinctiveness(0.0, 0.5))
    assert np.isnan(de_identification(0.0, 0.5))


def test_scores_become_matrices_under_three_calibrations():
    scores, key, owners = voices(2.0)
    speakers = find_speakers(key, segment_speakers=owners)
    llrs = {
        "none": scores.values,
        "folds": cross_validate_affine(scores.values, key.is_target, speakers, ridge=1e-3),
        "pav": np.empty(len(key)),
    }
    llrs["pav"][key.is_target], llrs["pav"][~key.is_target] = pav_llrs(
        scores.values[key.is_target], scores.values[~key.is_target], laplace=True
    )
    for calibration, llr in llrs.items():
        matrix, notes = matrix_of_voices(
            scores, key, calibration=calibration, segment_speakers=owners
        )
        expected = similarity_matrix(llr, speakers.models, speakers.segments, 6)
        assert matrix.values == pytest.approx(expected)
        assert (matrix.speakers, matrix.n_trials, notes) == (NAMES, 180, [])
    moved = replace(scores, values=100 * scores.values - 7)
    matrices = [
        matrix_of_voices(of, key, segment_speakers=owners)[0].values for of in (moved, scores)
    ]
    assert matrices[0] == pytest.approx(matrices[1]), (
        "calibrated, the scale of scores does not count"
    )


def test_inverted_calibrations_are_counted_without_a_warning(caplog):
    owner = {f"{name}{take}": name for name in NAMES for take in range(3)}
    pairs = [(a, b) for a in owner for b in owner if a != b]
    key = Key.from_ids(*zip(*pairs, strict=True), [owner[a] == owner[b] for a, b in pairs])
    values = np.random.default_rng(1).standard_normal(len(pairs)) - 2.0 * key.is_target
    scores = Scores.from_ids(*zip(*pairs, strict=True), values)
    speakers = {"model_speakers": owner, "segment_speakers": owner}
    counts = []
    quiet = matrix_of_voices(
        scores, key, **speakers, tell=lambda negative, total: counts.append((negative, total))
    )
    assert counts == [(15, 15)]
    assert not caplog.text
    warned = matrix_of_voices(scores, key, **speakers)
    assert "negative slope for 15 of 15 pairs" in caplog.text
    assert np.array_equal(quiet[0].values, warned[0].values, equal_nan=True)


def test_pairs_count_both_ways_on_request():
    """The upper triangle of a list of recordings; a recording with itself does not count."""
    owner = {f"{name}{take}": name for name in NAMES for take in range(3)}
    recordings = list(owner)
    pairs = [(a, b) for row, a in enumerate(recordings) for b in recordings[row:]]
    rng = np.random.default_rng(2)
    key = Key.from_ids(*zip(*pairs, strict=True), [owner[a] == owner[b] for a, b in pairs])
    scores = Scores.from_ids(*zip(*pairs, strict=True), rng.standard_normal(len(pairs)))
    how = {"calibration": "none", "model_speakers": owner, "segment_speakers": owner}
    matrix, notes = matrix_of_voices(scores, key, **how, symmetric=True)
    assert notes == ["18 trials of a recording with itself were left out"]
    assert np.array_equal(matrix.values, matrix.values.T)
    values = dict(zip(pairs, scores.values, strict=True))
    own = [value for (a, b), value in values.items() if a != b and owner[a] == owner[b] == "cat"]
    assert matrix.values[2, 2] == pytest.approx(1 / (1 + np.exp(-np.mean(own))))
    one_way = matrix_of_voices(scores, key, **how)[0].values
    assert np.isnan(one_way[5, 0])
    assert one_way[0, 5] == matrix.values[0, 5]


def test_deid_and_gain_have_intervals():
    three = {}
    for name, distance in (("oo", 4.0), ("oa", 0.5), ("aa", 2.0)):
        scores, key, owners = voices(distance, seed=len(name) + int(10 * distance))
        three[name] = matrix_of_voices(scores, key, segment_speakers=owners)[0]
    found = compare_voices(three, resampling=Resampling(200, 1))
    values = {name: distinctiveness(matrix.values) for name, matrix in three.items()}
    assert found.deid.value == pytest.approx(1 - values["oa"] / values["oo"])
    assert found.gain.value == pytest.approx(10 * np.log10(values["aa"] / values["oo"]))
    assert values["oo"] > values["aa"] > values["oa"]
    assert found.deid.low < found.deid.value < found.deid.high <= 1
    assert found.gain.low < found.gain.value < found.gain.high
    again = compare_voices(three, resampling=Resampling(200, 1))
    assert again.to_dict() == found.to_dict()
    assert found.to_columns()["measure"] == ["D(oo)", "D(oa)", "D(aa)", "DeID", "G_VD [dB]"]


def test_speakers_missing_from_a_matrix_are_omitted():
    full, part = SimilarityMatrix(("a", "b", "c"), np.eye(3)), 0.9 * np.eye(3)
    part[1, 1] = np.nan
    found = compare_voices({"oo": full, "aa": SimilarityMatrix(("a", "b", "c"), part)})
    assert found.matrices["oo"].speakers == ("a", "c")
    assert found.notes == (
        "1 of 3 speakers, or segments of unknown ones, are not in all matrices: b",
    )
    assert np.isnan(found.deid.value)
    assert "no original against anonymised" in found.deid.note


def test_swapped_and_repeated_files_and_undefined_measures_are_noted():
    clear, blurred = (
        SimilarityMatrix(("a", "b"), np.array([[high, 0.1], [0.1, high]])) for high in (0.9, 0.5)
    )
    other = SimilarityMatrix(("a", "b"), np.array([[0.6, 0.1], [0.1, 0.6]]))
    assert compare_voices({"oo": clear, "oa": blurred, "aa": other}).notes == ()
    clearer = SimilarityMatrix(("a", "b"), np.array([[0.95, 0.1], [0.1, 0.95]]))
    notes = compare_voices({"oo": blurred, "oa": clear, "aa": clearer}).notes
    assert [note.rpartition(": ")[2] for note in notes] == [
        "were the files swapped?",
        "were files swapped?",
    ]
    twice = "M_{} and M_{} are equal: was a file given twice?"
    assert compare_voices({"oo": clear, "aa": clear}).notes == (twice.format("oo", "aa"),)
    assert compare_voices({"oo": clear, "oa": blurred, "aa": blurred}).notes == (
        twice.format("oa", "aa"),
    )
    alike, apart = (
        SimilarityMatrix(("a", "b"), cells) for cells in (np.full((2, 2), 0.5), np.eye(2))
    )
    undefined, infinite = (
        compare_voices({"oo": alike, "aa": apart}),
        compare_voices({"oo": apart, "aa": alike}),
    )
    assert np.isnan(undefined.gain.value)
    assert infinite.gain.value == -np.inf
    assert [("D(M_oo) is 0" in undefined.notes[0]), ("G_VD is -inf" in infinite.notes[0])] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: similarity_matrix([np.nan], [0], [0], 2), "1 NaN"),
        (lambda: similarity_matrix([np.inf, -np.inf], [0, 0], [0, 0], 2), "both signs"),
        (lambda: similarity_matrix([0.0], [0], [0, 1], 2), "two speakers for each"),
        (lambda: similarity_matrix([0.0], [0], [2], 2), "speakers from 0 to 1"),
        (lambda: distinctiveness(np.ones((1, 1))), "two speakers or more"),
        (lambda: distinctiveness(np.ones((2, 3))), "square matrix"),
        (
            lambda: distinctiveness(np.array([[np.nan, 0.5], [0.5, 1.0]])),
            "no trial with themselves",
        ),
        (lambda: distinctiveness(np.array([[1.0, np.nan], [np.nan, 1.0]])), "between two speakers"),
    ],
)
def test_bad_trials_and_matrices_are_refused(call, text):
    with pytest.raises(DataError, match=text):
        call()


def test_bad_lists_are_refused():
    scores, key, owners = voices(1.0)
    one = np.flatnonzero(
        (key.models == 0) & np.isin(key.segments, key.segments[(key.models == 0) & key.is_target])
    )
    with pytest.raises(DataError, match="two speakers or more"):
        matrix_of_voices(scores, key.subset(one), segment_speakers=owners)
    for kept, text in (
        (key.is_target, "none between two speakers"),
        (~key.is_target, "none within a speaker"),
    ):
        with pytest.raises(DataError, match=text):
            matrix_of_voices(scores, key.subset(kept), segment_speakers=owners)
    few = np.flatnonzero(np.isin(key.models, [0, 1]))
    names = {segment: owner for segment, owner in owners.items() if owner in NAMES[:2]}
    known = np.array([key.segment_ids[segment] in names for segment in key.segments[few]])
    with pytest.raises(DataError, match="expected 5 speakers or more to train a calibration"):
        matrix_of_voices(scores, key.subset(few[known]), segment_speakers=names)
    for matrices in (
        {},
        {"oo": SimilarityMatrix(("a", "b"), np.eye(2))},
        {"xx": SimilarityMatrix(("a",), np.eye(1))},
    ):
        with pytest.raises(DataError, match="expected the matrices oo and oa or aa"):
            compare_voices(matrices)


@pytest.fixture
def three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, distance in (("oo", 3.0), ("oa", 0.3), ("aa", 1.5)):
        scores, key, owners = voices(distance, seed=int(10 * distance))
        formats.write_scores(f"{name}.txt", scores)
    formats.write_key("key.txt", key)
    Path("utt2spk").write_text(
        "".join(f"{segment} {owner}\n" for segment, owner in sorted(owners.items()))
    )
    Path("spk2spk").write_text("".join(f"{name} {name}\n" for name in NAMES))
    return tmp_path


ALL = ("--original", "oo.txt", "--original-anonymised", "oa.txt", "--anonymised", "aa.txt")


def test_the_command_gives_the_results_of_the_function(three):
    by_key = "-k", "key.txt", "--segment-speakers", "utt2spk", "--plot", "voices.png"
    report = json.loads(passes("similarity", *ALL, *by_key, "--json", "-").stdout)
    d = report["distinctiveness"]
    assert report["deid"]["value"] == pytest.approx(1 - d["oa"]["value"] / d["oo"]["value"])
    assert report["gain_of_voice_distinctiveness"]["value"] == pytest.approx(
        10 * np.log10(d["aa"]["value"] / d["oo"]["value"])
    )
    assert (report["n_speakers"], report["calibration"]) == (6, "folds")
    for name, matrix in report["matrices"].items():
        assert distinctiveness(matrix["values"]) == pytest.approx(d[name]["value"], abs=2e-6)
    assert (three / "voices.png").stat().st_size > 10_000
    by_maps = passes(
        "similarity",
        *ALL,
        "--model-speakers",
        "spk2spk",
        "--segment-speakers",
        "utt2spk",
        "--json",
        "-",
    )
    assert json.loads(by_maps.stdout) == report
    table = passes(
        "similarity", *ALL, "-k", "key.txt", "--calibrate", "pav", "--bootstrap", 50
    ).stdout
    assert all(
        word in table
        for word in ("DeID", "G_VD [dB]", "low", "isotonic regression on the same trials")
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--original", "oo.txt", "-k", "key.txt"),
            "--original-anonymised FILE or --anonymised FILE",
        ),
        ((*ALL, "-k", "key.txt", "-k", "key.txt"), "a key, or one for each of 3 files"),
        ((*ALL,), "no key is given"),
        (
            (*ALL, "--model-speakers", "spk2spk", "--segment-speakers", "spk2spk"),
            "segments without a speaker",
        ),
        (("--original", "oo.txt", "--anonymised", "nan.txt", "-k", "key.txt"), "nan.txt"),
    ],
)
def test_the_command_refuses_bad_input(three, arguments, text):
    lines = (three / "aa.txt").read_text().splitlines()
    (three / "nan.txt").write_text(
        "\n".join([*lines[:-1], lines[-1].rsplit(" ", 1)[0] + " nan"]) + "\n"
    )
    assert text in refused("similarity", *arguments)


@pytest.mark.parametrize(("change", "told"), [(np.exp, True), (lambda values: values, False)])
def test_uncalibrated_scores_are_reported_in_python(caplog, change, told):
    scores, key, owners = voices(2.0)
    ratios = change((scores.values - 2) / 0.3)
    matrix_of_voices(
        replace(scores, values=ratios), key, calibration="none", segment_speakers=owners
    )
    assert ("so they are not log-likelihood ratios" in caplog.text) == told
