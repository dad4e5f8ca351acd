"""How the semi-informed equal error rate falls with the number of anonymised versions of the training set.

Of each set the strongest attacker learns again from the first version alone, from the first two, four and so on, and
scores the same trials. It is one that keeps to its scenario and learns from its training set here: no fusion, and none
that came in by a door.

OUTPUT/training_draws/<set><suffix>.json    the rates of each draw of the trials, by number of versions
OUTPUT/training_draws/<number>/             what was learnt from so many, and its scores, named as in OUTPUT itself
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.formats import read_key
from evaluation.metrics import eer
from evaluation.reports import INVERTING, strongest
from evaluation.trials import split_scores
from spkbase.files import file_digest, write_json
from spkbase.runs import Run, Stage
from spkver.attackers import Attack, AttackerConfig, Background, VectorAttacker, find_row, is_outside
from spkver.voiceprivacy.choosing import attacker_name, attacker_specs
from spkver.voiceprivacy.conditions import Chosen, Condition, ScoreMaker, attacks_of, declare_attackers, joined
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.making import reason_of
from spkver.voiceprivacy.numbers import mean_of
from spkver.voiceprivacy.sanity_audio import Evaluated, Found
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
    experiment: Experiment, sets: Sets, scores: Sequence[Condition], conditions: Sequence[Json]
) -> list[Json]:
    """Measure the equal error rate by the number of versions of the training set, of each set that has several.

    Parameters
    ----------
    experiment : Experiment
    sets : Sets
    scores : sequence of Condition
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
        entry = _strongest(experiment, dataset, conditions) if total > 1 else None
        if entry is None:
            continue
        rates: Rates = {}
        note = None
        try:
            rates = _declare(experiment, sets, dataset, _condition_of(entry, scores), total).value
        except Exception as error:  # whatever it is: all else that was asked for is there
            note = " ".join(reason_of(error).split())
            logger.warning("%s: no rates by number of training draws: %s", dataset.name, note)
            logger.info("%s", dataset.name, exc_info=error, extra={"file_only": True})
        rates = {**rates, str(total): [of_draw["eer"]["rocch"] for of_draw in entry["draws"]]}
        place = {name: entry[name] for name in ("dataset", "gender", "attacker")}
        means = {count: mean_of(of_draws) for count, of_draws in rates.items()}
        found.append({**place, "eer": means, "draws": rates, "note": note})
    return found


def training_draw_gaps(given: Evaluated) -> Iterator[Found]:
    """Note each set whose rates by number of versions could not be measured."""
    text = "{dataset}: {attacker} has no rate from fewer versions of the training set: {note}"
    for entry in given.outcome.training_draws:
        if entry["note"]:
            yield Found("note", "training draws", text.format(**entry))


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


def _strongest(experiment: Experiment, dataset: Dataset, conditions: Sequence[Json]) -> Json | None:
    """The entry of the strongest attacker that can learn again; None where there is none."""
    able = able_attackers(experiment, dataset.training)
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


def able_attackers(experiment: Experiment, training: str) -> dict[str, Chosen]:
    """Return the attackers that learn here from a training set: classic ones and those by vectors, by name.

    Their features are those that fit the rates of its recordings.
    """
    heard = [heard.attackers for heard in experiment.outcome.heard if training in heard.training]
    own = {
        attacker_name(entry)
        for entry, spec in attacker_specs(experiment.config).items()
        if not is_outside(spec) or find_row(spec) is not None
    }
    by_vectors = {one.name for one in experiment.outcome.attackers if isinstance(one, VectorAttacker)}
    return {
        chosen.name: chosen
        for chosen in (heard[0] if heard else experiment.attackers)
        if chosen.name in own and (isinstance(chosen, AttackerConfig) or chosen.name in by_vectors)
    }


def _condition_of(entry: Mapping[str, Any], scores: Sequence[Condition]) -> Condition:
    names = ("dataset", "gender", "scenario", "attacker")
    return next(one for one in scores if all(getattr(one.scored, name) == entry[name] for name in names))


def _declare(experiment: Experiment, sets: Sets, dataset: Dataset, condition: Condition, total: int) -> Stage[Rates]:
    """Declare the rates of an attacker that learns from fewer versions than there are."""
    run, suffix, scored = experiment.at("evaluation"), experiment.suffix, condition.scored
    counts = smaller_counts(total)

    def make(path: Path) -> None:
        attacks = {
            (draw, gender): attack
            for of_set, gender, scenario, draw, attack in attacks_of(sets, suffix)
            if of_set == dataset and scenario.name == SCENARIO and draw in scored.draws
        }
        chosen = able_attackers(experiment, dataset.training)[scored.attacker]
        seed = experiment.config.seed
        rates = {str(count): _rates(chosen, run, condition, attacks, seed=seed, count=count) for count in counts}
        write_json(path, rates)

    return run.declare(
        f"training draws of {dataset.name}{suffix}",
        f"{FOLDER}/{dataset.name}{suffix}.json",
        make=make,
        read=_read,
        # what scores depend on is in the stages; those of fewer versions depend on nothing else
        inputs=[_METHOD, scored, counts, file_digest(run.path(scored.key)), experiment.config.seed],
        after=condition.stages,
        libraries=("numpy", "scipy"),
    )


def _rates(
    chosen: Chosen,
    run: Run,
    condition: Condition,
    attacks: Mapping[tuple[int, str], Attack],
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
    attacker = declare_attackers(run, [chosen], seed, learnt=below.output)[0]
    maker, key = ScoreMaker(below, seed, place=f"{folder}/"), read_key(run.path(scored.key))
    rates = []
    for draw in scored.draws:
        of_sexes = [fewer_versions(attack, count) for (number, _), attack in attacks.items() if number == draw]
        scores = joined([maker.stage(attack, attacker).value for attack in of_sexes])
        rates.append(eer(*split_scores(scores, key)))
    run.tell("%s: %s from %d version%s", scored.dataset, attacker.name, count, "s" if count > 1 else "")
    return rates


def _read(path: Path) -> Rates:
    rates: Rates = json.loads(path.read_text(encoding="utf-8"))
    return rates
