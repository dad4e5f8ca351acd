"""A trained chain: vectors in, scores out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, check_norms, row_norms
from evaluation.score_maps import Affine, Moments, apply_affine, cohort_moments, normalise
from evaluation.trials import Scores, Trials, factorise
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import fingerprint
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.backend.chain import Chain, format_chain, step_of
from spkver.backend.sessions import Sessions
from spkver.backend.transforms import Map, apply_maps

logger = logging.getLogger(__name__)

_PAIRS = 1 << 22  # scores with a cohort that are held at once


@dataclass(frozen=True, eq=False, repr=False)
class Backend:
    """A trained chain.

    Attributes
    ----------
    chain : tuple of ChosenStep
    maps : tuple of AffineMap, LengthNorm or Projection
        What is done to each vector.
    model : object
        What the scorer has learnt.
    cohort : ndarray of float64 of shape (K, R), optional
        Mapped vectors that scores are normalised by.
    calibration : Affine, optional
    facts : mapping
        `dimension` of the vectors that enter; `vectors` and `speakers`, how many it was trained on; `made_from`, the
        digest of these, of the chain and of the seed.
    heard : ndarray of uint64 of shape (S,)
        Digests of the training speakers, see `speaker_digests`; empty where they are not known.
    """

    chain: Chain
    maps: tuple[Map, ...]
    model: Any
    cohort: NDArray[np.float64] | None
    calibration: Affine | None
    facts: dict[str, Any]
    heard: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __repr__(self) -> str:
        return f"Backend({format_chain(self.chain)}, {self.facts['dimension']} dimensions, {self.origin})"

    @property
    def origin(self) -> str:
        """What it was made of, in words."""
        if not self.facts["vectors"]:
            return "models of Kaldi"
        return f"trained on {self.facts['vectors']} vectors of {self.facts['speakers']} speakers"

    @property
    def adapts_to_list(self) -> str:
        """What of a list of trials a score depends on, so that it belongs with no score of another list; or nothing."""
        scorer = step_of(self.chain, "scorer")
        return scorer.step.scorer.of_list if scorer is not None and scorer.step.scorer is not None else ""

    def transform(self, vectors: NDArray[np.floating], *, names: NDArray | None = None) -> NDArray[np.float64]:
        """Return vectors (n, R) as the scorer sees them, shape (n, K).

        Parameters
        ----------
        vectors : ndarray of shape (n, R)
        names : ndarray of str of shape (n,), optional
            For errors; row numbers by default.

        Raises
        ------
        DataError
            If they have other dimensions, one is not finite or 0, or becomes 0 before a length norm.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.facts["dimension"]:
            text = f"expected vectors of {self.facts['dimension']} dimensions, got shape {vectors.shape}"
            raise DataError(text, remedy="use the extractor that the backend was trained with")
        names = np.arange(len(vectors)).astype(object) if names is None else names
        check_norms(row_norms(vectors), names)
        return apply_maps(self.maps, vectors, names=names)

    @one_blas_thread()
    def score(self, enrol: Embeddings, test: Embeddings, trials: Trials) -> Scores:
        """Return the score of each trial of a list.

        Parameters
        ----------
        enrol, test : Embeddings
            Of the enrolled and of the tested utterances.
        trials : Trials
            A model is an enrolled speaker, with all its vectors, or else the id of one enrolled utterance; a segment is
            the id of a tested utterance.

        Returns
        -------
        Scores
            In the order of the trials.

        Raises
        ------
        DataError
            If a model or a segment has no vector, or as `transform`.
        """
        used, models = np.unique(trials.models, return_inverse=True)
        tested, segments = np.unique(trials.segments, return_inverse=True)
        model_ids, segment_ids = trials.model_ids[used], trials.segment_ids[tested]
        problems = Problems()
        rows, codes = _sessions_of(model_ids, enrol, problems)
        test_rows = _rows_of(segment_ids, test, problems)
        problems.raise_if_any()
        with errors_of(enrol):
            sessions = Sessions(self.transform(enrol.vectors[rows], names=enrol.ids[rows]), codes)
        with errors_of(test):
            alone = self.adapts_to_list == "models"  # then no bit of a score may depend on what else is tested
            parts = np.split(test_rows, len(test_rows)) if alone else [test_rows]
            tests = np.concatenate([self.transform(test.vectors[rows], names=test.ids[rows]) for rows in parts])
        listed = Trials.trusted(
            model_ids=model_ids, segment_ids=segment_ids, models=models.astype(np.int32),
            segments=segments.astype(np.int32),
        )  # fmt: skip
        values = self.score_vectors(sessions, tests, listed).values
        return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)

    def score_vectors(self, sessions: Sessions, tests: NDArray[np.float64], trials: Trials) -> Scores:
        """Return scores of mapped vectors; the codes of the trials are those of the models and the rows of tests."""
        scorer = step_of(self.chain, "scorer")
        if scorer is not None and scorer.step.scorer is not None and scorer.step.scorer.needs_direction:
            check_norms(row_norms(sessions.means), trials.model_ids, what="mapped model")
            check_norms(row_norms(tests), trials.segment_ids, what="mapped vector")
        values = self._raw(sessions, tests, trials.models, trials.segments)
        scores = Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)
        if self.cohort is not None:
            norm = step_of(self.chain, "norm")
            assert norm is not None
            top = norm.values["top"]
            models = self._moments_of_models(sessions, trials.model_ids, top)
            scores = normalise(scores, models=models, segments=self._moments_of_tests(tests, trials.segment_ids, top))
        if self.calibration is not None:
            scores = replace(scores, values=apply_affine(self.calibration, scores.values))
        return scores

    def _raw(self, sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray) -> NDArray[np.float64]:
        chosen = step_of(self.chain, "scorer")
        assert chosen is not None
        assert chosen.step.scorer is not None
        return chosen.step.scorer.score(self.model, sessions, tests, models, segments, chosen.values)

    def _moments_of_models(self, sessions: Sessions, ids: NDArray, top: int | None) -> Moments:
        """Mean and deviation of the scores of each model with the cohort."""
        assert self.cohort is not None
        moments = []
        for start, stop in chunk_bounds(len(ids), max(1, _PAIRS // len(self.cohort))):
            rows = np.flatnonzero((sessions.models >= start) & (sessions.models < stop))
            some = Sessions(sessions.vectors[rows], sessions.models[rows] - start)
            pairs = np.divmod(np.arange((stop - start) * len(self.cohort)), len(self.cohort))
            scores = self._raw(some, self.cohort, *pairs).reshape(stop - start, -1)
            moments.append(cohort_moments(scores, ids[start:stop], top=top))
        return _joined(moments)

    def _moments_of_tests(self, tests: NDArray, ids: NDArray, top: int | None) -> Moments:
        """The same of each tested vector."""
        assert self.cohort is not None
        cohort = Sessions(self.cohort, np.arange(len(self.cohort)))
        moments = []
        for start, stop in chunk_bounds(len(ids), max(1, _PAIRS // len(self.cohort))):
            pairs = np.divmod(np.arange((stop - start) * len(self.cohort)), stop - start)
            scores = self._raw(cohort, tests[start:stop], *pairs).reshape(-1, stop - start)
            moments.append(cohort_moments(scores.T, ids[start:stop], top=top))
        return _joined(moments)


def speaker_digests(speakers: Iterable[str]) -> NDArray[np.uint64]:
    """Return 64 bits of the SHA-256 of each speaker's id, sorted by id: what was trained need not hold names."""
    return np.array([int(fingerprint(name)[:16], 16) for name in sorted(set(speakers))], np.uint64)


def warn_of_trained(heard: NDArray[np.uint64], speakers: Iterable[str]) -> None:
    """Warn if speakers of trials are among those that a backend or an attacker was trained on, by their digests."""
    names = sorted(set(speakers))
    if known := [names[place] for place in np.flatnonzero(np.isin(speaker_digests(names), heard))]:
        text = "%d of %d speakers of the trials were trained on (%s): errors are too few, unless the ids name others; "
        text += "train on others"
        logger.warning(text, len(known), len(names), few(known))


def _joined(moments: list[Moments]) -> Moments:
    return np.concatenate([mean for mean, _ in moments]), np.concatenate([deviation for _, deviation in moments])


def _sessions_of(model_ids: NDArray, enrol: Embeddings, problems: Problems) -> tuple[NDArray, NDArray]:
    """Rows of the enrolled vectors of each model, and the model's code of each row."""
    names, codes = factorise(enrol.speakers)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    speakers = {name: order[starts[place] : starts[place + 1]] for place, name in enumerate(names.tolist())}
    utterances = {name: np.array([row]) for row, name in enumerate(enrol.ids.tolist())}
    rows = [speakers[name] if name in speakers else utterances.get(name) for name in model_ids.tolist()]
    absent = [name for name, of_model in zip(model_ids, rows, strict=True) if of_model is None]
    _complain("models", absent, enrol, problems)
    known = [of_model for of_model in rows if of_model is not None]
    counts = [len(of_model) for of_model in known]
    return np.concatenate([np.zeros(0, np.int64), *known]), np.repeat(np.arange(len(known)), counts)


def _rows_of(segment_ids: NDArray, test: Embeddings, problems: Problems) -> NDArray[np.int64]:
    rows = {name: row for row, name in enumerate(test.ids.tolist())}
    _complain("segments", [name for name in segment_ids.tolist() if name not in rows], test, problems)
    return np.array([rows.get(name, 0) for name in segment_ids.tolist()], np.int64)


def _complain(what: str, absent: list[str], within: Embeddings, problems: Problems) -> None:
    if absent:
        text, file = f"{len(absent)} {what} without a vector: {few(absent)}", within.source or None
        problems.add(text, file=file, remedy="extract them, or leave their trials out")


@contextmanager
def errors_of(embeddings: Embeddings) -> Iterator[None]:
    """Put the file of vectors before errors that have none."""
    try:
        yield
    except ConfigError:
        raise
    except DataError as error:
        if error.file is not None or not embeddings.source:
            raise
        raise DataError(error.text, file=embeddings.source, remedy=error.remedy) from error
