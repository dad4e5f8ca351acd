"""The male protocol of RSR2015 on simulated speech, from audio to `results.json`: time by stage, memory, growth.

    python -m benchmarks.rsr2015_full [--recipe svm_gmm|ivector] [--corpus DIR] [--sizes 2 8 30] [--update PAGE]

50 background and 57 evaluation speakers say up to 30 sentences in 9 sessions: 28,890 recordings, 13,500 of them for the
UBM, 1,710 models, 10,260 tests, 584,820 trials. A size is a number of sentences: recordings, frames, vectors, models
and trials all grow by the same factor, so the slope of log seconds over log size is 1 where a stage grows as its data.
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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.measure import describe_machine, replace_block, workers_rate
from spkbase.files import format_table
from spkver.corpora import CorpusSize, enrolment_lines, simulate_rsr2015, split_speakers, trial_lines

ROOT = Path(__file__).resolve().parent.parent
N_SENTENCES, N_SESSIONS = 30, 9
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="simulated corpus to use, or to make; else made and removed")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 8, 30], help="numbers of sentences, up to 30")
    parser.add_argument("--recipe", choices=("svm_gmm", "ivector"), default="svm_gmm")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--update", type=Path, metavar="PAGE", help="put the figures into this page")
    options, others = parser.parse_known_args(arguments)
    others = others or ["--set", "ubm.components=512"] + ["--set", "nap.rank=40"] * (options.recipe == "svm_gmm")
    with tempfile.TemporaryDirectory(prefix="rsr2015-") as name:
        corpus = options.corpus or Path(name, "corpus")
        whole = CorpusSize(
            n_speakers=N_SPEAKERS, n_background=N_BACKGROUND, n_sentences=N_SENTENCES, n_sessions=N_SESSIONS
        )
        simulate_rsr2015(corpus, whole, jobs=options.jobs)
        machine = f"{describe_machine()}; {workers_rate(options.jobs) / 1e9:.0f} GFLOP/s of float32 products"
        sizes, found, totals = sorted(options.sizes), [], []
        for size in sizes:
            part, output = Path(name, f"corpus-{size}"), Path(name, f"run-{size}")
            link_part(corpus, part, size)
            command = [sys.executable, str(ROOT / f"recipes/rsr2015/{options.recipe}.py"), "--corpus", str(part)]
            command += ["--output", str(output), "--jobs", str(options.jobs), *others]
            for path in part.rglob("*.wav"):
                path.read_bytes()  # the run finds them in the system's cache
            printed, total = run(command)
            found.append(stage_seconds((output / "run.log").read_text(encoding="utf-8"), total["wall s"]))
            disk = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
            totals.append({"sentences": size, **total, "disk MB": disk / 1e6})
            shutil.rmtree(output)
            print("system " + printed.rpartition("\nsystem ")[2].partition("\n\n")[0], flush=True)
    columns = dict.fromkeys([f"s at {size}" for size in sizes], ".1f")
    rows = []
    for stage in found[-1]:
        seconds = [one.get(stage, 0.0) for one in found]
        grows = len(sizes) > 1 and seconds[0] > 0 and seconds[-1] >= 1  # shorter ones are their fixed costs
        slope = math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0]) if grows else None
        rows.append({"stage": stage, **dict(zip(columns, seconds, strict=True)), "slope": slope})
    recipe = f"{options.jobs} workers: `recipes/rsr2015/{options.recipe}.py {' '.join(others)}`"
    summary = "\n\n".join(
        [
            f"{machine}; {recipe}",
            format_table(totals, {"sentences": "", **dict.fromkeys(list(totals[0])[1:], ",.0f")}, markdown=True),
            format_table(rows, {"stage": "", **columns, "slope": ".2f"}, markdown=True),
        ]
    )
    print(summary)
    if options.update:
        replace_block(options.update, "rsr2015" if options.recipe == "svm_gmm" else "rsr2015-ivector", summary)


def link_part(corpus: Path, part: Path, n_sentences: int) -> None:
    """Make the corpus of the first sentences beside the whole one: the recordings are links, keys are written."""
    speakers = split_speakers("m", N_SPEAKERS, N_BACKGROUND)
    for speaker in sum(speakers, ()):
        (part / "sph/male" / speaker).mkdir(parents=True)
        for session in range(1, N_SESSIONS + 1):
            for sentence in range(1, n_sentences + 1):
                name = f"sph/male/{speaker}/{speaker}_{session:02d}_{sentence:03d}.wav"
                (part / name).symlink_to((corpus / name).resolve())
    sizes = {"n_sentences": n_sentences, "n_sessions": N_SESSIONS}
    enrolment = enrolment_lines(speakers.evaluation, folder="male", **sizes)
    trials = (line for lines in trial_lines(speakers.evaluation, **sizes) for line in lines)
    for name, lines in (("trn/3sesspwd_eval_m.trn", enrolment), ("ndx/3sess-pwd_eval_m.ndx", trials)):
        path = part / "key/part1" / name
        path.parent.mkdir(parents=True)
        with path.open("w", encoding="ascii") as handle:
            handle.writelines(lines)
    shutil.copy(corpus / "simulation.json", part)  # the plots say that the speech is synthetic


def run(command: list[str]) -> tuple[str, dict[str, float]]:
    """Run a command; return what it printed, its wall and processor time, and the peak of its processes' memory.

    Memory is the sum of proportional set sizes, five times a second.
    """
    started, peak, cpu = time.perf_counter(), 0.0, {}
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
            time.sleep(0.2)
        printed.seek(0)
        text = printed.read()
    if process.returncode:
        raise SystemExit(f"{text[-4000:]}\nthe recipe ended with status {process.returncode}")
    return text, {"wall s": time.perf_counter() - started, "CPU s": sum(cpu.values()), "peak MB": peak / 1e6}


def stage_seconds(log: str, total: float) -> dict[str, float]:
    """Return the seconds of each kind of stage from a run's log; those of a stage within another are its own."""
    found: dict[str, float] = {}
    within: list[float] = []  # seconds of the stages within each one that is at work
    for line in log.splitlines():
        text = line.partition(": ")[2]
        if text.endswith(": started"):
            within.append(0.0)
        elif (end := re.fullmatch(r"(.+): (\d+\.\d) s", text)) and within:
            seconds = float(end[2])
            kind = next((kind for kind, pattern in STAGES if re.fullmatch(pattern, end[1])), end[1])
            found[kind] = found.get(kind, 0.0) + seconds - within.pop()
            if within:
                within[-1] += seconds
    return {**found, "start, end, between": total - sum(found.values()), "all": total}


if __name__ == "__main__":
    main()
