"""Inference, the third criterion of the Article 29 Working Party (opinion 05/2014): what attributes reveal about
people.

Sets of attributes
------------------
The *set* of a person holds the values of several attributes, such as (f, 30 to 39, Lyon), and k is the number of people
who share it. Somebody with k = 1 is *unique*: the set identifies the person. Sets that are inferred from voices are
compared with the true ones [1]_; an attacker who knows the true sets of all P people *names* one of those who agree
with an inferred set in the most attributes, chosen at random. Without a voice that is right in 1 / P of the cases.

Control
-------
An attribute may be inferred about anybody, whether or not their speech was published. So the attack on people in the
data is compared with the same attack on people who are not [2]_: from the rates a and c

    risk = (a - c) / (1 - c),

which is 0 if nothing is inferred because of the data, and at most 1; if inference works better on the control, it is 0.

Intervals
---------
*Unique*: with F_k sets that k people share, the number F_1 of unique people has the variance (of independent Poisson
counts, given P)

    F_1 - (F_1 - 2 F_2)^2 / P - max(0, 2 F_2 - 6 F_3),

whose last term is a lower bound of an unknown sum over sets. The ends are those of Clopper and Pearson for as many
independent people as would have this variance, at most P [3]_; P / 2 if all are unique, because a shared set involves
two people.

*Rates*: means over speakers, by `evaluation.linkage.mean_interval`.

*Risk*: 1 - risk is the ratio of two independent error rates p and q, with ends (l, u) and (l', u'); its ends are [4]_

    (p q - sqrt(p^2 q^2 - l u' (2 p - l) (2 q - u'))) / (u' (2 q - u')),
    (p q + sqrt(p^2 q^2 - u l' (2 p - u) (2 q - l'))) / (l' (2 q - l')).

References
----------
.. [1] T. Rahman, M. Larson and C. Tejedor-Garcia, "Voice privacy from an attribute-based perspective", arXiv
   2603.20301.
.. [2] M. Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", PoPETs 2023.
.. [3] E. Korn and B. Graubard, "Confidence intervals for proportions with small expected number of positive counts
   estimated from survey data", Survey Methodology 24, 1998.
.. [4] A. Donner and G. Zou, "Closed-form confidence intervals for functions of the normal mean and standard deviation",
   Statistical Methods in Medical Research 21, 2012 (method of variance estimates recovery).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.linkage import mean_interval
from evaluation.metrics import clopper_pearson
from evaluation.trials import numbers_of
from evaluation.uncertainty import Interval, Resampling, to_report
from spkbase.errors import DataError
from spkbase.showing import Tabular, one_line


@one_line
@dataclass(frozen=True, eq=False)
class InferredSets:
    """Sets of attributes of P people, true or inferred.

    Attributes
    ----------
    speakers : list of str
        The people, sorted.
    sets : list of tuple of str
        The set of each person; inferred sets are those from all recordings.
    sizes : ndarray of int64 of shape (P,)
        For each person, the number k of people with an equal set.
    unique : Interval
        Share of people with k = 1.
    right, right_by_one : Interval
        Share of people whose whole set is inferred correctly from all recordings, and mean share of single recordings
        from which it is.
    named, named_by_one : Interval
        How often the right person is named among all, from all recordings and from single ones; see the module.
    """

    speakers: list[str]
    sets: list[tuple[str, ...]]
    sizes: NDArray[np.int64]
    unique: Interval
    right: Interval
    right_by_one: Interval
    named: Interval
    named_by_one: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return the rates, and the number of people by k, for a report."""
        numbers, counts = np.unique(self.sizes, return_counts=True)
        report = to_report(self)
        for name in ("speakers", "sets", "sizes"):
            del report[name]
        by_size = dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True))
        return {"n_people": len(self.sizes), "people_by_k": by_size, **report}


@one_line
@dataclass(frozen=True)
class InferenceRisk(Tabular):
    """How much more is inferred about people in the data than about others.

    Attributes
    ----------
    risk : Interval
        The risk, see the module; NaN if everything is inferred about the others too.
    attack, control : Interval
        Rate of right inferences about people in the data, and about others.
    n_attacked, n_control : int
        Numbers of people.
    """

    risk: Interval
    attack: Interval
    control: Interval
    n_attacked: int
    n_control: int

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each of risk, attack and control."""
        rates = {"risk": self.risk, "attack": self.attack, "control": self.control}
        return {
            "rate": list(rates),
            "value": [rate.value for rate in rates.values()],
            "low": [rate.low for rate in rates.values()],
            "high": [rate.high for rate in rates.values()],
            "people": [self.n_attacked, self.n_attacked, self.n_control],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, for a report."""
        return to_report(self)


def set_sizes(sets: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the number k of people who share the set of each person, this person included.

    Examples
    --------
    >>> set_sizes([("f", "Lyon"), ("m", "Lyon"), ("f", "Lyon")]).tolist()
    [2, 1, 2]
    """
    counts = Counter(sets)
    return np.array([counts[own] for own in sets], np.int64)


def uniqueness(sets: Sequence[Hashable], *, level: float = 0.95) -> Interval:
    """Return the share of people whose set is theirs alone, with the interval of its expectation over groups of this
    size.

    Parameters
    ----------
    sets : sequence of hashable, length P
        The set of each person.
    level : float
        Confidence level of the intervals.

    Raises
    ------
    DataError
        If there are no people.

    Examples
    --------
    >>> uniqueness(["a", "b", "c", "c"]).value
    0.5
    """
    n_people = len(sets)
    if not n_people:
        raise DataError("expected sets of people, got none")
    shared_by = np.bincount(list(Counter(sets).values()), minlength=4)
    unique, pairs, threes = shared_by[1:4].tolist()
    variance = unique - (unique - 2 * pairs) ** 2 / n_people - max(0, 2 * pairs - 6 * threes)
    independent = float(n_people)
    if unique == n_people:
        independent = n_people / 2
    elif variance > 0 and unique:
        independent = min(independent, unique * (n_people - unique) / variance)
    share = unique / n_people
    low, high = clopper_pearson(share * independent, (1 - share) * independent, level=level)
    return Interval(share, float(low), float(high), "Clopper-Pearson, effective number of people")


def shares_named(
    truth: Sequence[tuple[str, ...]], inferred: Sequence[tuple[str, ...]], owners: ArrayLike
) -> NDArray[np.float64]:
    """Return the probability that the right person is named from each inferred set.

    Parameters
    ----------
    truth : sequence of tuple of str, length P
        The true set of each person, which the attacker knows.
    inferred : sequence of tuple of str, length n
        Inferred sets, with equally many attributes.
    owners : array_like of int of shape (n,)
        Index of the person of each set, from 0.

    Returns
    -------
    ndarray of float64 of shape (n,)
        1 / (number of people who agree in the most attributes) if the right person is one of them, else 0.

    Raises
    ------
    DataError
        If sets differ in the number of attributes.

    Examples
    --------
    >>> people = [("f", "old"), ("f", "young"), ("m", "old")]
    >>> shares_named(people, [("f", "old"), ("m", "young")], [0, 2]).tolist()
    [1.0, 0.5]
    """
    if len({*map(len, truth), *map(len, inferred)}) != 1:
        raise DataError("expected equally many attributes in every set")
    counts = Counter(truth)
    known = list(counts)
    n_people = np.array(list(counts.values()))
    number = {own: row for row, own in enumerate(known)}
    own = np.array([number[own] for own in truth])[np.asarray(owners)]
    kinds = list(dict.fromkeys(inferred))
    kind = {guess: row for row, guess in enumerate(kinds)}
    guessed = np.array([kind[guess] for guess in inferred])
    agreeing = np.zeros((len(kinds), len(known)), np.int64)
    for guess, true in zip(zip(*kinds, strict=True), zip(*known, strict=True), strict=True):
        agreeing += np.array(guess, object)[:, None] == np.array(true, object)
    is_nearest = agreeing == agreeing.max(axis=1, keepdims=True)
    named = is_nearest[guessed, own] / (is_nearest @ n_people)[guessed]
    return np.asarray(named, np.float64)


def inference_risk(
    attacked: ArrayLike, control: ArrayLike, resampling: Resampling | None = None
) -> InferenceRisk:
    """Return how much more is inferred about people in the data than about others.

    Parameters
    ----------
    attacked, control : array_like of float of shapes (P,) and (C,)
        Share of right inferences about each person in the data, and about each other person: 0, 1, or a mean over
        several recordings.
    resampling : Resampling, optional
        Resampling of people for the rates; `Resampling()` by default.

    Raises
    ------
    DataError
        If there are no people, or a share is not between 0 and 1.

    Examples
    --------
    >>> found = inference_risk([1.0] * 90 + [0.0] * 10, [1.0, 0.0] * 50)
    >>> round(found.risk.value, 3), round(found.risk.low, 2), round(found.risk.high, 2)
    (0.8, 0.63, 0.9)
    """
    rates = []
    for name, shares in (("attacked", attacked), ("control", control)):
        values = numbers_of(shares, f"shares of {name} people")
        if not (len(values) and np.all((values >= 0) & (values <= 1))):
            text = f"expected shares between 0 and 1 of {name} people, got {values!r:.60}"
            raise DataError(text, remedy="give a share for each person")
        rates.append(mean_interval(values, resampling))
    attack, others = rates
    counts = (np.size(attacked), np.size(control))
    return InferenceRisk(_excess(attack, others), attack, others, *counts)


def _excess(attack: Interval, control: Interval) -> Interval:
    """Return the risk of two rates with its interval, see the module."""
    missed = 1 - attack.value
    others = 1 - control.value
    if others < 1e-12:
        return Interval(note="everything is inferred about the control group too")
    value = 1 - missed / others
    low = 1 - _ratio_end(missed, 1 - attack.low, others, 1 - control.high, 1.0)
    high = 1 - _ratio_end(missed, 1 - attack.high, others, 1 - control.low, -1.0)
    value, low, high = np.clip([value, low, high], 0.0, 1.0).tolist()
    return Interval(value, low, high, "ratio of error rates (MOVER)")


def _ratio_end(above: float, end: float, below: float, other: float, sign: float) -> float:
    """Return an end of the interval of a ratio, from the ends of numerator and denominator that belong to it."""
    scale = other * (2 * below - other)
    if scale <= 1e-12:
        return np.inf
    product = above * below
    square = product**2 - end * (2 * above - end) * scale
    return float((product + sign * np.sqrt(max(square, 0.0))) / scale)


def people_by_k(sets: Mapping[str, InferredSets]) -> dict[str, list[Any]]:
    """Count the people whose set k people have (1, 2 to 4, more), as columns of a table, for each kind of sets."""
    columns: dict[str, list[Any]] = {"sets": list(sets)}
    for title, low, high in (("k = 1", 1, 1), ("k = 2 to 4", 2, 4), ("k above 4", 5, np.inf)):
        cells = []
        for own in sets.values():
            cells.append(int(((own.sizes >= low) & (own.sizes <= high)).sum()))
        columns[title] = cells
    return columns
