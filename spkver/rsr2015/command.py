"""The command line of the RSR2015 recipes; numerical packages are imported when the command is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spkbase.console import ResumableCommand, log_option, path_option, worker_options
from spkbase.errors import ConfigError, DataError

if TYPE_CHECKING:
    from spkbase.runs import Run
    from spkver.rsr2015.lists import RecipeConfig

_LIMITS = [
    click.option(
        "--force", is_flag=True, help="Make every stage again, also those that are up to date."
    ),
    click.option(
        "--only", metavar="STAGE", help="Make only this stage; those before it must be up to date."
    ),
    click.option(
        "--until",
        metavar="STAGE",
        help="Stop after this stage, or the last that begins so, as 'scores'.",
    ),
]


def recipe_command(
    recipe: Callable[[Run, Path, RecipeConfig], str],
    page: str,
    *,
    about: str,
    config: str = "",
    stages: Sequence[str] = (),
) -> click.Command:
    """Return the command of a recipe.

    Parameters
    ----------
    recipe : callable
        Function of the run, the corpus and the configuration that returns the text shown at the end.
    page : str
        Path of the script; its configurations are in the folder ``config`` next to it.
    about : str
        Docstring of the script; its first paragraph is the help text, and the last one holds examples.
    config : str
        Name of its configuration; by default that of the script.
    stages : sequence of str
        First words of the names of its stages; if given, the command has the options --force, --only and --until.
    """
    configs = Path(page).parent / "config"
    own = configs / f"{config or Path(page).stem}.yaml"

    def main(
        corpus: str,
        output: Path,
        config_file: Path | None,
        settings: tuple[str, ...],
        **limits: Any,
    ) -> None:
        from spkbase.configuration import load_config, read_yaml
        from spkbase.runs import Ended, start_run
        from spkbase.status import format_status, read_status
        from spkver.rsr2015.lists import RecipeConfig

        defaults = read_yaml(own)
        if corpus == "simulated":
            _limit(defaults, read_yaml(own.with_name("simulated.yaml")))
        chosen = load_config(RecipeConfig, file=config_file, settings=settings, defaults=defaults)
        if corpus != "simulated" and not Path(corpus).is_dir():
            remedy = "give the root of RSR2015, which holds sph and key, or 'simulated'"
            raise DataError("no such folder", file=corpus, remedy=remedy)
        for option in ("only", "until"):
            _check_stage(option, limits.get(option), stages)
        try:
            with start_run(output, chosen, **limits) as run:
                folder = Path(corpus)
                if corpus == "simulated":
                    folder = _simulated(run, chosen)
                run = run.limited(lambda plan: recipe(plan, folder, chosen))
                click.echo(recipe(run, folder, chosen))
        except Ended:
            click.echo(format_status(read_status(output)))

    options: list[Callable[..., Any]] = [
        click.option(
            "--corpus",
            required=True,
            metavar="DIR",
            help="RSR2015 tree with sph/ and key/, or 'simulated'.",
        ),
        path_option("-o", "--output", required=True, help="Folder for all results."),
        path_option(
            "--config", "config_file", help="YAML file of changes to the recipe's configuration."
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="Change a configuration key.",
        ),
        worker_options,
        log_option,
    ]
    if stages:
        options += _LIMITS
    for option in reversed(options):
        main = option(main)
    first, *_, examples = about.split("\n\n")
    return click.command(cls=ResumableCommand, help=f"{first}\n\n{examples}")(main)


def _limit(defaults: dict[str, Any], largest: dict[str, Any]) -> None:
    """Lower settings for the simulated corpus, which is small."""
    for section in largest.keys() & defaults.keys():
        values = defaults[section]
        for key, limit in largest[section].items():
            values[key] = min(limit, values.get(key, limit))


def _check_stage(option: str, name: str | None, stages: Sequence[str]) -> None:
    """Refuse an unknown stage before a corpus is made; `Run.limited` checks the full names later."""
    if name is None:
        return
    for stage in stages:
        if name.startswith(f"{stage} of ") or (name and stage.startswith(name)):
            return
    raise ConfigError(f"{option}={name!r} is not a stage: expected one of {', '.join(stages)}")


def _simulated(run: Run, config: RecipeConfig) -> Path:
    from spkbase.files import load_json
    from spkver.corpora import SIMULATION_RECORD, CorpusSize, simulate_rsr2015

    click.echo(
        "The corpus is SIMULATED: synthetic speech from eSpeak NG, not recordings of people."
    )
    size = config.simulation
    name = f"part{config.part}-{config.gender}-{size.speakers}-{size.sentences}-{size.sessions}-{size.seed}"
    folder = run.path(f"simulated-{name}")
    sizes = CorpusSize(
        size.speakers,
        size.sentences,
        size.sessions,
        seed=size.seed,
        gender=config.gender,
        part=config.part,
    )

    def make(path: Path) -> None:
        simulate_rsr2015(path.parent, sizes, jobs=run.jobs)

    artefact = f"{folder.name}/{SIMULATION_RECORD}"
    always = replace(run, only=None, until=None)  # made even before a stage that is requested alone
    always.stage("simulation", artefact, make=make, read=load_json, inputs=sizes)
    return folder
