"""Score files: trials, keys and scores read by their content, written by their extension.

`read_scores`, `read_key`, `read_trials` take text in the orders of the field, tables with a header, npz, and HDF5
of SIDEKIT and BOSARIS, each also gzipped; `write_scores` and the others write them. What leaves is a `Scores`,
`Key` or `Trials`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
