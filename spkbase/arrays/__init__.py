"""Arrays in memory and in files.

`StoredArray` is an array of numbers in a file that is read by rows when they are asked for; it travels to workers
by its name. `Rows` is what functions take that read an array by rows, wherever it lies; `SelectedRows` are some
rows of another.
"""

from spkbase.arrays.stored import ComputedRows, Rows, SelectedRows, StoredArray, fill_rows, part, stored_rows
