"""Words of recognisers as text: their plain form, repetitions of a decoder that does not stop, and agreement."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'"))

# a loop: a phrase repeated at least this often, over at least this many words
_LONGEST_PHRASE = 16
_LEAST_TIMES = 4
_LEAST_WORDS = 12
# more words per second than anybody speaks
_WORDS_PER_SECOND = 8.0
_SPARE_WORDS = 2


class Recognised(NamedTuple):
    """Words of a recording.

    Attributes
    ----------
    words : str
        Upper-case words with single blanks between them, possibly none.
    is_cut : bool
        Whether the recogniser repeated itself, and its words were cut, see `without_loops`.
    """

    words: str
    is_cut: bool = False


def spoken_words(text: str) -> list[str]:
    """Return the words of a text in upper case, as LibriSpeech writes them: without punctuation and symbols.

    Examples
    --------
    >>> spoken_words(" It\u2019s well-known: Mr. O'Neil (the end)...")
    ["IT'S", 'WELL', 'KNOWN', 'MR', "O'NEIL", 'THE', 'END']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).upper())


def without_loops(words: Sequence[str], seconds: float) -> tuple[list[str], bool]:
    """Return words without the repetitions of a decoder that does not stop, and whether there were any.

    If a phrase of up to 16 words is repeated at least four times in succession, over at least 12 words, only its first
    occurrence is kept. Words in excess of 8 per second (plus 2) are then cut off.

    Parameters
    ----------
    words : sequence of str
    seconds : float
        Duration of the recording.

    Examples
    --------
    >>> without_loops("SO THE STORE IS THE STORE IS THE STORE IS THE STORE IS THE STORE".split(), 20.0)
    (['SO', 'THE', 'STORE', 'IS'], True)
    >>> without_loops("NO NO NO NO".split(), 2.0)
    (['NO', 'NO', 'NO', 'NO'], False)
    """
    kept = list[str]()
    position = 0
    while position < len(words):
        length, end = _loop_at(words, position)
        kept.extend(words[position : position + length])
        position = end
    most = int(_SPARE_WORDS + _WORDS_PER_SECOND * seconds)
    kept = kept[:most]
    return kept, len(kept) < len(words)


def agreement(references: Mapping[str, str], recognised: Mapping[str, str]) -> float:
    """Return the share of the words of references that were recognised, in their order; NaN if there are no words.

    Parameters
    ----------
    references, recognised : mapping of str to str
        Text of each utterance; utterances without a recognised text are left out.

    Examples
    --------
    >>> agreement({"a": "One, two, three, four."}, {"a": "ONE TOO THREE FOR"})
    0.5
    """
    n_words = 0
    n_agreed = 0
    for utterance, text in references.items():
        if utterance not in recognised:
            continue
        reference = spoken_words(text)
        matcher = SequenceMatcher(
            None, reference, spoken_words(recognised[utterance]), autojunk=False
        )
        n_words += len(reference)
        n_agreed += sum(block.size for block in matcher.get_matching_blocks())
    if n_words == 0:
        return math.nan
    return n_agreed / n_words


def _loop_at(words: Sequence[str], start: int) -> tuple[int, int]:
    """Return the length of the phrase to keep at a position, and the position after its repetitions."""
    for length in range(1, _LONGEST_PHRASE + 1):
        phrase = words[start : start + length]
        end = start + length
        while words[end : end + length] == phrase:
            end += length
        n_words = end - start
        if n_words >= max(_LEAST_WORDS, _LEAST_TIMES * length):
            rest = words[end:]
            # the last repetition is unfinished
            if len(rest) < length and rest == phrase[: len(rest)]:
                end = len(words)
            return length, end
    return 1, start + 1
