"""``spkver-eval identify``: who of the enrolled speaks, or "unknown", and how often that is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evaluation import linkage
from evaluation.commands import shared
from evaluation.formats import read_scores
from evaluation.trials import UnknownSpeakersError
from evaluation.uncertainty import Resampling
from spkbase.console import Command, choice_option, number_option, path_option
from spkbase.errors import errors_of
from spkbase.files import format_csv, format_table, write_text


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
@number_option("--rank", default=1, least=1, help="The speaker must be among so many models.")
@path_option("--answers", help="Write the model of each segment, or unknown, as CSV; --threshold.")
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
    rank: int,
    answers: Path | None,
    reader: shared.Reader,
    maps: dict[str, Any],
    bootstrap_by: str,
    resampling: Resampling,
    json_path: Path | None,
) -> None:
    """Identify the speaker of each segment among the enrolled models, or answer "unknown".

    With a key: how often an unknown speaker is taken for an enrolled one (FPIR), and how often an enrolled one is not
    identified (FNIR), with intervals over speakers; segments without a target trial are of unknown speakers. With
    --answers and --threshold: the answers, which need no key.

    Example:
      spkver-eval identify -s scores.txt -k key.txt --segment-speakers utt2spk
      spkver-eval identify -s scores.txt --threshold 2.5 --answers answers.csv
    """
    if answers is not None and threshold is None:
        raise click.UsageError("--answers needs --threshold")
    # thresholds are those of the file
    unit = math.log(reader.scores.llr_base)
    if reader.scores.distances:
        unit = -unit
    limit = None if threshold is None else unit * threshold
    if answers is not None and limit is not None:
        with errors_of(scores):
            found = linkage.answers(read_scores(scores, reader.scores), limit)
        rows = found.to_columns() | {"score": found.score / unit}
        write_text(answers, format_csv(list(rows), zip(*rows.values(), strict=True)))
        click.echo(f"{found.headline()} -> {answers}", err=json_path is not None)
        if key is None:
            return
    read = reader.read(scores, key)
    reader.joined(read, scores, key)  # with its errors, which name places in the files
    try:
        with errors_of(key or scores):
            result = linkage.identification(
                *read,
                fpir=rates,
                threshold=limit,
                rank=rank,
                by_id=bootstrap_by == "id",
                resampling=resampling,
                missing=reader.missing,
                **maps,
            )
    except UnknownSpeakersError as error:
        remedy = "give --model-speakers or --segment-speakers FILE, --speakers-by SIGN, or --bootstrap-by id"
        raise error.changed(error.text, remedy=remedy) from error
    points = tuple(replace(point, threshold=point.threshold / unit) for point in result.points)
    result = replace(result, points=points)
    if not shared.show_json(result.to_dict(), json_path):
        click.echo(_page(result))


def _page(result: linkage.Identification) -> str:
    """Return counts, a row for each threshold, and notes."""
    rows = []
    for point in result.points:
        rows.append(
            {
                "threshold": f"{point.threshold:.6g}",
                "FPIR (%)": point.fpir.text("%"),
                "FNIR (%)": point.fnir.text("%"),
                "of these another (%)": f"{100 * point.misidentified:.2f}",
            }
        )
    lines = [result.headline(), "", format_table(rows)]
    return "\n".join(lines + [f"note: {note}" for note in result.notes])
