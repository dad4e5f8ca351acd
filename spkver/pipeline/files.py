"""What another tool has done already: its files in the place of a stage's own work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, read_embeddings
from spkbase.errors import DataError, Problems, few
from spkbase.files import write_arrays
from spkbase.runs import Draft
from spkver.backend import SvmModels, read_svms, write_svms
from spkver.idmap import IdMap
from spkver.mixture import copy_stat_rows
from spkver.sidekit import read_svm


@dataclass(frozen=True)
class RowsFile:
    """A file of statistics, supervectors or vectors, and the list whose rows are to be taken from it.

    Attributes
    ----------
    path : Path
        A StatServer in SIDEKIT's layout; for vectors any file that `evaluation.embeddings.read_embeddings` reads.
    idmap : IdMap
        Rows of (model, segment); the file may hold others too, in any order.
    """

    path: Path
    idmap: IdMap

    def copy_statistics(self, draft: Draft, widths: tuple[int, int] | None = None) -> None:
        """Make an artefact of the rows of the list, in its order; see `spkver.mixture.copy_stat_rows`."""
        copy_stat_rows(self.path, self.idmap.models, self.idmap.segments, draft.destination, widths=widths)

    def copy_vectors(self, draft: Draft) -> None:
        """Make an artefact of the vectors of the list, in its order."""
        known = read_embeddings(self.path)
        vectors = np.asarray(known.vectors[vector_rows(self.path, known, self.idmap)])
        arrays = {"ids": self.idmap.segments, "speakers": self.idmap.models, "vectors": vectors}
        write_arrays(draft.path, arrays, attributes=draft.attributes)


def vector_rows(file: Path, known: Embeddings, idmap: IdMap) -> NDArray[np.int64]:
    """Return the row of each segment of a list among vectors, by its id or by the last part of it, ``m101_02_001``.

    Raises
    ------
    DataError
        With the first segments that have none.
    """
    rows = {name: row for row, name in enumerate(known.ids.tolist())}
    segments = [name if name in rows else name.rpartition("/")[2] for name in idmap.segments.tolist()]
    absent = [name for name, key in zip(idmap.segments.tolist(), segments, strict=True) if key not in rows]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(idmap)} recordings have no vector: {few(absent)}",
            file=file,
            remedy="extract those of all recordings of the lists: spkver embed takes task/data of a recipe's output",
        )
    return np.array([rows[key] for key in segments], np.int64)


def machine_files(given: Path, models: list[str]) -> dict[str, Path]:
    """Return the file of each model's machine in a folder of SIDEKIT's, ``{model}.svm``; one file of ours for all.

    Raises
    ------
    DataError
        With all models that have none.
    """
    if not given.is_dir():
        return {"machines": given}
    files = {model: given / f"{model}.svm" for model in models}
    problems = Problems(given)
    for model, path in files.items():
        if not path.is_file():
            problems.add(f"no machine of model {model!r}", file=path, remedy="copy SIDEKIT's svm folder, or train them")
    problems.raise_if_any()
    return files


def copy_machines(draft: Draft, files: Mapping[str, Path], models: list[str]) -> None:
    """Make an artefact of machines: of SIDEKIT's files, which the restricted reader opens, or of one of ours."""
    if [*files] == ["machines"]:
        there = read_svms(files["machines"])
        rows = {model: row for row, model in enumerate(there.models.tolist())}
        absent = [model for model in models if model not in rows]
        if absent:
            raise DataError(
                f"{len(absent)} models without a machine, {absent[0]!r} first",
                file=files["machines"],
                remedy="train machines for all models of the enrolment list",
            )
        order = np.array([rows[model] for model in models])
        machines = SvmModels(np.array(models, object), np.asarray(there.weights)[order], there.biases[order])
    else:
        pairs = [read_svm(files[model], allow_pickle=True) for model in models]
        widths = {len(weights): model for model, (weights, _) in zip(models, pairs, strict=True)}
        if len(widths) > 1:
            text = f"machines of different dimensions: {', '.join(f'{n} of {model}' for n, model in widths.items())}"
            raise DataError(text, file=files[models[0]].parent, remedy="train all of them on the same supervectors")
        weights, biases = (np.array(column) for column in zip(*pairs, strict=True))
        machines = SvmModels(np.array(models, object), weights, biases)
    write_svms(draft.path, machines, attributes=draft.attributes)
