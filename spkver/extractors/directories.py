"""Vectors of a data directory: one an utterance, in a file that records how they were made.

While vectors are extracted, those that are finished are kept in a file next to the output, each with the checksum of
its recording: a run that was killed extracts only the rest, and so does one after a recording was replaced or removed.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import numpy as np

from evaluation.embeddings import Embeddings, read_embeddings
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import append_line, atomic_path, file_digest, read_lines
from spkbase.files import fingerprint as digest_of
from spkbase.hdf5 import open_file, write_arrays
from spkbase.plain_pickle import read_npz
from spkbase.version import versions
from spkbase.work import ALL_CORES, Work, chunks
from spkver.audio import check_headers
from spkver.datadir import DataDir
from spkver.extractors.registry import Extractor

logger = logging.getLogger(__name__)

SUFFIXES = (".h5", ".hdf5", ".npz")


def embed_directory(
    source: DataDir,
    extractor: Extractor,
    destination: str | Path,
    *,
    work: Work = ALL_CORES,
    quiet: bool = False,
    most_lacking: float = 0.0,
) -> Embeddings:
    """Extract the vector of each utterance of a data directory, and write them all to a file.

    Vectors depend only on the recording and the extractor: not on the other recordings, their order or the workers.

    Parameters
    ----------
    source : DataDir
    extractor : Extractor
        See `open_extractor`.
    destination : path
        An HDF5 file (``.h5``) or an npz: ``ids`` and ``speakers`` (n,), ``vectors`` (n, D), sorted by id, and how they
        were made, as attributes of the HDF5 file or as JSON in the npz's ``attributes``. A file that already holds the
        same vectors is kept.
    work : Work
        Worker processes; the result does not depend on their number.
    quiet : bool
        Do not warn of recordings that are resampled, nor tell that all vectors are there.
    most_lacking : float
        Share of the recordings that may have no vector: the file is then written without them.

    Returns
    -------
    Embeddings

    Raises
    ------
    ConfigError
        If the file's extension is not one of these.
    DataError
        With all recordings at once: before the start those that are unreadable, too short or of several channels; at
        the end those without a vector, and then nothing is written, unless they are few enough.
    """
    path, extraction = Path(destination), extractor.extraction
    check_output(path)
    recordings = dict(sorted(source.recordings.items()))
    digests, n_resampled = dict.fromkeys(recordings, ""), 0
    if extraction.reads_audio:
        headers = check_headers(recordings, shortest=extraction.shortest, jobs=work.jobs)
        n_resampled = (
            0 if quiet else _warn_of_rates(Counter(header.rate for header in headers.values()), extraction.rate)
        )
        digested = work.map(file_digest, recordings.values())
        digests = {name: digest or "" for name, digest in zip(recordings, digested, strict=True)}
    made_by = digest_of("vectors", extraction.record, versions())
    origin = digest_of(made_by, [[name, source.speakers[name], digests[name]] for name in recordings])
    if _origin(path) == origin:
        logger.log(logging.DEBUG if quiet else logging.INFO, "%s: all %d vectors are up to date", path, len(recordings))
        return read_embeddings(path)
    finished = path.with_name(f"{path.name}.unfinished")
    vectors = {
        name: np.array(values, dtype)
        for record in read_lines(finished)
        if record["made_by"] == made_by
        for name, digest, dtype, values in record["vectors"]
        if digests.get(name) == digest
    }
    if vectors:
        logger.debug("%d of %d vectors reused from an earlier run", len(vectors), len(recordings))
    due = [(name, audio.absolute()) for name, audio in recordings.items() if name not in vectors]
    problems, tasks = Problems(), chunks(due, extraction.batch)
    results = work.map(extractor, tasks, processes=True, description="vectors", sizes=[*map(len, tasks)])
    for task, found in zip(tasks, results, strict=True):
        good = problems.sift(zip([name for name, _ in task], found, strict=True))
        vectors |= good
        kept = [[name, digests[name], vector.dtype.str, vector.tolist()] for name, vector in good.items()]
        append_line(finished, {"made_by": made_by, "vectors": kept})
    if len(problems.errors) > most_lacking * len(recordings):
        problems.raise_if_any()
    recordings = {name: audio for name, audio in recordings.items() if name in vectors}
    others = [name for name in recordings if vectors[name].shape != vectors[min(recordings)].shape]
    if others:
        sizes = [len(vectors[name]) for name in (min(recordings), others[0])]
        text = (
            f"expected vectors of one dimension, got {sizes[0]} for {min(recordings)} and {sizes[1]} for {few(others)}"
        )
        raise DataError(text, remedy="correct the extractor")
    record = {key: json.dumps(value) if value is None else value for key, value in extraction.record.items()}
    attributes = {"extractor": extractor.spec, **record, "origin": origin}
    if n_resampled:
        attributes["resampled"] = n_resampled
    columns = {"ids": list(recordings), "speakers": [source.speakers[name] for name in recordings]}
    stacked = np.stack([vectors[name] for name in recordings])
    if path.suffix == ".npz":
        texts = {name: np.array(column, np.str_) for name, column in columns.items()}
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, vectors=stacked, attributes=np.array(json.dumps(attributes)), **texts)  # type: ignore[arg-type]
    else:
        write_arrays(path, {**columns, "vectors": stacked}, attributes=attributes)
    finished.unlink(missing_ok=True)
    return read_embeddings(path)


def check_output(path: Path) -> None:
    """Check that vectors can be written to a file of this name; ConfigError where they cannot."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"no format of embeddings is known for {path.suffix!r}", file=path, remedy="use .h5 or .npz")
    if path.is_dir():
        raise ConfigError("expected a file to write vectors to, got a folder", file=path)


def _warn_of_rates(rates: Counter[int], wanted: int | None) -> int:
    """Warn of recordings that are resampled, and return their number."""
    for rate, count in sorted(rates.items()):
        if wanted not in (None, rate):
            logger.warning("%d of %d recordings are resampled from %d to %d Hz", count, rates.total(), rate, wanted)
    if wanted is None and len(rates) > 1:
        logger.warning(
            "recordings have several sampling rates: %s Hz; a given rate resamples them to one", sorted(rates)
        )
    return 0 if wanted is None else rates.total() - rates[wanted]


def _origin(path: Path) -> str:
    """Digest of what the vectors of a file were made from; empty if the file is missing, foreign or damaged."""
    try:
        if path.suffix == ".npz":
            return str(json.loads(str(read_npz(path, "attributes")["attributes"]))["origin"])
        with open_file(path) as file:
            return str(file.attrs.get("origin", ""))
    except (KeyError, ValueError, TypeError):
        return ""
