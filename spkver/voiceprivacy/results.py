"""The end of an evaluation: ``results.json``, tables, the page, the challenge's files, and the table that is shown.

**Everything that an evaluation leaves behind: results as JSON, CSV and tables, a file in the challenge's own form.**

results.json, results<suffix>.json             everything; the first is of the last run
results<suffix>.csv                            the challenge's columns, then scenario, attacker and intervals
exp/results_summary/result_for_rank<suffix>    what the challenge ranks by, of the attacker `challenge.attacker`
exp/results_summary/eval_orig<suffix>/results_orig.txt, eval_anon<suffix>/results_anon.txt    its two parts
exp/results_summary/result_for_submission<suffix>.zip    these, and the scores of this attacker on anonymised speech
tables<suffix>.md, tables<suffix>.tex, report.html
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from evaluation.challenges import (
    ASR,
    ASV,
    ASV_ANON,
    PROTOCOL,
    SER,
    RankFile,
    Section,
    make_section,
    weighted_average,
    write_rank_file,
)
from evaluation.reports import FORMAT, LEVELS, SCENARIOS, format_latex, format_markdown, strongest
from spkbase.configuration import to_dict
from spkbase.files import atomic_path, file_digest, format_csv, format_table, to_json, write_text
from spkbase.runs import Run, versions
from spkver.corpora import is_simulated
from spkver.datadir import MIXED
from spkver.voiceprivacy.checks import OVERESTIMATED, UTILITY, Evaluated, check_all
from spkver.voiceprivacy.choosing import attacker_name, attackers_run
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.numbers import Numbers, add_evidence, add_minima
from spkver.voiceprivacy.scores import ScoreTable
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.summary import number, places, summarise, verdict
from spkver.voiceprivacy.training_draws import tell_training_draws
from spkver.voiceprivacy.twins import describe

logger = logging.getLogger(__name__)

Json = dict[str, Any]

LISTS = ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "text", "utt2emo", "spk2fold")
_COLUMNS = ("dataset", "split", "gender", "enrollment", "trial", "EER")
_MORE = ("scenario", "attacker", "strongest_of", "draws", "EER_rocch", "low", "high", "n_target", "n_nontarget")
_NAME = re.compile(r"(?P<corpus>.+)_(?P<split>dev|test)(?P<subset>_common)?")


def split_name(dataset: str) -> tuple[str, str]:
    """Return the corpus and part of a set.

    Examples
    --------
    >>> split_name("libri_test"), split_name("vctk_dev_common"), split_name("mine")
    (('libri', 'test'), ('vctk_common', 'dev'), ('mine', ''))
    """
    match = _NAME.fullmatch(dataset)
    return (match["corpus"] + (match["subset"] or ""), match["split"]) if match else (dataset, "")


def hashes(sets: Sets, config: Config) -> dict[str, str]:
    """Return the SHA-256 of every list of every data directory, by directory and name."""
    directories = [*sets.original.values(), *sets.twins.values()]
    heard = [file for file in (config.utility.hypotheses, config.utility.predictions) if file]
    paths = {directory.path / name for directory in directories for name in (*LISTS, *heard)}
    return {f"{path.parent.name}/{path.name}": str(file_digest(path)) for path in sorted(paths) if path.is_file()}


def earlier_results(output: Path, suffix: str) -> dict[str, Json]:
    """Return the results of other anonymisers that lie in the folder, by file name."""
    earlier = {}
    for path in sorted(output.glob("results_*.json")):
        if path.name != f"results{suffix}.json":
            try:
                results = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(results, dict):
                earlier[path.name] = results
    return earlier


def challenge_protocol(conditions: Sequence[Json], config: Config, anonymiser: Json) -> dict[str, str]:
    """Return whose equal error rates go under the challenge's name, and how they are made; empty where nobody's do."""
    named = attacker_name(config.challenge.attacker)
    levels = {condition["level"] for condition in conditions if condition["attacker"] == named}
    if not levels:
        return {}
    return {
        "attacker": named,
        "level": max(levels, key=list(LEVELS).index),
        "reading": config.challenge.eer,
        "draws": "1",
        "seeding": anonymiser.get("seeding", "unknown"),
    }


def challenge_rows(conditions: Sequence[Json], config: Config, summary: Sequence[Json] = ()) -> list[Json]:
    """Return each condition in the challenge's columns, EER in per cent by its reading, of the attacker that is named.

    Where none is, of the strongest: ``strongest_of`` tells of how many, and the interval is that of the minimum in the
    summary. Conditions that the named one lacks are left out.
    """
    minima = {(row["dataset"], row["gender"], row["scenario"]): row.get("minimum") for row in summary}
    named = attacker_name(config.challenge.attacker)
    kinds = {
        scenario.name: ("anon" if scenario.enrolment else "original", "anon" if scenario.trials else "original")
        for scenario in SCENARIOS
    }
    rows = []
    for (dataset, gender, scenario), part in places(conditions):
        part = [condition for condition in part if not named or condition["attacker"] == named]
        if not part:
            continue
        best = strongest(part)
        corpus, split = split_name(dataset)
        ends = (None if named else minima.get((dataset, gender, scenario))) or best["intervals"].get("eer.rocch", {})
        eer = round(100 * best["eer"][config.challenge.eer], 3)
        rows.append(
            {
                **dict(zip(_COLUMNS, (corpus, split, gender, *kinds[scenario], eer), strict=True)),
                "scenario": scenario,
                "attacker": best["attacker"],
                "strongest_of": len(part),
                "draws": len(best["draws"]),
                "EER_rocch": round(100 * best["eer"]["rocch"], 3),
                "low": _round(ends.get("low")),
                "high": _round(ends.get("high")),
                "n_target": best["n_target"],
                "n_nontarget": best["n_nontarget"],
            }
        )
    return rows


def averages(rows: Sequence[Json], config: Config) -> list[Json]:
    """Return the averages for each part and scenario, and the minimum target EERs that each reaches.

    With the weights of the challenge over corpora and sexes; where it has none, the plain mean over the sexes of
    each corpus. Pooled trials count only where there are no lists by sex. Of a named attacker by the challenge's
    reading, as the challenge ranks; of the strongest ones by the ROC convex hull, with the averages of the ends of
    their intervals, which are too wide rather than too narrow: a target is reached where the lower end is above it.
    """
    weights, named = config.challenge.weights, attacker_name(config.challenge.attacker)
    single = [row for row in rows if row["gender"] != POOLED] or list(rows)
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for row in single:
        groups.setdefault(("" if weights else row["dataset"], row["split"], row["scenario"]), []).append(row)
    entries = []
    for (corpus, split, scenario), members in groups.items():
        value = _mean(members, "EER" if named else "EER_rocch", weights)
        if value is None:
            continue
        entry: Json = {"dataset": corpus or "weighted", "split": split, "scenario": scenario, "eer_percent": value}
        if named:
            entry |= {"attacker": named, "reading": config.challenge.eer}
        else:
            entry |= {"attacker": "strongest", "reading": "rocch"}
            entry |= {f"{end}_percent": _mean(members, end, weights) for end in ("low", "high")}
        floor = entry.get("low_percent")
        reached = [target for target in config.challenge.targets if (value if floor is None else floor) >= target]
        entries.append({**entry, "targets_reached": reached})
    return entries


def _mean(rows: Sequence[Json], column: str, weights: Mapping[str, float]) -> float | None:
    """Average of a column; None where a row has none, or a weight no row."""
    values = {(row["dataset"], row["gender"]): row[column] for row in rows}
    if None in values.values():
        return None
    mean = weighted_average(values, weights) if weights else sum(values.values()) / len(values)
    return None if mean is None else round(mean, 3)


def write_challenge_files(
    output: Path, rows: Sequence[Json], utility: Json, *, suffix: str, protocol: dict[str, str]
) -> None:
    """Write the table of `challenge_rows`, and what the challenge ranks by where the protocol names an attacker."""
    rows = _named_as_listed(rows)
    write_text(output / f"results{suffix}.csv", format_csv((*_COLUMNS, *_MORE), rows))
    path = output / f"exp/results_summary/result_for_rank{suffix}"
    parts = {ending: path.parent / f"eval_{ending}{suffix}/results_{ending}.txt" for ending in ("orig", "anon")}
    archive = path.with_name(f"result_for_submission{suffix}.zip")
    for file in (path, *parts.values(), archive):
        file.unlink(missing_ok=True)  # those of an earlier run, of another attacker
    if not protocol:
        text = "%s is not written: challenge.attacker names no attacker whose results it would hold"
        logger.info(text, path.name, extra={"file_only": True})
    elif sections := list(_rank_sections(rows, utility)):  # attackers of others may serve none of the conditions
        write_rank_file(path, RankFile((make_section(PROTOCOL, [protocol]), *sections)))
        for ending, file in parts.items():
            if part := tuple(section for section in sections if (section.title == ASV_ANON) == (ending == "anon")):
                write_rank_file(file, RankFile(part))
        scores = [*output.glob(f"exp/asv_orig/*{suffix}/{protocol['attacker']}/scores")]
        scores += output.glob(f"exp/asv_anon{suffix}/*/{protocol['attacker']}/scores")
        with atomic_path(archive) as temporary, zipfile.ZipFile(temporary, "w") as zipped:
            for file in sorted([path, *filter(Path.is_file, parts.values()), *scores]):
                entry = zipfile.ZipInfo(file.relative_to(output).as_posix())  # without the time
                zipped.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def _named_as_listed(rows: Sequence[Json]) -> list[Json]:
    """Call results of lists across the sexes ``mixed``, as VoicePrivacy 2026 does; without lists by sex all are."""
    if any(row["gender"] != POOLED for row in rows):
        return list(rows)
    return [{**row, "gender": MIXED} for row in rows]


def _rank_sections(rows: Sequence[Json], utility: Json) -> Iterator[Section]:
    """Emotions, results of ASV_eval, words, AA of ASV_eval^anon; rows are numbered as in the table of OO, OA and AA.

    Of ASV_eval the challenge keeps OO in 2024, and AA (lazy-informed) in 2026, with lists across the sexes.
    """
    single = [row for row in rows if row["gender"] != POOLED]
    kept = 2 if any(row["gender"] == MIXED for row in single) else 0
    by_scenario = [
        [{name: row[name] for name in _COLUMNS} for row in single if row["scenario"] == scenario.name]
        for scenario in SCENARIOS
    ]
    yield from _recalls(utility.get("uar", {}))
    if by_scenario[kept]:
        yield make_section(ASV, by_scenario[kept], index=[3 * row + kept for row in range(len(by_scenario[kept]))])
    words: list[dict[str, str | float]] = []
    for dataset, rates in utility.get("wer", {}).items():
        corpus, split = split_name(dataset)
        for kind, name in (("original", "original"), ("anonymised", "anon")):
            wer = round(100 * number(rates[kind]["value"]), 3)
            words.append({"dataset": corpus, "split": split, "asr": name, "WER": wer})
    if words:
        yield make_section(ASR, words)
    if by_scenario[3]:
        yield make_section(ASV_ANON, by_scenario[3], index=[3 * row + 2 for row in range(len(by_scenario[3]))])


def _recalls(rates: Mapping[str, Any]) -> Iterator[Section]:
    """UAR and the recall of each emotion; NaN where a set does not have one."""
    emotions = sorted({emotion for kinds in rates.values() for kind in kinds.values() for emotion in kind["recalls"]})
    rows: list[dict[str, str | float]] = []
    for dataset, kinds in rates.items():
        corpus, split = split_name(dataset)
        for kind, name in (("anonymised", "anon"), ("original", "original")):
            row: dict[str, str | float] = {"dataset": corpus, "split": split, "ser": name}
            row["UAR"] = round(100 * number(kinds[kind]["value"]), 4)
            recalls = kinds[kind]["recalls"]
            row |= {f"ACC_{emotion}": round(100 * number(recalls.get(emotion)), 4) for emotion in emotions}
            rows.append(row)
    if rows:
        yield make_section(SER, rows)


def _round(share: Any) -> float | None:
    value = 100 * number(share)
    return round(value, 3) if value == value else None


_IN_THE_VERDICT = (UTILITY, OVERESTIMATED)
_OF_ONE_RUN = ("run", "timings")  # what another run says otherwise that finds the same


def write_results(experiment: Experiment, sets: Sets, scores: ScoreTable, numbers: Numbers, measured: Json) -> str:
    """Write all results.

    Parameters
    ----------
    experiment : Experiment
    sets : Sets
    scores : ScoreTable
    numbers : Numbers
    measured : dict
        ``utility`` and ``attributes``: what `measure_utility` and `measure_attributes` found.

    Returns
    -------
    str
        The table of the strongest attackers, warnings, the verdict, and where the files are.
    """
    run, suffix = experiment.run, experiment.suffix
    numbers = replace(numbers, conditions=add_evidence(numbers.conditions, numbers.evidence))
    summary = add_minima(summarise(numbers.conditions), numbers.evidence)
    results = _results(experiment, sets, scores, numbers, summary, measured)
    _keep(replace(run, force=run.force or experiment.steps.only == "report"), suffix, results)
    table = _table(summary)
    logger.info("results\n%s", table, extra={"file_only": True})
    by_draws = tell_training_draws(results["training_draws"])
    told = [results["verdict"], *([by_draws] if by_draws else [])]
    return "\n".join([table, "", *_warnings(results["sanity"]), *told, "", *_places(run, suffix)])


def _keep(run: Run, suffix: str, results: Json) -> None:
    """Write results, tables and the page; where they are there and say the same they stay, with their date."""
    files = ("results.json", f"results{suffix}.json", f"tables{suffix}.md", f"tables{suffix}.tex")

    def make(path: Path) -> None:
        from evaluation.reports import write_page  # matplotlib is loaded when it is used

        texts = (to_json(results) + "\n",) * 2 + (format_markdown(results), format_latex(results))
        for name, text in zip(files, texts, strict=True):
            write_text(run.path(name), text)
        write_page(results, path, folder=run.output)

    said = to_json({name: value for name, value in results.items() if name not in _OF_ONE_RUN})
    run.stage("page", "report.html", make=make, read=Path, inputs=said, libraries=("matplotlib", "numpy"), also=files)


def _results(
    experiment: Experiment, sets: Sets, scores: ScoreTable, numbers: Numbers, summary: Sequence[Json], measured: Json
) -> Json:
    """The contents of ``results.json``; the challenge's files are written on the way."""
    run, config, suffix, conditions = experiment.run, experiment.config, experiment.suffix, numbers.conditions
    simulated = is_simulated(experiment.data)
    anonymiser = describe(experiment.anonymizers, sets, suffix=suffix, seed=config.seed)
    rows, protocol = challenge_rows(conditions, config, summary), challenge_protocol(conditions, config, anonymiser)
    with run.timed("report"):
        earlier = earlier_results(run.output, suffix)
        found = (scores.failures, scores.fusions, numbers.training_draws)
        given = (conditions, sets, config, run.output, measured["utility"], earlier, simulated, run.jobs, *found)
        sanity = check_all(Evaluated(*given))
        write_challenge_files(run.output, rows, measured["utility"], suffix=suffix, protocol=protocol)
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
        "failures": [asdict(failure) for failure in scores.failures],
        "fusions": scores.fusions,
        "summary": summary,
        "protocol": protocol,
        "averages": averages(rows, config),
        "conditions": conditions,
        **measured,
        "training_draws": numbers.training_draws,
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
        "similarity": numbers.evidence["similarity"],
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
