"""Features: audio files in, frames for the models out.

audio -> cepstra, log-energy, speech labels (stored) -> RASTA, deltas, normalisation, selection -> frames (in memory)
"""

from spkver.features.cepstra import mfcc
from spkver.features.config import PRESETS, FeatureConfig, values_for_rates
from spkver.features.extraction import (
    check_recordings,
    compute,
    export_sidekit,
    extract_batch,
    extract_features,
    import_sidekit,
    label_file,
    recording_generator,
    sidekit_files,
)
from spkver.features.frames import (
    FeatureTable,
    Frames,
    OtherFeaturesError,
    load_frames,
    post_process,
    read_feature_table,
    row_index,
)
from spkver.features.kaldi import kaldi_banks, kaldi_filters, kaldi_mfcc
from spkver.features.pitch import FRAME_SHIFT, PitchTrack, pitch_track, pyin_track, rapt_track
from spkver.features.vad import snr_vad
from spkver.features.windows import gaussianise, shifted_deltas, sliding_normalise

__all__ = [
    "FRAME_SHIFT",
    "PRESETS",
    "FeatureConfig",
    "FeatureTable",
    "Frames",
    "OtherFeaturesError",
    "PitchTrack",
    "check_recordings",
    "compute",
    "export_sidekit",
    "extract_batch",
    "extract_features",
    "gaussianise",
    "import_sidekit",
    "kaldi_banks",
    "kaldi_filters",
    "kaldi_mfcc",
    "label_file",
    "load_frames",
    "mfcc",
    "pitch_track",
    "post_process",
    "pyin_track",
    "rapt_track",
    "read_feature_table",
    "recording_generator",
    "row_index",
    "shifted_deltas",
    "sidekit_files",
    "sliding_normalise",
    "snr_vad",
    "values_for_rates",
]
