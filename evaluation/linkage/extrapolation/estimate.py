"""Linkability at populations larger than the gallery: what each method says, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.curve import share_ends
from evaluation.linkage.extrapolation.bounds import curve_bounds
from evaluation.linkage.extrapolation.cells import Cells, first_probability, margins, rank_cells
from evaluation.linkage.extrapolation.mixtures import MAX_COMPONENTS, Family, Fit, fit_mixture, fit_npmle
from evaluation.linkage.extrapolation.tails import MIN_KEPT, beat_probabilities, fit_tail, influences
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.showing import Tabular, one_line
from spkbase.work import one_blas_thread

if TYPE_CHECKING:
    from evaluation.linkage.ranks import Ranks, TieRule

Array = NDArray[np.float64]
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
METHODS = ("normal", "beta", "tail", "npmle", "bounds")
SPANNED = ("normal", "beta", "tail")
"""Methods with a shape, whose intervals make up the span."""
LARGEST = 1e12
DEFAULT = Resampling(replicates=200)
"""200 draws, seed 0, 95 %."""
_NEGLIGIBLE = 0.05
_N_INSIDE = 24  # sizes at which the band of the bounds holds


@one_line
@dataclass(frozen=True, eq=False)
class Prediction:
    """What one method says. None of it is measured.

    Attributes
    ----------
    method : str
        Which one.
    linkability, low, high : ndarray of float64 of shape (n_sizes,)
        Estimate and the ends of its interval; the bounds have no estimate, NaN.
    inside : float
        Largest distance between the method's curve and the measured one at sizes up to the gallery; NaN for those that
        are not curves of ranks.
    note : str
        How it was made.
    """

    method: str
    linkability: Array
    low: Array
    high: Array
    inside: float
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        estimate = {} if np.isnan(self.linkability).all() else {"linkability": self.linkability}
        within = {} if np.isnan(self.inside) else {"largest_distance_from_measured": self.inside}
        return {**estimate, "low": self.low, "high": self.high, **within, "note": self.note}


@one_line
@dataclass(frozen=True, eq=False)
class Extrapolation(Tabular):
    """Linkability beyond the gallery by several methods.

    Attributes
    ----------
    sizes : ndarray of float64 of shape (n_sizes,)
        Populations, the speaker included.
    measured_to : int
        Largest gallery that was measured, the speaker included; larger sizes are extrapolated.
    predictions : dict of str to Prediction
        By method.
    level, replicates, seed, ties
        As asked for.
    n_rows, n_speakers : int
        Trials that it was made from, and speakers that were resampled.
    """

    sizes: Array
    measured_to: int
    predictions: dict[str, Prediction]
    level: float
    replicates: int
    seed: int
    ties: str
    n_rows: int
    n_speakers: int
    notes: tuple[str, ...] = field(default=())

    def span(self) -> tuple[Array, Array]:
        """Return the lowest and highest ends of the intervals of the methods that have a shape, where there are any."""
        chosen = [prediction for name, prediction in self.predictions.items() if name in SPANNED]
        if not chosen:
            empty = np.full(len(self.sizes), np.nan)
            return empty, empty.copy()
        lows, highs = zip(*((prediction.low, prediction.high) for prediction in chosen), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def at(self, sizes: ArrayLike) -> Extrapolation:
        """Return the same at some of the sizes."""
        kept = np.searchsorted(self.sizes, np.asarray(sizes, np.float64))
        parts = {
            name: replace(part, linkability=part.linkability[kept], low=part.low[kept], high=part.high[kept])
            for name, part in self.predictions.items()
        }
        return replace(self, sizes=self.sizes[kept], predictions=parts)

    def to_columns(self) -> dict[str, Any]:
        """Return a row for each method and size; nothing in it is measured."""
        parts = list(self.predictions.values())
        columns: dict[str, Any] = {
            "method": np.repeat(list(self.predictions), len(self.sizes)),
            "size": np.tile(self.sizes.astype(np.int64), len(parts)),
        }
        names = ("linkability", "low", "high")
        return columns | {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, marked as extrapolated."""
        low, high = self.span()
        return {
            "kind": "extrapolated",
            "measured_to": self.measured_to,
            "sizes": self.sizes.astype(np.int64),
            "level": self.level,
            "replicates": self.replicates,
            "seed": self.seed,
            "tie_rule": self.ties,
            "methods": {name: prediction.to_dict() for name, prediction in self.predictions.items()},
            "span": {"low": low, "high": high},
            "notes": list(self.notes),
        }


@one_blas_thread()
def extrapolate(
    ranks: Ranks,
    sizes: ArrayLike = SIZES,
    *,
    impostor_scores: ArrayLike | None = None,
    methods: Sequence[str] | None = None,
    ties: TieRule = "shared",
    resampling: Resampling = DEFAULT,
) -> Extrapolation:
    """Return linkability estimated at populations larger than the gallery.

    Parameters
    ----------
    ranks : Ranks
        Rank counts of the trials.
    sizes : array_like of float of shape (n_sizes,)
        Populations, the speaker included, 2 to 1e12; they come back rising.
    impostor_scores : array_like of float of shape (n, m), optional
        The m largest impostor scores of each trial, m at least 11, better 21; what the method ``tail`` needs.
    methods : sequence of str, optional
        Among ``normal``, ``beta``, ``tail``, ``npmle``, ``bounds``; all that the inputs allow by default.
    ties : {"shared", "strict", "lenient"}
        Impostors of the same score: any order of them is as likely, all beat the owner, or none.
    resampling : Resampling
        Of the speakers, with at least 2 replicates; `DEFAULT` if it is left out.

    Returns
    -------
    Extrapolation

    Raises
    ------
    DataError
        If a size, method or number is out of range, or there are fewer than 20 trials.

    Notes
    -----
    A trial that a random impostor beats with probability p is first among N with probability (1 - p)**(N - 1), so
    linkability at any N is a mean over the distribution of p. See docs/linkability.md for what each method takes it
    to be.
    """
    wanted = np.unique(np.asarray(sizes, np.float64))
    chosen = _checked(wanted, methods, impostor_scores is not None, resampling)
    cells = rank_cells(ranks, ties=ties)
    n_speakers = len(cells.speakers)
    weights = np.vstack([np.ones(n_speakers), resampling.weights(n_speakers)])
    data = _Data(ranks, cells, wanted, ties, weights, resampling.level)
    largest = None if impostor_scores is None else _checked_scores(impostor_scores, ranks)
    makers: dict[str, Callable[[], Prediction]] = {
        "normal": lambda: _by_mixture(data, "normal"),
        "beta": lambda: _by_mixture(data, "beta"),
        "tail": lambda: _by_tail(data, largest if largest is not None else np.empty((0, 0))),
        "npmle": lambda: _by_npmle(data),
        "bounds": lambda: _by_bounds(data),
    }
    predictions = {name: makers[name]() for name in chosen}
    first = float((ranks.span(ties)[1] == 0).mean())
    notes = [f"{100 * first:.1f} % of the trials are first in the whole gallery: their margins are hardly known"]
    notes = notes if first > 0.5 else []
    if largest is None:
        notes.append("no impostor scores, so no tail: the span leans on the shapes of normal and beta alone")
    settings = resampling.level, resampling.replicates, resampling.seed, ties
    return Extrapolation(wanted, ranks.largest_size, predictions, *settings, cells.n_rows, n_speakers, tuple(notes))


def sizes_beyond(measured_to: int, farthest: float = SIZES[-1], *, per_decade: int = 4) -> Array:
    """Return populations from the whole gallery on: even steps on a log scale, with the powers of ten among them.

    Examples
    --------
    >>> sizes_beyond(2000, 1e5, per_decade=2)
    array([  2000.,   3162.,  10000.,  31623., 100000.])
    """
    powers = np.arange(0, round(np.log10(farthest) * per_decade) + 1) / per_decade
    steps = np.append(np.round(10.0**powers), float(farthest))
    return np.unique(np.append(steps[(steps > measured_to) & (steps <= farthest)], float(measured_to)))


@dataclass(frozen=True, eq=False)
class _Data:
    """What all methods see."""

    ranks: Ranks
    cells: Cells
    sizes: Array
    ties: TieRule
    weights: Array  # (B, S) how often each speaker is drawn; the first row is the sample itself
    level: float

    @property
    def counts(self) -> Array:
        """Trials in each cell in each resample, shape (n_cells, B)."""
        return (self.weights @ self.cells.speakers).T

    @property
    def inside(self) -> Array:
        """Sizes up to the whole gallery, alike on a log scale, shape (n_inside,)."""
        most = self.ranks.largest_size
        return np.unique(np.geomspace(2, most, _N_INSIDE).round()) if most > 2 else np.array([2.0])

    def rows(self) -> Array:
        """Return the measured curve of each trial at the sizes inside, shape (n, n_inside)."""
        from evaluation.linkage.curve import linkability_by_row

        return linkability_by_row(self.ranks, self.inside.astype(np.int64), ties=self.ties)

    def speaker_rows(self) -> tuple[NDArray[np.int64], Array]:
        """Return the speaker of each row, and how often each row counts in each resample, shape (B, n)."""
        speaker = np.unique(np.asarray(self.ranks.speakers), return_inverse=True)[1]
        return speaker, self.weights[:, speaker]

    def predict(self, method: str, curves: Array, inside: float, note: str) -> Prediction:
        """Return a prediction from curves of the sample (first) and the resamples, shape (B, n_sizes)."""
        ends = np.quantile(curves[1:], [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        return Prediction(
            method, curves[0], np.minimum(ends[0], curves[0]), np.maximum(ends[1], curves[0]), inside, note
        )


def _by_mixture(data: _Data, family: Family) -> Prediction:
    """Mixtures of one, two and three components, averaged by how well BIC speaks of them."""
    table = first_probability(margins(), np.concatenate([data.sizes, data.inside]))
    counts, n_rows = data.counts, data.cells.n_rows
    alone = [
        fit_mixture(data.cells, counts[:, :1], family=family, components=components)
        for components in range(1, MAX_COMPONENTS + 1)
    ]
    # those that the sample speaks against need no resamples
    chosen = [fit for fit, trust in zip(alone, _trust(alone, n_rows)[:, 0], strict=True) if trust >= _NEGLIGIBLE]
    fits = [
        fit_mixture(data.cells, counts, family=family, components=fit.parameters.shape[1], start=fit.parameters)
        for fit in chosen
    ]
    trust = _trust(fits, n_rows)
    mean = np.einsum("kb,kbs->bs", trust, np.array([fit.weights.T @ table for fit in fits]))
    names = {"normal": "margins a mixture of normals", "beta": "probabilities of being beaten a mixture of betas"}
    parts = [f"{fit.parameters.shape[1]} ({share:.2f})" for fit, share in zip(fits, trust[:, 0], strict=True)]
    return _with_inside(
        data, family, mean, f"{names[family]}; components, and their weights by BIC: {', '.join(parts)}"
    )


def _trust(fits: Sequence[Fit], n_rows: int) -> Array:
    """Weight of each fit by BIC, shape (n_fits, B)."""
    evidence = [fit.log_likelihood - 0.5 * (3 * fit.parameters.shape[1] - 1) * np.log(n_rows) for fit in fits]
    trust = np.exp(np.array(evidence) - np.max(evidence, axis=0))
    return np.asarray(trust / trust.sum(axis=0))


def _by_npmle(data: _Data) -> Prediction:
    fit = fit_npmle(data.cells, data.counts)
    table = first_probability(margins(), np.concatenate([data.sizes, data.inside]))
    note = "no shape: the likeliest distribution on a grid; beyond the gallery it depends on where its last points fall"
    return _with_inside(data, "npmle", fit.weights.T @ table, note)


def _with_inside(data: _Data, method: str, curves: Array, note: str) -> Prediction:
    off = float(np.abs(curves[0, len(data.sizes) :] - data.rows().mean(axis=0)).max())
    return data.predict(method, curves[:, : len(data.sizes)], off, note)


def _by_tail(data: _Data, largest: Array) -> Prediction:
    """Tails of all kept impostor scores, and of the higher half of them: where they differ, the interval is wider."""
    largest = -np.sort(-largest, axis=1)
    kept = largest.shape[1] - 1
    half = kept // 2
    curves, shapes = _tail_curves(data, largest)
    prediction = data.predict("tail", curves, float("nan"), "")
    # where hardly a trial has a chance to be first, resamples of the trials show no spread
    low, high = share_ends(prediction.linkability, len(data.ranks), data.level)
    low, high = np.minimum(prediction.low, low), np.maximum(prediction.high, high)
    if half >= MIN_KEPT:
        inner, shape = _tail_curves(data, largest[:, : half + 1])
        other = data.predict("tail", inner, float("nan"), "")
        low, high = np.minimum(low, other.low), np.maximum(high, other.high)
        shapes += f" and {shape} of the {half} largest"
    note = f"generalised Pareto tail of the {kept} largest impostor scores of each trial, shape {shapes}"
    return replace(prediction, low=low, high=high, note=note)


def _tail_curves(data: _Data, largest: Array) -> tuple[Array, str]:
    """Curves of the sample and the resamples, shape (B, n_sizes); and the shape of the tail."""
    ranks = data.ranks
    tail = fit_tail(largest, ranks.impostors)
    fallback = (ranks.places(data.ties) - 0.5) / (ranks.impostors + 1)
    to_shape, to_mean = influences(tail)
    rows = data.speaker_rows()[1]
    curves = np.empty((len(rows), len(data.sizes)))
    for resample, weights in enumerate(rows):
        shape = float(np.clip(tail.shape + (weights - 1) @ to_shape, -0.9, 0.9))
        stretch = max(float(1 + (weights - 1) @ to_mean), 0.1)
        p = beat_probabilities(tail, ranks.mated, fallback, shape=shape, stretch=stretch)
        stays = np.log1p(-np.minimum(p, 1 - 1e-16))
        curves[resample] = weights @ np.exp(np.multiply.outer(stays, data.sizes - 1)) / weights.sum()
    return curves, f"{tail.shape:.3f}"


def _by_bounds(data: _Data) -> Prediction:
    """Bounds of all distributions whose curve runs inside a band that holds the true one everywhere at once."""
    from scipy.special import stdtrit

    rows = data.rows()
    curve = rows.mean(axis=0)
    weights = data.speaker_rows()[1][1:]
    resampled = weights @ rows / weights.sum(axis=1, keepdims=True)
    deviation = np.maximum(resampled.std(axis=0, ddof=1), 1 / (3 * len(rows)))
    reach = float(np.quantile((np.abs(resampled - curve) / deviation).max(axis=1), data.level))
    n_speakers = data.weights.shape[1]
    reach = max(reach, float(stdtrit(n_speakers - 1, (1 + data.level) / 2)))
    low, high = curve - reach * deviation, curve + reach * deviation
    least, most = curve_bounds(np.maximum(low, 0), np.minimum(high, 1), data.inside, data.sizes)
    note = "least and most over all distributions whose curve stays in the band of the measured one; no estimate"
    return Prediction("bounds", np.full(len(data.sizes), np.nan), least, most, float("nan"), note)


def _checked(sizes: Array, methods: Sequence[str] | None, with_scores: bool, resampling: Resampling) -> list[str]:
    if not len(sizes) or not ((sizes >= 2) & (sizes <= LARGEST)).all():
        raise DataError(f"expected populations from 2 to {LARGEST:.0e}, got {sizes.tolist()}")
    if resampling.replicates < 2:
        raise DataError(f"expected at least 2 resamples, got {resampling.replicates}")
    if methods is None:
        return [name for name in METHODS if name != "tail" or with_scores]
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise DataError(f"expected methods among {', '.join(METHODS)}, got {', '.join(unknown) or 'none'}")
    if "tail" in methods and not with_scores:
        raise DataError(
            "the method tail needs impostor scores", remedy="give the largest impostor scores of each trial"
        )
    return list(dict.fromkeys(methods))


def _checked_scores(impostor_scores: ArrayLike, ranks: Ranks) -> Array:
    largest = np.asarray(impostor_scores, np.float64)
    if largest.ndim != 2 or len(largest) != len(ranks.beaters) or largest.shape[1] <= MIN_KEPT:
        expected = f"({len(ranks.beaters)}, {MIN_KEPT + 1} or more)"
        raise DataError(f"expected impostor scores of shape {expected}, got {largest.shape}")
    if not np.isfinite(np.asarray(ranks.mated, np.float64)).all():
        raise DataError("expected finite mated scores")
    return largest
