"""Options that several commands share, and how scores and keys are read as they say."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import numpy as np

from evaluation.formats import Choice, Format, join, read_scores_and_key
from evaluation.metrics import CONVENTIONS, effective_prior, reversal
from evaluation.trials import Key, Scores, find_rows, own_trials, read_speakers
from evaluation.uncertainty import Resampling
from spkbase.console import Decorator, Function, choice_option, number_option, path_option, together
from spkbase.errors import ConfigError, DataError, few
from spkbase.files import to_json, write_json
from spkbase.plugins import load_plugin
from spkbase.showing import one_line

logger = logging.getLogger(__name__)
Own = TypeVar("Own")

LISTS = "a table, npz or HDF5"
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
json_option = path_option(
    "--json", "json_path", help="Write JSON to this file; '-' for standard output, then without table."
)
label_option = click.option("-l", "--label", "labels", multiple=True, help="Name of each system; else of its file.")
pickle_option = click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
model_speakers_option = path_option("--model-speakers", help="Speakers of models, or of enrolled utterances: utt2spk.")
segment_speakers_option = path_option(
    "--segment-speakers", help="Speakers of the tested utterances: lines as in utt2spk."
)
mean_option = choice_option(
    "--mean", of=["plain", "normalised"], help="Average embeddings as they are, or scaled to length 1 first."
)
convention_option = choice_option(
    "--convention",
    of=CONVENTIONS,
    help="Whose way to follow where tools disagree; the default pools equal scores and adds nothing.",
)
scale_option = path_option("--scale", help="YAML file of ZEBRA's categories: each tag with its upper |log10 LLR|.")
scores_option = path_option("-s", "--scores", required=True, help=f"Scores: lines 'model segment score', {LISTS}.")
key_option = path_option(
    *("-k", "--key"),
    help=f"Key: lines 'model segment target|nontarget', {LISTS}; none where scores hold labels.",
)


def own_option(*names: str, help: str) -> Decorator:
    """Make an option that names what a user has written; see `load_own`."""
    return click.option(*names, multiple=True, metavar="MODULE:NAME|FILE.py:NAME", help=help)


def load_own(name: str, what: str, kind: type[Own]) -> Own:
    """Return the metric or format that a user names; a ConfigError if it is something else."""
    found = load_plugin(name, what)[0]
    if not isinstance(found, kind):
        where = kind.__module__.rpartition(".")[0]
        text = f"the {what} {name!r} is a {type(found).__name__}, expected an {where}.{kind.__name__}"
        raise ConfigError(text, remedy=f"docs/{what}s.md has an example")
    return found


def resampling_options(replicates: int = 1000) -> Decorator:
    """Add the options of the bootstrap of speakers; the command gets `resampling`."""

    def decorate(command: Function) -> Function:
        @wraps(command)
        def wrapped(*args: Any, replicates: int, seed: int, level: float, **given: Any) -> Any:
            return command(*args, resampling=Resampling(replicates, seed, level), **given)

        options = [
            number_option("--bootstrap", "replicates", default=replicates, help="Resamples for intervals; 0 for none."),
            number_option("--seed", help="Of all draws."),
            click.option("--level", type=SHARE, default=0.95, help="Share of true values that intervals should cover."),
        ]
        return together(options, wrapped)

    return decorate


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
    each : tuple of Reader
        Those of several files, where columns were named for each.
    """

    scores: Choice
    key: Choice
    missing: Literal["error", "drop"] = "error"
    each: tuple[Reader, ...] = ()

    def of(self, number: int, count: int) -> Reader:
        """Return the reader of one of several files; a UsageError if columns were named for another number."""
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
            of_scores = replace(of_scores, labelled=True, label=of_scores.label or of_key.label)
            of_key = replace(of_key, layout=of_key.layout or of_scores.layout, label=of_scores.label)
            of_key = replace(of_key, model=of_key.model or of_scores.model, segment=of_key.segment or of_scores.segment)
            if scores.exists() and not scores.is_file():
                text = "is a pipe, from which scores and labels cannot both be read"
                raise DataError(text, file=scores, remedy="write it to a file")
        try:
            return read_scores_and_key(scores, key or scores, scores_columns=of_scores, key_columns=of_key)
        except DataError as error:
            if key is not None or "target or nontarget" not in error.text:
                raise
            text = f"no key is given, and the scores hold no labels: {error.text}"
            raise DataError(text, file=error.file, line=error.line, remedy="give a key: -k FILE") from error

    def split(self, read: tuple[Scores, Key], scores: Path, key: Path | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of target and of nontarget trials; a warning where they look reversed."""
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


def reader_options(*, key: bool = True, missing: bool = False, each: bool = False) -> Decorator:
    """Add the options that say how scores are read; the command gets them as `reader`.

    Parameters
    ----------
    key : bool
        The command reads keys too.
    missing : bool
        It joins them, with ``--missing``.
    each : bool
        The options of columns may be given once for each file of scores, ``auto`` where nothing is to be said, and
        `Reader.of` has those of each file.
    """

    def decorate(command: Function) -> Function:
        @wraps(command)
        def wrapped(
            *args: Any, scores_columns: Any, format_names: tuple[str, ...], distances: bool, **given: Any
        ) -> Any:
            columns = _several(scores_columns), _several(given.pop("key_columns", None))
            count = max(map(len, columns))
            if any(len(texts) not in (1, count) for texts in columns):
                counts = " and ".join(str(len(texts)) for texts in columns)
                raise click.UsageError(f"expected options of columns once, or once for each file, got {counts}")
            formats, joins = (
                tuple(load_own(name, "format", Format) for name in format_names),
                given.pop("missing", "error"),
            )
            readers = [
                Reader(
                    Choice(**_columns(of_scores, "score"), distances=distances, formats=formats),
                    Choice(**_columns(of_key, "target"), formats=formats),
                    joins,
                )
                for of_scores, of_key in zip(*(texts * (count // len(texts)) for texts in columns), strict=True)
            ]
            return command(*args, reader=replace(readers[0], each=tuple(readers) if count > 1 else ()), **given)

        again = " Once for all files, or once for each: auto where it is detected." if each else ""
        names = "or columns of a table, such as model=test+chan,segment=file"
        options = [
            click.option(
                "--scores-columns", multiple=each, help=f"Order as score,model,segment, {names},score=llr.{again}"
            ),
            click.option("--key-columns", multiple=each, help=f"The same of a key: target in place of score.{again}"),
            own_option("--format", "format_names", help="A format of your own (docs/formats.md); repeatable."),
            click.option("--distances", is_flag=True, help="The scores are distances, the lower the more alike."),
            choice_option(
                "--missing",
                of=["error", "drop"],
                help="Trials without a score, and scores with ids that the key does not know: stop, or drop and count.",
            ),
        ]
        return together(
            [*options[:1], *(options[1:2] if key else []), *options[2:4], *(options[4:] if missing else [])], wrapped
        )

    return decorate


def _several(value: Any) -> list[str | None]:
    return list(value) or [None] if isinstance(value, tuple) else [value]


def _columns(text: str | None, value: str) -> dict[str, Any]:
    """Read what ``--scores-columns`` or ``--key-columns`` says: an order, or names of columns by what they hold."""
    if text is None or text == "auto":
        return {}
    if "=" not in text:
        return {"layout": text}
    named = {}
    for part in text.split(","):
        role, _, names = part.partition("=")
        if role.strip() not in ("model", "segment", "score", "target") or not names.strip():
            expected = f"expected an order, or model=NAME,segment=NAME,{value}=NAME, got {part!r}"
            raise click.BadParameter(expected, param_hint="--scores-columns" if value == "score" else "--key-columns")
        named[role.strip()] = [name.strip() for name in names.split("+")]
    columns: dict[str, Any] = {"model": tuple(named.get("model", ())), "segment": tuple(named.get("segment", ()))}
    columns |= {name: named[role][0] for role, name in (("score", "score"), ("target", "label")) if role in named}
    return columns


@dataclass(frozen=True)
class System:
    """A system as the options name it.

    Attributes
    ----------
    name : str
        Without a label that of its file, and as much of the path before as tells it from the others.
    scores : Path
    key : Path or None
        None where the scores hold labels.
    reader : Reader
    """

    name: str
    scores: Path
    key: Path | None
    reader: Reader


def system_options(command: Function) -> Function:
    """Add the options for one system or several, read and joined; the command gets a list of `System`."""

    @wraps(command)
    def wrapped(
        *args: Any,
        scores: tuple[Path, ...],
        keys: tuple[Path, ...],
        labels: tuple[str, ...],
        reader: Reader,
        **given: Any,
    ) -> Any:
        names = labels or told_apart(scores)
        of_each: tuple[Path | None, ...] = keys * len(scores) if len(keys) == 1 else keys or (None,) * len(scores)
        if not len(scores) == len(of_each) == len(names):
            counts = f"{len(scores)} of scores, {len(keys)} keys and {len(labels)} labels"
            raise click.UsageError(f"expected a key (or one for all) and a label for each file of scores, got {counts}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise click.UsageError(f"two systems are called {twice!r}: give each a label of its own with -l")
        readers = [reader.of(number, len(scores)) for number in range(len(scores))]
        return command(*args, systems=list(map(System, names, scores, of_each, readers)), **given)

    options = [
        path_option(
            *("-s", "--scores"),
            required=True,
            multiple=True,
            help=f"Scores: lines 'model segment score', {LISTS}. Repeatable.",
        ),
        path_option(
            "-k", "--key", "keys", multiple=True, help="Key: one for all, or one each; none where scores hold labels."
        ),
        label_option,
        reader_options(missing=True, each=True),
    ]
    return together(options, wrapped)


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


def people_options(command: Function) -> Function:
    """Add the options that say who speaks and what is drawn for intervals; the command gets them as `people`."""

    @wraps(command)
    def wrapped(*args: Any, bootstrap_by: str, **given: Any) -> Any:
        names = ("model_speakers", "segment_speakers")
        maps = {name: None if (path := given.pop(name)) is None else read_speakers(path) for name in names}
        return command(*args, people=People(bootstrap_by, maps), **given)

    by = choice_option(
        "--bootstrap-by",
        of=["speaker", "id", "trial"],
        help="What resamples draw. speaker: who the maps and the key name; id: each id that no map names is a speaker; "
        "trial: far too narrow where trials share speakers.",
    )
    return together([model_speakers_option, segment_speakers_option, by], wrapped)


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
    if json_path is None:
        return False
    if str(json_path) == "-":
        click.echo(to_json(report))
        return True
    write_json(json_path, report)
    return False


def parse_prior(text: str, option: str = "--prior") -> float:
    """Read a probability strictly between 0 and 1."""
    try:
        return effective_prior(float(text))
    except ValueError as error:  # DataError is one too
        raise click.BadParameter(f"expected a probability between 0 and 1, got {text!r}", param_hint=option) from error


def parse_names(text: str | None) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()
