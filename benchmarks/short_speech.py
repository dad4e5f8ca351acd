"""How well speakers are recognised in short recordings, original and anonymised.

    python -m benchmarks.short_speech DATA RUN WORK

DATA and RUN are the data and the output of the run on public speech (docs/real_speech.md). Enrolment (three recordings)
and tests of ``libri10_test`` are cut to a length, from 0.3 s on; each test recording gives three. The attacker is
gmm-svm-cms, trained on ``libri251``, original or anonymised as the recordings are. Prints EERs in per cent as a table.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from evaluation.metrics import eer, sort_scores
from evaluation.trials import Key, align
from spkver.attackers import attacker_config, score, train_attacker
from spkver.audio import read_audio, write_audio
from spkver.datadir import DataDir, enrolment, read_datadir

TESTS, ENROLMENTS = (0.5, 0.75, 1, 1.5, 2, 3, 6), (2.25, 4.5, 9, 18)
PER_MODEL, PIECES, APART, START, END = 3, 3, 2.0, 0.3, 0.2


def cut(source: DataDir, names: list[str], seconds: float, folder: Path, pieces: int) -> DataDir:
    """Return recordings cut to a length, at places two seconds apart."""
    folder.mkdir(parents=True, exist_ok=True)
    recordings, speakers = {}, {}
    for name in names:
        samples, rate = read_audio(source.recordings[name])
        samples = samples[int(START * rate) : -int(END * rate)]
        length, step = int(seconds * rate), int(max(seconds, APART) * rate)
        for number in range(pieces):
            piece = samples[number * step :][:length]
            if number == 0 or len(piece) >= 0.95 * length:
                recordings[f"{name}-{number}"] = folder / f"{name}-{number}.wav"
                speakers[f"{name}-{number}"] = source.speakers[name]
                write_audio(recordings[f"{name}-{number}"], piece, rate)
    return DataDir(folder, recordings, speakers)


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("work", type=click.Path(path_type=Path))
def main(data: Path, run: Path, work: Path) -> None:
    """Print the table."""
    print(f"| speech | enrolment | {' | '.join(f'{seconds:g} s' for seconds in TESTS)} |")
    for speech, folder, suffix in (
        ("original", data, ""),
        ("anonymised", run / "data", "_mcadams"),
    ):
        read = {
            name: read_datadir(folder / f"{name}{suffix}")
            for name in ("libri251", "libri10_test_enrolls")
        }
        tests = [read_datadir(folder / f"libri10_test_trials_{sex}{suffix}") for sex in "fm"]
        tested = DataDir(
            work, tests[0].recordings | tests[1].recordings, tests[0].speakers | tests[1].speakers
        )
        attacker = train_attacker(
            read["libri251"], attacker_config("gmm-svm-cms"), work / speech / "attacker"
        )
        enrolled, of_model = read["libri10_test_enrolls"], dict[str, list[str]]()
        for model, name in zip(
            enrolment(enrolled).models, enrolment(enrolled).segments, strict=True
        ):
            of_model.setdefault(model, []).append(name)
        chosen = [name for names in of_model.values() for name in names[:PER_MODEL]]
        for length in ENROLMENTS:
            models = cut(
                enrolled, chosen, length / PER_MODEL, work / speech / f"enrolment-{length}", 1
            )
            rates = []
            for seconds in TESTS:
                segments = cut(
                    tested,
                    sorted(tested.speakers),
                    seconds,
                    work / speech / f"tests-{seconds}",
                    PIECES,
                )
                pairs = [(model, name) for model in of_model for name in sorted(segments.speakers)]
                is_target = np.array([segments.speakers[name] == model for model, name in pairs])
                of_models, of_tests = zip(*pairs, strict=True)
                trials = Key.from_ids(of_models, of_tests, is_target).trials()
                found = score(
                    {"it": attacker}, models, segments, trials, work=work / speech / "work"
                )["it"]
                values = align(found, trials)
                rates.append(100 * eer(sort_scores(values[is_target], values[~is_target])))
            print(f"| {speech} | {length:g} s | {' | '.join(f'{rate:.1f}' for rate in rates)} |")


if __name__ == "__main__":
    main()
