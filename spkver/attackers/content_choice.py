"""How texts are compared, and which way is best: judged by speakers of the background, dealt into folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from spkbase.seeding import stream
from spkver.attackers.term_weights import (
    UNITS,
    Commonness,
    column_of_terms,
    count_documents,
    term_vectors,
    trial_products,
)

FOLDS = 3
_LEAST = 4  # speakers with two texts, for folds
_SPEAKERS = 150  # that try, at most
_TESTS = 5  # texts of a speaker that are tested, at most
_AGAINST = 2000  # texts of the background that a machine is trained against, at most
_PENALTY = 10.0


@dataclass(frozen=True)
class Method:
    """A way to compare texts.

    Attributes
    ----------
    units : str
        See `spkver.attackers.term_weights.UNITS`.
    scoring : str
        "cosine" of the texts of a model, put together, with the tested one; or "classifier", the decision value of a
        linear support vector machine, the model's texts against those of the background.
    """

    units: str
    scoring: str

    def __str__(self) -> str:
        return f"{self.scoring} of {self.units}"


METHODS = tuple(Method(units, scoring) for scoring in ("cosine", "classifier") for units in UNITS)


@dataclass(frozen=True)
class Reader:
    """Compares texts.

    Attributes
    ----------
    method : Method
    background : sequence of str
        Texts of others, which say how common terms are; where there are none, those of the models do.
    """

    method: Method
    background: Sequence[str]

    def score(
        self, said: Sequence[Sequence[str]], tested: Sequence[str], rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return the scores of trials.

        Parameters
        ----------
        said : sequence of sequence of str
            Texts that each model is enrolled with.
        tested : sequence of str
        rows, columns : ndarray of intp of shape (T,)
            Model and tested text of each trial.

        Returns
        -------
        ndarray of shape (T,)
            Finite; 0 by cosine where a text holds no words.
        """
        split = UNITS[self.method.units]
        others = [split(text) for text in self.background]
        terms = [[split(text) for text in texts] for texts in said]
        tests = [split(text) for text in tested]
        common = count_documents(others or chain.from_iterable(terms))
        if self.method.scoring == "cosine":
            together = [list(chain.from_iterable(texts)) for texts in terms]
            places = column_of_terms(together, tests)
            models, segments = (term_vectors(side, common, places) for side in (together, tests))
            return trial_products(models, segments, rows, columns)
        spread = np.unique(np.linspace(0, len(others) - 1, min(len(others), _AGAINST)).round().astype(int))
        return _machine_scores(terms, tests, common, [others[place] for place in spread])[rows, columns]


def choose_method(texts: Mapping[str, Sequence[str]], methods: Sequence[Method], seed: int) -> tuple[Method, str]:
    """Return the method that tells background speakers apart best, and why.

    Speakers with two texts or more are dealt into folds. The first half of a speaker's texts enrols, the others, five
    at most, are tested against all speakers of the fold; what is common and the machines' other side come from the
    speakers of the other folds. The measure is the area under the ROC, whose mean over folds is compared.

    Parameters
    ----------
    texts : mapping of str to sequence of str
        Of each speaker.
    methods : sequence of Method
        The first one where there are too few speakers; a classifier needs a background.
    seed : int
    """
    fit = sorted(speaker for speaker, of in texts.items() if len(of) > 1)
    known = [method for method in methods if method.scoring == "cosine" or any(texts.values())]
    if not known:
        return Method(methods[0].units, "cosine"), "since a classifier needs transcripts of the background"
    if len(known) == 1:
        return known[0], "the only one to choose from"
    if len(fit) < _LEAST:
        return known[0], f"not chosen: {len(fit)} background speakers have two transcripts, {_LEAST} are needed"
    order = stream(seed, "folds of background texts").permutation(len(fit))
    fit = [fit[place] for place in order[:_SPEAKERS]]
    folds = [fit[number::FOLDS] for number in range(min(FOLDS, len(fit) // 2))]
    areas = {method: float(np.mean([_fold_area(texts, fold, method) for fold in folds])) for method in known}
    best = max(known, key=lambda method: areas[method])  # the first of equal ones
    found = "; ".join(f"{method} {areas[method]:.4f}" for method in known)
    return best, f"chosen by the area under the ROC over {len(folds)} folds of {len(fit)} background speakers: {found}"


def roc_area(targets: NDArray, nontargets: NDArray) -> float:
    """Return the share of pairs in which the target scores higher; ties count half.

    Examples
    --------
    >>> roc_area(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    0.625
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([targets, nontargets]))[: len(targets)]
    return float((ranks.sum() - len(targets) * (len(targets) + 1) / 2) / (len(targets) * len(nontargets)))


def _fold_area(texts: Mapping[str, Sequence[str]], fold: Sequence[str], method: Method) -> float:
    inside = set(fold)
    background = [text for speaker in sorted(texts) if speaker not in inside for text in texts[speaker]]
    halves = {speaker: (len(texts[speaker]) + 1) // 2 for speaker in fold}
    said = [texts[speaker][: halves[speaker]] for speaker in fold]
    tests = [(row, text) for row, speaker in enumerate(fold) for text in texts[speaker][halves[speaker] :][:_TESTS]]
    owners = np.array([row for row, _ in tests])
    rows, columns = (side.ravel() for side in np.meshgrid(np.arange(len(fold)), np.arange(len(tests)), indexing="ij"))
    scores = Reader(method, background).score(said, [text for _, text in tests], rows, columns)
    is_target = rows == owners[columns]
    return roc_area(scores[is_target], scores[~is_target])


def _machine_scores(
    said: Sequence[Sequence[Sequence[str]]],
    tests: Sequence[Sequence[str]],
    common: Commonness,
    against: Sequence[Sequence[str]],
) -> NDArray[np.float64]:
    """Decision values of the machine of each model for each test, shape (m, n)."""
    from scipy.sparse import vstack
    from sklearn.svm import LinearSVC

    places = column_of_terms(against, tests, *said)
    others, tested = term_vectors(against, common, places), term_vectors(tests, common, places)
    values = np.zeros((len(said), len(tests)))
    for row, texts in enumerate(said):
        positive = term_vectors(texts, common, places)
        labels = np.r_[np.ones(positive.shape[0]), np.zeros(others.shape[0])]
        machine = LinearSVC(C=_PENALTY, class_weight="balanced", random_state=0, max_iter=5000)
        values[row] = machine.fit(vstack([positive, others], format="csr"), labels).decision_function(tested)
    return values
