"""How the semi-informed equal error rate falls with the number of anonymised versions of the training set.

Of each set the strongest attacker learns again from the first version alone, from the first two, four and so on, and
scores the same trials. It is one that keeps to its scenario and learns from its training set here: no fusion, and none
that came in by a door.

OUTPUT/training_draws/<set><suffix>.json    the rates of each draw of the trials, by number of versions
OUTPUT/training_draws/<number>/             what was learnt from so many, and its scores, named as in OUTPUT itself
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    Chosen,
    Condition,
    ScoreTable,
    attacks_of,
    declare_scores,
    joined,
    put_to_work,
    reason_of,
)
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets

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
    experiment: Experiment, sets: Sets, scores: ScoreTable, conditions: Sequence[Json]
) -> list[Json]:
    """Measure the equal error rate by the number of versions of the training set, of each set that has several.

    Parameters
    ----------
    experiment : Experiment
    sets : Sets
    scores : ScoreTable
    conditions : sequence of dict
        Their numbers, the entries of ``results.json``.

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
        able = able_attackers(experiment, sets, scores, dataset.training) if total > 1 else {}
        entry = _strongest(able, dataset, conditions)
        if entry is None:
            continue
        rates: Rates = {}
        note = None
        try:
            names = ("dataset", "gender", "scenario", "attacker")
            places = ((tuple(getattr(one.scored, name) for name in names), one) for one in scores.conditions)
            condition = dict(places)[tuple(entry[name] for name in names)]
            rates = _measure(experiment, sets, dataset, condition, able[entry["attacker"]], total)
        except Exception as error:  # whatever it is: all else that was asked for is there
            note = " ".join(reason_of(error).split())
            logger.warning("%s: no rates by number of training draws: %s", dataset.name, note)
            logger.info("%s", dataset.name, exc_info=error, extra={"file_only": True})
        rates = {**rates, str(total): [of_draw["eer"]["rocch"] for of_draw in entry["draws"]]}
        place = {name: entry[name] for name in ("dataset", "gender", "attacker")}
        means = {count: mean_of(of_draws) for count, of_draws in rates.items()}
        found.append({**place, "eer": means, "draws": rates, "note": note})
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


def _strongest(able: Collection[str], dataset: Dataset, conditions: Sequence[Json]) -> Json | None:
    """The entry of the strongest attacker that can learn again; None where there is none."""
    gender = POOLED if len(dataset.trials) > 1 else next(iter(dataset.trials))
    place = (dataset.name, gender, SCENARIO)
    known = [
        entry
        for entry in conditions
        if (entry["dataset"], entry["gender"], entry["scenario"]) == place
        and entry["level"] != INVERTING
        and entry["attacker"] in able
    ]
    return strongest(known) if known else None


def able_attackers(experiment: Experiment, sets: Sets, scores: ScoreTable, training: str) -> dict[str, Chosen]:
    """Return the attackers that learn here from a training set: classic ones and those by vectors, by name.

    Their features are those that fit the rates of its recordings.
    """
    heard = [heard.attackers for heard in sets.heard if training in heard.training]
    own = {
        attacker_name(entry)
        for entry, spec in attacker_specs(experiment.config).items()
        if not is_outside(spec) or find_row(spec) is not None
    }
    by_vectors = {one.name for one in scores.attackers[training] if isinstance(one, VectorAttacker)}
    return {
        chosen.name: chosen
        for chosen in (heard[0] if heard else experiment.attackers)
        if chosen.name in own and (isinstance(chosen, AttackerConfig) or chosen.name in by_vectors)
    }


def _measure(
    experiment: Experiment, sets: Sets, dataset: Dataset, condition: Condition, chosen: Chosen, total: int
) -> Rates:
    """Measure the rates of an attacker that learns from fewer versions than there are."""
    run, suffix, scored = experiment.at("evaluation"), experiment.suffix, condition.scored
    counts = smaller_counts(total)
    stage: Stage[Rates] = run.declare(
        f"training draws of {dataset.name}{suffix}",
        f"{FOLDER}/{dataset.name}{suffix}.json",
        read=load_json,
        # what scores depend on is in the stages; those of fewer versions depend on nothing else
        inputs=[_METHOD, scored, counts, file_digest(run.path(scored.key)), experiment.config.seed],
        after=condition.stages,
        libraries=("numpy", "scipy"),
    )
    if stage.is_due and not run.frozen:
        attacks = [
            (draw, attack)
            for of_set, _, scenario, draw, attack in attacks_of(sets, suffix)
            if of_set == dataset and scenario.name == SCENARIO and draw in scored.draws
        ]
        seed = experiment.config.seed
        with run.timed(stage.name):
            rates = {str(count): _rates(chosen, run, condition, attacks, seed=seed, count=count) for count in counts}
        stage.bring_up_to_date(lambda path: write_json(path, rates))
    return stage.value


def _rates(
    chosen: Chosen,
    run: Run,
    condition: Condition,
    attacks: Sequence[tuple[int, Attack]],
    *,
    seed: int,
    count: int,
) -> list[float]:
    """The equal error rate in each draw of the trials of an attacker that learns from so many versions.

    It works in a folder of its own, where what is done is kept; features and vectors are those of the run.
    """
    scored = condition.scored
    folder = f"{FOLDER}/{count}"
    below = replace(run, quiet=True).below(folder)
    attacker = put_to_work(run, [chosen], seed, learnt=below.output)[0]
    found: dict[int, list[Scores]] = {draw: [] for draw in scored.draws}
    speech: dict[DataDir, Stamp] = {}
    scorer: Scorer | None = None
    for draw, attack in attacks:
        attack = fewer_versions(attack, count)
        stage = declare_scores(below, attack, attacker, seed=seed, speech=speech, place=f"{folder}/")
        if stage.is_due:
            scorer = scorer or attacker.learn(attack)
            stage.bring_up_to_date(partial(write_scores, scores=scorer(attack)))
        found[draw].append(stage.value)
    run.tell("%s: %s from %d version%s", scored.dataset, attacker.name, count, "s" if count > 1 else "")
    key = read_key(run.path(scored.key))
    return [eer(*split_scores(joined(lists), key)) for lists in found.values()]
