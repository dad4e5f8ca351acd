"""Files of conversations. Their speakers are the answers, so an attacker is given only the recordings.

FOLDER/trials           the key
FOLDER/utt2spk          speaker of each conversation
FOLDER/conversations    its recordings; in further rounds ``conversations-round2`` and so on
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evaluation.formats.reading import write_key
from evaluation.trials import Conversations, Key
from spkbase.files import read_id_list, write_text

_MEMBERS = "conversations"


def read_conversations(folder: str | Path) -> dict[str, tuple[str, ...]]:
    """Return the recordings of each conversation in the first round, from the folder that was written."""
    lines = read_id_list(Path(folder) / _MEMBERS, "conversation recordings", n_columns=1, rest=True)
    return {name: tuple(recordings.split()) for name, recordings in lines.items()}


def write_conversations(
    folder: str | Path, key: Key, speakers: Mapping[str, str], *rounds: Conversations
) -> None:
    """Write conversations to a folder.

    Parameters
    ----------
    folder : path
    key : Key
        Trials of the conversations, see `evaluation.trials.conversation_key`.
    speakers : mapping of str to str
        Speaker of each conversation.
    *rounds : mapping of str to tuple of str
        The recordings of the conversations in each round.
    """
    folder = Path(folder)
    write_key(folder / "trials", key)
    lines = [f"{name} {speakers[name]}\n" for name in sorted(speakers)]
    write_text(folder / "utt2spk", "".join(lines))
    for number, conversations in enumerate(rounds, 1):
        ending = f"-round{number}" if number > 1 else ""
        lines = [f"{name} {' '.join(conversations[name])}\n" for name in sorted(conversations)]
        write_text(folder / f"{_MEMBERS}{ending}", "".join(lines))
