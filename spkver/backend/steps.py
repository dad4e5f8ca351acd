"""The steps of a chain: the name, parameters, requirements and function of each, and the formulas of the scorers.

Everything that shows steps is made from the rows of `STEPS`: parsing and checks of chains, their file, help texts,
scikit-learn's estimators and docs/backends.md. Maps of vectors are in `spkver.backend.transforms`.

A scorer's formula takes enrolled `Sessions`, tested vectors (T, R), and the codes of the model and the segment of each
of n trials; it returns n scores, the higher the more alike. Its model is what it has learnt from training vectors.

The adapted cosine learns from the list of trials how a domain shifts and spreads vectors: an anonymiser, a channel or
another language moves all of them, and spreads those of a speaker in certain directions. Both can be seen without
knowing who speaks in a trial: each side has a mean, and the enrolled vectors of a model differ by what is not the
speaker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import check_norms, row_norms, to_unit
from evaluation.trials import Trials
from spkbase.arrays import Floats
from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkbase.work import Work, one_blas_thread
from spkver.backend import plda, transforms
from spkver.backend.kaldi import LENGTHS, adapt_plda_unsupervised, kaldi_plda_scores, plda_from_kaldi, plda_to_kaldi
from spkver.backend.nap import fit_nap
from spkver.backend.plda import Sessions
from spkver.backend.scoring import check_codes, pair_products, score_trials
from spkver.backend.svm import SvmConfig, train_svms
from spkver.vectors import Supervectors

_ROWS = 48  # rows multiplied together where none may depend on the others: a multiple of the tiles of BLAS kernels
_SAME = 1e-12  # of the longest enrolled vector: what is left of a vector without a mean is rounding

Need = Literal["speakers", "sessions", "adapt"]
Values = Mapping[str, Any]

NEEDS: dict[Need, str] = {
    "speakers": "two speakers",
    "sessions": "a speaker with two vectors",
    "adapt": "vectors to adapt to",
}
"""What a step may need of the training vectors, in words."""

_CONVENTIONS = ("book", "sidekit")
_COHORTS = ("speakers", "vectors", "adapt")

ALIASES = {"center": "centre", "lnorm": "length"}
"""Other names of steps."""


def adapted_cosine_scores(
    sessions: Sessions,
    tests: NDArray,
    models: NDArray,
    segments: NDArray,
    *,
    prior: float = 1.0,
    whole_list: bool = True,
) -> Floats:
    """Return the cosines of vectors without the mean of their side and without what spreads other models' sessions.

    Means and spread leave out what is scored (leave-one-out): for the trial of model k and tested vector t, with the
    means m_j of the M models over their sessions e, and T tested vectors,

        1. e' = e - e0,  e0 = sum_{j != k} m_j / (M - 1);  t' = t - t0,  t0 = (sum_{s != t} s + e0) / T;  both scaled
           to length 1. A single test: t0 = e0
        2. W = (S + p R w I) / (n + p R), with S = sum (e' - m'_j) (e' - m'_j)^T over the N sessions of the M - 1 models
           j != k, n = N - (M - 1), and w = trace(S) / (n R): the mean variance in p R further sessions; W = I where
           sessions do not differ
        3. the cosine of the mean m'_k and t' after W^(-1/2)

    Of two models each is centred by the mean of the other, and W is that of the other's sessions.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models.
    tests : ndarray of shape (T, R)
        Each takes part in the mean of the others, whether a trial has it or not, unless `whole_list` is false.
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.
    prior : float
        p: the fewer sessions there are for the R dimensions, the nearer is W to the identity.
    whole_list : bool
        Whether the mean of the tested vectors is used. Without it the score of a trial is the same to the bit
        whatever else is tested; in either case it depends on all models.

    Returns
    -------
    ndarray of float64 of shape (n,)
        -1 to 1.

    Raises
    ------
    DataError
        If there is one model alone, dimensions differ, a vector is not finite, a code is out of its range, or nothing
        is left of a vector or of a model's mean without the mean of its side.

    References
    ----------
    A. O. Hatch, S. Kajarekar and A. Stolcke, "Within-class covariance normalization for SVM-based speaker recognition",
    Interspeech 2006; here of the enrolled speakers themselves.

    Examples
    --------
    Two recordings of each of three speakers, who differ in the first two numbers. All that is tested lies elsewhere.

    >>> both = Sessions([[2, 0, 1], [2, 0, -1], [0, 2, 1], [0, 2, -1], [2, 2, 1], [2, 2, -1]], [0, 0, 1, 1, 2, 2])
    >>> tests = [[6, 2, 4], [6, 2, 2], [4, 4, 4], [4, 4, 2], [6, 4, 4], [6, 4, 2]]
    >>> models, segments = [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3]
    >>> adapted_cosine_scores(both, tests, models, segments).round(2)
    array([ 0.84,  0.91, -0.78, -0.93, -0.85, -0.95,  0.78,  0.89])
    >>> adapted_cosine_scores(both, tests, models, segments, whole_list=False).round(2)
    array([ 0.41,  0.44, -0.1 , -0.12, -0.66, -0.73, -0.1 , -0.12])
    """
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    models, segments = np.asarray(models), np.asarray(segments)
    check_codes(models, len(sessions.counts), "models")
    check_codes(segments, len(tests), "segments")
    if not prior > 0:
        raise ConfigError(f"prior is {prior:g}: expected a number above 0")
    if len(sessions.counts) < 2:
        text = "adapted scores subtract the mean of the other models, and there is one model"
        raise DataError(text, remedy="use cosine, or give trials of more models")
    from scipy.linalg import solve_triangular  # before the limit, which holds for libraries that are loaded

    scores = np.empty(len(models))
    with one_blas_thread():
        origin = sessions.means.mean(axis=0)  # less is lost by rounding near it; no score depends on it
        enrolled, tested = sessions.vectors - origin, tests - origin
        share = 1.0  # of e0 in t0
        if whole_list:  # t - t0 = (T + 1) / T (t - (s + e0) / (T + 1)), s the sum of all tested vectors: t drops out
            share = 1 / (len(tests) + 1)
            tested -= share * tested.sum(axis=0)
        beyond = np.zeros(len(tests))  # squared length outside the space of the enrolled, where W is the identity
        if len(enrolled) < sessions.dimension:
            basis, coordinates = np.linalg.qr(enrolled.T)
            inside = _by_rows(lambda rows: rows @ basis, tested, whole_list)
            outside = tested - _by_rows(lambda rows: rows @ basis.T, inside, whole_list)
            beyond = (outside**2).sum(axis=1)
            enrolled, tested = coordinates.T, inside
        least = _SAME * float(row_norms(sessions.vectors).max())
        for model in np.unique(models):
            trials, own = np.flatnonzero(models == model), sessions.models == model
            others = Sessions(enrolled[~own], sessions.models[~own] - (sessions.models[~own] > model))
            centre = others.means.mean(axis=0)
            factor = np.linalg.cholesky(_spread(others, centre, prior, least))

            def whiten(rows: Floats, factor: NDArray = factor) -> Floats:
                return np.asarray(solve_triangular(factor, rows.T, lower=True, check_finite=False)).T

            moved = enrolled[own] - centre
            mean = to_unit(moved, _lengths(moved, 0.0, least, "enrolled vector")).mean(axis=0)[None]
            _lengths(mean, 0.0, _SAME, "mean of a model")
            mean = whiten(mean)
            rows = segments[trials]
            moved = tested[rows] - share * centre
            _lengths(moved, beyond[rows], least, "tested vector")
            moved = _by_rows(whiten, moved, whole_list)
            scores[trials] = (moved * mean).sum(axis=1) / np.linalg.norm(mean)
            scores[trials] /= _lengths(moved, beyond[rows], 0.0, "tested vector")
    return np.clip(scores, -1.0, 1.0)


def cosine_of_sessions(
    sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray, *, sessions_as: str = "mean"
) -> Floats:
    """Return the cosine of each trial's tested vector and the mean of its model's vectors.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of the models; averaged as they are.
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.
    sessions_as : {"mean", "maximum"}
        "maximum": the largest cosine with one of the model's vectors instead.

    Returns
    -------
    ndarray of float64 of shape (n,)
        -1 to 1.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite, one of those that are compared has no length, or a code is out of
        its range.
    """
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    right = _unit(tests, "tested vector")
    if sessions_as == "mean":
        return np.clip(pair_products(_unit(sessions.means, "mean of a model"), right, models, segments), -1.0, 1.0)
    models = check_codes(np.asarray(models), len(sessions.counts), "models")
    segments = check_codes(np.asarray(segments), len(tests), "segments")
    left, scores = _unit(sessions.vectors, "enrolled vector"), np.empty(len(models))
    for model in np.unique(models):
        trials, own = models == model, sessions.models == model
        scores[trials] = (left[own] @ right[segments[trials]].T).max(axis=0)
    return np.clip(scores, -1.0, 1.0)


def enrolled_plda_scores(
    sessions: Sessions,
    tests: NDArray,
    models: NDArray,
    segments: NDArray,
    *,
    prior: float = 100.0,
    background: Sessions | None = None,
) -> Floats:
    """Return the log-likelihood ratio of each trial by a PLDA that learns from the enrolled models themselves.

    With m the mean of the means of all models, vectors e of sessions and t of tests become (e - m) / |e - m| and
    (t - m) / |t - m|; a PLDA of full rank is trained by EM on the former, with the models as speakers. In a trial a
    model is the mean of its sessions as one vector. Anonymised versions of an enrolment are sessions, so the PLDA
    learns how the anonymiser changes a voice, without any knowledge of the anonymiser.

    Parameters
    ----------
    sessions : Sessions
        Enrolled vectors of at least two models, at least one of them with two sessions that differ.
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)
        Of each trial the code of its model, and the row of its tested vector.
    prior : float
        See `spkver.backend.PldaConfig`: few sessions need a strong one.
    background : Sessions, optional
        Vectors of other speakers, anonymised alike. They are centred by their own mean and train a second PLDA together
        with the enrolled; a score is the mean of both ratios: the first PLDA knows enrolled impostors, the second knows
        strangers too.

    Returns
    -------
    ndarray of float64 of shape (n,)
        In nat. A score depends on all models and on no other test.

    Raises
    ------
    DataError
        If dimensions differ, a vector is not finite or equals its mean, no two sessions of a model differ, or a code is
        out of its range.
    """
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    enrolled, tested = _moved(sessions.vectors, sessions, "enrolled"), _moved(tests, sessions, "tested")
    learnt = [(enrolled, sessions.models)]
    if background is not None:
        others = _moved(background.vectors, background, "background")
        codes = np.concatenate([sessions.models, background.models + len(sessions.counts)])
        learnt.append((np.concatenate([enrolled, others]), codes))
    trials = Sessions(enrolled, sessions.models), tested, models, segments
    trained = [plda.fit_plda(vectors, codes, plda.PldaConfig(prior=prior))[0] for vectors, codes in learnt]
    return np.asarray(np.mean([plda.plda_scores(one, *trials, sessions_as="mean") for one in trained], axis=0))


def mahalanobis_scores(
    matrix: NDArray, sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray
) -> Floats:
    """Return -(a - b)' M (a - b) / 2 of each trial, a the mean of its model's vectors and b the tested one.

    Parameters
    ----------
    matrix : ndarray of shape (R, R)
        M, symmetric and positive definite: the inverse of the covariance within speakers.
    sessions : Sessions
    tests : ndarray of shape (T, R)
    models, segments : ndarray of int of shape (n,)

    Returns
    -------
    ndarray of float64 of shape (n,)
        0 or less.

    Raises
    ------
    DataError
        If dimensions differ, M is not positive definite, a vector is not finite, or a code is out of its range.

    References
    ----------
    P.-M. Bousquet, D. Matrouf and J.-F. Bonastre, "Intersession compensation and scoring methods in the i-vectors space
    for speaker recognition", Interspeech 2011.
    """
    matrix = np.asarray(matrix, np.float64)
    if matrix.shape != (sessions.dimension,) * 2 or not np.isfinite(matrix).all():
        raise DataError(
            f"expected a finite Mahalanobis matrix of shape {(sessions.dimension,) * 2}, got {matrix.shape}",
            remedy="use one that was estimated on such vectors",
        )
    tests = plda.checked_vectors(tests, "tested vectors", sessions.dimension)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        factor = plda.lower_factor(matrix, "the Mahalanobis matrix")
        # distances from a point in the middle: less is lost where the differences are taken by a product
        middle = tests.mean(axis=0)
        enrolled, tested = (sessions.means - middle) @ factor, (tests - middle) @ factor
        ones = np.ones((max(len(enrolled), len(tested)), 1))
        left = np.hstack([enrolled, -0.5 * (enrolled**2).sum(axis=1, keepdims=True), ones[: len(enrolled)]])
        right = np.hstack([tested, ones[: len(tested)], -0.5 * (tested**2).sum(axis=1, keepdims=True)])
    return np.minimum(pair_products(left, right, models, segments), 0.0)


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """The inverse of the covariance within speakers, (R, R), which is shrunk where it is singular."""

    matrix: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class SvmBackground:
    """Negative examples of all machines, (B, R)."""

    vectors: Floats


@dataclass(frozen=True, eq=False)
class PldaBackground:
    """What an enrolled PLDA learns from besides the enrolled: vectors, (B, R), and their speakers, (B,)."""

    vectors: Floats
    speakers: NDArray[np.floating]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a step.

    Attributes
    ----------
    name : str
    kind : type
        int, float, str or bool.
    default : object
        None where it may be left out.
    about : str
    choices : tuple of str
        The texts that it can be, all others refused.
    least, most : float, optional
        The smallest and the largest number that it can be.
    """

    name: str
    kind: type
    default: Any
    about: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Training:
    """What a step is trained on: the vectors as the steps before it leave them.

    Attributes
    ----------
    vectors : ndarray of float64 of shape (N, R)
    codes : ndarray of int of shape (N,)
        Speaker of each, 0 .. C-1.
    adapt : ndarray of float64 of shape (M, R), optional
        Vectors to adapt to.
    """

    vectors: Floats
    codes: NDArray[np.integer]
    adapt: Floats | None = None

    def on(self, on: str) -> Floats:
        """Return the vectors to adapt to, if those are meant and there are any; else the training vectors."""
        return self.vectors if on != "adapt" or self.adapt is None else self.adapt


@one_line
@dataclass(frozen=True)
class Step:
    """A row of the table.

    Attributes
    ----------
    name : str
    role : {"map", "scorer", "norm", "calibration"}
        Vectors to vectors; vectors to scores; scores to scores. They come in this order in a chain.
    about : str
    parameters : tuple of Parameter
        The first is what ``name:value`` means.
    needs : tuple of str
        Keys of `NEEDS`.
    fit : callable, optional
        Of a map: training vectors, then what it needs of speakers' codes or vectors to adapt to, and the parameters by
        name to a map or several. Of a scorer: `Training` and the values of the parameters to its model.
    score : callable, optional
        Scores of a scorer: of its model, the values, enrolled `Sessions`, tested vectors, and codes of the trials.
    model : type, optional
        Dataclass of arrays that a scorer learns, and a file holds; the last axis of its first array are the dimensions.
    limit : {"", "dimensions", "speakers"}
        What the first parameter may not exceed: the dimensions of the vectors, or also the speakers minus 1. A map with
        a limit leaves so many dimensions.
    training_only : bool
        The map is of the training vectors alone, as those of a test are of the other domain already.
    of_list : {"", "models", "models and segments"}
        What of the list of trials a score depends on besides the two sides of the trial.
    """

    name: str
    role: Literal["map", "scorer", "norm", "calibration"]
    about: str
    parameters: tuple[Parameter, ...] = ()
    needs: tuple[Need, ...] = ()
    fit: Callable[..., Any] | None = None
    score: Callable[..., Floats] | None = None
    model: type = NoneType
    limit: Literal["", "dimensions", "speakers"] = ""
    training_only: bool = False
    of_list: Literal["", "models", "models and segments"] = ""

    def learn(self, training: Training, values: Values) -> Any:
        """Return the maps of a map as a tuple, or the model of a scorer; None of other steps."""
        if self.fit is None or self.role != "map":
            return None if self.fit is None else self.fit(training, values)
        given = {name: value for name, value in values.items() if name != "on"}
        others = [training.codes] if "sessions" in self.needs else [training.on("adapt")] * ("adapt" in self.needs)
        found = self.fit(training.on(values.get("on", "training")), *others, **given)
        return found if isinstance(found, tuple) else (found,)


def _spread(others: Sessions, centre: Floats, prior: float, least: float) -> Floats:
    """Return a multiple of W: cosines do not depend on its scale."""
    moved = others.vectors - centre
    unit = Sessions(to_unit(moved, np.maximum(row_norms(moved), least)), others.models)
    differences = unit.vectors - unit.means[unit.models]
    free, total = len(differences) - len(unit.counts), float((differences**2).sum())
    matrix = np.eye(unit.dimension)  # W is proportional to I + S / (p trace(S) / n)
    if free > 0 and total > _SAME**2 * len(differences):
        matrix += differences.T @ differences * (free / (prior * total))
    return matrix


def _by_rows(function: Callable[[Floats], Floats], vectors: Floats, together: bool) -> Floats:
    """Apply a function to all vectors, or to 48 at a time, filled up with zeros, so that no row depends on another."""
    if together or not len(vectors):
        return function(vectors)
    filled = np.zeros((-(-len(vectors) // _ROWS) * _ROWS, vectors.shape[1]))
    filled[: len(vectors)] = vectors
    return np.concatenate([function(rows) for rows in np.split(filled, len(filled) // _ROWS)])[: len(vectors)]


def _lengths(vectors: NDArray, beyond: NDArray | float, least: float, what: str) -> Floats:
    """Return the lengths of vectors with squares of further coordinates; DataError if one is not above `least`."""
    lengths: Floats = np.sqrt((vectors**2).sum(axis=1) + beyond)
    if gone := int((~((lengths > least) & np.isfinite(lengths))).sum()):
        text = f"nothing is left of {gone} of {len(vectors)} {what}s without the mean of the models"
        raise DataError(text, remedy="correct the vectors, or use cosine")
    return lengths


def _moved(vectors: Floats, sessions: Sessions, what: str) -> Floats:
    """Return vectors without the mean of the models of some sessions, scaled to length 1."""
    moved = vectors - sessions.means.mean(axis=0)
    return to_unit(moved, _lengths(moved, 0.0, _SAME * float(row_norms(vectors).max()), f"{what} vector"))


def _unit(vectors: Floats, what: str) -> Floats:
    norms = row_norms(vectors)
    check_norms(norms, np.array([f"row {row}" for row in range(len(vectors))], object), what=what)
    return vectors / norms[:, None]


def _fit_plda(training: Training, values: Values) -> plda.Plda:
    config = plda.PldaConfig(
        rank=values["rank"],
        channel_rank=values["channel_rank"],
        residual=values["residual"],
        iterations=values["rounds"],
        minimum_divergence="sidekit" if values["convention"] == "sidekit" else "lower",
        prior=values["prior"],
    )
    trained = plda.fit_plda(training.vectors, training.codes, config)[0]
    if values["adapt"] == "none" or training.adapt is None:
        return trained
    return plda_from_kaldi(adapt_plda_unsupervised(plda_to_kaldi(trained), training.adapt))


def _score_plda(model: plda.Plda, values: Values, *trials: Any) -> Floats:
    if values["length"] == "none":
        return plda.plda_scores(model, *trials, sessions_as=values["sessions"])
    return kaldi_plda_scores(plda_to_kaldi(model), *trials, sessions_as=values["sessions"], length=values["length"])


def _score_enrolled_plda(model: PldaBackground, values: Values, *trials: Any) -> Floats:
    background = Sessions(model.vectors, model.speakers.astype(np.int64)) if len(model.vectors) else None
    return enrolled_plda_scores(*trials, prior=values["prior"], background=background)


def _score_svm(
    model: SvmBackground, values: Values, sessions: Sessions, tests: NDArray, models: NDArray, segments: NDArray
) -> Floats:
    names, tested = (np.array([*map(str, range(size))], object) for size in (len(sessions.counts), len(tests)))
    enrolled = Supervectors(names[sessions.models], names[sessions.models], sessions.vectors)
    config = SvmConfig(values["tolerance"], values["cost"], values["balanced"])
    try:
        trained = train_svms(enrolled, model.vectors, config, work=Work(jobs=1))
    except DataError:
        raise
    except ValueError as error:  # libsvm keeps its kernel in float32
        text = f"the support vector machines have no finite solution: {error}"
        raise DataError(text, remedy="put the step length before svm") from error
    trials = Trials(names, tested, np.asarray(models, np.int32), np.asarray(segments, np.int32))
    return score_trials(trained, Supervectors(tested, tested, tests), trials, work=Work(jobs=1)).values


def _some_of_each(training: Training, most: int | None) -> SvmBackground:
    """At most so many training vectors, evenly over the speakers: the first of each, the second, ..., drawn."""
    order = np.random.default_rng(0).permutation(len(training.codes))
    by_speaker = order[np.argsort(training.codes[order], kind="stable")]
    counts = np.bincount(training.codes)
    turns = np.concatenate([np.arange(count) for count in counts])
    chosen = by_speaker[np.argsort(turns, kind="stable")[:most]]
    return SvmBackground(training.vectors[np.sort(chosen)])


_SHRINK = Parameter(
    "shrink", float, None, "share of shrinkage; by default only of a singular covariance", least=0, most=1
)
_ROUNDS = Parameter("rounds", int, 1, "repetitions", least=1)
_ON = Parameter("on", str, "training", "vectors that it is trained on", ("training", "adapt"))
_SESSIONS = Parameter(
    "sessions", str, "all", "enrolled vectors of a model: all, or their mean as one vector", plda.SESSIONS_AS
)
_PRIOR = Parameter("prior", float, 1.0, "weight of the identity in that covariance", least=1e-6)
_TOP = Parameter(
    "top", int, None, "highest cohort scores that are used of each side (adaptive); all by default", least=2
)

STEPS: tuple[Step, ...] = (
    Step("centre", "map", "subtract the mean", (_ON,), fit=transforms.fit_centring),
    Step(
        "whiten",
        "map",
        "subtract the mean and make the total covariance the identity",
        (Parameter("kind", str, "full", "root of the covariance", transforms.WHITENINGS), _ON, _SHRINK),
        fit=transforms.fit_whitening,
    ),
    Step("length", "map", "scale each vector to length 1", fit=lambda vectors: transforms.LengthNorm()),
    Step(
        "efr",
        "map",
        "whiten and scale to length 1, repeatedly (eigen factor radial)",
        (_ROUNDS,),
        fit=transforms.fit_efr,
    ),
    Step(
        "sphnorm",
        "map",
        "the same with the covariance within speakers (spherical nuisance normalisation)",
        (_ROUNDS,),
        ("sessions",),
        transforms.fit_sphnorm,
    ),
    Step(
        "pca",
        "map",
        "subtract the mean and keep the directions of the largest variance (principal components)",
        (Parameter("rank", int, None, "directions that are kept; by default all that vectors span", least=1),),
        fit=transforms.fit_pca,
        limit="dimensions",
    ),
    Step(
        "lda",
        "map",
        "keep the directions that distinguish speakers (linear discriminant analysis)",
        (
            Parameter("rank", int, None, "directions that are kept; by default as many as there can be", least=1),
            _SHRINK,
            Parameter("convention", str, "book", "the textbook's, or SIDEKIT 1.3.2's mistake", _CONVENTIONS),
        ),
        ("speakers", "sessions"),
        transforms.fit_lda,
        limit="speakers",
    ),
    Step(
        "wccn",
        "map",
        "make the covariance within speakers the identity, speakers of equal weight",
        (_SHRINK,),
        ("sessions",),
        transforms.fit_wccn,
    ),
    Step(
        "nap",
        "map",
        "remove the directions in which sessions vary (nuisance attribute projection)",
        (
            Parameter("rank", int, 40, "directions that are removed", least=0),
            Parameter("scatter", str, "within", "scatter whose largest directions these are", ("within", "total")),
        ),
        ("sessions",),
        lambda vectors, codes, **values: fit_nap(vectors, speakers=codes, work=Work(jobs=1), **values),
    ),
    Step(
        "coral",
        "map",
        "give the training vectors mean and covariance of the vectors to adapt to (correlation alignment)",
        (_SHRINK,),
        ("adapt",),
        transforms.fit_coral,
        training_only=True,
    ),
    Step(
        "cosine",
        "scorer",
        "cosine with the mean of the enrolled vectors, or the largest cosine with one of them",
        (Parameter("sessions", str, "mean", "enrolled vectors of a model", ("mean", "maximum")),),
        score=lambda model, values, *trials: cosine_of_sessions(*trials, sessions_as=values["sessions"]),
    ),
    Step(
        "adapted_cosine",
        "scorer",
        "cosine after subtracting the mean of each side of the trial list and whitening by the "
        "covariance within the enrolled models; the trial's own model and test are left out",
        (_PRIOR,),
        score=lambda model, values, *trials: adapted_cosine_scores(*trials, prior=values["prior"]),
        of_list="models and segments",
    ),
    Step(
        "single_test_cosine",
        "scorer",
        "the same with mean and covariance of the other enrolled models alone: independent of the other tests",
        (_PRIOR,),
        score=lambda model, values, *trials: adapted_cosine_scores(*trials, prior=values["prior"], whole_list=False),
        of_list="models",
    ),
    Step(
        "enrolled_plda",
        "scorer",
        "log-likelihood ratio of a full-rank PLDA that is trained on the enrolled models themselves",
        (
            Parameter("prior", float, 100.0, "weight of the residual's prior", least=0),
            Parameter("background", bool, False, "train it on the training vectors too"),
        ),
        fit=lambda training, values: PldaBackground(
            *(side if values["background"] else side[:0] for side in (training.vectors, training.codes))
        ),
        score=_score_enrolled_plda,
        model=PldaBackground,
        of_list="models",
    ),
    Step(
        "mahalanobis",
        "scorer",
        "half the squared distance from the mean of the enrolled vectors, in the metric of the covariance within "
        "speakers, negated",
        (_SHRINK,),
        ("sessions",),
        lambda training, values: Mahalanobis(
            transforms.inverse(transforms.regularised_within(training.vectors, training.codes, **values))
        ),
        lambda model, values, *trials: mahalanobis_scores(model.matrix, *trials),
        Mahalanobis,
    ),
    Step(
        "two_covariance",
        "scorer",
        "log-likelihood ratio of Gaussian speakers and sessions, each with a full covariance",
        (_SESSIONS, Parameter("convention", str, "book", "unbiased covariances, or SIDEKIT 1.3.2's", _CONVENTIONS)),
        ("speakers", "sessions"),
        lambda training, values: plda.fit_two_covariance(
            training.vectors, training.codes, convention=values["convention"]
        ),
        lambda model, values, *trials: plda.plda_scores(model.plda, *trials, sessions_as=values["sessions"]),
        plda.TwoCovariance,
    ),
    Step(
        "plda",
        "scorer",
        "log-likelihood ratio of probabilistic linear discriminant analysis, trained by EM",
        (
            Parameter("rank", int, None, "directions of speakers; by default the dimensions", least=1),
            Parameter("channel_rank", int, 0, "directions of sessions, with a diagonal residual", least=0),
            Parameter("residual", str, "full", "covariance of the rest", ("full", "diagonal")),
            Parameter("rounds", int, 10, "iterations of EM", least=0),
            _SESSIONS,
            Parameter("length", str, "none", "scaling of vectors within the model, as Kaldi scores", LENGTHS),
            Parameter(
                "prior", float, None, "weight of the residual's prior; by default only where it is singular", least=0
            ),
            Parameter(
                "adapt", str, "none", "to unlabelled vectors of another domain, as Kaldi does", ("none", "kaldi")
            ),
            Parameter("convention", str, "book", "the book's minimum divergence, or SIDEKIT 1.3.2's", _CONVENTIONS),
        ),
        ("speakers", "sessions"),
        _fit_plda,
        _score_plda,
        plda.Plda,
        limit="dimensions",
    ),
    Step(
        "svm",
        "scorer",
        "a support vector machine for each model, against the training vectors",
        (
            Parameter("cost", float, None, "penalty C; 1 / mean of the kernel's diagonal by default", least=0),
            Parameter("tolerance", float, 1e-3, "tolerance of the solver", least=0),
            Parameter("balanced", bool, False, "give both classes the same weight"),
            Parameter(
                "most", int, None, "at most so many training vectors, evenly over the speakers; by default all", least=1
            ),
        ),
        fit=lambda training, values: _some_of_each(training, values["most"]),
        score=_score_svm,
        model=SvmBackground,
    ),
    Step(
        "snorm",
        "norm",
        "normalise scores by those of a cohort on both sides (s-norm)",
        (
            _TOP,
            Parameter(
                "cohort",
                str,
                "speakers",
                "means of the training speakers, all training vectors, or those to adapt to",
                _COHORTS,
            ),
        ),
    ),
    Step(
        "calibrate",
        "calibration",
        "scores to natural log-likelihood ratios, learnt on trials of held-out training speakers",
        (
            Parameter("prior", float, 0.5, "prior of a target trial that it is trained for", least=1e-6, most=1 - 1e-6),
            Parameter("enrolled", int, 1, "vectors that enrol a model in these trials", least=1),
            Parameter("folds", int, 5, "folds of the training speakers", least=2),
            Parameter("ridge", float, 0.0, "penalty on the weight", least=0),
        ),
        ("speakers", "sessions"),
    ),
)
