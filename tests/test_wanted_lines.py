"""The lines that people who came from SIDEKIT, scikit-learn and a network's embeddings wanted to write."""

from __future__ import annotations

import numpy as np
import pytest

import evaluation as ev
import spkver.features
from spkver.backend import train_chain


@pytest.fixture(scope="module")
def trials():
    """Two systems on the same trials of twelve speakers, whose names are before the /; read only."""
    rng = np.random.default_rng(0)
    models = []
    segments = []
    for speaker in range(12):
        for other in range(12):
            for take in range(3):
                models.append(f"id{speaker:02d}/enrol.wav")
                segments.append(f"id{other:02d}/{take}.wav")
    is_target = np.array(
        [model[:4] == segment[:4] for model, segment in zip(models, segments, strict=True)]
    )
    key = ev.Key.from_ids(models, segments, is_target)
    systems = {}
    for name, shift in (("a", 1.5), ("b", 2.0)):
        values = rng.normal(size=len(is_target)) + shift * is_target
        systems[name] = ev.Scores.from_ids(models, segments, values)
    return systems, key, is_target


@pytest.fixture(scope="module")
def vectors():
    """Vectors of ten speakers, by path."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(10, 6))
    return {
        f"id{speaker}/{take}.wav": centres[speaker] + 0.3 * rng.normal(size=6)
        for speaker in range(10)
        for take in range(4)
    }


def test_metrics_of_labels_have_thresholds(trials):
    systems, _, is_target = trials
    scores = systems["b"].values
    assert 0 < ev.eer(scores, labels=is_target) < 0.3
    point = ev.min_dcf(scores, labels=is_target, p_target=0.01)
    accepted = scores >= point.threshold
    misses = (~accepted[is_target]).mean()
    alarms = accepted[~is_target].mean()
    assert misses + 99 * alarms == pytest.approx(float(point), abs=0.35)


def test_a_data_frame_is_compared_and_written_as_a_table(trials, tmp_path):
    polars = pytest.importorskip("polars")
    systems, key, is_target = trials
    speakers = [model[:4] for model, _ in key.pairs()]
    columns = {"label": is_target, "speaker": speakers}
    columns |= {name: scores.values for name, scores in systems.items()}
    compared = ev.compare(
        polars.DataFrame(columns),
        scores=["a", "b"],
        label="label",
        speakers="speaker",
        resamples=20,
    )
    tex = compared.to_latex(tmp_path / "table.tex")
    assert (tmp_path / "table.tex").read_text() == tex


def test_systems_are_calibrated_and_fused_with_quality(trials):
    systems, key, _ = trials
    ids = [*key.model_ids.tolist(), *key.segment_ids.tolist()]
    seconds = {name: 2.0 + number % 5 for number, name in enumerate(sorted(set(ids)))}
    calibrated = ev.calibrate(systems["b"], key, speakers="/", quality={"duration": seconds})
    fused = ev.fuse(systems, key, speakers="/")
    single = ev.calibrate(systems["a"], key, speakers="/")
    costs = []
    for result in (calibrated, fused, single):
        costs.append(ev.cllr(result.scores, key))
    assert costs[1] < costs[2]
    assert max(costs) < 1


def test_every_speaker_has_a_row(trials):
    systems, key, _ = trials
    table = ev.per_speaker(systems["b"], key, speakers="/")
    assert len(table.speaker) == 12


def test_embeddings_come_from_a_mapping_and_are_sliced(vectors):
    embeddings = ev.Embeddings.from_dict(vectors, speakers="/")
    mask = embeddings.speakers != "id0"
    assert len(embeddings[mask]) == 36
    assert set(embeddings[mask].speakers) == {f"id{number}" for number in range(1, 10)}


def test_a_backend_is_trained_on_embeddings_and_scores_arrays(vectors):
    embeddings = ev.Embeddings.from_dict(vectors, speakers="/")
    backend = train_chain(embeddings, "lda:5,plda")
    same = backend.score(vectors["id1/0.wav"][None], vectors["id1/1.wav"][None])
    other = backend.score(vectors["id1/0.wav"][None], vectors["id2/1.wav"][None])
    assert np.ravel(same) > np.ravel(other)


def test_features_of_samples_in_memory():
    rate = 8000
    samples = 0.1 * np.random.default_rng(2).normal(size=rate)
    config = spkver.features.FeatureConfig(
        preset="telephone", sdc="7-1-3-7", normalisation="cmvn_sliding", vad="none"
    )
    frames = spkver.features.compute(samples, rate, config)
    assert frames.shape[1] == config.dimension
