"""The strongest evidence of any trial: closed forms, brute force, and the two traps of isotonic regression."""

import json

import numpy as np
import pytest
from command_lines import passes
from scipy import stats

from evaluation import formats
from evaluation.linkage import Ranks, rank_evidence_of, worst_case_from
from evaluation.metrics import rank_evidence, sort_scores, worst_case
from evaluation.metrics.worst_case import (
    fit_student,
    gaussian_llrs,
    pav_evidence,
    rank_llrs,
    smoothed_shares,
)
from evaluation.trials import Key, Scores
from spkbase.errors import DataError


def gallery(n_speakers, n_segments, distance, seed=0):
    """Every segment against every speaker, with Gaussian scores."""
    rng = np.random.default_rng(seed)
    models = [f"m{number}" for number in range(n_speakers) for _ in range(n_speakers * n_segments)]
    segments = [
        f"s{owner}-{take}"
        for _ in range(n_speakers)
        for owner in range(n_speakers)
        for take in range(n_segments)
    ]
    truth = np.array(
        [
            model[1:] == segment[1:].split("-")[0]
            for model, segment in zip(models, segments, strict=True)
        ]
    )
    return (
        Scores.from_ids(models, segments, rng.standard_normal(len(truth)) + distance * truth),
        Key.from_ids(models, segments, truth),
    )


def test_the_end_block_depends_only_on_its_count():
    """However far the target trials lie above the others, the LLR is log((n + 1) N_nontarget / N_target)."""
    nontarget = np.linspace(-3, 0, 40)
    found = [
        pav_evidence(sort_scores(5 + scale * np.arange(1.0, 11), nontarget))
        for scale in (0.01, 1.0, 1e6)
    ]
    assert [evidence.llr for evidence in found] == [pytest.approx(np.log((10 + 1) * 40 / 10))] * 3
    assert all(
        "it depends on their number" in evidence.note and "10 target" in evidence.note
        for evidence in found
    )
    more = pav_evidence(sort_scores(5 + np.arange(1.0, 21), np.repeat(nontarget, 2)))
    assert more.llr == pytest.approx(np.log((20 + 1) * 80 / 20)), (
        "the same scores twice are other evidence"
    )
    by_gaussians = [
        worst_case(5 + distance + np.arange(1.0, 11), nontarget).gaussian.llr
        for distance in (0.0, 10.0, 100.0)
    ]
    assert by_gaussians == sorted(by_gaussians)
    assert by_gaussians[2] > 10 * by_gaussians[0]


def test_swapped_labels_give_no_evidence():
    rng = np.random.default_rng(1)
    target, nontarget = rng.normal(9, 1, 200), rng.normal(-9, 1, 300)
    there, exchanged = worst_case(target, nontarget), worst_case(nontarget, target)
    assert exchanged.pav.llr == 0
    assert (
        f"inverted, the scores give {pav_evidence(sort_scores(-nontarget, -target)).llr:.2f}"
        in exchanged.pav.note
    )
    for reading in ("gaussian", "student"):  # densities do not depend on which class is higher
        assert getattr(exchanged, reading).llr == pytest.approx(
            getattr(there, reading).llr, rel=1e-6
        )
    assert (
        worst_case([1.0, 1.0], [1.0]).pav.note == "one isotonic block: the scores carry no evidence"
    )


def test_gaussian_llrs_equal_scipy_with_ties_and_weights():
    rng = np.random.default_rng(3)
    target, nontarget = rng.normal(1, 2, 60).round(1), rng.normal(0, 1, 80).round(1)
    scores = sort_scores(target, nontarget)
    expected = stats.norm.logpdf(
        scores.thresholds, target.mean(), target.std()
    ) - stats.norm.logpdf(scores.thresholds, nontarget.mean(), nontarget.std())
    assert gaussian_llrs(scores).tolist() == pytest.approx(expected.tolist())
    twice = sort_scores(
        target, nontarget, target_weights=np.full(60, 2.0), nontarget_weights=np.full(80, 3.0)
    )
    assert gaussian_llrs(twice).tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("freedom", [1.5, 4.0, 8.0])
def test_the_student_fit_maximises_the_likelihood(freedom):
    """Nothing near it is likelier, and moving scores moves the fit alone."""
    x = stats.t.rvs(freedom, size=800, random_state=5)
    weights = np.ones(len(x))
    fit = fit_student(x, weights)
    best = stats.t.logpdf(x, fit[2], fit[0], fit[1]).sum()
    for step in ((1e-3, 0, 0), (0, 1e-3, 0), (0, 0, 1e-2)):
        for sign in (-1, 1):
            location, scale, df = (
                number + sign * change for number, change in zip(fit, step, strict=True)
            )
            assert stats.t.logpdf(x, df, location, scale).sum() < best
    moved = fit_student(7 - 100 * x, weights)
    assert moved == pytest.approx((7 - 100 * fit[0], 100 * fit[1], fit[2]), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("count", [2, 5, 100])
def test_evidence_from_ranks_matches_its_closed_form(count):
    # scores by chance disclose nothing
    assert rank_llrs(np.full(count, 1 / count)) == pytest.approx(np.zeros(count), abs=1e-12)
    rng = np.random.default_rng(count)
    shares = rng.dirichlet(np.ones(count))
    posterior, prior = shares / (1 - shares), (1 / count) / (1 - 1 / count)
    assert rank_llrs(shares) == pytest.approx(np.log(posterior / prior))
    first = np.eye(count)[0]
    assert rank_llrs(first)[0] == np.inf
    assert (rank_llrs(first)[1:] == -np.inf).all()
    n_rows = 7
    llr = rank_llrs(smoothed_shares(first, n_rows))
    assert llr[0] == pytest.approx(np.log(n_rows * count + 1))
    assert llr[1:] == pytest.approx(
        np.full(count - 1, np.log((count - 1) / (count * (n_rows + 1) - 1)))
    )
    assert rank_evidence(first, n_rows).llr == pytest.approx(np.log(n_rows * count + 1))


def test_galleries_of_different_sizes_are_evaluated_separately():
    found = rank_evidence_of(Ranks([0] * 9 + [1, 0], 0, [3] * 9 + [1, 1]))
    assert found.llr == pytest.approx(np.log(9 * 4 + 1))
    assert "rank 1 of 4" in found.note


def test_undefined_worst_cases_have_a_note():
    found = worst_case([np.inf, 1.0], [0.0, -1.0])
    assert np.isnan(found.gaussian.llr)
    assert "infinite evidence" in found.gaussian.note
    assert np.isfinite(found.pav.llr)
    assert "two different target scores" in worst_case([1.0, 1.0], [0.0, 2.0]).gaussian.note
    assert "half of the target trials" in worst_case([1.0, 1.0, 2.0], [0.0, 3.0, 4.0]).student.note
    key = Key.from_ids(["a", "b"], ["s", "t"], [True, False])
    found = worst_case_from(Scores.from_ids(["a", "b"], ["s", "t"], [1.0, 0.0]), key)
    assert "without any impostor trial" in found.ranks.note
    for shares in ([1.0], [0.5, 0.6], [np.nan, 1.0], [-0.5, 1.5]):
        with pytest.raises(DataError):
            rank_llrs(shares)
    with pytest.raises(DataError, match="NaN"):
        worst_case([np.nan], [0.0])


def test_the_command_adds_a_block(tmp_path):
    scores, key = gallery(5, 3, 2.0)
    formats.write_scores(tmp_path / "scores.txt", scores)
    formats.write_key(tmp_path / "key.txt", key)
    arguments = ["zebra", "-s", tmp_path / "scores.txt", "-k", tmp_path / "key.txt", "--worst-case"]
    report = json.loads(passes(*arguments, "--json", "-").stdout)
    expected = worst_case_from(scores, key).to_dict()
    for name in ("pav", "gaussian", "student", "ranks"):
        assert report["worst_case"][name]["llr"] == pytest.approx(expected[name]["llr"], rel=1e-6)
    assert report["worst_case"]["pav"]["log10"] == pytest.approx(
        report["zebra"]["individual"], abs=1e-12
    )
    table = passes(*arguments).stdout
    assert all(
        word in table for word in ("isotonic regression", "Gaussians", "Student's t", "ranks")
    )
