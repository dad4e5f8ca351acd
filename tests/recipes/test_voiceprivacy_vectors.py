"""The recipe with attackers by vectors: what they chose stands in results and report, and nothing is done twice."""

from __future__ import annotations

import json

import numpy as np
import pytest
from recipe_runs import refused, results_of
from voiceprivacy_runs import SUFFIX, findings, noting_extractor, run_recipe

from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.formats import read_scores
from spkver.audio import read_audio
from spkver.backend import read_backend
from spkver.datadir import read_datadir

pytestmark = pytest.mark.whole


def run(layout, output, *attackers, page=False, **settings):
    chosen = {"attackers": json.dumps(attackers), "evaluation__resamples": 0, **settings}
    return run_recipe(layout, output, page=page, **chosen)


@pytest.fixture
def own(tmp_path):
    """Settings of an attacker of one's own extractor, which notes each recording that it hears."""
    return {"attacker_settings__mine__preset": noting_extractor(tmp_path)}


def test_results_and_report_name_the_chosen_chain(layout, tmp_path, own):
    names = ("mine", "gmm-ubm", "supervector-adapted")
    outcome = run(layout, tmp_path / "out", *names, page=True, lists="[f]", **own)
    assert outcome.status == 0, outcome.err
    assert "if all is new; not known: mine" in outcome.err
    results = results_of(tmp_path / "out")
    told = [(choice["attacker"], choice["training"]) for choice in results["choices"]]
    both = ("mine", "supervector-adapted")
    assert sorted(told) == sorted(
        (name, f"tiny_train{end}") for name in both for end in ("", SUFFIX)
    )
    for choice in results["choices"]:
        folder = tmp_path / "out/attackers" / choice["training"] / choice["attacker"]
        assert json.loads((folder / "choice.json").read_text()) == choice
        assert read_backend(folder / "backend.h5").facts["speakers"] == 6
    assert {row["attacker"] for row in results["conditions"]} == {*both, "gmm-ubm"}
    levels = {row["attacker"]: row["level"] for row in results["conditions"]}
    assert levels == {
        "mine": "one-model",
        "gmm-ubm": "one-model",
        "supervector-adapted": "whole-list",
    }
    page = (tmp_path / "out/report.html").read_text()
    assert (
        results["choices"][0]["chosen"]
        in page.partition('id="choices"')[2].partition("</section>")[0]
    )


def write_all(layout, folder, *, left_out="", training=True):
    """Vectors of every data directory: a speaker's place, and what differs from one recording to the next."""
    folder.mkdir()
    for directory in sorted(layout.iterdir()):
        if directory.name.startswith("tiny_train") and not training:
            continue
        ids = [name for name in sorted(read_datadir(directory).recordings) if name != left_out]
        rows = []
        for name in ids:
            place = np.random.default_rng([*name.split("-")[0].encode()]).normal(size=6)
            session = np.random.default_rng([*f"{directory.name}{name}".encode()]).normal(size=6)
            rows.append(place + session * [9, 9, 0.2, 0.2, 0.2, 0.2])
        speakers = np.array([name.split("-")[0] for name in ids], object)
        write_embeddings(
            folder / f"{directory.name}.h5",
            Embeddings(np.array(ids, object), speakers, np.array(rows)),
        )


def test_precomputed_vectors_get_a_backend_if_they_include_the_training_set(layout, tmp_path):
    write_all(layout, tmp_path / "with")
    write_all(layout, tmp_path / "without", training=False)
    outcome = run(
        layout, tmp_path / "out", f"vectors:{tmp_path}/with", f"vectors:{tmp_path}/without"
    )
    assert outcome.status == 0, outcome.err
    results = results_of(tmp_path / "out")
    assert [choice["attacker"] for choice in results["choices"]] == ["vectors-with"] * 2
    assert all(choice["chosen"] != "[cosine]" for choice in results["choices"])
    rows = [row["attackers"] for row in results["summary"] if row["gender"] == "all"]
    assert all(row["vectors-with"] < row["vectors-without"] for row in rows)
    # sets without a training set are scored as before
    folder = tmp_path / "out/exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f"
    assert abs(read_scores(folder / "vectors-without/scores").values).max() <= 1


def test_incomplete_training_vectors_are_refused(layout, tmp_path):
    write_all(layout, tmp_path / "some", left_out="f101-2")
    outcome = run(layout, tmp_path / "out", f"vectors:{tmp_path}/some")
    refused(outcome, "1 of 18 utterances of tiny_train without an embedding: 'f101-2'")
    assert not (tmp_path / "out/exp").exists()


def test_a_recording_that_an_extractor_cannot_process_loses_only_its_trials(layout, tmp_path, own):
    """One tested recording has no vector: all other scores stay; the report counts it, also in a second run."""
    own["lists"] = "[f]"
    whole = run(layout, tmp_path / "whole", "mine", **own)
    assert whole.status == 0, whole.err
    lost, path = sorted(read_datadir(layout / "tiny_test_trials_f").recordings.items())[0]
    samples, _ = read_audio(path)
    code = (tmp_path / "own.py").read_text()
    total = float(np.abs(samples).sum())
    (tmp_path / "own.py").write_text(
        f"{code}\n\nwhole = embed\ndef embed(samples, rate):\n"
        f"    assert abs(np.abs(samples).sum() / {total!r} - 1) > 1e-6, 'no luck'\n    return whole(samples, rate)\n"
    )
    for _ in range(2):
        outcome = run(layout, tmp_path / "out", "mine", page=True, **own)
        assert outcome.status == 0, outcome.err
        (found,) = findings(results_of(tmp_path / "out"), "recordings without vectors")
        assert f"failed on 1 recording (tiny_test_trials_f/{lost})" in found["text"]
    file = "exp/asv_orig/tiny_test_enrolls-tiny_test_trials_f/mine/scores"
    before, after = (read_scores(tmp_path / folder / file) for folder in ("whole", "out"))
    others = before.segment_ids[before.segments] != lost
    np.testing.assert_array_equal(after.values[others], before.values[others])
    assert not (after.values[~others] == before.values[~others]).any()
