"""Who speaks in the tested recordings is the answer: no attacker may read it, nor do the names of recordings matter."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
from voiceprivacy_runs import lines_of, noting_extractor, run_recipe, write, write_originals

from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.attackers import CATALOGUE
from spkver.attackers.registry import is_absent
from spkver.datadir import read_datadir

pytestmark = pytest.mark.whole

FAST = ("gmm-ubm", "gmm-svm-cms", "ivector-self-trained", "gmm-ubm-inverted")
EVERY = tuple(CATALOGUE)
OF_PHONES = ("durations",)
OF_FILES = tuple(name for name, row in CATALOGUE.items() if row.base in ("onnx", "trained"))
"""Attackers with a network of the user's; what scores its vectors is tested by extractor:."""


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """The tiny set, anonymised by speaker; with other speakers' names, or with other ids, at the tested recordings."""
    folder = tmp_path_factory.mktemp("labels")
    data = write_originals(folder / "true")
    for path in sorted(data.iterdir()):
        side = "trials" if "trials" in path.name else "enrolment"
        level = "utterance" if path.name == "tiny_train" else "speaker"
        said = [
            f"{name.split()[0]} {'SO DO WE'[number % 5 :]} {name[:4]}"
            for number, name in enumerate(lines_of(path / "utt2spk"))
        ]
        write(path / "text", said)
        config = AnonymizerConfig(level=level)
        anonymize_datadir(
            read_datadir(path), data / f"{path.name}_mcadams", config, side=side, jobs=1
        )
    others = [Path(copytree(data, folder / name)) for name in ("permuted", "renamed")]
    for path in [path for root in others for path in root.glob("tiny_test_trials_*")]:
        names, speakers = zip(*(line.split() for line in lines_of(path / "utt2spk")), strict=True)
        told, called = dict(zip(names, speakers, strict=True)), {name: name for name in names}
        if path.parent.name == "permuted":
            told = dict(zip(names, speakers[3:] + speakers[:3], strict=True))
        else:  # in reverse order
            called = {name: f"{name[0]}x{99 - number}" for number, name in enumerate(sorted(names))}
        # a reader compares the two lists
        trials = [line.split()[:2] for line in lines_of(path / "trials")]
        marks = [
            f"{model} {called[name]} {'' if told[name] == model else 'non'}target"
            for model, name in trials
        ]
        write(path / "trials", marks)
        said = [line.partition(" ") for line in lines_of(path / "text")]
        write(path / "text", [f"{called[name]} {words}" for name, _, words in said])
        write(path / "utt2spk", sorted(f"{called[name]} {told[name]}" for name in names))
        write(path / "wav.scp", sorted(f"{called[name]} {path}/wav/{name}.wav" for name in names))
        (path / "spk2utt").unlink(missing_ok=True)
    return [data, *others]


def scores(sets, folder, attackers, sexes="fm"):
    """The scores of each set by file, model and recording; renamed recordings have their first names again."""
    lists = [[lines_of(root / f"tiny_test_trials_{sex}/trials") for sex in sexes] for root in sets]
    names = [[line.split()[1] for lines in of_set for line in lines] for of_set in lists]
    first, found = dict(zip(names[2], names[0], strict=True)), []
    for data in sets:
        output = folder / data.name
        settings = {
            "attackers": f"[{','.join(attackers)}]",
            "attacker_settings__all__ubm__components": 2,
            "lists": f"[{','.join(sexes)}]",
        }
        outcome = run_recipe(data, output, "--suffix", "_mcadams", "--until", "scores", **settings)
        assert outcome.status == 0, outcome.err
        written = {}
        for path in output.glob("exp/*/*/*/scores"):
            of_attacker, file = (
                written.setdefault(path.parent.name, {}),
                str(path.relative_to(output)),
            )
            for model, name, value in map(str.split, lines_of(path)):
                of_attacker[file, model, first.get(name, name)] = float(value)
        found.append(written)
    return found


def check_same(attacker, written):
    """To the bit; but sums over all tested recordings are rounded in the order of their names."""
    true, permuted, renamed = (one[attacker] for one in written)
    assert true == permuted
    if attacker == "fusion" or any(
        ending in attacker for ending in ("-adapted", "-enrolled-plda", "-self-trained")
    ):
        renamed = {key: pytest.approx(value, abs=1e-9) for key, value in renamed.items()}
    assert true == renamed


def test_neither_labels_nor_names_of_tested_recordings_change_a_score(sets, tmp_path):
    written = scores(sets, tmp_path, FAST, sexes="f")
    for attacker in FAST:
        check_same(attacker, written)


@pytest.fixture(scope="module")
def every(sets, tmp_path_factory):
    """Scores of all attackers by name that can run here."""
    folder = tmp_path_factory.mktemp("every")
    left_out = (*OF_FILES, *OF_PHONES, "extractor")
    names = [name for name in EVERY if name not in left_out and not is_absent(name)]
    return scores(sets, folder, [*names, noting_extractor(folder)])


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the first one runs all attackers
@pytest.mark.parametrize("attacker", EVERY)
def test_labels_and_names_change_no_score_of_any_catalogued_attacker(every, attacker):
    if attacker in OF_PHONES:
        pytest.skip("no phone is recognised in these tones")
    if attacker in OF_FILES or is_absent(attacker):
        pytest.skip("no weights here; what scores its vectors is tested by extractor:")
    check_same("extractor-own" if attacker == "extractor" else attacker, every)
