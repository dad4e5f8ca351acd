"""From vectors to scores: nuisance removed (NAP), a machine for each model (SVM), the trials scored.

`Supervectors` and `Trials` enter, `Scores` leave; GMM-UBM scores are made here from frames too.
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
from spkver.backend.sklearn_steps import sklearn_step
from spkver.backend.steps import NEEDS, STEPS
from spkver.backend.svm import SvmConfig, SvmModels, open_svms, train_svms, write_svms
from spkver.backend.transforms import AffineMap, LengthNorm

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
    "VbxTransform",
    "adapt_plda_unsupervised",
    "adapt_words",
    "adapted_cosine_scores",
    "backend_from_kaldi",
    "check_chain",
    "check_rank",
    "cosine_of_sessions",
    "enrolled_plda_scores",
    "fit_nap",
    "fit_plda",
    "format_chain",
    "kaldi_plda_scores",
    "mahalanobis_scores",
    "minus_own_mixture",
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
    "sklearn_step",
    "speaker_digests",
    "train_chain",
    "train_svms",
    "warn_of_trained",
    "write_backend",
    "write_kaldi_plda",
    "write_svms",
]
