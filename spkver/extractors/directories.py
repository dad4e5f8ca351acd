"""Vectors of a data directory: one an utterance, in a file that names what made them.

While the work is on, finished vectors stand in a file beside it, each with the checksum of its recording: a run that
was killed works out the rest alone, and so does one after a recording was mended or taken off the lists.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, read_embeddings
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import atomic_path, file_digest
from spkbase.files import fingerprint as digest_of
from spkbase.hdf5 import new_file, open_file, write_strings
from spkbase.plain_pickle import read_npz
from spkbase.runs import append_line, read_lines, versions
from spkbase.work import ALL_CORES, Work, chunks, ordered_map
from spkver.audio import audio_header
from spkver.datadir import DataDir
from spkver.extractors.doors import Extractor
from spkver.extractors.protocol import Extraction, Recording, too_short

logger = logging.getLogger(__name__)

SUFFIXES = (".h5", ".hdf5", ".npz")
_FILES = 64  # whose headers and checksums are one task


def embed_directory(
    source: DataDir, extractor: Extractor, destination: str | Path, *, work: Work = ALL_CORES
) -> Embeddings:
    """Extract the vector of each utterance of a data directory, and write them all to a file.

    Vectors depend on the recording and the extractor alone: not on the other recordings, their order or the workers.

    Parameters
    ----------
    source : DataDir
    extractor : Extractor
        See `open_extractor`.
    destination : path
        An HDF5 file (``.h5``) or an npz: ``ids`` and ``speakers`` (n,), ``vectors`` (n, D), sorted by id, and what made
        them, as attributes of the HDF5 file or as JSON in the npz's ``attributes``. A file that holds these very
        vectors already is left as it is.
    work : Work
        Worker processes; the result does not depend on their number.

    Returns
    -------
    Embeddings

    Raises
    ------
    ConfigError
        If the file's extension is another.
    DataError
        With all recordings at once: before the start those that are unreadable, too short or of several channels; in
        the end those without a vector, of which nothing is written then.
    """
    path = Path(destination)
    check_output(path)
    names = sorted(source.recordings)
    extraction = extractor.extraction
    rates = _check_audio(source, extraction, work.jobs) if extraction.reads_audio else Counter[int]()
    made_by = digest_of("vectors", extraction.record, versions())
    digests = _digests(source, work.jobs) if extraction.reads_audio else dict.fromkeys(names, "")
    origin = digest_of(made_by, [[n, source.speakers[n], digests[n]] for n in names])
    if _origin(path) == origin:
        logger.info("%s: all %d vectors are up to date", path, len(names))
        return read_embeddings(path)
    finished = path.with_name(f"{path.name}.unfinished")
    vectors = _finished(finished, made_by, digests)
    if vectors:
        logger.info("%d of %d vectors taken up from an earlier run", len(vectors), len(names))
    due = [(name, source.recordings[name].absolute()) for name in names if name not in vectors]
    vectors |= _extract(due, extractor, digests, finished, made_by, work.jobs)
    record = {key: json.dumps(value) if value is None else value for key, value in extraction.record.items()}
    attributes = {"extractor": extractor.spec, **record, "origin": origin}
    if any(rate != extraction.rate for rate in rates) and extraction.rate:
        attributes["resampled"] = sum(n for rate, n in rates.items() if rate != extraction.rate)
    _write(path, names, [source.speakers[name] for name in names], _stacked(vectors, names), attributes)
    finished.unlink(missing_ok=True)
    return read_embeddings(path)


def check_output(path: Path) -> None:
    """Check that vectors can be written to a file of this name; ConfigError where they cannot."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"no format of embeddings is known for {path.suffix!r}", file=path, remedy="use .h5 or .npz")
    if path.is_dir():
        raise ConfigError("expected a file to write vectors to, got a folder", file=path)


def _extract(
    due: Sequence[Recording],
    extractor: Extractor,
    digests: Mapping[str, str],
    finished: Path,
    made_by: str,
    jobs: int | None,
) -> dict[str, NDArray]:
    """Work out vectors, each kept as soon as its task is done; all errors at once in the end."""
    problems, done = Problems(), dict[str, NDArray]()
    tasks = chunks(due, extractor.extraction.batch)
    results = ordered_map(extractor, tasks, jobs=jobs, description="vectors", sizes=[*map(len, tasks)])
    for recordings, vectors in zip(tasks, results, strict=True):
        if len(vectors) != len(recordings):  # the whole task failed
            recordings = [("", Path()) for _ in vectors]
        good = []
        for (name, _), vector in zip(recordings, vectors, strict=True):
            if isinstance(vector, DataError):
                problems.note(vector)
            else:
                good.append(name)
                done[name] = vector
        if good:
            kept = [[name, digests[name], done[name].dtype.str, done[name].tolist()] for name in good]
            append_line(finished, {"made_by": made_by, "vectors": kept})
    problems.raise_if_any()
    return done


def _finished(path: Path, made_by: str, digests: Mapping[str, str]) -> dict[str, NDArray]:
    """Vectors of an earlier run by the same extractor, of recordings that are still the same."""
    return {
        name: np.array(values, dtype)
        for record in read_lines(path)
        if record["made_by"] == made_by
        for name, digest, dtype, values in record["vectors"]
        if digests.get(name) == digest
    }


def _stacked(vectors: Mapping[str, NDArray], names: Sequence[str]) -> NDArray[np.floating]:
    first = vectors[names[0]].shape
    others = [name for name in names if vectors[name].shape != first]
    if others:
        got = f"{first[0]} for {names[0]} and {vectors[others[0]].shape[0]} for {few(others)}"
        raise DataError(f"expected vectors of as many dimensions each, got {got}", remedy="correct the extractor")
    return np.stack([vectors[name] for name in names])


def _check_audio(source: DataDir, extraction: Extraction, jobs: int | None) -> Counter[int]:
    """Check the header of every file, all problems at once; returns how many have which sampling rate."""
    items = [(name, source.recordings[name]) for name in sorted(source.recordings)]
    check = partial(_check_headers, shortest=extraction.shortest)
    problems, rates = Problems(), Counter[int]()
    for some, errors in ordered_map(check, chunks(items, _FILES), jobs=jobs, threads=True):
        rates.update(some)
        for error in errors:
            problems.note(error)
    problems.raise_if_any()
    for rate, count in sorted(rates.items()):
        if extraction.rate not in (None, rate):
            logger.warning(
                "%d of %d recordings are resampled from %d to %d Hz", count, len(items), rate, extraction.rate
            )
    if extraction.rate is None and len(rates) > 1:
        logger.warning("recordings have several sampling rates: %s Hz; --rate brings them to one", sorted(rates))
    return rates


def _check_headers(items: Sequence[Recording], shortest: float) -> tuple[list[int], list[DataError]]:
    rates, errors = [], []
    for name, path in items:
        try:
            header = audio_header(path)
            if header.channels > 1:
                raise DataError(f"{header.channels} channels, expected one", remedy="write one channel of it")
            if header.seconds < shortest:
                raise too_short(header.seconds, shortest)
            rates.append(header.rate)
        except DataError as error:
            errors.append(DataError(f"{name}: {error.text}", file=error.file or path, remedy=error.remedy))
    return rates, errors


def _digests(source: DataDir, jobs: int | None) -> dict[str, str]:
    """SHA-256 of the audio file of each utterance."""
    names = chunks(sorted(source.recordings), _FILES)
    paths = [[source.recordings[name] for name in some] for some in names]
    digested = ordered_map(_digest_some, paths, jobs=jobs, threads=True)
    return {
        name: digest for some, of in zip(names, digested, strict=True) for name, digest in zip(some, of, strict=True)
    }


def _digest_some(paths: Sequence[Path]) -> list[str]:
    return [file_digest(path) or "" for path in paths]


def _write(
    path: Path, names: Sequence[str], speakers: Sequence[str], vectors: NDArray, attributes: Mapping[str, Any]
) -> None:
    if path.suffix == ".npz":
        columns = {"ids": np.array(names, np.str_), "speakers": np.array(speakers, np.str_)}
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, vectors=vectors, attributes=np.array(json.dumps(dict(attributes))), **columns)  # type: ignore[arg-type]
        return
    with new_file(path, attributes=attributes) as file:
        write_strings(file, "ids", names)
        write_strings(file, "speakers", speakers)
        file.create_dataset("vectors", data=vectors)


def _origin(path: Path) -> str:
    """What the vectors of a file were made from; nothing where it is not there, not ours or damaged."""
    try:
        if path.suffix == ".npz":
            return str(json.loads(str(read_npz(path, "attributes")["attributes"]))["origin"])
        with open_file(path) as file:
            return str(file.attrs.get("origin", ""))
    except (KeyError, ValueError, TypeError):
        return ""
