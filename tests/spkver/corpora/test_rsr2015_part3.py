"""Part 3 of RSR2015: prompts, models by enrolment, trials with prompts, and all ways in which lists can be wrong."""

from itertools import product

import pytest

from evaluation.formats.reading import read_key
from spkbase.errors import DataError, Problems
from spkver.corpora.rsr2015 import DIGITS, ListOptions, read_prompts, read_rsr2015, write_lists

BACKGROUND, TARGETS, ENROL, TEST = ("m001", "m050"), ("m101", "m102"), (1, 4), (2, 3)
TENS, FIVES = ("061", "062", "063"), ("064", "065")
SAID = {
    place: [(2 * place[0] + int(place[1]) + step) % 10 for step in range(5)]
    for place in product(range(1, 5), FIVES)
}
SAID |= {
    (session, sentence): [*range(session, 10), *range(session)]
    for session, sentence in product(range(1, 5), TENS)
}
ALL_TYPES = {"nontarget": ("IC", "TW", "IW")}


def segment(speaker, session, sentence):
    return f"{speaker}/{speaker}_{session:02d}_{sentence}"


def prompt(session, sentence, between="-"):
    return between.join(map(str, SAID[session, sentence]))


def enrol_lines():
    return [
        f"{target}_{number} " + " ".join(f"{segment(target, session, text)}.sph" for text in TENS)
        for target in TARGETS
        for number, session in enumerate(ENROL, 1)
    ]


def trial_lines():
    """Every recording of five digits under its own prompt and one other, against both models of each speaker."""
    tests = [*product(TEST, FIVES)]
    lines = []
    for target, number, speaker, (place, asked) in product(
        TARGETS, (1, 2), TARGETS, product(tests, tests)
    ):
        if place == asked or tests.index(asked) == (tests.index(place) + 1) % 4:
            kind = 2 * (target != speaker) + (place != asked)
            flags = ",".join("Y" if column == kind else "N" for column in range(4))
            lines.append(
                f"{prompt(*asked)},{target}_{number:02d},{segment(speaker, *place)}.sph,{flags}"
            )
    return lines


@pytest.fixture
def corpus(tmp_path):
    """Make a tree of part 3, with sentences of part 1 beside it."""
    root = tmp_path / "rsr"
    for speaker, session, text in product(
        (*BACKGROUND, *TARGETS), range(1, 5), (*TENS, *FIVES, "001")
    ):
        path = root / "sph/male" / f"{segment(speaker, session, text)}.sph"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    words = [
        f"{session:02d},{text},{' '.join(DIGITS[d] for d in said)}"
        for (session, text), said in SAID.items()
    ]
    for name, lines in (
        ("trn/3seq10_eval_m.trn", enrol_lines()),
        ("trn/3seq10_10seq5_eval_m.trn", enrol_lines()),
        ("ndx/seq5_testeval_m.ndx", trial_lines()),
        ("prompts.txt", words),
    ):
        path = root / "key/part3" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return root


def read(root, **options):
    return read_rsr2015(root, ListOptions(**{"background_size": 5, "part": 3, **options}))


def test_lists_of_part_3_are_read(corpus):
    lists = read(corpus)
    assert len(lists.ubm) == 2 * 4 * 5
    assert {name[-3:] for name in lists.ubm} == {*TENS, *FIVES}, "only part 3"
    expected = {
        f"{target}_{number:02d}": [segment(target, session, text) for text in TENS]
        for target in TARGETS
        for number, session in enumerate(ENROL, 1)
    }
    assert {
        model: lists.enrolment.segments[rows].tolist()
        for model, rows in lists.enrolment.rows_of_models().items()
    } == expected
    assert (len(lists.key), int(lists.key.is_target.sum()), lists.key.type_names) == (
        32,
        16,
        ("TC", "IC"),
    )
    assert set(lists.key.model_ids) == set(expected), "a pair occurs with one prompt"
    assert lists.speakers()[0] == {model: model[:4] for model in expected}
    assert set(lists.texts) == set(lists.recordings)
    assert lists.texts["m102/m102_03_065"] == tuple(DIGITS[digit] for digit in SAID[3, "065"])


def test_trials_with_wrong_texts_have_their_prompt(corpus, tmp_path):
    lists = read(corpus, **ALL_TYPES)
    names = dict(zip(("TC", "IC", "TW", "IW"), ("YNNN", "NNYN", "NYNN", "NNNY"), strict=True))
    expected = set()
    for text, model, name, *flags in (line.split(",") for line in trial_lines()):
        expected.add((f"{model}:{text}", name.removesuffix(".sph"), "".join(flags)))
    types = [names[lists.key.type_names[code]] for code in lists.key.types]
    assert {
        (*pair, flags) for pair, flags in zip(lists.key.pairs(), types, strict=True)
    } == expected
    assert lists.speakers()[0]["m102_01:" + prompt(2, "064")] == "m102"
    assert lists.texts["m102_01:" + prompt(2, "064")] == tuple(
        DIGITS[digit] for digit in SAID[2, "064"]
    )
    write_lists(lists, tmp_path / "task")
    for extension in ("h5", "txt"):
        assert set(read_key(tmp_path / f"task/3sess-pwd_eval_m_key.{extension}").pairs()) == set(
            lists.key.pairs()
        )


def test_lists_of_any_name_can_be_given_or_are_found(corpus):
    expected = read(corpus)
    trn, ndx = corpus / "key/part3/trn", corpus / "key/part3/ndx/seq5_testeval_m.ndx"
    ndx.rename(ndx.with_name("digits_eval_m.ndx"))
    other = trn / "3seq10_10seq5_eval_m.trn"
    other.write_text(
        other.read_text().replace(
            f"{segment('m101', 1, '061')}.sph", f"{segment('m101', 1, '064')}.sph"
        )
    )
    lists = read(corpus, enrolment=other)
    assert "m101/m101_01_064" in lists.enrolment.segments.tolist()
    assert "m101/m101_01_064" not in expected.enrolment.segments.tolist()
    assert list(lists.key.pairs()) == list(expected.key.pairs())


@pytest.mark.parametrize(
    ("old", "new"),
    [("_01,", "_1,"), (",", " "), (",m101/", ",RSR2015_V1/sph/male/m101/")],
    ids=["models", "blanks", "folders"],
)
def test_trials_in_other_forms_are_read(corpus, old, new):
    expected = list(read(corpus, **ALL_TYPES).key.pairs())
    path = corpus / "key/part3/ndx/seq5_testeval_m.ndx"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert list(read(corpus, **ALL_TYPES).key.pairs()) == expected


def test_prompts_in_other_forms_are_read(tmp_path):
    path = tmp_path / "prompts.csv"
    path.write_text("01,064,4-8-0\r\n\n1, 65, Four eight zero\n")
    problems = Problems(path)
    words = ("four", "eight", "zero")
    assert read_prompts(path, problems) == {(1, 64): words, (1, 65): words}
    problems.raise_if_any()


TRN, NDX, PROMPTS = "trn/3seq10_eval_m.trn", "ndx/seq5_testeval_m.ndx", "prompts.txt"
FIRST = trial_lines()[0]
BREAKAGES = {
    "without prompts": (
        NDX,
        FIRST,
        FIRST.partition(",")[2],
        r"ndx:1: expected 'prompt,model,segment,TC,TW,IC,IW' with",
    ),
    "two types": (
        NDX,
        FIRST,
        FIRST.replace("Y,N,N,N", "Y,N,Y,N"),
        r"ndx:1: a trial of types TC and IC",
    ),
    "trial twice": (
        NDX,
        trial_lines()[1],
        FIRST,
        r"ndx:2: trial m101_01:[0-9-]+ m101/m101_02_064 for the second time",
    ),
    "not enrolled": (
        TRN,
        enrol_lines()[0] + "\n",
        "",
        r"ndx:1: model 'm101_01:[0-9-]+' has trials but no enrolment",
    ),
    "model twice": (
        TRN,
        "m101_2 ",
        "m101_01 ",
        r"trn:2: model 'm101_01' for the second time, first in line 1",
    ),
    "no recording": (
        NDX,
        "m101/m101_02_064",
        "m101/m101_02_066",
        r"ndx:1: no recording 'm101/m101_02_066'",
    ),
    "no digits": (
        NDX,
        FIRST.partition(",")[0],
        "canoe",
        r"ndx: 1 prompt not made of digits: m101_01:canoe \(write",
    ),
    "other words": (
        PROMPTS,
        "02,064,eight nine",
        "02,064,nine eight",
        r"ndx:1: trial 'm101_01:[0-9-]+ m101/m101_02_064' is of type TC, but the words of .* are nine eight zero",
    ),
    "unknown word": (
        PROMPTS,
        "01,064,six",
        "01,064,sex",
        r"txt:1: expected 'session,sentence,words' with digits",
    ),
    "place twice": (
        PROMPTS,
        "02,064,",
        "01,064,",
        r"txt:3: expected .* each session and sentence once, found '01 064",
    ),
    "no words": (
        PROMPTS,
        "03,062,",
        "03,072,",
        r"prompts.txt: no words of session and sentence 03_062 \(add their",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_damaged_lists_are_refused(corpus, name):
    file, old, new, message = BREAKAGES[name]
    path = corpus / "key/part3" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read(corpus, **ALL_TYPES)


def test_ambiguous_lists_are_refused(corpus):
    folder = corpus / "key/part3/trn"
    (folder / "3seq10_eval_m.trn").rename(folder / "other_eval_m.trn")
    message = r"3seq10_eval_m\.trn: no such file .*set lists.enrolment to one of .*: "
    message += "3seq10_10seq5_eval_m.trn, other_eval_m"
    with pytest.raises(DataError, match=message):
        read(corpus)


def test_missing_prompts_are_reported(corpus):
    (corpus / "key/part3/prompts.txt").unlink()
    assert read(corpus).texts == {}
    with pytest.raises(DataError, match=r"elsewhere.txt: cannot be read"):
        read(corpus, prompts=corpus / "elsewhere.txt")
