"""What the report says of 38 transformations that are no anonymisers, or poor ones.

    python -m benchmarks.public_speech DIR --librispeech Resemblyzer
    python -m benchmarks.hundred_speakers DIR/libri251 DIR24 --tested 12 --trained 30
    python -m benchmarks.transformations DIR24 OUTPUT [--only NAME]...

Each is a function from samples to samples, evaluated with the default attackers but for networks
that are trained, on 24 speakers with two recordings of 2 s for enrolment and two for the trials,
with one draw of each side, and 30 other speakers to learn from. Some can be undone by whoever knows
them, some leave no speech, some keep what identifies a speaker, and some say who speaks without a
voice. The table has the smallest equal error rate, the words of the verdict, its colour, and what
speaks against it.

"Public" means that the random numbers are the same for every recording; the others are drawn for each.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct, irfft, rfft
from scipy.signal import butter, firwin2, resample_poly, sosfiltfilt

from evaluation.reports.results import read_results
from evaluation.reports.verdict import WORDS, judge
from spkbase.console import Command
from spkbase.files import format_table, write_text
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.datadir import read_datadir, write_datadir

KEY = 20260101  # of the public random numbers
SPEEDS = (80, 84, 88, 92, 108, 112, 118, 125)  # per cent
COLUMNS = ("name", "what it does", "EER", "attacker", "words", "level", "against")
SIDES = ("training", "enrolment", "trial")
PATH = click.Path(path_type=Path)

Signal = NDArray[Any]
Rng = np.random.Generator


def public() -> Rng:
    """Return the random numbers that are the same for every recording."""
    return np.random.default_rng(KEY)


def of_speaker(utterance: str) -> Rng:
    """Return random numbers that are the same for all recordings of a speaker, whom the name of a recording tells."""
    speaker = utterance.split("-")[0]
    return np.random.default_rng(list(speaker.encode()))


def level(samples: Signal) -> float:
    """Return the root mean square of a signal."""
    return float(np.sqrt(np.mean(samples**2))) + 1e-12


def at_level(samples: Signal, like: Signal) -> Signal:
    """Return a signal with the level of another one."""
    return samples * (level(like) / level(samples))


def envelope(samples: Signal, rate: int, cutoff: float = 16.0) -> Signal:
    """Return the smoothed magnitude of a signal."""
    smooth = butter(2, cutoff, fs=rate, output="sos")
    return np.maximum(sosfiltfilt(smooth, np.abs(samples)), 0.0)


def blocks_permuted(samples: Signal, length: int, rng: Rng) -> Signal:
    """Return a signal whose blocks stand in another order; the rest that fills no block stays at its end."""
    whole = len(samples) // length * length
    blocks = samples[:whole].reshape(-1, length)
    return np.concatenate([blocks[rng.permutation(len(blocks))].ravel(), samples[whole:]])


def with_spectrum(samples: Signal, change: Callable[[Signal], Signal]) -> Signal:
    """Return a signal whose spectrum as a whole is changed."""
    return irfft(change(rfft(samples)), len(samples))


# in time


def rev(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Play backwards."""
    return samples[::-1].copy()


def segrev(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Play each 50 ms backwards."""
    length = rate // 20
    whole = len(samples) // length * length
    turned = samples[:whole].reshape(-1, length)[:, ::-1].ravel()
    return np.concatenate([turned, samples[whole:]])


def rotate(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Begin somewhere else, and continue with the beginning after the end."""
    return np.roll(samples, rng.integers(len(samples)))


def firsthalf(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the first half."""
    return samples[: len(samples) // 2]


def scramble(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange blocks of 30 ms."""
    return blocks_permuted(samples, rate * 30 // 1000, rng)


def block16(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange blocks of 16 samples in a public order."""
    return blocks_permuted(samples, 16, public())


def block256(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange blocks of 256 samples in a public order."""
    return blocks_permuted(samples, 256, public())


def permall(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange all samples."""
    return rng.permutation(samples)


def speedutt(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Play at a speed drawn for each recording."""
    return resample_poly(samples, 100, int(rng.choice(SPEEDS)))


def pitchspk(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Play at a speed drawn for each speaker."""
    return resample_poly(samples, 100, int(of_speaker(utterance).choice(SPEEDS)))


# in frequency


def band1k(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep what is below 1 kHz."""
    return sosfiltfilt(butter(6, 1000, fs=rate, output="sos"), samples)


def band5k(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep what is above 5 kHz."""
    return sosfiltfilt(butter(6, 5000, "highpass", fs=rate, output="sos"), samples)


def inv(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange low and high frequencies."""
    return samples * (-1.0) ** np.arange(len(samples))


def specshift(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Shift all frequencies by 400 Hz."""
    steps = 400 * len(samples) // rate

    def shifted(spectrum: Signal) -> Signal:
        moved = np.zeros_like(spectrum)
        moved[steps:] = spectrum[: len(spectrum) - steps]
        return moved

    return with_spectrum(samples, shifted)


def ringmod(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Multiply with a tone of 700 Hz."""
    return samples * np.sin(2 * np.pi * 700 * np.arange(len(samples)) / rate)


def eqspk(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Filter by an equaliser drawn for each speaker."""
    gains = 10 ** (of_speaker(utterance).uniform(-15, 15, 12) / 20)
    taps = firwin2(255, np.linspace(0, 1, len(gains)), gains)
    return at_level(np.convolve(samples, taps)[: len(samples)], samples)


def echo(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Add strong echoes."""
    sum_of_echoes = samples.copy()
    for seconds in (0.031, 0.067, 0.113):
        delay = int(seconds * rate)
        sum_of_echoes[delay:] += 0.9 * samples[: len(samples) - delay]
    return sum_of_echoes


def allpassutt(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Draw all phases of the spectrum anew for each recording."""
    return with_spectrum(
        samples, lambda spectrum: np.abs(spectrum) * np.exp(2j * np.pi * rng.random(len(spectrum)))
    )


def dctpub(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange the cosine coefficients in a public order."""
    coefficients = dct(samples, norm="ortho")
    return idct(public().permutation(coefficients), norm="ortho")


# of samples


def onebit(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the sign of each sample."""
    return 0.1 * np.sign(samples)


def clip1000(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Amplify a thousandfold and clip."""
    return 0.3 * np.clip(1000 * samples, -1, 1)


def lsb(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the last of 16 bits."""
    return 0.1 * (np.round(samples * 32768).astype(int) & 1) - 0.05


def quiet60(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Lower by 60 dB."""
    return samples / 1000


def signscr(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Draw the sign of each sample."""
    return samples * rng.choice([-1.0, 1.0], len(samples))


def xorpub(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Exchange bits by a public key (exclusive or)."""
    numbers = np.round(samples * 32767).astype(np.int16)
    key = public().integers(-32768, 32768, len(numbers), dtype=np.int16)
    return (numbers ^ key) / 32768


def xorenv(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Multiply by public signs and gains."""
    key = public()
    signs = key.choice([-1.0, 1.0], len(samples))
    gains = 10 ** (key.uniform(-20, 20, len(samples)) / 20)
    return at_level(samples * signs * gains, samples)


# noise


def noise10(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Add noise 10 dB below the speech."""
    return samples + level(samples) * 10 ** (-10 / 20) * rng.normal(size=len(samples))


def noise20(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Add noise 20 dB above the speech."""
    noisy = samples + level(samples) * 10 ** (20 / 20) * rng.normal(size=len(samples))
    return at_level(noisy, samples)


def addpub(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Add public noise as loud as the speech."""
    return samples + level(samples) * public().normal(size=len(samples))


def addpub25(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Add public noise 25 dB above the speech."""
    noisy = samples + level(samples) * 10 ** (25 / 20) * public().normal(size=len(samples))
    return at_level(noisy, samples)


# what is left is an envelope


def modul(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the envelope, filled with noise."""
    return at_level(envelope(samples, rate, 50) * rng.normal(size=len(samples)), samples)


def envlow16(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the envelope below 16 Hz, filled with noise."""
    return at_level(envelope(samples, rate) * rng.normal(size=len(samples)), samples)


def envtone(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the envelope, filled with a tone."""
    tone = np.sin(2 * np.pi * 200 * np.arange(len(samples)) / rate)
    return at_level(envelope(samples, rate) * tone, samples)


def env48(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the envelopes of 48 bands, filled with noise."""
    noise = rng.normal(size=len(samples))
    edges = np.geomspace(80, 0.475 * rate, 49)
    vocoded = np.zeros(len(samples))
    for low, high in pairwise(edges):
        band = butter(2, (low, high), "bandpass", fs=rate, output="sos")
        carrier = sosfiltfilt(band, noise)
        vocoded += envelope(sosfiltfilt(band, samples), rate) * carrier / level(carrier)
    return at_level(vocoded, samples)


def whisper(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Keep the magnitudes of short spectra, with phases drawn anew."""
    length = rate * 20 // 1000
    hop = length // 2
    window = np.hanning(length)
    whispered = np.zeros(len(samples))
    for start in range(0, len(samples) - length, hop):
        spectrum = np.abs(rfft(window * samples[start : start + length]))
        phases = np.exp(2j * np.pi * rng.random(len(spectrum)))
        whispered[start : start + length] += irfft(spectrum * phases, length)
    return at_level(whispered, samples)


# what says who speaks without a voice, or says nothing


def silcode(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Write a weak noise whose level is a number of the speaker."""
    decibels = of_speaker(utterance).uniform(-70, -30)
    return 10 ** (decibels / 20) * rng.normal(size=len(samples))


def tone(samples: Signal, rate: int, utterance: str, rng: Rng) -> Signal:
    """Write a tone drawn for each recording."""
    hertz = rng.uniform(100, 1000)
    return 0.1 * np.sin(2 * np.pi * hertz * np.arange(len(samples)) / rate)


TRANSFORMATIONS = {
    function.__name__: function
    for function in (
        *(rev, segrev, rotate, firsthalf, scramble, block16, block256, permall),
        *(speedutt, pitchspk),
        *(band1k, band5k, inv, specshift, ringmod, eqspk, echo, allpassutt, dctpub),
        *(onebit, clip1000, lsb, quiet60, signscr, xorpub, xorenv),
        *(noise10, noise20, addpub, addpub25),
        *(modul, envlow16, envtone, env48, whisper),
        *(silcode, tone),
    )
}
EXCHANGED = "half"  # files by the McAdams coefficient, half of which have the names of others


@click.command(cls=Command, help=__doc__.split("\n\n")[0])
@click.argument("data", type=PATH)
@click.argument("output", type=PATH)
@click.option("--only", multiple=True, help="Name of a transformation, instead of all.")
@click.option("--jobs", default=2, show_default=True, help="Workers.")
def main(data: Path, output: Path, only: tuple[str, ...], jobs: int) -> None:
    """Evaluate the transformations one after the other, and write the table after each."""
    tests = next(data.glob("*_enrolls")).name.removesuffix("_enrolls")
    training = next(path.name for path in data.iterdir() if "_test" not in path.name)
    rows = []
    for name in only or (*TRANSFORMATIONS, EXCHANGED):
        command = [sys.executable, "-m", "spkver", "voiceprivacy", "--jobs", str(jobs)]
        command += ["--output", str(output), "--suffix", f"_{name}"]
        settings = ["evaluation.resamples=100"]
        settings += [f"datasets=[{tests}]", f"training_sets.{tests}={training}"]
        folder = data
        if name == EXCHANGED:
            folder = output / "exchanged"
            exchange_half(data, folder)
        else:
            settings.append(f"anonymizer.name={Path(__file__).resolve()}:{name}")
            settings += [f"anonymizer.{side}_draws=1" for side in SIDES]
        for setting in settings:
            command += ["--set", setting]
        results = output / f"results_{name}.json"
        results.unlink(missing_ok=True)
        done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True)
        rows.append(describe(name, results, done.stderr))
        table = format_table(rows, COLUMNS, markdown=True)
        write_text(output / "transformations.md", table)
        click.echo(table.splitlines()[-1])


def exchange_half(data: Path, target: Path) -> None:
    """Write copies of data directories, and twins by the McAdams coefficient with half of the files exchanged."""
    rng = np.random.default_rng(0)
    for folder in sorted(data.iterdir()):
        source = read_datadir(folder)
        write_datadir(replace(source, path=target / folder.name))
        twin = target / f"{folder.name}_{EXCHANGED}"
        anonymised = anonymize_datadir(source, twin, AnonymizerConfig(name="mcadams"))
        recordings = dict(anonymised.recordings)
        chosen = rng.permutation(sorted(recordings))[: len(recordings) // 2]
        for name, other in zip(chosen, np.roll(chosen, 1), strict=True):
            recordings[name] = anonymised.recordings[other]
        write_datadir(replace(anonymised, recordings=recordings))


def describe(name: str, results: Path, messages: str) -> dict[str, object]:
    """Return a row of the table; the last message where there are no results."""
    meaning = "half of the files exchanged"
    if name != EXCHANGED:
        meaning = str(TRANSFORMATIONS[name].__doc__).rstrip(".")
    row: dict[str, object] = {"name": name, "what it does": meaning}
    if not results.exists():
        row["words"] = messages.strip().splitlines()[-1]
        return row
    verdict = judge(read_results(results))
    assert verdict.overall is not None
    eer = verdict.overall.eer
    row["EER"] = f"{100 * eer.value:.1f} [{100 * eer.low:.1f}, {100 * eer.high:.1f}]"
    row["attacker"] = verdict.overall.attacker
    row["words"] = verdict.text
    row["level"] = "grey" if verdict.level is None else WORDS[verdict.level].lower()
    row["against"] = " ".join(verdict.objections)
    return row


if __name__ == "__main__":
    main()
