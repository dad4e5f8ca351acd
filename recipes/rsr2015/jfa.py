"""Joint factor analysis on RSR2015: eigenvoices, eigenchannels and a residual, scored by inner products.

    python recipes/rsr2015/jfa.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]... [--jobs N]
                                  [--force] [--only STAGE | --until STAGE]

DIR is the root of RSR2015 (it holds sph/ and key/), or the word "simulated". The factors are trained on the
background speakers.

Example:
  spkver rsr2015 jfa --corpus RSR2015_V1 --output exp/male-jfa
"""

from __future__ import annotations

from pathlib import Path

from spkbase import runs
from spkver import pipeline, rsr2015


def jfa(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Run all stages from audio to scores, and return the table of results."""
    lists = rsr2015.prepare(run, corpus, config)
    maps = rsr2015.speaker_lists(config, lists)
    given = rsr2015.given_files(config, maps, takes=["statistics"])

    frames = None
    ready = given.get("statistics", {})
    if not ready:
        frames = pipeline.features(run, lists.recordings, config.features, seed=config.seed)
    ubm = pipeline.universal_model(run, frames, lists.ubm, config.ubm)

    statistics = {}
    for name, idmap in maps.items():
        statistics[name] = pipeline.statistics(run, name, ubm, frames, idmap, file=ready.get(name))
    if frames is not None:
        frames.release()  # frees gigabytes that are not needed below
    factors = pipeline.joint_factors(run, ubm, statistics["training"], config.joint_factors)
    scores = pipeline.joint_factor_scores(run, "jfa", factors, statistics, lists.key.trials())
    return rsr2015.report("rsr2015/jfa", run, config, lists, ubm, {"jfa": scores})


_STAGES = ["features", "ubm", "statistics", "joint factors", "scores", "report"]

main = rsr2015.recipe_command(jfa, __file__, about=__doc__, stages=_STAGES)

if __name__ == "__main__":
    main()
