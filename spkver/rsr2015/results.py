"""From scores to results: metrics, plots, `results.json` and the table that a recipe ends with.

ZEBRA and linkability measure what scores disclose of the speakers. Intervals are by a bootstrap of speakers, not of
models.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation import reports
from evaluation.linkage import Curve, all_sizes, linkability_curve, ranks_from_scores
from evaluation.metrics import METRICS, Metric, Metrics, d_sys, effective_prior, min_dcf
from evaluation.plots import plot_det, plot_histogram, plot_likelihood, plot_linkability, plot_zebra
from evaluation.reports import Condition, Linkability
from evaluation.trials import Key, Scores, split_scores
from evaluation.uncertainty import Interval, Resampling, confidence_intervals, sample_from
from spkbase.configuration import to_dict
from spkbase.errors import DataError
from spkbase.files import file_digest, format_table, load_json, write_json
from spkbase.runs import REPORT, Run, Stage
from spkbase.version import versions
from spkver.corpora import Rsr2015, is_simulated, list_hashes
from spkver.mixture import TrainedUbm, schedule_marks
from spkver.rsr2015.lists import RecipeConfig

logger = logging.getLogger(__name__)

LEVEL = 0.95
CALIBRATION = (
    "scores are taken as the system gives them, not calibrated: ZEBRA and min_cllr calibrate them by isotonic "
    "regression on these trials, cllr takes them for natural log-likelihood ratios"
)
_METRICS = ("eer", "cllr", "min_cllr", "zebra.population", "zebra.individual", "d_sys", "prbep")
_MANY = 100_000  # trials; above, fewer resamples
_RESAMPLES, _FEWER = 1000, 200

_SHOWN = 3  # systems whose histograms and bands are drawn; of more, one histogram and no bands


@dataclass(frozen=True)
class Speakers:
    """Who is behind the ids of the trials, and how the speakers are drawn.

    Attributes
    ----------
    of_model, of_segment : mapping of str to str
        Speaker of each model and of each segment.
    resamples : int, optional
        Resamples; see `spkver.rsr2015.lists.ReportConfig`.
    seed : int
        Of the draws.
    jobs : int, optional
        Workers; no number depends on them.
    """

    of_model: Mapping[str, str]
    of_segment: Mapping[str, str]
    resamples: int | None = None
    seed: int = 0
    jobs: int | None = 1


@dataclass(frozen=True)
class SystemResult(Condition):
    """A system on all trials, and on each pair of a target and a nontarget type, such as ``TC-IC``."""

    trial_types: dict[str, Condition] = field(default_factory=dict)


def assess_system(scores: Scores, key: Key, speakers: Speakers, config: RecipeConfig, name: str = "") -> Condition:
    """Return the metrics of a system with their intervals.

    Parameters
    ----------
    scores : Scores
    key : Key
        Its trials are evaluated.
    speakers : Speakers
    config : RecipeConfig
    name : str
        Name of the system.

    Returns
    -------
    Condition
        ``min_dcf`` is at the operating points of SRE08 and SRE10 and at the configured one. Intervals are those of the
        EER of the hull, ZEBRA's population figure and D_sys; ``notes`` says what is resampled.
    """
    runs = sample_from(scores, key, bootstrap_by="trial")[0].runs()
    found = Metrics(metrics=_rows(*_METRICS)).evaluate(runs)
    point = config.report
    costs = {
        "sre08": min_dcf(runs, p_target=0.01, c_miss=10.0),
        "sre10": min_dcf(runs, p_target=0.001),
        "configured": min_dcf(runs, p_target=point.p_target, c_miss=point.c_miss, c_fa=point.c_fa),
    }
    intervals, notes = _intervals(scores, key, speakers)
    return Condition(
        dataset=f"RSR2015 part {config.part} {config.partition}",
        gender=config.gender,
        scenario="original",
        attacker=name,
        n_enrolled=len({speakers.of_model[model] for model in key.model_ids[np.unique(key.models)]}),
        n_trial_speakers=len({speakers.of_segment[segment] for segment in key.segment_ids[np.unique(key.segments)]}),
        scores=f"scores/{name}.h5",
        n_target=found.n_target,
        n_nontarget=found.n_nontarget,
        metrics={"convention": found.convention, **found.results, "min_dcf": costs},
        notes={"calibration": CALIBRATION, **found.notes, **notes},
        intervals=intervals,
    )


def linkability(scores: Scores, key: Key, speakers: Speakers) -> Curve:
    """Return how often the speaker of a test recording scores highest among N speakers who enrolled its sentence.

    Parameters
    ----------
    scores : Scores
    key : Key
        Trials of a correct sentence by its speaker and by others (TC and IC), so that each recording meets one model a
        speaker.
    speakers : Speakers

    Returns
    -------
    Curve
        For every N from 2, with intervals over speakers.

    Raises
    ------
    DataError
        If a recording has several target trials, or none has an impostor.
    """
    ranks = ranks_from_scores(scores, key)
    ranks = replace(ranks, speakers=np.array([speakers.of_model[name] for name in ranks.speakers.tolist()], np.str_))
    resamples = _RESAMPLES if speakers.resamples is None else speakers.resamples
    resampling = Resampling(resamples, speakers.seed, LEVEL)
    return linkability_curve(ranks, all_sizes(ranks.largest_size), resampling=resampling)


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
        Its likelihoods are drawn.
    systems : dict of str to Stage of Scores
        Name to scores, in the order of the table.
    """
    again = replace(run, force=True)
    measured = _measured(again if run.only == REPORT else run, config, lists, systems, ubm)
    run.finish()
    if any(file_digest(run.path(name)) != digest for name, digest in measured.value["plots"].items()):
        measured = _measured(again, config, lists, systems, ubm)  # plots are missing or were changed
    systems_of = measured.value["systems"]
    results = {name: SystemResult.from_dict(entry) for name, entry in systems_of.items()}
    outcome = {
        "recipe": recipe,
        "config": to_dict(config),
        "versions": versions(),
        "lists": list_hashes(lists),
        "timings": {name: round(seconds, 3) for name, seconds in run.timings.items()},
        "systems": systems_of,
    }
    write_json(run.path("results.json"), outcome)
    table = _table(results)
    logger.info("results\n%s", table, extra={"file_only": True})
    det = run.path(_plots("det", config)[0])
    return f"{table}\n\n{_remarks(results)}\n\nDET plot: {det}\nResults:  {run.path('results.json')}"


def _intervals(scores: Scores, key: Key, speakers: Speakers) -> tuple[dict[str, Interval], dict[str, str]]:
    """Return the ends of intervals over speakers by metric, and notes; nothing without resamples."""
    resamples = speakers.resamples
    if resamples is None:
        resamples = _RESAMPLES if len(key) <= _MANY else _FEWER
    if not resamples:
        return {}, {}
    metrics = Metrics(metrics=_rows("eer", "zebra.population", "d_sys"))
    try:
        sample, _ = sample_from(scores, key, model_speakers=speakers.of_model, segment_speakers=speakers.of_segment)
        found = confidence_intervals(sample, metrics, Resampling(resamples, speakers.seed, LEVEL), jobs=speakers.jobs)
    except DataError as error:  # too few speakers, say: no reason to lose the run
        return {}, {"intervals": f"no intervals: {error.text}"}
    n_speakers = len({speakers.of_model[name] for name in key.model_ids[np.unique(key.models)]})
    drawn = f"{n_speakers} speakers, {resamples} resamples"
    notes = {"intervals": f"{100 * LEVEL:g} % interval over speakers, not models ({drawn})"}
    notes |= {f"intervals.{name}": interval.note for name, interval in found.items() if interval.note}
    return {name: Interval(low=interval.low, high=interval.high) for name, interval in found.items()}, notes


def _rows(*names: str) -> tuple[Metric, ...]:
    """Return rows of the table of metrics; of the equal error rates that of the hull."""
    rows = {row.name: row for row in METRICS}
    return tuple(replace(rows[name], points=("rocch",)) if name == "eer" else rows[name] for name in names)


def _measured(
    run: Run, config: RecipeConfig, lists: Rsr2015, systems: Mapping[str, Stage[Scores]], ubm: Stage[TrainedUbm] | None
) -> Stage[dict[str, Any]]:
    """Return the numbers of all systems (`evaluation.json`); with them the plots are made."""
    title = _title(config, lists)
    speakers = Speakers(*lists.speakers(), config.report.resamples, config.seed, run.jobs)

    def make(path: Path) -> None:
        scores = {name: system.value for name, system in systems.items()}
        curves = _linkability(scores, lists.key, config, speakers)
        results = {}
        for name, of_system in scores.items():
            linked = Linkability.from_curve(curves[name]) if name in curves else None
            assessed = _evaluate(of_system, lists.key, config, speakers, name)
            results[name] = _entry(replace(assessed, linkability=linked))
        drawn = _plot(run, config, lists, scores, None if ubm is None else ubm.value, curves)
        write_json(path, {"systems": results, "plots": {name: file_digest(run.path(name)) for name in drawn}})

    return run.stage(
        REPORT,
        "evaluation.json",
        make=make,
        read=load_json,
        inputs=[reports.FORMAT, config.report, config.trials, config.seed, title, lists.key, *lists.speakers()],
        after=[*systems.values(), *([] if ubm is None else [ubm])],
        libraries=("matplotlib", "numpy", "scipy"),
    )


def _plots(name: str, config: RecipeConfig) -> list[str]:
    return [f"{name}.{form}" for form in config.report.formats]


def _evaluate(scores: Scores, key: Key, config: RecipeConfig, speakers: Speakers, name: str) -> SystemResult:
    """Assess all trials together, and each pair of a target and a nontarget type."""
    keys = _pairs_of_types(key, config)
    whole = assess_system(scores, key, speakers, config, name)
    pairs = dict.fromkeys(keys, whole)
    if len(keys) > 1:
        pairs = {types: assess_system(scores, of_pair, speakers, config, name) for types, of_pair in keys.items()}
    return SystemResult(**vars(whole), trial_types=pairs)


def _entry(result: Condition) -> dict[str, Any]:
    """Return results for JSON, without what these recipes do not have."""
    entry = {name: part for name, part in result.to_dict().items() if part not in (None, "", [], {})}
    if isinstance(result, SystemResult):
        entry["trial_types"] = {types: _entry(pair) for types, pair in result.trial_types.items()}
    return entry


def _pairs_of_types(key: Key, config: RecipeConfig) -> dict[str, Key]:
    """Return the trials of each pair of a target and a nontarget type, ``TC-TW``."""
    types = [(target, nontarget) for target in config.trials.target for nontarget in config.trials.nontarget]
    return {"-".join(pair): key.of_types(*pair) for pair in types}


def _linkability(scores: Mapping[str, Scores], key: Key, config: RecipeConfig, speakers: Speakers) -> dict[str, Curve]:
    """Linkability of each system over sizes of the gallery; none without trials of the correct sentence by all."""
    if "TC" not in config.trials.target or "IC" not in config.trials.nontarget:
        return {}
    correct = key.of_types("TC", "IC")
    try:
        return {name: linkability(of_system, correct, speakers) for name, of_system in scores.items()}
    except DataError as error:
        logger.info("no linkability over sizes of the gallery: %s", error.text)
        return {}


def _title(config: RecipeConfig, lists: Rsr2015) -> str:
    root = next(iter(lists.recordings.values())).parents[3]  # root/sph/male/m001/recording
    corpus = f"{'Synthetic speech in the form of ' * is_simulated(root)}RSR2015 part {config.part}"
    sex = "male" if config.gender == "m" else "female"
    types = f"{'+'.join(config.trials.target)} against {'+'.join(config.trials.nontarget)}"
    return f"{corpus}, {sex} {config.partition}: {types}"


def _plot(
    run: Run,
    config: RecipeConfig,
    lists: Rsr2015,
    systems: dict[str, Scores],
    ubm: TrainedUbm | None,
    curves: Mapping[str, Curve],
) -> list[str]:
    """Draw everything; return the names of the files."""
    drawn = [(name, *split_scores(scores, lists.key)) for name, scores in systems.items()]
    title, point = _title(config, lists), config.report
    names: list[str] = []

    def paths(name: str) -> list[Path]:
        names.extend(_plots(name, config))
        return [run.path(file) for file in _plots(name, config)]

    prior = effective_prior(point.p_target, point.c_miss, point.c_fa)
    plot_det(drawn, path=paths("det"), window=point.window, prior=prior, title=title)
    plot_zebra(drawn, path=paths("zebra"), title=f"ZEBRA: {title}")
    known = [(d_sys(target, nontarget), name, target, nontarget) for name, target, nontarget in drawn]
    if len(known) > _SHOWN:
        known = sorted(known, key=lambda one: -one[0])[:1]
    named = [(f"{name} (D_sys {value:.2f})", target, nontarget) for value, name, target, nontarget in known]
    plot_histogram(named, path=paths("histogram"), title=f"Scores: {title}")
    pairs = _pairs_of_types(lists.key, config)
    if len(pairs) > 1:
        curves_of_types = [
            (f"{name}, {types}", *split_scores(systems[name], key))
            for _, name, *_ in known
            for types, key in pairs.items()
        ]
        plot_det(curves_of_types, path=paths("det_types"), prior=prior, title=f"{title.partition(':')[0]}: trial types")
    if curves:
        if len(curves) > _SHOWN:  # bands of many would hide the curves; results.json has them
            blank = {name: np.full(len(curve.sizes), np.nan) for name, curve in curves.items()}
            curves = {name: replace(curve, low=blank[name], high=blank[name]) for name, curve in curves.items()}
        plot_linkability(curves, path=paths("linkability"), title=f"Linkability: {title}")
    if ubm is not None and len(ubm.log_likelihoods):
        names.append("gmm/ubm.png")
        marks = schedule_marks(ubm.sizes)
        plot_likelihood(
            {"UBM": ubm.log_likelihoods}, path=run.path("gmm/ubm.png"), doublings=marks, title="UBM training"
        )
    return names


def _table(results: Mapping[str, SystemResult]) -> str:
    rows = []
    for name, system in results.items():
        pairs: dict[str, Condition] = system.trial_types
        if len(pairs) > 1:
            pairs = {"all": system, **pairs}
        for types, found in pairs.items():
            low, high = found.eer.low, found.eer.high
            linked = system.found_among_all.value
            cells: dict[str, tuple[str, Any]] = {  # how each column is written, and its value
                "system": ("", name),
                "trials": ("", types),
                "target": ("d", found.n_target),
                "nontarget": ("d", found.n_nontarget),
                "EER [%]": (".2f", 100 * found.eer.value),
                "minDCF SRE08": (".3f", found.metric("min_dcf.sre08").value),
                "PRBEP": (".1f", found.metric("prbep").value),
                "EER low": (".2f", None if np.isnan(low) else 100 * low),
                "high": (".2f", None if np.isnan(high) else 100 * high),
                "ZEBRA [bit]": (".3f", found.metric("zebra.population").value),
                "tag": ("", found.tag),
                "D_sys": (".2f", found.metric("d_sys").value),
                "linked": (".2f", None if np.isnan(linked) else linked),
            }
            rows.append({column: value for column, (_, value) in cells.items()})
    used = {column: form for column, (form, _) in cells.items() if any(row[column] is not None for row in rows)}
    return format_table(rows, used)


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
        numbers = {
            name: (system.metric("cllr").value, system.metric("min_cllr").value) for name, system in results.items()
        }
        each = [f"{name} {cllr:.2f} and {least:.2f}" for name, (cllr, least) in numbers.items()]
        losses = f"Cllr and minimum Cllr (calibrated): {', '.join(each)}."
    lines.append(f"Scores are not calibrated; ZEBRA calibrates them. {losses}")
    return "\n".join(lines)
