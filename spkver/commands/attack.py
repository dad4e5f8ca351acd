"""The commands ``spkver train``, ``spkver score`` and ``spkver verify``."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spkbase.console import (
    FILE,
    Command,
    ResumableCommand,
    echo_log,
    number_option,
    path_option,
    worker_options,
)
from spkbase.errors import ConfigError, DataError, counted
from spkbase.progress import LEVEL
from spkver.commands.options import allow_pipes, settings_option

if TYPE_CHECKING:
    from spkver.datadir import DataDir


@click.command(cls=ResumableCommand)
@click.argument("datadirs", metavar="DATADIR...", type=FILE, nargs=-1, required=True)
@click.option(
    *("--attacker", "--system", "attacker"),
    required=True,
    metavar="NAME",
    help="gmm-ubm, gmm-svm, gmm-svm-cms, supervector-cosine or ivector.",
)
@path_option("--config", "config_file", help="YAML file of what differs from NAME's values.")
@settings_option
@path_option("-o", "--output", required=True, metavar="ATTACKER", help="Folder of the attacker.")
@path_option("--work", help="Folder for features and background models.  [default: ATTACKER/work]")
@number_option("--seed", help="Seed of all draws.")
@click.option("--force", is_flag=True, help="Train again, also over an attacker of other inputs.")
@allow_pipes
@worker_options
def train(
    datadirs: tuple[Path, ...],
    attacker: str,
    config_file: Path | None,
    settings: tuple[str, ...],
    output: Path,
    work: Path | None,
    seed: int,
    force: bool,
    allow_pipes: bool,
    jobs: int | None,
) -> None:
    """Train an attacker on the data directory DATADIR.

    Several directories are one training set. They may hold the same utterances: several realisations of a random
    anonymiser, each with another seed, train a stronger attacker.

    ATTACKER is a self-contained folder; its subfolder work may be removed: it saves time when other attackers with the
    same features and background model are trained.

    The system ivector is an extractor: spkver embed takes it as ivector:FOLDER, and spkver backend trains the rest.

    Example:
      spkver train data/mine_train --attacker gmm-svm --output exp/attacker
      spkver train data/mine_train --system ivector --output exp/ivector
    """
    from spkver.attackers import attacker_config, train_attacker

    work_folder = work or output / "work"
    if attacker == "ivector":
        from spkver.commands.vectors import train_ivectors

        data = _read(datadirs, work_folder, allow_pipes, jobs)
        train_ivectors(
            data, config_file, settings, output, work_folder, seed=seed, jobs=jobs, force=force
        )
        return
    config = attacker_config(attacker, file=config_file, settings=settings)
    data = _read(datadirs, work_folder, allow_pipes, jobs)
    with echo_log():
        trained = train_attacker(
            data,
            config,
            output,
            seed=seed,
            work=work_folder,
            jobs=jobs,
            force=force,
            keep=not force,
        )
    facts = trained.trained_on
    click.echo(
        f"{output}: {trained.name}, trained on {facts['utterances']} utterances of {facts['speakers']} speakers"
    )


@click.command(cls=ResumableCommand)
@click.argument("attacker", type=FILE)
@path_option(
    "--enroll", "enroll_dir", required=True, metavar="DATADIR", help="Speech of the models."
)
@path_option("--test", "test_dir", required=True, metavar="DATADIR", help="Speech that is tested.")
@path_option(
    "--trials",
    "trial_list",
    metavar="FILE",
    help="Trials or key.  [default: trials in the tested DATADIR]",
)
@path_option(
    "-o",
    "--output",
    required=True,
    metavar="SCORES",
    help="File: Kaldi's format, or by its extension.",
)
@path_option(
    "--work", help="Folder for features and statistics.  [default: work in the folder of SCORES]"
)
@allow_pipes
@worker_options
def score(
    attacker: Path,
    enroll_dir: Path,
    test_dir: Path,
    trial_list: Path | None,
    output: Path,
    work: Path | None,
    allow_pipes: bool,
    jobs: int | None,
) -> None:
    """Score trials with ATTACKER.

    A model of the trials is a speaker of the enrolment, by the utterances that its list enrolls names or by all without
    that list, or a single utterance; a segment is an utterance of the tested directory.

    Example:
      spkver score exp/attacker --enroll data/mine_test_enrolls --test data/mine_test_trials_f -o exp/scores.txt
    """
    from evaluation.formats import check_extension, read_trials, write_scores
    from spkver.attackers import load_attacker
    from spkver.attackers import score as score_trials
    from spkver.backend import warn_of_trained

    check_extension(output)
    loaded = load_attacker(attacker)
    work = work or output.parent / "work"
    enrolled, tested = _read((enroll_dir, test_dir), work, allow_pipes, jobs)
    trials = tested.trials if trial_list is None else read_trials(trial_list)
    if trials is None:
        raise DataError(
            "there is no list of trials", file=test_dir / "trials", remedy="name one with --trials"
        )
    with echo_log():
        scores = score_trials(
            {loaded.name: loaded}, enrolled, tested, trials.trials(), work=work, jobs=jobs
        )
        speakers = {enrolled.speakers.get(model, model) for model in trials.model_ids}
        speakers.update(tested.speakers[segment] for segment in trials.segment_ids)
        warn_of_trained(loaded.heard, speakers)
    write_scores(output, scores[loaded.name])
    click.echo(f"{output}: {counted(len(trials), 'score')} of {loaded.name}")


@click.command(cls=Command)
@click.argument("first", metavar="FIRST", type=FILE)
@click.argument("second", metavar="SECOND", type=FILE)
@path_option("--attacker", metavar="FOLDER", help="What spkver train wrote.")
@click.option(
    "--extractor", help="As spkver embed takes it.  [default: campplus, where its weights are]"
)
@path_option("--backend", help="What spkver backend train wrote, in place of the cosine.")
def verify(
    first: Path, second: Path, attacker: Path | None, extractor: str | None, backend: Path | None
) -> None:
    """Score how similar the voices of the recordings FIRST and SECOND are.

    With a backend whose chain ends with calibrate the score is a log-likelihood ratio: how much more probable the
    recordings are if one person speaks in both than if two do. Without calibration it has no absolute meaning.

    Example:
      spkver verify first.wav second.wav --extractor campplus --backend backend.h5
    """
    from evaluation.trials import Trials
    from spkbase.work import Work
    from spkver.attackers import load_attacker
    from spkver.attackers import score as score_trials
    from spkver.backend import read_backend
    from spkver.datadir import DataDir
    from spkver.extractors import embed_directory, open_extractor

    if attacker and (extractor or backend):
        raise click.UsageError(
            "--attacker has its own features and backend: leave out --extractor and --backend"
        )
    loaded = None
    if backend is not None:
        loaded = read_backend(backend)
        if loaded.adapts_to_list:
            text = "its scores are adapted to a list of trials, and this is one trial"
            raise ConfigError(text, file=backend)
    recordings = {"first": first, "second": second}
    trial = Trials.from_ids(["first"], ["second"])
    with tempfile.TemporaryDirectory() as work, echo_log(LEVEL):
        both = DataDir(Path(work) / "both", recordings, {name: name for name in recordings})
        if attacker is not None:
            trained = load_attacker(attacker)
            means = trained.name
            scores = score_trials({"": trained}, both, both, trial, work=work, jobs=1)[""]
            value = scores.values[0]
        else:
            if extractor is None:
                extractor = _usual_extractor()
            vectors = embed_directory(
                both, open_extractor(extractor), Path(work) / "vectors.npz", work=Work(1)
            )
            if loaded is None:
                means = f"{extractor}, cosine"
                unit = vectors.vectors / vectors.norms()[:, None]
                value = unit[0] @ unit[1]
            else:
                means = f"{extractor}, {backend}"
                value = loaded.score(vectors, vectors, trial).values[0]
    if loaded is None or loaded.calibration is None:
        click.echo(f"score: {value:.4f} ({means})")
        text = "Without calibration this has no absolute meaning: higher is more similar. "
        text += "Compare it with scores of pairs"
        click.echo(
            f"{text} whose speakers are known, by the same means, or give a --backend with calibrate."
        )
        return
    odds = math.exp(min(abs(value), 700.0))
    hypotheses = "two persons speak as if one does"
    if value > 0:
        hypotheses = "one person speaks in both as if two do"
    click.echo(f"log-likelihood ratio: {value:.4f} ({means})")
    text = f"The recordings are {odds:,.3g} times as probable if {hypotheses}, where they are like those"
    click.echo(f"{text} that the calibration was trained on.")


def _usual_extractor() -> str:
    """Return the extractor that is used if none is named; a ConfigError if it is not installed."""
    from spkver.extractors import find_weights

    try:
        find_weights("campplus")
    except ConfigError as error:
        remedy = "give --attacker or --extractor, or get the weights: spkver weights campplus"
        text = "no network to compare voices is installed"
        raise ConfigError(text, remedy=remedy) from error
    return "campplus"


def _read(
    datadirs: Sequence[Path], work: Path, allow_pipes: bool, jobs: int | None
) -> list[DataDir]:
    """Read data directories.

    The output of each one's shell commands has a separate folder, since ids may be the same.
    """
    from spkver.datadir import read_datadir

    read = []
    for number, path in enumerate(datadirs):
        folder = work / f"pipes-{number}-{path.resolve().name}"
        read.append(read_datadir(path, allow_pipes=allow_pipes, pipes_to=folder, jobs=jobs))
    return read
