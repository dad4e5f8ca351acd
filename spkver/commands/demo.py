"""The command ``spkver demo``: both recipes on synthetic speech, from audio to a DET curve and to a report."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import click

from spkbase.console import ResumableCommand, worker_options

SUFFIX = "_mcadams"


@click.command("demo", cls=ResumableCommand)
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path),
    default=Path("demo"),
    help="Folder for all results.",
)
@worker_options
@click.pass_context
def demo(context: click.Context, output: Path, jobs: int | None) -> None:
    """Run both recipes on SIMULATED speech: speaker verification, and how much identity an anonymiser leaves.

    \b
    OUTPUT/det.png                      the DET curves of a system on speech in the form of RSR2015
    OUTPUT/voiceprivacy/report.html     the report on the McAdams anonymiser

    The voices are eSpeak NG's, so the extra [demo] must be installed; what comes out says nothing about people. Less
    than a minute on two quiet cores; a second time it only looks whether all is there.
    """
    from spkver.attackers import DEFAULT
    from spkver.corpora import check_synthesiser

    check_synthesiser()
    privacy = output / "voiceprivacy"
    _recipe(context, "rsr2015.svm_gmm", corpus="simulated", output=output, jobs=jobs)
    click.echo("")
    _recipe(context, "voiceprivacy.run", data="simulated", suffix=SUFFIX, output=privacy, jobs=jobs)
    taken = json.loads((privacy / "results.json").read_text(encoding="utf-8"))["attackers_run"]["names"]
    left_out = [name for name in DEFAULT if name not in taken]
    click.echo(f"""
Attackers: {", ".join(taken)}.
Left out, for a run on data of your own to have: {", ".join(left_out)}.
Nothing was opened. Look at
  {privacy / "report.html"}  in a browser: what the McAdams anonymiser hides, and what it does not
  {output / "det.png"}  the DET curves of the speaker verification system
and go on with spkver status {output}, spkver-eval --help, spkver split --help (data of your own).""")


def _recipe(context: click.Context, name: str, **options: object) -> None:
    """Call the command of a recipe's script in this process, with its own defaults beside these options."""
    command: click.Command = import_module(f"spkver.recipes.{name}").main
    context.invoke(command, **options)
