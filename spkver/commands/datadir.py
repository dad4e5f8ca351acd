"""The commands ``spkver datadir`` and ``spkver split``: from folders of recordings to the sets of an evaluation."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spkbase.console import Command, echo_log
from spkbase.errors import DataError

if TYPE_CHECKING:
    from spkver.datadir import DataDir, Split, SplitRules

_PATH = click.Path(path_type=Path)
RECORD = "split.json"


@click.command("datadir", cls=Command)
@click.argument("folder", type=_PATH)
@click.option(*("-o", "--output"), required=True, type=_PATH, help="Folder of the data directory, which holds lists.")
@click.option(
    "--sexes",
    type=_PATH,
    help="Lines 'speaker f|m', or a table whose header has a column sex or gender.",
)
@click.option("--separator", default="-", help="What ends the speaker's name in names of files.")
def datadir(folder: Path, output: Path, sexes: Path | None, separator: str) -> None:
    """Make a data directory of FOLDER, which holds .wav, .flac or .sph files.

    With sub-folders, the first names the speaker: anna/01.wav is the utterance anna-01 of anna. Without, the name of
    the file begins with it: anna-01.wav. The recordings stay where they are.
    """
    from spkver.datadir import datadir_of_folder, match_genders, write_datadir

    if (output / "wav.scp").exists():
        raise DataError(
            "a data directory is there already", file=output, remedy="remove it, or choose another --output"
        )
    with echo_log(logging.WARNING):
        made = datadir_of_folder(folder, output, separator=separator)
    speakers = set(made.speakers.values())
    if sexes is not None:
        made = replace(made, genders=match_genders(read_sexes(sexes), speakers, sexes))
    write_datadir(made)
    click.echo(f"{output}: {len(made)} utterances of {_people(made)}")


@click.command("split", cls=Command)
@click.argument("datadir", type=_PATH)
@click.option(*("-o", "--output"), required=True, type=_PATH, help="Folder of the new data directories.")
@click.option("--twin", type=_PATH, help="Its anonymised twin: a data directory of the same utterances.")
@click.option("--suffix", metavar="_NAME", help="What the names of the twin's parts end with; needed with --twin.")
@click.option("--name", help="What the names of all parts begin with; the name of DATADIR by default.")
@click.option("--training-share", type=float, default=1 / 3, show_default="a third", help="Of the speakers of a sex.")
@click.option("--enrolment-utterances", type=int, default=3, help="Of each tested speaker.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of all draws.")
@click.option("--force", is_flag=True, help="Write over the lists of other recordings, such as of an earlier twin.")
def split(
    datadir: Path, output: Path, twin: Path | None, suffix: str | None, name: str | None, force: bool, **rules: Any
) -> None:
    """Split DATADIR into the sets of an evaluation: training, enrolment and trials.

    A share of the speakers of each sex, drawn by the seed, trains; of each other speaker some utterances, drawn too,
    enrol, and all others are tried against every enrolled speaker of the same sex. Speakers with too few utterances
    train. Without spk2gender women and men are pooled. The audio stays where it is.
    """
    from spkbase.files import write_json
    from spkver.datadir import SplitRules, check_suffix, read_datadir, split_datadir, twin_of_split, write_datadir

    if (twin is None) != (suffix is None):
        raise click.UsageError("--twin and --suffix go together: the anonymised data directory, and a name for it")
    if suffix is not None:
        check_suffix(suffix)
    source, chosen = read_datadir(datadir), SplitRules(**rules)
    made = split_datadir(source, output, name or source.name, chosen)
    copies = [made]
    if twin is not None and suffix is not None:
        copies.append(twin_of_split(made, read_datadir(twin), suffix))
    record = _record(source, made, chosen)
    _check_free(output, copies, record, force=force)
    for parts in copies:
        for part in parts.parts():
            write_datadir(part)
    write_json(output / RECORD, record)
    click.echo(_account(copies))


def read_sexes(path: Path) -> Mapping[str, str]:
    """Speaker to a word, of lines 'speaker f' or of the column sex or gender of a table."""
    from evaluation.trials import read_metadata
    from spkbase.files import read_id_list, read_text_bytes

    header = read_text_bytes(path).partition(b"\n")[0].decode("utf-8-sig", "replace")
    columns = [word for word in re.split(r"[\s,;]+", header) if word.lower() in ("sex", "gender")]
    return read_metadata(path, columns[0]) if columns else read_id_list(path, "speaker f|m")


def _people(part: DataDir) -> str:
    sexes = [part.genders.get(speaker) for speaker in sorted(set(part.speakers.values()))]
    if not part.genders:
        return f"{len(sexes)} speakers of unknown sex"
    counts = [(sexes.count("f"), "women"), (sexes.count("m"), "men")]
    return " and ".join(f"{count} {people}" for count, people in counts if count)


def _record(source: DataDir, made: Split, rules: SplitRules) -> dict[str, Any]:
    return {
        "about": "a data directory split by spkver split",
        "source": source.name,
        "rules": asdict(rules),
        "training": sorted(set(made.training.speakers.values())),
        "enrolment": list(made.enrolls.enrolls or ()),
        "trials": {sex: sorted(part.speakers) for sex, part in made.trials.items()},
    }


def _check_free(output: Path, copies: Sequence[Split], record: dict[str, Any], *, force: bool) -> None:
    """Another split in the same folder would leave parts of itself among the sets; another twin would be lost."""
    from spkbase.files import load_json, read_id_list

    remedy = "choose another --output, or remove what is there"
    before, there = output / RECORD, [part for made in copies for part in made.parts() if part.path.exists()]
    if not before.is_file() and there:
        raise DataError("is there already, and no split of ours", file=there[0].path, remedy=remedy)
    if before.is_file() and load_json(before) != record:
        raise DataError("another split is there already", file=output, remedy=remedy)
    for part in () if force else there:
        wanted = {utterance: str(path.absolute()) for utterance, path in part.recordings.items()}
        if (lists := part.path / "wav.scp").is_file() and read_id_list(lists, "utterance path", rest=True) != wanted:
            remedy = "choose another --suffix or --output, or replace it by --force"
            raise DataError("lists other recordings, such as those of another twin", file=lists, remedy=remedy)


def _account(copies: Sequence[Split]) -> str:
    first = copies[0]
    n_trials = sum(len(part.trials or ()) for part in first.trials.values())
    n_targets = sum(int(part.trials.is_target.sum()) for part in first.trials.values() if part.trials is not None)
    lines = [
        *(f"{part.path}: {len(part)} utterances of {_people(part)}" for part in first.parts()),
        f"{n_targets} target and {n_trials - n_targets} nontarget trials",
        *(f"Note: {note}." for note in first.notes),
    ]
    folder = first.training.path.parent
    if len(copies) > 1:
        suffix = copies[1].training.path.name.removeprefix(first.training.path.name)
        go_on = f"spkver voiceprivacy --data {folder} --suffix {suffix} --output results"
        lines.append(f"The anonymised twin is split in the same way. Go on with: {go_on}")
    else:
        lines.append(f"Go on with: spkver voiceprivacy --data {folder} --suffix _mcadams --output results")
    return "\n".join(lines)
