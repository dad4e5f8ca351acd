"""Streams of random numbers that hang on a seed and on names alone, not on order, worker or machine.

A name is hashed with SHA-256, and words of the hash seed a generator beside the seed that was asked for. So what is
drawn for a recording or a speaker is the same in every list that holds it.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np


def stream(
    seed: int,
    *names: str,
    words: int = 8,
    spawned: bool = False,
    bits: type[np.random.BitGenerator] = np.random.PCG64,
) -> np.random.Generator:
    """Return the generator of some names under a seed.

    Parameters
    ----------
    seed : int
        Not negative.
    *names : str
        What the numbers are drawn for; they are joined by blanks before they are hashed.
    words : int
        How many of the hash's eight words of 32 bits are used. Each purpose keeps to one number of them, since it
        changes every number drawn.
    spawned : bool
        Give the words as the spawn key of the seed, as NumPy's own children of a seed have one; by default they are
        entropy beside it. This changes every number drawn too.
    bits : type of numpy.random.BitGenerator
        Source of bits; PCG64, NumPy's default, where no other is given.

    Returns
    -------
    numpy.random.Generator

    References
    ----------
    .. [1] M. O'Neill, "Developing a seed_seq alternative", 2015 (the mixing in NumPy's `SeedSequence`).

    Examples
    --------
    >>> bool(stream(1, "anna").random() == stream(1, "anna").random())
    True
    >>> bool(stream(1, "anna").random() == stream(1, "bert").random())
    False
    """
    # ids may hold surrogates, which stand for bytes that are no UTF-8
    digest = sha256(" ".join(names).encode("utf-8", "surrogatepass")).digest()
    key = [int(word) for word in np.frombuffer(digest, "<u4")[:words]]
    entropy = np.random.SeedSequence(seed, spawn_key=key) if spawned else np.random.SeedSequence([seed, *key])
    return np.random.Generator(bits(entropy))
