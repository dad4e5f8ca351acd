"""The registry of attackers: their names, how they are made from settings, and what they cost.

An entry of the configuration's list ``attackers`` is a name of `CATALOGUE`, a plug-in (`OUTSIDE`), or a user-defined
name whose settings give one of these as ``preset``. To add an attacker, write a function ``make(name, settings,
context)`` that returns an `Attacker`, and add a row below.

============================================ ==========================================================================
``MODULE:FUNCTION``, ``FILE.py:FUNCTION``    a Python function (`spkver.attackers.supplied`)
``command:COMMAND``                          a shell command with placeholders (`spkver.attackers.supplied`)
``scores:FOLDER``                            scores computed elsewhere (`spkver.attackers.ready`)
``vectors:FOLDER``                           embeddings computed elsewhere (`spkver.attackers.ready`)
``adapted:FOLDER``                           the same, adapted to the trials
============================================ ==========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluation.trials import LEVELS, TRIAL_BY_TRIAL
from spkbase.configuration import merged
from spkbase.errors import ConfigError
from spkbase.plugins import load_plugin
from spkbase.showing import one_line
from spkver.attackers import alignment, classic, content, fusion, ready, sources, supplied, undoing
from spkver.attackers.protocol import Attacker, naming
from spkver.attackers.vector_attacker import (
    ADAPTED_COSINE,
    SINGLE_TEST_COSINE,
    Context,
    Settings,
    extractor_attacker,
    network_is_absent,
)

Make = Callable[[str, Settings, Context], Attacker]

ADAPTING = {"adapted": ADAPTED_COSINE, "single-test": SINGLE_TEST_COSINE}
_ENDINGS = {
    "adapted": "adapted to the list of trials",
    "single-test": "adapted to the enrolled speakers alone",
    "inverted": "on speech with the anonymisation inverted",
    "aligned": "after a map to original vectors",
}
_UNDOING, _ADAPTING = 15, 2  # seconds, see `Row`; adapted attackers use vectors that others extract

_CLASSIC_SUMMARIES = {
    "gmm-ubm": "log-likelihood ratio of a mixture adapted to the speaker and a background mixture",
    "gmm-svm": "a support vector machine for each speaker, on supervectors",
    "gmm-svm-cms": "a support vector machine for each speaker, on supervectors after cepstral mean subtraction",
    "supervector-cosine": "cosine of projected supervectors",
}

DEFAULT: tuple[str, ...] = (
    *("campplus-adapted", "supervector-adapted", "ivector-adapted"),
    *("campplus-single-test", "supervector-single-test"),
    *("campplus", "gmm-svm-cms", "gmm-svm", "supervector-cosine", "ivector"),
    *("campplus-adapted-inverted", "supervector-adapted-inverted", "campplus-inverted", "campplus-aligned"),
    *("prosody", "content", "session"),
    "fusion",  # of all before it
)
"""Attackers that run by default: on voices, first the ones that adapt to the trials; the same with the anonymisation
inverted; on other cues; each group about from the strongest to the weakest; then the fusion. Of similar attackers, only
the strongest on at least one data set are listed."""

_STRONGER, _WEAKER = "campplus", "ge2e"
"""The GE2E attackers, never stronger than CAM++'s, run only if CAM++'s weights are missing."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_+-]+")
_LONGEST = 40
_INTERPRETER = re.compile(r"(python|pypy|bash|sh|perl|env|nice)[0-9.]*")

OUTSIDE = {
    "": ("MODULE:FUNCTION or FILE.py:FUNCTION", "a Python function"),
    "command": ("command:COMMAND", "a shell command with placeholders"),
    "scores": ("scores:FOLDER", "scores made elsewhere"),
    "vectors": ("vectors:FOLDER", "embeddings made elsewhere"),
    "adapted": ("adapted:FOLDER", "embeddings made elsewhere, adapted to the list of trials"),
}
"""Plug-ins for user-supplied attackers, by prefix: how they are written, and what they are."""


@one_line
@dataclass(frozen=True)
class Row:
    """An attacker that is known by name.

    Attributes
    ----------
    form : str
        How it is written; optional parts are in brackets.
    summary : str
        What it is, for help texts and documents.
    make : callable
        Factory, called with the name, the settings (without ``preset``) and the context; raises ConfigError.
    seconds : float or None
        Time of one core for an hour of speech, training sets and their draws included, measured on one machine. None:
        not known.
    is_network : bool
        Whether it needs a neural network.
    """

    form: str
    summary: str
    make: Make
    seconds: float | None = None
    is_network: bool = False


def on_top(make: Make, ending: str) -> Make:
    """Return a factory for an attacker with a modifier, see `_ENDINGS`.

    The attacker has the settings of its base (without the chains if the modifier adapts), overridden by its own.
    """

    def made(name: str, settings: Settings, context: Context) -> Attacker:
        base = context.preset.removesuffix(f"-{ending}")
        left = ("preset", "chains", "adapted") if ending in ADAPTING else ("preset",)
        of_base = {key: value for key, value in context.settings.get(base, {}).items() if key not in left}
        context = replace(context, preset=base)
        if ending in ADAPTING:
            return make(name, merged(of_base, {"adapted": ADAPTING[ending]}, settings), context)
        # a base with other settings is another attacker, in another folder
        of_it: Any = make(name if settings else base, merged(of_base, settings), context)
        return undoing.InvertedAttacker(name, of_it) if ending == "inverted" else alignment.AlignedAttacker(name, of_it)

    return made


def _with_endings(row: Row, endings: str) -> list[Row]:
    """Return the rows of an attacker with modifiers."""
    rows, base = [], row.form.partition("[")[0]
    for name in endings.split():
        make, words, rest = row.make, row.summary, name
        while rest:  # an ending may contain a hyphen
            ending = next(known for known in _ENDINGS if rest == known or rest.startswith(f"{known}-"))
            make, words, rest = on_top(make, ending), f"{words}, {_ENDINGS[ending]}", rest[len(ending) + 1 :]
        rows.append(Row(f"{base}-{name}", words, make, is_network=row.is_network))
    return rows


def _known_rows() -> list[Row]:
    """Return the rows of `CATALOGUE`."""
    extractor, adapt, undo = extractor_attacker, "adapted single-test", "adapted-inverted single-test-inverted"
    # a quarter each of "attackers and scores" in the timings of: spkver voiceprivacy --jobs 2, these four alone
    classic_rows = [Row(name, text, classic.classic_attacker, seconds=6) for name, text in _CLASSIC_SUMMARIES.items()]
    # user time of: spkver embed DIR --extractor campplus --jobs 1 --output v.h5 (and others), 4.6 minutes of speech
    campplus = Row("campplus[:WEIGHTS]", "vectors of CAM++, a network of 2023", extractor, seconds=70, is_network=True)
    ge2e = Row("ge2e[:WEIGHTS]", "vectors of GE2E, a network of 2018", extractor, seconds=40, is_network=True)
    # of a run with it alone, on a machine that did other work too: less exact
    ivector = Row("ivector", "i-vectors, trained on the background", sources.ivector_attacker, seconds=30)
    return [
        *classic_rows,
        campplus,
        ge2e,
        Row("onnx:FILE", "vectors of a network in an ONNX file", extractor, is_network=True),
        Row("extractor:EXTRACTOR", "vectors of what `spkver embed --extractor` takes", extractor),
        ivector,
        *(row for base in classic_rows for row in _with_endings(base, "inverted")),
        *(row for base in (campplus, ge2e) for row in _with_endings(base, f"inverted aligned {adapt} {undo}")),
        *_with_endings(ivector, f"inverted aligned {adapt}"),
        *_with_endings(Row("supervector", "supervectors", sources.supervector_attacker), f"{adapt} {undo}"),
        Row("prosody", "pitch, rhythm and pauses", extractor, seconds=20),
        Row("content", "spoken words, where there are transcripts", content.content_attacker, seconds=1),
        Row("session", "noise and channel, in the pauses", extractor, seconds=15),
        Row(
            "fusion", "weighted sum of the scores of all others, trained on background speakers", fusion.fusion_attacker
        ),
    ]


CATALOGUE: dict[str, Row] = {re.split(r"[\[:]", row.form)[0]: row for row in _known_rows()}


def cost_of(name: str, others: Collection[str]) -> float | None:
    """Return the seconds of one core for an hour of speech of an attacker, given the `others` of a run (row names).

    Examples
    --------
    >>> [cost_of("ivector-adapted", others) for others in ([], ["ivector"])]
    [32, 2]
    >>> cost_of("scores", [])
    """
    plain = re.sub("-(adapted|single-test)", "", name)
    base = plain.removesuffix("-inverted")
    alone = CATALOGUE[base].seconds if base in CATALOGUE else 0 if base == "supervector" else None
    if alone is None:
        return None
    alone += _UNDOING * (base != plain and alone > 0)
    if plain == name:
        return alone
    return _ADAPTING if plain in others else _ADAPTING + alone


def is_absent(name: str) -> str:
    """Return why an attacker, named by its row, cannot run on this machine, or an empty string."""
    base = name.partition("-")[0]
    return network_is_absent(base) if base in (_STRONGER, _WEAKER) else ""


def absent_attackers() -> dict[str, str]:
    """Return which attackers of `DEFAULT` cannot run on this machine, and why."""
    return {name: why for name in DEFAULT if (why := is_absent(name))}


def default_attackers() -> tuple[str, ...]:
    """Return the attackers that run if none are named: all of `DEFAULT` that can run on this machine.

    If the weights of CAM++ are missing, GE2E takes its place if it has weights.
    """
    instead = {name: name.replace(_STRONGER, _WEAKER) if is_absent(name) else name for name in DEFAULT}
    return tuple(other for other in instead.values() if not is_absent(other))


def named_only() -> list[str]:
    """Return the attackers that run only if named: on no data set was one stronger than all of `DEFAULT`."""
    usual = {*DEFAULT, *default_attackers()}
    bare = (name for name, row in CATALOGUE.items() if ":" not in row.form.split("[")[0])
    return [name for name in bare if name not in usual and not is_absent(name)]


def find_row(entry: str) -> tuple[str, Row, str] | None:
    """Return the row name of an entry, the row, and the text after the colon; None if no row matches.

    Examples
    --------
    >>> name, row, argument = find_row("onnx:ecapa.onnx")
    >>> name, argument, find_row("scores:run/exp")
    ('onnx', 'ecapa.onnx', None)

    Raises
    ------
    ConfigError
        If the text after a colon is missing or not allowed.
    """
    name, colon, argument = entry.partition(":")
    row = CATALOGUE.get(name)
    if row is None:
        return None
    must, can = ":" in row.form and "[" not in row.form, ":" in row.form
    if (colon and not argument) or (argument and not can) or (must and not argument):
        raise ConfigError(f"attackers: {entry!r}: expected {row.form}")
    return name, row, argument


def make_attacker(entry: str, name: str, settings: Settings, context: Context) -> Attacker:
    """Create the attacker of an entry.

    Parameters
    ----------
    entry : str
        See the module.
    name : str
        What it is called.
    settings : mapping
        Settings of this attacker; a plug-in has only the level.
    context : Context
        Its `preset` and `argument` are replaced by the entry's.

    Raises
    ------
    ConfigError
        If there is no such attacker, or its settings are wrong.
    """
    found = find_row(entry)
    if found is not None:
        return found[1].make(name, settings, replace(context, preset=found[0], argument=found[2]))
    if is_outside(entry):
        level = str(settings.get("level", ""))
        return open_outside(entry, name=name, seed=context.seed, time_limit=context.time_limit, level=level)
    remedy = f"give attacker_settings.{name}.preset, or correct it; for others see docs/own_attackers.md"
    presets = ", ".join(row.form for row in CATALOGUE.values())
    raise ConfigError(f"attackers: {name!r} is no preset ({presets})", remedy=remedy)


def is_outside(spec: str) -> bool:
    """Return whether an entry in a list of attackers names a plug-in, such as a file, rather than a mere preset.

    Examples
    --------
    >>> is_outside("scores:ecapa/exp"), is_outside("gmm-svm")
    (True, False)
    """
    prefix, _, rest = spec.partition(":")
    return bool(prefix and rest)


def is_supplied(attacker: Attacker) -> bool:
    """Return whether an attacker is a plug-in, whose `lacks` can be asked before anything is computed."""
    return isinstance(attacker, supplied.OwnCode | ready.ReadyScores | ready.ReadyVectors)


def attacker_name(entry: str) -> str:
    """Return the name of an attacker in folders and tables if its settings give none.

    That is the entry itself, or a short name for a plug-in: letters, digits and -_+.

    Examples
    --------
    >>> [attacker_name(entry) for entry in ("gmm-svm", "campplus:wheels", "onnx:models/ecapa.onnx")]
    ['gmm-svm', 'campplus', 'onnx-ecapa']
    >>> [attacker_name(entry) for entry in ("scores:ecapa/exp", "mine/ltas.py:attack", "command:python x.py {scores}")]
    ['scores-ecapa', 'ltas-attack', 'command-x']
    """
    found = find_row(entry)
    if found is not None:
        name, row, argument = found
        return f"{name}-{Path(argument).stem}" if argument and "[" not in row.form else name
    if not is_outside(entry):
        return entry
    prefix, _, rest = entry.partition(":")
    if prefix == "command":
        words = (Path(word).stem for word in rest.split())
        label = "command-" + next((word for word in words if word and not _INTERPRETER.fullmatch(word)), "")
    elif prefix in OUTSIDE:
        path = Path(rest).resolve()  # the folder exp of a run is named after the run
        label = f"{prefix}-{path.parent.name if path.name == 'exp' else path.name}"
    else:
        where, _, function = entry.rpartition(":")
        module = Path(where).stem if where.endswith(".py") else where.rpartition(".")[2]
        label = f"{module}-{function}"
    return _UNSAFE.sub("-", label)[:_LONGEST].strip("-") or "own"


def open_outside(
    spec: str, *, name: str = "", seed: int = 0, time_limit: float | None = None, level: str = ""
) -> Attacker:
    """Create an attacker from a plug-in.

    Parameters
    ----------
    spec : str
        See the module.
    name : str
        Its name; by default `attacker_name` of it.
    seed : int
        For functions and commands.
    time_limit : float, optional [s]
        For functions and commands, for training and for each list of trials; see
        `spkver.attackers.supplied.usual_limit`.
    level : str
        What a function, a command or ready scores may look at, see `evaluation.trials.LEVELS`; trial-by-trial by
        default.

    Raises
    ------
    ConfigError
        If there is no such function, folder or level, or a command lacks a placeholder.
    """
    prefix, _, rest = spec.partition(":")
    if not is_outside(spec):
        raise ConfigError(f"attacker {spec!r}: expected {', '.join(form for form, _ in OUTSIDE.values())}")
    name = name or attacker_name(spec)
    with naming(name):
        if level and (level not in LEVELS or prefix in ("vectors", "adapted")):
            raise ConfigError(f"level is {level!r}: expected {', '.join(LEVELS)}; for vectors the entry determines it")
        level = level or TRIAL_BY_TRIAL
        if prefix == "scores":
            return ready.ReadyScores(name, Path(rest), level)
        if prefix in ("vectors", "adapted"):
            return ready.ReadyVectors(name, Path(rest), prefix == "adapted")
        if prefix == "command":
            return supplied.OwnCommand(name, rest, seed, time_limit, level)
        file = load_plugin(spec, "attacker", kind="function")[1]
        return supplied.OwnFunction(name, spec, seed, time_limit, level, file)
