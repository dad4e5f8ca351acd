"""Lists: RSR2015's keys, Kaldi's lists, scores and keys in all their formats, metadata."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from evaluation import formats
from evaluation.challenges.rank_files import ASR, ASV, RankFile, format_rank_file, make_section, read_rank_file
from evaluation.challenges.team_scores import read_results
from evaluation.embeddings.kaldi import read_scp
from evaluation.formats.format import Choice
from evaluation.trials.lists import Key, Scores, Trials
from evaluation.trials.speakers import read_metadata, read_speakers
from evaluation.utility.lists import read_labels, read_recordings, read_transcripts
from spkbase.errors import Problems
from spkver.corpora.rsr2015 import ListOptions, SpeakerRanges, read_rsr2015, write_lists
from spkver.corpora.rsr2015_keys import TRIAL_TYPES, read_enrolment, read_trials
from spkver.corpora.simulated import enrolment_lines, trial_lines
from spkver.datadir.reading import read_datadir
from spkver.features.vad import read_labels as read_speech_labels
from spkver.idmap import IdMap
from spkver.sidekit.idmaps import read_idmap, write_idmap
from tests.fuzz.containers import inside_gzip, inside_hdf5, inside_npz
from tests.fuzz.mutation import damage
from tests.fuzz.parsers import Parser, any_of, written

IDS = ["a", "a", "b", "b"], ["s1", "s2", "s1", "é-2"]
SCORES = Scores.from_ids(*IDS, [1.5, -2, 0, np.inf])
KEY = Key.from_ids(*IDS, [True, False, False, True])
IDMAP = IdMap(["m1", "m1", "m2"], ["s1", "s2", "s3"], np.array([0, -1, 5]), np.array([10, -1, 7]))


def _collected(read: Callable[[Path, Problems], object]) -> Callable[[Path], object]:
    def all_of(path: Path) -> object:
        problems = Problems(path)
        found = read(path, problems)
        problems.raise_if_any()
        return found

    return all_of


# --- RSR2015 ---------------------------------------------------------------------------------------------------------


def _read_trials(path: Path, problems: Problems) -> object:
    return read_trials(path, TRIAL_TYPES[:2], problems)


_SPEAKERS = ["m101", "m102"]


def _keys(_: Path) -> list[bytes]:
    lines = enrolment_lines(_SPEAKERS, folder="male", n_sentences=2, n_sessions=4)
    return ["".join(lines).encode(), b"m101_001 male/m101/m101_01_001.sph,m101/x.wav\r\n"]


def _trials(_: Path) -> list[bytes]:
    lines = "".join(line for of_model in trial_lines(_SPEAKERS, n_sentences=2, n_sessions=4) for line in of_model)
    return [lines.encode(), b"m101_001,m101/m101_02_001.sph,Y,N,N,N\n", b"m101_001 m101/m101_02_001 N N Y N\r\n"]


_PLACES = itertools.product((1, 2, 101, 102), (1, 2, 3, 4), (1, 2))
_RECORDINGS = [f"m{speaker:03d}_{session:02d}_{sentence:03d}" for speaker, session, sentence in _PLACES]


def _read_rsr2015(path: Path) -> object:
    """The input is both key files; the recordings are there, by name."""
    root = path.parent / "rsr2015"
    for name in _RECORDINGS if not root.exists() else ():
        file = root / "sph/male" / name[:4] / f"{name}.sph"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    for name, target in (("trn", "trn/3sesspwd_eval_m.trn"), ("ndx", "ndx/3sess-pwd_eval_m.ndx")):
        target = root / "key/part1" / target
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if (path / name).is_file():
            (path / name).rename(target)
    ranges = SpeakerRanges(background_m=(1, 2), eval_m=(101, 102))
    lists = read_rsr2015(root, ListOptions(speakers=ranges, background_size=2, nap_step=2, sentences=(1, 2)))
    return write_lists(lists, path.parent / "lists")


def _rsr2015(folder: Path) -> list[bytes]:
    return [
        b"==> trn\n" + keys + b"==> ndx\n" + trials
        for keys, trials in zip(_keys(folder), _trials(folder), strict=False)
    ]


def _read_folder(path: Path) -> object:
    """The input is a folder of lists, as `lists.folder` names one; there are no key files."""
    root = path.parent / "rsr2015"
    for name in _RECORDINGS if not root.exists() else ():
        file = root / "sph/male" / name[:4] / f"{name}.sph"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return read_rsr2015(root, ListOptions(background_size=2, nap_step=2, folder=path))


def _folders(_: Path) -> list[bytes]:
    trials = [
        (f"m{model}_00{sentence}", f"m{speaker}/m{speaker}_02_00{sentence}", model == speaker)
        for model, speaker, sentence in itertools.product((101, 102), (101, 102), (1, 2))
    ]
    enrolment = [f"{model} {model[:4]}/{model[:4]}_01_{model[5:]}" for model, _, own in trials if own]
    key = [f"{model} {segment} {'target' if own else 'nontarget'}" for model, segment, own in trials]
    background = [f"m00{speaker}/m00{speaker}_01_001" for speaker in (1, 2)]
    files = {
        "3sesspwd_eval_m_trn": enrolment,
        "3sess-pwd_eval_m_key": key,
        "3sess-pwd_eval_m_ndx": [" ".join(line.split()[:2]) for line in key],
        "3sess-pwd_eval_m_test": [f"{segment} {segment}" for segment in sorted({row[1] for row in trials})],
        "3sess-pwd_eval_m_back": [f"{name[:4]} {name}" for name in background],
        "3sess-pwd_eval_m_nap": [f"{name[:4]} male/{name}.sph" for name in background],
        "ubm_list": [*background, "m001/m001_02_001"],
    }
    return ["".join(f"==> {name}.txt\n" + "\n".join(lines) + "\n" for name, lines in files.items()).encode()]


# --- Kaldi -----------------------------------------------------------------------------------------------------------


def _datadir(_: Path) -> list[bytes]:
    lists = {
        "wav.scp": b"u1 audio.wav\nu2 audio.wav\nv1 audio.wav\n",
        "utt2spk": b"u1 u\nu2 u\nv1 v\n",
        "spk2utt": b"u u1 u2\nv v1\n",
        "spk2gender": b"u f\nv m\n",
        "enrolls": b"u1\nv1\n",
        "trials": b"u u2 target\nv u2 nontarget\n",
    }
    whole = b"".join(b"==> " + name.encode() + b"\n" + text for name, text in lists.items())
    return [
        whole,
        whole.replace(b"\n", b"\r\n").replace(b"==> wav.scp\r", b"==> wav.scp"),
        whole.replace(b"audio.wav\nu2", b"cat x |\nu2"),
    ]


def _read_datadir(path: Path) -> object:
    (path / "audio.wav").touch()
    return read_datadir(path)


def _read_utterances(path: Path) -> object:
    """As transcripts, as labels and as recordings."""
    (path.parent / "audio.wav").touch()
    return any_of(read_transcripts, read_labels, read_recordings)(path)


# --- scores and keys -------------------------------------------------------------------------------------------------

_CHOICES = {
    "scores": (Choice("score,model,segment"), Choice(model=("model",), segment=("segment", "score"))),
    "key": (Choice("model,segment,label"),),
}


def _read_any(path: Path) -> object:
    """Scores, keys and trials of any format."""
    readers = (formats.read_scores, formats.read_key, formats.read_trials)
    return any_of(*(partial(_checked, read, Choice()) for read in readers))(path)


def _read_text(path: Path) -> object:
    """The same, also with a choice of columns."""
    pairs = [(formats.read_scores, choice) for choice in _CHOICES["scores"]]
    pairs += [(formats.read_key, choice) for choice in _CHOICES["key"]]
    return any_of(_read_any, *(partial(_checked, read, choice) for read, choice in pairs))(path)


def _checked(read: Callable[[Path, Choice], Trials], choice: Choice, path: Path) -> Trials:
    listed = read(path, choice)
    # what was built without checks would pass them
    Trials(listed.model_ids, listed.segment_ids, listed.models, listed.segments)
    assert len(listed)
    assert not (isinstance(listed, Scores) and np.isnan(listed.values).any())
    return listed


def _lists(extension: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        pairs = ((formats.write_scores, SCORES), (formats.write_key, KEY), (formats.write_trials, KEY.trials()))
        return [written(write, folder / f"seed.{extension}", listed) for write, listed in pairs]

    return seeds


def _texts(folder: Path) -> list[bytes]:
    more = [
        b"1 a s\n0 b s\n",
        b"a s 1 0.5\nb s 0 1.5\n",
        b"a a s 2\nb a s 1\n",
        b'"model"\t"test"\t"llr"\n"a"\t"s"\t1\n',
    ]
    found = [*_lists("txt")(folder), *_lists("csv")(folder), *_lists("tsv")(folder), *more]
    return [*found, *map(gzip.compress, found[:6])]


def _matlab(folder: Path) -> list[bytes]:
    from evaluation.formats.binary import write_hdf5

    typed = Key(
        KEY.model_ids,
        KEY.segment_ids,
        KEY.models,
        KEY.segments,
        KEY.is_target,
        types=np.array([0, 1, 1, 0]),
        type_names=("T", "I"),
    )
    return [
        *_lists("h5")(folder),
        written(write_hdf5, folder / "seed.h5", SCORES, matlab=True),
        written(formats.write_key, folder / "seed.h5", typed),
        *_lists("h5.gz")(folder),
    ]


# --- others ----------------------------------------------------------------------------------------------------------


def _idmaps(folder: Path) -> list[bytes]:
    return [written(write_idmap, folder / name, IDMAP) for name in ("seed.txt", "seed.h5")]


def _rank_files(_: Path) -> list[bytes]:
    rows = [{"dataset": "libri", "split": "test", "asr": "anon", "WER": 4.25}]
    more = [{"dataset": "libri", "split": "dev", "gender": "f", "enrollment": "anon", "trial": "anon", "EER": 10.511}]
    file = RankFile((make_section(ASR, rows, time="29-03-24_11:24"), make_section(ASV, more)))
    return [format_rank_file(file).encode()]


_RESULTS_2022 = (
    b"ASV-libri_dev_enrolls-libri_dev_trials_f\n  EER: 14.91%\n  Cllr (min/act): 0.466/12.520\n  ROCCH-EER: 14.793%\n"
    b"ASR-libri_dev_asr  %WER 3.82 [ 1518 / 39783, 185 ins, 140 del, 1193 sub ] exp/a\n"
    b"libri_dev_trials_f  Pitch_correlation: mean=0.6374 std=0.1711\nWeighted average EER dev orig: 3.539\n"
)

_UTTERANCES = [b"u1 the words\nu2 more\n", b"u1 audio.wav\n", b"u1 happy\n"]
_TABLES = [b"id\tsex\tage\na\tf\t3\nb\tm\t4\n", b"id,sex\n'a',f\n", b'id;sex\n"a;b";f\n']
_read_speech = partial(read_speech_labels, n_frames=100, shift_seconds=0.01)
_RSR2015 = (b"m101_001", b"male/m101/m101_01_001.sph", b"Y,N,N,N", b"Y", b"N")
_KALDI = (b"==> wav.scp", b"==> utt2spk", b"u1 audio.wav", b"u1 u")
_COLUMNS = (b"model", b"segment", b"score", b"target", b"nontarget", b"m1", b"s1", b"1.5", b"0", b"1")
PARSERS = [
    Parser("rsr2015-trn", "input.trn", _keys, _collected(read_enrolment), words=_RSR2015),
    Parser("rsr2015-ndx", "input.ndx", _trials, _collected(_read_trials), words=_RSR2015),
    Parser("rsr2015-lists", "input/", _rsr2015, _read_rsr2015),
    Parser("rsr2015-folder", "input/", _folders, _read_folder, words=_RSR2015),
    Parser("kaldi-datadir", "input/", _datadir, _read_datadir, words=_KALDI),
    Parser("kaldi-lists", "input.txt", lambda _: _UTTERANCES, _read_utterances),
    Parser("kaldi-speakers", "input.txt", lambda _: [b"u1 a\nu2 b\n", b"\xef\xbb\xbfu1 a\r\nu2 a\r\n"], read_speakers),
    Parser("kaldi-scp", "input.scp", lambda _: [b"u1 x.ark:5\nu2 x.ark:9\n", b"u1 cat x |\n"], read_scp),
    Parser("lists-text", "input.txt", _texts, _read_text, (damage, damage, inside_gzip), _COLUMNS),
    Parser("lists-npz", "input.npz", _lists("npz"), _read_any, (damage, inside_npz, inside_npz)),
    Parser("lists-hdf5", "input.h5", _matlab, _read_any, (damage, inside_hdf5)),
    Parser("idmap", "input.h5", _idmaps, read_idmap, (damage, inside_hdf5), (b"m1", b"s1", b"None", b"0", b"10")),
    Parser("metadata", "input.tsv", lambda _: _TABLES, partial(read_metadata, column="sex")),
    Parser("rank-file", "input.txt", _rank_files, read_rank_file, words=(b"---- ASR results ----", b"WER", b"0")),
    Parser("results-2022", "input.txt", lambda _: [_RESULTS_2022], read_results, words=_RESULTS_2022.split()),
    Parser("speech-labels", "input.lbl", lambda _: [b"0 0.5 speech\n0.5 1.0 nonspeech\n"], _read_speech),
]
