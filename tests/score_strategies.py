"""Scores of both classes for properties that hold for any: many ties and infinite ones, or any finite numbers."""

from __future__ import annotations

from hypothesis import strategies as st

_VALUES = st.sampled_from([float("-inf"), -2.0, -1.0, -0.0, 0.0, 1.0, 2.0, float("inf")])
tied = st.lists(_VALUES, min_size=1, max_size=12)
free = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)
classes = st.tuples(tied, tied) | st.tuples(free, free)
