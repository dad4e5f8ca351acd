"""Copy the expected numbers that the tests need from the reference material: ``make.py SHARED``.

Large expected arrays are kept as sums over 16 seeded random signs for each row (`signed_sums`): any difference shows
in them at its own size, at a hundredth of the room.
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
import soundfile

HERE = Path(__file__).resolve().parent


def signed_sums(array: np.ndarray, *, n_sums: int = 16) -> np.ndarray:
    """Sums of each row under random signs, shape (rows, n_sums)."""
    signs = np.random.default_rng(20261120).choice([-1.0, 1.0], size=(array.shape[-1], n_sums))
    return array.reshape(-1, array.shape[-1]).astype(np.float64) @ signs


def main(shared: Path) -> None:
    golden = shared / "golden" / "sidekit"
    features, found = np.load(golden / "features.npz"), {}
    for name in ("syn_a", "syn_b"):
        samples, rate = soundfile.read(golden / "wav" / f"{name}.wav", dtype="int16")
        soundfile.write(HERE / f"{name}.flac", samples, rate, subtype="PCM_16")
        for key in ("cep", "energy", "vad", "raw_none", "rasta", "delta", "ddelta"):
            found[f"{name}_{key}"] = features[f"{name}/{key}"]
        found[f"{name}_fb_sums"] = signed_sums(features[f"{name}/fb"])
        found[f"{name}_enhanced"] = features[f"{name}/vad_enhanced"][::8]
        found[f"{name}_post_all_sums"] = signed_sums(features[f"{name}/post_none_all"])
        found[f"{name}_post_all_label"] = features[f"{name}/post_none_all_label"]
        found[f"{name}_post_vad"] = features[f"{name}/post_none_vad"][::4]
    found["trfbank_sums"] = signed_sums(features["trfbank"])
    found["trfbank_freqs"] = features["trfbank_freqs"]
    np.savez_compressed(HERE / "features.npz", **found)

    em = np.load(golden / "em_split.npz")
    keys = ["frames"] + [
        f"{name}{n}" for n in (16, 64) for name in ("llk", "w", "mu", "invcov", "cov_var_ctl")
    ]
    np.savez_compressed(HERE / "em_split.npz", **{key: em[key] for key in keys})

    svm, found = np.load(golden / "map_nap_svm.npz"), {}
    with h5py.File(golden / "h5" / "ubm64.h5") as file:
        assert np.array_equal(file["mu"][()], em["mu64"])  # the mixture of the EM test
    for name in ("enroll", "back", "test"):
        for key in ("modelset", "segset", "stat0", "stat1"):
            found[f"{name}_{key}"] = svm[f"{name}/{key}"]
        found[f"{name}_sv_norm_sums"] = signed_sums(svm[f"{name}/sv_norm_r3"])
    for key in ("sv_nonorm_r3", "sv_multisession_r3", "sv_nap"):
        found[f"enroll_{key}_sums"] = signed_sums(svm[f"enroll/{key}"])
    found["enroll_multisession_models"] = svm["enroll/sv_multisession_r3_modelset"]
    found["test_sv_nap_sums"] = signed_sums(svm["test/sv_nap"])
    found["nap10"] = svm["nap10"]
    for key in (
        "svm_models",
        "svm_w",
        "svm_b",
        "svm_C",
        "svm_scores",
        "svm_scores_models",
        "svm_scores_segs",
    ):
        found[key] = svm[key]
    np.savez_compressed(HERE / "map_nap_svm.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
