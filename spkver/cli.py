"""The command ``spkver``: the commands of `spkver.commands`, and the recipes, which are installed with the package."""

from __future__ import annotations

import click

from spkbase.console import CommandGroup
from spkbase.version import __version__

# by words of the command: its function, and a summary
COMMANDS = {
    "demo": (
        "spkver.commands.runs:demo",
        "Run both recipes on synthetic speech: a DET curve and a report.",
    ),
    "rsr2015": ("", "Systems on RSR2015, or on synthetic speech in its form: --corpus simulated."),
    "rsr2015 svm-gmm": (
        "spkver.recipes.rsr2015.svm_gmm:main",
        "MAP supervectors, with and without NAP, and SVMs.",
    ),
    "rsr2015 gmm-ubm": (
        "spkver.recipes.rsr2015.gmm_ubm:main",
        "MAP-adapted models and log-likelihood ratios.",
    ),
    "rsr2015 ivector": (
        "spkver.recipes.rsr2015.ivector:main",
        "i-vectors: cosine, WCCN, LDA, two covariances, PLDA in one.",
    ),
    "rsr2015 jfa": (
        "spkver.recipes.rsr2015.jfa:main",
        "Joint factor analysis: eigenvoices, eigenchannels, a residual.",
    ),
    "rsr2015 hilam": (
        "spkver.recipes.rsr2015.hilam:main",
        "Mixtures of speakers, adapted to the states of their sentences.",
    ),
    "rsr2015 ivector-hmm": (
        "spkver.recipes.rsr2015.ivector_hmm:main",
        "i-vectors of hidden Markov models of words.",
    ),
    "rsr2015 prepare": (
        "spkver.recipes.rsr2015.prepare:main",
        "Write the lists of an experiment only.",
    ),
    "voiceprivacy": (
        "spkver.recipes.voiceprivacy.run:main",
        "How much identity leaks through an anonymiser: attackers in four scenarios, the report.",
    ),
    "challenge": (
        "spkver.commands.challenge:challenge",
        "From the folders of a VoicePrivacy Challenge to figures, a rank and an archive.",
    ),
    "commonvoice": (
        "spkver.recipes.voiceprivacy.commonvoice:main",
        "How often speakers of Common Voice are linked, before and after anonymisation.",
    ),
    "status": (
        "spkver.commands.runs:status",
        "Show which stages of a run are done, stale, missing or damaged.",
    ),
    "simulate": ("", "Make corpora of synthetic speech, for trials and demos."),
    "simulate rsr2015": (
        "spkver.commands.speech:rsr2015",
        "In the form of RSR2015.",
    ),
    "simulate voiceprivacy": (
        "spkver.commands.speech:voiceprivacy",
        "In the form of the VoicePrivacy Challenge.",
    ),
    "datadir": (
        "spkver.commands.speech:datadir",
        "Make a data directory of a folder of recordings.",
    ),
    "prepare": (
        "",
        "Make the data directories of the VoicePrivacy Challenges from unpacked corpora.",
    ),
    "prepare librispeech": (
        "spkver.commands.speech:librispeech",
        "Sets of LibriSpeech.",
    ),
    "prepare iemocap": (
        "spkver.commands.speech:iemocap",
        "Sets of IEMOCAP.",
    ),
    "split": (
        "spkver.commands.speech:split",
        "Split a data directory into training, enrolment and trials.",
    ),
    "anonymize": (
        "spkver.commands.anonymize:anonymize",
        "Anonymise a data directory.",
    ),
    "anonymize-vectors": (
        "spkver.commands.anonymize:anonymize_vectors",
        "Replace speakers' vectors by pseudo-speakers, without synthesis.",
    ),
    "train": (
        "spkver.commands.attack:train",
        "Train an attacker, or an extractor of i-vectors, on data directories.",
    ),
    "score": (
        "spkver.commands.attack:score",
        "Score trials with an attacker.",
    ),
    "verify": (
        "spkver.commands.attack:verify",
        "Compare the voices in two recordings.",
    ),
    "backend": ("", "Score vectors of any extractor by a trained chain of steps."),
    "backend train": (
        "spkver.commands.vectors:train",
        "Train a chain: LDA, WCCN, PLDA, cosine.",
    ),
    "backend score": (
        "spkver.commands.vectors:score",
        "Score trials by a chain.",
    ),
    "backend import": (
        "spkver.commands.vectors:import_kaldi",
        "Make a chain of models of Kaldi or VBx.",
    ),
    "backend show": (
        "spkver.commands.vectors:show",
        "Show the steps of a chain.",
    ),
    "transcribe": (
        "spkver.commands.utility:transcribe",
        "Recognise the English words of a data directory.",
    ),
    "emotion": (
        "spkver.commands.utility:emotion",
        "Recognise the emotions of a data directory.",
    ),
    "embed": (
        "spkver.commands.vectors:embed",
        "Extract one vector for each utterance of a data directory.",
    ),
    "weights": (
        "spkver.commands.vectors:weights",
        "Fetch the weights of the networks CAM++, GE2E and Whisper.",
    ),
    "features": ("", "Exchange features with SIDEKIT."),
    "features export": (
        "spkver.commands.speech:export_features",
        "Write a recipe's features as SIDEKIT's files.",
    ),
}


@click.group(cls=CommandGroup, table=COMMANDS)
@click.version_option(__version__, prog_name="spkver")
def main() -> None:
    """Classic speaker verification: speech in, scores out.

    Scores are evaluated with the command spkver-eval.
    """


if __name__ == "__main__":
    main(prog_name="spkver")
