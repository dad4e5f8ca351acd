"""Official figures of the baselines: equal to the challenges' files, and ranked with other systems."""

import json

import pytest
from command_lines import passes, refused

from evaluation.challenges import (
    BASELINES,
    baseline_figures,
    baseline_systems,
    official_name,
    order_rows,
    rank_systems,
    read_figures,
    read_system,
)
from evaluation.challenges.rank_files import ASR, ASV_ANON, SER, Section, write_rank_file
from evaluation.challenges.ranking import ComparedSystem, OrderingRule, order_systems
from evaluation.uncertainty import Interval
from spkbase.errors import DataError

FOLDERS = {
    "2024": "vpc2024_results",
    "2026": "vpc2026_results/track1",
    "2026-track2": "vpc2026_results/track2",
}
FILES_2024 = {
    "B1": "b1b",
    "B2": "mcadams",
    "B3": "sttts",
    "B4": "nac",
    "B5": "asrbn_hifigan_bn_tdnnf_wav2vec2_vq_48_v1",
    "B6": "asrbn_hifigan_bn_tdnnf_600h_vq_48_v1",
}


def figures_by_place(figures):
    return {
        figure.place: figure.value.value
        for figure in figures
        if figure.measure in ("EER", "WER", "UAR")
    }


@pytest.mark.golden
@pytest.mark.parametrize("challenge", FOLDERS)
def test_every_figure_of_the_challenges_files_is_known(shared, challenge):
    known = baseline_figures(challenge)
    files = {}
    for path in (shared / "formats" / FOLDERS[challenge]).glob("result_for_rank_*"):
        name = official_name(path)
        if name:  # not sttts_sarina, a variant of B3
            files[name] = read_figures(path)
    assert known.keys() == files.keys()
    for name, figures in files.items():
        assert figures_by_place(known[name]) == pytest.approx(figures_by_place(figures))


@pytest.mark.golden
@pytest.mark.parametrize(("file", "name"), [("mcadams", "B2"), ("tts_old_c", "B1a")])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_baselines_of_2022_have_the_averages_of_their_summaries(shared, file, name, split):
    path = shared / "formats/vpc2022_results" / f"RESULTS_summary_{file}"
    expected = read_system(path, split=split)
    systems = {system.name: system for system in baseline_systems("2022", split=split)}
    assert official_name(path) == name
    assert systems[name].eer.value == pytest.approx(expected.eer.value)
    for measure, rate in expected.utilities.items():
        assert systems[name].utilities[measure].value == pytest.approx(rate.value, abs=5e-4)


def test_published_eers_of_all_baselines():
    """Means of the lists, by hand; for 2022 the published weighted averages of B1.b and B2."""
    expected = {
        ("2024", "B1"): 6.0745,
        ("2024", "B5"): 34.3375,
        ("2026", "B4"): 14.333,
        ("2026-track2", "BM3"): 40.567,
        ("2022", "B1b"): 9.18,
        ("2022", "B2"): 7.77,
    }
    for (challenge, name), eer in expected.items():
        systems = {system.name: system for system in baseline_systems(challenge)}
        assert 100 * systems[name].eer.value == pytest.approx(eer, abs=5e-3)
        assert not systems[name].broken
    assert [len(baseline_systems(challenge)) for challenge in BASELINES] == [3, 6, 4, 3]


def write_toolkit_file(path, eer=20.0, wer=4.0):
    row = {"dataset": "libri", "split": "test"}
    lists = []
    for sex in ("f", "m"):
        lists.append(
            row | {"gender": sex, "enrollment": "anon", "trial": "anon", "EER": eer + (sex == "m")}
        )
    emotions = {"dataset": "IEMOCAP", "split": "test", "ser": "anon", "UAR": 40.0, "ACC_sad": 1.0}
    words = row | {"asr": "anon", "WER": wer}
    write_rank_file(
        path, [Section(SER, [emotions]), Section(ASR, [words]), Section(ASV_ANON, lists)]
    )


@pytest.mark.parametrize("name", FILES_2024)
def test_files_of_the_toolkit_are_named_and_refuse_another_label(tmp_path, name):
    path = tmp_path / f"result_for_rank_{FILES_2024[name]}"
    write_toolkit_file(path)
    assert [system.name for system in rank_systems([path]).systems] == [name]
    assert [system.name for system in rank_systems([path], names=["mine"]).systems] == ["mine"]
    assert [system.name for system in rank_systems([path], names=[name]).systems] == [name]
    for other in FILES_2024.keys() - {name}:
        with pytest.raises(DataError, match=f"label is {other}, but .* results of {name}"):
            rank_systems([path], names=[other])


def test_rank_shows_a_system_among_the_baselines_in_one_table(tmp_path):
    write_toolkit_file(tmp_path / "result_for_rank_mine", eer=25.0, wer=4.36)
    shown = passes("rank", tmp_path / "result_for_rank_mine", "--baselines", "2024")
    assert shown.stderr == ""  # the toolkit's file and the baselines have the same attacker
    lines = shown.stdout.splitlines()
    assert len(lines) <= 20
    assert (
        "20 %         B3 4.35, mine 4.36, B5 4.37, B4 5.90, B6 9.09"
        "  B4 42.78, mine 40.00, B5 38.17, B3 37.57, B6 36.13"
    ) in lines
    assert "40 %         none" in "\n".join(lines)
    assert lines[-1].endswith("EER of libri_test f, libri_test m")
    assert str(tmp_path) not in shown.stdout
    reasons = passes("rank", "--baselines", "2024", "--reasons").stdout
    assert "2. B5: EER 34.34 % reaches 10 %; WER 4.37 % is number 2 of 4" in reasons
    report = json.loads(passes("rank", "--baselines", "2026-track2", "--json", "-").stdout)
    assert report["figures"].keys() == {"BM1", "BM2", "BM3"}


def test_a_file_of_a_baseline_has_another_name_than_the_baseline(tmp_path):
    folder = tmp_path / "again"
    folder.mkdir()
    write_toolkit_file(folder / "result_for_rank_nac")
    names = [
        system.name
        for system in rank_systems([folder / "result_for_rank_nac"], baselines="2024").systems
    ]
    assert names == ["B4 (again)", "B1", "B2", "B3", "B4", "B5", "B6"]


def test_utility_of_another_file_joins_a_system(tmp_path):
    write_toolkit_file(tmp_path / "result_for_rank_mine", wer=50.0)
    write_toolkit_file(tmp_path / "result_for_rank_official", wer=3.5)
    source = tmp_path / "result_for_rank_official"
    files = [tmp_path / "result_for_rank_mine"]
    for key in ("", "mine"):
        (system,) = rank_systems(files, utility_from={key: source}).systems
        assert system.utilities["wer"].value == pytest.approx(0.035)
        assert system.eer.value == pytest.approx(0.205)
        assert system.notes[-1] == f"WER, UAR from {source}"
    shown = passes("rank", *files, source, "--utility-from", f"mine={source}").stdout
    assert f"mine: WER, UAR from {source}" in shown
    message = refused("rank", *files, source, "--utility-from", source)
    assert "expected one of mine, official (name its system: SYSTEM=FILE)" in message
    (tmp_path / "result_for_rank_empty").write_text(
        "---- ASV_eval^anon results ----\ndataset split gender enrollment trial EER\n"
        "libri test f anon anon 3.5\n"
    )
    with pytest.raises(DataError, match="no WER, UAR or other utility"):
        rank_systems(files, utility_from={"": tmp_path / "result_for_rank_empty"})


def test_rows_name_the_places_that_intervals_allow():
    first = ComparedSystem("a", Interval(0.35), {"wer": Interval(0.05, 0.04, 0.06)})
    second = ComparedSystem("b", Interval(0.25), {"wer": Interval(0.052, 0.042, 0.062)})
    rows = order_rows(order_systems([first, second], OrderingRule("", (0.2, 0.3), ("wer",))))
    assert rows == [
        {"minimum EER": "20 %", "by WER": "a 5.00 (1 to 2), b 5.20 (1 to 2)"},
        {"minimum EER": "30 %", "by WER": "a 5.00"},
    ]


def test_unknown_challenges_are_refused():
    with pytest.raises(DataError, match="expected baselines of 2022, 2024, 2026, 2026-track2"):
        baseline_figures("2020")
