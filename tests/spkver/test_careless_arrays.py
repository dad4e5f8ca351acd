"""Arrays, columns and data frames as users have them: every public function that takes some honours or refuses them."""

import logging

import numpy as np
import pandas as pd
import pytest

import evaluation as ev
from evaluation import calibration, linkage, metrics, plots
from evaluation.embeddings import fit_alignment, owner_ranks
from evaluation.utility import Sides, attribute_leakage, confusions, count_errors
from spkbase.errors import DataError
from spkver.backend import Sessions, fit_nap, fit_plda, train_chain
from spkver.features import Frames
from spkver.mixture import UbmConfig, accumulate_statistics, log_likelihood, train_ubm
from spkver.sklearn import Chain, Lda, Whiten

RNG = np.random.default_rng(0)
PEOPLE = np.repeat(np.arange(20), 6)
VECTORS = RNG.normal(size=(20, 8))[PEOPLE] + 0.5 * RNG.normal(size=(120, 8))
IDS = [f"u{row:03d}" for row in range(120)]
SPEAKERS = [f"s{person:02d}" for person in PEOPLE]
FRAME = pd.DataFrame(VECTORS, index=IDS).rename(columns=str)
OWNERS = pd.Series(SPEAKERS, index=IDS)
SHUFFLED = OWNERS.sample(frac=1, random_state=0)
TRUTH = np.arange(200) % 4 == 0
SCORES = RNG.normal(size=200) + 2 * TRUTH
TARGET, NONTARGET = SCORES[TRUTH], SCORES[~TRUTH]
UBM = train_ubm(VECTORS, UbmConfig(components=2))


def crossed(calls, inputs, with_all, for_all):
    """Pair some functions with all inputs, and all functions with some inputs: they share the check."""
    pairs = [(call, given) for call in with_all for given in inputs]
    return pairs + [(call, given) for call in calls for given in for_all if call not in with_all]


WITH_SPEAKERS = {
    "embeddings": lambda vectors, speakers: ev.Embeddings.from_arrays(vectors, speakers=speakers),
    "chain": lambda vectors, speakers: train_chain(vectors, "lda:3,cosine", speakers=speakers),
    "plda": lambda vectors, speakers: fit_plda(vectors, speakers),
    "nap": lambda vectors, speakers: fit_nap(vectors, rank=2, scatter="within", speakers=speakers),
    "estimator": lambda vectors, speakers: Lda(2).fit(vectors, speakers),
    "estimator of a chain": lambda vectors, speakers: Chain().fit(vectors, speakers),
}
OF_VECTORS = {
    "frames of a mixture": lambda vectors: train_ubm(vectors, UbmConfig(components=2)),
    "likelihood": lambda vectors: log_likelihood(vectors, UBM),
    "statistics": lambda vectors: accumulate_statistics(
        UBM, Frames(np.array(["a"]), np.array([0, len(vectors)]), vectors), ["a"], ["a"]
    ),
    "adapted": lambda vectors: train_chain(
        VECTORS, "lda:3,cosine", speakers=SPEAKERS, adapt=vectors
    ),
    "alignment": lambda vectors: fit_alignment(VECTORS[: len(vectors)], vectors),
    "cohort": lambda vectors: calibration.cohort_moments(vectors, IDS),
    "transform": lambda vectors: train_chain(VECTORS, "lda:3,cosine", speakers=SPEAKERS).transform(
        vectors
    ),
} | {
    name: lambda vectors, call=call: call(vectors, SPEAKERS) for name, call in WITH_SPEAKERS.items()
}
OF_ROWS = {name: call for name, call in OF_VECTORS.items() if not name.startswith("estimator")}


@pytest.mark.parametrize("call", WITH_SPEAKERS.values(), ids=WITH_SPEAKERS)
def test_speakers_in_another_order_than_the_vectors_are_refused(call):
    call(FRAME, OWNERS)
    with pytest.raises(DataError, match="with the same index, but they differ"):
        call(FRAME, SHUFFLED)


COLUMNS_THAT_ARE_NO_DIMENSION = {
    "spk": FRAME.assign(spk=PEOPLE[::-1]),
    "Speaker ID": FRAME.assign(**{"Speaker ID": PEOPLE[::-1]}),
    "label": FRAME.assign(label=PEOPLE[::-1]),
    "Unnamed: 0": FRAME.assign(**{"Unnamed: 0": np.arange(120)}),
    "index": FRAME.reset_index(drop=True).reset_index(),
    "row numbers of any name": FRAME.assign(n=np.arange(1, 121)),
    "sorted codes of any name": FRAME.assign(who=PEOPLE),
    "row numbers in an array": np.column_stack([np.arange(120), VECTORS]),
}


@pytest.mark.parametrize(
    ("call", "given"),
    crossed(WITH_SPEAKERS, COLUMNS_THAT_ARE_NO_DIMENSION, ["embeddings"], ["spk"]),
)
def test_columns_of_ids_speakers_and_row_numbers_are_not_taken_as_dimensions(call, given):
    with pytest.raises(
        DataError, match=r"it cannot be a dimension of|whole numbers beside fractions, which rise"
    ):
        WITH_SPEAKERS[call](COLUMNS_THAT_ARE_NO_DIMENSION[given], SPEAKERS)


def test_polars_and_pandas_frames_are_read_equally():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(VECTORS)
    made = ev.Embeddings.from_arrays(
        frame, speakers=polars.Series(SPEAKERS), ids=polars.Series(IDS)
    )
    np.testing.assert_array_equal(made.vectors, VECTORS)
    with pytest.raises(DataError, match="column 'speaker' shows that it cannot be a dimension"):
        ev.Embeddings.from_arrays(frame.with_columns(polars.Series("speaker", PEOPLE)))


def test_integer_columns_among_fractions_raise_a_warning_but_features_do_not(caplog):
    ev.Embeddings.from_arrays(FRAME.assign(who=PEOPLE[::-1]))
    assert caplog.messages == [
        "column 'who' of vectors holds whole numbers beside fractions: is it a dimension?"
    ]
    caplog.clear()
    rectified = np.maximum(VECTORS, 0)
    rectified[:, 3] = 0  # a dimension that is always 0
    for vectors in (
        pd.DataFrame(rectified),
        pd.DataFrame(np.round(VECTORS)),
        np.arange(40.0).reshape(20, 2),
        np.eye(9),
    ):
        ev.Embeddings.from_arrays(vectors)
    assert not caplog.messages


def test_the_index_of_a_data_frame_supplies_the_ids():
    assert ev.Embeddings.from_arrays(FRAME, speakers=OWNERS).ids.tolist() == IDS
    numbered = FRAME.reset_index(drop=True).sample(frac=1, random_state=0)
    assert ev.Embeddings.from_arrays(numbered).ids.tolist() == [str(row) for row in numbered.index]
    assert ev.Embeddings.from_arrays(FRAME.reset_index(drop=True)).ids[1] == "u1"
    for given in ({"vectors": FRAME}, {"vectors": VECTORS, "speakers": SHUFFLED}):
        with pytest.raises(DataError, match="ids in the order of the index"):
            ev.Embeddings.from_arrays(**given, ids=IDS[::-1])
    with pytest.raises(DataError, match="'s00' is repeated"):
        ev.Embeddings.from_arrays(FRAME.set_axis(SPEAKERS, axis=0))


TYPES = {
    "boolean": VECTORS > 0,
    "text": VECTORS.astype(str),
    "text objects": VECTORS.astype(str).astype(object),
    "complex": VECTORS + 0j,
    "dates": VECTORS.astype("M8[s]"),
    "gaps": np.where(VECTORS > 2, None, VECTORS),
    "masked": np.ma.masked_array(VECTORS, VECTORS > 2),
    "one vector": VECTORS[0],
}


@pytest.mark.parametrize(
    ("call", "given"), crossed(OF_ROWS, TYPES, ["likelihood"], ["text", "masked", "one vector"])
)
def test_vectors_of_other_types_than_real_numbers_are_refused(call, given):
    with pytest.raises(DataError, match="expected"):
        OF_ROWS[call](TYPES[given])


class Tensor:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __len__(self):
        return len(self.values)


@pytest.mark.parametrize("call", [OF_VECTORS[name] for name in ("likelihood", "transform")])
def test_vectors_of_other_types_give_the_same_numbers(call):
    whole = np.round(10 * VECTORS)
    expected = call(whole)
    for vectors in (
        whole.astype(np.int8),
        whole.astype(object),
        whole.tolist(),
        pd.DataFrame(whole),
        Tensor(whole),
    ):
        np.testing.assert_array_equal(call(vectors), expected)


def test_integer_frames_have_the_statistics_of_floats():
    whole = np.round(10 * VECTORS)
    expected = OF_VECTORS["statistics"](whole)
    found = OF_VECTORS["statistics"](whole.astype(int))
    np.testing.assert_array_equal(found.zeroth, expected.zeroth)
    np.testing.assert_array_equal(found.first, expected.first)


def test_a_masked_matrix_is_refused_by_an_estimator():
    with pytest.raises(DataError, match="X without a mask"):
        Whiten().fit(np.ma.masked_array(VECTORS, VECTORS > 2))


@pytest.mark.parametrize(
    "vectors", [1 + 1e-12 * VECTORS, 1e8 + VECTORS, np.outer(np.arange(1, 9), VECTORS[0])]
)
def test_vectors_of_one_direction_raise_a_warning(vectors, caplog):
    ev.Embeddings.from_arrays(vectors).norms()
    (message,) = caplog.messages
    assert f"all {len(vectors)} vectors are equal but for length and rounding" in message
    caplog.clear()
    ev.Embeddings.from_arrays(1000 + VECTORS).norms()
    assert not caplog.messages


BARE = {
    "linkability": lambda first, second: ev.linkability(first, second, [5]),
    "cosine": lambda first, second: ev.cosine_scores(
        first, second, ev.Trials.from_ids(["u1"], ["u2"])
    ),
}


@pytest.mark.parametrize("call", BARE.values(), ids=BARE)
def test_vectors_with_neither_ids_nor_speakers_are_matched_by_row_with_a_warning(call, caplog):
    others = VECTORS + np.random.default_rng(9).standard_normal(VECTORS.shape)
    first, second = (ev.Embeddings.from_arrays(vectors) for vectors in (VECTORS, others))
    call(first, second)
    assert caplog.messages == ["neither side has ids or speakers: their rows are matched by number"]


PAIRS = {
    "evaluate": ev.evaluate,
    "eer": ev.eer,
    "auc": ev.auc,
    "cllr": ev.cllr,
    "min_cllr": ev.min_cllr,
    "min_dcf": lambda *scores: ev.min_dcf(*scores, p_target=0.1),
    "act_dcf": lambda *scores: ev.act_dcf(*scores, p_target=0.1),
    "tpr_at_fpr": lambda *scores: ev.tpr_at_fpr(*scores, fpr=0.1),
    "d_sys": ev.d_sys,
    "zebra": ev.zebra,
    "pav_llrs": ev.pav_llrs,
    "ece": lambda *scores: metrics.ece(*scores, prior=0.5),
    "roc": metrics.roc,
    "population": metrics.population,
    "individual": metrics.individual,
    "prbep": metrics.prbep,
    "train_affine": ev.train_affine,
    "plot_det": ev.plot_det,
    "plot_histogram": ev.plot_histogram,
    "plot_zebra": ev.plot_zebra,
    "plot_reliability": plots.plot_reliability,
}
ONE_BY_ONE = [0.1, 0.9, 0.3, 0.7, 0.2, 0.6]
THREE = np.where(TRUTH, 1, np.where(np.arange(200) % 2, 0, -1))
NO_SCORES = {
    "labels second": (SCORES, TRUTH.astype(int)),
    "labels first": (TRUTH.astype(int), SCORES),
    "labels with a point": (SCORES, TRUTH.astype(float)),
    "labels as objects": (SCORES, TRUTH.astype(int).astype(object)),
    "labels of three values": (THREE, SCORES),
    "a few labels": ([1, 0, 1, 0, 1, 0], ONE_BY_ONE),
    "missing": ([1.0, None], [0.0, 1.0]),
    "text among numbers": ([1.0, "x"], [0.0, 1.0]),
    "numbers as text": (["1.0", "2.0"], [0.0, 0.5]),
    "bytes": (np.array([b"1", b"2"]), [0.0, 0.5]),
    "complex": (TARGET + 0j, NONTARGET),
    "dates": (TARGET.astype("M8[ns]"), NONTARGET),
    "masked": (np.ma.masked_array(TARGET, TARGET > 2), NONTARGET),
}


@pytest.mark.parametrize(
    ("call", "given"),
    crossed(PAIRS, NO_SCORES, ["eer", "train_affine"], ["labels second", "labels first", "masked"]),
)
def test_labels_and_other_types_given_as_scores_are_refused(call, given):
    with pytest.raises(DataError, match=r"expected (target|nontarget) scores|expected numbers"):
        PAIRS[call](*NO_SCORES[given])


DOUBTED = {
    "a few labels with a point": ([0.0, 1.0, 0.0, 1.0], ONE_BY_ONE[:4], "look like 4 labels"),
    "among the nontarget scores": (
        TARGET,
        SCORES,
        "all 50 target scores are among the nontarget ones",
    ),
    "one array twice": (TARGET, TARGET, "all 50 target scores are among the nontarget ones"),
}


WITHOUT_PLOTS = [name for name in PAIRS if "plot" not in name]


@pytest.mark.parametrize(
    ("call", "given"), crossed(WITHOUT_PLOTS, DOUBTED, ["eer"], ["among the nontarget scores"])
)
def test_scores_that_may_be_labels_raise_a_warning(call, given, caplog):
    target, nontarget, words = DOUBTED[given]
    PAIRS[call](target, nontarget)
    assert sum(words in message for message in caplog.messages) == 1


@pytest.mark.parametrize(
    ("target", "nontarget"),
    [
        ([1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]),  # decisions
        (np.round(TARGET), np.round(NONTARGET)),
        (np.round(TARGET, 1), np.round(NONTARGET, 1)),
        ([1, 2, 3, 5, 4], [1, 2, 3, 1, 1]),
        ([2.0, 1.0, -1.0], [-2.0, -1.0, 1.0]),
        (RNG.permutation(SCORES)[:50], NONTARGET),
        ([2.5, 0.5], [1.0, 0.0]),
    ],
)
def test_small_tied_and_quantised_lists_raise_no_warning(target, nontarget, caplog):
    ev.min_cllr(target, nontarget)
    ev.train_affine(target, nontarget, ridge=0.1)
    said = [
        message
        for message in caplog.messages
        if "REVERSED" not in message and "slope" not in message
    ]
    assert not said


MIXED = [1, 0, -1, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ev.Key.from_ids(["a", "b", "c", "d"], ["s", "t", "u", "v"], MIXED),
        lambda: ev.evaluate([0.1, 0.2, 0.3, 0.4], labels=MIXED),
        lambda: calibration.train_nonnegative(np.ones((4, 2)), MIXED),
        lambda: ev.evaluate([0.1, 0.2, 0.3, 0.4], labels=["1", "0", "-1", "1"]),
    ],
)
def test_labels_that_mix_0_and_minus_1_are_refused(call):
    with pytest.raises(DataError, match="labels of two values, got 1, 0 and -1"):
        call()


@pytest.mark.parametrize(
    "labels", [TRUTH, np.where(TRUTH, 1, -1), np.where(TRUTH, "target", "nontarget")]
)
def test_all_training_functions_read_labels_alike(labels):
    both = np.column_stack([SCORES, -SCORES])
    assert (
        calibration.train_nonnegative(both, labels).weights
        == calibration.train_nonnegative(both, TRUTH).weights
    )
    np.testing.assert_array_equal(
        calibration.cllr_of_trials(SCORES, labels), calibration.cllr_of_trials(SCORES, TRUTH)
    )


INDEXED = pd.Series(SCORES)
TURNED = pd.Series(TRUTH).iloc[::-1]
WITH_INDEX = {
    "weights": lambda: ev.evaluate(INDEXED, labels=TRUTH, weights=pd.Series(np.ones(200))[::-1]),
    "labels": lambda: ev.evaluate(INDEXED, labels=TURNED),
    "weights of a class": lambda: ev.sort_scores(
        pd.Series(TARGET), NONTARGET, target_weights=pd.Series(TARGET)[::-1]
    ),
    "scores of a list": lambda: ev.Scores.from_ids(
        pd.Series(IDS), pd.Series(SPEAKERS), pd.Series(np.ones(120))[::-1]
    ),
    "labels of a key": lambda: ev.Key.from_ids(
        pd.Series(IDS), pd.Series(SPEAKERS), is_target=TURNED[:120]
    ),
    "models": lambda: ev.Trials.from_ids(pd.Series(IDS), pd.Series(SPEAKERS)[::-1]),
    "fusion": lambda: calibration.train_nonnegative(
        pd.DataFrame({"a": SCORES, "b": SCORES}), TURNED
    ),
    "embeddings": lambda: ev.Embeddings(IDS, SHUFFLED, FRAME),
    "sessions": lambda: Sessions(pd.DataFrame(VECTORS), pd.Series(PEOPLE)[::-1]),
    "alignment": lambda: fit_alignment(FRAME, FRAME.sample(frac=1, random_state=0)),
    "ranks of owners": lambda: owner_ranks(FRAME, SHUFFLED, FRAME, OWNERS),
    "statistics": lambda: accumulate_statistics(
        UBM, None, pd.Series(["a"]), pd.Series(["a"], index=[3])
    ),
}


def test_columns_of_fused_scores_are_taken_by_name_or_refused():
    frame = pd.DataFrame({"plda": SCORES, "cosine": RNG.normal(size=200) + TRUTH})
    turned = frame[["cosine", "plda"]]
    affine = ev.train_affine(frame[TRUTH], frame[~TRUTH])
    assert affine.names == ("plda", "cosine")
    np.testing.assert_array_equal(affine(frame), affine(frame.to_numpy()))
    with pytest.raises(DataError, match="target and nontarget with the same columns"):
        ev.train_affine(frame[TRUTH], turned[~TRUTH])
    np.testing.assert_array_equal(affine(turned), affine(frame))


def test_numbered_columns_of_vectors_are_sorted_by_number():
    vectors = pd.DataFrame(np.tile(VECTORS, 2), index=IDS).add_prefix("e")
    turned = vectors[sorted(vectors.columns)]  # e0, e1, e10, ...
    expected, found = (ev.Embeddings.from_arrays(frame).vectors for frame in (vectors, turned))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(expected, vectors.to_numpy())


@pytest.mark.parametrize("call", WITH_INDEX.values(), ids=WITH_INDEX)
def test_columns_with_different_indices_are_refused(call):
    with pytest.raises(DataError, match="with the same index"):
        call()


def test_similarity_matrices_must_be_real():
    assert linkage.ranks_of_matrix([[3, 1], [2, 5]]).beaters.tolist() == [0, 0]
    for matrix in (np.eye(2) > 0, np.eye(2).astype(str), np.eye(2) + 0j):
        with pytest.raises(DataError, match="expected numbers as similarities"):
            linkage.ranks_of_matrix(matrix)


def spelt(change):
    sides = [slice(0, None, 2), slice(1, None, 2)]
    names = [SPEAKERS, [change(name) for name in SPEAKERS]]
    return [
        ev.Embeddings.from_arrays(VECTORS[rows], speakers=named[rows], ids=IDS[rows])
        for rows, named in zip(sides, names, strict=True)
    ]


SPELLINGS = [
    str.upper,
    lambda name: f"{name} ",
    lambda name: f"\u200b{name}",
    lambda name: f"\uff53{name[1:]}",
]


@pytest.mark.parametrize("change", SPELLINGS)
def test_speakers_in_two_spellings_raise_a_warning(change, caplog):
    ev.singling_out(*spelt(lambda name: name))
    assert not caplog.messages
    enrolled, tested = spelt(change)
    ev.singling_out(enrolled, tested)
    with pytest.raises(DataError, match="not enrolled"):
        ev.linkability(enrolled, tested, [5])
    (first, second) = caplog.messages
    assert first == second
    assert "some names of speakers differ in case, blanks or Unicode form alone, such as" in first
    assert "'s00'" in first
    caplog.clear()
    train_chain(
        np.concatenate([enrolled.vectors, tested.vectors]),
        "centre",
        speakers=[*enrolled.speakers, *tested.speakers],
    )
    assert caplog.messages == [first]


def test_classes_and_words_in_two_spellings_raise_a_warning(caplog):
    embeddings = ev.Embeddings.from_arrays(VECTORS, speakers=SPEAKERS)
    sexes = {name: "fm"[person % 2] for name, person in zip(SPEAKERS, PEOPLE, strict=True)}
    attribute_leakage(Sides(embeddings), sexes)
    truth = {"a": "sad", "b": "happy"}
    confusions(truth, truth, {"a": "s", "b": "t"})
    count_errors({"a": "Café the"}, {"a": "café The"})
    assert not caplog.messages
    halves = {name: sex.upper() if name > "s10" else sex for name, sex in sexes.items()}
    attribute_leakage(Sides(embeddings), halves)
    confusions(truth, {"a": "SAD", "b": "happy"}, {"a": "s", "b": "t"})
    count_errors({"a": "caf\u00e9"}, {"a": "cafe\u0301"})
    assert ["'F' and 'f'" in caplog.messages[0], "'SAD' and 'sad'" in caplog.messages[1]] == [
        True,
        True,
    ]
    assert caplog.messages[2].startswith(
        r"some words differ in case, blanks or Unicode form alone, such as 'cafe\u0301'"
    )
    assert count_errors({"a": "caf\u00e9"}, {"a": "cafe\u0301"}, normaliser="basic").rate == 0


def test_printed_results_begin_with_the_result(caplog):
    caplog.set_level(logging.ERROR)
    result = ev.singling_out(*spelt(str))
    value = f"{result.probability.value:.4f}"
    assert str(result).splitlines()[0].startswith(f"isolated with probability {value} [")
    assert "by chance 0.3679" in result._repr_html_().splitlines()[0]
    assert list(result.to_dataframe().columns) == ["speaker", "share"]
    leakage = attribute_leakage(
        Sides(ev.Embeddings.from_arrays(VECTORS, speakers=SPEAKERS)),
        dict.fromkeys(SPEAKERS[:60], "f") | dict.fromkeys(SPEAKERS[60:], "m"),
    )
    assert f"{leakage.recalls['original'].interval.value:.4g}" in str(leakage)


@pytest.mark.parametrize("other", ["llr", "LLR", "similarity"])
def test_tables_with_ambiguous_columns_are_refused(tmp_path, other):
    table = pd.DataFrame(
        {"model": ["a", "b"], "segment": ["s", "t"], "score": [2.0, 1.0], other: [1.0, 2.0]}
    )
    table.to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(DataError, match=f"one column for score, got score and {other}"):
        ev.Scores.from_frame(table)
    with pytest.raises(DataError, match=f"two columns could be the score: score and {other}"):
        ev.read_scores(tmp_path / "scores.csv")
    assert ev.Scores.from_frame(table, score=other).values.tolist() == [1.0, 2.0]
    assert ev.Trials.from_frame(table) is not None
    assert len(ev.read_trials(tmp_path / "scores.csv")) == 2


@pytest.mark.parametrize(
    ("role", "others"),
    [("label", ["is_target"]), ("model", ["enroll"]), ("segment", ["test", "utterance"])],
)
def test_repeated_label_and_id_columns_are_refused(tmp_path, role, others):
    table = pd.DataFrame({"model": ["a", "b"], "segment": ["s", "t"], "label": [1, 0]})
    table = table.assign(**dict.fromkeys(others, table[role]))
    table.to_csv(tmp_path / "key.csv", index=False)
    with pytest.raises(DataError, match=f"one column for {role}, got"):
        ev.Key.from_frame(table)
    with pytest.raises(
        DataError, match=rf"two columns could be the {role}: .*key_columns=Choice\({role}='"
    ):
        ev.read_key(tmp_path / "key.csv")
    assert len(ev.Key.from_frame(table, **{role: others[0]})) == 2


def test_repeated_column_names_are_refused_even_if_selected(tmp_path):
    from evaluation.formats import Choice

    (tmp_path / "scores.csv").write_text("model,segment,score,score\na,s,1,2\n")
    for choice in (Choice(), Choice(score="score")):
        with pytest.raises(DataError, match="two columns could be the score: score and score"):
            ev.read_scores(tmp_path / "scores.csv", choice)


KNOWN = {
    "nist": "modelid\tsegmentid\tside\ttargettype\na\ts\ta\ttarget\nb\tt\ta\tnontarget\n",
    "iso": "bio_ref_subject_id,bio_ref_template_id,probe_subject_id,probe_template_id,probe_key,score\na,a1,a,s1,s,1\n",
}


def test_known_tables_with_adjacent_columns_are_read(tmp_path):
    for name, text in KNOWN.items():
        (tmp_path / name).write_text(text)
    assert ev.read_key(tmp_path / "nist").is_target.tolist() == [True, False]
    assert ev.read_scores(tmp_path / "iso").model_ids.tolist() == ["a1"]


def test_a_selection_counts_only_its_used_ids():
    names = [f"m{number}" for number in range(20)]
    pairs = [(model, segment) for model in names for segment in names]
    key = ev.Key.from_ids(*zip(*pairs, strict=True), [model == segment for model, segment in pairs])
    assert repr(key) == "Key(20 models, 20 segments, 400 trials)"
    assert repr(key.subset(np.arange(25))) == "Key(2 models, 20 segments, 25 trials)"
    assert repr(key.subset(np.zeros(400, bool))) == "Key(0 models, 0 segments, 0 trials)"
    assert len(key.subset(np.arange(25)).model_ids) == 20


VALUES = {
    "text": ["1.0", "x"],
    "missing": [1.0, None],
    "complex": [1j, 2],
    "truth": [True, False],
    "dates": np.array([1, 2], "M8[s]"),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_non_numeric_scores_of_a_list_are_refused(values):
    with pytest.raises(DataError, match=r"row [01]: expected numbers as values"):
        ev.Scores.from_ids(["a", "b"], ["s", "t"], values)
    assert ev.Scores.from_ids(
        ["a", "b"], ["s", "t"], np.array([1, 2.5], object)
    ).values.tolist() == [1.0, 2.5]
