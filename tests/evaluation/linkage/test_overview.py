"""What scores disclose on one page: each number against a loop or the function that it comes from."""

import json
import math

import numpy as np
import pytest
from command_lines import run

from evaluation.linkage import (
    FirstShares,
    disclosed_information,
    disclosure_overview,
    first_rate,
    first_shares,
    gallery_trials,
    linkability,
    mostly_found,
    rank_scores,
    rank_spread,
    similarity_rank_disclosure,
    worst_case_from,
)
from evaluation.metrics import eer, tpr_at_fpr
from evaluation.trials import Key, Scores
from evaluation.uncertainty import Resampling
from spkbase.errors import DataError
from spkbase.files import to_json

RESAMPLING = Resampling(50)
PEOPLE = [f"s{number:02d}" for number in range(12)]


def crossed(seed=0, *, n_recordings=4, shift=1.5):
    """Scores of recordings of all people against all of them, with ties."""
    rng = np.random.default_rng(seed)
    models, segments, truth = [], [], []
    for speaker in PEOPLE:
        for number in range(n_recordings):
            models += PEOPLE
            segments += [f"{speaker}/{number}"] * len(PEOPLE)
            truth += [speaker == other for other in PEOPLE]
    values = np.round(rng.normal(size=len(truth)) + shift * np.array(truth), 1)
    return Scores.from_ids(models, segments, values), Key.from_ids(models, segments, truth)


SIDE = {name: "fm"[number % 2] for number, name in enumerate(PEOPLE)}
SIDES = SIDE | {f"{name}/{take}": SIDE[name] for name in PEOPLE for take in range(4)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disclosure")
    scores, key = crossed()
    pairs = list(key.pairs())
    for name, cells in (
        ("scores.txt", [f"{value:.1f}" for value in scores.values]),
        ("key.txt", ["target" if truth else "nontarget" for truth in key.is_target]),
    ):
        lines = [
            f"{model} {segment} {cell}\n"
            for (model, segment), cell in zip(pairs, cells, strict=True)
        ]
        (folder / name).write_text("".join(lines))
    lines = [f"{name},{group}\n" for name, group in SIDES.items()]
    (folder / "side.csv").write_text("id,sex\n" + "".join(lines))
    return folder


def test_the_page_has_the_numbers_of_the_single_functions():
    scores, key = crossed()
    report = disclosure_overview(scores, key, sizes=(2, 10, 99), resampling=RESAMPLING).to_dict()
    target, nontarget = scores.values[key.is_target], scores.values[~key.is_target]
    assert report["eer"]["value"] == pytest.approx(eer(target, nontarget))
    curve = linkability(scores, key, [2, 10, 12], resampling=RESAMPLING)
    assert list(report["linkability"]) == ["2", "10", "12"]
    for number, size in enumerate(("2", "10", "12")):
        numbers = report["linkability"][size]
        expected = [curve.values[number], curve.low[number], curve.high[number]]
        assert list(numbers.values()) == pytest.approx(expected)
    trials = gallery_trials(scores, key)
    information = disclosed_information(trials, resampling=RESAMPLING)
    assert report["lid"] == information.to_dict()
    ranks = rank_scores(scores, key, [None])[0][0]
    disclosed = similarity_rank_disclosure(ranks)
    spread = rank_spread(disclosed["alpha"], disclosed["beta"], 11)
    assert report["rank_disclosure"] == disclosed | {"rank_spread": spread}
    assert report["worst_case"] == worst_case_from(scores, key).to_dict()
    accepted = tpr_at_fpr(target, nontarget, fpr=0.01)
    assert report["tpr_at_fpr"]["0.01"]["true_accept"]["value"] == pytest.approx(accepted.value)
    assert report["n_recordings"] == 48
    assert any("more than the 12 speakers" in note for note in report["notes"])


def test_the_command_prints_the_page_and_writes_the_json_of_the_function(files, monkeypatch):
    monkeypatch.chdir(files)
    scores, key = crossed()
    line = ["disclosure", "-s", "scores.txt", "-k", "key.txt", "--side", "side.csv"]
    line += ["--by", "sex", "--metadata", "side.csv", "--bootstrap", "50", "--sizes", "10"]
    shown = run(*line)
    assert shown.exit_code == 0, shown.output
    for words in (
        "equal error rate",
        "ALID",
        "epsilon there",
        "found most often",
        "GARBE",
        "match",
    ):
        assert words in shown.output
    written = run(*line, "--json", "-")
    overview = disclosure_overview(
        scores, key, side=SIDES, metadata=SIDES, column="sex", sizes=[10], resampling=RESAMPLING
    )
    assert json.loads(written.stdout) == json.loads(to_json(overview.to_dict()))


def test_ids_that_may_not_be_speakers_have_no_intervals():
    models = [f"m{model // 2}_{model % 2}" for model in range(6)] * 6
    segments = np.repeat([f"t{number}" for number in range(6)], 6)
    key = Key.from_ids(models, segments, np.arange(36) % 6 == np.arange(36) // 6)
    rng = np.random.default_rng(0)
    scores = Scores.from_ids(models, segments, rng.normal(size=36))
    report = disclosure_overview(scores, key, resampling=RESAMPLING).to_dict()
    assert report["resampling"]["resamples"] == 0
    assert math.isnan(report["lid"]["alid"]["low"])
    assert "no intervals" in report["notes"][0]
    assert disclosure_overview(scores, key, bootstrap_by="id").lid.mean.low < 1


def test_slopes_can_be_trained_on_background_speakers():
    scores, key = crossed()
    background = crossed(seed=7, shift=3.0)
    report = disclosure_overview(scores, key, background=background, resampling=Resampling(0))
    known = gallery_trials(*background)
    expected = disclosed_information(
        gallery_trials(scores, key), background=known, resampling=Resampling(0)
    )
    assert report.lid.mean.value == expected.mean.value
    own = disclosure_overview(scores, key, resampling=Resampling(0))
    assert report.lid.slope > own.lid.slope


@pytest.mark.parametrize("seed", range(25))
def test_side_information_restricts_each_search_to_those_who_match(seed):
    scores, key = crossed(seed, n_recordings=2)
    rng = np.random.default_rng(seed)
    known = dict(zip(PEOPLE, rng.choice(["f", "m", "x", ""], len(PEOPLE)), strict=True))
    side = known | {segment: known[segment[:3]] for segment in key.segment_ids}
    ranks = rank_scores(scores, key, [None], side=side)[0][0]
    first = {}
    sizes = {}
    table = dict(zip(key.pairs(), scores.values.tolist(), strict=True))
    for segment in key.segment_ids:
        speaker = segment[:3]
        matching = [
            model for model in PEOPLE if not known[speaker] or known[model] in (known[speaker], "")
        ]
        values = [table[model, segment] for model in matching]
        own = table[speaker, segment]
        sizes[segment] = len(matching)
        first[segment] = (own == max(values)) / values.count(own)
    order = sorted(key.segment_ids)
    assert ranks.impostors.tolist() == [sizes[segment] - 1 for segment in order]
    assert ranks.first() == pytest.approx([first[segment] for segment in order])
    assert first_rate(ranks, Resampling(0)).value == pytest.approx(np.mean(list(first.values())))


def test_bits_of_side_information_and_voice_add_up():
    scores, key = crossed()
    matching = disclosure_overview(scores, key, side=SIDES, resampling=RESAMPLING).side
    assert matching.search["n_matching"] == 6
    assert matching.side_bits.value == pytest.approx(1)
    both = 1 + matching.lid.mean.value
    assert matching.alid_total.value == pytest.approx(both)
    alone = {name: name for name in PEOPLE}
    alone |= {segment: segment[:3] for segment in key.segment_ids}
    matching = disclosure_overview(scores, key, side=alone, resampling=Resampling(0)).side
    assert matching.search["share_alone"] == 1
    assert matching.search["rank1"]["value"] == matching.search["rank1"]["chance"] == 1
    assert matching.lid.mean.value == 0
    assert matching.alid_total.value == pytest.approx(math.log2(12))


def test_side_information_that_contradicts_a_target_trial_raises():
    scores, key = crossed()
    with pytest.raises(
        DataError, match="both sides of a target trial to match, but 's00' and 's00/0'"
    ):
        disclosure_overview(scores, key, side=SIDES | {"s00/0": "m"})
    with pytest.raises(DataError, match="only for one side"):
        disclosure_overview(scores, key, side=SIDE)


@pytest.mark.parametrize("seed", range(25))
def test_shares_of_first_places_equal_a_loop(seed):
    scores, key = crossed(seed, n_recordings=3, shift=1.0)
    table = dict(zip(key.pairs(), scores.values.tolist(), strict=True))
    own = dict.fromkeys(PEOPLE, 0.0)
    others = dict.fromkeys(PEOPLE, 0.0)
    for segment in key.segment_ids:
        values = {model: table[model, segment] for model in PEOPLE}
        best = [model for model in PEOPLE if values[model] == max(values.values())]
        for model in best:
            counts = own if model == segment[:3] else others
            counts[model] += 1 / len(best)
    shares = first_shares(gallery_trials(scores, key))
    assert shares.speakers.tolist() == PEOPLE
    assert shares.own * 3 == pytest.approx(list(own.values()))
    assert shares.others * 33 == pytest.approx(list(others.values()))
    assert shares.n_own.tolist() == [3] * 12
    assert shares.n_others.tolist() == [33] * 12


def test_hubs_are_not_counted_as_found():
    """All recordings are one voice: they are nearest to one model, whose bearer is always first."""
    scores, key = crossed(shift=0.0)
    values = np.where(key.model_ids[key.models] == "s05", 9.0, scores.values)
    hub = Scores(scores.model_ids, scores.segment_ids, scores.models, scores.segments, values)
    report = disclosure_overview(hub, key, resampling=RESAMPLING).to_dict()
    assert report["mostly_found"]["n_found"] == 0
    shares = first_shares(gallery_trials(hub, key))
    assert shares.own[5] == 1
    assert report["worst_speaker"]["beyond_everybody"]["value"] == pytest.approx(0)
    assert not mostly_found(shares).any()


def test_speakers_found_in_half_of_their_recordings_are_not_mostly_found():
    shares = FirstShares(
        np.array(["half", "more", "few"]),
        np.array([0.5, 0.75, 1.0]),
        np.array([0.0, 0.1, 0.0]),
        np.array([8, 8, 1]),
        np.array([80, 80, 10]),
    )
    assert mostly_found(shares).tolist() == [False, True, False]


@pytest.mark.parametrize("seed", range(25))
def test_rank_spread_equals_a_count_over_ranks(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.05, 4, 2)
    impostors = int(rng.integers(1, 60))
    shares = stats.betabinom(impostors, alpha, beta).pmf(np.arange(impostors + 1))
    expected = np.mean(shares > 1 / (impostors + 1))
    assert rank_spread(alpha, beta, impostors) == pytest.approx(expected)
