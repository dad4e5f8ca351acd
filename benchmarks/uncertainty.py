"""Cost of 1,000 joint speaker resamples of 50,000 trials: of EER and minDCF, and of every metric."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import describe_machine, median_seconds
from evaluation.metrics import Metrics, SortedScores, eer, min_dcf
from evaluation.trials import TrialSpeakers
from evaluation.uncertainty import Sample, bootstrap, sample_of

LIMITS = {"EER and minDCF": 5.0, "every metric": 30.0}


def eer_and_min_dcf(scores: SortedScores) -> dict[str, float]:
    """Compute the two from one isotonic regression."""
    return {"eer.rocch": eer(scores), "min_dcf.0.01": min_dcf(scores, p_target=0.01)}


def simulate(n_trials: int = 50_000, n_speakers: int = 100, *, share: float = 0.1) -> Sample:
    """Draw trials of so many speakers, a share of them target trials, with effects of the speakers."""
    rng = np.random.default_rng(0)
    is_target = rng.random(n_trials) < share
    models, others = rng.integers(0, n_speakers, (2, n_trials))
    segments = np.where(is_target, models, (models + 1 + others % (n_speakers - 1)) % n_speakers)
    effects = rng.standard_normal(n_speakers)
    scores = 2 * is_target + rng.standard_normal(n_trials) + 0.5 * (effects[models] + effects[segments])
    names = np.array([f"s{number:03d}" for number in range(n_speakers)], object)
    return sample_of(scores, is_target, TrialSpeakers(names, models, segments))


def main(replicates: int = 1000) -> None:
    sample = simulate()
    print(describe_machine())
    sort = median_seconds(lambda: np.sort(sample.scores[np.argsort(sample.order)]))
    print(f"{replicates} joint speaker resamples of {len(sample)} trials, 1 worker, median of 3")
    for name, statistic in (("EER and minDCF", eer_and_min_dcf), ("every metric", Metrics())):
        seconds = median_seconds(
            lambda statistic=statistic: bootstrap(sample, statistic, replicates=replicates),  # type: ignore[misc]
            repeats=3,
            warm_up=0,
        )
        ratio = seconds / replicates / sort
        print(f"  {name}: {seconds:.2f} s (limit {LIMITS[name]:.0f} s), {ratio:.2f} sorts of the scores a resample")


if __name__ == "__main__":
    main()
