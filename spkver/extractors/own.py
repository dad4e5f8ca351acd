"""Extractors of users: a Python function, a shell command, or vectors that were made elsewhere; docs/own_extractors.md.

A function gets one recording::

    def embed(samples, rate):
        return vector

========  ==============================================================================================
samples   ndarray of float32 of shape (n,), full scale 1; one channel, none of them NaN, not all of them 0
rate      int, Hz: that of the file, or that of ``--rate``
vector    D real numbers, the same D for all recordings; finite, and not all of them 0
========  ==============================================================================================

A command gets a list of recordings and writes a file of vectors, which `evaluation.embeddings.read_embeddings` reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from numpy.typing import NDArray

from evaluation.embeddings import read_embeddings
from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest
from spkbase.own_code import Limits, check_places, import_function, run_filled, usual_seconds
from spkver.extractors.protocol import Extraction, ExtractorSettings, Recording, each_by, extract_by, guarded

PLACES = ("recordings", "vectors")
_COMMAND_BATCH = 256


def open_function(spec: str, settings: ExtractorSettings) -> Extraction:
    """Open a user-supplied Python function; whole recordings at their own rate, unless the settings say otherwise."""
    function, file = import_function(spec, "extractor")
    windows = settings.windows_if_any()
    name = spec if file is None else f"{file.name}:{spec.rpartition(':')[2]}"
    record = {"function": name, "module": None if file is None else file_digest(file), **windows, "rate": settings.rate}
    extract = each_by(partial(guarded, function=function, name=spec), settings.rate, **windows)
    return Extraction(extract, record, settings.rate)


def open_command(template: str, settings: ExtractorSettings) -> Extraction:
    """Open a user-supplied shell command."""
    check_places(template, PLACES, PLACES)
    _refuse_settings("command", settings)
    extract = partial(extract_by, read=partial(run_command, template=template), name="the command")
    return Extraction(extract, {"command": template}, batch=_COMMAND_BATCH)


def run_command(recordings: Sequence[Recording], *, template: str) -> dict[str, NDArray]:
    """Have a command make the vectors of a list of recordings.

    Raises
    ------
    DataError
        If it fails, writes no vectors, takes longer than `usual_seconds` or writes more than a GiB; it is ended then.
    """
    with tempfile.TemporaryDirectory() as folder:
        scp, vectors = Path(folder) / "wav.scp", Path(folder) / "vectors.ark"
        scp.write_text("".join(f"{name} {Path(path).resolve()}\n" for name, path in recordings), encoding="utf-8")
        limits = Limits(usual_seconds(Path(path) for _, path in recordings), file=vectors)
        run_filled(template, {"recordings": scp, "vectors": vectors}, limits)
        written = next((file for file in (vectors, vectors.with_name("vectors.ark.npz")) if file.is_file()), None)
        if written is None:
            raise DataError("it wrote no {vectors}")
        embeddings = read_embeddings(written, map_above=1 << 62)  # the file goes with its folder
    return dict(zip(embeddings.ids.tolist(), embeddings.vectors, strict=True))


def open_vectors(path: str, settings: ExtractorSettings) -> Extraction:
    """Open a file of vectors that were made elsewhere."""
    _refuse_settings("vectors", settings)
    try:
        embeddings = read_embeddings(path)
    except DataError as error:
        raise DataError(error.text, file=error.file or path, line=error.line, remedy=error.remedy) from error
    rows = {name: row for row, name in enumerate(embeddings.ids.tolist())}

    def look_up(recordings: Sequence[Recording]) -> dict[str, NDArray]:
        return {name: embeddings.vectors[rows[name]] for name, _ in recordings if name in rows}

    extract = partial(extract_by, read=look_up, name=str(path))
    return Extraction(extract, {"vectors": file_digest(path)}, reads_audio=False, batch=1024)


def _refuse_settings(kind: str, settings: ExtractorSettings) -> None:
    for name in ("window", "hop", "rate"):
        if getattr(settings, name) is not None:
            raise ConfigError(f"extractor {kind!r} takes no --{name}", remedy="leave it out")
