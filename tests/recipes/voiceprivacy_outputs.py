"""What a run of the VoicePrivacy recipe leaves behind, in a form in which two runs can be compared to the last bit."""

from __future__ import annotations

import json
import re
from pathlib import Path

from recipe_runs import datasets, leftovers

# keys in the names of folders and files are made from the times of change of the recordings
_KEY = re.compile(r"-?[0-9a-f]{16}")


def outputs(output: Path) -> dict[str, object]:
    """Everything but logs, timings, dates, plots and the records of what was made from what."""
    arrays = {(_KEY.sub("", name), dataset, *value) for (name, dataset), value in datasets(output).items()}
    results = json.loads((output / "results.json").read_text())
    # lists of what was made here hold its place
    results["lists"] = {name: value for name, value in results["lists"].items() if not name.endswith("/wav.scp")}
    files = [*output.glob("exp/**/*"), *output.glob("data/**/*"), *output.glob("attackers/*/*/attacker.yaml")]
    files += [*output.glob("numbers/**/*.json"), *output.glob("*/*/predictions"), *output.glob("pitch/*/tracks/*.json")]
    return {
        "arrays": arrays,
        "results": {name: value for name, value in results.items() if name not in ("timings", "run")},
        **{
            str(path.relative_to(output)): _content(path) for path in files if path.is_file() and path.name != "wav.scp"
        },
    }


def _content(path: Path) -> object:
    if path.name == "anonymization.json":
        record = json.loads(path.read_text())
        for entry in record["files"].values():
            del entry["source"]["time"], entry["output"]["time"]
        return record
    if path.name == "attacker.yaml" or path.parent.name == "tracks":  # fingerprints of what has a time
        return re.sub(r"fingerprint\W+\w+", "", path.read_text())
    return path.read_bytes()


def check_same(output: Path, undisturbed: dict[str, object]) -> None:
    """The same to the last bit, and nothing unfinished beside it."""
    found = outputs(output)
    assert found.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        assert found[name] == value, name
    unfinished = [*output.rglob("partial"), *output.rglob("*.journal"), *output.rglob("*.draft"), *leftovers(output)]
    assert not unfinished
