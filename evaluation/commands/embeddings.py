"""The commands on embeddings: ``spkver-eval cosine``, ``align`` and ``attributes``."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import click

from evaluation import embeddings
from evaluation.commands import shared
from evaluation.commands.tables import show_rows
from evaluation.embeddings import Averaging, Embeddings, read_embeddings
from evaluation.formats import read_trials, write_scores
from evaluation.linkage import ALIGNMENTS, link_aligned, linked_shares, linked_vectors
from evaluation.trials import read_metadata
from evaluation.uncertainty import Resampling
from evaluation.utility import Sides, attribute_leakage, read_labels
from spkbase.console import Command, choice_option, number_option, path_option
from spkbase.errors import ConfigError, DataError, errors_of, few
from spkbase.files import format_table, make_folder

_FORMS = dict.fromkeys(("alignment", "linked"), "") | {"top": "d", "n": "d"}
_FORMS |= dict.fromkeys(("share", "low", "high", "chance"), ".4f")
_FIXED = {"ridge": 0.1, "prior": 0.0, "restarts": 5}
_COMPARED = ("none", "centred", "orthogonal", "wasserstein")


@click.command(cls=Command)
@path_option("--enroll", required=True, multiple=True, help="Embeddings of the enrolled; repeatable.")
@path_option("--test", required=True, multiple=True, help="Embeddings of the tested; repeatable.")
@shared.model_speakers_option
@shared.segment_speakers_option
@shared.pickle_option
@path_option("--trials", required=True, help="List of trials, or a key: which model meets which segment.")
@shared.mean_option
@path_option("-o", "--output", required=True, help="Scores to write; the extension says in which format.")
def cosine(
    enroll: tuple[Path, ...],
    test: tuple[Path, ...],
    model_speakers: Path | None,
    segment_speakers: Path | None,
    allow_pickle: bool,
    trials: Path,
    mean: str,
    output: Path,
) -> None:
    """Score embeddings by their cosine.

    A model is an enrolled speaker, whose embeddings are averaged, or one enrolled utterance. Who speaks is read from
    --model-speakers, else from the file.

    --enroll and --test take, by content: HDF5 and npz (vectors, ids, speakers); npy with a list of ids;
    Kaldi's ark and scp; files of PyTorch (.pt), safetensors; CSV, TSV and lines 'id v1 v2 ...'; pickled dictionaries
    with --allow-pickle. A folder may hold any of these, Kaldi's archives, or the cache of VoicePrivacy
    (speaker_vectors.pt, id2idx, idx2spk); a pattern in quotes ('xvector.*.scp') stands for several files.

    Example:
      spkver-eval cosine --enroll enrol.h5 --test trial.h5 --trials trials.txt --output scores.txt
    """
    listed = read_trials(trials)
    enrolled = read_embeddings(enroll, speakers=model_speakers, allow_pickle=allow_pickle)
    tested = read_embeddings(test, speakers=segment_speakers, allow_pickle=allow_pickle)
    with errors_of(trials):
        scores = embeddings.cosine_scores(enrolled, tested, listed, averaging=Averaging(mean))  # type: ignore[arg-type]
    write_scores(output, scores)
    for note in enrolled.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{len(scores)} scores -> {output}")


@click.command(cls=Command)
@path_option("--original", required=True, multiple=True, help="Embeddings of original speech; repeatable.")
@path_option("--anonymised", required=True, multiple=True, help="Of anonymised speech; repeatable.")
@shared.model_speakers_option
@path_option("--segment-speakers", help="Speakers of anonymised utterances; default --model-speakers.")
@path_option("--train-original", multiple=True, help="Training vectors of other speakers, original.")
@path_option("--train-anonymised", multiple=True, help="The same, anonymised; paired by id.")
@path_option("--train-speakers", help="Speakers of the training vectors: utt2spk.")
@click.option("--own-pairs", is_flag=True, help="Training may use other utterances of the linked speakers.")
@number_option("--folds", default=5, least=2, help="Folds of speakers, where no training vectors are given.")
@click.option(
    *("--alignment", "alignments"), multiple=True, type=click.Choice(ALIGNMENTS), default=_COMPARED, help="Repeatable."
)
@click.option(
    "--own-means",
    is_flag=True,
    help="Subtract each side's mean over all linked vectors, not the mean of the training vectors: the attacker "
    "knows the whole list of unlabelled segments.",
)
@click.option("--uncentred", is_flag=True, help="Subtract no mean: maps learn from the vectors as they are.")
@click.option("--top", multiple=True, type=click.IntRange(min=1), default=(1, 5), help="Among the first k; repeatable.")
@click.option("--plain", is_flag=True, help="Do not scale vectors to length 1.")
@click.option("--other-extractor", is_flag=True, help="wasserstein: the sides have different extractors.")
@shared.pickle_option
@shared.resampling_options()
@path_option("-o", "--output", help="Folder for the aligned vectors, ALIGNMENT.h5, for other back-ends.")
@shared.json_option
def align(resampling: Resampling, **options: Any) -> None:
    """Link anonymised embeddings to original speakers, after aligning the two spaces.

    Alignments: none, centred (means subtracted), orthogonal (Procrustes) and ridge (any linear map), all three trained
    on pairs of other speakers, by id; wasserstein (Procrustes without pairs, trained on the training vectors, or on the
    linked vectors where none are given). Anonymised segments are linked to the speaker of
    the nearest original segment and to the nearest mean of a speaker, speaker means to speaker means. Original
    segments are linked to the speaker of the nearest anonymised one: the accuracy of Champion et al. (ASRU 2021), for
    orthogonal with --uncentred and --own-pairs.

    Embeddings are of any form that `spkver-eval cosine --help` names, such as Kaldi's archives.

    Example:
      spkver-eval align --original orig/xvector.scp --anonymised anon/xvector.scp --model-speakers utt2spk
      spkver-eval align --original o.h5 --anonymised a.h5 --train-original to.h5 --train-anonymised ta.h5
    """
    sides = _sides(options)
    training = _training(options, sides)
    kinds = tuple(dict.fromkeys(options["alignments"]))
    dimensions = [side.vectors.shape[1] for side in sides]
    same = [kind for kind in kinds if kind not in ("orthogonal", "ridge")]
    if dimensions[0] != dimensions[1] and same:
        text = (
            f"expected as many dimensions on both sides for {', '.join(same)}, got {' and '.join(map(str, dimensions))}"
        )
        remedy = "use one extractor for both, or --alignment orthogonal or ridge alone"
        raise DataError(text, file=options["anonymised"][0], remedy=remedy)
    options |= _FIXED | asdict(resampling)
    how = {**options, "one_extractor": not options["other_extractor"]}
    unit = not options["plain"]
    linked = linked_vectors(sides[0], unit=unit), linked_vectors(sides[1], unit=unit)
    learnt = training and (linked_vectors(training[0], unit=unit), linked_vectors(training[1], unit=unit))
    rows = []
    for kind in kinds:
        vectors, ranks = link_aligned(linked, learnt, kind, how)
        shares = linked_shares(ranks, sorted(set(options["top"])), resampling)
        rows += [{"alignment": kind, **row} for row in shares]
        if options["output"] is not None:
            embeddings.write_embeddings(
                make_folder(options["output"]) / f"{kind}.h5", replace(sides[1], vectors=vectors)
            )
    whose = "other utterances of the same speakers" if options["own_pairs"] else "other speakers"
    learnt_from = f"{options['folds']} folds of speakers"
    if training:
        learnt_from = f"{len(training[1]):,} pairs of {whose}"
    settings = ("own_pairs", "own_means", "folds", "ridge", "prior", "plain", "other_extractor", "restarts")
    report: dict[str, Any] = {
        "segments": len(sides[1]),
        "speakers": len(set(sides[1].speakers)),
        "gallery": len(set(sides[0].speakers)),
        "learnt_from": learnt_from,
        "settings": {name: options[name] for name in (*settings, "uncentred", "resamples", "seed", "level")},
        "links": rows,
        "notes": list(dict.fromkeys(note for side in (*sides, *(training or ())) for note in side.notes)),
    }
    if shared.show_json(report, options["json_path"]):
        return
    counts = f"{report['segments']:,} segments of {report['speakers']:,} speakers among {report['gallery']:,}"
    means = ", no mean subtracted" if options["uncentred"] else ""
    means = ", mean of each side subtracted (level: whole list)" if options["own_means"] else means
    click.echo(f"{counts}; maps trained on {report['learnt_from']}{means}.\n")
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
    people, known = set(anonymised.speakers), set(original.speakers)
    if absent := sorted(people - known):
        text = f"{len(absent)} of {len(people)} speakers have no original vector to link to: {few(absent)}"
        remedy = "name the speakers by --model-speakers and --segment-speakers utt2spk, or leave these out"
        raise DataError(text, file=options["anonymised"][0], remedy=remedy)
    if len(known) < 2:
        raise DataError("expected at least two original speakers, got one", file=options["original"][0])
    embeddings.check_anonymised(original, anonymised)
    return original, anonymised


def _training(options: dict[str, Any], sides: tuple[Embeddings, Embeddings]) -> tuple[Embeddings, Embeddings] | None:
    """Read what maps trained on, if it is given."""
    paths = options["train_original"], options["train_anonymised"]
    if not any(paths) and not options["own_pairs"]:
        return None
    if not all(paths):
        raise click.UsageError("expected --train-original and --train-anonymised, or none of them (nor --own-pairs)")
    original, anonymised = (
        read_embeddings(path, speakers=options["train_speakers"], allow_pickle=options["allow_pickle"])
        for path in paths
    )
    if options["own_pairs"]:  # they may be of the original vectors that are linked to: who enrols has them
        what, linked, learnt = "utterances", {*sides[1].ids}, {*anonymised.ids}
    else:
        what, linked = "speakers", {*sides[0].speakers, *sides[1].speakers}
        learnt = {*original.speakers, *anonymised.speakers}
    if common := sorted(linked & learnt):
        text = f"{len(common)} {what} are both in training and linked: {few(common)}"
        remedy = "give others; --own-pairs allows other utterances of the same speakers; without, --folds of speakers"
        raise DataError(text, file=paths[1][0], remedy=remedy)
    embeddings.check_anonymised(original, anonymised)
    if not options["own_pairs"]:
        embeddings.warn_of_copies(sides[0], original, what="original utterances are in training too")
    embeddings.warn_of_copies(sides[1], anonymised, what="anonymised utterances are in training too")
    return original, anonymised


@click.command(cls=Command)
@path_option("--original", required=True, help="Vectors of original speech.")
@path_option("--anonymised", help="Vectors of the same utterances, anonymised.")
@path_option(
    *("--labels", "labels_path"), required=True, help="Lines 'speaker label' (spk2gender); with --column a table."
)
@click.option("--column", "columns", multiple=True, help="Column of the table; repeatable, one attribute each.")
@path_option("--train-original", "training", help="Training vectors of other speakers; default cross-validation.")
@path_option("--train-anonymised", "training_anonymised", help="The same, anonymised: the informed attacker.")
@shared.segment_speakers_option
@choice_option("--missing", of=["error", "drop"], help="Utterances without a label: stop, or drop and count.")
@shared.pickle_option
@shared.resampling_options()
@shared.json_option
def attributes(
    original: Path,
    anonymised: Path | None,
    labels_path: Path,
    columns: tuple[str, ...],
    training: Path | None,
    training_anonymised: Path | None,
    segment_speakers: Path | None,
    missing: Literal["error", "drop"],
    allow_pickle: bool,
    json_path: Path | None,
    resampling: Resampling,
) -> None:
    """Compute how well sex, age, accent or another attribute is recognised from vectors.

    The unweighted average recall of a logistic regression for speakers outside its training data: on original
    vectors (original), on anonymised ones after training on original ones (ignorant), and after training on anonymised
    ones (informed). Intervals are by a bootstrap of speakers, differences from original are from the same resamples.

    Example:
      spkver-eval attributes --original trials.h5 --anonymised trials_anon.h5 --labels spk2gender
    """
    if training is None and training_anonymised is not None:
        raise ConfigError("--train-anonymised needs --train-original", remedy="give original vectors too")
    if columns:
        tables = {column: read_metadata(labels_path, column) for column in columns}
    else:
        tables = {labels_path.stem: read_labels(labels_path, "label")}

    def read(plain: Path, other: Path | None) -> Sides:
        how: dict[str, Any] = {"speakers": segment_speakers, "allow_pickle": allow_pickle}
        sides = Sides(read_embeddings(plain, **how), None if other is None else read_embeddings(other, **how))
        if sides.anonymised is not None:
            embeddings.check_anonymised(sides.original, sides.anonymised)
        return sides

    tested = read(original, anonymised)
    others = None if training is None else read(training, training_anonymised)
    rows, report, notes = [], {}, []
    for name, labels in tables.items():
        with errors_of(labels_path, before=f"attribute {name!r}: "):
            found = attribute_leakage(tested, labels, training=others, missing=missing, resampling=resampling)
        report[name] = found.to_dict()
        notes += [f"{name}: {note}" for note in found.notes]
        for scenario, recall in found.recalls.items():
            interval, gap = recall.interval, found.differences.get(scenario)
            row = {"attribute": name, "scenario": scenario, "UAR [%]": 100 * interval.value}
            row |= {"from": 100 * interval.low, "to": 100 * interval.high, "chance": 100 * recall.chance}
            if gap is not None:
                row |= {"minus original": 100 * gap.value, "low": 100 * gap.low, "high": 100 * gap.high}
            rows.append(row | {"classes": len(recall.recalls), "speakers": recall.n_speakers})
    source = "the training set" if training is not None else "the other folds of the speakers"
    show_rows(rows, report, json_path, "\n".join([f"trained on {source}", *notes]))
