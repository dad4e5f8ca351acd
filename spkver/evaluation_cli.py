"""The command ``spkver-eval``: the table of `evaluation.commands`, whose help needs no import of `evaluation`."""

from __future__ import annotations

import logging

import click

from spkbase.console import CommandGroup, echo_log
from spkbase.version import __version__

# name: where it is, what it does, lines that call it
COMMANDS = {
    "metrics": (
        "evaluation.commands.metrics:metrics",
        "Compute every metric of scores.",
        "spkver-eval metrics -s demo/scores/svm-gmm-nap.txt -k demo/task/3sess-pwd_eval_m_key.txt",
        "spkver-eval metrics -s scores.txt -k key.txt --bootstrap 1000 --segment-speakers utt2spk --json metrics.json",
    ),
    "zebra": (
        "evaluation.commands.zebra:zebra",
        "Compute the ZEBRA profile of scores: what they disclose.",
        "spkver-eval zebra -s demo/scores/svm-gmm-nap.txt -k demo/task/3sess-pwd_eval_m_key.txt -l demo",
    ),
    "plot": (
        "evaluation.commands.plot:plot",
        "Plot scores: one or several systems in one picture.",
        "spkver-eval plot det -s a.txt -s b.txt -k key.txt -l A -l B -o det.pdf",
        "spkver-eval plot histogram -s scores.txt -k key.txt --bins 100 -o histogram.png",
    ),
    "page": (
        "evaluation.commands.challenge:page",
        "Write the HTML report of results.json.",
        "spkver-eval page exp/results.json --output report.html",
        "spkver-eval page exp/first/results.json exp/second/results.json --output comparison.html",
    ),
    "challenge": (
        "evaluation.commands.challenge:challenge",
        "Assess a whole VoicePrivacy challenge.",
        "spkver-eval challenge exp --key data --output challenge",
    ),
    "normalise": (
        "evaluation.commands.convert:normalise",
        "Normalise scores by a cohort of impostors.",
        "spkver-eval normalise -s scores.txt -m s --model-cohort models.txt --segment-cohort segments.txt -o out.txt",
    ),
    "calibrate": (
        "evaluation.commands.convert:calibrate",
        "Turn scores into log-likelihood ratios.",
        "spkver-eval calibrate -s scores.txt --train-scores dev.txt --train-key dev_key.txt -o calibrated.txt",
    ),
    "fuse": (
        "evaluation.commands.convert:fuse",
        "Fuse the scores of several systems.",
        "spkver-eval fuse -s a.txt -s b.txt --train-scores da.txt --train-scores db.txt --train-key key.txt -o ab.txt",
    ),
    "convert": (
        "evaluation.commands.convert:convert",
        "Convert scores, a key or trials between formats.",
        "spkver-eval convert scores scores.h5 scores.txt",
    ),
    "linkability": (
        "evaluation.commands.linkability:linkability",
        "How often the target speaker is linked among N enrolled.",
        "spkver-eval linkability --enroll enrol.h5 --test trial.h5 --output linkability",
        "spkver-eval linkability -s scores.txt -k key.txt --output linkability",
    ),
    "linkability-extrapolate": (
        "evaluation.commands.linkability:extrapolate",
        "Linkability in populations larger than the gallery.",
        "spkver-eval linkability-extrapolate linkability --populations 10000,1000000 --output beyond",
    ),
    "singling-out": (
        "evaluation.commands.linkability:single_out",
        "How often exactly one speaker of a crowd is singled out.",
        "spkver-eval singling-out --enroll enrol.h5 --test trial.h5 --utterances 1,3",
    ),
    "linkability-batch": (
        "evaluation.commands.linkability:batch",
        "Linkability of all attackers against all anonymisers.",
        "spkver-eval linkability-batch batch.yaml --output exp/linked",
    ),
    "linkability-compare": (
        "evaluation.commands.linkability_compare:linkability_compare",
        "Agreement of runs on easy and hard speakers.",
        "spkver-eval linkability-compare ECAPA/B3=exp/a ECAPA/B5=exp/b --output exp/compared",
    ),
    "similarity": (
        "evaluation.commands.similarity:similarity",
        "Compare voices before and after anonymisation.",
        "spkver-eval similarity --original oo.txt --original-anonymised oa.txt --anonymised aa.txt -k trials",
    ),
    "cosine": (
        "evaluation.commands.embeddings:cosine",
        "Score embeddings by their cosine.",
        "spkver-eval cosine --enroll enrol.h5 --test trial.h5 --trials trials.txt --output scores.txt",
    ),
    "align": (
        "evaluation.commands.embeddings:align",
        "Link anonymised embeddings after aligning the spaces.",
        "spkver-eval align --original orig/xvector.scp --anonymised anon/xvector.scp --model-speakers utt2spk",
        "spkver-eval align --original o.h5 --anonymised a.h5 --train-original to.h5 --train-anonymised ta.h5",
    ),
    "attributes": (
        "evaluation.commands.embeddings:attributes",
        "How well sex, age or accent is recognised from vectors.",
        "spkver-eval attributes --original trials.h5 --anonymised trials_anon.h5 --labels spk2gender",
    ),
    "wer": (
        "evaluation.commands.utility:wer",
        "Compute word and character error rates.",
        "spkver-eval wer --ref text --hyp text_heard --segment-speakers utt2spk",
    ),
    "uar": (
        "evaluation.commands.utility:uar",
        "Compute the unweighted average recall of emotions.",
        "spkver-eval uar --ref utt2emo --predictions predictions.txt --segment-speakers utt2spk",
    ),
    "f0": (
        "evaluation.commands.utility:f0",
        "Compute the correlation of pitch before and after anonymisation.",
        "spkver-eval f0 data/mine data/mine_anon",
    ),
    "rank": (
        "evaluation.commands.challenge:rank",
        "Rank systems by utility at each minimum EER.",
        "spkver-eval rank exp/results_summary/result_for_rank_mcadams -l mcadams",
        "spkver-eval rank exp/mine/results.json result_for_rank_* --plot systems.png --latex systems.tex --figures",
    ),
}


@click.group(cls=CommandGroup, table=COMMANDS)
@click.version_option(__version__, prog_name="spkver-eval")
@click.option("-v", "--verbose", is_flag=True, help="Log what is done.")
@click.pass_context
def main(ctx: click.Context, verbose: bool) -> None:
    """Scores in, evidence out: metrics, disclosure and plots of speaker verification scores."""
    ctx.with_resource(echo_log(logging.INFO if verbose else logging.WARNING))
    if ctx.invoked_subcommand == "f0":  # it measures speech, of which `evaluation` knows nothing: the tracker is ours
        from spkver.features import pitch_track

        ctx.obj = pitch_track
