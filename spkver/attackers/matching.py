"""Scores of models against segments, plain and normalised by the cohort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.score_maps import Moments, cohort_moments, normalise
from evaluation.trials import Scores, Trials
from spkbase.errors import DataError
from spkbase.runs import Destination
from spkbase.work import Work
from spkver.attackers.backend import Cohort, Segments
from spkver.attackers.kept import Kept
from spkver.backend import SvmModels, gram_matrix, score_gmm_ubm, score_trials
from spkver.mixture import GaussianMixture
from spkver.vectors import Supervectors


def raw_scores(
    ubm: GaussianMixture,
    machines: SvmModels,
    tested: Segments,
    trials: Trials,
    *,
    workers: Work | None = None,
    kept: Kept | None = None,
) -> Scores:
    """Return the scores of trials before normalisation; those that are done outlive a crash where they are kept."""
    kept, workers = kept or Kept(), workers or Work()
    destination = Destination(folder=kept.folder, fingerprint=kept.fingerprint)
    options: dict[str, Any] = {"work": workers, "destination": destination}
    if tested.frames is not None:
        means = Supervectors(machines.models, machines.models, machines.weights)
        return score_gmm_ubm(ubm, means, tested.frames, trials, **options)
    assert tested.vectors is not None
    return score_trials(machines, Supervectors(tested.ids, tested.ids, tested.vectors), trials, **options)


def score_matrix(
    ubm: GaussianMixture,
    machines: SvmModels,
    tested: Segments,
    *,
    workers: Work | None = None,
    kept: Kept | None = None,
) -> NDArray[np.float64]:
    """Return the scores (M, S) of all models against all segments before normalisation."""
    if tested.vectors is not None:
        return gram_matrix(machines.weights, tested.vectors, work=workers or Work()) + machines.biases[:, None]
    n_models, n_segments = len(machines), len(tested.ids)
    rows, columns = np.divmod(np.arange(n_models * n_segments, dtype=np.int32), np.int32(n_segments))
    trials = Trials(machines.models, tested.ids, rows, columns)
    scores = raw_scores(ubm, machines, tested, trials, workers=workers, kept=kept)
    return scores.values.reshape(n_models, n_segments)


def normalised_scores(
    cohort: Cohort | None,
    ubm: GaussianMixture,
    machines: SvmModels,
    tested: Segments,
    trials: Trials,
    *,
    workers: Work | None = None,
    kept: Kept | None = None,
) -> Scores:
    """Return the scores of trials, normalised by a cohort as its `norm` says; without one, as they are."""
    kept = kept or Kept()
    scores = raw_scores(ubm, machines, tested, trials, workers=workers, kept=kept)
    if cohort is None:
        return scores
    models = segments = None
    if cohort.norm.kind in ("z", "s"):
        rows = _rows_used(trials.model_ids, trials.models, machines.models)
        mine = SvmModels(machines.models[rows.own], machines.weights[rows.own], machines.biases[rows.own])
        against = score_matrix(ubm, mine, cohort.segments, workers=workers, kept=kept.below("z"))
        models = rows.spread(_moments(against, mine.models, cohort.norm.top))
    if cohort.norm.kind in ("t", "s"):
        rows = _rows_used(trials.segment_ids, trials.segments, tested.ids)
        some = _some(tested, rows.own)
        against = score_matrix(ubm, cohort.models, some, workers=workers, kept=kept.below("t")).T
        segments = rows.spread(_moments(against, some.ids, cohort.norm.top))
    return normalise(scores, models=models, segments=segments)


def _moments(against: NDArray, ids: NDArray, top: int | None) -> Moments:
    try:
        return cohort_moments(against, ids, top=top)
    except DataError as error:
        raise DataError(error.text, remedy="set norm.kind=none, or give more training speakers") from error


@dataclass(frozen=True)
class _Rows:
    """Where the ids that trials use stand: `codes` in the table of the trials, `own` among what there is."""

    codes: NDArray[np.int64]
    own: NDArray[np.int64]
    size: int

    def spread(self, moments: Moments) -> Moments:
        """Return moments in the order of the table; ids without a trial have none."""
        mean, deviation = np.full(self.size, np.nan), np.full(self.size, np.nan)
        mean[self.codes], deviation[self.codes] = moments
        return mean, deviation


def _rows_used(ids: NDArray, used: NDArray, available: NDArray) -> _Rows:
    codes = np.unique(used).astype(np.int64)
    index = {name: row for row, name in enumerate(available)}
    return _Rows(codes, np.array([index[ids[code]] for code in codes], np.int64), len(ids))


def _some(tested: Segments, rows: NDArray[np.int64]) -> Segments:
    return Segments(tested.ids[rows], None if tested.vectors is None else tested.vectors[rows], tested.frames)
