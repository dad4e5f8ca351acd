"""A classic speaker-verification backend: speech in, scores out.

The data go one way::

    audio -> features -> statistics -> supervectors -> (NAP) -> models -> scores

Scores are handed to the package `evaluation`, which never imports this one.
"""

from spkbase.packages import prefer_ours
from spkbase.version import __version__

__all__ = ["__version__"]

prefer_ours("evaluation")
