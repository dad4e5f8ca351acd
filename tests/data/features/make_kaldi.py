"""Make kaldi_mfcc.npz again, by kaldi-native-fbank: python tests/data/features/make_kaldi.py"""

from pathlib import Path

import numpy as np
import soundfile

HERE = Path(__file__).resolve().parent


def their_mfcc(samples, rate, *, use_energy):
    """Kaldi's 13 numbers per frame: compute-mfcc-feats with its defaults, without dither."""
    import kaldi_native_fbank

    options = kaldi_native_fbank.MfccOptions()
    options.frame_opts.samp_freq = rate
    options.frame_opts.dither = 0
    options.mel_opts.num_bins = 23
    options.use_energy = use_energy
    extractor = kaldi_native_fbank.OnlineMfcc(options)
    extractor.accept_waveform(rate, (samples * np.float32(32768)).tolist())
    extractor.input_finished()
    return np.array([extractor.get_frame(row) for row in range(extractor.num_frames_ready)])


def recordings():
    """The golden recording at 16 kHz, every second sample of it as one at 8 kHz, and noise."""
    samples, rate = soundfile.read(HERE.parent / "golden" / "syn_a.flac", dtype="float32")
    noise = np.random.default_rng(0).normal(size=16000).astype(np.float32)
    return {
        "wide": (samples, rate),
        "narrow": (samples[::2].copy(), rate // 2),
        "noise": (noise / 10, 16000),
    }


def all_mfcc():
    """By recording and first coefficient."""
    made = {}
    for name, (samples, rate) in recordings().items():
        made[f"{name}_energy"] = their_mfcc(samples, rate, use_energy=True)
        made[f"{name}_c0"] = their_mfcc(samples, rate, use_energy=False)
    return made


if __name__ == "__main__":
    np.savez_compressed(HERE / "kaldi_mfcc.npz", **all_mfcc())
