"""Calibration and fusion of systems in one call: `calibrate` and `fuse`, and the map that they train.

`calibrate` turns scores of a system into natural log-likelihood ratios, `fuse` those of several systems, by logistic
regression (`evaluation.calibration.affine`), with quality measures if there are any (`evaluation.calibration.quality`).
Both give a `Calibration` with two results:

- its map, trained on all trials, for other trials: `Calibration.apply`; - the same trials, each by a map trained on
other people: `Calibration.scores`. Speakers are divided into folds, and trials
  between two folds get a map that was trained without the speakers of both.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.calibration.affine import (
    Affine,
    apply_affine,
    cross_validate_affine,
    fit_affine,
    read_affine,
    save_affine,
    train_affine,
    warn_of_inversion,
)
from evaluation.calibration.quality import (
    Measures,
    check_columns,
    columns_of_trials,
    default_columns,
)
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Trials,
    TrialSpeakers,
    check_index,
    doubt_speakers,
    find_rows,
    find_speakers,
    given_systems,
    known_column,
    numbers_of,
    stack_systems,
    warn_of_repeats,
)
from spkbase.errors import DataError, few
from spkbase.showing import one_line
from spkbase.work import one_blas_thread

logger = logging.getLogger(__name__)

# if at least this share of the scores is distinct, equal scores are not a coincidence
_DISTINCT = 0.9


@one_line
@dataclass(frozen=True, eq=False)
class Calibration:
    """A trained calibration or fusion.

    Attributes
    ----------
    affine : Affine
        Weights of the systems and then of the columns of quality measures, with their names, and the offset.
    ranges : mapping of str to tuple of float
        Smallest and largest value in training of each column of quality measures, such as ``"log(min duration)"``.
    scores : Scores or ndarray of float64 of shape (N,), or None
        Log-likelihood ratios of the training trials, each by a map trained on other speakers; None without folds, and
        for a loaded calibration.
    """

    affine: Affine
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    scores: Any = None
    _training: tuple[NDArray[np.float64], Trials | None] | None = field(default=None, repr=False)

    @property
    def quality(self) -> tuple[str, ...]:
        """Columns of quality measures, in the order of their weights."""
        return tuple(self.ranges)

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, in the order of the weights."""
        n_systems = len(self.affine.weights) - len(self.quality)
        unnamed = ("score", *map("system {}".format, range(2, n_systems + 1)))
        return (self.affine.names or unnamed)[:n_systems]

    def apply(
        self,
        systems: Any,
        *,
        quality: Measures | None = None,
        model: str | None = None,
        segment: str | None = None,
        missing: Missing = "error",
    ) -> Any:
        """Return the log-likelihood ratios of other trials.

        Parameters
        ----------
        systems : Scores, mapping of str to Scores or array_like, array_like of shape (N,) or (N, K), or data frame
            Scores of the same systems, joined by id and by name. A matrix has the systems in the order of `systems`.
        quality : mapping of str to measures, optional
            The measures that it was trained with, see `fuse`.
        model, segment : str, optional
            Columns of ids of a data frame, by which measures are joined; those of known names by default.
        missing : {"error", "drop", "reject"}
            What to do with trials of the first of `Scores` that another system did not score.

        Returns
        -------
        Scores or ndarray of float64 of shape (N,)
            `Scores` for `Scores`, in the order of the first system.

        Raises
        ------
        DataError
            If systems or measures are missing, unknown or too many, or a trial has no score or no measure.
        """
        if isinstance(systems, Scores):
            systems = {self.systems[0]: systems}
        if not isinstance(systems, Mapping) and not hasattr(systems, "columns"):
            flat = numbers_of(np.ravel(systems), "scores")
            return self.ratios(flat.reshape(len(systems), -1), None, quality)
        given = self._by_name(systems)
        first = given[self.systems[0]]
        if isinstance(first, Scores):
            values, trials = stack_systems(given.items(), first.trials(), missing=missing)
            return trials.scored(self.ratios(values, trials, quality))
        check_index(**given)
        columns = [numbers_of(column, f"scores of {name}") for name, column in given.items()]
        of_frame = None
        if self.quality:
            ids = {role: name for role, name in (("model", model), ("segment", segment)) if name}
            of_frame = Trials.from_frame(systems, **ids)
        return self.ratios(np.column_stack(columns), of_frame, quality)

    def _by_name(self, systems: Any) -> dict[str, Any]:
        """Return the scores of each system, in the order of the weights."""
        names = self.systems
        titles = [*getattr(systems, "columns", systems)]
        too_many = isinstance(systems, Mapping) and len(titles) > len(names)
        if too_many or not set(names) <= set(titles):
            text = f"expected the systems {few(names)}, got {few(titles)}"
            raise DataError(text, remedy="give each system that it was trained on, by its name")
        return {name: systems[name] for name in names}

    @one_blas_thread()
    def ratios(
        self, values: NDArray[np.float64], trials: Trials | None, quality: Measures | None = None
    ) -> NDArray[np.float64]:
        """Return log-likelihood ratios of scores of shape (N, K), with a warning if they are optimistic."""
        n_seen = self._n_seen(values[:, 0], trials)
        if n_seen:
            text = "%d of %d trials are training trials too: results are optimistic (train on others, or by folds)"
            logger.warning(text, n_seen, len(values))
        check_columns(quality or {}, self.quality)
        if quality:
            if trials is None:
                text = "quality measures are joined by ids, which the trials lack"
                raise DataError(text, remedy="give Scores, or a data frame with columns of ids")
            extra = columns_of_trials(quality, self.quality, trials)
            self._doubt_units(extra)
            values = np.column_stack([values, extra])
        return apply_affine(self.affine, values)

    def _doubt_units(self, columns: NDArray[np.float64]) -> None:
        """Warn of columns of which most values exceed the training range by more than its width."""
        for (name, (low, high)), numbers in zip(self.ranges.items(), columns.T, strict=True):
            spread = high - low
            floor = low - spread
            if low > 0:
                # as far below, in ratio, as the range of training reaches
                floor = max(floor, low * low / high)
            n_beyond = int(((numbers < floor) | (numbers > high + spread)).sum())
            if spread > 0 and 2 * n_beyond > len(numbers):
                text = "%s of %d of %d trials is far outside the training range, %.4g to %.4g: is it in another unit?"
                logger.warning(text, name, n_beyond, len(numbers), low, high)

    def _n_seen(self, scores: NDArray[np.float64], trials: Trials | None) -> int:
        """Return how many trials were in training: those with the same ids, or with the same scores under other ids."""
        if self._training is None:
            return 0
        trained, own = self._training
        n_seen = int(np.isin(scores, trained).sum())
        if 2 * n_seen < len(scores) or len(np.unique(trained)) < _DISTINCT * len(trained):
            n_seen = 0  # coincidences
        if own is not None and trials is not None:
            n_seen = max(n_seen, int((find_rows(trials, own) >= 0).sum()))
        return n_seen

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON, with all digits but without `scores`; `load_calibration` reads it."""
        save_affine(path, self.affine, self.ranges)


def calibrate(
    scores: Any,
    key: Any = None,
    labels: Any = None,
    *,
    score: str | None = None,
    **options: Any,
) -> Calibration:
    """Calibrate the scores of a system: train a map to natural log-likelihood ratios, and apply it across folds.

    Parameters
    ----------
    scores, key, labels
        `Scores` and `Key`; scores and ``labels=``; a data frame or mapping with columns of scores and of labels; or
        scores of target and of nontarget trials.
    score : str, optional
        Column of scores of a data frame; one of a known name by default.
    **options
        The keywords of `fuse`: ``speakers``, ``quality``, ``quality_columns``, ``folds``, ``seed``, ``prior``,
        ``ridge``, ``missing``, and of data frames ``label``, ``model``, ``segment``.

    Raises
    ------
    DataError
        As `fuse`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = [(f"s{m}", f"s{n}/{take}") for m in range(10) for n in range(10) for take in range(3)]
    >>> truth = np.array([model == segment[:2] for model, segment in pairs])
    >>> key = Key.from_ids(*zip(*pairs), truth)
    >>> scores = Scores.from_ids(*zip(*pairs), 0.3 + 0.1 * rng.normal(size=300) + 0.2 * truth)
    >>> calibrated = calibrate(scores, key, speakers="/")
    >>> calibrated.scores
    Scores(10 models, 30 segments, 300 trials)
    >>> calibrated.apply(Scores.from_ids(["new"], ["other"], [0.6])).values.round()
    array([4.])
    """
    chosen = []
    if hasattr(scores, "columns") or isinstance(scores, Mapping):
        titles = [str(title) for title in getattr(scores, "columns", scores)]
        chosen = [score or known_column("score", titles, remedy="name it: score={}") or "score"]
    return fuse(scores, key, labels, scores=chosen, **options)


def fuse(
    systems: Any,
    key: Any = None,
    labels: Any = None,
    *,
    scores: Sequence[str] = (),
    label: str | None = None,
    model: str | None = None,
    segment: str | None = None,
    speakers: Any = None,
    quality: Measures | None = None,
    quality_columns: Sequence[str] = (),
    folds: int = 5,
    seed: int = 0,
    prior: float = 0.5,
    ridge: float = 0.0,
    missing: Missing = "error",
) -> Calibration:
    """Fuse systems: train a map of their scores to natural log-likelihood ratios, and apply it across folds.

    Parameters
    ----------
    systems : mapping of str to Scores or array_like of shape (N,), array_like of shape (N, K), or data frame
        Scores of K systems. `Scores` are joined with the key by their ids.
    key : Key, array_like of bool or of str of shape (N,), or scores of the nontarget trials
        The truth of each trial; or scores of the nontarget trials, and then `systems` holds those of the target trials.
    labels : array_like of bool, of 0 and 1, or of str, of shape (N,), optional
        The truth of each row, in the place of the key.
    scores, label, model, segment : sequence of str, and str, optional
        Columns of a data frame: the scores of each system, the labels, and the ids if there are any; those of labels
        and ids have known names by default.
    speakers : mapping of str to str, callable, or str, or a pair of them, optional
        Speaker of each model and segment: a map, a function of the id, or a separator such as ``"/"``; in a pair, the
        first is for models and the second for segments. By default ids are taken as speakers if they look like it.
        Trials without ids need a pair of arrays of shape (N,).
    quality : mapping of str to measures, optional
        Quality measures by name, such as ``{"duration": {id: seconds}}``: a number for each model and segment id; or a
        pair of these, as `cohort_means` returns.
    quality_columns : str, or sequence of str, optional
        Columns to form from the measures, such as ``"log(min duration)"``; by default ``"min NAME"`` and ``"max NAME"``
        of each. See `evaluation.calibration.quality`.
    folds : int
        Folds of speakers, at least 3, by which `Calibration.scores` are made; 0 omits these scores, and needs no
        speakers.
    seed : int
        Seed of the assignment of speakers to folds.
    prior : float
        Target prior to train for, strictly between 0 and 1.
    ridge : float
        Penalty on half the squared weights (of columns scaled to unit variance). Above 0, scores may separate the
        classes without error.
    missing : {"error", "drop", "reject"}
        What to do with trials that have no score, or NaN; rejected ones have no part in training.

    Returns
    -------
    Calibration

    Raises
    ------
    DataError
        If the arguments do not fit together, speakers are unknown, a score or a measure is missing or not finite, or
        as `train_affine` and `cross_validate_affine`.

    Examples
    --------
    >>> scores = {"a": [2.0, 1.0, -1.0, -2.0, -1.0, 1.0], "b": [1.0, 2.0, -1.0, -1.0, -2.0, 0.5]}
    >>> fused = fuse(scores, labels=[1, 1, 1, 0, 0, 0], folds=0, ridge=0.01)
    >>> fused.systems, fused.apply({"b": [0.0, 3.0], "a": [0.0, 3.0]}).round(1)
    (('a', 'b'), array([0.1, 2.9]))
    """
    if not isinstance(systems, Mapping) and not hasattr(systems, "columns"):
        if not (folds or quality or isinstance(systems, Scores)):
            affine = train_affine(systems, key, labels, prior=prior, ridge=ridge)
            return Calibration(affine, _training=(np.ravel(systems), None))
        if np.ndim(systems) < 2:
            systems = {"score": systems}
    columns = {"label": label, "model": model, "segment": segment}
    lists, truth, maps = given_systems(
        systems,
        key,
        labels,
        scores,
        columns,
        speakers,
        n_speakers=2 * bool(folds),
        missing=missing,
    )
    values, trials = stack_systems(lists.items(), truth, missing=missing)
    warn_of_repeats(dict(zip(lists, values.T, strict=True)))
    people = None
    if folds:
        doubt = doubt_speakers(trials, **maps)
        if doubt is not None:
            remedy = "give speakers={id: speaker, ...}, a function or a separator such as '/'; folds=0 needs none"
            raise doubt.error(remedy)
        people = find_speakers(trials, **maps)
    trained = train_calibration(
        values,
        trials,
        tuple(lists),
        people,
        quality=quality,
        columns=quality_columns,
        folds=folds,
        seed=seed,
        prior=prior,
        ridge=ridge,
        missing=missing,
    )
    if folds and truth is not key and truth is not labels:
        return replace(trained, scores=trained.scores.values)
    return trained


@one_blas_thread()
def train_calibration(
    values: NDArray[np.float64],
    key: Key,
    names: tuple[str, ...],
    speakers: TrialSpeakers | None,
    *,
    quality: Measures | None = None,
    columns: Sequence[str] = (),
    folds: int = 5,
    seed: int = 0,
    prior: float = 0.5,
    ridge: float = 0.0,
    missing: Missing = "error",
) -> Calibration:
    """Train a calibration on scores that are joined with their key; see `fuse`.

    Parameters
    ----------
    values : ndarray of float64 of shape (N, K)
        Scores of each trial.
    key : Key
        The trials.
    names : tuple of str, length K
        Names of the systems.
    speakers : TrialSpeakers or None
        Speakers of each trial; None for no folds.
    quality, columns, folds, seed, prior, ridge
        See `fuse`.
    missing : {"error", "drop", "reject"}
        With "reject", scores of minus infinity were rejected, and have no part in training.
    """
    quality = quality or {}
    if isinstance(columns, str):
        columns = (columns,)
    columns = tuple(columns) or default_columns(quality)
    check_columns(quality, columns)
    rows = np.column_stack([values, columns_of_trials(quality, columns, key)])
    names = (*names, *columns)
    if names == ("score",):
        names = ()  # a calibration trained on an unnamed system applies to any system
    counted = np.arange(len(rows))
    if missing == "reject":
        counted = np.flatnonzero((values > -np.inf).all(axis=1))
    trained = rows[counted]
    truth = key.is_target[counted]
    affine = fit_affine(trained[truth], trained[~truth], prior=prior, ridge=ridge, names=names)
    crossed = None
    if speakers is None:
        warn_of_inversion(affine, len(columns))
    else:
        llr = np.full(len(rows), -np.inf)
        llr[counted] = cross_validate_affine(
            trained,
            truth,
            speakers.subset(counted),
            prior=prior,
            folds=folds,
            seed=seed,
            ridge=ridge,
            names=names,
            n_quality=len(columns),
        )
        crossed = key.scored(llr)
    ranges = {}
    for name, numbers in zip(columns, trained[:, values.shape[1] :].T, strict=True):
        ranges[name] = (float(numbers.min()), float(numbers.max()))
    return Calibration(affine, ranges, crossed, (values[:, 0], key))


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration or fusion that `Calibration.save` or the commands ``calibrate`` and ``fuse`` wrote.

    Raises
    ------
    DataError
        With the file, if it cannot be read or holds something else.
    """
    affine, quality = read_affine(path)
    return Calibration(affine, quality)
