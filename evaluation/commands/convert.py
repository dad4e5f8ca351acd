"""The commands that make files of scores out of files of scores: convert, normalise, calibrate, fuse."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from evaluation import formats
from evaluation.commands import shared
from evaluation.trials import Key, Scores, align, read_speakers
from spkbase.console import FILE, Command, Function, choice_option, number_option, path_option, together
from spkbase.errors import DataError

logger = logging.getLogger(__name__)

_READERS: dict[formats.Kind, Callable[..., Any]] = {
    "scores": formats.read_scores,
    "key": formats.read_key,
    "trials": formats.read_trials,
}
_WRITERS: dict[formats.Kind, Callable[..., None]] = {
    "scores": formats.write_scores,
    "key": formats.write_key,
    "trials": formats.write_trials,
}
_out_option = path_option("-o", "--output", required=True, help="Scores to write; the extension says how.")
_TRAINED = "are trained on too: they look better than new ones will"


def _training_options(command: Function) -> Function:
    ridge = "Penalty on the weights; above 0 it is possible to train on scores that separate the classes without error."
    options = [
        path_option("--train-key", help="Key of the scores to train on."),
        path_option("--calibration", help="Apply this saved calibration instead of training one."),
        number_option("--seed", help="Deals the speakers into folds."),
        shared.model_speakers_option,
        shared.segment_speakers_option,
        click.option("-p", "--prior", default="0.5", help="Target prior to train for."),
        click.option("--ridge", type=click.FloatRange(min=0), default=0.0, help=ridge),
        path_option("--save", help="Write the calibration to this JSON file."),
        shared.reader_options(),
    ]
    return together(options, command)


# which extension is for which format, the two most usual ones of each
_EXTENSIONS = "; ".join(
    f"{' or '.join(suffix or 'none' for suffix in row.suffixes[:2])} for {row.title or row.name}"
    for row in reversed(formats.FORMATS)
    if row.suffixes
)
_OF_KEYS = ", ".join(formats.KEYS.keys() - formats.SCORES)
_MATLAB = f"{formats.MATLAB.name}, {formats.MATLAB.title}"


@click.command(
    cls=Command,
    help="Convert a file of scores, a key or a list of trials.\n\n"
    f"The content of SOURCE says what it is, the extension of DESTINATION what to write: {_EXTENSIONS}; each with "
    ".gz behind it too. --to writes the text of another tool.",
)
@click.argument("kind", type=click.Choice(formats.KINDS))
@click.argument("source", type=FILE)
@click.argument("destination", type=FILE)
@click.option(
    "--to",
    "order",
    help=f"Order of the columns of a text: {', '.join(formats.SCORES)} (a key: {_OF_KEYS} too), or roles such as "
    f"{','.join(formats.SCORES['voxsrc'])}; or {_MATLAB}, or another format by its name.",
)
@path_option("-k", "--key", "key_path", help="The truth of scores, for orders that hold it.")
@path_option("--segment-speakers", help="Who speaks in each segment, as in utt2spk, for bob's orders.")
@shared.reader_options()
def convert(
    kind: formats.Kind,
    source: Path,
    destination: Path,
    order: str | None,
    key_path: Path | None,
    segment_speakers: Path | None,
    reader: shared.Reader,
) -> None:
    """Convert a file of scores, a key or a list of trials between formats."""
    own_formats = reader.scores.formats
    found = _READERS[kind](source, reader.scores if kind == "scores" else reader.key)
    form = None if order is None else formats.format_named(order, own_formats)
    if order is None:
        _WRITERS[kind](destination, found, formats=own_formats)
    elif form is not None:
        if kind not in form.writes():
            raise click.UsageError(f"the {form.name} form holds {' and '.join(form.writes())} only")
        formats.write_as(destination, kind, found, form)
    elif kind == "trials":
        raise click.UsageError("a list of trials has one order: --to is for scores and keys")
    else:
        key = None if key_path is None else formats.read_key(key_path, reader.key)
        speakers = None if segment_speakers is None else read_speakers(segment_speakers)
        formats.write_text_list(destination, found, order, key=key, speakers=speakers)


@click.command(cls=Command)
@shared.scores_option
@_out_option
@choice_option(
    *("-m", "--method"),
    of=["z", "t", "s", "as", "closed-set"],
    required=True,
    help="z: by each model's cohort; t: by each segment's; s: by both; as: by the highest scores of both; closed-set:"
    " less each segment's mean over the enrolled.",
)
@path_option("--model-cohort", help="Scores 'model cohort score' of each model against the cohort.")
@path_option("--segment-cohort", help="Scores 'cohort segment score' of the cohort against each segment.")
@number_option("--top", default=300, least=2, help="Cohort scores that 'as' takes a side.")
@shared.reader_options(key=False)
def normalise(
    scores: Path,
    output: Path,
    method: str,
    model_cohort: Path | None,
    segment_cohort: Path | None,
    top: int,
    reader: shared.Reader,
) -> None:
    """Normalise scores by a cohort of impostors."""
    from evaluation.calibration import closed_set_scores, s_norm, t_norm, z_norm

    given = formats.read_scores(scores, reader.scores)
    needed = {"model": (model_cohort, "zsas"), "segment": (segment_cohort, "tsas")}
    cohorts = {}
    for side, (path, methods) in needed.items():
        if path is None and method in methods:
            raise click.UsageError(f"method {method} needs --{side}-cohort")
        if path is not None and method in methods:
            cohorts[side] = formats.read_scores(path, reader.scores)
            text = "stand in the cohort too: a score is normalised by itself (give scores of others)"
            shared.warn_of_own(given, cohorts[side], text)
    if method == "closed-set":
        result = closed_set_scores(given)
    elif method == "z":
        result = z_norm(given, cohorts["model"])
    elif method == "t":
        result = t_norm(given, cohorts["segment"])
    else:
        result = s_norm(given, cohorts["model"], cohorts["segment"], top=top if method == "as" else None)
    formats.write_scores(output, result, formats=reader.scores.formats)
    click.echo(f"{len(result)} scores -> {output}")


@click.command(cls=Command)
@shared.scores_option
@_out_option
@path_option("--train-scores", help="Scores to train on.")
@path_option("-k", "--key", help="Key of the scores: calibrate them by trials of other speakers (folds).")
@number_option("--folds", default=5, least=3, help="Folds of speakers.")
@_training_options
def calibrate(
    scores: Path,
    output: Path,
    train_scores: Path | None,
    train_key: Path | None,
    calibration: Path | None,
    key: Path | None,
    folds: int,
    seed: int,
    model_speakers: Path | None,
    segment_speakers: Path | None,
    prior: str,
    ridge: float,
    save: Path | None,
    reader: shared.Reader,
) -> None:
    """Turn scores into natural log-likelihood ratios by an affine map (logistic regression).

    Three ways: train on other scores (--train-scores, --train-key), apply a saved calibration (--calibration), or
    cross-validate by speaker on the scores' own key (-k), which then says which trials are written.
    """
    from evaluation.calibration import apply_affine, load_affine, save_affine, train_affine

    ways = [train_scores is not None and train_key is not None, calibration is not None, key is not None]
    if sum(ways) != 1 or (train_scores is None) != (train_key is None):
        raise click.UsageError("give --train-scores and --train-key, or --calibration, or -k for cross-validation")
    given = formats.read_scores(scores, reader.scores)
    if key is not None:
        if save is not None:
            raise click.UsageError("cross-validation trains several calibrations: there is none to --save")
        truth, people = formats.read_key(key, reader.key), (model_speakers, segment_speakers)
        chosen = {"prior": shared.parse_prior(prior), "folds": folds, "seed": seed, "ridge": ridge}
        result = _cross_validated(align(given, truth), truth, people, **chosen)
        formats.write_scores(output, result, formats=reader.scores.formats)
        return
    if train_scores is not None and train_key is not None:
        read = reader.read(train_scores, train_key)
        target, nontarget = reader.split(read, train_scores, train_key)
        shared.warn_of_own(given, read[0], f"{_TRAINED} (train on other trials, or cross-validate: -k KEY)")
        affine = train_affine(target, nontarget, prior=shared.parse_prior(prior), ridge=ridge)
    elif calibration is not None:
        affine = load_affine(calibration)
    if save is not None:
        save_affine(save, affine)
    formats.write_scores(
        output, replace(given, values=apply_affine(affine, given.values)), formats=reader.scores.formats
    )


def _cross_validated(scores: np.ndarray, key: Key, people: tuple[Path | None, Path | None], **options: Any) -> Scores:
    """Calibrate or fuse scores (N,) or (N, K) of the trials of a key by trials of other speakers."""
    from evaluation.calibration import cross_validate_affine
    from evaluation.trials import doubt_speakers, find_speakers

    models, segments = (None if path is None else read_speakers(path) for path in people)
    doubt = doubt_speakers(key, model_speakers=models, segment_speakers=segments)
    if doubt is not None:
        text = "folds may part a speaker's trials, which makes the calibration look better than it is"
        logger.warning("%s: %s (give the speakers: --%s-speakers FILE)", text, doubt.text, doubt.side)
    speakers = find_speakers(key, model_speakers=models, segment_speakers=segments)
    llr = cross_validate_affine(scores, key.is_target, speakers, **options)
    return Scores(key.model_ids, key.segment_ids, key.models, key.segments, values=llr)


@click.command(cls=Command)
@path_option("-s", "--scores", "scores_paths", multiple=True, required=True, help="Scores of a system; repeatable.")
@_out_option
@path_option("--train-scores", "train_paths", multiple=True, help="Its scores to train on, in the same order.")
@number_option(
    "--cross-validate", "folds", default=None, least=3, help="Fuse the --train-key by folds of its speakers."
)
@_training_options
def fuse(
    scores_paths: tuple[Path, ...],
    output: Path,
    train_paths: tuple[Path, ...],
    train_key: Path | None,
    calibration: Path | None,
    folds: int | None,
    seed: int,
    model_speakers: Path | None,
    segment_speakers: Path | None,
    prior: str,
    ridge: float,
    save: Path | None,
    reader: shared.Reader,
) -> None:
    """Fuse the scores of several systems into log-likelihood ratios by logistic regression.

    Without --train-scores, the systems' own scores of the trials of --train-key are trained on; with --cross-validate,
    each of these trials is fused by those of other speakers alone. Trials are joined by their ids; each system must
    score those of the first.
    """
    from evaluation.calibration import apply_affine, load_affine, save_affine, train_affine

    if (train_key is None) == (calibration is None):
        raise click.UsageError("give --train-key, or --calibration")
    if train_paths and len(train_paths) != len(scores_paths):
        raise click.UsageError(
            f"expected --train-scores for each of {len(scores_paths)} systems, got {len(train_paths)}"
        )
    if folds is not None and (train_key is None or train_paths or save is not None):
        text = "--cross-validate takes the systems' own scores of --train-key, and trains several fusions"
        raise click.UsageError(f"{text}: leave out --calibration, --train-scores and --save")
    systems = [formats.read_scores(path, reader.scores) for path in scores_paths]
    order = list(range(len(systems)))
    if folds is not None and train_key is not None:
        key = formats.read_key(train_key, reader.key)
        rows = _stacked(systems, key, scores_paths)
        chosen = {"prior": shared.parse_prior(prior), "folds": folds, "seed": seed, "ridge": ridge}
        result = _cross_validated(rows, key, (model_speakers, segment_speakers), **chosen)
        formats.write_scores(output, result, formats=reader.scores.formats)
        return
    if train_key is not None:
        key = formats.read_key(train_key, reader.key)
        training = [formats.read_scores(path, reader.scores) for path in train_paths] or systems
        rows = _stacked(training, key, train_paths or scores_paths)
        learnt = Scores(key.model_ids, key.segment_ids, key.models, key.segments, values=rows[:, 0])
        shared.warn_of_own(systems[0], learnt, f"{_TRAINED} (train on other trials, or --cross-validate K)")
        names = tuple(map(str, scores_paths))
        target, nontarget = rows[key.is_target], rows[~key.is_target]
        affine = train_affine(target, nontarget, prior=shared.parse_prior(prior), ridge=ridge, names=names)
    elif calibration is not None:
        affine = load_affine(calibration)
        order = _order_of(affine.names, scores_paths, calibration)
    if save is not None:
        save_affine(save, affine)
    fused = apply_affine(affine, _stacked(systems, systems[0], scores_paths)[:, order])
    formats.write_scores(output, replace(systems[0], values=fused), formats=reader.scores.formats)


def _order_of(names: tuple[str, ...], paths: tuple[Path, ...], calibration: Path) -> list[int]:
    """Return the places of a fusion's systems among the given ones, by the names of their files."""
    trained, given = shared.told_apart(tuple(map(Path, names or paths))), shared.told_apart(paths)
    if sorted(trained) == sorted(given):
        if trained != given:
            logger.warning("the systems are taken in the order of %s: %s", calibration, ", ".join(trained))
        return [given.index(name) for name in trained]
    text = f"the fusion was trained on {', '.join(trained)}, and is given {', '.join(given)}"
    if set(trained) & set(given) or len(trained) != len(given):
        raise DataError(text, file=calibration, remedy="give the scores of the same systems")
    logger.warning("%s: %s (they are taken in this order)", calibration, text)
    return list(range(len(given)))


def _stacked(systems: list[Scores], trials: Any, paths: tuple[Path, ...]) -> np.ndarray:
    """Scores of each trial by each system, shape (N, K)."""
    columns = []
    for system, path in zip(systems, paths, strict=True):
        try:
            columns.append(align(system, trials))
        except DataError as error:
            raise DataError(error.text, file=path, remedy="score these trials, or leave them out") from error
    return np.column_stack(columns)
