"""Extractors: recordings in, one vector per utterance out.

`open_extractor` takes a name of the table `EXTRACTORS`, or a plug-in: an ONNX file, a function, a command or
precomputed vectors. `embed` and `embed_directory` return the `Embeddings` of a data directory. The front ends of
networks are functions of arrays, `kaldi_filterbanks` and `mel_spectra`; `campplus_graph` and `ge2e_graph` build ONNX
files from published weights. `prosody_vector` measures pitch and rhythm only, `session_vector` noise and channel only,
`property_vector` properties other than the voice.
"""

from spkver.extractors.cues import PROSODY, energy_contour, prosody_vector, session_vector
from spkver.extractors.directories import check_output, embed, embed_directory
from spkver.extractors.durations import PHONES, duration_vector, recognise_phones
from spkver.extractors.filterbanks import kaldi_filterbanks, mel_spectra
from spkver.extractors.networks import campplus_graph, ge2e_graph, read_built_in
from spkver.extractors.properties import PROPERTIES, property_vector
from spkver.extractors.protocol import ExtractorSettings
from spkver.extractors.registry import EXTRACTORS, FUNCTION, Extractor, open_extractor
from spkver.extractors.trained import TRAINED, trained_record
from spkver.extractors.weights import (
    SOURCES,
    WHISPER,
    fetch_weights,
    find_weights,
    read_weights,
    read_wheel,
)

__all__ = [
    "EXTRACTORS",
    "FUNCTION",
    "PHONES",
    "PROPERTIES",
    "PROSODY",
    "SOURCES",
    "TRAINED",
    "WHISPER",
    "Extractor",
    "ExtractorSettings",
    "campplus_graph",
    "check_output",
    "duration_vector",
    "embed",
    "embed_directory",
    "energy_contour",
    "fetch_weights",
    "find_weights",
    "ge2e_graph",
    "kaldi_filterbanks",
    "mel_spectra",
    "open_extractor",
    "property_vector",
    "prosody_vector",
    "read_built_in",
    "read_weights",
    "read_wheel",
    "recognise_phones",
    "session_vector",
    "trained_record",
]
