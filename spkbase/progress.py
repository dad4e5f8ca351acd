"""Progress of long work: a bar on a terminal and in a notebook, a line every half minute elsewhere.

`progress` wraps the loops of all packages. The outermost loop has the bar; loops within it fill the part of its current
item. Without a terminal, lines go to the log, or to standard error if logging is not set up. A function decorated by
`verbosely` shows nothing when it is called with ``verbose=False``. While no loop shows progress, a command uses
`at_work` to report that it is running.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from itertools import repeat
from math import inf
from typing import Any, ParamSpec, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

LEVEL = 25
"""Level of log lines on progress, between information and warnings: all commands show them."""

logger = logging.getLogger(__name__)
logging.addLevelName(LEVEL, "PROGRESS")

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BETWEEN_TICKS = 1.0
_BAR: Any = None  # the bar of the outermost loop
_PART = 0.0, 1.0  # start and end of the part of the bar that an inner loop would fill
_VERBOSE: ContextVar[bool] = ContextVar("verbose", default=True)


class _LineFile(io.StringIO):
    """A file for tqdm that passes its lines on when there is no terminal."""

    def write(self, text: str) -> int:
        if text.strip():
            _tell(text.strip())
        return len(text)


def _tell(line: str) -> None:
    """Log a line, or write it to standard error if no handler listens to the log."""
    if logger.hasHandlers():
        logger.log(LEVEL, line)
    else:
        print(line, file=sys.stderr, flush=True)  # noqa: T201


def progress(
    items: Iterable[Item],
    *,
    description: str,
    total: float | None = None,
    sizes: Sequence[float] | None = None,
) -> Generator[Item, None, None]:
    """Yield items; show a bar with the time left on a terminal or in a notebook, else a line every half minute.

    Progress counts the items out of `total`, or the `sizes` of the items. The outermost loop has the bar; a loop within
    it fills the part of the current item.
    """
    global _BAR, _PART
    if not _VERBOSE.get():
        yield from items
        return
    bar = _BAR
    is_outer = bar is None
    low, high = (0.0, 1.0) if is_outer else _PART
    done = 0.0
    postfix = "" if is_outer else description
    counted: Iterable[float] = repeat(1)
    if sizes is not None:
        total = sum(sizes)
        counted = sizes
    with ExitStack() as stack:
        if is_outer:
            bar = stack.enter_context(closing(_new_bar(description)))
            stack.enter_context(_repeated(bar.tick, _SECONDS_BETWEEN_TICKS))
            _BAR = bar
        stack.callback(_end, bar, (low, high), is_outer=is_outer)
        for item, size in zip(items, counted, strict=sizes is not None):
            start, end = (
                low + (high - low) * min(number / (total or inf), 1)
                for number in (done, done + size)
            )
            _PART = start, end
            yield item
            done += size
            bar.set_postfix_str(postfix, refresh=False)
            bar.update(max(end - bar.n, 0.0))  # a second inner loop must not move the bar back


def _end(bar: Any, part: tuple[float, float], *, is_outer: bool) -> None:
    """Return the part of the bar to the enclosing loop, or close the bar, unless a later loop uses it.

    A loop that ended in an error is only closed when the error is discarded.
    """
    global _BAR, _PART
    if _BAR is bar:
        _PART = part
        if is_outer:
            _BAR = None


def verbosely(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let the argument `verbose` of a function decide whether loops show their progress while it runs."""

    @wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        token = _VERBOSE.set(bool(named.get("verbose", True)) and _VERBOSE.get())
        try:
            return function(*arguments, **named)
        finally:
            _VERBOSE.reset(token)

    return run


def hide() -> None:
    """Hide the progress of loops from now on, in this thread."""
    _VERBOSE.set(False)


@contextmanager
def at_work(name: str) -> Iterator[None]:
    """Report every half minute that the work of this block continues, unless a loop shows its progress."""
    started = time.monotonic()

    def tell() -> None:
        if _BAR is None:
            minutes, seconds = divmod(round(time.monotonic() - started), 60)
            _tell(f"{name}: at work for {minutes:02d}:{seconds:02d}")

    with _repeated(tell, _SECONDS_BETWEEN_LINES):
        yield


@contextmanager
def _repeated(act: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call an action at regular intervals, in a thread, until the block ends."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            act()

    thread = threading.Thread(target=run, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _new_bar(description: str) -> Any:
    """Return the bar of an outermost loop, which writes lines if there is no terminal."""
    wait = 0.5
    file: Any = sys.stderr
    bar = "|{bar}|"
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        wait = _SECONDS_BETWEEN_LINES
        file = _LineFile()
        bar = "after"
    return _bar_kind()(
        desc=description,
        total=1,
        leave=False,
        bar_format="{desc}{postfix}: {percentage:.0f} % " + bar + " {elapsed}, {remaining} left",
        file=file,
        delay=wait,
        mininterval=wait,
        miniters=0,
        smoothing=0,
    )


@cache
def _bar_kind() -> Any:
    """Return the kind of progress bar, whose remaining time does not grow during a long item."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]
        rate = 0.0

        def tick(self) -> None:
            """Show that time passes in a long item."""
            now = time.time()
            if now - self.last_print_t >= max(self.mininterval, _SECONDS_BETWEEN_TICKS):
                self.last_print_t = now
                self.refresh()

        def update(self, n: float | None = 1) -> bool | None:
            """Count items, and compute the rate from the time until now, in which they were done."""
            if n:
                self.rate = (self.n + n) / max(super().format_dict["elapsed"], 1e-9)
            return super().update(n)

        @property
        def format_dict(self) -> dict[str, Any]:
            """The values shown; the rate is that of the last update."""
            return {**super().format_dict, "rate": self.rate or None}

    return Bar
