"""Pseudo-speakers in vector space: the voices that an anonymiser substitutes for speakers, without any synthesis.

Baseline B1 of the VoicePrivacy Challenges replaces the x-vector of a speaker or an utterance: the speakers of a pool
that are farthest from it are candidates, some of them are drawn, and their mean is the new voice. A synthesiser then
speaks with that voice. Scored like the vectors of recordings, the new vectors show what the choice of voices reveals: a
synthesiser that renders them faithfully cannot be more private, and other traits of the speaker that it lets through
(prosody, words, noise) come on top. An inexact synthesiser may blur them.

References
----------
F. Fang, X. Wang, J. Yamagishi, I. Echizen, M. Todisco, N. Evans and J.-F. Bonastre, "Speaker anonymization using
x-vector and neural waveform models", 10th ISCA Speech Synthesis Workshop, 2019; N. Tomashenko et al., "Introducing the
VoicePrivacy initiative", Interspeech 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError, Problems, counted, few
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.anonymization.anonymizers import LEVELS
from spkver.backend import Backend, Sessions, parse_chain, train_chain

DISTANCES = ("plda", "cosine")
SEXES = ("same", "other", "random", "any")
PLDA_CHAIN = "centre,length,plda"
"""The chain that is trained on the pool if no backend is given: the mean subtracted, unit length, a PLDA."""

_BLOCK = 256
Affinity = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def cosine_affinities(
    vectors: NDArray[np.float64], pool: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the cosine of each vector with each of a pool: a_ij = x_i p_j / (|x_i| |p_j|).

    Parameters
    ----------
    vectors : ndarray of shape (N, D)
    pool : ndarray of shape (P, D)

    Returns
    -------
    ndarray of float64 of shape (N, P)

    Examples
    --------
    >>> cosine_affinities(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])).tolist()
    [[1.0, 0.0, -1.0]]
    """
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines: NDArray[np.float64] = units @ (pool / np.linalg.norm(pool, axis=1, keepdims=True)).T
    return cosines


def farthest_voices(
    affinities: NDArray[np.float64], allowed: NDArray[np.bool_], count: int
) -> NDArray[np.int64]:
    """Return the rows of a pool with the lowest affinities, in ascending order; of equal affinities, the first rows.

    Parameters
    ----------
    affinities : ndarray of shape (P,)
        Affinity of a source with each voice of the pool, such as log-likelihood ratios of a PLDA.
    allowed : ndarray of bool of shape (P,)
        Whether each voice may be chosen.
    count : int
        Number of voices to choose.

    Returns
    -------
    ndarray of int of shape (count,)

    Raises
    ------
    DataError
        If fewer than `count` are allowed.

    Examples
    --------
    >>> farthest_voices(np.array([0.3, -1.0, 0.0, 0.0]), np.array([True, False, True, True]), 2).tolist()
    [2, 3]
    """
    rows = np.flatnonzero(allowed)
    if len(rows) < count:
        text = f"the pool has {len(rows)} voices to choose from, and {count} farthest are requested"
        raise DataError(
            text,
            remedy=f"give a larger pool, or farthest={max(len(rows) // 2, 1)} and a mean of fewer",
        )
    return rows[np.argsort(affinities[rows], kind="stable")[:count]]


def drawn_mean(
    pool: NDArray[np.float64],
    candidates: NDArray[np.int64],
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the mean of some voices of a pool, drawn from candidates without replacement.

    Parameters
    ----------
    pool : ndarray of shape (P, D)
    candidates : ndarray of int of shape (N,)
        Rows of the pool.
    count : int
        How many are drawn, N at most.
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of float64 of shape (D,)
    """
    drawn = np.sort(generator.choice(candidates, count, replace=False))
    voice: NDArray[np.float64] = pool[drawn].mean(axis=0)
    return voice


@one_line
@dataclass(frozen=True)
class PseudoSpeakerRules:
    """How pseudo-speakers are chosen; the defaults are as in B1 of VoicePrivacy 2020.

    Attributes
    ----------
    distance : {"plda", "cosine"}
        Measure of affinity, which is small for voices that are far apart: a log-likelihood ratio, or the cosine.
    sex : {"same", "other", "random", "any"}
        Sex of the voices relative to the source speaker's; "random" draws one for each pseudo-speaker, "any" needs no
        sexes.
    level : {"speaker", "utterance"}
        "speaker": one pseudo-speaker for all utterances of a speaker, chosen by the mean of their vectors; "utterance":
        one for each.
    farthest : int
        Number of farthest voices that are candidates.
    mean_of : int
        Number of candidates that are drawn and averaged.
    seed : int
        Seed of all draws, which depend only on it and on the id of the speaker or utterance.
    draws : int
        Number of realisations of each vector, for sets that attackers learn from; the ids of further ones end in -draw2
        and so on.
    """

    distance: str = "plda"
    sex: str = "same"
    level: str = "speaker"
    farthest: int = 200
    mean_of: int = 100
    seed: int = 0
    draws: int = 1

    def __post_init__(self) -> None:
        for name, known in (("distance", DISTANCES), ("sex", SEXES), ("level", LEVELS)):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"{name} is {value!r}: expected {' or '.join(known)}")
        if not 1 <= self.mean_of <= self.farthest:
            text = f"the mean of {self.mean_of} drawn from the {self.farthest} farthest"
            raise ConfigError(
                text, remedy="draw at least 1, and at most as many as there are farthest voices"
            )
        if self.seed < 0 or self.draws < 1:
            raise ConfigError(
                f"seed {self.seed} and {self.draws} draws: expected 0 or more, and at least 1"
            )


def anonymize_embeddings(
    source: Embeddings,
    pool: Embeddings,
    rules: PseudoSpeakerRules | None = None,
    *,
    sexes: Mapping[str, str] | None = None,
    backend: Backend | None = None,
) -> Embeddings:
    """Return the vectors of a set with pseudo-speakers in place of its speakers; see the module.

    Voices of the pool are the means of its speakers' vectors.

    Parameters
    ----------
    source : Embeddings
        Original vectors; ids and speakers are kept.
    pool : Embeddings
        Embeddings of other speakers.
    rules : PseudoSpeakerRules, optional
    sexes : mapping of str to str, optional
        Sex, "f" or "m", of the speakers of both sets; required unless `rules.sex` is "any".
    backend : Backend, optional
        Backend whose score of a source and a voice is their affinity; by default a PLDA that is trained on the pool
        (`PLDA_CHAIN`). Not allowed with the cosine.

    Returns
    -------
    Embeddings
        In the order of the source, draw after draw, in its floating type. Each vector is independent of the order of
        source and pool, of other speakers and, on utterance level, of other utterances.

    Raises
    ------
    DataError
        With all problems: speakers of the source in the pool, other dimensions, vectors that are not finite or zero,
        speakers of unknown sex, too few voices of a sex, a pool that no PLDA can be trained on.
    """
    rules = rules or PseudoSpeakerRules()
    sexes = sexes or {}
    _check(source, pool, rules, sexes, backend)
    speakers, voices = _means(pool, pool.speakers)
    females = np.array([sexes.get(speaker) == "f" for speaker in speakers])
    with one_blas_thread():
        affinity = _affinity(voices, pool, rules, backend)
        # names are sorted, so that blocks do not depend on the order of the list
        groups = source.speakers if rules.level == "speaker" else source.ids
        names, originals = _means(source, groups)
        codes = np.searchsorted(np.array(names, object), groups)
        speaker_of = dict(zip(groups.tolist(), source.speakers.tolist(), strict=True))
        made = np.empty((rules.draws, len(names), source.vectors.shape[1]), source.vectors.dtype)
        for start, stop in chunk_bounds(len(names), _BLOCK):
            affinities = affinity(originals[start:stop])
            for row in range(start, stop):
                name = names[row]
                sex = sexes.get(speaker_of[name])
                for draw in range(rules.draws):
                    key = ("pseudo-speaker", rules.level, name, f"draw {draw}")
                    generator = stream(rules.seed, *key)
                    allowed = _allowed(females, sex, rules.sex, generator)
                    candidates = farthest_voices(affinities[row - start], allowed, rules.farthest)
                    made[draw, row] = drawn_mean(voices, candidates, rules.mean_of, generator)
    drawn = (
        f"mean of {rules.mean_of} drawn from the {rules.farthest} farthest of {len(voices)} voices"
    )
    of_sex = {"any": "of any sex", "random": "of a sex drawn"}.get(
        rules.sex, f"of the {rules.sex} sex"
    )
    note = f"pseudo-speakers: {drawn} {of_sex} ({rules.distance}), per {rules.level}, seed {rules.seed}"
    endings = ["", *(f"-draw{number}" for number in range(2, rules.draws + 1))]
    ids = [f"{utterance}{ending}" for ending, utterance in product(endings, source.ids)]
    return Embeddings(
        np.array(ids, object),
        np.tile(source.speakers, rules.draws),
        np.concatenate(made[:, codes]),
        (*source.notes, note),
    )


def _check(
    source: Embeddings,
    pool: Embeddings,
    rules: PseudoSpeakerRules,
    sexes: Mapping[str, str],
    backend: Backend | None,
) -> None:
    """Raise all problems of source, pool and sexes."""
    problems = Problems()
    if backend is not None and rules.distance == "cosine":
        raise ConfigError(
            "a backend is given, but the distance is the cosine", remedy="choose distance='plda'"
        )
    for vectors in (source, pool):
        with problems.noted():
            vectors.norms()
    if source.vectors.shape[1] != pool.vectors.shape[1]:
        text = f"vectors of {source.vectors.shape[1]} dimensions, and {pool.vectors.shape[1]} in the pool"
        problems.add(text, file=pool.source or None, remedy="extract both with the same network")
    shared = sorted(set(source.speakers) & set(pool.speakers))
    if shared:
        text = f"{counted(len(shared), 'speaker')} of the source in the pool too: {few(shared)}"
        problems.add(
            text,
            file=pool.source or None,
            remedy="leave them out: voices must belong to other speakers",
        )
    if rules.sex != "any":
        unknown = sorted({*source.speakers, *pool.speakers} - sexes.keys())
        if unknown:
            text = f"{counted(len(unknown), 'speaker')} of unknown sex: {few(unknown)}"
            problems.add(text, remedy="give their sexes, f or m, or choose sex='any'")
        wrong = sorted(speaker for speaker, sex in sexes.items() if sex not in ("f", "m"))
        if wrong:
            text = f"expected f or m, got {sexes[wrong[0]]!r} for {wrong[0]!r}"
            problems.add(text, remedy="write f or m")
    problems.raise_if_any()


def _affinity(
    voices: NDArray[np.float64],
    pool: Embeddings,
    rules: PseudoSpeakerRules,
    backend: Backend | None,
) -> Affinity:
    """Return a function that gives the affinities of n vectors with all P voices, shape (n, P)."""
    if rules.distance == "cosine":
        return lambda vectors: cosine_affinities(vectors, voices)
    if backend is None:
        counts = np.unique(np.asarray(pool.speakers, np.str_), return_counts=True)[1]
        if (counts > 1).sum() < 2:
            text = "a PLDA needs speakers with several vectors, and the pool has none"
            remedy = "give a trained backend, more vectors of its speakers, or distance='cosine'"
            raise DataError(text, file=pool.source or None, remedy=remedy)
        backend = train_chain(pool, parse_chain(PLDA_CHAIN), warn=False)
    mapped = backend.transform(voices)
    chosen = backend
    voice_ids = np.arange(len(voices)).astype(str).astype(object)

    def ratios(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        codes = np.arange(len(vectors) * len(voices), dtype=np.int32)
        trials = Trials(
            model_ids=np.arange(len(vectors)).astype(str).astype(object), segment_ids=voice_ids,
            models=codes // len(voices), segments=codes % len(voices),
        )  # fmt: skip
        sessions = Sessions(chosen.transform(vectors), np.arange(len(vectors)))
        return chosen.score_vectors(sessions, mapped, trials).values.reshape(len(vectors), -1)

    return ratios


def _allowed(
    females: NDArray[np.bool_], sex: str | None, rule: str, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which voices may replace the speaker's."""
    if rule == "any":
        return np.ones(len(females), bool)
    is_female = sex == "f"
    wanted = {"same": is_female, "other": not is_female}.get(rule)
    if wanted is None:
        wanted = bool(generator.integers(2))
    matches: NDArray[np.bool_] = females == wanted
    return matches


def _means(
    embeddings: Embeddings, groups: NDArray[np.object_]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the sorted names of groups and the mean of the vectors of each, summed in the order of the ids."""
    rows: dict[str, list[int]] = {name: [] for name in sorted(set(groups.tolist()))}
    for row in np.argsort(embeddings.ids.astype(str), kind="stable"):
        rows[groups[row]].append(row)
    vectors = np.asarray(embeddings.vectors)
    means = []
    for rows_of_group in rows.values():
        means.append(np.asarray(vectors[rows_of_group], np.float64).mean(axis=0))
    return list(rows), np.array(means)
