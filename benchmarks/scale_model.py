"""The arithmetic of docs/scale.md: from measured costs of a unit of work to the needs of a corpus.

The experiment is the one of RSR2015 with the corpus in its place: one UBM on all speech, statistics and a supervector
of every recording, one SVM for each speaker from three recordings, and every recording tested against 57 models, in one
system (with NAP or without: the mean of both). Engine and chunks are those of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spkver.mixture import chunk_frames

FLOAT32, FLOAT64 = 4, 8
TRIALS_OF_A_RECORDING, ENROLMENT = 57, 3  # as in RSR2015
MODEL_CORES = (2, 16, 128, 1024)

# Items of one task, as in the package: recordings (features, frames), vectors, models.
FEATURES_TASK, FRAMES_TASK, VECTORS_TASK, MODELS_TASK = 32, 64, 32, 16
LEAST_IN_FLIGHT = 64  # tasks that are on their way, or four for each core


@dataclass(frozen=True)
class Corpus:
    """A corpus by its counts: hours of audio, recordings and speakers, each of whom becomes a model."""

    name: str
    hours: float
    recordings: float
    models: float

    @property
    def trials(self) -> float:
        """Every recording against as many models as in RSR2015."""
        return TRIALS_OF_A_RECORDING * self.recordings


# LibriSpeech: Panayotov et al., ICASSP 2015. VoxCeleb2, both parts: Chung, Nagrani and Zisserman, Interspeech 2018.
CORPORA = (
    Corpus("train-clean-360", 363.6, 104_014, 921),
    Corpus("VoxCeleb2", 2_442, 1_128_246, 6_112),
    Corpus("100,000 h", 100_000, 45_000_000, 100_000),  # utterances of 8 s, an hour of each speaker
)


@dataclass(frozen=True)
class Line:
    """A cost that grows with the work: ``fixed + unit * work``."""

    fixed: float
    unit: float

    def at(self, work: float) -> float:
        """Cost of so much work."""
        return self.fixed + self.unit * work


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """Line of least squared relative error through (work, cost); proportional where the fixed part would be negative.

    Examples
    --------
    >>> line_through([(1, 5), (2, 7), (4, 11)])
    Line(fixed=3.0, unit=2.0)
    """
    work, cost = (np.array(column, float) for column in zip(*points, strict=True))
    if len(points) > 1 and np.ptp(work) > 0:
        scaled = np.column_stack([1 / cost, work / cost])
        fixed, unit = np.linalg.lstsq(scaled, np.ones(len(cost)), rcond=None)[0]
        if fixed >= 0 and unit >= 0:
            return Line(float(np.round(fixed, 12)), float(np.round(unit, 12)))
        if unit < 0:
            return Line(float(cost.mean()), 0.0)
    return Line(0.0, float((cost / work).mean()))


@dataclass(frozen=True)
class Rates:
    """What was measured: processor seconds of a stage's unit of work, and what the speech is like."""

    cpu: dict[str, Line]
    frames_per_second: float  # of speech, kept after the detector
    gaussians: int
    dimension: int
    rounds: tuple[int, ...]
    feature_bytes: float  # of a second of audio, in the store
    text_bytes: float  # of a trial's score as text
    memory: Line  # peak while lists are read, over recordings

    def frames(self, corpus: Corpus) -> float:
        """Frames of speech in a corpus."""
        return self.frames_per_second * corpus.hours * 3600

    def client_memory(self, corpus: Corpus, cores: int) -> float:
        """Bytes of the process that starts the work: lists and trials, and results that wait for earlier ones."""
        waiting = max(LEAST_IN_FLIGHT, 4 * cores) * VECTORS_TASK * FLOAT32 * self.gaussians * (self.dimension + 1)
        return self.memory.at(corpus.recordings) + waiting


def measured_rates(runs: Sequence[dict[str, Any]]) -> Rates:
    """Rates from the runs of `benchmarks.rsr2015_full`, at least two sizes."""
    largest = runs[-1]
    kinds = [kind for kind, stage in largest["stages"].items() if stage.get("work")]
    cpu = {
        kind: line_through([(run["stages"][kind]["work"], max(run["stages"][kind]["cpu"], 0.01)) for run in runs])
        for kind in kinds
    }
    frames, seconds = largest["frames"], largest["audio_seconds"]
    text = [size for name, size in largest["artefacts"].items() if name.startswith("scores/") and name.endswith(".txt")]
    return Rates(
        cpu=cpu,
        frames_per_second=(frames["ubm"] + frames["evaluation"]) / seconds,
        gaussians=frames["gaussians"],
        dimension=frames["dimension"],
        rounds=tuple(frames["rounds"]),
        feature_bytes=largest["artefacts"]["features.h5"] / seconds,
        text_bytes=text[0] / largest["trials"],
        memory=line_through([(run["recordings"], run["stages"]["lists and headers"]["peak"]) for run in runs]),
    )


@dataclass(frozen=True)
class Need:
    """What a stage needs: core-seconds, bytes that workers read and return, bytes that stay on disk, tasks.

    `serial` are seconds of one process that nothing else can take over.
    """

    core_seconds: float
    read: float = 0.0
    returned: float = 0.0
    kept: float = 0.0
    tasks: float = 0.0
    serial: float = 0.0


@dataclass(frozen=True)
class Amounts:
    """What there is of everything that stages work on: recordings, vectors, models and trials are counts."""

    seconds: float
    recordings: float
    ubm_frames: float
    frames: float  # of what has statistics
    vectors: float
    enrolment: float
    models: float
    trials: float


def amounts_of(corpus: Corpus, rates: Rates) -> Amounts:
    """Amounts of an experiment with all of a corpus."""
    frames, count = rates.frames(corpus), corpus.recordings
    return Amounts(
        corpus.hours * 3600, count, frames, frames, count, ENROLMENT * corpus.models, corpus.models, corpus.trials
    )


def needs_of(amounts: Amounts, rates: Rates) -> dict[str, Need]:
    """Needs of each stage.

    A second of audio is 32,000 bytes (16 bits at 16 kHz; FLAC halves it). Statistics of a recording are C (D + 1)
    numbers, a supervector or machine C D; a chunk's sums in the E-step are C (2 D + 1) numbers of 8 bytes. What workers
    return passes the scheduler and is written by the client.
    """
    count, vectors, models, trials = amounts.recordings, amounts.vectors, amounts.models, amounts.trials
    long = rates.gaussians * rates.dimension
    vector, statistics = long * FLOAT32, (long + rates.gaussians) * FLOAT32 * vectors
    audio, stored = 32_000 * amounts.seconds, rates.feature_bytes * amounts.seconds
    frame_bytes = rates.frames_per_second * amounts.seconds * rates.dimension * FLOAT32
    em_tasks = amounts.ubm_frames / chunk_frames(int(amounts.ubm_frames))
    em_sums = FLOAT64 * (2 * rates.dimension + 1) * (1 + sum(rates.rounds))
    em_read = (1 + len(rates.rounds)) * amounts.ubm_frames * rates.dimension * FLOAT32
    blocks = vectors / VECTORS_TASK
    cpu = {
        "lists and headers": count,
        "features": amounts.seconds,
        "post-processing": amounts.seconds,
        "UBM": amounts.ubm_frames,
        "statistics": amounts.frames,
        "supervectors": vectors,
        "SVM training": models,
        "scoring": trials,
        "evaluation": trials,
    }
    cost = {kind: rates.cpu[kind].at(work) for kind, work in cpu.items()}
    scores = (FLOAT64 + rates.text_bytes) * trials
    read = amounts.frames * rates.dimension * FLOAT32
    return {
        "audio": Need(0.0, kept=audio),
        "lists and headers": Need(cost["lists and headers"], read=4096 * count, tasks=count / 256),
        "features": Need(cost["features"], audio, stored, stored, tasks=count / FEATURES_TASK),
        "post-processing": Need(cost["post-processing"], stored, frame_bytes, frame_bytes, tasks=count / FRAMES_TASK),
        "UBM": Need(cost["UBM"], em_read, em_tasks * em_sums, tasks=(1 + len(rates.rounds)) * em_tasks),
        "statistics": Need(cost["statistics"], read, statistics, statistics, tasks=blocks),
        "supervectors": Need(cost["supervectors"], statistics, vector * vectors, vector * vectors, tasks=blocks),
        "SVM training": Need(
            cost["SVM training"],
            vector * amounts.enrolment,
            vector * models,
            vector * models,
            tasks=models / MODELS_TASK,
        ),
        "scoring": Need(cost["scoring"], vector * (vectors + models), FLOAT64 * trials, scores, tasks=blocks),
        "evaluation": Need(0.0, serial=cost["evaluation"]),
    }


@dataclass(frozen=True)
class Limits:
    """What all workers share, in bytes or tasks a second."""

    file_system: float
    scheduler: float
    tasks: float
    client: float


def wall_seconds(need: Need, cores: int, limits: Limits) -> tuple[float, str]:
    """Wall seconds of a stage, and what it waits for: stages overlap all that they do, so the slowest decides."""
    parts = {
        "cores": need.core_seconds / cores,
        "file system": (need.read + need.kept * bool(need.returned)) / limits.file_system,
        "scheduler, bytes": need.returned / limits.scheduler,
        "scheduler, tasks": need.tasks / limits.tasks,
        "client": need.returned / limits.client,
        "one process": need.serial,
    }
    slowest = max(parts, key=lambda name: parts[name])
    return parts[slowest], slowest


def check_rows(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Predict the largest run from the smaller ones, and compare: seconds, memory, disk."""
    *smaller, largest = runs
    rows: list[dict[str, Any]] = []

    def add(what: str, points: list[tuple[float, float]], work: float, measured: float) -> None:
        predicted = line_through(points).at(work)
        rows.append({"what": what, "predicted": predicted, "measured": measured, "ratio": predicted / measured})

    for kind, stage in largest["stages"].items():
        if kind != "all" and stage.get("work"):
            for seconds, unit in (("cpu", "CPU s"), ("wall", "wall s")):
                points = [(run["stages"][kind]["work"], run["stages"][kind][seconds]) for run in smaller]
                add(f"{kind}, {unit}", points, stage["work"], stage[seconds])
    for unit in ("CPU s", "wall s"):
        predicted = sum(row["predicted"] for row in rows if row["what"].endswith(unit))
        measured = sum(row["measured"] for row in rows if row["what"].endswith(unit))
        rows.append(
            {"what": f"all, {unit}", "predicted": predicted, "measured": measured, "ratio": predicted / measured}
        )
    count = largest["recordings"]
    peaks = [(run["recordings"], run["stages"]["all"]["peak"] / 1e6) for run in smaller]
    add("peak memory, MB", peaks, count, largest["stages"]["all"]["peak"] / 1e6)
    disk = [(run["recordings"], run["artefact_bytes"] / 1e6) for run in smaller]
    add("disk, MB", disk, count, largest["artefact_bytes"] / 1e6)
    return rows
