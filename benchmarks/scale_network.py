"""Tasks and bytes that pass the scheduler in a run of the RSR2015 recipe on a Dask cluster, against the arithmetic.

    python -m benchmarks.scale_network FIGURES --corpus DIR [--sentences 2]

FIGURES is the file of `benchmarks.rsr2015_full`; the result is added to it, and `benchmarks.scale` prints it. The
cluster is a scheduler in this process and two workers beside it. What passes is counted in the scheduler: tasks that
come to an end, and the sizes of their results as the workers tell them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rsr2015_full import ROOT, link_part
from benchmarks.rsr2015_work import Protocol, read_frames
from benchmarks.scale_model import Amounts, measured_rates, needs_of

SYSTEMS = 2  # with NAP and without


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recipe on a cluster, count, compare."""
    parser = argparse.ArgumentParser(description="Tasks and bytes of a run on a cluster, against the arithmetic.")
    parser.add_argument("figures", type=Path)
    parser.add_argument("--corpus", type=Path, required=True, help="whole simulated corpus")
    parser.add_argument("--sentences", type=int, default=2)
    options = parser.parse_args(arguments)
    figures = json.loads(options.figures.read_text(encoding="utf-8"))
    gaussians, nap_rank = figures["gaussians"], figures["nap_rank"]
    with tempfile.TemporaryDirectory(prefix="rsr2015-") as name:
        corpus, output = Path(name) / "corpus", Path(name) / "output"
        link_part(options.corpus, corpus, options.sentences)
        settings = [f"ubm.components={gaussians}", f"nap.rank={nap_rank}"]
        measured = run_counted(corpus, output, settings)
        frames = read_frames(output, nap_rank)
    size = Protocol(options.sentences)
    run = next((run for run in figures["runs"] if run["sentences"] == options.sentences), figures["runs"][0])
    amounts = Amounts(
        seconds=run["audio_seconds"] * size.recordings / run["recordings"],
        recordings=size.recordings,
        ubm_frames=frames.ubm,
        frames=frames.evaluation + frames.background,
        vectors=size.enrolment + size.tests + frames.background_size,
        enrolment=SYSTEMS * size.enrolment,
        models=SYSTEMS * size.models,
        trials=SYSTEMS * size.trials,
    )
    needs = needs_of(amounts, measured_rates(figures["runs"])).values()
    predicted = (sum(need.tasks for need in needs), sum(need.returned for need in needs) / 1e6)
    rows: list[dict[str, Any]] = [
        {"what": what, "predicted": paper, "measured": counted, "ratio": paper / counted}
        for what, paper, counted in zip(("tasks", "returned, MB"), predicted, measured, strict=True)
    ]
    for row in rows:
        print(f"{row['what']}: predicted {row['predicted']:,.1f}, measured {row['measured']:,.1f}")
    options.figures.write_text(json.dumps({**figures, "network": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


def run_counted(corpus: Path, output: Path, settings: Sequence[str]) -> tuple[float, float]:
    """Run the recipe on a cluster of two workers; return how many tasks it had, and megabytes of results."""
    from distributed import LocalCluster
    from distributed.diagnostics.plugin import SchedulerPlugin

    class Count(SchedulerPlugin):
        tasks, megabytes = 0, 0.0

        def transition(self, key: Any, start: str, finish: str, *args: Any, nbytes: int = 0, **other: Any) -> None:
            if (start, finish) == ("processing", "memory"):
                self.tasks += 1
                self.megabytes += (nbytes or 0) / 1e6

    count = Count()
    command = [sys.executable, str(ROOT / "recipes/rsr2015/svm_gmm.py"), "--corpus", str(corpus)]
    command += ["--output", str(output), *(word for setting in settings for word in ("--set", setting))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        cluster.scheduler.add_plugin(count)
        subprocess.run([*command, "--engine", cluster.scheduler_address], check=True, env=environment)
    return count.tasks, count.megabytes


if __name__ == "__main__":
    raise SystemExit(main())
