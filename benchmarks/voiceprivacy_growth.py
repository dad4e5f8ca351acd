"""How the time of the VoicePrivacy evaluation with all default attackers grows with speakers, utterances and training.

    python -m benchmarks.voiceprivacy_growth --data DIR --dataset dsp_test --training dsp_train
                                             [--vary speakers utterances training] [--shares 0.25 0.5 1] [...]

DIR is a folder of data directories as the evaluation reads it. For each share a part of it is laid out: so many of the
speakers who are enrolled and tested, so many utterances of each on both sides, or so many utterances of each training
speaker (speakers, where they have one each). `spkver voiceprivacy` runs as its users run it, each part in an empty
folder. Other options go to it. *cpu* is the processor time of all its processes, which other work on the machine hardly
moves. A slope is that of a straight line through log seconds over log share: 1 where time grows as the part does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import describe_machine
from benchmarks.sampling import run_sampled
from evaluation.trials import Key
from spkbase.files import format_table, make_folder
from spkver.datadir import DataDir, read_datadir, write_datadir

PHASES = ("anonymisation", "attackers and scores", "evaluation", "evidence")
_AXES = ("speakers", "utterances", "training")


def main(arguments: Sequence[str] | None = None) -> int:
    """Lay out the parts, run each, print the tables."""
    parser = argparse.ArgumentParser(description="Growth of the VoicePrivacy evaluation with its default attackers.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--dataset", default="dsp_test")
    parser.add_argument("--training", default="dsp_train")
    parser.add_argument("--vary", nargs="+", choices=_AXES, default=list(_AXES))
    parser.add_argument("--shares", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    options, others = parser.parse_known_args(arguments)
    if not all(0 < share <= 1 for share in options.shares):
        parser.error("--shares are above 0 and at most 1")
    print(describe_machine(), flush=True)
    whole: dict[str, float] | None = None
    for axis in options.vary:
        found = []
        for share in sorted(options.shares):
            if share == 1 and whole is not None:  # the same for every axis
                seconds = whole
            else:
                seconds = _run(options, others, axis, share)
                whole = seconds if share == 1 else whole
            found.append(seconds)
        rows = [{axis: f"{share:g}", **one} for share, one in zip(sorted(options.shares), found, strict=True)]
        if len(found) > 1:
            logs = np.log(sorted(options.shares))
            slopes = {
                name: np.polyfit(logs, np.log([max(one[name], 1e-3) for one in found]), 1)[0] for name in found[0]
            }
            rows.append({axis: "slope", **slopes})
        whose = options.training if axis == "training" else options.dataset
        print(f"\nseconds, by the share of the {axis} of {whose}")
        print(format_table(rows, {axis: "", **dict.fromkeys(found[0], ".2f")}, markdown=True), flush=True)
    return 0


def _run(options: argparse.Namespace, others: Sequence[str], axis: str, share: float) -> dict[str, float]:
    """Return the seconds of each phase of the evaluation of a part."""
    with tempfile.TemporaryDirectory(prefix="growth-") as name:
        folder = Path(name)
        lay_out(options, axis, share, folder / "data")
        settings = [f"datasets=[{options.dataset}]", f"training_sets.{options.dataset}={options.training}"]
        command = [sys.executable, "-m", "spkver", "voiceprivacy", "--data", str(folder / "data")]
        command += ["--suffix", "_mcadams", "--output", str(folder / "out"), *others]
        command += [part for setting in settings for part in ("--set", setting)]
        usage = run_sampled(command, folder=folder, output=folder / "log", interval=1.0)
        if usage.status:
            raise SystemExit((folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:])
        timings: Mapping[str, Any] = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))
        found = {phase: float(timings["timings"].get(phase, 0.0)) for phase in PHASES}
        return {**found, "whole": usage.ended - usage.started, "cpu": usage.cpu[-1] if usage.cpu else float("nan")}


def lay_out(options: argparse.Namespace, axis: str, share: float, target: Path) -> None:
    """Write a part of the sets; recordings stay where they are."""
    sets = {name: read_datadir(options.data / name) for name in _names(options)}
    enrolled = sets[f"{options.dataset}_enrolls"]
    speakers = _spread(sorted(set(enrolled.speakers.values()), key=lambda one: (enrolled.genders[one], one)),
                       share if axis == "speakers" else 1.0)  # fmt: skip
    for name, directory in sets.items():
        is_training = name == options.training
        part = share if axis == ("training" if is_training else "utterances") else 1.0
        kept = _some(directory, set(directory.speakers.values()) if is_training else set(speakers), part)
        made = replace(_only(directory, kept, set(speakers)), path=make_folder(target / name))
        write_datadir(made)


def _names(options: argparse.Namespace) -> list[str]:
    lists = sorted(path.name for path in options.data.glob(f"{options.dataset}_trials_*"))
    return [f"{options.dataset}_enrolls", *lists, options.training]


def _some(directory: DataDir, speakers: set[str], share: float) -> set[str]:
    """A share of the utterances of each of some speakers; of the speakers where they have one each."""
    of_speakers = {name: names for name, names in directory.by_speaker().items() if name in speakers}
    if all(len(names) == 1 for names in of_speakers.values()):
        return {names[0] for names in _spread(list(of_speakers.values()), share)}
    return {name for names in of_speakers.values() for name in _spread(list(names), share)}


def _spread(items: Sequence[Any], share: float) -> list[Any]:
    """A share of a list, at even distances, at least two."""
    count = min(len(items), max(2, round(share * len(items))))
    return [items[place] for place in np.linspace(0, len(items) - 1, count).round().astype(int)]


def _only(directory: DataDir, utterances: set[str], models: set[str]) -> DataDir:
    """A data directory of some utterances; of its trials those of some models with them."""
    speakers = {name: speaker for name, speaker in directory.speakers.items() if name in utterances}
    key = directory.trials
    if key is not None:
        rows = [row for row, (model, segment) in enumerate(key.pairs()) if model in models and segment in utterances]
        pairs = [(*pair, bool(target)) for pair, target in zip(key.pairs(), key.is_target, strict=True)]
        key = Key.from_ids(*map(list, zip(*(pairs[row] for row in rows), strict=True)))
    return replace(
        directory,
        recordings={name: path for name, path in directory.recordings.items() if name in utterances},
        speakers=speakers,
        genders={name: sex for name, sex in directory.genders.items() if name in set(speakers.values())},
        enrolls=None if directory.enrolls is None else tuple(name for name in directory.enrolls if name in utterances),
        trials=key,
    )


if __name__ == "__main__":
    raise SystemExit(main())
