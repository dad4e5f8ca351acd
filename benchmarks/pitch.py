"""pYIN against librosa's on speech: ``python -m benchmarks.pitch DIR``, DIR holding audio files anywhere below it.

Both callers' settings, on 60 s of the files in the order of their names: warm, and for 2 s in a process of its own,
where librosa loads numba. The tracks are compared too.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import describe_machine, median_seconds
from evaluation.utility import pyin_track
from spkbase.work import one_blas_thread

SECONDS = 60
CALLERS: dict[str, dict[str, Any]] = {
    "evaluation": {"pitch_range": (75.0, 500.0), "periods": 4, "resolution": 0.1, "centred": True},
    "emotions": {"pitch_range": (60.0, 600.0), "periods": 3, "resolution": 0.2, "centred": False},
}
BY = {
    "own": "from benchmarks.pitch import own as track",
    "librosa": "from benchmarks.pitch import by_librosa as track",
}


def own(
    samples: np.ndarray, rate: int, *, pitch_range: tuple, periods: int, resolution: float, centred: bool
) -> np.ndarray:
    """Track the pitch by `evaluation.utility.pyin_track`."""
    frame = 1 << int(np.ceil(np.log2(periods * rate / pitch_range[0])))
    settings: dict[str, Any] = {"frame": frame, "shift": rate // 100, "resolution": resolution, "centred": centred}
    return pyin_track(samples, rate, pitch_range, **settings)


def by_librosa(
    samples: np.ndarray, rate: int, *, pitch_range: tuple, periods: int, resolution: float, centred: bool
) -> np.ndarray:
    """Track the pitch by `librosa.pyin`."""
    import librosa

    frame = 1 << int(np.ceil(np.log2(periods * rate / pitch_range[0])))
    settings: dict[str, Any] = {
        "frame_length": frame,
        "hop_length": rate // 100,
        "resolution": resolution,
        "center": centred,
    }
    found = librosa.pyin(samples, sr=rate, fmin=pitch_range[0], fmax=pitch_range[1], **settings)[0]
    return np.nan_to_num(found, nan=0.0)


def read_speech(folder: Path, seconds: int) -> tuple[np.ndarray, int]:
    """Read the first recordings, in the order of their names, to so many seconds; all at the rate of the first."""
    import soundfile

    parts, rate = [], 0
    for file in sorted(path for path in folder.rglob("*") if path.suffix in (".flac", ".wav")):
        samples, found = soundfile.read(file)
        rate = rate or found
        if found == rate and samples.ndim == 1:
            parts.append(samples)
        if sum(map(len, parts)) >= seconds * rate > 0:
            break
    return np.concatenate(parts)[: seconds * rate], rate


@one_blas_thread()
def main(folder: str) -> None:
    print(describe_machine())
    samples, rate = read_speech(Path(folder), SECONDS)
    for name, settings in CALLERS.items():
        ours, theirs = own(samples, rate, **settings), by_librosa(samples, rate, **settings)
        off = ours / np.where(theirs > 0, theirs, 1)
        same = np.array_equal(ours > 0, theirs > 0) and np.allclose(off[ours > 0], 1, rtol=1e-6)
        took = [median_seconds(partial(way, samples, rate, **settings), repeats=5) for way in (own, by_librosa)]
        times = f"{took[0]:.2f} s, librosa {took[1]:.2f} s, ratio {took[1] / took[0]:.1f} (medians of 5)"
        frames = f"{len(ours)} frames, {np.count_nonzero(ours)} with voice, tracks equal: {same}"
        print(f"{len(samples) / rate:.0f} s, {name}: {times}; {frames}")
    first = [median_seconds(partial(_apart, folder, way), repeats=3, warm_up=0) for way in BY]
    print(f"2 s in a new process: {first[0]:.2f} s, librosa {first[1]:.2f} s, ratio {first[1] / first[0]:.1f}")


def _apart(folder: str, way: str) -> None:
    code = f"""
import sys; from pathlib import Path
from typing import Any
{BY[way]}
from benchmarks.pitch import CALLERS, read_speech
track(*read_speech(Path(sys.argv[1]), 2), **CALLERS["evaluation"])
"""
    subprocess.run([sys.executable, "-c", code, folder], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
