"""The order of columns: which tools write which, how it is told from the content, and how it is forced.

===============  =======================================  =====================================================
Name             Columns                                  Who writes it
===============  =======================================  =====================================================
``kaldi``        model segment score                      Kaldi, the VoicePrivacy toolkits, SIDEKIT, ZEBRA
``voxsrc``       score model segment                      VoxSRC, VoxCeleb_trainer
``wespeaker``    model segment score label                wespeaker
``speechbrain``  model segment label score                SpeechBrain
``bob``          claimed real segment score               bob: a target where claimed and real identity are the same
``bob5``         claimed model real segment score         bob
``kaldi``        model segment label                      keys of Kaldi, of the VoicePrivacy toolkits, SIDEKIT
``voxceleb``     label model segment                      keys of VoxCeleb and SpeechBrain
===============  =======================================  =====================================================

A layout is a tuple of such roles; ``-`` passes over a column. Labels are ``target`` and ``nontarget``, ``1`` and ``0``,
``true`` and ``false``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from evaluation.trials import TRUTHS
from spkbase.errors import DataError

Layout = tuple[str, ...]
Content = Literal["scores", "key"]

ROLES = ("model", "segment", "score", "label", "claimed", "real", "-")
LABELS = {word.encode(): truth for word, truth in TRUTHS.items()}

SCORES: dict[str, Layout] = {
    "kaldi": ("model", "segment", "score"),
    "voxsrc": ("score", "model", "segment"),
    "wespeaker": ("model", "segment", "score", "label"),
    "speechbrain": ("model", "segment", "label", "score"),
    "bob": ("claimed", "real", "segment", "score"),
    "bob5": ("claimed", "model", "real", "segment", "score"),
}
KEYS: dict[str, Layout] = {
    "kaldi": ("model", "segment", "label"),
    "voxceleb": ("label", "model", "segment"),
    "wespeaker": SCORES["wespeaker"],
    "speechbrain": SCORES["speechbrain"],
    "bob": SCORES["bob"],
    "bob5": SCORES["bob5"],
}
_DOTTED = re.compile(rb"[-+]?\d*\.\d+([eE][-+]?\d+)?$|[-+]?inf(inity)?$", re.IGNORECASE)


def is_number(token: bytes) -> bool:
    """Return whether a token is a number, NaN and infinite ones too; ``1_000`` is none."""
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


def is_label(token: bytes) -> bool:
    """Return whether a token says target or nontarget."""
    return token.lower() in LABELS


def label_remedy(token: bytes) -> str:
    """Return what to do about a word that is no label; a number there may be a score."""
    words = "1, 0, true and false will do too"
    return f"{words}; are scores and key exchanged?" if is_number(token) else words


def forced_layout(layout: str | Sequence[str], content: Content) -> Layout:
    """Check a layout that a user gave, by name or as roles (one text with commas or blanks, or a sequence).

    Raises
    ------
    DataError
        If it is neither a name nor roles, or a role that the content needs is missing or repeated.

    Examples
    --------
    >>> forced_layout("score,model,segment,-", "scores")
    ('score', 'model', 'segment', '-')
    >>> forced_layout("voxceleb", "key")
    ('label', 'model', 'segment')
    """
    known = SCORES if content == "scores" else KEYS
    if isinstance(layout, str):
        if layout in known:
            return known[layout]
        layout = layout.replace(",", " ").split()
    roles = tuple("label" if role == "target" else role for role in layout)
    needed = {"segment", "score"} if content == "scores" else {"segment"}
    truth = content == "scores" or "label" in roles or {"claimed", "real"} <= set(roles)
    given_roles = [role for role in roles if role != "-"]
    fits = set(roles) <= set(ROLES) and len(set(given_roles)) == len(given_roles) and needed <= set(roles)
    if not (fits and truth and {"model", "claimed"} & set(roles)):
        remedy = f"use one of {', '.join(known)}, or an order of {', '.join(ROLES)} such as {','.join(known['kaldi'])}"
        raise DataError(f"no order of the columns of {_what(content)}: {' '.join(roles) or '(none)'}", remedy=remedy)
    return roles


def detect_layout(rows: Sequence[Sequence[bytes]], content: Content, path: Path) -> Layout:
    """Detect the order of columns from the first lines.

    Kaldi's order is assumed as long as the last column could be what it has there, so that a column of numbers that are
    speakers is not taken for scores because of one bad line.

    Parameters
    ----------
    rows : sequence of sequences of bytes
        Tokens of some lines, equally many each.
    content : {"scores", "key"}
        What the file should hold.
    path : Path
        The file, for errors.

    Raises
    ------
    DataError
        If no layout has so many columns, or two fit equally well.
    """
    n_columns = len(rows[0])
    if n_columns == 3:
        test = is_number if content == "scores" else is_label
        front = all(test(row[0]) for row in rows) and not any(test(row[2]) for row in rows)
        names = ("voxsrc", "kaldi") if content == "scores" else ("voxceleb", "kaldi")
        return (SCORES if content == "scores" else KEYS)[names[0] if front else names[1]]
    if n_columns == 4:
        return SCORES[_detect_four(rows, path)]
    return SCORES["bob5"]


def _detect_four(rows: Sequence[Sequence[bytes]], path: Path) -> str:
    labels_third, labels_last = (all(is_label(row[column]) for row in rows) for column in (2, 3))
    number_third, number_last = (all(is_number(row[column]) for row in rows) for column in (2, 3))
    wespeaker, speechbrain = labels_last and number_third, labels_third and number_last
    if wespeaker and speechbrain:  # both columns hold numbers: a score has a point, a label has none
        dotted_third, dotted_last = (any(_DOTTED.match(row[column]) for row in rows) for column in (2, 3))
        if dotted_third == dotted_last:
            remedy = "say which: --scores-columns model,segment,score,label or model,segment,label,score"
            raise DataError("two columns could be the score", file=path, line=1, remedy=remedy)
        wespeaker = dotted_third
    return "wespeaker" if wespeaker else "speechbrain" if speechbrain else "bob"


def expected_columns(content: Content, n_columns: int) -> str:
    """Return, for an error, what lines of a file should hold."""
    layouts = SCORES if content == "scores" else KEYS
    fitting = [layout for layout in layouts.values() if len(layout) == n_columns] or [layouts["kaldi"]]
    orders = ", or ".join(" ".join(layout) for layout in fitting)
    words = orders.replace("label", "target|nontarget")
    return f"{len(fitting[0])} columns ({words})"


def _what(content: Content) -> str:
    return "scores" if content == "scores" else "a key"
