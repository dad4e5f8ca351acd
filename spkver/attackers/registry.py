"""The registry of attackers: their names, how they are made from settings, and what they cost.

An entry of the configuration's list ``attackers`` is a name of `CATALOGUE`, a plug-in (`OUTSIDE`), or a user-defined
name whose settings give one of these as ``preset``. `parse_spec` analyses an entry, once; all other code uses the
attributes of its `Spec`. To add an attacker, add a row to `CATALOGUE`, and a line to `make_attacker`.

============================================ ==========================================================================
``MODULE:FUNCTION``, ``FILE.py:FUNCTION``    a Python function (`spkver.attackers.supplied`)
``command:COMMAND``                          a shell command with placeholders (`spkver.attackers.supplied`)
``scores:FOLDER``                            scores computed elsewhere (`spkver.attackers.ready`)
``vectors:FOLDER``                           embeddings computed elsewhere (`spkver.attackers.ready`)
``adapted:FOLDER``                           the same, adapted to the trials
``self-trained:FOLDER``                      the same, scored by a PLDA that trains itself on them
============================================ ==========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.trials import LEVELS, ONE_MODEL, REVERSAL, SCENARIO_ORDER
from spkbase.configuration import merged
from spkbase.errors import ConfigError
from spkbase.plugins import load_plugin
from spkbase.showing import one_line
from spkver.attackers.chain_choice import (
    ADAPTED_COSINE,
    ENROLLED_PLDA,
    SELF_TRAINED_PLDA,
    SINGLE_TEST_COSINE,
)
from spkver.attackers.classic import PRESETS, attacker_config, classic_attacker
from spkver.attackers.content import content_attacker
from spkver.attackers.fusion import Fusion
from spkver.attackers.properties import PropertiesAttacker
from spkver.attackers.protocol import Attacker, naming
from spkver.attackers.ready import ReadyScores, ReadyVectors
from spkver.attackers.supplied import OwnCommand, OwnFunction
from spkver.attackers.vector_attacker import (
    extractor_attacker,
    ivector_attacker,
    network_is_absent,
    supervector_attacker,
    trained_attacker,
    tuned_attacker,
    tuning_is_absent,
)

Settings = Mapping[str, Any]

ADAPTING = {
    "adapted": ADAPTED_COSINE,
    "self-trained": SELF_TRAINED_PLDA,
    "single-test": SINGLE_TEST_COSINE,
    "enrolled-plda": ENROLLED_PLDA,
}
_ENDINGS = {
    "adapted": "adapted to the list of trials",
    "self-trained": "by a PLDA that trains itself on the list of trials",
    "single-test": "adapted to the enrolled speakers alone",
    "enrolled-plda": "by a PLDA of the enrolled speakers",
    "inverted": "on speech with the anonymisation inverted",
    "reversed": "largest score over several inversions of the test",
}

DEFAULT: tuple[str, ...] = (
    *("campplus-adapted", "campplus-enrolled-plda", "campplus-single-test", "campplus"),
    "campplus-self-trained",
    *("campplus-enrolled-plda-inverted", "campplus-self-trained-inverted"),
    *("campplus-adapted-reversed", "campplus-self-trained-reversed"),
    *("campplus-tuned", "campplus-tuned-enrolled-plda", "campplus-tuned-self-trained"),
    *("gmm-svm-cms", "prosody", "content", "properties"),
)
"""Attackers that run by default. Each is the strongest at its level of knowledge on some set, or unlike all others; the
last four cost little: docs/studies/attackers.md."""

WITHOUT_NETWORK: tuple[str, ...] = (
    *("supervector-adapted", "supervector-single-test", "supervector-cosine", "gmm-svm-cms"),
    *("supervector-adapted-inverted", "prosody", "content", "properties", "fusion"),
)
"""Attackers that run by default where no network has weights."""

OF_THE_RECORDING = "session"
"""It recognises recordings, not voices. A background with one recording per speaker cannot tell these apart."""

_ANY_KIND = ("trained", "extractor")
"""Rows that need not be neural networks, as the user's own code."""

_WHOLE_LIST = ("adapted", "self-trained")
_EMBEDDINGS = ("vectors", *_WHOLE_LIST)
_WITHOUT_SETTINGS = {"fusion": Fusion, "properties": PropertiesAttacker}

BY_FEATURES = (*PRESETS, "ivector", "supervector")
"""Rows with cepstra, whose settings fit the sampling rates of the recordings."""

OUTSIDE = {
    "": ("MODULE:FUNCTION or FILE.py:FUNCTION", "a Python function"),
    "command": ("command:COMMAND", "a shell command with placeholders"),
    "scores": ("scores:FOLDER", "scores made elsewhere"),
    "vectors": ("vectors:FOLDER", "embeddings made elsewhere"),
    "adapted": ("adapted:FOLDER", "embeddings made elsewhere, adapted to the list of trials"),
    "self-trained": (
        "self-trained:FOLDER",
        "embeddings made elsewhere, scored by a PLDA that trains itself on the list of trials",
    ),
}
"""Plug-ins for user-supplied attackers, by prefix: how they are written, and what they are."""


_TUNED = "campplus-tuned"
_STRONGER = "campplus"
_WEAKER = "ge2e"
"""The GE2E attackers, never stronger than CAM++'s, run only if CAM++'s weights are missing."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_+-]+")
_LONGEST = 40
_INTERPRETER = re.compile(r"(python|pypy|bash|sh|perl|env|nice)[0-9.]*")


@one_line
@dataclass(frozen=True)
class CatalogueRow:
    """An attacker that is known by name.

    Attributes
    ----------
    form : str
        The form of its entry; optional parts are in brackets.
    summary : str
        Description for help texts and documents.
    base : str
        Its name without endings.
    adapted : str
        A key of `ADAPTING`: "adapted" and "self-trained", to the whole list of trials; "single-test" and
        "enrolled-plda", to the enrolled speakers; else empty.
    is_inverted, is_reversed : bool
        Whether it works on speech inverted by an estimated number, or on tested speech inverted by several numbers.
    is_network : bool
        Whether it needs a neural network.
    """

    form: str
    summary: str
    base: str
    adapted: str = ""
    is_inverted: bool = False
    is_reversed: bool = False
    is_network: bool = False

    @property
    def name(self) -> str:
        """Its name in the catalogue."""
        return re.split(r"[\[:]", self.form)[0]


class _Variant(NamedTuple):
    """A form of an attacker whose name has endings: how its scores adapt, and how anonymisation is inverted."""

    adapted: str = ""
    undoing: str = ""

    @property
    def endings(self) -> list[str]:
        """The endings of its name."""
        return [ending for ending in self if ending]


_INVERTED = (_Variant(undoing="inverted"),)
_ADAPTED = (
    _Variant("adapted"),
    _Variant("single-test"),
    _Variant("adapted", "inverted"),
    _Variant("adapted", "reversed"),
)
_ENROLLED_PLDA = (_Variant("enrolled-plda"), _Variant("enrolled-plda", "inverted"))
_TRAINED = (
    _Variant("single-test"),
    _Variant("enrolled-plda"),
    _Variant("adapted"),
    _Variant("self-trained"),
)
_SELF_TRAINED = (
    _Variant("self-trained"),
    _Variant("self-trained", "inverted"),
    _Variant("self-trained", "reversed"),
)
_NETWORK = (*_INVERTED, _Variant(undoing="reversed"), *_ADAPTED, *_ENROLLED_PLDA, *_SELF_TRAINED)


def _rows(
    form: str, summary: str, variants: Sequence[_Variant] = (), *, network: bool = False
) -> list[CatalogueRow]:
    """Return the rows of an attacker, without and with endings."""
    base = re.split(r"[\[:]", form)[0]
    argument = "" if "[" in form else form.removeprefix(base)
    rows = []
    if base != "supervector":
        rows.append(CatalogueRow(form, summary, base, is_network=network))
    for variant in variants:
        words = [_ENDINGS[ending] for ending in variant.endings]
        row = CatalogueRow(
            "-".join([base, *variant.endings]) + argument,
            ", ".join([summary, *words]),
            base,
            variant.adapted,
            is_inverted=variant.undoing == "inverted",
            is_reversed=variant.undoing == "reversed",
            is_network=network,
        )
        rows.append(row)
    return rows


CATALOGUE: dict[str, CatalogueRow] = {
    row.name: row
    for row in chain(
        _rows(
            "gmm-ubm",
            "a statistical model of each voice, a mixture against a background mixture",
            _INVERTED,
        ),
        _rows("gmm-svm", "a support vector machine for each speaker, on supervectors", _INVERTED),
        _rows(
            "gmm-svm-cms",
            "a support vector machine for each speaker, on supervectors after cepstral mean subtraction",
            _INVERTED,
        ),
        _rows(
            "supervector-cosine",
            "a statistical model of each voice, by projected supervectors",
            _INVERTED,
        ),
        _rows("campplus[:WEIGHTS]", "a neural network, CAM++ of 2023", _NETWORK, network=True),
        _rows(
            _TUNED, "a neural network, CAM++, tuned on anonymised speech", _TRAINED, network=True
        ),
        _rows("ge2e[:WEIGHTS]", "a neural network, GE2E of 2018", _NETWORK, network=True),
        _rows("onnx:FILE", "a neural network, from an ONNX file", network=True),
        _rows("extractor:EXTRACTOR", "vectors of an extractor, as spkver embed takes it"),
        _rows(
            "trained:FILE.py",
            "a network that a module trains on the training set",
            _TRAINED,
            network=True,
        ),
        _rows(
            "ivector",
            "a statistical model of each voice, i-vectors",
            (_Variant("adapted"), _Variant("enrolled-plda"), _Variant("self-trained")),
        ),
        _rows("supervector", "a statistical model of each voice, supervectors", _ADAPTED),
        _rows("prosody", "pitch, rhythm and pauses"),
        _rows("durations", "how long each sound is held, relative to the speaking rate"),
        _rows("content", "spoken words, where there are transcripts"),
        _rows(
            "properties",
            "properties of files instead of the voice, such as level, length, format and tags",
        ),
        _rows("session", "noise and channel, in the pauses"),
        _rows(
            "fusion",
            "all attackers together, a sum of their scores with weights from background speakers",
        ),
    )
}


@one_line
@dataclass(frozen=True)
class Spec:
    """An attacker as named in a configuration.

    Attributes
    ----------
    name : str
        Name in folders and tables.
    entry : str
        The entry as written in ``attackers``.
    preset : str
        The entry, or the ``preset`` that its settings name.
    row : CatalogueRow or None
        Its row of `CATALOGUE`; None for a plug-in.
    argument : str
        Text after the colon, such as FILE in ``onnx:FILE``.
    network : bool or None
        Whether the settings call it a neural network; None if they do not say.
    """

    name: str
    entry: str
    preset: str
    row: CatalogueRow | None = None
    argument: str = ""
    network: bool | None = None

    @property
    def kind(self) -> str:
        """The base of its row, or the prefix of a plug-in ("" for a function)."""
        if self.row is not None:
            return self.row.base
        prefix = self.preset.partition(":")[0]
        return prefix if prefix in OUTSIDE else ""

    @property
    def summary(self) -> str:
        """A one-line description."""
        return OUTSIDE[self.kind][1] if self.row is None else self.row.summary

    @property
    def is_network(self) -> bool:
        """Whether the attacker uses a neural network; embeddings computed elsewhere usually come from one."""
        if self.network is not None:
            return self.network
        if self.row is None:
            return self.kind in _EMBEDDINGS
        if self.row.base != "extractor":
            return self.row.is_network
        extractor = CATALOGUE.get(self.argument.partition(":")[0])
        return extractor is not None and extractor.is_network

    @property
    def is_trained(self) -> bool:
        """Whether the attacker trains a network on the training set."""
        return self.row is not None and self.row.base in ("trained", _TUNED)

    @property
    def adapts(self) -> bool:
        """Whether the attacker adapts to the whole list of trials."""
        if self.row is None:
            return self.kind in _WHOLE_LIST
        return self.row.adapted in _WHOLE_LIST

    @property
    def inverts(self) -> bool:
        """Whether the attacker inverts the anonymisation."""
        return self.row is not None and (self.row.is_inverted or self.row.is_reversed)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that it is made for.

        Inversion by an estimated number needs anonymised speech on both sides; tuning needs an anonymised training set.
        """
        if self.row is not None and self.row.base == _TUNED:
            return ("semi-informed",)
        if self.row is None or not self.inverts:
            return tuple(name for name in SCENARIO_ORDER if name != REVERSAL)
        if self.row.is_reversed:
            return (REVERSAL,)
        return ("lazy-informed", "semi-informed")

    @property
    def is_own_code(self) -> bool:
        """Whether code of the user runs, whose dependencies may change unnoticed."""
        if self.row is None:
            return self.kind in ("", "command")
        if self.row.base == "trained":
            return True
        extractor, _, argument = self.argument.partition(":")
        return self.row.base == "extractor" and bool(argument) and extractor not in CATALOGUE


def parse_spec(entry: str, settings: Settings | None = None) -> Spec:
    """Return the attacker of an entry of ``attackers``, with the settings under its name.

    Examples
    --------
    >>> spec = parse_spec("campplus-adapted-inverted")
    >>> spec.row.base, spec.row.adapted, spec.row.is_inverted
    ('campplus', 'adapted', True)
    >>> parse_spec("onnx:ecapa.onnx").argument, parse_spec("scores:run/exp").row
    ('ecapa.onnx', None)

    Raises
    ------
    ConfigError
        If there is no such attacker, or the text after a colon is missing or not allowed.
    """
    preset = str((settings or {}).get("preset", entry))
    row, argument = _find_row(preset)
    if row is None and preset.startswith("fusion-"):
        raise ConfigError(
            f"attackers: {preset!r} is added by fusion itself",
            remedy="name fusion, with content (fusion-words) or inverting attackers (fusion-inverted)",
        )
    if row is None and not is_outside(preset):
        remedy = f"give attacker_settings.{entry}.preset, or correct it; for others see docs/own_attackers.md"
        presets = ", ".join(row.form for row in CATALOGUE.values())
        raise ConfigError(f"attackers: {preset!r} is not a preset ({presets})", remedy=remedy)
    network = None
    if row is None or row.base in _ANY_KIND:
        network = (settings or {}).get("network")
        if network not in (None, True, False):
            raise ConfigError(
                f"attacker_settings.{entry}.network is {network!r}: expected true or false"
            )
    return Spec(attacker_name(entry), entry, preset, row, argument, network)


def make_attacker(
    spec: Spec,
    settings: Mapping[str, Settings] | None = None,
    *,
    shared: Settings | None = None,
    seed: int = 0,
    hypotheses: str | None = None,
    time_limit: float | None = None,
) -> Attacker | Fusion:
    """Create an attacker.

    Parameters
    ----------
    spec : Spec
    settings : mapping of str to mapping, optional
        ``attacker_settings`` of all attackers, by entry. An attacker with endings has the settings of its base (without
        the chains if it adapts), overridden by its own.
    shared : mapping, optional
        ``attacker_settings.all``: settings of all GMM-based attackers, such as the size of the mixture.
    seed : int
    hypotheses : str or None
        File in the data directories that holds hypotheses of a recogniser.
    time_limit : float or None [s]
        For functions and commands, for training and for each list of trials; see
        `spkver.attackers.supplied.usual_limit`.

    Raises
    ------
    ConfigError
        If its settings are wrong, or there is no such function, folder or level.
    """
    shared = shared or {}
    layers = {entry: _without(values, "preset") for entry, values in (settings or {}).items()}
    if spec.network is not None:
        layers[spec.entry] = _without(layers[spec.entry], "network")
    own = layers.get(spec.entry, {})
    row = spec.row
    if row is None:
        return _open_outside(spec, own, seed, time_limit)
    name = spec.name
    if spec.inverts and not own:
        # it learns from original speech, so it shares the backend of the attacker without inversion
        name = _name_without_inversion(row)
    values = merged(_inherited_settings(spec, row, layers), own)
    if row.base in _WITHOUT_SETTINGS:
        if values:
            raise ConfigError(
                f"attacker_settings of {name}: {', '.join(values)}: a {row.base} attacker has no such settings"
            )
        attacker: Attacker = _WITHOUT_SETTINGS[row.base](name)
        return attacker
    if row.base in PRESETS:
        with naming(name):
            return classic_attacker(
                attacker_config(row.base, values=merged(shared, values, {"name": name}))
            )
    if row.base == "content":
        return content_attacker(name, values, hypotheses)
    mixture = {key: shared[key] for key in ("features", "ubm") if key in shared}
    if row.base == "ivector":
        return ivector_attacker(name, merged(mixture, values))
    if row.base == "supervector":
        return supervector_attacker(name, merged(mixture, values))
    if row.base == _TUNED:
        return tuned_attacker(name, values, time_limit=time_limit)
    if row.base == "trained":
        return trained_attacker(name, spec.argument, values, time_limit=time_limit)
    extractor = spec.argument
    if row.base != "extractor":
        extractor = _base_entry(spec, row)
    return extractor_attacker(name, extractor, values)


def _base_entry(spec: Spec, row: CatalogueRow) -> str:
    """Return the entry of an attacker without endings, such as ``extractor:NAME``."""
    return f"{row.base}:{spec.argument}".rstrip(":")


def _name_without_inversion(row: CatalogueRow) -> str:
    if row.adapted:
        return f"{row.base}-{row.adapted}"
    return row.base


def _inherited_settings(spec: Spec, row: CatalogueRow, layers: Mapping[str, Settings]) -> Settings:
    """Return the settings that an attacker inherits from those whose names it extends."""
    values = layers.get(_base_entry(spec, row), layers.get(row.base, {}))
    if row.adapted:
        values = merged(_without(values, "chains", "adapted"), {"adapted": ADAPTING[row.adapted]})
        if spec.inverts:
            values = merged(values, layers.get(_name_without_inversion(row), {}))
    return values


def is_absent(name: str) -> str:
    """Return why an attacker, named by its row, cannot run on this machine, or an empty string."""
    base = CATALOGUE[name].base
    if base == _TUNED:
        return tuning_is_absent()
    if base == "durations" and not find_spec("pocketsphinx"):
        return "it needs pocketsphinx, not installed; get it by: pip install pocketsphinx"
    if base not in (_STRONGER, _WEAKER):
        return ""
    return network_is_absent(base)


def absent_attackers() -> dict[str, str]:
    """Return which attackers of `DEFAULT` cannot run on this machine, and why."""
    reasons = {}
    for name in DEFAULT:
        why = is_absent(name)
        if why:
            reasons[name] = why
    return reasons


def default_attackers() -> tuple[str, ...]:
    """Return the attackers that run if none are named.

    If the weights of CAM++ are missing, GE2E takes its place if its weights are there; otherwise those of
    `WITHOUT_NETWORK` run. If torch is not installed, no network is tuned.
    """
    if not is_absent(_STRONGER):
        return tuple(name for name in DEFAULT if not is_absent(name))
    if not is_absent(_WEAKER):
        return tuple(
            name.replace(_STRONGER, _WEAKER) for name in DEFAULT if CATALOGUE[name].base != _TUNED
        )
    return WITHOUT_NETWORK


def named_only() -> list[str]:
    """Return the attackers that run only if named: none was stronger than all of `DEFAULT` on any data set."""
    usual = {*DEFAULT, *default_attackers()}
    names = []
    for name, row in CATALOGUE.items():
        needs_argument = ":" in row.form.split("[")[0]
        if name not in usual and not needs_argument and not is_absent(name):
            names.append(name)
    return names


def is_outside(entry: str) -> bool:
    """Return whether an entry in a list of attackers names a plug-in, such as a file, rather than a mere preset.

    Examples
    --------
    >>> is_outside("scores:ecapa/exp"), is_outside("gmm-svm")
    (True, False)
    """
    prefix, _, rest = entry.partition(":")
    return bool(prefix and rest)


def attacker_name(entry: str) -> str:
    """Return the name of an attacker in folders and tables if its settings give none.

    It is the entry itself, or for a plug-in a short name of letters, digits and -_+.

    Examples
    --------
    >>> [attacker_name(entry) for entry in ("gmm-svm", "campplus:wheels", "onnx:models/ecapa.onnx")]
    ['gmm-svm', 'campplus', 'onnx-ecapa']
    >>> [attacker_name(entry) for entry in ("scores:ecapa/exp", "mine/ltas.py:attack", "command:python x.py {scores}")]
    ['scores-ecapa', 'ltas-attack', 'command-x']
    """
    row, argument = _find_row(entry)
    if row is not None and argument and "[" not in row.form:
        return f"{row.name}-{Path(argument).stem}"
    if row is not None:
        return row.name
    if not is_outside(entry):
        return entry
    prefix, _, rest = entry.partition(":")
    if prefix == "command":
        label = "command-"
        for word in rest.split():
            program = Path(word).stem
            if program and not _INTERPRETER.fullmatch(program):
                label += program
                break
    elif prefix in OUTSIDE:
        path = Path(rest).resolve()
        if path.name == "exp":  # the folder exp of a run is named after the run
            path = path.parent
        label = f"{prefix}-{path.name}"
    else:
        where, _, function = entry.rpartition(":")
        module = where.rpartition(".")[2]
        if where.endswith(".py"):
            module = Path(where).stem
        label = f"{module}-{function}"
    return _UNSAFE.sub("-", label)[:_LONGEST].strip("-") or "own"


def named_entry(name: str, entries: Sequence[str]) -> str | None:
    """Return the entry of a list of attackers that a name stands for; None if there is none, or there are several.

    The names of an entry are the entry as written, its name in tables, and, for a plug-in or a file, the first or last
    part of either.

    Examples
    --------
    >>> entries = ("campplus-adapted", "mine/mlp.py:attack", "onnx:models/ecapa.onnx")
    >>> [named_entry(name, entries) for name in ("campplus-adapted", "mlp-attack", "mlp", "ecapa", "campplus")]
    ['campplus-adapted', 'mine/mlp.py:attack', 'mine/mlp.py:attack', 'onnx:models/ecapa.onnx', None]
    """
    if name in entries:
        return name
    fitting = [entry for entry in entries if attacker_name(entry) == name]
    if not fitting:
        fitting = [entry for entry in entries if ":" in entry and _is_part(name, entry)]
    if len(fitting) == 1:
        return fitting[0]
    return None


def _is_part(name: str, entry: str) -> bool:
    """Return whether a name is the file of an entry, or the first or last part of the name that tables show."""
    file = entry.rpartition(":")[0]
    label = attacker_name(entry)
    return (
        name in (file, Path(file).name)
        or label.startswith(f"{name}-")
        or label.endswith(f"-{name}")
    )


def _without(settings: Settings, *keys: str) -> Settings:
    return {key: value for key, value in settings.items() if key not in keys}


def _find_row(entry: str) -> tuple[CatalogueRow | None, str]:
    """Return the row of an entry, and the text after the colon."""
    name, colon, argument = entry.partition(":")
    row = CATALOGUE.get(name)
    if row is None:
        return None, ""
    can = ":" in row.form
    must = can and "[" not in row.form
    if (colon and not argument) or (argument and not can) or (must and not argument):
        raise ConfigError(f"attackers: {entry!r}: expected {row.form}")
    return row, argument


def _open_outside(spec: Spec, settings: Settings, seed: int, time_limit: float | None) -> Attacker:
    """Create an attacker from a plug-in; its level is given by the settings, `ONE_MODEL` by default."""
    rest = spec.preset.partition(":")[2]
    level = str(settings.get("level", ""))
    kind = spec.kind
    more = settings.keys() - {"level"}
    if more:
        text = f"attacker_settings of {spec.entry}: {', '.join(sorted(more))}"
        raise ConfigError(f"{text}: a user-supplied attacker takes only level and network")
    with naming(spec.name):
        if level and (level not in LEVELS or kind in _EMBEDDINGS):
            raise ConfigError(
                f"level is {level!r}: expected {', '.join(LEVELS)}; for vectors, the entry determines the level"
            )
        level = level or ONE_MODEL
        if kind == "scores":
            return ReadyScores(spec.name, Path(rest), level)
        if kind in _EMBEDDINGS:
            return ReadyVectors(spec.name, Path(rest), ADAPTING.get(kind, ""))
        if kind == "command":
            return OwnCommand(spec.name, rest, seed, time_limit, level)
        file = load_plugin(spec.preset, "attacker", kind="function")[1]
        return OwnFunction(spec.name, spec.preset, seed, time_limit, level, file)
