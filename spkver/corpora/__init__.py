"""Corpora for the recipes: lists, keys and audio files, checked before any long step; and simulated corpora with the
same layouts. `read_rsr2015` returns an `Rsr2015`; `simulate_rsr2015` and `simulate_voiceprivacy` write synthetic
speech, and `simulate_challenge` writes hours of it.
"""

from spkver.corpora.challenge_sets import (
    Iemocap,
    LibriSpeech,
    make_iemocap_sets,
    make_librispeech_sets,
    read_iemocap,
    read_librispeech,
    speaker_and_fold,
    write_prepared,
)
from spkver.corpora.rsr2015 import (
    PART_SENTENCES,
    ListOptions,
    Rsr2015,
    SpeakerRanges,
    key_files,
    list_hashes,
    read_rsr2015,
    write_lists,
)
from spkver.corpora.simulated import (
    SIMULATION_RECORD,
    CorpusSize,
    Sizes,
    draw_prompts,
    enrolment_lines,
    is_simulated,
    simulate_rsr2015,
    simulate_voiceprivacy,
    split_speakers,
    trial_lines,
)
from spkver.corpora.simulated_challenge import SHAPES, simulate_challenge
from spkver.corpora.voices import loader

__all__ = [
    "PART_SENTENCES",
    "SHAPES",
    "SIMULATION_RECORD",
    "CorpusSize",
    "Iemocap",
    "LibriSpeech",
    "ListOptions",
    "Rsr2015",
    "Sizes",
    "SpeakerRanges",
    "draw_prompts",
    "enrolment_lines",
    "is_simulated",
    "key_files",
    "list_hashes",
    "loader",
    "make_iemocap_sets",
    "make_librispeech_sets",
    "read_iemocap",
    "read_librispeech",
    "read_rsr2015",
    "simulate_challenge",
    "simulate_rsr2015",
    "simulate_voiceprivacy",
    "speaker_and_fold",
    "split_speakers",
    "trial_lines",
    "write_lists",
    "write_prepared",
]
