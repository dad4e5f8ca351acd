"""The benchmark of the whole RSR2015 protocol: its counts, its corpus, what it samples and what it reads from logs."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks import rsr2015_full
from benchmarks.rsr2015_full import growth, link_part, result_table
from benchmarks.rsr2015_work import Frames, Protocol, disk_needed, kind_of, stage_work, vector_work
from benchmarks.sampling import Usage, _memory, folder_bytes, run_sampled
from benchmarks.stage_times import BETWEEN, END, START, stage_spans
from spkver.corpora.rsr2015 import read_rsr2015
from spkver.corpora.simulated import RECORD, split_speakers

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")


def test_whole_protocol_has_the_counts_of_rsr2015() -> None:
    whole = Protocol(30)
    assert (whole.recordings, whole.background, whole.models) == (28_890, 13_500, 1_710)
    assert (whole.tests, whole.trials, whole.targets) == (10_260, 584_820, 10_260)


def touch_recordings(corpus: Path, n_sentences: int) -> None:
    for speaker in sum(split_speakers("m", 107, 50), ()):
        (corpus / "sph/male" / speaker).mkdir(parents=True)
        for session in range(1, 10):
            for sentence in range(1, n_sentences + 1):
                (corpus / f"sph/male/{speaker}/{speaker}_{session:02d}_{sentence:03d}.wav").touch()
    (corpus / RECORD).write_text("{}")


def test_part_of_the_corpus_has_the_lists_that_its_size_says(tmp_path: Path) -> None:
    touch_recordings(tmp_path / "corpus", 3)
    link_part(tmp_path / "corpus", tmp_path / "part", 2)
    lists, size = read_rsr2015(tmp_path / "part"), Protocol(2)
    assert len(lists.recordings) == size.recordings
    assert all(path.resolve().is_relative_to(tmp_path / "corpus") for path in lists.recordings.values())
    assert len(lists.ubm) == size.background
    assert len(lists.enrolment) == size.enrolment
    assert len(lists.enrolment.unique_models()) == size.models
    assert len(lists.test) == size.tests
    assert len(lists.key) == size.trials
    assert int(lists.key.is_target.sum()) == size.targets


def test_work_follows_the_formulas() -> None:
    frames = Frames(
        ubm=1000, evaluation=500, background=100, gaussians=4, dimension=3, rounds=(2, 4, 4), background_size=20,
        nap_rank=5,
    )  # fmt: skip
    work = stage_work(Protocol(1), frames, 60.0)
    assert work["UBM"].operations == 8 * 1000 * 3 * (1 + 2 + 4 + 4)
    assert work["statistics"].operations == 6 * 600 * 3 * 4
    assert (work["supervectors"].measure, work["supervectors"].amount) == ("vectors", 171 + 342 + 20)
    assert work["NAP"].operations == 20 * 20 * 12 + 2 * 5 * 20 * 12
    assert work["scoring"].operations == 4 * 57 * 342 * 12 + 4 * 5 * 12 * 342


def test_work_of_vectors_follows_the_formulas() -> None:
    frames = Frames(1000, 500, 1000, gaussians=4, dimension=3, rounds=(2, 4, 4), background_size=450, nap_rank=5)
    work = vector_work(Protocol(1), frames, 60.0, (6, 2), 8)
    segment = 2 * 4 * 21 + 2 * 12 * 6 + 6**3 / 3 + 2 * 6**2
    training = segment + 2 * 6**3 / 3 + 2 * 4 * 21 + 2 * 12 * 6
    assert work["i-vectors"].operations == 963 * segment
    once = 12 * 36 + 4 * 6**3 / 3 + 2 * 12 * 36
    assert work["total variability"].operations == pytest.approx(2 * (450 * training + once))
    assert (work["scoring"].amount, work["scoring"].operations) == (8 * 57 * 342, 2 * 8 * 57 * 342 * 6)
    assert [kind_of(name) for name in ("vectors of test", "backend of plda")] == ["i-vectors", "backends"]


def test_the_table_is_found_in_what_a_recipe_prints() -> None:
    printed = "ubm: 1.0 s\nsystem  EER\n------  ---\nsvm     1.0\n\nEER low: interval.\n\nDET plot: x\nResults: y\n"
    assert result_table(printed) == "system  EER\n------  ---\nsvm     1.0"


def test_work_grows_as_the_recordings_do() -> None:
    small, large = Protocol(2), Protocol(30)
    for name in ("recordings", "background", "enrolment", "tests", "models", "trials"):
        assert getattr(large, name) == 15 * getattr(small, name)
    needed, more = disk_needed(small, 512), disk_needed(large, 512)
    assert 14 < sum(more.values()) / sum(needed.values()) < 20


# --- the log --------------------------------------------------------------------------------------


def log_line(second: float, text: str, logger: str = "spkbase.runs") -> str:
    stamp = datetime.fromtimestamp(1e9 + second)
    return f"{stamp:%Y-%m-%d %H:%M:%S},{stamp.microsecond // 1000:03d} INFO {logger}: {text}\n"


def spans(tmp_path: Path, *lines: str, ended: float = 20.0) -> list[tuple[str, float]]:
    log = tmp_path / "run.log"
    log.write_text("".join(lines), encoding="utf-8")
    return [(span.name, round(span.seconds, 3)) for span in stage_spans(log, 1e9, 1e9 + ended)]


def test_time_of_a_run_is_divided_without_gaps(tmp_path: Path) -> None:
    lines = [
        log_line(1, "spkver 1.0: recipe.py"),
        log_line(1, "lists: started"),
        log_line(3, "lists: 2.0 s"),
        log_line(3.5, "ubm: started"),
        log_line(4, "post-processing: started"),
        log_line(5, "features: 3 of 9 after 10 s", "spkbase.work"),
        log_line(7, "post-processing: 3.0 s"),
        log_line(12, "ubm: 8.5 s"),
    ]
    found = spans(tmp_path, *lines)
    assert found == [
        (START, 1.0),
        ("lists", 2.0),
        (BETWEEN, 0.5),
        ("ubm", 0.5),
        ("post-processing", 3.0),
        ("ubm", 5.0),
        (END, 8.0),
    ]
    assert sum(seconds for _, seconds in found) == 20


def test_stages_without_a_starting_line_start_by_their_length(tmp_path: Path) -> None:
    found = spans(tmp_path, log_line(0, "spkver 1.0: x"), log_line(4, "nap: 2.5 s"), log_line(9, "ubm: 9.0 s"), ended=9)
    assert found == [("ubm", 1.5), ("nap", 2.5), ("ubm", 5.0)]


def test_only_the_last_run_of_a_log_counts(tmp_path: Path) -> None:
    old = [log_line(-50, "spkver 1.0: x"), log_line(-40, "nap: started"), log_line(-30, "nap: 10.0 s")]
    found = spans(tmp_path, *old, log_line(0, "spkver 1.0: x"), log_line(2, "ubm: 2.0 s"), ended=2)
    assert found == [("ubm", 2.0)]


@pytest.mark.parametrize(
    ("stage", "kind"),
    [("ubm", "UBM"), ("statistics of test", "statistics"), ("scores of svm-gmm-nap", "scoring"), ("new", "new")],
)
def test_stages_are_rows_of_the_table(stage: str, kind: str) -> None:
    assert kind_of(stage) == kind


def test_growth_is_the_slope_over_the_own_measure() -> None:
    runs = [
        {"stages": {"x": {"work": n, "wall": n**1.5, "cpu": 3 * n}, "y": {"work": 7, "wall": n}}} for n in (2, 8, 30)
    ]
    assert growth(runs, "x") == pytest.approx(1.5)
    assert growth(runs, "x", "cpu") == pytest.approx(1.0)
    assert growth(runs, "y") is None  # its work does not grow
    assert growth(runs, "z") is None


# --- samples --------------------------------------------------------------------------------------

WORKER = """
import sys, time
block = bytearray(80_000_000)
block[::4096] = bytes(len(block[::4096]))
ended = time.process_time() + 0.5
while time.process_time() < ended:
    pass
if sys.argv[1] == "parent":
    import subprocess, tempfile
    with tempfile.TemporaryFile(dir=sys.argv[2]) as file:
        file.write(bytes(30_000_000))
        file.flush()
        subprocess.run([sys.executable, __file__, "child"], check=True)
time.sleep(0.4)
"""


@linux
def test_memory_processor_and_disk_of_all_processes_together(tmp_path: Path) -> None:
    script, folder = tmp_path / "worker.py", tmp_path / "folder"
    script.write_text(WORKER)
    folder.mkdir()
    command = [sys.executable, str(script), "parent", str(folder)]
    usage = run_sampled(command, folder=folder, output=tmp_path / "printed", interval=0.05)
    assert usage.status == 0
    assert usage.proportional
    assert 160e6 < max(usage.memory) < 260e6  # both blocks, once each
    assert max(usage.private) <= max(usage.memory)
    assert 0.95 < usage.cpu[-1] < 3
    assert 30e6 <= max(usage.disk) < 40e6  # the file without a name
    middle = usage.started + 0.3
    assert usage.cpu_between(usage.started, middle) + usage.cpu_between(middle, usage.ended) == pytest.approx(
        usage.cpu[-1]
    )
    assert usage.peak(usage.memory, usage.started, usage.started) < 160e6
    assert not list(folder.iterdir())


@linux
def test_a_process_that_ended_between_two_looks_takes_no_memory() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    usage = Usage()
    assert _memory(ended.pid, usage) == (0.0, 0.0)
    assert usage.proportional


@linux
def test_a_failing_command_gives_its_status_and_what_it_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('what went wrong'); raise SystemExit(3)"]
    usage = run_sampled(command, folder=tmp_path, output=tmp_path / "printed")
    assert usage.status == 3
    assert "what went wrong" in (tmp_path / "printed").read_text()


@linux
def test_an_interrupted_benchmark_ends_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process: list[subprocess.Popen[bytes]] = []
    wait = subprocess.Popen.wait

    def interrupted(self: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if not process:
            process.append(self)
            raise KeyboardInterrupt
        return wait(self, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_sampled([sys.executable, "-c", "import time; time.sleep(60)"], folder=tmp_path, output=tmp_path / "printed")
    assert process[0].returncode != 0
    assert time.monotonic() - started < 30


def test_files_with_two_names_count_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(100_000))
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert 100_000 <= folder_bytes(tmp_path) < 150_000


# --- the command ----------------------------------------------------------------------------------


def test_a_disk_that_is_too_small_ends_it_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from collections import namedtuple

    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(free=3e9))
    monkeypatch.setattr(rsr2015_full, "simulate_rsr2015", lambda *_, **__: pytest.fail("it went on"))
    with pytest.raises(SystemExit, match="disk is too small"):
        rsr2015_full.main(["--output", str(tmp_path / "new")])
    assert "GB are needed, 3.0 GB are free" in capsys.readouterr().out


@linux
def test_a_recipe_that_fails_shows_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = tmp_path / "corpus"
    touch_recordings(corpus, 1)  # empty files: the recipe's first check fails
    monkeypatch.setattr(rsr2015_full, "simulate_rsr2015", lambda *_, **__: type("Made", (), {"created": False})())
    monkeypatch.setattr(rsr2015_full, "workers_rate", lambda jobs: 1.0)
    arguments = ["--corpus", str(corpus), "--output", str(tmp_path / "out"), "--sizes", "1", "--gaussians", "4"]
    with pytest.raises(SystemExit, match=r"(?s)is empty \(0 bytes\).*the recipe ended with status 2"):
        rsr2015_full.main(arguments)
