"""Speed of each part against the machine's own matrix product, or against real time.

    python -m benchmarks.speed e-step | ivectors | nap | scoring | engines
    python -m benchmarks.speed features [CORPUS]          a tree like RSR2015's; else a simulated one
    python -m benchmarks.speed extractors [WEIGHTS]       the folder of weights; "-" leaves the networks out
    python -m benchmarks.speed anonymisation DATADIR      on one core, in seconds of the process
    python -m benchmarks.speed attackers DIR              data directories in the challenge's layout

Times are medians; a rate counts the operations of the formulas.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import describe_machine, matmul_rate, median_seconds
from evaluation.trials import Trials
from spkbase.work import Work, chunks, default_jobs, one_blas_thread, stop_workers, use_engine
from spkver.anonymization import AnonymizerConfig, make_anonymizer, turn_poles
from spkver.attackers import PRESETS, attacker_config, score, train_attacker
from spkver.audio import read_audio
from spkver.backend import SvmModels, fit_nap, score_trials
from spkver.corpora import CorpusSize, simulate_rsr2015
from spkver.datadir import read_datadir
from spkver.extractors import kaldi_filterbanks, mel_spectra, prosody_vector, session_vector
from spkver.extractors.networks import embed_frames, embed_windows, read_built_in
from spkver.extractors.weights import CAMPPLUS, GE2E
from spkver.features import (
    FeatureConfig,
    check_recordings,
    extract_features,
    load_frames,
    rapt_track,
    read_feature_table,
)
from spkver.mixture import GaussianMixture, Statistics, e_step, with_full_covariances
from spkver.vectors import (
    Supervectors,
    TotalVariabilityConfig,
    extract_ivectors,
    train_total_variability,
)

RATE = 16000


def some_mixture(
    rng: np.random.Generator, n_components: int = 512, dimension: int = 60
) -> GaussianMixture:
    """A mixture whose Gaussians are as far apart as those of speech: many posteriors are very small."""
    means = rng.standard_normal((n_components, dimension))
    return GaussianMixture(
        np.full(n_components, 1 / n_components), means, rng.uniform(0.2, 0.8, means.shape)
    )


def time_e_step(n_frames: int = 400_000) -> None:
    """Operations are those of its two products: 8 T C D, or 4 T C (D (D + 1) / 2 + D) with full covariances."""
    rng = np.random.default_rng(0)
    mixture = some_mixture(rng)
    (n_components, dimension), drawn = mixture.means.shape, rng.integers(512, size=n_frames)
    noise = rng.standard_normal((n_frames, dimension))
    frames = (mixture.means[drawn] + np.sqrt(mixture.variances[drawn]) * noise).astype(np.float32)
    for name, model, used, terms in (
        ("diagonal", mixture, frames, 2 * dimension),
        (
            "full",
            with_full_covariances(mixture),
            frames[: n_frames // 16],
            dimension * (dimension + 3) // 2,
        ),
    ):
        print(
            f"E-step, {name} covariances: {len(used)} frames, {n_components} Gaussians, {dimension} dimensions, float32"
        )
        for threads in sorted({1, default_jobs()}):
            reference = matmul_rate(threads)
            seconds = median_seconds(partial(e_step, used, model, work=Work(jobs=threads)))
            rate = 4 * len(used) * n_components * terms / seconds
            print(
                f"  {threads} thread(s): {rate / 1e9:6.1f} GFLOP/s, matrix product {reference / 1e9:6.1f} GFLOP/s, "
                f"ratio {rate / reference:.2f}, {seconds:.2f} s"
            )


def time_ivectors(n_segments: int = 2000, ranks: tuple[int, ...] = (100, 400)) -> None:
    """A round of EM and the extraction, in float64; segments of 100 to 500 frames, as uneven as those of speech."""
    rng = np.random.default_rng(0)
    mixture = some_mixture(rng)
    n_components, width = len(mixture.means), mixture.means.size
    shares = np.exp(np.minimum(rng.normal(-8, 8, (n_segments, n_components)), 0))
    counts = shares / shares.sum(axis=1, keepdims=True) * rng.integers(100, 500, (n_segments, 1))
    noise = rng.standard_normal((n_segments, *mixture.means.shape), np.float32)
    first = (
        counts[:, :, None] * mixture.means + np.sqrt(counts[:, :, None] * mixture.variances) * noise
    )
    names = np.array([f"s{row}" for row in range(n_segments)], object)
    statistics = Statistics(
        names, names, counts.astype(np.float32), first.reshape(n_segments, -1).astype(np.float32)
    )
    for rank in ranks:
        packed = rank * (rank + 1) / 2
        sums, products = 2 * n_segments * (n_components * packed + width * rank), 2 * width * packed
        em = (
            2 * sums
            + n_segments * (rank**3 + 2 * rank**2)
            + products
            + n_components * rank**3 / 3
            + 4 * width * rank**2
        )
        exact = sums + n_segments * (rank**3 / 3 + 2 * rank**2) + products
        start = train_total_variability(
            mixture, statistics, TotalVariabilityConfig(rank=rank, rounds=0)
        )
        config = TotalVariabilityConfig(rank=rank, rounds=1)
        print(
            f"total variability: {n_segments} segments, 512 x 60, rank {rank}, float64, median of 3"
        )
        for threads in sorted({1, default_jobs()}):
            extract = partial(extract_ivectors, start, statistics, work=Work(jobs=threads))
            train = partial(
                train_total_variability, mixture, statistics, config, start=start.loadings
            )
            for name, operations, task in (
                ("a round of EM", em, partial(train, work=Work(jobs=threads))),
                ("extraction", exact, extract),
                (
                    "extraction, eigen",
                    2.0 * n_segments * start.loadings.size,
                    partial(extract, method="eigen"),
                ),
            ):
                reference = matmul_rate(threads, size=2048, dtype=np.float64)
                seconds = median_seconds(task, repeats=3, warm_up=0)
                ratio = operations / seconds / reference
                print(
                    f"  {threads} thread(s), {name}: {seconds:.2f} s, ratio to the matrix product {ratio:.2f}"
                )


def time_nap(dimension: int = 3200, rank: int = 20, channels: int = 60) -> None:
    """Sessions that differ in `channels` directions, and a little in all."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((channels, dimension)).astype(np.float32)
    for n_sessions in (1000, 2000, 4000, 8000):
        vectors = rng.standard_normal((n_sessions, dimension)).astype(np.float32)
        vectors += rng.standard_normal((n_sessions, channels)).astype(np.float32) @ directions
        seconds = median_seconds(partial(fit_nap, vectors, rank=rank), repeats=1)
        print(f"  {n_sessions} sessions: {seconds:.1f} s", flush=True)


def time_scoring(n_models: int = 640, n_segments: int = 3840, dimension: int = 7680) -> None:
    """The cost follows the number of trials: all models of a sentence against all its segments, and random pairs."""
    rng = np.random.default_rng(0)
    models, segments = (np.array([f"{kind}{n:05d}" for n in range(size)], object)
                        for kind, size in (("m", n_models), ("s", n_segments)))  # fmt: skip
    weights = rng.standard_normal((n_models, dimension)).astype(np.float32)
    machines = SvmModels(models, weights, rng.standard_normal(n_models))
    tests = Supervectors(
        segments, segments, rng.standard_normal((n_segments, dimension)).astype(np.float32)
    )
    for share in (1, 4, 16):
        sentences = [
            np.meshgrid(np.arange(n, n_models, 16), np.arange(n, n_segments, 16))
            for n in range(share)
        ]
        count = n_models * n_segments // 256 * share
        scattered = np.divmod(rng.choice(n_models * n_segments, count, replace=False), n_segments)
        blocks = tuple(
            np.concatenate([pair[side].ravel() for pair in sentences]) for side in (0, 1)
        )
        for shape, pairs in (("blocks", blocks), ("scattered", scattered)):
            trials = Trials(models, segments, pairs[0].astype(np.int32), pairs[1].astype(np.int32))
            seconds = median_seconds(partial(score_trials, machines, tests, trials))
            print(
                f"  {shape}, {len(trials):7d} trials: {seconds:7.3f} s, {1e6 * seconds / len(trials):6.2f} us a trial"
            )


def empty_task(number: int) -> int:
    """Do nothing."""
    return number


def large_result(number: int) -> np.ndarray:
    """Return 2 MB."""
    return np.full(250_000, float(number))


def needs_all(common: np.ndarray, number: int) -> float:
    """Look at something that all tasks need."""
    return float(common[number])


def time_engines(workers: int = 2) -> None:
    """What each engine takes for a task beside its work; the cluster's scheduler and workers share this machine."""

    def drain(function: Callable[[int], Any], n_tasks: int) -> None:
        for _ in Work(workers).map(function, range(n_tasks), processes=True):
            pass

    def measure(engine: str) -> None:
        kinds = (
            (empty_task, 500),
            (large_result, 60),
            (partial(needs_all, np.arange(1_250_000.0)), 20),
        )
        with use_engine(engine):
            empty, result, needed = (median_seconds(partial(drain, *kind)) for kind in kinds)
        print(f"  {engine}: {2 * empty:.2f} ms a task, {1e3 * result / 60:.1f} ms with 2 MB of results, "
              f"{1e3 * needed:.1f} ms for 20 tasks that all need 10 MB")  # fmt: skip

    measure("threads")
    measure("loky")
    stop_workers()
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        measure(cluster.scheduler_address)


def time_features(corpus: str | None = None) -> None:
    """From audio files to the HDF5 store, and from there to frames."""
    with tempfile.TemporaryDirectory() as name:
        if corpus is None:
            corpus = f"{name}/corpus"
            simulate_rsr2015(corpus, CorpusSize(n_speakers=36, n_sentences=5, n_sessions=7))
        audio = [
            path
            for path in sorted(Path(corpus).rglob("*.*"))
            if path.suffix in (".sph", ".wav", ".flac")
        ]
        recordings = {str(path.with_suffix("")): path for path in audio}
        store = Path(name, "features.h5")
        for config in (FeatureConfig(), FeatureConfig(preset="sidekit", vad="energy")):
            seconds = check_recordings(recordings, config)
            print(f"detector {config.vad}: {len(recordings)} recordings, {seconds:.0f} s of audio")
            reading = median_seconds(lambda: [read_audio(path).rate for path in audio], repeats=3)
            for jobs in sorted({1, default_jobs()}):
                wall = median_seconds(
                    partial(extract_features, recordings, config, store, work=Work(jobs))
                )
                print(f"  {jobs} worker(s): {wall:.2f} s, {seconds / wall:.0f} times real time, "
                      f"{wall / reading:.1f} times reading the files by one")  # fmt: skip
            wall = median_seconds(
                partial(load_frames, read_feature_table(store), config, folder=Path(name)),
                repeats=3,
            )
            print(
                f"  post-processing into memory: {wall:.2f} s, {seconds / wall:.0f} times real time"
            )


@one_blas_thread()
def time_extractors(weights: str = "") -> None:
    """From samples to the vector, one thread; syllables of a swinging pitch for cues, noise for networks."""
    networks = {}
    for source, front_end, embed in (
        (CAMPPLUS, kaldi_filterbanks, embed_frames),
        (GE2E, mel_spectra, embed_windows),
    ):
        if weights != "-":
            started = time.perf_counter()
            network, _ = read_built_in(source, weights)
            print(f"  {source.network}: opened in {time.perf_counter() - started:.2f} s")
            networks[source.network] = front_end, partial(embed, network=network)
    for seconds in (3, 10, 30):
        rng, times = np.random.default_rng(0), np.arange(seconds * RATE) / RATE
        phase = 2 * np.pi * np.cumsum(150 + 30 * np.sin(2 * np.pi * 0.4 * times)) / RATE
        buzz = sum(np.sin(number * phase) / number for number in range(1, 30)) * np.clip(
            np.sin(8 * np.pi * times), 0, 1
        )
        noise = rng.standard_normal(len(times))
        speech, noise = (
            (0.1 * buzz + 1e-3 * noise).astype(np.float32),
            (0.1 * noise).astype(np.float32),
        )
        for name, function in (
            ("pitch", rapt_track),
            ("prosody", prosody_vector),
            ("session", session_vector),
        ):
            took = median_seconds(partial(function, speech, RATE), repeats=7)
            print(f"  {seconds} s by {name}: {seconds / took:.0f} times real time")
        for name, (front_end, embed) in networks.items():
            first = median_seconds(partial(front_end, noise), repeats=7)
            took = median_seconds(partial(embed, noise, RATE), repeats=7)
            print(
                f"  {seconds} s by {name}: {seconds / took:.0f} times real time, front end {first / took:.0%}"
            )


def time_anonymisation(datadir: str) -> None:
    """Five minutes of speech on one core; McAdams one utterance at a time, and eight as `spkver anonymize` does."""
    signals: list[np.ndarray] = []
    for path in read_datadir(datadir).recordings.values():
        if sum(map(len, signals)) < 300 * RATE:
            signals.append(read_audio(path, rate=RATE, resample=True).samples)

    def turned(size: int, some: list[np.ndarray]) -> None:
        for part in chunks(some, size):
            turn_poles(part, [RATE] * len(part), [0.8] * len(part))

    def by(name: str, some: list[np.ndarray]) -> None:
        anonymise = make_anonymizer(AnonymizerConfig(name))
        for signal in some:
            anonymise(signal, RATE, "u", np.random.default_rng(0))

    has_world = find_spec("pyworld") is not None
    few = signals[: max(1, len(signals) // 8)]
    ways: list[tuple[str, Callable[[list[np.ndarray]], None], list[np.ndarray]]] = [
        ("mcadams, one by one", partial(turned, 1), signals),
        ("mcadams, by eight", partial(turned, 8), signals),
        *(
            (name, partial(by, name), few)
            for name in ("resampling", "vtln", "world")
            if name != "world" or has_world
        ),
    ]
    with threadpool_limits(1):
        for name, work, some in ways:
            work(some)
            measured = []
            for _ in range(5):
                started = time.process_time()
                work(some)
                measured.append(time.process_time() - started)
            seconds = sum(map(len, some)) / RATE
            print(
                f"  {name}: {seconds / np.median(measured):.0f} times real time (best {seconds / min(measured):.0f})"
            )


def time_attackers(layout: str) -> None:
    """Training and scoring from audio on; in brackets with features, background model and statistics there."""
    folder, jobs = Path(layout), default_jobs()
    for enrolment in sorted(folder.glob("*_enrolls")):
        name = enrolment.name.removesuffix("_enrolls")
        train_set = folder / f"{name.removesuffix('_test')}_train"
        training = read_datadir(train_set if train_set.is_dir() else folder / "libri251")
        enrolled, tested = (
            read_datadir(enrolment),
            [read_datadir(path) for path in sorted(folder.glob(f"{name}_trials_*"))],
        )
        print(f"{name}, trained on {training.name}, {jobs} worker(s)")
        with tempfile.TemporaryDirectory() as place:
            for preset in PRESETS:
                times: list[float] = []
                for turn in ("first", "again"):
                    started, work = time.perf_counter(), Path(place, preset)
                    out = Path(place, f"{preset}-{turn}")
                    attacker = train_attacker(
                        training, attacker_config(preset), out, work=work, jobs=jobs
                    )
                    trained = time.perf_counter()
                    for data in tested:
                        if data.trials is not None:
                            score(
                                {preset: attacker},
                                enrolled,
                                data,
                                data.trials.trials(),
                                work=work,
                                jobs=jobs,
                            )
                    times += [trained - started, time.perf_counter() - trained]
                print(
                    f"  {preset}: training {times[0]:.1f} s ({times[2]:.1f}), scoring {times[1]:.1f} s ({times[3]:.1f})"
                )


PARTS: dict[str, Callable[..., None]] = {
    "e-step": time_e_step,
    "ivectors": time_ivectors,
    "nap": time_nap,
    "scoring": time_scoring,
    "engines": time_engines,
    "features": time_features,
    "extractors": time_extractors,
    "anonymisation": time_anonymisation,
    "attackers": time_attackers,
}

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in PARTS:
        sys.exit(__doc__)
    print(describe_machine())
    PARTS[sys.argv[1]](*sys.argv[2:])
