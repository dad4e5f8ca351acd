"""Commands of a forensic laboratory: likelihood ratios within bounds, and the validation of a system."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from evaluation import calibration, forensics
from evaluation.commands import shared
from evaluation.formats import read_scores, write_scores
from evaluation.metrics import sort_scores
from evaluation.reports import STATEMENTS, write_validation
from evaluation.uncertainty import Resampling
from spkbase.console import Command, choice_option, path_option
from spkbase.errors import errors_of

_METHODS: dict[str, Any] = {"kernel": forensics.train_kernel, "logistic": calibration.train_affine}
_BOUNDS: dict[str, Any] = {
    "elub": forensics.elub,
    "invariance": forensics.invariance_bounds,
    "none": None,
}


@click.command(cls=Command)
@shared.scores_option
@path_option("--train-scores", required=True, help="Scores to train on, of other speakers.")
@path_option("--train-key", required=True, help="Their key.")
@choice_option("--method", choices=_METHODS, help="Kernel densities, or logistic regression.")
@choice_option("--bounds", choices=_BOUNDS, help="Bounds by the ratios of the training trials.")
@shared.reader_options()
@path_option("-o", "--output", required=True, help="Log-likelihood ratios, of base --llr-base.")
def ratios(
    scores: Path,
    train_scores: Path,
    train_key: Path,
    method: str,
    bounds: str,
    reader: shared.Reader,
    output: Path,
) -> None:
    """Turn scores into log-likelihood ratios, within the bounds that the training trials support.

    With --llr-base 10 they are written as logarithms of base 10; otherwise as natural ones.

    Example:
      spkver-eval ratios -s scores.txt --train-scores dev.txt --train-key dev_key.txt -o ratios.txt --llr-base 10
    """
    given = read_scores(scores, reader.scores)
    training = reader.read(train_scores, train_key)
    text = "are training scores too: ratios are optimistic (train on other trials)"
    shared.warn_of_own(given, training[0], text)
    classes = reader.split(training, train_scores, train_key)
    with errors_of(train_scores):
        trained = _METHODS[method](*classes)
        values = trained(given.values)
        limits = ""
        if _BOUNDS[bounds] is not None:
            bound = _BOUNDS[bounds](*map(trained, classes))
            values = bound(values)
            limits = " within [{:.2f}, {:.2f}] (log10)".format(*bound.log10)
    base = reader.scores.llr_base
    write_scores(output, replace(given, values=values / math.log(base)))
    click.echo(
        f"{len(given)} {forensics.logarithms_of(base)} of likelihood ratios{limits} -> {output}"
    )


@click.command(cls=Command)
@shared.scores_option
@shared.key_option
@shared.reader_options(in_order=True)
@shared.speaker_options
@choice_option(
    "--bootstrap-by",
    choices=["speaker", "id"],
    help="What is resampled: speakers, or ids without a map.",
)
@shared.resampling_options()
@click.option(
    "--state",
    "statements",
    type=(click.Choice(STATEMENTS), str),
    multiple=True,
    metavar="SUBJECT TEXT",
    help=f"Statement on the page; repeatable. Subjects: {', '.join(STATEMENTS)}.",
)
@path_option("-o", "--output", help="Write a page of HTML.")
@shared.json_option
def validate(
    scores: Path,
    key: Path | None,
    reader: shared.Reader,
    maps: dict[str, Any],
    bootstrap_by: Literal["speaker", "id"],
    resampling: Resampling,
    statements: tuple[tuple[str, str], ...],
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Validate likelihood ratios after the consensus of 2021: Cllr, Tippett plot, intervals, and bounds.

    The scores are natural log-likelihood ratios; with --llr-base 10 they are to base 10, which the values themselves do
    not reveal. Bounds and devPAV are always printed in base 10. docs/forensics.md says what to state.

    Example:
      spkver-eval validate -s scores.txt -k key.txt --segment-speakers utt2spk -o validation.html
    """
    read = reader.read(scores, key)
    classes = reader.split(read, scores, key)  # split first: its errors name lines of the files
    with errors_of(key or scores):
        result = forensics.validate(
            *read,
            bootstrap_by=bootstrap_by,
            resampling=resampling,
            missing=reader.missing,
            **maps,
        )
    result.notes["base"] = f"read as {forensics.logarithms_of(reader.scores.llr_base)} (--llr-base)"
    if output is not None:
        write_validation(output, result, sort_scores(*classes), statements=dict(statements))
    if not shared.show_json(result.to_dict(), json_path):
        click.echo(str(result))
