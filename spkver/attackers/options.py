"""What an attacker is made by, before it is known which kinds there are: the parts of its configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from spkbase.errors import ConfigError
from spkver.backend import SvmConfig
from spkver.features import FeatureConfig
from spkver.mixture import UbmConfig
from spkver.vectors import MapConfig

_CHOICES = {"scoring": ("exact", "bound", "linear"), "enrolment": ("pooled", "sessions")}


@dataclass(frozen=True)
class TrainingConfig:
    """Which part of the training set is used.

    Attributes
    ----------
    utterances : int or None
        At most so many utterances, spread evenly over the speakers and drawn with the seed; None takes all.
    session_seconds : float or None [s]
        Utterances are cut into sessions of about this length; shorter ones stay whole. Sessions are the background of
        the machines, what the projection is estimated on and the cohort. None: each utterance is a session.
    background : int or None
        A machine is trained against at most so many sessions, spread evenly over the speakers; None takes all.
    """

    utterances: int | None = 4000
    session_seconds: float | None = None
    background: int | None = 1000

    def __post_init__(self) -> None:
        for name in ("utterances", "background"):
            if getattr(self, name) is not None and getattr(self, name) < 2:
                raise ConfigError(f"training.{name} is {getattr(self, name)}: expected a whole number of at least 2")
        if self.session_seconds is not None and not self.session_seconds > 0:
            raise ConfigError(f"training.session_seconds is {self.session_seconds}: expected a number above 0")


@dataclass(frozen=True)
class ProjectionConfig:
    """What happens to supervectors after the training set's mean is subtracted.

    Attributes
    ----------
    rank : int
        Directions of the largest scatter within the training speakers that are removed (NAP); fewer where the
        sessions of the training set differ in fewer.
    lda : int
        Dimensions of a linear discriminant analysis, which then stands in place of NAP; 0 does without. Fewer where
        there are fewer speakers.
    lda_speakers : int
        A training set of fewer speakers has NAP, whatever `lda` says ...
    lda_utterances : float
        ... and one of fewer utterances for each speaker, all versions counted: pieces of one utterance do not show how
        a speaker's utterances differ.
    pca : int
        Principal directions that the discriminant analysis works in.
    shrinkage : float
        Share of the covariance within speakers that is replaced by a multiple of the identity.
    unit_length : bool
        Scale the result to length 1. The cosine attacker always does.
    """

    rank: int = 0
    lda: int = 0
    lda_speakers: int = 50
    lda_utterances: float = 2.0
    pca: int = 250
    shrinkage: float = 0.2
    unit_length: bool = True

    def __post_init__(self) -> None:
        for name, lowest in (("rank", 0), ("lda", 0), ("lda_speakers", 2), ("pca", 1)):
            if getattr(self, name) < lowest:
                raise ConfigError(
                    f"projection.{name} is {getattr(self, name)}: expected a whole number of at least {lowest}"
                )
        if not 0 <= self.shrinkage <= 1:
            raise ConfigError(f"projection.shrinkage is {self.shrinkage}: expected a number of 0 to 1")


@dataclass(frozen=True)
class NormConfig:
    """Normalisation of scores by a cohort of training speakers.

    Attributes
    ----------
    kind : str
        none, z (by the scores of cohort segments against the model), t (of cohort models against the segment) or s
        (mean of both).
    top : int or None
        Of each model and segment take the highest `top` cohort scores alone, all where there are fewer; with `s` this
        is the adaptive s-norm.
    models : str
        A cohort model for each "speaker" of the training set, or for each "session".
    segments : str
        A cohort segment for each "session", or all speech of a "speaker" as one.
    speakers : int
        With fewer training speakers there is no normalisation.
    apart : float
        Share of the training speakers that make the cohort and stay out of the background of the machines and of the
        projection; 0: all speakers serve as both.
    """

    kind: str = "none"
    top: int | None = None
    models: str = "speaker"
    segments: str = "session"
    speakers: int = 2
    apart: float = 0.0

    def __post_init__(self) -> None:
        sides = ("speaker", "session")
        for name, allowed in (("kind", ("none", "z", "t", "s")), ("models", sides), ("segments", sides)):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"norm.{name} is {getattr(self, name)!r}: expected one of {', '.join(allowed)}")
        if self.top is not None and self.top < 2:
            raise ConfigError(f"norm.top is {self.top}: expected a whole number of at least 2")
        if self.speakers < 2:
            raise ConfigError(f"norm.speakers is {self.speakers}: expected a whole number of at least 2")
        if not 0 <= self.apart < 1:
            raise ConfigError(f"norm.apart is {self.apart}: expected a number of at least 0 and below 1")


@dataclass(frozen=True)
class Options:
    """Everything that an attacker is made by; `AttackerConfig` knows which kinds there are.

    Attributes
    ----------
    name : str
        What its folder and its results are called.
    kind : str
        A name of `spkver.attackers.KINDS`.
    features, ubm, map, svm
        See `FeatureConfig`, `UbmConfig`, `MapConfig` and `SvmConfig`; of `map`, gmm-ubm uses the relevance alone.
    training : TrainingConfig
    projection : ProjectionConfig
        For gmm-svm and supervector-cosine.
    norm : NormConfig
    enrolment : str
        What several utterances of a model become: "pooled", one adaptation to all of them, or "sessions", a
        supervector each (positive examples of the machine; their mean for the cosine).
    scoring : str
        For gmm-ubm: "exact", the log-likelihood ratio of the frames; from the statistics alone "bound", the ratio at
        the posteriors of the universal background model, or "linear", its part of first order.
    """

    name: str = "gmm-ubm"
    kind: str = "gmm-ubm"
    features: FeatureConfig = field(default_factory=FeatureConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    ubm: UbmConfig = field(default_factory=UbmConfig)
    map: MapConfig = field(default_factory=MapConfig)
    projection: ProjectionConfig = field(default_factory=ProjectionConfig)
    svm: SvmConfig = field(default_factory=SvmConfig)
    norm: NormConfig = field(default_factory=NormConfig)
    enrolment: str = "pooled"
    scoring: str = "exact"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(allowed)}")
        if not self.name or self.name in (".", "..") or set(self.name) & set("/\\\0") or self.name != self.name.strip():
            raise ConfigError(f"name is {self.name!r}: expected the name of a folder")
