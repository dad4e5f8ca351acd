"""What becomes of a transcript before it is compared; each way has a name, which stands in every result.

none
    Nothing: words are what white space separates. So VoicePrivacy 2022 and 2024 compare, whose texts are upper case.
basic
    Unicode NFKC, lower case, typographic apostrophes to ', punctuation and symbols to blanks. An apostrophe inside a
    word stays, a hyphen parts it. VoicePrivacy 2026 takes punctuation off its multilingual sets in such a way.

No normaliser here spells numbers out or unites spellings; where the recogniser writes digits, normalise beforehand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u0060\u00b4\uff07", "'"))
_OUTER_APOSTROPHE = re.compile(r"(?<!\w)'|'(?!\w)")


def _none(text: str) -> str:
    return " ".join(text.split())


def _basic(text: str) -> str:
    # before NFKC, which would make a blank and an accent of some of them
    text = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).translate(_APOSTROPHES).lower()
    kept = "".join(letter if letter == "'" or unicodedata.category(letter)[0] not in "PSC" else " " for letter in text)
    return " ".join(_OUTER_APOSTROPHE.sub(" ", kept).split())


NORMALISERS: Mapping[str, Callable[[str], str]] = MappingProxyType({"none": _none, "basic": _basic})
"""Functions from a transcript to its words, with single blanks between them, by name."""
