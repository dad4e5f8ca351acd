"""The attacker by words: its formulas by hand, what it finds in texts, and texts that are none."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from evaluation.trials import Trials
from spkbase.errors import ConfigError
from spkver.attackers import make_attacker, parse_spec
from spkver.attackers.content import (
    METHODS,
    ContentAttacker,
    ContentConfig,
    characters,
    choose_method,
    term_vectors,
    words,
)
from spkver.attackers.protocol import Attack, TrainingSet
from spkver.datadir.directory import DataDir

COMMON = ["the", "of", "and", "to", "a", "in", "that", "it", "is", "was", "for", "on", "with", "as"]


def sentences(speaker, count, *, rng):
    """Sentences of common words, and one in four of the speaker's own."""
    own = [f"topic{speaker}x{number}" for number in range(8)]
    return [
        " ".join(
            own[rng.integers(8)] if rng.uniform() < 0.25 else COMMON[rng.integers(14)]
            for _ in range(12)
        )
        for _ in range(count)
    ]


def directory(folder, texts, speakers, count):
    """Speakers with some utterances each, and their transcripts where there are any."""
    folder.mkdir(parents=True)
    owners = {f"{speaker}-{number}": speaker for speaker in speakers for number in range(count)}
    if texts is not None:
        lines = [
            f"{name} {texts[speaker][int(name.rsplit('-')[-1])]}\n"
            for name, speaker in owners.items()
        ]
        (folder / "text").write_text("".join(lines), encoding="utf-8")
    return DataDir(folder, {name: folder / f"{name}.wav" for name in owners}, owners)


def make_attack(folder, *, training_texts=True):
    rng = np.random.default_rng(0)
    people = [f"s{number}" for number in range(6)]
    others = [f"b{number}" for number in range(8)]
    enrolled = {name: sentences(number, 3, rng=rng) for number, name in enumerate(people)}
    tested = {name: sentences(number, 4, rng=rng) for number, name in enumerate(people)}
    background = {name: sentences(10 + number, 4, rng=rng) for number, name in enumerate(others)}
    enrolment = directory(folder / "enrolls", enrolled, people, 3)
    trials = directory(folder / "trials", tested, people, 4)
    trials = replace(
        trials,
        recordings={f"t{name}": path for name, path in trials.recordings.items()},
        speakers={f"t{name}": speaker for name, speaker in trials.speakers.items()},
    )
    text = (folder / "trials" / "text").read_text()
    (folder / "trials" / "text").write_text("".join(f"t{line}\n" for line in text.splitlines()))
    training = directory(folder / "train", background if training_texts else None, others, 4)
    pairs = [(model, segment) for model in people for segment in trials.recordings]
    return Attack(
        TrainingSet(training),
        (enrolment,),
        trials,
        Trials.from_ids(*map(list, zip(*pairs, strict=True))),
    )


def values_of(attack, **settings):
    attacker = ContentAttacker(ContentConfig(**settings))
    assert attacker.obstacle(attack) == ""
    learnt = attacker.fit(attack.training, None, seed=0, jobs=1)
    return attacker.score(learnt.model, attack, None).values


def roc_area(targets, nontargets):
    """The share of pairs in which the target scores higher."""
    return float(np.mean((targets[:, None] > nontargets) + (targets[:, None] == nontargets) / 2))


def test_hostile_text_is_split_into_words_and_characters():
    expected = ["a", "b", "\u0107", "d'e", "f", "12", "5", "script"]
    assert words("A\x00b c\u0301 \u202e\ufeffD'e 'f' 12,5 __ <script>") == expected
    assert words("\x00\x01 ... \u200b") == []
    assert characters("") == characters("...") == []
    assert characters("\u6c34") == [" \u6c34 "]


def test_term_vectors_equal_hand_computed_values():
    background = [["a", "b"], ["a"], ["a", "c"]]
    vectors = term_vectors(background, [["a", "b", "b"], [], ["d"]], [["b", "d"]])[0].toarray()
    # a is in all: log(4 / 4) + 1
    first = np.array([1.0, (1 + math.log(2)) * (math.log(4 / 2) + 1), 0])
    np.testing.assert_allclose(vectors[0], first / np.linalg.norm(first), rtol=1e-14)
    np.testing.assert_array_equal(vectors[1:], [[0, 0, 0], [0, 0, 1]])
    assert term_vectors([], [[]])[0].nnz == 0


def test_the_words_of_a_conversation_are_joined(tmp_path):
    """Two texts of two versions score as their joined text does, under another name."""
    attack = make_attack(tmp_path)
    other = tmp_path / "draw2"
    other.mkdir()
    lines = (attack.tested.path / "text").read_text().splitlines()
    (other / "text").write_text(
        "".join(f"{line} of {number}\n" for number, line in enumerate(lines))
    )
    texts = dict(line.split(maxsplit=1) for line in lines)
    again = dict(line.split(maxsplit=1) for line in (other / "text").read_text().splitlines())
    versions = (attack.tested, replace(attack.tested, path=other))
    parts = {f"c{n}": ((0, f"ts{n}-0"), (1, f"ts{n}-2")) for n in range(6)}
    paths = {name: attack.tested.recordings[part[0][1]] for name, part in parts.items()}
    tested = replace(attack.tested, recordings=paths, speakers={name: name for name in paths})
    pairs = [(f"s{model}", name) for model in range(6) for name in parts]
    trials = Trials.from_ids(*map(list, zip(*pairs, strict=True)))
    several = replace(attack, tested=tested, trials=trials, variants=versions, conversations=parts)
    attacker = ContentAttacker(ContentConfig())
    model = attacker.fit(attack.training, None, seed=0, jobs=1).model
    found = attacker.score(model, several, None).values
    joined = directory(tmp_path / "joined", None, [], 0)
    joined = replace(joined, recordings=paths, speakers={name: name for name in paths})
    written = [
        f"{name} {texts[first]} {again[second]}\n"
        for name, ((_, first), (_, second)) in parts.items()
    ]
    (joined.path / "text").write_text("".join(written))
    single = replace(attack, tested=joined, trials=trials)
    np.testing.assert_array_equal(found, attacker.score(model, single, None).values)
    is_target = np.array([model[1:] == name[1:] for model, name in pairs])
    assert found[is_target].min() > found[~is_target].max()


def test_pieces_and_versions_have_the_words_of_their_recording(tmp_path):
    folder = tmp_path / "train"
    directory(folder, {"s": ["one two three four five", "six"]}, ["s"], 2)
    names = ("s-0-piece1", "s-0-piece2-version3", "s-1-version2", "s-1")
    paths = {name: folder / name for name in names}
    pieces = DataDir(tmp_path / "train-pieces-without2", paths, dict.fromkeys(names, "s"))
    background = (
        ContentAttacker(ContentConfig()).fit(TrainingSet(pieces), None, seed=0, jobs=1).model[1]
    )
    assert sorted(background) == ["one two", "six", "six", "three four five"]


def test_method_is_chosen_on_background_speakers():
    """Speakers who share words but spell with endings of their own: sequences of characters win."""
    rng = np.random.default_rng(4)
    texts = {
        f"s{number}": [
            " ".join(f"q{rng.integers(10**6)}{end}" for _ in range(10)) for _ in range(4)
        ]
        for number, end in enumerate(["ing", "ous", "ful", "ity", "ant", "ism", "ate", "ely"])
    }
    method, why = choose_method(texts, METHODS, seed=0)
    assert method.units == "characters"
    assert "3 folds of 8 background speakers" in why
    assert choose_method(dict(reversed(texts.items())), METHODS, seed=0) == (method, why)


@pytest.mark.parametrize("method", METHODS)
def test_speakers_are_separated_by_topic_and_scores_do_not_depend_on_other_trials(tmp_path, method):
    attack, settings = make_attack(tmp_path), method._asdict()
    whole = values_of(attack, **settings)
    is_target = np.array(
        [segment.startswith(f"t{model}-") for model, segment in attack.trials.pairs()]
    )
    assert roc_area(whole[is_target], whole[~is_target]) > 0.97
    assert np.array_equal(values_of(attack, **settings), whole)
    chosen = np.arange(len(whole)) % 5 == 0
    some = replace(attack, trials=attack.trials.subset(chosen))
    np.testing.assert_allclose(values_of(some, **settings), whole[chosen], atol=1e-6)
    # an empty transcript scores 0
    file = attack.tested.path / "text"
    silent, *lines = file.read_text().splitlines()
    file.write_text("\n".join([silent.split()[0], *lines, ""]))
    found = values_of(attack, **settings)
    assert np.isfinite(found).all()
    if method.scoring == "cosine":
        assert not found[
            [segment == silent.split()[0] for _, segment in attack.trials.pairs()]
        ].any()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no transcripts: there is no"),
        (b"ts0-0 \xff\xfe words\n", "UTF-8|other bytes"),
        (b"ts0-0 one\nts0-0 two\n", "is repeated, first in line 1"),
        (b"ts0-0 one\n", "23 of 24 utterances without a transcript"),
        (
            "".join(f"ts{s}-{n} ...\n" for s in range(6) for n in range(4)).encode(),
            "no transcript holds a word",
        ),
    ],
)
def test_unusable_texts_are_reported(content, says, tmp_path):
    attack = make_attack(tmp_path)
    file = attack.tested.path / "text"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert re.search(says, ContentAttacker(ContentConfig()).obstacle(attack))


def test_settings_are_checked():
    made = make_attacker(
        parse_spec("content"), {"content": {"units": "words"}}, hypotheses="text_asr"
    )
    assert made.config == ContentConfig(text="text_asr", units="words")
    for settings, says in (
        ({"text": "../text"}, "name of a file"),
        ({"units": "phones"}, "units 'phones'"),
        ({"scoring": "x"}, "scoring 'x'"),
        ({"colour": 1}, "colour"),
    ):
        with pytest.raises(ConfigError, match=says):
            make_attacker(parse_spec("content"), {"content": settings})
