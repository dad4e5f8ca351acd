"""Who computes: an ordered map over workers, and devices for arrays.

`ordered_map(function, items)` yields results in the order of the items, from threads, processes or a Dask cluster,
the same for any of them; `use_engine` chooses. `Device` is where arrays are computed instead of in NumPy. Every
product that a result depends on runs with one BLAS thread (`one_blas_thread`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
