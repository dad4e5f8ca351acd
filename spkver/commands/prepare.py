"""The commands ``spkver prepare librispeech`` and ``spkver prepare iemocap``: sets of a challenge from a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spkbase.console import Command

if TYPE_CHECKING:
    from spkver.datadir import DataDir

_PATH = click.Path(path_type=Path)
_LISTS = click.option(
    "--lists", type=_PATH, metavar="FOLDER", help="The challenge's own data directories, whose lists are taken."
)


@click.command("librispeech", cls=Command)
@click.argument("librispeech", type=_PATH)
@click.argument("output", type=_PATH)
@click.option(
    "--year",
    type=click.Choice(["2022", "2024", "2026"]),
    default="2024",
    help="Of the challenge: lists by sex, in 2026 across the sexes.",
)
@_LISTS
@click.option(
    "--subset",
    "subsets",
    multiple=True,
    default=("dev-clean", "test-clean", "train-clean-360"),
    help="Of the corpus; repeatable.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the draws without --lists.")
def librispeech(
    librispeech: Path, output: Path, year: str, lists: Path | None, subsets: tuple[str, ...], seed: int
) -> None:
    """Write libri_dev and libri_test (enrolment and trials) and train-clean-360 to OUTPUT.

    LIBRISPEECH is the unpacked corpus, with SPEAKERS.TXT. Without --lists three of four speakers of each sex are
    enrolled, with a third of their utterances, drawn by the seed; everything else is tried against every enrolled
    speaker of the same sex (in 2026 of both): the numbers are then near the challenge's, not the same.

    The audio stays where it is, FLAC included: wav.scp names it.
    """
    from spkver.corpora import make_librispeech_sets, read_librispeech, write_prepared

    corpus = read_librispeech(librispeech, tuple(dict.fromkeys(subsets)))
    parts = make_librispeech_sets(corpus, output, year=year, lists=lists, seed=seed)
    record: dict[str, Any] = {"corpus": "LibriSpeech", "subsets": list(corpus.recordings), "year": year}
    record |= {"lists": "the challenge's"} if lists is not None else {"lists": "drawn", "seed": seed}
    write_prepared(parts, {"text": corpus.transcripts}, ("librispeech.json", record))
    click.echo(_account(parts))


@click.command("iemocap", cls=Command)
@click.argument("iemocap", type=_PATH)
@click.argument("output", type=_PATH)
@_LISTS
def iemocap(iemocap: Path, output: Path, lists: Path | None) -> None:
    """Write IEMOCAP_dev and IEMOCAP_test to OUTPUT, with utt2emo, spk2fold and text.

    IEMOCAP is the unpacked corpus, the folder of Session1 to Session5. Neutral, sad, angry and happy utterances are
    kept, and excited ones as happy; a session is a fold. Without --lists the woman of the sessions 1, 3 and 5 and the
    man of 2 and 4 are the development set.
    """
    from spkver.corpora import make_iemocap_sets, read_iemocap, speaker_and_fold, write_prepared

    corpus = read_iemocap(iemocap)
    parts = make_iemocap_sets(corpus, output, lists=lists)
    folds = dict(map(speaker_and_fold, corpus.recordings))
    how = "by rule" if lists is None else "the challenge's"
    record = {"corpus": "IEMOCAP", "lists": how, "left_out": corpus.left_out}
    more = {"utt2emo": corpus.emotions, "spk2fold": folds, "text": corpus.transcripts}
    write_prepared(parts, more, ("iemocap.json", record))
    click.echo(_account(parts))
    left_out = ", ".join(f"{count} {label}" for label, count in corpus.left_out.items())
    click.echo(f"Other labels, left out: {left_out or 'none'}")
    click.echo("Go on with: --set utility.emotion=[IEMOCAP_dev,IEMOCAP_test]")


def _account(parts: Sequence[DataDir]) -> str:
    lines = []
    for part in parts:
        line = f"{part.path}: {len(part)} utterances of {len(set(part.speakers.values()))} speakers"
        if part.trials is not None:
            n_targets = int(part.trials.is_target.sum())
            line += f", {n_targets} target and {len(part.trials) - n_targets} nontarget trials"
        lines.append(line)
    return "\n".join(lines)
