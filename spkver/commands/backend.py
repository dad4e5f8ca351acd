"""The commands ``spkver backend train``, ``score``, ``import`` and ``show``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from spkbase.console import Command, echo_log

_PATH = click.Path(path_type=Path)
_PICKLE = click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")


class _WithSteps(Command):
    """A command whose help ends with the table of steps, which is loaded when the help is asked for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the steps."""
        from spkver.backend import STEPS

        with formatter.section("Steps of a chain, in this order: maps of vectors, a scorer, snorm, calibrate"):
            rows = []
            for step in STEPS:
                values = ", ".join(parameter.name for parameter in step.parameters)
                rows.append((step.name, step.about + (f" ({values})" if values else "")))
            formatter.write_dl(rows)
        super().format_epilog(ctx, formatter)


@click.command(cls=_WithSteps)
@click.argument("vectors", type=_PATH)
@click.option("--chain", required=True, metavar="CHAIN", help="Steps, as text or in a file .yaml.")
@click.option("-o", "--output", required=True, type=_PATH, metavar="BACKEND", help="HDF5 file of the trained chain.")
@click.option(
    *("--segment-speakers", "speakers"),
    type=_PATH,
    metavar="UTT2SPK",
    help="Speakers of the vectors.  [default: as in their file]",
)
@click.option("--adapt", type=_PATH, metavar="VECTORS", help="Vectors of the domain to be tested, without speakers.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Deals speakers for calibrate.")
@_PICKLE
def train(
    vectors: Path,
    chain: str,
    output: Path,
    speakers: Path | None,
    adapt: Path | None,
    seed: int,
    allow_pickle: bool,
) -> None:
    """Train CHAIN on VECTORS, one vector an utterance.

    \b
    CHAIN
      centre,whiten,length,lda:150,length,cosine       NAME or NAME:VALUE of the step's first parameter
      [lda: {rank: 150, shrink: 0.1}, snorm: 300]      YAML, for several parameters
      chain.yaml                                       the same in a file

    Without a scorer it is the cosine. With several enrolled vectors a model is their mean, or what the scorer says.
    """
    from evaluation.embeddings import read_embeddings
    from spkver.backend import read_chain, train_chain, write_backend

    steps = read_chain(chain)
    training = read_embeddings(vectors, speakers=speakers, allow_pickle=allow_pickle)
    others = None if adapt is None else read_embeddings(adapt, allow_pickle=allow_pickle)
    with echo_log(logging.INFO):
        trained = train_chain(training, steps, adapt=others, seed=seed)
    write_backend(output, trained)
    click.echo(f"{output}: {trained!r}")


@click.command(cls=Command)
@click.argument("trained", metavar="BACKEND", type=_PATH)
@click.option("--enroll", required=True, type=_PATH, metavar="VECTORS", help="Vectors of the enrolled speakers.")
@click.option("--test", required=True, type=_PATH, metavar="VECTORS", help="Vectors of the tested utterances.")
@click.option("--trials", required=True, type=_PATH, metavar="LIST", help="Trials, or a key: model and segment.")
@click.option(
    *("--model-speakers", "enroll_speakers"),
    type=_PATH,
    metavar="UTT2SPK",
    help="Speakers of the enrolled utterances.",
)
@click.option("-o", "--output", required=True, type=_PATH, metavar="SCORES", help="The extension says in which format.")
@_PICKLE
def score(
    trained: Path,
    enroll: Path,
    test: Path,
    trials: Path,
    enroll_speakers: Path | None,
    output: Path,
    allow_pickle: bool,
) -> None:
    """Score trials with BACKEND, which spkver backend train wrote.

    A model is an enrolled speaker, with all its vectors, or one enrolled utterance; a segment is a tested utterance.
    """
    from evaluation.embeddings import read_embeddings, warn_of_enrolled
    from evaluation.formats import check_extension, read_trials, write_scores
    from spkver.backend import read_backend, warn_of_trained

    check_extension(output)
    loaded, listed = read_backend(trained), read_trials(trials)
    enrolled = read_embeddings(enroll, speakers=enroll_speakers, allow_pickle=allow_pickle)
    tested = read_embeddings(test, allow_pickle=allow_pickle)
    with echo_log(logging.INFO):
        warn_of_enrolled(enrolled, tested, listed)
        scores = loaded.score(enrolled, tested, listed)
        warn_of_trained(loaded.heard, [*enrolled.speakers, *tested.speakers])
    write_scores(output, scores)
    click.echo(f"{len(scores)} scores -> {output}")
    if loaded.adapts_to_list:
        sides = f"{len(set(listed.models.tolist()))} models"
        sides += f" and {len(set(listed.segments.tolist()))} segments" * ("segments" in loaded.adapts_to_list)
        text = f"note: scores are adapted to this list, to all its {sides}: those of another list, or of a part of this"
        click.echo(f"{text} one, do not belong with them", err=True)


@click.command("import", cls=Command)
@click.option("--plda", required=True, type=_PATH, metavar="FILE", help="Kaldi's plda, binary or text.")
@click.option("--mean", type=_PATH, metavar="FILE", help="Kaldi's mean.vec, which is subtracted first.")
@click.option("--transform", type=_PATH, metavar="FILE", help="Kaldi's transform.mat, or VBx's transform.h5.")
@click.option(
    "--length",
    type=click.Choice(["kaldi", "simple", "none"]),
    default="kaldi",
    help="Scaling within the PLDA.",
)
@click.option("-o", "--output", required=True, type=_PATH, metavar="BACKEND", help="HDF5 file of the backend.")
def import_kaldi(plda: Path, mean: Path | None, transform: Path | None, length: str, output: Path) -> None:
    """Make a backend of models that Kaldi or VBx trained."""
    from spkver.backend import (
        backend_from_kaldi,
        read_kaldi_matrix,
        read_kaldi_plda,
        read_vbx_transform,
        write_backend,
    )

    centre = None if mean is None else read_kaldi_matrix(mean)
    read = read_vbx_transform if transform is not None and transform.suffix in (".h5", ".hdf5") else read_kaldi_matrix
    lda = None if transform is None else read(transform)
    made = backend_from_kaldi(read_kaldi_plda(plda), mean=centre, transform=lda, length=length)
    write_backend(output, made)
    click.echo(f"{output}: {made!r}")


@click.command(cls=Command)
@click.argument("trained", metavar="BACKEND", type=_PATH)
def show(trained: Path) -> None:
    """Show what BACKEND is: its chain, and what it was trained on."""
    from spkver.backend import format_chain, read_backend

    loaded = read_backend(trained)
    facts = loaded.facts
    rows = {
        "chain": format_chain(loaded.chain),
        "vectors": f"{facts['dimension']} dimensions",
        "origin": loaded.origin,
        "made from": facts["made_from"],
    }
    if loaded.cohort is not None:
        rows["cohort"] = f"{len(loaded.cohort)} vectors"
    if loaded.calibration is not None:
        affine = loaded.calibration
        rows["calibration"] = f"{affine.weights[0]:.6g} * score {affine.offset:+.6g}, prior {affine.prior:g}"
    for name, text in rows.items():
        click.echo(f"{name + ':':13}{text}")
