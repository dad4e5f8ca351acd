"""A classic speaker-verification backend: speech in, scores out.

The data go one way::

    audio -> features -> statistics -> supervectors -> (NAP) -> models -> scores

Scores are handed to the package `evaluation`, which never imports this one.
"""

from spkbase.version import __version__

__all__ = ["__version__"]
