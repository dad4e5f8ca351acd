"""Plots, as PNG, PDF, SVG or stand-alone TeX by the extension.

`plot_det`, `plot_roc`; over the prior `plot_ece`, `plot_ape` (each normalised too) and `plot_zebra`; `plot_histogram`,
`plot_reliability`; `plot_privacy_utility`; `plot_likelihood` of a training; of linkability `plot_linkability`,
`plot_extrapolation`, `plot_cmc`, `plot_speakers` and `plot_jaccard`. What a plot shows is one description
(`evaluation.plots.chart`), so that all formats show the same. matplotlib is imported when a picture is drawn, and not
for TeX.
"""

from evaluation.plots.agreement import plot_jaccard
from evaluation.plots.chart import System
from evaluation.plots.densities import plot_histogram, plot_reliability
from evaluation.plots.det import WINDOWS, Window, plot_det, plot_roc
from evaluation.plots.draw import EXTENSIONS
from evaluation.plots.linkability import plot_cmc, plot_extrapolation, plot_linkability, plot_speakers
from evaluation.plots.priors import plot_ape, plot_ece, plot_zebra
from evaluation.plots.privacy_utility import TradeOff, plot_privacy_utility
from evaluation.plots.training import plot_likelihood

__all__ = [
    "EXTENSIONS",
    "WINDOWS",
    "System",
    "TradeOff",
    "Window",
    "plot_ape",
    "plot_cmc",
    "plot_det",
    "plot_ece",
    "plot_extrapolation",
    "plot_histogram",
    "plot_jaccard",
    "plot_likelihood",
    "plot_linkability",
    "plot_privacy_utility",
    "plot_reliability",
    "plot_roc",
    "plot_speakers",
    "plot_zebra",
]
