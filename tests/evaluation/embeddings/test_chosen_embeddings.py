"""Embeddings from a mapping, and parts of them."""

import numpy as np
import pytest

from evaluation.embeddings import Embeddings
from spkbase.errors import DataError

VECTORS = {"anna/1": [1.0, 0.0], "anna/2": [2.0, 1.0], "bert/1": [0.0, 3.0]}
RULES = {
    "a sign": "/",
    "a function": lambda name: name.split("/")[0],
    "a map": {"anna/1": "anna", "anna/2": "anna", "bert/1": "bert"},
}


@pytest.mark.parametrize("speakers", RULES.values(), ids=RULES)
def test_speakers_follow_from_ids(speakers):
    made = Embeddings.from_dict(VECTORS, speakers=speakers)
    assert made.ids.tolist() == [*VECTORS]
    assert made.speakers.tolist() == ["anna", "anna", "bert"]
    np.testing.assert_array_equal(made.vectors, [*VECTORS.values()])
    again = Embeddings.from_arrays(made.vectors, ids=[*VECTORS], speakers=speakers)
    assert again.speakers.tolist() == made.speakers.tolist()


def test_without_speakers_each_utterance_is_its_own():
    assert Embeddings.from_dict(VECTORS).speakers.tolist() == [*VECTORS]


def test_embeddings_are_chosen_by_masks_slices_numbers_and_ids():
    whole = Embeddings(["u1", "u2", "u3"], ["a", "b", "a"], np.eye(3), ("a note",), "file.npz")
    for rows, expected in (
        (slice(1, None), ["u2", "u3"]),
        (whole.speakers == "a", ["u1", "u3"]),
        ([2, 0], ["u3", "u1"]),
        (["u3"], ["u3"]),
    ):
        part = whole[rows]
        assert part.ids.tolist() == expected
        assert part.vectors.argmax(axis=1).tolist() == [int(name[1]) - 1 for name in expected]
        assert (part.notes, part.source) == (whole.notes, whole.source)


MISUSE = {
    "no vectors": (lambda: Embeddings.from_dict({}), "at least one utterance"),
    "other lengths": (
        lambda: Embeddings.from_dict({"a": [1.0], "b": [1.0, 2.0]}),
        "vectors of the same shape",
    ),
    "a number": (
        lambda: Embeddings.from_dict({"a": 1.0}),
        r"vectors of the same shape \(D,\), got \(\)",
    ),
    "another sign": (
        lambda: Embeddings.from_dict(VECTORS, speakers="-"),
        "3 of 3 utterances without a speaker",
    ),
    "a map that lacks one": (
        lambda: Embeddings.from_dict(VECTORS, speakers={"anna/1": "anna"}),
        "2 of 3 utterances",
    ),
    "an unknown id": (lambda: Embeddings.from_dict(VECTORS)[["x"]], "ids do not exist: 'x'"),
    "an id twice": (lambda: Embeddings.from_dict(VECTORS)[["anna/1", "anna/1"]], "repeated"),
    "nothing": (lambda: Embeddings.from_dict(VECTORS)[:0], "no embedding was chosen"),
}


@pytest.mark.parametrize(("call", "message"), MISUSE.values(), ids=MISUSE)
def test_misuse_raises(call, message):
    with pytest.raises(DataError, match=message):
        call()
