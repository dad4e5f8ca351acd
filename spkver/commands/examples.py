"""An example of each command of ``spkver``, which ends its help."""

from __future__ import annotations

EXAMPLES = {
    "demo": "spkver demo --output demo",
    "rsr2015 svm-gmm": """
spkver rsr2015 svm-gmm --corpus simulated --output demo
spkver rsr2015 svm-gmm --corpus RSR2015_V1 --output exp/male --set ubm.components=512
""",
    "rsr2015 gmm-ubm": "spkver rsr2015 gmm-ubm --corpus RSR2015_V1 --output exp/male-gmm --set ubm.components=512",
    "rsr2015 ivector": "spkver rsr2015 ivector --corpus RSR2015_V1 --output exp/male-ivector",
    "rsr2015 jfa": "spkver rsr2015 jfa --corpus RSR2015_V1 --output exp/male-jfa",
    "rsr2015 prepare": "spkver rsr2015 prepare --corpus RSR2015_V1 --output exp/lists",
    "voiceprivacy": """
spkver voiceprivacy --data simulated --suffix _mcadams --output demo/voiceprivacy
spkver voiceprivacy --data data --suffix _mine --output exp/mine --config config/vpc2024.yaml
""",
    "status": "spkver status demo",
    "simulate rsr2015": "spkver simulate rsr2015 corpus --speakers 12 --sentences 2",
    "simulate voiceprivacy": "spkver simulate voiceprivacy data --enrolled-f 6 --enrolled-m 6",
    "datadir": "spkver datadir recordings --output data/mine --sexes speakers.tsv",
    "prepare librispeech": """
spkver prepare librispeech LibriSpeech data --year 2024
spkver prepare librispeech LibriSpeech data --lists challenge/data --year 2026
""",
    "prepare iemocap": "spkver prepare iemocap IEMOCAP_full_release data",
    "split": "spkver split data/mine --twin data/mine_anon --suffix _anon --output sets",
    "anonymize": """
spkver anonymize mcadams data/mine
spkver anonymize command data/mine --suffix _sox --command 'sox {input} {output} pitch 300'
""",
    "anonymize-vectors": """
spkver anonymize-vectors trials.h5 --pool pool.h5 --sexes spk2gender --output pseudo.h5
spkver anonymize-vectors train.h5 --pool pool.h5 --sex any --distance cosine --draws 4 --output pseudo.h5
""",
    "train": "spkver train data/mine_train --attacker gmm-svm --output exp/attacker",
    "score": """
spkver score exp/attacker --enroll data/mine_test_enrolls --trials data/mine_test_trials_f --output exp/scores.txt
""",
    "verify": "spkver verify first.wav second.wav --extractor campplus --backend backend.h5",
    "backend train": """
spkver backend train vectors.h5 --chain '[centre, lda: 20, length, plda: {rank: 10}]' --output backend.h5
""",
    "backend score": """
spkver backend score backend.h5 --enroll enrol.h5 --test test.h5 --trials trials.txt --output scores.txt
""",
    "backend import": "spkver backend import --plda plda --transform transform.mat --output backend.h5",
    "backend show": "spkver backend show backend.h5",
    "transcribe": "spkver transcribe data/mine --output text_heard",
    "emotion": "spkver emotion data/mine --output predictions.txt",
    "embed": "spkver embed data/mine --extractor onnx:campplus.onnx --output vectors.h5",
    "weights": "spkver weights campplus",
    "features export": "spkver features export demo/data/features.h5 features-of-sidekit",
}
