"""The command ``spkver-eval``: the table of `evaluation.commands`, whose help needs no import of `evaluation`."""

from __future__ import annotations

import logging

import click

from spkbase.console import CommandGroup, echo_log
from spkbase.progress import LEVEL
from spkbase.version import __version__

# by name of the command: its function, and a summary
COMMANDS = {
    "metrics": (
        "evaluation.commands.metrics:metrics",
        "Compute every metric of scores.",
    ),
    "zebra": (
        "evaluation.commands.zebra:zebra",
        "Compute the ZEBRA profile of scores: what they disclose.",
    ),
    "disclosure": (
        "evaluation.commands.disclosure:disclosure",
        "What scores disclose about people, on one page.",
    ),
    "plot": (
        "evaluation.commands.plot:plot",
        "Plot scores: one or several systems in one picture.",
    ),
    "page": (
        "evaluation.commands.challenge:page",
        "Write the HTML report of results.json.",
    ),
    "challenge": (
        "evaluation.commands.challenge:challenge",
        "Assess a whole VoicePrivacy challenge.",
    ),
    "normalise": (
        "evaluation.commands.convert:normalise",
        "Normalise scores by a cohort of impostors.",
    ),
    "calibrate": (
        "evaluation.commands.convert:calibrate",
        "Turn scores into log-likelihood ratios.",
    ),
    "fuse": (
        "evaluation.commands.convert:fuse",
        "Fuse the scores of several systems.",
    ),
    "ratios": (
        "evaluation.commands.forensics:ratios",
        "Turn scores into likelihood ratios within bounds.",
    ),
    "validate": (
        "evaluation.commands.forensics:validate",
        "Validate likelihood ratios for a forensic laboratory.",
    ),
    "convert": (
        "evaluation.commands.convert:convert",
        "Convert scores, a key or trials between formats.",
    ),
    "linkability": (
        "evaluation.commands.linkability:linkability",
        "How often the target speaker is linked among N enrolled.",
    ),
    "linkability-extrapolate": (
        "evaluation.commands.linkability:extrapolate",
        "Linkability in populations larger than the gallery.",
    ),
    "singling-out": (
        "evaluation.commands.linkability:single_out",
        "How often exactly one speaker of a crowd is singled out.",
    ),
    "linkability-compare": (
        "evaluation.commands.linkability_compare:linkability_compare",
        "Agreement of runs on easy and hard speakers.",
    ),
    "identify": (
        "evaluation.commands.identify:identify",
        "Identify the speaker among the enrolled, or none of them.",
    ),
    "similarity": (
        "evaluation.commands.similarity:similarity",
        "Compare voices before and after anonymisation.",
    ),
    "cosine": (
        "evaluation.commands.embeddings:cosine",
        "Score embeddings by their cosine.",
    ),
    "align": (
        "evaluation.commands.embeddings:align",
        "Link anonymised embeddings after aligning the spaces.",
    ),
    "attributes": (
        "evaluation.commands.embeddings:attributes",
        "How well sex, age or accent is recognised from vectors.",
    ),
    "wer": (
        "evaluation.commands.utility:wer",
        "Compute word and character error rates.",
    ),
    "uar": (
        "evaluation.commands.utility:uar",
        "Compute the unweighted average recall of emotions.",
    ),
    "f0": (
        "evaluation.commands.utility:f0",
        "Compute the correlation of pitch before and after anonymisation.",
    ),
    "rank": (
        "evaluation.commands.challenge:rank",
        "Rank systems by utility at each minimum EER.",
    ),
}


@click.group(cls=CommandGroup, table=COMMANDS)
@click.version_option(__version__, prog_name="spkver-eval")
@click.option("-v", "--verbose", is_flag=True, help="Log what is done.")
@click.pass_context
def main(ctx: click.Context, verbose: bool) -> None:
    """Scores in, evidence out: metrics, disclosure and plots of speaker verification scores."""
    ctx.with_resource(echo_log(logging.INFO if verbose else LEVEL))
    # it measures speech, unlike `evaluation`, and uses the pitch tracker of this package
    if ctx.invoked_subcommand == "f0":
        from spkver.features import pitch_track

        ctx.obj = pitch_track


if __name__ == "__main__":
    main(prog_name="spkver-eval")
