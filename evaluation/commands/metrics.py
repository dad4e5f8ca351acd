"""``spkver-eval metrics``: every number of scores, of one system or several, with intervals and groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from evaluation import metrics as measures
from evaluation import uncertainty
from evaluation.commands import shared, tables
from evaluation.trials import UnknownSpeakersError, find_speakers, group_trials, order_free_digest, read_metadata
from spkbase.console import Command, choice_option, path_option, worker_options
from spkbase.errors import DataError
from spkbase.files import format_table, write_text


@dataclass(frozen=True)
class _Assessed:
    """Results of a system; `trials` identifies its trials: a digest and counts; `by_line`: they have no ids."""

    result: measures.Evaluation
    report: dict[str, Any]
    trials: tuple[int, int, int]
    sample: uncertainty.Sample | None = None
    groups: uncertainty.Groups | None = None
    by_line: bool = False


@click.command(cls=Command)
@shared.system_options
@shared.convention_option
@click.option(
    "-p", "--prior", "priors", multiple=True, default=measures.PRIORS, help="Target prior of a cost; repeatable."
)
@shared.scale_option
@shared.resampling_options(0)
@shared.speaker_options
@choice_option(
    "--bootstrap-by",
    of=["speaker", "id", "trial"],
    help="What is resampled. speaker: speakers of the maps and the key; id: each id without a map is a speaker; "
    "trial: far too narrow where trials share speakers.",
)
@click.option("--reference", help="System that others are compared with; default the first.")
@click.option("--metric", "own_metrics", **shared.OWN, help="A user-supplied metric (docs/own_metric.md); repeatable.")
@path_option(
    "--threshold-from", nargs=2, metavar="SCORES KEY", help="Add error rates at thresholds chosen on another list."
)
@click.option("--by", "column", help="Column of --metadata to group by.")
@path_option("--metadata", help="Table with header; first column ids of models, segments or speakers.")
@path_option("--latex", help="Write metrics and differences as two narrow tables in LaTeX (booktabs).")
@path_option("--markdown", help="Write them as Markdown.")
@click.option("--columns", help="Metrics in the tables, named as in the JSON: eer.rocch,min_dcf.0.01,zebra.tag.")
@click.option("--all", "with_all", is_flag=True, help="Show all metrics, not the usual eight; JSON always has them.")
@worker_options
@shared.json_option
def metrics(
    systems: list[shared.System],
    convention: str,
    priors: tuple[str, ...],
    scale: Path | None,
    resampling: uncertainty.Resampling,
    maps: dict[str, Any],
    bootstrap_by: str,
    reader: shared.Reader,
    reference: str | None,
    own_metrics: tuple[str, ...],
    threshold_from: tuple[Path, Path] | None,
    column: str | None,
    metadata: Path | None,
    latex: Path | None,
    markdown: Path | None,
    columns: str | None,
    with_all: bool,
    jobs: int | None,
    json_path: Path | None,
) -> None:
    """Compute every metric of scores.

    Equal error rates are fractions by five definitions; `rocch`, that of the convex hull, is the default. A miss and a
    false alarm cost 1 each. Only cllr and act_dcf take scores as natural log-likelihood ratios.

    With speakers there are intervals, by 1000 resamples unless --bootstrap says otherwise. Repeat -s, and -k and -l
    where they differ, for several systems in one table; intervals bring paired differences from the --reference with
    p-values too.

    Example:
      spkver-eval metrics -s demo/scores/svm-gmm-nap.txt -k demo/task/3sess-pwd_eval_m_key.txt
      spkver-eval metrics -s scores.txt -k key.txt --bootstrap 1000 --segment-speakers utt2spk --json metrics.json
    """
    if (column is None) != (metadata is None):
        raise click.UsageError("expected --by COLUMN together with --metadata FILE")
    given = click.get_current_context().get_parameter_source("resamples") is not ParameterSource.DEFAULT
    if not given and any(of is not None for of in maps.values()):
        resampling = replace(resampling, resamples=uncertainty.Resampling.resamples)
    reference = reference or systems[0].name
    if reference not in (names := [system.name for system in systems]):
        raise click.UsageError(f"--reference {reference!r} is none of the labels: {', '.join(names)}")
    table = measures.METRICS if scale is None else measures.metrics_with(scale=measures.read_scale(scale))
    table += tuple(shared.load_own(name, "metric", measures.Metric) for name in own_metrics)
    if threshold_from is not None:
        if len(systems) > 1:
            raise click.UsageError("--threshold-from takes one system")
        development = reader.read(*threshold_from)
        text = "chose the threshold too: error rates are optimistic (give other trials)"
        shared.warn_of_own(reader.read(systems[0].scores, systems[0].key)[0], development[0], text)
        parts = reader.split(development, *threshold_from)
        table += measures.metrics_at_thresholds_of(measures.sort_scores(*parts), priors)
    statistic = measures.Metrics(priors, convention, table)
    groups_of = None if metadata is None else (read_metadata(metadata, column or ""), column or "")
    drawn = (bootstrap_by, resampling, maps)
    found = {
        system.name: _assess(system, reader, statistic, drawn, groups_of, jobs, several=len(systems) > 1)
        for system in systems
    }
    differences: dict[str, dict[str, uncertainty.Interval]] = {}
    notes = {}
    if unlike := [name for name, of_it in found.items() if of_it.trials != found[reference].trials]:
        text = f"other trials than {reference}, so figures are not comparable"
        notes["trials"] = f"{', '.join(unlike)}: {text}"
    comparable = [name for name in {reference: None, **found} if name not in unlike]
    if len(comparable) > 1 and resampling.resamples:
        samples = {name: sample for name in comparable if (sample := found[name].sample) is not None}
        try:
            differences = uncertainty.paired_differences(samples, statistic, resampling, jobs=jobs)
        except DataError as error:
            notes["differences"] = error.text
    if differences and found[reference].by_line:
        notes["pairs"] = "trials have no ids and are paired by line: all files must list them in the same order"

    results = {name: of_it.result for name, of_it in found.items()}
    first = results[systems[0].name]
    wanted = [name.strip() for name in columns.split(",")] if columns else list(first.values()) if with_all else []
    shown = tables.chosen_columns(first, wanted)
    numbers = {name: tables.numbers_of_system(result) for name, result in results.items()}
    gaps = uncertainty.difference_rows(differences, shown, reference)
    if markdown is not None:
        below = f"\nDifferences:\n\n{format_table(gaps, markdown=True)}\n" if gaps else ""
        write_text(markdown, f"{format_table(uncertainty.system_rows(numbers, shown), markdown=True)}\n{below}")
    if latex is not None:
        narrow = [one for one in shown if wanted or one.name in tables.NARROW]
        note = results[reference].notes.get("intervals", "")
        write_text(latex, uncertainty.paper_tables(numbers, differences, narrow, reference, note=note))
    report: dict[str, Any] = {name: of_it.report for name, of_it in found.items()}
    if len(systems) > 1:
        pairs = {name: {metric: gap.to_dict() for metric, gap in of_it.items()} for name, of_it in differences.items()}
        report = {"systems": report, "reference": reference, "differences": pairs} | ({"notes": notes} if notes else {})
    else:
        report = report[systems[0].name]
    if shared.show_json(report, json_path):
        return
    alone = first if with_all else tables.usual_rows(first, priors)
    click.echo(tables.format_systems(results, shown) if len(systems) > 1 or columns else str(alone))
    if differences:
        click.echo("\n" + format_table(gaps))
        if sum(cell.count(", p ") for row in gaps for cell in row.values()) > 1:
            click.echo("\np-values are corrected for their number by Holm's method")
    for name, text in notes.items():
        click.echo(f"\n{'no differences' if name == 'differences' else 'note'}: {text}")
    for name, of_it in found.items():
        if of_it.groups is not None:
            click.echo((f"\n{name}:\n" if len(systems) > 1 else "\n") + tables.format_groups(of_it.groups))


def _assess(
    system: shared.System,
    reader: shared.Reader,
    statistic: measures.Metrics,
    drawn: tuple[str, uncertainty.Resampling, dict[str, Any]],
    groups_of: tuple[Any, str] | None,
    jobs: int | None,
    *,
    several: bool,
) -> _Assessed:
    """Read a system's trials and compute what was asked for."""
    by, resampling, maps = drawn
    read = reader.read(system.scores, system.key)
    values, key = reader.joined(read, system.scores, system.key)  # with its errors, which name the place in the files
    scores = measures.sort_scores(values[key.is_target], values[~key.is_target])
    search = uncertainty.closed_search_note(values, key, scores)
    n_target = int(key.is_target.sum())
    trials = (order_free_digest(read[1]) if several else 0, n_target, len(key) - n_target)
    if not resampling.resamples and groups_of is None:
        result = statistic.evaluate(scores)
        result.notes.update(search)
        return _Assessed(result, result.to_dict(), trials)
    # without intervals nothing is drawn, and ids do as names
    units: Any = by if resampling.resamples or by == "trial" else "id"
    try:
        sample, scored = uncertainty.sample_from(*read, bootstrap_by=units, missing=reader.missing, **maps)
    except UnknownSpeakersError as error:
        remedy = f"{error.remedy}; --speakers-by SIGN where ids begin with the speaker"
        raise error.changed(error.text, remedy=remedy) from error
    result, groups, more = statistic.evaluate(sample.runs()), None, {}
    result.notes.update(search)
    if resampling.resamples:
        intervals = uncertainty.confidence_intervals(sample, statistic, resampling, jobs=jobs)
        units = {"speaker": "speakers", "id": "ids, each counted as a speaker"}.get(by, "")
        units = f"{sample.n_effective} {units}" if units else "trials"
        warning = "" if by != "trial" else "; far too narrow where trials share speakers"
        result = uncertainty.with_intervals(result, intervals, resampling.text(units) + warning)
        more["interval_methods"] = {name: ends.method for name, ends in intervals.items()}
    if groups_of is not None:
        speakers = None if by == "trial" else find_speakers(scored, **maps)
        grouped, column = group_trials(scored, groups_of[0], speakers=speakers), groups_of[1]
        groups = uncertainty.evaluate_groups(sample, *grouped, statistic, resampling, column=column, jobs=jobs)
        more["groups"] = groups.to_dict()
    by_line = read[1].segment_ids.tolist() == ["unknown"]
    return _Assessed(result, result.to_dict() | more, trials, sample, groups, by_line)
