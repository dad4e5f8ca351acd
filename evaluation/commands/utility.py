"""The commands ``spkver-eval wer``, ``uar`` and ``f0``: utility of anonymised speech."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evaluation import utility
from evaluation.commands.shared import (
    json_option,
    label_option,
    resampling_options,
    segment_speakers_option,
    warn_of_repeats,
)
from evaluation.commands.tables import show_rows
from evaluation.trials import read_speakers
from evaluation.uncertainty import Interval, Resampling
from spkbase.console import FILE, Command, choice_option, path_option, worker_options
from spkbase.errors import counted, few

logger = logging.getLogger(__name__)

_UNITS = {"wer": "words", "cer": "characters", "cer-without-blanks": "characters without blanks"}


@click.command(cls=Command)
@path_option("--ref", "reference", required=True, help="Reference: Kaldi's text, or sclite's trn.")
@path_option(
    "--hyp",
    "hypotheses",
    required=True,
    multiple=True,
    help="Recognised words, as text; repeatable.",
)
@segment_speakers_option
@label_option
@click.option(
    *("--unit", "units"),
    multiple=True,
    default=("wer",),
    type=click.Choice(list(_UNITS)),
    help="Words, or characters with or without blanks; repeatable.",
)
@choice_option(
    "--normaliser", choices=utility.NORMALISERS, help="none, or lower case without punctuation."
)
@choice_option(
    "--missing",
    choices=["error", "empty", "drop"],
    help="No hypothesis: stop, count as deletions, or drop.",
)
@resampling_options()
@json_option
def wer(
    reference: Path,
    hypotheses: tuple[Path, ...],
    segment_speakers: Path | None,
    labels: tuple[str, ...],
    units: tuple[str, ...],
    normaliser: str,
    missing: str,
    json_path: Path | None,
    resampling: Resampling,
) -> None:
    """Compute word and character error rates.

    Counts are pooled over utterances; intervals are by a bootstrap of speakers, where they are given. With several
    --hyp the differences from the first are given too, from the same resamples.

    Example:
      spkver-eval wer --ref text --hyp text_heard --segment-speakers utt2spk
    """
    names = _names(hypotheses, labels)
    truth = utility.read_transcripts(reference)
    speakers = _speakers(segment_speakers, truth, resampling)
    texts = [(path, utility.read_transcripts(path)) for path in hypotheses]
    rows: list[dict[str, Any]] = []
    report: dict[str, dict[str, Any]] = {}
    for unit in units:
        settings: dict[str, Any] = {
            "unit": _UNITS[unit],
            "normaliser": normaliser,
            "missing": missing,
        }
        counts = [utility.count_errors(truth, text, file=path, **settings) for path, text in texts]
        rates = [
            utility.error_rate(errors, speakers, resampling, segment_speakers) for errors in counts
        ]
        gaps: list[Interval | None] = [None]
        if len(counts) > 1:
            gaps += utility.error_rate_differences(counts, speakers, resampling)
        for name, rate, gap in zip(names, rates, gaps, strict=True):
            rows.append(
                _row(name, unit.upper(), rate.interval, gap)
                | rate.counts
                | {"utterances": rate.n_utterances}
            )
            report.setdefault(name, {})[unit] = rate.to_dict() | _difference(gap)
    for path, text in texts:
        _doubt(path, truth, text, missing)
        case = _case(" ".join(text.values()))
        case_of_truth = _case(" ".join(truth.values()))
        if normaliser == "none" and case and case_of_truth and case != case_of_truth:
            message = "%s: is %s, the reference %s: words that differ in case count as errors"
            message += " (--normaliser basic ignores case)"
            logger.warning(message, path, case, case_of_truth)
    show_rows(rows, report, json_path, f"normaliser: {normaliser}")


@click.command(cls=Command)
@path_option(
    "--ref", "reference", required=True, help="Kaldi's utt2emo: lines 'utterance emotion'."
)
@path_option(
    "--predictions",
    required=True,
    multiple=True,
    help="Lines 'utterance emotion'; repeatable for systems.",
)
@segment_speakers_option
@label_option
@path_option("--spk2fold", help="Fold of each speaker; default one fold a speaker.")
@choice_option(
    "--convention",
    choices=["default", "vpc2024", "pooled"],
    help="Recalls by fold (the challenge's), or in one fold.",
)
@choice_option(
    "--missing", choices=["error", "drop"], help="No prediction, or no label: stop, or drop."
)
@resampling_options()
@json_option
def uar(
    reference: Path,
    predictions: tuple[Path, ...],
    segment_speakers: Path | None,
    labels: tuple[str, ...],
    spk2fold: Path | None,
    convention: str,
    missing: str,
    json_path: Path | None,
    resampling: Resampling,
) -> None:
    """Compute the unweighted average recall of recognised emotions.

    The mean over folds of the mean recall of the classes. Intervals are by a bootstrap of speakers; where these are not
    given there are none, and all utterances are one fold. With several --predictions the differences from the first
    are given too, from the same resamples.

    Example:
      spkver-eval uar --ref utt2emo --predictions predictions.txt --segment-speakers utt2spk
    """
    names = _names(predictions, labels)
    if segment_speakers is None and (spk2fold is not None or convention == "vpc2024"):
        raise click.UsageError("folds are made of speakers: give --segment-speakers")
    truth = utility.read_labels(reference)
    speakers = _speakers(segment_speakers, truth, resampling)
    if segment_speakers is None:
        convention = "pooled"
    folds = None
    if spk2fold is not None:
        folds = utility.read_labels(spk2fold, "fold")
    settings: dict[str, Any] = {"folds": folds, "convention": convention, "missing": missing}
    recognised = [(path, utility.read_labels(path)) for path in predictions]
    counted = [
        utility.confusions(truth, labels, speakers, file=path, **settings)
        for path, labels in recognised
    ]
    known = sorted(set(truth.values()))
    for path, recognised_labels in recognised:
        _doubt(path, truth, recognised_labels, missing)
        strange = sorted(set(recognised_labels.values()) - set(known))
        if strange:
            text = "%s: %d labels do not occur in the reference and count as errors: %s (known: %s)"
            logger.warning(text, path, len(strange), few(strange, repr), few(known, repr))
    averages = [utility.average_recall(confused, resampling) for confused in counted]
    gaps: list[Interval | None] = [None]
    if len(counted) > 1:
        gaps += utility.recall_differences(counted, resampling)
    rows = []
    report = {}
    for name, average, gap in zip(names, averages, gaps, strict=True):
        recalls = {
            f"{label} [%]": round(100 * value, 2) for label, value in average.recalls.items()
        }
        rows.append(
            _row(name, "UAR", average.interval, gap)
            | recalls
            | {"utterances": average.n_utterances}
        )
        report[name] = {"uar": average.to_dict() | _difference(gap)}
    note = f"convention: {convention}; {len(averages[0].folds)} folds; chance: {100 * averages[0].chance:.2f} %"
    show_rows(rows, report, json_path, note)


@click.command(cls=Command)
@click.argument("original", type=FILE)
@click.argument("anonymised", type=FILE)
@path_option("--segment-speakers", help="Speakers of utterances; default ORIGINAL/utt2spk.")
@choice_option(
    "--convention",
    choices=["default", "vpc2022"],
    help="Frames voiced in both, or all (the challenge's).",
)
@worker_options
@resampling_options()
@json_option
@click.pass_obj
def f0(
    track: utility.Tracker,
    original: Path,
    anonymised: Path,
    segment_speakers: Path | None,
    convention: Any,
    jobs: int | None,
    json_path: Path | None,
    resampling: Resampling,
) -> None:
    """Compute the correlation of pitch before and after anonymisation.

    ORIGINAL and ANONYMISED are data directories (or wav.scp files) of the same utterances.

    Example:
      spkver-eval f0 data/mine data/mine_anon
    """
    folder = original if original.is_dir() else original.parent
    map_path = segment_speakers or folder / "utt2spk"
    speakers = read_speakers(map_path)
    recordings = utility.read_recordings(original)
    copies = utility.read_recordings(anonymised)
    utility.speakers_of(recordings, speakers, map_path)
    compared = utility.compare_recordings(
        recordings, copies, track, jobs=jobs, file=anonymised, convention=convention
    )
    correlations = {name: round(pitch.correlation, 9) for name, pitch in compared.items()}
    _doubt(anonymised, dict.fromkeys(compared, 1.0), correlations)
    mean = utility.mean_correlation(
        compared, speakers, resampling=resampling, convention=convention
    )
    row = {
        "system": anonymised.name,
        "rho_F0": mean.interval.value,
        "from": mean.interval.low,
        "to": mean.interval.high,
        "deviation": mean.deviation,
        "same voicing": mean.voicing_agreement,
        "utterances": mean.n_utterances,
        "undefined": mean.n_undefined,
    }
    note = f"convention: {convention}; tracker: pyin"
    show_rows([row], {anonymised.name: {"f0": mean.to_dict()}}, json_path, note, form=".4f")


def _speakers(
    path: Path | None, truth: Mapping[str, str], resampling: Resampling
) -> dict[str, str]:
    """Read the map of speakers; without one, all utterances count as one speaker, and there is no interval."""
    if path is not None:
        return read_speakers(path)
    if resampling.resamples:
        logger.warning("no intervals without speakers: give --segment-speakers, or --bootstrap 0")
    return dict.fromkeys(truth, "all")


def _doubt(
    path: Path, truth: Mapping[str, Any], values: Mapping[str, Any], missing: str = "error"
) -> None:
    """Warn of omitted utterances, and of a file that equals the reference."""
    shared = truth.keys() & values.keys()
    lone = sorted(truth.keys() ^ values.keys())
    if missing == "drop" and lone:
        logger.warning(
            "%s: dropped %s not in both files: %s",
            path,
            counted(len(lone), "utterance"),
            few(lone, repr),
        )
    if all(truth[name] == values[name] for name in shared):
        logger.warning(
            "%s: equals the reference (%s): was the same file given twice?",
            path,
            counted(len(shared), "utterance"),
        )


def _case(text: str) -> str:
    """Return the letter case of a text; "" if its script has none."""
    if text.upper() == text.lower():
        return ""
    if text.isupper():
        return "in upper case"
    if text.islower():
        return "in lower case"
    return "in both cases"


def _names(paths: Sequence[Path], labels: Sequence[str]) -> list[str]:
    """Name the systems by labels or else by files, with the path if names are equal."""
    names = list(labels) or [path.name for path in paths]
    if not labels and len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(names) != len(paths) or len(set(names)) < len(names):
        raise click.UsageError(
            f"expected a different label for each of {len(paths)} files, got {', '.join(names)}"
        )
    warn_of_repeats(paths)
    return names


def _row(name: str, title: str, rate: Interval, gap: Interval | None) -> dict[str, Any]:
    values = {"[%]": 100 * rate.value, "from": 100 * rate.low, "to": 100 * rate.high}
    if gap is not None:
        values |= {"minus first": 100 * gap.value, "low": 100 * gap.low, "high": 100 * gap.high}
    return {"system": name, "measure": title, **values}


def _difference(gap: Interval | None) -> dict[str, Any]:
    if gap is None:
        return {}
    return {"difference": gap.to_dict()}
