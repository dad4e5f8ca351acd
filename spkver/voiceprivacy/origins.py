"""What the scores of the rows of a plan depend on: recordings, attackers, trials, the seed, and other scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, get_args

from spkbase.runs import Run, Stamp
from spkver.attackers import METHOD
from spkver.datadir import DataDir
from spkver.voiceprivacy.rows import Kind, Row
from spkver.voiceprivacy.sets import stamp_of
from spkver.voiceprivacy.speech import Speech


def origins_of(
    run: Run, rows: Sequence[Row], speech: Speech, records: Mapping[str, Any], *, seed: int
) -> dict[str, Stamp]:
    """Return all that the scores of rows depend on, by the id of the row; members come before their fusion.

    Parameters
    ----------
    run : Run
    rows : sequence of Row
    speech : Speech
    records : mapping of str to object
        All that the attacker of a single row depends on besides speech, trials and seed, by the id of the row.
    seed : int
    """
    stamp = cache(partial(stamp_of, run))  # each directory is examined once
    origins: dict[str, Stamp] = {}
    for kind in get_args(Kind):
        for row in rows:
            if row.kind != kind:
                continue
            title = f"scores of {row.attacker} in {row.list_name}"
            members = [origins[name] for name in row.members]
            if kind == "pooled":
                origins[row.id] = run.origin(title, after=members)
            elif kind == "conversation":
                parts = speech.dealt[row.trials].parts(row.draw, len(members))
                origins[row.id] = run.origin(title, inputs=parts, after=members)
            elif kind == "fusion":
                background = speech.backgrounds[row.background]
                both = map(stamp, (background.original, *background.anonymised))
                inputs = [METHOD, seed, row.folds]
                origins[row.id] = run.origin(
                    title, inputs=inputs, after=[*members, *both], libraries=("numpy", "scipy")
                )
            else:
                origins[row.id] = run.origin(
                    title,
                    inputs=_inputs(row, speech, records[row.id], seed),
                    after=[stamp(directory) for directory in dict.fromkeys(_used(row, speech))],
                    libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
                )
    return origins


def _inputs(row: Row, speech: Speech, record: Any, seed: int) -> list[Any]:
    """Return what the scores of a single attacker depend on besides recordings."""
    attack = speech.attack(row)
    if row.inversion:
        record = {"inversion": speech.inversions[row.background].record, "base": record}
    inputs = [record, seed, attack.trials]
    if row.utterances > 1:
        inputs.append(attack.conversations)
    if row.fold:
        inputs += [attack.scenario, sorted(set(attack.training.versions[0].speakers.values()))]
    return inputs


def _used(row: Row, speech: Speech) -> list[DataDir]:
    """Return the directories that the scores of a single attacker depend on.

    The trials of a fold come from the background.
    """
    attack = speech.attack(row)
    background = speech.background(row.fold_kind) if row.fold else attack.training
    used = list(background.versions)
    if row.inversion:
        used = [background.original, *background.anonymised]
    if not row.fold:
        used += [*attack.enrolment, *attack.tests]
    return used
