"""docs/backends.md: its table is that of the steps, its examples give what they print."""

import re
import shlex
from pathlib import Path

from command_lines import passes

from spkver.backend import NEEDS, STEPS, format_chain, parse_chain

PAGE = Path(__file__).resolve().parents[3] / "docs" / "backends.md"
TEXT = PAGE.read_text(encoding="utf-8")


def table():
    rows = [
        "| step | what it does | parameters, the first is `step:VALUE` | trained on |",
        "|---|---|---|---|",
    ]
    for step in STEPS:
        parameters = []
        for parameter in step.parameters:
            default = (
                str(parameter.default).lower()
                if isinstance(parameter.default, bool)
                else parameter.default
            )
            value = "" if parameter.default is None else f" = {default}"
            choices = f" ({', '.join(parameter.choices)})" * bool(parameter.choices)
            parameters.append(f"`{parameter.name}{value}`: {parameter.about}{choices}")
        needs = "; ".join(NEEDS[need] for need in step.needs)
        rows.append(f"| `{step.name}` | {step.about} | {'; '.join(parameters)} | {needs} |")
    return "\n".join(rows)


def test_the_table_of_the_page_equals_the_table_of_steps():
    assert table() in TEXT, f"docs/backends.md should hold\n{table()}"


def test_the_chains_of_the_page_can_be_parsed():
    chains = re.findall(
        r"`((?:centre|whiten|length|lda|wccn|efr|sphnorm|coral|nap)[\w:,]*,[\w:,]+)`", TEXT
    )
    chains += re.findall(r"^\| [^|]+ \| `([^`]+)` \|", TEXT, re.M)
    assert len(chains) > 6
    for chain in chains:
        assert format_chain(parse_chain(chain))


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    """Python first, which makes the vectors; then the commands, with what they print."""
    monkeypatch.chdir(tmp_path)
    made, four_lines, *_ = blocks("python")
    exec(made, {})
    exec(four_lines, {})
    printed = capsys.readouterr().out
    assert printed.strip() == "1600 scores"
    commands = re.findall(r"^\$ spkver (.*)\n((?:[^$\n].*\n)*)", "".join(blocks("console")), re.M)
    assert len(commands) == 3
    for command, expected in commands:
        assert without_digest(passes(*shlex.split(command)).stdout) == without_digest(expected)


def without_digest(text):
    return re.sub("[0-9a-f]{64}", "DIGEST", text)
