"""One page for several anonymisers: whether they were measured alike, and paired differences on the same trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evaluation.formats import read_key, read_scores
from evaluation.metrics import SortedScores, rocch_eer
from evaluation.reports.conditions import Condition
from evaluation.reports.formatting import name_list, short
from evaluation.reports.outcomes import Identity, Outcome, in_order, strongest, summarise
from evaluation.reports.pictures import Picture, label_of, score_pictures
from evaluation.reports.results import Results, one_error
from evaluation.reports.templates import fill
from evaluation.reports.verdict import Headline, headlines, judge
from evaluation.trials import Key, Scores, read_speakers
from evaluation.uncertainty import (
    Interval,
    Resampling,
    Sample,
    holm,
    paired_differences,
    sample_from,
)
from spkbase.errors import DataError, few
from spkbase.files import write_text

_RESAMPLES = 200  # resamples for paired differences


class PairedRates(NamedTuple):
    """Differences in EER between an anonymiser and the first one.

    Attributes
    ----------
    name : str
        The anonymiser.
    where : str
        The list of trials and the scenario.
    gaps : dict of str to Interval
        The differences by attacker, with intervals and p-values; that of the strongest attackers comes first.
    problem : str
        Why there are no differences; empty if there are some.
    """

    name: str
    where: str
    gaps: dict[str, Interval]
    problem: str


def write_comparison(
    sources: Sequence[tuple[Results, str | Path]], path: str | Path, *, title: str = ""
) -> None:
    """Write one page for several privacy evaluations; see `render_comparison`.

    Raises
    ------
    DataError
        If results are malformed, there are fewer than two, or the file cannot be written.
    """
    write_text(path, render_comparison(sources, title=title))


def render_comparison(sources: Sequence[tuple[Results, str | Path]], *, title: str = "") -> str:
    """Return, as text, a page that shows anonymisers side by side; the same input gives the same bytes.

    Parameters
    ----------
    sources : sequence of (Results, path)
        Results, and the folder to which their paths are relative. Equal names are numbered.
    title : str, optional
        Heading of the page.
    """
    if len(sources) < 2:
        raise DataError(
            f"expected results of at least 2 anonymisers to compare, got {len(sources)}"
        )
    systems: dict[str, Results] = {}
    folders: dict[str, Path] = {}
    names = _numbered([results.name or "no anonymiser" for results, _ in sources])
    for name, (results, folder) in zip(names, sources, strict=True):
        systems[name] = results
        folders[name] = Path(folder)
    with one_error():
        compared, left_out = in_common(systems)
        lists = dict.fromkeys(
            chain.from_iterable(results.main_lists() for results in systems.values())
        )
        values: dict[str, Any] = {
            "systems": systems,
            "lists": {name: results.on_main_lists() for name, results in systems.items()},
            "judged": {name: judge(results) for name, results in systems.items()},
            "curves": _curves(compared, folders, list(lists)),
            "side_by_side": _side_by_side(systems, compared, [dataset for dataset, _ in lists]),
            "left_out": left_out,
            "unlike": unlike_in(systems),
            "paired": paired_rates(compared, folders),
            "title": title,
        }
        return fill("comparison.html.j2", values)


def in_common(systems: Mapping[str, Results]) -> tuple[dict[str, Results], list[str]]:
    """Keep the scenarios and attackers that all anonymisers share: more attackers would leave less privacy.

    Returns
    -------
    results : dict of str to Results
        The results, unchanged if all have the same attackers. Otherwise attackers that are not shared are left out, and
        intervals are those of single attackers, because the stated minima are over all attackers.
    notes : list of str
        The attackers that are left out of the results of each anonymiser, and the smallest EER that they reach.

    Raises
    ------
    DataError
        If anonymisers have no attacker in common on a list of trials.
    """
    common = _common_attackers(systems)
    shared: dict[str, Results] = {}
    notes = []
    for name, results in systems.items():
        kept: list[Condition] = []
        others: list[Condition] = []
        for row in results.conditions:
            side = kept if row.attacker in common[row.identity[:3]] else others
            side.append(row)
        shared[name] = replace(results, conditions=tuple(kept), outcomes=in_order(summarise(kept)))
        if others:
            notes.append(_note_on(name, others))
    if not notes:
        return dict(systems), notes
    return shared, notes


def paired_rates(systems: Mapping[str, Results], folders: Mapping[str, Path]) -> list[PairedRates]:
    """Return the differences in EER between each anonymiser and the first one, on the same trials.

    Both anonymisers share the resamples of speakers, so that effects of easy and hard speakers cancel. The number of
    resamples is that of the first results, at most 200, because the interval needs only the standard deviation. The
    scenario is the best informed one that both have. The p-values of the strongest attackers are corrected for their
    number by `holm`; those of all other attackers are corrected separately.

    Parameters
    ----------
    systems : mapping of str to Results
        Results by name; the others are compared with the first.
    folders : mapping of str to path
        Folders to which the paths in the results are relative, by name.

    Returns
    -------
    list of PairedRates
        One for each other anonymiser and list.
    """
    (base, first), *others = systems.items()
    resampling = _resampling(first)
    pairs: list[PairedRates] = []
    if not resampling.resamples:
        return pairs
    for trials, (name, results) in product(first.main_lists(), others):
        scenario = _best_informed(first, results, trials)
        if scenario == "original":
            continue
        where = f"{name_list(*trials)}, {scenario}"
        gaps: dict[str, Interval] = {}
        problem = ""
        try:
            for attacker, (ours, theirs) in _by_attacker(
                first, results, (*trials, scenario)
            ).items():
                gaps[attacker] = rate_difference(
                    (ours, folders[base]), (theirs, folders[name]), resampling
                )
        except DataError as error:
            gaps = {}
            problem = f"No paired differences: {error}"
        pairs.append(PairedRates(name, where, gaps, problem))
    _correct_p_values(pairs)
    return pairs


def samples_of(condition: Condition, folder: Path) -> list[Sample]:
    """Return the trials of each draw of a condition, ready for resampling.

    Raises
    ------
    DataError
        If files are missing or lie outside the folder, or there are fewer than two speakers.
    """
    files, key_file, speakers_file = condition.files(folder)
    speakers = None
    if speakers_file is not None:
        speakers = read_speakers(speakers_file)
    return draw_samples(map(read_scores, files), read_key(key_file), speakers)


def draw_samples(
    draws: Iterable[Scores], key: Key, speakers: Mapping[str, str] | None
) -> list[Sample]:
    """Return the trials of each draw, ready for resampling.

    Parameters
    ----------
    draws : iterable of Scores
        Scores of the same trials.
    key : Key
    speakers : mapping of str to str, optional
        Segment to speaker.

    Raises
    ------
    DataError
        If there are fewer than two speakers.
    """
    samples = []
    for scores in draws:
        sample, _ = sample_from(scores, key, segment_speakers=speakers, bootstrap_by="id")
        samples.append(sample)
    return samples


def rate_difference(
    base: tuple[Condition, Path], other: tuple[Condition, Path], resampling: Resampling
) -> Interval:
    """Return the difference in EER of two conditions, the other minus the base, in shared resamples of speakers.

    Parameters
    ----------
    base, other : (Condition, path)
        Conditions on the same trials, with the folders of their files.
    resampling : Resampling

    Raises
    ------
    DataError
        As in `samples_of`, or if the trials differ.
    """

    def rate(scores: SortedScores) -> dict[str, float]:
        return {"eer.rocch": rocch_eer(scores)}

    samples = {"base": samples_of(*base), "other": samples_of(*other)}
    gap: Interval = paired_differences(samples, rate, resampling)["other"]["eer.rocch"]
    return gap


def unlike_in(systems: Mapping[str, Results]) -> list[str]:
    """Return a sentence for each difference between evaluations that may make their figures incomparable.

    It compares scenarios and numbers of enrolled speakers and trials on each data set that several of them have, the
    number of anonymised versions of the training speech, and whether speech is simulated, as far as the results state
    these.
    """
    facts: dict[str, dict[str, str]] = {}
    for dataset in dict.fromkeys(
        chain.from_iterable(results.datasets() for results in systems.values())
    ):
        for name, results in systems.items():
            if dataset in results.datasets():
                facts.setdefault(f"Scenarios of {dataset}", {})[name] = ", ".join(
                    results.scenarios(dataset)
                )
                sizes = _sizes(results, dataset)
                if sizes:
                    facts.setdefault(f"Trials of {dataset}", {})[name] = sizes
    for name, results in systems.items():
        if results.anonymiser is not None and results.anonymiser.training_draws is not None:
            versions = facts.setdefault("Anonymised versions of the training speech", {})
            versions[name] = str(results.anonymiser.training_draws)
        facts.setdefault("Simulated speech", {})[name] = "yes" if results.simulated else "no"
    sentences = []
    for fact, values in facts.items():
        if len(set(values.values())) > 1:
            sentences.append(f"{fact}: {'; '.join(map(' '.join, values.items()))}.")
    return sentences


def _numbered(names: Sequence[str]) -> list[str]:
    """Number the names that occur more than once."""
    numbered = []
    for position, name in enumerate(names, 1):
        if names.count(name) > 1:
            name = f"{name} ({names[:position].count(name)})"
        numbered.append(name)
    return numbered


def _curves(
    systems: Mapping[str, Results], folders: Mapping[str, Path], lists: Sequence[tuple[str, str]]
) -> list[tuple[str, list[Picture]]]:
    """Draw the scores of the strongest attacker on each anonymiser together, for each list of trials."""
    curves = []
    for position, trials in enumerate(lists, 1):
        scored = {}
        for name, results in systems.items():
            outcome = results.worst(*trials)
            if outcome is not None:
                scored[name] = (f"{short(name)}: {label_of(outcome)}", outcome, folders[name])
        where = name_list(*trials)
        curves.append((where, score_pictures(scored, where, f"together-{position}")))
    return curves


def _side_by_side(
    systems: Mapping[str, Results], compared: Mapping[str, Results], datasets: Sequence[str]
) -> list[tuple[str, list[tuple[str, Headline | None, Headline | None]]]]:
    """Return for each data set the headlines by common and by all attackers, the most private anonymiser first."""
    tables = []
    for dataset in dict.fromkeys(datasets):
        rows = [
            (name, _headline_of(compared[name], dataset), _headline_of(systems[name], dataset))
            for name in systems
        ]
        rows.sort(key=lambda row: 1.0 if row[1] is None else -row[1].eer.value)
        tables.append((dataset, rows))
    return tables


def _headline_of(results: Results, dataset: str) -> Headline | None:
    """Return the headline of a data set; None if it has no known rate."""
    for headline in headlines(results):
        if headline.worst.dataset == dataset:
            return headline
    return None


def _common_attackers(systems: Mapping[str, Results]) -> dict[Identity, set[str]]:
    """Return the attackers that all anonymisers have in a scenario, if they have trials on its list."""
    attackers: dict[Identity, dict[str, set[str]]] = {}
    for name, results in systems.items():
        for outcome in results.by_conditions():
            attackers.setdefault(outcome.identity, {})[name] = set(outcome.attackers)
    common = {}
    for identity, by_system in attackers.items():
        having = [name for name, results in systems.items() if results.outcomes_of(*identity[:2])]
        common[identity] = set.intersection(*(by_system.get(name, set()) for name in having))
        if not common[identity] and len(by_system) == len(having):
            each = "; ".join(f"{name} has {few(known)}" for name, known in by_system.items())
            text = (
                f"expected an attacker that all results have, but on {', '.join(identity)} {each}"
            )
            raise DataError(
                text, remedy="evaluate all anonymisers with the same setting 'attackers'"
            )
    return common


def _note_on(name: str, others: Sequence[Condition]) -> str:
    """Return a sentence on attackers that only one anonymiser has."""
    best = strongest([row for row in others if row.scenario != "original"] or others)
    names = few(dict.fromkeys(map(attrgetter("attacker"), others)))
    text = f"{name} was also attacked by {names}: the smallest equal error rate is {100 * best.eer.value:.1f} %"
    return f"{text} ({best.attacker}, {name_list(best.dataset, best.gender)}, {best.scenario})."


def _resampling(results: Results) -> Resampling:
    settings = results.settings
    resamples = settings.evaluation.resamples
    if resamples is None or resamples > _RESAMPLES:
        resamples = _RESAMPLES
    return Resampling(resamples, settings.seed, settings.evaluation.level or 0.95)


def _best_informed(first: Results, other: Results, trials: tuple[str, str]) -> str:
    """Return the best informed scenario with anonymised speech that both have on a list, or else original speech."""
    best = "original"
    theirs = {outcome.scenario for outcome in other.outcomes_of(*trials)}
    for outcome in first.outcomes_of(*trials):  # outcomes are sorted by the attacker's knowledge
        if outcome.anonymised and outcome.scenario in theirs:
            best = outcome.scenario
    return best


def _by_attacker(first: Results, other: Results, identity: Identity) -> dict[str, list[Condition]]:
    """Return the conditions of both anonymisers by attacker, those of the strongest attackers first."""
    best: list[Outcome] = []
    for results in (first, other):
        best += [outcome for outcome in results.outcomes if outcome.identity == identity]
    ours = best[0].strongest
    theirs = best[1].strongest
    label = f"strongest of either: {theirs} and {ours}"
    if ours == theirs:
        label = f"{ours}, strongest of both"
    pairs = {label: [best[0].condition, best[1].condition]}
    for row in (*first.conditions, *other.conditions):
        if row.identity[:3] == identity and not row.attacker == ours == theirs:
            pairs.setdefault(row.attacker, []).append(row)
    return pairs


def _correct_p_values(pairs: Sequence[PairedRates]) -> None:
    """Correct the p-values of the strongest attackers for their number, and those of the others for theirs."""
    strongest_pairs: list[tuple[dict[str, Interval], str]] = []
    others: list[tuple[dict[str, Interval], str]] = []
    for pair in pairs:
        for position, attacker in enumerate(pair.gaps):
            family = strongest_pairs if position == 0 else others
            family.append((pair.gaps, attacker))
    for family in (strongest_pairs, others):
        corrected = holm([gaps[attacker].p_value for gaps, attacker in family]).tolist()
        for (gaps, attacker), p_value in zip(family, corrected, strict=True):
            gaps[attacker] = replace(gaps[attacker], p_value=p_value)


def _sizes(results: Results, dataset: str) -> str:
    """Describe the sizes of the lists of a data set, which all conditions of one sex share."""
    sizes = []
    for trials in results.main_lists():
        outcome = results.outcomes_of(*trials)[0]
        counts = (outcome.n_enrolled, outcome.n_target, outcome.n_nontarget)
        if outcome.dataset == dataset and not np.isnan(counts).any():
            sizes.append("{} speakers, {} and {} trials".format(*counts))
    return ", ".join(sizes)
