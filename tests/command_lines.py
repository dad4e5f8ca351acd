"""The commands as a user calls them, within this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from spkver.cli import main as spkver
from spkver.evaluation_cli import COMMANDS
from spkver.evaluation_cli import main as evaluation


def run(*words: object) -> Result:
    """Run ``spkver-eval`` where the first word is a command of it, and ``spkver`` otherwise."""
    return CliRunner().invoke(evaluation if words[0] in COMMANDS else spkver, [*map(str, words)])


def passes(*words: object) -> Result:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result


def refused(*words: object) -> str:
    """Return the message of a command that ends with status 2."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr
