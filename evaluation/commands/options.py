"""Options that several commands share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from evaluation.formats import Choice, Format, join, read_scores_and_key, titles_besides_text
from evaluation.metrics import reversal
from evaluation.trials import Key, Scores, find_rows, own_trials, read_speakers
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import whole_file
from spkbase.plugins import load_plugin
from spkbase.showing import one_line

logger = logging.getLogger(__name__)

FILE = click.Path(path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

scores_option = click.option(
    *("-s", "--scores"),
    required=True,
    type=FILE,
    help=f"Scores: lines 'model segment score', {titles_besides_text('scores')}.",
)
_KEY_HELP = f"Key: lines 'model segment target|nontarget', {titles_besides_text('key')}; none where scores hold labels."
key_option = click.option("-k", "--key", type=FILE, help=_KEY_HELP)
scores_options = click.option(
    *("-s", "--scores", "scores_paths"),
    required=True,
    multiple=True,
    type=FILE,
    help=f"Scores: lines 'model segment score', {titles_besides_text('scores')}. Repeatable.",
)
keys_option = click.option(
    *("-k", "--key", "key_paths"),
    multiple=True,
    type=FILE,
    help="Key: one for all, or one each; none where scores hold labels.",
)
labels_option = click.option(
    "-l", "--label", "labels", multiple=True, help="Name of each system; that of its file by default."
)
level_option = click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Share of true values that intervals should cover.",
)
missing_option = click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Trials of the key without a score, and scores with ids that the key does not know: stop, or drop and count.",
)


@one_line
@dataclass(frozen=True)
class Reader:
    """How scores and keys are read and joined, as the options say.

    Attributes
    ----------
    scores, key : Choice
        What is said about the columns.
    missing : {"error", "drop"}
        What to do with trials that lack a score.
    binary : bool
        Scores of 0 and 1 alone are meant.
    each : tuple of Reader
        Those of several files, where options were given for each.
    """

    scores: Choice
    key: Choice
    missing: Literal["error", "drop"] = "error"
    binary: bool = False
    each: tuple[Reader, ...] = ()

    def of(self, number: int, count: int) -> Reader:
        """Return the reader of one of several files; a UsageError if options were given for another number."""
        if not self.each:
            return self
        if len(self.each) != count:
            text = f"expected options of columns once for all of {count} files, or once for each, got {len(self.each)}"
            raise click.UsageError(text)
        return self.each[number]

    def read(self, scores: Path, key: Path | None) -> tuple[Scores, Key]:
        """Read scores and their key; without a key the scores' own file tells the truth."""
        of_scores, of_key = self.scores, self.key
        if key is None or key == scores:
            of_scores = replace(of_scores, labelled=True, label=of_key.label)
            of_key = replace(of_key, layout=of_key.layout or of_scores.layout)
            scores = whole_file(scores)
            key = scores if key is not None else None
        try:
            return read_scores_and_key(
                scores, key or scores, scores_columns=of_scores, key_columns=of_key, binary=self.binary
            )
        except DataError as error:
            if key is not None or "target or nontarget" not in error.text:
                raise
            text = f"no key is given, and the scores hold no labels: {error.text}"
            raise DataError(text, file=error.file, line=error.line, remedy="give a key: -k FILE") from error

    def split(self, scores: Path, key: Path | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of target and of nontarget trials; a warning where they look reversed."""
        return self.joined(self.read(scores, key), scores, key)

    def joined(self, read: tuple[Scores, Key], scores: Path, key: Path | None) -> tuple[np.ndarray, np.ndarray]:
        """Split what was read; see `split`."""
        columns = (self.scores, self.key if key is not None else self.scores)
        parts = join(*read, files=(scores, key or scores), missing=self.missing, columns=columns)
        turned = reversal(*parts)
        if turned is not None and turned.clear:
            logger.warning("%s: %s", scores, turned.text)
        if own := own_trials(read[1]):
            text = "try a recording against itself (leave them out, unless ids are of speakers)"
            logger.warning("%s: %d target trials, such as %s, %s", scores, len(own), few(own, repr), text)
        if all(len(side) and (side == parts[0][0]).all() for side in parts):
            logger.warning("%s: all scores are equal: that is a broken system, not privacy", scores)
        return parts


_COLUMNS = ("scores_columns", "key_columns", "model", "segment", "score_column", "target_column")
_DETECT = "auto"


def column_options(command: Callable[..., Any] | None = None, *, each: bool = False) -> Any:
    """Add the options that say which column is what; the command gets them as one `reader`.

    Put it below `missing_option`, so that the reader knows that choice too. With ``each=True`` they may be given once
    for each file of scores, ``auto`` where nothing is to be said, and `Reader.of` has that of each file.
    """
    if command is None:
        return lambda command: column_options(command, each=each)

    @wraps(command)
    def wrapped(*args: Any, **given: Any) -> Any:
        columns = {name: _several(given.pop(name)) for name in _COLUMNS}
        formats = tuple(map(_format, given.pop("format_names")))
        more = {"distances": given.pop("distances"), "formats": formats}
        binary, missing = given.pop("binary_scores"), given.get("missing", "error")
        counts = {len(values) for values in columns.values() if len(values) > 1}
        if len(counts) > 1:
            raise click.UsageError(f"expected options of columns once, or once for each file, got {sorted(counts)}")
        readers = [
            Reader(*_choices({name: _at(values, place) for name, values in columns.items()}, more), missing, binary)
            for place in range(max(counts, default=1))
        ]
        reader = replace(readers[0], each=tuple(readers) if counts else ())
        return command(*args, reader=reader, **given)

    again = " Once for all files, or once for each: auto where it is detected." if each else ""
    options: list[Decorator] = [
        click.option(f"--{name.replace('_', '-')}", multiple=each, help=text + again)
        for name, text in (
            ("scores_columns", "Order of the columns of scores, such as score,model,segment."),
            ("key_columns", "Order of the columns of a key, such as target,model,segment."),
            ("model", "Columns of a table that make up the id of the model, such as model,part."),
            ("segment", "Columns of a table that make up the id of the segment, such as test,chan."),
            ("score_column", "Column of a table that holds the score."),
            ("target_column", "Column of a table that tells target from nontarget trials."),
        )
    ]
    options += [
        click.option(
            *("--format", "format_names"),
            multiple=True,
            metavar="MODULE:NAME|FILE.py:NAME",
            help="A format of your own for scores and keys (docs/formats.md); repeatable.",
        ),
        click.option(
            "--distances", is_flag=True, help="The scores are distances, the lower the more alike: turn them."
        ),
        click.option(
            "--binary-scores", is_flag=True, help="Scores of 0 and 1 alone are meant, not a key in their place."
        ),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)  # type: ignore[assignment]
    return wrapped


def _several(value: Any) -> tuple[str | None, ...]:
    values = value if isinstance(value, tuple) else (value,)
    return tuple(None if text == _DETECT else text for text in values) or (None,)


def _at(values: tuple[str | None, ...], place: int) -> str | None:
    return values[place] if len(values) > 1 else values[0]


def _choices(columns: dict[str, str | None], more: dict[str, Any]) -> tuple[Choice, Choice]:
    both = Choice(model=_names(columns["model"]), segment=_names(columns["segment"]), formats=more["formats"])
    scores = replace(both, layout=columns["scores_columns"], score=columns["score_column"], distances=more["distances"])
    return scores, replace(both, layout=columns["key_columns"], label=columns["target_column"])


@one_line
@dataclass(frozen=True)
class People:
    """Who is drawn for intervals, as the options say.

    Attributes
    ----------
    by : {"speaker", "id", "trial"}
        Speakers, which maps or the key must tell; each id that no map names as a speaker; or trials.
    maps : dict of str to mapping or None
        `model_speakers` and `segment_speakers`, as `find_speakers` takes them.
    """

    by: str
    maps: dict[str, Any]

    @property
    def units(self) -> str:
        """What is drawn, for a report."""
        return {"id": "ids, each taken for a speaker,"}.get(self.by, f"{self.by}s")


def people_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who speaks and what is drawn for intervals; the command gets them as `people`."""

    @wraps(command)
    def wrapped(*args: Any, bootstrap_by: str, **given: Any) -> Any:
        names = ("model_speakers", "segment_speakers")
        maps = {name: None if (path := given.pop(name)) is None else read_speakers(path) for name in names}
        return command(*args, people=People(bootstrap_by, maps), **given)

    options: list[Decorator] = [
        click.option("--model-speakers", type=FILE, help="Speakers of the models: lines 'model speaker'."),
        click.option("--segment-speakers", type=FILE, help="Speakers of the segments: lines as in utt2spk."),
        click.option(
            "--bootstrap-by",
            type=click.Choice(["speaker", "id", "trial"]),
            default="speaker",
            help="What resamples draw. speaker: who the maps and the key name, the default; id: each id that no map "
            "names is a speaker; trial: far too narrow where trials share speakers.",
        ),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)  # type: ignore[assignment]
    return wrapped


def match_keys(
    scores_paths: tuple[Path, ...], key_paths: tuple[Path, ...], labels: tuple[str, ...]
) -> list[tuple[str, Path, Path | None]]:
    """Return (name, scores, key) of each system; without a label it goes by its file, and as much before as it takes.

    Raises
    ------
    click.UsageError
        If the numbers of files and labels do not fit, or two systems have one label.
    """
    names = labels or told_apart(scores_paths)
    keys: tuple[Path | None, ...] = key_paths * len(scores_paths) if len(key_paths) == 1 else key_paths
    keys = keys or (None,) * len(scores_paths)
    if not len(scores_paths) == len(keys) == len(names):
        counts = f"{len(scores_paths)} of scores, {len(key_paths)} keys and {len(labels)} labels"
        raise click.UsageError(f"expected a key (or one for all) and a label for each file of scores, got {counts}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise click.UsageError(f"two systems are called {twice!r}: give each a label of its own with -l")
    return list(zip(names, scores_paths, keys, strict=True))


def told_apart(paths: tuple[Path, ...]) -> tuple[str, ...]:
    """Name files by as few of the last parts of their paths as tell them apart; the same file twice stays the same."""
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        names = tuple(
            "/".join([*path.parts[-depth:-1], path.name.removesuffix(".gz").rsplit(".", 1)[0]]) for path in paths
        )
        if len(set(names)) == len(set(paths)):
            break
    return names


def warn_of_own(scores: Scores, others: Scores, text: str) -> None:
    """Warn where scores of the same trials, with the same values, stand on both sides."""
    rows = find_rows(scores, others)
    same = int((scores.values[rows >= 0] == others.values[rows[rows >= 0]]).sum())
    if same:
        logger.warning("%d of %d scores %s", same, len(scores), text)


def show_json(report: Any, json_path: Path | None) -> bool:
    """Write a result where ``--json`` says, if it does.

    Returns
    -------
    bool
        Whether it went to the standard output, where nothing else should stand then.
    """
    from spkbase.files import to_json, write_json

    if json_path is None:
        return False
    if str(json_path) == "-":
        click.echo(to_json(report))
        return True
    write_json(json_path, report)
    return False


def parse_prior(text: str, option: str = "--prior") -> float:
    """Read a probability strictly between 0 and 1."""
    from evaluation.metrics import effective_prior

    try:
        return effective_prior(float(text))
    except ValueError as error:  # DataError is one too
        raise click.BadParameter(f"expected a probability between 0 and 1, got {text!r}", param_hint=option) from error


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def _format(name: str) -> Format:
    form = load_plugin(name, "format")[0]
    if not isinstance(form, Format):
        text = f"the format {name!r} is a {type(form).__name__}, expected an evaluation.formats.Format"
        raise ConfigError(text, remedy="docs/formats.md has an example")
    return form
