"""The steps of a system as stages of a run: each arrow of the design is one function and one file.

    audio -> features.h5 -> gmm/ubm.h5 -> data/stat_*.h5 -> data/sv_*.h5 -> data/nap.h5 -> svm/*.h5 -> scores/*.h5, .txt
                                                         -> data/tv.h5 -> data/iv_*.h5 -> backends/*.h5 -> scores/...

Each function declares its stage and hands it out; `spkbase.runs.Run.complete`, or asking for a `value`, does the
work. A stage that is up to date is not done again, so frames are only post-processed when a step needs them. What
another tool has done already, such as SIDEKIT's statistics, is taken from its file as the stage's own artefact.
"""

from spkver.pipeline.systems import (
    LazyFrames,
    RowsFile,
    backend,
    features,
    gmm_scores,
    ivectors,
    joint_factor_scores,
    joint_factors,
    machine_files,
    nuisance_projection,
    scores_of,
    statistics,
    supervectors,
    svm_system,
    total_variability,
    universal_model,
    vector_rows,
    vector_scores,
)
