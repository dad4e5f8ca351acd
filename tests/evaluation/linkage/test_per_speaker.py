"""Measures of each speaker: brute force on random lists with ties, what is missing, the plot and the command."""

import json

import numpy as np
import pytest
from command_lines import passes, refused

import evaluation as ev
from evaluation.formats import write_key, write_scores
from evaluation.linkage import animals
from evaluation.metrics import equal_error, sort_scores
from spkbase.errors import DataError


def random_list(seed, *, share=0.7):
    """Trials of 3 to 6 speakers with several models and segments each, some pairs left out, scores with ties."""
    rng = np.random.default_rng(seed)
    n_people = int(rng.integers(3, 7))
    models = [f"s{p}/m{k}" for p in range(n_people) for k in range(2)]
    segments = [f"s{p}/u{k}" for p in range(n_people) for k in range(3)]
    pairs = [(m, s) for m in models for s in segments if rng.random() < share]
    truth = [m[:2] == s[:2] for m, s in pairs]
    values = rng.integers(0, 6, len(pairs)) + np.array(truth)
    ids = list(zip(*pairs, strict=True))
    return ev.Scores.from_ids(*ids, values.astype(float)), ev.Key.from_ids(*ids, truth)


def crossed(n_people=6, shift=4.0):
    models, segments = np.divmod(np.arange(n_people * n_people * 4), n_people * 4)
    ids = [f"s{m}" for m in models], [f"s{s // 4}-{s % 4}" for s in segments]
    truth = models == segments // 4
    values = np.random.default_rng(1).normal(size=len(truth)) + shift * truth
    return ev.Scores.from_ids(*ids, values), ev.Key.from_ids(*ids, truth)


def test_every_column_equals_brute_force():
    for seed in range(100):
        scores, key = random_list(seed)
        pairs = list(key.pairs())
        values = dict(zip(scores.pairs(), scores.values, strict=True))
        truth = dict(zip(pairs, key.is_target, strict=True))
        target = [values[pair] for pair in pairs if truth[pair]]
        others = [values[pair] for pair in pairs if not truth[pair]]
        threshold = equal_error(sort_scores(target, others)).threshold
        total = sum(value >= threshold for value in others)
        found = ev.per_speaker(scores, key, speakers="/").to_dataframe().set_index("speaker")
        for name, row in found.iterrows():
            own = [values[m, s] for m, s in pairs if m[:2] == name and truth[m, s]]
            against = [values[m, s] for m, s in pairs if m[:2] == name and not truth[m, s]]
            tested = [values[m, s] for m, s in pairs if s[:2] == name and not truth[m, s]]
            assert (row.n_target, row.n_nontarget, row.n_impostor) == (
                len(own),
                len(against),
                len(tested),
            )
            assert row.target_mean == pytest.approx(np.mean(own))
            assert row.eer == ev.eer(own, against)
            assert row.cllr == pytest.approx(ev.cllr(sort_scores(own, against)))
            assert row.false_alarms * total == pytest.approx(sum(v >= threshold for v in against))
            alarms = sum(v >= threshold for v in tested)
            assert row.impostor_false_alarms * total == pytest.approx(alarms)
            ranks = []
            for segment in {s for m, s in pairs if truth[m, s] and s[:2] == name}:
                best = {}
                for m, s in pairs:
                    if s == segment:
                        best[m[:2]] = max(best.get(m[:2], -np.inf), values[m, s])
                top = [speaker for speaker in best if best[speaker] == max(best.values())]
                if len(best) > 1:
                    ranks.append((name in top) / len(top))
            assert row.rank1 == pytest.approx(np.mean(ranks) if ranks else np.nan, nan_ok=True)


def test_animals_follow_quartiles():
    """Of eight speakers with different means two are in each outer quarter."""
    kinds = animals(np.arange(8.0), np.arange(8.0)[::-1], np.zeros(8)).tolist()
    assert kinds == ["goat, lamb"] * 2 + ["sheep"] * 6
    assert animals([np.nan, 1.0], [np.nan, 1.0], [np.nan, np.nan]).tolist() == ["", "sheep"]


def test_speakers_without_nontarget_trials_are_noted():
    ids = ["a", "a", "b"], ["a1", "b1", "b1"]
    key = ev.Key.from_ids(*ids, [True, False, True])
    found = ev.per_speaker(
        ev.Scores.from_ids(*ids, [2.0, 1.0, 3.0]),
        key,
        speakers={"a": "a", "b": "b", "a1": "a", "b1": "b"},
    )
    assert found.notes == ("1 of 2 speakers have no nontarget trial against them: no EER and Cllr",)
    assert np.isnan(found.eer[1])
    assert "no nontarget trial" in str(found)
    assert np.isnan(found.rank1[0])  # there is nobody to compare with
    assert found.rank1[1] == 1


def test_missing_scores_are_dropped_on_request():
    scores, key = crossed()
    kept = scores.subset(np.arange(10, len(scores)))
    with pytest.raises(DataError, match="without a score"):
        ev.per_speaker(kept, key, speakers="-")
    found = ev.per_speaker(kept, key, speakers="-", missing="drop")
    assert found.n_target.sum() + found.n_nontarget.sum() == len(kept)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (lambda s, k: (s, s), "expected Scores and a Key"),
        (lambda s, k: (s.subset([0]), k), "without a score"),
    ],
)
def test_files_that_are_not_lists_are_refused(arguments, says):
    scores, key = crossed()
    with pytest.raises(DataError, match=says):
        ev.per_speaker(*arguments(scores, key), speakers="-")


def test_ids_that_may_not_be_speakers_are_refused():
    scores, key = random_list(0)
    with pytest.raises(DataError, match="the speakers are not known"):
        ev.per_speaker(scores, key)


def test_the_zoo_shows_each_speaker_and_names_the_hardest(tmp_path):
    scores, key = crossed()
    found = ev.per_speaker(scores, key, speakers="-")
    axes = ev.plot_zoo(found, named_most=2, path=tmp_path / "zoo.svg").axes[0]
    points = np.concatenate([line.get_xydata() for line in axes.lines[2:]])
    expected = np.column_stack([found.nontarget_mean, found.target_mean])
    assert sorted(points.tolist()) == sorted(expected.tolist())
    hardest = found.speaker[np.argsort(-found.eer, kind="stable")[:2]]
    assert [text.get_text() for text in axes.texts] == hardest.tolist()
    found.nontarget_mean[:] = np.nan
    with pytest.raises(DataError, match="target and nontarget"):
        ev.plot_zoo(found)


@pytest.fixture
def files(tmp_path):
    scores, key = crossed(shift=1.0)
    write_scores(tmp_path / "scores", scores)
    write_key(tmp_path / "key", key)
    lines = [f"{name} {name[:2]}" for name in key.segment_ids.tolist()]
    (tmp_path / "utt2spk").write_text("\n".join(lines))
    lines += [f"{name} {name}" for name in key.model_ids.tolist()]
    (tmp_path / "people").write_text("id speaker\n" + "\n".join(lines))
    return tmp_path


def test_the_command_gives_a_row_for_each_speaker(files):
    given = ["metrics", "-s", files / "scores", "-k", files / "key", "--bootstrap", 0]
    plain = json.loads(passes(*given, "--json", "-").stdout)
    given += ["--by", "speaker", "--segment-speakers", files / "utt2spk"]
    report = json.loads(passes(*given, "--json", "-", "--zoo", files / "zoo.png").stdout)
    people = report.pop("per_speaker")
    assert report == plain
    scores, key = crossed(shift=1.0)
    expected = ev.per_speaker(scores, key, speakers="-")
    assert [row["eer"] for row in people["speakers"].values()] == pytest.approx(
        expected.eer.tolist()
    )
    assert (files / "zoo.png").stat().st_size > 1000
    output = passes(*given).output
    assert "6 speakers, highest EER" in output
    assert "impostor_false_alarms" in output


def test_groups_without_nontarget_trials_are_explained(files):
    given = ["metrics", "-s", files / "scores", "-k", files / "key", "--bootstrap", 0]
    given += ["--by", "speaker", "--metadata", files / "people"]
    assert (
        "6 of 6 groups have no metrics, 6 of them as they have no nontarget"
        in passes(*given).output
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--by", "sex"], "--by speaker"), (["--zoo", "zoo.png"], "--zoo needs --by speaker")],
)
def test_options_that_do_not_fit_are_refused(files, arguments, says):
    assert says in refused("metrics", "-s", files / "scores", "-k", files / "key", *arguments)


def test_reversed_scores_raise_a_warning(caplog):
    models = [f"s{m:02d}/m" for m in range(8) for _ in range(40)]
    segments = [f"s{number % 8:02d}/u{number // 8}" for _ in range(8) for number in range(40)]
    is_target = np.array(
        [model[:3] == segment[:3] for model, segment in zip(models, segments, strict=True)]
    )
    values = np.random.default_rng(0).normal(size=len(models)) - 2 * is_target
    ev.per_speaker(
        ev.Scores.from_ids(models, segments, values),
        ev.Key.from_ids(models, segments, is_target),
        speakers="/",
    )
    assert "REVERSED" in caplog.text
