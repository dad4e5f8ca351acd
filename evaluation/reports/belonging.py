"""For the verdict: whether files belong to the originals of the same name, as a share, a state and a reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from evaluation.reports.about import PAIRING_STATES, Pairing
from evaluation.uncertainty import Interval, eer_bound, eer_guess, share_of_trials
from spkbase.errors import few

_OF_NOTHING = ("certain", "identical")  # states in which no trial can involve an exchanged file
_NOTHING = Interval(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Belonging:
    """Whether the files of a data set belong to the originals of the same name.

    Attributes
    ----------
    share : Interval
        Share of the target trials that may involve exchanged files; unknown if it is not confirmed that files match.
    state : str
        The gravest of `evaluation.reports.about.PAIRING_STATES`; empty if nothing was compared.
    reason : str
        Reason for the state, without a full stop.
    """

    share: Interval = field(default=_NOTHING)
    state: str = ""
    reason: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the share has an upper end."""
        return not math.isnan(self.share.high)

    @property
    def condition(self) -> str:
        """The condition of a verdict; empty without one."""
        if self.is_known:
            return ""
        text = "if each file belongs to its original, which could not be confirmed"
        return ": ".join(filter(None, (text, self.reason)))

    @property
    def sentence(self) -> str:
        """The finding in a sentence; empty if nothing was compared or the verdict has a condition."""
        if self.state == "certain":
            return "The evaluation ran the anonymiser itself, so each recording belongs to its original."
        if self.state == "identical":
            return "Most recordings are the same file as one of another speaker: nobody can tell whose they are."
        if self.state in ("", "exchanged") or not self.is_known:
            return ""
        text = f"At most {100 * self.share.high:.0f} % of the trials can be of files that belong to another original"
        return f"{text}; the verdict allows for this."

    def bounded(self, eer: Interval) -> Interval:
        """Return the rate with the lower end that it may have if files are exchanged, as far as the share is known.

        The value becomes the best guess. An unknown share changes neither value nor end; see `condition`.
        """
        if not self.is_known:
            return eer
        value = float(eer_guess(eer.value, self.share.value))
        return Interval(value, float(eer_bound(eer.low, self.share.high)), eer.high)


def belonging(pairings: Iterable[Pairing]) -> Belonging:
    """Return whether the files of a data set belong to their originals, by the rows of its enrolment and its trials.

    Of the trial lists, the one with the largest share counts, and also the enrolment.
    """
    rows = [row for row in pairings if row.part != "training"]
    if not rows:
        return Belonging()
    sides: dict[str, list[Interval]] = {"enrolment": [_NOTHING], "trials": [_NOTHING]}
    for row in rows:
        sides[row.part].append(_share(row))
    ends: dict[str, float] = {}
    for end in ("value", "low", "high"):
        enrolment = _largest(map(attrgetter(end), sides["enrolment"]))
        trials = _largest(map(attrgetter(end), sides["trials"]))
        ends[end] = float(share_of_trials(enrolment, trials))
    gravest = min(rows, key=_order)
    share = Interval(ends["value"], ends["low"], ends["high"])
    return Belonging(share, gravest.state, gravest.reason.removesuffix("."))


def least_certain(of_datasets: Sequence[Belonging]) -> Belonging:
    """Return the data set with the largest upper end; an unknown end is larger than any."""
    return max(of_datasets, key=lambda files: (not files.is_known, files.share.high))


def exchanged_in_words(pairings: Iterable[Pairing]) -> str:
    """Return how many files of the worst directory belong to other names; empty if there are none.

    Examples
    --------
    >>> exchanged_in_words([Pairing("x_anon", share=Interval(0.48, 0.31, 0.66), state="exchanged")])
    "about 48 % (31 to 66) of x_anon are other speakers' recordings"
    """
    exchanged = {row.directory: row for row in pairings if row.state == "exchanged"}
    if not exchanged:
        return ""
    worst = max(exchanged.values(), key=lambda row: _largest([row.share.value]))
    amount = "some"
    if worst.share.known:
        amount = f"about {100 * worst.share.value:.0f} %"
    if worst.share.has_interval:
        amount += f" ({100 * worst.share.low:.0f} to {100 * worst.share.high:.0f})"
    text = f"{amount} of {worst.directory} are other speakers' recordings"
    others = exchanged.keys() - {worst.directory}
    if others:
        text += f", and some of {few(others)}"
    return text


def _share(row: Pairing) -> Interval:
    """Return the share of a row that may be exchanged."""
    if row.state in _OF_NOTHING:
        return _NOTHING
    return row.share


def _largest(shares: Iterable[float]) -> float:
    """Return the largest of some shares; NaN if any is unknown."""
    return float(np.max(list(shares)))


def _order(row: Pairing) -> tuple[int, int]:
    """Return a sort key: the gravest state first, then the row with the fewest recordings of determined origin."""
    return PAIRING_STATES.index(row.state), row.own + row.elsewhere
