"""Which package of a name is imported, where a folder on the path holds another one of the same name."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

OURS = ("spkbase", "evaluation", "spkver")
"""The packages of this project: their progress is logged, of other packages only what is wrong."""

_HOME = Path(__file__).resolve().parent.parent


def prefer_ours(name: str) -> None:
    """Make sure that `import name` brings the package beside this one, not one of the same name before it on the path.

    The checkouts of the VoicePrivacy Challenge and of VoicePAT hold a package `evaluation` of their own, which comes
    first for those who work there with ``PYTHONPATH=.``. Worker processes take the path over.

    Parameters
    ----------
    name : str
        Of a top-level package.

    Raises
    ------
    ImportError
        If the other package is imported already.
    """
    spec = find_spec(name)
    ours = _HOME / name / "__init__.py"
    if spec is None or spec.origin is None or Path(spec.origin).resolve() == ours:
        return
    if name in sys.modules:
        raise ImportError(
            f"the package {name!r} that is imported here is {spec.origin}, not spkver's {ours}: "
            "import spkver first, or take the folder of the other one off the path (PYTHONPATH)"
        )
    sys.path.insert(0, str(_HOME))
