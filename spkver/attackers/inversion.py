"""Inversion of an anonymiser: the warping of each recording is estimated (`spkver.attackers.warping`) and inverted.

The *number* of a recording is the parameter of the warping that the anonymiser drew for it.

    OUTPUT/attackers/<anonymised background>/undoing/estimator.h5    estimator of the warping of a recording
    OUTPUT/attackers/<anonymised background>/undoing/undoing.json    its accuracy
    OUTPUT/attackers/<anonymised background>/undoing/numbers/        the numbers of each data directory
    OUTPUT/data/<anonymised directory>-inverted                      the speech
    OUTPUT/data/<anonymised directory>-reversed<n>                   tested speech, inverted with one of several numbers

Only the anonymiser and the background are used. Recognisers learn from original speech in every scenario: to train them
on inverted speech gains nothing (docs/studies/attackers.md). The number of a background recording is estimated without
its speaker, so that the folds on which a fusion is trained have the estimation errors of the trials.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import speaker_folds
from spkbase.errors import DataError, counted
from spkbase.files import fingerprint, load_json, make_folder, write_json
from spkbase.runs import Run, Stage
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import Work
from spkver.anonymization import (
    INVERSES,
    AnonymizerConfig,
    Inverse,
    recorded_anonymizer,
    twin_stage,
    undo_datadir,
)
from spkver.attackers import lists, warping
from spkver.attackers.pieces import whole_name
from spkver.attackers.protocol import TrainingSet
from spkver.audio import read_audio
from spkver.datadir import DataDir, wav_file

VERSION = 4
"""Version of this method; scores of other versions are not reused."""
FOLDS = 5
"""Folds of background speakers."""
NUMBERS = 3
"""Numbers, in the middle of equal parts of the anonymiser's range, that a reversal inverts tested recordings with."""
INVERTED_DRAWS = 2
"""Anonymised versions of the enrolment that a network inverts; more gain nothing: docs/studies/attackers.md."""
LEAST = 10
"""Fewest background recordings that an estimator can be trained on."""

_DRAWS = 600  # total number of anonymised versions to aim at
_MOST_DRAWS = 6  # largest number of anonymised versions of a recording
_KEY = 8  # digits of a key
_MOST = 4000  # largest number of background recordings to invert, for the folds of a fusion
_WARPING = "estimating the warp"
# see `recognised_anonymizer`
_PAIRS = 6
_SECONDS = 3.0
_GRID = 13
_LONGER = 0.05
_EXPLAINED = 0.8
_LIBRARIES = ("numpy", "scipy", "soundfile", "soxr")


@one_line
@dataclass(frozen=True)
class Known:
    """What an attacker knows about the anonymiser; strings and numbers, which a file can keep.

    Attributes
    ----------
    anonymizer : str
        A name of `INVERSES`.
    bounds : (low, high)
        Range from which its numbers are drawn, as in `AnonymizerConfig`.
    source : {"record", "pairs"}
        Whether it is known from the record of a folder, or from pairs of original and anonymised recordings.
    by_speaker : bool
        Whether all recordings of a speaker have the same number, according to the record.
    """

    anonymizer: str
    bounds: tuple[float, float]
    source: str
    by_speaker: bool = False

    @property
    def inverse(self) -> Inverse:
        """The anonymiser and its inverse."""
        return INVERSES[self.anonymizer]


def known_from_record(config: AnonymizerConfig) -> Known | None:
    """Return what is known from the record of an anonymised directory; None if its anonymiser has no inverse."""
    inverse = INVERSES.get(config.name)
    if inverse is None:
        return None
    return Known(
        config.name, getattr(config, inverse.parameter), "record", config.level == "speaker"
    )


def recognised_anonymizer(
    original: DataDir, anonymised: DataDir, work: Work | None = None
) -> Known | None:
    """Find out how a background was anonymised, by trying each anonymiser with an inverse.

    Each anonymiser of `INVERSES` warps the first seconds of six recordings by 13 numbers. Of the results with the right
    duration (within 5 %), the one with the nearest mean spectrum is taken. An anonymiser is recognised if the squared
    differences between these spectra and the anonymised ones are less than a fifth of the squared differences between
    original and anonymised spectra; otherwise None is returned. Durations are checked because a pitch shift that keeps
    the duration would be taken for resampling.

    Parameters
    ----------
    original, anonymised : DataDir
        The same utterances before and after anonymisation.
    work : Work, optional
        Workers; one by default. The result does not depend on them.
    """
    shared = sorted(original.recordings.keys() & anonymised.recordings.keys())
    if not shared:
        return None
    rows = np.unique(np.linspace(0, len(shared) - 1, _PAIRS).astype(int))
    pairs = []
    for row in rows:
        name = shared[row]
        pairs.append((original.recordings[name], anonymised.recordings[name]))
    workers = work or Work(1)
    distances = list(
        workers.map(_distances, pairs, processes=True, description="recognising the anonymiser")
    )
    before = sum(pair.before for pair in distances)
    if not before:
        return None
    explained = {}
    for name in INVERSES:
        nearest = sum(pair.nearest[name] for pair in distances)
        explained[name] = 1 - nearest / before
    best = max(explained, key=lambda name: explained[name])
    if explained[best] < _EXPLAINED:
        return None
    return Known(best, _usual_bounds(INVERSES[best]), "pairs")


def unfit_background(training: TrainingSet, enrolled: Collection[str]) -> str:
    """Return why an attacker cannot learn the anonymiser's effect from the background, or an empty string."""
    if not training.anonymised:
        return "there is no anonymised background"
    n_pairs = len(training.original.recordings.keys() & training.anonymised[0].recordings.keys())
    people = set(training.original.speakers.values())
    shared = people & set(enrolled)
    if n_pairs < LEAST or len(people) < 2:
        text = (
            f"a background of {counted(n_pairs, 'recording')} of {counted(len(people), 'speaker')}"
        )
        return f"{text} is too small to learn from: at least {LEAST} of 2"
    if shared:
        return f"{counted(len(shared), 'speaker')} of the background among those that are enrolled"
    return ""


def why_not(training: TrainingSet, enrolled: Collection[str], known: Known | None) -> str:
    """Return why the anonymisation of an attack cannot be inverted, or an empty string.

    Parameters
    ----------
    training : TrainingSet
    enrolled : collection of str
        Enrolled speakers.
    known : Known or None
        The anonymiser of the background; None if it is not known, or has no inverse.
    """
    unfit = unfit_background(training, enrolled)
    if unfit or known is not None:
        return unfit
    return f"what made {training.anonymised[0].name} cannot be inverted ({', '.join(INVERSES)} can)"


class _Source(NamedTuple):
    """The source of a directory of inverted speech; `number`, if not estimated, inverts all recordings."""

    directory: DataDir
    is_tested: bool
    number: float | None = None


@one_line
@dataclass(frozen=True, eq=False)
class Inversion:
    """Inversion of the anonymisation in attacks with the same background.

    Attributes
    ----------
    background : TrainingSet
    known : Known
        Its anonymiser.
    run : Run
        The run whose folder holds the estimator and the speech.
    seed : int
    """

    background: TrainingSet
    known: Known
    run: Run
    seed: int
    _planned: dict[tuple[DataDir, bool], DataDir] = field(default_factory=dict, repr=False)
    _sources: dict[Path, _Source] = field(default_factory=dict, repr=False)

    @property
    def record(self) -> list[Any]:
        """All that inverted speech depends on besides the recordings."""
        return [VERSION, self.known.anonymizer, list(self.known.bounds)]

    @cached_property
    def folder(self) -> Run:
        """The run in the folder of the estimator."""
        folder = self.run.path(f"attackers/{self.background.anonymised[0].path.name}/undoing")
        return Run(make_folder(folder), self.run.jobs, self.run.force, quiet=True)

    @cached_property
    def estimator(self) -> Stage[warping.WarpEstimator]:
        """The estimator of numbers, trained on further anonymised versions of the background."""
        original = self.background.original
        chosen = lists.choose_utterances(original.speakers, limit=_DRAWS // 2, seed=self.seed)
        draws = min(_MOST_DRAWS, max(2, -(-_DRAWS // len(chosen))))
        recordings = {name: Path(original.recordings[name]) for name in sorted(chosen)}
        return self.folder.stage(
            "estimator of the warp",
            "estimator.h5",
            make=partial(self._train, recordings, draws),
            read=warping.read_warp_estimator,
            inputs=[self.record, draws, self.seed, sorted(original.speakers.items())],
            sources=recordings,
            libraries=_LIBRARIES,
            also=("undoing.json",),
        )

    def numbers(self, directory: DataDir, *, is_tested: bool = False) -> dict[str, float]:
        """Estimate the number of each recording; if each speaker has one number, average over the speaker.

        The speakers of tested recordings are not disclosed, so each recording keeps its own estimate. That also holds
        for trials made from the background, whose speakers are known.
        """
        recordings = {name: Path(path) for name, path in sorted(directory.recordings.items())}
        is_shared = not is_tested and is_by_speaker(directory)
        speakers = [directory.speakers[name] for name in recordings]
        folds = None
        fold_numbers = None
        if set(speakers) <= set(self.background.original.speakers.values()):
            folds = self.folds(speakers)
            fold_numbers = folds.tolist()
        estimator = self.estimator

        def make(path: Path) -> None:
            cues = self.run.work.map(
                _cues_of, list(recordings.items()), processes=True, description=_WARPING
            )
            values = estimator.value.estimate(np.stack(list(cues)), folds)
            if is_shared:
                _, people = np.unique(speakers, return_inverse=True)
                values = (np.bincount(people, values) / np.bincount(people))[people]
            write_json(path, dict(zip(recordings, values.tolist(), strict=True)))

        label = self._label(directory)
        stage = self.folder.stage(
            f"numbers of {label}",
            f"numbers/{label}.json",
            step="numbers",
            make=make,
            read=load_json,
            inputs=[VERSION, list(recordings), speakers, is_shared, fold_numbers],
            after=[estimator],
            sources=recordings,
            libraries=_LIBRARIES,
        )
        return dict(stage.value)

    def folds(self, speakers: Sequence[str]) -> NDArray[np.int64]:
        """Return the fold of each of some background speakers."""
        people = sorted(set(self.background.original.speakers.values()))
        fold = dict(zip(people, speaker_folds(people, FOLDS, seed=self.seed).tolist(), strict=True))
        return np.array([fold[speaker] for speaker in speakers], np.int64)

    def planned(self, directory: DataDir, *, is_tested: bool = False) -> DataDir:
        """Return the inverted version of an anonymised data directory, which `make` writes to ``data/``.

        Background recordings, as in the folds of a fusion, are taken from the inverted background. The exception are
        tested recordings (`is_tested`) if each speaker has one number, because it was estimated from all recordings of
        the speaker.
        """
        key = (directory, is_tested)
        if key not in self._planned:
            inverted = None
            if directory not in self.versions and not (is_tested and self.known.by_speaker):
                inverted = self._of_background(directory)
            if inverted is None:
                inverted = self._derived(directory, "inverted", _Source(directory, is_tested))
            self._planned[key] = inverted
        return self._planned[key]

    def reversed(self, tested: DataDir) -> tuple[DataDir, ...]:
        """Return the directories in which tested recordings are inverted, all of them with one number each."""
        low, high = self.known.inverse.bounds(self.known.bounds)
        variants = []
        for part in range(1, NUMBERS + 1):
            number = low + (high - low) * (part - 0.5) / NUMBERS
            variants.append(self._derived(tested, f"reversed{part}", _Source(tested, True, number)))
        return tuple(variants)

    def source(self, folder: Path) -> DataDir | None:
        """Return the directory whose inverted version belongs in a folder; None for other folders."""
        if folder not in self._sources:
            return None
        return self._sources[folder].directory

    def make(self, folder: Path) -> None:
        """Write the planned directory of a folder, unless it is up to date."""
        source = self._sources[folder]
        directory = source.directory
        if source.number is None:
            numbers = self.numbers(directory, is_tested=source.is_tested)
        else:
            numbers = dict.fromkeys(directory.recordings, source.number)
        anonymizer = self.known.anonymizer
        run = self.run.below("data")
        make = partial(
            undo_datadir,
            directory,
            anonymizer=anonymizer,
            values=numbers,
            jobs=run.jobs,
            force=run.force,
        )
        twin_stage(run, folder.name, directory, make, inputs=[anonymizer, sorted(numbers.items())])

    @cached_property
    def versions(self) -> tuple[DataDir, ...]:
        """The anonymised versions of the background.

        Of a large background only a part, spread evenly over the speakers.
        """
        return lists.limited(self.background.anonymised, _MOST, seed=self.seed)

    def _train(self, recordings: Mapping[str, Path], draws: int, path: Path) -> None:
        """Train the estimator on a number of new versions of each recording, and write it with its accuracy."""
        original = self.background.original
        known = self.known
        draw = partial(_drawn_cues, known=known, draws=draws, seed=self.seed)
        cues = []
        numbers = []
        for made, drawn in self.run.work.map(
            draw, list(recordings.items()), processes=True, description=_WARPING
        ):
            cues.append(made)
            numbers += drawn
        speakers: list[str] = []
        for name in recordings:
            speakers += [original.speakers[name]] * draws
        folds = self.folds(speakers)
        bounds = known.inverse.bounds(known.bounds)
        estimator = warping.fit_warp_estimator(
            np.concatenate(cues), np.array(numbers), folds, bounds
        )
        warping.write_warp_estimator(path, estimator)
        facts = {
            "anonymizer": known.anonymizer,
            "parameter": known.inverse.parameter,
            "range": list(known.bounds),
            "known_by": known.source,
            "recordings": len(recordings),
            "speakers": len(set(original.speakers.values())),
            "draws_of_each": draws,
            "kernel": "Gaussian" if estimator.width else "linear",
            "folds": FOLDS,
        }
        for key in warping.FACTS:
            facts[key] = getattr(estimator, key)
        write_json(self.folder.path("undoing.json"), facts)

    def _derived(self, directory: DataDir, ending: str, source: _Source) -> DataDir:
        """Return a directory in ``data/`` whose recordings are to be made from another one."""
        folder = self.run.path(f"data/{self._label(directory)}-{ending}")
        recordings = {name: wav_file(folder, name) for name in directory.recordings}
        self._sources[folder] = source
        return replace(directory, path=folder, recordings=recordings)

    def _of_background(self, directory: DataDir) -> DataDir | None:
        """Return the same recordings of the inverted background if it has all of them."""
        inverted: dict[Path, Path] = {}
        for version in self.versions:
            made = self.planned(version).recordings
            for name, path in version.recordings.items():
                inverted[path] = made[name]
        if not inverted.keys() >= set(directory.recordings.values()):
            return None
        recordings = {name: inverted[path] for name, path in directory.recordings.items()}
        return replace(
            directory,
            path=directory.path.with_name(f"{directory.name}-inverted"),
            recordings=recordings,
        )

    def _label(self, directory: DataDir) -> str:
        """Return the name of a directory.

        That of a side of a fold, which has the background's name, with a digest of its ids.
        """
        name = directory.path.resolve().name
        if directory in self.versions or whole_name(directory) not in map(
            whole_name, self.versions
        ):
            return name
        return f"{name}-{fingerprint(sorted(directory.recordings))[:_KEY]}"


def record_of(directory: DataDir) -> AnonymizerConfig | None:
    """Return the configuration recorded in a directory or, for a selection, in the folder that holds its recordings."""
    config = recorded_anonymizer(directory.path)
    if config is not None or directory.path.is_dir():
        return config
    folders = {Path(path).parent.parent for path in directory.recordings.values()}
    configs = list(map(recorded_anonymizer, sorted(folders)))
    if configs and all(other == configs[0] for other in configs):
        return configs[0]
    return None


def is_by_speaker(directory: DataDir) -> bool:
    """Return whether one number was drawn for each speaker, according to the directory's record."""
    config = record_of(directory)
    return config is not None and config.level == "speaker"


class _Distances(NamedTuple):
    """Squared distances of spectra from the anonymised recording: of the original, and the smallest by anonymiser."""

    before: float
    nearest: dict[str, float]


def _distances(pair: tuple[Path, Path]) -> _Distances:
    """Compare a recording, and its versions warped by each anonymiser, with the anonymised recording."""
    samples, rate, changed, changed_rate = _beginnings(*pair)
    goal = warping.mean_spectrum(changed, changed_rate)
    seconds = len(changed) / changed_rate
    nearest = {}
    for name, inverse in INVERSES.items():
        numbers = np.linspace(*inverse.bounds(_usual_bounds(inverse)), _GRID).tolist()
        nearest[name] = np.inf
        for output in inverse.apply([samples] * _GRID, [rate] * _GRID, numbers):
            if (
                isinstance(output, DataError)
                or abs(len(output) / rate - seconds) >= _LONGER * seconds
            ):
                continue
            nearest[name] = min(nearest[name], _squared(warping.mean_spectrum(output, rate) - goal))
    return _Distances(_squared(warping.mean_spectrum(samples, rate) - goal), nearest)


def _squared(differences: NDArray[np.float64]) -> float:
    return float(np.sum(differences**2))


def _usual_bounds(inverse: Inverse) -> tuple[float, float]:
    """Return the range from which the numbers of an anonymiser are drawn by default."""
    low, high = getattr(AnonymizerConfig(), inverse.parameter)
    return low, high


def _beginnings(before: Path, after: Path) -> tuple[NDArray[Any], int, NDArray[Any], int]:
    """Return the same first part of a recording before and after anonymisation, with the sampling rates."""
    samples, rate = read_audio(before)
    changed, changed_rate = read_audio(after)
    part = min(1.0, _SECONDS * rate / len(samples))
    return (
        samples[: round(part * len(samples))],
        rate,
        changed[: round(part * len(changed))],
        changed_rate,
    )


def _cues_of(recording: tuple[str, Path]) -> NDArray[np.float64]:
    return warping.warp_cues(*read_audio(recording[1]))


def _drawn_cues(
    recording: tuple[str, Path], *, known: Known, draws: int, seed: int
) -> tuple[NDArray[np.float64], list[float]]:
    """Return the cues and the numbers of new anonymised versions of a recording."""
    name, path = recording
    inverse = known.inverse
    samples, rate = read_audio(path)
    generator = stream(seed, "undoing", name)
    numbers = [inverse.draw(known.bounds, generator) for _ in range(draws)]
    cues = []
    for output in inverse.apply([samples] * draws, [rate] * draws, numbers):
        if isinstance(output, DataError):
            raise DataError(f"utterance {name!r}: {output.text}", file=path, remedy=output.remedy)
        cues.append(warping.warp_cues(output, rate))
    return np.stack(cues), numbers
