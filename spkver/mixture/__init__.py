"""Gaussian mixtures: frames in; the universal background model and the statistics of each segment under it out.

`GaussianMixture` holds weights, means and variances; `train_ubm` trains it by splitting; `Statistics` holds zeroth- and
first-order statistics, one segment a row, and they add. `WordModels` are hidden Markov models for speech whose words
are known; `aligned_statistics` are the statistics of their states' components.
"""

from spkver.mixture.gmm import (
    LEAST_LOG_SHARE,
    GaussianMixture,
    PosteriorKernel,
    block_size,
    check_frames,
    e_step,
    frame_log_likelihoods,
    inverse_variances,
    log_likelihood,
    natural_parameters,
    of_each_gaussian,
    squares_or_products,
    unwhiten,
    whiten,
    whitening_factors,
)
from spkver.mixture.hidden_markov import (
    AlignedWords,
    HiddenMarkovConfig,
    Text,
    WordModels,
    align_texts,
    aligned_statistics,
    forward,
    part_of,
    read_word_models,
    row_graph,
    state_densities,
    text_posteriors,
    train_word_models,
    without_text,
    write_word_models,
)
from spkver.mixture.statistics import (
    Statistics,
    accumulate_statistics,
    copy_stat_rows,
    find_stat_rows,
    open_statistics,
    read_statistics,
    write_statistics,
)
from spkver.mixture.ubm import (
    TrainedUbm,
    UbmConfig,
    check_ubm,
    read_ubm,
    schedule_marks,
    train_ubm,
    with_full_covariances,
    write_ubm,
)
