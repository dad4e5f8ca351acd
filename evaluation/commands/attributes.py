"""``spkver-eval attributes``: what vectors tell of speakers beside their identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.commands.options import FILE
from evaluation.commands.utility import json_option, resampling_options, show_rows
from spkbase.console import Command
from spkbase.errors import ConfigError, DataError


@click.command(cls=Command)
@click.option("-e", "--embeddings", required=True, type=FILE, help="Vectors of original speech.")
@click.option("--anonymised", type=FILE, help="Vectors of the same utterances, anonymised.")
@click.option(
    "--labels",
    "labels_path",
    required=True,
    type=FILE,
    help="The attribute: lines 'speaker label' (or utterance), as spk2gender; with --column a table with a header.",
)
@click.option("--column", "columns", multiple=True, help="Column of the table; repeatable, one attribute each.")
@click.option("--training", type=FILE, help="Vectors of other speakers to learn from; else cross-validation.")
@click.option("--training-anonymised", type=FILE, help="The same, anonymised, for the informed attacker.")
@click.option(
    "--segment-speakers",
    type=FILE,
    help="Speaker of each utterance, training too; that of the vectors' file by default.",
)
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Utterances without a label: stop, or drop and count.",
)
@click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
@resampling_options
@json_option
def attributes(
    embeddings: Path,
    anonymised: Path | None,
    labels_path: Path,
    columns: tuple[str, ...],
    training: Path | None,
    training_anonymised: Path | None,
    segment_speakers: Path | None,
    missing: str,
    allow_pickle: bool,
    json_path: Path | None,
    **draws: Any,
) -> None:
    """Compute how well sex, age, accent or another attribute is read from vectors.

    The unweighted average recall of a logistic regression for speakers that it has not learnt from: on original
    vectors (original), on anonymised ones by what was learnt from original ones (ignorant), and by what was learnt from
    anonymised ones (informed). Intervals are by a bootstrap of speakers, differences from original under shared draws.
    """
    from evaluation.embeddings import check_anonymised, read_embeddings
    from evaluation.trials import read_metadata
    from evaluation.uncertainty import Resampling
    from evaluation.utility import Sides, attribute_leakage, read_labels

    if training is None and training_anonymised is not None:
        raise ConfigError("--training-anonymised needs --training", remedy="give the vectors of original speech too")
    resampling = Resampling(**draws)
    if columns:
        tables = {column: read_metadata(labels_path, column) for column in columns}
    else:
        tables = {labels_path.stem: read_labels(labels_path, "label")}

    def read(original: Path, other: Path | None) -> Sides:
        how: dict[str, Any] = {"speakers": segment_speakers, "allow_pickle": allow_pickle}
        sides = Sides(read_embeddings(original, **how), None if other is None else read_embeddings(other, **how))
        if sides.anonymised is not None:
            check_anonymised(sides.original, sides.anonymised)
        return sides

    tested, others = read(embeddings, anonymised), None if training is None else read(training, training_anonymised)
    rows, report, notes = [], {}, []
    for name, labels in tables.items():
        settings: dict[str, Any] = {"training": others, "missing": missing, "resampling": resampling}
        try:
            found = attribute_leakage(tested, labels, **settings)
        except DataError as error:
            text = f"attribute {name!r}: {error.text}"
            raise DataError(text, file=error.file or labels_path, line=error.line, remedy=error.remedy) from error
        report[name] = found.to_dict()
        notes += [f"{name}: {note}" for note in found.notes]
        for scenario, recall in found.recalls.items():
            interval, gap = recall.interval, found.differences.get(scenario)
            row = {"attribute": name, "scenario": scenario, "UAR [%]": 100 * interval.value}
            row |= {"from": 100 * interval.low, "to": 100 * interval.high, "chance": 100 * recall.chance}
            if gap is not None:
                row |= {"less original": 100 * gap.value, "low": 100 * gap.low, "high": 100 * gap.high}
            rows.append(row | {"classes": len(recall.recalls), "speakers": recall.n_speakers})
    source = "the training set" if training is not None else "the other folds of the speakers"
    show_rows(rows, report, json_path, "\n".join([f"learnt from {source}", *notes]))
