"""What a user brings along: Python objects named as ``MODULE:NAME`` or ``FILE.py:NAME``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError


def load_named(name: str, what: str) -> Any:
    """Import an object by ``MODULE:NAME`` or ``FILE.py:NAME``.

    Parameters
    ----------
    name : str
        As the user gave it.
    what : str
        What it should be, for errors, such as "format".

    Raises
    ------
    ConfigError
        If there is no such module or object, or the module breaks.

    Examples
    --------
    >>> load_named("math:pi", "number")
    3.141592653589793
    """
    where, _, object_name = name.rpartition(":")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"_{what}_{Path(where).stem}", where)
            if spec is None or spec.loader is None:
                raise ImportError(f"{where} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except Exception as error:
        raise ConfigError(
            f"the {what} {name!r} cannot be imported: {type(error).__name__}: {error}",
            remedy="give MODULE:NAME, with the module's folder in PYTHONPATH, or FILE.py:NAME",
        ) from error
    if not hasattr(module, object_name):
        raise ConfigError(f"the {what} {name!r}: {where} has no {object_name!r}")
    return getattr(module, object_name)
