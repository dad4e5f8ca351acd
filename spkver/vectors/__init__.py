"""Vectors: the statistics of each segment in, one vector a segment out.

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
