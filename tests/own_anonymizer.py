"""An anonymiser as a user would write it, for the tests."""

import numpy as np


def reverse(samples, rate, utterance, rng):
    """Play backwards, at a drawn level."""
    return samples[::-1] * rng.uniform(0.5, 1.0)


def breaks_on_a2(samples, rate, utterance, rng):
    if utterance == "a-2":
        raise ZeroDivisionError("no luck")
    return -samples


def integers(samples, rate, utterance, rng):
    return (samples * 32768).astype(np.int16)


def nothing(samples, rate, utterance, rng):
    return samples[:0]


def not_a_number(samples, rate, utterance, rng):
    return samples * np.nan


def loud(samples, rate, utterance, rng):
    return samples * 1000
