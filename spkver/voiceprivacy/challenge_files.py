"""Files in the form of the VoicePrivacy challenges.

results<suffix>.csv                            the challenge's columns, then scenario, attacker and intervals
exp/results_summary/result_for_rank<suffix>    the challenge's ranking file, for the attacker `challenge.attacker`
exp/results_summary/eval_orig<suffix>/results_orig.txt, eval_anon<suffix>/results_anon.txt    its two parts
exp/asv_orig/<pair>/scores, EER, exp/asv_anon<suffix>/...     its scores and EER on each list of trials of one sex
exp/{asv_orig,asv_anon<suffix>,asr,ser}/results<suffix>.csv    tables of EERs, word errors and emotions
exp/results_summary/result_for_submission<suffix>.zip          all of these files
"""

from __future__ import annotations

import logging
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from evaluation import challenges, reports
from evaluation.reports import Anonymiser, Average, Condition, Outcome, Protocol, UtilityFigure
from evaluation.trials import LEVELS, SCENARIOS
from evaluation.uncertainty import Interval
from spkbase.files import atomic_path, format_csv, write_text
from spkver.attackers import attacker_name
from spkver.datadir import MIXED
from spkver.voiceprivacy.assessment import Table
from spkver.voiceprivacy.sets import POOLED
from spkver.voiceprivacy.settings import Config

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_COLUMNS = ("dataset", "split", "gender", "enrollment", "trial", "EER")
_ENDINGS = ("original", "anon")  # the endings of original and anonymised directories
_SIDES = {row.name: (_ENDINGS[row.enrolment], _ENDINGS[row.trials]) for row in SCENARIOS}


@dataclass(frozen=True)
class ChallengeRow:
    """An outcome in the challenge's columns.

    Attributes
    ----------
    outcome : Outcome
        The outcome of the named attacker, or else of the strongest one.
    rate : float
        Equal error rate by the challenge's definition, as a fraction.
    gender : str
        Sex of the list of trials.
    """

    outcome: Outcome
    rate: float
    gender: str

    @property
    def cells(self) -> Json:
        """The challenge's columns, with the rate in per cent."""
        dataset, split = challenges.split_of(self.outcome.dataset)
        enrolment, trials = _SIDES[self.outcome.scenario]
        values = (dataset, split, self.gender, enrolment, trials, round(100 * self.rate, 3))
        return dict(zip(_COLUMNS, values, strict=True))


def challenge_protocol(
    conditions: Sequence[Condition], config: Config, anonymiser: Anonymiser
) -> Protocol:
    """Return the attacker and protocol of the challenge's equal error rates; empty without such an attacker."""
    named = attacker_name(config.challenge.attacker)
    levels = {condition.level for condition in conditions if condition.attacker == named}
    if not levels:
        return Protocol()
    level = max(levels, key=list(LEVELS).index)
    seeding = anonymiser.settings.get("seeding", "unknown")
    return Protocol(
        attacker=named, level=level, reading=config.challenge.eer, draws="1", seeding=seeding
    )


def challenge_rows(table: Table, config: Config) -> list[ChallengeRow]:
    """Return each outcome with the challenge's EER for the named attacker.

    If no attacker is named, rows are for the strongest attackers, with the intervals of the minima. Conditions without
    scores of the named attacker are left out.
    """
    outcomes = table.outcomes
    named = attacker_name(config.challenge.attacker)
    if named:
        outcomes = reports.summarise(
            [condition for condition in table.conditions if condition.attacker == named]
        )
    rows = []
    for outcome in outcomes:
        rate = outcome.condition.metric(f"eer.{config.challenge.eer}")
        rows.append(ChallengeRow(outcome, rate.value, outcome.gender))
    return rows


def averages(rows: Sequence[ChallengeRow], config: Config) -> list[Average]:
    """Return the averages for each part and scenario, and the challenge's minimum EERs that each average reaches.

    Corpora and sexes have the weights of the challenge; without weights the average is the plain mean over the sexes
    of each corpus. Pooled trials count only if there are no lists by sex. A named attacker is averaged by the
    challenge's definition of the EER. The strongest attackers are averaged by the ROC convex hull, and so are the ends
    of their intervals, which are then too wide rather than too narrow: a target is reached if the lower end is above
    it.
    """
    weights = config.challenge.weights
    named = attacker_name(config.challenge.attacker)
    single = [row for row in rows if row.gender != POOLED]
    groups: dict[tuple[str, str, str], dict[tuple[str, str], Interval]] = {}
    for row in single or rows:
        corpus, split = challenges.split_of(row.outcome.dataset)
        rate = Interval(row.rate) if named else row.outcome.rate
        averaged = "weighted" if weights else corpus
        groups.setdefault((averaged, split, row.outcome.scenario), {})[corpus, row.gender] = rate
    averages = []
    for (corpus, split, scenario), rates in groups.items():
        average = Average(
            dataset=corpus or "weighted",
            split=split,
            scenario=scenario,
            eer_percent=_mean(rates, "value", weights),
            attacker=named or "strongest",
            reading=config.challenge.eer if named else "rocch",
            low_percent=_mean(rates, "low", weights),
            high_percent=_mean(rates, "high", weights),
        )
        if average.eer.known:
            averages.append(
                replace(
                    average, targets_reached=_targets_reached(average, config.challenge.targets)
                )
            )
    return averages


def _targets_reached(average: Average, targets: Iterable[float]) -> tuple[float, ...]:
    """Return the targets that the lower end of the interval reaches, or the value without an interval."""
    floor = average.eer_percent
    if not math.isnan(average.low_percent):
        floor = average.low_percent
    return tuple(target for target in targets if floor >= target)


def rank_path(output: Path, suffix: str) -> Path:
    """Return the path of the challenge's ranking file in an output folder."""
    return output / f"exp/results_summary/result_for_rank{suffix}"


def archive_path(output: Path, suffix: str) -> Path:
    """Return the path of a submission's archive in an output folder."""
    return output / f"exp/results_summary/result_for_submission{suffix}.zip"


def challenge_block(output: Path, suffix: str) -> str:
    """Return the challenge's figures as its toolkit prints them, and the paths of ranking file and archive.

    The paths are empty if there is no ranking file.
    """
    path = rank_path(output, suffix)
    if not path.is_file():
        return ""
    sections = challenges.read_rank_file(path)
    shown = [section for section in sections if section.title != challenges.PROTOCOL]
    files = [f"Ranks:   {path}", f"Archive: {archive_path(output, suffix)}"]
    return "\n".join([challenges.format_rank_file(shown), *files])


def write_challenge_files(
    output: Path,
    rows: Sequence[ChallengeRow],
    utility: Sequence[UtilityFigure],
    *,
    suffix: str,
    protocol: Protocol,
) -> None:
    """Write the table of `challenge_rows`, and the challenge's files if the protocol names an attacker.

    They are the ranking file, the tables of each part, the scores and EER of each list of trials, and an archive.
    Results of cross-sex lists are called ``mixed``, as in VoicePrivacy 2026; so are pooled results without lists by
    sex.
    """
    if {row.gender for row in rows} == {POOLED}:
        rows = [replace(row, gender=MIXED) for row in rows]
    _write_results(output / f"results{suffix}.csv", rows)
    tables = {}
    folders = {challenges.SER: "ser", challenges.ASR: "asr"}
    for title in (*folders, "asv_orig", f"asv_anon{suffix}"):
        tables[title] = output / f"exp/{folders.get(title, title)}/results{suffix}.csv"
    pairs: dict[Path, ChallengeRow] = {}
    for row in rows:
        if row.gender != POOLED:
            pairs[output / Path(row.outcome.condition.scores).parents[1]] = row
    summary = output / "exp/results_summary"
    ranking = rank_path(output, suffix)
    archive = archive_path(output, suffix)
    original = summary / f"eval_orig{suffix}/results_orig.txt"
    anonymised = summary / f"eval_anon{suffix}/results_anon.txt"
    files = [ranking, original, anonymised, *tables.values()]
    for pair in pairs:
        files += [pair / "scores", pair / "EER"]
    for file in (*files, archive):
        file.unlink(missing_ok=True)  # an earlier run with another attacker may have written it
    if not protocol.attacker:
        logger.debug("%s is not written: challenge.attacker names no attacker", ranking.name)
        return
    sections = list(_rank_sections(rows, utility))
    if not sections:  # user-supplied attackers may serve none of the conditions
        return
    challenges.write_rank_file(
        ranking, [challenges.Section(challenges.PROTOCOL, [protocol.to_dict()]), *sections]
    )
    _write_parts(sections, original, anonymised)
    for pair, row in pairs.items():
        write_text(pair / "scores", (output / row.outcome.condition.scores).read_text("utf-8"))
        write_text(pair / "EER", f"{row.rate!r}\n")
    _write_tables(tables, sections, pairs)
    _write_archive(archive, output, filter(Path.is_file, files))


def _write_tables(
    tables: Mapping[str, Path],
    sections: Iterable[challenges.Section],
    pairs: Mapping[Path, ChallengeRow],
) -> None:
    """Write the tables of word errors, emotions and EERs that have rows."""
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for section in sections:
        cells[section.title] = list(section.rows)
    for pair, row in pairs.items():
        cells.setdefault(pair.parent.name, []).append(row.cells)
    for title in tables.keys() & cells.keys():
        write_text(tables[title], format_csv([*cells[title][0]], cells[title]))


def _write_parts(sections: Iterable[challenges.Section], original: Path, anonymised: Path) -> None:
    """Write the sections on original and anonymised trials, those that exist."""
    parts: dict[Path, list[challenges.Section]] = {}
    for section in sections:
        path = anonymised if section.title == challenges.ASV_ANON else original
        parts.setdefault(path, []).append(section)
    for path, part in parts.items():
        challenges.write_rank_file(path, part)


def _write_results(path: Path, rows: Sequence[ChallengeRow]) -> None:
    """Write a table with a line per row: the challenge's columns, then scenario, attacker and interval."""
    columns = [*_COLUMNS]
    columns += map(attrgetter("name"), reports.columns_of(reports.CSV))
    table = []
    for row in rows:
        (numbers,) = reports.table_rows(reports.CSV, [row.outcome])
        table.append(row.cells | numbers)
    write_text(path, format_csv(columns, table))


def _write_archive(archive: Path, output: Path, files: Iterable[Path]) -> None:
    """Write files, by their paths in the output folder, into an archive whose bytes are reproducible."""
    with atomic_path(archive) as temporary, zipfile.ZipFile(temporary, "w") as zipped:
        for file in sorted(files):
            # no modification time, so that equal files give an equal archive
            entry = zipfile.ZipInfo(file.relative_to(output).as_posix())
            zipped.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def _mean(
    rates: Mapping[tuple[str, str], Interval], end: str, weights: Mapping[str, float]
) -> float:
    """Return the weighted average, over corpora and sexes, of rates or of one end of their intervals, in per cent.

    It is NaN if a rate is missing or a weight has no row.
    """
    values: dict[tuple[str, str], float] = {
        corpus_and_sex: round(100 * getattr(rate, end), 3) for corpus_and_sex, rate in rates.items()
    }
    if not weights:
        return round(sum(values.values()) / len(values), 3)
    mean = challenges.weighted_average(values, weights)
    return math.nan if mean is None else round(mean, 3)


def _rank_sections(
    rows: Sequence[ChallengeRow], utility: Sequence[UtilityFigure]
) -> Iterator[challenges.Section]:
    """Yield the sections of the ranking file: emotions, EERs of ASV_eval, word errors, and AA with ASV_eval^anon.

    The EERs are numbered as in the table of OO, OA and AA. With ASV_eval, the challenge reports OO in 2024 and, for
    cross-sex lists, AA (lazy-informed) in 2026.
    """
    emotions = _emotion_rows([figure for figure in utility if figure.measure == "uar"])
    if emotions:
        yield challenges.Section(challenges.SER, emotions)
    if MIXED in {row.gender for row in rows}:
        yield from _rate_sections(challenges.ASV, rows, "lazy-informed", 2)
    else:
        yield from _rate_sections(challenges.ASV, rows, "original", 0)
    words = []
    for figure in utility:
        if figure.measure == "wer":
            words.append(
                _columns_of(figure, "asr") | {"WER": round(100 * figure.rate.value.value, 3)}
            )
    if words:
        yield challenges.Section(challenges.ASR, words)
    yield from _rate_sections(challenges.ASV_ANON, rows, "semi-informed", 2)


def _rate_sections(
    title: str, rows: Iterable[ChallengeRow], scenario: str, position: int
) -> Iterator[challenges.Section]:
    """Yield the section of a scenario's error rates, if there are any.

    `position` is its place in the table of OO, OA and AA.
    """
    cells = [row.cells for row in rows if row.gender != POOLED and row.outcome.scenario == scenario]
    if cells:
        yield challenges.Section(title, cells, index=list(range(position, 3 * len(cells), 3)))


def _emotion_rows(figures: Sequence[UtilityFigure]) -> list[Json]:
    """Return recalls in the challenge's columns; the recall of an emotion that a set does not have is NaN."""
    datasets = list(map(attrgetter("dataset"), figures))
    emotions: set[str] = set()
    for figure in figures:
        emotions.update(figure.rate.recalls or ())
    rows = []
    for figure in sorted(figures, key=lambda figure: (datasets.index(figure.dataset), figure.kind)):
        row = _columns_of(figure, "ser") | {"UAR": round(100 * figure.rate.value.value, 4)}
        recalls = figure.rate.recalls or {}
        for emotion in sorted(emotions):
            row[f"ACC_{emotion}"] = round(100 * recalls.get(emotion, math.nan), 4)
        rows.append(row)
    return rows


def _columns_of(figure: UtilityFigure, column: str) -> Json:
    """Return the challenge's columns that name the speech on which utility was measured."""
    dataset, split = challenges.split_of(figure.dataset)
    kind = "anon" if figure.kind == "anonymised" else figure.kind
    return {"dataset": dataset, "split": split, column: kind}
