"""Tables of recordings: with words, and without a header."""

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from spkver.cli import main
from spkver.datadir import read_datadir

pytestmark = pytest.mark.whole
ROWS = [("a.wav", "anna", "one  two"), ("b.wav", "anna", ""), ("c.wav", "bert", "drei")]


@pytest.fixture
def clips(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "clips").mkdir()
    for name, _, _ in ROWS:
        soundfile.write(tmp_path / "clips" / name, 0.1 * rng.normal(size=8000), 16000)
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(main, ["datadir", *map(str, arguments)])


@pytest.mark.parametrize("has_header", [True, False])
def test_words_and_columns_of_a_table_make_a_data_directory(clips, has_header):
    lines = ["\t".join(row) for row in ROWS]
    options = ["--speaker", "client_id", "--path", "path", "--text", "sentence"]
    if has_header:
        lines = ["path\tclient_id\tsentence", *lines]
    else:
        options += ["--columns", "path,client_id,sentence"]
    (clips / "list.tsv").write_text("\n".join(lines))
    done = invoke(clips / "clips", "--table", clips / "list.tsv", *options, "-o", clips / "data")
    assert done.exit_code == 0, done.output
    assert read_datadir(clips / "data").speakers == {"a": "anna", "b": "anna", "c": "bert"}
    assert (clips / "data/text").read_text() == "a one two\nc drei\n"


def test_columns_that_do_not_fit_are_refused(clips):
    (clips / "list.txt").write_text("".join(f"{path} {speaker}\n" for path, speaker, _ in ROWS))
    table = [clips / "clips", "--table", clips / "list.txt", "--speaker", "who", "--path", "path"]
    done = invoke(*table, "--columns", "path,who,text", "-o", clips / "data")
    assert done.exit_code == 2
    assert "expected 3 columns" in done.output
    done = invoke(*table, "--columns", "path,name", "-o", clips / "data")
    assert "no column 'who'; the columns are: path, name" in done.output
    done = invoke(clips / "clips", "--columns", "path,who", "-o", clips / "data")
    assert "go together" in done.output
    done = invoke(*table, "--columns", "path, who", "-o", clips / "data")
    assert done.exit_code == 0, done.output
