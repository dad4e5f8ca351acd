"""Orders of columns, tables with a header, npz; and scores that do not fit their key."""

import gzip

import numpy as np
import pytest

from evaluation import formats
from evaluation.formats import read_key
from evaluation.formats.reading import read_split
from evaluation.formats.text import Choice, forced_layout
from evaluation.trials import Key
from spkbase.errors import DataError

PAIRS = [
    ("1", "-1"),
    ("tar", "imp"),
    ("tgt", "imp"),
    ("Genuine", "Impostor"),
    ("same", "different"),
]
PAIRS += [
    ("target", "imposter"),
    ("client", "impostor"),
    ("mated", "nonmated"),
    ("mated", "non-mated"),
    ("tar", "non"),
]
PAIRS += [
    ("positive", "negative"),
    ("pos", "neg"),
    ("same", "diff"),
    ("yes", "no"),
    ("Y", "N"),
    ("match", "mismatch"),
]
PAIRS += [
    ("match", "nonmatch"),
    ("match", "non-match"),
    ("target", "non-target"),
    ("True", "False"),
]
SCORES = {
    "kaldi": "a s 1.5\nb s -2\n",
    "voxsrc": "1.5 a s\n-2 b s\n",
    "wespeaker": "a s 1.5 target\nb s -2 nontarget\n",
    "wespeaker with numbers": "a s 1.5 1\nb s -2.0 0\n",
    "speechbrain": "a s 1 1.5\nb s 0 -2\n",
    "bob": "a a s 1.5\nb a s -2\n",
    "bob5": "a a a s 1.5\nb b a s -2\n",
    "csv": "model,segment,score\na,s,1.5\nb,s,-2\n",
    "csv in another order": '"llr";"test";"sex";"enrol"\n1.5;s;f;"a"\n-2;s;m;b\n',
    "tsv": "score\tmodel\ttest\n1.5\ta\ts\n-2\tb\ts\n",
    "blanks": "model segment score\na s 1.5\n\nb s -2\n",
    "bob csv": "bio_ref_subject_id,probe_subject_id,probe_key,score\na,a,s,1.5\nb,a,s,-2\n",
    "appended": "1 a s 1.5\n0 b s -2\n",
}
KEYS = {
    "kaldi": "a s target\nb s nontarget\n",
    "digits": "a s 1\nb s 0\n",
    "words": "a s True\nb s FALSE\n",
    "voxceleb": "1 a s\n0 b s\n",
    "label first": "target a s\nnontarget b s\n",
    "csv": "model,segment,target\na,s,True\nb,s,False\n",
    "nist": "modelid\tsegmentid\ttargettype\na\ts\ttarget\nb\ts\tnontarget\n",
    "bob": SCORES["bob"],
    "bob5": SCORES["bob5"],
    "wespeaker": SCORES["wespeaker"],
    "speechbrain": SCORES["speechbrain"],
    "bob csv": SCORES["bob csv"],
    "appended": SCORES["appended"],
    **{f"{yes} and {no}": f"a s {yes}\nb s {no}\n" for yes, no in PAIRS},
}


@pytest.mark.parametrize("line", ["VALUE s1 target", "score s1 target", "m1 VALUE target"])
@pytest.mark.parametrize("below", ["", "m2 s2 nontarget\n"])
def test_ids_that_are_column_names_are_not_a_header(tmp_path, line, below):
    path = tmp_path / "key.txt"
    path.write_text(f"{line}\n{below}")
    assert " ".join(next(iter(read_key(path).pairs()))) == line.removesuffix(" target")


@pytest.mark.parametrize("text", ["1 1.5\n0 -2\n", "1.5 target\n-2 nontarget\n"])
def test_labelled_scores_need_no_ids(tmp_path, text):
    target, nontarget = read_split(write(tmp_path / "s", text), tmp_path / "s")
    assert (target.tolist(), nontarget.tolist()) == ([1.5], [-2.0])


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("text", SCORES.values(), ids=SCORES)
def test_the_order_of_scores_is_detected(tmp_path, text, zipped):
    raw = gzip.compress(text.encode()) if zipped else text.encode()
    scores = formats.read_scores(write(tmp_path / "s", raw))
    assert list(zip(scores.pairs(), scores.values, strict=True)) == [
        (("a", "s"), 1.5),
        (("b", "s"), -2.0),
    ]


@pytest.mark.parametrize("text", KEYS.values(), ids=KEYS)
def test_the_order_of_a_key_is_detected(tmp_path, text):
    key = formats.read_key(write(tmp_path / "k", text))
    assert list(zip(key.pairs(), key.is_target, strict=True)) == [
        (("a", "s"), True),
        (("b", "s"), False),
    ]
    if "label" in text or len(text.split("\n")[0].split()) in (2, 3) or "," in text:
        assert list(formats.read_trials(tmp_path / "k").pairs()) == list(key.pairs())


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("segment,model,score", "s a 1.5\ns b -2\n"),
        ("- segment model - score", "x s a 9 1.5\nx s b 9 -2\n"),
        ("voxsrc", "1.5 a s\n-2 b s\n"),
        (("model", "segment", "score"), "a s 1.5\nb s -2\n"),
    ],
)
def test_the_order_of_columns_can_be_given(tmp_path, layout, text):
    scores = formats.read_scores(write(tmp_path / "s", text), Choice(layout))
    assert list(zip(scores.pairs(), scores.values, strict=True)) == [
        (("a", "s"), 1.5),
        (("b", "s"), -2.0),
    ]


@pytest.mark.parametrize(
    "layout", ["kaldy", "model,score", "model,segment", "model,model,segment,score", ""]
)
def test_a_wrong_order_is_refused(layout):
    with pytest.raises(DataError, match=r"not an order of the columns of scores.*kaldi"):
        forced_layout(layout, "scores")


def test_numeric_speaker_names_are_kept(tmp_path):
    scores = formats.read_scores(write(tmp_path / "s", "121 u1 0.5\n1089 u1 2\n"))
    assert scores.model_ids.tolist() == ["1089", "121"]
    with pytest.raises(DataError, match="s:2: expected a number as score, got 'high'"):
        formats.read_scores(write(tmp_path / "s", "121 u1 0.5\n1089 u1 high\n"))
    key = formats.read_key(write(tmp_path / "k", "1 u1 target\n0 u1 nontarget\n"))
    assert key.model_ids.tolist() == ["0", "1"]


def test_ambiguous_score_columns_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"two columns could be the score.*scores_columns=Choice"):
        formats.read_scores(write(tmp_path / "s", "a s 1 0\nb s 0 1\n"))


def test_an_id_is_formed_from_several_columns(tmp_path):
    text = "model\ttest\tchan\tscore\ttarget\n1\tx\ta\t2\tTrue\n1\tx\tb\t-1\tFalse\n"
    path = write(tmp_path / "t.tsv", text)
    with pytest.raises(
        DataError, match=r"t.tsv:3: trial '1 x' is repeated; also in line 2 .*segment=test.chan"
    ):
        formats.read_scores(path)
    choice = Choice(segment=("test", "chan"))
    assert list(formats.read_scores(path, choice).pairs()) == [("1", "x:a"), ("1", "x:b")]
    target, nontarget = read_split(path, path, scores_columns=choice, key_columns=choice)
    assert (target.tolist(), nontarget.tolist()) == ([2.0], [-1.0])


def test_columns_can_be_named(tmp_path):
    path = write(tmp_path / "t.csv", "who,what,quality,truth\na,s,1,1\nb,s,2,0\n")
    choice = Choice(model=("who",), segment=("what",), score="quality")
    assert formats.read_scores(path, choice).values.tolist() == [1.0, 2.0]
    assert formats.read_key(path, choice).is_target.tolist() == [True, False]
    with pytest.raises(
        DataError, match=r"t.csv:1: expected a header with a column for score, got who, .*Choice"
    ):
        formats.read_scores(path, Choice(model=("who",), segment=("what",), score="Quality"))
    with pytest.raises(DataError, match="expected a header with a column for segment and score"):
        formats.read_scores(write(tmp_path / "k.txt", "a s 1\n"), Choice(model=("a",)))


BAD_TABLES = {
    "no score": ("model,segment,sex\na,s,f\n", 1, "a column for score"),
    "too few": (
        "model,segment,score\na,s,1\nb,s\n",
        3,
        "expected 3 columns as in the header, got 2",
    ),
    "too many": ("model,segment,score\na,s,1,2\n", 2, "got 4"),
    "blank score": ("model,segment,score\na,s,\n", 2, "expected a number as score, got ''"),
    "nan": ("model,segment,score\n\na,s,1\nb,s,NaN\n", 4, "NaN"),
    "blank id": ("model,segment,score\na,s,1\n,s,2\n", 3, "not empty, got ''"),
    "repeated": ("model,segment,score\na,s,1\na,s,1\n", 3, "is repeated; also in line 2"),
    "header alone": ("model,segment,score\n", None, "only a header"),
    "open quote": ('model,segment,score\n"a,s,1\nb,s,2\n', 2, "unexpected end of data"),
    "not UTF-8": (b"model,segment,score\na,s,1\n\xe9,s,2\n", 3, "is not UTF-8"),
    "zero bytes": (b"model,segment,score\na,s\0,1\n", 2, "zero bytes"),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(("text", "line", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_malformed_tables_are_refused_with_the_line(
    tmp_path, text, line, words, large, monkeypatch
):
    monkeypatch.setattr("evaluation.formats.text._LARGE", 0 if large else 1 << 40)
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(DataError, match=words) as caught:
        formats.read_scores(path)
    assert (caught.value.file, caught.value.line) == (path, line)
    assert len(str(caught.value)) < 500


LINES_THAT_DO_NOT_FIT = {
    "missing line": (
        "a s 1.5\n\nb s 0\n",
        "a s target\nb s nontarget\n\nb t nontarget\n",
        "k.txt:4:",
        "'b t'",
    ),
    "renamed id": (
        "a s 1.5\n\nc s 0\n",
        "a s target\nb s nontarget\n",
        "s.txt:3:",
        "the model 'c'",
    ),
    "other case": (
        "a s 1.5\n\nB s 0\n",
        "a s target\nb s nontarget\n",
        "s.txt:3:",
        "the key has 'b', which differs in",
    ),
    "other form": (
        "a s 2\nZoe\u0308 s 0\n",
        "a s target\nZo\xeb s nontarget\n",
        "s.txt:2:",
        r"the key has 'Zo\xeb', which",
    ),
    "an extension": (
        "a s 2\nb.wav s 0\n",
        "a s target\nb s nontarget\n",
        "s.txt:2:",
        "the key has 'b', which is another spelling: match_ids(scores, key), or --match-ids loose",
    ),
    "in a table": (
        "model,segment,score\na,s,1\n",
        "model,segment,target\na,s,1\nb,s,0\n",
        "k.txt:3:",
        "'b s'",
    ),
    "only targets": ("a s 1\n", "a s target\n", "", "expected nontarget scores, got none"),
}


@pytest.mark.parametrize(
    ("scores", "key", "place", "words"), LINES_THAT_DO_NOT_FIT.values(), ids=LINES_THAT_DO_NOT_FIT
)
def test_mismatched_scores_and_key_are_named_with_the_line(tmp_path, scores, key, place, words):
    from evaluation.metrics.sorted_scores import sort_scores

    with pytest.raises(DataError) as caught:
        sort_scores(*read_split(write(tmp_path / "s.txt", scores), write(tmp_path / "k.txt", key)))
    assert place in str(caught.value)
    assert words in str(caught.value)


DAMAGES = {
    "none": lambda rows, place: None,
    "missing": lambda rows, place: rows.pop(place),
    "repeated": lambda rows, place: rows.insert(place, rows[0]),
    "renamed": lambda rows, place: rows.__setitem__(place, rows[place].replace("m", "n", 1)),
    "nan": lambda rows, place: rows.__setitem__(place, rows[place].rsplit(" ", 1)[0] + " nan"),
    "no model": lambda rows, place: rows.__setitem__(place, rows[place].split(" ", 1)[1]),
    "too long": lambda rows, place: rows.__setitem__(place, rows[place] + " 7"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_joins_never_shift_rows(tmp_path, damage):
    """Lines of scores in any order, one of them damaged: each trial gets its own score, or the line is named."""
    pairs = [(f"m{number % 5}", f"s{number}") for number in range(40)]
    truth = [number % 3 == 0 for number in range(40)]
    formats.write_key(tmp_path / "key.txt", Key.from_ids(*zip(*pairs, strict=True), truth))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = [f"{a} {b} {number}" for number, (a, b) in enumerate(pairs)]
        rng.shuffle(rows)
        DAMAGES[damage](rows, int(rng.integers(1, 40)))
        (tmp_path / "scores.txt").write_text("\n".join(rows))
        if damage == "none":
            target, nontarget = read_split(tmp_path / "scores.txt", tmp_path / "key.txt")
            assert target.tolist() == list(range(0, 40, 3))
            assert nontarget.tolist() == [number for number in range(40) if number % 3]
        else:
            with pytest.raises(DataError) as caught:
                read_split(tmp_path / "scores.txt", tmp_path / "key.txt")
            assert caught.value.line is not None


def test_npz_of_plain_ids_is_read(tmp_path):
    np.savez(
        tmp_path / "s.npz",
        models=np.array(["b", "a"]),
        segments=np.array(["s", "s"]),
        scores=[1, 2],
    )
    assert list(formats.read_scores(tmp_path / "s.npz").pairs()) == [("b", "s"), ("a", "s")]
    np.savez(
        tmp_path / "k.npz",
        models=np.array(["b", "a"]),
        segments=np.array(["s", "s"]),
        is_target=[1, 0],
    )
    assert formats.read_key(tmp_path / "k.npz").is_target.tolist() == [True, False]


IDS_OF_NPZ = {"models": np.array(["a", "b"]), "segments": np.array(["s", "s"])}
CODES = {"model_ids": np.array(["a"]), "segment_ids": np.array(["s"]), "segments": np.array([0])}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (IDS_OF_NPZ, "expected an array scores"),
        ({**IDS_OF_NPZ, "scores": np.array([1, None], object)}, "holds Python objects"),
        ({**IDS_OF_NPZ, "scores": np.zeros(1)}, "values of shape"),
        ({**IDS_OF_NPZ, "scores": np.zeros((2, 1))}, "of shape"),
        ({**IDS_OF_NPZ, "scores": np.array([np.nan, 1])}, "NaN"),
        ({**IDS_OF_NPZ, "models": np.array(["b", "b"]), "scores": np.zeros(2)}, "repeated"),
        (
            {"models": np.empty(0, "U1"), "segments": np.empty(0, "U1"), "scores": np.empty(0)},
            "empty list",
        ),
        ({**CODES, "models": np.array([1]), "scores": np.zeros(1)}, "from 0 to 0"),
    ],
)
def test_malformed_npz_is_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(DataError, match=words) as caught:
        formats.read_scores(tmp_path / "s.npz")
    assert caught.value.file == tmp_path / "s.npz"
    (tmp_path / "s.npz").write_bytes((tmp_path / "s.npz").read_bytes()[:-30])
    with pytest.raises(DataError, match="cannot be read as npz"):
        formats.read_scores(tmp_path / "s.npz")


@pytest.mark.golden
def test_example_files_of_other_tools_are_read(shared):
    lists = shared / "formats" / "trial_lists"
    assert formats.read_key(lists / "speechbrain_verification.txt").is_target.sum() == 1
    for name in ("veri_test.head200.txt", "kaldi_trials.head200"):
        key = formats.read_key(lists / name)
        assert (len(key), key.is_target.sum()) == (200, 100)
    bob = shared / "formats" / "bob_scores"
    for name in (
        "scores-nonorm-gmm-dev",
        "scores-ztnorm-gmm-dev",
        "scores-nonorm-ivector-cosine-dev",
    ):
        target, nontarget = read_split(bob / name, bob / name)
        assert (len(target), len(nontarget)) == (100, 1900)
    with pytest.raises(DataError, match="csv:3: trial 'x 0' is repeated; also in line 2"):
        formats.read_scores(bob / "scores-dev.head200.csv")
    trials = shared / "formats" / "vpc2020_kaldi_dir" / "trials_f_trials"
    assert len(formats.read_key(trials)) == 11744


@pytest.mark.parametrize("word", ["t", "n", "s", "d", "p", "i", "c", "m", "g"])
def test_ambiguous_single_letter_labels_are_refused(tmp_path, word):
    """t is target or true, and n, beside it, is not that of y and n."""
    write(tmp_path / "k", f"a s t\nb s {word}\nc s y\n")
    with pytest.raises(DataError, match="expected target or nontarget, got 't'"):
        formats.read_key(tmp_path / "k")


def test_each_wrong_label_is_named_once(tmp_path):
    write(tmp_path / "k", "a s x\nb s x\nc s x\n")
    with pytest.raises(DataError, match=r"got 'x'; also in line 2, 3 "):
        formats.read_key(tmp_path / "k")


def test_asvspoof_lists_are_read(tmp_path):
    write(tmp_path / "s", "bonafide target 2.5\nbonafide nontarget -1\nbonafide nontarget 0.5\n")
    choice = Choice(layout="-,label,score")
    target, nontarget = read_split(
        tmp_path / "s", tmp_path / "s", scores_columns=choice, key_columns=choice
    )
    assert (target.tolist(), nontarget.tolist()) == ([2.5], [-1.0, 0.5])
    write(tmp_path / "k", "LA_1 LA_E_1 bonafide target\nLA_1 LA_E_2 bonafide nontarget\n")
    assert formats.read_key(tmp_path / "k").to_columns()["segment"].tolist() == ["LA_E_1", "LA_E_2"]
    assert formats.read_key(tmp_path / "k").is_target.tolist() == [True, False]
    write(tmp_path / "k", "LA_1 LA_E_1 bonafide target\nLA_1 LA_E_2 A07 spoof\n")
    with pytest.raises(DataError, match="spoofed speech is of no speaker"):
        formats.read_key(tmp_path / "k", Choice(layout="model,segment,-,label"))


def test_a_header_may_be_a_comment(tmp_path):
    for sign in ("#", "# "):
        write(tmp_path / "s", f"{sign}model segment score\na s 1.5\nb s -2\n")
        assert formats.read_scores(tmp_path / "s").values.tolist() == [1.5, -2.0]


def test_base_10_log_ratios_become_natural_logarithms(tmp_path):
    write(tmp_path / "s", "a s 1.5\nb s -2\n")
    values = formats.read_scores(tmp_path / "s", Choice(llr_base=10)).values
    np.testing.assert_allclose(np.exp(values), 10 ** np.array([1.5, -2.0]))
