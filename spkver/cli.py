"""The command ``spkver``: it gathers the commands of `spkver.commands`."""

from __future__ import annotations

import click

from spkbase.console import Group
from spkbase.version import __version__
from spkver.commands.anonymize import anonymize
from spkver.commands.attack import score, train
from spkver.commands.features import features
from spkver.commands.simulate import simulate
from spkver.commands.status import status
from spkver.commands.utility import emotion, transcribe


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spkver")
def main() -> None:
    """Classic speaker verification: speech in, scores out.

    Whole systems are recipes, scripts in the folder recipes/ of the source tree:

    \b
      python recipes/rsr2015/svm_gmm.py --corpus DIR --output DIR
      python recipes/rsr2015/gmm_ubm.py --corpus DIR --output DIR

    How far a run is, is shown by: spkver status OUTPUT. Scores are evaluated with the command spkver-eval.
    """


for _command in (simulate, features, anonymize, train, score, transcribe, emotion, status):
    main.add_command(_command)


if __name__ == "__main__":
    main()
