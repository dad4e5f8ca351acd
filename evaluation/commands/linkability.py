"""``spkver-eval linkability``: how often a voice is linked to its owner among N enrolled speakers, for all N."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

from evaluation.commands.linkability_inputs import rank_from_embeddings, rank_from_scores, read_side, single_out
from evaluation.commands.linkability_ranks import keep_impostors, source_of, take_up_ranks
from evaluation.commands.options import FILE, Reader, column_options, level_option, missing_option, show_json
from evaluation.commands.utility import json_option
from evaluation.linkage import (
    MEASURES,
    RULES,
    SPANNED,
    TIE_RULES,
)
from evaluation.reports import (
    ALL,
    Beyond,
    Linkage,
    Settings,
    clear_linkage,
    extrapolate_linkage,
    measure_linkage,
    report_extrapolation,
    speaker_quarters,
    utterances_name,
    write_extrapolation,
    write_linkage,
    write_plots,
    write_speaker_lists,
)
from spkbase.console import Command, device_option, worker_options
from spkbase.errors import DataError
from spkbase.files import format_table

logger = logging.getLogger(__name__)

_SHOWN = (2, 10, 100, 1000, 10_000, 100_000)
_MOST = 10**12


class ListCommand(Command):
    """A command whose options in `lists` take several values in a row: ``--sizes 2 10 100``."""

    lists = ("--utterances", "--sizes", "--top", "--extrapolate")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what click parses when the option is repeated before each of its values, which is what it knows."""
        spread: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                option = argument if argument in self.lists else ""
                spread.append(argument)
            elif option and spread[-1] != option:
                spread += [option, argument]
            else:
                spread.append(argument)
        return super().parse_args(ctx, spread)


@click.command(cls=ListCommand)
@click.option("--enroll", type=FILE, help="Embeddings of the enrolled: any form that `cosine --help` names.")
@click.option("--trial", type=FILE, help="Embeddings of the trials.")
@click.option(
    "--model-speakers",
    type=FILE,
    help="Speakers of the enrolled utterances, or of the models of scores: lines 'id speaker'.",
)
@click.option(
    "--segment-speakers",
    type=FILE,
    help="Speakers of the trial utterances, or of the segments of scores, as in utt2spk.",
)
@click.option(
    "--bootstrap-by",
    type=click.Choice(["speaker", "id"]),
    default="speaker",
    show_default=True,
    help="What intervals of scores draw: speakers, or each model id as one.",
)
@click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
@click.option("-s", "--scores", type=FILE, help="Scores of any kind, or a .pt of similarities, instead of embeddings.")
@click.option("-k", "--key", type=FILE, help="Their key; none where the scores hold labels.")
@click.option("--ranks", type=FILE, help="Ranks of an earlier run, its --output: for other sizes, ties or intervals.")
@missing_option
@column_options
@click.option(
    "--utterances",
    multiple=True,
    help="Utterances averaged into a trial: numbers, or all. 1 by default; of scores, each segment is then a trial.",
)
@click.option("--strict-utterances", is_flag=True, help="Stop where a speaker has fewer, instead of using all it has.")
@click.option(
    "--mean",
    type=click.Choice(["plain", "normalised"]),
    default="plain",
    show_default=True,
    help="Average embeddings as they are, or scaled to length 1 first.",
)
@click.option(
    "--choice",
    type=click.Choice(["first", "random"]),
    default="first",
    show_default=True,
    help="Which utterances of a speaker: the first of the file, or drawn by the seed.",
)
@click.option(
    "--not-enrolled",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Trial speakers that are not enrolled: stop, or drop and count.",
)
@click.option("--sizes", multiple=True, help="Gallery sizes: all (default), log, published, or numbers.")
@click.option("--top", multiple=True, type=click.IntRange(min=1), help="Also: the owner among the first R.")
@click.option("--ties", type=click.Choice(TIE_RULES), default="shared", show_default=True, help="What a tie counts.")
@click.option(
    "--estimator", type=click.Choice(["exact", "monte-carlo"]), default="exact", show_default=True, help="How."
)
@click.option("--runs", type=click.IntRange(min=1), default=5, show_default=True, help="Of monte-carlo.")
@click.option("--single-runs", is_flag=True, help="Also write the linkability of each run of monte-carlo.")
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    default="log",
    show_default=True,
    help="How sizes count in a speaker's mean: alike on a log scale, or each the same.",
)
@click.option(
    "--quartile-ties",
    type=click.Choice(RULES),
    default="nearest",
    show_default=True,
    help="Equal speakers at the edge of the quarter that is easy or hard to link.",
)
@click.option(
    "--extrapolate",
    multiple=True,
    help="Also estimate, marked as extrapolated, at populations larger than the gallery: numbers.",
)
@click.option("--keep-impostors", is_flag=True, help="Write what --ranks with --extrapolate needs into the folder.")
@click.option("--singling-out", is_flag=True, help="Also: how often exactly one speaker of a crowd is isolated.")
@click.option(
    "--bootstrap", "replicates", type=click.IntRange(min=0), default=1000, show_default=True, help="Resamples."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all draws.")
@level_option
@worker_options
@device_option
@click.option(
    "-o", "--output", type=FILE, help="Folder for all results: numbers, plots, lists of easy and hard speakers."
)
@click.option("--no-plots", is_flag=True, help="Leave the plots of the folder out.")
@json_option
def linkability(**options: Any) -> None:
    """Compute how often the owner of a voice scores highest among N enrolled speakers, exactly, for all N.

    Give embeddings (--enroll and --trial), scores (-s and -k), or the folder of an earlier run (--ranks).
    """
    settings = _settings(options)
    if options["keep_impostors"] and options["output"] is None:
        raise click.UsageError("--keep-impostors needs a folder: --output FOLDER")
    _check_outputs(options)
    numbers = _utterances(options["utterances"])
    populations = _populations(options["extrapolate"])
    reader: Reader = options["reader"]
    additions: dict[str, Any] = {}
    largest: dict[int, NDArray] = {}  # impostor scores, which one of the methods beyond the gallery needs
    named = True
    source = source_of(options)
    if source == "ranks":
        ranks, largest, named = take_up_ranks(options["ranks"], numbers)
    elif source == "scores":
        ranks, largest, named = rank_from_scores(options, reader, numbers)
    else:
        enrol, trial = (read_side(options, side) for side in ("enroll", "trial"))
        ranks, largest = rank_from_embeddings(enrol, trial, options, numbers)
        if options["singling_out"]:
            additions["singling_out"] = single_out(enrol, trial, settings, options, numbers)
    if not named:
        settings = replace(settings, replicates=0)
    beyond = extrapolate_linkage(ranks, settings, populations, impostor_scores=largest) if populations else {}
    linkage = measure_linkage(ranks, settings)
    if beyond:
        additions["extrapolation"] = report_extrapolation(beyond)
    report = linkage.report | additions if options["output"] is None else _written(linkage, beyond, additions, options)
    if options["keep_impostors"] or (source == "ranks" and largest and options["output"] is not None):
        keep_impostors(options["output"], largest)
    json_path: Path | None = options["json_path"]
    if show_json(report, json_path):
        return
    click.echo("\n".join([_summary(linkage, report, named), *_beyond_summary(beyond)]))


def _written(
    linkage: Linkage, beyond: dict[int, Beyond], additions: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Write everything into the folder, plots and lists of speakers too; `linkability.json` at last."""
    folder: Path = options["output"]
    clear_linkage(folder)
    quartiles = write_speaker_lists(folder, speaker_quarters(linkage, rule=options["quartile_ties"]))
    if beyond:
        write_extrapolation(folder, beyond)
    if not options["no_plots"]:
        write_plots(folder, linkage, beyond)
    return write_linkage(folder, linkage, beyond=beyond, additions=additions | {"quartiles": quartiles})


def _beyond_summary(beyond: Mapping[int, Beyond]) -> list[str]:
    """Return lines that show the extrapolated in a table of its own, so that nobody takes it for measured."""
    if not beyond:
        return []
    first = next(iter(beyond.values()))
    lines = ["", f"EXTRAPOLATED beyond the {first.populations.measured_to:,} of the gallery, not measured:", ""]
    rows = []
    for number, part in beyond.items():
        low, high = part.populations.span()
        for row, size in enumerate(part.populations.sizes.tolist()):
            said = {name: method.linkability[row].item() for name, method in part.populations.predictions.items()}
            methods = {name: value for name, value in said.items() if value == value}  # bounds have no estimate
            ends = {"low": low[row].item(), "high": high[row].item()}
            rows.append({"utterances": utterances_name(number), "population": f"{size:,.0f}"} | methods | ends)
    forms = {name: "" if name in ("utterances", "population") else ".4g" for name in rows[0]}
    notes = [
        f"note: L = {utterances_name(number)}: {note}"
        for number, part in beyond.items()
        for note in part.populations.notes
    ]
    spanned = [name for name in SPANNED if name in first.populations.predictions]
    return [
        *lines,
        format_table(rows, forms),
        f"low and high: the span of the intervals of {', '.join(spanned)}",
        *notes,
    ]


def _check_outputs(options: dict[str, Any]) -> None:
    """Find out before anything long starts that results have no place."""
    folder: Path | None = options["output"]
    if folder is not None:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise DataError("expected a folder for results, got a file", file=nearest, remedy="choose another --output")
    json_path: Path | None = options["json_path"]
    if json_path is not None and json_path.is_dir():
        raise DataError("expected a file for JSON, got a folder", file=json_path, remedy="choose another --json")


def _settings(options: dict[str, Any]) -> Settings:
    if options["replicates"] == 1:
        raise click.BadParameter(
            "expected 0 for no intervals, or at least 2 resamples, got 1", param_hint="--bootstrap"
        )
    names = ("top", "ties", "estimator", "measure", "replicates", "seed", "level", "runs", "single_runs")
    return Settings(sizes=_sizes(options["sizes"]), **{name: options[name] for name in names})


def _sizes(given: tuple[str, ...]) -> Any:
    """Read --sizes: a word, or numbers from 2."""
    words = _split(given) or ["all"]
    if len(words) == 1 and words[0] in ("all", "log", "published"):
        return words[0]
    return tuple(_number(word, "--sizes", 2, "all, log, published, or numbers") for word in words)


def _utterances(given: tuple[str, ...]) -> list[int] | None:
    words = _split(given)
    if not words:
        return None
    numbers = {ALL if word == "all" else _number(word, "--utterances", 1, "all, or numbers") for word in words}
    return sorted(numbers, key=lambda number: (number == ALL, number))


def _populations(given: tuple[str, ...]) -> list[int]:
    return sorted({_number(word, "--extrapolate", 2, "numbers") for word in _split(given)})


def _split(given: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _number(text: str, option: str, least: int, expected: str) -> int:
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))
    if not plain or not least <= int(text) <= _MOST:
        raise click.BadParameter(f"expected {expected} from {least} to {_MOST:,}, got {text!r:.40}", param_hint=option)
    return int(text)


def _summary(linkage: Linkage, report: dict[str, Any], named: bool) -> str:
    """A table of a few sizes of each number of utterances."""
    rows = []
    names = ("size", "linkability", "low", "high", "chance")
    for number, curve in linkage.curves.items():
        last = len(curve.sizes) - 1
        few = last < len(_SHOWN)
        shown_rows = [row for row, size in enumerate(curve.sizes.tolist()) if few or size in _SHOWN or row == last]
        columns = (curve.sizes, curve.values, curve.low, curve.high, curve.chance)
        for row in shown_rows:
            point = {name: column[row].item() for name, column in zip(names, columns, strict=True)}
            known = {name: value for name, value in point.items() if value == value}
            rows.append({"utterances": utterances_name(number)} | known)
    forms = {"utterances": "", "size": "", "linkability": ".4f", "low": ".4f", "high": ".4f", "chance": ".4g"}
    head = f"{report['n_enroll']} enrolled, {report['n_trial']} trials of {report['n_speakers']} "
    head += "speakers" if named else "models"
    lines = [f"{head}; ties {report['tie_rule']}, {report['estimator']}", "", format_table(rows, forms)]
    for name, block in report["utterances"].items():
        bits = block["srd_mean_bits"]
        text = f"L = {name}: rank-1 rate {block['rank1']:.4f}, mean over sizes {block['linkability_mean']:.4f}"
        lines.append(
            text if bits is None else f"{text}, rank disclosure {bits:.2f} bits (worst {block['srd_worst_bits']:.2f})"
        )
        lines += [f"note: {note}" for note in block["notes"]]
    for name, isolated in report.get("singling_out", {}).items():
        if isolated["value"] is None:
            continue
        ends = f"[{isolated['low']:.4f}, {isolated['high']:.4f}]"
        lines.append(f"singling out, L = {name}: {isolated['value']:.4f} {ends}, chance {isolated['chance']:.4f}")
    return "\n".join(lines)
