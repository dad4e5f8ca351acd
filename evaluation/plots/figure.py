"""A figure that a notebook shows, whether or not pyplot was ever imported there."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class Picture(Figure):
    """A figure of matplotlib with a canvas of its own, apart from pyplot, which a notebook shows once as its result."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        """Return the picture, as notebooks ask for it."""
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=100, bbox_inches="tight")
        return buffer.getvalue()
