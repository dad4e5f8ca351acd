"""What a pickle asks for is found before it is run, one by one or as repeats of the same orders."""

from __future__ import annotations

import pickle
import pickletools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spkbase.files.pickle_guard import check_pickle, count_repeats

VECTORS = np.arange(3000.0).reshape(300, 10)
CONTENTS: dict[str, Any] = {
    "vectors by name": {f"u{row}": vector for row, vector in enumerate(VECTORS)},
    "names of one length": {f"u{row:04d}": vector for row, vector in enumerate(VECTORS)},
    "lists of speakers": {f"s{row}": list(VECTORS[10 * row : 10 * row + 10]) for row in range(30)},
    "pairs": [(f"s{row % 7}", vector) for row, vector in enumerate(VECTORS)],
    "long vectors": [np.ones(20_000), np.zeros(20_000), np.ones(20_000)],
    "numbers": list(range(500)),
    "nothing": None,
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("content", CONTENTS)
def test_the_end_is_found(content: str, protocol: int) -> None:
    """As the standard library's own reader of orders finds it."""
    raw = pickle.dumps(CONTENTS[content], protocol)
    *_, (_, _, last) = pickletools.genops(raw)
    assert check_pickle(raw) == last + 1 == len(raw)
    assert check_pickle(b"??" + raw + b"behind", 2) == len(raw) + 2


@pytest.mark.parametrize("protocol", [4, 5])
def test_a_pickle_that_is_cut_off(protocol: int) -> None:
    raw = pickle.dumps(CONTENTS["names of one length"], protocol)
    for length in range(0, len(raw), 97):
        with pytest.raises(pickle.UnpicklingError, match="it is cut off or damaged"):
            check_pickle(raw[:length])


def test_repeats_are_counted_until_an_order_differs() -> None:
    """A row is an order, three bytes of contents, an order; the third of five has another order."""
    rows = [b"a123b", b"a456b", b"aabab", b"a789c", b"a123b"]
    raw = b"".join(rows)
    contents = [(1, 3)]
    assert count_repeats(raw, 0, 5, contents) == 2
    assert count_repeats(raw[:-1], 20, 24, [(21, 3)]) == 0
    assert count_repeats(b"ab" * 1000, 0, 2, []) == 999
    assert count_repeats(b"ab" * 1000 + b"a", 0, 2, []) == 999


NESTING = {
    "a copy of the last": b"2\x85Nb",
    "a remembered value that is set anew": b"h\1\x85q\1Nb",
    "the value below": b"\x85Nb",
    "what was just made": b"\x940h\1\x85q\1Nb",
    "by calls": b"h\0h\1\x85Rq\1",
}


@pytest.mark.parametrize("how", NESTING)
@pytest.mark.parametrize("rows", [101, 3000])
def test_orders_that_nest_deeper_each_time_are_no_repeats(how: str, rows: int) -> None:
    """The same orders over and over, of which each puts the last value into another: no row is like the one before."""
    start = b"\x80\2]q\0]q\1"
    assert check_pickle(start + b"Nb" * rows + b".") == len(start) + 2 * rows + 1  # nothing nests here
    with pytest.raises(pickle.UnpicklingError, match="deeper than 100"):
        check_pickle(start + NESTING[how] * rows + b".")


def test_repeats_that_end_in_the_middle_of_a_row() -> None:
    raw = pickle.dumps(CONTENTS["names of one length"], 4)
    place = raw.index(b"u0200")
    damaged = raw[:place] + b"u02" + raw[place + 5 :]  # the length before it is wrong now
    with pytest.raises(pickle.UnpicklingError):
        check_pickle(damaged)


@given(raw=st.binary(max_size=200))
def test_any_bytes(raw: bytes) -> None:
    try:
        end = check_pickle(b"\x80\4" + raw)
    except pickle.UnpicklingError:
        return
    assert raw[end - 3 : end - 2] == b"."


@given(data=st.data())
def test_damage_among_repeats(data: st.DataObject) -> None:
    """What is found to be whole is whole for the standard library too."""
    raw = bytearray(
        pickle.dumps({f"u{row:03d}": np.full(3, row) for row in range(12)}, data.draw(st.sampled_from([4, 5])))
    )
    for _ in range(data.draw(st.integers(1, 2))):
        raw[data.draw(st.integers(2, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        end = check_pickle(bytes(raw))
    except pickle.UnpicklingError:
        return
    try:
        *_, (_, _, last) = pickletools.genops(bytes(raw))
    except ValueError:  # it looks into text and numbers too
        return
    assert end == last + 1
