"""Linkability on Common Voice: two lists of clips, several anonymisers and attackers, one command.

    python recipes/voiceprivacy/commonvoice.py CLIPS --enroll LIST --test LIST --output DIR [--anonymizer NAME]...
                                              [--anonymised NAME=DIR]... [--extractor NAME]... [--utterances 1,3,5]

CLIPS is the folder ``clips`` of Common Voice. A list names a recording and its speaker in each line: a table with the
columns path and client_id, as ``validated.tsv`` has them, or one without a header whose columns --columns names.
Original speech is measured too. Both sides are anonymised, with separate draws: the attacker enrols with anonymised
speech and compares by the cosine (lazy-informed).

================================== =================================================================================
file in the output                 content
================================== =================================================================================
``data/``                          data directories of both sides, original and anonymised
``vectors/EXTRACTOR/ANONYMISER/``  embeddings
``linkability/EXTRACTOR/...``      results of each condition, as from ``spkver-eval linkability``
``linkability.csv``                the first rank of all conditions, with intervals over speakers
================================== =================================================================================
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evaluation import linkage, reports
from spkbase.console import FILE, ResumableCommand, log_option, path_option, worker_options
from spkbase.errors import ConfigError, DataError, counted, few
from spkbase.files import format_csv, format_table, make_folder, write_text
from spkbase.work import Work
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.datadir import (
    DataDir,
    check_twin,
    datadir_of_table,
    link_twins,
    read_datadir,
    write_datadir,
)
from spkver.extractors import embed

logger = logging.getLogger(__name__)

ORIGINAL = "original"
NOTHING = "none"  # the anonymiser that changes nothing
SIDES = {"enrolment": 0, "trials": 1}  # added to the seed, so that the sides share no draw
COLUMNS = {"extractor": "", "anonymiser": "", "utterances": "", "enrolled": "", "trials": ""}
RATES = {"rank 1": ".4f", "low": ".4f", "high": ".4f", "chance": ".4f"}

Sides = Mapping[str, DataDir]


def read_lists(clips: Path, lists: Mapping[str, Path], folder: Path, columns: str) -> Sides:
    """Write a data directory of each side, and check that they share no recording and every speaker is enrolled."""
    header = [name.strip() for name in columns.split(",") if name.strip()]
    sides = {}
    for side, table in lists.items():
        target = folder / side
        made = datadir_of_table(
            table, target, speaker="client_id", path="path", folder=clips, header=header
        )
        write_datadir(made)
        sides[side] = read_datadir(target)
    shared = sorted(sides["enrolment"].recordings.keys() & sides["trials"].recordings.keys())
    if shared:
        raise DataError(
            f"{counted(len(shared), 'recording')} also in the enrolment list: {few(shared)}",
            file=lists["trials"],
            remedy="give each recording to one side",
        )
    enrolled = set(sides["enrolment"].speakers.values())
    strangers = sorted(set(sides["trials"].speakers.values()) - enrolled)
    if strangers:
        raise DataError(
            f"{counted(len(strangers), 'speaker')} not in the enrolment list: {few(strangers)}",
            file=lists["trials"],
            remedy="enrol them, or leave their lines out",
        )
    return sides


def anonymise(sides: Sides, name: str, *, seed: int, jobs: int | None) -> Sides:
    """Anonymise both sides with separate draws."""
    made = {}
    for side, original in sides.items():
        target = original.path.with_name(f"{side}_{folder_name(name)}")
        made[side] = anonymize_datadir(
            original, target, AnonymizerConfig(name=name), seed=2 * seed + SIDES[side], jobs=jobs
        )
        if name != NOTHING:
            check_twin(original, made[side], jobs=jobs)
    return made


def link_anonymised(sides: Sides, name: str, folder: Path, *, jobs: int | None) -> Sides:
    """Return both sides of speech that was anonymised elsewhere; every recording must exist."""
    suffix = f"_{folder_name(name)}"
    parent = sides["trials"].path.parent
    linked = link_twins(sides.values(), folder, parent, suffix)
    made = {}
    for side, original in sides.items():
        if side not in linked:
            raise DataError(f"no recording of the list of {side} is below it", file=folder)
        made[side] = read_datadir(parent / f"{side}{suffix}")
        check_twin(original, made[side], jobs=jobs)
    return made


def folder_name(name: str) -> str:
    """Return the name of an anonymiser or an extractor without characters that folder names may not contain."""
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in name)


def measure(
    sides: Sides,
    extractor: str,
    condition: str,
    output: Path,
    utterances: Sequence[Any],
    work: Work,
) -> list[dict[str, Any]]:
    """Embed both sides, rank the tested speakers, write the results, and return a row for each number of utterances."""
    folder = make_folder(output / "vectors" / condition)
    vectors = {}
    for side, datadir in sides.items():
        vectors[side] = embed(datadir.path, extractor, folder / f"{side}.h5", work=work)
    ranked = linkage.rank_embeddings(
        vectors["enrolment"], vectors["trials"], utterances=utterances, work=work
    )
    measured = reports.measure_linkage(ranked.tables)
    report = reports.write_linkage(output / "linkability" / condition, measured, plots=True)
    rows = []
    for number, block in report["utterances"].items():
        rows.append(
            {
                "utterances": number,
                "enrolled": report["n_enroll"],
                "trials": len(ranked.tables[linkage.ALL if number == "all" else int(number)]),
                "rank 1": block["rank1"],
                "low": block["low"][-1],
                "high": block["high"][-1],
                "chance": 1 / report["n_enroll"],
            }
        )
    return rows


def parse_anonymised(texts: Sequence[str]) -> dict[str, Path]:
    """Return the folders of speech that was anonymised elsewhere, by name."""
    folders = {}
    for text in texts:
        name, _, folder = text.partition("=")
        if not (name and folder):
            raise ConfigError(f"--anonymised {text}: expected NAME=DIR")
        folders[name] = Path(folder)
    return folders


def parse_utterances(text: str) -> list[Any]:
    """Return numbers of utterances in a trial from a text such as 1,3,all."""
    numbers: list[Any] = []
    for word in text.split(","):
        if word.strip() == "all":
            numbers.append("all")
        elif word.strip().isdecimal() and int(word) > 0:
            numbers.append(int(word))
        else:
            raise ConfigError(f"--utterances {text}: expected numbers or all, such as 1,3,5")
    return numbers


@click.command("commonvoice", cls=ResumableCommand)
@click.argument("clips", type=FILE)
@path_option("--enroll", required=True, metavar="LIST", help="Recordings that the attacker enrols.")
@path_option("--test", required=True, metavar="LIST", help="Recordings whose speaker is sought.")
@click.option("--columns", default="", metavar="NAME,NAME", help="Columns of lists without header.")
@click.option(
    "--anonymizer",
    "anonymizers",
    multiple=True,
    metavar="NAME",
    help="Anonymiser, as of spkver anonymize; repeatable.",
)
@click.option(
    "--anonymised",
    multiple=True,
    metavar="NAME=DIR",
    help="Clips of both lists that NAME anonymised elsewhere; repeatable.",
)
@click.option(
    "--extractor",
    "extractors",
    multiple=True,
    default=["campplus"],
    show_default=True,
    help="Attacker's network, as of spkver embed; repeatable.",
)
@click.option(
    "--utterances", "--L", default="1,3,5", show_default=True, help="Utterances of a trial."
)
@path_option("-o", "--output", required=True, help="Folder for everything.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the anonymisers.")
@worker_options
@log_option
def main(
    clips: Path,
    enroll: Path,
    test: Path,
    columns: str,
    anonymizers: tuple[str, ...],
    anonymised: tuple[str, ...],
    extractors: tuple[str, ...],
    utterances: str,
    output: Path,
    seed: int,
    jobs: int | None,
) -> None:
    """Measure how often speakers of Common Voice are linked, before and after anonymisation.

    CLIPS is the folder of recordings; each list names a path and a client_id in every line. Both sides are anonymised
    with separate draws, and embeddings are compared by the cosine. An interrupted run is resumed by the same command.

    Example:
      spkver commonvoice cv/clips --enroll cv11-A.tsv --test cv11-B.tsv --anonymizer mcadams -o exp/cv
      spkver commonvoice cv/clips --enroll A.txt --test B.txt --columns path,client_id --anonymised B3=b3 -o exp/cv
    """
    numbers = parse_utterances(utterances)
    elsewhere = parse_anonymised(anonymised)
    names = [ORIGINAL, *anonymizers, *elsewhere]
    if len(set(map(folder_name, names))) < len(names):
        text = f"expected anonymisers of different names, none of them {ORIGINAL}: {few(names[1:])}"
        raise ConfigError(text)
    lists = {"enrolment": enroll, "trials": test}
    originals = read_lists(clips, lists, output / "data", columns)
    conditions = {ORIGINAL: originals}
    for name in anonymizers:
        conditions[name] = anonymise(originals, name, seed=seed, jobs=jobs)
    for name, folder in elsewhere.items():
        conditions[name] = link_anonymised(originals, name, folder, jobs=jobs)
    rows = []
    for extractor in extractors:
        for name, sides in conditions.items():
            condition = f"{folder_name(extractor)}/{folder_name(name)}"
            for row in measure(sides, extractor, condition, output, numbers, Work(jobs)):
                if name == ORIGINAL and row["low"] <= row["chance"]:
                    text = "original speech, %s: the right speaker ranks first in %.0f %%, by chance in %.0f %%: %s"
                    shares = 100 * row["rank 1"], 100 * row["chance"]
                    logger.warning(
                        text, extractor, *shares, "are the speakers of both lists right?"
                    )
                rows.append({"extractor": extractor, "anonymiser": name, **row})
    write_text(output / "linkability.csv", format_csv(list(rows[0]), rows))
    click.echo(format_table(rows, COLUMNS | RATES))
    if len(conditions) > 2:
        click.echo(
            f"\nWho is easy and hard to link: {comparing_command(output, extractors, names)}"
        )


def comparing_command(output: Path, extractors: Sequence[str], names: Sequence[str]) -> str:
    """Return the command that compares who is easy and who is hard to link in all conditions."""
    runs = []
    for extractor in map(folder_name, extractors):
        for name in map(folder_name, names):
            runs.append(f"{extractor}/{name}={output / 'linkability' / extractor / name}")
    command = f"spkver-eval linkability-compare --original {ORIGINAL}"
    return shlex.join([*command.split(), *runs, "--output", str(output / "compared")])


if __name__ == "__main__":
    main()
