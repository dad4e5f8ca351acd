"""Vectors of a data directory: one per utterance, in a file that records how they were made.

While vectors are extracted, those that are finished are kept in a file next to the output, each with the checksum of
its recording: a run that was killed, or a run after recordings were replaced, extracts only the missing ones.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings, read_embeddings
from spkbase.errors import ConfigError, DataError, Problems, few
from spkbase.files import append_line, atomic_path, file_digest, read_lines
from spkbase.files import fingerprint as digest_of
from spkbase.hdf5 import open_file, write_arrays
from spkbase.plain_pickle import read_npz
from spkbase.progress import verbosely
from spkbase.version import versions
from spkbase.work import ALL_CORES, Work, chunks
from spkver.audio import check_headers
from spkver.datadir import DataDir, read_datadir
from spkver.extractors.protocol import ExtractorSettings, Recording
from spkver.extractors.registry import Extractor, open_extractor

logger = logging.getLogger(__name__)

SUFFIXES = (".h5", ".hdf5", ".npz")


@verbosely
def embed(
    source: str | Path,
    extractor: str,
    destination: str | Path,
    *,
    settings: ExtractorSettings | None = None,
    allow_pipes: bool = False,
    work: Work = ALL_CORES,
    verbose: bool = True,
) -> Embeddings:
    """Extract the vectors of a data directory by a named extractor, one per utterance, and write them to a file.

    Parameters
    ----------
    source : path
        A data directory.
    extractor : str
        A name, or a plug-in; see `open_extractor`.
    destination : path
        An HDF5 file (``.h5``) or an npz; see `embed_directory`. The output of shell commands in wav.scp is kept beside
        it until all vectors are extracted.
    settings : ExtractorSettings, optional
        Windows and sampling rate.
    allow_pipes : bool
        Run the shell commands of wav.scp; only for trusted lists.
    work : Work
        Worker processes; the result does not depend on their number.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Embeddings
        The contents of the file.

    Raises
    ------
    ConfigError, DataError
        As in `open_extractor`, `spkver.datadir.read_datadir` and `embed_directory`.
    """
    path = Path(destination)
    check_output(path)
    opened = open_extractor(extractor, settings)
    partial = path.with_name(f"{path.name}.partial")
    recordings = read_datadir(source, allow_pipes=allow_pipes, pipes_to=partial / "audio")
    embeddings = embed_directory(recordings, opened, path, work=work)
    shutil.rmtree(partial, ignore_errors=True)
    return embeddings


@verbosely
def embed_directory(
    source: DataDir,
    extractor: Extractor,
    destination: str | Path,
    *,
    work: Work = ALL_CORES,
    quiet: bool = False,
    most_lacking: float = 0.0,
    verbose: bool = True,
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
        Neither warn of resampled recordings nor log that all vectors exist already.
    most_lacking : float
        Largest share of the recordings that may lack a vector; the file is then written without them.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    Embeddings

    Raises
    ------
    ConfigError
        If the file's extension is not one of these.
    DataError
        With all recordings at once: before the start, those that are unreadable, too short or have several channels; at
        the end, those without a vector, in which case nothing is written unless they are few enough.
    """
    path = Path(destination)
    check_output(path)
    recordings = dict(sorted(source.recordings.items()))
    n_resampled = _check_recordings(recordings, extractor, work, quiet=quiet)
    digests = _digests(recordings, extractor, work)
    made_by = digest_of("vectors", extractor.extraction.record, versions())
    facts = [[name, source.speakers[name], digests[name]] for name in recordings]
    origin = digest_of(made_by, facts)
    if _origin(path) == origin:
        level = logging.DEBUG if quiet else logging.INFO
        logger.log(level, "%s: all %d vectors are up to date", path, len(recordings))
        return read_embeddings(path)
    finished = path.with_name(f"{path.name}.unfinished")
    vectors = _finished_vectors(finished, made_by, digests)
    if vectors:
        logger.debug("%d of %d vectors reused from an earlier run", len(vectors), len(recordings))
    problems = Problems()
    due = [(name, audio.absolute()) for name, audio in recordings.items() if name not in vectors]
    for extracted in _extracted(due, extractor, work, problems):
        vectors |= extracted
        kept = []
        for name, vector in extracted.items():
            kept.append([name, digests[name], vector.dtype.str, vector.tolist()])
        append_line(finished, {"made_by": made_by, "vectors": kept})
    if len(problems.errors) > most_lacking * len(recordings):
        problems.raise_if_any()
    vectors = dict(sorted(vectors.items()))
    _check_dimensions(vectors)
    attributes = {"extractor": extractor.spec, **extractor.extraction.record, "origin": origin}
    if n_resampled:
        attributes["resampled"] = n_resampled
    _write_vectors(path, vectors, source.speakers, attributes)
    finished.unlink(missing_ok=True)
    return read_embeddings(path)


def check_output(path: Path) -> None:
    """Check that vectors can be written to a file of this name; raise a ConfigError if they cannot."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"no format of embeddings is known for {path.suffix!r}",
            file=path,
            remedy="use .h5 or .npz",
        )
    if path.is_dir():
        raise ConfigError("expected a file to write vectors to, got a folder", file=path)


def _check_recordings(
    recordings: Mapping[str, Path], extractor: Extractor, work: Work, *, quiet: bool
) -> int:
    """Check the headers of recordings, and return how many are resampled, with a warning unless `quiet`."""
    extraction = extractor.extraction
    if not extraction.reads_audio:
        return 0
    headers = check_headers(recordings, shortest=extraction.shortest, jobs=work.jobs)
    if quiet:
        return 0
    return _warn_of_rates(Counter(header.rate for header in headers.values()), extraction.rate)


def _digests(recordings: Mapping[str, Path], extractor: Extractor, work: Work) -> dict[str, str]:
    """Return the checksum of each recording; empty if the extractor reads no audio."""
    if not extractor.extraction.reads_audio:
        return dict.fromkeys(recordings, "")
    digests = work.map(file_digest, recordings.values())
    return {name: digest or "" for name, digest in zip(recordings, digests, strict=True)}


def _extracted(
    due: Sequence[Recording], extractor: Extractor, work: Work, problems: Problems
) -> Iterator[dict[str, NDArray[np.floating]]]:
    """Yield the vectors of each task by utterance; `problems` takes the errors of the other recordings."""
    tasks = chunks(due, extractor.extraction.batch)
    sizes = list(map(len, tasks))
    results = work.map(extractor, tasks, processes=True, description="vectors", sizes=sizes)
    for task, vectors in zip(tasks, results, strict=True):
        names = [name for name, _ in task]
        yield problems.sift(zip(names, vectors, strict=True))


def _finished_vectors(
    path: Path, made_by: str, digests: Mapping[str, str]
) -> dict[str, NDArray[np.floating]]:
    """Return the vectors of an earlier run, made in the same way from the same recordings."""
    vectors = {}
    for record in read_lines(path):
        if record["made_by"] != made_by:
            continue
        for name, digest, dtype, values in record["vectors"]:
            if digests.get(name) == digest:
                vectors[name] = np.array(values, dtype)
    return vectors


def _check_dimensions(vectors: Mapping[str, NDArray[np.floating]]) -> None:
    """Refuse vectors of different dimensions."""
    first = min(vectors)
    others = [name for name, vector in vectors.items() if vector.shape != vectors[first].shape]
    if others:
        got = f"{len(vectors[first])} for {first} and {len(vectors[others[0]])} for {few(others)}"
        raise DataError(
            f"expected vectors of the same dimension, got {got}", remedy="correct the extractor"
        )


def _write_vectors(
    path: Path,
    vectors: Mapping[str, NDArray[np.floating]],
    speaker_of: Mapping[str, str],
    attributes: Mapping[str, Any],
) -> None:
    """Write vectors as npz or HDF5, whole or not at all."""
    attributes = {key: "null" if value is None else value for key, value in attributes.items()}
    ids = list(vectors)
    speakers = [speaker_of[name] for name in ids]
    stacked = np.stack(list(vectors.values()))
    if path.suffix != ".npz":
        write_arrays(
            path, {"ids": ids, "speakers": speakers, "vectors": stacked}, attributes=attributes
        )
        return
    texts = {"ids": np.array(ids, np.str_), "speakers": np.array(speakers, np.str_)}
    about = np.array(json.dumps(attributes))
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, vectors=stacked, attributes=about, **texts)  # type: ignore[arg-type]


def _warn_of_rates(rates: Counter[int], wanted: int | None) -> int:
    """Warn of recordings that are resampled, and return their number."""
    for rate, count in sorted(rates.items()):
        if wanted not in (None, rate):
            logger.warning(
                "%d of %d recordings are resampled from %d to %d Hz",
                count,
                rates.total(),
                rate,
                wanted,
            )
    if wanted is None and len(rates) > 1:
        logger.warning(
            "recordings have several sampling rates: %s Hz; give a rate to resample them to one",
            sorted(rates),
        )
    if wanted is None:
        return 0
    return rates.total() - rates[wanted]


def _origin(path: Path) -> str:
    """Return the recorded digest of the inputs of a file of vectors; empty if it is missing, foreign or damaged."""
    try:
        if path.suffix == ".npz":
            return str(json.loads(str(read_npz(path, "attributes")["attributes"]))["origin"])
        with open_file(path) as file:
            return str(file.attrs.get("origin", ""))
    except (KeyError, ValueError, TypeError):
        return ""
