"""Texts: the words of recordings, and the words that trials should contain."""

from __future__ import annotations

from dataclasses import dataclass

from spkbase.errors import ConfigError, DataError
from spkver.backend import PromptedTrials
from spkver.corpora import Rsr2015
from spkver.idmap import IdMap
from spkver.mixture import Text
from spkver.rsr2015.lists import RecipeConfig


def texts(lists: Rsr2015) -> dict[str, Text]:
    """Return the words of each recording, and of each model with a fixed text.

    In parts 1 and 2 a sentence is one word, its number: the text of ``m101/m101_02_001`` and ``m101_001`` is ``001``.

    Raises
    ------
    DataError
        If the words of part 3 are unknown.
    """
    words: dict[str, Text] = {}
    for name in (*lists.recordings, *lists.key.model_ids):
        number = name.rpartition("_")[2]
        if len(number) == 3:
            words[name] = (number,)
        if number > "060" and name in lists.recordings and name not in lists.texts:
            text = f"the words of {name!r} are not known, which this system needs"
            raise DataError(text, remedy="give lists.prompts, lines of 'session,sentence,words'")
    return words | lists.texts


@dataclass(frozen=True)
class TextLists:
    """The lists of systems that use the text.

    Attributes
    ----------
    training : dict of str to tuple of str
        Text of each recording of the background speakers.
    maps : dict of str to IdMap
        The lists training and speakers (speaker, recording), enroll (model, recording) and test (prompt, recording).
    texts : dict of str to list of tuple of str
        Text of each row of these lists, actual or prompted.
    prompted : PromptedTrials
    """

    training: dict[str, Text]
    maps: dict[str, IdMap]
    texts: dict[str, list[Text]]
    prompted: PromptedTrials


def text_lists(config: RecipeConfig, lists: Rsr2015) -> TextLists:
    """Return the lists of systems that use the text; trials without a prompt should have the words of the enrolment.

    Raises
    ------
    DataError
        If the words of a recording are unknown.
    """
    if config.ubm.covariance == "full":
        raise ConfigError("ubm.covariance is full: the states of words need diagonal covariances")
    words = texts(lists)
    key = lists.key
    of_models = [words.get(name) for name in key.model_ids]
    of_segments = [words[name] for name in key.segment_ids]
    prompts = []
    for model, segment in zip(key.models, key.segments, strict=True):
        prompts.append(of_models[model] or of_segments[segment])
    prompted = PromptedTrials.from_prompts(key.trials(), prompts)
    speaker_of, _ = lists.speakers()
    enrolled = zip(lists.enrolment.models, lists.enrolment.segments, strict=True)
    maps = {
        "training": IdMap.from_pairs((segment.split("/")[0], segment) for segment in lists.ubm),
        "enroll": lists.enrolment,
        "speakers": IdMap.from_pairs(
            sorted({(speaker_of[model], segment) for model, segment in enrolled})
        ),
        "test": prompted.rows,
    }
    texts_of_maps = {"test": prompted.texts}
    for name in ("training", "enroll", "speakers"):
        texts_of_maps[name] = [words[segment] for segment in maps[name].segments]
    training = dict(zip(lists.ubm, texts_of_maps["training"], strict=True))
    return TextLists(training, maps, texts_of_maps, prompted)
