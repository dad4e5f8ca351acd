"""What the vectors of the strongest attacker by vectors tell of speakers beside their identity: sex, and what a table
of speakers holds (`utility.attributes`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.embeddings import Embeddings
from evaluation.trials import metadata_columns, read_metadata
from evaluation.uncertainty import Resampling
from evaluation.utility import Sides, attribute_leakage
from spkbase.errors import DataError
from spkbase.files import to_json, write_text
from spkbase.runs import Depends, Draft, Run
from spkver.attackers import Attacker, VectorAttacker, with_pieces
from spkver.datadir import DataDir
from spkver.voiceprivacy.choosing import attacker_name, attacker_specs
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number

logger = logging.getLogger(__name__)

Json = dict[str, Any]

SEX = "sex"
FILE = "attributes.json"
_NO_VOICES = ("prosody", "session")  # vectors of a voice say more of its owner, also where these are ahead
_MISSING = "no attacker by vectors has scores of original speech"


def measure_attributes(
    run: Run,
    sets: Sets,
    config: Config,
    attackers: Sequence[Attacker],
    conditions: Sequence[Json],
    *,
    fitted: Mapping[str, Sequence[Attacker]] | None = None,
) -> Json:
    """Measure what is read of each set from the vectors of the attacker that knows original speech best.

    Parameters
    ----------
    run : Run
    sets : Sets
    config : Config
    attackers : sequence of Attacker
        At work.
    conditions : sequence of dict
        Entries of ``results.json``.
    fitted : mapping of str to sequence of Attacker, optional
        Training sets for which attackers of the same names stand in place of these.

    Returns
    -------
    dict
        ``vectors``, the attacker's name; ``sets`` {set: {attribute: what `Leakage.to_dict` has}}; ``notes``, what could
        not be measured and why.
    """
    rates = original_rates(conditions)
    able = {attacker.name: attacker for attacker in attackers if isinstance(attacker, VectorAttacker)}
    known = [name for name in able if name in rates]
    presets = {attacker_name(entry): spec for entry, spec in attacker_specs(config).items()}
    known = [name for name in known if presets.get(name) not in _NO_VOICES] or known
    if not known:
        return {"vectors": None, "sets": {}, "notes": [_MISSING]}
    attacker = able[min(known, key=lambda name: rates[name])]
    able_in = {
        training: other
        for training, others in (fitted or {}).items()
        for other in others
        if isinstance(other, VectorAttacker) and other.name == attacker.name
    }
    tables = _tables(config.utility.attributes)
    resampling = Resampling(config.evaluation.replicates, config.seed, config.evaluation.level)
    directories = {
        f"{kind} {name}": directory
        for dataset in sets.datasets
        for name in (*dataset.trials.values(), dataset.training)
        for kind, of in (("original", sets.original), ("anonymised", sets.twins))
        if (directory := of.get(name)) is not None
    }

    def make(draft: Draft) -> None:
        measured: Json = {"vectors": attacker.name, "sets": {}, "notes": []}
        for dataset in sets.datasets:
            try:
                theirs = able_in.get(dataset.training, attacker)
                found, notes = _of_set(dataset, sets, theirs, tables, resampling)
            except DataError as error:  # the rest of the report stands without it
                found, notes = {}, [f"{dataset.name}: not measured: {error.text}"]
            measured["sets"][dataset.name] = found
            measured["notes"] += notes
        write_text(draft.path, to_json(measured) + "\n")

    labels = {name: [sorted(of.speakers.items()), sorted(of.genders.items())] for name, of in directories.items()}
    settings = [attacker.name, attacker.depends, tables, labels, vars(resampling), config.seed]
    settings += [{training: other.depends for training, other in able_in.items()}] if able_in else []
    sources = {f"{kind} {name}": path for kind, of in directories.items() for name, path in of.recordings.items()}
    depends = Depends(inputs=settings, sources=sources, libraries=("numpy", "scipy", "scikit-learn", "soundfile"))
    stage = run.stage("attributes", FILE, make=make, read=_read, depends=depends)
    with run.timed("attributes"):
        return stage.value


def original_rates(conditions: Sequence[Json]) -> dict[str, float]:
    """Return the mean EER of each attacker on original speech, over sets and sexes."""
    rates: dict[str, list[float]] = {}
    for condition in conditions:
        if condition["scenario"] == "original":
            rates.setdefault(condition["attacker"], []).append(number(condition["eer"]["rocch"]))
    return {name: float(np.mean(of)) for name, of in rates.items()}


def _of_set(
    dataset: Dataset,
    sets: Sets,
    attacker: VectorAttacker,
    tables: Mapping[str, Mapping[str, str]],
    resampling: Resampling,
) -> tuple[Json, list[str]]:
    """What is read of the speakers of a set, attribute by attribute, and what could not be."""
    names = tuple(dataset.trials.values())
    training = sets.original[dataset.training], sets.twins.get(dataset.training)
    source = attacker.open_source((training[0],))
    tested = [_together([source.vectors(of[name]) for name in names]) for of in (sets.original, sets.twins)]
    sexes = {
        speaker: sex for name in (*names, dataset.training) for speaker, sex in sets.original[name].genders.items()
    }
    learning: Sides | None = None
    found, notes = {}, []
    for name, labels in {SEX: sexes, **tables}.items():
        training_speakers = set(training[0].speakers.values())
        try:
            if len({labels[speaker] for speaker in training_speakers if labels.get(speaker)}) < 2:
                leakage = attribute_leakage(Sides(*tested), labels, missing="drop", resampling=resampling)
            else:
                if learning is None:  # vectors of the training set are there where its pieces were learnt from
                    learning = Sides(*[_vectors(source, side, attacker) for side in training if side is not None])
                given: Json = {"training": learning, "missing": "drop", "resampling": resampling}
                leakage = attribute_leakage(Sides(*tested), labels, **given)
            found[name] = leakage.to_dict()
        except DataError as error:
            notes.append(f"{dataset.name}, {name}: not measured: {error.text}")
    return found, notes


def _vectors(source: Any, training: DataDir, attacker: VectorAttacker) -> Embeddings:
    return source.vectors(with_pieces((training,), attacker.place)[0])


def _together(parts: Sequence[Embeddings]) -> Embeddings:
    """Vectors of several data directories; an utterance that is in two counts once."""
    first: dict[str, tuple[str, Any]] = {}
    for part in parts:
        for name, speaker, vector in zip(part.ids.tolist(), part.speakers.tolist(), part.vectors, strict=True):
            first.setdefault(name, (speaker, vector))
    owners, vectors = zip(*first.values(), strict=True)
    return Embeddings(np.array(list(first), object), np.array(owners, object), np.stack(vectors))


def _tables(file: str | None) -> dict[str, dict[str, str]]:
    return {} if file is None else {column: read_metadata(file, column) for column in metadata_columns(file)}


def _read(path: Path) -> Json:
    found: Json = json.loads(path.read_text(encoding="utf-8"))
    return found
