"""Trials made of a training set: who and what stands on which side, and pieces of single recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.attackers.folds import background_folds, deal_speakers
from spkver.attackers.pieces import cut_directory, needs_pieces, piece_bounds, with_pieces
from spkver.attackers.protocol import Place
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir

SPEAKERS = {f"{sex}{number:02}": sex for sex in "fm" for number in range(9)}


def directory(takes: int, *, name: str = "train") -> DataDir:
    """A data directory without audio."""
    speakers = {f"{speaker}-{take}": speaker for speaker in SPEAKERS for take in range(takes)}
    return DataDir(
        Path(name), {utterance: Path(f"{name}/{utterance}.wav") for utterance in speakers}, speakers, SPEAKERS
    )


@pytest.fixture
def spoken(tmp_path) -> DataDir:
    """A data directory with one recording a speaker, of 3 s or, of the last, 1 s."""
    draw, recordings = np.random.default_rng(0), {}
    for speaker in SPEAKERS:
        recordings[speaker] = tmp_path / "in" / f"{speaker}.wav"
        recordings[speaker].parent.mkdir(exist_ok=True)
        write_audio(recordings[speaker], draw.uniform(-0.5, 0.5, 8000 if speaker == "m08" else 24001), 8000)
    return DataDir(tmp_path / "in", recordings, {speaker: speaker for speaker in SPEAKERS}, SPEAKERS)


def place(path: Path, *, seed: int = 0, jobs: int = 1) -> Place:
    return Place(path, path / "work", seed, jobs)


def test_speakers_are_dealt_evenly_and_once():
    folds = deal_speakers(SPEAKERS, 4, seed=3)
    assert sorted(name for fold in folds for name in fold) == sorted(SPEAKERS)
    assert {len(fold) for fold in folds} == {4, 5}
    for sex in "fm":
        counts = [sum(SPEAKERS[name] == sex for name in fold) for fold in folds]
        assert max(counts) - min(counts) <= 1
    assert deal_speakers(dict(reversed(SPEAKERS.items())), 4, seed=3) == folds


def test_folds_try_speakers_that_nothing_was_learnt_of(tmp_path):
    folds = background_folds((directory(8),), place(tmp_path))
    assert len(folds) == 4  # of at least four speakers
    assert sorted(name for fold in folds for name in fold.speakers) == sorted(SPEAKERS)
    for fold in folds:
        (training,), attack = fold.attack.training.versions, fold.attack
        assert not set(training.speakers.values()) & set(fold.speakers)
        assert set(training.speakers.values()) | set(fold.speakers) == set(SPEAKERS)
        assert not set(attack.enrolment[0].recordings) & set(attack.tested.recordings)
        assert [list(attack.enrolment[0].speakers.values()).count(name) for name in fold.speakers] == [3] * len(
            fold.speakers
        )
        assert list(attack.trials.pairs()) == list(fold.key.pairs())
        for (model, segment), is_target in zip(fold.key.pairs(), fold.key.is_target, strict=True):
            assert SPEAKERS[model] == SPEAKERS[attack.tested.speakers[segment]]
            assert (attack.tested.speakers[segment] == model) == is_target


def test_versions_of_one_side_are_not_those_of_the_other(tmp_path):
    versions = tuple(directory(4, name=f"draw{number}") for number in range(4))
    for fold in background_folds(versions, place(tmp_path)):
        sides = fold.attack.sides
        drawn = [{path.parent.name for path in side.recordings.values()} for side in sides]
        assert drawn == [{"draw0", "draw1"}, {"draw2", "draw3"}]
        said = [{path.stem for path in side.recordings.values()} for side in sides]
        assert not said[0] & said[1]
        assert len(fold.attack.training.versions) == 4


def test_few_speakers_make_few_folds_or_none(tmp_path):
    few = {
        name: speaker
        for name, speaker in directory(3).speakers.items()
        if speaker in ("f00", "f01", "f02", "m01", "m02")
    }
    some = DataDir(Path("few"), {name: Path(name) for name in few}, few, SPEAKERS)
    folds = background_folds((some,), place(tmp_path))
    assert len(folds) == 2
    assert all(fold.key.is_target.any() and not fold.key.is_target.all() for fold in folds)
    one = DataDir(Path("one"), {"a": Path("a"), "b": Path("b")}, {"a": "f00", "b": "f00"}, SPEAKERS)
    assert background_folds((one,), place(tmp_path)) == []
    assert background_folds((directory(1),), place(tmp_path), cut=False) == []


def test_pieces_are_the_recording(spoken, tmp_path):
    assert needs_pieces(spoken)
    assert not needs_pieces(directory(2))
    assert with_pieces((directory(2),), place(tmp_path))[0].name == "train"
    cut = cut_directory(spoken, place(tmp_path / "out"))
    assert cut.path == tmp_path / "out/data/in-pieces"
    assert len(cut) == 2 * 17 + 1
    for speaker, path in spoken.recordings.items():
        samples, rate = read_audio(path)
        parts = [
            read_audio(cut.recordings[name])[0] for name in sorted(cut.recordings) if cut.speakers[name] == speaker
        ]
        assert [len(part) for part in parts] == [stop - start for start, stop in piece_bounds(len(samples), rate)]
        np.testing.assert_array_equal(np.concatenate(parts), samples)
    assert (cut.path / "wav.scp").is_file()


def test_recordings_that_cannot_be_cut_are_named_together(spoken, tmp_path):
    for name in ("f00", "m01"):
        spoken.recordings[name].write_bytes(b"RIFF")
    with pytest.raises(DataError) as caught:
        cut_directory(spoken, place(tmp_path / "out"))
    assert "f00" in str(caught.value)
    assert "m01" in str(caught.value)
    assert not (tmp_path / "out/data/in-pieces/pieces.json").exists()


def test_folds_of_single_recordings_pair_different_pieces(spoken, tmp_path):
    for fold in background_folds((spoken, spoken), place(tmp_path / "out")):
        ends = [{name.split("-")[1] for name in side.recordings} for side in fold.attack.sides]
        assert ends == [{"piece1"}, {"piece2"}]
        assert "m08" not in fold.speakers  # too short for two pieces
        assert all(set(version.recordings) <= set(SPEAKERS) for version in fold.attack.training.versions)
