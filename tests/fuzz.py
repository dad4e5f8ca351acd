"""Fuzzing of what reads files of others: ``python -m tests.fuzz PARSER|all [FIRST] [LAST]``.

Valid files, made by our own writers, are damaged. What reads them returns or raises one error of ours, within ten
seconds; no program runs, and no file is made or left. Input `k` of a parser depends on `k` alone.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import pickle
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile

from evaluation import formats
from evaluation.embeddings import Embeddings, read_embeddings, write_embeddings
from evaluation.trials import Key, Scores, read_metadata, read_speakers
from evaluation.utility import read_recordings, read_transcripts
from spkbase.errors import Problems, SpkverError
from spkbase.files import load_json, load_yaml
from spkbase.plain_pickle import read_pickle, read_torch
from spkver.audio import read_audio
from spkver.backend import KaldiPlda, read_kaldi_plda, write_kaldi_plda
from spkver.corpora.rsr2015 import TRIAL_TYPES, read_enrolment, read_prompts, read_trials
from spkver.datadir import read_datadir
from spkver.sidekit import read_idmap, read_svm
from tests.shorten_bits import shorten_sphere

SECONDS = 10
_MEMORY = 3 << 29  # bytes that an input may ask for beyond what the process has
_DATA = Path(__file__).resolve().parent / "data" / "torch_files"
Folder = dict[str, bytes]


class Parser(NamedTuple):
    """Valid folders of files, the first of which is read, and what reads it."""

    folders: Callable[[Path], list[Folder]]
    read: Callable[[Path], object]


def files(name: str, *contents: bytes) -> Callable[[Path], list[Folder]]:
    return lambda _: [{name: content} for content in contents]


def written(name: str, *writers: Callable[[Path], object]) -> Callable[[Path], list[Folder]]:
    """Files that our own writers make."""

    def folders(folder: Path) -> list[Folder]:
        found = []
        for write in writers:
            write(folder / name)
            found.append({name: (folder / name).read_bytes()})
        return found

    return folders


def any_of(*readers: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader that tries all of these, and refuses what all refuse."""

    def read(path: Path) -> object:
        refused: list[SpkverError] = []
        for one in readers:
            try:
                one(path)
            except SpkverError as error:
                refused.append(error)
        if len(refused) == len(readers):
            raise refused[0]

    return read


def collected(read: Callable[[Path, Problems], object]) -> Callable[[Path], object]:
    def all_of(path: Path) -> object:
        problems = Problems(path)
        read(path, problems)
        problems.raise_if_any()

    return all_of


_NAMES, _NUMBERS = np.array(["a", "b", "é/2"], object), np.random.default_rng(0).normal(size=(3, 3))
_IDS = ["a", "a", "b", "b"], ["s1", "s2", "s1", "é-2"]
_SCORES, _KEY = (
    Scores.from_ids(*_IDS, [1.5, -2, 0, np.inf]),
    Key.from_ids(*_IDS, [True, False, False, True]),
)
_EMBEDDINGS = Embeddings(_NAMES, np.array(["x", "x", "y"], object), _NUMBERS.astype(np.float32))
_LISTS = any_of(formats.read_scores, formats.read_key, formats.read_trials)
_TEXTS = (
    b"a s 1.5\nb s -2\n", b"1 a s\n0 b s\n", b"a s 1 0.5\nb s 0 1.5\n", b'"model"\t"test"\t"llr"\n"a"\t"s"\t1\n',
    b"model,segment,score,target\na,s,1,1\nb,s,0,0\n", gzip.compress(b"a s target\nb s nontarget\n"),
)  # fmt: skip
_DATADIR = {
    ".": b"",
    "wav.scp": b"u1 audio.wav\nu2 audio.wav\nv1 audio.wav\n",
    "utt2spk": b"u1 u\nu2 u\nv1 v\n",
    "spk2utt": b"u u1 u2\nv v1\n",
    "spk2gender": b"u f\nv m\n",
    "enrolls": b"u1\nv1\n",
    "trials": b"u u2 target\nv u2 nontarget\n",
    "audio.wav": b"",
}
_ARKS = (
    b"u1 \0BDV \4\3\0\0\0" + _NUMBERS[0].tobytes() + b"u2 \0BFM \4\1\0\0\0\4\3\0\0\0" + bytes(12),
    b"u1 \0BCM2 " + struct.pack("<ffii", -1.0, 2.0, 1, 4) + bytes(8),
    b"u1 [ 1.5 2 -3 ]\nu2 [ 1 2 3 ]\n",
)
_HEAD = json.dumps(
    {
        f"u{row}": {"dtype": "F32", "shape": [1, 4], "data_offsets": [16 * row, 16 * row + 16]}
        for row in (0, 1)
    }
).encode()
_SAMPLES = np.random.default_rng(0).normal(0, 3000, 600).astype(np.int16)
_PICKLED = {
    "a": [np.arange(3.0), np.ones(3)],
    "b": [("u1", np.zeros(3, np.float32))],
    "c": ({"x": [1, 2.5, None]},),
}


def _folder_of_arrays(folder: Path) -> list[Folder]:
    np.save(folder / "vectors.npy", _NUMBERS)
    np.save(folder / "ids.npy", _NAMES.astype(str))
    return [
        {".": b"", **{name: (folder / name).read_bytes() for name in ("vectors.npy", "ids.npy")}}
    ]


def _audio(_: Path) -> list[Folder]:
    found = []
    for container, kind in (
        ("WAV", "PCM_16"),
        ("WAV", "ULAW"),
        ("FLAC", "PCM_16"),
        ("NIST", "PCM_16"),
    ):
        content = io.BytesIO()
        soundfile.write(
            content, np.stack([_SAMPLES, _SAMPLES], axis=1), 8000, format=container, subtype=kind
        )
        found.append({"x.audio": content.getvalue()})
    return found


def _shortened(_: Path) -> list[Folder]:
    return [{"x.sph": shorten_sphere(_SAMPLES)}]


PARSERS = {
    "scores": Parser(files("x.txt", *_TEXTS), _LISTS),
    "scores-npz": Parser(
        written("x.npz", partial(formats.write_scores, scores=_SCORES), partial(formats.write_key, key=_KEY)), _LISTS
    ),
    "datadir": Parser(lambda _: [_DATADIR, {**_DATADIR, "wav.scp": b"u1 cat x |\n"}], read_datadir),
    "transcripts": Parser(files("text", b"u1 the words\nu2 more\n"), any_of(read_transcripts, read_recordings)),
    "speakers": Parser(files("utt2spk", b"u1 a\nu2 b\n", b"\xef\xbb\xbfu1 a\r\nu2 a\r\n"), read_speakers),
    "metadata": Parser(files("x.tsv", b"id\tsex\na\tf\n", b"id,sex\n'a',f\n"), partial(read_metadata, column="sex")),
    "rsr2015-trn": Parser(
        files("x.trn", b"m101_001 male/m101/m101_01_001.sph,m101/x.wav\r\n"), collected(read_enrolment)
    ),
    "rsr2015-ndx": Parser(
        files("x.ndx", b"m101_001,m101/m101_02_001.sph,Y,N,N,N\n", b"m101_001 m101/m101_02_001 N N Y N\r\n"),
        collected(lambda path, problems: read_trials(path, TRIAL_TYPES[:2], TRIAL_TYPES[2:], problems)),
    ),
    "rsr2015-part3": Parser(
        files("x.ndx", b"4-8-0-7-3,m101_1,m101/m101_02_064.sph,Y,N,N,N\n", b"1-2 m101_01 m102/m102_02_064 N N N Y\r\n"),
        collected(
            lambda path, problems: read_trials(path, TRIAL_TYPES[:2], TRIAL_TYPES[2:], problems, has_prompts=True)
        ),
    ),
    "rsr2015-prompts": Parser(files("x.txt", b"01,064,4-8-0\n", b"1,61,one two\r\n"), collected(read_prompts)),
    "idmap": Parser(files("x.txt", b"m1 s1\nm2 s2 0 10\n", b"m1 s1 5 10\n"), read_idmap),
    "documents": Parser(
        files("x", b'{"a": [1, 2.5], "b": null}', b"a: &x {b: 1}\nc: 2001-01-01\n"),
        any_of(load_json, lambda path: load_yaml(path.read_bytes().decode("utf-8", "replace"))),
    ),
    "kaldi-ark": Parser(files("x.ark", *_ARKS), read_embeddings),
    "kaldi-scp": Parser(lambda _: [{"x.scp": b"u1 x.ark:3\n", "x.ark": _ARKS[0]}], read_embeddings),
    "kaldi-plda": Parser(
        written("plda", *(
            partial(write_kaldi_plda, plda=KaldiPlda(_NUMBERS[0], _NUMBERS, np.array([2.0, 1, 0])), binary=binary)
            for binary in (True, False)
        )),
        read_kaldi_plda,
    ),
    "embeddings-npz": Parser(written("x.npz", partial(write_embeddings, embeddings=_EMBEDDINGS)), read_embeddings),
    "embeddings-npy": Parser(_folder_of_arrays, read_embeddings),
    "embeddings-table": Parser(
        files("x.csv", b"id,speaker,e0,e1\nu1,x,1,2.5\nu2,y,-3e-05,nan\n", b'utt;vector\nu1;"[1, 2]"\n', b"u1 1 2\n"),
        read_embeddings,
    ),
    "safetensors": Parser(
        files("x.safetensors", struct.pack("<Q", len(_HEAD)) + _HEAD + bytes(32)), read_embeddings
    ),
    "pickle": Parser(
        files("x.pkl", *(pickle.dumps(_PICKLED, protocol) for protocol in (0, 2, 4, 5))),
        any_of(read_pickle, partial(read_embeddings, allow_pickle=True)),
    ),
    "torch": Parser(
        files("x.pt", *((_DATA / name).read_bytes() for name in ("tensors.pt", "tensors_older.pt"))),
        any_of(read_torch, read_embeddings),
    ),
    "sidekit-svm": Parser(
        files("x.svm", gzip.compress(pickle.dumps((_NUMBERS[:1], np.float64(0.5))))),
        partial(read_svm, allow_pickle=True),
    ),
    "audio": Parser(_audio, partial(read_audio, channel=0)),
    "shorten": Parser(_shortened, partial(read_audio, channel=0)),
}  # fmt: skip

# --- damage ----------------------------------------------------------------------------------------------------------

_ODD = (
    *(b"", b"-1", b"0", b"1e999", b"nan", b"9" * 400, b"0x10", b"1_000", b"..", b"../../x", b"/etc/passwd"),
    *(b"|touch x", b"touch x |", b"\0", b"\r\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"x" * 70_000),
    *(b"[" * 3000, b"&a [*a]", b"!!python/name:os.system", b"target", b"NaN", b"'", b'"', b"{", "é 語\u2028".encode()),
    *(b"cos\nsystem\n(S'touch x'\ntR", b"\x8c\x05posix\x8c\x06system\x93\x8c\x07touch x\x85R"),
)  # fmt: skip
_WORD = re.compile(rb"[^\s,;\"]+")


def damage(chance: random.Random, data: bytes) -> bytes:
    """Damage some bytes a few times: bits, numbers, words, lines, lengths."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(data) + 1)
        length = chance.choice((1, 2, 4, 8, 60))
        kind = chance.randrange(8)
        words = list(_WORD.finditer(data, place, place + 4000))
        if kind == 0 and data:
            raw = bytearray(data)
            raw[place - 1] ^= 1 << chance.randrange(8)
            data = bytes(raw)
        elif kind == 1:
            number = chance.choice(
                (0, 1, 255, 1 << 31, (1 << 32) - 1, len(data), chance.randrange(1 << 32))
            )
            data = (
                data[:place] + struct.pack("<I", number)[:length] + data[place + min(length, 4) :]
            )
        elif kind == 2:
            data = data[:place]
        elif kind == 3:
            data = data[:place] + data[place + length :]
        elif kind == 4:
            data = (
                data[:place]
                + data[place : place + length] * chance.choice((2, 3, 50))
                + data[place + length :]
            )
        elif kind == 5 and words:
            word = chance.choice(words)
            data = data[: word.start()] + chance.choice(_ODD) + data[word.end() :]
        elif kind == 6:
            lines = data.split(b"\n")
            lines.insert(chance.randrange(len(lines)), lines.pop(chance.randrange(len(lines))))
            data = b"\n".join(lines)
        else:
            data = data[:place] + chance.choice(_ODD) + data[place:]
    return data[: 1 << 20]


def input_of(name: str, number: int, folders: list[Folder]) -> Folder:
    """Input `number`: a valid one, or one with a damaged file."""
    if number < len(folders):
        return folders[number]
    chance = random.Random(f"{name}/{number}")
    folder = dict(chance.choice(folders))
    file = chance.choice([name for name in folder if name != "."])
    raw = folder[file]
    if raw.startswith(b"\x1f\x8b") and chance.random() < 0.7:
        return {**folder, file: gzip.compress(damage(chance, gzip.decompress(raw)))}
    return {**folder, file: damage(chance, raw)}


# --- watching the process --------------------------------------------------------------------------------------------

_FORBIDDEN = {
    *(
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "os.spawn",
        "subprocess.Popen",
        "pickle.find_class",
    ),
    *(
        "socket.connect",
        "os.kill",
        "os.symlink",
        "os.link",
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.rmdir",
    ),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_seen: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
    if _seen is not None and (writes or event in _FORBIDDEN):
        _seen.append(f"{event} {arguments!r}"[:300])


class _TooLongError(BaseException):
    """Is not caught by what catches errors of a damaged file."""


def _too_long(*_: object) -> None:
    raise _TooLongError


def try_inputs(parser: Parser, name: str, first: int, last: int) -> dict[str, int]:
    """Try inputs in this process; an AssertionError says what was wrong with one.

    Returns
    -------
    dict
        How many were accepted, and how many refused.
    """
    global _seen
    counts = {"accepted": 0, "refused": 0}
    signal.signal(signal.SIGALRM, _too_long)
    with tempfile.TemporaryDirectory() as made:
        folders = parser.folders(Path(made))
    for number in range(first, last):
        with tempfile.TemporaryDirectory() as home:
            content = input_of(name, number, folders)
            for file, raw in content.items():
                if file != ".":
                    (Path(home) / file).write_bytes(raw)
            sys.stderr.write(f"\r{name} {number}")
            sys.stderr.flush()
            os.chdir(home)
            signal.alarm(SECONDS)
            # modules that are otherwise loaded on demand are loaded first
            _seen = [] if number >= len(folders) else None
            try:
                parser.read(Path(home) / next(iter(content)))
                outcome = "accepted"
            except SpkverError:
                outcome = "refused"
            finally:
                signal.alarm(0)
                os.chdir("/")
            seen, _seen = _seen, None
            assert not seen, f"{name} {number}: {seen}"
            left = {path.name for path in Path(home).iterdir()} - set(content)
            assert not left, f"{name} {number} leaves {left}"
        counts[outcome] += 1
    return counts


def main() -> None:
    """Try inputs under limits, and print the counts."""
    name, first, last = [*sys.argv[1:], "0", "1000"][:3]
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.addaudithook(_note)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, size + _MEMORY))
    parsers = PARSERS if name == "all" else {name: PARSERS[name]}
    found = {one: try_inputs(parser, one, int(first), int(last)) for one, parser in parsers.items()}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
