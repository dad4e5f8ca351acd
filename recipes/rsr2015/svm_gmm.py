"""The SVM-GMM system on RSR2015: MAP supervectors, with and without NAP, one SVM for each model.

    python recipes/rsr2015/svm_gmm.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]... [--jobs N]
                                     [--force] [--only STAGE | --until STAGE]

DIR is the root of RSR2015 (it holds sph/ and key/), or the word "simulated". The steps follow SIDEKIT's tutorial.

Example:
  spkver rsr2015 svm-gmm --corpus simulated --output demo
  spkver rsr2015 svm-gmm --corpus RSR2015_V1 --output exp/male --set ubm.components=512
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from spkbase import runs
from spkver import pipeline, rsr2015


def svm_gmm(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Run all stages from audio to scores, and return the table of results."""
    lists = rsr2015.prepare(run, corpus, config)
    trials = lists.key.trials()
    nap_list = rsr2015.NAP_LISTS[config.nap.list]
    maps = rsr2015.named_lists(lists, "enroll", "back", "test", nap_list)
    given = rsr2015.given_files(
        config, maps, takes=["statistics", "supervectors", "machines", "machines_nap"]
    )

    frames = None
    ubm = None
    vectors = {}
    ready = given.get("statistics", {})
    if "supervectors" in given:  # SIDEKIT or another run has done the earlier stages
        for name, idmap in maps.items():
            vectors[name] = pipeline.given_supervectors(
                run, name, given["supervectors"][name], idmap
            )
    else:
        if not ready:
            frames = pipeline.features(run, lists.recordings, config.features, seed=config.seed)
        ubm = pipeline.universal_model(run, frames, lists.ubm, config.ubm)
        for name, idmap in maps.items():
            statistics = pipeline.statistics(run, name, ubm, frames, idmap, file=ready.get(name))
            vectors[name] = pipeline.supervectors(run, name, ubm, statistics, config.map)
        if frames is not None:
            frames.release()  # frees gigabytes that are not needed below

    systems = {}
    system = partial(
        pipeline.svm_system,
        run,
        of_lists=vectors,
        trials=trials,
        config=config.svm.training,
        as_files=config.svm.files,
    )
    systems["svm-gmm"] = system("svm-gmm", machines=given.get("machines"))
    if config.nap.rank:
        projection = pipeline.nuisance_projection(run, vectors[nap_list], config.nap)
        systems["svm-gmm-nap"] = system(
            "svm-gmm-nap", projection=projection, machines=given.get("machines_nap")
        )
    return rsr2015.report("rsr2015/svm_gmm", run, config, lists, ubm, systems)


_STAGES = ["features", "ubm", "statistics", "supervectors", "models", "nap", "scores", "report"]

main = rsr2015.recipe_command(svm_gmm, __file__, about=__doc__, stages=_STAGES)

if __name__ == "__main__":
    main()
