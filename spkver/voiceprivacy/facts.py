"""What attackers that invert the anonymisation know about the anonymiser of each training set.

    OUTPUT/checks/anonymiser-of-<training set>.json    what was recognised in pairs of recordings

A record in the folder of the anonymised speech names the anonymiser. Where there is none, it is recognised by what it
did to a few recordings: the one look at speech before features are extracted. It is kept, so that the plan and later
runs read no recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from spkbase.runs import Run
from spkver.attackers import (
    Known,
    TrainingSet,
    known_from_record,
    recognised_anonymizer,
    record_of,
    unfit_background,
)
from spkver.datadir import DataDir
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.sets import Sets, stamp_of


def recognise_anonymiser(experiment: Experiment, sets: Sets) -> dict[str, Known | None]:
    """Find out what made the anonymised training sets whose attackers invert the anonymisation.

    Returns
    -------
    dict of str to (Known or None)
        By the name of the training set; None if the anonymiser is not known, or has no inverse.
    """
    experiment.begin("recognition")
    known: dict[str, Known | None] = {}
    with experiment.run.timed("recognition"):
        for group in sets.rate_groups:
            if not any(spec.inverts for spec, _ in group.attackers):
                continue
            for name in group.training:
                background = TrainingSet(sets.original[name], sets.versions[name])
                known[name] = None if unfit_background(background, ()) else _known(background, experiment.run)
    experiment.end("recognition", _described(known))
    return known


def _known(background: TrainingSet, run: Run) -> Known | None:
    """Return the anonymiser of a training set, from its record or from what it did."""
    original = background.original
    anonymised = background.anonymised[0]
    record = record_of(anonymised)
    if record is not None:
        return known_from_record(record)
    stamps = [stamp_of(run, original), stamp_of(run, anonymised)]
    kept = run.once(f"anonymiser of {anonymised.name}", partial(_recognised, original, anonymised, run), after=stamps)
    if kept is None:
        return None
    low, high = kept["bounds"]
    return Known(kept["anonymizer"], (low, high), kept["source"])


def _recognised(original: DataDir, anonymised: DataDir, run: Run) -> dict[str, Any] | None:
    """Return a recognised anonymiser as a file keeps it."""
    known = recognised_anonymizer(original, anonymised, run.work)
    return None if known is None else asdict(known)


def _described(known: Mapping[str, Known | None]) -> str:
    """Return a line about each training set."""
    texts = []
    for name, anonymiser in known.items():
        if anonymiser is None:
            texts.append(f"{name}: not known, or without an inverse")
        else:
            texts.append(f"{name}: {anonymiser.anonymizer}, from {anonymiser.source}")
    return "; ".join(texts) or "no attacker inverts the anonymisation"
