"""Files ``result_for_rank*``: the challenge's own, and tables as pandas prints them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.challenges.rank_files import (
    ASR,
    ASV_ANON,
    SER,
    Section,
    format_rank_file,
    read_rank_file,
    records,
    write_rank_file,
)
from spkbase.errors import DataError

# What pandas 3.1 prints (DataFrame.to_string) for these rows, with short, long and undefined numbers.
SER_ROWS = [
    {
        "dataset": "IEMOCAP",
        "split": "dev",
        "ser": "anon",
        "UAR": 36.389,
        "ACC_sad": 2.5762,
        "ACC_neu": 9.0,
    },
    {
        "dataset": "IEMOCAP",
        "split": "test",
        "ser": "original",
        "UAR": 7.0,
        "ACC_sad": 100.0,
        "ACC_neu": 8.0,
    },
]
SER_TEXT = """\
    dataset split       ser     UAR   ACC_sad ACC_neu
                               mean      mean    mean
0   IEMOCAP   dev      anon  36.389    2.5762     9.0
12  IEMOCAP  test  original   7.000  100.0000     8.0"""
ASR_ROWS = [
    {"dataset": "a_long_name_of_a_set", "split": "dev", "asr": "anon", "WER": 4.25},
    {"dataset": "x", "split": "dev", "asr": "original", "WER": float("nan")},
    {"dataset": "x", "split": "test", "asr": "original", "WER": 10.0},
]
ASR_TEXT = """\
                dataset split       asr    WER
3  a_long_name_of_a_set   dev      anon   4.25
4                     x   dev  original    NaN
5                     x  test  original  10.00"""


def test_tables_equal_the_printed_form_of_pandas():
    for section, text in (
        (Section(SER, SER_ROWS, index=[0, 12]), SER_TEXT),
        (Section(ASR, ASR_ROWS, index=[3, 4, 5]), ASR_TEXT),
    ):
        assert format_rank_file([section]) == f"---- {section.title} ----\n{text}\n"


# files of track 1 of 2026 and of nac were edited by hand; some of track 2 end in a blank line
EDITED = ("result_for_rank_nac", "track1", "track2")


@pytest.mark.golden
def test_the_challenges_files_are_written_back_byte_for_byte(shared, tmp_path):
    paths = sorted((shared / "formats").glob("vpc202[46]_results/**/result_for_rank_*"))
    assert len(paths) == 14
    for path in paths:
        found = read_rank_file(path)
        write_rank_file(tmp_path / path.name, found)
        assert read_rank_file(tmp_path / path.name) == found
        written, given = (tmp_path / path.name).read_text(), path.read_text()
        if not {path.name, path.parent.name}.intersection(EDITED):
            assert written == given
        if path.parent.name == "track2":
            assert written.rstrip("\n") == given.rstrip("\n")
        lines = [
            [line.split() for line in text.splitlines() if line.strip()]
            for text in (written, given)
        ]
        assert lines[0] == lines[1]


NUMBERS = st.floats(0, 100, allow_nan=False).map(lambda value: round(value, 4))


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from(["007", "NA"]), NUMBERS), min_size=1, max_size=5),
    st.integers(0, 200),
)
def test_written_files_are_read_back_equal(rows, first):
    """Names that look like numbers are names."""
    import tempfile

    asr = [
        {"dataset": name, "split": str(n), "asr": "anon", "WER": value}
        for n, (name, value) in enumerate(rows)
    ]
    eer = [
        {
            "dataset": "libri",
            "split": str(n),
            "gender": "f",
            "enrollment": "anon",
            "trial": "anon",
            "EER": value,
        }
        for n, (_, value) in enumerate(rows)
    ]
    index = list(range(first, first + len(rows)))
    file = [Section(ASR, asr, index, time="1"), Section(ASV_ANON, eer, index)]
    with tempfile.TemporaryDirectory() as folder:
        write_rank_file(Path(folder) / "r", file)
        assert read_rank_file(Path(folder) / "r") == file


def language(name, eer, index=()):
    row = " ".join(["", *map(str, index), name, "test mixed anon anon", f"{eer:.3f}"])
    return f"---- {ASV_ANON} ----\ndataset split gender enrollment trial   EER\n{row}\n\n"


def test_sections_with_equal_titles_are_joined_with_or_without_row_numbers(tmp_path):
    path = tmp_path / "result_for_rank_x"
    path.write_text(language("en", 3.734) + language("de", 1.75))
    file = read_rank_file(path)
    assert [section.index for section in file] == [[], []]
    assert [(row["dataset"], row["EER"]) for row in records(file, ASV_ANON)] == [
        ("en", 3.734),
        ("de", 1.75),
    ]
    # as pandas prints a data frame without its index
    assert format_rank_file(file).splitlines()[1:3] == [
        "dataset split gender enrollment trial   EER",
        "     en  test  mixed       anon  anon 3.734",
    ]
    path.write_text(language("en", 3.734, (2,)) + language("de", 1.75))
    assert [section.index for section in read_rank_file(path)] == [[2], []]


GOOD = "---- ASR results ----\n  dataset split   asr   WER\n0   libri  test  anon  4.25\n"
HEAD = "---- ASR results ----\ndataset split asr WER\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected sections '---- ... results ----', got none"),
        ("hello\n", ":1: expected '---- ... ----', got 'hello'"),
        ("---- Time: 1 ----\n  dataset\n", ":2: expected '---- ... ----', got 'dataset'"),
        ("---- ASR results ----\n", ":1: the section 'ASR results' has no table"),
        (GOOD + "\n" + GOOD, ":7: repeats line 3: libri test anon"),
        (GOOD + "1   libri  test  anon  45.0\n", ":4: repeats line 3: libri test anon"),
        (language("en", 1) + language("en", 2), ":7: repeats line 3: en test mixed anon anon"),
        (GOOD.replace("4.25", "good"), ":3: expected a number as WER, got 'good'"),
        (GOOD.replace("libri", "libri x"), ":3: expected a row number and 4 cells"),
        (GOOD.replace("WER", "CER"), ":2: expected the columns dataset, split, asr, WER once each"),
        (GOOD.replace("asr", "split"), ":2: expected the columns"),
        (
            GOOD + "x libri test anon 1\n",
            ":4: expected a row number and 4 cells, got 'x libri test anon 1'",
        ),
        (HEAD + " mean mean\n", ":1: the section 'ASR results' has no row"),
        # a row that lacks its name does not count as one that lacks its number
        (HEAD + "0 libri test 4.2\n", ":3: expected a row number and 4 cells"),
        (language("en", 101), ":3: expected a rate in per cent as EER, got '101.000'"),
        (language("en", 1).replace("1.000", "-1"), "expected a rate in per cent as EER, got '-1'"),
        (
            HEAD.replace("ASR", "SER").replace("asr WER", "ser UAR ACC_sad")
            + "0 a test anon 50 4x\n",
            "ACC_sad, got '4x'",
        ),
        (language("en", 1).replace("1.000", "low"), "results' has no row"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    (tmp_path / "r").write_text(text)
    with pytest.raises(DataError) as caught:
        read_rank_file(tmp_path / "r")
    assert message in str(caught.value)
