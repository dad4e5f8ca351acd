"""Recognition of words (PocketSphinx) and emotions, one result per recording, to measure utility."""

from spkver.recognition.emotions import (
    check_folds,
    classify_emotions,
    functionals_of,
    read_emotions,
    read_folds,
    recognise_emotions,
)
from spkver.recognition.recordings import map_recordings
from spkver.recognition.words import check_recogniser, transcribe
