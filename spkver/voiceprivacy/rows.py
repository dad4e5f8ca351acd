"""Rows of a plan: strings and numbers that say which attacker scores which list of trials with which speech.

A row names data directories, attackers and other rows; it does not hold them, nor does it say which files exist. The
plan is written to ``plan.csv`` and can be read back.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from spkbase.errors import DataError
from spkbase.files import format_csv, without_formula, write_text
from spkbase.showing import one_line

Kind = Literal["single", "fusion", "conversation", "pooled"]
FoldKind = tuple[str, str]
"""A training set, and the kind of trials that are made of it: "original" or a scenario."""


@one_line
@dataclass(frozen=True)
class Row:
    """A list of trials that an attacker scores.

    Attributes
    ----------
    id : str
        Folder of its scores in the output folder, which names it.
    background : str
        The training set, by the name of its original speech.
    training : str
        The speech that attackers learn from, by VoicePrivacy's name: ``asv_orig`` or ``asv_anon<suffix>``; for a fold,
        its name.
    enrolment, tested : tuple of str
        Data directories, before any inversion: all anonymised versions of the enrolment, and the version that is
        tested; of both sexes, if they are joined.
    trials : str
        Name of the list of trials, below ``lists/`` in the output folder; for a fold, its name.
    scenario : str
        The attacker's scenario, see `evaluation.trials.SCENARIOS`; for a fold, the kind of its trials.
    dataset, gender : str
        Empty for a fold.
    draw : int
        Anonymised version of the tested speech, from 1.
    fold : int
        Fold of background speakers, from 1; 0 for the lists of a set.
    folds : str
        Kind of the folds that the row belongs to, or that the weights of a fusion are learnt from: "original" or a
        scenario.
    kind : {"single", "fusion", "conversation", "pooled"}
        Whether an attacker scores the trials ("single"), or scores of other rows are combined: those of several
        attackers are fused, those of the recordings in a conversation averaged, those of both sexes joined.
    attacker : str
        Name of the attacker or fusion, in folders and tables; empty for a list of trials without an attacker.
    level, content : str
        Level of knowledge, and whether the words are used, see `spkver.voiceprivacy.scores.Scored`.
    inversion : {"", "inverted", "reversed"}
        "inverted": enrolment and test after one estimated inversion; "reversed": several inversions of the test.
    members : tuple of str
        Ids of the rows whose scores are fused, averaged or joined.
    utterances : int
        Number of recordings in a conversation, which is a segment of the trials; 1: segments are single recordings.
    """

    id: str
    background: str
    training: str
    enrolment: tuple[str, ...]
    tested: tuple[str, ...]
    trials: str
    scenario: str
    dataset: str = ""
    gender: str = ""
    draw: int = 1
    fold: int = 0
    folds: str = ""
    kind: Kind = "single"
    attacker: str = ""
    level: str = ""
    content: str = ""
    inversion: str = ""
    members: tuple[str, ...] = ()
    utterances: int = 1

    @property
    def file(self) -> str:
        """The file of its scores, relative to the output folder."""
        return f"{self.id}/scores"

    @property
    def fold_kind(self) -> FoldKind:
        """The training set and the kind of its folds that the row belongs to, or learns weights from."""
        return self.background, self.folds

    @property
    def list_name(self) -> str:
        """The folder of its list of trials, which it shares with other attackers."""
        return str(Path(self.id).parent)


def write_plan(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as a table; several names in a cell are separated by blanks and quoted as in a shell."""
    columns = [column.name for column in fields(Row)]
    cells = []
    for row in rows:
        values: dict[str, Any] = asdict(row)
        for name, value in values.items():
            if isinstance(value, tuple):
                values[name] = shlex.join(value)
        cells.append(values)
    write_text(path, format_csv(columns, cells))


def read_plan(path: Path) -> list[Row]:
    """Read rows written by `write_plan`.

    Raises
    ------
    DataError
        If the table has other columns, or a number is malformed.
    """
    expected = [column.name for column in fields(Row)]
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restval="")
        if reader.fieldnames != expected:
            text = f"expected the columns {', '.join(expected)}, got {', '.join(reader.fieldnames or ())}"
            raise DataError(text, file=path, line=1, remedy="make the plan again")
        rows = []
        for cells in reader:
            try:
                rows.append(_row(cells))
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"not a row of a plan: {error}", file=path, line=reader.line_num
                ) from error
    return rows


def _row(cells: dict[str, str]) -> Row:
    """Return the row of a line of the table."""
    values: dict[str, Any] = {name: _without_guard(cell) for name, cell in cells.items()}
    for name in ("enrolment", "tested", "members"):
        values[name] = tuple(shlex.split(values[name]))
    for name in ("draw", "fold", "utterances"):
        values[name] = int(values[name])
    if values["kind"] not in get_args(Kind):
        raise ValueError(f"kind {values['kind']!r} is not one of {', '.join(get_args(Kind))}")
    return Row(**values)


def _without_guard(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from taking it for a formula."""
    is_guarded = cell.startswith("'") and without_formula(cell[1:]) == cell
    return cell[1:] if is_guarded else cell
