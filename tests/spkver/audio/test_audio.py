"""Audio: exact samples from every container, and one clear error for every broken file."""

import io
import logging
import struct
import sys

import numpy as np
import pytest
import soundfile

from spkbase.errors import DataError
from spkver.audio import audio_header, doubtful_recordings, read_audio, write_audio
from tests.shorten_bits import shorten_sphere, sphere

RATE = 16000


def noise(n=4000, channels=1, seed=0):
    values = np.random.default_rng(seed).normal(0, 3000, (n, channels)).astype(np.int16)
    values[0], values[1] = -32768, 32767
    return values if channels > 1 else values[:, 0]


def encoded(samples, container, subtype="PCM_16", rate=RATE):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=container, subtype=subtype)
    return buffer.getvalue()


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("container", ["WAV", "WAVEX", "RF64", "FLAC", "NIST"])
def test_sixteen_bits_become_multiples_of_one_32768th(tmp_path, container, dtype):
    samples = noise()
    path = put(tmp_path, "a.bin", encoded(samples, container))
    audio = read_audio(path, dtype=dtype)
    assert audio.rate == RATE
    assert audio.samples.dtype == dtype
    assert np.array_equal(audio.samples, samples / 32768)


@pytest.mark.parametrize(
    ("container", "subtype"), [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")]
)
def test_lossy_formats_are_read(tmp_path, container, subtype):
    tone = 0.5 * np.sin(2 * np.pi * 440 / RATE * np.arange(2 * RATE))
    path = put(tmp_path, "a.bin", encoded(tone, container, subtype))
    read = read_audio(path)
    assert (
        (read.rate, len(read.samples)) == (RATE, len(tone)) == (RATE, audio_header(path).n_samples)
    )
    assert np.corrcoef(read.samples, tone)[0, 1] > 0.99


def test_doubtful_recordings_are_named(tmp_path):
    good = noise(RATE).astype(np.float32) / 65536
    sounds = {
        "loud": np.clip(good * 40, -0.7, 0.7),
        "quiet": good * 1e-3,
        "short": good[:5000],
        "zero": good * 0,
    }
    paths = {}
    for name, samples in {"good": good, **sounds}.items():
        paths[name] = tmp_path / f"{name}.wav"
        write_audio(paths[name], samples, RATE)
    expected = {
        "loud": "clipped (",
        "quiet": "far too quiet (",
        "short": "shorter than 0.5 s",
        "zero": "silent (",
    }
    for doubt, (name, kind) in zip(
        doubtful_recordings(paths, jobs=1), expected.items(), strict=True
    ):
        assert doubt.startswith(f"1 of 5 recordings are {kind}")
        assert doubt.endswith(f": '{name}'")
    paths["none"] = tmp_path / "none.wav"
    with pytest.raises(DataError, match="no such file"):
        doubtful_recordings(paths, jobs=1)


@pytest.mark.parametrize("subtype", ["PCM_24", "PCM_32"])
@pytest.mark.parametrize("container", ["WAV", "NIST"])
def test_samples_with_more_bits_are_read_exactly(tmp_path, container, subtype):
    integers = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, 1000).astype(np.int32)
    integers &= ~0xFF if subtype == "PCM_24" else ~0
    path = put(tmp_path, "a", encoded(integers, container, subtype))
    assert np.array_equal(read_audio(path, dtype="float64").samples, integers / 2.0**31)


def mu_law(code):
    """ITU-T G.711: 14 bits, here shifted to 16."""
    code = ~code & 0xFF
    magnitude = ((((code & 0x0F) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
    return -magnitude if code & 0x80 else magnitude


def a_law(code):
    """ITU-T G.711: 13 bits, here shifted to 16."""
    code ^= 0x55
    exponent, mantissa = (code & 0x70) >> 4, (code & 0x0F) << 4
    magnitude = mantissa + 8 if exponent == 0 else (mantissa + 0x108) << (exponent - 1)
    return magnitude if code & 0x80 else -magnitude


@pytest.mark.parametrize(
    ("coding", "decode"), [("ulaw", mu_law), ("mu-law", mu_law), ("alaw", a_law)]
)
def test_sphere_with_eight_bits_follows_g711(tmp_path, coding, decode):
    raw = bytes(range(256))
    path = put(
        tmp_path, "a.sph", sphere(raw, sample_n_bytes=1, sample_coding=coding, sample_count=256)
    )
    expected = np.array([decode(code) for code in raw]) / 32768
    assert np.array_equal(read_audio(path).samples, expected.astype(np.float32))


@pytest.mark.parametrize(("order", "letter"), [("01", "<"), ("10", ">")])
def test_sphere_files_in_both_byte_orders_are_read(tmp_path, order, letter):
    samples = noise()
    raw = samples.astype(f"{letter}i2").tobytes()
    path = put(tmp_path, "a.sph", sphere(raw, sample_byte_format=order, sample_count=len(samples)))
    assert np.array_equal(read_audio(path).samples, samples / np.float32(32768))


def test_wav_files_written_to_a_pipe_are_read_to_their_end(tmp_path):
    content = bytearray(encoded(noise(), "WAV"))
    place = content.index(b"data")
    content[place + 4 : place + 8] = content[4:8] = b"\xff" * 4
    assert np.array_equal(
        read_audio(put(tmp_path, "a.wav", content)).samples, noise() / np.float32(32768)
    )


def test_float_wav_is_read_unchanged(tmp_path):
    samples = np.array([0.0, -1.5, 1e-9, 0.25], dtype=np.float32)
    assert np.array_equal(
        read_audio(put(tmp_path, "a.wav", encoded(samples, "WAV", "FLOAT"))).samples, samples
    )


@pytest.mark.parametrize("container", ["WAV", "FLAC", "NIST"])
def test_one_channel_is_selected(tmp_path, container):
    samples = noise(channels=3)
    path = put(tmp_path, "a", encoded(samples, container))
    for channel in range(3):
        got = read_audio(path, channel=channel).samples
        assert got.flags.c_contiguous
        assert np.array_equal(got, samples[:, channel] / np.float32(32768))
    with pytest.raises(
        DataError, match=r"has 3 channels, expected one \(choose one with channel=0 to channel=2\)"
    ):
        read_audio(path)
    for channel in (3, -1):
        with pytest.raises(DataError, match=f"channel {channel} was requested, the file has 3"):
            read_audio(path, channel=channel)


# --- sampling rate ---------------------------------------------------------------------------------------------------


def tone(rate, frequency=440.0):
    return 0.5 * np.sin(2 * np.pi * frequency * np.arange(rate) / rate)


@pytest.mark.parametrize(("from_rate", "to_rate"), [(16000, 8000), (8000, 16000), (22050, 16000)])
def test_resampling_keeps_a_tone(tmp_path, from_rate, to_rate):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(from_rate), from_rate, subtype="PCM_24")
    audio = read_audio(path, rate=to_rate, resample=True, dtype="float64")
    assert audio.rate == to_rate
    assert len(audio.samples) == to_rate
    middle = slice(to_rate // 10, -to_rate // 10)
    assert np.abs(audio.samples - tone(to_rate))[middle].max() < 1e-4


def test_another_rate_is_an_error_unless_resampling_is_requested(tmp_path):
    path = put(tmp_path, "a.wav", encoded(noise(), "WAV"))
    with pytest.raises(
        DataError, match=r"a.wav: sampling rate is 16000 Hz, expected 8000 Hz \(.*resample=True"
    ):
        read_audio(path, rate=8000)


# --- shorten ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("n", [1, 256, 1000])
def test_shorten_is_decoded_to_the_bit(tmp_path, n, channels):
    pytest.importorskip("av")
    samples = np.cumsum(np.random.default_rng(n).normal(0, 40, (n, channels)), axis=0).astype(
        np.int16
    )
    samples[: n // 2] = 0  # blocks of silence have their own code
    samples = samples if channels > 1 else samples[:, 0]
    path = put(tmp_path, "a.sph", shorten_sphere(samples))
    header = audio_header(path)
    assert (header.rate, header.channels, header.n_samples) == (RATE, channels, n)
    for channel in range(channels):
        got = read_audio(path, channel=channel)
        assert got.rate == RATE
        assert got.samples.dtype == np.float32
        assert np.array_equal(got.samples, np.atleast_2d(samples.T)[channel] / np.float32(32768))


def test_shorten_without_pyav_names_the_extra(tmp_path, monkeypatch):
    path = put(tmp_path, "a.sph", shorten_sphere(noise(300)))
    monkeypatch.setitem(sys.modules, "av", None)
    for read in (read_audio, audio_header):
        with pytest.raises(DataError, match=r"shorten.*pip install av, or .*sph2pipe"):
            read(path)


# --- broken files ----------------------------------------------------------------------------------------------------


def sized_wav(data_bytes, samples=None):
    content = bytearray(encoded(noise(100) if samples is None else samples, "WAV"))
    place = content.index(b"data")
    content[place + 4 : place + 8] = struct.pack("<I", data_bytes)
    return bytes(content)


def unknown_length_flac():
    content = bytearray(encoded(noise(), "FLAC"))
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    return bytes(content)


PCM = noise().astype("<i2").tobytes()
BROKEN = {
    "empty.wav": (b"", r"is empty \(0 bytes\)"),
    "au.wav": (
        encoded(noise(), "AU"),
        "not readable as WAV, FLAC, SPHERE, Ogg or MP3: it begins with b'.snd'",
    ),
    "text.mp3": (
        "text".encode("utf-16"),
        "not readable as WAV, FLAC, SPHERE, Ogg or MP3: it begins with",
    ),
    "cut.mp3": (encoded(noise(40000), "MP3", "MPEG_LAYER_III")[:4000], "cut off"),
    "cut.ogg": (
        encoded(noise(40000), "OGG", "VORBIS")[:4000],
        "cut off: the last page of the Ogg stream is not there",
    ),
    "headerless.raw": (PCM, "headerless audio"),
    "zero.wav": (encoded(noise()[:0], "WAV"), "holds no samples"),
    "pipe.flac": (unknown_length_flac(), "FLAC header without the number of samples"),
    "cut.wav": (
        encoded(noise(), "WAV")[:-1],
        "cut off: the header promises 8000 bytes of samples, .* holds 7999",
    ),
    "half.wav": (
        sized_wav(4000, noise()),
        "counts samples up to byte 4044, and 4000 bytes follow that are not a chunk",
    ),
    "int16.wav": (
        encoded(noise().astype(np.float32), "WAV", "FLOAT"),
        "times full scale, .*divide them by 32768",
    ),
    "slow.wav": (encoded(noise(), "WAV", rate=1), "the header says 1 Hz"),
    "cut.sph": (
        encoded(noise(), "NIST")[:-2],
        "cut off: the header promises 8000 bytes of samples, .* holds 7998",
    ),
    "head.sph": (
        encoded(noise(), "NIST")[:500],
        "cut off: the header promises 1024 bytes of header",
    ),
    "count.sph": (sphere(PCM, sample_count="many"), "sample_count should be a number, not 'many'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_raise_one_error_with_name_and_remedy(tmp_path, name):
    content, message = BROKEN[name]
    path = put(tmp_path, name, content)
    # the header shows neither how much of a compressed stream is there, nor how loud the samples are
    for read in (read_audio,) if name == "int16.wav" else (read_audio, audio_header):
        with pytest.raises(DataError, match=message) as caught:
            read(path)
        assert caught.value.file == path
        assert caught.value.remedy


@pytest.mark.parametrize("cut", [0.02, 0.99])
def test_truncated_flac_is_refused(tmp_path, cut):
    content = encoded(noise(20000), "FLAC")
    path = put(tmp_path, "a.flac", content[: int(cut * len(content))])
    with pytest.raises(DataError, match=r"a\.flac: (cut off or damaged|not readable)"):
        read_audio(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            shorten_sphere(noise(900), sample_count=901),
            "the header promises 901 samples, the file holds 900",
        ),
        (shorten_sphere(noise(900), channel_count=2), "cannot be decoded|expected 2 channels"),
        (
            sphere(b"ajkg\x02nonsense", sample_count=5, sample_coding="pcm,embedded-shorten-v2.00"),
            "cannot be decoded",
        ),
        (
            shorten_sphere(noise(900), sample_count=None),
            "sample_count should be a number, not 'nothing'",
        ),
        (shorten_sphere(noise(9000))[:6000], "the header promises 9000 samples|cannot be decoded"),
    ],
)
def test_broken_shorten_is_refused(tmp_path, content, message):
    pytest.importorskip("av")
    path = put(tmp_path, "a.sph", content)
    with pytest.raises(DataError, match=message) as caught:
        read_audio(path)
    assert caught.value.file == path
    assert caught.value.remedy


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", [".wav", ".FLAC", ".sph"])
def test_audio_is_written_as_read_to_the_bit(tmp_path, extension):
    samples = noise() / 32768
    path = tmp_path / f"a{extension}"
    write_audio(path, samples, RATE)
    audio = read_audio(path, dtype="float64")
    assert audio.rate == RATE
    assert np.array_equal(audio.samples, samples)


def test_clipping_is_reported(tmp_path, caplog):
    samples = np.array([0.5, 1.0, 1.2, -1.0, -3.0])
    with caplog.at_level(logging.WARNING):
        write_audio(tmp_path / "a.wav", samples, RATE)
    assert "2 of 5 samples beyond full scale were clipped" in caplog.text
    expected = np.array([16384, 32767, 32767, -32768, -32768]) / 32768
    assert np.array_equal(read_audio(tmp_path / "a.wav", dtype="float64").samples, expected)


@pytest.mark.parametrize("bad", [np.array([0.0, np.nan]), np.array([np.inf]), np.zeros(0)])
def test_bad_samples_are_not_written(tmp_path, bad):
    with pytest.raises(DataError, match=r"NaN or infinite samples|no samples"):
        write_audio(tmp_path / "a.wav", bad, RATE)
    assert not list(tmp_path.iterdir())
