"""What a pickle asks of memory and of the stack, found before it is run with stand-ins (`spkbase.files.plain_pickle`).

The unpickler of Python takes memory for a size that a pickle names before it looks whether there is so much, fills a
table up to any number that a pickle remembers a thing under, and values that hold each other a million deep end the
process when one of them is looked up in a dictionary.
"""

from __future__ import annotations

import pickle
import pickletools
from typing import NamedTuple

_DEEPEST = 100
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


def _walk(raw: bytes, position: int) -> int:
    stack: list[int] = []  # how deep each value is
    marks: list[int] = []  # how many values lie below each mark
    memo: dict[int, int] = {}
    orders, end, number_of = _ORDERS, len(raw), int.from_bytes
    while True:
        does, fixed, has_length, lines, takes, from_mark, grows, makes = orders[raw[position]]
        begin = position + 1
        position = begin + fixed
        if has_length:
            length = number_of(raw[begin:position], "little")
            if length > end - position:
                raise ValueError(f"{length} bytes where {max(end - position, 0)} are left")
            position += length
        elif lines:
            for _ in range(lines):
                position = raw.index(b"\n", position) + 1
        if does == _PUSH:
            stack.append(0)
        elif does == _MEMOIZE:
            memo[len(memo)] = stack[-1]
        elif does in (_GET, _PUT):
            number = int(raw[begin : position - 1]) if lines else number_of(raw[begin:position], "little")
            if does == _GET:
                stack.append(memo[number])
                continue
            if not 0 <= number <= end:
                raise ValueError(f"it remembers a thing under the number {number}")
            memo[number] = stack[-1]
        elif does == _MARK:
            marks.append(len(stack))
        elif does == _DUP:
            stack.append(stack[-1])
        elif does == _POP and marks and marks[-1] == len(stack):
            marks.pop()
        elif does == _STOP:
            stack.pop()
            return _within(position, end)
        else:
            _follow(stack, marks, takes, from_mark, grows, makes)


def _within(position: int, end: int) -> int:
    if position > end:
        raise ValueError("its end is missing")
    return position


def _follow(stack: list[int], marks: list[int], takes: int, from_mark: bool, grows: bool, makes: int) -> None:
    """Take from the stack what an order takes, and put there what it makes."""
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
