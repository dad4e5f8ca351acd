"""An experiment's lists as files: the folder ``task`` of SIDEKIT's tutorial, or the one that a recipe wrote.

Files are named as SIDEKIT's ``rsr2015_init`` names them, ``3sesspwd_eval_m_trn.h5`` and so on, or the same with
``.txt``; ``ubm_list.txt`` has a recording a line. A list whose file is not there is made from the corpus, as without a
folder. Ids of recordings may carry the sex's folder in front and an extension behind, as SIDEKIT's script leaves them
with newer versions of pandas.

SIDEKIT's key knows target and nontarget trials alone. The ids tell the types: ``m101_001`` is a speaker with a
sentence, ``m101/m101_02_001`` a speaker, a session and a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.formats import read_key, read_trials
from evaluation.trials import Key
from spkbase.errors import DataError, Problems, few
from spkbase.files import read_text_bytes
from spkver.corpora.rsr2015_keys import TRIAL_TYPES, Enrolment, TrialList, segment_id
from spkver.idmap import IdMap
from spkver.sidekit import read_idmap_with_lines

Value = TypeVar("Value")
Places = Mapping[str, tuple[Path, int | None]]

UBM_LIST = "ubm_list.txt"
N_FILES = 7  # of a whole folder
_SPOKEN = re.compile(r"^([mf]\d{3})(?:/\1_\d{2})?_(\d{3})$")


@dataclass(frozen=True)
class ListFiles:
    """What a folder of lists holds; None for a list whose file is not there.

    Attributes
    ----------
    enrolment : (path, list of Enrolment), optional
    trials : (path, TrialList), optional
    background, nap : IdMap, optional
        (speaker, recording).
    ubm : tuple of str, optional
    places : dict of str to (path, line)
        Where each recording of the background, the NAP and the UBM list stands first.
    names : tuple of str
        The files that were read.
    """

    enrolment: tuple[Path, list[Enrolment]] | None = None
    trials: tuple[Path, TrialList] | None = None
    background: IdMap | None = None
    nap: IdMap | None = None
    ubm: tuple[str, ...] | None = None
    places: Places = field(default_factory=dict)
    names: tuple[str, ...] = ()


def list_stems(partition: str, gender: str) -> dict[str, str]:
    """Return the name of the file of each list, without its extension.

    Examples
    --------
    >>> list_stems("eval", "m")["enrolment"], list_stems("dev", "f")["key"]
    ('3sesspwd_eval_m_trn', '3sess-pwd_dev_f_key')
    """
    name = f"{partition}_{gender}"
    others = {"test": "test", "background": "back", "nap": "nap", "key": "key", "trials": "ndx"}
    return {"enrolment": f"3sesspwd_{name}_trn"} | {
        kind: f"3sess-pwd_{name}_{ending}" for kind, ending in others.items()
    }


def read_list_files(
    folder: str | Path,
    partition: str,
    gender: str,
    types: tuple[Sequence[str], Sequence[str]],
    problems: Problems,
) -> ListFiles:
    """Read the lists that a folder holds; all that is wrong with them becomes problems.

    Parameters
    ----------
    folder : path
    partition : {"eval", "dev"}
    gender : {"m", "f"}
    types : (sequence of str, sequence of str)
        Types of the trials that count as target and as nontarget.
    problems : Problems
        Takes files that are broken, ids of the other sex, models of several speakers, labels against the types of the
        trials, trials that are not those of the key, and a folder that holds no list.

    Returns
    -------
    ListFiles
    """
    folder = Path(folder)
    stems = list_stems(partition, gender)
    there = {kind: path for kind, stem in stems.items() if (path := _file_of(folder, stem)) is not None}
    if (folder / UBM_LIST).is_file():
        there["ubm"] = folder / UBM_LIST
    if not {*there} - {"test", "trials"}:
        expected = ", ".join([*(f"{stem}.h5" for stem in stems.values()), UBM_LIST])
        what = "holds none of the lists" if folder.is_dir() else "no such folder"
        problems.add(f"{what}: expected {expected}", file=folder, remedy="check lists.folder, partition and gender")
        return ListFiles()
    maps = {
        kind: noted
        for kind in ("enrolment", "test", "background", "nap")
        if kind in there and (noted := _noted(problems, _read_map, there[kind])) is not None
    }
    key = _noted(problems, read_key, there["key"]) if "key" in there else None
    trials = None
    if key is not None:
        trials = _typed_trials(there["key"], key, types, problems)
        _check_same_trials(there, key, problems)
        _check_tests(there, trials, maps.get("test"), problems)
    places: dict[str, tuple[Path, int | None]] = {}
    ubm = _read_ubm_list(there["ubm"], places, problems) if "ubm" in there else None
    for kind in ("background", "nap"):
        if kind in maps:
            for segment, line in zip(maps[kind][0].segments, maps[kind][1], strict=True):
                places.setdefault(segment, (there[kind], line))
    enrolled = _enrolled(there["enrolment"], *maps["enrolment"], problems) if "enrolment" in maps else None
    found = ListFiles(
        enrolment=None if enrolled is None else (there["enrolment"], enrolled),
        trials=None if trials is None else (there["key"], trials),
        background=maps["background"][0] if "background" in maps else None,
        nap=maps["nap"][0] if "nap" in maps else None,
        ubm=ubm,
        places=places,
        names=tuple(path.name for path in there.values()),
    )
    _check_sex(found, gender, problems)
    return found


def _file_of(folder: Path, stem: str) -> Path | None:
    return next((path for end in (".h5", ".txt") if (path := folder / f"{stem}{end}").is_file()), None)


def _noted(problems: Problems, read: Callable[[Path], Value], path: Path) -> Value | None:
    """Read a file; what is wrong with it becomes a problem."""
    try:
        return read(path)
    except DataError as error:
        problems.note(error if error.file is not None else DataError(error.text, file=path, remedy=error.remedy))
        return None


def _read_map(path: Path) -> tuple[IdMap, list[int | None]]:
    """Read a map with the plain ids of recordings, and the line of each row."""
    idmap, lines = read_idmap_with_lines(path)
    if not len(idmap):
        raise DataError("holds no rows", file=path, remedy="write the list again")
    parts = np.flatnonzero((idmap.start != -1) | (idmap.stop != -1))
    if len(parts):
        row = int(parts[0])
        raise DataError(
            f"row {row} means a part of recording {idmap.segments[row]!r}, frames {idmap.start[row]} to "
            f"{idmap.stop[row]}: expected whole recordings",
            file=path,
            line=lines[row] if lines else None,
            remedy="leave start and stop out, or cut the recordings",
        )
    plain = replace(idmap, segments=np.array([segment_id(name) for name in idmap.segments], object))
    return plain, [*lines] if lines else [None] * len(idmap)


def _read_ubm_list(path: Path, places: dict[str, tuple[Path, int | None]], problems: Problems) -> tuple[str, ...]:
    """Read a recording a line; the last line may end with a line break or without."""
    try:
        text = read_text_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        problems.add("is not UTF-8 text", file=path, remedy="save it as UTF-8")
        return ()
    except DataError as error:
        problems.note(error)
        return ()
    first: dict[str, int] = {}
    for line, content in enumerate(text.split("\n"), 1):
        segment = segment_id(content.strip())
        if not segment:
            continue
        if len(segment.split()) > 1:
            problems.add(f"expected the id of a recording, found {content[:100]!r}", file=path, line=line)
        elif segment in first:
            text = f"recording {segment!r} for the second time, first in line {first[segment]}"
            problems.add(text, file=path, line=line, remedy="remove one of the two lines")
        else:
            first[segment] = line
            places.setdefault(segment, (path, line))
    if not first:
        problems.add("holds no recordings", file=path, remedy="write the list again")
    return tuple(first)


def _enrolled(path: Path, idmap: IdMap, lines: list[int | None], problems: Problems) -> list[Enrolment]:
    """Return the models of an enrolment list in the order of their first rows; each must be of one speaker."""
    rows = []
    for model, of_model in idmap.rows_of_models().items():
        segments = tuple(idmap.segments[of_model])
        line = lines[of_model[0]]
        speakers = sorted({segment.split("/")[0] for segment in segments})
        if len(speakers) > 1:
            problems.add(
                f"model {model!r} is enrolled by recordings of several speakers: {few(speakers)}",
                file=path,
                line=line,
                remedy="enrol each model by one speaker",
            )
        rows.append(Enrolment(model, segments, line or 0))
    return rows


def _typed_trials(
    path: Path, key: Key, types: tuple[Sequence[str], Sequence[str]], problems: Problems
) -> TrialList | None:
    """Return the trials of the chosen types, which the ids tell; labels that say otherwise are problems."""
    target, nontarget = types
    segment_ids = np.array([segment_id(name) for name in key.segment_ids], object)
    kinds = trial_types(key.model_ids, segment_ids, key.models, key.segments)
    if (kinds < 0).any():
        if len(target) > 1 or len(nontarget) > 1:
            row = int(np.argmax(kinds < 0))
            problems.add(
                f"the ids of trial {key.model_ids[key.models[row]]} {segment_ids[key.segments[row]]} do not tell its "
                "type, and a key has target and nontarget trials alone",
                file=path,
                remedy="name one type each in trials.target and trials.nontarget",
            )
            return None
        codes = [TRIAL_TYPES.index(names[0]) for names in (nontarget, target)]
        kinds = np.array(codes, np.int8)[key.is_target.astype(np.int64)]
    for names, label in ((nontarget, True), (target, False)):
        wrong = np.flatnonzero((key.is_target == label) & np.isin(kinds, [TRIAL_TYPES.index(name) for name in names]))
        if len(wrong):
            row = int(wrong[0])
            problems.add(
                f"{len(wrong)} trials are {'target' if label else 'nontarget'} in the key, but of type "
                f"{TRIAL_TYPES[kinds[row]]} by their ids: {key.model_ids[key.models[row]]} "
                f"{segment_ids[key.segments[row]]} first",
                file=path,
                remedy="check the key, or trials.target and trials.nontarget",
            )
    chosen = np.isin(kinds, [TRIAL_TYPES.index(name) for name in (*target, *nontarget)])
    models, model_codes = np.unique(key.model_ids[key.models[chosen]].astype(str), return_inverse=True)
    segments, segment_codes = np.unique(segment_ids[key.segments[chosen]].astype(str), return_inverse=True)
    return TrialList(
        tuple(models.tolist()),
        tuple(segments.tolist()),
        model_codes.astype(np.int32),
        segment_codes.astype(np.int32),
        kinds[chosen].astype(np.int8),
        np.zeros(int(chosen.sum()), np.int64),
    )


def trial_types(
    model_ids: NDArray[Any], segment_ids: NDArray[Any], models: NDArray[Any], segments: NDArray[Any]
) -> NDArray[np.int8]:
    """Return the type of each trial by its ids, as an index into `TRIAL_TYPES`; -1 where an id does not tell.

    Examples
    --------
    >>> models, segments = np.array(["m101_001"], object), np.array(["m101/m101_02_003", "m102/m102_02_001"], object)
    >>> [TRIAL_TYPES[kind] for kind in trial_types(models, segments, np.array([0, 0]), np.array([0, 1]))]
    ['TW', 'IC']
    """
    spoken = [[_SPOKEN.match(name) for name in ids] for ids in (model_ids, segment_ids)]
    speakers, sentences = (
        [np.array([match.group(part) if match else "" for match in side], object) for side in spoken] for part in (1, 2)
    )
    is_impostor = speakers[0][models] != speakers[1][segments]
    is_wrong = sentences[0][models] != sentences[1][segments]
    unknown = (speakers[0][models] == "") | (speakers[1][segments] == "")
    return np.where(unknown, -1, 2 * is_impostor + is_wrong).astype(np.int8)


def _check_same_trials(there: Mapping[str, Path], key: Key, problems: Problems) -> None:
    """Compare the list of trials with the key, where both are there."""
    trials = _noted(problems, read_trials, there["trials"]) if "trials" in there else None
    if trials is None:
        return
    listed, keyed = set(trials.pairs()), set(key.pairs())
    for pairs, has, lacks in ((listed - keyed, "trials", "key"), (keyed - listed, "key", "trials")):
        if pairs:
            names = few([" ".join(pair) for pair in sorted(pairs)])
            text = f"{len(pairs)} trials are not in {there[lacks].name}: {names}"
            problems.add(text, file=there[has], remedy="write the two again from one list")


def _check_tests(
    there: Mapping[str, Path],
    trials: TrialList | None,
    tests: tuple[IdMap, list[int | None]] | None,
    problems: Problems,
) -> None:
    absent = sorted(set(trials.segment_ids) - set(tests[0].segments)) if trials is not None and tests else []
    if absent:
        text = f"{len(absent)} recordings of the key are not in the list: {few(absent)}"
        problems.add(text, file=there["test"], remedy="write it again from the key")


def _check_sex(found: ListFiles, gender: str, problems: Problems) -> None:
    """Note recordings of the other sex, the first of each file."""
    where: dict[str, tuple[Path, int | None]] = dict(found.places)
    if found.enrolment is not None:
        path, rows = found.enrolment
        where.update({segment: (path, row.line or None) for row in rows for segment in row.segments})
    if found.trials is not None:
        where.update(dict.fromkeys(found.trials[1].segment_ids, (found.trials[0], None)))
    others: dict[Path, list[str]] = {}
    for segment, (path, _) in where.items():
        match = re.match(r"([mf])\d{3}/", segment)
        if match and match.group(1) != gender:
            others.setdefault(path, []).append(segment)
    for path, segments in others.items():
        problems.add(
            f"{len(segments)} recordings are of the other sex than gender {gender!r}: {few(segments)}",
            file=path,
            line=where[segments[0]][1],
            remedy="check gender, or the list",
        )
