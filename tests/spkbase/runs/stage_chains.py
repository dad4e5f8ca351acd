"""Three stages on top of each other, which note when they are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spkbase.files.atomic import write_text
from spkbase.runs import Depends, Draft, Run, Stage


class Chain:
    """The stage "read" takes a file of numbers, "double" multiplies them, "sum" adds them; `made` lists what ran."""

    def __init__(self, run: Run, source: Path, *, factor: int = 2) -> None:
        self.run, self.made = run, []  # type: ignore[var-annotated]
        read = self.stage("read", source.read_text, sources={"numbers": source}, libraries=["numpy", "soundfile"])
        run.stamp("between", Depends(factor, after=[read], libraries=["numpy"]))
        double = self.stage(
            "double",
            lambda: " ".join(str(factor * int(one)) for one in read.value.split()),
            after=["between"],
            libraries=["scipy"],
        )
        self.last = self.stage("sum", lambda: str(sum(map(int, double.value.split()))), after=[double])

    def stage(self, name: str, work: Callable[[], str], **options: object) -> Stage[str]:
        def make(draft: Draft) -> None:
            self.made.append(name)
            write_text(draft.path, work())

        return self.run.stage(name, f"{name}.txt", make=make, read=Path.read_text, depends=Depends(**options))  # type: ignore[arg-type]


def complete(output: Path, source: Path, *, factor: int = 2, **options: object) -> list[str]:
    """Declare the chain in a new run and complete it; returns what was made."""
    output.mkdir(exist_ok=True)
    chain = Chain(Run(output, **options), source, factor=factor)  # type: ignore[arg-type]
    if chain.run.complete():
        assert chain.last.value == str(factor * sum(map(int, source.read_text().split())))
    return chain.made
