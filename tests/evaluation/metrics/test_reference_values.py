"""Every reference's value on 17 score sets, and the tie-safe value where references fail."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from evaluation.formats import Choice, read_split
from evaluation.metrics import cllr, ece, min_cllr, min_ece
from evaluation.metrics.detection import (
    act_dcf,
    eer,
    effective_prior,
    equal_error,
    hull_min_dcf,
    prbep,
)
from evaluation.metrics.disclosure import d_sys, d_sys_pav, format_value
from evaluation.metrics.sorted_scores import SortedScores, sort_scores
from evaluation.uncertainty import evaluate

DATA = Path(__file__).resolve().parents[2] / "data" / "evaluation"
GOLDEN = json.loads((DATA / "golden.json").read_text())
PRIORS = GOLDEN["priors"]
SETS = [name for name, value in GOLDEN.items() if isinstance(value, dict) and "n_target" in value]
# kept as counts, in order
RANKS = ("gauss_d0.2", "gauss_d1", "gauss_d4", "imbalanced_10k_1M", "llr_sigma2")
WHOLE = [name for name in SETS if name not in RANKS]
# where ties, or either order of the tied trials, make a tool's number differ from the one that allows for ties
TIED = ("all_ties", "quantised_0.5", "heavy_ties_int")


@cache
def sorted_scores(name):
    with np.load(DATA / "scores.npz") as file:
        if name in RANKS:
            target, nontarget = (
                file[f"{name}/runs_{side}"].astype(float) for side in ("target", "nontarget")
            )
            return SortedScores(np.arange(len(target), dtype=float), target, nontarget)
        return sort_scores(file[f"{name}/target"], file[f"{name}/nontarget"])


@cache
def result(name, convention):
    return evaluate(sorted_scores(name), convention=convention, priors=PRIORS)


def known(tool, sets=SETS):
    return [name for name in sets if GOLDEN[name].get(tool) is not None]


def close(found, expected, within=1e-9):
    assert found == pytest.approx(float(expected), rel=0, abs=within, nan_ok=True)


def rounding_of_population(name):
    """How far the reference's closed form for an LLR a may be off where `exp` is off by its last bit, 2^-52.

    It has g = exp(a) - 1 and (a - g) / (2 g^2), of slope -1 / (2 a^2) in g for small a: 2^-53 / a^2 a trial. The last
    bit of `exp` is another with AVX-512, with AVX2 and without. LLRs up to 1e-6 are taken for 0.
    """
    llr = np.abs(sorted_scores(name).blocks.per_score())
    off = np.divide(2.0**-53, llr**2, out=np.zeros(len(llr)), where=llr > 1e-6)
    sides = (sorted_scores(name).target, sorted_scores(name).nontarget)
    return (
        float(sum(np.sum(weights * off) / weights.sum() for weights in sides) / np.log(2)) + 1e-14
    )


# the hull, its costs and rates: SIDEKIT and PyBOSARIS


@pytest.mark.parametrize("name", SETS)
def test_hull_costs_and_prbep_equal_sidekit(name):
    expected, vertices = GOLDEN[name]["sidekit"], sorted_scores(name).hull
    close(result(name, "default").eer["rocch"], expected["rocch_eer"])
    close(prbep(sorted_scores(name)), expected["prbep"], 1e-9 * max(1.0, expected["prbep"]))
    if expected["pmiss"] is not None:
        _same_hull(vertices, np.array(expected["pmiss"]), np.array(expected["pfa"]))
    for prior, cost, normalised in zip(
        PRIORS, expected["minDCF"], expected["minDCF_norm"], strict=True
    ):
        close(result(name, "bosaris").min_dcf_unnormalised[str(prior)], cost)
        close(result(name, "bosaris").min_dcf[str(prior)], normalised)


def _same_hull(vertices, p_miss, p_fa):
    """Theirs may have points more, on the line between two of ours."""
    assert len(vertices.p_miss) <= len(p_miss) <= len(vertices.p_miss) + 2
    where = vertices.p_miss - vertices.p_fa  # rises along the hull
    np.testing.assert_allclose(
        np.interp(p_miss - p_fa, where, vertices.p_miss), p_miss, rtol=0, atol=1e-9
    )
    for point in zip(vertices.p_miss, vertices.p_fa, strict=True):
        assert np.abs(np.stack([p_miss, p_fa], axis=1) - point).sum(axis=1).min() < 1e-9


@pytest.mark.parametrize("name", SETS)
def test_minimum_costs_equal_pybosaris(name):
    expected, found = GOLDEN[name]["pybosaris"], result(name, "bosaris")
    close(found.eer["rocch"], expected["eer"])
    close(found.min_cllr, expected["min_cllr"])
    for prior, point in zip(PRIORS, expected["min_dcf_norm"], strict=True):
        np.testing.assert_allclose(
            hull_min_dcf(sorted_scores(name), prior=prior), point, rtol=0, atol=1e-9
        )
    sre08 = hull_min_dcf(sorted_scores(name), prior=effective_prior(0.01, 10, 1))
    np.testing.assert_allclose(sre08, expected["min_dcf_sre08_P01_Cm10"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", WHOLE)
def test_actual_costs_equal_pybosaris(name):
    expected, found = GOLDEN[name]["pybosaris"], result(name, "bosaris")
    close(found.cllr, expected["cllr"])
    for prior, point in zip(PRIORS, expected["act_dcf_norm"], strict=True):
        close(found.act_dcf[str(prior)], point[0], 1e-9 * max(1, point[0]))


# the five equal error rates


@pytest.mark.parametrize("name", known("kaldi_eer"))
def test_the_kaldi_eer_equals_kaldi(name):
    close(result(name, "vpc2022").eer["kaldi"], GOLDEN[name]["kaldi_eer"], 1e-15)
    close(result(name, "default").eer["kaldi"], GOLDEN[name]["kaldi_eer"], 1e-15)


@pytest.mark.parametrize("name", known("speechbrain_eer_f32"))
def test_the_speechbrain_eer_equals_speechbrain(name):
    rate, threshold = GOLDEN[name]["speechbrain_eer_f32"]
    close(result(name, "vpc2024").eer["speechbrain"], rate, 1e-7)  # its rates are float32
    close(result(name, "default").eer["speechbrain"], rate, 1e-7)
    if name in WHOLE:
        assert result(name, "vpc2024").threshold_at_eer == threshold


@pytest.mark.parametrize("name", known("sklearn_interp_eer"))
def test_the_interpolated_eer_equals_scikit_learn(name):
    # brentq's tolerance
    close(result(name, "default").eer["interpolated"], GOLDEN[name]["sklearn_interp_eer"], 1e-11)


@pytest.mark.parametrize("name", known("spkanon_eer"))
def test_the_nearest_eer_equals_spkanon_eval(name):
    false_alarms, mean = GOLDEN[name]["spkanon_eer"]
    point = equal_error(sorted_scores(name), method="nearest")
    close(point.p_fa, false_alarms, 1e-15)
    close(point.rate, mean, 1e-15)


# ZEBRA and the VoicePrivacy challenges


@pytest.mark.parametrize("name", known("zebra"))
def test_zebra_equals_the_reference_under_its_convention(name):
    expected, found = GOLDEN[name]["zebra"], result(name, "zebra-2020")
    close(found.zebra.population, expected["population"], rounding_of_population(name))
    close(found.zebra.individual, expected["individual"], 1e-12)
    assert found.zebra.tag == expected["tag"]
    assert [format_value(found.zebra.population), format_value(found.zebra.individual)] == expected[
        "print"
    ]
    close(found.eer["rocch"], expected["rocch_eer_laplace"], 1e-13)
    close(found.min_cllr, expected["min_cllr_poolties"], 1e-13)
    for prior, cost in zip(PRIORS, expected["minDCF"], strict=True):
        close(found.min_dcf_unnormalised[str(prior)], cost, 1e-13)
    if name in WHOLE:
        close(found.cllr, expected["cllr_act"], 1e-12)


@pytest.mark.parametrize(
    "name", known("zebra", [name for name in SETS if name not in (*TIED, "reversed")])
)
def test_the_default_differs_from_zebra_only_by_its_smoothing(name):
    """It adds up to 1e-6 nat to LLRs: 4.4e-7 in log10, less in the means."""
    expected, found = GOLDEN[name]["zebra"], result(name, "default")
    few = 1e-7 if name == "tiny_3v5" else 2e-9
    close(found.zebra.population, expected["population"], few)
    close(found.min_cllr, expected["min_cllr_poolties"], few)
    close(found.zebra.individual, expected["individual"], 1e-6 / np.log(10))
    assert found.zebra.tag == expected["tag"]
    np.testing.assert_allclose(
        min_ece(sorted_scores(name), prior=np.array(PRIORS)), expected["minECE"], atol=few
    )


@pytest.mark.parametrize("name", known("zebra", [name for name in WHOLE if name != "with_inf"]))
def test_cross_entropy_equals_zebra(name):
    found = ece(sorted_scores(name), prior=np.array(PRIORS))
    np.testing.assert_allclose(found, GOLDEN[name]["zebra"]["actECE"], rtol=1e-12)


@pytest.mark.parametrize("name", known("vpc24_min_cllr_eer"))
@pytest.mark.parametrize("convention", ["vpc2022", "vpc2024"])
def test_values_equal_those_of_the_challenges(name, convention):
    found = result(name, convention)
    least, rate = GOLDEN[name]["vpc24_min_cllr_eer"]
    close(found.min_cllr, least, 1e-13)
    close(found.min_cllr, GOLDEN[name]["zebra_min_cllr_fn"], 1e-13)
    close(found.eer["rocch"], rate, 1e-13)
    close(found.zebra.population, GOLDEN[name]["zebra"]["population"], rounding_of_population(name))
    if name in WHOLE:
        close(found.cllr, GOLDEN[name]["vpc24_cllr"], 1e-12)


@pytest.mark.parametrize("name", known("D_sys", WHOLE))
def test_linkability_equals_the_references_to_the_last_bit(name):
    for tool, omega in (("D_sys", 1.0), ("audmetric_D_sys", 1.0), ("D_sys_omega0.5", 0.5)):
        found, expected = d_sys(sorted_scores(name), omega=omega), float(GOLDEN[name][tool])
        assert found == expected or (np.isnan(found) and np.isnan(expected))


# where references fail


@pytest.mark.parametrize(
    ("name", "rocch", "least", "population", "individual", "tag", "linkability"),
    [
        ("all_ties", 0.5, 1.0, 0.0, 0.0, "0", 0.0),
        ("reversed", 0.5, 1.0, 0.0, 0.0, "0", 0.0),
        ("one_v_one", 0.0, 0.0, 1 / np.log(4), np.log10(2), "A", 1.0),
        ("separated", 0.0, 0.0, 1 / np.log(4), np.log10(1002), "C", 1.0),
    ],
)
def test_tied_scores_have_their_exact_values(
    name, rocch, least, population, individual, tag, linkability
):
    found = result(name, "default")
    assert found.eer["rocch"] == rocch
    assert found.min_cllr == least
    assert found.zebra.population == population
    close(found.zebra.individual, individual, 1e-13)
    assert found.zebra.tag == tag
    assert found.d_sys_pav == linkability


def test_three_targets_and_five_nontargets_equal_hand_computed_values():
    """In the order of scores n n n t n t n t: blocks of (targets, nontargets) are (0, 3), (2, 2), (1, 0)."""
    found, pooled = result("tiny_3v5", "default"), sorted_scores("tiny_3v5").blocks
    assert (pooled.target.tolist(), pooled.nontarget.tolist()) == ([0, 2, 1], [3, 2, 0])
    middle = np.log(5 / 3)
    misses, false_alarms = 2 / 3 * np.log2(1 + np.exp(-middle)), 2 / 5 * np.log2(1 + np.exp(middle))
    close(found.min_cllr, (misses + false_alarms) / 2, 1e-14)
    # Laplace's trials are added to the last
    close(found.zebra.individual, np.log10((1 + 1) / (0 + 1) * 5 / 3), 1e-14)
    assert found.eer["rocch"] == 0.25


def test_quantised_scores_are_evaluated_unchanged():
    """Breaking the ties would give 11.0 % instead of 17.1 %."""
    close(result("quantised_0.5", "default").eer["rocch"], 0.171136638452237, 1e-13)
    close(result("quantised_0.5", "zebra-2020").eer["rocch"], 0.11007009345794393, 1e-13)


def test_infinite_scores_are_allowed():
    found = result("with_inf", "default")
    close(found.eer["interpolated"], 0.154, 1e-13)
    assert found.cllr == np.inf
    assert np.isnan(found.d_sys)
    assert {"cllr", "d_sys"} <= set(found.notes)
    assert 0 < d_sys_pav(sorted_scores("with_inf")) < 1
    assert min_cllr(sorted_scores("with_inf")) == pytest.approx(0.49988975091085963, abs=1e-12)


# the complete sets, of which only the order is kept here


@pytest.mark.parametrize("name", RANKS)
def test_the_largest_sets_equal_the_references(name, shared):
    with np.load(shared / "golden" / "evaluation" / "inputs.npz") as file:
        found = evaluate(sort_scores(file[f"{name}/tar"], file[f"{name}/non"]), priors=PRIORS)
    close(found.cllr, GOLDEN[name]["zebra"]["cllr_act"], 1e-12)
    assert found.d_sys == GOLDEN[name]["D_sys"]
    for prior, point in zip(PRIORS, GOLDEN[name]["pybosaris"]["act_dcf_norm"], strict=True):
        close(found.act_dcf[str(prior)], point[0])
    close(found.eer["rocch"], result(name, "default").eer["rocch"], 0)


# real scores with published figures, to all their digits


@pytest.mark.golden
@pytest.mark.parametrize(
    ("system", "published"), [("cosine", "15.6"), ("lda", "7.937"), ("plda", "5.652")]
)
def test_kaldi_systems_on_voxceleb_have_their_published_eer(shared, system, published):
    folder = shared / "scores" / "voxceleb1_ivector"
    target, nontarget = read_split(
        folder / f"{system}_scores.gz", folder / "voxceleb1_trials_sv.gz"
    )
    assert (len(target), len(nontarget)) == (18860, 18860)
    # compute-eer prints four significant digits
    assert f"{100 * eer(target, nontarget, method='kaldi'):.4g}" == published


@pytest.mark.golden
def test_the_tno_system_of_sre_2008_has_its_published_figures(shared):
    path = shared / "scores" / "sre2008_tno" / "tno.2008.tsv.gz"
    choice = Choice(segment=("test", "chan"))
    target, nontarget = read_split(path, path, scores_columns=choice, key_columns=choice)
    assert (len(target), len(nontarget)) == (20449, 78327)
    assert f"{cllr(target, nontarget):.7f}" == "0.2501407"
    assert f"{min_cllr(target, nontarget):.7f}" == "0.2237935"
    assert f"{100 * eer(target, nontarget, method='speechbrain'):.6f}" == "5.623803"
    assert f"{100 * eer(target, nontarget):.6f}" == "5.617778"
    assert f"{target.mean():.6f}" == "6.341288"
    assert f"{nontarget.mean():.6f}" == "-5.142138"


@pytest.mark.golden
def test_the_radboud_system_of_evalita_2009_has_its_published_figures(shared):
    path = shared / "scores" / "evalita2009_ru" / "ru.2009.table.gz"
    choice = Choice(segment=("test", "mcond"))
    target, nontarget = read_split(path, path, scores_columns=choice, key_columns=choice)
    assert (len(target), len(nontarget)) == (15252, 9600)
    cost = act_dcf(target, nontarget, p_target=0.01, c_miss=10, c_fa=1, normalised=False)
    assert cost == pytest.approx(0.03291547867387523, abs=1e-15)
    assert np.isfinite(target).all()
