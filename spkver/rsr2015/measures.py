"""From scores to figures: metrics of each system with intervals, and linkability.

ZEBRA and linkability measure how much the scores disclose about the speakers. Intervals come from a bootstrap of
speakers, not of models.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from evaluation.linkage import Curve, all_sizes, linkability_curve, ranks_from_scores
from evaluation.metrics import METRICS, Metric, Metrics, min_dcf
from evaluation.reports import Condition, Linkability, ends_and_notes
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Interval, Resampling, confidence_intervals, sample_from
from spkbase.errors import DataError
from spkver.rsr2015.lists import RecipeConfig, TrialsConfig

logger = logging.getLogger(__name__)

LEVEL = 0.95
CALIBRATION = (
    "scores are taken as the system gives them, not calibrated: ZEBRA and min_cllr calibrate them by isotonic "
    "regression on these trials, cllr takes them for natural log-likelihood ratios"
)
_METRICS = ("eer", "cllr", "min_cllr", "zebra.population", "zebra.individual", "d_sys", "prbep")
_MANY = 100_000  # with more trials, fewer resamples are drawn
_RESAMPLES = 1000
_FEWER = 200


@dataclass(frozen=True)
class Speakers:
    """The speakers of models and segments, and how speakers are resampled.

    Attributes
    ----------
    of_model, of_segment : mapping of str to str
        Speaker of each model and of each segment.
    resamples : int, optional
        Number of resamples; see `spkver.rsr2015.lists.ReportConfig`.
    seed : int
        Seed of the resamples.
    jobs : int, optional
        Number of workers; the results do not depend on it.
    """

    of_model: Mapping[str, str]
    of_segment: Mapping[str, str]
    resamples: int | None = None
    seed: int = 0
    jobs: int | None = 1


@dataclass(frozen=True)
class SystemResult(Condition):
    """Results of a system on all trials, and on each pair of a target and a nontarget type, such as ``TC-IC``."""

    trial_types: dict[str, Condition] = field(default_factory=dict)


def measure(
    systems: Mapping[str, Scores], key: Key, config: RecipeConfig, speakers: Speakers
) -> tuple[dict[str, SystemResult], dict[str, Curve]]:
    """Measure all systems.

    Parameters
    ----------
    systems : dict of str to Scores
    key : Key
    config : RecipeConfig
    speakers : Speakers

    Returns
    -------
    results : dict of str to SystemResult
        On all trials together, and on each pair of a target and a nontarget type.
    curves : dict of str to Curve
        Linkability of each system; empty without trials of the correct sentence by its speaker and by others.
    """
    results = {}
    curves = _linkability_curves(systems, key, config.trials, speakers)
    keys = pairs_of_types(key, config.trials)
    for name, scores in systems.items():
        whole = assess_system(scores, key, speakers, config, name)
        if name in curves:
            whole = replace(whole, linkability=Linkability.from_curve(curves[name]))
        pairs = dict.fromkeys(keys, replace(whole, linkability=None))
        if len(keys) > 1:
            for types, pair in keys.items():
                pairs[types] = assess_system(scores, pair, speakers, config, name)
        results[name] = SystemResult(**vars(whole), trial_types=pairs)
    return results, curves


def assess_system(
    scores: Scores, key: Key, speakers: Speakers, config: RecipeConfig, name: str = ""
) -> Condition:
    """Return the metrics of a system with their intervals.

    Parameters
    ----------
    scores : Scores
    key : Key
        The trials to evaluate.
    speakers : Speakers
    config : RecipeConfig
    name : str
        Name of the system.

    Returns
    -------
    Condition
        The metrics; ``min_dcf`` is given at the operating points of SRE08 and SRE10 and at the configured one.
        Intervals are those of the EER of the hull, ZEBRA's population figure and D_sys; ``notes`` says what is
        resampled.
    """
    runs = sample_from(scores, key, bootstrap_by="trial")[0].runs()
    evaluated = Metrics(metrics=_rows(*_METRICS)).evaluate(runs)
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
        n_enrolled=_n_enrolled(key, speakers),
        n_trial_speakers=len(
            {speakers.of_segment[segment] for segment in key.segment_ids[np.unique(key.segments)]}
        ),
        scores=f"scores/{name}.h5",
        n_target=evaluated.n_target,
        n_nontarget=evaluated.n_nontarget,
        metrics={"convention": evaluated.convention, **evaluated.results, "min_dcf": costs},
        notes={"calibration": CALIBRATION, **evaluated.notes, **notes},
        intervals=intervals,
    )


def linkability(scores: Scores, key: Key, speakers: Speakers) -> Curve:
    """Return how often the speaker of a test recording scores highest among N speakers who enrolled its sentence.

    Parameters
    ----------
    scores : Scores
    key : Key
        Trials of a correct sentence by its speaker and by others (TC and IC), so that each recording is compared with
        one model per speaker.
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
    owners = [speakers.of_model[name] for name in ranks.speakers.tolist()]
    ranks = replace(ranks, speakers=np.array(owners, np.str_))
    resamples = _RESAMPLES if speakers.resamples is None else speakers.resamples
    resampling = Resampling(resamples, speakers.seed, LEVEL)
    return linkability_curve(ranks, all_sizes(ranks.largest_size), resampling=resampling)


def pairs_of_types(key: Key, trials: TrialsConfig) -> dict[str, Key]:
    """Return the trials of each pair of a target and a nontarget type, ``TC-TW``."""
    keys = {}
    for target, nontarget in product(trials.target, trials.nontarget):
        keys[f"{target}-{nontarget}"] = key.of_types(target, nontarget)
    return keys


def _intervals(
    scores: Scores, key: Key, speakers: Speakers
) -> tuple[dict[str, Interval], dict[str, str]]:
    """Return the ends of intervals over speakers by metric, and notes; nothing without resamples."""
    resamples = speakers.resamples
    if resamples is None:
        resamples = _RESAMPLES if len(key) <= _MANY else _FEWER
    if not resamples:
        return {}, {}
    metrics = Metrics(metrics=_rows("eer", "zebra.population", "d_sys"))
    resampling = Resampling(resamples, speakers.seed, LEVEL)
    try:
        sample, _ = sample_from(
            scores, key, model_speakers=speakers.of_model, segment_speakers=speakers.of_segment
        )
        estimated = confidence_intervals(sample, metrics, resampling, jobs=speakers.jobs)
    except DataError as error:  # too few speakers, for example, must not end the run
        return {}, {"intervals": f"no intervals: {error.text}"}
    ends, notes = ends_and_notes(estimated)
    drawn = f"{_n_enrolled(key, speakers)} speakers, {resamples} resamples"
    about = f"{100 * LEVEL:g} % interval over speakers, not models ({drawn})"
    return ends, {"intervals": about, **notes}


def _rows(*names: str) -> tuple[Metric, ...]:
    """Return rows of the table of metrics; the only equal error rate is that of the convex hull."""
    rows = []
    table = {row.name: row for row in METRICS}
    for name in names:
        row = table[name]
        if name == "eer":
            row = replace(row, points=("rocch",))
        rows.append(row)
    return tuple(rows)


def _n_enrolled(key: Key, speakers: Speakers) -> int:
    """Return the number of speakers whose models have trials."""
    return len({speakers.of_model[name] for name in key.model_ids[np.unique(key.models)]})


def _linkability_curves(
    systems: Mapping[str, Scores], key: Key, trials: TrialsConfig, speakers: Speakers
) -> dict[str, Curve]:
    """Return the linkability of each system over sizes of the gallery."""
    if "TC" not in trials.target or "IC" not in trials.nontarget:
        return {}
    correct = key.of_types("TC", "IC")
    try:
        return {name: linkability(scores, correct, speakers) for name, scores in systems.items()}
    except DataError as error:
        logger.info("no linkability over sizes of the gallery: %s", error.text)
        return {}
