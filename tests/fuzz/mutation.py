"""Damage of bytes and of words, and nonsense from scratch; everything by the generator that is given."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

# what numbers, ids and labels are replaced by
NUMBERS = (
    *(b"0", b"-0", b"1", b"-1", b"2", b"3", b"255", b"256", b"32768", b"65536", b"2147483647", b"2147483648"),
    *(b"-2147483649", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"1" + b"0" * 30, b"9" * 5000),
    *(b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"1e-400", b"0x10", b"1_0", b"1.5", b".5", b"1e3", b"+7", b"007", b""),
    *("٣".encode(), "²".encode(), b"None", b"true", b"1,5"),
)
WORDS = (
    *(
        b"",
        b".",
        b"..",
        b"../../x",
        b"/etc/passwd",
        b"a/b",
        b"a\\b",
        b"-",
        b"|",
        b"touch x |",
        b"|touch x",
        b"~",
        b"$HOME",
    ),
    *(
        b"x" * 300,
        b"x" * 70000,
        b"\0",
        b"\n",
        b"\r",
        b"\r\n",
        b"\t",
        b"\x0b",
        b"\x1b[31m",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ),
    *(
        "é 語 \u2028 \u0085 \ufeff \u202e".encode(),
        b"\xed\xa0\x80",
        b"'",
        b'"',
        b"#",
        b"&a",
        b"*a",
        b"!!python/name:os.system",
    ),
    *(
        b"target",
        b"nontarget",
        b"model",
        b"segment",
        b"score",
        b"NaN",
        b"[",
        b"]",
        b"{",
        b"}",
        b"[" * 3000,
        b'{"a":' * 2000,
    ),
)
BYTES = (0, 1, 2, 4, 16, 32, 63, 64, 127, 128, 192, 254, 255)
_NUMBER = re.compile(rb"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_WORD = re.compile(rb"[^\s,;\"]+")
_LONGEST = 1 << 20  # of an input


def damage(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Apply one to five kinds of damage."""
    for _ in range(1 + min(4, int(chance.expovariate(0.8)))):
        data = chance.choice(_KINDS)(chance, data, others)
    return data[:_LONGEST]


def nonsense(chance: random.Random, words: Sequence[bytes] = ()) -> bytes:
    """Bytes, or words and what stands between words, from scratch."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.choice((0, 1, 3, 8, 40, 600)))
    between = (b" ", b"\n", b"\n", b"\t", b",", b": ", b"\n- ", b"\n  ", b";", b"", b"=")
    vocabulary = (*words, *words, *NUMBERS[:30], *WORDS)
    return b"".join(chance.choice(vocabulary)[:400] + chance.choice(between) for _ in range(chance.randrange(40)))


def _place(chance: random.Random, data: bytes) -> int:
    """Somewhere; headers, which come first, more often."""
    most = len(data) if chance.random() < 0.6 else min(len(data), 512)
    return chance.randrange(most + 1)


def _flip(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        if changed:
            changed[min(_place(chance, data), len(data) - 1)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _set(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = _place(chance, data)
    return data[:place] + bytes([chance.choice(BYTES)]) * chance.choice((1, 1, 2, 4, 8)) + data[place + 1 :]


def _integer(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """An integer of a header, of any width and order."""
    width, place = chance.choice((1, 2, 4, 8)), _place(chance, data)
    top = 1 << 8 * width
    value = chance.choice((0, 1, 2, top - 1, top - 2, top >> 1, (top >> 1) - 1, len(data), chance.randrange(top)))
    return data[:place] + (value % top).to_bytes(width, chance.choice(("little", "big"))) + data[place + width :]


def _truncate(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: _place(chance, data)]


def _delete(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = _place(chance, data)
    return data[:place] + data[place + chance.choice((1, 2, 4, 8, 60, 1000)) :]


def _repeat(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place, length = _place(chance, data), chance.choice((1, 4, 20, 200))
    return data[:place] + data[place : place + length] * chance.choice((2, 2, 3, 50)) + data[place + length :]


def _insert(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    place = _place(chance, data)
    return data[:place] + chance.choice((*WORDS, *NUMBERS, chance.randbytes(5))) + data[place:]


def _splice(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    return data[: _place(chance, data)] + other[_place(chance, other) :]


def _number(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return _replace(chance, data, _NUMBER, NUMBERS)


def _word(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    found = [data[match.start() : match.end()] for match in _matches(chance, data, _WORD)]
    return _replace(chance, data, _WORD, (*WORDS, *WORDS, *NUMBERS, *found))


def _line(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Drop, double or swap lines, or take one from elsewhere."""
    lines = data.split(b"\n")
    place, kind = chance.randrange(len(lines)), chance.randrange(4)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(chance.randrange(len(lines) + 1), lines[place])
    elif kind == 2:
        other = chance.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines.insert(place, chance.choice(chance.choice(others).split(b"\n"))[:2000])
    return b"\n".join(lines)


def _replace(chance: random.Random, data: bytes, pattern: re.Pattern[bytes], values: Sequence[bytes]) -> bytes:
    matches = _matches(chance, data, pattern)
    if not matches:
        return data
    match = chance.choice(matches)
    return data[: match.start()] + chance.choice(values) + data[match.end() :]


def _matches(chance: random.Random, data: bytes, pattern: re.Pattern[bytes]) -> list[re.Match[bytes]]:
    """Some matches: a window of a large input is enough."""
    start = chance.randrange(max(1, len(data) - 4000))
    return list(pattern.finditer(data, start, start + 4000))


_KINDS = (
    _flip, _set, _integer, _truncate, _delete, _repeat, _insert, _splice, _number, _number, _word, _word, _line
)  # fmt: skip
