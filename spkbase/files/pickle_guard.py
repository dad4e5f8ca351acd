"""What a pickle asks of memory and of the stack, found before it is run with stand-ins (`spkbase.files.plain_pickle`).

The unpickler of Python takes memory for a size that a pickle names before it looks whether there is so much, fills a
table up to any number that a pickle remembers a thing under, and values that hold each other a million deep end the
process when one of them is looked up in a dictionary.

A pickle of many arrays is the same orders again and again with other contents. Such repeats are compared as rows of a
table instead of being gone through one by one.
"""

from __future__ import annotations

import pickle
import pickletools
from typing import NamedTuple

import numpy as np

_DEEPEST = 100
_NOTHING = 255  # deeper than anything
_ROWS = 96  # as many vectors as a frame of a pickle holds
_BUILD, _REDUCE = _ENDS = ord("b"), ord("R")
_MEMOIZE_CODE = 0x94
_OTHERS = 3
_IN_PLACE = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_LENGTHS = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
_PUSH, _PUT, _GET, _MEMOIZE, _DUP, _MARK, _POP, _STOP, _OTHER = range(9)
_DOES = {
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _PUT),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _GET),
    **{"MEMOIZE": _MEMOIZE, "DUP": _DUP, "MARK": _MARK, "POP": _POP, "STOP": _STOP},
}


class _Order(NamedTuple):
    """What an order of a pickle does with its bytes and with the stack."""

    does: int
    fixed: int  # bytes of its argument, or of the length of the argument
    has_length: bool
    lines: int  # lines of text that its argument has
    takes: int  # values from the stack
    from_mark: bool  # and all above the last mark
    grows: bool  # the lowest of them in place
    makes: int


def _order(opcode: pickletools.OpcodeInfo) -> _Order:
    size = 0 if opcode.arg is None else opcode.arg.n
    takes, makes = opcode.stack_before, opcode.stack_after
    from_mark = pickletools.markobject in takes
    below = takes.index(pickletools.markobject) if from_mark else len(takes)
    plain = _PUSH if not takes and len(makes) == 1 else _OTHER
    lines = 0 if size != pickletools.UP_TO_NEWLINE else 2 if opcode.name in ("GLOBAL", "INST") else 1
    fixed = _LENGTHS.get(size, max(size, 0))
    does = _DOES.get(opcode.name, plain)
    return _Order(does, fixed, size in _LENGTHS, lines, below, from_mark, opcode.name in _IN_PLACE, len(makes))


_ORDERS = {ord(opcode.code): _order(opcode) for opcode in pickletools.opcodes}


def check_pickle(raw: bytes, start: int = 0) -> int:
    """Go through a pickle that begins within some bytes without running it; give where it ends.

    Raises
    ------
    pickle.UnpicklingError
        If it is cut off or no pickle, names a size or a number beyond its own, or nests values deeper than 100.
    """
    try:
        return _walk(raw, start)
    except (ValueError, IndexError, KeyError) as error:
        raise pickle.UnpicklingError(f"it is cut off or damaged: {error}"[:200]) from None


class _Segment:
    """The orders since the last BUILD or REDUCE: what they left, and which bytes of them are contents.

    Orders that look at nothing that was there before them, and change nothing of it, do the same wherever they come
    again; `lowest` and `fewest` say how many of the values and marks before them were left alone.
    """

    def __init__(self, ends_with: int) -> None:
        self.ends_with = ends_with
        self.start = self.lowest = self.fewest = -1
        self.others = 0

    def begin(self, position: int, stack: list[int], marks: list[int], memo: bytearray) -> None:
        self.start, self.height, self.n_marks, self.n_memo = position, len(stack), len(marks), len(memo)
        self.lowest, self.fewest = self.height, self.n_marks
        self.contents: list[tuple[int, int]] = []
        self.others = 0

    def turn(self) -> None:
        """Look for segments that end with the other order."""
        self.ends_with, self.start, self.others = _REDUCE if self.ends_with == _BUILD else _BUILD, -1, 0

    def note_other_end(self) -> None:
        """Turn where the other order comes again and again, and this one does not."""
        self.others += 1
        if self.others == _OTHERS:
            self.turn()

    def is_alone(self, marks: list[int]) -> bool:
        """Tell whether it touched nothing that was there before it, and left no mark."""
        return self.start >= 0 and self.lowest >= self.height and len(marks) == self.fewest == self.n_marks


def count_repeats(raw: bytes, start: int, stop: int, contents: list[tuple[int, int]]) -> int:
    """Return how often some orders come again behind themselves, with other contents of the same lengths.

    Parameters
    ----------
    raw : bytes
        A pickle.
    start, stop : int
        Where the orders begin and end.
    contents : list of (int, int)
        Begin and length of the bytes among them that are text or numbers, and no orders.
    """
    length, found = stop - start, 0
    if raw[stop : stop + 1] != raw[start : start + 1] or raw[stop + length - 1 : stop + length] != raw[stop - 1 : stop]:
        return 0
    is_order = np.ones(length, bool)
    for begin, size in contents:
        is_order[begin - start : begin - start + size] = False
    places = np.flatnonzero(is_order)
    orders = np.frombuffer(raw, np.uint8, length, start)[places]
    while rows := min((len(raw) - stop) // length - found, _ROWS):
        block = np.frombuffer(raw, np.uint8, rows * length, stop + found * length).reshape(rows, length)
        same = (block[:, places] == orders).all(axis=1)
        if not same.all():
            return found + int(same.argmin())
        found += rows
    return found


def _walk(raw: bytes, position: int) -> int:
    stack: list[int] = []  # how deep each value is
    marks: list[int] = []  # how many values lie below each mark
    memo = bytearray()  # how deep what is remembered is, under each number
    gaps = 0  # numbers below the last under which there is nothing
    orders, end, number_of = _ORDERS, len(raw), int.from_bytes
    segment = _Segment(_BUILD)
    while True:
        code = raw[position]
        does, fixed, has_length, lines, takes, from_mark, grows, makes = orders[code]
        begin = position + 1
        position = begin + fixed
        if has_length:
            length = number_of(raw[begin:position], "little")
            if length > end - position:
                raise ValueError(f"{length} bytes where {max(end - position, 0)} are left")
            if segment.start >= 0:
                segment.contents.append((position, length))
            position += length
        elif lines:
            for _ in range(lines):
                position = raw.index(b"\n", position) + 1
        if does == _PUSH:
            stack.append(0)
        elif does == _MEMOIZE:
            segment.lowest = min(segment.lowest, len(stack) - 1)
            gaps += _remember(memo, len(memo) - gaps, stack[-1])
        elif does in (_GET, _PUT):
            number = int(raw[begin : position - 1]) if lines else number_of(raw[begin:position], "little")
            if does == _GET:
                if not 0 <= number < len(memo) or memo[number] == _NOTHING:
                    raise ValueError(f"there is nothing under the number {number}")
                stack.append(memo[number])
                continue
            if not 0 <= number <= end:
                raise ValueError(f"it remembers a thing under the number {number}")
            segment.fewest = -1
            gaps += _remember(memo, number, stack[-1])
        elif does == _MARK:
            marks.append(len(stack))
        elif does == _DUP:
            segment.lowest = min(segment.lowest, len(stack) - 1)
            stack.append(stack[-1])
        elif does == _POP and marks and marks[-1] == len(stack):
            segment.fewest = -1
            marks.pop()
        elif does == _STOP:
            stack.pop()
            return _within(position, end)
        else:
            bottom = _follow(stack, marks, takes, from_mark, grows, makes)
            segment.lowest = min(segment.lowest, bottom)
            segment.fewest = min(segment.fewest, len(marks))
            if code == _REDUCE and raw[position] == _MEMOIZE_CODE:  # what is made is remembered: one order
                position += 1
                gaps += _remember(memo, len(memo) - gaps, stack[-1])
            if code == segment.ends_with and not gaps:
                position = _skip(raw, position, segment, stack, marks, memo)
            elif code in _ENDS:
                segment.note_other_end()


def _skip(raw: bytes, position: int, segment: _Segment, stack: list[int], marks: list[int], memo: bytearray) -> int:
    """Take the repeats of a segment at once: each leaves as much as it did. Return where they end, and begin anew."""
    if segment.is_alone(marks):
        repeats = count_repeats(raw, segment.start, position, segment.contents)
        position += repeats * (position - segment.start)
        stack.extend(stack[segment.height :] * repeats)
        memo.extend(memo[segment.n_memo :] * repeats)
    elif segment.start >= 0:
        segment.turn()
        return position
    segment.begin(position, stack, marks, memo)
    return position


def _remember(memo: bytearray, number: int, depth: int) -> int:
    """Note how deep a value is under a number; return by how many the numbers without a value become more."""
    skipped = number - len(memo)
    if skipped >= 0:
        memo.extend(bytes([_NOTHING]) * skipped)
        memo.append(depth)
        return skipped
    was_gap = memo[number] == _NOTHING
    memo[number] = depth
    return -int(was_gap)


def _within(position: int, end: int) -> int:
    if position > end:
        raise ValueError("its end is missing")
    return position


def _follow(stack: list[int], marks: list[int], takes: int, from_mark: bool, grows: bool, makes: int) -> int:
    """Take from the stack what an order takes, and put there what it makes; return how many values it left alone."""
    bottom = (marks.pop() if from_mark else len(stack)) - takes
    if bottom < (marks[-1] if marks else 0):
        raise ValueError("it takes more values than there are")
    taken = stack[bottom:]
    del stack[bottom:]
    # what grows in place is as deep as before, or as what is put into it
    depth = 0
    if taken:
        depth = max(taken[0], 1 + max(taken[1:], default=-1)) if grows else 1 + max(taken)
    if depth > _DEEPEST:
        raise ValueError(f"its values lie deeper than {_DEEPEST} in each other")
    stack.extend([depth] * makes)
    return bottom
