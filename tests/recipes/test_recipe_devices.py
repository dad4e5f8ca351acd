"""The recipes on a device: the same scores as on the cores, but for rounding, and stages that know the device."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.formats.reading import read_scores
from evaluation.trials import align
from spkbase.devices import Device

# After CMVN all variances are 1 and the first split is a tie, which rounding may break in another way there.
SPLIT = {"ubm__first_split_dimension": 0}
# The matrix and the vectors, and the statistics and supervectors, have code of their own for devices.
RECIPES = [
    ("svm_gmm", ["svm-gmm", "svm-gmm-nap"], {}),
    ("gmm_ubm", ["gmm-ubm"], {}),
    ("ivector", ["cosine"], {"total_variability__rank": 4, "total_variability__rounds": 2}),
    ("jfa", ["jfa"], {"joint_factors__speaker_rank": 3, "joint_factors__channel_rank": 2, "joint_factors__rounds": 1}),
]


@pytest.mark.parametrize("device", ["strict", "torch"], indirect=True)
@pytest.mark.parametrize(("name", "systems", "settings"), RECIPES, ids=[name for name, *_ in RECIPES])
def test_a_device_gives_the_scores_of_the_cores(recipe, tiny, tmp_path, monkeypatch, device, name, systems, settings):
    settings = {**SPLIT, **settings}
    monkeypatch.setattr("spkbase.devices.find_device", {None: None, "here": device}.get)
    asked = count_use(monkeypatch)
    outcomes = [recipe(tiny, tmp_path / "cores", name=name, **settings)]
    assert not asked
    outcomes.append(recipe(tiny, tmp_path / "device", "--device", "here", name=name, **settings))
    assert [one.status for one in outcomes] == [0, 0], outcomes[-1].err
    assert asked
    for system in systems:
        expected, found = (read_scores(tmp_path / place / f"scores/{system}.h5") for place in ("cores", "device"))
        spread = expected.values.std()
        np.testing.assert_allclose(align(found, expected.trials()), expected.values, rtol=0, atol=1e-2 * spread)
    again = recipe(tiny, tmp_path / "device", "--device", "here", name=name, **settings)
    assert "ubm: up to date" in again.err
    back = recipe(tiny, tmp_path / "device", name=name, **settings)
    assert "features: up to date" in back.err
    assert "ubm: up to date" not in back.err


def count_use(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note what goes to a device."""
    sent: list[object] = []
    original = Device.asarray

    def asarray(self, array, dtype=None):
        sent.append(array)
        return original(self, array, dtype)

    monkeypatch.setattr(Device, "asarray", asarray)
    return sent
