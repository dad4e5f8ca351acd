"""What scores disclose of the speakers: ZEBRA, linkability, and intervals by a bootstrap of speakers, not of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluation.linkage import Curve, all_sizes, linkability_curve, ranks_from_scores
from evaluation.metrics import METRICS, Metric, Metrics
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from
from spkbase.errors import DataError

LEVEL = 0.95
CALIBRATION = (
    "scores are taken as the system gives them, not calibrated: ZEBRA and min_cllr calibrate them by isotonic "
    "regression on these trials, cllr takes them for natural log-likelihood ratios"
)
_MANY = 100_000  # trials; above, fewer resamples
_REPLICATES, _FEWER = 1000, 200


@dataclass(frozen=True)
class Speakers:
    """Who is behind the ids of the trials, and how the speakers are drawn.

    Attributes
    ----------
    of_model, of_segment : mapping of str to str
        Speaker of each model and of each segment.
    replicates : int, optional
        Resamples; see `spkver.rsr2015.lists.ReportConfig`.
    seed : int
        Of the draws.
    jobs : int, optional
        Workers; no number depends on them.
    """

    of_model: Mapping[str, str]
    of_segment: Mapping[str, str]
    replicates: int | None = None
    seed: int = 0
    jobs: int | None = 1


def privacy_figures(scores: Scores, key: Key, speakers: Speakers) -> dict[str, Any]:
    """Return what stands under ``privacy`` in `results.json`.

    Parameters
    ----------
    scores : Scores
    key : Key
        Its trials are evaluated.
    speakers : Speakers

    Returns
    -------
    dict
        ``zebra``, ``d_sys``, ``cllr``, ``min_cllr``, ``calibration``, ``notes``, and ``intervals`` with the EER of the
        hull, ZEBRA's population figure and D_sys, each ``[low, high]``, None where an end is not known.
    """
    sample, _ = sample_from(scores, key, by_trial=True)
    result = Metrics(metrics=_rows("zebra.population", "zebra.individual", "d_sys", "cllr", "min_cllr")).evaluate(
        sample.runs()
    )
    figures = {name: result.to_dict()[name] for name in ("zebra", "d_sys", "cllr", "min_cllr")}
    return {
        **figures,
        "calibration": CALIBRATION,
        "notes": result.notes,
        "intervals": _intervals(scores, key, speakers),
    }


def _intervals(scores: Scores, key: Key, speakers: Speakers) -> dict[str, Any]:
    few = _REPLICATES if len(key) <= _MANY else _FEWER
    replicates = few if speakers.replicates is None else speakers.replicates
    said: dict[str, Any] = {"level": LEVEL, "replicates": replicates, "seed": speakers.seed, "resampled": "speakers"}
    if not replicates:
        return said
    try:
        sample, _ = sample_from(
            scores, key, model_speakers=speakers.of_model, segment_speakers=speakers.of_segment, by_trial=False
        )
        found = confidence_intervals(
            sample,
            Metrics(metrics=_rows("eer", "zebra.population", "d_sys")),
            replicates=replicates,
            seed=speakers.seed,
            level=LEVEL,
            jobs=speakers.jobs,
        )
    except DataError as error:  # too few speakers, say: no reason to lose the run
        return said | {"note": f"no intervals: {error.text}"}
    said["n_speakers"] = len({speakers.of_model[name] for name in key.model_ids[np.unique(key.models)]})
    notes = {name: interval.note for name, interval in found.items() if interval.note}
    ends = {name: _finite(interval.low, interval.high) for name, interval in found.items()}
    return (
        said
        | {"eer": ends["eer.rocch"], "population": ends["zebra.population"], "d_sys": ends["d_sys"]}
        | ({"notes": notes} if notes else {})
    )


def _finite(low: float, high: float) -> list[float | None]:
    """Return the ends of an interval for JSON; None where one is not known."""
    return [float(end) if np.isfinite(end) else None for end in (low, high)]


def _rows(*names: str) -> tuple[Metric, ...]:
    """Return rows of the table of metrics; of the equal error rates that of the hull."""
    rows = {row.name: row for row in METRICS}
    return tuple(replace(rows[name], points=("rocch",)) if name == "eer" else rows[name] for name in names)


def linkability(scores: Scores, key: Key, speakers: Speakers) -> Curve:
    """Return how often the owner of a tested recording scores highest among N speakers who enrolled its sentence.

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
    replicates = _REPLICATES if speakers.replicates is None else speakers.replicates
    resampling = Resampling(replicates, speakers.seed, LEVEL)
    return linkability_curve(ranks, all_sizes(ranks.largest_size), resampling=resampling)


def curve_figures(curve: Curve) -> dict[str, Any]:
    """Return what stands under ``linkability`` in `results.json`: the whole gallery, and every size."""
    ends = [
        [float(end) if np.isfinite(end) else None for end in pair] for pair in zip(curve.low, curve.high, strict=True)
    ]
    return {
        "n_enrolled": int(curve.sizes[-1]),
        "value": float(curve.values[-1]),
        "interval": ends[-1],
        "chance": float(curve.chance[-1]),
        "sizes": curve.sizes.tolist(),
        "values": curve.values.tolist(),
        "intervals": ends,
    }
