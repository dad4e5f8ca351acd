"""Extractors: recordings in, one vector an utterance out, by networks of others, or of what is no voice print.

`open_extractor` takes a name of the table `EXTRACTORS`, or what comes in by a door: an ONNX file, a function, a
command, ready vectors. `embed_directory` gives the `Embeddings` of a data directory. The formulas of the built-in
networks and of their front ends are functions of arrays: `campplus_vector`, `ge2e_vector`, `kaldi_filterbanks`,
`mel_spectra`. `prosody_vector` hears pitch and rhythm alone, `session_vector` noise and channel.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
