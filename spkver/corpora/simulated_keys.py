"""Key files of the simulated corpus, in the form of those of RSR2015 part 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

ENROLMENT_SESSIONS = (1, 4, 7)
# RSR2015 lists every wrong sentence, some ten million trials that the recipe does not score.
WRONG_SENTENCES_OF_SPEAKER = 3
WRONG_SENTENCES_OF_OTHERS = 1


def enrolment_lines(speakers: Sequence[str], *, folder: str, n_sentences: int, n_sessions: int) -> Iterator[str]:
    """Yield the lines of a .trn file: a model for each speaker and sentence, and the recordings that enrol it.

    Examples
    --------
    >>> for line in enrolment_lines(["m101"], folder="male", n_sentences=1, n_sessions=5):
    ...     print(line, end="")
    m101_001 male/m101/m101_01_001.sph,male/m101/m101_04_001.sph
    """
    sessions = [session for session in ENROLMENT_SESSIONS if session <= n_sessions]
    for speaker in speakers:
        for sentence in range(1, n_sentences + 1):
            files = ",".join(f"{folder}/{_segment(speaker, session, sentence)}" for session in sessions)
            yield f"{speaker}_{sentence:03d} {files}\n"


def trial_lines(speakers: Sequence[str], *, n_sentences: int, n_sessions: int) -> Iterator[list[str]]:
    """Yield the lines of a .ndx file, a list for each model: model, segment, and four letters.

    The letters say, each Y or N: right speaker and sentence, right speaker and wrong sentence, wrong speaker and right
    sentence, both wrong. All trials of the model's sentence are listed, and those of the `WRONG_SENTENCES_OF_SPEAKER`
    or `WRONG_SENTENCES_OF_OTHERS` sentences that come next, round the end to the first.

    Examples
    --------
    >>> for lines in trial_lines(["m101", "m102"], n_sentences=1, n_sessions=2):
    ...     print("".join(lines), end="")
    m101_001,m101/m101_02_001.sph,Y,N,N,N
    m101_001,m102/m102_02_001.sph,N,N,Y,N
    m102_001,m101/m101_02_001.sph,N,N,Y,N
    m102_001,m102/m102_02_001.sph,Y,N,N,N
    """
    sessions = [session for session in range(1, n_sessions + 1) if session not in ENROLMENT_SESSIONS]
    for target in speakers:
        for sentence in range(1, n_sentences + 1):
            model = f"{target}_{sentence:03d}"
            lines = []
            for speaker in speakers:
                n_wrong = WRONG_SENTENCES_OF_SPEAKER if speaker == target else WRONG_SENTENCES_OF_OTHERS
                for step in range(min(n_wrong + 1, n_sentences)):
                    said = (sentence - 1 + step) % n_sentences + 1
                    letters = _letters(right_speaker=speaker == target, right_sentence=step == 0)
                    lines += [f"{model},{_segment(speaker, session, said)},{letters}\n" for session in sessions]
            yield lines


def _segment(speaker: str, session: int, sentence: int) -> str:
    return f"{speaker}/{speaker}_{session:02d}_{sentence:03d}.sph"


def _letters(*, right_speaker: bool, right_sentence: bool) -> str:
    kind = (not right_speaker) * 2 + (not right_sentence)
    return ",".join("Y" if number == kind else "N" for number in range(4))
