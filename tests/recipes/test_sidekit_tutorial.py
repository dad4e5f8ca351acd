"""SIDEKIT's RSR2015 tutorial in our functions, as the page of its users shows it."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes
from tiny_corpus import write_tiny_corpus

from evaluation.formats import read_scores
from spkbase.work import use_engine
from spkver.features.frames import Frames
from spkver.mixture import accumulate_statistics, read_statistics, read_ubm
from spkver.sidekit import read_feature_file, read_mixture, read_stat_server, read_svm
from spkver.vectors.supervectors import read_supervectors

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/coming_from.md").read_text(encoding="utf-8")


def tutorial():
    """SIDEKIT's RSR2015 tutorial in our functions, as the page of its users shows it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    return next(code for code in blocks if "distrib_nb" in code)


def run_tutorial(components, rank):
    """Run it in this folder with fewer Gaussians and sessions; return its names."""
    settings = f"= {components}, {rank},"
    code, found = re.subn(
        r"(?<=^distrib_nb, nap_rank, audio )= 512, 40,", settings, tutorial(), flags=re.M
    )
    assert found == 1
    names = {}
    exec(code, names)
    return names


def test_the_tutorial_runs_from_recordings_to_a_figure(tmp_path, monkeypatch, capsys):
    """On the folders of the distribution, whose lists the command that the page names prepares."""
    monkeypatch.chdir(tmp_path)
    write_tiny_corpus(tmp_path / "RSR2015_V1", extensions=("sph",))
    prepare = re.search(r"`spkver (rsr2015 prepare .*?)`\.", PAGE)[1]
    passes(*prepare.split(), "--set", "background.size=24", "--set", "nap.rank=4")
    with use_engine("threads"):
        names = run_tutorial(8, 4)
    assert f"EER = {100 * names['eer']:.2f} %" in capsys.readouterr().out
    assert 0 <= names["eer"] < 0.3
    assert 0 <= names["min_dcf"] < 1
    assert (tmp_path / "det.png").stat().st_size > 10_000
    show = names["ubm_list"][0]
    assert read_feature_file(f"features/{show}.h5")[show].cep.shape[1] == 19
    np.testing.assert_allclose(read_mixture("gmm/ubm.h5").means, names["ubm"].means)
    for name, idmap in names["idmaps"].items():
        statistics = read_stat_server(f"data/stat_rsr2015_male_{name}.h5")
        assert (statistics.models.tolist(), statistics.segments.tolist()) == (
            idmap.models.tolist(),
            [*idmap.segments],
        )
        np.testing.assert_array_equal(statistics.stat1, names["stat"][name].first)
        vectors = read_stat_server(f"data/sv_rsr2015_male_{name}.h5")
        np.testing.assert_array_equal(vectors.stat1, names["sv"][name].vectors)
    machines = names["machines"]
    for model, weights, bias in zip(
        machines.models, machines.weights, machines.biases, strict=True
    ):
        stored = read_svm(f"svm/{model}.svm", allow_pickle=True)
        assert (stored[0] == weights).all()
        assert stored[1] == bias
    assert len(read_scores("scores/scores_svm-gmm_NAP_rsr2015_male.h5")) == len(names["ndx"]) > 0


def test_the_tutorial_reproduces_the_numbers_of_sidekit(shared, tmp_path, monkeypatch):
    """From SIDEKIT's mixture and frames; of the background it has kept the statistics alone."""
    folder = shared / "golden/sidekit"
    golden, given = np.load(folder / "map_nap_svm.npz"), read_statistics(folder / "h5/stat_back.h5")
    (tmp_path / "task").mkdir()
    for name, stem in (
        ("idmap_enroll", "3sesspwd_eval_m_trn"),
        ("idmap_back", "3sess-pwd_eval_m_back"),
        ("idmap_back", "3sess-pwd_eval_m_nap"),
        ("idmap_test", "3sess-pwd_eval_m_test"),
        ("ndx_small", "3sess-pwd_eval_m_ndx"),
        ("key_small", "3sess-pwd_eval_m_key"),
    ):
        shutil.copyfile(folder / f"h5/{name}.h5", tmp_path / f"task/{stem}.h5")
    (tmp_path / "task/ubm_list.txt").write_text("\n".join(given.segments))
    monkeypatch.chdir(tmp_path)
    ids = np.concatenate([golden[f"{name}/segset"] for name in ("enroll", "test")]).astype(object)
    lengths = np.concatenate(
        [np.diff(golden[f"{name}/frames_offsets"]) for name in ("enroll", "test")]
    )
    values = np.concatenate([golden[f"{name}/frames"] for name in ("enroll", "test")]).astype(
        np.float64
    )
    frames = Frames(ids, np.append(0, np.cumsum(lengths)), values)
    known = set(ids)
    for place, made in {
        "features.extract_features": lambda *_: None,
        "features.export_sidekit": lambda *_: None,
        "features.load_frames": lambda *_, folder: frames,
        "features.Frames.stack": lambda *_: None,
        "mixture.train_ubm": lambda *_: read_ubm(folder / "h5/ubm64.h5"),
        "mixture.accumulate_statistics": lambda ubm, frames, models, segments: (
            accumulate_statistics(ubm, frames, models, segments)
            if known.issuperset(segments)
            else given
        ),
    }.items():
        monkeypatch.setattr(f"spkver.{place}", made)
    names = run_tutorial(64, 10)
    for name in ("enroll", "back", "test"):
        found = read_supervectors(f"data/sv_rsr2015_male_{name}.h5").vectors
        np.testing.assert_allclose(found, golden[f"{name}/sv_norm_r3"], atol=1e-6)
    np.testing.assert_allclose(names["scores"].values, golden["svm_scores"].ravel(), atol=1e-4)
    # these speakers are never confused, so the lines of the tutorial are run on other scores too
    assert (names["eer"], names["min_dcf"]) == (0, 0)
    det = np.load(folder / "det.npz")
    names |= {"target": det["tar"], "nontarget": det["non"]}
    exec(next(line for line in tutorial().splitlines() if line.startswith("min_dcf, eer =")), names)
    _, min_dcf, *_, eer = det["mindcf_sre08"]
    np.testing.assert_allclose((names["min_dcf"], names["eer"]), (min_dcf, eer), atol=1e-12)
