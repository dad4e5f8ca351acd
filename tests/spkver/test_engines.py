"""The same bits on every engine: one worker, two, threads, worker processes and a Dask cluster.

Everything that is learnt, scored or counted in parallel is here once, from arrays in memory and from files.
"""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from network_oracle import random_ge2e
from stored_vectors import named
from torch_writer import write_torch

from evaluation.embeddings.sets import SpeakerVectors
from evaluation.linkage import Ranks, count_beaters, largest_impostor_scores
from evaluation.metrics import Metrics
from evaluation.trials import Trials, TrialSpeakers
from evaluation.uncertainty import Resampling, bootstrap, confidence_intervals, sample_of
from spkbase.arrays import StoredArray
from spkbase.work import Work, stop_workers, use_engine
from spkver.audio import write_audio
from spkver.backend import fit_nap, score_gmm_ubm, score_trials, train_svms
from spkver.datadir.reading import read_datadir
from spkver.extractors import embed_directory, open_extractor
from spkver.features.frames import Frames
from spkver.mixture import UbmConfig, accumulate_statistics, train_ubm
from spkver.vectors.supervectors import adapt_supervectors

pytestmark = pytest.mark.whole(seconds=25)

N_SEGMENTS, LENGTH, DIMENSION = 90, 300, 12
ENGINES = {
    "five workers": (nullcontext, 5),
    "threads": (partial(use_engine, "threads"), 2),
    "loky": (partial(use_engine, "loky"), 2),
}


@pytest.fixture(scope="module", autouse=True)
def no_worker_outlives():
    yield
    stop_workers()


@pytest.fixture(scope="module")
def frames():
    rng = np.random.default_rng(0)
    speakers = rng.standard_normal((10, 1, DIMENSION))
    values = np.concatenate(
        [speakers[n % 10] + rng.standard_normal((LENGTH, DIMENSION)) for n in range(N_SEGMENTS)]
    )
    ids = np.array([f"s{number:02d}" for number in range(N_SEGMENTS)], object)
    return Frames(ids, np.arange(N_SEGMENTS + 1) * LENGTH, values.astype(np.float32))


@pytest.fixture(scope="module")
def stored(frames, tmp_path_factory):
    """The same frames in a file."""
    path = tmp_path_factory.mktemp("frames") / "frames.bin"
    frames.values.tofile(path)
    values = StoredArray(path, 0, frames.values.shape, frames.values.dtype)
    return Frames(frames.ids, frames.offsets, values)


def work_out(frames, jobs):
    """From frames to scores, by both recipes' ways."""
    trained = train_ubm(frames.values, UbmConfig(components=4), work=Work(jobs=jobs))
    mixture = trained.mixture
    models = [f"m{number % 10}" for number in range(N_SEGMENTS)]
    statistics = accumulate_statistics(mixture, frames, models, frames.ids, work=Work(jobs=jobs))
    vectors = adapt_supervectors(mixture, statistics, work=Work(jobs=jobs)).vectors
    projection = fit_nap(
        vectors[30:], rank=4, scatter="within", speakers=models[30:], work=Work(jobs=jobs)
    )
    machines = train_svms(
        named(models[:30], vectors[:30]), vectors[30:], projection=projection, work=Work(jobs=jobs)
    )
    names, tested = np.repeat(machines.models, 60), np.tile(frames.ids[30:], 10)
    trials = Trials.from_ids(names.tolist(), tested.tolist())
    scores = score_trials(
        machines, named(frames.ids, vectors), trials, projection=projection, work=Work(jobs=jobs)
    )
    means = vectors[:10]
    ratios = score_gmm_ubm(
        mixture, named(machines.models, means), frames, trials, work=Work(jobs=jobs)
    )
    return {
        "means": mixture.means,
        "variances": mixture.variances,
        "weights": mixture.weights,
        "likelihoods": trained.log_likelihoods,
        "zeroth": statistics.zeroth,
        "first": statistics.first,
        "vectors": vectors,
        "directions": projection.directions,
        "machines": machines.weights,
        "biases": machines.biases,
        "scores": scores.values,
        "ratios": ratios.values,
    }


def judge(folder, jobs):
    """Resamples, intervals and counts of ranks."""
    rng, owned = np.random.default_rng(0), np.arange(300)
    owners = np.arange(20).repeat(30)
    others = np.tile(np.arange(20), 30)
    speakers = TrialSpeakers(np.array([f"p{n}" for n in range(20)]), owners, others)
    sample = sample_of(
        rng.standard_normal(600) + 2 * (owners == others), owners == others, speakers
    )
    found = bootstrap(sample, Metrics(), Resampling(120, 3), jobs=jobs)[0]
    intervals = confidence_intervals(sample, Metrics(), Resampling(120, 3), jobs=jobs)
    gallery = rng.standard_normal((3000, 24)).astype(np.float32)
    trials = gallery[:300] + 2 * rng.standard_normal((300, 24)).astype(np.float32)
    norms = np.linalg.norm(gallery.astype(np.float64), axis=1)
    np.save(folder / "gallery.npy", gallery)
    mapped = np.load(folder / "gallery.npy", mmap_mode="r")
    counts, again = (
        count_beaters(rows, norms, trials, owned, work=Work(jobs), blocks=(255, 128))
        for rows in (gallery, mapped)
    )
    names = np.array([f"p{number:04d}" for number in range(3000)], object)
    tested = SpeakerVectors(names[:300], trials, np.linalg.norm(trials.astype(np.float64), axis=1))
    ranks = Ranks(counts[0], counts[1], 2999, names[:300], counts[2])
    largest = [
        largest_impostor_scores(SpeakerVectors(names, rows, norms), tested, ranks, jobs=jobs)
        for rows in (gallery, mapped)
    ]
    assert all((one == other).all() for one, other in zip(again, counts, strict=True))
    assert (largest[0] == largest[1]).all()
    return {
        **found,
        "low": np.array([one.low for one in intervals.values()]),
        "high": np.array([one.high for one in intervals.values()]),
        **dict(zip(("beaters", "ties", "mated"), counts, strict=True)),
        "largest": largest[0],
    }


@pytest.fixture(scope="module")
def expected(frames, tmp_path_factory):
    """With one worker, in this thread."""
    return work_out(frames, 1) | judge(tmp_path_factory.mktemp("judge"), 1)


def check(found, expected):
    differing = [name for name, one in found.items() if one.tobytes() != expected[name].tobytes()]
    assert not differing
    assert all(one.dtype == expected[name].dtype and one.size for name, one in found.items())


@pytest.mark.parametrize(
    ("engine", "where"),
    [("threads", "file"), ("loky", "file"), ("loky", "memory"), ("five workers", "memory")],
)
def test_all_local_engines_give_the_same_bits(engine, where, frames, stored, expected, tmp_path):
    use, jobs = ENGINES[engine]
    with use():
        check(work_out(frames if where == "memory" else stored, jobs), expected)
        check(judge(tmp_path, jobs), expected)


def test_a_cluster_gives_the_same_bits(dask_cluster, frames, expected, tmp_path):
    with use_engine(dask_cluster.address):
        check(work_out(frames, None), expected)
        check(judge(tmp_path, None), expected)


@pytest.mark.parametrize("kind", ["loky", "dask"])
def test_every_worker_can_extract_vectors(kind, dask_cluster, tmp_path, monkeypatch):
    """An extractor is opened again by each worker, from paths that are relative to us."""
    folder = tmp_path / "set"
    folder.mkdir()
    write_torch(tmp_path / "ge2e.pt", random_ge2e(0))
    for number in range(20):
        write_audio(
            folder / f"{number}.wav",
            0.1 * np.random.default_rng(number).standard_normal(4000),
            16000,
        )
    (folder / "wav.scp").write_text(
        "".join(f"s-{number} set/{number}.wav\n" for number in range(20))
    )
    (folder / "utt2spk").write_text("".join(f"s-{number} s\n" for number in range(20)))
    monkeypatch.chdir(tmp_path)
    source, extractor = read_datadir(Path("set")), open_extractor("ge2e:ge2e.pt")
    here = embed_directory(source, extractor, tmp_path / "here.h5", work=Work(jobs=1))
    with use_engine(dask_cluster.address if kind == "dask" else kind):
        there = embed_directory(source, extractor, tmp_path / "there.h5", work=Work(jobs=2))
    assert here.vectors.tobytes() == there.vectors.tobytes()
    assert (tmp_path / "here.h5").read_bytes() == (tmp_path / "there.h5").read_bytes()
