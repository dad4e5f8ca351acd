"""Steps as estimators: scikit-learn's own checks, and the same numbers as in a chain."""

from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkbase.errors import ConfigError, DataError
from spkver.backend import sklearn_step, train_chain

pytest.importorskip("sklearn", minversion="1.6")
STEPS = [
    ("centre", {}), ("whiten", {}), ("length", {}), ("efr", {}), ("sphnorm", {}), ("lda", {}), ("wccn", {}),
    ("nap", {"rank": 1}), ("chain", {}), ("chain", {"steps": "whiten,length,plda"}), ("chain", {"steps": "lda:1"}),
]  # fmt: skip
# vectors of zeros, which have no direction, are among the inputs of this check
ZEROS = {"check_estimators_dtypes": "a vector of zeros is an error"}
EXPECTED = {"length": ZEROS, "chain": ZEROS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "values"), STEPS, ids=[name for name, _ in STEPS])
def test_estimators_pass_the_checks_of_scikit_learn(name, values):
    checks = pytest.importorskip("sklearn.utils.estimator_checks", exc_type=ImportError)
    number = 0
    for estimator, check in checks.estimator_checks_generator(sklearn_step(name, **values)):
        if check.func.__name__ not in EXPECTED.get(name, {}):
            with suppress(SkipTest):  # one asks for an environment variable
                check(estimator)
                number += 1
    assert number > 40


@pytest.fixture
def speakers():
    return np.repeat(np.arange(12), 6)


@pytest.fixture
def vectors(speakers):
    draw = np.random.default_rng(0)
    return draw.normal(size=(12, 5))[speakers] + 0.4 * draw.normal(size=(len(speakers), 5))


def test_pipelines_equal_chains(vectors, speakers):
    pipeline = make_pipeline(
        sklearn_step("whiten", kind="cholesky"), sklearn_step("length"), sklearn_step("lda", rank=3)
    )
    ours = train_chain(
        Embeddings(
            [f"u{row}" for row in range(len(vectors))],
            [f"s{speaker:02d}" for speaker in speakers],
            vectors,
        ),
        "whiten:cholesky,length,lda:3",
    )
    assert np.array_equal(pipeline.fit_transform(vectors, speakers), ours.transform(vectors))
    assert list(pipeline.get_feature_names_out()) == ["lda0", "lda1", "lda2"]


def test_scores_of_pairs_equal_those_of_a_chain(vectors, speakers):
    names = [f"s{speaker:02d}" for speaker in speakers]
    ours = train_chain(vectors, "lda:3,length,plda", speakers=names)
    rows = np.array([[0, 1], [0, 7], [20, 70]])
    listed = Embeddings.from_arrays(vectors)
    trials = Trials.from_ids(*np.char.add("u", rows.T.astype(str)).tolist())
    estimator = sklearn_step("chain", steps="lda:3,length,plda").fit(vectors, speakers)
    assert np.array_equal(
        estimator.pair_score(vectors[rows]), ours.score(listed, listed, trials).values
    )
    assert estimator.transform(vectors).shape == (72, 3)
    for wrong in (vectors[:4], np.stack([vectors[:5], vectors[:5]])):
        with pytest.raises(DataError, match=r"expected pairs of shape \(n, 2, R\), got"):
            estimator.pair_score(wrong)


def test_unusable_steps_and_input_are_refused(vectors, speakers):
    for name in ("plda", "coral", "nothing"):
        with pytest.raises(ConfigError, match="expected one of centre, whiten"):
            sklearn_step(name)
    with pytest.raises(TypeError, match="rnak"):
        sklearn_step("lda", rnak=2)
    with pytest.raises(ConfigError, match=r"lda.rank is 0: expected a number from 1"):
        sklearn_step("lda", rank=0).fit(vectors, speakers)
    with pytest.raises(ValueError, match="requires y"):
        sklearn_step("lda").fit(vectors)
