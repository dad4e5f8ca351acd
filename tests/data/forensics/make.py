"""Write golden.json: what the package `lir` (1.8.0, Apache-2.0, Python 3.12) gives for drawn log-likelihood ratios.

    python -m venv lir && lir/bin/pip install lir==1.8.0 && lir/bin/python tests/data/forensics/make.py

Inputs are log10 ratios, rounded so that they are the same in the file; infinite numbers are written as text.
"""

import json
from pathlib import Path

import numpy as np
from lir.algorithms.bayeserror import elub
from lir.algorithms.devpav import devpav
from lir.algorithms.invariance_bounds import calculate_invariance_bounds
from lir.algorithms.kde import KDECalibrator
from lir.data.models import LLRData
from lir.metrics import cllr, cllr_min

QUERIES = np.linspace(-3, 3, 13)


def drawn(seed, n_target, n_nontarget, distance, *, scale=1.0, offset=0.0, digits=6):
    rng = np.random.default_rng(seed)
    target = rng.normal(distance**2 / 2, distance, n_target)
    nontarget = rng.normal(-(distance**2) / 2, distance, n_nontarget)
    return [
        (scale * values / np.log(10) + offset).round(digits).tolist()
        for values in (target, nontarget)
    ]


SETS = {
    "calibrated": drawn(0, 60, 300, 2.0),
    "strong": drawn(1, 60, 300, 4.0),
    "weak": drawn(2, 50, 200, 0.5),
    "overconfident": drawn(3, 60, 300, 2.0, scale=3.0),
    "shifted": drawn(4, 60, 300, 2.0, offset=1.0),
    "timid": drawn(5, 60, 300, 2.5, scale=0.4),
    "few": drawn(6, 8, 20, 1.5),
    "more targets": drawn(7, 200, 40, 2.0),
    "tied": drawn(8, 60, 300, 2.0, digits=1),
    "separate": [[1.0, 2.0, 3.0], [-1.5, -2.5, -0.5]],
    "truly infinite": [
        [*drawn(9, 50, 1, 2.0)[0], float("inf")],
        [*drawn(10, 1, 200, 2.0)[1], float("-inf")],
    ],
}


def values_of(target, nontarget):
    """Return the numbers of lir; it changes its input, so each function gets its own."""

    def data():
        labels = np.repeat([1, 0], [len(target), len(nontarget)])
        return LLRData(features=np.array([*target, *nontarget]), hypothesis=labels)

    queries = LLRData(features=QUERIES.copy())
    kernel = KDECalibrator(bandwidth="silverman").fit(data()).apply(queries)
    return {
        "dev_pav": float(devpav(data())),
        "elub": [float(bound) for bound in elub(data())],
        "invariance": [float(bound) for bound in calculate_invariance_bounds(data())[:2]],
        "kernel": kernel.llrs.tolist(),
        "cllr": float(cllr(data())),
        "min_cllr": float(cllr_min(data())),
    }


def plain(value):
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value if isinstance(value, float) and np.isfinite(value) else str(value)


def main():
    golden = {"queries": QUERIES.tolist(), "sets": {}}
    for name, (target, nontarget) in SETS.items():
        numbers = values_of(target, nontarget)
        golden["sets"][name] = {"target": plain(target), "nontarget": plain(nontarget)} | {
            key: plain(value) for key, value in numbers.items()
        }
    Path(__file__).with_name("golden.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
