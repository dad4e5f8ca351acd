"""SIDEKIT's feature files in place of ours, and ours for SIDEKIT."""

import shutil

import numpy as np
import pytest
from command_lines import passes

from spkbase.errors import DataError
from spkver.features import (
    FeatureConfig,
    export_sidekit,
    extract_features,
    import_sidekit,
    load_frames,
    read_feature_table,
)
from spkver.sidekit.features import SidekitFeatures, write_feature_file

CONFIG = FeatureConfig()


def write(folder, name, n_frames=40, n_cepstra=19, **changes):
    rng = np.random.default_rng(n_frames)
    arrays = {
        "cep": rng.standard_normal((n_frames, n_cepstra)).astype(np.float32),
        "energy": rng.standard_normal(n_frames).astype(np.float32),
        "vad": rng.random(n_frames) < 0.7,
        **changes,
    }
    write_feature_file(folder / f"{name}.h5", {name: SidekitFeatures(**arrays)})
    return arrays


def test_exported_features_are_imported_equal(tmp_path):
    arrays = {
        name: write(tmp_path / "in", name, count)
        for name, count in (("b/b_01", 30), ("a/a_01", 50))
    }
    import_sidekit(tmp_path / "in", arrays, CONFIG, tmp_path / "store.h5")
    table = read_feature_table(tmp_path / "store.h5")
    assert table.ids.tolist() == ["a/a_01", "b/b_01"]
    for row, name in enumerate(table.ids):
        for ours, key in zip(table.of(row), ("cep", "energy", "vad"), strict=True):
            np.testing.assert_array_equal(ours, arrays[name][key])
    passes("features", "export", tmp_path / "store.h5", tmp_path / "out")
    import_sidekit(tmp_path / "out", arrays, CONFIG, tmp_path / "again.h5")
    again = read_feature_table(tmp_path / "again.h5")
    np.testing.assert_array_equal(again.cepstra, table.cepstra)
    np.testing.assert_array_equal(again.speech, table.speech)
    assert export_sidekit(tmp_path / "store.h5", tmp_path / "out") == 2
    # the keys that they were made with are unknown here
    load_frames(tmp_path / "store.h5", FeatureConfig(vad_snr=10.0), folder=tmp_path)


def test_extraction_takes_the_files_that_the_configuration_names(tmp_path):
    arrays = {name: write(tmp_path / "in", name, count) for name, count in (("b", 30), ("a", 50))}
    config, recordings = (
        FeatureConfig(files=str(tmp_path / "in")),
        dict.fromkeys(arrays, tmp_path / "no.wav"),
    )
    table = extract_features(recordings, config, tmp_path / "store.h5")
    np.testing.assert_array_equal(table.of(0)[0], arrays["a"]["cep"])
    with pytest.raises(DataError, match="no features of recording 'c'"):
        extract_features({"c": tmp_path / "no.wav"}, config, tmp_path / "other.h5")


@pytest.mark.parametrize("form", ["none", "percentile", "htk"])
def test_all_three_forms_of_files_give_frames(shared, tmp_path, form):
    golden = np.load(shared / "golden/sidekit/features.npz")
    for name in ("syn_a", "libri"):
        shutil.copyfile(
            shared / f"golden/sidekit/h5/feat_{form}_{name}.h5", tmp_path / f"{name}.h5"
        )
    config = FeatureConfig(dtype="float64")
    import_sidekit(tmp_path, ["syn_a", "libri"], config, tmp_path / "store.h5")
    frames = load_frames(read_feature_table(tmp_path / "store.h5"), config, folder=tmp_path)
    for name in ("syn_a", "libri"):
        if form == "htk":
            # 16 bits: the cepstra are off by 7e-4 at most, so the frames are nearly those of the lossless form
            assert np.abs(frames.of(name) - golden[f"{name}/post_none_vad"]).max() < 0.01
        else:
            np.testing.assert_allclose(
                frames.of(name), golden[f"{name}/post_{form}_vad"], atol=1e-9
            )


def test_all_problems_are_reported_together_and_nothing_is_written(tmp_path):
    write(tmp_path, "good")
    write(tmp_path, "narrow", n_cepstra=12)
    write(tmp_path, "silent", vad=np.zeros(40, bool))
    write_feature_file(
        tmp_path / "bare.h5", {"bare": SidekitFeatures(cep=np.zeros((9, 19), np.float32))}
    )
    (tmp_path / "broken.h5").write_bytes(b"no HDF5")
    names = ["good", "narrow", "silent", "bare", "broken"]
    with pytest.raises(DataError) as caught:
        import_sidekit(tmp_path, names, CONFIG, tmp_path / "store.h5")
    message = str(caught.value)
    for words in (
        "4 problems",
        "12 cepstra",
        "0 frames of speech",
        "lacks energy, vad",
        "broken.h5",
    ):
        assert words in message
    with pytest.raises(DataError, match=r"2 problems(.|\n)*nor\.h5(.|\n)*nor2\.h5"):
        import_sidekit(tmp_path, ["good", "nor", "nor2"], CONFIG, tmp_path / "store.h5")
    assert not (tmp_path / "store.h5").exists()
