"""Speech is read and attackers learn, before any trial is scored.

    OUTPUT/data/                             inverted speech, pieces of recordings
    OUTPUT/work/                             vectors and features; may be removed
    OUTPUT/work/lacking.json                 recordings on which an extractor failed, by extractor
    OUTPUT/attackers/<training set>/NAME/    models

`extract` reads all speech that the plan needs, `fit` trains every model and computes the vectors that depend on one.
Each does only what is not up to date: a run that was killed continues with the next file.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from spkbase.files import fingerprint, load_json, make_folder, write_json
from spkbase.progress import progress
from spkbase.runs import Run
from spkver.attackers import (
    SpeechFiles,
    Trained,
    compute_vectors,
    cut,
    extract_speech,
    learn_models,
)
from spkver.voiceprivacy.estimate import extraction_rate
from spkver.voiceprivacy.experiment import Experiment
from spkver.voiceprivacy.plan import Plan
from spkver.voiceprivacy.rows import Row

WORK = "work"
LACKING = f"{WORK}/lacking.json"


def extract(experiment: Experiment, plan: Plan) -> SpeechFiles:
    """Make all that is needed to score the rows without scores: inverted speech, pieces, vectors and features.

    Rows whose speech cannot be read are noted in `Experiment.failures`.
    """
    experiment.begin("extraction")
    run = experiment.run
    failures = experiment.failures
    failures.plugins |= {
        spec.name for spec, _ in experiment.attackers if spec.row is None or spec.is_own_code
    }
    if run.force:  # shared features and statistics are computed again
        shutil.rmtree(run.path(WORK), ignore_errors=True)
    work = Run(make_folder(run.path(WORK)), run.jobs, quiet=True)
    file = run.path(LACKING)
    lacking = {}
    if file.is_file():
        lacking = {name: set(utterances) for name, utterances in load_json(file).items()}
    speech = SpeechFiles(run, work, experiment.config.seed, lacking)
    with run.timed("extraction"):
        done: set[Path] = set()

        def read(row: Row) -> None:
            attack = plan.attacks[row.id]
            training = attack.training
            with work.timed(f"speech for {row.attacker}"):
                for directory in dict.fromkeys(
                    (*attack.directories, training.original, *training.anonymised)
                ):
                    _derive(directory.recordings, plan=plan, run=run, done=done)
                extract_speech(speech, plan.attacker(row), attack)

        due = plan.due(run)
        for row in progress(due, description="extraction", sizes=_costs(experiment, plan, due)):
            failures.attempt([row], partial(read, row))
        write_json(file, {name: sorted(utterances) for name, utterances in lacking.items()})
    experiment.end("extraction", f"{len(due)} lists of trials, {run.path(WORK)}")
    return speech


def fit(experiment: Experiment, plan: Plan, speech: SpeechFiles) -> dict[tuple[str, str], Trained]:
    """Train every model that is needed to score the rows without scores, and compute the vectors that depend on models.

    Returns
    -------
    dict of (str, str) to Trained
        By attacker and training set.
    """
    experiment.begin("training")
    failures = experiment.failures
    models: dict[tuple[str, str], Trained] = {}
    with experiment.run.timed("training"):
        due = plan.due(experiment.run)
        rows: dict[tuple[str, str], list[Row]] = {}
        for row in due:
            if failures.error(row) is None:
                rows.setdefault(plan.model(row), []).append(row)
        for model, same in progress(rows.items(), description="training", total=len(rows)):
            first = same[0]
            learn = partial(
                learn_models, speech, plan.attacker(first), plan.attacks[first.id].training
            )
            with speech.work.timed(f"model of {first.attacker}"):
                trained = failures.attempt(same, learn)
            if trained is not None:
                models[model] = trained
        able = [row for row in due if failures.error(row) is None]
        for row in progress(able, description="vectors", total=len(able)):
            compute = partial(
                compute_vectors, plan.attacker(row), models[plan.model(row)], plan.attacks[row.id]
            )
            with speech.work.timed(f"vectors for {row.attacker}"):
                failures.attempt([row], compute)
    experiment.end("training", f"{len(models)} models, {experiment.run.path('attackers')}")
    return models


def _costs(experiment: Experiment, plan: Plan, rows: Sequence[Row]) -> list[float]:
    """Return, for each row, how long it takes to read the recordings that no earlier row needs, in an arbitrary unit.

    Rows with the same source of vectors share recordings.
    """
    rates = {spec.name: extraction_rate(spec) for spec, _ in experiment.attackers}
    seen: set[tuple[str, Path]] = set()
    costs = []
    for row in rows:
        count = 0
        for directory in plan.attacks[row.id].directories:
            needed = (_kind(plan, row), directory.path)
            if needed not in seen:
                seen.add(needed)
                count += len(directory.recordings)
        costs.append(count * rates[row.attacker])
    return costs


def _kind(plan: Plan, row: Row) -> str:
    """Return what is extracted from the speech of a row: vectors of an extractor, or features."""
    source = plan.attacker(row).source
    if source is None:
        return row.attacker
    if source.features is None:
        return source.key
    return fingerprint(source.features.extraction())


def _derive(recordings: Mapping[str, Path], *, plan: Plan, run: Run, done: set[Path]) -> None:
    """Make those recordings that are inverted speech or pieces, after the speech that they are made from."""
    for folder in sorted({path.parent.parent for path in recordings.values()} - done):
        if folder in plan.speech.pieces:
            whole, counts = plan.speech.pieces[folder]
            _derive(whole.recordings, plan=plan, run=run, done=done)
            cut(whole, counts, folder, jobs=run.jobs)
        for inversion in plan.speech.inversions.values():
            source = inversion.source(folder)
            if source is not None:
                _derive(source.recordings, plan=plan, run=run, done=done)
                inversion.make(folder)
        done.add(folder)
