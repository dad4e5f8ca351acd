"""RSR2015 part 1: from the corpus folder to the lists of the verification protocol.

Conventions
-----------
The folder holds ``sph/{male,female}/m001/m001_01_001.sph`` (speaker, session, sentence; ``.wav`` and ``.flac`` beside
or instead of ``.sph``), ``key/part1/trn/3sesspwd_eval_m.trn`` and ``key/part1/ndx/3sess-pwd_eval_m.ndx``. A recording's
id is ``m001/m001_01_001``. A model is a speaker with a sentence, ``m101_001``. Trials have one of four types: target or
impostor speaker (T, I) with the correct or a wrong sentence (C, W).

Everything is checked before anything is returned, and all problems are reported at once.

References
----------
A. Larcher, K. A. Lee, B. Ma, H. Li, "Text-dependent speaker verification: Classifiers, databases and RSR2015",
Speech Communication 60, 2014.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evaluation.trials import Key
from spkbase.errors import ConfigError, DataError, Problems
from spkbase.showing import one_line
from spkver.corpora.rsr2015_files import N_FILES, ListFiles, read_list_files
from spkver.corpora.rsr2015_keys import TRIAL_TYPES, Enrolment, TrialList, read_enrolment, read_trials
from spkver.corpora.rsr2015_recordings import (
    find_recordings,
    scan_recordings,
    speaker_number,
    ubm_list,
    used_recordings,
)
from spkver.idmap import IdMap

logger = logging.getLogger(__name__)

_FOLDERS = {"m": "male", "f": "female"}


@one_line
@dataclass(frozen=True)
class SpeakerRanges:
    """First and last number of the speakers of each part, for either sex (m and f)."""

    background_m: tuple[int, int] = (1, 50)
    background_f: tuple[int, int] = (1, 47)
    dev_m: tuple[int, int] = (51, 100)
    dev_f: tuple[int, int] = (48, 94)
    eval_m: tuple[int, int] = (101, 157)
    eval_f: tuple[int, int] = (95, 143)

    def of(self, part: str, gender: str) -> range:
        """Return the numbers of the speakers of "background", "dev" or "eval"."""
        first, last = getattr(self, f"{part}_{gender}")
        return range(first, last + 1)


@one_line
@dataclass(frozen=True, eq=False)
class Rsr2015:
    """The lists of one experiment.

    Attributes
    ----------
    gender, partition : str
        What they were made for.
    recordings : dict of str -> path
        Every recording that one of the lists names.
    ubm : tuple of str
        All recordings of the background speakers, sorted.
    background : IdMap
        (speaker, recording) drawn from `ubm`, in its order: the negative examples of the SVMs.
    nap : IdMap
        (speaker, recording): every so-many-th of `ubm`.
    enrolment : IdMap
        (model, recording), in the order of the enrolment list.
    test : IdMap
        (recording, recording): what the trials test, sorted.
    key : Key
        The trials, in the order of the trial list, with their types.
    """

    gender: str
    partition: str
    recordings: dict[str, Path] = field(repr=False)
    ubm: tuple[str, ...] = field(repr=False)
    background: IdMap = field(repr=False)
    nap: IdMap = field(repr=False)
    enrolment: IdMap = field(repr=False)
    test: IdMap = field(repr=False)
    key: Key

    def speakers(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the speaker of each model, by its first enrolment recording, and of each recording, by its folder."""
        of_recording = {segment: segment.split("/")[0] for segment in self.recordings}
        first = dict(zip(self.enrolment.models[::-1], self.enrolment.segments[::-1], strict=True))
        return {model: of_recording[first[model]] for model in self.enrolment.unique_models()}, of_recording


@one_line
@dataclass(frozen=True)
class ListOptions:
    """What is chosen of RSR2015's lists, and drawn from them.

    Attributes
    ----------
    gender : {"m", "f"}
        The sexes have separate protocols.
    partition : {"eval", "dev"}
        Which speakers are enrolled and tested.
    target, nontarget : sequence of {"TC", "TW", "IC", "IW"}
        Which trials count as target and as nontarget; trials of other types are left out.
    speakers : SpeakerRanges
        Which speakers are background, dev and eval; the corpus's own division by default.
    background_size : int
        How many background recordings to draw, without replacement.
    nap_step : int
        NAP takes every `nap_step`-th recording of the UBM list, from the first.
    nap_size : int or None
        Only so many of these, evenly spread; all by default.
    sentences : (int, int)
        First and last sentence of the background recordings.
    seed : int
        Seed of the draw; nothing else is random.
    folder : path, optional
        Lists as files, see `spkver.corpora.rsr2015_files`; those whose files are not there are made as without.
    """

    gender: str = "m"
    partition: str = "eval"
    target: Sequence[str] = ("TC",)
    nontarget: Sequence[str] = ("IC",)
    speakers: SpeakerRanges = field(default_factory=SpeakerRanges)
    background_size: int = 200
    nap_step: int = 7
    nap_size: int | None = None
    sentences: tuple[int, int] = (1, 30)
    seed: int = 0
    folder: str | Path | None = None


def read_rsr2015(root: str | Path, options: ListOptions | None = None) -> Rsr2015:
    """Read and check the lists of RSR2015 part 1.

    Parameters
    ----------
    root : path
        Folder that holds ``sph`` and ``key``.
    options : ListOptions, optional

    Returns
    -------
    Rsr2015

    Raises
    ------
    ConfigError
        If an option is not one of those there are.
    DataError
        With all problems of the folder and its lists: missing files, malformed lines, duplicates, models without
        enrolment, ids without a recording, too few background recordings, no trials of a kind.
    """
    root, options = Path(root), options or ListOptions()
    _check_options(options)
    gender, target, nontarget = options.gender, options.target, options.nontarget
    background_speakers = options.speakers.of("background", gender)
    problems = Problems(root)
    if not root.is_dir():
        raise DataError("no such folder", file=root, remedy="name the folder that holds sph and key")
    files = ListFiles()
    if options.folder is not None:
        files = read_list_files(options.folder, options.partition, gender, (target, nontarget), problems)
        rest = "" if len(files.names) == N_FILES else "; the others from the corpus"
        logger.info("lists of %s: %s%s", options.folder, ", ".join(files.names) or "none", rest)
    enrolment_file, trials_file = key_files(root, gender, options.partition)
    if files.enrolment is not None:
        enrolment_file, enrolled = files.enrolment
    else:
        enrolled = read_enrolment(enrolment_file, problems) if _is_there(enrolment_file, problems) else []
    trials: TrialList | None = None
    if files.trials is not None:
        trials_file, trials = files.trials
    else:
        trials = read_trials(trials_file, [*target, *nontarget], problems) if _is_there(trials_file, problems) else None
    scanned = scan_recordings(root / "sph" / _FOLDERS[gender], problems)

    ubm = [*files.ubm] if files.ubm is not None else ubm_list(scanned, background_speakers, options.sentences)
    if scanned and not ubm:
        who, (first, last) = _speaker_names(gender, background_speakers), options.sentences
        problems.add(
            f"no recordings of background speakers {who}, sentences {first:03d} to {last:03d}",
            file=root / "sph" / _FOLDERS[gender],
            remedy="check the folder, or the ranges of speakers",
        )
    if ubm:
        _check_size("background", None if files.background else options.background_size, len(ubm), problems)
        _check_size("nap", None if files.nap else options.nap_size, len(ubm[:: options.nap_step]), problems)
    if trials is not None:
        _check_trials(trials_file, trials, enrolled, target, nontarget, problems)
    used = used_recordings(enrolment_file, enrolled, trials_file, trials)
    _check_leak(used, background_speakers, files, problems)
    recordings = find_recordings(scanned, [*ubm, *files.places], {**files.places, **used}, problems)
    problems.raise_if_any()
    assert trials is not None  # a missing list was a problem
    return Rsr2015(
        gender=gender,
        partition=options.partition,
        recordings=recordings,
        ubm=tuple(ubm),
        background=files.background or _by_speaker(_draw(ubm, options.background_size, options.seed)),
        nap=files.nap or _by_speaker(_spread(ubm[:: options.nap_step], options.nap_size)),
        enrolment=IdMap.from_pairs((row.model, segment) for row in enrolled for segment in row.segments),
        test=IdMap.from_pairs((segment, segment) for segment in trials.segment_ids),
        key=_key(trials, target, nontarget),
    )


def key_files(root: str | Path, gender: str, partition: str) -> tuple[Path, Path]:
    """Return the paths of the enrolment list and of the trial list."""
    folder = Path(root) / "key" / "part1"
    name = f"{partition}_{gender}"
    return folder / "trn" / f"3sesspwd_{name}.trn", folder / "ndx" / f"3sess-pwd_{name}.ndx"


# --- checks ----------------------------------------------------------------------------------------------------------


def _check_options(options: ListOptions) -> None:
    problems = Problems()

    def expect(good: bool, name: str, expected: str, value: object) -> None:
        if not good:
            problems.note(ConfigError(f"{name} should be {expected}, not {value!r}"))

    expect(options.gender in _FOLDERS, "gender", "'m' or 'f'", options.gender)
    expect(options.partition in ("eval", "dev"), "partition", "'eval' or 'dev'", options.partition)
    for name, types in (("trials.target", options.target), ("trials.nontarget", options.nontarget)):
        good = not isinstance(types, str) and len(types) > 0 and set(types) <= set(TRIAL_TYPES)
        expect(good, name, f"a list of types out of {', '.join(TRIAL_TYPES)}", types)
    both = sorted(set(options.target) & set(options.nontarget))
    expect(not both, "trials.nontarget", "types that are not among trials.target", both)
    expect(options.background_size >= 1, "background.size", "1 or more", options.background_size)
    expect(options.nap_step >= 1, "nap.step", "1 or more", options.nap_step)
    expect(options.nap_size is None or options.nap_size >= 1, "nap.size", "1 or more", options.nap_size)
    expect(options.seed >= 0, "seed", "0 or more", options.seed)
    for name, (first, last) in vars(options.speakers).items():
        expect(0 < first <= last, f"speakers.{name}", "first and last number", (first, last))
    problems.raise_if_any()


def _is_there(path: Path, problems: Problems) -> bool:
    if path.is_file():
        return True
    problems.add("no such file", file=path, remedy="check the corpus folder, the partition and the gender")
    return False


def _check_size(name: str, size: int | None, available: int, problems: Problems) -> None:
    if size is not None and size > available:
        problems.note(
            ConfigError(
                f"{name}.size is {size}, but there are only {available} recordings to take from",
                remedy=f"set {name}.size to {available} or less",
            )
        )


def _check_trials(
    path: Path,
    trials: TrialList,
    enrolled: list[Enrolment],
    target: Sequence[str],
    nontarget: Sequence[str],
    problems: Problems,
) -> None:
    for name, types in (("target", target), ("nontarget", nontarget)):
        if not np.isin(trials.types, [TRIAL_TYPES.index(kind) for kind in types]).any():
            problems.add(
                f"no {name} trials (type {', '.join(types)})", file=path, remedy=f"choose other types in trials.{name}"
            )
    known = {row.model for row in enrolled}
    codes, first = np.unique(trials.models, return_index=True)
    for code, row in zip(codes.tolist(), first.tolist(), strict=True):
        if enrolled and trials.model_ids[code] not in known:
            problems.add(
                f"model {trials.model_ids[code]!r} has trials but no enrolment",
                line=int(trials.lines[row]) or None,
                file=path,
                remedy="add it to the enrolment list",
            )


def _check_leak(
    used: Mapping[str, tuple[Path, int | None]], background: range, files: ListFiles, problems: Problems
) -> None:
    """Note background speakers among the tested: a system looks too good on speakers that it was trained on."""
    listed = {segment.split("/")[0] for segment in files.places}
    for segment, (file, line) in used.items():
        in_range = files.ubm is None and speaker_number(segment) in background
        if in_range or segment.split("/")[0] in listed:
            problems.add(
                f"recording {segment!r} is of a background speaker",
                file=file,
                line=line,
                remedy="check the ranges of speakers" if in_range else "check the lists of background recordings",
            )


def _speaker_names(gender: str, numbers: range) -> str:
    return f"{gender}{numbers[0]:03d} to {gender}{numbers[-1]:03d}"


# --- what is drawn and built -----------------------------------------------------------------------------------------


def _draw(ubm: list[str], size: int, seed: int) -> list[str]:
    places = np.random.default_rng(seed).choice(len(ubm), size=size, replace=False)
    return [ubm[row] for row in np.sort(places).tolist()]


def _spread(segments: list[str], size: int | None) -> list[str]:
    if size is None:
        return segments
    return [segments[number * len(segments) // size] for number in range(size)]


def _by_speaker(segments: list[str]) -> IdMap:
    return IdMap.from_pairs((segment.split("/")[0], segment) for segment in segments)


def _key(trials: TrialList, target: Sequence[str], nontarget: Sequence[str]) -> Key:
    names = (*target, *nontarget)
    type_of = np.array([names.index(kind) if kind in names else -1 for kind in TRIAL_TYPES])
    types = type_of[trials.types]
    model_ids, segment_ids = (np.array(ids, dtype=object) for ids in (trials.model_ids, trials.segment_ids))
    return Key(
        model_ids, segment_ids, trials.models, trials.segments, types < len(target), types=types, type_names=names
    )
