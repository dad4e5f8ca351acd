"""The extractor ``ivector:FOLDER``: i-vectors of a system trained by ``spkver train --system ivector``.

    FOLDER/config.yaml    features, and the seed of their dither
    FOLDER/gmm/ubm.h5     universal background model
    FOLDER/data/tv.h5     matrix of total variability

The output folder of ``spkver rsr2015 ivector`` holds them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from spkbase.configuration import load_config, read_yaml
from spkbase.errors import ConfigError
from spkbase.files import file_digest
from spkbase.work import Work
from spkver.extractors.protocol import Extraction, ExtractorSettings, Recording, Vectors
from spkver.features import FeatureConfig, Frames, extract_batch, post_process
from spkver.mixture import GaussianMixture, accumulate_statistics, read_ubm
from spkver.vectors import TotalVariability, extract_ivectors, read_total_variability

_BATCH = 32  # number of recordings in a task


def open_ivector(folder: str, settings: ExtractorSettings) -> Extraction:
    """Open an extractor of i-vectors; recordings of another rate than its features' are resampled.

    Raises
    ------
    ConfigError
        If the folder holds no such system, or any setting is given: the extractor takes whole recordings at the rate
        of its features.
    """
    if settings != ExtractorSettings():
        raise ConfigError("it takes no window, hop or rate", remedy="leave these settings out")
    files = {"ubm": Path(folder) / "gmm/ubm.h5", "matrix": Path(folder) / "data/tv.h5"}
    config = Path(folder) / "config.yaml"
    absent = [path for path in (config, *files.values()) if not path.is_file()]
    if absent:
        remedy = "train one by: spkver train DATADIR --system ivector --output FOLDER"
        raise ConfigError(
            f"no trained extractor: {absent[0].name} is missing", file=folder, remedy=remedy
        )
    values = read_yaml(config)
    features = load_config(FeatureConfig, defaults=values.get("features", {}))
    features = replace(features, resample=True)
    seed = int(values.get("seed", 0))
    ubm = read_ubm(files["ubm"]).mixture
    matrix = read_total_variability(files["matrix"])
    if ubm.dimension != features.dimension or not np.array_equal(ubm.means, matrix.means):
        text = "its features, mixture and matrix do not belong together"
        raise ConfigError(text, file=folder, remedy="train the extractor again")
    read = partial(ivectors_of, features=features, seed=seed, ubm=ubm, matrix=matrix)
    digests = {name: file_digest(path) for name, path in files.items()}
    record = {**digests, **features.extraction(), **features.post_processing(), "seed": seed}
    return Extraction(
        read, record, features.rate, features.min_samples / features.rate, batch=_BATCH
    )


def ivectors_of(
    recordings: Sequence[Recording],
    *,
    features: FeatureConfig,
    seed: int,
    ubm: GaussianMixture,
    matrix: TotalVariability,
) -> Vectors:
    """Return the i-vector of each recording, or the error of one that cannot be read or has no speech."""
    extracted, errors = extract_batch(recordings, features, seed)
    if errors:  # process them one by one to see which are wrong
        if len(recordings) == 1:
            return [*errors]
        one_by_one = partial(ivectors_of, features=features, seed=seed, ubm=ubm, matrix=matrix)
        return [one_by_one([recording])[0] for recording in recordings]
    frames = []
    for raw in extracted:
        frames.append(post_process(raw.cepstra, raw.log_energy, raw.speech, features)[0])
    names = np.array([name for name, _ in recordings], object)
    offsets = np.cumsum([0, *map(len, frames)], dtype=np.int64)
    stacked = Frames(names, offsets, np.concatenate(frames).astype(features.dtype))
    statistics = accumulate_statistics(ubm, stacked, names, names, work=Work(1))
    return [*np.asarray(extract_ivectors(matrix, statistics, work=Work(1)).vectors)]
