"""The configured attackers: their descriptions, the estimated time, and their sampling rates.

Recordings that are compared with each other are processed at one sampling rate: the lowest rate of a training set and
of the enrolment and trials that are scored after training on it, original and anonymised. If an anonymiser narrows the
band, attackers use no more than this band of the original, and nobody is recognised by the bandwidth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spkbase.configuration import merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import fingerprint
from spkbase.work import Work, chunks
from spkver.anonymization import BUILT_IN
from spkver.attackers import (
    BY_FEATURES,
    CATALOGUE,
    ExtractorSource,
    MixtureSource,
    Spec,
    absent_attackers,
    default_attackers,
    make_attacker,
    parse_spec,
)
from spkver.audio import audio_header
from spkver.features import FeatureConfig, values_for_rates
from spkver.voiceprivacy.sets import RateGroup, Sets
from spkver.voiceprivacy.settings import ALL, Config

Json = dict[str, Any]
Chosen = tuple[Spec, Any]

_FILES = 256  # headers read in one task
_INVERTING = "with attackers that invert the anonymisation"


def attacker_specs(config: Config) -> dict[str, Spec]:
    """Return the configured attackers by name, in their order.

    Raises
    ------
    ConfigError
        If a preset is unknown, or two attackers have one name.
    """
    specs: dict[str, Spec] = {}
    for entry in config.attackers:
        spec = parse_spec(entry, config.attacker_settings.get(entry))
        if (other := specs.get(spec.name)) is not None:
            text = f"attackers: {other.entry!r} and {entry!r} would both be called {spec.name}"
            remedy = f"give one a name: attackers=[..., mine] and attacker_settings.mine.preset={entry!r}"
            raise ConfigError(text, remedy=remedy)
        specs[spec.name] = spec
    return specs


def chosen_attackers(config: Config, rates: Collection[int] = ()) -> list[Chosen]:
    """Return the configured attackers with their specs, in their order.

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
    chosen, folders = [], dict[str, tuple[Spec, str]]()
    for spec in attacker_specs(config).values():
        shared = config.attacker_settings.get(ALL, {})
        if fitting := fitting_features(config, spec, rates):
            shared = merged({"features": fitting}, shared)
        how: Json = {"hypotheses": config.utility.hypotheses, "time_limit": config.attackers_time_limit}
        made = make_attacker(spec, config.attacker_settings, shared=shared, seed=config.seed, **how)
        if source := getattr(made, "source", None):
            settings = spec, fingerprint(getattr(made, "choice", None), source.record)
            other, same = folders.setdefault(getattr(made, "choice", made).name, settings)
            if same != settings[1]:
                text = f"attackers: {other.entry!r} and {spec.entry!r} with other settings would share a folder"
                raise ConfigError(text, remedy=f"repeat the settings under attacker_settings.{spec.entry}")
        chosen.append((spec, made))
    return chosen


def fitting_features(config: Config, spec: Spec, rates: Collection[int]) -> dict[str, object]:
    """Return the settings that fit an attacker's features to sampling rates, see `values_for_rates`."""
    if spec.row is None or spec.row.base not in BY_FEATURES:
        return {}
    layers = [config.attacker_settings.get(key, {}).get("features") for key in (ALL, spec.row.base, spec.entry)]
    return values_for_rates(merged(*[values for values in layers if isinstance(values, Mapping)]), rates)


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
    summaries = {name: spec.summary for name, spec in specs.items()}
    for name in [name for name, spec in specs.items() if spec.kind == "fusion"]:
        if f"{name}-inverted" in served:
            summaries[f"{name}-inverted"] = f"{CATALOGUE['fusion'].summary}, {_INVERTING}"
    run = [name for name in summaries if not conditions or name in served]
    others = [name for name in run if name in specs and specs[name].row is None]
    networks = [name for name in run if name in specs and specs[name].is_network]
    undoing = [name for name in run if (specs[name].inverts if name in specs else name.endswith("-inverted"))]
    kind = f"{len(networks)} of them with a neural network" if networks else "no neural network"
    text = f"Attackers run: {len(run)}, {kind}. The figure is an upper bound of"
    if left := [name for name in summaries if name not in run]:
        text = f"Attackers not run, or failed: {', '.join(left)}. {text}"
    return {
        "names": run,
        "of_others": others,
        "networks": networks,
        "undoing": undoing,
        "explained": {name: summaries[name] for name in run},
        "text": f"{text} the privacy that is left: a stronger attacker may leave less.",
    }


def describe_estimate(config: Config, sets: Sets, hours: float, n_workers: int, *, draws: int = 1) -> str:
    """Return the estimated time of attackers whose cost is known and of the evaluation, with `draws` of the trials."""
    specs = attacker_specs(config)
    costs = {name: spec.cost([other for other in specs.values() if other != spec]) for name, spec in specs.items()}
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
    text += f" {_duration(total)}{f' ({parts})' if parts else ''}, metrics and intervals {_duration(evaluation)}"
    return text + (f"; not known: {', '.join(unknown)}" if unknown else "")


def describe_unwatched(config: Config) -> str:
    """Return a warning that changes in dependencies of user-supplied code go unnoticed; empty without such code."""
    own = [] if config.anonymizer.name in ("", *BUILT_IN) else ["anonymiser"]
    own += [f"attacker {name}" for name, spec in attacker_specs(config).items() if spec.is_own_code]
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


def features_of(chosen: Chosen) -> FeatureConfig | None:
    """Return the features of an attacker; None if it uses none."""
    source = getattr(chosen[1], "source", None)
    return source.features if isinstance(source, MixtureSource) else None


def describe_rates(groups: Sequence[RateGroup], usual: Sequence[Any]) -> str:
    """Describe the sets that are resampled or processed with other features than usual; empty if there are none."""
    texts = []
    for group in groups:
        rates = {rate for _, rate in group.rates}
        ways = dict[str, list[str]]()
        for chosen, before in zip(group.attackers, map(features_of, usual), strict=True):
            features, source = features_of(chosen), getattr(chosen[1], "source", None)
            if features is not None:
                if features != before or rates != {features.rate}:
                    way = f"features at {features.rate} Hz, up to {features.high_frequency:g} Hz"
                    ways.setdefault(way, []).append(chosen[0].name)
            elif isinstance(source, ExtractorSource) and (rate := source.extractor.extraction.rate) and rates != {rate}:
                ways.setdefault(f"at {rate} Hz", []).append(chosen[0].name)
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
