"""From scores to results: metrics, plots, `results.json` and the table that a recipe ends with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.metrics import effective_prior, evaluate_detection, min_dcf
from evaluation.plots import DetStyle, System, plot_det, plot_likelihood
from evaluation.trials import Key, Scores, split_scores
from spkbase.configuration import to_dict
from spkbase.files import format_table, write_json
from spkbase.runs import Handle, Run, format_status, read_status, versions
from spkver.corpora import Rsr2015, list_hashes
from spkver.mixture import TrainedUbm, schedule_marks
from spkver.rsr2015.lists import Config

logger = logging.getLogger(__name__)


def report(
    recipe: str,
    run: Run,
    config: Config,
    lists: Rsr2015,
    ubm: Handle[TrainedUbm],
    systems: Mapping[str, Handle[Scores]],
) -> str:
    """Do all stages; evaluate systems on the key, plot them, write `results.json` and return the table.

    Where the run is limited to some stages there is no report yet: what is done is returned instead.

    Parameters
    ----------
    recipe : str
        Name of the recipe, for the results.
    run : Run
    config : Config
    lists : Rsr2015
    ubm : Handle of TrainedUbm
    systems : dict of str to Handle of Scores
        Name to scores, in the order of the table.
    """
    if not run.complete():
        return format_status(read_status(run.output))
    scores = {name: system.value for name, system in systems.items()}
    with run.timed("evaluation"):
        results = {name: _evaluate(found, lists.key, config) for name, found in scores.items()}
        plots = _plot(run, config, lists, scores, ubm.value)
    write_json(
        run.path("results.json"),
        {
            "recipe": recipe,
            "config": to_dict(config),
            "versions": versions(),
            "lists": list_hashes(lists),
            "timings": {name: round(seconds, 3) for name, seconds in run.timings.items()},
            "systems": results,
        },
    )
    table = _table(results, lists.key)
    logger.info("results\n%s", table, extra={"file_only": True})
    return f"{table}\n\nDET plot: {plots[0]}\nResults:  {run.path('results.json')}"


def _evaluate(scores: Scores, key: Key, config: Config) -> dict[str, Any]:
    """Metrics of all trials together, and of each pair of a target and a nontarget type."""
    metrics = _metrics(scores, key, config)
    pairs = {}
    for target in config.trials.target:
        for nontarget in config.trials.nontarget:
            pairs[f"{target}-{nontarget}"] = _metrics(scores, key.of_types(target, nontarget), config)
    return {**metrics, "trial_types": pairs}


def _metrics(scores: Scores, key: Key, config: Config) -> dict[str, Any]:
    target, nontarget = split_scores(scores, key)
    cost = min_dcf(
        target, nontarget, p_target=config.report.p_target, c_miss=config.report.c_miss, c_fa=config.report.c_fa
    )
    return {**asdict(evaluate_detection(target, nontarget)), "min_dcf": cost}


def is_synthetic(lists: Rsr2015) -> bool:
    """Whether the corpus was made by `spkver simulate`, which leaves a record at its root."""
    recording = next(iter(lists.recordings.values()))
    return (recording.parents[3] / "simulation.json").is_file()  # root/sph/male/m001/recording


def _title(config: Config, synthetic: bool) -> str:
    corpus = "Synthetic speech in the form of RSR2015" if synthetic else "RSR2015 part 1"
    sex = "male" if config.gender == "m" else "female"
    types = f"{'+'.join(config.trials.target)} against {'+'.join(config.trials.nontarget)}"
    return f"{corpus}, {sex} {config.partition}: {types}"


def _plot(run: Run, config: Config, lists: Rsr2015, systems: dict[str, Scores], ubm: TrainedUbm) -> list[Path]:
    key = lists.key
    paths = [run.path(f"det.{form}") for form in config.report.formats]
    plot_det(
        [System(name, *split_scores(scores, key)) for name, scores in systems.items()],
        path=paths,
        style=DetStyle(window=config.report.window),
        prior=effective_prior(config.report.p_target, config.report.c_miss, config.report.c_fa),
        title=_title(config, is_synthetic(lists)),
    )
    if len(ubm.log_likelihoods):
        plot_likelihood(
            {"UBM": ubm.log_likelihoods},
            run.path("gmm/ubm.png"),
            doublings=schedule_marks(ubm.n_components),
            title="UBM training",
        )
    return paths


def _table(results: dict[str, dict[str, Any]], key: Key) -> str:
    rows = []
    for name, metrics in results.items():
        pairs = metrics["trial_types"] if len(metrics["trial_types"]) > 1 else {}
        for types, values in {"all" if pairs else next(iter(metrics["trial_types"])): metrics, **pairs}.items():
            rows.append(
                {
                    "system": name,
                    "trials": types,
                    "target": values["n_target"],
                    "nontarget": values["n_nontarget"],
                    "EER [%]": 100 * values["eer"],
                    "minDCF SRE08": values["min_dcf_sre08"],
                    "PRBEP": values["prbep"],
                }
            )
    columns = {
        "system": "",
        "trials": "",
        "target": "d",
        "nontarget": "d",
        "EER [%]": ".2f",
        "minDCF SRE08": ".3f",
        "PRBEP": ".1f",
    }
    return format_table(rows, columns)
