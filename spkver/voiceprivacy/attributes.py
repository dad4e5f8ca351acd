"""Attributes of speakers that vectors of the strongest vector attacker reveal besides identity.

They are sex, and the columns of a table of speakers (`utility.attributes` of the configuration).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import utility as measures
from evaluation.embeddings import Embeddings
from evaluation.trials import metadata_columns, read_metadata
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.files import load_json, write_json
from spkbase.runs import Run
from spkver.attackers import Attacker, VectorAttacker, with_pieces
from spkver.datadir import DataDir
from spkver.voiceprivacy.choosing import attacker_specs
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.table import rate_of

Json = dict[str, Any]

_COLUMNS = ("ids", "speakers", "vectors")
_NO_VOICES = ("prosody", "session")  # voice vectors say more of the speaker, also where these are stronger


def measure_attributes(
    run: Run, sets: Sets, config: Config, attackers: Mapping[str, Sequence[Attacker]], rows: Sequence[Json]
) -> Json:
    """Measure the attributes revealed by vectors of the attacker that is strongest on original speech.

    Parameters
    ----------
    run : Run
    sets : Sets
    config : Config
    attackers : mapping of str to sequence of Attacker
        At work, for each training set.
    rows : sequence of dict
        Of the table of results.

    Returns
    -------
    dict
        ``vectors``, the attacker's name; ``sets`` {set: {attribute: what `Leakage.to_dict` has}}; ``notes``, what could
        not be measured and why.
    """
    rates: dict[str, list[float]] = {}  # on original speech, over sets and sexes
    for row in rows:
        if row["scenario"] == "original":
            rates.setdefault(row["attacker"], []).append(rate_of(row))
    able: dict[str, dict[str, VectorAttacker]] = {}
    for training, crew in attackers.items():
        for one in crew:
            if isinstance(one, VectorAttacker) and one.name in rates:
                able.setdefault(one.name, {})[training] = one
    specs = attacker_specs(config)
    known = [name for name in able if specs.get(name) not in _NO_VOICES] or list(able)
    if not known:
        return {"vectors": None, "sets": {}, "notes": ["no vector attacker has scores of original speech"]}
    best = min(known, key=lambda name: np.mean(rates[name]))
    tables = read_tables(config.utility.attributes)
    resampling = Resampling(config.evaluation.resamples, config.seed, config.evaluation.level)

    def make(path: Path) -> None:
        found: Json = {one.name: {} for one in sets.datasets}
        notes: list[str] = []
        for dataset in sets.datasets:
            try:
                _measure(dataset, sets, able[best][dataset.training], tables, resampling, found[dataset.name], notes)
            except DataError as error:  # the rest of the report stands without it
                found[dataset.name] = {}
                notes.append(f"{dataset.name}: not measured: {error.text}")
        write_json(path, {"vectors": best, "sets": found, "notes": notes})

    directories = {
        f"{kind} {name}": of[name]
        for dataset in sets.datasets
        for name in (*dataset.trials.values(), dataset.training)
        for kind, of in (("original", sets.original), ("anonymised", sets.twins))
        if name in of
    }
    labels = {name: [sorted(of.speakers.items()), sorted(of.sexes.items())] for name, of in directories.items()}
    depends = {training: one.depends for training, one in able[best].items()}
    speech = {f"{kind} {name}": path for kind, of in directories.items() for name, path in of.recordings.items()}
    with run.timed("attributes"):
        stage = run.stage(
            "attributes",
            "attributes.json",
            make=make,
            read=load_json,
            inputs=[best, depends, tables, labels, vars(resampling), config.seed],
            sources=speech,
            libraries=("numpy", "scipy", "scikit-learn", "soundfile"),
        )
        return dict(stage.value)


def _measure(
    dataset: Dataset,
    sets: Sets,
    attacker: VectorAttacker,
    tables: Mapping[str, Mapping[str, str]],
    resampling: Resampling,
    found: Json,
    notes: list[str],
) -> None:
    """Add the attributes of the speakers of a set to `found`, and notes on those not measured."""
    trials, training = tuple(dataset.trials.values()), sets.original[dataset.training]
    source = attacker.source((training,))

    def vectors(of: Mapping[str, DataDir]) -> Embeddings:
        """Vectors of all lists of trials; an utterance that is in two counts once."""
        parts = [source.vectors(of[name]) for name in trials]
        ids, speakers, values = (np.concatenate([vars(part)[key] for part in parts]) for key in _COLUMNS)
        first = np.sort(np.unique(ids.astype(str), return_index=True)[1])
        return Embeddings(ids[first], speakers[first], values[first])

    tested = measures.Sides(vectors(sets.original), vectors(sets.twins))
    sexes = {speaker: sex for name in (*trials, dataset.training) for speaker, sex in sets.original[name].sexes.items()}
    learning: measures.Sides | None = None
    for name, labels in {"sex": sexes, **tables}.items():
        how: Json = {"missing": "drop", "resampling": resampling}
        try:
            if len({labels[speaker] for speaker in set(training.speakers.values()) if labels.get(speaker)}) > 1:
                if learning is None:  # vectors of the training set are there where its pieces were learnt from
                    pieces = [with_pieces((side,), attacker.place)[0] for side in sets.pair(dataset.training)]
                    learning = measures.Sides(*map(source.vectors, pieces))
                how["training"] = learning
            found[name] = measures.attribute_leakage(tested, labels, **how).to_dict()
        except DataError as error:
            notes.append(f"{dataset.name}, {name}: not measured: {error.text}")


def read_tables(file: str | None) -> dict[str, dict[str, str]]:
    """Return the columns of a table of speakers by their names, see `UtilityConfig.attributes`."""
    return {} if file is None else {column: read_metadata(file, column) for column in metadata_columns(file)}
