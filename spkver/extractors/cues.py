"""Extractors that hear no voice: prosody and session."""

from __future__ import annotations

from spkbase.errors import ConfigError
from spkver.extractors.networks import RATE, check_rate
from spkver.extractors.prosody import PROSODY, prosody_vector
from spkver.extractors.protocol import SHORTEST, Extraction, ExtractorSettings, each_by
from spkver.extractors.session import N_BANDS, session_vector

_VERSION = 1  # changes with the numbers


def open_prosody(argument: str, settings: ExtractorSettings) -> Extraction:
    """Open the extractor of prosody; recordings go in whole."""
    record = {"statistics": len(PROSODY), **_record("prosody", argument, settings)}
    windows = settings.windows_if_any()
    extract = each_by(prosody_vector, RATE, shortest=SHORTEST, **windows)
    return Extraction(extract, {**record, **windows}, RATE, SHORTEST)


def open_session(argument: str, settings: ExtractorSettings) -> Extraction:
    """Open the extractor of noise and channel; recordings go in whole."""
    record = {"bands": N_BANDS, **_record("session", argument, settings)}
    windows = settings.windows_if_any()
    extract = each_by(session_vector, RATE, shortest=SHORTEST, **windows)
    return Extraction(extract, {**record, **windows}, RATE, SHORTEST)


def _record(name: str, argument: str, settings: ExtractorSettings) -> dict[str, object]:
    if argument:
        raise ConfigError(f"extractor {name!r} takes nothing after a colon, got {argument!r}")
    check_rate(name, settings)
    return {"version": _VERSION}
