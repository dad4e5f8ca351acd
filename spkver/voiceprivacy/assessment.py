"""The stages that make the numbers: one for each attacker on each set, so that a new attacker adds its own alone.

numbers/<set><suffix>/<attacker>.json    entries of its conditions
conditions<suffix>.json                  all of them, the entries of ``results.json``
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from spkbase.files import file_digest, fingerprint, to_json, write_json
from spkbase.runs import Depends, Draft, Run, Stage, resumed_map
from spkver.voiceprivacy.conditions import Condition
from spkver.voiceprivacy.layout import Scored
from spkver.voiceprivacy.numbers import assess
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import EvaluationConfig

Json = dict[str, Any]
Place = tuple[str, str, str, str]  # set, sex, scenario, attacker

FOLDER = "numbers"
_METHOD = "intervals that hold where errors are few"  # numbers made before by another one are made again
_FORM = "means over draws, closed sets; 2"
_LIBRARIES = ("numpy", "scipy")


def declare_assessment(
    run: Run, conditions: Sequence[Condition], config: EvaluationConfig, *, suffix: str, seed: int
) -> Stage[list[Json]]:
    """Declare the numbers of every condition (``conditions<suffix>.json``), the entries of ``results.json``.

    Conditions are shared out to the workers, and each is kept as soon as it is done.
    """
    groups: dict[tuple[str, str], list[Condition]] = {}
    for condition in conditions:
        groups.setdefault((condition.scored.dataset, condition.scored.attacker), []).append(condition)
    quiet = replace(run, quiet=True)
    parts = [_declare_part(quiet, group, config, suffix=suffix, seed=seed) for group in groups.values()]

    def make(draft: Draft) -> None:
        made = {_place(entry): entry for part in parts for entry in part.value}
        write_json(draft.path, [made[_place(vars(condition.scored))] for condition in conditions])

    return run.stage(
        "evaluation",
        f"conditions{suffix}.json",
        make=make,
        read=_read,
        depends=Depends(inputs=[condition.scored for condition in conditions], after=parts, libraries=()),
    )


def _declare_part(
    run: Run, conditions: Sequence[Condition], config: EvaluationConfig, *, suffix: str, seed: int
) -> Stage[list[Json]]:
    """Declare the numbers of an attacker on a set."""
    scored = [condition.scored for condition in conditions]
    first = scored[0]

    def make(draft: Draft) -> None:
        # the longest first, so that no worker waits for the other in the end
        order = sorted(range(len(scored)), key=lambda row: (scored[row].gender != POOLED, -len(scored[row].further)))
        assessed = resumed_map(
            partial(_assessed, output=run.output, config=config, seed=seed),
            [scored[row] for row in order],
            journal=draft.folder / "conditions.journal",
            fingerprint=fingerprint(draft.fingerprint, order),
            jobs=run.jobs,
            description=f"conditions of {first.attacker} on {first.dataset}",
        )
        found = dict(zip(order, assessed, strict=True))
        write_json(draft.path, [json.loads(found[row]) for row in range(len(scored))])

    return run.stage(
        f"numbers of {first.attacker} on {first.dataset}{suffix}",
        f"{FOLDER}/{first.dataset}{suffix}/{first.attacker}.json",
        make=make,
        read=_read,
        depends=Depends(
            inputs=[scored, _digests(run, scored), config, seed, _METHOD, _FORM],
            after=[stage for condition in conditions for stage in condition.stages],
            libraries=_LIBRARIES,
        ),
    )


def _digests(run: Run, scored: Sequence[Scored]) -> dict[str, str | None]:
    names = ((one.key, f"{one.lists}/utt2spk", f"{one.lists}/spk2gender") for one in scored)
    return {name: file_digest(run.path(name)) for name in dict.fromkeys(chain.from_iterable(names))}


def _place(entry: Mapping[str, Any]) -> Place:
    return entry["dataset"], entry["gender"], entry["scenario"], entry["attacker"]


def _read(path: Path) -> list[Json]:
    conditions: list[Json] = json.loads(path.read_text(encoding="utf-8"))
    return conditions


def _assessed(scored: Scored, *, output: Path, config: EvaluationConfig, seed: int) -> str:
    """What was found of a condition, in the form in which it is kept."""
    return to_json(assess(scored, output=output, config=config, seed=seed))
