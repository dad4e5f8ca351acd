"""How often a voice is linked to its owner among N enrolled speakers: ``spkver-eval linkability``, for all N;
``linkability-extrapolate``, beyond the gallery; ``singling-out``; and ``linkability-batch``, of many from one file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from click.core import ParameterSource
from numpy.typing import NDArray

from evaluation import linkage, reports
from evaluation.commands import shared
from evaluation.commands.linkability_compare import linkability_compare
from evaluation.embeddings import Averaging, Embeddings, read_embeddings, speaker_vectors, warn_of_enrolled
from evaluation.metrics import reversal
from evaluation.trials import Key, TrialSpeakers, doubt_speakers, find_speakers, read_speakers
from evaluation.uncertainty import Resampling
from spkbase.console import FILE, Command, Function, choice_option, number_option, path_option, together, worker_options
from spkbase.errors import DataError, Problems
from spkbase.files import atomic_path, format_table, load_yaml, read_yaml_text
from spkbase.plain_pickle import read_npz, read_torch
from spkbase.work import Work

logger = logging.getLogger(__name__)

IMPOSTORS = "impostors.npz"
_SHOWN = (2, 10, 100, 1000, 10_000, 100_000)
_MOST = 10**12
_NOT_SPEAKERS = (
    "give the speakers of the models, lines 'id speaker': --model-speakers FILE; if each model is a speaker say"
    " --bootstrap-by id"
)
_utterances_option = click.option(
    "--utterances",
    multiple=True,
    help="Utterances averaged into a trial: numbers, or all, as 1,3,all. 1 by default; of scores, each segment is then "
    "a trial.",
)
_choice_option = choice_option(
    "--choice", of=["first", "random"], help="Which utterances of a speaker: the first of the file, or by the seed."
)


def _embeddings_options(*, required: bool) -> Any:
    """Add the options for embeddings of the enrolled and of the trials."""

    def decorate(command: Function) -> Function:
        options = [
            path_option("--enroll", required=required, help="Embeddings of the enrolled, as of `cosine --help`."),
            path_option("--trial", required=required, help="Embeddings of the trials."),
            shared.model_speakers_option,
            shared.segment_speakers_option,
            shared.pickle_option,
            shared.mean_option,
            _choice_option,
            _utterances_option,
        ]
        return together(options, command)

    return decorate


def _results_options(command: Function) -> Function:
    """Add the options that say where results go."""
    options = [
        path_option("-o", "--output", help="Folder for all results: numbers, plots, lists of easy and hard speakers."),
        click.option("--no-plots", is_flag=True, help="Leave the plots of the folder out."),
        shared.json_option,
    ]
    return together(options, command)


@click.command(cls=Command)
@_embeddings_options(required=False)
@path_option("-s", "--scores", help="Scores of any kind, or a .pt of similarities, instead of embeddings.")
@path_option("-k", "--key", help="Their key; none where the scores hold labels.")
@path_option("--ranks", help="Ranks of an earlier run, its --output: for other sizes, ties or intervals.")
@shared.reader_options(missing=True)
@choice_option("--bootstrap-by", of=["speaker", "id"], help="Intervals draw speakers, or each model id as one.")
@choice_option("--not-enrolled", of=["error", "drop"], help="Trial speakers that are not enrolled: stop, or drop.")
@click.option("--sizes", multiple=True, help="Gallery sizes: all (default), log, published, or numbers as 2,10,100.")
@click.option("--top", multiple=True, help="Also: the owner among the first R; numbers as 5,10.")
@choice_option("--ties", of=linkage.TIE_RULES, help="What a tie counts.")
@number_option("--runs", help="Draw galleries, this often, in place of the exact values; 0 for these.")
@click.option("--keep-impostors", is_flag=True, help="Write what linkability-extrapolate needs into the folder.")
@shared.resampling_options()
@worker_options
@_results_options
def linkability(reader: shared.Reader, resampling: Resampling, **options: Any) -> None:
    """Compute how often the owner of a voice scores highest among N enrolled speakers, exactly, for all N.

    Give embeddings (--enroll and --trial), scores (-s and -k), or the folder of an earlier run (--ranks).
    """
    scored, of_key, enrolled, tried, ranked = (
        options[name] is not None for name in ("scores", "key", "enroll", "trial", "ranks")
    )
    if scored + enrolled + ranked != 1 or enrolled != tried or (of_key and not scored):
        raise click.UsageError("expected --enroll FILE with --trial FILE, or -s SCORES with -k KEY, or --ranks FOLDER")
    if options["keep_impostors"] and options["output"] is None:
        raise click.UsageError("--keep-impostors needs a folder: --output FOLDER")
    _check_outputs(options)
    numbers = _utterances(options["utterances"])
    words = _split(options["sizes"]) or ["all"]
    sizes: Any = words[0]
    if words not in (["all"], ["log"], ["published"]):
        sizes = tuple(_number(word, "--sizes", 2, "all, log, published, or numbers") for word in words)
    settings = _settings(
        resampling,
        sizes=sizes,
        top=tuple(_number(word, "--top", 1, "numbers") for word in _split(options["top"])),
        ties=options["ties"],
        runs=options["runs"],
    )
    if ranked:
        ranks, largest, named = _ranks_of(options["ranks"], numbers)
    elif scored:
        ranks, largest, named = _rank_scores(options, reader, numbers)
    else:
        ranks, largest = _rank_embeddings(options, numbers, resampling.seed)
        named = True
    measured = reports.measure_linkage(ranks, settings if named else replace(settings, replicates=0))
    report = _write(measured, {}, options)
    if options["keep_impostors"] or (ranked and largest and options["output"] is not None):
        with atomic_path(options["output"] / IMPOSTORS) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **{str(number): scores for number, scores in largest.items()})  # type: ignore[arg-type]
    if not shared.show_json(report, options["json_path"]):
        click.echo(_summary(measured, report, named))


@click.command(cls=Command)
@click.argument("ranks", type=FILE)
@click.option("--populations", required=True, multiple=True, help="How many speakers: numbers as 10000,1000000.")
@_utterances_option
@choice_option("--ties", of=linkage.TIE_RULES, help="What a tie counts.")
@shared.resampling_options()
@_results_options
def extrapolate(ranks: Path, populations: tuple[str, ...], resampling: Resampling, **options: Any) -> None:
    """Estimate linkability in populations larger than the gallery, marked as extrapolated.

    RANKS is the --output of `spkver-eval linkability`; one of the methods needs its --keep-impostors too.
    """
    _check_outputs(options)
    asked = sorted({_number(word, "--populations", 2, "numbers") for word in _split(populations)})
    settings = _settings(resampling, ties=options["ties"])
    tables, largest, named = _ranks_of(ranks, _utterances(options["utterances"]))
    settings = settings if named else replace(settings, replicates=0)
    beyond = reports.extrapolate_linkage(tables, settings, asked, impostor_scores=largest)
    measured = reports.measure_linkage(tables, settings)
    report = _write(measured, beyond, options)
    if not shared.show_json(report, options["json_path"]):
        click.echo("\n".join([_summary(measured, report, named), *_beyond_summary(beyond)]))


@click.command("singling-out", cls=Command)
@_embeddings_options(required=True)
@shared.resampling_options()
@shared.json_option
def single_out(utterances: tuple[str, ...], resampling: Resampling, **options: Any) -> None:
    """Compute how often exactly one speaker of a crowd is isolated, by embeddings."""
    enrol, trial = _sides(options)
    averaging = Averaging(options["mean"], options["choice"], resampling.seed)
    report: dict[str, Any] = {}
    failure: DataError | None = None
    for number in _utterances(utterances) or [1]:
        if number == reports.ALL:
            continue
        name = reports.utterances_name(number)
        try:
            report[name] = linkage.singling_out(
                enrol, trial, utterances=number, averaging=averaging, resampling=resampling
            ).to_dict()
        except DataError as error:  # too few utterances for so long conversations, which shorter ones may not have
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


# What is ranked: embeddings, scores with their key and the maps of their speakers, or ranks of an earlier run


def _sides(options: Mapping[str, Any]) -> tuple[Embeddings, Embeddings]:
    maps = {"enroll": options["model_speakers"], "trial": options["segment_speakers"]}
    enrol, trial = (
        read_embeddings(options[side], speakers=speakers, allow_pickle=options["allow_pickle"])
        for side, speakers in maps.items()
    )
    return enrol, trial


def _rank_embeddings(
    options: Mapping[str, Any], numbers: list[int] | None, seed: int
) -> tuple[dict[int, linkage.Ranks], dict[int, NDArray]]:
    """Rank; give the largest impostor scores too, if they are to be kept."""
    enrol, trial = _sides(options)
    averaging = Averaging(options["mean"], options["choice"], seed)
    work = Work(options["jobs"])
    warn_of_enrolled(enrol, trial)
    try:
        gallery = speaker_vectors(enrol, averaging=averaging, keep_order=True)
    except DataError as error:
        raise DataError(error.text, file=options["enroll"], remedy=error.remedy) from error
    ranks, largest = {}, {}
    for number in numbers or [1]:
        try:
            trials = speaker_vectors(trial, averaging=averaging, utterances=None if number == reports.ALL else number)
            ranks[number] = linkage.rank_speakers(gallery, trials, not_enrolled=options["not_enrolled"], work=work)
            if numbers is None and len(trial.ids) > len(trials.names):
                which = "first" if averaging.choice == "first" else "one drawn"
                text = f"each speaker is tried by the {which} of its utterances alone ({len(trials.names)} of"
                note = f"{text} {len(trial.ids)}); --utterances all averages them"
                ranks[number] = replace(ranks[number], notes=(*ranks[number].notes, note))
            if options["keep_impostors"] and ranks[number].largest_size > linkage.KEPT:
                largest[number] = linkage.largest_impostor_scores(gallery, trials, ranks[number], jobs=work.jobs)
        except DataError as error:
            raise DataError(error.text, file=options["trial"], remedy=error.remedy) from error
    return ranks, largest


def _rank_scores(
    options: Mapping[str, Any], reader: shared.Reader, numbers: list[int] | None
) -> tuple[dict[int, linkage.Ranks], dict[int, NDArray], bool]:
    """Rank from scores; without --utterances each segment is a trial of its own. See `_rank_embeddings`.

    Also tells whether the speakers are known, of whom intervals are. A file of PyTorch is a matrix of similarities.
    """
    files = options["scores"], options["key"]
    if files[0].suffix == ".pt" and files[1] is None:
        if len(numbers or [1]) > 1:
            raise click.UsageError("a matrix of similarities is of one number of utterances: say which")
        try:
            return {(numbers or [1])[0]: linkage.ranks_of_matrix(read_torch(files[0]))}, {}, True
        except DataError as error:
            raise DataError(error.text, file=files[0], remedy=error.remedy) from error
    scores, key = reader.read(*files)
    turned = reversal(*reader.split((scores, key), *files))  # whose errors name places in the files
    wanted: list[int | Literal["all"] | None] = [None] if numbers is None else []
    wanted += ["all" if number == reports.ALL else number for number in numbers or []]
    speakers, doubt = _speakers(options, key)
    kept = linkage.KEPT if options["keep_impostors"] else 0
    try:
        found = linkage.rank_scores(scores, key, wanted, largest=kept, missing=reader.missing, speakers=speakers)
    except DataError as error:
        raise DataError(error.text, file=files[1] or files[0], remedy=error.remedy) from error
    notes = [*doubt, *([] if turned is None else [turned.text])]
    ranks, largest = {}, {}
    for number, (table, scores_of_impostors) in zip(numbers or [1], found, strict=True):
        ranks[number] = replace(table, notes=(*table.notes, *notes))
        if scores_of_impostors is not None:
            largest[number] = scores_of_impostors
    return ranks, largest, not doubt


def _speakers(options: Mapping[str, Any], key: Key) -> tuple[TrialSpeakers | None, list[str]]:
    """Return the speakers as the maps name them, and a note where models may not be speakers.

    Raises
    ------
    DataError
        If intervals were asked for then: they would be over models.
    """
    names = ("model_speakers", "segment_speakers")
    maps = {name: None if options[name] is None else read_speakers(options[name]) for name in names}
    doubt = doubt_speakers(key, **maps)
    if doubt is not None and doubt.side == "model" and options["bootstrap_by"] == "speaker":
        context = click.get_current_context()
        asked = context.get_parameter_source("replicates") is not ParameterSource.DEFAULT
        if asked and context.params["replicates"]:
            raise DataError(doubt.error().text, file=options["key"], remedy=_NOT_SPEAKERS)
        note = f"no intervals: {doubt.text}; {_NOT_SPEAKERS}"
        logger.warning(note)
        return None, [note]
    return (None if all(of_side is None for of_side in maps.values()) else find_speakers(key, **maps)), []


def _ranks_of(path: Path, numbers: list[int] | None) -> tuple[dict[int, linkage.Ranks], dict[int, NDArray], bool]:
    """Return ranks of an earlier run, and the largest impostor scores where it kept them; see `_rank_scores`.

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
    named = not any(note.startswith("no intervals:") for table in ranks.values() for note in table.notes)
    impostors = file.parent / IMPOSTORS
    arrays = read_npz(impostors) if impostors.exists() else {}
    kept = {number: arrays[str(number)] for number in ranks if str(number) in arrays}
    for number, scores in kept.items():
        if scores.ndim != 2 or len(scores) != len(ranks[number]):
            text = f"expected a row for each of {len(ranks[number]):,} trials, got the shape {scores.shape}"
            raise DataError(text, file=impostors, remedy="write it again, or remove it")
    return ranks, kept, named


# What the options say


def _settings(resampling: Resampling, **more: Any) -> reports.Settings:
    return reports.Settings(replicates=resampling.replicates, seed=resampling.seed, level=resampling.level, **more)


def _check_outputs(options: Mapping[str, Any]) -> None:
    """Find out before anything long starts that results have no place."""
    folder: Path | None = options["output"]
    if folder is not None:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise DataError("expected a folder for results, got a file", file=nearest, remedy="choose another --output")
    json_path: Path | None = options["json_path"]
    if json_path is not None and json_path.is_dir():
        raise DataError("expected a file for JSON, got a folder", file=json_path, remedy="choose another --json")


def _utterances(given: tuple[str, ...]) -> list[int] | None:
    words = _split(given)
    if not words:
        return None
    numbers = {reports.ALL if word == "all" else _number(word, "--utterances", 1, "all, or numbers") for word in words}
    return sorted(numbers, key=lambda number: (number == reports.ALL, number))


def _split(given: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _number(text: str, option: str, least: int, expected: str) -> int:
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))
    if not plain or not least <= int(text) <= _MOST:
        raise click.BadParameter(f"expected {expected} from {least} to {_MOST:,}, got {text!r:.40}", param_hint=option)
    return int(text)


# What is shown


def _write(measured: reports.Linkage, beyond: dict[int, reports.Beyond], options: Mapping[str, Any]) -> dict[str, Any]:
    """Write all into the folder, if there is one, plots and lists of speakers too; `linkability.json` at last."""
    additions: dict[str, Any] = {"extrapolation": reports.report_extrapolation(beyond)} if beyond else {}
    folder: Path | None = options["output"]
    if folder is None:
        return measured.report | additions
    reports.clear_linkage(folder)
    additions["quartiles"] = reports.write_speaker_lists(folder, reports.speaker_quarters(measured, rule="nearest"))
    if beyond:
        reports.write_extrapolation(folder, beyond)
    if not options["no_plots"]:
        reports.write_plots(folder, measured, beyond)
    return reports.write_linkage(folder, measured, beyond=beyond, additions=additions)


def _summary(measured: reports.Linkage, report: dict[str, Any], named: bool) -> str:
    """A table of a few sizes of each number of utterances."""
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
    head += "speakers" if named else "models"
    lines = [f"{head}; ties {report['tie_rule']}, {report['estimator']}", "", format_table(rows, forms)]
    for name, block in report["utterances"].items():
        bits = block["srd_mean_bits"]
        text = f"L = {name}: rank-1 rate {block['rank1']:.4f}, mean over sizes {block['linkability_mean']:.4f}"
        lines.append(
            text if bits is None else f"{text}, rank disclosure {bits:.2f} bits (worst {block['srd_worst_bits']:.2f})"
        )
        lines += [f"note: {note}" for note in block["notes"]]
    return "\n".join(lines)


def _beyond_summary(beyond: Mapping[int, reports.Beyond]) -> list[str]:
    """Return lines that show the extrapolated in a table of its own, so that nobody takes it for measured."""
    first = next(iter(beyond.values()))
    lines = ["", f"EXTRAPOLATED beyond the {first.populations.measured_to:,} of the gallery, not measured:", ""]
    rows = []
    for number, part in beyond.items():
        low, high = part.populations.span()
        for row, size in enumerate(part.populations.sizes.tolist()):
            said = {name: method.linkability[row].item() for name, method in part.populations.predictions.items()}
            methods = {name: value for name, value in said.items() if value == value}  # bounds have no estimate
            ends = {"low": low[row].item(), "high": high[row].item()}
            rows.append({"utterances": reports.utterances_name(number), "population": f"{size:,.0f}"} | methods | ends)
    forms = {name: "" if name in ("utterances", "population") else ".4g" for name in rows[0]}
    notes = [
        f"note: L = {reports.utterances_name(number)}: {note}"
        for number, part in beyond.items()
        for note in part.populations.notes
    ]
    spanned = [name for name in linkage.SPANNED if name in first.populations.predictions]
    return [
        *lines,
        format_table(rows, forms),
        f"low and high: the span of the intervals of {', '.join(spanned)}",
        *notes,
    ]


_SOURCES = ("enroll", "trial", "scores", "key", "ranks", "model_speakers", "segment_speakers")
_PATHS = {name.replace("_", "-") for name in _SOURCES} | {"output", "json", "help"}


@click.command("linkability-batch", cls=Command)
@click.argument("config", type=FILE)
@path_option("-o", "--output", required=True, help="Folder; each run gets ATTACKER/ANONYMISER in it.")
def batch(config: Path, output: Path) -> None:
    """Compute linkability for each attacker and anonymiser that the YAML file CONFIG names, then compare them.

    Options are those of the commands linkability and linkability-compare by their names.

    \b
    attackers: [ECAPA, ResNet]
    anonymisers: [orig, B3, B5]
    originals: [orig]
    enroll: vectors/{attacker}/{anonymiser}/enroll.npz
    trial: vectors/{attacker}/{anonymiser}/trial.npz
    options: {utterances: [1, 3, 5], sizes: log, bootstrap: 1000, seed: 0}
    compare: {permutations: 1000}
    """
    asked = _read_batch(config)
    runs = []
    for attacker, anonymiser in product(asked["attackers"], asked["anonymisers"]):
        folder = output / attacker / anonymiser
        paths = {
            name: config.parent / asked[name].replace("{attacker}", attacker).replace("{anonymiser}", anonymiser)
            for name in _SOURCES
            if name in asked
        }
        click.echo(f"{attacker}/{anonymiser}:")
        _run(linkability, [], {**paths, **asked["options"], "output": folder})
        runs.append(f"{attacker}/{anonymiser}={folder}")
        click.echo("")
    n_utterances = max(1, len(_listed(asked["options"].get("utterances"))))
    if len(asked["attackers"]) * (len(asked["anonymisers"]) - len(asked["originals"])) * n_utterances > 1:
        _run(linkability_compare, runs, {"original": asked["originals"], **asked["compare"], "output": output})


def _read_batch(path: Path) -> dict[str, Any]:
    """Read and check what a file asks for; DataError with all that is missing, unknown or of the wrong kind."""
    content, _ = load_yaml(read_yaml_text(path), file=path)
    if not isinstance(content, dict):
        raise DataError(f"expected attackers, anonymisers and paths, got {type(content).__name__}", file=path)
    problems = Problems(path)
    known = ("attackers", "anonymisers", "originals", *_SOURCES, "options", "compare")
    for name in content:
        if name not in known:
            problems.add(f"unknown key {name!r}", remedy=f"use {', '.join(known)}")
    asked: dict[str, Any] = {name: content[name] for name in _SOURCES if name in content}
    for name, text in asked.items():
        if not isinstance(text, str):
            problems.add(f"expected {name}: a path, got {text!r}")
    if not {"enroll", "scores", "ranks"} & set(asked):
        problems.add("expected paths: enroll and trial, scores and key, or ranks")
    for name in known[:3]:
        asked[name] = [str(entry) for entry in _listed(content.get(name))]
        for text in asked[name]:  # they may be folders
            if not text.strip() or set(text) & set("/\\=") or text in (".", ".."):
                problems.add(f"{name}: expected names that can be folders, got {text!r}")
        for text in sorted({text for text in asked[name] if asked[name].count(text) > 1}):
            problems.add(f"{name}: {text!r} stands there twice")
        if not asked[name] and name != "originals":
            problems.add(f"expected {name}: a list of one or more names")
    for name in sorted(set(asked["originals"]) - set(asked["anonymisers"])):
        problems.add(f"the original {name!r} is none of the anonymisers")
    for name, command in (("options", linkability), ("compare", linkability_compare)):
        asked[name] = content.get(name) or {}
        if not isinstance(asked[name], Mapping):
            problems.add(f"expected {name}: options by name, got {asked[name]!r}")
            continue
        options = {text[2:] for one in command.params for text in one.opts if text.startswith("--")} - _PATHS
        for option in asked[name]:
            if str(option).replace("_", "-") not in options:
                problems.add(f"{name}: unknown option {option!r}", remedy=f"use {', '.join(sorted(options))}")
    problems.raise_if_any()
    return asked


def _run(command: click.Command, words: list[str], options: Mapping[str, Any]) -> None:
    """Run a command as its user would: options from their names and values."""
    for option, value in options.items():
        flag = f"--{str(option).replace('_', '-')}"
        if isinstance(value, bool):
            words = [*words, flag] if value else words
        else:
            words = [*words, *(word for entry in _listed(value) for word in (flag, str(entry)))]
    with command.make_context(f"spkver-eval {command.name}", list(words)) as context:
        click.Command.invoke(command, context)  # an error ends the whole batch


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
