"""The types that a user's type checker sees."""

import pytest
from user_types import check_types

USER = """
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from evaluation import Embeddings, Scores, Trials
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.audio import read_audio
from spkver.backend import Backend, train_chain
from spkver.datadir import DataDir, read_datadir
from spkver.extractors import embed
from spkver.features import FeatureConfig, Frames, extract_features, load_frames, mfcc, pitch_track
from spkver.mixture import GaussianMixture, UbmConfig, accumulate_statistics, train_ubm
from spkver.sklearn import Chain, GmmUbm, Plda
from spkver.vectors import IVectors, extract_ivectors, train_total_variability

samples = read_audio("a.wav", rate=16000).samples
assert_type(pitch_track(samples, 16000), NDArray[np.float64])
config = FeatureConfig()
cepstra, log_energy = mfcc(samples, config)
table = extract_features({"a": "a.wav", "b": "b.flac"}, config, "features.h5")
frames = load_frames(table, config, folder=".")
assert_type(frames, Frames)
ubm = train_ubm(frames.stack(["a", "b"]), UbmConfig(components=64))
mixture: GaussianMixture = ubm.mixture
statistics = accumulate_statistics(mixture, frames, ["a", "b"], ["a", "b"])
subspace = train_total_variability(mixture, statistics)
assert_type(extract_ivectors(subspace, statistics), IVectors)
vectors = embed("data/mine", "campplus", "vectors.h5")
assert_type(vectors, Embeddings)
backend = train_chain(vectors, "centre,lda:150,plda")
assert_type(backend, Backend)
trials = Trials.from_ids(["m"], ["s"])
scores: Scores = backend.score(vectors, vectors, trials)
Chain("centre,lda:150,plda").fit(np.zeros((4, 2)), [0, 0, 1, 1])
ratios = Plda(rank=1).score_pairs(np.zeros((4, 2)), np.zeros((4, 2)))
assert_type(ratios, NDArray[np.float64])
assert_type(GmmUbm(2).fit([np.zeros((3, 2))]), GmmUbm)
twin = anonymize_datadir(read_datadir("data/mine"), "data/mine_x", AnonymizerConfig("mcadams"))
assert_type(twin, DataDir)
"""


@pytest.mark.whole
def test_user_code_passes_a_strict_type_checker(tmp_path, request):
    check_types(USER, tmp_path, request.config.cache.mkdir("users_types"))
