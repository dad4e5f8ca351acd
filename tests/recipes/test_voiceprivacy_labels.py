"""Who speaks in the tested recordings is the answer: no attacker may read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

import pytest
from voiceprivacy_runs import lines_of, noting_extractor, run_recipe, write, write_originals

from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.attackers import CATALOGUE
from spkver.attackers.registry import is_absent
from spkver.datadir import read_datadir

FAST = ("gmm-svm-cms", "gmm-ubm-inverted")
EVERY = tuple(CATALOGUE)
Written = dict[str, bytes]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The tiny set, anonymised by speaker, and the same with other speakers' names at the tested recordings."""
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
        anonymize_datadir(read_datadir(path), data / f"{path.name}_mcadams", config, side=side, jobs=1)
    permuted = Path(copytree(data, folder / "permuted"))
    for path in permuted.glob("tiny_test_trials_*"):
        names, speakers = zip(*(line.split() for line in lines_of(path / "utt2spk")), strict=True)
        told = dict(zip(names, speakers[3:] + speakers[:3], strict=True))
        write(path / "utt2spk", [f"{name} {speaker}" for name, speaker in told.items()])
        (path / "spk2utt").unlink(missing_ok=True)
        trials = [line.split()[:2] for line in lines_of(path / "trials")]  # a reader compares the two
        marked = [f"{model} {name} {'target' if told[name] == model else 'nontarget'}" for model, name in trials]
        write(path / "trials", marked)
        if (path / "anonymization.json").exists():  # whose list names recordings by their ids
            write(path / "wav.scp", [f"{name} {path}/wav/{name}.wav" for name in names])
    return data, permuted


def scores(pair: tuple[Path, Path], folder: Path, attackers: Sequence[str]) -> tuple[Written, Written]:
    """All scores of both, by set of conditions and attacker."""
    found: list[Written] = []
    for data in pair:
        output = folder / data.name
        settings = {"attackers": f"[{','.join(attackers)}]", "attacker_settings__all__ubm__components": 2}
        outcome = run_recipe(data, output, "--suffix", "_mcadams", "--until", "scores", **settings)
        assert outcome.status == 0, outcome.err
        found.append(
            {str(path.relative_to(output)): path.read_bytes() for path in sorted(output.glob("exp/*/*/*/scores"))}
        )
    return found[0], found[1]


def of(attacker: str, written: Written) -> Written:
    return {name: text for name, text in written.items() if Path(name).parent.name == attacker}


def test_labels_of_tested_recordings_change_no_score(pair: tuple[Path, Path], tmp_path: Path) -> None:
    true, permuted = scores(pair, tmp_path, FAST)
    for attacker in FAST:
        assert of(attacker, true)
        assert of(attacker, true) == of(attacker, permuted)


@pytest.fixture(scope="module")
def every(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Written, Written]:
    """Scores of all attackers by name that can run here."""
    folder = tmp_path_factory.mktemp("every")
    names = [name for name in EVERY if name not in ("onnx", "extractor") and not is_absent(name)]
    return scores(pair, folder, [*names, noting_extractor(folder)])


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the first one runs all attackers
@pytest.mark.parametrize("attacker", EVERY)
def test_labels_change_no_score_of_any_attacker_by_name(every: tuple[Written, Written], attacker: str) -> None:
    if attacker == "onnx" or is_absent(attacker):
        pytest.skip("no weights here; what scores its vectors is tested by extractor:")
    true, permuted = (of("extractor-own" if attacker == "extractor" else attacker, written) for written in every)
    assert true
    assert true == permuted
