"""``spkver-eval disclosure``: what scores disclose about people, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import Any, Literal

import click

from evaluation import linkage
from evaluation.commands import shared
from evaluation.commands.linkability import numbers_option
from evaluation.trials import read_metadata
from evaluation.uncertainty import Interval, Resampling
from spkbase.console import Command, choice_option, path_option, together, worker_options
from spkbase.errors import errors_of
from spkbase.files import format_table

# titles by key of the report; N stands for a number, which the title repeats
_TITLES = {
    "eer": ("equal error rate (chance 50)", "%"),
    "linkability.N": ("found among {} people (linkability)", "%"),
    "lid.alid": ("information disclosed, mean (ALID)", "bit"),
    "lid.pdr": ("recordings that disclose some (PDR)", "%"),
    "lid.lid_plus": ("what these disclose (LID+)", "bit"),
    "lid.lid_max": ("most in a recording (LID_max)", "bit"),
    "rank_disclosure.mean_bits": ("rank disclosure, mean", "bit"),
    "rank_disclosure.worst_bits": ("rank disclosure, worst", "bit"),
    "rank_disclosure.rank_spread": ("rank spread", "%"),
    "worst_case.pav.log10": ("worst case, isotonic regression", "log10"),
    "worst_case.gaussian.log10": ("worst case, Gaussians", "log10"),
    "worst_case.student.log10": ("worst case, Student's t", "log10"),
    "worst_case.ranks.log10": ("worst case, ranks", "log10"),
    "tpr_at_fpr.N.true_accept": ("recognised at a false-accept rate of {}", "%"),
    "tpr_at_fpr.N.epsilon": ("epsilon there", ""),
    "worst_speaker.beyond_everybody": ("found most often, beyond everybody*", "%"),
    "mostly_found.share": ("speakers found in most recordings", "%"),
    "side.search.rank1": ("found among those who match", "%"),
    "side.search.n_matching": ("number of those who match", ""),
    "side.side_bits": ("disclosed by side information", "bit"),
    "side.alid_total": ("disclosed by side information and voice", "bit"),
    "fairness.ratios.true_accept": ("recognised: highest over lowest group", ""),
    "fairness.ratios.false_alarm": ("false alarms: highest over lowest group", ""),
    "fairness.garbe": ("inequality of groups (GARBE)", ""),
}


@click.command(cls=Command)
@together(
    shared.scores_option,
    shared.key_option,
    shared.reader_options(in_order=True),
    path_option(
        "--background",
        nargs=2,
        metavar="SCORES KEY",
        help="Trials of other speakers that local information disclosure is calibrated with.",
    ),
    shared.side_option,
    click.option("--by", "column", help="Column of --metadata to group by."),
    path_option(
        "--metadata", help="Table with header; first column ids of models, segments or speakers."
    ),
    shared.speaker_options,
    choice_option(
        "--bootstrap-by",
        choices=["speaker", "id"],
        help="What is resampled: speakers, or ids without a map.",
    ),
    numbers_option(
        "--sizes", least=2, help="Sizes of the gallery for linkability; default 10,100,1000."
    ),
    shared.resampling_options(),
    worker_options,
    shared.json_option,
)
def disclosure(
    scores: Path,
    key: Path | None,
    reader: shared.Reader,
    background: tuple[Path, Path] | None,
    known: dict[str, str] | None,
    column: str | None,
    metadata: Path | None,
    maps: dict[str, Any],
    bootstrap_by: Literal["speaker", "id"],
    sizes: list[int],
    resampling: Resampling,
    jobs: int | None,
    json_path: Path | None,
) -> None:
    """Compute what scores disclose about people: all measures on one page, with intervals over speakers.

    Each recording has scores of enrolled speakers, one of whom speaks. docs/what_is_lost.md says which measure answers
    which question.

    Example:
      spkver-eval disclosure -s scores.txt -k key.txt
      spkver-eval disclosure -s scores.txt -k key.txt --segment-speakers utt2spk --json disclosure.json
    """
    if (column is None) != (metadata is None):
        raise click.UsageError("expected --by COLUMN together with --metadata FILE")
    values, truth = reader.read(scores, key)
    reader.joined((values, truth), scores, key)  # join first: its errors name lines of the files
    options: dict[str, Any] = {}
    if background is not None:
        options["background"] = reader.read(*background)
    if metadata is not None and column is not None:
        options |= {"metadata": read_metadata(metadata, column), "column": column}
    with errors_of(key or scores):
        overview = linkage.disclosure_overview(
            values,
            truth,
            side=known,
            **options,
            **maps,
            bootstrap_by=bootstrap_by,
            sizes=sizes or linkage.SIZES,
            resampling=resampling,
            missing=reader.missing,
            jobs=jobs,
        )
    if not shared.show_json(overview.to_dict(), json_path):
        click.echo(_page(overview))


def _page(overview: linkage.DisclosureOverview) -> str:
    """Return the page: who was compared, a table of measures, and notes."""
    head = "{n_recordings:,} recordings of {n_speakers:,} speakers, {n_enrolled:,} enrolled"
    rows = []
    for path, numbers in _numbers(overview.to_dict()):
        digits = [part for part in path if part[0].isdigit()]
        title, unit = _TITLES.get(
            ".".join("N" if part in digits else part for part in path), ("", "")
        )
        if title:
            value = Interval(numbers["value"], numbers.get("low", nan), numbers.get("high", nan))
            text = value.text("%" if unit == "%" else ".2f")
            rows.append({"measure": title.format(*digits), "value": text, "unit": unit})
    lines = [head.format(**vars(overview)), "", format_table(rows)]
    worst = overview.worst_speaker
    lines.append(
        f"* {worst['speaker']}: first in {100 * worst['own_first']:.0f} % of {worst['n_recordings']} own"
        f" recordings, in {100 * worst['others_first']:.1f} % of other people's"
    )
    lines += [f"note: {note}" for note in overview.notes]
    return "\n".join(lines)


def _numbers(
    report: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the numbers of a report with their keys; a plain number has no interval."""
    for name, part in report.items():
        if isinstance(part, float):
            yield (*path, name), {"value": part}
        elif isinstance(part, dict) and "value" in part:
            yield (*path, name), part
        elif isinstance(part, dict):
            yield from _numbers(part, (*path, name))
