"""Commands that prepare speech: ``spkver datadir``, ``split``, ``prepare``, ``simulate`` and ``features export``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spkbase import console
from spkbase.errors import DataError, Problems, counted
from spkbase.files import write_text
from spkbase.progress import LEVEL
from spkver.commands.options import datadir_argument

if TYPE_CHECKING:
    from spkver.datadir import DataDir

logger = logging.getLogger(__name__)
_LISTS = console.path_option("--lists", metavar="FOLDER", help="Folder with the challenge's lists.")


@click.command("datadir", cls=console.Command)
@click.argument("folder", type=console.FILE)
@console.path_option(
    "-o", "--output", required=True, help="Folder to write the data directory to; it holds lists."
)
@console.path_option("--sexes", help="Lines 'speaker f|m', or a table with a column sex or gender.")
@click.option("--separator", default="-", help="Separator after the speaker's name in file names.")
@console.path_option(
    "--table", help="CSV or TSV table, with a header, of recordings; paths are relative to FOLDER."
)
@click.option("--speaker", metavar="COLUMN", help="Column of the table with the speakers.")
@click.option("--path", metavar="COLUMN", help="Column of the table with the paths.")
@click.option("--sex", metavar="COLUMN", help="Column of the table with the sexes.")
@click.option(
    "--text",
    metavar="COLUMN",
    help="Column of the table with the words; they become the file text.",
)
@click.option(
    "--columns", metavar="NAME,NAME", help="Names of all columns of a table without a header."
)
@click.option(
    "--drop-unusable",
    is_flag=True,
    help="Leave out recordings that are unreadable, too short or silent.",
)
def datadir(
    folder: Path,
    output: Path,
    sexes: Path | None,
    separator: str,
    table: Path | None,
    speaker: str | None,
    path: str | None,
    sex: str | None,
    text: str | None,
    columns: str | None,
    drop_unusable: bool,
) -> None:
    """Make a data directory of FOLDER, which holds .wav, .flac, .sph, .ogg or .mp3 files of one channel each.

    The first sub-folder names the speaker: anna/01.wav is the utterance anna-01 of anna. Without sub-folders the
    file name begins with the speaker: anna-01.wav. Blanks in names become _ in ids. Recordings are not copied. The
    command names recordings that are clipped, far too quiet or short, and refuses those that are silent, shorter than
    0.1 s or unreadable. With --table, a table such as those of Common Voice lists speakers and recordings, perhaps
    their words too; --columns names the columns of one without a header.

    Example:
      spkver datadir recordings --output data/mine --sexes speakers.tsv
      spkver datadir cv/clips --table cv/validated.tsv --speaker client_id --path path --text sentence -o data/cv
      spkver datadir cv/clips --table list-A.txt --columns path,speaker --speaker speaker --path path -o data/A
    """
    from spkver.datadir import (
        datadir_of_folder,
        datadir_of_table,
        match_sexes,
        read_sexes,
        texts_of_table,
        write_datadir,
    )

    if (output / "wav.scp").exists():
        remedy = "remove it, or choose another --output"
        raise DataError("a data directory is there already", file=output, remedy=remedy)
    if (table or speaker or path or sex or text or columns) and not (table and speaker and path):
        raise click.UsageError(
            "--table, --speaker and --path go together, and --sex, --text and --columns with them"
        )
    header = [name.strip() for name in (columns or "").split(",") if name.strip()]
    texts: dict[str, str] = {}
    with console.echo_log(LEVEL):
        if table and speaker and path:
            made = datadir_of_table(
                table, output, speaker=speaker, path=path, sex=sex, folder=folder, header=header
            )
            if text:
                texts = texts_of_table(table, path=path, text=text, header=header)
        else:
            made = datadir_of_folder(folder, output, separator=separator)
        target = output.resolve()
        for recording in made.recordings.values():
            if target in map(Path.resolve, recording.parents):
                remedy = "choose another --output"
                raise DataError("holds recordings of FOLDER", file=output, remedy=remedy)
        made = _usable(made, folder, drop_unusable)
    if sexes is not None:
        speakers = set(made.speakers.values())
        made = replace(made, sexes=match_sexes(read_sexes(sexes), speakers, sexes))
    write_datadir(made)
    if texts:
        lines = [f"{name} {texts[name]}\n" for name in sorted(made.recordings) if name in texts]
        write_text(output / "text", "".join(lines))
    click.echo(f"{output}: {counted(len(made), 'utterance')} of {_people(made)}")


@click.command("split", cls=console.Command)
@datadir_argument
@console.path_option("-o", "--output", required=True, help="Folder of the new data directories.")
@console.path_option(
    "--twin", help="Anonymised version of DATADIR: a data directory of the same utterances."
)
@click.option(
    "--suffix",
    metavar="_NAME",
    help="Ending of the names of the anonymised sets; needed with --twin.",
)
@click.option("--name", help="Beginning of the names of all sets; default DATADIR's.")
@click.option(
    "--training-share",
    type=float,
    default=1 / 3,
    show_default="a third",
    help="Share of the speakers of a sex.",
)
@click.option(
    "--enrolment-utterances", type=int, default=3, help="Enrolment utterances of each test speaker."
)
@console.number_option("--seed", help="Seed of all draws.")
@console.choice_option(
    "--missing",
    choices=["error", "drop"],
    help="Utterances that --twin lacks: an error, or left out.",
)
def split(
    datadir: Path,
    output: Path,
    twin: Path | None,
    suffix: str | None,
    name: str | None,
    training_share: float,
    enrolment_utterances: int,
    seed: int,
    missing: Literal["error", "drop"],
) -> None:
    """Split DATADIR into the sets of an evaluation: training, enrolment and trials.

    The seed draws the training speakers, a share of each sex, and the enrolment utterances of each other speaker.
    Trials compare all other utterances with every enrolled speaker of the same sex. Speakers with too few utterances
    become training speakers. Without spk2gender women and men are pooled. Recordings are not copied. Utterances that
    the twin lacks are an error, or left out on both sides, and counted in split.json, by --missing drop.

    Example:
      spkver split data/mine --twin data/mine_anon --suffix _anon --output sets
    """
    from spkver.datadir import SplitRules, check_suffix, read_datadir, split_for_evaluation

    if (twin is None) != (suffix is None):
        raise click.UsageError(
            "--twin and --suffix go together: the anonymised data directory, and a name for it"
        )
    if missing == "drop" and twin is None:
        raise click.UsageError("--missing drop needs --twin, whose missing utterances are left out")
    if suffix is not None:
        check_suffix(suffix)  # check before anything is read
    source = read_datadir(datadir)
    rules = SplitRules(training_share, enrolment_utterances, seed)
    anonymised = None
    if twin is not None:
        anonymised = read_datadir(twin)
    with console.echo_log(LEVEL):
        sets = split_for_evaluation(
            source,
            output,
            twin=anonymised,
            suffix=suffix,
            name=name or "",
            rules=rules,
            missing=missing,
        )
    if twin is not None:
        _warn_of_exchange(datadir, twin)
    sets.write()
    click.echo(_counts(sets.original.parts()))
    for note in sets.notes:
        click.echo(f"Note: {note}.")
    if twin is not None:
        click.echo("The anonymised twin is split in the same way. ", nl=False)
    suffix = suffix or "_mcadams"
    click.echo(
        f"Go on with: spkver voiceprivacy --data {output} --suffix {suffix} --output results"
    )


def _warn_of_exchange(original: Path, twin: Path) -> None:
    """Warn if the original directory holds anonymised speech by its record, and its twin does not."""
    from spkver.anonymization import recorded_anonymizer

    if recorded_anonymizer(original) and not recorded_anonymizer(twin):
        about = "holds anonymised speech, by its anonymization.json, and --twin does not: are the two exchanged?"
        click.echo(f"Warning: {original}: {about}", err=True)


@click.command("librispeech", cls=console.Command)
@click.argument("librispeech", type=console.FILE)
@click.argument("output", type=console.FILE)
@click.option(
    "--year",
    type=click.Choice(["2022", "2024", "2026"]),
    default="2024",
    help="Year of the challenge: lists by sex, in 2026 across the sexes.",
)
@_LISTS
@click.option(
    "--subset",
    "subsets",
    multiple=True,
    default=("dev-clean", "test-clean", "train-clean-360"),
    help="Subset of the corpus; repeatable.",
)
@console.number_option("--seed", help="Seed of the draws without --lists.")
def librispeech(
    librispeech: Path,
    output: Path,
    year: str,
    lists: Path | None,
    subsets: tuple[str, ...],
    seed: int,
) -> None:
    """Write libri_dev and libri_test (enrolment and trials) and train-clean-360 to OUTPUT.

    LIBRISPEECH is the unpacked corpus, with SPEAKERS.TXT. Without --lists the seed draws three of four speakers of each
    sex and a third of their utterances for enrolment. Trials compare all other utterances with every enrolled speaker
    of the same sex (in 2026 of both). Numbers are then near those of the challenge, not equal.

    Recordings are not copied: wav.scp names the FLAC files.

    Example:
      spkver prepare librispeech LibriSpeech data --year 2024
      spkver prepare librispeech LibriSpeech data --lists challenge/data --year 2026
    """
    from spkver.corpora import make_librispeech_sets, read_librispeech, write_prepared

    corpus = read_librispeech(librispeech, tuple(dict.fromkeys(subsets)))
    parts = make_librispeech_sets(corpus, output, year=year, lists=lists, seed=seed)
    record: dict[str, Any] = {
        "corpus": "LibriSpeech",
        "subsets": list(corpus.recordings),
        "year": year,
        "lists": "the challenge's",
    }
    if lists is None:
        record |= {"lists": "drawn", "seed": seed}
    write_prepared(parts, {"text": corpus.transcripts}, ("librispeech.json", record))
    click.echo(_counts(parts))


@click.command("iemocap", cls=console.Command)
@click.argument("iemocap", type=console.FILE)
@click.argument("output", type=console.FILE)
@_LISTS
def iemocap(iemocap: Path, output: Path, lists: Path | None) -> None:
    """Write IEMOCAP_dev and IEMOCAP_test to OUTPUT, with utt2emo, spk2fold and text.

    IEMOCAP is the unpacked corpus, the folder of Session1 to Session5. Neutral, sad, angry and happy utterances are
    kept; excited counts as happy. A session is a fold. Without --lists the women of sessions 1, 3 and 5 and the men of
    sessions 2 and 4 are the development set.

    Example:
      spkver prepare iemocap IEMOCAP_full_release data
    """
    from spkver.corpora import make_iemocap_sets, read_iemocap, speaker_and_fold, write_prepared

    corpus = read_iemocap(iemocap)
    parts = make_iemocap_sets(corpus, output, lists=lists)
    folds = dict(map(speaker_and_fold, corpus.recordings))
    source = "by rule" if lists is None else "the challenge's"
    record = {"corpus": "IEMOCAP", "lists": source, "left_out": corpus.left_out}
    more = {"utt2emo": corpus.emotions, "spk2fold": folds, "text": corpus.transcripts}
    write_prepared(parts, more, ("iemocap.json", record))
    click.echo(_counts(parts))
    left_out = ", ".join(f"{count} {label}" for label, count in corpus.left_out.items())
    click.echo(f"Other labels, left out: {left_out or 'none'}")
    click.echo("Go on with: --set utility.emotion=[IEMOCAP_dev,IEMOCAP_test]")


@click.command("rsr2015", cls=console.ResumableCommand)
@click.argument("output", type=console.FILE)
@click.option(
    "--part", type=click.IntRange(1, 3), default=1, help="1 has sentences, 2 commands, 3 digits."
)
@click.option("--speakers", "n_speakers", type=int, default=36, help="Speakers of each sex.")
@click.option(
    *("--background", "n_background"),
    type=int,
    help="Background speakers of each sex, at most RSR2015's; a third by default.",
)
@click.option(
    "--sentences",
    "n_sentences",
    type=int,
    default=5,
    help="Sentences of a session: up to 30, in part 3 13.",
)
@click.option(
    "--sessions", "n_sessions", type=int, default=7, help="Sessions of each speaker, up to 9."
)
@click.option("--seed", type=int, default=0, help="Seed of all draws.")
@console.choice_option("--gender", choices=["m", "f", "both"], help="Sex of the speakers.")
@console.choice_option(
    "--format", "audio_format", choices=["wav", "sph", "flac"], help="Format of the recordings."
)
@console.worker_options
def rsr2015(
    output: Path,
    part: int,
    n_speakers: int,
    n_background: int | None,
    n_sentences: int,
    n_sessions: int,
    seed: int,
    gender: str,
    audio_format: str,
    jobs: int | None,
) -> None:
    """Write synthetic speech in the layout of RSR2015 to OUTPUT.

    The first third of the speakers are background speakers (m001, ...), the others evaluation speakers (m101, ...).
    With 157 speakers or more there are development speakers too, unless --background is given. Sessions 1, 4 and 7 are
    for enrolment, the others for tests. --speakers 107 --background 50 --sentences 30 --sessions 9 has the size of
    RSR2015's men without development speakers. eSpeak NG speaks: install the extra [demo].

    Example:
      spkver simulate rsr2015 corpus --speakers 12 --sentences 2
    """
    from spkver.corpora import CorpusSize, simulate_rsr2015

    size = CorpusSize(
        n_speakers,
        n_sentences,
        n_sessions,
        n_background=n_background,
        seed=seed,
        gender=gender,
        audio_format=audio_format,
        part=part,
    )
    with console.echo_log():
        click.echo(simulate_rsr2015(output, size, jobs=jobs))


@click.command("voiceprivacy", cls=console.ResumableCommand)
@click.argument("output", type=console.FILE)
@click.option(
    *("--set", "settings"),
    multiple=True,
    metavar="KEY=VALUE",
    help="A size, such as enrolled_f=6 or sentences=3.",
)
@click.option(
    "--like",
    metavar="NAME",
    help="A challenge, vpc2024, whose sets' sizes are taken instead; see --scale.",
)
@click.option("--scale", default="1", metavar="SHARE", help="Factor on these sizes, such as 1/60.")
@console.worker_options
def voiceprivacy(
    output: Path, settings: tuple[str, ...], like: str | None, scale: str, jobs: int | None
) -> None:
    """Write SIMULATED speech in the VoicePrivacy Challenge's layout to OUTPUT.

    The data directories are simulated_train, simulated_test_enrolls, simulated_test_trials_f and
    simulated_test_trials_m. eSpeak NG speaks: install the extra [demo].

    \b
    Sizes, with their defaults
      enrolled_f=16, enrolled_m=13      enrolled women and men
      strangers=2                       speakers of each sex with trials, but not enrolled
      training=24                       training speakers of each sex
      enrolment_utterances=3, trial_utterances=5, training_utterances=5      of each speaker
      sentences=2                       in each utterance
      seed=0                            of all draws

    With --like vpc2024 the sets are libri_dev, libri_test and train-clean-360, with the challenge's numbers of
    speakers, recordings and trials times --scale, to measure time and memory on: speakers repeat few sentences.

    Example:
      spkver simulate voiceprivacy data --set enrolled_f=6 --set enrolled_m=6
      spkver simulate voiceprivacy large --like vpc2024 --scale 1/60
    """
    from fractions import Fraction

    from spkbase.configuration import load_config
    from spkver.corpora import Sizes, simulate_challenge, simulate_voiceprivacy

    sizes = load_config(Sizes, settings=settings)
    if like is not None and sizes != Sizes(seed=sizes.seed):
        raise click.UsageError("--like sets all sizes: give only --set seed=N, or leave --like out")
    try:
        share = float(Fraction(scale))
    except (ValueError, ZeroDivisionError) as error:
        raise click.BadParameter(
            f"expected a number such as 1/60 or 0.05, got {scale!r}"
        ) from error
    with console.echo_log():
        if like is not None:
            click.echo(simulate_challenge(output, like, share, seed=sizes.seed, jobs=jobs))
        else:
            click.echo(simulate_voiceprivacy(output, sizes, jobs=jobs))


@click.command("export", cls=console.Command)
@click.argument("store", type=console.FILE)
@click.argument("folder", type=console.FILE)
def export_features(store: Path, folder: Path) -> None:
    """Write STORE (a recipe's features.h5) as SIDEKIT's feature files, one for each recording, lossless, to FOLDER.

    Conversely, a recipe takes SIDEKIT's feature files, in any of their three forms, in place of its
    features: --set features.files=FOLDER.

    Example:
      spkver features export demo/features.h5 features-of-sidekit
    """
    from spkver.features import export_sidekit, read_feature_table

    click.echo(f"{export_sidekit(read_feature_table(store), folder)} files in {folder}")


def _usable(datadir: DataDir, folder: Path, drop_unusable: bool) -> DataDir:
    """Return the part of a data directory whose recordings can be used, and warn of doubtful ones."""
    from spkver.audio import check_headers, doubtful_recordings, usable_recordings

    problems = Problems()
    usable = usable_recordings(datadir.recordings, problems)
    usable = {name: usable[name] for name in check_headers(usable, problems=problems)}
    try:
        problems.raise_if_any()
    except DataError as error:
        text = f"{len(datadir) - len(usable)} of {len(datadir)} recordings"
        if not drop_unusable:
            text += f" cannot be used: {error}"
            remedy = "correct them, or leave them out: drop_unusable=True"
            raise DataError(text, file=folder, remedy=remedy) from error
        logger.warning("%s: %s are left out: %s", folder, text, error)
    speakers = {name: datadir.speakers[name] for name in usable}
    for doubt in doubtful_recordings(usable):
        logger.warning("%s: %s", folder, doubt)
    return replace(datadir, recordings=usable, speakers=speakers)


def _people(part: DataDir) -> str:
    sexes = [part.sexes.get(speaker) for speaker in sorted(set(part.speakers.values()))]
    if not part.sexes:
        return counted(len(sexes), "speaker") + " of unknown sex"
    parts = []
    for sex, one, several in (("f", "woman", "women"), ("m", "man", "men")):
        count = sexes.count(sex)
        if count:
            parts.append(f"{count} {one if count == 1 else several}")
    return " and ".join(parts)


def _counts(parts: Iterable[DataDir]) -> str:
    lines = []
    for part in parts:
        line = f"{part.path}: {counted(len(part), 'utterance')} of {_people(part)}"
        if part.trials is not None:
            n_targets = int(part.trials.is_target.sum())
            line += f", {n_targets} target and {len(part.trials) - n_targets} nontarget trials"
        lines.append(line)
    return "\n".join(lines)
