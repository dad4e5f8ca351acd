"""Simulated speakers: told apart, the same to the bit in any order and process, with the channel that was asked for."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from scipy.fft import dct
from scipy.signal import welch

from spkver.corpora import voices
from spkver.corpora.voices import (
    SAMPLE_RATE,
    SENTENCES,
    Session,
    make_session,
    make_voice,
    synthesise_utterance,
    transmit,
    voice_file,
)

pytestmark = pytest.mark.whole

pytest.importorskip("espeakng_loader")

# A studio: the speaker as drawn, no channel, no room, almost no noise.
STUDIO = Session(
    number=0,
    rate=1.0,
    pitch=1.0,
    pitch_range=1.0,
    tract=1.0,
    tilt=0.0,
    breath=0.0,
    response=np.ones(1, np.float32),
    noise="white",
    signal_to_noise=60.0,
    level=-26.0,
    silence=(0.1, 0.1),
)


def fingerprint(samples):
    return hashlib.sha256(samples.tobytes()).hexdigest()


# --- the same to the bit --------------------------------------------------------------------------

UTTERANCES = [(gender, number, take) for gender in "mf" for number in (1, 2) for take in (1, 2)]


def fingerprints(utterances):
    return {
        (gender, number, take): fingerprint(
            synthesise_utterance(
                make_voice(gender, number),
                SENTENCES[take],
                make_session(gender, number, take),
                take=take,
            )
        )
        for gender, number, take in utterances
    }


def test_utterances_are_the_same_in_any_order():
    forward = fingerprints(UTTERANCES)
    assert forward == fingerprints(UTTERANCES[::-1])
    assert len(set(forward.values())) == len(UTTERANCES)


@pytest.mark.slow
def test_all_accents_and_sentences_are_the_same_in_any_order():
    """The engine carries state between calls for some phonemes; none of ours may be among them."""
    jobs = [(accent, sentence) for accent in voices.ACCENTS for sentence in SENTENCES]
    voice = make_voice("m", 1)

    def speak(accent, sentence):
        text = voice_file(replace(voice, accent=accent), STUDIO)
        return fingerprint(voices.synthesise(sentence, text, words_per_minute=160)[0])

    first = {job: speak(*job) for job in jobs}
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(len(jobs))
        assert {jobs[index]: speak(*jobs[index]) for index in shuffled} == first


# --- speakers can be distinguished ----------------------------------------------------------------


def description(samples):
    """Mean and spread of 13 mel cepstra and log pitch: a plain description of a voice, shape (27,)."""
    windows = np.lib.stride_tricks.sliding_window_view(samples.astype(float), 512)[
        ::160
    ] * np.hanning(512)
    energy = np.log(np.sum(windows**2, axis=1) + 1e-12)
    windows = windows[energy > energy.max() - 6]
    power = np.abs(np.fft.rfft(windows)) ** 2
    edges = 700 * np.expm1(np.linspace(np.log1p(100 / 700), np.log1p(7000 / 700), 28))
    bins = np.fft.rfftfreq(512, 1 / SAMPLE_RATE)
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    bank = np.maximum(0, np.minimum(rising, falling))
    cepstra = dct(np.log(power @ bank.T + 1e-12), norm="ortho")[:, 1:14]
    correlation = np.fft.irfft(np.abs(np.fft.rfft(windows, 1024)) ** 2)[:, 40:230]  # 70 to 400 Hz
    correlation = correlation / (512 - np.arange(40, 230))  # a longer lag has fewer products
    lag = 40 + np.median(np.argmax(correlation, axis=1))
    return np.concatenate([cepstra.mean(axis=0), cepstra.std(axis=0), [np.log(SAMPLE_RATE / lag)]])


def share_recognised(gender, n_speakers, seed=0):
    """How many speakers' second sentence is nearest to their own first one."""
    first, second = (
        np.array(
            [
                description(
                    synthesise_utterance(make_voice(gender, number, seed), sentence, STUDIO)
                )
                for number in range(1, n_speakers + 1)
            ]
        )
        for sentence in SENTENCES[:2]
    )
    scale = first.std(axis=0)
    first, second = (first - first.mean(axis=0)) / scale, (second - second.mean(axis=0)) / scale
    distances = np.sum((first[:, None] - second[None]) ** 2, axis=2)
    return float(np.mean(np.argmin(distances, axis=1) == np.arange(n_speakers)))


def test_24_speakers_are_distinguishable():
    assert share_recognised("f", 24) >= 0.9


# --- the parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_tract_length_scales_formants_and_keeps_pitch(factor):
    voice = replace(make_voice("m", 1), breath=-60.0)
    plain, scaled = (
        synthesise_utterance(voice, SENTENCES[0], replace(STUDIO, tract=tract))
        for tract in (1.0, factor)
    )
    assert description(scaled)[-1] == pytest.approx(description(plain)[-1], abs=0.05)
    frequencies, power = welch(
        np.array([plain[:30_000], scaled[:30_000]]), fs=SAMPLE_RATE, nperseg=128, nfft=1024
    )
    spectrum, moved = np.log(power)
    inner = (frequencies > 300) & (frequencies < 5000)
    factors = np.linspace(0.8, 1.2, 41)
    likeness = [
        np.corrcoef(np.interp(frequencies[inner] * each, frequencies, moved), spectrum[inner])[0, 1]
        for each in factors
    ]
    assert factors[np.argmax(likeness)] == pytest.approx(factor, abs=0.03)


def test_levels_silence_and_noise_follow_the_session():
    random = np.random.default_rng(0)
    speech = (0.3 * np.sin(2 * np.pi * 440 * np.arange(SAMPLE_RATE) / SAMPLE_RATE)).astype(
        np.float32
    )
    session = replace(STUDIO, signal_to_noise=20.0, level=-30.0, silence=(0.25, 0.25))
    for noise in ("white", "pink", "babble"):
        recorded = transmit(speech, replace(session, noise=noise), random)
        assert recorded.dtype == np.float32
        assert len(recorded) == 1.5 * SAMPLE_RATE
        inner = recorded[4000:20000]
        sine = speech * (inner @ speech) / (speech @ speech)
        assert 10 * np.log10(np.mean(sine**2)) == pytest.approx(-30, abs=0.3)
        rest = np.concatenate([recorded[:4000], inner - sine, recorded[20000:]])
        assert 10 * np.log10(np.mean(rest**2)) == pytest.approx(-50, abs=0.3)
