"""HiLAM on RSR2015: the background's mixture, adapted to a speaker, adapted to the states of the speaker's sentence.

    python recipes/rsr2015/hilam.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]... [--jobs N]
                                    [--force] [--only STAGE | --until STAGE]

DIR is the root of RSR2015 (it holds sph/ and key/), or the word "simulated". A score is the log-likelihood of the best
path through the states minus that of the background's mixture (`hilam`), or of the speaker's own mixture
(`hilam-text`), which verifies only the text. The text is also judged by hidden Markov models of the background
(`text`).

Example:
  spkver rsr2015 hilam --corpus RSR2015_V1 --output exp/male-hilam --set 'trials.nontarget=[TW, IC, IW]'
"""

from __future__ import annotations

from pathlib import Path

from spkbase import runs
from spkver import pipeline, rsr2015


def hilam(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Run all stages from audio to scores, and return the table of results."""
    lists = rsr2015.prepare(run, corpus, config)
    known = rsr2015.text_lists(config, lists)
    rsr2015.given_files(config, {}, takes=[])

    frames = pipeline.features(run, lists.recordings, config.features, seed=config.seed)
    words = pipeline.word_models(run, frames, known.training, config.hidden_markov)
    aligned = {}
    for name in ("enroll", "test"):
        aligned[name] = pipeline.aligned_words(
            run, name, words, frames, known.maps[name], known.texts[name]
        )

    ubm = pipeline.universal_model(run, frames, lists.ubm, config.ubm)
    statistics = pipeline.statistics(run, "speakers", ubm, frames, known.maps["speakers"])
    speakers = pipeline.supervectors(
        run, "speakers", ubm, statistics, config.map, multisession=True
    )
    own = (speakers, lists.speakers()[0])
    relevance = config.map.relevance
    sentences = pipeline.word_states(
        run, "sentences", ubm, words, frames, aligned["enroll"], relevance, *own
    )

    systems = {"text": pipeline.text_scores(run, words, frames, known.prompted)}
    inputs = ubm, sentences, frames, aligned["test"], known.prompted
    systems["hilam"] = pipeline.sentence_scores(run, "hilam", *inputs)
    systems["hilam-text"] = pipeline.own_text_scores(
        run, "hilam-text", systems["hilam"], *inputs, *own
    )
    return rsr2015.report("rsr2015/hilam", run, config, lists, ubm, systems)


_STAGES = [
    "features",
    "ubm",
    "models",
    "words",
    "states",
    "statistics",
    "supervectors",
    "scores",
    "report",
]

main = rsr2015.recipe_command(hilam, __file__, about=__doc__, stages=_STAGES)

if __name__ == "__main__":
    main()
