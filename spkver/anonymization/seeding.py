"""Where an anonymiser's random numbers come from."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from spkbase.seeding import stream

# The first eight hexadecimal digits of the SHA-256 of "VPC2024".
_VPC2024_SEED = 4284258105


def stream_name(utterance: str, speaker: str, position: int, *, level: str, seeding: str, side: str = "") -> str:
    """Name of the stream of random numbers that an utterance is anonymised with.

    Parameters
    ----------
    utterance, speaker : str
    position : int
        Of the utterance in ``wav.scp``, from 0.
    level : {"utterance", "speaker"}
    seeding : {"utterance", "vpc2024"}
    side : str
        What the speech is for, such as "enrolment" or "trials": on speaker level each side has streams of its own,
        except by "vpc2024".

    Examples
    --------
    >>> stream_name("u7", "anna", 3, level="utterance", seeding="vpc2024")
    'vpc2024 position 3'
    >>> stream_name("u7", "anna", 3, level="speaker", seeding="utterance", side="trials")
    'utterance speaker trials anna'
    """
    if level == "speaker":
        return f"{seeding} speaker {speaker if seeding == 'vpc2024' or not side else f'{side} {speaker}'}"
    return f"{seeding} position {position}" if seeding == "vpc2024" else f"{seeding} id {utterance}"


def named_stream(name: str, seed: int) -> np.random.Generator:
    """Return the generator of a stream, the same on every machine and in every order; see `stream_name`.

    The challenge draws one number an utterance from one generator, in the order of the list: the stream of a position
    is that generator, advanced. On speaker level it makes a generator from the hash of the speaker's id.
    """
    seeding, kind, identifier = name.split(" ", 2)
    if seeding != "vpc2024":
        return stream(seed, kind, identifier)
    if kind == "speaker":
        return np.random.default_rng(int(sha256(identifier.encode()).hexdigest()[:8], 16))
    generator = np.random.default_rng(_VPC2024_SEED)
    assert isinstance(generator.bit_generator, np.random.PCG64)
    generator.bit_generator.advance(int(identifier))
    return generator
