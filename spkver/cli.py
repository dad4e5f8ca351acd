"""The command ``spkver``: the commands of `spkver.commands`, and the recipes, which are installed with the package."""

from __future__ import annotations

import click

from spkbase.console import CommandGroup
from spkbase.version import __version__

# words: where it is, what it does, lines that call it
COMMANDS = {
    "demo": (
        "spkver.commands.runs:demo",
        "Run both recipes on synthetic speech: a DET curve and a report.",
        "spkver demo --output demo",
    ),
    "rsr2015": ("", "Systems on RSR2015 part 1, or on synthetic speech in its form: --corpus simulated."),
    "rsr2015 svm-gmm": (
        "spkver.recipes.rsr2015.svm_gmm:main",
        "MAP supervectors, with and without NAP, and SVMs.",
        "spkver rsr2015 svm-gmm --corpus simulated --output demo",
        "spkver rsr2015 svm-gmm --corpus RSR2015_V1 --output exp/male --set ubm.components=512",
    ),
    "rsr2015 gmm-ubm": (
        "spkver.recipes.rsr2015.gmm_ubm:main",
        "MAP-adapted models and log-likelihood ratios.",
        "spkver rsr2015 gmm-ubm --corpus RSR2015_V1 --output exp/male-gmm --set ubm.components=512",
    ),
    "rsr2015 ivector": (
        "spkver.recipes.rsr2015.ivector:main",
        "i-vectors: cosine, WCCN, LDA, two covariances, PLDA in one.",
        "spkver rsr2015 ivector --corpus RSR2015_V1 --output exp/male-ivector",
    ),
    "rsr2015 jfa": (
        "spkver.recipes.rsr2015.jfa:main",
        "Joint factor analysis: eigenvoices, eigenchannels, a residual.",
        "spkver rsr2015 jfa --corpus RSR2015_V1 --output exp/male-jfa",
    ),
    "rsr2015 prepare": (
        "spkver.recipes.rsr2015.prepare:main",
        "Write the lists of an experiment only.",
        "spkver rsr2015 prepare --corpus RSR2015_V1 --output exp/lists",
    ),
    "voiceprivacy": (
        "spkver.recipes.voiceprivacy.run:main",
        "How much identity leaks through an anonymiser: attackers in four scenarios, the report.",
        "spkver voiceprivacy --data simulated --suffix _mcadams --output demo/voiceprivacy",
        "spkver voiceprivacy --data data --suffix _mine --output exp/mine --config config/vpc2024.yaml",
    ),
    "status": (
        "spkver.commands.runs:status",
        "Show which stages of a run are done, stale, missing or damaged.",
        "spkver status demo",
    ),
    "simulate": ("", "Make corpora of synthetic speech, for trials and demos."),
    "simulate rsr2015": (
        "spkver.commands.speech:rsr2015",
        "In the form of RSR2015.",
        "spkver simulate rsr2015 corpus --speakers 12 --sentences 2",
    ),
    "simulate voiceprivacy": (
        "spkver.commands.speech:voiceprivacy",
        "In the form of the VoicePrivacy Challenge.",
        "spkver simulate voiceprivacy data --set enrolled_f=6 --set enrolled_m=6",
    ),
    "datadir": (
        "spkver.commands.speech:datadir",
        "Make a data directory of a folder of recordings.",
        "spkver datadir recordings --output data/mine --sexes speakers.tsv",
    ),
    "prepare": ("", "Make the data directories of the VoicePrivacy Challenges from unpacked corpora."),
    "prepare librispeech": (
        "spkver.commands.speech:librispeech",
        "Sets of LibriSpeech.",
        "spkver prepare librispeech LibriSpeech data --year 2024",
        "spkver prepare librispeech LibriSpeech data --lists challenge/data --year 2026",
    ),
    "prepare iemocap": (
        "spkver.commands.speech:iemocap",
        "Sets of IEMOCAP.",
        "spkver prepare iemocap IEMOCAP_full_release data",
    ),
    "split": (
        "spkver.commands.speech:split",
        "Split a data directory into training, enrolment and trials.",
        "spkver split data/mine --twin data/mine_anon --suffix _anon --output sets",
    ),
    "anonymize": (
        "spkver.commands.anonymize:anonymize",
        "Anonymise a data directory.",
        "spkver anonymize mcadams data/mine",
        "spkver anonymize command data/mine --suffix _sox --command 'sox {input} {output} pitch 300'",
    ),
    "anonymize-vectors": (
        "spkver.commands.anonymize:anonymize_vectors",
        "Replace speakers' vectors by pseudo-speakers, without synthesis.",
        "spkver anonymize-vectors trials.h5 --pool pool.h5 --sexes spk2gender --output pseudo.h5",
        "spkver anonymize-vectors train.h5 --pool pool.h5 --sex any --distance cosine --draws 4 --output pseudo.h5",
    ),
    "train": (
        "spkver.commands.attack:train",
        "Train an attacker, or an extractor of i-vectors, on data directories.",
        "spkver train data/mine_train --attacker gmm-svm --output exp/attacker",
        "spkver train data/mine_train --system ivector --output exp/ivector",
    ),
    "score": (
        "spkver.commands.attack:score",
        "Score trials with an attacker.",
        "spkver score exp/attacker --enroll data/mine_test_enrolls --test data/mine_test_trials_f -o exp/scores.txt",
    ),
    "verify": (
        "spkver.commands.attack:verify",
        "Compare the voices in two recordings.",
        "spkver verify first.wav second.wav --extractor campplus --backend backend.h5",
    ),
    "backend": ("", "Score vectors of any extractor by a trained chain of steps."),
    "backend train": (
        "spkver.commands.vectors:train",
        "Train a chain: LDA, WCCN, PLDA, cosine.",
        "spkver backend train vectors.h5 --chain '[centre, lda: 20, length, plda: {rank: 10}]' --output backend.h5",
    ),
    "backend score": (
        "spkver.commands.vectors:score",
        "Score trials by a chain.",
        "spkver backend score backend.h5 --enroll enrol.h5 --test test.h5 --trials trials.txt --output scores.txt",
    ),
    "backend import": (
        "spkver.commands.vectors:import_kaldi",
        "Make a chain of models of Kaldi or VBx.",
        "spkver backend import --plda plda --transform transform.mat --output backend.h5",
    ),
    "backend show": (
        "spkver.commands.vectors:show",
        "Show the steps of a chain.",
        "spkver backend show backend.h5",
    ),
    "transcribe": (
        "spkver.commands.utility:transcribe",
        "Recognise the English words of a data directory.",
        "spkver transcribe data/mine --output text_heard",
    ),
    "emotion": (
        "spkver.commands.utility:emotion",
        "Recognise the emotions of a data directory.",
        "spkver emotion data/mine --output emotions",
    ),
    "embed": (
        "spkver.commands.vectors:embed",
        "Extract one vector for each utterance of a data directory.",
        "spkver embed data/mine --extractor onnx:campplus.onnx --output vectors.h5",
    ),
    "weights": (
        "spkver.commands.vectors:weights",
        "Fetch the weights of the networks CAM++ and GE2E.",
        "spkver weights campplus",
    ),
    "features": ("", "Exchange features with SIDEKIT."),
    "features export": (
        "spkver.commands.speech:export_features",
        "Write a recipe's features as SIDEKIT's files.",
        "spkver features export demo/features.h5 features-of-sidekit",
    ),
}


@click.group(cls=CommandGroup, table=COMMANDS)
@click.version_option(__version__, prog_name="spkver")
def main() -> None:
    """Classic speaker verification: speech in, scores out.

    Scores are evaluated with the command spkver-eval.
    """
