"""The male protocol of RSR2015 on simulated speech, from audio to `results.json`: time by stage, memory, growth.

    python -m benchmarks.rsr2015_full [--recipe svm_gmm|ivector] [--part 1|3] [--corpus DIR] [--sizes 2 8 30]

Part 1: 50 background and 57 evaluation speakers say up to 30 sentences in 9 sessions: 28,890 recordings, 13,500 of them
for the UBM, 1,710 models, 10,260 tests, 584,820 trials. A size is a number of sentences: recordings, frames, vectors,
models and trials all grow by the same factor, so the slope of log seconds over log size is 1 where a stage grows as its
data.

Part 3: the same speakers say 13 sequences of digits in up to 9 sessions: 12,519 recordings, 5,850 of them for the UBM,
171 models, 3,420 tests. Of all pairs of models and tests (10,260 target and 574,560 nontarget trials) as many are kept
as the real list has, 5,301 and 292,347. A size is a number of sessions, 3, 6 or 9: trials grow with its square, all
else with the size.

The recipe runs as its users run it, each size in an empty folder; options that are not listed go to it.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.measure import describe_machine, replace_block, workers_rate
from spkbase.files import format_table
from spkver.corpora import (
    PART_SENTENCES,
    CorpusSize,
    draw_prompts,
    enrolment_lines,
    key_files,
    simulate_rsr2015,
    split_speakers,
    trial_lines,
)

ROOT = Path(__file__).resolve().parent.parent
N_SENTENCES, N_SESSIONS = {1: 30, 3: 13}, 9
SIZES = {1: [2, 8, 30], 3: [3, 6, 9]}
# trials of part 3 by the real list, and of all pairs of models and tests: by the speaker's own voice, by others
KEPT = (5_301, 10_260), (292_347, 574_560)
N_SPEAKERS, N_BACKGROUND = 107, 50
STAGES = (
    ("lists and headers", r"lists|check.*"),
    ("UBM", r"ubm"),
    ("statistics", r"statistics of .*"),
    ("supervectors", r"supervectors of .*"),
    ("SVM training", r"models of .*"),
    ("i-vectors", r"vectors of .*"),
    ("backends", r"backend of .*"),
    ("scoring", r"scores of .*"),
    ("evaluation", r"evaluation|report|results"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpus", type=Path, help="simulated corpus to use, or to make; else made and removed"
    )
    parser.add_argument("--part", type=int, choices=(1, 3), default=1)
    parser.add_argument(
        "--sizes", type=int, nargs="+", help="numbers of sentences up to 30, in part 3 of sessions"
    )
    parser.add_argument("--recipe", choices=("svm_gmm", "ivector"), default="svm_gmm")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--update", type=Path, metavar="PAGE", help="put the figures into this page"
    )
    options, others = parser.parse_known_args(arguments)
    others = others or ["--set", "ubm.components=512"] + ["--set", "nap.rank=40"] * (
        options.recipe == "svm_gmm"
    )
    others = ["--set", f"part={options.part}"] * (options.part > 1) + others
    with tempfile.TemporaryDirectory(prefix="rsr2015-") as name:
        corpus = options.corpus or Path(name, "corpus")
        shape = {
            "n_sentences": N_SENTENCES[options.part],
            "n_sessions": N_SESSIONS,
            "part": options.part,
        }
        whole = CorpusSize(n_speakers=N_SPEAKERS, n_background=N_BACKGROUND, **shape)
        simulate_rsr2015(corpus, whole, jobs=options.jobs)
        machine = f"{describe_machine()}; {workers_rate(options.jobs) / 1e9:.0f} GFLOP/s of float32 products"
        sizes, found, totals = sorted(options.sizes or SIZES[options.part]), [], []
        for size in sizes:
            part, output = Path(name, f"corpus-{size}"), Path(name, f"run-{size}")
            link_part(corpus, part, size, options.part)
            command = [
                sys.executable,
                str(ROOT / f"recipes/rsr2015/{options.recipe}.py"),
                "--corpus",
                str(part),
            ]
            command += ["--output", str(output), "--jobs", str(options.jobs), *others]
            for path in part.rglob("*.wav"):
                path.read_bytes()  # the run finds them in the system's cache
            printed, total, clock = run(command)
            log = (output / "run.log").read_text(encoding="utf-8")
            found.append(
                (stage_seconds(log, total["wall s"]), stage_seconds(log, total["CPU s"], clock))
            )
            disk = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
            totals.append(
                {
                    "sessions" if options.part == 3 else "sentences": size,
                    **total,
                    "disk MB": disk / 1e6,
                }
            )
            shutil.rmtree(output)
            print("system " + printed.rpartition("\nsystem ")[2].partition("\n\n")[0], flush=True)
    rows: list[dict[str, Any]] = [{"stage": stage} for stage in found[-1][0]]
    for row in rows:
        for name, of_sizes in zip(("wall", "CPU"), zip(*found, strict=True), strict=True):
            seconds = [one.get(row["stage"], 0.0) for one in of_sizes]
            row |= {
                f"{name} s at {size}": value for size, value in zip(sizes, seconds, strict=True)
            }
            # shorter ones are their fixed costs
            if len(sizes) > 1 and seconds[0] > 0 and seconds[-1] >= 1:
                row[f"{name} slope"] = math.log(seconds[-1] / seconds[0]) / math.log(
                    sizes[-1] / sizes[0]
                )
    columns = {f"{name} s at {size}": ".1f" for name in ("wall", "CPU") for size in sizes}
    columns |= {"wall slope": ".2f", "CPU slope": ".2f"}
    recipe = f"{options.jobs} workers: `recipes/rsr2015/{options.recipe}.py {' '.join(others)}`"
    summary = "\n\n".join(
        [
            f"{machine}; {recipe}",
            format_table(totals, dict.fromkeys(totals[0], ",.0f"), markdown=True),
            format_table(rows, {"stage": "", **columns}, markdown=True),
        ]
    )
    print(summary)
    if options.update:
        block = (
            "rsr2015" + "-ivector" * (options.recipe == "ivector") + "-part3" * (options.part == 3)
        )
        replace_block(options.update, block, summary)


def link_part(corpus: Path, part: Path, size: int, number: int = 1) -> None:
    """Make the corpus of a size beside the whole one of a part: the recordings are links, keys are written."""
    speakers = split_speakers("m", N_SPEAKERS, N_BACKGROUND)
    n_sentences, n_sessions = (N_SENTENCES[3], size) if number == 3 else (size, N_SESSIONS)
    for speaker in sum(speakers, ()):
        (part / "sph/male" / speaker).mkdir(parents=True)
        for session in range(1, n_sessions + 1):
            for sentence in range(n_sentences):
                name = f"sph/male/{speaker}/{speaker}_{session:02d}_{PART_SENTENCES[number][0] + sentence:03d}.wav"
                (part / name).symlink_to((corpus / name).resolve())
    sizes = {"n_sentences": n_sentences, "n_sessions": n_sessions, "part": number}
    enrolment = enrolment_lines(speakers.evaluation, folder="male", **sizes)
    listed = trial_lines(speakers.evaluation, prompts=draw_prompts(0), **sizes)
    trials = (line for lines in listed for line in lines)
    lists = (enrolment, kept_lines(trials) if number == 3 else trials)
    for path, lines in zip(key_files(part, "m", "eval", number), lists, strict=True):
        path.parent.mkdir(parents=True)
        with path.open("w", encoding="ascii") as handle:
            handle.writelines(lines)
    shutil.copy(corpus / "simulation.json", part)  # the plots say that the speech is synthetic


def kept_lines(lines: Iterator[str]) -> Iterator[str]:
    """Yield trials of part 3, of each type the share that the real list has, evenly spread."""
    seen: dict[str, int] = {}
    for line in lines:
        letters = line[-8:-1]
        kept, whole = KEPT["Y" in letters[4:]]
        seen[letters] = seen.get(letters, 0) + 1
        if seen[letters] * kept // whole > (seen[letters] - 1) * kept // whole:
            yield line


def run(command: list[str]) -> tuple[str, dict[str, float], list[tuple[float, float]]]:
    """Run a command; return what it printed, its wall and processor time, and the peak of its processes' memory.

    Memory is the sum of proportional set sizes, five times a second. The processor time is also returned as it grew:
    the time of the clock, and the seconds until then.
    """
    started, peak, cpu, clock = time.perf_counter(), 0.0, {}, [(time.time(), 0.0)]
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, cwd=ROOT)
        while process.poll() is None:
            memory = 0.0
            with suppress(psutil.NoSuchProcess):
                me = psutil.Process(process.pid)
                for one in [me, *me.children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess):
                        memory += one.memory_full_info().pss
                        cpu[one.pid] = sum(one.cpu_times()[:2])
            peak = max(peak, memory)
            clock.append((time.time(), sum(cpu.values())))
            time.sleep(0.2)
        printed.seek(0)
        text = printed.read()
    if process.returncode:
        raise SystemExit(f"{text[-4000:]}\nthe recipe ended with status {process.returncode}")
    totals = {
        "wall s": time.perf_counter() - started,
        "CPU s": sum(cpu.values()),
        "peak MB": peak / 1e6,
    }
    return text, totals, clock


def stage_seconds(
    log: str, total: float, clock: Sequence[tuple[float, float]] = ()
) -> dict[str, float]:
    """Return the seconds of each kind of stage from a run's log; those of a stage within another are its own.

    They are seconds of wall time, or of processor time with the `clock` of `run`.
    """
    found: dict[str, float] = {}
    within: list[float] = []  # seconds of the stages within each one that is at work
    begun: list[float] = []  # processor time when each of these started
    for line in log.splitlines():
        text, now = line.partition(": ")[2], 0.0
        if clock and (text.endswith(": started") or text.endswith(" s")):
            now = float(
                np.interp(
                    datetime.fromisoformat(line[:23].replace(",", ".")).timestamp(),
                    *np.transpose(clock),
                )
            )
        if text.endswith(": started"):
            within.append(0.0)
            begun.append(now)
        elif (end := re.fullmatch(r"(.+): (\d+\.\d) s", text)) and within:
            seconds = now - begun.pop() if clock else float(end[2])
            kind = next((kind for kind, pattern in STAGES if re.fullmatch(pattern, end[1])), end[1])
            found[kind] = found.get(kind, 0.0) + seconds - within.pop()
            if within:
                within[-1] += seconds
    return {**found, "start, end, between": total - sum(found.values()), "all": total}


if __name__ == "__main__":
    main()
