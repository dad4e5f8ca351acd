"""Recordings are read whole or refused, whatever the codec, the header and what follows them."""

import io
import logging
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import soundfile

from spkbase.errors import DataError, Problems
from spkver.audio import (
    EXTENSIONS,
    audio_header,
    doubtful_recordings,
    read_audio,
    usable_recordings,
)
from spkver.streams import mp3_stream, silent_decoder

RATE = 16000


def rising_noise(seconds=3.0, rate=RATE, channels=1):
    """Quiet first, so that a length estimated from the first frames is wrong."""
    n = int(seconds * rate)
    noise = (
        np.random.default_rng(0).normal(size=(n, channels))
        * np.geomspace(1e-4, 0.3, n)[:, np.newaxis]
    )
    return noise if channels > 1 else noise[:, 0]


def encoded(samples, container, subtype="PCM_16", rate=RATE, **how):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=container, subtype=subtype, **how)
    return buffer.getvalue()


def mp3(samples, rate=RATE, mode="VARIABLE"):
    return encoded(samples, "MP3", "MPEG_LAYER_III", rate, bitrate_mode=mode, compression_level=0.5)


def without_count(content):
    return content[mp3_stream(content).starts[0] :]


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "subtype", ["GSM610", "G721_32", "NMS_ADPCM_16", "NMS_ADPCM_24", "NMS_ADPCM_32"]
)
def test_codecs_that_cannot_seek_are_read(tmp_path, subtype):
    path = put(tmp_path, "a.wav", encoded(rising_noise(rate=8000), "WAV", subtype, 8000))
    with soundfile.SoundFile(path) as file:
        assert not file.seekable()
        blocks = [file.read(1000, dtype="float32") for _ in range(100)]
    expected = np.concatenate(blocks)
    assert np.array_equal(read_audio(path).samples, expected)
    assert audio_header(path).n_samples == len(expected)
    assert usable_recordings({"a": path}, problems := Problems(), jobs=1)
    assert not problems.errors


@pytest.mark.parametrize("mode", ["VARIABLE", "AVERAGE", "CONSTANT"])
@pytest.mark.parametrize("rate", [8000, 11025, 16000, 32000, 44100])
@pytest.mark.parametrize("channels", [1, 2])
def test_mp3_without_a_count_has_all_samples(tmp_path, mode, rate, channels):
    samples = rising_noise(2, rate, channels)
    content = mp3(samples, rate, mode)
    assert audio_header(put(tmp_path, "a.mp3", content)).n_samples == len(samples)
    tag = b"ID3\x04\0\0\0\0\x01\0" + b"\xff\xfb\x90\x00" * 32  # holds bytes that look like frames
    for start in (b"", tag, tag + tag):
        path = put(tmp_path, "b.mp3", start + without_count(content))
        read = read_audio(path, channel=0).samples
        assert len(read) == audio_header(path).n_samples
        # the encoder adds a delay and fills whole frames
        assert len(samples) <= len(read) <= len(samples) + 4 * 1152
        # the loud end is present
        assert np.std(read[-len(read) // 5 :]) > 0.7 * np.std(samples[-len(samples) // 5 :])


def test_samples_of_mp3_without_a_count_equal_those_of_pyav(tmp_path):
    av = pytest.importorskip("av")
    path = put(tmp_path, "a.mp3", without_count(mp3(rising_noise())))
    with av.open(str(path)) as container:
        expected = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
    read = read_audio(path).samples
    assert np.allclose(read, expected[len(expected) - len(read) :], atol=1e-5)


def test_a_part_of_an_mp3_stream_has_its_own_duration(tmp_path):
    content = without_count(mp3(rising_noise(6)))
    half = read_audio(put(tmp_path, "a.mp3", content[: len(content) // 2])).samples
    starts = mp3_stream(content[: len(content) // 2]).starts
    assert 0 <= 576 * len(starts) - len(half) < 576


A, B = rising_noise(2), rising_noise(0.3)
JOINED = {
    "a.ogg": [encoded(A, "OGG", "VORBIS"), encoded(B, "OGG", "VORBIS")],
    "a.opus": [encoded(A, "OGG", "OPUS"), encoded(B, "OGG", "OPUS")],
    "a.mp3": [mp3(A), mp3(B)],
    "rates.mp3": [without_count(mp3(A)), mp3(rising_noise(1, 8000), 8000)],
    "a.flac": [encoded(A, "FLAC"), encoded(B, "FLAC")],
    "a.wav": [encoded(A, "WAV"), encoded(B, "WAV")],
    "rf64.wav": [encoded(A, "RF64"), encoded(B, "RF64")],
    "float.wav": [encoded(A, "WAV", "FLOAT"), encoded(B, "WAV", "FLOAT")],
    "a.sph": [encoded(A, "NIST"), encoded(B, "NIST")],
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("order", [1, -1])
def test_joined_files_are_refused(tmp_path, name, order):
    parts = JOINED[name][::order]
    for part in parts:
        read_audio(put(tmp_path, name, part))
    path = put(tmp_path, name, b"".join(parts))
    with pytest.raises(DataError, match="holds several recordings, one behind the other"):
        read_audio(path)


def test_joined_wav_from_pipes_is_refused(tmp_path):
    content = bytearray(encoded(A, "WAV"))
    content[40:44] = b"\xff\xff\xff\xff"
    read_audio(put(tmp_path, "a.wav", bytes(content)))
    with pytest.raises(DataError, match="holds several recordings"):
        read_audio(put(tmp_path, "a.wav", bytes(content + content)))


def test_tags_after_a_recording_are_not_a_second_recording(tmp_path):
    tag = b"TAG" + b"\xff\xfb" * 60 + bytes(5)
    for name in ("a.mp3", "a.flac", "a.wav"):
        content = JOINED[name][0]
        alone = read_audio(put(tmp_path, name, content)).samples
        assert np.array_equal(read_audio(put(tmp_path, name, content + tag)).samples, alone)


@pytest.mark.parametrize("name", ["a.ogg", "a.opus"])
@pytest.mark.parametrize("lost", [1, 1500, 5000])
def test_ogg_without_its_end_is_reported_as_truncated(tmp_path, name, lost):
    with pytest.raises(DataError, match="cut off: the last page"):
        audio_header(put(tmp_path, name, JOINED[name][0][:-lost]))


def fmt(content, at, value):
    place = content.index(b"fmt ") + 8 + at
    return content[:place] + value + content[place + len(value) :]


WAV = encoded(A, "WAV")
DAMAGED = {
    "rate 0": (fmt(WAV, 4, bytes(4)), "states no sampling rate"),
    "channels 0": (fmt(WAV, 2, bytes(2)), "[Cc]hannel"),
    "encoding": (fmt(WAV, 0, b"\x33\x33"), "its encoding is unknown|Malformed 'fmt ' chunk"),
    "samples twice": (WAV + WAV[WAV.index(b"data") :], "two chunks of samples"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_headers_are_reported_in_words(tmp_path, damage):
    content, message = DAMAGED[damage]
    with pytest.raises(DataError, match=message) as caught:
        read_audio(put(tmp_path, "a.wav", content))
    assert "SF_INFO" not in str(caught.value)
    assert "Internal" not in str(caught.value)


SEEDS = [part for parts in JOINED.values() for part in parts[:1]]
SEEDS += [
    encoded(B, "WAV", name, 8000)
    for name in ("GSM610", "G721_32", "NMS_ADPCM_16", "MS_ADPCM", "IMA_ADPCM")
]
SEEDS += [encoded(B, name) for name in ("AIFF", "AU", "CAF", "W64", "VOC")]


@pytest.mark.parametrize("seed", range(20))
def test_no_file_stops_the_search_for_usable_recordings(tmp_path, seed):
    rng = np.random.default_rng(seed)
    content = bytearray(SEEDS[seed % len(SEEDS)])
    match seed % 4:
        case 0:
            content = content[:4] + rng.bytes(2000)
        case 1:
            content = content[: rng.integers(len(content))]
        case 2:
            content += SEEDS[rng.integers(len(SEEDS))]
        case 3:
            content[8:60] = rng.bytes(52)
    path = put(tmp_path, f"a{EXTENSIONS[seed % len(EXTENSIONS)]}", bytes(content))
    usable = usable_recordings({"a": path}, problems := Problems(), jobs=1)
    assert len(usable) + len(problems.errors) == 1
    for function in (
        audio_header,
        read_audio,
        lambda file: doubtful_recordings({"a": file}, jobs=1),
    ):
        try:
            function(path)
        except DataError as error:
            assert str(path) in str(error)  # noqa: PT017


def damaged_mp3():
    content = bytearray(without_count(mp3(rising_noise())))
    for start in mp3_stream(bytes(content)).starts[5:40]:
        content[start + 4 : start + 13] = bytes([255] * 9)  # the side information
    return bytes(content)


def test_messages_of_the_mp3_decoder_do_not_appear(tmp_path):
    path = put(tmp_path, "a.mp3", damaged_mp3())
    loud = subprocess.run(
        [sys.executable, "-c", f"import soundfile; soundfile.read({str(path)!r})"],
        capture_output=True,
        check=True,
    )
    assert b"mpg123" in loud.stderr
    code = f"from spkver.audio import *; read_audio({str(path)!r}); audio_header({str(path)!r})"
    quiet = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert quiet.stderr == b""


def test_messages_of_this_program_appear_while_the_decoder_is_silent(capfd, caplog):
    caplog.set_level(logging.WARNING)
    ready, done = threading.Barrier(2), threading.Event()

    def decode():
        with silent_decoder():
            ready.wait()
            done.wait()

    thread = threading.Thread(target=decode)
    thread.start()
    ready.wait()
    with silent_decoder():
        sys.stderr.write("from Python\n")
        sys.stderr.flush()
        os.write(2, b"by descriptor\n")
        subprocess.run(
            [sys.executable, "-c", "import sys; print('of a process', file=sys.stderr)"], check=True
        )
    done.set()
    thread.join()
    shown = capfd.readouterr().err
    assert all(text in shown for text in ("from Python", "by descriptor", "of a process"))
