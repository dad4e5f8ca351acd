"""A data directory in memory, and how it is written.

=============  ===================================================================
wav.scp        ``utterance path``
utt2spk        ``utterance speaker``
spk2utt        ``speaker utterance ...``
spk2gender     ``speaker f|m``
enrolls        ``utterance``, a line for each one to enrol
trials         ``speaker utterance target|nontarget``
=============  ===================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.formats import write_text_list
from evaluation.trials import Key
from spkbase.errors import DataError, Problems
from spkbase.files import write_text
from spkver.idmap import IdMap

# the last two are Common Voice's
_WORDS = "f m female male feminine masculine female_feminine male_masculine"
SEXES = {word: word[0] for word in _WORDS.split()}
_LONGEST_ID = 200  # bytes; file names hold 255, including an extension and a temporary prefix
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f/\\]")


@dataclass(frozen=True, eq=False)
class DataDir:
    """A data set: recordings, speakers, sexes, enrolment and trials.

    Attributes
    ----------
    path : Path
        The folder.
    recordings : dict of str to Path
        Utterance to audio file, in the order of ``wav.scp``. The order matters only where the coefficients of the
        VoicePrivacy Challenge 2024 are drawn along it.
    speakers : dict of str to str
        Utterance to speaker.
    sexes : dict of str to str
        Speaker to "f" or "m"; empty if there is no ``spk2gender``.
    enrolls : tuple of str or None
        Utterances to enrol with; None if there is no such list.
    trials : Key or None
        Trials of the folder's utterances, in which models are speakers; None if there is no such list.
    version_of : dict of str to str
        Utterances that are further anonymised versions of another utterance, see `with_versions`.
    """

    path: Path
    recordings: dict[str, Path] = field(repr=False)
    speakers: dict[str, str] = field(repr=False)
    sexes: dict[str, str] = field(default_factory=dict, repr=False)
    enrolls: tuple[str, ...] | None = field(default=None, repr=False)
    trials: Key | None = field(default=None, repr=False)
    version_of: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Name of the folder, which is also the name of the set."""
        return self.path.resolve().name

    def __len__(self) -> int:
        return len(self.recordings)

    def by_speaker(self) -> dict[str, list[str]]:
        """Return the utterances of each speaker; speakers and utterances sorted."""
        utterances: dict[str, list[str]] = {
            speaker: [] for speaker in sorted(set(self.speakers.values()))
        }
        for utterance in sorted(self.speakers):
            utterances[self.speakers[utterance]].append(utterance)
        return utterances


def enrolment(datadir: DataDir) -> IdMap:
    """Return the enrolment: each speaker with the utterances of ``enrolls``, or with all if there is no such list.

    Returns
    -------
    IdMap
        Models are speakers, sorted by speaker and utterance.

    Examples
    --------
    >>> data = DataDir(Path("d"), {}, {"b-1": "b", "a-2": "a", "a-1": "a"}, enrolls=("b-1", "a-2"))
    >>> list(zip(*[enrolment(data).models, enrolment(data).segments]))
    [('a', 'a-2'), ('b', 'b-1')]
    """
    utterances: Iterable[str] = datadir.speakers
    if datadir.enrolls is not None:
        utterances = datadir.enrolls
    return IdMap.from_pairs(
        sorted((datadir.speakers[utterance], utterance) for utterance in utterances)
    )


def with_versions(first: DataDir, others: Sequence[DataDir]) -> DataDir:
    """Return a data directory with further anonymised versions of its utterances, enrolled if the originals are."""
    if not others:
        return first
    recordings = dict(first.recordings)
    speakers = dict(first.speakers)
    version_of = {}
    for number, other in enumerate(others, 2):
        for utterance in first.recordings:
            name = f"{utterance}-version{number}"
            recordings[name] = other.recordings[utterance]
            speakers[name] = first.speakers[utterance]
            version_of[name] = utterance
    enrolls = first.enrolls
    if enrolls is not None:
        listed = set(enrolls)
        enrolls = (
            *enrolls,
            *(name for name, utterance in version_of.items() if utterance in listed),
        )
    path = first.path.with_name(f"{first.name}-and-{len(others)}")
    return replace(
        first,
        path=path,
        recordings=recordings,
        speakers=speakers,
        enrolls=enrolls,
        version_of=version_of,
    )


def without_labels(datadir: DataDir) -> DataDir:
    """Return only the recordings, each with a separate speaker id, without sexes, enrolment and trials."""
    return DataDir(
        datadir.path, datadir.recordings, {utterance: utterance for utterance in datadir.recordings}
    )


def write_datadir(datadir: DataDir) -> None:
    """Write the lists of a data directory to its `path`, sorted as Kaldi requires (by bytes), ``wav.scp`` last.

    The audio is not moved; ``wav.scp`` has absolute paths. If the audio is in the directory, it has the paths of the
    VoicePrivacy Challenge, ``data/<set>/wav/x.wav``, so that the directory can be moved. Files of lists that the data
    directory lacks are removed.

    Raises
    ------
    DataError
        With all problems: an id or a path that a list cannot hold, utterances without a speaker or audio, an empty set;
        or the folder cannot be written.
    """
    _check_writable(datadir)
    folder = datadir.path
    base = folder.absolute()
    entries = {}
    for utterance, path in datadir.recordings.items():
        entries[utterance] = path.absolute()
        if entries[utterance].is_relative_to(base):
            entries[utterance] = entries[utterance].relative_to(base.parent.parent)
    enrolls = None
    if datadir.enrolls is not None:
        enrolls = "".join(f"{utterance}\n" for utterance in sorted(datadir.enrolls))
    lists = {
        "utt2spk": _lines(datadir.speakers),
        "spk2utt": _lines(
            {speaker: " ".join(utterances) for speaker, utterances in datadir.by_speaker().items()}
        ),
        "spk2gender": _lines(datadir.sexes) or None,
        "enrolls": enrolls,
        "wav.scp": _lines(entries),
    }
    if datadir.trials is None:
        (folder / "trials").unlink(missing_ok=True)
    else:
        write_text_list(folder / "trials", datadir.trials)
    for name, text in lists.items():
        if text is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_text(folder / name, text)


def file_stem(identifier: str) -> str:
    """Return the name, without extension, of a file for an id; a slash, which names cannot contain, is written as in
    URLs.

    Examples
    --------
    >>> file_stem("id10270/x6u/00001"), id_of_stem("id10270%2Fx6u%2F00001")
    ('id10270%2Fx6u%2F00001', 'id10270/x6u/00001')
    """
    return identifier.replace("%", "%25").replace("/", "%2F")


def id_of_stem(stem: str) -> str:
    """Return the id of a file's name, see `file_stem`."""
    return stem.replace("%2F", "/").replace("%25", "%")


def wav_file(folder: Path, utterance: str) -> Path:
    """Return the file of an utterance in a folder of our own: ``wav/<utterance>.wav``."""
    return folder / "wav" / f"{file_stem(utterance)}.wav"


def unfit_id(identifier: str) -> str | None:
    """Return why an id cannot be the name of a file or folder; None if it can.

    Examples
    --------
    >>> unfit_id("1998-15444-0003"), unfit_id("../x")
    (None, 'holds a path separator')
    """
    if not identifier:
        return "is empty"
    unfit = _UNFIT.search(identifier)
    if unfit:
        if unfit[0] in "/\\":
            return "holds a path separator"
        return "holds white space or control characters"
    if identifier.startswith("."):
        return "starts with a point: it would name a hidden file or a folder above"
    if len(identifier.encode("utf-8", "surrogatepass")) > _LONGEST_ID:
        return f"is longer than {_LONGEST_ID} bytes, too long for a file name"
    return None


def check_ids(ids: Iterable[str], file: str | Path | None = None) -> None:
    """Refuse ids that cannot name a file, see `file_stem`; ids with slashes can, unless they lead out of a folder.

    Raises
    ------
    DataError
        With all such ids.
    """
    problems = Problems(file)
    for identifier in ids:
        unfit = _unfit_for_lists(identifier)
        if unfit is not None:
            problems.add(f"id {identifier!r:.100} {unfit}", remedy="rename it")
    problems.raise_if_any()


def no_folder(path: Path) -> DataError:
    """Return the error of a missing data directory."""
    return DataError(
        "no such folder", file=path, remedy="name a data directory, which holds wav.scp and utt2spk"
    )


def _check_writable(datadir: DataDir) -> None:
    """Raise a DataError with everything that the lists of a data directory cannot hold."""
    problems = Problems(datadir.path)
    if not datadir.recordings:
        problems.add("no utterances", remedy="a data directory holds at least one")
    for identifier in sorted(
        {*datadir.recordings, *datadir.speakers, *datadir.speakers.values(), *datadir.sexes}
    ):
        unfit = _unfit_for_lists(identifier)
        if unfit is not None:
            problems.add(f"id {identifier!r} {unfit}", remedy="rename it")
    for utterance in sorted(datadir.recordings.keys() ^ datadir.speakers.keys()):
        lack = "no speaker" if utterance in datadir.recordings else "no audio"
        problems.add(f"utterance {utterance!r} has {lack}")
    for path in map(str, datadir.recordings.values()):
        if re.search(r"[\n\r\0]", path) or path != path.strip() or path.endswith("|"):
            problems.add(f"path {path!r} cannot be written to wav.scp", remedy="rename the file")
    problems.raise_if_any()


def _unfit_for_lists(identifier: str) -> str | None:
    if all(part and not part.startswith(".") for part in identifier.split("/")):
        return unfit_id(file_stem(identifier))
    return unfit_id(identifier)


def _lines(values: Mapping[str, object]) -> str:
    # code points have the same order as their bytes in UTF-8
    return "".join(f"{key} {values[key]}\n" for key in sorted(values))
