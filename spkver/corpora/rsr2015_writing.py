"""The lists of an RSR2015 experiment as files, and their checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from evaluation.formats import write_key, write_trials
from evaluation.trials import Key
from spkbase.files import write_text
from spkver.corpora.rsr2015 import Rsr2015
from spkver.corpora.rsr2015_files import UBM_LIST, list_stems
from spkver.sidekit import write_idmap


def write_lists(lists: Rsr2015, folder: str | Path) -> list[Path]:
    """Write the lists as SIDEKIT's tutorial names them, in its HDF5 layouts (``.h5``) and as text (``.txt``).

    Beside them go the speakers of recordings and of models, ``utt2spk`` and ``model2spk``, as `spkver-eval` takes them,
    and ``data``, a Kaldi directory of all recordings under the last part of their ids, as `spkver embed` takes it.

    Returns
    -------
    list of path
        The files, ``3sesspwd_eval_m_trn.h5`` first.
    """
    folder = Path(folder)
    stems = list_stems(lists.partition, lists.gender)
    maps = {
        "enrolment": lists.enrolment,
        "test": lists.test,
        "background": lists.background,
        "nap": lists.nap,
    }
    written = []
    for extension in (".h5", ".txt"):
        for kind, idmap in maps.items():
            written.append(folder / f"{stems[kind]}{extension}")
            write_idmap(written[-1], idmap)
        written.append(folder / f"{stems['key']}{extension}")
        write_key(written[-1], lists.key)
        written.append(folder / f"{stems['trials']}{extension}")
        write_trials(written[-1], lists.key.trials())
    written.append(folder / UBM_LIST)
    # without a last line break: SIDEKIT's tutorial splits at line breaks and would take an empty id for a recording
    write_text(written[-1], "\n".join(lists.ubm))
    of_model, of_recording = lists.speakers()
    for name, speakers in (("utt2spk", of_recording), ("model2spk", of_model)):
        written.append(folder / name)
        write_text(written[-1], _lines(f"{identifier} {speakers[identifier]}" for identifier in sorted(speakers)))
    return written + _write_data_directory(lists, of_recording, folder / "data")


def _write_data_directory(lists: Rsr2015, speakers: Mapping[str, str], folder: Path) -> list[Path]:
    """Write a Kaldi data directory, where no id can hold a slash; none where two recordings have the same name."""
    paths = {segment.rpartition("/")[2]: segment for segment in lists.recordings}
    if len(paths) < len(lists.recordings):
        return []
    of_speaker: dict[str, list[str]] = {}
    for name in sorted(paths):
        of_speaker.setdefault(speakers[paths[name]], []).append(name)
    texts = {
        "wav.scp": (f"{name} {lists.recordings[paths[name]].absolute()}" for name in sorted(paths)),
        "utt2spk": (f"{name} {speakers[paths[name]]}" for name in sorted(paths)),
        "spk2utt": (f"{speaker} {' '.join(names)}" for speaker, names in sorted(of_speaker.items())),
    }
    for name, lines in texts.items():
        write_text(folder / name, _lines(lines))
    return [folder / name for name in texts]


def list_hashes(lists: Rsr2015) -> dict[str, str]:
    """Return the SHA-256 of the text of each list: what an experiment must name to be repeated.

    The text is one line for each row, "model recording" (UBM: "recording"), in order; the key's lines are
    "model segment target|nontarget type", sorted.
    """
    maps = {"enrolment": lists.enrolment, "background": lists.background, "nap": lists.nap, "test": lists.test}
    texts = {name: _lines(f"{m} {s}" for m, s in zip(x.models, x.segments, strict=True)) for name, x in maps.items()}
    texts["ubm"] = _lines(lists.ubm)
    texts["key"] = _key_text(lists.key)
    return {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in sorted(texts.items())}


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def _key_text(key: Key) -> str:
    labels = np.array(["nontarget", "target"], dtype=object)[key.is_target.astype(np.int64)]
    types = np.array([*key.type_names, ""], dtype=object)[-1 if key.types is None else key.types]
    models, segments = key.model_ids[key.models], key.segment_ids[key.segments]
    return _lines(sorted((models + " " + segments + " " + labels + " " + types).tolist()))
