"""The simulated corpus: its tree, its keys, reproducible to the byte, and what goes wrong goes wrong cleanly."""

from collections import Counter

import numpy as np
import pytest

from spkbase.errors import DataError
from spkver.corpora import voices
from spkver.corpora.rsr2015 import DIGITS, ListOptions, read_rsr2015
from spkver.corpora.simulated import (
    CorpusSize,
    draw_prompts,
    enrolment_lines,
    simulate_rsr2015,
    split_speakers,
    trial_lines,
)

pytestmark = pytest.mark.whole

pytest.importorskip("espeakng_loader")

SMALL = {"n_speakers": 4, "n_sentences": 2, "n_sessions": 4, "seed": 3, "gender": "both"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return simulate_rsr2015(
        tmp_path_factory.mktemp("corpus") / "small", CorpusSize(**SMALL), jobs=1
    )


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- the tree -------------------------------------------------------------------------------------


def test_the_tree_has_the_files_of_rsr2015(corpus):
    speakers = {
        "male": ("m001", "m002", "m101", "m102"),
        "female": ("f001", "f002", "f095", "f096"),
    }
    audio = {
        f"sph/{folder}/{speaker}/{speaker}_0{session}_00{sentence}.wav"
        for folder in speakers
        for speaker in speakers[folder]
        for session in (1, 2, 3, 4)
        for sentence in (1, 2)
    }
    keys = {f"key/part1/trn/3sesspwd_eval_{sex}.trn" for sex in "mf"}
    keys |= {f"key/part1/ndx/3sess-pwd_eval_{sex}.ndx" for sex in "mf"}
    assert set(contents(corpus.folder)) == audio | keys | {"README.txt", "simulation.json"}
    counts = {
        "n_files": 64,
        "seconds": corpus.counts["seconds"],
        "n_models": 8,
        "n_targets": 16,
        "n_impostors": 16,
    }
    assert (corpus.counts, corpus.created) == (counts, True)
    assert "4 background, 0 development and 4 evaluation speakers, 64 recordings" in str(corpus)


def test_a_full_key_has_the_trials_of_the_protocol():
    """57 speakers, 30 sentences, 6 test sessions: 10,260 target trials and 56 times as many impostors'."""
    speakers = split_speakers("m", 157).evaluation
    assert split_speakers("m", 107, 50).evaluation == speakers
    kinds = Counter()
    seen = 0
    for lines in trial_lines(speakers, n_sentences=30, n_sessions=9):
        kinds.update(line[-8:-1] for line in lines)
        seen += len(set(lines))
    assert kinds == {"Y,N,N,N": 10_260, "N,N,Y,N": 574_560, "N,Y,N,N": 30_780, "N,N,N,Y": 574_560}
    assert seen == sum(kinds.values())
    models = list(enrolment_lines(speakers, folder="male", n_sentences=30, n_sessions=9))
    assert len(models) == 1710
    assert (
        models[-1]
        == "m157_030 male/m157/m157_01_030.sph,male/m157/m157_04_030.sph,male/m157/m157_07_030.sph\n"
    )


@pytest.mark.parametrize(
    ("gender", "n_speakers", "sizes", "last"),
    [
        ("m", 4, (2, 0, 2), "m102"),
        ("m", 34, (12, 0, 22), "m122"),
        ("m", 156, (50, 0, 106), "m206"),
        ("m", 157, (50, 50, 57), "m157"),
        ("f", 157, (47, 47, 63), "f157"),
    ],
)
def test_speakers_are_split_by_sex_and_partition(gender, n_speakers, sizes, last):
    split = split_speakers(gender, n_speakers)
    assert (len(split.background), len(split.development), len(split.evaluation)) == sizes
    assert len(set(sum(split, ()))) == n_speakers
    assert split.background[0] == f"{gender}001"
    assert split.evaluation[0] == {"m": "m101", "f": "f095"}[gender]
    assert split.evaluation[-1] == last
    assert split.development[:1] == ({"m": "m051", "f": "f048"}[gender],)[: sizes[1]]


def test_prompts_differ_by_session_and_contain_each_digit_once():
    prompts = draw_prompts(3)
    assert prompts == draw_prompts(3) != draw_prompts(4)
    assert [*prompts] == [
        (session, sentence) for session in range(1, 10) for sentence in range(61, 74)
    ]
    assert len({*prompts.values()}) == 117
    assert all(
        len(words) == len({*words}) == (10 if place[1] < 64 else 5)
        for place, words in prompts.items()
    )


def test_part_3_tries_each_recording_with_its_own_prompt_and_wrong_ones():
    prompts = draw_prompts(0)
    said = {
        place: "-".join(str(DIGITS.index(word)) for word in words)
        for place, words in prompts.items()
    }
    shape = {"n_sentences": 5, "n_sessions": 5, "part": 3}
    models = [*enrolment_lines(["m101", "m102"], folder="male", **shape)]
    assert [line.split()[0] for line in models] == ["m101_01", "m101_02", "m102_01", "m102_02"]
    assert models[1].split()[1] == ",".join(
        f"male/m101/m101_04_06{number}.sph" for number in (1, 2, 3)
    )
    kinds = Counter()
    for line in (
        line for lines in trial_lines(["m101", "m102"], prompts=prompts, **shape) for line in lines
    ):
        prompt, model, segment, *flags = line.strip().split(",")
        right = (model[:4] == segment[:4], prompt == said[int(segment[10:12]), int(segment[13:16])])
        kind = [(True, True), (True, False), (False, True), (False, False)].index(right)
        assert flags == ["Y" if place == kind else "N" for place in range(4)]
        kinds[kind] += 1
    assert kinds == {0: 4 * 6, 1: 3 * 4 * 6, 2: 4 * 6, 3: 4 * 6}  # models times tests


@pytest.mark.parametrize(("part", "first", "n_sentences"), [(2, 31, 2), (3, 61, 5)])
def test_other_parts_are_read_as_written(tmp_path, monkeypatch, part, first, n_sentences):
    said = []

    def synthesise(voice, text, session, *, take):
        said.append((session.number, take, text))
        return np.zeros(16000, np.float32)

    monkeypatch.setattr(voices, "synthesise_utterance", synthesise)
    size = CorpusSize(n_speakers=4, n_sentences=n_sentences, n_sessions=4, part=part)
    simulate_rsr2015(tmp_path / "new", size, jobs=1)
    lists = read_rsr2015(
        tmp_path / "new", ListOptions(part=part, background_size=4, nontarget=("IC", "TW", "IW"))
    )
    assert {int(name[-3:]) for name in lists.ubm} == {*range(first, first + n_sentences)}
    assert len(lists.ubm) == 2 * 4 * n_sentences
    texts = {(session, take): text for session, take, text in said}
    assert len(said) == 4 * len(texts) == 4 * 4 * n_sentences, "the same for all speakers"
    if part == 2:
        assert lists.texts == {}
        assert len(lists.enrolment.unique_models()) == 4
        assert texts[1, 31] == texts[4, 31] == voices.COMMANDS[0]
    else:
        assert {lists.texts[name] for name in lists.recordings} == {
            tuple(texts[int(name[10:12]), int(name[13:])].rstrip(".").split(", "))
            for name in lists.recordings
        }
        assert texts[1, 61] != texts[4, 61]


# --- reproducible ---------------------------------------------------------------------------------


def test_a_larger_corpus_contains_the_smaller_one_for_any_number_of_workers(corpus, tmp_path):
    larger = simulate_rsr2015(
        tmp_path / "larger",
        CorpusSize(n_speakers=5, n_sentences=3, n_sessions=5, seed=3, gender="m"),
        jobs=2,
    )
    small, large = contents(corpus.folder), contents(larger.folder)
    shared = [name for name in small if name.startswith("sph/male")]
    assert len(shared) == 32
    assert all(small[name] == large[name] for name in shared)


# --- errors ---------------------------------------------------------------------------------------

TINY = {"n_speakers": 3, "n_sentences": 1, "n_sessions": 2}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"n_speakers": 2},
            "n_speakers is 2: expected 3 to 999 .*background speaker and two evaluation",
        ),
        ({"n_sentences": 0}, "n_sentences is 0: expected 1 to 30"),
        ({"part": 3}, "n_sentences is 1: expected 4 to 13 .*the first three enrol"),
        ({"part": 0}, "part is 0: expected 1, 2 or 3"),
        ({"n_sessions": 1}, "n_sessions is 1: expected 2 to 9"),
        ({"n_background": 0}, "n_background is 0: expected 1 to 1"),
        (
            {"n_speakers": 100, "n_background": 48, "gender": "both"},
            "n_background is 48: expected 1 to 47",
        ),
        ({"seed": -1}, "seed is -1: expected 0 to"),
        ({"gender": "x"}, "gender is 'x': expected 'm', 'f' or 'both'"),
        ({"audio_format": "mp3"}, "audio_format is 'mp3': expected one of wav, sph, flac"),
    ],
)
def test_arguments_out_of_range_are_refused(tmp_path, change, text):
    with pytest.raises(DataError, match=text):
        simulate_rsr2015(tmp_path / "new", CorpusSize(**{**TINY, **change}))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("record", [None, "{}"])
def test_foreign_folders_are_not_touched(tmp_path, record):
    (tmp_path / "thesis.txt").write_text("ten years of work")
    if record is not None:
        (tmp_path / "simulation.json").write_text(record)
    before = contents(tmp_path)
    with pytest.raises(DataError, match="not a simulated corpus"):
        simulate_rsr2015(tmp_path, CorpusSize(**TINY), jobs=1)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), OSError(28, "disk full")], ids=["Ctrl-C", "disk full"]
)
def test_an_interrupted_run_leaves_no_corpus(tmp_path, monkeypatch, failure):
    calls = []

    def synthesise(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 4:
            raise failure
        return np.zeros(1000, np.float32)

    monkeypatch.setattr(voices, "synthesise_utterance", synthesise)
    expected = DataError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected):
        simulate_rsr2015(tmp_path / "new", CorpusSize(**TINY), jobs=1)
    assert len(calls) == 4
    assert not any(tmp_path.iterdir())
