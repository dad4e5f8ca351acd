"""How much work each stage of the RSR2015 recipes has: in its own measure, in operations and in bytes.

The formulas count what must be computed, not what a program does: T frames of D dimensions, C Gaussians, N vectors of
C D dimensions, S background vectors, k nuisance directions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from benchmarks.stage_times import BETWEEN, END, START

N_BACKGROUND, N_EVALUATION, N_SENTENCES, N_SESSIONS, N_ENROLMENT = 50, 57, 30, 9, 3

# Stages by the name in the log: what belongs to one row of the table.
KINDS = (
    ("lists and headers", r"lists|check.*"),
    ("features", r"features"),
    ("post-processing", r"post-processing|frames"),
    ("UBM", r"ubm"),
    ("statistics", r"statistics of .*"),
    ("supervectors", r"supervectors of .*"),
    ("NAP", r"nap.*|projection.*|projected .*"),
    ("SVM training", r"models of .*"),
    ("total variability", r"total variability"),
    ("i-vectors", r"vectors of .*"),
    ("backends", r"backend of .*"),
    ("scoring", r"scores of .*"),
    ("evaluation", r"evaluation|report|results"),
)


def kind_of(stage: str) -> str:
    """Row of the table that a stage belongs to; its own name where there is none."""
    if stage in (START, BETWEEN, END):
        return "start, end, between"
    for kind, pattern in KINDS:
        if re.fullmatch(pattern, stage):
            return kind
    return stage


@dataclass(frozen=True)
class Protocol:
    """Counts of RSR2015's male protocol with so many sentences."""

    sentences: int

    @property
    def background(self) -> int:
        """Recordings of background speakers: the UBM's list."""
        return N_BACKGROUND * N_SESSIONS * self.sentences

    @property
    def enrolment(self) -> int:
        """Recordings that enrol models."""
        return N_EVALUATION * N_ENROLMENT * self.sentences

    @property
    def tests(self) -> int:
        """Recordings that are tested."""
        return N_EVALUATION * (N_SESSIONS - N_ENROLMENT) * self.sentences

    @property
    def recordings(self) -> int:
        """All of them."""
        return self.background + self.enrolment + self.tests

    @property
    def models(self) -> int:
        """A model for each evaluation speaker and sentence."""
        return N_EVALUATION * self.sentences

    @property
    def targets(self) -> int:
        """Trials TC."""
        return self.tests

    @property
    def trials(self) -> int:
        """Trials TC and IC: every model against all tests of its sentence."""
        return N_EVALUATION * self.tests


@dataclass(frozen=True)
class Frames:
    """Frames after the selection of speech, of the lists of a run, and what the run was configured with."""

    ubm: int
    evaluation: int
    background: int
    gaussians: int
    dimension: int
    rounds: tuple[int, ...]  # Gaussians in each round of EM
    background_size: int
    nap_rank: int


@dataclass(frozen=True)
class Work:
    """Work of one stage: `amount` in `measure`, which its growth is measured against; operations, where they count."""

    measure: str
    amount: float
    operations: float | None = None


def read_frames(output: Path, nap_rank: int) -> Frames:
    """Count the frames of a finished run from its artefacts."""
    from spkver.features import rasta_labels

    with h5py.File(output / "features.h5") as file:
        names = [name.decode() for name in file["ids"][:]]
        offsets, speech = file["offsets"][:], file["speech"][:].astype(bool)
    kept = {
        name: int(rasta_labels(speech[start:stop]).sum())
        for name, start, stop in zip(names, offsets, offsets[1:], strict=False)
    }
    with h5py.File(output / "gmm/ubm.h5") as file:
        rounds = tuple(int(count) for count in file.attrs["n_components"])
    back = output / "data/stat_back.h5"
    with h5py.File(back if back.is_file() else output / "data/stat_training.h5") as file:
        n_background, gaussians = file["stat0"].shape
        dimension = file["stat1"].shape[1] // gaussians
        background = float(file["stat0"][:].sum(dtype=np.float64))
    ubm = sum(count for name, count in kept.items() if int(name[1:4]) <= N_BACKGROUND)
    return Frames(
        ubm, sum(kept.values()) - ubm, round(background), gaussians, dimension, rounds, n_background, nap_rank
    )


def stage_work(protocol: Protocol, frames: Frames, audio_seconds: float) -> dict[str, Work]:
    """Work of each kind of stage in a run of `svm_gmm.py`: both systems, with NAP and without, together."""
    gaussians, dimension, long = frames.gaussians, frames.dimension, frames.gaussians * frames.dimension
    vectors = protocol.enrolment + protocol.tests + frames.background_size
    size, rank = frames.background_size, frames.nap_rank
    # E-step: log-densities 2 T C 2D and sums 2 T C 2D in each round; a round of EM has its own C; one Gaussian at first
    em = 8.0 * frames.ubm * dimension * (1 + sum(frames.rounds))
    # statistics: log-densities 2 T C 2D and first-order sums 2 T C D
    statistics = 6.0 * (frames.evaluation + frames.background) * gaussians * dimension
    # MAP: for each entry a division, two products, a sum, and the scale
    adaptation = 5.0 * vectors * long
    # NAP: half the Gram matrix, S^2 CD, and the directions from it, 2 k S CD
    nap = float(size**2 * long + 2 * rank * size * long)
    # projection x - N N^T x, 4 k CD a vector; machines: kernel against the background, 2 N S CD, weights, 2 M S CD
    project = 4.0 * rank * long
    machines = 2 * 2.0 * (protocol.enrolment + protocol.models) * size * long + 2 * float(size**2 * long)
    machines += project * (protocol.enrolment + size)
    # a trial is one inner product, 2 CD, in each of two systems; tests are projected for one of them
    scoring = 2 * 2.0 * protocol.trials * long + project * protocol.tests
    return {
        "lists and headers": Work("recordings", protocol.recordings),
        "features": Work("s of audio", audio_seconds),
        "post-processing": Work("s of audio", audio_seconds),
        "UBM": Work("frames", frames.ubm, em),
        "statistics": Work("frames", frames.evaluation + frames.background, statistics),
        "supervectors": Work("vectors", vectors, adaptation),
        "NAP": Work("vectors", size, nap),
        "SVM training": Work("models", 2 * protocol.models, machines),
        "scoring": Work("trials", 2 * protocol.trials, scoring),
        "evaluation": Work("trials", 2 * protocol.trials),
        "all": Work("s of audio", audio_seconds),
    }


def vector_work(
    protocol: Protocol, frames: Frames, audio_seconds: float, matrix: tuple[int, int], n_systems: int
) -> dict[str, Work]:
    """Work of each kind of stage in a run of `ivector.py`; `matrix` is the rank and the rounds of total variability."""
    gaussians, long, (rank, rounds) = frames.gaussians, frames.gaussians * frames.dimension, matrix
    packed = rank * (rank + 1) / 2
    # a segment's precision, sum n_c T_c' T_c of packed matrices, 2 C R(R+1)/2, what its frames project to, 2 CD R, and
    # its Cholesky factor with a solution, R^3 / 3 + 2 R^2
    segment = 2.0 * gaussians * packed + 2 * long * rank + rank**3 / 3 + 2 * rank**2
    # training adds the covariance, 2 R^3 / 3, and the sums of either side; once a round T_c' T_c and C solutions
    training = segment + 2 * rank**3 / 3 + 2.0 * gaussians * packed + 2 * long * rank
    once = long * rank**2 + gaussians * rank**3 / 3 + 2 * long * rank**2
    common = stage_work(protocol, frames, audio_seconds)
    kept = ("lists and headers", "features", "post-processing", "UBM", "statistics", "all")
    return {name: common[name] for name in kept} | {
        "total variability": Work("segments", protocol.background, rounds * (protocol.background * training + once)),
        "i-vectors": Work("segments", protocol.recordings, protocol.recordings * segment),
        "backends": Work("vectors", n_systems * protocol.background),
        "scoring": Work("trials", n_systems * protocol.trials, 2.0 * n_systems * protocol.trials * rank),
        "evaluation": Work("trials", n_systems * protocol.trials),
    }


def disk_needed(protocol: Protocol, gaussians: int, *, dimension: int = 60) -> dict[str, float]:
    """Bytes that a corpus and a run on it take, before there is either.

    Recordings of the simulated corpus last 2.6 s on average, 260 frames, of which about 7 in 10 are speech.
    """
    float32, long = 4, gaussians * dimension
    vectors = protocol.enrolment + protocol.tests + 200
    features = protocol.recordings * 260 * (13 * float32 + float32 + 1)
    rows = vectors * (2 * long + gaussians) * float32  # statistics and supervectors
    machines = 2 * protocol.models * long * float32
    # scores and key as SIDEKIT's matrices of models by tests (double, and two masks) and as text
    matrices = (2 * 9 + 3) * protocol.models * protocol.tests
    text = (2 * 50 + 2 * 45) * protocol.trials
    largest = protocol.tests * long * float32
    return {
        "corpus": protocol.recordings * 90_000.0,
        "artefacts": float(features + rows + machines + matrices + text),
        # an artefact in the making stands beside what it replaces; features are spooled; frames beyond the budget
        "temporary": float(largest + features + protocol.recordings * 180 * dimension * float32),
    }
