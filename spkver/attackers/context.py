"""What an attacker of the catalogue is made of besides its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spkbase.showing import one_line
from spkver.attackers.config import AttackerConfig
from spkver.attackers.protocol import Attacker, Wanted

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
