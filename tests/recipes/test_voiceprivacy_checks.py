"""The sanity section, which sets there are and what they train on, what anonymises, and the averages."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml
from voiceprivacy_runs import ENROLLED, SUFFIX, lines_of, run_recipe, write, write_layout

from evaluation.challenges.rank_files import ASV, ASV_ANON, read_rank_file, records
from evaluation.challenges.systems import split_of
from spkbase.configuration import load_config
from spkbase.errors import ConfigError, DataError
from spkver.attackers import PRESETS, absent_attackers, default_attackers
from spkver.datadir import DataDir
from spkver.voiceprivacy import checks
from spkver.voiceprivacy.choosing import chosen_attackers, describe_absent, find_anonymizers
from spkver.voiceprivacy.outputs import averages, challenge_rows
from spkver.voiceprivacy.scores import attacks_of
from spkver.voiceprivacy.sets import Sets, find_datasets, read_sets
from spkver.voiceprivacy.settings import ChallengeConfig, Config
from spkver.voiceprivacy.table import summarise, verdict

CONFIGS = Path(__file__).resolve().parents[2] / "recipes" / "voiceprivacy" / "config"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny set; read only."""
    return write_layout(tmp_path_factory.mktemp("layout"))


def conditions(**eers: float) -> list[dict[str, Any]]:
    """Conditions of one set and two attackers, the second a little weaker; scenarios by their first letter."""
    names = {"o": "original", "i": "ignorant", "l": "lazy-informed", "s": "semi-informed"}
    return [
        {
            "dataset": "x_test",
            "gender": "all",
            "scenario": scenario,
            "attacker": attacker,
            "eer": {
                "rocch": eers[letter] + more,
                "interpolated": eers[letter] + more,
                "speechbrain": eers[letter] + more,
            },
            "zebra": {"population": 0.3, "individual": 1.0, "tag": "A"},
            "intervals": {"eer.rocch": {"low": eers[letter] / 2, "high": 2 * eers[letter]}},
            "notes": {},
            "linkability": {"linkability": [0.9, 0.5]},
            "n_enrolled": 30,
            "n_trial_speakers": 30,
            "n_target": 200,
            "n_nontarget": 2000,
        }
        for letter, scenario in names.items()
        for attacker, more in (("a", 0.0), ("b", 0.01))
    ]


def only(attacker: str) -> dict[str, str]:
    """Settings of one attacker, whose results go under the challenge's name."""
    return {"attackers": f"[{attacker}]", "challenge__attacker": attacker}


def levels(found: Any) -> list[str]:
    return [one.level for one in found]


# --- sanity ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "rates", "expected", "words"),
    [
        ("attacker_strength", {"o": 0.05}, ["ok"], "5.0 %"),
        ("attacker_strength", {"o": 0.051}, ["warning"], "5.1 %"),
        ("attacker_order", {"s": 0.1}, ["ok", "ok"], "lazy-informed, 10.0 % against 20.0 %"),
        ("attacker_order", {"s": 0.25}, ["warning", "ok"], "lazy-informed one, 25.0 % against 20.0 %"),
        ("attacker_order", {"s": 0.35}, ["warning", "warning"], "ignorant one, 35.0 % against 30.0 %"),
        ("lazy_order", {"l": 0.3}, [], ""),
        ("lazy_order", {"l": 0.4}, ["note"], "40.0 % against 30.0 %"),
        ("other_notes", {}, [], ""),
        ("other_notes", {"i": 0.6}, ["warning"], "x_test all ignorant a"),
    ],
)
def test_rates_that_mean_less_than_they_seem_to_are_told(check, rates, expected, words, tmp_path):
    config = load_config(Config, settings=["evaluation.replicates=0"])
    more = {"attacker_order": (config, tmp_path), "lazy_order": ()}.get(check, (config,))
    found = list(getattr(checks, check)(conditions(**{"o": 0.01, "i": 0.3, "l": 0.2, "s": 0.1} | rates), *more))
    assert levels(found) == expected
    assert words in " ".join(one.text for one in found)


@pytest.mark.parametrize(("gap", "level"), [(0.02, "note"), (1.5, "warning")])
@pytest.mark.parametrize("n_draws", [1, 3])
def test_a_difference_that_may_be_chance_is_a_note(gap, level, n_draws, tmp_path):
    rng, speakers = np.random.default_rng(3), [f"s{number:02d}" for number in range(12)]
    rows = [(model, f"{owner}-{take}", model == owner) for owner in speakers for take in range(6) for model in speakers]
    (tmp_path / "key").write_text("".join(f"{m} {s} {'target' if t else 'nontarget'}\n" for m, s, t in rows))
    (tmp_path / "utt2spk").write_text("".join(f"{s}-{take} {s}\n" for s in speakers for take in range(6)))
    common = rng.standard_normal(len(rows))
    found = {}
    for scenario, distance in (("lazy-informed", 2.5), ("semi-informed", 2.5 - gap)):
        draws = []
        for draw in range(n_draws):
            values = common + 0.3 * rng.standard_normal(len(rows)) + distance * np.array([row[2] for row in rows])
            name = f"{scenario}-{draw}"
            lines = (f"{m} {s} {value:.6f}\n" for (m, s, _), value in zip(rows, values, strict=True))
            (tmp_path / name).write_text("".join(lines))
            draws.append({"scores": name})
        files = {"scores": draws[0]["scores"], "key": "key", "segment_speakers": "utt2spk"}
        found[scenario] = files | {"draws": draws}
    given = [one | found.get(one["scenario"], {}) for one in conditions(o=0.01, i=0.3, l=0.05, s=0.06)]
    first = next(iter(checks.attacker_order(given, Config(), tmp_path)))
    assert first.level == level
    assert ("may be chance" in first.text) == (level == "note")
    assert "(difference " in first.text


@pytest.mark.parametrize(("speakers", "level"), [(19, "warning"), (20, "ok")])
def test_few_speakers_are_a_warning(speakers, level):
    some = [{**one, "n_enrolled": speakers} for one in conditions(o=0.1, i=0.1, l=0.1, s=0.1)]
    (found,) = checks.few_speakers(some, Config())
    assert found.level == level
    assert "0.5 points" in found.text  # one of 200 target trials


def test_missing_intervals_are_a_warning():
    some = [
        {**one, "intervals": {}, "notes": {"intervals": "none: too few"}}
        for one in conditions(o=0.1, i=0.1, l=0.1, s=0.1)
    ]
    (found,) = checks.few_speakers(some, Config())
    assert (found.level, "too few" in found.text) == ("warning", True)


def test_original_results_that_change_with_the_anonymiser_are_a_warning():
    now, config = conditions(o=0.02, i=0.3, l=0.2, s=0.1), Config()
    same = {
        "config": json.loads(
            json.dumps({"seed": 0, "attackers": list(config.attackers), "attacker_settings": {}, "training_sets": {}})
        ),
        "conditions": conditions(o=0.02, i=0.4, l=0.4, s=0.4),
    }
    other = {**same, "conditions": conditions(o=0.03, i=0.3, l=0.2, s=0.1)}
    foreign = deepcopy(same) | {"config": {**same["config"], "seed": 1}}
    assert levels(checks.independence(now, Sets((), {}), config, {"results_b.json": same})) == ["ok"]
    assert levels(checks.independence(now, Sets((), {}), config, {"results_b.json": other})) == ["warning"]
    assert levels(checks.independence(now, Sets((), {}), config, {"results_b.json": foreign})) == ["note", "note"]
    assert levels(checks.independence(now, Sets((), {}), config, {})) == ["note"]


def sets_of(data: Path, output: Path) -> Any:
    return read_sets(data, output, SUFFIX, Config(), jobs=1)


def test_speakers_and_utterances_in_two_places_are_warnings(layout, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    for end in ("", SUFFIX):
        directory = data / f"tiny_train{end}"
        write(directory / "utt2spk", [line.replace(" f101", " f001") for line in lines_of(directory / "utt2spk")])
        write(directory / "spk2gender", [line.replace("f101", "f001") for line in lines_of(directory / "spk2gender")])
        tried, enrolled = data / f"tiny_test_trials_f{end}", data / f"tiny_test_enrolls{end}"
        for name, line in (
            ("wav.scp", f"f001-3 {tried.name}/wav/f001-3.wav"),
            ("utt2spk", "f001-3 f001"),
            ("enrolls", "f001-3"),
        ):
            write(enrolled / name, [*lines_of(enrolled / name), line])
    sets = sets_of(data, tmp_path / "out")
    attack = next(attack for *_, attack in attacks_of(sets, SUFFIX))
    for directory in (*attack.training, attack.background.original, *attack.background.anonymised):
        assert set(directory.speakers.values()) == {"f102", "f103", "m101", "m102", "m103"}
        assert len(directory.recordings) == len(directory.speakers) == 15
    found = list(checks.shared_speakers(sets))
    assert [(one.level, one.check) for one in found] == [
        ("warning", "speaker overlap"),
        ("warning", "utterance overlap"),
    ]
    assert "1 of 9 speakers are in tiny_train too: f001." in found[0].text


def test_equal_audio_is_a_warning_wherever_it_stands(layout, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    shutil.copy(data / "tiny_test_trials_f/wav/f002-4.wav", data / "tiny_train/wav/m101-2.wav")
    found = list(checks.duplicate_audio(sets_of(data, tmp_path / "out")))
    assert levels(found) == ["warning", "ok"]
    assert "tiny_test_trials_f/f002-4 = tiny_train/m101-2" in found[0].text


@pytest.mark.parametrize("change", [0, 20_000, 39_999])
def test_files_that_differ_anywhere_are_not_equal(tmp_path, change):
    """The middle alone is compared first."""
    content = np.random.default_rng(0).bytes(40_000)
    contents = {"a": content, "b": content, "c": bytes(byte ^ (at == change) for at, byte in enumerate(content))}
    for name, written in contents.items():
        (tmp_path / name).write_bytes(written)
    directory = DataDir(tmp_path, {name: tmp_path / name for name in contents}, dict.fromkeys(contents, "s"))
    assert checks.equal_files([directory]) == [[f"{tmp_path.name}/a", f"{tmp_path.name}/b"]]


def test_one_file_under_two_ids_is_a_duplicate(layout, tmp_path):
    """Enrolment and trials that share files have an EER of 0."""
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    enrolls, trials = data / "tiny_test_enrolls", data / "tiny_test_trials_f"
    first = lines_of(enrolls / "wav.scp")[0].split()[1]
    name = lines_of(trials / "wav.scp")[0].split()[0]
    write(trials / "wav.scp", [f"{name} {first}", *lines_of(trials / "wav.scp")[1:]])
    found = next(checks.duplicate_audio(sets_of(data, tmp_path / "out")))
    assert (found.level, name in found.text) == ("warning", True)


def speech(seed: int, rate: int = 8000) -> np.ndarray:
    """Syllables of random lengths and levels, with random formants."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(scale=rng.choice([0.001, 0.1, 0.3]), size=int(rng.uniform(0.05, 0.3) * rate)) for _ in range(16)
    ]
    samples = np.concatenate(parts)[: 2 * rate]
    return np.convolve(samples, rng.normal(size=8), mode="same") / 10


TRANSFORMATIONS = {
    "nothing": lambda samples, rng: samples,
    "time reversal": lambda samples, rng: samples[::-1],
    "spectral inversion": lambda samples, rng: samples * (-1.0) ** np.arange(len(samples)),
    "gain": lambda samples, rng: samples * rng.uniform(0.03, 1),
    "noise at -10 dB": lambda samples, rng: samples + rng.normal(scale=3.2 * samples.std(), size=len(samples)),
    "frame permutation": lambda x, rng: rng.permutation(x[: len(x) // 160 * 160].reshape(-1, 160)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("transformation", "names"),
    [*((name, "right") for name in [*TRANSFORMATIONS, "noise alone", "near silence"]), ("gain", "exchanged"),
     ("nothing", "a third")],
)  # fmt: skip
def test_files_under_wrong_names_or_without_speech_forbid_a_verdict(transformation, names, tmp_path):
    rng, n = np.random.default_rng(1), 40
    paths: dict[str, dict[str, Path]] = {"o": {}, "a": {}}
    moved = {"right": [], "exchanged": range(n), "a third": range(0, n, 3)}[names]
    order = [(number + 1) % n if number in moved else number for number in range(n)]
    for number in range(n):
        original = speech(number)
        if transformation in TRANSFORMATIONS:
            made = TRANSFORMATIONS[transformation](speech(order[number]), rng).ravel()
        else:
            made = rng.normal(scale=0.1 if "noise" in transformation else 1e-4, size=len(original))
        for kind, samples in (("o", original), ("a", made)):
            path = paths[kind][f"u{number:02d}"] = tmp_path / f"{kind}{number:02d}.wav"
            soundfile.write(path, np.clip(samples, -1, 1), 8000)
    sides = [DataDir(tmp_path / kind, paths[kind], dict.fromkeys(paths[kind], "s")) for kind in "oa"]
    (found,) = checks.resemblance(Sets((), {"x": sides[0]}, {"x": sides[1]}), Config(), jobs=1)
    spoilt = transformation not in TRANSFORMATIONS or names == "exchanged"
    assert found.level == ("error" if spoilt else "warning" if names == "a third" else "ok"), found.text


def test_tags_that_name_the_speaker_are_a_warning(tmp_path):
    for name, artist in (("a", "anna"), ("b", "nobody")):
        with soundfile.SoundFile(tmp_path / f"{name}.wav", "w", 8000, 1) as file:
            file.artist = artist
            file.write(np.zeros(80))
    twin = DataDir(tmp_path, {name: tmp_path / f"{name}.wav" for name in "ab"}, {"a": "anna", "b": "berta"})
    (found,) = checks.file_tags(Sets((), {"x": twin}, {"x": twin}))
    assert f"{tmp_path.name}/a, artist" in found.text
    assert "/b" not in found.text


def test_attackers_that_tell_nothing_do_not_count():
    """Constant scores look like perfect privacy, and so do scores the wrong way round."""
    entries = [one | {"min_cllr": 0.5} for one in conditions(o=0.02, i=0.5, l=0.5, s=0.5)]
    assert not list(checks.uninformative(entries))
    for place in (2, 4, 5):
        entries[place]["min_cllr"] = 1.0
    entries[6]["eer"] = {"rocch": 0.5, "interpolated": 0.9}
    found = list(checks.uninformative(entries))
    assert [(one.level, one.text[one.text.index("(") : one.text.index(")")]) for one in found] == [
        ("warning", "(x_test all ignorant, x_test all semi-informed"),
        ("error", "(x_test all lazy-informed"),
    ]


@pytest.mark.parametrize(("pooled", "told"), [(0.1, False), (0.165, True)])
def test_lists_whose_pooled_rate_is_far_above_both_are_named(pooled, told):
    rates = {"f": 0.01, "m": 0.09, "all": pooled}
    entries = [
        one | {"gender": sex} for sex, rate in rates.items() for one in conditions(o=rate, i=rate, l=rate, s=rate)
    ]
    found = list(checks.pooled_trials(entries))
    assert bool(found) == told
    assert all("f 1.0 %, m 9.0 %" in one.text for one in found[::2])


def test_unmeasured_utility_is_a_warning():
    entries = conditions(o=0.02, i=0.3, l=0.2, s=0.1)
    assert levels(checks.unmeasured_utility(entries, {})) == ["warning"]
    assert not list(checks.unmeasured_utility(entries, {"wer": {}}))
    assert not list(checks.unmeasured_utility(entries[:2], {}))


# --- summary --------------------------------------------------------------------------------------


def test_verdict_is_of_the_worst_scenario_and_says_when_speech_is_simulated():
    rows = summarise(conditions(o=0.02, i=0.3, l=0.09, s=0.1))
    said = verdict(rows, level=0.9, simulated=False)
    assert "9.0 % (90 % interval 4.5 % to 18.0 %)" in said
    assert "without anonymisation it is 2.0 %" in said
    assert "SIMULATED" not in said
    assert verdict(rows, level=0.9, simulated=True).startswith("SIMULATED")


def test_averages_weigh_corpora_and_tell_the_targets_reached():
    rows = [
        {"dataset": corpus, "split": "test", "gender": sex, "scenario": scenario, "EER": eer + 5, "EER_rocch": eer,
         "low": eer - 2, "high": None if corpus == "vctk" else eer + 4}
        for scenario in ("original", "ignorant", "lazy-informed", "semi-informed")
        for corpus, sex, eer in (("libri", "f", 10.0), ("libri", "m", 20.0), ("vctk", "f", 30.0), ("vctk", "m", 40.0),
                                 ("vctk_common", "f", 50.0), ("vctk_common", "m", 50.0))
    ]  # fmt: skip
    plain = averages(rows, load_config(Config, settings=["challenge.targets=[10, 30, 40]"]))
    assert [(row["dataset"], row["scenario"], row["eer_percent"], row["targets_reached"]) for row in plain] == [
        (corpus, scenario, mean, reached)
        for scenario in ("original", "ignorant", "lazy-informed", "semi-informed")
        for corpus, mean, reached in (
            ("libri", 15.0, [10.0]),
            ("vctk", 35.0, [10.0, 30.0]),
            ("vctk_common", 50.0, [10.0, 30.0, 40.0]),
        )
    ]
    weighted = averages(rows, load_config(Config, file=CONFIGS / "vpc2022.yaml"))
    assert [(row["low_percent"], row["high_percent"]) for row in plain[:3]] == [(13, 19), (33, None), (48, 54)]
    by_hand = 0.25 * 10 + 0.25 * 20 + 0.2 * 30 + 0.2 * 40 + 0.05 * 50 + 0.05 * 50
    assert [(row["eer_percent"], row["targets_reached"]) for row in weighted] == [(by_hand, [15.0, 20.0])] * 4
    assert averages(rows[:1], load_config(Config, file=CONFIGS / "vpc2022.yaml")) == []


def test_averages_of_a_named_attacker_are_by_the_challenges_reading():
    found = [one | {"draws": [{}]} for one in conditions(o=0.02, i=0.3, l=0.2, s=0.1)]
    for one in found:
        one["eer"]["kaldi"] = one["eer"]["rocch"] + 0.015
    one_draw = [f"anonymizer.{name}_draws=1" for name in ("training", "enrolment", "trial")]
    names = ["attackers=[a,b]", "challenge.attacker=b", "challenge.eer=kaldi", "challenge.targets=[20, 22]", *one_draw]
    config = load_config(Config, settings=names)
    rows = averages(challenge_rows(found, config), config)
    expected = {one["scenario"]: round(100 * one["eer"]["kaldi"], 3) for one in found if one["attacker"] == "b"}
    assert expected
    assert {row["scenario"]: row["eer_percent"] for row in rows} == expected
    assert {(row["attacker"], row["reading"]) for row in rows} == {("b", "kaldi")}
    assert all("low_percent" not in row for row in rows)  # that interval is of another reading


@pytest.mark.parametrize("file", sorted(path.name for path in CONFIGS.glob("vpc*.yaml")))
def test_challenges_configurations_are_protocols(file):
    """What they name is what may be quoted: one attacker of the list, each recording anonymised once."""
    config = load_config(Config, file=CONFIGS / file)
    if file == "vpc2022.yaml":
        assert (config.challenge.attacker, config.anonymizer.level) == ("", "speaker")
        return
    assert config.challenge.attacker in config.attackers
    assert config.anonymizer.seeding == ("vpc2024" if file == "vpc2024.yaml" else "utterance")


def test_challenge_rows_name_who_is_anonymised():
    found = [one | {"draws": [{}]} for one in conditions(o=0.02, i=0.3, l=0.2, s=0.1)]
    rows = challenge_rows(found, load_config(Config))
    sides = [("original", "original"), ("original", "anon"), ("anon", "anon"), ("anon", "anon")]
    assert [(row["enrollment"], row["trial"]) for row in rows] == sides
    assert [row["EER"] for row in rows] == [2.0, 30.0, 20.0, 10.0]
    assert split_of("x_test") == (rows[0]["dataset"], rows[0]["split"])


# --- sets -----------------------------------------------------------------------------------------


def folders(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir(parents=True)
    return root


CHALLENGE = (
    *("libri_test_enrolls", "libri_test_trials_f", "libri_test_trials_m", "libri_test_trials_mixed", "train-clean-360"),
    *("dsp_test_enrolls", "dsp_test_trials_f", "dsp_train"),
    *("vctk_dev_enrolls", "vctk_dev_trials_m", "vctk_dev_trials_m_common"),
    *("libri_test_trials_f_mcadams", "libri_test_enrolls_mcadams", "IEMOCAP_test"),
)


def test_sets_are_found_by_their_names_with_their_training_sets(tmp_path):
    data = folders(tmp_path, *CHALLENGE)
    found = {one.name: one for one in find_datasets(data, Config())}
    assert {name: one.training for name, one in found.items()} == {
        "dsp_test": "dsp_train",
        "libri_test": "train-clean-360",
        "vctk_dev": "train-clean-360",
        "vctk_dev_common": "train-clean-360",
    }
    assert found["libri_test"].trials == {"f": "libri_test_trials_f", "m": "libri_test_trials_m"}
    assert found["vctk_dev_common"].enrolls == "vctk_dev_enrolls"
    assert found["vctk_dev_common"].trials == {"m": "vctk_dev_trials_m_common"}


def test_sets_and_training_sets_can_be_chosen(tmp_path):
    data = folders(tmp_path, *CHALLENGE)
    config = load_config(Config, settings=["datasets=[libri_test]", "training_sets.libri_test=dsp_train"])
    (one,) = find_datasets(data, config)
    assert (one.name, one.training) == ("libri_test", "dsp_train")


def test_attackers_that_are_absent_are_told_with_the_way_to_them_unless_others_were_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("SPKVER_WEIGHTS", str(tmp_path))
    monkeypatch.setattr("spkver.extractors.weights.DEFAULT_FOLDER", tmp_path)
    (line,) = describe_absent(Config())
    assert line.startswith("campplus-adapted, campplus-single-test, campplus,")
    assert line.endswith("get them by: spkver weights campplus")
    assert describe_absent(Config(attackers=("gmm-svm",))) == []


def test_mixed_lists_are_of_all_speakers(tmp_path):
    data = folders(tmp_path, *CHALLENGE)
    (one,) = find_datasets(data, load_config(Config, settings=["lists=[mixed]"]))
    assert one.trials == {"all": "libri_test_trials_mixed"}


@pytest.mark.parametrize("name", ["vpc2022", "vpc2024", "vpc2026", "vpc2026_track2", "simulated"])
def test_configurations_of_the_challenges_are_whole(name):
    config = load_config(Config, file=CONFIGS / f"{name}.yaml")
    expected = {"simulated": tuple(PRESETS), "vpc2022": default_attackers()}.get(name, ("campplus", "gmm-svm-cms"))
    here = [entry for entry in config.attackers if entry not in absent_attackers()]
    assert config.attackers == expected
    assert [
        one.name for one in chosen_attackers(replace(config, attackers=tuple(here), challenge=ChallengeConfig()))
    ] == here
    assert set(config.training_sets) <= set(config.datasets)


def test_sets_of_languages_train_on_their_own_language(tmp_path):
    languages = ("en", "de", "es", "fr")
    parts = [
        f"{name}_{part}_{what}"
        for name in languages
        for part in ("dev", "test")
        for what in ("enrolls", "trials_mixed")
    ]
    data = folders(
        tmp_path, *parts, *(f"{name}_train" for name in languages), "ja_test_enrolls", "ja_test_trials_mixed"
    )
    config = load_config(Config, file=CONFIGS / "vpc2026_track2.yaml")
    found = {one.name: (one.training, one.trials) for one in find_datasets(data, config)}
    assert found == {
        f"{name}_{part}": (f"{name}_train", {"all": f"{name}_{part}_trials_mixed"})
        for name in languages
        for part in ("dev", "test")
    }
    (data / "ja_train").mkdir()
    more = load_config(Config, file=CONFIGS / "vpc2026_track2.yaml", settings=["datasets=[ja_test]"])
    assert [(one.name, one.training) for one in find_datasets(data, more)] == [("ja_test", "ja_train")]


def test_a_twin_enrols_with_what_the_original_lists(layout, tmp_path):
    """A twin without `enrolls` would enrol with all of its utterances."""
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    (data / f"tiny_test_enrolls{SUFFIX}/enrolls").unlink()
    write(data / "tiny_test_enrolls/enrolls", ["f001-1", *lines_of(data / "tiny_test_enrolls/enrolls")[2:]])
    twin = sets_of(data, tmp_path / "out").twins["tiny_test_enrolls"]
    assert twin.enrolls is not None
    assert [one for one in sorted(twin.enrolls) if one.startswith("f001")] == ["f001-1"]
    assert len(twin.enrolls) == 13


def test_a_twin_of_recordings_alone_is_one(layout, tmp_path):
    """So does the challenge take it: wav/*.wav, and the lists of the original."""
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    expected = sets_of(data, tmp_path / "out").twins
    for path in data.glob(f"*{SUFFIX}/*"):
        if path.is_file():
            path.unlink()
    found = sets_of(data, tmp_path / "out").twins
    for name, twin in expected.items():
        assert {key: path.resolve() for key, path in found[name].recordings.items()} == twin.recordings
        assert (found[name].speakers, found[name].enrolls) == (twin.speakers, twin.enrolls)
    (data / f"tiny_train{SUFFIX}/wav/f101-1.wav").unlink()
    with pytest.raises(DataError, match="1 missing utterances: 'f101-1'"):
        sets_of(data, tmp_path / "out")


def test_no_attacker_learns_from_tested_speakers(layout, tmp_path, caplog):
    """Neither in the original nor in the twin: this holds for classic attackers too, who are given these sets."""
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    for end in ("", SUFFIX):
        for name in ("wav.scp", "utt2spk", "spk2gender"):
            start = "f001" if name == "spk2gender" else "f001-3"
            here = [line for line in lines_of(data / f"tiny_test_trials_f{end}" / name) if line.startswith(start)]
            write(data / f"tiny_train{end}" / name, [*lines_of(data / f"tiny_train{end}" / name), *here])
        (data / f"tiny_train{end}/spk2utt").unlink(missing_ok=True)
    sets = sets_of(data, tmp_path / "out")
    assert sets.left_out == {"tiny_train": {"f001"}}
    for directory in (sets.original["tiny_train"], sets.twins["tiny_train"]):
        assert len(set(directory.speakers.values())) == 6
        assert "f001-3" not in {*directory.speakers, *directory.recordings}
    assert "attackers learn without 1 speaker ('f001'), who are enrolled or tested" in caplog.text


@pytest.mark.parametrize("sexes", ["known", "unknown"])
def test_mixed_trials_run(layout, tmp_path, sexes):
    """One list across the sexes, as in VoicePrivacy 2026: its conditions are of all speakers.

    Where the sexes are not known, such lists are taken by themselves, and a warning says so.
    """
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    for end in ("", SUFFIX):
        parts = [data / f"tiny_test_trials_{sex}{end}" for sex in "fm"]
        (data / f"tiny_test_trials_mixed{end}").mkdir()
        for name in ("wav.scp", "utt2spk", "spk2gender"):
            lines = [line for part in parts for line in lines_of(part / name)]
            write(data / f"tiny_test_trials_mixed{end}" / name, lines)
    spoken = dict(line.split() for line in lines_of(data / "tiny_test_trials_mixed/utt2spk"))
    models = [*ENROLLED["f"], *ENROLLED["m"]]
    pairs = [
        f"{model} {one} {'target' if speaker == model else 'nontarget'}"
        for model in models
        for one, speaker in spoken.items()
    ]
    write(data / "tiny_test_trials_mixed/trials", pairs)
    settings = {"lists": "[mixed]"}
    if sexes == "unknown":
        settings = {}
        for path in data.glob("*/spk2gender"):
            path.unlink()
        for path in [*data.glob("*_trials_[fm]"), *data.glob("*_trials_[fm]_*")]:
            path.rename(data / path.name.replace("trials", "audio"))
        for path in data.glob("*_mixed*/wav.scp"):
            path.write_text(path.read_text().replace("_trials_", "_audio_"))
    outcome = run_recipe(data, tmp_path / "out", **settings, **only("supervector-cosine"))
    assert outcome.err.count("sexes are not known") == (sexes == "unknown")
    assert outcome.status == 0, outcome.err
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert {one["gender"] for one in results["conditions"]} == {"all"}
    assert results["conditions"][0]["n_nontarget"] == 7 * 18 - 14
    assert results["conditions"][0]["linkability"]["sizes"] == list(range(2, 8))
    cross = [pair for pair in pairs if pair[0] != pair.split()[1][0]]  # ids begin with the sex
    scored = lines_of(tmp_path / "out" / results["conditions"][0]["scores"])
    assert cross
    assert {tuple(line.split()[:2]) for line in scored} >= {tuple(pair.split()[:2]) for pair in cross}
    # files in the challenge's form: lists are called mixed, and ASV_eval has the lazy-informed EER
    written = read_rank_file(tmp_path / f"out/exp/results_summary/result_for_rank{SUFFIX}")
    eers = {one["scenario"]: round(100 * one["eer"]["speechbrain"], 3) for one in results["conditions"]}
    where = {"dataset": "tiny", "split": "test", "gender": "mixed", "enrollment": "anon", "trial": "anon"}
    assert records(written, ASV) == [where | {"EER": eers["lazy-informed"]}]
    assert records(written, ASV_ANON) == [where | {"EER": eers["semi-informed"]}]
    table = lines_of(tmp_path / f"out/results{SUFFIX}.csv")
    assert [line.split(",")[2] for line in table[1:]] == ["mixed"] * 4


# --- anonymising ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "settings", "expected"),
    [
        ("_mcadams", [], ("mcadams", "utterance", "utterance")),
        ("_x", [], None),
        ("_x", ["anonymizer.name=vtln", "anonymizer.level=speaker"], ("vtln", "speaker", "utterance")),
        ("_mcadams", ["anonymizer.name=none", "anonymizer.training_level=speaker"], ("none", "utterance", "speaker")),
    ],
)  # fmt: skip
def test_what_anonymises_is_configured_or_named_by_the_suffix(suffix, settings, expected):
    found = find_anonymizers(load_config(Config, settings=settings).anonymizer, suffix)
    told = None if found is None else (found.tested.name, found.tested.level, found.training.level)
    assert told == expected


def test_options_of_an_anonymiser_without_a_name_are_told():
    with pytest.raises(ConfigError, match=r"anonymizer\.command"):
        find_anonymizers(load_config(Config, settings=["anonymizer.command=cp {input} {output}"]).anonymizer, "_x")


def test_missing_twins_are_made_in_the_output_and_the_data_stay_as_they_are(layout, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    shutil.rmtree(data / f"tiny_test_enrolls{SUFFIX}")
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    outcome = run_recipe(
        data, tmp_path / "out", anonymizer__name="mcadams", attackers="[supervector-cosine]", evaluation__replicates=0
    )
    assert outcome.status == 0, outcome.err
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
    assert [path.name for path in (tmp_path / "out/data").iterdir()] == [f"tiny_test_enrolls{SUFFIX}"]
    told = json.loads((tmp_path / "out/results.json").read_text())["anonymiser"]
    assert (told["name"], told["made"]) == ("mcadams", ["tiny_test_enrolls"])
    assert told["alpha"] == [0.5, 0.9]


def test_training_sets_are_anonymised_several_times_and_train_the_attacker(layout, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    shutil.rmtree(data / f"tiny_train{SUFFIX}")
    settings = {"anonymizer__name": "mcadams", "attackers": "[supervector-cosine]", "evaluation__replicates": 0}
    outcome = run_recipe(data, tmp_path / "out", **settings, anonymizer__training_draws=3)
    assert outcome.status == 0, outcome.err
    made = sorted(path.name for path in (tmp_path / "out/data").iterdir() if "train" in path.name)
    assert made == [f"tiny_train{SUFFIX}", *(f"tiny_train{SUFFIX}-draw{number}" for number in (2, 3))]
    sounds = {(tmp_path / f"out/data/{name}/wav/f101-1.wav").read_bytes() for name in made}
    assert len(sounds) == 3
    told = yaml.safe_load((tmp_path / f"out/attackers/tiny_train{SUFFIX}/supervector-cosine/attacker.yaml").read_text())
    assert told["trained_on"]["utterances"] == 3 * 18
    told = yaml.safe_load((tmp_path / "out/attackers/tiny_train/supervector-cosine/attacker.yaml").read_text())
    assert told["trained_on"]["utterances"] == 18
    assert json.loads((tmp_path / "out/results.json").read_text())["anonymiser"]["training_draws"] == 3


def test_twins_of_another_anonymiser_than_the_named_one_get_no_draws_of_it(layout, tmp_path):
    settings = {"anonymizer__name": "mcadams", "attackers": "[supervector-cosine]", "evaluation__replicates": 0}
    outcome = run_recipe(layout, tmp_path / "out", page=True, **settings, anonymizer__training_draws=3)
    assert outcome.status == 0, outcome.err
    assert "since what stands there sounds unlike what mcadams makes of its originals" in outcome.err
    assert json.loads((tmp_path / "out/results.json").read_text())["anonymiser"]["training_draws"] == 1


def test_standing_twins_of_unknown_origin_get_no_draws_of_a_built_in(layout, tmp_path):
    """The suffix of a built-in anonymiser is no proof: _mcadams is the challenge's own too."""
    data = tmp_path / "data"
    for folder in layout.iterdir():
        copied = Path(shutil.copytree(folder, data / folder.name.replace(SUFFIX, "_mcadams")))
        write(copied / "wav.scp", [line.replace(SUFFIX, "_mcadams") for line in lines_of(copied / "wav.scp")])
    settings = {"attackers": "[supervector-cosine]", "evaluation__replicates": 0, "anonymizer__training_draws": 3}
    outcome = run_recipe(data, tmp_path / "out", "--suffix", "_mcadams", page=True, **settings)
    assert outcome.status == 0, outcome.err
    assert not (tmp_path / "out/data").exists()
    assert "tiny_train_mcadams: one draw of it alone, since nothing in its folder says how it was made" in outcome.err
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results["anonymiser"]["training_draws"] == 1
    told = [one for one in results["sanity"] if one["check"] == "training draws"]
    assert [one["level"] for one in told] == ["warning"]
    assert "learnt from 1 anonymised version of tiny_train" in told[0]["text"]
    assert set(results["run"]) == {"date", "command"}
    assert results["attackers_run"]["names"] == ["supervector-cosine"]
    page = (tmp_path / "out/report.html").read_text()
    assert "upper bound of the privacy" in page
    assert results["run"]["date"].partition("T")[0] in page


def test_an_anonymiser_that_does_nothing_is_found_out(layout, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    shutil.rmtree(data / f"tiny_train{SUFFIX}")
    outcome = run_recipe(data, tmp_path / "out", anonymizer__name="command", anonymizer__command="cp {input} {output}")
    assert outcome.status == 2
    assert "original audio in 18 of 18" in outcome.error
    assert not (tmp_path / "out/exp").exists()


# --- utility --------------------------------------------------------------------------------------


def test_word_error_rates_come_from_what_another_recogniser_heard(layout, tmp_path):
    data = Path(shutil.copytree(layout, tmp_path / "data"))
    for sex in "fm":
        names = [line.split()[0] for line in lines_of(data / f"tiny_test_trials_{sex}/utt2spk")]
        write(data / f"tiny_test_trials_{sex}/text", [f"{name} ONE TWO THREE FOUR" for name in names])
        write(data / f"tiny_test_trials_{sex}/heard", [f"{name} one two three four" for name in names])
        write(data / f"tiny_test_trials_{sex}{SUFFIX}/heard", [f"{name} one too three four" for name in names])
    settings = {"utility__hypotheses": "heard", "evaluation__replicates": 0, **only("supervector-cosine")}
    outcome = run_recipe(data, tmp_path / "out", **settings)
    assert outcome.status == 0, outcome.err
    utility = json.loads((tmp_path / "out/results.json").read_text())["utility"]
    assert [utility["wer"]["tiny_test"][kind]["value"] for kind in ("original", "anonymised")] == [0, 0.25]
    assert utility["cer"]["tiny_test"]["anonymised"]["value"] == pytest.approx(1 / 18)
    ranked = (tmp_path / f"out/exp/results_summary/result_for_rank{SUFFIX}").read_text()
    assert "ASR results" in ranked
    assert "25.0" in ranked


def test_missing_transcripts_are_told_before_anything_long(layout, tmp_path):
    outcome = run_recipe(layout, tmp_path / "out", utility__hypotheses="heard")
    assert outcome.status == 2
    assert "no such transcripts, in 6 files" in outcome.error  # text twice, heard in two sets and their twins
    assert not (tmp_path / "out/work").exists()


# --- what a busy reader must not get wrong ---------------------------------------------------------


def test_verdict_names_scenario_attacker_interval_and_number_of_speakers():
    said = verdict(summarise(conditions(o=0.02, i=0.3, l=0.2, s=0.1)), level=0.95, simulated=False)
    assert said.startswith(
        "On x_test (30 enrolled speakers) the strongest semi-informed attacker (a), which anonymises"
    )
    assert "10.0 % (95 % interval 5.0 % to 20.0 %)" in said
