"""Trials made of a training set: who and what stands on which side, and pieces of single recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.attackers.folds import background_folds, deal_speakers
from spkver.attackers.lists import select
from spkver.attackers.pieces import count_pieces, cut, needs_pieces, pieces_of
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, read_datadir

SPEAKERS = {f"{sex}{number:02}": sex for sex in "fm" for number in range(9)}


def directory(takes, *, name="train"):
    """A data directory without audio."""
    speakers = {f"{speaker}-{take}": speaker for speaker in SPEAKERS for take in range(takes)}
    return DataDir(
        Path(name),
        {utterance: Path(f"{name}/{utterance}.wav") for utterance in speakers},
        speakers,
        SPEAKERS,
    )


@pytest.fixture
def spoken(tmp_path):
    """A data directory with one recording per speaker, of 3 s, or of 1 s for the last."""
    draw, recordings = np.random.default_rng(0), {}
    for speaker in SPEAKERS:
        recordings[speaker] = tmp_path / "in" / f"{speaker}.wav"
        recordings[speaker].parent.mkdir(exist_ok=True)
        write_audio(
            recordings[speaker], draw.uniform(-0.5, 0.5, 8000 if speaker == "m08" else 24001), 8000
        )
    return DataDir(
        tmp_path / "in", recordings, {speaker: speaker for speaker in SPEAKERS}, SPEAKERS
    )


def test_speakers_are_distributed_evenly_and_once():
    folds = deal_speakers(SPEAKERS, 4, seed=3)
    assert sorted(name for fold in folds for name in fold) == sorted(SPEAKERS)
    assert {len(fold) for fold in folds} == {4, 5}
    for sex in "fm":
        counts = [sum(SPEAKERS[name] == sex for name in fold) for fold in folds]
        assert max(counts) - min(counts) <= 1
    assert deal_speakers(dict(reversed(SPEAKERS.items())), 4, seed=3) == folds


def test_folds_test_speakers_that_were_not_trained_on():
    folds = background_folds((directory(8),), seed=0)
    assert len(folds) == 4  # a fold has at least four speakers
    assert sorted(name for fold in folds for name in fold.speakers) == sorted(SPEAKERS)
    for fold in folds:
        (training,), tested = fold.training, fold.tested.speakers
        assert {*training.speakers.values()} == {*SPEAKERS} - {*fold.speakers}
        assert not set(fold.enrolment.recordings) & set(fold.tested.recordings)
        assert {
            name: len(enrolled) for name, enrolled in fold.enrolment.by_speaker().items()
        } == dict.fromkeys(fold.speakers, 3)
        for (model, segment), is_target in zip(fold.key.pairs(), fold.key.is_target, strict=True):
            assert SPEAKERS[model] == SPEAKERS[tested[segment]]
            assert (tested[segment] == model) == is_target


def test_both_sides_use_different_versions():
    versions = tuple(directory(4, name=f"draw{number}") for number in range(4))
    for fold in background_folds(versions, seed=0):
        sides = fold.enrolment, fold.tested
        drawn = [{path.parent.name for path in side.recordings.values()} for side in sides]
        assert drawn == [{"draw0", "draw1"}, {"draw2", "draw3"}]
        assert not set.intersection(
            *({path.stem for path in side.recordings.values()} for side in sides)
        )
        assert len(fold.training) == 4


def test_few_speakers_give_few_folds_or_none():
    some = select(
        directory(3),
        [f"{name}-{take}" for name in ("f00", "f01", "f02", "m01", "m02") for take in range(3)],
    )
    folds = background_folds((some,), seed=0)
    assert len(folds) == 2
    assert all(fold.key.is_target.any() and not fold.key.is_target.all() for fold in folds)
    assert background_folds((select(directory(2), ["f00-0", "f00-1"]),), seed=0) == []
    assert background_folds((directory(1),), seed=0) == []


def test_pieces_add_up_to_the_recording_and_folds_pair_different_pieces(spoken, tmp_path):
    assert needs_pieces(spoken)
    assert not needs_pieces(directory(2))
    counts = count_pieces(spoken)
    assert counts == dict.fromkeys(SPEAKERS, 2) | {"m08": 1}
    made = pieces_of(spoken, counts, tmp_path / "out")
    cut(spoken, counts, tmp_path / "out", jobs=1)
    assert (made.path, len(made)) == (tmp_path / "out", 2 * 17 + 1)
    assert read_datadir(made.path).speakers == made.speakers
    for speaker, path in spoken.recordings.items():
        names = sorted(name for name in made.recordings if made.speakers[name] == speaker)
        parts = [read_audio(made.recordings[name])[0] for name in names]
        assert [len(part) for part in parts] == ([8000] if speaker == "m08" else [12001, 12000])
        np.testing.assert_array_equal(np.concatenate(parts), read_audio(path)[0])
    for fold in background_folds((made, made), seed=0):
        ends = [
            {path.stem.split("-")[1] for path in side.recordings.values()}
            for side in (fold.enrolment, fold.tested)
        ]
        assert ends == [{"piece1"}, {"piece2"}]
        assert "m08" not in fold.speakers  # too short for two pieces


def test_recordings_that_cannot_be_cut_are_named_together(spoken, tmp_path):
    counts = count_pieces(spoken)
    for name in ("f00", "m01"):
        spoken.recordings[name].write_bytes(b"RIFF")
    with pytest.raises(DataError, match=r"(?s)f00.*m01"):
        cut(spoken, counts, tmp_path / "out", jobs=1)
    assert not (tmp_path / "out/pieces.json").exists()
