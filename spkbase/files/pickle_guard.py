"""What a pickle asks of memory and of the stack, found before it is run with stand-ins (`spkbase.files.plain_pickle`).

The unpickler of Python takes memory for a size that a pickle names before it looks whether there is so much, fills a
table up to any number that a pickle remembers a thing under, and values that hold each other a million deep end the
process when one of them is looked up in a dictionary.
"""

from __future__ import annotations

import io
import pickle
import pickletools

_DEEPEST = 100
_IN_PLACE = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_REMEMBER = {"PUT", "BINPUT", "LONG_BINPUT"}
_RECALL = {"GET", "BINGET", "LONG_BINGET"}
_MARK = -1


def check_pickle(raw: bytes) -> int:
    """Go through the first pickle of some bytes without running it; give where it ends.

    Raises
    ------
    pickle.UnpicklingError
        If it is cut off or no pickle, names a size or a number beyond its own, or nests values deeper than 100.
    """
    stack: list[int] = []  # how deep each value is, or a mark
    memo: dict[int, int] = {}
    stream = io.BytesIO(raw)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            name = opcode.name
            if name in _REMEMBER or name in _RECALL:
                number = int(argument or 0)
                if not 0 <= number <= len(raw):
                    raise ValueError(f"it remembers a thing under the number {number}")
                if name in _RECALL:
                    stack.append(memo[number])
                else:
                    memo[number] = stack[-1]
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name == "DUP":
                stack.append(stack[-1])
            else:
                _follow(opcode, name, stack)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError) as error:
        raise pickle.UnpicklingError(f"it is cut off or damaged: {error}"[:200]) from None
    return stream.tell()


def _follow(opcode: pickletools.OpcodeInfo, name: str, stack: list[int]) -> None:
    """Take from the stack what an instruction takes, and put there what it makes."""
    takes, makes = opcode.stack_before, opcode.stack_after
    below = len(takes)
    taken: list[int] = []
    if pickletools.markobject in takes:
        below = takes.index(pickletools.markobject)
        while (one := stack.pop()) != _MARK:
            taken.append(one)
    taken += [stack.pop() for _ in range(below)]
    # what grows in place is as deep as before, or as what is put into it
    grown = [taken.pop()] if name in _IN_PLACE else []
    depth = max([*grown, *(1 + value for value in taken)], default=0)
    if depth > _DEEPEST:
        raise ValueError(f"its values lie deeper than {_DEEPEST} in each other")
    stack.extend(_MARK if name == "MARK" else depth for _ in makes)
