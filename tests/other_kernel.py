"""Run the numerical tests as another type of CPU would: python tests/other_kernel.py [ARGUMENTS OF PYTEST]

OpenBLAS takes another kernel than the machine's own, and NumPy leaves out the vector instructions that go with its own:
Haswell without AVX-512 where the machine has it, else Prescott, which has no AVX2 either. What holds only to the last
bit of one kernel fails here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NUMERICAL = (
    *("test_reference_values", "test_intervals", "test_runs", "test_detection", "test_disclosure"),
    *("test_calibration", "test_affine", "test_evaluate", "test_uncertainty", "test_groups"),
    *("test_linkability", "test_ranks", "test_disclosure_sets", "test_singling_out"),
    *("test_normalisation", "test_embeddings"),
    *("test_plda", "test_plda_scores", "test_plda_golden", "test_kaldi_backend"),
    *(
        "test_extraction",
        "test_vad",
        "test_feature_golden",
        "test_ubm",
        "test_statistics",
        "test_supervectors",
    ),
    *(
        "test_supervector_golden",
        "test_nap",
        "test_svm",
        "test_scoring",
        "test_mcadams",
        "test_prediction",
    ),
    *(
        "test_classic",
        "test_one_blas_thread",
        "test_transforms",
        "test_transforms_golden",
        "test_chain",
    ),
    *("test_chain_golden", "test_filterbanks", "test_adapted"),
)
# NumPy's names of instructions beyond those of Haswell, and beyond those of Prescott; they changed with NumPy 2.4
AVX512 = (
    "X86_V4",
    "AVX512_ICL",
    "AVX512_SPR",
    "AVX512F",
    "AVX512CD",
    "AVX512_SKX",
    "AVX512_CLX",
    "AVX512_CNL",
)
AVX2 = ("X86_V3", "AVX2", "FMA3", "F16C", "AVX")
KERNEL = """
import numpy, scipy.linalg, threadpoolctl
print(*{pool["architecture"] for pool in threadpoolctl.threadpool_info() if pool["internal_api"] == "openblas"})
"""


def kernels(environment: dict[str, str]) -> set[str]:
    """Kernels of OpenBLAS that NumPy and SciPy load under an environment; none if they have another library."""
    done = subprocess.run(
        [sys.executable, "-c", KERNEL], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def other_kernel(own: set[str]) -> tuple[str, tuple[str, ...]]:
    """Name of another kernel, and what NumPy is to leave out."""
    if own & {"Haswell", "Zen"}:
        return "Prescott", (*AVX512, *AVX2)
    return "Haswell", AVX512


def optional_instructions() -> set[str]:
    """What NumPy finds on this CPU beyond what it needs; naming another is an error to it."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    except ImportError:  # NumPy 1
        from numpy.core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return {name for name in __cpu_dispatch__ if __cpu_features__.get(name)}


def files() -> list[str]:
    """The numerical tests, wherever they lie below this folder."""
    found = [path for name in NUMERICAL for path in FOLDER.rglob(f"{name}.py")]
    missing = set(NUMERICAL) - {path.stem for path in found}
    assert not missing, f"there are no tests {missing}"
    return [str(path) for path in found]


def main() -> None:
    """Choose, look whether it is so, and run."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    own = kernels(environment)
    if not own:
        print("NumPy has no OpenBLAS here: there is no other kernel to try")  # noqa: T201
        return
    name, without = other_kernel(own)
    left_out = sorted(set(without) & optional_instructions())
    environment |= {"OPENBLAS_CORETYPE": name, "NPY_DISABLE_CPU_FEATURES": ",".join(left_out)}
    now = kernels(environment)
    if now & own:
        print(f"OpenBLAS keeps its kernel {', '.join(own)}: it has no other here")  # noqa: T201
        return
    told = f"OpenBLAS with {', '.join(sorted(now))} in place of {', '.join(sorted(own))}, NumPy without "
    print(told + (", ".join(left_out) or "nothing less"), flush=True)  # noqa: T201
    os.execve(
        sys.executable, [sys.executable, "-m", "pytest", *files(), *sys.argv[1:]], environment
    )


if __name__ == "__main__":
    main()
