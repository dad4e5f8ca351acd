"""Classic attackers: their configuration, which chain a training set carries, its utterances and sessions."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.embeddings import Embeddings
from spkbase.errors import ConfigError
from spkver.attackers import attacker_config
from spkver.attackers.chain_choice import fitting_chain
from spkver.attackers.lists import choose_utterances
from spkver.attackers.sources import cut_sessions
from spkver.backend import format_chain
from spkver.features import Frames

LDA = "[centre, length, pca: {}, lda: {{rank: {}, shrink: 0.2}}, length, cosine, snorm]"


def test_attackers_are_declared_without_training_data():
    """A run that is up to date declares all, and is to cost next to nothing."""
    code = "import sys; import spkver.attackers.registry; print({'scipy', 'sklearn', 'librosa'} & sys.modules.keys())"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "set()\n"
    )


def test_settings_override_the_file_which_overrides_values_and_preset(tmp_path):
    file = tmp_path / "attacker.yaml"
    file.write_text("ubm: {components: 64}\nmap: {relevance: 9}\n")
    values = {
        "ubm": {"components": 32, "variance_floor": 0.5},
        "chains": ["cosine"],
        "name": "mine",
    }
    config = attacker_config("gmm-svm", file=file, settings=["map.relevance=11"], values=values)
    assert (config.name, config.chains) == ("mine", ("cosine",))
    assert (config.ubm.components, config.ubm.variance_floor, config.map.relevance) == (
        64,
        0.5,
        11.0,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("kind=svm", "unknown configuration key 'kind'"),
        ("chains=[centre,whitten]", "there is no step 'whitten'"),
        ("chains=[coral]", "coral adapts to vectors of another domain"),
        (
            "training.utterances=1",
            "training.utterances is 1: expected a whole number of at least 2",
        ),
        (
            "training.session_seconds=0",
            "training.session_seconds is 0.0: expected a number above 0",
        ),
        ("name=../x", "name is '../x': expected the name of a folder"),
    ],
)
def test_bad_values_are_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        attacker_config("gmm-ubm", settings=[settings])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("preset", "speakers", "sessions", "utterances", "expected"),
    [
        ("supervector-cosine", 60, 5, 120, LDA.format(250, 59)),
        ("supervector-cosine", 60, 2, 120, LDA.format(119, 59)),
        ("supervector-cosine", 60, 5, 119, "[centre, nap: 20, length, cosine, snorm]"),
        ("supervector-cosine", 49, 5, 1000, "[centre, nap: 20, length, cosine, snorm]"),
        ("supervector-cosine", 29, 5, 1000, "[centre, nap: 20, length, cosine]"),
        ("supervector-cosine", 6, 2, 12, "[centre, nap: 6, length, cosine]"),
        ("supervector-cosine", 6, 1, 6, "[centre, length, cosine]"),
        ("gmm-svm", 6, 1, 6, "[centre, length, svm: {balanced: true, most: 1000}]"),
    ],
)
def test_the_first_chain_that_the_training_set_supports_is_chosen(
    preset, speakers, sessions, utterances, expected
):
    names = np.repeat([f"s{number}" for number in range(speakers)], sessions).astype(object)
    ids = np.array([f"u{number}" for number in range(len(names))], object)
    vectors = Embeddings(ids, names, np.random.default_rng(0).normal(size=(len(names), 400)))
    assert (
        format_chain(fitting_chain(preset, attacker_config(preset).chains, vectors, utterances))
        == expected
    )


@pytest.mark.parametrize("limit", [3, 7, 19, 500, None])
def test_utterances_are_spread_evenly_in_any_order(limit):
    counts = {"a": 12, "b": 2, "c": 6}
    every = {
        f"{speaker}-{number:03d}": speaker
        for speaker, count in counts.items()
        for number in range(count)
    }
    chosen = choose_utterances(every, limit=limit, seed=1)
    assert (
        choose_utterances(dict(reversed(every.items())), limit=limit, seed=1)
        == chosen
        == sorted(chosen)
    )
    assert len(chosen) == len(set(chosen)) == min(limit or 20, 20)
    taken = Counter(utterance[0] for utterance in chosen)
    # a speaker with at least two fewer than the largest number has all of them selected
    assert all(
        taken[speaker] >= min(count, max(taken.values()) - 1) for speaker, count in counts.items()
    )
    # a larger limit extends the choice and does not replace it
    assert limit is None or set(chosen) <= set(choose_utterances(every, limit=limit + 5, seed=1))
    assert limit not in (3, 7) or choose_utterances(every, limit=limit, seed=2) != chosen


@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=12), st.one_of(st.none(), st.floats(0.5, 200))
)
def test_every_frame_belongs_to_one_session_of_about_the_given_length(lengths, size):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    names = np.array([f"u{number:02d}" for number in range(len(lengths))], object)
    frames = Frames(names, offsets, np.arange(offsets[-1], dtype=np.float32)[:, None])
    sessions, recordings = cut_sessions(frames, size)
    np.testing.assert_array_equal(
        np.concatenate([sessions.of(name) for name in sessions.ids]), frames.values
    )
    for name, recording in zip(sessions.ids, recordings, strict=True):
        (start,) = sessions.of(name)[0] - frames.of(recording)[0]
        assert name == f"{recording} {start:.0f}"
        assert np.isin(sessions.of(name), frames.of(recording)).all()
    pieces = np.diff(sessions.offsets)
    assert pieces.min() > 0
    if size is None:
        assert pieces.tolist() == lengths
    else:  # equal pieces; shorter recordings stay whole
        assert pieces.max() <= 1.5 * size + 1
        assert all(size * 0.5 - 1 <= piece or piece in lengths for piece in pieces)
