"""The figures of privacy that a recipe ends with: of speakers, not of their models."""

import numpy as np
import pytest

from evaluation.metrics import d_sys, eer, zebra
from evaluation.trials.lists import Key, Scores
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from, sample_of
from spkver.rsr2015.results import Speakers, curve_figures, linkability, privacy_figures

N_SPEAKERS, N_SENTENCES = 12, 4


def trials(seed=0):
    """Each speaker enrols a model a sentence and says it once more; scores of one speaker are alike."""
    rng = np.random.default_rng(seed)
    easiness = rng.standard_normal(N_SPEAKERS)
    rows = [(a, b, s) for s in range(N_SENTENCES) for a in range(N_SPEAKERS) for b in range(N_SPEAKERS)]
    models, segments = [f"m{a:03d}_{s:03d}" for a, _, s in rows], [f"m{b:03d}/m{b:03d}_02_{s:03d}" for _, b, s in rows]
    is_target = np.array([a == b for a, b, _ in rows])
    values = np.array([(1.5 + easiness[a]) * (a == b) for a, b, _ in rows]) + 0.4 * rng.standard_normal(len(rows))
    speakers = Speakers({m: m[:4] for m in models}, {s: s[:4] for s in segments}, 200)
    return Scores.from_ids(models, segments, values), Key.from_ids(models, segments, is_target), speakers


def test_figures_are_those_of_the_evaluation():
    scores, key, speakers = trials()
    figures = privacy_figures(scores, key, speakers)
    target, nontarget = scores.values[key.is_target], scores.values[~key.is_target]
    expected = zebra(target, nontarget)
    assert figures["zebra"]["population"] == expected.population
    assert (figures["zebra"]["individual"], figures["zebra"]["tag"]) == (expected.individual, expected.tag)
    assert figures["d_sys"] == d_sys(target, nontarget)
    assert figures["min_cllr"] <= figures["cllr"]
    low, high = figures["intervals"]["eer"]
    assert 0 <= low < eer(target, nontarget) < high <= 0.5


def test_speakers_are_drawn_not_models():
    """Twelve speakers say four sentences each: those who take the models for speakers are far too sure."""
    scores, key, speakers = trials()
    intervals = privacy_figures(scores, key, speakers)["intervals"]
    assert (intervals["n_speakers"], intervals["resamples"], intervals["level"]) == (12, 200, 0.95)
    by_speaker, _ = sample_from(scores, key, model_speakers=speakers.of_model, segment_speakers=speakers.of_segment)
    by_trial = sample_of(scores.values, key.is_target)

    def mean(runs):
        return {"mean": float(runs.thresholds @ runs.target / runs.n_target)}

    widths = [
        found["mean"].high - found["mean"].low
        for found in (confidence_intervals(sample, mean, Resampling(200)) for sample in (by_speaker, by_trial))
    ]
    assert widths[0] > 1.5 * widths[1]
    wrong = Speakers({m: m for m in speakers.of_model}, {s: f"{s[:4]}_{s[-3:]}" for s in speakers.of_segment}, 200)
    sure = privacy_figures(scores, key, wrong)["intervals"]
    assert sure["n_speakers"] == 48
    for name in ("population", "d_sys"):
        assert np.diff(intervals[name]) > 1.2 * np.diff(sure[name]), name


def test_nothing_is_drawn_without_resamples():
    scores, key, speakers = trials()
    none = Speakers(speakers.of_model, speakers.of_segment, 0)
    assert set(privacy_figures(scores, key, none)["intervals"]) == {"level", "resamples", "seed", "resampled"}
    assert curve_figures(linkability(scores, key, none))["interval"] == [None, None]


def test_linkability_counts_the_speakers_who_enrolled_the_sentence():
    scores, key, speakers = trials()
    curve = linkability(scores, key, speakers)
    figures = curve_figures(curve)
    assert figures["n_enrolled"] == N_SPEAKERS
    first = [
        scores.values[key.is_target & (key.segments == segment)]
        > scores.values[~key.is_target & (key.segments == segment)].max()
        for segment in np.unique(key.segments)
    ]
    assert figures["value"] == pytest.approx(np.mean(first))
    assert figures["chance"] == pytest.approx(1 / N_SPEAKERS)
    low, high = figures["interval"]
    assert low < figures["value"] < high
