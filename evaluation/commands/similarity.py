"""``spkver-eval similarity``: voice similarity matrices, de-identification, gain of voice distinctiveness."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from evaluation import plots, utility
from evaluation.commands import shared, tables
from evaluation.formats import read_scores
from evaluation.trials import Key, Scores, find_speakers
from evaluation.uncertainty import Resampling
from spkbase.console import Command, choice_option, path_option
from spkbase.errors import errors_of


@click.command(cls=Command)
@path_option("--original", required=True, help="Scores of original against original speech.")
@path_option(
    "--original-anonymised", help="Scores of original against anonymised speech, for DeID."
)
@path_option("--anonymised", help="Scores of anonymised against anonymised speech, for G_VD.")
@path_option(
    *("-k", "--key", "keys"),
    multiple=True,
    help="Key: one for all, or one for each file of scores in the order above; none where both maps of speakers are "
    "given or scores hold labels.",
)
@shared.speaker_options
@choice_option(
    *("--calibrate", "calibration"),
    choices=utility.CALIBRATIONS,
    help="How scores become log-likelihood ratios. folds: trained on other speakers; pav: isotonic regression on "
    "these trials, as VoicePrivacy 2022 intends; none: they are.",
)
@click.option(
    "--symmetric", is_flag=True, help="Count each pair both ways in lists of one kind of speech."
)
@shared.resampling_options(0)
@path_option("--plot", help="Draw the matrices side by side: PNG, PDF or SVG.")
@shared.reader_options(in_order=True)
@shared.json_option
def similarity(
    original: Path,
    original_anonymised: Path | None,
    anonymised: Path | None,
    keys: tuple[Path, ...],
    maps: dict[str, Any],
    calibration: Literal["folds", "pav", "none"],
    symmetric: bool,
    resampling: Resampling,
    plot: Path | None,
    reader: shared.Reader,
    json_path: Path | None,
) -> None:
    """Compare voices before and after anonymisation by similarity matrices of speakers.

    DeID says how far anonymised voices are from their originals (1: nobody is recognised), the gain of voice
    distinctiveness G_VD how well voices can be distinguished (0 dB: as well as before). Both use
    calibrated log-likelihood ratios of one attacker; see docs/metrics.md.

    Example:
      spkver-eval similarity --original oo.txt --original-anonymised oa.txt --anonymised aa.txt -k trials
    """
    files = {"oo": original, "oa": original_anonymised, "aa": anonymised}
    given = {name: path for name, path in files.items() if path is not None}
    if len(given) < 2:
        raise click.UsageError(
            "expected --original-anonymised FILE or --anonymised FILE, or both, with --original"
        )
    if len(keys) not in (0, 1, len(given)):
        raise click.UsageError(
            f"expected a key, or one for each of {len(given)} files of scores, got {len(keys)}"
        )
    shared.warn_of_repeats(tuple(given.values()))
    matrices = {}
    notes = []
    for (name, path), key in zip(given.items(), shared.one_each(keys, len(given)), strict=True):
        with errors_of(path):
            scores, truth = _read_list(path, key, reader, maps)
            matrices[name], remarks = utility.matrix_of_voices(
                scores,
                truth,
                calibration=calibration,
                seed=resampling.seed,
                symmetric=symmetric and name != "oa",
                **maps,
            )
        notes += [f"{name}: {remark}" for remark in remarks]
    result = utility.compare_voices(matrices, resampling=resampling, notes=tuple(notes))
    if plot is not None:
        draw_similarity(result, plot)
    meaning = utility.CALIBRATIONS[calibration]
    report = {"calibration": calibration, "calibration_is": meaning} | result.to_dict()
    first = next(iter(result.matrices.values()))
    lines = [f"{len(first.speakers)} speakers; calibration: {meaning}", *result.notes]
    tables.show_rows(_rows(result), report, json_path, "\n".join(lines), form=".4f")


def _rows(result: utility.VoiceSimilarity) -> list[dict[str, Any]]:
    """Return the known measures with the known ends of their intervals."""
    columns = result.to_columns()
    rows = []
    for index, value in enumerate(columns["value"]):
        if not math.isnan(value):
            row = {name: columns[name][index] for name in ("measure", "value", "low", "high")}
            rows.append({name: cell for name, cell in row.items() if cell == cell})
    return rows


def draw_similarity(result: utility.VoiceSimilarity, path: Path) -> None:
    """Draw the matrices side by side, with the distinctiveness of each."""
    parts = []
    if result.deid.known:
        parts.append(f"DeID {result.deid.value:.3f}")
    if result.gain.known:
        parts.append(f"G_VD {result.gain.value:.2f} dB")
    title = "Voice similarity"
    if parts:
        title += f": {', '.join(parts)}"
    plots.plot_similarity(
        {name: matrix.values for name, matrix in result.matrices.items()},
        result.matrices["oo"].speakers,
        path=path,
        title=title,
        subtitles={
            name: f"D = {number.value:.3f}" for name, number in result.distinctiveness.items()
        },
    )


def _read_list(
    path: Path, key: Path | None, reader: shared.Reader, maps: dict[str, Any]
) -> tuple[Scores, Key]:
    """Read scores and their labels; without a key, labels follow from the maps if both sides have one."""
    if key is None and all(speakers is not None for speakers in maps.values()):
        scores = read_scores(path, reader.scores)
        trials = (scores.model_ids, scores.segment_ids, scores.models, scores.segments)
        speakers = find_speakers(Key(*trials, is_target=np.zeros(len(scores), bool)), **maps)
        return scores, Key(*trials, is_target=speakers.models == speakers.segments)
    read = reader.read(path, key)
    values, truth = reader.joined(read, path, key)
    return truth.scored(values), truth
