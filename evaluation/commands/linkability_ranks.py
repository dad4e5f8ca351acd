"""Ranks of an earlier run of ``spkver-eval linkability``, taken up again for other sizes, ties or populations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from evaluation.linkage import Ranks, read_ranks
from evaluation.reports import RANKS, utterances_name
from spkbase.errors import DataError
from spkbase.files import BROKEN_NPZ, atomic_file, read_npz

IMPOSTORS = "impostors.npz"


def source_of(options: dict[str, Any]) -> Literal["embeddings", "scores", "ranks"]:
    """Return which kind of input was given; exactly one must be whole."""
    scored, of_key, enrolled, tried, ranked = (
        options[name] is not None for name in ("scores", "key", "enroll", "trial", "ranks")
    )
    if scored + enrolled + ranked != 1 or enrolled != tried or (of_key and not scored):
        raise click.UsageError("expected --enroll FILE with --trial FILE, or -s SCORES with -k KEY, or --ranks FOLDER")
    if not enrolled and options["singling_out"]:
        raise click.UsageError("--singling-out needs embeddings: --enroll FILE --trial FILE")
    return "embeddings" if enrolled else "scores" if scored else "ranks"


def take_up_ranks(path: Path, numbers: list[int] | None) -> tuple[dict[int, Ranks], dict[int, NDArray], bool]:
    """Return ranks of an earlier run, and the largest impostor scores where it kept them.

    Also tells whether the speakers were known, of whom intervals are.

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
    named = not any(note.startswith("no intervals:") for table in ranks.values() for note in table.notes)
    return ranks, _kept_impostors(file.parent / IMPOSTORS, ranks), named


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
