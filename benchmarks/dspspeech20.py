"""Arrange a public corpus of real speech like RSR2015 part 1: DSPSpeech-20, 34 speakers (MIT licence).

    git clone https://github.com/zhongyuchen/DSPSpeech-20
    python -m benchmarks.dspspeech20 DSPSpeech-20 OUTPUT

Ten words become sentences 001 to 010 and seven takes become sessions 01 to 07: sessions 01, 04 and 07 are for
enrolment, the others for tests. Eleven speakers are background (m001 ...), the other 23 are enrolled and tested
(m101 ...), women and men in one list. In the partition dev the last six background speakers are enrolled and tested, so
that settings need not be chosen on the others: --set partition=dev --set 'speakers.background_m=[1, 5]' --set
'speakers.dev_m=[6, 11]'. The takes of a speaker are consecutive, so the channel helps recognition.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from spkbase.console import Command
from spkbase.errors import DataError, Problems

WORDS = ("00", "02", "04", "06", "08", "10", "12", "13", "14", "19")
TAKES = ("01", "04", "07", "10", "13", "16", "19")
N_SPEAKERS = 34
# Speakers are numbered in the order of their ids.
BACKGROUND = (1, 2, 6, 7, 11, 12, 16, 17, 21, 26, 31)
# The sixth has only three different takes; the other files are copies.
FEWER_TAKES = {6: ("01", "02", "03")}
ENROLMENT_SESSIONS = (1, 4, 7)
N_TRAINING = 5  # background speakers that are left where the others are the partition dev
WRONG_SENTENCES = 3  # in each model's trials: the sentences that follow its own


@click.command(cls=Command, help=__doc__.split("\n\n")[0])
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
def main(source: Path, output: Path) -> None:
    """Copy the recordings and write the key files; OUTPUT appears when it is complete."""
    if output.exists():
        raise DataError(
            "is there already", file=output, remedy="remove it or choose another folder"
        )
    recordings = find_recordings(source)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as name:
        tree = Path(name) / "tree"
        for segment, path in recordings.items():
            target = tree / "sph" / "male" / f"{segment}.wav"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        for partition, speakers in partitions().items():
            write_lines(
                tree / f"key/part1/trn/3sesspwd_{partition}_m.trn", enrolment_lines(speakers)
            )
            write_lines(tree / f"key/part1/ndx/3sess-pwd_{partition}_m.ndx", trial_lines(speakers))
        tree.rename(output)
    click.echo(f"{output}: {len(recordings)} recordings of {N_SPEAKERS} speakers")


def find_recordings(source: Path) -> dict[str, Path]:
    """Return the corpus file of each recording id of the layout.

    Raises
    ------
    DataError
        With all files that are missing.
    """
    folder = source / "speech_data"
    speakers = (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )
    if len(speakers) != N_SPEAKERS:
        raise DataError(
            f"expected {N_SPEAKERS} folders of speakers in speech_data, found {len(speakers)}",
            file=source,
            remedy="give the root of DSPSpeech-20",
        )
    names, paths, problems = speaker_names(), {}, Problems(folder)
    for number, speaker in enumerate(speakers, 1):
        for session, take in enumerate(FEWER_TAKES.get(number, TAKES), 1):
            for sentence, word in enumerate(WORDS, 1):
                path = folder / speaker / f"{speaker}-{word}-{take}.wav"
                if not path.is_file():
                    problems.add("no such file", file=path, remedy="get the whole corpus")
                paths[segment_id(names[number], session, sentence)] = path
    problems.raise_if_any()
    return paths


def speaker_names() -> dict[int, str]:
    """Return the RSR2015-like name of each speaker number: background from m001, the others from m101."""
    evaluation = [number for number in range(1, N_SPEAKERS + 1) if number not in BACKGROUND]
    names = {number: f"m{label:03d}" for label, number in enumerate(BACKGROUND, 1)}
    return names | {number: f"m{label:03d}" for label, number in enumerate(evaluation, 101)}


def segment_id(speaker: str, session: int, sentence: int) -> str:
    """Return the id of a recording, such as m101/m101_01_001."""
    return f"{speaker}/{speaker}_{session:02d}_{sentence:03d}"


def partitions() -> dict[str, list[str]]:
    """Return the speakers that are enrolled and tested, by partition; those of dev are among the background."""
    names = sorted(speaker_names().values())
    return {
        "eval": [name for name in names if name >= "m101"],
        "dev": names[N_TRAINING : len(BACKGROUND)],
    }


def enrolment_lines(speakers: list[str]) -> Iterator[str]:
    """Yield lines ``model file,file,file``."""
    for speaker in speakers:
        for sentence in range(1, len(WORDS) + 1):
            files = [
                f"male/{segment_id(speaker, session, sentence)}.sph"
                for session in ENROLMENT_SESSIONS
            ]
            yield f"{speaker}_{sentence:03d} {','.join(files)}"


def trial_lines(speakers: list[str]) -> Iterator[str]:
    """Yield lines ``model,file,TC,TW,IC,IW``, with Y for the trial's type and N for the others."""
    sessions = [
        session for session in range(1, len(TAKES) + 1) if session not in ENROLMENT_SESSIONS
    ]
    for target in speakers:
        for sentence in range(len(WORDS)):
            for speaker in speakers:
                for said in range(len(WORDS)):
                    if (said - sentence) % len(WORDS) > WRONG_SENTENCES:
                        continue
                    right = (speaker == target, said == sentence)
                    kinds = [(True, True), (True, False), (False, True), (False, False)]
                    letters = ",".join("Y" if right == kind else "N" for kind in kinds)
                    for session in sessions:
                        segment = segment_id(speaker, session, said + 1)
                        yield f"{target}_{sentence + 1:03d},{segment}.sph,{letters}"


def write_lines(path: Path, lines: Iterator[str]) -> None:
    """Write a key file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
