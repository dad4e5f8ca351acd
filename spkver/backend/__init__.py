"""From vectors to scores: chains of steps such as NAP, LDA and PLDA, support vector machines, and scoring of trials.


Scoring functions take vectors and `Trials` and return `Scores`; GMM-UBM scores are computed here too, from frames.
"""

from spkver.backend.chain import (
    Backend,
    Chain,
    backend_from_kaldi,
    check_chain,
    format_chain,
    parse_chain,
    plain_chain,
    read_backend,
    read_chain,
    speaker_digests,
    train_chain,
    warn_of_trained,
    write_backend,
)
from spkver.backend.kaldi import (
    KaldiPlda,
    VbxTransform,
    adapt_plda_unsupervised,
    kaldi_plda_scores,
    plda_from_kaldi,
    plda_to_kaldi,
    read_kaldi_matrix,
    read_kaldi_plda,
    read_vbx_transform,
    write_kaldi_plda,
)
from spkver.backend.nap import NapConfig, Projection, check_rank, fit_nap
from spkver.backend.plda import (
    Plda,
    PldaConfig,
    Sessions,
    fit_plda,
    plda_from_sidekit,
    plda_scores,
    plda_to_sidekit,
)
from spkver.backend.prompted import (
    PromptedTrials,
    adapt_words,
    minus_own_mixture,
    score_sentences,
    score_words,
)
from spkver.backend.scoring import (
    numbered_ids,
    pair_products,
    score_gmm_ubm,
    score_joint_factors,
    score_trials,
)
from spkver.backend.self_training import self_trained_scores, shifted_self_trained_scores
from spkver.backend.session_scores import (
    adapted_cosine_scores,
    cosine_of_sessions,
    enrolled_plda_scores,
    mahalanobis_scores,
)
from spkver.backend.steps import NEEDS, STEPS, Training
from spkver.backend.svm import SvmConfig, SvmModels, open_svms, train_svms, write_svms
from spkver.backend.transforms import AffineMap, LengthNorm, apply_maps, dimension_after

__all__ = [
    "NEEDS",
    "STEPS",
    "AffineMap",
    "Backend",
    "Chain",
    "KaldiPlda",
    "LengthNorm",
    "NapConfig",
    "Plda",
    "PldaConfig",
    "Projection",
    "PromptedTrials",
    "Sessions",
    "SvmConfig",
    "SvmModels",
    "Training",
    "VbxTransform",
    "adapt_plda_unsupervised",
    "adapt_words",
    "adapted_cosine_scores",
    "apply_maps",
    "backend_from_kaldi",
    "check_chain",
    "check_rank",
    "cosine_of_sessions",
    "dimension_after",
    "enrolled_plda_scores",
    "fit_nap",
    "fit_plda",
    "format_chain",
    "kaldi_plda_scores",
    "mahalanobis_scores",
    "minus_own_mixture",
    "numbered_ids",
    "open_svms",
    "pair_products",
    "parse_chain",
    "plain_chain",
    "plda_from_kaldi",
    "plda_from_sidekit",
    "plda_scores",
    "plda_to_kaldi",
    "plda_to_sidekit",
    "read_backend",
    "read_chain",
    "read_kaldi_matrix",
    "read_kaldi_plda",
    "read_vbx_transform",
    "score_gmm_ubm",
    "score_joint_factors",
    "score_sentences",
    "score_trials",
    "score_words",
    "self_trained_scores",
    "shifted_self_trained_scores",
    "speaker_digests",
    "train_chain",
    "train_svms",
    "warn_of_trained",
    "write_backend",
    "write_kaldi_plda",
    "write_svms",
]
