"""Arrange 100 speakers of real speech, in pieces of 2 s, as a set of an evaluation.

    python -m benchmarks.public_speech DIR --librispeech Resemblyzer
    python -m benchmarks.hundred_speakers DIR/libri251 OUTPUT

The first 50 women and 50 men of ``libri251`` have one recording of 8 s each, which is cut into four
pieces: two for enrolment, two for the trials of ``libri100_test``. The recordings of the other
speakers are its training set, ``libri151``. With fewer speakers the names have their numbers. All
pieces of a speaker come from one recording, so session, channel and text help recognition.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import click
from numpy.typing import NDArray

from benchmarks.public_speech import Utterance, full_cross
from spkbase.console import Command
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, read_datadir, write_datadir

PIECES = 4
ENROLMENT_PIECES = 2


@click.command(cls=Command, help=__doc__.split("\n\n")[0])
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--tested", default=50, show_default=True, help="Tested speakers of each sex.")
@click.option("--trained", type=int, help="Speakers of the training set; all others by default.")
def main(source: Path, output: Path, tested: int, trained: int | None) -> None:
    """Write the data directories."""
    datadir = read_datadir(source)
    chosen = choose_speakers(datadir, tested)
    others = sorted(set(datadir.sexes) - chosen)[:trained]
    tests = f"libri{len(chosen)}_test"
    training = f"libri{len(others)}"
    directories: dict[str, list[Utterance]] = {}
    for name, speaker in sorted(datadir.speakers.items()):
        if speaker not in chosen and speaker not in others:
            continue
        samples, rate = read_audio(datadir.recordings[name])
        pieces = cut(samples) if speaker in chosen else [samples]
        for number, piece in enumerate(pieces):
            sex = datadir.sexes[speaker]
            directory = training
            if speaker in chosen:
                directory = f"{tests}_trials_{sex}"
                if number < ENROLMENT_PIECES:
                    directory = f"{tests}_enrolls"
            path = output.resolve() / directory / "wav" / f"{name}-{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_audio(path, piece, rate)
            directories.setdefault(directory, []).append(
                Utterance(path.stem, speaker, sex, directory, path)
            )
    for directory, utterances in directories.items():
        names = tuple(utterance.name for utterance in utterances)
        write_datadir(
            DataDir(
                path=output / directory,
                recordings={utterance.name: utterance.source for utterance in utterances},
                speakers={utterance.name: utterance.speaker for utterance in utterances},
                sexes={utterance.speaker: utterance.sex for utterance in utterances},
                enrolls=names if directory.endswith("_enrolls") else None,
                trials=full_cross(utterances) if "_trials_" in directory else None,
            )
        )
        click.echo(f"{output / directory}: {len(names)} utterances")


def choose_speakers(datadir: DataDir, of_each_sex: int) -> set[str]:
    """Return the first speakers of each sex, in the order of their names."""
    chosen = set[str]()
    for sex in "fm":
        speakers = sorted(speaker for speaker, its_sex in datadir.sexes.items() if its_sex == sex)
        chosen.update(speakers[:of_each_sex])
    return chosen


def cut(samples: NDArray) -> list[NDArray]:
    """Cut a recording into pieces of equal length."""
    bounds = [number * len(samples) // PIECES for number in range(PIECES + 1)]
    return [samples[start:end] for start, end in pairwise(bounds)]


if __name__ == "__main__":
    main()
