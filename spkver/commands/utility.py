"""The commands ``spkver transcribe`` and ``spkver emotion``: utility of speech."""

from __future__ import annotations

import math
from pathlib import Path

import click

from spkbase.console import ResumableCommand, echo_log, path_option, worker_options
from spkbase.errors import counted
from spkver.commands.options import allow_pipes, datadir_argument

_FORCE = click.option("--force", is_flag=True, help="Redo finished steps.")
_OUTPUT = path_option("-o", "--output", required=True, help="Folder to write into.")


@click.command(cls=ResumableCommand)
@datadir_argument
@_OUTPUT
@click.option(
    "--recogniser",
    default="auto",
    help="whisper, whisper:PATH, pocketsphinx, or auto: the best installed.",
)
@worker_options
@allow_pipes
@_FORCE
def transcribe(
    datadir: Path, output: Path, recogniser: str, jobs: int | None, allow_pipes: bool, force: bool
) -> None:
    """Recognise the English words of DATADIR; write OUTPUT/text.

    Whisper, with the weights that spkver weights whisper fetches or a model of CTranslate2 in the folder PATH, makes
    far fewer errors than PocketSphinx. If DATADIR has a file text, the share of its words that agree is shown.

    For word error rates call: spkver-eval wer --ref DATADIR/text --hyp OUTPUT/text
    --segment-speakers DATADIR/utt2spk

    Example:
      spkver transcribe data/mine --output text_heard
    """
    from spkbase.runs import start_run
    from spkver.datadir import read_datadir
    from spkver.recognition import UNDERSTOOD, open_recogniser
    from spkver.recognition import transcribe as work

    opened = open_recogniser(recogniser)
    data = read_datadir(datadir, allow_pipes=allow_pipes, pipes_to=output / "audio" / datadir.name)
    with echo_log(), start_run(output, {"recogniser": opened.name}, jobs=jobs, force=force) as run:
        transcripts = work(run, data, opened)
    click.echo(
        f"{counted(len(transcripts.words), 'utterance')}, by {opened.name}: {output / 'text'}"
    )
    share = transcripts.agreement
    if share < UNDERSTOOD:
        click.echo(
            f"The words were not understood: {100 * share:.0f} % of them agree with {datadir / 'text'}"
        )
    elif not math.isnan(share):
        click.echo(f"{100 * share:.0f} % of the words agree with {datadir / 'text'}")


@click.command(cls=ResumableCommand)
@datadir_argument
@_OUTPUT
@path_option("--train", help="Data directory to train on, such as the original; default DATADIR.")
@click.option(
    "--no-speaker-normalisation",
    is_flag=True,
    help="Normalise by the training set, not by speaker.",
)
@worker_options
@allow_pipes
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
    """Recognise the emotions of DATADIR by classifiers trained on other speakers; write OUTPUT/predictions.

    The training directory needs utt2emo. Folds of speakers are those of DATADIR/spk2fold; without it each speaker is a
    fold. For the recall call: spkver-eval uar --ref DATADIR/utt2emo --predictions OUTPUT/predictions
    --segment-speakers DATADIR/utt2spk

    Example:
      spkver emotion data/mine --output emotions
    """
    from spkbase.runs import start_run
    from spkver.datadir import read_datadir
    from spkver.recognition import read_emotions, read_folds, recognise_emotions

    test = read_datadir(datadir, allow_pipes=allow_pipes, pipes_to=output / "audio" / datadir.name)
    learnt = test
    if train is not None:
        learnt = read_datadir(
            train, allow_pipes=allow_pipes, pipes_to=output / "audio" / train.name
        )
    emotions = read_emotions(learnt)
    folds = read_folds(test)
    config = {"speaker_normalisation": not no_speaker_normalisation}
    with echo_log(), start_run(output, config, jobs=jobs, force=force) as run:
        recognised = recognise_emotions(run, test, learnt, emotions, folds=folds, **config)
    click.echo(f"{counted(len(recognised), 'utterance')}: {output / 'predictions'}")
