"""Benchmarks: `python -m benchmarks` runs all, `python -m benchmarks.e_step` one. They print ratios, not verdicts."""
