"""The table of formats: what is made from it, and the example of docs/formats.md as a user would take it."""

import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from command_lines import passes, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.formats import (
    FORMATS,
    Choice,
    check_extension,
    read_key,
    read_scores,
    read_trials,
    write_key,
    write_scores,
    write_trials,
)
from evaluation.trials import Key, Scores
from spkbase.errors import DataError
from spkbase.plugins import load_plugin

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
SCORES = Scores.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [1.5, -0.25, 0.125, 3.0])
KEY = Key.from_ids(["a", "a", "b", "b"], ["s", "t", "s", "t"], [True, False, False, True])


@pytest.fixture
def nested(tmp_path):
    """The example of the page, as a file of the user's."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    (tmp_path / "nested.py").write_text(code, encoding="utf-8")
    return f"{tmp_path / 'nested.py'}:NESTED"


def same(scores):
    return dict(zip(scores.pairs(), scores.values.tolist(), strict=True)) == dict(
        zip(SCORES.pairs(), SCORES.values.tolist(), strict=True)
    )


def test_the_page_lists_every_format():
    rows = re.findall(
        r"^\| ([a-z0-9]+) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE
    )
    expected = [
        (
            row.name,
            " ".join(suffix or "(none)" for suffix in row.suffixes) or "by name",
            ", ".join(row.kinds) if row.read else "nothing",
            ", ".join(row.kinds) if row.write else "nothing",
            row.title or row.name,
        )
        for row in FORMATS
    ]
    assert [row for row in rows if row[0] != "name"] == expected


# and strings that pandas, spreadsheets or Python take for numbers, gaps or truth values
ODD = (
    "NA",
    "nan",
    "None",
    "null",
    "#N/A",
    "007",
    "7",
    "1e5",
    "1.0",
    "0x1F",
    "-inf",
    "True",
    "2001-01-01",
    '"',
    "'q",
)
IDS = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=5
)
# characters that a column of text cannot hold; a table keeps all but the line ends of old Macintoshes
WHITE = {
    ".txt": set(" \t\n\r\x0b\x0c\ufeff"),
    ".csv": set("\n\r"),
    ".tsv": set("\n\r"),
    ".npz": set(),
    ".h5": set(),
}


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("suffix", WHITE)
@given(listed=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=20, unique=True), draw=st.data())
def test_written_lists_are_read_back_to_the_last_bit(tmp_path, suffix, large, listed, draw):
    listed = [pair for pair in listed if not WHITE[suffix] & set("".join(pair))] or [("a", "b")]
    listed = sorted(listed) if suffix == ".h5" else listed  # HDF5 has the order of its matrix
    size, path = {"min_size": len(listed), "max_size": len(listed)}, tmp_path / f"list{suffix}"
    values = draw.draw(st.lists(st.floats(allow_nan=False), **size))
    truth = draw.draw(st.lists(st.booleans(), **size))
    types = draw.draw(st.none() | st.lists(st.sampled_from(["TC", "TW", "IC", "Ü"]), **size))
    columns = tuple(zip(*listed, strict=True))
    with mock.patch("evaluation.formats.text._LARGE", 0 if large else 1 << 40):
        write_scores(path, Scores.from_ids(*columns, values))
        scores = read_scores(path)
        write_key(path, Key.from_ids(*columns, truth, types=types))
        key = read_key(path)
        assert list(read_trials(path).pairs()) == listed
        write_trials(path, key)
        assert (
            list(read_trials(path).pairs()) == list(scores.pairs()) == list(key.pairs()) == listed
        )
    assert scores.values.tobytes() == np.array(values).tobytes()
    assert key.is_target.tolist() == truth
    if suffix == ".h5" and types:
        assert [key.type_names[code] for code in key.types] == types


def test_a_user_defined_format_works_in_python(tmp_path, nested):
    mine = load_plugin(nested, "format")[0]
    path = tmp_path / "scores.json"
    write_scores(path, SCORES, formats=(mine,))
    assert path.read_text() == '{"a": {"s": 1.5, "t": -0.25}, "b": {"s": 0.125, "t": 3.0}}'
    assert same(read_scores(path, Choice(formats=(mine,))))
    write_scores(tmp_path / "scores.txt", SCORES, formats=(mine,))
    assert same(read_scores(tmp_path / "scores.txt", Choice(formats=(mine,))))


def test_a_user_defined_format_serves_only_its_kinds_of_list(tmp_path, nested):
    mine = load_plugin(nested, "format")[0]
    path = tmp_path / "scores.json"
    write_scores(path, SCORES, formats=(mine,))
    with pytest.raises(
        DataError, match="expected key, but a file of the format nested holds scores"
    ):
        read_key(path, Choice(formats=(mine,)))
    with pytest.raises(
        DataError,
        match=r"nested cannot hold key .write it as one of hdf5, npz, table, text",
    ):
        write_key(path, KEY, formats=(mine,))
    path.write_text("a s 1\n")
    with pytest.raises(DataError, match="expected a nested file by its name, got something else"):
        read_scores(path, Choice(formats=(mine,)))
    with pytest.raises(DataError, match=r"no format of lists is known for the extension '.json'"):
        check_extension(path)


def test_commands_accept_a_user_defined_format(tmp_path, nested):
    write_scores(tmp_path / "scores.txt", SCORES)
    write_key(tmp_path / "key.txt", KEY)

    passes(
        "convert", "scores", tmp_path / "scores.txt", tmp_path / "scores.json", "--format", nested
    )
    to = "--format", nested, "--to", "nested"
    passes("convert", "scores", tmp_path / "scores.txt", tmp_path / "named.out.json", *to)
    assert (tmp_path / "scores.json").read_bytes() == (tmp_path / "named.out.json").read_bytes()
    mine = (
        "-s",
        tmp_path / "scores.json",
        "-k",
        tmp_path / "key.txt",
        "--format",
        nested,
        "--json",
        "-",
    )
    text = ("-s", tmp_path / "scores.txt", "-k", tmp_path / "key.txt", "--json", "-")
    assert passes("metrics", *mine).output == passes("metrics", *text).output
    passes("convert", "scores", tmp_path / "scores.json", tmp_path / "back.h5", "--format", nested)
    assert same(read_scores(tmp_path / "back.h5"))


def test_a_plug_in_that_is_not_a_format_is_refused(tmp_path):
    write_scores(tmp_path / "scores.txt", SCORES)
    message = refused(
        "convert", "scores", tmp_path / "scores.txt", tmp_path / "a.npz", "--format", "math:pi"
    )
    assert "the format 'math:pi' is a float, expected an evaluation.formats.Format" in message
