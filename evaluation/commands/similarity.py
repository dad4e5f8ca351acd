"""``spkver-eval similarity``: voice similarity matrices, de-identification, gain of voice distinctiveness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from evaluation import plots, utility
from evaluation.commands import shared
from evaluation.formats import read_scores
from evaluation.trials import Key, Scores, read_speakers
from evaluation.uncertainty import Resampling
from spkbase.console import Command, choice_option, path_option
from spkbase.errors import DataError, few
from spkbase.files import format_table


@click.command(cls=Command)
@path_option("--original", required=True, help="Scores of original against original speech.")
@path_option("--original-anonymised", help="Scores of original against anonymised speech, for DeID.")
@path_option("--anonymised", help="Scores of anonymised against anonymised speech, for G_VD.")
@path_option(
    *("-k", "--key", "keys"),
    multiple=True,
    help="Key: one for all, or one for each file of scores in the order above; none where both maps of speakers are "
    "given or scores hold labels.",
)
@shared.model_speakers_option
@shared.segment_speakers_option
@choice_option(
    *("--calibrate", "calibration"),
    of=utility.CALIBRATIONS,
    help="How scores become log-likelihood ratios. folds: learnt from other speakers' trials; pav: by isotonic "
    "regression on these very trials, as VoicePrivacy 2022 means to; none: they are already.",
)
@click.option("--symmetric", is_flag=True, help="Lists of one kind of speech hold each pair once: count it both ways.")
@shared.resampling_options(0)
@path_option("--plot", help="Draw the matrices side by side: PNG, PDF or SVG.")
@shared.reader_options()
@shared.json_option
def similarity(
    original: Path,
    original_anonymised: Path | None,
    anonymised: Path | None,
    keys: tuple[Path, ...],
    model_speakers: Path | None,
    segment_speakers: Path | None,
    calibration: str,
    symmetric: bool,
    resampling: Resampling,
    plot: Path | None,
    reader: shared.Reader,
    json_path: Path | None,
) -> None:
    """Compare voices before and after anonymisation by similarity matrices of speakers.

    DeID says how far anonymised voices are from their originals (1: nobody is known again), the gain of voice
    distinctiveness G_VD how well they can be told apart from each other (0 dB: as well as before). Both rest on
    calibrated log-likelihood ratios of one attacker; see docs/metrics.md.
    """
    files = {"oo": original, "oa": original_anonymised, "aa": anonymised}
    given = {name: path for name, path in files.items() if path is not None}
    if len(given) < 2:
        raise click.UsageError("expected --original-anonymised FILE or --anonymised FILE, or both, beside --original")
    if len(keys) not in (0, 1, len(given)):
        raise click.UsageError(f"expected a key, or one for each of {len(given)} files of scores, got {len(keys)}")
    speakers = [None if path is None else read_speakers(path) for path in (model_speakers, segment_speakers)]
    voices = utility.Voices(calibration, resampling.seed, *speakers)  # type: ignore[arg-type]  # click checked the choice
    matrices, notes = {}, []
    of_each: tuple[Path | None, ...] = keys * len(given) if len(keys) == 1 else keys or (None,) * len(given)
    for (name, path), key in zip(given.items(), of_each, strict=True):
        try:
            how = replace(voices, symmetric=symmetric and name != "oa")
            matrices[name], found = utility.matrix_of_voices(*_read(path, key, reader, voices), how)
        except DataError as error:
            raise DataError(error.text, file=error.file or path, line=error.line, remedy=error.remedy) from error
        notes += [f"{name}: {note}" for note in found]
    result = utility.compare_voices(matrices, resampling=resampling, notes=tuple(notes))
    if plot is not None:
        draw_similarity(result, plot)
    report = {"calibration": calibration, "calibration_is": utility.CALIBRATIONS[voices.calibration]} | result.to_dict()
    if not shared.show_json(report, json_path):
        click.echo(format_similarity(result, utility.CALIBRATIONS[voices.calibration]))


def format_similarity(result: utility.VoiceSimilarity, calibration: str) -> str:
    """Return DeID and G_VD as a table, with what they rest on below."""
    columns = result.to_columns()
    rows = [
        {"measure": name, "value": value} | ({} if low != low else {"low": low, "high": high})
        for name, value, low, high in zip(
            columns["measure"], columns["value"], columns["low"], columns["high"], strict=True
        )
        if value == value
    ]
    wide = any("low" in row for row in rows)
    forms = {"measure": "", "value": ".4f"} | ({"low": ".4f", "high": ".4f"} if wide else {})
    speakers = f"{len(next(iter(result.matrices.values())).speakers)} speakers"
    return "\n".join([format_table(rows, forms), "", f"{speakers}; calibration: {calibration}", *result.notes])


def draw_similarity(result: utility.VoiceSimilarity, path: Path) -> None:
    """Draw the matrices side by side, with how distinct the voices of each are."""
    parts = [f"DeID {result.deid.value:.3f}"] if result.deid.known else []
    parts += [f"G_VD {result.gain.value:.2f} dB"] if result.gain.known else []
    names = {name: plots.VOICES[name][0] for name in result.matrices}
    plots.plot_similarity(
        {names[name]: matrix.values for name, matrix in result.matrices.items()},
        result.matrices["oo"].speakers,
        path=path,
        title="Voice similarity" + (f": {', '.join(parts)}" if parts else ""),
        subtitles={names[name]: f"D = {number.value:.3f}" for name, number in result.distinctiveness.items()},
        axes_names={names[name]: plots.VOICES[name][1:] for name in result.matrices},
    )


def _read(path: Path, key: Path | None, reader: shared.Reader, voices: utility.Voices) -> tuple[Scores, Key]:
    """Read scores and their key; where both maps are given and no key, same names are target trials."""
    if key is not None or voices.model_speakers is None or voices.segment_speakers is None:
        return reader.read(path, key)
    scores = read_scores(path, reader.scores)
    sides = (
        _named(scores.model_ids, voices.model_speakers, "model")[scores.models],
        _named(scores.segment_ids, voices.segment_speakers, "segment")[scores.segments],
    )
    columns = scores.model_ids, scores.segment_ids, scores.models, scores.segments
    return scores, Key(*columns, is_target=sides[0] == sides[1])


def _named(ids: np.ndarray, speakers: Mapping[str, str], what: str) -> np.ndarray:
    absent = [name for name in ids.tolist() if name not in speakers]
    if absent:
        raise DataError(f"{len(absent)} of {len(ids)} {what}s without a speaker: {few(absent, repr)}")
    return np.array([speakers[name] for name in ids.tolist()], object)
