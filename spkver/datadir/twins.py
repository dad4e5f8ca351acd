"""Comparison of a data directory with its anonymised twin, before anything is trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems, caught, counted, few
from spkbase.work import Work
from spkver.audio import audio_header, open_audio, read_audio
from spkver.datadir.directory import DataDir

_PART = 2048  # number of samples compared, from the middle
_FEW_VALUES = 8  # a part with no more distinct values counts as silence


def check_twin(original: DataDir, anonymised: DataDir, *, jobs: int | None = None) -> None:
    """Check that an anonymised data directory holds the utterances of the original, and none of its audio.

    Original audio is found under any name: recordings with the same number of samples are compared by 2048 samples from
    their middle, to 16 bits. Only the header and these samples of each file are read. Durations may differ, see
    `duration_changes`.

    Parameters
    ----------
    original, anonymised : DataDir
    jobs : int, optional

    Raises
    ------
    DataError
        With all problems: missing or extra utterances, other speakers, unreadable files, original audio in the
        anonymised set.
    """
    problems = Problems(anonymised.path)
    theirs = original.recordings.keys()
    ours = anonymised.recordings.keys()
    for ids, kind, remedy in (
        (theirs - ours, "missing", "anonymise them too, under the same names"),
        (ours - theirs, "extra", f"remove them, they are not in {original.path}"),
    ):
        if ids:
            problems.add(
                f"{counted(len(ids), f'{kind} utterance')}: {few(ids, repr)}", remedy=remedy
            )
    shared = sorted(theirs & ours)
    moved = [name for name in shared if original.speakers[name] != anonymised.speakers[name]]
    if moved:
        text = f"{counted(len(moved), 'utterance')} with another speaker than in {original.path}: {few(moved, repr)}"
        problems.add(text, remedy="copy utt2spk and spk2utt from the original")
    paths = [original.recordings[utterance] for utterance in shared]
    paths += [anonymised.recordings[utterance] for utterance in shared]
    results = Work(jobs).map(
        partial(caught, function=_digest), paths, description="comparing with the original"
    )
    digests = list(problems.sift(enumerate(results)).values())
    if len(digests) == len(paths):  # otherwise unreadable files are reported first
        _check_copies(shared, digests[: len(shared)], digests[len(shared) :], problems)
    problems.raise_if_any()


def duration_changes(
    original: Sequence[Path], anonymised: Sequence[Path], *, jobs: int | None = None
) -> NDArray[np.float64]:
    """Return the change of duration of each recording, as a share of its original duration; only headers are read.

    Parameters
    ----------
    original, anonymised : sequence of n paths
        Files in the same order on both sides.
    jobs : int, optional

    Returns
    -------
    ndarray of float64 of shape (n,)
        Relative changes: -0.5 if the duration is halved, 1 if it is doubled.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    headers = list(Work(jobs).map(audio_header, [*original, *anonymised]))
    seconds = np.array([header.seconds for header in headers]).reshape(2, -1)
    changes: NDArray[np.float64] = seconds[1] / seconds[0] - 1
    return changes


def read_part(path: Path, start: int, count: int) -> NDArray[np.int16]:
    """Read some samples of the first channel, as 16-bit integers."""
    try:
        with open_audio(path) as file:
            file.seek(start)
            samples = file.read(count, dtype="float32", always_2d=True)[:, 0]
    except DataError:  # broken, or with a codec that cannot seek, such as shorten
        samples = read_audio(path, channel=0).samples[start : start + count]
    integers: NDArray[np.int16] = np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)
    return integers


def _check_copies(
    utterances: Sequence[str],
    original: Sequence[str | None],
    anonymised: Sequence[str | None],
    problems: Problems,
) -> None:
    """Report anonymised utterances with the digest of an original; None for silence."""
    sources = dict(zip(original, utterances, strict=True))
    copied = {}
    for utterance, digest in zip(utterances, anonymised, strict=True):
        if digest and digest in sources:
            copied[utterance] = sources[digest]
    if not copied:
        return
    text = f"original audio in {len(copied)} of {len(utterances)} utterances of the anonymised set"
    text += f": {few(copied, repr)}"
    others = sorted(twin for twin, source in copied.items() if twin != source)
    if others:
        text += f"; '{others[0]}' holds that of '{copied[others[0]]}'"
    problems.add(text, remedy="anonymise them, or check the paths in wav.scp")


def _digest(path: Path) -> str | None:
    """Return a digest of length and middle, or of all samples if the middle is silent; None for silence."""
    header = audio_header(path)
    part = read_part(path, max(0, header.n_samples // 2 - _PART // 2), _PART)
    if _is_silent(part):
        part = read_part(path, 0, header.n_samples)
        if _is_silent(part):
            return None
    return sha256(header.n_samples.to_bytes(8, "little") + part.tobytes()).hexdigest()


def _is_silent(samples: NDArray[np.int16]) -> bool:
    few = samples[: 8 * _FEW_VALUES]  # usually enough to see that a part is not silence
    return len(set(few.tolist())) <= _FEW_VALUES and len(np.unique(samples)) <= _FEW_VALUES
