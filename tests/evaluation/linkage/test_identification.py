"""Open-set identification: brute force, closed forms, and honest mistakes."""

import numpy as np
import pytest

import evaluation as ev
from evaluation.linkage import answers
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError

NONE = Resampling(0)


def made(matrix, enrolled, tested, models=None):
    """Scores and key of tested people (rows) against enrolled ones (columns)."""
    names = models or enrolled
    segments = [f"{person}/{row}" for row, person in enumerate(tested)]
    ids = [name for _ in segments for name in names], [s for s in segments for _ in names]
    truth = [person == other for person in tested for other in enrolled]
    return ev.Scores.from_ids(*ids, np.ravel(matrix)), ev.Key.from_ids(*ids, truth)


def drawn(seed=0, n_enrolled=6, n_unknown=9, takes=4, decimals=1):
    rng = np.random.default_rng(seed)
    enrolled = [f"p{number}" for number in range(n_enrolled)]
    people = enrolled + [f"u{number}" for number in range(n_unknown)]
    tested = np.repeat(people, takes).tolist()
    matrix = rng.normal(size=(len(tested), n_enrolled))
    for row, person in enumerate(tested):
        if person in enrolled:
            matrix[row, enrolled.index(person)] += 1.5
    return matrix.round(decimals), enrolled, tested


def brute_force(matrix, enrolled, tested, threshold):
    """Rates of one threshold, search by search."""
    missed, wrong = [], []
    for scores, person in zip(matrix.tolist(), tested, strict=True):
        if person in enrolled:
            own = scores[enrolled.index(person)]
            place = sum(score >= own for score in scores)  # equal scores rank before it
            missed.append(own < threshold or place > 1)
        else:
            wrong.append(max(scores) >= threshold)
    return np.mean(missed), np.mean(wrong)


def test_reversed_scores_raise_a_warning_and_a_single_rate_is_taken(caplog):
    scores, key = made(*drawn())
    one = ev.identification(scores, key, fpir=0.1, resampling=NONE)
    assert one.fnir[0.1] == ev.identification(scores, key, fpir=[0.1], resampling=NONE).fnir[0.1]
    assert "REVERSED" not in caplog.text
    turned = ev.Scores.from_ids(*zip(*key.pairs(), strict=True), -scores.values)
    ev.identification(turned, key, resampling=NONE)
    assert "REVERSED" in caplog.text


@pytest.mark.parametrize("seed", range(3))
def test_rates_equal_those_of_brute_force(seed):
    given = drawn(seed)
    scores, key = made(*given)
    for asked in (0.5, 0.1, 0.03, 0.01):
        thresholds = [*np.unique(given[0]).tolist(), np.inf]
        rates = [brute_force(*given, threshold) for threshold in thresholds]
        best = next(rate for rate in rates if rate[1] <= asked)  # thresholds rise
        result = ev.identification(scores, key, fpir=[asked], resampling=NONE)
        point = result.fnir[asked]
        assert (point.value, result.fpir[asked].value) == pytest.approx(best)
        if np.isfinite(point.threshold):
            again = ev.identification(scores, key, threshold=point.threshold, resampling=NONE)
            assert (again.fnir.given.value, again.fpir.given.value) == pytest.approx(best)
    assert ("not resolved" in result.notes["fnir.0.01"]) == (0.01 * 36 < 1)


def test_random_scores_find_the_speaker_only_by_chance():
    matrix = np.random.default_rng(1).normal(size=(4000, 4))
    tested = ["a", "b", "c", "d"] * 500 + ["x"] * 1000 + ["y"] * 1000
    scores, key = made(matrix, ["a", "b", "c", "d"], tested)
    result = ev.identification(scores, key, fpir=[0.5], resampling=NONE)
    # half of all searches are answered, with each model equally likely
    assert result.fnir[0.5].value == pytest.approx(1 - 0.5 / 4, abs=0.02)


def test_equal_scores_identify_nobody():
    scores, key = made(np.zeros((4, 2)), ["a", "b"], ["a", "b", "x", "y"])
    result = ev.identification(scores, key, fpir=[0.5], resampling=NONE)
    assert result.fnir[0.5].value == 1.0
    assert "equal" in result.notes["scores"] or "same" in result.notes["scores"]


def test_intervals_resample_the_people_who_are_tested():
    scores, key = made(*drawn())
    result = ev.identification(scores, key, fpir=[0.1], speakers="/", resampling=Resampling(100))
    low, high = result.intervals["fnir.0.1"]
    assert low < result.fnir[0.1].value < high
    assert "fpir.0.1" not in result.intervals  # it was chosen on the same trials
    given = ev.identification(
        scores, key, threshold=1.5, speakers="/", resampling=Resampling(100, seed=1)
    )
    assert set(given.intervals) == {"fnir.given", "fpir.given"}
    assert (
        "24 searches of enrolled and 36 of unknown speakers, among 6 models"
        in given.notes["searches"]
    )


def test_speakers_enrolled_twice_count_once_by_their_best_model():
    matrix, enrolled, tested = drawn()
    lower = matrix - 1.0
    doubled = np.stack([lower, matrix], axis=2).reshape(len(matrix), -1)
    models = [f"{person}/{take}" for person in enrolled for take in "xy"]
    scores, key = made(doubled, np.repeat(enrolled, 2).tolist(), tested, models)
    with pytest.raises(DataError, match=r"several of .*give the speakers of models that share one"):
        ev.identification(scores, key, resampling=NONE)
    once = ev.identification(*made(matrix, enrolled, tested), resampling=NONE)
    both = ev.identification(scores, key, speakers="/", resampling=NONE)
    assert both.values() == once.values()


def test_one_stranger_is_enough_without_intervals():
    scores, key = made([[2.0, 0.0], [0.0, 2.0], [1.0, 0.5]], ["a", "b"], ["a", "b", "x"])
    assert ev.identification(scores, key, fpir=[0.5], resampling=NONE).fnir[0.5].value == 0.0
    with pytest.raises(DataError, match="at least 2 speakers"):
        ev.identification(scores, key, speakers="/")


def test_answers_are_models_or_unknown():
    matrix, enrolled, tested = drawn(decimals=6)
    columns = answers(made(matrix, enrolled, tested)[0], 1.0)
    best = dict(zip(columns["segment"], columns["answer"], strict=True))
    for row, person in enumerate(tested):
        expected = enrolled[int(matrix[row].argmax())] if matrix[row].max() >= 1.0 else "unknown"
        assert best[f"{person}/{row}"] == expected


def changed_key(change):
    """Scores, and a key with one kind of mistake."""
    matrix, enrolled, tested = drawn()
    scores, key = made(matrix, enrolled, tested)
    return scores, change(key, np.array([segment[0] for segment in key.segment_ids[key.segments]]))


MISTAKES = {
    "no unknown speakers": (lambda key, first: key.subset(first == "p"), "got 24 and 0"),
    "no enrolled speakers": (lambda key, first: key.subset(first == "u"), "got 0 and 36"),
    "no nontarget trials": (lambda key, first: key.subset(key.is_target), "got 24 and 0"),
    "target trials left out": (
        lambda key, first: key.subset(~key.is_target | (key.segments > 3)),
        "segments of enrolled speakers have no target trial: p0/0",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_honest_mistakes_are_refused(name):
    change, message = MISTAKES[name]
    scores, key = changed_key(change)
    with pytest.raises(DataError, match=message):
        ev.identification(scores, key, speakers="/", missing="drop", resampling=NONE)


def test_doubtful_lists_are_noted():
    matrix, enrolled, tested = drawn()
    scores, key = made(-matrix, enrolled, tested)
    assert "REVERSED" in ev.identification(scores, key, resampling=NONE).notes["scores"]
    some = key.subset(np.arange(len(key)) % 7 > 0)
    part = ev.identification(*made(matrix, enrolled, tested)[:1], some, resampling=NONE)
    assert "or fewer, from 5" in part.notes["searches"]
    with pytest.raises(DataError, match="bootstrap_by='id'"):
        ev.identification(*made(matrix, enrolled, tested))
    with pytest.raises(DataError, match="expected a"):
        ev.identification(scores, key, fpir=[0.0], resampling=NONE)
    with pytest.raises(DataError, match="finite threshold"):
        ev.identification(scores, key, threshold=np.nan, resampling=NONE)
    with pytest.raises(DataError, match="finite threshold"):
        answers(scores, np.nan)
    named = ev.Scores.from_ids(["unknown"], ["s"], [1.0])
    with pytest.raises(DataError, match="rename it"):
        answers(named, 0.0)
