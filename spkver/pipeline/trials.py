"""Scores of trials: of any system, and of adapted mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evaluation.formats import read_scores, write_scores
from evaluation.trials import Scores, Trials, align
from spkbase.runs import Depends, Draft, Handle, Run, Stage
from spkver.backend import score_gmm_ubm
from spkver.features import Frames
from spkver.mixture import GaussianMixture
from spkver.vectors import Supervectors


def gmm_scores(
    run: Run,
    system: str,
    ubm: Handle[GaussianMixture],
    models: Handle[Supervectors],
    frames: Handle[Frames],
    trials: Trials,
) -> Stage[Scores]:
    """Score the trials by log-likelihood ratios (`scores/<system>.h5` and `.txt`)."""

    def compute(draft: Draft) -> Scores:
        given = ubm.value, models.value, frames.value, trials
        return score_gmm_ubm(*given, work=run.work, destination=draft.destination)

    return scores_of(run, system, trials, compute, after=[ubm, models, frames])


def scores_of(
    run: Run, system: str, trials: Trials, compute: Callable[[Draft], Scores], *, after: Sequence[Handle]
) -> Stage[Scores]:
    """Have the scores of a system computed (`scores/<system>.h5` and `.txt`); they come in the order of the trials."""

    def make(draft: Draft) -> None:
        scores = compute(draft)
        # the stage is done when the HDF5 file is there: it goes first and comes last, so that the text fits it
        draft.path.unlink(missing_ok=True)
        write_scores(draft.path.with_suffix(".txt"), scores)
        write_scores(draft.path, scores, attributes=dict(draft.attributes))

    def read(path: Path) -> Scores:
        scores = read_scores(path)
        return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, align(scores, trials))

    return run.stage(
        f"scores of {system}",
        f"scores/{system}.h5",
        also=(f"scores/{system}.txt",),
        make=make,
        read=read,
        depends=Depends(inputs=trials, after=after, on_device=True),
    )
