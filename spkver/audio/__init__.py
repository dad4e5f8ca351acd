"""Audio files: WAV, FLAC and SPHERE (shorten-compressed too, in a process of its own) in, samples in [-1, 1] out.

`read_audio` gives an `Audio`: samples and rate; `read_header` what it will be, without decoding.
"""

from spkver.audio.reading import audio_header, read_audio, write_audio
