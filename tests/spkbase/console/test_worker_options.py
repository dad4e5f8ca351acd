"""The options that say who works, and every command that has them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from evaluation.cli import main as evaluation_main
from spkbase.console.commands import Command
from spkbase.console.options import worker_options
from spkbase.work import default_jobs, engine_kind
from spkver.cli import main as spkver_main

OPTIONS = ["jobs", "engine", "scheduler", "wait"]


@click.command(cls=Command)
@worker_options
def work(**options: object) -> None:
    click.echo(f"{options} {engine_kind()}")


@click.command(cls=Command)
@worker_options(device=True)
def work_on(jobs: int | None, device: object) -> None:
    click.echo(f"{jobs} {device} {engine_kind()}")


def commands(group: click.Command, *names: str):
    """All commands under a group with their names."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), *names, name)
    else:
        yield names, group


WITH_JOBS = [
    pytest.param(command, id=" ".join(names))
    for group, root in ((spkver_main, "spkver"), (evaluation_main, "spkver-eval"))
    for names, command in commands(group, root)
    if any(option.name == "jobs" for option in command.params)
]


def test_there_are_commands():
    assert len(WITH_JOBS) > 8


@pytest.mark.parametrize("command", WITH_JOBS)
def test_every_command_with_jobs_has_all_of_them(command):
    options = {option.name: option for option in command.params}
    assert set(OPTIONS) <= set(options)
    assert options["engine"].type.choices == ("auto", "threads", "loky", "dask")
    assert options["jobs"].help == {option.name: option for option in work.params}["jobs"].help


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "{'jobs': None} auto"),
        (["--jobs", "3", "--engine", "threads"], "{'jobs': 3} threads"),
        (["--engine", "loky"], "{'jobs': None} loky"),
    ],
)
def test_the_command_gets_the_jobs_and_runs_on_the_engine(arguments, said):
    assert CliRunner().invoke(work, arguments).stdout == said + "\n"
    assert engine_kind() == "auto"


def test_the_device_comes_where_it_is_asked_for():
    assert [option.name for option in work_on.params] == [*OPTIONS, "device"]
    assert CliRunner().invoke(work_on, ["--jobs", "2"]).stdout == "2 None auto\n"
    assert default_jobs() >= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "dask"], "--engine dask needs the cluster's address: --scheduler tcp://HOST:PORT"),
        (["--scheduler", "tcp://a:1"], "--scheduler is for a Dask cluster: give --engine dask too"),
        (["--engine", "loky", "--scheduler", "tcp://a:1"], "give --engine dask too"),
        (["--wait", "5"], "--wait is for a Dask cluster: give --engine dask too"),
        (["--engine", "dask", "--scheduler", "tcp://a:1", "--wait", "0"], "0 is not in the range"),
        (["--engine", "spark"], "'spark' is not one of"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--engine", "dask", "--scheduler", "a:1"], "expected the address of a Dask scheduler"),
    ],
)
def test_options_that_do_not_go_together(arguments, said):
    found = CliRunner().invoke(work, arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr
