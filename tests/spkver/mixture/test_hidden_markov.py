"""Hidden Markov models against brute force over all paths, and what their training and their statistics promise."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from stored_vectors import stored
from test_statistics import frames_of

from spkbase.errors import ConfigError, DataError
from spkbase.work import Work
from spkver.idmap import IdMap
from spkver.mixture import (
    HiddenMarkovConfig,
    WordModels,
    accumulate_statistics,
    align_texts,
    aligned_statistics,
    read_word_models,
    text_posteriors,
    train_word_models,
    without_text,
    write_word_models,
)
from spkver.mixture.gmm import GaussianMixture
from spkver.mixture.hidden_markov import (
    SILENCE,
    backward,
    forward,
    free_graph,
    log_posteriors,
    occupancy,
    row_graph,
    scaled_posteriors,
    text_graph,
    viterbi,
)

DIMENSION = 2


def random_models(rng, words, n_states=2, n_components=2):
    shape = len(words) * n_states * n_components, DIMENSION
    weights = rng.uniform(0.5, 1.5, shape[0])
    mixture = GaussianMixture(
        weights / weights.sum(), 2 * rng.standard_normal(shape), rng.uniform(0.3, 2, shape)
    )
    return WordModels(tuple(words), mixture, rng.uniform(0.2, 0.8, (len(words), n_states)))


def component_densities(models, frames):
    """log(w_c|s N(x; c)) of every component, (T, W * S, C), by SciPy."""
    mixture = models.mixture
    weights = mixture.weights.reshape(models.stay.size, -1)
    weights = weights / weights.sum(axis=1, keepdims=True)
    found = [
        np.atleast_1d(multivariate_normal(mean, np.diag(variance)).logpdf(frames))
        for mean, variance in zip(mixture.means, mixture.variances, strict=True)
    ]
    return np.stack(found, axis=1).reshape(len(frames), *weights.shape) + np.log(weights)


def all_texts(models, text):
    """The sequences of words that a text may be said as, with its pauses, and the log-probability of each choice."""
    if SILENCE not in models.words:
        return [(text, 0.0)]
    found = []
    for choice in itertools.product([False, True], repeat=len(text) + 1):
        said = []
        for pause, word in zip(choice, [*text, None], strict=True):
            said += [SILENCE] * pause + [word] * (word is not None)
        found.append((tuple(said), len(choice) * np.log(0.5)))
    return found


def all_paths(models, said, n_frames):
    """Every path of states through words in a row, with its log-probability, that of the end included."""
    size = models.stay.shape[1]
    states = [models.words.index(word) * size + state for word in said for state in range(size)]
    stay = models.stay.ravel()
    for cuts in itertools.combinations(range(1, n_frames), len(states) - 1):
        lengths = np.diff([0, *cuts, n_frames])
        logs = sum(
            (n - 1) * np.log(stay[s]) + np.log(1 - stay[s])
            for s, n in zip(states, lengths, strict=True)
        )
        yield np.repeat(states, lengths), np.repeat(np.arange(len(states)) // size, lengths), logs


def brute_force(models, frames, text):
    """(path, word of each frame, log-likelihood) of all ways to say a text."""
    densities = logsumexp(component_densities(models, frames), axis=2)
    return [
        (
            path,
            [said[place] for place in places],
            places,
            prior + logs + densities[np.arange(len(frames)), path].sum(),
        )
        for said, prior in all_texts(models, text)
        for path, places, logs in all_paths(models, said, len(frames))
    ]


def emissions_of(models, graph, recordings):
    lengths = np.array([len(frames) for frames in recordings])
    emissions = np.zeros((lengths.max(), len(recordings), len(graph.states)))
    for row, frames in enumerate(recordings):
        emissions[: len(frames), row] = logsumexp(component_densities(models, frames), axis=2)[
            :, graph.states
        ]
    return emissions, lengths


CASES = [
    (("a",), ("a",), (5, 2, 7)),
    (("a", "b", "c"), ("b", "a", "b"), (6, 8)),
    (("a", "b", SILENCE), ("b", "a"), (4, 7, 9)),
]


@pytest.mark.parametrize(("words", "text", "lengths"), CASES)
def test_recursions_equal_sums_over_all_paths(words, text, lengths):
    rng = np.random.default_rng(1)
    models = random_models(rng, words)
    recordings = [rng.standard_normal((length, DIMENSION)) * 2 for length in lengths]
    graph = text_graph(models, text)
    emissions, n_frames = emissions_of(models, graph, recordings)
    ahead, totals = forward(emissions, n_frames, graph)
    behind = backward(emissions, n_frames, graph)
    paths, best = viterbi(emissions, n_frames, graph)
    for row, frames in enumerate(recordings):
        found = brute_force(models, frames, text)
        likelihoods = np.array([logs for *_, logs in found])
        assert totals[row] == pytest.approx(logsumexp(likelihoods), rel=1e-12)
        assert best[row] == pytest.approx(likelihoods.max(), rel=1e-12)
        np.testing.assert_array_equal(
            graph.states[paths[: len(frames), row]], found[likelihoods.argmax()][0]
        )
        shares = np.exp(likelihoods - logsumexp(likelihoods))
        states = np.zeros((len(frames), models.stay.size))
        for (path, *_), share in zip(found, shares, strict=True):
            states[np.arange(len(frames)), path] += share
        gammas = np.exp(ahead[: len(frames), row] + behind[: len(frames), row] - totals[row])
        ours = gammas @ (graph.states[:, None] == np.arange(models.stay.size))
        np.testing.assert_allclose(ours, states, atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("graph_of", [text_graph, free_graph])
def test_scaled_posteriors_equal_those_of_the_log_domain(graph_of, spread):
    rng = np.random.default_rng(6)
    models = random_models(rng, ("a", "b", SILENCE))
    graph = graph_of(models, ("b", "a")) if graph_of is text_graph else graph_of(models)
    lengths = rng.integers(len(graph.states), 40, 12)
    emissions = spread * rng.standard_normal((lengths.max(), 12, len(graph.states))) - 50
    scaled, is_precise = scaled_posteriors(emissions, lengths, graph)
    exact = log_posteriors(emissions, lengths, graph)
    assert is_precise.any()
    is_inside = (np.arange(lengths.max())[:, None] < lengths) & is_precise
    np.testing.assert_allclose(scaled.shares[is_inside], exact.shares[is_inside], atol=1e-10)
    np.testing.assert_allclose(scaled.stays[is_precise], exact.stays[is_precise], atol=1e-9)
    np.testing.assert_allclose(
        scaled.log_likelihoods[is_precise], exact.log_likelihoods[is_precise], rtol=1e-13
    )


def test_paths_that_underflow_first_but_win_later_are_not_considered_precise():
    # on the only path that ends in time, every frame scores a thousand nats less than in its neighbour
    graph = row_graph(np.full(3, 0.5))
    emissions = np.zeros((12, 1, 3))
    emissions[:6, 0, 1:] = -1000.0
    emissions[6:, 0, 0] = -3000.0
    emissions[3, 0, 0] = -2500.0
    lengths = np.array([12])
    _, is_precise = scaled_posteriors(emissions, lengths, graph)
    assert not is_precise[0]


@pytest.mark.parametrize(("words", "text", "lengths"), CASES)
def test_statistics_equal_expected_sums_over_all_paths(words, text, lengths):
    rng = np.random.default_rng(2)
    models = random_models(rng, words)
    recordings = {
        f"r{n}": rng.standard_normal((length, DIMENSION)) * 2 for n, length in enumerate(lengths)
    }
    rows = IdMap(["m"] * len(lengths), list(recordings))
    statistics = aligned_statistics(models, frames_of(recordings), rows, [text] * len(lengths))
    stays = np.zeros(models.stay.size)
    for row, frames in enumerate(recordings.values()):
        components = component_densities(models, frames)
        given_state = np.exp(components - logsumexp(components, axis=2, keepdims=True))
        found = brute_force(models, frames, text)
        likelihoods = np.array([logs for *_, logs in found])
        zeroth = np.zeros(given_state.shape[1:])
        first = np.zeros((*zeroth.shape, DIMENSION))
        for (path, _, places, _), share in zip(
            found, np.exp(likelihoods - logsumexp(likelihoods)), strict=True
        ):
            np.add.at(zeroth, path, share * given_state[np.arange(len(frames)), path])
            weighted = given_state[np.arange(len(frames)), path][:, :, None] * frames[:, None]
            np.add.at(first, path, share * weighted)
            is_kept = (np.diff(path) == 0) & (np.diff(places) == 0)
            np.add.at(stays, path[1:][is_kept], share)
        np.testing.assert_allclose(statistics.zeroth[row], zeroth.ravel(), atol=1e-10)
        np.testing.assert_allclose(statistics.first[row], first.ravel(), atol=1e-10)
    kept = occupancy(list(recordings.values()), models.of_text(text), text)[3]
    of_words = dict(
        zip(models.of_text(text).words, kept.reshape(-1, models.stay.shape[1]), strict=True)
    )
    expected = dict(zip(models.words, stays.reshape(models.stay.shape), strict=True))
    for word, counts in of_words.items():
        np.testing.assert_allclose(counts, expected[word], atol=1e-10)


def test_a_loop_sums_over_all_sequences_of_words():
    rng = np.random.default_rng(3)
    models = random_models(rng, ("a", "b"))
    frames = rng.standard_normal((7, DIMENSION))
    graph = free_graph(models)
    emissions, lengths = emissions_of(models, graph, [frames])
    ahead, totals = forward(emissions, lengths, graph)
    likelihoods = [
        logs - count * np.log(2)
        for count in (1, 2, 3)
        for text in itertools.product(models.words, repeat=count)
        for *_, logs in brute_force(models, frames, text)
    ]
    assert totals[0] == pytest.approx(logsumexp(likelihoods), rel=1e-12)
    gammas = np.exp(ahead + backward(emissions, lengths, graph) - totals[:, None])
    np.testing.assert_allclose(gammas.sum(axis=2), 1, rtol=1e-12)
    texts = [text for count in (1, 2, 3) for text in itertools.product(models.words, repeat=count)]
    rows = IdMap(["m"] * len(texts), ["r"] * len(texts))
    posteriors = text_posteriors(models, frames_of({"r": frames}), rows, texts)
    assert np.exp(posteriors * len(frames)).sum() == pytest.approx(1, rel=1e-12)
    single = text_posteriors(models, frames_of({"r": frames}), rows[np.arange(2)], texts[:2])
    assert np.exp(single * len(frames)).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("silence", [False, True])
def test_em_never_lowers_the_likelihood(silence):
    rng = np.random.default_rng(4)
    texts = {f"r{n}": tuple(rng.choice(["a", "b", "c"], rng.integers(1, 4))) for n in range(12)}
    recordings = {
        name: 3 * rng.standard_normal((rng.integers(25, 40), DIMENSION)) for name in texts
    }
    config = HiddenMarkovConfig(
        states=2, components=2, rounds=8, silence=silence, variance_floor=1e-3
    )
    trained = train_word_models(frames_of(recordings), texts, config)
    assert trained.words == ("a", "b", "c", SILENCE)[: 3 + silence]
    for of_size in trained.log_likelihoods.reshape(2, -1):
        assert (np.diff(of_size) > -1e-12).all()
        assert of_size[-1] > of_size[0]


def spoken(rng, models, text, length=60):
    """Frames of a text, each state for as long as it stays."""
    states = text_graph(models, text).states
    drawn = np.concatenate(
        [np.full(rng.geometric(1 - models.stay.ravel()[state]), state) for state in states]
    )
    frames = models.mixture.means[drawn] + rng.standard_normal((len(drawn), DIMENSION)) * 0.3
    return frames, drawn


def test_words_and_pauses_are_aligned_with_their_texts():
    """Means that differ by many deviations are found again, and words are cut where they were."""
    rng = np.random.default_rng(5)
    words, means = (
        ("one", "two", "three"),
        4 * np.arange(16).reshape(8, 2)[[3, 0, 6, 1, 7, 2, 5, 4]],
    )
    truth = WordModels(
        words,
        GaussianMixture(np.full(6, 1 / 6), means[:6] * 1.0, np.full((6, 2), 0.09)),
        np.full((3, 2), 0.8),
    )
    texts, recordings, bounds = {}, {}, {}
    for number in range(60):
        name, text = f"r{number:02d}", tuple(rng.choice(words, 3))
        frames, drawn = spoken(rng, truth, text)
        pauses = [rng.standard_normal((rng.integers(3, 20), 2)) * 0.3 + means[7] for _ in range(2)]
        texts[name], recordings[name] = text, np.concatenate([pauses[0], frames, pauses[1]])
        changes = np.flatnonzero((np.diff(drawn) != 0) & (drawn[1:] % 2 == 0)) + 1
        bounds[name] = len(pauses[0]) + np.array([0, *changes, len(frames)])
    config = HiddenMarkovConfig(
        states=2, components=1, rounds=30, silence=True, variance_floor=1e-3
    )
    data = frames_of(recordings)
    models = train_word_models(data, texts, config)
    for word in words:
        ours, expected = models.of((word,)).mixture.means, truth.of((word,)).mixture.means
        np.testing.assert_allclose(ours, expected, atol=0.2)
    rows = IdMap(list(texts), list(texts))
    aligned = align_texts(models, data, rows, list(texts.values()))
    for number, name in enumerate(texts):
        ours = np.array([aligned.rows.start, aligned.rows.stop])[:, aligned.owners == number]
        if len(bounds[name]) == 4:  # no word was said twice in a row
            np.testing.assert_array_equal(ours, [bounds[name][:-1], bounds[name][1:]])
    right = text_posteriors(models, data, rows, list(texts.values()))
    wrong = text_posteriors(models, data, rows, [("three", "one", "two")] * len(texts))
    differs = np.array([text != ("three", "one", "two") for text in texts.values()])
    assert right.min() > -0.1
    assert wrong[differs].max() < -0.5


def test_a_single_state_equals_a_mixture():
    rng = np.random.default_rng(6)
    models = random_models(rng, ("a",), n_states=1, n_components=4)
    recordings = {
        f"r{n}": rng.standard_normal((20 + n, DIMENSION)).astype(np.float32) for n in range(40)
    }
    frames, names = frames_of(recordings), list(recordings)
    expected = accumulate_statistics(models.mixture, frames, names, names)
    ours = aligned_statistics(models, frames, IdMap(names, names), [("a",)] * 40)
    np.testing.assert_allclose(ours.zeroth, expected.zeroth, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.first, expected.first, rtol=1e-4, atol=1e-4)


def test_statistics_of_words_equal_those_of_their_parts():
    """The words of a text, cut by hand, and the whole text add to the same frames; other words have zeros."""
    rng = np.random.default_rng(7)
    models = random_models(rng, ("a", "b", "c"))
    frames = frames_of({"r": rng.standard_normal((12, DIMENSION))})
    parts = IdMap(["m", "m", "m"], ["r"] * 3, [0, 7, -1], [7, 12, -1])
    statistics = aligned_statistics(models, frames, parts, [("a",), ("c",), ("a", "c")])
    counts = statistics.zeroth.reshape(3, 3, -1).sum(axis=2)
    np.testing.assert_allclose(counts[:2], [[7, 0, 0], [0, 0, 5]], atol=1e-12)
    np.testing.assert_allclose(counts[2], [counts[2, 0], 0, 12 - counts[2, 0]], atol=1e-12)
    alone = aligned_statistics(models.of(("c",)), frames, IdMap(["m"], ["r"], [7], [12]), [("c",)])
    np.testing.assert_allclose(alone.first[0], statistics.first[1].reshape(3, -1)[2], rtol=1e-12)


def test_results_depend_neither_on_workers_nor_on_files(tmp_path):
    rng = np.random.default_rng(8)
    texts = {f"r{n:03d}": (f"s{n % 3}",) for n in range(120)}
    recordings = {name: rng.standard_normal((20, DIMENSION)).astype(np.float32) for name in texts}
    frames, rows = frames_of(recordings), IdMap(list(texts), list(texts))
    in_file = type(frames)(frames.ids, frames.offsets, stored(frames.values, tmp_path))
    config = HiddenMarkovConfig(states=2, components=2, rounds=2)
    one = train_word_models(frames, texts, config, work=Work(1))
    two = train_word_models(in_file, dict(reversed(texts.items())), config, work=Work(2))
    write_word_models(tmp_path / "words.h5", two)
    two = read_word_models(tmp_path / "words.h5")
    assert two.words == one.words
    for ours, others in ((one.stay, two.stay), (one.mixture.means, two.mixture.means)):
        np.testing.assert_array_equal(ours, others)
    said = list(texts.values())
    for compute in (aligned_statistics, align_texts, text_posteriors):
        left, right = (
            compute(one, frames, rows, said, work=Work(1)),
            compute(two, in_file, rows, said, work=Work(2)),
        )
        left, right = (
            getattr(found, "first", getattr(found, "rows", found)) for found in (left, right)
        )
        assert np.array_equal(left, right) or left == right


def test_misuse_is_refused():
    rng = np.random.default_rng(9)
    models, frames = (
        random_models(rng, ("a", "b")),
        frames_of({"r1": rng.standard_normal((3, DIMENSION))}),
    )
    rows = IdMap(["m"], ["r1"])
    with pytest.raises(DataError, match="'r1' has 3 frames, but 'a b' has 2 words of 2 states"):
        aligned_statistics(models, frames, rows, [("a", "b")])
    with pytest.raises(DataError, match="no model of 'c', only of a, b"):
        align_texts(models, frames, rows, [("c",)])
    with pytest.raises(ConfigError, match=r"hidden_markov\.components is 3"):
        HiddenMarkovConfig(components=3)


def test_the_effect_of_the_words_is_removed_from_statistics():
    """Statistics as if each frame were moved by the difference of its state's mean and the mixture's."""
    rng = np.random.default_rng(10)
    models = random_models(rng, ("a",))
    mixture = random_models(rng, ("b",), n_states=1, n_components=3).mixture
    frames = rng.standard_normal((9, DIMENSION))
    states = rng.standard_normal((2, 3, DIMENSION))
    rows = IdMap(["m"], ["r"])
    found = aligned_statistics(models, frames_of({"r": frames}), rows, [("a",)], mixture)
    posteriors = occupancy([frames], models, ("a",), mixture)[0].reshape(9, 2, 3)
    moved = frames[:, None, None] - (states - mixture.means)
    ours = without_text(found, states, mixture)
    np.testing.assert_allclose(ours.zeroth[0], posteriors.sum(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(
        ours.first[0], np.einsum("tsc,tscd->cd", posteriors, moved).ravel(), rtol=1e-9
    )
