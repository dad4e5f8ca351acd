"""The i-vector recipe, on the tiny corpus: its systems, what a change does again, vectors that are ready, kills."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from recipe_runs import COMMANDS, RECIPES, datasets, made, options, refused, results_of

from evaluation.formats.reading import read_scores
from spkbase.configuration import read_yaml
from spkbase.work import Work
from spkver.backend.scoring import score_joint_factors
from spkver.mixture.statistics import open_statistics
from spkver.mixture.ubm import read_ubm
from spkver.vectors.joint_factors import JointFactorConfig, train_joint_factors

pytestmark = pytest.mark.whole

SETTINGS = {"total_variability__rank": 12, "total_variability__rounds": 3, "nap__rank": 0}
SYSTEMS = [*read_yaml(RECIPES / "config/ivector.yaml")["systems"]]
LISTS = ("training", "enroll", "test")
BACKENDS = {f"backend of {name}" for name in SYSTEMS} | {f"scores of {name}" for name in SYSTEMS}
VECTORS = {f"vectors of {name}" for name in LISTS}
STATISTICS = {f"statistics of {name}" for name in LISTS}


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    """Output of the recipe; read only."""
    output = tmp_path_factory.mktemp("finished") / "out"
    with pytest.raises(SystemExit) as end:
        COMMANDS["ivector"].main(options(tiny, output, **SETTINGS))
    assert not end.value.code
    return output


@pytest.fixture
def output(finished, tmp_path):
    """A copy of that output for a test to go on from."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def run(recipe, corpus, output, *arguments, **settings):
    return recipe(corpus, output, *arguments, name="ivector", **{**SETTINGS, **settings})


def unit(vectors):
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def vectors_of(path):
    with h5py.File(path) as file:
        names = [[name.decode() for name in file[column][()]] for column in ("speakers", "ids")]
        return names[0], names[1], file["vectors"][()]


def test_all_systems_share_one_table_and_one_figure(finished):
    results = results_of(finished)
    assert results["recipe"] == "rsr2015/ivector"
    assert [*results["systems"]] == SYSTEMS
    assert {
        "cosine",
        "mahalanobis-efr",
        "two-covariance-sphnorm",
        "plda-efr",
        "plda-sphnorm",
    } < set(SYSTEMS)
    for name, system in results["systems"].items():
        assert (system["n_target"], system["n_nontarget"]) == (16, 48)
        assert (finished / f"backends/{name}.h5").is_file()
        assert read_scores(finished / f"scores/{name}.h5").values.shape == (64,)
    assert (finished / "det.png").is_file()


def test_the_cosine_is_taken_with_the_mean_of_the_sessions(finished):
    models, _, enrolled = vectors_of(finished / "data/iv_enroll.h5")
    _, segments, tested = vectors_of(finished / "data/iv_test.h5")
    scores = read_scores(finished / "scores/cosine.h5")
    assert len(set(models)) < len(models), "several sessions per model"
    for (model, segment), value in zip(scores.pairs(), scores.values, strict=True):
        mean = enrolled[[name == model for name in models]].mean(axis=0)
        assert value == pytest.approx(unit(mean) @ unit(tested[segments.index(segment)]), abs=1e-12)


def test_background_speakers_train_the_matrix_and_the_chains(finished):
    speakers, segments, _ = vectors_of(finished / "data/iv_training.h5")
    assert segments == (finished / "task/ubm_list.txt").read_text().split()
    assert speakers == [segment.split("/")[0] for segment in segments]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"systems__cosine": "[centre, cosine]"}, {"backend of cosine", "scores of cosine"}),
        ({"systems__plda-efr": "null"}, set()),
        ({"total_variability__rounds": 2}, {"total variability"} | VECTORS | BACKENDS),
        ({"ivectors__method": "eigen"}, VECTORS | BACKENDS),
        ({"ubm__components": 4}, {"ubm", "total variability"} | STATISTICS | VECTORS | BACKENDS),
    ],
)
def test_a_changed_setting_redoes_only_its_dependents(recipe, tiny, output, settings, expected):
    outcome = run(recipe, tiny, output, **settings)
    assert outcome.status == 0, outcome.err
    assert made(outcome.err) == expected
    systems = results_of(output)["systems"]
    assert ("plda-efr" in systems) == ("systems__plda-efr" not in settings)


def test_classes_may_be_pairs_of_speaker_and_sentence(recipe, tiny, output):
    outcome = run(recipe, tiny, output, ivectors__classes="sentence")
    assert outcome.status == 0, outcome.err
    speakers = vectors_of(output / "data/iv_training.h5")[0]
    assert {name.count("_") for name in speakers} == {1}
    assert len(set(speakers)) == 8  # four speakers, two sentences


def test_bits_do_not_depend_on_jobs(recipe, tiny, finished, tmp_path):
    assert run(recipe, tiny, tmp_path / "out", "--jobs", "2").status == 0
    assert datasets(tmp_path / "out") == datasets(finished)


# --- vectors supplied by the user -----------------------------------------------------------------------------------


@pytest.fixture
def ready(finished, tmp_path):
    """Vectors of all recordings as `spkver embed` writes them for `task/data`."""
    names = [line.split()[0] for line in (finished / "task/data/wav.scp").read_text().splitlines()]
    path = tmp_path / "vectors.npz"
    vectors = np.random.default_rng(0).standard_normal((len(names), 9))
    np.savez(
        path, ids=np.array(names), speakers=np.array([name[:4] for name in names]), vectors=vectors
    )
    return path


def test_precomputed_vectors_replace_ivectors(recipe, tiny, ready, tmp_path):
    outcome = run(recipe, tiny, tmp_path / "out", given__vectors=ready)
    assert outcome.status == 0, outcome.err
    assert made(outcome.err) == VECTORS | BACKENDS
    assert not (tmp_path / "out/features.h5").exists()
    with np.load(ready) as file:
        vectors = dict(zip(file["ids"].tolist(), unit(file["vectors"]), strict=True))
    scores = read_scores(tmp_path / "out/scores/cosine.h5")
    test = {segment: vectors[segment.split("/")[1]] for _, segment in scores.pairs()}
    models, segments, enrolled = vectors_of(tmp_path / "out/data/iv_enroll.h5")
    np.testing.assert_allclose(unit(enrolled), [vectors[name.split("/")[1]] for name in segments])
    for (model, segment), value in zip(scores.pairs(), scores.values, strict=True):
        mean = enrolled[[name == model for name in models]].mean(axis=0)
        assert value == pytest.approx(unit(mean) @ test[segment], abs=1e-6)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (
            lambda arrays: {name: values[1:] for name, values in arrays.items()},
            "1 of 32 recordings have no vector",
        ),
        (lambda arrays: {**arrays, "vectors": arrays["vectors"] * np.nan}, "not finite"),
    ],
)
def test_bad_precomputed_vectors_are_refused(recipe, tiny, ready, tmp_path, spoil, expected):
    with np.load(ready) as file:
        arrays = {name: file[name] for name in file}
    np.savez(ready, **spoil(arrays))
    outcome = run(recipe, tiny, tmp_path / "out", given__vectors=ready)
    refused(outcome, re.escape(expected))


# --- bad configuration -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"total_variability__rank": 33},
            "total_variability.rank is 33, but there are only 32 segments",
        ),
        (
            {"systems__cosine": "[lda: 4, cosine]"},
            "systems.cosine: lda.rank is 4, but 12 dimensions and 4 speakers allow",
        ),
        (
            {"systems__cosine": "[cosin]"},
            "systems.cosine: step 1 of the chain: there is no step 'cosin'",
        ),
        ({"systems__a/b": "[cosine]"}, "systems.a/b cannot name a file"),
        (
            {"given__machines": "/tmp"},
            "given.machines has no place in this recipe, which takes statistics, vectors",
        ),
        ({"ivectors__list": "nap", "nap__step": 16}, "rank is 12, but there are only 2 segments"),
    ],
)
def test_bad_settings_are_refused_before_any_work(recipe, tiny, tmp_path, settings, expected):
    outcome = run(recipe, tiny, tmp_path / "out", **settings)
    refused(outcome, re.escape(expected))
    assert not (tmp_path / "out/features.h5").exists()


# --- joint factors ---------------------------------------------------------------------------------------------------

JOINT = {
    "joint_factors__speaker_rank": 3,
    "joint_factors__channel_rank": 2,
    "joint_factors__rounds": 2,
    "nap__rank": 0,
}


def test_the_joint_factor_recipe_equals_the_public_functions(recipe, tiny, tmp_path):
    """The stages are the public functions of the packages, in a row."""
    outcome = recipe(tiny, tmp_path / "out", name="jfa", **JOINT)
    assert outcome.status == 0, outcome.err
    assert made(outcome.err) == {"features", "ubm", *STATISTICS, "joint factors", "scores of jfa"}
    system = results_of(tmp_path / "out")["systems"]["jfa"]
    assert (system["n_target"], system["n_nontarget"]) == (16, 48)
    scores = read_scores(tmp_path / "out/scores/jfa.h5")
    mixture = read_ubm(tmp_path / "out/gmm/ubm.h5").mixture
    lists = {name: open_statistics(tmp_path / f"out/data/stat_{name}.h5") for name in LISTS}
    config = JointFactorConfig(speaker_rank=3, channel_rank=2, rounds=2)
    factors = train_joint_factors(mixture, lists["training"], config, work=Work(jobs=1))
    expected = score_joint_factors(
        factors, lists["enroll"], lists["test"], scores, work=Work(jobs=1)
    )
    np.testing.assert_allclose(scores.values, expected.values, rtol=1e-6)
    assert made(recipe(tiny, tmp_path / "out", name="jfa", **JOINT).err) == set()
    assert recipe(tiny, tmp_path / "two", "--jobs", "2", name="jfa", **JOINT).status == 0
    assert datasets(tmp_path / "out") == datasets(tmp_path / "two")
