"""Extractors: recordings in, one vector an utterance out, by networks of others, or of what is no voice print.

`open_extractor` takes a name of the table `EXTRACTORS`, or a plug-in: an ONNX file, a function, a
command, ready vectors. `embed_directory` gives the `Embeddings` of a data directory. The formulas of the built-in
networks and of their front ends are functions of arrays: `campplus_vector`, `ge2e_vector`, `kaldi_filterbanks`,
`mel_spectra`. `prosody_vector` hears pitch and rhythm alone, `session_vector` noise and channel.
"""

from spkver.extractors.campplus import campplus_network, campplus_vector
from spkver.extractors.cues import PROSODY, PitchTrack, prosody_vector, session_vector, track_pitch
from spkver.extractors.directories import check_output, embed_directory
from spkver.extractors.ge2e import ge2e_network, ge2e_vector
from spkver.extractors.layers import kaldi_filterbanks, mel_spectra
from spkver.extractors.networks import SOURCES, fetch_weights, find_weights
from spkver.extractors.protocol import ExtractorSettings
from spkver.extractors.registry import EXTRACTORS, FUNCTION, Extractor, open_extractor
