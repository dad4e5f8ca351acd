"""The command ``spkver anonymize-vectors``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from spkbase.console import Command, echo_log
from spkbase.errors import DataError, Problems

_PATH = click.Path(path_type=Path)


@click.command("anonymize-vectors", cls=Command)
@click.argument("source", type=_PATH)
@click.option("--pool", required=True, type=_PATH, metavar="VECTORS", help="Vectors of other speakers.")
@click.option("-o", "--output", required=True, type=_PATH, help="File to write: .h5 or .npz.")
@click.option(
    "--distance",
    type=click.Choice(["plda", "cosine"]),
    default="plda",
    help="What tells how far two voices are apart.",
)
@click.option("--backend", type=_PATH, help="PLDA of spkver backend train or import; by default trained on the pool.")
@click.option(
    "--sex",
    type=click.Choice(["same", "other", "random", "any"]),
    default="same",
    help="Of the new voices, by the speaker's.",
)
@click.option(
    "--sexes", multiple=True, type=_PATH, help="Lines 'speaker f|m', such as spk2gender; repeatable, for both sides."
)
@click.option(
    "--level",
    type=click.Choice(["speaker", "utterance"]),
    default="speaker",
    help="A pseudo-speaker for each speaker, or for each utterance.",
)
@click.option("--farthest", type=int, default=200, help="Candidates: so many voices far away.")
@click.option("--mean-of", type=int, default=100, help="So many of them are drawn and averaged.")
@click.option("--draws", type=int, default=1, help="Versions of each vector, to train attackers on.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of draws, by seed and id.")
@click.option(
    "--segment-speakers", type=_PATH, metavar="UTT2SPK", help="Speakers of SOURCE; as in its file by default."
)
@click.option("--pool-speakers", type=_PATH, metavar="UTT2SPK", help="Speakers of the pool; as in its file by default.")
@click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
def anonymize_vectors(
    source: Path,
    pool: Path,
    output: Path,
    backend: Path | None,
    sexes: tuple[Path, ...],
    segment_speakers: Path | None,
    pool_speakers: Path | None,
    allow_pickle: bool,
    **rules: Any,
) -> None:
    """Put pseudo-speakers in place of the speakers of SOURCE, one vector an utterance, without synthesis.

    As baseline B1 of the VoicePrivacy Challenges chooses voices: of the pool's speakers the farthest are candidates,
    some are drawn, and their mean is the new vector. What is still recognised in the new vectors, scored by
    spkver backend score, bounds the privacy of every synthesiser that speaks with them faithfully.

    Enrolment and trials that different people anonymise have different seeds; --level speaker with one seed links
    them by the draw.
    """
    import logging

    from evaluation.embeddings import read_embeddings, write_embeddings
    from spkver.anonymization import PseudoSpeakerRules, anonymize_embeddings
    from spkver.backend import read_backend

    if output.suffix not in (".npz", ".h5", ".hdf5"):
        raise DataError(f"no format of vectors is known for {output.suffix!r}", file=output, remedy="use .npz or .h5")
    chosen = PseudoSpeakerRules(**rules)
    originals = read_embeddings(source, speakers=segment_speakers, allow_pickle=allow_pickle)
    voices = read_embeddings(pool, speakers=pool_speakers, allow_pickle=allow_pickle)
    trained = None if backend is None else read_backend(backend)
    people = _sexes(sexes, {*originals.speakers, *voices.speakers})
    with echo_log(logging.INFO):
        made = anonymize_embeddings(originals, voices, chosen, sexes=people, backend=trained)
    write_embeddings(output, made)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{output}: {len(made)} vectors of {made.vectors.shape[1]} dimensions")


def _sexes(paths: Iterable[Path], speakers: set[str]) -> Mapping[str, str]:
    """Sex of each speaker that a list names; two lists may not contradict each other."""
    from spkver.commands.datadir import read_sexes
    from spkver.datadir import match_genders

    known: dict[str, str] = {}
    problems = Problems()
    for path in paths:
        table = read_sexes(path)
        for speaker, sex in match_genders(table, speakers & table.keys(), path).items():
            if known.setdefault(speaker, sex) != sex:
                problems.add(f"speaker {speaker!r} is {sex} here, and {known[speaker]} in another list", file=path)
    problems.raise_if_any()
    return known
