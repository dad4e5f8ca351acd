"""The command ``spkver``: the commands of `spkver.commands`, and the recipes."""

from __future__ import annotations

import click

from spkbase.console import LazyGroup
from spkbase.version import __version__
from spkver.commands.examples import EXAMPLES
from spkver.commands.recipes import SYSTEMS

# name: where it is, what it does
COMMANDS = {
    "demo": ("spkver.commands.demo:demo", "Run both recipes on synthetic speech: a DET curve and a report."),
    "rsr2015": ("spkver.commands.recipes:rsr2015", "Speaker verification on RSR2015, from audio to a DET curve."),
    "voiceprivacy": ("spkver.recipes.voiceprivacy.run:main", "How much identity leaks through an anonymiser."),
    "status": ("spkver.commands.status:status", "Show which stages of a run are done, stale, missing or damaged."),
    "simulate": ("spkver.commands.simulate:simulate", "Make corpora of synthetic speech, for trying things out."),
    "datadir": ("spkver.commands.datadir:datadir", "Make a data directory of a folder of recordings."),
    "prepare": ("spkver.commands.prepare:prepare", "Make a challenge's sets from LibriSpeech or IEMOCAP."),
    "split": ("spkver.commands.datadir:split", "Split a data directory into training, enrolment and trials."),
    "anonymize": ("spkver.commands.anonymize:anonymize", "Anonymise a data directory."),
    "anonymize-vectors": (
        "spkver.commands.anonymize_vectors:anonymize_vectors",
        "Put pseudo-speakers in place of speakers' vectors, without synthesis.",
    ),
    "train": ("spkver.commands.attack:train", "Train an attacker on data directories."),
    "score": ("spkver.commands.attack:score", "Score trials with an attacker."),
    "verify": ("spkver.commands.attack:verify", "Compare the voices in two recordings."),
    "backend": ("spkver.commands.backend:backend", "Train and score chains on vectors: LDA, WCCN, PLDA, cosine."),
    "transcribe": ("spkver.commands.utility:transcribe", "Recognise the English words of a data directory."),
    "emotion": ("spkver.commands.utility:emotion", "Recognise the emotions of a data directory."),
    "embed": ("spkver.commands.embed:embed", "Extract one vector for each utterance of a data directory."),
    "weights": (
        "spkver.commands.embed:weights",
        "Fetch the weights of the networks CAM++ and GE2E.",
    ),
    "features": ("spkver.commands.features:features", "Exchange features with SIDEKIT."),
}


RECIPES = {
    **{f"rsr2015 {name}": about for name, (_, about) in SYSTEMS.items()},
    "voiceprivacy": "Attackers in four scenarios, before and after an anonymiser: the report.",
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    examples=EXAMPLES,
    more={"Recipes": RECIPES},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="spkver")
def main() -> None:
    """Classic speaker verification: speech in, scores out.

    Scores are evaluated with the command spkver-eval.
    """


if __name__ == "__main__":
    main()
