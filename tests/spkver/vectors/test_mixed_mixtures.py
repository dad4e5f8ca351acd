"""Statistics of another mixture of the same size give plausible wrong numbers: they are refused where that is known."""

from dataclasses import replace

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.features import Frames
from spkver.mixture import (
    GaussianMixture,
    Statistics,
    accumulate_statistics,
    open_statistics,
    read_ubm,
    write_ubm,
)
from spkver.vectors import (
    JointFactorConfig,
    TotalVariabilityConfig,
    adapt_multisession,
    adapt_supervectors,
    extract_ivectors,
    session_vectors,
    sum_by_model,
    train_joint_factors,
    train_total_variability,
)

DRAW = np.random.default_rng(0)
IDS = [f"u{row}" for row in range(6)]
PEOPLE = ["anna", "anna", "bert", "bert", "cleo", "cleo"]
FRAMES = Frames.from_dict({name: DRAW.normal(size=(20, 2)) for name in IDS})
MATRIX = TotalVariabilityConfig(rank=1, rounds=1)
JOINT = JointFactorConfig(speaker_rank=1, channel_rank=1, rounds=1)


def mixture(seed):
    return GaussianMixture(
        np.ones(2) / 2, np.random.default_rng(seed).normal(size=(2, 2)), np.ones((2, 2))
    )


def statistics(ubm, **options):
    return accumulate_statistics(ubm, FRAMES, PEOPLE, IDS, **options)


OURS = mixture(0)
SAME = statistics(OURS)
OTHER = statistics(mixture(1))
UNKNOWN = replace(OTHER, mixture="")
EXTRACTOR = train_total_variability(OURS, SAME, MATRIX)
FACTORS = train_joint_factors(OURS, SAME, JOINT)
USES = {
    "supervectors": lambda given: adapt_supervectors(OURS, given),
    "models of several sessions": lambda given: adapt_multisession(OURS, given),
    "training of total variability": lambda given: train_total_variability(OURS, given, MATRIX),
    "i-vectors": lambda given: extract_ivectors(EXTRACTOR, given),
    "training of joint factors": lambda given: train_joint_factors(OURS, given, JOINT),
    "joint factors": lambda given: session_vectors(FACTORS, given),
    "a join": lambda given: Statistics.joined([SAME[:3], given[3:]]),
}
DERIVED = {
    "whole": lambda given: given,
    "rows": lambda given: given[IDS],
    "rows of models": lambda given: given.of_models(PEOPLE[::2]),
    "a part": lambda given: given.part(0, 6),
    "sums": sum_by_model,
    "joined": lambda given: Statistics.joined([given[:2], given[2:]]),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_statistics_of_another_mixture_of_the_same_size_are_refused(use):
    use(SAME)
    use(UNKNOWN)
    with pytest.raises(DataError, match=r"accumulated on (another mixture|different mixtures)"):
        use(OTHER)


@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
def test_results_derived_from_statistics_keep_their_mixture(derive):
    adapt_supervectors(OURS, derive(SAME))
    with pytest.raises(DataError, match="accumulated on another mixture"):
        adapt_supervectors(OURS, derive(OTHER))


def test_files_of_statistics_do_not_record_their_mixture(tmp_path):
    write_ubm(tmp_path / "ubm.h5", OURS)
    adapt_supervectors(read_ubm(tmp_path / "ubm.h5"), SAME)
    made = statistics(mixture(1), destination=tmp_path / "stat.h5")
    with pytest.raises(DataError, match="accumulated on another mixture"):
        adapt_supervectors(OURS, made)
    adapt_supervectors(OURS, open_statistics(tmp_path / "stat.h5"))
    joined = Statistics.joined([SAME[:3], UNKNOWN[3:]])
    assert joined.mixture == ""
