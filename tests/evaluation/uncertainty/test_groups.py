"""Groups of trials: tables, sides, metrics of each group by themselves, extremes and their intervals."""

import numpy as np
import pytest

from evaluation.metrics import eer
from evaluation.trials import Key, TrialSpeakers, find_speakers, group_trials, read_metadata
from evaluation.uncertainty import Resampling, evaluate_groups, sample_of
from spkbase.errors import DataError

KEY = Key.from_ids(
    ["a", "a", "b", "b", "c"], ["a1", "b1", "b1", "c1", "c1"], [True, False, True, False, True]
)


def metrics(scores):
    spread = float((scores.thresholds * scores.target).sum() / scores.n_target)
    return {"eer.interpolated": eer(scores, method="interpolated"), "mean": spread}


def evaluated(shifts, *, n_speakers=60, seed=0, resamples=0):
    """Give groups of speakers that differ in the shift of their target scores, all trials within a group."""
    rng = np.random.default_rng(seed)
    models, segments = np.divmod(np.arange(n_speakers**2), n_speakers)
    groups = np.where(models % len(shifts) == segments % len(shifts), models % len(shifts), -1)
    is_target = models == segments
    scores = rng.standard_normal(len(models)) + (
        1.5 + np.array(shifts)[groups] + rng.standard_normal(len(models))
    ) * (is_target)
    names = np.array([f"s{n}" for n in range(n_speakers)], object)
    sample = sample_of(scores, is_target, TrialSpeakers(names, models, segments))
    names = [f"g{n}" for n in range(len(shifts))]
    found = evaluate_groups(sample, groups, names, metrics, Resampling(resamples))
    for place, (name, group) in enumerate(found.groups.items()):
        inside = groups == place
        expected = eer(
            scores[inside & is_target], scores[inside & ~is_target], method="interpolated"
        )
        assert group.metrics["eer.interpolated"] == pytest.approx(expected, abs=1e-14), name
        assert (group.n_target, group.n_nontarget) == (
            (inside & is_target).sum(),
            (inside & ~is_target).sum(),
        )
    assert found.n_across == (groups == -1).sum()
    return found


# tables


@pytest.mark.parametrize(
    "text",
    [
        "id,sex,accent\na,f,north\nb,m,\n",
        "\ufeffid;sex;accent\r\na;f;north\r\n\r\nb;m;\r\n",
        "id\tsex\taccent\na\tf\tnorth\nb\tm\t\n",
    ],
)
def test_metadata_are_read(tmp_path, text):
    path = tmp_path / "table"
    path.write_bytes(text.encode())
    assert read_metadata(path, "sex") == {"a": "f", "b": "m"}
    assert read_metadata(path, "accent") == {"a": "north", "b": ""}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a header"),
        (b"id,age\na,3\n", ":1: no column 'sex' besides the ids; the columns are: age"),
        (b"sex,id\nf,a\n", ":1: no column 'sex' besides the ids; the columns are: id"),
        (b"id,sex\na\n", ":2: expected 2 columns as in the header, got 1"),
        (b"id,sex\na,f\na,m\n", ":3: 'a' is 'm' here, but 'f' above"),
        (b"id,sex\n\xff,f\n", ":2: expected text in UTF-8"),
    ],
)
def test_bad_tables_are_refused(tmp_path, content, message):
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_metadata(path, "sex")


# groups of trials


def groups_of(metadata, **options):
    codes, names = group_trials(KEY, metadata, **options)
    return [{-1: "across", -2: "blank"}.get(code) or names[code] for code in codes.tolist()]


def test_trials_are_grouped_by_both_sides():
    sides = {"a": "f", "b": "f", "c": "m", "a1": "f", "b1": "f", "c1": "m"}
    assert groups_of(sides) == ["f", "f", "f", "across", "m"]


def test_trials_are_grouped_by_one_known_side_or_by_speakers():
    assert groups_of({"a1": "x", "b1": "y", "c1": "z", "other": "w"}) == ["x", "y", "y", "z", "z"]
    by_speaker = {"a": "f", "b": "f", "c": "m"}
    assert groups_of(by_speaker) == ["f", "f", "f", "f", "m"]
    assert groups_of(by_speaker, speakers=find_speakers(KEY)) == ["f", "f", "f", "across", "m"]


def test_unknown_ids_are_named():
    with pytest.raises(DataError, match="1 of 3 models are not in the table: 'c'"):
        groups_of({"a": "f", "b": "f"})
    with pytest.raises(DataError, match="no model or segment of the key is in the table"):
        groups_of({"x": "f"})


# metrics of groups


def test_extremes_are_found_without_resamples():
    found = evaluated((0.0, 1.0, 2.0))
    extremes = found.extremes["eer.interpolated"]
    assert (extremes.highest, extremes.lowest, extremes.worst) == ("g0", "g2", "g0")
    values = [group.metrics["eer.interpolated"] for group in found.groups.values()]
    assert extremes.gap.value == pytest.approx(max(values) - min(values), abs=1e-15)
    assert np.isnan(extremes.gap.low)
    assert not found.groups["g0"].intervals


def test_an_existing_gap_is_found():
    found = evaluated((0.0, 3.0), resamples=200)
    extremes = found.extremes["mean"]
    assert 0 < extremes.gap.low < 3 < extremes.gap.high
    assert extremes.highest_value.low < 4.5 < extremes.highest_value.high
    assert extremes.lowest_value.low < 1.5 < extremes.lowest_value.high
    for name, true in (("g0", 1.5), ("g1", 4.5)):
        assert (
            found.groups[name].intervals["mean"].low
            < true
            < found.groups[name].intervals["mean"].high
        )
    assert np.isfinite(evaluated((0.0, 3.0), resamples=2).extremes["mean"].gap.high)


def test_no_gap_is_found_between_equal_groups():
    """Of four equal groups the largest difference looks large; the interval must hold 0 in 95 of 100 cases."""
    missed = sum(
        evaluated((0.0,) * 4, n_speakers=40, seed=seed, resamples=80).extremes["mean"].gap.low > 0
        for seed in range(40)
    )
    assert missed <= 5  # by chance at most 5 of 40, with a probability of 98.6 % at 5 %


def test_groups_with_one_class_or_one_speaker_have_notes():
    models, segments = np.divmod(np.arange(25), 5)
    is_target = models == segments
    rng = np.random.default_rng(0)
    names = np.array(list("abcde"), object)
    sample = sample_of(
        rng.standard_normal(25) + is_target, is_target, TrialSpeakers(names, models, segments)
    )
    groups = np.where(models == 0, 0, np.where(is_target, 1, 2))
    found = evaluate_groups(sample, groups, ["alone", "targets", "none"], metrics, Resampling(20))
    assert "one speaker" in found.groups["alone"].note
    assert "no trial of one class" in found.groups["targets"].note
    assert (found.groups["none"].n_target, found.groups["none"].n_nontarget) == (0, 16)
    assert not found.extremes
