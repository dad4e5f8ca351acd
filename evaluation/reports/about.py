"""What results contain besides rates: how they were made, what was checked, and the utility of the speech."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.reports.rows import FLAT, KnownRow, Row, number
from evaluation.uncertainty import Interval

CHECK_LEVELS = ("error", "warning", "note", "ok")
"""Results of checks, the gravest first."""

PAIRING_STATES = ("exchanged", "doubtful", "identical", "not confirmed", "confirmed", "certain")
"""Whether recordings belong to their originals, the gravest state first; see `Pairing`."""

MEASURES = {
    "wer": ("Word error rate", True, True),
    "wer_to_original": ("Words recognised otherwise than in original speech", True, True),
    "cer": ("Character error rate", True, True),
    "uar": ("Unweighted average recall", False, True),
    "f0": ("F0 correlation", False, False),
}
"""Measures of utility: name, whether lower is better, and whether they are shown in percent."""

# --- how the results were made ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Anonymiser(KnownRow):
    """The anonymiser, and how many versions of each set it made.

    Attributes
    ----------
    name : str
        Name of the anonymiser.
    settings : mapping
        Its settings, as far as they are known.
    taken, made : tuple of str, optional
        Data directories with an existing anonymised twin, and directories anonymised by this run.
    training_draws : int, optional
        Number of anonymised versions of the training speech.
    trial_draws, enrolment_draws : dict of str to int, optional
        Numbers of anonymised versions of the trials and of the enrolment speech, by data set.
    """

    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)
    taken: tuple[str, ...] | None = None
    made: tuple[str, ...] | None = None
    training_draws: int | None = None
    trial_draws: dict[str, int] | None = None
    enrolment_draws: dict[str, int] | None = None


@dataclass(frozen=True)
class TriedChain(KnownRow):
    """A chain of steps that an attacker could have chosen as its backend.

    Attributes
    ----------
    chain : str
        The steps.
    details : mapping
        Its errors in each fold, or why it was not tried.
    mean_eer : float
        Mean equal error rate over the folds.
    """

    chain: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)
    mean_eer: float = math.nan


@dataclass(frozen=True)
class ChosenBackend(KnownRow):
    """The backend of an attacker that compares vectors, chosen by cross-validation over training speakers.

    Attributes
    ----------
    attacker, training : str
        Names of the attacker and of the training set.
    details : mapping
        Numbers of vectors, speakers and versions of the training set.
    folds : tuple of dict, optional
        Speakers and numbers of trials of each fold; empty if nothing was tried.
    chosen : str
        The chosen chain.
    why : str
        Why it was chosen.
    chains : tuple of TriedChain, optional
        All chains with their errors.
    network : str, optional
        Folder of the network that was trained for its vectors, see `TrainedNetwork`.
    """

    attacker: str = ""
    training: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)
    folds: tuple[dict[str, Any], ...] | None = None
    chosen: str = ""
    why: str = ""
    chains: tuple[TriedChain, ...] | None = None
    network: str | None = None

    @property
    def mean_eer(self) -> float:
        """Mean equal error rate of the chosen chain over the folds."""
        rates = [tried.mean_eer for tried in self.chains or () if tried.chain == self.chosen]
        return rates[0] if rates else math.nan


@dataclass(frozen=True)
class TrainedNetwork(KnownRow):
    """A network that was trained on a training set, as far as its trainer describes it.

    Attributes
    ----------
    folder : str
        Path of the network, relative to the results.
    training : str
        Name of the training set.
    attackers : tuple of str
        The attackers that compare its vectors.
    seed : int, optional
        Seed of the training.
    steps : int, optional
        Number of training steps of the network that is used, chosen on the held-out speakers; 0: training did not help.
    eer_before, eer_after : float
        Equal error rates of cosines of the held-out speakers, with the initial network and with the one that is used.
    speakers, versions : int, optional
        Numbers of speakers that it was trained on, and of versions of each recording.
    torch : str, optional
        Version of PyTorch.
    details : mapping
        Other information from the trainer, such as all error rates of the held-out speakers.
    """

    folder: str = ""
    training: str = ""
    attackers: tuple[str, ...] = ()
    seed: int | None = None
    steps: int | None = None
    eer_before: float = math.nan
    eer_after: float = math.nan
    speakers: int | None = None
    versions: int | None = None
    torch: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)


@dataclass(frozen=True)
class Estimation(Row):
    """How well the anonymiser's parameter is estimated from recordings, which lets attackers invert it.

    Attributes
    ----------
    background : str
        The anonymised set that the estimator was trained on.
    anonymizer, parameter, known_by : str
        The anonymiser, its parameter, and whether a record or pairs of recordings revealed it.
    recordings, speakers : float
        Numbers of recordings and speakers.
    kernel, cues : str
        The kernel, and the cues of the recordings.
    details : mapping
        Range of the parameter, draws of each recording, folds and settings of the kernel.
    rmse : float
        Root mean square error of the estimated parameter.
    spread : float
        Standard deviation of the parameter.
    """

    background: str = ""
    anonymizer: str = ""
    parameter: str = ""
    known_by: str = ""
    recordings: float = math.nan
    speakers: float = math.nan
    kernel: str = ""
    cues: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, metadata=FLAT)
    rmse: float = math.nan
    spread: float = math.nan


@dataclass(frozen=True)
class AttackersRun(Row):
    """The attackers.

    Attributes
    ----------
    names : tuple of str
        Attackers with results.
    of_others : tuple of str
        User-supplied attackers.
    networks : tuple of str, optional
        Attackers with a neural network.
    undoing : tuple of str
        Attackers that invert the anonymisation.
    explained : dict of str to str
        A line about each attacker.
    text : str
        Number of attackers, and what it means for the result.
    """

    names: tuple[str, ...] = ()
    of_others: tuple[str, ...] = ()
    networks: tuple[str, ...] | None = None
    undoing: tuple[str, ...] = ()
    explained: dict[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class Failure(Row):
    """An attacker that has no scores for a list of trials.

    Attributes
    ----------
    attacker, dataset, gender, scenario : str
        The condition.
    scores : str
        File that the scores should be in.
    reason : str
        Message of the error.
    """

    attacker: str
    dataset: str
    gender: str
    scenario: str
    scores: str
    reason: str

    @property
    def where(self) -> str:
        """Data set, sex and scenario."""
        return f"{self.dataset} {self.gender} {self.scenario}"


@dataclass(frozen=True)
class WeightedSum(Row):
    """The affine map of several scores to their fusion.

    Attributes
    ----------
    weights : dict of str to float
        Weight of each attacker.
    offset : float
        Added to the weighted sum.
    prior : float
        Target prior of the training objective.
    ridge : float
        Strength of the regularisation.
    """

    weights: dict[str, float] = field(default_factory=dict)
    offset: float = math.nan
    prior: float = math.nan
    ridge: float = math.nan


@dataclass(frozen=True)
class CrossValidated(Row):
    """Errors in cross-validation over background speakers.

    Attributes
    ----------
    cllr : float
        Cost of log-likelihood ratios, in bits.
    eer : float
        Equal error rate.
    """

    cllr: float = math.nan
    eer: float = math.nan


@dataclass(frozen=True)
class FusionWeights(Row):
    """Weights of a fusion of attackers, learnt from trials of background speakers.

    Attributes
    ----------
    file : str
        File that holds them.
    scores : tuple of str
        Files of scores that were computed with them.
    format : str
        Name of the file's format.
    attacker, training, kind : str
        The fusion, the training set, and whether its trials are original or anonymised.
    left_out : dict of str to str
        Attackers that could not be fused, and why.
    weights : WeightedSum
        The weights.
    cross_validated : CrossValidated
        Errors of the fusion.
    alone : dict of str to CrossValidated
        Errors of each attacker.
    ridges, folds : tuple of dict
        Errors by the strength of the regularisation, and in each fold.
    """

    file: str = ""
    scores: tuple[str, ...] = ()
    format: str = ""
    attacker: str = ""
    training: str = ""
    kind: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    weights: WeightedSum = field(default_factory=WeightedSum)
    cross_validated: CrossValidated = field(default_factory=CrossValidated)
    alone: dict[str, CrossValidated] = field(default_factory=dict)
    ridges: tuple[dict[str, Any], ...] = ()
    folds: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class LastRun(Row):
    """The last run.

    Attributes
    ----------
    date : str
        End of the run, ISO 8601.
    command : str
        The command line.
    """

    date: str = ""
    command: str = ""


@dataclass(frozen=True)
class Seeds(Row):
    """Seeds of the random numbers.

    Attributes
    ----------
    run, bootstrap : int, optional
        Seeds of the attackers and of the intervals.
    anonymiser : int, optional
        Seed of the anonymiser, if it is known.
    """

    run: int | None = None
    bootstrap: int | None = None
    anonymiser: int | None = None


@dataclass(frozen=True)
class IntervalSettings(Row):
    """Confidence level of the intervals, and the number of resamples; None if unknown."""

    level: float | None = None
    resamples: int | None = None


@dataclass(frozen=True)
class ChallengeSettings(Row):
    """Name, attacker and minimum target error rates (in percent) of a challenge, and its weights of corpora."""

    name: str = ""
    attacker: str = ""
    targets: tuple[float, ...] = ()
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSettings(Row):
    """The part of a run's configuration that reports read."""

    seed: int = 0
    evaluation: IntervalSettings = field(default_factory=IntervalSettings)
    challenge: ChallengeSettings = field(default_factory=ChallengeSettings)


# --- figures of a challenge -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol(KnownRow):
    """Attacker and protocol of the challenge's figures; empty if ``challenge.attacker`` names none.

    Attributes
    ----------
    attacker, level : str
        The attacker with its level of knowledge.
    reading : str
        Definition of the equal error rate.
    draws, seeding : str
        Number of anonymised versions of the trials, and how the anonymiser was seeded.
    """

    attacker: str | None = None
    level: str | None = None
    reading: str | None = None
    draws: str | None = None
    seeding: str | None = None


@dataclass(frozen=True)
class Average(KnownRow):
    """An average over lists of trials, as used in the rankings of challenges.

    Attributes
    ----------
    dataset, split, scenario : str
        The corpus (or "weighted"), the part and the scenario.
    eer_percent : float
        Average equal error rate in percent.
    attacker : str
        The attacker, or "strongest".
    reading : str
        Definition of the equal error rate.
    low_percent, high_percent : float
        Averages of the ends of the intervals.
    targets_reached : tuple of float
        Minimum targets that are reached, in percent.
    """

    dataset: str
    split: str
    scenario: str
    eer_percent: float = math.nan
    attacker: str = "strongest"
    reading: str = "rocch"
    low_percent: float = math.nan
    high_percent: float = math.nan
    targets_reached: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """The corpus and the part."""
        return f"{self.dataset} {self.split}".strip()

    @property
    def eer(self) -> Interval:
        """The average as a fraction with its interval."""
        return Interval(self.eer_percent / 100, self.low_percent / 100, self.high_percent / 100)


# --- checks, utility and voices ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding(Row):
    """Result of a check.

    Attributes
    ----------
    level : {"error", "warning", "note", "ok"}
        An error forbids a verdict.
    check : str
        Name of the check.
    text : str
        The result in words.
    """

    level: str = field(metadata={"schema": {"enum": CHECK_LEVELS}})
    check: str
    text: str


@dataclass(frozen=True)
class Pairing(Row):
    """Whether the recordings of an anonymised directory belong to the originals with the same ids.

    A directory that several data sets use has a row with equal figures for each of them.

    Attributes
    ----------
    directory : str
        The anonymised directory.
    dataset : str
        The data set that uses it.
    part : {"enrolment", "trials", "training"}
        Use of the directory.
    gender : str
        "f", "m" or "all" for trials; otherwise empty.
    compared : int
        Number of recordings that were compared with all originals among them.
    own, elsewhere : int
        Recordings that clearly resemble an original of their own speaker, or of another speaker. The others are
        undecided.
    own_text, other_text : int
        Recordings that clearly resemble an original of their own text, or of another text, by any speaker.
    share : Interval
        Share of the recordings that belong to other names, in JSON with low and high; unknown if it is not confirmed
        that any belong to their own.
    speaker : str
        The speaker with the largest share of recordings elsewhere; empty if there are none.
    speaker_own, speaker_elsewhere : int
        Recordings of this speaker.
    state : {"exchanged", "doubtful", "identical", "not confirmed", "confirmed", "certain"}
        "exchanged" forbids a verdict, "doubtful" is a warning. "identical": the recordings of different speakers are
        the same file, so that it does not matter whose they are. "certain": this run anonymised them.
    reason : str
        Why it has this state, in a sentence.
    sources : tuple of str
        What was compared: "cepstra", "levels", "voices" or "words".
    examples : tuple of str
        Recordings elsewhere and the originals that they resemble, as "a = b".
    """

    directory: str
    dataset: str = ""
    part: str = field(
        default="trials", metadata={"schema": {"enum": ("enrolment", "trials", "training")}}
    )
    gender: str = ""
    compared: int = 0
    own: int = 0
    elsewhere: int = 0
    own_text: int = 0
    other_text: int = 0
    share: Interval = field(default_factory=Interval, metadata=FLAT)
    speaker: str = ""
    speaker_own: int = 0
    speaker_elsewhere: int = 0
    state: str = field(default="not confirmed", metadata={"schema": {"enum": PAIRING_STATES}})
    reason: str = ""
    sources: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class UtilityRate(KnownRow):
    """A measure of utility on one kind of speech.

    Attributes
    ----------
    value : Interval
        The value with its interval.
    n_utterances : int, optional
        Number of utterances.
    recogniser, normaliser, tracker, convention, learnt_on : str
        How it was measured, where that applies.
    n_undefined, n_speakers : int, optional
        Numbers of utterances without a value, and of speakers.
    chance : float
        Value expected by chance.
    method, note : str
        Method of the interval, and a note on the value.
    folds, recalls : dict of str to float, optional
        Values of each fold, and the recall of each emotion.
    confusions : dict, optional
        Counts of recognised emotions, by true emotion.
    warning : str, optional
        What makes the value doubtful, in a sentence.
    """

    value: Interval = field(default_factory=Interval, metadata=FLAT)
    method: str | None = None
    note: str | None = None
    convention: str | None = None
    chance: float = math.nan
    n_speakers: int | None = None
    n_utterances: int | None = None
    n_undefined: int | None = None
    tracker: str | None = None
    folds: dict[str, float] | None = None
    recalls: dict[str, float] | None = None
    confusions: dict[str, Any] | None = None
    recogniser: str | None = None
    normaliser: str | None = None
    learnt_on: str | None = None
    warning: str | None = None


@dataclass(frozen=True)
class UtilityFigure:
    """A measure of utility, and where it was measured.

    Attributes
    ----------
    measure : str
        Name, such as ``wer``, ``cer``, ``uar``, ``f0`` and ``wer_to_original``, the share of words that are
        recognised differently from original speech.
    names : tuple of str
        Data set, then ``original`` or ``anonymised``; results of other programs have other names, or none.
    rate : UtilityRate
        The value.
    """

    measure: str
    names: tuple[str, ...]
    rate: UtilityRate

    @property
    def kind(self) -> str:
        """The kind of speech: ``original``, or ``anonymised`` if nothing else is stated."""
        return "original" if "original" in self.names else "anonymised"

    @property
    def dataset(self) -> str:
        """The data set; empty if none is stated."""
        others = [name for name in self.names if name not in ("original", "anonymised")]
        return others[-1] if others else ""


def utility_from(block: Any, *names: str) -> Iterator[UtilityFigure]:
    """Yield the figures of nested mappings by measure, data set and kind of speech, in any order below the measure."""
    if not isinstance(block, Mapping):
        yield UtilityFigure(names[0], names[1:], UtilityRate(Interval(number(block))))
    elif "value" in block:
        yield UtilityFigure(names[0], names[1:], UtilityRate.from_dict(block))
    else:
        for name, inner in block.items():
            yield from utility_from(inner, *names, name)


def utility_to_dict(figures: Iterable[UtilityFigure]) -> dict[str, Any]:
    """Return figures as mappings by measure, data set and kind of speech."""
    nested: dict[str, Any] = {}
    for figure in figures:
        block = nested
        names = (figure.measure, *figure.names)
        *outer, last = names
        for name in outer:
            block = block.setdefault(name, {})
        block[last] = figure.rate.to_dict()
    return nested


@dataclass(frozen=True)
class VoiceMatrix(Row):
    """Mean similarities of speakers.

    Attributes
    ----------
    speakers : tuple of str
        The speakers of rows and columns.
    n_trials : int
        Number of trials.
    values : tuple of tuple of float
        The similarities.
    """

    speakers: tuple[str, ...] = ()
    n_trials: int = 0
    values: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Voices(KnownRow):
    """Similarity of voices before and after anonymisation.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        The condition.
    calibration, calibration_is : str
        How scores were calibrated: name and description.
    n_speakers : int, optional
        Number of speakers.
    distinctiveness : dict of str to Interval, optional
        Diagonal dominance of the matrices.
    deid : Interval, optional
        De-identification: 1 if nobody is recognised.
    gain_of_voice_distinctiveness : Interval, optional
        Gain in dB.
    notes : tuple of str
        Notes on the numbers.
    matrices : dict of str to VoiceMatrix, optional
        Similarities between original voices (oo), original and anonymised ones (oa), and anonymised ones (aa).
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    calibration: str | None = None
    calibration_is: str | None = None
    n_speakers: int | None = None
    distinctiveness: dict[str, Interval] | None = None
    deid: Interval | None = None
    gain_of_voice_distinctiveness: Interval | None = None
    notes: tuple[str, ...] = ()
    matrices: dict[str, VoiceMatrix] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the de-identification is known."""
        return self.deid is not None and self.deid.known

    @property
    def gain(self) -> Interval:
        """Gain of voice distinctiveness in dB; NaN if unknown."""
        return self.gain_of_voice_distinctiveness or Interval()
