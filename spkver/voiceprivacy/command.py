"""The command line of the evaluation; what computes is loaded when the command is called."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spkbase.console import ResumableCommand, echo_log, worker_options
from spkbase.errors import ConfigError, DataError
from spkver.voiceprivacy.experiment import STEPS, Experiment, Steps

if TYPE_CHECKING:
    from spkbase.runs import Run
    from spkver.voiceprivacy.settings import Config

SIMULATED = "simulated"

_PATH = click.Path(path_type=Path)


def evaluation_command(page: Callable[[Experiment], str], script: str, *, about: str) -> click.Command:
    """Return the command of the recipe.

    Parameters
    ----------
    page : callable
        Given the experiment; returns what is shown at the end.
    script : str
        Path of the script; its configurations are in the folder ``config`` beside it.
    about : str
        Docstring of the script; its first paragraph is the help text.
    """
    folder = Path(script).parent

    def main(
        data: str, suffix: str, output: Path, config_file: Path | None, settings: tuple[str, ...], **options: Any
    ) -> None:
        from spkbase.configuration import load_config, read_yaml
        from spkbase.runs import Ended, start_run
        from spkver.datadir import check_suffix
        from spkver.voiceprivacy.scores import raise_failures
        from spkver.voiceprivacy.sets import with_lists_there
        from spkver.voiceprivacy.settings import Config

        steps, allow_pipes = Steps(options.pop("only"), options.pop("until")), options.pop("allow_pipes")
        if config_file is not None and not config_file.exists() and (folder / config_file).is_file():
            config_file = folder / config_file  # below the recipe's folder, as config/vpc2024.yaml
        defaults = read_yaml(folder / "config" / "simulated.yaml") if data == SIMULATED else {}
        config = load_config(Config, file=config_file, settings=settings, defaults=defaults)
        config = with_lists_there(config, Path(data))
        # sets that the file names, also where --set chooses others
        named = None if config_file is None else read_yaml(config_file).get("datasets")
        names = tuple(map(str, named)) if isinstance(named, list) else ()
        check_suffix(suffix)
        for place in (output, output.resolve().parent):  # nothing is written among the recordings that somebody keeps
            if (place / "wav.scp").exists():
                raise DataError("is a data directory, or lies in one", file=output, remedy="choose another --output")
        if data != SIMULATED and steps.ends_with("simulation"):
            text = f"there is nothing to simulate: --data is {data}"
            raise ConfigError(text, remedy=f"give --data {SIMULATED}, or another step")
        with echo_log(logging.INFO), start_run(output, config, **options) as run:
            try:
                speech = Path(data)
                if data == SIMULATED:
                    speech = _simulated(steps.begin("simulation", run), config)
                steps.end("simulation", str(speech))
                text = page(Experiment(run, speech, suffix, config, steps, allow_pipes, names))
            except Ended:
                text = steps.account()
            click.echo(text)
            raise_failures(steps.failures, output / "report.html")

    decorated: Callable = main
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return click.command(cls=ResumableCommand, help=about.split("\n\n")[0])(decorated)


_OPTIONS: list[Callable] = [
    click.option("--data", required=True, metavar="DIR", help="Folder of the data directories, or 'simulated'."),
    click.option("--suffix", required=True, metavar="_NAME", help="What the names of anonymised sets end with."),
    click.option(
        "-o", "--output", required=True, type=_PATH, metavar="DIR", help="Folder for all results and twins made."
    ),
    click.option("--config", "config_file", type=_PATH, help="YAML file, such as the challenges' in config/."),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a configuration key."),
    worker_options,
    click.option("--allow-pipes", is_flag=True, help="Run shell commands that a wav.scp holds: only if you trust it."),
    click.option("--only", metavar="STEP", help=f"Do this step alone: {', '.join(STEPS)}."),
    click.option("--until", metavar="STEP", help="Stop after this step."),
    click.option("--force", is_flag=True, help="Redo every step, also those that are up to date."),
]


def _simulated(run: Run, config: Config) -> Path:
    from spkver.corpora import is_simulated, simulate_voiceprivacy

    folder = run.path(SIMULATED)
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if run.frozen:
        if not is_simulated(folder):
            raise DataError("the SIMULATED speech is missing", file=folder, remedy="run with --until simulation first")
        return simulate_voiceprivacy(folder, config.simulation, jobs=run.jobs).folder  # it is as it was asked for
    click.echo("SIMULATED speech is made: synthetic voices from eSpeak NG, not recordings of people.")
    with run.timed("simulation"):
        if run.force and is_simulated(folder):
            folder.rename(old)  # at no moment there is half of it in its place
            shutil.rmtree(old, ignore_errors=True)
        return simulate_voiceprivacy(folder, config.simulation, jobs=run.jobs).folder
