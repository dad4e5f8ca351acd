"""Scores of ready embeddings: cosines of enrolled speakers with tested utterances, so that every other command works.

A model is an enrolled speaker, the mean of its embeddings, or else the id of a single enrolled utterance; a segment is
the id of a tested utterance. Scores are computed in float64, pair by pair, so they do not depend on the list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings.sets import Embeddings
from evaluation.embeddings.similarity import cosines, to_unit
from evaluation.embeddings.speaker_means import Averaging, speaker_vectors
from evaluation.trials import Scores, Trials
from spkbase.errors import DataError, Problems, few


def cosine_scores(
    enrol: Embeddings, trial: Embeddings, trials: Trials, *, averaging: Averaging | None = None
) -> Scores:
    """Return the cosine of each trial of a list.

    Parameters
    ----------
    enrol, trial : Embeddings
        Of the enrolled speakers and of the tested utterances.
    trials : Trials
        Which model meets which segment.
    averaging : Averaging, optional
        How the embeddings of an enrolled speaker are averaged.

    Returns
    -------
    Scores
        Cosines, in the order of the trials.

    Raises
    ------
    DataError
        If a model or a segment has no embedding, dimensions differ, or a vector is not finite or 0.

    Examples
    --------
    >>> enrol = Embeddings(["a1", "a2"], ["a", "a"], np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> trial = Embeddings(["t"], ["x"], np.array([[0.0, 2.0]]))
    >>> cosine_scores(enrol, trial, Trials.from_ids(["a", "a1"], ["t", "t"])).values.round(4)
    array([0.7071, 0.    ])
    """
    if enrol.vectors.shape[1] != trial.vectors.shape[1]:
        got = f"{enrol.vectors.shape[1]} of the enrolled and {trial.vectors.shape[1]} of the tested"
        files = f" ({enrol.source}, {trial.source})" if enrol.source and trial.source else ""
        text = f"expected as many dimensions on both sides, got {got}{files}"
        raise DataError(text, remedy="use one extractor for both")
    used_models, used_segments = np.unique(trials.models), np.unique(trials.segments)
    try:
        gallery = speaker_vectors(enrol, averaging=averaging)
    except DataError as error:
        raise DataError(error.text, file=enrol.source or None, remedy=error.remedy) from error
    speakers = {name: row for row, name in enumerate(gallery.names.tolist())}
    utterances = {name: row for row, name in enumerate(enrol.ids.tolist())}
    tested = {name: row for row, name in enumerate(trial.ids.tolist())}
    problems = Problems()
    models = trials.model_ids[used_models].tolist()
    segments = trials.segment_ids[used_segments].tolist()
    remedy = "a model is an enrolled speaker or utterance: name the speakers by --model-speakers utt2spk,"
    _check("models", models, speakers.keys() | utterances.keys(), problems, f"{remedy} or leave their trials out")
    _check("segments", segments, tested.keys(), problems, "extract them, or leave their trials out")
    problems.raise_if_any()
    left = np.stack(
        [gallery.vectors[speakers[name]] if name in speakers else enrol.vectors[utterances[name]] for name in models]
    ).astype(np.float64)
    norms = np.linalg.norm(left, axis=1)
    trial_norms = trial.norms()
    rows = np.array([tested[name] for name in segments], np.int64)
    unit = to_unit(trial.vectors[rows], trial_norms[rows])
    pairs = np.searchsorted(used_models, trials.models), np.searchsorted(used_segments, trials.segments)
    values: NDArray[np.float64] = np.clip(cosines(left, norms, unit, *pairs), -1.0, 1.0)
    return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)


def _check(what: str, wanted: list[str], known: object, problems: Problems, remedy: str) -> None:
    absent = [name for name in wanted if name not in known]  # type: ignore[operator]
    if absent:
        problems.add(f"{len(absent)} of {len(wanted)} {what} without an embedding: {few(absent)}", remedy=remedy)
