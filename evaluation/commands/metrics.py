"""``spkver-eval metrics``: every number of scores, of one system or several, with intervals and groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from evaluation import metrics as measures
from evaluation import uncertainty
from evaluation.commands import shared, tables
from evaluation.trials import find_speakers, group_trials, order_free_digest, read_metadata
from spkbase.console import Command, path_option, worker_options
from spkbase.errors import DataError
from spkbase.files import format_table


@dataclass(frozen=True)
class _Assessed:
    """What was found of a system, and its trials by a number that others share with the same ones."""

    result: measures.Evaluation
    trials: int
    sample: uncertainty.Sample | None = None
    groups: uncertainty.Groups | None = None
    methods: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        report = self.result.to_dict() | ({"interval_methods": self.methods} if self.methods else {})
        return report | ({} if self.groups is None else {"groups": self.groups.to_dict()})


@click.command(cls=Command)
@shared.system_options
@shared.convention_option
@click.option(
    "-p", "--prior", "priors", multiple=True, default=measures.PRIORS, help="Target prior of a cost; repeatable."
)
@shared.scale_option
@shared.resampling_options(0)
@shared.people_options
@click.option("--reference", help="Label of the system that others are compared with; the first by default.")
@shared.own_option("--metric", "own_metrics", help="A metric of your own beside ours (docs/own_metric.md); repeatable.")
@path_option(
    "--threshold-from", nargs=2, metavar="SCORES KEY", help="Add error rates at the thresholds of this other list."
)
@click.option("--by", "column", help="Column of --metadata by which to group.")
@path_option("--metadata", help="Table with a header; ids of models, segments or speakers first.")
@path_option("--latex", help="Write a table for a paper: LaTeX with booktabs.")
@path_option("--markdown", help="Write the table as Markdown.")
@click.option("--columns", help="Metrics of these tables by their names in the JSON, such as eer.rocch,min_cllr.")
@worker_options
@shared.json_option
def metrics(
    systems: list[shared.System],
    convention: str,
    priors: tuple[str, ...],
    scale: Path | None,
    resampling: uncertainty.Resampling,
    people: shared.People,
    reference: str | None,
    own_metrics: tuple[str, ...],
    threshold_from: tuple[Path, Path] | None,
    column: str | None,
    metadata: Path | None,
    latex: Path | None,
    markdown: Path | None,
    columns: str | None,
    jobs: int | None,
    json_path: Path | None,
) -> None:
    """Compute every metric of scores.

    Equal error rates are fractions by five readings, of which `rocch`, that of the convex hull, is the default. Costs
    count misses and false alarms alike. Scores are taken as natural log-likelihood ratios by cllr and act_dcf alone.

    Repeat -s, and -k and -l where they differ, for several systems in one table; with --bootstrap there are paired
    differences from the --reference too.
    """
    for prior in priors:
        shared.parse_prior(prior)
    if (column is None) != (metadata is None):
        raise click.UsageError("expected --by COLUMN together with --metadata FILE")
    reference = reference or systems[0].name
    if reference not in (names := [system.name for system in systems]):
        raise click.UsageError(f"--reference {reference!r} is none of the labels: {', '.join(names)}")
    table = measures.METRICS if scale is None else measures.metrics_with(scale=measures.read_scale(scale))
    table += tuple(shared.load_own(name, "metric", measures.Metric) for name in own_metrics)
    if threshold_from is not None:
        table += measures.metrics_at_thresholds_of(measures.sort_scores(*_development(systems, threshold_from)), priors)
    statistic = measures.Metrics(priors, convention, table)
    groups_of = None if metadata is None else (read_metadata(metadata, column or ""), column or "")
    found = {
        system.name: _assess(system, statistic, people, resampling, groups_of, jobs, several=len(systems) > 1)
        for system in systems
    }
    differences: dict[str, dict[str, uncertainty.Interval]] = {}
    notes = {}
    if len(systems) > 1 and resampling.replicates:
        samples = {name: of_it.sample for name, of_it in found.items() if of_it.sample is not None}
        try:
            samples = {reference: samples[reference], **samples}
            differences = uncertainty.paired_differences(samples, statistic, resampling, jobs=jobs)
        except DataError as error:
            notes["differences"] = error.text
    sizes = {name: (of_it.trials, of_it.result.n_target, of_it.result.n_nontarget) for name, of_it in found.items()}
    if unlike := [name for name, size in sizes.items() if size != sizes[reference]]:
        text = f"other trials than {reference}, so figures may differ for that alone"
        notes["trials"] = f"{', '.join(unlike)}: {text}"

    results = {name: of_it.result for name, of_it in found.items()}
    shown = tables.chosen_columns(results[systems[0].name], shared.parse_names(columns))
    less = tables.difference_rows(differences, shown, reference)
    drawn = results[systems[0].name].notes.get("intervals", "")
    caption = "Metrics of the systems." + (f" In brackets: {drawn}." if drawn else "")
    tables.write_papers(
        tables.system_rows(results, shown), less, latex=latex, markdown=markdown, caption=caption, label="tab:metrics"
    )
    report: dict[str, Any] = {name: of_it.to_dict() for name, of_it in found.items()}
    if len(systems) > 1:
        gaps = {name: {metric: gap.to_dict() for metric, gap in of_it.items()} for name, of_it in differences.items()}
        report = {"systems": report, "reference": reference, "differences": gaps} | ({"notes": notes} if notes else {})
    if shared.show_json(report if len(systems) > 1 else report[systems[0].name], json_path):
        return
    click.echo(tables.format_systems(results, shown) if len(systems) > 1 else str(results[systems[0].name]))
    if differences:
        click.echo("\n" + format_table(less))
    if "trials" in notes:
        click.echo(f"\nnote: {notes['trials']}")
    if "differences" in notes:
        click.echo(f"\nno differences: {notes['differences']}")
    for name, of_it in found.items():
        if of_it.groups is not None:
            click.echo((f"\n{name}:\n" if len(systems) > 1 else "\n") + tables.format_groups(of_it.groups))


def _development(systems: list[shared.System], files: tuple[Path, Path]) -> tuple[Any, Any]:
    """Read the target and nontarget scores of the list that thresholds are taken from."""
    if len(systems) > 1:
        raise click.UsageError("--threshold-from is for one system: its threshold is no other's")
    (system,) = systems
    development = system.reader.read(*files)
    text = "chose the threshold too: its error rates look better than new ones will (give other trials)"
    shared.warn_of_own(system.reader.read(system.scores, system.key)[0], development[0], text)
    return system.reader.split(development, *files)


def _assess(
    system: shared.System,
    statistic: measures.Metrics,
    people: shared.People,
    resampling: uncertainty.Resampling,
    groups_of: tuple[Any, str] | None,
    jobs: int | None,
    *,
    several: bool,
) -> _Assessed:
    """Read a system's trials and compute what was asked for."""
    read = system.reader.read(system.scores, system.key)
    parts = system.reader.split(read, system.scores, system.key)  # with its errors, which name the place in the files
    trials = order_free_digest(read[1]) if several else 0
    if not resampling.replicates and groups_of is None:
        return _Assessed(statistic.evaluate(measures.sort_scores(*parts)), trials)
    by_trial = people.by == "trial"
    # without intervals nothing is drawn, and ids do as names
    as_ids = people.by == "id" or not resampling.replicates
    missing = system.reader.missing
    sample, scored = uncertainty.sample_from(
        *read, by_trial=by_trial, ids_are_speakers=as_ids, missing=missing, **people.maps
    )
    result, groups = statistic.evaluate(sample.runs()), None
    methods: dict[str, str] = {}
    if resampling.replicates:
        intervals = uncertainty.confidence_intervals(sample, statistic, resampling, jobs=jobs)
        drawn = people.units if by_trial else f"{people.units} ({sample.n_effective} of the scarcer class)"
        by = f"{100 * resampling.level:g} % by {resampling.replicates} resamples of {drawn}, seed {resampling.seed}"
        notes = {"intervals": by + ("; far too narrow where trials share speakers" if by_trial else "")}
        notes |= {f"intervals.{name}": ends.note for name, ends in intervals.items() if ends.note}
        methods = {name: ends.method for name, ends in intervals.items()}
        ends_of = {name: (ends.low, ends.high) for name, ends in intervals.items()}
        result = replace(result, intervals=ends_of, notes=result.notes | notes)
    if groups_of is not None:
        speakers = None if by_trial else find_speakers(scored, **people.maps)
        grouped, column = group_trials(scored, groups_of[0], speakers=speakers), groups_of[1]
        groups = uncertainty.evaluate_groups(sample, *grouped, statistic, resampling, column=column, jobs=jobs)
    return _Assessed(result, trials, sample, groups, methods)
