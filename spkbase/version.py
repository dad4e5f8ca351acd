"""The version of the project, in one place, and those of the libraries that numbers depend on."""

from __future__ import annotations

import platform
from functools import cache

__version__ = "0.1.0"

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "h5py", "soundfile", "soxr")


@cache
def library_version(name: str) -> str:
    """Return the version of an installed distribution, or "none"."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except (
        PackageNotFoundError,
        ValueError,
    ):  # ValueError: for an empty name, from a damaged record
        return "none"


def versions() -> dict[str, str]:
    """Return the versions of the package, Python and the libraries that the numbers depend on."""
    installed = {
        name: library_version(name) for name in _LIBRARIES if library_version(name) != "none"
    }
    return {"spkver": __version__, "python": platform.python_version(), **installed}
