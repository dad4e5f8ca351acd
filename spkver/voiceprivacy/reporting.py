"""The output of an evaluation: results as JSON, CSV and tables, the page, and files in the challenge's format.

results.json, results<suffix>.json             everything; the first holds the last run
results<suffix>.csv                            the challenge's columns, then scenario, attacker and intervals
exp/results_summary/result_for_rank<suffix>    the challenge's ranking file, for the attacker `challenge.attacker`
exp/results_summary/eval_orig<suffix>/results_orig.txt, eval_anon<suffix>/results_anon.txt    its two parts
exp/asv_orig/<pair>/scores, EER, exp/asv_anon<suffix>/...     its scores and EER of each list of trials of a sex
exp/{asv_orig,asv_anon<suffix>,asr,ser}/results<suffix>.csv    tables of these, of words and of emotions
exp/results_summary/result_for_submission<suffix>.zip          all of these files
tables<suffix>.md, tables<suffix>.tex, report.html
"""

from __future__ import annotations

import logging
import shlex
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from evaluation import challenges, reports
from evaluation.reports import Condition
from evaluation.trials import LEVELS, REVERSAL, SCENARIO_ORDER, SCENARIOS, WHOLE_LIST
from spkbase.configuration import to_dict
from spkbase.errors import DataError
from spkbase.files import atomic_path, file_digest, format_csv, load_json, to_json, write_text
from spkbase.version import versions
from spkver.attackers import attacker_name
from spkver.corpora import is_simulated
from spkver.datadir import MIXED
from spkver.voiceprivacy.assessment import Table
from spkver.voiceprivacy.checks import OVERESTIMATED, UTILITY, Evaluated, all_findings, percent
from spkver.voiceprivacy.choosing import attackers_run
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.recording_checks import read_findings
from spkver.voiceprivacy.scores import LACKING, Scored, fusion_weights
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.versions import describe

logger = logging.getLogger(__name__)

Json = dict[str, Any]

LISTS = ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "text", "utt2emo", "spk2fold")
_COLUMNS = ("dataset", "split", "gender", "enrollment", "trial", "EER")  # of the challenge
_KNOWS = {
    "ignorant": "which ignores the anonymisation",
    REVERSAL: "which has original enrolment speech, knows the family of anonymisers and inverts the trials by guesses",
    "lazy-informed": "which anonymises its enrolment speech",
    "semi-informed": "which anonymises its enrolment and its training speech",
}
_IN_THE_VERDICT = (UTILITY, OVERESTIMATED)
_OF_ONE_RUN = ("run", "timings")  # entries that differ between runs with equal results


def report(experiment: Experiment, sets: Sets, scores: Sequence[Scored], table: Table, utility: Json) -> str:
    """Write all results.

    Returns
    -------
    str
        The table of the strongest attackers, warnings, the verdict, and the paths of the files.
    """
    experiment.begin("report")
    run, config, suffix = experiment.run, experiment.config, experiment.suffix
    simulated, fusions = is_simulated(experiment.data), fusion_weights(run, scores)
    anonymiser = describe(experiment.anonymizer, sets, suffix=suffix, seed=config.seed)
    rows = challenge_rows(table, config)
    protocol = challenge_protocol(table.conditions, config, anonymiser)
    outcomes = sorted(table.outcomes, key=lambda one: (one.dataset, SCENARIO_ORDER.index(one.scenario)))
    conditions = [condition.to_dict() for condition in table.conditions]
    with run.timed("report"):
        earlier = _earlier_results(run.output, suffix)
        lacking = load_json(run.path(LACKING))
        heard = read_findings(run, suffix)
        found = experiment.failures, fusions, utility, earlier, simulated, lacking, heard
        sanity = [finding._asdict() for finding in all_findings(Evaluated(table, sets, config, *found))]
        write_challenge_files(run.output, rows, utility, suffix=suffix, protocol=protocol)
    refused = [f"No verdict: {one['text']}" for one in sanity if one["level"] == "error"]
    alarms = {one["check"]: one["text"] for one in sanity if one["check"] in _IN_THE_VERDICT}
    results = {
        "format": reports.FORMAT,
        "recipe": "voiceprivacy",
        "suffix": suffix,
        "simulated": simulated,
        "anonymiser": anonymiser,
        **_learnt_by_attackers(run.output, sets, config),
        "verdict": "",
        "caveats": [*refused, *alarms.values()],
        "details": "",
        "overestimated": alarms.get(OVERESTIMATED, ""),
        "attackers_run": attackers_run(config, conditions),
        "failures": experiment.failures,
        "fusions": fusions,
        "summary": [outcome.to_dict() for outcome in outcomes],
        "protocol": protocol,
        "averages": averages(rows, config),
        "conditions": conditions,
        "utility": utility,
        "sanity": sanity,
        "config": to_dict(config),
        "versions": versions(),
        "lists": _hashes(sets, config),
        "training_speakers": sorted(
            {speaker for name in sets.training_sets for speaker in sets.original[name].speakers.values()}
        ),
        "run": {
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        },
        # run.log has the timings of single trial lists
        "timings": {name: round(run.timings[name], 3) for name in run.timings if not name.startswith("scores of ")},
        "seeds": {"run": config.seed, "bootstrap": config.seed, "anonymiser": anonymiser.get("seed")},
        "similarity": table.similarity,
    }
    said, results["details"] = verdict(results)
    results["verdict"] = " ".join([*refused, said, *alarms.values()])
    files = ("results.json", f"results{suffix}.json", f"tables{suffix}.md", f"tables{suffix}.tex")

    def make(path: Path) -> None:
        texts = (to_json(results) + "\n",) * 2 + (reports.format_markdown(results), reports.format_latex(results))
        for name, text in zip(files, texts, strict=True):
            write_text(run.path(name), text)
        reports.write_page(results, path, folder=run.output, **experiment.page)

    # existing files with equal results stay, with their date
    same = to_json({name: value for name, value in results.items() if name not in _OF_ONE_RUN} | experiment.page)
    run.stage("report", "report.html", make=make, read=Path, inputs=same, libraries=("matplotlib", "numpy"), also=files)
    shown = reports.format_outcomes(outcomes)
    logger.info("results\n%s", shown, extra={"file_only": True})
    warnings = [one for one in sanity if one["level"] == "warning" and one["check"] not in _IN_THE_VERDICT]
    lines = [shown, ""]
    if warnings:
        lines += [f"Warning ({one['check']}): {one['text']}" for one in warnings] + [""]
    lines += [results["verdict"], *filter(None, [results["details"]])]
    lines.append("")
    made = {"Report": "report.html", "Results": "results.json", "Table": f"results{suffix}.csv"}
    return "\n".join([*lines, *(f"{name + ':':9}{run.path(path)}" for name, path in made.items())])


def verdict(results: Json) -> tuple[str, str]:
    """Return the verdict with the figures of the page: the privacy that is left, and the rate before anonymisation.

    Returns
    -------
    verdict : str
        The strongest attacker's errors in plain words, then the equal error rate with its interval.
    details : str
        The strongest attacker, figures of other attackers, and the means that rank systems.
    """
    start = "SIMULATED speech, which says nothing about real speech. " if results["simulated"] else ""
    found = [one for one in reports.headlines(reports.parse_results(results)) if one.anonymised]
    if not found:  # user-supplied attackers may serve original speech alone
        return f"{start}On anonymised speech no attacker has scores: nothing can be said of its privacy.", ""
    headline = reports.overall(found)
    worst, eer, original = headline.worst, headline.eer, headline.original
    text = f"{start}{headline.asked} That is an equal error rate of {percent(eer.value)}"
    if eer.has_interval:
        text += f" ({100 * results['config']['evaluation']['level']:g} % interval for the strongest attacker"
        text += f"{' over all data sets' if len(found) > 1 else ''}:"
        text += f" {percent(eer.low)} to {percent(eer.high)})"
    where = worst.dataset + {"f": " (women)", "m": " (men)"}.get(worst.gender, "")
    text += f", where it {headline.how}," if headline.how else ""
    text += f" on {where}, {worst.n_enrolled} enrolled speakers"
    text += f"; without anonymisation it is {percent(original.value)}" if original.known else ""
    knows, draws = _KNOWS[worst.scenario], results["anonymiser"]["training_draws"]
    if worst.scenario == "semi-informed":
        knows += f", trained on {draws} version{'s' if draws > 1 else ''} of it"
    details = f"The strongest attacker is {headline.attacker} ({worst.scenario}, {knows})"
    details += f"; in the open set {worst.strongest} has {percent(worst.eer.value)}" if headline.how else ""
    if len(worst.draws) > 1:
        each = ", ".join(f"{100 * rate:.1f}" for rate in worst.draws)
        details += f"; {percent(worst.eer.value)} is the mean of {len(worst.draws)} anonymised versions ({each})"
    lists = f" of {' and '.join(map(str, worst.tested))} recordings" if worst.tested else ""
    for name, rate in {**worst.levels, "without reading what is said": worst.without_content}.items():
        if rate is not None and rate.attacker != worst.strongest:
            of_lists = lists if name == WHOLE_LIST else ""
            details += f"; {name}{of_lists} {percent(rate.eer.value)} ({rate.attacker})"
    closed, named = worst.closed_set, worst.identification
    if closed and named:
        by = ["" if one.attacker == worst.strongest else f" ({one.attacker})" for one in (closed, named)]
        among = " to ".join(map(str, dict.fromkeys(named.candidates)))
        details += ". In a closed set (the speaker is known to be enrolled) the equal error rate is"
        details += f" {percent(closed.eer.value)}{by[0]}, and the speaker of {100 * named.share.value:.0f} % of the"
        details += f" utterances is identified among {among}{by[1]}"
    means = [
        f"{row['dataset']} {row['split']} {row['eer_percent']:.1f} %".replace("  ", " ")
        for row in results["averages"]
        if row["scenario"] == "semi-informed"
    ]
    if means:
        details += ". The command spkver-eval rank orders systems by the mean over lists of the semi-informed rate:"
        details += f" {', '.join(means)}"
    return f"{text}; chance is 50 %.", f"{details}."


# --- in the challenge's form ------------------------------------------------------------------------------------------


def challenge_protocol(conditions: Sequence[Condition], config: Config, anonymiser: Json) -> dict[str, str]:
    """Return the attacker and protocol of the challenge's equal error rates; empty without such an attacker."""
    named = attacker_name(config.challenge.attacker)
    levels = {condition.level for condition in conditions if condition.attacker == named}
    if not levels:
        return {}
    level, seeding = max(levels, key=list(LEVELS).index), anonymiser.get("seeding", "unknown")
    return {"attacker": named, "level": level, "reading": config.challenge.eer, "draws": "1", "seeding": seeding}


def challenge_rows(table: Table, config: Config) -> list[Json]:
    """Return each outcome in the challenge's columns, with the challenge's EER in per cent, for the named attacker.

    If no attacker is named, rows are for the strongest of ``strongest_of`` attackers, with the interval of the minimum.
    Conditions without scores of the named attacker are left out. ``rate`` is the same EER as a fraction, ``scores`` the
    file.
    """
    named, outcomes = attacker_name(config.challenge.attacker), table.outcomes
    if named:
        outcomes = reports.summarise([condition for condition in table.conditions if condition.attacker == named])
    kinds = ("original", "anon")
    sides = {one.name: (kinds[one.enrolment], kinds[one.trials]) for one in SCENARIOS}
    rows = []
    for outcome, more in zip(outcomes, reports.table_rows(reports.CSV, outcomes), strict=True):
        rate = outcome.condition.metric(f"eer.{config.challenge.eer}").value
        first = *challenges.split_of(outcome.dataset), outcome.gender, *sides[outcome.scenario], round(100 * rate, 3)
        about = {"rate": rate, "scores": outcome.condition.scores}
        rows.append({**dict(zip(_COLUMNS, first, strict=True)), **more, **about})
    return rows


def averages(rows: Sequence[Json], config: Config) -> list[Json]:
    """Return the averages for each part and scenario, and the minimum target EERs that each reaches.

    Corpora and sexes have the weights of the challenge; without weights the average is the plain mean over the sexes
    of each corpus. Pooled trials count only if there are no lists by sex. A named attacker is averaged by the
    challenge's definition of the EER. The strongest attackers are averaged by the ROC convex hull, and so are the ends
    of their intervals, which are then too wide rather than too narrow: a target is reached if the lower end is above
    it.
    """
    weights = config.challenge.weights
    named = attacker_name(config.challenge.attacker)
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


def write_challenge_files(
    output: Path, rows: Sequence[Json], utility: Json, *, suffix: str, protocol: dict[str, str]
) -> None:
    """Write the table of `challenge_rows`, and the challenge's files if the protocol names an attacker.

    These are the ranking file, the tables of each part, scores and EER of each list of trials, and an archive of all.
    Results of cross-sex lists are called ``mixed``, as in VoicePrivacy 2026; so are pooled results without lists by
    sex.
    """
    if all(row["gender"] == POOLED for row in rows):
        rows = [{**row, "gender": MIXED} for row in rows]
    columns = (*_COLUMNS, *(column.name for column in reports.columns_of(reports.CSV)))
    write_text(output / f"results{suffix}.csv", format_csv(columns, rows))
    path = output / f"exp/results_summary/result_for_rank{suffix}"
    parts = {ending: path.parent / f"eval_{ending}{suffix}/results_{ending}.txt" for ending in ("orig", "anon")}
    archive = path.with_name(f"result_for_submission{suffix}.zip")
    folders = {challenges.SER: "ser", challenges.ASR: "asr", "asv_orig": "asv_orig"}
    folders[f"asv_anon{suffix}"] = f"asv_anon{suffix}"
    tables = {title: output / f"exp/{folder}/results{suffix}.csv" for title, folder in folders.items()}
    pairs = {output / Path(row["scores"]).parents[1]: row for row in rows if row["gender"] != POOLED}
    of_pairs = [pair / name for pair in pairs for name in ("scores", "EER")]
    for file in (path, *parts.values(), *tables.values(), *of_pairs, archive):
        file.unlink(missing_ok=True)  # left by an earlier run with another attacker
    if not protocol:
        text = "%s is not written: challenge.attacker names no attacker"
        logger.debug(text, path.name)
    elif sections := list(_rank_sections(rows, utility)):  # user-supplied attackers may serve none of the conditions
        challenges.write_rank_file(path, [challenges.Section(challenges.PROTOCOL, [protocol]), *sections])
        for ending, file in parts.items():
            if part := [one for one in sections if (one.title == challenges.ASV_ANON) == (ending == "anon")]:
                challenges.write_rank_file(file, part)
        for pair, row in pairs.items():
            write_text(pair / "scores", (output / row["scores"]).read_text("utf-8"))
            write_text(pair / "EER", f"{row['rate']!r}\n")
        found = {one.title: one.rows for one in sections}
        for title, file in tables.items():
            if of := found.get(title) or [row for pair, row in pairs.items() if pair.parent.name == title]:
                write_text(file, format_csv([*of[0]] if title in found else _COLUMNS, of))
        listed = filter(Path.is_file, (*parts.values(), *tables.values()))
        with atomic_path(archive) as temporary, zipfile.ZipFile(temporary, "w") as zipped:
            for file in sorted([path, *listed, *of_pairs]):
                entry = zipfile.ZipInfo(file.relative_to(output).as_posix())  # without the time
                zipped.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def _hashes(sets: Sets, config: Config) -> dict[str, str]:
    """Return the SHA-256 of every list of every data directory, by directory and name."""
    names = (*LISTS, *filter(None, (config.utility.hypotheses, config.utility.predictions)))
    paths = {of.path / name for of in (*sets.original.values(), *sets.twins.values()) for name in names}
    return {f"{path.parent.name}/{path.name}": str(file_digest(path)) for path in sorted(paths) if path.is_file()}


def _earlier_results(output: Path, suffix: str) -> dict[str, Json]:
    """Return the results of other anonymisers in the folder, by file name."""
    earlier: dict[str, Json] = {}
    for path in sorted(set(output.glob("results_*.json")) - {output / f"results{suffix}.json"}):
        with suppress(DataError):
            results = load_json(path)
            earlier |= {path.name: results} if isinstance(results, dict) else {}
    return earlier


def _learnt_by_attackers(output: Path, sets: Sets, config: Config) -> dict[str, list[Json]]:
    """Return the records of trained attackers, for each training set.

    ``choices`` holds the backends of embedding attackers, ``undoing`` the estimated anonymisation.
    """
    folder = output / "attackers"
    names = list(map(attacker_name, config.attackers))
    sides = [side.name for name in sets.training_sets for side in sets.pair(name)]
    twins = [sets.twins[name].name for name in sets.training_sets if name in sets.twins]
    choices = [folder / side / name / "choice.json" for name in names for side in sides]
    found: dict[str, list[Json]] = {"choices": [load_json(path) for path in choices if path.is_file()]}
    is_inverted = any(name.endswith("-inverted") for name in names)
    places = [(twin, folder / twin / "undoing" / "undoing.json") for twin in twins if is_inverted]
    found["undoing"] = [{"background": twin, **load_json(path)} for twin, path in places if path.is_file()]
    return found


def _mean(rows: Sequence[Json], column: str, weights: Mapping[str, float]) -> float | None:
    """Return the average of a column; None if a value or the row of a weight is missing."""
    values = {(row["dataset"], row["gender"]): row[column] for row in rows}
    if None in values.values():
        return None
    mean = challenges.weighted_average(values, weights) if weights else sum(values.values()) / len(values)
    return None if mean is None else round(mean, 3)


def _rank_sections(rows: Sequence[Json], utility: Json) -> Iterator[challenges.Section]:
    """Yield emotions, results of ASV_eval, words, and AA of ASV_eval^anon, numbered as in the table of OO, OA and AA.

    From ASV_eval the challenge keeps OO in 2024, and AA (lazy-informed) in 2026, with cross-sex lists. The recall of an
    emotion is NaN if a set does not have it.
    """
    recalls = utility.get("uar", {})
    emotions = sorted({emotion for kinds in recalls.values() for kind in kinds.values() for emotion in kind["recalls"]})
    found: list[Json] = []
    for dataset, rates in recalls.items():
        for kind, name in (("anonymised", "anon"), ("original", "original")):
            row: Json = {**_part(dataset), "ser": name, "UAR": round(100 * reports.number(rates[kind]["value"]), 4)}
            of = rates[kind]["recalls"]
            found.append(
                row | {f"ACC_{emotion}": round(100 * reports.number(of.get(emotion)), 4) for emotion in emotions}
            )
    if found:
        yield challenges.Section(challenges.SER, found)
    single = [row for row in rows if row["gender"] != POOLED]
    kept = 2 if any(row["gender"] == MIXED for row in single) else 0
    by_scenario = [
        [{name: row[name] for name in _COLUMNS} for row in single if row["scenario"] == scenario.name]
        for scenario in SCENARIOS
        if scenario.name != REVERSAL  # the challenge has no such attacker
    ]
    if part := by_scenario[kept]:
        yield challenges.Section(challenges.ASV, part, index=[3 * row + kept for row in range(len(part))])
    words = [
        {**_part(dataset), "asr": name, "WER": round(100 * reports.number(rates[kind]["value"]), 3)}
        for dataset, rates in utility.get("wer", {}).items()
        for kind, name in (("original", "original"), ("anonymised", "anon"))
    ]
    if words:
        yield challenges.Section(challenges.ASR, words)
    if part := by_scenario[3]:
        yield challenges.Section(challenges.ASV_ANON, part, index=[3 * row + 2 for row in range(len(part))])


def _part(dataset: str) -> Json:
    return dict(zip(("dataset", "split"), challenges.split_of(dataset), strict=True))
