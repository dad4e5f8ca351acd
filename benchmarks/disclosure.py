"""What scores disclose, at scale: the command on a million trials, and the function on a large gallery.

Each part runs in a process of its own, so that its peak of memory is its own.

    python -m benchmarks.disclosure
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import apart, describe_machine, peak_mb
from evaluation.linkage import disclosure_overview
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling

DIMENSIONS = 192


def command(
    n_enrolled: int = 1_000, n_speakers: int = 200, recordings: int = 5, resamples: int = 1000
) -> list[float]:
    """Seconds and processor seconds of the command from two files of all trials, and its peak in MB."""
    scores, key, speakers = crossed(n_enrolled, n_speakers, recordings)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("scores", "key", "utt2spk")]
        lines: list[list[str]] = [[], []]
        for pair, score, is_target in zip(
            key.pairs(), scores.values.tolist(), key.is_target.tolist(), strict=True
        ):
            label = "target" if is_target else "nontarget"
            lines[0].append(f"{pair[0]} {pair[1]} {score:.6f}\n")
            lines[1].append(f"{pair[0]} {pair[1]} {label}\n")
        for path, text in zip(paths, lines, strict=False):
            path.write_text("".join(text))
        paths[2].write_text("".join(f"{name} {owner}\n" for name, owner in speakers.items()))
        program = str(Path(sys.executable).with_name("spkver-eval"))
        words = [program, "disclosure", "-s", str(paths[0]), "-k", str(paths[1]), "--json", "-"]
        words += ["--segment-speakers", str(paths[2]), "--bootstrap", str(resamples)]
        started = time.perf_counter()
        before = os.times()
        subprocess.run(words, check=True, capture_output=True)
        after = os.times()
        processor = after.children_user - before.children_user
        processor += after.children_system - before.children_system
        return [time.perf_counter() - started, processor, peak_mb(children=True)]


def large(n_enrolled: int = 22_024, n_tested: int = 4_949, resamples: int = 0) -> list[float]:
    """Seconds of the function on all trials of a large gallery, and the peak in MB, the scores included."""
    scores, key, speakers = crossed(n_enrolled, n_tested, 1)
    given = peak_mb()
    started = time.perf_counter()
    disclosure_overview(scores, key, segment_speakers=speakers, resampling=Resampling(resamples))
    return [time.perf_counter() - started, peak_mb(), given]


def crossed(
    n_enrolled: int, n_speakers: int, recordings: int
) -> tuple[Scores, Key, dict[str, str]]:
    """Return cosines of all recordings with everybody, the key, and the speakers of the recordings."""
    rng = np.random.default_rng(0)
    people = rng.standard_normal((n_enrolled, DIMENSIONS)).astype(np.float32)
    owners = np.repeat(np.arange(n_speakers), recordings)
    tested = people[owners]
    tested += np.float32(2.5) * rng.standard_normal(tested.shape, dtype=np.float32)
    for vectors in (people, tested):
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (people @ tested.T).ravel()
    names = np.array([f"s{number:05d}" for number in range(n_enrolled)], object)
    ids = np.array([f"s{owner:05d}-{row:05d}" for row, owner in enumerate(owners)], object)
    models = np.repeat(np.arange(n_enrolled, dtype=np.int32), len(owners))
    segments = np.tile(np.arange(len(owners), dtype=np.int32), n_enrolled)
    is_target = models == owners[segments]
    key = Key(names, ids, models, segments, is_target=is_target)
    scores = Scores(names, ids, models, segments, values=cosines.astype(np.float64))
    return scores, key, dict(zip(ids.tolist(), names[owners].tolist(), strict=True))


def main() -> None:
    print(describe_machine())
    for resamples in (0, 1000):
        seconds, processor, peak = apart("disclosure", f"command(resamples={resamples})")
        print(
            f"spkver-eval disclosure, 1,000,000 trials, {resamples} resamples: {seconds:.1f} s, "
            f"{processor:.1f} s of the processor, peak {peak:.0f} MB",
            flush=True,
        )
    seconds, peak, given = apart("disclosure", "large()")
    print(
        f"disclosure_overview, 22,024 x 4,949 trials, no intervals: {seconds:.0f} s, "
        f"peak {peak:.0f} MB, {given:.0f} MB of it before the call"
    )


if __name__ == "__main__":
    main()
