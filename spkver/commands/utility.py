"""The commands ``spkver transcribe`` and ``spkver emotion``: what speech is still good for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from spkbase.console import ResumableCommand, echo_log, worker_options

_PATH = click.Path(path_type=Path)
_PIPES = click.option("--allow-pipes", is_flag=True, help="Run shell commands of wav.scp; only for lists you trust.")
_FORCE = click.option("--force", is_flag=True, help="Redo what is there.")
_OUTPUT = click.option("-o", "--output", required=True, type=_PATH, help="Folder to write into.")


@click.command(cls=ResumableCommand)
@click.argument("datadir", type=_PATH)
@_OUTPUT
@worker_options
@_PIPES
@_FORCE
def transcribe(datadir: Path, output: Path, jobs: int | None, allow_pipes: bool, force: bool) -> None:
    """Recognise the English words of DATADIR with PocketSphinx; write OUTPUT/text.

    Word error rates are then given by: spkver-eval wer --ref DATADIR/text --hyp OUTPUT/text
    --segment-speakers DATADIR/utt2spk
    """
    from spkbase.runs import start_run
    from spkver.recognition import TranscriptionConfig, check_recogniser
    from spkver.recognition import transcribe as work

    check_recogniser()
    data = _read(datadir, output, allow_pipes)
    config = TranscriptionConfig()
    with echo_log(logging.INFO), start_run(output, config, jobs=jobs, force=force) as run:
        words = work(run, data, config)
    click.echo(f"{len(words)} utterances: {output / 'text'}")


@click.command(cls=ResumableCommand)
@click.argument("datadir", type=_PATH)
@_OUTPUT
@click.option("--train", type=_PATH, help="Data directory to learn from, such as the original; DATADIR by default.")
@click.option("--no-speaker-normalisation", is_flag=True, help="Do not use who speaks in DATADIR.")
@worker_options
@_PIPES
@_FORCE
def emotion(
    datadir: Path,
    output: Path,
    train: Path | None,
    no_speaker_normalisation: bool,
    jobs: int | None,
    allow_pipes: bool,
    force: bool,
) -> None:
    """Recognise the emotions of DATADIR, each speaker by a machine that has not heard it; write OUTPUT/predictions.

    The directory to learn from needs utt2emo; folds of speakers are those of DATADIR/spk2fold, else each speaker is
    one. The recall is then given by: spkver-eval uar --ref DATADIR/utt2emo --predictions OUTPUT/predictions
    --segment-speakers DATADIR/utt2spk
    """
    from spkbase.runs import start_run
    from spkver.recognition import EmotionConfig, read_emotions, read_folds, recognise_emotions

    test = _read(datadir, output, allow_pipes)
    learnt = test if train is None else _read(train, output, allow_pipes)
    emotions, folds = read_emotions(learnt), read_folds(test)
    config = EmotionConfig(speaker_normalisation=not no_speaker_normalisation)
    with echo_log(logging.INFO), start_run(output, config, jobs=jobs, force=force) as run:
        recognised = recognise_emotions(run, test, learnt, emotions, folds=folds, config=config)
    click.echo(f"{len(recognised)} utterances: {output / 'predictions'}")


def _read(path: Path, output: Path, allow_pipes: bool) -> Any:
    from spkver.datadir import read_datadir

    return read_datadir(path, allow_pipes=allow_pipes, pipes_to=output / "audio" / path.name if allow_pipes else None)
