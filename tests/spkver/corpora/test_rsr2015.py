"""RSR2015's lists: a small tree made by hand, every way in which it can be wrong, and the size of the real lists."""

import hashlib
import itertools
import subprocess
import sys

import numpy as np
import pytest

from evaluation.formats.reading import read_key, read_trials
from spkbase.errors import ConfigError, DataError, Problems
from spkver.corpora import rsr2015
from spkver.corpora.rsr2015 import (
    ListOptions,
    SpeakerRanges,
    key_files,
    list_hashes,
    read_rsr2015,
    write_lists,
)
from spkver.idmap import IdMap
from spkver.sidekit.tables import read_idmap

BACKGROUND, TARGETS, SENTENCES, SESSIONS = (
    ("m001", "m050"),
    ("m101", "m102", "m157"),
    ("001", "030"),
    range(1, 10),
)
ENROL, TEST = (1, 4, 7), (2, 3)
TYPES = ("TC", "TW", "IC", "IW")


def segment(speaker, session, sentence):
    return f"{speaker}/{speaker}_{session:02d}_{sentence}"


def trial_lines():
    lines = []
    for target, text, speaker, said, session in itertools.product(
        TARGETS, SENTENCES, TARGETS, SENTENCES, TEST
    ):
        kind = "TI"[target != speaker] + "CW"[text != said]
        flags = ",".join("Y" if kind == one else "N" for one in TYPES)
        lines.append(f"{target}_{text},{segment(speaker, session, said)}.sph,{flags}")
    return lines


def enrol_lines():
    return [
        f"{target}_{text} "
        + ",".join(f"male/{segment(target, session, text)}.sph" for session in ENROL)
        for target, text in itertools.product(TARGETS, SENTENCES)
    ]


@pytest.fixture
def corpus(tmp_path):
    """Make a tree with 2 background speakers and 3 others, 2 sentences of part 1 and one of another part."""
    root = tmp_path / "rsr"
    for speaker, session, text in itertools.product(
        (*BACKGROUND, *TARGETS), SESSIONS, (*SENTENCES, "031")
    ):
        path = root / "sph/male" / f"{segment(speaker, session, text)}.sph"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    trn, ndx = key_files(root, "m", "eval")
    for path, lines in ((trn, enrol_lines()), (ndx, trial_lines())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return root


def read(root, **options):
    return read_rsr2015(root, ListOptions(**{"background_size": 5, **options}))


# --- reading ----------------------------------------------------------------------------------------------------------


def test_lists_of_a_small_corpus_equal_hand_made_ones(corpus):
    lists = read_rsr2015(corpus, ListOptions(background_size=5, nap_step=7))
    background = [
        segment(s, n, t) for s, n, t in itertools.product(BACKGROUND, SESSIONS, SENTENCES)
    ]
    assert list(lists.ubm) == sorted(background)
    assert lists.nap == IdMap.from_pairs((one[:4], one) for one in sorted(background)[::7])
    assert len(lists.background) == 5
    assert set(lists.background.segments) <= set(background)
    assert list(lists.background.segments) == sorted(set(lists.background.segments))
    for speaker, name in zip(lists.background.models, lists.background.segments, strict=True):
        assert name.startswith(speaker + "/")
    expected = [
        (f"{m}_{t}", segment(m, n, t)) for m, t, n in itertools.product(TARGETS, SENTENCES, ENROL)
    ]
    assert lists.enrolment == IdMap.from_pairs(expected)
    tests = sorted(segment(m, n, t) for m, n, t in itertools.product(TARGETS, TEST, SENTENCES))
    assert lists.test == IdMap.from_pairs(zip(tests, tests, strict=True))
    assert set(lists.recordings) == {*background, *tests, *lists.enrolment.segments}
    assert all(
        path.is_file() and path.stem == one.split("/")[1] for one, path in lists.recordings.items()
    )


def test_draws_depend_only_on_the_seed(corpus):
    first, again, other = (
        read_rsr2015(corpus, ListOptions(background_size=9, seed=seed)) for seed in (3, 3, 4)
    )
    assert first.background == again.background
    assert first.background != other.background
    assert first.nap == other.nap
    assert list_hashes(first) == list_hashes(again)
    changed = {
        name for name, value in list_hashes(first).items() if list_hashes(other)[name] != value
    }
    assert changed == {"background"}
    places = np.sort(np.random.default_rng(3).choice(36, 9, replace=False))  # the documented draw
    assert first.background.segments.tolist() == [first.ubm[place] for place in places]


def test_the_division_of_speakers_of_the_corpus_is_used():
    ranges = SpeakerRanges()
    numbers = [
        (of[0], of[-1])
        for of in (ranges.of(p, g) for g in "mf" for p in ("background", "dev", "eval"))
    ]
    assert numbers == [(1, 50), (51, 100), (101, 157), (1, 47), (48, 94), (95, 143)]


def test_other_sexes_and_partitions_are_read(corpus):
    (corpus / "sph/male").rename(corpus / "sph/female")
    for folder in (corpus / "sph/female").iterdir():
        for path in folder.iterdir():
            path.rename(path.with_name("f" + path.name[1:]))
        folder.rename(folder.with_name("f" + folder.name[1:]))
    for old, new in zip(key_files(corpus, "m", "eval"), key_files(corpus, "f", "dev"), strict=True):
        new.write_text(old.read_text().replace("male/", "female/").replace("m1", "f1"))
    assert [path.name for path in key_files(corpus, "f", "dev")] == [
        "3sesspwd_dev_f.trn",
        "3sess-pwd_dev_f.ndx",
    ]
    lists = read_rsr2015(corpus, ListOptions(gender="f", partition="dev", background_size=5))
    assert (lists.gender, lists.partition) == ("f", "dev")
    assert (len(lists.key), len(lists.ubm)) == (36, 18)  # f050 is not a background speaker
    assert write_lists(lists, corpus / "task")[0].name == "3sesspwd_dev_f_trn.h5"


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "  \n").replace(",", ", "),
        lambda text: "\n\n" + text.replace("\n", "\n\n"),
        lambda text: text.replace("male/", "").replace(".sph", ""),
    ],
)
def test_key_files_in_other_forms_are_read(corpus, rewrite, monkeypatch):
    expected = read_rsr2015(corpus, ListOptions(background_size=5))
    monkeypatch.setattr(rsr2015, "_BLOCK_BYTES", 100)
    for path in key_files(corpus, "m", "eval"):
        path.write_text(rewrite(path.read_text()), newline="")
    lists = read_rsr2015(corpus, ListOptions(background_size=5))
    assert list_hashes(lists) == list_hashes(expected)
    assert list(lists.key.pairs()) == list(expected.key.pairs())


# --- errors -----------------------------------------------------------------------------------------------------------


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def both(corpus):
    return key_files(corpus, "m", "eval")


FIRST = "m101_001,m101/m101_02_001.sph,Y,N,N,N"
BREAKAGES = {
    "no trn": (lambda c: both(c)[0].unlink(), r"3sesspwd_eval_m\.trn: no such file \(check"),
    "empty trn": (lambda c: both(c)[0].write_text("\n"), r"trn: holds no models"),
    "no files": (
        lambda c: edit(both(c)[0], enrol_lines()[1], "m101_030"),
        r"trn:2: model 'm101_030' without files",
    ),
    "model twice": (
        lambda c: edit(both(c)[0], "m101_030 ", "m101_001 "),
        r"trn:2: model 'm101_001' for the second time, first in line 1 \(put all",
    ),
    "file twice": (
        lambda c: edit(both(c)[0], "m101_04_001", "m101_01_001"),
        r"trn:1: model 'm101_001' has the same file twice: m101/m101_01_001",
    ),
    "trn not utf-8": (
        lambda c: both(c)[0].write_bytes(
            "\n".join(enrol_lines()[:2]).encode() + b"\n\xe9t\xe9 x\n"
        ),
        r"trn:3: is not UTF-8 text",
    ),
    "too few columns": (
        lambda c: edit(both(c)[1], FIRST, "m101_001,m101/m101_02_001.sph,Y,N,N"),
        r"ndx:1: expected 'model,segment,TC,TW,IC,IW' with Y or N.*found 'm101_001 m101/m101_02_001.sph Y N N'",
    ),
    "other letter": (
        lambda c: edit(both(c)[1], FIRST, FIRST[:-1] + "X"),
        r"ndx:1: expected 'model,segment,TC",
    ),
    "two types": (
        lambda c: edit(both(c)[1], FIRST, FIRST.replace("Y,N,N,N", "Y,N,Y,N")),
        r"ndx:1: a trial of types TC and IC, expected exactly one Y",
    ),
    "no type": (
        lambda c: edit(both(c)[1], FIRST, FIRST.replace("Y", "N")),
        r"ndx:1: a trial of no type, expected exa",
    ),
    "trial twice": (
        lambda c: edit(both(c)[1], trial_lines()[1], FIRST),
        r"ndx:2: trial m101_001 m101/m101_02_001 for the second time, first in line 1",
    ),
    "not enrolled": (
        lambda c: edit(both(c)[0], enrol_lines()[0] + "\n", ""),
        r"ndx:1: model 'm101_001' has trials but no enrolment",
    ),
    "test without recording": (
        lambda c: (c / "sph/male/m102/m102_03_030.sph").unlink(),
        r"ndx:\d+: no recording 'm102/m102_03_030'",
    ),
    "two containers": (
        lambda c: (c / "sph/male/m101/m101_04_001.WAV").touch(),
        r"recording 'm101/m101_04_001' exists twice: .*m101_04_001\.WAV and .*m101_04_001\.sph",
    ),
    "no audio folder": (
        lambda c: (c / "sph/male").rename(c / "sph/males"),
        r"sph/male: cannot be read: No such file",
    ),
    "no background": (
        lambda c: [(c / "sph/male" / one).rename(c / f"sph/male/x{one}") for one in BACKGROUND],
        r"no recordings of background speakers m001 to m050, sentences 001 to 030",
    ),
    "another name": (
        lambda c: both(c)[1].rename(both(c)[1].with_name("pwd_dev_m.ndx")),
        r"3sess-pwd_eval_m\.ndx: no such file .*or set lists.trials to one of the lists that are there: pwd_dev_m.ndx",
    ),
    "a type without trials": (
        lambda c: both(c)[1].write_text(
            "\n".join(line for line in trial_lines() if "N,N,Y,N" not in line)
        ),
        r"ndx: no nontarget trials of type IC \(choose other types in trials.nontarget",
    ),
    "background is tested": (
        lambda c: edit(both(c)[1], "m102/m102_02_001", "m050/m050_02_001"),
        r"ndx:\d+: recording 'm050/m050_02_001' is of a background speaker",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_damaged_corpora_are_refused(corpus, name, monkeypatch):
    breakage, message = BREAKAGES[name]
    monkeypatch.setattr(rsr2015, "_BLOCK_BYTES", 64)
    breakage(corpus)
    with pytest.raises(DataError, match=message):
        read(corpus)


def test_all_problems_are_reported_together(corpus):
    for name in ("two types", "file twice", "test without recording"):
        BREAKAGES[name][0](corpus)
    (corpus / "sph/male/m157/m157_07_001.flac").touch()
    with pytest.raises(DataError) as caught:
        read(corpus, background_size=1000, nap_size=70)
    text = str(caught.value)
    assert "ndx:1: a trial of types TC and IC" in text
    assert "trn:1: model 'm101_001' has the same file twice" in text
    assert "no recording 'm102/m102_03_030'" in text
    assert "exists twice" in text
    assert "background.size is 1000, but there are only 36 recordings to take from" in text
    assert "nap.size is 70, but there are only 6 recordings" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gender": "male"}, "gender should be 'm' or 'f', not 'male'"),
        ({"partition": "test"}, "partition should be 'eval' or 'dev'"),
        ({"part": 4}, "part should be 1, 2 or 3, not 4"),
        ({"target": ("TX",)}, "trials.target should be a list of types out of TC, TW, IC, IW"),
        (
            {"nontarget": ("IC", "TC")},
            "trials.nontarget should be types that are not among trials.target",
        ),
        ({"background_size": 0}, "background.size should be 1 or more"),
        ({"seed": -1}, "seed should be 0 or more"),
        (
            {"speakers": SpeakerRanges(dev_m=(9, 2))},
            "speakers.dev_m should be first and last number",
        ),
        (
            {"background_size": 37},
            r"background.size is 37, but there are only 36 .*set background.size to 36 or less",
        ),
    ],
)
def test_wrong_options_are_refused(corpus, options, message):
    with pytest.raises(ConfigError, match=message):
        read(corpus, **options)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_lists_are_written_under_the_names_of_the_tutorial(corpus, tmp_path):
    lists = read_rsr2015(corpus, ListOptions(background_size=5, nontarget=("IC", "IW")))
    written = write_lists(lists, tmp_path / "task")
    stems = [
        "3sesspwd_eval_m_trn",
        *(f"3sess-pwd_eval_m_{name}" for name in ("test", "back", "nap", "key", "ndx")),
    ]
    names = [f"{stem}{extension}" for extension in (".h5", ".txt") for stem in stems]
    beside = ["ubm_list.txt", "utt2spk", "model2spk", "wav.scp", "utt2spk", "spk2utt"]
    assert [path.name for path in written] == [*names, *beside]
    assert all(path.is_file() for path in written)
    for extension in (".h5", ".txt"):
        at = {stem.rsplit("_", 1)[1]: tmp_path / "task" / f"{stem}{extension}" for stem in stems}
        assert read_idmap(at["trn"]) == lists.enrolment
        assert read_idmap(at["test"]) == lists.test
        assert read_idmap(at["back"]) == lists.background
        assert read_idmap(at["nap"]) == lists.nap
        assert set(read_trials(at["ndx"]).pairs()) == set(lists.key.pairs())
        key = read_key(at["key"])
        truth = dict(zip(lists.key.pairs(), lists.key.is_target, strict=True))
        assert dict(zip(key.pairs(), key.is_target, strict=True)) == truth
    assert (tmp_path / "task/ubm_list.txt").read_text().split("\n") == list(lists.ubm), (
        "as the tutorial reads it"
    )
    assert (tmp_path / "task/model2spk").read_text().splitlines()[0] == "m101_001 m101"
    data = dict(line.split() for line in (tmp_path / "task/data/wav.scp").read_text().splitlines())
    assert data == {segment.split("/")[1]: str(path) for segment, path in lists.recordings.items()}


def test_hashes_equal_those_of_the_documented_text(corpus):
    lists = read_rsr2015(corpus, ListOptions(background_size=5))
    rows = [
        f"{model} {one.removesuffix('.sph')} "
        + ("target TC" if flags[0] == "Y" else "nontarget IC")
        for model, one, *flags in (line.split(",") for line in trial_lines())
        if flags[0] == "Y" or flags[2] == "Y"
    ]
    texts = {
        "ubm": lists.ubm,
        "key": sorted(rows),
        "enrolment": [
            f"{m} {s}"
            for m, s in zip(lists.enrolment.models, lists.enrolment.segments, strict=True)
        ],
    }
    hashes = list_hashes(lists)
    assert sorted(hashes) == ["background", "enrolment", "key", "nap", "test", "ubm"]
    for name, lines in texts.items():
        assert (
            hashes[name]
            == hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
        )


def test_the_layout_of_real_speech_is_read(shared, tmp_path):
    root = tmp_path / "dsp"
    subprocess.run(
        [sys.executable, shared / "tools/make_layouts.py", "rsr2015", root, "--format", "flac"],
        check=True,
        capture_output=True,
    )
    lists = read_rsr2015(root)
    assert (len(lists.ubm), len(lists.background), len(lists.nap)) == (730, 200, 105)
    assert (len(lists.enrolment), len(lists.enrolment.unique_models()), len(lists.test)) == (
        690,
        230,
        920,
    )
    assert len(lists.recordings) == 2340
    assert (lists.key.is_target.sum(), len(lists.key)) == (920, 920 * 23)


def test_numeric_models_keep_leading_zeros(tmp_path):
    path = tmp_path / "a.ndx"
    path.write_text("007,m051/m051_01_001.wav,Y,N,N,N\n012,m051/m051_01_001.wav,N,N,Y,N\n")
    key, _ = rsr2015.read_trials(path, ["TC"], ["IC"], Problems(path))
    assert list(key.model_ids) == ["007", "012"]
