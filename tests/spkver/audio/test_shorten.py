"""The decoder in a process of its own: its crash is an error of one file, and no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed

from spkbase.errors import DataError
from spkver.audio import shorten
from spkver.audio.reading import read_audio
from tests.shorten_bits import samples, sphere
from tests.shorten_bits import shorten as encoded

pytest.importorskip("av")
SAMPLES = samples() / np.float32(32768)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A good file."""
    path = tmp_path / "a.sph"
    path.write_bytes(sphere(encoded(samples()), sample_coding="pcm,embedded-shorten-v2.00"))
    return path


def decoders() -> list[int]:
    """Processes of decoders below this process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"spkver.audio.shorten_process" in status.read_bytes():
                parent = int((status.parent / "stat").read_text().rsplit(")", 1)[1].split()[1])
                found += [int(status.parent.name)] if parent == os.getpid() else []
        except OSError:
            continue
    return found


def test_one_decoder_serves_all_files(path: Path) -> None:
    shorten.close_decoders()
    for _ in range(3):
        assert np.array_equal(read_audio(path).samples, SAMPLES)
    assert len(decoders()) == 1
    shorten.close_decoders()
    assert not decoders()


def test_a_crash_is_an_error_of_the_file_and_the_next_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten.close_decoders()
    asked = shorten._Decoder._answer

    def die(decoder: shorten._Decoder, request: dict) -> object:
        os.kill(decoder._process.pid, signal.SIGSEGV)  # as a damaged file makes it
        return asked(decoder, request)

    monkeypatch.setattr(shorten._Decoder, "_answer", die)
    with pytest.raises(DataError, match=r"a\.sph: cannot be decoded .*: the decoder died of it .status -11") as caught:
        read_audio(path)
    assert caught.value.file == path
    monkeypatch.undo()
    assert np.array_equal(read_audio(path).samples, SAMPLES)


def test_a_decoder_that_was_killed_between_two_files_is_replaced(path: Path) -> None:
    read_audio(path)
    for process in decoders():
        os.kill(process, signal.SIGKILL)
    assert np.array_equal(read_audio(path).samples, SAMPLES)


def test_a_decoder_that_comes_to_no_end_is_ended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten.close_decoders()
    read_audio(path)
    os.kill(decoders()[0], signal.SIGSTOP)
    monkeypatch.setattr(shorten, "_LEAST_SECONDS", 0.3)
    decoder = shorten._IDLE.pop()
    with pytest.raises(shorten.EndedError, match="came to no end in 0 s"):
        decoder.ask(path, 10)
    decoder.close()


def test_threads_have_a_decoder_each(path: Path) -> None:
    found: list[bool] = []

    def work() -> None:
        for _ in range(20):
            found.append(np.array_equal(read_audio(path).samples, SAMPLES))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80
    assert len(decoders()) <= 4


def _length(path: Path) -> int:
    return len(read_audio(path).samples)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_of_joblib_decode(path: Path, backend: str) -> None:
    """Those of multiprocessing are daemons, which may not have children of that kind, and forks of this process."""
    read_audio(path)
    assert Parallel(2, backend=backend)(delayed(_length)(path) for _ in range(6)) == [600] * 6
    assert np.array_equal(read_audio(path).samples, SAMPLES)  # this process's own decoder was left alone


CODE = """
import os, sys, time
from spkver.audio import read_audio
read_audio(sys.argv[1])
if sys.argv[2] == "fork" and os.fork() == 0:
    time.sleep(30)  # holds the pipes of the decoder open
    os._exit(0)
from spkver.audio import shorten
print(*[decoder._process.pid for decoder in shorten._IDLE], flush=True)
if sys.argv[2] != "end":
    time.sleep(30)
"""


@pytest.mark.parametrize("how", ["end", "kill", "fork"])
def test_no_process_stays_behind(path: Path, how: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(path), how], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    decoder = int(process.stdout.readline())
    if how != "end":
        process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{decoder}/stat").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{decoder}/stat").exists()
    if how == "fork":
        os.killpg(process.pid, signal.SIGKILL)


def test_no_library_of_ffmpeg_is_in_this_process(path: Path) -> None:
    code = (
        "import sys; from spkver.audio.reading import read_audio; read_audio(sys.argv[1]); print('av' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
