"""Whether files belong to their originals: what follows from counts, and recordings under wrong names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from scipy.signal import lfilter

from evaluation.reports import Pairing, typed_results
from spkbase.files import write_text
from spkbase.runs import Run
from spkver.datadir import DataDir
from spkver.voiceprivacy import checks
from spkver.voiceprivacy.checks import Evaluated
from spkver.voiceprivacy.likeness import warped_similarity
from spkver.voiceprivacy.pairs import compared_of, pairing_of, with_state
from spkver.voiceprivacy.sets import Sets
from spkver.voiceprivacy.settings import Config, UtilityConfig

DEAF = Config(utility=UtilityConfig(recogniser="whisper:/nowhere"))


def counted(
    own: int, elsewhere: int, own_text: int = 0, other_text: int = 0, compared: int = 100
) -> Pairing:
    return Pairing(
        "x_a",
        compared=compared,
        own=own,
        elsewhere=elsewhere,
        own_text=own_text,
        other_text=other_text,
    )


@pytest.mark.parametrize(
    ("pairing", "more", "state", "reason"),
    [
        (
            counted(93, 0),
            {},
            "confirmed",
            "93 of the 93 that match a speaker .*, so that at most 4 % are",
        ),
        # one mismatch may be due to chance
        (counted(92, 1), {}, "confirmed", "92 of the 93 that match"),
        (
            counted(91, 2),
            {},
            "doubtful",
            "2 of the 93 recordings that match a speaker match the wrong one",
        ),
        (
            counted(90, 3),
            {},
            "exchanged",
            "3 of the 93 .*: about 3 % .1 to 9.* of the files belong to other names",
        ),
        (counted(16, 0), {}, "confirmed", "16 of the 16"),
        (counted(15, 0), {}, "not confirmed", "only 15 of 100 recordings match a speaker"),
        (
            counted(0, 0),
            {"note": "no recogniser"},
            "not confirmed",
            "only 0 of 100 .*, and no recogniser",
        ),
        (counted(9, 0, compared=12), {}, "not confirmed", "there are only 12 recordings"),
        (counted(0, 3), {}, "exchanged", "3 of the 3"),
        (counted(20, 1), {}, "not confirmed", "up to 23 % could be exchanged .21 of 100 match"),
        (counted(93, 0), {"seen": 0.1}, "not confirmed", "up to 29 % could be exchanged"),
        (
            counted(0, 0, 60),
            {"distinct": 0.5},
            "not confirmed",
            "the same words; 60 of 60 say their own text",
        ),
        (
            counted(0, 0, 45, 15),
            {"distinct": 0.5},
            "exchanged",
            "15 of the 60 .* a text .*: about 50 % .32 to 74",
        ),
        # the speakers are right, some texts are not
        (counted(93, 0, 90, 3), {}, "doubtful", "3 of the 93 recordings that match a text"),
        (
            counted(0, 0),
            {"identical": 1.0},
            "identical",
            "recordings of different speakers are the same file",
        ),
        (
            counted(0, 0),
            {"identical": 1.0, "is_made": True},
            "identical",
            "recordings of different speakers are the same",
        ),
        (counted(0, 3), {"identical": 1.0}, "exchanged", ""),
        (counted(0, 0), {"is_made": True}, "certain", "this run anonymised them$"),
        (
            counted(90, 5),
            {"is_made": True},
            "certain",
            "but 5 of 95 are more similar to the speech of another person",
        ),
    ],
)
def test_a_state_follows_from_counts(
    pairing: Pairing, more: dict[str, object], state: str, reason: str
) -> None:
    judged = with_state(pairing, **more)  # type: ignore[arg-type]
    assert judged.state == state
    assert re.search(reason, judged.reason), judged.reason
    assert judged.share.known == (pairing.own + pairing.elsewhere >= 16 or "about" in judged.reason)


def test_pairings_are_reported_by_the_gravity_of_their_state() -> None:
    levels = {
        "exchanged": ["error"],
        "doubtful": ["warning"],
        "not confirmed": ["note"],
        "identical": ["ok"],
        "confirmed": ["ok"],
        "certain": ["ok", "warning"],
    }
    for state, expected in levels.items():
        row = Pairing("x_a", elsewhere=3, state=state, reason="because").to_dict()
        results = typed_results(
            {"format": 1, "conditions": [], "pairings": [row, row | {"part": "training"}]}
        )
        findings = list(checks.pairs(Evaluated(results, Sets((), {}), Config())))
        assert [finding.level for finding in findings] == expected
        assert findings[0].text.endswith("(x_a: because).")


@pytest.mark.parametrize(("state", "level"), [("identical", "note"), ("confirmed", "error")])
def test_equal_scores_of_equal_files_are_not_reported_as_broken_attackers(
    state: str, level: str
) -> None:
    rows = [Pairing("x_f_a", "x", "trials", "f", state=state).to_dict()]
    condition = {
        "dataset": "x",
        "gender": "f",
        "scenario": "lazy-informed",
        "attacker": "a",
        "level": "one-model",
    }
    condition |= {
        "eer": {"rocch": 0.5, "interpolated": 0.5},
        "min_cllr": 1.0,
        "n_target": 9,
        "n_nontarget": 9,
    }
    results = typed_results({"format": 1, "conditions": [condition], "pairings": rows})
    (finding,) = checks.uninformative(Evaluated(results, Sets((), {}), Config()))
    assert (finding.level, finding.check) == (level, "broken attackers")
    assert ("the files of different speakers are the same" in finding.text) == (
        state == "identical"
    )


# --- recordings -------------------------------------------------------------------------------------------------------

# formants in Hz
PHONES = np.random.default_rng(0).uniform([250, 800, 2200], [800, 2200, 3400], size=(24, 3))
WORDS = np.random.default_rng(1).integers(len(PHONES), size=(300, 4))


def say(words: np.ndarray, voice: int, pace: float = 1.0, rate: int = 8000) -> np.ndarray:
    """Phones of random durations by a voice with its own tract, level, and pauses after some words."""
    own, rng, parts = np.random.default_rng(voice), np.random.default_rng([voice, *words]), []
    tract = own.uniform(0.9, 1.1)
    for word in words:
        for formants in PHONES[WORDS[word]]:
            sound = rng.normal(size=int(rng.uniform(0.05, 0.12) / pace * rate))
            for formant in formants * tract:
                sound = lfilter([1], [1, -1.8 * np.cos(2 * np.pi * formant / rate), 0.81], sound)
            parts.append(sound * rng.uniform(0.3, 1) / sound.std())
        parts.append(np.zeros(int(rng.choice([0, 0, 0.2]) * rate)))
    speech = np.concatenate(parts) / 20
    return speech + rng.normal(scale=0.002, size=len(speech))


def said(number: int) -> np.ndarray:
    """The words of recording `number`."""
    return np.random.default_rng(number).integers(len(WORDS), size=8)


def one_voice(number: int, share: float) -> np.ndarray:
    """The words of recording `number`, a share of them misheard, by one voice for all at its own pace."""
    rng, words = np.random.default_rng([7, number]), said(number)
    wrong = rng.random(len(words)) < share
    return say(np.where(wrong, rng.integers(len(WORDS), size=len(words)), words), 1000, pace=1.3)


KINDS: dict[str, Callable[[int], NDArray[np.float64]]] = {
    "the same": lambda number: say(said(number), number),
    "one voice": lambda number: one_voice(number, 0.0),
    "noise": lambda number: np.random.default_rng(number).normal(scale=0.1, size=16000),
    "the same words for everybody": lambda number: say(said(0), 1000 + number),
    "one file": lambda number: say(said(0), 1000),
}


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], DataDir]:
    """Return a function that gives 40 recordings of 20 speakers, of which every so manieth has another's name."""
    folder = tmp_path_factory.mktemp("speech")
    names = [f"u{number:02d}" for number in range(40)]

    def make(kind: str, moved: int = 0) -> DataDir:
        place = folder / kind
        if not place.is_dir():
            place.mkdir()
            for number, name in enumerate(names):
                soundfile.write(place / f"{name}.wav", np.clip(KINDS[kind](number), -1, 1), 8000)
        paths = {name: place / f"{name}.wav" for name in names}
        exchanged = names[::moved] if moved else []
        for name, other in zip(exchanged, exchanged[1:] + exchanged[:1], strict=True):
            paths[name] = place / f"{other}.wav"
        speakers = {name: f"s{number // 2:02d}" for number, name in enumerate(names)}
        return DataDir(folder / f"{kind}-{moved}", paths, speakers)

    return make


def judged(
    original: DataDir, twin: DataDir, tmp_path: Path, config: Config = DEAF, **more: object
) -> Pairing:
    sets = replace(Sets((), {"x": original}, {"x": (twin,)}), **more)  # type: ignore[arg-type]
    return pairing_of(Run(tmp_path / "run", jobs=1, quiet=True), config, compared_of(sets, "x"))


@pytest.mark.parametrize(
    ("kind", "moved", "state"),
    [
        ("the same", 0, "confirmed"),
        ("the same", 1, "exchanged"),  # every file has the name of another one
        ("the same", 5, "exchanged"),
        ("one voice", 0, "not confirmed"),
        ("noise", 0, "not confirmed"),
        ("the same words for everybody", 0, "not confirmed"),
        ("one file", 0, "identical"),
    ],
)
def test_files_under_wrong_names_are_found_and_correct_ones_accepted(
    kind: str, moved: int, state: str, speech: Callable[[str, int], DataDir], tmp_path: Path
) -> None:
    pairing = judged(speech("the same", 0), speech(kind, moved), tmp_path)
    assert pairing.state == state, pairing
    if state == "exchanged":
        # two recordings of each speaker
        assert pairing.share.low < {1: 0.5, 5: 0.2}[moved] < pairing.share.high
        assert all(" = " in example for example in pairing.examples)
        assert pairing.speaker_elsewhere > 0


def test_files_anonymised_by_the_run_are_certain(
    speech: Callable[[str, int], DataDir], tmp_path: Path
) -> None:
    pairing = judged(speech("the same", 0), speech("the same", 5), tmp_path, missing=("x",))
    assert pairing.state == "certain"
    assert "more similar to the speech of another person" in pairing.reason


def test_few_recordings_are_neither_confirmed_nor_refused(
    speech: Callable[[str, int], DataDir], tmp_path: Path
) -> None:
    original = speech("the same", 0)
    few = {name: path for name, path in original.recordings.items() if name < "u13"}
    small = replace(
        original, recordings=few, speakers={name: original.speakers[name] for name in few}
    )
    assert judged(small, replace(small, path=tmp_path / "twin"), tmp_path).state == "not confirmed"


@pytest.mark.parametrize(("moved", "state"), [(0, "confirmed"), (2, "exchanged")])
def test_words_identify_recordings_whose_voice_is_hidden(
    moved: int, state: str, speech: Callable[[str, int], DataDir], tmp_path: Path
) -> None:
    """Words of another recogniser, and those that were said: none of ours is needed."""
    folders = {"text": tmp_path / "original", "heard": tmp_path / "twin"}
    names = list(speech("the same", 0).recordings)
    exchanged = names[::moved] if moved else []
    sources = dict(zip(exchanged, exchanged[1:] + exchanged[:1], strict=True))
    for file, folder in folders.items():
        folder.mkdir()
        lines = []
        for name in names:
            source = sources.get(name, name) if file == "heard" else name
            lines.append(f"{name} {' '.join(f'w{word}' for word in said(int(source[1:])))}\n")
        write_text(folder / file, "".join(lines))
    original = replace(speech("the same", 0), path=folders["text"])
    twin = replace(speech("noise", 0), path=folders["heard"])
    config = replace(DEAF, utility=replace(DEAF.utility, hypotheses="heard"))
    pairing = judged(original, twin, tmp_path, config)
    assert (pairing.state, pairing.sources[-1]) == (state, "words")
    assert pairing.compared == pairing.own + pairing.elsewhere


def test_the_best_path_through_two_sequences_is_found() -> None:
    """All paths of six pairs are tried."""
    rng = np.random.default_rng(0)
    some, others = rng.normal(size=(2, 6, 3)), rng.normal(size=(3, 6, 3))
    steps = [np.cumsum((0, *path)) for path in product((0, 1, 2), repeat=5) if sum(path) == 5]
    expected = [
        [max(np.mean(np.sum(x * y[path], axis=1)) for path in steps) for y in others] for x in some
    ]
    np.testing.assert_allclose(warped_similarity(some, others), expected, rtol=1e-12)
