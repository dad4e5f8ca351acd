"""i-vectors of hidden Markov models on RSR2015: statistics by state without the effect of the text, and a backend for
each word.

    python recipes/rsr2015/ivector_hmm.py --corpus DIR --output DIR [--config FILE] [--set KEY=VALUE]... [--jobs N]
                                          [--force] [--only STAGE | --until STAGE]

DIR is the root of RSR2015 (it holds sph/ and key/), or the word "simulated". In parts 1 and 2 a sentence is one word;
in part 3 digits are scored one by one, and their scores averaged. The text is judged by the same models, and both
scores are fused by weights that are trained on background speakers.

Example:
  spkver rsr2015 ivector-hmm --corpus RSR2015_V1 --output exp/male-hmm --set 'trials.nontarget=[TW, IC, IW]'
"""

from __future__ import annotations

from pathlib import Path

from spkbase import runs
from spkver import pipeline, rsr2015


def ivector_hmm(run: runs.Run, corpus: Path, config: rsr2015.RecipeConfig) -> str:
    """Run all stages from audio to scores, and return the table of results."""
    lists = rsr2015.prepare(run, corpus, config)
    known = rsr2015.text_lists(config, lists)
    rsr2015.given_files(config, {}, takes=[])

    frames = pipeline.features(run, lists.recordings, config.features, seed=config.seed)
    words = pipeline.word_models(run, frames, known.training, config.hidden_markov)
    ubm = pipeline.universal_model(run, frames, lists.ubm, config.ubm)

    aligned = {}
    statistics = {}
    for name in ("training", "enroll", "test"):
        aligned[name] = pipeline.aligned_words(
            run, name, words, frames, known.maps[name], known.texts[name]
        )
    states = pipeline.word_states(
        run, "states", ubm, words, frames, aligned["training"], config.map.relevance
    )
    for name, of_list in aligned.items():
        statistics[name] = pipeline.statistics_without_text(
            run, name, ubm, words, states, frames, of_list
        )
    matrix = pipeline.total_variability(run, ubm, statistics["training"], config.total_variability)
    vectors = {
        name: pipeline.ivectors(run, name, matrix, of_list) for name, of_list in statistics.items()
    }

    systems = {"text": pipeline.text_scores(run, words, frames, known.prompted)}
    for system, chain in config.chains().items():
        backend = pipeline.backend(run, system, vectors["training"], chain, seed=config.seed)
        systems[system] = pipeline.word_scores(
            run, system, backend, vectors, aligned, known.prompted
        )
    return rsr2015.report("rsr2015/ivector_hmm", run, config, lists, ubm, systems)


_STAGES = [
    "features",
    "ubm",
    "models",
    "words",
    "states",
    "statistics",
    "total variability",
    "vectors",
    "backend",
    "scores",
    "report",
]

main = rsr2015.recipe_command(ivector_hmm, __file__, about=__doc__, stages=_STAGES)

if __name__ == "__main__":
    main()
