"""``spkver-eval cosine``: scores of ready embeddings, for every other command."""

from __future__ import annotations

from pathlib import Path

import click

from evaluation import formats
from evaluation.commands.options import FILE
from evaluation.embeddings import Averaging, cosine_scores, read_embeddings, warn_of_enrolled
from spkbase.console import Command
from spkbase.errors import DataError


@click.command(cls=Command)
@click.option("--enroll", required=True, multiple=True, type=FILE, help="Embeddings of the enrolled; repeatable.")
@click.option("--trial", required=True, multiple=True, type=FILE, help="Embeddings of the tested; repeatable.")
@click.option(
    *("--model-speakers", "enroll_speakers"),
    type=FILE,
    help="Speakers of the enrolled utterances, as in utt2spk.",
)
@click.option(
    *("--segment-speakers", "trial_speakers"),
    type=FILE,
    help="Speakers of the tested utterances, as in utt2spk.",
)
@click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
@click.option("--trials", required=True, type=FILE, help="List of trials, or a key: which model meets which segment.")
@click.option(
    "--mean",
    type=click.Choice(["plain", "normalised"]),
    default="plain",
    show_default=True,
    help="Average a speaker's embeddings as they are, or scaled to length 1 first.",
)
@click.option("-o", "--output", required=True, type=FILE, help="Scores to write; the extension says in which format.")
def cosine(
    enroll: tuple[Path, ...],
    trial: tuple[Path, ...],
    enroll_speakers: Path | None,
    trial_speakers: Path | None,
    allow_pickle: bool,
    trials: Path,
    mean: str,
    output: Path,
) -> None:
    """Score embeddings by their cosine.

    A model is an enrolled speaker, whose embeddings are averaged, or one enrolled utterance. Who speaks is read from
    --model-speakers, else from the file.

    --enroll and --trial take, by content: HDF5 and npz (vectors, ids, speakers); npy with a list of ids beside it;
    Kaldi's ark and scp; files of PyTorch (.pt), safetensors; CSV, TSV and lines 'id v1 v2 ...'; pickled dictionaries
    with --allow-pickle. A folder may hold any of these, Kaldi's archives, or the cache of VoicePrivacy
    (speaker_vectors.pt, id2idx, idx2spk); a pattern in quotes ('xvector.*.scp') stands for several files.

    \b
    Examples:
      spkver-eval cosine --enroll enrolls.npz --trial trials.npz --trials trials.txt --output scores.txt
      spkver-eval cosine --enroll emb_xvect/enrolls --trial 'tested/xvector.*.scp' --trials trials --output scores.h5
    """
    listed = formats.read_trials(trials)
    enrolled = read_embeddings(enroll, speakers=enroll_speakers, allow_pickle=allow_pickle)
    tested = read_embeddings(trial, speakers=trial_speakers, allow_pickle=allow_pickle)
    try:
        scores = cosine_scores(enrolled, tested, listed, averaging=Averaging(mean))  # type: ignore[arg-type]
    except DataError as error:
        raise DataError(error.text, file=error.file or trials, remedy=error.remedy) from error
    warn_of_enrolled(enrolled, tested, listed)
    formats.write_scores(output, scores)
    for note in enrolled.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{len(scores)} scores -> {output}")
