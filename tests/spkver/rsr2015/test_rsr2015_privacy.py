"""The figures of privacy that a recipe ends with: of speakers, not of their models."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.metrics import d_sys, eer, min_dcf, zebra
from evaluation.reports import Linkability
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from, sample_of
from spkver.rsr2015 import RecipeConfig
from spkver.rsr2015.measures import Speakers, assess_system, linkability

N_SPEAKERS, N_SENTENCES = 12, 4


def trials(seed=0):
    """Each speaker enrols a model of each sentence and says the sentence once more; scores of one speaker are alike."""
    rng = np.random.default_rng(seed)
    easiness = rng.standard_normal(N_SPEAKERS)
    rows = [
        (a, b, s) for s in range(N_SENTENCES) for a in range(N_SPEAKERS) for b in range(N_SPEAKERS)
    ]
    models, segments = (
        [f"m{a:03d}_{s:03d}" for a, _, s in rows],
        [f"m{b:03d}/m{b:03d}_02_{s:03d}" for _, b, s in rows],
    )
    is_target = np.array([a == b for a, b, _ in rows])
    values = np.array(
        [(1.5 + easiness[a]) * (a == b) for a, b, _ in rows]
    ) + 0.4 * rng.standard_normal(len(rows))
    speakers = Speakers({m: m[:4] for m in models}, {s: s[:4] for s in segments}, 200)
    return (
        Scores.from_ids(models, segments, values),
        Key.from_ids(models, segments, is_target),
        speakers,
    )


def test_figures_equal_those_of_the_evaluation_package():
    scores, key, speakers = trials()
    figures = assess_system(scores, key, speakers, RecipeConfig())
    target, nontarget = scores.values[key.is_target], scores.values[~key.is_target]
    expected = zebra(target, nontarget)
    assert figures.metric("zebra.population").value == expected.population
    assert (figures.metric("zebra.individual").value, figures.tag) == (
        expected.individual,
        expected.tag,
    )
    assert figures.metric("d_sys").value == d_sys(target, nontarget)
    assert figures.metric("min_cllr").value <= figures.metric("cllr").value
    assert figures.metric("min_dcf.sre08").value == min_dcf(
        target, nontarget, p_target=0.01, c_miss=10.0
    )
    assert figures.metric("min_dcf.sre10").value == min_dcf(target, nontarget, p_target=0.001)
    assert (figures.n_target, figures.n_nontarget, figures.n_enrolled) == (
        len(target),
        len(nontarget),
        N_SPEAKERS,
    )
    assert figures.eer.value == eer(target, nontarget)
    assert 0 <= figures.eer.low < figures.eer.value < figures.eer.high <= 0.5


def test_resampling_draws_speakers_not_models():
    """Twelve speakers say four sentences each: those who take the models for speakers are far too sure."""
    scores, key, speakers = trials()
    right = assess_system(scores, key, speakers, RecipeConfig())
    assert (
        right.notes["intervals"]
        == "95 % interval over speakers, not models (12 speakers, 200 resamples)"
    )
    by_speaker, _ = sample_from(
        scores, key, model_speakers=speakers.of_model, segment_speakers=speakers.of_segment
    )
    by_trial = sample_of(scores.values, key.is_target)

    def mean(runs):
        return {"mean": float(runs.thresholds @ runs.target / runs.n_target)}

    widths = [
        found["mean"].high - found["mean"].low
        for found in (
            confidence_intervals(sample, mean, Resampling(200)) for sample in (by_speaker, by_trial)
        )
    ]
    assert widths[0] > 1.5 * widths[1]
    wrong = Speakers(
        {m: m for m in speakers.of_model},
        {s: f"{s[:4]}_{s[-3:]}" for s in speakers.of_segment},
        200,
    )
    sure = assess_system(scores, key, wrong, RecipeConfig())
    assert "(48 speakers, 200 resamples)" in sure.notes["intervals"]
    for name in ("zebra.population", "d_sys"):
        wide, narrow = right.metric(name), sure.metric(name)
        assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low), name


def test_without_resamples_there_are_no_intervals():
    scores, key, speakers = trials()
    none = Speakers(speakers.of_model, speakers.of_segment, 0)
    found = assess_system(scores, key, none, RecipeConfig())
    assert (found.intervals, "intervals" in found.notes) == ({}, False)
    assert np.isnan(linkability(scores, key, none).low).all()


def test_linkability_counts_the_speakers_who_enrolled_the_sentence():
    scores, key, speakers = trials()
    curve = linkability(scores, key, speakers)
    found = replace(
        assess_system(scores, key, speakers, RecipeConfig()),
        linkability=Linkability.from_curve(curve),
    )
    assert max(found.linkability.sizes) == N_SPEAKERS
    first = [
        scores.values[key.is_target & (key.segments == segment)]
        > scores.values[~key.is_target & (key.segments == segment)].max()
        for segment in np.unique(key.segments)
    ]
    assert found.found_among_all.value == pytest.approx(np.mean(first))
    assert found.linkability.chance[-1] == pytest.approx(1 / N_SPEAKERS)
    assert found.found_among_all.low < found.found_among_all.value < found.found_among_all.high
