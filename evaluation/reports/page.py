"""A self-contained HTML page of a privacy evaluation, for screen and paper, without scripts or network access.

`write_page` makes it from the results of a recipe and the score files that they name; `write_comparison` puts several
anonymisers side by side. The templates ``page.html.j2``, ``comparison.html.j2`` and ``parts.html.j2`` hold the text and
escape every value; this module computes the values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.metrics import SCALE, ceiling_note, meaning_of
from evaluation.plots import TradeOff, plot_privacy_utility
from evaluation.reports import pictures
from evaluation.reports.about import Average, Voices
from evaluation.reports.comparison import in_common, name_list, paired_rates, unlike_in
from evaluation.reports.results import GENDERS, Condition, EnrolledSpeaker, Outcome, Results, one_error
from evaluation.reports.rows import Row, number
from evaluation.reports.tables import FIGURES, MISSING, percent, table_rows
from evaluation.reports.verdict import TARGETS, advice, badge, headlines, objections, overall, word_of
from evaluation.trials import REVERSAL, SCENARIO_ORDER
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.files import write_text

SPACE, DASH = "\N{NO-BREAK SPACE}", "\N{EN DASH}"
CHANCE = 0.5

SCENARIO_NAMES = {
    "original": "Original\N{NO-BREAK SPACE}speech",
    "ignorant": "Ignorant",
    REVERSAL: "Reversal",
    "lazy-informed": "Lazy\N{NON-BREAKING HYPHEN}informed",
    "semi-informed": "Semi\N{NON-BREAKING HYPHEN}informed",
}

# measures of utility: name, whether lower is better, and whether they are shown in percent
MEASURES = {
    "wer": ("Word error rate", True, True),
    "wer_to_original": ("Words recognised otherwise than in original speech", True, True),
    "cer": ("Character error rate", True, True),
    "uar": ("Unweighted average recall", False, True),
    "f0": ("F0 correlation", False, False),
}

_NAMING = ("speaker", "speakers", "text", "reason", "notes")  # keys of results whose texts may name speakers
_BREAK = re.compile(r"(?<=\d) (?=(%|points?\b|bit\b))")


def write_page(
    results: Results, path: str | Path, *, folder: str | Path, title: str = "", pseudonyms: bool = False
) -> None:
    """Write the page of a privacy evaluation; the same input gives the same bytes.

    Parameters
    ----------
    results : Results
        See `evaluation.reports.read_results`.
    path : path
        The HTML file.
    folder : path
        Folder to which the paths of scores and keys in the results are relative.
    title : str, optional
        Heading of the page, in place of the name of the anonymiser.
    pseudonyms : bool, optional
        Replace the names of speakers by S01, S02, ..., in the order of the names.

    Raises
    ------
    DataError
        If the results are malformed or the file cannot be written. If scores are missing, the page has a note in place
        of the plot.
    """
    # only a page inside the folder links to scores; one outside may be passed on, and must name no local folder
    place, root = Path(path).absolute().parent.resolve(), Path(folder).resolve()
    base = "../" * len(place.relative_to(root).parts) if place.is_relative_to(root) else None
    write_text(path, render_page(results, folder=folder, base=base, title=title, pseudonyms=pseudonyms))


def render_page(
    results: Results,
    *,
    folder: str | Path,
    base: str | None = None,
    title: str = "",
    pseudonyms: bool = False,
) -> str:
    """Return the page as text; see `write_page`. `base` leads from the page to the folder, for links to scores."""
    with one_error():
        shown = with_pseudonyms(results) if pseudonyms else results
        values = _values(shown, Path(folder), base) | {"title": title, "pseudonyms": pseudonyms}
        return _render("page.html.j2", values)


def with_pseudonyms(results: Results) -> Results:
    """Replace speakers by S01, S02, ..., the enrolled first, by their names, also within texts and utterances."""
    names = {speaker.speaker for condition in results.conditions for speaker in condition.speakers}
    background = [name for name in results.training_speakers if name not in names]
    ordered = list(dict.fromkeys([*sorted(names), *background]))
    codes = {name: f"S{place:02}" for place, name in enumerate(ordered, 1)}
    longest_first = "|".join(map(re.escape, sorted(ordered, key=len, reverse=True))) or r"\b\B"
    name = re.compile(rf"(?<![^\W_])(?:{longest_first})(?![^\W_])")

    def renamed(value: Any, key: str) -> Any:
        if isinstance(value, str):
            return name.sub(lambda match: codes[match[0]], value) if key in _NAMING else value
        if isinstance(value, list | tuple):
            return type(value)(renamed(part, key) for part in value)
        if isinstance(value, Mapping):
            return {inner: renamed(part, key if key == "notes" else inner) for inner, part in value.items()}
        if isinstance(value, Row):
            return replace(value, **renamed(vars(value), ""))  # type: ignore[type-var]
        return value

    changed: Results = renamed(results, "")
    return changed


def write_comparison(sources: Sequence[tuple[Results, str | Path]], path: str | Path, *, title: str = "") -> None:
    """Write one page for several privacy evaluations; see `render_comparison`.

    Raises
    ------
    DataError
        If results are malformed, there are fewer than two, or the file cannot be written.
    """
    write_text(path, render_comparison(sources, title=title))


def render_comparison(sources: Sequence[tuple[Results, str | Path]], *, title: str = "") -> str:
    """Return a page that shows anonymisers side by side, as text; the same input gives the same bytes.

    Parameters
    ----------
    sources : sequence of (Results, path)
        Results, and the folder to which their paths are relative. Equal names are numbered.
    title : str, optional
        Heading of the page.
    """
    if len(sources) < 2:
        raise DataError(f"expected results of at least 2 anonymisers to compare, got {len(sources)}")
    parsed = [results for results, _ in sources]
    names = [results.name or "no anonymiser" for results in parsed]
    names = [
        name if names.count(name) == 1 else f"{name} ({names[: position + 1].count(name)})"
        for position, name in enumerate(names)
    ]
    systems = dict(zip(names, parsed, strict=True))
    folders = {name: Path(folder) for name, (_, folder) in zip(names, sources, strict=True)}
    lists = list(dict.fromkeys(one for results in parsed for one in results.main_lists()))
    with one_error():
        compared, left_out = in_common(systems)
        curves = []
        for count, trials in enumerate(lists, 1):
            worst = {name: outcome for name, results in compared.items() if (outcome := results.worst(*trials))}
            drawn = {
                name: (f"{pictures.short(name)}: {pictures.label_of(outcome)}", outcome, folders[name])
                for name, outcome in worst.items()
            }
            where = name_list(*trials)
            curves.append((where, pictures.score_pictures(drawn, where, f"together-{count}")))
        side_by_side = []
        for dataset in dict.fromkeys(dataset for dataset, _ in lists):
            of_all, of_common = (
                [next((one for one in headlines(results) if one.worst.dataset == dataset), None) for results in kind]
                for kind in (systems.values(), compared.values())
            )
            rows = list(zip(systems, of_common, of_all, strict=True))
            rows.sort(key=lambda row: 1.0 if row[1] is None else -row[1].eer.value)
            side_by_side.append((dataset, rows))
        values: dict[str, Any] = {"systems": systems, "curves": curves, "side_by_side": side_by_side, "title": title}
        values |= {"left_out": left_out, "unlike": unlike_in(systems), "paired": paired_rates(compared, folders)}
        return _render("comparison.html.j2", values)


def decimal(value: Any, decimals: int = 2) -> str:
    """Format a number with decimals; infinity as a sign, NaN as n/a."""
    value = number(value)
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    return f"{value:z.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def count_of(value: Any) -> str:
    """Format a whole number with separators of thousands.

    Examples
    --------
    >>> count_of(12345.0), count_of(2.5), count_of(None)
    ('12,345', '2.5', 'n/a')
    """
    value = number(value)
    return f"{value:,.0f}" if math.isfinite(value) and value == round(value) else decimal(value, 1)


def decimal_ends(figure: Interval, decimals: int, between: str = DASH) -> str:
    """Format the ends of an interval; "" without an interval."""
    return between.join(decimal(end, decimals) for end in (figure.low, figure.high)) if figure.has_interval else ""


def ends(share: Interval) -> str:
    """Format the interval of a share in percent; "" without an interval.

    Examples
    --------
    >>> ends(Interval(0.2, 0.125, 0.3))
    '12.5–30.0\\xa0%'
    """
    return decimal_ends(Interval(0.0, 100 * share.low, 100 * share.high), 1) + f"{SPACE}%" * share.has_interval


def seconds(value: Any) -> str:
    """Format a duration in seconds.

    Examples
    --------
    >>> [seconds(value) for value in (0.034, 12.34, 75, 7384)]
    ['0.03 s', '12.3 s', '1 min 15 s', '2 h 3 min']
    """
    value = number(value)
    if value < 60:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def unbroken(text: str) -> str:
    """Keep numbers on one line with their units.

    Examples
    --------
    >>> unbroken("1.9 % of 70 trials")
    '1.9\\xa0% of 70 trials'
    """
    return _BREAK.sub(SPACE, text)


def level_class(level: int | None) -> str:
    """Return the style class of a level of protection."""
    return "level-none" if level is None else f"level-{level}"


def on_ruler(eer: float) -> str:
    """Return the position of an EER on the ruler from 0 to chance, in percent."""
    return f"{100 * min(max(eer, 0.0), CHANCE) / CHANCE:.4g}%"


def supported(value: float, outcome: Outcome) -> str:
    """Format evidence; above the `individual_ceiling`, which the number of trials sets, format that ceiling."""
    most = outcome.condition.metric("zebra.individual_ceiling").value
    return f"over {decimal(most)}" if value > most * (1 + 1e-9) else decimal(value)


def counts_of(row: Condition | Outcome, words: Mapping[str, str]) -> list[str]:
    """Format the known counts with their nouns."""
    counts = {noun: getattr(row, name) for name, noun in words.items()}
    return [f"{count_of(count)} {noun}" for noun, count in counts.items() if not math.isnan(count)]


def _values(results: Results, folder: Path, base: str | None) -> dict[str, Any]:
    """Return the values that the template of a page shows."""
    level = number(results.settings.evaluation.level)
    averages: dict[str, dict[str, Average]] = {}
    for row in results.averages:
        averages.setdefault(" ".join(filter(None, (row.dataset, row.split))), {})[row.scenario] = row
    curves, speakers, worst_cases = [], [], []
    for count, trials in enumerate(results.main_lists(), 1):
        where, outcomes = name_list(*trials), results.outcomes_of(*trials)
        drawn = {pictures.label_of(outcome): (pictures.label_of(outcome), outcome, folder) for outcome in outcomes}
        of_scores = pictures.score_pictures(drawn, where, f"curves-{count}")
        curves.append((where, [*of_scores, pictures.linkability_picture(outcomes, level, where, f"curves-{count}")]))
        worst = results.worst(*trials)
        if worst is not None and worst.condition.speakers:
            rows = sorted(worst.condition.speakers, key=_exposure)
            known = [row.linkability_mean for row in rows if not math.isnan(row.linkability_mean)]
            picture = pictures.speakers_picture(rows[: len(known)], where, f"speakers-{count}")
            speakers.append((worst, rows, known, picture))
        ranked = [one for one in outcomes if one.condition.worst_case or one.condition.cmc]
        if ranked:
            worst_cases.append((where, ranked, pictures.match_pictures(ranked, where, f"cmc-{count}")))
    return {
        "results": results,
        "averages": averages,
        "curves": curves,
        "several_draws": any(len(outcome.draws) > 1 for outcome in results.outcomes),
        "speakers": speakers,
        "worst": worst_cases,
        "voices": _voices(results),
        "utility_pictures": list(_utility_pictures(results)),
        "figures": table_rows(FIGURES, results.outcomes),
        "base": base,
    }


def _exposure(speaker: EnrolledSpeaker) -> tuple[float, float, str]:
    """Sort key for speakers: highest linkability, then lowest EER first; unknown values last."""
    value, eer = speaker.linkability_mean, speaker.eer
    return 1.0 if math.isnan(value) else -value, 1.0 if math.isnan(eer) else eer, speaker.speaker


def _voices(results: Results) -> list[tuple[str, list[Voices], list[pictures.Picture]]]:
    """Return each data set, its entries on voice similarity, and pictures of the first entry of each sex."""
    known = [entry for entry in results.similarity if entry.deid is not None and entry.deid.known]
    found = []
    for count, dataset in enumerate(results.datasets(), 1):
        entries = [entry for entry in known if entry.dataset == dataset]
        matrices: list[pictures.Picture] = []
        for other, gender in enumerate(results.main_genders(dataset), 1):
            for entry in [entry for entry in entries if entry.gender == gender][:1]:
                matrices += pictures.similarity_pictures(entry, name_list(dataset, gender), f"voices-{count}-{other}")
        if entries:
            found.append((dataset, entries, matrices))
    return found


def _utility_pictures(results: Results) -> Iterator[pictures.Picture]:
    """Draw each value over all speakers against the EER of its data set or else of the worst data set."""
    worst = {headline.worst.dataset: headline for headline in reversed(headlines(results))}
    for measure in ("wer", "uar"):
        points = []
        for figure in results.utility:
            value = figure.rate.value
            names = [name for name in figure.names if name != "all"]
            if figure.measure != measure or not value.known or not worst or any(name in GENDERS for name in names):
                continue
            headline = next((worst[name] for name in names if name in worst), [*worst.values()][-1])
            original = "original" in names and headline.anonymised
            rate = headline.original if original else headline.eer
            if original and not rate.known:
                continue
            name = pictures.short(", ".join(names) or results.name or "anonymised")
            points.append(TradeOff(name, value, rate))
        if points:
            title, lower_is_better, _ = MEASURES[measure]
            options: dict[str, Any] = {"measure": title, "lower_is_better": lower_is_better}
            title = f"Privacy against {title.lower()}"
            options |= {"title": title, "name": f"utility-{measure}"}
            yield pictures.picture("utility", plot_privacy_utility, points, **options)


def _leaves(block: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested names, joined by dots, with their values as text."""
    for name, value in block.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{start}{name}.")
        elif isinstance(value, list) and not any(isinstance(entry, (list, Mapping)) for entry in value):
            yield f"{start}{name}", ", ".join(map(str, value)) or "none"
        else:
            yield f"{start}{name}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _render(template: str, values: Mapping[str, Any]) -> str:
    import jinja2

    try:
        return _environment().get_template(template).render(values).strip() + "\n"
    except jinja2.UndefinedError as error:
        raise LookupError(str(error)) from error


@cache
def _environment() -> Any:
    """Return the templates with their filters; texts are escaped, and characters that HTML forbids are replaced."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: pictures.printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    shown: tuple[Any, ...] = (decimal, decimal_ends, ends, seconds, unbroken, headlines, badge, overall)
    shown += (level_class, on_ruler, supported, pictures.short, objections, advice)
    filters: dict[str, Any] = {function.__name__: function for function in shown}
    environment.filters |= filters | {
        "count": count_of,
        "percent": lambda share, decimals=1: unbroken(percent(number(share), decimals)),
        "counts": counts_of,
        "leaves": lambda block: list(_leaves(block)),
        "level": lambda eer: level_class(word_of(eer)[1]),
        "p_value": lambda value: "<\u00a00.001" if value < 0.001 else decimal(value, 3),
        "list_name": lambda one: name_list(one.dataset, one.gender),
        "gap_ends": lambda gap: decimal_ends(Interval(0.0, 100 * gap.low, 100 * gap.high), 1, " to\u00a0"),
        "points": lambda gap: (
            f"{decimal(100 * gap.value, 1)} points"
            + (f" [{decimal(100 * gap.low, 1)}, {decimal(100 * gap.high, 1)}]" if gap.has_interval else "")
        ),
        "scenario": lambda name: SCENARIO_NAMES.get(name, pictures.short(name)),
        "width": lambda share: f"{100 * min(max(0.0, share), 1.0):.4g}%",
        "width_on_ruler": lambda eer: on_ruler(min(eer.high, CHANCE) - max(eer.low, 0.0)),
    }
    environment.globals |= {
        "measures": MEASURES,
        "ceiling_note": ceiling_note,
        "unknown": math.nan,
        "name_list": name_list,
        "categories": "; ".join(f"{name}: {meaning_of(name)}" for name, _ in SCALE),
        "genders": GENDERS,
        "scenario_order": SCENARIO_ORDER,
        "style": Markup(Path(__file__).with_name("style.css").read_text("utf-8")),
        "targets": TARGETS,
        "warning_sign": "\N{WARNING SIGN}\N{VARIATION SELECTOR-15}",
    }
    return environment
