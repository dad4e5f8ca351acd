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
from evaluation.embeddings import read_embeddings
from evaluation.trials import (
    Key,
    Scores,
    Trials,
    TrialSpeakers,
    doubt_speakers,
    find_speakers,
    read_speakers,
    stack_systems,
)
from spkbase.console import FILE, Command, choice_option, number_option, path_option
from spkbase.errors import DataError, counted, errors_of

logger = logging.getLogger(__name__)

_EXCHANGED = 1.0  # least improvement by another order of systems that raises a warning, in interquartile ranges

_OF_KEYS = ", ".join(sorted(formats.KEYS.keys() - formats.SCORES))
_MATLAB = f"{formats.MATLAB.name}, {formats.MATLAB.title}"

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
        raise click.UsageError(
            "a list of trials has only one column order: --to is for scores and keys"
        )
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
    result = norm(given, *cohorts)
    formats.write_scores(output, result, formats=reader.scores.formats)
    click.echo(f"{counted(len(result), 'score')} -> {output}")


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
    quality : tuple of Path
        Files of quality measures; see `evaluation.calibration.read_quality`.
    quality_vectors : Path or None
        Vectors, whose norm is a measure.
    quality_columns : tuple of str
        Columns of measures of a trial; see `evaluation.calibration.quality`.
    model_cohort, segment_cohort : Path or None
        Scores against a cohort, whose mean is a measure.
    top : int
        Number of highest cohort scores that are averaged.
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
    quality: tuple[Path, ...]
    quality_vectors: Path | None
    quality_columns: tuple[str, ...]
    model_cohort: Path | None
    segment_cohort: Path | None
    top: int
    reader: shared.Reader
    output: Path

    def measures(self, trials: Trials) -> dict[str, Any]:
        """Return the quality measures of the recordings of trials."""
        measures: dict[str, Any] = maps_of_scores.read_quality(self.quality)
        if self.quality_vectors is not None:
            vectors = read_embeddings(self.quality_vectors)
            measures["norm"] = dict(zip(vectors.ids, vectors.norms().tolist(), strict=True))
        paths = (self.model_cohort, self.segment_cohort)
        cohorts = [formats.read_scores(path, self.reader.scores) for path in paths if path]
        if len(cohorts) == 1:
            raise click.UsageError("a quality measure needs --model-cohort and --segment-cohort")
        if cohorts:
            measures["cohort"] = maps_of_scores.cohort_means(trials, *cohorts, top=self.top)
        return measures


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
    path_option("--save", help="Write the calibration, of all trials, to this JSON file."),
    path_option(
        "--quality",
        multiple=True,
        help="Quality measure: lines 'id number', as utt2dur, which names it; repeatable.",
    ),
    path_option("--quality-vectors", help="Vectors of utterances: their norm as a measure, norm."),
    click.option(
        "--quality-columns",
        multiple=True,
        help="Column of measures, as 'log(min utt2dur)' or 'segment norm'; repeatable. Default: min and max of each.",
    ),
    path_option(
        "--model-cohort", help="Scores 'model cohort score': their mean as a measure, cohort."
    ),
    path_option("--segment-cohort", help="Scores 'cohort segment score', for the same."),
    number_option("--cohort-size", "top", default=300, least=2, help="Highest cohort scores used."),
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
    cross-validate by speaker on the key of the scores (-k); its trials are written, and --save writes the map of all.
    Quality measures (--quality and so on) move the ratios of short or noisy recordings.

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
        _calibrate((scores,), train_paths, training.train_key, 0, training)
    else:
        _calibrate((scores,), (), key, folds, training)


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
    these trials is fused by those of other speakers only, and --save writes the fusion of all. Trials are joined by
    their ids; each system must score those of the first. Quality measures (--quality and so on) are more columns.

    Example:
      spkver-eval fuse -s a.txt -s b.txt --train-scores da.txt --train-scores db.txt --train-key key.txt -o ab.txt
    """
    if (training.train_key is None) == (training.calibration is None):
        raise click.UsageError("give --train-key, or --calibration")
    if train_scores and len(train_scores) != len(scores):
        raise click.UsageError(
            f"expected --train-scores for each of {len(scores)} systems, got {len(train_scores)}"
        )
    if folds is not None and (training.train_key is None or train_scores):
        text = "--cross-validate uses the systems' scores of --train-key"
        raise click.UsageError(f"{text}: leave out --calibration and --train-scores")
    _calibrate(scores, train_scores, training.train_key, folds or 0, training)


def _calibrate(
    paths: tuple[Path, ...],
    train_paths: tuple[Path, ...],
    key_path: Path | None,
    folds: int,
    training: Training,
) -> None:
    """Calibrate one system or fuse several, by a map trained on a key, by maps of its folds, or by a saved map."""
    shared.warn_of_repeats(paths)
    shared.warn_of_repeats(train_paths)
    reader = training.reader
    systems = _read_systems(paths, reader)
    order: Any = slice(None)
    if key_path is not None:
        calibration = _trained(systems, paths, train_paths, key_path, folds, training)
    elif training.calibration is not None:
        calibration = maps_of_scores.load_calibration(training.calibration)
        order = _order_of(calibration.systems, paths, training.calibration)
    if training.save is not None:
        calibration.save(training.save)
    result = calibration.scores
    if result is None:
        named = zip(map(str, paths), systems, strict=True)
        rows, trials = stack_systems(named, systems[0].trials(), missing=reader.missing)
        llr = calibration.ratios(rows[:, order], trials, training.measures(trials))
        result = trials.scored(llr)
    formats.write_scores(training.output, result, formats=reader.scores.formats)
    click.echo(f"{counted(len(result), 'score')} -> {training.output}")


def _trained(
    systems: list[Scores],
    paths: tuple[Path, ...],
    train_paths: tuple[Path, ...],
    key_path: Path,
    folds: int,
    training: Training,
) -> maps_of_scores.Calibration:
    """Train the map on the scores of a key."""
    reader = training.reader
    learnt_from = train_paths or paths
    key = formats.read_key(key_path, reader.key)
    scores = systems
    asked = key
    if train_paths:
        scores = _read_systems(train_paths, reader)
    elif not folds:  # the key is meant to cover only some of the trials
        asked = key.subset(np.arange(len(key)))
    scores = [reader.matched(system, key) for system in scores]
    named = zip(map(str, learnt_from), scores, strict=True)
    rows, trials = stack_systems(named, asked, missing=reader.missing)
    names = tuple(map(str, paths)) if len(paths) > 1 else ("score",)
    speakers = None
    with errors_of(None if len(paths) > 1 else learnt_from[0]):
        if folds:
            speakers = _speakers_of_folds(trials, training.maps)
        elif len(paths) == 1:
            # repeat the join for its warnings
            reader.split((scores[0], trials), learnt_from[0], key_path)
        calibration = maps_of_scores.train_calibration(
            rows,
            trials,
            names,
            speakers,
            quality=training.measures(trials),
            columns=training.quality_columns,
            folds=folds,
            seed=training.seed,
            prior=training.prior,
            ridge=training.ridge,
            missing=reader.missing,
        )
    if train_paths:
        tested = [reader.matched(system, key) for system in systems]
        _warn_of_exchange(tested, scores, paths, train_paths)
    return calibration


def _read_systems(paths: tuple[Path, ...], reader: shared.Reader) -> list[Scores]:
    """Read the scores of each system, with the ids of the first."""
    systems = [formats.read_scores(path, reader.scores) for path in paths]
    return [reader.matched(system, systems[0]) for system in systems]


def _speakers_of_folds(key: Key, maps: dict[str, Any]) -> TrialSpeakers:
    doubt = doubt_speakers(key, **maps)
    if doubt is not None:
        text = "folds may split a speaker's trials, so the calibration looks better than it is"
        remedy = f"give --{doubt.side}-speakers FILE, or --speakers-by SIGN where ids begin with the speaker"
        logger.warning("%s: %s (%s)", text, doubt.text, remedy)
    return find_speakers(key, **maps)


def _warn_of_exchange(
    systems: list[Scores],
    training: list[Scores],
    paths: tuple[Path, ...],
    train_paths: tuple[Path, ...],
) -> None:
    """Warn if training scores seem to belong to another system."""
    names = shared.distinct_names(paths)
    trained = shared.distinct_names(train_paths)
    exchanged = [*names] != [*trained] and sorted(names) == sorted(trained)
    if exchanged or _nearest(systems, training) != list(range(len(systems))):
        text = "the training scores look as if they were of the systems in another order: %s for %s"
        logger.warning(text, ", ".join(map(str, train_paths)), ", ".join(map(str, paths)))


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
    if len(names) == len(paths) == 1:
        return [0]
    trained = shared.distinct_names(tuple(map(Path, names)))
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
