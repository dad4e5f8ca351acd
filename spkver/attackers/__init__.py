"""Attackers: trained on data directories, kept as one folder each; they score any list of trials.

`train_attacker` makes a `TrainedAttacker` of an `AttackerConfig` (presets by name), `score` gives `Scores`.
"""

from spkver.attackers.attack import TrainedAttacker, check_trials, load_attacker, save_attacker, score, score_checked
from spkver.attackers.catalogue import (
    CATALOGUE,
    COSTS,
    DEFAULT,
    Row,
    absent_attackers,
    catalogue_name,
    cost_of,
    default_attackers,
    find_row,
    known_attackers,
)
from spkver.attackers.config import KINDS, PRESETS, AttackerConfig, Context, attacker_config
from spkver.attackers.doors import is_outside, open_door, short_name
from spkver.attackers.folds import Fold, background_folds, cut_directory, deal_speakers, needs_pieces, with_pieces
from spkver.attackers.fusion import Fusion, WantedFusion
from spkver.attackers.kinds import NormConfig, ProjectionConfig, TrainingConfig
from spkver.attackers.protocol import (
    Attack,
    Attacker,
    Background,
    BackgroundAttacker,
    Place,
    Scorer,
    Wanted,
    learns_from,
    level_of,
    speech_of,
)
from spkver.attackers.training import ENDING, Classics, check_training, merge_versions, train_attacker
from spkver.attackers.undoing import Known, Undoing, WarpEstimator, fit_warp_estimator, known_anonymizer, warp_cues
from spkver.attackers.vector_attacker import Choice, VectorAttacker, VectorStore, learn_backend
from spkver.attackers.workplace import Workplace
