"""Library calls give the bits of one BLAS thread, however many the process has; so do recipes and commands.

Which products differ with two threads depends on the kernel of the machine: with ``OPENBLAS_CORETYPE=Haswell`` it is
all of these, elsewhere some.
"""

import numpy as np
import pytest
import threadpoolctl
from network_oracle import random_campplus
from scipy.special import expit

from evaluation.calibration.affine import apply_affine, train_affine
from evaluation.embeddings import Embeddings
from evaluation.linkage.curve import mean_interval
from evaluation.metrics import SortedScores, population
from evaluation.trials import Trials
from evaluation.uncertainty import evaluate
from evaluation.uncertainty.resampling import Resampling
from spkver.backend import train_chain
from spkver.extractors.networks import campplus_graph, embed_frames, read_network
from spkver.features import FeatureConfig, mfcc

RNG = np.random.default_rng(0)
TARGET, NONTARGET = RNG.standard_normal(30011) + 2, RNG.standard_normal(50021)
LLR, COUNTS, OTHERS = RNG.standard_normal(80000), RNG.random(80000), RNG.random(80000)
SIGNAL = RNG.standard_normal(160000)
CAMPPLUS = read_network(campplus_graph(random_campplus(0)))

VECTORS = RNG.standard_normal((40, 200))[np.repeat(np.arange(40), 20)] + RNG.standard_normal(
    (800, 200)
)
TRAINING = Embeddings(
    [f"u{row}" for row in range(800)], [f"s{row // 20:02d}" for row in range(800)], VECTORS
)
TRIALS = Trials.from_ids(
    np.repeat([f"s{row:02d}" for row in range(40)], 800).tolist(), TRAINING.ids.tolist() * 40
)


def scores_of_chain():
    backend = train_chain(TRAINING, "whiten,length,lda:30,wccn,nap:3,plda:20,snorm:7")
    return backend.score(TRAINING, TRAINING, TRIALS).values


CALLS = {
    "chain": scores_of_chain,
    "map": lambda: train_chain(TRAINING, "efr:2,lda").transform(VECTORS),
    "affine": lambda: apply_affine(train_affine(TARGET, NONTARGET), LLR),
    "cllr": lambda: evaluate(TARGET, NONTARGET, convention="bosaris").cllr,
    "disclosure": lambda: population(SortedScores(LLR, COUNTS, OTHERS)),
    "mean interval": lambda: mean_interval(expit(TARGET), Resampling(200)).low,
    "embed": lambda: embed_frames(SIGNAL.astype(np.float32), 16000, CAMPPLUS),
    "mfcc": lambda: mfcc(SIGNAL, FeatureConfig())[0],
}


@pytest.mark.parametrize("call", CALLS)
def test_library_calls_give_the_same_bits(call):
    found = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads):
            found.append(np.asarray(CALLS[call]()).tobytes())
    assert found[0] == found[1]
