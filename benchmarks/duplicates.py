"""How many copies of recordings the check for duplicates finds, and how many other recordings it takes for copies.

    python -m benchmarks.duplicates FOLDER... [--copies 140]

Every WAV and FLAC file in the folders is compared with all others; then copies of some, drawn with a seed, are made in
each form and compared with all. Prints the table of docs/own_data.md.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from spkver.audio import read_audio
from spkver.datadir import copies, fingerprint, fingerprints_of

Signal = NDArray[np.float64]
Form = Callable[[Signal, int], tuple[Signal, int]]


def cut(front: float, back: float) -> Form:
    """Cut seconds off in front and behind."""
    return lambda samples, rate: (
        samples[round(front * rate) : len(samples) - round(back * rate)],
        rate,
    )


def resampled(rate: int) -> Form:
    """Resample."""
    return lambda samples, own: (soxr.resample(samples, own, rate), rate)


def coded(
    container: str, subtype: str, rate: int | None = None, quality: float | None = None
) -> Form:
    """Write and read again in a lossy format; a quality near 1 compresses most."""

    def write_and_read(samples: Signal, own: int) -> tuple[Signal, int]:
        buffer = io.BytesIO()
        used = own if rate is None else rate
        samples = samples if used == own else soxr.resample(samples, own, used)
        soundfile.write(
            buffer, samples, used, format=container, subtype=subtype, compression_level=quality
        )
        buffer.seek(0)
        return soundfile.read(buffer)

    return write_and_read


def disguised(samples: Signal, rate: int) -> tuple[Signal, int]:
    """Cut 250 ms off, resample to 8 kHz, invert, make quieter and add a constant."""
    samples, rate = cut(0.25, 0)(samples, rate)
    samples, rate = resampled(8000)(samples, rate)
    return 0.01 - 0.2 * samples, rate


FORMS: dict[str, Form] = {
    "gain": lambda samples, rate: (0.3 * samples, rate),
    "polarity": lambda samples, rate: (-samples, rate),
    "a constant": lambda samples, rate: (samples + 0.02, rate),
    "8 kHz": resampled(8000),
    "11 kHz": resampled(11025),
    "44.1 kHz": resampled(44100),
    "3 samples cut off": lambda samples, rate: (samples[3:], rate),
    "100 ms cut off": cut(0.1, 0),
    "124 ms cut off": cut(0.124, 0),
    "MP3": coded("MP3", "MPEG_LAYER_III"),
    "Vorbis": coded("OGG", "VORBIS"),
    "Opus": coded("OGG", "OPUS"),
    "250 ms cut off, 8 kHz, inverted, quieter, with a constant": disguised,
    "mu-law at 8 kHz": coded("WAV", "ULAW", 8000),
    "300 ms cut off in front and 100 ms behind": cut(0.3, 0.1),
    "MP3 at its lowest quality": coded("MP3", "MPEG_LAYER_III", quality=0.99),
    "GSM 6.10": coded("WAV", "GSM610", 8000),
    "Opus at its lowest quality": coded("OGG", "OPUS", quality=0.99),
}


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--copies", "n_copies", default=140, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(folders: list[Path], n_copies: int, seed: int) -> None:
    """Print the table."""
    paths = [
        path
        for folder in folders
        for ending in ("wav", "flac")
        for path in sorted(folder.rglob(f"*.{ending}"))
    ]
    recordings = {str(path): path for path in paths}
    prints = fingerprints_of(recordings)
    names, originals = list(prints), list(prints.values())
    alike = copies(originals)
    print(f"{len(names)} recordings: {len(alike)} pairs that are taken for copies")
    for first, second in alike:
        print(f"  {names[first]} {names[second]}")
    chosen = np.random.default_rng(seed).permutation(len(names))[:n_copies]
    signals = {index: read_audio(recordings[names[index]]) for index in chosen.tolist()}
    print("\n| copy | found | of recordings of 2 s and more |\n|---|---:|---:|")
    for form, change in FORMS.items():
        made = [fingerprint(*middle(*change(samples, rate))) for samples, rate in signals.values()]
        matched = set(copies(made, originals))
        hits = np.array([(row, index) in matched for row, index in enumerate(signals)])
        is_long = np.array([len(samples) >= 2 * rate for samples, rate in signals.values()])
        print(
            f"| {form} | {100 * hits.mean():.0f} % | {100 * hits[is_long].mean():.0f} % of {is_long.sum()} |"
        )


def middle(samples: Signal, rate: int) -> tuple[Signal, int]:
    """Return three seconds from the middle, which the check reads."""
    count = 3 * rate
    start = max(0, (len(samples) - count) // 2)
    return samples[start : start + count], rate


if __name__ == "__main__":
    main()
