"""What would be a wrong number without a word is refused or said: each way that one was found, by its command."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.embeddings import Embeddings, write_embeddings
from evaluation.formats import read_key, read_scores, write_key, write_scores
from evaluation.trials import Key, Scores, split_scores
from spkbase.console import OUTPUTS
from spkver.cli import main as spkver_main
from spkver.evaluation_cli import main

pytestmark = pytest.mark.whole

N_SPEAKERS, N_MODELS, N_SEGMENTS = 8, 3, 2


@pytest.fixture
def files(tmp_path):
    """Three models of each speaker, as in RSR2015: m1_1, m1_2, m1_3 and segments m1/a ... of each model's sentence."""
    rng = np.random.default_rng(1)
    own = 2 * rng.standard_normal(N_SPEAKERS)
    rows = []
    for speaker in range(N_SPEAKERS):
        for other in range(N_SPEAKERS):
            for sentence in range(N_MODELS):
                for number in range(N_SEGMENTS):
                    score = (
                        (3.0 if speaker == other else 0.0) + own[speaker] + rng.standard_normal()
                    )
                    rows.append(
                        (
                            f"m{speaker}_{sentence}",
                            f"m{other}/{sentence}{number}",
                            score,
                            speaker == other,
                        )
                    )
    models, segments, values, target = map(list, zip(*rows, strict=True))
    scores = Scores.from_ids(models, segments, values)
    key = Key.from_ids(models, segments, is_target=target)
    for name in ("scores.txt", "scores.csv", "scores.npz", "scores.h5", "scores.txt.gz"):
        write_scores(tmp_path / name, scores)
    for name in ("key.txt", "key.csv", "key.npz", "key.h5", "key.txt.gz"):
        write_key(tmp_path / name, key)
    (tmp_path / "utt2spk").write_text(
        "".join(f"{name} {name.partition('/')[0]}\n" for name in sorted(set(segments)))
    )
    (tmp_path / "model2spk").write_text(
        "".join(f"{name} {name.partition('_')[0]}\n" for name in sorted(set(models)))
    )
    (tmp_path / "sex").write_text(
        "id sex\n" + "".join(f"m{number} {'fm'[number % 2]}\n" for number in range(8))
    )
    return tmp_path


def paths(files):
    return ["-s", files / "scores.txt", "-k", files / "key.txt"]


# --- intervals over models -------------------------------------------------------------------------------------------


def metrics(files, *options):
    return json.loads(
        passes("metrics", *paths(files), "--jobs", "1", "--json", "-", *options).stdout
    )


def test_resampling_without_speakers_is_refused(files):
    message = refused("metrics", *paths(files), "--bootstrap", "20")
    assert "24 of 24 models have ids that begin alike, such as 'm0_0', 'm0_1', 'm0_2'" in message
    for remedy in ("--model-speakers", "--bootstrap-by id", "--bootstrap-by trial"):
        assert remedy in message


@pytest.mark.parametrize("maps", [["model"], ["segment"], ["model", "segment"]])
def test_a_speaker_map_gives_the_number_of_speakers(files, maps):
    names = {"model": "model2spk", "segment": "utt2spk"}
    options = [part for side in maps for part in (f"--{side}-speakers", files / names[side])]
    notes = metrics(files, "--bootstrap", "20", *options)["notes"]
    assert f"resamples of {N_SPEAKERS} speakers" in notes["intervals"]


def test_resampling_models_on_request_is_noted(files):
    ids = metrics(files, "--bootstrap", "20", "--bootstrap-by", "id")["notes"]["intervals"]
    assert "ids, each counted as a speaker" in ids
    trials = metrics(files, "--bootstrap", "20", "--bootstrap-by", "trial")["notes"]["intervals"]
    assert "resamples of trials" in trials
    assert "far too narrow" in trials


def test_linkability_draws_speakers(files):
    found = passes("linkability", *paths(files))
    assert "no intervals: 24 of 24 models have ids that begin alike" in found.stderr
    assert "48 trials of 24 models" in found.stdout
    by_model = json.loads(
        passes("linkability", *paths(files), "--bootstrap-by", "id", "--json", "-").stdout
    )
    assert by_model["n_speakers"] == 24
    for option, name in (("--model-speakers", "model2spk"), ("--segment-speakers", "utt2spk")):
        found = json.loads(
            passes("linkability", *paths(files), option, files / name, "--json", "-").stdout
        )
        assert found["n_speakers"] == N_SPEAKERS
        curves = [report["utterances"]["1"] for report in (found, by_model)]
        assert curves[0]["linkability"] == pytest.approx(curves[1]["linkability"], abs=1e-12)
        widths = [np.subtract(curve["high"], curve["low"]) for curve in curves]
        assert (widths[0] >= widths[1]).all()
        assert widths[0][0] > widths[1][0]


def test_a_gallery_of_speakers_takes_the_best_model_of_each(tmp_path):
    """Two models of anna, two of bert; the segment of anna is owned by her better one, and bert beats her."""
    models, scores = ["a1", "a2", "b1", "b2", "c1"], [1.0, 2.0, 3.0, -1.0, 0.0]
    target = [True, True, False, False, False]
    write_key(tmp_path / "key.txt", Key.from_ids(models, ["s"] * 5, is_target=target))
    write_scores(tmp_path / "scores.txt", Scores.from_ids(models, ["s"] * 5, scores))
    (tmp_path / "map").write_text("a1 anna\na2 anna\nb1 bert\nb2 bert\nc1 carl\n")
    options = (
        "--model-speakers",
        tmp_path / "map",
        "--bootstrap",
        "0",
        "--sizes",
        "3",
        "--json",
        "-",
    )
    found = json.loads(passes("linkability", *paths(tmp_path), *options).stdout)
    assert (found["n_enroll"], found["n_trial"], found["n_speakers"]) == (3, 1, 1)
    assert found["utterances"]["1"]["linkability"] == [0.0]  # bert's score 3 beats anna's score 2
    assert "5 trials of models are 3 of speakers" in " ".join(found["utterances"]["1"]["notes"])


def test_folds_over_models_are_reported(files):
    command = ("calibrate", *paths(files), "-o", files / "llr.txt", "--ridge", "0.1")
    told = passes(*command).stderr
    assert "folds may split a speaker's trials" in told
    assert "--model-speakers FILE, or --speakers-by SIGN" in told
    assert passes(*command, "--model-speakers", files / "model2spk").stderr == ""


# --- reversed scores -------------------------------------------------------------------------------------------------


@pytest.fixture
def distances(files):
    scores = read_scores(files / "scores.txt")
    write_scores(
        files / "scores.txt", Scores.from_ids(*zip(*scores.pairs(), strict=True), 5 - scores.values)
    )
    return files


@pytest.mark.parametrize(
    "command", [["metrics"], ["zebra"], ["linkability", "--bootstrap-by", "id"]]
)
def test_reversed_scores_are_reported(distances, command):
    found = passes(*command, *paths(distances))
    assert "REVERSED? target trials score below nontarget ones" in found.stderr
    assert "--distances" in found.stderr
    assert "REVERSED" not in passes(*command, *paths(distances), "--distances").stderr


def test_reversed_scores_are_noted_in_json_and_plots_warn(distances):
    assert "REVERSED?" in metrics(distances)["notes"]["scores"]
    zebra = json.loads(passes("zebra", *paths(distances), "--json", "-").stdout)
    assert "REVERSED?" in zebra["notes"]["scores"]
    ranks = json.loads(
        passes("linkability", *paths(distances), "--bootstrap-by", "id", "--json", "-").stdout
    )
    assert "REVERSED?" in " ".join(ranks["utterances"]["1"]["notes"])
    for kind in ("det", "roc", "histogram", "zebra"):
        assert (
            "REVERSED?" in passes("plot", kind, *paths(distances), "-o", distances / "x.tex").stderr
        )
        assert (
            "REVERSED?"
            not in passes(
                "plot", kind, *paths(distances), "-o", distances / "x.tex", "--distances"
            ).stderr
        )


def test_distances_equal_negated_scores(distances):
    turned = metrics(distances, "--distances")
    scores = read_scores(distances / "scores.txt")
    write_scores(
        distances / "scores.txt",
        Scores.from_ids(*zip(*scores.pairs(), strict=True), -scores.values),
    )
    assert turned == metrics(distances)


# --- options given twice, several systems ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["zebra", "-s", "a", "-k", "c", "--scale", "d", "--scale", "e"],
        ["metrics", "-s", "a", "-k", "b", "--seed", "1", "--seed", "2"],
        ["linkability", "-s", "a", "-k", "b", "-k", "c"],
        ["plot", "det", "-s", "a", "-k", "b", "-o", "c.png", "--title", "x", "--title", "y"],
        ["calibrate", "-s", "a", "-o", "b", "-o", "c", "-k", "d"],
        ["page", "results.json", "-o", "x", "--output", "y"],
    ],
)
def test_single_valued_options_refuse_a_second_value(arguments):
    assert "is given more than once; it takes one value" in refused(*arguments)


@pytest.fixture
def two(files):
    scores = read_scores(files / "scores.txt")
    noise = np.random.default_rng(5).standard_normal(len(scores))
    write_scores(
        files / "other.txt",
        Scores.from_ids(*zip(*scores.pairs(), strict=True), scores.values + 2 * noise),
    )
    return files


def test_several_systems_share_one_table(two):
    both = ("metrics", "-s", two / "scores.txt", "-s", two / "other.txt", "-k", two / "key.txt")
    shown = passes(*both).stdout
    assert [line.split()[0] for line in shown.splitlines()[2:4]] == ["scores", "other"]
    found = json.loads(passes(*both, "--json", "-").stdout)
    for name in ("scores", "other"):
        alone = passes(
            "metrics", "-s", two / f"{name}.txt", "-k", two / "key.txt", "--json", "-"
        ).stdout
        assert found["systems"][name] == json.loads(alone)
    assert found["reference"] == "scores"
    assert found["differences"] == {}


def test_differences_are_paired(two):
    options = (
        "--bootstrap",
        "50",
        "--model-speakers",
        two / "model2spk",
        "--jobs",
        "1",
        "--json",
        "-",
    )
    both = (
        "metrics",
        "-s",
        two / "scores.txt",
        "-s",
        two / "other.txt",
        "-k",
        two / "key.txt",
        "-l",
        "A",
        "-l",
        "B",
    )
    found = json.loads(passes(*both, *options, "--reference", "B").stdout)
    assert list(found["differences"]) == ["A"]
    difference = found["differences"]["A"]["eer.rocch"]
    rates = {name: found["systems"][name]["eer"]["rocch"] for name in "AB"}
    assert difference["value"] == pytest.approx(rates["A"] - rates["B"])
    assert difference["interval"][0] < difference["value"] < difference["interval"][1]
    assert "the reference 'C' is not one of the systems A, B" in refused(*both, "--reference", "C")


def test_thresholds_of_a_development_list_are_applied(two):
    """Misses and false alarms at the thresholds of a development list, by counting; with intervals."""
    given = ("metrics", "-s", two / "scores.txt", "-k", two / "key.txt", "-p", "0.2")
    options = (
        "--bootstrap",
        "20",
        "--model-speakers",
        two / "model2spk",
        "--jobs",
        "1",
        "--json",
        "-",
    )
    development = (two / "other.txt", two / "key.txt")
    found = json.loads(passes(*given, "--threshold-from", *development, *options).stdout)
    sides = split_scores(read_scores(two / "scores.txt"), read_key(two / "key.txt"))
    other = split_scores(read_scores(two / "other.txt"), read_key(two / "key.txt"))

    def cost(threshold):
        return 0.2 * float(np.mean(other[0] < threshold)) + 0.8 * float(
            np.mean(other[1] >= threshold)
        )

    of_eer = json.loads(
        passes("metrics", "-s", two / "other.txt", "-k", two / "key.txt", "--json", "-").stdout
    )
    thresholds = {"eer": of_eer["threshold_at_eer"], "0.2": min(np.concatenate(other), key=cost)}
    for point, threshold in thresholds.items():
        rates = {"miss_rate_at": sides[0] < threshold, "false_alarm_rate_at": sides[1] >= threshold}
        for name, errors in rates.items():
            assert found[name][point] == {
                "value": pytest.approx(np.mean(errors)),
                "threshold": threshold,
            }
            low, high = found["intervals"][f"{name}.{point}"]
            assert low < np.mean(errors) < high
    assert f"accepted at {thresholds['eer']:.6g} and above" in found["notes"]["miss_rate_at.eer"]
    assert "chose the threshold" not in passes(*given, "--threshold-from", *development).stderr
    own = passes(*given, "--threshold-from", two / "scores.txt", two / "key.txt").stderr
    assert "scores chose the threshold too" in own
    message = refused(*given, "-s", two / "other.txt", "--threshold-from", *development)
    assert "--threshold-from takes one system" in message


def test_tables_are_written_for_papers(two):
    both = (
        "metrics",
        "-s",
        two / "scores.txt",
        "-s",
        two / "other.txt",
        "-k",
        two / "key.txt",
        "-l",
        "A_1",
        "-l",
        "B",
    )
    papers = ("--latex", two / "t.tex", "--markdown", two / "t.md", "--columns", "eer.rocch,cllr")
    passes(*both, *papers)
    tex = (two / "t.tex").read_text()
    for part in (
        r"\toprule",
        r"\caption{Metrics of the systems.}",
        r"\label{tab:metrics}",
        r"A\_1 & ",
        r"system & EER & Cllr \\",
        r" & {\scriptsize (ROCCH)} & {\scriptsize (bit)} \\",
    ):
        assert part in tex
    assert tex.count(r"\begin{tabular}") == 1
    passes(
        *both,
        "--reference",
        "B",
        "--latex",
        two / "d.tex",
        "--bootstrap",
        "20",
        "--bootstrap-by",
        "trial",
    )
    tex = (two / "d.tex").read_text()
    assert tex.count(r"\begin{tabular}{lrrr}") == 2
    assert (
        r"\caption{Differences from B. In brackets: 95 \% confidence intervals by 20 resamples of trials"
        in tex
    )
    rows = [line for line in tex.splitlines() if line.endswith(r" \\")]
    assert re.search(r"\$p (= 0\.\d{3}|< 0\.001)\$", rows[-1])
    assert "$-$" in tex
    assert not re.search(r"(?<!\$)-\d", " & ".join(rows)), "a minus is one only in mathematics"
    markdown = (two / "t.md").read_text().splitlines()
    assert markdown[0].split("|")[1:4] == [" system ", " EER (ROCCH) [%] ", " Cllr (bit) "]
    assert "no metric 'eer.x'; the metrics are: eer.rocch" in refused(
        *both, "--columns", "eer.x", "--latex", two / "y.tex"
    )


def test_systems_with_equal_names_are_distinguished(two):
    for folder in ("a", "b"):
        (two / folder).mkdir()
        (two / folder / "scores").write_bytes((two / "scores.txt").read_bytes())
    both = ("-s", two / "a/scores", "-s", two / "b/scores", "-k", two / "key.txt")
    assert list(json.loads(passes("metrics", *both, "--json", "-").stdout)["systems"]) == [
        "a/scores",
        "b/scores",
    ]
    assert "two systems are called 'x'" in refused("metrics", *both, "-l", "x", "-l", "x")


# --- systems that know the answers -----------------------------------------------------------------------------------


def test_a_fusion_matches_weights_to_systems_in_any_order(two):
    """Weights belong to systems, not to places: in another order an EER of 2 % became one of 49 %."""
    both, other = (
        ["-s", two / "scores.txt", "-s", two / "other.txt"],
        ["-s", two / "other.txt", "-s", two / "scores.txt"],
    )
    passes(
        "fuse",
        *both,
        "--train-key",
        two / "key.txt",
        "--save",
        two / "f.json",
        "-o",
        two / "right.txt",
    )
    expected = read_scores(two / "right.txt").values
    assert (
        passes("fuse", *both, "--calibration", two / "f.json", "-o", two / "again.txt").stderr == ""
    )
    turned = passes("fuse", *other, "--calibration", two / "f.json", "-o", two / "turned.txt")
    assert "the systems are taken in the order of" in turned.stderr
    for name in ("again", "turned"):
        assert read_scores(two / f"{name}.txt").values.tolist() == expected.tolist()
    (two / "third.txt").write_bytes((two / "other.txt").read_bytes())
    (two / "fourth.txt").write_bytes((two / "scores.txt").read_bytes())
    applied = ("--calibration", two / "f.json", "-o", two / "new.txt")
    message = refused("fuse", "-s", two / "third.txt", "-s", two / "scores.txt", *applied)
    assert "the fusion was trained on scores, other, and is given third, scores" in message
    renamed = passes("fuse", "-s", two / "fourth.txt", "-s", two / "third.txt", *applied)
    assert "and is given fourth, third (they are taken in this order)" in renamed.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "calibrate -s scores.txt --train-scores scores.txt --train-key key.txt",
            "384 of 384 trials are training trials too",
        ),
        (
            "calibrate -s scores.txt --train-scores other.txt --train-key key.txt",
            "384 of 384 trials are training trials too",
        ),
        (
            "fuse -s scores.txt -s other.txt --train-key key.txt",
            "384 of 384 trials are training trials too",
        ),
        (
            "fuse -s scores.txt --train-scores other.txt --train-key key.txt",
            "384 of 384 trials are training trials too",
        ),
        (
            "normalise -s scores.txt -m z --model-cohort scores.txt",
            "48 of 48 segments of the cohort are in the trials too",
        ),
        (
            "normalise -s scores.txt -m t --segment-cohort other.txt",
            "24 of 24 models of the cohort are in the trials too",
        ),
    ],
)
def test_training_on_the_evaluated_scores_raises_a_warning(two, command, words, monkeypatch):
    monkeypatch.chdir(two)
    said = passes(*command.split(), "-o", "out.txt").stderr
    assert said.count("\n") == 1
    assert words in said


@pytest.mark.parametrize(("enrolled", "n_own"), [("te", 8), ("en", 0)])
def test_trials_of_a_recording_against_itself_are_reported(tmp_path, enrolled, n_own):
    for seed, side in enumerate(("en", "te")):
        ids, vectors = (
            [f"{side}{number}" for number in range(8)],
            np.random.default_rng(seed).normal(size=(8, 4)),
        )
        write_embeddings(
            tmp_path / f"{side}.npz",
            Embeddings(ids, [f"s{number // 2}" for number in range(8)], vectors),
        )
    given = ("--enroll", tmp_path / f"{enrolled}.npz", "--test", tmp_path / "te.npz")
    said = passes("linkability", *given, "--bootstrap", "0").stderr
    assert ("8 of 8 tested utterances have a model made from the same recording" in said) == (
        n_own > 0
    )
    for name, models in (
        ("speakers", [f"s{number // 2}" for number in range(8)]),
        ("ids", [f"{enrolled}{n}" for n in range(8)]),
    ):
        pairs = [(model, f"te{number}") for model in dict.fromkeys(models) for number in range(8)]
        truth = [model in (models[int(segment[2:])], segment) for model, segment in pairs]
        write_key(tmp_path / "key.txt", Key.from_ids(*zip(*pairs, strict=True), is_target=truth))
        made = passes(
            "cosine", *given, "--trials", tmp_path / "key.txt", "-o", tmp_path / "scores.txt"
        )
        assert (
            f"8 of {len(pairs)} trials have a model made from the same recording" in made.stderr
        ) == (n_own > 0)
        of_ids = passes("metrics", *paths(tmp_path), "--json", "-").stderr
        assert (
            "8 target trials, such as 'te0', 'te1', 'te2', ..., compare a recording with itself"
            in of_ids
        ) == (n_own > 0 and name == "ids")


# --- scores and key exchanged ----------------------------------------------------------------------------------------


def test_a_key_given_as_scores_is_refused(files):
    key = read_key(files / "key.txt")
    lines = [
        f"{model} {segment} {int(truth)}\n"
        for (model, segment), truth in zip(key.pairs(), key.is_target, strict=True)
    ]
    (files / "binary").write_text("".join(lines))
    for command in (
        ["metrics"],
        ["zebra"],
        ["linkability"],
        ["plot", "det", "-o", files / "x.png"],
    ):
        message = refused(*command, "-s", files / "binary", "-k", files / "key.txt")
        assert "all scores are 0 or 1, like the labels of a key (swap scores and key" in message
    message = refused("metrics", "-s", files / "binary", "-k", files / "scores.txt")
    assert "are scores and key exchanged?" in refused(
        "zebra", "-s", files / "scores.txt", "-k", files / "scores.txt"
    )


# --- pipes -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs pipes as paths")
@pytest.mark.parametrize("suffix", [".txt", ".h5"])
def test_a_key_is_read_from_a_pipe(files, suffix):
    reading, writing = os.pipe()
    # fits into the buffer of a pipe
    assert os.write(writing, (files / f"key{suffix}").read_bytes()) > 4000
    os.close(writing)
    piped = passes(
        "metrics", "-s", files / "scores.txt", "-k", f"/dev/fd/{reading}", "--json", "-"
    ).stdout
    assert json.loads(piped) == metrics(files)


def test_using_one_of_several_utterances_is_reported(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((12, 5))
    names = [f"s{number // 2}" for number in range(12)]
    write_embeddings(
        tmp_path / "a.npz", Embeddings([f"u{number}" for number in range(12)], names, vectors)
    )
    sides = ("--enroll", tmp_path / "a.npz", "--test", tmp_path / "a.npz", "--bootstrap", "0")
    note = "only the first utterance of each speaker is tested (6 of 12); --utterances all averages all"
    assert f"note: {note}" in passes("linkability", *sides).stdout
    assert (
        note
        in json.loads(passes("linkability", *sides, "--json", "-").stdout)["utterances"]["1"][
            "notes"
        ]
    )
    assert "only the first" not in passes("linkability", *sides, "--utterances", "1").stdout


# --- columns ---------------------------------------------------------------------------------------------------------


def layouts(files):
    """The same scores with their labels as wespeaker, SpeechBrain and a CSV of other names write them."""
    scores, key = read_scores(files / "scores.txt"), read_key(files / "key.txt")
    rows = [
        (model, segment, value, int(truth))
        for (model, segment), value, truth in zip(
            scores.pairs(), scores.values.tolist(), key.is_target, strict=True
        )
    ]
    texts = {
        "wespeaker": "".join(
            f"{m} {s} {v!r} {'target' if t else 'nontarget'}\n" for m, s, v, t in rows
        ),
        "speechbrain": "".join(f"{m} {s} {t} {v!r}\n" for m, s, v, t in rows),
        "known.csv": "enroll,test,cos_sim,same\n"
        + "".join(f"{m},{s},{v!r},{t}\n" for m, s, v, t in rows),
        "other.csv": "left,right,how,truly\n"
        + "".join(f"{m},{s},{v!r},{t}\n" for m, s, v, t in rows),
    }
    for name, text in texts.items():
        (files / name).write_text(text)
    return {name: files / name for name in texts}


def test_scores_with_labels_need_no_key(files):
    expected = json.loads(passes("metrics", *paths(files), "--json", "-").stdout)
    written = layouts(files)
    for name in ("wespeaker", "speechbrain", "known.csv"):
        assert json.loads(passes("metrics", "-s", written[name], "--json", "-").stdout) == expected
    message = refused("metrics", "-s", files / "scores.txt")
    assert "no key is given, and the scores hold no labels" in message
    assert "-k FILE" in message


def test_all_missing_columns_are_named_together(files):
    other = layouts(files)["other.csv"]
    for key in ([], ["-k", other]):
        message = refused("metrics", "-s", other, *key)
        assert "name it: --scores-columns model=NAME,segment=NAME,score=NAME,label=NAME" in message
    message = refused("metrics", "-s", other, "--scores-columns", "model=left,segment=right")
    assert "name it: --scores-columns score=NAME,label=NAME" in message
    message = refused("metrics", "-s", other, "--scores-columns", "model=left,what=right")
    assert "expected an order, or model=NAME,segment=NAME,score=NAME, got 'what=right'" in message


def test_systems_with_different_trials_are_reported(files):
    """Two systems in one table whose keys differ: easier trials make a better figure."""
    key = read_key(files / "key.txt")
    rng = np.random.default_rng(3)
    write_key(files / "shuffled.txt", key.subset(rng.permutation(len(key))))
    write_key(files / "half.txt", key.subset(rng.random(len(key)) < 0.7))
    turned = key.is_target.copy()
    # both systems have the same number of trials
    turned[[int(np.flatnonzero(turned)[0]), int(np.flatnonzero(~turned)[0])]] ^= True
    write_key(
        files / "turned.txt", Key(key.model_ids, key.segment_ids, key.models, key.segments, turned)
    )
    scores, labels = (
        ("-s", files / "scores.txt", "-s", files / "scores.csv"),
        ("-l", "old", "-l", "new"),
    )
    for name in ("half.txt", "turned.txt"):
        keys = ("-k", files / "key.txt", "-k", files / name)
        words = "new: other trials than old, so figures are not comparable"
        assert f"note: {words}" in passes("metrics", *scores, *keys, *labels).stdout
        report = json.loads(passes("metrics", *scores, *keys, *labels, "--json", "-").stdout)
        assert report["notes"] == {"trials": words}
        drawn = ("--bootstrap", "20", "--bootstrap-by", "trial")
        report = json.loads(
            passes("metrics", *scores, *keys, *labels, *drawn, "--json", "-").stdout
        )
        assert (report["notes"], report["differences"]) == ({"trials": words}, {})
    for keys in (
        ("-k", files / "key.txt"),
        ("-k", files / "key.txt", "-k", files / "shuffled.txt"),
    ):
        assert "other trials" not in passes("metrics", *scores, *keys, *labels).stdout
        assert "notes" not in json.loads(
            passes("metrics", *scores, *keys, *labels, "--json", "-").stdout
        )


def test_lists_without_ids_are_paired_by_line_with_a_note(tmp_path):
    rng = np.random.default_rng(0)
    labels, order = np.arange(60) % 3 == 0, rng.permutation(60)
    for name, rows in (("a", range(60)), ("b", range(60)), ("shuffled", order)):
        lines = [f"{int(labels[row])} {2 * labels[row] + rng.normal()}\n" for row in rows]
        (tmp_path / name).write_text("".join(lines))
    drawn = ("--bootstrap", "20", "--bootstrap-by", "trial")
    shown = passes("metrics", "-s", tmp_path / "a", "-s", tmp_path / "b", *drawn).stdout
    assert "b minus a" in shown
    assert "paired by line: all files must list them in the same order" in shown
    shown = passes("metrics", "-s", tmp_path / "a", "-s", tmp_path / "shuffled", *drawn).stdout
    assert "minus" not in shown
    assert "shuffled: other trials than a, so figures are not comparable" in shown


# --- vectors that are enrolled and tested, or all equal --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "good", "other"),
    [
        ("cosine --enroll e.npz --test {} --trials {}.txt -o new.txt", "good", ["same", "equal"]),
        ("singling-out --enroll e.npz --test {} --bootstrap 0", "good", ["same", "equal"]),
        ("linkability --enroll e.npz --test {} --bootstrap 0", "good", ["same", "equal"]),
        ("align --original e.npz --anonymised {} --bootstrap 0", "moved", ["copy"]),
    ],
)
def test_uninformative_vectors_are_reported(tmp_path, monkeypatch, words, good, other):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids, speakers = (
        [f"u{number:02d}" for number in range(24)],
        [f"s{number // 4}" for number in range(24)],
    )
    vectors = rng.standard_normal((24, 6))
    sets = {"e": (ids, vectors), "same": (ids, vectors), "copy": (ids, np.ones((24, 6)))}
    sets |= {
        "equal": ([f"{name}-t" for name in ids], np.ones((24, 6))),
        "moved": (ids, vectors + 0.1),
        "good": ([f"{name}-t" for name in ids], vectors + 0.1 * rng.standard_normal((24, 6))),
    }
    for name, (named, of_set) in sets.items():
        write_embeddings(f"{name}.npz", Embeddings(named, speakers, of_set))
        Path(f"{name}.npz.txt").write_text(
            "".join(f"{speaker} {named[0]}\n" for speaker in sorted(set(speakers)))
        )
    assert "Warning" not in passes(*words.format(f"{good}.npz", f"{good}.npz").split()).stderr
    said = {
        "same": "have a model made from the same recording",
        "equal": "all 24 vectors are equal",
    }
    for name in other:
        told = passes(*words.format(f"{name}.npz", f"{name}.npz").split()).stderr
        assert said.get(name, said["equal"]) in told
        assert told.count("Warning") == 1


# --- files that contradict themselves or each other ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "key", "options", "said"),
    [
        ("a s 2\na t 0\nb s 1\na s 9\na t 1\n", "a s 1\na t 0\nb s 0\n", ["--duplicates", "first"],
         "scores.txt:4: 2 lines with another score or label than an earlier line of the same pair, such as line 1"),
        ("a s 2\na t 0\nb s 1\n", "a s 1\na t 0\nb s 0\nb s 1\n", ["--duplicates", "first"],
         "key.txt:4: 1 line with another score or label than an earlier line of the same pair, such as line 3"),
        ("a s 2\na t 2.6e308\nb s 1\n", "a s 1\na t 0\nb s 0\n", [],
         "scores.txt:2: expected a number as score, got '2.6e308'"),
        ("2\n-2.6e308\n1\n", "a s 1\na t 0\nb s 0\n", ["--in-order"], "scores.txt:2: expected one score"),
    ],
)  # fmt: skip
def test_contradicting_repetitions_and_overflowing_numbers_are_refused(
    tmp_path, scores, key, options, said
):
    (tmp_path / "scores.txt").write_text(scores)
    (tmp_path / "key.txt").write_text(key)
    assert said in refused("metrics", *paths(tmp_path), *options)


@pytest.mark.parametrize("order", ["wespeaker", "speechbrain", "table"])
def test_score_labels_that_contradict_the_key_are_reported(files, order):
    scores, key = read_scores(files / "scores.txt"), read_key(files / "key.txt")
    own = files / f"own.{'csv' if order == 'table' else 'txt'}"
    for wrong in (0, 3):
        lines = ["model,segment,score,label\n"] if order == "table" else []
        truth = key.is_target ^ (np.arange(len(key)) < wrong)
        for (model, segment), value, is_target in zip(
            scores.pairs(), scores.values, truth, strict=True
        ):
            label = "target" if is_target else "nontarget"
            cells = (
                [model, segment, label, value]
                if order == "speechbrain"
                else [model, segment, value, label]
            )
            lines.append(("," if order == "table" else " ").join(map(str, cells)) + "\n")
        own.write_text("".join(lines))
        said = passes("metrics", "-s", own, "-k", files / "key.txt", "--bootstrap", "0").stderr
        assert (
            "3 of 384 labels of the scores contradict the key, whose labels count: 'm0_0 m0/00'"
            in said
        ) == bool(wrong)


def test_cllr_of_probabilities_has_a_note(files):
    scores = read_scores(files / "scores.txt")
    write_scores(files / "scores.txt", replace(scores, values=1 / (1 + np.exp(-scores.values))))
    for more in ([], ["-s", files / "scores.csv", "-l", "a", "-l", "b"]):
        shown = passes("metrics", *paths(files), *more, "--bootstrap", "0").stdout
        assert "all scores are between 0 and 1, so they are not log-likelihood ratios" in shown


@pytest.mark.parametrize("folder", [".", "..", "/"])
@pytest.mark.parametrize("command", [["metrics"], ["plot", "det", "-o", "x.tex"]])
def test_a_folder_given_as_scores_is_refused(files, monkeypatch, command, folder):
    monkeypatch.chdir(files)
    assert f"{folder}: cannot be read: Is a directory" in refused(
        *command, "-s", folder, "-k", "key.txt"
    )


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_ids_that_look_like_formulas_are_escaped_and_read_back(tmp_path, suffix):
    models, segments = ["=1+2", '=HYPERLINK("http://x",1)', "-a", "b"], ["@s", "+t", "-7", "=u"]
    write_scores(tmp_path / f"x{suffix}", Scores.from_ids(models, segments, [-1.5, 2, 3, 4]))
    cells = re.split(r"[\t\n]|(?<![0d]),|,(?=[-\d])", (tmp_path / f"x{suffix}").read_text())
    assert not [cell for cell in cells if re.match(r'"?[=+@]|"?-\D', cell)]
    back = read_scores(tmp_path / f"x{suffix}")
    assert list(back.pairs()) == list(zip(models, segments, strict=True))
    assert back.values.tolist() == [-1.5, 2, 3, 4]


# --- outputs that would replace inputs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kept", "said"),
    [
        ("calibrate -s scores.txt -k key.txt -o key.txt", "key.txt", "would replace key.txt, the file of --key"),
        ("calibrate -s scores.txt --train-scores scores.txt --train-key key.txt -o new --save scores.txt", "scores.txt",
         "--save would replace"),
        ("fuse -s scores.txt -s scores.csv --train-key key.txt -o new --save ./new", "", "the file of --output"),
        ("metrics -s scores.txt -k key.txt --json sub/../scores.txt", "scores.txt", "--json would replace"),
        ("metrics -s scores.txt -k key.txt --latex new --markdown new", "", "the file of --latex"),
        ("plot det -s scores.txt -k key.txt -o det.svg -o scores.txt", "scores.txt", "--output would replace"),
        ("convert scores scores.txt scores.txt", "scores.txt", "destination would replace"),
        ("cosine --enroll e.npz --test e.npz --trials key.txt -o key.txt", "key.txt", "the file of --trials"),
        ("cosine --enroll e.npz --test e.npz --trials key.txt -o link.npz", "e.npz", "the file of --"),
    ],
)  # fmt: skip
def test_an_output_never_replaces_an_input_or_another_output(files, monkeypatch, words, kept, said):
    monkeypatch.chdir(files)
    Path("sub").mkdir()
    ids = np.array(sorted(read_key("key.txt").model_ids.tolist()), object)
    write_embeddings(
        "e.npz", Embeddings(ids, ids, np.random.default_rng(0).standard_normal((len(ids), 4)))
    )
    Path("link.npz").symlink_to("e.npz")
    before = Path(kept).read_bytes() if kept else b""
    assert said in refused(*words.split())
    assert not kept or Path(kept).read_bytes() == before
    assert not Path("new").exists()


def test_every_output_option_has_a_known_name():
    for group in (main, spkver_main):
        for words, command in leaves(group, ""):
            for one in command.params:
                about = getattr(one, "help", None) or ""
                writes = re.search(r"[Ww]rite|Draw|^PNG|HTML file|^Folder for ", about)
                if isinstance(one.type, click.Path) and writes and one.opts != ["--work"]:
                    assert not OUTPUTS.isdisjoint(one.opts), (words, one.opts)


def leaves(command, words):
    if not isinstance(command, click.Group):
        return [(words, command)]
    context = click.Context(command)
    below = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [
        leaf for name, one in below if one is not None for leaf in leaves(one, f"{words} {name}")
    ]
