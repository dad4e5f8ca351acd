"""RSR2015: configuration of the experiment and its lists.

Results of SIDEKIT's tutorial or of another run (statistics, supervectors, machines, vectors) can replace stages.
Systems with one vector per recording have training recordings and chains of steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.embeddings import read_embeddings
from evaluation.metrics import effective_prior
from evaluation.uncertainty import MOST_RESAMPLES
from spkbase.configuration import check_values
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.runs import Run
from spkver.backend import Chain, NapConfig, SvmConfig, check_chain, parse_chain
from spkver.backend import check_rank as check_nap_rank
from spkver.corpora import ListOptions, Rsr2015, SpeakerRanges, read_rsr2015, write_lists
from spkver.features import FeatureConfig, check_recordings, sidekit_files
from spkver.idmap import IdMap
from spkver.mixture import HiddenMarkovConfig, UbmConfig, check_ubm, find_stat_rows
from spkver.pipeline import machine_files, vector_rows
from spkver.vectors import (
    IVectorMethod,
    JointFactorConfig,
    MapConfig,
    TotalVariabilityConfig,
    check_joint_ranks,
    check_rank,
)

# Names of files in a recipe, in the tutorial, and in the tutorial for normalised supervectors.
_NAMES = {
    "statistics": ("stat_{name}.h5", "stat_rsr2015_{sex}_{name}.h5"),
    "supervectors": (
        "sv_{name}.h5",
        "sv_rsr2015_{sex}_{name}.h5",
        "sv_norm_rsr2015_{sex}_{name}.h5",
    ),
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# The lists on which NAP may be estimated, by the value of `nap.list`.
NAP_LISTS = {"background": "back", "nap": "nap"}


@dataclass(frozen=True)
class GivenConfig:
    """Results of SIDEKIT, or of another run, that replace stages; the UBM is given by `ubm.file`.

    Attributes
    ----------
    statistics, supervectors : str, optional
        Folder of StatServers, one for each list: ``stat_enroll.h5`` or ``stat_rsr2015_male_enroll.h5``, and likewise
        ``sv_...``.
    machines, machines_nap : str, optional
        Folder of SIDEKIT's machines, ``{model}.svm``, or a file of this package; without NAP, and with NAP.
    vectors : str, optional
        Vectors of all recordings in place of i-vectors, such as `spkver embed` writes.
    """

    statistics: str | None = None
    supervectors: str | None = None
    machines: str | None = None
    machines_nap: str | None = None
    vectors: str | None = None


def given_files(
    config: RecipeConfig, maps: dict[str, IdMap], takes: Sequence[str]
) -> dict[str, Any]:
    """Return the results that replace stages; their files must exist and hold the rows of the lists.

    Parameters
    ----------
    config : RecipeConfig
    maps : dict of str to IdMap
        The lists that the recipe uses, by name.
    takes : sequence of str
        The keys of `GivenConfig` that it uses.

    Returns
    -------
    dict
        The path of each given key; for statistics and supervectors, the file of each list.

    Raises
    ------
    DataError
        With all problems.
    """
    problems = Problems()
    files: dict[str, Any] = {}
    for key, given in vars(config.given).items():
        if given is None:
            continue
        if key not in takes:
            text = f"given.{key} has no place in this recipe, which takes {', '.join(takes)}"
            problems.note(ConfigError(text, remedy="leave it out"))
            continue
        with problems.noted():
            if key in _NAMES:
                files[key] = {
                    name: _stat_file(key, name, idmap, config) for name, idmap in maps.items()
                }
                continue
            # vectors are read together with the chains, which depend on their dimension
            files[key] = Path(given)
            if key.startswith("machines"):
                machine_files(files[key], sorted(set(maps["enroll"].models)))
    if config.given.statistics is not None and config.ubm.file is None:
        text = "given.statistics are of a mixture that is not given"
        problems.note(
            ConfigError(text, remedy="set ubm.file to the mixture that they were made with")
        )
    problems.raise_if_any()
    return files


def _stat_file(key: str, name: str, idmap: IdMap, config: RecipeConfig) -> Path:
    """Return the file of statistics or supervectors of a list, which must hold its rows."""
    folder = Path(getattr(config.given, key))
    sex = "male" if config.gender == "m" else "female"
    names = [form.format(name=name, sex=sex) for form in _NAMES[key]]
    for file in names:
        path = folder / file
        if path.is_file():
            find_stat_rows(path, idmap.models, idmap.segments)
            return path
    text = f"{key} of list {name!r} are not there: expected {' or '.join(names)}"
    raise DataError(text, file=folder, remedy=f"copy them there, or leave given.{key} out")


@dataclass(frozen=True)
class MachineConfig(SvmConfig):
    """Settings for training the machines, and whether they are also written as SIDEKIT's files.

    Attributes
    ----------
    files : bool
        Also write ``svm/<system>/<model>.svm``, which SIDEKIT reads.
    """

    files: bool = False

    @property
    def training(self) -> SvmConfig:
        """The settings for training the machines."""
        return SvmConfig(self.tolerance, self.cost, self.balanced)


@dataclass(frozen=True)
class IVectorsConfig:
    """Extraction of vectors, and training recordings of the matrix and the chains.

    Attributes
    ----------
    list : {"ubm", "background", "nap"}
        Training recordings of the matrix and the chains: all recordings of the background speakers, or those of one
        list.
    classes : {"speaker", "sentence"}
        Classes of the chains: speakers, or speakers with a sentence each, as models are.
    method : {"exact", "weights", "eigen"}
        Method of extraction: the posterior mean, or one of two fast approximations.
    """

    list: Literal["ubm", "background", "nap"] = "ubm"
    classes: Literal["speaker", "sentence"] = "speaker"
    method: IVectorMethod = "exact"


def vector_lists(lists: Rsr2015, config: IVectorsConfig) -> dict[str, IdMap]:
    """Return the lists training, enroll and test; the models of the training list are the classes of the chains."""
    whole = IdMap.from_pairs((segment.split("/")[0], segment) for segment in lists.ubm)
    training = {"ubm": whole, "background": lists.background, "nap": lists.nap}[config.list]
    if config.classes == "sentence":
        classes = [
            f"{segment.split('/')[0]}_{segment.rpartition('_')[2]}" for segment in training.segments
        ]
        training = IdMap.from_pairs(zip(classes, training.segments.tolist(), strict=True))
    return {"training": training, "enroll": lists.enrolment, "test": lists.test}


@dataclass(frozen=True)
class TrialsConfig:
    """Trial types (TC, TW, IC, IW) that count as target and as nontarget; the others are left out."""

    target: tuple[str, ...] = ("TC",)
    nontarget: tuple[str, ...] = ("IC",)


@dataclass(frozen=True)
class BackgroundConfig:
    """Background recordings: number drawn for the SVMs, and range of sentences, by default all of the part."""

    size: int = 200
    sentences: tuple[int, int] | None = None


@dataclass(frozen=True)
class ReportConfig:
    """Settings of the report.

    Attributes
    ----------
    p_target, c_miss, c_fa : float
        Operating point of the detection cost function.
    window : {"old", "new", "big", "sre10", "auto"}
        Window of the DET plot.
    formats : tuple of {"png", "pdf", "svg"}
        File formats of the plots.
    resamples : int, optional
        Resamples of the speakers for the 95 % intervals: 1000 by default, 200 above 100,000 trials; 0 for none.
    """

    p_target: float = 0.01
    c_miss: float = 10.0
    c_fa: float = 1.0
    window: str = "sre10"
    formats: tuple[str, ...] = ("png", "pdf", "svg")
    resamples: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.p_target < 1 or not self.c_miss > 0 or not self.c_fa > 0:
            raise ConfigError(
                "report.p_target must lie between 0 and 1, report.c_miss and report.c_fa above 0"
            )
        try:
            effective_prior(self.p_target, self.c_miss, self.c_fa)
        except DataError as error:
            raise ConfigError(f"report.p_target, report.c_miss, report.c_fa: {error}") from error
        check_values("report", self, choices={"window": ("old", "new", "big", "sre10", "auto")})
        if not set(self.formats) <= {"png", "pdf", "svg"} or not self.formats:
            raise ConfigError(
                f"report.formats is {list(self.formats)}: expected some of png, pdf, svg"
            )
        if self.resamples is not None and (
            self.resamples == 1 or not 0 <= self.resamples <= MOST_RESAMPLES
        ):
            raise ConfigError(
                f"report.resamples is {self.resamples}: expected 0, or 2 to {MOST_RESAMPLES:,}"
            )


@dataclass(frozen=True)
class SimulationConfig:
    """Size of the embedded simulated corpus, for ``--corpus simulated``."""

    speakers: int = 36
    sentences: int = 5
    sessions: int = 7
    seed: int = 0


@dataclass(frozen=True)
class ListsConfig:
    """Files of lists.

    Attributes
    ----------
    folder : str, optional
        A folder ``task`` of SIDEKIT's or of a recipe; missing lists come from the corpus.
    enrolment, trials, prompts : str, optional
        Key files (.trn, .ndx, and the words of part 3) to use instead of those found in the corpus.
    """

    folder: str | None = None
    enrolment: str | None = None
    trials: str | None = None
    prompts: str | None = None


@dataclass(frozen=True)
class RecipeConfig:
    """Everything that an RSR2015 experiment depends on.

    All random numbers depend on `seed`. `part` is the part of the corpus: 1 has sentences, 2 commands, 3 digits.
    `systems` names chains of steps on vectors (docs/backends.md).
    """

    seed: int = 0
    part: Literal[1, 2, 3] = 1
    gender: str = "m"
    partition: str = "eval"
    trials: TrialsConfig = field(default_factory=TrialsConfig)
    speakers: SpeakerRanges = field(default_factory=SpeakerRanges)
    background: BackgroundConfig = field(default_factory=BackgroundConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)
    nap: NapConfig = field(default_factory=NapConfig)
    svm: MachineConfig = field(default_factory=MachineConfig)
    report: ReportConfig = field(default_factory=ReportConfig)
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    lists: ListsConfig = field(default_factory=ListsConfig)
    given: GivenConfig = field(default_factory=GivenConfig)
    total_variability: TotalVariabilityConfig = field(default_factory=TotalVariabilityConfig)
    joint_factors: JointFactorConfig = field(default_factory=JointFactorConfig)
    ivectors: IVectorsConfig = field(default_factory=IVectorsConfig)
    hidden_markov: HiddenMarkovConfig = field(default_factory=HiddenMarkovConfig)
    systems: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}: expected a whole number of at least 0")
        self.chains()

    def chains(self) -> dict[str, Chain]:
        """Return the parsed chain of each of `systems`; systems of None are left out.

        Raises
        ------
        ConfigError
            With all problems: a name that no file can have, an invalid chain.
        """
        problems = Problems()
        chains = {}
        for name, spec in self.systems.items():
            if spec is not None and not _NAME.fullmatch(name):
                text = (
                    f"systems.{name} cannot name a file: expected letters, digits, '.', '_' and '-'"
                )
                problems.note(ConfigError(text))
            elif spec is not None:
                with problems.noted(f"systems.{name}: "):
                    chains[name] = parse_chain(spec)
        problems.raise_if_any(ConfigError)
        return chains


def named_lists(lists: Rsr2015, *names: str) -> dict[str, IdMap]:
    """Return lists of recordings by the names of their artefacts; by default all lists."""
    known = {
        "enroll": lists.enrolment,
        "back": lists.background,
        "nap": lists.nap,
        "test": lists.test,
    }
    return {name: known[name] for name in names or known}


def training_lists(config: RecipeConfig, lists: Rsr2015) -> dict[str, IdMap]:
    """Return the lists training, enroll and test of systems with one vector per recording, checked against their
    chains.

    Raises
    ------
    DataError
        With all problems: a list that cannot train the matrix or a chain, missing vectors.
    """
    problems = Problems()
    maps = vector_lists(lists, config.ivectors)
    chains = config.chains()
    rank = config.total_variability.rank
    file = config.given.vectors
    if not chains:
        problems.note(
            ConfigError(
                "systems is empty", remedy="name a chain, such as systems.cosine=centre,cosine"
            )
        )
    with problems.noted():
        if file is None:
            width = config.ubm.components * config.features.dimension
            check_rank(rank, n_segments=len(maps["training"]), width=width)
        else:  # precomputed vectors
            known = read_embeddings(file)
            rank = known.vectors.shape[1]
            for idmap in maps.values():
                with problems.noted():
                    vector_rows(Path(file), known, idmap)
    counts = list(map(len, maps["training"].rows_of_models().values()))
    for name, chain in chains.items():
        with problems.noted(f"systems.{name}: "):
            check_chain(chain, rank, counts)
    problems.raise_if_any()
    return maps


def speaker_lists(config: RecipeConfig, lists: Rsr2015) -> dict[str, IdMap]:
    """Return the lists training, enroll and test of joint factors, checked against their ranks.

    Raises
    ------
    ConfigError
        If the training list has too few speakers or sessions.
    """
    maps = vector_lists(lists, config.ivectors)
    width = config.ubm.components * config.features.dimension
    check_joint_ranks(config.joint_factors, maps["training"].models, width=width)
    return maps


def prepare(run: Run, corpus: Path, config: RecipeConfig) -> Rsr2015:
    """Read and check all lists and the header of every recording, then write the lists to `task/`.

    Raises
    ------
    DataError
        With all problems at once, before any long step.
    """
    with run.timed("lists"):
        options = ListOptions(
            gender=config.gender,
            partition=config.partition,
            part=config.part,
            target=config.trials.target,
            nontarget=config.trials.nontarget,
            speakers=config.speakers,
            background_size=config.background.size,
            nap_step=config.nap.step,
            nap_size=config.nap.size,
            sentences=config.background.sentences,
            seed=config.seed,
            folder=config.lists.folder,
            enrolment=config.lists.enrolment,
            trials=config.lists.trials,
            prompts=config.lists.prompts,
        )
        lists = read_rsr2015(corpus, options)
        problems = Problems()
        background = {}
        others = dict(lists.recordings)
        for name in lists.ubm:
            background[name] = lists.recordings[name]
            others.pop(name, None)
        seconds = float("inf")
        if config.features.files is None:
            seconds = check_recordings(
                background, config.features, work=run.work, problems=problems
            )
            check_recordings(others, config.features, work=run.work, problems=problems)
        else:
            sidekit_files(config.features.files, lists.recordings)
        sessions = named_lists(lists)[NAP_LISTS[config.nap.list]]
        with problems.noted():
            check_nap_rank(
                config.nap.rank, len(sessions), scatter=config.nap.scatter, speakers=sessions.models
            )
        if not problems.errors:  # the duration is that of all recordings
            with problems.noted():
                most_frames = seconds / config.features.shift
                check_ubm(config.ubm, dimension=config.features.dimension, most_frames=most_frames)
        problems.raise_if_any()
        write_lists(lists, run.path("task"))
    return lists
