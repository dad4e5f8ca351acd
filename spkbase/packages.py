"""Imports of optional packages, and of this project's packages if the path contains others with the same names."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError

OURS = ("spkbase", "evaluation", "spkver")
"""The packages of this project, whose progress is logged; other packages log only warnings and errors."""

_HOME = Path(__file__).resolve().parent.parent


def prefer_ours(name: str) -> None:
    """Make sure that `import name` imports this project's package, not another one earlier on the path.

    The checkouts of the VoicePrivacy Challenge and of VoicePAT contain another package `evaluation`, which comes first
    with ``PYTHONPATH=.``. Worker processes inherit the path.

    Parameters
    ----------
    name : str
        Name of a top-level package.

    Raises
    ------
    ImportError
        If the other package has already been imported.
    """
    spec = find_spec(name)
    ours = _HOME / name / "__init__.py"
    if spec is None or spec.origin is None or Path(spec.origin).resolve() == ours:
        return
    if name in sys.modules:
        raise ImportError(
            f"the package {name!r} that is imported here is {spec.origin}, not spkver's {ours}: "
            "import spkver first, or remove the folder of the other one from the path (PYTHONPATH)"
        )
    sys.path.insert(0, str(_HOME))


def imported(module: str, install: str, need: str = "this extractor") -> Any:
    """Import a module of an optional package; if it is missing, raise a ConfigError that says how `pip` installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"{need} needs {module}, which cannot be imported: {error}"
        raise ConfigError(text, remedy=f"pip install {install}") from error
