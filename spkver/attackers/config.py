"""Configuration of an attacker: the kinds, and the presets that the command line knows by name.

**What an attacker of the catalogue is made of besides its own settings.**
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError
from spkbase.showing import one_line
from spkver.attackers.kinds import GMM_SVM, GMM_UBM, SUPERVECTOR_COSINE, Kind, Options
from spkver.attackers.protocol import Attacker, Wanted

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


Settings = Mapping[str, Any]
Configured = AttackerConfig | Attacker | Wanted


@one_line
@dataclass(frozen=True)
class Context:
    """What the configuration says besides an attacker's own settings.

    Attributes
    ----------
    preset : str
        The row's name; `name` may be another where the settings have it as ``preset``.
    argument : str
        What follows the colon, as FILE in ``onnx:FILE``.
    seed : int
    shared : mapping
        ``attacker_settings.all``: what holds for the classic presets, such as the size of their UBM.
    settings : mapping of str to mapping
        ``attacker_settings``: those of the other attackers too.
    hypotheses : str or None
        ``utility.hypotheses``: file in the data directories that holds what a recogniser heard.
    before : mapping of str to AttackerConfig, Attacker or Wanted
        The attackers that stand before it in the list, by name.
    """

    preset: str
    argument: str = ""
    seed: int = 0
    shared: Settings = field(default_factory=dict)
    settings: Mapping[str, Settings] = field(default_factory=dict)
    hypotheses: str | None = None
    before: Mapping[str, Configured] = field(default_factory=dict)
