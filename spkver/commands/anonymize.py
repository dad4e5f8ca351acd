"""The commands ``spkver anonymize``, of speech, and ``spkver anonymize-vectors``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from spkbase import console
from spkbase.errors import DataError, Problems, counted
from spkver.commands.options import allow_pickle, allow_pipes, datadir_argument

logger = logging.getLogger(__name__)


@click.command("anonymize", cls=console.ResumableCommand)
@click.argument("name")
@datadir_argument
@click.option("--suffix", help="Suffix of the new folder next to DATADIR; default _NAME.")
@click.option(
    "--level",
    default="utterance",
    help="Draw random numbers for each 'utterance' or each 'speaker'.",
)
@click.option(
    "--side",
    type=click.Choice(["training", "enrolment", "trials"]),
    help="What DATADIR is for, with --level speaker: each side has other draws. Without it give another --seed.",
)
@click.option(
    "--command",
    default="",
    help="Shell command of the anonymiser command, with {input} and {output} (WAV).",
)
@click.option(
    *("--set", "settings"),
    multiple=True,
    metavar="KEY=VALUE",
    help="Range of a random number, such as alpha=[0.6,0.8]; or seeding=vpc2024 for the challenge's numbers.",
)
@console.number_option(
    "--seed", help="Seed of the random numbers; keep it secret if you publish the speech."
)
@allow_pipes
@console.worker_options
def anonymize(
    name: str,
    datadir: Path,
    suffix: str | None,
    level: str,
    side: str | None,
    command: str,
    settings: tuple[str, ...],
    seed: int,
    allow_pipes: bool,
    jobs: int | None,
) -> None:
    """Anonymise the data directory DATADIR; the new folder has the name of DATADIR and a suffix.

    \b
    NAME
      mcadams            McAdams coefficient (alpha): baseline B2 of the VoicePrivacy Challenge
      resampling         speed, with pitch and formants
      vtln               vocal tract length: a warp of the spectral envelope
      world              pitch and formants through a vocoder; extra [world]
      none               nothing
      MODULE:FUNCTION    user-supplied: samples, rate, utterance, rng -> samples (or FILE.py:FUNCTION)
      command            user-supplied shell command, see --command

    The new folder is a complete data directory: wav.scp, utt2spk, all other lists, and wav/*.wav with 16 bits, one
    channel and the sampling rate of the source. Recordings that are up to date are kept.

    Example:
      spkver anonymize mcadams data/mine
      spkver anonymize command data/mine --suffix _sox --command 'sox {input} {output} pitch 300'
    """
    from spkbase.configuration import load_config
    from spkver.anonymization import AnonymizerConfig, anonymize_datadir
    from spkver.audio import doubtful_recordings
    from spkver.datadir import check_suffix, read_datadir

    config = load_config(
        AnonymizerConfig,
        settings=settings,
        defaults={"name": name, "level": level, "command": command},
    )
    if suffix is None:
        suffix = f"_{name.rpartition(':')[2]}"
    check_suffix(suffix)
    folder = datadir.resolve()
    target = folder.with_name(folder.name + suffix)
    with console.echo_log():
        pipes = folder.with_name(f"{folder.name}.pipes")
        source = read_datadir(datadir, allow_pipes=allow_pipes, pipes_to=pipes, jobs=jobs)
        made = anonymize_datadir(source, target, config, seed=seed, side=side or "", jobs=jobs)
        for doubt in doubtful_recordings(made.recordings, jobs=jobs):
            logger.warning("%s: %s", made.path, doubt)
    click.echo(f"{made.path}: {counted(len(made), 'utterance')}")


@click.command("anonymize-vectors", cls=console.Command)
@click.argument("source", type=console.FILE)
@console.path_option(
    "--pool", required=True, metavar="VECTORS", help="Vectors of other speakers, to choose from."
)
@console.path_option("-o", "--output", required=True, help="File to write: .h5 or .npz.")
@console.choice_option("--distance", choices=["plda", "cosine"], help="Distance of voices.")
@console.path_option(
    "--backend", help="PLDA of spkver backend train or import; by default trained on the pool."
)
@console.choice_option(
    "--sex",
    choices=["same", "other", "random", "any"],
    help="Sex of the new voices, relative to the speaker's.",
)
@console.path_option(
    "--sexes", multiple=True, help="Lines 'speaker f|m', as in spk2gender; repeatable."
)
@console.choice_option(
    "--level", choices=["speaker", "utterance"], help="One pseudo-speaker for each of these."
)
@click.option(
    "--farthest", type=int, default=200, help="Number of farthest voices that are candidates."
)
@click.option("--mean-of", type=int, default=100, help="Number of candidates drawn and averaged.")
@click.option("--draws", type=int, default=1, help="Versions of each vector, to train attackers.")
@console.number_option("--seed", help="Seed of all draws.")
@console.path_option(
    "--segment-speakers", metavar="UTT2SPK", help="Speakers of SOURCE; default: those in its file."
)
@console.path_option(
    "--pool-speakers", metavar="UTT2SPK", help="Speakers of the pool; default: those in its file."
)
@allow_pickle
def anonymize_vectors(
    source: Path,
    pool: Path,
    output: Path,
    backend: Path | None,
    sexes: tuple[Path, ...],
    segment_speakers: Path | None,
    pool_speakers: Path | None,
    allow_pickle: bool,
    distance: str,
    sex: str,
    level: str,
    farthest: int,
    mean_of: int,
    draws: int,
    seed: int,
) -> None:
    """Replace the speakers of SOURCE by pseudo-speakers, one vector per utterance, without synthesis.

    Voices are chosen as by baseline B1 of the VoicePrivacy Challenges: the speakers of the pool that are farthest away
    are candidates, some of them are drawn, and their mean is the new vector. Score the new vectors by spkver backend
    score: no synthesiser that renders them faithfully can be more private.

    If different people anonymise enrolment and trials, give different seeds: with --level speaker and the same seed,
    both sides get the same pseudo-speaker.

    Example:
      spkver anonymize-vectors trials.h5 --pool pool.h5 --sexes spk2gender --output pseudo.h5
      spkver anonymize-vectors train.h5 --pool pool.h5 --sex any --distance cosine --draws 4 --output pseudo.h5
    """
    from evaluation.embeddings import read_embeddings, write_embeddings
    from spkver.anonymization import PseudoSpeakerRules, anonymize_embeddings
    from spkver.backend import read_backend

    if output.suffix not in (".npz", ".h5", ".hdf5"):
        raise DataError(
            f"no format of vectors is known for {output.suffix!r}",
            file=output,
            remedy="use .npz or .h5",
        )
    rules = PseudoSpeakerRules(distance, sex, level, farthest, mean_of, seed, draws)
    originals = read_embeddings(source, speakers=segment_speakers, allow_pickle=allow_pickle)
    voices = read_embeddings(pool, speakers=pool_speakers, allow_pickle=allow_pickle)
    trained = None
    if backend is not None:
        trained = read_backend(backend)
    people = _sexes(sexes, {*originals.speakers, *voices.speakers})
    with console.echo_log():
        made = anonymize_embeddings(originals, voices, rules, sexes=people, backend=trained)
    write_embeddings(output, made)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{output}: {counted(len(made), 'vector')} of {made.vectors.shape[1]} dimensions")


def _sexes(paths: Iterable[Path], speakers: set[str]) -> Mapping[str, str]:
    """Return the sex of each speaker that a list names; two lists may not contradict each other."""
    from spkver.datadir import match_sexes, read_sexes

    known: dict[str, str] = {}
    problems = Problems()
    for path in paths:
        table = read_sexes(path)
        for speaker, sex in match_sexes(table, speakers & table.keys(), path).items():
            if known.setdefault(speaker, sex) != sex:
                problems.add(
                    f"speaker {speaker!r} is {sex} here, and {known[speaker]} in another list",
                    file=path,
                )
    problems.raise_if_any()
    return known
