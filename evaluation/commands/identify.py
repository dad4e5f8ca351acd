"""``spkver-eval identify``: who of the enrolled speaks, or "unknown", and how often that is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from evaluation import linkage
from evaluation.commands import shared
from evaluation.formats import read_scores
from evaluation.uncertainty import Resampling
from spkbase.console import Command, choice_option, path_option
from spkbase.errors import errors_of
from spkbase.files import format_csv, write_text


@click.command(cls=Command)
@shared.scores_option
@shared.key_option
@click.option(
    "--fpir",
    "rates",
    type=shared.SHARE,
    multiple=True,
    default=(0.1, 0.01, 0.001),
    help="False-positive identification rate at which a threshold is chosen; repeatable.",
)
@click.option(
    "--threshold", type=float, help="A threshold that was chosen before, in the place of --fpir."
)
@path_option("-o", "--output", help="Write the model of each segment, or unknown, as CSV.")
@shared.reader_options(in_order=True)
@shared.speaker_options
@choice_option(
    "--bootstrap-by",
    choices=["speaker", "id"],
    help="What is resampled: speakers, or ids without a map.",
)
@shared.resampling_options()
@shared.json_option
def identify(
    scores: Path,
    key: Path | None,
    rates: tuple[float, ...],
    threshold: float | None,
    output: Path | None,
    reader: shared.Reader,
    maps: dict[str, Any],
    bootstrap_by: Literal["speaker", "id"],
    resampling: Resampling,
    json_path: Path | None,
) -> None:
    """Identify the speaker of each segment among the enrolled models, or answer "unknown".

    With a key: how often an unknown speaker is taken for an enrolled one (FPIR), and how often an enrolled one is not
    identified (FNIR), with intervals over speakers; segments without a target trial are of unknown speakers. With
    --output and --threshold: the answers, which need no key.

    Example:
      spkver-eval identify -s open.txt -k open_key.txt --segment-speakers utt2spk
      spkver-eval identify -s scores.txt --threshold 2.5 -o answers.csv
    """
    if output is not None and threshold is None:
        raise click.UsageError("the answers of --output need --threshold")
    if reader.scores.distances:
        click.echo("distances count as negative scores, and so do thresholds", err=True)
    # the base of ratios changes no answer: thresholds use the units of the file
    reader = replace(reader, scores=replace(reader.scores, llr_base=math.e))
    if output is not None and threshold is not None:
        with errors_of(scores):
            columns = linkage.answers(read_scores(scores, reader.scores), threshold)
        write_text(output, format_csv(list(columns), zip(*columns.values(), strict=True)))
        unknown = int((columns["answer"] == linkage.UNKNOWN).sum())
        text = f"{unknown:,} of {len(columns['answer']):,} segments are unknown -> {output}"
        click.echo(text, err=json_path is not None)
        if key is None:
            return
    read = reader.read(scores, key)
    reader.joined(read, scores, key)  # join first: its errors name lines of the files
    with errors_of(key or scores):
        result = linkage.identification(
            *read,
            fpir=rates,
            threshold=threshold,
            bootstrap_by=bootstrap_by,
            resampling=resampling,
            missing=reader.missing,
            **maps,
        )
    if not shared.show_json(result.to_dict(), json_path):
        click.echo(str(result))
