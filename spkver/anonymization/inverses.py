"""What can be undone: built-in anonymisers whose one number a recording, once it is known, leads back.

========== ======== ========================================= ===========================================
anonymiser number   does                                      is undone by
========== ======== ========================================= ===========================================
mcadams    alpha    turns a pole at the angle w to w**alpha   turning it to w**(1 / alpha)
vtln       warp     warps the envelope by the bilinear map    the map of -warp
resampling speed    plays so many times as fast               playing 1 / speed times as fast
========== ======== ========================================= ===========================================

Of another anonymiser no inverse is known here, and an attacker has to learn one, see `evaluation.embeddings`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import load_json
from spkbase.showing import one_line
from spkver.anonymization.baselines import change_speed, draw_speed, draw_warp, warp_envelope
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.mcadams_coefficient import turn_poles, turn_poles_back
from spkver.anonymization.record import RECORD

Signals = Sequence[NDArray[np.float32]]
Changed = list[NDArray[Any] | DataError]
Change = Callable[[Signals, Sequence[int], Sequence[float]], Changed]


@one_line
@dataclass(frozen=True)
class Inverse:
    """An anonymiser as a function of one number a recording, and its inverse.

    Attributes
    ----------
    anonymizer : str
        A name of `BUILT_IN`.
    parameter : str
        What the number is called, the key of its range in the configuration.
    draw : callable
        The number that a recording gets: of the range and the random numbers of the recording.
    apply, undo : callable
        Of signals, their rates and numbers: samples, or why there are none.
    bounds : callable
        Lowest and highest number that a range can give.
    """

    anonymizer: str
    parameter: str
    draw: Callable[[tuple[float, float], np.random.Generator], float]
    apply: Change
    undo: Change
    bounds: Callable[[tuple[float, float]], tuple[float, float]]


def _each(change: Callable[[NDArray[Any], int, float], NDArray[Any]]) -> Change:
    """Make a function of one signal one of several; errors of too short ones are handed back."""

    def change_all(signals: Signals, rates: Sequence[int], values: Sequence[float]) -> Changed:
        outputs: Changed = []
        for samples, rate, value in zip(signals, rates, values, strict=True):
            try:
                changed = np.asarray(change(samples, rate, value))
                peak = float(np.abs(changed).max(initial=0.0))
                outputs.append(changed / max(1.0, peak) if len(changed) else _too_short(len(samples)))
            except ValueError:  # fewer samples than a frame
                outputs.append(_too_short(len(samples)))
        return outputs

    return change_all


def _too_short(n_samples: int) -> DataError:
    return DataError(f"{n_samples} samples are too few", remedy="leave the utterance out")


INVERSES: dict[str, Inverse] = {
    inverse.anonymizer: inverse
    for inverse in (
        Inverse(
            "mcadams",
            "alpha",
            lambda bounds, rng: float(rng.uniform(*bounds)),
            turn_poles,
            turn_poles_back,
            lambda bounds: bounds,
        ),
        Inverse(
            "vtln",
            "warp",
            lambda bounds, rng: draw_warp(rng, bounds),
            _each(warp_envelope),
            _each(lambda samples, rate, value: warp_envelope(samples, rate, -value)),
            lambda bounds: (-bounds[1], bounds[1]),
        ),
        Inverse(
            "resampling",
            "speed",
            lambda bounds, rng: draw_speed(rng, bounds),
            _each(change_speed),
            _each(lambda samples, rate, value: change_speed(samples, rate, 1 / value)),
            lambda bounds: bounds,
        ),
    )
}


def recorded_anonymizer(folder: str | Path) -> AnonymizerConfig | None:
    """Return what anonymised a twin folder, as its record says; None where there is no record, or none of ours.

    It is read as somebody else's file: what it says is checked as a configuration is.
    """
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        settings: dict[str, Any] = load_json(Path(folder) / RECORD)["anonymizer"]
        for key, value in settings.items():
            settings[key] = tuple(value) if isinstance(value, list) else value
        return AnonymizerConfig(**settings)
    return None
