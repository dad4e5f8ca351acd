"""Estimators: scikit-learn's own checks and models, and the same numbers as our functions, to the bit."""

import inspect
import io
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from evaluation.embeddings import Embeddings
from evaluation.metrics import eer
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkver import mixture, sklearn, vectors
from spkver.backend import STEPS, Sessions, fit_plda, plda_scores, score_gmm_ubm, train_chain
from spkver.features import Frames

pytest.importorskip("sklearn", minversion="1.6")
checks = pytest.importorskip("sklearn.utils.estimator_checks", exc_type=ImportError)
OF_ARRAYS = [
    sklearn.Centre(), sklearn.Whiten(), sklearn.LengthNorm(), sklearn.Efr(), sklearn.Sphnorm(), sklearn.Pca(),
    sklearn.Lda(), sklearn.Wccn(), sklearn.Nap(rank=1), sklearn.Plda(), sklearn.TwoCovariance(), sklearn.Chain(),
    sklearn.Chain("whiten,length,plda"), sklearn.GaussianMixture(), sklearn.GaussianMixture(2, covariance_type="full"),
]  # fmt: skip
# vectors of zeros, which have no direction, are among the inputs of this check
ZEROS = {"check_estimators_dtypes": "a vector of zeros is an error"}


def expected_to_fail(estimator):
    return ZEROS if isinstance(estimator, sklearn.LengthNorm | sklearn.Chain) else {}


@pytest.mark.filterwarnings("ignore")
@checks.parametrize_with_checks(OF_ARRAYS, expected_failed_checks=expected_to_fail)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def speakers():
    return np.repeat(np.arange(12), 6)


@pytest.fixture
def points(speakers):
    draw = np.random.default_rng(0)
    return draw.normal(size=(12, 5))[speakers] + 0.4 * draw.normal(size=(len(speakers), 5))


@pytest.fixture
def recordings(speakers):
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(12, 3))
    lengths = draw.integers(20, 40, size=len(speakers))
    made = []
    for speaker, length in zip(speakers, lengths, strict=True):
        frames = centres[speaker] + draw.normal(size=(length, 3))
        made.append(frames.astype(np.float32))
    return made


def classes():
    return {name.lower(): value for name, value in vars(sklearn).items() if isinstance(value, type)}


def test_each_step_that_needs_no_other_vectors_has_its_class():
    """With the parameters of the table and its defaults."""
    spelling = {"length": "lengthnorm", "two_covariance": "twocovariance"}
    for step in STEPS:
        usable = step.role == "map" and "adapt" not in step.needs
        if not usable and step.name not in ("plda", "two_covariance"):
            continue
        kind = classes()[spelling.get(step.name, step.name)]
        given = inspect.signature(kind).parameters
        defaults = {name: parameter.default for name, parameter in given.items()}
        table = {parameter.name: parameter.default for parameter in step.parameters}
        for of_other_vectors in ("on", "adapt"):
            table.pop(of_other_vectors, None)
        assert defaults == table


def test_pipelines_equal_chains(points, speakers):
    pipeline = make_pipeline(sklearn.Whiten("cholesky"), sklearn.LengthNorm(), sklearn.Lda(3))
    ids = [f"u{row}" for row in range(len(points))]
    names = [f"s{speaker:02d}" for speaker in speakers]
    ours = train_chain(Embeddings(ids, names, points), "whiten:cholesky,length,lda:3")
    assert np.array_equal(pipeline.fit_transform(points, speakers), ours.transform(points))
    assert list(pipeline.get_feature_names_out()) == ["lda0", "lda1", "lda2"]


def test_scores_of_pairs_equal_those_of_a_chain(points, speakers):
    names = [f"s{speaker:02d}" for speaker in speakers]
    spec = "lda:3,length,plda"
    ours = train_chain(points, spec, speakers=names)
    first, second = np.array([0, 0, 20]), np.array([1, 7, 70])
    listed = Embeddings.from_arrays(points)
    trials = Trials.from_ids([f"u{row}" for row in first], [f"u{row}" for row in second])
    expected = ours.score(listed, listed, trials).values
    chain = sklearn.Chain(spec).fit(points, speakers)
    assert np.array_equal(chain.score_pairs(points[first], points[second]), expected)
    steps = make_pipeline(sklearn.Lda(3), sklearn.LengthNorm())
    mapped = steps.fit_transform(points, speakers)
    plda = sklearn.Plda().fit(mapped, speakers)
    assert np.array_equal(plda.score_pairs(mapped[first], mapped[second]), expected)
    assert chain.transform(points).shape == (72, 3)


def test_plda_scores_several_enrolled_vectors_exactly(points, speakers):
    model, _ = fit_plda(points, speakers)
    estimator = sklearn.Plda().fit(points, speakers)
    assert np.array_equal(estimator.loadings_, model.loadings)
    assert np.array_equal(estimator.residual_, model.residual)
    enrolled = points[:12].reshape(4, 3, 5)
    sessions = Sessions(points[:12], np.repeat(np.arange(4), 3))
    rows = np.arange(4)
    expected = plda_scores(model, sessions, points[20:24], rows, rows)
    assert np.array_equal(estimator.score_pairs(enrolled, points[20:24]), expected)


@pytest.mark.parametrize("estimator", [sklearn.Plda(), sklearn.TwoCovariance(), sklearn.Chain()])
def test_score_is_minus_the_equal_error_rate_of_all_pairs(estimator, points, speakers):
    estimator.fit(points[:48], speakers[:48])
    target = []
    nontarget = []
    for first in range(48, 72):
        for second in range(first + 1, 72):
            (score,) = estimator.score_pairs(points[[first]], points[[second]])
            if speakers[first] == speakers[second]:
                target.append(score)
            else:
                nontarget.append(score)
    found = estimator.score(points[48:], speakers[48:])
    assert found == pytest.approx(-eer(np.array(target), np.array(nontarget)), abs=1e-12)
    assert sklearn.neg_eer(estimator, points[48:], speakers[48:]) == found


def test_lda_has_the_directions_of_scikit_learn(points, speakers):
    theirs = LinearDiscriminantAnalysis(solver="eigen", n_components=3).fit(points, speakers)
    directions = sklearn.Lda(3).fit(points, speakers).components_
    for mine, other in zip(directions, theirs.scalings_.T, strict=False):
        cosine = mine @ other / np.linalg.norm(mine) / np.linalg.norm(other)
        assert abs(cosine) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_the_likelihood_of_a_mixture_equals_scikit_learn(recordings, covariance):
    frames = np.concatenate(recordings).astype(np.float64)
    ours = sklearn.GaussianMixture(4, covariance_type=covariance).fit(frames)
    theirs = TheirMixture(4, covariance_type=covariance)
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.covariances_ = ours.covariances_
    inverse_roots = {"diag": lambda values: 1 / np.sqrt(values), "full": inverse_cholesky}
    theirs.precisions_cholesky_ = inverse_roots[covariance](ours.covariances_)
    np.testing.assert_allclose(ours.score_samples(frames), theirs.score_samples(frames), rtol=1e-9)
    assert ours.score(frames) == pytest.approx(theirs.score(frames), rel=1e-9)


def inverse_cholesky(covariances):
    return np.linalg.inv(np.linalg.cholesky(covariances)).swapaxes(1, 2)


def test_a_round_of_em_equals_scikit_learn(recordings):
    frames = np.concatenate(recordings).astype(np.float64)
    no_limits = {"variance_floor": 1e-9, "variance_ceiling": 1e9}
    before = sklearn.GaussianMixture(4, iterations=(2, 3), **no_limits).fit(frames)
    after = sklearn.GaussianMixture(4, iterations=(2, 4), **no_limits).fit(frames)
    theirs = TheirMixture(
        4, covariance_type="diag", max_iter=1, reg_covar=0, weights_init=before.weights_,
        means_init=before.means_, precisions_init=1 / before.covariances_,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(frames)
    np.testing.assert_allclose(after.weights_, theirs.weights_, rtol=1e-9)
    np.testing.assert_allclose(after.means_, theirs.means_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(after.covariances_, theirs.covariances_, rtol=1e-8)


def test_a_mixture_takes_recordings_and_frames_alike(recordings):
    stacked = np.concatenate(recordings)
    ours = sklearn.GaussianMixture(4).fit(recordings)
    expected = mixture.train_ubm(stacked, mixture.UbmConfig(components=4))
    assert np.array_equal(ours.means_, expected.means)
    assert np.array_equal(ours.means_, sklearn.GaussianMixture(4).fit(stacked).means_)
    means = [mixture.log_likelihood(frames, expected).mean() for frames in recordings]
    assert np.array_equal(ours.score_samples(recordings), means)
    assert len(ours.score_samples(stacked)) == len(stacked)
    assert ours.n_iter_ == len(ours.log_likelihoods_) == 3


def known_by_number(recordings):
    ids = [f"{number:03d}" for number in range(len(recordings))]
    return ids, Frames.from_dict(dict(zip(ids, recordings, strict=True)))


def test_supervectors_and_ratios_equal_those_of_the_functions(recordings, speakers):
    ids, frames = known_by_number(recordings)
    ubm = mixture.train_ubm(frames.values, mixture.UbmConfig(components=4))
    statistics = mixture.accumulate_statistics(ubm, frames, ids, ids)
    estimator = sklearn.GmmUbm(4, relevance=8.0).fit(recordings, speakers)
    expected = vectors.adapt_supervectors(ubm, statistics, 8.0).vectors
    assert np.array_equal(estimator.transform(recordings), expected)
    plain = vectors.MapConfig(8.0, normalise=False)
    adapted = vectors.adapt_multisession(ubm, statistics, plain)
    trials = Trials.from_ids(ids[:5], ids[3:8])
    ratios = score_gmm_ubm(ubm, adapted, frames, trials).values
    assert np.array_equal(estimator.score_pairs(recordings[:5], recordings[3:8]), ratios)
    assert -0.2 < estimator.score(recordings, speakers) < 0


def test_ivectors_equal_those_of_the_functions(recordings):
    ids, frames = known_by_number(recordings)
    ubm = mixture.train_ubm(frames.values, mixture.UbmConfig(components=4))
    statistics = mixture.accumulate_statistics(ubm, frames, ids, ids)
    config = vectors.TotalVariabilityConfig(rank=3, rounds=2)
    model = vectors.train_total_variability(ubm, statistics, config)
    expected = vectors.extract_ivectors(model, statistics).vectors
    estimator = sklearn.IVectorExtractor(4, rank=3, rounds=2)
    assert np.array_equal(estimator.fit_transform(recordings), expected)
    assert np.array_equal(estimator.loadings_, model.loadings)
    assert estimator.n_features_in_ == 3
    assert estimator.get_feature_names_out().tolist() == [f"ivectorextractor{i}" for i in range(3)]


@pytest.mark.parametrize("many", [list, tuple, lambda items: as_objects(items)])
def test_recordings_go_through_pipelines_searches_and_processes(recordings, speakers, many):
    steps = make_pipeline(
        sklearn.IVectorExtractor(4, rank=4, rounds=1), sklearn.LengthNorm(), sklearn.Lda(), sklearn.Plda()
    )  # fmt: skip
    grid = {"lda__rank": [2, 3], "ivectorextractor__n_components": [2, 4]}
    search = GridSearchCV(steps, grid, cv=GroupKFold(3), error_score="raise")
    search.fit(many(recordings), speakers, groups=speakers)
    assert -0.3 < search.best_score_ < 0
    restored = pickle.loads(pickle.dumps(search.best_estimator_))
    assert restored.score(recordings, speakers) == search.score(recordings, speakers)
    with io.BytesIO() as file:
        joblib.dump(restored, file)
        file.seek(0)
        assert np.array_equal(
            joblib.load(file)[:-1].transform(recordings), restored[:-1].transform(recordings)
        )


def as_objects(items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.mark.parametrize(
    "estimator", [sklearn.GmmUbm(2, relevance=5.0), sklearn.IVectorExtractor(2, rank=3)]
)
def test_clones_keep_parameters_but_nothing_learnt(estimator, recordings):
    estimator.fit(recordings)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "ubm_")
    assert str(copy) == str(estimator)


def test_neg_eer_uses_the_cosine_for_estimators_that_only_transform(points, speakers):
    grouped = {"cv": GroupKFold(3), "groups": speakers, "scoring": sklearn.neg_eer}
    ours = cross_val_score(
        make_pipeline(sklearn.Whiten(), sklearn.Lda(3)), points, speakers, **grouped
    )
    theirs = cross_val_score(
        LinearDiscriminantAnalysis(n_components=3), points, speakers, **grouped
    )
    assert (ours < 0).all()
    assert (theirs < 0).all()
    with pytest.raises(DataError, match="expected an estimator that scores pairs or transforms"):
        sklearn.neg_eer(TheirMixture(), points, speakers)


MISUSE = {
    "frames in place of recordings": (
        lambda recordings: sklearn.GmmUbm(2).fit(recordings[0]), "expected recordings as a list of arrays",
    ),
    "a mixture that cannot double": (
        lambda recordings: sklearn.GmmUbm(3).fit(recordings), "expected a power of two",
    ),
    "an unknown covariance": (
        lambda recordings: sklearn.GaussianMixture(2, covariance_type="tied").fit(recordings), "expected one of diag",
    ),
    "other dimensions": (
        lambda recordings: sklearn.IVectorExtractor(2, rank=2).fit(recordings).transform([np.ones((4, 2))]),
        "X has 2 features, but IVectorExtractor is expecting 3",
    ),
    "recordings of several dimensions": (
        lambda recordings: sklearn.GmmUbm(2).fit([*recordings, np.ones((4, 2))]), "'72' has frames of 2 dimensions",
    ),
    "more enrolled than tested": (
        lambda recordings: sklearn.GmmUbm(2).fit(recordings).score_pairs(recordings, recordings[:2]), "got 72 and 2",
    ),
    "one speaker": (
        lambda recordings: sklearn.GmmUbm(2).fit(recordings).score(recordings[:6], np.zeros(6)), "pairs of two",
    ),
    "a rank above the recordings": (
        lambda recordings: sklearn.IVectorExtractor(32, rank=90).fit(recordings), "there are only 72 segments",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MISUSE.values(), ids=MISUSE)
def test_misused_estimators_of_recordings_raise(call, message, recordings):
    with pytest.raises((DataError, ConfigError), match=message):
        call(recordings)


VECTORS = [
    sklearn.Centre(), sklearn.Whiten(), sklearn.LengthNorm(), sklearn.Efr(), sklearn.Sphnorm(), sklearn.Pca(),
    sklearn.Lda(), sklearn.Wccn(), sklearn.Nap(rank=1), sklearn.Plda(), sklearn.TwoCovariance(), sklearn.Chain(),
]  # fmt: skip


def trained(estimator, vectors, speakers):
    return estimator.fit(vectors, np.asarray(speakers))


PIPELINE = make_pipeline(sklearn.Whiten(), sklearn.Plda())
WITH_SPEAKERS = {f"fit of {type(kind).__name__}": kind.fit for kind in VECTORS} | {
    "fit of a pipeline": PIPELINE.fit,
    "score": lambda *given: trained(sklearn.Plda(), *given).score(*given),
    "score of a chain": lambda *given: trained(sklearn.Chain(), *given).score(*given),
    "neg_eer": lambda *given: sklearn.neg_eer(trained(sklearn.Plda(), *given), *given),
    "neg_eer of a pipeline": lambda *given: sklearn.neg_eer(trained(PIPELINE, *given), *given),
    "neg_eer of a map": lambda *given: sklearn.neg_eer(trained(sklearn.Lda(), *given), *given),
}


@pytest.mark.parametrize("call", WITH_SPEAKERS.values(), ids=WITH_SPEAKERS)
def test_speakers_in_another_order_or_number_than_the_vectors_are_refused(call, points, speakers):
    frame = pd.DataFrame(points, index=[f"u{row}" for row in range(len(points))]).rename(
        columns=str
    )
    owners = pd.Series(speakers, index=frame.index)
    call(frame, owners)
    call(frame, list(speakers))
    with pytest.raises(DataError, match="expected X and y with the same index"):
        call(frame, owners.sample(frac=1, random_state=0))
    with pytest.raises(DataError, match="expected X and y with the same index"):
        call(frame, pd.Series(speakers))


@pytest.mark.parametrize("score", [sklearn.Plda.score, sklearn.neg_eer])
def test_fewer_speakers_than_samples_are_refused(score, points, speakers):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        score(sklearn.Plda().fit(points, speakers), points, speakers[:-3])


def test_unusable_vectors_and_parameters_are_refused(points, speakers):
    with pytest.raises(TypeError, match="rnak"):
        sklearn.Lda(rnak=2)
    with pytest.raises(ConfigError, match=r"lda.rank is 0: expected a number from 1"):
        sklearn.Lda(rank=0).fit(points, speakers)
    with pytest.raises(ValueError, match="requires y"):
        sklearn.Lda().fit(points)
    plda = sklearn.Plda().fit(points, speakers)
    with pytest.raises(DataError, match="as many enrolled as tested samples, got 2 and 3"):
        plda.score_pairs(points[:2], points[:3])
    with pytest.raises(ValueError, match="X has 4 features, but Plda is expecting 5"):
        plda.score_pairs(points[:3], points[:3, :4])


def test_other_packages_do_not_import_the_estimators():
    code = (
        "import sys, spkver.backend, spkver.cli; print([m for m in sys.modules if 'sklearn' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
