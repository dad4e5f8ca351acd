"""Run all benchmarks; an argument names an RSR2015-shaped tree for the features."""

import sys

from benchmarks import (
    anonymization,
    attackers,
    backend,
    e_step,
    embeddings,
    engines,
    evaluation,
    features,
    linkability,
    scoring,
    total_variability,
    uncertainty,
)

e_step.main()
print()
scoring.main()
print()
backend.main()
print()
evaluation.main()
print()
uncertainty.main()
print()
linkability.main()
print()
embeddings.main()
print()
features.main(*sys.argv[1:2])
print()
anonymization.main()
print()
attackers.main()
print()
total_variability.main()
print()
engines.main()
