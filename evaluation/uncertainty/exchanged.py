"""Equal error rates if some anonymised files belong to speakers other than those that their names state.

A trial of an exchanged file has the label of a target trial and the score of a nontarget trial: its misses look like
privacy. At the threshold of the measured equal error rate e, nontarget trials are accepted with probability e. If a
share w of the target trials involve exchanged files, the measured miss rate is e = (1 - w) m + w (1 - e), where m is
the miss rate of all others. The true equal error rate lies between m and e.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def eer_bound(eer: ArrayLike, exchanged: ArrayLike) -> NDArray[np.float64]:
    """Return the smallest true equal error rate if a share of the target trials involve exchanged files.

    Parameters
    ----------
    eer : array_like of float
        Measured equal error rates, as fractions. The lower end of an interval gives the lower end of the bound.
    exchanged : array_like of float
        Share of the target trials with exchanged files, w; see `share_of_trials`.

    Returns
    -------
    ndarray of float64
        (e (1 + w) - w) / (1 - w), at least 0; 0 if w is 1 or NaN, since nothing is known then.

    Examples
    --------
    >>> eer_bound(0.46, [0.0, 0.2, 1.0]).round(3).tolist()
    [0.46, 0.44, 0.0]
    """
    share = np.nan_to_num(np.asarray(exchanged, dtype=float), nan=1.0)
    rate = np.asarray(eer, dtype=float)
    rest = np.where(share < 1, 1 - share, np.inf)
    bound: NDArray[np.float64] = np.maximum((rate * (1 + share) - share) / rest, 0.0)
    return bound


def eer_guess(eer: ArrayLike, exchanged: ArrayLike) -> NDArray[np.float64]:
    """Return the best guess of the true equal error rate: the mean of the bound and the measured rate.

    Parameters
    ----------
    eer, exchanged : array_like of float
        See `eer_bound`.

    Returns
    -------
    ndarray of float64
        (e - w / 2) / (1 - w) if the bound is above 0.

    Examples
    --------
    >>> eer_guess(0.46, [0.0, 0.2]).round(3).tolist()
    [0.46, 0.45]
    """
    guess: NDArray[np.float64] = (eer_bound(eer, exchanged) + np.asarray(eer, dtype=float)) / 2
    return guess


def share_of_trials(enrolment: ArrayLike, tests: ArrayLike) -> NDArray[np.float64]:
    """Return the share of target trials in which either side is exchanged, if both sides are exchanged independently.

    Parameters
    ----------
    enrolment, tests : array_like of float
        Shares of exchanged files; 0 for a side that is original speech.

    Examples
    --------
    >>> share_of_trials(0.2, [0.0, 0.2]).round(3).tolist()
    [0.2, 0.36]
    """
    share: NDArray[np.float64] = 1 - (1 - np.asarray(enrolment, dtype=float)) * (
        1 - np.asarray(tests, dtype=float)
    )
    return share
