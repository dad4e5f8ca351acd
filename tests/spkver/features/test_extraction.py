"""From audio files to frames: bits that depend on the recording alone, and options that do what they say."""

import shutil
from dataclasses import replace

import h5py
import librosa
import numpy as np
import pytest
import soundfile

from spkbase.arrays import StoredArray
from spkbase.errors import DataError, Problems
from spkbase.work import Work, one_blas_thread
from spkver.features import PRESETS, FeatureConfig, OtherFeaturesError, load_frames
from spkver.features.extraction import (
    check_recordings,
    extract_features,
    features_of_signals,
    recording_generator,
)

CONFIG = FeatureConfig()
LIBROSA = FeatureConfig(**{**PRESETS["librosa"], "preset": "librosa"})


def speech(seed, n, rate=16000):
    """Harmonics under an envelope, with pauses and a little noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(n) / rate
    pitch = rng.uniform(90, 200) * (1 + 0.05 * np.sin(2 * np.pi * 3 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = sum(np.sin(k * phase) * rng.uniform(0.2, 1) / k for k in range(1, 15))
    envelope = np.clip(np.sin(2 * np.pi * 2 * time + 0.3), 0, 1)
    return 0.1 * voice * envelope + 2e-4 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audio")
    found = {}
    for seed in range(40):
        name = f"m{seed % 5:03d}/rec_{seed:02d}" if seed else "ü/日本"
        found[name] = folder / f"{seed}.wav"
        soundfile.write(found[name], speech(seed, 8000 + 517 * (seed % 7)), 16000)
    return found


def extract(recordings, path, config=CONFIG, **options):
    return extract_features(recordings, config, path, **{"work": Work(jobs=1), **options})


def arrays(path):
    with h5py.File(path) as file:
        return {
            name: str(file[name][()].tolist()).encode()
            if name == "ids"
            else file[name][()].tobytes()
            for name in file
        }


@pytest.fixture(scope="module")
def table(recordings, tmp_path_factory):
    return extract(recordings, tmp_path_factory.mktemp("features") / "features.h5")


def test_a_store_holds_sorted_contiguous_features(recordings, table, tmp_path):
    again = extract(dict(reversed(recordings.items())), tmp_path / "a.h5")
    assert again.ids.tolist() == sorted(recordings) == table.ids.tolist()
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["cep"].dtype == np.float32
        assert file["cep"].chunks is None, "contiguous, so that it can be mapped"
    for place, name in enumerate(table.ids):
        n_samples = soundfile.info(recordings[name]).frames
        cepstra, energy, labels = table.of(place)
        assert cepstra.shape == (1 + (n_samples - 400) // 160, 19)
        assert energy.shape == labels.shape == (len(cepstra),)
        assert np.isfinite(cepstra).all()
        assert labels.any()


def test_a_store_never_replaces_a_recording_and_needs_at_least_one(tmp_path):
    soundfile.write(tmp_path / "a.wav", speech(0, 8000), 16000)
    (tmp_path / "link.wav").symlink_to("a.wav")
    before = (tmp_path / "a.wav").read_bytes()
    for name in ("a.wav", "link.wav"):
        with pytest.raises(DataError, match="is one of the recordings"):
            extract({"a": tmp_path / "a.wav"}, tmp_path / name)
    assert (tmp_path / "a.wav").read_bytes() == before
    with pytest.raises(DataError, match="expected recordings, got none"):
        extract({}, tmp_path / "x.h5")
    assert not (tmp_path / "x.h5").exists()


def test_bits_depend_only_on_the_recording(recordings, table, tmp_path):
    """Neither on order, batch, neighbours, workers nor on the name of the file."""
    names = list(recordings)
    for number, chosen in enumerate([names[7:8], names[30:] + names[:4]]):
        part = extract({name: recordings[name] for name in chosen}, tmp_path / f"{number}.h5")
        for place, name in enumerate(part.ids):
            for ours, expected in zip(
                part.of(place), table.of(table.ids.tolist().index(name)), strict=True
            ):
                np.testing.assert_array_equal(ours, expected)


def test_bits_do_not_depend_on_jobs(recordings, tmp_path):
    some = dict(list(recordings.items())[:40])
    extract(some, tmp_path / "one.h5", work=Work(jobs=1))
    extract(some, tmp_path / "two.h5", work=Work(jobs=2))
    assert arrays(tmp_path / "one.h5") == arrays(tmp_path / "two.h5")


def one(config, *, seed=0, signal=None):
    signal = speech(3, 16000).astype(config.dtype) if signal is None else signal
    found = features_of_signals([signal], [recording_generator("a", seed)], config, names=["a"])[0]
    return found.cepstra, found.log_energy, found.speech


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", 0.032),
        ("high_frequency", 4000.0),
        ("n_cepstra", 12),
        ("sample_scale", 1.0),
        ("dither", 1e6),
        ("dtype", "float64"),
        ("engine", "librosa"),
        ("vad", "energy"),
        ("vad_snr", 10.0),
        ("rate", 15000),
    ],
)
def test_every_option_of_the_extraction_has_an_effect(name, value):
    before, after = one(CONFIG), one(replace(CONFIG, **{name: value}))
    same = [x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(before, after, strict=True)]
    assert not all(same)
    if name.startswith("vad"):
        assert same == [True, True, False]


@pytest.mark.parametrize(
    ("name", "value", "dimension"),
    [
        ("log_energy", False, 57),
        ("rasta", False, 60),
        ("deltas", 0, 20),
        ("normalisation", "cms", 60),
        ("normalisation", "none", 60),
        ("keep_all", True, 60),
    ],
)
def test_every_option_of_the_post_processing_has_an_effect(table, tmp_path, name, value, dimension):
    default = load_frames(table, CONFIG, folder=tmp_path)
    changed = load_frames(table, replace(CONFIG, **{name: value}), folder=tmp_path)
    assert changed.dimension == dimension
    assert not np.array_equal(default.values, changed.values)
    if name == "keep_all":
        np.testing.assert_array_equal(changed.offsets, table.offsets)


OTHER_EXTRACTION = {
    "engine": "librosa",
    "rate": 15000,
    "resample": True,
    "channel": 0,
    "window": 0.032,
    "shift": 0.0125,
    "pre_emphasis": 0.9,
    "n_filters": 30,
    "low_frequency": 100.0,
    "high_frequency": 4000.0,
    "n_cepstra": 13,
    "c0": True,
    "lifter": 22.0,
    "sample_scale": 1.0,
    "dither": 0.0,
    "vad": "energy",
    "vad_snr": 10.0,
    "vad_alpha": 0.5,
    "vad_percentile": 20.0,
    "min_speech_frames": 9,
    "dtype": "float64",
}


@pytest.mark.parametrize("name", OTHER_EXTRACTION)
def test_frames_of_another_extraction_are_refused(table, tmp_path, name):
    other = replace(CONFIG, **{name: OTHER_EXTRACTION[name]})
    with pytest.raises(
        OtherFeaturesError, match=f"features.h5: .* features.{name}=.* has {OTHER_EXTRACTION[name]}"
    ):
        load_frames(table, other, folder=tmp_path)


def test_every_key_of_the_extraction_has_a_case():
    elsewhere = {"function", "files", "labels_dir"}
    assert OTHER_EXTRACTION.keys() == CONFIG.extraction().keys() - elsewhere


def test_frames_of_another_preset_are_refused(table, tmp_path):
    with pytest.raises(
        OtherFeaturesError, match=r"engine=spkver \(the configuration has kaldi\), "
    ):
        load_frames(table, FeatureConfig(preset="kaldi"), folder=tmp_path)


def test_a_store_without_a_record_loads_with_any_settings_except_size(table, tmp_path):
    path = shutil.copy(table.cepstra.path, tmp_path)
    with h5py.File(path, "a") as file:
        del file.attrs["extraction"]
    expected = load_frames(table, CONFIG, folder=tmp_path).values
    frames = load_frames(path, replace(CONFIG, vad_snr=10.0), folder=tmp_path)
    np.testing.assert_array_equal(frames.values, expected)
    with pytest.raises(OtherFeaturesError, match=r"n_cepstra=19 \(the configuration has 13\)"):
        load_frames(path, replace(CONFIG, n_cepstra=13), folder=tmp_path)


@pytest.mark.parametrize("record", ["{", "3", "[1]", 5, [1, 2]])
def test_a_damaged_record_raises(table, tmp_path, record):
    path = shutil.copy(table.cepstra.path, tmp_path)
    with h5py.File(path, "a") as file:
        file.attrs["extraction"] = record
    with pytest.raises(DataError, match=r"features\.h5"):
        load_frames(path, CONFIG, folder=tmp_path)


def test_frames_that_do_not_fit_memory_are_kept_in_a_file(table, tmp_path):
    in_memory = load_frames(table, CONFIG, folder=tmp_path, work=Work(jobs=1))
    mapped = load_frames(table, replace(CONFIG, memory_gb=1e-6), folder=tmp_path, work=Work(jobs=2))
    assert isinstance(mapped.values, StoredArray)
    assert isinstance(in_memory.values, np.ndarray)
    np.testing.assert_array_equal(mapped.values, in_memory.values)


def test_speech_is_read_from_labels(recordings, tmp_path):
    name = list(recordings)[1]
    config = replace(CONFIG, vad="labels", labels_dir=str(tmp_path))
    path = tmp_path / f"{name}.lbl"
    path.parent.mkdir()
    path.write_text("0.05 0.15 speech\n")
    found = extract({name: recordings[name]}, tmp_path / "a.h5", config)
    assert np.flatnonzero(found.speech).tolist() == list(range(5, 15))


def test_the_librosa_preset_equals_a_direct_call():
    signal = speech(5, 16000).astype(np.float32)
    expected = librosa.feature.mfcc(
        y=signal,
        sr=16000,
        n_mfcc=20,
        n_fft=512,
        win_length=400,
        hop_length=160,
        n_mels=40,
        fmin=20,
        fmax=8000,
    )
    cepstra, energy, labels = one(LIBROSA, signal=signal)
    assert cepstra.shape == (98, 19)
    # librosa centres frames: its frame t starts at 160 t - 200; ours at 160 t, which is the same for windows that lie
    # 1.25 shifts later, so it is told not to centre and given the same padding
    padded = np.pad(signal, 56)
    # one thread, as ours: with two, some kernels of OpenBLAS change the last bits of products
    with one_blas_thread():
        uncentred = librosa.feature.mfcc(
            y=padded, sr=16000, n_mfcc=20, n_fft=512, win_length=400, hop_length=160, n_mels=40, fmin=20, fmax=8000,
            center=False,
        )  # fmt: skip
    np.testing.assert_array_equal(cepstra, uncentred[1:, :98].T)
    assert abs(np.corrcoef(cepstra[:, 0], expected[1, 1:99])[0, 1]) > 0.9
    frames = np.lib.stride_tricks.sliding_window_view(signal, 400)[::160]
    np.testing.assert_allclose(
        energy, np.log((frames.astype(np.float64) ** 2).sum(axis=1)), rtol=1e-5
    )
    assert labels.any()
    assert not labels.all()


def test_all_headers_are_checked_together(recordings, tmp_path):
    some = dict(list(recordings.items())[:3])
    seconds = sum(soundfile.info(path).duration for path in some.values())
    assert check_recordings(some, CONFIG) == pytest.approx(seconds)
    (tmp_path / "empty.wav").touch()
    soundfile.write(tmp_path / "short.wav", np.ones(1039), 16000)
    soundfile.write(tmp_path / "exact.wav", np.ones(1040), 16000)
    bad = {name: tmp_path / f"{name}.wav" for name in ("empty", "short", "exact", "missing")}
    with pytest.raises(DataError, match="3 problems") as caught:
        check_recordings({**some, **bad}, CONFIG)
    for word in (
        "empty.wav: is empty",
        "short.wav: 1039 samples are too short",
        "missing.wav: no such file",
    ):
        assert word in str(caught.value)
    problems = Problems()
    assert check_recordings({**some, **bad}, CONFIG, problems=problems) > seconds
    assert len(problems.errors) == 3
