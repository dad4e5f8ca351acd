"""The recipes on parts 2 and 3 of RSR2015, and results by pairs of trial types."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from recipe_runs import made, refused, results_of
from tiny_corpus import write_tiny_corpus

from evaluation.formats.reading import read_key, read_scores
from evaluation.metrics import min_dcf
from spkver.corpora.rsr2015 import key_files

pytestmark = pytest.mark.whole

ALL_TYPES = "[IC, TW, IW]"
TYPES = ("TC", "TW", "IC", "IW")
FEW = {
    "total_variability__rank": 4,
    "total_variability__rounds": 1,
    "joint_factors__speaker_rank": 4,
}
FEW |= {
    "joint_factors__channel_rank": 2,
    "nap__rank": 0,
    "background__size": 8,
    "systems": "{cosine: [centre, cosine]}",
}
OF_RECIPE = {"svm_gmm": ["svm-gmm"], "gmm_ubm": ["gmm-ubm"], "ivector": ["cosine"], "jfa": ["jfa"]}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """A tiny corpus of each part; read only."""
    return {
        part: write_tiny_corpus(tmp_path_factory.mktemp(f"part{part}"), part=part)
        for part in (1, 2, 3)
    }


def brute_force_eer(target, nontarget):
    """The lowest crossing of the diagonal by a line between two points of the curve: that of its convex hull."""
    thresholds = [*np.unique([*target, *nontarget]), np.inf]
    points = [
        (np.mean(target < threshold), np.mean(nontarget >= threshold)) for threshold in thresholds
    ]
    crossings = []
    for (miss, alarm), (more, fewer) in itertools.product(points, points):
        if miss <= alarm and more >= fewer:
            share = (
                (alarm - miss) / (alarm - miss + more - fewer)
                if (miss, more) != (alarm, fewer)
                else 0
            )
            crossings.append(miss + share * (more - miss))
    return min(crossings)


def scores_by_type(corpus, part, scores):
    """Scores of the trials of each type, straight from the lines of the trial list."""
    by_pair = dict(zip(scores.pairs(), scores.values.tolist(), strict=True))
    found = {kind: [] for kind in TYPES}
    for line in key_files(corpus, "m", "eval", part)[1].read_text().splitlines():
        *prompt, model, segment, tc, tw, ic, iw = line.split(",")
        model = ":".join([model, *prompt])
        found[TYPES[[tc, tw, ic, iw].index("Y")]].append(
            by_pair[model, segment.removesuffix(".sph")]
        )
    return {kind: np.array(values) for kind, values in found.items()}


@pytest.mark.parametrize(
    ("part", "name"),
    [(1, "svm_gmm"), (2, "gmm_ubm"), (3, "svm_gmm"), (3, "ivector"), (3, "jfa"), (3, "gmm_ubm")],
)
def test_each_pair_of_trial_types_is_evaluated_on_its_trials(recipe, corpora, tmp_path, part, name):
    outcome = recipe(
        corpora[part], tmp_path, name=name, part=part, trials__nontarget=ALL_TYPES, **FEW
    )
    assert outcome.status == 0, outcome.err
    for system in OF_RECIPE[name]:
        by_type = scores_by_type(corpora[part], part, read_scores(tmp_path / f"scores/{system}.h5"))
        assert all(len(values) for values in by_type.values())
        results = results_of(tmp_path)["systems"][system]
        assert set(results["trial_types"]) == {"TC-IC", "TC-TW", "TC-IW"}
        for types, found in results["trial_types"].items():
            target, nontarget = (by_type[kind] for kind in types.split("-"))
            assert (found["n_target"], found["n_nontarget"]) == (len(target), len(nontarget))
            assert found["eer"]["rocch"] == pytest.approx(
                brute_force_eer(target, nontarget), abs=1e-12
            ), types
            assert found["min_dcf"]["sre08"] == min_dcf(
                target, nontarget, p_target=0.01, c_miss=10.0
            )
            assert types in outcome.out


def test_part_3_runs_with_default_settings(recipe, corpora, tmp_path):
    """Two models per speaker, four tests each; scores and key of the output are joined by ids."""
    assert recipe(corpora[3], tmp_path, part=3, **FEW).status == 0
    results = results_of(tmp_path)
    assert (results["config"]["part"], results["config"]["background"]["sentences"]) == (3, None)
    system = results["systems"]["svm-gmm"]
    assert (system["n_target"], system["n_nontarget"]) == (4 * 2 * 4, 4 * 2 * 4 * 3)
    scores, key = (
        read_scores(tmp_path / "scores/svm-gmm.txt"),
        read_key(tmp_path / "task/3sess-pwd_eval_m_key.txt"),
    )
    assert set(scores.pairs()) == set(key.pairs())
    assert {model[4:] for model in scores.model_ids} == {"_01", "_02"}
    again = recipe(corpora[3], tmp_path, part=3, **FEW)
    assert made(again.err) == set()


def test_a_system_that_ignores_prompts_scores_each_pair_once(recipe, corpora, tmp_path):
    """The wrong text changes no score, and the right one has the score that it has without wrong ones."""
    for folder, settings in (("some", {}), ("all", {"trials__nontarget": ALL_TYPES})):
        assert recipe(corpora[3], tmp_path / folder, part=3, **settings, **FEW).status == 0
    some, every = (
        read_scores(tmp_path / folder / "scores/svm-gmm.h5") for folder in ("some", "all")
    )
    plain = dict(zip(some.pairs(), some.values, strict=True))
    assert len(every) > len(some)
    assert all(
        value == plain[model.partition(":")[0], segment]
        for (model, segment), value in zip(every.pairs(), every.values, strict=True)
    )


def test_the_curves_of_all_pairs_share_one_plot(recipe, corpora, tmp_path):
    """Drawn only where there are several pairs."""
    for types, expected in (("[IC]", False), (ALL_TYPES, True)):
        assert recipe(corpora[1], tmp_path, plots=True, trials__nontarget=types, **FEW).status == 0
        assert (tmp_path / "det_types.png").is_file() == expected


def test_a_missing_part_is_refused(recipe, corpora, tmp_path):
    refused(
        recipe(corpora[1], tmp_path, part=3, **FEW),
        r"3seq10_eval_m.trn: no such file",
        r"seq5_testeval_m.ndx: no such",
    )
    refused(recipe(corpora[1], tmp_path, part=4, **FEW), "part must be one of 1, 2, 3, got 4")
