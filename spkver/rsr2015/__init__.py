"""The RSR2015 recipes: configuration, lists, command line, report. The systems themselves are the scripts in
recipes/rsr2015, which are installed with the package."""

from spkver.rsr2015.command import recipe_command
from spkver.rsr2015.lists import (
    NAP_LISTS,
    RecipeConfig,
    given_files,
    named_lists,
    prepare,
    speaker_lists,
    training_lists,
)
from spkver.rsr2015.results import report
from spkver.rsr2015.texts import TextLists, text_lists, texts

__all__ = [
    "NAP_LISTS",
    "RecipeConfig",
    "TextLists",
    "given_files",
    "named_lists",
    "prepare",
    "recipe_command",
    "report",
    "speaker_lists",
    "text_lists",
    "texts",
    "training_lists",
]
