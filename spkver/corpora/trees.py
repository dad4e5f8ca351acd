"""Trees of synthetic speech: whole or absent, never over something else, with a record of what made them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from spkbase.errors import DataError
from spkbase.files import load_json, write_text
from spkbase.runs import sole_use
from spkbase.version import __version__
from spkver.corpora.voices import SAMPLE_RATE, VARIABILITY

RECORD = "simulation.json"
CONTAINERS = {"wav": "WAV", "sph": "NIST", "flac": "FLAC"}

_LIBRARIES = ("espeakng-loader", "numpy", "scipy")
_BYTES_PER_FILE = 90_000  # of 16-bit samples, on average


def is_simulated(folder: str | Path) -> bool:
    """Return whether a tree was made by ``spkver simulate``, which leaves a record at its root."""
    return (Path(folder) / RECORD).is_file()


def identity(version: int) -> dict[str, Any]:
    """Return what besides the arguments decides the samples, as it reads after a way through JSON."""
    return json.loads(json.dumps({"version": version, "variability": asdict(VARIABILITY)}))


def read_record(output: Path) -> dict[str, Any]:
    """Read the record of a finished tree."""
    record: dict[str, Any] = load_json(output / RECORD)
    return record


def is_finished(output: Path, wanted: dict[str, Any], files: Sequence[str]) -> bool:
    """Return whether the tree asked for is there; anything else that is there is an error, for nothing is overwritten.

    Parameters
    ----------
    output : Path
    wanted : dict
        `identity` and the parameters of the tree.
    files : sequence of str
        Its recordings, as paths below it.

    Raises
    ------
    DataError
        If `output` is a file, holds something else, a tree of other parameters, or lacks recordings.
    """
    if not output.exists():
        return False
    if not output.is_dir():
        raise DataError("is a file", file=output, remedy="name a folder that does not exist yet")
    if not any(output.iterdir()):
        return False
    remedy = "choose another folder or remove this one"
    try:
        record = read_record(output)
        recorded = {"version": record["version"], "variability": record["variability"], **record["parameters"]}
    except (ValueError, KeyError, TypeError):
        raise DataError("is not empty and not a simulated corpus", file=output, remedy=remedy) from None
    different = [
        f"{name} {recorded.get(name)}, not {wanted[name]}" for name in wanted if recorded.get(name) != wanted[name]
    ]
    if different:
        raise DataError(f"holds a simulated corpus with {'; '.join(different)}", file=output, remedy=remedy)
    missing = [file for file in files if not (output / file).is_file()]
    if missing:
        raise DataError(
            f"lacks {len(missing)} of the corpus's {len(files)} recordings, the first {missing[0]}",
            file=output,
            remedy=remedy,
        )
    return True


def check_space(output: Path, n_files: int) -> None:
    """Make sure that the disk has room for so many recordings.

    Raises
    ------
    DataError
        If it has not.
    """
    parent = next(folder for folder in output.parents if folder.exists())
    free, needed = shutil.disk_usage(parent).free, n_files * _BYTES_PER_FILE
    if free < needed:
        raise DataError(
            f"{n_files} recordings need about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free",
            file=output,
            remedy="choose another folder or a smaller corpus",
        )


@contextmanager
def new_tree(output: Path, identity: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder beside the place of a tree; it is renamed when the block ends and removed when it fails.

    A process that is killed or interrupted leaves it as ``OUTPUT.draft``; the next one that makes the same tree goes on
    in it, with the recordings that are there (`n_recorded`).

    Parameters
    ----------
    output : Path
    identity : dict
        What decides the samples; a draft of other ones is emptied first.

    Raises
    ------
    DataError
        If the folder cannot be written, or another process is making the tree.
    """
    draft = output.with_name(f"{output.name[:80]}.draft")
    wanted = json.dumps({**identity, **_versions()}, sort_keys=True)
    with sole_use(draft):
        try:
            tree = _taken_up(draft, wanted)
            yield tree
            tree.replace(output)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise DataError(
                f"cannot be written: {error.strerror or error}", file=output, remedy="check the folder and its disk"
            ) from error
        except Exception:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        shutil.rmtree(draft, ignore_errors=True)


def _versions() -> dict[str, str]:
    return {"spkver": __version__, **{name: _version(name) for name in _LIBRARIES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _taken_up(draft: Path, wanted: str) -> Path:
    """The tree in a draft, empty unless the draft is of the same tree."""
    identity, tree = draft / "identity.json", draft / "tree"
    if not identity.is_file() or identity.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(tree, ignore_errors=True)
        write_text(identity, wanted)
    tree.mkdir(exist_ok=True)
    return tree


def write_record(tree: Path, record: dict[str, Any], readme: str) -> None:
    """Write what the tree is and how it was made."""
    (tree / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (tree / "README.txt").write_text(readme, encoding="utf-8")


def write_recording(file: Path, samples: np.ndarray, audio_format: str) -> int:
    """Write samples in [-1, 1] with 16 bits each; return their number.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    import soundfile

    pcm = np.round(samples * 32767).astype(np.int16)
    # no fsync for each of many thousands of recordings: the name stands for a whole file when a process is killed
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        soundfile.write(temporary, pcm, SAMPLE_RATE, format=CONTAINERS[audio_format], subtype="PCM_16")
        temporary.replace(file)
    except soundfile.LibsndfileError as error:
        raise DataError(f"cannot be written: {error}", file=file, remedy="check the folder's disk") from error
    return len(pcm)


def n_recorded(file: Path) -> int | None:
    """Return the number of samples of a recording that is there already; None where there is none that can be read."""
    import soundfile

    try:
        return int(soundfile.info(file).frames)
    except (soundfile.LibsndfileError, OSError):
        return None
