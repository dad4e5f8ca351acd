"""Features: audio files in, frames for the models out.

audio -> cepstra, log-energy, speech labels (stored) -> RASTA, deltas, normalisation, selection -> frames (in memory)
"""

from spkver.features.compute import label_file
from spkver.features.config import PRESETS, FeatureConfig
from spkver.features.extraction import check_recordings, extract_features
from spkver.features.frames import FeatureTable, Frames, read_feature_table
from spkver.features.loading import load_frames

__all__ = [
    "PRESETS",
    "FeatureConfig",
    "FeatureTable",
    "Frames",
    "check_recordings",
    "extract_features",
    "label_file",
    "load_frames",
    "read_feature_table",
]
