"""Networks trained by an attacker, found by their folder in its run.

FOLDER/trained.json    the trainer's module, the extractor, and the SHA-256 of the other files
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from spkbase.errors import ConfigError, DataError
from spkbase.files import check_data, file_digest, fingerprint, load_json
from spkbase.plugins import load_plugin
from spkver.extractors.protocol import Extraction, ExtractorSettings, extract_each, guarded

TRAINED = "trained.json"
"""The record of a trained network, in its folder."""

OpenExtractor = Callable[[str, ExtractorSettings], Extraction]


def trained_record(folder: Path, module: str, network: str) -> dict[str, Any]:
    """Return the record of a trained network, for `TRAINED`.

    Parameters
    ----------
    folder : Path
        Folder that holds all files of the network.
    module : str
        A trainer; its function ``load`` is called if `network` is empty.
    network : str
        An extractor as `spkver embed` takes it, with a file in the folder.
    """
    files = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".log" and path.name != TRAINED:
            files[path.name] = file_digest(path)
    return {"module": module, "network": network, "files": files}


def open_trained(folder: str, settings: ExtractorSettings, open_other: OpenExtractor) -> Extraction:
    """Open a trained network.

    Parameters
    ----------
    folder : str
    settings : ExtractorSettings
    open_other : callable
        Opens an extractor by its name, for networks that are extractors themselves.

    Raises
    ------
    ConfigError
        If there is no such network, or the module's ``load`` cannot be imported or returns no function.
    DataError
        If a file has changed since the network was trained.
    """
    path = Path(folder)
    if not (path / TRAINED).is_file():
        raise ConfigError(
            f"there is no {TRAINED}",
            file=path,
            remedy="give the folder of a network in a run's attackers/",
        )
    check_data(path / TRAINED)
    record = load_json(path / TRAINED)
    changed = [
        name for name, digest in record["files"].items() if file_digest(path / name) != digest
    ]
    if changed:
        text = f"{', '.join(changed)} changed since the network was trained"
        raise DataError(
            text, file=path, remedy="remove the folder: the network is then trained again"
        )
    if record["network"]:
        prefix, _, file = record["network"].partition(":")
        return open_other(f"{prefix}:{path / file}", settings)
    spec = f"{record['module']}:load"
    load, module = load_plugin(spec, "trainer", kind="function")
    try:
        embed = load(path)
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"{spec} raised {type(error).__name__}: {error}", file=path) from error
    if not callable(embed):
        raise ConfigError(
            f"{spec} returned {type(embed).__name__}, expected a function of samples and rate",
            file=path,
        )
    windows = settings.windows()
    function = partial(guarded, function=embed, name=spec)
    code = None if module is None else file_digest(module)
    described = {
        "trained": fingerprint(record["files"]),
        "module": code,
        **windows,
        "rate": settings.rate,
    }
    return Extraction(
        partial(extract_each, function=function, rate=settings.rate, **windows),
        described,
        settings.rate,
    )
