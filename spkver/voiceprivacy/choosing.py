"""The configured attackers: their descriptions, the estimated time, and their sampling rates.

Recordings that are compared with each other are processed at one sampling rate: the lowest rate of a training set and
of the enrolment and trials that are scored after training on it, original and anonymised. If an anonymiser narrows the
band, attackers use no more than this band of the original, and nobody is recognised by the bandwidth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evaluation.trials import TRIAL_BY_TRIAL
from spkbase.configuration import merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.work import Work, chunks
from spkver.anonymization import BUILT_IN
from spkver.attackers import (
    CATALOGUE,
    OUTSIDE,
    PRESETS,
    Attacker,
    Context,
    absent_attackers,
    attacker_name,
    cost_of,
    default_attackers,
    find_row,
    is_outside,
    make_attacker,
)
from spkver.audio import audio_header
from spkver.features import FeatureConfig, values_for_rates
from spkver.voiceprivacy.sets import RateGroup, Sets
from spkver.voiceprivacy.settings import ALL, Config

Json = dict[str, Any]

_BY_FEATURES = ("ivector", "supervector")  # attackers of the catalogue with features; all presets have features
_ENDING = re.compile(r"-(adapted|single-test|aligned|inverted)")
_FILES = 256  # headers read in one task


def chosen_attackers(config: Config, rates: Collection[int] = ()) -> list[Attacker]:
    """Return the configured attackers, in their order.

    Parameters
    ----------
    config : Config
    rates : collection of int [Hz]
        Sampling rates of the recordings; features that are not configured are fitted to them.

    Raises
    ------
    ConfigError
        If a preset is unknown, a user-supplied attacker cannot be opened, two attackers have one name, or a setting is
        wrong.
    """
    chosen, named = [], dict[str, str]()
    for entry in config.attackers:
        settings = dict(config.attacker_settings.get(entry, {}))
        name = attacker_name(entry)
        preset = str(settings.pop("preset", entry))
        if name in named:
            text = f"attackers: {named[name]!r} and {entry!r} would both be called {name}"
            remedy = f"give one a name: attackers=[..., mine] and attacker_settings.mine.preset={entry!r}"
            raise ConfigError(text, remedy=remedy)
        named[name] = entry
        if is_outside(preset) and find_row(preset) is None and (more := settings.keys() - {"level"}):
            text = f"attacker_settings of {entry}: {', '.join(sorted(more))}"
            raise ConfigError(f"{text}: a user-supplied attacker takes level only")
        shared = config.attacker_settings.get(ALL, {})
        if fitting := fitting_features(config, name, preset, rates):
            shared = merged({"features": fitting}, shared)
        heard = config.utility.hypotheses
        limit = config.attackers_time_limit
        context = Context("", "", config.seed, shared, config.attacker_settings, heard, limit)
        chosen.append(make_attacker(preset, name, settings, context))
    return chosen


def fitting_features(config: Config, name: str, preset: str, rates: Collection[int]) -> dict[str, object]:
    """Return the settings that fit an attacker's features to sampling rates, see `values_for_rates`."""
    base = _ENDING.sub("", preset)  # its settings hold for modified attackers, too
    if base not in (*PRESETS, *_BY_FEATURES):
        return {}
    layers = [config.attacker_settings.get(key, {}).get("features") for key in (ALL, base, name)]
    return values_for_rates(merged(*[values for values in layers if isinstance(values, Mapping)]), rates)


def attacker_specs(config: Config) -> dict[str, str]:
    """Return the preset or the user-supplied entry of each attacker, by its name in folders and tables."""
    settings = config.attacker_settings
    return {attacker_name(entry): str(settings.get(entry, {}).get("preset", entry)) for entry in config.attackers}


# --- descriptions of attackers ----------------------------------------------------------------------------------------


def attackers_run(config: Config, conditions: Sequence[Mapping[str, Any]] = ()) -> Json:
    """Describe the attackers that were run, and say that their result is an upper bound of privacy.

    Parameters
    ----------
    config : Config
    conditions : sequence of mapping, optional
        Entries of ``results.json``: an attacker without an entry was not run. By default all attackers were run.

    Returns
    -------
    dict
        ``names``, ``of_others``, ``networks``, ``undoing``, ``explained`` (a line for each attacker) and ``text``.
    """
    served = {condition["attacker"] for condition in conditions}
    specs = attacker_specs(config)
    fusions = [name for name, spec in specs.items() if spec == "fusion"]
    ends = (f"-{TRIAL_BY_TRIAL}", "-inverted")
    specs |= {name + end: f"fusion{end}" for name in fusions for end in ends if name + end in served}
    run = {name: spec for name, spec in specs.items() if not conditions or name in served}
    others = [name for name, spec in run.items() if is_outside(spec)]
    networks = [name for name, spec in run.items() if is_network(spec)]
    undoing = [name for name, spec in run.items() if spec.endswith(("-inverted", "-aligned"))]
    kind = f"networks: {', '.join(networks)}" if networks else "no neural network"
    text = f"Attackers that were run: {', '.join(run) or 'none'}; {kind}. The figure is an upper bound of"
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
    """Return a one-line description of an attacker, given its preset or user-supplied entry.

    Examples
    --------
    >>> explained("supervector-cosine"), explained("scores:elsewhere")
    ('cosine of projected supervectors', 'scores made elsewhere')
    """
    row, prefix = find_row(spec), spec.partition(":")[0]
    if row is not None:
        return row[1].summary
    if spec == f"fusion-{TRIAL_BY_TRIAL}":
        return f"{CATALOGUE['fusion'].summary}, without attackers that adapt to the trials"
    if spec == "fusion-inverted":
        return f"{CATALOGUE['fusion'].summary}, with attackers that invert the anonymisation"
    return OUTSIDE[prefix if prefix in OUTSIDE else ""][1]


def is_network(spec: str) -> bool:
    """Return whether an attacker uses a neural network, given its preset or user-supplied entry.

    Embeddings computed elsewhere usually come from a network.

    Examples
    --------
    >>> [is_network(spec) for spec in ("campplus:wheels", "ge2e-adapted-inverted", "extractor:ge2e", "ivector-adapted")]
    [True, True, True, False]
    """
    kind = spec.removeprefix("extractor:").partition(":")[0]
    return kind in ("vectors", "adapted") or (kind in CATALOGUE and CATALOGUE[kind].is_network)


def adapts(spec: str) -> bool:
    """Return whether an attacker adapts to the trials, given its preset or user-supplied entry.

    Examples
    --------
    >>> [adapts(spec) for spec in ("ge2e-adapted-inverted", "adapted:ecapa", "campplus", "scores:ecapa/exp")]
    [True, True, False, False]
    """
    return "-adapted" in spec.partition(":")[0] or spec.startswith("adapted:")


def describe_estimate(config: Config, sets: Sets, hours: float, n_workers: int, *, draws: int = 1) -> str:
    """Return the estimated time of attackers whose cost is known and of the evaluation, with `draws` of the trials."""
    rows = {name: find_row(spec) for name, spec in attacker_specs(config).items()}
    kinds = {name: "" if row is None else row[0] for name, row in rows.items()}
    costs = {name: cost_of(kind, set(kinds.values())) for name, kind in kinds.items()}
    seconds = {name: cost * hours / n_workers for name, cost in costs.items() if cost is not None}
    sizes = []  # of the trial lists, single and pooled
    for dataset in sets.datasets:
        lists = [len(key) for name in dataset.trials.values() if (key := sets.original[name].trials)]
        sizes += [*lists, sum(lists)] if len(lists) > 1 else lists
    # measured with lists of 700 to 134,000 trials; the same again for figures over several attackers
    of_list = [0.03 + 6e-6 * size + config.evaluation.resamples * (5e-4 + 3e-8 * size) for size in sizes]
    evaluation = 2 * len(costs) * (1 + 3 * draws) * sum(of_list) / n_workers
    unknown = [name for name, cost in costs.items() if cost is None]
    parts = ", ".join(f"{name} {_duration(value)}" for name, value in seconds.items())
    total = sum(seconds.values())
    cores = f"{n_workers} core{'s' if n_workers > 1 else ''}"
    text = f"about {_duration(total + evaluation)} on {cores} if all is new: attackers on {hours:.1f} h of speech"
    text += f" {_duration(total)} ({parts}), metrics and intervals {_duration(evaluation)}"
    return text + (f"; not known: {', '.join(unknown)}" if unknown else "")


def describe_unwatched(config: Config) -> str:
    """Return a warning that changes in dependencies of user-supplied code go unnoticed; empty without such code."""
    own = [] if config.anonymizer.name in ("", *BUILT_IN) else ["anonymiser"]
    for name, entry in attacker_specs(config).items():
        spec = entry.removeprefix("extractor:")
        is_function = ":" in spec and find_row(spec) is None and spec.partition(":")[0] not in OUTSIDE
        own += [f"attacker {name}"] if is_function or spec.startswith("command:") else []
    text = "installed modules that it imports and files that it reads may change unnoticed; after a change give --force"
    return f"user-supplied code ({', '.join(own)}): {text}" if own else ""


def describe_absent(config: Config) -> list[str]:
    """Return a line for each reason why default attackers cannot run; no line if the configuration names attackers."""
    reasons: dict[str, list[str]] = {}
    for name, why in absent_attackers().items() if config.attackers == default_attackers() else ():
        if name not in config.attackers:
            reasons.setdefault(why, []).append(name)
    return [f"left out: {', '.join(names)}: {why}" for why, names in reasons.items()]


# --- sampling rates ---------------------------------------------------------------------------------------------------


def read_headers(sets: Sets, *, jobs: int | None = None) -> dict[str, list[tuple[int, float]]]:
    """Return the sampling rate [Hz] and duration [s] of all recordings, by the names of their folders.

    Files that cannot be read are left out.
    """
    names = dict.fromkeys(name for dataset in sets.datasets for name in dataset.directories)
    folders = [directory for name in names for directory in sets.pair(name)]
    items = [(directory.path.name, path) for directory in folders for path in directory.recordings.values()]
    tasks = chunks(items, _FILES)
    found: dict[str, list[tuple[int, float]]] = {directory.path.name: [] for directory in folders}
    sizes = [*map(len, tasks)]
    for headers in Work(jobs).map(_read_headers, tasks, description="sampling rates", sizes=sizes):
        for folder, rate, seconds in headers:
            found[folder].append((rate, seconds))
    return found


def fit_attackers(
    sets: Sets, headers: Mapping[str, Sequence[tuple[int, float]]], config: Config, usual: Sequence[Any]
) -> tuple[RateGroup, ...]:
    """Return attackers whose features fit the sampling rates of the recordings.

    Parameters
    ----------
    sets : Sets
        Missing twins have the rates of their originals.
    headers : mapping
        See `read_headers`.
    config : Config
    usual : sequence
        The attackers as configured.

    Returns
    -------
    tuple of RateGroup
        One for each group of training sets with the same rates.

    Raises
    ------
    ConfigError
        If settings contradict the rates.
    """
    groups: dict[tuple[int, ...], dict[str, list[str]]] = {}
    for training in sets.training_sets:
        names = dict.fromkeys(
            name for dataset in sets.datasets if dataset.training == training for name in dataset.directories
        )
        folders = [directory.path.name for name in names for directory in sets.pair(name)]
        rates = tuple(sorted({rate for folder in folders for rate, _ in headers[folder]}))
        groups.setdefault(rates, {})[training] = folders
    found = []
    for rates, of_sets in groups.items():
        fitted = chosen_attackers(config, rates)
        is_fitted = list(map(features_of, fitted)) != list(map(features_of, usual))
        datasets = tuple(dataset.name for dataset in sets.datasets if dataset.training in of_sets)
        folders = list(dict.fromkeys(folder for part in of_sets.values() for folder in part))
        counts = Counter((folder, rate) for folder in folders for rate, _ in headers[folder])
        found.append(RateGroup(tuple(of_sets), datasets, counts, fitted if is_fitted else usual))
    return tuple(found)


def features_of(attacker: Any) -> FeatureConfig | None:
    """Return the features of an attacker or of its base; None if it uses none."""
    features = getattr(getattr(_basis(attacker), "config", None), "features", None)
    return features if isinstance(features, FeatureConfig) else None


def describe_rates(groups: Sequence[RateGroup], usual: Sequence[Any]) -> str:
    """Describe the sets that are resampled or processed with other features than usual; empty if there are none."""
    texts = []
    for group in groups:
        rates = {rate for _, rate in group.rates}
        ways = dict[str, list[str]]()
        for attacker, before in zip(group.attackers, map(features_of, usual), strict=True):
            features, basis = features_of(attacker), _basis(attacker)
            if features is not None:
                if features != before or rates != {features.rate}:
                    way = f"features at {features.rate} Hz, up to {features.high_frequency:g} Hz"
                    ways.setdefault(way, []).append(attacker.name)
            elif getattr(basis, "extractor", None) and (rate := basis.extractor.extraction.rate) and rates != {rate}:
                ways.setdefault(f"at {rate} Hz", []).append(attacker.name)
        if ways:
            counts = []
            for rate in sorted(rates):
                folders = {folder: count for (folder, at), count in group.rates.items() if at == rate}
                where = f" ({few(list(folders))})" if len(rates) > 1 else ""
                counts.append(f"{sum(folders.values())} recordings at {rate} Hz{where}")
            text = f"{', '.join(group.datasets)}, with {', '.join(group.training)}: {', '.join(counts)}"
            texts.append("; ".join([text, *(f"{way}: {', '.join(names)}" for way, names in ways.items())]) + ".")
    return " ".join(texts)


def _duration(seconds: float) -> str:
    """Format a duration in seconds, or in minutes from a hundred seconds on."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _read_headers(items: Sequence[tuple[str, Path]]) -> list[tuple[str, int, float]]:
    headers = []
    for folder, path in items:
        with suppress(DataError):  # reported where recordings are checked
            header = audio_header(path)
            headers.append((folder, header.rate, header.seconds))
    return headers


def _basis(attacker: Any) -> Any:
    while getattr(attacker, "base", None) is not None:
        attacker = attacker.base
    return attacker
