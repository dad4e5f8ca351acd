"""``spkver-eval cosine``: scores of ready embeddings, for every other command."""

from __future__ import annotations

from pathlib import Path

import click

from evaluation import formats
from evaluation.commands.options import FILE
from evaluation.embeddings import Averaging, cosine_scores, read_embeddings
from spkbase.errors import DataError


@click.command()
@click.option("--enroll", required=True, type=FILE, help="Embeddings of the enrolled speakers.")
@click.option("--trial", required=True, type=FILE, help="Embeddings of the tested utterances.")
@click.option("--enroll-speakers", type=FILE, help="Speakers of the enrolled utterances, as in utt2spk.")
@click.option("--trial-speakers", type=FILE, help="Speakers of the tested utterances, as in utt2spk.")
@click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
@click.option("--trials", required=True, type=FILE, help="List of trials, or a key: which model meets which segment.")
@click.option(
    "--mean",
    type=click.Choice(["plain", "normalised"]),
    default="plain",
    show_default=True,
    help="Average a speaker's embeddings as they are, or scaled to length 1 first.",
)
@click.option("--output", required=True, type=FILE, help="Scores to write; the extension says in which format.")
def cosine(
    enroll: Path,
    trial: Path,
    enroll_speakers: Path | None,
    trial_speakers: Path | None,
    allow_pickle: bool,
    trials: Path,
    mean: str,
    output: Path,
) -> None:
    """Score embeddings by their cosine.

    A model is an enrolled speaker, whose embeddings are averaged, or one enrolled utterance.
    """
    listed = formats.read_trials(trials)
    enrolled = read_embeddings(enroll, speakers=enroll_speakers, allow_pickle=allow_pickle)
    tested = read_embeddings(trial, speakers=trial_speakers, allow_pickle=allow_pickle)
    try:
        scores = cosine_scores(enrolled, tested, listed, averaging=Averaging(mean))  # type: ignore[arg-type]
    except DataError as error:
        raise DataError(error.text, file=trials, remedy=error.remedy) from error
    formats.write_scores(output, scores)
    click.echo(f"{len(scores)} scores -> {output}")
