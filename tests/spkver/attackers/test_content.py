"""The attacker by words: its formulas by hand, what it finds in texts, and texts that are none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation.trials import Trials
from spkbase.errors import ConfigError
from spkver.attackers import find_row
from spkver.attackers.content import (
    METHODS,
    ContentAttacker,
    ContentConfig,
    characters,
    choose_method,
    content_attacker,
    term_vectors,
    words,
)
from spkver.attackers.protocol import Attack, Place, TrainingSet
from spkver.attackers.vector_attacker import Context
from spkver.datadir.directory import DataDir

COMMON = ["the", "of", "and", "to", "a", "in", "that", "it", "is", "was", "for", "on", "with", "as"]


def sentences(speaker: int, count: int, *, rng: np.random.Generator) -> list[str]:
    """Sentences of common words, and one in four of the speaker's own."""
    own = [f"topic{speaker}x{number}" for number in range(8)]
    return [
        " ".join(own[rng.integers(8)] if rng.uniform() < 0.25 else COMMON[rng.integers(14)] for _ in range(12))
        for _ in range(count)
    ]


def directory(folder: Path, texts: dict[str, list[str]] | None, speakers: list[str], count: int) -> DataDir:
    """Speakers with some utterances each, and their transcripts where there are any."""
    folder.mkdir(parents=True)
    owners = {f"{speaker}-{number}": speaker for speaker in speakers for number in range(count)}
    if texts is not None:
        lines = [f"{name} {texts[speaker][int(name.rsplit('-')[-1])]}\n" for name, speaker in owners.items()]
        (folder / "text").write_text("".join(lines), encoding="utf-8")
    return DataDir(folder, {name: folder / f"{name}.wav" for name in owners}, owners)


def make_attack(folder: Path, *, training_texts: bool = True) -> Attack:
    rng = np.random.default_rng(0)
    people = [f"s{number}" for number in range(6)]
    others = [f"b{number}" for number in range(8)]
    enrolled = {name: sentences(number, 3, rng=rng) for number, name in enumerate(people)}
    tested = {name: sentences(number, 4, rng=rng) for number, name in enumerate(people)}
    background = {name: sentences(10 + number, 4, rng=rng) for number, name in enumerate(others)}
    enrolment = directory(folder / "enrolls", enrolled, people, 3)
    trials = directory(folder / "trials", tested, people, 4)
    trials = replace(trials, recordings={f"t{name}": path for name, path in trials.recordings.items()},
                     speakers={f"t{name}": speaker for name, speaker in trials.speakers.items()})  # fmt: skip
    text = (folder / "trials" / "text").read_text()
    (folder / "trials" / "text").write_text("".join(f"t{line}\n" for line in text.splitlines()))
    training = directory(folder / "train", background if training_texts else None, others, 4)
    pairs = [(model, segment) for model in people for segment in trials.recordings]
    return Attack(TrainingSet(training), (enrolment,), trials, Trials.from_ids(*map(list, zip(*pairs, strict=True))))


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(f"{__name__}.PLACE", Place(tmp_path / "out", tmp_path / "work"))


PLACE = Place(Path(), Path())


def attacker_of(**settings: str) -> ContentAttacker:
    return ContentAttacker(ContentConfig(**settings), PLACE)


def scores(attack: Attack, **settings: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of targets and of nontargets."""
    attacker = attacker_of(**settings)
    assert attacker.lacks(attack) == ""
    found = attack.scored_by(attacker.fit(attack.training))
    is_target = np.array([segment.startswith(f"t{model}-") for model, segment in attack.trials.pairs()])
    return found.values[is_target], found.values[~is_target]


def roc_area(targets: np.ndarray, nontargets: np.ndarray) -> float:
    """The share of pairs in which the target scores higher."""
    return float(np.mean((targets[:, None] > nontargets) + (targets[:, None] == nontargets) / 2))


def test_words_and_characters_are_split_from_hostile_text() -> None:
    expected = ["a", "b", "\u0107", "d'e", "f", "12", "5", "script"]
    assert words("A\x00b c\u0301 \u202e\ufeffD'e 'f' 12,5 __ <script>") == expected
    assert words("\x00\x01 ... \u200b") == []
    assert characters("") == characters("...") == []
    assert characters("\u6c34") == [" \u6c34 "]


def test_term_vectors_by_hand() -> None:
    background = [["a", "b"], ["a"], ["a", "c"]]
    vectors = term_vectors(background, [["a", "b", "b"], [], ["d"]], [["b", "d"]])[0].toarray()
    first = np.array([1.0, (1 + math.log(2)) * (math.log(4 / 2) + 1), 0])  # a is in all: log(4 / 4) + 1
    np.testing.assert_allclose(vectors[0], first / np.linalg.norm(first), rtol=1e-14)
    np.testing.assert_array_equal(vectors[1:], [[0, 0, 0], [0, 0, 1]])
    assert term_vectors([], [[]])[0].nnz == 0


def test_method_is_chosen_on_background_speakers() -> None:
    """Speakers who share words but spell with endings of their own: sequences of characters win."""
    rng = np.random.default_rng(4)
    texts = {
        f"s{number}": [" ".join(f"q{rng.integers(10**6)}{end}" for _ in range(10)) for _ in range(4)]
        for number, end in enumerate(["ing", "ous", "ful", "ity", "ant", "ism", "ate", "ely"])
    }
    method, why = choose_method(texts, METHODS, seed=0)
    assert method.units == "characters"
    assert "3 folds of 8 background speakers" in why
    assert choose_method(dict(reversed(texts.items())), METHODS, seed=0) == (method, why)


def test_speakers_with_topics_are_distinguished_and_scores_do_not_depend_on_other_trials(tmp_path) -> None:
    attack = make_attack(tmp_path)
    for method in METHODS:
        attacker = attacker_of(scoring=method.scoring, units=method.units)
        assert roc_area(*scores(attack, scoring=method.scoring, units=method.units)) > 0.97
        whole = attack.scored_by(attacker.fit(attack.training)).values
        assert np.array_equal(attack.scored_by(attacker.fit(attack.training)).values, whole)
        chosen = np.arange(0, len(whole), 5)
        some = replace(attack, trials=attack.trials.subset(np.isin(np.arange(len(whole)), chosen)))
        np.testing.assert_allclose(some.scored_by(attacker.fit(attack.training)).values, whole[chosen], atol=1e-6)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no transcripts: there is no"),
        (b"ts0-0 \xff\xfe words\n", "UTF-8|other bytes"),
        (b"ts0-0 one\nts0-0 two\n", "is repeated, first in line 1"),
        (b"ts0-0 one\n", "23 of 24 utterances without a transcript"),
        ("".join(f"ts{s}-{n} ...\n" for s in range(6) for n in range(4)).encode(), "no transcript holds a word"),
    ],
)
def test_texts_that_cannot_be_used_are_what_it_lacks(content: bytes | None, says: str, tmp_path) -> None:
    attack = make_attack(tmp_path)
    file = attack.tested.path / "text"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    import re

    assert re.search(says, attacker_of().lacks(attack))


def test_empty_transcripts_score_0_and_nothing_is_nan(tmp_path) -> None:
    attack = make_attack(tmp_path)
    file = attack.tested.path / "text"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0].split()[0], *lines[1:], ""]))
    for method in METHODS:
        attacker = attacker_of(units=method.units, scoring=method.scoring)
        assert attacker.lacks(attack) == ""
        found = attack.scored_by(attacker.fit(attack.training))
        assert np.isfinite(found.values).all()
        if method.scoring == "cosine":
            silent = [segment == lines[0].split()[0] for _, segment in attack.trials.pairs()]
            assert not found.values[silent].any()


def test_settings_are_checked() -> None:
    found = find_row("content")
    assert found is not None
    assert found[1].make is content_attacker
    assert content_attacker("mine", {"text": "text_asr"}, Context("content")).config == ContentConfig(
        "mine", "text_asr"
    )
    for settings, says in (
        ({"text": "../text"}, "name of a file"),
        ({"units": "phones"}, "units 'phones'"),
        ({"scoring": "x"}, "scoring 'x'"),
        ({"colour": 1}, "colour"),
    ):
        with pytest.raises(ConfigError, match=says):
            content_attacker("content", settings, Context("content"))
