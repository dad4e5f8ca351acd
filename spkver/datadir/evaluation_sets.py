"""The sets of an evaluation, made of one data directory and its anonymised twin, and written only where that is safe.

`split_for_evaluation` decides everything in memory: which utterances take part, the split, and the same split of the
twin. `EvaluationSets.write` refuses a folder that holds another split, or other data under the same names: parts of two
splits side by side would share speakers between training and test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from spkbase.errors import ConfigError, DataError, counted, few
from spkbase.files import load_json, read_id_list, write_json
from spkbase.showing import one_line
from spkver.datadir.directory import DataDir, write_datadir
from spkver.datadir.splitting import (
    Split,
    SplitRules,
    check_suffix,
    drop_missing,
    split_datadir,
    twin_of_split,
)

RECORD = "split.json"
"""The file that records how the sets of a folder were made."""


@one_line
@dataclass(frozen=True, eq=False)
class EvaluationSets:
    """The sets of an evaluation, which `write` writes.

    Attributes
    ----------
    folder : Path
        Folder of the data directories.
    source : str
        Name of the data directory that was split.
    rules : SplitRules
        Rules of the split.
    original : Split
        The sets of original speech.
    anonymised : Split or None
        The same sets of the twin.
    left_out : tuple of str
        Utterances that the twin lacks.
    """

    folder: Path
    source: str
    rules: SplitRules
    original: Split
    anonymised: Split | None = None
    left_out: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the reader of the results."""
        notes = list(self.original.notes)
        if self.anonymised is not None:
            notes += self.anonymised.notes
        if self.left_out:
            text = f"left out: {counted(len(self.left_out), 'utterance')} that the twin lacks"
            notes.append(f"{text} ({few(self.left_out, repr)})")
        return tuple(notes)

    def parts(self) -> Iterator[DataDir]:
        """Yield all data directories, those of original speech first."""
        yield from self.original.parts()
        if self.anonymised is not None:
            yield from self.anonymised.parts()

    def to_dict(self) -> dict[str, Any]:
        """Return the record of the split, which ``split.json`` holds."""
        record: dict[str, Any] = {
            "about": "a data directory split by spkver split",
            "source": self.source,
            "rules": asdict(self.rules),
            "training": sorted(set(self.original.training.speakers.values())),
            "enrolment": list(self.original.enrolls.enrolls or ()),
            "trials": {sex: sorted(part.speakers) for sex, part in self.original.trials.items()},
        }
        if self.left_out:
            record["left_out"] = list(self.left_out)
        return record

    def check_folder(self) -> None:
        """Check that the folder holds no other split and no conflicting data.

        Raises
        ------
        DataError
            If it holds another split, or a data directory of one of these names that lists other recordings.
        """
        record = self.folder / RECORD
        if record.is_file():
            is_other = load_json(record) != self.to_dict()
        else:
            is_other = any(part.path.exists() for part in self.original.parts())
        if is_other:
            remedy = "choose another --output, or remove what is there"
            raise DataError(
                "another split, or other data, already exists there",
                file=self.folder,
                remedy=remedy,
            )
        for part in self.parts():
            listed = part.path / "wav.scp"
            if not listed.is_file():
                continue
            recordings = {
                utterance: str(path.absolute()) for utterance, path in part.recordings.items()
            }
            if read_id_list(listed, "utterance path", rest=True) != recordings:
                remedy = "choose another --suffix or --output, or remove this folder"
                raise DataError(
                    "lists other recordings, such as those of another twin",
                    file=part.path,
                    remedy=remedy,
                )

    def write(self) -> None:
        """Write all data directories and the record, after `check_folder`."""
        self.check_folder()
        for part in self.parts():
            write_datadir(part)
        write_json(self.folder / RECORD, self.to_dict())


def split_for_evaluation(
    source: DataDir,
    output: str | Path,
    *,
    twin: DataDir | None = None,
    suffix: str | None = None,
    name: str = "",
    rules: SplitRules | None = None,
    missing: Literal["error", "drop"] = "error",
) -> EvaluationSets:
    """Split a data directory, and in the same way its anonymised twin, into training set, enrolment and trials.

    Parameters
    ----------
    source : DataDir
        The data directory to split; see `split_datadir`.
    output : path
        Folder of the new data directories; nothing is written before `EvaluationSets.write`.
    twin : DataDir, optional
        The same utterances, anonymised.
    suffix : str, optional
        Suffix of the names of the anonymised sets, such as ``_mcadams``; required with `twin`.
    name : str
        Beginning of the names of all sets; by default the name of the source.
    rules : SplitRules, optional
        How the speakers and their utterances are drawn.
    missing : {"error", "drop"}
        What to do with utterances that the twin lacks: an error, or leave them out on both sides.

    Returns
    -------
    EvaluationSets
        `EvaluationSets.to_dict` gives the contents of ``split.json``.

    Raises
    ------
    ConfigError
        If only one of twin and suffix is given, `missing` is "drop" without a twin, or a name does not fit.
    DataError
        As in `split_datadir` and `twin_of_split`.
    """
    if (twin is None) != (suffix is None):
        raise ConfigError(
            "expected an anonymised data directory together with a suffix for its sets"
        )
    if missing not in ("error", "drop"):
        raise ConfigError(f"expected missing to be 'error' or 'drop', got {missing!r}")
    if missing == "drop" and twin is None:
        raise ConfigError("missing='drop' needs a twin: utterances that it lacks are left out")
    if suffix is not None:
        check_suffix(suffix)
    rules = rules or SplitRules()
    left_out: list[str] = []
    if twin is not None and missing == "drop":
        source, left_out = drop_missing(source, twin)
    original = split_datadir(source, output, name or source.name, rules)
    anonymised = None
    if twin is not None and suffix is not None:
        anonymised = twin_of_split(original, twin, suffix)
    return EvaluationSets(Path(output), source.name, rules, original, anonymised, tuple(left_out))
