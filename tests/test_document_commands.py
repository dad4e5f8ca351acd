"""Every `spkver-eval` command in a block of the documents, or at the end of a help text, runs as it is written.

Its files are made here, small and random, under the names that the documents give them. Commands of `spkver` need
speech, networks or minutes: their options are checked by test_docs.py, and tests/recipes runs them on small sets.
"""

import itertools
import os
import pickle
import re
import shlex
import shutil

import click
import numpy as np
import pytest
import soundfile
from command_lines import passes, run
from test_docs import CALL, DOCUMENTS, ROOT, blocks, words_of

from evaluation.formats import read_scores, write_scores
from spkver.evaluation_cli import main

SPEAKERS = [f"s{number:02d}" for number in range(12)]
NOT_RUN = {
    r"(rank|page) ('?result|exp)": "results of whole evaluations: tests/recipes, tests/evaluation/challenges",
    "challenge": "a challenge with all its teams: tests/evaluation/challenges",
    "f0": "recordings: tests/evaluation/commands/test_utility_cli.py",
    "zebra -s -k": "names of options",
    "(wer|uar) --ref (neutral|ravdess|words)": "words and emotions of a corpus that is not here",
    r".*\$": "a loop of the shell over sets that are not here",
    ".*OUTPUT/": "the folder of an evaluation: tests/recipes",
    "metrics --format nested|convert .*nested": "tests/evaluation/formats/test_formats_table.py",
    "metrics .*--metric mine.py": "tests/evaluation/metrics/test_metric_table.py",
}


def examples():
    """Return the commands by where they stand, each once; what a line of a table or of text names is not whole."""
    found = {}
    for path in DOCUMENTS:
        if path.name == "CHANGELOG.md":
            continue
        settings = dict(
            re.findall(r'^ *([A-Z])="(-s .*)"$', path.read_text(encoding="utf-8"), re.M)
        )
        code = [code for _, code in blocks(path)]
        code += re.findall(r"`(spkver-eval [^`]* -s [^`]*)`", path.read_text(encoding="utf-8"))
        for line in re.sub(r"\\\n\s*", " ", "\n".join(code)).splitlines():
            for name, value in settings.items():
                line = line.replace(f"${name}", value)
            call = CALL.match(line.strip().removeprefix("$ "))
            if call and call["name"] == "spkver-eval":
                found.setdefault(
                    " ".join(map(shlex.quote, words_of(call["rest"].split(" # ")[0]))), path.name
                )
    for name in main.list_commands(click.Context(main)):
        command = main.get_command(click.Context(main), name)
        for line in (command.epilog or "").splitlines():
            if call := CALL.match(line.strip()):
                found.setdefault(
                    " ".join(map(shlex.quote, words_of(call["rest"]))), f"{name} --help"
                )
    return found


# How the names of speakers begin in files of vectors of other speakers.
BEGINNINGS = {"to": "t", "ta": "t", "others": "t"}

EXAMPLES = examples()
RUN = [line for line in EXAMPLES if not any(re.match(pattern, line) for pattern in NOT_RUN)]


def vectors(path, draw, centres, takes="123", begin=""):
    """Write vectors of the takes of all speakers, ids as in the lists, in the form that the extension asks for."""
    speakers = [begin + speaker for speaker in SPEAKERS]
    rows = np.repeat(centres, len(takes), axis=0) + 0.5 * draw.normal(
        size=(len(takes) * len(speakers), 8)
    )
    ids = [f"{speaker}/{take}" for speaker in speakers for take in takes]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".pkl":
        path.write_bytes(
            pickle.dumps({speaker: rows[3 * n : 3 * n + 3] for n, speaker in enumerate(speakers)})
        )
    elif path.suffix == ".scp":
        import kaldiio

        with kaldiio.WriteHelper(f"ark,scp:{path.with_suffix('.ark')},{path}") as writer:
            for key, row in zip(ids, rows.astype(np.float32), strict=True):
                writer(key, row)
    else:
        write = np.savez if path.suffix == ".npz" else write_hdf5
        write(
            path,
            ids=np.array(ids),
            vectors=rows,
            speakers=np.array([one[:-1] + "m" for one in ids]),
        )


def write_hdf5(path, **columns):
    import h5py

    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file[name] = values.astype("S") if values.dtype.kind == "U" else values


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("commands"), np.random.default_rng(0)
    pairs = [
        (f"{a}/m", f"{b}/{take}") for a, b, take in itertools.product(SPEAKERS, SPEAKERS, "123")
    ]
    target = [model[:3] == segment[:3] for model, segment in pairs]

    def write(name, lines):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def write_score_file(name):
        write(
            name,
            (
                f"{m} {s} {2 * same - 1 + draw.normal():.6f}"
                for (m, s), same in zip(pairs, target, strict=True)
            ),
        )

    words = " ".join(line for line in EXAMPLES if line in RUN)
    for name in sorted(
        {
            *re.findall(
                r"(?:-s|--train-scores|--original|--original-anonymised|--anonymised) (\S+)", words
            )
        }
    ):
        if name.endswith(".txt") or "." not in name:
            write_score_file(name)
    write_score_file("scores.txt")
    write_scores(folder / "scores.h5", read_scores(folder / "scores.txt"))
    for name in ("DEVELOPMENT_SCORES", "models.txt", "segments.txt"):
        write_score_file(name)
    write("trials.txt", (f"{m} {s}" for m, s in pairs))
    for name in {*re.findall(r"(?:-k|--train-key|--trials) (\S+)", words), "DEVELOPMENT_KEY"} - {
        "trials.txt"
    }:
        labels = (("nontarget", "target")[same] for same in target)
        write(name, (f"{m} {s} {label}" for (m, s), label in zip(pairs, labels, strict=True)))
    for name in ("open.txt", "open_key.txt"):  # eight speakers are enrolled, four are unknown
        lines = (folder / name).read_text().splitlines()
        write(name, (line for line in lines if line[:3] in SPEAKERS[:8]))
    segments = {segment: segment[:3] + "/m" for _, segment in pairs}
    for name in {*re.findall(r"--segment-speakers (\S+)", words), "utt2spk"}:
        write(name, map(" ".join, segments.items()))
    for name in {*re.findall(r"--model-speakers (\S+)", words)} - {"utt2spk"}:
        write(
            name,
            (
                f"{one} {one[:3]}/m"
                for one in (*segments, *(f"{speaker}/m" for speaker in SPEAKERS))
            ),
        )
    for name in {*re.findall(r"--labels (\S+)", words)}:
        write(name, (f"{speaker}/m {'fm'[n % 2]}" for n, speaker in enumerate(SPEAKERS)))
    write(
        "people.csv",
        [
            "speaker,sex,age",
            *(
                f"{begin}{speaker}/m,{'fm'[n % 2]},{30 + 10 * (n % 3)}-{39 + 10 * (n % 3)}"
                for begin in ("", "t")
                for n, speaker in enumerate(SPEAKERS)
            ),
        ],
    )
    write(
        "side.csv",
        ["speaker,sex", *(f"{speaker}/m,{'fm'[n % 2]}" for n, speaker in enumerate(SPEAKERS))],
    )
    write("utt2dur", (f"{one} {draw.uniform(2, 20):.2f}" for one in sorted({*sum(pairs, ())})))
    write("text", (f"{segment} one two three" for segment in segments))
    write(
        "text_heard", (f"{segment} one {draw.choice(['two', 'too'])} three" for segment in segments)
    )
    write(
        "utt2emo", (f"{segment} {'sad' if '1' in segment[3:] else 'angry'}" for segment in segments)
    )
    write(
        "libri_ECAPA_B3.yaml",
        ["enroll_path: enroll.pkl", "trial_path: trial.pkl", "seed: 42", "data_type: anon_B3"],
    )
    write("predictions.txt", (f"{segment} {draw.choice(['sad', 'angry'])}" for segment in segments))
    centres, turn = draw.normal(size=(12, 8)), np.linalg.qr(draw.normal(size=(8, 8)))[0]
    names = {*re.findall(r"\S+\.(?:h5|npz|pkl|scp)\b", words)} - {"scores.h5"}
    for name in names:
        turned = centres @ turn if re.search(r"anon|^[te]?a\.|mcadams", name) else centres
        vectors(
            folder / name,
            draw,
            turned,
            "456" if name[0] == "e" else "123",
            BEGINNINGS.get((folder / name).stem, ""),
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        passes("linkability", "-s", "scores.txt", "-k", "key.txt", "-o", "exp/a", "--bootstrap", 20)
        quality = ("--quality", "utt2dur", "--quality-columns", "log(min utt2dur)")
        fusion = ("-s", "lda.txt", "-s", "plda.txt", "--train-key", "key.txt", *quality)
        passes("fuse", *fusion, "--save", "fusion.json", "-o", "fused.txt")
        for name in ("exp/b", "exp/c", "exp/d", "linkability"):
            shutil.copytree("exp/a", name)
    return folder


@pytest.mark.whole
@pytest.mark.parametrize("line", RUN, ids=[f"{EXAMPLES[line]}: {line}"[:80] for line in RUN])
def test_commands_of_the_documents_run(line, place, tmp_path, monkeypatch):
    # hard links suffice: commands replace files, and never write into them
    monkeypatch.chdir(shutil.copytree(place, tmp_path / "place", copy_function=os.link))
    # as it is written, with fewer resamples
    words = shlex.split(re.sub(r"--bootstrap [0-9]{3,}", "--bootstrap 20", line))
    if words[0] == "metrics" and "-speakers" in line and "--bootstrap" not in line:
        words += ["--bootstrap", "20"]
    result = run(*words)
    assert result.exit_code == 0, f"{EXAMPLES[line]}: {line}\n{result.output}"


def test_two_folders_of_recordings_become_sets_as_documented(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    for folder, number, take in itertools.product(("original", "anonymised"), range(8), range(6)):
        path = tmp_path / folder / f"p{number}" / f"{take}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, 0.1 * draw.normal(size=16000), 16000)
    (tmp_path / "speakers.tsv").write_text(
        "".join(f"p{number} {'fm'[number % 2]}\n" for number in range(8))
    )
    block = next(code for _, code in blocks(ROOT / "docs/own_data.md"))
    commands = re.findall(r"^spkver ((?:datadir|split) .*)$", block, re.M)
    assert len(commands) == 3
    for command in commands:
        assert run(*shlex.split(command)).exit_code == 0, command
    for name in ("mine_train", "mine_test_enrolls", "mine_test_trials_f", "mine_test_trials_m"):
        assert (tmp_path / "sets" / name / "wav.scp").is_file()
        assert (tmp_path / "sets" / f"{name}_anon" / "wav.scp").is_file()


def test_commands_that_do_not_run_here_have_a_reason():
    used = {pattern for pattern in NOT_RUN if any(re.match(pattern, line) for line in EXAMPLES)}
    assert used == set(NOT_RUN)
    assert len(RUN) > 40
