"""The command ``spkver-eval``: the commands of `evaluation.commands`."""

from __future__ import annotations

import logging

import click

from evaluation.commands.examples import EXAMPLES
from spkbase.console import LazyGroup, echo_log
from spkbase.version import __version__

_HERE = "evaluation.commands"
# name: where it is, what it does
COMMANDS = {
    "metrics": (f"{_HERE}.metrics:metrics", "Compute every metric of scores."),
    "zebra": (f"{_HERE}.zebra:zebra", "Compute the ZEBRA profile of scores: what they disclose."),
    "plot": (f"{_HERE}.plot:plot", "Plot scores: one or several systems in one picture."),
    "page": (f"{_HERE}.page:page", "Make the page that a person reads first, from results.json."),
    "challenge": (f"{_HERE}.challenge:challenge", "Assess a whole VoicePrivacy challenge."),
    "normalise": (f"{_HERE}.convert:normalise", "Normalise scores by a cohort of impostors."),
    "calibrate": (f"{_HERE}.convert:calibrate", "Turn scores into log-likelihood ratios."),
    "fuse": (f"{_HERE}.convert:fuse", "Fuse the scores of several systems."),
    "convert": (f"{_HERE}.convert:convert", "Convert scores, a key or trials between formats."),
    "linkability": (f"{_HERE}.linkability:linkability", "How often the owner of a voice is linked among N enrolled."),
    "linkability-batch": (
        f"{_HERE}.linkability_batch:linkability_batch",
        "Linkability of all attackers against all anonymisers.",
    ),
    "linkability-compare": (f"{_HERE}.linkability_compare:linkability_compare", "Who is easy and who is hard to link."),
    "similarity": (f"{_HERE}.similarity:similarity", "Compare voices before and after anonymisation."),
    "cosine": (f"{_HERE}.cosine:cosine", "Score embeddings by their cosine."),
    "align": (f"{_HERE}.align:align", "How many anonymised embeddings are linked once the spaces are aligned."),
    "attributes": (f"{_HERE}.attributes:attributes", "How well sex, age or accent is read from vectors."),
    "wer": (f"{_HERE}.utility:wer", "Compute word and character error rates."),
    "uar": (f"{_HERE}.utility:uar", "Compute the unweighted average recall of emotions."),
    "f0": (f"{_HERE}.utility:f0", "Compute the correlation of pitch before and after anonymisation."),
    "rank": (f"{_HERE}.rank:rank", "Rank systems by utility within each least EER."),
}


@click.group(cls=LazyGroup, table=COMMANDS, examples=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spkver-eval")
@click.option("-v", "--verbose", is_flag=True, help="Tell what is done.")
@click.pass_context
def main(ctx: click.Context, verbose: bool) -> None:
    """Scores in, evidence out: metrics, disclosure and plots of speaker verification scores."""
    ctx.with_resource(echo_log(logging.INFO if verbose else logging.WARNING))


if __name__ == "__main__":
    main()
