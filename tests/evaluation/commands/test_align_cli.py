"""The command `align`: what it links, from which files, and what it says of what is wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused
from scipy.linalg import orthogonal_procrustes

from evaluation.embeddings import Embeddings, read_embeddings, write_embeddings

N_SPEAKERS, EACH, DIMENSIONS = 24, 3, 8


def write(name, speakers, vectors):
    ids = [f"{speaker}-{number % EACH}" for number, speaker in enumerate(speakers)]
    write_embeddings(name, Embeddings(np.array(ids, object), np.array(speakers, object), vectors))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Voices, and the same turned and moved; half of the speakers to learn from."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [f"s{number:02d}" for number in range(2 * N_SPEAKERS) for _ in range(EACH)]
    voices = rng.gamma(1.0, 1.0, (2 * N_SPEAKERS, DIMENSIONS)) * np.linspace(3, 1, DIMENSIONS)
    voices = np.repeat(voices, EACH, axis=0)
    original = voices + 0.05 * rng.standard_normal(voices.shape)
    turn = np.linalg.qr(rng.standard_normal((DIMENSIONS, DIMENSIONS)))[0]
    anonymised = (voices + 0.05 * rng.standard_normal(voices.shape)) @ turn + 0.1
    half = N_SPEAKERS * EACH
    for side, vectors in (("original", original), ("anonymised", anonymised)):
        write(f"{side}.h5", names[:half], vectors[:half])
        write(f"train_{side}.h5", names[half:], vectors[half:])
    return tmp_path


def align(*arguments, original="original.h5", anonymised="anonymised.h5"):
    return [
        "align",
        "--original",
        original,
        "--anonymised",
        anonymised,
        "--bootstrap",
        "50",
        *arguments,
    ]


def shares(*arguments, **sides):
    report = json.loads(passes(*align("--json", "-", *arguments, **sides)).stdout)
    return {(row["alignment"], row["linked"], row["top"]): row["share"] for row in report["links"]}


def nearest_share(gallery, tested, speakers):
    """Share of vectors whose nearest in the gallery, by cosine, has the speaker of the same row."""
    gallery = gallery / np.linalg.norm(gallery, axis=1)[:, None]
    return float(
        np.mean(
            [
                speakers[np.argmax(gallery @ row)] == own
                for row, own in zip(tested, speakers, strict=True)
            ]
        )
    )


TRAINED = ("--train-original", "train_original.h5", "--train-anonymised", "train_anonymised.h5")


@pytest.mark.parametrize("learnt", [(), TRAINED], ids=["folds", "trained"])
def test_rotated_vectors_link_after_alignment(folder, learnt):
    found = shares(
        *learnt,
        "--plain",
        "--alignment",
        "none",
        "--alignment",
        "orthogonal",
        "--alignment",
        "ridge",
    )
    for linked in ("anonymised to original", "segments to speakers", "speakers to speakers"):
        assert found["none", linked, 1] < 0.3
        assert found["orthogonal", linked, 1] > 0.95
        assert found["orthogonal", linked, 5] == 1
        assert found["ridge", linked, 1] > 0.9


def test_the_share_equals_a_nearest_neighbour_count(folder):
    """Counted anew, one by one: the speaker of the nearest vector, by cosine, in both directions."""
    original, anonymised = read_embeddings("original.h5"), read_embeddings("anonymised.h5")
    unit = [
        side.vectors / np.linalg.norm(side.vectors, axis=1)[:, None]
        for side in (original, anonymised)
    ]
    found = shares("--alignment", "none", "--top", "1", "--top", str(N_SPEAKERS))
    expected = (
        nearest_share(*unit, anonymised.speakers),
        nearest_share(*unit[::-1], original.speakers),
    )
    assert expected[0] != expected[1]
    assert found["none", "anonymised to original", 1] == pytest.approx(expected[0])
    assert found["none", "original to anonymised", 1] == pytest.approx(expected[1])
    assert found["none", "anonymised to original", N_SPEAKERS] == 1


@pytest.mark.parametrize("own_means", [False, True])
def test_centring_uses_the_means_of_linked_or_training_vectors(folder, own_means):
    """What is linked comes by another channel than what the rotation learnt from; all counted anew, by SciPy."""
    sides = {name: read_embeddings(f"{name}.h5") for name in ("original", "anonymised")}
    pairs = [read_embeddings(f"train_{name}.h5").vectors for name in sides]
    for name, shift in (("original", 1.5), ("anonymised", -2.0)):
        side = sides[name]
        moved = side.vectors + shift * np.linspace(1, -1, DIMENSIONS)
        write_embeddings(f"far_{name}.h5", Embeddings(side.ids, side.speakers, moved))
        sides[name] = Embeddings(side.ids, side.speakers, moved)
    centres = (
        [side.vectors.mean(axis=0) for side in sides.values()]
        if own_means
        else [x.mean(axis=0) for x in pairs]
    )
    rotation = orthogonal_procrustes(*(pairs[row] - pairs[row].mean(axis=0) for row in (1, 0)))[0]
    gallery = sides["original"].vectors - centres[0]
    tested = (sides["anonymised"].vectors - centres[1]) @ rotation
    speakers = sides["original"].speakers
    arguments = ["--plain", "--alignment", "orthogonal", *(["--own-means"] if own_means else [])]
    found = shares(*TRAINED, *arguments, original="far_original.h5", anonymised="far_anonymised.h5")
    assert found["orthogonal", "anonymised to original", 1] == pytest.approx(
        nearest_share(gallery, tested, speakers)
    )
    assert found["orthogonal", "original to anonymised", 1] == pytest.approx(
        nearest_share(tested, gallery, speakers)
    )
    assert (found["orthogonal", "anonymised to original", 1] > 0.9) == own_means
    assert ("level: whole list" in passes(*align(*TRAINED, *arguments)).stdout) == own_means


@pytest.mark.parametrize("kind", ["orthogonal", "ridge"])
def test_without_centring_the_map_is_fitted_to_the_raw_vectors(folder, kind):
    """Unit vectors of the plane, by their angles; speakers at 0 and 180 degrees are turned by 90.

    Where originals are at 10, -10, 50, -50 degrees and their copies at 90 + 50, -50, 10, -10, both moments, along the
    mean and across it, are positive: the map is the turn by 90 degrees, and links everybody. About the means the
    moment along them is negative: the map is a reflection, and takes each speaker for the other.
    """

    def at(*degrees):
        return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)

    linked, learnt = ["east", "east", "west", "west"], ["x1", "x1", "x2", "x2"]
    write("original.h5", linked, at(5, -5, 175, 185))
    write("anonymised.h5", linked, at(95, 85, 265, 275))
    write("train_original.h5", learnt, at(10, -10, 50, -50))
    write("train_anonymised.h5", learnt, at(140, 40, 100, 80))
    for options, expected in ((("--uncentred",), 1.0), ((), 0.0)):
        found = shares(*TRAINED, *options, "--alignment", kind)
        for name in ("anonymised to original", "original to anonymised"):
            assert found[kind, name, 1] == expected
    assert (
        "no mean subtracted" in passes(*align(*TRAINED, "--uncentred", "--alignment", kind)).stdout
    )


@pytest.mark.parametrize(
    ("extractor", "sex", "right"),
    [("original", "f", 129), ("original", "m", 125), ("retrained", "f", 335)],
)
def test_a_rotation_without_centring_equals_plain_numpy(shared, extractor, sex, right):
    """X-vectors of a neural anonymiser: how many originals have a mapped anonymised vector of their speaker nearest."""
    speakers, side = (
        shared / "vectors/vpc2020_b1/lists/utt2spk",
        shared / f"vectors/vpc2020_b1/{extractor}_extractor",
    )
    learnt = (
        "--train-original",
        side / "enrolls.npz",
        "--train-anonymised",
        side / "enrolls_anon.npz",
        "--own-pairs",
    )
    found = shares(
        *map(str, (*learnt, "--train-speakers", speakers, "--model-speakers", speakers)),
        *("--uncentred", "--alignment", "orthogonal", "--top", "1"),
        original=str(side / f"trials_{sex}.npz"),
        anonymised=str(side / f"trials_{sex}_anon.npz"),
    )
    assert found["orthogonal", "original to anonymised", 1] == right / {"f": 734, "m": 762}[sex]


def test_the_linked_speakers_train_the_map_only_on_request(folder):
    """The enrolment of the same speakers, but none of the utterances that are linked."""
    for side in ("original", "anonymised"):
        whole = read_embeddings(f"{side}.h5")
        enrols = np.array([name.endswith("-0") for name in whole.ids])
        for name, rows in (("enrols", enrols), ("tested", ~enrols)):
            write_embeddings(
                f"{name}_{side}.h5",
                Embeddings(whole.ids[rows], whole.speakers[rows], whole.vectors[rows]),
            )
    enrols = (
        "--train-original",
        "enrols_original.h5",
        "--train-anonymised",
        "enrols_anonymised.h5",
    )
    tested = {"original": "tested_original.h5", "anonymised": "tested_anonymised.h5"}
    assert "24 speakers are both in training and linked" in refused(*align(*enrols, **tested))
    assert "24 utterances are both in training and linked" in refused(
        *align(*enrols, "--own-pairs")
    )
    found = shares(*enrols, "--own-pairs", "--plain", "--alignment", "orthogonal", **tested)
    assert found["orthogonal", "anonymised to original", 1] > 0.9
    # an attacker who enrols speakers has these recordings
    to_enrolled = {**tested, "original": "enrols_original.h5"}
    found = shares(*enrols, "--own-pairs", "--plain", "--alignment", "orthogonal", **to_enrolled)
    assert found["orthogonal", "anonymised to original", 1] > 0.9
    assert "expected --train-original" in refused(*align("--own-pairs"))


def test_wasserstein_alignment_links_without_pairs(folder):
    found = shares("--alignment", "wasserstein", "--other-extractor", "--plain")
    assert found["wasserstein", "speakers to speakers", 1] > 0.9
    again = align("--alignment", "wasserstein")
    assert passes(*again).stdout == passes(*again).stdout


def test_aligned_vectors_are_written(folder):
    passes(
        *align(
            *TRAINED,
            "--plain",
            "--alignment",
            "none",
            "--alignment",
            "orthogonal",
            "--output",
            "aligned",
        )
    )
    original, plain, aligned = map(
        read_embeddings, ("original.h5", "aligned/none.h5", "aligned/orthogonal.h5")
    )
    assert np.array_equal(plain.vectors, read_embeddings("anonymised.h5").vectors)
    assert aligned.ids.tolist() == original.ids.tolist()
    assert (
        np.abs(aligned.vectors - original.vectors).max()
        < 0.5
        < np.abs(plain.vectors - original.vectors).max()
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--train-original", "train_original.h5"),
            "expected --train-original and --train-anonymised",
        ),
        (
            ("--train-original", "original.h5", "--train-anonymised", "anonymised.h5"),
            "both in training and linked",
        ),
        (
            ("--train-original", "train_original.h5", "--train-anonymised", "foreign.h5"),
            "0 of 6 anonymised",
        ),
        (("--segment-speakers", "others"), "speakers have no original vector"),
        (("--model-speakers", "one"), "at least two original speakers"),
        (("--alignment", "sinkhorn"), "Invalid value"),
        (("--folds", "1"), "Invalid value"),
        (("--uncentred",), "no mean to subtract with --uncentred, got --alignment centred"),
        (("--uncentred", "--own-means"), "no mean to subtract with --uncentred, got --own-means"),
        (("--train-original", "nowhere.h5", "--train-anonymised", "foreign.h5"), "nowhere.h5"),
    ],
)
def test_bad_input_is_refused(folder, arguments, text):
    ids = read_embeddings("anonymised.h5").ids.tolist()
    Path("others").write_text("".join(f"{name} x{name}\n" for name in ids))
    Path("one").write_text("".join(f"{name} anna\n" for name in ids))
    write(
        "foreign.h5",
        ["x1"] * EACH + ["x2"] * EACH,
        np.random.default_rng(0).standard_normal((2 * EACH, DIMENSIONS)),
    )
    assert text in refused(*align(*arguments))


def test_the_same_file_for_both_sides_is_refused(tmp_path):
    path = tmp_path / "vectors.h5"
    names = [f"s{speaker}-{take}" for speaker in range(6) for take in range(3)]
    speakers = [name.split("-")[0] for name in names]
    write_embeddings(
        path, Embeddings(names, speakers, np.random.default_rng(0).standard_normal((18, 4)))
    )
    labels = tmp_path / "sex"
    labels.write_text("".join(f"s{number} {'fm'[number % 2]}\n" for number in range(6)))
    for command in (
        ["align", "--original", path, "--anonymised", path],
        ["attributes", "--original", path, "--anonymised", path, "--labels", labels],
    ):
        assert "18 of 18 utterances have the same vector" in refused(*command)
