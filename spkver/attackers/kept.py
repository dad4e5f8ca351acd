"""Results of the steps of a training that survive whatever ends the process: each is worked out once.

Steps of a training have no files of their own in the folder of an attacker: they are kept in journals in the folder of
unfinished work, and go with it when the attacker is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from spkbase.runs import Journal, resumed_map
from spkbase.showing import one_line

Item = TypeVar("Item")
Arrays = dict[str, NDArray]


@one_line
@dataclass(frozen=True)
class Kept:
    """Where the steps of a training are kept.

    Attributes
    ----------
    folder : Path or None
        Without it nothing is kept.
    fingerprint : str
        Of all that the training depends on.
    """

    folder: Path | None = None
    fingerprint: str = ""

    def below(self, name: str) -> Kept:
        """Return the same in a folder below, for a step that has several of one kind."""
        return Kept(None if self.folder is None else self.folder / name, self.fingerprint)

    def arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a step by name: those that an earlier run has worked out, or else those of `make`."""
        if self.folder is None:
            return make()
        with Journal(self.folder / f"{name}.journal", self.fingerprint, total=1) as journal:
            if not len(journal):
                journal.append(make())
            return journal.read(0)[0]

    def map(
        self, name: str, function: Callable[[Item], Arrays], items: Sequence[Item], **options: Any
    ) -> Iterator[Arrays]:
        """Apply a function to items in order, as `spkbase.runs.resumed_map`; it gives arrays by name."""
        journal = None if self.folder is None else self.folder / f"{name}.journal"
        return resumed_map(
            function,
            items,
            journal=journal,
            fingerprint=self.fingerprint,
            pack=lambda arrays: (arrays, None),
            unpack=lambda arrays, _: arrays,
            **options,
        )
