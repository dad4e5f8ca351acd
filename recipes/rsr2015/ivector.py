"""i-vector systems on RSR2015: one UBM, one total variability matrix, and a chain of steps for each system.

    python recipes/rsr2015/ivector.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]... [--jobs N]
                                     [--force] [--only STAGE | --until STAGE]

DIR is the root of RSR2015 (it holds sph/ and key/), or the word "simulated". The systems follow SIDEKIT's i-vector
tutorial: cosine, WCCN, LDA, Mahalanobis, two covariances and PLDA, with EFR and SphNorm. They are trained on the
background speakers. With given.vectors=FILE the vectors of `spkver embed` replace i-vectors.

Example:
  spkver rsr2015 ivector --corpus RSR2015_V1 --output exp/male-ivector
"""

from __future__ import annotations

from pathlib import Path

from spkbase import runs
from spkver import pipeline, rsr2015


def ivector(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Run all stages from audio to scores, and return the table of results."""
    lists = rsr2015.prepare(run, corpus, config)
    maps = rsr2015.training_lists(config, lists)
    given = rsr2015.given_files(config, maps, takes=["statistics", "vectors"])

    frames = None
    ubm = None
    statistics = {}
    vectors = {}
    if (
        "vectors" in given
    ):  # given vectors, such as those of networks, need neither a mixture nor a matrix
        for name, idmap in maps.items():
            vectors[name] = pipeline.given_vectors(run, name, given["vectors"], idmap)
    else:
        ready = given.get("statistics", {})
        if not ready:
            frames = pipeline.features(run, lists.recordings, config.features, seed=config.seed)
        ubm = pipeline.universal_model(run, frames, lists.ubm, config.ubm)
        for name, idmap in maps.items():
            statistics[name] = pipeline.statistics(
                run, name, ubm, frames, idmap, file=ready.get(name)
            )
        if frames is not None:
            frames.release()  # frees gigabytes that are not needed below
        matrix = pipeline.total_variability(
            run, ubm, statistics["training"], config.total_variability
        )
        for name, of_list in statistics.items():
            vectors[name] = pipeline.ivectors(
                run, name, matrix, of_list, method=config.ivectors.method
            )

    systems = {}
    for system, chain in config.chains().items():
        backend = pipeline.backend(run, system, vectors["training"], chain, seed=config.seed)
        systems[system] = pipeline.vector_scores(run, system, backend, vectors, lists.key.trials())
    return rsr2015.report("rsr2015/ivector", run, config, lists, ubm, systems)


_STAGES = [
    "features",
    "ubm",
    "statistics",
    "total variability",
    "vectors",
    "backend",
    "scores",
    "report",
]

main = rsr2015.recipe_command(ivector, __file__, about=__doc__, stages=_STAGES)

if __name__ == "__main__":
    main()
