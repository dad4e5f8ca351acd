"""The end of an evaluation: ``results.json``, tables, the page, the challenge's files, and the table that is shown."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from evaluation.reports import FORMAT, LEVELS, format_latex, format_markdown
from spkbase.configuration import to_dict
from spkbase.files import format_table, to_json, write_text
from spkbase.runs import Depends, Draft, Run, versions
from spkver.corpora import is_simulated
from spkver.voiceprivacy.choosing import attacker_name
from spkver.voiceprivacy.evidence import add_evidence, add_minima
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.limits import OVERESTIMATED
from spkver.voiceprivacy.outputs import (
    averages,
    challenge_protocol,
    challenge_rows,
    earlier_results,
    hashes,
    write_challenge_files,
)
from spkver.voiceprivacy.sanity import UTILITY, check_all
from spkver.voiceprivacy.sanity_audio import Evaluated
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import summarise, verdict
from spkver.voiceprivacy.training_draws import tell_training_draws
from spkver.voiceprivacy.twins import describe
from spkver.voiceprivacy.who_attacked import attackers_run

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_IN_THE_VERDICT = (UTILITY, OVERESTIMATED)
_OF_ONE_RUN = ("run", "timings")  # what another run says otherwise that finds the same


def write_results(experiment: Experiment, sets: Sets, conditions: Sequence[Json], utility: Json, evidence: Json) -> str:
    """Write all results.

    Parameters
    ----------
    experiment : Experiment
    sets : Sets
    conditions : sequence of dict
        The numbers of each condition.
    utility : dict
        What `measure_utility` found.
    evidence : dict
        What `declare_evidence` found.

    Returns
    -------
    str
        The table of the strongest attackers, warnings, the verdict, and where the files are.
    """
    run, suffix = experiment.run, experiment.suffix
    conditions = add_evidence(conditions, evidence)
    summary = add_minima(summarise(conditions), evidence)
    results = _results(experiment, sets, conditions, summary, utility) | {"similarity": evidence["similarity"]}
    _keep(replace(run, force=run.force or experiment.steps.only == "report"), suffix, results)
    table = _table(summary)
    logger.info("results\n%s", table, extra={"file_only": True})
    by_draws = tell_training_draws(results["training_draws"])
    told = [results["verdict"], *([by_draws] if by_draws else [])]
    return "\n".join([table, "", *_warnings(results["sanity"]), *told, "", *_places(run, suffix)])


def _keep(run: Run, suffix: str, results: Json) -> None:
    """Write results, tables and the page; where they are there and say the same they stay, with their date."""
    files = ("results.json", f"results{suffix}.json", f"tables{suffix}.md", f"tables{suffix}.tex")

    def make(draft: Draft) -> None:
        from evaluation.reports import write_page  # matplotlib is loaded when it is used

        texts = (to_json(results) + "\n",) * 2 + (format_markdown(results), format_latex(results))
        for name, text in zip(files, texts, strict=True):
            write_text(run.path(name), text)
        write_page(results, draft.path, folder=run.output)

    said = to_json({name: value for name, value in results.items() if name not in _OF_ONE_RUN})
    depends = Depends(inputs=said, libraries=("matplotlib", "numpy"))
    page = run.stage("page", "report.html", make=make, read=Path, depends=depends, also=files)
    run.write_plan()
    page.bring_up_to_date()


def _results(
    experiment: Experiment, sets: Sets, conditions: Sequence[Json], summary: Sequence[Json], utility: Json
) -> Json:
    """The contents of ``results.json``; the challenge's files are written on the way."""
    run, config, suffix = experiment.run, experiment.config, experiment.suffix
    simulated = is_simulated(experiment.data)
    anonymiser = describe(experiment.anonymizers, sets, suffix=suffix, seed=config.seed)
    rows, protocol = challenge_rows(conditions, config, summary), challenge_protocol(conditions, config, anonymiser)
    with run.timed("report"):
        earlier = earlier_results(run.output, suffix)
        given = (conditions, sets, config, run.output, experiment.outcome, utility, earlier, simulated, run.jobs)
        sanity = check_all(Evaluated(*given))
        write_challenge_files(run.output, rows, utility, suffix=suffix, protocol=protocol)
        told = verdict(
            summary,
            level=config.evaluation.level,
            simulated=simulated,
            draws=0 if config.anonymizer.name == "none" else anonymiser["training_draws"],
        )
    refused = [f"No verdict: {one['text']}" for one in sanity if one["level"] == "error"]
    beside = {one["check"]: one["text"] for one in sanity if one["check"] in _IN_THE_VERDICT}
    return {
        "format": FORMAT,
        "recipe": "voiceprivacy",
        "suffix": suffix,
        "simulated": simulated,
        "anonymiser": anonymiser,
        "choices": choices_of(run.output, sets, config),
        **inversions_of(run.output, sets, config),
        "verdict": " ".join([*refused, told, *beside.values()]),
        "overestimated": beside.get(OVERESTIMATED, ""),
        "attackers_run": attackers_run(config, conditions),
        "failures": [asdict(failure) for failure in experiment.outcome.failures],
        "fusions": experiment.outcome.fusions,
        "summary": summary,
        "protocol": protocol,
        "averages": averages(rows, config),
        "conditions": conditions,
        "utility": utility,
        "attributes": experiment.outcome.attributes,
        "training_draws": experiment.outcome.training_draws,
        "sanity": sanity,
        "config": to_dict(config),
        "versions": versions(),
        "lists": hashes(sets, config),
        "run": {
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        },
        # those of single trial lists are in run.log
        "timings": {name: round(run.timings[name], 3) for name in run.timings if not name.startswith("scores of ")},
        "seeds": {"run": config.seed, "bootstrap": config.seed, "anonymiser": anonymiser.get("seed")},
    }


def choices_of(output: Path, sets: Sets, config: Config) -> list[Json]:
    """Return how attackers by vectors chose their backends on each training set, where any did."""
    names = [dataset.training for dataset in sets.datasets]
    folders = [side[name].name for name in dict.fromkeys(names) for side in (sets.original, sets.twins) if name in side]
    files = [
        output / "attackers" / folder / attacker_name(entry) / "choice.json"
        for entry in config.attackers
        for folder in folders
    ]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]


def inversions_of(output: Path, sets: Sets, config: Config) -> dict[str, list[Json]]:
    """Return what attackers that undo or align the anonymisation learnt of it from each background, where any did.

    Those that learn from the enrolment's own pairs too stand under the anonymised enrolment.
    """
    names = dict.fromkeys(name for dataset in sets.datasets for name in (dataset.training, dataset.enrolls))
    folders = [sets.twins[name].name for name in names if name in sets.twins]
    entries = list(map(attacker_name, config.attackers))
    wanted = {
        "undoing": ["undoing/undoing.json"] if any(name.endswith("-undone") for name in entries) else [],
        "alignments": [f"{name}/alignment.json" for name in entries],
    }
    return {
        kind: [
            {"background": folder, **json.loads(path.read_text(encoding="utf-8"))}
            for folder in folders
            for file in files
            if (path := output / "attackers" / folder / file).is_file()
        ]
        for kind, files in wanted.items()
    }


def _table(summary: Sequence[dict[str, Any]]) -> str:
    levels = [level for level in LEVELS if any(level in row["levels"] for row in summary)]
    with_draws = any(len(row["draws"]) > 1 for row in summary)
    rows = []
    for row in summary:
        ends = row["minimum"] or row
        closed, named = (row[name] or {} for name in ("closed_set", "identification"))
        cells = {
            "set": row["dataset"],
            "sex": row["gender"],
            "scenario": row["scenario"],
            "strongest attacker": row["strongest"],
            "EER [%]": 100 * row["eer"],
            "low": _percent(ends["low"]),
            "high": _percent(ends["high"]),
        }
        if with_draws:
            cells["draws"] = ", ".join(f"{100 * rate:.1f}" for rate in row["draws"]) if len(row["draws"]) > 1 else ""
        if len(levels) > 1:
            cells |= {f"{level} [%]": _percent((row["levels"].get(level) or {}).get("eer")) for level in levels}
        cells["closed set [%]"] = _percent(closed.get("eer"))
        cells["named [%]"] = _percent(named.get("share"))
        cells["population [bit]"] = row["population"]
        cells["linkability"] = row["linkability_all"]
        rows.append(cells)
    rates = ("EER [%]", "low", "high", "closed set [%]", "linkability", *(f"{level} [%]" for level in levels))
    two = dict.fromkeys(rates, ".2f")
    formats = {**two, "named [%]": ".0f", "population [bit]": ".3f"}
    return format_table(rows, {name: formats.get(name, "") for name in rows[0]})


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _warnings(sanity: Sequence[dict[str, Any]]) -> list[str]:
    told = [one for one in sanity if one["level"] == "warning" and one["check"] not in _IN_THE_VERDICT]
    lines = [f"Warning ({finding['check']}): {finding['text']}" for finding in told]  # the verdict has that one
    return [*lines, ""] if lines else []


def _places(run: Run, suffix: str) -> list[str]:
    names = {"Report": "report.html", "Results": "results.json", "Table": f"results{suffix}.csv"}
    return [f"{name + ':':9}{run.path(path)}" for name, path in names.items()]
