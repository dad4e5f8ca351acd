"""What adapted scores owe to the tested speakers, and what several draws of the enrolment give, of CAM++.

    python -m benchmarks.adaptation disjoint DATA RUN [SPLITS]
    python -m benchmarks.adaptation strangers DATA RUN [SPLITS]
    python -m benchmarks.adaptation enrolment DATA RUN

RUN is the output of ``spkver voiceprivacy --data DATA``, whose anonymised speech is read. Scores are the cosine,
`adapted_cosine_scores` by a single test or the whole list, `enrolled_plda_scores` and `self_trained_scores`; EERs, in
percent, are those of the trials of both sexes together.

`disjoint`: the enrolled speakers of each sex are dealt into halves, SPLITS times (20). Each trial of a model and a
recording of one half is scored by the cosine, and adapted with means and spread of

    whole list      the same half, without the trial's own model and recording, as `campplus-adapted` does
    single test     the enrolled of the same half alone, as `campplus-single-test` does
    disjoint        the enrolled and the tested of the other half: nobody in them is in the trial
    disjoint single the enrolled of the other half alone

in the lists of each sex; the EER is the mean over the splits, with the standard error of the difference of disjoint and
whole list. `strangers`: lazy-informed, one half of the speakers of each sex is enrolled with all draws of the run, and
everybody is tested; EER with impostors who are enrolled and with those who are not. `enrolment`: lazy-informed, each
model is enrolled with K of the draws of a run with several, and the EER is the mean over all choices of K draws and
over the draws of the trials.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.metrics import eer
from spkbase.runs import Run
from spkver.attackers import ExtractorSource, SpeechFiles, select
from spkver.attackers.protocol import Vectors
from spkver.backend import (
    Sessions,
    adapted_cosine_scores,
    cosine_of_sessions,
    enrolled_plda_scores,
    self_trained_scores,
)
from spkver.datadir import DataDir, read_datadir
from spkver.extractors import open_extractor

WAYS = (
    "cosine",
    "single test",
    "disjoint single",
    "enrolled PLDA",
    "whole list",
    "self-trained",
    "disjoint",
)


@dataclass(frozen=True)
class Side:
    """Enrolled and tested vectors of one sex, with the names of who speaks."""

    enrolled: NDArray[np.float64]
    models: NDArray[np.str_]
    tested: NDArray[np.float64]
    owners: NDArray[np.str_]

    def of(self, speakers: set[str]) -> Side:
        """Return those of some speakers."""
        rows, heard = (np.isin(names, list(speakers)) for names in (self.models, self.owners))
        return Side(self.enrolled[rows], self.models[rows], self.tested[heard], self.owners[heard])


def main(study: str, data: str, run: str, splits: str = "20") -> None:
    with tempfile.TemporaryDirectory() as place:
        work, source, made = (
            Run(Path(place), 1, quiet=True),
            ExtractorSource(open_extractor("campplus")),
            Path(run, "data"),
        )
        speech = SpeechFiles(work, work)

        def vectors(directory: DataDir) -> Embeddings:
            speech.read(source, directory)
            return speech.extracted(source)(directory)

        for path in sorted(Path(data).glob("*_enrolls")):
            name = path.name.removesuffix("_enrolls")
            (anonymised,) = (one for one in made.glob(f"{name}_enrolls_*") if "-" not in one.name)
            suffix = anonymised.name.removeprefix(path.name)
            if study == "enrolment":
                report_draws(vectors, made, name, suffix)
                continue
            if study == "strangers":
                report_strangers(vectors, made, name, suffix, int(splits))
                continue
            for enrolment in (anonymised, path):
                found = [
                    side_of(vectors, enrolment, made / f"{name}_trials_{sex}{suffix}")
                    for sex in "fm"
                ]
                report_halves(
                    name, "original" if enrolment is path else "anonymised", found, int(splits)
                )


def report_draws(vectors: Vectors, made: Path, name: str, suffix: str) -> None:
    """Print the EERs by the number of draws of the enrolment."""
    enrolled, tested = (
        [
            path.name.removeprefix(f"{name}_{side}")
            for path in draws_of(made, f"{name}_{side}{suffix}")
        ]
        for side in ("enrolls", "trials_f")
    )
    sides = {
        place: side_of(
            vectors,
            made / f"{name}_enrolls{place[1]}",
            made / f"{name}_trials_{place[0]}{place[2]}",
        )
        for place in product("fm", enrolled, tested)
    }
    for count in range(1, len(enrolled) + 1):
        found = []
        for some, other in product(combinations(enrolled, count), tested):
            joined = [joined_of([sides[sex, one, other] for one in some]) for sex in "fm"]
            found.append(rates([scores_of(side, None) for side in joined]))
        means = (f"{way} {np.mean([row[way] for row in found]):.1f}" for way in found[0])
        print(f"{name:<12} {count} draws:", *means)


def draws_of(made: Path, name: str) -> list[Path]:
    """Return the anonymised versions of a data directory, without what was derived from them."""
    return [
        path
        for path in sorted(made.glob(f"{name}*"))
        if re.fullmatch(r"(-draw\d+)?", path.name.removeprefix(name))
    ]


def report_strangers(vectors: Vectors, made: Path, name: str, suffix: str, splits: int) -> None:
    """Print the EERs with impostors who are enrolled and with strangers, where half of the speakers are enrolled."""
    draws = draws_of(made, f"{name}_enrolls{suffix}")
    sides = [
        joined_of([side_of(vectors, one, made / f"{name}_trials_{sex}{suffix}") for one in draws])
        for sex in "fm"
    ]
    found: dict[str, list[dict[str, float]]] = {"enrolled": [], "strangers": []}
    for split in range(splits):
        scored = []
        for number, side in enumerate(sides):
            half = np.random.default_rng([split, number]).permutation(sorted(set(side.models)))
            kept = np.isin(side.models, half[: len(half) // 2])
            enrolled = Side(side.enrolled[kept], side.models[kept], side.tested, side.owners)
            known = np.tile(np.isin(side.owners, enrolled.models), len(set(enrolled.models)))
            scored.append((scores_of(enrolled, None), known))
        for kind, rows in found.items():
            parts = [
                {
                    way: values[one["is_target"] | (known == (kind == "enrolled"))]
                    for way, values in one.items()
                }
                for one, known in scored
            ]
            rows.append(rates(parts))
    for kind, rows in found.items():
        print(
            f"{name:<12} {kind:<9}",
            *(f"{way} {np.mean([row[way] for row in rows]):.1f}" for way in rows[0]),
        )


def joined_of(sides: list[Side]) -> Side:
    """Return one side with all enrolled vectors of several, which test the same."""
    enrolled, models = (
        np.concatenate([getattr(side, name) for side in sides]) for name in ("enrolled", "models")
    )
    return Side(enrolled, models, sides[0].tested, sides[0].owners)


def side_of(vectors: Vectors, enrolment: Path, tested: Path) -> Side:
    """Return the vectors of the models and the recordings of a list."""
    first, second = read_datadir(enrolment), read_datadir(tested)
    assert second.trials is not None
    models = set(second.trials.model_ids.tolist())
    names = [name for name in first.enrolls or first.recordings if first.speakers[name] in models]
    found = [vectors(select(first, names)), vectors(second)]
    rows, who = (
        [np.asarray(one.vectors) for one in found],
        [one.speakers.astype(str) for one in found],
    )
    return Side(rows[0], who[0], rows[1], who[1])


def report_halves(name: str, enrolment: str, sides: list[Side], splits: int) -> None:
    """Print the EERs of the whole lists, and of halves."""
    sizes = [len(set(side.models)) for side in sides]
    whole = rates([scores_of(side, None) for side in sides])
    found = []
    for split in range(splits):
        scored = []
        for number, side in enumerate(sides):
            order = (
                np.random.default_rng([split, number])
                .permutation(sorted(set(side.models)))
                .tolist()
            )
            halves = set(order[: len(order) // 2]), set(order[len(order) // 2 :])
            scored += [
                scores_of(side.of(one), side.of(other)) for one, other in (halves, halves[::-1])
            ]
        found.append(rates(scored))
    means = {way: float(np.mean([row[way] for row in found])) for way in WAYS}
    error = np.std([row["disjoint"] - row["whole list"] for row in found], ddof=1) / np.sqrt(splits)
    for kind, parts, of_way, note in (
        ("all", 1, whole, ""),
        ("halves", 2, means, f" (s.e. {error:.2f})"),
    ):
        speakers = "+".join(f"{size / parts:g}" for size in sizes)
        shown = (f"{way} {of_way[way]:.1f}" for way in WAYS if way in of_way)
        print(f"{name:<12} {enrolment:<10} {speakers:>10} {kind:<6}", *shown, note)


def scores_of(side: Side, others: Side | None) -> dict[str, NDArray[np.float64]]:
    """Return scores of all models against all tests by each way, and which are of one speaker."""
    sessions, names = Sessions.named(side.enrolled, side.models)
    pairs = np.divmod(np.arange(len(names) * len(side.tested)), len(side.tested))
    found = {
        "cosine": cosine_of_sessions(sessions, side.tested, *pairs),
        "single test": adapted_cosine_scores(sessions, side.tested, *pairs, whole_list=False),
        "enrolled PLDA": enrolled_plda_scores(sessions, side.tested, *pairs),
        "whole list": adapted_cosine_scores(sessions, side.tested, *pairs),
        "self-trained": self_trained_scores(sessions, side.tested, *pairs),
        "is_target": (names[:, None] == side.owners).ravel(),
    }
    if others is None:
        return found
    centre = Sessions.named(others.enrolled, others.models)[0].means.mean(axis=0)
    mean = (others.tested.sum(axis=0) + centre) / (len(others.tested) + 1)
    for way, moved in (("disjoint single", side.tested), ("disjoint", side.tested - mean + centre)):
        rows = []
        for name in names:  # beside the other half one model alone, whose own part is left out
            own = side.models == name
            vectors = np.concatenate([side.enrolled[own], others.enrolled])
            both, codes = Sessions.named(vectors, np.concatenate([side.models[own], others.models]))
            code = np.full(len(moved), np.searchsorted(codes.astype(str), name))
            rows.append(
                adapted_cosine_scores(both, moved, code, np.arange(len(moved)), whole_list=False)
            )
        found[way] = np.concatenate(rows)
    return found


def rates(scored: list[dict[str, NDArray[np.float64]]]) -> dict[str, float]:
    """Return the EER of each way that all lists have, in percent."""
    same = np.concatenate([lists["is_target"] for lists in scored])
    values = {
        way: np.concatenate([lists[way] for lists in scored]) for way in WAYS if way in scored[0]
    }
    return {way: 100 * float(eer(found[same], found[~same])) for way, found in values.items()}


if __name__ == "__main__":
    main(*sys.argv[1:5])
