"""The command ``spkver challenge``: measures, ranks and checks a submission to a VoicePrivacy Challenge."""

from __future__ import annotations

import re
from pathlib import Path

import click

from spkbase.console import FILE, ResumableCommand, log_option, path_option, worker_options
from spkbase.files import write_text
from spkver.commands.options import settings_option
from spkver.commands.runs import evaluate_speech


class Incomplete(click.ClickException):
    """Something is missing in a submission."""

    exit_code = 1


@click.command("challenge", cls=ResumableCommand)
@click.argument("data", type=FILE)
@click.option(
    "--year",
    required=True,
    type=click.Choice(["2024", "2026", "2026-track2"]),
    help="The challenge; 2026 is its track 1.",
)
@click.option(
    "--suffix",
    metavar="_NAME",
    help="Ending of the anonymised sets.  [default: the only one in DATA, or by --anonymised]",
)
@path_option(
    "--anonymised",
    metavar="DIR",
    help="Folder of the anonymised recordings, if they are not in DATA: DIR/SET/*.wav, or all in one folder.",
)
@path_option(
    "-o", "--output", metavar="DIR", help="Folder for results.  [default: exp/NAME of the suffix]"
)
@click.option("--check", is_flag=True, help="Only check what would be submitted, in seconds.")
@path_option(
    "--utility-from",
    metavar="FILE",
    help="The toolkit's result_for_rank* of the same speech: its WER and UAR are ranked.",
)
@click.option("--no-utility", is_flag=True, help="Measure no WER and UAR here.")
@settings_option
@worker_options
@log_option
def challenge(
    data: Path,
    year: str,
    suffix: str | None,
    anonymised: Path | None,
    output: Path | None,
    check: bool,
    utility_from: Path | None,
    no_utility: bool,
    settings: tuple[str, ...],
    jobs: int | None,
) -> None:
    """Measure an anonymiser as a VoicePrivacy Challenge does, rank it among the baselines, and make the archive.

    DATA holds the challenge's data directories, and the anonymised ones with a suffix, or --anonymised names a folder
    of recordings. The EERs are those of CAM++ with a backend, not of the challenge's network. WER and UAR are measured
    where Whisper and the sets of emotions are there. At the end stand the challenge's own block, the rank and a
    check of what is missing in the submission.

    Example:
      spkver challenge data --year 2024 --suffix _mine --check
      spkver challenge data --anonymised mine/wavs --year 2024 --output exp/mine
    """
    from spkver.voiceprivacy import (
        CHALLENGES,
        check_submission,
        find_suffix,
        ranked_among_baselines,
        utility_settings,
    )

    if suffix is None and anonymised is not None:
        suffix = "_" + (re.sub(r"\W|_", "", anonymised.resolve().name) or "anon")
    if suffix is None:
        suffix = find_suffix(data, year)
    output = output or Path("exp") / suffix.lstrip("_")
    if check:
        checked = check_submission(
            data, suffix, year, anonymised=anonymised, output=output, jobs=jobs
        )
        click.echo(checked)
        if not checked.is_complete:
            raise Incomplete("the submission is not complete")
        return
    measured = []
    if not no_utility and utility_from is None:
        measured = utility_settings(data, year)
    evaluate_speech(
        str(data),
        suffix,
        output,
        anonymised=anonymised,
        config_file=Path("config") / CHALLENGES[year].config,
        settings=(*measured, *settings),
        jobs=jobs,
    )
    click.echo(f"\nAmong the baselines:\n\n{ranked_among_baselines(output, year, utility_from)}")
    checked = check_submission(data, suffix, year, anonymised=anonymised, output=output, jobs=jobs)
    click.echo(f"\nThe submission:\n\n{checked}")
    write_text(checked.archive.with_suffix(".txt"), f"{checked}\n")
