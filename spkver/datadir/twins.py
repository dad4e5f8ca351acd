"""Comparison of a data directory with its anonymised twin, before anything is trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from spkbase.errors import DataError, Problems, few
from spkbase.work import chunks, ordered_map
from spkver.audio import audio_header, read_audio
from spkver.datadir.directory import DataDir

_PART = 2048  # samples from the middle that are compared
_FEW_VALUES = 8  # a part with no more than so many different samples is silence
_BATCH = 128


@dataclass(frozen=True)
class _Recording:
    utterance: str
    seconds: float
    digest: str | None  # of its length and its middle, or all of it where that is silent; None for silence


def check_twin(
    original: DataDir, anonymised: DataDir, *, duration_change: float = 0.1, jobs: int | None = None
) -> None:
    """Check that an anonymised data directory holds the utterances of the original, and none of its audio.

    Original audio is found under any utterance: recordings of the same number of samples are compared
    by 2048 samples in their middle, to 16 bits. Of each file the header and these samples are read.

    Parameters
    ----------
    original, anonymised : DataDir
    duration_change : float
        Largest change of duration, as a share of the original; a tenth of a second is always allowed, since vocoders
        work in whole frames. Infinity switches the check off.
    jobs : int, optional

    Raises
    ------
    DataError
        With all problems: missing or extra utterances, other speakers, unreadable files, other durations, original
        audio in the anonymised set.
    """
    problems = Problems(anonymised.path)
    _compare_lists(original, anonymised, problems)
    shared = sorted(original.recordings.keys() & anonymised.recordings.keys())
    items = [[(utterance, datadir.recordings[utterance]) for utterance in shared] for datadir in (original, anonymised)]
    batches = [*chunks(items[0], _BATCH), *chunks(items[1], _BATCH)]
    compared: list[_Recording] = []
    described, sizes = "comparing with the original", [*map(len, batches)]
    results = ordered_map(_examine, batches, jobs=jobs, threads=True, description=described, sizes=sizes)
    for recordings, errors in results:
        compared.extend(recordings)
        for error in errors:
            problems.note(error)
    if len(compared) == 2 * len(shared):  # else files that cannot be read come first
        originals, twins = compared[: len(compared) // 2], compared[len(compared) // 2 :]
        _compare_durations(originals, twins, duration_change, problems)
        _find_originals(originals, twins, problems)
    problems.raise_if_any()


def _compare_lists(original: DataDir, anonymised: DataDir, problems: Problems) -> None:
    theirs, ours = original.recordings.keys(), anonymised.recordings.keys()
    for ids, what, remedy in (
        (theirs - ours, "missing", "anonymise them too"),
        (ours - theirs, "extra", f"remove them, they are not in {original.path}"),
    ):
        if ids:
            problems.add(f"{len(ids)} {what} utterances: {few(ids, repr)}", remedy=remedy)
    moved = {utterance for utterance in theirs & ours if original.speakers[utterance] != anonymised.speakers[utterance]}
    if moved:
        text = f"{len(moved)} utterances of other speakers than in {original.path}: {few(moved, repr)}"
        problems.add(text, remedy="copy utt2spk and spk2utt from the original")


def _compare_durations(
    originals: Sequence[_Recording], twins: Sequence[_Recording], allowed: float, problems: Problems
) -> None:
    changes = {
        twin.utterance: f"{original.seconds:.2f} s became {twin.seconds:.2f} s"
        for original, twin in zip(originals, twins, strict=True)
        if abs(twin.seconds - original.seconds) > max(0.1, allowed * original.seconds)
    }
    if changes:
        first = min(changes)
        problems.add(
            f"{len(changes)} utterances of another duration: {few(changes, repr)} ({first}: {changes[first]})",
            remedy="anonymise them again; or allow a larger change, if the anonymiser changes the tempo",
        )


def _find_originals(originals: Sequence[_Recording], twins: Sequence[_Recording], problems: Problems) -> None:
    known = {original.digest: original.utterance for original in originals if original.digest}
    left = {twin.utterance: known[twin.digest] for twin in twins if twin.digest in known}
    if left:
        others = {twin: source for twin, source in left.items() if twin != source}
        text = f"original audio in {len(left)} of {len(twins)} utterances of the anonymised set: {few(left, repr)}"
        if others:
            text += f"; '{min(others)}' holds that of '{others[min(others)]}'"
        problems.add(text, remedy="anonymise them, or check the paths in wav.scp")


def _examine(batch: Sequence[tuple[str, Path]]) -> tuple[list[_Recording], list[DataError]]:
    recordings, errors = [], []
    for utterance, path in batch:
        try:
            recordings.append(_Recording(utterance, *_contents(path)))
        except DataError as error:
            errors.append(error)
    return recordings, errors


def _contents(path: Path) -> tuple[float, str | None]:
    """Duration and digest of a recording."""
    header = audio_header(path)
    part = _samples(path, max(0, header.n_samples // 2 - _PART // 2), _PART)
    silent = _is_silent(part)
    if silent:
        part = _samples(path, 0, header.n_samples)
        silent = _is_silent(part)
    digest = None if silent else sha256(header.n_samples.to_bytes(8, "little") + part.tobytes()).hexdigest()
    return header.seconds, digest


def _samples(path: Path, start: int, count: int) -> NDArray[np.int16]:
    """Some samples of the first channel, as 16-bit integers."""
    try:
        with soundfile.SoundFile(str(path)) as file:
            file.seek(start)
            samples = file.read(count, dtype="float32", always_2d=True)[:, 0]
    except (soundfile.LibsndfileError, OSError):  # compressed with shorten, or broken
        samples = read_audio(path, channel=0).samples[start : start + count]
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)


def _is_silent(samples: NDArray[np.int16]) -> bool:
    few = samples[: 8 * _FEW_VALUES]  # mostly enough to see that it is not
    return len(set(few.tolist())) <= _FEW_VALUES and len(np.unique(samples)) <= _FEW_VALUES
