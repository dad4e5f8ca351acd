"""Files: whole or absent when written, and nothing in them is run when they are read.

Writing goes through `atomic_file` and `atomic_path`; arrays through `write_arrays` and `read_arrays` (HDF5, behind
a guard against files that the library reads wrongly or dies of); JSON, CSV and tables through `to_json`,
`write_json` and `format_table`. Texts come in through `read_text_bytes`, YAML and JSON through `load_yaml` and
`load_json`, pickles through a reader that knows nothing but containers and arrays. `fingerprint` is the digest of
configurations and lists.
"""

from spkbase.files.archives import check_array, check_characters, check_members, read_header, read_npz, unpack_gzip
from spkbase.files.atomic import (
    TEMPORARY,
    as_plain,
    atomic_file,
    atomic_path,
    bytes_of,
    disk_errors,
    is_file,
    make_folder,
    size_and_time,
    temporary_name,
    write_at,
    write_text,
)
from spkbase.files.broken import BROKEN_HDF5, BROKEN_NPZ
from spkbase.files.documents import load_json, load_yaml, read_yaml_text
from spkbase.files.hdf5 import (
    FORMAT_VERSION,
    check_forms,
    file_digest,
    fingerprint,
    new_file,
    open_file,
    read_arrays,
    stored_array,
    stored_dataset,
    write_arrays,
    write_strings,
)
from spkbase.files.hdf5_attributes import read_attribute
from spkbase.files.hdf5_guard import check_hdf5, check_memory, is_as_in_memory, memory_size
from spkbase.files.hdf5_opening import open_hdf5_checked
from spkbase.files.hdf5_strings import is_text, read_text
from spkbase.files.id_lists import read_id_list
from spkbase.files.json_and_tables import escape_markdown, format_csv, format_table, to_json, write_json
from spkbase.files.pickle_guard import check_pickle
from spkbase.files.plain_pickle import load_plain, read_pickle
from spkbase.files.source import (
    check_text,
    inner_suffix,
    line_at,
    not_text,
    read_bytes,
    read_text_bytes,
    shown,
    write_bytes,
)
from spkbase.files.spooling import errors_named, whole_file
from spkbase.files.temporary_rows import TemporaryRows
from spkbase.files.torch_files import OLDER_TORCH, read_torch
