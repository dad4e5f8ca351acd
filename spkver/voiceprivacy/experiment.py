"""An evaluation from its command line: the run, the data, the configuration and how far to go, which every step gets.

Which steps a run is asked for by ``--only`` and ``--until`` is in `Steps`.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from spkbase.configuration import load_config, read_yaml
from spkbase.console import ResumableCommand, echo_log, worker_options
from spkbase.errors import ConfigError, DataError
from spkbase.runs import Ended, Run, start_run
from spkbase.showing import one_line
from spkver.corpora import is_simulated, simulate_voiceprivacy
from spkver.datadir import check_suffix
from spkver.voiceprivacy.choosing import Anonymizers, Chosen, chosen_attackers, find_anonymizers
from spkver.voiceprivacy.sets import with_lists_there
from spkver.voiceprivacy.settings import Config

logger = logging.getLogger(__name__)

STEPS: Mapping[str, str] = {
    "simulation": "SIMULATED speech, for --data simulated",
    "checks": "everything wrong with data and configuration",
    "anonymisation": "twins that are missing",
    "scores": "attackers, and the scores of every condition",
    "evaluation": "the numbers of every condition",
    "utility": "words, pitch and emotions, where asked for",
    "report": "results, tables and the page",
}
_ORDER = list(STEPS)
SIMULATED = "simulated"
_PATH, _OUTPUT = click.Path(path_type=Path), "Folder for all results and twins made."


@one_line
@dataclass(frozen=True)
class Steps:
    """Which steps are worked on.

    Attributes
    ----------
    only : str or None
        This one alone; what it needs must be there as it would be made now.
    until : str or None
        All up to this one.
    done : list of str
        What was done, a line for each step, for the account at the end.
    failures : list of dict
        What single attackers failed at, see `spkver.voiceprivacy.scores.ScoreTable`, for the account too.
    """

    only: str | None = None
    until: str | None = None
    done: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for option, name in (("--only", self.only), ("--until", self.until)):
            if name is not None and name not in STEPS:
                raise ConfigError(f"{option} {name!r} is no step: expected one of {', '.join(STEPS)}")
        if self.only is not None and self.until is not None:
            raise ConfigError("--only and --until exclude each other", remedy="give one of them")

    def includes(self, name: str) -> bool:
        """Return whether a step is worked on."""
        if self.only is not None:
            return name == self.only
        return _ORDER.index(name) <= _ORDER.index(self.until or _ORDER[-1])

    def needs(self, name: str) -> bool:
        """Return whether a step must be up to date, by this run or an earlier one, for those that are worked on."""
        return self.includes(name) or not (self.only == "utility" and name in ("scores", "evaluation"))

    def ends_with(self, name: str) -> bool:
        """Return whether nothing is to be done after a step."""
        return name == (self.only or self.until or _ORDER[-1])

    def seen(self, name: str, run: Run) -> Run:
        """Return the run as a step sees it: one that is not worked on makes nothing, its stages stay as they are."""
        return run if self.includes(name) else replace(run, force=False, frozen=True)

    def begin(self, name: str, run: Run) -> Run:
        """Say which step begins, if it is worked on, and return the run as the step sees it, see `seen`."""
        if self.includes(name):
            logger.info("step %d of %d: %s (%s)", _ORDER.index(name) + 1, len(_ORDER), name, STEPS[name])
        return self.seen(name, run)

    def end(self, name: str, text: str) -> None:
        """Note what a step has done, if it was worked on; end the run by `Ended` if nothing is to be done after it."""
        if self.includes(name):
            self.done.append(f"{name}: {text}")
        if self.ends_with(name):
            raise Ended(name)

    def account(self) -> str:
        """Return what a run says that ends before the report."""
        option, last = ("only", self.only) if self.only else ("until", self.until)
        left = _ORDER[_ORDER.index(last) + 1 :] if last else []
        follows = f"To go on ({', '.join(left)}), give the same command without --{option}."
        return "\n".join(["Done:", *(f"  {line}" for line in self.done), follows])


@one_line
@dataclass(frozen=True)
class Experiment:
    """An evaluation of one anonymiser.

    Attributes
    ----------
    run : Run
        The output folder, and who computes.
    data : Path
        Folder of the original data directories.
    suffix : str
        What the names of anonymised sets end with.
    config : Config
    steps : Steps
        Which steps are worked on.
    allow_pipes : bool
        Run shell commands of a ``wav.scp``.
    named : tuple of str
        Sets of the configuration file, of which `config` may have others.
    """

    run: Run
    data: Path
    suffix: str
    config: Config
    steps: Steps
    allow_pipes: bool = False
    named: tuple[str, ...] = ()

    @cached_property
    def attackers(self) -> list[Chosen]:
        """Configurations of the built-in attackers, and those of others, in the order of the configuration."""
        return chosen_attackers(self.config)

    @cached_property
    def anonymizers(self) -> Anonymizers | None:
        """What makes missing twins; None where no anonymiser is at hand."""
        return find_anonymizers(self.config.anonymizer, self.suffix)


# --- the command line -------------------------------------------------------------------------------------------------


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

    @click.command(cls=ResumableCommand, help=about.split("\n\n")[0])
    @click.option("--data", required=True, metavar="DIR", help="Folder of the data directories, or 'simulated'.")
    @click.option("--suffix", required=True, metavar="_NAME", help="What the names of anonymised sets end with.")
    @click.option(
        "-o", "--output", required=True, type=_PATH, metavar="DIR", help="Folder for all results and twins made."
    )
    @click.option("--config", "config_file", type=_PATH, help="YAML file, such as the challenges' in config/.")
    @click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a configuration key.")
    @worker_options
    @click.option("--allow-pipes", is_flag=True, help="Run shell commands that a wav.scp holds: only if you trust it.")
    @click.option("--only", metavar="STEP", help=f"Do this step alone: {', '.join(STEPS)}.")
    @click.option("--until", metavar="STEP", help="Stop after this step.")
    @click.option("--force", is_flag=True, help="Redo every step, also those that are up to date.")
    def main(
        data: str, suffix: str, output: Path, config_file: Path | None, settings: tuple[str, ...], **options: Any
    ) -> None:
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

    return main


def raise_failures(failures: Sequence[dict[str, Any]], report: Path) -> None:
    """Raise DataError with one line for each attacker that failed, if any did: the others are done."""
    if not failures:
        return
    by_attacker = failures_by_attacker(failures)
    lines = [f"  {name}: {count_lists(theirs)}: {theirs[0]['reason']}" for name, theirs in by_attacker.items()]
    text = f"{len(by_attacker)} attacker{'s' if len(by_attacker) > 1 else ''} failed, all others are done"
    remedy = f"{report} says what is missing; the same command tries it again, and keeps what is done"
    raise DataError("\n".join([f"{text} ({remedy}):", *lines]))


def failures_by_attacker(failures: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return what each attacker failed at."""
    names = dict.fromkeys(failure["attacker"] for failure in failures)
    return {name: [failure for failure in failures if failure["attacker"] == name] for name in names}


def count_lists(failures: Sequence[dict[str, Any]]) -> str:
    """Return of how many lists of trials scores are missing, in words."""
    return f"{len(failures)} list{'s' if len(failures) > 1 else ''} of trials"


def _simulated(run: Run, config: Config) -> Path:
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
