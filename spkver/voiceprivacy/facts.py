"""Facts about recordings that the plan needs, found beforehand and kept in files.

    OUTPUT/checks/anonymiser-of-<training set>.json    the anonymiser that was recognised from pairs of recordings
    OUTPUT/checks/pieces-of-<training set>.json        number of pieces into which each recording can be cut

A record in the folder of anonymised speech names the anonymiser. Where there is none, and attackers invert the
anonymisation, the anonymiser is recognised by its effect on a few recordings. Apart from that, no recording is read
before features are extracted: the plan itself reads none, and a later run does not read these again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.attackers import (
    Known,
    TrainingSet,
    count_pieces,
    known_from_record,
    needs_pieces,
    recognised_anonymizer,
    record_of,
    unfit_background,
)
from spkver.datadir import DataDir
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.sets import Sets, stamp_of


@one_line
@dataclass(frozen=True)
class Facts:
    """Facts about recordings that the plan needs.

    Attributes
    ----------
    anonymisers : dict of str to (Known or None)
        By training set, if attackers invert the anonymisation; None if it is unknown or has no inverse.
    pieces : dict of str to dict of str to int
        Number of pieces of each recording, by training set, if most speakers have only one recording.
    """

    anonymisers: Mapping[str, Known | None] = field(default_factory=dict)
    pieces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def find_facts(experiment: Experiment, sets: Sets) -> Facts:
    """Find out what made the anonymised training sets, and into how many pieces their recordings can be cut."""
    experiment.begin("facts")
    run = experiment.run
    anonymisers: dict[str, Known | None] = {}
    pieces: dict[str, Mapping[str, int]] = {}
    with run.timed("facts"):
        for group in sets.rate_groups:
            inverts = any(spec.inverts for spec, _ in group.attackers)
            cuts = any(attacker.learns_from_pieces for _, attacker in group.attackers)
            for name in group.training:
                original = sets.original[name]
                if inverts:
                    anonymisers[name] = _anonymiser(TrainingSet(original, sets.versions[name]), run)
                if cuts and needs_pieces(original):
                    count = partial(count_pieces, original)
                    pieces[name] = run.once(
                        f"pieces of {name}", count, after=[stamp_of(run, original)]
                    )
    experiment.end("facts", _described(anonymisers))
    return Facts(anonymisers, pieces)


def _anonymiser(background: TrainingSet, run: Run) -> Known | None:
    """Return the anonymiser of a training set, from its record or from its effect."""
    if unfit_background(background, ()):
        return None
    original = background.original
    anonymised = background.anonymised[0]
    record = record_of(anonymised)
    if record is not None:
        return known_from_record(record)
    stamps = [stamp_of(run, original), stamp_of(run, anonymised)]
    kept = run.once(
        f"anonymiser of {anonymised.name}",
        partial(_recognised, original, anonymised, run),
        after=stamps,
    )
    if kept is None:
        return None
    low, high = kept["bounds"]
    return Known(kept["anonymizer"], (low, high), kept["source"])


def _recognised(original: DataDir, anonymised: DataDir, run: Run) -> dict[str, Any] | None:
    """Recognise the anonymiser from pairs of recordings; return it in the form of the file."""
    known = recognised_anonymizer(original, anonymised, run.work)
    return None if known is None else asdict(known)


def _described(anonymisers: Mapping[str, Known | None]) -> str:
    """Return a line about the anonymiser of each training set."""
    texts = []
    for name, known in anonymisers.items():
        if known is None:
            texts.append(f"{name}: not known, or without an inverse")
        else:
            texts.append(f"{name}: {known.anonymizer}, from {known.source}")
    return "; ".join(texts) or "no attacker inverts the anonymisation"
