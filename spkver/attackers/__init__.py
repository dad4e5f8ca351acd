"""Attackers: trained on data directories, kept as one folder each; they score any list of trials.

`train_attacker` makes a `TrainedAttacker` of an `AttackerConfig` (presets by name), `score` gives `Scores`.
"""

from spkver.attackers.attack import TrainedAttacker, load_attacker, score
from spkver.attackers.catalogue import (
    CATALOGUE,
    DEFAULT,
    absent_attackers,
    catalogue_name,
    cost_of,
    default_attackers,
    find_row,
    is_outside,
    known_attackers,
    open_door,
    short_name,
)
from spkver.attackers.config import KINDS, PRESETS, AttackerConfig, Context, attacker_config
from spkver.attackers.folds import with_pieces
from spkver.attackers.fusion import Fusion, WantedFusion
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
from spkver.attackers.training import ENDING, Classics, check_training, train_attacker
from spkver.attackers.undoing import Undoing, fit_warp_estimator, known_anonymizer, warp_cues
from spkver.attackers.vector_attacker import VectorAttacker, VectorStore
from spkver.attackers.workplace import Workplace
