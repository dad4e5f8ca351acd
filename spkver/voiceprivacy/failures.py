"""Errors of single attackers, which do not end a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from spkbase.errors import SpkverError
from spkbase.plugins import TimeLimitError
from spkbase.showing import one_line
from spkver.attackers import ENDING

Value = TypeVar("Value")


@one_line
@dataclass
class Failures:
    """Errors of single attackers, recorded so that the others can continue.

    Attributes
    ----------
    plugins : set of str
        Attackers that run users' code, of which any error is recorded. Built-in attackers may fail by an `SpkverError`:
        another error of theirs is a defect of this package.
    of_rows : dict of str to Exception
        By the file of the scores.
    timed_out : dict of str to Exception
        Attackers that exceeded the time limit; they are not called again in this run.
    """

    plugins: Collection[str] = ()
    of_rows: dict[str, Exception] = field(default_factory=dict)
    timed_out: dict[str, Exception] = field(default_factory=dict)

    def attempt(self, name: str, files: Sequence[str], action: Callable[[], Value]) -> Value | None:
        """Return the value of an action of an attacker, or record its error for some files of scores.

        `ENDING` exceptions, and defects of built-in attackers, end the run.
        """
        try:
            if name in self.timed_out:
                raise self.timed_out[name]
            return action()
        except ENDING:
            raise
        except Exception as error:
            if not isinstance(error, SpkverError) and name not in self.plugins:
                raise
            if isinstance(error, TimeLimitError):
                self.timed_out[name] = error
            self.of_rows |= dict.fromkeys(files, error)
            return None


def reason_of(error: Exception) -> str:
    """Return the message of an error in one line, with the type if the error is not ours."""
    text = str(error) if isinstance(error, SpkverError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
