"""The types that a user's type checker sees."""

import typing

import pytest
from user_types import check_types

import evaluation as ev
from evaluation.metrics import METRICS
from evaluation.metrics.evaluated import MetricAttributes, Numbers

USER = """
from typing import assert_type

import numpy as np

import evaluation as ev

key = ev.read_key("key.txt")
scores = ev.read_scores("scores.txt")
target, nontarget = ev.split_scores(scores, key)
result = ev.evaluate(target, nontarget)
assert_type(result.cllr, float)
assert_type(result.eer["rocch"], float)
assert_type(result.tpr_at_fpr["0.01"].value, float)
assert_type(result.zebra.population, float)
assert_type(ev.eer(np.array([1.0]), np.array([0.0])).threshold, float)
calibrated = ev.calibrate(scores, key, speakers="/", quality={"duration": {"a": 1.0}})
assert_type(calibrated, ev.Calibration)
calibrated.save("calibration.json")
assert_type(ev.load_calibration("calibration.json").systems, tuple[str, ...])
ev.plot_det(target, nontarget, path="det.png")
"""


@pytest.mark.whole
def test_user_code_passes_a_strict_type_checker(tmp_path, request):
    check_types(USER, tmp_path, request.config.cache.mkdir("users_types"))


def test_every_metric_has_a_declared_type():
    result = ev.evaluate([0.5, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, -2.0])
    declared = typing.get_type_hints(MetricAttributes)
    names = {metric.name.partition(".")[0] for metric in METRICS}
    assert set(declared) == names - {"zebra"}  # a property of its own
    for name, annotation in declared.items():
        value = getattr(result, name)
        if typing.get_origin(annotation) is Numbers:
            assert {type(part) for part in value.values()} == {typing.get_args(annotation)[0]}
        else:
            assert type(value) is annotation
