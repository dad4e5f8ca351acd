"""The validation of a forensic system on one page: figures, two plots, and statements of the laboratory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from evaluation import plots
from evaluation.metrics import Evaluation, SortedScores
from evaluation.reports.pictures import picture
from evaluation.reports.templates import fill
from evaluation.uncertainty import Interval, columns_of
from spkbase.errors import DataError, few
from spkbase.files import write_text

STATEMENTS = {
    "system": "The system, with its version",
    "hypotheses": "The hypotheses that a ratio compares",
    "population": "The relevant population",
    "conditions": "The conditions of the case, and how the recordings reflect them",
    "calibration": "The data that the system was trained and calibrated with",
    "criterion": "What makes the system valid, as stated before the validation",
    "decision": "The decision",
}
"""What a laboratory has to state beside the figures, since no scores can tell it."""


def write_validation(
    path: str | Path,
    result: Evaluation,
    scores: SortedScores,
    *,
    statements: Mapping[str, str] | None = None,
    title: str = "Validation of likelihood ratios",
) -> None:
    """Write the page of a validation; the same input gives the same bytes.

    Parameters
    ----------
    path : path
        The HTML file.
    result : Evaluation
        See `evaluation.forensics.validate`.
    scores : SortedScores
        The natural LLRs that were validated, for the plots; see `evaluation.metrics.sort_scores`.
    statements : mapping of str to str, optional
        Statements of the laboratory by the names in `STATEMENTS`; the others are left open on the page.
    title : str, optional
        Heading of the page.

    Raises
    ------
    DataError
        If a statement is unknown or the file cannot be written.
    """
    stated = dict(statements or {})
    unknown = sorted(stated.keys() - STATEMENTS.keys())
    if unknown:
        raise DataError(f"expected statements on {', '.join(STATEMENTS)}, got {few(unknown)}")
    values = result.values()
    figures = []
    for name, column in columns_of(result.metrics).items():
        ends = result.intervals.get(name, (math.nan, math.nan))
        figures.append((column.heading, Interval(values[name], *ends).text(column.form)))
    systems = [("ratios", scores)]
    ece = "Empirical cross-entropy"
    drawn = [
        picture("tippett", plots.plot_tippett, systems, title="Tippett plot", name="tippett"),
        picture("ece", plots.plot_ece, systems, title=ece, name="ece"),
    ]
    page = {"title": title, "result": result, "figures": figures, "drawn": drawn}
    write_text(path, fill("validation.html.j2", page | {"stated": stated, "asked": STATEMENTS}))
