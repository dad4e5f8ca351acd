"""Vectors, machines and cohorts against brute force, closed forms and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from scipy.special import logsumexp
from scipy.stats import norm as gaussian
from sklearn.svm import SVC

from evaluation.calibration.cohort_norm import s_norm, t_norm, z_norm
from evaluation.trials.lists import Scores, Trials
from spkbase.runs import Stamp
from spkbase.work import Work
from spkver.attackers.attack import normalised_scores, raw_scores, score_matrix
from spkver.attackers.config import AttackerConfig, attacker_config
from spkver.attackers.kinds import Backend, Segments, Sessions, fit_lda, fit_transform
from spkver.attackers.training import cohort_rows
from spkver.attackers.training import train_backend as train_on_sessions
from spkver.features.frames import Frames
from spkver.mixture.gmm import GaussianMixture
from spkver.mixture.statistics import Statistics, accumulate_statistics

N_COMPONENTS, DIMENSION = 4, 3
SPEAKERS = [f"s{number}" for number in range(6)]


def train_backend(config, ubm, statistics, frames, *, n_utterances, seed):
    return train_on_sessions(config, ubm, Sessions(statistics, Stamp("frames", "", frames), n_utterances), seed=seed)


def enrol(config, ubm, backend, statistics):
    return config.method.enrol(config, ubm, backend, statistics)


def vectors_of(config, ubm, backend, statistics):
    return config.method.vectors(config, ubm, backend, statistics)


def mixture() -> GaussianMixture:
    rng = np.random.default_rng(0)
    weights = rng.uniform(1, 2, N_COMPONENTS)
    means = rng.normal(0, 2, (N_COMPONENTS, DIMENSION))
    return GaussianMixture(weights / weights.sum(), means, rng.uniform(0.5, 2, means.shape))


def speech(seed: int = 1, n_sessions: int = 4) -> tuple[list[str], Frames]:
    """Sessions of speakers whose frames stand apart; the speaker of each session, and the frames."""
    rng = np.random.default_rng(seed)
    places = np.random.default_rng(99).normal(0, 1.5, (len(SPEAKERS), DIMENSION))
    lengths = rng.integers(20, 60, len(SPEAKERS) * n_sessions)
    values = [
        place + rng.normal(0, 0.4, DIMENSION) + rng.normal(0, 1.5, (length, DIMENSION))
        for place, length in zip(np.repeat(places, n_sessions, axis=0), lengths, strict=True)
    ]
    ids = [f"{speaker}-{number}" for speaker in SPEAKERS for number in range(n_sessions)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return [one.split("-")[0] for one in ids], Frames(np.array(ids, object), offsets, np.concatenate(values))


def config_of(kind: str, *settings: str) -> AttackerConfig:
    plain = ["norm.kind=none", "norm.segments=session", "norm.speakers=2", "enrolment=pooled", "projection.rank=0"]
    plain += ["projection.lda=0", "svm.tolerance=1e-9"]
    return attacker_config(kind, settings=[*plain, *settings])


def statistics_of(models: list[str], frames: Frames) -> Statistics:
    return accumulate_statistics(mixture(), frames, models, list(frames.ids), work=Work(jobs=1))


def all_trials(models: np.ndarray, segments: np.ndarray) -> Trials:
    pairs = [(model, segment) for model in models for segment in segments]
    return Trials.from_ids([model for model, _ in pairs], [segment for _, segment in pairs])


def densities(frames: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Log of weight times density, frames by components, one Gaussian at a time."""
    ubm = mixture()
    columns = [
        np.log(weight) + gaussian.logpdf(frames, mean, np.sqrt(variance)).sum(axis=1)
        for weight, mean, variance in zip(ubm.weights, means, ubm.variances, strict=True)
    ]
    return np.stack(columns, axis=1)


def brute_force_ratio(scoring: str, frames: np.ndarray, means: np.ndarray) -> float:
    ubm = mixture()
    background, model = densities(frames, ubm.means), densities(frames, means)
    if scoring == "exact":
        return float((logsumexp(model, axis=1) - logsumexp(background, axis=1)).mean())
    posteriors = np.exp(background - logsumexp(background, axis=1, keepdims=True))
    if scoring == "bound":
        return float((posteriors * (model - background)).sum(axis=1).mean())
    shift = (means - ubm.means) / ubm.variances
    return float(np.einsum("tc,cd,tcd->", posteriors, shift, frames[:, None] - ubm.means) / len(frames))


def map_means(frames: np.ndarray, relevance: float) -> np.ndarray:
    ubm = mixture()
    background = densities(frames, ubm.means)
    posteriors = np.exp(background - logsumexp(background, axis=1, keepdims=True))
    count = posteriors.sum(axis=0)[:, None]
    return (posteriors.T @ frames + relevance * ubm.means) / (count + relevance)


@pytest.mark.parametrize("scoring", ["exact", "bound", "linear"])
def test_ratios_of_pooled_models_are_brute_force(scoring):
    config = config_of("gmm-ubm", f"scoring={scoring}", "map.relevance=9")
    models, frames = speech()
    _, tested = speech(seed=2, n_sessions=2)
    backend = train_backend(config, mixture(), statistics_of(models, frames), frames, n_utterances=24, seed=0)
    machines = enrol(config, mixture(), backend, statistics_of(models, frames))
    test = Segments(tested.ids, frames=tested)
    if scoring != "exact":
        vectors = vectors_of(config, mixture(), Backend(), statistics_of(list(tested.ids), tested))
        test = Segments(tested.ids, vectors=vectors)
    found = raw_scores(mixture(), machines, test, all_trials(machines.models, tested.ids))
    for (model, segment), value in zip(found.pairs(), found.values, strict=True):
        own = np.concatenate([frames.of(name) for name in frames.ids if name.startswith(model)])
        expected = brute_force_ratio(scoring, tested.of(segment), map_means(own, 9.0))
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-11)
    matrix = score_matrix(mixture(), machines, test)
    np.testing.assert_allclose(matrix.reshape(-1), found.values, rtol=1e-9, atol=1e-12)


def test_the_bound_is_below_the_exact_ratio():
    models, frames = speech()
    values = {}
    for scoring in ("exact", "bound"):
        config = config_of("gmm-ubm", f"scoring={scoring}")
        machines = enrol(config, mixture(), Backend(), statistics_of(models, frames))
        vectors = (
            None if scoring == "exact" else vectors_of(config, mixture(), Backend(), statistics_of(models, frames))
        )
        test = Segments(frames.ids, vectors, frames if scoring == "exact" else None)
        values[scoring] = score_matrix(mixture(), machines, test)
    assert (values["bound"] < values["exact"]).all()


def test_vectors_are_centred_projected_and_of_length_one():
    config = config_of("supervector-cosine", "projection.rank=3")
    models, _ = speech()
    vectors = np.random.default_rng(4).normal(2, 1, (len(models), 12))
    transform = fit_transform(config, vectors, models, per_speaker=1)
    found = transform(vectors)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-12)
    centred = vectors - vectors.mean(axis=0)
    within = centred - np.stack([centred[[one == model for one in models]].mean(axis=0) for model in models])
    _, directions = np.linalg.eigh(within.T @ within)
    nuisance = directions[:, ::-1][:, :3]
    expected = centred - centred @ nuisance @ nuisance.T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("per_speaker", "settings", "is_lda"),
    [
        (2, ["projection.lda_speakers=6"], True),
        (1.9, ["projection.lda_speakers=6"], False),
        (2, ["projection.lda_speakers=7"], False),
        (2, ["projection.lda_speakers=6", "projection.lda=0"], False),
    ],
)
def test_the_discriminant_analysis_is_left_out_where_the_data_do_not_allow_it(per_speaker, settings, is_lda):
    config = config_of("gmm-svm", "projection.lda=3", "projection.rank=2", *settings)
    models, _ = speech()
    vectors = np.random.default_rng(4).normal(2, 1, (len(models), 12))
    transform = fit_transform(config, vectors, models, per_speaker=per_speaker)
    assert (transform.mapping is not None) == is_lda
    assert len(transform.directions) == (0 if is_lda else 2)
    assert transform(vectors).shape == (len(models), 3 if is_lda else 12)


@pytest.mark.parametrize(("pca", "shrinkage"), [(12, 0.0), (12, 0.3), (7, 0.2), (500, 1.0)])
def test_discriminants_are_those_of_explicit_covariances(pca, shrinkage):
    rng = np.random.default_rng(8)
    speakers = np.array([f"s{number}" for number in rng.integers(0, 6, 60)], object)
    places = {speaker: rng.normal(0, 1, 12) for speaker in set(speakers)}
    vectors = np.stack([places[speaker] for speaker in speakers]) + rng.normal(0, rng.uniform(0.2, 2, 12), (60, 12))
    vectors -= vectors.mean(axis=0)
    matrix = fit_lda(vectors, speakers, n_dimensions=3, pca=pca, shrinkage=shrinkage)
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    reduced = vectors @ axes[:pca].T
    means = {speaker: reduced[speakers == speaker].mean(axis=0) for speaker in set(speakers)}
    of_row = np.stack([means[speaker] for speaker in speakers])
    within = (reduced - of_row).T @ (reduced - of_row) / (60 - len(means))
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / len(within) * np.eye(len(within))
    between = of_row.T @ of_row / 60
    _, generalised = scipy.linalg.eigh(between, within)
    expected = reduced @ generalised[:, ::-1][:, :3]
    found = vectors @ matrix.T
    # a direction and its opposite are the same
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)


def test_there_are_no_more_discriminants_than_speakers_less_one():
    models = np.array(speech()[0], object)
    vectors = np.random.default_rng(9).normal(0, 1, (len(models), 200))
    assert fit_lda(vectors, models, n_dimensions=50, pca=20, shrinkage=0.1).shape == (len(SPEAKERS) - 1, 200)


def test_no_more_directions_are_removed_than_the_sessions_have(caplog):
    config = config_of("gmm-svm", "projection.rank=50")
    models, _ = speech(n_sessions=2)
    transform = fit_transform(config, np.random.default_rng(5).normal(size=(12, 40)), models, per_speaker=1)
    assert transform.directions.shape == (6, 40)
    assert "projection.rank is 6, not 50" in caplog.text
    one_each = fit_transform(config, np.random.default_rng(5).normal(size=(6, 40)), SPEAKERS, per_speaker=1)
    assert one_each.directions.shape == (0, 40)


@pytest.mark.parametrize("enrolment", ["pooled", "sessions"])
def test_cosines_are_cosines(enrolment):
    config = config_of("supervector-cosine", f"enrolment={enrolment}")
    models, frames = speech()
    found = statistics_of(models, frames)
    backend = train_backend(config, mixture(), found, frames, n_utterances=24, seed=0)
    machines = enrol(config, mixture(), backend, found)
    _, tested = speech(seed=2, n_sessions=1)
    vectors = vectors_of(config, mixture(), backend, statistics_of(list(tested.ids), tested))
    matrix = score_matrix(mixture(), machines, Segments(tested.ids, vectors=vectors))
    ubm = mixture()

    def supervector(own: np.ndarray) -> np.ndarray:
        return (map_means(own, config.map.relevance) * np.sqrt(ubm.weights[:, None] / ubm.variances)).reshape(-1)

    sessions = np.stack([supervector(frames.of(name)) for name in frames.ids])
    centre = sessions.mean(axis=0)
    for row, model in enumerate(machines.models):
        mine = [name.startswith(model) for name in frames.ids]
        if enrolment == "pooled":
            own = supervector(np.concatenate([frames.of(name) for name in frames.ids[mine]])) - centre
        else:
            own = sessions[mine] - centre
            own = (own / np.linalg.norm(own, axis=1, keepdims=True)).mean(axis=0)
        for column, segment in enumerate(tested.ids):
            other = supervector(tested.of(segment)) - centre
            expected = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
            assert matrix[row, column] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("models_by", ["speaker", "session"])
@pytest.mark.parametrize("enrolment", ["pooled", "sessions"])
@pytest.mark.parametrize("balanced", [False, True])
def test_cohort_machines_do_not_see_their_own_speaker(models_by, enrolment, balanced):
    config = config_of(
        "gmm-svm", "norm.kind=s", f"norm.models={models_by}", f"enrolment={enrolment}", f"svm.balanced={balanced}"
    )
    models, frames = speech()
    backend = train_backend(config, mixture(), statistics_of(models, frames), frames, n_utterances=24, seed=0)
    speakers = np.array(models)
    cohort = backend.cohort
    assert cohort.models.models.tolist() == (SPEAKERS if models_by == "speaker" else sorted(frames.ids))
    tests = cohort.segments.vectors
    alone = replace(config, norm=replace(config.norm, kind="none"))
    for row, name in enumerate(cohort.models.models):
        mine = [one == name for one in (models if models_by == "speaker" else frames.ids)]
        own_frames = Frames(frames.ids[mine], *_cut(frames, mine))
        if enrolment == "sessions" or models_by == "session":
            own = backend.background[mine]
        else:
            pooled = Frames(np.array([name], object), np.array([0, len(own_frames.values)]), own_frames.values)
            own = vectors_of(alone, mixture(), backend, statistics_of([name], pooled))
        others = backend.background[speakers != name.split("-")[0]]
        stacked = np.concatenate([others, own])
        machine = SVC(
            kernel="linear",
            C=len(stacked) / (stacked**2).sum(),
            tol=1e-9,
            class_weight="balanced" if balanced else None,
        )
        machine.fit(stacked, [0] * len(others) + [1] * len(own))
        found = tests @ cohort.models.weights[row] + cohort.models.biases[row]
        np.testing.assert_allclose(found, machine.decision_function(tests), atol=1e-6)


def _cut(frames: Frames, rows: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    parts = [frames.of(name) for name in frames.ids[rows]]
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64), np.concatenate(parts)


@pytest.mark.parametrize("kind", ["z", "t", "s"])
@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize("attacker", ["gmm-ubm", "gmm-ubm bound", "gmm-svm", "supervector-cosine"])
def test_normalised_scores_are_those_that_the_files_would_give(attacker, kind, top):
    name, _, scoring = attacker.partition(" ")
    extra = [f"norm.top={top}"] if top else []
    config = config_of(name, f"norm.kind={kind}", f"scoring={scoring or 'exact'}", *extra)
    models, frames = speech()
    backend = train_backend(config, mixture(), statistics_of(models, frames), frames, n_utterances=24, seed=0)
    enrolled_of, enrolled = speech(seed=5, n_sessions=2)
    machines = enrol(config, mixture(), backend, statistics_of(enrolled_of, enrolled))
    _, tested = speech(seed=6, n_sessions=1)
    test = Segments(tested.ids, frames=tested)
    if not config.exact:
        found = statistics_of(list(tested.ids), tested)
        test = Segments(tested.ids, vectors=vectors_of(config, mixture(), backend, found))
    trials = all_trials(machines.models, tested.ids)
    trials = trials.subset(np.random.default_rng(7).permutation(len(trials))[:20])
    scores = normalised_scores(backend.cohort, mixture(), machines, test, trials)

    def raw(of, tests) -> Scores:
        return raw_scores(mixture(), of, tests, all_trials(of.models, tests.ids))

    plain = raw_scores(mixture(), machines, test, trials)
    model_cohort, segment_cohort = raw(machines, backend.cohort.segments), raw(backend.cohort.models, test)
    expected = {
        "z": lambda: z_norm(plain, model_cohort, top=top),
        "t": lambda: t_norm(plain, segment_cohort, top=top),
        "s": lambda: s_norm(plain, model_cohort, segment_cohort, top=top),
    }[kind]()
    assert list(scores.pairs()) == list(expected.pairs()) == list(trials.pairs())
    np.testing.assert_allclose(scores.values, expected.values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("attacker", ["gmm-ubm", "gmm-ubm bound", "gmm-svm", "supervector-cosine"])
def test_cohort_segments_of_speakers_hold_all_their_speech(attacker):
    name, _, scoring = attacker.partition(" ")
    config = config_of(name, "norm.kind=z", "norm.segments=speaker", f"scoring={scoring or 'exact'}")
    models, frames = speech()
    found = statistics_of(models, frames)
    backend = train_backend(config, mixture(), found, frames, n_utterances=24, seed=0)
    segments = backend.cohort.segments
    assert segments.ids.tolist() == SPEAKERS
    whole = {one: np.concatenate([frames.of(f"{one}-{number}") for number in range(4)]) for one in SPEAKERS}
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in whole.values()])])
    pooled = Frames(np.array(SPEAKERS, object), offsets, np.concatenate(list(whole.values())))
    if config.exact:
        for one in SPEAKERS:
            np.testing.assert_array_equal(segments.frames.of(one), whole[one])
    else:
        expected = vectors_of(config, mixture(), backend, statistics_of(SPEAKERS, pooled))
        np.testing.assert_allclose(segments.vectors, expected, rtol=1e-6, atol=1e-9)


def test_a_background_of_some_sessions_serves_all_speakers_and_the_projection_all_sessions():
    models, frames = speech()
    found = statistics_of(models, frames)
    whole, some = (
        train_backend(
            config_of("gmm-svm", "norm.kind=s", f"training.background={size}"), mixture(), found, frames,
            n_utterances=24, seed=0,
        )
        for size in (24, 12)
    )  # fmt: skip
    rows = [row for row, one in enumerate(whole.background) if (one == some.background).all(axis=1).any()]
    assert len(some.background) == 12
    assert sorted(models[row] for row in rows) == sorted(SPEAKERS * 2)
    np.testing.assert_array_equal(some.gram, some.background @ some.background.T)
    np.testing.assert_array_equal(some.transform.centre, whole.transform.centre)
    assert some.cohort.models.models.tolist() == SPEAKERS


def test_a_cohort_apart_shares_no_speaker_with_the_background():
    config = config_of("gmm-svm", "norm.kind=s", "norm.apart=0.34")
    models, frames = speech()
    backend = train_backend(config, mixture(), statistics_of(models, frames), frames, n_utterances=24, seed=3)
    chosen = set(backend.cohort.models.models)
    assert len(chosen) == 2
    assert {one.split("-")[0] for one in backend.cohort.segments.ids} == chosen
    assert len(backend.background) == len(models) - 2 * 4
    rows = cohort_rows(np.array(models, object), 0.34, seed=3)
    assert {one for one, row in zip(models, rows, strict=True) if row} == chosen
    # without normalisation nobody is set apart for it
    plain = train_backend(
        replace(config, norm=replace(config.norm, kind="none")),
        mixture(),
        statistics_of(models, frames),
        frames,
        n_utterances=24,
        seed=3,
    )
    assert plain.cohort is None
    assert len(plain.background) == len(models)
