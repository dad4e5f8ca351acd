"""Print the oldest versions that setup.cfg allows, as constraints for pip: python tests/lower_bounds.py"""

from __future__ import annotations

import re
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "setup.cfg"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])? *>=(?P<oldest>[\w.]+)(,<[\w.]+)?")


def constraints(setup: Path = SETUP) -> Iterator[str]:
    """Yield name==version for each requirement that has a lower bound, those of the extras included."""
    parser = ConfigParser()
    parser.read(setup)
    texts = [parser["options"]["install_requires"], *parser["options.extras_require"].values()]
    for line in "\n".join(texts).split("\n"):
        match = REQUIREMENT.fullmatch(line)
        if match:
            yield f"{match['name']}=={match['oldest']}"


if __name__ == "__main__":
    print(*constraints(), sep="\n")  # noqa: T201
