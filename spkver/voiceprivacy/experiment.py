"""An evaluation from its command line: the run, the data, the configuration and the last step."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from evaluation.reports import Failure, Results, judge, read_results
from spkbase.configuration import load_config, read_yaml
from spkbase.console import ResumableCommand, log_option, worker_options
from spkbase.errors import ConfigError, DataError
from spkbase.files import load_json
from spkbase.runs import Ended, Run, start_run
from spkbase.showing import one_line
from spkver.attackers import Spec
from spkver.corpora import SIMULATION_RECORD, is_simulated, simulate_voiceprivacy
from spkver.datadir import check_suffix
from spkver.voiceprivacy.choosing import chosen_attackers
from spkver.voiceprivacy.failures import Failures
from spkver.voiceprivacy.sets import with_lists_there
from spkver.voiceprivacy.settings import Config, TwinConfig

logger = logging.getLogger(__name__)

STEPS: Mapping[str, str] = {
    "simulation": "SIMULATED speech, for --data simulated",
    "checks": "errors in data and configuration",
    "anonymisation": "anonymised sets that are missing",
    "pairs": "whether anonymised recordings belong to their originals",
    "facts": "what the plan must know about recordings, such as the anonymiser",
    "plan": "which attacker scores which trials",
    "extraction": "vectors and features of all speech",
    "training": "models of the attackers",
    "scores": "scores of every condition",
    "evaluation": "metrics of every condition",
    "utility": "words, pitch and emotions, if configured",
    "report": "results, tables and the page",
}
SIMULATED = "simulated"
WORDS = "asr"
"""Folder of recognised words, in the output folder."""
_PATH = click.Path(path_type=Path)


@one_line
@dataclass(frozen=True)
class Experiment:
    """An evaluation of one anonymiser, which every step takes.

    Attributes
    ----------
    run : Run
        The output folder and the workers.
    data : Path
        Folder of the original data directories.
    suffix : str
        Suffix of the names of anonymised sets.
    config : Config
    until : str
        The last step, one of `STEPS`.
    allow_pipes : bool
        Run shell commands of a ``wav.scp``.
    named : tuple of str
        Sets that the configuration file names; `config` may choose others.
    anonymised : Path or None
        Folder of anonymised recordings, if they are not beside the originals.
    page : dict
        Options of the page, ``title`` and ``pseudonyms``; see `evaluation.reports.write_page`.
    done : list of str
        A line for each finished step.
    failures : Failures
        Errors of attackers in this run; the results list them, and the command reports them at the end.
    """

    run: Run
    data: Path
    suffix: str
    config: Config
    until: str = "report"
    allow_pipes: bool = False
    named: tuple[str, ...] = ()
    anonymised: Path | None = None
    page: dict[str, Any] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)

    @cached_property
    def attackers(self) -> list[tuple[Spec, Any]]:
        """The configured attackers with their specs, built-in and user-supplied, in their order."""
        return chosen_attackers(self.config)

    @cached_property
    def anonymizer(self) -> TwinConfig | None:
        """The anonymiser of missing sets; None if none is named."""
        return self.config.anonymizer.named_by(self.suffix)

    def begin(self, step: str) -> None:
        """Log the start of a step."""
        logger.info(
            "step %d of %d: %s (%s)", list(STEPS).index(step) + 1, len(STEPS), step, STEPS[step]
        )

    def end(self, step: str, text: str) -> None:
        """Note the result of a step; raise `Ended` after the last step of the run."""
        self.done.append(f"{step}: {text}")
        if step == self.until:
            raise Ended(step)


# --- the command line -------------------------------------------------------------------------------------------------


def evaluation_command(
    page: Callable[[Experiment], str], script: str, *, about: str
) -> click.Command:
    """Return the command of the recipe.

    Parameters
    ----------
    page : callable
        Takes the experiment and returns the text that is shown at the end.
    script : str
        Path of the script; its configurations are in the folder ``config`` beside it.
    about : str
        Docstring of the script; its first paragraph is the help text, and the last one holds examples.
    """
    folder = Path(script).parent
    first, *_, examples = about.split("\n\n")

    @click.command(cls=ResumableCommand, help=f"{first}\n\n{examples}")
    @click.option(
        "--data",
        required=True,
        metavar="DIR",
        help="Folder of the data directories, or 'simulated'.",
    )
    @click.option(
        "--suffix", required=True, metavar="_NAME", help="Ending of the names of anonymised sets."
    )
    @click.option(
        "--anonymised",
        type=_PATH,
        metavar="DIR",
        help="Folder of the anonymised recordings, if they are not in DATA: DIR/SET/*.wav, or all in one folder.",
    )
    @click.option(
        "-o",
        "--output",
        required=True,
        type=_PATH,
        metavar="DIR",
        help="Folder for results and anonymised sets.",
    )
    @click.option(
        "--config", "config_file", type=_PATH, help="YAML file, such as the challenges' in config/."
    )
    @click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a configuration key."
    )
    @worker_options
    @log_option
    @click.option(
        "--allow-pipes",
        is_flag=True,
        help="Run shell commands that a wav.scp holds: only if you trust it.",
    )
    @click.option(
        "--until", type=click.Choice(list(STEPS)), default="report", help="Stop after this step."
    )
    @click.option("--force", is_flag=True, help="Redo every step, even if it is up to date.")
    @click.option("--title", default="", help="Heading of the page.")
    @click.option("--pseudonyms", is_flag=True, help="Call the speakers S01, S02, ... on the page.")
    @click.option(
        "--fail-under",
        type=click.FloatRange(0, 50),
        metavar="PERCENT",
        help="End with status 1 if the lower end of the interval of the smallest EER is below PERCENT, where files may"
        " be exchanged by what it then is; with status 3 if that cannot be judged: a check forbids a verdict, it is not"
        " confirmed that files belong to their originals, or there is no interval.",
    )
    def main(
        data: str,
        suffix: str,
        anonymised: Path | None,
        output: Path,
        config_file: Path | None,
        settings: tuple[str, ...],
        jobs: int | None,
        allow_pipes: bool,
        until: str,
        force: bool,
        title: str,
        pseudonyms: bool,
        fail_under: float | None,
    ) -> None:
        if fail_under is not None and until != "report":
            raise click.UsageError("--fail-under needs the report: give no --until")
        if (
            config_file is not None
            and not config_file.exists()
            and (folder / config_file).is_file()
        ):
            # relative to the recipe's folder, such as config/vpc2024.yaml
            config_file = folder / config_file
        defaults = {}
        if data == SIMULATED:
            defaults = read_yaml(folder / "config" / "simulated.yaml")
        config = load_config(Config, file=config_file, settings=settings, defaults=defaults)
        config = (
            with_lists_there(config, Path(data))
            .with_default_attackers()
            .with_words_in(output.absolute() / WORDS)
        )
        check_suffix(suffix)
        _check_folders(data, output)
        if data != SIMULATED and until == "simulation":
            text = f"there is nothing to simulate: --data is {data}"
            raise ConfigError(text, remedy=f"give --data {SIMULATED}, or another step")
        with start_run(output, config, jobs=jobs, force=force) as run:
            experiment = Experiment(
                run=replace(run, quiet=True),
                data=run.path(SIMULATED).resolve() if data == SIMULATED else Path(data),
                suffix=suffix,
                config=config,
                until=until,
                allow_pipes=allow_pipes,
                named=_named_sets(config_file),
                anonymised=anonymised,
                page={"title": title, "pseudonyms": pseudonyms},
            )
            try:
                if data == SIMULATED:
                    _simulate(experiment)
                text = page(experiment)
            except Ended:
                steps = list(STEPS)
                to_come = ", ".join(steps[steps.index(until) + 1 :])
                text = "\n  ".join(["Done:", *experiment.done])
                text += f"\nTo go on ({to_come}), give the same command without --until."
            click.echo(text)
            _raise_failures(experiment.failures.listed, output)
            if fail_under is not None:
                check_privacy(read_results(output / "results.json"), fail_under / 100)

    return main


class NotJudged(click.ClickException):
    """It could not be judged whether there is enough privacy."""

    exit_code = 3


def check_privacy(results: Results, least: float) -> None:
    """Raise a ClickException (status 1) if the smallest EER may be below `least`, by the lower end of its interval.

    Raises
    ------
    NotJudged
        (Status 3) If that cannot be judged: without an interval or a verdict, or if it is not confirmed that files
        belong to their originals. A rate that is below `least` even then has status 1: exchanged files only raise it.
    """
    judged = judge(results)
    headline = judged.overall
    limit = f"{100 * least:g} %"
    if headline is None or not (headline.anonymised and headline.eer.has_interval):
        raise NotJudged(
            f"--fail-under: the smallest equal error rate has no interval, so it may be below {limit}"
        )
    end = "lower"
    rate = headline.judged.low
    if judged.forbidden:
        end = "upper"
        rate = headline.eer.high
    elif not headline.files.is_known:
        rate = headline.eer.low
    text = f"--fail-under: {100 * rate:.1f} %, the {end} end of the interval of the smallest equal error rate,"
    if rate < least:
        raise click.ClickException(f"{text} is below {limit}")
    if judged.forbidden:
        raise NotJudged(f"--fail-under: there is no verdict: {judged.because}")
    if not headline.files.is_known:
        raise NotJudged(f"{text} is enough only {headline.files.condition}")


def failures_by_attacker(failures: Sequence[Failure]) -> dict[str, list[Failure]]:
    """Return the failures of each attacker."""
    grouped: dict[str, list[Failure]] = {}
    for failure in failures:
        grouped.setdefault(failure.attacker, []).append(failure)
    return grouped


def count_lists(failures: Sequence[Failure]) -> str:
    """Return the number of trial lists without scores, in words."""
    return _count(len(failures), "trial list")


def _check_folders(data: str, output: Path) -> None:
    """Raise a DataError if results would be written among recordings."""
    if data != SIMULATED and output.resolve() == Path(data).resolve():
        raise DataError("is the folder of the data", file=output, remedy="choose another --output")
    for folder in (output, output.resolve().parent):
        if (folder / "wav.scp").exists():
            raise DataError(
                "is a data directory, or lies in one", file=output, remedy="choose another --output"
            )


def _named_sets(config_file: Path | None) -> tuple[str, ...]:
    """Return the sets that a configuration file names, even if --set chooses others."""
    datasets = None
    if config_file is not None:
        datasets = read_yaml(config_file).get("datasets")
    return tuple(map(str, datasets)) if isinstance(datasets, list) else ()


def _simulate(experiment: Experiment) -> None:
    """Make the speech of an experiment without data."""
    experiment.begin("simulation")
    run = experiment.run
    sizes = experiment.config.simulation
    click.echo(
        "Generating SIMULATED speech: synthetic voices of eSpeak NG, not recordings of people."
    )
    if run.force and is_simulated(experiment.data):
        shutil.rmtree(experiment.data)

    def make(path: Path) -> None:
        simulate_voiceprivacy(path.parent, sizes, jobs=run.jobs)

    run.stage(
        "simulation", f"{SIMULATED}/{SIMULATION_RECORD}", make=make, read=load_json, inputs=sizes
    )
    experiment.end("simulation", str(experiment.data))


def _raise_failures(failures: Sequence[Failure], output: Path) -> None:
    """Raise a DataError that names the attackers that failed, if any."""
    by_attacker = failures_by_attacker(failures)
    if not by_attacker:
        return
    remedy = f"see {output / 'report.html'}; the same command tries them again"
    lines = [f"{_count(len(by_attacker), 'attacker')} failed, all others finished ({remedy}):"]
    for name, of_attacker in by_attacker.items():
        lines.append(f"  {name}: {count_lists(of_attacker)}: {of_attacker[0].reason}")
    raise DataError("\n".join(lines))


def _count(number: int, noun: str) -> str:
    plural = "s" if number > 1 else ""
    return f"{number} {noun}{plural}"
