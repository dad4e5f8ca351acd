"""Chains: their text, what is refused before training, what scores are made of, files; on vectors of our own."""

import pickle
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.calibration import s_norm, train_affine
from evaluation.embeddings import Embeddings, cosine_scores
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkver.backend import (
    format_chain,
    parse_chain,
    plain_chain,
    read_backend,
    read_chain,
    train_chain,
    write_backend,
)


def made(n_speakers, n_vectors, *, dimension=6, seed=0, name="s"):
    """Vectors of speakers, some dimensions of which tell more of the session."""
    draw = np.random.default_rng(seed)
    speakers = np.repeat(np.arange(n_speakers), n_vectors)
    session = np.linspace(0.3, 1.5, dimension)
    vectors = draw.normal(size=(n_speakers, dimension))[speakers] + session * draw.normal(
        size=(len(speakers), dimension)
    )
    ids = [f"{name}{speaker:03d}-{row:04d}" for row, speaker in enumerate(speakers)]
    return Embeddings(ids, [text.partition("-")[0] for text in ids], vectors + 3)


@pytest.fixture(scope="module")
def training():
    return made(40, 6)


@pytest.fixture(scope="module")
def tested():
    return made(10, 5, seed=1, name="t")


def all_trials(enrolled, tested):
    models = sorted(set(enrolled.speakers.tolist()))
    return Trials.from_ids(
        np.repeat(models, len(tested)).tolist(), tested.ids.tolist() * len(models)
    )


# --- texts -----------------------------------------------------------------------------------------------------------

SAME = [
    "centre,whiten:cholesky,length,lda:3,length,plda:2,snorm:5",
    " centre, whiten:cholesky ,length,lda:3, length,plda: 2,snorm:5",
    "[centre, whiten: cholesky, length, lda: 3, length, plda: {rank: 2}, snorm: {top: 5}]",
    "- centre\n- whiten: {kind: cholesky}\n- length\n- lda: 3\n- length\n- plda: 2\n- snorm: 5\n",
    "center,whiten:cholesky,lnorm,lda:3,lnorm,plda:2,snorm:5",  # SIDEKIT's and American names
    [
        "centre",
        "whiten:cholesky",
        "length",
        {"lda": 3},
        "length",
        {"plda": {"rank": 2.0}},
        {"snorm": 5},
    ],
]


@pytest.mark.parametrize("spec", SAME)
def test_equivalent_notations_give_the_same_chain(spec, tmp_path):
    chain = parse_chain(spec)
    expected = "[centre, whiten: cholesky, length, lda: 3, length, plda: 2, snorm: 5]"
    assert format_chain(chain) == expected
    assert (
        plain_chain(parse_chain(expected)) == plain_chain(chain) == plain_chain(parse_chain(chain))
    )
    if isinstance(spec, str) and "\n" in spec:
        (tmp_path / "chain.yaml").write_text(spec)
        assert plain_chain(read_chain(tmp_path / "chain.yaml")) == plain_chain(chain)


def test_the_cosine_is_the_default_scorer():
    assert (
        format_chain(parse_chain("lda:2,snorm,calibrate")) == "[lda: 2, cosine, snorm, calibrate]"
    )
    assert format_chain(parse_chain("snorm")) == "[cosine, snorm]"
    options = [{"lda": {"rank": 2, "shrink": 0.1}}, {"svm": {"balanced": True, "cost": "1e-3"}}]
    assert (
        format_chain(parse_chain(options))
        == "[lda: {rank: 2, shrink: 0.1}, svm: {cost: 0.001, balanced: true}]"
    )
    assert plain_chain(parse_chain(format_chain(parse_chain(options)))) == plain_chain(
        parse_chain(options)
    )


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("", "the chain is empty"),
        ("lda:2,,cosine", "step 2 of the chain: there is no step ''"),
        ("whitten", "there is no step 'whitten': did you mean whiten?"),
        ("[1]", "expected the name of a step"),
        ("lda:", "'lda:' has no value"),
        ("lda:x", "lda.rank must be a whole number, got 'x'"),
        ("lda:0", "lda.rank is 0: expected a number from 1"),
        ("[lda: {rnak: 2}]", "lda has no parameter 'rnak': it has rank, shrink, convention"),
        ("[lda: {shrink: 2}]", "lda.shrink is 2.0: expected a number from 0 to 1"),
        ("[plda: {channel_rank: -1}]", "plda.channel_rank is -1: expected a number from 0"),
        (
            "[adapted_cosine: {prior: 0}]",
            "adapted_cosine.prior is 0.0: expected a number from 1e-06",
        ),
        ("whiten:zca", "whiten.kind is 'zca': expected one of full, symmetric, cholesky, diagonal"),
        ("length:3", "length takes no value, got 3"),
        ("plda:2,length", "length, a map of vectors, cannot follow plda, a scorer"),
        ("cosine,plda:2", "plda, a scorer, cannot follow cosine, a scorer"),
    ],
)
def test_malformed_chains_are_refused(spec, text):
    with pytest.raises(ConfigError) as caught:
        parse_chain(spec)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["lda: {shrink: 0}", "lda: {shrink: 1}", "adapted_cosine: {prior: 1.0e-6}"]
)
def test_ranges_of_options_include_their_ends(spec):
    assert format_chain(parse_chain(f"[{spec}]")).startswith("[" + spec[:4])


def test_all_problems_of_a_chain_are_reported_together():
    with pytest.raises(ConfigError, match=r"(?s)3 problems.*step 1.*step 2.*step 4"):
        parse_chain("lad:3,lda:0,length,plda:x")


# --- vectors that are unfit for training -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "chain", "text"),
    [
        ((1, 5), "lda", "lda needs two speakers, got 1"),
        ((5, 1), "wccn", "wccn needs a speaker with two vectors, each has one"),
        ((4, 3), "lda:4", "lda.rank is 4, but 6 dimensions and 4 speakers allow 3 at most"),
        ((9, 3), "lda,plda:7", "plda.rank is 7, but 6 dimensions allow 6 at most"),
        ((9, 3), "calibrate", "calibrate divides 9 speakers into 5 folds: each needs two"),
        (
            (30, 3),
            "[calibrate: {enrolled: 3}]",
            "calibrate.enrolled is 3, but no speaker has more vectors",
        ),
        ((5, 3), "[snorm: {cohort: adapt}]", "snorm needs vectors to adapt to"),
        ((5, 3), "coral", "coral needs vectors to adapt to, none were given"),
        ((6, 3), "nap:13", "nap.rank is 13"),
    ],
)
def test_unsuitable_training_vectors_are_refused(counts, chain, text):
    with pytest.raises(ConfigError) as caught:
        train_chain(made(*counts), chain)
    assert text in str(caught.value)


def test_unused_or_mismatched_adaptation_vectors_are_refused(training):
    with pytest.raises(ConfigError, match="no step uses them"):
        train_chain(training, "lda:2", adapt=training)
    with pytest.raises(DataError, match="adapt to of 6 dimensions, got 4"):
        train_chain(training, "coral", adapt=made(3, 2, dimension=4))


def changed(embeddings, row, value):
    vectors = embeddings.vectors.copy()
    vectors[row] = value
    return replace(embeddings, vectors=vectors)


@pytest.mark.parametrize(
    ("value", "text"), [(np.nan, "not finite"), (np.inf, "not finite"), (0.0, "zero")]
)
def test_bad_vectors_are_named(training, tested, value, text):
    bad = changed(training, 7, value)
    with pytest.raises(DataError, match=rf"1 vector is {text}.*s001-0007"):
        train_chain(bad, "centre,length")
    with pytest.raises(DataError, match=rf"1 vector is {text}.*s001-0007"):
        train_chain(training, "coral", adapt=bad)
    backend = train_chain(training, "centre,length")
    bad = changed(tested, 3, value)
    for enrolled, segments in ((bad, tested), (tested, bad)):
        with pytest.raises(DataError, match=rf"1 vector is {text}.*t000-0003"):
            backend.score(enrolled, segments, all_trials(tested, tested))
    some = all_trials(tested, replace(tested, ids=tested.ids)).subset(np.arange(3))
    assert np.isfinite(backend.score(tested, bad, some).values).all(), (
        "vectors that no trial names do not matter"
    )


def test_a_vector_that_becomes_zero_is_refused(training):
    mean = training.vectors.mean(axis=0)
    backend = train_chain(training, "centre,length")
    odd = Embeddings(["same"], ["same"], (backend.maps[0].offset)[None])
    assert np.allclose(odd.vectors, mean)
    for chain, what in (("centre,length", "vector"), ("centre", "mapped model")):
        backend = train_chain(training, chain)
        with pytest.raises(DataError, match=rf"1 {what} is zero .*: same"):
            backend.score(odd, training, Trials.from_ids(["same"], [training.ids[0]]))
    with pytest.raises(DataError, match=r"1 mapped vector is zero .*: same"):
        backend.score(training, odd, Trials.from_ids([training.ids[0]], ["same"]))


# --- inputs of scores -------------------------------------------------------------------------------------------------


def test_the_cosine_equals_that_of_the_evaluation_package(training, tested):
    trials = all_trials(tested, tested)
    ours = train_chain(training, "cosine").score(tested, tested, trials)
    np.testing.assert_allclose(
        ours.values, cosine_scores(tested, tested, trials).values, atol=1e-14
    )
    assert [*ours.pairs()] == [*trials.pairs()]


@pytest.mark.parametrize(
    "chain", ["whiten,length,lda:4", "plda:3", "svm", "mahalanobis", "two_covariance"]
)
def test_scores_do_not_depend_on_other_trials_or_order(training, tested, chain):
    backend, trials = train_chain(training, chain), all_trials(tested, tested)
    whole = backend.score(tested, tested, trials)
    rows = np.random.default_rng(0).permutation(len(trials))[:37]
    some = backend.score(tested, tested, trials.subset(rows))
    np.testing.assert_allclose(some.values, whole.values[rows], rtol=1e-9, atol=1e-9)


def test_s_norm_equals_that_of_the_evaluation_package(training, tested):
    """Against the speakers' means, scored as lists."""
    trials = all_trials(tested, tested)
    plain = train_chain(training, "plda:3")
    speakers = sorted(set(training.speakers.tolist()))
    means = np.stack(
        [training.vectors[training.speakers == name].mean(axis=0) for name in speakers]
    )
    cohort = Embeddings(speakers, speakers, means)
    sides = (
        plain.score(tested, cohort, all_trials(tested, cohort)),
        plain.score(cohort, tested, all_trials(cohort, tested)),
    )
    for top in (None, 7):
        normed = train_chain(training, [{"plda": 3}, {"snorm": {"top": top}}]).score(
            tested, tested, trials
        )
        expected = s_norm(plain.score(tested, tested, trials), *sides, top=top)
        np.testing.assert_allclose(normed.values, expected.values, rtol=1e-9, atol=1e-9)
    every = train_chain(training, [{"plda": 3}, {"snorm": {"cohort": "vectors"}}])
    assert len(every.cohort) == len(training)
    other = train_chain(training, ["centre", {"snorm": {"cohort": "adapt"}}], adapt=tested)
    np.testing.assert_allclose(
        other.cohort, tested.vectors - training.vectors.mean(axis=0), atol=1e-12
    )


@pytest.mark.parametrize("n_enrolled", [1, 2])
def test_calibration_is_learnt_on_speakers_held_out_from_the_chain(training, n_enrolled):
    """Scores of each fold by a chain of the others; pooled; the same affine map."""
    backend = train_chain(training, ["lda:3", {"calibrate": {"enrolled": n_enrolled}}], seed=5)
    names = sorted(set(training.speakers.tolist()))
    dealt = np.empty(len(names), int)
    dealt[np.random.default_rng(5).permutation(len(names))] = np.arange(len(names)) % 5
    pooled = {True: [], False: []}
    for number in range(5):
        held = [name for name, fold in zip(names, dealt, strict=True) if fold == number]
        rows = np.isin(training.speakers, held)
        part = train_chain(
            Embeddings(training.ids[~rows], training.speakers[~rows], training.vectors[~rows]),
            "lda:3",
        )
        enrolled, tests = [], []
        for name in held:
            own = training.ids[training.speakers == name].tolist()
            enrolled += own[:n_enrolled]
            tests += own[n_enrolled : n_enrolled + 3]
        trials = Trials.from_ids(np.repeat(held, len(tests)).tolist(), tests * len(held))
        speaker = dict(zip(training.ids.tolist(), training.speakers.tolist(), strict=True))
        models = np.isin(training.ids, enrolled)
        of_models = Embeddings(
            training.ids[models], training.speakers[models], training.vectors[models]
        )
        scores = part.score(of_models, training, trials)
        for (model, segment), value in zip(trials.pairs(), scores.values, strict=True):
            pooled[model == speaker[segment]].append(value)
    expected = train_affine(pooled[True], pooled[False])
    np.testing.assert_allclose(backend.calibration.weights, expected.weights, rtol=1e-6)
    np.testing.assert_allclose(backend.calibration.offset, expected.offset, rtol=1e-6)
    other = train_chain(training, "lda:3,calibrate", seed=6).calibration
    assert other.weights != backend.calibration.weights


def test_coral_is_applied_only_to_the_training_vectors(training):
    draw = np.random.default_rng(3)
    other = Embeddings(
        [f"o{row}" for row in range(500)],
        ["?"] * 500,
        draw.normal(size=(500, 6)) @ draw.normal(size=(6, 6)),
    )
    backend = train_chain(training, "coral,centre,whiten", adapt=other)
    seen = backend.transform(other.vectors)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.cov(seen.T, bias=True), np.eye(6), atol=1e-9)
    assert len(backend.maps) == 2


# --- files -----------------------------------------------------------------------------------------------------------

FILED = ["whiten,length,lda:3", "nap:2,svm,snorm", "[pca: 3, svm: {most: 10}]",
         "plda:3,calibrate", "[plda: {rank: 2, channel_rank: 1}]",
         "mahalanobis", "whiten:diagonal,two_covariance,snorm:5"]  # fmt: skip


@pytest.mark.parametrize("chain", FILED)
def test_a_saved_backend_gives_the_same_scores(training, tested, chain, tmp_path):
    backend, trials = train_chain(training, chain), all_trials(tested, tested)
    write_backend(tmp_path / "a.h5", backend)
    again = read_backend(tmp_path / "a.h5")
    assert repr(again) == repr(backend)
    assert again.facts == backend.facts
    assert np.array_equal(
        again.score(tested, tested, trials).values, backend.score(tested, tested, trials).values
    )
    write_backend(tmp_path / "b.h5", train_chain(training, chain))
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def attribute(name, value):
    def change(path):
        with h5py.File(path, "r+") as file:
            file.attrs[name] = value

    return change


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "HDF5"),
        (attribute("kind", "another"), "expected a file of the kind 'spkver backend'"),
        (attribute("chain", "[]"), "the chain is empty"),
    ],
)
def test_damaged_files_are_refused(training, tmp_path, damage, text):
    path = tmp_path / "backend.h5"
    write_backend(path, train_chain(training, "centre,lda:2"))
    damage(path)
    with pytest.raises(DataError) as caught:
        read_backend(path)
    assert text in str(caught.value)
    assert "backend.h5" in str(caught.value)


# --- properties that hold for any vectors ----------------------------------------------------------------------------

CHAINS = [
    "centre,length", "whiten", "whiten:symmetric", "whiten:cholesky,length", "whiten:diagonal", "efr:2", "sphnorm:2",
    "lda", "lda,length,wccn", "wccn", "nap:1", "coral,lda", "mahalanobis", "two_covariance", "plda", "length,plda:1",
    "whiten,length,lda,plda,snorm", "svm",
]  # fmt: skip


@settings(max_examples=60)
@given(data=st.data())
def test_extreme_vectors_give_finite_scores_or_one_error(data):
    """Few vectors, many dimensions, constants, duplicates, single sessions, single speakers, odd scales."""
    size, dimension = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 9))
    draw = np.random.default_rng(data.draw(st.integers(0, 1 << 20)))
    vectors = draw.normal(size=(size, dimension))
    if data.draw(st.booleans()):
        vectors[:, draw.integers(dimension)] = draw.choice([0.0, 1.0, 1e6])
    if data.draw(st.booleans()):
        vectors = vectors[draw.integers(size, size=size)]
    if data.draw(st.booleans()):
        vectors = vectors + 100
    vectors = vectors * data.draw(st.sampled_from([1e-30, 1e-3, 1.0, 1e6, 1e30]))
    speakers = [f"s{draw.integers(data.draw(st.integers(1, size)))}" for _ in range(size)]
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    embeddings = Embeddings([f"u{row}" for row in range(size)], speakers, vectors.astype(dtype))
    chain = data.draw(st.sampled_from(CHAINS))
    try:
        backend = train_chain(embeddings, chain, adapt=embeddings if "coral" in chain else None)
        assert all(
            np.isfinite(array).all() for step in backend.maps for array in vars(step).values()
        )
        scores = backend.score(embeddings, embeddings, all_trials(embeddings, embeddings))
    except DataError:
        return
    assert np.isfinite(scores.values).all()


def test_svm_background_vectors_are_spread_evenly_over_speakers():
    counts = {"a": 12, "b": 2, "c": 6}
    speakers = [speaker for speaker, count in counts.items() for _ in range(count)]
    vectors = np.random.default_rng(0).normal(size=(20, 3))
    training = Embeddings([f"u{row}" for row in range(20)], speakers, vectors)
    kept = train_chain(training, "[svm: {most: 9}]").model.vectors
    owners = [speakers[int(np.flatnonzero((vectors == row).all(axis=1))[0])] for row in kept]
    assert (
        sorted(owners) == ["a"] * 4 + ["b"] * 2 + ["c"] * 3
        or sorted(owners) == ["a"] * 3 + ["b"] * 2 + ["c"] * 4
    )
    np.testing.assert_array_equal(train_chain(training, "svm").model.vectors, vectors)


def test_arrays_with_speakers_train_the_same_chain(training, tested):
    expected = train_chain(training, "centre,lda:2,plda")
    found = train_chain(training.vectors, "centre,lda:2,plda", speakers=training.speakers)
    assert np.array_equal(found.transform(tested.vectors), expected.transform(tested.vectors))
    trials = all_trials(tested, tested)
    assert np.array_equal(
        found.score(tested, tested, trials).values, expected.score(tested, tested, trials).values
    )
    adapted = train_chain(training, "centre:adapt,plda", adapt=tested.vectors)
    assert np.array_equal(
        adapted.maps[0].offset,
        train_chain(training, "centre:adapt,plda", adapt=tested).maps[0].offset,
    )


def test_mixing_arrays_and_embeddings_is_refused(training, tested):
    backend = train_chain(training, "centre")
    with pytest.raises(DataError, match="expected Embeddings, got ndarray"):
        backend.score(tested.vectors, tested, all_trials(tested, tested))
    with pytest.raises(DataError, match="expected an array of vectors, got Embeddings"):
        backend.transform(tested)
    with pytest.raises(DataError, match="Embeddings have their own"):
        train_chain(training, "centre", speakers=training.speakers)
    with pytest.raises(DataError, match="expected numbers as vectors, got 'training"):
        train_chain("training.npz", "centre")
    with pytest.raises(ConfigError, match="name the speakers of the vectors"):
        train_chain(training.vectors, "plda")


def test_a_trained_chain_can_be_pickled(training, tested):
    backend = train_chain(training, "whiten,length,plda,calibrate")
    again = pickle.loads(pickle.dumps(backend))
    trials = all_trials(tested, tested)
    assert np.array_equal(
        again.score(tested, tested, trials).values, backend.score(tested, tested, trials).values
    )
