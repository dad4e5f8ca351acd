"""Checks of draws: over how many the results are means, and whether enrolment and trials share some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from spkbase.errors import few
from spkver.anonymization import RECORD
from spkver.voiceprivacy.sanity_audio import Evaluated, Found
from spkver.voiceprivacy.sets import Sets

_SHARED = (
    "have the same draw of the anonymiser in enrolment and trials, by which they are recognised: EERs are far too low"
    " for an anonymiser that draws for each side. To have that, leave anonymizer.shared_draws and"
    " anonymizer.seeding=vpc2024 out; of twins of your own, make one side again by spkver anonymize with --side or"
    " another --seed."
)


def trial_draws(given: Evaluated) -> Iterator[Found]:
    """Tell over how many draws of trials results are means: those of one hide a spread."""
    if given.config.anonymizer.name == "none" or not any(
        condition["scenario"] != "original" for condition in given.conditions
    ):
        return
    for dataset in given.sets.datasets:
        count = given.sets.tested_draws(dataset)
        if count > 1:
            text = f"{dataset.name}: results are means over {count} anonymised versions of the trials."
            yield Found("ok", "trial draws", text)
            continue
        reasons = dict.fromkeys(given.sets.undrawn[name] for name in dataset.tested if name in given.sets.undrawn)
        why = f", {few(list(reasons))}" if reasons else ""
        text = f"{dataset.name}: results are of one anonymised version of the trials{why}: another one may"
        remedy = "Give the anonymiser (anonymizer.name) to have anonymizer.trial_draws of them."
        if any(map(given.sets.draws_nothing, dataset.tested)):
            text = f"{dataset.name}: there is one anonymised version of enrolment and trials{why}."
            yield Found("note", "trial draws", text)
        else:
            yield Found("note", "trial draws", f"{text} give points more or less. {remedy}")
    partial = [condition for condition in given.conditions if "draws" in condition["notes"]]
    if partial:
        first = partial[0]
        text = f"{len(partial)} given.conditions lack draws, such as {first['dataset']} {first['scenario']}"
        yield Found("note", "trial draws", f"{text} {first['attacker']}: {first['notes']['draws']}.")


def shared_draws(given: Evaluated) -> Iterator[Found]:
    """Warn where a speaker has the same draw in enrolment and trials, by the records of the anonymised directories."""
    for dataset in given.sets.datasets:
        enrolled = _speaker_draws(given.sets, dataset.enrolls)
        shared = {draw for name in dataset.trials.values() for draw in enrolled & _speaker_draws(given.sets, name)}
        if shared:
            speakers = {stream.split()[-1] for _, stream, _ in shared}
            yield Found("warning", "shared draws", f"{dataset.name}: {len(speakers)} speakers {_SHARED}")


def _speaker_draws(sets: Sets, name: str) -> set[tuple[str, str, Any]]:
    """Anonymiser, stream of random numbers and seed of the speakers of a data directory, in all of its versions."""
    found: set[tuple[str, str, Any]] = set()
    for twin in (sets.twins[name], *sets.draws.get(name, ())):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # no record, or none of ours
            record = json.loads((twin.path / RECORD).read_text(encoding="utf-8"))
            made, seed = record["anonymizer"], record["seed"]
            if made["level"] == "speaker" and made["name"] != "none":
                seed = None if made["seeding"] == "vpc2024" else seed
                found |= {(made["name"], entry["stream"], seed) for entry in record["files"].values()}
    return found
