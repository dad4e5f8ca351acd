"""Links to anonymised recordings in a separate folder, so that they become twins of data directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from spkbase.errors import DataError, counted, few
from spkver.audio import EXTENSIONS
from spkver.datadir.directory import DataDir, id_of_stem, no_folder, write_datadir
from spkver.datadir.reading import files_below, read_datadir
from spkver.datadir.splitting import common_ending

_COMMON = "_common"


def link_twins(
    originals: Iterable[DataDir], folder: str | Path, target: str | Path, suffix: str
) -> list[str]:
    """Write data directories of anonymised recordings that lie in another folder, which is not changed.

    The recordings of ``libri_test_enrolls`` are those below ``libri_test_enrolls<suffix>`` or ``libri_test_enrolls`` in
    the folder, if one of these exists; otherwise those anywhere below the folder that are named like its utterances.
    All names may have one additional ending, as in ``take1_anon.wav``.

    Parameters
    ----------
    originals : iterable of DataDir
    folder : path
        Folder of the anonymised recordings.
    target : path
        Folder of the new data directories, which hold only lists.
    suffix : str
        Suffix of their names.

    Returns
    -------
    list of str
        Names of the originals for which recordings were found, possibly not all.

    Raises
    ------
    DataError
        If there is no such folder, no recording in it, or two recordings of the same utterance.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise no_folder(folder)
    whole: dict[str, list[Path]] = {}
    linked = []
    for original in originals:
        name = original.path.name
        own = _own_folder(folder, name, suffix)
        if own is None:
            whole = whole or _paths_below(folder)
            recordings = _named_alike(original, whole, folder)
        elif (own / "wav.scp").is_file():
            recordings = read_datadir(own).recordings
        else:
            recordings = _own_recordings(original, own)
        if recordings:
            speakers = {
                utterance: original.speakers.get(utterance, utterance) for utterance in recordings
            }
            write_datadir(DataDir(Path(target) / f"{name}{suffix}", recordings, speakers))
            linked.append(name)
    return linked


def _own_folder(folder: Path, name: str, suffix: str) -> Path | None:
    """Return the folder of a set; for VCTK, the challenge of 2022 puts a list and its common part into one folder."""
    both = f"{name.removesuffix(_COMMON)}_all"
    for candidate in (f"{name}{suffix}", name, f"{both}{suffix}", both):
        if (folder / candidate).is_dir():
            return folder / candidate
    return None


def _own_recordings(original: DataDir, own: Path) -> dict[str, Path]:
    """Return the recordings in a set's folder; those that the original lacks keep their names."""
    paths = _paths_below(own)
    recordings = _named_alike(original, paths, own)
    if own.name.startswith(f"{original.path.name.removesuffix(_COMMON)}_all"):
        return recordings
    used = set(recordings.values())
    for name, (path, *_) in paths.items():
        if path not in used:
            recordings[name] = path
    return recordings


def _named_alike(
    original: DataDir, paths: Mapping[str, list[Path]], folder: Path
) -> dict[str, Path]:
    """Return the recordings that are named like utterances, possibly with one additional ending."""
    firsts = {name: files[0] for name, files in paths.items()}
    ending = common_ending(original.speakers, DataDir(folder, firsts, dict.fromkeys(firsts, "")))
    recordings = {}
    twice = []
    for utterance in original.speakers:
        name = f"{utterance}{ending}"
        if name in paths:
            recordings[utterance] = firsts[name]
            if len(paths[name]) > 1:
                twice.append(name)
    if twice:
        text = f"{counted(len(twice), 'utterance')} with several recordings: {few(twice, repr)}"
        raise DataError(text, file=folder, remedy="give the folder of one anonymised version")
    return recordings


def _paths_below(folder: Path) -> dict[str, list[Path]]:
    """Return the recordings below a folder by their names without extension."""
    paths: dict[str, list[Path]] = {}
    for path in files_below(folder):
        if path.suffix.lower() in EXTENSIONS:
            paths.setdefault(id_of_stem(path.stem), []).append(folder / path)
    if not paths:
        text = f"no recordings: found no {', '.join(EXTENSIONS)} file"
        raise DataError(text, file=folder, remedy="give the folder of the anonymised recordings")
    return paths
