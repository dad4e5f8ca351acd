"""How much identity leaks through an anonymiser: train attackers, score the trial lists, report.

    python recipes/voiceprivacy/run.py --data DIR --suffix _mcadams --output DIR [--config FILE] [--set KEY=VALUE]...
                                      [--jobs N] [--engine ENGINE] [--allow-pipes] [--until STEP] [--force]

DIR holds the challenge's data directories, or it is the word "simulated": SIMULATED speech is made. Anonymised twins
(<set>SUFFIX) are taken where they are there, else made. Steps are named in `spkver.voiceprivacy.STEPS`; how
far they are is shown by ``spkver status OUTPUT``.
"""

from __future__ import annotations

from spkver import voiceprivacy


def evaluate(experiment: voiceprivacy.Experiment) -> str:
    """Go from speech to the numbers of every condition, and report; returns the table of results."""
    sets = voiceprivacy.check(experiment)  # everything that is wrong is found first
    sets = voiceprivacy.anonymise(experiment, sets)  # data/
    attackers = voiceprivacy.train(experiment, sets)  # work/, attackers/
    scores = voiceprivacy.score(experiment, sets, attackers)  # exp/
    table = voiceprivacy.assess(experiment, scores)  # numbers/, evidence.json
    utility = voiceprivacy.utility(experiment, sets)
    return voiceprivacy.report(experiment, sets, scores, table, utility)  # results.json, report.html


main = voiceprivacy.evaluation_command(evaluate, __file__, about=__doc__)

if __name__ == "__main__":
    main()
