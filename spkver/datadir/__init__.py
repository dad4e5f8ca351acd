"""Kaldi's data directories: read, checked, written, and compared with their anonymised twins."""

from spkver.datadir.directory import (
    DataDir,
    check_ids,
    enrolment,
    unfit_id,
    wav_file,
    with_versions,
    without_labels,
    write_datadir,
)
from spkver.datadir.evaluation_sets import EvaluationSets, split_for_evaluation
from spkver.datadir.fingerprints import Fingerprint, copies, fingerprint, fingerprints_of, similarity
from spkver.datadir.reading import datadir_of_folder, datadir_of_table, match_sexes, read_datadir, read_sexes
from spkver.datadir.splitting import (
    MIXED,
    SEXES_POOLED,
    Split,
    SplitRules,
    check_suffix,
    draw_order,
    drop_missing,
    full_cross,
    part_of,
    split_datadir,
    twin_of_split,
)
from spkver.datadir.twins import check_twin, duration_changes

__all__ = [
    "MIXED",
    "SEXES_POOLED",
    "DataDir",
    "EvaluationSets",
    "Fingerprint",
    "Split",
    "SplitRules",
    "check_ids",
    "check_suffix",
    "check_twin",
    "copies",
    "datadir_of_folder",
    "datadir_of_table",
    "draw_order",
    "drop_missing",
    "duration_changes",
    "enrolment",
    "fingerprint",
    "fingerprints_of",
    "full_cross",
    "match_sexes",
    "part_of",
    "read_datadir",
    "read_sexes",
    "similarity",
    "split_datadir",
    "split_for_evaluation",
    "twin_of_split",
    "unfit_id",
    "wav_file",
    "with_versions",
    "without_labels",
    "write_datadir",
]
