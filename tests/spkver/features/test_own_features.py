"""Features and speech from a user's functions, RTTM, single channels, and samples in memory."""

import numpy as np
import pytest
import soundfile

from spkbase.errors import ConfigError, DataError
from spkbase.work import Work
from spkver.features import (
    FeatureConfig,
    Frames,
    OtherFeaturesError,
    check_recordings,
    compute,
    extract_features,
    load_frames,
)
from spkver.features.vad import read_rttm
from spkver.sklearn import GmmUbm

OWN = """
import numpy as np

def levels(samples, rate):
    frames = np.lib.stride_tricks.sliding_window_view(samples, round(0.025 * rate))[:: round(0.01 * rate)]
    return np.column_stack([np.abs(frames).max(axis=1), frames.std(axis=1)])

def loud(samples, rate):
    return levels(samples, rate)[:, 1] > 0.05

def short(samples, rate):
    return levels(samples, rate)[1:]

def numbers(samples, rate):
    return levels(samples, rate)[:, 0]
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    return path


@pytest.fixture
def audio(tmp_path):
    draw = np.random.default_rng(0)
    envelope = np.repeat([0.01, 0.1], 8000)
    samples = envelope[:, None] * draw.normal(size=(16000, 2)).clip(-3, 3)
    path = tmp_path / "call.wav"
    soundfile.write(path, samples, 16000, subtype="FLOAT")
    return path


def frames_of(recordings, config, folder):
    table = extract_features(recordings, config, folder / "f.h5", work=Work(jobs=1))
    return load_frames(table, config, folder=folder, work=Work(jobs=1))


def test_own_functions_give_cepstra_and_speech(own, audio, tmp_path):
    names = {"function": f"{own}:levels", "vad": f"{own}:loud"}
    config = FeatureConfig(
        **names, n_cepstra=2, log_energy=False, deltas=0, rasta=False, normalisation="none"
    )
    frames = frames_of({"a": (audio, 1)}, config, tmp_path).of("a")
    samples = soundfile.read(audio, dtype="float32")[0][:, 1]
    space = {}
    exec(OWN, space)
    expected = space["levels"](samples, 16000)[space["loud"](samples, 16000)]
    np.testing.assert_array_equal(frames, expected)
    assert 45 < len(frames) < 55
    # n_filters does not limit it
    assert FeatureConfig(function=f"{own}:levels", n_cepstra=56).dimension == 171


def test_a_changed_function_is_another_extraction(own):
    config = FeatureConfig(function=f"{own}:levels", vad=f"{own}:loud")
    before = config.extraction()
    assert config.extraction() == before
    own.write_text(OWN + "\n# another\n")
    after = config.extraction()
    assert after["function_files"] != before["function_files"]
    assert after["vad_files"] != before["vad_files"]


@pytest.mark.parametrize("name", ["function", "vad"])
def test_frames_of_an_edited_function_are_refused(name, own, audio, tmp_path):
    values = {name: f"{own}:{'levels' if name == 'function' else 'loud'}"}
    config = FeatureConfig(n_cepstra=2, **values)
    frames_of({"a": (audio, 0)}, config, tmp_path)
    own.write_text(OWN.replace("0.05", "0.04"))
    with pytest.raises(OtherFeaturesError, match=rf"features\.{name}=\['mine\.py:l"):
        load_frames(tmp_path / "f.h5", config, folder=tmp_path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"function": "short"}, r"shape \(97, 2\), expected finite numbers of shape \(98, 2\)"),
        ({"function": "numbers"}, r"shape \(98,\), expected finite numbers of shape \(98, 2\)"),
        ({"vad": "numbers"}, r"expected booleans of shape \(98,\)"),
        ({"function": "nothing"}, "has no function 'nothing'"),
        ({"vad": "nothing"}, "has no function 'nothing'"),
    ],
)
def test_unusable_functions_raise(values, message, own, audio, tmp_path):
    names = {name: f"{own}:{function}" for name, function in values.items()}
    config = FeatureConfig(n_cepstra=2, **names)
    with pytest.raises((DataError, ConfigError), match=message):
        extract_features({"a": (audio, 0)}, config, tmp_path / "f.h5", work=Work(jobs=1))


def test_channels_of_one_file_are_recordings(audio, tmp_path):
    config = FeatureConfig(vad="none")
    both = frames_of({"left": (audio, 0), "right": (str(audio), 1)}, config, tmp_path)
    for channel, name in enumerate(("left", "right")):
        alone = frames_of({name: audio}, FeatureConfig(vad="none", channel=channel), tmp_path)
        np.testing.assert_array_equal(both.of(name), alone.of(name))
    assert not np.array_equal(both.of("left"), both.of("right"))
    assert check_recordings({"left": (audio, 0)}, config, work=Work(jobs=1)) == 1.0
    with pytest.raises(DataError, match="no channel 2: the file has 2"):
        check_recordings({"left": (audio, 2)}, config, work=Work(jobs=1))


def test_samples_in_memory_have_the_frames_of_their_file(audio, tmp_path):
    config = FeatureConfig(vad="energy", sdc="7-1-3-7", dither=1e-3)
    expected = frames_of({"a": (audio, 0)}, config, tmp_path)
    samples = soundfile.read(audio, dtype="float32")[0][:, 0]
    found = compute(samples, 16000, config, name="a")
    np.testing.assert_array_equal(found, expected.of("a"))
    again = Frames.from_dict({"a": found})
    np.testing.assert_array_equal(again.values, expected.values)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (np.zeros((400, 2)), 16000, "of shape"),
        (np.zeros(16000, np.int16), 16000, "divide 16-bit samples by 32768"),
        (np.full(16000, np.nan), 16000, "expected finite samples"),
        (np.full(16000, -8000.0), 16000, "samples reach 8000, .*divide 16-bit samples by 32768"),
        (np.zeros(16000), 8000, "the samples have 8000 Hz, the features 16000 Hz"),
        (np.zeros(300), 16000, "300 samples are too short"),
    ],
)
def test_unusable_samples_raise(samples, rate, message):
    with pytest.raises(DataError, match=message):
        compute(samples, rate)


def test_samples_a_little_above_full_scale_pass():
    samples = 1.9 * np.random.default_rng(0).uniform(-1, 1, 16000)
    assert len(compute(samples, 16000, FeatureConfig(vad="none"))) == 98


TRANSPOSED = {
    "from_dict": lambda arrays: Frames.from_dict(dict(enumerate(arrays))),
    "GmmUbm": lambda arrays: GmmUbm(1).fit(arrays),
}


@pytest.mark.parametrize("call", TRANSPOSED.values(), ids=TRANSPOSED)
def test_transposed_frames_are_noticed(call, caplog):
    arrays = list(np.random.default_rng(0).normal(size=(3, 13, 90)))
    call(arrays)
    (message,) = caplog.messages
    assert "fewer frames than dimensions: transposed?" in message
    with pytest.raises(DataError, match=r"of 70 dimensions, .* have 90 .*transposed\?"):
        call([arrays[0], arrays[1][:, :70]])
    caplog.clear()
    call([arrays[0].T, arrays[1].T, arrays[2].T[:8]])  # one short recording
    assert not caplog.messages


RTTM = """;; a comment
SPKR-INFO x 1 <NA> <NA> <NA> unknown anna <NA>
SPEAKER call 1 0.50 0.10 <NA> <NA> anna <NA> <NA>
SPEAKER call 1 0.55 0.15 <NA> <NA> bert <NA> <NA>
SPEAKER other 1 0 0.1 <NA> <NA> bert <NA> <NA>
"""


@pytest.mark.parametrize("layout", ["one file", "a file each"])
def test_speech_is_read_from_rttm(layout, audio, tmp_path):
    place = tmp_path / "all.rttm"
    if layout == "a file each":
        place = tmp_path / "labels"
        (place / "tel").mkdir(parents=True)
        (place / "tel" / "call.rttm").write_text(RTTM)
    else:
        place.write_text(RTTM)
    config = FeatureConfig(vad="labels", labels_dir=str(place))
    table = extract_features({"tel/call": (audio, 0)}, config, tmp_path / "f.h5", work=Work(jobs=1))
    assert np.flatnonzero(table.speech).tolist() == list(range(50, 70))


def test_damaged_rttm_files_raise(tmp_path):
    path = tmp_path / "a.rttm"
    with pytest.raises(DataError, match=r"a\.rttm: label file cannot be read"):
        read_rttm(path, "a", 9, shift_seconds=0.01)
    for line in ("SPEAKER a 1 x 1", "SPEAKER a 1 0", "SPEAKER a 1 -1 2", "SPEAKER a 1 0 inf"):
        path.write_text(f"SPEAKER a 1 0 1\n{line}\n")
        with pytest.raises(DataError, match=r"a\.rttm:2: expected 'SPEAKER recording"):
            read_rttm(path, "a", 9, shift_seconds=0.01)
    path.write_text("SPEAKER a 1 0 1\n")
    with pytest.raises(DataError, match="no segment of recording 'b', but of a"):
        read_rttm(path, "b", 9, shift_seconds=0.01)
    assert read_rttm(path, "a", 9, shift_seconds=0.5).tolist() == [True] * 2 + [False] * 7
