"""The benchmark of chains: its conditions, stars and dashes, on vectors that are drawn."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import backends
from benchmarks.backends import Condition, compare_chains, halve, merge_embeddings, tables_of
from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.trials import Key
from spkbase.errors import DataError
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, read_datadir, write_datadir

DIMENSIONS = 8
LDA = "[centre, lda: {rank: 4, shrink: 0.01}]"  # a chain in YAML


def drawn(name, n_speakers, n_each, seed=0):
    """Speakers spread in half of the dimensions, sessions three times as wide in the other half."""
    rng = np.random.default_rng(seed)
    is_speech = np.arange(DIMENSIONS) < DIMENSIONS // 2
    owners = np.repeat(np.arange(n_speakers), n_each)
    vectors = (rng.normal(size=(n_speakers, DIMENSIONS)) * is_speech)[owners]
    vectors = vectors + rng.normal(size=vectors.shape) * np.where(is_speech, 0.3, 3.0)
    ids = [f"{name}{owner}-{row}" for row, owner in enumerate(owners)]
    return Embeddings(ids, [f"{name}{owner}" for owner in owners], vectors)


def all_trials(enrol, test):
    models = sorted(set(enrol.speakers))
    pairs = [(model, row) for model in models for row in range(len(test))]
    truth = [test.speakers[row] == model for model, row in pairs]
    return Key.from_ids([model for model, _ in pairs], [test.ids[row] for _, row in pairs], truth)


@pytest.fixture
def condition():
    every = drawn("x", 10, 6, seed=1)
    first = np.arange(60) % 6 < 3
    enrol, test = (
        Embeddings(every.ids[rows], every.speakers[rows], every.vectors[rows])
        for rows in (first, ~first)
    )
    of_segments = dict(zip(test.ids.tolist(), test.speakers.tolist(), strict=True))
    return Condition(drawn("t", 40, 4), enrol, test, all_trials(enrol, test), None, of_segments)


def test_session_compensation_lowers_the_error_rate_and_gets_a_star(condition):
    outcomes = compare_chains(condition, ("cosine", "centre,length", LDA), resamples=100)
    eer = {chain: found.intervals["eer.rocch"] for chain, found in outcomes.items()}
    assert eer["cosine"].value > 0.2 > 0.1 > eer[LDA].value
    assert all(between.low <= between.value <= between.high for between in eer.values())
    assert outcomes["cosine"].differs == {}
    assert outcomes[LDA].differs == dict.fromkeys(
        ("eer.rocch", "min_cllr", "cllr", "calibrated"), True
    )
    assert not outcomes["centre,length"].differs["eer.rocch"]  # their mean is already 0
    found = outcomes[LDA].intervals
    assert found["min_cllr"].value < found["calibrated"].value < found["cllr"].value
    assert condition.enrolled() == 3


def test_untrainable_chains_give_a_reason_and_the_others_have_results(condition):
    single = replace(condition, training=drawn("t", 12, 1))
    outcomes = compare_chains(single, ("cosine", "lda", "lda:20"), resamples=20)
    assert set(outcomes["cosine"].intervals) == {"eer.rocch", "min_cllr", "cllr"}
    assert outcomes["lda"].intervals == {}
    assert "two vectors" in outcomes["lda"].failure
    text = tables_of({"here": outcomes})
    assert text.count("| `lda`") == 4
    assert "here lda; here lda:20" in text or "here lda: " in text
    assert text.split("calibration on the background")[1].count("| - ") == 3


def test_the_table_has_every_condition_of_the_challenge(tmp_path, capsys):
    for end, seed in (("", 5), ("_anon", 6)):
        write_embeddings(tmp_path / f"train{end}_net.h5", drawn("t", 20, 4, seed))
        every = drawn("x", 8, 6, seed)
        for part, rows in (("enrolls", [0, 1, 2]), ("trials_f", [3, 4]), ("trials_m", [5])):
            chosen = np.isin(np.arange(48) % 6, rows)
            vectors = Embeddings(every.ids[chosen], every.speakers[chosen], every.vectors[chosen])
            write_embeddings(tmp_path / f"s_{part}{end}_net.h5", vectors)
            folder = tmp_path / "layout" / f"s_{part}"
            folder.mkdir(parents=True, exist_ok=True)
            pairs = zip(vectors.ids, vectors.speakers, strict=True)
            (folder / "utt2spk").write_text(
                "".join(f"{utterance} {speaker}\n" for utterance, speaker in pairs)
            )
            lines = [
                f"x{m} {u} {'target' if s == f'x{m}' else 'nontarget'}\n"
                for m in range(8)
                for u, s in zip(vectors.ids, vectors.speakers, strict=True)
            ]
            (folder / "trials").write_text("".join(lines))
    arguments = [
        "voiceprivacy",
        str(tmp_path),
        str(tmp_path / "layout"),
        "s",
        "--training",
        "train",
    ]
    arguments += ["--suffix", "_anon", "--extractor", "net", "--resamples", "10"]
    backends.main([*arguments, "--chain", "cosine", "--chain", "centre,plda:4"])
    out = capsys.readouterr().out
    rows = [
        line.replace("*", "").strip("| ").split(" | ")
        for line in out.partition("minCllr")[0].splitlines()
    ]
    assert "24 target and 168 nontarget trials" in out
    assert "80 utterances of 20 speakers" in out
    names, (cosine, plda) = (
        rows[-5][1:],
        [[float(cell.split()[0]) for cell in row[1:]] for row in rows[-3:-1]],
    )
    assert [name.strip() for name in names] == [
        "original",
        "ignorant",
        "lazy-informed",
        "semi-informed",
    ]
    # the two draws have different speakers: only those who are enrolled and tested in the same draw are found
    assert plda[0] < 25 > plda[3]
    assert plda[1] > 30
    assert cosine[2] == cosine[3]  # the cosine alone learns nothing of the background


def test_the_lists_equal_those_of_the_recipe(tmp_path):
    (tmp_path / "ubm_list.txt").write_text("t0-0\nt0-1\nt1-2\nt1-3")
    (tmp_path / "3sess_trn.txt").write_text("x0_a x0-0\nx0_a x0-1\nx0_b x0-0\nx1_a x1-4\n")
    (tmp_path / "3sess_key.txt").write_text(
        "x0_a x0-2 target\nx0_b x0-2 target\nx1_a x0-2 nontarget\n"
    )
    (tmp_path / "model2spk").write_text("x0_a x0\nx0_b x0\nx1_a x1\n")
    background, others = drawn("t", 2, 2), drawn("x", 2, 4)
    vectors = merge_embeddings([background, others])
    owners = zip(vectors.ids, vectors.speakers, strict=True)
    (tmp_path / "utt2spk").write_text(
        "".join(f"{utterance} {speaker}\n" for utterance, speaker in owners)
    )
    found = backends.rsr2015_condition(vectors, tmp_path)
    assert found.training.ids.tolist() == background.ids.tolist()
    assert found.training.speakers.tolist() == ["t0", "t0", "t1", "t1"]
    assert found.enrol.speakers.tolist() == ["x0_a", "x0_a", "x0_b", "x1_a"]
    assert np.array_equal(found.enrol.vectors, others.vectors[[0, 1, 0, 4]])
    (tmp_path / "other_key.txt").write_text("")
    with pytest.raises(DataError, match="expected one file"):
        backends.rsr2015_condition(vectors, tmp_path)


def test_recordings_are_split_into_halves(tmp_path):
    samples = np.arange(1001, dtype=np.float32) / 2048
    (tmp_path / "source").mkdir()
    write_audio(tmp_path / "u.wav", samples, 16000)
    write_datadir(
        DataDir(tmp_path / "source", {"u": tmp_path / "u.wav"}, {"u": "anna"}, {"anna": "f"})
    )
    halve(read_datadir(tmp_path / "source"), tmp_path / "halves")
    halves = read_datadir(tmp_path / "halves")
    assert halves.speakers == {"u-a": "anna", "u-b": "anna"}
    parts = [read_audio(path).samples for path in halves.recordings.values()]
    assert np.allclose(np.concatenate(parts), samples, atol=1 / 32768)
    assert [len(part) for part in parts] == [501, 500]
