"""A neural anonymiser attacked by its vectors alone: what each attacker makes of x-vectors before and after it.

    python -m benchmarks.neural_anonymiser VECTORS_FOLDER [--bootstrap 1000]
        VECTORS_FOLDER: original_extractor/ and retrained_extractor/ with enrolls, trials_f, trials_m and, with _anon,
        the same anonymised (.npz, .h5, .scp ...); lists/ with utt2spk, enrolls, trials_f and trials_m

Speech is not needed: enrolment and trials are data directories whose recordings are never opened, and the attackers are
`vectors:` and `adapted:` folders, chains of a backend, and chains after a map of anonymised to original vectors. There
is no background: a chain learns from the enrolled vectors, a map from the pairs of original and anonymised enrolment.
The level of an attacker is that of `evaluation.trials.LEVELS`; maps learn from pairs, so they are inverting.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.embeddings import Alignment, Embeddings, MapKind, fit_alignment, read_embeddings
from evaluation.formats import read_key
from evaluation.linkage import (
    LINKED,
    AlignmentSettings,
    link_aligned,
    linkability_curve,
    linked_shares,
    linked_vectors,
    ranks_from_scores,
)
from evaluation.metrics import SortedScores, eer
from evaluation.trials import (
    ALL_ENROLLED,
    INVERTING,
    ONE_MODEL,
    WHOLE_LIST,
    Key,
    Scores,
    read_speakers,
)
from evaluation.uncertainty import Resampling, confidence_intervals, sample_from
from spkbase.arrays import Floats
from spkbase.files import format_table
from spkver.attackers import Attack, TrainingSet
from spkver.attackers.ready import ReadyVectors
from spkver.attackers.registry import ADAPTING
from spkver.backend import (
    STEPS,
    Sessions,
    enrolled_plda_scores,
    self_trained_scores,
    shifted_self_trained_scores,
    train_chain,
)
from spkver.datadir import DataDir

SEXES = {"f": "women", "m": "men"}
SCENARIOS = {
    "original": ("original_extractor", "", ""),
    "ignorant": ("original_extractor", "", "_anon"),
    "lazy-informed": ("original_extractor", "_anon", "_anon"),
    "semi-informed": ("retrained_extractor", "_anon", "_anon"),
}
LEVEL_OF = {"vectors": ONE_MODEL, "adapted": WHOLE_LIST, "self-trained": WHOLE_LIST}
CHAINS = {
    "length,cosine": ONE_MODEL,
    "centre,length,cosine": ALL_ENROLLED,
    "single_test_cosine": ALL_ENROLLED,
    "enrolled_plda": ALL_ENROLLED,
}
MAPS: tuple[tuple[MapKind, str, bool, str], ...] = (
    # kind of the map, what enrols, each side's own mean, chain after it
    ("orthogonal", "original", False, "cosine"),
    ("orthogonal", "original", True, "cosine"),
    ("ridge", "mapped", False, "cosine"),
    ("ridge", "mapped", True, "cosine"),
    ("ridge", "mapped", True, "adapted_cosine"),
)
ALIGNMENTS = ("orthogonal", "ridge", "wasserstein")
# the last with "orthogonal" is the accuracy of Champion et al.
MEANS = ("of the pairs", "each side's own", "none")


class Vectors:
    """The folder: its lists, its vectors with their speakers, its data directories."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.speakers = folder, read_speakers(folder / "lists" / "utt2spk")
        self.enrolled = tuple((folder / "lists" / "enrolls").read_text(encoding="utf-8").split())
        self.keys = {sex: read_key(folder / "lists" / f"trials_{sex}") for sex in SEXES}

    def read(self, extractor: str, name: str) -> Embeddings:
        return read_embeddings(
            next((self.folder / extractor).glob(f"{name}.*")),
            speakers=self.folder / "lists" / "utt2spk",
        )

    def models(self, extractor: str, end: str, key: Key) -> Embeddings:
        """Return the enrolled vectors of the models of a list."""
        found = self.read(extractor, f"enrolls{end}")
        chosen = np.isin(found.speakers.astype(str), key.model_ids.astype(str)) & np.isin(
            found.ids, self.enrolled
        )
        return Embeddings(
            found.ids[chosen], found.speakers[chosen], np.asarray(found.vectors)[chosen]
        )

    def directory(
        self, name: str, utterances: list[str], enrolls: tuple[str, ...] | None = None
    ) -> DataDir:
        recordings = {utterance: Path(utterance) for utterance in utterances}  # are never opened
        return DataDir(
            Path(name), recordings, {one: self.speakers[one] for one in utterances}, {}, enrolls
        )


def scores_of(vectors: Vectors, scenario: str, sex: str) -> Iterator[tuple[str, str, Scores]]:
    """Yield each attacker with its level and its scores of the trials of one sex."""
    extractor, first, second = SCENARIOS[scenario]
    key = vectors.keys[sex]
    enrolled, tested = (
        vectors.models(extractor, first, key),
        vectors.read(extractor, f"trials_{sex}{second}"),
    )
    enrolment = vectors.directory(f"enrolls{first}", [*vectors.enrolled], vectors.enrolled)
    tests = vectors.directory(f"trials_{sex}{second}", key.segment_ids.tolist())
    for prefix, level in LEVEL_OF.items():
        attacker = ReadyVectors(prefix, vectors.folder / extractor, ADAPTING.get(prefix, ""))
        attack = Attack(TrainingSet(enrolment), (enrolment,), tests, key.trials(), scenario)
        yield f"{prefix}:", level, attacker.score(None, attack, None)
    for chain, level in CHAINS.items():
        if {*chain.split(",")} <= {step.name for step in STEPS}:
            yield chain, level, train_chain(enrolled, chain).score(enrolled, tested, key.trials())
    sides = vectors, extractor, first, sex, tested
    yield (
        "enrolled_plda of both sexes",
        ALL_ENROLLED,
        both_sexes_scores(*sides, enrolled_plda_scores),
    )
    self_trained = self_trained_scores if first == second else shifted_self_trained_scores
    yield "self_trained_plda of both sexes", WHOLE_LIST, both_sexes_scores(*sides, self_trained)
    if not first:
        return
    original = vectors.models(extractor, "", key)
    source, target = (
        linked_vectors(vectors.read(extractor, f"enrolls{end}")).vectors for end in ("_anon", "")
    )
    for kind, enrols, own_means, chain in MAPS:
        map_of = fit_alignment(source, target, kind)
        mapped = [
            moved(linked_vectors(side), map_of, own_means=own_means) for side in (enrolled, tested)
        ]
        enrol = (
            mapped[0]
            if enrols == "mapped"
            else centred(linked_vectors(original), map_of, own_means=own_means)
        )
        title = f"{kind} map, {enrols} enrolment{', own means' * own_means}, {chain}"
        yield title, INVERTING, train_chain(enrol, chain).score(enrol, mapped[1], key.trials())


def both_sexes_scores(
    vectors: Vectors,
    extractor: str,
    end: str,
    sex: str,
    tested: Embeddings,
    score: Callable[..., Floats],
) -> Scores:
    """Return the ratios of a PLDA of the enrolled speakers of both sexes; each sex is centred by its models' mean."""
    sides = {one: vectors.models(extractor, end, key) for one, key in vectors.keys.items()}
    means = {}
    for one, side in sides.items():
        models = np.unique(side.speakers, return_inverse=True)[1]
        means[one] = Sessions(np.asarray(side.vectors, np.float64), models).means.mean(axis=0)
    names, codes = np.unique(
        np.concatenate([side.speakers for side in sides.values()]), return_inverse=True
    )
    sessions = Sessions(
        np.concatenate([side.vectors - means[one] for one, side in sides.items()]), codes
    )
    trials = vectors.keys[sex].trials()
    models = np.searchsorted(names, trials.model_ids)[trials.models]
    row_of = {name: row for row, name in enumerate(tested.ids.tolist())}
    segments = np.array([row_of[name] for name in trials.segment_ids.tolist()])[trials.segments]
    values = score(sessions, tested.vectors - means[sex], models, segments)
    return Scores(
        trials.model_ids, trials.segment_ids, trials.models, trials.segments, values=values
    )


def moved(side: Embeddings, fitted: Alignment, *, own_means: bool) -> Embeddings:
    """Return anonymised vectors in the original space, about its origin, less their own mean or that of the pairs."""
    source_mean = np.mean(side.vectors, axis=0) if own_means else fitted.source_mean
    return replace(
        side,
        vectors=Alignment(source_mean, 0 * fitted.target_mean, fitted.matrix).apply(side.vectors),
    )


def centred(side: Embeddings, fitted: Alignment, *, own_means: bool) -> Embeddings:
    mean = np.mean(side.vectors, axis=0) if own_means else fitted.target_mean
    return replace(side, vectors=side.vectors - mean)


def rate_of(scores: SortedScores) -> dict[str, float]:
    return {"eer.rocch": eer(scores)}


def attacker_rows(vectors: Vectors, resampling: Resampling) -> list[dict[str, Any]]:
    """Return the equal error rate and the linkability of each attacker, in %, with intervals over speakers."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for scenario in SCENARIOS:
        for sex, word in SEXES.items():
            for attacker, level, scores in scores_of(vectors, scenario, sex):
                key = vectors.keys[sex]
                facts = {"scenario": scenario, "attacker": attacker, "level": level}
                row = rows.setdefault((scenario, attacker), facts)
                of_models = {model: model for model in key.model_ids.tolist()}
                sample, _ = sample_from(
                    scores, key, model_speakers=of_models, segment_speakers=vectors.speakers
                )
                rate = confidence_intervals(sample, rate_of, resampling)["eer.rocch"]
                ranks = ranks_from_scores(scores, key)
                curve = linkability_curve(ranks, [ranks.largest_size], resampling=resampling)
                row[f"EER, {word}"] = cell(rate.value, rate.low, rate.high)
                row[f"linked, {word}"] = cell(
                    *(float(ends[0]) for ends in (curve.values, curve.low, curve.high))
                )
    return [
        row for wanted in SCENARIOS for (scenario, _), row in rows.items() if scenario == wanted
    ]


def alignment_rows(vectors: Vectors, resampling: Resampling) -> list[dict[str, Any]]:
    """Return the shares of segments that are linked after maps learnt from the enrolment, as `spkver-eval align`."""
    rows = []
    for extractor in dict.fromkeys(extractor for extractor, *_ in SCENARIOS.values()):
        learnt = (
            linked_vectors(vectors.read(extractor, "enrolls")),
            linked_vectors(vectors.read(extractor, "enrolls_anon")),
        )
        for kind in ALIGNMENTS:
            for means in MEANS:
                row: dict[str, Any] = {
                    "extractor": extractor.split("_")[0],
                    "map": kind,
                    "means": means,
                }
                settings = AlignmentSettings(
                    seed=resampling.seed, own_means=means == MEANS[1], uncentred=means == MEANS[2]
                )
                for sex, word in SEXES.items():
                    original = linked_vectors(vectors.read(extractor, f"trials_{sex}"))
                    anonymised = linked_vectors(vectors.read(extractor, f"trials_{sex}_anon"))
                    aligned = link_aligned((original, anonymised), learnt, kind, settings)
                    linked = linked_shares(aligned[1], [1], resampling)
                    for name in LINKED[:2]:
                        found = next(one for one in linked if one["linked"] == name)
                        row[f"{name}, {word}"] = cell(found["share"], found["low"], found["high"])
                rows.append(row)
    return rows


def cell(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bootstrap", type=int, default=1000)
    options = parser.parse_args()
    vectors, resampling = Vectors(options.folder), Resampling(options.bootstrap)
    for sex, key in vectors.keys.items():
        n_speakers = len({vectors.speakers[name] for name in key.segment_ids.tolist()})
        counts = f"{len(key.model_ids)} models, {len(key.segment_ids)} recordings of {n_speakers} speakers"
        n_target = int(key.is_target.sum())
        print(
            f"{SEXES[sex]}: {counts}, {n_target} target and {len(key) - n_target} nontarget trials"
        )
    for rows in (attacker_rows(vectors, resampling), alignment_rows(vectors, resampling)):
        print(f"\n{format_table(rows, markdown=True)}")


if __name__ == "__main__":
    main()
