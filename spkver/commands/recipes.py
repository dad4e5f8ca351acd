"""The command ``spkver rsr2015``: the scripts of recipes/rsr2015, which are installed with the package."""

from __future__ import annotations

import click

from spkbase.console import LazyGroup

SYSTEMS = {
    "svm-gmm": ("spkver.recipes.rsr2015.svm_gmm:main", "MAP supervectors, with and without NAP, and SVMs."),
    "gmm-ubm": ("spkver.recipes.rsr2015.gmm_ubm:main", "MAP-adapted models and log-likelihood ratios."),
    "ivector": ("spkver.recipes.rsr2015.ivector:main", "i-vectors: cosine, WCCN, LDA, two covariances, PLDA in one."),
    "jfa": ("spkver.recipes.rsr2015.jfa:main", "Joint factor analysis: eigenvoices, eigenchannels, a residual."),
    "prepare": ("spkver.recipes.rsr2015.prepare:main", "Write the lists of an experiment only."),
}


@click.group(cls=LazyGroup, table=SYSTEMS, context_settings={"help_option_names": ["-h", "--help"]})
def rsr2015() -> None:
    """Systems on RSR2015 part 1, or on synthetic speech in its form: --corpus simulated."""
