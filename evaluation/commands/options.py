"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from evaluation.formats import Choice, Format, read_split, titles_besides_text
from spkbase.errors import ConfigError
from spkbase.own_code import load_named

FILE = click.Path(path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

scores_option = click.option(
    *("-s", "--scores"),
    required=True,
    type=FILE,
    help=f"Scores: lines 'model segment score', {titles_besides_text('scores')}.",
)
key_option = click.option(
    *("-k", "--key"),
    required=True,
    type=FILE,
    help=f"Key: lines 'model segment target|nontarget', {titles_besides_text('key')}.",
)
scores_options = click.option(
    "-s", "--scores", "scores_paths", required=True, multiple=True, type=FILE, help="Scores; repeatable."
)
keys_option = click.option(
    "-k", "--key", "key_paths", required=True, multiple=True, type=FILE, help="Key: one for all, or one each."
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


@dataclass(frozen=True)
class Reader:
    """How scores and keys are read and joined, as the options say."""

    scores: Choice
    key: Choice
    missing: Literal["error", "drop"] = "error"

    def split(self, scores: Path, key: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of target and of nontarget trials."""
        return read_split(scores, key, missing=self.missing, scores_columns=self.scores, key_columns=self.key)


_COLUMNS = ("scores_columns", "key_columns", "model", "segment", "score_column", "target_column")


def column_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which column is what; the command gets them as one `reader`.

    Put it below `missing_option`, so that the reader knows that choice too.
    """

    @wraps(command)
    def wrapped(*args: Any, **given: Any) -> Any:
        columns = {name: given.pop(name) for name in _COLUMNS}
        names = tuple(map(_format, given.pop("format_names")))
        both = Choice(model=_names(columns["model"]), segment=_names(columns["segment"]), formats=names)
        reader = Reader(
            replace(both, layout=columns["scores_columns"], score=columns["score_column"]),
            replace(both, layout=columns["key_columns"], label=columns["target_column"]),
            given.get("missing", "error"),
        )
        return command(*args, reader=reader, **given)

    options: list[Decorator] = [
        click.option("--scores-columns", help="Order of the columns of scores, such as score,model,segment."),
        click.option("--key-columns", help="Order of the columns of a key, such as target,model,segment."),
        click.option("--model", help="Columns of a table that make up the id of the model, such as model,part."),
        click.option("--segment", help="Columns of a table that make up the id of the segment, such as test,chan."),
        click.option("--score-column", help="Column of a table that holds the score."),
        click.option("--target-column", help="Column of a table that tells target from nontarget trials."),
        click.option(
            *("--format", "format_names"),
            multiple=True,
            metavar="MODULE:NAME|FILE.py:NAME",
            help="A format of your own for scores and keys (docs/formats.md); repeatable.",
        ),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)  # type: ignore[assignment]
    return wrapped


def match_keys(
    scores_paths: tuple[Path, ...], key_paths: tuple[Path, ...], labels: tuple[str, ...]
) -> list[tuple[str, Path, Path]]:
    """Return (name, scores, key) of each system.

    Raises
    ------
    click.UsageError
        If the numbers of files and labels do not fit.
    """
    names = labels or tuple(path.name.removesuffix(".gz").rsplit(".", 1)[0] for path in scores_paths)
    keys = key_paths * len(scores_paths) if len(key_paths) == 1 else key_paths
    if not len(scores_paths) == len(keys) == len(names):
        counts = f"{len(scores_paths)} of scores, {len(key_paths)} keys and {len(labels)} labels"
        raise click.UsageError(f"expected a key (or one for all) and a label for each file of scores, got {counts}")
    return list(zip(names, scores_paths, keys, strict=True))


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
    form = load_named(name, "format")[0]
    if not isinstance(form, Format):
        text = f"the format {name!r} is a {type(form).__name__}, expected an evaluation.formats.Format"
        raise ConfigError(text, remedy="docs/formats.md has an example")
    return form
