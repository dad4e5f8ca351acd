"""The commands linkability and cosine: their files, their agreement with each other, and their one clear message."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused
from scipy.special import ndtr
from torch_writer import write_torch

import evaluation as ev
from evaluation import formats, linkage
from evaluation.embeddings import (
    Averaging,
    Embeddings,
    read_embeddings,
    speaker_vectors,
    write_embeddings,
)
from evaluation.linkage import (
    Ranks,
    linkability_at_sizes,
    linkability_over_sizes,
    rank_speakers,
    read_ranks,
)
from evaluation.reports.linkability import Settings, measure_linkage, write_linkage
from evaluation.trials import Key, Scores
from spkbase.errors import DataError
from spkbase.files import to_json

pytestmark = pytest.mark.whole


def run(*arguments, command="linkability"):
    return passes(command, *arguments)


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """30 enrolled speakers, 12 of them with 4 trial utterances each; as embeddings, and as all their scores."""
    folder = tmp_path_factory.mktemp("linkability")
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((30, 16))
    names = np.array([f"s{one:02d}" for one in range(30)], object)
    enrol = Embeddings(
        np.array([f"e-{one}" for one in names], object), names, voices.astype(np.float32)
    )
    speakers = np.repeat(names[:12], 4)
    ids = np.array([f"t-{one}-{row % 4}" for row, one in enumerate(speakers)], object)
    spoken = np.repeat(voices[:12], 4, axis=0) + 2.0 * rng.standard_normal((48, 16))
    trial = Embeddings(ids, speakers, spoken.astype(np.float32))
    paths = {"enrol": folder / "enrol.npz", "trial": folder / "trial.h5", "key": folder / "key"}
    write_embeddings(paths["enrol"], enrol)
    write_embeddings(paths["trial"], trial)
    pairs = [
        (model, segment, model == speaker)
        for model in names
        for segment, speaker in zip(ids, speakers, strict=True)
    ]
    formats.write_key(paths["key"], Key.from_ids(*zip(*pairs, strict=True)))
    return paths


def embeddings(files):
    return "--enroll", files["enrol"], "--test", files["trial"]


def test_a_run_writes_all_files(files, tmp_path):
    options = ("--utterances", "1,3", "--top", "2,5", "--bootstrap", 50, "--no-plots")
    run(*embeddings(files), *options, "--output", tmp_path / "run")
    report = json.loads((tmp_path / "run" / "linkability.json").read_text())
    assert {
        name: report[name]
        for name in ("n_enroll", "n_trial", "n_speakers", "tie_rule", "estimator", "measure")
    } == {
        "n_enroll": 30,
        "n_trial": 12,
        "n_speakers": 12,
        "tie_rule": "shared",
        "estimator": "exact",
        "measure": "log",
    }
    ranks = read_ranks(tmp_path / "run" / "ranks.npz")
    assert list(ranks) == [1, 3]
    for number, one in ranks.items():
        block = report["utterances"][str(number)]
        sizes = list(range(2, 31))
        assert block["sizes"] == sizes
        assert block["linkability"] == pytest.approx(linkability_at_sizes(one, sizes))
        assert block["rank1"] == (one.beaters == 0).mean()
        assert block["top"]["5"] == pytest.approx(linkability_at_sizes(one, sizes, top=5))
        assert all(
            low < value < high
            for low, value, high in zip(
                block["low"], block["linkability"], block["high"], strict=True
            )
        )
        assert block["chance"][0] == 0.5
        assert 0 < block["srd_mean_bits"] < block["srd_worst_bits"] < np.log2(30) + 1e-9
    table = rows_of(Path(report["per_speaker"]))
    names = [
        "speaker",
        "linkability_mean",
        "rank_L1",
        "rank_L3",
        "linkability_L1",
        "linkability_L3",
    ]
    assert list(table[0]) == names
    assert [row["speaker"] for row in table] == ranks[1].speakers.tolist()
    assert [float(row["rank_L3"]) for row in table] == (ranks[3].beaters + 1).tolist()
    means = [linkability_over_sizes(ranks[number]) for number in (1, 3)]
    assert [float(row["linkability_L1"]) for row in table] == pytest.approx(means[0])
    assert [float(row["linkability_mean"]) for row in table] == pytest.approx(
        np.mean(means, axis=0)
    )
    curve = rows_of(tmp_path / "run" / "curve.csv")
    assert (len(curve), curve[0]["utterances"], curve[-1]["size"], curve[0]["kind"]) == (
        58,
        "1",
        "30",
        "measured",
    )
    places = rows_of(tmp_path / "run" / "cmc.csv")
    assert (len(places), places[29]["share"]) == (60, "1.0")


def test_sizes_can_be_given_and_json_printed(files):
    done = run(
        *embeddings(files),
        "--sizes",
        2,
        "--sizes",
        10,
        "--sizes",
        30,
        "--bootstrap",
        0,
        "--json",
        "-",
    )
    block = json.loads(done.stdout)["utterances"]["1"]
    assert (block["sizes"], block["low"]) == ([2, 10, 30], [None] * 3)
    assert (
        run(*embeddings(files), "--sizes", "2,10,30", "--bootstrap", 0, "--json", "-").stdout
        == done.stdout
    )
    published = run(*embeddings(files), "--sizes", "published", "--json", "-")
    assert json.loads(published.stdout)["utterances"]["1"]["sizes"] == [30]


def test_monte_carlo_agrees_with_the_exact_value(files):
    options = "--runs", 40, "--sizes", "2,10,30", "--json", "-"
    block = json.loads(run(*embeddings(files), *options).stdout)["utterances"]["1"]
    assert np.mean(block["single_runs"], axis=0) == pytest.approx(block["linkability"])
    for drawn, exact, error in zip(
        block["linkability"], block["exact"], block["standard_error"], strict=True
    ):
        assert abs(drawn - exact) <= 4 * error + 1e-12
    assert block["linkability"][:2] != block["exact"][:2]
    assert block["linkability"][2] == pytest.approx(block["exact"][2])


def test_scores_and_embeddings_give_equal_results(files, tmp_path):
    """Cosine scores of single utterances, then the means over all segments of one speaker."""
    scores = tmp_path / "scores"
    done = run(*embeddings(files), "--trials", files["key"], "--output", scores, command="cosine")
    assert done.output == f"1440 scores -> {scores}\n"
    one = json.loads(run("-s", scores, "-k", files["key"], "--utterances", 1, "--json", "-").stdout)
    other = json.loads(run(*embeddings(files), "--json", "-").stdout)
    assert one["utterances"]["1"]["linkability"] == pytest.approx(
        other["utterances"]["1"]["linkability"]
    )
    each = json.loads(run("-s", scores, "-k", files["key"], "--json", "-").stdout)
    assert (each["n_trial"], each["n_speakers"], each["n_enroll"]) == (48, 12, 30)
    every = json.loads(
        run("-s", scores, "-k", files["key"], "--utterances", "all", "--json", "-").stdout
    )
    assert list(every["utterances"]) == ["all"]
    assert every["utterances"]["all"]["notes"] == []
    assert every["utterances"]["all"]["rank1"] > each["utterances"]["1"]["rank1"]
    metrics = run("-s", scores, "-k", files["key"], "--json", "-", command="metrics")
    assert json.loads(metrics.stdout)["n_target"] == 48


def test_extrapolated_sizes_are_marked(tmp_path):
    rng = np.random.default_rng(1)
    voices, names = (
        rng.standard_normal((60, 8)),
        np.array([f"s{one:02d}" for one in range(60)], object),
    )
    for side, vectors in (("enrol", voices), ("trial", voices + rng.standard_normal(voices.shape))):
        ids = np.array([f"{side}-{name}" for name in names], object)
        write_embeddings(
            tmp_path / f"{side}.npz", Embeddings(ids, names, vectors.astype(np.float32))
        )
    sides = ("--enroll", tmp_path / "enrol.npz", "--test", tmp_path / "trial.npz")
    run(
        *sides, "--bootstrap", 0, "--keep-impostors", "--no-plots", "--output", tmp_path / "gallery"
    )
    beyond = (tmp_path / "gallery", "--bootstrap", 0, "--populations")
    result = run(
        *beyond, "1000,100000", "--output", tmp_path / "out", command="linkability-extrapolate"
    )
    assert "EXTRAPOLATED beyond the gallery of 60, not measured" in result.stdout
    rows = rows_of(tmp_path / "out/curve.csv")
    assert {int(row["size"]) <= 60: row["kind"] for row in rows} == {
        True: "measured",
        False: "extrapolated",
    }
    report = json.loads((tmp_path / "out/linkability.json").read_text())
    assert report["extrapolation"]["1"]["kind"] == "extrapolated"
    methods = {row["method"] for row in rows_of(tmp_path / "out/extrapolation.csv")}
    assert {"normal", "tail", "span"} <= methods  # the tail needs scores of impostors
    easy = (tmp_path / "out/easy_speakers_L1.txt").read_text().splitlines()[1:]
    assert 0 < len(easy) == report["quartiles"]["1"]["n_easy"] < 30
    for name in (
        "linkability.png",
        "extrapolation_L1.svg",
        "cmc.png",
        "speakers.png",
        "easy_speakers_L1.txt",
    ):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert "larger than the gallery of 60, got 60" in refused(
        "linkability-extrapolate", *beyond, 60
    )


def test_failed_methods_are_neither_printed_nor_drawn(tmp_path):
    rng = np.random.default_rng(0)
    probabilities = {1: np.full(400, 0.001), 3: ndtr(rng.normal(-2, 1, 400))}
    ranks = {
        number: Ranks(rng.binomial(1999, beaten), 0, 1999)
        for number, beaten in probabilities.items()
    }
    folder = tmp_path / "gallery"
    write_linkage(folder, measure_linkage(ranks, Settings(resamples=0)), plots=False)
    beyond = (folder, "--bootstrap", 20, "--populations", "10000")
    result = run(*beyond, "--output", tmp_path / "out", command="linkability-extrapolate")
    lines = result.stdout.splitlines()
    failed, trusted = (line.split() for line in lines if " 10,000 " in line)
    assert (len(failed), len(trusted)) == (4, 5)  # four have no estimate
    assert "without an estimate the bounds, since no extrapolation is trusted" in result.stdout
    assert "note: L = 1: no extrapolation is trusted" in result.stdout
    bounds = next(
        row for row in rows_of(tmp_path / "out/extrapolation.csv") if row["method"] == "bounds"
    )
    assert failed[2:] == [f"{float(bounds[end]):.4g}" for end in ("low", "high")]
    spans = [row for row in rows_of(tmp_path / "out/extrapolation.csv") if row["method"] == "span"]
    assert [row["low"] == "" for row in spans] == [True, False]
    kinds = [
        (row["utterances"], row["method"], row["kind"])
        for row in rows_of(tmp_path / "out/extrapolation.csv")
    ]
    assert {
        ("1", "normal", "not trusted"),
        ("1", "bounds", "extrapolated"),
        ("3", "normal", "extrapolated"),
    } <= {*kinds}
    row = next(row for row in rows_of(tmp_path / "out/curve.csv") if row["kind"] == "extrapolated")
    assert (row["linkability"], row["low"], row["high"]) == ("", bounds["low"], bounds["high"])


def test_singling_out_reports_its_counts(files):
    done = run(*embeddings(files), "--utterances", "1,3", "--json", "-", command="singling-out")
    found = json.loads(done.stdout)["singling_out"]
    assert (found["1"]["n_crowd"], found["1"]["n_calibration"], found["1"]["n_predicates"]) == (
        12,
        3,
        30,
    )
    assert found["1"]["chance"] == pytest.approx(np.exp(-1))
    assert found["3"]["value"] is None
    assert "no singling out for L = 3: expected at least 2 speakers" in done.stderr
    shown = run(*embeddings(files), command="singling-out").stdout
    assert re.fullmatch(
        r"singling out, L = 1: 0\.\d{4} \[0\.\d{4}, 0\.\d{4}\], chance 0\.3679\n", shown
    )
    refused("singling-out", *embeddings(files), "--utterances", 3)


def test_utterances_are_drawn_by_the_seed(files):
    """As in Python; the first are drawn by no seed, and all are not drawn."""

    def rates(*options):
        done = run(
            *embeddings(files), "--utterances", "1,2,all", "--bootstrap", 0, "--json", "-", *options
        )
        found = json.loads(done.stdout)["utterances"].values()
        assert ["drawn at random, seed" in str(block["notes"]) for block in found] == [
            "random" in options
        ] * 3
        return [block["linkability_mean"] for block in found]

    enrol, trial = read_embeddings(files["enrol"]), read_embeddings(files["trial"])
    drawn = speaker_vectors(trial, averaging=Averaging(choice="random", seed=5), utterances=2)
    ranks = rank_speakers(speaker_vectors(enrol), drawn)
    known = rates("--choice", "random", "--seed", 5)
    assert known[1] == pytest.approx(np.mean(linkability_over_sizes(ranks)))
    other, first = rates("--choice", "random", "--seed", 6), rates("--seed", 5)
    assert first == rates("--seed", 6)
    assert known[2] == other[2] == first[2]
    assert len({known[1], other[1], first[1]}) == 3
    shown = run(
        *embeddings(files), "--utterances", "1,2,all", "--bootstrap", 0, "--choice", "random"
    ).stdout
    assert shown.count("utterances are drawn at random, seed 0") == 1, (
        "told once, not for each number of utterances"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected --enroll FILE with --test FILE, or -s SCORES with -k KEY"),
        (
            ["--enroll", "e.npz"],
            "expected --enroll FILE with --test FILE, or -s SCORES with -k KEY",
        ),
        (
            ["--enroll", "e", "--test", "t", "-s", "s", "-k", "k"],
            "expected --enroll FILE with --test FILE, or",
        ),
        (
            ["-s", "s", "-k", "k", "--top", "2,none"],
            "expected numbers from 1 to 1,000,000,000,000, got 'none'",
        ),
        (
            ["-s", "s", "-k", "k", "--sizes", "2,many"],
            "numbers from 2 to 1,000,000,000,000, got 'many'",
        ),
        (
            ["-s", "s", "-k", "k", "--sizes", "1"],
            "expected all, log, published, numbers from 2 to 1,",
        ),
        (
            ["-s", "s", "-k", "k", "--sizes", "2,all"],
            "--sizes takes numbers, or one of all, log and published",
        ),
        (
            ["-s", "s", "-k", "k", "--utterances", "0"],
            "expected all, numbers from 1 to 1,000,000,000,000, got '0'",
        ),
        (["-s", "s", "-k", "k", "--bootstrap", "1"], "expected 0, or 2 to 1,000,000 resamples"),
        (["-s", "s", "-k", "k", "--output", __file__], "is a file"),
        (
            ["-s", "s", "-k", "k", "--choice", "random"],
            "--choice random needs embeddings: --enroll FILE with --test",
        ),
        (["-s", "s", "-k", "k"], "s: cannot be read: No such file or directory"),
        (
            ["--enroll", "e.npz", "--test", "t.npz"],
            "e.npz: cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_options_are_refused(options, message):
    assert message in refused("linkability", *options)


def test_bad_embeddings_give_one_message(files, tmp_path):
    def written(name, **columns):
        found = {
            "ids": ["u", "v"],
            "speakers": ["s00", "s01"],
            "vectors": np.ones((2, 16), np.float32),
        } | columns
        np.savez(
            tmp_path / f"{name}.npz", **{one: np.array(column) for one, column in found.items()}
        )
        return tmp_path / f"{name}.npz"

    broken = np.ones((2, 16), np.float32)
    broken[1, 3] = np.nan
    cases = {
        written("stranger", speakers=["s00", "x"]): "1 of 2 trial speakers are not enrolled: x",
        written(
            "nan", vectors=broken
        ): "1 vector is not finite (NaN, infinite or far too large): v",
    }
    for path, message in cases.items():
        said = refused(
            "linkability", "--enroll", files["enrol"], "--test", path, "--output", tmp_path / "run"
        )
        assert f"Error: {path}: {message}" in said
        assert not (tmp_path / "run").exists()
    dropped = run(
        "--enroll",
        files["enrol"],
        "--test",
        next(iter(cases)),
        "--not-enrolled",
        "drop",
        "--json",
        "-",
    )
    assert json.loads(dropped.stdout)["n_trial"] == 1


def test_published_sizes_need_twenty_speakers(files, tmp_path):
    small = Embeddings(
        [f"e{one}" for one in range(19)], [f"s{one:02d}" for one in range(19)], np.eye(19, 16) + 1
    )
    write_embeddings(tmp_path / "small.npz", small)
    sides = ("--enroll", tmp_path / "small.npz", "--test", files["trial"])
    expected = "expected a gallery of 20 or more for the published sizes, got 19 (choose --sizes all, or numbers)"
    assert expected in refused("linkability", *sides, "--sizes", "published")


def test_files_of_an_earlier_run_are_removed(files, tmp_path):
    folder = tmp_path / "run"
    run(*embeddings(files), "--utterances", "1,3", "--bootstrap", 0, "--output", folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "extrapolation_L3.png").write_text("of a run with --extrapolate")
    run(*embeddings(files), "--utterances", 1, "--bootstrap", 0, "--no-plots", "--output", folder)
    names = {one.name for one in folder.iterdir()}
    lists = {"easy_speakers_L1.txt", "hard_speakers_L1.txt"}
    tables = {"linkability.json", "ranks.npz", "per_speaker.csv", "curve.csv", "cmc.csv"}
    assert names == lists | tables | {"notes.txt"}


def test_foreign_files_are_kept(files, tmp_path):
    """A folder without an earlier run is not cleared, whatever its files are called."""
    (tmp_path / "speakers.png").write_text("mine")
    run(*embeddings(files), "--bootstrap", 0, "--no-plots", "--output", tmp_path)
    assert (tmp_path / "speakers.png").read_text() == "mine"


def test_the_table_of_speakers_has_each_size_and_number_of_utterances(files, tmp_path):
    options = ("--utterances", "1,3", "--sizes", "2,30", "--bootstrap", 0, "--no-plots")
    run(*embeddings(files), *options, "--output", tmp_path)
    table, ranks = rows_of(tmp_path / "per_speaker.csv"), read_ranks(tmp_path / "ranks.npz")
    for number, size in ((1, 2), (1, 30), (3, 2), (3, 30)):
        beaters = ranks[number].beaters
        expected = 1 - beaters / 29 if size == 2 else (beaters == 0).astype(float)
        assert [float(row[f"linkability_L{number}_N{size}"]) for row in table] == pytest.approx(
            expected
        )


# settings of a run


def test_galleries_of_different_sizes_have_no_disclosure():
    block = measure_linkage({1: Ranks([0, 1], 0, [5, 6])}, Settings(resamples=0)).report[
        "utterances"
    ]["1"]
    assert block["srd_mean_bits"] is None
    assert block["sizes"].tolist() == [2, 3, 4, 5, 6]
    assert block["rank1"] == 0.5
    assert block["notes"] == [
        "galleries differ between trials, 6 to 7 speakers: sizes stop at the smallest gallery"
    ]


# --- a matrix of Speaker-Linkability ---------------------------------------------------------------------------------


def test_a_similarity_matrix_and_its_vectors_give_equal_results(files, tmp_path):
    """Trials by enrolled speakers, who begin with those of the trials: what SimMatrix keeps as .pt."""
    trial = read_embeddings(files["trial"])
    enrol = read_embeddings(files["enrol"])
    firsts = [trial.speakers.tolist().index(name) for name in enrol.speakers[:12]]
    one, other = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (trial.vectors[firsts], enrol.vectors)
    )
    write_torch(tmp_path / "cosine_matrix_L-1.pt", (one @ other.T).astype(np.float32))
    settings = ("--bootstrap", 20, "--ties", "strict", "--utterances", 1, "--json", "-")
    found = json.loads(run("-s", tmp_path / "cosine_matrix_L-1.pt", *settings).stdout)
    expected = json.loads(
        run("--enroll", files["enrol"], "--test", files["trial"], *settings).stdout
    )
    assert found["utterances"]["1"]["linkability"] == expected["utterances"]["1"]["linkability"]
    assert found["utterances"]["1"]["low"] == expected["utterances"]["1"]["low"]
    assert (found["n_enroll"], found["n_trial"]) == (30, 12)
    assert "target scores are on its diagonal" in found["utterances"]["1"]["notes"][0]


@pytest.mark.parametrize(
    ("matrix", "more", "said"),
    [
        (
            np.zeros((3, 2), np.float32),
            (),
            "with target scores on its diagonal, got float32 of shape (3, 2)",
        ),
        (np.zeros(3, np.float32), (), "got float32 of shape (3,)"),
        (np.full((2, 3), np.nan, np.float32), (), "expected finite similarities"),
        (
            np.eye(3, dtype=np.float32),
            ("--utterances", "1,3"),
            "a matrix of similarities is for one number of utterances",
        ),
    ],
)
def test_other_matrices_are_refused(tmp_path, matrix, more, said):
    write_torch(tmp_path / "m.pt", matrix)
    assert said in refused("linkability", "-s", tmp_path / "m.pt", *more)


def written(result):
    return json.loads(to_json(result.to_dict()))


def test_python_gives_the_json_of_the_command_from_embeddings(files):
    enrolled, tested = ev.read_embeddings(files["enrol"]), ev.read_embeddings(files["trial"])
    ranked = ev.rank_embeddings(enrolled, tested, utterances=[1, "all"])
    found = measure_linkage(ranked.tables, Settings(resamples=20, seed=3, top=(5,)))
    options = ("--utterances", "1,all", "--bootstrap", 20, "--seed", 3, "--top", 5, "--json", "-")
    assert written(found) == json.loads(run(*embeddings(files), *options).stdout)


def test_python_gives_the_json_of_the_command_from_scores(files, tmp_path):
    scores = tmp_path / "scores"
    run(*embeddings(files), "--trials", files["key"], "--output", scores, command="cosine")
    ranked = ev.rank_trial_scores(ev.read_scores(scores), ev.read_key(files["key"]))
    report = json.loads(run("-s", scores, "-k", files["key"], "--json", "-").stdout)
    assert written(measure_linkage(ranked.tables)) == report


def test_ranks_have_no_intervals_if_models_may_not_be_speakers(tmp_path):
    models = [f"{speaker}-{number}" for speaker in ("anna", "bert", "cleo") for number in (1, 2)]
    pairs = [(model, f"of-{segment}") for model in models for segment in models]
    key = Key.from_ids(
        *zip(*pairs, strict=True), [segment == f"of-{model}" for model, segment in pairs]
    )
    scores = Scores.from_ids(
        *zip(*pairs, strict=True), np.random.default_rng(0).standard_normal(36)
    )
    ranked = ev.rank_trial_scores(scores, key)
    assert not ranked.tables[1].are_speakers
    linkage.write_ranks(tmp_path / "ranks.npz", ranked.tables)
    again = linkage.read_rank_tables(tmp_path)
    assert not again.tables[1].are_speakers
    assert "intervals" not in measure_linkage(again.tables).to_dict()
    assert (
        "intervals"
        in measure_linkage(ev.rank_trial_scores(scores, key, bootstrap_by="id").tables).to_dict()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"utterances": [0]}, "expected numbers of utterances from 1, or 'all', got 0"),
        ({"utterances": ["most"]}, "expected numbers of utterances from 1, or 'all', got 'most'"),
        ({"bootstrap_by": "trial"}, "expected bootstrap_by 'speaker' or 'id', got 'trial'"),
        ({"missing": "leave"}, "expected missing to be 'error', 'drop' or 'reject', got 'leave'"),
    ],
)
def test_rank_trial_scores_refuses_misuse(options, message):
    key = Key.from_ids(["a", "b"], ["s", "s"], [True, False])
    scores = Scores.from_ids(["a", "b"], ["s", "s"], [1.0, 0.0])
    with pytest.raises(DataError, match=message):
        ev.rank_trial_scores(scores, key, **options)


def test_results_with_side_information_are_reported_next_to_the_whole_gallery(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [f"s{number}" for number in range(8)]
    voices = rng.normal(size=(8, 6))
    np.savez("enrol.npz", ids=[f"{name}-e" for name in names], vectors=voices, speakers=names)
    takes = np.repeat(voices, 3, axis=0) + rng.normal(size=(24, 6))
    ids = [f"{name}-{take}" for name in names for take in range(3)]
    np.savez("test.npz", ids=ids, vectors=takes, speakers=np.repeat(names, 3))
    rows = [f"{name},{'fm'[number % 2]},{'ab'[number // 4]}\n" for number, name in enumerate(names)]
    (tmp_path / "side.csv").write_text("id,sex,region\n" + "".join(rows))
    given = ["--enroll", "enrol.npz", "--test", "test.npz", "--side", "side.csv"]
    shown = passes("linkability", *given)
    assert "among the 2.0 enrolled who match on average" in shown.output
    block = json.loads(passes("linkability", *given, "--json", "-").stdout)["utterances"]["1"]
    assert block["side"]["rank1"]["chance"] == 0.5
    assert block["side"]["rank1"]["value"] >= block["rank1"]
    shown = passes("singling-out", *given)
    assert "singling out with side information, L = 1" in shown.output
    entry = json.loads(passes("singling-out", *given, "--json", "-").stdout)["singling_out"]["1"]
    assert entry["side"]["chance"] == 0.5
    (tmp_path / "earlier").mkdir()
    message = refused("linkability", "--ranks", "earlier", "--side", "side.csv")
    assert "--side needs embeddings or scores" in message
