"""What an error advises exists, and helps; what is left out is counted."""

import ast
import logging
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import evaluation as ev
from evaluation.embeddings import write_embeddings
from evaluation.formats import Choice
from spkbase.errors import DataError
from spkver.cli import COMMANDS as SPKVER
from spkver.evaluation_cli import COMMANDS
from tests.command_lines import passes, refused

ROOT = Path(__file__).resolve().parents[3]
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
SPEAKERS = [f"s{number}" for number in range(6)]
PAIRS = [
    (model, f"{speaker}-{take}") for model in SPEAKERS for speaker in SPEAKERS for take in range(2)
]
TRUTH = [segment.startswith(model) for model, segment in PAIRS]
VALUES = np.random.default_rng(1).normal(size=len(PAIRS)) + 2.0 * np.array(TRUTH)

JOINING = {
    "metrics": "metrics -s {0} -k {k}",
    "zebra": "zebra -s {0} -k {k}",
    "plot": "plot det -s {0} -k {k} -o {o}.png",
    "linkability": "linkability -s {0} -k {k} --bootstrap 0",
    "similarity": "similarity --original {0} --original-anonymised {1} -k {k} --speakers-by - --calibrate pav",
    "calibrate": "calibrate -s {0} -k {k} --speakers-by - --folds 3 --ridge 0.1 -o {o}.txt",
    "fuse": "fuse -s {0} -s {1} --train-key {k} --ridge 0.1 -o {o}.txt",
}
READING = JOINING | {
    "convert": "convert scores {0} {o}.txt",
    "normalise": "normalise -s {0} -m z --model-cohort {1} -o {o}.txt",
}


def lines_of(values, pairs=PAIRS):
    return [
        f"{model} {segment} {value}" for (model, segment), value in zip(pairs, values, strict=True)
    ]


def command_of(name, row=COMMANDS):
    module, _, attribute = row[name][0].partition(":")
    return getattr(import_module(module), attribute)


def options_of(command):
    return {
        word
        for parameter in command.params
        for word in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help"}


@pytest.fixture
def words(tmp_path):
    """Return a function that makes the words of a command from the lines of its first file of scores."""

    def make(command, lines):
        (tmp_path / "first.txt").write_text("\n".join(lines) + "\n")
        (tmp_path / "second.txt").write_text(
            "\n".join(lines_of(VALUES + 0.1 * np.sin(np.arange(len(PAIRS))))) + "\n"
        )
        truth = ["target" if target else "nontarget" for target in TRUTH]
        (tmp_path / "key.txt").write_text("\n".join(lines_of(truth)) + "\n")
        names = [tmp_path / f"{name}.txt" for name in ("first", "second")]
        return READING[command].format(*names, k=tmp_path / "key.txt", o=tmp_path / "out").split()

    return make


FAULTS = {
    "a missing score": (lambda lines: lines[:-1], "--missing drop"),
    "nan": (lambda lines: [*lines[:-1], "s5 s5-1 nan"], "--missing drop"),
    "nan of Windows": (lambda lines: [*lines[:-1], "s5 s5-1 -nan(ind)"], "--missing drop"),
    "old nan of Windows": (lambda lines: [*lines[:-1], "s5 s5-1 -1.#IND"], "--missing drop"),
    "a line twice": (lambda lines: [*lines, lines[0]], "--duplicates first"),
}


CASES = [(command, fault) for command in READING for fault in ("nan", "a line twice")]
CASES += [(command, "a missing score") for command in JOINING]
CASES += [("metrics", fault) for fault in FAULTS if fault.endswith("Windows")]


@pytest.mark.parametrize(("command", "fault"), CASES)
def test_the_remedy_of_an_error_is_an_option_that_helps(command, fault, words):
    break_lines, remedy = FAULTS[fault]
    line = words(command, break_lines(lines_of(VALUES)))
    message = refused(*line)
    assert remedy in message
    assert set(OPTION.findall(message)) <= options_of(command_of(command))
    assert not re.search(r"(missing|duplicates|in_order)=", message)
    said = passes(*line, *remedy.split())
    assert "Warning: dropped 1" in said.stderr or remedy != "--missing drop"


UTILITY = {
    "wer": "wer --ref {0} --hyp {1} --bootstrap 0",
    "uar": "uar --ref {0} --predictions {1} --bootstrap 0",
    "attributes": "attributes --original {v} --labels {1} --bootstrap 0",
}


@pytest.mark.parametrize("command", UTILITY)
def test_the_remedy_for_missing_utterances_is_an_option_that_helps(command, tmp_path):
    labels = [f"{speaker} {'mf'[number % 2]}" for number, speaker in enumerate(SPEAKERS)]
    files = {name: tmp_path / name for name in ("all", "fewer", "v.npz")}
    files["all"].write_text("\n".join(labels) + "\n")
    files["fewer"].write_text("\n".join(labels[:-1]) + "\n")
    vectors = np.random.default_rng(0).normal(size=(len(SPEAKERS), 20))
    write_embeddings(files["v.npz"], ev.Embeddings(SPEAKERS, SPEAKERS, vectors))
    line = UTILITY[command].format(files["all"], files["fewer"], v=files["v.npz"]).split()
    message = refused(*line)
    assert "--missing drop" in message
    assert "missing=" not in message
    assert re.search(
        "dropped 1|1 of 6 utterances without a label", passes(*line, "--missing", "drop").output
    )


PLACES = [row[0] for row in (*COMMANDS.values(), *SPKVER.values()) if ":" in row[0]]


@pytest.mark.parametrize("module", sorted({place.partition(":")[0] for place in PLACES}))
def test_options_in_the_texts_of_a_module_are_options_of_its_commands(module):
    names = [place.partition(":")[2] for place in PLACES if place.startswith(f"{module}:")]
    known = set().union(*(options_of(getattr(import_module(module), name)) for name in names))
    tree = ast.parse(Path(import_module(module).__file__).read_text())
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = {option for text in texts if "spkver" not in text for option in OPTION.findall(text)}
    assert named <= known


# "fuse" is left out: it is trained on some of the trials
@pytest.mark.parametrize("command", sorted(JOINING.keys() - {"fuse"}))
def test_a_key_without_some_of_the_scored_pairs_is_reported(command, words, tmp_path):
    line = words(command, lines_of(VALUES))
    truth = (tmp_path / "key.txt").read_text().splitlines()
    (tmp_path / "key.txt").write_text("\n".join(truth[2:]) + "\n")
    assert "2 of 72 scores belong to pairs that the key lacks" in passes(*line).stderr


def test_a_subset_of_a_key_is_joined_silently(caplog):
    scores, key = (
        ev.Scores.from_ids(*zip(*PAIRS, strict=True), VALUES),
        ev.Key.from_ids(*zip(*PAIRS, strict=True), TRUTH),
    )
    ev.eer(scores, key.subset(np.arange(2, len(key))))
    assert not caplog.records
    ev.eer(scores, ev.Key.from_ids(*zip(*PAIRS[2:], strict=True), TRUTH[2:]))
    assert [record.getMessage() for record in caplog.records] == [
        "2 of 72 scores belong to pairs that the key lacks"
    ]


@pytest.mark.parametrize("ending", ["txt", "npz", "h5"])
@pytest.mark.parametrize("distances", [False, True])
def test_missing_scores_are_dropped_or_rejected_by_the_commands(
    ending, distances, tmp_path, caplog
):
    """Expected are the numbers without the trials, and with the lowest of all scores in their place."""
    failed = np.array([3, 40])
    raw = -VALUES if distances else VALUES
    values = raw.copy()
    values[failed] = np.nan
    path, key = tmp_path / f"s.{ending}", ev.Key.from_ids(*zip(*PAIRS, strict=True), TRUTH)
    ids = [np.array(side, object) for side in zip(*PAIRS, strict=True)]
    if ending == "txt":
        path.write_text("\n".join(lines_of(values)) + "\n")
    elif ending == "npz":
        np.savez(path, models=ids[0].astype(str), segments=ids[1].astype(str), scores=values)
    else:
        ev.write_scores(path, ev.Scores.from_ids(*ids, np.where(np.isnan(values), 0.125, values)))
        import h5py

        with h5py.File(path, "r+") as file:
            matrix = file["scores"][()]
            matrix[matrix == 0.125] = np.nan
            file["scores"][...] = matrix
    with pytest.raises(DataError, match="not a number"):
        ev.read_scores(path, Choice(distances=distances))
    kept = np.setdiff1d(np.arange(len(PAIRS)), failed)
    expected = {
        "drop": (ev.Scores.from_ids(*(side[kept] for side in ids), VALUES[kept]), key.subset(kept)),
        "reject": (ev.Scores.from_ids(*ids, np.where(np.isnan(values), -1e9, VALUES)), key),
    }
    for missing, (scores, truth) in expected.items():
        caplog.clear()
        found = ev.read_scores(path, Choice(distances=distances, missing=missing))
        assert "2 of 72 scores that are not a number (NaN)" in caplog.text
        result, wanted = ev.evaluate(found, key, missing=missing), ev.evaluate(scores, truth)
        for name in ("eer.rocch", "min_cllr", "min_dcf.0.01", "zebra.population"):
            assert result.values()[name] == wanted.values()[name]
        assert (result.n_target, result.n_nontarget) == (wanted.n_target, wanted.n_nontarget)


def test_missing_scores_count_as_rejected_in_python(caplog):
    scores = ev.Scores.from_ids(
        ["a", "b", "b"], ["a-1", "a-1", "b-1"], [2.0, np.nan, 1.0], missing="reject"
    )
    key = ev.Key.from_ids(
        ["a", "b", "a", "b"], ["a-1", "a-1", "b-1", "b-1"], [True, False, False, True]
    )
    target, nontarget = ev.split_scores(scores, key, missing="reject")
    assert (target.tolist(), nontarget.tolist()) == ([2.0, 1.0], [-np.inf, -np.inf])
    target, nontarget = ev.split_scores(scores, key, missing="drop")
    assert (target.tolist(), nontarget.tolist()) == ([2.0, 1.0], [-np.inf])
    assert caplog.text.count("WARNING") == 3
    with pytest.raises(DataError, match=r"1 trial of 4 without a score.*missing='drop'"):
        ev.evaluate(scores, key)
    assert ev.evaluate(scores, key, missing="drop").n_nontarget == 1


@pytest.mark.parametrize(
    ("file", "number"), [("inf", np.inf), ("1.#INF", np.inf), ("-1.#INF00", -np.inf)]
)
def test_every_spelling_of_infinity_is_read(file, number, tmp_path):
    (tmp_path / "s").write_text(f"a s {file}\nb s 1\n")
    assert ev.read_scores(tmp_path / "s").values.tolist() == [number, 1.0]


def test_contradicting_repetitions_suggest_no_remedy_that_fails(words):
    lines = lines_of(VALUES)
    message = refused(*words("metrics", [*lines, lines[0][:-1] + "9"]))
    assert "repeated" in message
    assert "--duplicates" not in message


def test_malformed_numbers_suggest_no_remedy_for_repetitions(words):
    message = refused(*words("metrics", [line.replace(".", ",") for line in lines_of(VALUES)]))
    assert "expected a number" in message
    assert "--duplicates" not in message


@pytest.mark.parametrize("command", ["metrics", "zebra"])
def test_a_file_given_for_two_systems_is_reported(command, words, tmp_path):
    line = words(command, lines_of(VALUES))
    (tmp_path / "copy.txt").write_bytes((tmp_path / "first.txt").read_bytes())
    for other, told in (
        ("first", "is given twice"),
        ("copy", "holds the same as"),
        ("second", None),
    ):
        said = passes(*line, "-s", tmp_path / f"{other}.txt", "-l", "A", "-l", "B").stderr
        assert ("was the same file given for two systems?" in said) == (told is not None)
        assert (told or "") in said


@pytest.mark.parametrize("command", ["metrics", "zebra"])
def test_equal_scores_in_two_formats_are_reported(command, words, tmp_path):
    line = words(command, lines_of(VALUES))
    passes("convert", "scores", tmp_path / "first.txt", tmp_path / "first.csv")
    for other, is_told in (("first.csv", True), ("second.txt", False)):
        said = passes(*line, "-s", tmp_path / other, "-l", "A", "-l", "B").stderr
        assert ("first.csv holds the same scores as" in said) == is_told


@pytest.mark.parametrize("command", ["similarity", "fuse"])
def test_a_file_given_for_two_roles_is_reported(command, words):
    line = words(command, lines_of(VALUES))
    assert "was the same file given" not in passes(*line).stderr
    said = passes(*[word.replace("second", "first") for word in line])
    assert "is given twice: was the same file given for two systems?" in said.stderr


def test_swapped_training_scores_and_shared_trials_are_reported(words, tmp_path):
    words("fuse", lines_of(VALUES))
    other = lines_of(50 + 20 * VALUES[::-1] * np.where(TRUTH, 1, 0.9), PAIRS)
    (tmp_path / "scaled.txt").write_text("\n".join(other) + "\n")
    for name, pairs in (("dev_a", "first"), ("dev_b", "scaled"), ("renamed", "first")):
        text = re.sub(r"\bs(\d)", r"d\1", (tmp_path / f"{pairs}.txt").read_text())
        if name != "renamed":  # scores of other recordings
            text = re.sub(
                r"(\S+)$", lambda score: repr(1.001 * float(score[0])), text, flags=re.MULTILINE
            )
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "dev_key.txt").write_text(
        re.sub(r"\bs(\d)", r"d\1", (tmp_path / "key.txt").read_text())
    )

    def said(first, second, key="dev_key"):
        files = [tmp_path / f"{name}.txt" for name in ("first", "scaled", first, second, key, "o")]
        names = ("-s", "-s", "--train-scores", "--train-scores", "--train-key", "-o")
        return passes(
            "fuse",
            "--ridge",
            "0.1",
            *(word for pair in zip(names, files, strict=True) for word in pair),
        ).stderr

    assert "training" not in said("dev_a", "dev_b")
    assert "72 of 72 trials are training trials too" in said("renamed", "dev_b")
    assert "in another order" in said("dev_b", "dev_a")
    exchanged = said("scaled", "first", "key")
    assert "in another order" in exchanged
    assert "72 of 72 trials are training trials too" in exchanged


def test_calibration_errors_name_the_file(words, tmp_path):
    same = lines_of(np.full(len(PAIRS), 0.5))
    for command in ("calibrate", "fuse"):
        message = refused(*words(command, same))
        assert "first.txt" in message
        assert "gives every trial the same score" in message
        assert "folds" not in message
        assert "second.txt" not in message
    assert "72 scores -> " in passes(*words("calibrate", lines_of(VALUES))).stdout


def test_matching_input_logs_nothing(words, caplog):
    with caplog.at_level(logging.WARNING):
        said = passes(*words("metrics", lines_of(VALUES)))
    assert said.stderr == ""


def test_rejected_trials_are_written_but_not_trained_on(words, tmp_path):
    lines = [*lines_of(VALUES)[:-1], "s5 s5-1 nan"]
    for command in ("calibrate", "fuse"):
        said = passes(*words(command, lines), "--missing", "reject").stderr
        assert "counted as rejected 1 of 72 scores that are not a number (NaN)" in said
    assert ev.read_scores(tmp_path / "out.txt").values[-1] == -np.inf


def test_similarity_of_uncalibrated_scores_is_reported(words):
    line = words("similarity", lines_of(np.exp(VALUES)))
    line[-1] = "none"
    assert "all scores are above 0, so they are not log-likelihood ratios" in passes(*line).stderr


def test_ratios_of_base_10_are_read_by_the_commands(words, tmp_path):
    natural, decimal = (
        words("metrics", lines_of(values)) for values in (VALUES, VALUES / np.log(10))
    )
    shown = passes(*decimal, "--llr-base", "10").stdout
    words("metrics", lines_of(VALUES))
    assert shown == passes(*natural).stdout
    words("convert", lines_of(VALUES / np.log(10)))
    passes("convert", "scores", tmp_path / "first.txt", tmp_path / "n.txt", "--llr-base", "10")
    np.testing.assert_allclose(ev.read_scores(tmp_path / "n.txt").values, VALUES)
