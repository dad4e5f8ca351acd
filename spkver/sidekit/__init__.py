"""SIDEKIT's files: its users' files can be read here, and SIDEKIT can read files written here.

Layouts are those of SIDEKIT 1.3 and 1.4. Trials, keys and scores in SIDEKIT's form are in `evaluation.formats`.
"""

from spkver.sidekit.features import SidekitFeatures, read_feature_file, write_feature_file
from spkver.sidekit.models import (
    FactorAnalyser,
    inverse_matrices,
    read_factor_analyser,
    read_mixture,
    read_svm,
    write_factor_analyser,
    write_mixture,
    write_svm,
)
from spkver.sidekit.tables import (
    StatServer,
    open_hdf5,
    open_stat_server,
    read_array,
    read_idmap,
    read_stat_server,
    read_strings,
    write_idmap,
    write_stat_blocks,
    write_stat_server,
)

__all__ = [
    "FactorAnalyser",
    "SidekitFeatures",
    "StatServer",
    "inverse_matrices",
    "open_hdf5",
    "open_stat_server",
    "read_array",
    "read_factor_analyser",
    "read_feature_file",
    "read_idmap",
    "read_mixture",
    "read_stat_server",
    "read_strings",
    "read_svm",
    "write_factor_analyser",
    "write_feature_file",
    "write_idmap",
    "write_mixture",
    "write_stat_blocks",
    "write_stat_server",
    "write_svm",
]
