"""How the semi-informed equal error rate falls with the number of anonymised versions of the training set.

Of each set the strongest attacker learns again from the first version alone, from the first two, four and so on, and
scores the same trials. It is one that keeps to its scenario and learns from its training set here: no fusion, and none
that came in by a door.

OUTPUT/training_draws/<set><suffix>.json    the rates of each draw of the trials, by number of versions
OUTPUT/training_draws/<number>/             what was learnt from so many, and its scores, named as in OUTPUT itself
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.formats import read_key, write_scores
from evaluation.metrics import eer
from evaluation.reports import INVERTING, strongest
from evaluation.trials import Scores, split_scores
from spkbase.files import file_digest, load_json, write_json
from spkbase.runs import Run, Stage, Stamp
from spkver.attackers import Attack, AttackerConfig, Background, Scorer, VectorAttacker, find_row, is_outside
from spkver.datadir import DataDir
from spkver.voiceprivacy.choosing import attacker_name, attacker_specs
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.numbers import mean_of
from spkver.voiceprivacy.scores import (
    Attackers,
    Chosen,
    Condition,
    ScoreTable,
    attacks_of,
    declare_scores,
    joined,
    put_to_work,
    reason_of,
)
from spkver.voiceprivacy.sets import Dataset, Sets
from spkver.voiceprivacy.table import Table, main_places, place

logger = logging.getLogger(__name__)

Json = dict[str, Any]
Rates = dict[str, list[float]]

FOLDER = "training_draws"
SCENARIO = "semi-informed"
_METHOD = "the first versions alone, rates by the hull"


def smaller_counts(total: int) -> list[int]:
    """Return the numbers of versions below `total` that an attacker learns from: each twice the one before it.

    Examples
    --------
    >>> smaller_counts(4), smaller_counts(6), smaller_counts(1)
    ([1, 2], [1, 2, 4], [])
    """
    return [2**power for power in range(max(total - 1, 0).bit_length())]


def fewer_versions(attack: Attack, count: int) -> Attack:
    """Return an attack by one who has the first `count` anonymised versions of the training set alone."""
    background = attack.background
    if background is not None:
        background = Background(background.original, background.anonymised[:count])
    return replace(attack, training=attack.training[:count], background=background)


def measure_training_draws(
    experiment: Experiment, run: Run, sets: Sets, attackers: Attackers, table: Table, scores: ScoreTable
) -> list[Json]:
    """Measure the equal error rate by the number of versions of the training set, of each set that has several.

    Parameters
    ----------
    experiment : Experiment
    run : Run
        As the step sees it.
    sets : Sets
    attackers : Attackers
    table : Table
    scores : ScoreTable

    Returns
    -------
    list of dict
        ``dataset``, ``gender``, ``attacker``; ``eer`` and ``draws``, by number of versions the rate and that of each
        draw of the trials; ``note``, why smaller numbers have none, or None. A failure ends nothing else, and is tried
        again by the next run.
    """
    found = []
    for dataset in sets.datasets if experiment.config.evaluation.by_training_draws else ():
        total = 1 + len(sets.draws.get(dataset.training, ()))
        able = able_attackers(experiment, sets, attackers, dataset.training) if total > 1 else {}
        known = [
            row
            for at, part in main_places(table.rows).items()
            for row in part
            if (at[0], at[2]) == (dataset.name, SCENARIO) and row["level"] != INVERTING and row["attacker"] in able
        ]
        if not known:
            continue
        best = strongest([row for row in known if row["gender"] == known[0]["gender"]])
        rates: Rates = {}
        note = None
        try:
            condition = next(one for one in scores.conditions if place(vars(one)) == place(best))
            rates = _measure(experiment, run, sets, dataset, condition, able[best["attacker"]], smaller_counts(total))
        except Exception as error:  # whatever it is: all else that was asked for is there
            note = " ".join(reason_of(error).split())
            logger.warning("%s: no rates by number of training draws: %s", dataset.name, note)
            logger.info("%s", dataset.name, exc_info=error, extra={"file_only": True})
        rates = {**rates, str(total): [of_draw["eer"]["rocch"] for of_draw in best["draws"]]}
        where = {name: best[name] for name in ("dataset", "gender", "attacker")}
        means = {count: mean_of(of_draws) for count, of_draws in rates.items()}
        found.append({**where, "eer": means, "draws": rates, "note": note})
    return found


def tell_training_draws(measured: Sequence[Mapping[str, Any]]) -> str:
    """Return in a line what was measured; nothing where nothing was.

    Examples
    --------
    >>> tell_training_draws([{"dataset": "libri_test", "attacker": "campplus", "eer": {"1": 0.063, "4": 0.019}}])
    'Semi-informed EER by anonymised versions learnt from: libri_test (campplus) 6.3 % with 1, 1.9 % with 4.'
    """
    parts = [
        f"{entry['dataset']} ({entry['attacker']}) "
        + ", ".join(f"{100 * rate:.1f} % with {count}" for count, rate in entry["eer"].items())
        for entry in measured
        if len(entry["eer"]) > 1
    ]
    return f"Semi-informed EER by anonymised versions learnt from: {'; '.join(parts)}." if parts else ""


def able_attackers(experiment: Experiment, sets: Sets, attackers: Attackers, training: str) -> dict[str, Chosen]:
    """Return the attackers that learn here from a training set: classic ones and those by vectors, by name.

    Their features are those that fit the rates of its recordings.
    """
    heard = [heard.attackers for heard in sets.heard if training in heard.training]
    specs = attacker_specs(experiment.config).items()
    own = {attacker_name(entry) for entry, spec in specs if not is_outside(spec) or find_row(spec) is not None}
    by_vectors = {one.name for one in attackers.by_training[training] if isinstance(one, VectorAttacker)}
    return {
        chosen.name: chosen
        for chosen in (heard[0] if heard else experiment.attackers)
        if chosen.name in own and (isinstance(chosen, AttackerConfig) or chosen.name in by_vectors)
    }


def _measure(
    experiment: Experiment,
    run: Run,
    sets: Sets,
    dataset: Dataset,
    condition: Condition,
    chosen: Chosen,
    counts: Sequence[int],
) -> Rates:
    """Measure the rates of an attacker that learns from fewer versions than there are.

    For each number it works in a folder of its own, where what is done is kept; features and vectors are those of the
    run.
    """
    seed, suffix, key = experiment.config.seed, experiment.suffix, run.path(f"{condition.lists}/trials")

    def rates_from(count: int) -> list[float]:
        folder = f"{FOLDER}/{count}"
        below = replace(run, quiet=True).below(folder)
        attacker = put_to_work(run, [chosen], seed, learnt=below.output)[0]
        found: dict[int, list[Scores]] = {draw: [] for draw in condition.scores}
        speech: dict[DataDir, Stamp] = {}
        scorer: Scorer | None = None
        for of_set, _, scenario, draw, attack in attacks_of(sets, suffix):
            if of_set == dataset and scenario.name == SCENARIO and draw in found:
                attack = fewer_versions(attack, count)
                stage = declare_scores(below, attack, attacker, seed=seed, speech=speech, place=f"{folder}/")
                if stage.is_due:
                    scorer = scorer or attacker.learn(attack)
                    stage.bring_up_to_date(partial(write_scores, scores=scorer(attack)))
                found[draw].append(stage.value)
        run.tell("%s: %s from %d version%s", dataset.name, attacker.name, count, "s" if count > 1 else "")
        return [eer(*split_scores(joined(lists), read_key(key))) for lists in found.values()]

    def make(path: Path) -> None:
        write_json(path, {str(count): rates_from(count) for count in counts})

    stage: Stage[Rates] = run.stage(
        f"training draws of {dataset.name}{suffix}",
        f"{FOLDER}/{dataset.name}{suffix}.json",
        make=make,
        read=load_json,
        # what scores depend on is in their fingerprints; those of fewer versions depend on nothing else
        inputs=[_METHOD, condition, counts, file_digest(key), seed],
        libraries=("numpy", "scipy"),
    )
    return stage.value
