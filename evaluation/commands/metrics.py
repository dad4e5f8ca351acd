"""``spkver-eval metrics``: every number of scores, with intervals and by groups on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.commands.options import (
    FILE,
    Reader,
    column_options,
    key_option,
    level_option,
    missing_option,
    parse_prior,
    scores_option,
    show_json,
)
from evaluation.commands.tables import format_evaluation, format_groups
from evaluation.formats import join, read_scores_and_key
from evaluation.metrics import (
    CONVENTIONS,
    METRICS,
    PRIORS,
    Evaluation,
    Metric,
    Metrics,
    evaluate,
    metrics_with,
    read_scale,
)
from evaluation.trials import Key, TrialSpeakers, find_speakers, group_trials, read_metadata, read_speakers
from evaluation.uncertainty import Grouping, Groups, Sample, confidence_intervals, evaluate_groups, sample_from
from spkbase.console import worker_options
from spkbase.errors import ConfigError, DataError
from spkbase.own_code import load_named

convention_option = click.option(
    "--convention",
    type=click.Choice(list(CONVENTIONS)),
    default="default",
    show_default=True,
    help="Whose way to follow where tools disagree; the default pools equal scores and adds nothing.",
)
scale_option = click.option("--scale", type=FILE, help="YAML file with the tags of ZEBRA's individual metric.")
json_option = click.option(
    "--json", "json_path", type=FILE, help="Write JSON to this file; '-' for standard output, then without table."
)


@click.command()
@scores_option
@key_option
@missing_option
@column_options
@convention_option
@click.option(
    "-p",
    "--prior",
    "priors",
    multiple=True,
    default=PRIORS,
    show_default=True,
    help="Target prior of a detection cost with costs of 1; repeatable.",
)
@scale_option
@click.option("--bootstrap", "replicates", type=click.IntRange(min=0), default=0, help="Number of resamples.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the resamples.")
@level_option
@click.option("--segment-speakers", type=FILE, help="Speakers of the segments, as in utt2spk; else as the key tells.")
@click.option("--model-speakers", type=FILE, help="Speakers of the models; the models' own ids by default.")
@click.option(
    *("--metric", "own_metrics"),
    multiple=True,
    metavar="MODULE:NAME|FILE.py:NAME",
    help="A metric of your own beside ours (docs/metrics.md); repeatable.",
)
@click.option("--by-trial", is_flag=True, help="Resample trials, not speakers: far too narrow where trials share them.")
@click.option("--by", "column", help="Column of --metadata by which to group.")
@click.option("--metadata", type=FILE, help="Table with a header; ids of models, segments or speakers first.")
@worker_options
@json_option
def metrics(
    scores: Path,
    key: Path,
    missing: str,
    reader: Reader,
    convention: str,
    priors: tuple[str, ...],
    scale: Path | None,
    json_path: Path | None,
    column: str | None,
    metadata: Path | None,
    **options: Any,
) -> None:
    """Compute every metric of scores.

    Equal error rates are fractions by five readings, of which `rocch`, that of the convex hull, is the default. Costs
    count misses and false alarms alike. Scores are taken as natural log-likelihood ratios by cllr and act_dcf alone.
    """
    for prior in priors:
        parse_prior(prior)
    if (column is None) != (metadata is None):
        raise click.UsageError("expected --by COLUMN together with --metadata FILE")
    table = METRICS if scale is None else metrics_with(scale=read_scale(scale))
    table += tuple(map(_own_metric, options["own_metrics"]))
    groups = None
    methods: dict[str, str] = {}
    if options["replicates"] or column is not None:
        statistic = Metrics(priors, convention, table)
        sample, scored = _sample(scores, key, reader, options)
        result = statistic.evaluate(sample.runs())
        settings = {name: options[name] for name in ("replicates", "seed", "level", "jobs")}
        if options["replicates"]:
            result, methods = _with_intervals(result, sample, statistic, settings)
        if metadata is not None and column is not None:
            speakers = None if options["by_trial"] else find_speakers(scored, **_maps(options))
            groups = _groups(sample, scored, speakers, (metadata, column), statistic, settings)
    else:
        result = evaluate(*reader.split(scores, key), convention=convention, priors=priors, metrics=table)
    report = result.to_dict() | ({"interval_methods": methods} if methods else {})
    report |= {} if groups is None else {"groups": groups.to_dict()}
    if show_json(report, json_path):
        return
    click.echo(format_evaluation(result))
    if groups is not None:
        click.echo("\n" + format_groups(groups))


def _own_metric(name: str) -> Metric:
    """Return the row of a metric that a user names."""
    metric = load_named(name, "metric")[0]
    if not isinstance(metric, Metric):
        text = f"the metric {name!r} is a {type(metric).__name__}, expected an evaluation.Metric"
        raise ConfigError(text, remedy="docs/metrics.md has an example")
    return metric


def _maps(options: dict[str, Any]) -> dict[str, Any]:
    """Read the maps of speakers that were given."""
    names = ("model_speakers", "segment_speakers")
    return {name: None if options[name] is None else read_speakers(options[name]) for name in names}


def _sample(scores: Path, key: Path, reader: Reader, options: dict[str, Any]) -> tuple[Sample, Key]:
    """Read, join and sort the trials with their speakers, for resamples and groups."""
    read = read_scores_and_key(scores, key, scores_columns=reader.scores, key_columns=reader.key)
    maps = _maps(options)
    try:
        return sample_from(*read, by_trial=options["by_trial"], missing=reader.missing, **maps)
    except DataError:
        # the same trouble with the place in the files
        join(*read, files=(scores, key), missing=reader.missing, columns=(reader.scores, reader.key))
        raise


def _with_intervals(
    result: Evaluation, sample: Sample, statistic: Metrics, settings: dict[str, Any]
) -> tuple[Evaluation, dict[str, str]]:
    """Add intervals to a result; also give the method of each."""
    intervals = confidence_intervals(sample, statistic, **settings)
    drawn = "trials" if sample.by_trial else f"speakers ({sample.n_effective} of the scarcer class)"
    notes = {
        "intervals": f"{100 * settings['level']:g} % by {settings['replicates']} resamples of {drawn}, "
        f"seed {settings['seed']}"
    }
    notes |= {f"intervals.{name}": ends.note for name, ends in intervals.items() if ends.note}
    methods = {name: ends.method for name, ends in intervals.items()}
    return result.with_intervals({name: (ends.low, ends.high) for name, ends in intervals.items()}, notes), methods


def _groups(
    sample: Sample,
    key: Key,
    speakers: TrialSpeakers | None,
    table: tuple[Path, str],
    statistic: Metrics,
    settings: dict[str, Any],
) -> Groups:
    path, column = table
    grouping = Grouping(*group_trials(key, read_metadata(path, column), speakers=speakers), column)
    return evaluate_groups(sample, grouping, statistic, **settings)
