"""Errors of single attackers are recorded; defects of this package end the run."""

import pytest

from evaluation.reports import Failure
from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.plugins import TimeLimitError
from spkver.voiceprivacy.failures import Failures
from spkver.voiceprivacy.rows import Row


def row_of(attacker, folder):
    return Row(
        f"{folder}/{attacker}",
        "train",
        "asv_orig",
        ("enrolls",),
        ("trials",),
        "f",
        "ignorant",
        attacker=attacker,
    )


def fail(error):
    raise error


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("0"), AttributeError("x"), KeyError("x"), ValueError("x")]
)
def test_defects_of_built_in_attackers_are_raised_and_those_of_plug_ins_recorded(error):
    failures = Failures({"mine"})
    with pytest.raises(type(error)):
        failures.attempt([row_of("gmm-svm", "a")], lambda: fail(error))
    assert failures.errors == {}
    assert failures.attempt([row_of("mine", "b"), row_of("mine", "c")], lambda: fail(error)) is None
    assert failures.errors == {"b/mine/scores": error, "c/mine/scores": error}


@pytest.mark.parametrize("name", ["gmm-svm", "mine"])
def test_an_error_of_the_data_is_recorded(name):
    failures = Failures({"mine"})
    error = DataError("too short")
    row = row_of(name, "a")
    assert failures.attempt([row], lambda: fail(error)) is None
    assert failures.error(row) is error
    assert failures.listed == []
    failures.tell(row)
    failures.tell(row_of(name, "b"))
    assert failures.listed == [Failure(name, "", "", "ignorant", f"a/{name}/scores", "too short")]


@pytest.mark.parametrize("name", ["gmm-svm", "mine"])
@pytest.mark.parametrize(
    "error", [MemoryError(), WorkerError("killed"), ConfigError("wrong"), KeyboardInterrupt()]
)
def test_errors_that_end_every_attacker_are_raised(name, error):
    with pytest.raises(type(error)):
        Failures({"mine"}).attempt([row_of(name, "a")], lambda: fail(error))


def test_an_attacker_that_exceeded_the_time_limit_is_not_called_again():
    failures, calls = Failures({"mine"}), []

    def slow():
        calls.append(1)
        raise TimeLimitError("10 s")

    failures.attempt([row_of("mine", "a")], slow)
    failures.attempt([row_of("mine", "b")], slow)
    assert len(calls) == 1
    assert failures.errors.keys() == {"a/mine/scores", "b/mine/scores"}
