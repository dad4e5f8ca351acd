"""Files ``result_for_rank*``: the challenge's own, and tables as pandas prints them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.challenges.rank_files import (
    ASR,
    ASV,
    ASV_ANON,
    SER,
    RankFile,
    format_rank_file,
    make_section,
    read_rank_file,
    write_rank_file,
)
from spkbase.errors import DataError

# What pandas 3.1 prints (DataFrame.to_string) for these rows; numbers that come short, long and undefined.
SER_ROWS = [
    {"dataset": "IEMOCAP", "split": "dev", "ser": "anon", "UAR": 36.389, "ACC_sad": 2.5762, "ACC_neu": 9.0},
    {"dataset": "IEMOCAP", "split": "test", "ser": "original", "UAR": 7.0, "ACC_sad": 100.0, "ACC_neu": 8.0},
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


def body(section) -> str:  # type: ignore[no-untyped-def]
    return format_rank_file(RankFile((section,))).split("----\n", 1)[1].rstrip("\n")


def test_tables_look_as_pandas_prints_them() -> None:
    assert body(make_section(SER, SER_ROWS, index=[0, 12])) == SER_TEXT
    assert body(make_section(ASR, ASR_ROWS, index=[3, 4, 5])) == ASR_TEXT


BYTE_FOR_BYTE = [
    "asrbn_hifigan_bn_tdnnf_600h_vq_48_v1",
    "asrbn_hifigan_bn_tdnnf_wav2vec2_vq_48_v1",
    "b1b",
    "mcadams",
    "sttts",
    "sttts_sarina",
]


@pytest.mark.golden
@pytest.mark.parametrize("name", BYTE_FOR_BYTE)
def test_the_challenges_files_are_written_back_byte_for_byte(shared: Path, tmp_path: Path, name: str) -> None:
    path = shared / "formats" / "vpc2024_results" / f"result_for_rank_{name}"
    write_rank_file(tmp_path / "again", read_rank_file(path))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.golden
def test_a_file_that_was_edited_by_hand_keeps_its_numbers(shared: Path, tmp_path: Path) -> None:
    path = shared / "formats" / "vpc2024_results" / "result_for_rank_nac"
    found = read_rank_file(path)
    assert [one.time for one in found.sections] == [None] * 4
    write_rank_file(tmp_path / "again", found)
    assert read_rank_file(tmp_path / "again") == found
    squeezed = [line.split() for line in path.read_text().splitlines() if line.strip()]
    assert [line.split() for line in (tmp_path / "again").read_text().splitlines() if line.strip()] == squeezed


@pytest.mark.golden
def test_numbers_are_found_by_what_they_are_of(shared: Path) -> None:
    found = read_rank_file(shared / "formats" / "vpc2024_results" / "result_for_rank_mcadams")
    assert [one.title for one in found.sections] == [SER, ASV, ASR, ASV_ANON]
    assert found.value(ASR, "WER", split="test", asr="anon") == 9.954
    assert found.value(SER, "UAR", split="dev", ser="original") == 69.0796
    assert found.value(ASV_ANON, "EER", split="test", gender="f") == 7.483
    assert found.value(ASV, "EER", split="test", gender="x") is None
    assert found.sections[0].time == "29-03-24_10:45"
    assert found.sections[3].index == (2, 5, 8, 11)
    with pytest.raises(DataError, match="expected one number EER"):
        found.value(ASV, "EER", split="test")


NUMBERS = st.floats(0, 100, allow_nan=False).map(lambda value: round(value, 4))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["libri", "a"]), NUMBERS), min_size=1, max_size=5), st.integers(0, 200))
def test_what_is_written_is_read_back(rows: list[tuple[str, float]], first: int) -> None:
    import tempfile

    asr = [
        {"dataset": name, "split": str(place), "asr": "anon", "WER": value} for place, (name, value) in enumerate(rows)
    ]
    eer = [
        {"dataset": "libri", "split": str(place), "gender": "f", "enrollment": "anon", "trial": "anon", "EER": value}
        for place, (_, value) in enumerate(rows)
    ]
    index = range(first, first + len(rows))
    file = RankFile((make_section(ASR, asr, index=index, time="1"), make_section(ASV_ANON, eer, index=index)))
    with tempfile.TemporaryDirectory() as folder:
        write_rank_file(Path(folder) / "r", file)
        assert read_rank_file(Path(folder) / "r") == file


GOOD = "---- ASR results ----\n  dataset split   asr   WER\n0   libri  test  anon  4.25\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected sections '---- ... results ----', got none"),
        ("hello\n", ":1: expected '---- ... ----', got 'hello'"),
        ("---- Time: 1 ----\n  dataset\n", ":2: expected '---- ... ----', got 'dataset'"),
        ("---- ASR results ----\n", ":1: the section 'ASR results' has no table"),
        (GOOD + "\n" + GOOD, ":7: repeats line 3: libri test anon"),
        (GOOD + "1   libri  test  anon  45.0\n", ":4: repeats line 3: libri test anon"),
        (GOOD.replace("4.25", "good"), ":3: expected a number as WER, got 'good'"),
        (GOOD.replace("libri", "libri x"), ":3: expected a row number and 4 cells"),
        (GOOD.replace("WER", "CER"), ":2: expected the columns dataset, split, asr, WER once each"),
        (GOOD.replace("asr", "split"), ":2: expected the columns"),
        (GOOD + "x libri test anon 1\n", ":4: expected a row number and 4 cells, got 'x libri test anon 1'"),
        ("---- ASR results ----\ndataset split asr WER\n mean mean\n", ":1: the section 'ASR results' has no row"),
        ("---- ASR results ----\ndataset split asr WER\na b c d e\n", ":3: expected at most 4 names, got 5"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r").write_text(text)
    with pytest.raises(DataError) as caught:
        read_rank_file(tmp_path / "r")
    assert message in str(caught.value)


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"a\0"])
def test_binary_files(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "r").write_bytes(raw)
    with pytest.raises(DataError, match=":1: expected text in UTF-8"):
        read_rank_file(tmp_path / "r")


def test_sections_are_made_of_whole_rows() -> None:
    with pytest.raises(DataError, match="has no row"):
        make_section(ASR, [])
    with pytest.raises(DataError, match="expected the columns dataset, split, asr, WER"):
        make_section(ASR, [{"dataset": "libri", "WER": 1.0}])
