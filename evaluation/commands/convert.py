"""Commands that turn score files into score files: convert, normalise, calibrate, fuse."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from evaluation import calibration as maps_of_scores
from evaluation import formats
from evaluation.commands import shared
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    TrialSpeakers,
    doubt_speakers,
    find_rows,
    find_speakers,
    read_speakers,
    scores_of_trials,
)
from spkbase.console import FILE, Command, choice_option, number_option, path_option
from spkbase.errors import DataError, errors_of

logger = logging.getLogger(__name__)

_DISTINCT = 0.9  # from this share of distinct scores on, equal ones are not chance
_EXCHANGED = 1.0  # improvement by another order, in interquartile ranges

_out_option = path_option(
    "-o", "--output", required=True, help="Scores to write; the extension says how."
)


def _usual_extensions() -> str:
    """Return the extensions of each format, at most two."""
    texts = []
    for form in reversed(formats.FORMATS):
        suffixes = [suffix or "none" for suffix in form.suffixes[:2]]
        if suffixes:
            texts.append(f"{' or '.join(suffixes)} for {form.title or form.name}")
    return "; ".join(texts)


_EXTENSIONS = _usual_extensions()
_OF_KEYS = ", ".join(formats.KEYS.keys() - formats.SCORES)
_MATLAB = f"{formats.MATLAB.name}, {formats.MATLAB.title}"


@click.command(
    cls=Command,
    help="Convert a file of scores, a key or a list of trials.\n\n"
    f"The content of SOURCE says what it is, the extension of DESTINATION what to write: {_EXTENSIONS}; each with "
    ".gz behind it too. --to writes the text format of another tool."
    "\n\nExample:\n  spkver-eval convert scores scores.h5 scores.txt",
)
@click.argument("kind", type=click.Choice(formats.KINDS))
@click.argument("source", type=FILE)
@click.argument("destination", type=FILE)
@click.option(
    "--to",
    "order",
    help=f"Order of the columns of text: {', '.join(formats.SCORES)} (a key: {_OF_KEYS} too), or roles such as "
    f"{','.join(formats.SCORES['voxsrc'])}; or {_MATLAB}, or another format by its name.",
)
@path_option("-k", "--key", "key_path", help="Labels of the scores, for orders that hold them.")
@path_option("--segment-speakers", help="Speakers of segments (utt2spk), for bob's orders.")
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
    columns = reader.scores if kind == "scores" else reader.key
    content = getattr(formats, f"read_{kind}")(source, columns)
    by_name = {form.name: form for form in reversed((*own_formats, *formats.FORMATS))}
    if order is None:
        getattr(formats, f"write_{kind}")(destination, content, formats=own_formats)
    elif order in by_name:
        form = by_name[order]
        if kind not in form.kinds:
            raise click.UsageError(f"the {form.name} form holds {' and '.join(form.kinds)} only")
        formats.write_as(destination, kind, content, form)
    elif kind == "trials":
        raise click.UsageError("a list of trials has one order: --to is for scores and keys")
    else:
        key = None
        if key_path is not None:
            key = formats.read_key(key_path, reader.key)
            content = reader.matched(content, key)
        speakers = None
        if segment_speakers is not None:
            speakers = read_speakers(segment_speakers)
        formats.write_text_list(destination, content, order, key=key, speakers=speakers)


@click.command(cls=Command)
@shared.scores_option
@_out_option
@choice_option(
    *("-m", "--method"),
    choices=["z", "t", "s", "as", "closed-set"],
    required=True,
    help="z: by each model's cohort; t: by each segment's; s: by both; as: by the highest scores of both; closed-set:"
    " minus each segment's mean over the enrolled.",
)
@path_option("--model-cohort", help="Scores 'model cohort score' of each model against the cohort.")
@path_option(
    "--segment-cohort", help="Scores 'cohort segment score' of the cohort against each segment."
)
@number_option(
    "--cohort-size", "top", default=300, least=2, help="as: cohort scores used on each side."
)
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
    """Normalise scores by a cohort of impostors.

    Example:
      spkver-eval normalise -s scores.txt -m s --model-cohort models.txt --segment-cohort segments.txt -o out.txt
    """
    given = formats.read_scores(scores, reader.scores)
    methods: dict[str, tuple[Any, tuple[str, ...]]] = {
        "z": (maps_of_scores.z_norm, ("model",)),
        "t": (maps_of_scores.t_norm, ("segment",)),
        "s": (maps_of_scores.s_norm, ("model", "segment")),
        "as": (partial(maps_of_scores.s_norm, top=top), ("model", "segment")),
        "closed-set": (maps_of_scores.closed_set_scores, ()),
    }
    norm, sides = methods[method]
    cohorts = []
    for side in sides:
        path = model_cohort if side == "model" else segment_cohort
        if path is None:
            raise click.UsageError(f"method {method} needs --{side}-cohort")
        cohorts.append(formats.read_scores(path, reader.scores))
        text = "are in the cohort too: scores normalised by themselves (give a cohort of other speakers)"
        shared.warn_of_own(given, cohorts[-1], text)
    result = norm(given, *cohorts)
    formats.write_scores(output, result, formats=reader.scores.formats)
    click.echo(f"{len(result)} scores -> {output}")


@dataclass(frozen=True)
class Training:
    """Options that calibration and fusion share.

    Attributes
    ----------
    train_key : Path or None
        Key of the scores to train on.
    calibration : Path or None
        A saved map to apply instead.
    seed : int
        Seed of the folds.
    maps : dict
        Speakers of models and segments; see `shared.speaker_maps`.
    prior, ridge : float
        Target prior to train for, and penalty on the weights.
    save : Path or None
        Where the map is written.
    reader : shared.Reader
        How scores and keys are read.
    output : Path
        Where the log-likelihood ratios are written.
    """

    train_key: Path | None
    calibration: Path | None
    seed: int
    maps: dict[str, Any]
    prior: float
    ridge: float
    save: Path | None
    reader: shared.Reader
    output: Path


_training_options = shared.gathered(
    "training",
    Training,
    path_option("--train-key", help="Key of the scores to train on."),
    path_option("--calibration", help="Apply this saved calibration instead of training one."),
    number_option("--seed", help="Seed of the random numbers."),
    shared.speaker_options,
    click.option(
        "-p", "--prior", type=shared.SHARE, default=0.5, help="Target prior to train for."
    ),
    click.option(
        "--ridge",
        type=click.FloatRange(min=0),
        default=0.0,
        help="Penalty on the weights; above 0 scores may separate the classes without error.",
    ),
    path_option("--save", help="Write the calibration to this JSON file."),
    shared.reader_options(),
    _out_option,
)


@click.command(cls=Command)
@shared.scores_option
@path_option("--train-scores", help="Scores to train on.")
@path_option(
    "-k", "--key", help="Key of the scores: calibrate them by trials of other speakers (folds)."
)
@number_option("--folds", default=5, least=3, help="Folds of speakers.")
@_training_options
def calibrate(
    scores: Path, train_scores: Path | None, key: Path | None, folds: int, training: Training
) -> None:
    """Turn scores into natural log-likelihood ratios by an affine map (logistic regression).

    Three ways: train on other scores (--train-scores, --train-key), apply a saved calibration (--calibration), or
    cross-validate by speaker on the key of the scores (-k); its trials are written.

    Example:
      spkver-eval calibrate -s scores.txt --train-scores dev.txt --train-key dev_key.txt -o calibrated.txt
    """
    ways = [
        train_scores is not None and training.train_key is not None,
        training.calibration is not None,
        key is not None,
    ]
    if sum(ways) != 1 or (train_scores is None) != (training.train_key is None):
        raise click.UsageError(
            "give --train-scores and --train-key, or --calibration, or -k for cross-validation"
        )
    if key is None:
        train_paths = () if train_scores is None else (train_scores,)
        _train_or_apply((scores,), train_paths, training)
        return
    if training.save is not None:
        raise click.UsageError(
            "cross-validation trains several calibrations: there is none to --save"
        )
    _cross_validate((scores,), key, folds, training)


@click.command(cls=Command)
@path_option("-s", "--scores", multiple=True, required=True, help="Scores of a system; repeatable.")
@path_option("--train-scores", multiple=True, help="Its scores to train on, in the same order.")
@number_option(
    "--cross-validate",
    "folds",
    default=None,
    least=3,
    help="Fuse the --train-key by folds of its speakers.",
)
@_training_options
def fuse(
    scores: tuple[Path, ...], train_scores: tuple[Path, ...], folds: int | None, training: Training
) -> None:
    """Fuse the scores of several systems into log-likelihood ratios by logistic regression.

    Without --train-scores, the fusion is trained on the systems' scores of --train-key; with --cross-validate, each of
    these trials is fused by those of other speakers only. Trials are joined by their ids; each system must
    score those of the first.

    Example:
      spkver-eval fuse -s a.txt -s b.txt --train-scores da.txt --train-scores db.txt --train-key key.txt -o ab.txt
    """
    if (training.train_key is None) == (training.calibration is None):
        raise click.UsageError("give --train-key, or --calibration")
    if train_scores and len(train_scores) != len(scores):
        raise click.UsageError(
            f"expected --train-scores for each of {len(scores)} systems, got {len(train_scores)}"
        )
    if folds is None:
        _train_or_apply(scores, train_scores, training)
        return
    if training.train_key is None or train_scores or training.save is not None:
        text = (
            "--cross-validate uses the systems' scores of --train-key, and trains several fusions"
        )
        raise click.UsageError(f"{text}: leave out --calibration, --train-scores and --save")
    _cross_validate(scores, training.train_key, folds, training)


def _cross_validate(
    paths: tuple[Path, ...], key_path: Path, folds: int, training: Training
) -> None:
    """Calibrate one system or fuse several, each trial by the trials of other speakers."""
    shared.warn_of_repeats(paths)
    systems = _read_systems(paths, training.reader)
    key = formats.read_key(key_path, training.reader.key)
    systems = [training.reader.matched(system, key) for system in systems]
    rows, trials = _training_rows(systems, key, paths, training.reader)
    with errors_of(None if len(paths) > 1 else paths[0]):
        llr = maps_of_scores.cross_validate_affine(
            rows,
            trials.is_target,
            _speakers_of_folds(trials, training.maps),
            folds=folds,
            seed=training.seed,
            names=_names(paths),
            prior=training.prior,
            ridge=training.ridge,
        )
        _write(training.output, trials, llr, training.reader)


def _train_or_apply(
    paths: tuple[Path, ...], train_paths: tuple[Path, ...], training: Training
) -> None:
    """Calibrate one system or fuse several, with a map trained on a key, or a saved one."""
    shared.warn_of_repeats(paths)
    shared.warn_of_repeats(train_paths)
    reader = training.reader
    systems = _read_systems(paths, reader)
    if training.train_key is not None:
        affine = _trained(systems, paths, train_paths, training.train_key, training)
        order = list(range(len(systems)))
    elif training.calibration is not None:
        affine = maps_of_scores.load_affine(training.calibration)
        order = _order_of(affine.names, paths, training.calibration)
    if training.save is not None:
        maps_of_scores.save_affine(training.save, affine)
    rows, trials = _stacked(systems, systems[0], paths, reader.missing)
    _write(training.output, trials, maps_of_scores.apply_affine(affine, rows[:, order]), reader)


def _trained(
    systems: list[Scores],
    paths: tuple[Path, ...],
    train_paths: tuple[Path, ...],
    key_path: Path,
    training: Training,
) -> maps_of_scores.Affine:
    """Train the map on the scores of a key, and warn if they are the scores that it is applied to."""
    reader = training.reader
    learnt_from = train_paths or paths
    key = formats.read_key(key_path, reader.key)
    scores = systems
    if train_paths:
        scores = [formats.read_scores(path, reader.scores) for path in train_paths]
    scores = [reader.matched(system, key) for system in scores]
    # without training scores the key is meant to cover only some of the trials
    asked = key if train_paths else key.subset(np.arange(len(key)))
    rows, trained = _training_rows(scores, asked, learnt_from, reader)
    with errors_of(None if len(paths) > 1 else learnt_from[0]):
        if len(paths) == 1:
            reader.split(
                (scores[0], trained), learnt_from[0], key_path
            )  # joins again for its warnings
        affine = maps_of_scores.train_affine(
            rows[trained.is_target],
            rows[~trained.is_target],
            names=_names(paths),
            prior=training.prior,
            ridge=training.ridge,
        )
    tested = [reader.matched(system, key) for system in systems]
    _warn_of_training(tested, scores, trained, paths, train_paths)
    return affine


def _read_systems(paths: tuple[Path, ...], reader: shared.Reader) -> list[Scores]:
    """Read the scores of each system, with the ids of the first."""
    systems = [formats.read_scores(path, reader.scores) for path in paths]
    return [reader.matched(system, systems[0]) for system in systems]


def _training_rows(
    systems: list[Scores], key: Key, paths: tuple[Path, ...], reader: shared.Reader
) -> tuple[np.ndarray, Key]:
    """Return the scores of each trial of the key by each system, without rejections, which have no scale."""
    rows, trials = _stacked(systems, key, paths, reader.missing)
    if reader.missing == "reject":
        finite = np.isfinite(rows).all(axis=1)
        rows = rows[finite]
        trials = trials.subset(finite)
    return rows, trials


def _names(paths: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the names of fused systems; a single system has none."""
    if len(paths) > 1:
        return tuple(map(str, paths))
    return ()


def _write(output: Path, trials: Any, values: np.ndarray, reader: shared.Reader) -> None:
    ids = trials.model_ids, trials.segment_ids, trials.models, trials.segments
    formats.write_scores(output, Scores(*ids, values), formats=reader.scores.formats)
    click.echo(f"{len(values)} scores -> {output}")


def _speakers_of_folds(key: Key, maps: dict[str, Any]) -> TrialSpeakers:
    doubt = doubt_speakers(key, **maps)
    if doubt is not None:
        text = "folds may split a speaker's trials, so the calibration looks better than it is"
        remedy = f"give --{doubt.side}-speakers FILE, or --speakers-by SIGN where ids begin with the speaker"
        logger.warning("%s: %s (%s)", text, doubt.text, remedy)
    return find_speakers(key, **maps)


def _warn_of_training(
    systems: list[Scores],
    training: list[Scores],
    key: Key,
    paths: tuple[Path, ...],
    train_paths: tuple[Path, ...],
) -> None:
    """Warn if trials were trained on, or if training scores seem to belong to another system."""
    shared_trials = int((find_rows(systems[0], key) >= 0).sum())
    if shared_trials:
        text = "are training trials too: results are optimistic (train on other trials, or cross-validate)"
        logger.warning("%d of %d trials %s", shared_trials, len(systems[0]), text)
    copied = _copied(systems[0].values, training[0].values)
    if copied and not shared_trials:
        text = "%d of %d training scores are among the scores, under other ids: were the trials renamed?"
        logger.warning(text, copied, len(training[0]))
    names = shared.distinct_names(paths)
    trained = shared.distinct_names(train_paths or paths)
    exchanged = [*names] != [*trained] and sorted(names) == sorted(trained)
    if exchanged or _nearest(systems, training) != list(range(len(systems))):
        text = "the training scores look as if they were of the systems in another order: %s for %s"
        logger.warning(text, ", ".join(map(str, train_paths)), ", ".join(map(str, paths)))


def _copied(values: np.ndarray, training: np.ndarray) -> int:
    """Return how many training scores occur among others; 0 if few, or if repeated values may match by chance."""
    copied = int(np.isin(training, values).sum())
    n_distinct = len(np.unique(values)) + len(np.unique(training))
    by_chance = n_distinct < _DISTINCT * (len(values) + len(training))
    if by_chance or 2 * copied < len(training):
        return 0
    return copied


def _nearest(systems: list[Scores], training: list[Scores]) -> list[int]:
    """Return the order in which training scores match the scales of the systems far better, if there is one."""
    from scipy.optimize import linear_sum_assignment

    lists = [*systems, *training]
    quartiles = [
        np.quantile(scores.values, [0.25, 0.5, 0.75], method="nearest") for scores in lists
    ]
    own, others = np.split(np.array(quartiles), 2)
    widths = np.maximum(np.ptp(own, axis=1)[:, None], np.ptp(others, axis=1)[None, :])
    apart = np.abs(own[:, None] - others[None, :]).max(axis=2) / np.maximum(
        widths, np.finfo(float).tiny
    )
    order = linear_sum_assignment(apart)[1]
    gain = apart.trace() - apart[np.arange(len(order)), order].sum()
    if gain > _EXCHANGED:
        return order.tolist()
    return list(range(len(order)))


def _order_of(names: tuple[str, ...], paths: tuple[Path, ...], calibration: Path) -> list[int]:
    """Return the positions of a fusion's systems among the given ones, by file name."""
    trained = shared.distinct_names(tuple(map(Path, names or paths)))
    given = shared.distinct_names(paths)
    if sorted(trained) == sorted(given):
        if trained != given:
            logger.warning(
                "the systems are taken in the order of %s: %s", calibration, ", ".join(trained)
            )
        return [given.index(name) for name in trained]
    text = f"the fusion was trained on {', '.join(trained)}, and is given {', '.join(given)}"
    if set(trained) & set(given) or len(trained) != len(given):
        raise DataError(text, file=calibration, remedy="give the scores of the same systems")
    logger.warning("%s: %s (they are taken in this order)", calibration, text)
    return list(range(len(given)))


def _stacked(
    systems: list[Scores], trials: Any, paths: tuple[Path, ...], missing: Missing
) -> tuple[np.ndarray, Any]:
    """Return the scores of each trial by each system, shape (N, K), and the trials that all systems scored."""
    for system, path in zip(systems, paths, strict=True):
        with errors_of(path):
            _, trials = scores_of_trials(system, trials, missing=missing)
    return np.column_stack(
        [scores_of_trials(system, trials, missing=missing)[0] for system in systems]
    ), trials
