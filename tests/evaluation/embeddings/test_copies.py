"""Recordings that come again under another id are told by their vectors; recordings that are merely close are not."""

from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused
from scipy.spatial import cKDTree

import evaluation as ev
from evaluation.embeddings import (
    Embeddings,
    copies,
    find_copies,
    rounding,
    warn_of_enrolled,
    write_embeddings,
)
from spkver.backend import train_chain

N_SPEAKERS, EACH = 30, 4
SPEAKERS = [f"s{number // EACH:02d}" for number in range(N_SPEAKERS * EACH)]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def recordings(seed, *, n_dimensions=64, within=0.7):
    """Vectors of new recordings of the same speakers."""
    voices = (
        np.random.default_rng(99).standard_normal((N_SPEAKERS, n_dimensions)).repeat(EACH, axis=0)
    )
    return voices + within * np.random.default_rng(seed).standard_normal(voices.shape)


CHANGES = {
    "float32": lambda vectors: vectors.astype(np.float32),
    "float16": lambda vectors: vectors.astype(np.float16),
    "float16 of unit length": lambda vectors: unit(vectors.astype(np.float16).astype(np.float32)),
    "four decimals of unit length": lambda vectors: unit(vectors).round(4),
    "two decimals": lambda vectors: vectors.round(2),
    "gain": lambda vectors: 3.7 * vectors,
    "unit length": unit,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("n_dimensions", [20, 192])
def test_processed_copies_are_found(change, n_dimensions):
    vectors, speakers = recordings(0, n_dimensions=n_dimensions), np.array(SPEAKERS, object)
    order = np.random.default_rng(1).permutation(len(vectors))
    copies = change(vectors)[order]
    rows, originals = find_copies(copies, vectors, rounding(vectors, speakers))
    assert len(rows) >= 0.98 * len(vectors)
    assert (order[rows] == originals).all()


@pytest.mark.parametrize("within", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize(
    ("n_dimensions", "offset"), [(2, 0.0), (20, 0.0), (20, 100.0), (192, 0.0), (192, 1000.0)]
)
def test_close_recordings_are_not_reported_as_copies(within, offset, n_dimensions):
    """Voices that hardly vary, and vectors that share a large mean, such as supervectors."""
    first, second = (
        offset + recordings(seed, n_dimensions=n_dimensions, within=within) for seed in (0, 1)
    )
    speakers = np.array(SPEAKERS, object)
    tolerance = min(rounding(side, speakers) for side in (first, second))
    assert not len(find_copies(first, second, tolerance)[0])
    assert not len(find_copies(first, None, tolerance)[0])


def test_vectors_with_equal_projections_are_not_reported_as_copies():
    vectors = unit(recordings(0))
    unseen = np.linalg.svd(copies._project(np.eye(64)).T)[2][-1]
    tolerance = rounding(vectors, np.array(SPEAKERS, object))
    assert tolerance < 0.02
    nearest = cKDTree(copies._project(vectors)).query(copies._project(vectors + 0.1 * unseen))[0]
    assert nearest.min() < tolerance
    assert not len(find_copies(vectors + 0.1 * unseen, vectors, tolerance)[0])
    assert not len(find_copies(np.vstack([vectors, vectors + 0.1 * unseen]), None, tolerance)[0])


def test_many_equal_vectors_take_no_longer():
    vectors = np.ones((30_000, 20))
    assert len(find_copies(vectors, None, 1e-7)[0]) == len(vectors)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Enrolment, other recordings, copies of the enrolment under other ids and speakers, and copies on one side."""
    monkeypatch.chdir(tmp_path)
    enrolled, other = recordings(0), recordings(1)
    sets = {"enrolled": enrolled, "other": other, "copies": unit(enrolled).astype(np.float16)}
    for name, vectors in sets.items():
        write_embeddings(
            f"{name}.npz", Embeddings([f"{name}-{row}" for row in range(120)], SPEAKERS, vectors)
        )
    ids = [f"twice-{row}" for row in range(123)]
    moved = np.vstack([other, 2 * other[:3]]).astype(np.float32)
    write_embeddings("twice.npz", Embeddings(ids, [*SPEAKERS, "s07", "s08", "s09"], moved))
    for name, count in (("other", 120), ("copies", 120), ("twice", 123)):
        lines = [
            f"{speaker} {name}-{row}\n" for speaker in sorted(set(SPEAKERS)) for row in range(count)
        ]
        Path(f"{name}.trials").write_text("".join(lines))
    sexes = [
        f"{speaker} {'mf'[number % 2]}\n" for number, speaker in enumerate(sorted(set(SPEAKERS)))
    ]
    Path("sex").write_text("".join(sexes))
    names = [f"x{speaker}" for speaker in SPEAKERS]
    write_embeddings(
        "train.npz", Embeddings([f"train-{row}" for row in range(120)], names, recordings(2))
    )
    passes("backend", "train", "train.npz", "--chain", "centre,cosine", "-o", "backend.h5")
    return tmp_path


SIDES = {
    "linkability": "linkability --enroll enrolled.npz --test {}.npz --bootstrap 0",
    "singling-out": "singling-out --enroll enrolled.npz --test {}.npz --bootstrap 0",
    "cosine": "cosine --enroll enrolled.npz --test {}.npz --trials {}.trials -o scores.txt",
    "backend score": "backend score backend.h5 --enroll enrolled.npz --test {}.npz --trials {}.trials -o scores.txt",
}


@pytest.mark.parametrize("command", SIDES.values(), ids=SIDES)
def test_tested_recordings_that_are_also_enrolled_are_reported(folder, command):
    assert "Warning" not in passes(*command.format("other", "other").split()).stderr
    told = passes(*command.format("copies", "copies").split()).stderr
    total = "3600 trials" if "trials" in command else "120 tested utterances"
    assert f"120 of {total} have a model made from the same recording" in told
    assert "copies-0 of s00 = enrolled-0 of s00" in told
    assert told.count("Warning") == 1


@pytest.mark.parametrize(
    "command",
    [
        *SIDES.values(),
        "backend train {}.npz --chain centre,cosine -o new.h5",
        "attributes --original {}.npz --labels sex --bootstrap 0",
    ],
)
def test_one_recording_under_two_ids_is_reported(folder, command):
    told = passes(*command.format("twice", "twice").split()).stderr
    assert "6 of 123 " in told
    assert "have copies" in told
    assert "twice-0 of s00 = twice-120 of s07" in told


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "backend train enrolled.npz --adapt {} --chain coral,cosine -o new.h5",
            "vectors to adapt to are in training too",
        ),
        (
            "attributes --original {} --train-original enrolled.npz --labels sex --bootstrap 0",
            "are in training too",
        ),
        (
            "align --original {} --anonymised moved.npz --train-original enrolled.npz --train-anonymised far.npz "
            "--bootstrap 0",
            "original utterances are in training too",
        ),
    ],
)
def test_training_recordings_that_are_scored_are_reported(folder, command, words):
    """Speakers have other names, so that names say nothing."""
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((64, 64)))[0]
    names = [f"x{speaker}" for speaker in SPEAKERS]
    Path("sex").write_text(Path("sex").read_text() + Path("sex").read_text().replace("s", "xs"))
    for name, vectors in (
        ("fresh", recordings(4)),
        ("again", recordings(0) * 2),
        ("moved", recordings(4) @ turn),
    ):
        write_embeddings(
            f"{name}.npz", Embeddings([f"new-{row}" for row in range(120)], names, vectors)
        )
    write_embeddings(
        "far.npz",
        Embeddings([f"enrolled-{row}" for row in range(120)], SPEAKERS, recordings(0) @ turn),
    )
    assert words not in passes(*command.format("fresh.npz").split()).stderr
    told = passes(*command.format("again.npz").split()).stderr
    assert words in told
    assert "120 of 120" in told
    assert "new-0 of xs00 = enrolled-0 of s00" in told


def test_python_functions_report_copies_too(caplog):
    enrolled = Embeddings([f"e{row}" for row in range(120)], SPEAKERS, recordings(0))
    tested = Embeddings(
        [f"t{row}" for row in range(120)], SPEAKERS, recordings(0).astype(np.float32)
    )
    ev.linkability(enrolled, tested, resampling=ev.Resampling(0))
    assert "120 of 120 tested utterances have a model made from the same recording" in caplog.text
    caplog.clear()
    ev.linkability(enrolled, enrolled, resampling=ev.Resampling(0))
    assert "120 of 120 tested utterances have a model made from the same recording" in caplog.text
    assert "copies" not in caplog.text


@pytest.mark.parametrize("warn", [True, False])
def test_training_a_backend_in_python_reports_copies(caplog, warn):
    own = recordings(0)
    vectors = np.concatenate([own, 2 * own[:6]])
    speakers = [*SPEAKERS, *SPEAKERS[-6:]]
    train_chain(vectors, "centre,cosine", speakers=speakers, warn=warn)
    assert ("12 of 126 training utterances have copies" in caplog.text) == warn
    caplog.clear()
    train_chain(own, "coral,cosine", speakers=SPEAKERS, adapt=own[:7] / 3, warn=warn)
    assert ("7 of 7 vectors to adapt to are in training too" in caplog.text) == warn
    assert "have copies" not in caplog.text


@pytest.mark.parametrize(
    "change", [lambda vectors: vectors, lambda vectors: 2 * vectors.astype(np.float16)]
)
def test_a_single_tested_copy_among_many_is_reported(caplog, change):
    enrolled = Embeddings(["e"], ["s00"], recordings(0)[:1])
    warn_of_enrolled(
        enrolled, Embeddings([f"t{row}" for row in range(120)], SPEAKERS, change(recordings(0)))
    )
    assert "1 of 120 tested utterances have a model made from the same recording" in caplog.text


def test_zero_vectors_and_other_dimensions_are_ignored(caplog):
    vectors = recordings(0)
    vectors[:4] = np.array([0.0, np.nan, np.inf, 1e308])[:, None]
    broken = Embeddings([f"e{row}" for row in range(120)], SPEAKERS, vectors)
    for other in (
        Embeddings(["t"], ["s00"], np.ones((1, 3))),
        Embeddings(["t"], ["s00"], np.ones((1, 64))),
    ):
        warn_of_enrolled(broken, other)
    assert caplog.text == ""


def test_original_and_anonymised_vectors_under_other_ids_are_distinguished(folder):
    told = refused(
        "align", "--original", "enrolled.npz", "--anonymised", "copies.npz", "--bootstrap", "0"
    )
    assert "120 of 120 utterances have the same vector, original and anonymised" in told
