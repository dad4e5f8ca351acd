"""Arrange two public corpora of real speech in data directories like those of the VoicePrivacy Challenge.

    git clone https://github.com/resemble-ai/Resemblyzer
    git clone https://github.com/zhongyuchen/DSPSpeech-20
    python -m benchmarks.public_speech OUTPUT --librispeech Resemblyzer --dspspeech DSPSpeech-20

``libri10_test`` is the part of LibriSpeech (CC BY 4.0) in the examples of Resemblyzer: ten speakers of test-other with
ten utterances each, the first three for enrolment. Its training set ``libri251`` has the first 8 s of one utterance of
each of 251 speakers of train-clean-100. Neither is a set of the VoicePrivacy Challenge, so results do not compare with
the challenge's. ``dsp_test`` has ten words of DSPSpeech-20 (MIT licence) in seven takes, three for enrolment; eleven of
its 34 speakers are ``dsp_train``. ``recipes/voiceprivacy/config/public_speech.yaml`` assigns the
training sets.

All utterances of a test speaker come from one chapter or one sitting, so the channel helps recognition.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Key
from spkbase.console import Command
from spkbase.errors import ConfigError, DataError, Problems
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, write_datadir

RATE = 16000

# Sexes of the readers, from LibriSpeech's SPEAKERS.TXT, which Resemblyzer lacks.
TRAIN_CLEAN_100 = {
    "f": """
19 32 39 40 83 87 89 103 125 150 198 200 211 226 248 250 289 298 302 322 328 403 426 441 587 669 696 730 887
1069 1088 1098 1116 1183 1246 1263 1363 1447 1502 1553 1578 1737 1841 1898 1926 1963 1970 1992 2007 2092 2182
2196 2391 2416 2691 2764 2817 2836 2910 2989 3112 3235 3259 3440 3526 3879 3947 3982 3983 4051 4088 4137 4160
4195 4214 4297 4340 4362 4481 4640 4680 4853 5022 5163 5339 5393 5514 5561 5652 5688 5778 5789 5867 6000 6064
6078 6147 6272 6385 6415 6476 6531 6818 7059 7078 7113 7148 7178 7302 7511 7517 7635 7780 7794 7800 7859 8014
8051 8123 8238 8312 8324 8465 8468 8975""",
    "m": """
26 27 60 78 118 163 196 201 229 233 254 307 311 332 374 405 412 445 446 458 460 481 625 831 839 909 911 1034
1040 1081 1235 1334 1355 1455 1594 1624 1723 1743 1867 2002 2136 2159 2289 2384 2436 2514 2518 2843 2893 2911
2952 3168 3214 3240 3242 3374 3436 3486 3607 3664 3699 3723 3807 3830 3857 4014 4018 4267 4397 4406 4441 4788
4813 4830 4859 4898 5049 5104 5192 5322 5390 5456 5463 5678 5703 5750 5808 6019 6081 6181 6209 6367 6437 6454
6529 6563 6836 6848 6880 6925 7067 7190 7226 7264 7278 7312 7367 7402 7447 7505 8063 8088 8095 8098 8108 8226
8419 8425 8580 8609 8629 8630 8747 8770 8797 8838""",
}
TEST_OTHER = {"f": "367 533 1998 3080 3331", "m": "1688 2033 2414 2609 3005"}
TEST_UTTERANCES = 10
ENROLMENT_UTTERANCES = 3
TRAINING_SECONDS = 8

# DSPSpeech-20: speakers are numbered from 1 in the order of their ids. Their sexes are not published, but estimated
# from the median F0.
SEXES = "fmmmfmmmmmmmfmfmmmmmmmmmffffffmmff"
TRAINING_SPEAKERS = (1, 2, 6, 7, 11, 12, 16, 17, 21, 26, 31)
WORDS = ("00", "02", "04", "06", "08", "10", "12", "13", "14", "19")
ENROLMENT_TAKES = ("01", "04", "07")
TRIAL_TAKES = ("10", "13", "16", "19")
# The sixth speaker has only three different takes; the other files are copies.
FEWER_TAKES = {6: ("01", "02", "03")}


@dataclass(frozen=True)
class Utterance:
    """A recording and its data directory; at most `seconds` are used."""

    name: str
    speaker: str
    sex: str
    directory: str
    source: Path
    seconds: int | None = None


@click.command(cls=Command, help=__doc__.split("\n\n")[0])
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--librispeech", type=click.Path(path_type=Path), help="Root of a clone of Resemblyzer."
)
@click.option(
    "--dspspeech", type=click.Path(path_type=Path), help="Root of a clone of DSPSpeech-20."
)
def main(output: Path, librispeech: Path | None, dspspeech: Path | None) -> None:
    """Find all recordings, then write the data directories; OUTPUT appears when it is complete."""
    if librispeech is None and dspspeech is None:
        raise ConfigError("no corpus", remedy="give --librispeech, --dspspeech or both")
    if output.exists():
        raise DataError(
            "is there already", file=output, remedy="remove it or choose another folder"
        )
    problems, utterances = Problems(), []
    if librispeech is not None:
        utterances += find_librispeech(librispeech, problems)
    if dspspeech is not None:
        utterances += find_dspspeech(dspspeech, problems)
    problems.raise_if_any()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as name:
        tree = Path(name) / "tree"
        write_directories(tree, output.resolve(), utterances)
        tree.rename(output)
    for directory in sorted({utterance.directory for utterance in utterances}):
        speakers = [
            utterance.speaker for utterance in utterances if utterance.directory == directory
        ]
        click.echo(
            f"{output / directory}: {len(speakers)} utterances of {len(set(speakers))} speakers"
        )


def find_librispeech(root: Path, problems: Problems) -> list[Utterance]:
    """Find the utterances of `libri10_test` and its training set in Resemblyzer; note missing files in `problems`."""
    train, test = (
        root / "audio_data" / f"librispeech_{part}" for part in ("train-clean-100", "test-other")
    )
    remedy = "give the root of Resemblyzer, with all of its audio_data"
    if missing := [folder for folder in (train, test) if not folder.is_dir()]:
        for folder in missing:
            problems.add("no such folder", file=folder, remedy=remedy)
        return []

    def recordings(folder: Path, speaker: str, expected: int) -> list[Path]:
        paths = sorted(folder.glob(f"{speaker}-*.flac"))
        if len(paths) != expected:
            text = f"expected {expected} of the recordings {speaker}-*.flac, found {len(paths)}"
            problems.add(text, file=folder, remedy=remedy)
        return paths

    utterances = []
    for sex in "fm":
        for speaker in TRAIN_CLEAN_100[sex].split():
            for path in recordings(train, speaker, 1):
                utterances.append(
                    Utterance(path.stem, speaker, sex, "libri251", path, TRAINING_SECONDS)
                )
        for speaker in TEST_OTHER[sex].split():
            for number, path in enumerate(recordings(test / speaker, speaker, TEST_UTTERANCES)):
                use = "enrolls" if number < ENROLMENT_UTTERANCES else f"trials_{sex}"
                utterances.append(Utterance(path.stem, speaker, sex, f"libri10_test_{use}", path))
    return utterances


def find_dspspeech(root: Path, problems: Problems) -> list[Utterance]:
    """Find the utterances of `dsp_test` and `dsp_train` in DSPSpeech-20; note missing files in `problems`."""
    folder = root / "speech_data"
    speakers = (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )
    if len(speakers) != len(SEXES):
        text = f"expected {len(SEXES)} folders of speakers in speech_data, found {len(speakers)}"
        problems.add(text, file=root, remedy="give the root of DSPSpeech-20")
        return []
    utterances = []
    for number, (original, sex) in enumerate(zip(speakers, SEXES, strict=True), 1):
        speaker = f"dsp{number:02d}"  # the students' ids are not used further
        for take in FEWER_TAKES.get(number, ENROLMENT_TAKES + TRIAL_TAKES):
            if number in TRAINING_SPEAKERS:
                directory = "dsp_train"
            else:
                directory = (
                    "dsp_test_enrolls" if take in ENROLMENT_TAKES else f"dsp_test_trials_{sex}"
                )
            for word in WORDS:
                path = folder / original / f"{original}-{word}-{take}.wav"
                if not path.is_file():
                    problems.add("no such file", file=path, remedy="get the whole corpus")
                utterances.append(
                    Utterance(f"{speaker}-rep{take}-w{word}", speaker, sex, directory, path)
                )
    return utterances


def write_directories(tree: Path, output: Path, utterances: Sequence[Utterance]) -> None:
    """Write all data directories into `tree`, with paths that are valid when `tree` has been moved to `output`.

    Raises
    ------
    DataError
        With all recordings that cannot be read, or if `output` cannot be written.
    """
    directories: dict[str, list[Utterance]] = {}
    for utterance in sorted(utterances, key=lambda utterance: utterance.name):
        directories.setdefault(utterance.directory, []).append(utterance)
    # lists come first: an invalid path is found before any audio is written
    for directory, members in directories.items():
        write_datadir(
            DataDir(
                path=tree / directory,
                recordings={utterance.name: wav_path(output, utterance) for utterance in members},
                speakers={utterance.name: utterance.speaker for utterance in members},
                sexes={utterance.speaker: utterance.sex for utterance in members},
                enrolls=tuple(utterance.name for utterance in members)
                if directory.endswith("_enrolls")
                else None,
                trials=full_cross(members) if "_trials_" in directory else None,
            )
        )
    problems = Problems()
    for utterance in utterances:
        with problems.noted():
            write_audio(wav_path(tree, utterance), read_start(utterance), RATE)
    problems.raise_if_any()


def wav_path(root: Path, utterance: Utterance) -> Path:
    """Return the path of an utterance's audio."""
    return root / utterance.directory / "wav" / f"{utterance.name}.flac"


def full_cross(utterances: Sequence[Utterance]) -> Key:
    """Return the trials of every speaker against every utterance: all test speakers are enrolled, too."""
    pairs = [
        (speaker, utterance)
        for speaker in sorted({utterance.speaker for utterance in utterances})
        for utterance in utterances
    ]
    return Key.from_ids(
        models=[speaker for speaker, _ in pairs],
        segments=[utterance.name for _, utterance in pairs],
        is_target=[speaker == utterance.speaker for speaker, utterance in pairs],
    )


def read_start(utterance: Utterance) -> NDArray[np.float32]:
    """Return the samples of the part of a recording that is used."""
    samples: NDArray[np.float32] = read_audio(utterance.source, rate=RATE).samples
    return samples if utterance.seconds is None else samples[: utterance.seconds * RATE]


if __name__ == "__main__":
    main()
