"""The benchmark of the whole RSR2015 protocol: its corpus and what it reads from logs."""

import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.rsr2015_full import kept_lines, link_part, run, stage_seconds
from spkver.corpora.rsr2015 import read_rsr2015
from spkver.corpora.simulated import SIMULATION_RECORD, draw_prompts, split_speakers, trial_lines

pytestmark = pytest.mark.whole


def test_a_part_of_the_corpus_has_lists_of_matching_size(tmp_path):
    corpus = tmp_path / "corpus"
    for speaker in sum(split_speakers("m", 107, 50), ()):
        (corpus / "sph/male" / speaker).mkdir(parents=True)
        for name in (
            f"{speaker}_{session:02d}_{sentence:03d}.wav"
            for session in range(1, 10)
            for sentence in (1, 2)
        ):
            (corpus / "sph/male" / speaker / name).touch()
    (corpus / SIMULATION_RECORD).write_text("{}")
    link_part(corpus, tmp_path / "part", 1)
    lists = read_rsr2015(tmp_path / "part")  # one thirtieth of the protocol
    assert all(path.resolve().is_relative_to(corpus) for path in lists.recordings.values())
    found = (
        len(lists.recordings),
        len(lists.ubm),
        len(lists.enrolment.unique_models()),
        len(lists.test),
        len(lists.key),
    )
    assert tuple(30 * count for count in found) == (28_890, 13_500, 1_710, 10_260, 584_820)
    assert 30 * int(lists.key.is_target.sum()) == 10_260


def test_part_3_has_as_many_trials_as_the_real_list():
    speakers, prompts = split_speakers("m", 107, 50).evaluation, draw_prompts(0)
    lines = trial_lines(speakers, n_sentences=13, n_sessions=9, part=3, prompts=prompts)
    kept = [line.split(",") for line in kept_lines(line for of_model in lines for line in of_model)]
    kinds = Counter("".join(flags) for _, _, _, *flags in kept)
    assert (kinds["YNNN\n"], kinds["NNYN\n"]) == (5_301, 292_347)
    assert len({model for _, model, *_ in kept}) == 171
    assert len({segment for _, _, segment, *_ in kept}) == 3_420


def test_the_times_of_the_stages_add_up_to_the_time_of_the_run():
    lines = [
        "lists: started",
        "lists: 2.0 s",
        "ubm: started",
        "post-processing: started",
        "features: 3 of 9 after 10 s",
    ]
    lines += ["post-processing: 3.0 s", "ubm: 8.5 s", "scores of a: started", "scores of a: 1.0 s"]
    times = (0, 2, 2, 5, 6, 8, 11, 12, 13)
    log = "\n".join(
        f"2026-01-01 00:00:{at:02d},500 INFO spkbase.runs: {line}"
        for at, line in zip(times, lines, strict=True)
    )
    found = stage_seconds(log, 15.0)
    assert found == {
        **{"lists and headers": 2.0, "post-processing": 3.0, "UBM": 5.5, "scoring": 1.0},
        **{"start, end, between": 3.5, "all": 15.0},
    }
    start = datetime(2026, 1, 1).timestamp()  # the log has local times
    found = stage_seconds(log, 30.0, [(start, 0.0), (start + 15, 30.0)])  # two processors at work
    assert found == pytest.approx(
        {
            **{"lists and headers": 4.0, "post-processing": 6.0, "UBM": 12.0, "scoring": 2.0},
            **{"start, end, between": 6.0, "all": 30.0},
        }
    )


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_memory_and_processor_time_include_all_processes():
    code = (
        "import subprocess, sys, time\nblock = bytearray(80_000_000)\nblock[::4096] = bytes(len(block[::4096]))\n"
        "while time.process_time() < 0.5: pass\n"
        "if sys.argv[1:]: subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
        "time.sleep(0.6)\nprint('end')"
    )
    printed, found, clock = run([sys.executable, "-c", code, code])
    assert printed == "end\nend\n"
    assert 160 < found["peak MB"] < 260
    assert 0.9 < found["CPU s"] < 4
    assert clock[0][1] == 0
    assert clock[-1][1] <= found["CPU s"]
    assert clock == sorted(clock)
    with pytest.raises(SystemExit, match=r"(?s)what went wrong.*status 3"):
        run([sys.executable, "-c", "print('what went wrong'); raise SystemExit(3)"])
