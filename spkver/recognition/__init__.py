"""Recognition of words (Whisper or PocketSphinx) and emotions, one result per recording, to measure utility."""

from spkver.recognition.emotions import (
    check_folds,
    classify_emotions,
    functionals_of,
    read_emotions,
    read_folds,
    recognise_emotions,
)
from spkver.recognition.recordings import map_recordings
from spkver.recognition.texts import Recognised, agreement, spoken_words, without_loops
from spkver.recognition.words import (
    AUTO,
    UNDERSTOOD,
    Recogniser,
    Transcripts,
    open_recogniser,
    transcribe,
)

__all__ = [
    "AUTO",
    "UNDERSTOOD",
    "Recognised",
    "Recogniser",
    "Transcripts",
    "agreement",
    "check_folds",
    "classify_emotions",
    "functionals_of",
    "map_recordings",
    "open_recogniser",
    "read_emotions",
    "read_folds",
    "recognise_emotions",
    "spoken_words",
    "transcribe",
    "without_loops",
]
