"""Whether recordings of an evaluation are what their names say, no second names, no originals; what they give away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from spkver.attackers import catalogue_name
from spkver.datadir import DataDir
from spkver.voiceprivacy.choosing import attacker_name
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number

Json = dict[str, Any]

_NAMED = 3
_PART = 4096  # bytes


@dataclass(frozen=True)
class Found:
    """Outcome of a check: its level is ok, note or warning."""

    level: str
    check: str
    text: str


def duplicate_audio(sets: Sets) -> Iterator[Found]:
    """Check that no recording has two names: a trial would be trivial, or a training speaker a tested one."""
    for what, directories in (("original", sets.original), ("anonymised", sets.twins)):
        equal = equal_files(directories.values())
        if equal:
            examples = "; ".join(" = ".join(group) for group in equal[:_NAMED])
            n_files = sum(map(len, equal))
            text = f"{n_files} files of {what} speech hold the audio of another one: {examples}"
            yield Found("warning", "duplicate audio", text + (" ..." if len(equal) > _NAMED else "."))
        else:
            yield Found("ok", "duplicate audio", f"No two files of {what} speech are equal.")


def original_audio(sets: Sets) -> Iterator[Found]:
    """Check twins for audio of another original directory; that of their own `check_twin` has excluded."""
    originals = {
        f"{directory.name}/{utterance}" for directory in sets.original.values() for utterance in directory.recordings
    }
    left = []
    for group in equal_files([*sets.original.values(), *sets.twins.values()]):
        here, there = [name for name in group if name in originals], [name for name in group if name not in originals]
        # under its own name it was let through before: by an anonymiser that changes nothing, as was asked
        if here and there and not {name.split("/")[1] for name in here} & {name.split("/")[1] for name in there}:
            left.append(f"{there[0]} = {here[0]}")
    if left:
        text = f"{len(left)} files of anonymised speech hold original audio of another set: {'; '.join(left[:_NAMED])}"
        yield Found("warning", "original audio", text + (" ..." if len(left) > _NAMED else "."))


def equal_files(directories: Iterable[DataDir]) -> list[list[str]]:
    """Return groups of utterances, as ``directory/utterance``, whose files hold the same bytes; each file once.

    Of most files some bytes are read alone: those of the same size are compared by their middle before their whole.
    """
    files: dict[Path, str] = {}
    for directory in directories:
        for utterance, path in sorted(directory.recordings.items()):
            files.setdefault(Path(os.path.realpath(path)), f"{directory.name}/{utterance}")
    alike = _groups(files, lambda path: path.stat().st_size)
    alike = [group for one in alike for group in _groups(one, _middle)]
    alike = [group for one in alike for group in _groups(one, lambda path: sha256(path.read_bytes()).digest())]
    return sorted([files[path] for path in group] for group in alike)


def _groups(paths: Iterable[Path], feature: Callable[[Path], object]) -> list[list[Path]]:
    """Groups of files in which a feature is the same, without those of one file."""
    groups: dict[object, list[Path]] = {}
    for path in paths:
        groups.setdefault(feature(path), []).append(path)
    return [group for group in groups.values() if len(group) > 1]


def _middle(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(path.stat().st_size // 2)
        return file.read(_PART)


def corpus_leak(originals: Iterable[tuple[str, Sequence[Json]]], config: Config) -> Iterator[Found]:
    """Tell how far original speech is recognised by noise and channel, where nobody speaks: that is no voice's doing.

    Parameters
    ----------
    originals : iterable of (str, sequence of dict)
        Each set with its conditions of original speech, one an attacker.
    config : Config
    """
    specs = {entry: str(config.attacker_settings.get(entry, {}).get("preset", entry)) for entry in config.attackers}
    names = {attacker_name(entry) for entry, spec in specs.items() if catalogue_name(spec) == "session"}
    for dataset, part in originals:
        for condition in part:
            if condition["attacker"] not in names:
                continue
            rate, ends = 100 * condition["eer"]["rocch"], condition["intervals"].get("eer.rocch", {})
            low, high = (100 * number(ends.get(end)) for end in ("low", "high"))
            span = f" (interval {low:.1f} to {high:.1f})" if low == low and high == high else ""
            text = (
                f"{dataset}: without speech, by noise and channel alone ({condition['attacker']}), original recordings"
            )
            text += (
                f" tell their speakers with an EER of {rate:.1f} %{span}; a guess has 50 %. So much the corpus gives"
            )
            yield Found("note", "recognition without speech", f"{text} away by itself, and every attacker may use it.")
