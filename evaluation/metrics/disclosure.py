"""Disclosure of identity by scores: ZEBRA, for a population and an individual, and linkability D_sys.

ZEBRA
-----

*Population* is the expected information of the scores over all target priors, in bits: the mean, over priors from 0 to
1, of the part of the prior's uncertainty that the scores, calibrated by isotonic regression, resolve. It lies between 0
and 1 / log 4 = 0.721 bit.

*Individual* is the worst case: the largest |log10 LLR| of any trial, under Laplace's rule of succession, which imposes
a ceiling by the number of trials. A *tag* names its order of magnitude. Scores that isotonic regression merges into a
single block carry no evidence, so that their worst case is 0.

Linkability
-----------
D_sys says how far the scores of mated (target) trials stand out from those of non-mated ones: the local linkability of
a score is 2 w LR / (1 + w LR) - 1 where that is positive, else 0, with the likelihood ratio LR and
w = P(mated) / P(non-mated); D_sys is its mean over mated scores. `d_sys` estimates LR with histograms, as the
references do, to the last bit; `d_sys_pav` with isotonic regression, which needs no bins and is 0 for reversed scores.

References
----------
.. [1] A. Nautsch et al., "The privacy ZEBRA: zero evidence biometric recognition assessment", Interspeech 2020.
.. [2] M. Gomez-Barrero et al., "General framework to evaluate unlinkability in biometric template protection systems",
   IEEE Transactions on Information Forensics and Security 13, 2018.
.. [3] M. Maouche et al., "A comparative study of speech anonymization metrics", Interspeech 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.metrics.detection import sort_with_warning
from evaluation.metrics.sorted_scores import GivenScores, OtherScores, SortedScores
from spkbase.errors import DataError
from spkbase.files import load_yaml, read_yaml_text
from spkbase.work import one_blas_thread

# Upper end of |log10 LLR| for each tag; the last tag has none
SCALE = (("0", 0.0), ("A", 1.0), ("B", 2.0), ("C", 4.0), ("D", 5.0), ("E", 6.0), ("F", np.inf))

# Z(a) = a/6 - a^2/24 + ... around 0, where the closed form cancels; coefficients from power 1 on
_SERIES = (0, 1 / 6, -1 / 24, 1 / 360, 1 / 1440, -1 / 10080, -1 / 60480, 1 / 302400, 1 / 2419200)

_SERIES_BELOW = 0.1
_PRINTED_AS_DECIMAL = 5e-4
_MATED_PER_BIN = 10
_MAX_BINS = 100
_FEW_BINS = 10

# the reference's value is called misleading if it differs from the tie-safe value by at least this
_MISLEADS = 0.1


@dataclass(frozen=True)
class Zebra:
    """The ZEBRA metrics of scores.

    Parameters
    ----------
    population : float
        Expected disclosure in bits, 0 to 1 / log 4.
    individual : float
        Largest |log10 LLR|.
    individual_ceiling : float
        The largest value of `individual` that this number of trials can reach.
    tag : str
        Category of `individual`.
    """

    population: float
    individual: float
    individual_ceiling: float
    tag: str

    def __str__(self) -> str:
        """Return population, individual and tag as the reference prints them in a legend."""
        return f"{format_value(self.population)}, {format_value(self.individual)}, {self.tag}"


def zebra(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    scale: Sequence[tuple[str, float]] = SCALE,
) -> Zebra:
    """Return population, individual, ceiling and tag.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores; any increasing map of them gives the same.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    scale : sequence of (str, float)
        Tags with the upper end of their interval, in ascending order; see `read_scale`.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.

    Examples
    --------
    >>> print(zebra([1.0, 2.0], [-1.0, -2.0]))
    0.721, 0.477, A
    """
    scores = sort_with_warning(target, nontarget, labels)
    worst = individual(scores)
    ceiling = individual_ceiling(scores.n_target, scores.n_nontarget)
    return Zebra(population(scores), worst, ceiling, tag(worst, scale=scale))


@one_blas_thread()
def population(target: GivenScores, nontarget: OtherScores = None) -> float:
    """Return the expected disclosure in bits, between 0 and 1 / log 4.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores; any increasing map of them gives the same.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.
    """
    blocks = sort_with_warning(target, nontarget).blocks
    # an infinite loss of the other class must not meet a weight of 0
    disclosed = [
        weights[weights > 0] @ disclosure(sign * blocks.llr[weights > 0]) / weights.sum()
        for sign, weights in ((1, blocks.target), (-1, blocks.nontarget))
    ]
    return float(sum(disclosed) / np.log(2))


def disclosure(llr: np.ndarray) -> np.ndarray:
    """Return the information in an LLR a, integrated over priors: 1/4 + (a - expm1 a) / (2 expm1(a)^2) nats.

    Parameters
    ----------
    llr : ndarray of float64 of shape (B,)
        Natural LLRs, possibly infinite: the disclosure is 1/4 at +inf and -inf at -inf.
    """
    llr = np.asarray(llr, np.float64)
    grown = np.expm1(np.clip(llr, -np.inf, 700.0))
    small = np.abs(llr) < _SERIES_BELOW
    grown = np.where(small, 1.0, grown)
    closed = 0.25 + (np.minimum(llr, 700.0) / grown - 1) / (2 * grown)
    return np.where(
        small, np.polynomial.polynomial.polyval(np.where(small, llr, 0.0), _SERIES), closed
    )


def individual(target: GivenScores, nontarget: OtherScores = None) -> float:
    """Return the largest |log10 LLR| under Laplace's rule of succession.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Scores; any increasing map of them gives the same.

    Raises
    ------
    DataError
        If a class is empty or a score is NaN.
    """
    scores = sort_with_warning(target, nontarget)
    if len(scores.blocks) == 1:
        return 0.0
    return float(np.abs(scores.laplace_blocks.llr).max() / np.log(10))


def individual_ceiling(n_target: float, n_nontarget: float) -> float:
    """Return the largest `individual` that this number of trials can reach: that of perfectly separated scores.

    Parameters
    ----------
    n_target, n_nontarget : float
        Number of trials of each class.

    Examples
    --------
    >>> round(individual_ceiling(500, 1000), 6)
    3.000868
    """
    most = max((n_target + 1) * n_nontarget / n_target, (n_nontarget + 1) * n_target / n_nontarget)
    return float(np.log10(most))


def ceiling_note(value: float, ceiling: float) -> str:
    """Return a note if more trials might exceed the worst case; "" if it is below the ceiling.

    Parameters
    ----------
    value, ceiling : float
        `individual` and its `individual_ceiling`.
    """
    if value >= ceiling * (1 - 1e-9):
        return "at the ceiling that the number of trials imposes"
    return ""


def tag(value: float, *, scale: Sequence[tuple[str, float]] = SCALE) -> str:
    """Return the category of a worst case: the first whose upper end it does not exceed.

    Parameters
    ----------
    value : float
        Largest |log10 LLR|.
    scale : sequence of (str, float)
        Tags with the upper end of their interval, rising to infinity; see `read_scale`.

    Examples
    --------
    >>> [tag(value) for value in (0, 1, 1.001, 3.979, 4.035, 7)]
    ['0', 'A', 'B', 'C', 'D', 'F']
    """
    return next(name for name, end in scale if value <= end)


def read_scale(path: str | Path) -> tuple[tuple[str, float], ...]:
    """Read a scale of tags from a YAML file: a mapping of each tag to the upper end of its |log10 LLR|, rising to .inf.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    tuple of (str, float)
        Tags with the upper end of their interval.

    Raises
    ------
    DataError
        With the file, if it cannot be read or holds something else.
    """
    path = Path(path)
    content: Any = load_yaml(read_yaml_text(path), file=path)[0]
    remedy = "write such as '\"0\": 0', 'A: 1', 'B: .inf', one line each"
    if (
        not content
        or not isinstance(content, dict)
        or {*map(type, content.values())} - {int, float}
    ):
        raise DataError("expected a mapping of tags to numbers", file=path, remedy=remedy)
    ends = [float(end) for end in content.values()]
    if ends[-1] != np.inf or not all(low < high for low, high in pairwise(ends)) or ends[0] < 0:
        raise DataError(
            f"expected ends that rise from 0 or more to .inf, got {ends}", file=path, remedy=remedy
        )
    return tuple(zip(map(str, content), ends, strict=True))


def format_value(value: float) -> str:
    """Return a value as the reference prints it: three decimals, one digit with an exponent if it is small, or 0.

    Parameters
    ----------
    value : float
        The value, negative only for a difference.

    Examples
    --------
    >>> [format_value(value) for value in (0.5839, 0.00043, 0.00003, 0.0, 3.979, -0.0349)]
    ['0.584', '4e-04', '3e-05', '0', '3.979', '-0.035']
    """
    if value == 0:
        return "0"
    if abs(value) >= _PRINTED_AS_DECIMAL:
        return f"{value:.3f}"
    return f"{value:.0e}"


def meaning_of(category: str, *, scale: Sequence[tuple[str, float]] = SCALE) -> str:
    """Describe in words what a tag means for the odds of an attacker.

    Evidence of |log10 LLR| = x multiplies the odds by 10^x; even odds become 10^x to 1.

    Parameters
    ----------
    category : str
        A tag of the scale.
    scale : sequence of (str, float)
        See `zebra`.

    Raises
    ------
    DataError
        If the tag is not on the scale.

    Examples
    --------
    >>> meaning_of("0"), meaning_of("C")
    ('no evidence: even odds stay even', 'even odds become up to 10,000 to 1 at worst (|log10 LLR| above 2, up to 4)')
    >>> meaning_of("F")
    'even odds become more than 1,000,000 to 1 at worst (|log10 LLR| above 6)'
    """
    ends = dict(scale)
    if category not in ends:
        raise DataError(f"expected one of the categories {', '.join(ends)}, got {category!r}")
    number = list(ends).index(category)
    low = [0.0, *ends.values()][number]
    high = ends[category]
    if high == 0:
        return "no evidence: even odds stay even"
    limits = []
    if low:
        limits.append(f"above {low:g}")
    odds = f"more than {_odds(low)}"
    if np.isfinite(high):
        odds = f"up to {_odds(high)}"
        limits.append(f"up to {high:g}")
    evidence = f"|log10 LLR| {', '.join(limits)}".rstrip()
    return f"even odds become {odds} at worst ({evidence})"


def format_profile(result: Zebra, label: str = "ZEBRA profile") -> str:
    """Return the lines that the reference prints, with a blank line before and after.

    Parameters
    ----------
    result : Zebra
        See `zebra`.
    label : str
        Name of the system.

    Examples
    --------
    >>> print(format_profile(Zebra(0.5839, 3.9791, 4.5, "C")).strip())
    ZEBRA profile
    Population: 0.584 bit
    Individual: 3.979 (C)
    """
    values = f"Population: {format_value(result.population)} bit\nIndividual: {format_value(result.individual)}"
    return f"\n{label}\n{values} ({result.tag})\n"


def d_sys(
    target: GivenScores,
    nontarget: OtherScores = None,
    labels: OtherScores = None,
    *,
    omega: float = 1.0,
) -> float:
    """Return the linkability with the histograms of the reference.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Mated and non-mated scores.
    labels : array_like of bool, of 0 and 1, or of str, optional
        The class of each score, if the first argument holds all scores; see `evaluation.trials.by_class`.
    omega : float
        P(mated) / P(non-mated), above 0.

    Returns
    -------
    float
        Between 0 and 1, or NaN where the reference has no value: if all scores are equal or some are infinite. The
        reference gives 0 for fewer than 10 mated scores, 0.97 for separated scores (0.5 if all mated ones lie in the
        last bin) and 0.97 for fully reversed scores; see `d_sys_caveat`.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or omega is not positive and finite.
    """
    from scipy.integrate import trapezoid  # NumPy has one only since 2.0

    scores = sort_with_warning(target, nontarget, labels)
    if not 0 < omega < np.inf:
        raise DataError(f"expected omega to be positive and finite, got {omega}")
    low = float(scores.thresholds[0])
    high = float(scores.thresholds[-1])
    if low == high or not math.isfinite(high - low):
        return np.nan
    n_bins = min(int(scores.n_target / _MATED_PER_BIN), _MAX_BINS)
    edges = np.linspace(low, high, n_bins + 1)
    if not n_bins or not (np.diff(edges) > 0).all():
        if not n_bins:
            return 0.0
        return np.nan
    places = np.searchsorted(scores.thresholds, edges)
    places[-1] = len(scores)  # the last bin includes its upper edge
    counts = (np.diff(cumulated[places]) for cumulated in (scores.misses, scores.rejected))
    mated, other = (bins / np.diff(edges) / bins.sum() for bins in counts)
    ratio = np.divide(mated, other, out=np.ones_like(mated), where=other != 0)
    local = 2 * (omega * ratio / (1 + omega * ratio)) - 1
    local[omega * ratio <= 1] = 0
    local[(other == 0) & (mated != 0)] = 1
    centres = (edges[1:] + edges[:-1]) / 2
    return float(trapezoid(local * mated, centres))


@one_blas_thread()
def d_sys_pav(target: GivenScores, nontarget: OtherScores = None, *, omega: float = 1.0) -> float:
    """Return the linkability with likelihood ratios from isotonic regression.

    It has no bins, and is safe with ties and infinite scores.

    Parameters
    ----------
    target, nontarget : array_like of float of shapes (n_target,) and (n_nontarget,), Scores and Key, or SortedScores
        Mated and non-mated scores.
    omega : float
        P(mated) / P(non-mated), above 0.

    Returns
    -------
    float
        Between 0 and 1, biased upwards for few trials.

    Raises
    ------
    DataError
        If a class is empty, a score is NaN, or omega is not positive and finite.

    Examples
    --------
    >>> d_sys_pav([1.0, 2.0], [-1.0, -2.0]), d_sys_pav([-1.0, -2.0], [1.0, 2.0])
    (1.0, 0.0)
    """
    scores = sort_with_warning(target, nontarget)
    if not 0 < omega < np.inf:
        raise DataError(f"expected omega to be positive and finite, got {omega}")
    blocks = scores.blocks
    local = np.maximum(np.tanh((blocks.llr + np.log(omega)) / 2), 0.0)
    return float(blocks.target @ local / blocks.target.sum())


def d_sys_caveat(value: float, scores: SortedScores, *_: str) -> str | None:
    """Return why the value of `d_sys` is undefined or misleading, or None."""
    pav_value = d_sys_pav(scores)
    if np.isnan(value):
        return "undefined: the histogram needs finite scores that are neither all equal nor too far apart"
    n_target = scores.n_target
    n_bins = min(int(scores.n_target / _MATED_PER_BIN), _MAX_BINS)
    if not n_bins:
        return f"misleads: {n_target:g} target trials give no bin, so that it is 0 (at least {_MATED_PER_BIN} needed)"
    if value - pav_value > _MISLEADS:
        return "misleads: it counts scores as linkable where targets are rarer the higher the score; see d_sys_pav"
    if pav_value - value > _MISLEADS:
        return "misleads: far below d_sys_pav, as its bins are wide and the trapezoid rule counts half of the last one"
    if n_bins < _FEW_BINS:
        return f"uncertain: {n_target:g} target trials give {n_bins} bins only"
    return None


def _odds(exponent: float) -> str:
    odds = f"10^{exponent:g}"
    if exponent < 4:
        odds = f"{10**exponent:,.4g}"
    elif exponent < 10:
        odds = f"{round(10**exponent):,}"
    return f"{odds} to 1"
