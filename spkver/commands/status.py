"""The command ``spkver status``: how far a run is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spkbase.console import Command


@click.command(cls=Command)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Give it as JSON.")
@click.option("--verify", is_flag=True, help="Compare the SHA-256 of all files, not their sizes and times alone.")
def status(output: Path, as_json: bool, verify: bool) -> None:
    """Show which stages of the run in OUTPUT are done, stale, missing or damaged, and why.

    Configuration and lists are those of the last run; libraries and the audio files are compared with what is there
    now. Nothing is changed, so it can be called while a run is at work.
    """
    from spkbase.runs import format_status, read_status
    from spkver.anonymization import RECORD

    folders = read_status(output, {RECORD: twin_status}, verify=verify)
    click.echo(json.dumps(folders, indent=1) if as_json else format_status(folders))


def twin_status(folder: Path) -> dict[str, Any] | None:
    """Return how far an anonymised data directory is; its recordings are counted, not read."""
    from spkbase.runs import stage_status
    from spkver.anonymization import RECORD, progress

    counted = progress(folder)
    if counted is None:
        return None
    done, total = counted
    is_whole = done == total and (folder / "wav.scp").is_file()
    return stage_status("anonymisation", RECORD, "done" if is_whole else "missing", f"{done} of {total} utterances")
