"""Systems of one vector a recording: which recordings train them, and their chains of steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evaluation.embeddings import read_embeddings
from spkbase.errors import ConfigError, DataError, Problems
from spkver.backend import Chain, Facts, check_chain, parse_chain
from spkver.corpora import Rsr2015
from spkver.idmap import IdMap
from spkver.pipeline import vector_rows
from spkver.vectors import IVectorMethod, check_rank

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class IVectorsConfig:
    """How vectors are extracted, and who trains the matrix and the chains.

    Attributes
    ----------
    list : {"ubm", "background", "nap"}
        Recordings that train the matrix and the chains: all of the background speakers, or those of a list of theirs.
    classes : {"speaker", "sentence"}
        What the chains learn to tell apart: speakers, or speakers with a sentence each, as models are.
    method : {"exact", "weights", "eigen"}
        Of extraction: the posterior mean, or one of two fast approximations.
    """

    list: Literal["ubm", "background", "nap"] = "ubm"
    classes: Literal["speaker", "sentence"] = "speaker"
    method: IVectorMethod = "exact"


def parse_systems(systems: dict[str, Any]) -> dict[str, Chain]:
    """Return the chain of each system, parsed; those of None are left out.

    Raises
    ------
    ConfigError
        With all problems: a name that no file can have, a chain that is none.
    """
    problems, chains = Problems(), {}
    for name, spec in systems.items():
        if spec is None:
            continue
        if not _NAME.fullmatch(name):
            problems.note(ConfigError(f"systems.{name} cannot name a file: expected letters, digits, '.', '_' and '-'"))
            continue
        try:
            chains[name] = parse_chain(spec)
        except ConfigError as error:
            problems.note(ConfigError(f"systems.{name}: {error.text}", remedy=error.remedy))
    try:
        problems.raise_if_any()
    except DataError as error:
        raise ConfigError(error.text, remedy=error.remedy) from error
    return chains


def vector_lists(lists: Rsr2015, config: IVectorsConfig) -> dict[str, IdMap]:
    """Return the lists training, enroll and test; the models of the training list are the classes of the chains."""
    whole = IdMap.from_pairs((segment.split("/")[0], segment) for segment in lists.ubm)
    training = {"ubm": whole, "background": lists.background, "nap": lists.nap}[config.list]
    if config.classes == "sentence":
        classes = [f"{segment.split('/')[0]}_{segment.rpartition('_')[2]}" for segment in training.segments]
        training = IdMap.from_pairs(zip(classes, training.segments.tolist(), strict=True))
    return {"training": training, "enroll": lists.enrolment, "test": lists.test}


def check_vectors(
    maps: dict[str, IdMap], chains: dict[str, Chain], *, rank: int, width: int, file: str | None = None
) -> None:
    """Check that the training list can train the matrix and every chain, and that ready vectors are all there.

    Parameters
    ----------
    maps : dict of str to IdMap
        See `vector_lists`.
    chains : dict of str to Chain
        By system.
    rank : int
        Of the matrix.
    width : int
        Dimensions of a supervector.
    file : str, optional
        Vectors that are ready, in the place of i-vectors.

    Raises
    ------
    DataError
        With all problems.
    """
    problems = Problems()
    if not chains:
        problems.note(ConfigError("systems is empty", remedy="name a chain, such as systems.cosine=centre,cosine"))
    counts = [len(rows) for rows in maps["training"].rows_of_models().values()]
    try:
        if file is not None:
            rank = _check_file(Path(file), maps, problems)
        else:
            check_rank(rank, n_segments=len(maps["training"]), width=width)
    except DataError as error:
        problems.note(error)
    for name, chain in chains.items():
        try:
            check_chain(chain, Facts(rank, len(counts), max(counts)))
        except ConfigError as error:
            problems.note(ConfigError(f"systems.{name}: {error.text}", remedy=error.remedy))
    problems.raise_if_any()


def _check_file(file: Path, maps: dict[str, IdMap], problems: Problems) -> int:
    """Return the dimensions of ready vectors."""
    known = read_embeddings(file)
    for idmap in maps.values():
        try:
            vector_rows(file, known, idmap)
        except DataError as error:
            problems.note(error)
    return int(known.vectors.shape[1])
