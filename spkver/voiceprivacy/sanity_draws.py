"""Check of how many anonymised versions of enrolment and trials the results are means over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spkbase.errors import few
from spkver.voiceprivacy.sanity_audio import Found
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config


def trial_draws(conditions: Sequence[Mapping[str, Any]], sets: Sets, config: Config) -> Iterator[Found]:
    """Tell over how many draws of enrolment and trials results are means: those of one hide a spread."""
    if config.anonymizer.name == "none" or not any(condition["scenario"] != "original" for condition in conditions):
        return
    for dataset in sets.datasets:
        count = sets.tested_draws(dataset)
        if count > 1:
            text = f"{dataset.name}: results are means over {count} anonymised versions of enrolment and trials."
            yield Found("ok", "trial draws", text)
            continue
        reasons = dict.fromkeys(sets.undrawn[name] for name in dataset.tested if name in sets.undrawn)
        why = f", {few(list(reasons))}" if reasons else ""
        text = f"{dataset.name}: results are of one anonymised version of enrolment and trials{why}: another one may"
        remedy = "Give the anonymiser (anonymizer.name) to have anonymizer.trial_draws of them."
        fixed = any("draws nothing" in reason or "again" in reason for reason in reasons)
        if fixed:
            text = f"{dataset.name}: there is one anonymised version of enrolment and trials{why}."
            yield Found("note", "trial draws", text)
        else:
            yield Found("note", "trial draws", f"{text} give points more or less. {remedy}")
    partial = [condition for condition in conditions if "draws" in condition["notes"]]
    if partial:
        first = partial[0]
        text = f"{len(partial)} conditions lack draws, such as {first['dataset']} {first['scenario']}"
        yield Found("note", "trial draws", f"{text} {first['attacker']}: {first['notes']['draws']}.")
