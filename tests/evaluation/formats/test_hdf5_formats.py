"""Lists as SIDEKIT and BOSARIS keep them in HDF5, and the golden samples of both forms."""

import logging

import h5py
import numpy as np
import pytest

from evaluation import formats
from evaluation.trials import Key, Scores, Trials
from spkbase.errors import DataError


def as_dict(listed):
    return dict(
        zip(
            listed.pairs(),
            listed.values if isinstance(listed, Scores) else listed.is_target,
            strict=True,
        )
    )


def test_the_layout_equals_the_documented_one(tmp_path):
    formats.write_scores(
        tmp_path / "s.h5", Scores.from_ids(["m1", "m22"], ["s/1", "s/2"], [0.5, -1.0])
    )
    with h5py.File(tmp_path / "s.h5") as file:
        assert set(file) == {"modelset", "segset", "score_mask", "scores"}
        assert file["modelset"].dtype == "S3"
        # as SIDEKIT reads them
        assert file["modelset"][()].astype("U100").tolist() == ["m1", "m22"]
        assert file["segset"][()].astype("U100").tolist() == ["s/1", "s/2"]
        assert file["score_mask"].dtype == np.int8
        assert file["score_mask"][()].tolist() == [[1, 0], [0, 1]]
        assert file["scores"].dtype == np.float64
        assert file["scores"][()].tolist() == [[0.5, 0.0], [0.0, -1.0]]
        for name, rank in (("modelset", 1), ("segset", 1), ("score_mask", 2), ("scores", 2)):
            assert file[name].maxshape == (None,) * rank
            assert file[name].compression == "gzip"
            assert file[name].fletcher32
    key = Key.from_ids(["m1", "m1", "m2"], ["s1", "s2", "s1"], [True, False, True])
    formats.write_key(tmp_path / "k.h5", key)
    formats.write_trials(tmp_path / "t.h5", key)
    with h5py.File(tmp_path / "k.h5") as file, h5py.File(tmp_path / "t.h5") as other:
        assert set(file) == set(other) == {"modelset", "segset", "trial_mask"}
        assert file["trial_mask"][()].tolist() == [[1, -1], [1, 0]]
        assert other["trial_mask"][()].tolist() == [[1, 1], [1, 0]]
        assert file["trial_mask"].dtype == other["trial_mask"].dtype == np.int8


def test_non_ascii_and_long_ids_are_kept_whole(tmp_path, caplog):
    names = ["é/" * 80, "漢字/1"]
    with caplog.at_level(logging.WARNING, "evaluation"):
        formats.write_trials(tmp_path / "t.h5", Trials.from_ids(names, ["s", "s"]))
    assert "cut ids at 100 characters; the longest has 160" in caplog.text
    assert sorted(formats.read_trials(tmp_path / "t.h5").model_ids) == sorted(names)
    with h5py.File(tmp_path / "t.h5") as file:
        assert h5py.check_string_dtype(file["modelset"].dtype).encoding == "utf-8"
        with pytest.raises(UnicodeDecodeError):  # SIDEKIT fails rather than read a wrong id
            file["modelset"][()].astype("U100")


@pytest.mark.parametrize("suffix", ["h5", "npz", "npz.gz"])
def test_the_same_list_gives_the_same_bytes(tmp_path, suffix):
    for name in "ab":
        formats.write_scores(
            tmp_path / f"{name}.{suffix}", Scores.from_ids(["a", "b"], ["s", "s"], [1.0, 2.0])
        )
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_variable_length_strings_are_read(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["modelset"] = ["é", "b"]
        file["segset"] = ["s"]
        file["trial_mask"] = np.array([[True], [True]])
    assert list(formats.read_trials(tmp_path / "t.h5").pairs()) == [("é", "s"), ("b", "s")]


def sample(path, **changes):
    """Write a small file of scores and key in one, with changes; None leaves a dataset out."""
    parts = {
        "modelset": np.array([b"a", b"b"]),
        "segset": np.array([b"s", b"t"]),
        "score_mask": np.ones((2, 2), np.int8),
        "trial_mask": np.array([[1, -1], [-1, 1]], np.int8),
        "scores": np.array([[1.0, 2.0], [3.0, 4.0]]),
        **changes,
    }
    with h5py.File(path, "w") as file:
        for name, part in parts.items():
            if isinstance(part, str):
                file.create_group(name)
            elif part is not None:
                file[name] = part
    return path


def test_nan_outside_the_trials_is_ignored(tmp_path):
    values = np.array([[1.0, np.nan], [3.0, np.inf]])
    path = sample(tmp_path / "s.h5", scores=values, score_mask=np.array([[1, 0], [1, 1]], np.int8))
    assert as_dict(formats.read_scores(path)) == {
        ("a", "s"): 1.0,
        ("b", "s"): 3.0,
        ("b", "t"): np.inf,
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"modelset": None}, "expected the ids of models .modelset or ID/row_ids., got only"),
        ({"score_mask": None}, "score_mask"),
        ({"scores": None}, r"\(scores\)"),
        ({"scores": np.ones((2, 3))}, r"shape \(2, 2\) for its ids, got float64 of shape \(2, 3\)"),
        ({"scores": np.ones(4)}, "shape"),
        ({"score_mask": np.ones((3, 2), np.int8)}, "score_mask"),
        ({"score_mask": np.zeros((2, 2), np.int8)}, "with some trials"),
        ({"score_mask": np.full((2, 2), 3, np.int8)}, "of 1, 0 and -1"),
        ({"scores": np.full((2, 2), np.nan)}, "4 scores not a number .*'a s'"),
        ({"scores": np.array([[b"1", b"2"], [b"3", b"4"]])}, "numbers"),
        ({"scores": "group"}, "s.h5"),
        ({"modelset": "group"}, "s.h5"),
        ({"modelset": np.array([b"a", b"a"])}, "'a' is repeated"),
        ({"modelset": np.array([b"a", b""])}, "not empty"),
        ({"modelset": np.array([b"a", b"\xe9"])}, "not UTF-8"),
        ({"modelset": np.array([1, 2])}, "column of strings"),
        ({"modelset": b"a"}, "column of strings"),
    ],
)
def test_malformed_files_are_refused(tmp_path, changes, words):
    path = sample(tmp_path / "s.h5", **changes)
    with pytest.raises(DataError, match=words) as caught:
        formats.read_scores(path)
    assert str(path) in str(caught.value)


def test_scores_given_as_a_key_are_refused(tmp_path):
    path = sample(tmp_path / "s.h5", trial_mask=None)
    with pytest.raises(
        DataError, match=r"trial_mask\), got only modelset, score_mask, scores, segset"
    ):
        formats.read_key(path)


def test_truncated_and_foreign_files_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"m{number}" for number in range(500)]
    path = tmp_path / "s.h5"
    formats.write_scores(path, Scores.from_ids(names, ["s"] * 500, rng.normal(size=500)))
    raw = path.read_bytes()
    for length in (8, 100, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:length])
        with pytest.raises(DataError, match="truncated"):
            formats.read_scores(path)
    for content, words in ((b"", "an empty file"), (b"a s 1\n", "something else")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"expected an HDF5 file by its name, got {words}"):
            formats.read_scores(path)
    with pytest.raises(DataError, match="No such file"):
        formats.read_scores(tmp_path / "none.h5")
    with pytest.raises(DataError, match="directory"):
        formats.read_scores(tmp_path)


def test_a_failed_write_leaves_no_file(tmp_path):
    trials = Trials.from_ids(["a"], ["s"])
    with pytest.raises(DataError, match="zero byte"):
        formats.write_trials(tmp_path / "t.h5", Trials.from_ids(["a\0"], ["s"]))
    with pytest.raises(DataError, match="empty list"):
        formats.write_trials(tmp_path / "t.h5", trials.subset(np.array([False])))
    for name in ("t.mat", "t.xls", "t.wav.gz"):
        with pytest.raises(DataError, match="no format of lists is known for the extension"):
            formats.write_trials(tmp_path / name, trials)
    assert not list(tmp_path.iterdir())


@pytest.mark.golden
@pytest.mark.parametrize(
    "name",
    ["ndx_small", "key_small", "key_big", "scores_small", "scores_big", "scores_small_matlab"],
)
def test_sidekit_files_are_read_and_written_equal(shared, tmp_path, name):
    kind = name.split("_")[0].replace("ndx", "trials")
    read, write = getattr(formats, f"read_{kind}"), getattr(formats, f"write_{kind}")
    source = shared / "golden" / "sidekit" / "h5" / f"{name}.h5"
    listed = read(source)
    other = read(shared / "golden" / "sidekit" / "txt" / f"{name.removesuffix('_matlab')}.txt")
    assert set(listed.pairs()) == set(other.pairs())
    if kind != "trials":
        assert as_dict(listed) == as_dict(other)
    assert len(listed) == {"small": 32, "big": 2164}[name.split("_")[1]]
    write(tmp_path / "ours.h5", listed)
    if name.endswith("matlab"):
        return
    with h5py.File(source) as theirs, h5py.File(tmp_path / "ours.h5") as ours:
        assert set(ours) == set(theirs)
        for part in theirs:
            assert ours[part].dtype == theirs[part].dtype
            expected = theirs[part][()]
            if part == "scores":  # their file holds numbers outside the mask too
                expected[theirs["score_mask"][()] == 0] = 0
            np.testing.assert_array_equal(ours[part][()], expected)
