"""What ``spkver-eval linkability`` ranks: embeddings, or scores with their key and the maps of their speakers."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Literal

import click
from click.core import ParameterSource
from numpy.typing import NDArray

from evaluation.commands.options import Reader
from evaluation.embeddings import Averaging, Embeddings, read_embeddings, speaker_vectors, warn_of_enrolled
from evaluation.linkage import (
    KEPT,
    REPORTED,
    Ranks,
    largest_impostor_scores,
    rank_scores,
    rank_speakers,
    ranks_of_matrix,
    singling_out,
)
from evaluation.metrics import reversal
from evaluation.reports import ALL, Settings, utterances_name
from evaluation.trials import Key, TrialSpeakers, doubt_speakers, find_speakers, read_speakers
from spkbase.errors import DataError
from spkbase.files import read_torch
from spkbase.work import Work

logger = logging.getLogger(__name__)

_REMEDY = (
    "give the speakers of the models, lines 'id speaker': --model-speakers FILE; if each model is a speaker say"
    " --bootstrap-by id"
)


def read_side(options: dict[str, Any], side: str) -> Embeddings:
    speakers = options[{"enroll": "model_speakers", "trial": "segment_speakers"}[side]]
    return read_embeddings(options[side], speakers=speakers, allow_pickle=options["allow_pickle"])


def rank_from_embeddings(
    enrol: Embeddings, trial: Embeddings, options: dict[str, Any], numbers: list[int] | None
) -> tuple[dict[int, Ranks], dict[int, NDArray]]:
    """Rank; give the largest impostor scores too, if there is to be extrapolation."""
    averaging = Averaging(options["mean"], options["choice"], options["seed"])
    work = Work(options["jobs"], options["device"])
    warn_of_enrolled(enrol, trial)
    try:
        gallery = speaker_vectors(enrol, averaging=averaging, keep_order=True)
    except DataError as error:
        raise DataError(error.text, file=options["enroll"], remedy=error.remedy) from error
    ranks, largest = {}, {}
    for number in numbers or [1]:
        wanted = None if number == ALL else number
        try:
            trials = speaker_vectors(trial, averaging=averaging, utterances=wanted, strict=options["strict_utterances"])
            ranks[number] = rank_speakers(gallery, trials, not_enrolled=options["not_enrolled"], work=work)
            if numbers is None and len(trial.ids) > len(trials.names):
                which = "first" if averaging.choice == "first" else "one drawn"
                text = f"each speaker is tried by the {which} of its utterances alone ({len(trials.names)} of"
                note = f"{text} {len(trial.ids)}); --utterances all averages them"
                ranks[number] = replace(ranks[number], notes=(*ranks[number].notes, note))
            if (options["extrapolate"] or options["keep_impostors"]) and ranks[number].largest_size > KEPT:
                largest[number] = largest_impostor_scores(gallery, trials, ranks[number], jobs=work.jobs)
        except DataError as error:
            raise DataError(error.text, file=options["trial"], remedy=error.remedy) from error
    return ranks, largest


def rank_from_scores(
    options: dict[str, Any], reader: Reader, numbers: list[int] | None
) -> tuple[dict[int, Ranks], dict[int, NDArray], bool]:
    """Rank from scores; without --utterances each segment is a trial of its own. See `rank_from_embeddings`.

    Also tells whether the speakers are known, of whom intervals are. A file of PyTorch is a matrix of similarities.
    """
    if options["scores"].suffix == ".pt" and options["key"] is None:
        if len(numbers or [1]) > 1:
            raise click.UsageError("a matrix of similarities is of one number of utterances: say which")
        try:
            return {(numbers or [1])[0]: ranks_of_matrix(read_torch(options["scores"]))}, {}, True
        except DataError as error:
            raise DataError(error.text, file=options["scores"], remedy=error.remedy) from error
    files = options["scores"], options["key"]
    scores, key = reader.read(*files)
    turned = reversal(*reader.joined((scores, key), *files))  # whose errors name places in the files
    wanted: list[int | Literal["all"] | None] = [None] if numbers is None else []
    wanted += ["all" if number == ALL else number for number in numbers or []]
    speakers, doubt = _speakers(options, key)
    try:
        found = rank_scores(
            scores,
            key,
            wanted,
            largest=KEPT if options["extrapolate"] or options["keep_impostors"] else 0,
            strict_utterances=options["strict_utterances"],
            missing=reader.missing,
            speakers=speakers,
        )
    except DataError as error:
        raise DataError(error.text, file=files[1] or files[0], remedy=error.remedy) from error
    tables = dict(zip(numbers or [1], found, strict=True))
    reversed_notes = [] if turned is None else [turned.text]
    ranks = {
        number: replace(table, notes=(*table.notes, *doubt, *reversed_notes)) for number, (table, _) in tables.items()
    }
    return ranks, {number: largest for number, (_, largest) in tables.items() if largest is not None}, not doubt


def _speakers(options: dict[str, Any], key: Key) -> tuple[TrialSpeakers | None, list[str]]:
    """Return the speakers as the maps name them, and a note where models may not be speakers.

    Raises
    ------
    DataError
        If intervals were asked for then: they would be over models.
    """
    maps = {
        name: None if options[name] is None else read_speakers(options[name])
        for name in ("model_speakers", "segment_speakers")
    }
    doubt = doubt_speakers(key, **maps)
    if doubt is not None and doubt.side == "model" and options["bootstrap_by"] == "speaker":
        asked = click.get_current_context().get_parameter_source("replicates") is not ParameterSource.DEFAULT
        if asked and options["replicates"]:
            raise DataError(doubt.error().text, file=options["key"], remedy=_REMEDY)
        note = f"no intervals: {doubt.text}; {_REMEDY}"
        logger.warning(note)
        return None, [note]
    if all(of_side is None for of_side in maps.values()):
        return None, []
    return find_speakers(key, **maps), []


def single_out(
    enrol: Embeddings, trial: Embeddings, settings: Settings, options: dict[str, Any], numbers: list[int] | None
) -> dict[str, Any]:
    """Singling out, for each number of utterances that is one."""
    averaging = Averaging(options["mean"], options["choice"], options["seed"])
    report: dict[str, Any] = {}
    failure: DataError | None = None
    for number in numbers or [1]:
        if number == ALL:
            continue
        try:
            found = singling_out(enrol, trial, utterances=number, averaging=averaging, resampling=settings.resampling)
            report[utterances_name(number)] = found.to_dict()
        except DataError as error:  # too few utterances for so long conversations, which shorter ones may not have
            failure = error
            logger.warning("no singling out for L = %d: %s", number, error.text)
            report[utterances_name(number)] = dict.fromkeys(REPORTED) | {"notes": [error.text]}
    if failure is not None and all(entry["value"] is None for entry in report.values()):
        raise failure
    return report
