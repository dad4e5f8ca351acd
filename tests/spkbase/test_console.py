"""What all command lines share: one message, an exit status, a clean end, options for workers."""

import errno
import logging
import signal

import click
import pytest
from click.testing import CliRunner

from spkbase.console import Command, CommandGroup, ResumableCommand, echo_log, worker_options
from spkbase.errors import DataError, WorkerError
from spkbase.work import engine_kind
from spkver.cli import main as spkver_main
from spkver.evaluation_cli import main as evaluation_main

pytestmark = pytest.mark.whole


def run(action, capsys, *, grouped=False, kind=Command):
    @click.command(cls=kind)
    def main():
        action()

    command, arguments = main, []
    if grouped:
        command, arguments = CommandGroup("main", table={}), ["main"]
        command.get_command = lambda *_: main
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    return int(end.value.code or 0), capsys.readouterr().err


def fail(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            DataError("wrong", file="a.txt", line=3, remedy="mend it"),
            "Error: a.txt:3: wrong (mend it)\n",
        ),
        (WorkerError("killed"), "Error: killed\n"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "a.txt"),
            "Error: a.txt: No such file or dir",
        ),
        (
            MemoryError("Unable to allocate 9 TiB"),
            "Error: memory ran out: Unable to allocate 9 TiB",
        ),
    ],
)
def test_errors_give_one_message(capsys, error, message, grouped):
    status, err = run(fail(error), capsys, grouped=grouped)
    assert status == 2
    assert err.startswith(message)
    assert err.count("Error") == 1


def test_python_parameters_are_named_as_the_options_of_the_command(capsys):
    text = "give missing='drop', allow_pickle=True, jobs=0 or key_columns=Choice(layout='label,model', label='x')"

    @click.command(cls=Command)
    @click.option("--missing")
    @click.option("--key-columns")
    @click.option("--allow-pickle")
    def main(**_):
        raise DataError("wrong", remedy=text)

    with pytest.raises(SystemExit):
        main([])
    expected = "--missing drop, --allow-pickle, jobs=0 or --key-columns label,model,label=x"
    assert capsys.readouterr().err == f"Error: wrong (give {expected})\n"


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_interrupted_commands_end_with_the_status_of_the_signal(
    capsys, number, status, word, grouped
):
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    found, err = run(lambda: signal.raise_signal(number), capsys, grouped=grouped)
    assert (found, err) == (status, f"{word}\n")
    found, err = run(
        lambda: signal.raise_signal(number), capsys, grouped=grouped, kind=ResumableCommand
    )
    assert (found, err) == (
        status,
        f"{word}; finished steps are kept, the same command resumes from there\n",
    )
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_log_lines_are_echoed_with_their_level(capsys):
    logger = logging.getLogger("spkver.test_console")
    before = logging.getLogger("spkver").level
    with echo_log(logging.INFO):
        logger.info("step one")
        for _ in range(2):
            logger.warning("careful")
        logger.debug("details")
        logger.error("only in the log", extra={"file_only": True})
    logger.info("after")
    assert capsys.readouterr().err == "step one\nWarning: careful\n"
    assert logging.getLogger("spkver").level == before


# --- every command ----------------------------------------------------------------------------------------------------


def commands(group, *names):
    """All commands under a group with their names."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), *names, name)
    else:
        yield names, group


ALL = [
    pytest.param(command, id=" ".join(names))
    for group, root in ((spkver_main, "spkver"), (evaluation_main, "spkver-eval"))
    for names, command in commands(group, root)
]


@pytest.mark.parametrize("command", ALL)
def test_every_command_ends_cleanly_and_has_all_options_for_workers_or_none(command):
    assert isinstance(command, Command)
    assert ("jobs" in (names := {option.name for option in command.params})) == ("engine" in names)


@click.command(cls=Command)
@worker_options
def work(jobs):
    click.echo(f"{jobs} {engine_kind()}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "None auto"), (["--jobs", "3", "--engine", "threads"], "3 threads")],
)
def test_the_command_uses_the_requested_jobs_and_engine(arguments, said):
    assert CliRunner().invoke(work, arguments).stdout == said + "\n"
    assert engine_kind() == "auto"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--engine", "slurm"],
            "expected one of the engines auto, threads, loky, ray, spark, or a Dask scheduler's",
        ),
        (["--engine", "a:8786"], "a Dask scheduler's tcp://HOST:PORT, got 'a:8786'"),
        (["--engine", "spark"], "the engine spark needs joblibspark"),
        (["--engine", "http://a:1"], "no Dask scheduler with a worker answered at http://a:1"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--jobs", "1", "--jobs", "2"], "--jobs is given more than once; it takes one value"),
    ],
)
def test_bad_options_are_refused(arguments, said):
    found = CliRunner().invoke(work, arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (evaluation_main, ["metric"], "No such command 'metric': did you mean metrics?"),
        (spkver_main, ["rsr2015", "svm_gmm"], "No such command 'svm_gmm': did you mean svm-gmm?"),
        (spkver_main, ["nothing-like-it"], "No such command 'nothing-like-it'."),
    ],
)
def test_similar_commands_are_suggested(command, words, said):
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert done.stderr.rstrip().endswith(f"Error: {said}")
