"""Pseudo-speakers in vector space: which voices are chosen, by counting, and that nothing hangs on orders."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_lines import passes, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.embeddings import Embeddings, read_embeddings, write_embeddings
from spkbase.errors import ConfigError, DataError
from spkbase.seeding import stream
from spkver.anonymization import PseudoSpeakerRules, anonymize_embeddings
from spkver.backend import parse_chain, train_chain, write_backend

D = 6


def vectors(prefix, n_speakers, n_utterances, seed=0):
    """Speakers at random places, utterances around them; every second speaker is a woman (see `sexes_of`)."""
    rng = np.random.default_rng([seed, ord(prefix[0])])
    places = 2 * rng.standard_normal((n_speakers, 1, D)) + 0.3
    rows = (places + 0.5 * rng.standard_normal((n_speakers, n_utterances, D))).reshape(-1, D)
    speakers = [
        f"{prefix}{number:02d}" for number in range(n_speakers) for _ in range(n_utterances)
    ]
    ids = [f"{speaker}-{place}" for place, speaker in enumerate(speakers)]
    return Embeddings(np.array(ids, object), np.array(speakers, object), rows.astype(np.float32))


def sexes_of(*sets):
    return {speaker: "fm"[int(speaker[1:]) % 2] for of in sets for speaker in of.speakers}


SOURCE, POOL = vectors("s", 5, 3), vectors("p", 24, 3)
SEXES = sexes_of(SOURCE, POOL)
SMALL = PseudoSpeakerRules(farthest=6, mean_of=3)


def counted(source, pool, rules, affinity):
    """The same by loops: for each utterance all voices in order, those of the sex, the first few, a draw, a mean."""
    voices = {
        speaker: np.mean(
            [np.float64(pool.vectors[row]) for row in np.flatnonzero(pool.speakers == speaker)],
            axis=0,
        )
        for speaker in sorted(set(pool.speakers.tolist()))
    }
    made = []
    for row, (utterance, speaker) in enumerate(
        zip(source.ids.tolist(), source.speakers.tolist(), strict=True)
    ):
        if rules.level == "speaker":
            name = speaker
            vector = np.mean(
                [np.float64(source.vectors[k]) for k in np.flatnonzero(source.speakers == speaker)],
                axis=0,
            )
        else:
            name, vector = utterance, np.float64(source.vectors[row])
        generator = stream(rules.seed, "pseudo-speaker", rules.level, name, "draw 0")
        wanted = {"same": SEXES[speaker], "other": "fm"[SEXES[speaker] == "f"], "any": "fm"}.get(
            rules.sex
        )
        if rules.sex == "random":
            wanted = "f" if generator.integers(2) else "m"
        allowed = [other for other in voices if SEXES[other] in wanted]
        far = sorted(allowed, key=lambda other: affinity(vector, voices[other]))[: rules.farthest]
        numbers = {other: number for number, other in enumerate(voices)}
        rows = generator.choice(
            np.array([numbers[other] for other in far]), rules.mean_of, replace=False
        )
        in_order = list(voices.values())
        made.append(sum(in_order[number] for number in rows) / rules.mean_of)
    return np.array(made)


@pytest.mark.parametrize("level", ["speaker", "utterance"])
@pytest.mark.parametrize("sex", ["same", "other", "random", "any"])
def test_voices_equal_those_chosen_by_brute_force(level, sex):
    rules = PseudoSpeakerRules("cosine", sex, level, farthest=6, mean_of=3, seed=4)
    made = anonymize_embeddings(SOURCE, POOL, rules, sexes=SEXES)
    expected = counted(SOURCE, POOL, rules, lambda a, b: a @ b / np.sqrt((a @ a) * (b @ b)))
    np.testing.assert_allclose(made.vectors, expected, rtol=2e-6, atol=1e-7)  # written as float32
    assert made.vectors.dtype == np.float32
    assert made.ids.tolist() == SOURCE.ids.tolist()
    assert made.speakers.tolist() == SOURCE.speakers.tolist()
    n_voices = len(np.unique(made.vectors, axis=0))  # 20 draws are possible: some may be equal
    assert n_voices == 5 if level == "speaker" else n_voices > 10


def test_the_plda_affinity_equals_its_log_likelihood_ratio():
    """That of the joint normal distribution of both vectors against that of two speakers, after the chain's maps."""
    from scipy.stats import multivariate_normal

    rules = PseudoSpeakerRules("plda", "same", "utterance", farthest=6, mean_of=3)
    made = anonymize_embeddings(SOURCE, POOL, rules, sexes=SEXES)
    backend = train_chain(POOL, parse_chain("centre,length,plda"))
    plda = backend.model
    total = plda.between + plda.within
    joint = np.block([[total, plda.between], [plda.between, total]])

    def ratio(first, second):
        pair = backend.transform(np.array([first, second]))
        alone = sum(multivariate_normal.logpdf(row, plda.mean, total) for row in pair)
        return float(multivariate_normal.logpdf(pair.ravel(), np.tile(plda.mean, 2), joint) - alone)

    np.testing.assert_allclose(
        made.vectors, counted(SOURCE, POOL, rules, ratio), rtol=2e-6, atol=1e-7
    )
    given = anonymize_embeddings(SOURCE, POOL, rules, sexes=SEXES, backend=backend)
    np.testing.assert_array_equal(given.vectors, made.vectors)
    assert not np.array_equal(
        made.vectors, anonymize_embeddings(SOURCE, POOL, PseudoSpeakerRules("cosine", "same", "utterance", 6, 3),
                                      sexes=SEXES).vectors
    )  # fmt: skip


@settings(max_examples=15)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(["speaker", "utterance"]),
    st.sampled_from(["plda", "cosine"]),
)
def test_the_order_of_source_and_pool_changes_nothing(random, level, distance):
    def shuffled(of):
        order = list(range(len(of)))
        random.shuffle(order)
        return Embeddings(of.ids[order], of.speakers[order], of.vectors[order])

    rules = PseudoSpeakerRules(distance, "same", level, 6, 3)
    backend = train_chain(POOL, parse_chain("centre,length,plda")) if distance == "plda" else None
    expected = anonymize_embeddings(SOURCE, POOL, rules, sexes=SEXES, backend=backend)
    other = anonymize_embeddings(
        shuffled(SOURCE), shuffled(POOL), rules, sexes=SEXES, backend=backend
    )
    by_id = dict(zip(other.ids.tolist(), other.vectors, strict=True))
    np.testing.assert_array_equal(
        np.array([by_id[name] for name in expected.ids.tolist()]), expected.vectors
    )


def test_utterances_are_independent_and_draws_and_seeds_differ():
    rules = PseudoSpeakerRules("cosine", "same", "utterance", 6, 3)
    whole = anonymize_embeddings(SOURCE, POOL, rules, sexes=SEXES)
    some = Embeddings(SOURCE.ids[7:9], SOURCE.speakers[7:9], SOURCE.vectors[7:9])
    np.testing.assert_array_equal(
        anonymize_embeddings(some, POOL, rules, sexes=SEXES).vectors, whole.vectors[7:9]
    )
    drawn = anonymize_embeddings(
        SOURCE, POOL, PseudoSpeakerRules("cosine", "same", "utterance", 6, 3, draws=3), sexes=SEXES
    )
    np.testing.assert_array_equal(drawn.vectors[:15], whole.vectors)
    assert [drawn.ids[0], drawn.ids[15], drawn.ids[44]] == ["s00-0", "s00-0-draw2", "s04-14-draw3"]
    other = anonymize_embeddings(
        SOURCE, POOL, PseudoSpeakerRules("cosine", "same", "utterance", 6, 3, seed=1), sexes=SEXES
    )
    assert not np.array_equal(other.vectors, whole.vectors)
    assert not np.array_equal(drawn.vectors[15:30], whole.vectors)
    assert (
        "mean of 3 drawn from the 6 farthest of 24 voices of the same sex (cosine)"
        in whole.notes[-1]
    )


def with_number(of, number):
    rows = of.vectors.copy()
    rows[1] = number
    return replace(of, vectors=rows)


@pytest.mark.parametrize(
    ("source", "pool", "rules", "sexes", "messages"),
    [
        (SOURCE, POOL, PseudoSpeakerRules(), SEXES, ["12 voices to choose from, and 200 farthest", "farthest=6"]),
        (SOURCE, POOL, SMALL, None, ["29 speakers of unknown sex: p00, p01, p02, ...", "sex='any'"]),
        (SOURCE, POOL, SMALL, {**SEXES, "p00": "x"}, ["expected f or m, got 'x' for 'p00'"]),
        (with_number(SOURCE, np.nan), POOL, SMALL, SEXES, ["1 vector is not finite"]),
        (SOURCE, with_number(POOL, 0), SMALL, SEXES, ["1 vector is zero"]),
        (replace(SOURCE, vectors=SOURCE.vectors[:, :4]), POOL, SMALL, SEXES, ["4 dimensions, and 6 in the pool"]),
        (SOURCE, replace(POOL, speakers=np.where(POOL.speakers == "p03", "s01", POOL.speakers)), SMALL, SEXES,
         ["1 speaker of the source in the pool too: s01"]),
        (SOURCE, replace(POOL, speakers=POOL.ids), PseudoSpeakerRules(farthest=6, mean_of=3, sex="any"), None,
         ["a PLDA needs speakers with several vectors", "distance='cosine'"]),
        # all problems at once
        (with_number(SOURCE, np.inf), POOL, SMALL, {}, ["2 problems", "not finite", "unknown sex"]),
    ],
)  # fmt: skip
def test_bad_input_is_refused(source, pool, rules, sexes, messages):
    with pytest.raises(DataError) as caught:
        anonymize_embeddings(source, pool, rules, sexes=sexes)
    for message in messages:
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings_of", "message"),
    [
        ({"distance": "euclid"}, "distance is 'euclid': expected plda or cosine"),
        ({"farthest": 10, "mean_of": 11}, "the mean of 11 drawn from the 10 farthest"),
        ({"draws": 0}, "0 draws"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_bad_rules_are_refused(settings_of, message):
    with pytest.raises(ConfigError, match=message):
        PseudoSpeakerRules(**settings_of)
    with pytest.raises(ConfigError, match="a backend is given"):
        anonymize_embeddings(
            SOURCE,
            POOL,
            PseudoSpeakerRules("cosine"),
            backend=train_chain(POOL, parse_chain("plda")),
        )


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_embeddings("source.npz", SOURCE)
    write_embeddings("pool.h5", POOL)
    Path("sexes").write_text("".join(f"{name} {sex}\n" for name, sex in SEXES.items()))
    return tmp_path


SIZES = ("--pool", "pool.h5", "--farthest", 6, "--mean-of", 3)


def test_the_command_writes_the_result_of_the_function(files):
    command = "anonymize-vectors", "source.npz", "--sexes", "sexes", *SIZES
    assert "made.h5: 15 vectors of 6 dimensions" in passes(*command, "--output", "made.h5").output
    expected = anonymize_embeddings(SOURCE, POOL, SMALL, sexes=SEXES)
    np.testing.assert_array_equal(read_embeddings("made.h5").vectors, expected.vectors)
    write_backend("trained.h5", train_chain(POOL, parse_chain("centre,length,plda")))
    passes(*command, "--output", "again.npz", "--backend", "trained.h5")
    np.testing.assert_array_equal(read_embeddings("again.npz").vectors, expected.vectors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["source.npz", "--output", "made.csv"], "no format of vectors is known for '.csv'"),
        (
            ["source.npz", "--output", "made.h5", "--sexes", "sexes", "--sexes", "others"],
            "'s00' is m here, and f in",
        ),
        (["nothing.npz", "--output", "made.h5", "--sexes", "sexes"], "cannot be read"),
        (["source.npz", "--output", "made.h5", "--sexes", "sexes", "--backend", "sexes"], "sexes"),
    ],
)
def test_damaged_files_raise_and_write_nothing(files, arguments, message):
    Path("others").write_text("s00 m\n")
    assert message in refused("anonymize-vectors", *arguments, *SIZES)
    assert not Path("made.h5").exists()
