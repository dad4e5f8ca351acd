"""Ranks for several numbers of utterances at once: from embeddings, from scores, or from the folder of an earlier run.

Ranks are kept by number of utterances; `ALL` stands for all. The largest impostor scores of each
trial, which extrapolation beyond the gallery needs, are kept on request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import (
    Averaging,
    Embeddings,
    SpeakerVectors,
    speaker_vectors,
    warn_of_enrolled,
)
from evaluation.linkage.curve import mean_interval
from evaluation.linkage.disclosure import KEPT, largest_impostor_scores
from evaluation.linkage.ranks import (
    Ranks,
    count_beaters,
    rank_scores,
    rank_speakers,
    read_ranks,
)
from evaluation.metrics import reversal
from evaluation.trials import (
    Key,
    Missing,
    Scores,
    Speakers,
    doubt_speakers,
    find_speakers,
    join_scores,
    recode,
    side_of,
)
from evaluation.uncertainty import Interval, Resampling
from spkbase.errors import DataError, errors_of
from spkbase.files import atomic_path
from spkbase.plain_pickle import read_npz
from spkbase.progress import verbosely
from spkbase.showing import one_line
from spkbase.work import ALL_CORES, Work

logger = logging.getLogger(__name__)

ALL = 0
"""Stands for "all utterances" among numbers of utterances."""

RANKS = "ranks.npz"
IMPOSTORS = "impostors.npz"
"""Files of ranks, and of the largest impostor scores, in the folder of a run."""

Utterances = int | Literal["all"]

_NOT_SPEAKERS = (
    "give the speakers of the models: --model-speakers FILE (lines 'id speaker'); if each model is a speaker:"
    " --bootstrap-by id"
)


@one_line
@dataclass(frozen=True, eq=False)
class RankTables:
    """Ranks by number of utterances.

    Attributes
    ----------
    tables : dict of int to Ranks
        By number of utterances; `ALL` for all of them.
    impostor_scores : dict of int to ndarray of float64 of shape (n, K)
        The largest impostor scores of each row, falling, for the numbers of utterances where they were kept.
    matching : dict of int to Ranks
        With side information the same rows, ranked among the enrolled speakers who match.
    """

    tables: dict[int, Ranks]
    impostor_scores: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    matching: dict[int, Ranks] = field(default_factory=dict)


@verbosely
def rank_embeddings(
    enrolled: Embeddings,
    tested: Embeddings,
    *,
    utterances: Sequence[Utterances] | None = None,
    averaging: Averaging | None = None,
    not_enrolled: Literal["error", "drop"] = "error",
    keep_impostors: bool = False,
    side: Mapping[str, str] | None = None,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> RankTables:
    """Rank the target speakers of tested utterances among the enrolled speakers, by the cosine of embeddings.

    Parameters
    ----------
    enrolled, tested : Embeddings
        The gallery, and the trials.
    utterances : sequence of int or "all", optional
        Numbers of utterances averaged into a trial; one by default, with a note on unused utterances.
    averaging : Averaging, optional
        How means are made and utterances are chosen.
    not_enrolled : {"error", "drop"}
        Treatment of tested speakers who are not enrolled.
    keep_impostors : bool
        Keep the largest impostor scores of each trial.
    side : mapping of str to str, optional
        What the attacker knows about each speaker, empty if nothing: also rank among the enrolled speakers who match.
    work : Work
        Workers; the result does not depend on them.
    verbose : bool
        Whether to show progress.

    Raises
    ------
    DataError
        If a number of utterances is out of range, ids or dimensions do not fit, or a vector has no direction.
    """
    averaging = averaging or Averaging()
    numbers = _numbers(utterances)
    warn_of_enrolled(enrolled, tested)
    with errors_of(enrolled.source or None):
        gallery = speaker_vectors(enrolled, averaging=averaging, keep_order=True)
    tables = {}
    impostor_scores = {}
    matching = {}
    for number in numbers or [1]:
        n_averaged = None if number == ALL else number
        with errors_of(tested.source or None):
            trials = speaker_vectors(tested, averaging=averaging, utterances=n_averaged)
            ranks = rank_speakers(gallery, trials, not_enrolled=not_enrolled, work=work)
            if keep_impostors and ranks.largest_size > KEPT:
                impostor_scores[number] = largest_impostor_scores(
                    gallery, trials, ranks, jobs=work.jobs
                )
            if side is not None:
                matching[number] = _rank_matching(gallery, trials, side, work)
        notes = list(ranks.notes)
        if numbers is None and len(tested.ids) > len(trials.names):
            which = "the first" if averaging.choice == "first" else "one"
            text = f"only {which} utterance of each speaker is tested ({len(trials.names)} of {len(tested.ids)})"
            notes.append(f"{text}; --utterances all averages all")
        if averaging.choice == "random":
            notes.append(f"utterances are drawn at random, seed {averaging.seed}")
        tables[number] = replace(ranks, notes=tuple(notes))
    return RankTables(tables, impostor_scores, matching)


def rank_trial_scores(
    scores: Scores,
    key: Key,
    *,
    utterances: Sequence[Utterances] | None = None,
    model_speakers: Speakers | None = None,
    segment_speakers: Speakers | None = None,
    bootstrap_by: Literal["speaker", "id"] = "speaker",
    missing: Missing = "error",
    keep_impostors: bool = False,
    side: Mapping[str, str] | None = None,
) -> RankTables:
    """Rank the target speakers of trials among the models that they were scored against.

    Parameters
    ----------
    scores, key : Scores, Key
        Joined by id pair, as `split_scores` does.
    utterances : sequence of int or "all", optional
        Numbers of segments whose scores are averaged; by default each segment is a separate trial.
    model_speakers, segment_speakers : mapping of str to str, callable, or str, optional
        Speaker of each model and segment; see `evaluation.trials.find_speakers`.
    bootstrap_by : {"speaker", "id"}
        What intervals resample: speakers, or ids of models. If speakers are asked for but models may not be speakers,
        `Ranks.are_speakers` is false and there are no intervals.
    missing : {"error", "drop", "reject"}
        What to do with trials of the key that have no score.
    keep_impostors : bool
        Keep the largest impostor scores of each trial.
    side : mapping of str to str, optional
        What the attacker knows about each id or speaker, see `evaluation.trials.match_sides`: also rank among the
        models that match.

    Raises
    ------
    DataError
        If a number of utterances or `bootstrap_by` is out of range, or as in `evaluation.linkage.rank_scores`.
    """
    if bootstrap_by not in ("speaker", "id"):
        raise DataError(f"expected bootstrap_by 'speaker' or 'id', got {bootstrap_by!r}")
    numbers = _numbers(utterances)
    values, truth = join_scores(scores, key, missing=missing)
    turned = reversal(values[truth.is_target], values[~truth.is_target])
    notes = []
    if turned is not None:
        notes.append(turned.text)
    maps = {"model_speakers": model_speakers, "segment_speakers": segment_speakers}
    doubt = doubt_speakers(key, **maps)
    speakers = None
    are_speakers = True
    if doubt is not None and doubt.side == "model" and bootstrap_by == "speaker":
        are_speakers = False
        notes.insert(0, f"no intervals: {doubt.text}; {_NOT_SPEAKERS}")
        logger.warning(notes[0])
    elif model_speakers is not None or segment_speakers is not None:
        speakers = find_speakers(key, **maps)
    wanted: list[Utterances | None] = [None]
    if numbers is not None:
        wanted = ["all" if number == ALL else number for number in numbers]
    largest = KEPT if keep_impostors else 0
    ranked = rank_scores(scores, key, wanted, largest=largest, missing=missing, speakers=speakers)
    tables = {}
    impostor_scores = {}
    for number, (ranks, kept) in zip(numbers or [1], ranked, strict=True):
        tables[number] = replace(ranks, notes=(*ranks.notes, *notes), are_speakers=are_speakers)
        if kept is not None:
            impostor_scores[number] = kept
    matching = {}
    if side is not None:
        searched = rank_scores(scores, key, wanted, missing=missing, speakers=speakers, side=side)
        for number, (ranks, _) in zip(numbers or [1], searched, strict=True):
            matching[number] = replace(ranks, are_speakers=are_speakers)
    return RankTables(tables, impostor_scores, matching)


def first_rate(ranks: Ranks, resampling: Resampling | None = None) -> Interval:
    """Return how often the target speaker ranks first in the whole gallery of each row, with its interval.

    Parameters
    ----------
    ranks : Ranks
        Galleries may differ in size.
    resampling : Resampling, optional
        Resampling of the speakers; `Resampling()` by default.

    Examples
    --------
    >>> first_rate(Ranks([0, 1, 0, 2], 0, [3, 3, 2, 2]), Resampling(0)).value
    0.5
    """
    _, codes, counts = np.unique(ranks.speakers, return_inverse=True, return_counts=True)
    shares = np.bincount(codes, ranks.first()) / counts
    return mean_interval(shares, resampling, counts=counts)


def matching_report(ranks: Ranks, resampling: Resampling | None = None) -> dict[str, Any]:
    """Return how often the target speaker ranks first among those who match, and how many match, for a report.

    Parameters
    ----------
    ranks : Ranks
        Ranks with side information; see `RankTables.matching`.
    resampling : Resampling, optional
        See `first_rate`.

    Examples
    --------
    >>> report = matching_report(Ranks([0, 1], 0, [0, 3]), Resampling(0))
    >>> report["rank1"]["value"], report["rank1"]["chance"], report["n_matching"], report["share_alone"]
    (0.5, 0.625, 2.5, 0.5)
    """
    sizes = ranks.impostors + 1
    first = first_rate(ranks, resampling)
    return {
        "rank1": {**first.numbers(), "chance": float(np.mean(1 / sizes))},
        "n_matching": float(sizes.mean()),
        "share_alone": float((sizes == 1).mean()),
    }


def read_rank_tables(
    path: str | Path, utterances: Sequence[Utterances] | None = None
) -> RankTables:
    """Return the ranks of an earlier run, and the largest impostor scores if it kept them.

    Parameters
    ----------
    path : path
        The folder of the run, or its ``ranks.npz``.
    utterances : sequence of int or "all", optional
        Numbers of utterances; by default all that were kept.

    Raises
    ------
    DataError
        If there are no ranks, or none for these numbers of utterances.
    """
    path = Path(path)
    file = path / RANKS if path.is_dir() else path
    tables = read_ranks(file)
    numbers = _numbers(utterances)
    if numbers is None:
        numbers = list(tables)
    absent = [utterances_name(number) for number in numbers if number not in tables]
    if absent:
        known = ", ".join(map(utterances_name, tables))
        raise DataError(f"holds ranks of L = {known}, not of {', '.join(absent)}", file=file)
    tables = {number: table for number, table in tables.items() if number in numbers}
    impostors = file.parent / IMPOSTORS
    impostor_scores = {}
    if impostors.exists():
        arrays = read_npz(impostors)
        impostor_scores = {
            number: arrays[str(number)] for number in tables if str(number) in arrays
        }
    for number, scores in impostor_scores.items():
        if scores.ndim != 2 or len(scores) != len(tables[number]):
            text = f"expected a row for each of {len(tables[number]):,} trials, got the shape {scores.shape}"
            raise DataError(text, file=impostors, remedy="write it again, or remove it")
    return RankTables(tables, impostor_scores)


def write_impostor_scores(
    folder: str | Path, impostor_scores: Mapping[int, NDArray[np.float64]]
) -> None:
    """Write the largest impostor scores into the folder of the ranks, atomically."""
    arrays: dict[str, Any] = {str(number): scores for number, scores in impostor_scores.items()}
    with atomic_path(Path(folder) / IMPOSTORS) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def utterances_name(number: int) -> str:
    """Return a number of utterances as text.

    Examples
    --------
    >>> utterances_name(3), utterances_name(ALL)
    ('3', 'all')
    """
    if number == ALL:
        return "all"
    return str(number)


def _rank_matching(
    gallery: SpeakerVectors, trials: SpeakerVectors, side: Mapping[str, str], work: Work
) -> Ranks:
    """Rank the trials of enrolled speakers among those who match."""
    kept = np.isin(trials.names.astype(str), gallery.names.astype(str))
    names = trials.names[kept]
    vectors = trials.vectors[kept]
    enrolled = side_of(gallery.names, side)
    tested = side_of(names, side)
    counts = np.zeros((3, len(names)), np.int64)
    mated = np.empty(len(names))
    for value in sorted(set(tested)):
        own = tested == value
        searched = (enrolled == value) | (enrolled == "") | (not value)
        owners = recode(names[own], gallery.names[searched])
        beaters, ties, mated[own] = count_beaters(
            gallery.vectors[searched], gallery.norms[searched], vectors[own], owners, work=work
        )
        counts[:, own] = beaters, ties, np.full(len(owners), searched.sum() - 1)
    return Ranks(counts[0], counts[1], counts[2], names, mated)


def _numbers(utterances: Sequence[Utterances] | None) -> list[int] | None:
    """Return numbers of utterances with `ALL` for "all"; None if none were requested."""
    if not utterances:
        return None
    for number in utterances:
        if number != "all" and not (isinstance(number, int) and number >= 1):
            raise DataError(f"expected numbers of utterances from 1, or 'all', got {number!r}")
    return [ALL if number == "all" else number for number in utterances]
