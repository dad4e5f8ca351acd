"""The recipes that know the text: their stages, what depends on what, and what they refuse."""

import re

import numpy as np
import pytest
from recipe_runs import datasets, made, refused, results_of

from evaluation.formats import read_scores
from spkbase.hdf5 import read_arrays
from spkver.mixture import log_likelihood, read_ubm
from spkver.vectors import open_supervectors

pytestmark = pytest.mark.whole

WORDS = {"hidden_markov__states": 3, "hidden_markov__components": 2, "hidden_markov__rounds": 2}
SETTINGS = {
    "hilam": {**WORDS, "nap__rank": 0},
    "ivector_hmm": {
        **WORDS,
        "nap__rank": 0,
        "total_variability__rank": 12,
        "total_variability__rounds": 2,
    },
}
COMMON = {
    "features",
    "ubm",
    "models of words",
    "words of enroll",
    "words of test",
    "scores of text",
}
STAGES = {
    "hilam": {
        *COMMON,
        *("statistics of speakers", "supervectors of speakers", "states of sentences"),
        *("scores of hilam", "scores of hilam-text"),
    },
    "ivector_hmm": {
        *COMMON,
        *("words of training", "states of states", "total variability"),
        *(
            f"{kind} of {name}"
            for kind in ("statistics", "vectors")
            for name in ("training", "enroll", "test")
        ),
        *("backend of ivector-hmm", "scores of ivector-hmm"),
    },
}


@pytest.mark.parametrize("name", ["hilam", "ivector_hmm"])
def test_stages_resume_and_bits_do_not_depend_on_jobs(recipe, tiny, tmp_path, name):
    outcome = recipe(
        tiny, tmp_path / "out", name=name, **SETTINGS[name], trials__nontarget="[TW, IC, IW]"
    )
    assert outcome.status == 0, outcome.err
    assert made(outcome.err) == STAGES[name]
    again = recipe(
        tiny, tmp_path / "out", name=name, **SETTINGS[name], trials__nontarget="[TW, IC, IW]"
    )
    assert made(again.err) == set()
    systems = results_of(tmp_path / "out")["systems"]
    assert [*systems] == [
        "text",
        name.replace("_", "-"),
        *(["hilam-text"] if name == "hilam" else []),
    ]
    for system in systems.values():
        assert set(system["trial_types"]) == {"TC-TW", "TC-IC", "TC-IW"}
    # the sentences sound very different
    assert systems["text"]["trial_types"]["TC-TW"]["eer"]["rocch"] < 0.1
    two = recipe(
        tiny,
        tmp_path / "two",
        "--jobs",
        "2",
        name=name,
        **SETTINGS[name],
        trials__nontarget="[TW, IC, IW]",
    )
    assert two.status == 0
    assert datasets(tmp_path / "out") == datasets(tmp_path / "two")


def test_a_sentence_is_scored_by_the_best_path_minus_the_background(recipe, tiny, tmp_path):
    """With one state there is one path, so a score is a ratio of two mixtures."""
    settings = {**SETTINGS["hilam"], "hidden_markov__states": 1}
    assert (
        recipe(tiny, tmp_path / "out", name="hilam", **settings, features__dtype="float64").status
        == 0
    )
    ubm, scores = (
        read_ubm(tmp_path / "out/gmm/ubm.h5"),
        read_scores(tmp_path / "out/scores/hilam.h5"),
    )
    sentences = open_supervectors(tmp_path / "out/data/sv_sentences.h5")
    row_of = {
        (model, word): row
        for row, (model, word) in enumerate(zip(sentences.models, sentences.segments, strict=True))
    }
    from spkver.features import FeatureConfig, load_frames, read_feature_table

    config = FeatureConfig(preset="sidekit", vad="snr", dtype="float64")
    frames = load_frames(read_feature_table(tmp_path / "out/features.h5"), config, folder=tmp_path)
    for (model, segment), value in [*zip(scores.pairs(), scores.values, strict=True)][::7]:
        means = np.asarray(sentences.vectors)[row_of[model, model[-3:]]].reshape(ubm.means.shape)
        adapted = type(ubm.mixture)(ubm.weights, means.astype(float), ubm.variances)
        tested = np.asarray(frames.of(segment))
        expected = (log_likelihood(tested, adapted) - log_likelihood(tested, ubm.mixture)).mean()
        assert value == pytest.approx(expected, abs=1e-6)


def test_only_the_text_is_scored_against_the_mixture_of_the_speaker(recipe, tiny, tmp_path):
    settings = SETTINGS["hilam"] | {
        "trials__nontarget": "[TW, IC, IW]",
        "features__dtype": "float64",
    }
    assert recipe(tiny, tmp_path / "out", name="hilam", **settings).status == 0
    ubm, speakers = (
        read_ubm(tmp_path / "out/gmm/ubm.h5"),
        open_supervectors(tmp_path / "out/data/sv_speakers.h5"),
    )
    scores, text = (
        read_scores(tmp_path / f"out/scores/{name}.h5") for name in ("hilam", "hilam-text")
    )
    means = dict(zip(speakers.models, np.asarray(speakers.vectors, float), strict=True))
    from spkver.features import FeatureConfig, load_frames, read_feature_table

    config = FeatureConfig(preset="sidekit", vad="snr", dtype="float64")
    frames = load_frames(read_feature_table(tmp_path / "out/features.h5"), config, folder=tmp_path)
    for (model, segment), value, before in [
        *zip(scores.pairs(), text.values, scores.values, strict=True)
    ][::7]:
        own = type(ubm.mixture)(
            ubm.weights, means[model.split("_")[0]].reshape(ubm.means.shape), ubm.variances
        )
        tested = np.asarray(frames.of(segment))
        ratio = (log_likelihood(tested, own) - log_likelihood(tested, ubm.mixture)).mean()
        assert value == pytest.approx(before - ratio, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"hidden_markov__components": 2},
            {"models of words", "words of enroll", "words of test", "scores of text"},
        ),
        ({"ubm__components": 4}, {"ubm", "statistics of speakers", "supervectors of speakers"}),
        ({"map__relevance": 5}, {"supervectors of speakers"}),
    ],
)
def test_only_stages_that_depend_on_a_setting_are_redone(
    recipe, tiny, tmp_path, settings, expected
):
    before = {**SETTINGS["hilam"], "hidden_markov__components": 1}
    assert recipe(tiny, tmp_path / "out", name="hilam", **before).status == 0
    outcome = recipe(tiny, tmp_path / "out", name="hilam", **(before | settings))
    assert made(outcome.err) == expected | {
        "states of sentences",
        "scores of hilam",
        "scores of hilam-text",
    }


def test_recordings_are_cut_into_words_and_statistics_use_all_their_frames(recipe, tiny, tmp_path):
    assert recipe(tiny, tmp_path / "out", name="ivector_hmm", **SETTINGS["ivector_hmm"]).status == 0
    words = read_arrays(tmp_path / "out/data/words_enroll.h5")
    statistics = read_arrays(tmp_path / "out/data/stat_enroll.h5")
    assert set(words["words"]) == {"001", "002"}
    np.testing.assert_allclose(
        statistics["stat0"].sum(axis=1), words["stop"] - words["start"], rtol=1e-4
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"ubm__covariance": "full"}, "the states of words need diagonal covariances"),
        (
            {"hidden_markov__components": 3},
            "hidden_markov.components is 3: expected a power of two",
        ),
        ({"given__statistics": "/tmp"}, "given.statistics has no place in this recipe"),
        ({"hidden_markov__states": 500}, "has 1 words of 500 states"),
    ],
)
def test_bad_settings_are_refused(recipe, tiny, tmp_path, settings, expected):
    refused(
        recipe(tiny, tmp_path / "out", name="hilam", **(SETTINGS["hilam"] | settings)),
        re.escape(expected),
    )
