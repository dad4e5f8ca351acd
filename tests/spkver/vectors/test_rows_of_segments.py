"""Statistics, supervectors, i-vectors and embeddings: rows are chosen, joined, and go into chains."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.errors import DataError
from spkver.backend import train_chain
from spkver.mixture import Statistics, open_statistics, write_statistics
from spkver.vectors import IVectors, Supervectors, sum_by_model

MODELS = np.array(["m1", "m2", "m1", "m3"], object)
SEGMENTS = np.array(["a", "b", "c", "a"], object)
DRAW = np.random.default_rng(0)
STATISTICS = Statistics(MODELS, SEGMENTS, DRAW.random((4, 2)), DRAW.random((4, 6)))
VECTORS = Supervectors(MODELS, SEGMENTS, DRAW.random((4, 6)))
IVECTORS = IVectors(MODELS, SEGMENTS, DRAW.random((4, 6)), DRAW.random((4, 6)))
CHOICES = {
    "slice": (slice(1, 3), [1, 2]),
    "mask": (MODELS == "m1", [0, 2]),
    "numbers": ([-1, 0], [3, 0]),
    "ids": (["c", "a"], [2, 0, 3]),
    "nothing": ([], []),
}


@pytest.mark.parametrize(
    "whole", [STATISTICS, VECTORS, IVECTORS], ids=lambda rows: type(rows).__name__
)
@pytest.mark.parametrize(("rows", "expected"), CHOICES.values(), ids=CHOICES)
def test_rows_are_chosen(whole, rows, expected):
    chosen = whole[rows]
    assert type(chosen) is type(whole)
    for name, values in vars(chosen).items():
        if name != "mixture":
            np.testing.assert_array_equal(values, getattr(whole, name)[expected])


def test_rows_of_models_and_of_files_are_chosen(tmp_path):
    assert STATISTICS.of_models(["m3", "m1"]).segments.tolist() == ["a", "a", "c"]
    write_statistics(tmp_path / "stat.h5", STATISTICS)
    stored = open_statistics(tmp_path / "stat.h5")
    np.testing.assert_array_equal(stored[["c"]].first, STATISTICS.first[[2]].astype(np.float32))


@pytest.mark.parametrize(
    "whole", [STATISTICS, VECTORS, IVECTORS, replace(IVECTORS, variances=None)]
)
def test_joined_parts_equal_the_whole(whole):
    again = type(whole).joined([whole[:1], whole[1:3], whole[3:]])
    for name, values in vars(again).items():
        np.testing.assert_array_equal(values, getattr(whole, name))


def test_joined_statistics_of_a_model_are_added():
    first, second = STATISTICS[:2], STATISTICS[2:]
    sums = sum_by_model(Statistics.joined([first, second]))
    assert sums.models.tolist() == ["m1", "m2", "m3"]
    np.testing.assert_allclose(sums.first[:1], STATISTICS.first[[0]] + STATISTICS.first[[2]])


MISUSE = {
    "an id that is not there": (lambda: STATISTICS[["a", "z"]], "1 of 2 ids do not exist: 'z'"),
    "a model that is not there": (lambda: STATISTICS.of_models(["m9"]), "ids do not exist: 'm9'"),
    "a long mask": (lambda: STATISTICS[np.ones(5, bool)], "ids of 4 rows: boolean index did not match"),
    "a number out of range": (lambda: STATISTICS[[4]], "ids of 4 rows: index 4 is out of bounds"),
    "one number": (lambda: STATISTICS[0], r"for a single row, give \[row\]"),
    "fractions": (lambda: STATISTICS[[0.5]], "expected a slice, a mask, numbers or ids"),
    "the same twice": (lambda: Statistics.joined([STATISTICS, STATISTICS[:1]]), "in the parts twice: m1 a"),
    "other widths": (
        lambda: Statistics.joined([STATISTICS, replace(STATISTICS, zeroth=np.ones((4, 3)))]), "the zeroth of the parts",
    ),
    "variances of one alone": (
        lambda: IVectors.joined([IVECTORS[:2], replace(IVECTORS, variances=None)[2:]]), "the variances of the parts",
    ),
    "nothing to join": (lambda: Statistics.joined([]), "at least one part"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISUSE.values(), ids=MISUSE)
def test_misuse_raises(call, message):
    with pytest.raises(DataError, match=message):
        call()


def speakers_and_points():
    people = np.repeat(np.arange(8), 5)
    points = DRAW.normal(size=(8, 4))[people] + 0.3 * DRAW.normal(size=(40, 4))
    return np.array([f"s{person}" for person in people], object), points


@pytest.mark.parametrize("kind", [Supervectors, IVectors])
def test_chains_accept_supervectors_and_ivectors(kind):
    speakers, points = speakers_and_points()
    segments = np.array([f"u{row}" for row in range(40)], object)
    given = kind(speakers, segments, points)
    backend = train_chain(given, "lda:3,length,plda")
    embeddings = Embeddings(segments, speakers, points)
    expected = train_chain(embeddings, "lda:3,length,plda")
    trials = Trials.from_ids(["s0", "s1"], ["u1", "u30"])
    found = backend.score(given, given, trials).values
    np.testing.assert_array_equal(found, expected.score(embeddings, embeddings, trials).values)
    adapted = train_chain(given, [{"centre": "adapt"}], adapt=given)
    assert adapted.facts["speakers"] == 8


@pytest.mark.parametrize(
    "chain", ["lda:3,length,plda", "length,cosine,snorm", "lda:2,plda,calibrate"]
)
def test_arrays_are_scored_as_trials(chain):
    _, points = speakers_and_points()
    backend = train_chain(points, chain, speakers=np.repeat(np.arange(20), 2))
    scores = backend.score(points[:3], points[10:14].tolist())
    enrolled = Embeddings.from_arrays(points[:3], ids=["a", "b", "c"])
    tested = Embeddings.from_arrays(points[10:14], ids=["v", "w", "x", "y"])
    trials = Trials.from_ids(["a"] * 4 + ["b"] * 4 + ["c"] * 4, ["v", "w", "x", "y"] * 3)
    expected = backend.score(enrolled, tested, trials).values
    assert scores.shape == (3, 4)
    np.testing.assert_allclose(scores.ravel(), expected, atol=1e-12)
    with pytest.raises(DataError, match="expected trials with Embeddings"):
        backend.score(enrolled, tested)
    with pytest.raises(DataError, match="expected vectors of 4 dimensions"):
        backend.score(points[:, :3], points)
