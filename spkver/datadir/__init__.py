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
from spkver.datadir.twins import check_twin
