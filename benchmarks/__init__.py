"""Benchmarks: `python -m benchmarks.speed e-step` runs one. They print ratios, not verdicts."""
