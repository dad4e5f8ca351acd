"""``spkver-eval align``: how many anonymised segments and speakers are linked once the spaces are aligned."""

from __future__ import annotations

from typing import Any

import click

from evaluation.commands.options import FILE, level_option, show_json
from evaluation.embeddings import Embeddings, check_anonymised, read_embeddings, write_embeddings
from evaluation.linkage import ALIGNMENTS, Side, link_aligned, linked_shares
from evaluation.uncertainty import Resampling
from spkbase.console import Command
from spkbase.errors import DataError, few
from spkbase.files import format_table, make_folder

_FORMS = {
    "alignment": "",
    "linked": "",
    "top": "d",
    "n": "d",
    "share": ".4f",
    "low": ".4f",
    "high": ".4f",
    "chance": ".4f",
}
_DEFAULT = ("none", "centred", "orthogonal", "wasserstein")


@click.command(cls=Command)
@click.option("--original", required=True, multiple=True, type=FILE, help="Embeddings of original speech; repeatable.")
@click.option("--anonymised", required=True, multiple=True, type=FILE, help="Of anonymised speech; repeatable.")
@click.option("--model-speakers", type=FILE, help="Speakers of the original utterances, as in utt2spk.")
@click.option("--segment-speakers", type=FILE, help="Of the anonymised ones; those of --model-speakers by default.")
@click.option("--train-original", multiple=True, type=FILE, help="What maps are learnt from: other speakers' ...")
@click.option("--train-anonymised", multiple=True, type=FILE, help="... with an original of the same id for each.")
@click.option("--train-speakers", type=FILE, help="Speakers of what maps are learnt from, as in utt2spk.")
@click.option(
    "--own-pairs",
    is_flag=True,
    help="These may be other utterances of the speakers who are linked: who holds their enrolment and the anonymiser "
    "can make such pairs.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Without these: folds of speakers, each aligned by a map that learnt from the others.",
)
@click.option(
    "--alignment",
    "alignments",
    multiple=True,
    type=click.Choice(ALIGNMENTS),
    help="Repeatable. [default: all but ridge]",
)
@click.option(
    "--own-means",
    is_flag=True,
    help="Every alignment but none takes off each side's own mean, over all that is linked, in place of the means "
    "that it learnt: knowledge of the whole list of unlabelled segments.",
)
@click.option(
    "--ridge",
    type=click.FloatRange(min=0, min_open=True),
    default=0.1,
    show_default=True,
    help="Of ridge: share of the mean variance.",
)
@click.option(
    "--prior",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Of orthogonal: draws it to the identity, for one extractor and few pairs; 1 is much.",
)
@click.option(
    "--top",
    multiple=True,
    type=click.IntRange(min=1),
    default=(1, 5),
    show_default=True,
    help="Among the first k; repeatable.",
)
@click.option("--plain", is_flag=True, help="Align vectors as they are, not scaled to length 1.")
@click.option("--other-extractor", is_flag=True, help="wasserstein: the two sides are of two extractors.")
@click.option("--restarts", type=click.IntRange(min=1), default=5, show_default=True, help="Of wasserstein then.")
@click.option("--allow-pickle", is_flag=True, help="Read pickles too; nothing that they say is run.")
@click.option(
    "--bootstrap", "replicates", type=click.IntRange(min=0), default=1000, show_default=True, help="Resamples."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all draws.")
@level_option
@click.option("-o", "--output", type=FILE, help="Folder for the aligned vectors, ALIGNMENT.h5, for other back-ends.")
@click.option(
    "--json", "json_path", type=FILE, help="Write JSON to this file; '-' for standard output, then without table."
)
def align(**options: Any) -> None:
    """Link anonymised embeddings to original speakers, after aligning the two spaces.

    Compared are: none (as they are), centred (the mean of each side moved), orthogonal (Procrustes), ridge (any linear
    map), all three learnt on pairs of other speakers, by id; wasserstein (Procrustes without pairs, learnt from the
    training vectors, or from what is linked where none are given). Anonymised segments are linked to the speaker of
    the nearest original segment and to the nearest mean of a speaker, means of speakers to means of speakers. Original
    segments are linked to the speaker of the nearest anonymised one: the accuracy of Champion et al. (ASRU 2021).

    Embeddings are of any form that `spkver-eval cosine --help` names, such as Kaldi's archives.
    """
    sides = _sides(options)
    training = _training(options, sides)
    kinds = tuple(dict.fromkeys(options["alignments"] or _DEFAULT))
    _check_dimensions(sides, kinds, options)
    learn, how = None, {**options, "one_extractor": not options["other_extractor"]}
    original, anonymised = (Side.of(side, unit=not options["plain"]) for side in sides)
    if training is not None:
        learn = Side.of(training[0], unit=not options["plain"]), Side.of(training[1], unit=not options["plain"])
    resampling = Resampling(options["replicates"], options["seed"], options["level"])
    rows = []
    for kind in kinds:
        aligned = link_aligned((original, anonymised), learn, kind, how)
        rows += [{"alignment": kind, **row} for row in linked_shares(aligned, sorted(set(options["top"])), resampling)]
        if options["output"] is not None:
            moved = Embeddings(anonymised.ids, anonymised.speakers, aligned.vectors)
            write_embeddings(make_folder(options["output"]) / f"{kind}.h5", moved)
    report = _report(sides, training, options, rows)
    if show_json(report, options["json_path"]):
        return
    counts = f"{report['segments']:,} segments of {report['speakers']:,} speakers among {report['gallery']:,}"
    means = ", each side's own mean taken off (level: whole list)" if options["own_means"] else ""
    click.echo(f"{counts}; maps are learnt from {report['learnt_from']}{means}.\n")
    click.echo(format_table(rows, _FORMS))
    for note in report["notes"]:
        click.echo(f"note: {note}", err=True)


def _sides(options: dict[str, Any]) -> tuple[Embeddings, Embeddings]:
    """Read what is linked."""
    maps = options["model_speakers"], options["segment_speakers"] or options["model_speakers"]
    original, anonymised = (
        read_embeddings(options[name], speakers=speakers, allow_pickle=options["allow_pickle"])
        for name, speakers in zip(("original", "anonymised"), maps, strict=True)
    )
    people = set(anonymised.speakers.tolist())
    if absent := sorted(people - set(original.speakers.tolist())):
        text = f"{len(absent)} of {len(people)} speakers have no original vector to be linked to: {few(absent)}"
        remedy = "name the speakers by --model-speakers and --segment-speakers utt2spk, or leave these out"
        raise DataError(text, file=options["anonymised"][0], remedy=remedy)
    if len(set(original.speakers.tolist())) < 2:
        raise DataError("expected at least two original speakers, got one", file=options["original"][0])
    check_anonymised(original, anonymised)
    return original, anonymised


def _training(options: dict[str, Any], sides: tuple[Embeddings, Embeddings]) -> tuple[Embeddings, Embeddings] | None:
    """Read what maps are learnt from, if it is given."""
    paths = options["train_original"], options["train_anonymised"]
    if not any(paths) and not options["own_pairs"]:
        return None
    if not all(paths):
        raise click.UsageError("expected --train-original and --train-anonymised, or none of them (nor --own-pairs)")
    original, anonymised = (
        read_embeddings(path, speakers=options["train_speakers"], allow_pickle=options["allow_pickle"])
        for path in paths
    )
    # own pairs may be of the original vectors that are linked to: who enrols has them
    what, first = ("utterances", 1) if options["own_pairs"] else ("speakers", 0)
    linked, learnt = (
        {name for one in both[first:] for name in (one.ids if first else one.speakers).tolist()}
        for both in (sides, (original, anonymised))
    )
    if shared := sorted(linked & learnt):
        text = f"{len(shared)} {what} would be both learnt from and linked: {few(shared)}"
        remedy = "give others; --own-pairs allows other utterances of the same speakers; without, --folds of speakers"
        raise DataError(text, file=paths[1][0], remedy=remedy)
    return original, anonymised


def _check_dimensions(sides: tuple[Embeddings, Embeddings], kinds: tuple[str, ...], options: dict[str, Any]) -> None:
    """Vectors of different dimensions can be compared after some of the alignments alone."""
    original, anonymised = (side.vectors.shape[1] for side in sides)
    same = [kind for kind in kinds if kind not in ("orthogonal", "ridge")]
    if original != anonymised and same:
        text = f"expected as many dimensions on both sides for {', '.join(same)}, got {original} and {anonymised}"
        remedy = "use one extractor for both, or --alignment orthogonal or ridge alone"
        raise DataError(text, file=options["anonymised"][0], remedy=remedy)


def _report(
    sides: tuple[Embeddings, Embeddings],
    training: tuple[Embeddings, Embeddings] | None,
    options: dict[str, Any],
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    """What the JSON holds."""
    original, anonymised = sides
    whose = "other utterances of the same speakers" if options["own_pairs"] else "other speakers"
    learnt = f"{len(training[1]):,} pairs of {whose}" if training else f"{options['folds']} folds of speakers"
    settings = ("own_pairs", "own_means", "folds", "ridge", "prior", "plain", "other_extractor", "restarts")
    return {
        "segments": len(anonymised),
        "speakers": len(set(anonymised.speakers.tolist())),
        "gallery": len(set(original.speakers.tolist())),
        "learnt_from": learnt,
        "settings": {name: options[name] for name in (*settings, "replicates", "seed", "level")},
        "links": rows,
        "notes": list(dict.fromkeys(note for side in (*sides, *(training or ())) for note in side.notes)),
    }
