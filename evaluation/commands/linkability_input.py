"""What ``spkver-eval linkability`` starts from: embeddings, scores, or the ranks of an earlier run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from evaluation.commands.options import Reader
from evaluation.embeddings import Averaging, Embeddings, read_embeddings, speaker_vectors
from evaluation.formats import join, read_scores_and_key
from evaluation.linkage import (
    KEPT,
    REPORTED,
    Ranks,
    largest_impostor_scores,
    rank_scores,
    rank_speakers,
    read_ranks,
    singling_out,
)
from evaluation.reports import ALL, RANKS, Settings, utterances_name
from spkbase.errors import DataError
from spkbase.files import BROKEN_NPZ, atomic_file, read_npz
from spkbase.work import Work

logger = logging.getLogger(__name__)

IMPOSTORS = "impostors.npz"


def source_of(options: dict[str, Any]) -> Literal["embeddings", "scores", "ranks"]:
    """Return which kind of input was given; exactly one must be whole."""
    kinds: dict[Literal["embeddings", "scores", "ranks"], tuple[str, ...]] = {
        "embeddings": ("enroll", "trial"),
        "scores": ("scores", "key"),
        "ranks": ("ranks",),
    }
    begun = [kind for kind, names in kinds.items() if any(options[name] is not None for name in names)]
    if len(begun) != 1 or any(options[name] is None for name in kinds[begun[0]]):
        raise click.UsageError("expected --enroll FILE with --trial FILE, or -s SCORES with -k KEY, or --ranks FOLDER")
    if begun[0] != "embeddings" and options["singling_out"]:
        raise click.UsageError("--singling-out needs embeddings: --enroll FILE --trial FILE")
    return begun[0]


def take_up_ranks(path: Path, numbers: list[int] | None) -> tuple[dict[int, Ranks], dict[int, NDArray]]:
    """Return ranks of an earlier run, and the largest impostor scores where it kept them.

    Raises
    ------
    DataError
        If there are none, or not of these numbers of utterances.
    """
    file = path / RANKS if path.is_dir() else path
    tables = read_ranks(file)
    absent = [utterances_name(number) for number in numbers or [] if number not in tables]
    if absent:
        known = ", ".join(map(utterances_name, tables))
        raise DataError(f"holds ranks of L = {known}, not of {', '.join(absent)}", file=file)
    ranks = {number: table for number, table in tables.items() if numbers is None or number in numbers}
    return ranks, _kept_impostors(file.parent / IMPOSTORS, ranks)


def keep_impostors(folder: Path, largest: dict[int, NDArray]) -> None:
    """Write the largest impostor scores beside the ranks, for populations that a later run asks for."""
    with atomic_file(folder / IMPOSTORS) as file:
        np.savez_compressed(file, **{str(number): scores for number, scores in largest.items()})  # type: ignore[arg-type]


def _kept_impostors(path: Path, ranks: dict[int, Ranks]) -> dict[int, NDArray]:
    if not path.exists():
        return {}
    try:
        kept = {int(number): scores for number, scores in read_npz(path).items()}
    except (OSError, ValueError, *BROKEN_NPZ) as error:
        raise DataError(f"cannot be read: {error}", file=path, remedy="write it again, or remove it") from error
    for number, scores in kept.items():
        if number in ranks and (scores.ndim != 2 or len(scores) != len(ranks[number])):
            text = f"expected a row for each of {len(ranks[number]):,} trials, got the shape {scores.shape}"
            raise DataError(text, file=path, remedy="write it again, or remove it")
    return {number: scores for number, scores in kept.items() if number in ranks}


def read_side(options: dict[str, Any], side: str) -> Embeddings:
    return read_embeddings(options[side], speakers=options[f"{side}_speakers"], allow_pickle=options["allow_pickle"])


def rank_embeddings(
    enrol: Embeddings, trial: Embeddings, options: dict[str, Any], numbers: list[int] | None
) -> tuple[dict[int, Ranks], dict[int, NDArray]]:
    """Rank; give the largest impostor scores too, if there is to be extrapolation."""
    averaging = Averaging(options["mean"], options["choice"], options["seed"])
    work = Work(options["jobs"], options["device"])
    try:
        gallery = speaker_vectors(enrol, averaging=averaging, keep_order=True)
    except DataError as error:
        raise DataError(error.text, file=options["enroll"], remedy=error.remedy) from error
    ranks, largest = {}, {}
    for number in numbers or [1]:
        wanted = None if number == ALL else number
        try:
            trials = speaker_vectors(trial, averaging=averaging, utterances=wanted, strict=options["strict_utterances"])
            ranks[number] = rank_speakers(gallery, trials, not_enrolled=options["not_enrolled"], work=work)
            if (options["extrapolate"] or options["keep_impostors"]) and ranks[number].largest_size > KEPT:
                largest[number] = largest_impostor_scores(gallery, trials, ranks[number], jobs=work.jobs)
        except DataError as error:
            raise DataError(error.text, file=options["trial"], remedy=error.remedy) from error
    return ranks, largest


def rank_scores_of(
    options: dict[str, Any], reader: Reader, numbers: list[int] | None
) -> tuple[dict[int, Ranks], dict[int, NDArray]]:
    """Rank from scores; without --utterances each segment is a trial of its own. See `rank_embeddings`."""
    columns = reader.scores, reader.key
    files = options["scores"], options["key"]
    scores, key = read_scores_and_key(*files, scores_columns=columns[0], key_columns=columns[1])
    if reader.missing == "error":
        join(scores, key, files=files, columns=columns)  # for its places in the files
    wanted: list[int | Literal["all"] | None] = [None] if numbers is None else []
    wanted += ["all" if number == ALL else number for number in numbers or []]
    try:
        found = rank_scores(
            scores,
            key,
            wanted,
            largest=KEPT if options["extrapolate"] or options["keep_impostors"] else 0,
            strict_utterances=options["strict_utterances"],
            missing=reader.missing,
        )
    except DataError as error:
        raise DataError(error.text, file=files[1], remedy=error.remedy) from error
    tables = dict(zip(numbers or [1], found, strict=True))
    ranks = {number: table for number, (table, _) in tables.items()}
    return ranks, {number: largest for number, (_, largest) in tables.items() if largest is not None}


def single_out(
    enrol: Embeddings, trial: Embeddings, settings: Settings, options: dict[str, Any], numbers: list[int] | None
) -> dict[str, Any]:
    """Singling out, for each number of utterances that is one."""
    averaging = Averaging(options["mean"], options["choice"], options["seed"])
    report: dict[str, Any] = {}
    failure: DataError | None = None
    for number in numbers or [1]:
        if number == ALL:
            continue
        try:
            found = singling_out(enrol, trial, utterances=number, averaging=averaging, resampling=settings.resampling)
            report[utterances_name(number)] = found.to_dict()
        except DataError as error:  # too few utterances for so long conversations, which shorter ones may not have
            failure = error
            logger.warning("no singling out for L = %d: %s", number, error.text)
            report[utterances_name(number)] = dict.fromkeys(REPORTED) | {"notes": [error.text]}
    if failure is not None and all(entry["value"] is None for entry in report.values()):
        raise failure
    return report
