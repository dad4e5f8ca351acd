"""The commands ``spkver-eval wer``, ``uar``, ``f0`` and ``rank``."""

import json

import numpy as np
import pytest
import soundfile
from command_lines import passes, refused, run

from evaluation.challenges.rank_files import ASR, ASV_ANON, Section, write_rank_file
from evaluation.utility import read_transcripts

MAP = "--segment-speakers"


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture
def lists(tmp_path):
    write(tmp_path / "text", "a1 ONE TWO\na2 THREE\nb1 FOUR FIVE\n")
    write(tmp_path / "hyp", "a1 ONE TWO\na2 TREE\nb1 FOUR\n")
    write(tmp_path / "better", "a1 ONE TWO\na2 THREE\nb1 FOUR\n")
    write(tmp_path / "utt2spk", "a1 a\na2 a\nb1 b\n")
    write(tmp_path / "utt2emo", "a1 sad\na2 hap\nb1 sad\n")
    write(tmp_path / "predictions", "a1 sad\na2 sad\nb1 sad\n")
    return tmp_path


def test_word_error_rates_are_printed_with_intervals(lists):
    options = ("wer", "--ref", lists / "text", MAP, lists / "utt2spk", "--bootstrap", 50)
    done = passes(
        *options,
        "--hyp",
        lists / "hyp",
        "--unit",
        "wer",
        "--unit",
        "cer",
        "--json",
        lists / "out.json",
    )
    assert "WER" in done.output
    assert "40.00" in done.output
    assert "normaliser: none" in done.output
    found = json.loads((lists / "out.json").read_text())["hyp"]
    assert found["wer"]["value"] == 2 / 5
    assert found["cer"]["value"] == 6 / 21  # one letter and ' FIVE' of 7 + 5 + 9
    assert found["wer"]["unit"] == "words"
    paired = run(
        *options,
        "--hyp",
        lists / "hyp",
        "--hyp",
        lists / "better",
        "-l",
        "x",
        "-l",
        "y",
        "--json",
        "-",
    )
    assert json.loads(paired.stdout)["y"]["wer"]["difference"]["value"] == pytest.approx(-1 / 5)
    assert (
        run(*options, "--hyp", lists / "hyp").output == run(*options, "--hyp", lists / "hyp").output
    )


def test_recalls_are_printed_with_intervals(lists):
    options = (
        "uar",
        "--ref",
        lists / "utt2emo",
        "--predictions",
        lists / "predictions",
        MAP,
        lists / "utt2spk",
    )
    done = passes(*options, "--bootstrap", 50)
    assert "75.00" in done.output
    assert "convention: default; 2 folds; chance: 50.00 %" in done.output
    write(lists / "spk2fold", "a 1\nb 1\n")
    found = json.loads(
        run(*options, "--spk2fold", lists / "spk2fold", "--bootstrap", 0, "--json", "-").stdout
    )
    assert found["predictions"]["uar"]["value"] == 0.5
    assert found["predictions"]["uar"]["folds"] == {"1": 0.5}
    assert found["predictions"]["uar"]["interval"] == [None, None]


def test_pitch_correlations_are_printed(tmp_path):
    rate = 16000
    rng = np.random.default_rng(0)
    for folder, factor in (("set", 1.0), ("set_anon", 1.2)):
        (tmp_path / folder).mkdir()
        for number in range(2):
            pitch = factor * (140 + 30 * np.sin(np.linspace(number, 9, rate)))
            phase = 2 * np.pi * np.cumsum(pitch) / rate
            samples = 0.1 * sum(
                np.sin(k * phase) / k for k in range(1, 6)
            ) + 1e-4 * rng.standard_normal(rate)
            soundfile.write(tmp_path / folder / f"u{number}.wav", samples, rate)
        write(
            tmp_path / folder / "wav.scp",
            "".join(f"u{n} {tmp_path / folder}/u{n}.wav\n" for n in range(2)),
        )
    write(tmp_path / "set" / "utt2spk", "u0 a\nu1 b\n")
    done = passes(
        "f0", tmp_path / "set", tmp_path / "set_anon", "--jobs", 1, "--json", tmp_path / "j"
    )
    assert "convention: default; tracker: pyin" in done.output
    found = json.loads((tmp_path / "j").read_text())["set_anon"]["f0"]
    assert found["value"] > 0.98
    assert not done.stderr
    assert (found["n_utterances"], found["n_undefined"]) == (2, 0)
    write(tmp_path / "set_anon" / "wav.scp", "u0 cat x |\n")
    assert "shell command" in refused("f0", tmp_path / "set", tmp_path / "set_anon")


WER, UAR = (
    "wer --ref text --segment-speakers utt2spk",
    "uar --ref utt2emo --segment-speakers utt2spk",
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{WER} --hyp text", "text: equals the reference (3 utterances)"),
        (f"{WER} --hyp lower", "lower: is in lower case, the reference in upper case"),
        (
            f"{WER} --hyp part --missing drop",
            "part: dropped 2 utterances not in both files: 'a2', 'b1'",
        ),
        (f"{UAR} --predictions utt2emo", "utt2emo: equals the reference (3 utterances)"),
        (
            f"{UAR} --predictions other",
            "other: 2 labels do not occur in the reference and count as errors: '1', 'Bad'",
        ),
        (
            f"{UAR} --predictions more --missing drop",
            "more: dropped 1 utterance not in both files: 'c1'",
        ),
        ("wer --ref text --hyp hyp", "no intervals without speakers: give --segment-speakers"),
        ("uar --ref utt2emo --predictions predictions", "no intervals without speakers"),
        (f"{WER} --hyp hyp", ""),
        (f"{WER} --hyp lower --normaliser basic", ""),
        (f"{UAR} --predictions predictions", ""),
        ("wer --ref text --hyp hyp --bootstrap 0", ""),
    ],
)
def test_doubtful_input_gives_a_one_line_warning(lists, monkeypatch, words, said):
    monkeypatch.chdir(lists)
    write(lists / "lower", "a1 one two\na2 three x\nb1 four five\n")
    write(lists / "part", "a1 ONE TO\n")
    write(lists / "other", "a1 Bad\na2 1\nb1 sad\n")
    write(lists / "more", "a1 sad\na2 sad\nb1 sad\nc1 sad\n")
    done = passes(*words.split())
    assert done.stderr.startswith(f"Warning: {said}" if said else "")
    assert done.stderr.count("\n") == bool(said)


def test_without_speakers_only_the_intervals_are_missing(lists):
    """A rate is pooled, and without speakers a recall is that of one fold."""
    hyp, map_ = ("--hyp", lists / "hyp", "--json", "-"), (MAP, lists / "utt2spk")
    alone, known = (
        json.loads(run("wer", "--ref", lists / "text", *hyp, *more).stdout)["hyp"]["wer"]
        for more in ((), map_)
    )
    assert alone["value"] == known["value"]
    assert alone["interval"] == [None, None]
    heard = (
        "--ref",
        lists / "utt2emo",
        "--predictions",
        lists / "predictions",
        "--bootstrap",
        0,
        "--json",
        "-",
    )
    alone, known = (
        json.loads(run("uar", *heard, *more).stdout)["predictions"]["uar"]
        for more in ((), (*map_, "--convention", "pooled"))
    )
    assert alone["value"] == known["value"] == 0.5
    assert alone["convention"] == "pooled"
    write(lists / "spk2fold", "a 1\nb 1\n")
    for more in (("--convention", "vpc2024"), ("--spk2fold", lists / "spk2fold")):
        assert (
            "folds are made of speakers: give --segment-speakers"
            in run("uar", *heard, *more).output
        )


def test_comparing_a_folder_with_itself_is_reported(tmp_path):
    phase = 2 * np.pi * np.cumsum(140 + 30 * np.sin(np.linspace(0, 9, 8000))) / 8000
    soundfile.write(tmp_path / "u.wav", 0.1 * sum(np.sin(k * phase) / k for k in range(1, 6)), 8000)
    write(tmp_path / "wav.scp", f"u {tmp_path}/u.wav\n")
    write(tmp_path / "utt2spk", "u a\n")
    done = passes("f0", tmp_path, tmp_path, "--jobs", 1)
    assert "equals the reference (1 utterance): was the same file given twice?" in done.stderr


def rank_file(path, eer, wer):
    known = {"dataset": "libri", "split": "test"}
    eers = [
        known | {"gender": sex, "enrollment": "anon", "trial": "anon", "EER": eer} for sex in "fm"
    ]
    wers = [known | {"asr": "anon", "WER": wer}, known | {"asr": "original", "WER": 1.8}]
    write_rank_file(path, [Section(ASR, wers), Section(ASV_ANON, eers)])
    return path


def test_systems_are_ranked_by_utility(tmp_path):
    one = rank_file(tmp_path / "result_for_rank_one", 35.0, 5.0)
    two = rank_file(tmp_path / "result_for_rank_two", 22.0, 9.0)
    done = passes("rank", one, two)
    assert "30 %         one 5.00\n40 %         none" in done.output
    assert "UAR" not in done.output  # no system has a UAR
    unmeasured = passes("rank", one, "--utility", "uar").stdout
    assert "no ranks: no system has a measured utility (UAR)" in unmeasured
    options = (
        "--target",
        25,
        "--utility",
        "wer",
        "--assignment",
        "highest",
        "-l",
        "x",
        "-l",
        "y",
        "--json",
        "-",
    )
    found = json.loads(run("rank", one, two, *options).stdout)
    assert [entry["system"] for entry in found["conditions"][0]["entries"]] == ["x"]
    assert found["rule"]["targets"] == [0.25]
    assert [system["name"] for system in found["systems"]] == ["x", "y"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wer", "--ref", "text", "--hyp", "absent", MAP, "utt2spk"], "absent: cannot be read"),
        (["wer", "--ref", "text", "--hyp", "utt2emo", MAP, "absent"], "absent: cannot be read"),
        (
            ["wer", "--ref", "text", "--hyp", "short", MAP, "utt2spk"],
            "2 utterances missing: 'a2', 'b1'",
        ),
        (["wer", "--ref", "text", "--hyp", "hyp", MAP, "short"], "expected 'id speaker', got"),
        (
            ["wer", "--ref", "text", "--hyp", "hyp", "--hyp", "hyp", MAP, "utt2spk"],
            "expected a different label for each of 2 files, got hyp, hyp",
        ),
        (
            ["wer", "--ref", "text", "--hyp", "hyp", "-l", "a", "-l", "b", MAP, "utt2spk"],
            "expected a different label",
        ),
        (
            ["uar", "--ref", "text", "--predictions", "predictions", MAP, "utt2spk"],
            "expected 'id emotion'",
        ),
        (
            ["uar", "--ref", "utt2emo", "--predictions", "short", MAP, "utt2spk"],
            "expected 'id emotion'",
        ),
        (["f0", "text", "text"], "wav.scp|is missing|cannot be read"),
        (["rank", "text"], "expected '---- ... ----'"),
        (["rank", "absent.json"], "cannot be read"),
        (["rank", "text", "--target", "250"], "expected minimum EERs between 0 and 1"),
        (["rank", "text", "--utility", "mos"], "expected utilities out of"),
    ],
)
def test_every_bad_input_gets_one_clear_error(lists, monkeypatch, arguments, message):
    monkeypatch.chdir(lists)
    write(lists / "short", "a1 ONE TWO\n")
    done = refused(*arguments)
    assert any(part in done for part in message.split("|")), done


@pytest.mark.parametrize(
    "options", [[], ["--symmetric"], ["--calibrate", "none"], ["--calibrate", "pav"]]
)
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_similarity_of_one_repeated_file_is_reported(tmp_path, options, share):
    """Pairs of speakers may have no trial, and lines another order."""
    draw = np.random.default_rng(3)
    lines, shuffled, truth = [], [], []
    for model in range(9):
        for speaker in range(9):
            if model == speaker or draw.random() < share:
                same = "target" if model == speaker else "nontarget"
                lines += [
                    f"s{model} s{speaker}-u{take} {draw.normal(3 * (model == speaker)):.4f}\n"
                    for take in "12"
                ]
                truth += [f"s{model} s{speaker}-u{take} {same}\n" for take in "12"]
    shuffled = [lines[row] for row in draw.permutation(len(lines))]
    other = [
        f"{line.rsplit(' ', 1)[0]} {draw.normal(2 * (key.split()[2] == 'target')):.4f}\n"
        for line, key in zip(lines, truth, strict=True)
    ]
    for name, content in (("a", lines), ("b", shuffled), ("c", other), ("key", truth)):
        write(tmp_path / name, "".join(content))
    given = ("-k", tmp_path / "key", "--speakers-by", "-", *options)
    told = passes(
        "similarity", "--original", tmp_path / "a", "--original-anonymised", tmp_path / "b", *given
    ).output
    assert "M_oo and M_oa are equal: was a file given twice?" in told
    told = passes(
        "similarity", "--original", tmp_path / "a", "--original-anonymised", tmp_path / "c", *given
    ).output
    assert "given twice" not in told


# --- sclite's trn ----------------------------------------------------------------------------------------------------

KALDI = {"a-1": "the cat sat", "a-2": "the dog ran", "b-1": ""}


def as_kaldi(words):
    return "".join(f"{name} {text}\n" for name, text in words.items())


def as_trn(words):
    return "".join(f"{text} ({name})\n" for name, text in words.items())


@pytest.mark.parametrize("reference", [as_kaldi, as_trn])
@pytest.mark.parametrize("recognised", [as_kaldi, as_trn])
def test_words_before_their_ids_are_read(tmp_path, reference, recognised):
    write(tmp_path / "ref", reference(KALDI))
    write(tmp_path / "hyp", recognised(KALDI | {"a-1": "the cat mat"}))
    told = passes(
        "wer", "--ref", tmp_path / "ref", "--hyp", tmp_path / "hyp", "--bootstrap", 0, "--json", "-"
    )
    assert json.loads(told.stdout)["hyp"]["wer"]["value"] == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            as_trn(KALDI) + "c-1 some words\n",
            "3 of 4 lines end with an id of their own, as in sclite's trn",
        ),
        (as_trn(KALDI) + "again (a-1)\n", "3 of 4 lines end with an id of their own"),
        (as_trn(KALDI | {"b-1": "{ so / thus } it is"}), "holds alternatives"),
    ],
)
def test_unsupported_transcript_formats_are_refused(tmp_path, content, words):
    write(tmp_path / "ref", content)
    write(tmp_path / "hyp", as_kaldi(KALDI))
    done = run("wer", "--ref", tmp_path / "ref", "--hyp", tmp_path / "hyp", "--bootstrap", 0)
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.parametrize(
    "lines",
    [
        "utt1 hello world (a-1)\n",
        "u1 well (laughter)\nu2 so (cough)\n",
        "u1 one (2)\nu2 two\nu3 three\n",
        "u1 1 2 3.5 4 five\nu2 6 7 8 9\n",
    ],
)
def test_brackets_and_numbers_in_transcripts_count_as_words(tmp_path, lines):
    write(tmp_path / "text", lines)
    assert list(read_transcripts(tmp_path / "text")) == [
        line.split()[0] for line in lines.splitlines()
    ]


def test_a_trn_file_is_recognised_by_its_extension(tmp_path):
    write(tmp_path / "ref.trn", ";; a comment\nhello world (a-1)\n")
    assert read_transcripts(tmp_path / "ref.trn") == {"a-1": "hello world"}


@pytest.mark.parametrize(
    ("command", "options"), [("wer", ("--ref", "--hyp")), ("uar", ("--ref", "--predictions"))]
)
def test_a_repeated_hypothesis_file_is_reported(tmp_path, command, options):
    for name, second in (("ref", "glad"), ("one", "sad"), ("two", "sad"), ("three", "angry")):
        write(tmp_path / name, f"a sad\nb {second}\n")
    given = (
        command,
        options[0],
        tmp_path / "ref",
        options[1],
        tmp_path / "three",
        "--bootstrap",
        0,
        options[1],
    )
    assert "same file given" not in passes(*given, tmp_path / "two").stderr
    told = passes(*given, tmp_path / "two", options[1], tmp_path / "one").stderr
    assert (
        f"{tmp_path / 'one'} holds the same as {tmp_path / 'two'}: was the same file given for two systems?"
        in told
    )
