"""Spellings of ids, which differ between toolkits, file systems and editors."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import numpy as np

from evaluation.trials.lists import Self, Trials
from spkbase.errors import DataError

_SPELLING = re.compile(r"[/_-]|\.(wav|flac|sph|ogg|mp3|m4a|opus|aac)$", re.IGNORECASE)


def folded(identity: str) -> str:
    """Return the common form of ids that differ only in case, Unicode form, outer blanks or invisible letters."""
    if identity.isascii():
        return identity.strip().lower()
    letters = unicodedata.normalize("NFKC", identity).casefold()
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cf").strip()


def loosened(identity: str) -> str:
    """Return a common form of ids that differ only in ``/``, ``-``, ``_`` and extensions, as between toolkits.

    Examples
    --------
    >>> {loosened(spelling) for spelling in ("id10270/x6uYq/00001.wav", "id10270-x6uYq-00001", "id10270_x6uYq/00001")}
    {'id10270/x6uYq/00001'}
    """
    return _SPELLING.sub(lambda match: "" if match[1] else "/", identity)


def match_ids(scores: Self, key: Trials) -> Self:
    """Spell the ids of a list as a key does, if only ``/``, ``-``, ``_`` or the audio extension differ.

    Toolkits spell the ids of VoxCeleb in three ways: ``id10270/x6uYqmx31kE/00001.wav``, ``id10270/x6uYqmx31kE/00001``
    and ``id10270-x6uYqmx31kE-00001``.

    Parameters
    ----------
    scores : Scores, Key or Trials
        The list to be joined with the key.
    key : Trials
        Key whose ids are kept.

    Returns
    -------
    Scores, Key or Trials
        The same trials; ids that the key does not have in any spelling are unchanged.

    Raises
    ------
    DataError
        If two models, or two segments, of one list would have the same id.

    Examples
    --------
    >>> from evaluation.trials import Key, Scores
    >>> key = Key.from_ids(["id1/a.wav", "id1/a.wav"], ["id1/b.wav", "id2/c.wav"], [True, False])
    >>> match_ids(Scores.from_ids(["id1-a", "id1-a"], ["id1-b", "id2-c"], [2.0, 1.0]), key).segment_ids.tolist()
    ['id1/b.wav', 'id2/c.wav']
    """
    tables = {}
    for side in ("model_ids", "segment_ids"):
        spellings: dict[str, str] = {}
        # keep the spelling of the key
        for ids in (getattr(scores, side).tolist(), getattr(key, side).tolist()):
            own = {loosened(identity): identity for identity in ids}
            for identity in ids:
                other = own[loosened(identity)]
                if other != identity:
                    text = f"{side}: {identity!r} and {other!r} are one if /, -, _ and extensions do not count"
                    raise DataError(text, remedy="join by equal ids, and rename those that differ")
            spellings |= own
        tables[side] = np.array(
            [spellings[loosened(identity)] for identity in getattr(scores, side)], object
        )
    return replace(scores, **tables)
