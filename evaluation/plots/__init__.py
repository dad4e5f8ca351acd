"""Plots, as PNG, PDF, SVG or stand-alone TeX by the extension.

`plot_det`, `plot_roc`; over the prior `plot_ece`, `plot_ape` (each normalised too) and `plot_zebra`; `plot_histogram`,
`plot_reliability`; `plot_privacy_utility`; `plot_likelihood` of a training; of linkability `plot_linkability`,
`plot_extrapolation`, `plot_cmc`, `plot_speakers`, `plot_jaccard` and `plot_intersections`. Each gives the figure of
matplotlib, draws into axes (`ax`) where they are given, and writes files where a `path` is. What a plot shows is one
description (`evaluation.plots.chart`), so that all formats show the same. matplotlib is imported when a picture is
drawn, and not for TeX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
