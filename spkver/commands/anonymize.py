"""The command ``spkver anonymize``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from spkbase.console import ResumableCommand, echo_log, worker_options
from spkbase.errors import ConfigError

_RANGE = (float, float)


@click.command("anonymize", cls=ResumableCommand)
@click.argument("name")
@click.argument("datadir", type=click.Path(path_type=Path))
@click.option("--suffix", help="Of the folder that is written beside DATADIR; by default _NAME.")
@click.option("--level", default="utterance", show_default=True, help="A draw for each utterance or each speaker.")
@click.option(
    "--side",
    type=click.Choice(["training", "enrolment", "trials"]),
    help="At --level speaker what DATADIR is for: each side has draws of its own. Without it give each another --seed.",
)
@click.option("--alpha", type=_RANGE, default=(0.5, 0.9), show_default=True, help="mcadams: the coefficient.")
@click.option("--speed", type=_RANGE, default=(0.8, 1.25), show_default=True, help="resampling: factor.")
@click.option("--warp", type=_RANGE, default=(0.05, 0.12), show_default=True, help="vtln: bilinear warp, either sign.")
@click.option("--pitch", type=_RANGE, default=(0.7, 1.4), show_default=True, help="world: factor of F0.")
@click.option("--formants", type=_RANGE, default=(0.8, 1.25), show_default=True, help="world: factor of formants.")
@click.option("--command", default="", help="command: shell command with {input} and {output}, both WAV.")
@click.option(
    "--seeding",
    default="utterance",
    show_default=True,
    help="utterance: draws by the seed and the id; vpc2024: the challenge's draws, along wav.scp.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of draws by id; a secret one where the speech is given away.",
)
@click.option("--allow-pipes", is_flag=True, help="Run the shell commands of wav.scp; only for lists that you trust.")
@worker_options
def anonymize(
    name: str,
    datadir: Path,
    suffix: str | None,
    side: str | None,
    seed: int,
    allow_pipes: bool,
    jobs: int | None,
    **settings: object,
) -> None:
    """Anonymise the data directory DATADIR by NAME into the folder DATADIR with a suffix.

    \b
    NAME
      mcadams            McAdams coefficient: baseline B2 of the VoicePrivacy Challenge
      resampling         speed, with pitch and formants
      vtln               vocal tract length: a warp of the spectral envelope
      world              pitch and formants through a vocoder; extra [world]
      none               nothing
      MODULE:FUNCTION    your own: samples, rate, utterance, rng -> samples (or FILE.py:FUNCTION)
      command            your own: a shell command, see --command

    The folder becomes a complete data directory: wav.scp, utt2spk and all other lists, and wav/*.wav, 16 bits, one
    channel, at the rate of the source. What is already there and up to date is kept.
    """
    from spkver.anonymization import AnonymizerConfig, anonymize_datadir
    from spkver.datadir import read_datadir, unfit_id

    config = AnonymizerConfig(name=name, **settings)  # type: ignore[arg-type]  # the options have the fields' names
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
