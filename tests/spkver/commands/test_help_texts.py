"""Help texts: light, with an example that parses, and every command and recipe by name."""

import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import spkver.cli
import spkver.evaluation_cli

pytestmark = pytest.mark.whole

PROGRAMS = {"spkver": spkver.cli.main, "spkver-eval": spkver.evaluation_cli.main}
HEAVY = ("matplotlib", "sklearn", "librosa", "torch", "pandas")


def leaves(command, words):
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        yield from leaves(below, [*words, name])


LEAVES = [leaf for name, program in PROGRAMS.items() for leaf in leaves(program, [name])]


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_every_command_has_an_example_that_parses(words, command):
    program, *path = words.split()
    shown = CliRunner().invoke(PROGRAMS[program], [*path, "--help"])
    assert shown.exit_code == 0
    examples = [
        line.strip() for line in shown.output.partition("Example:")[2].splitlines() if line.strip()
    ]
    assert examples, shown.output
    for example in examples:
        arguments = shlex.split(example)
        assert arguments[: len(words.split())] == words.split()
        with command.make_context(words, arguments[len(words.split()) :]) as context:
            assert context.params


def test_examples_name_the_files_that_commands_write():
    """A recipe writes features.h5 into its folder, and `emotion` a folder."""
    examples = {words: command.epilog.splitlines()[2] for words, command in LEAVES}
    folder = shlex.split(examples["spkver rsr2015 svm-gmm"])[-1]
    assert f" {folder}/features.h5 " in examples["spkver features export"]
    assert "." not in shlex.split(examples["spkver emotion"])[-1]


def test_the_first_help_names_every_command_and_recipe():
    text = CliRunner().invoke(spkver.cli.main, ["--help"]).output.partition("Commands:")[2]
    for name in (
        "rsr2015 svm-gmm",
        "rsr2015 gmm-ubm",
        "rsr2015 ivector",
        "rsr2015 jfa",
        "voiceprivacy",
        "simulate",
    ):
        assert f"\n  {name} " in text


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_loads_no_heavy_library(program):
    words = [[*words.split()[1:], "--help"] for words, _ in LEAVES if words.split()[0] == program]
    code = f"""
import sys
from {PROGRAMS[program].callback.__module__} import main
for words in {[["--help"], *words]!r}:
    main(words, standalone_mode=False)
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert done.stdout.count("Usage:") == len(words) + 1


def test_outputs_keys_and_levels_have_one_name():
    for words, command in LEAVES:
        names = {option: parameter for parameter in command.params for option in parameter.opts}
        for long, short in (("--output", "-o"), ("--key", "-k")):
            if long in names:
                assert names.get(short) is names[long], f"{words}: {long} without {short}"
        assert not {"--out", "--outfile", "--keyfile", "--confidence"} & set(names), words
