"""Vectors: from the statistics of each segment to one vector per segment.

`Supervectors` are the MAP-adapted means. `train_total_variability` learns the subspace in which they vary, a
`TotalVariability`, and `extract_ivectors` returns the `IVectors` in it.
"""

from spkver.vectors.ivectors import IVectorMethod, IVectors, extract_ivectors, open_ivectors
from spkver.vectors.joint_factors import (
    JointFactorConfig,
    JointFactors,
    check_joint_ranks,
    hidden_variables,
    read_joint_factors,
    session_vectors,
    speaker_vectors,
    train_joint_factors,
    write_joint_factors,
)
from spkver.vectors.posteriors import pack, unpack
from spkver.vectors.supervectors import (
    MapConfig,
    Supervectors,
    adapt_multisession,
    adapt_supervectors,
    map_means,
    open_supervectors,
    read_supervectors,
    sum_by_model,
    write_supervectors,
)
from spkver.vectors.total_variability import (
    TotalVariability,
    TotalVariabilityConfig,
    check_rank,
    minimum_divergence,
    read_total_variability,
    train_total_variability,
    write_total_variability,
)

__all__ = [
    "IVectorMethod",
    "IVectors",
    "JointFactorConfig",
    "JointFactors",
    "MapConfig",
    "Supervectors",
    "TotalVariability",
    "TotalVariabilityConfig",
    "adapt_multisession",
    "adapt_supervectors",
    "check_joint_ranks",
    "check_rank",
    "extract_ivectors",
    "hidden_variables",
    "map_means",
    "minimum_divergence",
    "open_ivectors",
    "open_supervectors",
    "pack",
    "read_joint_factors",
    "read_supervectors",
    "read_total_variability",
    "session_vectors",
    "speaker_vectors",
    "sum_by_model",
    "train_joint_factors",
    "train_total_variability",
    "unpack",
    "write_joint_factors",
    "write_supervectors",
    "write_total_variability",
]
