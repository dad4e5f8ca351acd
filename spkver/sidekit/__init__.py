"""Files that SIDEKIT writes and reads, so that its users keep what they have.

Layouts are those of SIDEKIT 1.3 and 1.4. Trials, keys and scores in SIDEKIT's form are in `evaluation.formats`.
"""

from spkver.sidekit.features import SidekitFeatures, read_feature_file, write_feature_file
from spkver.sidekit.idmaps import read_idmap, write_idmap
from spkver.sidekit.mixture import MixtureFile, read_mixture, write_mixture
from spkver.sidekit.stat_server import StatServer, read_stat_server, write_stat_server
from spkver.sidekit.svms import read_svm

__all__ = [
    "MixtureFile",
    "SidekitFeatures",
    "StatServer",
    "read_feature_file",
    "read_idmap",
    "read_mixture",
    "read_stat_server",
    "read_svm",
    "write_feature_file",
    "write_idmap",
    "write_mixture",
    "write_stat_server",
]
