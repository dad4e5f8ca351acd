"""Likelihood ratios as evidence: devPAV, calibration by kernel densities, bounds, and the validation of a system.

Arguments and results are natural logarithms of ratios; devPAV and the tables are in units of log10, as forensic reports
are.
"""

from evaluation.forensics.bounds import Bounds, elub, invariance_bounds
from evaluation.forensics.densities import KernelCalibration, Kernels, train_kernel
from evaluation.forensics.deviation import LN10, dev_pav
from evaluation.forensics.validation import logarithms_of, misleading, validate

__all__ = [
    "LN10",
    "Bounds",
    "KernelCalibration",
    "Kernels",
    "dev_pav",
    "elub",
    "invariance_bounds",
    "logarithms_of",
    "misleading",
    "train_kernel",
    "validate",
]
