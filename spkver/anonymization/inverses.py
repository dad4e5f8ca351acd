"""What can be undone: built-in anonymisers whose one number a recording, once it is known, leads back.

========== ======== ========================================= ===========================================
anonymiser number   does                                      is undone by
========== ======== ========================================= ===========================================
mcadams    alpha    turns a pole at the angle w to w**alpha   turning it to w**(1 / alpha)
vtln       warp     warps the envelope by the bilinear map    the map of -warp
resampling speed    plays so many times as fast               playing 1 / speed times as fast
========== ======== ========================================= ===========================================

Of another anonymiser no inverse is known here, and an attacker has to learn one, see `evaluation.embeddings`.

**Undoing an anonymiser on a data directory whose recordings' numbers are known or guessed: a twin of the twin.**
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError, few
from spkbase.files import fingerprint, load_json
from spkbase.showing import one_line
from spkbase.version import __version__
from spkver.anonymization.anonymizers import change_speed, either_sign, log_uniform, warp_envelope
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.directories import RECORD, Outputs, Signals, make_twin
from spkver.anonymization.mcadams_coefficient import turn_poles
from spkver.datadir import DataDir

Change = Callable[[Sequence[NDArray[np.float32]], Sequence[int], Sequence[float]], Outputs]


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

    def change_all(signals: Sequence[NDArray[np.float32]], rates: Sequence[int], values: Sequence[float]) -> Outputs:
        outputs: Outputs = []
        for samples, rate, value in zip(signals, rates, values, strict=True):
            try:
                changed = np.asarray(change(samples, rate, value))
            except ValueError:  # fewer samples than a frame
                changed = np.empty(0)
            if len(changed):
                outputs.append(changed / max(1.0, float(np.abs(changed).max())))
            else:
                outputs.append(DataError(f"{len(samples)} samples are too few", remedy="leave the utterance out"))
        return outputs

    return change_all


INVERSES = {
    inverse.anonymizer: inverse
    for inverse in (
        Inverse(
            *("mcadams", "alpha"),
            draw=lambda bounds, rng: float(rng.uniform(*bounds)),
            apply=turn_poles,
            undo=partial(turn_poles, back=True),
            bounds=lambda bounds: bounds,
        ),
        Inverse(
            *("vtln", "warp"),
            draw=either_sign,
            apply=_each(warp_envelope),
            undo=_each(lambda samples, rate, value: warp_envelope(samples, rate, -value)),
            bounds=lambda bounds: (-bounds[1], bounds[1]),
        ),
        Inverse(
            *("resampling", "speed"),
            draw=log_uniform,
            apply=_each(change_speed),
            undo=_each(lambda samples, rate, value: change_speed(samples, rate, 1 / value)),
            bounds=lambda bounds: bounds,
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


def undo_datadir(
    source: DataDir,
    target: str | Path,
    anonymizer: str,
    values: Mapping[str, float],
    *,
    jobs: int | None = None,
    force: bool = False,
) -> DataDir:
    """Undo an anonymiser on all utterances of a data directory, into a twin folder.

    As `anonymize_datadir` makes a twin: recordings that are there as they were made, from the same audio by the same
    number, are kept; the output does not depend on the number of workers.

    Parameters
    ----------
    source : DataDir
        Anonymised speech.
    target : path
        The twin folder, see `anonymize_datadir`.
    anonymizer : str
        A name of `INVERSES`.
    values : mapping of str to float
        The anonymiser's number for each utterance.
    jobs, force
        As for `anonymize_datadir`.

    Raises
    ------
    DataError
        As for `anonymize_datadir`, or if an utterance has no number.
    """
    if absent := sorted(source.recordings.keys() - values.keys()):
        text = f"{len(absent)} of {len(source)} utterances have no {INVERSES[anonymizer].parameter}: {few(absent)}"
        raise DataError(text, file=source.path)
    streams = {utterance: f"undone {float(values[utterance])!r}" for utterance in source.recordings}
    made_by = fingerprint(__version__, "undone", anonymizer)
    header = {"anonymizer": {"name": f"undoing {anonymizer}"}, "version": __version__, "made_by": made_by}
    undo = partial(_undo, anonymizer=anonymizer)
    return make_twin(source, Path(target), streams, header, undo, jobs=jobs, force=force)


def _undo(signals: Signals, anonymizer: str) -> Outputs:
    values = [float(task.stream.removeprefix("undone ")) for task, _, _ in signals]
    return INVERSES[anonymizer].undo([samples for _, samples, _ in signals], [rate for *_, rate in signals], values)
