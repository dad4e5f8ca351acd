"""Lists as files and stages that are done already: what SIDEKIT's tutorial leaves takes the place of our own work."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from recipe_runs import made, refused, results_of

from evaluation.formats.reading import read_scores
from spkver.backend.svm import open_svms
from spkver.corpora.rsr2015 import list_stems
from spkver.idmap import IdMap
from spkver.mixture.statistics import copy_stat_rows
from spkver.sidekit.tables import StatServer, read_idmap, read_stat_server, write_stat_server

pytestmark = pytest.mark.whole

STEMS = list_stems("eval", "m")


@pytest.fixture
def task(finished, tmp_path):
    """Its lists, for a test to change; SIDEKIT writes HDF5 alone."""
    folder = Path(shutil.copytree(finished / "task", tmp_path / "task"))
    for path in folder.glob("3s*.txt"):
        path.unlink()
    return folder


def by_pair(scores):
    return dict(zip(scores.pairs(), scores.values.tolist(), strict=True))


# --- lists -----------------------------------------------------------------------------------------------------------


def test_lists_of_a_folder_give_the_same_scores(recipe, tiny, finished, task, tmp_path):
    assert recipe(tiny, tmp_path / "out", lists__folder=task).status == 0
    for system in ("svm-gmm", "svm-gmm-nap"):
        ours, before = (
            read_scores(folder / f"scores/{system}.h5") for folder in (tmp_path / "out", finished)
        )
        assert by_pair(ours) == by_pair(before)
    again, first = results_of(tmp_path / "out")["systems"], results_of(finished)["systems"]
    assert {name: system["eer"] for name, system in again.items()} == {
        n: s["eer"] for n, s in first.items()
    }
    assert set(again["svm-gmm"]["trial_types"]) == {"TC-IC"}, (
        "the ids tell the types, which SIDEKIT's key does not"
    )


def test_missing_lists_are_made_from_the_corpus(recipe, tiny, finished, task, tmp_path):
    shutil.rmtree(task / "data")
    for path in task.glob("*"):
        if path.name != "ubm_list.txt":
            path.unlink()
    outcome = recipe(tiny, tmp_path / "out", "--until", "features", lists__folder=task)
    assert outcome.status == 0
    assert "ubm_list.txt; the others from the corpus" in outcome.err
    names = {path.name for path in (finished / "task").iterdir() if path.is_file()}
    assert {path.name for path in (tmp_path / "out/task").iterdir()} == {*names, "data"}
    for name in names:
        assert (tmp_path / "out/task" / name).read_bytes() == (
            finished / "task" / name
        ).read_bytes() or "h5" in name


GOOD = "m001 m001/m001_01_001"
BAD_LISTS = {  # which list, its lines, the message
    "none": ("", [], "task: holds none of the lists"),
    "other sex": (
        "ubm_list",
        ["f001/f001_01_001"],
        "1 recording of the other sex than gender 'm': f001/f001_01",
    ),
    "tested": (
        "ubm_list",
        ["m101/m101_01_001"],
        "recording 'm101/m101_01_001' is of a background speaker",
    ),
    "background": (
        STEMS["background"],
        [GOOD, "m009 m009/m009_01_001"],
        "_back.txt: no recording 'm009/m009_01_001'",
    ),
    "part": (STEMS["nap"], [f"{GOOD} 3 8"], "_nap.txt: row 0 is a part of recording"),
    "several": (
        STEMS["enrolment"],
        ["m101_001 m101/m101_01_001", "m101_001 m102/m102_01_001"],
        "model 'm101_001' is enrolled by recordings of several speakers: m101, m102",
    ),
    "not enrolled": (
        STEMS["enrolment"],
        ["m101_001 m101/m101_01_001"],
        "model 'm102_001' has trials but no enrolment",
    ),
    "labels": (
        STEMS["key"],
        ["m101_001 m101/m101_02_001 nontarget", "m101_001 m102/m102_02_001 target"],
        "1 target trial of the key of type IC by their ids",
    ),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_bad_lists_are_reported_with_their_line(recipe, tiny, task, tmp_path, name):
    stem, lines, expected = BAD_LISTS[name]
    for path in task.glob(f"{stem}.h5" if stem else "*.*"):
        path.unlink()
    if stem:
        (task / f"{stem}.txt").write_text("\n".join(lines) + "\n")
    outcome = recipe(tiny, tmp_path / "out", lists__folder=task)
    refused(outcome, re.escape(expected))
    assert not (tmp_path / "out/features.h5").exists(), "before any long step"


# --- stages that are already done -----------------------------------------------------------------------------------


@pytest.fixture
def sidekit(finished, tmp_path):
    """What the tutorial leaves: StatServers under its names, rows in another order, and a pickle for each model."""
    folder = tmp_path / "sidekit"
    folder.mkdir()
    for kind, name in (
        ("stat", "enroll"),
        ("stat", "back"),
        ("stat", "test"),
        ("sv", "back"),
        ("sv", "test"),
    ):
        server = read_stat_server(finished / f"data/{kind}_{name}.h5")
        order = np.random.default_rng(0).permutation(len(server.models))
        columns = (
            server.models[order],
            server.segments[order],
            server.stat0[order],
            server.stat1[order],
        )
        write_stat_server(folder / f"{kind}_rsr2015_male_{name}.h5", StatServer(*columns))
    shutil.copy(finished / "data/sv_enroll.h5", folder / "sv_norm_rsr2015_male_enroll.h5")
    for system in ("svm-gmm", "svm-gmm-nap"):
        machines = open_svms(finished / f"svm/{system}.h5")
        for model, weights, bias in zip(
            machines.models, machines.weights, machines.biases.tolist(), strict=True
        ):
            path = folder / system / f"{model}.svm"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(
                gzip.compress(pickle.dumps((weights.astype(np.float64)[:, None], bias)))
            )
    return folder


def scores_like(output, finished, system, tolerance):
    ours, before = (
        by_pair(read_scores(folder / f"scores/{system}.h5")) for folder in (output, finished)
    )
    assert set(ours) == set(before)
    np.testing.assert_allclose(
        [ours[pair] for pair in before], [*before.values()], rtol=0, atol=tolerance
    )


def test_statistics_of_sidekit_are_used(recipe, tiny, finished, sidekit, tmp_path):
    output = tmp_path / "out"
    settings = {"given__statistics": sidekit, "ubm__file": finished / "gmm/ubm.h5"}
    outcome = recipe(tiny, output, **settings)
    assert outcome.status == 0, outcome.err
    assert not (output / "features.h5").exists(), "nothing asks for the audio"
    assert (output / "data/stat_test.h5").exists()
    # the mixture is stored by its precisions, which are rounded
    scores_like(output, finished, "svm-gmm-nap", 2e-3)
    assert made(recipe(tiny, output, **settings).err) == set()


def test_supervectors_and_svms_of_sidekit_are_used(recipe, tiny, finished, sidekit, tmp_path):
    given = {
        "given__machines": finished / "svm/svm-gmm.h5",
        "given__machines_nap": sidekit / "svm-gmm-nap",
    }
    for output, more, tolerance in (
        (tmp_path / "out", {}, 0),
        (tmp_path / "machines", given, 1e-6),
    ):
        outcome = recipe(tiny, output, given__supervectors=sidekit, **more)
        assert outcome.status == 0, outcome.err
        names = {"nap.h5", "sv_enroll.h5", "sv_back.h5", "sv_test.h5"}
        assert {path.name for path in (output / "data").iterdir()} == names
        scores_like(output, finished, "svm-gmm", 0)
        scores_like(output, finished, "svm-gmm-nap", tolerance)
        assert "ubm" not in json.loads((output / "stages.json").read_text())["artefacts"]


def drop_row(sidekit):
    path = sidekit / "sv_rsr2015_male_test.h5"
    server = read_stat_server(path)
    write_stat_server(
        path, StatServer(server.models[1:], server.segments[1:], server.stat0[1:], server.stat1[1:])
    )


BAD_STAGES = {
    "no mixture": (
        {"given__statistics": "."},
        None,
        "given.statistics are of a mixture that is not given (set ubm.file",
    ),
    "row": ({"given__supervectors": "."}, drop_row, "1 of 16 rows of the list are not there: m"),
    "machine": (
        {"given__machines": "svm-gmm"},
        lambda sidekit: next((sidekit / "svm-gmm").iterdir()).unlink(),
        "no machine of model 'm",
    ),
    "other mixture": (
        {"given__statistics": ".", "ubm__file": "ubm.h5"},
        lambda sidekit: write_other_ubm(sidekit / "ubm.h5"),
        "stat0 and stat1 have (8, 480) columns, expected (2, 120) for the mixture",
    ),
}


def write_other_ubm(path):
    from spkver.sidekit.models import write_mixture

    means = np.zeros((2, 60))
    write_mixture(
        path, weights=np.full(2, 0.5), means=means, variances=means + 1, variance_control=means + 1
    )


@pytest.mark.parametrize("name", BAD_STAGES)
def test_bad_files_of_stages_are_reported(recipe, tiny, sidekit, tmp_path, name):
    keys, spoil, expected = BAD_STAGES[name]
    if spoil is not None:
        spoil(sidekit)
    outcome = recipe(tiny, tmp_path / "out", **{key: sidekit / file for key, file in keys.items()})
    assert outcome.status == 2
    assert expected in outcome.error
    assert not (tmp_path / "out/features.h5").exists()


@pytest.mark.parametrize("name", ["enroll", "test"])
def test_rows_of_sidekit_files_are_put_in_order(shared, tmp_path, name):
    """SIDEKIT wrote these; they come out under its own list of ids, whatever the order of the rows."""

    folder = shared / "golden" / "sidekit" / "h5"
    server, idmap = (
        read_stat_server(folder / f"stat_{name}.h5"),
        read_idmap(folder / f"idmap_{name}.h5"),
    )
    turned = IdMap(idmap.models[::-1], idmap.segments[::-1])
    path = tmp_path / "stat.h5"
    copy_stat_rows(folder / f"stat_{name}.h5", turned.models, turned.segments, path)
    copied = read_stat_server(path)
    rows = {pair: row for row, pair in enumerate(zip(server.models, server.segments, strict=True))}
    order = [rows[pair] for pair in zip(turned.models, turned.segments, strict=True)]
    np.testing.assert_array_equal(copied.stat1, server.stat1[order])
    np.testing.assert_array_equal(copied.stat0, server.stat0[order])
