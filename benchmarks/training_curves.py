"""What attackers that learn gain from more training speakers, and from more anonymised versions of their speech.

    python -m benchmarks.public_speech DIR --librispeech Resemblyzer --dspspeech DSPSpeech-20
    python -m benchmarks.training_curves DIR OUTPUT
    python -m benchmarks.training_curves DIR OUTPUT-vtln --cell 251x2+ --anonymizer vtln

A cell is ``SPEAKERSxVERSIONS``, such as 50x2: so many speakers of the training set, half of them women, in so many
anonymised versions; a smaller set of speakers is part of each larger one. With ``+`` the tuned network makes further
versions as it does by default, without it learns from these alone. ``:20`` are the steps of its tuning, 40 by default.
``@1`` is another seed: of the speakers, of those that are held out, of the crops and of the further versions. Tested
speech stays the same: two anonymised versions of the enrolment, one of the trials.

OUTPUT/cells/CELL.json has the equal error rates of a cell as soon as they are known, and a second call continues there;
OUTPUT/scores has the scores. The tables have 95 % intervals, and differences on the same trials, from 300 resamples of
the speakers; p-values are corrected for their number in a table by Holm's method. The last ones compare each cell with
the first one that is named.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from evaluation.formats import read_scores, write_scores
from evaluation.metrics import eer, sort_scores
from evaluation.trials import Key, Scores, align
from evaluation.uncertainty import PairedComparison, compare, holm
from spkbase.console import Command
from spkbase.errors import ConfigError
from spkbase.files import format_table, load_json, make_folder, write_json
from spkbase.runs import Run
from spkver.anonymization import AnonymizerConfig, anonymize_datadir
from spkver.attackers import (
    Attack,
    Fusion,
    SpeechFiles,
    TrainingSet,
    compute_vectors,
    count_pieces,
    cut,
    extract_speech,
    learn_models,
    make_attacker,
    needs_pieces,
    parse_spec,
    pieces_of,
    score_trials,
    select,
)
from spkver.datadir import DataDir, read_datadir
from spkver.training import read_record
from spkver.training.tuning import TuningConfig

CELLS = ("251x2", "100x2", "50x2", "25x2", "251x1", "251x4", "251x8", "251x2@1", "251x2@2")
STEPS = TuningConfig().steps
PUBLISHED = ("campplus", "campplus-enrolled-plda", "campplus-self-trained")
TUNED = ("campplus-tuned", "campplus-tuned-enrolled-plda", "campplus-tuned-self-trained")
RESAMPLES = 300
SIDE_SEEDS = {"training": 100, "enrolment": 200, "trials": 300}
TIME_LIMIT = 7200.0  # s, of the training of a network
EER = "eer.rocch"
DIFFERENCE = ("difference", "p", "corrected")
PATH = click.Path(path_type=Path)


class Cell(NamedTuple):
    """What is learnt from: see the module."""

    speakers: int
    versions: int
    has_further: bool
    steps: int
    seed: int

    @property
    def name(self) -> str:
        """As it is written."""
        text = f"{self.speakers}x{self.versions}"
        if self.has_further:
            text += "+"
        if self.steps != STEPS:
            text += f":{self.steps}"
        if self.seed:
            text += f"@{self.seed}"
        return text


def parse_cell(text: str) -> Cell:
    """Read a cell, such as 251x2+@1.

    Raises
    ------
    ConfigError
        If it has another form.
    """
    match = re.fullmatch(r"(\d+)x(\d+)(\+?)(?::(\d+))?(?:@(\d+))?", text)
    if match is None:
        raise ConfigError(
            f"cell is {text!r}: expected SPEAKERSxVERSIONS, such as 50x2 or 251x2+:20@1"
        )
    speakers, versions, further, steps, seed = match.groups()
    return Cell(int(speakers), int(versions), bool(further), int(steps or STEPS), int(seed or 0))


def choose_speakers(sexes: Mapping[str, str], count: int, *, seed: int) -> set[str]:
    """Return some speakers, half of each sex as far as there are; a smaller number is part of a larger one.

    Examples
    --------
    >>> sexes = {"a": "f", "b": "f", "c": "f", "d": "m", "e": "m", "g": "m"}
    >>> two, four = (choose_speakers(sexes, count, seed=0) for count in (2, 4))
    >>> sorted(sexes[speaker] for speaker in four), two < four
    (['f', 'f', 'm', 'm'], True)
    """
    ranked = []
    for sex in sorted(set(sexes.values())):
        names = sorted(name for name, own in sexes.items() if own == sex)
        order = np.random.default_rng([seed, *sex.encode()]).permutation(len(names))
        for rank, row in enumerate(order):
            ranked.append((rank, sex, names[row]))
    return {name for *_, name in sorted(ranked)[:count]}


@dataclass(frozen=True)
class Study:
    """The speech of all cells, and the scores that they have.

    Attributes
    ----------
    data, output : Path
    training : str
        Name of the training set.
    sets : tuple of str
        Names of the tested sets.
    anonymizer : AnonymizerConfig
    enrolment_draws : int
    every : int
        Which of the recordings of each tested speaker are used: 1 for all, 2 for each second one.
    """

    data: Path
    output: Path
    training: str
    sets: tuple[str, ...]
    anonymizer: AnonymizerConfig
    enrolment_draws: int
    every: int
    speech: dict[int, SpeechFiles] = field(default_factory=dict, repr=False)
    made: dict[Path, DataDir] = field(default_factory=dict, repr=False)

    @cached_property
    def pieces(self) -> dict[str, int]:
        """How many pieces each training recording is cut into; empty where they stay whole."""
        original = read_datadir(self.data / self.training)
        return count_pieces(original) if needs_pieces(original) else {}

    def original(self, name: str) -> DataDir:
        """Return a data directory as it was recorded, with the recordings that are used."""
        directory = read_datadir(self.data / name)
        if name == self.training or self.every == 1:
            return directory
        names = set()
        for utterances in directory.by_speaker().values():
            names.update(utterances[:: self.every])
        part = select(directory, names)
        if directory.trials is None:
            return part
        pairs = directory.trials.pairs()
        rows = [row for row, (_, segment) in enumerate(pairs) if segment in names]
        return replace(part, trials=directory.trials.subset(np.array(rows, np.int64)))

    def files(self, seed: int) -> SpeechFiles:
        """Return the extracted speech and the models of a seed; vectors are shared."""
        if seed not in self.speech:
            run = Run(make_folder(self.output / f"models-{seed}"), 1, quiet=True)
            if self.speech:
                first = next(iter(self.speech.values()))
                self.speech[seed] = replace(first, run=run, seed=seed)
            else:
                work = Run(make_folder(self.output / "work"), 1, quiet=True)
                self.speech[seed] = SpeechFiles(run, work, seed)
        return self.speech[seed]

    def version(self, name: str, number: int, side: str) -> DataDir:
        """Return an anonymised version of a data directory, from 1 on; it is made if it is not there."""
        target = self.output / "data" / f"{name}-version{number}"
        if target not in self.made:
            source = self.original(name)
            seed = SIDE_SEEDS[side] + number
            self.made[target] = anonymize_datadir(
                source, target, self.anonymizer, seed=seed, side=side, jobs=1
            )
        return self.made[target]

    def in_pieces(self, directory: DataDir) -> DataDir:
        """Return a version of the training set in pieces, as attackers learn from it."""
        if not self.pieces:
            return directory
        folder = self.output / "data" / f"{directory.name}-pieces"
        cut(directory, self.pieces, folder, jobs=1)
        return pieces_of(directory, self.pieces, folder)

    def training_set(self, cell: Cell) -> TrainingSet:
        """Return what attackers learn from in a cell."""
        original = read_datadir(self.data / self.training)
        chosen = choose_speakers(original.sexes, cell.speakers, seed=cell.seed)
        whole = [original]
        for number in range(1, cell.versions + 1):
            whole.append(self.version(self.training, number, "training"))
        parts = []
        for directory in map(self.in_pieces, whole):
            names = {name for name, speaker in directory.speakers.items() if speaker in chosen}
            part = select(directory, names)
            parts.append(replace(part, path=directory.path.with_name(f"{cell.name}-{part.name}")))
        anonymizer = self.anonymizer if cell.has_further else None
        name = f"asv_anon_{cell.name}"
        return TrainingSet(parts[0], tuple(parts[1:]), True, name, anonymizer=anonymizer)

    def attacks(self, training: TrainingSet, dataset: str) -> list[Attack]:
        """Return the lists of trials of a set, semi-informed."""
        enrolment = []
        for number in range(1, self.enrolment_draws + 1):
            enrolment.append(self.version(f"{dataset}_enrolls", number, "enrolment"))
        attacks = []
        for folder in sorted(self.data.glob(f"{dataset}_trials_*")):
            tested = self.version(folder.name, 1, "trials")
            assert tested.trials is not None
            trials = tested.trials.trials()
            attacks.append(Attack(training, tuple(enrolment), tested, trials, "semi-informed"))
        return attacks

    def scores_file(self, cell: str, dataset: str, attacker: str) -> Path:
        """Return where the scores of an attacker are."""
        return self.output / "scores" / cell / f"{dataset}-{attacker}.txt"

    def measure(self, cell: Cell, attackers: Sequence[str]) -> dict[str, Any]:
        """Score what a cell has no scores of yet, and return its record."""
        file = self.output / "cells" / f"{cell.name}.json"
        record: dict[str, Any] = {"cell": cell.name, "eer": {}, "chains": {}, "seconds": {}}
        if file.is_file():
            record = load_json(file)
        for dataset in self.sets:
            key, _ = self.key(dataset)
            for name in attackers:
                if name in record["eer"].setdefault(dataset, {}):
                    continue
                before = processor_seconds()
                scores = self.score(cell, dataset, name, record)
                path = self.scores_file(cell.name, dataset, name)
                write_scores(make_folder(path.parent) / path.name, scores)
                record["eer"][dataset][name] = rate(scores, key)
                spent = record["seconds"].setdefault(dataset, {})
                spent[name] = round(processor_seconds() - before, 1)
                write_json(make_folder(file.parent) / file.name, record)
                print(
                    f"{cell.name}, {dataset}, {name}: {100 * record['eer'][dataset][name]:.2f} %, "
                    f"{spent[name]:.0f} s of processor time",
                    flush=True,
                )
        return record

    def score(self, cell: Cell, dataset: str, name: str, record: dict[str, Any]) -> Scores:
        """Train an attacker and score a set; what was chosen is noted in the record of the cell."""
        settings = {}
        if name in TUNED:
            settings[TUNED[0]] = {"settings": {"steps": cell.steps}}
        attacker = make_attacker(parse_spec(name), settings, seed=cell.seed, time_limit=TIME_LIMIT)
        if isinstance(attacker, Fusion):
            raise ConfigError("a fusion is not measured: name its members")
        files = self.files(cell.seed)
        training = self.training_set(cell)
        attacks = self.attacks(training, dataset)
        for attack in attacks:
            reason = attacker.obstacle(attack)
            if reason:
                raise ConfigError(f"{name}: {reason}")
            extract_speech(files, attacker, attack)
        trained = learn_models(files, attacker, training)
        parts = []
        for attack in attacks:
            compute_vectors(attacker, trained, attack)
            parts.append(score_trials(attacker, trained, attack))
        choice = load_json(files.run.path(f"{training.folder}/{name}") / "choice.json")
        record["chains"][name] = choice["chosen"]
        if "network" in choice:
            record["network"] = read_record(files.run.path(choice["network"]))
        return joined(parts)

    def key(self, dataset: str) -> tuple[Key, dict[str, str]]:
        """Return the trials of all lists of a set with their truth, and the speakers of models and segments."""
        models: list[str] = []
        segments: list[str] = []
        truth: list[bool] = []
        speakers: dict[str, str] = {}
        for folder in sorted(self.data.glob(f"{dataset}_trials_*")):
            tested = self.original(folder.name)
            assert tested.trials is not None
            pairs = list(tested.trials.pairs())
            models += [model for model, _ in pairs]
            segments += [segment for _, segment in pairs]
            truth += tested.trials.is_target.tolist()
            speakers |= tested.speakers
        speakers |= {model: model for model in models}
        return Key.from_ids(models, segments, truth), speakers

    def compared(self, dataset: str, systems: Mapping[str, tuple[str, str]]) -> PairedComparison:
        """Compare systems, each a cell and an attacker, with the first one."""
        key, speakers = self.key(dataset)
        scores = {}
        for title, (cell, attacker) in systems.items():
            scores[title] = read_scores(self.scores_file(cell, dataset, attacker))
        return compare(scores, key, speakers=speakers, metrics=[EER], resamples=RESAMPLES)


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it waited for."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total


def joined(parts: Sequence[Scores]) -> Scores:
    """Return the scores of several lists as one."""
    models: list[str] = []
    segments: list[str] = []
    for part in parts:
        models += part.model_ids[part.models].tolist()
        segments += part.segment_ids[part.segments].tolist()
    values = np.concatenate([part.values for part in parts])
    return Scores.from_ids(models, segments, values)


def rate(scores: Scores, key: Key) -> float:
    """Return the equal error rate."""
    values = align(scores, key.trials())
    return float(eer(sort_scores(values[key.is_target], values[~key.is_target])))


def shown(value: Any) -> str:
    """Return a number with its interval, in percent."""
    if not value.has_interval:
        return f"{100 * value.value:.1f}"
    return f"{100 * value.value:.1f} [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def corrected(rows: list[dict[str, str]], gaps: Sequence[Any]) -> None:
    """Add differences to rows, and their p-values, raw and corrected for their number."""
    values = [gap.p_value for gap in gaps]
    for row, gap, value in zip(rows, gaps, holm(values), strict=True):
        row["difference"] = shown(gap)
        if not np.isnan(value):
            row["p"] = f"{gap.p_value:.3f}"
            row["corrected"] = f"{value:.3f}"


def report(
    study: Study, dataset: str, records: Mapping[str, Mapping[str, Any]], attackers: Sequence[str]
) -> None:
    """Print the tables of a set."""
    print_rates(study, dataset, records, attackers)
    tuned_pairs = []
    cell_pairs = []
    reference = next(iter(records))
    for cell, record in records.items():
        present = known(record, dataset, attackers)
        for base, tuned in zip(PUBLISHED, TUNED, strict=True):
            if base in present and tuned in present:
                tuned_pairs.append(
                    Pair(
                        {"cell": cell, "attacker": tuned, "minus": base},
                        (cell, base),
                        (cell, tuned),
                    )
                )
    for name in attackers:
        for cell, record in records.items():
            if cell != reference and name in known(record, dataset, attackers):
                cell_pairs.append(
                    Pair(
                        {"attacker": name, "cell": cell, "minus": reference},
                        (reference, name),
                        (cell, name),
                    )
                )
    print_differences(study, dataset, "tuned minus published", tuned_pairs)
    print_differences(study, dataset, "cells", cell_pairs)


class Pair(NamedTuple):
    """Two systems, each a cell and an attacker, and the first columns of the row of their difference."""

    columns: dict[str, str]
    first: tuple[str, str]
    second: tuple[str, str]


def print_rates(
    study: Study, dataset: str, records: Mapping[str, Mapping[str, Any]], attackers: Sequence[str]
) -> None:
    """Print the EER of each attacker in each cell."""
    rows = []
    for cell, record in records.items():
        network = record.get("network", {})
        row = {"cell": cell, "versions tuned on": str(network.get("versions", ""))}
        row["steps"] = str(network.get("steps", ""))
        rates = network.get("held_out_eer", {}).values()
        row["held out"] = ", ".join(f"{100 * value:.1f}" for value in rates)
        for name in known(record, dataset, attackers):
            intervals = study.compared(dataset, {name: (cell, name)}).systems[name]
            row[name] = shown(intervals[EER])
        rows.append(row)
    columns = ["cell", "versions tuned on", "steps", "held out", *attackers]
    print(f"\n{dataset}, EER in %\n\n{format_table(rows, columns, markdown=True)}")


def print_differences(study: Study, dataset: str, title: str, pairs: Sequence[Pair]) -> None:
    """Print the EER of the second system of each pair minus that of the first, and p-values corrected for all."""
    if not pairs:
        return
    rows = [dict(pair.columns) for pair in pairs]
    gaps = []
    for pair in pairs:
        compared = study.compared(dataset, {"first": pair.first, "second": pair.second})
        gaps.append(compared.differences["second"][EER])
    corrected(rows, gaps)
    columns = [*pairs[0].columns, *DIFFERENCE]
    print(f"\n{dataset}, {title}\n\n{format_table(rows, columns, markdown=True)}")


def known(record: Mapping[str, Any], dataset: str, attackers: Sequence[str]) -> list[str]:
    """Return the attackers of which a cell has scores of a set."""
    return [name for name in attackers if name in record["eer"].get(dataset, {})]


@click.command(cls=Command, help=(__doc__ or "").split("\n\n")[0])
@click.argument("data", type=PATH)
@click.argument("output", type=PATH)
@click.option("--cell", "cells", multiple=True, default=CELLS, help="All cells by default.")
@click.option("--attacker", "attackers", multiple=True, default=(*PUBLISHED, *TUNED))
@click.option("--dataset", "sets", multiple=True, default=["dsp_test"], show_default=True)
@click.option("--training", default="libri251", show_default=True)
@click.option("--anonymizer", default="mcadams", show_default=True)
@click.option("--enrolment-draws", default=2, show_default=True)
@click.option("--every", default=1, help="Use each second recording of tested speakers: 2.")
@click.option(
    "--part",
    type=click.Choice(["all", "measure", "table"]),
    default="all",
    show_default=True,
    help="Whether to measure, and to print the tables of what has been measured.",
)
def main(
    data: Path,
    output: Path,
    cells: Sequence[str],
    attackers: Sequence[str],
    sets: Sequence[str],
    training: str,
    anonymizer: str,
    enrolment_draws: int,
    every: int,
    part: str,
) -> None:
    """Measure cells and print the tables."""
    config = AnonymizerConfig(name=anonymizer)
    folder = output.resolve()
    study = Study(data, folder, training, tuple(sets), config, enrolment_draws, every)
    records = {}
    for cell in map(parse_cell, cells):
        file = study.output / "cells" / f"{cell.name}.json"
        if part != "table":
            records[cell.name] = study.measure(cell, attackers)
        elif file.is_file():
            records[cell.name] = load_json(file)
    if part != "measure":
        for dataset in sets:
            report(study, dataset, records, attackers)


if __name__ == "__main__":
    main()
