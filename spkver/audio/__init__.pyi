from .reading import audio_header as audio_header
from .reading import read_audio as read_audio
from .reading import write_audio as write_audio
