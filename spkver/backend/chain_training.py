"""Training of a chain: each step on the vectors as the steps before it leave them; calibration on held-out speakers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.score_maps import Affine, train_affine
from evaluation.trials import Trials, factorise
from spkbase.errors import DataError
from spkbase.files import fingerprint
from spkbase.work import one_blas_thread
from spkver.backend.chain import Chain, ChosenStep, Facts, Spec, check_chain, parse_chain, plain_chain, step_of
from spkver.backend.chain_steps import Training
from spkver.backend.moments import class_means
from spkver.backend.sessions import Sessions
from spkver.backend.trained import Backend, errors_of, speaker_digests
from spkver.backend.transforms import Map, apply_maps

_ENROLLED, _TESTED = 300, 3  # speakers of a fold, and tests of a speaker, that calibration takes at most


@one_blas_thread()
def train_chain(embeddings: Embeddings, spec: Spec, *, adapt: Embeddings | None = None, seed: int = 0) -> Backend:
    """Train a chain on vectors with speakers.

    Parameters
    ----------
    embeddings : Embeddings
        They are held in float64.
    spec : str, sequence, or tuple of ChosenStep
        The chain, see `spkver.backend.parse_chain`.
    adapt : Embeddings, optional
        Vectors of the domain that will be tested; their speakers are not used.
    seed : int
        Deals the speakers for calibration.

    Returns
    -------
    Backend

    Raises
    ------
    ConfigError
        If the chain is none, or these vectors cannot train it; before anything is trained.
    DataError
        If a vector is not finite or 0, dimensions differ, or a step cannot be trained.

    Examples
    --------
    >>> import numpy as np
    >>> from evaluation.embeddings import Embeddings
    >>> from evaluation.trials import Trials
    >>> draw = np.random.default_rng(0)
    >>> speakers = [f"s{number // 5}" for number in range(50)]
    >>> vectors = np.repeat(draw.normal(size=(10, 4)), 5, axis=0) + 0.3 * draw.normal(size=(50, 4))
    >>> training = Embeddings([f"u{number}" for number in range(50)], speakers, vectors)
    >>> backend = train_chain(training, "centre,whiten,length,lda:3,cosine")
    >>> backend
    Backend([centre, whiten, length, lda: 3, cosine], 4 dimensions, trained on 50 vectors of 10 speakers)
    >>> backend.score(training, training, Trials.from_ids(["s0", "s0"], ["u1", "u17"])).values.round(2)
    array([ 0.9 , -0.96])
    """
    chain = parse_chain(spec)
    embeddings.norms()
    dimension = embeddings.vectors.shape[1]
    if adapt is not None:
        adapt.norms()
        if adapt.vectors.shape[1] != dimension:
            text = f"expected vectors to adapt to of {dimension} dimensions, got {adapt.vectors.shape[1]}"
            raise DataError(text, file=adapt.source or None, remedy="use one extractor for both")
    names, codes = factorise(embeddings.speakers)
    facts = Facts.of(dimension, codes, adapt is not None)
    check_chain(chain, facts)
    calibrate = step_of(chain, "calibration")
    if calibrate is not None:
        left = facts.n_speakers - -(-facts.n_speakers // calibrate.values["folds"])
        check_chain(chain[:-1], replace(facts, n_speakers=left))
    training = Training(
        np.asarray(embeddings.vectors, np.float64),
        codes,
        None if adapt is None else np.asarray(adapt.vectors, np.float64),
    )
    digest = fingerprint(
        plain_chain(chain), embeddings.ids, embeddings.speakers, np.asarray(embeddings.vectors),
        None if adapt is None else np.asarray(adapt.vectors), seed,
    )  # fmt: skip
    made = {"dimension": dimension, "vectors": len(embeddings), "speakers": len(names), "made_from": digest}
    with errors_of(embeddings):
        backend = replace(_trained(chain, training, made), heard=speaker_digests(names))
        if calibrate is None:
            return backend
        return replace(backend, calibration=_calibration(chain, calibrate, training, seed))


def _trained(chain: Chain, training: Training, facts: dict[str, Any]) -> Backend:
    """Train all but the calibration."""
    maps: list[Map] = []
    model, cohort = None, None
    for number, chosen in enumerate(chain, 1):
        with _named(number, chosen):
            if chosen.step.role == "map":
                assert chosen.step.fit is not None
                found = chosen.step.fit(training, chosen.values)
                training = _mapped(training, found, training_only=chosen.step.training_only)
                maps += () if chosen.step.training_only else found
            elif chosen.step.role == "scorer":
                assert chosen.step.fit is not None
                model = chosen.step.fit(training, chosen.values)
            elif chosen.step.role == "norm":
                cohort = _cohort(training, chosen.values["cohort"])
    return Backend(chain, tuple(maps), model, cohort, None, facts)


def _cohort(training: Training, which: str) -> NDArray[np.float64]:
    if which == "adapt" and training.adapt is not None:
        return training.adapt
    return class_means(training.vectors, training.codes) if which == "speakers" else training.vectors


def _mapped(training: Training, maps: tuple[Map, ...], *, training_only: bool) -> Training:
    adapt = training.adapt
    if adapt is not None and not training_only:
        adapt = apply_maps(maps, adapt)
    return Training(apply_maps(maps, training.vectors), training.codes, adapt)


@contextmanager
def _named(number: int, chosen: ChosenStep) -> Iterator[None]:
    """Put the step before errors."""
    try:
        yield
    except DataError as error:
        text = f"step {number} of the chain, {chosen.name}: {error.text}"
        raise type(error)(text, file=error.file, line=error.line, remedy=error.remedy) from error


def _calibration(chain: Chain, calibrate: ChosenStep, training: Training, seed: int) -> Affine:
    """Train the calibration on trials of speakers that the rest of the chain was not trained on.

    Speakers are dealt into folds. For each fold the chain is trained on the others; of at most 300 of its speakers with
    enough vectors, the first (or first few) are a model and the next three at most are tested, all models against all.
    """
    n_speakers, n_folds = int(training.codes.max()) + 1, calibrate.values["folds"]
    fold = np.empty(n_speakers, np.int64)
    fold[np.random.default_rng(seed).permutation(n_speakers)] = np.arange(n_speakers) % n_folds
    target, nontarget = [], []
    for number in range(n_folds):
        held = fold[training.codes] == number
        others = np.unique(training.codes[~held], return_inverse=True)[1]
        facts = {"dimension": training.vectors.shape[1], "vectors": len(others), "speakers": int(others.max()) + 1}
        part = Training(training.vectors[~held], others, training.adapt)
        backend = _trained(chain[:-1], part, facts)
        scores, is_target = _scores_of_held(
            backend, training.vectors[held], training.codes[held], calibrate.values["enrolled"]
        )
        target.append(scores[is_target])
        nontarget.append(scores[~is_target])
    values = calibrate.values
    try:
        return train_affine(
            np.concatenate(target), np.concatenate(nontarget), prior=values["prior"], ridge=values["ridge"]
        )
    except DataError as error:
        text = f"calibrate: {error.text}"
        raise DataError(text, remedy=f"{error.remedy}, such as 'calibrate: {{ridge: 0.01}}'") from error


def _scores_of_held(
    backend: Backend, vectors: NDArray[np.float64], codes: NDArray, n_enrolled: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of all trials of a fold, see `_calibration`, and which are of one speaker."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) > 0])
    counts = np.diff(np.r_[starts, len(order)])
    chosen = np.flatnonzero(counts > n_enrolled)[:_ENROLLED]
    if not len(chosen):
        return np.zeros(0), np.zeros(0, bool)
    enrolled = order[(starts[chosen, None] + np.arange(n_enrolled)).ravel()]
    firsts = starts[chosen] + n_enrolled
    ends = np.minimum(starts[chosen] + counts[chosen], firsts + _TESTED)
    tested = np.concatenate([order[first:end] for first, end in zip(firsts, ends, strict=True)])
    sessions = Sessions(backend.transform(vectors[enrolled]), np.arange(len(enrolled)) // n_enrolled)
    pairs = np.divmod(np.arange(len(chosen) * len(tested)), len(tested))
    ids = [np.array([str(number) for number in range(size)], object) for size in (len(chosen), len(tested))]
    trials = Trials(ids[0], ids[1], *pairs)
    scores = backend.score_vectors(sessions, backend.transform(vectors[tested]), trials).values
    return scores, codes[enrolled[::n_enrolled]][pairs[0]] == codes[tested][pairs[1]]
