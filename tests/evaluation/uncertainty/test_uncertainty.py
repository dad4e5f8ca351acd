"""The bootstrap against explicit repetition of trials, its weights, its errors, and intervals against closed forms."""

import numpy as np
import pytest

from evaluation.metrics import eer, min_dcf, sort_scores
from evaluation.trials import Key, Scores, TrialSpeakers
from evaluation.uncertainty import Resampling, confidence_intervals, paired_differences, sample_from
from evaluation.uncertainty.resampling import bootstrap, draw, sample_of
from spkbase.errors import DataError


def means(scores):
    """Linear metrics, of which everything is known."""
    return {
        "target": float(scores.thresholds @ scores.target / scores.n_target),
        "nontarget": float(scores.thresholds @ scores.nontarget / scores.n_nontarget),
        "eer.interpolated": eer(scores, method="interpolated"),
    }


def simulated(n_speakers=12, n_segments=3, *, seed=0, digits=1):
    """Give scores with ties, truth, and codes of the speakers of models and segments, in a random order."""
    rng = np.random.default_rng(seed)
    models, segments = np.divmod(
        rng.permutation(n_speakers * n_speakers * n_segments), n_speakers * n_segments
    )
    speakers = segments // n_segments
    scores = (
        rng.standard_normal(len(models))
        + 2 * (models == speakers)
        + rng.standard_normal(n_speakers)[models]
    )
    return np.round(scores, digits), models == speakers, models, speakers


def table(n_speakers, models, segments):
    return TrialSpeakers(
        np.array([f"s{n:03d}" for n in range(n_speakers)], object), models, segments
    )


def sampled(**options):
    scores, is_target, models, speakers = simulated(**options)
    return sample_of(scores, is_target, table(int(models.max()) + 1, models, speakers))


# draws and weights


def test_weights_are_repetitions_of_trials():
    scores, is_target, models, speakers = simulated()
    sample = sample_of(scores, is_target, table(12, models, speakers))
    for weights in draw(sample, seed=3, block=0, size=5):
        copies = np.where(
            models == speakers, weights[models], weights[models] * weights[speakers]
        ).astype(int)
        expected = sort_scores(
            np.repeat(scores, copies * is_target), np.repeat(scores, copies * ~is_target)
        )
        found = sample.runs(weights)
        for name in ("thresholds", "target", "nontarget"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_draws_are_multinomial():
    sample = sampled()
    weights = np.concatenate([draw(sample, seed=1, block=block, size=50) for block in range(80)])
    assert (weights[:, :-1].sum(axis=1) == 12).all()
    assert (weights[:, -1] == 1).all()
    # each w is binomial(12, 1/12): mean 1, variance 11/12; the bounds are five standard errors
    assert abs(weights[:, 0].mean() - 1) < 5 * np.sqrt(11 / 12 / 4000)
    assert abs(weights[:, 0].var() - 11 / 12) < 0.15
    assert len(np.unique(weights, axis=0)) > 3900  # 12 out of 12 repeat themselves now and then


def test_resampling_by_trial_keeps_the_class_sizes():
    scores, is_target, _, _ = simulated()
    sample = sample_of(scores, is_target)
    weights = draw(sample, seed=1, block=0, size=400)
    n_target = int(is_target.sum())
    assert (weights[:, :n_target].sum(axis=1) == n_target).all()
    assert (weights[:, n_target:-1].sum(axis=1) == len(scores) - n_target).all()
    for drawn in weights[:5]:  # each class keeps its number of trials
        runs = sample.runs(drawn)
        assert (runs.n_target, runs.n_nontarget) == (n_target, len(scores) - n_target)
    values = bootstrap(sample, means, Resampling(400))[0]["target"]
    expected = scores[is_target].std() / np.sqrt(n_target)
    assert values.std() == pytest.approx(expected, rel=0.15)


def test_the_spread_of_the_target_mean_equals_that_over_speakers():
    """The mean of means of speakers has the textbook bootstrap error, whatever trials of a speaker have in common."""
    scores, is_target, models, speakers = simulated(n_speakers=40, n_segments=5)
    sample = sample_of(scores, is_target, table(40, models, speakers))
    values = bootstrap(sample, means, Resampling(800))[0]["target"]
    of_speakers = [scores[is_target & (models == n)].mean() for n in range(40)]
    assert values.std() == pytest.approx(np.std(of_speakers) / np.sqrt(40), rel=0.12)
    by_trial = bootstrap(sample_of(scores, is_target), means, Resampling(400))[0]["target"]
    assert by_trial.std() < 0.65 * values.std()


def test_draws_depend_on_the_seed_but_not_on_workers():
    sample = sampled()
    one = bootstrap(sample, means, Resampling(60, 7))[0]["eer.interpolated"]
    np.testing.assert_array_equal(
        one, bootstrap(sample, means, Resampling(60, 7), jobs=2)[0]["eer.interpolated"]
    )
    assert (one != bootstrap(sample, means, Resampling(60, 8))[0]["eer.interpolated"]).any()


# paired


def test_paired_differences_are_narrower_than_unpaired_ones():
    scores, is_target, models, speakers = simulated(n_speakers=30)
    rng = np.random.default_rng(1)
    samples = {
        name: sample_of(
            scores + 0.3 * rng.standard_normal(len(scores)) + shift * is_target, is_target, who
        )
        for who in [table(30, models, speakers)]
        for name, shift in (("a", 0.0), ("b", 0.5))
    }
    gap = paired_differences(samples, means, Resampling(200))["b"]["target"]
    apart = [
        confidence_intervals(sample, means, Resampling(200))["target"]
        for sample in samples.values()
    ]
    assert gap.low < 0.5 < gap.high
    assert gap.high - gap.low < 0.5 * min(one.high - one.low for one in apart)


def test_samples_with_different_trials_are_refused():
    scores, is_target, models, speakers = simulated()
    base = sample_of(scores, is_target, table(12, models, speakers))
    less = sample_of(scores[1:], is_target[1:], table(12, models[1:], speakers[1:]))
    other = sample_of(scores, is_target, table(12, models[::-1].copy(), speakers))
    for second in (less, other):
        with pytest.raises(DataError, match="the same trials of 'a' and 'b'"):
            paired_differences({"a": base, "b": second}, means)


# intervals


def test_unresolved_costs_are_noted():
    sample = sampled()  # 396 nontarget trials
    found = confidence_intervals(
        sample,
        lambda scores: {f"min_dcf.{p}": min_dcf(scores, p_target=p) for p in (0.02, 10 / 396, 0.1)},
        Resampling(20),
    )
    assert "fewer than 10 / P" in found["min_dcf.0.02"].note
    assert not found["min_dcf.0.1"].note
    assert not found[f"min_dcf.{10 / 396}"].note


# bad input


def test_resamples_without_a_class_are_refused():
    # one speaker of 30 has target trials with another: most draws leave the class empty
    models, segments = np.arange(30), np.roll(np.arange(30), 1)
    is_target = np.arange(30) == 0
    sample = sample_of(np.arange(30.0), is_target, table(30, models, segments))
    with pytest.raises(DataError, match="of 200 resamples hold no trial of one class"):
        bootstrap(sample, means, Resampling(200))


# from scores and keys


def test_samples_join_scores_and_key_by_ids():
    scores, is_target, models, speakers = simulated(n_speakers=5, n_segments=1)
    ids = [f"spk{n}" for n in models], [f"spk{n}-u" for n in speakers]
    key = Key.from_ids(*ids, is_target)
    order = np.random.default_rng(0).permutation(len(scores))
    shuffled = Scores.from_ids(
        [ids[0][n] for n in order], [ids[1][n] for n in order], scores[order]
    )
    sample, kept = sample_from(shuffled, key)
    assert kept is key
    expected = sample_of(scores, is_target, table(5, models, speakers))
    np.testing.assert_array_equal(sample.scores, expected.scores)
    np.testing.assert_array_equal(sample.first, expected.first)
    np.testing.assert_array_equal(sample.second, expected.second)
    fewer = shuffled.subset(np.arange(len(scores)) != 3)
    with pytest.raises(DataError, match="1 trial of 25 without a score"):
        sample_from(fewer, key)
    sample, kept = sample_from(fewer, key, missing="drop")
    assert len(sample) == len(kept) == 24


ONE = table(2, np.array([0, 0]), np.array([0, 1]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sample_of([1.0, 2.0], [True, True]), "both classes, got 2 target"),
        (lambda: sample_of([1.0, 2.0], [True, False], ONE), "at least 2 speakers"),
        (lambda: sample_of([1.0, 2.0, 3.0], [True, False, False], ONE), "got those of 2"),
        (lambda: sample_of([1.0, 2.0], [True]), "label for each of 2 scores"),
        (lambda: sample_of([1.0, np.nan], [True, False]), "NaN"),
        (lambda: Resampling(1), "2 to 1,000,000 resamples"),
        (lambda: Resampling(10**12), "2 to 1,000,000 resamples"),
        (lambda: Resampling(seed=-1), "a seed from 0"),
        (lambda: Resampling(5, level=95.0), "level between 0 and 1"),
        (
            lambda: bootstrap([sampled(), sampled(n_speakers=5)], means),
            "samples with the same units",
        ),
        (lambda: paired_differences({"a": sampled()}, means), "two systems"),
    ],
)
def test_misuse_is_refused(call, words):
    with pytest.raises(DataError, match=words):
        call()
