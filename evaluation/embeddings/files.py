"""Files of embeddings: read by their content, large ones mapped instead of copied.

===========  =====================================================================================================
npz, HDF5    ``vectors`` (n, D) of floats, ``ids`` (n,) and ``speakers`` (n,) of text; also other names that the
             field uses (`evaluation.embeddings.columns`); an npz of an array for each utterance, or of a window that
             slides over a recording (``data``, ``start``, ``duration``, ``step``)
npy          (n, D), with a list of ids beside it; a folder of ``vectors.npy``, ``ids.npy`` and ``speakers.npy``
Kaldi        ``.scp`` and ``.ark`` of vectors (`evaluation.embeddings.kaldi`), with an ``utt2spk``; folders of them
PyTorch      ``.pt`` in both forms, without PyTorch, and the cache of VoicePrivacy (`evaluation.embeddings.folders`)
safetensors  of a tensor for each utterance
text         CSV, TSV, and lines ``id v1 v2 ...`` (`evaluation.embeddings.tables`)
pickle       on request only, through stand-ins (`spkbase.files.read_pickle`)
===========  =====================================================================================================

What dictionaries and lists may look like in pickles, PyTorch's files and safetensors stands in
`evaluation.embeddings.plain_data`.

Who the speakers are: a map that is given, else the file, else an ``utt2spk`` beside an archive. A map whose ids are not
those of the file, but whose speakers are, says that the file holds a vector for each speaker. Without all of these
each id is a speaker of its own, and a note says so.

Vectors above 64 MiB are mapped where they lie in one piece, not packed: in npy, in an npz of `numpy.savez`, in a
contiguous dataset, and in a tensor.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evaluation.embeddings.arrays import read_npy_folder
from evaluation.embeddings.columns import Columns, joined
from evaluation.embeddings.folders import CACHE, files_of, ids_beside, is_cache, is_npy_folder, read_cache
from evaluation.embeddings.forms import FORMS, HEAD, Reading
from evaluation.embeddings.sets import Embeddings
from evaluation.trials import read_speakers
from spkbase.errors import DataError, few
from spkbase.files import atomic_file, errors_named, whole_file

MAP_ABOVE = 1 << 26
_KALDI = (".scp", ".ark")


def read_embeddings(
    path: str | Path | Sequence[str | Path],
    *,
    speakers: str | Path | None = None,
    allow_pickle: bool = False,
    map_above: int = MAP_ABOVE,
) -> Embeddings:
    """Read embeddings of any of the forms.

    Parameters
    ----------
    path : path, or several
        File, folder, or a pattern such as ``xvector.*.scp``. Those of several are put under each other.
    speakers : path, optional
        Map of ids to speakers, lines ``id speaker`` as in ``utt2spk``.
    allow_pickle : bool
        Read pickles too, without running what they say.
    map_above : int
        Bytes of vectors above which they are mapped from the file.

    Raises
    ------
    DataError
        With the place: no such file, a broken or foreign one, a missing column, an id that is repeated or has no
        speaker, vectors of unequal dimensions, a pickle that is not allowed or asks for more than plain data.
    """
    given = [path] if isinstance(path, (str, Path)) else list(path)
    if not given:
        raise DataError("expected a file of embeddings, got none")
    paths = [file for entry in given for file in _matching(Path(entry))]
    reading = Reading(allow_pickle, map_above)
    columns = joined([_read(file, reading) for file in paths], paths)
    source = few(given)
    ids, owners, notes = columns.ids, columns.speakers, columns.notes
    assert ids is not None  # `_read` sees to it
    if speakers is None and owners is None and (beside := _map_beside(paths)) is not None:
        speakers = beside
    if speakers is not None:
        owners, more = _mapped(ids, Path(speakers), source)
        notes += more
    elif owners is None:
        names = few([Path(entry).name for entry in given])
        owners, notes = ids, (*notes, f"{names} has no speakers: each id counts as one")
    try:
        return Embeddings(np.asarray(ids, object), np.asarray(owners, object), columns.vectors, notes, source)
    except DataError as error:
        raise DataError(error.text, file=source, remedy=error.remedy) from error


def write_embeddings(path: str | Path, embeddings: Embeddings) -> None:
    """Write embeddings as ``.npz`` or ``.h5``, not packed, so that they can be mapped; whole or not at all.

    Raises
    ------
    DataError
        If the extension is another, or the file cannot be written.
    """
    path = Path(path)
    ids, speakers = embeddings.ids.tolist(), embeddings.speakers.tolist()
    if path.suffix == ".npz":
        columns = {"ids": np.array(ids, np.str_), "speakers": np.array(speakers, np.str_)}
        with atomic_file(path) as file:
            np.savez(file, vectors=embeddings.vectors, **columns)  # type: ignore[arg-type]
    elif path.suffix in (".h5", ".hdf5"):
        import h5py

        with atomic_file(path) as file, h5py.File(file, "w") as root:
            root.create_dataset("vectors", data=embeddings.vectors)
            for name, values in (("ids", ids), ("speakers", speakers)):
                root.create_dataset(name, data=np.array([value.encode() for value in values]))
    else:
        raise DataError(f"no format of embeddings is known for {path.suffix!r}", file=path, remedy="use .npz or .h5")


def _matching(path: Path) -> list[Path]:
    """Files that a pattern names; a path that is there, or names nothing, stays as it is."""
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = [Path(name) for name in sorted(glob.glob(str(path)))]  # noqa: PTH207
    if not found:
        raise DataError("no file has such a name", file=path, remedy="check the pattern")
    return found


def _read(path: Path, reading: Reading) -> Columns:
    """Read a file or a folder; what it leaves has ids."""
    if not path.is_dir():
        return _read_file(path, reading)
    if not is_cache(path) and is_cache(path / "utt-level"):
        path = path / "utt-level"
    if is_cache(path):
        return _read_file(path / CACHE, reading)
    if is_npy_folder(path):
        return _with_ids(read_npy_folder(path, reading.map_above), path, "a folder with")
    files = files_of(path)
    return joined([_read_file(file, reading, is_part=True) for file in files], files)


def _read_file(path: Path, reading: Reading, *, is_part: bool = False) -> Columns:
    """Read one file, a pipe whole; a vector alone in a file of a folder is named as the file."""
    copy = whole_file(path)
    if copy != path:
        with errors_named(path, copy):
            return _read_file(copy, reading, is_part=is_part)
    try:
        with path.open("rb") as handle:
            head = handle.read(HEAD)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path, remedy="check the path") from error
    if not head:
        raise DataError("expected embeddings, got an empty file", file=path, remedy="write it again")
    form = next((form for form in FORMS if form.recognises(path, head)), None)
    if form is None:
        known = "npz, npy, HDF5, Kaldi's .scp and .ark, .pt, safetensors, CSV or text, or a pickle with --allow-pickle"
        raise DataError("is no known file of embeddings", file=path, remedy=f"expected {known}")
    columns = form.read(path, reading)
    if columns.ids is None and path.name == CACHE and is_cache(path.parent):
        return read_cache(path.parent, columns.vectors)
    if columns.ids is None and is_part and len(columns.vectors) == 1:
        return Columns([path.stem], None, columns.vectors)
    return _with_ids(columns, path, "a file with")


def _with_ids(columns: Columns, path: Path, what: str) -> Columns:
    """Give vectors without ids those that stand beside them."""
    if columns.ids is not None:
        return columns
    ids = None if path.is_dir() else ids_beside(path, len(columns.vectors))
    if ids is None:
        text = f"expected {what} ids, speakers and vectors; ids not there"
        remedy = f"write a list of the {len(columns.vectors)} ids beside it: {path.stem}.ids, a line each"
        raise DataError(text, file=path, remedy=remedy)
    return Columns(ids, columns.speakers, columns.vectors, columns.notes)


def _map_beside(paths: Sequence[Path]) -> Path | None:
    """The utt2spk beside an archive of Kaldi, or in a folder."""
    folders = {path if path.is_dir() else path.parent for path in paths if path.is_dir() or path.suffix in _KALDI}
    beside = [folder / "utt2spk" for folder in folders]
    return beside[0] if len(beside) == 1 and beside[0].is_file() else None


def _mapped(ids: Sequence[str], speakers: Path, source: str) -> tuple[list[str], tuple[str, ...]]:
    """Look the speakers of ids up in a map; where all ids are speakers of the map, each is its own."""
    table = read_speakers(speakers)
    absent = [utterance for utterance in ids if utterance not in table]
    if len(absent) == len(ids) and set(ids) <= set(table.values()):
        return list(ids), (f"{source} holds a vector for each speaker: its ids are speakers of {speakers.name}",)
    if absent:
        text = f"{len(absent)} of {len(ids)} utterances of {source} without a speaker: {few(absent)}"
        raise DataError(text, file=speakers, remedy="the map must name the speaker of each")
    return [table[utterance] for utterance in ids], ()
