"""An example of each command of ``spkver-eval``, which ends its help."""

from __future__ import annotations

_DEMO = "-s demo/scores/svm-gmm-nap.txt -k demo/task/3sess-pwd_eval_m_key.txt"
_TWO = "-s a.txt -s b.txt -k key.txt -l A -l B"

EXAMPLES = {
    "metrics": f"""
spkver-eval metrics {_DEMO}
spkver-eval metrics -s scores.txt -k key.txt --bootstrap 1000 --segment-speakers utt2spk --json metrics.json
""",
    "zebra": f"spkver-eval zebra {_DEMO} -l demo",
    "plot det": f"spkver-eval plot det {_TWO} -o det.pdf",
    "plot roc": f"spkver-eval plot roc {_TWO} -o roc.pdf",
    "plot ece": f"spkver-eval plot ece {_TWO} -o ece.pdf",
    "plot nece": f"spkver-eval plot nece {_TWO} -o nece.pdf",
    "plot ape": f"spkver-eval plot ape {_TWO} -o ape.pdf",
    "plot nber": f"spkver-eval plot nber {_TWO} -o nber.pdf",
    "plot zebra": f"spkver-eval plot zebra {_TWO} -o zebra.pdf",
    "plot histogram": "spkver-eval plot histogram -s scores.txt -k key.txt -o histogram.png",
    "plot reliability": "spkver-eval plot reliability -s scores.txt -k key.txt -o reliability.png",
    "page": "spkver-eval page exp/results.json --output report.html",
    "challenge": "spkver-eval challenge exp --key data --output challenge",
    "normalise": """
spkver-eval normalise -s scores.txt -m s --model-cohort models.txt --segment-cohort segments.txt -o normalised.txt
""",
    "calibrate": """
spkver-eval calibrate -s scores.txt --train-scores dev.txt --train-key dev_key.txt -o calibrated.txt
""",
    "fuse": """
spkver-eval fuse -s a.txt -s b.txt --train-scores dev_a.txt --train-scores dev_b.txt --train-key key.txt -o fused.txt
""",
    "convert": "spkver-eval convert scores scores.h5 scores.txt",
    "linkability": """
spkver-eval linkability --enroll enrol.h5 --trial trial.h5 --output linkability
spkver-eval linkability -s scores.txt -k key.txt --output linkability
""",
    "linkability-batch": "spkver-eval linkability-batch batch.yaml --output exp/linked",
    "linkability-compare": "spkver-eval linkability-compare ECAPA/B3=exp/a ECAPA/B5=exp/b --output exp/compared",
    "similarity": """
spkver-eval similarity --original oo.txt --original-anonymised oa.txt --anonymised aa.txt -k trials --plot voices.png
""",
    "cosine": "spkver-eval cosine --enroll enrol.h5 --trial trial.h5 --trials trials.txt --output scores.txt",
    "align": """
spkver-eval align --original orig/xvector.scp --anonymised anon/xvector.scp --model-speakers utt2spk
spkver-eval align --original o.h5 --anonymised a.h5 --train-original to.h5 --train-anonymised ta.h5 --json linked.json
""",
    "attributes": "spkver-eval attributes -e trials.h5 --anonymised trials_anon.h5 --labels spk2gender",
    "wer": "spkver-eval wer --ref text --hyp text_heard --segment-speakers utt2spk",
    "uar": "spkver-eval uar --ref utt2emo --predictions predictions.txt --segment-speakers utt2spk",
    "f0": "spkver-eval f0 data/mine data/mine_anon",
    "rank": """
spkver-eval rank exp/results_summary/result_for_rank_mcadams -l mcadams
spkver-eval rank exp/mine/results.json result_for_rank_* --plot systems.png --latex systems.tex --figures
""",
}
