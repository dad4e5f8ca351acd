"""What the libraries raise of damaged files, which is to become one clear error."""

from __future__ import annotations

import tokenize
import zipfile
import zlib

BROKEN_HDF5 = (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, MemoryError, OverflowError)

# NumPy reads the header of an array as Python's literals: what the tokenizer cannot end is no ValueError.
BROKEN_NPZ = (
    OSError,
    SystemError,
    RuntimeError,  # encrypted, or packed in an unknown way
    KeyError,
    ValueError,
    TypeError,
    EOFError,
    MemoryError,
    OverflowError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
