"""Attackers: they learn from data directories, and score any list of trials.

`train_attacker` trains a classic attacker with an `AttackerConfig` (from a preset by `attacker_config`), and `score`
scores a list of trials with it.
"""

from spkver.attackers.classic import (
    PRESETS,
    AttackerConfig,
    TrainedAttacker,
    attacker_config,
    check_training,
    load_attacker,
    score,
    train_attacker,
)
from spkver.attackers.fusion import Fusion, put_to_work
from spkver.attackers.pieces import with_pieces
from spkver.attackers.protocol import (
    ENDING,
    Attack,
    Attacker,
    Place,
    Scorer,
    TrainingSet,
    learns_from,
    level_of,
    serves,
    speech_of,
)
from spkver.attackers.registry import (
    CATALOGUE,
    DEFAULT,
    OUTSIDE,
    absent_attackers,
    attacker_name,
    cost_of,
    default_attackers,
    find_row,
    is_outside,
    is_supplied,
    make_attacker,
    named_only,
    open_outside,
)
from spkver.attackers.sources import Workplace
from spkver.attackers.undoing import Undoing, known_anonymizer
from spkver.attackers.vector_attacker import Context, VectorAttacker, VectorStore
from spkver.attackers.warping import fit_warp_estimator, warp_cues
