"""The commands on embeddings: ``spkver-eval cosine``, ``align`` and ``attributes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import click

from evaluation import embeddings
from evaluation.commands import shared
from evaluation.commands.tables import show_rows
from evaluation.embeddings import Averaging, Embeddings, read_embeddings
from evaluation.formats import read_key, read_trials, write_conversations, write_scores
from evaluation.linkage import (
    ALIGNMENTS,
    AlignmentSettings,
    link_aligned,
    linked_shares,
    linked_vectors,
)
from evaluation.trials import conversation_key, count_conversations, read_metadata
from evaluation.uncertainty import Resampling
from evaluation.utility import (
    InferenceRisk,
    InferredSets,
    Sides,
    attribute_leakage,
    attribute_risk,
    inferred_sets,
    people_by_k,
    read_labels,
)
from spkbase.console import Command, choice_option, number_option, path_option
from spkbase.errors import ConfigError, DataError, counted, errors_of, few
from spkbase.files import format_table, make_folder

_FORMS = dict.fromkeys(("alignment", "linked"), "") | {"top": "d", "n": "d"}
_FORMS |= dict.fromkeys(("share", "low", "high", "chance"), ".4f")
_Pair = tuple[Embeddings, Embeddings]
_COMPARED = ("none", "centred", "orthogonal", "wasserstein")


@click.command(cls=Command)
@path_option(
    "--enroll", required=True, multiple=True, help="Embeddings of the enrolled; repeatable."
)
@path_option("--test", required=True, multiple=True, help="Embeddings of the tested; repeatable.")
@shared.model_speakers_option
@shared.segment_speakers_option
@shared.pickle_option
@path_option(
    "--trials", required=True, help="List of trials, or a key: which model meets which segment."
)
@shared.mean_option
@number_option(
    "--utterances",
    default=1,
    least=1,
    help="Recordings of a conversation, a test of one speaker; --trials is a key.",
)
@number_option("--seed", help="Seed of the deal of recordings into conversations.")
@path_option(
    "--conversations", help="Folder to write the conversations, their key and speakers to."
)
@path_option(
    "-o", "--output", required=True, help="Scores to write; the extension says in which format."
)
def cosine(
    enroll: tuple[Path, ...],
    test: tuple[Path, ...],
    model_speakers: Path | None,
    segment_speakers: Path | None,
    allow_pickle: bool,
    trials: Path,
    mean: str,
    utterances: int,
    seed: int,
    conversations: Path | None,
    output: Path,
) -> None:
    """Score embeddings by their cosine.

    A model is an enrolled speaker, whose embeddings are averaged, or one enrolled utterance. Who speaks is read from
    --model-speakers, else from the file.

    --enroll and --test take, by content: HDF5 and npz (vectors, ids, speakers); npy with a list of ids;
    Kaldi's ark and scp; files of PyTorch (.pt), safetensors; CSV, TSV and lines 'id v1 v2 ...'; pickled dictionaries
    with --allow-pickle. A folder may hold any of these, Kaldi's archives, or the cache of VoicePrivacy
    (speaker_vectors.pt, id2idx, idx2spk); a pattern in quotes ('xvector.*.scp') stands for several files.

    With --utterances the tested recordings of each speaker are dealt at random into conversations, whose embeddings are
    averaged. Evaluate them with FOLDER/trials as the key and FOLDER/utt2spk.

    Example:
      spkver-eval cosine --enroll enrol.h5 --test trial.h5 --trials trials.txt --output scores.txt
      spkver-eval cosine --enroll e.h5 --test t.h5 --trials key.txt --utterances 5 --conversations five -o five/scores
    """
    if (utterances > 1) != (conversations is not None):
        raise click.UsageError("expected --utterances above 1 with --conversations, or neither")
    listed = read_trials(trials)
    enrolled = read_embeddings(enroll, speakers=model_speakers, allow_pickle=allow_pickle)
    tested = read_embeddings(test, speakers=segment_speakers, allow_pickle=allow_pickle)
    averaging = Averaging(mean)  # type: ignore[arg-type]
    if conversations is not None:
        key = read_key(trials)
        with errors_of(trials):
            dealt, tested = embeddings.deal_embeddings(
                tested, key, utterances, seed=seed, averaging=averaging
            )
            listed = conversation_key(key, dealt)
        speakers_of = dict(zip(tested.ids.tolist(), tested.speakers.tolist(), strict=True))
        write_conversations(conversations, listed, speakers_of, dealt)
        click.echo(f"{count_conversations(dealt, utterances)} -> {conversations}")
    with errors_of(trials):
        scores = embeddings.cosine_scores(enrolled, tested, listed, averaging=averaging)
    write_scores(output, scores)
    for note in enrolled.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{counted(len(scores), 'score')} -> {output}")


@click.command(cls=Command)
@path_option(
    "--original", required=True, multiple=True, help="Embeddings of original speech; repeatable."
)
@path_option("--anonymised", required=True, multiple=True, help="Of anonymised speech; repeatable.")
@shared.model_speakers_option
@path_option(
    "--segment-speakers", help="Speakers of anonymised utterances; default --model-speakers."
)
@path_option(
    "--train-original", multiple=True, help="Training vectors of other speakers, original."
)
@path_option("--train-anonymised", multiple=True, help="The same, anonymised; paired by id.")
@path_option("--train-speakers", help="Speakers of the training vectors: utt2spk.")
@click.option(
    "--own-pairs", is_flag=True, help="Training may use other utterances of the linked speakers."
)
@number_option(
    "--folds", default=5, least=2, help="Folds of speakers, where no training vectors are given."
)
@click.option(
    *("--alignment", "alignments"),
    multiple=True,
    type=click.Choice(ALIGNMENTS),
    default=_COMPARED,
    help="Repeatable.",
)
@click.option(
    "--own-means",
    is_flag=True,
    help="Subtract each side's mean over all linked vectors, not the mean of the training vectors: the attacker "
    "knows the whole list of unlabelled segments.",
)
@click.option(
    "--uncentred", is_flag=True, help="Subtract no mean: maps learn from the vectors as they are."
)
@click.option(
    "--top",
    multiple=True,
    type=click.IntRange(min=1),
    default=(1, 5),
    help="Among the first k; repeatable.",
)
@click.option("--plain", is_flag=True, help="Do not scale vectors to length 1.")
@click.option(
    "--other-extractor", is_flag=True, help="wasserstein: the sides have different extractors."
)
@shared.pickle_option
@shared.resampling_options()
@path_option(
    "-o", "--output", help="Folder for the aligned vectors, ALIGNMENT.h5, for other back-ends."
)
@shared.json_option
def align(
    original: tuple[Path, ...],
    anonymised: tuple[Path, ...],
    model_speakers: Path | None,
    segment_speakers: Path | None,
    train_original: tuple[Path, ...],
    train_anonymised: tuple[Path, ...],
    train_speakers: Path | None,
    own_pairs: bool,
    folds: int,
    alignments: tuple[str, ...],
    own_means: bool,
    uncentred: bool,
    top: tuple[int, ...],
    plain: bool,
    other_extractor: bool,
    allow_pickle: bool,
    resampling: Resampling,
    output: Path | None,
    json_path: Path | None,
) -> None:
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
    linked = _linked_sides(
        read_embeddings(original, speakers=model_speakers, allow_pickle=allow_pickle),
        read_embeddings(
            anonymised, speakers=segment_speakers or model_speakers, allow_pickle=allow_pickle
        ),
        (original[0], anonymised[0]),
    )
    training = None
    if train_original or train_anonymised or own_pairs:
        if not (train_original and train_anonymised):
            text = "expected --train-original and --train-anonymised, or none of them (nor --own-pairs)"
            raise click.UsageError(text)
        training = (
            read_embeddings(train_original, speakers=train_speakers, allow_pickle=allow_pickle),
            read_embeddings(train_anonymised, speakers=train_speakers, allow_pickle=allow_pickle),
        )
        _check_training(training, linked, train_anonymised[0], own_pairs=own_pairs)
    kinds = tuple(dict.fromkeys(alignments))
    _check_dimensions(linked, kinds, anonymised[0])
    settings = AlignmentSettings(
        folds=folds,
        seed=resampling.seed,
        one_extractor=not other_extractor,
        own_means=own_means,
        uncentred=uncentred,
    )
    sides = (linked_vectors(linked[0], unit=not plain), linked_vectors(linked[1], unit=not plain))
    learnt = None
    if training is not None:
        learnt = (
            linked_vectors(training[0], unit=not plain),
            linked_vectors(training[1], unit=not plain),
        )
    rows = []
    for kind in kinds:
        vectors, ranks = link_aligned(sides, learnt, kind, settings)
        shares = linked_shares(ranks, sorted(set(top)), resampling)
        rows += [{"alignment": kind, **row} for row in shares]
        if output is not None:
            embeddings.write_embeddings(
                make_folder(output) / f"{kind}.h5", replace(linked[1], vectors=vectors)
            )
    learnt_from = f"{folds} folds of speakers"
    if training is not None:
        if own_pairs:
            whose = "other utterances of the same speakers"
        else:
            whose = "other speakers"
        learnt_from = f"{len(training[1]):,} pairs of {whose}"
    notes: dict[str, None] = {}
    for side in (*linked, *(training or ())):
        notes |= dict.fromkeys(side.notes)
    report: dict[str, Any] = {
        "segments": len(linked[1]),
        "speakers": len(set(linked[1].speakers)),
        "gallery": len(set(linked[0].speakers)),
        "learnt_from": learnt_from,
        "settings": {
            "own_pairs": own_pairs,
            "own_means": own_means,
            "folds": folds,
            "ridge": settings.ridge,
            "prior": settings.prior,
            "plain": plain,
            "other_extractor": other_extractor,
            "restarts": settings.restarts,
            "uncentred": uncentred,
            **asdict(resampling),
        },
        "links": rows,
        "notes": list(notes),
    }
    if shared.show_json(report, json_path):
        return
    counts = f"{report['segments']:,} segments of {report['speakers']:,} speakers among {report['gallery']:,}"
    means = ""
    if own_means:
        means = ", mean of each side subtracted (level: whole list)"
    elif uncentred:
        means = ", no mean subtracted"
    click.echo(f"{counts}; maps trained on {learnt_from}{means}.\n")
    click.echo(format_table(rows, _FORMS))
    for note in report["notes"]:
        click.echo(f"note: {note}", err=True)


@click.command(cls=Command)
@path_option("--original", required=True, help="Vectors of original speech.")
@path_option("--anonymised", help="Vectors of the same utterances, anonymised.")
@path_option(
    *("--labels", "labels_path"),
    required=True,
    help="Lines 'speaker label' (spk2gender); with --column a table.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="Column of the table; repeatable, one attribute each.",
)
@path_option(
    "--train-original",
    "training",
    help="Training vectors of other speakers; default cross-validation.",
)
@path_option(
    "--train-anonymised", "training_anonymised", help="The same, anonymised: the informed attacker."
)
@click.option(
    *("--sets", "with_sets"),
    is_flag=True,
    help="Add what all attributes together say: who is unique, and who can be named.",
)
@path_option(
    *("--control", "attackers_own"),
    nargs=2,
    metavar="INSIDE OUTSIDE",
    help="Original vectors that an attacker has, of people whose --anonymised speech is published with the attributes, "
    "and of others: add what is inferred about the former beyond the latter.",
)
@shared.segment_speakers_option
@choice_option(
    "--missing",
    choices=["error", "drop"],
    help="Utterances without a label: stop, or drop and count.",
)
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
    with_sets: bool,
    attackers_own: tuple[Path, Path] | None,
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
      spkver-eval attributes --original trials.h5 --anonymised trials_anon.h5 --labels people.csv --column sex \
        --column age --sets --control enrols.h5 others.h5
    """
    if attackers_own is not None and anonymised is None:
        raise ConfigError("--control needs --anonymised", remedy="give the published vectors")
    if training is None and training_anonymised is not None:
        raise ConfigError(
            "--train-anonymised needs --train-original", remedy="give original vectors too"
        )
    if columns:
        tables = {column: read_metadata(labels_path, column) for column in columns}
    else:
        tables = {labels_path.stem: read_labels(labels_path, "label")}

    tested = _read_sides(original, anonymised, segment_speakers, allow_pickle)
    others = None
    if training is not None:
        others = _read_sides(training, training_anonymised, segment_speakers, allow_pickle)
    rows = []
    report: dict[str, Any] = {}
    notes = []
    for name, labels in tables.items():
        with errors_of(labels_path, before=f"attribute {name!r}: "):
            leakage = attribute_leakage(
                tested, labels, training=others, missing=missing, resampling=resampling
            )
        report[name] = leakage.to_dict()
        notes += [f"{name}: {note}" for note in leakage.notes]
        for scenario, recall in leakage.recalls.items():
            interval = recall.interval
            gap = leakage.differences.get(scenario)
            row = {"attribute": name, "scenario": scenario, "UAR [%]": 100 * interval.value}
            row |= {
                "from": 100 * interval.low,
                "to": 100 * interval.high,
                "chance": 100 * recall.chance,
            }
            if gap is not None:
                row |= {
                    "minus original": 100 * gap.value,
                    "low": 100 * gap.low,
                    "high": 100 * gap.high,
                }
            rows.append(row | {"classes": len(recall.recalls), "speakers": recall.n_speakers})
    if training is not None:
        source = "the training set"
    else:
        source = "the other folds of the speakers"
    lines = [f"trained on {source}", *notes]
    settings: Any = {"missing": missing, "resampling": resampling}
    with errors_of(labels_path):
        if with_sets:
            sets = inferred_sets(tested, tables, training=others, **settings)
            report["sets"] = {name: own.to_dict() for name, own in sets.items()}
            lines += ["", format_table(_rows_of_sets(sets))]
        if attackers_own is not None and tested.anonymised is not None:
            inside, outside = (
                read_embeddings(path, speakers=segment_speakers, allow_pickle=allow_pickle)
                for path in attackers_own
            )
            risks = attribute_risk(inside, tested.anonymised, outside, tables, **settings)
            report["risk"] = {name: risk.to_dict() for name, risk in risks.items()}
            lines += ["", format_table(_rows_of_risks(risks))]
    show_rows(rows, report, json_path, "\n".join(lines))


def _rows_of_sets(sets: Mapping[str, InferredSets]) -> list[dict[str, Any]]:
    """Return a row for the true sets and for those of each scenario, rates in per cent with their intervals."""
    columns = people_by_k(sets)
    rows = []
    for number, own in enumerate(sets.values()):
        row = {title: cells[number] for title, cells in columns.items()}
        rates = {"unique": own.unique, "right": own.right, "named": own.named}
        rates |= {"right from one": own.right_by_one, "named from one": own.named_by_one}
        for title, rate in rates.items():
            row[f"{title} [%]"] = rate.text("%")
        rows.append(row | {"by chance": f"{100 / len(own.sizes):.1f}"})
    return rows


def _rows_of_risks(risks: Mapping[str, InferenceRisk]) -> list[dict[str, Any]]:
    """Return a row for each attribute, rates in per cent with their intervals."""
    rows = []
    for name, found in risks.items():
        row: dict[str, Any] = {"attribute": name}
        rates = {"risk": found.risk, "attack": found.attack, "control": found.control}
        for title, rate in rates.items():
            row[f"{title} [%]"] = rate.text("%")
        rows.append(row | {"people": found.n_attacked, "others": found.n_control})
    return rows


def _read_sides(
    original: Path, anonymised: Path | None, speakers: Path | None, allow_pickle: bool
) -> Sides:
    sides = Sides(read_embeddings(original, speakers=speakers, allow_pickle=allow_pickle))
    if anonymised is not None:
        other = read_embeddings(anonymised, speakers=speakers, allow_pickle=allow_pickle)
        embeddings.check_anonymised(sides.original, other)
        sides = sides._replace(anonymised=other)
    return sides


def _linked_sides(original: Embeddings, anonymised: Embeddings, files: tuple[Path, Path]) -> _Pair:
    """Check that the two sides can be linked."""
    people = set(anonymised.speakers)
    known = set(original.speakers)
    absent = sorted(people - known)
    if absent:
        text = f"{len(absent)} of {len(people)} speakers have no original vector to link to: {few(absent)}"
        remedy = "name the speakers by --model-speakers and --segment-speakers utt2spk, or leave these out"
        raise DataError(text, file=files[1], remedy=remedy)
    if len(known) < 2:
        raise DataError("expected at least two original speakers, got one", file=files[0])
    embeddings.check_anonymised(original, anonymised)
    return original, anonymised


def _check_training(training: _Pair, linked: _Pair, file: Path, *, own_pairs: bool) -> None:
    """Check that no vector is used both for training and for linking.

    Training pairs may contain the original vectors that are linked to, since the attacker has them.
    """
    if own_pairs:
        noun = "utterances"
        tested = {*linked[1].ids}
        learnt = {*training[1].ids}
    else:
        noun = "speakers"
        tested = {*linked[0].speakers, *linked[1].speakers}
        learnt = {*training[0].speakers, *training[1].speakers}
    common = sorted(tested & learnt)
    if common:
        text = f"{len(common)} {noun} are both in training and linked: {few(common)}"
        remedy = "give others; --own-pairs allows other utterances of the same speakers; without, --folds of speakers"
        raise DataError(text, file=file, remedy=remedy)
    embeddings.check_anonymised(*training)
    if not own_pairs:
        embeddings.warn_of_copies(
            linked[0], training[0], finding="original utterances are in training too"
        )
    embeddings.warn_of_copies(
        linked[1], training[1], finding="anonymised utterances are in training too"
    )


def _check_dimensions(linked: _Pair, kinds: Sequence[str], file: Path) -> None:
    """Refuse sides of different dimensions for maps that keep the dimension."""
    dimensions = [side.vectors.shape[1] for side in linked]
    same = [kind for kind in kinds if kind not in ("orthogonal", "ridge")]
    if dimensions[0] != dimensions[1] and same:
        got = " and ".join(map(str, dimensions))
        text = (
            f"expected the same number of dimensions on both sides for {', '.join(same)}, got {got}"
        )
        remedy = "use one extractor for both, or --alignment orthogonal or ridge alone"
        raise DataError(text, file=file, remedy=remedy)
