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
import math
import shlex
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from evaluation import challenges, reports
from evaluation.reports import (
    Anonymiser,
    Average,
    ChosenBackend,
    Condition,
    Estimation,
    LastRun,
    Outcome,
    Protocol,
    Results,
    Seeds,
    UtilityFigure,
    percent,
)
from evaluation.trials import LEVELS, REVERSAL, SCENARIO_ORDER, SCENARIOS, WHOLE_LIST
from evaluation.uncertainty import Interval
from spkbase.configuration import to_dict
from spkbase.errors import DataError
from spkbase.files import atomic_path, file_digest, format_csv, load_json, to_json, write_text
from spkbase.version import versions
from spkver.attackers import attacker_name
from spkver.corpora import is_simulated
from spkver.datadir import MIXED
from spkver.voiceprivacy.assessment import Table
from spkver.voiceprivacy.checks import OVERESTIMATED, UTILITY, WITHOUT_VOICE, Evaluated, all_findings
from spkver.voiceprivacy.choosing import attacker_specs, attackers_run
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.learning import LACKING
from spkver.voiceprivacy.recording_checks import read_findings
from spkver.voiceprivacy.scores import Scored, fusion_weights
from spkver.voiceprivacy.sets import POOLED, Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.versions import describe

logger = logging.getLogger(__name__)

Json = dict[str, Any]

LISTS = ("wav.scp", "utt2spk", "spk2utt", "spk2gender", "enrolls", "trials", "text", "utt2emo", "spk2fold")
_COLUMNS = ("dataset", "split", "gender", "enrollment", "trial", "EER")  # of the challenge
_ENDINGS = ("original", "anon")  # of original and anonymised sides
_KNOWS = {
    "ignorant": "which ignores the anonymisation",
    REVERSAL: "which has original enrolment speech, knows the family of anonymisers and inverts the trials by guesses",
    "lazy-informed": "which anonymises its enrolment speech",
    "semi-informed": "which anonymises its enrolment and its training speech",
}
_SIDES = {row.name: (_ENDINGS[row.enrolment], _ENDINGS[row.trials]) for row in SCENARIOS}
_IN_THE_VERDICT = (WITHOUT_VOICE, UTILITY, OVERESTIMATED)
_OF_ONE_RUN = ("run", "timings")  # entries that differ between runs with equal results


def report(
    experiment: Experiment,
    sets: Sets,
    scores: Sequence[Scored],
    table: Table,
    utility: Sequence[UtilityFigure],
) -> str:
    """Write all results.

    Returns
    -------
    str
        The table of the strongest attackers, warnings, the verdict, and the paths of the files.
    """
    experiment.begin("report")
    run, suffix = experiment.run, experiment.suffix
    rows = challenge_rows(table, experiment.config)
    with run.timed("report"):
        results = _results(experiment, sets, scores, table, utility, rows)
        write_challenge_files(run.output, rows, utility, suffix=suffix, protocol=results.protocol)
    of_lists = {planned.stage for planned in run.plan.values() if planned.step == "scores"}  # run.log has them
    timings = {name: round(seconds, 3) for name, seconds in run.timings.items() if name not in of_lists}
    results = replace(results, timings=timings)
    contents = results.to_dict()
    files = ("results.json", f"results{suffix}.json", f"tables{suffix}.md", f"tables{suffix}.tex")

    def make(path: Path) -> None:
        content = to_json(contents) + "\n"
        texts = (content, content, reports.format_markdown(results), reports.format_latex(results))
        for name, text in zip(files, texts, strict=True):
            write_text(run.path(name), text)
        reports.write_page(results, path, folder=run.output, **experiment.page)

    # existing files with equal results stay, with their date
    same = {name: value for name, value in contents.items() if name not in _OF_ONE_RUN}
    run.stage(
        "report",
        "report.html",
        make=make,
        read=Path,
        inputs=to_json(same | experiment.page),
        libraries=("matplotlib", "numpy"),
        also=files,
    )
    outcomes = sorted(table.outcomes, key=lambda one: (one.dataset, SCENARIO_ORDER.index(one.scenario)))
    shown = reports.format_outcomes(outcomes)
    logger.info("results\n%s", shown, extra={"file_only": True})
    lines = [shown, ""]
    for finding in results.checks:
        if finding.level == "warning" and finding.check not in _IN_THE_VERDICT:
            lines.append(f"Warning ({finding.check}): {finding.text}")
    if len(lines) > 2:
        lines.append("")
    lines += [results.verdict, *filter(None, [results.details]), ""]
    made = {"Report": "report.html", "Results": "results.json", "Table": f"results{suffix}.csv"}
    lines += [f"{name + ':':9}{run.path(path)}" for name, path in made.items()]
    return "\n".join(lines)


def _results(
    experiment: Experiment,
    sets: Sets,
    scores: Sequence[Scored],
    table: Table,
    utility: Sequence[UtilityFigure],
    rows: Sequence[ChallengeRow],
) -> Results:
    """Return the table of results with checks, utility and everything that says how they were made."""
    run, config, suffix = experiment.run, experiment.config, experiment.suffix
    simulated = is_simulated(experiment.data)
    fusions = fusion_weights(run, scores)
    anonymiser = describe(experiment.anonymizer, sets, suffix=suffix, seed=config.seed)
    earlier = _earlier_results(run.output, suffix)
    lacking = load_json(run.path(LACKING))
    heard = read_findings(run, suffix)
    evaluated = Evaluated(
        table, sets, config, experiment.failures, fusions, utility, earlier, simulated, lacking, heard
    )
    checks = all_findings(evaluated)
    refused = [f"No verdict: {finding.text}" for finding in checks if finding.level == "error"]
    alarms = {finding.check: finding.text for finding in checks if finding.check in _IN_THE_VERDICT}
    taught = [sets.original[name].speakers.values() for name in sets.training_sets]
    results = Results(
        recipe="voiceprivacy",
        suffix=suffix,
        simulated=simulated,
        anonymiser=anonymiser,
        choices=_chosen_backends(run.output, sets, config),
        undoing=_estimations(run.output, sets, config),
        caveats=(*refused, *alarms.values()),
        overestimated=alarms.get(OVERESTIMATED, ""),
        attackers_run=attackers_run(config, table.conditions),
        failures=tuple(experiment.failures),
        fusions=fusions,
        outcomes=reports.in_order(table.outcomes),
        protocol=challenge_protocol(table.conditions, config, anonymiser),
        averages=tuple(averages(rows, config)),
        conditions=tuple(table.conditions),
        utility=tuple(utility),
        checks=tuple(checks),
        config=to_dict(config),
        versions=versions(),
        lists=_hashes(sets, config),
        training_speakers=tuple(sorted(set(chain(*taught)))),
        run=LastRun(
            date=datetime.now().astimezone().isoformat(timespec="seconds"),
            command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        ),
        seeds=Seeds(run=config.seed, bootstrap=config.seed, anonymiser=anonymiser.settings.get("seed")),
        similarity=tuple(table.similarity),
    )
    sentence, details = verdict(results)
    return replace(results, verdict=" ".join([*refused, sentence, *alarms.values()]), details=details)


def verdict(results: Results) -> tuple[str, str]:
    """Return the verdict with the figures of the page: the privacy that is left, and the rate before anonymisation.

    Returns
    -------
    verdict : str
        The strongest attacker's errors in plain words, then the equal error rate with its interval.
    details : str
        The strongest attacker, figures of other attackers, and the means that rank systems.
    """
    start = "SIMULATED speech, which says nothing about real speech. " if results.simulated else ""
    found = [one for one in reports.headlines(results) if one.anonymised]
    if not found:  # user-supplied attackers may serve original speech alone
        return f"{start}On anonymised speech no attacker has scores: nothing can be said of its privacy.", ""
    headline = reports.overall(found)
    worst, eer, original = headline.worst, headline.eer, headline.original
    text = f"{start}{headline.asked} That is an equal error rate of {percent(eer.value)}"
    if eer.has_interval:
        text += f" ({100 * (results.settings.evaluation.level or 0):g} % interval for the strongest attacker"
        text += f"{' over all data sets' if len(found) > 1 else ''}:"
        text += f" {percent(eer.low)} to {percent(eer.high)})"
    where = worst.dataset + {"f": " (women)", "m": " (men)"}.get(worst.gender, "")
    text += f", where it {headline.besides}," if headline.besides else ""
    text += f" on {where}, {worst.n_enrolled} enrolled speakers"
    text += f"; without anonymisation it is {percent(original.value)}" if original.known else ""
    knows = _KNOWS[worst.scenario]
    draws = results.anonymiser.training_draws if results.anonymiser else None
    if worst.scenario == "semi-informed" and draws:
        knows += f", trained on {draws} version{'s' if draws > 1 else ''} of it"
    details = f"The strongest attacker is {headline.attacker} ({worst.scenario}, {knows})"
    details += f"; in the open set {worst.strongest} has {percent(worst.eer.value)}" if headline.besides else ""
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
        f"{row.dataset} {row.split} {row.eer_percent:.1f} %".replace("  ", " ")
        for row in results.averages
        if row.scenario == "semi-informed"
    ]
    if means:
        details += ". The command spkver-eval rank orders systems by the mean over lists of the semi-informed rate:"
        details += f" {', '.join(means)}"
    return f"{text}; chance is 50 %.", f"{details}."


# --- in the challenge's form ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChallengeRow:
    """An outcome in the challenge's columns.

    Attributes
    ----------
    outcome : Outcome
        Of the named attacker, or of the strongest one.
    rate : float
        Equal error rate by the challenge's definition, as a fraction.
    gender : str
        List of trials.
    """

    outcome: Outcome
    rate: float
    gender: str

    @property
    def cells(self) -> dict[str, Any]:
        """The challenge's columns, with the rate in per cent."""
        dataset, split = challenges.split_of(self.outcome.dataset)
        enrolment, trials = _SIDES[self.outcome.scenario]
        values = (dataset, split, self.gender, enrolment, trials, round(100 * self.rate, 3))
        return dict(zip(_COLUMNS, values, strict=True))


def challenge_protocol(conditions: Sequence[Condition], config: Config, anonymiser: Anonymiser) -> Protocol:
    """Return the attacker and protocol of the challenge's equal error rates; empty without such an attacker."""
    named = attacker_name(config.challenge.attacker)
    levels = {condition.level for condition in conditions if condition.attacker == named}
    if not levels:
        return Protocol()
    level = max(levels, key=list(LEVELS).index)
    seeding = anonymiser.settings.get("seeding", "unknown")
    return Protocol(attacker=named, level=level, reading=config.challenge.eer, draws="1", seeding=seeding)


def challenge_rows(table: Table, config: Config) -> list[ChallengeRow]:
    """Return each outcome with the challenge's EER for the named attacker.

    If no attacker is named, rows are for the strongest attackers, with the intervals of the minima. Conditions without
    scores of the named attacker are left out.
    """
    named, outcomes = attacker_name(config.challenge.attacker), table.outcomes
    if named:
        outcomes = reports.summarise([condition for condition in table.conditions if condition.attacker == named])
    reading = f"eer.{config.challenge.eer}"
    return [ChallengeRow(outcome, outcome.condition.metric(reading).value, outcome.gender) for outcome in outcomes]


def averages(rows: Sequence[ChallengeRow], config: Config) -> list[Average]:
    """Return the averages for each part and scenario, and the minimum target EERs that each reaches.

    Corpora and sexes have the weights of the challenge; without weights the average is the plain mean over the sexes
    of each corpus. Pooled trials count only if there are no lists by sex. A named attacker is averaged by the
    challenge's definition of the EER. The strongest attackers are averaged by the ROC convex hull, and so are the ends
    of their intervals, which are then too wide rather than too narrow: a target is reached if the lower end is above
    it.
    """
    weights = config.challenge.weights
    named = attacker_name(config.challenge.attacker)
    single = [row for row in rows if row.gender != POOLED] or list(rows)
    groups: dict[tuple[str, str, str], list[ChallengeRow]] = {}
    for row in single:
        dataset, split = challenges.split_of(row.outcome.dataset)
        groups.setdefault(("" if weights else dataset, split, row.outcome.scenario), []).append(row)
    entries = []
    for (corpus, split, scenario), members in groups.items():
        rates = [Interval(row.rate) if named else row.outcome.rate for row in members]
        mean = Interval(
            _mean(members, [rate.value for rate in rates], weights),
            _mean(members, [rate.low for rate in rates], weights),
            _mean(members, [rate.high for rate in rates], weights),
        )
        if not mean.known:
            continue
        floor = mean.value if math.isnan(mean.low) else mean.low
        entries.append(
            Average(
                dataset=corpus or "weighted",
                split=split,
                scenario=scenario,
                eer_percent=mean.value,
                attacker=named or "strongest",
                reading=config.challenge.eer if named else "rocch",
                low_percent=mean.low,
                high_percent=mean.high,
                targets_reached=tuple(target for target in config.challenge.targets if floor >= target),
            )
        )
    return entries


def write_challenge_files(
    output: Path, rows: Sequence[ChallengeRow], utility: Sequence[UtilityFigure], *, suffix: str, protocol: Protocol
) -> None:
    """Write the table of `challenge_rows`, and the challenge's files if the protocol names an attacker.

    These are the ranking file, the tables of each part, scores and EER of each list of trials, and an archive of all.
    Results of cross-sex lists are called ``mixed``, as in VoicePrivacy 2026; so are pooled results without lists by
    sex.
    """
    if all(row.gender == POOLED for row in rows):
        rows = [replace(row, gender=MIXED) for row in rows]
    columns = (*_COLUMNS, *(column.name for column in reports.columns_of(reports.CSV)))
    numbers = reports.table_rows(reports.CSV, [row.outcome for row in rows])
    table = [row.cells | more for row, more in zip(rows, numbers, strict=True)]
    write_text(output / f"results{suffix}.csv", format_csv(columns, table))
    path = output / f"exp/results_summary/result_for_rank{suffix}"
    parts = {ending: path.parent / f"eval_{ending}{suffix}/results_{ending}.txt" for ending in ("orig", "anon")}
    archive = path.with_name(f"result_for_submission{suffix}.zip")
    folders = {challenges.SER: "ser", challenges.ASR: "asr", "asv_orig": "asv_orig"}
    folders[f"asv_anon{suffix}"] = f"asv_anon{suffix}"
    tables = {title: output / f"exp/{folder}/results{suffix}.csv" for title, folder in folders.items()}
    single = [row for row in rows if row.gender != POOLED]
    pairs = {output / Path(row.outcome.condition.scores).parents[1]: row for row in single}
    of_pairs = [pair / name for pair in pairs for name in ("scores", "EER")]
    for file in (path, *parts.values(), *tables.values(), *of_pairs, archive):
        file.unlink(missing_ok=True)  # left by an earlier run with another attacker
    if not protocol.attacker:
        text = "%s is not written: challenge.attacker names no attacker"
        logger.debug(text, path.name)
    elif sections := list(_rank_sections(rows, utility)):  # user-supplied attackers may serve none of the conditions
        challenges.write_rank_file(path, [challenges.Section(challenges.PROTOCOL, [protocol.to_dict()]), *sections])
        for ending, file in parts.items():
            if part := [one for one in sections if (one.title == challenges.ASV_ANON) == (ending == "anon")]:
                challenges.write_rank_file(file, part)
        for pair, row in pairs.items():
            write_text(pair / "scores", (output / row.outcome.condition.scores).read_text("utf-8"))
            write_text(pair / "EER", f"{row.rate!r}\n")
        found = {one.title: one.rows for one in sections}
        for title, file in tables.items():
            cells = found.get(title) or [row.cells for pair, row in pairs.items() if pair.parent.name == title]
            if cells:
                write_text(file, format_csv([*cells[0]], cells))
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


def _earlier_results(output: Path, suffix: str) -> dict[str, Results]:
    """Return the results of other anonymisers in the folder, by file name."""
    earlier: dict[str, Results] = {}
    for path in sorted(set(output.glob("results_*.json")) - {output / f"results{suffix}.json"}):
        with suppress(DataError):
            earlier[path.name] = reports.read_results(path)
    return earlier


def _chosen_backends(output: Path, sets: Sets, config: Config) -> tuple[ChosenBackend, ...]:
    """Return how embedding attackers chose their backends, for each training set."""
    sides = [side.name for name in sets.training_sets for side in sets.pair(name)]
    choices = []
    for name in attacker_specs(config):
        paths = [output / f"attackers/{side}/{name}/choice.json" for side in sides]
        choices += [ChosenBackend.from_dict(load_json(path)) for path in paths if path.is_file()]
    return tuple(choices)


def _estimations(output: Path, sets: Sets, config: Config) -> tuple[Estimation, ...]:
    """Return how well the anonymisation of each training set was estimated."""
    if not any(spec.row and spec.row.is_inverted for spec in attacker_specs(config).values()):
        return ()
    estimations = []
    for twin in (sets.twins[name].name for name in sets.training_sets if name in sets.twins):
        path = output / f"attackers/{twin}/undoing/undoing.json"
        if path.is_file():
            estimations.append(Estimation.from_dict({"background": twin, **load_json(path)}))
    return tuple(estimations)


def _mean(rows: Sequence[ChallengeRow], rates: Sequence[float], weights: Mapping[str, float]) -> float:
    """Return the average in per cent; NaN if a rate or the row of a weight is missing."""
    places = [(challenges.split_of(row.outcome.dataset)[0], row.gender) for row in rows]
    values = {place: round(100 * rate, 3) for place, rate in zip(places, rates, strict=True)}
    mean = challenges.weighted_average(values, weights) if weights else sum(values.values()) / len(values)
    return math.nan if mean is None else round(mean, 3)


def _rank_sections(rows: Sequence[ChallengeRow], utility: Sequence[UtilityFigure]) -> Iterator[challenges.Section]:
    """Yield emotions, results of ASV_eval, words, and AA of ASV_eval^anon, numbered as in the table of OO, OA and AA.

    From ASV_eval the challenge keeps OO in 2024, and AA (lazy-informed) in 2026, with cross-sex lists. The recall of an
    emotion is NaN if a set does not have it.
    """
    recalled = [figure for figure in utility if figure.measure == "uar"]
    datasets = [figure.dataset for figure in recalled]
    recalled.sort(key=lambda figure: (datasets.index(figure.dataset), figure.kind))
    emotions = sorted({emotion for figure in recalled for emotion in figure.rate.recalls or ()})
    if recalled:
        cells = []
        for figure in recalled:
            recalls = figure.rate.recalls or {}
            shares = {"UAR": figure.rate.value.value}
            shares |= {f"ACC_{emotion}": recalls.get(emotion, math.nan) for emotion in emotions}
            cells.append(_of_speech(figure, "ser") | {name: round(100 * share, 4) for name, share in shares.items()})
        yield challenges.Section(challenges.SER, cells)
    single = [row for row in rows if row.gender != POOLED]
    kept = 2 if any(row.gender == MIXED for row in single) else 0
    by_scenario = [
        [row.cells for row in single if row.outcome.scenario == scenario.name]
        for scenario in SCENARIOS
        if scenario.name != REVERSAL  # the challenge has no such attacker
    ]
    if part := by_scenario[kept]:
        yield challenges.Section(challenges.ASV, part, index=[3 * row + kept for row in range(len(part))])
    words = [
        _of_speech(figure, "asr") | {"WER": round(100 * figure.rate.value.value, 3)}
        for figure in utility
        if figure.measure == "wer"
    ]
    if words:
        yield challenges.Section(challenges.ASR, words)
    if part := by_scenario[3]:
        yield challenges.Section(challenges.ASV_ANON, part, index=[3 * row + 2 for row in range(len(part))])


def _of_speech(figure: UtilityFigure, column: str) -> Json:
    """Return the challenge's columns that say which speech a measure of utility is of."""
    dataset, split = challenges.split_of(figure.dataset)
    kind = "anon" if figure.kind == "anonymised" else figure.kind
    return {"dataset": dataset, "split": split, column: kind}
