"""Texts as vectors: how often each word, or sequence of characters, stands there, against how common it is.

Reference
---------
G. Salton and C. Buckley, "Term-weighting approaches in automatic text retrieval", Information Processing and Management
24(5), 1988.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.showing import one_line

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'"))
_LENGTH = 3  # characters of a sequence
_PRODUCTS = 65536  # trials at a time


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case and without punctuation.

    Examples
    --------
    >>> words("It's Mr. O\u2019Neil -- THE ** end_")
    ["it's", 'mr', "o'neil", 'the', 'end']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).lower())


def characters(text: str) -> list[str]:
    """Return the sequences of three characters of a text, blanks at the ends of words counted.

    Examples
    --------
    >>> characters("No, no!")
    [' no', 'no ', 'o n', ' no', 'no ']
    """
    joined = f" {' '.join(words(text))} "
    return [joined[first : first + _LENGTH] for first in range(len(joined) - _LENGTH + 1)]


UNITS: Mapping[str, Callable[[str], list[str]]] = {"words": words, "characters": characters}
"""Functions from a text to its terms, by name."""


@one_line
@dataclass(frozen=True)
class Commonness:
    """In how many of N documents terms stand.

    Attributes
    ----------
    n_documents : int
    counts : mapping of str to int
    """

    n_documents: int
    counts: Mapping[str, int]

    def weight(self, term: str) -> float:
        """Return log((1 + N) / (1 + n)) + 1 of a term that stands in n documents; one that stands in none has most."""
        return math.log((1 + self.n_documents) / (1 + self.counts.get(term, 0))) + 1


def count_documents(documents: Iterable[Sequence[str]]) -> Commonness:
    """Return in how many documents each term stands.

    Parameters
    ----------
    documents : iterable of sequence of str
        Terms of each.

    Examples
    --------
    >>> found = count_documents([["a", "b", "a"], ["a"], []])
    >>> found.n_documents, found.counts["a"], found.counts["b"], round(found.weight("b"), 3)
    (3, 2, 1, 1.693)
    """
    counts: Counter[str] = Counter()
    total = 0
    for terms in documents:
        counts.update(set(terms))
        total += 1
    return Commonness(total, counts)


def term_vectors(documents: Sequence[Sequence[str]], common: Commonness, columns: Mapping[str, int]) -> Any:
    """Return documents as sparse vectors of length 1: (1 + log of its count) times its weight for each term.

    Parameters
    ----------
    documents : sequence of sequence of str
        Terms of each.
    common : Commonness
    columns : mapping of str to int
        Column of each term that counts; others are left out.

    Returns
    -------
    scipy.sparse.csr_array of float64 of shape (n, len(columns))
        A document without terms is 0.
    """
    from scipy.sparse import csr_array

    values: list[float] = []
    indices: list[int] = []
    ends = [0]
    for terms in documents:
        counts = Counter(terms)
        row = {columns[term]: (1 + math.log(n)) * common.weight(term) for term, n in counts.items() if term in columns}
        length = math.sqrt(math.fsum(value * value for value in row.values()))
        indices += sorted(row)
        values += [row[column] / length for column in sorted(row)]
        ends.append(len(indices))
    shape = len(documents), len(columns)
    return csr_array((np.array(values), np.array(indices, np.int32), np.array(ends, np.int32)), shape=shape)


def trial_products(
    models: Any, segments: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the inner products of some rows of one sparse matrix with some of another: cosines of unit vectors.

    Parameters
    ----------
    models, segments : scipy.sparse.csr_array of shape (m, D) and (n, D)
    rows, columns : ndarray of intp of shape (T,)
        Row of both sides of each trial.
    """
    pieces = [
        models[rows[first : first + _PRODUCTS]].multiply(segments[columns[first : first + _PRODUCTS]]).sum(axis=1)
        for first in range(0, len(rows), _PRODUCTS)
    ]
    return np.concatenate([np.asarray(piece, np.float64).reshape(-1) for piece in pieces]) if pieces else np.zeros(0)


def column_of_terms(*groups: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return a column for each term of some documents, in the order of the terms."""
    return {term: place for place, term in enumerate(sorted({t for group in groups for terms in group for t in terms}))}
