"""The notebooks run from the first cell to the last, in an empty folder, and what they show can be shown.

Each runs in a process of its own, as a kernel does, without Jupyter: cells are plain Python (no magic), in one
namespace, and the value of a cell's last line is asked for its HTML or its repr.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole(seconds=20)

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
LARGEST = 300_000  # bytes, with outputs
NEEDS = {
    "scores_to_figure": (),
    "rsr2015_in_python": ("espeakng_loader",),
    "anonymised_to_verdict": ("espeakng_loader",),
}
SAYS = {
    "scores_to_figure": ["EER lower by", "eer.rocch"],
    "rsr2015_in_python": ["SVM with NAP minus SVM", "EER (ROCCH)"],
    "anonymised_to_verdict": ["semi-informed", "equal error rate of", "SIMULATED"],
}

RUN = """
import ast, json, sys
namespace = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1], encoding="utf-8"))["cells"]):
    if cell["cell_type"] != "code":
        continue
    tree = ast.parse("".join(cell["source"]), f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
        if value is not None:
            print(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_small_and_contain_their_outputs(path):
    """A code host shows them as they are: all cells were run in order, without warnings or paths of a machine."""
    assert path.stat().st_size < LARGEST
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["metadata"]["kernelspec"]["name"]) == (4, "python3")
    identities = [cell["id"] for cell in content["cells"]]
    assert len(set(identities)) == len(identities)
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    shown = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in shown} <= {"execute_result", "stream"}
    assert "stderr" not in {output.get("name") for output in shown}
    text = json.dumps(shown)
    assert not re.search(r"/(tmp|home|root|work|Users)/", text)
    for words in SAYS[path.stem]:
        assert words in text
    assert "<table" in text
    assert "image/png" in text


@pytest.mark.slow  # the site of the documentation runs them too, in the continuous integration
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    for module in NEEDS[path.stem]:
        pytest.importorskip(module)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", RUN, str(path)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for words in SAYS[path.stem]:
        assert words in done.stdout
    assert "Traceback" not in done.stderr
