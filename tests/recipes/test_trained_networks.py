"""Networks that users' modules train: once for each training set, kept over kills, compared in every way."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import voiceprivacy_runs as vp
from recipe_runs import refused, results_of

from evaluation.embeddings import read_embeddings
from spkver.attackers import make_attacker, parse_spec
from spkver.datadir import read_datadir
from spkver.extractors import embed_directory, open_extractor
from spkver.voiceprivacy.choosing import attackers_run
from spkver.voiceprivacy.settings import Config

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/own_extractors.md").read_text(encoding="utf-8")
EXAMPLE = next(
    code for code in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "def train(" in code
)
KILLED = """
import os
from pathlib import Path

def train(training, folder, seed, settings, device, threads, progress):
    calls = len(list(folder.glob("call*")))
    (folder / f"call{calls}").write_text(os.environ["OMP_NUM_THREADS"])
    if not calls and settings.get("kill"):
        os.kill(os.getpid(), 9)

def load(folder):
    return lambda samples, rate: [samples.std(), abs(samples).mean(), 1.0]
"""


@pytest.fixture
def module(tmp_path):
    """The example of the page, as a file."""
    file = tmp_path / "mlp.py"
    file.write_text(EXAMPLE)
    return file


def run(data, output, *attackers, until="report", settings=None, **others):
    chosen = {
        "attackers": json.dumps(attackers),
        "attacker_settings": json.dumps(settings or {}),
        **others,
    }
    return vp.run_recipe(data, output, "--until", until, lists="[f]", **chosen)


def networks(output):
    return sorted(path.parent for path in output.glob("attackers/*/network-*/trained.json"))


def test_the_example_of_the_page_is_short_and_trained_once_for_each_training_set(
    layout, module, tmp_path
):
    assert len(re.findall(r"^.+$", EXAMPLE, re.M)) <= 45
    output = tmp_path / "out"
    entries = f"trained:{module}", f"trained-single-test:{module}"
    assert run(layout, output, *entries).status == 0
    assert [folder.parent.name for folder in networks(output)] == ["tiny_train", "tiny_train_anon"]
    results = results_of(output)
    for row in results["summary"]:
        assert list(row["attackers"]) == ["trained-mlp", "trained-single-test-mlp"]
    assert [row["scenario"] for row in results["summary"]] == list(vp.SCENARIOS)
    assert vp.condition(results, "f", "original", "trained-single-test-mlp")["eer"]["rocch"] < 0.4
    assert results["attackers_run"]["networks"] == ["trained-mlp", "trained-single-test-mlp"]
    log = (output / "run.log").read_text()
    assert len(re.findall(r"trained-mlp: 3 of 3 rounds, held-out EER 0\.\d+", log)) == 2


def test_results_describe_how_networks_were_trained(layout, tmp_path):
    file = tmp_path / "own.py"
    record = {"held_out_eer": {"0": 0.4, "8": 0.1, "16": 0.2}, "steps": 8, "speakers": 3, "rate": 1}
    written = f"(folder / 'training.json').write_text({json.dumps(record)!r})"
    file.write_text(KILLED.replace("    calls =", f"    {written}\n    calls ="))
    settings = {f"trained:{file}": {"settings": {"kill": False}}}
    output = tmp_path / "out"
    entries = f"trained:{file}", f"trained-single-test:{file}"
    assert run(layout, output, *entries, settings=settings).status == 0
    results = results_of(output)
    folders = [str(folder.relative_to(output)) for folder in networks(output)]
    stated = results["trained_networks"]
    assert sorted(network["folder"] for network in stated) == folders
    assert {choice["network"] for choice in results["choices"]} == set(folders)
    for network in stated:
        assert network["training"] in network["folder"].split("/")
        assert network["attackers"] == ["trained-own", "trained-single-test-own"]
        assert network.items() >= record.items()
        assert (network["eer_before"], network["eer_after"], network["seed"]) == (0.4, 0.1, 0)


def test_a_record_of_another_form_is_an_error_of_the_trainer(layout, tmp_path):
    file = tmp_path / "own.py"
    written = "(folder / 'training.json').write_text('[1]')"
    file.write_text(KILLED.replace("    calls =", f"    {written}\n    calls ="))
    settings = {f"trained:{file}": {"settings": {"kill": False}}}
    outcome = run(layout, tmp_path / "out", f"trained:{file}", "gmm-ubm", settings=settings)
    refused(
        outcome,
        r"training\.json: attacker .trained-own.: expected an object with held_out_eer and steps",
    )


def test_networks_are_reused_and_the_one_of_original_speech_serves_a_second_anonymiser(
    own, tmp_path
):
    module = tmp_path / "own.py"
    module.write_text(KILLED)
    output = tmp_path / "out"
    assert run(own, output, f"trained:{module}", until="training").status == 0
    before = vp.stamps(networks(output))
    for twin in own.glob(f"*{vp.SUFFIX}"):
        other = Path(shutil.copytree(twin, own / twin.name.replace(vp.SUFFIX, "_other")))
        (other / "wav.scp").write_text((other / "wav.scp").read_text().replace(vp.SUFFIX, "_other"))
    chosen = {"attackers": json.dumps([f"trained:{module}"]), "lists": "[f]"}
    second = vp.run_recipe(own, output, "--suffix", "_other", "--until", "training", **chosen)
    assert second.status == 0, second.err
    after = vp.stamps(networks(output))
    assert [folder.parent.name for folder in after] == [
        "tiny_train",
        "tiny_train_anon",
        "tiny_train_other",
    ]
    assert before.items() <= after.items()
    module.write_text(f"{KILLED}\n# another version")
    assert run(own, output, f"trained:{module}", until="training").status == 0
    assert len(networks(output)) == 5


def test_a_killed_training_is_resumed_in_its_folder(layout, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(KILLED)
    settings = {f"trained:{file}": {"settings": {"kill": True}, "threads": 2}}
    output = tmp_path / "out"
    killed = run(layout, output, f"trained:{file}", settings=settings)
    refused(killed, "attacker 'trained-own': its process ended with status -9")
    resumed = run(layout, output, f"trained:{file}", until="training", settings=settings)
    assert resumed.status == 0, resumed.err
    for folder in networks(output):
        assert sorted(path.name for path in folder.glob("call*")) == ["call0", "call1"]
        assert (folder / "call1").read_text() == "2"


def test_an_endless_training_is_stopped_without_affecting_other_attackers(layout, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import time\ndef train(*arguments):\n    time.sleep(600)\ndef load(folder):\n    return None\n"
    )
    outcome = run(layout, tmp_path / "out", f"trained:{file}", "gmm-ubm", attackers_time_limit=1)
    refused(outcome, "trained-own: .*ended after 1 s, the time limit")
    assert list(results_of(tmp_path / "out")["summary"][0]["attackers"]) == ["gmm-ubm"]


def test_backends_are_trained_on_speakers_held_out_from_the_network(layout, tmp_path):
    file = tmp_path / "own.py"
    heard = '(folder / "heard").write_text(" ".join(row.speaker for row in training.utterances))'
    file.write_text(KILLED.replace("    if not", f"    {heard}\n    if not"))
    settings = {f"trained:{file}": {"settings": {"kill": False}}}
    output = tmp_path / "out"
    outcome = run(layout, output, f"trained:{file}", until="training", settings=settings)
    assert outcome.status == 0, outcome.err
    choice = json.loads((output / "attackers/tiny_train_anon/trained-own/choice.json").read_text())
    for folder in networks(output):
        heard = set((folder / "heard").read_text().split())
        assert len(heard) == len(vp.TRAINING) - choice["speakers"] == 3


def test_a_trained_network_is_an_extractor(layout, module, tmp_path):
    output = tmp_path / "out"
    assert run(layout, output, f"trained:{module}", until="scores").status == 0
    folder = networks(output)[0]
    directory = read_datadir(layout / "tiny_test_trials_f")
    extractor = open_extractor(f"trained:{folder}")
    embeddings = embed_directory(directory, extractor, tmp_path / "vectors.h5")
    (kept,) = output.glob("work/vectors/trained-*/tiny_test_trials_f-*.h5")
    np.testing.assert_array_equal(embeddings.vectors, read_embeddings(kept).vectors)
    (folder / "network.joblib").write_bytes(b"another")
    with pytest.raises(Exception, match=r"network\.joblib changed since the network was trained"):
        open_extractor(f"trained:{folder}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("def tra", "cannot be read"),
        ("x = 1", "defines no function train"),
    ],
)
def test_unusable_modules_are_refused_before_the_run_starts(layout, tmp_path, text, message):
    file = tmp_path / "own.py"
    if text is not None:
        file.write_text(text)
    refused(run(layout, tmp_path / "out", f"trained:{file}"), message, "own_extractors.md")


def test_attackers_can_be_declared_as_neural_networks():
    entry = "scores:somewhere/exp"
    assert not parse_spec(entry).is_network
    assert parse_spec(entry, {"network": True}).is_network
    assert not parse_spec("trained:mine.py", {"network": False}).is_network
    with pytest.raises(Exception, match="expected true or false"):
        parse_spec(entry, {"network": "yes"})
    official = Config(
        attackers=("official",),
        attacker_settings={"official": {"preset": "scores:elsewhere", "network": True}},
    )
    assert attackers_run(official).networks == ("official",)
    plug_in = parse_spec("os:getcwd", {"network": True})
    assert make_attacker(plug_in, {"os:getcwd": {"network": True}}).name == plug_in.name
