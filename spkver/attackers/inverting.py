"""Inverting an anonymiser: how far each recording was warped is estimated, and the warping inverted.

    OUTPUT/attackers/<anonymised background>/undoing/estimator.h5    estimates the warping of a recording
    OUTPUT/attackers/<anonymised background>/undoing/undoing.json    its accuracy
    OUTPUT/attackers/<anonymised background>/undoing/numbers/        the numbers of each data directory
    OUTPUT/data/<anonymised directory>-undone                        the speech

All of it uses the anonymiser and the background alone. The numbers of a background recording are estimated without its
speaker, so that a recogniser trained on inverted speech sees the errors that it will meet.

An anonymiser such as McAdams's warps the whole of a recording by one number. Spectrum and poles show it: no voice has
all its resonances so low, or so close together. The number is estimated from the recording alone, by what is learnt
from background speech that is anonymised again.

Attackers by vectors that first map the space of anonymised speech to that of original speech.

    OUTPUT/attackers/<anonymised background>/<name>/alignment.h5      the map
    OUTPUT/attackers/<anonymised background>/<name>/alignment.json    the maps that were tried, and how well they link

The map is learnt on pairs: recordings of the background and their anonymised versions. What comes after it is the
attacker by vectors that learnt from original speech.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from evaluation.embeddings import Alignment, Embeddings, MapKind, fit_alignment, owner_ranks, speaker_folds
from evaluation.trials import INVERTING, Scores, Trials
from spkbase.errors import DataError
from spkbase.files import fingerprint, load_json, make_folder, write_json
from spkbase.hdf5 import open_file, read_arrays, write_arrays
from spkbase.runs import Run, Stage
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import Work, chunk_bounds, one_blas_thread
from spkver import anonymization
from spkver.anonymization import INVERSES, AnonymizerConfig, Inverse, burg, quadratic_factors, recorded_anonymizer
from spkver.attackers import lists
from spkver.attackers.folds import with_pieces
from spkver.attackers.protocol import NOWHERE, Attack, Attacker, Place, Scorer, TrainingSet
from spkver.attackers.vector_attacker import VectorAttacker, VectorSource
from spkver.audio import read_audio
from spkver.datadir import DataDir

BANDS, ANGLES = 48, 64
CUES = {"bands": slice(0, 2 * BANDS), "poles": slice(2 * BANDS, None), "both": slice(None)}
"""Which of the values of `warp_cues` an estimator looks at."""
WIDTHS = (0.0, 0.1, 0.3)
"""Of the kernels that are tried; 0 is the inner product, ridge regression."""
RIDGES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.3, 3.0)

_WINDOW, _POLES_WINDOW, _SHIFT = 0.025, 0.020, 0.010  # s
_ORDER = 20
_QUIET = 10**-3.5  # of the energy of loud frames: what is below does not count
_LOWEST, _HIGHEST = 60.0, 0.475  # Hz, share of the rate
_FRAMES = 4096  # at a time
_MOST = 6000  # frames that are looked at, evenly over the recording: it keeps one number, however long it is


def warp_cues(samples: NDArray[np.floating], rate: int) -> NDArray[np.float64]:
    """Return what shows how far a recording is warped.

    Of the frames that are not quiet: the means of 48 logarithmic mel bands, minus their mean, and their deviations
    over time; and the square roots of two histograms of the angles of the complex poles of linear prediction of order
    20, 64 bins of 0 to pi, per frame: poles counted alike, and weighted by the 8th power of their radius.

    Parameters
    ----------
    samples : ndarray of shape (n,)
    rate : int [Hz]

    Returns
    -------
    ndarray of float64 of shape (224,)
        Zeros for silence and for recordings shorter than a frame.
    """
    cues = np.zeros(2 * BANDS + 2 * ANGLES)
    loud = _loud_frames(samples, rate)
    if not len(loud):
        return cues
    bands = _log_bands(loud, rate)
    cues[:BANDS] = bands.mean(axis=0) - bands.mean()
    cues[BANDS : 2 * BANDS] = bands.std(axis=0)
    angles, radii = _complex_poles(loud[:, : round(_POLES_WINDOW * rate)])
    for place, weights in ((2 * BANDS, None), (2 * BANDS + ANGLES, radii**8)):
        counts = np.histogram(angles, ANGLES, (0, np.pi), weights=weights)[0] / len(loud)
        cues[place : place + ANGLES] = np.sqrt(counts)
    return cues


def mean_spectrum(samples: NDArray[np.floating], rate: int) -> NDArray[np.float64]:
    """Return the first 48 values of `warp_cues` alone: the means of the bands, minus their mean."""
    loud = _loud_frames(samples, rate)
    bands = _log_bands(loud, rate) if len(loud) else np.zeros((1, BANDS))
    means: NDArray[np.float64] = bands.mean(axis=0) - bands.mean()
    return means


def _loud_frames(samples: NDArray[np.floating], rate: int) -> NDArray[np.float64]:
    """Frames of 25 ms every 10 ms that are not quiet, evenly chosen where they are many; none of silence."""
    length, shift = round(_WINDOW * rate), round(_SHIFT * rate)
    if len(samples) < length:
        return np.zeros((0, length))
    frames = sliding_window_view(samples, length)[::shift]
    some = (frames[start:stop] for start, stop in chunk_bounds(len(frames), _FRAMES))
    energy = np.concatenate([np.square(part, dtype=np.float64).sum(axis=1) for part in some])
    rows = np.flatnonzero(energy > _QUIET * np.quantile(energy, 0.95))
    return frames[rows[:: max(1, -(-len(rows) // _MOST))]].astype(np.float64)


def _log_bands(frames: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Logarithmic energies, (T, 48), of triangles on the scale ln(1 + f / 700)."""
    size = 1 << (frames.shape[1] - 1).bit_length()
    power = np.abs(np.fft.rfft(frames * np.hamming(frames.shape[1]), size)) ** 2
    low, high = np.log1p(np.array([_LOWEST, _HIGHEST * rate]) / 700).tolist()
    corners = 700 * np.expm1(np.linspace(low, high, BANDS + 2))
    bins, widths = np.fft.rfftfreq(size, 1 / rate)[:, None], np.diff(corners)
    rising, falling = (bins - corners[:-2]) / widths[:-1], (corners[2:] - bins) / widths[1:]
    filters = np.maximum(0, np.minimum(rising, falling))
    logarithms: NDArray[np.float64] = np.log(power @ filters + 1e-10 * power.mean() + np.finfo(np.float64).tiny)
    return logarithms


def _complex_poles(frames: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Angles and radii of all complex poles of all frames."""
    windowed = (frames * np.hanning(frames.shape[1])).T.copy()
    if windowed.shape[1] == 1:
        windowed = np.repeat(windowed, 2, axis=1)  # see `burg`; both histograms are of shares
    windowed += np.finfo(np.float32).eps
    p, q = quadratic_factors(burg(windowed, min(_ORDER, len(windowed) // 2 * 2 - 2)))
    is_pair = q > p * p / 4
    p, q = p[is_pair], q[is_pair]
    return np.arctan2(np.sqrt(q - p * p / 4), -p / 2), np.sqrt(q)


@one_line
@dataclass(frozen=True, eq=False)
class WarpEstimator:
    """Kernel ridge regression of a number on `warp_cues`; see `fit_warp_estimator`.

    Attributes
    ----------
    cues : str
        A key of `CUES`.
    width, ridge : float
    centre, scale : ndarray of float64 of shape (D,)
        Cues are standardised by them.
    points : ndarray of float64 of shape (N, D)
        Standardised cues of what it learnt from.
    weights : ndarray of float64 of shape (K + 1, N)
        Learnt without the speakers of each fold, then from all.
    means : ndarray of float64 of shape (K + 1,)
        Of the numbers.
    bounds : (low, high)
        Estimates never leave them.
    rmse, spread : float
        Root mean square error over the folds, and standard deviation of the numbers.
    """

    cues: str
    width: float
    ridge: float
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    bounds: tuple[float, float]
    rmse: float
    spread: float

    def estimate(self, cues: NDArray[np.float64], folds: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Return the numbers of recordings.

        Parameters
        ----------
        cues : ndarray of float64 of shape (n, 224)
            See `warp_cues`.
        folds : ndarray of int of shape (n,), optional
            Fold of each recording's speaker, if it learnt from them: what is used then did not see that speaker.
        """
        kernel = warp_kernel((cues[:, CUES[self.cues]] - self.centre) / self.scale, self.points, self.width)
        rows = np.full(len(cues), len(self.weights) - 1) if folds is None else folds
        with one_blas_thread():
            values = np.einsum("nm,nm->n", kernel, self.weights[rows]) + self.means[rows]
        return np.clip(values, *self.bounds)


def warp_kernel(left: NDArray[np.float64], right: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return the kernel of rows, (n, D) and (m, D): exp(-w |a - b|^2 / 2 D), or a . b / D where the width w is 0."""
    from sklearn.metrics.pairwise import rbf_kernel

    size = left.shape[1]
    with one_blas_thread():
        return rbf_kernel(left, right, gamma=width / 2 / size) if width else left @ right.T / size


@one_blas_thread()
def fit_warp_estimator(
    cues: NDArray[np.float64],
    values: NDArray[np.float64],
    folds: NDArray[np.int64],
    bounds: tuple[float, float],
) -> WarpEstimator:
    """Learn to estimate a number from cues: kernel ridge regression, all of whose settings folds of speakers choose.

    The estimate of cues x is m + k(x)' (K + l I)^-1 (y - m), with the kernel K of the recordings that were learnt from,
    their numbers y and the mean m of these. Tried are the cues of `CUES`, the kernels of `WIDTHS` and the l of
    `RIDGES`; the least root mean square error over the folds wins, each fold estimated by training on the others.

    Parameters
    ----------
    cues : ndarray of float64 of shape (N, 224)
        See `warp_cues`.
    values : ndarray of float64 of shape (N,)
        The numbers.
    folds : ndarray of int of shape (N,)
        Fold of each recording, from 0 on, at least two; all those of a speaker in one, see `speaker_folds`.
    bounds : (low, high)
        Of the numbers that there can be.

    Raises
    ------
    DataError
        If the cues are not finite, or do not differ.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk, Ridge regression learning algorithm in dual variables, ICML 1998.
    """
    errors: dict[tuple[str, float, float], float] = {}
    for name, columns in CUES.items():
        points = _standardised(cues[:, columns])[0]
        for width in WIDTHS:
            kernel = warp_kernel(points, points, width)
            for ridge in RIDGES:
                guesses = np.empty(len(values))
                for fold in range(folds.max() + 1):
                    weights, mean = _dual_weights(kernel, values, folds != fold, ridge)
                    guesses[folds == fold] = kernel[folds == fold] @ weights + mean
                errors[name, width, ridge] = float(np.sqrt(np.mean((np.clip(guesses, *bounds) - values) ** 2)))
    name, width, ridge = min(errors, key=lambda setting: errors[setting])
    if not np.isfinite(errors[name, width, ridge]):
        raise DataError("the cues of the recordings do not differ", remedy="is this speech?")
    points, centre, scale = _standardised(cues[:, CUES[name]])
    kernel = warp_kernel(points, points, width)
    learnt = [*(folds != fold for fold in range(folds.max() + 1)), np.ones(len(values), bool)]
    solved = [_dual_weights(kernel, values, rows, ridge) for rows in learnt]
    weights, means = np.stack([of_fold for of_fold, _ in solved]), np.array([mean for _, mean in solved])
    quality = errors[name, width, ridge], float(values.std())
    return WarpEstimator(name, width, ridge, centre, scale, points, weights, means, bounds, *quality)


def _standardised(cues: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    centre, scale = cues.mean(axis=0), cues.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)  # an empty bin stays 0
    return (cues - centre) / scale, centre, scale


def _dual_weights(
    kernel: NDArray[np.float64], values: NDArray[np.float64], rows: NDArray[np.bool_], ridge: float
) -> tuple[NDArray[np.float64], float]:
    """Weights, (N,), and mean that some rows are learnt with; the other rows have no weight."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    mean, weights = float(values[rows].mean()), np.zeros(len(values))
    system = kernel[np.ix_(rows, rows)]
    system[np.diag_indices(len(system))] += ridge
    try:
        weights[rows] = cho_solve(cho_factor(system, lower=True), values[rows] - mean)
    except LinAlgError:  # a ridge that is too small for these
        weights[:] = np.nan
    return weights, mean


_NUMBERS = ("cues", "width", "ridge", "rmse", "spread")
_ARRAYS = ("centre", "scale", "points", "weights", "means", "bounds")


def write_warp_estimator(path: Path, estimator: WarpEstimator) -> None:
    """Write an estimator, whole or not at all."""
    arrays = {name: np.asarray(getattr(estimator, name)) for name in _ARRAYS}
    write_arrays(path, arrays, attributes={name: getattr(estimator, name) for name in _NUMBERS})


def read_warp_estimator(path: Path) -> WarpEstimator:
    """Read an estimator back."""
    values: dict[str, Any] = read_arrays(path, *_ARRAYS)
    with open_file(path) as file:
        values |= {name: float(file.attrs[name]) for name in _NUMBERS[1:]}
        values["cues"] = str(file.attrs["cues"])
    low, high = values["bounds"].tolist()
    return WarpEstimator(**{**values, "bounds": (low, high)})


VERSION = 2
"""Of this method: scores of another version are not reused."""
FOLDS = 5
"""Of background speakers."""
LEAST = 10
"""Recordings of a background that an estimator can be learnt from."""

_DRAWS, _MOST_DRAWS = 1200, 6  # anonymised versions that are aimed at, and of one recording
_KEY = 8  # digits of a key
_MOST_OF_UNDOING = 4000  # background recordings that are inverted; attackers learn from no more
_WARPING = "how far speech is warped"
_PAIRS, _SECONDS, _GRID, _LONGER, _EXPLAINED = 6, 3.0, 13, 0.05, 0.8  # see `known_anonymizer`
_LIBRARIES = ("numpy", "scipy", "soundfile", "soxr")


@one_line
@dataclass(frozen=True)
class Known:
    """What an attacker knows of the anonymiser.

    Attributes
    ----------
    inverse : Inverse
    bounds : (low, high)
        The range that its numbers are drawn from, as `AnonymizerConfig` has it.
    by : {"record", "pairs"}
        Whether the record of a folder says so, or recordings before and after.
    """

    inverse: Inverse
    bounds: tuple[float, float]
    by: str


def known_anonymizer(background: TrainingSet) -> Known | None:
    """Return what anonymised the background: by its record, else by trying which anonymiser makes such speech of it.

    Without a record the first seconds of six recordings are warped by each anonymiser of `INVERSES` by 13 numbers. If
    the mean spectra of the nearest that last as long (within 5 %) differ from those of the anonymised ones by less than
    a fifth of what the original ones do, in squares, it is that anonymiser; None if it is none of them. Without the
    durations a shift of the pitch that leaves them alone would be taken for resampling.
    """
    if not background.anonymised:
        return None
    config = _recorded(background.anonymised[0])
    if config is None:
        return _recognised(background.original, background.anonymised[0])
    inverse = INVERSES.get(config.name)
    return None if inverse is None else Known(inverse, getattr(config, inverse.parameter), "record")


def _recorded(directory: DataDir) -> AnonymizerConfig | None:
    """What the record of a directory says; of a selection, which has none, that of the folder of its recordings."""
    found = recorded_anonymizer(directory.path)
    if found is None and not directory.path.is_dir():
        folders = sorted({Path(path).parent.parent for path in directory.recordings.values()})
        configs = [recorded_anonymizer(folder) for folder in folders]
        found = configs[0] if configs and all(config == configs[0] for config in configs) else None
    return found


@lru_cache(maxsize=8)
def _recognised(original: DataDir, anonymised: DataDir) -> Known | None:
    shared = sorted(original.recordings.keys() & anonymised.recordings.keys())
    places = sorted(set(np.linspace(0, len(shared) - 1, _PAIRS).astype(int))) if shared else []
    pairs = [shared[place] for place in places]
    signals = [_beginnings(original.recordings[name], anonymised.recordings[name]) for name in pairs]
    explained = {}
    for name, inverse in INVERSES.items() if signals else ():
        low, high = inverse.bounds(getattr(AnonymizerConfig(), inverse.parameter))
        numbers = np.linspace(low, high, _GRID).tolist()
        nearest = before = 0.0
        for samples, rate, changed, changed_rate in signals:
            goal = mean_spectrum(changed, changed_rate)
            outputs = inverse.apply([samples] * _GRID, [rate] * _GRID, numbers)
            seconds = len(changed) / changed_rate
            found = [
                mean_spectrum(output, rate)
                for output in outputs
                if not isinstance(output, DataError) and abs(len(output) / rate - seconds) < _LONGER * seconds
            ]
            before += float(np.sum((mean_spectrum(samples, rate) - goal) ** 2))
            nearest += min((float(np.sum((cues - goal) ** 2)) for cues in found), default=np.inf)
        explained[name] = 1 - nearest / before if before else 0.0
    best = max(explained, key=lambda name: explained[name], default="")
    if not best or explained[best] < _EXPLAINED:
        return None
    return Known(INVERSES[best], getattr(AnonymizerConfig(), INVERSES[best].parameter), "pairs")


def _beginnings(before: Path, after: Path) -> tuple[NDArray[Any], int, NDArray[Any], int]:
    """The first seconds of a recording before and after, the same part of both, with their rates."""
    (samples, rate), (changed, changed_rate) = read_audio(before), read_audio(after)
    part = min(1.0, _SECONDS * rate / len(samples))
    return samples[: round(part * len(samples))], rate, changed[: round(part * len(changed))], changed_rate


def unfit_background(attack: Attack) -> str:
    """Return why an attacker cannot learn from the background what an anonymiser does, or nothing."""
    background, original = attack.training, attack.training.original
    if not background.anonymised:
        return "there is no anonymised background"
    n_pairs = len(original.recordings.keys() & background.anonymised[0].recordings.keys())
    people = set(original.speakers.values())
    if n_pairs < LEAST or len(people) < 2:
        text = f"a background of {n_pairs} recordings of {len(people)} speakers"
        return f"{text} is too small to learn from: at least {LEAST} of 2"
    if shared := people & set(attack.enrolment[0].speakers.values()):
        return f"{len(shared)} speakers of the background are among those that are enrolled"
    return ""


def why_not(attack: Attack) -> str:
    """Return why the anonymisation of an attack cannot be inverted, or nothing."""
    if (unfit := unfit_background(attack)) or known_anonymizer(attack.training) is not None:
        return unfit
    name, kinds = attack.training.anonymised[0].name, ", ".join(INVERSES)
    return f"what made {name} cannot be inverted ({kinds} can); an attacker that ends in -aligned needs no inverse"


@one_line
@dataclass(frozen=True, eq=False)
class Undoing:
    """Inverts the anonymisation in attacks with one background.

    Attributes
    ----------
    background : TrainingSet
    place : Place
    """

    background: TrainingSet
    place: Place
    _undone: dict[DataDir, DataDir] = field(default_factory=dict, repr=False)

    @cached_property
    def known(self) -> Known:
        """What anonymised."""
        known = known_anonymizer(self.background)
        assert known is not None  # see `why_not`
        return known

    @cached_property
    def run(self) -> Run:
        """The folder of the estimator."""
        folder = self.place.output / "attackers" / self.background.anonymised[0].name / "undoing"
        return Run(make_folder(folder), self.place.jobs, self.place.force, quiet=True)

    @cached_property
    def estimator(self) -> Stage[WarpEstimator]:
        """Estimates the number of a recording, trained on further anonymised versions of the background."""
        original, known, seed = self.background.original, self.known, self.place.seed
        chosen = lists.choose_utterances(original.speakers, limit=_DRAWS // 2, seed=seed)
        draws = min(_MOST_DRAWS, max(2, -(-_DRAWS // len(chosen))))
        recordings = {name: Path(original.recordings[name]) for name in sorted(chosen)}
        inverse, what = known.inverse, (known.inverse.anonymizer, known.bounds)

        def make(path: Path) -> None:
            draw = partial(_drawn_cues, what=what, draws=draws, seed=seed)
            made = Work(self.place.jobs).map(draw, list(recordings.items()), processes=True, description=_WARPING)
            cues, values = map(np.concatenate, zip(*made, strict=True))
            folds = self.folds([original.speakers[name] for name in recordings for _ in range(draws)])
            estimator = fit_warp_estimator(cues, values, folds, inverse.bounds(known.bounds))
            write_warp_estimator(path, estimator)
            facts = {
                "anonymizer": inverse.anonymizer,
                "parameter": inverse.parameter,
                "range": list(known.bounds),
                "known_by": known.by,
                "recordings": len(recordings),
                "speakers": len(set(original.speakers.values())),
                "draws_of_each": draws,
                "kernel": "Gaussian" if estimator.width else "linear",
                "folds": FOLDS,
            }
            write_json(self.run.path("undoing.json"), {**facts, **{key: getattr(estimator, key) for key in _NUMBERS}})

        return self.run.stage(
            "estimator of the warp",
            "estimator.h5",
            make=make,
            read=read_warp_estimator,
            inputs=[VERSION, what, draws, seed, sorted(original.speakers.items())],
            sources=recordings,
            libraries=_LIBRARIES,
            also=("undoing.json",),
        )

    def numbers(self, directory: DataDir, *, is_tested: bool = False) -> dict[str, float]:
        """Estimate the number of each recording; where a speaker has one number, it is the mean of the estimates.

        Speakers of tested recordings are not disclosed: each recording has its own estimate, also in the trials of the
        background, where speakers are known.
        """
        recordings = {name: Path(path) for name, path in sorted(directory.recordings.items())}
        is_shared = not is_tested and self.is_by_speaker(directory)
        speakers = [directory.speakers[name] for name in recordings]
        is_heard = set(speakers) <= set(self.background.original.speakers.values())
        folds, estimator = self.folds(speakers) if is_heard else None, self.estimator

        def make(path: Path) -> None:
            cues = Work(self.place.jobs).map(_cues_of, list(recordings.items()), processes=True, description=_WARPING)
            values = estimator.value.estimate(np.stack(list(cues)), folds)
            if is_shared:
                _, people = np.unique(speakers, return_inverse=True)
                values = (np.bincount(people, values) / np.bincount(people))[people]
            write_json(path, dict(zip(recordings, values.tolist(), strict=True)))

        label = self._label(directory)
        found = self.run.stage(
            f"numbers of {label}",
            f"numbers/{label}.json",
            make=make,
            read=load_json,
            inputs=[VERSION, list(recordings), speakers, is_shared, None if folds is None else folds.tolist()],
            after=[estimator],
            sources=recordings,
            libraries=_LIBRARIES,
        ).value
        return {name: float(value) for name, value in found.items()}

    @staticmethod
    def is_by_speaker(directory: DataDir) -> bool:
        """Return whether a speaker of an anonymised directory has one number, by its record."""
        config = _recorded(directory)
        return config is not None and config.level == "speaker"

    def folds(self, speakers: Sequence[str]) -> NDArray[np.int64]:
        """Return the folds of background speakers."""
        known = sorted(set(self.background.original.speakers.values()))
        fold = dict(zip(known, speaker_folds(known, FOLDS, seed=self.place.seed).tolist(), strict=True))
        return np.array([fold[speaker] for speaker in speakers], np.int64)

    def undone(self, directory: DataDir, *, is_tested: bool = False) -> DataDir:
        """Return the inverted version of an anonymised data directory, below ``data/``; what is there is reused.

        Recordings of the background are those of its inverted versions, as the folds of a fusion have them; but not
        those that are tested (`is_tested`) where the number of a speaker was estimated from all recordings.
        """
        if directory not in self._undone:
            is_apart = directory in self._parts or (is_tested and self.is_by_speaker(self.background.anonymised[0]))
            versions = () if is_apart else self.background.anonymised
            known = {path for version in versions for path in version.recordings.values()}
            selected = self.selected(directory) if known.issuperset(directory.recordings.values()) else None
            if selected is None or len(selected) < len(directory):
                target = self.place.output / "data" / f"{self._label(directory)}-undone"
                inverse, place = self.known.inverse.anonymizer, self.place
                numbers = self.numbers(directory, is_tested=is_tested)
                selected = anonymization.undo_datadir(
                    directory, target, inverse, numbers, jobs=place.jobs, force=place.force
                )
            self._undone[directory] = selected
        return self._undone[directory]

    def selected(self, directory: DataDir) -> DataDir:
        """Return the same recordings of the inverted background; of a large one those that it has."""
        undone = {
            version.recordings[name]: path
            for version, twin in zip(self.background.anonymised, self.undone_background, strict=True)
            for name, path in twin.recordings.items()
        }
        recordings = {name: undone[path] for name, path in directory.recordings.items() if path in undone}
        path = directory.path.with_name(f"{directory.name}-undone")
        return replace(lists.select(directory, recordings), path=path, recordings=recordings)

    def _label(self, directory: DataDir) -> str:
        """Name of a directory; sides of folds, which bear that of the background, are distinguished by their ids."""
        name = directory.path.resolve().name
        versions = {version.path.resolve().name for version in self.background.anonymised}
        is_side = name in versions and directory not in self._parts
        return f"{name}-{fingerprint(sorted(directory.recordings))[:_KEY]}" if is_side else name

    @cached_property
    def _parts(self) -> tuple[DataDir, ...]:
        """The versions of the background; of a large one a part, evenly over the speakers."""
        versions, speakers = self.background.anonymised, self.background.original.speakers
        limit = -(-_MOST_OF_UNDOING // len(versions))
        chosen = set(lists.choose_utterances(speakers, limit=limit, seed=self.place.seed))
        return (
            versions if len(chosen) == len(speakers) else tuple(lists.select(version, chosen) for version in versions)
        )

    @cached_property
    def undone_background(self) -> tuple[DataDir, ...]:
        """The inverted versions of the background, or of its part."""
        return tuple(map(self.undone, self._parts))


def _cues_of(recording: tuple[str, Path]) -> NDArray[np.float64]:
    return warp_cues(*read_audio(recording[1]))


def _drawn_cues(
    recording: tuple[str, Path], *, what: tuple[str, tuple[float, float]], draws: int, seed: int
) -> tuple[NDArray[np.float64], list[float]]:
    """Cues and numbers of anonymised versions of a recording."""
    (name, path), (inverse, bounds) = recording, (INVERSES[what[0]], what[1])
    samples, rate = read_audio(path)
    generator = stream(seed, "undoing", name)
    numbers = [inverse.draw(bounds, generator) for _ in range(draws)]
    cues = []
    for output in inverse.apply([samples] * draws, [rate] * draws, numbers):
        if isinstance(output, DataError):
            raise DataError(f"utterance {name!r}: {output.text}", file=path, remedy=output.remedy)
        cues.append(warp_cues(output, rate))
    return np.stack(cues), numbers


@one_line
@dataclass(frozen=True, eq=False)
class UndoneAttacker:
    """An attacker on speech with the anonymisation inverted; see `spkver.attackers.Attacker`.

    Lazy-informed, the base attacker learns from original speech, and meets inverted enrolment and trials;
    semi-informed, it learns from inverted versions of the background too.
    """

    level: ClassVar[str] = INVERTING
    scenarios: ClassVar[tuple[str, ...]] = ("lazy-informed", "semi-informed")  # both sides are anonymised

    name: str
    base: Attacker
    place: Place = field(default=NOWHERE, repr=False)

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return both sides, and the whole background."""
        background = attack.training.whole or attack.training
        return *attack.sides, background.original, *background.anonymised

    def record(self, attack: Attack) -> Any:
        """Return what it depends on besides the speech: the base attacker, and what is known of the anonymiser."""
        known = known_anonymizer(attack.training.whole or attack.training)
        assert known is not None  # see `lacks`
        what = [known.inverse.anonymizer, list(known.bounds)]
        return {"undoing": VERSION, "anonymizer": what, "base": self.base.record(attack)}

    def lacks(self, attack: Attack) -> str:
        """Return why the anonymisation cannot be inverted, or what the base attacker lacks."""
        return why_not(attack) or self.base.lacks(attack)

    def fit(self, training: TrainingSet) -> Scorer:
        """Invert the training set where it is anonymised, and have the base attacker learn from it."""
        whole = training.whole or training  # which shows what the anonymiser does, also where the others are of a fold
        shared, key = self.place.shared, (Undoing, whole.original, whole.anonymised)
        undoing: Undoing = shared.setdefault(key, Undoing(whole, self.place))
        if training.on_anonymised:
            is_part = training.whole is not None
            inverted = tuple(map(undoing.selected, training.anonymised)) if is_part else undoing.undone_background
            training = replace(training, anonymised=inverted)
        score_inverted = self.base.fit(training)

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            return score_inverted(tuple(map(undoing.undone, enrolment)), undoing.undone(tested, is_tested=True), trials)

        return score


MAPS: dict[str, tuple[MapKind, float]] = {
    "centred": ("centred", 0.0),
    "orthogonal": ("orthogonal", 0.0),
    "orthogonal, prior 0.3": ("orthogonal", 0.3),
    "orthogonal, prior 1": ("orthogonal", 1.0),
    "ridge 0.1": ("ridge", 0.1),
    "ridge 0.3": ("ridge", 0.3),
    "ridge 1": ("ridge", 1.0),
}
"""The maps that are tried, from the simplest on: what is fitted, and its prior or ridge."""

_VERSION = 2
_MOST_PAIRS = 3000  # recordings that a map is learnt from
_ALIGNMENT = ("source_mean", "target_mean", "matrix")


def choose_map(
    anonymised: NDArray[np.floating], original: NDArray[np.floating], speakers: NDArray[np.object_], *, seed: int = 0
) -> tuple[str, dict[str, float]]:
    """Choose how a map is fitted, by folds of speakers: by how well it links those that it did not learn from.

    Parameters
    ----------
    anonymised, original : ndarray of a floating type of shape (n, D)
        A pair in each row.
    speakers : ndarray of str of shape (n,), dtype object
    seed : int
        Of the folds.

    Returns
    -------
    chosen : str
        A key of `MAPS`.
    scores : dict of str to float
        For each the mean of 1 / rank of the right speaker, in the order of the original speakers of the fold by the
        cosine of their nearest vector. Of those that are as good to 0.001 the first is chosen.
    """
    folds = speaker_folds(speakers.tolist(), FOLDS, seed=seed)
    scores = {}
    for name in MAPS:
        ranks = np.empty(len(folds))
        for fold in range(folds.max() + 1):
            tested = folds == fold
            alignment = _fitted(name, anonymised[~tested], original[~tested])
            moved = alignment.apply(anonymised[tested]) - alignment.target_mean
            gallery = original[tested] - alignment.target_mean
            ranks[tested] = owner_ranks(moved, speakers[tested], gallery, speakers[tested])
        scores[name] = float(np.mean(1 / ranks))
    best = max(scores.values())
    return next(name for name, score in scores.items() if score > best - 1e-3), scores


def _fitted(name: str, anonymised: NDArray[np.floating], original: NDArray[np.floating]) -> Alignment:
    kind, value = MAPS[name]
    options: dict[str, Any] = {"ridge": value} if kind == "ridge" else {"prior": value}
    return fit_alignment(anonymised, original, kind, **options)


@one_line
@dataclass(frozen=True, eq=False)
class AlignedSource:
    """Vectors of a `VectorSource`; those of anonymised directories are mapped."""

    source: VectorSource
    alignment: Alignment
    anonymised: set[DataDir]

    def vectors(self, directory: DataDir, utterances: Mapping[str, str] | None = None) -> Embeddings:
        """Return the vectors of a data directory, or of some of its utterances with their speakers."""
        found = self.source.vectors(directory, utterances)
        return replace(found, vectors=self.alignment.apply(found.vectors)) if directory in self.anonymised else found


@one_line
@dataclass(frozen=True, eq=False)
class AlignedAttacker:
    """An attacker by vectors, after a map of what is anonymised; see `spkver.attackers.Attacker`."""

    level: ClassVar[str] = INVERTING
    scenarios: ClassVar[tuple[str, ...]] = ("lazy-informed",)  # the backend is of original speech, the sides are not

    name: str
    base: VectorAttacker
    place: Place = field(default=NOWHERE, repr=False)

    def speech(self, attack: Attack) -> tuple[DataDir, ...]:
        """Return both sides, and all that the map is learnt from."""
        return *attack.sides, attack.training.original, *attack.training.anonymised

    def record(self, attack: Attack) -> Any:
        """Return what it depends on besides the speech."""
        return {"alignment": [_VERSION, list(MAPS)], "base": self.base.record(attack)}

    def lacks(self, attack: Attack) -> str:
        """Return why there is nothing to learn a map from, or what the base attacker lacks."""
        return unfit_background(attack) or self.base.lacks(attack)

    def fit(self, training: TrainingSet) -> Scorer:
        """Learn the map, and have the base attacker learn from original speech."""
        alignment, anonymised = self.alignment(training), set[DataDir]()

        def aligned(place: Place, versions: tuple[DataDir, ...]) -> VectorSource:
            return AlignedSource(self.base.source(versions), alignment, anonymised)

        score_aligned = replace(self.base, make_source=aligned).fit(replace(training, on_anonymised=False))

        def score(enrolment: tuple[DataDir, ...], tested: DataDir, trials: Trials) -> Scores:
            anonymised.update((lists.enrolled_speech(enrolment), tested))
            return score_aligned(enrolment, tested, trials)

        return score

    def alignment(self, training: TrainingSet) -> Alignment:
        """Choose and learn the map, or take the one that an earlier run has."""
        folder = make_folder(self.place.output / "attackers" / training.anonymised[0].name / self.name)
        run = Run(folder, self.place.jobs, self.place.force, quiet=True)
        # pieces where attackers by vectors use pieces: so each recording goes through a network once
        sides = with_pieces((training.original, *training.anonymised), self.place)
        shared = sorted(set(sides[0].recordings).intersection(*(side.recordings for side in sides)))
        names = shared[:: -(-len(shared) * (len(sides) - 1) // _MOST_PAIRS)]

        def make(path: Path) -> None:
            source = self.base.source((training.original,))
            speakers = {name: sides[0].speakers[name] for name in names}
            found = [source.vectors(side, speakers) for side in sides]
            for side in found:
                side.norms()
            original, *versions = (np.asarray(side.vectors, np.float64) for side in found)
            anonymised, goal = np.concatenate(versions), np.concatenate([original] * len(versions))
            owners = np.concatenate([found[0].speakers] * len(versions))
            best, scores = choose_map(anonymised, goal, owners, seed=self.place.seed)
            fitted = _fitted(best, anonymised, goal)
            write_arrays(path, {name: getattr(fitted, name) for name in _ALIGNMENT})
            facts = {"attacker": self.name, "pairs": len(goal), "speakers": len(set(owners)), "folds": FOLDS}
            write_json(run.path("alignment.json"), {**facts, "chosen": best, "mean_reciprocal_rank": scores})

        return run.stage(
            f"alignment of {self.name}",
            "alignment.h5",
            make=make,
            read=lambda path: Alignment(**read_arrays(path, *_ALIGNMENT)),
            inputs=[_VERSION, list(MAPS), self.base.depends, sorted(sides[0].speakers.items()), self.place.seed],
            sources={
                f"{number} {name}": Path(side.recordings[name]) for number, side in enumerate(sides) for name in names
            },
            libraries=("numpy", "scipy", "soundfile"),
            also=("alignment.json",),
        ).value
