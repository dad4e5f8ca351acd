"""Ranks: counts against a plain double loop, whatever the blocks and workers; ties; joins; the file; bad input."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.embeddings.sets import Averaging, Embeddings, row_norms, speaker_vectors
from evaluation.linkage import ranks as module
from evaluation.linkage.disclosure import largest_impostor_scores
from evaluation.linkage.galleries import rank_embeddings
from evaluation.linkage.ranks import (
    Ranks,
    count_beaters,
    rank_scores,
    rank_speakers,
    ranks_from_embeddings,
    ranks_from_scores,
    read_ranks,
    write_ranks,
)
from evaluation.trials import Key, Scores
from spkbase.errors import DataError
from spkbase.work import Work


def embeddings(vectors, speakers=None, prefix="s"):
    names = [f"{prefix}{row:04d}" for row in range(len(vectors))]
    return Embeddings(np.array([f"u-{name}" for name in names], object), speakers or names, vectors)


def brute(gallery, trials, owners):
    """Beaters and ties by integer arithmetic: cosines of integer vectors compare as exact fractions do."""
    found = []
    for trial, owner in zip(trials.tolist(), owners, strict=True):
        signed = []
        for vector in gallery.tolist():
            dot = sum(a * b for a, b in zip(trial, vector, strict=True))
            # sign(dot) * dot**2 / |vector|**2 gives the same order as the cosine
            signed.append(((dot > 0) - (dot < 0), dot * dot, sum(a * a for a in vector)))
        own = signed[owner]

        def side(one, own=own):
            left, right = one[0] * one[1] * own[2], own[0] * own[1] * one[2]
            return (left > right) - (left < right)

        sides = [side(one) for row, one in enumerate(signed) if row != owner]
        found.append((sides.count(1), sides.count(0)))
    return found


@given(st.data())
def test_counts_equal_exact_arithmetic(data):
    """Small integers give many exact ties, also between vectors of different lengths."""
    n_dimensions = data.draw(st.integers(1, 5))
    vector = st.lists(st.integers(-3, 3), min_size=n_dimensions, max_size=n_dimensions).filter(any)
    gallery = np.array(data.draw(st.lists(vector, min_size=2, max_size=20)))
    trials = np.array(data.draw(st.lists(vector, min_size=1, max_size=12)))
    owners = data.draw(
        st.lists(st.integers(0, len(gallery) - 1), min_size=len(trials), max_size=len(trials))
    )
    dtype = data.draw(st.sampled_from([np.float16, np.float32, np.float64]))
    blocks = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    vectors = gallery.astype(dtype)
    beaters, ties, _ = count_beaters(
        vectors,
        row_norms(vectors),
        trials.astype(dtype),
        np.array(owners),
        work=Work(jobs=1),
        blocks=blocks,
    )
    assert list(zip(beaters.tolist(), ties.tolist(), strict=True)) == brute(gallery, trials, owners)


@pytest.fixture(scope="module")
def crowded():
    """A gallery in which thousands of comparisons are closer than float32 can tell."""
    rng = np.random.default_rng(3)
    gallery = rng.standard_normal((700, 48)).astype(np.float32)
    # equal except for the last bits
    gallery[200:500] = gallery[0] * (1 + 1e-6 * rng.standard_normal((300, 48))).astype(np.float32)
    trials = gallery[:333] + rng.standard_normal((333, 48)).astype(np.float32)
    trials[200:] = gallery[0] + rng.standard_normal((133, 48)).astype(np.float32)
    return gallery, trials, np.arange(333)


@pytest.mark.parametrize("blocks", [(255, 2048), (250, 333), (200, 64), (13, 100)])
@pytest.mark.parametrize(("jobs", "sent"), [(1, False), (3, False), (2, True)])
def test_counts_do_not_depend_on_blocks_or_workers(crowded, blocks, jobs, sent, monkeypatch):
    # other machines are sent several blocks at once
    monkeypatch.setattr(module, "ships_items", lambda: sent)
    gallery, trials, owners = crowded
    beaters, ties, mated = count_beaters(
        gallery, row_norms(gallery), trials, owners, work=Work(jobs), blocks=blocks
    )
    exact = gallery.astype(np.float64), trials.astype(np.float64)
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in exact]
    cosine = unit[1] @ unit[0].T
    above = cosine - cosine[owners, owners][:, None]
    above[owners, owners] = -1
    assert (beaters == (above > 1e-12).sum(axis=1)).all()
    assert (ties == (np.abs(above) <= 1e-12).sum(axis=1)).all()
    assert np.allclose(mated, cosine[owners, owners], rtol=0, atol=1e-14)


@pytest.mark.golden
@pytest.mark.parametrize("utterances", [1, 3, 5])
def test_golden_ranks_are_reproduced(shared, utterances):
    golden = json.loads((shared / "golden" / "evaluation" / "golden_link.json").read_text())[
        f"L{utterances}"
    ]
    with np.load(shared / "golden" / "evaluation" / "inputs.npz") as file:
        enrol, trial = file["linkability/enrol"], file["linkability/trial_utts"]
    speakers = [f"s{row:04d}" for row in range(len(trial)) for _ in range(trial.shape[1])]
    ranks = ranks_from_embeddings(
        embeddings(enrol),
        embeddings(trial.reshape(-1, trial.shape[2]), speakers),
        utterances=utterances,
    )
    assert ranks.beaters.tolist() == golden["beaters_strict"]
    assert not ranks.ties.any()


# averaging


def test_speaker_vectors_are_means_of_the_first_or_all_utterances():
    vectors = np.array([[1.0, 0.0], [0.0, 3.0], [5.0, 5.0], [1.0, 1.0]])
    found = embeddings(vectors, ["b", "a", "b", "b"])
    one, two, every = (speaker_vectors(found, utterances=number) for number in (1, 2, None))
    assert one.names.tolist() == two.names.tolist() == ["a", "b"]
    assert one.vectors.tolist() == [[0.0, 3.0], [1.0, 0.0]]
    assert two.vectors.tolist() == [[0.0, 3.0], [3.0, 2.5]]
    assert every.vectors == pytest.approx(np.array([[0.0, 3.0], [7 / 3, 2.0]]))
    assert two.notes == ("1 of 2 speakers have fewer than 2 utterances: a; all of theirs are used",)
    with pytest.raises(DataError, match="1 of 2 speakers have fewer than 2 utterances: a"):
        speaker_vectors(found, utterances=2, strict=True)
    normalised = speaker_vectors(found, averaging=Averaging("normalised"), utterances=2)
    assert normalised.vectors[1] == pytest.approx([(1 + 0.5**0.5) / 2, 0.5**0.5 / 2])


def test_ranks_use_the_requested_means():
    vectors = np.random.default_rng(1).standard_normal((24, 3)) * np.geomspace(0.1, 10, 24)[:, None]
    enrol, trial = (
        embeddings(vectors[side::2], [f"s{row % 4}" for row in range(12)]) for side in (0, 1)
    )
    found = {}
    for mean in ("plain", "normalised"):
        averaging = Averaging(mean)
        found[mean] = ranks_from_embeddings(
            enrol, trial, utterances=None, averaging=averaging
        ).mated
        sides = (speaker_vectors(side, averaging=averaging).vectors for side in (enrol, trial))
        first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
        assert found[mean] == pytest.approx((first * second).sum(axis=1))
    assert found["plain"] != pytest.approx(found["normalised"], abs=0.01)


def test_the_largest_impostor_cosines_equal_those_over_all_pairs():
    rng = np.random.default_rng(2)
    sides = [rng.standard_normal((9, 4)) * rng.uniform(0.1, 10, (9, 1)) for _ in range(2)]
    gallery, trials = (speaker_vectors(embeddings(side)) for side in sides)
    found = largest_impostor_scores(gallery, trials, rank_speakers(gallery, trials), count=3)
    first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    cosine = second @ first.T
    np.fill_diagonal(cosine, -2)
    np.testing.assert_allclose(found, -np.sort(-cosine, axis=1)[:, :3], atol=1e-6)


def test_random_choices_ignore_order_and_are_nested():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((60, 4))
    ids = np.array([f"u{row:02d}" for row in range(60)], object)
    speakers = np.array([f"s{row % 6}" for row in range(60)], object)
    shuffled = rng.permutation(60)
    draws = {}
    for seed in (0, 1):
        averaging = Averaging(choice="random", seed=seed)
        for number in (1, 2, 10):
            draws[seed, number] = speaker_vectors(
                Embeddings(ids, speakers, vectors), averaging=averaging, utterances=number
            ).vectors
            again = Embeddings(ids[shuffled], speakers[shuffled], vectors[shuffled])
            assert (
                speaker_vectors(again, averaging=averaging, utterances=number).vectors
                == draws[seed, number]
            ).all()
    assert (draws[0, 1] != draws[1, 1]).any()
    assert draws[0, 10] == pytest.approx(draws[1, 10])
    # the one utterance is among the two: twice their mean minus it is the other one, which is also in the list
    other = 2 * draws[0, 2] - draws[0, 1]
    assert all(np.isclose(vectors, row).all(axis=1).any() for row in other)


# bad embeddings

GOOD = np.eye(3, 4)


def ranked(gallery, trials, speakers=None, **options):
    return ranks_from_embeddings(embeddings(gallery), embeddings(trials, speakers), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ranked(GOOD, GOOD, ["s0000", "x", "y"]),
            "2 of 3 trial speakers are not enrolled: x, y (enrol them",
        ),
        (
            lambda: ranked(GOOD, GOOD[:, :3]),
            "the same number of dimensions on both sides, got 4 of the enrolled and 3 of the tri",
        ),
        (
            lambda: ranked(np.where(GOOD == 1, np.nan, GOOD), GOOD),
            "3 vectors are not finite (NaN, infinite or far too",
        ),
        (lambda: ranked(GOOD, np.where(GOOD == 1, np.inf, GOOD)[:1]), "1 vector is not finite"),
        (
            lambda: ranked(np.vstack([GOOD, np.zeros(4)]), GOOD),
            "1 vector is zero (or far too small): no direction: u-",
        ),
        (lambda: ranked(GOOD[:1], GOOD[:1]), "expected at least 2 enrolled speakers, got 1"),
        (lambda: ranked(GOOD, GOOD, utterances=0), "expected at least 1 utterance, got 0"),
        (
            lambda: speaker_vectors(embeddings(np.vstack([GOOD, -GOOD]), ["a", "b", "c"] * 2)),
            "3 speaker means are zero (or far too small): no direction: a, b, c",
        ),
        (
            lambda: Embeddings(["u", "v", "u"], ["a", "b", "c"], GOOD),
            "ids of utterances: 'u' is repeated",
        ),
        (
            lambda: Embeddings(["u"], ["a", "b", "c"], GOOD),
            "expected ids for 3 vectors, got shape (1,)",
        ),
        (
            lambda: Embeddings(["u"], ["a"], np.array([1.0])),
            "expected vectors of floats, one row per utterance",
        ),
        (
            lambda: Averaging(mean="median"),
            "expected the mean 'plain' or 'normalised', got 'median'",
        ),
    ],
)
def test_bad_embeddings_are_refused(make, message):
    with pytest.raises(DataError, match=re.escape(message)):
        make()


def test_unenrolled_speakers_can_be_dropped():
    trial = embeddings(GOOD, ["s0002", "x", "s0000"])
    ranks = ranks_from_embeddings(embeddings(GOOD), trial, not_enrolled="drop")
    assert ranks.speakers.tolist() == ["s0000", "s0002"]
    assert ranks.notes == ("dropped: 1 of 3 trial speakers are not enrolled: x",)
    with pytest.raises(DataError, match="3 of 3 trial speakers are not enrolled"):
        ranks_from_embeddings(
            embeddings(GOOD), embeddings(GOOD, ["x", "y", "z"]), not_enrolled="drop"
        )


# scores


def table(values, owners):
    """Scores of each segment (row) with each model (column)."""
    segments, models = (one.ravel() for one in np.indices(values.shape))
    ids = [f"m{one:02d}" for one in models], [f"t{one:02d}" for one in segments]
    return Scores.from_ids(*ids, values.ravel()), Key.from_ids(
        *ids, models == np.array(owners)[segments]
    )


@given(st.data())
def test_ranks_of_scores_equal_a_double_loop(data):
    n_models, n_segments = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 8))
    row = st.lists(
        st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf]),
        min_size=n_models,
        max_size=n_models,
    )
    values = np.array(data.draw(st.lists(row, min_size=n_segments, max_size=n_segments)))
    owners = data.draw(
        st.lists(st.integers(-1, n_models - 1), min_size=n_segments, max_size=n_segments)
    )
    scores, key = table(values, owners)
    shuffle = np.array(data.draw(st.permutations(range(len(key)))))
    expected = []
    for segment, (row, owner) in enumerate(zip(values.tolist(), owners, strict=True)):
        others = [one for place, one in enumerate(row) if place != owner]
        counts = sum(one > row[owner] for one in others), sum(one == row[owner] for one in others)
        expected += [(owner, segment, *counts)] if owner >= 0 else []
    expected.sort()
    if not expected:
        with pytest.raises(DataError, match="expected at least one trial"):
            ranks_from_scores(scores.subset(shuffle), key)
        return
    ranks = ranks_from_scores(scores.subset(shuffle), key)
    assert ranks.speakers.tolist() == [f"m{owner:02d}" for owner, *_ in expected]
    assert ranks.beaters.tolist() == [one[2] for one in expected]
    assert ranks.ties.tolist() == [one[3] for one in expected]
    assert (ranks.impostors == n_models - 1).all()
    without = owners.count(-1)
    assert len(ranks.notes) == bool(without)


def test_the_largest_impostor_scores_of_each_row_are_kept():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(12, 6))
    scores, key = table(values, [0, 0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5])
    (single, largest), (_, means) = rank_scores(scores, key, [None, "all"], largest=4)
    owners = np.array([int(one[1:]) for one in single.speakers])
    others = np.array([np.delete(row, own) for row, own in zip(values, owners, strict=True)])
    assert largest == pytest.approx(-np.sort(-others, axis=1)[:, :4])
    mean = np.array([values[owners == own].mean(axis=0) for own in range(6)])
    off = mean[~np.eye(6, dtype=bool)].reshape(6, 5)
    assert means == pytest.approx(-np.sort(-off, axis=1)[:, :4])
    assert rank_scores(scores, key, [None], largest=6)[0][1] is None  # there are only five
    values[3, 3] = np.inf
    assert rank_scores(*table(values, owners.tolist()), [None], largest=4)[0][1] is None


def test_scores_are_averaged_over_segments():
    values = np.array([[1.0, 4.0, 0.0], [3.0, 0.0, 1.0], [9.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    scores, key = table(values, [0, 0, 0, 1])
    by_two = ranks_from_scores(scores, key, utterances=2)
    # means over t00 and t01: 2, 2, 0.5; the other speaker has t03 alone
    assert (by_two.speakers.tolist(), by_two.beaters.tolist(), by_two.ties.tolist()) == (
        ["m00", "m01"],
        [0, 0],
        [1, 1],
    )
    assert by_two.mated.tolist() == [2.0, 1.0]
    assert by_two.notes == ("1 speaker with fewer than 2 segments: m01; all of theirs are used",)
    by_three = ranks_from_scores(scores, key, utterances=3)
    assert by_three.mated == pytest.approx([13 / 3, 1.0])
    kept = np.arange(len(key)) != 2
    with pytest.raises(DataError, match="scored against different models: m00"):
        ranks_from_scores(scores.subset(kept), key.subset(kept), utterances=2)


@pytest.mark.parametrize(
    ("models", "segments", "truth", "message"),
    [
        (["a", "b"], ["s", "s"], [True, True], "1 segment with several target trials: s"),
        (
            ["a", "b", "a"],
            ["s", "s", "t"],
            [True, False, True],
            "1 without any impostor trial: segment 't'",
        ),
        (
            ["a", "b"],
            ["s", "s"],
            [False, False],
            "expected at least one trial of an enrolled speaker",
        ),
    ],
)
def test_keys_without_ranks_are_refused(models, segments, truth, message):
    key = Key.from_ids(models, segments, truth)
    with pytest.raises(DataError, match=message):
        ranks_from_scores(Scores.from_ids(models, segments, np.zeros(len(models))), key)


# the table and its file


def test_written_ranks_are_read_back(tmp_path):
    ranks = {
        1: Ranks([0, 3], [2, 0], 9, speakers=["anna", "bert, \u00e9"], mated=[0.5, -0.25]),
        0: Ranks([1], [0], 4),
    }
    noted = {3: Ranks(**{name: getattr(ranks[1], name) for name in FIELDS}, notes=("a note",))}
    write_ranks(tmp_path / "ranks.npz", ranks | noted)
    found = read_ranks(tmp_path / "ranks.npz")
    assert list(found) == [0, 1, 3]
    for number, one in (ranks | noted).items():
        for name in FIELDS:
            assert np.array_equal(
                getattr(found[number], name), getattr(one, name), equal_nan=name == "mated"
            )
    assert found[3].notes == ("a note",)


FIELDS = ("beaters", "ties", "impostors", "speakers", "mated")


def test_broken_and_foreign_files_of_ranks_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("text")
    np.savez(tmp_path / "half.npz", **{"1/beaters": [1]})
    for name, words in (
        ("text", "cannot be read as npz"),
        ("half", "is not a file of ranks"),
        ("none", "cannot be read"),
    ):
        with pytest.raises(DataError, match=words):
            read_ranks(tmp_path / f"{name}.npz")


def test_impossible_counts_are_refused():
    for counts in (([-1], 0, 3), ([2], 2, 3), ([], 0, 3)):
        with pytest.raises(DataError, match="expected"):
            Ranks(*counts)


@pytest.mark.parametrize(
    ("models", "noted"),
    [(["m1_001", "m1_002", "m2_001"], True), (["anna", "berta", "carl"], False)],
)
def test_models_that_may_not_be_speakers_are_noted(models, noted):
    """Several models of a speaker look like several speakers, whose intervals are then too narrow."""
    segments = ["s", "t", "u"]
    key = Key.from_ids(
        [*models] * 3, [name for name in segments for _ in models], np.eye(3, dtype=bool).ravel()
    )
    scores = Scores.from_ids(
        [*models] * 3, [name for name in segments for _ in models], np.arange(9.0)
    )
    notes = ranks_from_scores(scores, key).notes
    assert ["counts as a speaker" in note for note in notes] == [True] * noted


@pytest.mark.parametrize("seed", range(25))
def test_side_information_ranks_embeddings_among_those_who_match(seed):
    rng = np.random.default_rng(seed)
    names = np.array([f"s{number}" for number in range(10)], object)
    enrolled = Embeddings(names, names, rng.standard_normal((10, 4)))
    order = rng.permutation(10)[:7]
    ids = np.array([f"{name}-t" for name in names[order]], object)
    tested = Embeddings(ids, names[order], rng.standard_normal((7, 4)))
    side = dict(zip(names, rng.choice(["f", "m", "x", ""], 10), strict=True))
    ranks = rank_embeddings(enrolled, tested, side=side).matching[1]
    units = [
        vectors.vectors / np.linalg.norm(vectors.vectors, axis=1)[:, None]
        for vectors in (tested, enrolled)
    ]
    cosines = units[0] @ units[1].T
    expected = {}
    for row, owner in enumerate(order):
        known = side[names[owner]]
        matching = [
            other
            for other in range(10)
            if other != owner and (not known or side[names[other]] in (known, ""))
        ]
        beaters = sum(cosines[row, other] > cosines[row, owner] for other in matching)
        expected[names[owner]] = (beaters, len(matching))
    assert ranks.speakers.tolist() == sorted(expected)
    for row, name in enumerate(ranks.speakers.tolist()):
        assert (ranks.beaters[row], ranks.impostors[row]) == expected[name]
