"""The content attacker, which recognises speakers by their words, not by their voice.

It reads transcripts: the file ``text`` of the data directories, or hypotheses of a recogniser. Anonymisation does not
change words, so true transcripts serve all scenarios equally well; for an attacker that has only the audio, give a
recogniser's hypotheses on the anonymised speech (setting `text`), or let an evaluation recognise the words
(`recognised`).

Texts become vectors of word counts, or counts of character sequences, weighted by rarity. The method of comparison is
chosen by cross-validation on background speakers.

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
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import ONE_MODEL, Scores
from spkbase.configuration import load_config, merged
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import file_digest, read_id_list
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import chunk_bounds
from spkver.attackers import lists
from spkver.attackers.pieces import ENDING, PIECES, whole_utterance
from spkver.attackers.protocol import Attack, Learnt, TrainingSet, WithoutSource, naming
from spkver.datadir import DataDir

logger = logging.getLogger(__name__)

Terms = Sequence[str]

_PART = re.compile(rf"({ENDING})?(-without\d+)?$")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'"))
_LENGTH = 3  # number of characters in a sequence
_PRODUCTS = 65536  # number of trials compared at a time

FOLDS = 3
_LEAST = 4  # fewest speakers with two texts, to make folds
_SPEAKERS = 150  # largest number of speakers in the folds
_TESTS = 5  # largest number of texts that are tested for a speaker
_AGAINST = 2000  # largest number of background texts against which a machine is trained
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
    """Return the sequences of three characters of a text, including the blanks around words.

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
    """Return groups of documents as sparse vectors of length 1: for each term, (1 + log of its count) times its weight.

    The weight of a term that occurs in n of the N background documents is log((1 + N) / (1 + n)) + 1, and highest if n
    is 0.

    Parameters
    ----------
    background : sequence of sequence of str
        Terms of each background document, which define how common terms are.
    *groups : sequence of sequence of str
        Terms of each document.

    Returns
    -------
    list of scipy.sparse.csr_matrix of float64 of shape (n, D)
        One for each group; D is the number of terms in all groups. A document without terms is a zero vector.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms: set[str] = set()
    for document in chain.from_iterable(groups):
        terms.update(document)
    vocabulary = sorted(terms) or [""]
    vectorizer = TfidfVectorizer(analyzer=list, vocabulary=vocabulary, sublinear_tf=True)
    vectorizer.fit(background or [[]])
    return list(map(vectorizer.transform, groups))


class TextMethod(NamedTuple):
    """A way to compare texts.

    Attributes
    ----------
    units : str
        See `spkver.attackers.content.UNITS`.
    scoring : str
        "cosine" between the joined texts of a model and the tested text; or "classifier", the decision value of a
        linear support vector machine that separates the model's texts from background texts.
    """

    units: str
    scoring: str

    def __str__(self) -> str:
        return f"{self.scoring} of {self.units}"


METHODS = (
    TextMethod("words", "cosine"),
    TextMethod("characters", "cosine"),
    TextMethod("words", "classifier"),
    TextMethod("characters", "classifier"),
)


def compare_texts(
    method: TextMethod,
    background: Sequence[str],
    enrolled: Sequence[Sequence[str]],
    tested: Sequence[str],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the scores of trials.

    Parameters
    ----------
    method : TextMethod
    background : sequence of str
        Texts of other speakers, which define how common terms are; if there are none, the models' texts define it.
    enrolled : sequence of sequence of str
        Texts that each model is enrolled with.
    tested : sequence of str
    rows, columns : ndarray of intp of shape (T,)
        Model and tested text of each trial.

    Returns
    -------
    ndarray of shape (T,)
        Finite; a cosine is 0 if a text has no words.
    """
    split = UNITS[method.units]
    others = list(map(split, background))
    tests = list(map(split, tested))
    models = []
    for texts in enrolled:
        models.append(list(map(split, texts)))
    common = others or list(chain.from_iterable(models))
    if method.scoring == "cosine":
        return _cosines(common, models, tests, rows, columns)
    return _decision_values(common, others, models, tests)[rows, columns]


def _cosines(
    common: Sequence[Terms],
    models: Sequence[Sequence[Terms]],
    tests: Sequence[Terms],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the cosine of the joined texts of each row with the tested text of its column."""
    joined = [list(chain.from_iterable(texts)) for texts in models]
    enrolled, tested = term_vectors(common, joined, tests)
    cosines = np.zeros(len(rows))
    for start, stop in chunk_bounds(len(rows), _PRODUCTS):
        products = enrolled[rows[start:stop]].multiply(tested[columns[start:stop]])
        cosines[start:stop] = np.asarray(products.sum(axis=1)).ravel()
    return cosines


def _decision_values(
    common: Sequence[Terms],
    others: Sequence[Terms],
    models: Sequence[Sequence[Terms]],
    tests: Sequence[Terms],
) -> NDArray[np.float64]:
    """Return the decision values of a machine for each model, against texts of others, shape (models, tests)."""
    from scipy.sparse import vstack
    from sklearn.svm import LinearSVC

    spread = np.unique(
        np.linspace(0, len(others) - 1, min(len(others), _AGAINST)).round().astype(int)
    )
    against, tested, *positives = term_vectors(
        common, [others[row] for row in spread], tests, *models
    )
    values = np.zeros((len(models), len(tests)))
    for row, positive in enumerate(positives):
        labels = np.r_[np.ones(positive.shape[0]), np.zeros(against.shape[0])]
        machine = LinearSVC(C=_PENALTY, class_weight="balanced", random_state=0, max_iter=5000)
        values[row] = machine.fit(
            vstack([positive, against], format="csr"), labels
        ).decision_function(tested)
    return values


def choose_method(
    texts: Mapping[str, Sequence[str]], methods: Sequence[TextMethod], seed: int
) -> tuple[TextMethod, str]:
    """Return the method that distinguishes background speakers best, and why.

    Speakers with two texts or more are dealt into folds. The first half of a speaker's texts is enrolled; the others,
    five at most, are tested against all speakers of the fold. Term weights and negative examples come from the speakers
    of the other folds. Methods are compared by the area under the ROC, averaged over folds.

    Parameters
    ----------
    texts : mapping of str to sequence of str
        Texts of each speaker.
    methods : sequence of Method
        The first one is used if there are too few speakers; a classifier needs a background.
    seed : int
    """
    fit = sorted(speaker for speaker in texts if len(texts[speaker]) > 1)
    known = [method for method in methods if method.scoring == "cosine" or any(texts.values())]
    if not known:
        return TextMethod(
            methods[0].units, "cosine"
        ), "since a classifier needs transcripts of the background"
    if len(known) == 1:
        return known[0], "the only one to choose from"
    if len(fit) < _LEAST:
        return known[
            0
        ], f"not chosen: {len(fit)} background speakers have two transcripts, {_LEAST} are needed"
    order = stream(seed, "folds of background texts").permutation(len(fit))
    fit = np.array(fit, object)[order[:_SPEAKERS]].tolist()
    folds = [fit[number::FOLDS] for number in range(min(FOLDS, len(fit) // 2))]
    areas = {}
    for method in known:
        of_folds = [_fold_area(texts, fold, method) for fold in folds]
        areas[method] = float(np.mean(of_folds))
    best = max(known, key=lambda method: areas[method])  # of equally good ones, the first
    shown = "; ".join(f"{method} {area:.4f}" for method, area in areas.items())
    return (
        best,
        f"chosen by the area under the ROC over {len(folds)} folds of {len(fit)} background speakers: {shown}",
    )


@dataclass(frozen=True)
class ContentConfig:
    """Configuration of the content attacker.

    Attributes
    ----------
    name : str
    text : str
        File of the transcripts in each data directory: lines ``utterance words``.
    recognised : bool
        Whether an evaluation recognises the words in all speech, original and anonymised, by ``utility.recogniser``.
    folder : str
        Folder of recognised words, ``<folder>/<data directory>/text``, as ``spkver transcribe`` writes them, which are
        read instead of `text`. An evaluation sets it if words are `recognised`.
    units : str
        Terms that are counted: words, characters (sequences of three), or auto, whichever is better on the background.
    scoring : str
        cosine, classifier (a linear machine for each model, its utterances against background utterances), or auto.
    """

    name: str = "content"
    text: str = "text"
    recognised: bool = False
    folder: str = ""
    units: str = AUTO
    scoring: str = AUTO

    def __post_init__(self) -> None:
        if not self.text or Path(self.text).name != self.text:
            raise ConfigError(
                f"text is {self.text!r}: expected the name of a file in the data directories"
            )
        if not self.methods():
            units = ", ".join(sorted(UNITS))
            scorings = ", ".join(sorted({method.scoring for method in METHODS}))
            text = f"units {self.units!r} and scoring {self.scoring!r}: expected {AUTO} or one of {units};"
            raise ConfigError(f"{text} {AUTO} or one of {scorings}")

    def methods(self) -> tuple[TextMethod, ...]:
        """Return the methods to choose from."""
        methods = []
        for method in METHODS:
            if self.units in (AUTO, method.units) and self.scoring in (AUTO, method.scoring):
                methods.append(method)
        return tuple(methods)


@one_line
@dataclass(frozen=True)
class ContentAttacker(WithoutSource):
    """The content attacker; see `spkver.attackers.Attacker`."""

    level: ClassVar[str] = ONE_MODEL
    utterances: ClassVar[int | None] = 0  # no limit on recordings: it reads transcripts
    hears_voices: ClassVar[bool] = False
    pools: ClassVar[bool] = True

    config: ContentConfig

    @property
    def name(self) -> str:
        """Name from its configuration."""
        return self.config.name

    @property
    def content(self) -> str:
        """Whether the words come from transcripts of the data (an oracle) or from a recogniser."""
        if self.config.text == "text" and not self.config.folder:
            return "oracle"
        return "recognised"

    def record(self, attack: Attack) -> Any:
        """Return its settings and the checksums of the transcripts."""
        files = map(self._file, (attack.enrolment[0], attack.tested, attack.training.versions[0]))
        return {
            "text": self.config.text,
            "methods": list(map(str, self.config.methods())),
            "transcripts": list(map(file_digest, files)),
        }

    def obstacle(self, attack: Attack) -> str:
        """Return which side has no transcripts, or an empty string."""
        try:
            models, segments = lists.match_trials(attack.enrolment[0], attack.tested, attack.trials)
            for directory, needed in (
                (attack.enrolment[0], set(models.segments)),
                (attack.tested, set(segments)),
            ):
                if not self._file(directory).is_file():
                    return f"no transcripts: there is no {self._file(directory)}"
                texts = self._read(directory)
                missing = sorted(needed - set(texts))
                if missing:
                    text = f"{len(missing)} of {len(needed)} utterances without a transcript: {few(missing)}"
                    return f"{self._file(directory)}: {text}"
                if not any(words(texts[name]) for name in needed):
                    return f"{self._file(directory)}: no transcript holds a word"
        except DataError as error:  # reported here, since other attackers need no transcripts
            return str(error)
        return ""

    def fit(self, training: TrainingSet, vectors: None, *, seed: int, jobs: int | None) -> Learnt:
        """Choose how texts are compared on the background, whose versions all have the same words.

        The model consists of the method and the background texts.
        """
        speech = training.versions[0]
        background = self._background(speech)
        method, why = choose_method(background, self.config.methods(), seed)
        logger.debug("%s: %s, %s", self.name, method, why)
        choice = {"attacker": self.name, "training": speech.name, "chosen": str(method), "why": why}
        return Learnt((method, list(chain.from_iterable(background.values()))), choice)

    def score(self, model: tuple[TextMethod, list[str]], attack: Attack, vectors: None) -> Scores:
        """Compare the texts of each trial."""
        method, background = model
        trials = attack.trials
        models, recordings = lists.match_trials(attack.enrolment[0], attack.tested, trials)
        enrolment = self._read(attack.enrolment[0])
        tested = self._tested(attack)
        sessions = lists.sessions_of(models)
        names = sorted(sessions)
        segments = sorted(recordings)
        # ids without a trial get no text, and their positions are not used
        rows = np.searchsorted(names, trials.model_ids.tolist())[trials.models]
        columns = np.searchsorted(segments, trials.segment_ids.tolist())[trials.segments]
        enrolled = []
        for name in names:
            enrolled.append([enrolment[utterance] for utterance in sessions[name]])
        tests = [tested[name] for name in segments]
        return lists.as_scores(
            trials, compare_texts(method, background, enrolled, tests, rows, columns)
        )

    def _tested(self, attack: Attack) -> dict[str, str]:
        """Return the text of each segment; for a conversation, its texts are joined."""
        if not attack.conversations:
            return self._read(attack.tested)
        versions = list(map(self._read, attack.tests))
        texts = {}
        for name, recordings in attack.conversations.items():
            texts[name] = " ".join(versions[place][recording] for place, recording in recordings)
        return texts

    def _background(self, training: DataDir) -> dict[str, list[str]]:
        """Return the texts of each training speaker; empty if there are none."""
        if not self._file(training).is_file():
            text = "%s: %s has no transcripts: the enrolled texts define which words are common"
            logger.debug(text, self.name, training.path)
            return {}
        texts = self._read(training)
        background = {}
        for speaker, names in sorted(training.by_speaker().items()):
            background[speaker] = [texts[name] for name in sorted(names) if name in texts]
        return background

    def _file(self, directory: DataDir) -> Path:
        file = directory.path / self.config.text
        if self.config.folder:
            file = Path(self.config.folder) / directory.name / "text"
        if not file.is_file():
            # a training set that lacks the speakers of a fold, or is cut into pieces, uses the texts of the whole set
            folder = file.parent
            whole = folder.with_name(_PART.sub("", folder.name)) / file.name
            if whole.is_file():
                return whole
        return file

    def _read(self, directory: DataDir) -> dict[str, str]:
        """Return the text of each utterance, including versions and pieces of utterances in the file."""
        texts = read_id_list(self._file(directory), "utterance words", n_columns=1, rest=True)
        for utterance in directory.recordings:
            whole, piece = whole_utterance(utterance)
            if utterance not in texts and whole in texts:
                texts[utterance] = part_of_text(texts[whole], piece)
        return texts


def part_of_text(text: str, piece: int) -> str:
    """Return the words of a piece of a recording, from 1, or all words for 0: each piece has an equal part of them.

    Examples
    --------
    >>> part_of_text("one two three four five", 2), part_of_text("one two", 0)
    ('three four five', 'one two')
    """
    if not piece:
        return text
    spoken = text.split()
    start = len(spoken) * (piece - 1) // PIECES
    return " ".join(spoken[start : len(spoken) * piece // PIECES])


def content_attacker(
    name: str, settings: Mapping[str, Any], hypotheses: str | None
) -> ContentAttacker:
    """Create the content attacker; it reads hypotheses of a recogniser if the configuration names them.

    `obstacle` reads the transcripts of the anonymised versions, so these must exist.
    """
    defaults: dict[str, Any] = {}
    if hypotheses:
        defaults["text"] = hypotheses
    with naming(name):
        return ContentAttacker(
            load_config(ContentConfig, defaults=merged(defaults, settings, {"name": name}))
        )


def _fold_area(
    texts: Mapping[str, Sequence[str]], fold: Sequence[str], method: TextMethod
) -> float:
    from sklearn.metrics import roc_auc_score

    background: list[str] = []
    for speaker in sorted(set(texts) - set(fold)):
        background += texts[speaker]
    enrolled: list[Sequence[str]] = []
    tests: list[str] = []
    owners: list[int] = []
    for row, speaker in enumerate(fold):
        half = (len(texts[speaker]) + 1) // 2
        tested = texts[speaker][half:][:_TESTS]
        enrolled.append(texts[speaker][:half])
        tests += tested
        owners += [row] * len(tested)
    rows = np.repeat(np.arange(len(fold)), len(tests))
    columns = np.tile(np.arange(len(tests)), len(fold))
    scores = compare_texts(method, background, enrolled, tests, rows, columns)
    is_target = rows == np.array(owners)[columns]
    return float(roc_auc_score(is_target, scores))
