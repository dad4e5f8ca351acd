"""Where scores and lists of an evaluation stand, in folders that are named as the challenge names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.formats import write_key
from evaluation.reports import TRIAL_BY_TRIAL, Scenario
from evaluation.trials import Key
from spkbase.files import write_text
from spkbase.runs import Run
from spkver.voiceprivacy.sets import POOLED, Dataset, Sets, pooled_key

SCORES = "exp"  # as in the challenge


@dataclass(frozen=True)
class Scored:
    """The scores of one condition; paths are those of files in the output folder.

    Attributes
    ----------
    dataset, gender, scenario, attacker : str
        What they are of; gender is "f", "m" or "all".
    folder : str
        ``exp/asv_.../<enrol>-<trial>``, relative to the output folder.
    lists : str
        Folder of the key (``trials``) and of ``utt2spk`` and ``spk2gender``, relative to the output folder.
    further : tuple of (int, str)
        Number and folder of each draw beyond the first that the attacker scored.
    level : str
        What the attacker may look at, see `evaluation.reports.LEVELS`.
    content : str
        Where the attacker reads what is said: "oracle" if the transcripts come with the data, else "recognised".
    tested : tuple of int
        Recordings that each of its lists of trials tests: what a whole-list attacker adapts to.
    lacking : tuple of int
        Draws that there are, and that the attacker could not score.
    """

    dataset: str
    gender: str
    scenario: str
    attacker: str
    folder: str
    lists: str
    further: tuple[tuple[int, str], ...] = ()
    level: str = TRIAL_BY_TRIAL
    content: str = ""
    tested: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()

    @property
    def scores(self) -> str:
        """File of the scores of the first draw, relative to the output folder."""
        return f"{self.folder}/{self.attacker}/scores"

    @property
    def draws(self) -> dict[int, str]:
        """File of the scores of each draw by its number, relative to the output folder."""
        return {1: self.scores} | {number: f"{folder}/{self.attacker}/scores" for number, folder in self.further}

    @property
    def key(self) -> str:
        """File of the key, relative to the output folder."""
        return f"{self.lists}/trials"


def write_lists(run: Run, sets: Sets) -> None:
    """Write the key and the maps of speakers of every trial list, pooled ones too, to ``lists/``."""
    for dataset in sets.datasets:
        keys = []
        speakers: dict[str, str] = {}
        genders: dict[str, str] = {}
        enrolled = sets.original[dataset.enrolls].genders
        for gender, name in dataset.trials.items():
            trials = sets.original[name]
            assert trials.trials is not None  # checked before
            names = {*trials.speakers.values(), *trials.trials.model_ids[trials.trials.models]}
            sexes = {speaker: trials.genders.get(speaker) or enrolled.get(speaker, "unknown") for speaker in names}
            _write_list(run, lists_of(dataset, gender), trials.trials, trials.speakers, sexes)
            keys.append(trials.trials)
            speakers |= trials.speakers
            genders |= sexes
        if len(keys) > 1:
            _write_list(run, lists_of(dataset, POOLED), pooled_key(keys), speakers, genders)


def lists_of(dataset: Dataset, gender: str) -> str:
    """Return the folder of the lists of a condition."""
    return f"lists/{trial_name(dataset, gender)}"


def trial_name(dataset: Dataset, gender: str, suffix: str = "") -> str:
    """Name of a trial set, also of a pooled one."""
    return dataset.trials.get(gender, f"{dataset.name}_trials_{POOLED}") + suffix


def condition_folder(dataset: Dataset, gender: str, scenario: Scenario, suffix: str, draw: int = 1) -> str:
    """Return the folder of the scores of a condition in a draw of the trials, named as the challenge does."""
    attacker = f"asv_anon{suffix}" if scenario.training else "asv_orig"
    drawn = suffix if draw == 1 else f"{suffix}-draw{draw}"
    enrol = dataset.enrolls + (suffix if scenario.enrolment else "")
    return f"{SCORES}/{attacker}/{enrol}-{trial_name(dataset, gender, drawn if scenario.trials else '')}"


def _write_list(run: Run, folder: str, key: Key, speakers: Mapping[str, str], genders: Mapping[str, str]) -> None:
    write_key(run.path(f"{folder}/trials"), key)
    for name, table in (("utt2spk", speakers), ("spk2gender", genders)):
        write_text(
            run.path(f"{folder}/{name}"),
            "".join(f"{identifier} {table[identifier]}\n" for identifier in sorted(table)),
        )
