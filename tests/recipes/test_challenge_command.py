"""``spkver challenge``: from the challenge's folders to its own block, a rank, an archive and a check of what lacks."""

import re
import shutil
import time
import zipfile
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from voiceprivacy_runs import (
    ENROLLED,
    SETTINGS,
    STRANGERS,
    SUFFIX,
    TRAINING,
    write_directory,
    write_twin,
)

from spkbase.errors import DataError
from spkbase.files import write_text
from spkver.cli import main
from spkver.voiceprivacy import CHALLENGES, check_submission, find_suffix

pytestmark = pytest.mark.whole


def write_sets(root, names):
    """Write the named directories of a challenge, tiny, with twins."""
    everybody = [speaker for sex in "fm" for speaker in ENROLLED[sex]]
    for name in names:
        part = name.partition("_trials_")[2]
        if part:
            sexes = {"mixed": "fm"}.get(part, part)
            spoken = []
            models = []
            for sex in sexes:
                models += ENROLLED[sex]
                spoken += [(one, take) for one in ENROLLED[sex] + STRANGERS[sex] for take in (3, 4)]
            write_directory(root / name, spoken, models=models)
        elif name.endswith("_enrolls"):
            write_directory(
                root / name, [(one, take) for one in everybody for take in (1, 2)], enrols=True
            )
        else:
            write_directory(root / name, [(one, take) for one in TRAINING for take in (1, 2, 3)])
        write_twin(root / name)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    root = tmp_path_factory.mktemp("challenge") / "data"
    root.mkdir()
    write_sets(root, CHALLENGES["2024"].directories)
    return root


def invoke(*arguments):
    def leave_out(results, path, **options):
        write_text(path, "left out\n")

    with patch("evaluation.reports.write_page", leave_out):
        result = CliRunner().invoke(main, ["challenge", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def options(output):
    values = {
        **SETTINGS,
        "attackers": "[supervector-cosine]",
        "challenge.attacker": "supervector-cosine",
        "evaluation.resamples": 0,
    }
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    return ["--year", "2024", "--jobs", "1", "--no-utility", "-o", output, *settings]


def test_folders_as_delivered_give_report_rank_archive_and_check(shipped, tmp_path):
    """Without any setting but the attacker's, which must finish in seconds."""
    done = invoke(shipped, *options(tmp_path / "mine"))
    assert done.exit_code == 0, done.output
    block = done.stdout.partition("Under the challenge's name")[2]
    assert re.search(r"libri +test +m +anon +anon +\d", block)
    assert "Protocol" not in block
    assert re.search(r"^B5 +34\.34 ", done.stdout, re.M)
    archive = tmp_path / f"mine/exp/results_summary/result_for_submission{SUFFIX}.zip"
    assert f"Archive: {archive}" in done.stdout
    assert f"exp/results_summary/result_for_rank{SUFFIX}" in zipfile.ZipFile(archive).namelist()
    end = done.stdout.splitlines()[-1]
    assert end.startswith("Incomplete for submission: WER of libri_dev, ")
    for lacking in ("WER of libri_dev", "WER of libri_test", "UAR of IEMOCAP_dev"):
        assert lacking in end
    assert "EER of" not in end
    assert archive.with_suffix(".txt").read_text().strip().endswith(end)


def test_a_folder_of_recordings_is_checked_like_sets_beside_the_originals(shipped, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(shipped, moved)
    for twin in moved.glob(f"*{SUFFIX}"):
        shutil.copytree(twin / "wav", tmp_path / "mine" / twin.name.removesuffix(SUFFIX))
        shutil.rmtree(twin)
    found = check_submission(moved, "_mine", "2024", anonymised=tmp_path / "mine")
    assert not any(checked.faults for checked in found.directories)
    assert [checked.recordings for checked in found.directories] == [
        checked.recordings for checked in check_submission(shipped, SUFFIX, "2024").directories
    ]
    with patch("spkver.voiceprivacy.submission.RATE", 8000):
        found = check_submission(moved, "_mine", "2024", anonymised=tmp_path / "mine")
    assert {checked.faults for checked in found.directories} == {("expected 8000 Hz",)}
    shown = invoke(moved, "--year", "2024", "--anonymised", tmp_path / "mine", "--check")
    assert "result_for_rank_mine (EER, WER, UAR)" in shown.stdout


@pytest.mark.parametrize("year", CHALLENGES)
def test_a_check_names_every_set_in_seconds(tmp_path, year):
    names = CHALLENGES[year].directories
    write_sets(tmp_path, names)
    shutil.rmtree(tmp_path / f"{names[0]}{SUFFIX}")
    first = next(iter(sorted((tmp_path / f"{names[1]}{SUFFIX}/wav").iterdir())))
    first.unlink()
    (tmp_path / f"{names[1]}{SUFFIX}/wav.scp").unlink()
    begun = time.perf_counter()
    checked = check_submission(tmp_path, SUFFIX, year, jobs=1)
    assert time.perf_counter() - begun < 20
    faults = {found.name: found.faults for found in checked.directories}
    assert tuple(faults) == names
    assert faults[names[0]] == (f"no folder {names[0]}{SUFFIX}",)
    assert faults[names[1]][0] == f"1 missing: {first.stem}"
    assert not any(found.faults for found in checked.directories[2:])
    assert not checked.is_complete
    assert find_suffix(tmp_path, year) == SUFFIX
    shown = invoke(tmp_path, "--year", year, "--check", "-o", tmp_path / "out")
    assert shown.exit_code == 1
    assert f"result_for_rank{SUFFIX} (EER, WER, UAR)" in shown.stdout


def test_unclear_suffixes_are_named(tmp_path):
    write_sets(tmp_path, ["libri_test_enrolls"])
    shutil.copytree(tmp_path / f"libri_test_enrolls{SUFFIX}", tmp_path / "libri_test_enrolls_other")
    with pytest.raises(DataError, match=f"there are {SUFFIX}, _other"):
        find_suffix(tmp_path, "2024")
    with pytest.raises(DataError, match="there are none"):
        find_suffix(tmp_path, "2026-track2")
    done = invoke(tmp_path, "--year", "2024")
    assert done.exit_code == 2
    assert "give --suffix, or --anonymised DIR" in done.output
