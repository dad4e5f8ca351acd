"""Configuration of an attacker: the kinds, and the presets that the command line knows by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkver.attackers.gmm_svm import GMM_SVM
from spkver.attackers.gmm_ubm import GMM_UBM
from spkver.attackers.kind import Kind
from spkver.attackers.options import Options
from spkver.attackers.supervector_cosine import SUPERVECTOR_COSINE

KINDS: dict[str, Kind] = {kind.name: kind for kind in (GMM_UBM, GMM_SVM, SUPERVECTOR_COSINE)}


@dataclass(frozen=True)
class AttackerConfig(Options):
    """Everything that an attacker is made by, checked against the kinds that there are; fields as in `Options`."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"kind is {self.kind!r}: expected one of {', '.join(KINDS)}")
        super().__post_init__()
        self.method.check(self)

    @property
    def method(self) -> Kind:
        """The functions of its kind."""
        return KINDS[self.kind]

    @property
    def exact(self) -> bool:
        """Whether scores are computed from frames, not from vectors."""
        return self.method.scores_frames(self)


_SHARED: dict[str, Any] = {
    "features": {"preset": "wideband"},
    "training": {"session_seconds": 2.5},
    "ubm": {"components": 64},
}
_SVM: dict[str, Any] = {
    **_SHARED,
    "kind": "gmm-svm",
    "enrolment": "sessions",
    "svm": {"balanced": True},
    "projection": {"rank": 20},
}
PRESETS: dict[str, dict[str, Any]] = {
    "gmm-ubm": {**_SHARED, "kind": "gmm-ubm"},
    "gmm-svm": _SVM,
    # the mean of the cepstra is what an anonymiser changes most: without it, original and anonymised speech compare
    "gmm-svm-cms": {**_SVM, "features": {"preset": "wideband", "log_energy": True, "normalisation": "cms"}},
    "supervector-cosine": {
        **_SHARED,
        "kind": "supervector-cosine",
        "enrolment": "sessions",
        "projection": {"rank": 20, "lda": 120},
        "norm": {"kind": "s", "segments": "speaker", "speakers": 30},
    },
}


def attacker_config(
    preset: str,
    *,
    file: str | Path | None = None,
    settings: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
) -> AttackerConfig:
    """Return a configuration from a preset, values, a YAML file and settings, each winning over the one before.

    Parameters
    ----------
    preset : str
        A name of `PRESETS`.
    file, settings
        See `spkbase.configuration.load_config`.
    values : mapping, optional
        Nested values, such as ``{"ubm": {"components": 64}}``.

    Raises
    ------
    ConfigError
        If there is no such preset, or with all problems of the values.

    Examples
    --------
    >>> attacker_config("gmm-svm", settings=["ubm.components=64"]).ubm.components
    64
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown attacker {preset!r}: expected one of {', '.join(PRESETS)}")
    defaults = merged({"name": preset}, PRESETS[preset], values or {})
    return load_config(AttackerConfig, file=file, settings=settings, defaults=defaults)
