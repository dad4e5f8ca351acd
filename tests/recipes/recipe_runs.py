"""Runs of recipes on the tiny corpus: arguments, outcomes, and what they left in the output folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import tiny_corpus

from spkver.recipes.rsr2015 import gmm_ubm, hilam, ivector, ivector_hmm, jfa, svm_gmm

RECIPES = Path(__file__).resolve().parents[2] / "recipes" / "rsr2015"
PAGES = {"svm_gmm": svm_gmm, "gmm_ubm": gmm_ubm, "ivector": ivector, "jfa": jfa}
PAGES |= {"hilam": hilam, "ivector_hmm": ivector_hmm}
COMMANDS = {name: page.main for name, page in PAGES.items()}


@dataclass(frozen=True)
class Outcome:
    """How a recipe ended: exit status, standard output and standard error."""

    status: int
    out: str
    err: str

    @property
    def error(self):
        """The error message, from its first line to the end."""
        lines = self.err.splitlines()
        starts = [place for place, line in enumerate(lines) if line.startswith("Error: ")]
        assert len(starts) == 1, f"expected one error, got:\n{self.err}"
        return "\n".join(lines[starts[0] :])


Recipe = Callable[..., Outcome]


def refused(outcome, *words):
    """One clear error with these words (regular expressions), and status 2."""
    assert outcome.status == 2, outcome.err
    assert "Traceback" not in outcome.err
    for word in words:
        assert re.search(word, outcome.error), f"{word!r} is not in: {outcome.error}"


def options(corpus, output, *arguments, **settings):
    """Arguments of a recipe: settings have two underscores for the dot, `nap__rank=3`."""
    chosen = {**tiny_corpus.SETTINGS, "report.formats": "[png]"}
    chosen.update({key.replace("__", "."): value for key, value in settings.items()})
    jobs = [] if "--jobs" in arguments else ["--jobs", "1"]
    sets = [part for key, value in chosen.items() for part in ("--set", f"{key}={value}")]
    return ["--corpus", str(corpus), "--output", str(output), *jobs, *sets, *arguments]


def results_of(output):
    """What stands in results.json."""
    return dict(json.loads((output / "results.json").read_text()))


def datasets(output):
    """Every dataset of every HDF5 file in a folder: dtype and bytes."""
    found = {}
    for path in sorted(output.rglob("*.h5")):
        with h5py.File(path) as file:

            def note(name, item, path=path):
                if isinstance(item, h5py.Dataset):
                    values = item[()]
                    raw = (
                        str(values.tolist()).encode()
                        if values.dtype.kind == "O"
                        else np.asarray(values).tobytes()
                    )
                    found[str(path.relative_to(output)), name] = (str(item.dtype), raw)

            file.visititems(note)
    return found


def leftovers(folder):
    """Temporary files, which nobody should find."""
    return [path for path in folder.rglob("*") if path.name.startswith(".") or "-tmp" in path.name]


def made(err):
    """Stages that a run made, from its log lines: those that are not up to date."""
    lines = [line.partition(": ") for line in err.splitlines()]
    taken = {name for name, _, rest in lines if rest.startswith("up to date")}
    timed = {
        name
        for name, _, rest in lines
        if rest.endswith(" s") and rest[:-2].replace(".", "").isdigit()
    }
    return timed - taken - {"lists", "report", "post-processing"}
