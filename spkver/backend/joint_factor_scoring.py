"""Linear scores of joint factor analysis: inner products of vectors of speakers and of sessions.

References
----------
O. Glembek, L. Burget, N. Dehak, N. Brümmer and P. Kenny, "Comparison of scoring methods used in speaker recognition
with joint factor analysis", ICASSP 2009.
"""

from __future__ import annotations

import numpy as np

from evaluation.trials import Scores, Trials
from spkbase.runs import DestinationLike
from spkbase.work import ALL_CORES, Work
from spkver.backend.scoring import score_trials
from spkver.backend.svm import SvmModels
from spkver.mixture import Statistics
from spkver.vectors import JointFactors, Supervectors, session_vectors, speaker_vectors


def score_joint_factors(
    model: JointFactors,
    enrolment: Statistics,
    tests: Statistics,
    trials: Trials,
    *,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Scores:
    """Score trials by joint factor analysis, all sessions of a model together.

        s = (V y + D z)' S^-1 (f - n (m + U x)) / sum_c n_c

    y and z are those of the model's sessions, summed (`hidden_variables`); x, f and n are those of the tested segment.
    It is the first-order part of the log-likelihood ratio, in nat per frame.

    Parameters
    ----------
    model : spkver.vectors.JointFactors
    enrolment, tests : Statistics
        Of sessions by model, and of segments.
    trials : evaluation.trials.Trials
    work : spkbase.work.Work
        Scores do not depend on the number of workers; those of a device are equal to rounding.
    destination : Destination, optional
        Its folder keeps finished chunks of scores. The fingerprint is that of joint factors and statistics.

    Returns
    -------
    evaluation.trials.Scores
        In the order of the trials.

    Raises
    ------
    DataError
        If a trial names a model or a segment that is not there, a segment has no frames, or statistics are not those
        of the mixture.

    References
    ----------
    Glembek et al., section 3.4.
    """
    speakers = speaker_vectors(model, enrolment, work=work)
    sessions = session_vectors(model, tests, work=work)
    return score_products(speakers, sessions, trials, work=work, destination=destination)


def score_products(
    speakers: Supervectors,
    sessions: Supervectors,
    trials: Trials,
    *,
    work: Work = ALL_CORES,
    destination: DestinationLike = None,
) -> Scores:
    """Score trials by the inner products of a model's vector and a segment's, wherever the vectors are.

    Parameters
    ----------
    speakers, sessions : Supervectors
        Such as those of `speaker_vectors` and `session_vectors`.
    trials, work, destination
        As for `score_joint_factors`.

    Returns
    -------
    evaluation.trials.Scores
    """
    machines = SvmModels(speakers.models, speakers.vectors, np.zeros(len(speakers)))
    return score_trials(machines, sessions, trials, work=work, destination=destination)
