"""Comparison of anonymisers: whether they were measured alike, and paired differences on the same trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from evaluation.formats import read_key, read_scores
from evaluation.metrics import SortedScores, eer
from evaluation.reports.pictures import short
from evaluation.reports.results import GENDERS, Condition, Results, in_order, strongest, summarise
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Resampling, Sample, holm, paired_differences, sample_from
from spkbase.errors import DataError, few

_RESAMPLES = 200  # for paired differences


def in_common(systems: Mapping[str, Results]) -> tuple[dict[str, Results], list[str]]:
    """Keep the scenarios and attackers that all anonymisers have, as the strongest of more attackers is stronger.

    Returns
    -------
    results : dict of str to Results
        The same results if the attackers are the same. Else the other attackers are left out, and the intervals are
        those of single attackers, as the stated minima are over all attackers.
    notes : list of str
        The attackers that are left out of the results of each anonymiser, and the smallest EER that they reach.

    Raises
    ------
    DataError
        If anonymisers have no attacker in common on a list of trials.
    """
    run: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for name, results in systems.items():
        for row in results.conditions:
            run.setdefault(row.identity[:3], {}).setdefault(name, set()).add(row.attacker)
    lists = {name: {row.identity[:2] for row in results.conditions} for name, results in systems.items()}
    common = dict[tuple[str, ...], set[str]]()
    for where, attackers in run.items():
        having = [name for name in systems if where[:2] in lists[name]]
        common[where] = set.intersection(*(attackers.get(name, set()) for name in having))
        if not common[where] and len(attackers) == len(having):
            each = "; ".join(f"{name} has {few(known)}" for name, known in attackers.items())
            text = f"expected an attacker that all results have, but on {', '.join(where)} {each}"
            raise DataError(text, remedy="evaluate all anonymisers with the same setting 'attackers'")
    found, notes = dict[str, Results](), []
    for name, results in systems.items():
        shared: list[Condition] = []
        left: list[Condition] = []
        for row in results.conditions:
            side = shared if row.attacker in common[row.identity[:3]] else left
            side.append(row)
        found[name] = replace(results, conditions=tuple(shared), outcomes=in_order(summarise(shared)))
        if left:
            best = strongest([row for row in left if row.scenario != "original"] or left)
            names = few(dict.fromkeys(row.attacker for row in left))
            text = f"{name} was also attacked by {names}: the smallest equal error rate is {100 * best.eer.value:.1f} %"
            notes.append(f"{text} ({best.attacker}, {name_list(best.dataset, best.gender)}, {best.scenario}).")
    return (found, notes) if notes else (dict(systems), notes)


def paired_rates(
    systems: Mapping[str, Results], folders: Mapping[str, Path]
) -> list[tuple[str, str, dict[str, Interval], str]]:
    """Return the differences in EER between each anonymiser and the first one, on the same trials.

    Both anonymisers share the resamples of speakers, so that effects of easy and hard speakers cancel. The number of
    resamples is that of the first results, at most 200, because the interval needs only the standard deviation. The
    scenario is the best informed one that both have.

    Parameters
    ----------
    systems : mapping of str to Results
        Results by name; the others are compared with the first.
    folders : mapping of str to path
        Folders to which the paths in the results are relative, by name.

    Returns
    -------
    list of (str, str, dict of str to Interval, str)
        For each other anonymiser and list its name, the list with the scenario, the differences by attacker with
        intervals and p-values, and the reason if there are none. The difference of the strongest attackers comes first.
        P-values of these first differences are corrected for their number by `holm`, those of all others for theirs.
    """
    (base, first), *others = systems.items()
    settings = first.settings
    asked = settings.evaluation.resamples
    count = _RESAMPLES if asked is None else min(asked, _RESAMPLES)
    resampling = Resampling(count, settings.seed, settings.evaluation.level or 0.95)
    found = []
    for (dataset, gender), (name, results) in product(first.main_lists(), others):
        strongest = [{one.scenario: one for one in both.outcomes_of(dataset, gender)} for both in (first, results)]
        common = [one for one in strongest[0] if one in strongest[1] and one != "original"]
        if not common or not resampling.resamples:
            continue
        best = [outcomes[common[-1]] for outcomes in strongest]
        names = [one.strongest for one in best]
        alike = names[0] == names[1]
        label = f"{names[0]}, strongest of both" if alike else f"strongest of either: {names[1]} and {names[0]}"
        pairs: dict[str, list[Condition]] = {label: [one.condition for one in best]}
        for row in (*first.conditions, *results.conditions):
            if row.identity[:3] == (dataset, gender, common[-1]) and not (alike and row.attacker == names[0]):
                pairs.setdefault(row.attacker, []).append(row)
        gaps, problem = dict[str, Interval](), ""
        try:
            for attacker, rows in pairs.items():
                one, other = zip(rows, (folders[base], folders[name]), strict=True)
                gaps[attacker] = rate_difference(one, other, resampling)
        except DataError as error:
            gaps, problem = {}, f"No paired differences: {error}"
        found.append((name, f"{name_list(dataset, gender)}, {common[-1]}", gaps, problem))
    for place in (slice(1), slice(1, None)):  # the strongest attackers, and all others
        family = [(gaps, attacker) for _, _, gaps, _ in found for attacker in list(gaps)[place]]
        corrected = holm([gaps[attacker].p_value for gaps, attacker in family]).tolist()
        for (gaps, attacker), p_value in zip(family, corrected, strict=True):
            gaps[attacker] = replace(gaps[attacker], p_value=p_value)
    return found


def samples_of(condition: Condition, folder: Path) -> list[Sample]:
    """Return the trials of each draw of a condition, ready for resampling.

    Raises
    ------
    DataError
        If files are missing or lie outside the folder, or there are fewer than two speakers.
    """
    files, key, speakers = condition.files(folder)
    owners, trials = read_speakers(speakers) if speakers else None, read_key(key)
    return [sample_from(read_scores(file), trials, segment_speakers=owners, bootstrap_by="id")[0] for file in files]


def rate_difference(base: tuple[Condition, Path], other: tuple[Condition, Path], resampling: Resampling) -> Interval:
    """Return the difference in EER of two conditions, the other minus the base, in shared resamples of speakers.

    Parameters
    ----------
    base, other : (Condition, path)
        Conditions on the same trials, with the folders of their files.
    resampling : Resampling

    Raises
    ------
    DataError
        As `samples_of`; or if the trials differ.
    """

    def rate(scores: SortedScores) -> dict[str, float]:
        return {"eer.rocch": eer(scores)}

    samples = {name: samples_of(*one) for name, one in (("base", base), ("other", other))}
    found: Interval = paired_differences(samples, rate, resampling)["other"]["eer.rocch"]
    return found


def name_list(dataset: str, gender: str) -> str:
    """Name a data set, with the sex unless all speakers are pooled."""
    return short(dataset) + ("" if gender == "all" else f", {short(GENDERS.get(gender, gender))}")


def unlike_in(systems: Mapping[str, Results]) -> list[str]:
    """Return a sentence for each difference between evaluations that may make their figures incomparable.

    It compares scenarios and numbers of enrolled speakers and trials on each data set that several of them have, the
    number of anonymised versions of the training speech, and whether speech is simulated, as far as the results state
    these.
    """
    found: dict[str, dict[str, str]] = {}
    for dataset in dict.fromkeys(name for results in systems.values() for name in results.datasets()):
        for name, results in systems.items():
            if dataset in results.datasets():
                found.setdefault(f"Scenarios of {dataset}", {})[name] = ", ".join(results.scenarios(dataset))
                found.setdefault(f"Trials of {dataset}", {})[name] = _sizes(results, dataset)
    for name, results in systems.items():
        draws = results.anonymiser.training_draws if results.anonymiser else None
        found.setdefault("Anonymised versions of the training speech", {})[name] = "" if draws is None else f"{draws}"
        found.setdefault("Simulated speech", {})[name] = "yes" if results.simulated else "no"
    known = {what: {name: value for name, value in values.items() if value} for what, values in found.items()}
    return [
        f"{what}: {'; '.join(f'{name} {value}' for name, value in values.items())}."
        for what, values in known.items()
        if len(set(values.values())) > 1
    ]


def _sizes(results: Results, dataset: str) -> str:
    """Describe the sizes of the lists of a data set, which all conditions of one sex share."""
    lists = [results.outcomes_of(dataset, gender)[0] for gender in results.main_genders(dataset)]
    counts = [(one.n_enrolled, one.n_target, one.n_nontarget) for one in lists]
    return ", ".join("{} speakers, {} and {} trials".format(*three) for three in counts if not np.isnan(three).any())
