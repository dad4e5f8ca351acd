"""The benchmark on a neural anonymiser: every attacker and map at its level, on vectors that are drawn."""

import sys

import numpy as np
import pytest

from benchmarks import neural_anonymiser
from evaluation.embeddings import Embeddings, write_embeddings

pytestmark = pytest.mark.whole

N_SPEAKERS, EACH, DIMENSIONS = 8, 6, 12


@pytest.fixture
def folder(tmp_path):
    """Voices of two sexes; the anonymiser turns them, and moves enrolment and trials apart."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((DIMENSIONS, DIMENSIONS)))[0]
    shift = {
        name: 2 * rng.standard_normal(DIMENSIONS) for name in ("enrolls", "trials_f", "trials_m")
    }
    lists = {"utt2spk": "", "enrolls": "", "trials_f": "", "trials_m": ""}
    sides = {name: [] for name in shift}
    for sex in "fm":
        speakers = [f"{sex}{number}" for number in range(N_SPEAKERS)]
        for speaker in speakers:
            voice = rng.standard_normal(DIMENSIONS)
            for take in range(EACH):
                utterance = f"{speaker}-{take}"
                lists["utt2spk"] += f"{utterance} {speaker}\n"
                side = "enrolls" if take < EACH // 2 else f"trials_{sex}"
                sides[side].append(
                    (utterance, speaker, voice + 0.2 * rng.standard_normal(DIMENSIONS))
                )
                if side == "enrolls":
                    lists["enrolls"] += f"{utterance}\n"
                    continue
                for model in speakers:
                    lists[side] += (
                        f"{model} {utterance} {'target' if model == speaker else 'nontarget'}\n"
                    )
    for extractor in ("original_extractor", "retrained_extractor"):
        (tmp_path / extractor).mkdir()
        for name, rows in sides.items():
            ids, speakers, vectors = (list(column) for column in zip(*rows, strict=True))
            for end, made in (
                ("", np.array(vectors)),
                ("_anon", np.array(vectors) @ turn + shift[name]),
            ):
                write_embeddings(
                    tmp_path / extractor / f"{name}{end}.npz", Embeddings(ids, speakers, made)
                )
    (tmp_path / "lists").mkdir()
    for name, text in lists.items():
        (tmp_path / "lists" / name).write_text(text)
    return tmp_path


def test_the_tables_show_each_attacker_at_its_level(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["neural_anonymiser", str(folder), "--bootstrap", "2"])
    neural_anonymiser.main()
    told = capsys.readouterr().out.replace("\\_", "_")
    assert (
        "women: 8 models, 24 recordings of 8 speakers, 24 target and 168 nontarget trials" in told
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in told.splitlines()
        if line[:1] == "|"
    ]
    found = {
        tuple(row[:2]): (row[2], float(row[3].split()[0]))
        for row in rows
        if row[0] in neural_anonymiser.SCENARIOS
    }
    assert found["original", "vectors:"][0] == "one-model"
    assert found["lazy-informed", "single_test_cosine"][0] == "all-enrolled"
    for attacker in ("adapted:", "self-trained:", "self_trained_plda of both sexes"):
        assert found["lazy-informed", attacker][0] == "whole-list"
    assert all(
        found["lazy-informed", f"enrolled_plda{of}"][0] == "all-enrolled"
        for of in ("", " of both sexes")
    )
    assert found["original", "vectors:"][1] < 2
    assert found["ignorant", "vectors:"][1] > 25
    # the rotation is found from the pairs, the shift of the trials only from their own mean
    assert found["lazy-informed", "orthogonal map, original enrolment, own means, cosine"] == (
        "inverting",
        0.0,
    )
    assert found["lazy-informed", "orthogonal map, original enrolment, cosine"][1] > 5
    linked = {
        tuple(row[:3]): float(row[3].split()[0])
        for row in rows
        if row[1] in neural_anonymiser.ALIGNMENTS
    }
    assert linked["original", "orthogonal", "each side's own"] > 95
    assert max(linked["original", "orthogonal", means] for means in ("of the pairs", "none")) < 90
