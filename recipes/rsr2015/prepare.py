"""Write the lists of an RSR2015 experiment.

python recipes/rsr2015/prepare.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]...

Example:
  spkver rsr2015 prepare --corpus RSR2015_V1 --output exp/lists
"""

from __future__ import annotations

from pathlib import Path

from spkbase import runs
from spkver import rsr2015


def write_lists(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Check the corpus, write the lists to ``task/`` and return their sizes."""
    lists = rsr2015.prepare(run, corpus, config)
    return (
        f"{len(lists.ubm)} UBM, {len(lists.background)} background, {len(lists.nap)} NAP and "
        f"{len(lists.test)} test recordings, {len(lists.enrolment.unique_models())} models, "
        f"{int(lists.key.is_target.sum())} target and {int((~lists.key.is_target).sum())} nontarget trials: "
        f"{run.path('task')}"
    )


main = rsr2015.recipe_command(write_lists, __file__, about=__doc__, config="svm_gmm")

if __name__ == "__main__":
    main()
