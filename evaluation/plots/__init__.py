"""Plots, as PNG, PDF, SVG, stand-alone TeX or PGF by the extension.

`plot_det`, `plot_roc`; over the prior `plot_ece`, `plot_ape` (each normalised too) and `plot_zebra`; `plot_histogram`,
`plot_reliability`, `plot_tippett`; `plot_zoo` of speakers; `plot_privacy_utility`; `plot_conversations`;
`plot_likelihood` over the iterations of training; and, for linkability, `plot_linkability`, `plot_extrapolation`,
`plot_cmc`, `plot_speaker_grid`, `plot_jaccard` and `plot_intersections`. Each returns the figure of matplotlib.
Keywords of all plots of one pair of axes: ``path`` (files to write), ``ax`` (where to draw), ``title``, ``notes``,
``width`` and ``legend``; see `evaluation.plots.style.Canvas`. matplotlib is imported when a plot is drawn.
"""

from evaluation.plots.forensics import plot_tippett
from evaluation.plots.linkability import (
    plot_cmc,
    plot_exposure,
    plot_extrapolation,
    plot_intersections,
    plot_jaccard,
    plot_linkability,
    plot_linkability_panels,
    plot_speaker_grid,
)
from evaluation.plots.others import (
    TARGETS,
    VOICES,
    TradeOff,
    plot_conversations,
    plot_likelihood,
    plot_privacy_utility,
    plot_similarity,
    plot_zoo,
)
from evaluation.plots.scores import (
    WINDOWS,
    plot_ape,
    plot_det,
    plot_ece,
    plot_histogram,
    plot_reliability,
    plot_roc,
    plot_zebra,
)
from evaluation.plots.style import CORNERS, house_style
from spkbase.showing import escape_tex as escape

__all__ = [
    "CORNERS",
    "TARGETS",
    "VOICES",
    "WINDOWS",
    "TradeOff",
    "escape",
    "house_style",
    "plot_ape",
    "plot_cmc",
    "plot_conversations",
    "plot_det",
    "plot_ece",
    "plot_exposure",
    "plot_extrapolation",
    "plot_histogram",
    "plot_intersections",
    "plot_jaccard",
    "plot_likelihood",
    "plot_linkability",
    "plot_linkability_panels",
    "plot_privacy_utility",
    "plot_reliability",
    "plot_roc",
    "plot_similarity",
    "plot_speaker_grid",
    "plot_tippett",
    "plot_zebra",
    "plot_zoo",
]
