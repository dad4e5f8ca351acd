"""Phone durations: the formula by hand, what it does not depend on, and the phone recogniser on a real signal."""

from __future__ import annotations

import numpy as np
import pytest

from spkbase.errors import ConfigError, DataError
from spkver.extractors import (
    PHONES,
    ExtractorSettings,
    duration_vector,
    open_extractor,
    recognise_phones,
)


def test_each_phone_has_its_shrunken_mean_log_duration_relative_to_the_rate() -> None:
    vector = duration_vector([("AA", 12), ("SIL", 40), ("AA", 20), ("M", 8), ("+NSN+", 9)])
    relative = np.log([12, 20, 8]) - [PHONES["AA"], PHONES["AA"], PHONES["M"]]
    rate = relative.mean()
    expected = dict.fromkeys(PHONES, 0.0)
    expected["AA"] = (relative[0] + relative[1] - 2 * rate) / 3 / 0.4
    expected["M"] = (relative[2] - rate) / 2 / 0.4
    np.testing.assert_allclose(vector, [*expected.values(), rate / 0.1], atol=1e-12)


def test_slower_speech_changes_only_the_rate() -> None:
    draw = np.random.default_rng(0)
    names = list(PHONES)
    phones = [(names[draw.integers(39)], int(draw.integers(3, 20))) for _ in range(100)]
    slower = [(name, 2 * frames) for name, frames in phones]
    first = duration_vector(phones)
    second = duration_vector(slower)
    np.testing.assert_allclose(first[:-1], second[:-1], atol=1e-12)
    assert second[-1] - first[-1] == pytest.approx(np.log(2) / 0.1)


def test_speech_without_phones_is_refused() -> None:
    with pytest.raises(DataError, match="no phone is recognised"):
        duration_vector([("SIL", 100)])


@pytest.mark.parametrize(
    ("spec", "settings", "says"),
    [
        ("durations:x", ExtractorSettings(), "expected durations, got durations:x"),
        ("durations", ExtractorSettings(window=2.0), "it takes no window"),
        ("durations", ExtractorSettings(rate=8000), "it needs 16000 Hz, got 8000 Hz"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    spec: str, settings: ExtractorSettings, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        open_extractor(spec, settings)


def test_recognised_phones_do_not_depend_on_earlier_recordings() -> None:
    pytest.importorskip("pocketsphinx")
    times = np.arange(16000) / 16000
    draw = np.random.default_rng(0)
    tones = sum(np.sin(2 * np.pi * 120 * number * times) / number for number in range(1, 30))
    envelope = np.repeat(draw.uniform(0.0, 0.2, 10), 1600)
    sound = (envelope * tones).astype(np.float32)
    first = recognise_phones(sound)
    recognise_phones(sound[::-1].copy())
    assert recognise_phones(sound) == first
    assert sum(frames for _, frames in first) == pytest.approx(98, abs=4)
