"""Benchmarks: `python -m benchmarks.e_step` runs one. They print ratios, not verdicts."""
