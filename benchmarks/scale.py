"""What larger corpora need on a Dask cluster, by arithmetic on measured figures; the tables of docs/scale.md.

    python -m benchmarks.rsr2015_full --json FILE             # measures
    python -m benchmarks.scale FILE [--update docs/scale.md]  # computes, a second

FILE has the processor seconds, bytes and memory of each stage at several sizes. A straight line through the sizes
gives what one more second of audio, frame, vector, model or trial costs, and what a stage costs before the first one.
The last table checks that: lines through all sizes but the largest predict the largest.

`--cluster` first measures a scheduler on this machine, its tasks and bytes a second.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import replace_block
from benchmarks.scale_model import (
    CORPORA,
    MODEL_CORES,
    Limits,
    Rates,
    amounts_of,
    check_rows,
    measured_rates,
    needs_of,
    wall_seconds,
)
from spkbase.files import format_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute and print the tables, or put them into a page."""
    parser = argparse.ArgumentParser(description="What larger corpora need on a cluster.")
    parser.add_argument("figures", type=Path, help="JSON file of benchmarks.rsr2015_full")
    parser.add_argument("--file-system", type=float, default=2e9, help="bytes a second of the shared file system")
    parser.add_argument("--scheduler-bytes", type=float, default=200e6, help="bytes a second through the scheduler")
    parser.add_argument("--scheduler-tasks", type=float, default=500, help="tasks a second")
    parser.add_argument("--client-bytes", type=float, default=500e6, help="bytes a second that the client can write")
    parser.add_argument("--cluster", action="store_true", help="measure the scheduler's rates on this machine first")
    parser.add_argument("--update", type=Path, metavar="PAGE", help="put the tables into this page")
    options = parser.parse_args(arguments)
    figures = json.loads(options.figures.read_text(encoding="utf-8"))
    if len(figures["runs"]) < 2:
        parser.error(f"{options.figures} has one size only; rates need two")
    limits = Limits(options.file_system, options.scheduler_bytes, options.scheduler_tasks, options.client_bytes)
    if options.cluster:
        limits = measure_cluster(limits)
        print(f"scheduler on this machine: {limits.tasks:.0f} tasks/s, {limits.scheduler / 1e6:.0f} MB/s of results\n")
    text = tables(figures, limits)
    print(text)
    if options.update:
        replace_block(options.update, "scale", text)
    return 0


def tables(figures: dict[str, Any], limits: Limits) -> str:
    """All tables, as Markdown."""
    rates = measured_rates(figures["runs"])
    parts = [
        f"Measured: {figures['machine']}; {', '.join(str(run['sentences']) for run in figures['runs'])} sentences, "
        f"{figures['gaussians']} Gaussians.",
        "What the corpora hold:",
        _corpora(rates),
        "Core-hours:",
        _core_hours(rates),
        "Disk, GB:",
        _disk(rates),
        "Moved, GB: read from the file system by workers, and returned through the scheduler:",
        _moved(rates),
        "Hours from audio to scores on so many cores, the longest stage and what it waits for (file system "
        f"{limits.file_system / 1e9:g} GB/s, scheduler {limits.scheduler / 1e6:.0f} MB/s and {limits.tasks:.0f} "
        f"tasks/s, client {limits.client / 1e6:.0f} MB/s to disk):",
        _hours(rates, limits),
        *_network(figures),
        "Memory of the client, GB: lists and trials, and results that wait for their turn:",
        _memory(rates),
        f"The check, {_size(figures['runs'][-1])} predicted from {' and '.join(map(_size, figures['runs'][:-1]))}:",
        format_table(
            check_rows(figures["runs"]),
            {"what": "", "predicted": ",.1f", "measured": ",.1f", "ratio": ".2f"},
            markdown=True,
        ),
    ]
    return "\n\n".join(parts)


def _network(figures: dict[str, Any]) -> list[str]:
    """The table of `benchmarks.scale_network`, where that was run."""
    rows = figures.get("network")
    if not rows:
        return []
    table = format_table(rows, {"what": "", "predicted": ",.1f", "measured": ",.1f", "ratio": ".2f"}, markdown=True)
    return ["The check of tasks and bytes, the recipe on a cluster of two workers:", table]


def _size(run: dict[str, Any]) -> str:
    return f"{run['recordings']:,} recordings"


def _corpora(rates: Rates) -> str:
    rows = [
        {
            "corpus": corpus.name,
            "hours": corpus.hours,
            "recordings": corpus.recordings,
            "frames of speech": rates.frames(corpus),
            "models": corpus.models,
            "trials": corpus.trials,
        }
        for corpus in CORPORA
    ]
    formats = {"corpus": "", "hours": ",.0f", "recordings": ",.0f", "frames of speech": ".2g", "models": ",.0f"}
    return format_table(rows, {**formats, "trials": ".2g"}, markdown=True)


def _by_stage(rates: Rates, field: str, unit: float) -> str:
    needs = {corpus.name: needs_of(amounts_of(corpus, rates), rates) for corpus in CORPORA}
    stages = [*needs[CORPORA[0].name]]
    rows: list[dict[str, Any]] = [
        {"stage": stage, **{name: getattr(of[stage], field) / unit for name, of in needs.items()}} for stage in stages
    ]
    rows.append({"stage": "all", **{name: sum(row[name] for row in rows) for name in needs}})
    return format_table(rows, {"stage": "", **dict.fromkeys(needs, ",.4g")}, markdown=True)


def _core_hours(rates: Rates) -> str:
    return _by_stage(rates, "core_seconds", 3600)


def _disk(rates: Rates) -> str:
    return _by_stage(rates, "kept", 1e9)


def _moved(rates: Rates) -> str:
    needs = {corpus.name: needs_of(amounts_of(corpus, rates), rates) for corpus in CORPORA}
    rows: list[dict[str, Any]] = []
    for stage in needs[CORPORA[0].name]:
        row: dict[str, Any] = {"stage": stage}
        for name, of in needs.items():
            row |= {f"{name}: read": of[stage].read / 1e9, f"{name}: returned": of[stage].returned / 1e9}
        rows.append(row)
    columns = [column for column in rows[0] if column != "stage"]
    rows.append({"stage": "all", **{column: sum(row[column] for row in rows) for column in columns}})
    return format_table(rows, {"stage": "", **dict.fromkeys(columns, ",.4g")}, markdown=True)


def _hours(rates: Rates, limits: Limits) -> str:
    rows = []
    for cores in MODEL_CORES:
        row: dict[str, Any] = {"cores": cores}
        for corpus in CORPORA:
            stages = {
                name: wall_seconds(need, cores, limits)
                for name, need in needs_of(amounts_of(corpus, rates), rates).items()
            }
            longest = max(stages, key=lambda name: stages[name][0])
            total = sum(seconds for seconds, _ in stages.values()) / 3600
            row[corpus.name] = f"{total:,.2g} ({longest}: {stages[longest][1]})"
        rows.append(row)
    return format_table(rows, {"cores": "d", **{corpus.name: "" for corpus in CORPORA}}, markdown=True)


def _memory(rates: Rates) -> str:
    rows = []
    for cores in MODEL_CORES:
        row: dict[str, Any] = {"cores": cores}
        rows.append(row | {corpus.name: rates.client_memory(corpus, cores) / 1e9 for corpus in CORPORA})
    return format_table(rows, {"cores": "d", **{corpus.name: ",.1f" for corpus in CORPORA}}, markdown=True)


def measure_cluster(limits: Limits, *, n_small: int = 1000, n_large: int = 50, size: int = 4_000_000) -> Limits:
    """Measure a scheduler and two workers of this machine, through the engine that recipes use."""
    import time
    from dataclasses import replace

    from distributed import LocalCluster

    from spkbase.work import ordered_map, use_engine

    seconds = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        use_engine("dask", scheduler=cluster.scheduler_address),
    ):
        for count, length in ((20, 1), (n_small, 1), (n_large, size)):
            started = time.perf_counter()
            for _ in ordered_map(bytes, [length] * count):
                pass
            seconds.append(time.perf_counter() - started)
    return replace(limits, tasks=n_small / seconds[1], scheduler=n_large * size / seconds[2])


if __name__ == "__main__":
    raise SystemExit(main())
