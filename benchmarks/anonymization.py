"""Speed of the anonymisers on one core, as a ratio to real time: ``python -m benchmarks.anonymization [DATADIR]``.

DATADIR is a Kaldi data directory; without it, vowels are made. The McAdams coefficient is measured three ways: frame
by frame as its definition says, one utterance after the other, and by eight as `spkver anonymize` does. Seconds are
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


def main(datadir: str | None = None) -> None:
    signals = _made() if datadir is None else _read(datadir)
    seconds = sum(map(len, signals)) / _RATE
    print(describe_machine())
    print(f"{len(signals)} utterances, {seconds:.0f} s at {_RATE} Hz, one core")
    with threadpool_limits(1):
        short = signals[:1]
        _show(
            "mcadams, frame by frame", sum(map(len, short)) / _RATE, lambda: [_plain(signal, 0.8) for signal in short]
        )
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


def _made(n_signals: int = 24, seconds: float = 10.0) -> list[NDArray[np.float32]]:
    """Pulses and noise through formants that wander."""
    from scipy.signal import lfilter

    signals = []
    for number in range(n_signals):
        rng = np.random.default_rng(number)
        parts = []
        for _ in range(round(seconds / 0.2)):
            source = 10 ** rng.uniform(-3, 0) * rng.standard_normal(_RATE // 5)
            source[:: rng.integers(60, 200)] += 1
            for frequency in rng.uniform((250, 800, 2000, 3200, 5000), (900, 2200, 3200, 4500, 7000)):
                radius = np.exp(-np.pi * rng.uniform(60, 250) / _RATE)
                source = lfilter([1], [1, -2 * radius * np.cos(2 * np.pi * frequency / _RATE), radius**2], source)
            parts.append(source / np.abs(source).max())
        signals.append((0.5 * np.concatenate(parts)).astype(np.float32))
    return signals


def _plain(samples: NDArray[np.float32], alpha: float) -> NDArray[np.float64]:
    """The definition in loops over frames, with librosa's Burg, LAPACK's roots and SciPy's filters."""
    import librosa
    from scipy.signal import lfilter

    length, shift = _RATE // 50, _RATE // 100
    hann = np.hanning(length)
    window = np.sqrt(hann / (hann.sum() / shift))
    output = np.zeros(len(samples))
    for start in range(0, len(samples) - length + 1, shift):
        frame = samples[start : start + length] * window + np.finfo(np.float32).eps
        coefficients = librosa.lpc(frame, order=20)
        poles = np.roots(coefficients)
        angles = np.angle(poles)
        turned = np.abs(poles) * np.exp(1j * np.sign(angles) * np.abs(angles) ** alpha)
        polynomial = np.poly(np.where(poles.imag == 0, poles, turned)).real
        output[start : start + length] += window * lfilter([1], polynomial, lfilter(coefficients, [1], frame))
    return output


if __name__ == "__main__":
    main(*sys.argv[1:2])
