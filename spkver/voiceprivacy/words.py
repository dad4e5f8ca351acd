"""Recognition of the words in all speech, for attackers that read them.

OUTPUT/asr/<data directory>/text    recognised words, in Kaldi's form
"""

from __future__ import annotations

import logging
import re
from itertools import chain
from pathlib import Path

from spkbase.errors import DataError
from spkver import recognition
from spkver.datadir import DataDir
from spkver.voiceprivacy.experiment import WORDS, Experiment
from spkver.voiceprivacy.sets import Sets

logger = logging.getLogger(__name__)

_LIST = re.compile(r"_trials_(f|m|mixed)(_common|_all)?")


def recognise_words(experiment: Experiment, sets: Sets) -> None:
    """Recognise the words of all original and anonymised speech, if an attacker reads them.

    Raises
    ------
    DataError
        If too few words of the original speech agree with its ``text``, for example because of another language.
    """
    config = experiment.config
    if not config.recognises_words:
        return
    run = experiment.run
    recogniser = recognition.open_recogniser(config.utility.recogniser)
    logger.info("words of all speech: by %s", recogniser.name)
    with run.timed("words"):
        for name in dict.fromkeys(
            chain.from_iterable(dataset.directories for dataset in sets.datasets)
        ):
            original = sets.original[name]
            transcripts = recognition.transcribe(
                run.below(f"{WORDS}/{original.name}"), original, recogniser
            )
            if transcripts.agreement < recognition.UNDERSTOOD:
                share = f"{100 * transcripts.agreement:.0f} % of them agree with text"
                remedy = "leave attacker_settings.content.recognised out, or set utility.recogniser to another one"
                raise DataError(
                    f"the words were not understood: {share}", file=original.path, remedy=remedy
                )
            for version in sets.versions.get(name, ()):
                recognition.transcribe(run.below(f"{WORDS}/{version.name}"), version, recogniser)


def hypotheses_file(directory: DataDir, hypotheses: str) -> Path:
    """Return the file of another recogniser's transcripts of the trials.

    Parameters
    ----------
    directory : DataDir
        Trials, original or anonymised.
    hypotheses : str
        Name of a file in the data directory, or a folder with a file for each set: the challenge's toolkit's
        ``exp/asr``, with ``libri_test_asr<suffix>/text`` for both sexes, or one with ``libri_test_trials_f/text``.
    """
    folder = Path(hypotheses)
    if not folder.is_dir():
        return directory.path / hypotheses
    own = folder / directory.name / "text"
    if own.is_file():
        return own
    return folder / _LIST.sub("_asr", directory.name) / "text"
