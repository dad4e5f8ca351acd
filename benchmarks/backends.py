"""What each step of a backend does to EER and Cllr on public speech: every chain of `CHAINS` on every condition.

    python -m benchmarks.backends rsr2015 --vectors VECTORS... --lists FOLDER...
        FOLDER: what recipes/rsr2015/prepare.py wrote
    python -m benchmarks.backends voiceprivacy FOLDER LAYOUT SET --training NAME --anonymised-training NAME...
        vectors in FOLDER, lists in LAYOUT, SET such as libri10_test
    python -m benchmarks.backends halve DATADIR OUTPUT
        each recording as two utterances, for training sets with one a speaker

Chains and calibrations are trained on the background speakers alone; nothing is chosen by the trials. Intervals hold
95 % under a joint bootstrap of the speakers. A star marks a difference from the first chain whose own interval, under
the same draws, is without 0. A dash is a chain that cannot be trained on this background, or not be calibrated; the
reason is printed below the tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import describe_machine
from evaluation.embeddings import Embeddings, read_embeddings
from evaluation.formats import read_key
from evaluation.metrics import SortedScores, cllr, eer, min_cllr
from evaluation.trials import Key, read_speakers
from evaluation.uncertainty import (
    Interval,
    Resampling,
    Sample,
    confidence_intervals,
    paired_differences,
    sample_from,
)
from spkbase.errors import ConfigError, DataError
from spkbase.files import format_table
from spkver.audio import read_audio, write_audio
from spkver.backend import parse_chain, train_chain
from spkver.datadir import DataDir, read_datadir, write_datadir

CHAINS = (
    "cosine",
    "centre",
    "centre,whiten,length",
    "centre,length,wccn",
    "centre,length,lda:7,length",
    "centre,length,lda:50,length",
    "centre,length,lda:150,length",
    "centre,length,plda",
    "centre,length,lda:7,length,plda",
    "centre,length,lda:50,length,plda",
    "centre,length,lda:150,length,plda",
    "centre,snorm",
    "centre,length,plda,snorm",
)
TABLES = {
    "eer.rocch": "EER in %",
    "min_cllr": "minCllr in bits",
    "cllr": "Cllr in bits of the scores as they are",
    "calibrated": "Cllr in bits after calibration on the background",
}
RIDGE = 0.01  # of the calibration: a background of 11 speakers can be told apart without error
CELL = {
    "eer.rocch": (100, ".2f"),
    "min_cllr": (1, ".3f"),
    "cllr": (1, ".3f"),
    "calibrated": (1, ".3f"),
}


@dataclass(frozen=True)
class Condition:
    """Vectors of the background, of those who enrol and of those who are tested, and the trials with their truth.

    The maps give the speaker of each model and segment; see `evaluation.trials.find_speakers` for what holds without.
    """

    training: Embeddings
    enrol: Embeddings
    test: Embeddings
    key: Key
    model_speakers: Mapping[str, str] | None = None
    segment_speakers: Mapping[str, str] | None = None

    def enrolled(self) -> int:
        """Vectors of a model of the calibration: as many as those of the trials have, if the background has as many."""
        per_model, per_speaker = (
            int(np.median(np.unique(embeddings.speakers.astype(str), return_counts=True)[1]))
            for embeddings in (self.enrol, self.training)
        )
        return max(1, min(per_model, per_speaker - 1))

    def sample(self, chain: Any) -> Sample:
        """Return the scores of a chain, ready for the bootstrap."""
        scores = train_chain(self.training, chain).score(self.enrol, self.test, self.key.trials())
        of_models, of_segments = self.model_speakers, self.segment_speakers
        return sample_from(
            scores, self.key, model_speakers=of_models, segment_speakers=of_segments
        )[0]

    def __str__(self) -> str:
        n_target = int(self.key.is_target.sum())
        return (
            f"background {self.training!r}, enrolled {self.enrol!r}; {n_target} target and "
            f"{len(self.key) - n_target} nontarget trials, calibration with {self.enrolled()} vectors per model"
        )


@dataclass(frozen=True)
class Outcome:
    """What a chain gave: metrics with intervals, whether they differ from the first chain's, why some are missing."""

    intervals: dict[str, Interval]
    differs: dict[str, bool]
    failure: str = ""


# --- conditions ------------------------------------------------------------------------------------------------------


def merge_embeddings(parts: Sequence[Embeddings]) -> Embeddings:
    """Return all vectors of several sets under one id each; ids that two sets have get the number of the set."""
    every = [str(name) for part in parts for name in part.ids]
    if len(set(every)) < len(every):
        every = [f"{name}#{number}" for number, part in enumerate(parts) for name in part.ids]
    speakers = np.concatenate([part.speakers for part in parts])
    return Embeddings(
        np.array(every, object), speakers, np.concatenate([part.vectors for part in parts])
    )


def first_speakers(embeddings: Embeddings, n_speakers: int) -> Embeddings:
    """Return the vectors of the first so many speakers, in the order of their ids."""
    chosen = np.isin(
        embeddings.speakers.astype(str), np.unique(embeddings.speakers.astype(str))[:n_speakers]
    )
    return Embeddings(
        embeddings.ids[chosen], embeddings.speakers[chosen], embeddings.vectors[chosen]
    )


def rsr2015_condition(vectors: Embeddings, lists: Path) -> Condition:
    """Return the condition of the lists that `recipes/rsr2015/prepare.py` wrote; vectors have its ids, or the ends."""
    background = (lists / "ubm_list.txt").read_text(encoding="utf-8").split()
    # those of its data directory have no folder
    if "/" in background[0] and "/" not in vectors.ids[0]:
        vectors = replace(
            vectors,
            ids=np.array([f"{name.partition('_')[0]}/{name}" for name in vectors.ids], object),
        )
    rows = {name: row for row, name in enumerate(vectors.ids.tolist())}
    pairs = [
        line.split() for line in _only(lists, "*_trn.txt").read_text(encoding="utf-8").splitlines()
    ]
    training = [rows[name] for name in background]
    enrolled = [rows[segment] for _, segment in pairs]
    models = np.array([model for model, _ in pairs], object)
    owners = read_speakers(lists / "utt2spk")
    # a recording that several models enrol with has one vector for each of them
    ids = np.array([f"{model} {segment}" for model, segment in pairs], object)
    return Condition(
        Embeddings(
            vectors.ids[training],
            np.array([owners[name] for name in background], object),
            vectors.vectors[training],
        ),
        Embeddings(ids, models, vectors.vectors[enrolled]),
        vectors,
        read_key(_only(lists, "*_key.txt")),
        read_speakers(lists / "model2spk"),
        owners,
    )


def voiceprivacy_conditions(
    folder: Path,
    layout: Path,
    name: str,
    training: tuple[str, Sequence[str]],
    *,
    suffix: str,
    extractor: str,
) -> dict[str, Condition]:
    """Return the four conditions of a set of the VoicePrivacy Challenge, trials of both sexes pooled.

    Vectors are in ``folder/SET_EXTRACTOR.h5``, the trials of the originals in data directories of ``layout``;
    `training` names the training set and its anonymised versions.
    """

    def vectors(*names: str) -> Embeddings:
        return merge_embeddings(
            [read_embeddings(folder / f"{part}_{extractor}.h5") for part in names]
        )

    tested = [path.name for path in sorted(layout.glob(f"{name}_trials_[fm]"))]
    if not tested:
        raise DataError(f"expected folders {name}_trials_f and {name}_trials_m", file=layout)
    keys = [read_key(layout / part / "trials") for part in tested]
    segments = {
        utterance: speaker
        for part in tested
        for utterance, speaker in read_speakers(layout / part / "utt2spk").items()
    }
    key = Key.from_ids(
        [model for part in keys for model, _ in part.pairs()],
        [segment for part in keys for _, segment in part.pairs()],
        np.concatenate([part.is_target for part in keys]),
    )
    models = {model: model for model in key.model_ids.tolist()}
    original, anonymised = vectors(training[0]), vectors(*training[1])
    enrol = {end: vectors(f"{name}_enrolls{end}") for end in ("", suffix)}
    test = {end: vectors(*(f"{part}{end}" for part in tested)) for end in ("", suffix)}
    table = {
        "original": (original, "", ""),
        "ignorant": (original, "", suffix),
        "lazy-informed": (original, suffix, suffix),
        "semi-informed": (anonymised, suffix, suffix),
    }
    return {
        title: Condition(background, enrol[first], test[second], key, models, segments)
        for title, (background, first, second) in table.items()
    }


def halve(source: DataDir, output: Path) -> DataDir:
    """Write the first and the second half of each recording as utterances of their own; returns the data directory."""
    recordings, speakers = {}, {}
    for utterance, path in source.recordings.items():
        audio = read_audio(path)
        for part, samples in zip("ab", np.array_split(audio.samples, 2), strict=True):
            name = f"{utterance}-{part}"
            recordings[name] = output / "wav" / f"{name}.wav"
            speakers[name] = source.speakers[utterance]
            write_audio(recordings[name], samples, audio.rate)
    halves = DataDir(output, recordings, speakers, source.sexes)
    write_datadir(halves)
    return halves


def _only(folder: Path, pattern: str) -> Path:
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        raise DataError(
            f"expected one file {pattern}, got {len(paths)}",
            file=folder,
            remedy="run prepare.py anew",
        )
    return paths[0]


# --- chains on a condition -------------------------------------------------------------------------------------------


def statistic(scores: SortedScores) -> dict[str, float]:
    """Compute what stands in the tables of the scores as they are."""
    return {"eer.rocch": eer(scores), "min_cllr": min_cllr(scores), "cllr": cllr(scores)}


def calibrated_statistic(scores: SortedScores) -> dict[str, float]:
    """Compute what stands in the table of calibrated scores: an affine map changes neither EER nor minCllr."""
    return {"cllr": cllr(scores)}


def compare_chains(
    condition: Condition,
    chains: Sequence[str] = CHAINS,
    *,
    resamples: int = 1000,
    jobs: int | None = 1,
) -> dict[str, Outcome]:
    """Return what each chain gives on a condition, with intervals, and whether it differs from the first.

    A chain that can be trained but not calibrated has the other metrics, and says why.
    """
    samples: dict[str, dict[str, Sample]] = {"": {}, "calibrated": {}}
    found = {chain: Outcome({}, {}) for chain in chains}
    for chain in chains:
        calibrated = [
            *parse_chain(chain),
            {"calibrate": {"enrolled": condition.enrolled(), "ridge": RIDGE}},
        ]
        try:
            samples[""][chain] = condition.sample(chain)
            samples["calibrated"][chain] = condition.sample(calibrated)
        except (ConfigError, DataError) as error:
            found[chain] = replace(found[chain], failure=str(error))
    for title, function in (("", statistic), ("calibrated", calibrated_statistic)):
        settings: dict[str, Any] = {"resampling": Resampling(resamples), "jobs": jobs}
        for chain, sample in samples[title].items():
            ends = confidence_intervals(sample, function, **settings)
            found[chain].intervals.update({title or name: end for name, end in ends.items()})
        if chains[0] in samples[title] and len(samples[title]) > 1:
            for chain, gaps in paired_differences(samples[title], function, **settings).items():
                stars = {
                    title or name: bool(gap.low > 0 or gap.high < 0) for name, gap in gaps.items()
                }
                found[chain].differs.update(stars)
    return found


# --- tables ----------------------------------------------------------------------------------------------------------


def tables_of(outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Return a table a metric, a row a chain, a column a condition, and below them what could not be trained."""
    chains = list(next(iter(outcomes.values())))
    parts = []
    for name, title in TABLES.items():
        rows = [
            {"chain": f"`{chain}`"}
            | {condition: _cell(name, found[chain]) for condition, found in outcomes.items()}
            for chain in chains
        ]
        table = format_table(rows, markdown=True).replace("\\", "")  # chains stand in backticks
        parts.append(f"{title}\n\n{table}")
    failures: dict[str, list[str]] = {}
    for condition, found in outcomes.items():
        for chain, outcome in found.items():
            if outcome.failure:
                failures.setdefault(outcome.failure, []).append(f"{condition} {chain}")
    parts += [f"{'; '.join(where)}: {why}" for why, where in failures.items()]
    return "\n\n".join(parts)


def _cell(name: str, outcome: Outcome) -> str:
    if name not in outcome.intervals:
        return "-"
    found, (scale, form) = outcome.intervals[name], CELL[name]
    value, low, high = (
        format(scale * number, form) for number in (found.value, found.low, found.high)
    )
    # without errors there is no interval
    ends = "" if np.isnan(found.low) else f" ({low} to {high})"
    return value + ends + "*" * outcome.differs.get(name, False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    options = _options(arguments)
    if options.what == "halve":
        print(
            f"{options.output}: {len(halve(read_datadir(options.datadir), options.output))} utterances"
        )
        return
    if options.what == "rsr2015":
        vectors = merge_embeddings([read_embeddings(path) for path in options.vectors])
        conditions = {
            lists.name: rsr2015_condition(vectors, lists / "task") for lists in options.lists
        }
    else:
        training = (
            options.training,
            options.anonymised_training or [f"{options.training}{options.suffix}"],
        )
        conditions = voiceprivacy_conditions(
            options.folder,
            options.layout,
            options.set,
            training,
            suffix=options.suffix,
            extractor=options.extractor,
        )
    print(describe_machine())
    started, outcomes = time.perf_counter(), {}
    for name, condition in conditions.items():
        if options.background is not None:
            condition = replace(
                condition, training=first_speakers(condition.training, options.background)
            )
        print(f"{name}: {condition}")
        chains = tuple(options.chain or CHAINS)
        outcomes[name] = compare_chains(
            condition, chains, resamples=options.resamples, jobs=options.jobs
        )
    print(f"{time.perf_counter() - started:.0f} s\n\n{tables_of(outcomes)}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Chains of a backend on public speech.")
    kinds = parser.add_subparsers(dest="what", required=True)
    rsr2015 = kinds.add_parser("rsr2015", help="the layout of RSR2015")
    rsr2015.add_argument(
        "--vectors", type=Path, nargs="+", required=True, help="under the recipe's ids"
    )
    rsr2015.add_argument(
        "--lists", type=Path, nargs="+", required=True, help="outputs of recipes/rsr2015/prepare.py"
    )
    challenge = kinds.add_parser("voiceprivacy", help="a set in the challenge's layout")
    challenge.add_argument("folder", type=Path, help="of vectors, NAME_EXTRACTOR.h5")
    challenge.add_argument("layout", type=Path, help="data directories of the originals")
    challenge.add_argument("set", help="such as libri10_test")
    challenge.add_argument("--training", required=True, help="name of the training set")
    challenge.add_argument("--anonymised-training", nargs="+", help="names of its anonymised twins")
    challenge.add_argument("--suffix", default="_mcadams")
    challenge.add_argument("--extractor", default="campplus")
    for parser_of_tables in (rsr2015, challenge):
        parser_of_tables.add_argument(
            "--chain", action="append", help="in place of those of this module; repeatable"
        )
        parser_of_tables.add_argument(
            "--background", type=int, help="train on so many speakers alone, the first by id"
        )
        parser_of_tables.add_argument("--resamples", type=int, default=1000)
        parser_of_tables.add_argument("--jobs", type=int, default=1)
    halves = kinds.add_parser("halve", help="each recording as two utterances")
    halves.add_argument("datadir", type=Path)
    halves.add_argument("output", type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
