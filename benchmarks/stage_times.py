"""When the stages of a run were at work, from the run's log: "STAGE: started" and "STAGE: 12.3 s"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]+ (?:spkbase|spkver)\S*: (.*)$")
_END = re.compile(r"^(.+): (\d+\.\d) s$")
_START = re.compile(r"^(.+): started$")
_FIRST = re.compile(r"^spkver \S+: ")  # the first line of a run; a log may hold several runs

START, BETWEEN, END = "start of Python", "between stages", "end"


@dataclass(frozen=True)
class Span:
    """A time in which one stage was at work; `start` and `stop` in seconds since the epoch."""

    name: str
    start: float
    stop: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.stop - self.start


def stage_spans(log: Path, started: float, ended: float) -> list[Span]:
    """Divide the time of a run among its stages, without gaps or overlaps.

    Where a stage asks for another one while it runs, the time is the inner one's. What lies before the first line of
    the log, between stages and after the last one has names of its own.

    Parameters
    ----------
    log : path
        `run.log`; the last run in it.
    started, ended : float [unit=s]
        Of the process, since the epoch.
    """
    first, whole = _read(log.read_text(encoding="utf-8").splitlines())
    first = min(max(first, started), ended)
    last = max((span.stop for span in whole), default=first)
    spans = [Span(START, started, first), *_divide(whole, first, last), Span(END, last, ended)]
    return [span for span in spans if span.stop > span.start]


def _read(lines: Iterable[str]) -> tuple[float, list[Span]]:
    """Time of the last run's first line, and its stages, which may enclose one another."""
    first = float("nan")
    stages: list[Span] = []
    open_stages: dict[str, float] = {}
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        time = datetime.strptime(match.group(1), "%Y-%m-%d %H:%M:%S,%f").timestamp()
        text = match.group(2)
        if _FIRST.match(text):
            first, stages, open_stages = time, [], {}
        elif start := _START.match(text):
            open_stages[start.group(1)] = time
        elif end := _END.match(text):
            begun = open_stages.pop(end.group(1), time - float(end.group(2)))
            stages.append(Span(end.group(1), begun, time))
    return first, stages


def _divide(stages: list[Span], first: float, last: float) -> list[Span]:
    """Give each moment to the innermost of the stages at work, the shortest: starts may be rounded."""
    bounds = sorted({first, last, *(span.start for span in stages), *(span.stop for span in stages)})
    spans: list[Span] = []
    for start, stop in pairwise(bound for bound in bounds if first <= bound <= last):
        at_work = [span for span in stages if span.start <= start and span.stop >= stop]
        name = min(at_work, key=lambda span: span.seconds).name if at_work else BETWEEN
        if spans and spans[-1].name == name:
            spans[-1] = Span(name, spans[-1].start, stop)
        else:
            spans.append(Span(name, start, stop))
    return spans
