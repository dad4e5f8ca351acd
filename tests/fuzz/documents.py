"""Documents: configurations and settings in YAML, our ledgers and results in JSON, trained attackers."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluation.calibration.affine import Affine, load_affine, save_affine
from evaluation.challenges.systems import read_system
from evaluation.challenges.team_scores import read_rule
from evaluation.metrics.disclosure import read_scale
from evaluation.reports import parse_results, read_results
from spkbase.configuration import load_config, to_dict
from spkbase.errors import SpkverError
from spkbase.files.hdf5 import file_digest, fingerprint
from spkbase.runs import LEDGER, SOURCES, Ledger, Origin, format_status, origin_record, read_status, status_record
from spkver.anonymization import directories
from spkver.attackers.attack import TrainedAttacker, load_attacker, save_attacker
from spkver.attackers.config import AttackerConfig
from spkver.attackers.kinds import Backend, Transform
from spkver.backend.chain import format_chain, parse_chain, plain_chain, read_chain
from spkver.commands.status import twin_status
from spkver.corpora.trees import is_finished
from spkver.datadir import reading
from spkver.mixture.gmm import GaussianMixture
from spkver.recognition.recordings import _read as read_recorded
from tests.fuzz.containers import inside_hdf5, odd_values
from tests.fuzz.mutation import damage
from tests.fuzz.parsers import Parser, any_of, joined, written

_ROOT = Path(__file__).resolve().parent.parent.parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_YAML = (damage, odd_values, odd_values)
_WORDS = (
    b"ubm:",
    b"components: 64",
    b"seed: 1",
    b"features:",
    b"- 1",
    b"&a",
    b"*a",
    b"<<: *a",
    b"!!str",
    b"|",
    b">",
    b"?",
)


@cache
def _config(recipe: str) -> type:
    """The configuration of a recipe."""
    if recipe == "rsr2015":
        from spkver.rsr2015 import Config
    else:
        from spkver.voiceprivacy import Config
    return Config


def _config_files(recipe: str) -> Callable[[Path], list[bytes]]:
    def seeds(_: Path) -> list[bytes]:
        files = sorted((_ROOT / "recipes" / recipe / "config").glob("*.yaml"))
        whole = yaml.safe_dump(to_dict(_config(recipe)()), sort_keys=False).encode()
        return [*(file.read_bytes() for file in files), whole, b"a: &x {b: 1}\nc: *x\n"]

    return seeds


def _read_config(recipe: str) -> Callable[[Path], object]:
    return lambda path: to_dict(load_config(_config(recipe), file=path))


def _settings(_: Path) -> list[bytes]:
    return [
        b"ubm.components=64",
        b"trials.nontarget=[IC, TW]",
        b"seed=1e3",
        b"features={preset: sidekit}",
        b"svm.cost=null",
    ]


def _read_setting(path: Path) -> object:
    text = path.read_bytes().decode("utf-8", "surrogateescape")  # as arguments come
    return any_of(*(partial(_with_setting, text, recipe) for recipe in ("rsr2015", "voiceprivacy")))(path)


def _with_setting(text: str, recipe: str, _: Path) -> object:
    return load_config(_config(recipe), settings=[text])


def _rules(_: Path) -> list[bytes]:
    return [b"weights: {libri: 0.5}\nkeys: ['{trial}/trials']\nenrol: 'x(?P<anon>a)?'\n", b"keys: x\n"]


# --- attackers -------------------------------------------------------------------------------------------------------


def _attackers(folder: Path) -> list[bytes]:
    rng = np.random.default_rng(0)
    ubm = GaussianMixture(np.array([0.5, 0.5]), rng.normal(size=(2, 3)), np.ones((2, 3)))
    backend = Backend(Transform(np.zeros(6), rng.normal(size=(6, 1)), None, True), None, None, None)
    save_attacker(TrainedAttacker(AttackerConfig(name="a"), 0, ubm, backend, {"name": "x"}), folder / "seed")
    return [joined(folder / "seed", ["attacker.yaml", "attacker.h5"])]


def _repaired(kind: Callable[..., bytes]) -> Callable[[random.Random, bytes, Sequence[bytes]], bytes]:
    """Damage one of the two files of an attacker, and make the checksums good again."""

    def change(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        head, mark, arrays = data.partition(b"==> attacker.h5\n")
        if kind is inside_hdf5:
            arrays = inside_hdf5(chance, arrays, [arrays])
        else:
            head = kind(chance, head, [head])
        return head + mark + arrays

    return change


def _read_attacker(path: Path) -> object:
    """As it is; and again with the checksums that its contents have."""
    try:
        return load_attacker(path)
    except SpkverError:
        description = path / "attacker.yaml"
        try:
            said = yaml.load(description.read_bytes(), _LOADER)
            said["sha256"] = file_digest(path / "attacker.h5")
            said["fingerprint"] = fingerprint({name: value for name, value in said.items() if name != "fingerprint"})
            description.write_text(json.dumps(said))
        except Exception:  # no YAML, or nothing that has a fingerprint
            raise SpkverError("nothing to repair") from None
        return load_attacker(path)


# --- ledgers and results ---------------------------------------------------------------------------------------------


def _ledgers(folder: Path) -> list[bytes]:
    root = folder / "run"
    root.mkdir(exist_ok=True)
    (root / "ubm.h5").write_bytes(b"x")
    origin = Origin("ubm", "1", inputs="abc", libraries={"numpy": "1"}, after={"features": "def"})
    entry = {**origin_record(origin), "sha256": {"ubm.h5": file_digest(root / "ubm.h5")}, "seconds": 1.5}
    ledger = Ledger(root)
    ledger.note("ubm.h5", entry, [{**origin_record(origin), "artefact": "ubm.h5"}])
    ledger.note_sources("ubm", [["a.wav", 1, 2]])
    return [joined(root, [LEDGER, SOURCES])]


def _read_ledgers(path: Path) -> object:
    found = read_status(path, {directories.RECORD: twin_status})
    return format_status(found), json.dumps(status_record(found))


def _anonymised(_: Path) -> list[bytes]:
    entry = {"made_by": "abc", "stream": "u1", "source": [1, 2, "x"], "output": {"size": 1}}
    said = {"made_by": "abc", "utterances": 2, "files": {"u1": entry, "u2": entry}, "lists": ["text"]}
    return [f"==> {directories.RECORD}\n".encode() + json.dumps(said, indent=1).encode()]


def _read_anonymised(path: Path) -> object:
    return directories.progress(path), directories._read(path)


def _chunks(_: Path) -> list[bytes]:
    return [
        json.dumps(one).encode()
        for one in ({"fingerprint": "a", "results": {"u1": [1.5], "u2": None}}, {"u1": "cat x |"})
    ]


def _read_chunk(path: Path) -> object:
    found = [reading._read_record(path)]
    assert all(isinstance(one, dict) for one in found)
    return any_of(read_recorded, load_affine)(path)


def _tree(_: Path) -> list[bytes]:
    return [b'==> simulation.json\n{"version": 1, "variability": {}}', b'==> simulated.json\n{"version": 1}']


def _results(folder: Path) -> list[bytes]:
    found = {"value": 0.1, "low": 0.05, "high": 0.2}
    row = {
        **{
            "dataset": "libri_test",
            "gender": "f",
            "scenario": "semi-informed",
            "attacker": "a",
            "n_target": 5,
            "n_nontarget": 9,
        },
        **{
            "eer": {"rocch": 0.1, "default": 0.1},
            "intervals": {"eer.rocch": found},
            "cllr": 1.0,
            "ranks": {"top1": found},
        },
        "linkability": {"d_sys": found, "bins": [1, 2]},
        "zebra": {"population": 0.1, "individual": 1.2, "tag": "B"},
    }
    utility = {"wer": {"libri_test": {"anonymised": found}}, "uar": {"iemocap_test": found}, "f0": found}
    config = {"challenge": {"weights": {"libri": 1}}}
    whole = {"format": 1, "conditions": [row, {**row, "gender": "m"}], "config": config, "utility": utility}
    return [
        json.dumps(whole, indent=1).encode(),
        written(save_affine, folder / "a.json", Affine((1.0,), 0.5, 0.5, ("a",))),
    ]


def _page(path: Path) -> object:
    return parse_results(read_results(path), file=path)


def _json_values(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Put an odd value in some place of a document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return damage(chance, data, others)
    odd: tuple[Any, ...] = (
        *(None, True, -1, 0, 1.5, 1e999, float("nan"), 10**40, "", "x", "../../x", "\ud800", "\0", "é" * 300),
        *([], [[]], [None], ["a"], [1, 2, 3], [["a", 1, 2]], {}, {"a": {}}, {"low": 1}, {"rocch": "x"}),
    )
    for _ in range(chance.choice((1, 1, 2, 4))):
        holder, depth = document, chance.randrange(6)
        while isinstance(holder, (dict, list)) and holder:
            name = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if not depth or not isinstance(holder[name], (dict, list)) or not holder[name]:
                if isinstance(holder, dict) and chance.random() < 0.2:
                    holder.pop(name)
                else:
                    holder[name] = copy.deepcopy(chance.choice(odd))
                break
            holder, depth = holder[name], depth - 1
    return json.dumps(document, indent=chance.choice((None, 1))).encode()


def _in_sections(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Put odd values into one of the files of an input."""
    parts = data.split(b"==> ")
    place = chance.randrange(len(parts))
    name, newline, text = parts[place].partition(b"\n")
    parts[place] = name + newline + _json_values(chance, text, others)
    return b"==> ".join(parts)


_JSON, _SECTIONS = (damage, _json_values, _json_values), (damage, _in_sections, _in_sections)


def _chains(_: Path) -> list[bytes]:
    return [
        b"centre,whiten:cholesky,length,lda:3,length,plda:2,snorm:5",
        b"[centre, lda: {rank: 2, shrink: 0.1}, nap: {rank: 1, scatter: total}, svm: {balanced: true}, calibrate: 0.1]",
        b"- coral\n- efr: 2\n- plda: {rank: 3, sessions: mean, adapt: kaldi}\n- snorm: {top: 3, cohort: adapt}\n",
    ]


def _read_chain(path: Path) -> object:
    """As a file and as an argument; what can be parsed comes back from its own text."""
    chain = read_chain(path)
    assert plain_chain(parse_chain(format_chain(chain))) == plain_chain(chain)
    with suppress(SpkverError):
        return chain, parse_chain(path.read_text(encoding="utf-8"))
    return chain


def _read_chain_text(path: Path) -> object:
    """As an argument alone: the short form."""
    chain = parse_chain(path.read_text(encoding="utf-8", errors="replace"))
    return plain_chain(parse_chain(format_chain(chain)))


PARSERS = [
    Parser(
        "chain", "input.yaml", _chains, any_of(_read_chain, _read_chain_text), _YAML, (b"lda:", b"plda: {", b"}", b",")
    ),
    Parser("config-rsr2015", "input.yaml", _config_files("rsr2015"), _read_config("rsr2015"), _YAML, _WORDS),
    Parser(
        "config-voiceprivacy", "input.yaml", _config_files("voiceprivacy"), _read_config("voiceprivacy"), _YAML, _WORDS
    ),
    Parser(
        "settings",
        "input.txt",
        _settings,
        _read_setting,
        _YAML,
        (b"ubm.components=", b"seed=", b"1", b"[1]", b"features.preset="),
    ),
    Parser("zebra-scale", "input.yaml", lambda _: [b'"0": 0\nA: 1\nB: .inf\n'], read_scale, _YAML),
    Parser("challenge-rule", "input.yaml", _rules, read_rule, _YAML),
    Parser(
        "attacker", "input/", _attackers, _read_attacker, (damage, *map(_repaired, (damage, odd_values, inside_hdf5)))
    ),
    Parser("run-ledgers", "input/", _ledgers, _read_ledgers, _SECTIONS),
    Parser("anonymisation-record", "input/", _anonymised, _read_anonymised, _SECTIONS),
    Parser("chunks-json", "input.json", _chunks, _read_chunk, _JSON),
    Parser("simulated-record", "input/", _tree, lambda path: is_finished(path, {"version": 1}, ["a.wav"]), _SECTIONS),
    Parser(
        "results-json",
        "input.json",
        _results,
        any_of(_page, read_system, load_affine),
        _JSON,
    ),
]
