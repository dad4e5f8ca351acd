"""Backends: a chain of steps as data, its training, its scores and its file.

Three ways to write the same chain:

* short: ``centre,whiten,length,lda:150,length,plda:100``; what follows the colon is the step's first parameter;
* YAML: ``[centre, whiten, length, lda: 150, length, plda: {rank: 100}]``;
* Python: ``["centre", "whiten", "length", {"lda": 150}, "length", {"plda": {"rank": 100}}]``.

Maps of vectors come first, then one scorer (cosine if none is named), then normalisation by a cohort, then calibration.
`spkver.backend.STEPS` is the table of steps. Each is trained on the output of the steps before it; calibration is
trained on held-out speakers.

A file is HDF5, whole or absent, and holds only arrays and JSON. Attributes: the kind of file, the chain with all its
values, and the facts of the training with the digest of its inputs. Datasets: ``map<i>.offset``, ``map<i>.matrix`` or
``map<i>.directions`` of map i, ``model.<field>`` of the scorer, ``cohort``, ``calibration``, and ``heard``, the digests
of the training speakers.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.calibration import Affine, apply_affine, cohort_moments, normalise, train_affine
from evaluation.embeddings import (
    Embeddings,
    check_embeddings,
    check_norms,
    row_norms,
    warn_of_copies,
    warn_of_enrolled,
)
from evaluation.trials import Scores, Trials, factorise, vectors_of, warn_of_alike
from spkbase.arrays import Floats
from spkbase.configuration import convert
from spkbase.errors import ConfigError, DataError, Problems, counted, errors_of, few
from spkbase.files import fingerprint, load_yaml, read_yaml_text
from spkbase.hdf5 import open_file, read_arrays, write_arrays
from spkbase.progress import progress, verbosely
from spkbase.work import chunk_bounds, one_blas_thread
from spkver.backend.kaldi import KaldiPlda, VbxTransform, plda_from_kaldi
from spkver.backend.nap import Projection
from spkver.backend.plda import Sessions
from spkver.backend.scoring import numbered_ids, scored
from spkver.backend.steps import ALIASES, NEEDS, STEPS, Need, Parameter, Step, Training
from spkver.backend.transforms import (
    AffineMap,
    LengthNorm,
    Map,
    apply_maps,
    class_means,
    dimension_after,
)
from spkver.vectors import Supervectors

logger = logging.getLogger(__name__)

_ROLES = {
    "map": "a map of vectors",
    "scorer": "a scorer",
    "norm": "a normalisation",
    "calibration": "a calibration",
}
_REMEDY = "such as centre,whiten,length,lda:150,length,plda:100"

Chain = tuple["ChosenStep", ...]
Spec = str | Sequence[str | Mapping[str, Any]] | Chain

_PAIRS = 1 << 22  # number of cohort scores held at once

_ENROLLED = 300  # largest number of speakers of a fold used for calibration
_TESTED = 3  # largest number of tests of a speaker used for calibration

_KIND = "spkver backend"
_VERSION = 1
_AGAIN = "write it again with spkver backend train"
_MAPS: dict[str, Any] = {kind.__name__: kind for kind in (AffineMap, LengthNorm, Projection)}


@dataclass(frozen=True)
class ChosenStep:
    """A step of a chain.

    Attributes
    ----------
    step : Step
        Its row in the table.
    values : mapping of str to object
        Value of each of its parameters.
    """

    step: Step
    values: Mapping[str, Any]

    def __reduce__(self) -> Any:
        # rows hold functions that cannot be pickled
        return _chosen, ({self.name: dict(self.values)},)

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.step.name

    @property
    def needs(self) -> tuple[Need, ...]:
        """Requirements on the training vectors."""
        uses_adapt = "adapt" in (self.values.get("on"), self.values.get("cohort"))
        if uses_adapt or self.values.get("adapt", "none") != "none":
            return (*self.step.needs, "adapt")
        return self.step.needs


def read_chain(text: str | Path) -> Chain:
    """Return the chain that a text describes, or the YAML file that it names (``*.yaml``, ``*.yml``).

    Raises
    ------
    ConfigError
        As in `parse_chain`, with the file.
    """
    if not str(text).endswith((".yaml", ".yml")):
        return parse_chain(str(text))
    try:
        return parse_chain(load_yaml(read_yaml_text(text))[0])
    except ConfigError as error:
        raise ConfigError(error.text, file=text, remedy=error.remedy) from error


def parse_chain(spec: Spec) -> Chain:
    """Return the steps of a chain, each with the values of all its parameters.

    Parameters
    ----------
    spec : str, or sequence of str and mappings
        See the module.

    Returns
    -------
    tuple of ChosenStep
        The steps, with the scorer cosine if none was named.

    Raises
    ------
    ConfigError
        With all problems at once: unknown steps and parameters, values out of range, an impossible order.

    Examples
    --------
    >>> format_chain(parse_chain("centre,length,lda:150,snorm"))
    '[centre, length, lda: 150, cosine, snorm]'
    >>> parse_chain("centre,whitten")
    Traceback (most recent call last):
      ...
    spkbase.errors.ConfigError: step 2 of the chain: there is no step 'whitten': did you mean whiten?
    """
    problems = Problems()
    chain: list[ChosenStep] = []
    for number, item in enumerate(_items(spec), 1):
        with problems.noted(f"step {number} of the chain: "):
            if not isinstance(item, ChosenStep):
                item = _chosen(item)
            chain.append(item)
    if not problems.errors:
        _check_order(chain, problems)
    problems.raise_if_any(ConfigError)
    if not any(chosen.step.role == "scorer" for chosen in chain):
        chain.insert(sum(chosen.step.role == "map" for chosen in chain), _chosen("cosine"))
    return tuple(chain)


def format_chain(chain: Chain) -> str:
    """Return the text of a chain in YAML, without the values that parameters have by default."""
    texts = []
    for chosen in chain:
        values = {}
        for parameter in chosen.step.parameters:
            value = chosen.values[parameter.name]
            if value != parameter.default:
                values[parameter.name] = str(value)
                if isinstance(value, bool):
                    values[parameter.name] = str(value).lower()
        mapping = ", ".join(f"{key}: {text}" for key, text in values.items())
        if not values:
            texts.append(chosen.name)
        elif list(values) == [chosen.step.parameters[0].name]:
            texts.append(f"{chosen.name}: {values[chosen.step.parameters[0].name]}")
        else:
            texts.append(f"{chosen.name}: {{{mapping}}}")
    return f"[{', '.join(texts)}]"


def plain_chain(chain: Chain) -> list[Any]:
    """Return a chain as lists, mappings, strings and numbers, with all values, in the form of files."""
    return [{chosen.name: dict(chosen.values)} for chosen in chain]


def step_of(chain: Chain, role: str) -> ChosenStep | None:
    """Return the step with a role other than "map"; None if there is none."""
    return next((chosen for chosen in chain if chosen.step.role == role), None)


def check_chain(
    chain: Chain, dimension: int, counts: Sequence[int] | NDArray[Any], *, is_adapted: bool = False
) -> None:
    """Raise ConfigError, with all problems, if vectors cannot train a chain.

    Parameters
    ----------
    chain : tuple of ChosenStep
    dimension : int
        Dimension of the vectors.
    counts : sequence of int
        Vectors of each speaker.
    is_adapted : bool
        Whether there are vectors to adapt to.
    """
    problems = Problems()
    n_speakers = len(counts)
    most = max(counts)
    lacks: dict[Need, str] = {}
    if n_speakers < 2:
        lacks["speakers"] = f"got {n_speakers}"
    if most < 2:
        lacks["sessions"] = "each has one: name the speakers of the vectors"
    if not is_adapted:
        lacks["adapt"] = "none were given"
    for chosen in chain:
        missing = [need for need in chosen.needs if need in lacks]
        for need in missing:
            problems.add(f"{chosen.name} needs {NEEDS[need]}, {lacks[need]}")
        if chosen.step.limit and not missing:
            dimension = _check_limit(chosen, dimension, n_speakers, problems)
    if is_adapted and not any("adapt" in chosen.needs for chosen in chain):
        ways = "add coral, 'centre: adapt' or 'plda: {adapt: kaldi}'"
        problems.add("there are vectors to adapt to, but no step uses them", remedy=ways)
    calibrate = step_of(chain, "calibration")
    if calibrate is not None:
        _check_folds(calibrate.values, n_speakers, most, problems)
    problems.raise_if_any(ConfigError)


@dataclass(frozen=True, eq=False, repr=False)
class Backend:
    """A trained chain.

    Attributes
    ----------
    chain : tuple of ChosenStep
    maps : tuple of AffineMap, LengthNorm or Projection
        The maps that are applied to each vector.
    model : object
        The trained scorer.
    cohort : ndarray of float64 of shape (K, R), optional
        Mapped vectors of the cohort by which scores are normalised.
    calibration : Affine, optional
    facts : mapping
        `dimension` of the input vectors; `vectors` and `speakers`, their numbers in training; `made_from`, the digest
        of these vectors, the chain and the seed.
    heard : ndarray of uint64 of shape (S,)
        Digests of the training speakers, see `speaker_digests`; empty if they are unknown.
    """

    chain: Chain
    maps: tuple[Map, ...]
    model: Any
    cohort: Floats | None
    calibration: Affine | None
    facts: dict[str, Any]
    heard: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __repr__(self) -> str:
        return f"Backend({format_chain(self.chain)}, {self.facts['dimension']} dimensions, {self.origin})"

    @property
    def scorer(self) -> ChosenStep:
        """The step of the chain that scores."""
        scorer = step_of(self.chain, "scorer")
        assert scorer is not None
        return scorer

    @property
    def origin(self) -> str:
        """A description of its training data."""
        if not self.facts["vectors"]:
            return "models of Kaldi"
        return f"trained on {self.facts['vectors']} vectors of {self.facts['speakers']} speakers"

    @property
    def adapts_to_list(self) -> str:
        """The part of the trial list that a score depends on, see `Step.of_list`.

        Scores from different lists must not be mixed.
        """
        return self.scorer.step.of_list

    def transform(
        self, vectors: NDArray[np.floating], *, names: NDArray[Any] | None = None
    ) -> Floats:
        """Return vectors (n, R) after the maps, as input of the scorer, shape (n, K).

        Parameters
        ----------
        vectors : ndarray of shape (n, R)
        names : ndarray of str of shape (n,), optional
            For errors; row numbers by default.

        Raises
        ------
        DataError
            If vectors have other dimensions, or one is not finite, is 0, or becomes 0 before a length norm.
        """
        if isinstance(vectors, Embeddings):
            raise DataError(
                "expected an array of vectors, got Embeddings", remedy="give their vectors"
            )
        vectors = vectors_of(vectors)
        if vectors.shape[1] != self.facts["dimension"]:
            text = f"expected vectors of {self.facts['dimension']} dimensions, got shape {vectors.shape}"
            raise DataError(text, remedy="use the extractor that the backend was trained with")
        if names is None:
            names = np.arange(len(vectors)).astype(object)
        check_norms(row_norms(vectors), names)
        return apply_maps(self.maps, vectors, names=names)

    @overload
    def score(
        self,
        enrol: Embeddings | Supervectors,
        test: Embeddings | Supervectors,
        trials: Trials,
        *,
        warn: bool = True,
    ) -> Scores: ...

    @overload
    def score(
        self, enrol: ArrayLike, test: ArrayLike, trials: None = None, *, warn: bool = True
    ) -> Floats: ...

    @one_blas_thread()
    def score(
        self, enrol: Any, test: Any, trials: Trials | None = None, *, warn: bool = True
    ) -> Scores | Floats:
        """Return the score of each trial of a list, or of all pairs of vectors of two arrays.

        Parameters
        ----------
        enrol, test : Embeddings, Supervectors or IVectors; or array_like of shape (M, R) and (T, R)
            Vectors of the enrolled and of the tested utterances. A row of an array is a model, or a segment.
        trials : Trials, optional
            A model is an enrolled speaker, with all its vectors, or else the id of one enrolled utterance; a segment is
            the id of a tested utterance. Not with arrays.
        warn : bool
            Whether to warn of trials whose model contains the tested recording, and of speakers in training.

        Returns
        -------
        Scores, or ndarray of shape (M, T)
            In the order of the trials, or of the rows.

        Raises
        ------
        DataError
            If a model or a segment has no vector, or as in `transform`.
        """
        enrol = _as_embeddings(enrol)
        test = _as_embeddings(test)
        if trials is None:
            return self._score_all(enrol, test)
        check_embeddings(enrol, test)
        used, models = np.unique(trials.models, return_inverse=True)
        tested, segments = np.unique(trials.segments, return_inverse=True)
        model_ids = trials.model_ids[used]
        segment_ids = trials.segment_ids[tested]
        rows_of_models = {name: [row] for row, name in enumerate(enrol.ids.tolist())}
        rows_of_speakers: dict[str, list[int]] = {}
        for row, speaker in enumerate(enrol.speakers.tolist()):
            rows_of_speakers.setdefault(speaker, []).append(row)
        rows_of_models |= rows_of_speakers
        row_of = {name: row for row, name in enumerate(test.ids.tolist())}
        problems = Problems()
        remedy = "extract them, or leave their trials out"
        whose = f"{remedy}; or say whose the enrolled utterances are, where models are speakers (utt2spk, spk2utt)"
        for kind, ids, known, source, advice in (
            ("model", model_ids, rows_of_models, enrol.source, whose),
            ("segment", segment_ids, row_of, test.source, remedy),
        ):
            absent = [name for name in ids.tolist() if name not in known]
            if absent:
                text = f"{counted(len(absent), kind)} without a vector: {few(absent)}"
                problems.add(text, file=source or None, remedy=advice)
        problems.raise_if_any()
        enrolled = [rows_of_models[name] for name in model_ids.tolist()]
        rows = np.concatenate([np.zeros(0, np.int64), *enrolled])
        codes = np.repeat(np.arange(len(enrolled)), [*map(len, enrolled)])
        test_rows = np.array([row_of[name] for name in segment_ids.tolist()], np.int64)
        if warn:
            warn_of_enrolled(enrol, test, trials)
            warn_of_trained(self.heard, [*enrol.speakers[rows], *test.speakers[test_rows]])
        with errors_of(enrol.source):
            mapped = self.transform(enrol.vectors[rows], names=enrol.ids[rows])
            sessions = Sessions(mapped, codes)
        with errors_of(test.source):
            parts = [test_rows]
            if self.adapts_to_list == "models":
                # scores must not depend on the other tests, to the bit
                parts = np.split(test_rows, len(test_rows))
            tests = np.concatenate(
                [self.transform(test.vectors[rows], names=test.ids[rows]) for rows in parts]
            )
        listed = Trials(model_ids, segment_ids, models.astype(np.int32), segments.astype(np.int32))
        return scored(trials, self.score_vectors(sessions, tests, listed).values)

    def _score_all(self, enrol: Any, test: Any) -> Floats:
        """Return the scores (M, T) of all pairs of rows of two arrays."""
        if isinstance(enrol, Embeddings) or isinstance(test, Embeddings):
            text = "expected trials with Embeddings; without trials, two arrays of vectors"
            raise DataError(text, remedy="give trials, or the .vectors of both")
        enrolled = Embeddings.from_arrays(enrol)
        tested = Embeddings.from_arrays(test)
        models, segments = np.indices((len(enrolled), len(tested)), np.int32)
        trials = Trials(enrolled.ids, tested.ids, models.ravel(), segments.ravel())
        return self.score(enrolled, tested, trials, warn=False).values.reshape(models.shape)

    def score_vectors(self, sessions: Sessions, tests: Floats, trials: Trials) -> Scores:
        """Return the scores of mapped vectors; trials hold the codes of models and the rows of tests."""
        if self.scorer.name == "cosine":
            size = row_norms(sessions.vectors).max(initial=0.0)
            check_norms(row_norms(sessions.means), trials.model_ids, kind="mapped model", size=size)
            check_norms(row_norms(tests), trials.segment_ids, kind="mapped vector")
        scores = scored(trials, self._raw(sessions, tests, trials.models, trials.segments))
        norm = step_of(self.chain, "norm")
        if self.cohort is not None and norm is not None:
            scores = self._normalised(scores, sessions, tests, self.cohort, norm.values["top"])
        if self.calibration is not None:
            scores = replace(scores, values=apply_affine(self.calibration, scores.values))
        return scores

    def _normalised(
        self, scores: Scores, sessions: Sessions, tests: Floats, cohort: Floats, top: int | None
    ) -> Scores:
        """Normalise scores by those of their models, and of their segments, with the cohort."""
        size = max(1, _PAIRS // len(cohort))
        of_models = []
        for start, stop in chunk_bounds(len(scores.model_ids), size):
            rows = np.flatnonzero((sessions.models >= start) & (sessions.models < stop))
            some = Sessions(sessions.vectors[rows], sessions.models[rows] - start)
            cells = self._all(some, cohort)
            of_models.append(cohort_moments(cells, scores.model_ids[start:stop], top=top))
        members = Sessions(cohort, np.arange(len(cohort)))
        of_segments = []
        for start, stop in chunk_bounds(len(tests), size):
            cells = self._all(members, tests[start:stop]).T
            of_segments.append(cohort_moments(cells, scores.segment_ids[start:stop], top=top))
        means, deviations = np.hstack(of_models)
        segment_means, segment_deviations = np.hstack(of_segments)
        return normalise(
            scores, models=(means, deviations), segments=(segment_means, segment_deviations)
        )

    def _raw(
        self, sessions: Sessions, tests: NDArray[Any], models: NDArray[Any], segments: NDArray[Any]
    ) -> Floats:
        assert self.scorer.step.score is not None
        return self.scorer.step.score(
            self.model, self.scorer.values, sessions, tests, models, segments
        )

    def _all(self, sessions: Sessions, tests: Any) -> Floats:
        """Return the scores (models, tests) of all models with all tests."""
        n_models = len(sessions.counts)
        n_tests = len(tests)
        models, segments = np.divmod(np.arange(n_models * n_tests), n_tests)
        return self._raw(sessions, tests, models, segments).reshape(n_models, n_tests)


def speaker_digests(speakers: Iterable[str]) -> NDArray[np.uint64]:
    """Return 64 bits of the SHA-256 of each speaker's id, sorted by id, so that a trained backend needs no names."""
    return np.array([int(fingerprint(name)[:16], 16) for name in sorted(set(speakers))], np.uint64)


def warn_of_trained(digests: NDArray[np.uint64], speakers: Iterable[str]) -> None:
    """Warn if, by their digests, speakers of the trials were in the training of a backend or an attacker."""
    names = sorted(set(speakers))
    is_trained = np.isin(speaker_digests(names), digests)
    known = [names[row] for row in np.flatnonzero(is_trained)]
    if known:
        text = "%d of %d speakers of the trials were trained on (%s): error rates are too low, "
        text += "unless the ids name others; train on others"
        logger.warning(text, len(known), len(names), few(known))


@verbosely
@one_blas_thread()
def train_chain(
    embeddings: Any,
    spec: Spec,
    *,
    speakers: Any = None,
    adapt: Any = None,
    seed: int = 0,
    verbose: bool = True,
    warn: bool = True,
) -> Backend:
    """Train a chain on vectors with speakers.

    Parameters
    ----------
    embeddings : Embeddings, Supervectors, IVectors, or array_like of shape (n, D)
        Vectors, which are converted to float64. The models of supervectors and i-vectors count as speakers.
    spec : str, sequence, or tuple of ChosenStep
        The chain, see `spkver.backend.parse_chain`.
    speakers : array_like of str or int of shape (n,), optional
        Speaker of each vector of an array.
    adapt : Embeddings, or array_like of shape (m, D), optional
        Vectors of the domain that will be tested; their speakers are not used.
    seed : int
        Seed of the assignment of speakers to folds for calibration.
    verbose : bool
        Whether to show progress.
    warn : bool
        Whether to warn of vectors that occur twice, in training or in both sets.

    Returns
    -------
    Backend

    Raises
    ------
    ConfigError
        If the chain is not valid, or these vectors cannot train it; before anything is trained.
    DataError
        If a vector is not finite or 0, dimensions differ, or a step cannot be trained.

    Examples
    --------
    >>> import numpy as np
    >>> from evaluation.trials import Trials
    >>> draw = np.random.default_rng(0)
    >>> speakers = [f"s{number // 5}" for number in range(50)]
    >>> vectors = np.repeat(draw.normal(size=(10, 4)), 5, axis=0) + 0.3 * draw.normal(size=(50, 4))
    >>> backend = train_chain(vectors, "centre,whiten,length,lda:3,cosine", speakers=speakers)
    >>> backend
    Backend([centre, whiten, length, lda: 3, cosine], 4 dimensions, trained on 50 vectors of 10 speakers)
    >>> training = Embeddings.from_arrays(vectors, speakers=speakers)
    >>> backend.score(training, training, Trials.from_ids(["s0", "s0"], ["u1", "u17"])).values.round(2)
    array([ 0.9 , -0.96])
    """
    chain = parse_chain(spec)
    embeddings = _as_embeddings(embeddings)
    adapt = _as_embeddings(adapt)
    has_speakers = isinstance(embeddings, Embeddings) or speakers is not None
    if not isinstance(embeddings, Embeddings):
        embeddings = Embeddings.from_arrays(embeddings, speakers=speakers)
    elif speakers is not None:
        raise DataError(
            "expected speakers only with an array of vectors: Embeddings have their own"
        )
    if not isinstance(adapt, Embeddings | None):
        adapt = Embeddings.from_arrays(adapt)
    embeddings.norms()
    dimension = embeddings.vectors.shape[1]
    others = adapted_to = None
    if adapt is not None:
        adapt.norms()
        if adapt.vectors.shape[1] != dimension:
            text = f"expected vectors to adapt to of {dimension} dimensions, got {adapt.vectors.shape[1]}"
            raise DataError(
                text, file=adapt.source or None, remedy="use the same extractor for both"
            )
        if warn:
            warn_of_copies(adapt, embeddings, finding="vectors to adapt to are in training too")
        others = np.asarray(adapt.vectors)
        adapted_to = others.astype(np.float64)
    if warn:
        warn_of_copies(embeddings, finding="training utterances have copies")
    names, codes = factorise(embeddings.speakers)
    warn_of_alike(names.tolist())
    counts = np.bincount(codes)
    check_chain(chain, dimension, counts, is_adapted=adapt is not None)
    calibrate = step_of(chain, "calibration")
    if calibrate is not None:  # the rest of the chain must be trainable on all folds but one
        n_trained = len(names) - -(-len(names) // calibrate.values["folds"])
        largest = np.sort(counts)[-n_trained:]
        check_chain(chain[:-1], dimension, largest, is_adapted=adapt is not None)
    vectors = np.asarray(embeddings.vectors)
    digest = fingerprint(
        plain_chain(chain), embeddings.ids, embeddings.speakers, vectors, others, seed
    )
    facts = {
        "dimension": dimension,
        "vectors": len(embeddings),
        "speakers": len(names),
        "made_from": digest,
    }
    training = Training(vectors.astype(np.float64), codes, adapted_to)
    with errors_of(embeddings.source):
        backend = _trained(chain, training, facts)
        if has_speakers:
            backend = replace(backend, heard=speaker_digests(names))
        if calibrate is None:
            return backend
        return replace(backend, calibration=_calibration(chain, calibrate, training, seed))


def backend_from_kaldi(
    plda: KaldiPlda,
    *,
    mean: NDArray[Any] | None = None,
    transform: NDArray[Any] | VbxTransform | None = None,
    length: str = "kaldi",
) -> Backend:
    """Return a backend that scores as Kaldi does with these models.

    Parameters
    ----------
    plda : KaldiPlda
    mean : ndarray of shape (R,), optional
        Mean that is subtracted first, as by `ivector-subtract-global-mean`.
    transform : ndarray of shape (K, R) or (K, R + 1), or VbxTransform, optional
        LDA; if there is one column more than `mean` has numbers, the last one is an offset. Its output is scaled to the
        length sqrt(K), as `ivector-normalize-length` does. A transform of VBx includes means and length norms.
    length : {"kaldi", "simple", "none"}
        How vectors are scaled within the PLDA, see `spkver.backend.kaldi_plda_scores`.

    Returns
    -------
    Backend

    Raises
    ------
    DataError
        If dimensions do not fit, or a number is not finite.
    """
    steps: list[Any] = []
    maps: list[Map] = []
    if mean is not None:
        steps.append("centre")
        maps.append(_shift(mean))
    if isinstance(transform, VbxTransform):
        if mean is not None:
            raise DataError(
                "a transform of VBx includes the means", remedy="leave the other mean out"
            )
        steps = ["centre", "length", {"lda": len(transform.mean2)}, "centre", "length"]
        maps = [
            _shift(transform.mean1),
            LengthNorm(),
            _product(transform.lda),
            _shift(transform.mean2),
            LengthNorm(),
        ]
    elif transform is not None:
        matrix = np.asarray(transform, np.float64)
        if matrix.ndim != 2 or not matrix.size:
            raise DataError(f"expected a transform (K, R) or (K, R + 1), got shape {matrix.shape}")
        rank, columns = matrix.shape
        if mean is not None and columns == len(mean) + 1:
            columns = len(mean)
        steps += [{"lda": rank}, "length"]
        maps.append(_product(matrix[:, :columns].T))
        maps += [_shift(-column) for column in matrix.T[columns:]]
        maps += [LengthNorm(), AffineMap(np.zeros(rank), np.full(rank, np.sqrt(rank)))]
    dimension = plda.dimension
    if maps and isinstance(maps[0], AffineMap):
        dimension = len(maps[0].offset)
    if dimension_after(maps, dimension) != plda.dimension:
        text = f"expected a PLDA of {dimension_after(maps, dimension)} dimensions, got one of {plda.dimension}"
        raise DataError(text, remedy="give the transform that belongs to it")
    chain = parse_chain([*steps, {"plda": {"length": length}}])
    digest = fingerprint(plain_chain(chain), [vars(step) for step in maps], vars(plda))
    facts = {"dimension": dimension, "vectors": 0, "speakers": 0, "made_from": digest}
    return Backend(chain, tuple(maps), plda_from_kaldi(plda), None, None, facts)


def write_backend(path: str | Path, backend: Backend) -> None:
    """Write a trained chain, whole or not at all; equal chains give equal files."""
    arrays: dict[str, Any] = {}
    for number, step in enumerate(backend.maps):
        arrays |= _arrays_of(step, f"map{number}.")
    if backend.model is not None:
        arrays |= _arrays_of(backend.model, "model.")
    if len(backend.heard):
        arrays["heard"] = backend.heard
    if backend.cohort is not None:
        arrays["cohort"] = backend.cohort
    if backend.calibration is not None:
        affine = backend.calibration
        arrays["calibration"] = np.array([*affine.weights, affine.offset, affine.prior])
    kinds = [type(step).__name__ for step in backend.maps]
    texts = {"chain": plain_chain(backend.chain), "maps": kinds, "facts": backend.facts}
    attributes = {name: json.dumps(value, sort_keys=True) for name, value in texts.items()}
    write_arrays(path, arrays, attributes={"kind": _KIND, "version": _VERSION, **attributes})


def read_backend(path: str | Path) -> Backend:
    """Read a trained chain.

    Raises
    ------
    DataError
        With the file, if it cannot be read, is damaged, or holds something else.
    """
    with open_file(path) as file:
        attributes = dict(file.attrs)
    if attributes.get("kind") != _KIND or attributes.get("version") != _VERSION:
        raise DataError(
            f"expected a file of the kind '{_KIND}', version {_VERSION}", file=path, remedy=_AGAIN
        )
    arrays = read_arrays(path)
    try:
        chain, kinds, facts = (json.loads(attributes[name]) for name in ("chain", "maps", "facts"))
        chain = parse_chain(chain)
        maps = tuple(
            _holder(_MAPS[kind], f"map{number}.", arrays) for number, kind in enumerate(kinds)
        )
        dimension_after(maps, facts["dimension"])
        scorer = step_of(chain, "scorer")
        assert scorer is not None
        model = _holder(scorer.step.model, "model.", arrays)
        calibration = None
        if "calibration" in arrays:
            weight, offset, prior = arrays["calibration"].tolist()
            calibration = Affine((weight,), offset, prior)
        digests = arrays.get("heard", np.zeros(0, np.uint64))
        return Backend(chain, maps, model, arrays.get("cohort"), calibration, facts, digests)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        text = error.text if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        raise DataError(
            f"expected a trained chain: {text}"[:500], file=path, remedy=_AGAIN
        ) from error


def _as_embeddings(vectors: Any) -> Any:
    """Convert supervectors and i-vectors to Embeddings; return other vectors unchanged."""
    if isinstance(vectors, Supervectors):
        return vectors.embeddings()
    return vectors


def _items(spec: Spec) -> Sequence[Any]:
    if isinstance(spec, str):
        text = spec.strip()
        if text.startswith(("[", "{", "-")) or "\n" in text:
            spec = load_yaml(text)[0]
        else:
            spec = [part.strip() for part in text.split(",") if text]
    if isinstance(spec, Mapping) or not isinstance(spec, Sequence):
        raise ConfigError(f"expected a list of steps, got {spec!r:.80}", remedy=_REMEDY)
    if not spec:
        raise ConfigError("the chain is empty", remedy=_REMEDY)
    return spec


def _named_value(item: Any) -> tuple[str, Any]:
    """Return a name and its value, from ``name``, ``name:value`` or a mapping of the name to one or more values."""
    value: Any = None
    if isinstance(item, str):
        item, colon, text = item.partition(":")
        if colon:
            value = load_yaml(text)[0]
            if value is None:
                raise ConfigError(f"'{item}:' has no value")
    elif isinstance(item, Mapping) and len(item) == 1:
        item, value = next(iter(item.items()))
    if not isinstance(item, str):
        raise ConfigError(
            f"expected the name of a step or one name with its values, got {item!r:.60}"
        )
    return item.strip(), value


def _chosen(item: Any) -> ChosenStep:
    """Return a step and its values, see `_named_value`."""
    name, value = _named_value(item)
    rows = {step.name: step for step in STEPS}
    name = ALIASES.get(name, name)
    if name not in rows:
        hint = f"there are {', '.join(rows)}"
        near = difflib.get_close_matches(name, rows, n=2)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        raise ConfigError(f"there is no step {name!r:.60}: {hint}")
    step = rows[name]
    parameters = {parameter.name: parameter for parameter in step.parameters}
    if value is not None and not isinstance(value, Mapping):
        if not parameters:
            raise ConfigError(f"{name} takes no value, got {value!r:.60}")
        value = {step.parameters[0].name: value}
    given = dict(value or {})
    for key in given:
        if key not in parameters:
            known = ", ".join(parameters) or "none"
            raise ConfigError(f"{name} has no parameter {key!r:.60}: it has {known}")
    values = {}
    for key, parameter in parameters.items():
        values[key] = parameter.default
        if key in given:
            values[key] = _value(parameter, given[key], name)
    return ChosenStep(step, values)


def _value(parameter: Parameter, value: Any, step: str) -> Any:
    """Convert a value to the type of its parameter."""
    if value is None and parameter.default is None:
        return None
    name = f"{step}.{parameter.name}"
    value = convert(value, parameter.kind, name)
    if parameter.choices and value not in parameter.choices:
        raise ConfigError(
            f"{name} is {value!r:.60}: expected one of {', '.join(parameter.choices)}"
        )
    if parameter.least is not None:
        span = f"from {parameter.least:g}"
        high = math.inf
        if parameter.most is not None:
            high = parameter.most
            span += f" to {high:g}"
        if not parameter.least <= value <= high:
            raise ConfigError(f"{name} is {value!r:.60}: expected a number {span}")
    return value


def _check_limit(chosen: ChosenStep, dimension: int, n_speakers: int, problems: Problems) -> int:
    """Note a first parameter above the limit of its step; return the number of dimensions after the step."""
    limit = dimension
    reason = f"{dimension} dimensions"
    if chosen.step.limit == "speakers":
        limit = min(dimension, n_speakers - 1)
        reason += f" and {n_speakers} speakers"
    first = chosen.step.parameters[0].name
    wanted = chosen.values[first]
    if wanted is not None and wanted > limit:
        text = f"{chosen.name}.{first} is {wanted}, but {reason} allow {limit} at most"
        problems.add(text, remedy="lower it")
    if chosen.step.role != "map":
        return dimension
    return min(limit, wanted or limit)


def _check_folds(values: Mapping[str, Any], n_speakers: int, most: int, problems: Problems) -> None:
    """Note folds of a calibration without trials; `most` is the largest number of vectors of a speaker."""
    folds = values["folds"]
    if n_speakers < 2 * folds:
        text = f"calibrate divides {n_speakers} speakers into {folds} folds: each needs two"
        problems.add(text, remedy="lower calibrate.folds, or give more speakers")
    enrolled = values["enrolled"]
    if 1 < most <= enrolled:
        text = f"calibrate.enrolled is {enrolled}, but no speaker has more vectors: none is tested"
        problems.add(text, remedy="lower it")


def _check_order(chain: Sequence[ChosenStep], problems: Problems) -> None:
    roles = [*_ROLES]
    last = chain[0]
    for chosen in chain[1:]:
        role = chosen.step.role
        before = last.step.role
        if role == "map" == before or roles.index(before) < roles.index(role):
            last = chosen
            continue
        text = f"{chosen.name}, {_ROLES[role]}, cannot follow {last.name}, {_ROLES[before]}"
        problems.add(text, remedy="the order is: maps of vectors, one scorer, snorm, calibrate")
    for chosen in chain:
        if chosen.step.of_list and any(other.step.role == "norm" for other in chain):
            problems.add(
                f"snorm cannot follow {chosen.name}: scores with a cohort would belong to another list"
            )


def _trained(chain: Chain, training: Training, facts: dict[str, Any]) -> Backend:
    """Train all but the calibration."""
    maps: list[Map] = []
    model = cohort = None
    steps = progress(chain, description="training", total=len(chain))
    for number, chosen in enumerate(steps, 1):
        step = chosen.step
        try:
            learnt = step.learn(training, chosen.values)
            if step.role == "map":
                adapt = training.adapt
                if not step.training_only:
                    maps += learnt
                    if adapt is not None:
                        adapt = apply_maps(learnt, adapt)
                vectors = apply_maps(learnt, training.vectors)
                training = Training(vectors, training.codes, adapt)
        except DataError as error:
            text = f"step {number} of the chain, {chosen.name}: {error.text}"
            raise type(error)(
                text, file=error.file, line=error.line, remedy=error.remedy
            ) from error
        if step.role == "scorer":
            model = learnt
        elif step.role == "norm" and chosen.values["cohort"] == "speakers":
            cohort = class_means(training.vectors, training.codes)
        elif step.role == "norm":
            cohort = training.on(chosen.values["cohort"])
    return Backend(chain, tuple(maps), model, cohort, None, facts)


def _calibration(chain: Chain, calibrate: ChosenStep, training: Training, seed: int) -> Affine:
    """Train the calibration on trials of speakers that the rest of the chain was not trained on.

    Speakers are dealt into folds. For each fold the chain is trained on the others; at most 300 of its speakers with
    enough vectors take part, the first vector (or first few) of each as a model and up to three more as tests.
    """
    values = calibrate.values
    n_speakers = int(training.codes.max()) + 1
    fold = np.empty(n_speakers, np.int64)
    order = np.random.default_rng(seed).permutation(n_speakers)
    fold[order] = np.arange(n_speakers) % values["folds"]
    target = []
    nontarget = []
    folds = range(values["folds"])
    for number in progress(folds, description="calibration", total=len(folds)):
        held = fold[training.codes] == number
        others = np.unique(training.codes[~held], return_inverse=True)[1]
        facts = {
            "dimension": training.vectors.shape[1],
            "vectors": len(others),
            "speakers": int(others.max()) + 1,
        }
        part = Training(training.vectors[~held], others, training.adapt)
        backend = _trained(chain[:-1], part, facts)
        scores, is_target = _scores_of_held(
            backend, training.vectors[held], training.codes[held], values["enrolled"]
        )
        target.append(scores[is_target])
        nontarget.append(scores[~is_target])
    try:
        return train_affine(
            np.concatenate(target),
            np.concatenate(nontarget),
            prior=values["prior"],
            ridge=values["ridge"],
        )
    except DataError as error:
        text = f"calibrate: {error.text}"
        raise DataError(
            text, remedy=f"{error.remedy}, such as 'calibrate: {{ridge: 0.01}}'"
        ) from error


def _scores_of_held(
    backend: Backend, vectors: Floats, codes: NDArray[Any], n_enrolled: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the scores of all trials of a fold, see `_calibration`, and which trials are target trials."""
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
    sessions = Sessions(
        backend.transform(vectors[enrolled]), np.arange(len(enrolled)) // n_enrolled
    )
    models, segments = np.divmod(np.arange(len(chosen) * len(tested)), len(tested))
    trials = Trials(numbered_ids(len(chosen)), numbered_ids(len(tested)), models, segments)
    scores = backend.score_vectors(sessions, backend.transform(vectors[tested]), trials).values
    return scores, codes[enrolled[::n_enrolled]][models] == codes[tested][segments]


def _shift(offset: NDArray[Any]) -> AffineMap:
    return AffineMap(np.asarray(offset, np.float64), np.ones(len(offset)))


def _product(matrix: Floats) -> AffineMap:
    return AffineMap(np.zeros(len(matrix)), matrix)


def _arrays_of(holder: Any, prefix: str) -> dict[str, Floats]:
    """Return the arrays of a map or a model, by their names in a file."""
    arrays = {}
    for entry in dataclasses.fields(holder):
        values = getattr(holder, entry.name)
        if values is not None:
            arrays[prefix + entry.name] = np.asarray(values, np.float64)
    return arrays


def _holder(kind: Any, prefix: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a map or a model from its arrays in a file."""
    return kind(
        **{
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
    )
