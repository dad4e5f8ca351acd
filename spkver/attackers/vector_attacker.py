"""Vector attackers: an extractor, and a backend that is chosen and trained on the background alone.

    OUTPUT/attackers/<training set>/<name>/choice.json    the chains that were tried, with their scores in each fold
    OUTPUT/attackers/<training set>/<name>/backend.h5     the chosen chain, trained on all speakers
    WORK/vectors/<extractor>-<key>/vectors.jsonl          vectors, by the checksum of the audio file

The backend is the simplest chain that no other beats on background speakers (`choose_chain`). Each recording goes
through an extractor once in a run (`VectorStore`): a resumed run computes only the rest, and anonymised versions,
subsets and scenarios share their vectors.

Some attackers adapt to the list of trials, by `spkver.backend.adapted_cosine_scores` in place of a scorer. They use
only what every scenario gives an attacker: the enrolment recordings with their speakers, and the tested recordings
without speakers. Scores of `-adapted` attackers depend on the whole list of trials; scores of `-single-test` attackers
only on the enrolled models and on the tested recording.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration import apply_affine, train_nonnegative
from evaluation.embeddings import Embeddings
from evaluation.metrics import cllr, eer, sort_scores
from evaluation.trials import TRIAL_BY_TRIAL, WHOLE_LIST, Key, Scores, Trials
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import file_digest, fingerprint, load_json, make_folder, write_json
from spkbase.runs import Run, append_line, read_lines, versions
from spkbase.showing import one_line
from spkbase.work import Work, chunks, one_blas_thread
from spkver.attackers import lists
from spkver.attackers.folds import ENROLLED, FOLDS, TESTED, Fold, background_folds
from spkver.attackers.pieces import PIECES, SHORTEST, with_pieces
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet, naming
from spkver.backend import Backend, format_chain, parse_chain, read_backend, train_chain, write_backend
from spkver.datadir import DataDir
from spkver.extractors import Extractor, ExtractorSettings, find_weights, open_extractor

logger = logging.getLogger(__name__)

Json = Any

SHRINK, PRIOR = 0.1, 100
"""Shrinkage of covariances, and weight of the prior of a PLDA: regularisation for few vectors."""

ADAPTED_COSINE, SINGLE_TEST_COSINE = "adapted_cosine", "single_test_cosine"
"""Scorers that adapt to the whole list of trials, and to its models alone: `spkver.backend.adapted_cosine_scores`."""

_WCCN, _WHITEN = f"wccn: {SHRINK}", f"whiten: {{shrink: {SHRINK}}}"
_RANKS = (50, 100, 150)
_RIDGE = 0.01  # of the calibration for Cllr: without it, there is no finite one for folds without errors
_COHORT = 20  # speakers that an adaptive cohort needs

_KEY = 16  # digits

UTTERANCES = 8000
"""Recordings of a training set to use at most: a large set would take hours."""

Settings = Mapping[str, Any]


@one_line
@dataclass(frozen=True, eq=False)
class FoldVectors:
    """Vectors of a fold: see `spkver.attackers.Fold`.

    Attributes
    ----------
    training, enrolled, tested : Embeddings
    key : Key
    """

    training: Embeddings
    enrolled: Embeddings
    tested: Embeddings
    key: Key


def simplest_of_best(
    errors: NDArray[np.floating], *, n_independent: float | None = None, resolution: float = 0.0
) -> int:
    """Return the first of some systems that is not worse than the best by more than one standard error.

    Let e[s, k] be the error of system s in fold k, and b the system with the least mean error (the first of equals).
    The mean over folds of d[k] = e[s, k] - e[b, k] is compared with std(d) / sqrt(n), std with K - 1, or with
    `resolution` where that is more.

    Parameters
    ----------
    errors : ndarray of shape (S, K)
        From the simplest system to the most complex; NaN where one could not be trained.
    n_independent : float, optional
        Number n of independent folds; K by default. Folds that share speakers are worth as many as their distinct
        speakers would fill.
    resolution : float
        Change of an error rate by a single error.

    References
    ----------
    .. [1] L. Breiman et al., "Classification and Regression Trees", 1984, section 3.4.3 (the rule of one standard
       error; here of paired differences).

    Examples
    --------
    >>> simplest_of_best(np.array([[0.21, 0.20, 0.19], [0.11, 0.12, 0.10], [0.10, 0.12, 0.11], [0.5, np.nan, 0.1]]))
    1
    >>> errors = np.array([[0.004, 0.003, 0.004], [0.0, 0.0, 0.0]])
    >>> simplest_of_best(errors), simplest_of_best(errors, resolution=0.005)
    (1, 0)
    """
    means = np.where(np.isfinite(errors).all(axis=1), errors.mean(axis=1), np.inf)
    differences = errors - errors[int(np.argmin(means))]
    n_folds = errors.shape[1]
    spread = differences.std(axis=1, ddof=1) / np.sqrt(n_independent or n_folds) if n_folds > 1 else 0.0
    # both sides are sums of few numbers: equal ones may differ in the last bits
    allowed = np.maximum(spread, resolution) * (1 + 1e-9) + 1e-12
    return int(np.flatnonzero(np.isfinite(means) & (differences.mean(axis=1) <= allowed))[0])


def standard_chains(dimension: int, n_speakers: int, most_vectors: int) -> list[str]:
    """Return the chains to choose from if none are named, simplest first; see docs/backends.md.

    Parameters
    ----------
    dimension : int
        Dimension of the vectors.
    n_speakers : int
        Training speakers of the smallest fold: LDA's ranks are below it.
    most_vectors : int
        Most vectors of a speaker; with one, steps that learn from their variation are left out.

    Examples
    --------
    >>> standard_chains(192, 3, 1)
    ['cosine', 'centre', '[centre, whiten: {shrink: 0.1}, length]']
    """
    chains = ["cosine", "centre"]
    adaptive = f"snorm: {min(300, n_speakers // 2)}" if n_speakers >= _COHORT else ""
    chains += [f"[centre, {adaptive}]"] if adaptive else []
    if most_vectors > 1:
        chains += [f"[centre, length, {_WCCN}]"]
    chains += [f"[centre, {_WHITEN}, length]"]
    if most_vectors < 2 or n_speakers < 2:
        return chains
    lda = _discriminants(dimension, n_speakers)
    plda = f"plda: {{prior: {PRIOR}}}"
    chains += [f"[centre, length, {step}]" for step in lda]
    chains += [f"[centre, {steps}, {plda}]" for steps in ("length", f"{_WHITEN}, length", f"length, {lda[-1]}")]
    if adaptive:
        chains += [f"[centre, length, {_WCCN}, {adaptive}]", f"[centre, length, {plda}, {adaptive}]"]
    return chains


def adapted_chains(scorer: str, dimension: int, n_speakers: int, most_vectors: int) -> list[str]:
    """Return the chains to choose from that end in a given adapting scorer; see `standard_chains`.

    Examples
    --------
    >>> adapted_chains(ADAPTED_COSINE, 192, 3, 1)
    ['adapted_cosine', '[centre, whiten: {shrink: 0.1}, length, adapted_cosine]']
    """
    maps = [f"{_WHITEN}, length"]
    if most_vectors > 1:
        maps = [f"length, {_WCCN}", *maps]
        maps += [f"length, {step}" for step in _discriminants(dimension, n_speakers)] if n_speakers > 1 else []
    return [scorer, *(f"[centre, {steps}, {scorer}]" for steps in maps)]


@one_blas_thread()
def judge_chain(chain: str, folds: Sequence[FoldVectors], seed: int = 0) -> Json:
    """Evaluate a chain in each fold.

    Returns
    -------
    dict
        `chain`; `eer` and `cllr`, one a fold (Cllr in bits, of scores that are calibrated on the other folds; None for
        a single fold), and `no_slope`, the numbers of the folds where this calibration would have a negative slope, so
        that it has none; or `why`, the reason it cannot be trained.
    """
    shown = format_chain(parse_chain(chain))
    values: list[NDArray[np.float64]] = []
    try:
        for fold in folds:
            backend = train_chain(fold.training, chain, seed=seed)
            values.append(backend.score(fold.enrolled, fold.tested, fold.key.trials()).values)
        truth = [fold.key.is_target for fold in folds]
        row: Json = {"chain": shown, "eer": [], "cllr": [], "no_slope": []}
        for number, (scores, is_target) in enumerate(zip(values, truth, strict=True)):
            row["eer"].append(float(eer(sort_scores(scores[is_target], scores[~is_target]))))
            if len(folds) < 2:
                return {**row, "cllr": [None]}
            others = [np.concatenate([*side[:number], *side[number + 1 :]]) for side in (values, truth)]
            affine = train_nonnegative(others[0][:, None], others[1], ridge=_RIDGE)
            llr = apply_affine(affine, scores)
            row["cllr"].append(float(cllr(sort_scores(llr[is_target], llr[~is_target]))))
            row["no_slope"] += [] if affine.weights[0] else [number + 1]
        return row
    except (ConfigError, DataError) as error:
        return {"chain": shown, "why": error.text}


def choose_chain(chains: Sequence[str], folds: Sequence[FoldVectors], *, seed: int, jobs: int | None) -> Json:
    """Choose a chain by cross-validation on background speakers, see `simplest_of_best`.

    Parameters
    ----------
    chains : sequence of str
        From the simplest on.
    folds : sequence of FoldVectors
        Without any, the first chain is used.
    seed, jobs

    Returns
    -------
    dict
        `chosen`, `why`, and `chains`: the result of `judge_chain` for each, with the mean EER, its difference from the
        best, and the standard error of the difference.

    Raises
    ------
    DataError
        If none can be trained.
    """
    if not folds:
        shown = [format_chain(parse_chain(chain)) for chain in chains]
        why = "too few training speakers to choose by cross-validation, so the simplest is used"
        if len(chains) == 1:
            why = "it is the only one"
        return {"chosen": shown[0], "why": why, "chains": [{"chain": chain} for chain in shown]}
    judge = partial(judge_chain, folds=folds, seed=seed)
    judged = list(Work(jobs).map(judge, chains, processes=True, description="chains"))
    errors = np.array([row.get("eer", [np.nan] * len(folds)) for row in judged])
    if np.isnan(errors).any(axis=1).all():
        raise DataError(f"no chain can be trained: {judged[0]['why']}", remedy="name others in its setting 'chains'")
    resolution = 1 / sum(int(fold.key.is_target.sum()) for fold in folds)
    tested = [set(fold.enrolled.speakers) for fold in folds]
    n_independent = len(folds) * len(set.union(*tested)) / sum(map(len, tested))  # K where no two share a speaker
    chosen = simplest_of_best(errors, n_independent=n_independent, resolution=resolution)
    best = int(np.argmin(np.where(np.isnan(errors).any(axis=1), np.inf, errors.mean(axis=1))))
    for row, error in zip(judged, errors, strict=True):
        if "eer" in row:
            above = error - errors[best]
            row["mean_eer"], row["above_best"] = float(error.mean()), float(above.mean())
            row["standard_error"] = float(above.std(ddof=1) / n_independent**0.5) if len(above) > 1 else 0.0
    if chosen == best:
        why = "its mean EER over the folds is the lowest"
    else:
        lowest = judged[best]["chain"]
        why = f"it is the simplest within one standard error, or one error, of the lowest mean EER, that of {lowest}"
    return {"chosen": judged[chosen]["chain"], "why": why, "chains": judged}


@one_line
@dataclass(frozen=True)
class VectorStore:
    """The vectors of an extractor, cached in a folder.

    Attributes
    ----------
    folder : Path
        ``WORK/vectors``.
    extractor : Extractor
    jobs : int or None
        Worker processes; the vectors do not depend on their number.
    """

    folder: Path
    extractor: Extractor
    jobs: int | None = None
    _known: dict[str, NDArray[np.floating]] = field(default_factory=dict, repr=False)
    _digests: dict[tuple[Path, int, int], Any] = field(default_factory=dict, repr=False)

    @property
    def made_by(self) -> str:
        """Digest of all that the vectors depend on besides the recordings."""
        return fingerprint("vectors", dict(self.extractor.extraction.record), versions())

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, sorted by utterance.

        Parameters
        ----------
        directory : DataDir
        utterances : mapping of str to str, optional
            Wanted utterances, each with its speaker; all of the directory by default.

        Raises
        ------
        DataError
            If recordings have no vector; all are named.
        """

        def rows_of(names: list[str]) -> list[NDArray[np.floating]]:
            digests = self._digests_of([directory.recordings[name] for name in names])
            self._work_out({digest: directory.recordings[name] for name, digest in zip(names, digests, strict=True)})
            rows = [self._known[digest] for digest in digests]
            strange = [name for name, row in zip(names, rows, strict=True) if row.shape != rows[0].shape]
            if strange:
                text = f"expected vectors of {len(rows[0])} dimensions as that of {names[0]}, got others for "
                raise DataError(text + few(strange), file=directory.path, remedy="correct the extractor")
            return rows

        return lists.rows_as_embeddings(directory, utterances, rows_of)

    def _work_out(self, wanted: Mapping[str, Path]) -> None:
        """Extract missing vectors and save each task as soon as it is done; raise all errors together at the end."""
        if wanted.keys() <= self._known.keys():
            return
        name = self.extractor.spec.partition(":")[0]
        folder = make_folder(self.folder / f"{Path(name).stem}-{self.made_by[:_KEY]}")
        problems = Problems()
        finished = folder / "vectors.jsonl"
        for digests, dtype, found in read_lines(finished):
            self._known.update(zip(digests, np.array(found, dtype), strict=True))
        missing = [(digest, path) for digest, path in wanted.items() if digest not in self._known]
        due = sorted(missing, key=lambda item: str(item[1]))
        tasks = chunks([(str(path), path.absolute()) for _, path in due], self.extractor.extraction.batch)
        of_tasks = chunks([digest for digest, _ in due], self.extractor.extraction.batch)
        sizes = [*map(len, tasks)]
        results = Work(self.jobs).map(self.extractor, tasks, processes=True, description="vectors", sizes=sizes)
        for digests, found in zip(of_tasks, results, strict=True):
            for error in (one for one in found if isinstance(one, DataError)):
                problems.note(error)
            good = {of: one for of, one in zip(digests, found, strict=False) if not isinstance(one, DataError)}
            if good:
                vectors = [*good.values()]
                append_line(finished, [list(good), vectors[0].dtype.str, [vector.tolist() for vector in vectors]])
            self._known.update(good)
        problems.raise_if_any()

    def _digests_of(self, paths: list[Path]) -> list[str]:
        """Return the SHA-256 of audio files; unchanged files are read once."""
        stamps = []
        for path in paths:
            try:
                status = path.stat()
            except OSError as error:
                text = f"cannot be read: {error.strerror}"
                raise DataError(text, file=path, remedy="give it back, or correct wav.scp") from error
            stamps.append((path, status.st_size, status.st_mtime_ns))
        due = [stamp for stamp in dict.fromkeys(stamps) if stamp not in self._digests]
        digests = Work(self.jobs).map(file_digest, [path for path, *_ in due])
        self._digests.update(zip(due, digests, strict=True))
        return [self._digests[stamp] for stamp in stamps]


class VectorSource(Protocol):
    """Where the vectors of data directories come from, such as `spkver.attackers.VectorStore`."""

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""


@dataclass(frozen=True)
class BackendChoice:
    """How the backend of a vector attacker is chosen.

    Attributes
    ----------
    name : str
        Of the attacker.
    chains : tuple of str
        Chains to choose from, simplest first, as ``spkver backend train --chain`` takes them; empty: `standard_chains`.
    folds : int
        Folds that background speakers are dealt into, see `background_folds`.
    enrolled : int
        Recordings of a model in the trials of these folds.
    utterances : int or None
        Recordings of the training set to use at most, all versions counted, see `limited`; None takes all.
    adapted : {"", "adapted_cosine", "single_test_cosine"}
        Scorer that adapts to the whole list of trials, or to its models alone; then `adapted_chains` replace
        `standard_chains`. See `spkver.backend.adapted_cosine_scores`.
    """

    cut: ClassVar[bool] = True
    """Cut recordings into pieces if speakers have only one, see `spkver.attackers.with_pieces`."""

    name: str
    chains: tuple[str, ...] = ()
    folds: int = FOLDS
    enrolled: int = ENROLLED
    utterances: int | None = UTTERANCES
    adapted: str = ""

    def __post_init__(self) -> None:
        for key, least in (("folds", 2), ("enrolled", 1), ("utterances", 2)):
            if (value := getattr(self, key)) is not None and value < least:
                raise ConfigError(f"{key} is {value}: expected a whole number of at least {least}")
        if self.adapted not in (known := ("", ADAPTED_COSINE, SINGLE_TEST_COSINE)):
            raise ConfigError(f"adapted is {self.adapted!r}: expected {', '.join(known[1:])}, or nothing")
        check_chains(self.chains)

    @property
    def level(self) -> str:
        """What an attacker with such a backend looks at, see `evaluation.trials.LEVELS`."""
        scorers = (self.adapted, *self.chains)
        return WHOLE_LIST if any(ADAPTED_COSINE in scorer for scorer in scorers) else TRIAL_BY_TRIAL

    def record(self) -> Any:
        """Return all that the choice depends on besides the vectors."""
        pieces = [PIECES, SHORTEST] if self.cut else []
        found = [list(self.chains), self.folds, self.enrolled, TESTED, SHRINK, PRIOR, pieces, self.utterances]
        return [*found, self.adapted] if self.adapted else found


def check_chains(chains: Sequence[str]) -> None:
    """Raise ConfigError if a chain is invalid, or needs vectors of another domain, which attackers do not have."""
    for chain in chains:
        adapting = [step.name for step in parse_chain(chain) if "adapt" in step.needs]
        if adapting:
            text = f"chain {chain!r}: {adapting[0]} adapts to vectors of another domain, and there are none"
            raise ConfigError(text, remedy="leave it out: an attacker learns from its training set alone")


def limited(training: tuple[DataDir, ...], limit: int | None, *, seed: int) -> tuple[DataDir, ...]:
    """Return versions of a training set with at most `limit` recordings in all, spread evenly over the speakers.

    Each version keeps the same utterances, at least two of a speaker who has them; a small set stays as it is.
    """
    if limit is None or sum(map(len, training)) <= limit:
        return training
    speakers = training[0].speakers
    most = max(limit // len(training), 2 * len(set(speakers.values())))
    chosen = set(lists.choose_utterances(speakers, limit=most, seed=seed))
    return tuple(lists.select(version, chosen) for version in training)


def learn_backend(
    choice: BackendChoice, source: VectorSource, record: Any, training: tuple[DataDir, ...], place: Place
) -> tuple[Backend, dict[str, Any]]:
    """Choose and train a backend on a training set, or reuse the one from an earlier run.

    Parameters
    ----------
    choice : BackendChoice
        Its `name` is the name of a folder inside the folder of the training set.
    source : VectorSource
    record : object
        What the vectors depend on besides the recordings, see `spkbase.files.fingerprint`.
    training : tuple of DataDir
        Versions of the same speech.
    place : Place

    Returns
    -------
    backend : Backend
    chosen : dict
        How it was chosen, as saved in ``choice.json``.

    Raises
    ------
    DataError
        If recordings have no vector, or no chain can be trained.
    """
    folder = make_folder(place.output / "attackers" / training[0].name / choice.name)
    run = Run(folder, jobs=place.jobs, force=place.force, quiet=True)
    speakers = [sorted(version.speakers.items()) for version in training]

    def make(path: Path) -> None:
        found, backend = _choose(source, choice, training, place)
        write_backend(folder / "backend.h5", backend)
        write_json(path, {"attacker": choice.name, "training": training[0].name, **found})

    found = run.stage(
        f"backend of {choice.name}",
        "choice.json",
        make=make,
        read=load_json,
        also=("backend.h5",),
        inputs=[record, choice.record(), speakers, sorted(training[0].sexes.items()), place.seed],
        sources=lists.recordings_of(training),
        libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
    ).value
    return read_backend(folder / "backend.h5"), found


@one_line
@dataclass(frozen=True, eq=False)
class VectorAttacker:
    """A vector attacker; see `spkver.attackers.Attacker`.

    Attributes
    ----------
    config : BackendChoice
    depends : object
        What its vectors depend on besides the recordings.
    make_source : callable
        Returns the source of vectors at a place and for a training set; it may be trained on first use.
    extractor : Extractor or None
        The extractor of the vectors, if there is one.
    place : Place
    """

    config: BackendChoice
    depends: Any = field(repr=False)
    make_source: Callable[[Place, tuple[DataDir, ...]], VectorSource] = field(repr=False)
    extractor: Extractor | None = field(default=None, repr=False)
    place: Place = field(default=NOWHERE, repr=False)

    @property
    def name(self) -> str:
        """Name from its configuration."""
        return self.config.name

    @property
    def level(self) -> str:
        """What it may look at, see `evaluation.trials.LEVELS`."""
        return self.config.level

    def record(self, attack: Attack) -> Any:
        """Return what its vectors depend on, and how its backend is chosen."""
        return {"vectors": self.depends, "choice": self.config.record()}

    def lacks(self, attack: Attack) -> str:
        """Return why scores cannot be adapted to these trials, or an empty string."""
        return lacks_models(attack) if self.config.adapted else ""

    def source(self, training: tuple[DataDir, ...]) -> VectorSource:
        """Return the source of vectors for a training set, the same one each time."""
        sources, key = self.place.shared, (self.make_source, training)
        if key not in sources:
            sources[key] = self.make_source(self.place, training)
        found: VectorSource = sources[key]
        return found

    def fit(self, training: TrainingSet) -> Scorer:
        """Choose and train its backend on the versions of the training set."""
        with naming(self.name):
            versions = limited(training.versions, self.config.utterances, seed=self.place.seed)
            source = self.source(versions)
            backend, choice = learn_backend(self.config, source, self.depends, versions, self.place)
        logger.info("%s on %s: %s", self.name, versions[0].name, format_chain(backend.chain))
        if training.whole is None and not choice["folds"] and len(self.config.chains) != 1:
            logger.warning("%s on %s: %s", self.name, versions[0].name, choice["why"])
        chosen = next(row for row in choice["chains"] if row["chain"] == choice["chosen"])
        if folds := chosen.get("no_slope"):
            text = "%s on %s: the calibration tried on fold %s has a negative slope"
            logger.warning(text, self.name, versions[0].name, ", ".join(map(str, folds)))

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            with naming(self.name):
                enrolled, keeps_versions = lists.enrolled_speech(enrolment), bool(self.config.adapted)
                return score_vectors(source, backend, enrolled, tested, trials, keeps_versions=keeps_versions)

        return score


def lacks_models(attack: Attack) -> str:
    """Return why scores cannot be adapted to the trials of an attack, or an empty string."""
    if len(np.unique(attack.trials.models)) > 1:
        return ""
    return "one speaker is enrolled in its trials: adapted scores are without the mean of the others"


def score_vectors(
    source: VectorSource, backend: Backend, enrolment: DataDir, tested: DataDir, trials: Trials, *, keeps_versions: bool
) -> Scores:
    """Score trials with a backend.

    A recording counts once, however often it was anonymised: the vectors of its versions are averaged. With
    `keeps_versions` they are not: the backend learns from their spread.
    """
    models, segments = lists.match_trials(enrolment, tested, trials)
    enrolled = source.vectors(enrolment, lists.owners_of(models))
    if (version_of := enrolment.version_of) and not keeps_versions:
        sessions: dict[tuple[str, str], list[int]] = {}
        for row, (name, model) in enumerate(zip(enrolled.ids.tolist(), enrolled.speakers.tolist(), strict=True)):
            sessions.setdefault((version_of.get(name, name), model), []).append(row)
        vectors = np.stack([np.asarray(enrolled.vectors)[rows].mean(axis=0) for rows in sessions.values()])
        names = np.array(list(sessions), object)
        enrolled = Embeddings(names[:, 0], names[:, 1], vectors)
    tests = source.vectors(tested, {name: tested.speakers[name] for name in segments})
    return backend.score(enrolled, tests, trials)


@one_line
@dataclass(frozen=True)
class Context:
    """Parts of the configuration besides the settings of an attacker.

    Attributes
    ----------
    preset : str
        The name of the row; the attacker may have another name if its settings give this as ``preset``.
    argument : str
        Text after the colon, such as FILE in ``onnx:FILE``.
    seed : int
    shared : mapping
        ``attacker_settings.all``: settings of all GMM-based attackers, such as the size of the mixture.
    settings : mapping of str to mapping
        ``attacker_settings`` of all attackers, by name.
    hypotheses : str or None
        ``utility.hypotheses``: file in the data directories that holds hypotheses of a recogniser.
    time_limit : float or None [s]
        ``attackers_time_limit``: for users' functions and commands.
    """

    preset: str
    argument: str = ""
    seed: int = 0
    shared: Settings = field(default_factory=dict)
    settings: Mapping[str, Settings] = field(default_factory=dict)
    hypotheses: str | None = None
    time_limit: float | None = None


@dataclass(frozen=True)
class VectorConfig(BackendChoice):
    """Configuration of a vector attacker with an extractor.

    Attributes
    ----------
    extractor : str
        As `spkver embed` takes it, see `spkver.extractors.open_extractor`.
    window, hop : float or None [s]
        See `spkver.extractors.ExtractorSettings`.
    """

    extractor: str = ""
    window: float | None = None
    hop: float | None = None


def extractor_attacker(name: str, settings: Settings, context: Context) -> VectorAttacker:
    """Create a vector attacker from an extractor, named by its row (and FILE) as `spkver embed` takes it."""
    spec = f"{context.preset}:{context.argument}" if context.argument else context.preset
    defaults = merged({"extractor": spec.removeprefix("extractor:")}, settings, {"name": name})
    with naming(name):
        config = load_config(VectorConfig, defaults=defaults)
        extractor = open_extractor(config.extractor, ExtractorSettings(config.window, config.hop))

    @cache
    def store(folder: Path, jobs: int | None) -> VectorStore:
        return VectorStore(folder, extractor, jobs)

    def source(place: Place, training: tuple[DataDir, ...]) -> VectorStore:
        return store(place.work / "vectors", place.jobs)

    return VectorAttacker(config, dict(extractor.extraction.record), source, extractor)


def network_is_absent(preset: str) -> str:
    """Return why a network cannot run here, or an empty string."""
    if not (find_spec("onnxruntime") and find_spec("onnx")):
        return "networks need onnxruntime and onnx, not installed; get them by: pip install onnx onnxruntime"
    try:
        find_weights(preset)
    except ConfigError as error:
        return f"{error.text}; get them by: spkver weights {preset}"
    return ""


def _discriminants(dimension: int, n_speakers: int) -> list[str]:
    most = min(dimension, n_speakers - 1)
    ranks = [rank for rank in _RANKS if rank <= most] or [most]
    return [f"lda: {{rank: {rank}, shrink: {SHRINK}}}, length" for rank in ranks]


def _choose(
    source: VectorSource, choice: BackendChoice, training: tuple[DataDir, ...], place: Place
) -> tuple[dict[str, Any], Backend]:
    whole = source.vectors(lists.merge_versions(with_pieces(training, place) if choice.cut else training))
    whole.norms()
    rounds: list[Fold] = []
    options: dict[str, Any] = {"folds": choice.folds, "enrolled": choice.enrolled, "cut": choice.cut}
    for dealt in range(choice.folds) if len(choice.chains) != 1 else ():  # few speakers are dealt several times
        if dealt == 0 or 0 < len(rounds) < choice.folds:
            dealing = background_folds(training, replace(place, seed=place.seed + dealt), **options)
            known = {fold.speakers for fold in rounds}  # the same speakers again would count their errors twice
            further = [fold for fold in dealing if fold.speakers not in known]
            rounds += [replace(fold, number=len(rounds) + number) for number, fold in enumerate(further, 1)]
    folds = []
    for fold in rounds:
        others = ~np.isin(whole.speakers.astype(str), fold.speakers)
        learnt_from = Embeddings(whole.ids[others], whole.speakers[others], np.asarray(whole.vectors)[others])
        enrolled, tested = map(source.vectors, fold.attack.sides)
        folds.append(FoldVectors(learnt_from, enrolled, tested, fold.key))
    least = min([len(set(fold.training.speakers)) for fold in folds] or [len(set(whole.speakers))])
    most = max(np.unique(whole.speakers.astype(str), return_counts=True)[1])
    known_chains = partial(adapted_chains, choice.adapted) if choice.adapted else standard_chains
    chains = list(choice.chains) or known_chains(whole.vectors.shape[1], least, int(most))
    found = choose_chain(chains, folds, seed=place.seed, jobs=place.jobs)
    tried = []
    for fold in rounds:
        counts = {"targets": int(fold.key.is_target.sum()), "trials": len(fold.key)}
        tried.append({"number": fold.number, "speakers": list(fold.speakers), **counts})
    facts = {"vectors": len(whole), "speakers": len(set(whole.speakers)), "versions": len(training), "folds": tried}
    return {**facts, **found}, train_chain(whole, found["chosen"], seed=place.seed)
