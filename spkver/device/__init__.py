"""The heavy sums and products on a device (`evaluation.devices`), from plain arrays to plain arrays.

Each function does what the module of the same step does in NumPy, equal to the rounding of the dtype of its arrays:
products of frames and scores run in float32 and are summed over blocks in float64; what NumPy computes in float64
(MAP means, kernels, projections) is float64 here too. All is written on the array API standard, for any library.
"""
