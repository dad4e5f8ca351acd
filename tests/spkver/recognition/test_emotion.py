"""The recogniser of emotions: functionals with known answers, folds that keep speakers apart, bad input."""

import numpy as np
import pytest
from command_lines import passes, refused

from evaluation.utility.lists import read_labels
from spkver.audio import write_audio
from spkver.datadir.reading import read_datadir
from spkver.recognition.emotions import check_folds, choose_cost, functionals, read_emotions

RATE = 16000


def voice(pitch, loudness=0.1, seed=0):
    """Harmonics of a pitch in Hz over a faint hiss, between silences of a quarter of a second."""
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    samples = loudness * sum(np.sin(k * phase) / k for k in range(1, 9))
    hiss = 1e-5 * np.random.default_rng(seed).standard_normal(len(pitch) + RATE // 2)
    hiss[RATE // 4 : RATE // 4 + len(pitch)] += samples
    return hiss


@pytest.fixture(scope="module")
def rising():
    return functionals(voice(np.linspace(110, 220, RATE)))


def test_functionals_of_a_rising_voice_have_a_positive_slope(rising):
    semitones = 12 * np.log2(np.linspace(110, 220, 100) / 55)
    assert len(rising) == 221
    assert rising["pitch.mean"] == pytest.approx(semitones.mean(), abs=0.3)
    assert rising["pitch.range"] == pytest.approx(
        np.ptp(np.quantile(semitones, (0.05, 0.95))), abs=0.4
    )
    assert rising["pitch.slope"] > 5
    assert rising["pitch.voiced_share"] > 0.9
    assert rising["pitch.segment_mean"] == pytest.approx(1, abs=0.1)
    assert rising["pitch.rise"] > 0
    assert rising["energy.duration"] == pytest.approx(1, abs=0.06)
    assert all(np.isfinite(list(rising.values())))


def test_functionals_of_a_falling_voice_are_mirrored(rising):
    falling = functionals(voice(np.linspace(220, 110, RATE)))
    assert falling["pitch.slope"] == pytest.approx(-rising["pitch.slope"], rel=0.1)
    assert falling["pitch.mean"] == pytest.approx(rising["pitch.mean"], abs=0.3)
    assert falling["pitch.fall"] < 0


def test_gain_and_surrounding_silence_change_nothing():
    samples = voice(np.linspace(110, 180, RATE))
    found = functionals(samples)
    louder = functionals(4 * samples)
    longer = functionals(
        np.concatenate([1e-5 * np.random.default_rng(9).standard_normal(8000), samples])
    )
    for name, value in found.items():
        assert louder[name] == pytest.approx(value, abs=1e-6), name
        if not name.startswith("delta"):
            assert longer[name] == pytest.approx(value, abs=0.35), name


def test_noise_has_no_pitch():
    found = functionals(0.1 * np.random.default_rng(0).standard_normal(RATE))
    assert found["pitch.voiced_share"] < 0.1


@pytest.mark.parametrize(
    "samples", [np.zeros(RATE), np.zeros(100), np.r_[np.zeros(8000), 1.0, np.zeros(8000)]]
)
def test_recordings_with_too_little_sound_are_refused(samples):
    with pytest.raises(ValueError, match="at least 20"):
        functionals(samples)


def test_the_penalty_equals_a_cross_validation_by_scikit_learn():
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    costs, chosen = (1e-4, 1e-2, 1.0), set()
    speakers = [f"s{n // 10}" for n in range(80)]
    folds = PredefinedSplit([n // 10 % 4 for n in range(80)])  # the speakers in turn
    for seed in range(4):
        rng = np.random.default_rng(seed)
        labels = rng.choice(["a", "b", "c"], 80, p=[0.6, 0.3, 0.1])
        vectors = rng.standard_normal((80, 40)) + 1.2 * np.array(
            [[label == "a"] for label in labels]
        )
        recalls = []
        for cost in costs:
            machine = make_pipeline(
                StandardScaler(), SVC(kernel="linear", C=cost, class_weight="balanced")
            )
            found = cross_val_predict(machine, vectors, labels, cv=folds)
            recalls.append(round(balanced_accuracy_score(labels, found), 12))
        expected = costs[int(np.argmax(recalls))]
        assert choose_cost(vectors, labels, speakers, costs) == expected
        chosen.add(expected)
    assert len(chosen) > 1


PITCH = {"calm": (0.96, 1.04), "lively": (0.75, 1.35)}


def make_set(folder, speakers=4, seed=0, factor=1.0):
    """A data directory whose emotions differ by how far the pitch moves."""
    rng = np.random.default_rng(seed)
    lists = {"wav.scp": [], "utt2spk": [], "utt2emo": []}
    (folder / "wav").mkdir(parents=True)
    for speaker in range(speakers):
        for emotion, (low, high) in PITCH.items():
            for number in range(2):
                one = f"s{speaker}-{emotion}-{number}"
                ends = (
                    factor * (110 + 20 * speaker) * np.array([low, high]) * rng.uniform(0.97, 1.03)
                )
                wave = np.linspace(*(ends if number else ends[::-1]), RATE // 2)
                write_audio(folder / "wav" / f"{one}.wav", voice(wave, seed=number), RATE)
                lists["wav.scp"].append(f"{one} {folder}/wav/{one}.wav")
                lists["utt2spk"].append(f"{one} s{speaker}")
                lists["utt2emo"].append(f"{one} {emotion}")
    for name, lines in lists.items():
        (folder / name).write_text("\n".join(sorted(lines)) + "\n")
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("emotion") / "set")


def test_emotions_are_recognised_saved_and_resumed(corpus, tmp_path):
    passes("emotion", corpus, "-o", tmp_path / "out", "--jobs", 1)
    predicted, truth = (
        read_labels(tmp_path / "out" / "predictions"),
        read_labels(corpus / "utt2emo"),
    )
    assert list(predicted) == sorted(truth)
    assert np.mean([predicted[one] == truth[one] for one in truth]) >= 0.9
    first = (tmp_path / "out" / "predictions").read_bytes()
    again = passes("emotion", corpus, "-o", tmp_path / "out", "--jobs", 2)
    assert "functionals 0: up to date" in again.output
    assert (tmp_path / "out" / "predictions").read_bytes() == first


def test_emotions_are_trained_in_folds_or_on_another_set(corpus, tmp_path):
    other = make_set(tmp_path / "other", seed=5, factor=1.1)
    (other / "spk2fold").write_text("s0 a\ns1 a\ns2 b\ns3 b\n")
    (other / "utt2emo").unlink()  # tested recordings need no labels
    passes("emotion", other, "--train", corpus, "-o", tmp_path / "out", "--jobs", 1)
    predicted, truth = (
        read_labels(tmp_path / "out" / "predictions"),
        read_labels(corpus / "utt2emo"),
    )
    assert np.mean([predicted[one] == truth[one] for one in truth]) >= 0.9


def test_tested_speakers_are_not_trained_on(corpus):
    data = read_datadir(corpus)
    folds = check_folds(
        data, data, read_emotions(data), folds={f"s{n}": str(n % 2) for n in range(4)}
    )
    assert len(folds) == 2
    for learnt, tested in folds:
        assert {one[:2] for one in learnt}.isdisjoint(one[:2] for one in tested)
    assert sorted(one for _, tested in folds for one in tested) == sorted(data.speakers)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("utt2emo", "", "expected lines 'utterance emotion', got an empty file"),
        ("utt2emo", "s0-calm-0 calm\n", "15 utterances without emotion: 's0-calm-1', "),
        ("utt2emo", "x calm\n", "1 utterance unknown: 'x'"),
        ("spk2fold", "s0 a\n", "3 speakers without a fold, such as 's1'"),
        (
            "spk2fold",
            "s0 a\ns1 a\ns2 a\ns3 a\n",
            "fold 'a' leaves 0 speakers and 0 emotions to learn from",
        ),
        ("wav.scp", "{first} {folder}/short.wav\n", "short.wav"),
    ],
)
def test_bad_sets_are_refused(corpus, tmp_path, name, text, message):
    lists = {one: (corpus / one).read_text() for one in ("wav.scp", "utt2spk", "utt2emo")}
    (tmp_path / "short.wav").write_bytes(b"RIFF")
    if name == "wav.scp":  # one recording is not audio
        first, _, rest = lists[name].partition("\n")
        text = text.format(first=first.split()[0], folder=tmp_path) + rest
    for one, content in {**lists, name: text}.items():
        (tmp_path / one).write_text(content)
    assert message in refused("emotion", tmp_path, "-o", tmp_path / "out", "--jobs", 1)
    assert not list(tmp_path.glob("out/*/*.json"))
