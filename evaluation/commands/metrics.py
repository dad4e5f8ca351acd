"""``spkver-eval metrics``: every metric of one system or several, with intervals and groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from evaluation import linkage, plots, uncertainty
from evaluation import metrics as measures
from evaluation.commands import shared, tables
from evaluation.trials import TrialError, UnknownSpeakersError, read_metadata
from spkbase.console import Command, choice_option, path_option, worker_options
from spkbase.files import write_text


@click.command(cls=Command)
@shared.system_options
@shared.convention_option
@click.option(
    "-p",
    "--prior",
    "priors",
    multiple=True,
    default=measures.PRIORS,
    help="Target prior of a cost; repeatable.",
)
@shared.scale_option
@shared.resampling_options(0)
@shared.speaker_options
@choice_option(
    "--bootstrap-by",
    choices=["speaker", "id", "trial"],
    help="What is resampled. speaker: speakers of the maps and the key; id: each id without a map is a speaker; "
    "trial: far too narrow where trials share speakers.",
)
@click.option("--reference", help="System that others are compared with; default the first.")
@click.option(
    "--metric",
    "own_metrics",
    **shared.OWN,
    help="A user-supplied metric (docs/own_metric.md); repeatable.",
)
@path_option(
    "--threshold-from",
    nargs=2,
    metavar="SCORES KEY",
    help="Add error rates at thresholds chosen on another list.",
)
@click.option(
    "--by",
    "column",
    help="Column of --metadata to group by; speaker, without --metadata: a row for each speaker.",
)
@path_option(
    "--zoo", help="With --by speaker: plot who is hard to recognise and who is easily imitated."
)
@path_option(
    "--metadata", help="Table with header; first column ids of models, segments or speakers."
)
@path_option(
    "--latex", help="Write metrics and differences as two narrow tables in LaTeX (booktabs)."
)
@path_option("--markdown", help="Write them as Markdown.")
@click.option(
    "--columns",
    help="Metrics in the tables, named as in the JSON: eer.rocch,min_dcf.0.01,zebra.tag.",
)
@click.option(
    "--all",
    "with_all",
    is_flag=True,
    help="Show all metrics, not the usual eight; JSON always has them.",
)
@worker_options
@shared.json_option
def metrics(
    systems: list[shared.System],
    convention: str,
    priors: tuple[str, ...],
    scale: Path | None,
    resampling: uncertainty.Resampling,
    maps: dict[str, Any],
    bootstrap_by: Literal["speaker", "id", "trial"],
    reader: shared.Reader,
    reference: str | None,
    own_metrics: tuple[str, ...],
    threshold_from: tuple[Path, Path] | None,
    column: str | None,
    metadata: Path | None,
    zoo: Path | None,
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
      spkver-eval metrics -s scores.txt -k key.txt --by speaker --segment-speakers utt2spk --zoo zoo.pdf
    """
    each_speaker = column == "speaker" and metadata is None
    if (column is None) != (metadata is None) and not each_speaker:
        raise click.UsageError(
            "expected --by COLUMN together with --metadata FILE, or --by speaker"
        )
    if zoo is not None and (not each_speaker or len(systems) > 1):
        raise click.UsageError("--zoo needs --by speaker, and one system")
    given = (
        click.get_current_context().get_parameter_source("resamples") is not ParameterSource.DEFAULT
    )
    if not given and any(side is not None for side in maps.values()):
        resampling = replace(resampling, resamples=uncertainty.Resampling.resamples)
    table = _table_of_metrics(scale, own_metrics)
    if threshold_from is not None:
        if len(systems) > 1:
            raise click.UsageError("--threshold-from takes one system")
        table += _metrics_of_development(systems[0], threshold_from, reader, priors)
    scores = {}
    keys = {}
    for system in systems:
        scores[system.name], keys[system.name] = reader.read(system.scores, system.key)
    groups = None
    if metadata is not None and column is not None:
        groups = read_metadata(metadata, column)
    try:
        evaluated = uncertainty.evaluate_systems(
            scores,
            keys,
            metrics=table,
            convention=convention,
            priors=priors,
            bootstrap_by=bootstrap_by,
            resampling=resampling,
            reference=reference,
            metadata=groups,
            column=(metadata and column) or "",
            missing=reader.missing,
            jobs=jobs,
            **maps,
        )
    except TrialError:
        for system in systems:  # raises the error again with its line in the files
            reader.joined((scores[system.name], keys[system.name]), system.scores, system.key)
        raise
    except UnknownSpeakersError as error:
        remedy = f"{error.remedy}; --speakers-by SIGN where ids begin with the speaker"
        raise error.changed(error.text, remedy=remedy) from error
    for system in systems:
        turned = measures.reversal(evaluated.systems[system.name].scores)
        shared.warn_of_doubts(system.scores, turned, keys[system.name])
    shared.warn_of_same_scores(systems, scores)

    first = evaluated.first.result
    wanted = []
    if columns:
        wanted = [name.strip() for name in columns.split(",")]
    elif with_all:
        wanted = list(first.values())
    shown = tables.chosen_columns(first, wanted)
    if markdown is not None:
        write_text(markdown, tables.markdown_tables(evaluated, shown))
    if latex is not None:
        narrow = [metric for metric in shown if wanted or metric.name in tables.NARROW]
        write_text(latex, tables.latex_tables(evaluated, narrow))
    report = evaluated.to_dict()
    people = {}
    if each_speaker:
        for system in systems:
            name = system.name
            people[name] = linkage.per_speaker(
                scores[name], keys[name], **maps, missing=reader.missing
            )
        report["per_speaker"] = {name: found.to_dict() for name, found in people.items()}
        if len(systems) == 1:
            report["per_speaker"] = report["per_speaker"][systems[0].name]
    if zoo is not None:
        plots.plot_zoo(people[systems[0].name], path=zoo)
    if shared.show_json(report, json_path):
        return
    if len(systems) > 1 or columns:
        click.echo(tables.format_systems(evaluated.results, shown))
    elif with_all:
        click.echo(str(first))
    else:
        click.echo(str(tables.usual_rows(first, priors)))
    click.echo(tables.format_comparison(evaluated, shown), nl=False)
    for name, found in people.items():
        click.echo(f"\n{name}: {found}")


def _table_of_metrics(
    scale: Path | None, own_metrics: tuple[str, ...]
) -> tuple[measures.Metric, ...]:
    """Return the built-in metrics and the user's."""
    table: tuple[measures.Metric, ...] = measures.METRICS
    if scale is not None:
        table = measures.metrics_with(scale=measures.read_scale(scale))
    return table + tuple(shared.load_own(name, "metric", measures.Metric) for name in own_metrics)


def _metrics_of_development(
    system: shared.System, files: tuple[Path, Path], reader: shared.Reader, priors: tuple[str, ...]
) -> tuple[measures.Metric, ...]:
    """Return error rates at thresholds chosen on the development list."""
    development = reader.read(*files)
    scores, _ = reader.read(system.scores, system.key)
    text = "chose the threshold too: error rates are optimistic (give other trials)"
    shared.warn_of_own(scores, development[0], text)
    target, nontarget = reader.split(development, *files)
    return measures.metrics_at_thresholds_of(measures.sort_scores(target, nontarget), priors)
