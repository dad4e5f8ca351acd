"""How the settings of self-training were chosen: on the training speakers of `dsp_test`, none of whom is tested.

    python -m benchmarks.self_training DATA RUN

RUN is the output of ``spkver voiceprivacy --data DATA``, whose anonymised training speech is read. Words of the 11
speakers of `dsp_train` make lists of trials, by CAM++: the first words of a speaker enrol, in two anonymised versions
(lazy-informed) or as they were recorded (ignorant), and the first version of the others is tested against all models.

    closed    30 words enrol each speaker
    few       10 words
    open      20 words enrol half of the speakers, and all are tested; two splits

It prints EERs in percent, pooled over splits: lazy-informed by the margin, ignorant after each round of shares.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.embeddings import Embeddings
from evaluation.metrics import eer
from spkbase.runs import Run
from spkver.attackers import ExtractorSource, SpeechFiles
from spkver.backend import (
    Sessions,
    adapted_cosine_scores,
    enrolled_plda_scores,
    self_trained_scores,
    shifted_self_trained_scores,
)
from spkver.datadir import read_datadir
from spkver.extractors import open_extractor

MARGINS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
SHARES = (0.3, 0.5, 0.7, 0.8, 0.8)
LISTS = {"closed": (30, 1), "few": (10, 1), "open": (20, 2)}
"""Words that enrol a speaker, and splits."""


class TrialList(NamedTuple):
    """Enrolled sessions, tested vectors, codes of models and rows of tests, and which trials are of one speaker."""

    sessions: Sessions
    tests: NDArray[np.float64]
    models: NDArray[np.int64]
    segments: NDArray[np.int64]
    is_target: NDArray[np.bool_]


def trial_lists(
    enrolment: Embeddings, versions: list[Embeddings], name: str
) -> Iterator[TrialList]:
    """Yield the lists of a kind; `versions` are anonymised, the first is tested."""
    n_words, n_splits = LISTS[name]
    tested = versions[0]
    speakers = np.unique(tested.speakers.astype(str))
    first = set()
    for speaker in speakers:
        first.update(sorted(tested.ids[tested.speakers == speaker].tolist())[:n_words])
    is_tested = np.array([word not in first for word in tested.ids.tolist()])
    tests = np.asarray(tested.vectors[is_tested], np.float64)
    owners = tested.speakers[is_tested].astype(str)
    for split in range(n_splits):
        enrolled = speakers
        if n_splits > 1:
            enrolled = np.random.default_rng(split).permutation(speakers)[: len(speakers) // 2]
        vectors = []
        names = []
        for version in versions if enrolment is tested else [enrolment]:
            chosen = np.isin(version.ids.astype(str), sorted(first)) & np.isin(
                version.speakers.astype(str), enrolled
            )
            vectors.append(np.asarray(version.vectors[chosen], np.float64))
            names.append(version.speakers[chosen].astype(str))
        sessions, models = Sessions.named(np.concatenate(vectors), np.concatenate(names))
        pairs = np.divmod(np.arange(len(models) * len(tests)), len(tests))
        yield TrialList(sessions, tests, *pairs, (models.astype(str)[:, None] == owners).ravel())


def pooled_rate(scored: list[tuple[TrialList, NDArray[np.float64]]]) -> float:
    """Return the EER of the trials of several lists, in percent."""
    same = np.concatenate([scores[trials.is_target] for trials, scores in scored])
    other = np.concatenate([scores[~trials.is_target] for trials, scores in scored])
    return 100 * float(eer(same, other))


def report(original: Embeddings, versions: list[Embeddings]) -> None:
    """Print the error rates of all lists and settings."""
    for name in LISTS:
        lists = list(trial_lists(versions[0], versions, name))
        rates = {
            "enrolled PLDA": pooled_rate(
                [(some, enrolled_plda_scores(*some[:4])) for some in lists]
            )
        }
        for margin in MARGINS:
            scored = [(some, self_trained_scores(*some[:4], margin=margin)) for some in lists]
            rates[f"margin {margin:g}"] = pooled_rate(scored)
        print(
            f"{name:<7} lazy-informed:",
            *(f"{key} {rate:.2f}," for key, rate in rates.items()),
            flush=True,
        )
        lists = list(trial_lists(original, versions, name))
        rates = {
            "adapted cosine": pooled_rate(
                [(some, adapted_cosine_scores(*some[:4])) for some in lists]
            )
        }
        for count in range(1, len(SHARES) + 1):
            scored = [
                (some, shifted_self_trained_scores(*some[:4], shares=SHARES[:count]))
                for some in lists
            ]
            rates[f"{count} rounds"] = pooled_rate(scored)
        print(
            f"{name:<7} ignorant:",
            *(f"{key} {rate:.2f}," for key, rate in rates.items()),
            flush=True,
        )


def main(data: str, run: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Run(Path(folder), 1, quiet=True)
        speech = SpeechFiles(work, work)
        source = ExtractorSource(open_extractor("campplus"))
        sides = []
        for path in (Path(data, "dsp_train"), *sorted(Path(run, "data").glob("dsp_train_*"))):
            directory = read_datadir(path)
            speech.read(source, directory)
            sides.append(speech.extracted(source)(directory))
        report(sides[0], sides[1:])


if __name__ == "__main__":
    main(*sys.argv[1:3])
