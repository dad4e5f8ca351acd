"""``spkver backend``: what a user meets, good and bad; one message, status 2, nothing half-written."""

import command_lines
import numpy as np
import pytest

from evaluation.embeddings import read_embeddings
from evaluation.formats import read_scores, read_trials
from spkver.backend import train_chain
from spkver.sidekit import read_idmap


def run(*arguments):
    return command_lines.run("backend", *arguments)


def refused(result, text, *absent):
    assert result.exit_code == 2, result.output
    assert text in result.stderr
    assert "Traceback" not in result.output
    for path in absent:
        assert not list(path.parent.glob(f"*{path.name}*")), "nothing half-written"


@pytest.fixture
def folder(tmp_path):
    """Vectors for training (train.npz), enrolment and test (both.npz), without speakers too (bare.npz), and trials."""
    draw = np.random.default_rng(0)
    for name, n_speakers in (("train", 12), ("both", 4)):
        owners = np.repeat(np.arange(n_speakers), 5)
        vectors = draw.normal(size=(n_speakers, 8))[owners] + draw.normal(size=(len(owners), 8))
        columns = {
            "ids": np.array([f"{name}{row}" for row in range(len(owners))]),
            "vectors": vectors,
        }
        speakers = np.array([f"{name}-s{owner}" for owner in owners])
        np.savez(tmp_path / f"{name}.npz", speakers=speakers, **columns)
        np.savez(tmp_path / f"bare_{name}.npz", **columns)
        lines = [
            f"{row} {speaker}\n" for row, speaker in zip(columns["ids"], speakers, strict=True)
        ]
        (tmp_path / f"utt2spk_{name}").write_text("".join(lines))
    pairs = [f"both-s{model} both{row}\n" for model in range(4) for row in range(20)]
    (tmp_path / "trials").write_text("".join(pairs))
    return tmp_path


def score(folder, backend, output, *more, test="both.npz", enroll="both.npz"):
    sides = ("--enroll", folder / enroll, "--test", folder / test)
    return run("score", backend, *sides, "--trials", folder / "trials", "--output", output, *more)


def test_backends_are_trained_applied_and_shown(folder):
    backend, output = folder / "backend.h5", folder / "scores.txt"
    done = run(
        "train",
        folder / "train.npz",
        "--chain",
        "whiten,length,lda:5,plda:3,snorm",
        "--output",
        backend,
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.strip().endswith("8 dimensions, trained on 60 vectors of 12 speakers)")
    scored = score(folder, backend, output)
    assert scored.stdout == f"80 scores -> {output}\n"
    # both sides are the same file here
    assert "20 of 80 trials have a model made from the same recording" in scored.stderr
    vectors = read_embeddings(folder / "both.npz")
    trained = train_chain(read_embeddings(folder / "train.npz"), "whiten,length,lda:5,plda:3,snorm")
    expected = trained.score(vectors, vectors, read_trials(folder / "trials"))
    written = read_scores(output)
    assert [*written.pairs()] == [*expected.pairs()]
    assert np.array_equal(written.values, expected.values)
    shown = run("show", backend).stdout
    for text in (
        "[whiten, length, lda: 5, plda: 3, snorm]",
        "60 vectors of 12 speakers",
        trained.facts["made_from"],
    ):
        assert text in shown
    assert "cohort:      12 vectors" in shown


def test_training_speakers_in_trials_and_self_comparisons_are_reported(folder):
    """Each makes errors too few, and nothing in the scores shows it."""
    trials = "".join(f"both-s{row // 5} both{row}\n" for row in range(20) if row % 5 > 1)
    (folder / "trials").write_text(trials)
    vectors = read_embeddings(folder / "both.npz")
    for name in ("enrol", "test"):
        kept = [row for row in range(20) if (row % 5 < 2) == (name == "enrol")]
        columns = {"ids": vectors.ids[kept].astype(str), "vectors": vectors.vectors[kept]}
        np.savez(folder / f"{name}.npz", speakers=vectors.speakers[kept].astype(str), **columns)
    for name in ("train", "both"):
        run(
            "train",
            folder / f"{name}.npz",
            "--chain",
            "centre,lda:3,cosine",
            "--output",
            folder / f"{name}.h5",
        )
    sides = {"enroll": "enrol.npz", "test": "test.npz"}
    assert score(folder, folder / "train.h5", folder / "s.txt", **sides).stderr == ""
    told = score(folder, folder / "both.h5", folder / "s.txt", **sides).stderr
    assert told.startswith(
        "Warning: 4 of 4 speakers of the trials were trained on (both-s0, both-s1, both-s2, ...)"
    )
    told = score(folder, folder / "train.h5", folder / "s.txt").stderr
    assert told.startswith("Warning: 12 of 12 trials have a model made from the same recording")
    assert told.count("\n") == 1


def test_scores_adapted_to_their_list_have_a_note(folder):
    """A part of the list gives other scores, which somebody who shares the work out would not see."""
    backend, output = folder / "backend.h5", folder / "scores.txt"
    run("train", folder / "train.npz", "--chain", "adapted_cosine", "--output", backend)
    whole = score(folder, backend, output)
    assert (whole.exit_code, whole.stdout) == (0, f"80 scores -> {output}\n")
    assert "adapted to this list, to all its 4 models and 20 segments" in whole.stderr
    before = dict(zip(read_scores(output).pairs(), read_scores(output).values, strict=True))
    run(
        "train",
        folder / "train.npz",
        "--chain",
        "single_test_cosine",
        "--output",
        folder / "single.h5",
    )
    assert (
        "adapted to this list, to all its 4 models: scores"
        in score(folder, folder / "single.h5", output).stderr
    )
    lines = (folder / "trials").read_text().splitlines(keepends=True)
    # trials within two groups, as within sexes
    (folder / "trials").write_text("".join(lines[:10] + lines[20:30] + lines[50:60] + lines[70:]))
    assert (
        "fall into 2 groups of models and segments that never meet"
        in score(folder, backend, output).stderr
    )
    (folder / "trials").write_text("".join(lines[:30]))
    score(folder, backend, output)
    after = read_scores(output)
    assert (
        max(
            abs(before[pair] - value)
            for pair, value in zip(after.pairs(), after.values, strict=True)
        )
        > 0.01
    )
    (folder / "trials").write_text("".join(lines[:20]))
    alone = folder / "alone.txt"
    refused(score(folder, backend, alone), "the mean of the other models, and there is one", alone)


def test_speakers_may_come_from_a_map(folder):
    """The same backend, to the byte, and the same scores, as with speakers in the file."""
    chain = ("--chain", "lda:3,calibrate", "--output")
    for name, more in (
        ("train", ()),
        ("bare_train", ("--segment-speakers", folder / "utt2spk_train")),
    ):
        assert (
            run("train", folder / f"{name}.npz", *chain, folder / f"{name}.h5", *more).exit_code
            == 0
        )
    assert (folder / "train.h5").read_bytes() == (folder / "bare_train.h5").read_bytes()
    assert score(folder, folder / "train.h5", folder / "a.txt").exit_code == 0
    mapped = score(
        folder,
        folder / "train.h5",
        folder / "b.txt",
        "--model-speakers",
        folder / "utt2spk_both",
        enroll="bare_both.npz",
    )
    assert mapped.exit_code == 0
    assert (folder / "a.txt").read_bytes() == (folder / "b.txt").read_bytes()
    utterances = {}
    for line in (folder / "utt2spk_both").read_text().splitlines():
        utterances.setdefault(line.split()[1], []).append(line.split()[0])
    (folder / "spk2utt").write_text(
        "".join(f"{model} {' '.join(ids)}\n" for model, ids in utterances.items())
    )
    kaldi = "--model-speakers", folder / "spk2utt"
    assert (
        score(
            folder, folder / "train.h5", folder / "k.txt", *kaldi, enroll="bare_both.npz"
        ).exit_code
        == 0
    )
    assert (folder / "a.txt").read_bytes() == (folder / "k.txt").read_bytes()
    assert read_idmap(folder / "spk2utt").rows_of_models().keys() == utterances.keys()
    bare = run("train", folder / "bare_train.npz", *chain, folder / "c.h5")
    refused(
        bare,
        "lda needs a speaker with two vectors, each has one: name the speakers",
        folder / "c.h5",
    )
    refused(
        score(folder, folder / "train.h5", folder / "c.txt", enroll="bare_both.npz"),
        "bare_both.npz: 4 models without a vector",
    )


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ("lda:3,plad:2", "step 2 of the chain: there is no step 'plad'"),
        ("lda:12", "lda.rank is 12, but 8 dimensions and 12 speakers allow 8"),
        ("no.yaml", "no.yaml: cannot be read"),
    ],
)
def test_malformed_chains_are_refused(folder, chain, text):
    output = folder / "b.h5"
    refused(run("train", folder / "train.npz", "--chain", chain, "--output", output), text, output)


def test_trials_that_cannot_be_scored_are_refused(folder):
    backend, output = folder / "b.h5", folder / "scores.txt"
    assert (
        run("train", folder / "train.npz", "--chain", "lda:3", "--output", backend).exit_code == 0
    )
    refused(score(folder, folder / "train.npz", output), "HDF5", output)
    refused(score(folder, folder / "nothing.h5", output), "no such file", output)
    refused(score(folder, backend, folder / "scores.docx"), ".docx", folder / "scores.docx")
    refused(
        score(folder, backend, output, test="train.npz"),
        "train.npz: 20 segments without a vector: both0",
        output,
    )
    np.savez(folder / "odd.npz", ids=["both0"], vectors=np.ones((1, 3)))
    (folder / "trials").write_text("both-s0 both0\n")
    refused(
        score(folder, backend, output, test="odd.npz"),
        "expected vectors of 8 dimensions, got shape (1, 3)",
        output,
    )
    refused(run("show", folder / "trials"), "HDF5")
    backend.write_bytes(backend.read_bytes()[:900])
    refused(score(folder, backend, output), "HDF5", output)
