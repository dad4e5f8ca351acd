"""Vectors that attackers share: each recording goes through an extractor once in a run, whoever asks for it and when.

    WORK/vectors/<extractor>-<key>/vectors.journal

A vector is kept by the checksum of its audio file, and the folder by all that the extractor's vectors depend on. So a
run that was killed works out the rest alone, and what draws, subsets and scenarios have in common is there already.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from spkbase.errors import DataError, Problems, few
from spkbase.files import file_digest, fingerprint, make_folder
from spkbase.runs import SUFFIX, Journal, versions
from spkbase.showing import one_line
from spkbase.work import chunks, ordered_map
from spkver.datadir import DataDir
from spkver.extractors import Extractor

logger = logging.getLogger(__name__)

_FILES = 64  # whose checksums are one task
_KEY = 16  # digits


@one_line
@dataclass(frozen=True)
class VectorStore:
    """The vectors of an extractor below a folder.

    Attributes
    ----------
    folder : Path
        ``WORK/vectors``.
    extractor : Extractor
    jobs : int or None
        Worker processes; the vectors do not depend on their number.
    """

    folder: Path
    extractor: Extractor
    jobs: int | None = None
    _known: dict[str, NDArray[np.floating]] = field(default_factory=dict, repr=False)
    _digests: dict[tuple[str, int, int], str] = field(default_factory=dict, repr=False)

    @property
    def made_by(self) -> str:
        """Digest of all that the vectors depend on besides the recordings."""
        return fingerprint("vectors", dict(self.extractor.extraction.record), versions())

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, sorted by utterance.

        Parameters
        ----------
        directory : DataDir
        utterances : mapping of str to str, optional
            The utterances that are wanted, each with its speaker; all of the directory by default.

        Raises
        ------
        DataError
            With all recordings that have no vector.
        """
        owners = dict(directory.speakers if utterances is None else utterances)
        names = sorted(owners)
        digests = self._digests_of([directory.recordings[name] for name in names])
        self._work_out({digest: directory.recordings[name] for name, digest in zip(names, digests, strict=True)})
        rows = [self._known[digest] for digest in digests]
        strange = [name for name, row in zip(names, rows, strict=True) if row.shape != rows[0].shape]
        if strange:
            text = f"expected vectors of {len(rows[0])} dimensions as that of {names[0]}, got others for {few(strange)}"
            raise DataError(text, file=directory.path, remedy="correct the extractor")
        speakers = np.array([owners[name] for name in names], object)
        return Embeddings(np.array(names, object), speakers, np.stack(rows), source=str(directory.path))

    def _work_out(self, wanted: Mapping[str, Path]) -> None:
        """Extract what is not there, each kept as soon as its task is done; all errors at once in the end."""
        if wanted.keys() <= self._known.keys():
            return
        name = self.extractor.spec.partition(":")[0]
        folder = make_folder(self.folder / f"{Path(name).stem}-{self.made_by[:_KEY]}")
        problems = Problems()
        with Journal(folder / f"vectors{SUFFIX}", self.made_by, total=None) as journal:
            for number in range(len(journal)):
                arrays, note = journal.read(number)
                self._known.update({digest: arrays[str(row)] for row, digest in enumerate(note)})
            due = [(digest, path) for digest, path in sorted(wanted.items(), key=_by_path) if digest not in self._known]
            tasks = chunks([(str(path), path.absolute()) for _, path in due], self.extractor.extraction.batch)
            of_tasks = chunks([digest for digest, _ in due], self.extractor.extraction.batch)
            sizes = [*map(len, tasks)]
            results = ordered_map(self.extractor, tasks, jobs=self.jobs, description="vectors", sizes=sizes)
            for digests, found in zip(of_tasks, results, strict=True):
                good = {}
                for row, vector in enumerate(found):
                    if isinstance(vector, DataError):
                        problems.note(vector)
                    elif len(found) == len(digests):
                        good[digests[row]] = vector
                if good:
                    journal.append({str(row): vector for row, vector in enumerate(good.values())}, list(good))
                self._known.update(good)
        problems.raise_if_any()

    def _digests_of(self, paths: list[Path]) -> list[str]:
        """SHA-256 of audio files, of each that has not changed once."""
        stamps = [_stamp(path) for path in paths]
        due = [path for path, stamp in zip(paths, stamps, strict=True) if stamp not in self._digests]
        digested = [
            digest
            for some in ordered_map(_digest_some, chunks(due, _FILES), jobs=self.jobs, threads=True)
            for digest in some
        ]
        new = [stamp for stamp in stamps if stamp not in self._digests]
        self._digests.update(dict(zip(new, digested, strict=True)))
        return [self._digests[stamp] for stamp in stamps]


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", file=path, remedy="give it back, or correct wav.scp"
        ) from error
    return str(path), status.st_size, status.st_mtime_ns


def _by_path(item: tuple[str, Path]) -> str:
    return str(item[1])


def _digest_some(paths: Sequence[Path]) -> list[str]:
    return [file_digest(path) or "" for path in paths]
