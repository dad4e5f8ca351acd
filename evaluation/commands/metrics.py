"""``spkver-eval metrics``: every number of scores, of one system or several, with intervals and groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from evaluation.commands.options import (
    FILE,
    People,
    Reader,
    column_options,
    keys_option,
    labels_option,
    level_option,
    match_keys,
    missing_option,
    parse_prior,
    people_options,
    scores_options,
    show_json,
    warn_of_own,
)
from evaluation.commands.system_tables import (
    chosen_columns,
    difference_rows,
    format_paper_latex,
    format_paper_markdown,
    format_systems,
    system_rows,
)
from evaluation.commands.tables import format_groups
from evaluation.metrics import (
    CONVENTIONS,
    METRICS,
    PRIORS,
    Evaluation,
    Metric,
    Metrics,
    evaluate,
    metrics_at_thresholds_of,
    metrics_with,
    read_scale,
    sort_scores,
)
from evaluation.trials import find_speakers, group_trials, order_free_digest, read_metadata
from evaluation.uncertainty import (
    Grouping,
    Groups,
    Interval,
    Sample,
    confidence_intervals,
    evaluate_groups,
    paired_differences,
    sample_from,
)
from spkbase.console import Command, worker_options
from spkbase.errors import ConfigError, DataError
from spkbase.files import format_table, write_text
from spkbase.plugins import load_plugin

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


@dataclass(frozen=True)
class _System:
    """A system with what was found of it, and its trials by a number that others share with the same ones."""

    label: str
    result: Evaluation
    trials: int
    sample: Sample | None = None
    groups: Groups | None = None
    methods: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        report = self.result.to_dict() | ({"interval_methods": self.methods} if self.methods else {})
        return report | ({} if self.groups is None else {"groups": self.groups.to_dict()})


@click.command(cls=Command)
@scores_options
@keys_option
@labels_option
@missing_option
@column_options(each=True)
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
@people_options
@click.option("--reference", help="Label of the system that others are compared with; the first by default.")
@click.option(
    *("--metric", "own_metrics"),
    multiple=True,
    metavar="MODULE:NAME|FILE.py:NAME",
    help="A metric of your own beside ours (docs/metrics.md); repeatable.",
)
@click.option(
    "--threshold-from",
    nargs=2,
    type=FILE,
    metavar="SCORES KEY",
    help="Add misses and false alarms at the thresholds of this development list: of its EER and of its minDCFs.",
)
@click.option("--by", "column", help="Column of --metadata by which to group.")
@click.option("--metadata", type=FILE, help="Table with a header; ids of models, segments or speakers first.")
@click.option("--latex", type=FILE, help="Write a table for a paper: LaTeX with booktabs, caption and label.")
@click.option("--markdown", type=FILE, help="Write the table as Markdown.")
@click.option("--columns", help="Metrics of these tables by their names in the JSON, such as eer.rocch,min_cllr.")
@click.option("--caption", default="Metrics of the systems.", show_default=True, help="Caption of the LaTeX table.")
@click.option("--table-label", default="tab:metrics", show_default=True, help="Label of the LaTeX table.")
@worker_options
@json_option
def metrics(
    scores_paths: tuple[Path, ...],
    key_paths: tuple[Path, ...],
    labels: tuple[str, ...],
    reader: Reader,
    priors: tuple[str, ...],
    scale: Path | None,
    convention: str,
    people: People,
    json_path: Path | None,
    **options: Any,
) -> None:
    """Compute every metric of scores.

    Equal error rates are fractions by five readings, of which `rocch`, that of the convex hull, is the default. Costs
    count misses and false alarms alike. Scores are taken as natural log-likelihood ratios by cllr and act_dcf alone.

    Repeat -s, and -k and -l where they differ, for several systems in one table; with --bootstrap there are paired
    differences from the --reference too.
    """
    for prior in priors:
        parse_prior(prior)
    if (options["column"] is None) != (options["metadata"] is None):
        raise click.UsageError("expected --by COLUMN together with --metadata FILE")
    table = METRICS if scale is None else metrics_with(scale=read_scale(scale))
    table += tuple(map(_own_metric, options["own_metrics"]))
    listed = match_keys(scores_paths, key_paths, labels)
    if options["threshold_from"]:
        if len(listed) > 1:
            raise click.UsageError("--threshold-from is for one system: its threshold is no other's")
        one, (_, scores_path, key_path) = reader.of(0, 1), listed[0]
        development = one.read(*options["threshold_from"])
        text = "chose the threshold too: its error rates look better than new ones will (give other trials)"
        warn_of_own(one.read(scores_path, key_path)[0], development[0], text)
        table += metrics_at_thresholds_of(sort_scores(*one.joined(development, *options["threshold_from"])), priors)
    statistic = Metrics(priors, convention, table)
    reference = options["reference"] or listed[0][0]
    options["several"] = len(listed) > 1
    if reference not in [label for label, _, _ in listed]:
        raise click.UsageError(
            f"--reference {reference!r} is none of the labels: {', '.join(row[0] for row in listed)}"
        )
    systems = [
        _assessed(row, reader.of(place, len(listed)), statistic, people, options) for place, row in enumerate(listed)
    ]
    differences, why = _differences(systems, reference, statistic, options)
    _write_papers(systems, differences, reference, options)
    if len(systems) == 1:
        _show_one(systems[0], json_path)
    else:
        _show_several(systems, (differences, why, reference), options, json_path)


def _show_one(system: _System, json_path: Path | None) -> None:
    if show_json(system.to_dict(), json_path):
        return
    click.echo(str(system.result))
    if system.groups is not None:
        click.echo("\n" + format_groups(system.groups))


def _show_several(
    systems: list[_System],
    compared: tuple[dict[str, dict[str, Interval]], str, str],
    options: dict[str, Any],
    json_path: Path | None,
) -> None:
    differences, why, reference = compared
    report: dict[str, Any] = {"systems": {system.label: system.to_dict() for system in systems}, "reference": reference}
    report |= {
        "differences": {
            label: {name: interval.to_dict() for name, interval in found.items()}
            for label, found in differences.items()
        }
    }
    notes = {"differences": why} if why else {}
    if unlike := _on_other_trials(systems, reference):
        notes["trials"] = unlike
    if show_json(report | ({"notes": notes} if notes else {}), json_path):
        return
    results = {system.label: system.result for system in systems}
    columns = chosen_columns(systems[0].result, _names(options["columns"]))
    click.echo(format_systems(results, columns))
    if differences:
        click.echo("\n" + format_table(difference_rows(differences, columns, reference)))
    if unlike:
        click.echo(f"\nnote: {unlike}")
    if why:
        click.echo(f"\nno differences: {why}")
    for system in systems:
        if system.groups is not None:
            click.echo(f"\n{system.label}:\n" + format_groups(system.groups))


def _on_other_trials(systems: list[_System], reference: str) -> str:
    """Say which systems were not measured on the trials of the reference; nothing where all were."""
    sizes = {system.label: (system.trials, system.result.n_target, system.result.n_nontarget) for system in systems}
    others = [label for label, size in sizes.items() if size != sizes[reference]]
    return f"{', '.join(others)}: other trials than {reference}, so figures may differ for that alone" if others else ""


def _write_papers(
    systems: list[_System], differences: dict[str, dict[str, Interval]], reference: str, options: dict[str, Any]
) -> None:
    """Write the tables for a paper that were asked for."""
    columns = chosen_columns(systems[0].result, _names(options["columns"]))
    rows = system_rows({system.label: system.result for system in systems}, columns)
    less = difference_rows(differences, columns, reference)
    if options["markdown"] is not None:
        write_text(options["markdown"], format_paper_markdown(rows, less))
    if options["latex"] is not None:
        drawn = systems[0].result.notes.get("intervals", "")
        caption = options["caption"] + (f" In brackets: {drawn}." if drawn else "")
        write_text(options["latex"], format_paper_latex(rows, less, caption=caption, label=options["table_label"]))


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def _own_metric(name: str) -> Metric:
    """Return the row of a metric that a user names."""
    metric = load_plugin(name, "metric")[0]
    if not isinstance(metric, Metric):
        text = f"the metric {name!r} is a {type(metric).__name__}, expected an evaluation.Metric"
        raise ConfigError(text, remedy="docs/metrics.md has an example")
    return metric


def _assessed(
    listed: tuple[str, Path, Path | None], reader: Reader, statistic: Metrics, people: People, options: dict[str, Any]
) -> _System:
    """Read a system's trials and compute what was asked for."""
    label, scores, key = listed
    read = reader.read(scores, key)
    parts = reader.joined(read, scores, key)  # with its errors, which name the place in the files
    trials = order_free_digest(read[1]) if options["several"] else 0
    if not options["replicates"] and options["column"] is None:
        return _System(label, evaluate(*parts, convention=statistic.convention, priors=statistic.priors,
                                       metrics=statistic.metrics), trials)  # fmt: skip
    by_trial = people.by == "trial"
    # without intervals nothing is drawn, and ids do as names
    as_ids = people.by == "id" or not options["replicates"]
    sample, scored = sample_from(
        *read, by_trial=by_trial, ids_are_speakers=as_ids, missing=reader.missing, **people.maps
    )
    settings = {name: options[name] for name in ("replicates", "seed", "level", "jobs")}
    result, groups = statistic.evaluate(sample.runs()), None
    methods: dict[str, str] = {}
    if options["replicates"]:
        result, methods = _with_intervals(result, sample, statistic, people, settings)
    if options["column"] is not None:
        speakers = None if by_trial else find_speakers(scored, **people.maps)
        metadata = read_metadata(options["metadata"], options["column"])
        grouping = Grouping(*group_trials(scored, metadata, speakers=speakers), options["column"])
        groups = evaluate_groups(sample, grouping, statistic, **settings)
    return _System(label, result, trials, sample, groups, methods)


def _with_intervals(
    result: Evaluation, sample: Sample, statistic: Metrics, people: People, settings: dict[str, Any]
) -> tuple[Evaluation, dict[str, str]]:
    """Add intervals to a result; also give the method of each."""
    intervals = confidence_intervals(sample, statistic, **settings)
    drawn = people.units if sample.by_trial else f"{people.units} ({sample.n_effective} of the scarcer class)"
    notes = {
        "intervals": f"{100 * settings['level']:g} % by {settings['replicates']} resamples of {drawn}, "
        f"seed {settings['seed']}"
    }
    if sample.by_trial:
        notes["intervals"] += "; far too narrow where trials share speakers"
    notes |= {f"intervals.{name}": ends.note for name, ends in intervals.items() if ends.note}
    methods = {name: ends.method for name, ends in intervals.items()}
    return result.with_intervals({name: (ends.low, ends.high) for name, ends in intervals.items()}, notes), methods


def _differences(
    systems: list[_System], reference: str, statistic: Metrics, options: dict[str, Any]
) -> tuple[dict[str, dict[str, Interval]], str]:
    """Compare systems with the reference under shared draws; also say why there is no comparison."""
    samples = {system.label: system.sample for system in systems if system.sample is not None}
    if len(systems) < 2 or not options["replicates"]:
        return {}, ""
    ordered = {reference: samples[reference], **samples}
    settings = {name: options[name] for name in ("replicates", "seed", "level", "jobs")}
    try:
        return paired_differences(ordered, statistic, **settings), ""
    except DataError as error:
        return {}, error.text
