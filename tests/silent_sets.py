"""Sets of an evaluation without speech: lists of recordings that do not exist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.trials import Key
from spkver.attackers import Known, make_attacker, parse_spec
from spkver.datadir import DataDir
from spkver.voiceprivacy.facts import Facts
from spkver.voiceprivacy.sets import Dataset, RateGroup, Sets

SUFFIX = "_x"
KNOWN = Facts({"train": Known("mcadams", (0.5, 0.9), "record")})
MODELS = {"f": ("f1", "f2"), "m": ("m1", "m2")}


def directory(path: Path, speakers: tuple[str, ...], takes: int, **lists: Any) -> DataDir:
    """A data directory whose recordings do not exist."""
    owners = {f"{speaker}-{take}": speaker for speaker in speakers for take in range(takes)}
    recordings = {name: path / "wav" / f"{name}.wav" for name in owners}
    return DataDir(path, recordings, owners, {speaker: speaker[0] for speaker in speakers}, **lists)


def key_of(tested: DataDir, models: tuple[str, ...]) -> Key:
    pairs = [
        (model, name, speaker == model)
        for model in models
        for name, speaker in tested.speakers.items()
    ]
    return Key.from_ids(*map(list, zip(*pairs, strict=True)))


def sets_of(
    folder: Path,
    *attackers: str,
    draws: int = 1,
    training: int = 12,
    takes: int = 2,
    names: tuple[str, ...] = ("set",),
    genders: str = "fm",
) -> Sets:
    """Sets of two speakers of each sex, with so many anonymised versions and so many training speakers."""
    people = tuple(f"{'fm'[number % 2]}{100 + number}" for number in range(training))
    original = {"train": directory(folder / "train", people, takes)}
    datasets = []
    for name in names:
        original[f"{name}_enrolls"] = directory(
            folder / f"{name}_enrolls", (*MODELS["f"], *MODELS["m"]), 2
        )
        trials = {gender: f"{name}_trials_{gender}" for gender in genders}
        for gender, place in trials.items():
            tested = directory(folder / place, MODELS[gender], 3)
            original[place] = replace(tested, trials=key_of(tested, MODELS[gender]))
        datasets.append(Dataset(name, f"{name}_enrolls", trials, "train"))
    versions = {}
    for name, source in original.items():
        paths = [folder / f"{name}{SUFFIX}{ending}" for ending in ("", "-draw2", "-draw3")[:draws]]
        versions[name] = tuple(moved(source, path) for path in paths)
    made = []
    for entry in attackers:
        spec = parse_spec(entry)
        made.append((spec, make_attacker(spec)))
    group = RateGroup(("train",), names, {}, made)
    return Sets(tuple(datasets), original, versions, rate_groups=(group,))


def moved(source: DataDir, path: Path) -> DataDir:
    recordings = {name: path / "wav" / f"{name}.wav" for name in source.recordings}
    return replace(source, path=path, recordings=recordings)
