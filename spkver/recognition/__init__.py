"""What else is heard in speech: words (PocketSphinx) and emotions, a result a recording; they measure utility."""

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
