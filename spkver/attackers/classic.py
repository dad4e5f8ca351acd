"""The built-in attackers as an evaluation sees them: trained together, with what they share in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.trials import Scores
from spkbase.showing import one_line
from spkver.attackers.attack import check_trials, score_checked
from spkver.attackers.attacker import TrainedAttacker
from spkver.attackers.config import AttackerConfig
from spkver.attackers.kept import Kept
from spkver.attackers.protocol import Attack, Scorer
from spkver.attackers.training import train_attackers
from spkver.attackers.workplace import Workplace
from spkver.datadir import DataDir


@one_line
@dataclass
class Classics:
    """Built-in attackers that are trained on the same speech, and score the same trials one after the other.

    Attributes
    ----------
    configs : sequence of AttackerConfig
    folder : Path
        Attackers go to ``folder/<training set>/<name>``.
    work : Workplace
        Folder of features and statistics, workers, device.
    seed : int
    force : bool
        Train again where finished attackers are there.
    """

    configs: Sequence[AttackerConfig]
    folder: Path
    work: Workplace
    seed: int = 0
    force: bool = False
    _trained: dict[tuple[DataDir, ...], dict[str, TrainedAttacker]] = field(default_factory=dict, repr=False)
    _failed: dict[tuple[DataDir, ...], dict[str, Exception]] = field(default_factory=dict, repr=False)
    _latest: tuple[str, tuple[Any, ...]] | None = field(default=None, repr=False)

    def attackers(self) -> list[ClassicAttacker]:
        """Return each of them as an attacker of its own."""
        return [ClassicAttacker(config, self) for config in self.configs]

    def trained(self, training: tuple[DataDir, ...]) -> dict[str, TrainedAttacker]:
        """Return all of them that can be trained on this speech."""
        if training not in self._trained:
            folder, failed = self.folder / training[0].name, self._failed.setdefault(training, {})
            self._trained[training] = train_attackers(
                training, self.configs, folder, seed=self.seed, work=self._fresh(), force=self.force, failed=failed
            )
        return self._trained[training]

    def one_trained(self, name: str, training: tuple[DataDir, ...]) -> TrainedAttacker:
        """Return one of them, trained on this speech; what went wrong with it, and with it alone, is raised."""
        trained = self.trained(training)
        if name not in trained:
            raise self._failed[training][name]
        return trained[name]

    def prepared(self, attack: Attack) -> tuple[Any, ...]:
        """Return where to work, and what enrols and is tested; of the latest list alone, whose frames may be large."""
        if self._latest is None or self._latest[0] != attack.name:
            self._latest = None
            attackers = self.trained(attack.training)
            checked = check_trials(attackers, attack.enrolled, attack.tested, attack.trials, jobs=self.work.jobs)
            self._latest = attack.name, (self._fresh(), *checked)
        return self._latest[1]

    def _fresh(self) -> Workplace:
        """Return the same place, with nothing in its memory."""
        return Workplace(self.work.folder, self.work.jobs, self.work.device)


@dataclass(frozen=True)
class ClassicAttacker:
    """One of them; see `spkver.attackers.Attacker`."""

    config: AttackerConfig
    shared: Classics

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def record(self, attack: Attack) -> AttackerConfig:
        """Return its configuration."""
        return self.config

    def lacks(self, attack: Attack) -> str:
        """Return nothing: it serves all trials."""
        return ""

    def learn(self, training: tuple[DataDir, ...]) -> Scorer:
        """Train it, and the others with it."""
        attacker = self.shared.one_trained(self.name, training)

        def score(attack: Attack, kept: Kept) -> Scores:
            workplace, models, tested = self.shared.prepared(attack)
            sides = (attack.enrolled, models), (attack.tested, tested)
            return score_checked(attacker, workplace, *sides, attack.trials, kept=kept)

        return score
