"""Commands on linkability: ``spkver-eval linkability``, ``linkability-extrapolate`` and ``singling-out``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from evaluation import linkage, reports
from evaluation.commands import shared
from evaluation.embeddings import Averaging, Embeddings, read_embeddings
from evaluation.uncertainty import Resampling
from spkbase.console import (
    FILE,
    Command,
    choice_option,
    number_option,
    path_option,
    together,
    worker_options,
)
from spkbase.errors import DataError, errors_of
from spkbase.files import format_table
from spkbase.plain_pickle import read_torch
from spkbase.work import Work

logger = logging.getLogger(__name__)

_SHOWN = (2, 10, 100, 1000, 10_000, 100_000)
_COLUMNS = ("size", "linkability", "low", "high", "chance")
_MOST = 10**12
_ties_option = choice_option("--ties", choices=linkage.TIE_RULES, help="How equal scores count.")

_RESULTS_OPTIONS = [
    click.option(
        *("-o", "--output"),
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for all results.",
    ),
    shared.json_option,
]


def numbers_option(
    *names: str, least: int, words: tuple[str, ...] = (), help: str, **settings: Any
) -> Any:
    """Make an option for numbers or certain words, separated by commas or repeated; numbers are sorted first."""

    def parse(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> list[Any]:
        given = set(map(str.strip, ",".join(texts).split(","))) - {""}
        for word in sorted(given - set(words)):
            if not (word.isdecimal() and least <= int(word) <= _MOST):
                expected = ", ".join([*words, f"numbers from {least} to {_MOST:,}"])
                raise click.BadParameter(f"expected {expected}, got {word!r}")
        return sorted(map(int, given - set(words))) + [word for word in words if word in given]

    return click.option(*names, multiple=True, callback=parse, help=help, **settings)


_utterances_option = numbers_option(
    "--utterances",
    "--L",
    "utterances",
    least=1,
    words=("all",),
    help="Utterances averaged into a trial, such as 1,3,all. Default 1; for scores, each segment is a trial.",
)


@dataclass(frozen=True)
class VectorFiles:
    """Files of embeddings, as the options name them.

    Attributes
    ----------
    enroll, test : Path or None
        Embeddings of the enrolled speakers and of the tested utterances.
    model_speakers, segment_speakers : Path or None
        Their speakers.
    allow_pickle : bool
        Read pickles too.
    """

    enroll: Path | None
    test: Path | None
    model_speakers: Path | None
    segment_speakers: Path | None
    allow_pickle: bool

    def read(self) -> tuple[Embeddings, Embeddings]:
        """Read both sides."""
        if self.enroll is None or self.test is None:
            raise click.UsageError("expected --enroll FILE with --test FILE")
        enrolled = read_embeddings(
            self.enroll, speakers=self.model_speakers, allow_pickle=self.allow_pickle
        )
        tested = read_embeddings(
            self.test, speakers=self.segment_speakers, allow_pickle=self.allow_pickle
        )
        return enrolled, tested


def vector_options(*, required: bool) -> list[Any]:
    """Return the options for embeddings of both sides; the command gets the files as `vectors`."""
    return [
        shared.gathered(
            "vectors",
            VectorFiles,
            path_option(
                "--enroll",
                required=required,
                help="Embeddings of the enrolled speakers; formats as in `spkver-eval cosine --help`.",
            ),
            path_option("--test", required=required, help="Embeddings of the tested utterances."),
            shared.model_speakers_option,
            shared.segment_speakers_option,
            shared.pickle_option,
        ),
        shared.mean_option,
        _utterances_option,
    ]


@click.command(cls=Command)
@together(
    path_option(
        "--config",
        help="YAML of Speaker-Linkability: enroll_path, trial_path, and a seed that draws utterances.",
    ),
    *vector_options(required=False),
    path_option("-s", "--scores", help="Scores, or a .pt of similarities, instead of embeddings."),
    path_option("-k", "--key", help="Their key; none where the scores hold labels."),
    path_option("--ranks", help="Ranks of an earlier run (its --output)."),
    shared.reader_options(in_order=True),
    shared.side_option,
    choice_option(
        "--bootstrap-by",
        choices=["speaker", "id"],
        help="What is resampled: speakers, or model ids.",
    ),
    choice_option(
        "--not-enrolled",
        choices=["error", "drop"],
        help="Test speakers not enrolled: stop, or drop.",
    ),
    numbers_option(
        "--sizes",
        least=2,
        words=("all", "log", "published"),
        help="Gallery sizes: all (default), log, published, or 2,10,100.",
    ),
    choice_option(
        "--choice",
        choices=["first", "random"],
        help="Which utterances of a speaker are averaged; --seed draws.",
    ),
    numbers_option("--top", least=1, help="Also the target speaker among the first R: 5,10."),
    _ties_option,
    number_option("--runs", help="Random galleries in place of exact values; 0: exact."),
    click.option("--no-plots", is_flag=True, help="Write no plots."),
    click.option(
        "--keep-impostors", is_flag=True, help="Keep the scores that linkability-extrapolate needs."
    ),
    shared.resampling_options(),
    worker_options,
    *_RESULTS_OPTIONS,
)
def linkability(
    config: Path | None,
    vectors: VectorFiles,
    mean: Literal["plain", "normalised"],
    utterances: list[linkage.Utterances],
    scores: Path | None,
    key: Path | None,
    ranks: Path | None,
    reader: shared.Reader,
    known: dict[str, str] | None,
    bootstrap_by: Literal["speaker", "id"],
    not_enrolled: Literal["error", "drop"],
    sizes: list[Any],
    choice: Literal["first", "random"],
    top: list[int],
    ties: linkage.TieRule,
    runs: int,
    no_plots: bool,
    keep_impostors: bool,
    resampling: Resampling,
    jobs: int | None,
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Compute how often the target speaker scores highest among N enrolled speakers, exactly, for all N.

    Give embeddings (--enroll and --test, or --config), scores (-s and -k), or the folder of an earlier run (--ranks).

    Example:
      spkver-eval linkability --enroll enrol.h5 --test trial.h5 --output linkability
      spkver-eval linkability -s scores.txt -k key.txt --output linkability
      spkver-eval linkability --config libri_ECAPA_B3.yaml --L 3 --allow-pickle
    """
    if config is not None:
        source = linkage.read_linkability_config(config)
        if vectors.enroll is not None or vectors.test is not None:
            raise click.UsageError("--config names the embeddings: leave out --enroll and --test")
        vectors = replace(vectors, enroll=source.enroll, test=source.test)
        if source.seed is not None:
            choice = "random"
            resampling = replace(resampling, seed=source.seed)
    has_vectors = vectors.enroll is not None
    given = [source for source in (scores, vectors.enroll, ranks) if source is not None]
    is_whole = has_vectors == (vectors.test is not None) and (key is None or scores is not None)
    if len(given) != 1 or not is_whole:
        raise click.UsageError(
            "expected --enroll FILE with --test FILE, or -s SCORES with -k KEY, or --ranks FOLDER"
        )
    if keep_impostors and output is None:
        raise click.UsageError("--keep-impostors needs a folder: --output FOLDER")
    sizes = sizes or ["all"]
    if not isinstance(sizes[-1], int) and len(sizes) > 1:
        raise click.UsageError("--sizes takes numbers, or one of all, log and published")
    averaging = Averaging(mean, choice, resampling.seed)
    if averaging.choice == "random" and not has_vectors:
        raise click.UsageError("--choice random needs embeddings: --enroll FILE with --test FILE")
    if known is not None and ranks is not None:
        raise click.UsageError("--side needs embeddings or scores: --ranks holds only ranks")
    if ranks is not None:
        ranked = linkage.read_rank_tables(ranks, utterances)
    elif scores is not None:
        maps = shared.speaker_maps(vectors.model_speakers, vectors.segment_speakers)
        ranked = _rank_scores(
            scores,
            key,
            reader,
            utterances,
            maps=maps,
            bootstrap_by=bootstrap_by,
            keep_impostors=keep_impostors,
            side=known,
        )
    else:
        ranked = linkage.rank_embeddings(
            *vectors.read(),
            utterances=utterances,
            averaging=averaging,
            not_enrolled=not_enrolled,
            keep_impostors=keep_impostors,
            side=known,
            work=Work(jobs),
        )
    wanted = tuple(sizes) if isinstance(sizes[0], int) else sizes[0]
    settings = reports.Settings(
        **asdict(resampling), sizes=wanted, top=tuple(top), ties=ties, runs=runs
    )
    measured = reports.measure_linkage(ranked.tables, settings, matching=ranked.matching)
    report = _write(measured, {}, output, plots=not no_plots)
    if output is not None and (keep_impostors or (ranks is not None and ranked.impostor_scores)):
        linkage.write_impostor_scores(output, ranked.impostor_scores)
    if not shared.show_json(report, json_path):
        click.echo(_summary(measured, report))


@click.command(cls=Command)
@click.argument("ranks", type=FILE)
@together(
    numbers_option(
        "--populations", least=2, required=True, help="Numbers of speakers, such as 10000,1000000."
    ),
    _utterances_option,
    _ties_option,
    shared.resampling_options(),
    *_RESULTS_OPTIONS,
)
def extrapolate(
    ranks: Path,
    populations: list[int],
    utterances: list[linkage.Utterances],
    ties: linkage.TieRule,
    resampling: Resampling,
    output: Path | None,
    json_path: Path | None,
) -> None:
    """Estimate linkability in populations larger than the gallery, marked as extrapolated.

    RANKS is the --output of `spkver-eval linkability`; one of the methods needs its --keep-impostors too.

    Example:
      spkver-eval linkability-extrapolate linkability --populations 10000,1000000 --output beyond
    """
    ranked = linkage.read_rank_tables(ranks, utterances)
    measured = reports.measure_linkage(
        ranked.tables, reports.Settings(**asdict(resampling), ties=ties)
    )
    beyond = reports.extrapolate_linkage(
        ranked.tables, measured.settings, populations, impostor_scores=ranked.impostor_scores
    )
    report = _write(measured, beyond, output, plots=True)
    if not shared.show_json(report, json_path):
        click.echo("\n".join([_summary(measured, report), *_beyond_summary(beyond)]))


@click.command("singling-out", cls=Command)
@together(
    *vector_options(required=True),
    shared.side_option,
    shared.resampling_options(),
    shared.json_option,
)
def single_out(
    vectors: VectorFiles,
    mean: Literal["plain", "normalised"],
    utterances: list[linkage.Utterances],
    known: dict[str, str] | None,
    resampling: Resampling,
    json_path: Path | None,
) -> None:
    """Compute how often an attack singles out exactly one speaker of a crowd, by embeddings.

    Example:
      spkver-eval singling-out --enroll enrol.h5 --test trial.h5 --utterances 1,3
    """
    enrolled, tested = vectors.read()
    averaging = Averaging(mean)
    report: dict[str, Any] = {}
    failure: DataError | None = None
    for number in [number for number in utterances if number != "all"] or [1]:
        name = str(number)
        try:
            options: dict[str, Any] = {
                "utterances": number,
                "averaging": averaging,
                "resampling": resampling,
            }
            report[name] = linkage.singling_out(enrolled, tested, **options).to_dict()
            if known is not None:
                matching = linkage.singling_out(enrolled, tested, side=known, **options)
                report[name]["side"] = matching.to_dict()
        # too few speakers have this many utterances; smaller numbers may work
        except DataError as error:
            failure = error
            logger.warning("no singling out for L = %d: %s", number, error.text)
            report[name] = dict.fromkeys(linkage.REPORTED) | {"notes": [error.text]}
    if failure is not None and all(entry["value"] is None for entry in report.values()):
        raise failure
    if shared.show_json({"singling_out": report}, json_path):
        return
    for name, entry in report.items():
        if entry["value"] is not None:
            click.echo(f"singling out, L = {name}: {_isolation(entry)}")
        if "side" in entry:
            click.echo(
                f"singling out with side information, L = {name}: {_isolation(entry['side'])}"
            )


def _isolation(entry: dict[str, Any]) -> str:
    return "{value:.4f} [{low:.4f}, {high:.4f}], chance {chance:.4f}".format(**entry)


def _rank_scores(
    scores: Path,
    key: Path | None,
    reader: shared.Reader,
    utterances: list[linkage.Utterances],
    *,
    maps: dict[str, Any],
    bootstrap_by: Literal["speaker", "id"],
    keep_impostors: bool,
    side: dict[str, str] | None,
) -> linkage.RankTables:
    """Rank from scores; a file of PyTorch without a key is a similarity matrix."""
    if scores.suffix == ".pt" and key is None:
        if len(utterances) > 1:
            raise click.UsageError(
                "a matrix of similarities is for one number of utterances: give that number"
            )
        if side is not None:
            raise click.UsageError("--side needs ids, which a matrix of similarities lacks")
        number: Any = utterances[0] if utterances else 1
        if number == "all":
            number = linkage.ALL
        with errors_of(scores):
            return linkage.RankTables({number: linkage.ranks_of_matrix(read_torch(scores))})
    read = reader.read(scores, key)
    reader.split(read, scores, key)  # raises errors that name lines in the files
    with errors_of(key or scores):
        return linkage.rank_trial_scores(
            *read,
            utterances=utterances,
            bootstrap_by=bootstrap_by,
            missing=reader.missing,
            keep_impostors=keep_impostors,
            side=side,
            **maps,
        )


def _write(
    measured: reports.Linkage,
    beyond: dict[int, reports.Beyond],
    output: Path | None,
    *,
    plots: bool,
) -> dict[str, Any]:
    """Write all files if a folder is given, and return the report."""
    if output is not None:
        return reports.write_linkage(output, measured, beyond=beyond, plots=plots)
    report = measured.to_dict()
    if beyond:
        report = report | {"extrapolation": reports.report_extrapolation(beyond)}
    return report


def _summary(measured: reports.Linkage, report: dict[str, Any]) -> str:
    """Return a table with a few sizes for each number of utterances; shared notes appear once."""
    rows = []
    for number, curve in measured.curves.items():
        rows += [
            {"utterances": linkage.utterances_name(number)} | point for point in _points_of(curve)
        ]
    forms = {
        "utterances": "",
        "size": "",
        "linkability": ".4f",
        "low": ".4f",
        "high": ".4f",
        "chance": ".4g",
    }
    noun = "speakers" if all(table.are_speakers for table in measured.ranks.values()) else "models"
    head = f"{report['n_enroll']} enrolled, {report['n_trial']} trials of {report['n_speakers']} {noun}"
    lines = [
        f"{head}; ties {report['tie_rule']}, {report['estimator']}",
        "",
        format_table(rows, forms),
    ]
    shown = set[str]()
    for name, block in report["utterances"].items():
        bits = block["srd_mean_bits"]
        low = block["low"][-1]  # the whole gallery, unless --sizes end before
        high = block["high"][-1]
        whole = low == low and block["sizes"][-1] == report["n_enroll"]
        ends = f" [{low:.4f}, {high:.4f}]" if whole else ""
        text = f"L = {name}: rank-1 rate {block['rank1']:.4f}{ends}, mean over sizes {block['linkability_mean']:.4f}"
        if bits is not None:
            text += f", rank disclosure {bits:z.2f} bits (worst {block['srd_worst_bits']:z.2f})"
        lines.append(text)
        if "side" in block:
            lines.append(f"L = {name}: {_side_text(block['side'])}")
        lines += [f"note: {note}" for note in block["notes"] if note not in shown]
        shown.update(block["notes"])
    return "\n".join(lines)


def _side_text(report: dict[str, Any]) -> str:
    first = report["rank1"]
    text = f"among the {report['n_matching']:.1f} enrolled who match on average, rank-1 rate {first['value']:.4f}"
    if first["low"] == first["low"]:
        text += f" [{first['low']:.4f}, {first['high']:.4f}]"
    return f"{text}, chance {first['chance']:.4f}"


def _points_of(curve: linkage.Curve) -> list[dict[str, Any]]:
    """Return the known values at a few sizes of a curve."""
    last = len(curve.sizes) - 1
    columns = curve.to_columns()
    points = []
    for row, size in enumerate(curve.sizes.tolist()):
        if last < len(_SHOWN) or size in _SHOWN or row == last:
            point = {name: columns[name][row].item() for name in _COLUMNS}
            points.append({name: value for name, value in point.items() if value == value})
    return points


def _beyond_summary(beyond: Mapping[int, reports.Beyond]) -> list[str]:
    """Return the lines of a table of extrapolated values, or of bounds only if no method is trusted."""
    first = next(iter(beyond.values())).populations
    spanned = [name for name in linkage.SPANNED if name in first.predictions]
    forms = {"utterances": "", "population": ""} | dict.fromkeys([*spanned, "low", "high"], ".4g")
    meaning = f"low and high: the span of the intervals of {', '.join(spanned)}"
    rows = []
    notes = []
    for number, part in beyond.items():
        name = linkage.utterances_name(number)
        estimates = part.populations
        low, high = estimates.ends()
        columns = {"low": low, "high": high}
        if estimates.is_trusted:
            columns |= {method: estimates.predictions[method].linkability for method in spanned}
        for row, size in enumerate(estimates.sizes.tolist()):
            cells = {title: column[row].item() for title, column in columns.items()}
            rows.append({"utterances": name, "population": f"{size:,.0f}"} | cells)
        notes += [f"note: L = {name}: {note}" for note in estimates.notes]
    if not all(part.populations.is_trusted for part in beyond.values()):
        meaning += "; without an estimate the bounds, since no extrapolation is trusted"
    head = f"EXTRAPOLATED beyond the gallery of {first.measured_to:,}, not measured:"
    return ["", head, "", format_table(rows, forms), meaning, *notes]
