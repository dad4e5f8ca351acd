"""What every extractor provides: a function from recordings to vectors, and a record of what these depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError, errors_of
from spkver.audio import read_audio

Recording = tuple[str, Path]
"""Id and audio file."""

Embed = Callable[[NDArray[Any], int], Any]
"""Samples and their sampling rate to a vector."""

Vectors = list[NDArray[np.floating] | DataError]
"""A vector of each recording, or what is wrong with it."""

RATE = 16000
"""Hertz that the built-in extractors need."""

SHORTEST = 0.1
"""Seconds that the networks need; shorter recordings are an error."""


@dataclass(frozen=True)
class ExtractorSettings:
    """Settings of the user; None for the extractor's default.

    Attributes
    ----------
    window : float or None [s]
        Longer recordings are cut into windows of this length, whose vectors are averaged.
    hop : float or None [s]
        Largest distance from one window to the next.
    rate : int or None [Hz]
        Rate to which recordings are resampled.

    Raises
    ------
    ConfigError
        If a number is not positive, or a window too short for speech.
    """

    window: float | None = None
    hop: float | None = None
    rate: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "hop", "rate"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and np.isfinite(value)):
                raise ConfigError(f"expected a {name} above 0, got {value}")
        if self.window is not None and self.window < SHORTEST:
            raise ConfigError(f"expected windows of at least {SHORTEST:g} s, got {self.window:g} s")

    def windows(self, length: float | None = None, share: float = 1.0) -> dict[str, Any]:
        """Return `window` and `hop`, or nothing if recordings are not cut into windows.

        Parameters
        ----------
        length : float, optional [s]
            The extractor's default; by default there are windows only if the user asks for them.
        share : float
            Its default hop, as a share of the window.

        Raises
        ------
        ConfigError
            If there is a hop without a window, or windows would leave gaps.
        """
        window = length if self.window is None else self.window
        if window is None:
            if self.hop is not None:
                raise ConfigError(
                    "a hop needs a window: this extractor uses no windows by default",
                    remedy="give both",
                )
            return {}
        hop = share * window if self.hop is None else self.hop
        if hop > window:
            raise ConfigError(f"a hop of {hop:g} s leaves gaps between windows of {window:g} s")
        return {"window": window, "hop": hop}

    def check_rate(self) -> None:
        """Raise ConfigError for a rate other than that of the built-in extractors."""
        if self.rate not in (None, RATE):
            remedy = "leave the rate out: recordings of other rates are resampled"
            raise ConfigError(f"it needs {RATE} Hz, got {self.rate} Hz", remedy=remedy)


@dataclass(frozen=True)
class Extraction:
    """The function of an opened extractor, and its properties.

    Attributes
    ----------
    extract : callable
        Function from recordings to their vectors.
    record : mapping
        All that the vectors depend on besides the recordings: digests, versions, lengths. Values are what JSON holds.
    rate : int or None [Hz]
        Rate to which recordings are resampled; None for their own.
    shortest : float [s]
        Shortest recording that it accepts.
    reads_audio : bool
        False if vectors come from a file.
    batch : int
        Number of recordings in a task.
    """

    extract: Callable[[Sequence[Recording]], Vectors]
    record: Mapping[str, Any] = field(default_factory=dict)
    rate: int | None = None
    shortest: float = 0.0
    reads_audio: bool = True
    batch: int = 8


def window_bounds(length: int, window: int, hop: int) -> list[tuple[int, int]]:
    """Return where windows of a signal start and end: the whole signal if it is no longer than one.

    All windows have the same length; the first starts with the signal, the last ends with it, and they are evenly
    spaced, at most `hop` apart.

    Parameters
    ----------
    length, window, hop : int [samples]

    Examples
    --------
    >>> window_bounds(30, 40, 40), window_bounds(100, 40, 40)
    ([(0, 30)], [(0, 40), (30, 70), (60, 100)])
    """
    if length <= window:
        return [(0, length)]
    n_windows = 1 + -(-(length - window) // hop)
    starts = np.linspace(0, length - window, n_windows).round().astype(int)
    return [(start, start + window) for start in starts.tolist()]


def averaged(
    function: Embed, samples: NDArray[Any], rate: int, *, window: float | None, hop: float | None
) -> NDArray[np.floating]:
    """Return the mean of a function over windows of a signal, its vectors not normalised.

    Parameters
    ----------
    function : callable
        Function from samples and rate to a vector.
    samples : ndarray of shape (n,)
    rate : int [Hz]
    window, hop : float or None [s]
        None for the whole signal; a hop of None for adjacent windows.

    Raises
    ------
    DataError
        If the function returns no vector of finite numbers, or only zeros.
    """
    if window is None or len(samples) <= round(window * rate):
        return checked_vector(function(samples, rate))
    if hop is None:
        hop = window
    length = max(1, round(window * rate))
    step = max(1, round(hop * rate))
    bounds = window_bounds(len(samples), length, step)
    vectors = [checked_vector(function(samples[start:stop], rate)) for start, stop in bounds]
    if len({vector.shape for vector in vectors}) > 1:
        raise DataError(
            f"vectors of {len(vectors[0])} and of other dimensions from windows of the same length"
        )
    return np.mean(vectors, axis=0, dtype=np.float64).astype(vectors[0].dtype)


def checked_vector(value: Any) -> NDArray[np.floating]:
    """Return the result of an extractor as a vector of float32 or float64.

    Raises
    ------
    DataError
        If it is not a vector of real numbers, or is empty, not finite or 0.
    """
    try:
        vector = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"expected a vector, got {type(value).__name__}: {error}") from error
    if vector.ndim == 2 and 1 in vector.shape:
        vector = vector.reshape(-1)
    if vector.ndim != 1 or vector.dtype.kind not in "fiu" or not vector.size:
        got = f"{vector.dtype} of shape {vector.shape}"
        if vector.dtype.kind == "O":
            got = type(value).__name__
        raise DataError(f"expected a vector of numbers, got {got}")
    if not np.isfinite(vector).all():
        raise DataError("the vector is not finite: NaN or infinite")
    if not vector.any():
        raise DataError("the vector is zero: it has no direction")
    is_double = vector.dtype.kind == "f" and vector.dtype.itemsize > 4
    return np.array(vector, np.float64 if is_double else np.float32)


def extract_each(
    recordings: Sequence[Recording],
    *,
    function: Embed,
    rate: int | None,
    shortest: float = 0.0,
    window: float | None = None,
    hop: float | None = None,
) -> Vectors:
    """Read each recording and call a function with its samples, window by window if it is long.

    Parameters
    ----------
    recordings : sequence of (str, Path)
    function : callable
        Function from samples, float32 of shape (n,) with full scale 1, and their rate to a vector; it raises a
        DataError if it cannot return one.
    rate, shortest, window, hop
        See `Extraction` and `averaged`.
    """

    def embed(path: Path) -> NDArray[np.floating]:
        samples, read_rate = read_audio(path, rate=rate, resample=True)
        if not samples.any():
            raise DataError("digital silence: every sample is 0")
        if len(samples) < shortest * read_rate:
            seconds = len(samples) / read_rate
            raise DataError(f"{seconds:.3f} s are too short: at least {shortest:g} s are needed")
        return averaged(function, samples, read_rate, window=window, hop=hop)

    return embed_each(recordings, embed)


def embed_each(
    recordings: Sequence[Recording], embed: Callable[[Path], NDArray[np.floating]]
) -> Vectors:
    """Call a function with the file of each recording, and return its vectors, or an error for a recording."""
    vectors: Vectors = []
    for name, path in recordings:
        try:
            vectors.append(embed(Path(path)))
        except DataError as error:
            remedy = error.remedy or "replace the recording or remove it from the lists"
            vectors.append(
                DataError(f"{name}: {error.text}", file=error.file or path, remedy=remedy)
            )
    return vectors


def guarded(samples: NDArray[Any], rate: int, *, function: Embed, name: str) -> NDArray[Any]:
    """Call a user-supplied function and return its vector; any exception becomes a DataError that names it."""
    try:
        value = function(samples, rate)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{name} raised {type(error).__name__}: {error}") from error
    with errors_of(None, before=f"{name}: "):
        return checked_vector(value)


def extract_by(
    recordings: Sequence[Recording],
    *,
    read: Callable[[Sequence[Recording]], dict[str, NDArray[Any]]],
    name: str,
) -> Vectors:
    """Return the vectors of recordings that are extracted together; an error for each without one."""
    try:
        vector_of = read(recordings)
    except DataError as error:
        failure = DataError(
            f"{name}: {error.text}", file=error.file, line=error.line, remedy=error.remedy
        )
        return [failure] * len(recordings)
    vectors: Vectors = []
    for utterance, path in recordings:
        try:
            if utterance not in vector_of:
                raise DataError("there is no vector for it")
            vectors.append(checked_vector(vector_of[utterance]))
        except DataError as error:
            vectors.append(DataError(f"{name}: {utterance}: {error.text}", file=path))
    return vectors
