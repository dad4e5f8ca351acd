"""The data directories that the rows of a plan name, and the attacks on them.

    OUTPUT/data/<training set>-pieces    recordings cut into pieces, if most speakers have one recording

Inverted speech and pieces need not exist yet: the step after the plan makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.trials import Trials
from spkbase.runs import Run
from spkbase.showing import one_line
from spkver.attackers import (
    INVERTED_DRAWS,
    PIECES_ENDING,
    Attack,
    Inversion,
    Spec,
    TrainingSet,
    pieces_of,
    select,
)
from spkver.datadir import DataDir, enrolment, without_labels
from spkver.voiceprivacy.conversations import Dealt
from spkver.voiceprivacy.facts import Facts
from spkver.voiceprivacy.rows import FoldKind, Row
from spkver.voiceprivacy.sets import Sets


@one_line
@dataclass(frozen=True, eq=False)
class Speech:
    """Data directories and trials by the names that rows give, and the speech that is derived from them.

    Attributes
    ----------
    backgrounds : dict of str to TrainingSet
        Original and anonymised speech of each training set.
    training : dict of (str, str) to TrainingSet
        What attackers learn from, by `Row.background` and `Row.training`.
    directories : dict of str to DataDir
        Enrolment, reduced to the utterances to enrol, and tested recordings, without labels.
    trials : dict of str to Trials
    dealt : dict of str to Dealt
        Conversations, by the name of their list of trials.
    inversions : dict of str to Inversion
        By the training set.
    in_pieces : dict of str to TrainingSet
        The training sets whose recordings are cut into pieces.
    pieces : dict of Path to (DataDir, dict)
        Folders of pieces: the recordings, and the number of pieces of each.
    """

    backgrounds: dict[str, TrainingSet] = field(default_factory=dict, repr=False)
    training: dict[tuple[str, str], TrainingSet] = field(default_factory=dict, repr=False)
    directories: dict[str, DataDir] = field(default_factory=dict, repr=False)
    trials: dict[str, Trials] = field(default_factory=dict, repr=False)
    dealt: dict[str, Dealt] = field(default_factory=dict, repr=False)
    inversions: dict[str, Inversion] = field(default_factory=dict, repr=False)
    in_pieces: dict[str, TrainingSet] = field(default_factory=dict, repr=False)
    pieces: dict[Path, tuple[DataDir, Mapping[str, int]]] = field(default_factory=dict, repr=False)

    def attack(self, row: Row) -> Attack:
        """Return the attack of a row, on the speech that it names, before any inversion.

        None for a row of both sexes.
        """
        training = self.training[row.background, row.training]
        enrolled = tuple(self.directories[name] for name in row.enrolment)
        tested = self.directories[row.tested[0]]
        attack = Attack(training, enrolled, tested, self.trials[row.trials], row.scenario)
        if row.utterances == 1:
            return attack
        versions = tuple(self.directories[name] for name in row.tested)
        parts = self.dealt[row.trials].parts(row.draw, len(versions))
        paths = {}
        for name, recordings in parts.items():
            place, recording = recordings[0]
            paths[name] = versions[place].recordings[recording]
        tested = without_labels(replace(tested, recordings=paths))
        return replace(attack, tested=tested, variants=versions, conversations=parts)

    def derived_attack(self, row: Row, spec: Spec, attacker: Any) -> Attack:
        """Return the attack of a row on the speech that its attacker uses, inverted or cut into pieces if necessary.

        Attackers that invert both sides learn from original speech in every scenario. The training set of a fold is
        already in pieces.
        """
        attack = self.attack(row)
        if row.inversion == "reversed":
            variants = self.inversions[row.background].reversed(attack.tested)
            attack = replace(attack, variants=variants)
        elif row.inversion == "inverted":
            inversion = self.inversions[row.background]
            most = INVERTED_DRAWS if spec.is_network else None
            enrolled = tuple(inversion.planned(directory) for directory in attack.enrolment[:most])
            tested = attack.tested
            if not attack.conversations:
                tested = inversion.planned(tested, is_tested=True)
            variants = tuple(inversion.planned(part, is_tested=True) for part in attack.variants)
            training = replace(attack.training, on_anonymised=False)
            attack = replace(
                attack, training=training, enrolment=enrolled, tested=tested, variants=variants
            )
        if row.fold or not attacker.learns_from_pieces:
            return attack
        return replace(attack, training=self.cut(row.background, attack.training))

    def background(self, kind: FoldKind) -> TrainingSet:
        """Return the training set that is split into folds, before recordings are cut."""
        training, folds = kind
        return replace(self.backgrounds[training], on_anonymised=folds == "semi-informed")

    def cut(self, background: str, training: TrainingSet) -> TrainingSet:
        """Return a training set, cut into pieces if its speakers have one recording each."""
        pieces = self.in_pieces.get(background)
        if pieces is None:
            return training
        return replace(training, original=pieces.original, anonymised=pieces.anonymised)

    def add_fold(self, row: Row, attack: Attack) -> None:
        """Add the speech of a fold of the background under the names of its row."""
        self.training[row.background, row.training] = attack.training
        self.directories[row.enrolment[0]] = attack.enrolment[0]
        self.directories[row.tested[0]] = attack.tested
        self.trials[row.trials] = attack.trials


def speech_of(sets: Sets, suffix: str) -> Speech:
    """Return the speech of all sets by the names of its directories."""
    speech = Speech()
    for dataset in sets.datasets:
        background = TrainingSet(
            sets.original[dataset.training],
            sets.versions[dataset.training],
            anonymizer=sets.anonymizers.get(dataset.training),
        )
        speech.backgrounds[dataset.training] = background
        for on_anonymised in (False, True):
            name = training_name(suffix, on_anonymised=on_anonymised)
            training = replace(background, on_anonymised=on_anonymised, name=name)
            speech.training[dataset.training, name] = training
        for directory in (sets.original[dataset.enrolls], *sets.versions[dataset.enrolls]):
            enrolled = set(enrolment(directory).segments)
            speech.directories[directory.path.name] = select(directory, enrolled)
        for name in dataset.trials.values():
            key = sets.original[name].trials
            assert key is not None  # trials without a key were refused earlier
            speech.trials[name] = key.trials()
            for directory in (sets.original[name], *sets.versions[name]):
                speech.directories[directory.path.name] = without_labels(directory)
    return speech


def add_conversations(speech: Speech, dealt: Mapping[str, Dealt]) -> None:
    """Add the lists of trials of conversations."""
    for name, conversations in dealt.items():
        speech.dealt[name] = conversations
        speech.trials[name] = conversations.key.trials()


def training_name(suffix: str, *, on_anonymised: bool) -> str:
    """Return VoicePrivacy's name of the speech that attackers learn from."""
    return f"asv_anon{suffix}" if on_anonymised else "asv_orig"


def add_derived(speech: Speech, facts: Facts, run: Run, *, seed: int) -> None:
    """Add the inversions and the recordings to cut; no speech is made yet.

    Parameters
    ----------
    speech : Speech
    facts : Facts
    run : Run
        Its folder gets the inverted speech, the pieces and the estimators of inversions.
    seed : int
    """
    for name, known in facts.anonymisers.items():
        if known is not None:
            speech.inversions[name] = Inversion(speech.backgrounds[name], known, run, seed)
    for name, counts in facts.pieces.items():
        background = speech.backgrounds[name]
        made = []
        for source in (background.original, *background.anonymised):
            folder = run.path(f"data/{source.path.name}{PIECES_ENDING}")
            speech.pieces[folder] = (source, counts)
            made.append(pieces_of(source, counts, folder))
        speech.in_pieces[name] = TrainingSet(made[0], tuple(made[1:]))
