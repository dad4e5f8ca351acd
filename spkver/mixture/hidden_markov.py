"""Hidden Markov models of words: left-to-right states, each a Gaussian mixture with diagonal covariances.

Texts consist of words; a word may be a digit or a whole sentence. All words have the same number S of states, each with
C components. A text is a sequence of words; its graph has the states of all its words in a row. If pauses have a model,
`SILENCE`, they may stand at both ends and between words. Texts are known in training and in alignment:
`train_word_models` is Baum-Welch from a flat start, `align_texts` finds the frames of each word by Viterbi,
`aligned_statistics` sums over frames by state and component. `text_posteriors` scores whether a text was spoken at all.

Wherever a mixture's statistics are used, a set of word models counts as one mixture of W * S * C components.

All recursions are over time, for a block of recordings with the same text at once: posteriors by scaled probabilities
if these are provably precise, all others in the log domain.

References
----------
L. R. Rabiner, "A tutorial on hidden Markov models and selected applications in speech recognition", Proc. IEEE 77(2),
1989.
H. Zeinali, H. Sameti, L. Burget, "HMM-based phrase-independent i-vector extractor for text-dependent speaker
verification", IEEE/ACM Trans. Audio, Speech and Language Processing 25(7), 2017.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spkbase.arrays import Floats, Rows, part
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError, few
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.progress import progress, verbosely
from spkbase.rounding import is_negligible, share_of_type
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work, chunks
from spkver.features import Frames
from spkver.idmap import IdMap
from spkver.mixture.gmm import (
    LEAST_LOG_SHARE,
    Accumulator,
    GaussianMixture,
    e_step,
    m_step,
    natural_parameters,
    squares_or_products,
)
from spkver.mixture.statistics import Statistics
from spkver.mixture.ubm import ALIVE, split

logger = logging.getLogger(__name__)

SILENCE = "sil"
"""The word that stands for pauses."""

Text = tuple[str, ...]
"""Words in their order."""

_RECORDINGS = 32  # number of recordings with the same text in a task
_PASSED = np.log(0.5)  # log-probability of a pause, and of no pause
_LEAST_STAY = 1e-3  # probabilities of staying in a state are at least this far from 0 and 1

# Smaller scaled variables are raised to this value; see `scaled_posteriors`.
_FLOOR = 1e-180
_LEAST_SCALE = 1e-120
_LEAST_OVERLAP = 1e-160


@dataclass(frozen=True)
class HiddenMarkovConfig:
    """Settings for training models of words.

    Attributes
    ----------
    states : int
        Number of states of each word, from left to right.
    components : int
        Number of Gaussians of each state, a power of two; the states of pauses share theirs.
    rounds : int
        Rounds of EM at each number of Gaussians: 1, 2, 4 and so on.
    silence : bool
        Whether pauses have a model, which requires frames of pauses (`features.keep_all`, or `features.vad` none).
    variance_floor, variance_ceiling : float
        Limits of the variances as shares of the variance of all frames.
    """

    states: int = 5
    components: int = 4
    rounds: int = 6
    silence: bool = False
    variance_floor: float = 0.01
    variance_ceiling: float = 10.0

    def __post_init__(self) -> None:
        check_values("hidden_markov", self, least={"states": 1, "components": 1, "rounds": 1})
        if self.components & (self.components - 1):
            text = f"hidden_markov.components is {self.components}: expected a power of two, since they double"
            raise ConfigError(text)
        if not 0 < self.variance_floor < self.variance_ceiling:
            text = "hidden_markov.variance_floor must be above 0 and below hidden_markov.variance_ceiling"
            raise ConfigError(text)


@one_line
@dataclass(frozen=True)
class WordModels:
    """A left-to-right hidden Markov model for each of W words.

    Attributes
    ----------
    words : tuple of str, length W
    mixture : GaussianMixture
        W * S * C components, word after word, state after state; a weight is a component's share of all frames.
    stay : ndarray of shape (W, S)
        Probability that the next frame belongs to the same state.
    log_likelihoods : ndarray of shape (I,)
        Mean log-likelihood of a training frame, in nat, in each round of EM, under the parameters before the update.
    """

    words: Text
    mixture: GaussianMixture
    stay: Floats
    log_likelihoods: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        fits = len(self.stay) == len(self.words) and not self.mixture.n_components % self.stay.size
        if not fits or self.mixture.has_full_covariances:
            text = "word models need stay (W, S) for W words, and W * S * C components with diagonal covariances"
            raise DataError(
                f"{text}; got {self.stay.shape}, {len(self.words)} words, {self.mixture.means.shape}"
            )

    def of(self, words: Sequence[str]) -> WordModels:
        """Return the models of some words, in the given order.

        Raises
        ------
        DataError
            If a word has no model.
        """
        absent = [word for word in words if word not in self.words]
        if absent:
            text = f"there is no model of {absent[0]!r}, only of {', '.join(self.words[:10])}"
            raise DataError(text, remedy="give background recordings of all words of the texts")
        rows = _components(self, words, self.mixture.n_components)
        weights = self.mixture.weights[rows]
        mixture = GaussianMixture(
            weights / weights.sum(), self.mixture.means[rows], self.mixture.variances[rows]
        )
        stay = self.stay[[self.words.index(word) for word in words]]
        return WordModels(tuple(words), mixture, stay)

    def of_text(self, text: Text) -> WordModels:
        """Return the models of a text's distinct words, and of pauses, if they have a model."""
        words = [*dict.fromkeys(text)]
        if SILENCE in self.words:
            words.append(SILENCE)
        return self.of(words)

    def state_parameters(self) -> Floats:
        """Return the `natural_parameters` of each state's mixture, shape (W * S, C, 2 D + 1)."""
        n_states = self.stay.size
        parameters = natural_parameters(self.mixture).reshape(
            n_states, -1, 2 * self.mixture.dimension + 1
        )
        of_states = self.mixture.weights.reshape(n_states, -1).sum(axis=1)
        parameters[:, :, -1] -= np.log(of_states)[:, None]
        return parameters


class StateGraph(NamedTuple):
    """States of words in a row, or of all words in a loop, and the arcs between them.

    Attributes
    ----------
    states : ndarray of int of shape (L,)
        State of the word models at each position.
    before : ndarray of int of shape (3, L)
        Positions from which arcs lead to each position.
    enter : ndarray of shape (3, L)
        Log-probabilities of these arcs; minus infinity where there is no arc.
    first, last : ndarray of shape (L,)
        Log-probabilities that a path begins, or ends, at each place.
    is_loop : bool
        Whether arcs lead from each end to each beginning.
    """

    states: NDArray[np.int64]
    before: NDArray[np.int64]
    enter: Floats
    first: Floats
    last: Floats
    is_loop: bool = False

    def transitions(self) -> Floats:
        """Return the probabilities of passing from each place to each other one, shape (L, L)."""
        n_places = len(self.states)
        matrix = np.zeros((n_places, n_places))
        places = np.arange(n_places)
        for before, enter in zip(self.before, self.enter, strict=True):
            matrix[before, places] += np.exp(enter)
        if self.is_loop:
            matrix += np.exp(self.last)[:, None] * np.exp(self.first)
        return matrix

    def reversed_arcs(self) -> tuple[NDArray[np.int64], Floats]:
        """Return the places to which arcs lead, and their log-probabilities, both of shape (3, L)."""
        after = np.zeros_like(self.before)
        leave = np.full_like(self.enter, -np.inf)
        for kind in range(len(after)):
            (entered,) = np.nonzero(self.enter[kind] > -np.inf)
            after[kind, self.before[kind, entered]] = entered
            leave[kind, self.before[kind, entered]] = self.enter[kind, entered]
        return after, leave


def row_graph(stay: Floats, states: NDArray[np.int64] | None = None) -> StateGraph:
    """Return the graph of states in a row, from their probabilities of staying, shape (L,)."""
    leave = np.log1p(-stay)
    places = np.arange(len(stay))
    before = np.maximum([places, places - 1, places], 0)
    enter = np.full((3, len(stay)), -np.inf)
    enter[0] = np.log(stay)
    enter[1, 1:] = leave[:-1]
    first = np.full(len(stay), -np.inf)
    first[0] = 0.0
    last = np.full(len(stay), -np.inf)
    last[-1] = leave[-1]
    if states is None:
        states = places
    return StateGraph(states, before, enter, first, last)


def text_graph(models: WordModels, text: Text) -> StateGraph:
    """Return the graph of a text: its words in a row, with optional pauses around each if pauses have a model."""
    has_pauses = SILENCE in models.words
    size = models.stay.shape[1]
    words = list(text)
    if has_pauses:
        words = [SILENCE] * (2 * len(text) + 1)
        words[1::2] = text
    rows = np.array([models.words.index(word) for word in words])
    states = (rows[:, None] * size + np.arange(size)).ravel()
    stay = models.stay.ravel()[states]
    graph = row_graph(stay, states)
    if has_pauses:
        leave = np.log1p(-stay)
        starts = np.arange(0, len(states), size)
        graph.first[starts[:2]] = _PASSED
        graph.enter[1, starts[2::2]] += _PASSED
        graph.last[starts[-1] - 1] = leave[starts[-1] - 1] + _PASSED
        passed = starts[3::2]
        graph.before[2, passed] = passed - size - 1
        graph.enter[2, passed] = leave[passed - size - 1] + _PASSED
    return graph


def free_graph(models: WordModels, *, is_loop: bool = True) -> StateGraph:
    """Return the graph of any sequence of the words, all equally probable.

    Without the loop, the graph of any single word.
    """
    size = models.stay.shape[1]
    graph = row_graph(models.stay.ravel())
    graph.enter[1, ::size] = -np.inf
    graph.first[::size] = -np.log(len(models.words))
    graph.last[size - 1 :: size] = np.log1p(-models.stay[:, -1])
    return graph._replace(is_loop=is_loop)


def forward(
    emissions: Floats, lengths: NDArray[np.int64], graph: StateGraph, add: np.ufunc = np.logaddexp
) -> tuple[Floats, Floats]:
    """Return the forward variables, and the log-likelihood of each recording.

        a_1(l) = first(l) + b_1(l),   a_t(l) = b_t(l) + log sum_k exp(a_{t-1}(k) + enter(k, l))

    Parameters
    ----------
    emissions : ndarray of shape (T, R, L)
        Log-densities b_t(l) of R recordings at each position; values beyond a recording's end are ignored.
    lengths : ndarray of int of shape (R,)
        Frames of each recording.
    graph : StateGraph
    add : ufunc
        `numpy.logaddexp`, or `numpy.maximum` for only the best path (Viterbi).

    Returns
    -------
    a : ndarray of shape (T, R, L)
    log_likelihoods : ndarray of shape (R,)
        In nat; minus infinity for a recording that is too short for the graph.

    References
    ----------
    Rabiner, equations 18 to 21 and 30 to 34.
    """
    scores = np.empty(emissions.shape)
    scores[0] = graph.first + emissions[0]
    for time in range(1, len(emissions)):
        earlier = scores[time - 1]
        reached = add.reduce(earlier[:, graph.before] + graph.enter, axis=1)
        if graph.is_loop:
            reached = add(reached, add.reduce(earlier + graph.last, axis=1)[:, None] + graph.first)
        scores[time] = reached + emissions[time]
    return scores, add.reduce(scores[lengths - 1, np.arange(len(lengths))] + graph.last, axis=1)


def backward(emissions: Floats, lengths: NDArray[np.int64], graph: StateGraph) -> Floats:
    """Return the backward variables, of the same shape as the emissions; parameters as for `forward`.

    c_T(l) = last(l),   c_t(l) = log sum_k exp(enter(l, k) + b_{t+1}(k) + c_{t+1}(k))
    """
    scores = np.empty(emissions.shape)
    after, leave = graph.reversed_arcs()
    scores[-1] = graph.last
    for time in range(len(emissions) - 2, -1, -1):
        later = scores[time + 1] + emissions[time + 1]
        reached = np.logaddexp.reduce(later[:, after] + leave, axis=1)
        if graph.is_loop:
            again = np.logaddexp.reduce(later + graph.first, axis=1)[:, None] + graph.last
            reached = np.logaddexp(reached, again)
        scores[time] = np.where((lengths - 1 == time)[:, None], graph.last, reached)
    return scores


class PlacePosteriors(NamedTuple):
    """Results of forward-backward for the positions of a graph.

    Attributes
    ----------
    shares : ndarray of shape (T, R, L)
        Posteriors of the places in each frame of each recording; values beyond a recording's end are meaningless.
    stays : ndarray of shape (R, L)
        Expected number of times that the path stays at each position.
    log_likelihoods : ndarray of shape (R,)
        In nat.
    """

    shares: Floats
    stays: Floats
    log_likelihoods: Floats


def place_posteriors(
    emissions: Floats, lengths: NDArray[np.int64], graph: StateGraph
) -> PlacePosteriors:
    """Return the posteriors of the places of a graph; parameters as for `forward`.

    Recordings whose scaled probabilities may be imprecise are computed in the log domain.
    """
    result, is_precise = scaled_posteriors(emissions, lengths, graph)
    for row in np.flatnonzero(~is_precise):
        one_recording = slice(row, row + 1)
        exact = log_posteriors(emissions[:, one_recording], lengths[one_recording], graph)
        for array, values in zip(result, exact, strict=True):
            rows = (slice(None), one_recording) if array.ndim == 3 else one_recording
            array[rows] = values
    return result


def log_posteriors(
    emissions: Floats, lengths: NDArray[np.int64], graph: StateGraph
) -> PlacePosteriors:
    """Return the posteriors of places by recursions in the log domain; parameters as for `forward`."""
    ahead, totals = forward(emissions, lengths, graph)
    behind = backward(emissions, lengths, graph)
    is_outside = np.arange(len(emissions))[:, None] >= lengths
    logs = ahead + behind - totals[:, None]
    logs[is_outside] = -np.inf
    kept = ahead[:-1] + graph.enter[0] + (emissions + behind)[1:] - totals[:, None]
    kept[is_outside[1:]] = -np.inf
    return PlacePosteriors(np.exp(logs), np.exp(kept).sum(axis=0), totals)


def scaled_posteriors(
    emissions: Floats, lengths: NDArray[np.int64], graph: StateGraph
) -> tuple[PlacePosteriors, NDArray[np.bool_]]:
    """Return the posteriors of places by scaled recursions, and for which recordings they are precise.

        a_t(l) = b_t(l) sum_k a_{t-1}(k) p(k, l) / s_t,   c_t(l) = sum_k p(l, k) b_{t+1}(k) c_{t+1}(k) / r_t

    The scales s_t and r_t make the sum over the places 1, so nothing overflows. To prove that no relevant value
    underflows either, values below a floor are raised to it. Then the overlap of a frame, sum_l a_t(l) c_t(l), can only
    be too large, and each raised value adds at most the share floor / overlap to the likelihood: less than 1e-20 if the
    overlap is at least 1e-160. Scales of 1e-120 or more keep rounding near zero below the floor.

    Parameters
    ----------
    emissions, lengths, graph
        As for `forward`.

    Returns
    -------
    posteriors : PlacePosteriors
        Zero beyond the end of a recording in `log_posteriors` only.
    is_precise : ndarray of bool of shape (R,)

    References
    ----------
    Rabiner, section V.A.
    """
    n_frames = len(emissions)
    recordings = np.arange(len(lengths))
    largest = emissions.max(axis=2, keepdims=True)
    densities = np.exp(emissions - largest)
    transitions = graph.transitions()
    is_inside = np.arange(n_frames)[:, None] < lengths

    ahead = np.empty(emissions.shape)
    scales = np.empty(emissions.shape[:2])
    reached = np.broadcast_to(np.exp(graph.first), emissions.shape[1:])
    for time in range(n_frames):
        np.multiply(reached, densities[time], out=ahead[time])
        scales[time] = _scale(ahead[time])
        reached = ahead[time] @ transitions

    behind = np.empty(emissions.shape)
    ends = np.exp(graph.last)
    backwards = transitions.T
    behind[-1] = ends
    _scale(behind[-1])
    for time in range(n_frames - 2, -1, -1):
        np.matmul(densities[time + 1] * behind[time + 1], backwards, out=behind[time])
        behind[time, lengths - 1 == time] = ends
        _scale(behind[time])

    shares = ahead * behind
    overlaps = shares.sum(axis=2)
    is_enough = (scales >= _LEAST_SCALE) & (overlaps >= _LEAST_OVERLAP)
    is_precise = (is_enough | ~is_inside).all(axis=0)
    overlaps[:, ~is_precise] = 1.0  # the results below are not used for these
    scales[:, ~is_precise] = 1.0
    shares /= overlaps[:, :, None]
    # expected stays: a_t(l) p(l, l) b_{t+1}(l) c_{t+1}(l), as a share of the likelihood
    kept = ahead[:-1] * densities[1:]
    kept *= behind[1:]
    weights = is_inside[1:] / (scales[1:] * overlaps[1:])
    stays = np.einsum("trl,tr->rl", kept, weights) * np.exp(graph.enter[0])

    of_ends = ahead[lengths - 1, recordings] @ ends
    of_frames = np.where(is_inside, np.log(scales) + largest[:, :, 0], 0.0)
    posteriors = PlacePosteriors(shares, stays, of_frames.sum(axis=0) + np.log(of_ends))
    return posteriors, is_precise


def _scale(values: Floats) -> Floats:
    """Divide rows by their sums, raise values below the floor, both in place; return the sums."""
    sums: Floats = np.maximum(values.sum(axis=1), _FLOOR)
    values /= sums[:, None]
    np.maximum(values, _FLOOR, out=values)
    return sums


def viterbi(
    emissions: Floats, lengths: NDArray[np.int64], graph: StateGraph
) -> tuple[NDArray[np.int64], Floats]:
    """Return the most likely paths and their log-likelihoods; parameters as for `forward`, no loop.

    Returns
    -------
    paths : ndarray of int of shape (T, R)
        Position in each frame; beyond a recording's end, its last position.
    log_likelihoods : ndarray of shape (R,)
    """
    scores, totals = forward(emissions, lengths, graph, np.maximum)
    recordings = np.arange(len(lengths))
    paths = np.empty(emissions.shape[:2], np.int64)
    places = (scores[lengths - 1, recordings] + graph.last).argmax(axis=1)
    for time in range(len(paths) - 1, -1, -1):
        paths[time] = places
        if time:
            arcs = scores[time - 1, recordings, graph.before[:, places]] + graph.enter[:, places]
            places = np.where(time < lengths, graph.before[arcs.argmax(axis=0), places], places)
    return paths, totals


def state_densities(
    frames: NDArray[Any], parameters: Floats
) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Return the log-densities of states, and the two factors of their statistics.

    Parameters
    ----------
    frames : ndarray of shape (T, D)
    parameters : ndarray of shape (N, C, 2 D + 1)
        See `WordModels.state_parameters`.

    Returns
    -------
    log_densities : ndarray of shape (T, N)
    posteriors : ndarray of shape (T, N, C)
        Posteriors of the components, given the state; they sum to 1 over C.
    augmented : ndarray of shape (T, 2 D + 1)
        Rows [x^2, x, 1].
    """
    dimension = frames.shape[1]
    augmented = np.ones((len(frames), 2 * dimension + 1), frames.dtype)
    squares_or_products(frames, augmented[:, :dimension])
    augmented[:, dimension:-1] = frames
    by_component = parameters.reshape(-1, augmented.shape[1]).T.astype(frames.dtype)
    log_shares = (augmented @ by_component).reshape(len(frames), *parameters.shape[:2])
    largest = log_shares.max(axis=2, keepdims=True)
    log_shares -= largest
    np.maximum(log_shares, LEAST_LOG_SHARE, out=log_shares)
    posteriors = np.exp(log_shares, out=log_shares)  # in the same memory
    totals = posteriors.sum(axis=2, keepdims=True)
    posteriors /= totals
    log_densities = (largest + np.log(totals))[:, :, 0].astype(np.float64)
    return log_densities, posteriors, augmented


def occupancy(
    recordings: Sequence[Rows],
    models: WordModels,
    text: Text,
    mixture: GaussianMixture | None = None,
) -> tuple[NDArray[Any], NDArray[Any], float, Floats]:
    """Return the posteriors of states and components, given the text, by forward-backward.

    Parameters
    ----------
    recordings : sequence of ndarray or StoredArray of shape (T, D)
        Recordings with at least as many frames as the text has states.
    models : WordModels
        Models of the words of the text; see `WordModels.of_text`.
    text : tuple of str
    mixture : GaussianMixture, optional
        Mixture with diagonal covariances, whose components replace those of each state.

    Returns
    -------
    posteriors : ndarray of shape (F, N * C)
        Posteriors of the states and components of `models` in each frame, sorted by recording.
    augmented : ndarray of shape (F, 2 D + 1)
        Rows [x^2, x, 1] of the frames.
    log_likelihood : float
        Sum over the recordings, in nat.
    stays : ndarray of shape (N,)
        Expected number of times that the path stays in each state.
    """
    graph = text_graph(models, text)
    frames, lengths, at = _stacked(recordings)
    densities, posteriors, augmented = state_densities(frames, models.state_parameters())
    emissions = _emissions(densities, lengths, at, graph)
    of_places = place_posteriors(emissions, lengths, graph)
    belongs = graph.states[:, None] == np.arange(models.stay.size)
    of_states = of_places.shares[at] @ belongs
    if mixture is not None:
        _, posteriors, augmented = state_densities(frames, natural_parameters(mixture)[None])
    posteriors = posteriors * of_states[:, :, None].astype(posteriors.dtype)
    posteriors = posteriors.reshape(len(frames), -1)
    stays = of_places.stays.sum(axis=0) @ belongs
    return posteriors, augmented, float(of_places.log_likelihoods.sum()), stays


@verbosely
def train_word_models(
    frames: Frames,
    texts: Mapping[str, Text],
    config: HiddenMarkovConfig | None = None,
    *,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> WordModels:
    """Train a model of each word by Baum-Welch from a flat start: every state starts at the mean of all frames.

    Parameters
    ----------
    frames : Frames
    texts : mapping of str to tuple of str
        The text of each training recording; all words of the texts get a model.
    config : HiddenMarkovConfig
    work : spkbase.work.Work
        The result does not depend on the number of workers.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    WordModels
        Words in alphabetical order, then `SILENCE` if pauses have a model. A component with less than one frame keeps
        its mean and variance.

    Raises
    ------
    DataError
        If there are no recordings, one has fewer frames than its text has states, or a dimension does not vary.
    """
    config = config or HiddenMarkovConfig()
    words = tuple(sorted(set(map(str, chain.from_iterable(texts.values())))))
    if config.silence:
        words = (*words, SILENCE)
    recordings = sorted(texts)
    rows = IdMap.from_pairs(zip(recordings, recordings, strict=True))
    spoken = [texts[name] for name in recordings]
    check_lengths(frames, rows, spoken, config.states)
    start = GaussianMixture(
        np.ones(1), np.zeros((1, frames.dimension)), np.ones((1, frames.dimension))
    )
    values = frames.stack(recordings)
    whole = e_step(values, start, work=work)
    mean = whole.first[0] / whole.n_frames
    moment = whole.second[0] / whole.n_frames
    variance = moment - mean**2
    # the sums of squares are rounded in the type of the frames
    share = 100 * share_of_type(values.dtype)
    constant = np.flatnonzero(is_negligible(np.maximum(variance, 0.0), moment, share=share))
    if len(constant):
        raise DataError(
            f"dimensions {few(constant.tolist())} of the frames do not vary, or too little beside their mean",
            remedy="normalise the features (cmvn), or leave these dimensions out",
        )
    n_states = len(words) * config.states
    mixture = GaussianMixture(
        np.full(n_states, 1 / n_states),
        np.tile(mean, (n_states, 1)),
        np.tile(variance, (n_states, 1)),
    )
    passed = sum(map(len, spoken)) * config.states / whole.n_frames
    stay = np.full((len(words), config.states), 1 - min(passed, 0.5))
    models = WordModels(words, mixture, stay)
    lowest = config.variance_floor * variance
    highest = config.variance_ceiling * variance
    items = []
    for text, block in text_blocks(spoken):
        items.append(([frames.of(recordings[row]) for row in block], text))
    history: list[float] = []
    rounds = np.repeat(np.arange(config.components.bit_length()), config.rounds).tolist()
    for doublings in progress(rounds, description="models of words", total=len(rounds)):
        if models.mixture.n_components < n_states << doublings:
            models = WordModels(words, split_states(models.mixture, n_states), models.stay)
        sums, stays = _expectation(items, models, work)
        history.append(sums.mean_log_likelihood)
        logger.debug("models of words: mean log-likelihood %.6f nat per frame", history[-1])
        models = updated(models, sums, stays, lowest=lowest, highest=highest)
    return WordModels(words, models.mixture, models.stay, np.array(history))


def updated(
    models: WordModels, sums: Accumulator, stays: Floats, *, lowest: Floats, highest: Floats
) -> WordModels:
    """Return the maximum-likelihood models given the sums of an E-step; see `spkver.mixture.gmm.m_step`.

    Parameters
    ----------
    models : WordModels
    sums : Accumulator
        Sums over all W * S * C components.
    stays : ndarray of shape (W * S,)
        Expected number of times that the path stays in each state; its share of the state's frames is the new
        probability.
    lowest, highest : ndarray of shape (D,)
        Limits of the variances.
    """
    alive = sums.zeroth >= ALIVE
    carried = (sums.zeroth[alive], sums.first[alive], sums.second[alive])
    sums_of_alive = Accumulator(*carried, sums.log_likelihood, sums.n_frames)
    of_alive = m_step(sums_of_alive, lowest=lowest, highest=highest)
    means = models.mixture.means.copy()
    means[alive] = of_alive.means
    variances = models.mixture.variances.copy()
    variances[alive] = of_alive.variances
    weights = np.maximum(sums.zeroth, np.finfo(float).tiny)
    mixture = GaussianMixture(weights / weights.sum(), means, variances)
    frames_of_states = weights.reshape(stays.size, -1).sum(axis=1)
    stay = np.clip(stays / frames_of_states, _LEAST_STAY, 1 - _LEAST_STAY)
    return WordModels(models.words, mixture, stay.reshape(models.stay.shape))


def split_states(mixture: GaussianMixture, n_states: int) -> GaussianMixture:
    """Double the components of each state, see `spkver.mixture.ubm.split`; components of a state stay together."""
    order = np.arange(2 * mixture.n_components).reshape(2, n_states, -1).swapaxes(0, 1).ravel()
    doubled = split(mixture)
    return GaussianMixture(doubled.weights[order], doubled.means[order], doubled.variances[order])


@one_line
@dataclass(frozen=True)
class AlignedWords:
    """The frames of each word in recordings.

    Attributes
    ----------
    rows : IdMap
        Model, recording and frames of each of K words, sorted by recording.
    words : ndarray of str of shape (K,)
    owners : ndarray of int64 of shape (K,)
        Row of the list to which the word belongs.
    """

    rows: IdMap
    words: NDArray[Any]
    owners: NDArray[np.int64]


def align_texts(
    models: WordModels,
    frames: Frames,
    rows: IdMap,
    texts: Sequence[Text],
    *,
    work: Work = ALL_CORES,
) -> AlignedWords:
    """Return which frames of each recording belong to which word of its text, by Viterbi (forced alignment).

    Parameters
    ----------
    models : WordModels
    frames : Frames
    rows : IdMap
        N recordings, or parts of them.
    texts : sequence of tuple of str, length N
        The text that each row is assumed to contain.

    Returns
    -------
    AlignedWords

    Raises
    ------
    DataError
        If a word has no model, or a recording has fewer frames than its text has states.
    """
    word_bounds = partial(_word_bounds, models=models)
    bounds = dict(_of_rows(word_bounds, models, frames, rows, texts, work, "alignment"))
    owners = np.repeat(np.arange(len(rows)), [*map(len, texts)])
    within = np.concatenate([bounds[row] for row in range(len(rows))]).T
    start, stop = within + np.maximum(rows.start, 0)[owners]
    words = np.array([*chain.from_iterable(texts)], object)
    aligned = IdMap(rows.models[owners], rows.segments[owners], start, stop)
    return AlignedWords(aligned, words, owners)


def aligned_statistics(
    models: WordModels,
    frames: Frames,
    rows: IdMap,
    texts: Sequence[Text],
    mixture: GaussianMixture | None = None,
    *,
    work: Work = ALL_CORES,
) -> Statistics:
    """Return the statistics of recordings, or parts of them, with known texts, by state and component.

        n_sc = sum_t P(s, c | x_1 ... x_T, text),   f_sc = sum_t P(s, c | x_1 ... x_T, text) x_t

    Parameters
    ----------
    models : WordModels
    frames : Frames
    rows : IdMap
        Model, recording, and the frames of a part, in each of N rows.
    texts : sequence of tuple of str, length N
    mixture : GaussianMixture, optional
        With diagonal covariances; its components replace those of each state:
        P(s, c | x_1 ... x_T, text) = P(s | x_1 ... x_T, text) P(c | x_t, mixture).
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    Statistics
        Statistics of W * S * C components, in the order of `models.mixture`; words that a text lacks have zeros.

    Raises
    ------
    DataError
        As for `align_texts`.
    """
    n_components = models.mixture.n_components
    if mixture is not None:
        n_components = models.stay.size * mixture.n_components
    zeroth = np.zeros((len(rows), n_components), frames.values.dtype)
    first = np.zeros((*zeroth.shape, frames.dimension), frames.values.dtype)
    components = {}
    for text in set(texts):
        components[text] = _components(models, models.of_text(text).words, n_components)
    segment_sums = partial(_segment_sums, models=models, mixture=mixture)
    for row, sums in _of_rows(segment_sums, models, frames, rows, texts, work):
        used = components[texts[row]]
        first[row, used] = sums[:, :-1]
        zeroth[row, used] = sums[:, -1]
    return Statistics(rows.models, rows.segments, zeroth, first.reshape(len(rows), -1))


def without_text(statistics: Statistics, states: Floats, mixture: GaussianMixture) -> Statistics:
    """Return statistics from which the effect of the spoken words is removed: each state gets the mixture's means.

        n_c = sum_s n_sc,   f_c = sum_s (f_sc - n_sc (m_sc - m_c))

    Parameters
    ----------
    statistics : Statistics
        Statistics of a word by state and component of the mixture, see `aligned_statistics`.
    states : ndarray of shape (S, C, D)
        Means m_sc of the background speakers' frames in each state.
    mixture : GaussianMixture
        With means m_c.

    Returns
    -------
    Statistics
        Statistics of the mixture's C components, shared by all words.
    """
    zeroth = np.asarray(statistics.zeroth).reshape(-1, *states.shape[:2])
    first = np.asarray(statistics.first).reshape(-1, *states.shape)
    shifts = np.einsum("nsc,scd->ncd", zeroth, states - mixture.means)
    moved = (first.sum(axis=1) - shifts).reshape(len(first), -1)
    return Statistics(
        statistics.models, statistics.segments, zeroth.sum(axis=1), moved.astype(first.dtype)
    )


def text_posteriors(
    models: WordModels,
    frames: Frames,
    rows: IdMap,
    texts: Sequence[Text],
    *,
    work: Work = ALL_CORES,
) -> Floats:
    """Return the log-posterior of each text among all sequences of words (or all words), per frame of its recording.

        s = 1/T [log p(x | text) - K log W - log p(x | any sequence)]

    Parameters
    ----------
    models : WordModels
        Models of W words.
    frames : Frames
    rows : IdMap
        N recordings, or parts of them; if a recording is in several rows, sequences of words are scored once.
    texts : sequence of tuple of str, length N
        The text that each row may contain, of K words. If all have one word, they are compared with single words.

    Returns
    -------
    ndarray of shape (N,)
        Scores in nat: near 0 if the text was spoken, clearly below if not.

    Raises
    ------
    DataError
        As for `align_texts`.
    """
    names = [
        f"{name} {start} {stop}"
        for name, start, stop in zip(rows.segments, rows.start, rows.stop, strict=True)
    ]
    _, first, parts = np.unique(names, return_index=True, return_inverse=True)
    likelihoods = partial(_log_likelihoods, models=models)
    known = dict(_of_rows(likelihoods, models, frames, rows, texts, work, "texts"))
    likelihoods = partial(likelihoods, is_loop=max(map(len, texts)) > 1)
    no_texts: list[Text] = [()] * len(first)
    free = dict(_of_rows(likelihoods, models, frames, rows[first], no_texts, work, "free texts"))
    ratios = np.empty(len(texts))
    for row, text in enumerate(texts):
        ratio = known[row] - len(text) * np.log(len(models.words)) - free[parts[row]]
        ratios[row] = ratio / len(part_of(frames, rows, row))
    return ratios


def text_blocks(texts: Sequence[Text]) -> list[tuple[Text, list[int]]]:
    """Return rows with the same text in blocks of at most 32, in the order of the texts."""
    rows: dict[Text, list[int]] = {}
    for row, text in enumerate(texts):
        rows.setdefault(text, []).append(row)
    blocks = []
    for text in sorted(rows):
        blocks += [(text, list(block)) for block in chunks(rows[text], _RECORDINGS)]
    return blocks


def check_lengths(frames: Frames, rows: IdMap, texts: Sequence[Text], n_states: int) -> None:
    """Raise a DataError for a recording, or a part of one, that has fewer frames than its text has states."""
    for row, text in enumerate(texts):
        n_frames = len(part_of(frames, rows, row))
        if n_frames < max(len(text) * n_states, 1):
            message = f"recording {rows.segments[row]!r} has {n_frames} frames, but {' '.join(text)!r} has "
            message += f"{len(text)} words of {n_states} states"
            remedy = "remove it from the lists, or lower hidden_markov.states"
            raise DataError(message, remedy=remedy)


def part_of(frames: Frames, rows: IdMap, row: int) -> Rows:
    """Return the frames of a row of a list: the whole recording, or a part of it."""
    whole = frames.of(rows.segments[row])
    if rows.stop[row] < 0:
        return whole
    return part(whole, int(rows.start[row]), int(rows.stop[row]))


def write_word_models(path: str | Path, models: WordModels) -> None:
    """Write word models as one HDF5 file, whole or not at all."""
    mixture = {name: getattr(models.mixture, name) for name in ("weights", "means", "variances")}
    others = {"words": models.words, "stay": models.stay, "log_likelihoods": models.log_likelihoods}
    write_arrays(path, {**mixture, **others}, attributes={"kind": "word models"})


def read_word_models(path: str | Path) -> WordModels:
    """Read the word models that `write_word_models` wrote."""
    arrays = read_arrays(path)
    mixture = GaussianMixture(arrays["weights"], arrays["means"], arrays["variances"])
    words = tuple(arrays["words"].tolist())
    return WordModels(words, mixture, arrays["stay"], arrays["log_likelihoods"])


def _stacked(
    recordings: Sequence[Rows],
) -> tuple[NDArray[Any], NDArray[np.int64], tuple[NDArray[Any], NDArray[Any]]]:
    """Return the frames of recordings, their lengths, and the (time, recording) of each frame."""
    lengths = np.array([*map(len, recordings)])
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    frames = np.concatenate([*map(np.asarray, recordings)])
    return frames, lengths, (np.arange(len(owners)) - starts, owners)


def _emissions(
    densities: Floats,
    lengths: NDArray[Any],
    at: tuple[NDArray[Any], NDArray[Any]],
    graph: StateGraph,
) -> Floats:
    """Return the log-densities (T, R, L) at the places of a graph; 0 beyond the ends."""
    emissions = np.zeros((lengths.max(), len(lengths), len(graph.states)))
    emissions[at] = densities[:, graph.states]
    return emissions


def _components(models: WordModels, words: Sequence[str], n_components: int) -> NDArray[np.int64]:
    """Return the components of some words among the components of all."""
    places = np.arange(n_components).reshape(len(models.words), -1)
    return places[[models.words.index(word) for word in words]].ravel()


def _expectation(items: list[Any], models: WordModels, work: Work) -> tuple[Accumulator, Floats]:
    """Return the sums of the E-step over blocks, by component, and the expected stays, by state."""
    dimension = models.mixture.dimension
    sums = np.zeros((models.mixture.n_components, 2 * dimension + 1))
    stays = np.zeros(models.stay.shape)
    likelihood = 0.0
    n_frames = sum(sum(map(len, recordings)) for recordings, _ in items)
    for words, of_block, likelihood_of_block, kept in work.map(
        partial(_block_expectation, models=models), items
    ):
        sums[_components(models, words, len(sums))] += of_block
        stays[[models.words.index(word) for word in words]] += kept.reshape(len(words), -1)
        likelihood += likelihood_of_block
    if SILENCE in models.words:
        # the states of pauses share a mixture: otherwise they would learn the adjacent words
        rows = _components(models, [SILENCE], len(sums))
        of_silence = sums[rows].reshape(models.stay.shape[1], -1, sums.shape[1])
        sums[rows] = np.tile(of_silence.mean(axis=0), (len(of_silence), 1))
        stays[models.words.index(SILENCE)] = stays[models.words.index(SILENCE)].mean()
    moments = sums[:, -1], sums[:, dimension:-1], sums[:, :dimension]
    return Accumulator(*moments, likelihood, n_frames), stays.ravel()


def _block_expectation(
    block: tuple[list[Rows], Text], models: WordModels
) -> tuple[Text, NDArray[Any], float, Floats]:
    recordings, text = block
    used = models.of_text(text)
    posteriors, augmented, log_likelihood, stays = occupancy(recordings, used, text)
    return used.words, posteriors.T @ augmented, log_likelihood, stays


def _segment_sums(
    block: tuple[list[Rows], Text], models: WordModels, mixture: GaussianMixture | None
) -> list[NDArray[Any]]:
    """Return the rows [f, n] of each recording, (C, D + 1) for the components of its words."""
    recordings, text = block
    posteriors, augmented, _, _ = occupancy(recordings, models.of_text(text), text, mixture)
    ends = np.cumsum([*map(len, recordings)])[:-1]
    of_states = np.split(posteriors, ends)
    rows = np.split(augmented[:, models.mixture.dimension :], ends)
    return [shares.T @ frames for shares, frames in zip(of_states, rows, strict=True)]


def _word_bounds(block: tuple[list[Rows], Text], models: WordModels) -> list[NDArray[np.int64]]:
    """Return the first frame and the end of each word, (K, 2), in each recording."""
    recordings, text = block
    used = models.of_text(text)
    graph = text_graph(used, text)
    frames, lengths, at = _stacked(recordings)
    densities, _, _ = state_densities(frames, used.state_parameters())
    paths, _ = viterbi(_emissions(densities, lengths, at, graph), lengths, graph)
    words = np.arange(len(text))
    if SILENCE in used.words:
        words = 2 * words + 1  # a pause before each word
    bounds = []
    for path, length in zip(paths.T, lengths, strict=True):
        of_frames = path[:length] // models.stay.shape[1]
        bounds.append(np.searchsorted(of_frames, [words, words + 1]).T)
    return bounds


def _log_likelihoods(
    block: tuple[list[Rows], Text], models: WordModels, is_loop: bool = True
) -> Floats:
    """Return the log-likelihood of each recording given the text; without a text, given any sequence of words."""
    recordings, text = block
    if text:
        used = models.of_text(text)
        graph = text_graph(used, text)
    else:
        used = models
        graph = free_graph(used, is_loop=is_loop)
    frames, lengths, at = _stacked(recordings)
    densities, _, _ = state_densities(frames, used.state_parameters())
    return forward(_emissions(densities, lengths, at, graph), lengths, graph)[1]


def _of_rows(
    function: Callable[[Any], Any],
    models: WordModels,
    frames: Frames,
    rows: IdMap,
    texts: Sequence[Text],
    work: Work,
    description: str = "",
) -> Iterator[tuple[int, Any]]:
    """Yield each row of a list with its result; the function takes a block of rows with the same text."""
    check_lengths(frames, rows, texts, models.stay.shape[1])
    blocks = text_blocks(texts)
    parts_of = partial(part_of, frames, rows)
    items = (([*map(parts_of, block)], text) for text, block in blocks)
    sizes = [len(block) for _, block in blocks]
    results = work.map(function, items, description=description, sizes=sizes)
    for (_, block), of_block in zip(blocks, results, strict=True):
        yield from zip(block, of_block, strict=True)
