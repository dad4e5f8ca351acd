"""Audio files: WAV, FLAC and SPHERE (shorten-compressed too, in a process of its own) in, samples in [-1, 1] out.

`read_audio` gives an `Audio`: samples and rate; `read_header` what it will be, without decoding.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
