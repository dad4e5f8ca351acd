"""Real-time factor of the features, from audio files to the HDF5 store: ``python -m benchmarks.features [CORPUS]``.

CORPUS is an RSR2015-shaped tree; without it a simulated one is made.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measure import describe_machine, median_seconds
from spkbase.work import Work, default_jobs
from spkver.audio import read_audio
from spkver.corpora import CorpusSize, simulate_rsr2015
from spkver.features import FeatureConfig, check_recordings, extract_features, load_frames, read_feature_table


def main(corpus: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if corpus is None:
            corpus = str(folder / "corpus")
            simulate_rsr2015(corpus, CorpusSize(n_speakers=36, n_sentences=5, n_sessions=7))
        recordings = {str(path.with_suffix("")): path for path in sorted(Path(corpus).rglob("*.*")) if _is_audio(path)}
        print(describe_machine())
        for preset in (FeatureConfig(), FeatureConfig(preset="sidekit", vad="energy")):
            measure(recordings, preset, folder)


def measure(recordings: dict[str, Path], config: FeatureConfig, folder: Path) -> None:
    seconds = check_recordings(recordings, config)
    store = folder / "features.h5"

    def read() -> None:
        for path in recordings.values():
            read_audio(path, rate=config.rate)

    print(f"{config.preset} features with vad={config.vad}: {len(recordings)} recordings, {seconds:.0f} s of audio")
    reading = median_seconds(read, repeats=3)
    for jobs in sorted({1, default_jobs()}):
        wall = median_seconds(lambda jobs=jobs: extract_features(recordings, config, store, work=Work(jobs)), repeats=5)  # type: ignore[misc]
        print(
            f"  {jobs} worker(s): {wall:6.2f} s, {seconds / wall:6.0f} times real time, "
            f"{wall / reading:.1f} times reading the files by one"
        )
    table = read_feature_table(store)
    wall = median_seconds(lambda: load_frames(table, config, folder=folder), repeats=3)
    print(f"  post-processing into memory: {wall:6.2f} s, {seconds / wall:6.0f} times real time")


def _is_audio(path: Path) -> bool:
    return path.suffix.lower() in (".sph", ".wav", ".flac")


if __name__ == "__main__":
    main(*sys.argv[1:2])
