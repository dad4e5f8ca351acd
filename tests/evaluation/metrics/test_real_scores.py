"""Real scores with published figures, to all their digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation.formats.reading import read_split
from evaluation.formats.text import Choice
from evaluation.metrics.calibration import cllr, min_cllr
from evaluation.metrics.detection import act_dcf, eer

pytestmark = pytest.mark.golden


@pytest.mark.parametrize(("system", "published"), [("cosine", "15.6"), ("lda", "7.937"), ("plda", "5.652")])
def test_kaldi_systems_on_voxceleb(shared: Path, system: str, published: str) -> None:
    folder = shared / "scores" / "voxceleb1_ivector"
    target, nontarget = read_split(folder / f"{system}_scores.gz", folder / "voxceleb1_trials_sv.gz")
    assert (len(target), len(nontarget)) == (18860, 18860)
    # compute-eer prints four significant digits
    assert f"{100 * eer(target, nontarget, method='kaldi'):.4g}" == published


def test_tno_in_sre_2008(shared: Path) -> None:
    path = shared / "scores" / "sre2008_tno" / "tno.2008.tsv.gz"
    choice = Choice(segment=("test", "chan"))
    target, nontarget = read_split(path, path, scores_columns=choice, key_columns=choice)
    assert (len(target), len(nontarget)) == (20449, 78327)
    assert f"{cllr(target, nontarget):.7f}" == "0.2501407"
    assert f"{min_cllr(target, nontarget):.7f}" == "0.2237935"
    assert f"{100 * eer(target, nontarget, method='speechbrain'):.6f}" == "5.623803"
    assert f"{100 * eer(target, nontarget):.6f}" == "5.617778"
    assert f"{target.mean():.6f}" == "6.341288"
    assert f"{nontarget.mean():.6f}" == "-5.142138"


def test_radboud_in_evalita_2009(shared: Path) -> None:
    path = shared / "scores" / "evalita2009_ru" / "ru.2009.table.gz"
    choice = Choice(segment=("test", "mcond"))
    target, nontarget = read_split(path, path, scores_columns=choice, key_columns=choice)
    assert (len(target), len(nontarget)) == (15252, 9600)
    cost = act_dcf(target, nontarget, p_target=0.01, c_miss=10, c_fa=1, normalised=False)
    assert cost == pytest.approx(0.03291547867387523, abs=1e-15)
    assert np.isfinite(target).all()
