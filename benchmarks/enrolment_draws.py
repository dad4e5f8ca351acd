"""What several draws of the enrolment give an attacker: ``python -m benchmarks.enrolment_draws DATA RUN``.

RUN is the output of ``spkver voiceprivacy --data DATA`` with the attacker ``campplus``, whose vectors are read, and
with several draws of the enrolment. Lazy-informed, each model is enrolled with K of the draws: by the cosine to the
mean over draws and recordings, and by `adapted_cosine_scores` with all of them as sessions, single-test and whole-list.
The EER, in percent, of the trials of both sexes together is the mean over all choices of K draws and over the draws of
the trials.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from itertools import combinations, product
from pathlib import Path

import numpy as np

from benchmarks.disjoint_speakers import Side, rates, scores_of, side_of
from spkver.attackers import VectorStore
from spkver.extractors import open_extractor

WAYS = ("cosine", "single test", "whole list")


def main(data: str, run: str) -> None:
    with tempfile.TemporaryDirectory() as copy:
        vectors = shutil.copytree(Path(run) / "work" / "vectors", Path(copy) / "vectors")
        store = VectorStore(vectors, open_extractor("campplus"), 1)
        print(f"{'set':<12} {'draws':>5}", *(f"{way:>12}" for way in WAYS))
        for path in sorted(Path(data).glob("*_enrolls")):
            name = path.name.removesuffix("_enrolls")
            (first,) = (one for one in Path(run, "data").glob(f"{name}_enrolls_*") if "-" not in one.name)
            suffix = first.name.removeprefix(path.name)
            enrolled, tested = (
                [f"{suffix}{end}" for end in _ends(Path(run, "data"), f"{name}_{side}{suffix}")]
                for side in ("enrolls", "trials_f")
            )
            sides = {
                (sex, one, other): side_of(
                    store, first.with_name(path.name + one), first.with_name(f"{name}_{sex}{other}")
                )
                for sex, one, other in product(("trials_f", "trials_m"), enrolled, tested)
            }
            for count in range(1, len(enrolled) + 1):
                found = [
                    rates(
                        [
                            scores_of(_joined([sides[sex, one, other] for one in some]), None)
                            for sex in ("trials_f", "trials_m")
                        ]
                    )
                    for some, other in product(combinations(enrolled, count), tested)
                ]
                means = (f"{np.mean([row[way] for row in found]):12.1f}" for way in WAYS)
                print(f"{name:<12} {count:>5}", *means)


def _ends(folder: Path, name: str) -> list[str]:
    """What the names of the draws of a directory end with, the first draw with nothing."""
    return ["", *sorted(path.name.removeprefix(name) for path in folder.glob(f"{name}-draw?"))]


def _joined(sides: list[Side]) -> Side:
    """Return one side with all enrolled vectors of several, which test the same."""
    enrolled, models = (np.concatenate([getattr(side, name) for side in sides]) for name in ("enrolled", "models"))
    return Side(enrolled, models, sides[0].tested, sides[0].owners)


if __name__ == "__main__":
    main(*sys.argv[1:3])
