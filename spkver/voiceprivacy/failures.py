"""Errors of single attackers, which do not end a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from evaluation.reports import Failure
from spkbase.errors import SpkverError
from spkbase.plugins import TimeLimitError
from spkbase.showing import one_line
from spkver.attackers import ENDING
from spkver.voiceprivacy.rows import Row

Value = TypeVar("Value")

logger = logging.getLogger(__name__)


@one_line
@dataclass
class Failures:
    """Errors of single attackers, recorded so that the others can continue.

    Attributes
    ----------
    plugins : set of str
        Attackers that run users' code, whose errors are recorded whatever their type. Built-in attackers may only fail
        with an `SpkverError`: any other error is a defect of this package.
    errors : dict of str to Exception
        By the file of the row's scores.
    listed : list of Failure
        Lists of trials without scores, for the results; folds are not among them.
    timed_out : dict of str to Exception
        Attackers that exceeded the time limit; they are not called again in this run.
    """

    plugins: set[str] = field(default_factory=set)
    errors: dict[str, Exception] = field(default_factory=dict)
    listed: list[Failure] = field(default_factory=list)
    timed_out: dict[str, Exception] = field(default_factory=dict)

    def attempt(self, rows: Sequence[Row], action: Callable[[], Value]) -> Value | None:
        """Return the value of an action of an attacker, or record its error for its rows.

        `ENDING` exceptions, and defects of built-in attackers, end the run.
        """
        name = rows[0].attacker
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
            for row in rows:
                self.errors[row.file] = error
            return None

    def error(self, row: Row) -> Exception | None:
        """Return the error of a row, or None."""
        return self.errors.get(row.file)

    def tell(self, row: Row) -> None:
        """Log the error of a list of trials, if there is one, and list it for the results."""
        error = self.error(row)
        if error is None:
            return
        reason = reason_of(error)
        self.listed.append(
            Failure(row.attacker, row.dataset, row.gender, row.scenario, row.file, reason)
        )
        logger.warning("%s: %s has no scores: %s", row.list_name, row.attacker, reason)
        if not isinstance(error, SpkverError):
            logger.debug("%s", row.attacker, exc_info=error)


def reason_of(error: Exception) -> str:
    """Return the message of an error in one line, with its type unless it is an `SpkverError`."""
    text = str(error) if isinstance(error, SpkverError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
