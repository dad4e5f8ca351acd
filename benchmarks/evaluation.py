"""Every number of an evaluation against a sort of the same scores; ten million scores; text files; resamples; import.

Each part runs in a process of its own, so that its peak of memory is its own.

    python -m benchmarks.evaluation
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measure import apart, describe_machine, median_seconds, peak_mb
from evaluation.calibration import train_affine
from evaluation.metrics import PRIORS, Metrics, SortedScores, eer, min_dcf
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import Resampling, bootstrap, evaluate, sample_of


def gaussian_scores(n_trials: int, share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratios with d' = 2; `share` of the trials are target trials."""
    rng = np.random.default_rng(0)
    n_target = int(share * n_trials)
    return rng.normal(2, 2, n_target), rng.normal(-2, 2, n_trials - n_target)


def ratio_to_sort(
    n_trials: int = 1_000_000, share: float = 0.1, repeats: int = 7
) -> tuple[float, float]:
    """Median seconds of a sort of all scores in random order, and of all numbers; the two in turn."""
    target, nontarget = gaussian_scores(n_trials, share)
    scores = np.random.default_rng(1).permutation(np.concatenate([target, nontarget]))
    pairs = []
    for _ in range(repeats):
        sort = median_seconds(lambda: np.sort(scores), repeats=1)
        pairs.append((sort, median_seconds(lambda: evaluate(target, nontarget), repeats=1)))
    sort, all_numbers = np.median(pairs, axis=0)
    return float(sort), float(all_numbers)


def ten_million() -> tuple[float, float]:
    """Seconds for ten million scores, and the peak of memory of the whole process in MB."""
    target, nontarget = gaussian_scores(10_000_000)
    started = time.perf_counter()
    evaluate(target, nontarget)
    return time.perf_counter() - started, peak_mb()


def text_files(n_models: int = 500, n_segments: int = 2000) -> tuple[float, float, float]:
    """Seconds of the command from two text files of a million lines, those of the processor, and its peak in MB."""
    rng = np.random.default_rng(0)
    models, segments = np.divmod(np.arange(n_models * n_segments), n_segments)
    is_target = segments % n_models == models
    scores = rng.normal(size=len(models)) + 2 * is_target
    names = [[f"speaker{number:04d}" for number in range(n_models)]]
    names.append(
        [f"speaker{number % n_models:04d}-utterance{number:05d}" for number in range(n_segments)]
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "scores"), Path(folder, "key")
        thirds = (
            [f"{score:.6f}" for score in scores],
            ["target" if target else "nontarget" for target in is_target],
        )
        orders = np.arange(len(models)), rng.permutation(len(models))
        for path, third, order in zip(paths, thirds, orders, strict=True):
            ids = [
                f"{names[0][model]} {names[1][segment]}"
                for model, segment in zip(models, segments, strict=True)
            ]
            path.write_text("".join(f"{ids[row]} {third[row]}\n" for row in order.tolist()))
        command = [str(Path(sys.executable).with_name("spkver-eval")), "metrics", "--json", "-"]
        command += ["-s", str(paths[0]), "-k", str(paths[1])]
        started, before = time.perf_counter(), os.times()
        done = subprocess.run(command, check=True, capture_output=True)
        seconds, after = time.perf_counter() - started, os.times()
    processor = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    assert json.loads(done.stdout)["n_target"] == int(is_target.sum())
    return seconds, processor, peak_mb(children=True)


def two_metrics(scores: SortedScores) -> dict[str, float]:
    """Equal error rate and least cost, both of the hull."""
    return {"eer": eer(scores), "min_dcf": min_dcf(scores, p_target=0.01)}


def resamples(
    statistic: Callable[[SortedScores], dict[str, float]], resamples: int = 1000
) -> float:
    """Seconds for joint resamples of the speakers of 50,000 trials (100 speakers, 5 segments each), by one worker."""
    models, segments = (grid.ravel() for grid in np.meshgrid(np.arange(100), np.arange(500)))
    speakers = TrialSpeakers(
        np.array([f"{number:03d}" for number in range(100)], object), models, segments // 5
    )
    is_target = models == segments // 5
    scores = np.random.default_rng(0).normal(size=len(models)) * 2 + np.where(is_target, 2, -2)
    sample = sample_of(scores, is_target, speakers)
    started = time.perf_counter()
    bootstrap(sample, statistic, Resampling(resamples))
    return time.perf_counter() - started


def calibration(n_trials: int = 384_000, repeats: int = 6) -> tuple[float, float]:
    """Return the median and the longest processor time of a calibration, over lists of trials."""
    seconds = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        is_target = rng.random(n_trials) < 0.02
        scores = rng.normal(size=n_trials)
        start = time.process_time()
        train_affine(2 * scores[is_target] + 3, scores[~is_target])
        seconds.append(time.process_time() - start)
    return float(np.median(seconds)), max(seconds)


def import_seconds() -> float:
    """Median seconds that `import evaluation.metrics.table` adds to the start of Python."""
    return run_seconds("import evaluation.metrics.table") - run_seconds("pass")


def run_seconds(code: str) -> float:
    """Median seconds that a program of one line takes."""
    command = [sys.executable, "-c", code]
    return median_seconds(lambda: subprocess.run(command, check=True), repeats=5)


def main() -> None:
    print(describe_machine())
    for share in (0.1, 0.5):
        sort, numbers = apart("evaluation", f"ratio_to_sort(share={share})")
        print(
            f"1,000,000 scores, {share:.0%} targets: {numbers:.3f} s for every number, {sort:.3f} s for a sort, "
            f"ratio {numbers / sort:.2f} (median of 7)"
        )
    seconds, peak = apart("evaluation", "ten_million()")
    print(f"10,000,000 scores: {seconds:.2f} s, peak of the process {peak:.0f} MB")
    seconds, processor, peak = apart("evaluation", "text_files()")
    times = f"{seconds:.2f} s, {processor:.2f} s of them on the processor"
    print(f"metrics from two text files of 1,000,000 lines: {times}, peak {peak:.0f} MB")
    print(
        f"1,000 resamples of 50,000 trials: EER and minDCF {resamples(two_metrics):.1f} s", end=", "
    )
    print(f"every number {resamples(Metrics(PRIORS)):.1f} s (one worker)")
    seconds, longest = apart("evaluation", "calibration()")
    print(
        f"calibration on 384,000 trials: {seconds:.2f} s of processor time, at most {longest:.2f} s in 6 lists"
    )
    print(f"import evaluation.metrics.table: {import_seconds():.2f} s")


if __name__ == "__main__":
    main()
