"""The outputs of recipes and commands, kept in a folder, and compared with those of another state of the code.

    python -m benchmarks.golden_outputs make FOLDER [--corpus DIR] [--public DIR]
    python -m benchmarks.golden_outputs compare OLD NEW

`make` runs the four recipes of RSR2015 on simulated speech (and on a tree of RSR2015 part 1,
which `benchmarks/dspspeech20.py` makes of real speech), the demo, with ``--public`` the
evaluation of public speech, and commands on what they wrote, each as a process of its own, whose seconds and peak
memory stand in ``times.json``. `compare` reads both folders file by file: arrays of HDF5, pixels of PNG, the words of
pages and all other files must be equal, numbers of JSON within 1e-12; logs, dates and what only keeps a run's books do
not count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import h5py
import numpy as np

RECIPES = ("svm-gmm", "gmm-ubm", "ivector", "jfa")
_BOOKS = ("stages.json", "sources.json", "run.log", "times.json", "spkver.json")
_DATED = (
    "run",
    "timings",
    "versions",
    "command",
    "date",
    "seconds",
    "made_from",
    "made_by",
    "time",
)
_SKIPPED = (".log", ".svg", ".pdf", ".tex", ".lock")  # SVG and PDF hold dates and random ids

# {d} is the demo's folder, {v} its evaluation, {o} where a command writes
_TWO_SYSTEMS = "-s {d}/scores/svm-gmm.txt -s {d}/scores/svm-gmm-nap.txt"
_KEY = "{d}/task/3sess-pwd_eval_m_key.txt"
_S = f"{_TWO_SYSTEMS} -k {_KEY}"
_ONE = "-s {d}/scores/svm-gmm-nap.txt -k " + _KEY
_SPEAKERS = "--model-speakers {d}/task/model2spk --segment-speakers {d}/task/utt2spk"
_OTHER = "--train-scores {d}/scores/svm-gmm-nap.txt --train-key " + _KEY
_LEARNT = _TWO_SYSTEMS.replace("-s", "--train-scores") + " --train-key " + _KEY
_SETS = "{v}/simulated/simulated_test"
_COHORTS = "--model-cohort {d}/scores/svm-gmm-nap.txt --segment-cohort {d}/scores/svm-gmm-nap.txt"
_TRIED = f"--trials {_SETS}_trials_f/trials"
_VECTORS = "--enroll {o}/enrol.h5 --test {o}/test.h5"
COMMANDS = f"""
metrics {_ONE} --json {{o}}/metrics.json
metrics {_ONE} --convention zebra-2020 --json {{o}}/metrics_zebra.json
metrics {_S} {_SPEAKERS} --bootstrap 200 --json {{o}}/metrics_two.json --markdown {{o}}/two.md --latex {{o}}/two.txt
metrics {_ONE} --threshold-from {{d}}/scores/svm-gmm.txt {_KEY} --json {{o}}/threshold.json
zebra {_ONE} --json {{o}}/zebra.json
plot det {_S} -o {{o}}/det.png
plot roc {_S} -o {{o}}/roc.png
plot ece {_S} -o {{o}}/ece.png
plot nece {_S} -o {{o}}/nece.png
plot ape {_S} --eer -o {{o}}/ape.png
plot nber {_S} -o {{o}}/nber.png
plot zebra {_S} -o {{o}}/zebra.png
plot histogram {_S} --own-scale -o {{o}}/histogram.png
plot reliability {_ONE} -o {{o}}/reliability.png
page {{v}}/results.json --output {{o}}/report.html
convert scores {{d}}/scores/svm-gmm.txt {{o}}/scores.h5
convert scores {{d}}/scores/svm-gmm.txt {{o}}/scores.csv
convert key {{d}}/task/3sess-pwd_eval_m_key.txt {{o}}/key.h5
calibrate {_ONE} {_SPEAKERS} -o {{o}}/crossed.txt
calibrate -s {{d}}/scores/svm-gmm.txt {_OTHER} -o {{o}}/calibrated.txt --save {{o}}/calibration.json
fuse {_TWO_SYSTEMS} {_SPEAKERS} --train-key {_KEY} --cross-validate 4 -o {{o}}/fused.txt
fuse {_TWO_SYSTEMS} {_LEARNT} -o {{o}}/fused_saved.txt --save {{o}}/fusion.json
normalise -s {{d}}/scores/svm-gmm.txt -m s {_COHORTS} -o {{o}}/normalised.txt
linkability {_ONE} {_SPEAKERS} --bootstrap 100 --output {{o}}/linked
rank {{v}}/results.json --json {{o}}/rank.json
spkver embed {_SETS}_enrolls --extractor prosody --output {{o}}/enrol.h5 --jobs 1
spkver embed {_SETS}_trials_f --extractor prosody --output {{o}}/test.h5 --jobs 1
spkver embed {{v}}/simulated/simulated_train --extractor prosody --output {{o}}/train.h5 --jobs 1
cosine {_VECTORS} {_TRIED} --output {{o}}/cosine.txt
linkability {_VECTORS} --not-enrolled drop --utterances 1 --utterances 3 --bootstrap 100 --output {{o}}/linked_vectors
attributes --original {{o}}/enrol.h5 --labels {_SETS}_enrolls/spk2gender --json {{o}}/attributes.json
spkver backend train {{o}}/train.h5 --chain centre,whiten,length,lda:3,plda:2 --output {{o}}/backend.h5
spkver backend score {{o}}/backend.h5 --enroll {{o}}/enrol.h5 --test {{o}}/test.h5 {_TRIED} --output {{o}}/plda.txt
metrics -s {{o}}/plda.txt -k {_SETS}_trials_f/trials --json {{o}}/plda.json
spkver anonymize mcadams {_SETS}_trials_f --suffix _b2 --seed 1 --jobs 1
spkver anonymize vtln {_SETS}_trials_f --suffix _vtln --seed 1 --jobs 1
f0 {_SETS}_trials_f {_SETS}_trials_f_b2 --bootstrap 50 --json {{o}}/f0.json
spkver train {{v}}/simulated/simulated_train --attacker gmm-ubm --output {{o}}/attacker --set ubm.components=8 --jobs 1
spkver score {{o}}/attacker --enroll {_SETS}_enrolls --test {_SETS}_trials_f --output {{o}}/attacked.txt --jobs 1
wer --ref {{o}}/text --hyp {{o}}/heard --segment-speakers {_SETS}_trials_f/utt2spk --bootstrap 50 --json {{o}}/wer.json
"""


def make(folder: Path, corpus: Path | None, public: Path | None) -> None:
    """Run everything; a command that fails is named, and the others go on."""
    folder.mkdir(parents=True)
    times: dict[str, Any] = {}
    runs = {
        f"{name}_simulated": _rsr2015(name, "simulated", "simulated", folder) for name in RECIPES
    }
    if corpus is not None:
        runs |= {f"{name}_real": _rsr2015(name, "real", str(corpus), folder) for name in RECIPES}
    runs["demo"] = [*_spkver("demo"), "--output", str(folder / "demo")]
    if public is not None:
        options = f"--data {public} --suffix _mcadams --output {folder / 'public'}"
        config = "--config recipes/voiceprivacy/config/public_speech.yaml"
        runs["public"] = [*_spkver("voiceprivacy"), *options.split(), *config.split()]
    for name, command in runs.items():
        _timed(times, name, command)
    demo, out = folder / "demo", folder / "commands"
    out.mkdir()
    places = {"d": demo, "v": demo / "voiceprivacy", "o": out}
    for name, text in (("text", "THE CAT SAT ON THE MAT"), ("heard", "the cat sat on a mat")):
        utterances = (
            (demo / "voiceprivacy/simulated/simulated_test_trials_f/utt2spk")
            .read_text()
            .splitlines()
        )
        (out / name).write_text("".join(f"{line.split()[0]} {text}\n" for line in utterances))
    for number, line in enumerate(COMMANDS.split("\n")[1:-1], 1):
        words = line.format(**places).split()
        command = (
            _spkver(*words[1:])
            if words[0] == "spkver"
            else [sys.executable, "-c", _EVALUATION, *words]
        )
        printed = _timed(times, f"{number:02d} {' '.join(line.split()[:2])}", command)
        (out / f"{number:02d}.out").write_text(printed.replace(str(folder), "FOLDER"))
    (folder / "times.json").write_text(json.dumps(times, indent=1) + "\n")


_EVALUATION = "from spkver.evaluation_cli import main; main(prog_name='spkver-eval')"


def _spkver(*words: str) -> list[str]:
    return [sys.executable, "-m", "spkver", *words]


def _rsr2015(name: str, speech: str, corpus: str, folder: Path) -> list[str]:
    output = folder / f"{name}_{speech}"
    few = ["--set", "ubm.components=16"]
    return [*_spkver("rsr2015", name), "--corpus", corpus, "--output", str(output), *few]


def _timed(times: dict[str, Any], name: str, command: list[str]) -> str:
    """Run a command and note its seconds and peak memory; what it printed comes back."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    times[name] = {
        "seconds": round(seconds, 2),
        "peak_mb": usage.ru_maxrss // 1024,
        "status": process.returncode,
    }
    failed = f"  status {process.returncode}\n{printed[-600:]}" if process.returncode else ""
    print(f"{seconds:7.1f} s  {usage.ru_maxrss // 1024:5d} MB  {name}{failed}", flush=True)
    return printed


def compare(old: Path, new: Path) -> Iterator[str]:
    """Yield what differs between two folders, a line each."""
    names = {
        path.relative_to(side) for side in (old, new) for path in side.rglob("*") if path.is_file()
    }
    for name in sorted(names):
        if name.name in _BOOKS or name.suffix in _SKIPPED or "work" in name.parts:
            continue
        first, second = old / name, new / name
        if not (first.is_file() and second.is_file()):
            yield f"{name}: only in {old if first.is_file() else new}"
        elif first.read_bytes() != second.read_bytes():
            one, other = _contents(first), _contents(second)
            for key in sorted({*one, *other}):
                if key not in one or key not in other:
                    yield f"{name}: {key} only in one"
                elif not _same(one[key], other[key]):
                    yield f"{name}: {key}: {_short(one[key])} and {_short(other[key])}"


def _contents(path: Path) -> dict[str, Any]:
    """Values of a file by their places: numbers of JSON, arrays of HDF5, pixels, words of pages, lines of a text.

    Words and lines are without the paths and the dates that a run has.
    """
    if path.suffix == ".json":
        return dict(_leaves(json.loads(path.read_text())))
    if path.suffix in (".h5", ".hdf5"):
        found: dict[str, Any] = {}
        with h5py.File(path, "r") as file:
            file.visititems(
                lambda name, node: found.update({name: node[()]} if hasattr(node, "dtype") else {})
            )
        return found
    if path.suffix == ".png":
        from matplotlib.image import imread

        return {"pixels": imread(path)}
    text = path.read_text(errors="replace")
    if path.suffix == ".html":
        text = unescape(re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", "\n", text, flags=re.DOTALL))
    text = re.sub(r"/\S*/|\d{4}-\d\d-\d\d\S*|\d+(\.\d+)? s\b", "", text)
    lines = text.split() if path.suffix == ".html" else text.splitlines()
    return {"text": [line.strip() for line in lines if line.strip()]}


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key in value.keys() - set(_DATED):
            yield from _leaves(value[key], f"{place}.{key}")
    elif isinstance(value, list):
        yield f"{place}[]", len(value)
        for number, item in enumerate(value):
            yield from _leaves(item, f"{place}[{number}]")
    else:
        yield place, value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        is_same = (
            one.tolist() == other.tolist()
            if one.dtype == object
            else one.tobytes() == other.tobytes()
        )
        return one.shape == other.shape and one.dtype == other.dtype and is_same
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15) or (
            math.isnan(one) and math.isnan(other)
        )
    return bool(one == other) or (isinstance(one, str) and "/" in one)  # paths


def _short(value: Any) -> str:
    return f"{value.dtype} of {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:200]


def main() -> None:
    """Make or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    made = actions.add_parser("make")
    made.add_argument("folder", type=Path)
    made.add_argument("--corpus", type=Path, help="tree of RSR2015 part 1")
    made.add_argument("--public", type=Path, help="folder of benchmarks/public_speech.py")
    compared = actions.add_parser("compare")
    compared.add_argument("old", type=Path)
    compared.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.action == "make":
        make(given.folder.resolve(), given.corpus, given.public)
        return
    found = list(compare(given.old, given.new))
    print("\n".join([*found, f"{len(found)} differences"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
