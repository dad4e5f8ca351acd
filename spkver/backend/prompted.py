"""Scores of trials whose text is known: each asks whether a speaker said a certain text, the prompt.

A recording is tested against every prompt of its trials: it is aligned to that text, whatever it says. Words are
scored one by one.

`adapt_words` and `score_sentences` are HiLAM: the mixture of the background is adapted to a speaker, and the speaker's
mixture to the states of each word that the speaker has enrolled. `minus_own_mixture` verifies only the text.

References
----------
A. Larcher, K. A. Lee, B. Ma, H. Li, "Text-dependent speaker verification: Classifiers, databases and RSR2015",
Speech Communication 60, 2014 (HiLAM).
N. Maghsoodi, H. Sameti, H. Zeinali, T. Stafylakis, "Speaker recognition with random digit strings using uncertainty
normalized HMM-based i-vectors", IEEE/ACM Trans. Audio, Speech and Language Processing 27(11), 2019 (digits one by one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.trials import Scores, Trials, factorise
from spkbase.arrays import Floats, Rows, SelectedRows
from spkbase.errors import DataError
from spkbase.work import ALL_CORES, Work, chunk_bounds
from spkver import mixture as gmm
from spkver.backend.chain import Backend
from spkver.backend.scoring import numbered_ids, scored
from spkver.features import Frames
from spkver.idmap import IdMap
from spkver.vectors import Supervectors, map_means, sum_by_model

_MODELS = 24  # number of models scored together


@dataclass(frozen=True)
class PromptedTrials:
    """Trials, each with the text that should be spoken.

    Attributes
    ----------
    trials : Trials
        A model may be followed by its prompt, ``m101_01:4-8-0-7-3``.
    rows : IdMap
        Each prompt with each recording that is tested against it: (prompt, recording), shape (N,).
    texts : list of tuple of str, length N
        The words of the prompts.
    tested : ndarray of int64 of shape (len(trials),)
        Row of each trial.
    """

    trials: Trials
    rows: IdMap
    texts: list[gmm.Text]
    tested: NDArray[np.int64]

    @classmethod
    def from_prompts(cls, trials: Trials, prompts: Sequence[gmm.Text]) -> PromptedTrials:
        """Return trials with their prompts, which come in the order of the trials."""
        row_of: dict[tuple[gmm.Text, int], int] = {}
        pairs = zip(prompts, trials.segments.tolist(), strict=True)
        tested = np.array([row_of.setdefault(pair, len(row_of)) for pair in pairs], np.int64)
        rows = IdMap.from_pairs(
            (" ".join(text), trials.segment_ids[segment]) for text, segment in row_of
        )
        return cls(trials, rows, [text for text, _ in row_of], tested)

    def trials_of(self, words: gmm.AlignedWords) -> list[tuple[NDArray[np.int64], list[str]]]:
        """Return, for each word of the rows, its trials and their models' names with the word, ``m101_01 four``."""
        enrolled = [name.partition(":")[0] for name in self.trials.model_ids.tolist()]
        order = np.argsort(self.tested, kind="stable")
        of_rows = np.split(order, np.searchsorted(self.tested[order], np.arange(1, len(self.rows))))
        of_words = []
        for row, word in zip(words.owners.tolist(), words.words.tolist(), strict=True):
            trials = of_rows[row]
            names = [f"{enrolled[model]} {word}" for model in self.trials.models[trials]]
            of_words.append((trials, names))
        return of_words

    def scores(self, values: Floats) -> Scores:
        """Return the trials with these scores."""
        return scored(self.trials, values)


def score_words(
    backend: Backend,
    enrolled: tuple[gmm.AlignedWords, Floats],
    tested: tuple[gmm.AlignedWords, Floats],
    prompted: PromptedTrials,
) -> Scores:
    """Score trials by the vectors of their words, as the mean over the words of the prompt.

    Parameters
    ----------
    backend : Backend
    enrolled, tested : (AlignedWords, ndarray of shape (K, R))
        The words of the enrolment and of the rows of `prompted`, and the vector of each.
    prompted : PromptedTrials

    Returns
    -------
    evaluation.trials.Scores
        In the order of the trials.

    Raises
    ------
    DataError
        If a model has not enrolled a word of its prompt.
    """
    rows, names = zip(*prompted.trials_of(tested[0]), strict=True)
    which = np.concatenate(rows)
    model_ids, models = factorise([*chain.from_iterable(names)])
    words = np.repeat(np.arange(len(rows)), [*map(len, rows)])
    speakers = enrolled[0].rows.models + " " + enrolled[0].words
    enrolment = Embeddings(numbered_ids(len(speakers)), speakers, enrolled[1])
    ids = numbered_ids(len(rows))
    tests = Embeddings(ids, ids, tested[1])
    trials = Trials(model_ids, ids, models, words)
    values = backend.score(enrolment, tests, trials, warn=False).values
    return prompted.scores(np.bincount(which, values) / np.bincount(which))


def adapt_words(
    mixture: gmm.GaussianMixture,
    models: gmm.WordModels,
    frames: Frames,
    words: gmm.AlignedWords,
    priors: Mapping[str, Floats],
    *,
    relevance: float,
    work: Work = ALL_CORES,
) -> Supervectors:
    """Adapt the means of a mixture to the states of each word that a model says, by MAP.

    Parameters
    ----------
    mixture : GaussianMixture
        With diagonal covariances.
    models : WordModels
        Models that assign frames to states.
    frames : Frames
    words : AlignedWords
    priors : mapping of str to ndarray of shape (C, D)
        The means that are adapted, of each model.
    relevance : float
        Relevance factor, in frames.
    work : spkbase.work.Work
        The result does not depend on the number of workers.

    Returns
    -------
    Supervectors
        A row for each model (its `models`) and word (its `segments`), float32 of shape (N, S * C * D).

    References
    ----------
    Larcher et al., section 3.3; their alignment is that of the adapted states themselves.
    """
    parts = []
    for word in sorted(set(words.words)):
        rows = words.rows[np.flatnonzero(words.words == word)]
        texts = [(word,)] * len(rows)
        statistics = gmm.aligned_statistics(
            models.of((word,)), frames, rows, texts, mixture, work=work
        )
        sums = sum_by_model(statistics)
        prior = np.stack([priors[name] for name in sums.models])[:, None]
        shape = len(sums), models.stay.shape[1], *mixture.means.shape
        zeroth = np.asarray(sums.zeroth).reshape(shape[:3])
        first = np.asarray(sums.first).reshape(shape)
        means = map_means(zeroth, first, prior, relevance)
        vectors = means.reshape(len(sums), -1).astype(np.float32)
        parts.append((sums.models, [word] * len(sums), vectors))
    return Supervectors(*map(np.concatenate, zip(*parts, strict=True)))


def score_sentences(
    mixture: gmm.GaussianMixture,
    sentences: Supervectors,
    frames: Frames,
    words: gmm.AlignedWords,
    prompted: PromptedTrials,
    *,
    work: Work = ALL_CORES,
) -> Scores:
    """Score trials by the best path through the states of the model's words, minus the background, per frame.

        s = 1/T [max over paths of log p(x | path) - log p(x | mixture)]

    Parameters
    ----------
    mixture : GaussianMixture
    sentences : Supervectors
        See `adapt_words`.
    frames : Frames
    words : AlignedWords
        Words of the rows of `prompted`.
    prompted : PromptedTrials
    work : spkbase.work.Work
        Scores do not depend on the number of workers.

    Returns
    -------
    evaluation.trials.Scores
        In nat per frame, in the order of the trials.

    Raises
    ------
    DataError
        If a model has not enrolled a word of its prompt.
    """
    known = zip(sentences.models, sentences.segments, strict=True)
    row_of = {f"{model} {word}": row for row, (model, word) in enumerate(known)}
    items = []
    which = []
    for row, (rows, names) in enumerate(prompted.trials_of(words)):
        absent = [name for name in names if name not in row_of]
        if absent:
            text = f"{absent[0]!r} (model and word) is not enrolled, but a trial wants it"
            raise DataError(text, remedy="enrol all words of the prompts")
        vectors = SelectedRows(sentences.vectors, np.array([row_of[name] for name in names]))
        items.append((gmm.part_of(frames, words.rows, row), vectors))
        which.append(rows)
    totals = np.zeros(len(prompted.trials))
    counts = np.zeros(len(prompted.trials))
    score = partial(_path_ratios, mixture=mixture)
    ratios = work.map(score, items, description="scoring", sizes=[*map(len, which)])
    for rows, (of_part, _), values in zip(which, items, ratios, strict=True):
        totals[rows] += values
        counts[rows] += len(of_part)
    return prompted.scores(totals / counts)


def minus_own_mixture(
    scores: Scores,
    mixture: gmm.GaussianMixture,
    sentences: Supervectors,
    priors: Mapping[str, Floats],
    frames: Frames,
    words: gmm.AlignedWords,
    prompted: PromptedTrials,
    *,
    work: Work = ALL_CORES,
) -> Scores:
    """Return scores of sentences relative to the speaker's own mixture, which explains any text of this speaker.

        s = 1/T [max over paths of log p(x | path) - log p(x | mixture of the speaker)]

    Parameters
    ----------
    scores : evaluation.trials.Scores
        Scores from `score_sentences`.
    mixture, sentences, frames, words, prompted, work
        As for `score_sentences`.
    priors : mapping of str to ndarray of shape (C, D)
        The means of each model's speaker, as for `adapt_words`.

    Returns
    -------
    evaluation.trials.Scores
        In nat per frame, in the order of the trials.
    """
    own = np.stack([priors[model].ravel() for model in sentences.models]).astype(np.float32)
    one_state = Supervectors(sentences.models, sentences.segments, own)
    ratios = score_sentences(mixture, one_state, frames, words, prompted, work=work)
    return prompted.scores(scores.values - ratios.values)


def _path_ratios(item: tuple[Rows, SelectedRows], mixture: gmm.GaussianMixture) -> Floats:
    """Return the ratio of each model's states and the mixture, summed over frames."""
    frames = np.asarray(item[0])
    vectors = item[1]
    background = gmm.natural_parameters(mixture)
    n_components, dimension = mixture.means.shape
    precisions = 1 / mixture.variances
    log_weights = background[:, -1] + 0.5 * (mixture.means**2 / mixture.variances).sum(1)
    ratios = []
    for start, stop in chunk_bounds(len(vectors), _MODELS):
        rows = np.asarray(vectors.part(start, stop), np.float64)
        means = rows.reshape(-1, n_components, dimension)
        parameters = np.empty((*means.shape[:2], background.shape[1]), frames.dtype)
        parameters[:, :, :dimension] = background[:, :dimension]
        parameters[:, :, dimension:-1] = means * precisions
        lengths = np.einsum("scd,scd,cd->sc", means, means, precisions)
        parameters[:, :, -1] = log_weights - 0.5 * lengths
        densities = gmm.state_densities(frames, parameters)[0]
        densities = densities.reshape(len(frames), stop - start, -1)
        graph = gmm.row_graph(np.full(densities.shape[2], 0.5))
        n_frames = np.full(stop - start, len(frames))
        ratios.append(gmm.forward(densities, n_frames, graph, np.maximum)[1])
    equal = len(frames) * np.log(2)  # staying in a state is as probable as leaving it
    totals: NDArray[np.float64] = (
        equal + np.concatenate(ratios) - gmm.frame_log_likelihoods(frames, background).sum()
    )
    return totals
