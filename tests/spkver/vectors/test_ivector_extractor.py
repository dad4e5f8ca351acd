"""i-vectors on one's own data by command: trained on a data directory, extracted by ``spkver embed``."""

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.embeddings import read_embeddings
from spkver.audio import write_audio
from spkver.mixture import open_statistics
from spkver.vectors import extract_ivectors, read_total_variability

SIZE = "--set ubm.components=4 --set total_variability.rank=5 --set total_variability.rounds=2 --jobs 1"


def make_directory(folder, rate):
    """A Kaldi data directory of three speakers with three utterances each: coloured noise in bursts."""
    rng, lines = np.random.default_rng(0), []
    folder.mkdir()
    for number in range(9):
        sound = np.convolve(rng.standard_normal(rate), rng.standard_normal(6 + number // 3), "same")
        sound *= 0.05 + (np.sin(np.arange(rate) * 12 / rate) > 0)
        path = folder / f"s{number // 3}-{number % 3}.wav"
        write_audio(path, 0.5 * sound / np.abs(sound).max(), rate)
        lines.append((path.stem, path))
    (folder / "wav.scp").write_text("".join(f"{name} {path}\n" for name, path in lines))
    (folder / "utt2spk").write_text("".join(f"{name} {name[:2]}\n" for name, _ in lines))
    return folder


def run(command):
    return passes(*command.split()).output


@pytest.mark.parametrize("rate", [16000, 8000])
def test_embed_gives_the_vectors_of_the_trained_model(tmp_path, rate):
    data, model = make_directory(tmp_path / "data", rate), tmp_path / "model"
    assert f"i-vectors of 5 dimensions at {rate} Hz" in run(
        f"train {data} --system ivector -o {model} {SIZE}"
    )
    run(f"embed {data} --extractor ivector:{model} --output {tmp_path}/vectors.h5 --jobs 1")
    statistics = open_statistics(model / "work/data/stat_training.h5")
    expected = extract_ivectors(read_total_variability(model / "data/tv.h5"), statistics).vectors
    found = read_embeddings(tmp_path / "vectors.h5")
    assert found.ids.tolist() == statistics.segments.tolist()
    assert found.speakers.tolist() == [name[:2] for name in found.ids]
    np.testing.assert_array_equal(found.vectors, expected)
    other = make_directory(tmp_path / "other", 24000 - rate)  # resampled, with a warning
    command = f"embed {other} --extractor ivector:{model} --output {tmp_path}/other.h5 --jobs 1"
    assert f"9 of 9 recordings are resampled from {24000 - rate} to {rate} Hz" in run(command)


def test_impossible_settings_are_refused(tmp_path):
    data = make_directory(tmp_path / "data", 8000)
    for seed in (0, 1):
        run(
            f"train {data} --system ivector -o {tmp_path}/{seed} --seed {seed} --set features.dither=1e6 {SIZE}"
        )
    (tmp_path / "0/gmm/ubm.h5").write_bytes((tmp_path / "1/gmm/ubm.h5").read_bytes())
    for command, text in (
        (
            f"embed {data} --extractor ivector:{tmp_path} -o v.h5",
            "no trained extractor: config.yaml is missing",
        ),
        (
            f"embed {data} --extractor ivector:{tmp_path}/0 -o v.h5",
            "mixture and matrix do not belong together",
        ),
        (f"train {data} --system ivector -o {tmp_path}/model", "there are only 9 segments"),
    ):
        assert text in refused(*command.split())
