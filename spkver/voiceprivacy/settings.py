"""Configuration of a VoicePrivacy evaluation: sets, anonymiser, attackers, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from evaluation.uncertainty import MOST_RESAMPLES
from spkbase.errors import ConfigError
from spkver.anonymization import BUILT_IN, AnonymizerConfig, make_anonymizer
from spkver.attackers import CATALOGUE, attacker_name, default_attackers
from spkver.corpora import Sizes

ALL = "all"  # key of `attacker_settings` that holds for every attacker


@dataclass(frozen=True)
class TwinConfig(AnonymizerConfig):
    """The anonymiser of the sets that are missing, with its parameters, see `AnonymizerConfig`.

    Attributes
    ----------
    name : str
        By default the built-in anonymiser that the suffix names (_mcadams: mcadams), or none where it names none.
    training_level : str
        Whether each "utterance" or each "speaker" of a training set has a draw of its own; `level` is that of enrolment
        and trials. The challenges train ASV_eval^anon on speech anonymised by utterance.
    training_draws : int
        How many times a training set is anonymised, each time with other random numbers: what differs between two
        draws of one recording is the anonymiser's doing, and the attacker learns to look away from it. The draws
        beyond the first are made in OUTPUT/data also where the twin was taken as it is.
    trial_draws: int
        How many times trials are anonymised, each time with other random numbers: results are means over these draws.
        The further ones are made as those of training sets are.
    enrolment_draws: int
        How many times enrolment is anonymised: lazy- and semi-informed attackers enrol with all of these draws.
    shared_draws: bool
        At `level` "speaker", whether a speaker has the same draw in enrolment and trials, as if one and the same
        pseudo-speaker were published on both sides; else each side has draws of its own, as in VoicePrivacy.
    """

    name: str = ""
    training_level: Literal["utterance", "speaker"] = "utterance"
    training_draws: int = 4
    trial_draws: int = 3
    enrolment_draws: int = 4
    shared_draws: bool = False

    def __post_init__(self) -> None:
        if self.name:
            super().__post_init__()
        for key in ("training_draws", "trial_draws", "enrolment_draws"):
            _expect(f"anonymizer.{key}", getattr(self, key), "at least 1", getattr(self, key) >= 1)

    def named_by(self, suffix: str) -> TwinConfig | None:
        """Return it with a name, the one that the suffix gives where it has none; None where nothing is named.

        Raises
        ------
        ConfigError
            If a value is out of range, a function cannot be imported or a command lacks a place.
        DataError
            If a package is missing.
        """
        name = self.name or suffix.removeprefix("_")
        if not self.name and name not in BUILT_IN:
            if self.command:
                raise ConfigError("anonymizer.command is given without anonymizer.name=command")
            return None
        # the challenge's own numbers of a speaker do not depend on the side, so further draws do not either
        found = replace(self, name=name, shared_draws=self.shared_draws or self.seeding == "vpc2024")
        for side in ("training", "trials"):
            make_anonymizer(found.of(side))
        return found

    def of(self, side: str) -> AnonymizerConfig:
        """Return what anonymises a side: training, enrolment, trials or another."""
        values = {option.name: getattr(self, option.name) for option in fields(AnonymizerConfig)}
        return AnonymizerConfig(**{**values, "level": self.training_level if side == "training" else self.level})

    def draws(self, side: str) -> int:
        """Return how many times a side is anonymised."""
        counts = {"training": self.training_draws, "enrolment": self.enrolment_draws, "trials": self.trial_draws}
        return 1 if self.name == "none" else counts.get(side, 1)


@dataclass(frozen=True)
class EvaluationConfig:
    """Numbers and their intervals.

    Attributes
    ----------
    resamples : int
        Resamples of speakers for each interval; 0 for none.
    level : float
        Share of true values that intervals should cover.
    priors : tuple of str
        Target priors of the detection costs, as `spkver-eval metrics` has them.
    sizes : tuple of int
        Numbers of enrolled speakers at which linkability is given; empty: all of them.
    """

    resamples: int = 500
    level: float = 0.95
    priors: tuple[str, ...] = ("0.001", "0.01", "0.05", "0.5")
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        is_number = self.resamples != 1 and 0 <= self.resamples <= MOST_RESAMPLES
        _expect("evaluation.resamples", self.resamples, f"0, or 2 to {MOST_RESAMPLES:,}", is_number)
        _expect("evaluation.level", self.level, "a number between 0 and 1", 0 < self.level < 1)
        are_sizes = all(size >= 2 for size in self.sizes)
        _expect("evaluation.sizes", self.sizes, "whole numbers of at least 2", are_sizes)


@dataclass(frozen=True)
class UtilityConfig:
    """What is measured besides privacy: words and pitch on the trial utterances, emotions on sets of their own.

    Attributes
    ----------
    wer : bool
        Word and character error rates against ``text``, by PocketSphinx (extra [asr]; slow).
    hypotheses : str or None
        Name of a file in the data directories of transcripts by another recogniser, such as text_asr; then nothing
        is recognised here.
    f0 : bool
        Correlation of the pitch with that of the original (slow).
    emotion : tuple of str
        Data directories with ``utt2emo`` (and ``spk2fold``), such as IEMOCAP_test: how well emotions are recognised by
        machines that learnt from the original of other speakers.
    predictions : str or None
        Name of a file in these directories that holds what another recogniser made of them; then nothing is recognised
        here.
    recall : str
        Convention of the unweighted average recall, see `evaluation.utility.recalls`.
    """

    wer: bool = False
    hypotheses: str | None = None
    f0: bool = False
    emotion: tuple[str, ...] = ()
    predictions: str | None = None
    recall: Literal["default", "vpc2024", "pooled"] = "default"

    def __post_init__(self) -> None:
        are_once = len(set(self.emotion)) == len(self.emotion)
        _expect("utility.emotion", self.emotion, "names of data directories, each once", are_once)
        if self.predictions is not None and not self.emotion:
            text = "utility.predictions is given without utility.emotion"
            raise ConfigError(text, remedy="name the sets they are of")


@dataclass(frozen=True)
class ChallengeConfig:
    """What a VoicePrivacy Challenge adds.

    Attributes
    ----------
    name : str
        For the report.
    attacker : str
        One of `attackers`, whose equal error rates, averages and targets go under the challenge's name. It takes
        enrolment, trials and training sets anonymised once, as the challenge does: `training_draws`, `enrolment_draws`
        and `trial_draws` of 1. Empty: there is no ``result_for_rank``, and averages are of the strongest attackers.
    eer : str
        Its reading of the equal error rate, for the file in its own form; results are by `rocch`.
    weights : dict
        Share of each corpus for each sex in the averages; empty: every trial list counts alike.
    targets : tuple of float
        Minimum target EERs, in per cent.
    """

    name: str = ""
    attacker: str = ""
    eer: Literal["rocch", "interpolated", "kaldi", "speechbrain", "nearest"] = "speechbrain"
    weights: dict[str, float] = field(default_factory=dict)
    targets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for corpus, weight in self.weights.items():
            _expect(f"challenge.weights.{corpus}", weight, "a number above 0", weight > 0)


@dataclass(frozen=True)
class Config:
    """Everything that an evaluation depends on besides the data.

    Attributes
    ----------
    seed : int
        Of all that is drawn.
    datasets : tuple of str
        Sets such as libri_test; empty: all that the data directory holds.
    lists : tuple of str
        Trial lists of each set, by the end of their names: f, m, or mixed.
    training_sets : dict
        Set to its training set, where the rule does not hold: ``<name>_train``, else ``train-clean-360``.
    attackers : tuple of str
        Empty: all that can run on this machine (`default_attackers`), by whose names they are replaced.
        Names of `spkver.attackers.CATALOGUE`, or user-supplied ones (see docs/own_attackers.md), such as
        scores:FOLDER; a name that is none of these has one as `preset` in its settings.
    attacker_settings : dict
        Name of an attacker, or "all", to settings that differ from its preset's.
    duration_change : float
        How much longer or shorter an anonymised utterance may be, as a share of the original.
    simulation : Sizes
        Of the embedded SIMULATED set, for ``--data simulated``.
    weak_attacker_eer : float
        An attacker whose EER on original speech is above this is called weak in the checks.
    attackers_time_limit : float or None [s]
        How long a user-supplied function or command may take to learn and for each list of trials;
        None: half an hour, and as long as the speech lasts.
    """

    seed: int = 0
    datasets: tuple[str, ...] = ()
    lists: tuple[str, ...] = ("f", "m")
    training_sets: dict[str, str] = field(default_factory=dict)
    anonymizer: TwinConfig = field(default_factory=TwinConfig)
    attackers: tuple[str, ...] = ()
    attacker_settings: dict = field(default_factory=dict)
    duration_change: float = 0.1
    weak_attacker_eer: float = 0.05
    attackers_time_limit: float | None = None
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    utility: UtilityConfig = field(default_factory=UtilityConfig)
    challenge: ChallengeConfig = field(default_factory=ChallengeConfig)
    simulation: Sizes = field(default_factory=Sizes)

    def __post_init__(self) -> None:
        _expect("seed", self.seed, "a whole number of at least 0", self.seed >= 0)
        are_lists = self.lists == ("mixed",) or (bool(self.lists) and set(self.lists) <= {"f", "m"})
        _expect("lists", self.lists, "f and m, one of them, or mixed", are_lists)
        _expect("datasets", self.datasets, "names, each once", len(set(self.datasets)) == len(self.datasets))
        known = self.attackers
        if not self.attackers:  # what is recorded says what was run, wherever it is read
            known = tuple(CATALOGUE)
            object.__setattr__(self, "attackers", default_attackers())
        _expect("attackers", self.attackers, "names, each once", len(set(self.attackers)) == len(self.attackers))
        for key, value in self.attacker_settings.items():
            if key not in (ALL, *known):
                expected = ", ".join((ALL, *known))
                raise ConfigError(f"attacker_settings.{key}: there is no such attacker, expected one of {expected}")
            _expect(f"attacker_settings.{key}", value, "keys of its own", isinstance(value, Mapping))
        named = self.challenge.attacker
        draws = ("training_draws", "enrolment_draws", "trial_draws")
        if named and named not in (*self.attackers, *map(attacker_name, self.attackers)):
            expected = ", ".join(self.attackers)
            raise ConfigError(f"challenge.attacker is {named!r}: expected one of attackers, which are {expected}")
        several = [f"anonymizer.{name}=1" for name in draws if getattr(self.anonymizer, name) != 1]
        if named and several:
            text = f"challenge.attacker is {named!r}, and the challenge anonymises each recording once"
            raise ConfigError(text, remedy=f"set {', '.join(several)}, or leave challenge.attacker empty")
        limit = self.attackers_time_limit
        _expect("attackers_time_limit", limit, "seconds above 0, or none", limit is None or limit > 0)
        _expect("duration_change", self.duration_change, "a number above 0", self.duration_change > 0)


def _expect(key: str, value: Any, expected: str, is_right: bool) -> None:
    """Raise ConfigError unless the value of a key is right."""
    if not is_right:
        shown = list(value) if isinstance(value, tuple) else value
        raise ConfigError(f"{key} is {shown!r}: expected {expected}")
