"""The VoicePrivacy evaluation of 2024's sets on simulated speech: time, memory and disk by hours, to 363 h.

    python -m benchmarks.challenge [--hours 2 6 18] [--corpora DIR] [--jobs N] [--update PAGE] [OPTION of the recipe]...

The corpora have the shape of the challenge's sets: hours of training speech over 363.6 are their scale, see
`spkver.corpora.simulate_challenge`. Each run is that of a user: McAdams anonymisation, all default attackers, report.
Without hours it only tells what a run estimates for the whole sets.
It is started twice; the second start shows what is done again. Slopes are of log seconds over log hours; 363 h are the
seconds of the last size times hours to the power of the slope from the size before, 1 at least.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import describe_machine, replace_block, workers_rate
from benchmarks.rsr2015_full import ROOT, run
from evaluation.trials import Key
from spkbase.files import format_table, load_json
from spkver.corpora import SHAPES, simulate_challenge
from spkver.datadir import DataDir
from spkver.voiceprivacy.choosing import chosen_attackers
from spkver.voiceprivacy.estimate import Estimate, estimate
from spkver.voiceprivacy.sets import Dataset, RateGroup, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.versions import used_part

FULL = 363.6
STEPS = (
    *("checks", "anonymisation", "facts", "plan", "extraction"),
    *("training", "scores", "evaluation", "report"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--hours", type=float, nargs="*", default=[2.0, 6.0, 18.0], help="of training speech"
    )
    parser.add_argument(
        "--corpora", type=Path, help="folder of simulated corpora to use, or to make; else removed"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--block", default="challenge", help="name of the block of figures in the page"
    )
    parser.add_argument(
        "--update", type=Path, metavar="PAGE", help="put the figures into this page"
    )
    options, others = parser.parse_known_args(arguments)
    print(f"{FULL} h, {options.jobs} workers: {whole_estimate(options.jobs)}", flush=True)
    speed = f"{workers_rate(options.jobs) / 1e9:.0f} GFLOP/s of float32 products"
    machine = f"{describe_machine()}; {speed}; {options.jobs} workers{': ' if others else ''}{' '.join(others)}"
    totals, found = list[dict[str, float]](), list[dict[str, float]]()
    with tempfile.TemporaryDirectory(prefix="challenge-") as name:
        for hours in sorted(options.hours):
            corpus = (options.corpora or Path(name)) / f"corpus-{hours:g}"
            made = simulate_challenge(corpus, "vpc2024", hours / FULL, jobs=options.jobs)
            output = Path(name, f"run-{hours:g}")
            command = [
                sys.executable,
                str(ROOT / "recipes/voiceprivacy/run.py"),
                "--data",
                str(corpus),
                "--suffix",
            ]
            command += ["_mcadams", "--output", str(output), "--jobs", str(options.jobs), *others]
            printed, total, _ = run(command)
            told = re.search(r"about .* if all is new", printed)
            print(f"{hours:g} h: {total}; {told[0] if told else 'no estimate'}", flush=True)
            found.append(seconds_of(output) | {"all": total["wall s"]})
            disk = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
            again = run(command)[1]["wall s"]
            seconds, bytes_ = made.counts["seconds"], 32_000 * made.counts["seconds"]
            totals.append(
                {"hours": hours, "all speech h": seconds / 3600, **total, "disk MB": disk / 1e6}
                | {"disk / audio": disk / bytes_, "second start s": again}
            )
            shutil.rmtree(output)
            if not options.corpora:
                shutil.rmtree(corpus)
            summary = f"{machine}\n\n{tables(totals, found, options.jobs)}"
            if options.update:  # after each size, since the next takes three times as long
                replace_block(options.update, options.block, summary)
    if options.hours:
        print(summary)


def tables(
    totals: Sequence[Mapping[str, float]], found: Sequence[Mapping[str, float]], jobs: int
) -> str:
    """Return the totals of each size, and the seconds of each step and attacker with slopes and projections."""
    sizes = [total["hours"] for total in totals]
    columns = {f"s at {hours:g} h": ".1f" for hours in sizes}
    rows = []
    for what in dict.fromkeys(name for of_size in found for name in of_size):
        seconds = [of_size.get(what, 0.0) for of_size in found]
        slopes = [slope(sizes, seconds, *ends) for ends in ((0, -1), (-2, -1))]
        projected = seconds[-1] * (FULL / sizes[-1]) ** max(1.0, slopes[1] or 1.0)
        row = {"what": what, **dict(zip(columns, seconds, strict=True))}
        rows.append(
            row
            | (
                {"slope": slopes[0], "363 h, core h": projected * jobs / 3600}
                if len(sizes) > 1
                else {}
            )
        )
    for column in ("CPU s", "peak MB", "disk MB") if len(sizes) > 1 else ():
        values = [total[column] for total in totals]
        rate = slope(sizes, values, -2, -1) or 1.0
        power = max(1.0, rate) if column == "CPU s" else rate
        print(
            f"{column}: slope {rate:.2f}, at 363 h {values[-1] * (FULL / sizes[-1]) ** power:,.0f}",
            flush=True,
        )
    shown = {
        "hours": "g",
        "all speech h": ".1f",
        **dict.fromkeys(("wall s", "CPU s", "peak MB", "disk MB"), ",.0f"),
    }
    shown |= {"disk / audio": ".2f", "second start s": ".1f"}
    more = {"slope": ".2f", "363 h, core h": ".1f"} if len(sizes) > 1 else {}
    steps = format_table(rows, {"what": "", **columns, **more}, markdown=True)
    return f"{format_table(totals, shown, markdown=True)}\n\n{steps}"


def whole_estimate(jobs: int) -> Estimate:
    """Return what a run with the default attackers estimates for all recordings of the challenge's sets."""
    original, headers = dict[str, DataDir](), dict[str, list[tuple[int, int, float]]]()
    for name in dict.fromkeys(part.directory for part in SHAPES["vpc2024"]):
        of_set = [part for part in SHAPES["vpc2024"] if part.directory == name]
        speakers = {
            f"{part.sex}{number}": f"{part.sex}{part.first + number % part.speakers}"
            for part in of_set
            for number in range(part.recordings)
        }
        trials = None
        if "trials" in name:
            enrolled = set(original[f"{name.partition('_trials')[0]}_enrolls"].speakers.values())
            pairs = [
                (model, one)
                for model in sorted(enrolled & {*speakers.values()})
                for one in speakers
            ]
            models, segments = map(list, zip(*pairs, strict=True))
            trials = Key.from_ids(
                models, segments, [speakers[one] == model for model, one in pairs]
            )
        original[name] = DataDir(
            Path(name), dict.fromkeys(speakers, Path()), speakers, trials=trials
        )
        headers[name] = [
            (16_000, len(speakers), len(speakers) * (12.6 if name.startswith("train") else 7.2))
        ]
    train = "train-clean-360"
    datasets = [
        Dataset(one, f"{one}_enrolls", {sex: f"{one}_trials_{sex}" for sex in "fm"}, train)
        for one in ("libri_dev", "libri_test")
    ]
    config = Config().with_default_attackers()
    anonymizer = config.anonymizer.named_by("_mcadams")
    assert anonymizer is not None
    group = RateGroup((train,), ("libri_dev", "libri_test"), {}, chosen_attackers(config))
    sets = Sets(tuple(datasets), original, missing=tuple(original), rate_groups=(group,))
    parts = {train: len(used_part(sets, train, anonymizer.draws("training"), config))}
    return estimate(config, sets, headers, anonymizer, parts, jobs)


def slope(sizes: Sequence[float], values: Sequence[float], first: int, last: int) -> float | None:
    """Return the slope of log value over log size; None where a value is a fixed cost of less than a second."""
    if len(sizes) < 2 or values[first] <= 0 or values[last] < 1:
        return None
    return math.log(values[last] / values[first]) / math.log(sizes[last] / sizes[first])


def seconds_of(output: Path) -> dict[str, float]:
    """Return the seconds of each step of a run and, within the middle steps, of each attacker."""
    timings = load_json(output / "results.json")["timings"]
    seconds = {step: timings.get(step, 0.0) for step in STEPS}
    log = (output / "run.log").read_text(encoding="utf-8")
    for what, name, spent in re.findall(
        r"(speech for|model of) (\S+): (\d+\.\d) s$", log, re.MULTILINE
    ):
        seconds[f"{what} {name}"] = float(spent)  # each line has the sum so far
    for artefact, entry in json.loads((output / "stages.json").read_text())["artefacts"].items():
        if artefact.startswith("exp/"):
            name = f"scores of {Path(artefact).parent.name}"
            seconds[name] = seconds.get(name, 0.0) + entry.get("seconds", 0.0)
    return seconds


if __name__ == "__main__":
    main()
