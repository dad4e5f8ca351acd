"""Plug-ins of users (a Python function, a shell command, precomputed vectors; see docs/own_extractors.md) and
extractors of other packages.

A function gets one recording::

    def embed(samples, rate):
        return vector

========  ==============================================================================================
samples   ndarray of float32 of shape (n,), full scale 1; one channel, no NaN, not all of them 0
rate      int, Hz: the rate of the file, or that given by ``--rate``
vector    D real numbers, the same D for all recordings; finite, and not all of them 0
========  ==============================================================================================

A command gets a list of recordings and writes a file of vectors, which `evaluation.embeddings.read_embeddings` reads.
Extractors of other packages, if installed, are also functions of samples and their rate.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from evaluation.embeddings import read_embeddings
from spkbase.errors import ConfigError, DataError
from spkbase.files import file_digest, fingerprint
from spkbase.packages import imported
from spkbase.plugins import (
    check_places,
    files_behind,
    fill_places,
    load_plugin,
    run_command,
    usual_seconds,
)
from spkbase.version import library_version
from spkver.audio import write_audio
from spkver.extractors.protocol import (
    Embed,
    Extraction,
    ExtractorSettings,
    Recording,
    extract_by,
    extract_each,
    guarded,
)

_COMMAND_BATCH = 256

_ECAPA = "speechbrain/spkrec-ecapa-voxceleb"
# there is no package of this name on PyPI
_WESPEAKER = "git+https://github.com/wenet-e2e/wespeaker.git"
_RATE = 16000


def open_function(spec: str, settings: ExtractorSettings) -> Extraction:
    """Open a user-supplied function; whole recordings at their own rate, unless the settings say otherwise."""
    function, file = load_plugin(spec, "extractor", kind="function")
    windows = settings.windows()
    record = {"function": spec, "module": None, **windows, "rate": settings.rate}
    if file is not None:
        record["function"] = f"{file.name}:{spec.rpartition(':')[2]}"
        record["module"] = file_digest(file)
        imports = files_behind(spec, file)
        if imports:
            record["imports"] = fingerprint(imports)
    guard = partial(guarded, function=function, name=spec)
    return Extraction(
        partial(extract_each, function=guard, rate=settings.rate, **windows), record, settings.rate
    )


def open_command(template: str, settings: ExtractorSettings) -> Extraction:
    """Open a user-supplied shell command."""
    check_places(template, ("recordings", "vectors"), ("recordings", "vectors"))
    _refuse_settings(settings)
    read = partial(vectors_by_command, template=template)
    extract = partial(extract_by, read=read, name="the command")
    record = {"command": template}
    files = files_behind(template)
    if files:
        record["files"] = fingerprint(files)
    return Extraction(extract, record, batch=_COMMAND_BATCH)


def vectors_by_command(
    recordings: Sequence[Recording], *, template: str
) -> dict[str, NDArray[Any]]:
    """Run a command that extracts the vectors of a list of recordings.

    Raises
    ------
    DataError
        If it fails, writes no vectors or exceeds the time limit, `usual_seconds`.
    """
    with tempfile.TemporaryDirectory() as folder:
        scp = Path(folder) / "wav.scp"
        vectors = Path(folder) / "vectors.ark"
        lines = [f"{name} {Path(path).resolve()}\n" for name, path in recordings]
        scp.write_text("".join(lines), encoding="utf-8")
        seconds = usual_seconds(Path(path) for _, path in recordings)
        run_command(fill_places(template, {"recordings": scp, "vectors": vectors}), seconds=seconds)
        written = next(
            (file for file in (vectors, vectors.with_name("vectors.ark.npz")) if file.is_file()),
            None,
        )
        if written is None:
            raise DataError("it wrote no {vectors}")
        # read into memory: the file is removed with its folder
        embeddings = read_embeddings(written, map_above=1 << 62)
    return dict(zip(embeddings.ids.tolist(), embeddings.vectors, strict=True))


def open_vectors(path: str, settings: ExtractorSettings) -> Extraction:
    """Open a file of precomputed vectors."""
    _refuse_settings(settings)
    embeddings = read_embeddings(path)
    rows = {name: row for row, name in enumerate(embeddings.ids.tolist())}

    def look_up(recordings: Sequence[Recording]) -> dict[str, NDArray[Any]]:
        return {name: embeddings.vectors[rows[name]] for name, _ in recordings if name in rows}

    extract = partial(extract_by, read=look_up, name=str(path))
    return Extraction(extract, {"vectors": file_digest(path)}, reads_audio=False, batch=1024)


def _refuse_settings(settings: ExtractorSettings) -> None:
    for name in ("window", "hop", "rate"):
        if getattr(settings, name) is not None:
            raise ConfigError(f"does not take --{name}", remedy="leave it out")


def _load_resemblyzer(path: str) -> Embed:
    """Return the function of Resemblyzer, with its own trimming of silence and its own loudness."""
    package = imported("resemblyzer", "Resemblyzer")
    options = {}
    if path:
        options["weights_fpath"] = path
    encoder = package.VoiceEncoder("cpu", verbose=False, **options)

    def embed(samples: NDArray[Any], rate: int) -> Any:
        return encoder.embed_utterance(package.preprocess_wav(samples, source_sr=rate))

    return embed


def _load_speechbrain_ecapa(source: str) -> Embed:
    """Return the function of SpeechBrain's ECAPA-TDNN; `source` is a folder or a name on its hub."""
    speaker = imported("speechbrain.inference.speaker", "speechbrain")
    torch = imported("torch", "torch")
    encoder = speaker.EncoderClassifier.from_hparams(source=source or _ECAPA)

    def embed(samples: NDArray[Any], rate: int) -> Any:
        return encoder.encode_batch(torch.from_numpy(samples)[None]).reshape(-1).cpu().numpy()

    return embed


def _load_wespeaker(source: str) -> Embed:
    """Return the function of wespeaker; `source` is a folder of a model, or "english" or "chinese"."""
    package = imported("wespeaker", _WESPEAKER)
    if source and Path(source).is_dir():
        model = package.load_model_local(source)
    else:
        model = package.load_model(source or "english")
    if hasattr(model, "set_vad"):
        model.set_vad(False)

    def embed(samples: NDArray[Any], rate: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "speech.wav"
            write_audio(file, samples, rate)
            vector = model.extract_embedding(str(file))
        if vector is None:
            raise DataError("wespeaker found no speech")
        return vector.cpu().numpy() if hasattr(vector, "cpu") else vector

    return embed


def _open_adapter(
    load: Callable[[str], Embed], package: str, source: str, settings: ExtractorSettings
) -> Extraction:
    """Open an extractor of another package: whole recordings at 16 kHz, unless the settings say otherwise.

    Raises
    ------
    ConfigError
        If the package is not installed, or cannot load its model.
    """
    try:
        function = load(source)
        torch = sys.modules.get("torch")
        if torch:
            torch.set_num_threads(1)  # parallel work is done by our workers
    except ConfigError:
        raise
    except Exception as error:  # the other package may raise anything
        text = f"the package {package} could not load its model: {type(error).__name__}: {error}"
        raise ConfigError(text, remedy="see the package's own documents") from error
    windows = settings.windows()
    rate = settings.rate or _RATE
    record = {
        "package": package,
        "version": library_version(package),
        "model": source,
        **windows,
        "rate": rate,
    }
    guard = partial(guarded, function=function, name=package)
    return Extraction(partial(extract_each, function=guard, rate=rate, **windows), record, rate)


open_resemblyzer = partial(_open_adapter, _load_resemblyzer, "Resemblyzer")
open_speechbrain = partial(_open_adapter, _load_speechbrain_ecapa, "speechbrain")
open_wespeaker = partial(_open_adapter, _load_wespeaker, "wespeaker")
