"""Check whether each anonymised recording belongs to the original of the same name.

    OUTPUT/pairs/<directory>/    similarities of a sample of its recordings, with vectors and words if needed
    OUTPUT/pairs<suffix>.json    a `Pairing` for each use of a directory

The original that a recording resembles is determined without looking at its name, see `spkver.datadir.pairs`. Cepstra
and levels are compared first. Voices (CAM++, where its weights are) and words (of a recogniser, where one is installed,
or of ``utility.hypotheses``) follow only while too few recordings point at an original. What this run anonymised
belongs to its original by construction, so only cepstra and levels are compared: an anonymiser that returns the speech
of others would be seen.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import read_embeddings
from evaluation.reports import Pairing
from evaluation.uncertainty import Interval
from evaluation.utility import read_transcripts
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import load_json, write_json
from spkbase.hdf5 import read_arrays, write_arrays
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver import recognition
from spkver.attackers import select
from spkver.datadir import (
    ENOUGH,
    DataDir,
    Decision,
    Similarities,
    decide,
    distinct_pairs,
    exchanged_share,
    shared_information,
    shared_words,
)
from spkver.extractors import embed_directory, open_extractor
from spkver.recognition import spoken_words
from spkver.voiceprivacy.experiment import WORDS, Experiment
from spkver.voiceprivacy.likeness import described, level_similarity, warped_similarity
from spkver.voiceprivacy.sets import Sets, stamp_of
from spkver.voiceprivacy.settings import Config, UtilityConfig
from spkver.voiceprivacy.words import hypotheses_file

logger = logging.getLogger(__name__)

# the largest numbers of recordings and originals that are compared; fewer if they must be transcribed
COMPARED = 100
_ORIGINALS = 300
HEARD = 40
_ORIGINALS_HEARD = 100
FEWEST = 10
"""Fewer different recordings are not compared."""
DOUBTFUL = 2
"""Recordings elsewhere that are a warning; one may be so by chance."""

_EXCHANGED = 3  # recordings elsewhere that forbid a verdict
_CONFIRMED = 0.2  # largest share of exchanged recordings with which pairs count as confirmed
_EXAMPLES = 3
_FOLDER = "pairs"


@one_line
@dataclass(frozen=True, eq=False)
class Compared:
    """Recordings of an anonymised directory, and the originals that they are compared with.

    Attributes
    ----------
    original, twin : DataDir
    recordings, originals : tuple of str
        Ids of utterances; the originals include those of all the recordings.
    texts : dict of str to str, optional
        Words of the original utterances in upper case; None if there is no file ``text``.
    is_made : bool
        Whether this run anonymised the directory.
    """

    original: DataDir
    twin: DataDir
    recordings: tuple[str, ...]
    originals: tuple[str, ...]
    texts: Mapping[str, str] | None = None
    is_made: bool = False

    @property
    def speakers(self) -> list[str]:
        """Speakers of the originals."""
        return [self.original.speakers[name] for name in self.originals]


@one_line
@dataclass(frozen=True, eq=False)
class Evidence:
    """The measurements on a directory.

    Attributes
    ----------
    similarities : Similarities
        Similarities of the distinct recordings.
    texts : sequence of str, optional
        Transcript of each original; empty if unknown.
    same : ndarray of int of shape (n,)
        For each recording, its row in the similarities: recordings with equal samples share one row.
    decision : Decision
    note : str
        Why words were not compared although they were needed.
    """

    similarities: Similarities
    texts: Sequence[str] | None
    same: NDArray[np.intp]
    decision: Decision
    note: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the compared properties, such as cepstra and words."""
        measured = self.similarities._asdict()
        return tuple(
            source
            for source in ("cepstra", "levels", "voices", "words")
            if measured[source] is not None
        )


def check_pairs(experiment: Experiment, sets: Sets) -> None:
    """Find out whether anonymised recordings belong to their originals, and log what forbids a verdict."""
    experiment.begin("pairs")
    run = experiment.run
    pairings = []
    with run.timed("pairs"):
        for name, twin in sets.twins.items():
            uses = list(_uses(sets, name))
            if not uses:
                continue
            pairing = pairing_of(run, experiment.config, compared_of(sets, name))
            if pairing.state == "exchanged":
                logger.warning("no verdict will be given: %s: %s", twin.name, pairing.reason)
            for dataset, part, gender in uses:
                pairings.append(replace(pairing, dataset=dataset, part=part, gender=gender))
        path = run.path(f"pairs{experiment.suffix}.json")
        write_json(path, [pairing.to_dict() for pairing in pairings])
    states = dict.fromkeys(pairing.state for pairing in pairings)
    experiment.end("pairs", ", ".join(states))


def read_pairings(run: Run, suffix: str) -> tuple[Pairing, ...]:
    """Return what `check_pairs` found."""
    return tuple(map(Pairing.from_dict, load_json(run.path(f"pairs{suffix}.json"))))


def count_heard(experiment: Experiment, sets: Sets) -> int:
    """Return how many recordings the recogniser will transcribe; the comparisons on which that depends are made."""
    try:
        recognition.open_recogniser(experiment.config.utility.recogniser)
    except ConfigError:
        return 0
    count = 0
    for name in sets.twins:
        if name in sets.missing or not list(_uses(sets, name)):
            continue
        compared = compared_of(sets, name)
        evidence = _without_words(experiment.run, compared)
        if _needs_words(compared, evidence) and not _given_words(
            compared, experiment.config.utility
        ):
            recordings, originals = _names_to_recognise(compared, evidence)
            count += len(recordings)
            if compared.texts is None:
                count += len(originals)
    return count


def pairing_of(run: Run, config: Config, compared: Compared) -> Pairing:
    """Return whether the recordings of a directory belong to their originals.

    Parameters
    ----------
    run : Run
        Keeps what is measured.
    config : Config
        Its `utility` names the recogniser, or the transcripts of another one.
    compared : Compared
    """
    return judge_pairs(compared, weigh(run, config, compared))


def weigh(run: Run, config: Config, compared: Compared) -> Evidence:
    """Return the evidence, without using names; see `pairing_of`."""
    evidence = _without_words(run, compared)
    if _needs_words(compared, evidence):
        evidence = _with_words(run, config, compared, evidence)
    return evidence


def compared_of(sets: Sets, name: str) -> Compared:
    """Return the recordings of a directory that are compared, evenly spread over the sorted names."""
    original = sets.original[name]
    twin = sets.twins[name]
    is_made = name in sets.missing
    originals = _spread(sorted(twin.recordings), COMPARED if is_made else _ORIGINALS)
    recordings = _spread(originals, COMPARED)
    texts = None
    path = original.path / "text"
    if path.is_file():
        given = read_transcripts(path)
        texts = {
            utterance: " ".join(spoken_words(given.get(utterance, ""))) for utterance in originals
        }
        if not all(texts.values()):
            texts = None
    return Compared(original, twin, recordings, originals, texts, is_made)


# --- judgement by names -----------------------------------------------------------------------------------------------


def judge_pairs(compared: Compared, evidence: Evidence) -> Pairing:
    """Return the pairing that follows from a decision; names are used here for the first time."""
    names = np.array([compared.original.speakers[recording] for recording in compared.recordings])
    own, elsewhere = _compare_labels(evidence.decision.speakers, compared.speakers, names)
    own_text = np.zeros(len(names), bool)
    other_text = own_text
    distinct = 1.0
    if evidence.texts is not None:
        saying = dict(zip(compared.originals, evidence.texts, strict=True))
        texts = np.array([saying[recording] for recording in compared.recordings])
        own_text, other_text = _compare_labels(evidence.decision.texts, evidence.texts, texts)
        known = list(filter(None, evidence.texts))
        if known:
            distinct = distinct_pairs(known)
    columns = evidence.decision.speakers
    accused = elsewhere
    if not elsewhere.any():
        columns = evidence.decision.texts
        accused = other_text
    examples = []
    for row in np.flatnonzero(accused)[:_EXAMPLES]:
        examples.append(f"{compared.recordings[row]} = {compared.originals[columns[row]]}")
    worst = _worst(names, own, elsewhere)
    pairing = Pairing(
        directory=compared.twin.name,
        compared=len(names),
        own=int(own.sum()),
        elsewhere=int(elsewhere.sum()),
        own_text=int(own_text.sum()),
        other_text=int(other_text.sum()),
        speaker=worst,
        speaker_own=int(own[names == worst].sum()),
        speaker_elsewhere=int(elsewhere[names == worst].sum()),
        sources=evidence.sources,
        examples=tuple(examples),
    )
    return with_state(
        pairing,
        seen=_seen(compared, evidence),
        distinct=distinct,
        identical=_share_of_equal(evidence.same, names),
        is_made=compared.is_made,
        note=evidence.note,
    )


def _compare_labels(
    columns: NDArray[np.intp], labels: Sequence[str], names: NDArray[np.str_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which recordings match a column with their own label, and which match one with another label."""
    is_same = np.array(labels)[columns] == names
    return (columns >= 0) & is_same, (columns >= 0) & ~is_same


def _worst(names: NDArray[np.str_], own: NDArray[np.bool_], elsewhere: NDArray[np.bool_]) -> str:
    """Return the speaker with the largest share of recordings elsewhere; empty if there are none."""
    worst = ""
    largest = 0.0
    for speaker in np.unique(names[elsewhere]):
        count = np.count_nonzero(elsewhere[names == speaker])
        share = count / (count + np.count_nonzero(own[names == speaker]))
        if share > largest:
            worst = str(speaker)
            largest = share
    return worst


def with_state(
    pairing: Pairing,
    *,
    seen: float = 1.0,
    distinct: float = 1.0,
    identical: float = 0.0,
    is_made: bool = False,
    note: str = "",
) -> Pairing:
    """Return a pairing with the state, the share and the reason that follow from its counts.

    Parameters
    ----------
    pairing : Pairing
    seen, distinct : float
        See `exchanged_share`.
    identical : float
        Share of the recordings that are identical to one of another speaker.
    is_made : bool
        Whether this run anonymised the directory.
    note : str
        Why fewer properties were compared than possible.
    """
    decided = pairing.own + pairing.elsewhere
    share = Interval()
    if decided >= ENOUGH:
        share = Interval(*exchanged_share(pairing.own, pairing.elsewhere, seen=seen))
    elif pairing.other_text >= DOUBTFUL and pairing.own_text + pairing.other_text >= ENOUGH:
        share = Interval(*exchanged_share(pairing.own_text, pairing.other_text, distinct=distinct))
    is_confirmed = decided >= ENOUGH and share.high <= _CONFIRMED
    is_identical = (
        identical >= 1 - _CONFIRMED and max(pairing.elsewhere, pairing.other_text) < DOUBTFUL
    )
    if is_made and not is_identical:
        state = "certain"
        reason = "this run anonymised them"
        if pairing.elsewhere >= DOUBTFUL:
            reason += f", but {pairing.elsewhere} of {decided} are more similar to the speech of another person"
    elif pairing.elsewhere >= _EXCHANGED or (pairing.other_text >= _EXCHANGED and not is_confirmed):
        state = "exchanged"
        reason = _accusation(pairing, share)
    elif max(pairing.elsewhere, pairing.other_text) >= DOUBTFUL:
        state = "doubtful"
        reason = _accusation(pairing, share)
    elif is_identical:
        state = "identical"
        reason = "recordings of different speakers are the same file, so that it does not matter whose they are"
    elif is_confirmed:
        state = "confirmed"
        reason = f"{pairing.own} of the {decided} that match a speaker match their own,"
        reason += f" so that at most {100 * share.high:.0f} % are exchanged"
    else:
        state = "not confirmed"
        reason = _doubt(pairing, share, distinct, note)
    return replace(pairing, share=share, state=state, reason=reason)


def _accusation(pairing: Pairing, share: Interval) -> str:
    """Describe how many recordings belong to other names."""
    examples = few(pairing.examples)
    if pairing.elsewhere >= DOUBTFUL:
        decided = pairing.own + pairing.elsewhere
        text = f"{pairing.elsewhere} of the {decided} recordings that match a speaker match the wrong one"
    else:
        decided = pairing.own_text + pairing.other_text
        text = f"{pairing.other_text} of the {decided} recordings that match a text match the wrong one"
    text += f" ({examples})"
    if share.known:
        ends = f"{100 * share.low:.0f} to {100 * share.high:.0f}"
        text += f": about {100 * share.value:.0f} % ({ends}) of the files belong to other names"
    return text


def _doubt(pairing: Pairing, share: Interval, distinct: float, note: str) -> str:
    """Describe why it is not confirmed that recordings belong to their names."""
    decided = pairing.own + pairing.elsewhere
    if pairing.compared < ENOUGH:
        text = f"there are only {pairing.compared} recordings"
    elif share.known:
        text = f"up to {100 * share.high:.0f} % could be exchanged ({decided} of {pairing.compared} match a speaker)"
    else:
        text = f"only {decided} of {pairing.compared} recordings match a speaker"
    if distinct < 1 - _CONFIRMED:
        text += ", and speakers say the same words"
    if note:
        text += f", and {note}"
    if pairing.own_text >= ENOUGH:
        text += (
            f"; {pairing.own_text} of {pairing.own_text + pairing.other_text} say their own text"
        )
    return text


def _seen(compared: Compared, evidence: Evidence) -> float:
    """Return the probability that the original of an exchanged file is among those that were compared."""
    count = len(compared.originals)
    if evidence.similarities.information is not None:
        count = int(np.count_nonzero(evidence.similarities.information.any(axis=0)))
    return min(1.0, max(count - 1, 1) / max(len(compared.twin) - 1, 1))


def _share_of_equal(same: NDArray[np.intp], names: NDArray[np.str_]) -> float:
    """Return the share of recordings that are identical to one of another speaker."""
    is_shared = [len(np.unique(names[same == row])) > 1 for row in same]
    return float(np.mean(is_shared))


def _uses(sets: Sets, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield data set, part and sex of each use of a directory."""
    for dataset in sets.datasets:
        if name == dataset.enrolls:
            yield dataset.name, "enrolment", ""
        for gender, trials in dataset.trials.items():
            if name == trials:
                yield dataset.name, "trials", gender
        if name == dataset.training:
            yield dataset.name, "training", ""


# --- measurements -----------------------------------------------------------------------------------------------------


def _without_words(run: Run, compared: Compared) -> Evidence:
    """Return the evidence from cepstra and levels, and from voices too if those match few recordings to an original."""
    arrays = _likeness(run, compared)
    rows, same = np.unique(arrays["same"], return_inverse=True)
    similarities = Similarities(arrays["cepstra"][rows], arrays["levels"][rows])
    texts = None
    if compared.texts is not None:
        texts = [compared.texts[name] for name in compared.originals]
    evidence = _decided(compared, similarities, texts, same)
    if not compared.is_made and 2 * _count_decided(evidence) < len(compared.recordings):
        voices = _voices(run, compared)
        if voices is not None:
            evidence = _decided(compared, similarities._replace(voices=voices[rows]), texts, same)
    return evidence


def _needs_words(compared: Compared, evidence: Evidence) -> bool:
    """Whether too few recordings match an original without the use of words."""
    can_be_enough = not compared.is_made and len(compared.recordings) >= ENOUGH
    return can_be_enough and _count_decided(evidence) < ENOUGH


def _decided(
    compared: Compared,
    similarities: Similarities,
    texts: Sequence[str] | None,
    same: NDArray[np.intp],
    note: str = "",
) -> Evidence:
    """Return evidence with the decision on each recording."""
    if len(similarities.levels) < FEWEST:
        undecided = np.full(len(same), -1)
        return Evidence(similarities, texts, same, Decision(undecided, undecided), note)
    decision = decide(similarities, compared.speakers, texts, are_recognised=compared.texts is None)
    return Evidence(
        similarities, texts, same, Decision(decision.speakers[same], decision.texts[same]), note
    )


def _count_decided(evidence: Evidence) -> int:
    return int(np.count_nonzero(evidence.decision.speakers >= 0))


def _likeness(run: Run, compared: Compared) -> dict[str, NDArray[Any]]:
    """Return the similarities of cepstra and levels, and the first equal recording of each."""

    def make(path: Path) -> None:
        originals = described(_paths(compared.original, compared.originals), run.jobs)
        twins = described(_paths(compared.twin, compared.recordings), run.jobs)
        first = {digest: row for row, digest in reversed(list(enumerate(twins.digests)))}
        arrays = {
            "cepstra": warped_similarity(originals.cepstra, twins.cepstra).T,
            "levels": level_similarity(twins.levels, originals.levels),
            "same": np.array([first[digest] for digest in twins.digests]),
        }
        write_arrays(path, arrays)

    output = run.below(f"{_FOLDER}/{compared.twin.name}")
    likeness = output.stage(
        "likeness",
        "likeness.h5",
        make=make,
        read=read_arrays,
        inputs=[compared.recordings, compared.originals],
        after=[stamp_of(run, compared.original), stamp_of(run, compared.twin)],
        libraries=("numpy", "soundfile", "soxr"),
    )
    return likeness.value


def _voices(run: Run, compared: Compared) -> NDArray[np.float64] | None:
    """Return the cosines of vectors of CAM++; None if it cannot run, or fails on a recording."""
    sides = {
        "original": (compared.original, compared.originals),
        "anonymised": (compared.twin, compared.recordings),
    }
    output = run.below(f"{_FOLDER}/{compared.twin.name}")
    vectors = []
    try:
        extractor = open_extractor("campplus")
        for side, (directory, names) in sides.items():
            chosen = select(directory, names)
            embeddings = output.stage(
                f"voices of {side} speech",
                f"{side}.h5",
                make=partial(embed_directory, chosen, extractor, work=run.work, quiet=True),
                read=read_embeddings,
                inputs=[list(names), extractor.extraction.record],
                after=[stamp_of(run, directory)],
                libraries=("numpy", "onnxruntime", "soundfile", "soxr"),
            ).value
            vectors.append(
                embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
            )
    except (ConfigError, DataError) as error:
        logger.debug("%s: voices are not compared: %s", compared.twin.name, error)
        return None
    cosines: NDArray[np.float64] = vectors[1] @ vectors[0].T
    return cosines


def _with_words(run: Run, config: Config, compared: Compared, evidence: Evidence) -> Evidence:
    """Return evidence that includes words, if transcripts are given or a recogniser is installed."""
    recordings, originals = _names_to_recognise(compared, evidence)
    given = _given_words(compared, config.utility)
    spoken: Mapping[str, str] = given
    texts: Mapping[str, str] = compared.texts or {}
    try:
        if given:
            recordings = _different(compared, evidence)
        else:
            recogniser = recognition.open_recogniser(config.utility.recogniser)
            spoken = _hear(run, config, recogniser, compared.twin, recordings)
            texts = texts or _hear(run, config, recogniser, compared.original, originals)
    except ConfigError as error:
        logger.debug("%s: words are not compared: %s", compared.twin.name, error)
        return replace(evidence, note="no recogniser of words is installed")
    rows = dict(zip(compared.recordings, evidence.same, strict=True))
    words: list[list[str]] = [[] for _ in evidence.similarities.levels]
    for recording in recordings:
        words[rows[recording]] = spoken_words(spoken.get(recording, ""))
    known = [texts.get(name, "") for name in compared.originals]
    of_originals = [text.split() for text in known]
    similarities = evidence.similarities._replace(
        information=shared_information(words, of_originals), words=shared_words(words, of_originals)
    )
    return _decided(compared, similarities, known, evidence.same)


def _given_words(compared: Compared, config: UtilityConfig) -> dict[str, str]:
    """Return the words of an anonymised directory by another recogniser, if both these and ``text`` exist."""
    if not config.hypotheses or compared.texts is None:
        return {}
    path = hypotheses_file(compared.twin, config.hypotheses)
    return read_transcripts(path) if path.is_file() else {}


def _names_to_recognise(compared: Compared, evidence: Evidence) -> tuple[list[str], list[str]]:
    """Return the distinct recordings, and the originals, whose words are to be recognised."""
    recordings = list(_spread(_different(compared, evidence), HEARD))
    others = [name for name in compared.originals if name not in recordings]
    originals = sorted([*recordings, *_spread(others, _ORIGINALS_HEARD - len(recordings))])
    return recordings, originals


def _different(compared: Compared, evidence: Evidence) -> list[str]:
    """Return the distinct ones of some recordings."""
    _, rows = np.unique(evidence.same, return_index=True)
    return sorted(compared.recordings[row] for row in rows)


def _hear(
    run: Run,
    config: Config,
    recogniser: recognition.Recogniser,
    directory: DataDir,
    names: Sequence[str],
) -> Mapping[str, str]:
    """Return recognised words: of the whole directory if they are needed anyway, else only of some recordings."""
    if config.recognises_words:
        return recognition.transcribe(
            run.below(f"{WORDS}/{directory.name}"), directory, recogniser
        ).words
    output = run.below(f"{_FOLDER}/{directory.name}")
    return recognition.transcribe(output, select(directory, names), recogniser).words


def _paths(directory: DataDir, utterances: Sequence[str]) -> list[Path]:
    return [directory.recordings[utterance] for utterance in utterances]


def _spread(names: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most a given number of names, evenly spread."""
    if len(names) <= most:
        return tuple(names)
    return tuple(names[index * len(names) // most] for index in range(most))
