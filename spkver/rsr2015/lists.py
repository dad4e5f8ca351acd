"""RSR2015 part 1: configuration of the experiment and its lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.metrics import effective_prior
from evaluation.uncertainty import MOST_REPLICATES
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.runs import Run
from spkbase.work import Work
from spkver.backend import Chain, NapConfig, SvmConfig, check_rank
from spkver.corpora import ListOptions, Rsr2015, SpeakerRanges, read_rsr2015, write_lists
from spkver.features import FeatureConfig, check_recordings, sidekit_files
from spkver.idmap import IdMap
from spkver.mixture import Statistics, UbmConfig, check_ubm
from spkver.rsr2015.given import Given, GivenConfig, check_given
from spkver.rsr2015.vectors import IVectorsConfig, check_vectors, parse_systems, vector_lists
from spkver.vectors import JointFactorConfig, MapConfig, TotalVariabilityConfig, check_joint_ranks


@dataclass(frozen=True)
class TrialsConfig:
    """Trial types (TC, TW, IC, IW) that count as target and as nontarget; the others are left out."""

    target: tuple[str, ...] = ("TC",)
    nontarget: tuple[str, ...] = ("IC",)


@dataclass(frozen=True)
class BackgroundConfig:
    """Background recordings: how many are drawn for the SVMs, and which sentences background speakers give."""

    size: int = 200
    sentences: tuple[int, int] = (1, 30)


@dataclass(frozen=True)
class ReportConfig:
    """What the report shows.

    Attributes
    ----------
    p_target, c_miss, c_fa : float
        Operating point of the detection cost function.
    window : {"old", "new", "big", "sre10", "auto"}
        Of the DET plot.
    formats : tuple of {"png", "pdf", "svg"}
        Of the plots.
    replicates : int, optional
        Resamples of the speakers for the 95 % intervals: 1000 by default, 200 above 100,000 trials; 0 for none.
    """

    p_target: float = 0.01
    c_miss: float = 10.0
    c_fa: float = 1.0
    window: str = "sre10"
    formats: tuple[str, ...] = ("png", "pdf", "svg")
    replicates: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.p_target < 1 or not self.c_miss > 0 or not self.c_fa > 0:
            raise ConfigError("report.p_target must lie between 0 and 1, report.c_miss and report.c_fa above 0")
        try:
            effective_prior(self.p_target, self.c_miss, self.c_fa)
        except DataError as error:
            raise ConfigError(f"report.p_target, report.c_miss, report.c_fa: {error}") from error
        if self.window not in ("old", "new", "big", "sre10", "auto"):
            raise ConfigError(f"report.window is {self.window!r}: expected one of old, new, big, sre10, auto")
        if not set(self.formats) <= {"png", "pdf", "svg"} or not self.formats:
            raise ConfigError(f"report.formats is {list(self.formats)}: expected some of png, pdf, svg")
        if self.replicates is not None and (self.replicates == 1 or not 0 <= self.replicates <= MOST_REPLICATES):
            raise ConfigError(f"report.replicates is {self.replicates}: expected 0, or 2 to {MOST_REPLICATES:,}")


@dataclass(frozen=True)
class SimulationConfig:
    """Size of the embedded simulated corpus, for ``--corpus simulated``."""

    speakers: int = 36
    sentences: int = 5
    sessions: int = 7
    seed: int = 0


@dataclass(frozen=True)
class ListsConfig:
    """Folder of lists as files, SIDEKIT's ``task`` or a recipe's; those that are not there come from the corpus."""

    folder: str | None = None


@dataclass(frozen=True)
class Config:
    """Everything that an RSR2015 experiment depends on.

    `seed` is that of everything drawn; `systems` names chains of steps on vectors (docs/backends.md).
    """

    seed: int = 0
    gender: str = "m"
    partition: str = "eval"
    trials: TrialsConfig = field(default_factory=TrialsConfig)
    speakers: SpeakerRanges = field(default_factory=SpeakerRanges)
    background: BackgroundConfig = field(default_factory=BackgroundConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)
    nap: NapConfig = field(default_factory=NapConfig)
    svm: SvmConfig = field(default_factory=SvmConfig)
    report: ReportConfig = field(default_factory=ReportConfig)
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    lists: ListsConfig = field(default_factory=ListsConfig)
    given: GivenConfig = field(default_factory=GivenConfig)
    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)
    joint_factors: JointFactorConfig = field(default_factory=JointFactorConfig)
    ivectors: IVectorsConfig = field(default_factory=IVectorsConfig)
    systems: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}: expected a whole number of at least 0")
        self.chains()

    def chains(self) -> dict[str, Chain]:
        """Return the chain of each of `systems`, parsed."""
        return parse_systems(self.systems)


# The lists that NAP may be estimated on, by the value of `nap.list`.
NAP_LISTS = {"background": "back", "nap": "nap"}


def named_lists(lists: Rsr2015, *names: str) -> dict[str, IdMap]:
    """Return lists of recordings under the names that their artefacts carry; all of them by default."""
    known = {"enroll": lists.enrolment, "back": lists.background, "nap": lists.nap, "test": lists.test}
    return {name: known[name] for name in names or known}


def training_lists(config: Config, lists: Rsr2015) -> dict[str, IdMap]:
    """Return the lists training, enroll and test of systems of one vector a recording, checked against their chains.

    Raises
    ------
    DataError
        With all problems: a list that cannot train the matrix or a chain, vectors that are not there.
    """
    maps = vector_lists(lists, config.ivectors)
    width = config.ubm.components * config.features.dimension
    rank = config.total_variability.rank
    check_vectors(maps, config.chains(), rank=rank, width=width, file=config.given.vectors)
    return maps


def speaker_lists(config: Config, lists: Rsr2015) -> dict[str, IdMap]:
    """Return the lists training, enroll and test of joint factors, checked against their ranks.

    Raises
    ------
    ConfigError
        If the training list has too few speakers or sessions.
    """
    maps = vector_lists(lists, config.ivectors)
    training = maps["training"]
    nothing = np.zeros((len(training), 1))
    counted = Statistics(training.models, training.segments, nothing, nothing)
    check_joint_ranks(config.joint_factors, counted, width=config.ubm.components * config.features.dimension)
    return maps


def given_files(config: Config, maps: dict[str, IdMap], takes: Sequence[str]) -> Given:
    """Return what takes the place of stages, checked: the files are there and hold the rows of the lists.

    Parameters
    ----------
    config : Config
    maps : dict of str to IdMap
        The lists that the recipe uses, by name.
    takes : sequence of str
        The keys below `given` that it has a use for.
    """
    given = Given(config.given, maps, config.gender)
    check_given(given, takes=takes, ubm_file=config.ubm.file)
    return given


def prepare(run: Run, corpus: Path, config: Config) -> Rsr2015:
    """Read and check all lists and the header of every recording, then write the lists to `task/`.

    Raises
    ------
    DataError
        With all problems at once, before any long step.
    """
    with run.timed("lists"):
        lists = read_rsr2015(
            corpus,
            ListOptions(
                gender=config.gender,
                partition=config.partition,
                target=config.trials.target,
                nontarget=config.trials.nontarget,
                speakers=config.speakers,
                background_size=config.background.size,
                nap_step=config.nap.step,
                nap_size=config.nap.size,
                sentences=config.background.sentences,
                seed=config.seed,
                folder=config.lists.folder,
            ),
        )
        _check(lists, config, run.work)
        write_lists(lists, run.path("task"))
    return lists


def _check(lists: Rsr2015, config: Config, work: Work) -> None:
    """Check the header of every recording (or that its features are there), and the options against what there is."""
    problems = Problems()
    background = {name: lists.recordings[name] for name in lists.ubm}
    others = {name: path for name, path in lists.recordings.items() if name not in background}
    seconds = float("inf")
    if config.features.files is None:
        seconds = check_recordings(background, config.features, work=work, problems=problems)
        check_recordings(others, config.features, work=work, problems=problems)
    else:
        sidekit_files(config.features.files, lists.recordings)
    sessions = named_lists(lists)[NAP_LISTS[config.nap.list]]
    try:
        check_rank(config.nap.rank, len(sessions), scatter=config.nap.scatter, speakers=sessions.models)
    except ConfigError as error:
        problems.note(error)
    if not problems.errors:  # the duration is that of all recordings
        try:
            check_ubm(config.ubm, dimension=config.features.dimension, most_frames=seconds / config.features.shift)
        except DataError as error:
            problems.note(error)
    problems.raise_if_any()
