"""A pointer of Git LFS, which stands in for a file, is named by every reader."""

import gzip

import numpy as np
import pytest
from command_lines import refused

from evaluation.embeddings import read_embeddings
from evaluation.formats import read_key, read_scores, read_trials
from evaluation.trials import read_speakers
from spkbase.errors import ConfigError, DataError
from spkbase.files import load_json, read_id_list, read_yaml_text
from spkbase.hdf5 import read_arrays
from spkbase.plain_pickle import read_npz, read_pickle, read_torch
from spkver.audio import read_audio
from spkver.backend import read_kaldi_plda
from spkver.extractors.networks import read_network
from spkver.sidekit import read_idmap

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:57d922dd\nsize 37591581\n"
READERS = {
    "scores": read_scores,
    "key": read_key,
    "trials": read_trials,
    "speakers": read_speakers,
    "list": lambda path: read_id_list(path, "id value"),
    "json": load_json,
    "hdf5": read_arrays,
    "npz": read_npz,
    "pickle": read_pickle,
    "torch": read_torch,
    "audio": read_audio,
    "plda": read_kaldi_plda,
    "network": read_network,
    "idmap": read_idmap,
    "yaml": read_yaml_text,
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_reports_git_lfs_pointers(tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(POINTER)
    if name == "network":
        pytest.importorskip("onnxruntime")
    with pytest.raises((DataError, ConfigError), match=r"Git LFS pointer.*git lfs pull"):
        READERS[name](path)


@pytest.mark.parametrize(
    "suffix",
    [".npz", ".npy", ".h5", ".ark", ".scp", ".pt", ".safetensors", ".csv", ".txt", ".pkl", ".mat"],
)
def test_embeddings_of_any_name_are_checked_for_pointers(tmp_path, suffix):
    path = tmp_path / f"e{suffix}"
    path.write_bytes(POINTER)
    for allow_pickle in (True, False):
        with pytest.raises(DataError, match="Git LFS pointer"):
            read_embeddings(path, allow_pickle=allow_pickle)


def test_archives_named_by_a_list_are_checked_for_pointers(tmp_path):
    (tmp_path / "x.ark").write_bytes(POINTER)
    (tmp_path / "x.scp").write_text("u1 x.ark:3\n")
    with pytest.raises(DataError, match=r"x\.ark: is a Git LFS pointer"):
        read_embeddings(tmp_path / "x.scp")


@pytest.mark.parametrize("name", ["s.txt", "s.h5", "s.npz", "s.csv"])
def test_commands_report_git_lfs_pointers(tmp_path, name):
    (tmp_path / name).write_bytes(POINTER)
    assert "is a Git LFS pointer, not the data (run: git lfs pull)" in refused(
        "metrics", "-s", tmp_path / name
    )


def test_compressed_text_is_read_under_any_name(tmp_path):
    (tmp_path / "scores.txt").write_bytes(gzip.compress(b"a b 1\na c 2\n"))
    assert np.array_equal(read_scores(tmp_path / "scores.txt").values, [1.0, 2.0])
