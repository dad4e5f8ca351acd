"""Check of a submission to a VoicePrivacy Challenge: what it must hold and what is missing.

All names are compared, but at most 200 headers of each data directory, so the check takes seconds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import challenges
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import format_table
from spkbase.showing import one_line
from spkbase.work import Work
from spkver import recognition
from spkver.audio import audio_header
from spkver.datadir import DataDir, duration_changes, link_twins, read_datadir
from spkver.voiceprivacy.challenge_files import archive_path, rank_path
from spkver.voiceprivacy.recording_checks import spaced

RATE = 16_000
"""Sampling rate [Hz] of the recordings that the challenges take."""


@one_line
@dataclass(frozen=True)
class Challenge:
    """The contents of a challenge as its organisers published it.

    Attributes
    ----------
    config : str
        Configuration in the recipe's folder.
    directories : tuple of str
        Data directories whose anonymised recordings are submitted.
    emotions : tuple of str
        Those among them in which emotions are recognised.
    optional : tuple of str
        Data directories that may be submitted too.
    """

    config: str
    directories: tuple[str, ...]
    emotions: tuple[str, ...]
    optional: tuple[str, ...] = ()


def _directories(sets: Sequence[str], lists: Sequence[str]) -> tuple[str, ...]:
    names: list[str] = []
    for dataset in sets:
        names += [f"{dataset}_enrolls", *(f"{dataset}_trials_{part}" for part in lists)]
    return tuple(names)


_LIBRI = ("libri_dev", "libri_test")
_IEMOCAP = ("IEMOCAP_dev", "IEMOCAP_test")
_EMODATA = ("emodata_track2_dev", "emodata_track2_test")
_LANGUAGES = ("en_dev", "en_test", "de_dev", "de_test", "es_dev", "es_test", "fr_dev", "fr_test")
_TRAINING = ("train_english", "train_german", "train_spanish", "train_french")

CHALLENGES = {
    "2024": Challenge(
        "vpc2024.yaml",
        (*_directories(_LIBRI, ("f", "m")), *_IEMOCAP, "train-clean-360"),
        _IEMOCAP,
    ),
    "2026": Challenge(
        "vpc2026.yaml", (*_directories(_LIBRI, ("mixed",)), *_IEMOCAP, "train-clean-360"), _IEMOCAP
    ),
    "2026-track2": Challenge(
        "vpc2026_track2.yaml",
        (*_directories(_LANGUAGES, ("mixed",)), *_EMODATA, *_TRAINING),
        _EMODATA,
        _directories(("cn_dev", "cn_test", "ja_dev", "ja_test"), ("mixed",)),
    ),
}
"""Challenges whose submissions can be checked, by their year."""


@one_line
@dataclass(frozen=True)
class DirectoryCheck:
    """The anonymised recordings of a data directory beside their originals.

    Attributes
    ----------
    name : str
    faults : tuple of str
        Descriptions of what is wrong; empty if nothing is.
    recordings : int
        Anonymised recordings.
    rates : tuple of int
        Distinct sampling rates of these [Hz].
    change : tuple of float
        Median, least and largest relative change of duration; empty unless both sides have recordings.
    """

    name: str
    faults: tuple[str, ...] = ()
    recordings: int = 0
    rates: tuple[int, ...] = ()
    change: tuple[float, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """Return a row of a table."""
        duration = "-"
        if self.change:
            middle, least, most = (100 * share for share in self.change)
            duration = f"{middle:+.0f} % ({least:+.0f} to {most:+.0f})"
        return {
            "data directory": self.name,
            "recordings": self.recordings,
            "Hz": ", ".join(map(str, self.rates)) or "-",
            "duration": duration,
            "fault": "; ".join(self.faults) or "none",
        }


@one_line
@dataclass(frozen=True)
class SubmissionCheck:
    """The contents of a submission, and what is missing from it.

    Attributes
    ----------
    directories : tuple of DirectoryCheck
    lacking : tuple of str
        Results that are missing, and the archive.
    archive : Path
        Where the archive of the results is expected.
    """

    directories: tuple[DirectoryCheck, ...]
    lacking: tuple[str, ...]
    archive: Path = field(default=Path())

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing or wrong."""
        return not self.lacking and not any(checked.faults for checked in self.directories)

    def __str__(self) -> str:
        """Return a table of the data directories, then what is missing."""
        lines = [format_table([checked.to_row() for checked in self.directories]), ""]
        faulty = [checked.name for checked in self.directories if checked.faults]
        if self.is_complete:
            lines.append("Complete for submission.")
        else:
            lines.append(f"Incomplete for submission: {', '.join((*faulty, *self.lacking))}.")
        return "\n".join(lines)


def check_submission(
    data: str | Path,
    suffix: str,
    challenge: str,
    *,
    anonymised: str | Path | None = None,
    output: str | Path | None = None,
    jobs: int | None = None,
) -> SubmissionCheck:
    """Check the contents of a submission: sets, names, sampling rates, durations and results.

    Parameters
    ----------
    data : path
        Folder of the original data directories.
    suffix : str
        Ending of the names of the anonymised ones.
    challenge : str
        One of `CHALLENGES`.
    anonymised : path, optional
        Folder of the anonymised recordings, if they are not beside the originals; see `link_twins`.
    output : path, optional
        Output folder of an evaluation, whose results are checked too.
    jobs : int, optional

    Raises
    ------
    DataError
        If the challenge is unknown or the data folder does not exist. Other faults are listed in the result.
    """
    if challenge not in CHALLENGES:
        raise DataError(
            f"expected one of the challenges {', '.join(CHALLENGES)}, got {challenge!r}"
        )
    data = Path(data)
    if not data.is_dir():
        raise DataError(
            "no such folder", file=data, remedy="give the folder of the data directories"
        )
    asked = CHALLENGES[challenge]
    with tempfile.TemporaryDirectory() as linked:
        twins = data
        if anonymised is not None:
            twins = Path(linked)
            _link(data, asked, Path(anonymised), twins, suffix)
        names = list(asked.directories)
        names += [name for name in asked.optional if (twins / f"{name}{suffix}").is_dir()]
        checked = [_check_directory(data / name, twins / f"{name}{suffix}", jobs) for name in names]
    lacking: list[str] = []
    archive = Path()
    if output is not None:
        archive = archive_path(Path(output), suffix)
        lacking = _lacking_results(Path(output), suffix, asked)
    return SubmissionCheck(tuple(checked), tuple(lacking), archive)


def find_suffix(data: str | Path, challenge: str) -> str:
    """Return the suffix of a challenge's anonymised data directories, if there is only one.

    Raises
    ------
    DataError
        If there is no suffix or more than one.
    """
    data = Path(data)
    asked = CHALLENGES[challenge]
    suffixes = set()
    for name in asked.directories:
        for path in data.glob(f"{name}_*"):
            if path.is_dir():
                suffixes.add(path.name.removeprefix(name))
    if len(suffixes) != 1:
        text = f"expected anonymised data directories of one suffix, such as {asked.directories[0]}_mine"
        there = ", ".join(sorted(suffixes)) or "none"
        raise DataError(
            f"{text}: there are {there}", file=data, remedy="give --suffix, or --anonymised DIR"
        )
    return suffixes.pop()


def utility_settings(data: str | Path, challenge: str) -> list[str]:
    """Return settings for WER and UAR, those for which data and recognisers are available.

    Only Whisper is used for words: error rates of other recognisers cannot be compared with the challenge's.
    """
    settings = []
    with suppress(ConfigError, DataError):
        recognition.open_recogniser("whisper")
        settings.append("utility.wer=true")
    emotions = []
    for name in CHALLENGES[challenge].emotions:
        if (Path(data) / name / "utt2emo").is_file():
            emotions.append(name)
    if emotions:
        settings.append(f"utility.emotion=[{','.join(emotions)}]")
    return settings


def ranked_among_baselines(
    output: str | Path, challenge: str, utility_from: str | Path | None = None
) -> str:
    """Return tables of the last evaluated system and the challenge's baselines, and which of them reaches which target.

    Parameters
    ----------
    output : path
        Output folder of the evaluation.
    challenge : str
        One of `CHALLENGES`.
    utility_from : path, optional
        File with WER and UAR of the system by the challenge's recognisers, its toolkit's ``result_for_rank``.
    """
    utilities = {}
    if utility_from is not None:
        utilities[""] = utility_from
    ranking = challenges.rank_systems([output], baselines=challenge, utility_from=utilities)
    lines = [format_table(challenges.system_rows(ranking.systems)), ""]
    if ranking.measured_orders:
        lines += [format_table(challenges.order_rows(ranking.measured_orders)), ""]
    if ranking.is_mixed:
        lines.append(challenges.MIXED)
    own = ranking.systems[0]
    if utility_from is None and own.utilities:
        titles = " and ".join(measure.upper() for measure in own.utilities)
        lines.append(
            f"{own.name}: {titles} by the recognisers of this project, not by the challenge's"
        )
    lines += [f"{own.name}: {note}" for note in own.notes[1:]]
    return "\n".join(lines).rstrip()


def _link(data: Path, asked: Challenge, anonymised: Path, target: Path, suffix: str) -> None:
    """Link the recordings in another folder whose originals can be read."""
    originals = []
    for name in (*asked.directories, *asked.optional):
        with suppress(DataError):
            originals.append(read_datadir(data / name))
    link_twins(originals, anonymised, target, suffix)


def _check_directory(original: Path, twin: Path, jobs: int | None) -> DirectoryCheck:
    """Compare a data directory with its twin."""
    if not twin.is_dir():
        return DirectoryCheck(original.name, (f"no folder {twin.name}",))
    try:
        before = read_datadir(original)
        after = read_datadir(twin, original=before)
    except DataError as error:
        return DirectoryCheck(original.name, (error.text,))
    faults = []
    for names, kind in (
        (before.recordings.keys() - after.recordings.keys(), "missing"),
        (after.recordings.keys() - before.recordings.keys(), "extra"),
    ):
        if names:
            faults.append(f"{len(names)} {kind}: {few(names)}")
    shared = spaced(sorted(before.recordings.keys() & after.recordings.keys()))
    rates: tuple[int, ...] = ()
    change: tuple[float, ...] = ()
    try:
        rates = _rates(after, shared, jobs)
        if shared:
            change = _change(before, after, shared, jobs)
    except DataError as error:
        faults.append(error.text)
    if set(rates) - {RATE}:
        faults.append(f"expected {RATE} Hz")
    return DirectoryCheck(original.name, tuple(faults), len(after), rates, change)


def _rates(directory: DataDir, names: Sequence[str], jobs: int | None) -> tuple[int, ...]:
    headers = Work(jobs).map(audio_header, [directory.recordings[name] for name in names])
    return tuple(sorted({header.rate for header in headers}))


def _change(
    before: DataDir, after: DataDir, names: Sequence[str], jobs: int | None
) -> tuple[float, ...]:
    """Return the median, least and largest relative change of duration."""
    changes = duration_changes(
        [before.recordings[name] for name in names],
        [after.recordings[name] for name in names],
        jobs=jobs,
    )
    return tuple(np.quantile(changes, (0.5, 0, 1)).tolist())


def _lacking_results(output: Path, suffix: str, asked: Challenge) -> list[str]:
    """Name the results that the rank file lacks, and the archive."""
    path = rank_path(output, suffix)
    if not path.is_file():
        return [f"{path.name} (EER, WER, UAR)"]
    lacking = []
    figures = challenges.read_figures(path)
    measured = set()
    for figure in figures:
        dataset = figure.list_name.strip()
        if figure.measure == "EER":
            dataset = dataset.replace(" ", "_trials_")
        if figure.condition in ("semi-informed", "anonymised"):
            measured.add((figure.measure, dataset))
    for name in asked.directories:
        stem, _, part = name.partition("_trials_")
        if not part:
            continue
        if ("EER", name) not in measured:
            lacking.append(f"EER of {name}")
        if ("WER", stem) not in measured and f"WER of {stem}" not in lacking:
            lacking.append(f"WER of {stem}")
    for name in asked.emotions:
        stem = name.replace("_track2", "")
        if not {("UAR", name), ("UAR", stem)} & measured:
            lacking.append(f"UAR of {name}")
    if not archive_path(output, suffix).is_file():
        lacking.append(archive_path(output, suffix).name)
    return lacking
