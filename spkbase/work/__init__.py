"""Who computes: an ordered map over workers, and devices for arrays.

`ordered_map(function, items)` yields results in the order of the items, from threads, processes or a Dask cluster,
the same for any of them; `use_engine` chooses. `Device` is where arrays are computed instead of in NumPy. Every
product that a result depends on runs with one BLAS thread (`one_blas_thread`).
"""

from spkbase.work.blas_threads import one_blas_thread
from spkbase.work.choices import ENGINES, WAIT, EngineKind, device_option
from spkbase.work.devices import Array, Device, Namespace, find_device, on_device
from spkbase.work.executors import stop_workers
from spkbase.work.maps import (
    at_once,
    chunk_bounds,
    chunks,
    default_jobs,
    engine_kind,
    ordered_map,
    progress,
    ships_items,
    use_engine,
)
from spkbase.work.settings import ALL_CORES, Work
