"""Options that several commands share, and reading of scores and keys by them."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from functools import wraps
from inspect import signature
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import numpy as np

from evaluation.formats import Choice, Format, join, read_scores_and_key
from evaluation.metrics import CONVENTIONS, Reversal, reversal
from evaluation.trials import (
    Key,
    LabelError,
    Missing,
    Scores,
    Speakers,
    Trials,
    find_rows,
    match_ids,
    own_trials,
    read_side,
    read_speakers,
)
from evaluation.uncertainty import Resampling
from spkbase.console import Decorator, Function, choice_option, number_option, path_option, together
from spkbase.errors import ConfigError, errors_of, few
from spkbase.files import to_json, write_json
from spkbase.plugins import load_plugin
from spkbase.showing import one_line

logger = logging.getLogger(__name__)
Own = TypeVar("Own")

OWN: dict[str, Any] = {"multiple": True, "metavar": "MODULE:NAME|FILE.py:NAME"}
"""Settings of an option that names what a user has written; see `load_own`."""

LISTS = "a table, npz or HDF5"
SCORES_HELP = f"Scores: lines 'model segment score', {LISTS}."
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
json_option = path_option(
    "--json", "json_path", help="Write JSON to this file; '-': standard output, no table."
)
label_option = click.option(
    "-l", "--label", "labels", multiple=True, help="Name of each system; default its file."
)
pickle_option = click.option(
    "--allow-pickle", is_flag=True, help="Read pickles too; their code is not run."
)
model_speakers_option = path_option(
    "--model-speakers", help="Speakers of models or enrolled utterances: utt2spk."
)
segment_speakers_option = path_option(
    "--segment-speakers", help="Speakers of the tested utterances: utt2spk."
)
mean_option = choice_option(
    "--mean",
    choices=["plain", "normalised"],
    help="Average embeddings as they are, or scaled to length 1.",
)
convention_option = choice_option(
    "--convention",
    choices=CONVENTIONS,
    help="Definitions of another tool; the default treats tied scores as one.",
)
scale_option = path_option(
    "--scale", help="YAML file of ZEBRA's categories: each tag with its upper |log10 LLR|."
)
scores_option = path_option("-s", "--scores", required=True, help=SCORES_HELP)
key_option = path_option(
    *("-k", "--key"),
    help=f"Key: lines 'model segment target|nontarget', {LISTS}; none where scores hold labels.",
)

speakers_by_option = click.option(
    "--speakers-by",
    metavar="SIGN",
    help="The speaker of an id is what comes before this sign, as / in a path.",
)


def gathered(name: str, make: Function, *options: Decorator) -> Decorator:
    """Add a group of options; the command gets one argument, which `make` builds from their values."""
    parameters = list(signature(make).parameters)

    def decorate(command: Function) -> Function:
        @wraps(command)
        def with_group(**values: Any) -> Any:
            group = {
                parameter: values.pop(parameter) for parameter in parameters if parameter in values
            }
            values[name] = make(**group)
            return command(**values)

        grouped: Function = together(*options)(with_group)
        return grouped

    return decorate


def load_own(name: str, purpose: str, kind: type[Own]) -> Own:
    """Return the metric or format that a user names; raise a ConfigError if the name stands for something else."""
    if ":" not in name:
        expected = f"expected MODULE:NAME or FILE.py:NAME of a {purpose} of yours, got {name!r}"
        raise ConfigError(expected, remedy="what is built in needs no option")
    own = load_plugin(name, purpose)[0]
    if not isinstance(own, kind):
        where = kind.__module__.rpartition(".")[0]
        text = (
            f"the {purpose} {name!r} is a {type(own).__name__}, expected an {where}.{kind.__name__}"
        )
        page = "own_metric" if purpose == "metric" else "formats"
        raise ConfigError(text, remedy=f"docs/{page}.md has an example")
    return own


def resampling_options(resamples: int = 1000) -> Decorator:
    """Add the options of the bootstrap of speakers; the command gets `resampling`."""
    return gathered(
        "resampling",
        Resampling,
        number_option(
            "--bootstrap",
            "resamples",
            default=resamples,
            help="Resamples of the bootstrap for intervals; 0: no intervals.",
        ),
        number_option("--seed", help="Seed of the random numbers."),
        click.option("--level", type=SHARE, default=0.95, help="Coverage of the intervals."),
    )


def speaker_maps(
    model_speakers: Path | None, segment_speakers: Path | None, speakers_by: str | None = None
) -> dict[str, Speakers | None]:
    """Read both maps of speakers, as `find_speakers` takes them."""
    maps: dict[str, Speakers | None] = {
        "model_speakers": speakers_by or None,
        "segment_speakers": speakers_by or None,
    }
    if model_speakers:
        maps["model_speakers"] = read_speakers(model_speakers)
    if segment_speakers:
        maps["segment_speakers"] = read_speakers(segment_speakers)
    return maps


def _known(side: Path | None) -> dict[str, str] | None:
    return None if side is None else read_side(side)


side_option = gathered(
    "known",
    _known,
    path_option(
        "--side",
        help="What the attacker knows too: a table with a header, ids or speakers first, then sex, region, ...",
    ),
)
speaker_options = gathered(
    "maps", speaker_maps, model_speakers_option, segment_speakers_option, speakers_by_option
)


@one_line
@dataclass(frozen=True)
class Reader:
    """How scores and keys are read and joined.

    Attributes
    ----------
    scores, key : Choice
        Columns named by the options.
    missing : {"error", "drop", "reject"}
        What to do with trials that lack a score; see `evaluation.trials.split_scores`.
    match : {"exact", "loose"}
        Which spellings of ids match; for "loose" see `evaluation.match_ids`.
    """

    scores: Choice
    key: Choice
    missing: Missing = "error"
    match: Literal["exact", "loose"] = "exact"

    def read(self, scores: Path, key: Path | None) -> tuple[Scores, Key]:
        """Read scores and their key; without a key the scores hold the labels."""
        scores_columns = self.scores
        key_columns = self.key
        if key is None or key == scores:
            scores_columns, key_columns = self._columns_of_one_file()
        try:
            values, truth = read_scores_and_key(
                scores, key or scores, scores_columns=scores_columns, key_columns=key_columns
            )
        except LabelError as error:
            is_named = scores_columns.layout is not None or scores_columns.label is not None
            if key is not None or is_named:
                raise
            text = f"no key is given, and the scores hold no labels: {error.text}"
            raise error.changed(text, remedy="give a key: -k FILE") from error
        with errors_of(scores):
            return self.matched(values, truth), truth

    def _columns_of_one_file(self) -> tuple[Choice, Choice]:
        """Return the columns of scores and labels in the same file; the two options complement each other."""
        scores = replace(self.scores, labelled=True, label=self.scores.label or self.key.label)
        key = replace(
            self.key,
            layout=self.key.layout or scores.layout,
            model=self.key.model or scores.model,
            segment=self.key.segment or scores.segment,
            label=scores.label,
        )
        return scores, key

    def matched(self, scores: Scores, key: Trials) -> Scores:
        """Return scores with the ids of a key if the options allow other spellings."""
        if self.match == "loose":
            return match_ids(scores, key)
        return scores

    def split(
        self, read: tuple[Scores, Key], scores: Path, key: Path | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of target and of nontarget trials; see `joined`."""
        values, truth = self.joined(read, scores, key)
        return values[truth.is_target], values[~truth.is_target]

    def joined(
        self, read: tuple[Scores, Key], scores: Path, key: Path | None
    ) -> tuple[np.ndarray, Key]:
        """Return the scores in the order of the scored trials; warn if they look reversed."""
        key_columns = self.scores if key is None else self.key
        columns = (self.scores, key_columns)
        values, truth = join(
            *read, files=(scores, key or scores), missing=self.missing, columns=columns
        )
        warn_of_doubts(scores, reversal(values[truth.is_target], values[~truth.is_target]), read[1])
        return values, truth


def reader_options(*, key: bool = True, in_order: bool = False) -> Decorator:
    """Add the options for reading scores; the command gets them as `reader`.

    Parameters
    ----------
    key : bool
        The command reads keys too.
    in_order : bool
        The command may join them by their order, with ``--in-order``.
    """
    names = "or columns of a table, such as model=test+chan,segment=file"
    options = [
        click.option("--scores-columns", help=f"Order as score,model,segment, {names},score=llr.")
    ]
    if key:
        options.append(
            click.option(
                "--key-columns", help="The same for the key, with target in place of score."
            )
        )
        text = "loose: /, -, _ and the extension of audio do not count, which toolkits write in different ways."
        options.append(choice_option("--match-ids", choices=["exact", "loose"], help=text))
    options += [
        click.option(
            "--format",
            "format_names",
            **OWN,
            help="A user-supplied format (docs/formats.md); repeatable.",
        ),
        click.option(
            "--distances", is_flag=True, help="The scores are distances: lower is more similar."
        ),
    ]
    text = "Trials without a score, scores that are NaN, and scores with ids unknown to the key: "
    text += "stop, drop and count, or"
    options.append(
        choice_option(
            "--missing", choices=["error", "drop", "reject"], help=f"{text} count as rejected."
        )
    )
    text = "Pairs that are repeated in a text, as in some lists of VoxCeleb: stop, or count once those that agree."
    options.append(choice_option("--duplicates", choices=["error", "first"], help=text))
    text = "Base of log-likelihood ratios: 10 in forensic science; they are read as natural ones."
    options.append(choice_option("--llr-base", choices=["e", "10", "2"], help=text))
    if in_order:
        text = "The scores are one a line, in the order of the key."
        options.append(click.option("--in-order", is_flag=True, help=text))
    return gathered("reader", _reader, *options)


@dataclass(frozen=True)
class System:
    """A system as given by the options.

    Attributes
    ----------
    name : str
        The label, or else the file's name, with folders if names are equal.
    scores : Path
    key : Path or None
        None if the scores hold labels.
    """

    name: str
    scores: Path
    key: Path | None


def one_each(keys: tuple[Path, ...], count: int) -> tuple[Path | None, ...]:
    """Return the key of each file of scores: the same for all, one for each, or None if scores hold labels."""
    if len(keys) == 1:
        return keys * count
    return keys or (None,) * count


def system_options(command: Function) -> Function:
    """Add the options for one or several systems; the command gets a list of `System` and how to read them."""
    systems = gathered(
        "systems",
        _systems,
        path_option(
            "-s", "--scores", required=True, multiple=True, help=f"{SCORES_HELP} Repeatable."
        ),
        path_option(
            "-k",
            "--key",
            "keys",
            multiple=True,
            help="Key: one for all, or one each; none where scores hold labels.",
        ),
        label_option,
    )
    decorated: Function = systems(reader_options(in_order=True)(command))
    return decorated


def distinct_names(paths: tuple[Path, ...]) -> tuple[str, ...]:
    """Name files by the shortest distinct ends of their paths; the same file gets the same name."""
    for depth in range(1, max(2, *(len(path.parts) + 1 for path in paths))):  # "." has no parts
        names = []
        for path in paths:
            stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
            names.append("/".join([*path.parts[-depth:-1], stem]))
        if len(set(names)) == len(set(paths)):
            break
    return tuple(names)


def warn_of_repeats(paths: Sequence[Path], keys: Sequence[Path | None] = ()) -> None:
    """Warn if a file or a copy of it was given for several systems with the same key."""
    keys = keys or [None] * len(paths)
    for (first, key), (second, other) in combinations(zip(paths, keys, strict=True), 2):
        if (
            key == other
            and first.is_file()
            and second.is_file()
            and cmp(first, second, shallow=False)
        ):
            if first == second:
                again = "is given twice"
            else:
                again = f"holds the same as {first}"
            logger.warning("%s %s: was the same file given for two systems?", second, again)


def warn_of_doubts(scores: Path, turned: Reversal | None, key: Key) -> None:
    """Warn if scores look reversed or recordings are compared with themselves."""
    if turned is not None and turned.clear:
        remedy = " (--distances)" if turned.rate > 0.5 else ""
        logger.warning("%s: %s%s", scores, turned.text, remedy)
    own = own_trials(key)
    if own:
        text = "compare a recording with itself (leave them out, unless ids are speakers)"
        logger.warning(
            "%s: %d target trials, such as %s, %s", scores, len(own), few(own, repr), text
        )


def warn_of_own(scores: Scores, others: Scores, text: str) -> None:
    """Warn if both files hold equal scores of the same trials."""
    rows = find_rows(scores, others)
    same = int((scores.values[rows >= 0] == others.values[rows[rows >= 0]]).sum())
    if same:
        logger.warning("%d of %d scores %s", same, len(scores), text)


def warn_of_same_scores(systems: Sequence[System], scores: Mapping[str, Scores]) -> None:
    """Warn if different files of two systems hold the same scores, in two formats for example."""
    for first, second in combinations(systems, 2):
        if first.key != second.key or cmp(first.scores, second.scores, shallow=False):
            continue
        values = scores[first.name].values
        others = scores[second.name].values
        if not np.array_equal(np.sort(values), np.sort(others)):
            continue
        rows = find_rows(scores[first.name], scores[second.name])
        if (rows >= 0).all() and np.array_equal(values, others[rows]):
            text = "%s holds the same scores as %s: was one system given twice?"
            logger.warning(text, second.scores, first.scores)


def show_json(report: Any, json_path: Path | None) -> bool:
    """Write a result to the target of ``--json``, if given.

    Returns
    -------
    bool
        Whether it went to standard output, to which nothing else must then be written.
    """
    if json_path is None:
        return False
    if str(json_path) == "-":
        click.echo(to_json(report))
        return True
    write_json(json_path, report)
    return False


def _reader(
    scores_columns: str | None,
    format_names: tuple[str, ...],
    distances: bool,
    key_columns: str | None = None,
    missing: Missing = "error",
    duplicates: Literal["error", "first"] = "error",
    llr_base: str = "e",
    in_order: bool = False,
    match_ids: Literal["exact", "loose"] = "exact",
) -> Reader:
    formats = tuple(load_own(name, "format", Format) for name in format_names)
    base = math.e if llr_base == "e" else float(llr_base)
    scores = Choice(
        **_columns(scores_columns, "score"),
        llr_base=base,
        distances=distances,
        in_order=in_order,
        missing=missing,
        formats=formats,
        duplicates=duplicates,
    )
    key = Choice(**_columns(key_columns, "target"), formats=formats, duplicates=duplicates)
    return Reader(scores, key, missing, match_ids)


def _columns(text: str | None, value: str) -> dict[str, Any]:
    """Parse ``--scores-columns`` or ``--key-columns``: an order, or names of columns by role."""
    if text is None:
        return {}
    if "=" not in text:
        return {"layout": text}
    columns: dict[str, Any] = {}
    for part in text.split(","):
        role, _, names = (word.strip() for word in part.partition("="))
        role = {"target": "label"}.get(role, role)
        if role not in ("model", "segment", "score", "label") or not names:
            expected = f"expected an order, or model=NAME,segment=NAME,{value}=NAME, got {part!r}"
            option = "--key-columns"
            if value == "score":
                option = "--scores-columns"
            raise click.BadParameter(expected, param_hint=option)
        parts = tuple(name.strip() for name in names.split("+"))
        columns[role] = parts
        if role in ("score", "label"):
            columns[role] = parts[0]
    return columns


def _systems(
    scores: tuple[Path, ...], keys: tuple[Path, ...], labels: tuple[str, ...]
) -> list[System]:
    names = labels or distinct_names(scores)
    of_each = one_each(keys, len(scores))
    if not len(scores) == len(of_each) == len(names):
        counts = f"{len(scores)} files, {len(keys)} keys and {len(labels)} labels"
        raise click.UsageError(
            f"expected a key (or one for all) and a label for each file of scores, got {counts}"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise click.UsageError(f"two systems are called {twice!r}: give different labels with -l")
    warn_of_repeats(scores, of_each)
    return list(map(System, names, scores, of_each))
