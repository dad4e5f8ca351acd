"""Training of networks: the inputs of a trainer, and the process in which it runs.

A trainer is a module with a function ``train``, and ``load`` unless its network is an extractor by itself; see
`spkver.training.process`. `spkver.attackers.trained` passes it the training set of an attacker.
"""

from spkver.training import tuning
from spkver.training.process import RECORD, check_trainer, read_record, train_network, write_record
from spkver.training.speech import HeldOut, TrainingSpeech, Utterance

__all__ = [
    "RECORD",
    "HeldOut",
    "TrainingSpeech",
    "Utterance",
    "check_trainer",
    "read_record",
    "train_network",
    "tuning",
    "write_record",
]
