"""Time to train each attacker and to score its trials: ``python -m benchmarks.attackers [DIR [JOBS]]``.

DIR holds data directories in the challenge's layout: SET_enrolls, SET_trials_f and SET_trials_m, and for training
SET's own ``..._train`` or, without one, libri251. Without DIR a SIMULATED set is made. Seconds are wall time
from the audio on; in brackets, with features, background model and statistics there, as attackers that have them in
common find them. A ratio to real time is seconds of speech (of the training set; of enrolment and trials) in a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import describe_machine
from spkbase.work import default_jobs
from spkver.attackers import PRESETS, TrainedAttacker, Workplace, attacker_config, score, train_attacker
from spkver.corpora import Sizes, simulate_voiceprivacy
from spkver.datadir import DataDir, read_datadir
from spkver.features import check_recordings

_FALLBACK = "libri251"


def main(layout: str | None = None, jobs: str | None = None) -> None:
    workers = default_jobs() if jobs is None else int(jobs)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        if layout is None:
            simulate_voiceprivacy(work / "set", Sizes(enrolled_f=4, enrolled_m=4, training=12), jobs=workers)
        folder = Path(layout) if layout is not None else work / "set"
        print(describe_machine())
        print(f"attackers, {workers} worker(s)")
        for enrolled in sorted(folder.glob("*_enrolls")):
            measure(folder, enrolled.name.removesuffix("_enrolls"), work / enrolled.name, workers)


def measure(folder: Path, name: str, work: Path, jobs: int) -> None:
    """Train and score each attacker on one set; print seconds and ratios to real time."""
    own = folder / f"{name.removesuffix('_test')}_train"
    training = read_datadir(own if own.is_dir() else folder / _FALLBACK)
    enrolled = read_datadir(folder / f"{name}_enrolls")
    tested = [read_datadir(path) for path in sorted(folder.glob(f"{name}_trials_*"))]
    background, speech = _seconds(training), _seconds(enrolled) + sum(map(_seconds, tested))
    n_trials = sum(len(datadir.trials) for datadir in tested if datadir.trials is not None)
    print(f"{name}: trained on {training.name}, {background:.0f} s; {n_trials} trials of {speech:.0f} s of speech")
    for preset in PRESETS:
        times = []
        for turn in ("first", "again"):
            started = time.perf_counter()
            config = attacker_config(preset)
            attacker = train_attacker(training, config, work / turn, work=Workplace(work / preset, jobs))
            trained = time.perf_counter()
            _score({preset: attacker}, enrolled, tested, work / preset, jobs)
            times += [trained - started, time.perf_counter() - trained]
        train, scoring, train_again, scoring_again = times
        print(
            f"  {preset:<20} train {train:6.1f} s ({train_again:5.1f} s), {background / train:5.0f} times real time; "
            f"score {scoring:6.1f} s ({scoring_again:5.1f} s), {speech / scoring:5.0f} times real time"
        )


def _score(
    attackers: dict[str, TrainedAttacker], enrolled: DataDir, tested: Sequence[DataDir], work: Path, jobs: int
) -> None:
    for directory in tested:
        if directory.trials is not None:
            score(attackers, enrolled, directory, directory.trials.trials(), work=work, jobs=jobs)


def _seconds(data: DataDir) -> float:
    return check_recordings(data.recordings, attacker_config("gmm-ubm").features)


if __name__ == "__main__":
    main(*sys.argv[1:3])
