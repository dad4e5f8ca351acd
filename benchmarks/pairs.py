"""How often exchanged files are found, and honest ones refused: the check of pairs on speech that was anonymised twice.

    python -m benchmarks.pairs prepare CORPORA WORK     five sets of speech, with McAdams and one voice for everybody
    python -m benchmarks.pairs draw WORK [--draws N]    the table of docs/studies/pairs.md

CORPORA has the folders ``libri261``, ``dsp34`` and ``ravdess24``, each with a ``metadata.tsv``. The one voice needs
Whisper and Piper, see recipes/voiceprivacy/words_to_one_voice.py. What a set's recordings have in common is measured
once; a draw exchanges names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import click

from recipes.voiceprivacy import words_to_one_voice
from spkbase.files import load_json, read_id_list, write_json, write_text
from spkver.audio import write_audio
from spkver.corpora import Sizes, simulate_voiceprivacy
from spkver.datadir import DataDir, read_datadir, write_datadir
from spkver.recognition import open_recogniser

DSP = {"w12": "SPEECH", "w13": "SPEAKER", "w14": "SIGNAL", "w19": "PROJECT"}
RAVDESS = {"s01": "KIDS ARE TALKING BY THE DOOR", "s02": "DOGS ARE SITTING BY THE DOOR"}
SETS = ("libri", "background", "dsp", "ravdess", "simulated")
PATH = click.Path(path_type=Path)


def recordings_of(corpora: Path, name: str) -> Iterator[tuple[str, str, str, Path]]:
    """Yield id, speaker, text (which may be empty) and file of the recordings of a set."""
    corpus = {"libri": "libri261", "background": "libri261", "dsp": "dsp34", "ravdess": "ravdess24"}[name]
    with (corpora / corpus / "metadata.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if name == "libri":
        rows = [row for row in rows if row["path"].startswith("tgt/")]
    elif name == "background":
        rows = [row for row in rows if row["path"].startswith("bg/")][:240:4]
    elif name == "dsp":
        rows = [row for row in rows if row["text"] in DSP and row["rep"] == "rep10" and row["speaker"] > "dsp14"]
    else:
        rows = [row for row in rows if "_neutral_" in row["text"]][:60]
    for row in rows:
        text = DSP.get(row["text"], "") or RAVDESS.get(row["text"][:3], "")
        identifier = "-".join(Path(row["path"]).with_suffix("").parts[-3:])
        yield f"{row['speaker']}-{identifier}", row["speaker"], text, corpora / corpus / row["path"]


def prepare_set(corpora: Path, folder: Path, name: str) -> DataDir:
    """Return the data directory of a set, with ``text`` where the words are known."""
    target = folder / name / "original"
    texts: dict[str, str] = {}
    if name == "simulated":
        simulate_voiceprivacy(folder / "voices", Sizes(enrolled_f=8, enrolled_m=7, strangers=0, trial_utterances=6))
        sides = [read_datadir(folder / "voices" / f"simulated_test_trials_{sex}") for sex in "fm"]
        recordings = {}
        speakers = {}
        for side in sides:
            recordings |= side.recordings
            speakers |= side.speakers
            texts |= read_id_list(side.path / "text", "utterance words", n_columns=1, rest=True)
    else:
        rows = list(recordings_of(corpora, name))
        recordings = {identifier: path for identifier, _, _, path in rows}
        speakers = {identifier: speaker for identifier, speaker, _, _ in rows}
        texts = {identifier: text for identifier, _, text, _ in rows if text}
    target.mkdir(parents=True, exist_ok=True)
    write_datadir(DataDir(target, recordings, speakers))
    if texts:
        write_text(target / "text", "".join(f"{key} {texts[key]}\n" for key in sorted(texts)))
    return read_datadir(target)


def anonymise_by_joe(original: DataDir, target: Path) -> None:
    """Let one voice say the words of each recording: sentences of ``text``, else Whisper's words, which are kept."""
    file = original.path / "recognised.json"
    texts: dict[str, str] = {}
    if original.path.parent.name in ("simulated", "ravdess"):  # Whisper makes no error in the latter
        texts = read_id_list(original.path / "text", "utterance words", n_columns=1, rest=True)
    elif file.is_file():
        texts = load_json(file)
    recogniser = open_recogniser("whisper")
    say = lru_cache(words_to_one_voice.say_by_piper)
    recordings = {}
    for identifier, path in original.recordings.items():
        recordings[identifier] = target / f"{identifier}.wav"
        if identifier not in texts:
            texts[identifier] = recogniser.recognise_file(path).words
            write_json(file, texts)
        if not recordings[identifier].exists():
            words = texts[identifier] or words_to_one_voice.NOTHING
            write_audio(recordings[identifier], *say(words.lower(), 1.0))
    write_datadir(replace(original, path=target, recordings=recordings))
