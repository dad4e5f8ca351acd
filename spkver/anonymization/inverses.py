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
from spkver.anonymization.baselines import change_speed, draw_speed, draw_warp, warp_envelope
from spkver.anonymization.config import AnonymizerConfig
from spkver.anonymization.directories import RECORD, Made, Task, check_target, make_twin, output_file, write_outputs
from spkver.anonymization.mcadams_coefficient import turn_poles, turn_poles_back
from spkver.datadir import DataDir, check_ids

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
    target = Path(target)
    if absent := sorted(source.recordings.keys() - values.keys()):
        text = f"{len(absent)} of {len(source)} utterances have no {INVERSES[anonymizer].parameter}: {few(absent)}"
        raise DataError(text, file=source.path)
    check_target(source, target)
    check_ids(source.recordings, source.path)
    tasks = [
        Task(utterance, Path(path), output_file(target, utterance), f"undone {float(values[utterance])!r}")
        for utterance, path in source.recordings.items()
    ]
    made = {"anonymizer": {"name": f"undoing {anonymizer}"}, "version": __version__}
    header = {**made, "made_by": fingerprint(__version__, "undone", anonymizer), "utterances": len(tasks)}
    return make_twin(
        source, target, tasks, header, partial(_undo_recordings, anonymizer=anonymizer), jobs=jobs, force=force
    )


def _undo_recordings(tasks: Sequence[Task], *, anonymizer: str) -> list[Made | DataError]:
    return write_outputs(tasks, partial(_undo, anonymizer=anonymizer))


def _undo(signals: Sequence[tuple[Task, NDArray[Any], int]], anonymizer: str) -> list[NDArray[Any] | DataError]:
    values = [float(task.stream.removeprefix("undone ")) for task, _, _ in signals]
    return INVERSES[anonymizer].undo([samples for _, samples, _ in signals], [rate for *_, rate in signals], values)
