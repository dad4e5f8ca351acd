"""Attackers: they learn from data directories, and score any list of trials.

`parse_spec` and `make_attacker` create an attacker from its entry in a configuration; its `extract`, `fit` and `score`
are the steps of an evaluation. `train_attacker` trains a classic attacker with an `AttackerConfig` (from a preset by
`attacker_config`), and `score` scores a list of trials with it.
"""

from spkver.attackers.classic import (
    PRESETS,
    AttackerConfig,
    GmmUbmAttacker,
    SupervectorAttacker,
    TrainedAttacker,
    attacker_config,
    check_training,
    load_attacker,
    score,
    train_attacker,
)
from spkver.attackers.folds import Fold
from spkver.attackers.fusion import (
    LEAST_SPEAKERS,
    METHOD,
    Fusion,
    fold_attacks,
    fuse,
    learn_weights,
)
from spkver.attackers.inversion import (
    INVERTED_DRAWS,
    NUMBERS,
    Inversion,
    Known,
    known_from_record,
    recognised_anonymizer,
    record_of,
    unfit_background,
    why_not,
)
from spkver.attackers.lists import limited, recordings_of, select
from spkver.attackers.pieces import ENDING as PIECES_ENDING
from spkver.attackers.pieces import count_pieces, cut, needs_pieces, pieces_of
from spkver.attackers.properties import PropertiesAttacker
from spkver.attackers.protocol import ENDING, Attack, Attacker, LostModelError, TrainingSet
from spkver.attackers.registry import (
    BY_FEATURES,
    CATALOGUE,
    DEFAULT,
    OF_THE_RECORDING,
    OUTSIDE,
    Spec,
    absent_attackers,
    attacker_name,
    default_attackers,
    is_outside,
    make_attacker,
    named_entry,
    named_only,
    parse_spec,
)
from spkver.attackers.sources import ExtractorSource, MixtureSource
from spkver.attackers.stages import (
    SpeechFiles,
    Trained,
    compute_vectors,
    extract_speech,
    learn_models,
    score_trials,
)
from spkver.attackers.vector_attacker import VectorAttacker
from spkver.attackers.warping import fit_warp_estimator, warp_cues

__all__ = [
    "BY_FEATURES",
    "CATALOGUE",
    "DEFAULT",
    "ENDING",
    "INVERTED_DRAWS",
    "LEAST_SPEAKERS",
    "METHOD",
    "NUMBERS",
    "OF_THE_RECORDING",
    "OUTSIDE",
    "PIECES_ENDING",
    "PRESETS",
    "Attack",
    "Attacker",
    "AttackerConfig",
    "ExtractorSource",
    "Fold",
    "Fusion",
    "GmmUbmAttacker",
    "Inversion",
    "Known",
    "LostModelError",
    "MixtureSource",
    "PropertiesAttacker",
    "Spec",
    "SpeechFiles",
    "SupervectorAttacker",
    "Trained",
    "TrainedAttacker",
    "TrainingSet",
    "VectorAttacker",
    "absent_attackers",
    "attacker_config",
    "attacker_name",
    "check_training",
    "compute_vectors",
    "count_pieces",
    "cut",
    "default_attackers",
    "extract_speech",
    "fit_warp_estimator",
    "fold_attacks",
    "fuse",
    "is_outside",
    "known_from_record",
    "learn_models",
    "learn_weights",
    "limited",
    "load_attacker",
    "make_attacker",
    "named_entry",
    "named_only",
    "needs_pieces",
    "parse_spec",
    "pieces_of",
    "recognised_anonymizer",
    "record_of",
    "recordings_of",
    "score",
    "score_trials",
    "select",
    "train_attacker",
    "unfit_background",
    "warp_cues",
    "why_not",
]
