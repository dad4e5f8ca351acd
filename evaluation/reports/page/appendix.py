"""Checks, what the words mean, all figures, and how the results were made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from evaluation.metrics import SCALE, meaning_of
from evaluation.reports.page.markup import Html, element, join
from evaluation.reports.page.numbers import cell, seconds, unbroken
from evaluation.reports.page.tables import Row, listing, table
from evaluation.reports.privacy_results import Results, as_number
from evaluation.reports.privacy_tables import summary_rows

NOTES_SHOWN = 15
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
# notes on other metrics, which the page does not show, stand in the results alone
_NOTED = ("eer.rocch", "min_cllr", "zebra", "linkability", "intervals:", "intervals.eer.rocch", "intervals.zebra")
_LEVELS = {
    "error": "\N{WARNING SIGN}\N{VARIATION SELECTOR-15} No verdict",
    "warning": "\N{WARNING SIGN}\N{VARIATION SELECTOR-15} Warning",
    "note": "Note",
    "ok": "\N{CHECK MARK} Passed",
}
_TERMS = {
    "Attacker": "A system that knows recordings of some speakers (enrolment), gets another recording (a trial) and "
    "says whose voice it is. Several are trained; the strongest counts, since a real attacker would choose it too.",
    "Original speech": "Nothing is anonymised. This shows how strong the attacker is: with a weak one, privacy looks "
    "better than it is.",
    "Ignorant": "The trials are anonymised, and the attacker does not know it.",
    "Lazy-informed": "The attacker anonymises the enrolment speech as well, but was trained on original speech.",
    "Semi-informed": "The attacker has the anonymiser, and was trained on speech anonymised with it. The most telling "
    "scenario.",
    "Equal error rate (EER)": "How often the attacker is wrong where misses and false alarms are equally frequent: 0 % "
    "is no privacy, 50 % is guessing. Read from the convex hull of the ROC, equal scores pooled.",
    "Interval": "Where the true value may lie, given how few speakers were tested: they are resampled, each with all "
    "trials. Results whose intervals overlap widely need not differ.",
    "Disclosure on average (ZEBRA population)": "What the scores tell over all prior suspicions, in bits: 0 is "
    "nothing, 0.721 everything.",
    "Worst case (ZEBRA individual)": "The strongest evidence in any single trial, as |log10 of the likelihood ratio|, "
    "and its category. " + "; ".join(f"{name}: {meaning_of(name)}" for name, _ in SCALE) + ".",
    "Linkability": "The chance that, of all enrolled speakers, the right one scores highest. It falls as more speakers "
    "are enrolled; guessing gives one over their number. The mean linkability of a speaker is that over all numbers.",
}


def checks(results: Results) -> Html:
    """Build the section of warnings and checks."""
    items = [
        element(
            "li",
            element("span", _LEVELS[level], class_=f"word {level}"),
            element("p", element("strong", name), ". " if name and text else None, unbroken(text)),
        )
        for level, name, text in results.sanity
    ]
    lead = "What could make the verdict wrong, or less certain than it looks."
    return element(
        "section",
        element("h2", "Warnings and checks"),
        element("p", lead, class_="lead"),
        element("ul", items, class_="checks", role="list") if items else _left_out("The results hold no checks."),
        id="checks",
    )


def terms() -> Html:
    """Build the section that explains the words."""
    rows = [join([element("dt", name), element("dd", meaning)]) for name, meaning in _TERMS.items()]
    return element("section", element("h2", "How to read this"), element("dl", rows, class_="terms"), id="terms")


def figures(results: Results) -> Html:
    """Build the section with the numbers of all data sets and sexes, and the notes on them."""
    rows = summary_rows(results)
    columns = [name for name in rows[0] if name not in ("Dataset", "Speakers")]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        heading, (header, *others) = f"{row['Dataset']}, {row['Speakers']}", (row[name] for name in columns)
        groups.setdefault(heading, []).append((header, [cell(other) for other in others]))
    made = table(
        columns,
        groups.items(),
        caption="Strongest attacker of each scenario; intervals in brackets",
        label="All figures",
        numbers=tuple(range(2, len(columns))),
        kind="grid small",
    )
    notes_shown = [note for condition in results.conditions for note in condition.notes if note.startswith(_NOTED)]
    notes = _gathered(sorted(notes_shown))
    items = [element("li", note) for note in notes[:NOTES_SHOWN]]
    if len(notes) > NOTES_SHOWN:
        items.append(element("li", f"and {len(notes) - NOTES_SHOWN} more, which the results hold"))
    below = join([element("h3", "Notes"), element("ul", items)]) if items else None
    return element("section", element("h2", "All figures"), made, below, id="figures")


def _gathered(notes: Iterable[str]) -> list[str]:
    """Those that differ in numbers alone as one, with the least and the largest.

    >>> _gathered(["worth 0.2 errors", "worth 1.7 errors", "worth 0.9 errors", "no error"])
    ['worth 0.2 to 1.7 errors (3 times)', 'no error']
    """
    alike: dict[tuple[str, ...], list[list[str]]] = {}
    for note in notes:
        alike.setdefault(tuple(_NUMBER.split(note)), []).append(_NUMBER.findall(note))
    found = []
    for texts, rows in alike.items():
        columns = [sorted(set(column), key=float) for column in zip(*rows, strict=True)]
        values = [column[0] if len(column) == 1 else f"{column[0]} to {column[-1]}" for column in columns]
        note = "".join(chain(*zip_longest(texts, values, fillvalue="")))
        found.append(f"{note} ({len(rows)} times)" if len(rows) > 1 else note)
    return found


def provenance(results: Results, base: str | None = None) -> Html:
    """Build the section on how the results were made; with links to the score files where their folder is known."""
    parts: list[Html] = []
    anonymiser, lists = results.block("anonymiser"), results.block("lists")
    if anonymiser:
        parts.append(listing(_texts(anonymiser), ("Setting", "Value"), caption="Anonymiser"))
    blocks = [
        listing(rows, (column, "Value"), caption=title)
        for name, column, title in (
            ("run", "Of", "Last run"),
            ("versions", "Software", "Versions"),
            ("seeds", "Of", "Seeds"),
        )
        if (rows := list(_texts(results.block(name))))
    ]
    if blocks:
        parts.append(element("div", blocks, class_="columns"))
    if timings := list(_leaves(results.block("timings"))):
        rows = [(name, seconds(as_number(value)) if not isinstance(value, str) else value) for name, value in timings]
        parts.append(listing(rows, ("Step", "Time"), caption=_TIMINGS))
    if lists:
        made = listing(_texts(lists), ("File", "SHA-256"), caption="Lists that were read", hashes=True)
        parts.append(folded("Lists that were read, with their SHA-256", made))
    if config := results.block("config"):
        parts.append(folded("Configuration", element("pre", element("code", _yaml(config)), tabindex="0")))
    if base is not None and (files := list(_score_files(results, base))):
        made = table(("Condition", "Scores", "Key"), [(None, files)], caption="Score files and keys", kind="plain")
        parts.append(folded(f"Score files and keys of {len(files)} conditions", made))
    content = parts or [_left_out("The results do not say how they were made.")]
    return element("section", element("h2", "How this was made"), content, id="provenance", class_="newpage")


_TIMINGS = "Timings of the last run alone: what was up to date was taken up, which takes next to no time"


def folded(summary: str, content: Html) -> Html:
    """Hide what few need behind a line that opens it, without a script."""
    return element("details", element("summary", summary), content)


def _score_files(results: Results, base: str) -> Iterator[Row]:
    """Yield the files of each condition as links; only those inside the folder of the results."""
    for condition in results.conditions:
        cells = [
            join([_link(name, base) for name in paths_of(condition.values.get(kind))], ", ")
            for kind in ("scores", "key")
        ]
        if any(cells):
            place = (condition.dataset, condition.gender, condition.scenario, condition.attacker)
            yield ", ".join(place), cells


def paths_of(listed: Any) -> list[str]:
    """Return the relative paths that results name, without those that leave their folder."""
    names = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
    return [
        name
        for name in names
        if isinstance(name, str) and name and "\0" not in name and not PurePosixPath(name).is_absolute()
        and ".." not in PurePosixPath(name).parts
    ]  # fmt: skip


def _link(name: str, base: str) -> Html:
    return element("a", name, href=f"{base}{quote(name.encode('utf-8', 'surrogateescape'))}")


def _left_out(text: str) -> Html:
    return element("p", text, class_="left-out")


def _texts(block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in _leaves(block):
        if isinstance(value, list) and not any(isinstance(entry, (list, Mapping)) for entry in value):
            yield name, ", ".join(map(str, value)) or "none"
        else:
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _leaves(block: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested names, joined by dots, with their values."""
    for name, value in block.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value


def _yaml(config: Mapping[str, Any]) -> str:
    """Write a configuration as YAML, which is how it was given."""
    import yaml

    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=110)).strip()
