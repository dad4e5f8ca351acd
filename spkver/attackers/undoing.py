"""Undoing an anonymiser: how far each recording was warped is guessed, and turned back.

    OUTPUT/attackers/<anonymised background>/undoing/cues.h5         own draws of the background, with their numbers
    OUTPUT/attackers/<anonymised background>/undoing/estimator.h5    what tells the number of a recording
    OUTPUT/attackers/<anonymised background>/undoing/undoing.json    how well it does so
    OUTPUT/attackers/<anonymised background>/undoing/numbers/        the numbers of each data directory
    OUTPUT/data/<anonymised directory>-undone                        the speech

All of it knows the anonymiser and the background alone. The numbers of a background recording are guessed by what did
not learn from its speaker, so that a recogniser that learns from undone speech sees the errors that it will meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import speaker_folds
from spkbase.errors import DataError
from spkbase.files import fingerprint, load_json, make_folder, read_arrays, write_arrays, write_json
from spkbase.runs import Depends, Draft, Run, Stage, resumed_map
from spkbase.seeding import stream
from spkbase.showing import one_line
from spkbase.work import chunks
from spkver.anonymization import INVERSES, AnonymizerConfig, Inverse, recorded_anonymizer, undo_datadir
from spkver.attackers.protocol import Attack, Background, Place
from spkver.attackers.sessions import choose_utterances
from spkver.attackers.warp_estimation import (
    WarpEstimator,
    fit_warp_estimator,
    mean_spectrum,
    read_warp_estimator,
    warp_cues,
    write_warp_estimator,
)
from spkver.audio import read_audio
from spkver.datadir import DataDir

VERSION = 1
"""Of all that is done here: scores of another one are not taken up."""
FOLDS = 5
"""Of background speakers."""
LEAST = 10
"""Recordings of a background that an estimator can be learnt from."""

_DRAWS, _MOST_DRAWS = 1200, 6  # own draws that are aimed at, and of one recording
_KEY = 8  # digits of a key
_MOST = 4000  # background recordings that are undone; attackers learn from no more
_BATCH = 8
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


def known_anonymizer(background: Background) -> Known | None:
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
    pairs = (
        [shared[place] for place in sorted(set(np.linspace(0, len(shared) - 1, _PAIRS).astype(int)))] if shared else []
    )
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


def why_not(attack: Attack) -> str:
    """Return why the speech of an attack cannot be undone, or nothing."""
    background = attack.background
    if background is None or not background.anonymised:
        return "there is no anonymised background"
    original = background.original
    if len(original) < LEAST or len(set(original.speakers.values())) < 2:
        n_speakers = len(set(original.speakers.values()))
        text = f"a background of {len(original)} recordings of {n_speakers} speakers"
        return f"{text} is too small to learn from: at least {LEAST} of 2"
    if shared := {*attack.enrolment.speakers.values()} & {*original.speakers.values()}:
        return f"{len(shared)} speakers of the background are among those that are enrolled"
    if known_anonymizer(background) is None:
        kinds = ", ".join(INVERSES)
        return f"nothing inverts what made {background.anonymised[0].name} ({kinds} can be undone); try -aligned"
    return ""


@one_line
@dataclass(frozen=True, eq=False)
class Undoing:
    """Undoes the speech of attacks with one background.

    Attributes
    ----------
    background : Background
    place : Place
    """

    background: Background
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
        """What tells the number of a recording; learnt when its value is asked for."""
        original, known, seed = self.background.original, self.known, self.place.seed
        chosen = choose_utterances(original.speakers, limit=_DRAWS // 2, seed=seed)
        draws = min(_MOST_DRAWS, max(2, -(-_DRAWS // len(chosen))))
        recordings = {name: Path(original.recordings[name]) for name in sorted(chosen)}
        what = known.inverse.anonymizer, known.bounds

        def draw(draft: Draft) -> None:
            work = partial(_drawn_cues, what=what, draws=draws, seed=seed)
            journal = {"journal": draft.folder / "cues.journal", "fingerprint": draft.fingerprint}
            results = _arrays_of(work, recordings, journal, self.place.jobs)
            arrays = {name: np.concatenate([result[name] for result in results]) for name in ("cues", "values")}
            write_arrays(draft.path, arrays, attributes=draft.attributes)

        cues = self.run.stage(
            "own draws of the background",
            "cues.h5",
            make=draw,
            read=lambda path: read_arrays(path, "cues", "values"),
            depends=Depends(inputs=[VERSION, what, draws, seed], sources=recordings, libraries=_LIBRARIES),
        )

        def learn(draft: Draft) -> None:
            table = cues.value
            folds = self.folds([original.speakers[name] for name in recordings for _ in range(draws)])
            bounds = known.inverse.bounds(known.bounds)
            estimator = fit_warp_estimator(table["cues"], table["values"], folds, bounds)
            write_warp_estimator(draft.path, estimator, draft.attributes)
            write_json(self.run.path("undoing.json"), self.describe(estimator, len(recordings), draws))

        speakers = sorted(original.speakers.items())
        return self.run.stage(
            "estimator of the warp",
            "estimator.h5",
            make=learn,
            read=read_warp_estimator,
            depends=Depends(inputs=[VERSION, speakers, seed], after=[cues], libraries=("numpy", "scipy")),
            also=("undoing.json",),
        )

    def describe(self, estimator: WarpEstimator, n_recordings: int, draws: int) -> dict[str, Any]:
        """Return what the estimator is and how well it does, for ``undoing.json``."""
        known = self.known
        return {
            "anonymizer": known.inverse.anonymizer,
            "parameter": known.inverse.parameter,
            "range": list(known.bounds),
            "known_by": known.by,
            "recordings": n_recordings,
            "speakers": len(set(self.background.original.speakers.values())),
            "draws_of_each": draws,
            "cues": estimator.cues,
            "kernel": "linear" if not estimator.width else "Gaussian",
            "width": estimator.width,
            "ridge": estimator.ridge,
            "folds": FOLDS,
            "rmse": estimator.rmse,
            "spread": estimator.spread,
        }

    def numbers(self, directory: DataDir) -> dict[str, float]:
        """Guess the number of each recording; where a speaker has one number, it is the mean of the guesses.

        Whose the tested recordings are an attacker isn't told: each is a speaker of its own, and has its own guess.
        """
        recordings = {name: Path(path) for name, path in sorted(directory.recordings.items())}
        config = _recorded(directory)
        is_shared = config is not None and config.level == "speaker"
        speakers = [directory.speakers[name] for name in recordings]
        folds = None
        if set(speakers) <= set(self.background.original.speakers.values()):
            folds = self.folds(speakers)
        estimator = self.estimator

        def make(draft: Draft) -> None:
            journal = {"journal": draft.folder / "cues.journal", "fingerprint": draft.fingerprint}
            results = _arrays_of(_cues_of, recordings, journal, self.place.jobs)
            values = estimator.value.estimate(np.concatenate([result["cues"] for result in results]), folds)
            if is_shared:
                _, people = np.unique(speakers, return_inverse=True)
                values = (np.bincount(people, values) / np.bincount(people))[people]
            write_json(draft.path, dict(zip(recordings, values.tolist(), strict=True)))

        sides = [list(recordings), speakers, is_shared, None if folds is None else folds.tolist()]
        stage = self.run.stage(
            f"numbers of {self._label(directory)}",
            f"numbers/{self._label(directory)}.json",
            make=make,
            read=load_json,
            depends=Depends(inputs=[VERSION, sides], after=[estimator], sources=recordings, libraries=_LIBRARIES),
        )
        return {name: float(value) for name, value in stage.value.items()}

    def folds(self, speakers: Sequence[str]) -> NDArray[np.int64]:
        """Return the folds of background speakers."""
        known = sorted(set(self.background.original.speakers.values()))
        fold = dict(zip(known, speaker_folds(known, FOLDS, seed=self.place.seed).tolist(), strict=True))
        return np.array([fold[speaker] for speaker in speakers], np.int64)

    def undone(self, directory: DataDir) -> DataDir:
        """Return the undone twin of an anonymised data directory, below ``data/``; what is there is taken up.

        Recordings of the background are those of its undone versions, as the folds of a fusion have them.
        """
        if directory not in self._undone and directory in self._parts:
            self._undone[directory] = self._made(directory)
        elif directory not in self._undone:
            paths = set(directory.recordings.values())
            known = {path for version in self.background.anonymised for path in version.recordings.values()}
            selected = self.selected(directory) if paths <= known else None
            is_whole = selected is not None and len(selected) == len(directory)
            self._undone[directory] = selected if selected is not None and is_whole else self._made(directory)
        return self._undone[directory]

    def selected(self, directory: DataDir) -> DataDir:
        """Return the same recordings of the undone background; of a large one those that it has."""
        undone = {
            version.recordings[name]: path
            for version, twin in zip(self.background.anonymised, self.undone_background, strict=True)
            for name, path in twin.recordings.items()
        }
        recordings = {name: undone[path] for name, path in directory.recordings.items() if path in undone}
        speakers = {name: directory.speakers[name] for name in recordings}
        enrolls = None if directory.enrolls is None else tuple(name for name in directory.enrolls if name in recordings)
        path = directory.path.with_name(f"{directory.name}-undone")
        return replace(directory, path=path, recordings=recordings, speakers=speakers, enrolls=enrolls)

    def _made(self, directory: DataDir) -> DataDir:
        target = self.place.output / "data" / f"{self._label(directory)}-undone"
        name, numbers = self.known.inverse.anonymizer, self.numbers(directory)
        return undo_datadir(directory, target, name, numbers, jobs=self.place.jobs, force=self.place.force)

    def _label(self, directory: DataDir) -> str:
        """Name of a directory; the sides of folds, which bear that of the background, are told apart by their ids."""
        name = directory.path.resolve().name
        versions = {version.path.resolve().name for version in self.background.anonymised}
        is_side = name in versions and directory not in self._parts
        return f"{name}-{fingerprint(sorted(directory.recordings))[:_KEY]}" if is_side else name

    @cached_property
    def _parts(self) -> tuple[DataDir, ...]:
        """The versions of the background; of a large one a part, evenly over the speakers."""
        versions, speakers = self.background.anonymised, self.background.original.speakers
        limit = -(-_MOST // len(versions))
        chosen = set(choose_utterances(speakers, limit=limit, seed=self.place.seed))
        return tuple(version if len(chosen) == len(speakers) else _part(version, chosen) for version in versions)

    @cached_property
    def undone_background(self) -> tuple[DataDir, ...]:
        """The undone versions of the background, or of its part."""
        return tuple(map(self.undone, self._parts))


def _part(directory: DataDir, chosen: set[str]) -> DataDir:
    recordings = {name: path for name, path in directory.recordings.items() if name in chosen}
    return replace(directory, recordings=recordings, speakers={name: directory.speakers[name] for name in recordings})


Arrays = dict[str, NDArray[np.float64]]
Recordings = Sequence[tuple[str, Path]]


def _arrays_of(
    work: Callable[[Recordings], Arrays], recordings: Mapping[str, Path], journal: Mapping[str, Any], jobs: int | None
) -> list[Arrays]:
    """Apply a function to batches of recordings; what is done outlives a crash."""
    batches = chunks(list(recordings.items()), _BATCH)
    return list(
        resumed_map(
            work,
            batches,
            **journal,
            pack=lambda arrays: (arrays, None),
            unpack=lambda arrays, _: arrays,
            jobs=jobs,
            description="how far speech is warped",
            sizes=[*map(len, batches)],
        )
    )


def _cues_of(recordings: Recordings) -> Arrays:
    return {"cues": np.stack([warp_cues(*read_audio(path)) for _, path in recordings])}


def _drawn_cues(recordings: Recordings, *, what: tuple[str, tuple[float, float]], draws: int, seed: int) -> Arrays:
    """Cues and numbers of own draws of some recordings, one recording after the other."""
    inverse, bounds = INVERSES[what[0]], what[1]
    cues, values = [], []
    for name, path in recordings:
        samples, rate = read_audio(path)
        generator = stream(seed, "undoing", name)
        numbers = [inverse.draw(bounds, generator) for _ in range(draws)]
        for output in inverse.apply([samples] * draws, [rate] * draws, numbers):
            if isinstance(output, DataError):
                raise DataError(f"utterance {name!r}: {output.text}", file=path, remedy=output.remedy)
            cues.append(warp_cues(output, rate))
        values += numbers
    return {"cues": np.stack(cues), "values": np.array(values)}
