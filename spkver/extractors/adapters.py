"""Extractors that other packages bring, where they are installed; each is one function of samples and their rate."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spkbase.errors import ConfigError, DataError
from spkver.audio import write_audio
from spkver.extractors.protocol import Extraction, ExtractorSettings, each_by, guarded

_ECAPA = "speechbrain/spkrec-ecapa-voxceleb"
_WESPEAKER = "git+https://github.com/wenet-e2e/wespeaker.git"  # PyPI has none of this name
_RATE = 16000

Vector = Any
"""An array, or a tensor of PyTorch on the CPU."""


def load_resemblyzer(path: str) -> Callable[[NDArray, int], Vector]:
    """Return the function of Resemblyzer, with its own trimming of silence and its own loudness."""
    package = _imported("resemblyzer", "Resemblyzer")
    encoder = package.VoiceEncoder("cpu", verbose=False, **({"weights_fpath": path} if path else {}))

    def embed(samples: NDArray, rate: int) -> Vector:
        return encoder.embed_utterance(package.preprocess_wav(samples, source_sr=rate))

    return embed


def load_speechbrain_ecapa(source: str) -> Callable[[NDArray, int], Vector]:
    """Return the function of SpeechBrain's ECAPA-TDNN; `source` is a folder or a name on its hub."""
    speaker = _imported("speechbrain.inference.speaker", "speechbrain")
    torch = _imported("torch", "torch")
    encoder = speaker.EncoderClassifier.from_hparams(source=source or _ECAPA)

    def embed(samples: NDArray, rate: int) -> Vector:
        return encoder.encode_batch(torch.from_numpy(samples)[None]).reshape(-1).cpu().numpy()

    return embed


def load_wespeaker(source: str) -> Callable[[NDArray, int], Vector]:
    """Return the function of wespeaker; `source` is a folder of a model, or "english" or "chinese"."""
    package = _imported("wespeaker", "wespeaker", _WESPEAKER)
    is_folder = Path(source).is_dir() if source else False
    model = package.load_model_local(source) if is_folder else package.load_model(source or "english")
    if hasattr(model, "set_vad"):
        model.set_vad(False)

    def embed(samples: NDArray, rate: int) -> Vector:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "speech.wav"
            write_audio(file, samples, rate)
            vector = model.extract_embedding(str(file))
        if vector is None:
            raise DataError("wespeaker found no speech")
        return vector.cpu().numpy() if hasattr(vector, "cpu") else vector

    return embed


def open_adapter(
    load: Callable[[str], Callable[[NDArray, int], Vector]], package: str, source: str, settings: ExtractorSettings
) -> Extraction:
    """Open an extractor of another package: whole recordings at 16 kHz, unless the settings say otherwise.

    Raises
    ------
    ConfigError
        If the package is not installed, or cannot load its model.
    """
    try:
        function = load(source)
        _one_thread()
    except ConfigError:
        raise
    except Exception as error:  # whatever the other package raises
        text = f"the package {package} could not load its model: {type(error).__name__}: {error}"
        raise ConfigError(text, remedy="see the package's own documents") from error
    windows = settings.windows_if_any()
    rate = settings.rate or _RATE
    record = {"package": package, "version": _version(package), "model": source, **windows, "rate": rate}
    return Extraction(each_by(partial(guarded, function=function, name=package), rate, **windows), record, rate)


def _imported(module: str, package: str, source: str = "") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        text = f"this extractor needs the package {package}, which cannot be imported: {error}"
        raise ConfigError(text, remedy=f"pip install {source or package}") from error


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _one_thread() -> None:
    """Have PyTorch work in one thread, where it was loaded: our workers are the threads."""
    import sys

    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
