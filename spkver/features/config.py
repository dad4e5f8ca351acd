"""Configuration of the features and its presets."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from spkbase.configuration import check_values, convert
from spkbase.errors import ConfigError
from spkbase.files import file_digest
from spkbase.plugins import files_behind, load_plugin
from spkver.features.windows import mask_columns, sdc_numbers

VADS = ("snr", "energy", "percentile", "labels", "none")
NORMALISATIONS = ("cmvn", "cms", "cmvn_sliding", "cms_sliding", "stg", "none")

_CHOICES = {
    "engine": ("spkver", "librosa", "kaldi", "plp"),
    "normalisation": NORMALISATIONS,
    "deltas": (0, 1, 2),
    "dtype": ("float32", "float64"),
}
_POSITIVE = (
    "window",
    "shift",
    "n_filters",
    "n_cepstra",
    "min_speech_frames",
    "normalisation_window",
    "sample_scale",
    "memory_gb",
)
# keys that only the post-processing reads, and keys that do not affect any number
_AFTERWARDS = (
    "log_energy",
    "rasta",
    "deltas",
    "sdc",
    "mask",
    "normalisation",
    "normalisation_window",
    "keep_all",
)
_NO_NUMBERS = ("preset", "memory_gb")
# examples of values for keys that have other types in other toolkits
_EXAMPLES = {
    "sdc": "7-1-3-7",
    "mask": "0-12,19",
    "normalisation": "none",
    "vad": "none",
    "function": "FILE.py:NAME",
}
# Hz; at rates below about 4000, filters are narrower than the bins of the spectrum
_LEAST_RATE = 6000

# Values of each preset; keys that the user sets override them.
PRESETS: dict[str, dict[str, object]] = {
    "sidekit": {},
    # 8 kHz speech of the telephone band
    "telephone": {
        "rate": 8000,
        "n_filters": 24,
        "low_frequency": 300.0,
        "high_frequency": 3400.0,
        "n_cepstra": 12,
    },
    # for attackers: the whole band and no normalisation, since the long-term spectrum identifies a voice
    "wideband": {
        "low_frequency": 60.0,
        "high_frequency": 7600.0,
        "n_cepstra": 24,
        "log_energy": False,
        "rasta": False,
        "deltas": 1,
        "normalisation": "none",
    },
    # librosa's own conventions: Slaney's mel scale, power in dB, samples in [-1, 1], no pre-emphasis
    "librosa": {
        "engine": "librosa",
        "pre_emphasis": 0.0,
        "low_frequency": 20.0,
        "high_frequency": 8000.0,
        "sample_scale": 1.0,
        "dither": 0.0,
        "vad": "energy",
        "rasta": False,
    },
    # Kaldi's MFCC, and its mean normalisation over 3 s
    "kaldi": {
        "engine": "kaldi",
        "n_filters": 23,
        "low_frequency": 20.0,
        "high_frequency": 8000.0,
        "n_cepstra": 12,
        "lifter": 22.0,
        "sample_scale": 32768.0,
        "dither": 0.0,
        "vad": "energy",
        "rasta": False,
        "normalisation": "cms_sliding",
        "normalisation_window": 300,
    },
}
# Kaldi's PLP; everything else as for its MFCC
PRESETS["plp"] = PRESETS["kaldi"] | {"engine": "plp"}


@dataclass(frozen=True)
class FeatureConfig:
    """All settings between an audio file and the frames of a model. The defaults are the preset `sidekit`.

    A preset changes the values that are not given: ``FeatureConfig(preset="telephone", vad="energy")``.

    Attributes
    ----------
    preset : str
        Preset of the other values: sidekit, telephone, wideband, librosa, kaldi or plp.
    engine : str
        Implementation of the cepstra: "spkver" (this package), "librosa", "kaldi" (this package, Kaldi's definition),
        or "plp" (perceptual linear prediction, Kaldi's definition).
    function : str or None
        ``FILE.py:NAME`` or ``MODULE:NAME``, a function of samples (n,) and the rate that returns an array
        (T, n_cepstra) in place of the cepstra, with a row for each `window` every `shift`, none beyond the ends.
    files : str or None
        Folder of SIDEKIT feature files, ``<recording id>.h5``, to use in place of extracted features.
    rate : int [Hz]
        Sampling rate of the recordings.
    resample : bool
        Resample recordings of another rate; otherwise they are an error.
    channel : int or None
        Channel to take from multi-channel recordings, from 0; without it they are an error.
    window, shift : float [s]
        Length of a frame and distance between frames.
    pre_emphasis : float
        The a of y[n] = x[n] - a x[n - 1] within each frame, whose first sample is (1 - a) x[0].
    n_filters : int
    low_frequency, high_frequency : float [Hz]
        Lower edge of the first and upper edge of the last filter.
    n_cepstra : int
        Cepstra 1 to n; C0 is left out, the log-energy takes its place.
    c0 : bool
        Cepstra 0 to n - 1 instead. Kaldi's features without energy: ``c0=True, n_cepstra=13, log_energy=False``.
    lifter : float
        L of the factor 1 + L/2 sin(pi n / L) on cepstrum n; 0 leaves it out.
    log_energy : bool
        Keep the log-energy as the first coefficient of a frame.
    sample_scale : float
        Factor on samples in [-1, 1] before the cepstra; it adds a constant to the log-energy. The default is
        SIDEKIT's: 16-bit steps times 8192.
    dither : float
        Standard deviation of the Gaussian noise added to the scaled samples.
    vad : str
        snr, energy, percentile, labels or none; or ``FILE.py:NAME`` or ``MODULE:NAME``, a function of samples (n,) and
        the rate that returns whether each frame is speech, (T,).
    vad_snr : float [dB]
    vad_alpha : float
    vad_percentile : float
    labels_dir : str or None
        Segments of speech for the detector `labels`: a folder of ``<recording id>.lbl``, lines ``start stop speech`` in
        seconds, or of ``<recording id>.rttm``; or one file ``*.rttm`` for all recordings.
    rasta : bool
    deltas : int
        0, 1 or 2.
    sdc : str or None
        ``N-d-P-k``, such as 7-1-3-7: shifted deltas of the first N coefficients take the place of the deltas, see
        `spkver.features.shifted_deltas`.
    mask : str or None
        Columns of the frames to keep, counted from 0: ``0-12,19``.
    normalisation : str
        cmvn, cms or none, over the recording's speech; cmvn_sliding, cms_sliding or stg (short-time Gaussianisation,
        feature warping), over a window that slides over the frames kept.
    normalisation_window : int
        Number of frames in that window.
    keep_all : bool
        Keep frames without speech.
    min_speech_frames : int
        A recording with fewer speech frames is an error.
    dtype : str
        Type of the computation and of the frames: float32, or float64 for comparisons.
    memory_gb : float
        Frames that need more memory are kept in a file.
    """

    preset: str = "sidekit"
    engine: str = "spkver"
    function: str | None = None
    files: str | None = None
    rate: int = 16000
    resample: bool = False
    channel: int | None = None
    window: float = 0.025
    shift: float = 0.010
    pre_emphasis: float = 0.97
    n_filters: int = 40
    low_frequency: float = 133.3333
    high_frequency: float = 6955.4976
    n_cepstra: int = 19
    c0: bool = False
    lifter: float = 0.0
    log_energy: bool = True
    sample_scale: float = 2.0**28
    dither: float = 1e-4
    vad: str = "snr"
    vad_snr: float = 40.0
    vad_alpha: float = 0.2
    vad_percentile: float = 10.0
    labels_dir: str | None = None
    rasta: bool = True
    deltas: int = 2
    sdc: str | None = None
    mask: str | None = None
    normalisation: str = "cmvn"
    normalisation_window: int = 301
    keep_all: bool = False
    min_speech_frames: int = 5
    dtype: str = "float32"
    memory_gb: float = 6.0

    def __post_init__(self) -> None:
        self._check_kinds()
        check_values("features", self, choices=_CHOICES)
        preset = PRESETS[self.preset]
        if preset and all(getattr(self, name) != value for name, value in preset.items()):
            text = f"features.preset is {self.preset!r}, but none of its values is set"
            raise ConfigError(text, remedy=f"make a new one: FeatureConfig(preset={self.preset!r})")
        if not 0 < self.low_frequency < self.high_frequency <= self.rate / 2:
            text = f"features.low_frequency {self.low_frequency} and features.high_frequency {self.high_frequency} "
            text += f"must rise from above 0 to at most half of features.rate, {self.rate / 2} Hz"
            remedy = "for telephone speech: features.preset=telephone, in Python FeatureConfig(preset='telephone')"
            raise ConfigError(text, remedy=remedy)
        if self.channel is not None and not hasattr(self.channel, "__index__"):
            text = f"features.channel is {self.channel!r}: expected one channel, from 0"
            raise ConfigError(text, remedy="extract features of each channel separately")
        for name in _POSITIVE:
            value = getattr(self, name)
            if not value > 0:
                raise ConfigError(f"features.{name} is {value}: expected a number above 0")
        self._check_sizes()
        limits = {"dither": math.inf, "vad_percentile": 100, "pre_emphasis": 1, "lifter": math.inf}
        for name, high in limits.items():
            value = getattr(self, name)
            if not 0 <= value <= high:
                raise ConfigError(f"features.{name} is {value}: expected 0 to {high}")
        if self.vad not in VADS and ":" not in self.vad:
            known = ", ".join(VADS)
            raise ConfigError(
                f"features.vad is {self.vad!r}: expected one of {known}, or FILE.py:FUNCTION"
            )
        if self.vad == "labels" and self.labels_dir is None:
            raise ConfigError("features.vad is 'labels' but features.labels_dir is not set")

    def _check_kinds(self) -> None:
        """Refuse values of the wrong kind; convert whole numbers to fractions where these are expected."""
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if name == "channel":  # has a separate error
                continue
            if isinstance(value, np.generic):
                value = value.item()
            try:
                value = convert(value, kind, f"features.{name}")
            except ConfigError as error:
                if name not in _EXAMPLES:
                    raise
                remedy = f"write {name}={_EXAMPLES[name]!r}"
                raise ConfigError(error.text, remedy=remedy) from error
            object.__setattr__(self, name, value)

    def _check_sizes(self) -> None:
        if self.window_samples < 2 or self.shift_samples < 1:
            lengths = f"features.window {self.window} s and features.shift {self.shift} s"
            samples = f"{self.window_samples} and {self.shift_samples} samples"
            raise ConfigError(f"{lengths} are {samples}: expected at least 2 and 1")
        if self.n_filters > self.window_samples:
            most = f"at most {self.window_samples}, the samples of a frame"
            raise ConfigError(f"features.n_filters is {self.n_filters}: expected {most}")
        of_filters = self.files is None and self.function is None
        if of_filters and self.n_cepstra >= self.n_filters + self.c0:
            text = f"features.n_cepstra {self.n_cepstra} must be below features.n_filters {self.n_filters}"
            raise ConfigError(f"{text}: C0 is left out, unless features.c0 is set")
        if self.engine == "librosa" and (self.c0 or self.lifter):
            remedy = "leave them out, or set features.engine=spkver"
            raise ConfigError(
                "features.c0 and features.lifter do not exist for librosa", remedy=remedy
            )
        if self.sdc is not None:
            size = sdc_numbers(self.sdc)[0]
            if size > self.n_static:
                text = f"features.sdc takes {size} coefficients, the features have {self.n_static}"
                raise ConfigError(text, remedy="raise features.n_cepstra")
        _ = self.dimension  # raises an error if the mask does not fit

    @classmethod
    def implied(cls, values: Mapping[str, object]) -> dict[str, object]:
        """Return the values that the preset changes; a ConfigError if there is no such preset.

        If a `rate` is set and the preset's filters would exceed half of it, they are scaled with the rate.
        """
        name = values.get("preset", cls.preset)
        if not isinstance(name, str):
            return {}  # reported elsewhere as a value of the wrong kind
        if name not in PRESETS:
            raise ConfigError(f"features.preset is {name!r}: expected one of {', '.join(PRESETS)}")
        implied = dict(PRESETS[name])
        rate = values.get("rate")
        usual = implied.get("rate", cls.rate)
        high = implied.get("high_frequency", cls.high_frequency)
        assert isinstance(usual, int)
        assert isinstance(high, float)
        if isinstance(rate, int) and "high_frequency" not in values and high > rate / 2:
            implied["high_frequency"] = high * rate / usual
        return implied

    @property
    def window_samples(self) -> int:
        """Length of a frame in samples."""
        return round(self.window * self.rate)

    @property
    def shift_samples(self) -> int:
        """Distance between frames in samples."""
        return round(self.shift * self.rate)

    @property
    def n_fft(self) -> int:
        """Length of the Fourier transform of a frame: the next power of two."""
        return 1 << (self.window_samples - 1).bit_length()

    @property
    def n_static(self) -> int:
        """Coefficients of a frame before deltas."""
        return self.log_energy + self.n_cepstra

    @property
    def dimension(self) -> int:
        """Length D of a frame."""
        columns = (1 + self.deltas) * self.n_static
        if self.sdc is not None:
            size, _, _, blocks = sdc_numbers(self.sdc)
            columns = self.n_static + size * blocks
        if self.mask is not None:
            return len(mask_columns(self.mask, columns))
        return columns

    @property
    def min_samples(self) -> int:
        """Samples that a recording needs for `min_speech_frames` frames."""
        return self.window_samples + (self.min_speech_frames - 1) * self.shift_samples

    def extraction(self) -> dict[str, object]:
        """Return the values that the stored features depend on."""
        values: dict[str, object] = asdict(self)
        for name in (*_AFTERWARDS, *_NO_NUMBERS):
            del values[name]
        for name in ("function", "vad"):
            spec = getattr(self, name)
            if spec is not None and ":" in spec:
                values[f"{name}_files"] = _own_files(spec)
        return values

    def extraction_record(self) -> dict[str, object]:
        """Return the values of `extraction` for a store: without folders, and with the digests of own functions."""
        values = self.extraction()
        del values["files"]
        del values["labels_dir"]
        for name in ("function", "vad"):
            digests = values.pop(f"{name}_files", None)
            if isinstance(digests, dict):
                values[name] = [Path(getattr(self, name)).name, *sorted(map(str, digests.values()))]
        return values

    def post_processing(self) -> dict[str, object]:
        """Return the values that the frames depend on besides the stored features."""
        return {name: getattr(self, name) for name in _AFTERWARDS}


@lru_cache(maxsize=8)
def own_function(spec: str) -> Callable[..., Any]:
    """Return the user's function of features, or of speech; a ConfigError if there is none."""
    function: Callable[..., Any] = load_plugin(spec, "function of features", kind="function")[0]
    return function


def _own_files(spec: str) -> dict[str, str | None]:
    """Return the digests of the files of a user's function."""
    file = load_plugin(spec, "function of features", kind="function")[1]
    if file is None:
        return {}
    return {str(file): file_digest(file), **files_behind(spec, file)}


def _with_preset(initialise: Callable[..., None]) -> Callable[..., None]:
    """Set missing arguments to the preset's values; give values that equal a preset's its name."""
    names = [field.name for field in fields(FeatureConfig)]

    @wraps(initialise)
    def __init__(self: FeatureConfig, *arguments: Any, **named: Any) -> None:  # noqa: N807
        given = {**dict(zip(names, arguments, strict=False)), **named}
        for name, values in PRESETS.items():
            if "preset" not in given and values and values.items() <= given.items():
                named["preset"] = given["preset"] = name
        if "preset" in given:
            implied = FeatureConfig.implied(given)
            named |= {name: value for name, value in implied.items() if name not in given}
        initialise(self, *arguments, **named)

    return __init__


FeatureConfig.__init__ = _with_preset(FeatureConfig.__init__)  # type: ignore[method-assign]


def values_for_rates(values: Mapping[str, object], rates: Collection[int]) -> dict[str, object]:
    """Return the `rate` and `resample` that bring recordings of several sampling rates to one band.

    The rate is their lowest, or the preset's if that is lower, and at least 6000 Hz. Values that are set override
    these: with a `rate`, recordings are resampled to it; with `resample`, to the preset's rate.

    Parameters
    ----------
    values : mapping
        Keys of `FeatureConfig` that are set.
    rates : collection of int [Hz]

    Returns
    -------
    dict
        Further values, for keys that `values` lacks; empty if none are needed.

    Examples
    --------
    >>> values_for_rates({"preset": "wideband"}, [16000]), values_for_rates({}, [8000])
    ({}, {'rate': 8000})
    >>> values_for_rates({}, [8000, 16000]), values_for_rates({}, [44100])
    ({'rate': 8000, 'resample': True}, {'resample': True})
    """
    preset = PRESETS.get(str(values.get("preset", FeatureConfig.preset)), {})
    usual = values.get("rate", preset.get("rate", FeatureConfig.rate))
    if not rates or not isinstance(usual, int) or values.get("resample") is True:
        return {}
    implied: dict[str, object] = {}
    rate = usual
    if "rate" not in values:
        rate = min(usual, max(min(rates), _LEAST_RATE))
    if rate != usual:
        implied["rate"] = rate
    if set(rates) != {rate}:
        implied["resample"] = True
    return implied
