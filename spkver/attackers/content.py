"""An attacker by content: speakers are recognised by their words, not by the voice.

It takes transcripts: the file ``text`` of the data directories, or hypotheses of a recogniser. Anonymisation does not
change words, so true transcripts serve all scenarios equally well; give the hypotheses of a recogniser on the
anonymised speech (setting `text`) for an attacker that has the audio alone.

Texts are vectors of how often each word, or sequence of characters, occurs, against how common it is. How they are
compared is chosen on speakers of the background, dealt into folds.

References
----------
G. Salton and C. Buckley, "Term-weighting approaches in automatic text retrieval", Information Processing and Management
24(5), 1988.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Scores, Trials
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import file_digest, make_folder, read_id_list, write_json
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import chunk_bounds
from spkver.attackers import lists
from spkver.attackers.protocol import NOWHERE, Attack, Place, Scorer, TrainingSet, naming
from spkver.attackers.vector_attacker import Context
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

Terms = Sequence[str]

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'"))
_LENGTH = 3  # characters of a sequence
_PRODUCTS = 65536  # trials at a time

FOLDS = 3
_LEAST = 4  # speakers with two texts, for folds
_SPEAKERS = 150  # that try, at most
_TESTS = 5  # texts of a speaker that are tested, at most
_AGAINST = 2000  # texts of the background that a machine is trained against, at most
_PENALTY = 10.0

AUTO = "auto"


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


def term_vectors(background: Sequence[Terms], *groups: Sequence[Terms]) -> list[Any]:
    """Return groups of documents as sparse vectors of length 1: of each term (1 + log of its count) times its weight.

    The weight of a term that stands in n of the N background documents is log((1 + N) / (1 + n)) + 1; one that stands
    in none has most.

    Parameters
    ----------
    background : sequence of sequence of str
        Terms of each document that says how common terms are.
    *groups : sequence of sequence of str
        Terms of each document.

    Returns
    -------
    list of scipy.sparse.csr_matrix of float64 of shape (n, D)
        For each group; D are the terms of all of them. A document without terms is 0.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms = sorted({term for group in groups for document in group for term in document})
    vectorizer = TfidfVectorizer(analyzer=list, vocabulary=terms or [""], sublinear_tf=True).fit(background or [[]])
    return [vectorizer.transform(group) for group in groups]


class TextMethod(NamedTuple):
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


METHODS = tuple(TextMethod(units, scoring) for scoring in ("cosine", "classifier") for units in UNITS)


def compare_texts(
    method: TextMethod,
    background: Sequence[str],
    said: Sequence[Sequence[str]],
    tested: Sequence[str],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the scores of trials.

    Parameters
    ----------
    method : TextMethod
    background : sequence of str
        Texts of others, which say how common terms are; where there are none, those of the models do.
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
    split = UNITS[method.units]
    others, tests = [split(text) for text in background], [split(text) for text in tested]
    terms = [[split(text) for text in texts] for texts in said]
    common = others or list(chain.from_iterable(terms))
    if method.scoring == "cosine":
        together = [list(chain.from_iterable(texts)) for texts in terms]
        models, segments = term_vectors(common, together, tests)
        blocks = (slice(start, stop) for start, stop in chunk_bounds(len(rows), _PRODUCTS))
        products = [models[rows[some]].multiply(segments[columns[some]]).sum(axis=1) for some in blocks]
        return np.concatenate([np.zeros(0), *(np.asarray(product).ravel() for product in products)])
    from scipy.sparse import vstack
    from sklearn.svm import LinearSVC

    spread = np.unique(np.linspace(0, len(others) - 1, min(len(others), _AGAINST)).round().astype(int))
    against, heard, *positives = term_vectors(common, [others[place] for place in spread], tests, *terms)
    values = np.zeros((len(said), len(tests)))
    for row, positive in enumerate(positives):
        labels = np.r_[np.ones(positive.shape[0]), np.zeros(against.shape[0])]
        machine = LinearSVC(C=_PENALTY, class_weight="balanced", random_state=0, max_iter=5000)
        values[row] = machine.fit(vstack([positive, against], format="csr"), labels).decision_function(heard)
    return values[rows, columns]


def choose_method(
    texts: Mapping[str, Sequence[str]], methods: Sequence[TextMethod], seed: int
) -> tuple[TextMethod, str]:
    """Return the method that distinguishes background speakers best, and why.

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
        return TextMethod(methods[0].units, "cosine"), "since a classifier needs transcripts of the background"
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

    def methods(self) -> tuple[TextMethod, ...]:
        """Return the methods that are to choose from."""
        of_units = (method for method in METHODS if self.units in (AUTO, method.units))
        return tuple(method for method in of_units if self.scoring in (AUTO, method.scoring))


@one_line
@dataclass(frozen=True)
class ContentAttacker:
    """The attacker by words; see `spkver.attackers.Attacker`.

    How it chose stands in ``OUTPUT/attackers/<training set>/<name>/choice.json``.
    """

    config: ContentConfig
    place: Place = field(default=NOWHERE, repr=False)

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.config.name

    @property
    def content(self) -> str:
        """Whether the transcripts come with the data, an oracle of the words, or from a recogniser."""
        return "oracle" if self.config.text == "text" else "recognised"

    def record(self, attack: Attack) -> Any:
        """Return its settings and the checksums of the transcripts."""
        files = [self._file(directory) for directory in self._directories(attack)]
        settings = {"text": self.config.text, "methods": [str(method) for method in self.config.methods()]}
        return {**settings, "transcripts": [file_digest(file) for file in files]}

    def lacks(self, attack: Attack) -> str:
        """Return which side has no transcripts, or nothing."""
        try:
            enrolment, tested, _ = self._directories(attack)
            models, segments = lists.match_trials(enrolment, tested, attack.trials)
            for directory, needed in ((enrolment, set(models.segments)), (tested, set(segments))):
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

    def fit(self, training: TrainingSet) -> Scorer:
        """Count the words of the background, and choose on it how texts are compared; versions of it say the same."""
        speech = training.versions[0]
        background = self._background(speech)
        method, why = choose_method(background, self.config.methods(), self.place.seed)
        logger.info("%s: %s, %s", self.name, method, why)
        facts = {"attacker": self.name, "training": speech.name, "chosen": str(method), "why": why}
        write_json(make_folder(self.place.output / "attackers" / speech.name / self.name) / "choice.json", facts)
        others = [text for texts in background.values() for text in texts]

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            models, recordings = lists.match_trials(enrolment[0], tested, trials)
            texts = self._read(enrolment[0])
            said = {model: [texts[name] for name in names] for model, names in lists.sessions_of(models).items()}
            heard, names, segments = self._read(tested), sorted(said), sorted(recordings)
            # ids without a trial are not among them, and have no place that is used
            rows = np.searchsorted(names, trials.model_ids.tolist())[trials.models]
            columns = np.searchsorted(segments, trials.segment_ids.tolist())[trials.segments]
            texts_of, tests = [said[name] for name in names], [heard[name] for name in segments]
            return lists.as_scores(trials, compare_texts(method, others, texts_of, tests, rows, columns))

        return score

    def _background(self, training: DataDir) -> dict[str, list[str]]:
        """Texts of each training speaker; nothing where there are none."""
        if not self._file(training).is_file():
            text = "%s: %s has no transcripts: those that enrol say which words are common"
            logger.info(text, self.name, training.path)
            return {}
        texts = self._read(training)
        speakers = sorted(training.by_speaker().items())
        return {speaker: [texts[name] for name in sorted(names) if name in texts] for speaker, names in speakers}

    def _directories(self, attack: Attack) -> tuple[DataDir, DataDir, DataDir]:
        return attack.enrolment[0], attack.tested, attack.training.versions[0]

    def _file(self, directory: DataDir) -> Path:
        return directory.path / self.config.text

    def _read(self, directory: DataDir) -> dict[str, str]:
        return read_id_list(self._file(directory), "utterance words", n_columns=1, rest=True)


def content_attacker(name: str, settings: Mapping[str, Any], context: Context) -> ContentAttacker:
    """Make the attacker of its settings; it reads hypotheses of a recogniser where the configuration names them.

    It is asked what it lacks when the anonymised versions and their lists are there.
    """
    text = {"text": context.hypotheses} if context.hypotheses else {}
    with naming(name):
        return ContentAttacker(load_config(ContentConfig, defaults=merged(text, settings, {"name": name})))


def _fold_area(texts: Mapping[str, Sequence[str]], fold: Sequence[str], method: TextMethod) -> float:
    from sklearn.metrics import roc_auc_score

    inside = set(fold)
    background = [text for speaker in sorted(texts) if speaker not in inside for text in texts[speaker]]
    halves = {speaker: (len(texts[speaker]) + 1) // 2 for speaker in fold}
    said = [texts[speaker][: halves[speaker]] for speaker in fold]
    tests = [(row, text) for row, speaker in enumerate(fold) for text in texts[speaker][halves[speaker] :][:_TESTS]]
    owners = np.array([row for row, _ in tests])
    rows, columns = (side.ravel() for side in np.meshgrid(np.arange(len(fold)), np.arange(len(tests)), indexing="ij"))
    scores = compare_texts(method, background, said, [text for _, text in tests], rows, columns)
    is_target = rows == owners[columns]
    return float(roc_auc_score(is_target, scores))
