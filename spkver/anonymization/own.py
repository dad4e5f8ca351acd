"""User-supplied anonymisers: a Python function, or a shell command."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import DataError
from spkbase.files import TEMPORARY
from spkbase.plugins import check_places, fill_places, load_plugin, run_command
from spkver.audio import read_audio, write_audio

Anonymizer = Callable[[NDArray[Any], int, str, np.random.Generator], NDArray[Any]]

_PLACES = ("input", "output", "utterance", "rate", "seed")
_NEEDED = ("input", "output")


def load_function(name: str) -> tuple[Anonymizer, Path | None]:
    """Import ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``, a function ``samples, rate, utterance, rng -> samples``.

    Returns and errors as for `spkbase.plugins.load_plugin`.
    """
    return load_plugin(name, "anonymiser", kind="function")


def check_command(template: str) -> None:
    """Check the places of a command; errors as for `spkbase.plugins.check_places`."""
    check_places(template, _PLACES, _NEEDED)


def command_anonymizer(template: str, folder: Path | None = None) -> Anonymizer:
    """Make an anonymiser of a shell command that turns one WAV file (16 bits, one channel) into another.

    Values are quoted for the shell, so no id is ever read as part of the command. Both files lie in a temporary folder
    below `folder`, so that speech which a killed process leaves is found there and removed by the next one. A sampling
    rate that the command changed is changed back.
    """

    def anonymize(samples: NDArray[Any], rate: int, utterance: str, rng: np.random.Generator) -> NDArray[Any]:
        with tempfile.TemporaryDirectory(prefix=".speech.", suffix=TEMPORARY, dir=folder) as place:
            source, target = Path(place) / "input.wav", Path(place) / "output.wav"
            write_audio(source, samples, rate)
            values = {"input": source, "output": target, "utterance": utterance, "rate": rate}
            run_command(fill_places(template, {**values, "seed": int(rng.integers(1 << 31))}))
            if not target.is_file():
                raise DataError("the command wrote no {output}")
            try:
                return read_audio(target, rate=rate, resample=True).samples
            except DataError as error:
                raise DataError(f"the command's output {error.text}") from error

    return anonymize
