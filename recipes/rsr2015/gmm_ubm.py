"""The GMM-UBM system on RSR2015: MAP-adapted models, scored by the log-likelihood ratio to the UBM.

    python recipes/rsr2015/gmm_ubm.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]... [--jobs N]
                                     [--force] [--only STAGE | --until STAGE]

DIR is the root of RSR2015 (it holds sph/ and key/), or the word "simulated".

Example:
  spkver rsr2015 gmm-ubm --corpus RSR2015_V1 --output exp/male-gmm --set ubm.components=512
"""

from __future__ import annotations

from pathlib import Path

from spkbase import runs
from spkver import pipeline, rsr2015


def gmm_ubm(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Run all stages from audio to scores, and return the table of results."""
    lists = rsr2015.prepare(run, corpus, config)
    maps = rsr2015.named_lists(lists, "enroll")
    given = rsr2015.given_files(config, maps, takes=["statistics"])

    frames = pipeline.features(run, lists.recordings, config.features, seed=config.seed)
    ubm = pipeline.universal_model(run, frames, lists.ubm, config.ubm)

    ready = given.get("statistics", {})
    statistics = pipeline.statistics(
        run, "enroll", ubm, frames, maps["enroll"], file=ready.get("enroll")
    )
    models = pipeline.supervectors(run, "models", ubm, statistics, config.map, multisession=True)
    scores = pipeline.gmm_scores(run, "gmm-ubm", ubm, models, frames, lists.key.trials())
    return rsr2015.report("rsr2015/gmm_ubm", run, config, lists, ubm, {"gmm-ubm": scores})


_STAGES = ["features", "ubm", "statistics", "supervectors", "scores", "report"]

main = rsr2015.recipe_command(gmm_ubm, __file__, about=__doc__, stages=_STAGES)

if __name__ == "__main__":
    main()
