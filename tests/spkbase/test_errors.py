"""Errors that a user can mend: their texts, and their way out of worker processes."""

import pickle

import pytest

from spkbase.errors import ConfigError, DataError, Problems, errors_of


class SpecialError(DataError):
    """An error of a kind of its own."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "wrong"),
        ({"file": "a.txt", "line": 3, "remedy": "mend it"}, "a.txt:3: wrong (mend it)"),
        ({"remedy": "mend it"}, "wrong (mend it)"),
    ],
)
def test_errors_show_file_line_and_remedy(options, expected):
    assert str(DataError("wrong", **options)) == expected


@pytest.mark.parametrize("kind", [DataError, ConfigError])
def test_pickling_keeps_every_attribute(kind):
    error = kind("wrong", file="a.txt", line=3, remedy="mend it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.text, copy.file, copy.line, copy.remedy) == ("wrong", "a.txt", 3, "mend it")
    assert str(copy) == str(error)


def test_many_problems_are_reported_together():
    problems = Problems("list.txt")
    for number in range(1, 31):
        problems.add(f"problem {number}", line=number, file="other.txt" if number == 2 else None)
    with pytest.raises(DataError) as caught:
        problems.raise_if_any()
    lines = str(caught.value).splitlines()
    assert lines[0] == "30 problems:"
    assert lines[1:3] == ["  list.txt:1: problem 1", "  other.txt:2: problem 2"]
    assert lines[-1] == "  ... and 10 more"
    assert len(lines) == 22


def test_one_cause_in_many_files_is_one_problem():
    problems = Problems()
    for number in range(820):
        problems.add("the rate is 8000 Hz", file=f"{number}.wav", remedy="resample")
    with pytest.raises(DataError) as caught:
        problems.raise_if_any()
    assert (
        str(caught.value)
        == "the rate is 8000 Hz, in 820 files: 0.wav, 1.wav, 2.wav, ... (resample)"
    )
    problems.add("is empty", file="0.wav")
    with pytest.raises(DataError, match=r"^2 problems:\n  the rate is 8000 Hz, in 820 files"):
        problems.raise_if_any()


def test_several_problems_make_one_error_with_parts():
    problems = Problems()
    for number in range(25):
        problems.add(f"problem {number}")
    with pytest.raises(DataError) as caught:
        problems.raise_if_any(ConfigError)
    copy = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, copy):
        assert [part.text for part in error.parts] == [f"problem {number}" for number in range(25)]
    assert DataError("alone").parts == ()


@pytest.mark.parametrize("kind", [DataError, ConfigError])
def test_a_subject_is_named_once_for_each_kind(kind):
    error = kind("too short", file="a.wav", remedy="leave it out")
    named = error.attributed("extractor", "ge2e")
    assert named.attributed("extractor", "other") is named
    both = (
        pickle.loads(pickle.dumps(named))
        .attributed("attacker", "mine")
        .attributed("attacker", "again")
    )
    assert type(both) is kind
    assert str(both) == "a.wav: attacker 'mine': extractor 'ge2e': too short (leave it out)"
    assert str(error) == "a.wav: too short (leave it out)"


def test_a_subject_is_named_even_if_the_text_begins_with_a_kind():
    """The text says nothing about who is named."""
    assert (
        DataError("attacker of the data").attributed("attacker", "a").text
        == "attacker 'a': attacker of the data"
    )


def test_adding_a_file_keeps_the_class():
    with pytest.raises(SpecialError, match=r"^a\.txt: wrong") as caught, errors_of("a.txt"):
        raise SpecialError("wrong", line=None)
    assert caught.value.file == "a.txt"
