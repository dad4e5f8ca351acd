"""Importing the package stays cheap."""

import json
import subprocess
import sys

HEAVY = [
    "librosa",
    "sklearn",
    "matplotlib",
    "scipy.stats",
    "h5py",
    "spkver",
    "pandas",
    "polars",
    "torch",
]


def test_importing_loads_no_heavy_library():
    code = f"""
import json, sys
import evaluation, evaluation.trials.lists, evaluation.formats.reading, evaluation.metrics.detection, evaluation.plots
import evaluation.plots.style, spkbase.files
before = [name for name in {HEAVY} if name in sys.modules]
evaluation.metrics.detection.eer([1.0], [0.0])
evaluation.evaluate([1.0, 2.0], labels=[1, 0])
print(json.dumps([before, [name for name in {HEAVY} if name in sys.modules]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], []]
