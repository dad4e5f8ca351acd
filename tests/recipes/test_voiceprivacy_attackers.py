"""User-supplied attackers of every kind enter the VoicePrivacy report and its least privacy; errors are told."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import voiceprivacy_runs as vp
from recipe_runs import refused, results_of

from evaluation.embeddings.files import write_embeddings
from evaluation.embeddings.sets import Embeddings
from evaluation.formats.reading import read_key, read_scores
from evaluation.reports import read_results
from evaluation.trials import align
from spkbase.configuration import load_config
from spkbase.errors import ConfigError
from spkver.attackers import CATALOGUE, DEFAULT, OUTSIDE, PRESETS, attacker_name
from spkver.datadir.reading import read_datadir
from spkver.voiceprivacy.choosing import chosen_attackers
from spkver.voiceprivacy.settings import Config

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = {  # whether enrolment and trials are anonymised, and what the attacker learnt from
    "original": ("", "", "asv_orig"),
    "ignorant": ("", vp.SUFFIX, "asv_orig"),
    "lazy-informed": (vp.SUFFIX, vp.SUFFIX, "asv_orig"),
    "semi-informed": (vp.SUFFIX, vp.SUFFIX, f"asv_anon{vp.SUFFIX}"),
}
LENGTHS = """
import json
import soundfile

def attack(training, seed):
    with open(f"{__file__}.calls", "a") as file:
        print(json.dumps(sorted(training)), file=file)
    def score(enrolment, tested, trials):
        lengths = {segment: soundfile.info(path).frames for segment, path in tested.items()}
        return [len(training) + len(enrolment[model]) + lengths[segment] / 1e6 + seed for model, segment in trials]
    return score
"""
COMMAND = """
import sys
from pathlib import Path

training, enrolment, tested, trials, scores, work, seed = sys.argv[1:]
print(seed, file=open(f"{work}/calls", "a"))
n_calls = len(open(f"{work}/calls").readlines())
rows = [line.split() for line in open(trials)]
models = dict(line.split(" ", 1) for line in open(f"{enrolment}/spk2utt"))
paths = dict(line.split(" ", 1) for name in (enrolment, tested, training) for line in open(f"{name}/wav.scp"))
assert all(Path(path.strip()).is_file() for path in paths.values())
assert len(open(f"{training}/utt2spk").readlines()) == 18
with open(scores, "w") as file:
    for model, segment in reversed(rows):
        print(model, segment, n_calls + len(models[model].split()) / 10 + 0.01 * (segment in paths), file=file)
"""


@pytest.fixture(scope="module")
def outside(layout, tmp_path_factory):
    """What every kind of user-supplied attacker needs; read only."""
    folder = tmp_path_factory.mktemp("outside")
    for scenario in SCENARIOS:
        write_oracle(layout, folder / "oracle" / "exp", scenario)
    write_vectors(layout, folder / "xvectors")
    (folder / "lengths.py").write_text(LENGTHS)
    (folder / "command.py").write_text(COMMAND)
    return folder


@pytest.fixture(scope="module")
def output(layout, outside, tmp_path_factory):
    """What the recipe makes of a built-in attacker and one of each user-supplied kind; read only."""
    folder = tmp_path_factory.mktemp("output")
    outcome = run(layout, folder, *entries(outside), page=True)
    assert outcome.status == 0, outcome.err
    return folder


@pytest.fixture(scope="module")
def results(output):
    return results_of(output)


def entries(outside):
    places = " ".join(
        f"{{{name}}}"
        for name in ("training", "enrolment", "tested", "trials", "scores", "work", "seed")
    )
    return [
        "gmm-ubm",
        f"{outside}/lengths.py:attack",
        f"command:{sys.executable} {outside}/command.py {places}",
        f"scores:{outside}/oracle/exp",
        f"vectors:{outside}/xvectors",
    ]


NAMES = ["gmm-ubm", "lengths-attack", "command-command", "scores-oracle", "vectors-xvectors"]


def run(layout, output, *attackers, page=False, **settings):
    chosen = {"attackers": json.dumps(attackers), "evaluation__resamples": 0, "seed": 3, **settings}
    return vp.run_recipe(layout, output, page=page, **chosen)


def trial_files(scenario):
    """Folder of the scores below exp, list of trials and sex."""
    enrol, trials, learnt = SCENARIOS[scenario]
    return [
        (
            f"{learnt}/tiny_test_enrolls{enrol}-tiny_test_trials_{sex}{trials}",
            f"tiny_test_trials_{sex}",
            sex,
        )
        for sex in "fm"
    ]


def write_oracle(layout, exp, scenario):
    """Scores that know the key, with one trial too many."""
    for folder, name, _ in trial_files(scenario):
        key = read_key(layout / name / "trials")
        lines = [
            f"{model} {segment} {1.5 if same else -0.5}"
            for (model, segment), same in zip(key.pairs(), key.is_target, strict=True)
        ]
        (exp / folder).mkdir(parents=True)
        vp.write(exp / folder / "scores", [*reversed(lines), "somebody else 7"])


def vector(utterance, name):
    """The speaker's place, further away in anonymised speech, and something of the utterance's own."""
    speaker = (
        sorted(sum(vp.ENROLLED.values(), ())).index(utterance[:4])
        if utterance[:4] in str(vp.ENROLLED)
        else 7
    )
    own = np.random.default_rng(list(f"{utterance}{name}".encode())).normal(0, 0.4, 8)
    return own + (0.5 if name.endswith(vp.SUFFIX) else 2.0) * np.eye(8)[speaker]


def write_vectors(layout, folder):
    """In two formats; those of semi-informed attackers for the women alone."""
    (folder / f"asv_anon{vp.SUFFIX}").mkdir(parents=True)
    for number, directory in enumerate(sorted(layout.glob("tiny_test_*"))):
        ids = sorted(read_datadir(directory).recordings)
        vectors = np.array([vector(one, directory.name) for one in ids])
        path = folder / f"{directory.name}{('.npz', '.h5')[number % 2]}"
        write_embeddings(path, Embeddings(ids, ["?"] * len(ids), vectors))
        if directory.name in (f"tiny_test_enrolls{vp.SUFFIX}", f"tiny_test_trials_f{vp.SUFFIX}"):
            path = folder / f"asv_anon{vp.SUFFIX}" / f"{directory.name}.h5"
            write_embeddings(path, Embeddings(ids, ["?"] * len(ids), -vectors))


# --- all kinds ------------------------------------------------------------------------------------


def test_the_least_privacy_is_taken_over_all_attackers(results, output):
    assert len(results["summary"]) == 3 * len(SCENARIOS)
    for row in results["summary"]:
        assert list(row["attackers"]) == NAMES
        assert row["eer"] == min(row["attackers"].values()) == 0
        assert row["strongest"] in ("scores-oracle", "vectors-xvectors", "gmm-ubm")
        if row["scenario"] == "semi-informed":
            assert row["strongest"] == "scores-oracle"
    parsed = read_results(output / "results.json")
    assert parsed.attackers("tiny_test") == NAMES
    assert parsed.worst("tiny_test", "all").strongest == "scores-oracle"
    for name in ("report.html", f"tables{vp.SUFFIX}.md", f"results{vp.SUFFIX}.csv"):
        assert "scores-oracle" in (output / name).read_text(), name


def test_results_describe_the_attackers(results, outside):
    assert results["config"]["attackers"] == entries(outside)
    told = [one["text"] for one in vp.findings(results, "user-supplied attackers")]
    assert len(told) == 4
    assert f"scores-oracle is scores:{outside}/oracle/exp; it scores every condition." in told


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_precomputed_scores_are_used_unchanged(outside, results, output, scenario):
    for folder, name, sex in trial_files(scenario):
        found = read_scores(
            output / vp.condition(results, sex, scenario, "scores-oracle")["scores"]
        )
        key = read_key(output / "lists" / name / "trials")
        assert list(found.pairs()) == list(key.pairs())
        given = read_scores(outside / "oracle" / "exp" / folder / "scores")
        np.testing.assert_array_equal(found.values, align(given, key))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_precomputed_vectors_are_scored_by_cosines_with_speaker_means(
    layout, results, output, scenario
):
    enrol, trials, _ = SCENARIOS[scenario]
    for _, name, sex in trial_files(scenario):
        found = read_scores(
            output / vp.condition(results, sex, scenario, "vectors-xvectors")["scores"]
        )
        for (model, segment), value in zip(found.pairs(), found.values, strict=True):
            mean = (
                sum(vector(f"{model}-{take}", f"tiny_test_enrolls{enrol}") for take in (1, 2)) / 2
            )
            tested = vector(segment, f"{name}{trials}")
            # all enrolment, and of the trials only the women's, come from the other extractor
            if scenario == "semi-informed":
                mean, tested = -mean, -tested if sex == "f" else tested
            cosine = mean @ tested / np.linalg.norm(mean) / np.linalg.norm(tested)
            assert value == pytest.approx(cosine, abs=1e-9)


def test_a_function_gets_the_documented_arguments_and_trains_once_for_each_training_set(
    layout, outside, results, output
):
    for scenario, (_, trials, _) in SCENARIOS.items():
        for _, name, sex in trial_files(scenario):
            found = read_scores(
                output / vp.condition(results, sex, scenario, "lengths-attack")["scores"]
            )
            recordings = read_datadir(layout / f"{name}{trials}").recordings
            for (_, segment), value in zip(found.pairs(), found.values, strict=True):
                # WAV of 16 bits, one channel; six training speakers, two enrolled utterances, the seed
                length = (recordings[segment].stat().st_size - 44) / 2
                assert value == pytest.approx(6 + 2 + length / 1e6 + 3, rel=1e-9)
    calls = [json.loads(line) for line in (outside / "lengths.py.calls").read_text().splitlines()]
    assert calls == [["f101", "f102", "f103", "m101", "m102", "m103"]] * 2


def test_a_command_gets_the_documented_arguments(results, output):
    calls = set()
    for scenario in SCENARIOS:
        for sex in "fm":
            found = read_scores(
                output / vp.condition(results, sex, scenario, "command-command")["scores"]
            )
            (value,) = set(found.values)
            calls.add((SCENARIOS[scenario][2], round(value - 0.21, 9)))
    # its own folder is kept between lists of the same training
    assert calls == {("asv_orig", float(n)) for n in range(1, 7)} | {
        (f"asv_anon{vp.SUFFIX}", float(n)) for n in (1, 2)
    }


def test_a_second_run_reuses_everything_and_a_change_redoes_only_its_dependents(
    layout, outside, output, tmp_path
):
    again, ours = tmp_path / "output", tmp_path / "outside"
    shutil.copytree(output, again)
    shutil.copytree(outside, ours)
    before = vp.stamps(again.rglob("exp/*/*/*/scores"))
    edited = ours / "oracle/exp" / trial_files("original")[0][0] / "scores"
    edited.write_text(edited.read_text().replace(" 1.5", " 2.5"))
    changed = [entry.replace(f"{outside}/oracle", f"{ours}/oracle") for entry in entries(outside)]
    assert run(layout, again, *changed).status == 0
    pooled = "asv_orig/tiny_test_enrolls-tiny_test_trials_all/scores-oracle/scores"
    redone = {path for path, time in vp.stamps(before).items() if time != before[path]}
    assert redone == {
        again / "exp" / name
        for name in (f"{trial_files('original')[0][0]}/scores-oracle/scores", pooled)
    }


# --- missing and wrong settings -------------------------------------------------------------------


def test_conditions_without_scores_are_omitted_and_reported(layout, tmp_path):
    """Original and semi-informed alone, as a challenge's results have them; the semi-informed of women alone."""
    write_oracle(layout, tmp_path / "some", "original")
    write_oracle(layout, tmp_path / "some", "semi-informed")
    shutil.rmtree(tmp_path / "some" / trial_files("semi-informed")[1][0])
    outcome = run(layout, tmp_path / "out", f"scores:{tmp_path}/some", page=True)
    assert outcome.status == 0, outcome.err
    results = results_of(tmp_path / "out")
    served = [(one["gender"], one["scenario"]) for one in results["conditions"]]
    assert served == [
        ("f", "original"),
        ("m", "original"),
        ("all", "original"),
        ("f", "semi-informed"),
    ]
    (told,) = vp.findings(results, "user-supplied attackers")
    assert told["level"] == "warning"
    assert "was left out of 5 conditions" in told["text"]
    assert "tiny_test f ignorant" in told["text"]
    left_out = re.findall(
        r"scores-some is left out of (\S+): there is no", (tmp_path / "out/run.log").read_text()
    )
    assert len(left_out) == 5
    assert trial_files("semi-informed")[1][0] in left_out


@pytest.mark.parametrize("name", ["mine", "other"])
def test_precomputed_scores_are_found_by_attacker_name_or_as_the_only_file(
    layout, outside, tmp_path, name
):
    """As a run has them for each attacker; several of other names are nobody's."""
    for path in sorted((outside / "oracle/exp").glob("asv_*/*/scores")):
        place = tmp_path / "exp" / path.parent.relative_to(outside / "oracle/exp")
        for folder in ("mine", "third") if "asv_anon" in str(path) else ("mine",):
            (place / folder).mkdir(parents=True)
            shutil.copy(path, place / folder / "scores")
    outcome = run(
        layout,
        tmp_path / "out",
        name,
        lists="[f]",
        **{f"attacker_settings.{name}.preset": f"scores:{tmp_path}/exp"},
    )
    assert outcome.status == 0, outcome.err
    results = results_of(tmp_path / "out")
    served = {one["scenario"] for one in results["conditions"]}
    assert served == set(SCENARIOS) - ({"semi-informed"} if name == "other" else set())
    if name == "other":
        assert "of mine, third none is called other" in outcome.err


def a_score_too_few(folder):
    """Scores of women on original speech, without the first."""
    path = folder / "mine" / trial_files("original")[0][0] / "scores"
    path.parent.mkdir(parents=True)
    trials = [
        f"{m} {m[0]}00{s}-{t} {s}" for m in vp.ENROLLED["f"] for s in range(1, 6) for t in (3, 4)
    ]
    vp.write(path, trials[1:])
    return f"scores:{folder}/mine"


def vectors(ids, name="tiny_test_trials_f"):
    def write_it(folder):
        (folder / "mine").mkdir()
        everybody = [f"{one}-{take}" for sex in "fm" for one in vp.ENROLLED[sex] for take in (1, 2)]
        for directory, names in (("tiny_test_enrolls", everybody), (name, ids)):
            some = np.random.default_rng(0).normal(size=(len(names), 3))
            write_embeddings(folder / "mine" / f"{directory}.npz", Embeddings(names, names, some))
        return f"vectors:{folder}/mine"

    return write_it


BEFORE = {
    "a score that is missing": (
        a_score_too_few,
        ["scores-mine", "1 trial of 40 without a score", "f001 f001-3"],
    ),
    "vectors that are missing": (
        vectors(["f001-3"]),
        [
            "vectors-mine",
            "9 of 10 utterances of tiny_test_trials_f without an embedding: 'f001-4'",
            "extract them",
        ],
    ),
    "vectors of other sets alone": (
        vectors(["f001-3"], "other"),
        ["vectors-mine", "cannot score any condition", "own_attackers.md"],
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_precomputed_files_are_checked_before_speech_is_anonymised(originals, tmp_path, name):
    make, words = BEFORE[name]
    refused(run(originals, tmp_path / "out", make(tmp_path), anonymizer__name="mcadams"), *words)
    assert not (tmp_path / "out/data").exists()


def test_if_no_attacker_can_be_trained_the_error_names_attacker_and_data(layout, tmp_path):
    (tmp_path / "own.py").write_text("def attack(training, seed):\n    1 / 0\n")
    outcome = run(layout, tmp_path / "out", f"{tmp_path}/own.py:attack", lists="[f]")
    refused(outcome, "own-attack", "ZeroDivisionError: division", "tiny_train", "leave it out")


@pytest.mark.parametrize(
    ("attackers", "message"),
    [
        (
            "[no_such_module:f]",
            "the attacker 'no_such_module:f' cannot be imported: ModuleNotFoundError",
        ),
        ("[scores:no/such/folder]", "attacker 'scores-folder': no such folder"),
        ("[scores:.]", "expected files asv_orig/<enrolment>-<trials>/scores, found none"),
        (
            "['command:cat {trials}']",
            "attacker 'command-cat': the command 'cat {trials}' has no {enrolment}",
        ),
        ("['json:dumps', 'json:dumps ']", "would both be called json-dumps"),
        ("[plda]", "'plda' is not a preset"),
        ("[gmm-svm, fusion-words]", "'fusion-words' is added by fusion itself"),
        ("[fusion-inverted]", "'fusion-inverted' is added by fusion itself"),
        (
            "[gmm-svm,gmm-svm-inverted]\nattacker_settings.gmm-svm.preset=supervector-adapted",
            "'gmm-svm' and 'gmm-svm-inverted' with other settings would share a folder",
        ),
    ],
)
def test_unusable_supplied_attackers_are_refused_first(attackers, message):
    with pytest.raises(ConfigError) as caught:
        chosen_attackers(load_config(Config, settings=f"attackers={attackers}".split("\n")))
    assert message in str(caught.value)


def test_a_user_defined_attacker_can_be_named_and_declares_its_input():
    settings = ["attackers=[mine]", "attacker_settings.mine.preset=json:dumps"]
    for more, level in (
        ((), "one-model"),
        (("attacker_settings.mine.level=whole-list",), "whole-list"),
    ):
        ((spec, attacker),) = chosen_attackers(load_config(Config, settings=[*settings, *more]))
        assert (spec.name, attacker.name, attacker.level) == ("mine", "mine", level)
    for more, message in (
        ("level=all", "level is 'all': expected one-model, all-enrolled, whole-list, inverting"),
        (
            "ubm.components=4",
            r"attacker_settings of mine: ubm: a user-supplied attacker takes only level and network",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            chosen_attackers(
                load_config(Config, settings=[*settings, f"attacker_settings.mine.{more}"])
            )


def test_short_names_are_safe_file_names():
    names = {
        "scores:/a/b/ecapa/exp/": "scores-ecapa",
        "scores:/a/run7/exp": "scores-run7",
        "vectors:x y;z": "vectors-x-y-z",
        "my/file.py:attack": "file-attack",
        "command:nice python3.11 /x/run_it.py {trials}": "command-run_it",
        "command:/opt/asv --in {trials}": "command-asv",
        "vectors:" + 100 * "x": "vectors-" + 32 * "x",
    }
    assert {entry: attacker_name(entry) for entry in names} == names


# --- the page -------------------------------------------------------------------------------------


def test_the_example_of_the_page_counts_in_the_least_privacy(layout, tmp_path):
    page = (ROOT / "docs/own_attackers.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(example.splitlines()) <= 30
    (tmp_path / "ltas.py").write_text(example)
    assert (
        run(layout, tmp_path / "out", f"{tmp_path}/ltas.py:attack", "gmm-ubm", lists="[f]").status
        == 0
    )
    results = results_of(tmp_path / "out")
    for row in results["summary"]:
        assert list(row["attackers"]) == ["ltas-attack", "gmm-ubm"]
        assert row["eer"] == min(row["attackers"].values())
    # long-term spectra distinguish the tiny set's speakers, so this is a serious attacker
    assert vp.condition(results, "f", "original", "ltas-attack")["eer"]["rocch"] < 0.4


def test_the_documents_list_every_prefix_preset_and_kind():
    page = (ROOT / "docs/own_attackers.md").read_text(encoding="utf-8")
    for form, summary in OUTSIDE.values():
        forms = " or ".join(f"`{one}`" for one in form.split(" or "))
        assert f"| {forms} | {summary} |" in page
    pages = [ROOT / "docs/attackers.md", ROOT / "docs/attackers_inside.md"]
    classic = "".join(page.read_text(encoding="utf-8") for page in pages)
    for name in PRESETS:
        assert f"**{name}" in classic or f"**{name}.**" in classic
    recipe = (ROOT / "recipes/voiceprivacy/README.md").read_text(encoding="utf-8")
    assert "| `attackers` | all that can run here |" in recipe
    for row in CATALOGUE.values():
        assert f"`{row.form}`" in classic or row.form in PRESETS
    for name in DEFAULT:
        assert f"`{name}`" in classic


CHEAT = """
def attack(training, seed):
    def score(enrolment, tested, trials):
        return [float(segment.startswith(model) or str(tested[segment]).count(model) > 0) for model, segment in trials]
    return score
"""


def test_an_attacker_that_reads_names_is_at_chance(layout, tmp_path):
    """Its scores are all equal: ids, paths and order of the trials tell nothing."""
    (tmp_path / "cheat.py").write_text(CHEAT)
    assert (
        run(layout, tmp_path / "out", f"{tmp_path}/cheat.py:attack", "gmm-ubm", lists="[f]").status
        == 0
    )
    results = results_of(tmp_path / "out")
    for scenario in SCENARIOS:
        assert vp.condition(results, "f", scenario, "cheat-attack")["eer"]["rocch"] == 0.5
