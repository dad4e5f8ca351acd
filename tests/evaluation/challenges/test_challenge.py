"""The assessment of a whole challenge."""

import csv
import re
import shutil

import numpy as np
import pytest
from command_lines import passes

from evaluation.challenges.team_scores import (
    assess,
    average_rows,
    find_score_lists,
    write_challenge,
)
from evaluation.metrics.detection import eer
from spkbase.errors import DataError

pytestmark = pytest.mark.whole

SETS = [("libri", ""), ("vctk", ""), ("vctk", "_common")]


def lines(rng, distance):
    pairs = [
        (f"s{model}", f"s{speaker}-u{number}")
        for model in range(5)
        for speaker in range(5)
        for number in range(4)
    ]
    same = [segment.startswith(model) for model, segment in pairs]
    values = rng.normal(np.where(same, distance, -distance), 1.5)
    scores = "".join(f"{a} {b} {value:.4f}\n" for (a, b), value in zip(pairs, values, strict=True))
    key = "".join(
        f"{a} {b} {'target' if one else 'nontarget'}\n"
        for (a, b), one in zip(pairs, same, strict=True)
    )
    return scores, key


@pytest.fixture
def tree(tmp_path):
    """Two systems, one of them without the sets of vctk_common."""
    rng = np.random.default_rng(0)
    for corpus, subset in SETS:
        for sex in "fm":
            name = f"{corpus}_dev_trials_{sex}{subset}"
            for team, system, distance in (("A", "primary", 1.0), ("B", "first_try", 0.3)):
                if subset and team == "B":
                    continue
                for enrol, anon in (("", ""), ("", "_anon"), ("_anon", "_anon")):
                    folder = tmp_path / "exp" / team / system / "results-1"
                    path = folder / f"ASV-{corpus}_dev_enrolls{enrol}-{name}{anon}" / "scores"
                    path.parent.mkdir(parents=True)
                    scores, key = lines(rng, distance)
                    path.write_text(scores)
            (tmp_path / "data" / name).mkdir(parents=True)
            (tmp_path / "data" / name / "trials").write_text(key)
    (tmp_path / "exp" / "A" / "primary" / "notes.txt").write_text("not a list of scores")
    return tmp_path


def test_folders_of_the_toolkit_of_2024_and_of_our_evaluations_are_read(tmp_path):
    """Lazy- and semi-informed scores of one pair differ by their folder, attackers by the folder below."""
    rng = np.random.default_rng(1)
    pair = "libri_test_enrolls_x-libri_test_trials_{}_x"
    names = [
        f"asv_anon_x/{pair.format('f')}/scores",
        f"asv_anon_x/{pair.format('mixed')}/campplus/scores",
        f"asv_orig/{pair.format('f')}/scores",
        f"asv_orig/cosine_out/{pair.format('m')}/scores",
        "asv_orig/libri_test_enrolls-libri_test_trials_f/gmm-svm/scores",
        f"asv_anon_x/{pair.format('f')}-draw2/gmm-svm/scores",
    ]
    for name in names:
        path = tmp_path / "mine/exp" / name
        path.parent.mkdir(parents=True)
        scores, key = lines(rng, 0.5)
        path.write_text(scores)
    for sex in ("f", "m", "mixed"):
        (tmp_path / f"lists/libri_test_trials_{sex}").mkdir(parents=True)
        (tmp_path / f"lists/libri_test_trials_{sex}/trials").write_text(key)
    found = find_score_lists(tmp_path / "mine", tmp_path / "lists")
    assert {(one.name, one.sex, one.condition) for one in found} == {
        ("asv_anon_x/scores", "f", "a-a"),
        ("asv_anon_x/campplus", "mixed", "a-a"),
        ("asv_orig/scores", "f", "a-a"),
        ("asv_orig/scores", "m", "a-a"),
        ("asv_orig/gmm-svm", "f", "o-o"),
    }
    arguments = ("--key", tmp_path / "lists", "--output", tmp_path / "out", "-e", "none")
    passes("challenge", tmp_path / "mine/exp", *arguments, "--bootstrap", "0")
    assert "/campplus" in (tmp_path / "out/results.md").read_text()


def test_folder_names_are_parsed_and_figures_equal_those_of_the_scores(tree):
    runs = find_score_lists(tree / "exp", tree / "data")
    assert (
        len({(run.name, run.dataset, run.sex, run.condition) for run in runs})
        == len(runs)
        == 18 + 12
    )
    assert {run.condition for run in runs} == {"o-o", "o-a", "a-a"}
    for run in runs:
        assert run.key.parent.name == f"{run.dataset.replace('_dev', f'_dev_trials_{run.sex}')}"
    one = assess(runs[:1])[0]
    score = {
        tuple(line.split()[:2]): float(line.split()[2])
        for line in runs[0].scores.read_text().splitlines()
    }
    truth = {
        tuple(line.split()[:2]): line.split()[2] == "target"
        for line in runs[0].key.read_text().splitlines()
    }
    target, nontarget = (
        [score[pair] for pair in truth if truth[pair] == which] for which in (True, False)
    )
    assert one.values["eer.rocch"] == eer(target, nontarget)
    assert one.values["eer.kaldi"] == eer(target, nontarget, method="kaldi")


def test_averages_are_weighted_and_need_complete_parts(tree):
    assessed = assess(find_score_lists(tree / "exp", tree / "data"))
    rows = average_rows(assessed)
    assert [(row["System"], row["Task"]) for row in rows] == [
        ("A/primary", task) for task in ("o-o", "o-a", "a-a")
    ]
    weights = {"libri": 0.25, "vctk": 0.2, "vctk_common": 0.05}
    for row in rows:
        part = [
            one
            for one in assessed
            if one.source.name == "A/primary" and one.source.condition == row["Task"]
        ]
        expected = sum(weights[one.source.corpus] * one.values["eer.kaldi"] for one in part)
        assert row["EER (Kaldi) [%]"] == pytest.approx(100 * expected, rel=1e-12)


def test_the_command_writes_tables_and_plots(tree):
    command = [
        "challenge",
        tree / "exp",
        "--key",
        tree / "data",
        "-o",
        tree / "out",
        "--bootstrap",
        20,
        "-e",
        "tex",
    ]
    passes(*command)
    names = {path.name for path in (tree / "out").iterdir()}
    tables = {
        "results.csv",
        "results.md",
        "results.tex",
        "averages.csv",
        "A-primary.md",
        "B-first_try.md",
    }
    assert tables <= names
    plots = names - tables
    assert "ZEBRA-sorted-multiple_conditions_B-first_try.tex" in plots
    assert "ZEBRA-task_wise_vctk_dev_common-o-a-m.tex" in plots
    assert len(plots) == 2 * (2 + 18)
    with (tree / "out" / "results.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    reference = [
        "System",
        "Gender",
        "Dataset",
        "Task",
        "ROCCH-EER [%]",
        "ZEBRA Population [bit]",
        "ZEBRA Individual",
    ]
    assert list(rows[0])[:10] == [*reference, "ZEBRA Category", "Cllr", "min Cllr"]
    assert len(rows) == 30
    for row in rows:
        assert float(row["Cllr low"]) < float(row["Cllr"]) < float(row["Cllr high"])
    tex = (tree / "out" / "results.tex").read_text()
    assert r"libri\_dev & o-o" in tex
    assert tex.count("\\\\\n") == 2 * 31  # two tables: the second has intervals
    assert max(line.count("&") for line in tex.splitlines()) == 7
    names = [f"{row['System']} {row['Gender']} {row['Dataset']} {row['Task']}" for row in rows[:4]]
    assert names == [
        *(f"A/primary f libri_dev {task}" for task in ("o-o", "o-a", "a-a")),
        "A/primary f vctk_dev o-o",
    ]
    low, high = (float(rows[0][f"min Cllr {end}"]) for end in ("low", "high"))
    assert rf"{float(rows[0]['min Cllr']):.2f} [{low:.2f}, {high:.2f}] \\" in tex
    assert (
        "B/first_try"
        not in (tree / "out" / "results.md").read_text().split("## Weighted averages")[1]
    )


def test_a_system_keeps_its_colour_and_marker_in_every_figure(tree):
    """B stands alone in the pictures of the sets that A lacks, in the colour that it has beside A."""
    runs = [
        run
        for run in find_score_lists(tree / "exp", tree / "data")
        if (run.sex, run.condition) == ("f", "o-a")
    ]
    assessed = assess([run for run in runs if (run.name, run.dataset) != ("A/primary", "vctk_dev")])
    write_challenge(assessed, tree / "out", extensions=("tex",))
    beside, alone = (
        (tree / "out" / f"ZEBRA-sorted-task_wise_{corpus}_dev-o-a-f.tex").read_text()
        for corpus in ("libri", "vctk")
    )
    pattern = r"\{currentstroke\}\{rgb\}\{([\d.,]+)\}"
    colours = [set(re.findall(pattern, text)) for text in (beside, alone)]
    assert colours[1] < colours[0]
    assert len(colours[0] - colours[1]) == 1
    titled = tree / "out" / "ZEBRA-multiple_conditions_A-primary.tex"
    assert "A: primary}" in titled.read_text()
    assert r"libri\_dev-o-a-f}" in beside


def test_speakers_are_read_from_an_utt2spk_in_the_folder_of_the_key(tree):
    """Segments of speakers that are not enrolled: each counted as one, with a warning a list."""
    for path in (tree / "data").glob("*/trials"):
        kept = [line for line in path.read_text().splitlines() if not line.startswith("s4")]
        path.write_text("\n".join(kept) + "\n")
    for path in (tree / "exp").glob("*/*/*/*/scores"):
        path.write_text(
            "".join(
                line + "\n" for line in path.read_text().splitlines() if not line.startswith("s4")
            )
        )
    for path in (tree / "exp" / "A").glob("*/*/ASV-vctk*"):
        shutil.rmtree(path)
    options = ("-k", tree / "data", "-o", tree / "out", "--export", "none", "--bootstrap", 20)
    command = ("challenge", tree / "exp", *options)
    told = passes(*command).stderr
    assert told.startswith("Warning: 18 of 18 lists have no utt2spk beside their key")
    assert told.count("\n") == 1
    before = (tree / "out" / "results.csv").read_text()
    for path in (tree / "data").glob("*"):
        segments = {line.split()[1] for line in (path / "trials").read_text().splitlines()}
        (path / "utt2spk").write_text(
            "".join(f"{name} {name.partition('-')[0]}\n" for name in sorted(segments))
        )
    assert passes(*command).stderr == ""
    assert (tree / "out" / "results.csv").read_text() != before


def test_names_are_escaped(tree):
    name = "<img src=x onerror=alert(1)>"
    (tree / "exp" / "A").rename(tree / "exp" / name)
    write_challenge(
        assess(find_score_lists(tree / "exp", tree / "data")), tree / "out", extensions=()
    )
    for path in (tree / "out").glob("*.md"):
        assert not re.search(r"(?<!\\)<", path.read_text())


def test_every_problem_is_reported_at_once(tree):
    folder = tree / "exp" / "A" / "primary" / "results-1"
    for name in (
        "ASV-libri_dev_speakers-libri_dev_trials_f",
        "ASV-libri_test_enrolls-libri_test_trials_f",
    ):
        (folder / name).mkdir()
        (folder / name / "scores").write_text("a s 1\n")
    with pytest.raises(DataError, match="2 problems") as caught:
        find_score_lists(tree / "exp", tree / "data")
    assert "got 'libri_dev_speakers'" in str(caught.value)
    assert "looked for libri_test_trials_f/trials" in str(caught.value)
    for name in (
        "ASV-libri_dev_speakers-libri_dev_trials_f",
        "ASV-libri_test_enrolls-libri_test_trials_f",
    ):
        (folder / name / "scores").unlink()
    again = (
        tree / "exp" / "A" / "primary" / "results-2" / "ASV-libri_dev_enrolls-libri_dev_trials_f"
    )
    again.mkdir(parents=True)
    (again / "scores").write_text("a s 1\n")
    with pytest.raises(DataError, match="of the same as"):
        find_score_lists(tree / "exp", tree / "data")
    with pytest.raises(DataError, match="expected a folder"):
        find_score_lists(tree / "none", tree)
    with pytest.raises(DataError, match="no list of scores found"):
        find_score_lists(tree / "data", tree)


def test_bad_scores_are_named_with_file_and_line(tree):
    runs = find_score_lists(tree / "exp", tree / "data")
    runs[0].scores.write_text(runs[0].scores.read_text().replace("\n", " nan\n", 1))
    runs[1].scores.write_text("".join(runs[1].scores.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(DataError, match="2 problems") as caught:
        assess(runs[:2])
    assert f"{runs[0].scores}:" in str(caught.value)
    assert f"{runs[1].key}:100: " in str(caught.value)
