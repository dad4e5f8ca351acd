"""Every number at once: detection, calibration, ZEBRA and linkability of one list of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.conventions import (
    Convention,
    cllr_by,
    convention,
    equal_errors_by,
    individual_by,
    min_cllr_by,
    population_by,
)
from evaluation.metrics.detection import act_dcf_of, effective_prior, hull_min_dcf, hull_of, hull_prbep
from evaluation.metrics.operating_points import FALSE_ACCEPT_RATES, TrueAccept, tpr_at_fpr_of
from evaluation.metrics.sorted_scores import Blocks, Runs, as_count, pav, runs_of
from evaluation.metrics.system_linkability import d_sys_caveat, d_sys_of, d_sys_pav_of
from evaluation.metrics.zebra_profile import SCALE, Zebra, individual_ceiling, tag
from spkbase.errors import DataError
from spkbase.work import one_blas_thread

PRIORS = ("0.001", "0.01", "0.05", "0.5")


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` finds; rates are fractions, information is in bits, LLRs are natural.

    Parameters
    ----------
    n_target, n_nontarget : int, or float where trials have weights
        Number of trials.
    convention : str
        The convention that every number follows; see `evaluation.metrics.conventions`.
    eer : dict of str to float
        Equal error rate by the name of its reading; see `evaluation.metrics.equal_error`.
    threshold_at_eer : float
        Score at the equal error rate that the convention reports, ``rocch`` by default.
    cllr, min_cllr, calibration_loss : float
        Cost of the LLRs, its least value under monotone calibration, and the difference; bits.
    min_dcf, act_dcf : dict of str to float
        Least and actual detection cost by target prior, as the prior was written; not normalised.
    min_dcf_normalised : dict of str to float
        The least cost over min(P, 1 - P).
    zebra : Zebra
        Disclosure to the population and to an individual.
    d_sys, d_sys_pav : float
        Linkability in the reference's binning, which may be NaN, and its tie-safe estimate.
    tpr_at_fpr : dict of str to TrueAccept
        True-accept rate by the bound on the false-accept rate.
    prbep : float
        Number of misses and of false alarms where the hull has equally many.
    intervals : dict of str to (low, high)
        Confidence intervals by the name that `values` gives; empty unless they were asked for.
    notes : dict of str to str
        Why a number is undefined, infinite or to be read with care.
    """

    n_target: int | float
    n_nontarget: int | float
    convention: str
    eer: dict[str, float]
    threshold_at_eer: float
    cllr: float
    min_cllr: float
    calibration_loss: float
    min_dcf: dict[str, float]
    act_dcf: dict[str, float]
    min_dcf_normalised: dict[str, float]
    zebra: Zebra
    d_sys: float
    d_sys_pav: float
    tpr_at_fpr: dict[str, TrueAccept]
    prbep: float
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give the numbers by the keys of the JSON report; `spkbase.files.to_json` writes infinite ones as text."""
        nested = {"zebra": vars(self.zebra), "tpr_at_fpr": {rate: vars(one) for rate, one in self.tpr_at_fpr.items()}}
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        return {**vars(self), **nested, "intervals": intervals}

    def values(self) -> dict[str, float]:
        """Give every metric by one flat name, such as ``"eer.rocch"``, ``"min_dcf.0.01"`` or ``"zebra.population"``."""
        flat: dict[str, float] = {}
        for name, one in vars(self).items():
            if name in ("n_target", "n_nontarget", "convention", "intervals", "notes"):
                continue
            if isinstance(one, Zebra):
                flat.update({"zebra.population": one.population, "zebra.individual": one.individual})
            elif name == "tpr_at_fpr":
                flat.update({f"{name}.{rate}": point.value for rate, point in one.items()})
            elif isinstance(one, dict):
                flat.update({f"{name}.{key}": part for key, part in one.items()})
            else:
                flat[name] = one
        return flat

    def with_intervals(
        self, found: Mapping[str, tuple[float, float]], notes: Mapping[str, str] | None = None
    ) -> Evaluation:
        """Add confidence intervals, and notes about them."""
        return replace(self, intervals=dict(found), notes={**self.notes, **(notes or {})})


@dataclass(frozen=True)
class Metrics:
    """Every metric of runs by its flat name: the statistic that a bootstrap draws anew.

    Parameters
    ----------
    priors, convention
        See `evaluate`.

    Examples
    --------
    >>> values = Metrics(priors=("0.5",))(runs_of([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0]))
    >>> values["eer.rocch"], values["min_dcf.0.5"]
    (0.125, 0.125)
    """

    priors: tuple[str | float, ...] = PRIORS
    convention: str = "default"

    def __call__(self, runs: Runs) -> dict[str, float]:
        """Compute them."""
        return self.evaluate(runs).values()

    def evaluate(self, runs: Runs, *, scale: Sequence[tuple[str, float]] = SCALE) -> Evaluation:
        """Compute them with all that belongs to them; see `evaluate_of`."""
        return evaluate_of(runs, convention=self.convention, priors=self.priors, scale=scale)


@one_blas_thread()
def evaluate(
    target: ArrayLike,
    nontarget: ArrayLike,
    *,
    target_weights: ArrayLike | None = None,
    nontarget_weights: ArrayLike | None = None,
    convention: str = "default",
    priors: Sequence[str | float] = PRIORS,
    omega: float = 1.0,
    scale: Sequence[tuple[str, float]] = SCALE,
) -> Evaluation:
    """Compute every metric of scores.

    Parameters
    ----------
    target, nontarget : array_like of float, shapes (n_target,) and (n_nontarget,)
        Scores; for the actual costs and Cllr, natural LLRs. Infinite ones are legal.
    target_weights, nontarget_weights : array_like of float, shapes (n_target,) and (n_nontarget,), optional
        How often each trial counts; once by default.
    convention : {"default", "bosaris", "zebra-2020", "vpc2022", "vpc2024"}
        Whose way to follow; see `evaluation.metrics.conventions`.
    priors : sequence of str or float
        Target priors of the detection costs; the keys of the result are as they are written here.
    omega : float
        P(mated) / P(non-mated) of D_sys.
    scale : sequence of (str, float)
        ZEBRA's tags; see `evaluation.metrics.read_scale`.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or an option is out of range.

    Examples
    --------
    >>> result = evaluate([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0])
    >>> result.eer["rocch"], result.zebra.tag, sorted(result.notes)
    (0.125, 'A', ['d_sys', 'tpr_at_fpr.0.0001', 'tpr_at_fpr.0.001', 'tpr_at_fpr.0.01'])
    """
    runs = runs_of(target, nontarget, target_weights=target_weights, nontarget_weights=nontarget_weights)
    return evaluate_of(runs, convention=convention, priors=priors, omega=omega, scale=scale)


@one_blas_thread()
def evaluate_of(
    runs: Runs,
    *,
    convention: str = "default",
    priors: Sequence[str | float] = PRIORS,
    omega: float = 1.0,
    scale: Sequence[tuple[str, float]] = SCALE,
) -> Evaluation:
    """Compute every metric of runs; see `evaluate`."""
    way, blocks = _convention(convention), pav(runs)
    vertices = hull_of(blocks)
    effective = {str(prior): _prior(prior) for prior in priors}
    errors = equal_errors_by(way, runs, blocks)
    cllr, min_cllr = cllr_by(way, runs), min_cllr_by(way, runs, blocks)
    result = Evaluation(
        n_target=as_count(runs.n_target),
        n_nontarget=as_count(runs.n_nontarget),
        convention=way.name,
        eer={method: error.rate for method, error in errors.items()},
        threshold_at_eer=errors[way.eer].threshold,
        cllr=cllr,
        min_cllr=min_cllr,
        calibration_loss=cllr - min_cllr,
        min_dcf={text: hull_min_dcf(vertices, prior, normalised=False)[0] for text, prior in effective.items()},
        act_dcf={text: act_dcf_of(runs, p_target=prior, normalised=False) for text, prior in effective.items()},
        min_dcf_normalised={text: hull_min_dcf(vertices, prior)[0] for text, prior in effective.items()},
        zebra=_zebra(way, runs, blocks, scale),
        d_sys=d_sys_of(runs, omega=omega),
        d_sys_pav=d_sys_pav_of(blocks, omega=omega),
        tpr_at_fpr={rate: tpr_at_fpr_of(runs, fpr=float(rate)) for rate in FALSE_ACCEPT_RATES},
        prbep=hull_prbep(vertices),
    )
    return replace(result, notes=_notes(result, runs))


def _convention(name: str) -> Convention:
    return convention(name)


def _prior(prior: str | float) -> float:
    try:
        return effective_prior(float(prior))
    except ValueError as error:  # DataError is one too
        raise DataError(f"expected a target prior between 0 and 1, got {prior!r}") from error


def _zebra(way: Convention, runs: Runs, blocks: Blocks, scale: Sequence[tuple[str, float]]) -> Zebra:
    worst = individual_by(way, runs, blocks)
    ceiling = individual_ceiling(runs.n_target, runs.n_nontarget)
    return Zebra(population_by(way, runs, blocks), worst, ceiling, tag(worst, scale=scale))


def _notes(result: Evaluation, runs: Runs) -> dict[str, str]:
    notes = {}
    if np.isinf(result.cllr):
        notes["cllr"] = "infinite: a target trial has a score of -inf, or a nontarget trial +inf"
        if not (np.isinf(runs.thresholds[0]) or np.isinf(runs.thresholds[-1])):
            notes["cllr"] = f"infinite: a posterior underflows, as the convention {result.convention} has it"
        notes["calibration_loss"] = notes["cllr"]
    if caveat := d_sys_caveat(result.d_sys, result.d_sys_pav, runs):
        notes["d_sys"] = caveat
    for rate, point in result.tpr_at_fpr.items():
        if not point.resolved:
            needed = round(1 / float(rate))
            notes[f"tpr_at_fpr.{rate}"] = (
                f"not resolved: {result.n_nontarget:,} nontarget trials, but at least {needed:,} needed"
            )
    if result.zebra.individual >= result.zebra.individual_ceiling * (1 - 1e-9):
        notes["zebra.individual"] = "at the ceiling that the number of trials imposes"
    return notes
