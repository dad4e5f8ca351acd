"""Attackers by vectors: an extractor, and a backend that scores what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evaluation.trials import Scores
from spkbase.errors import DataError
from spkbase.showing import one_line
from spkver.attackers.attack import match_trials
from spkver.attackers.kept import Kept
from spkver.attackers.protocol import Attack, Place, Scorer
from spkver.attackers.training import merge_versions
from spkver.attackers.vector_store import VectorStore
from spkver.backend import train_chain
from spkver.datadir import DataDir
from spkver.extractors import Extractor


@one_line
@dataclass(frozen=True)
class VectorAttacker:
    """An attacker by vectors; see `spkver.attackers.Attacker`."""

    name: str
    extractor: Extractor = field(repr=False)
    place: Place = field(repr=False)

    @cached_property
    def store(self) -> VectorStore:
        """The vectors, which attackers of the same extractor share."""
        return VectorStore(self.place.work / "vectors", self.extractor, self.place.jobs)

    def record(self, attack: Attack) -> Any:
        """Return what its vectors depend on."""
        return {"extractor": dict(self.extractor.extraction.record)}

    def lacks(self, attack: Attack) -> str:
        """Return nothing: it serves all trials."""
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Train the backend."""
        backend = train_chain(self.store.vectors(merge_versions(training)), "cosine", seed=self.place.seed)

        def score(attack: Attack, kept: Kept) -> Scores:
            models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
            owners = dict(zip(models.segments, models.models, strict=True))
            try:
                enrolled = self.store.vectors(attack.enrolment, owners)
                tests = self.store.vectors(attack.tested, {name: attack.tested.speakers[name] for name in tested})
                return backend.score(enrolled, tests, attack.trials)
            except DataError as error:
                text = f"attacker {self.name!r}, {attack.name}: {error.text}"
                raise DataError(text, file=error.file, remedy=error.remedy) from error

        return score
