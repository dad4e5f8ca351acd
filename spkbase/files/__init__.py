"""Files: whole or absent when written, and nothing in them is run when they are read.

Writing goes through `atomic_file` and `atomic_path`; arrays through `write_arrays` and `read_arrays` (HDF5, behind
a guard against files that the library reads wrongly or dies of); JSON, CSV and tables through `to_json`,
`write_json` and `format_table`. Texts come in through `read_text_bytes`, YAML and JSON through `load_yaml` and
`load_json`, pickles through a reader that knows nothing but containers and arrays. `fingerprint` is the digest of
configurations and lists.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
