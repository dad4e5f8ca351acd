"""Commands on linkability: ``spkver-eval linkability``, ``linkability-extrapolate`` and ``singling-out``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from evaluation import linkage, reports
from evaluation.commands import shared
from evaluation.embeddings import Averaging, Embeddings, read_embeddings, speaker_vectors, warn_of_enrolled
from evaluation.metrics import reversal
from evaluation.trials import doubt_speakers, find_speakers
from evaluation.uncertainty import Resampling
from spkbase.console import FILE, Command, choice_option, number_option, path_option, together, worker_options
from spkbase.errors import DataError, errors_of
from spkbase.files import atomic_path, format_table
from spkbase.plain_pickle import read_npz, read_torch
from spkbase.work import Work

logger = logging.getLogger(__name__)

IMPOSTORS = "impostors.npz"

Ranked = tuple[dict[int, linkage.Ranks], dict[int, NDArray]]
"""Ranks by number of utterances, and the largest impostor scores where they are to be kept."""

_SHOWN = (2, 10, 100, 1000, 10_000, 100_000)
_MOST = 10**12
_NO_INTERVALS = "no intervals:"
_NOT_SPEAKERS = (
    "give the speakers of the models: --model-speakers FILE (lines 'id speaker'); if each model is a speaker:"
    " --bootstrap-by id"
)
_ties_option = choice_option("--ties", of=linkage.TIE_RULES, help="How equal scores count.")

_RESULTS_OPTIONS = [
    click.option(
        *("-o", "--output"),
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for all results.",
    ),
    shared.json_option,
]


def numbers_option(*names: str, least: int, words: tuple[str, ...] = (), help: str, **settings: Any) -> Any:
    """Make an option that takes numbers, or some words, at commas or repeated; numbers come first, in their order."""

    def parse(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> list[Any]:
        given = {word.strip() for text in texts for word in text.split(",") if word.strip()}
        for word in sorted(given - set(words)):
            if not (word.isdecimal() and least <= int(word) <= _MOST):
                expected = ", ".join([*words, f"numbers from {least} to {_MOST:,}"])
                raise click.BadParameter(f"expected {expected}, got {word!r}")
        return sorted(map(int, given - set(words))) + [word for word in words if word in given]

    return click.option(*names, multiple=True, callback=parse, help=help, **settings)


_utterances_option = numbers_option(
    "--utterances",
    least=1,
    words=("all",),
    help="Utterances averaged into a trial, such as 1,3,all. Default 1; for scores, each segment is a trial.",
)


def _embeddings_options(*, required: bool) -> list[Any]:
    return [
        path_option(
            "--enroll",
            required=required,
            help="Embeddings of the enrolled speakers; formats as in `spkver-eval cosine --help`.",
        ),
        path_option("--test", required=required, help="Embeddings of the tested utterances."),
        shared.model_speakers_option,
        shared.segment_speakers_option,
        shared.pickle_option,
        shared.mean_option,
        _utterances_option,
    ]


@click.command(cls=Command)
@together(
    *_embeddings_options(required=False),
    path_option("-s", "--scores", help="Scores, or a .pt of similarities, instead of embeddings."),
    path_option("-k", "--key", help="Their key; none where the scores hold labels."),
    path_option("--ranks", help="Ranks of an earlier run (its --output)."),
    shared.reader_options(in_order=True),
    choice_option("--bootstrap-by", of=["speaker", "id"], help="What is resampled: speakers, or model ids."),
    choice_option("--not-enrolled", of=["error", "drop"], help="Test speakers not enrolled: stop, or drop."),
    numbers_option(
        "--sizes",
        least=2,
        words=("all", "log", "published"),
        help="Gallery sizes: all (default), log, published, or 2,10,100.",
    ),
    choice_option("--choice", of=["first", "random"], help="Which utterances of a speaker are averaged; --seed draws."),
    numbers_option("--top", least=1, help="Also the target speaker among the first R: 5,10."),
    _ties_option,
    number_option("--runs", help="Random galleries in place of exact values; 0: exact."),
    click.option("--no-plots", is_flag=True, help="Write no plots."),
    click.option("--keep-impostors", is_flag=True, help="Keep the scores that linkability-extrapolate needs."),
    shared.resampling_options(),
    worker_options,
    *_RESULTS_OPTIONS,
)
def linkability(resampling: Resampling, **options: Any) -> None:
    """Compute how often the target speaker scores highest among N enrolled speakers, exactly, for all N.

    Give embeddings (--enroll and --test), scores (-s and -k), or the folder of an earlier run (--ranks).

    Example:
      spkver-eval linkability --enroll enrol.h5 --test trial.h5 --output linkability
      spkver-eval linkability -s scores.txt -k key.txt --output linkability
    """
    scored, of_key, enrolled, tried, ranked = (
        options[name] is not None for name in ("scores", "key", "enroll", "test", "ranks")
    )
    if scored + enrolled + ranked != 1 or enrolled != tried or (of_key and not scored):
        raise click.UsageError("expected --enroll FILE with --test FILE, or -s SCORES with -k KEY, or --ranks FOLDER")
    if options["keep_impostors"] and options["output"] is None:
        raise click.UsageError("--keep-impostors needs a folder: --output FOLDER")
    sizes = options["sizes"] or ["all"]
    if not isinstance(sizes[-1], int) and len(sizes) > 1:
        raise click.UsageError("--sizes takes numbers, or one of all, log and published")
    numbers = _numbers(options["utterances"])
    averaging = Averaging(options["mean"], options["choice"], resampling.seed)
    if averaging.choice == "random" and not enrolled:
        raise click.UsageError("--choice random needs embeddings: --enroll FILE with --test FILE")
    if ranked:
        ranks, largest = _ranks_of(options["ranks"], numbers)
    elif scored:
        ranks, largest = _rank_scores(options, numbers)
    else:
        ranks, largest = _rank_embeddings(options, numbers, averaging)
    measured = _measure(
        ranks,
        resampling,
        sizes=tuple(sizes) if isinstance(sizes[0], int) else sizes[0],
        top=tuple(options["top"]),
        ties=options["ties"],
        runs=options["runs"],
    )
    report = _write(measured, {}, options)
    if options["keep_impostors"] or (ranked and largest and options["output"] is not None):
        with atomic_path(options["output"] / IMPOSTORS) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **{str(number): scores for number, scores in largest.items()})  # type: ignore[arg-type]
    if not shared.show_json(report, options["json_path"]):
        click.echo(_summary(measured, report))


@click.command(cls=Command)
@click.argument("ranks", type=FILE)
@together(
    numbers_option("--populations", least=2, required=True, help="Numbers of speakers, such as 10000,1000000."),
    _utterances_option,
    _ties_option,
    shared.resampling_options(),
    *_RESULTS_OPTIONS,
)
def extrapolate(ranks: Path, populations: list[int], resampling: Resampling, **options: Any) -> None:
    """Estimate linkability in populations larger than the gallery, marked as extrapolated.

    RANKS is the --output of `spkver-eval linkability`; one of the methods needs its --keep-impostors too.

    Example:
      spkver-eval linkability-extrapolate linkability --populations 10000,1000000 --output beyond
    """
    tables, largest = _ranks_of(ranks, _numbers(options["utterances"]))
    measured = _measure(tables, resampling, ties=options["ties"])
    beyond = reports.extrapolate_linkage(tables, measured.settings, populations, impostor_scores=largest)
    report = _write(measured, beyond, options)
    if not shared.show_json(report, options["json_path"]):
        click.echo("\n".join([_summary(measured, report), *_beyond_summary(beyond)]))


@click.command("singling-out", cls=Command)
@together(*_embeddings_options(required=True), shared.resampling_options(), shared.json_option)
def single_out(utterances: list[Any], resampling: Resampling, **options: Any) -> None:
    """Compute how often an attack singles out exactly one speaker of a crowd, by embeddings.

    Example:
      spkver-eval singling-out --enroll enrol.h5 --test trial.h5 --utterances 1,3
    """
    enrol, trial = _sides(options)
    averaging = Averaging(options["mean"])
    report: dict[str, Any] = {}
    failure: DataError | None = None
    for number in [one for one in utterances if one != "all"] or [1]:
        name = str(number)
        try:
            report[name] = linkage.singling_out(
                enrol, trial, utterances=number, averaging=averaging, resampling=resampling
            ).to_dict()
        except DataError as error:  # too few utterances of this length; shorter ones may have enough
            failure = error
            logger.warning("no singling out for L = %d: %s", number, error.text)
            report[name] = dict.fromkeys(linkage.REPORTED) | {"notes": [error.text]}
    if failure is not None and all(entry["value"] is None for entry in report.values()):
        raise failure
    if shared.show_json({"singling_out": report}, options["json_path"]):
        return
    for name, found in report.items():
        if found["value"] is not None:
            ends = f"[{found['low']:.4f}, {found['high']:.4f}]"
            click.echo(f"singling out, L = {name}: {found['value']:.4f} {ends}, chance {found['chance']:.4f}")


def _numbers(given: list[Any]) -> list[int] | None:
    return [reports.ALL if number == "all" else number for number in given] or None


def _sides(options: Mapping[str, Any]) -> tuple[Embeddings, Embeddings]:
    maps = {"enroll": options["model_speakers"], "test": options["segment_speakers"]}
    enrol, trial = (
        read_embeddings(options[side], speakers=speakers, allow_pickle=options["allow_pickle"])
        for side, speakers in maps.items()
    )
    return enrol, trial


def _rank_embeddings(options: Mapping[str, Any], numbers: list[int] | None, averaging: Averaging) -> Ranked:
    enrol, trial = _sides(options)
    work = Work(options["jobs"])
    warn_of_enrolled(enrol, trial)
    with errors_of(options["enroll"]):
        gallery = speaker_vectors(enrol, averaging=averaging, keep_order=True)
    ranks, largest = {}, {}
    for number in numbers or [1]:
        with errors_of(options["test"]):
            utterances = None if number == reports.ALL else number
            trials = speaker_vectors(trial, averaging=averaging, utterances=utterances)
            ranks[number] = linkage.rank_speakers(gallery, trials, not_enrolled=options["not_enrolled"], work=work)
            if options["keep_impostors"] and ranks[number].largest_size > linkage.KEPT:
                largest[number] = linkage.largest_impostor_scores(gallery, trials, ranks[number], jobs=work.jobs)
        notes = ranks[number].notes
        if numbers is None and len(trial.ids) > len(trials.names):
            text = f"only {'the first' if averaging.choice == 'first' else 'one'} utterance of each speaker is tested"
            notes += (f"{text} ({len(trials.names)} of {len(trial.ids)}); --utterances all averages all",)
        if averaging.choice == "random":
            notes += (f"utterances are drawn at random, seed {averaging.seed}",)
        ranks[number] = replace(ranks[number], notes=notes)
    return ranks, largest


def _rank_scores(options: Mapping[str, Any], numbers: list[int] | None) -> Ranked:
    """Rank from scores; without --utterances each segment is a trial of its own.

    A file of PyTorch is a matrix of similarities. Where models may not be speakers a note says that there are no
    intervals.
    """
    reader, files = options["reader"], (options["scores"], options["key"])
    if files[0].suffix == ".pt" and files[1] is None:
        if len(numbers or [1]) > 1:
            raise click.UsageError("a matrix of similarities is for one number of utterances: give it")
        with errors_of(files[0]):
            return {(numbers or [1])[0]: linkage.ranks_of_matrix(read_torch(files[0]))}, {}
    scores, key = reader.read(*files)
    turned = reversal(*reader.split((scores, key), *files))  # whose errors name places in the files
    wanted: list[int | Literal["all"] | None] = [None] if numbers is None else []
    wanted += ["all" if number == reports.ALL else number for number in numbers or []]
    notes = [] if turned is None else [turned.text]
    maps = shared.speaker_maps(options["model_speakers"], options["segment_speakers"])
    speakers, doubt = None, doubt_speakers(key, **maps)
    if doubt is not None and doubt.side == "model" and options["bootstrap_by"] == "speaker":
        notes = [f"{_NO_INTERVALS} {doubt.text}; {_NOT_SPEAKERS}", *notes]
        logger.warning(notes[0])
    elif any(maps.values()):
        speakers = find_speakers(key, **maps)
    kept = linkage.KEPT if options["keep_impostors"] else 0
    with errors_of(files[1] or files[0]):
        found = linkage.rank_scores(scores, key, wanted, largest=kept, missing=reader.missing, speakers=speakers)
    ranks, largest = {}, {}
    for number, (table, scores_of_impostors) in zip(numbers or [1], found, strict=True):
        ranks[number] = replace(table, notes=(*table.notes, *notes))
        if scores_of_impostors is not None:
            largest[number] = scores_of_impostors
    return ranks, largest


def _ranks_of(path: Path, numbers: list[int] | None) -> Ranked:
    """Return ranks of an earlier run, and the largest impostor scores where it kept them.

    Raises
    ------
    DataError
        If there are none, or not of these numbers of utterances.
    """
    file = path / reports.RANKS if path.is_dir() else path
    tables = linkage.read_ranks(file)
    absent = [reports.utterances_name(number) for number in numbers or [] if number not in tables]
    if absent:
        known = ", ".join(map(reports.utterances_name, tables))
        raise DataError(f"holds ranks of L = {known}, not of {', '.join(absent)}", file=file)
    ranks = {number: table for number, table in tables.items() if numbers is None or number in numbers}
    impostors = file.parent / IMPOSTORS
    arrays = read_npz(impostors) if impostors.exists() else {}
    kept = {number: arrays[str(number)] for number in ranks if str(number) in arrays}
    for number, scores in kept.items():
        if scores.ndim != 2 or len(scores) != len(ranks[number]):
            text = f"expected a row for each of {len(ranks[number]):,} trials, got the shape {scores.shape}"
            raise DataError(text, file=impostors, remedy="write it again, or remove it")
    return ranks, kept


def _are_speakers(ranks: Mapping[int, linkage.Ranks]) -> bool:
    return not any(note.startswith(_NO_INTERVALS) for table in ranks.values() for note in table.notes)


def _measure(ranks: dict[int, linkage.Ranks], resampling: Resampling, **chosen: Any) -> reports.Linkage:
    """Compute all numbers, without intervals where models may not be speakers."""
    resampling = resampling if _are_speakers(ranks) else replace(resampling, resamples=0)
    return reports.measure_linkage(ranks, reports.Settings(**asdict(resampling), **chosen))


def _write(measured: reports.Linkage, beyond: dict[int, reports.Beyond], options: Mapping[str, Any]) -> dict[str, Any]:
    """Write all into the folder, if there is one."""
    if options["output"] is not None:
        plots = not options.get("no_plots")
        return reports.write_linkage(options["output"], measured, beyond=beyond, plots=plots)
    return measured.report | ({"extrapolation": reports.report_extrapolation(beyond)} if beyond else {})


def _summary(measured: reports.Linkage, report: dict[str, Any]) -> str:
    """Return a table of a few sizes of each number of utterances; notes that several share come once."""
    rows = []
    names = ("size", "linkability", "low", "high", "chance")
    for number, curve in measured.curves.items():
        last = len(curve.sizes) - 1
        few = last < len(_SHOWN)
        shown_rows = [row for row, size in enumerate(curve.sizes.tolist()) if few or size in _SHOWN or row == last]
        columns = (curve.sizes, curve.values, curve.low, curve.high, curve.chance)
        for row in shown_rows:
            point = {name: column[row].item() for name, column in zip(names, columns, strict=True)}
            known = {name: value for name, value in point.items() if value == value}
            rows.append({"utterances": reports.utterances_name(number)} | known)
    forms = {"utterances": "", "size": "", "linkability": ".4f", "low": ".4f", "high": ".4f", "chance": ".4g"}
    head = f"{report['n_enroll']} enrolled, {report['n_trial']} trials of {report['n_speakers']} "
    head += "speakers" if _are_speakers(measured.ranks) else "models"
    lines = [f"{head}; ties {report['tie_rule']}, {report['estimator']}", "", format_table(rows, forms)]
    told = set[str]()
    for name, block in report["utterances"].items():
        bits = block["srd_mean_bits"]
        low, high = block["low"][-1], block["high"][-1]  # of the whole gallery, unless --sizes end before
        whole = low == low and block["sizes"][-1] == report["n_enroll"]
        ends = f" [{low:.4f}, {high:.4f}]" if whole else ""
        text = f"L = {name}: rank-1 rate {block['rank1']:.4f}{ends}, mean over sizes {block['linkability_mean']:.4f}"
        if bits is not None:
            text += f", rank disclosure {bits:z.2f} bits (worst {block['srd_worst_bits']:z.2f})"
        lines.append(text)
        lines += [f"note: {note}" for note in block["notes"] if note not in told]
        told.update(block["notes"])
    return "\n".join(lines)


def _beyond_summary(beyond: Mapping[int, reports.Beyond]) -> list[str]:
    """Return the lines of a separate table of extrapolated values; where none is trusted, it has bounds alone."""
    first = next(iter(beyond.values())).populations
    spanned = [name for name in linkage.SPANNED if name in first.predictions]
    forms = {"utterances": "", "population": ""} | dict.fromkeys([*spanned, "low", "high"], ".4g")
    meaning = f"low and high: the span of the intervals of {', '.join(spanned)}"
    rows, notes = [], []
    for number, part in beyond.items():
        name, estimates = reports.utterances_name(number), part.populations
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
