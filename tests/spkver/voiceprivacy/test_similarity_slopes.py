"""Calibrations with a negative slope are told once for each attacker, and not written among the figures."""

from spkver.voiceprivacy.assessment import tell_slopes


def test_negative_slopes_are_counted_for_each_attacker(caplog):
    figures = [
        {"attacker": "gmm-svm", "gender": "f", "slopes": [3, 30]},
        {"attacker": "gmm-svm", "gender": "m", "slopes": [15, 30]},
        {"attacker": "campplus", "gender": "f", "slopes": [0, 30]},
    ]
    tell_slopes(figures)
    assert [record.message for record in caplog.records] == [
        "gmm-svm: the calibrations for the similarity of voices have a negative slope for 18 of 60 pairs of folds,"
        " as is usual at chance level"
    ]
    assert figures[0] == {"attacker": "gmm-svm", "gender": "f"}
