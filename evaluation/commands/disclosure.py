"""``spkver-eval disclosure``: what scores disclose about people, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from evaluation import linkage
from evaluation.commands import shared
from evaluation.commands.linkability import numbers_option
from evaluation.trials import read_metadata, read_side
from evaluation.uncertainty import Fairness, Interval, Resampling
from spkbase.console import Command, choice_option, path_option, together, worker_options
from spkbase.errors import errors_of
from spkbase.files import format_table


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
        of=["speaker", "id"],
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
    side: Path | None,
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
    reader.joined((values, truth), scores, key)  # with its errors, which name places in the files
    options: dict[str, Any] = {}
    if background is not None:
        options["background"] = reader.read(*background)
    if side is not None:
        options["side"] = read_side(side)
    if metadata is not None and column is not None:
        options |= {"metadata": read_metadata(metadata, column), "column": column}
    with errors_of(key or scores):
        overview = linkage.disclosure_overview(
            values,
            truth,
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
    """Return the page: the people, a table of measures, the worst speaker, side information, groups and notes."""
    counts = overview.counts
    lines = [
        "{n_recordings:,} recordings of {n_speakers:,} speakers, {n_enrolled:,} enrolled".format(
            **counts
        ),
        "",
        format_table(_measures(overview)),
        "",
        *_people(overview),
    ]
    if overview.matching is not None:
        lines += ["", *_side(overview.matching)]
    if overview.fairness is not None:
        lines += ["", *_groups(overview.fairness)]
    if overview.notes:
        lines += ["", *(f"note: {note}" for note in overview.notes)]
    return "\n".join(lines)


def _row(measure: str, number: Interval, form: str, unit: str, by_chance: str) -> dict[str, str]:
    return {"measure": measure, "value": number.text(form), "unit": unit, "by chance": by_chance}


def _measures(overview: linkage.DisclosureOverview) -> list[dict[str, str]]:
    """Return the rows of the table, an error rate first."""
    rows = [_row("equal error rate", overview.eer, "%", "%", "50")]
    for size, share in overview.linkability.items():
        name = f"found among {size:,} (linkability)"
        rows.append(_row(name, share, "%", "%", f"{100 / size:.3g}"))
    information = overview.information
    rows += [
        _row("information disclosed, mean (ALID)", information.mean, ".2f", "bit", "0"),
        _row("recordings that disclose some (PDR)", information.share, "%", "%", "about 50"),
        _row("what these disclose (LID+)", information.gain, ".2f", "bit", "-"),
        _row("most in a recording (LID_max)", Interval(information.largest), ".2f", "bit", "-"),
    ]
    if overview.ranks:
        for title, name in (
            ("rank disclosure, mean", "mean_bits"),
            ("rank disclosure, worst", "worst_bits"),
        ):
            rows.append(_row(title, Interval(overview.ranks[name]), ".2f", "bit", "0"))
        spread = Interval(overview.ranks["rank_spread"])
        rows.append(_row("rank spread", spread, "%", "%", "-"))
    for name, evidence in vars(overview.worst_case).items():
        number = Interval(evidence.log10)
        rows.append(_row(f"worst case by {name}", number, ".2f", "log10 LLR", "-"))
    for rate, accepted in overview.accepted.items():
        allowed = 100 * float(rate)
        recognised = Interval(accepted["value"], accepted["low"], accepted["high"])
        name = f"recognised at {allowed:g} % false accepts"
        rows.append(_row(name, recognised, "%", "%", f"{allowed:g}"))
        epsilon = f"{accepted['epsilon']:.2f}, at least {accepted['epsilon_low']:.2f}"
        rows.append({"measure": "epsilon there", "value": epsilon, "unit": "nat", "by chance": "0"})
    return rows


def _people(overview: linkage.DisclosureOverview) -> list[str]:
    worst = overview.worst_speaker
    number = Interval(worst["value"], worst["low"], worst["high"]).text("%")
    found = overview.mostly_found
    share = Interval(found["value"], found["low"], found["high"]).text("%")
    return [
        f"most often found: {worst['speaker']}, first in {100 * worst['own_first']:.0f} % of"
        f" {worst['n_recordings']} own recordings and {100 * worst['others_first']:.1f} % of other people's;"
        f" the largest true difference is {number} %",
        f"found in more than half of the own recordings beyond that: {found['n_found']} speakers, {share} %",
    ]


def _side(matching: linkage.Matching) -> list[str]:
    search = matching.search
    numbers = search["rank1"]
    alone = f"nobody else does in {100 * search['share_alone']:.1f} % of the recordings"
    first = Interval(numbers["value"], numbers["low"], numbers["high"]).text("%")
    information = matching.information.mean.text(".2f")
    return [
        f"with side information {search['n_matching']:.1f} enrolled speakers match on average; {alone}",
        f"found among those who match: {first} % (chance {100 * numbers['chance']:.3g} %)",
        f"information disclosed: side information {matching.side_bits.text('.2f')} bit, the voice among those who"
        f" match {information} bit, both {matching.total.text('.2f')} bit",
    ]


def _groups(fairness: Fairness) -> list[str]:
    rows = []
    for name, rates in fairness.rates.items():
        cells = {rate: f"{100 * value:.2f}" for rate, value in rates.items()}
        rows.append({fairness.column: name, **cells})
    ratio = fairness.ratios["true_accept"]
    return [
        format_table(rows),
        f"at the threshold {fairness.threshold:.4g}, in %; {fairness.worst['true_accept']} are recognised"
        f" {ratio.text('.2f')} times as often as the group that is recognised least;"
        f" GARBE {fairness.garbe.text('.3f')}",
    ]
