"""The command ``spkver anonymize``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from spkbase.console import ResumableCommand, echo_log, number_option, worker_options
from spkbase.errors import ConfigError


@click.command("anonymize", cls=ResumableCommand)
@click.argument("name")
@click.argument("datadir", type=click.Path(path_type=Path))
@click.option("--suffix", help="Of the folder that is written beside DATADIR; by default _NAME.")
@click.option("--level", default="utterance", help="A draw for each utterance or each speaker.")
@click.option(
    "--side",
    type=click.Choice(["training", "enrolment", "trials"]),
    help="At --level speaker what DATADIR is for: each side has draws of its own. Without it give each another --seed.",
)
@click.option("--command", default="", help="command: shell command with {input} and {output}, both WAV.")
@click.option(
    *("--set", "settings"),
    multiple=True,
    metavar="KEY=VALUE",
    help="A range that is drawn from, such as alpha=[0.6,0.8]; or seeding=vpc2024, the challenge's draws.",
)
@number_option("--seed", help="Of draws by id; a secret one where the speech is given away.")
@click.option("--allow-pipes", is_flag=True, help="Run the shell commands of wav.scp; only for lists that you trust.")
@worker_options
def anonymize(
    name: str,
    datadir: Path,
    suffix: str | None,
    level: str,
    side: str | None,
    command: str,
    settings: tuple[str, ...],
    seed: int,
    allow_pipes: bool,
    jobs: int | None,
) -> None:
    """Anonymise the data directory DATADIR by NAME into the folder DATADIR with a suffix.

    \b
    NAME
      mcadams            McAdams coefficient (alpha): baseline B2 of the VoicePrivacy Challenge
      resampling         speed, with pitch and formants
      vtln               vocal tract length: a warp of the spectral envelope
      world              pitch and formants through a vocoder; extra [world]
      none               nothing
      MODULE:FUNCTION    your own: samples, rate, utterance, rng -> samples (or FILE.py:FUNCTION)
      command            your own: a shell command, see --command

    The folder becomes a complete data directory: wav.scp, utt2spk and all other lists, and wav/*.wav, 16 bits, one
    channel, at the rate of the source. What is already there and up to date is kept.
    """
    from spkbase.configuration import load_config
    from spkver.anonymization import AnonymizerConfig, anonymize_datadir
    from spkver.datadir import read_datadir, unfit_id

    said = {"name": name, "level": level, "command": command}
    config = load_config(AnonymizerConfig, settings=settings, defaults=said)
    ending = f"_{name.rpartition(':')[2]}" if suffix is None else suffix
    set_name = datadir.resolve().name
    if unfit := unfit_id(set_name + ending):
        raise ConfigError(f"the suffix {ending!r} makes a name that {unfit}", remedy="give another --suffix")
    target = datadir.resolve().with_name(set_name + ending)
    with echo_log(logging.INFO):
        pipes = target.with_name(f"{set_name}.pipes") if allow_pipes else None
        source = read_datadir(datadir, allow_pipes=allow_pipes, pipes_to=pipes, jobs=jobs)
        made = anonymize_datadir(source, target, config, seed=seed, side=side or "", jobs=jobs)
    click.echo(f"{made.path}: {len(made)} utterances")
