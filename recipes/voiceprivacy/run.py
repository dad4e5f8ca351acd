"""How much identity leaks through an anonymiser: train attackers, score the trial lists, report.

    python recipes/voiceprivacy/run.py --data DIR --suffix _mcadams --output DIR [--config FILE] [--set KEY=VALUE]...
                                      [--anonymised DIR] [--jobs N] [--engine ENGINE] [--allow-pipes] [--until STEP]
                                      [--force]

DIR holds the challenge's data directories; with the word "simulated" SIMULATED speech is made instead. Existing
anonymised twins (<set>SUFFIX) are used, missing ones are made. `spkver.voiceprivacy.STEPS` names the steps;
``spkver status OUTPUT`` shows their progress.

Example:
  spkver voiceprivacy --data simulated --suffix _mcadams --output demo/voiceprivacy
  spkver voiceprivacy --data data --suffix _mine --output exp/mine --config config/vpc2024.yaml
"""

from __future__ import annotations

from spkver import voiceprivacy


def evaluate(experiment: voiceprivacy.Experiment) -> str:
    """Run all steps from speech to the report, and return the text that is shown at the end."""
    sets = voiceprivacy.check(experiment)  # all problems are reported first
    sets = voiceprivacy.anonymise(experiment, sets)  # data/
    voiceprivacy.check_pairs(experiment, sets)  # pairs/
    facts = voiceprivacy.find_facts(experiment, sets)  # checks/
    voiceprivacy.recognise_words(experiment, sets)  # asr/, if an attacker reads them
    plan = voiceprivacy.plan_attacks(experiment, sets, facts)  # plan.csv
    speech = voiceprivacy.extract(experiment, plan)  # work/
    models = voiceprivacy.fit(experiment, plan, speech)  # attackers/
    scores = voiceprivacy.score(experiment, sets, plan, speech, models)  # exp/
    table = voiceprivacy.assess(experiment, scores)  # numbers/, evidence.json
    utility = voiceprivacy.utility(experiment, sets)
    # results.json, report.html
    return voiceprivacy.report(experiment, sets, scores, table, utility)


main = voiceprivacy.evaluation_command(evaluate, __file__, about=__doc__)

if __name__ == "__main__":
    main()
