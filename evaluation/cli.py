"""The command ``spkver-eval``: it parses options and calls the functions of this package."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from evaluation import formats
from evaluation.console import Group, echo_log
from evaluation.detection import SRE08, Hull, effective_prior, evaluate_detection, hull, hull_min_dcf
from evaluation.errors import DataError
from evaluation.report import format_table, to_json, write_json
from evaluation.trials import split_scores

_PRIORS = ("0.001", "0.01", "0.05", "0.5")
_FILE = click.Path(path_type=Path)

_scores_option = click.option(
    "-s", "--scores", required=True, type=_FILE, help="Scores: lines 'model segment score', or SIDEKIT/BOSARIS HDF5."
)
_key_option = click.option(
    "-k",
    "--key",
    required=True,
    type=_FILE,
    help="Key: lines 'model segment target|nontarget', or SIDEKIT/BOSARIS HDF5.",
)
_missing_option = click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Trials of the key without a score, and scores with ids that the key does not know: stop, or drop and count.",
)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("spkver")
    except PackageNotFoundError:
        return "unknown"


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="spkver-eval")
@click.option("-v", "--verbose", is_flag=True, help="Tell what is done.")
@click.pass_context
def main(ctx: click.Context, verbose: bool) -> None:
    """Scores in, evidence out: detection metrics and plots of speaker verification scores."""
    ctx.with_resource(echo_log(logging.INFO if verbose else logging.WARNING, "evaluation"))


@main.command()
@_scores_option
@_key_option
@_missing_option
@click.option(
    "-p",
    "--prior",
    "priors",
    multiple=True,
    default=_PRIORS,
    show_default=True,
    help="Target prior of a minDCF with costs of 1; repeatable.",
)
@click.option(
    "--json", "json_path", type=_FILE, help="Write JSON to this file; '-' for standard output, then without table."
)
def metrics(scores: Path, key: Path, missing: str, priors: tuple[str, ...], json_path: Path | None) -> None:
    """Compute the detection metrics of scores.

    EER, minDCF and PRBEP are those of the ROC convex hull, with equal scores pooled. minDCF SRE08 has a target prior of
    0.01 and costs of 10 for a miss and 1 for a false alarm, normalised.
    """
    target, nontarget = _split(scores, key, missing)
    result = _metrics(target, nontarget, [(text, _parse_prior(text)) for text in priors])
    if json_path is not None and str(json_path) == "-":
        click.echo(to_json(result))
        return
    if json_path is not None:
        write_json(json_path, result)
    click.echo(_table(result))


def _metrics(target: np.ndarray, nontarget: np.ndarray, priors: list[tuple[str, float]]) -> dict[str, Any]:
    vertices: Hull = hull(target, nontarget)
    result = evaluate_detection(target, nontarget)
    return {
        "n_target": result.n_target,
        "n_nontarget": result.n_nontarget,
        "eer": {"rocch": result.eer},
        "min_dcf": {text: hull_min_dcf(vertices, prior, normalised=False)[0] for text, prior in priors},
        "min_dcf_normalised": {text: hull_min_dcf(vertices, prior)[0] for text, prior in priors},
        "min_dcf_sre08": result.min_dcf_sre08,
        "prbep": result.prbep,
    }


def _table(result: dict[str, Any]) -> str:
    rows = [
        {"metric": "target trials", "value": f"{result['n_target']:,}"},
        {"metric": "nontarget trials", "value": f"{result['n_nontarget']:,}"},
        {"metric": "EER (ROCCH)", "value": f"{100 * result['eer']['rocch']:.3f} %"},
        {"metric": "minDCF SRE08 (normalised)", "value": f"{result['min_dcf_sre08']:.4f}"},
    ]
    for text, cost in result["min_dcf_normalised"].items():
        rows.append({"metric": f"minDCF at prior {text} (normalised)", "value": f"{cost:.4f}"})
    rows.append({"metric": "PRBEP (errors of each kind)", "value": f"{result['prbep']:.1f}"})
    return format_table(rows)


@main.group()
def plot() -> None:
    """Plot scores."""


@plot.command()
@click.option("-s", "--scores", "scores_paths", required=True, multiple=True, type=_FILE, help="Scores; repeatable.")
@click.option(
    "-k", "--key", "key_paths", required=True, multiple=True, type=_FILE, help="Key: one for all, or one each."
)
@click.option("-l", "--label", "labels", multiple=True, help="Name of each system; that of the file by default.")
@click.option(
    "-o", "--output", "outputs", required=True, multiple=True, type=_FILE, help="PNG, PDF or SVG; repeatable."
)
@_missing_option
@click.option(
    "--window",
    type=click.Choice(["sre10", "old", "new", "big"]),
    default="sre10",
    show_default=True,
    help="Part of the plane to show.",
)
@click.option("-p", "--prior", help="Effective target prior of the minDCF point; that of SRE08, 0.0917, by default.")
@click.option("--title", help="Title of the plot.")
@click.option("--steppy", is_flag=True, help="Draw the curve itself too, not only its convex hull.")
def det(
    scores_paths: tuple[Path, ...],
    key_paths: tuple[Path, ...],
    labels: tuple[str, ...],
    outputs: tuple[Path, ...],
    missing: str,
    window: str,
    prior: str | None,
    title: str | None,
    steppy: bool,
) -> None:
    """Plot detection error trade-off curves of one or several systems."""
    from evaluation.plots import System, plot_det

    names = labels or tuple(path.stem for path in scores_paths)
    keys = key_paths * len(scores_paths) if len(key_paths) == 1 else key_paths
    if not len(scores_paths) == len(keys) == len(names):
        counts = f"{len(scores_paths)} of scores, {len(key_paths)} keys and {len(labels)} labels"
        raise click.UsageError(f"expected a key (or one for all) and a label for each file of scores, got {counts}")
    effective = effective_prior(*SRE08) if prior is None else _parse_prior(prior)
    systems = [
        System(name, *_split(scores, key, missing)) for scores, key, name in zip(scores_paths, keys, names, strict=True)
    ]
    plot_det(systems, path=outputs, window=window, prior=effective, title=title, steppy=steppy)


_CONVERTERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path, Any], None]]] = {
    "scores": (formats.read_scores, formats.write_scores),
    "key": (formats.read_key, formats.write_key),
    "trials": (formats.read_trials, formats.write_trials),
}


@main.command(short_help="Convert scores, a key or trials between text and HDF5.")
@click.argument("kind", type=click.Choice(list(_CONVERTERS)))
@click.argument("source", type=_FILE)
@click.argument("destination", type=_FILE)
def convert(kind: str, source: Path, destination: Path) -> None:
    """Convert a file of scores, a key or a list of trials between text and HDF5.

    The content of SOURCE says what it is, the extension of DESTINATION (.txt or .h5) what to write.
    """
    read, write = _CONVERTERS[kind]
    write(destination, read(source))


def _split(scores: Path, key: Path, missing: str) -> tuple[np.ndarray, np.ndarray]:
    read_scores, read_key = formats.read_scores(scores), formats.read_key(key)
    choice: Any = missing
    try:
        return split_scores(read_scores, read_key, missing=choice, unknown=choice)
    except DataError as error:
        raise DataError(f"with the key {key}: {error.text}", file=scores, remedy=_join_remedy(error)) from error


def _join_remedy(error: DataError) -> str:
    return f"{error.remedy}: --missing drop" if error.remedy else "--missing drop leaves such trials out"


def _parse_prior(text: str) -> float:
    try:
        return effective_prior(float(text))
    except ValueError as error:  # DataError is one too
        raise click.BadParameter(
            f"expected a probability between 0 and 1, got {text!r}", param_hint="--prior"
        ) from error


if __name__ == "__main__":
    main()
