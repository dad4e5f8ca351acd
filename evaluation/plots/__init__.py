"""Plots, as PNG, PDF, SVG or stand-alone TeX by the extension.

`plot_det`, `plot_roc`; over the prior `plot_ece`, `plot_ape` (each normalised too) and `plot_zebra`; `plot_histogram`,
`plot_reliability`; `plot_privacy_utility`; `plot_likelihood` of a training; of linkability `plot_linkability`,
`plot_extrapolation`, `plot_cmc`, `plot_speakers`, `plot_jaccard` and `plot_intersections`. Each gives the figure of
matplotlib, draws into axes (`ax`) where they are given, and writes files where a `path` is. What a plot shows is one
description (`evaluation.plots.chart`), so that all formats show the same. matplotlib is imported when a picture is
drawn, and not for TeX.
"""

from evaluation.plots.agreement import plot_intersections, plot_jaccard
from evaluation.plots.chart import Axis, Chart, Core, Line, Look, System, look_of
from evaluation.plots.densities import plot_histogram, plot_reliability
from evaluation.plots.det import WINDOWS, DetStyle, Window, plot_det, plot_roc
from evaluation.plots.draw import EXTENSIONS, escape, house_style, render_chart
from evaluation.plots.linkability import (
    plot_cmc,
    plot_extrapolation,
    plot_linkability,
    plot_linkability_panels,
    plot_speaker_grid,
    plot_speakers,
)
from evaluation.plots.priors import PriorStyle, plot_ape, plot_ece, plot_zebra, save_profiles
from evaluation.plots.privacy_utility import TradeOff, plot_privacy_utility
from evaluation.plots.similarity import plot_similarity
from evaluation.plots.training import plot_likelihood
