"""The report of an evaluation: results as JSON, tables and the page, and the text at the end of a run.

results.json, results<suffix>.json    everything; the first holds the last run
tables<suffix>.md, tables<suffix>.tex, report.html

The files in the challenge's form are those of `spkver.voiceprivacy.challenge_files`.
"""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from evaluation import reports
from evaluation.reports import (
    ChosenBackend,
    Estimation,
    Headline,
    LastRun,
    Results,
    Seeds,
    TrainedNetwork,
    UtilityFigure,
    list_in_words,
    percent,
)
from evaluation.trials import REVERSAL
from spkbase.configuration import to_dict
from spkbase.errors import DataError
from spkbase.files import file_digest, format_table, load_json, to_json, write_text
from spkbase.runs import Run
from spkbase.version import versions
from spkver.corpora import is_simulated
from spkver.training import read_record
from spkver.voiceprivacy.assessment import Table
from spkver.voiceprivacy.challenge_files import (
    ChallengeRow,
    averages,
    challenge_block,
    challenge_protocol,
    challenge_rows,
    write_challenge_files,
)
from spkver.voiceprivacy.checks import (
    OVERESTIMATED,
    UTILITY,
    WITHOUT_VOICE,
    Evaluated,
    all_findings,
)
from spkver.voiceprivacy.choosing import attacker_specs, attackers_run
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.learning import LACKING
from spkver.voiceprivacy.pairs import read_pairings
from spkver.voiceprivacy.recording_checks import read_findings
from spkver.voiceprivacy.scores import Scored, fusion_weights
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config
from spkver.voiceprivacy.versions import describe

logger = logging.getLogger(__name__)

LISTS = (
    "wav.scp",
    "utt2spk",
    "spk2utt",
    "spk2gender",
    "enrolls",
    "trials",
    "text",
    "utt2emo",
    "spk2fold",
)
_KNOWS = {
    "ignorant": "which ignores the anonymisation",
    REVERSAL: "which has original enrolment speech, knows the family of anonymisers and inverts the trials by guesses",
    "lazy-informed": "which anonymises its enrolment speech",
    "semi-informed": "which anonymises its enrolment and its training speech",
}
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
    run = experiment.run
    with run.timed("report"):
        rows = challenge_rows(table, experiment.config)
        results = _results(experiment, sets, scores, table, utility, rows)
        write_challenge_files(
            run.output, rows, utility, suffix=experiment.suffix, protocol=results.protocol
        )
    results = replace(results, timings=_timings(run))
    _write(run, results, experiment.page)
    return _shown(run, results)


def _results(
    experiment: Experiment,
    sets: Sets,
    scores: Sequence[Scored],
    table: Table,
    utility: Sequence[UtilityFigure],
    rows: Sequence[ChallengeRow],
) -> Results:
    """Return all results with their checks and a record of how they were made."""
    run = experiment.run
    config = experiment.config
    suffix = experiment.suffix
    anonymiser = describe(experiment.anonymizer, sets, suffix=suffix, seed=config.seed)
    choices = _chosen_backends(run.output, sets, config)
    taught: set[str] = set()
    for name in sets.training_sets:
        taught.update(sets.original[name].speakers.values())
    tested: set[str] = set()
    for dataset in sets.datasets:
        for name in dataset.trials.values():
            tested.update(sets.original[name].speakers.values())
    results = Results(
        recipe="voiceprivacy",
        suffix=suffix,
        simulated=is_simulated(experiment.data),
        anonymiser=anonymiser,
        choices=choices,
        trained_networks=_trained_networks(run.output, choices, config),
        undoing=_estimations(run.output, sets, config),
        attackers_run=attackers_run(config, table.conditions),
        failures=tuple(experiment.failures.listed),
        fusions=fusion_weights(run, scores),
        outcomes=reports.in_order(table.outcomes),
        protocol=challenge_protocol(table.conditions, config, anonymiser),
        averages=tuple(averages(rows, config)),
        conditions=tuple(table.conditions),
        conversations=tuple(table.conversations),
        utility=tuple(utility),
        pairings=read_pairings(run, suffix),
        config=to_dict(config),
        versions=versions(),
        lists=_hashes(sets, config),
        training_speakers=tuple(sorted(taught)),
        tested_speakers=tuple(sorted(tested)),
        run=LastRun(
            date=datetime.now().astimezone().isoformat(timespec="seconds"),
            command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        ),
        seeds=Seeds(
            run=config.seed, bootstrap=config.seed, anonymiser=anonymiser.settings.get("seed")
        ),
        similarity=tuple(table.similarity),
    )
    evaluated = Evaluated(
        results,
        sets,
        config,
        order=table.order,
        earlier=_earlier_results(run.output, suffix),
        lacking=load_json(run.path(LACKING)),
        recordings=read_findings(run, suffix),
    )
    return _judged(replace(results, checks=tuple(all_findings(evaluated))))


def _judged(results: Results) -> Results:
    """Return results with their verdict and the checks' sentences that belong to it."""
    refused = []
    alarms = {}
    for finding in results.checks:
        if finding.level == "error":
            refused.append(f"No verdict: {finding.text}")
        if finding.check in _IN_THE_VERDICT:
            alarms[finding.check] = finding.text
    sentence, details = verdict(results)
    return replace(
        results,
        verdict=" ".join([*refused, sentence, *alarms.values()]),
        caveats=(*refused, *alarms.values()),
        details=details,
        overestimated=alarms.get(OVERESTIMATED, ""),
    )


def verdict(results: Results) -> tuple[str, str]:
    """Return the verdict and its details.

    Returns
    -------
    verdict : str
        The strongest attacker's errors in plain words, then the equal error rate with its interval.
    details : str
        The strongest attacker.
    """
    start = "SIMULATED speech, which says nothing about real speech. " if results.simulated else ""
    anonymised = reports.headlines(results, anonymised=True)
    if not anonymised:  # user-supplied attackers may score original speech only
        return (
            f"{start}On anonymised speech no attacker has scores: nothing can be said of its privacy.",
            "",
        )
    headline = reports.overall(anonymised)
    eer = headline.eer
    worst = headline.worst
    text = f"{start}{headline.asked} That is an equal error rate of {percent(eer.value)}"
    if eer.has_interval:
        level = results.settings.evaluation.level or 0
        reach = " over all data sets" if len(anonymised) > 1 else ""
        text += f" ({100 * level:g} % interval for the strongest attacker{reach}:"
        text += f" {percent(eer.low)} to {percent(eer.high)})"
    if headline.besides:
        text += f", where it {headline.besides},"
    text += (
        f" on {list_in_words(worst.dataset, worst.gender)}, {worst.n_enrolled} enrolled speakers"
    )
    if headline.original.known:
        text += f"; without anonymisation it is {percent(headline.original.value)}"
    text += "; chance is 50 %."
    if headline.condition:
        text += f" This holds {headline.condition}."
    elif headline.files.sentence and headline.judged.low < eer.low:
        text += (
            f" {headline.files.sentence} The lower end may then be {percent(headline.judged.low)}."
        )
    return text, _details(results, headline)


def _details(results: Results, headline: Headline) -> str:
    """Name the strongest attacker. Its other figures are left out: they would seem to belong to the same result."""
    worst = headline.worst
    knows = _KNOWS[worst.scenario]
    draws = results.anonymiser.training_draws if results.anonymiser else None
    if worst.scenario == "semi-informed" and draws:
        knows += f", trained on {draws} version{'s' if draws > 1 else ''} of it"
    text = f"The strongest attacker is {headline.attacker} ({worst.scenario}, {knows})"
    if len(worst.draws) > 1 and not headline.besides:
        text += f", on {len(worst.draws)} anonymised versions ({worst.each_draw})"
    return f"{text}. The page has all others, by their knowledge and in a closed set."


def _timings(run: Run) -> dict[str, float]:
    """Return the seconds of each step; run.log has those of single lists."""
    timings = {name: round(seconds, 3) for name, seconds in run.timings.items()}
    for planned in run.plan.values():
        if planned.step == "scores":
            timings.pop(planned.stage, None)
    return timings


def _write(run: Run, results: Results, page: dict[str, Any]) -> None:
    """Write the results and the page; existing files with equal results stay, with their date."""
    contents = results.to_dict()
    equal = dict(contents)
    for name in _OF_ONE_RUN:
        del equal[name]
    suffix = results.suffix
    texts = {
        "results.json": to_json(contents) + "\n",
        f"results{suffix}.json": to_json(contents) + "\n",
        f"tables{suffix}.md": reports.format_markdown(results),
        f"tables{suffix}.tex": reports.format_latex(results),
    }

    def make(path: Path) -> None:
        for name, text in texts.items():
            write_text(run.path(name), text)
        reports.write_page(results, path, folder=run.output, **page)

    run.stage(
        "report",
        "report.html",
        make=make,
        read=Path,
        inputs=to_json(equal | page),
        libraries=("matplotlib", "numpy"),
        also=tuple(texts),
    )


def _shown(run: Run, results: Results) -> str:
    """Return the text at the end of a run."""
    table = reports.format_outcomes(results.summary())
    logger.info("results\n%s", table, extra={"file_only": True})
    warnings = []
    for finding in results.checks:
        if finding.level == "warning" and finding.check not in _IN_THE_VERDICT:
            warnings.append(f"Warning ({finding.check}): {finding.text}")
    lines = [table, ""]
    spoken = reports.conversation_rows(results)
    if spoken:
        lines += [format_table(spoken), ""]
    if warnings:
        lines += [*warnings, ""]
    lines.append(results.verdict)
    if results.details:
        lines.append(results.details)
    lines.append("")
    block = ""
    if results.protocol.attacker:
        block = challenge_block(run.output, results.suffix)
    if block:
        lines += [f"Under the challenge's name, by {results.protocol.attacker}:", "", block]
    files = {
        "Report": "report.html",
        "Results": "results.json",
        "Table": f"results{results.suffix}.csv",
    }
    for name, file in files.items():
        lines.append(f"{name + ':':9}{run.path(file)}")
    return "\n".join(lines)


def _hashes(sets: Sets, config: Config) -> dict[str, str]:
    """Return the SHA-256 of every list of every data directory, by directory and name."""
    given = (config.utility.hypotheses, config.utility.predictions)
    paths: set[Path] = set()
    for side in (*sets.original.values(), *sets.twins.values()):
        paths.update(side.path / name for name in (*LISTS, *given) if name)
    return {
        f"{path.parent.name}/{path.name}": str(file_digest(path))
        for path in sorted(paths)
        if path.is_file()
    }


def _earlier_results(output: Path, suffix: str) -> dict[str, Results]:
    """Return the results of other anonymisers in the folder, by file name."""
    earlier: dict[str, Results] = {}
    for path in sorted(set(output.glob("results_*.json")) - {output / f"results{suffix}.json"}):
        with suppress(DataError):
            earlier[path.name] = reports.read_results(path)
    return earlier


def _chosen_backends(output: Path, sets: Sets, config: Config) -> tuple[ChosenBackend, ...]:
    """Return how embedding attackers chose their backends, for each training set."""
    choices = []
    for name in attacker_specs(config):
        for training in sets.training_sets:
            for side in sets.pair(training):
                path = output / f"attackers/{side.name}/{name}/choice.json"
                if path.is_file():
                    choices.append(ChosenBackend.from_dict(load_json(path)))
    return tuple(choices)


def _trained_networks(
    output: Path, choices: Sequence[ChosenBackend], config: Config
) -> tuple[TrainedNetwork, ...]:
    """Return the trainers' records of their networks, and the attackers that use each network."""
    users: dict[str, list[ChosenBackend]] = {}
    for choice in choices:
        if choice.network:
            users.setdefault(choice.network, []).append(choice)
    networks = []
    for folder, using in users.items():
        facts = {
            **read_record(output / folder),
            "folder": folder,
            "training": using[0].training,
            "attackers": [choice.attacker for choice in using],
            "seed": config.seed,
        }
        networks.append(TrainedNetwork.from_dict(facts))
    return tuple(networks)


def _estimations(output: Path, sets: Sets, config: Config) -> tuple[Estimation, ...]:
    """Return how accurately the anonymisation of each training set was estimated."""
    if not any(spec.row and spec.row.is_inverted for spec in attacker_specs(config).values()):
        return ()
    estimations = []
    for name in sets.training_sets:
        if name in sets.twins:
            twin = sets.twins[name].name
            path = output / f"attackers/{twin}/undoing/undoing.json"
            if path.is_file():
                estimations.append(Estimation.from_dict({"background": twin, **load_json(path)}))
    return tuple(estimations)
