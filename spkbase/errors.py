"""The project's errors: every bad input raises one of them, with the place and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
Name = TypeVar("Name")
Value = TypeVar("Value")
Error = TypeVar("Error", bound="DataError")

_MAX_ALIKE = 3
_MAX_SHOWN = 20


def few(names: Collection[Any], show: Callable[[Any], str] = str, most: int = 3) -> str:
    """List the first few names for an error message; the names of a set or mapping are sorted.

    Examples
    --------
    >>> few(["anna", "bert"]), few(["a", "b", "c", "d"], repr)
    ('anna, bert', "'a', 'b', 'c', ...")
    """
    listed = names if isinstance(names, Sequence) else sorted(names)
    shown = list(map(show, listed[:most]))
    if len(listed) > most:
        shown.append("...")
    return ", ".join(shown)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    Examples
    --------
    >>> counted(1, "trial"), counted(2, "trial")
    ('1 trial', '2 trials')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


class SpkverError(Exception):
    """Base class of all errors that a user can correct. The command line prints it and exits with status 2."""


class DataError(SpkverError, ValueError):
    """An input is not as expected.

    Parameters
    ----------
    text : str
        What was expected and what was found.
    file : path, optional
        The file.
    line : int, optional
        The line, from 1.
    remedy : str, optional
        How to correct it.

    Attributes
    ----------
    parts : tuple of DataError
        The single problems, if the error reports several.
    subjects : tuple of str
        Kinds of subjects that its text names, see `attributed`.
    """

    parts: tuple[DataError, ...] = ()
    subjects: tuple[str, ...] = ()

    def __init__(
        self,
        text: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.text = text
        self.file = file
        self.line = line
        self.remedy = remedy
        super().__init__(self._message())

    def changed(self: Error, text: str, **changes: Any) -> Error:
        """Return an error of the same class with another text; file, line and remedy are the same unless given."""
        changed = type(self)(
            text, **{"file": self.file, "line": self.line, "remedy": self.remedy, **changes}
        )
        changed.subjects = self.subjects
        return changed

    def attributed(self: Error, kind: str, name: str) -> Error:
        """Return the error with a subject before its text, such as "attacker 'mine': "; unchanged if it has one of this
        kind.

        Parameters
        ----------
        kind, name : str
            Subject of the error, for example "attacker" and "mine". An error has at most one subject of each kind.
        """
        if kind in self.subjects:
            return self
        attributed = self.changed(f"{kind} {name!r}: {self.text}")
        attributed.subjects = (kind, *self.subjects)
        return attributed

    def _message(self) -> str:
        message = self.text
        if self.file is not None and self.line is not None:
            message = f"{self.file}:{self.line}: {message}"
        elif self.file is not None:
            message = f"{self.file}: {message}"
        if self.remedy is not None:
            message += f" ({self.remedy})"
        return message

    def __reduce__(self):  # type: ignore[no-untyped-def]  # pickling from a worker must keep keyword-only arguments
        state = {"subjects": self.subjects, "parts": self.parts}
        return (
            partial(type(self), file=self.file, line=self.line, remedy=self.remedy),
            (self.text,),
            state,
        )


class ConfigError(DataError):
    """A configuration key or value is unknown or out of its range."""


@contextmanager
def errors_of(
    file: str | Path | None, *, remedy: str | None = None, before: str = ""
) -> Iterator[None]:
    """Add the file and the remedy to errors of the block that lack them, and a prefix to their texts; errors about
    configuration keys are unchanged.
    """
    try:
        yield
    except ConfigError:
        raise
    except DataError as error:
        if not before and (error.file is not None or not file):
            raise
        if error.file is not None:
            file = error.file
        raise error.changed(
            before + error.text, file=file or None, remedy=error.remedy or remedy
        ) from error


def caught(item: Item, *, function: Callable[[Item], Value]) -> Value | DataError:
    """Return the result of a function for an item, or the error it raises, so that other items are processed too."""
    try:
        return function(item)
    except DataError as error:
        return error


class WorkerError(SpkverError):
    """A worker process died, usually because it was killed for lack of memory."""


class Problems:
    """Collects all problems of a list, so that the user can correct them at once.

    Examples
    --------
    >>> problems = Problems("trials.txt")
    >>> problems.add("unknown model m9", line=3)
    >>> problems.raise_if_any()
    Traceback (most recent call last):
      ...
    spkbase.errors.DataError: trials.txt:3: unknown model m9
    """

    def __init__(self, file: str | Path | None = None) -> None:
        self.file = file
        self.errors: list[DataError] = []

    def add(
        self,
        text: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        """Note a problem; `file` defaults to the file of the list."""
        if file is None:
            file = self.file
        self.errors.append(DataError(text, file=file, line=line, remedy=remedy))

    def note(self, error: DataError) -> None:
        """Note a caught error, or each of the problems that it reports."""
        self.errors.extend(error.parts or [error])

    @contextmanager
    def noted(self, before: str = "") -> Iterator[None]:
        """Note an error of the block, with a prefix, and continue after the block."""
        try:
            yield
        except DataError as error:
            for part in error.parts or [error]:
                self.errors.append(part.changed(before + part.text))

    def sift(self, outcomes: Iterable[tuple[Name, Value | DataError]]) -> dict[Name, Value]:
        """Note the errors among the named outcomes of `caught`; return the others."""
        good = {}
        for name, outcome in outcomes:
            if isinstance(outcome, DataError):
                self.note(outcome)
            else:
                good[name] = outcome
        return good

    def raise_if_any(self, kind: type[DataError] | None = None) -> None:
        """Raise one DataError (or another error class) with all problems, of which the first 20 are printed.

        The same error in more than a few files counts as one problem, which names the first files.
        """
        errors = _by_cause(self.errors)
        if not errors:
            return
        if len(errors) == 1:
            error = errors[0]
            if kind is None:
                raise error
            raise kind(error.text, file=error.file, line=error.line, remedy=error.remedy)
        lines = [f"  {error}" for error in errors[:_MAX_SHOWN]]
        if len(errors) > _MAX_SHOWN:
            lines.append(f"  ... and {len(errors) - _MAX_SHOWN} more")
        several = (kind or DataError)("\n".join([f"{len(errors)} problems:", *lines]))
        several.parts = tuple(errors)
        raise several


def _by_cause(errors: Sequence[DataError]) -> list[DataError]:
    """Merge errors with equal texts about more than `_MAX_ALIKE` files into one, at the position of the first."""
    files: dict[tuple[str, str | None], dict[str, DataError]] = {}
    for error in errors:
        if error.file is not None:
            files.setdefault((error.text, error.remedy), {}).setdefault(str(error.file), error)
    joined: dict[tuple[str, str | None], DataError] = {}
    for cause, of_files in files.items():
        if len(of_files) > _MAX_ALIKE:
            text = f"{cause[0]}, in {len(of_files)} files: {few(list(of_files))}"
            joined[cause] = DataError(text, remedy=cause[1])
    reported = {}
    for error in errors:
        if error.file is not None:
            error = joined.get((error.text, error.remedy), error)
        reported[id(error)] = error
    return list(reported.values())
