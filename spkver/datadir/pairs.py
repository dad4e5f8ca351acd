"""Decides to which original an anonymised recording belongs, from similarities and without its name.

A recording *points at* an original if it is clearly more similar to it than to those of other speakers, and the
original has no more similar recording. `decide` combines several sources: cepstra, levels over time, voices and words.
Only then are names used: a recording points at an original of its *own* speaker, or *elsewhere*, or is undecided.
Exchanged files point elsewhere as readily as others point at their own, so their share can be estimated
(`exchanged_share`). A recording that resembles no original proves nothing: it may be anonymised well.

The limits were set on real speech with two anonymisers, see docs/studies/pairs.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ENOUGH = 16
"""Least number of recordings that point at an original for an estimate of the share."""

# robust z at which a source decides to whom a recording belongs, alone or together with another source
_CLEAR = {"cepstra": 5.0, "levels": 4.0, "voices": 4.0}
_BESIDE = {"cepstra": 4.0, "levels": 3.5, "voices": 3.0}
_GAP = 1.5  # least difference between z and that of every other speaker
# information of shared words in nats; one word has at most the logarithm of the number of originals, 5.7 for 300
_NATS = 8.0
_WORDS = 2.0
# standard deviation of normal numbers, as a multiple of their median absolute deviation
_MAD = 1.4826
_HUB = 2.0
_LEVEL = 0.95


class Similarities(NamedTuple):
    """How similar each of n recordings is to each of m originals, by source; None: not measured.

    Attributes
    ----------
    cepstra, levels, voices : ndarray of float of shape (n, m), optional
        Similarities on any scale.
    information : ndarray of float of shape (n, m), optional
        `shared_information` of words in nats; 0 if words were not recognised.
    words : ndarray of float of shape (n, m), optional
        `shared_words`.
    """

    cepstra: NDArray[np.floating]
    levels: NDArray[np.floating]
    voices: NDArray[np.floating] | None = None
    information: NDArray[np.floating] | None = None
    words: NDArray[np.floating] | None = None


class Decision(NamedTuple):
    """The original that each of n recordings points at, by its column; -1: undecided.

    Attributes
    ----------
    speakers : ndarray of int of shape (n,)
        Column of an original of the same speaker.
    texts : ndarray of int of shape (n,)
        Column of an original with the same text.
    """

    speakers: NDArray[np.intp]
    texts: NDArray[np.intp]


def decide(
    similarities: Similarities,
    speakers: Sequence[str],
    texts: Sequence[str] | None = None,
    *,
    are_recognised: bool = False,
) -> Decision:
    """Return the originals that recordings point at.

    Cepstra and levels depend on what is said. So they suffice alone only if nobody else says the same; otherwise, and
    if `texts` are unknown, a second source must name the same speaker. Sources that name different speakers leave a
    recording undecided.

    Parameters
    ----------
    similarities : Similarities
        Similarities of distinct recordings: of two equal recordings, neither would be the most similar one.
    speakers : sequence of str
        Speaker of each of the m originals.
    texts : sequence of str, optional
        Text of each original; empty if unknown.
    are_recognised : bool
        Whether the texts come from a recogniser. Its errors make equal texts differ, so only words are then compared.
    """
    owners = _codes(speakers)
    clear = _pointers(similarities, owners, _CLEAR)
    beside = _pointers(similarities, owners, _BESIDE)
    if similarities.information is not None:
        clear["words"] = pointed_at(similarities.information, owners, least=_NATS, gap=_NATS)
    alone = _says_alone(owners, texts) & (not are_recognised)
    n_recordings = len(similarities.levels)
    decided = np.full(n_recordings, -1)
    for row in range(n_recordings):
        named = {source: columns[row] for source, columns in clear.items() if columns[row] >= 0}
        owner_by = {
            source: owners[columns[row]] for source, columns in beside.items() if columns[row] >= 0
        }
        if len({owners[column] for column in named.values()}) != 1:
            continue
        for source, column in named.items():
            is_backed = any(
                owner == owners[column] for other, owner in owner_by.items() if other != source
            )
            if source in ("words", "voices") or alone[column] or is_backed:
                decided[row] = column
                break
    return Decision(decided, _decide_texts(similarities, texts, are_recognised=are_recognised))


def robust_scores(similarity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return how far similarities are above those of the same row and of the same column, in standard deviations.

    Parameters
    ----------
    similarity : ndarray of float of shape (n, m)

    Returns
    -------
    ndarray of float64 of shape (n, m)
        The smaller of the two. Location and scale are the median and the median absolute deviation; a score is 0 if the
        latter is 0.
    """
    return np.minimum(_scores(similarity, axis=0), _scores(similarity, axis=1))


def pointed_at(
    scores: NDArray[np.floating], groups: NDArray[np.integer], *, least: float, gap: float
) -> NDArray[np.intp]:
    """Return the column that each row points at; -1: none.

    Parameters
    ----------
    scores : ndarray of float of shape (n, m)
    groups : ndarray of int of shape (m,)
        Group of each column, such as its speaker.
    least : float
        Smallest score that counts.
    gap : float
        Least difference between the score and those of all other groups in the row. The score must also be the unique
        largest one in its column.
    """
    best, is_clear = _clearly_largest(scores, groups, least, gap)
    is_mutual = np.sum(scores[:, best] >= scores.max(axis=1), axis=0) == 1
    return np.where(is_mutual & is_clear, best, -1)


def pointed_groups(
    scores: NDArray[np.floating], groups: NDArray[np.integer], *, least: float, gap: float
) -> NDArray[np.intp]:
    """Return a column of the group that each row points at; -1: none.

    Several rows may point at the same group. A group at which far more rows point than it has columns is excluded: it
    is a voice or a sentence that anonymised recordings have in common.

    Parameters
    ----------
    scores, groups, least, gap
        As in `pointed_at`.
    """
    best, is_clear = _clearly_largest(scores, groups, least, gap)
    pointed = np.where(is_clear, best, -1)
    counts = Counter(groups[pointed[is_clear]].tolist())
    n_rows, n_columns = scores.shape
    for group, count in counts.items():
        expected = np.count_nonzero(groups == group) * n_rows / n_columns
        if count > _HUB * max(1.0, expected):
            pointed[is_clear & (groups[best] == group)] = -1
    return pointed


def shared_information(
    recordings: Sequence[Sequence[str]], originals: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """Return the information that shared words give about the original, in nats.

    Parameters
    ----------
    recordings, originals : sequence of sequence of str
        Words of n recordings and m originals. Repeated words count once.

    Returns
    -------
    ndarray of float64 of shape (n, m)
        Sum over the shared words of -log of the share of originals that have the word.

    References
    ----------
    K. Spärck Jones, A statistical interpretation of term specificity and its application in retrieval, Journal of
    Documentation 28(1), 1972.
    """
    having: Counter[str] = Counter()
    for words in originals:
        having.update(set(words))
    information = {word: -np.log(count / len(originals)) for word, count in having.items()}
    return _sum_over_shared(recordings, originals, information)


def shared_words(
    recordings: Sequence[Sequence[str]], originals: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """Return the number of different words that recordings and originals share; see `shared_information`."""
    ones = dict.fromkeys(chain.from_iterable(originals), 1.0)
    return _sum_over_shared(recordings, originals, ones)


def distinct_pairs(texts: Sequence[str]) -> float:
    """Return the share of random pairs of recordings with different texts: 1 minus the sum of squared shares.

    Examples
    --------
    >>> distinct_pairs(["yes", "no", "yes", "no"])
    0.5
    """
    counts = np.array(list(Counter(texts).values()))
    return float(1 - np.sum((counts / len(texts)) ** 2))


def exchanged_share(
    own: int, elsewhere: int, *, seen: float = 1.0, distinct: float = 1.0
) -> tuple[float, float, float]:
    """Return the share of recordings whose files are exchanged, with its 95 % interval (Wilson).

    Parameters
    ----------
    own, elsewhere : int
        Recordings that point at an original of their own speaker (or text), or elsewhere; at least one.
    seen : float
        Probability that an exchanged file points at any original, relative to other files: less than 1 if its original
        may not be among those compared.
    distinct : float
        Probability that two exchanged files differ in the compared property, see `distinct_pairs`; files that do not
        differ count as own.

    Returns
    -------
    share, low, high : float
        The share and the ends of its interval, at most 1.

    References
    ----------
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 22, 1927.
    """
    from scipy.stats import binomtest

    counted = binomtest(elsewhere, own + elsewhere)
    low, high = counted.proportion_ci(_LEVEL, method="wilson")
    shares = []
    for ratio in (counted.statistic, low, high):
        share = ratio / (ratio + seen * (1 - ratio))
        shares.append(min(1.0, float(share) / distinct))
    return shares[0], shares[1], shares[2]


def _pointers(
    similarities: Similarities, owners: NDArray[np.integer], least: Mapping[str, float]
) -> dict[str, NDArray[np.intp]]:
    """Return the originals that recordings point at by each source, given the least score."""
    pointers = {}
    for source in ("cepstra", "levels"):
        scores = robust_scores(getattr(similarities, source))
        pointers[source] = pointed_at(scores, owners, least=least[source], gap=_GAP)
    if similarities.voices is not None:
        scores = robust_scores(similarities.voices)
        pointers["voices"] = pointed_groups(scores, owners, least=least["voices"], gap=_GAP)
    return pointers


def _decide_texts(
    similarities: Similarities, texts: Sequence[str] | None, *, are_recognised: bool
) -> NDArray[np.intp]:
    """Return an original of the text that each recording points at, if sources agree."""
    decided = np.full(len(similarities.levels), -1)
    texts = texts or []
    known = np.flatnonzero(np.array(texts, dtype=bool))  # empty texts are unknown
    if not len(known):
        return decided
    kinds = _codes([text for text in texts if text])
    pointers = []
    if similarities.words is not None:
        pointers.append(
            pointed_groups(similarities.words[:, known], kinds, least=_WORDS, gap=_WORDS)
        )
    if not are_recognised:
        for source in ("cepstra", "levels"):
            scores = robust_scores(getattr(similarities, source)[:, known])
            pointers.append(pointed_at(scores, kinds, least=_CLEAR[source], gap=_GAP))
    for row in range(len(decided)):
        named = [columns[row] for columns in pointers if columns[row] >= 0]
        if len({kinds[column] for column in named}) == 1:
            decided[row] = known[named[0]]
    return decided


def _clearly_largest(
    scores: NDArray[np.floating], groups: NDArray[np.integer], least: float, gap: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the column of the largest score of each row, and whether it is clearly above those of other groups."""
    best = scores.argmax(axis=1)
    largest = scores.max(axis=1)
    is_rival = groups != groups[best][:, np.newaxis]
    rivals = np.where(is_rival, scores, -np.inf).max(axis=1)
    return best, (largest >= least) & (largest - rivals >= gap) & is_rival.any(axis=1)


def _says_alone(owners: NDArray[np.integer], texts: Sequence[str] | None) -> NDArray[np.bool_]:
    """Return whether no other speaker says the text of an original; False if texts are unknown."""
    if texts is None:
        return np.zeros(len(owners), bool)
    saying: dict[str, set[int]] = {}
    for owner, text in zip(owners, texts, strict=True):
        saying.setdefault(text, set()).add(owner)
    return np.array([len(saying[text]) == 1 for text in texts])


def _scores(similarity: NDArray[np.floating], axis: int) -> NDArray[np.float64]:
    """Return robust z over an axis."""
    above = similarity - np.median(similarity, axis=axis, keepdims=True)
    deviation = _MAD * np.median(np.abs(above), axis=axis, keepdims=True)
    scores: NDArray[np.float64] = np.divide(
        above, deviation, out=np.zeros(above.shape), where=deviation > 0
    )
    return scores


def _sum_over_shared(
    recordings: Sequence[Sequence[str]],
    originals: Sequence[Sequence[str]],
    values: Mapping[str, float],
) -> NDArray[np.float64]:
    """Return sums of the values of the words that recordings and originals share."""
    sums = np.zeros((len(recordings), len(originals)))
    having = [set(words) for words in originals]
    for row, words in enumerate(recordings):
        spoken = set(words)
        for column, others in enumerate(having):
            sums[row, column] = sum(values[word] for word in sorted(spoken & others))
    return sums


def _codes(labels: Sequence[str]) -> NDArray[np.intp]:
    """Return labels as numbers."""
    codes: NDArray[np.intp] = np.unique(np.asarray(labels), return_inverse=True)[1]
    return codes
