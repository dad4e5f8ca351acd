"""An attacker that reads: who speaks is told by what is said, not by the voice.

It takes transcripts, the file ``text`` of the data directories or what a recogniser heard. Anonymisation does not
change words, so it serves all scenarios alike. A reader of the true transcripts hears no worse after anonymisation;
give what a recogniser made of the anonymised speech (setting `text`) for an attacker that must listen.

**Texts as vectors: how often each word, or sequence of characters, stands there, against how common it is.**

Reference
---------
G. Salton and C. Buckley, "Term-weighting approaches in automatic text retrieval", Information Processing and Management
24(5), 1988.

**How texts are compared, and which way is best: judged by speakers of the background, dealt into folds.**
"""

from __future__ import annotations

import json
import logging
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import file_digest, make_folder, read_id_list, write_text
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkver.attackers.protocol import Attack, Attacker, Place, Scorer, match_trials
from spkver.attackers.vector_attacker import Context
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

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
        See `spkver.attackers.content.UNITS`.
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


AUTO = "auto"


@dataclass(frozen=True)
class ContentConfig:
    """How the attacker by words is made.

    Attributes
    ----------
    name : str
    text : str
        File of the transcripts in each data directory: lines ``utterance words``.
    units : str
        Terms that are counted: words, characters (sequences of three), or auto, what is better on the background.
    scoring : str
        cosine, classifier (a linear machine for each model, its utterances against those of the background), or auto.
    """

    name: str = "content"
    text: str = "text"
    units: str = AUTO
    scoring: str = AUTO

    def __post_init__(self) -> None:
        if not self.text or Path(self.text).name != self.text:
            raise ConfigError(f"text is {self.text!r}: expected the name of a file in the data directories")
        if not self.methods():
            units, scorings = (sorted({getattr(method, key) for method in METHODS}) for key in ("units", "scoring"))
            text = f"units {self.units!r} and scoring {self.scoring!r}: expected {AUTO} or one of {', '.join(units)};"
            raise ConfigError(f"{text} {AUTO} or one of {', '.join(scorings)}")

    def methods(self) -> tuple[Method, ...]:
        """Return the methods that are to choose from."""
        return tuple(
            method
            for method in METHODS
            if self.units in (AUTO, method.units) and self.scoring in (AUTO, method.scoring)
        )


@one_line
@dataclass(frozen=True)
class ContentAttacker:
    """The attacker by words; see `spkver.attackers.Attacker`.

    How it chose stands in ``OUTPUT/attackers/<training set>/<name>/choice.json``, where it has a place.
    """

    config: ContentConfig
    seed: int = 0
    place: Place | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    @property
    def content(self) -> str:
        """Whether the transcripts come with the data, an oracle of what is said, or from a recogniser."""
        return "oracle" if self.config.text == "text" else "recognised"

    def record(self, attack: Attack) -> Any:
        """Return its settings and the checksums of the transcripts."""
        files = [self._file(directory) for directory in (attack.enrolment, attack.tested, attack.training[0])]
        settings = {"text": self.config.text, "methods": [str(method) for method in self.config.methods()]}
        return {**settings, "transcripts": [file_digest(file) for file in files]}

    def lacks(self, attack: Attack) -> str:
        """Return which side has no transcripts, or nothing."""
        try:
            models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
            for directory, needed in ((attack.enrolment, set(models.segments)), (attack.tested, set(tested))):
                if not self._file(directory).is_file():
                    return f"no transcripts: there is no {self._file(directory)}"
                found = self._read(directory)
                missing = sorted(needed - set(found))
                if missing:
                    text = f"{len(missing)} of {len(needed)} utterances without a transcript: {few(missing)}"
                    return f"{self._file(directory)}: {text}"
                if not any(words(found[name]) for name in needed):
                    return f"{self._file(directory)}: no transcript holds a word"
        except DataError as error:  # others score what it cannot read
            return str(error)
        return ""

    def learn(self, attack: Attack) -> Scorer:
        """Count the words of the background, and choose on it how texts are compared; versions of it say the same."""
        training = attack.training[0]
        background = self._background(training)
        method, why = choose_method(background, self.config.methods(), self.seed)
        logger.info("%s: %s, %s", self.name, method, why)
        if self.place is not None:
            told = {"attacker": self.name, "training": training.name, "chosen": str(method), "why": why}
            folder = make_folder(self.place.output / "attackers" / training.name / self.name)
            write_text(folder / "choice.json", json.dumps(told, indent=1) + "\n")
        reader = Reader(method, [text for texts in background.values() for text in texts])

        def score(attack: Attack) -> Scores:
            models, tested = match_trials(attack.enrolment, attack.tested, attack.trials)
            texts = self._read(attack.enrolment)
            said: dict[str, list[str]] = {}
            for model, utterance in zip(models.models, models.segments, strict=True):
                said.setdefault(model, []).append(texts[utterance])
            heard, trials = self._read(attack.tested), attack.trials
            names, segments = sorted(said), sorted(tested)
            rows = _places(trials.model_ids, names)[trials.models]
            columns = _places(trials.segment_ids, segments)[trials.segments]
            values = reader.score([said[name] for name in names], [heard[name] for name in segments], rows, columns)
            return Scores(trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values)

        return score

    def _background(self, training: DataDir) -> dict[str, list[str]]:
        """Texts of each training speaker; nothing where there are none."""
        if not self._file(training).is_file():
            logger.info(
                "%s: %s has no transcripts: those that enrol say which words are common", self.name, training.path
            )
            return {}
        texts = self._read(training)
        return {
            speaker: [texts[name] for name in sorted(names) if name in texts]
            for speaker, names in sorted(training.by_speaker().items())
        }

    def _file(self, directory: DataDir) -> Path:
        return directory.path / self.config.text

    def _read(self, directory: DataDir) -> dict[str, str]:
        return read_id_list(self._file(directory), "utterance words", n_columns=1, rest=True)


@one_line
@dataclass(frozen=True)
class WantedContent:
    """The attacker by words, before it is at work; see `spkver.attackers.Wanted`.

    It is asked what it lacks when the twins and their lists are there: where nobody has transcripts it is left out.
    """

    config: ContentConfig
    seed: int = 0

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    def at(self, place: Place, others: Mapping[str, Attacker]) -> Attacker:
        """Return it at work."""
        return ContentAttacker(self.config, self.seed, place)


def wanted_content(name: str, settings: Mapping[str, Any], context: Context) -> WantedContent:
    """Make the attacker of its settings; it reads what a recogniser heard where the configuration names that."""
    text = {"text": context.hypotheses} if context.hypotheses else {}
    try:
        return WantedContent(load_config(ContentConfig, defaults=merged(text, settings, {"name": name})), context.seed)
    except ConfigError as error:
        raise ConfigError(f"attacker {name!r}: {error.text}", file=error.file, remedy=error.remedy) from error


def _places(ids: np.ndarray, names: list[str]) -> np.ndarray:
    """Place of each id among sorted names; 0 of those that no trial has."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, 0) for name in ids.tolist()], np.intp)
