"""Score files: trials, keys and scores, read according to their content and written according to the extension.

`read_scores`, `read_key`, `read_trials` take text with the usual orders of columns, tables with a header, npz, and HDF5
of SIDEKIT and BOSARIS, each also gzipped; `write_scores` and the others write them. The results are `Scores`,
`Key` and `Trials`.
"""

from evaluation.formats.conversations import read_conversations, write_conversations
from evaluation.formats.reading import (
    FORMATS,
    KINDS,
    MATLAB,
    Format,
    check_extension,
    join,
    read_key,
    read_scores,
    read_scores_and_key,
    read_split,
    read_trials,
    write_as,
    write_key,
    write_scores,
    write_trials,
)
from evaluation.formats.text import KEYS, SCORES, Choice, Kind, ListFile, write_text_list

__all__ = [
    "FORMATS",
    "KEYS",
    "KINDS",
    "MATLAB",
    "SCORES",
    "Choice",
    "Format",
    "Kind",
    "ListFile",
    "check_extension",
    "join",
    "read_conversations",
    "read_key",
    "read_scores",
    "read_scores_and_key",
    "read_split",
    "read_trials",
    "write_as",
    "write_conversations",
    "write_key",
    "write_scores",
    "write_text_list",
    "write_trials",
]
