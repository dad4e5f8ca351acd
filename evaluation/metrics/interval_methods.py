"""How the interval of a metric is made: a scale, a factor of the bias to take off, and the ends of its range.

`evaluation.uncertainty.intervals` says why, and makes intervals; each row of `evaluation.metrics.table` names its
method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

HULL_FACTOR = 1 / (2 ** (2 / 3) - 1)
COST_FACTOR = (1 + HULL_FACTOR) / 2

Scale = Literal["identity", "log", "inverse root", "logit", "complement", "percentile"]

_SCALES = {
    "identity": "linear",
    "log": "log",
    "inverse root": "1 / sqrt(x)",
    "logit": "logit",
    "complement": "log(maximum - x)",
}


@dataclass(frozen=True)
class Method:
    """How the interval of a metric is made; see `evaluation.uncertainty.intervals`.

    Parameters
    ----------
    scale : {"identity", "log", "inverse root", "logit", "complement", "percentile"}
        Where the error is near to normal; the last one takes quantiles, without the rest.
    factor : float
        How much of what the resamples are off the value is taken off as bias; 0 for metrics without the hull.
    lower, upper : float
        Least and largest value of the metric; intervals are cut there.
    of_errors : bool
        The metric is a share of errors, whose interval is another where errors are few.
    """

    scale: Scale
    factor: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    of_errors: bool = False

    @property
    def name(self) -> str:
        """Return words for a table or a file."""
        if self.scale == "percentile":
            return "percentile"
        return f"t on the {_SCALES[self.scale]} scale" + (
            f", {self.factor:.2f} times the bias removed" if self.factor else ""
        )
