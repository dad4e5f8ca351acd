"""The command spkver-eval."""

import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from command_lines import passes, refused, run
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from evaluation import formats
from evaluation.trials import Key, Scores
from spkbase.showing import latex_table

pytestmark = pytest.mark.whole


@pytest.fixture
def lists(tmp_path, data):
    """A folder with the golden scores and their key, in both formats."""
    with np.load(data / "det.npz") as golden:
        target, nontarget = golden["target"], golden["nontarget"]
    names = [f"s{number:04d}" for number in range(len(target) + len(nontarget))]
    models = ["m"] * len(names)
    scores = Scores.from_ids(models, names, np.concatenate([target, nontarget]))
    key = Key.from_ids(
        models[::-1], names[::-1], [number < len(target) for number in range(len(names))][::-1]
    )
    for extension in ("txt", "h5"):
        formats.write_scores(tmp_path / f"scores.{extension}", scores)
        formats.write_key(tmp_path / f"key.{extension}", key)
    return tmp_path


@pytest.mark.parametrize("extension", ["txt", "h5"])
def test_metrics_are_printed_as_json(lists, extension):
    result = passes(
        "metrics",
        "-s",
        lists / f"scores.{extension}",
        "-k",
        lists / f"key.{extension}",
        "--json",
        "-",
    )
    found = json.loads(result.stdout)
    assert set(found) >= {
        "convention",
        "eer",
        "threshold_at_eer",
        "cllr",
        "min_cllr",
        "zebra",
        "d_sys",
        "tpr_at_fpr",
    }
    assert found["convention"] == "default"
    assert (found["n_target"], found["n_nontarget"]) == (108, 2056)
    assert found["eer"]["rocch"] == pytest.approx(0.20806610754810065, abs=1e-12)
    assert (
        list(found["min_dcf"])
        == list(found["min_dcf_unnormalised"])
        == ["0.001", "0.01", "0.05", "0.5"]
    )
    assert found["min_dcf_unnormalised"]["0.5"] == pytest.approx(0.2076127684104338, abs=1e-12)
    assert found["min_dcf"]["0.5"] == pytest.approx(0.4152255368208676, abs=1e-12)
    assert found["prbep"] == pytest.approx(61)


def test_metrics_are_printed_as_a_table_and_written_to_a_file(lists):
    path = lists / "out" / "metrics.json"
    result = passes(
        "metrics",
        "-s",
        lists / "scores.h5",
        "-k",
        lists / "key.txt",
        "-p",
        "0.10",
        "-p",
        ".5",
        "--json",
        path,
        "--all",
    )
    assert "20.807 %" in result.stdout
    assert "minDCF at prior 0.10 (not normalised)" in result.stdout
    assert list(json.loads(path.read_text())["min_dcf"]) == ["0.10", ".5"]


def test_one_system_shows_the_rows_that_papers_report(lists):
    """All by --all; costs at priors that were asked for, and user-supplied metrics, are never hidden."""
    (lists / "mine.py").write_text(
        "from evaluation.metrics import Metric\nmine = Metric('mine', lambda scores: scores.n_target, 'my number')\n"
    )
    given = ("metrics", "-s", lists / "scores.h5", "-k", lists / "key.h5")
    usual, every, asked = (
        passes(*given, *more).stdout.splitlines()
        for more in (
            (),
            ("--all",),
            ("-p", "0.5", "-p", "0.2", "--metric", f"{lists / 'mine.py'}:mine"),
        )
    )
    titles = [re.split("  +", line)[0] for line in usual]
    assert titles[5:13] == [
        *(
            "EER (ROCCH)",
            "Cllr (bit)",
            "minCllr (bit)",
            "minDCF at prior 0.01",
            "minDCF at prior 0.05",
        ),
        *("ZEBRA population (bit)", "D_sys linkability", "D_sys by isotonic regression"),
    ]
    rows = [line for line in every[2:] if "  " in line]
    assert f"more: {len(rows) - 11} metrics by --all" in usual
    assert not any(line.startswith(("more:", "tpr_at_fpr")) for line in [*usual[:-1], *every[:-4]])
    shown = [re.split("  +", line)[0] for line in asked]
    assert {"minDCF at prior 0.5", "minDCF at prior 0.2", "my number"} <= set(shown)


def test_several_systems_show_the_default_table(tmp_path):
    """Targets in the last bin alone: the histogram's D_sys says half; differences below 0 are written as others are."""
    ids = [f"m{model} s{segment}" for model in range(20) for segment in range(20)]
    truths = [number % 21 == 0 for number in range(400)]
    values = [10 + number / 4000 if truth else number % 7 for number, truth in enumerate(truths)]
    for name, scores in (("perfect", values), ("poor", np.where(truths, 5.5, values))):
        rows = [f"{pair} {score}\n" for pair, score in zip(ids, scores, strict=True)]
        write(tmp_path / f"{name}.txt", "".join(rows))
    rows = [
        f"{pair} {'target' if truth else 'nontarget'}\n"
        for pair, truth in zip(ids, truths, strict=True)
    ]
    key = write(tmp_path / "key.txt", "".join(rows))
    both = ["-s", tmp_path / "perfect.txt", "-s", tmp_path / "poor.txt", "-k", key]
    passes(
        "metrics",
        *both,
        "--bootstrap",
        "10",
        "--bootstrap-by",
        "id",
        "--markdown",
        tmp_path / "t.md",
    )
    heading, _, perfect, _, *rest = (tmp_path / "t.md").read_text().splitlines()
    assert r"D\_sys by isotonic regression" in heading
    assert "linkability" not in heading
    assert perfect.split("|")[-2].strip() == "1.000"
    assert re.search(r"\| -0\.\d{3} \[-?0\.\d{3}, ", rest[-1])
    assert "e-0" not in "".join(rest)
    chosen = run("metrics", *both, "--columns", "d_sys")
    assert "perfect: misleads: far below d_sys_pav" in chosen.stdout


def test_each_of_several_systems_needs_a_label(lists):
    both = [
        "-s",
        lists / "scores.h5",
        "-s",
        lists / "scores.txt",
        "-k",
        lists / "key.h5",
        "-l",
        "one",
    ]
    assert "expected a key (or one for all) and a label for each file of scores" in refused(
        "plot", "det", *both, "-o", lists / "det.png"
    )


def write(path, content):
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("scores", "key", "words"),
    [
        (
            "a s 1\n",
            "a s target\nb s nontarget\n",
            ["s.txt", "k.txt", "1 trial of 2 without a score: 'b s'", "--missing"],
        ),
        ("a s 1\nc s 2\n", "a s target\nb s nontarget\n", ["the model 'c'", "--missing drop"]),
    ],
)
def test_bad_input_gives_one_message_and_status_2(tmp_path, scores, key, words):
    paths = write(tmp_path / "s.txt", scores), write(tmp_path / "k.txt", key)
    result = refused("metrics", "-s", paths[0], "-k", paths[1], "--json", "-")
    assert result.startswith("Error: ")
    assert result.count("\n") == 1
    for word in words:
        assert word in result


def test_trials_are_dropped_only_on_request_and_counted(tmp_path):
    scores = write(tmp_path / "s.txt", "a s 1.5\nb s 0\nC s 0\n")
    key = write(tmp_path / "k.txt", "a s target\nb s nontarget\nc s nontarget\n")
    result = passes("metrics", "-s", scores, "-k", key, "--missing", "drop", "--json", "-")
    assert json.loads(result.stdout)["n_nontarget"] == 1
    assert "dropped 1 score with an id that the key does not know" in result.stderr
    assert "dropped 1 trial of 3 without a score: 'c s'" in result.stderr


@pytest.mark.parametrize("prior", ["0", "1", "2", "x", "nan"])
def test_a_prior_out_of_range_is_refused(lists, prior):
    assert f"between 0 and 1, got '{prior}'" in refused(
        "metrics", "-s", lists / "scores.h5", "-k", lists / "key.h5", "-p", prior
    )


def test_narrow_tables_fit_one_column_of_a_paper():
    """By the widths of Computer Modern, 9 pt and 7 pt for small type, with 3 pt at each side of a cell."""
    name = "svm-gmm-nap minus svm-gmm"
    row = {
        "EER (ROCCH) [%]": "-11.12 [-17.53, -14.71], p < 0.001",
        "minDCF at prior 0.01": "-0.611 [-0.999, -0.490]",
    }
    tex = latex_table(
        [{"system": name} | row | {"minCllr (bit)": "0.265 [-0.409, 0.121], p = 0.011"}],
        caption="",
        label="",
    )
    letters = FontProperties(fname=str(Path(matplotlib.get_data_path()) / "fonts/ttf/cmr10.ttf"))
    widest = {}
    for line in tex.splitlines():
        for place, cell in enumerate(
            line.removesuffix(r" \\").split(" & ") if " & " in line else []
        ):
            text = (
                re.sub(r"\{\\scriptsize (.*)\}", r"\1", cell)
                .replace("$-$", "+")
                .replace(r"\%", "%")
                .strip("$")
            )
            size = 7 if "scriptsize" in cell else 9
            width = (
                TextPath((0, 0), text, size=size, prop=letters).get_extents().width if text else 0
            )
            widest[place] = max(widest.get(place, 0), width)
    assert len(widest) == 4
    assert r"{\scriptsize minus svm-gmm} & {\scriptsize [$-$17.53, $-$14.71]} & " in tex
    assert " &  & {\\scriptsize $p = 0.011$} \\\\" in tex
    assert sum(widest.values()) + 6 * len(widest) < 3.4 * 72.27


def test_the_best_value_is_bold_if_significant(tmp_path):
    """Two systems that differ, and a third that equals the first but for noise."""
    rng = np.random.default_rng(0)
    pairs = [
        (f"m{model}", f"m{tested}/{take}")
        for model in range(20)
        for tested in range(20)
        for take in range(2)
    ]
    is_target = np.array([model == segment.partition("/")[0] for model, segment in pairs])
    formats.write_key(tmp_path / "key", Key.from_ids(*zip(*pairs, strict=True), is_target))
    noise = rng.normal(size=len(pairs))
    for name, gap in (("poor", 1.0), ("good", 4.0), ("same", 1.0)):
        values = (
            gap * is_target + noise + (0.05 * rng.normal(size=len(pairs)) if name == "same" else 0)
        )
        formats.write_scores(tmp_path / name, Scores.from_ids(*zip(*pairs, strict=True), values))
    given = ["metrics", "-k", tmp_path / "key", "--speakers-by", "/", "--bootstrap", 100]
    given += ["--columns", "eer,tpr_at_fpr.0.01", "--latex", tmp_path / "t.tex"]
    for others, bold in ((["good"], 2), (["same"], 0)):
        files = [word for name in ("poor", *others) for word in ("-s", tmp_path / name)]
        passes(*given, *files)
        rows = [
            line for line in (tmp_path / "t.tex").read_text().splitlines() if r"\textbf" in line
        ]
        assert "".join(rows).count(r"\textbf") == bold  # low errors, high true accepts
        assert all(line.startswith("good & ") for line in rows)
        assert ("Bold: best" in (tmp_path / "t.tex").read_text()) == bool(bold)
    passes(*given, *(word for name in ("good", "poor", "same") for word in ("-s", tmp_path / name)))
    # the reference, from which all others differ
    assert (tmp_path / "t.tex").read_text().count(r"\textbf") == 2


@pytest.mark.parametrize("spelling", ["{}/{}", "{}-{}", "{}_{}.flac"])
def test_ids_of_other_toolkits_match_in_every_command(tmp_path, spelling):
    rng = np.random.default_rng(3)
    ids = [(f"id{speaker}", f"x{take}") for speaker in range(8) for take in range(3)]
    pairs = [(model, tested) for model in ids[::3] for tested in ids if model != tested]
    is_target = np.array([model[0] == tested[0] for model, tested in pairs])
    rows = [
        f"{int(truth)} {'/'.join(a)}.wav {'/'.join(b)}.wav\n"
        for (a, b), truth in zip(pairs, is_target, strict=True)
    ]
    write(tmp_path / "key", "".join(rows))
    for name, own in (("here", "{}/{}.wav"), ("there", spelling)):
        values = rng.normal(2.0 * is_target)
        rows = [
            f"{own.format(*a)} {own.format(*b)} {value}\n"
            for (a, b), value in zip(pairs, values, strict=True)
        ]
        write(tmp_path / name, "".join(rows))
    one = ["-s", tmp_path / "there", "-k", tmp_path / "key"]
    both = ["-s", tmp_path / "here", *one]
    said = refused("metrics", *one)
    assert "the key has 'id0/x0.wav', which is another spelling" in said
    assert "--match-ids loose" in said
    loose = ("--match-ids", "loose")
    for words in (
        ["metrics", *both, "--speakers-by", "/", "--bootstrap", 10],
        ["zebra", *both],
        ["plot", "roc", *both, "-o", tmp_path / "roc.tex"],
        ["linkability", *one, "--bootstrap", 0],
        ["fuse", *both[:4], "--train-key", tmp_path / "key", "-o", tmp_path / "fused"],
        ["calibrate", *one, "--folds", 3, "--ridge", 1, "-o", tmp_path / "calibrated"],
        [
            "convert",
            "scores",
            tmp_path / "there",
            tmp_path / "c",
            "--to",
            "wespeaker",
            "-k",
            tmp_path / "key",
        ],
    ):
        passes(*words, *loose)
    assert (tmp_path / "c").read_text().startswith("id0/x0.wav id0/x1.wav ")
    assert (tmp_path / "calibrated").read_text().startswith("id0/x0.wav ")


def test_a_wrong_separator_is_reported_with_the_right_one(tmp_path):
    rows = [(f"id{a}-x", f"id{b}-y", a == b) for a in range(4) for b in range(4)]
    write(tmp_path / "s", "".join(f"{a} {b} {2.0 * same}\n" for a, b, same in rows))
    write(
        tmp_path / "k", "".join(f"{a} {b} {['nontarget', 'target'][same]}\n" for a, b, same in rows)
    )
    said = refused("metrics", "-s", tmp_path / "s", "-k", tmp_path / "k", "--speakers-by", "/")
    assert "4 of 4 segments without a speaker: 'id0-y', 'id1-y', 'id2-y', " in said
    assert "(no '/' ends their speakers: try -)" in said
