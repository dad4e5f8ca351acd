"""Speed of the anonymisers on one core, as a ratio to real time: ``python -m benchmarks.anonymization DATADIR``.

The McAdams coefficient is measured one utterance after the other, and by eight as `spkver anonymize` does. Seconds are
those of the process, so that a busy machine disturbs less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measure import describe_machine
from spkbase.work import chunks
from spkver.anonymization import AnonymizerConfig, make_anonymizer, turn_poles
from spkver.audio import read_audio
from spkver.datadir import read_datadir

_RATE = 16000
_SECONDS = 300.0  # of a data directory, at most
_REPEATS = 7


def main(datadir: str) -> None:
    signals = _read(datadir)
    seconds = sum(map(len, signals)) / _RATE
    print(describe_machine())
    print(f"{len(signals)} utterances, {seconds:.0f} s at {_RATE} Hz, one core")
    with threadpool_limits(1):
        _show("mcadams, one by one", seconds, lambda: [turn_poles([signal], [_RATE], [0.8]) for signal in signals])
        by_eight = chunks(signals, 8)
        _show(
            "mcadams, by eight",
            seconds,
            lambda: [turn_poles(some, [_RATE] * len(some), [0.8] * len(some)) for some in by_eight],
        )
        for name in ("resampling", "vtln", "world"):
            function = make_anonymizer(AnonymizerConfig(name))
            few = signals[: max(1, len(signals) // 8)]
            _show(
                name,
                sum(map(len, few)) / _RATE,
                lambda function=function, few=few: [  # type: ignore[misc]
                    function(signal, _RATE, "u", np.random.default_rng(0)) for signal in few
                ],
                repeats=2,
            )


def _show(name: str, seconds: float, work: Callable[[], object], *, repeats: int = _REPEATS) -> None:
    work()
    measured = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        measured.append(time.process_time() - started)
    median, best = float(np.median(measured)), min(measured)
    print(f"  {name:<24} {seconds / median:6.0f} times real time (best {seconds / best:.0f})")


def _read(datadir: str) -> list[NDArray[np.float32]]:
    signals: list[NDArray[np.float32]] = []
    for path in read_datadir(datadir).recordings.values():
        signals.append(read_audio(path, rate=_RATE, resample=True).samples)
        if sum(map(len, signals)) > _SECONDS * _RATE:
            break
    return signals


if __name__ == "__main__":
    main(sys.argv[1])
