"""Configuration of a VoicePrivacy evaluation: sets, anonymiser, attackers, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from evaluation.uncertainty import MOST_RESAMPLES
from spkbase.errors import ConfigError
from spkver.anonymization import BUILT_IN, AnonymizerConfig, make_anonymizer
from spkver.attackers import CATALOGUE, attacker_name, default_attackers, named_entry
from spkver.corpora import Sizes

ALL = "all"  # key of `attacker_settings` for settings of every GMM-based attacker


@dataclass(frozen=True)
class TwinConfig(AnonymizerConfig):
    """The anonymiser of missing sets and its parameters, see `AnonymizerConfig`.

    Attributes
    ----------
    name : str
        By default the built-in anonymiser that the suffix names (_mcadams: mcadams), if there is one.
    training_level : str
        Whether each "utterance" or each "speaker" of a training set has its own draw; `level` is for enrolment and
        trials. The challenges train ASV_eval^anon on speech anonymised by utterance.
    training_draws : int
        How many times a training set is anonymised, each time with other random numbers: two draws of a recording
        differ only by the anonymiser, so the attacker learns to ignore that difference. Further draws are made in
        OUTPUT/data even if the first one was given.
    trial_draws: int
        How many times trials are anonymised, each time with other random numbers: results are means over these draws.
        Further draws are made as for training sets.
    enrolment_draws: int
        How many times enrolment is anonymised: lazy- and semi-informed attackers enrol with all draws.
    shared_draws: bool
        At `level` "speaker", whether a speaker has the same draw in enrolment and trials, as if the same
        pseudo-speaker were published on both sides; otherwise each side has its own draws, as in VoicePrivacy.
    """

    name: str = ""
    training_level: Literal["utterance", "speaker"] = "utterance"
    training_draws: int = 2
    trial_draws: int = 3
    enrolment_draws: int = 4
    shared_draws: bool = False

    def __post_init__(self) -> None:
        if self.name:
            super().__post_init__()
        for key in ("training_draws", "trial_draws", "enrolment_draws"):
            _expect(f"anonymizer.{key}", getattr(self, key), "at least 1", getattr(self, key) >= 1)

    def named_by(self, suffix: str) -> TwinConfig | None:
        """Return the configuration with its name set, by default to the anonymiser of the suffix; None if neither is
        known.

        Raises
        ------
        ConfigError
            If a value is out of range, a function cannot be imported or a command lacks a placeholder.
        DataError
            If a required package is missing.
        """
        name = self.name or suffix.removeprefix("_")
        if not self.name and name not in BUILT_IN:
            if self.command:
                raise ConfigError("anonymizer.command is given without anonymizer.name=command")
            return None
        # the challenge's seeding gives a speaker the same draw on both sides, so further draws are shared, too
        completed = replace(
            self, name=name, shared_draws=self.shared_draws or self.seeding == "vpc2024"
        )
        for side in ("training", "trials"):
            make_anonymizer(completed.of(side))
        return completed

    def of(self, side: str) -> AnonymizerConfig:
        """Return the anonymiser of a side: training, enrolment, trials or another."""
        values = {option.name: getattr(self, option.name) for option in fields(AnonymizerConfig)}
        return AnonymizerConfig(
            **{**values, "level": self.training_level if side == "training" else self.level}
        )

    def draws(self, side: str) -> int:
        """Return how many times a side is anonymised."""
        counts = {
            "training": self.training_draws,
            "enrolment": self.enrolment_draws,
            "trials": self.trial_draws,
        }
        return 1 if self.name == "none" else counts.get(side, 1)


@dataclass(frozen=True)
class EvaluationConfig:
    """Metrics and their intervals.

    Attributes
    ----------
    resamples : int
        Resamples of speakers for each interval; 0 for none.
    level : float
        Confidence level of the intervals.
    priors : tuple of str
        Target priors of the detection costs, as in `spkver-eval metrics`.
    sizes : tuple of int
        Numbers of enrolled speakers at which linkability is given; empty: all numbers.
    utterances : tuple of int
        Numbers of recordings of one unknown speaker that attackers score at once, such as 1 and 5; 1 is among them.
    """

    resamples: int = 500
    level: float = 0.95
    priors: tuple[str, ...] = ("0.001", "0.01", "0.05", "0.5")
    sizes: tuple[int, ...] = ()
    utterances: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        is_number = self.resamples != 1 and 0 <= self.resamples <= MOST_RESAMPLES
        _expect("evaluation.resamples", self.resamples, f"0, or 2 to {MOST_RESAMPLES:,}", is_number)
        _expect("evaluation.level", self.level, "a number between 0 and 1", 0 < self.level < 1)
        are_sizes = all(size >= 2 for size in self.sizes)
        _expect("evaluation.sizes", self.sizes, "whole numbers of at least 2", are_sizes)
        are_numbers = min(self.utterances, default=0) == 1
        are_once = len(set(self.utterances)) == len(self.utterances)
        expected = "1 and whole numbers above it, each once"
        _expect("evaluation.utterances", self.utterances, expected, are_numbers and are_once)


@dataclass(frozen=True)
class UtilityConfig:
    """Measures of utility: words and pitch on the trial utterances, emotions on separate sets.

    Attributes
    ----------
    wer : bool
        Word and character error rates against ``text``, if it exists, and of anonymised against original speech (slow).
    recogniser : str
        whisper, whisper:PATH, pocketsphinx, or auto: the best that is installed; see `spkver.recognition.words`.
    hypotheses : str or None
        Name of a file in the data directories with transcripts by another recogniser, such as text_asr, which is then
        used instead; or a folder with a file for each set, such as exp/asr of the challenge's toolkit.
    f0 : bool
        Correlation between anonymised and original pitch (slow).
    emotion : tuple of str
        Data directories with ``utt2emo`` (and ``spk2fold``), such as IEMOCAP_test: emotions are recognised by machines
        that were trained on original speech of other speakers.
    predictions : str or None
        Name of a file in these directories with emotions by another recogniser, which are then used instead.
    recall : str
        Convention of the unweighted average recall, see `evaluation.utility.recalls`.
    """

    wer: bool = False
    recogniser: str = "auto"
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
            raise ConfigError(text, remedy="name the sets of the predictions")


@dataclass(frozen=True)
class ChallengeConfig:
    """Settings of a VoicePrivacy Challenge.

    Attributes
    ----------
    name : str
        The challenge's name in the report.
    attacker : str
        One of `attackers`, whose equal error rates, averages and targets are reported under the challenge's name. As in
        the challenge, enrolment, trials and training sets must be anonymised exactly once: `training_draws`,
        `enrolment_draws` and `trial_draws` must be 1. Empty: there is no ``result_for_rank``, and averages are over the
        strongest attackers.
    eer : str
        The challenge's definition of the equal error rate, for its own file; all other results use `rocch`.
    weights : dict
        Weight of each corpus and sex in the averages; empty: all trial lists have the same weight.
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
    """All settings of an evaluation.

    Attributes
    ----------
    seed : int
        Seed of all random numbers.
    datasets : tuple of str
        Sets such as libri_test; empty: all sets of the data directory.
    lists : tuple of str
        Trial lists of each set, by the endings of their names: f, m, or mixed.
    training_sets : dict
        Training set of each set, if it is not ``<name>_train``, ``train_english`` and so on for ``en`` (VoicePrivacy
        2026, track 2), or else ``train-clean-360``.
    attackers : tuple of str
        Names of `spkver.attackers.CATALOGUE`, or user-supplied attackers (see docs/own_attackers.md), such as
        scores:FOLDER; any other name needs one of these as `preset` in its settings. Empty: the default attackers, see
        `with_default_attackers`.
    attacker_settings : dict
        Settings that differ from the preset, by name of the attacker, or "all".
    simulation : Sizes
        Sizes of the built-in simulated speech, for ``--data simulated``.
    weak_attacker_eer : float
        An attacker whose EER on original speech is above this is called weak in the checks.
    attackers_time_limit : float or None [s]
        How long a user-supplied function or command may train, and score each trial list; None: half an hour plus the
        duration of the speech.
    """

    seed: int = 0
    datasets: tuple[str, ...] = ()
    lists: tuple[str, ...] = ("f", "m")
    training_sets: dict[str, str] = field(default_factory=dict)
    anonymizer: TwinConfig = field(default_factory=TwinConfig)
    attackers: tuple[str, ...] = ()
    attacker_settings: dict[str, Any] = field(default_factory=dict)
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
        _expect(
            "datasets",
            self.datasets,
            "names, each once",
            len(set(self.datasets)) == len(self.datasets),
        )
        _expect(
            "attackers",
            self.attackers,
            "names, each once",
            len(set(self.attackers)) == len(self.attackers),
        )
        object.__setattr__(self, "attacker_settings", self._settings_by_entry())
        if self.challenge.attacker:
            object.__setattr__(self, "challenge", self._challenge_by_entry())
        limit = self.attackers_time_limit
        _expect(
            "attackers_time_limit", limit, "seconds above 0, or none", limit is None or limit > 0
        )

    def _settings_by_entry(self) -> dict[str, Mapping[str, Any]]:
        """Return `attacker_settings`, checked, by the entries of `attackers`."""
        known = self.attackers or tuple(CATALOGUE)
        settings = {}
        for key, value in self.attacker_settings.items():
            entry = named_entry(key, known)
            if key == ALL:
                entry = ALL
            if entry is None or entry in settings:
                text = "another key has its settings" if entry else "there is no such attacker"
                raise ConfigError(
                    f"attacker_settings.{key}: {text}, expected one of {_shown((ALL, *known))}"
                )
            _expect(
                f"attacker_settings.{key}", value, "keys of its own", isinstance(value, Mapping)
            )
            settings[entry] = value
        return settings

    def _challenge_by_entry(self) -> ChallengeConfig:
        """Return `challenge`, checked, with its attacker as an entry of `attackers`."""
        challenge = self.challenge
        named = challenge.attacker
        if self.attackers:
            entry = named_entry(named, self.attackers)
            if entry is None:
                expected = _shown(self.attackers)
                raise ConfigError(
                    f"challenge.attacker is {named!r}: expected one of the attackers, which are {expected}"
                )
            challenge = replace(challenge, attacker=entry)
        draws = ("training_draws", "enrolment_draws", "trial_draws")
        several = [f"anonymizer.{name}=1" for name in draws if getattr(self.anonymizer, name) != 1]
        if several:
            text = (
                f"challenge.attacker is {named!r}, and the challenge anonymises each recording once"
            )
            raise ConfigError(
                text, remedy=f"set {', '.join(several)}, or leave challenge.attacker empty"
            )
        return challenge

    @property
    def recognises_words(self) -> bool:
        """Whether any attacker reads words that are recognised in this evaluation."""
        return any(
            settings.get("recognised", False) for settings in self.attacker_settings.values()
        )

    def with_words_in(self, folder: Path) -> Config:
        """Return the configuration with a folder in which attackers find recognised words."""
        settings = dict(self.attacker_settings)
        for name, values in settings.items():
            if values.get("recognised", False):
                settings[name] = {**values, "folder": str(folder)}
        return replace(self, attacker_settings=settings)

    def with_default_attackers(self) -> Config:
        """Return the configuration with the attackers that can run on this machine, unless it names attackers.

        Raises
        ------
        ConfigError
            If the challenge's attacker is not one of these.
        """
        if self.attackers:
            return self
        return replace(self, attackers=default_attackers())


def _shown(entries: Sequence[str]) -> str:
    """Return entries of ``attackers``, each with its name in tables if that differs."""
    shown = []
    for entry in entries:
        name = attacker_name(entry)
        if name == entry:
            shown.append(entry)
        else:
            shown.append(f"{entry} ({name})")
    return ", ".join(shown)


def _expect(key: str, value: Any, expected: str, is_right: bool) -> None:
    """Raise a ConfigError if the value of a key is not as expected."""
    if not is_right:
        shown = value
        if isinstance(value, tuple):
            shown = list(value)
        raise ConfigError(f"{key} is {shown!r}: expected {expected}")
