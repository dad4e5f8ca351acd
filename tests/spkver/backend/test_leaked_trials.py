"""`Backend.score` warns of error rates that are too low: trials with their model's recordings or training speakers."""

import logging

import numpy as np
import pytest

from evaluation.embeddings import Embeddings
from evaluation.trials import Trials
from spkver.backend import read_backend, train_chain, write_backend
from spkver.vectors import Supervectors

DRAW = np.random.default_rng(0)
PEOPLE = np.repeat(np.arange(8), 6)
POINTS = DRAW.normal(size=(8, 4))[PEOPLE] + 0.5 * DRAW.normal(size=(48, 4))
SPEAKERS = np.array([f"s{person}" for person in PEOPLE], object)
EVERY = Embeddings(np.array([f"u{row}" for row in range(48)], object), SPEAKERS, POINTS)
TRAINING = EVERY[:24]  # speakers s0 to s3; the others are for tests
ENROLMENT = EVERY[24::2]
TESTS = EVERY[25::2]
BACKEND = train_chain(TRAINING, "centre,lda:2,plda:2")
OF_TESTS = train_chain(EVERY[36:], "centre,lda:1,plda:1")  # trained on s6 and s7
MET = "trials have a model made from the same recording"
TRAINED = "speakers of the trials were trained on"


def crossed(models, tested):
    """All pairs of some models and of tested utterances."""
    pairs = [(model, segment) for model in models for segment in tested.ids]
    return Trials.from_ids(*zip(*pairs, strict=True))


ALL = crossed(["s4", "s5", "s6", "s7"], TESTS)
OWN = crossed(["s4", "s5", "s6", "s7"], ENROLMENT)
LEAKS = {
    "none": (BACKEND, ENROLMENT, TESTS, ALL, []),
    "recordings of all models": (BACKEND, ENROLMENT, ENROLMENT, OWN, [f"12 of 48 {MET}"]),
    "recordings under other ids": (
        BACKEND, ENROLMENT, Embeddings(TESTS.ids, TESTS.speakers, ENROLMENT.vectors), ALL, [f"12 of 48 {MET}"],
    ),
    "recordings, but not in these trials": (BACKEND, ENROLMENT, ENROLMENT, crossed(["s4"], ENROLMENT[3:]), []),
    "some training speakers": (OF_TESTS, ENROLMENT, TESTS, ALL, [f"2 of 4 {TRAINED}"]),
    "a model alone": (OF_TESTS, ENROLMENT, TESTS, crossed(["s6"], TESTS[:3]), [f"1 of 2 {TRAINED}"]),
    "utterances as models": (OF_TESTS, ENROLMENT, TESTS, crossed(["u42"], TESTS[:3]), [f"1 of 2 {TRAINED}"]),
    "training speakers, but not in these trials": (OF_TESTS, ENROLMENT, TESTS, crossed(["s4"], TESTS[:3]), []),
    "both": (OF_TESTS, ENROLMENT, ENROLMENT, OWN, [f"12 of 48 {MET}", f"2 of 4 {TRAINED}"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("backend", "enrolled", "tested", "trials", "expected"), LEAKS.values(), ids=LEAKS
)
def test_trials_that_flatter_a_backend_raise_a_warning(
    backend, enrolled, tested, trials, expected, caplog, tmp_path
):
    caplog.set_level(logging.WARNING)
    scores = backend.score(enrolled, tested, trials).values
    told = caplog.messages[:]
    assert len(told) == len(expected)
    for message, text in zip(told, expected, strict=True):
        assert message.startswith(text)
    write_backend(tmp_path / "backend.h5", backend)
    read_backend(tmp_path / "backend.h5").score(enrolled, tested, trials)
    assert caplog.messages == 2 * told
    silent = backend.score(enrolled, tested, trials, warn=False).values
    assert caplog.messages == 2 * told
    np.testing.assert_array_equal(silent, scores)


def test_supervectors_are_checked_as_embeddings(caplog):
    given = Supervectors(ENROLMENT.speakers, ENROLMENT.ids, ENROLMENT.vectors)
    OF_TESTS.score(given, given, OWN)
    assert [message[:8] for message in caplog.messages] == ["12 of 48", "2 of 4 s"]


def test_row_numbers_are_not_speakers(caplog):
    """Two sets of arrays have the same numbers, and no speaker in common that anybody knows."""
    backend = train_chain(POINTS[:24], "whiten,length,cosine")
    enrolled = Embeddings.from_arrays(POINTS[24:30])
    tested = Embeddings.from_arrays(POINTS[30:], ids=range(18))
    backend.score(enrolled, tested, Trials.from_ids(["u0", "u1"], ["2", "3"]))
    backend.score(POINTS[24:], POINTS[24:])
    train_chain(POINTS, "lda:2,cosine", speakers=SPEAKERS).score(POINTS, POINTS)
    assert not caplog.messages
