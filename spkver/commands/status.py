"""The command ``spkver status``: how far a run is."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spkbase.console import Command


@click.command(cls=Command)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Give it as JSON.")
def status(output: Path, as_json: bool) -> None:
    """Show which stages of the run in OUTPUT are done, stale, missing, damaged or in progress, and why.

    Configuration and lists are those of the last run; libraries and the audio files are compared with what is there
    now. Nothing is changed, so it can be called while a run is at work.
    """
    from spkbase.runs import format_status, read_status, status_record

    found = read_status(output)
    click.echo(json.dumps(status_record(found), indent=1) if as_json else format_status(found))
