"""How much identity leaks through an anonymiser: train attackers, score the trial lists, report.

    python recipes/voiceprivacy/run.py --data DIR --suffix _mcadams --output DIR [--config FILE] [--set KEY=VALUE]...
                                      [--jobs N] [--engine ENGINE] [--allow-pipes] [--only STEP | --until STEP]
                                      [--force]

DIR holds the challenge's data directories, or it is the word "simulated": SIMULATED speech is made. Anonymised twins
(<set>SUFFIX) are taken where they are there, else made. Steps are named in `steps.py`; how far they are is shown by
``spkver status OUTPUT``.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from evaluation.reports import format_latex, format_markdown
from spkbase.configuration import load_config, read_yaml, to_dict
from spkbase.console import ResumableCommand, echo_log, worker_options
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.files import format_table, to_json, write_text
from spkbase.runs import Run, start_run, versions
from spkbase.version import __version__
from spkbase.work import Device
from spkver.attackers import AttackerConfig, check_training
from spkver.corpora import is_simulated, simulate_voiceprivacy
from spkver.voiceprivacy import (
    STEPS,
    Anonymizers,
    Config,
    Sets,
    Steps,
    attacker_configs,
    averages,
    challenge_rows,
    check_all,
    check_attackers,
    check_recordings_of,
    check_sources,
    check_suffix,
    check_utility,
    chosen_attackers,
    declare_assessment,
    declare_scores,
    describe,
    earlier_results,
    find_anonymizers,
    hashes,
    make_scores,
    make_twins,
    measure_utility,
    read_sets,
    summarise,
    verdict,
    write_challenge_files,
    write_lists,
)

CONFIG = Path(__file__).parent / "config"
SIMULATED = "simulated"

_PATH = click.Path(path_type=Path)
_LONG = {"help_option_names": ["-h", "--help"]}


@click.command(cls=ResumableCommand, help=__doc__.split("\n\n")[0], context_settings=_LONG)
@click.option("--data", required=True, metavar="DIR", help="Folder of the data directories, or 'simulated'.")
@click.option("--suffix", required=True, metavar="_NAME", help="What the names of anonymised sets end with.")
@click.option("--output", required=True, type=_PATH, metavar="DIR", help="Folder for all results, and for twins made.")
@click.option("--config", "config_file", type=_PATH, help="YAML file, such as the challenges' in config/.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a configuration key.")
@worker_options(device=True)
@click.option("--allow-pipes", is_flag=True, help="Run shell commands that a wav.scp holds: only if you trust it.")
@click.option("--only", metavar="STEP", help=f"Do this step alone: {', '.join(STEPS)}.")
@click.option("--until", metavar="STEP", help="Stop after this step.")
@click.option("--force", is_flag=True, help="Redo every step, also those that are up to date.")
@click.version_option(__version__, prog_name="spkver")
def main(
    data: str,
    suffix: str,
    output: Path,
    config_file: Path | None,
    settings: tuple[str, ...],
    jobs: int | None,
    device: Device | None,
    allow_pipes: bool,
    only: str | None,
    until: str | None,
    force: bool,
) -> None:
    steps = Steps(only, until)
    defaults = read_yaml(CONFIG / "simulated.yaml") if data == SIMULATED else {}
    config = load_config(Config, file=_found(config_file), settings=settings, defaults=defaults)
    check_suffix(suffix)
    _check_output(output)
    check_simulation(data, steps)
    with (
        echo_log(logging.INFO, "spkver", "evaluation"),
        start_run(output, config, jobs=jobs, force=force, device=device) as run,
    ):
        folder = _simulated(steps.run(run, "simulation"), config) if data == SIMULATED else Path(data)
        steps.tell("simulation", str(folder))
        ended = steps.ends_with("simulation")
        click.echo(
            steps.account() if ended else voiceprivacy(run, folder, suffix, config, steps, allow_pipes=allow_pipes)
        )


def voiceprivacy(run: Run, data: Path, suffix: str, config: Config, steps: Steps, *, allow_pipes: bool = False) -> str:
    """From speech to a report; returns the table of results, or an account where it ends earlier."""
    attackers = chosen_attackers(config)
    anonymizers = find_anonymizers(config.anonymizer, suffix)

    sets = _checked(run, data, suffix, config, steps, anonymizers, allow_pipes=allow_pipes)
    if steps.includes("checks"):
        check_attackers(attackers, sets, suffix)
    steps.tell("checks", f"{len(sets.datasets)} sets, {len(sets.original)} data directories")
    if is_simulated(data):
        click.echo("The speech is SIMULATED: synthetic voices from eSpeak NG, not recordings of people.")
    if steps.ends_with("checks"):
        return steps.account()

    sets = make_twins(steps.run(run, "anonymisation"), sets, anonymizers, suffix=suffix, seed=config.seed)
    steps.tell("anonymisation", f"{len(sets.missing)} directories below {run.path('data')}")
    if steps.ends_with("anonymisation"):
        return steps.account()

    write_lists(run, sets)
    scoring = steps.run(run, "scores")
    scored = declare_scores(scoring, sets, attackers, suffix=suffix, seed=config.seed)
    assessing = steps.run(run, "evaluation")
    assessed = declare_assessment(assessing, scored, config.evaluation, suffix=suffix, seed=config.seed)
    run.write_plan()
    if steps.needs("scores"):
        with run.timed("attackers and scores"):
            make_scores(scoring, scored)
    steps.tell("scores", f"{len(scored)} conditions by {', '.join(config.attackers)}")
    if steps.ends_with("scores"):
        return steps.account()

    if steps.needs("evaluation"):
        assessed.bring_up_to_date()
    steps.tell("evaluation", f"{assessed.path}")
    if steps.ends_with("evaluation"):
        return steps.account()

    utility = measure_utility(steps.run(run, "utility"), sets, config)
    steps.tell("utility", ", ".join(utility) or "none is asked for")
    if steps.ends_with("utility"):
        return steps.account()
    anonymiser = describe(anonymizers, sets, suffix=suffix, seed=config.seed)
    return report(run, data, sets, assessed.value, config, suffix=suffix, anonymiser=anonymiser, utility=utility)


def report(
    run: Run,
    data: Path,
    sets: Sets,
    conditions: Sequence[dict[str, Any]],
    config: Config,
    *,
    suffix: str,
    anonymiser: dict[str, Any],
    utility: dict[str, Any],
) -> str:
    """Write all results; returns the table that the recipe ends with."""
    from evaluation.reports import write_page  # matplotlib is loaded when it is used

    summary = summarise(conditions)
    reading = config.challenge.eer
    simulated = is_simulated(data)
    with run.timed("report"):
        sanity = check_all(
            conditions,
            sets,
            config,
            output=run.output,
            earlier=earlier_results(run.output, suffix),
            simulated=simulated,
        )
        write_challenge_files(run.output, conditions, utility, suffix=suffix, reading=reading)
    results: dict[str, Any] = {
        "format": 1,
        "recipe": "voiceprivacy",
        "suffix": suffix,
        "simulated": simulated,
        "anonymiser": anonymiser,
        "verdict": verdict(summary, level=config.evaluation.level, simulated=simulated),
        "summary": summary,
        "averages": averages(challenge_rows(conditions, reading), config),
        "conditions": conditions,
        "utility": utility,
        "sanity": sanity,
        "config": to_dict(config),
        "versions": versions(),
        "lists": hashes(sets, config),
        # those of single trial lists are in run.log
        "timings": {name: round(run.timings[name], 3) for name in run.timings if not name.startswith("scores of ")},
        "seeds": {"run": config.seed, "bootstrap": config.seed, "anonymiser": anonymiser.get("seed")},
    }
    text = to_json(results) + "\n"
    for name in ("results.json", f"results{suffix}.json"):
        write_text(run.path(name), text)
    write_text(run.path(f"tables{suffix}.md"), format_markdown(results))
    write_text(run.path(f"tables{suffix}.tex"), format_latex(results))
    write_page(results, run.path("report.html"), folder=run.output)
    return "\n".join([_table(summary), "", *_warnings(sanity), results["verdict"], "", *_places(run, suffix)])


def _found(config_file: Path | None) -> Path | None:
    """A configuration file, by its path or by that below this recipe, as config/vpc2024.yaml."""
    if config_file is not None and not config_file.exists() and (CONFIG.parent / config_file).is_file():
        return CONFIG.parent / config_file
    return config_file


def _check_output(output: Path) -> None:
    """Nothing is written among the recordings that somebody keeps."""
    for folder in (output, output.resolve().parent):
        if (folder / "wav.scp").exists():
            raise DataError("is a data directory, or lies in one", file=output, remedy="choose another --output")


def check_simulation(data: str, steps: Steps) -> None:
    """Raise ConfigError if SIMULATED speech is all that is asked for, and the data are others."""
    if data != SIMULATED and steps.ends_with("simulation"):
        text = f"there is nothing to simulate: --data is {data}"
        raise ConfigError(text, remedy=f"give --data {SIMULATED}, or another step")


def _simulated(run: Run, config: Config) -> Path:
    folder = run.path(SIMULATED)
    shutil.rmtree(_old(folder), ignore_errors=True)
    if run.frozen:
        if not is_simulated(folder):
            raise DataError("the SIMULATED speech is missing", file=folder, remedy="run with --until simulation first")
        return simulate_voiceprivacy(folder, config.simulation, jobs=run.jobs).folder  # it is as it was asked for
    click.echo("SIMULATED speech is made: synthetic voices from eSpeak NG, not recordings of people.")
    with run.timed("simulation"):
        if run.force and is_simulated(folder):
            folder.rename(_old(folder))  # at no moment there is half of it in its place
            shutil.rmtree(_old(folder), ignore_errors=True)
        return simulate_voiceprivacy(folder, config.simulation, jobs=run.jobs).folder


def _old(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.old")


def _checked(
    run: Run,
    data: Path,
    suffix: str,
    config: Config,
    steps: Steps,
    anonymizers: Anonymizers | None,
    *,
    allow_pipes: bool,
) -> Sets:
    """Read the sets; where checks are asked for, hear all recordings too."""
    hear, can_make = steps.includes("checks"), anonymizers is not None
    with run.timed("checks"):
        sets = read_sets(
            data, run.output, suffix, config, can_make=can_make, allow_pipes=allow_pipes, jobs=run.jobs, hear=hear
        )
        if hear:
            _check_speech(sets, attacker_configs(config), config, run.jobs)
    return sets


def _check_speech(sets: Sets, attackers: Sequence[AttackerConfig], config: Config, jobs: int | None) -> None:
    """Check headers and options against what there is, of all directories that are there, all problems at once."""
    problems = Problems()
    check_recordings_of(sets, [one.features for one in attackers], problems, jobs=jobs)
    check_sources(sets, problems)
    check_utility(sets, config, problems, jobs=jobs)
    if not problems.errors:
        for name in dict.fromkeys(dataset.training for dataset in sets.datasets):
            for directory in (sets.original[name], sets.twins.get(name)):
                if directory is not None:
                    try:
                        check_training(directory, attackers, seed=config.seed, jobs=jobs)
                    except DataError as error:
                        problems.note(error)
    problems.raise_if_any()


def _table(summary: Sequence[dict[str, Any]]) -> str:
    rows = [
        {
            "set": row["dataset"],
            "sex": row["gender"],
            "scenario": row["scenario"],
            "strongest attacker": row["strongest"],
            "EER [%]": 100 * row["eer"],
            "low": None if row["low"] is None else 100 * row["low"],
            "high": None if row["high"] is None else 100 * row["high"],
            "population [bit]": row["population"],
            "linkability": row["linkability_all"],
        }
        for row in summary
    ]
    formats = {"EER [%]": ".2f", "low": ".2f", "high": ".2f", "population [bit]": ".3f", "linkability": ".2f"}
    return format_table(rows, {name: formats.get(name, "") for name in rows[0]})


def _warnings(sanity: Sequence[dict[str, Any]]) -> list[str]:
    found = [f"Warning ({one['check']}): {one['text']}" for one in sanity if one["level"] == "warning"]
    return [*found, ""] if found else []


def _places(run: Run, suffix: str) -> list[str]:
    names = {"Report": "report.html", "Results": "results.json", "Table": f"results{suffix}.csv"}
    return [f"{name + ':':9}{run.path(path)}" for name, path in names.items()]


if __name__ == "__main__":
    main()
