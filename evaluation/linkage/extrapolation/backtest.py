"""What the methods would have said of the gallery itself, had most of it been hidden.

Impostors are hidden by chance, of each trial on its own: of its k beaters among M impostors a hypergeometric number is
left among M / hidden. Extrapolated to the whole gallery, this is compared with what was measured there. The trials are
the same on both sides, so the error shown is that of the method and of the hidden impostors, not that of few trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage.extrapolation.estimate import DEFAULT, extrapolate
from evaluation.linkage.extrapolation.tails import MIN_KEPT
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.showing import one_line

if TYPE_CHECKING:
    from evaluation.linkage.ranks import Ranks, TieRule

HIDDEN = 20
LEAST_LEFT = 10  # impostors of each trial


@one_line
@dataclass(frozen=True)
class Backtest:
    """One method at one size, predicted from few impostors and measured with all.

    Attributes
    ----------
    method : str
        Which one.
    fitted_to, size : int
        Gallery that the method saw, and the one it predicted; the owner included.
    predicted, low, high : float
        Its estimate (NaN for the bounds) and its interval.
    measured : float
        What is true of these trials.
    held : bool
        Whether the interval holds what was measured.
    """

    method: str
    fitted_to: int
    size: int
    predicted: float
    low: float
    high: float
    measured: float
    held: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return asdict(self)


def backtest(
    ranks: Ranks,
    *,
    hidden: int = HIDDEN,
    impostor_scores: ArrayLike | None = None,
    methods: Sequence[str] | None = None,
    ties: TieRule = "shared",
    resampling: Resampling = DEFAULT,
) -> list[Backtest]:
    """Return what each method says of the whole gallery when all but one impostor in `hidden` are hidden.

    Parameters
    ----------
    ranks : Ranks
        Rank counts, of at least 10 times `hidden` impostors.
    hidden : int
        How many times larger the gallery is than what the methods see, at least 2.
    impostor_scores, methods, ties, resampling
        See `extrapolate`; the seed is that of the hiding too. Of the largest impostor scores only about one in `hidden`
        is left, so the method `tail` takes part where that is at least 11 for every trial.

    Returns
    -------
    list of Backtest
        One a method, with what was measured.

    Raises
    ------
    DataError
        If there are too few impostors to hide most of them.
    """
    from evaluation.linkage.curve import linkability_at_sizes

    most = ranks.largest_size - 1
    if hidden < 2 or most // hidden < LEAST_LEFT:
        raise DataError(f"expected at least {LEAST_LEFT * max(hidden, 2)} impostors to hide most of them, got {most}")
    rng = np.random.default_rng(resampling.seed)
    left = ranks.impostors // hidden
    thinned = _thinned(ranks, left, rng)
    scores = None if impostor_scores is None else _thinned_scores(impostor_scores, hidden, rng)
    chosen = None if methods is None else [name for name in methods if name != "tail" or scores is not None]
    size = ranks.largest_size
    predicted = extrapolate(
        thinned,
        [size],
        impostor_scores=scores,
        methods=chosen,
        ties=ties,
        resampling=resampling,
    )
    measured = float(linkability_at_sizes(ranks, np.array([size]), ties=ties)[0])
    return [
        Backtest(
            name,
            predicted.measured_to,
            size,
            float(prediction.linkability[0]),
            float(prediction.low[0]),
            float(prediction.high[0]),
            measured,
            bool(prediction.low[0] <= measured <= prediction.high[0]),
        )
        for name, prediction in predicted.predictions.items()
    ]


def _thinned(ranks: Ranks, left: NDArray[np.int64], rng: np.random.Generator) -> Ranks:
    from evaluation.linkage.ranks import Ranks

    beaters = rng.hypergeometric(ranks.beaters, ranks.impostors - ranks.beaters, left)
    rest = ranks.impostors - ranks.beaters - ranks.ties
    ties = rng.hypergeometric(ranks.ties, rest, left - beaters)
    return Ranks(ranks.speakers, beaters, ties, left, ranks.mated)


def _thinned_scores(impostor_scores: ArrayLike, hidden: int, rng: np.random.Generator) -> NDArray[np.float64] | None:
    """Keep each of the largest scores with the same chance; as many for all trials as the scarcest one has."""
    scores = -np.sort(-np.asarray(impostor_scores, np.float64), axis=1)
    kept = rng.random(scores.shape) < 1 / hidden
    count = int(kept.sum(axis=1).min())
    if count <= MIN_KEPT:
        return None
    order = np.argsort(~kept, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(scores, order, axis=1)
