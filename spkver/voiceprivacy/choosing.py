"""The attackers that a configuration chooses: their names, what each is made of, and features that fit recordings.

**Who attacked, in the words of the report: each attacker in a line, and what kinds of attackers there were.**

**How long attackers will take, told before they start.**

**At which sampling rate they hear.** Recordings that are compared with each other are heard at one rate. An attacker
learns from a training set and scores all that is tested against it. So the rates that count together are those of a
training set and of the enrolment and trials of its sets, original and anonymised: an anonymiser that leaves less of the
band than it got leaves the attacker no more of the original, and nobody is told apart by the band.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.reports import TRIAL_BY_TRIAL
from spkbase.configuration import merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.showing import one_line
from spkbase.work import chunks, ordered_map
from spkver.anonymization import AnonymizerConfig, make_anonymizer
from spkver.attackers import (
    PRESETS,
    Attacker,
    Context,
    Wanted,
    absent_attackers,
    attacker_name,
    cost_of,
    default_attackers,
    find_row,
    is_outside,
    wanted_attacker,
)
from spkver.audio import audio_header
from spkver.features import FeatureConfig, values_for_rates
from spkver.voiceprivacy.sets import Heard, Sets
from spkver.voiceprivacy.settings import ALL, Config, TwinConfig

Json = dict[str, Any]
Chosen = Attacker | Wanted
"""An attacker as it is configured: one that is ready, or one that needs a place to work at."""


_BY_FEATURES = ("ivector", "supervector")  # attackers of the catalogue that have features, as the presets do
_ON_TOP = re.compile(r"(-adapted|-single-test|-aligned|-undone)+$")


def chosen_attackers(config: Config, rates: Collection[int] = ()) -> list[Chosen]:
    """Return the attackers, in their order.

    Parameters
    ----------
    config : Config
    rates : collection of int [Hz]
        Of the recordings that they hear; features that are not set otherwise are fitted to them.

    Raises
    ------
    ConfigError
        If a preset is unknown, a door does not open, two have one name, or with the problems of the settings.
    """
    chosen, named = [], dict[str, str]()
    for entry in config.attackers:
        settings = dict(config.attacker_settings.get(entry, {}))
        name, preset = attacker_name(entry), str(settings.pop("preset", entry))
        if name in named:
            text = f"attackers: {named[name]!r} and {entry!r} would both be called {name}"
            remedy = f"give one a name: attackers=[..., mine] and attacker_settings.mine.preset={entry!r}"
            raise ConfigError(text, remedy=remedy)
        named[name] = entry
        if is_outside(preset) and find_row(preset) is None and (more := settings.keys() - {"level"}):
            text = f"attacker_settings of {entry}: {', '.join(sorted(more))}"
            raise ConfigError(f"{text}: an attacker of one's own has level alone")
        shared = config.attacker_settings.get(ALL, {})
        if fitting := fitting_features(config, name, preset, rates):
            shared = merged({"features": fitting}, shared)
        heard, limit = config.utility.hypotheses, config.attackers_time_limit
        context = Context("", "", config.seed, shared, config.attacker_settings, heard, limit)
        chosen.append(wanted_attacker(preset, name, settings, context))
    return chosen


def fitting_features(config: Config, name: str, preset: str, rates: Collection[int]) -> dict[str, object]:
    """Return what fits an attacker's features to recordings of some sampling rates, see `values_for_rates`.

    Raises
    ------
    ConfigError
        If its settings name frequencies that such recordings do not have.
    """
    base = _ON_TOP.sub("", preset)  # whose settings hold for what works on top of it, too
    if base not in (*PRESETS, *_BY_FEATURES):
        return {}
    layers = {key: config.attacker_settings.get(key, {}).get("features") for key in (ALL, base, name)}
    layers = {key: values for key, values in layers.items() if isinstance(values, Mapping)}
    values = merged(*layers.values())
    fitting = values_for_rates(values, rates)
    rate, high = fitting.get("rate"), values.get("high_frequency")
    if isinstance(rate, int) and isinstance(high, int | float) and high > rate / 2:
        part = f"attacker_settings.{[key for key in layers if 'high_frequency' in layers[key]][-1]}.features"
        raise ConfigError(
            f"{part}.high_frequency is {high:g} Hz: recordings at {rate} Hz go up to {rate / 2:g} Hz",
            remedy=f"leave it out, or --set {part}.rate={FeatureConfig.rate} to have recordings resampled to that rate",
        )
    return fitting


def attacker_specs(config: Config) -> dict[str, str]:
    """Return of each attacker, by its name in folders and tables, the preset or what a door opens to."""
    settings = config.attacker_settings
    return {attacker_name(entry): str(settings.get(entry, {}).get("preset", entry)) for entry in config.attackers}


# --- what anonymises --------------------------------------------------------------------------------------------------


@one_line
@dataclass(frozen=True)
class Anonymizers:
    """What anonymises enrolment and trials, and what anonymises training sets, and how many times each side.

    `by_suffix` tells that nobody named the anonymiser: it goes by the suffix of the sets. With `shared_draws` a speaker
    has one draw on all sides, at level "speaker".
    """

    tested: AnonymizerConfig
    training: AnonymizerConfig
    draws: Mapping[str, int]
    by_suffix: bool = False
    shared_draws: bool = False

    def of(self, side: str) -> AnonymizerConfig:
        """Return what anonymises a side: training, or another."""
        return self.training if side == "training" else self.tested


def find_anonymizers(config: TwinConfig, suffix: str) -> Anonymizers | None:
    """Return the anonymisers that are configured, or that the suffix names; None where there is none.

    Raises
    ------
    ConfigError
        If a value is out of range, a function cannot be imported or a command lacks a place.
    DataError
        If a package is missing.
    """
    tested, training = (config.resolved(suffix, training=of_training) for of_training in (False, True))
    if tested is None or training is None:
        if config.command:
            raise ConfigError("anonymizer.command is given without anonymizer.name=command")
        return None
    for settings in (tested, training):
        make_anonymizer(settings)
    draws = {"training": config.training_draws, "enrolment": config.enrolment_draws, "trials": config.trial_draws}
    if tested.name == "none":
        draws = dict.fromkeys(draws, 1)
    # the challenge's own numbers of a speaker know no side, so further draws know none either
    return Anonymizers(tested, training, draws, not config.name, config.shared_draws or config.seeding == "vpc2024")


# --- what attackers are -----------------------------------------------------------------------------------------------

_CLASSIC = {
    "gmm-ubm": "the log-likelihood ratio of a mixture adapted to the speaker and one of all voices",
    "gmm-svm": "a support vector machine for each speaker, on the adapted means of a mixture (supervectors)",
    "gmm-svm-cms": "the support vector machines of gmm-svm, on features whose mean over each recording is taken off",
    "supervector-cosine": "the angle between projected supervectors of the two recordings",
}
_WORDS = {
    **_CLASSIC,
    "supervector": "the angle between the adapted means of a mixture (supervectors)",  # comes with an ending alone
    "fusion": "the scores of all other attackers together, weighed by logistic regression on background speakers",
    f"fusion-{TRIAL_BY_TRIAL}": "the scores of those attackers alone that score trial by trial",
    "fusion-undone": "the same with the scores of those that undo or align, which learn from draws of the background",
    "scores": "scores made elsewhere",
    "vectors": "vectors made elsewhere, by a network as a rule",
    "adapted": "vectors made elsewhere, by a network as a rule, adapted to the trials",
}
_ENDINGS = {
    "-undone": "with the anonymisation estimated and turned back first, learnt from draws of the background",
    "-adapted": "adapted to the trials: each side without its mean, what spreads the recordings of a speaker narrowed",
    "-single-test": "adapted to the enrolled speakers alone, each tested recording on its own",
    "-aligned": "with anonymised vectors turned into the space of the original ones, learnt from the background",
}
_NETWORKS = ("campplus", "ge2e", "onnx", "vectors", "adapted")


def attackers_run(config: Config, conditions: Sequence[Mapping[str, Any]] = ()) -> Json:
    """Say which attackers were run, what each is, and that their figure is an upper bound of privacy.

    Parameters
    ----------
    config : Config
    conditions : sequence of mapping, optional
        Entries of ``results.json``: an attacker without one was not run. All were, without any.

    Returns
    -------
    dict
        ``names``, ``of_others``, ``networks``, ``undoing``, ``explained`` (a line for each) and ``text``.
    """
    served = {condition["attacker"] for condition in conditions}
    specs = attacker_specs(config)
    fusions = [name for name, spec in specs.items() if spec == "fusion"]
    ends = (f"-{TRIAL_BY_TRIAL}", "-undone")
    specs |= {name + end: f"fusion{end}" for name in fusions for end in ends if name + end in served}
    run = {name: spec for name, spec in specs.items() if not conditions or name in served}
    others = [name for name, spec in run.items() if is_outside(spec)]
    networks = [name for name, spec in run.items() if is_network(spec)]
    undoing = [name for name, spec in run.items() if undoes(spec)]
    kinds = ["classic ones (Gaussian mixtures)"] if any(spec in _CLASSIC for spec in run.values()) else []
    kinds.append(f"networks: {', '.join(networks)}" if networks else "no neural network")
    if undoing:
        kinds.append(f"undoing the anonymisation: {', '.join(undoing)}")
    if "fusion" in run.values():
        kinds.append("all together (fusion)")
    if strangers := [name for name in others if name not in networks]:
        kinds.append(f"of others: {', '.join(strangers)}")
    text = f"Attackers that were run: {', '.join(run) or 'none'}; {', '.join(kinds)}. The figure is an upper bound of"
    if left := [name for name in specs if name not in run]:
        text = f"Attackers without any result: {', '.join(left)}. {text}"
    return {
        "names": list(run),
        "of_others": others,
        "networks": networks,
        "undoing": undoing,
        "explained": {name: explained(spec) for name, spec in run.items()},
        "text": f"{text} the privacy that is left: a stronger attacker may leave less.",
    }


def explained(spec: str) -> str:
    """Return in a line what an attacker is, by its preset or what a door opens to.

    Examples
    --------
    >>> explained("supervector-cosine")
    'the angle between projected supervectors of the two recordings'
    >>> explained("scores:elsewhere")
    'scores made elsewhere'
    """
    if spec in _WORDS:
        return _WORDS[spec]
    for ending, words in _ENDINGS.items():
        if spec.endswith(ending):
            return f"{explained(spec.removesuffix(ending))}, {words}"
    if is_outside(spec):
        return _WORDS.get(spec.partition(":")[0], "code or scores of the user, which the configuration names")
    found = find_row(spec)
    return found[1].summary if found is not None else "an attacker that the configuration describes"


def is_network(spec: str) -> bool:
    """Return whether an attacker rests on a neural network, by its preset or what a door opens to.

    Examples
    --------
    >>> [is_network(spec) for spec in ("campplus:wheels", "ge2e-adapted-undone", "extractor:ge2e", "ivector-adapted")]
    [True, True, True, False]
    """
    kind = spec.removeprefix("extractor:").partition(":")[0]
    for ending in _ENDINGS:  # -undone is the last of several
        kind = kind.removesuffix(ending)
    return kind in _NETWORKS


def adapts(spec: str) -> bool:
    """Return whether an attacker adapts to the trials, by its preset or what a door opens to.

    Examples
    --------
    >>> [adapts(spec) for spec in ("ge2e-adapted-undone", "adapted:ecapa", "campplus", "scores:ecapa/exp")]
    [True, True, False, False]
    """
    return "-adapted" in spec.partition(":")[0] or spec.startswith("adapted:")


def undoes(spec: str) -> bool:
    """Return whether an attacker learns to invert the anonymisation, or to align what comes of it."""
    return spec.endswith(("-undone", "-aligned"))


_FILES = 256  # whose headers are one task


def hours_of_speech(sets: Sets, draws: Mapping[str, int], *, jobs: int | None) -> float:
    """Return how much speech attackers hear: each original once, and each of so many draws of training, enrolment and
    trials, one where their number is not given.
    """
    sides, seconds = sets.sides, 0.0
    for name, directory in sets.original.items():
        paths = chunks(list(directory.recordings.values()), _FILES)
        of_all = sum(ordered_map(_seconds, paths, jobs=jobs, threads=True))
        seconds += (1 + draws.get(sides.get(name, ""), 1)) * of_all
    return seconds / 3600


def _seconds(paths: Sequence[Path]) -> float:
    return sum(audio_header(path).seconds for path in paths)


def describe_estimate(config: Config, hours: float, n_workers: int) -> str:
    """Return what is told before the start: how long all attackers take about, those that are not known left out."""
    kinds = {}
    for name, spec in attacker_specs(config).items():
        row = find_row(spec)
        kinds[name] = spec if row is None else row[0]
    costs = {name: cost_of(kind, set(kinds.values())) for name, kind in kinds.items()}
    seconds = {name: cost * hours / n_workers for name, cost in costs.items() if cost is not None}
    unknown = [name for name, cost in costs.items() if cost is None]
    parts = ", ".join(f"{name} {_duration(value)}" for name, value in seconds.items())
    cores = f"{n_workers} core{'s' if n_workers > 1 else ''}"
    text = f"attackers on {hours:.1f} h of speech, about {_duration(sum(seconds.values()))} on {cores} if all is new"
    text += f" ({parts})" if parts else ""
    return text + (f"; how long {', '.join(unknown)} takes is not known" if unknown else "")


def describe_absent(config: Config) -> list[str]:
    """Return a line for each reason why attackers that would run by default cannot; none if others were chosen."""
    reasons: dict[str, list[str]] = {}
    for name, why in absent_attackers().items() if config.attackers == default_attackers() else ():
        if name not in config.attackers:
            reasons.setdefault(why, []).append(name)
    return [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}" for why, names in reasons.items()
    ]


def _duration(seconds: float) -> str:
    """Seconds, or minutes from a hundred seconds on."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def listen(sets: Sets, config: Config, usual: Sequence[Any], *, jobs: int | None = None) -> list[Heard]:
    """Find the sampling rates of all recordings that attackers hear, and attackers that fit them.

    Parameters
    ----------
    sets : Sets
        Twins that are still to be made have the rates of their originals.
    config : Config
    usual : sequence
        The attackers as they are configured.
    jobs : int, optional
        Work.

    Returns
    -------
    list of Heard
        One for each group of training sets with the same rates. Files that cannot be read are passed over.

    Raises
    ------
    ConfigError
        If settings do not go with the rates.
    """
    names = dict.fromkeys(name for dataset in sets.datasets for name in dataset.directories)
    versions = [(name, side[name]) for side in (sets.original, sets.twins) for name in names if name in side]
    items = [(of.path.name, path) for _, of in versions for path in of.recordings.values()]
    tasks = chunks(items, _FILES)
    how: Json = {"jobs": jobs, "threads": True, "description": "sampling rates", "sizes": [*map(len, tasks)]}
    found = Counter(pair for part in ordered_map(_rates, tasks, **how) for pair in part)
    groups: dict[tuple[int, ...], dict[str, set[str]]] = {}
    for training in sets.training_sets:
        tested = {name for dataset in sets.datasets if dataset.training == training for name in dataset.directories}
        folders = {of.path.name for name, of in versions if name in tested}
        rates = tuple(sorted({rate for folder, rate in found if folder in folders}))
        groups.setdefault(rates, {})[training] = folders
    heard = []
    for rates, of_sets in groups.items():
        fitted = chosen_attackers(config, rates)
        is_fitted = list(map(features_of, fitted)) != list(map(features_of, usual))
        datasets = tuple(dataset.name for dataset in sets.datasets if dataset.training in of_sets)
        counts = {pair: count for pair, count in found.items() if any(pair[0] in one for one in of_sets.values())}
        heard.append(Heard(tuple(of_sets), datasets, counts, fitted if is_fitted else usual))
    return heard


def _rates(items: Sequence[tuple[str, Path]]) -> list[tuple[str, int]]:
    rates = []
    for name, path in items:
        with suppress(DataError):  # told where recordings are checked
            rates.append((name, audio_header(path).rate))
    return rates


def features_of(attacker: Any) -> FeatureConfig | None:
    """Return the features that an attacker hears by, or that by which it works; None where it has none."""
    features = getattr(getattr(_basis(attacker), "config", None), "features", None)
    return features if isinstance(features, FeatureConfig) else None


def _basis(attacker: Any) -> Any:
    while getattr(attacker, "base", None) is not None:
        attacker = attacker.base
    return attacker


def refusing_keys(config: Config) -> list[str]:
    """Return the keys that forbid to resample."""
    layers = {key: values.get("features") for key, values in config.attacker_settings.items()}
    return [
        f"attacker_settings.{key}.features.resample"
        for key, values in layers.items()
        if isinstance(values, Mapping) and values.get("resample") is False
    ]


def describe_rates(heard: Sequence[Heard], usual: Sequence[Any]) -> str:
    """Return which sets are heard at another rate than their recordings or the features have, or an empty text."""
    return " ".join(text for group in heard if (text := _described(group, usual)))


def _described(heard: Heard, usual: Sequence[Any]) -> str:
    by_features: dict[str, list[str]] = {}
    by_networks: dict[str, list[str]] = {}
    counts = Counter[int]()
    for (_, rate), count in sorted(heard.rates.items(), key=lambda item: item[0][1]):
        counts[rate] += count

    def moved(rate: int) -> str:
        others = " and ".join(f"{count} from {other} Hz" for other, count in counts.items() if other != rate)
        return f", for which recordings are resampled, {others}" if others else ""

    for attacker, before in zip(heard.attackers, map(features_of, usual), strict=True):
        features, basis = features_of(attacker), _basis(attacker)
        if features is not None and before is not None:
            text = f"features are computed at {features.rate} Hz{moved(features.rate)}"
            if features.high_frequency != before.high_frequency:
                text += f", and go up to {features.high_frequency:g} Hz instead of {before.high_frequency:g} Hz"
            if features != before or set(counts) != {features.rate}:
                by_features.setdefault(text, []).append(attacker.name)
        elif getattr(basis, "extractor", None) and (rate := basis.extractor.extraction.rate) and moved(rate):
            by_networks.setdefault(f"at {rate} Hz{moved(rate)}", []).append(attacker.name)
    if not by_features and not by_networks:
        return ""
    ways = [text if len(by_features) == 1 else f"{text} ({', '.join(names)})" for text, names in by_features.items()]
    ways += [f"{', '.join(names)}: {text}" for text, names in by_networks.items()]
    most, parts = max(counts, key=counts.__getitem__), []
    for rate, count in counts.items():
        here = [folder for folder, at in heard.rates if at == rate]
        parts.append(f"{count} recordings at {rate} Hz" + (f" ({few(here)})" if rate != most else ""))
    return f"{', '.join(heard.datasets)}, with {', '.join(heard.training)}: {', '.join(parts)}; {'; '.join(ways)}."
