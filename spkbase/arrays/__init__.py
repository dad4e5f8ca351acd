"""Arrays in memory and in files.

`StoredArray` is an array of numbers in a file that is read by rows when they are asked for; it travels to workers
by its name. `Rows` is what functions take that read an array by rows, wherever it lies; `SelectedRows` are some
rows of another.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
