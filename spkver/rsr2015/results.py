"""From figures to the report of a recipe: plots, `results.json` and the table that is printed at its end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import reports
from evaluation.linkage import Curve
from evaluation.metrics import d_sys, effective_prior
from evaluation.plots import plot_det, plot_histogram, plot_likelihood, plot_linkability, plot_zebra
from evaluation.reports import Condition
from evaluation.trials import Scores, split_scores
from spkbase.configuration import to_dict
from spkbase.files import file_digest, format_table, load_json, write_json
from spkbase.runs import REPORT, Run, Stage
from spkbase.version import versions
from spkver.corpora import Rsr2015, is_simulated, list_hashes
from spkver.mixture import TrainedUbm, schedule_marks
from spkver.rsr2015.lists import RecipeConfig
from spkver.rsr2015.measures import Speakers, SystemResult, measure, pairs_of_types

logger = logging.getLogger(__name__)

_SHOWN = 3  # largest number of systems with histograms and bands; with more, there is one histogram and no bands

_COLUMNS = {
    "system": "",
    "trials": "",
    "target": "d",
    "nontarget": "d",
    "EER [%]": ".2f",
    "minDCF SRE08": ".3f",
    "PRBEP": ".1f",
    "EER low": ".2f",
    "high": ".2f",
    "ZEBRA [bit]": ".3f",
    "tag": "",
    "D_sys": ".2f",
    "linked": ".2f",
}
"""The columns of the table, and how their numbers are written."""


def report(
    recipe: str,
    run: Run,
    config: RecipeConfig,
    lists: Rsr2015,
    ubm: Stage[TrainedUbm] | None,
    systems: Mapping[str, Stage[Scores]],
) -> str:
    """Evaluate systems on the key, plot them, write `results.json` and return the table.

    Parameters
    ----------
    recipe : str
        Name of the recipe, for the results.
    run : Run
    config : RecipeConfig
    lists : Rsr2015
    ubm : Stage of TrainedUbm, optional
        The mixture whose likelihoods are drawn.
    systems : dict of str to Stage of Scores
        Name to scores, in the order of the table.
    """
    again = replace(run, force=True)
    measured = _measured(again if run.only == REPORT else run, config, lists, systems, ubm)
    run.finish()
    plots = measured.value["plots"]
    if any(file_digest(run.path(name)) != digest for name, digest in plots.items()):
        # plots are missing or were changed
        measured = _measured(again, config, lists, systems, ubm)
    entries = measured.value["systems"]
    outcome = {
        "recipe": recipe,
        "config": to_dict(config),
        "versions": versions(),
        "lists": list_hashes(lists),
        "timings": {name: round(seconds, 3) for name, seconds in run.timings.items()},
        "systems": entries,
    }
    write_json(run.path("results.json"), outcome)
    results = {name: SystemResult.from_dict(entry) for name, entry in entries.items()}
    table = _table(results)
    logger.info("results\n%s", table, extra={"file_only": True})
    det = run.path(f"det.{config.report.formats[0]}")
    return (
        f"{table}\n\n{_remarks(results)}\n\nDET plot: {det}\nResults:  {run.path('results.json')}"
    )


def _measured(
    run: Run,
    config: RecipeConfig,
    lists: Rsr2015,
    systems: Mapping[str, Stage[Scores]],
    ubm: Stage[TrainedUbm] | None,
) -> Stage[dict[str, Any]]:
    """Return the stage that measures all systems (`evaluation.json`) and makes the plots."""
    title = _title(config, lists)
    after: list[Stage[Any]] = list(systems.values())
    if ubm is not None:
        after.append(ubm)

    def make(path: Path) -> None:
        scores = {name: system.value for name, system in systems.items()}
        speakers = Speakers(*lists.speakers(), config.report.resamples, config.seed, run.jobs)
        results, curves = measure(scores, lists.key, config, speakers)
        background = None if ubm is None else ubm.value
        drawn = _plot(run, config, lists, scores, background, curves)
        entries = {name: _entry(result) for name, result in results.items()}
        plots = {name: file_digest(run.path(name)) for name in drawn}
        write_json(path, {"systems": entries, "plots": plots})

    return run.stage(
        REPORT,
        "evaluation.json",
        make=make,
        read=load_json,
        inputs=[
            reports.FORMAT,
            config.report,
            config.trials,
            config.seed,
            title,
            lists.key,
            *lists.speakers(),
        ],
        after=after,
        libraries=("matplotlib", "numpy", "scipy"),
    )


def _entry(result: Condition) -> dict[str, Any]:
    """Return results for JSON, without entries that these recipes lack."""
    entry = {}
    for name, part in result.to_dict().items():
        if part not in (None, "", [], {}):
            entry[name] = part
    if isinstance(result, SystemResult):
        entry["trial_types"] = {types: _entry(pair) for types, pair in result.trial_types.items()}
    return entry


def _title(config: RecipeConfig, lists: Rsr2015) -> str:
    """Return the title of the plots: the corpus, the speakers and the types of trials."""
    corpus = f"RSR2015 part {config.part}"
    root = next(iter(lists.recordings.values())).parents[3]  # root/sph/male/m001/recording
    if is_simulated(root):
        corpus = f"Synthetic speech in the form of {corpus}"
    sex = "male" if config.gender == "m" else "female"
    types = f"{'+'.join(config.trials.target)} against {'+'.join(config.trials.nontarget)}"
    return f"{corpus}, {sex} {config.partition}: {types}"


def _plot(
    run: Run,
    config: RecipeConfig,
    lists: Rsr2015,
    systems: Mapping[str, Scores],
    ubm: TrainedUbm | None,
    curves: Mapping[str, Curve],
) -> list[str]:
    """Draw everything; return the names of the files."""
    names = _plot_systems(run, config, lists, systems)
    names += _plot_curves(run, config, curves, _title(config, lists))
    if ubm is not None:
        names += _plot_training(run, ubm)
    return names


def _plot_systems(
    run: Run, config: RecipeConfig, lists: Rsr2015, systems: Mapping[str, Scores]
) -> list[str]:
    """Draw the scores; return the names of the files."""
    title = _title(config, lists)
    point = config.report
    prior = effective_prior(point.p_target, point.c_miss, point.c_fa)
    names = [*_files("det", config), *_files("zebra", config), *_files("histogram", config)]
    drawn = []
    overlap = {}
    for name, scores in systems.items():
        target, nontarget = split_scores(scores, lists.key)
        drawn.append((name, target, nontarget))
        overlap[name] = d_sys(target, nontarget)
    plot_det(drawn, path=_paths(run, "det", config), window=point.window, prior=prior, title=title)
    plot_zebra(drawn, path=_paths(run, "zebra", config), title=f"ZEBRA: {title}")
    shown = drawn
    if len(drawn) > _SHOWN:
        shown = [max(drawn, key=lambda system: overlap[system[0]])]
    histograms = [
        (f"{name} (D_sys {overlap[name]:.2f})", target, nontarget)
        for name, target, nontarget in shown
    ]
    plot_histogram(histograms, path=_paths(run, "histogram", config), title=f"Scores: {title}")
    pairs = pairs_of_types(lists.key, config.trials)
    if len(pairs) > 1:
        curves = []
        for name, *_ in shown:
            for types, key in pairs.items():
                curves.append((f"{name}, {types}", *split_scores(systems[name], key)))
        title = f"{title.partition(':')[0]}: trial types"
        plot_det(curves, path=_paths(run, "det_types", config), prior=prior, title=title)
        names += _files("det_types", config)
    return names


def _plot_curves(
    run: Run, config: RecipeConfig, curves: Mapping[str, Curve], title: str
) -> list[str]:
    """Draw linkability; return the names of the files."""
    if not curves:
        return []
    drawn = dict(curves)
    if (
        len(curves) > _SHOWN
    ):  # the bands of many systems would hide the curves; results.json has them
        for name, curve in curves.items():
            blank = np.full(len(curve.sizes), np.nan)
            drawn[name] = replace(curve, low=blank, high=blank)
    plot_linkability(drawn, path=_paths(run, "linkability", config), title=f"Linkability: {title}")
    return _files("linkability", config)


def _plot_training(run: Run, ubm: TrainedUbm) -> list[str]:
    """Draw the likelihood during the training of the UBM; return the name of the file."""
    if not len(ubm.log_likelihoods):
        return []
    name = "gmm/ubm.png"
    likelihoods = {"UBM": ubm.log_likelihoods}
    plot_likelihood(
        likelihoods, path=run.path(name), doublings=schedule_marks(ubm.sizes), title="UBM training"
    )
    return [name]


def _files(name: str, config: RecipeConfig) -> list[str]:
    return [f"{name}.{form}" for form in config.report.formats]


def _paths(run: Run, name: str, config: RecipeConfig) -> list[Path]:
    return [run.path(file) for file in _files(name, config)]


def _table(results: Mapping[str, SystemResult]) -> str:
    rows = []
    for name, system in results.items():
        linked = _unless_unknown(system.found_among_all.value)
        pairs: dict[str, Condition] = system.trial_types
        if len(pairs) > 1:
            pairs = {"all": system, **pairs}
        for types, result in pairs.items():
            rows.append(dict(zip(_COLUMNS, (name, types, *_cells(result), linked), strict=True)))
    used = {}
    for column, form in _COLUMNS.items():
        if any(row[column] is not None for row in rows):
            used[column] = form
    return format_table(rows, used)


def _cells(result: Condition) -> tuple[Any, ...]:
    """Return the cells of a row except its names and linkability."""
    eer = result.eer.in_percent
    return (
        result.n_target,
        result.n_nontarget,
        eer.value,
        result.metric("min_dcf.sre08").value,
        result.metric("prbep").value,
        _unless_unknown(eer.low),
        _unless_unknown(eer.high),
        result.metric("zebra.population").value,
        result.tag,
        result.metric("d_sys").value,
    )


def _unless_unknown(value: float) -> float | None:
    return None if np.isnan(value) else value


def _remarks(results: Mapping[str, SystemResult]) -> str:
    """Explain the privacy columns, and report the calibration of the scores."""
    first = next(iter(results.values()))
    lines = []
    if "intervals" in first.notes:
        lines.append(f"EER low and high: {first.notes['intervals']}.")
    lines.append(
        "ZEBRA: expected disclosure of a population, 0 to 0.721 bit, and the tag of the worst case; D_sys: from 0 to 1."
    )
    if first.linkability is not None:
        number = max(first.linkability.sizes)
        lines.append(
            f"linked: share of recordings whose speaker ranks first of the {number} who enrolled the sentence."
        )
    losses = "results.json has the Cllr and minimum Cllr of each."
    if len(results) <= _SHOWN:
        each = []
        for name, system in results.items():
            each.append(
                f"{name} {system.metric('cllr').value:.2f} and {system.metric('min_cllr').value:.2f}"
            )
        losses = f"Cllr and minimum Cllr (calibrated): {', '.join(each)}."
    lines.append(f"Scores are not calibrated; ZEBRA calibrates them. {losses}")
    return "\n".join(lines)
