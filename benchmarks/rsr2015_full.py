"""The whole male protocol of RSR2015 on simulated speech, from audio to `results.json`: time, memory, growth.

    python -m benchmarks.rsr2015_full [--recipe svm_gmm|ivector] [--corpus DIR] [--output DIR] [--sizes 2 8 30]
                                      [--json FILE] [--update PAGE]

50 background and 57 evaluation speakers say up to 30 sentences in 9 sessions: 28,890 recordings, 13,500 of them for the
UBM, 1,710 models, 10,260 tests, 584,820 trials. A size is a number of sentences: then recordings, frames, vectors,
models and trials all grow by the same factor, 1/15 for two sentences. `recipes/rsr2015/svm_gmm.py`, or `ivector.py`
with `--recipe ivector`, runs as its users run it, in processes of its own, each size in an empty folder. Other options
go to the recipe.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks.measure import describe_machine, replace_block, workers_rate
from benchmarks.rsr2015_work import (
    N_BACKGROUND,
    N_EVALUATION,
    N_SENTENCES,
    N_SESSIONS,
    Protocol,
    disk_needed,
    kind_of,
    read_frames,
    stage_work,
    vector_work,
)
from benchmarks.sampling import Usage, folder_bytes, run_sampled
from benchmarks.stage_times import stage_spans
from spkbase.files import format_table
from spkver.corpora import CorpusSize, enrolment_lines, simulate_rsr2015, split_speakers, trial_lines

ROOT = Path(__file__).resolve().parent.parent
TARGET_SECONDS, TARGET_BYTES, MOST_SLOPE = 480, 4e9, 1.15
SHORT = 1.0  # seconds: growth of what is shorter at full size is that of its fixed costs


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, run all sizes, print the tables."""
    options, for_recipe = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="rsr2015-") as name:
        folder = options.output or Path(name)
        corpus = options.corpus or folder / "corpus"
        _check_disk(corpus, folder, options)
        started = time.perf_counter()
        made = simulate_rsr2015(
            corpus,
            CorpusSize(
                n_speakers=N_BACKGROUND + N_EVALUATION,
                n_background=N_BACKGROUND,
                n_sentences=N_SENTENCES,
                n_sessions=N_SESSIONS,
            ),
            jobs=options.jobs,
        )
        print(made, f"({time.perf_counter() - started:.0f} s)" if made.created else "", flush=True)
        machine = describe_machine()
        rates = [workers_rate(options.jobs)]
        runs = [_run_size(Protocol(size), corpus, folder, options, for_recipe) for size in sorted(options.sizes)]
        rates.append(workers_rate(options.jobs))
    figures = {
        "machine": machine,
        "jobs": options.jobs,
        "gaussians": options.gaussians,
        "recipe": options.recipe,
        "nap_rank": options.nap_rank,
        "rank": options.rank,
        "products_per_second": float(np.mean(rates)),
        "runs": runs,
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    summary = _summary(figures)
    print(summary)
    if options.update:
        replace_block(options.update, "rsr2015" if options.recipe == "svm_gmm" else "rsr2015-ivector", summary)
    return 0


def _parse(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(description="The whole male protocol of RSR2015 on simulated speech.")
    parser.add_argument("--corpus", type=Path, help="simulated corpus to use, or to make; else made and removed")
    parser.add_argument("--output", type=Path, help="folder for the runs; a temporary one by default")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 8, 30], help="numbers of sentences, up to 30")
    parser.add_argument("--gaussians", type=int, default=512)
    parser.add_argument("--recipe", choices=("svm_gmm", "ivector"), default="svm_gmm")
    parser.add_argument("--nap-rank", type=int, default=40, help="of svm_gmm")
    parser.add_argument("--rank", type=int, default=400, help="of the i-vectors")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for all figures, which benchmarks.scale reads")
    parser.add_argument("--update", type=Path, metavar="PAGE", help="put the figures into this page")
    parser.add_argument("--keep", action="store_true", help="keep the runs; only with --output")
    options, for_recipe = parser.parse_known_args(arguments)
    if not all(1 <= size <= N_SENTENCES for size in options.sizes):
        parser.error(f"--sizes are numbers of sentences, 1 to {N_SENTENCES}")
    if options.keep and options.output is None:
        parser.error("--keep needs --output")
    return options, for_recipe


def _check_disk(corpus: Path, folder: Path, options: argparse.Namespace) -> None:
    """State what a run needs, and stop here if the disk has not as much."""
    largest = disk_needed(Protocol(max(options.sizes)), options.gaussians)
    largest["corpus"] = disk_needed(Protocol(N_SENTENCES), options.gaussians)["corpus"]
    if options.keep:
        others = sorted(options.sizes)[:-1]
        largest["artefacts"] += sum(disk_needed(Protocol(size), options.gaussians)["artefacts"] for size in others)
    there = (corpus / "simulation.json").is_file()
    needed = sum(size for name, size in largest.items() if not (there and name == "corpus"))
    free = shutil.disk_usage(
        next(parent for parent in [folder.resolve(), *folder.resolve().parents] if parent.exists())
    ).free
    parts = ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in largest.items())
    print(
        f"disk: {parts}{' (the corpus is there)' if there else ''}: {needed / 1e9:.1f} GB are needed, "
        f"{free / 1e9:.1f} GB are free",
        flush=True,
    )
    if free < needed:
        raise SystemExit("the disk is too small: choose another --output")


def _run_size(
    protocol: Protocol, corpus: Path, folder: Path, options: argparse.Namespace, for_recipe: list[str]
) -> dict[str, Any]:
    """Run the recipe on so many sentences, and measure it."""
    part = corpus if protocol.sentences == N_SENTENCES else folder / f"corpus-{protocol.sentences}"
    if part != corpus:
        shutil.rmtree(part, ignore_errors=True)
        link_part(corpus, part, protocol.sentences)
    output = folder / f"run-{protocol.sentences}"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    printed = folder / f"run-{protocol.sentences}.txt"
    settings = {"ubm.components": options.gaussians}
    settings |= (
        {"nap.rank": options.nap_rank} if options.recipe == "svm_gmm" else {"total_variability.rank": options.rank}
    )
    script = str(ROOT / f"recipes/rsr2015/{options.recipe}.py")
    command = [sys.executable, script, "--corpus", str(part), "--output", str(output), "--jobs", str(options.jobs)]
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    audio_seconds, reading = _read_all(part)
    print(f"{protocol.sentences} sentences: a plain read took {reading:.1f} s; {' '.join(command[1:] + for_recipe)}")
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    usage = run_sampled([*command, *for_recipe], folder=output, output=printed, environment=environment)
    if usage.status:
        lines = printed.read_text(errors="replace").splitlines()[-40:]
        raise SystemExit("\n".join([*lines, f"the recipe ended with status {usage.status}; its output is above"]))
    found = measure_run(protocol, output, usage, audio_seconds, options.nap_rank)
    print(result_table(printed.read_text()), flush=True)
    if not options.keep:
        shutil.rmtree(output)
        printed.unlink()
        if part != corpus:
            shutil.rmtree(part)
    return found


def result_table(printed: str) -> str:
    """Return the table of systems out of what a recipe printed."""
    _, _, rest = printed.rpartition("\nsystem ")
    return "system " + rest.partition("\n\n")[0]


def link_part(corpus: Path, part: Path, n_sentences: int) -> None:
    """Make the corpus of the first sentences beside the whole one: the recordings are links, keys are written."""
    speakers = split_speakers("m", N_BACKGROUND + N_EVALUATION, N_BACKGROUND)
    for speaker in sum(speakers, ()):
        (part / "sph/male" / speaker).mkdir(parents=True)
        for session in range(1, N_SESSIONS + 1):
            for sentence in range(1, n_sentences + 1):
                name = f"sph/male/{speaker}/{speaker}_{session:02d}_{sentence:03d}.wav"
                (part / name).symlink_to((corpus / name).resolve())
    sizes = {"n_sentences": n_sentences, "n_sessions": N_SESSIONS}
    for folder in ("trn", "ndx"):
        (part / "key/part1" / folder).mkdir(parents=True)
    with (part / "key/part1/trn/3sesspwd_eval_m.trn").open("w", encoding="ascii") as handle:
        handle.writelines(enrolment_lines(speakers.evaluation, folder="male", **sizes))
    with (part / "key/part1/ndx/3sess-pwd_eval_m.ndx").open("w", encoding="ascii") as handle:
        for lines in trial_lines(speakers.evaluation, **sizes):
            handle.writelines(lines)
    shutil.copy(corpus / "simulation.json", part)  # the plots say that the speech is synthetic


def _read_all(corpus: Path) -> tuple[float, float]:
    """Read all recordings, so that the run finds them in the system's cache.

    Returns
    -------
    audio : float [unit=s]
        Their length: 16-bit samples at 16 kHz behind a header of 44 bytes.
    reading : float [unit=s]
        How long that took.
    """
    started = time.perf_counter()
    n_bytes = sum(len(path.read_bytes()) - 44 for path in sorted((corpus / "sph").rglob("*.wav")))
    return n_bytes / 32_000, time.perf_counter() - started


def measure_run(protocol: Protocol, output: Path, usage: Usage, audio_seconds: float, nap_rank: int) -> dict[str, Any]:
    """Bring what was sampled, what the log says and what there was to do together.

    Raises
    ------
    SystemExit
        If the run has not the protocol's numbers of trials.
    """
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    for name, system in results["systems"].items():
        counts = (system["n_target"], system["n_nontarget"])
        if counts != (protocol.targets, protocol.trials - protocol.targets):
            raise SystemExit(f"{name} has {counts} target and nontarget trials, the protocol has {protocol}")
    frames = read_frames(output, nap_rank)
    work = stage_work(protocol, frames, audio_seconds)
    if results["recipe"] == "rsr2015/ivector":
        with h5py.File(output / "data/tv.h5") as file:
            matrix = file["loadings"].shape[-1], len(file["log_likelihoods"])
        work = vector_work(protocol, frames, audio_seconds, matrix, len(results["systems"]))
    rows: dict[str, dict[str, Any]] = {}
    for span in stage_spans(output / "run.log", usage.started, usage.ended):
        row = rows.setdefault(kind_of(span.name), {"wall": 0.0, "cpu": 0.0, "peak": 0.0, "private": 0.0, "stages": []})
        row["wall"] += span.seconds
        row["cpu"] += usage.cpu_between(span.start, span.stop)
        row["peak"] = max(row["peak"], usage.peak(usage.memory, span.start, span.stop))
        row["private"] = max(row["private"], usage.peak(usage.private, span.start, span.stop))
        row["stages"].append([span.name, round(span.seconds, 3)])
    rows["all"] = {
        "wall": usage.ended - usage.started,
        "cpu": usage.cpu[-1],
        "peak": max(usage.memory),
        "private": max(usage.private),
        "stages": [],
    }
    for kind, row in rows.items():
        if kind in work:
            row |= {"measure": work[kind].measure, "work": work[kind].amount, "operations": work[kind].operations}
    return {
        "sentences": protocol.sentences,
        "recordings": protocol.recordings,
        "models": protocol.models,
        "tests": protocol.tests,
        "trials": protocol.trials,
        "audio_seconds": audio_seconds,
        "frames": asdict(frames),
        "load": os.getloadavg()[0],
        "proportional": usage.proportional,
        "disk": max(usage.disk),
        "artefacts": {
            str(path.relative_to(output)): path.stat().st_size for path in sorted(output.rglob("*")) if path.is_file()
        },
        "artefact_bytes": folder_bytes(output),
        "equal_error_rates": {name: system["eer"] for name, system in results["systems"].items()},
        "stages": rows,
    }


def growth(runs: Sequence[dict[str, Any]], kind: str, seconds: str = "wall") -> float | None:
    """Log-log slope (least squares over the sizes) of a stage's "wall" or "cpu" seconds over its own measure."""
    stages = [run["stages"][kind] for run in runs if run["stages"].get(kind, {}).get("work")]
    if len(stages) < 2 or stages[-1]["work"] <= stages[0]["work"] or min(stage[seconds] for stage in stages) <= 0:
        return None
    work = np.log([stage["work"] for stage in stages])
    return float(np.polyfit(work, np.log([stage[seconds] for stage in stages]), 1)[0])


def _summary(figures: dict[str, Any]) -> str:
    runs, rate = figures["runs"], figures["products_per_second"]
    largest = runs[-1]
    rows = []
    for kind, stage in largest["stages"].items():
        operations = stage.get("operations")
        is_audio = stage.get("measure") == "s of audio"
        row = {"stage": kind}
        row |= {f"s at {run['sentences']}": run["stages"].get(kind, {}).get("wall") for run in runs[:-1]}
        row |= {
            "wall s": stage["wall"],
            "CPU s": stage["cpu"],
            "peak MB": stage["peak"] / 1e6,
            "x real time": largest["audio_seconds"] / stage["wall"] if is_audio else None,
            "GFLOP/s": operations / stage["wall"] / 1e9 if operations else None,
            "share %": 100 * operations / stage["wall"] / rate if operations else None,
            "grows with": stage.get("measure"),
            "slope": growth(runs, kind),
            "of CPU": growth(runs, kind, "cpu"),
        }
        rows.append(row)
    formats = {"stage": "", **{f"s at {run['sentences']}": ".1f" for run in runs[:-1]}, "wall s": ".1f", "CPU s": ".1f"}
    formats |= {"peak MB": ",.0f", "x real time": ",.0f", "GFLOP/s": ".1f", "share %": ".0f", "grows with": ""}
    formats |= {"slope": ".2f", "of CPU": ".2f"}
    load = ", ".join(f"{run['load']:.1f} at {run['sentences']}" for run in runs)
    head = [f"- {line}" for line in (f"{figures['machine']}; after the sizes {load}", *_lines(figures))]
    return "\n".join([*head, "", format_table(rows, formats, markdown=True)])


def _lines(figures: dict[str, Any]) -> list[str]:
    """What is said about all stages together, and what misses its target."""
    runs, rate, jobs = figures["runs"], figures["products_per_second"], figures["jobs"]
    largest = runs[-1]
    whole = largest["stages"]["all"]
    memory = "proportional set sizes" if largest["proportional"] else "resident sets, shared pages counted repeatedly"
    lines = [
        f"{largest['recordings']:,} recordings, {largest['audio_seconds'] / 3600:.1f} h, {largest['models']:,} models, "
        f"{largest['tests']:,} tests, {largest['trials']:,} trials, {figures['gaussians']} Gaussians, "
        f"{_rank(figures)}, {jobs} workers",
        f"matrix product: {rate / 1e9:.0f} GFLOP/s (float32, {jobs} threads with one BLAS thread each)",
        f"from audio to results.json: {whole['wall']:.0f} s (target {TARGET_SECONDS}), peak "
        f"{whole['peak'] / 1e9:.2f} GB (target {TARGET_BYTES / 1e9:.0f}; {memory}; {whole['private'] / 1e9:.2f} GB "
        "without mapped files)",
        f"disk: {largest['artefact_bytes'] / 1e9:.2f} GB of artefacts, {largest['disk'] / 1e9:.2f} GB at its fullest",
        "equal error rates: " + ", ".join(f"{k} {100 * v:.2f} %" for k, v in largest["equal_error_rates"].items()),
    ]
    if largest["sentences"] == N_SENTENCES:
        missed = ["time"] * (whole["wall"] > TARGET_SECONDS) + ["memory"] * (whole["peak"] > TARGET_BYTES)
        lines.append(f"targets missed: {', '.join(missed) or 'none'}")
    slopes = {kind: growth(runs, kind) or 0 for kind, stage in largest["stages"].items() if stage["wall"] >= SHORT}
    steep = [f"{kind} ({slope:.2f})" for kind, slope in slopes.items() if slope > MOST_SLOPE]
    lines.append(f"slopes over {MOST_SLOPE}, of stages of {SHORT:.0f} s or more: {', '.join(steep) or 'none'}")
    return lines


def _rank(figures: dict[str, Any]) -> str:
    if figures["recipe"] == "ivector":
        return f"i-vectors of rank {figures['rank']}"
    return f"NAP rank {figures['nap_rank']}"


if __name__ == "__main__":
    raise SystemExit(main())
