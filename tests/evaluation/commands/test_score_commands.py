"""The commands that read scores and write others, or plots."""

import json

import numpy as np
import pytest
from command_lines import passes, refused, run

import evaluation as ev
from evaluation import formats
from evaluation.calibration import cohort_means
from evaluation.calibration.affine import cross_validate_affine, train_affine
from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.formats.reading import read_split
from evaluation.metrics.calibration import cllr, min_cllr
from evaluation.trials import Key, Scores, align, find_speakers, read_speakers

pytestmark = pytest.mark.whole


@pytest.fixture
def lists(tmp_path):
    """Two systems of ten speakers, badly calibrated, and their key."""
    rng = np.random.default_rng(4)
    pairs = [
        (f"p{model}", f"p{speaker}-{number}")
        for model in range(10)
        for speaker in range(10)
        for number in range(6)
    ]
    truth = np.array([segment.split("-")[0] == model for model, segment in pairs])
    ids = tuple(zip(*pairs, strict=True))
    formats.write_key(tmp_path / "key.txt", Key.from_ids(*ids, truth))
    (tmp_path / "utt2spk").write_text(
        "".join(f"{one} {one.split('-')[0]}\n" for one in sorted(set(ids[1])))
    )
    for name in ("one", "two"):
        values = 20 + 5 * rng.normal(np.where(truth, 1, -1), 1)
        formats.write_scores(tmp_path / f"{name}.txt", Scores.from_ids(*ids, values))
    cohort = [(model, f"k{number}") for model in sorted(set(ids[0])) for number in range(20)]
    formats.write_scores(
        tmp_path / "z.txt",
        Scores.from_ids(*zip(*cohort, strict=True), rng.normal(size=len(cohort))),
    )
    cohort = [(f"k{number}", segment) for segment in sorted(set(ids[1])) for number in range(20)]
    formats.write_scores(
        tmp_path / "t.txt",
        Scores.from_ids(*zip(*cohort, strict=True), rng.normal(size=len(cohort))),
    )
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("det", ["--window", "big", "--sort"]),
        ("roc", ["--sort"]),
        (
            "ece",
            [
                "--sort",
                "--curves",
                "minimum",
                "--width",
                "3.4",
                "--no-notes",
                "--legend",
                "upper right",
            ],
        ),
        ("nece", []),
        ("ape", ["--curves", "actual", "--legend", "lower left"]),
        ("nber", []),
        ("det", ["--hull-only", "--color", "red", "--color", "#00ff00"]),
        ("roc", ["--lowest-fpr", "0.01", "--color", "k"]),
        ("zebra", ["--sort"]),
        ("histogram", ["--bins", "20"]),
        ("reliability", ["-p", "0.1"]),
    ],
)
def test_every_kind_of_plot_is_written(lists, kind, extra):
    systems = [
        "-s",
        lists / "one.txt",
        "-s",
        lists / "two.txt",
        "-k",
        lists / "key.txt",
        "-l",
        "one",
        "-l",
        "the_2nd",
    ]
    outputs = [lists / f"x.{extension}" for extension in ("png", "tex", "pgf")]
    passes(
        "plot",
        kind,
        *systems,
        *extra,
        "--title",
        "A title",
        *[word for one in outputs for word in ("-o", one)],
    )
    starts = [path.read_bytes()[:5] for path in outputs]
    assert starts == [b"\x89PNG\r", b"% Com", b"% A p"]
    tex = outputs[-1].read_text()
    assert r"the\_2nd" in tex
    assert "A title" in tex


def test_options_of_plots_reach_the_picture(lists):
    (lists / "scale.yaml").write_text("low: 0.001\nextreme: .inf\n")
    one = ["-s", lists / "one.txt", "-k", lists / "key.txt", "-o", lists / "x.pgf"]
    passes("plot", "zebra", *one, "--scale", lists / "scale.yaml")
    assert "extreme)" in (lists / "x.pgf").read_text()
    passes("plot", "det", *one, "--hull-only", "--color", "#00ff00")
    assert "Lines: convex hulls" in (lists / "x.pgf").read_text()
    assert "{currentstroke}{rgb}{0.000000,1.000000,0.000000}" in (lists / "x.pgf").read_text()
    passes("plot", "roc", *one, "--lowest-fpr", "0.01")
    assert "}0.01}" in (lists / "x.pgf").read_text()


@pytest.mark.parametrize("kind", ["z", "t", "s", "as"])
def test_scores_are_normalised(lists, kind):
    from evaluation.calibration.cohort_norm import s_norm, t_norm, z_norm

    given, z, t = (formats.read_scores(lists / name) for name in ("one.txt", "z.txt", "t.txt"))
    expected = {
        "z": lambda: z_norm(given, z),
        "t": lambda: t_norm(given, t),
        "s": lambda: s_norm(given, z, t),
        "as": lambda: s_norm(given, z, t, top=7),
    }[kind]()
    cohorts = ["--model-cohort", lists / "z.txt"] if kind != "t" else []
    cohorts += ["--segment-cohort", lists / "t.txt"] if kind != "z" else []
    passes(
        "normalise",
        "-s",
        lists / "one.txt",
        "-m",
        kind,
        *cohorts,
        "--cohort-size",
        7,
        "-o",
        lists / "n.txt",
    )
    assert formats.read_scores(lists / "n.txt").values.tolist() == expected.values.tolist()


def test_a_normalisation_without_its_cohort_is_refused(lists):
    assert "method s needs --segment-cohort" in refused(
        "normalise",
        "-s",
        lists / "one.txt",
        "-m",
        "s",
        "--model-cohort",
        lists / "z.txt",
        "-o",
        lists / "n",
    )


def test_a_calibration_is_trained_saved_and_applied(lists):
    training = ["--train-scores", lists / "one.txt", "--train-key", lists / "key.txt"]
    passes(
        "calibrate",
        "-s",
        lists / "two.txt",
        *training,
        "--save",
        lists / "c.json",
        "-o",
        lists / "a.txt",
    )
    expected = train_affine(*read_split(lists / "one.txt", lists / "key.txt"))
    saved = json.loads((lists / "c.json").read_text())
    assert saved["weights"] == pytest.approx(list(expected.weights))
    values = formats.read_scores(lists / "two.txt").values
    assert formats.read_scores(lists / "a.txt").values == pytest.approx(expected(values))
    run(
        "calibrate",
        "-s",
        lists / "two.txt",
        "--calibration",
        lists / "c.json",
        "-o",
        lists / "b.txt",
    )
    assert (lists / "a.txt").read_text() == (lists / "b.txt").read_text()
    target, nontarget = read_split(lists / "a.txt", lists / "key.txt")
    assert (
        cllr(target, nontarget) < 0.7 < 5 < cllr(*read_split(lists / "two.txt", lists / "key.txt"))
    )
    assert cllr(target, nontarget) - min_cllr(target, nontarget) < 0.1


def test_scores_are_calibrated_on_other_speakers(lists):
    options = ["-k", lists / "key.txt", "--segment-speakers", lists / "utt2spk", "--folds", 5]
    passes("calibrate", "-s", lists / "one.txt", *options, "-o", lists / "a.txt")
    target, nontarget = read_split(lists / "a.txt", lists / "key.txt")
    assert (len(target), len(nontarget)) == (60, 540)
    assert cllr(target, nontarget) < 0.8


def test_systems_are_fused(lists):
    both = ["-s", lists / "one.txt", "-s", lists / "two.txt"]
    saved = ["--save", lists / "f.json"]
    passes("fuse", *both, "--train-key", lists / "key.txt", *saved, "-o", lists / "fused.txt")
    single = [
        min_cllr(*read_split(lists / f"{name}.txt", lists / "key.txt")) for name in ("one", "two")
    ]
    assert cllr(*read_split(lists / "fused.txt", lists / "key.txt")) < min(single)
    run("fuse", *both, "--calibration", lists / "f.json", "-o", lists / "again.txt")
    assert (lists / "again.txt").read_text() == (lists / "fused.txt").read_text()
    training = ["--train-scores", lists / "one.txt", "--train-scores", lists / "two.txt"]
    run("fuse", *both, *training, "--train-key", lists / "key.txt", "-o", lists / "third.txt")
    assert (lists / "third.txt").read_text() == (lists / "fused.txt").read_text()


def test_systems_are_fused_on_other_speakers(lists):
    both = ["-s", lists / "one.txt", "-s", lists / "two.txt"]
    options = [
        "--train-key",
        lists / "key.txt",
        "--segment-speakers",
        lists / "utt2spk",
        "--cross-validate",
        5,
    ]
    passes("fuse", *both, *options, "-o", lists / "fused.txt")
    target, nontarget = read_split(lists / "fused.txt", lists / "key.txt")
    assert (len(target), len(nontarget)) == (60, 540)
    # each trial is calibrated only by those of other speakers, as by the function
    key = formats.read_key(lists / "key.txt")
    rows = np.column_stack(
        [align(formats.read_scores(lists / f"{name}.txt"), key) for name in ("one", "two")]
    )
    speakers = find_speakers(key, segment_speakers=read_speakers(lists / "utt2spk"))
    expected = cross_validate_affine(rows, key.is_target, speakers, folds=5)
    np.testing.assert_allclose(align(formats.read_scores(lists / "fused.txt"), key), expected)
    # a calibration that saw the trials looks at least as good as an honest one
    run("fuse", *both, "--train-key", lists / "key.txt", "-o", lists / "seen.txt")
    assert cllr(target, nontarget) >= cllr(*read_split(lists / "seen.txt", lists / "key.txt"))


def test_folds_are_written_and_the_map_of_all_trials_is_saved(lists):
    """Quality measures of files, vectors and cohorts, as the functions have them; the saved map on other trials."""
    rng = np.random.default_rng(1)
    key = formats.read_key(lists / "key.txt")
    ids = [*key.model_ids, *key.segment_ids]
    seconds = dict(zip(ids, np.exp(rng.normal(size=len(ids))).tolist(), strict=True))
    (lists / "utt2dur").write_text("".join(f"{one} {seconds[one]}\n" for one in ids))
    vectors = Embeddings.from_arrays(rng.normal(size=(len(ids), 4)), ids=ids)
    write_embeddings(lists / "vectors.npz", vectors)
    columns = ["log(min utt2dur)", "segment norm", "min cohort", "max cohort"]
    options = [
        *("--quality", lists / "utt2dur", "--quality-vectors", lists / "vectors.npz"),
        *("--model-cohort", lists / "z.txt", "--segment-cohort", lists / "t.txt"),
        *("--cohort-size", 5, *(word for one in columns for word in ("--quality-columns", one))),
    ]
    both = ["-s", lists / "one.txt", "-s", lists / "two.txt"]
    training = ["--train-key", lists / "key.txt", "--cross-validate", 4, "--speakers-by", "-"]
    saved = ["--save", lists / "f.json", "-o", lists / "fused.txt"]
    assert passes("fuse", *both, *training, *options, *saved).stderr == ""
    systems = {str(path): formats.read_scores(path) for path in both[1::2]}
    cohorts = [formats.read_scores(lists / name) for name in ("z.txt", "t.txt")]
    quality = {
        "utt2dur": seconds,
        "norm": dict(zip(ids, vectors.norms().tolist(), strict=True)),
        "cohort": cohort_means(key, *cohorts, top=5),
    }
    expected = ev.fuse(
        systems, key, speakers="-", folds=4, quality=quality, quality_columns=columns
    )
    found = formats.read_scores(lists / "fused.txt")
    np.testing.assert_allclose(align(found, key), expected.scores.values)
    np.testing.assert_allclose(
        ev.load_calibration(lists / "f.json").affine.weights, expected.affine.weights
    )
    applied = ["--calibration", lists / "f.json", "-o", lists / "again.txt"]
    assert passes("fuse", *both, *applied, *options).stderr == ""
    again = align(formats.read_scores(lists / "again.txt"), key)
    np.testing.assert_allclose(again, expected.apply(systems, quality=quality).values)
    assert "expected cohort, norm, utt2dur for the columns" in refused("fuse", *both, *applied)
    lines = (lists / "utt2dur").read_text().splitlines(keepends=True)
    (lists / "utt2dur").write_text("".join(lines[:-1]))
    message = refused("fuse", *both, *applied, *options)
    assert f"1 of 60 segments without a positive utt2dur: '{ids[-1]}'" in message
    assert "trained on" in refused("fuse", *both, *both, "--calibration", *applied[1:], *options)


def test_a_calibration_is_saved_beside_its_folds(lists):
    line = ["calibrate", "-s", lists / "one.txt", "-k", lists / "key.txt", "--speakers-by", "-"]
    passes(*line, "--save", lists / "c.json", "-o", lists / "llr.txt")
    expected = train_affine(*read_split(lists / "one.txt", lists / "key.txt"))
    assert ev.load_calibration(lists / "c.json").affine == expected
    crossed = formats.read_scores(lists / "llr.txt")
    assert not np.allclose(crossed.values, expected(formats.read_scores(lists / "one.txt").values))


def test_a_system_without_a_trial_is_named(lists):
    rows = (lists / "two.txt").read_text().splitlines(keepends=True)
    (lists / "two.txt").write_text("".join(rows[:-1]))
    both = ["-s", lists / "one.txt", "-s", lists / "two.txt"]
    assert "two.txt: 1 trial of 600 without a score" in refused(
        "fuse", *both, "--train-key", lists / "key.txt", "-o", lists / "fused.txt"
    )
    assert not (lists / "fused.txt").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", "-s", "one.txt", "-o", "x"),
        ("calibrate", "-s", "one.txt", "-o", "x", "--train-scores", "one.txt"),
        ("calibrate", "-s", "one.txt", "-o", "x", "-k", "key.txt", "--quality", "none"),
        ("calibrate", "-s", "one.txt", "-o", "x", "-k", "key.txt", "--model-cohort", "z.txt"),
        ("fuse", "-s", "one.txt", "-o", "x"),
        (
            "fuse",
            "-s",
            "one.txt",
            "-o",
            "x",
            "--train-key",
            "key.txt",
            "--cross-validate",
            "5",
            "--train-scores",
            "one.txt",
        ),
        ("fuse", "-s", "one.txt", "-o", "x", "--calibration", "f.json", "--cross-validate", "5"),
        ("fuse", "-s", "one.txt", "-o", "x", "--train-key", "key.txt", "--cross-validate", "2"),
        (
            "fuse",
            "-s",
            "one.txt",
            "-s",
            "two.txt",
            "--train-scores",
            "one.txt",
            "--train-key",
            "key.txt",
            "-o",
            "x",
        ),
    ],
)
def test_conflicting_options_are_refused(lists, monkeypatch, arguments):
    monkeypatch.chdir(lists)
    refused(*arguments)
    assert not (lists / "x").exists()


@pytest.mark.parametrize(
    "extension", ["csv", "tsv", "npz", "h5", "txt.gz", "csv.gz", "npz.gz", "h5.gz"]
)
def test_all_formats_convert_into_each_other(lists, extension):
    for kind, name in (("scores", "one"), ("key", "key"), ("trials", "key")):
        there, back = lists / f"{name}.{extension}", lists / "back.txt"
        passes("convert", kind, lists / f"{name}.txt", there)
        passes("convert", kind, there, back)
        read = {
            "scores": formats.read_scores,
            "key": formats.read_key,
            "trials": formats.read_trials,
        }[kind]
        assert sorted(read(back).pairs()) == sorted(read(lists / f"{name}.txt").pairs())
    passes("metrics", "-s", lists / f"one.{extension}", "-k", lists / "key.txt", "--json", "-")


def test_the_order_of_columns_can_be_given(lists):
    (lists / "s").write_text("0.5 1 a\n-1 2 b\n")
    passes(
        "convert", "scores", lists / "s", lists / "x.txt", "--scores-columns", "score,segment,model"
    )
    assert (lists / "x.txt").read_text() == "a 1 0.5\nb 2 -1.0\n"


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ("0.5\n2\n\n-1\n", ["--in-order"]),
        ("-0.5\n-2\n1\n", ["--in-order", "--distances"]),
        ("a/1 b/1 0.5\na/1 a/2 2\nb/1 a/2 -1\na/1 a/2 2\n", ["--duplicates", "first"]),
    ],
)
def test_scores_without_ids_and_repeated_pairs_are_joined_in_order(tmp_path, scores, options):
    (tmp_path / "s").write_text(scores)
    (tmp_path / "k").write_text("0 a/1 b/1\n1 a/1 a/2\n0 b/1 a/2\n")
    arguments = [
        "metrics",
        "-s",
        tmp_path / "s",
        "-k",
        tmp_path / "k",
        "--json",
        tmp_path / "j",
        *options,
    ]
    passes(*arguments)
    report = json.loads((tmp_path / "j").read_text())
    assert (report["n_target"], report["n_nontarget"], report["eer"]["rocch"]) == (1, 2, 0)


@pytest.mark.parametrize(
    ("scores", "key", "options", "message"),
    [
        ("1\n0\n0\n", "k", ["--in-order"], "all scores are 0 or 1"),
        ("3\n2\n1\n", "k.h5", ["--in-order"], "does not keep the order"),
        (
            "0.5\n2\n",
            "k",
            ["--in-order"],
            "expected a score for each of 3 trials of the key, got 2",
        ),
        (
            "a/1 b/1 5\na/1 a/2 2\nb/1 a/2 1\n",
            "k",
            ["--bootstrap", "9", "--speakers-by", "_"],
            "2 of 2 segments without a speaker: 'a/2', 'b/1' (no '_' ends their speakers: try /)",
        ),
        ("a/1 b/1 5\na/1 b/1 5\n", "k", [], "; --duplicates first reads only the first line)"),
        (
            "a/1 b/1 5\n",
            "k",
            ["--format", "table"],
            "of a format of yours, got 'table' (what is built in needs no option)",
        ),
        (
            "a/1 b/1 5\n",
            "k",
            ["--metric", "eer"],
            "of a metric of yours, got 'eer' (what is built in needs no option)",
        ),
    ],
)
def test_input_that_would_give_plausible_wrong_numbers_is_refused(
    tmp_path, scores, key, options, message
):
    (tmp_path / "s").write_text(scores)
    (tmp_path / "k").write_text("0 a/1 b/1\n1 a/1 a/2\n0 b/1 a/2\n")
    formats.write_key(tmp_path / "k.h5", formats.read_key(tmp_path / "k"))
    assert message in refused("metrics", "-s", tmp_path / "s", "-k", tmp_path / key, *options)


def test_speakers_are_taken_from_id_prefixes(tmp_path):
    pairs = [
        (f"{a}/{i}", f"{b}/x{j}")
        for a in "abcd"
        for b in "abcd"
        for i in range(2)
        for j in range(2)
    ]
    rng = np.random.default_rng(0)
    lines = {pair: rng.normal() + 2 * (pair[0][0] == pair[1][0]) for pair in pairs}
    (tmp_path / "s").write_text("".join(f"{a} {b} {score}\n" for (a, b), score in lines.items()))
    (tmp_path / "k").write_text("".join(f"{int(a[0] == b[0])} {a} {b}\n" for a, b in pairs))
    speakers = tmp_path / "utt2spk"
    names = sorted({name for pair in pairs for name in pair})
    speakers.write_text("".join(f"{name} {name[0]}\n" for name in names))
    found = []
    for options in (
        ["--speakers-by", "/"],
        ["--model-speakers", speakers, "--segment-speakers", speakers],
    ):
        arguments = [
            "metrics",
            "-s",
            tmp_path / "s",
            "-k",
            tmp_path / "k",
            "--bootstrap",
            20,
            "--json",
            "-",
            *options,
        ]
        found.append(json.loads(run(*arguments).stdout)["intervals"])
    assert found[0] == found[1]
