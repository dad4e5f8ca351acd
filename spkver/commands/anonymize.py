"""The commands ``spkver anonymize``, of speech, and ``spkver anonymize-vectors``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from spkbase import console
from spkbase.errors import DataError, Problems
from spkver.commands.options import allow_pickle, allow_pipes, datadir_argument
from spkver.commands.speech import read_sexes

logger = logging.getLogger(__name__)


@click.command("anonymize", cls=console.ResumableCommand)
@click.argument("name")
@datadir_argument
@click.option("--suffix", help="Suffix of the new folder next to DATADIR; default _NAME.")
@click.option("--level", default="utterance", help="A draw for each utterance or each speaker.")
@click.option(
    "--side",
    type=click.Choice(["training", "enrolment", "trials"]),
    help="Use of DATADIR at --level speaker: each side has different draws. Without it give different --seed.",
)
@click.option("--command", default="", help="command: shell command with {input} and {output}, both WAV.")
@click.option(
    *("--set", "settings"),
    multiple=True,
    metavar="KEY=VALUE",
    help="A range to draw from, such as alpha=[0.6,0.8]; or seeding=vpc2024, the challenge's draws.",
)
@console.number_option("--seed", help="Seed of draws by id; keep it secret where the speech is published.")
@allow_pipes
@console.worker_options
def anonymize(
    name: str,
    datadir: Path,
    suffix: str | None,
    side: str | None,
    settings: tuple[str, ...],
    seed: int,
    allow_pipes: bool,
    jobs: int | None,
    **values: str,
) -> None:
    """Anonymise the data directory DATADIR by NAME into the folder DATADIR with a suffix.

    \b
    NAME
      mcadams            McAdams coefficient (alpha): baseline B2 of the VoicePrivacy Challenge
      resampling         speed, with pitch and formants
      vtln               vocal tract length: a warp of the spectral envelope
      world              pitch and formants through a vocoder; extra [world]
      none               nothing
      MODULE:FUNCTION    user-supplied: samples, rate, utterance, rng -> samples (or FILE.py:FUNCTION)
      command            user-supplied shell command, see --command

    The folder becomes a complete data directory: wav.scp, utt2spk and all other lists, and wav/*.wav, 16 bits, one
    channel, at the rate of the source. Files that are up to date are kept.
    """
    from spkbase.configuration import load_config
    from spkver.anonymization import AnonymizerConfig, anonymize_datadir
    from spkver.audio import doubtful_recordings
    from spkver.datadir import check_suffix, read_datadir

    config = load_config(AnonymizerConfig, settings=settings, defaults={"name": name, **values})
    ending = f"_{name.rpartition(':')[2]}" if suffix is None else suffix
    check_suffix(ending)
    folder = datadir.resolve()
    target = folder.with_name(folder.name + ending)
    with console.echo_log():
        pipes = folder.with_name(f"{folder.name}.pipes")
        source = read_datadir(datadir, allow_pipes=allow_pipes, pipes_to=pipes, jobs=jobs)
        made = anonymize_datadir(source, target, config, seed=seed, side=side or "", jobs=jobs)
        for doubt in doubtful_recordings(made.recordings, jobs=jobs):
            logger.warning("%s: %s", made.path, doubt)
    click.echo(f"{made.path}: {len(made)} utterances")


@click.command("anonymize-vectors", cls=console.Command)
@click.argument("source", type=console.FILE)
@console.path_option("--pool", required=True, metavar="VECTORS", help="Vectors of other speakers.")
@console.path_option("-o", "--output", required=True, help="File to write: .h5 or .npz.")
@console.choice_option("--distance", of=["plda", "cosine"], help="Distance of voices.")
@console.path_option("--backend", help="PLDA of spkver backend train or import; by default trained on the pool.")
@console.choice_option("--sex", of=["same", "other", "random", "any"], help="Of the new voices, by the speaker's.")
@console.path_option("--sexes", multiple=True, help="Lines 'speaker f|m', such as spk2gender; repeatable for both.")
@console.choice_option("--level", of=["speaker", "utterance"], help="What has a pseudo-speaker of its own.")
@click.option("--farthest", type=int, default=200, help="Number of farthest voices that are candidates.")
@click.option("--mean-of", type=int, default=100, help="Number of candidates drawn and averaged.")
@click.option("--draws", type=int, default=1, help="Realisations of each vector, to train attackers.")
@console.number_option("--seed", help="Of draws, by seed and id.")
@console.path_option("--segment-speakers", metavar="UTT2SPK", help="Speakers of SOURCE; as in its file by default.")
@console.path_option("--pool-speakers", metavar="UTT2SPK", help="Speakers of the pool; as in its file by default.")
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
    **rules: Any,
) -> None:
    """Replace the speakers of SOURCE by pseudo-speakers, one vector an utterance, without synthesis.

    As baseline B1 of the VoicePrivacy Challenges chooses voices: of the pool's speakers the farthest are candidates,
    some are drawn, and their mean is the new vector. What is still recognised in the new vectors, scored by
    spkver backend score, bounds the privacy of every synthesiser that speaks with them faithfully.

    Enrolment and trials that different people anonymise have different seeds; --level speaker with one seed links
    them by the draw.
    """
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
    with console.echo_log():
        made = anonymize_embeddings(originals, voices, chosen, sexes=people, backend=trained)
    write_embeddings(output, made)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{output}: {len(made)} vectors of {made.vectors.shape[1]} dimensions")


def _sexes(paths: Iterable[Path], speakers: set[str]) -> Mapping[str, str]:
    """Sex of each speaker that a list names; two lists may not contradict each other."""
    from spkver.datadir import match_sexes

    known: dict[str, str] = {}
    problems = Problems()
    for path in paths:
        table = read_sexes(path)
        for speaker, sex in match_sexes(table, speakers & table.keys(), path).items():
            if known.setdefault(speaker, sex) != sex:
                problems.add(f"speaker {speaker!r} is {sex} here, and {known[speaker]} in another list", file=path)
    problems.raise_if_any()
    return known
