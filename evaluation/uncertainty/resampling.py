"""Bootstrap of trials that share speakers: trials are sorted once and reweighted in each resample.

Conventions
-----------
Trials that share a speaker are not independent, so *speakers* are drawn, not trials: out of P speakers P are drawn with
replacement, speaker a comes w_a times, and the same draw serves models and segments. A trial between two speakers a and
b counts w_a w_b times, once for each pair of their copies. A trial within one speaker (every target trial) counts w_a
times, not w_a**2: a copy of a speaker meets itself; one copy against another would be a target trial of two different
persons, which the sample does not hold. So the weighted mean of target scores is the usual bootstrap of P independent
speakers, and that of nontarget scores the bootstrap of a two-sample statistic of them [1]_, [2]_, which is consistent
where speakers differ and errs on the safe side where only pairs do [2]_.

By trial means: each trial of a class is drawn independently, as many as the class has. It is far too narrow wherever
trials share speakers; see docs/uncertainty.md.

Resamples depend on the seed and on the number of their block only, never on the number of workers.

Out of n units (speakers or trials) n are drawn with replacement, by a generator that the caller gives. Long bootstraps
are made in blocks, each with its `block_generator`, so that their draws do not depend on the number of workers.

References
----------
.. [1] P. Bickel and D. Freedman, "Some asymptotic theory for the bootstrap", Annals of Statistics 9, 1981.
.. [2] A. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007.
.. [3] J. Wu et al., "Data dependency on measurement uncertainties in speaker recognition evaluation", NIST, 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics import SortedScores
from evaluation.trials import TrialSpeakers, check_index, numbers_of, truth_of
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkbase.work import Work, chunk_bounds

BLOCK = 25
"""Resamples that share a generator."""

MOST_RESAMPLES = 1_000_000
"""Limit of resamples; more change no displayed digit and may not fit into memory."""

Statistic = Callable[[SortedScores], Mapping[str, float]]
"""What is resampled: metrics by name, of sorted scores that hold both classes."""

_MAX_LOST = 0.5


@dataclass(frozen=True)
class Resampling:
    """Number of resamples for intervals, their seed, and the confidence level.

    Attributes
    ----------
    resamples : int
        Number of resamples; 0 for no intervals.
    seed : int
        Seed of the draws, not negative.
    level : float
        Confidence level of the intervals.

    Raises
    ------
    DataError
        If a number is out of range.
    """

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.resamples == 1 or not 0 <= self.resamples <= MOST_RESAMPLES or self.seed < 0:
            text = f"expected 0, or 2 to {MOST_RESAMPLES:,} resamples and a seed from 0"
            raise DataError(f"{text}, got {self.resamples} and {self.seed}")
        if not 0 < self.level < 1:
            raise DataError(f"expected a level between 0 and 1, got {self.level}")

    def text(self, units: str) -> str:
        """Return a note on intervals, with the number and name of the resampled units."""
        return f"{100 * self.level:g} % confidence intervals by {self.resamples} resamples of {units}, seed {self.seed}"

    def weights(self, n_units: int) -> NDArray[np.float64]:
        """Return all draws of one generator with this seed, shape (resamples, n_units); see `draw_counts`."""
        return draw_counts(n_units, self.resamples, np.random.default_rng(self.seed))


DEFAULT = Resampling()
NO_INTERVALS = Resampling(0)


def draw_counts(
    n_units: int, resamples: int, rng: np.random.Generator, *, one_by_one: bool = False
) -> NDArray[np.float64]:
    """Return how often each unit occurs in each resample.

    Parameters
    ----------
    n_units : int
        Number of units, and of draws in a resample.
    resamples : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of the draws; it is advanced.
    one_by_one : bool
        Draw the units one by one and count them, instead of drawing multinomial counts. Both are the same bootstrap
        with different random numbers; each kind of result keeps its first choice, so that published numbers are
        reproducible.

    Returns
    -------
    ndarray of float64 of shape (resamples, n_units)
        Each row sums to `n_units`.

    Examples
    --------
    >>> draw_counts(4, 3, np.random.default_rng(0)).sum(axis=1)
    array([4., 4., 4.])
    """
    if not one_by_one:
        return rng.multinomial(n_units, np.full(n_units, 1 / n_units), resamples).astype(np.float64)
    counts = np.empty((resamples, n_units))
    for resample in counts:
        resample[:] = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
    return counts


def block_generator(seed: int, block: int) -> np.random.Generator:
    """Return the generator of a block of resamples, which depends only on the seed and the block's number."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))


@one_line
@dataclass(frozen=True, eq=False)
class Sample:
    """Trials in the order of their scores, with the units that resampling draws.

    Attributes
    ----------
    order : ndarray of int64 of shape (N,)
        Row of each trial in the original list.
    scores : ndarray of float64 of shape (N,)
        Scores in ascending order.
    is_target : ndarray of bool of shape (N,)
        Whether each is a target trial.
    first, second : ndarray of int64 of shape (N,)
        The units that each trial depends on: its weight is the product of theirs. If it depends on only one unit, the
        second is `n_units`, whose weight is 1.
    n_units : int
        Number of units (speakers or trials) in the table to which the codes refer.
    n_target_units : int
        If the units are trials: number of target trials, which come first; 0 if they are speakers.
    """

    order: np.ndarray
    scores: np.ndarray
    is_target: np.ndarray
    first: np.ndarray
    second: np.ndarray
    n_units: int
    n_target_units: int = 0

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def by_trial(self) -> bool:
        """Whether the units are trials, not speakers."""
        return self.n_target_units > 0

    @property
    def n_least(self) -> int:
        """Number of trials of the rarer class."""
        n_target = int(self.is_target.sum())
        return min(n_target, len(self) - n_target)

    @cached_property
    def n_effective(self) -> int:
        """Number of units that the rarer class depends on."""
        used = [
            np.union1d(self.first[side], self.second[side])
            for side in (self.is_target, ~self.is_target)
        ]
        return min(int((units < self.n_units).sum()) for units in used)

    def subset(self, rows: np.ndarray) -> Sample:
        """Return only the trials of a mask of shape (N,); the units stay the same, so that draws can be shared."""
        names = ("order", "scores", "is_target", "first", "second")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def runs(self, weights: np.ndarray | None = None) -> SortedScores:
        """Return the runs of equal scores under weights of the units, (n_units + 1,).

        The last is 1, and so are all by default.
        """
        if weights is None:
            counts = np.ones(len(self))
        else:
            counts = weights.take(self.first)
            if not self.by_trial:
                counts *= weights.take(self.second)
        # in a draw, three in five nontarget trials have weight 0
        rows = np.flatnonzero(counts != 0)
        counts = counts.take(rows)
        scores = self.scores.take(rows)
        target = counts * self.is_target.take(rows)
        is_new = np.ones(len(rows), bool)
        np.not_equal(scores[1:], scores[:-1], out=is_new[1:])
        if not is_new.all():
            starts = np.flatnonzero(is_new)
            scores = scores.take(starts)
            target = np.add.reduceat(target, starts)
            counts = np.add.reduceat(counts, starts)
        return SortedScores(scores, target, counts - target)


def sample_of(
    scores: ArrayLike, is_target: ArrayLike, speakers: TrialSpeakers | None = None
) -> Sample:
    """Return trials sorted for a bootstrap.

    Parameters
    ----------
    scores : array_like of float of shape (N,)
        Scores, possibly infinite.
    is_target : array_like of bool of shape (N,)
        Whether each is a target trial.
    speakers : TrialSpeakers, optional
        Speakers of each trial, in the same order: the joint speaker bootstrap. Without them, single trials are drawn.

    Raises
    ------
    DataError
        If shapes disagree, a score is NaN, a class has no trial, or there are fewer than 2 speakers on a side.

    Examples
    --------
    >>> sample_of([2.0, 0.0, 1.0], [True, False, False]).runs().target.tolist()
    [0.0, 0.0, 1.0]
    """
    check_index(scores=scores, labels=is_target)
    scores = numbers_of(scores, "scores")
    is_target = truth_of(is_target)
    if is_target.shape != scores.shape:
        raise DataError(
            f"expected a label for each of {len(scores)} scores, got shape {is_target.shape}"
        )
    n_target = int(is_target.sum())
    if not 0 < n_target < len(scores):
        raise DataError(
            f"expected trials of both classes, got {n_target} target trials among {len(scores)}"
        )
    order = np.argsort(scores, kind="stable")
    if speakers is None:
        # target trials come first, so that each class has its own range of weights
        units = np.where(is_target, np.cumsum(is_target) - 1, n_target + np.cumsum(~is_target) - 1)[
            order
        ]
        alone = np.full(len(scores), len(scores))
        return Sample(order, scores[order], is_target[order], units, alone, len(scores), n_target)
    if len(speakers) != len(scores):
        raise DataError(
            f"expected the speakers of {len(scores)} trials, got those of {len(speakers)}"
        )
    first = speakers.models[order].astype(np.intp)
    second = speakers.segments[order].astype(np.intp)
    n_units = len(speakers.names)
    sample = Sample(
        order,
        scores[order],
        is_target[order],
        first,
        np.where(first == second, n_units, second),
        n_units,
    )
    if sample.n_effective < 2:
        remedy = "give the speakers of the segments, or resample by trial"
        text = f"expected at least 2 speakers in the trials of each class, got {sample.n_effective}"
        raise DataError(text, remedy=remedy)
    return sample


def bootstrap(
    samples: Sample | Sequence[Sample],
    statistic: Statistic,
    resampling: Resampling = DEFAULT,
    *,
    jobs: int | None = 1,
) -> list[dict[str, np.ndarray]]:
    """Return metrics recomputed on resampled trials.

    Parameters
    ----------
    samples : Sample or sequence of Sample
        Several samples share each draw, as needed for systems on the same trials or for groups of trials: their units
        belong to the same table.
    statistic : callable
        Computes metrics by name from runs. For several workers it must be importable.
    resampling : Resampling
        Number of resamples, at least two, and their seed.
    jobs : int, optional
        Number of workers; the result does not depend on it. All cores if None.

    Returns
    -------
    list of dict of str to ndarray of float64 of shape (resamples,)
        For each sample the resampled values of each metric; NaN where a resample has no trial of a class.

    Raises
    ------
    DataError
        If samples do not share their units, a number is out of range, or a class has no trial in more than half of the
        resamples.
    """
    if isinstance(samples, Sample):
        samples = [samples]
    else:
        samples = list(samples)
    if not resampling.resamples:
        raise DataError("expected at least 2 resamples, got none")
    kinds = {(sample.n_units, sample.by_trial) for sample in samples}
    if len(kinds) != 1:
        raise DataError(
            f"expected samples with the same units, got {sorted(kinds)} (number of units, whether they are trials)"
        )
    work = partial(_replicate, samples, statistic, resampling.seed)
    blocks = [
        (number, stop - start)
        for number, (start, stop) in enumerate(chunk_bounds(resampling.resamples, BLOCK))
    ]
    done = list(Work(jobs).map(work, blocks, processes=True, description="resampling"))
    return [
        _columns_of(list(chain.from_iterable(blocks_of_sample)))
        for blocks_of_sample in zip(*done, strict=True)
    ]


def _columns_of(rows: Sequence[Mapping[str, float] | None]) -> dict[str, np.ndarray]:
    """Return each metric over the resamples: NaN where a class is empty, an error if most resamples lack one."""
    kept = [row for row in rows if row is not None]
    if len(kept) < (1 - _MAX_LOST) * len(rows):
        text = f"{len(rows) - len(kept)} of {len(rows)} resamples hold no trial of one class"
        raise DataError(
            text,
            remedy="too few speakers for a bootstrap: resample trials, or ask for no intervals",
        )
    blank = dict.fromkeys(kept[0], np.nan)
    columns = {}
    for name in blank:
        columns[name] = np.array([(row or blank)[name] for row in rows], dtype=np.float64)
    return columns


def draw(sample: Sample, *, seed: int, block: int, size: int) -> np.ndarray:
    """Return how often each unit occurs in each resample of a block.

    Parameters
    ----------
    sample : Sample
        Sample with the units.
    seed, block : int
        Seed of the bootstrap, and number of the block.
    size : int
        Number of resamples in the block.

    Returns
    -------
    ndarray of float64 of shape (size, n_units + 1)
        How often each unit occurs; the last column is 1.
    """
    rng = block_generator(seed, block)
    weights = np.ones((size, sample.n_units + 1))
    if not sample.by_trial:
        weights[:, :-1] = draw_counts(sample.n_units, size, rng)
        return weights
    n_target = sample.n_target_units
    for resample in weights:
        for start, count in ((0, n_target), (n_target, sample.n_units - n_target)):
            resample[start : start + count] = draw_counts(count, 1, rng, one_by_one=True)
    return weights


def check_same_trials(base: Sample, other: Sample, base_name: str, name: str) -> None:
    """Check that samples have the same trials, compared as a set of (class, units)."""
    remedy = "score the same trials with each system"
    if len(base) != len(other) or base.n_units != other.n_units or base.by_trial != other.by_trial:
        counts = f"{len(base)} and {len(other)}"
        raise DataError(
            f"expected the same trials of {base_name!r} and {name!r}, got {counts}", remedy=remedy
        )
    columns = [
        np.lexsort((sample.second, sample.first, sample.is_target)) for sample in (base, other)
    ]
    for field in ("first", "second", "is_target"):
        if (getattr(base, field)[columns[0]] != getattr(other, field)[columns[1]]).any():
            raise DataError(
                f"expected the same trials of {base_name!r} and {name!r}, but they differ",
                remedy=remedy,
            )


def _replicate(
    samples: list[Sample], statistic: Statistic, seed: int, block: tuple[int, int]
) -> list[list[Mapping[str, float] | None]]:
    """Compute a block of resamples: for each sample the metrics of each resample, None where a class is empty."""
    number, size = block
    rows: list[list[Mapping[str, float] | None]] = [[] for _ in samples]
    for weights in draw(samples[0], seed=seed, block=number, size=size):
        for sample, values in zip(samples, rows, strict=True):
            runs = sample.runs(weights)
            if runs.n_target > 0 and runs.n_nontarget > 0:
                values.append(statistic(runs))
            else:
                values.append(None)
    return rows
