"""Attackers: train them on a data directory, keep each as one folder, score any list of trials."""

from spkver.attackers.attack import check_trials, score, score_checked
from spkver.attackers.attacker import Attacker, load_attacker, save_attacker
from spkver.attackers.config import (
    KINDS,
    PRESETS,
    AttackerConfig,
    NormConfig,
    ProjectionConfig,
    TrainingConfig,
    attacker_config,
)
from spkver.attackers.kept import Kept
from spkver.attackers.training import check_training, merge_versions, train_attacker, train_attackers
from spkver.attackers.workplace import Workplace

__all__ = [
    "KINDS",
    "PRESETS",
    "Attacker",
    "AttackerConfig",
    "Kept",
    "NormConfig",
    "ProjectionConfig",
    "TrainingConfig",
    "Workplace",
    "attacker_config",
    "check_training",
    "check_trials",
    "load_attacker",
    "merge_versions",
    "save_attacker",
    "score",
    "score_checked",
    "train_attacker",
    "train_attackers",
]
