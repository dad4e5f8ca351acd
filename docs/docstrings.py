"""Docstrings of this project, plain text in numpydoc's sections, as the reStructuredText that Sphinx reads."""

from __future__ import annotations

import re

SEVERAL = re.compile(r"^\w+(?:, \w+)+(?= : )")  # fields of one type: `low, high : float`
CITED = re.compile(r"\[(\d)\]_")
LISTED = re.compile(r"^(\s*)\.\. \[(\d)\] ")
NO_PARAGRAPH = (" ", "- ", ".. ", ">>>")


def restructured(lines: list[str], *, of_class: bool = False) -> list[str]:
    """Return a docstring with formulas as they are set, bars and stars as signs, and references as a list.

    What is indented below a paragraph is a formula or a diagram, and becomes literal. Of several fields in a line of a
    class Napoleon takes the last for the name and the others for its type, unless no blank is between them.
    """
    if of_class:
        lines = [SEVERAL.sub(lambda found: found[0].replace(" ", ""), line) for line in lines]
    text: list[str] = []
    last = ""  # the last line that was not empty
    literal = False
    for line in lines:
        indented = line.startswith(" ")
        if (
            indented
            and not literal
            and text
            and not text[-1].strip()
            and last
            and not last.startswith(NO_PARAGRAPH)
        ):
            literal = True
            text += [] if last.endswith("::") else ["::", ""]
        elif line.strip() and not indented:
            literal = False
        if line.strip():
            last = line
        text.append(line if literal or line.lstrip().startswith((">>>", "...")) else escaped(line))
    return [LISTED.sub(r"\1\2. ", line) for line in text]


def escaped(line: str) -> str:
    """Return a line whose bars, and stars within file names, are signs unless they stand in literals."""
    parts = re.split(r"(`+[^`]*`+)", line)
    parts[::2] = [
        re.sub(r"(?<=[/_])\*|\*(?=\.\w)", r"\\*", part.replace("|", r"\|")) for part in parts[::2]
    ]
    return CITED.sub(r"[\1]", "".join(parts))
