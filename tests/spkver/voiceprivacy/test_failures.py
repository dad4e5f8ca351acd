"""Errors of single attackers are recorded; defects of this package end the run."""

import pytest

from spkbase.errors import ConfigError, DataError, WorkerError
from spkbase.plugins import TimeLimitError
from spkver.voiceprivacy.failures import Failures


def fail(error):
    raise error


@pytest.mark.parametrize("error", [ZeroDivisionError("0"), AttributeError("x"), KeyError("x"), ValueError("x")])
def test_a_defect_of_a_built_in_attacker_is_raised_and_that_of_a_plugin_recorded(error):
    failures = Failures({"mine"})
    with pytest.raises(type(error)):
        failures.attempt("gmm-svm", ["a/scores"], lambda: fail(error))
    assert failures.of_rows == {}
    assert failures.attempt("mine", ["b/scores", "c/scores"], lambda: fail(error)) is None
    assert failures.of_rows == {"b/scores": error, "c/scores": error}


@pytest.mark.parametrize("name", ["gmm-svm", "mine"])
def test_an_error_of_the_data_is_recorded(name):
    failures = Failures({"mine"})
    error = DataError("too short")
    assert failures.attempt(name, ["a/scores"], lambda: fail(error)) is None
    assert failures.of_rows == {"a/scores": error}


@pytest.mark.parametrize("name", ["gmm-svm", "mine"])
@pytest.mark.parametrize("error", [MemoryError(), WorkerError("killed"), ConfigError("wrong"), KeyboardInterrupt()])
def test_errors_that_end_every_attacker_are_raised(name, error):
    with pytest.raises(type(error)):
        Failures({"mine"}).attempt(name, ["a/scores"], lambda: fail(error))


def test_an_attacker_that_exceeded_the_time_limit_is_not_called_again():
    failures, calls = Failures({"mine"}), []

    def slow():
        calls.append(1)
        raise TimeLimitError("10 s")

    failures.attempt("mine", ["a/scores"], slow)
    failures.attempt("mine", ["b/scores"], slow)
    assert len(calls) == 1
    assert failures.of_rows.keys() == {"a/scores", "b/scores"}
