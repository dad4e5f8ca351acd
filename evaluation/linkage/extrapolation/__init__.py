"""Linkability at populations larger than the gallery: never measured, estimated by methods that are compared.

`extrapolate` gives each method's estimate with its interval, `backtest` what the methods would have said of the gallery
itself, had most of it been hidden. See docs/linkability.md.
"""

from evaluation.linkage.extrapolation.backtest import HIDDEN, LEAST_LEFT, Backtest, backtest
from evaluation.linkage.extrapolation.estimate import (
    METHODS,
    SIZES,
    SPANNED,
    Extrapolation,
    Prediction,
    extrapolate,
    sizes_beyond,
)

__all__ = [
    "HIDDEN",
    "LEAST_LEFT",
    "METHODS",
    "SIZES",
    "SPANNED",
    "Backtest",
    "Extrapolation",
    "Prediction",
    "backtest",
    "extrapolate",
    "sizes_beyond",
]
