"""How often exchanged files are found, and honest ones refused: the check of pairs on speech that was anonymised twice.

    python -m benchmarks.pairs prepare CORPORA WORK     five sets of speech, with McAdams and one voice for everybody
    python -m benchmarks.pairs draw WORK [--draws N]    the table of docs/studies/pairs.md

CORPORA has the folders ``libri261``, ``dsp34`` and ``ravdess24``, each with a ``metadata.tsv``. The one voice needs
Whisper and Piper, see recipes/voiceprivacy/words_to_one_voice.py. What a set's recordings have in common is measured
once; a draw exchanges names.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from evaluation.reports import Pairing
from recipes.voiceprivacy import words_to_one_voice
from spkbase.files import load_json, make_folder, read_id_list, write_json, write_text
from spkbase.runs import Run
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.audio import write_audio
from spkver.corpora import Sizes, simulate_voiceprivacy
from spkver.datadir import DataDir, Similarities, decide, read_datadir, write_datadir
from spkver.recognition import open_recogniser
from spkver.voiceprivacy.pairs import Compared, Evidence, compared_of, judge_pairs, weigh
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config

DSP = {"w12": "SPEECH", "w13": "SPEAKER", "w14": "SIGNAL", "w19": "PROJECT"}
RAVDESS = {"s01": "KIDS ARE TALKING BY THE DOOR", "s02": "DOGS ARE SITTING BY THE DOOR"}
SETS = ("libri", "background", "dsp", "ravdess", "simulated")
KINDS = (
    ("none", 0.0),
    ("of 12", 0.0),  # an honest set of 12 recordings
    ("any", 0.1),
    ("any", 0.2),
    ("any", 0.5),
    ("same words", 0.2),
    ("same words", 0.5),
    ("two speakers", 1.0),  # who exchange all their recordings
)
PATH = click.Path(path_type=Path)


def recordings_of(corpora: Path, name: str) -> Iterator[tuple[str, str, str, Path]]:
    """Yield id, speaker, text (which may be empty) and file of the recordings of a set."""
    corpus = {
        "libri": "libri261",
        "background": "libri261",
        "dsp": "dsp34",
        "ravdess": "ravdess24",
    }[name]
    with (corpora / corpus / "metadata.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if name == "libri":
        rows = [row for row in rows if row["path"].startswith("tgt/")]
    elif name == "background":
        rows = [row for row in rows if row["path"].startswith("bg/")][:240:4]
    elif name == "dsp":
        rows = [
            row
            for row in rows
            if row["text"] in DSP and row["rep"] == "rep10" and row["speaker"] > "dsp14"
        ]
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
        simulate_voiceprivacy(
            folder / "voices", Sizes(enrolled_f=8, enrolled_m=7, strangers=0, trial_utterances=6)
        )
        sides = [read_datadir(folder / "voices" / f"simulated_test_trials_{sex}") for sex in "fm"]
        recordings: dict[str, Path] = {}
        speakers: dict[str, str] = {}
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
    # Whisper makes no error in the latter
    if original.path.parent.name in ("simulated", "ravdess"):
        texts = read_id_list(original.path / "text", "utterance words", n_columns=1, rest=True)
    elif file.is_file():
        texts = load_json(file)
    recogniser = open_recogniser("whisper")
    rng = np.random.default_rng(0)
    recordings = {}
    for identifier, path in original.recordings.items():
        recordings[identifier] = target / f"{identifier}.wav"
        if identifier not in texts:
            texts[identifier] = recogniser.recognise_file(path).words
            write_json(file, texts)
        if not recordings[identifier].exists():
            words = texts[identifier] or words_to_one_voice.NOTHING
            pace = rng.uniform(0.9, 1.1)  # else equal words would be equal files
            write_audio(
                recordings[identifier], *words_to_one_voice.say_by_piper(words.lower(), pace)
            )
    write_datadir(replace(original, path=target, recordings=recordings))


@click.group()
def main() -> None:
    """Measure the check of pairs."""


@main.command()
@click.argument("corpora", type=PATH)
@click.argument("work", type=PATH)
def prepare(corpora: Path, work: Path) -> None:
    """Lay out the sets and anonymise them."""
    for name in SETS:
        original = prepare_set(corpora, work, name)
        anonymize_datadir(original, work / name / "mcadams", AnonymizerConfig(), jobs=1)
        target = work / name / "joe"
        target.mkdir(exist_ok=True)
        anonymise_by_joe(original, target)


@main.command()
@click.argument("work", type=PATH)
@click.option("--draws", default=100)
def draw(work: Path, draws: int) -> None:
    """Print the table: what the check says of honest and of exchanged files, in per cent of the draws."""
    states = "forbidden | warned | confirmed | identical | not confirmed"
    print(f"| set | anonymiser | exchanged | % | {states} | share | covered |")
    print(f"|{'---|' * 11}")
    for name, anonymiser in product(SETS, ("mcadams", "joe")):
        sides = [read_datadir(work / name / side) for side in ("original", anonymiser)]
        compared = compared_of(Sets((), {name: sides[0]}, {name: (sides[1],)}), name)
        evidence = weigh(
            Run(make_folder(work / "runs" / f"{name}-{anonymiser}"), quiet=True), Config(), compared
        )
        for kind, share in KINDS:
            if kind == "same words" and compared.texts is None:
                continue
            pairings = []
            truths = []
            for seed in range(draws if share or kind == "of 12" else 1):
                rng = np.random.default_rng(seed)
                if kind == "of 12":
                    pairings.append(of_few(compared, evidence, rng))
                    truths.append(0.0)
                    continue
                if kind == "two speakers":
                    names = exchange_two(compared, rng)
                else:
                    names = exchange(compared, share, rng, same_words=kind == "same words")
                pairings.append(judge_pairs(replace(compared, recordings=names), evidence))
                truths.append(exchanged_between_speakers(compared, names))
            print(f"| {name} | {anonymiser} | {kind} | {describe(pairings, truths)} |", flush=True)


def exchange(
    compared: Compared, share: float, rng: np.random.Generator, *, same_words: bool
) -> tuple[str, ...]:
    """Return the names of recordings after a share of them got names of others, with the same words or any."""
    names = list(compared.recordings)
    chosen = rng.permutation(len(names))[: round(share * len(names))]
    groups: dict[str, list[int]] = {}
    for row in chosen:
        text = compared.texts[names[row]] if same_words and compared.texts else ""
        groups.setdefault(text, []).append(row)
    for rows in groups.values():
        for target, row in zip(rows, rows[1:] + rows[:1], strict=True):
            names[target] = compared.recordings[row]
    return tuple(names)


def exchange_two(compared: Compared, rng: np.random.Generator) -> tuple[str, ...]:
    """Return the names of recordings after two speakers exchanged theirs, in an order drawn at random."""
    speakers = compared.original.speakers
    first, second = rng.permutation(sorted(set(speakers.values())))[:2]
    names = list(compared.recordings)
    own = {
        speaker: [row for row, name in enumerate(names) if speakers[name] == speaker]
        for speaker in (first, second)
    }
    for row, other in zip(own[first], rng.permutation(own[second]), strict=False):
        names[row] = compared.recordings[other]
        names[other] = compared.recordings[row]
    return tuple(names)


def exchanged_between_speakers(compared: Compared, names: Sequence[str]) -> float:
    """Return the share of recordings that have the name of another speaker."""
    speakers = compared.original.speakers
    pairs = zip(names, compared.recordings, strict=True)
    return float(np.mean([speakers[name] != speakers[other] for name, other in pairs]))


def of_few(
    compared: Compared, evidence: Evidence, rng: np.random.Generator, count: int = 12
) -> Pairing:
    """Return what the check would say of a few recordings with their own names, from what was measured of all."""
    rows = np.sort(rng.permutation(len(compared.recordings))[:count])
    columns = np.array([compared.originals.index(compared.recordings[row]) for row in rows])
    parts: dict[str, Any] = {}
    for source, matrix in evidence.similarities._asdict().items():
        parts[source] = None if matrix is None else matrix[np.ix_(evidence.same[rows], columns)]
    texts = None
    if compared.texts is not None:
        texts = [compared.texts[compared.originals[column]] for column in columns]
    few = replace(
        compared,
        recordings=tuple(compared.recordings[row] for row in rows),
        originals=tuple(compared.originals[column] for column in columns),
    )
    similarities = Similarities(**parts)
    decision = decide(similarities, few.speakers, texts)
    return judge_pairs(few, Evidence(similarities, texts, np.arange(count), decision))


def describe(pairings: Sequence[Pairing], truths: Sequence[float]) -> str:
    """Return the cells of a row: true share, states, mean estimate, and how often the interval holds the true share."""
    states = Counter(pairing.state for pairing in pairings)
    cells = [f"{100 * np.mean(truths):.0f}"]
    for state in ("exchanged", "doubtful", "confirmed", "identical", "not confirmed"):
        cells.append(f"{100 * states[state] / len(pairings):.0f}")
    shares = []
    covered = []
    for pairing, truth in zip(pairings, truths, strict=True):
        if pairing.share.known:
            shares.append(pairing.share.value)
            covered.append(pairing.share.low - 1e-9 <= truth <= pairing.share.high)
    cells += (
        [f"{100 * np.mean(shares):.0f}", f"{100 * np.mean(covered):.0f}"] if shares else ["-", "-"]
    )
    return " | ".join(cells)


if __name__ == "__main__":
    main()
